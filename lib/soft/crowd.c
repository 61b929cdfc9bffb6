// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Have the ranks a processor each? Launchers bind every rank to a processor of
 * its own: what counts is all that the ranks may use together.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <sched.h>
#include <unistd.h>

#include "soft.h"

static_assert(sizeof(cpu_set_t) == sizeof(u64) * SOFT_CPU_WORDS,
	      "a processor set fits a slot");

u32 soft_cpus_publish(struct soft_slot *slot)
{
	union {
		cpu_set_t set;
		u64 word[SOFT_CPU_WORDS];
	} own;
	u32 i;

	/* It fails where there are more processors than a set holds. */
	if (sched_getaffinity(0, sizeof(own.set), &own.set))
		memset(&own, 0xff, sizeof(own));
	for (i = 0; i < SOFT_CPU_WORDS; i++)
		t3_store(&slot->cpus[i], own.word[i]);
	return CPU_COUNT(&own.set);
}

bool soft_is_crowded(struct soft_member *m)
{
	u32 cpus = 0;
	u64 all;
	u32 i, r;

	for (i = 0; i < SOFT_CPU_WORDS; i++) {
		all = 0;
		for (r = 0; r < m->m.ranks; r++)
			all |= t3_load(&soft_slot_of(m, r)->cpus[i]);
		cpus += __builtin_popcountll(all);
	}
	return m->m.ranks > cpus;
}
