/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plan that a simulation runs: the planner's programs, a work-group's tile
 * being the unit of production, in the core's dataflow machine.
 */
#ifndef T3_MODEL_PLAN_H
#define T3_MODEL_PLAN_H

#include <t3.h>

#include "machine.h"
#include "planner.h"

/**
 * struct model_work - one rank's GEMM and the collective on its output
 * @rows: of the matrix, the axis that shards cut
 * @cols: the other axis
 * @k: length of the dot products; 0: no GEMM
 * @dtype: T3_DTYPE_*
 * @op: T3_REDUCE_SCATTER, T3_ALL_GATHER, or T3_ALL_REDUCE where not folded
 * @algorithm: T3_ALG_RING or T3_ALG_DIRECT
 * @ranks: 1 .. MODEL_MAX_RANKS; beyond T3_MAX_RANKS only rings
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR
 * @block_bytes: about so large are blocks, in whole rows (row major) or columns
 *	of a shard (column major) of tiles, one at least; or
 *	MODEL_PLANNER_BLOCKS: as the planner chooses
 * @fold: simulate one rank, which stands for all of a ring
 */
struct model_work {
	uint64_t rows;
	uint64_t cols;
	uint64_t k;
	uint32_t dtype;
	uint32_t op;
	uint32_t algorithm;
	uint32_t ranks;
	uint32_t layout;
	uint32_t block_bytes;
	bool fold;
};

#define MODEL_MAX_RANKS	4096
#define MODEL_PLANNER_BLOCKS	UINT32_MAX

/**
 * struct model_tile - one work-group's output
 * @row: row of tiles in the matrix
 * @col: column of tiles
 * @first_piece: the first of its pieces
 * @pieces: how many
 */
struct model_tile {
	uint32_t row;
	uint32_t col;
	uint32_t first_piece;
	uint32_t pieces;
};

/**
 * struct model_piece - what of a tile lies in one block
 * @bytes: of it
 * @block: which of the rank's
 *
 * Blocks that end within tiles cut them.
 */
struct model_piece {
	uint32_t bytes;
	uint32_t block;
};

/**
 * struct model_block - what the simulation knows of a block
 * @bytes: of it
 * @shard: which shard it lies in
 */
struct model_block {
	uint32_t bytes;
	uint32_t shard;
};

/**
 * struct model_rank - a simulated rank's part
 * @program: as the planner made it, but for the tiles of its blocks
 * @tile: its GEMM's tiles in the order in which they start
 * @tiles: how many
 * @piece: what the tiles are made of, in the same order
 * @pieces: how many
 * @block: [program.blocks]
 */
struct model_rank {
	struct t3_program program;
	struct model_tile *tile;
	uint32_t tiles;
	struct model_piece *piece;
	uint32_t pieces;
	struct model_block *block;
};

/**
 * struct model_plan - what is simulated
 * @work: what it does
 * @simulated: ranks that are simulated: 1 where folded, else work.ranks
 * @rank: [simulated]
 * @graph: the core's graph of them
 * @tile_rows: rows of tiles in the matrix
 * @tile_cols: columns of tiles
 * @graph_memory: what @graph points into
 *
 * One thread's; constant after it is made.
 */
struct model_plan {
	struct model_work work;
	uint32_t simulated;
	struct model_rank *rank;
	struct t3_graph graph;
	uint32_t tile_rows;
	uint32_t tile_cols;
	void *graph_memory;
};

/**
 * model_plan_make - plan, fold where asked, and derive the graph
 * @plan: out
 * @work: what it does
 * @tile_m: rows of a tile
 * @tile_n: columns
 *
 * A ring of more ranks than the core takes is one rank's folded program by the
 * rule that folds the planner's own for fewer.
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_plan_make(struct model_plan *plan, const struct model_work *work,
		    uint32_t tile_m, uint32_t tile_n);

/* Free what model_plan_make() allocated; @plan is all zero afterwards. */
void model_plan_free(struct model_plan *plan);

/* Bytes of an element. */
uint32_t model_element(uint32_t dtype);

#endif /* T3_MODEL_PLAN_H */
