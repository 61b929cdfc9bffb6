/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The planner: collectives as programs for the dataflow machine.
 */
#ifndef T3_LIB_PLANNER_H
#define T3_LIB_PLANNER_H

#include "engine.h"

/**
 * struct t3_plan_request - what a plan does, free of any engine
 * @op: enum t3_collective_op
 * @algorithm: enum t3_algorithm
 * @ranks: 1 .. T3_MAX_RANKS
 * @rows: of the matrix
 * @cols: of the matrix
 * @dtype: T3_DTYPE_*
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR
 * @block_bytes: largest block; 0: the planner chooses
 * @tiles: tiles of a block, >= 1
 *
 * The same at all ranks: a digest is made of it.
 */
struct t3_plan_request {
	uint32_t op;
	uint32_t algorithm;
	uint32_t ranks;
	uint64_t rows;
	uint64_t cols;
	uint32_t dtype;
	uint32_t layout;
	uint32_t block_bytes;
	uint32_t tiles;
};

/**
 * t3_planner_make - one rank's part of a plan
 * @request: what it does
 * @rank: whose part
 * @planned: out; the grids' base, row_stride and read_only are the caller's to
 *	fill in
 *
 * Deterministic: the parts that all ranks make from the same request fit.
 *
 * Return: 0 or a negative errno of t3_plan_add(), with a sentence.
 */
int t3_planner_make(const struct t3_plan_request *request, uint32_t rank,
		    struct t3_planned *planned);

/**
 * t3_planner_free - free what t3_planner_make() allocated
 * @planned: made, or all zero; all zero afterwards
 */
void t3_planner_free(struct t3_planned *planned);

/**
 * t3_planner_shard - rows of the matrix that a shard has
 * @rows: of the matrix
 * @ranks: number of shards
 * @shard: 0 .. @ranks
 *
 * Return: its first row, @shard * @rows / @ranks.
 */
static inline uint64_t t3_planner_shard(uint64_t rows, uint32_t ranks,
					uint32_t shard)
{
	return shard * rows / ranks;
}

#endif /* T3_LIB_PLANNER_H */
