/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Grids: how blocks partition a region.
 */
#ifndef T3_CORE_GRID_H
#define T3_CORE_GRID_H

#include "env.h"

/**
 * struct t3_grid - how blocks partition a region
 * @dtype: T3_DTYPE_*
 * @read_only: the region is only ever a source
 * @block_rows: rows of the grid, >= 1
 * @block_cols: columns of the grid, >= 1
 * @first_block: number of the grid's first block among the rank's blocks
 * @row_cuts: block_rows + 1 ascending row numbers, from 0
 * @col_cuts: block_cols + 1 ascending element numbers, from 0
 * @base: address of the first element, for the check of overlaps
 * @row_stride: bytes from row to row, at least those of a row; the region's
 *	end does not wrap: whoever registered it has checked that
 *
 * Written by whoever makes the program, constant once it is checked.
 */
struct t3_grid {
	u32 dtype;
	u32 read_only;
	u32 block_rows;
	u32 block_cols;
	u32 first_block;
	const u32 *row_cuts;
	const u32 *col_cuts;
	u64 base;
	u64 row_stride;
};

/**
 * struct t3_rect - a block's place in its region
 * @row: first row
 * @col: first element of a row
 * @rows: number of rows
 * @cols: number of elements of a row
 */
struct t3_rect {
	u32 row;
	u32 col;
	u32 rows;
	u32 cols;
};

/* How a block is used in an epoch. */
#define T3_USE_SOURCE	1	/* it has a value, and nobody writes it */
#define T3_USE_WRITTEN	2	/* a trigger or a producer writes it */

/**
 * t3_grid_rect - the place of a block
 * @grid: a checked grid
 * @block: 0 .. block_rows * block_cols - 1
 *
 * Context: any.
 */
struct t3_rect t3_grid_rect(const struct t3_grid *grid, u32 block);

/**
 * t3_grid_check - check a grid by itself
 * @grid: dtype, numbers and cuts; the cuts have as many entries as they say
 *
 * Return: 0; -EINVAL dtype; -ERANGE cuts that don't ascend from 0, or no
 * blocks; -E2BIG too many blocks, or one larger than T3_MAX_BLOCK_BYTES.
 */
int t3_grid_check(const struct t3_grid *grid);

/**
 * t3_grids_clash - do two grids share bytes that one of them writes?
 * @a: a checked grid with its base and stride
 * @use_a: [its blocks] 0 or T3_USE_*
 * @b: another
 * @use_b: likewise
 * @block: out, where they do: a block of @a at fault
 *
 * Takes time linear in the rows of both, times their columns of blocks, and
 * none where their byte ranges don't meet.
 *
 * Context: may be rescheduled.
 */
bool t3_grids_clash(const struct t3_grid *a, const u8 *use_a,
		    const struct t3_grid *b, const u8 *use_b, u32 *block);

#endif /* T3_CORE_GRID_H */
