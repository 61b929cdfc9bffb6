/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A plan's parts: programs, and the tiles that produce their blocks.
 */
#ifndef T3_MODEL_PLAN_IMPL_H
#define T3_MODEL_PLAN_IMPL_H

#include "plan.h"

/**
 * struct model_maker - a plan in the making
 * @plan: out
 * @request: what the planner is asked
 * @tile_m: rows of a tile
 * @tile_n: columns
 */
struct model_maker {
	struct model_plan *plan;
	struct t3_plan_request request;
	uint32_t tile_m;
	uint32_t tile_n;
};

/**
 * struct model_rect - a part of the matrix, ends excluded
 */
struct model_rect {
	uint32_t row;
	uint32_t row_end;
	uint32_t col;
	uint32_t col_end;
};

/* Where a block lies in the matrix, whatever its layout. */
struct model_rect model_block_rect(const struct model_work *work,
				   const struct t3_grid *grid, uint32_t block);

/**
 * model_tiles_make - order a rank's tiles and cut them by its blocks
 * @m: the plan's
 * @rank: whose; its program is there. Sets the tiles of its blocks
 * @step: blocks in the order of production
 * @steps: how many
 *
 * Return: 0 or -ENOMEM.
 */
int model_tiles_make(const struct model_maker *m, struct model_rank *rank,
		     const uint32_t *step, uint32_t steps);

/* calloc() that gives memory for nothing, too. */
void *model_array(size_t n, size_t bytes);

#endif /* T3_MODEL_PLAN_IMPL_H */
