// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tiles of a rank's GEMM, in the order of its plan's blocks.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan_impl.h"

/**
 * struct tiler - a rank's tiles in the making
 * @maker: the plan's
 * @rank: whose
 * @seen: [tile rows * tile columns] the tile is in the list
 */
struct tiler {
	const struct model_maker *maker;
	struct model_rank *rank;
	uint8_t *seen;
};

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* The part that @at lies in. */
static uint32_t part_of(const u32 *cuts, uint32_t parts, uint32_t at)
{
	uint32_t low = 0, high = parts;

	while (high - low > 1) {
		uint32_t mid = (low + high) / 2;

		if (cuts[mid] <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void emit_piece(struct tiler *t, const struct model_rect *tile,
		       uint32_t block)
{
	const struct model_work *work = &t->maker->plan->work;
	struct model_rect rect = model_block_rect(work, t->rank->program.grid,
						  block);
	uint32_t row = rect.row > tile->row ? rect.row : tile->row;
	uint32_t col = rect.col > tile->col ? rect.col : tile->col;

	t->rank->piece[t->rank->pieces++] = (struct model_piece) {
		.bytes = (least(rect.row_end, tile->row_end) - row) *
			 (least(rect.col_end, tile->col_end) - col) *
			 model_element(work->dtype),
		.block = block,
	};
}

static void emit_pieces(struct tiler *t, const struct model_rect *tile)
{
	const struct t3_grid *grid = t->rank->program.grid;
	bool transposed = t->maker->plan->work.layout == T3_COL_MAJOR;
	uint32_t top = transposed ? tile->col : tile->row;
	uint32_t bottom = transposed ? tile->col_end : tile->row_end;
	uint32_t left = transposed ? tile->row : tile->col;
	uint32_t right = transposed ? tile->row_end : tile->col_end;
	uint32_t i, j;

	for (i = part_of(grid->row_cuts, grid->block_rows, top);
	     i < grid->block_rows && grid->row_cuts[i] < bottom; i++)
		for (j = part_of(grid->col_cuts, grid->block_cols, left);
		     j < grid->block_cols && grid->col_cuts[j] < right; j++)
			emit_piece(t, tile, i * grid->block_cols + j);
}

static void emit_tile(struct tiler *t, uint32_t row, uint32_t col)
{
	const struct model_maker *m = t->maker;
	uint8_t *seen = &t->seen[row * m->plan->tile_cols + col];
	struct model_tile *tile;
	struct model_rect rect = {
		row * m->tile_m,
		least((row + 1ULL) * m->tile_m, m->request.rows),
		col * m->tile_n,
		least((col + 1ULL) * m->tile_n, m->request.cols),
	};

	if (*seen)
		return;
	*seen = 1;
	tile = &t->rank->tile[t->rank->tiles++];
	tile->row = row;
	tile->col = col;
	tile->first_piece = t->rank->pieces;
	emit_pieces(t, &rect);
	tile->pieces = t->rank->pieces - tile->first_piece;
}

/* The tiles that a block needs, along the axis that is contiguous. */
static void emit_block(struct tiler *t, uint32_t block)
{
	const struct model_maker *m = t->maker;
	struct model_rect rect = model_block_rect(&m->plan->work,
						  t->rank->program.grid, block);
	uint32_t row = rect.row / m->tile_m;
	uint32_t col = rect.col / m->tile_n;
	uint32_t row_end = (rect.row_end - 1) / m->tile_m + 1;
	uint32_t col_end = (rect.col_end - 1) / m->tile_n + 1;
	uint32_t r, c;

	if (m->plan->work.layout == T3_COL_MAJOR) {
		for (c = col; c < col_end; c++)
			for (r = row; r < row_end; r++)
				emit_tile(t, r, c);
		return;
	}
	for (r = row; r < row_end; r++)
		for (c = col; c < col_end; c++)
			emit_tile(t, r, c);
}

/* A block's production is the work-groups that store into it. */
static void count_tiles(struct model_rank *rank)
{
	struct t3_plan_block *block = (struct t3_plan_block *)rank->program.block;
	uint32_t i;

	for (i = 0; i < rank->program.blocks; i++)
		block[i].tiles = 0;
	for (i = 0; i < rank->pieces; i++)
		block[rank->piece[i].block].tiles++;
}

/* Each cut adds a piece to the tiles that it goes through. */
static size_t most_pieces(const struct model_maker *m,
			  const struct model_rank *rank)
{
	const struct t3_grid *grid = rank->program.grid;
	size_t rows = m->plan->tile_rows, cols = m->plan->tile_cols;

	if (m->plan->work.layout == T3_COL_MAJOR)
		return (rows + grid->block_cols) * (cols + grid->block_rows);
	return (rows + grid->block_rows) * (cols + grid->block_cols);
}

int model_tiles_make(const struct model_maker *m, struct model_rank *rank,
		     const uint32_t *step, uint32_t steps)
{
	size_t tiles = (size_t)m->plan->tile_rows * m->plan->tile_cols;
	struct tiler t = { m, rank, model_array(tiles, 1) };
	uint32_t i;

	rank->tile = model_array(tiles, sizeof(*rank->tile));
	rank->piece = model_array(most_pieces(m, rank), sizeof(*rank->piece));
	if (!t.seen || !rank->tile || !rank->piece) {
		free(t.seen);
		return t3_fail(ENOMEM, "model_plan_make: no memory for %zu tiles",
			       tiles);
	}
	for (i = 0; i < steps; i++)
		emit_block(&t, step[i]);
	free(t.seen);
	count_tiles(rank);
	return 0;
}
