// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ABI's numbers, sizes and offsets are what they were. Needs no device;
 * builds as C and as C++.
 */
#include <stdio.h>

#include "frozen.h"

static unsigned int points, failed;

static void point(int good, const char *name)
{
	points++;
	if (!good)
		failed++;
	printf("%sok %u - %s\n", good ? "" : "not ", points, name);
}

static void check_number(const struct frozen_number *n)
{
	point(n->is == n->was, n->name);
	if (n->is != n->was)
		printf("# %s is %#llx, was %#llx\n", n->name, n->is, n->was);
}

/* @end: where the field before ended; returns where this one does. */
static unsigned int check_field(const struct frozen_field *f, unsigned int end)
{
	int good = f->offset == f->was_offset && f->bytes == f->was_bytes &&
		   f->offset == end;

	point(good, f->name);
	if (!good)
		printf("# %s is at %u with %u bytes, was at %u with %u; the one before ends at %u\n",
		       f->name, f->offset, f->bytes, f->was_offset,
		       f->was_bytes, end);
	return f->whole ? 0 : f->offset + f->bytes;
}

int main(void)
{
	unsigned int end = 0;
	size_t i;

	printf("TAP version 13\n1..%u\n",
	       (unsigned int)(FROZEN_NUMBERS + FROZEN_FIELDS));
	for (i = 0; i < FROZEN_NUMBERS; i++)
		check_number(&frozen_numbers[i]);
	for (i = 0; i < FROZEN_FIELDS; i++)
		end = check_field(&frozen_fields[i], end);
	return failed ? 1 : 0;
}
