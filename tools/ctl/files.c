// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: small files, below the sysroot.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define TEXT_MAX	(64 << 20)	/* of one file; none of ours is near it */

void *must_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		errx(EXIT_NOT_FINE, "no memory");
	return p;
}

void *must_grow(void *list, size_t n, size_t size)
{
	void *p = reallocarray(list, n, size);

	if (!p)
		errx(EXIT_NOT_FINE, "no memory");
	return p;
}

char *must_strdup(const char *s)
{
	char *copy = strdup(s);

	if (!copy)
		errx(EXIT_NOT_FINE, "no memory");
	return copy;
}

static char *vtext(const char *before, const char *fmt, va_list args)
{
	char *tail, *whole;

	if (vasprintf(&tail, fmt, args) < 0 ||
	    asprintf(&whole, "%s%s", before, tail) < 0)
		errx(EXIT_NOT_FINE, "no memory");
	free(tail);
	return whole;
}

char *path_of(const char *fmt, ...)
{
	va_list args;
	char *path;

	va_start(args, fmt);
	path = vtext(options.sysroot, fmt, args);
	va_end(args);
	return path;
}

char *text_of(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = vtext("", fmt, args);
	va_end(args);
	return text;
}

char *read_stream(FILE *f)
{
	size_t size = 0, n = 0;
	char *text = NULL;

	do {
		size = size ? 2 * size : 4096;
		text = realloc(text, size + 1);
		if (!text)
			errx(EXIT_NOT_FINE, "no memory");
		n += fread(text + n, 1, size - n, f);
	} while (n == size && size < TEXT_MAX);
	text[n] = 0;
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	return text;
}

char *read_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text;
	int bad;

	if (!f)
		return NULL;
	text = read_stream(f);
	bad = ferror(f) ? errno : 0;
	fclose(f);
	if (!bad)
		return text;
	free(text);
	errno = bad;
	return NULL;
}

char *read_text_of(const char *fmt, ...)
{
	char *path, *text;
	va_list args;

	va_start(args, fmt);
	path = vtext(options.sysroot, fmt, args);
	va_end(args);
	text = read_text(path);
	free(path);
	return text;
}
