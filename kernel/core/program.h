/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program: one rank's part of a plan, as the core sees it.
 */
#ifndef T3_CORE_PROGRAM_H
#define T3_CORE_PROGRAM_H

#include "env.h"
#include "grid.h"

/**
 * struct t3_program - one rank's part of a plan
 * @digest: a hash of the whole plan, the same at all ranks
 * @grids: number of entries of @grid
 * @blocks: number of entries of @block
 * @triggers: number of entries of @trigger
 * @sources: number of entries of @source
 * @grid: the plan's regions
 * @block: the blocks of all grids in order, row-major in each
 * @trigger: the triggers
 * @source: the triggers' sources
 *
 * The memory is its maker's, private to the kernel or to one process (nothing
 * that another process can write), constant once it is checked.
 */
struct t3_program {
	u64 digest[2];
	u32 grids;
	u32 blocks;
	u32 triggers;
	u32 sources;
	const struct t3_grid *grid;
	const struct t3_plan_block *block;
	const struct t3_trigger *trigger;
	const struct t3_source *source;
};

/**
 * t3_program_scratch - bytes that t3_program_check() needs to work in
 * @prog: only its numbers are read
 */
u64 t3_program_scratch(const struct t3_program *prog);

/**
 * t3_program_check - check what one rank's part alone can show
 * @prog: the part
 * @rank: whose it is
 * @ranks: how many ranks the group has, 1 .. T3_MAX_RANKS
 * @scratch: t3_program_scratch() bytes, aligned to 8
 * @verdict: out: what is wrong; @verdict->error is the return value negated
 *
 * Checks the grids, the blocks, the triggers' destinations and numbers, the
 * form of the sources, and that written blocks don't overlap in bytes. Takes
 * time linear in the program's size plus, where two written grids' byte
 * ranges meet, the rows of the grids.
 *
 * Context: may be rescheduled (t3_relax()); takes no lock.
 * Return: 0 or the negative errno of struct t3_verdict.
 */
int t3_program_check(const struct t3_program *prog, u32 rank, u32 ranks,
		     void *scratch, struct t3_verdict *verdict);

/**
 * t3_refuse - fill a verdict
 * @verdict: out
 * @error: its errno
 * @rank: see struct t3_verdict
 * @trigger: likewise
 * @detail: likewise
 *
 * Return: -@error.
 */
static inline int t3_refuse(struct t3_verdict *verdict, u32 error, u32 rank,
			    u32 trigger, u32 detail)
{
	verdict->error = error;
	verdict->rank = rank;
	verdict->trigger = trigger;
	verdict->detail = detail;
	return -(int)error;
}

#endif /* T3_CORE_PROGRAM_H */
