/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Folding: where all ranks of a ring do the same, turned by one shard, one
 * rank's program stands for all. Rank q's shard s becomes shard (s - q) mod N.
 */
#ifndef T3_MODEL_FOLD_H
#define T3_MODEL_FOLD_H

#include "plan.h"

/**
 * struct model_cut - how shards are cut into blocks, all of them alike
 * @bands: blocks of a shard, along its rows
 * @crosses: along its columns
 * @transposed: the layout is column major
 */
struct model_cut {
	uint32_t bands;
	uint32_t crosses;
	bool transposed;
};

/**
 * model_fold_block - number of a shard's block
 * @cut: how shards are cut
 * @ranks: how many shards
 * @shard: which
 * @i: which of its blocks, in the planner's order
 */
uint32_t model_fold_block(const struct model_cut *cut, uint32_t ranks,
			  uint32_t shard, uint32_t i);

/**
 * model_fold - a rank's program with all sources turned to its own blocks
 * @planned: the planner's part of @rank
 * @cut: how shards are cut
 * @rank: whose it is
 * @ranks: of how many
 * @trigger: out: [triggers]
 * @source: out: [sources]
 * @block: out: [blocks]
 */
void model_fold(const struct t3_planned *planned, const struct model_cut *cut,
		uint32_t rank, uint32_t ranks, struct t3_trigger *trigger,
		struct t3_source *source, struct t3_plan_block *block);

/**
 * model_fold_ring - the folded program of a ring by its rule
 * @op: T3_REDUCE_SCATTER or T3_ALL_GATHER
 * @ranks: 2 or more
 * @cut: how shards are cut
 * @trigger: out: [(@ranks - 1) * @cut->bands * @cut->crosses]
 * @source: out: [2 * (@ranks - 1) * @cut->bands * @cut->crosses]
 * @block: out: [@ranks * @cut->bands * @cut->crosses]
 * @sources: out: how many sources
 *
 * Triggers are in the planner's order: by shard, then as its blocks follow.
 */
void model_fold_ring(uint32_t op, uint32_t ranks, const struct model_cut *cut,
		     struct t3_trigger *trigger, struct t3_source *source,
		     struct t3_plan_block *block, uint32_t *sources);

#endif /* T3_MODEL_FOLD_H */
