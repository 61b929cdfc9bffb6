/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A walk over the bytes of a block at all operands of a trigger at once.
 */
#ifndef T3_CORE_WALK_H
#define T3_CORE_WALK_H

#include "env.h"

/**
 * struct t3_operand - one block's place in its region's memory
 * @offset: bytes from the region's base to the block's first element
 * @stride: bytes from row to row
 */
struct t3_operand {
	u64 offset;
	u64 stride;
};

/**
 * struct t3_walk - where a walk stands; private to its executor
 * @rows: rows of the walk; one where the rows of all operands join
 * @row_bytes: bytes of a row
 * @row: the current row
 * @at: bytes of it done
 */
struct t3_walk {
	u32 rows;
	u32 row;
	u64 row_bytes;
	u64 at;
};

/* Begin a walk over @rows rows of @row_bytes at @n operands. */
static inline void t3_walk_start(struct t3_walk *w, u32 rows, u64 row_bytes,
				 const struct t3_operand *operand, u32 n)
{
	bool joined = true;
	u32 i;

	for (i = 0; i < n; i++)
		joined = joined && operand[i].stride == row_bytes;
	w->rows = joined ? 1 : rows;
	w->row_bytes = joined ? rows * row_bytes : row_bytes;
	w->row = 0;
	w->at = 0;
}

/* Bytes that follow without a break at every operand; 0 at the end. */
static inline u64 t3_walk_run(const struct t3_walk *w)
{
	return w->row < w->rows ? w->row_bytes - w->at : 0;
}

/* Where an operand's bytes are now, from its region's base. */
static inline u64 t3_walk_offset(const struct t3_walk *w,
				 const struct t3_operand *operand)
{
	return operand->offset + w->row * operand->stride + w->at;
}

/* Go on by @bytes, at most t3_walk_run(). */
static inline void t3_walk_step(struct t3_walk *w, u64 bytes)
{
	w->at += bytes;
	if (w->at == w->row_bytes) {
		w->at = 0;
		w->row++;
	}
}

#endif /* T3_CORE_WALK_H */
