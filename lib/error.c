// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The sentence for the last failure, one a thread.
 */
#include <stdarg.h>
#include <stdio.h>

#include "front.h"

#define SENTENCE_BYTES 512

static _Thread_local char sentence[SENTENCE_BYTES];

const char *t3_error(void)
{
	return sentence;
}

int t3_fail(int error, const char *format, ...)
{
	char text[SENTENCE_BYTES];
	va_list args;

	/* By way of a copy: an argument may be the last sentence itself. */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(sentence, text, sizeof(sentence));
	return -error;
}

int t3_fail_null(const char *call, const char *name)
{
	return t3_fail(EINVAL, "%s: %s is NULL", call, name);
}

int t3_fail_range(const char *call, const char *name, uint64_t value,
		  uint64_t low, uint64_t high)
{
	return t3_fail(ERANGE, "%s: %s is %llu, allowed are %llu to %llu", call,
		       name, (unsigned long long)value,
		       (unsigned long long)low, (unsigned long long)high);
}

int t3_fail_broken(const char *call, uint32_t error, uint32_t rank)
{
	static const char *const why[] = {
		[0] = "died, or left, with an epoch armed",
		[1] = "called t3_abort()",
		[2] = "made no progress until the watchdog's time was over",
		[3] = "unmapped a region's memory while it was in use",
		[4] = "is where an engine failed",
		[5] = "broke the group",
	};
	uint32_t i = error == EOWNERDEAD ? 0 : error == ECANCELED ? 1 :
		     error == ETIMEDOUT ? 2 : error == ESTALE ? 3 :
		     error == EIO ? 4 : 5;

	if (rank == T3_NONE)
		return t3_fail((int)error, "%s: the group broke: a rank %s",
			       call, why[i]);
	return t3_fail((int)error, "%s: the group broke: rank %u %s", call,
		       rank, why[i]);
}

static const char *verdict_text(uint32_t error)
{
	switch (error) {
	case EINVAL:
		return "an unknown op or block flag";
	case ERANGE:
		return "a number out of range";
	case ENOTUNIQ:
		return "two updates of a block with the same number";
	case EMSGSIZE:
		return "blocks that differ in rows or columns";
	case EPROTOTYPE:
		return "blocks that differ in dtype";
	case EACCES:
		return "a source that its owner has not marked as readable";
	case ELOOP:
		return "a trigger on a cycle";
	case EROFS:
		return "a written block in a read-only region";
	case EADDRINUSE:
		return "two written blocks that overlap in bytes";
	case EBADMSG:
		return "op, algorithm, size, dtype, layout, block_bytes or tiles are not rank 0's";
	case E2BIG:
		return "a block or a list over its limit";
	case EPIPE:
		return "left, or gave its part up, before all parts had come";
	default:
		return strerror((int)error);
	}
}

int t3_fail_verdict(const char *call, const struct t3_verdict *verdict)
{
	const char *text = verdict_text(verdict->error);
	char where[96] = "";
	int n = 0;

	if (verdict->trigger != T3_NONE)
		n = snprintf(where, sizeof(where), ", trigger %u",
			     verdict->trigger);
	if (verdict->detail != T3_NONE)
		snprintf(where + n, sizeof(where) - (size_t)n, ", detail %u",
			 verdict->detail);
	if (verdict->rank == T3_NONE)
		return t3_fail((int)verdict->error,
			       "%s: the plan was refused%s: %s", call, where,
			       text);
	return t3_fail((int)verdict->error,
		       "%s: the plan was refused: rank %u%s: %s", call,
		       verdict->rank, where, text);
}
