/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The planner's parts: cuts (where blocks lie) and tables (who reads what).
 */
#ifndef T3_LIB_PLANNER_IMPL_H
#define T3_LIB_PLANNER_IMPL_H

#include "planner.h"

/**
 * struct t3_cuts - how every region of a plan is cut into blocks
 * @ranks: number of shards
 * @transposed: the matrix is column-major: shards cut the rows of memory
 * @length: extent of the matrix along the axis that shards cut: its rows
 * @cross: extent along the other axis
 * @element: bytes of an element
 * @block_bytes: the largest block
 * @crosses: blocks along the other axis
 * @first: [ranks + 1] a shard's first band of blocks along its axis
 *
 * On the planner's stack; constant once it is made.
 */
struct t3_cuts {
	uint32_t ranks;
	bool transposed;
	uint64_t length;
	uint64_t cross;
	uint32_t element;
	uint32_t block_bytes;
	uint64_t crosses;
	uint64_t first[T3_MAX_RANKS + 1];
};

/**
 * t3_cuts_make - cut for blocks of a given size
 * @cuts: out
 * @request: a checked request
 * @block_bytes: the largest block, one element at least
 */
void t3_cuts_make(struct t3_cuts *cuts, const struct t3_plan_request *request,
		  uint32_t block_bytes);

/**
 * t3_cuts_choose - the size of block that suits a request
 * @request: a checked request
 *
 * Return: bytes, within T3_CUTS_LEAST and T3_MAX_BLOCK_BYTES.
 */
uint32_t t3_cuts_choose(const struct t3_plan_request *request);

/*
 * Room for a GEMM's 128 rows with runs of a page for the sums. Counting a block
 * costs about as much as summing 16 KiB.
 */
#define T3_CUTS_LEAST	(512U << 10)

/* Blocks of a region, all shards'. May be beyond any limit. */
uint64_t t3_cuts_blocks(const struct t3_cuts *cuts);

/* Blocks of a shard. */
uint64_t t3_cuts_shard_blocks(const struct t3_cuts *cuts, uint32_t shard);

/* The number, in its region, of a shard's @i-th block. */
uint32_t t3_cuts_block(const struct t3_cuts *cuts, uint32_t shard, uint32_t i);

/* Fill the cuts along the shards' axis: first[ranks] + 1 entries. */
void t3_cuts_fill(const struct t3_cuts *cuts, uint32_t *out);

/* Fill the cuts along the other axis: crosses + 1 entries. */
void t3_cuts_fill_cross(const struct t3_cuts *cuts, uint32_t *out);

/**
 * struct t3_shard_at - a shard, after some update
 * @rank: whose
 * @region: 0, or 1 for the second
 * @shard: which
 * @at: the update's number
 */
struct t3_shard_at {
	uint32_t rank;
	uint32_t region;
	uint32_t shard;
	uint32_t at;
};

/**
 * struct t3_step - one line of a table: a trigger for each block of a shard
 * @op: T3_OP_*
 * @dst: the destination; @dst.at is the update's own number
 * @sources: number of entries of @src
 * @src: the sources, in the order of the sum
 */
struct t3_step {
	uint32_t op;
	struct t3_shard_at dst;
	uint32_t sources;
	struct t3_shard_at src[T3_MAX_RANKS];
};

/**
 * t3_table_steps - a rank's lines of the table
 * @request: a checked request, its algorithm chosen
 * @rank: whose
 * @emit: called for each line
 * @arg: for @emit
 */
void t3_table_steps(const struct t3_plan_request *request, uint32_t rank,
		    void (*emit)(void *arg, const struct t3_step *step),
		    void *arg);

/* P: does @rank itself produce @shard of its @region? */
bool t3_table_produces(const struct t3_plan_request *request, uint32_t rank,
		       uint32_t region, uint32_t shard);

/* Does the collective begin with a ring reduce-scatter? */
bool t3_table_ring_first(const struct t3_plan_request *request);

#endif /* T3_LIB_PLANNER_IMPL_H */
