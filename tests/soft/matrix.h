/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Matrices with known contents, and what each collective makes of them.
 */
#ifndef T3_TEST_MATRIX_H
#define T3_TEST_MATRIX_H

#include "ranks.h"

/**
 * struct shape - a case
 * @op: enum t3_collective_op
 * @algorithm: enum t3_algorithm
 * @dtype: T3_DTYPE_*
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR
 * @rows: of the matrix
 * @cols: of the matrix
 * @gap: elements between rows in memory
 * @block_bytes: as in struct t3_collective
 * @tiles: likewise
 * @epochs: how many to run
 * @ordinary: memory is not from t3_alloc()
 * @wild: values of many magnitudes; else small integers, sums of which are
 *	exact
 */
struct shape {
	uint32_t op;
	uint32_t algorithm;
	uint32_t dtype;
	uint32_t layout;
	uint32_t rows;
	uint32_t cols;
	uint32_t gap;
	uint32_t block_bytes;
	uint32_t tiles;
	uint32_t epochs;
	bool ordinary;
	bool wild;
};

/**
 * struct buffer - a matrix in memory with poison around and within
 * @memory: all of it
 * @bytes: of it
 * @matrix: the matrix within
 */
struct buffer {
	void *memory;
	size_t bytes;
	struct t3_matrix matrix;
};

int buffer_make(struct t3_member *member, const struct shape *shape,
		struct buffer *buffer);
void buffer_free(struct t3_member *member, const struct shape *shape,
		 struct buffer *buffer);

/* Fill all with poison: NaNs that no sum makes. */
void buffer_poison(struct buffer *buffer);

/* Is the poison between and around the rows still there? */
bool buffer_intact(const struct buffer *buffer);

/* A rank's value of an element in an epoch, as the dtype can hold it. */
double value_of(const struct shape *shape, uint32_t rank, uint32_t epoch,
		uint64_t row, uint64_t col);

double buffer_get(const struct buffer *buffer, uint64_t row, uint64_t col);
void buffer_put(struct buffer *buffer, uint64_t row, uint64_t col, double v);

/* Write a rectangle's values of this rank and epoch. */
void buffer_produce(struct buffer *buffer, const struct shape *shape,
		    uint32_t rank, uint32_t epoch,
		    const struct t3_rectangle *rect);

/**
 * struct work - a rank's part of a case
 */
struct work {
	struct t3_member *member;
	const struct shape *shape;
	struct buffer buffer[2];
	struct t3_region *region[2];
	struct t3_plan *plan;
};

/* Buffers, regions and plan; a RANK_TRY-like return. */
int work_begin(struct work *work, struct t3_member *member,
	       const struct shape *shape);
int work_end(struct work *work);

/* One epoch from arm to wait, and a look at the results. */
int work_epoch(struct work *work);
int work_produce(struct work *work);
int work_check(struct work *work, uint32_t epoch);

/* All of it: a rank_fn; @arg is a struct shape. */
int work_all(struct t3_member *member, void *arg);

/* "reduce-scatter direct f32" and so on. */
const char *shape_name(const struct shape *shape, char *line, size_t bytes);

#endif /* T3_TEST_MATRIX_H */
