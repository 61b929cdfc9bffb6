/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two ranks of this process and an all-reduce of two blocks.
 */
#ifndef T3_KSELFTEST_PAIR_H
#define T3_KSELFTEST_PAIR_H

#include "t3_kselftest.h"

#define PAIR_ROW_BYTES	256
#define PAIR_BLOCKS	2
#define PAIR_BYTES	(PAIR_BLOCKS * PAIR_ROW_BYTES)

struct pair {
	struct world w;
	struct part part[2];
	__u32 *memory[2];
	__u32 epoch;
};

static inline int pair_part(struct pair *p, __u32 r, int member, __u32 region)
{
	struct part *part = &p->part[r];

	part_init(part, 0, 1);
	part_region(part, region, 2, PAIR_ROW_BYTES / 4, PAIR_BLOCKS, 1);
	part_collective(part, AR_DIRECT, r, 2, 1);
	return part_add(member, part);
}

static inline int pair_rank(struct pair *p, __u32 r, int member)
{
	__u32 region;
	int ret;

	p->memory[r] = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((void *)p->memory[r] == MAP_FAILED)
		return -ENOMEM;
	ret = region_add(member, p->memory[r], T3_DTYPE_I32, 2, PAIR_ROW_BYTES,
			 &region);
	return ret ?: pair_part(p, r, member, region);
}

static inline int pair_open(struct pair *p)
{
	int ret = world_open(&p->w, 2);

	p->epoch = 0;
	FOR_EACH(r, 2)
		ret = ret ?: pair_rank(p, r, p->w.member[r]);
	FOR_EACH(r, 2)
		ret = ret ?: plan_wait(p->w.member[r], 0, BOUND_NS, NULL);
	return ret;
}

static inline void pair_close(struct pair *p)
{
	world_close(&p->w);
	FOR_EACH(r, 2)
		munmap(p->memory[r], page_size());
}

static inline void pair_fill(struct pair *p)
{
	p->epoch++;
	FOR_EACH(r, 2)
		FOR_EACH(i, PAIR_BYTES / 4)
			p->memory[r][i] = p->epoch * 1000 * (r + 1) + i;
}

static inline bool pair_right(const struct pair *p)
{
	FOR_EACH(r, 2)
		FOR_EACH(i, PAIR_BYTES / 4)
			if (p->memory[r][i] != p->epoch * 3000 + 2 * i)
				return false;
	return true;
}

static inline int pair_arm(struct pair *p)
{
	int ret = 0;

	pair_fill(p);
	FOR_EACH(r, 2)
		ret = ret < 0 ? ret : plan_arm(p->w.member[r], 0);
	return ret == (int)p->epoch ? 0 : ret < 0 ? ret : -EBADMSG;
}

static inline int pair_produce(struct pair *p)
{
	int ret = 0;

	FOR_EACH(r, 2)
		FOR_EACH(b, PAIR_BLOCKS)
			ret = ret ?: notify_one(p->w.member[r], 0, b, 1);
	return ret;
}

#endif /* T3_KSELFTEST_PAIR_H */
