// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Options and other structures that callers hand in.
 */
#include "front.h"

#define WORKERS_MAX	64

int t3_copy_struct(const char *call, const char *name, void *to, size_t bytes,
		   size_t least, const void *from)
{
	const unsigned char *byte = from;
	uint32_t size;
	size_t i;

	memcpy(&size, from, sizeof(size));
	if (size < least)
		return t3_fail(EINVAL, "%s: %s->size is %u, allowed are %zu and more",
			       call, name, size, least);
	for (i = bytes; i < size; i++)
		if (byte[i])
			return t3_fail(E2BIG,
				       "%s: %s->size is %u, byte %zu behind the known %zu is not 0",
				       call, name, size, i - bytes, bytes);
	memset(to, 0, bytes);
	memcpy(to, from, size < bytes ? size : bytes);
	return 0;
}

static int check(const char *call, const struct t3_options *o)
{
	if (o->engine > T3_ENGINE_GPU)
		return t3_fail(EINVAL, "%s: options->engine is %u, allowed are 0 to %u",
			       call, o->engine, T3_ENGINE_GPU);
	if (o->setup_ms > T3_TIMEOUT_MAX)
		return t3_fail_range(call, "options->setup_ms", o->setup_ms, 0,
				     T3_TIMEOUT_MAX);
	if (o->watchdog_ms > T3_TIMEOUT_MAX)
		return t3_fail_range(call, "options->watchdog_ms",
				     o->watchdog_ms, 0, T3_TIMEOUT_MAX);
	if (o->workers > WORKERS_MAX && o->workers != T3_NO_WORKERS)
		return t3_fail_range(call, "options->workers", o->workers, 0,
				     WORKERS_MAX);
	if (o->flags & ~T3_OPTION_URING)
		return t3_fail(EINVAL, "%s: options->flags is 0x%x, allowed is 0x%x",
			       call, o->flags, T3_OPTION_URING);
	return 0;
}

int t3_options_take(const char *call, const struct t3_options *from,
		    struct t3_options *to)
{
	struct t3_options o = { 0 };
	int ret;

	if (from) {
		ret = t3_copy_struct(call, "options", &o, sizeof(o),
				     offsetof(struct t3_options, flags), from);
		if (!ret)
			ret = check(call, &o);
		if (ret)
			return ret;
	}
	o.size = sizeof(o);
	if (!o.setup_ms)
		o.setup_ms = T3_TIMEOUT_DEFAULT;
	if (!o.watchdog_ms)
		o.watchdog_ms = T3_TIMEOUT_DEFAULT;
	*to = o;
	return 0;
}
