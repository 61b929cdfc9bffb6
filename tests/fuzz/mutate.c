// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ioctl fuzzer: cases to begin with, and cases made of others.
 */
#include <string.h>

#include "ioctl.h"

/* xorshift64*: the same seed, the same dice. */
__u32 dice(struct fuzz_dice *d, __u32 n)
{
	d->state ^= d->state >> 12;
	d->state ^= d->state << 25;
	d->state ^= d->state >> 27;
	return (__u32)((d->state * 0x2545f4914f6cdd1dULL) >> 33) % n;
}

static void add(struct fuzz_case *c, __u8 worker, __u8 op, __u8 a0, __u8 a1,
		__u8 a2, __u8 a3, __u8 a4, __u8 a5)
{
	if (c->steps < MAX_STEPS)
		c->step[c->steps++] = (struct fuzz_step){
			.op = op, .worker = worker,
			.a = { a0, a1, a2, a3, a4, a5 },
		};
}

/* Slot 0 is the group, slot 1 the member; the group's creator is worker 0. */
static void seed_join(struct fuzz_case *c, __u32 ranks)
{
	__u32 r;

	add(c, 0, OP_CREATE, 0, ranks - 1, 1, 0, 0, 0);
	for (r = 0; r < ranks; r++) {
		/* worker 0's third descriptor is the group, or the fourth (KCOV) */
		if (r) {
			add(c, r, OP_GRAB, 0, 0, 2, 0, 0, 0);
			add(c, r, OP_GRAB, 2, 0, 3, 0, 0, 0);
			add(c, r, OP_JOIN, 1, 2, r, 0, 0, 0);
		}
		add(c, r, OP_JOIN, 1, 0, r, 0, 0, 0);
		/* 8 rows of 32 bytes, f32 */
		add(c, r, OP_REGION_ADD, 1, r & 1, 0, 4, 0, 8);
		add(c, r, OP_REGION_ADD, 1, 0, 64, 4, 0, 8);
	}
}

static void seed_run(struct fuzz_case *c, __u32 ranks, __u32 what, __u32 tiles)
{
	__u32 r;

	for (r = 0; r < ranks; r++)
		add(c, r, OP_PLAN_ADD, 1, 8, what | (ranks - 1) << 3 | r << 5,
		    tiles << 4, 0, 0);
	for (r = 0; r < ranks; r++)
		add(c, r, OP_PLAN_WAIT, 1, 0, 7, 0, 0, 0);
	for (r = 0; r < ranks; r++)
		add(c, r, OP_ARM, 1, 0, 0, 0, 0, 0);
	if (tiles)
		for (r = 0; r < ranks; r++)
			add(c, r, OP_NOTIFY, 1, 0, 3, 0, tiles, 0);
	for (r = 0; r < ranks; r++)
		add(c, r, OP_WAIT, 1, 0, 0, 7, 0, 0);
}

void fuzz_seed(struct fuzz_case *c, __u32 which)
{
	memset(c, 0, sizeof(*c));
	switch (which) {
	case 0:
		seed_join(c, 1);
		seed_run(c, 1, 0, 0);
		break;
	case 1:
		seed_join(c, 2);
		seed_run(c, 2, 0, 0);
		break;
	case 2:
		seed_join(c, 2);
		seed_run(c, 2, 1, 1);
		break;
	case 3:
		seed_join(c, 3);
		seed_run(c, 3, 4, 1);
		break;
	case 4:
		seed_join(c, 2);
		seed_run(c, 2, 6, 2);
		break;
	case 5:		/* the mapping */
		seed_join(c, 1);
		add(c, 0, OP_PLAN_ADD, 1, 8, 0, 0x20, 0, 0);
		add(c, 0, OP_MMAP, 1, 0, 0, 0, 0, 0);
		add(c, 0, OP_MMAP, 1, 3, 0, 0, 0, 0);
		add(c, 0, OP_ARM, 1, 0, 0, 0, 0, 0);
		add(c, 0, OP_COUNT, 1, 0, 0, 2, 0, 0);
		add(c, 0, OP_NOTIFY, 1, 0, 0x40, 0, 0, 0);
		add(c, 0, OP_WAIT, 1, 0, 0, 7, 0, 0);
		add(c, 0, OP_READ, 1, 0, 0, 0, 0, 0);
		add(c, 0, OP_READ, 1, 1, 0, 0, 0, 0);
		break;
	case 6:		/* memory that goes while armed */
		seed_join(c, 2);
		seed_run(c, 2, 0, 1);
		add(c, 0, OP_ARM, 1, 0, 0, 0, 0, 0);
		add(c, 0, OP_MEMORY, 0, 4, 0, 0, 0, 0);
		add(c, 1, OP_WAIT, 1, 0, 0, 7, 0, 0);
		break;
	default:	/* dying while armed, a child holding on */
		seed_join(c, 2);
		seed_run(c, 2, 0, 1);
		add(c, 1, OP_ARM, 1, 0, 0, 0, 0, 0);
		add(c, 1, OP_FORK, 0, 0, 0, 0, 0, 0);
		add(c, 1, OP_EXIT, 0xef, 0, 0, 0, 0, 0);
		add(c, 0, OP_WAIT, 1, 0, 0, 7, 0, 0);
		break;
	}
}

