// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where blocks lie: rectangles of a grid, and whether grids overlap in bytes.
 */
#include "grid.h"
#include "reduce.h"

struct t3_rect t3_grid_rect(const struct t3_grid *grid, u32 block)
{
	u32 row = block / grid->block_cols;
	u32 col = block % grid->block_cols;

	return (struct t3_rect) {
		.row = grid->row_cuts[row],
		.col = grid->col_cuts[col],
		.rows = grid->row_cuts[row + 1] - grid->row_cuts[row],
		.cols = grid->col_cuts[col + 1] - grid->col_cuts[col],
	};
}

/* The longest step of ascending cuts; 0 where they don't ascend from 0. */
static u32 t3_cuts_longest(const u32 *cuts, u32 n)
{
	u32 longest = 0;
	u32 i;

	if (cuts[0])
		return 0;
	for (i = 0; i < n; i++) {
		if (cuts[i + 1] <= cuts[i])
			return 0;
		if (cuts[i + 1] - cuts[i] > longest)
			longest = cuts[i + 1] - cuts[i];
	}
	return longest;
}

int t3_grid_check(const struct t3_grid *grid)
{
	u32 size = t3_dtype_size(grid->dtype);
	u64 rows, cols;

	if (!size)
		return -EINVAL;
	if (!grid->block_rows || !grid->block_cols)
		return -ERANGE;
	if (grid->block_rows > T3_MAX_BLOCKS || grid->block_cols > T3_MAX_BLOCKS)
		return -E2BIG;
	rows = t3_cuts_longest(grid->row_cuts, grid->block_rows);
	cols = t3_cuts_longest(grid->col_cuts, grid->block_cols);
	if (!rows || !cols)
		return -ERANGE;
	/* In this order no product wraps: each factor is under 2^32. */
	if (rows * cols > T3_MAX_BLOCK_BYTES / size)
		return -E2BIG;
	return 0;
}

/**
 * struct t3_band - one row of blocks of a grid, on one row of memory
 * @grid: the grid
 * @use: how the grid's blocks are used
 * @row: row of the matrix
 * @cuts: row of blocks that holds it
 *
 * On the stack of the one who compares.
 */
struct t3_band {
	const struct t3_grid *grid;
	const u8 *use;
	u32 row;
	u32 cuts;
};

static u32 t3_grid_rows(const struct t3_grid *grid)
{
	return grid->row_cuts[grid->block_rows];
}

static u64 t3_grid_row_bytes(const struct t3_grid *grid)
{
	return (u64)grid->col_cuts[grid->block_cols] *
	       t3_dtype_size(grid->dtype);
}

static u64 t3_band_base(const struct t3_band *band)
{
	return band->grid->base + band->row * band->grid->row_stride;
}

/* Move a band to another row, mostly the next one. */
static void t3_band_seek(struct t3_band *band, u32 row)
{
	band->row = row;
	while (band->grid->row_cuts[band->cuts] > row)
		band->cuts--;
	while (band->grid->row_cuts[band->cuts + 1] <= row)
		band->cuts++;
}

static u64 t3_band_end(const struct t3_band *band, u32 col)
{
	return t3_band_base(band) + (u64)band->grid->col_cuts[col + 1] *
	       t3_dtype_size(band->grid->dtype);
}

static u64 t3_band_begin(const struct t3_band *band, u32 col)
{
	return t3_band_base(band) + (u64)band->grid->col_cuts[col] *
	       t3_dtype_size(band->grid->dtype);
}

/* Do two rows of memory have bytes in common that two blocks both claim? */
static bool t3_bands_clash(const struct t3_band *a, const struct t3_band *b,
			   u32 *block)
{
	u32 i = 0;
	u32 j = 0;

	while (i < a->grid->block_cols && j < b->grid->block_cols) {
		u32 first = a->cuts * a->grid->block_cols + i;
		u8 of_a = a->use[first];
		u8 of_b = b->use[b->cuts * b->grid->block_cols + j];

		if (of_a && of_b && (of_a | of_b) & T3_USE_WRITTEN &&
		    t3_band_begin(a, i) < t3_band_end(b, j) &&
		    t3_band_begin(b, j) < t3_band_end(a, i)) {
			*block = first;
			return true;
		}
		if (t3_band_end(a, i) < t3_band_end(b, j))
			i++;
		else
			j++;
	}
	return false;
}

static u64 t3_grid_end(const struct t3_grid *grid)
{
	return grid->base + (t3_grid_rows(grid) - 1) * grid->row_stride +
	       t3_grid_row_bytes(grid);
}

/* Compare one row of a with the rows of b that it meets. */
static bool t3_row_clashes(const struct t3_band *a, struct t3_band *b,
			   u32 *block)
{
	u64 begin = t3_band_base(a);
	u64 end = begin + t3_grid_row_bytes(a->grid);
	const struct t3_grid *grid = b->grid;
	u32 row = 0;

	if (begin > grid->base)
		row = (begin - grid->base) / grid->row_stride;
	for (; row < t3_grid_rows(grid); row++) {
		if (grid->base + row * grid->row_stride >= end)
			return false;
		t3_band_seek(b, row);
		if (t3_bands_clash(a, b, block))
			return true;
	}
	return false;
}

bool t3_grids_clash(const struct t3_grid *a, const u8 *use_a,
		    const struct t3_grid *b, const u8 *use_b, u32 *block)
{
	struct t3_band of_a = { .grid = a, .use = use_a };
	struct t3_band of_b = { .grid = b, .use = use_b };
	u32 row;

	if (a->base >= t3_grid_end(b) || b->base >= t3_grid_end(a))
		return false;
	for (row = 0; row < t3_grid_rows(a); row++) {
		t3_band_seek(&of_a, row);
		if (t3_band_base(&of_a) >= t3_grid_end(b))
			return false;
		if (t3_row_clashes(&of_a, &of_b, block))
			return true;
		if (!(row % 1024))
			t3_relax();
	}
	return false;
}
