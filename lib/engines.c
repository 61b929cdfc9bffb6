// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which engine: asked for, named by the environment, or the best there is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "front.h"

#define WHY_BYTES	256

static const char *const names[] = {
	[T3_ENGINE_AUTO] = "auto",
	[T3_ENGINE_SOFT] = "soft",
	[T3_ENGINE_KERNEL] = "kernel",
	[T3_ENGINE_GPU] = "gpu",
};

/*
 * The best first: that is the order in which AUTO tries them. It does not try
 * the gpu engine: who hasn't asked for it would write into t3_alloc()'s memory.
 */
static const struct t3_engine_ops *const engines[] = {
	&t3_kernel_engine,
	&t3_soft_engine,
	&t3_gpu_engine,
};

const char *t3_engine_name(uint32_t engine)
{
	return engine < ARRAY_SIZE(names) ? names[engine] : NULL;
}

const struct t3_engine_ops *t3_engine_ops(uint32_t engine)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(engines); i++)
		if (engines[i]->id == engine)
			return engines[i];
	return NULL;
}

/* 0, or -ENODEV; a sentence either way. */
static int probe(uint32_t engine, char *why, size_t bytes)
{
	const struct t3_engine_ops *ops = t3_engine_ops(engine);
	int ret;

	why[0] = '\0';
	ret = ops->probe(why, bytes);
	if (!ret && !why[0])
		snprintf(why, bytes, "%s: it is there", ops->name);
	return ret;
}

/* The engine that the environment names; AUTO where it names none. */
static int from_environment(const char *call, uint32_t *engine)
{
	const char *name = getenv("T3_ENGINE");
	uint32_t i;

	*engine = T3_ENGINE_AUTO;
	if (!name || !*name)
		return 0;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]))
			continue;
		*engine = i;
		return 0;
	}
	return t3_fail(EINVAL,
		       "%s: T3_ENGINE is \"%.32s\", allowed are auto, kernel, soft and gpu",
		       call, name);
}

/* The best engine, and why no better one. */
static int choose_best(char *why, size_t bytes)
{
	char not[WHY_BYTES] = "";
	char text[WHY_BYTES];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		int ret;

		if (engines[i]->id == T3_ENGINE_GPU)
			continue;
		ret = probe(engines[i]->id, text, sizeof(text));
		if (!ret) {
			snprintf(why, bytes, "%s%s%s%s", text,
				 not[0] ? " (not " : "", not,
				 not[0] ? ")" : "");
			return (int)engines[i]->id;
		}
		memcpy(not, text, sizeof(not));
	}
	snprintf(why, bytes, "no engine is there: %s", not);
	return -ENODEV;
}

static int choose(const char *call, uint32_t engine, char *why, size_t bytes)
{
	int ret;

	if (engine == T3_ENGINE_AUTO) {
		ret = from_environment(call, &engine);
		if (ret)
			return ret;
	}
	if (engine == T3_ENGINE_AUTO)
		ret = choose_best(why, bytes);
	else
		ret = probe(engine, why, bytes);
	if (ret < 0)
		return t3_fail(ENODEV, "%s: no engine: %s", call, why);
	return ret ? ret : (int)engine;
}

int t3_engine_why(uint32_t engine, char *why, size_t bytes)
{
	char text[2 * WHY_BYTES + 16] = "";
	int ret;

	if (engine >= ARRAY_SIZE(names))
		return t3_fail(EINVAL, "%s: engine is %u, allowed are 0 to %u",
			       __func__, engine, T3_ENGINE_GPU);
	if (!why && bytes)
		return t3_fail_null(__func__, "why");
	ret = choose(__func__, engine, text, sizeof(text));
	if (bytes)
		snprintf(why, bytes, "%s", ret == -EINVAL ? t3_error() : text);
	return ret;
}

int t3_engine_find(const char *call, uint32_t engine,
		   const struct t3_engine_ops **ops)
{
	char why[2 * WHY_BYTES + 16] = "";
	int ret = choose(call, engine, why, sizeof(why));

	if (ret < 0)
		return ret;
	*ops = t3_engine_ops((uint32_t)ret);
	return 0;
}

int t3_engine_of_fd(const char *call, int fd, uint32_t *ranks,
		    const struct t3_engine_ops **ops)
{
	size_t i;
	int ret;

	if (fcntl(fd, F_GETFD) < 0)
		return t3_fail(EBADF, "%s: fd is %d, which is not open", call,
			       fd);
	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		ret = engines[i]->group_is(fd, ranks);
		if (ret == -EPROTO)
			return t3_fail(EPROTO,
				       "%s: fd is %d, a group of the %s engine in a version that this library can't speak",
				       call, fd, engines[i]->name);
		if (ret)
			continue;
		*ops = engines[i];
		return 0;
	}
	return t3_fail(ENOTTY, "%s: fd is %d, which is no t3 group", call, fd);
}