/* Mostly near what is there: the same slots, small numbers. */
static __u8 new_byte(struct fuzz_dice *d, __u8 old)
{
	switch (dice(d, 6)) {
	case 0: return old ^ 1 << dice(d, 8);
	case 1: return old + 1;
	case 2: return old - 1;
	case 3: return dice(d, 4);
	case 4: return 0xe0 + dice(d, 32);
	default: return dice(d, 256);
	}
}

static void new_step(struct fuzz_step *s, struct fuzz_dice *d)
{
	__u32 i;

	s->op = dice(d, OP_COUNT_OF_OPS);
	s->worker = dice(d, WORKERS) | (dice(d, 4) ? 0 : FUZZ_ASYNC);
	for (i = 0; i < sizeof(s->a); i++)
		s->a[i] = dice(d, 3) ? dice(d, 4) : dice(d, 256);
}

static void insert_at(struct fuzz_case *c, __u32 at, struct fuzz_step s)
{
	if (c->steps == MAX_STEPS)
		c->steps--;
	if (at > c->steps)
		at = c->steps;
	memmove(&c->step[at + 1], &c->step[at],
		(c->steps - at) * sizeof(c->step[0]));
	c->step[at] = s;
	c->steps++;
}

static void remove_at(struct fuzz_case *c, __u32 at)
{
	c->steps--;
	memmove(&c->step[at], &c->step[at + 1],
		(c->steps - at) * sizeof(c->step[0]));
}

/* The other's end behind our beginning. */
static void splice(struct fuzz_case *c, const struct fuzz_case *other,
		   struct fuzz_dice *d)
{
	__u32 from = dice(d, other->steps), at = dice(d, c->steps + 1);
	__u32 n = other->steps - from;

	if (n > MAX_STEPS - at)
		n = MAX_STEPS - at;
	memcpy(&c->step[at], &other->step[from], n * sizeof(c->step[0]));
	c->steps = at + n;
}

static void mutate_once(struct fuzz_case *c, const struct fuzz_case *other,
			struct fuzz_dice *d)
{
	__u32 at = dice(d, c->steps);
	struct fuzz_step s;

	switch (dice(d, 10)) {
	case 0:
		new_step(&s, d);
		insert_at(c, at, s);
		break;
	case 1:
		insert_at(c, dice(d, c->steps + 1), c->step[at]);
		break;
	case 2:
		if (c->steps > 1)
			remove_at(c, at);
		break;
	case 3:
		s = c->step[at];
		remove_at(c, at);
		insert_at(c, dice(d, c->steps + 1), s);
		break;
	case 4:
		c->step[at].worker ^= FUZZ_ASYNC;
		break;
	case 5:
		c->step[at].worker = dice(d, WORKERS);
		break;
	case 6:
		splice(c, other, d);
		break;
	default:
		c->step[at].a[dice(d, 6)] = new_byte(d, c->step[at].a[dice(d, 6)]);
		break;
	}
}

void fuzz_mutate(struct fuzz_case *c, const struct fuzz_case *other,
		 struct fuzz_dice *d)
{
	__u32 n = 1 + dice(d, 4);

	while (n--)
		mutate_once(c, other, d);
	if (!c->steps)
		fuzz_seed(c, 0);
}
