/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A ring reduce-scatter and all-gather of a few ranks, and an engine in its
 * simplest form, for KUnit.
 */
#ifndef T3_KUNIT_CORE_WORLD_H
#define T3_KUNIT_CORE_WORLD_H

#include <kunit/test.h>

#include "machine.h"
#include "ready.h"

#define RANKS	4
#define ELEMS	32	/* of a block: one row of i32 */
#define TILES	3	/* of a block */

/**
 * struct rank - one rank's part and memory: a block a shard, one row each
 *
 * Written by the test before the machine starts; @data by producers and
 * triggers, each of which owns its block at that moment; @tiles and @count as
 * struct t3_machine says.
 */
struct rank {
	struct t3_program prog;
	struct t3_grid grid;
	u32 row_cuts[RANKS + 1];
	u32 col_cuts[2];
	struct t3_plan_block block[RANKS];
	struct t3_trigger trigger[2 * RANKS];
	struct t3_source source[4 * RANKS];
	s32 data[RANKS][ELEMS];
	u32 tiles[RANKS];
	u32 count[RANKS];
	u32 retired;
};

/**
 * struct world - a plan under way
 * @m: first, so that its ops find the rest
 *
 * @fired counts atomically; @broken and @inflight are a group's.
 */
struct world {
	struct t3_machine m;
	struct t3_graph graph;
	struct t3_ready *ready;
	u32 mask;
	u32 *fired;
	u64 broken;
	u32 inflight;
	struct t3_verdict verdict;
	struct rank rank[RANKS];
};

/* Programs only; no graph yet. */
struct world *world_make(struct kunit *test);
int world_check(struct kunit *test, struct world *w);
int world_build(struct kunit *test, struct world *w);
void world_start(struct kunit *test, struct world *w, u32 epoch);
bool world_run(struct world *w);
void world_produce(struct world *w, u32 rank, u32 block, u32 epoch);
s32 world_value(u32 rank, u32 block, u32 elem, u32 epoch);

#endif /* T3_KUNIT_CORE_WORLD_H */
