// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where blocks lie: cuts at every shard's border, and even ones between.
 */
#include "planner_impl.h"
#include "reduce.h"

/* A shard is cut into so many blocks, where the size of a block allows. */
#define BLOCKS_A_SHARD	8

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint64_t shard_length(const struct t3_cuts *cuts, uint32_t shard)
{
	return t3_planner_shard(cuts->length, cuts->ranks, shard + 1) -
	       t3_planner_shard(cuts->length, cuts->ranks, shard);
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

/*
 * A GEMM of few rows reads all of its second input for each step: where the
 * shard has the rows, a step has so many, and the block is cut across.
 */
#define TALL_ROWS	128
/*
 * But no narrower than this: each row is a run of its own for the sums, and each
 * run begins with misses that no prefetcher foresees.
 */
#define RUN_BYTES	4096

/* Rows of a block of a row-major matrix, of at most @most elements. */
static uint64_t row_major_band(const struct t3_cuts *cuts, uint64_t most,
			       uint64_t longest)
{
	uint64_t run = RUN_BYTES / cuts->element;
	uint64_t tall = longest < TALL_ROWS ? longest : TALL_ROWS;
	uint64_t band = at_least_one(most / cuts->cross);

	run = run < cuts->cross ? run : cuts->cross;
	if (tall > most / run)
		tall = most / run;
	return band > tall ? band : at_least_one(tall);
}

/*
 * A block is as wide as it can be along the axis that lies contiguous in
 * memory, once it has the rows that a GEMM wants.
 */
void t3_cuts_make(struct t3_cuts *cuts, const struct t3_plan_request *request,
		  uint32_t block_bytes)
{
	uint32_t element = t3_dtype_size(request->dtype);
	uint64_t most = block_bytes / element;
	uint64_t longest = ceil_div(request->rows, request->ranks);
	uint64_t band, width;
	uint32_t s;

	*cuts = (struct t3_cuts) {
		.ranks = request->ranks,
		.transposed = request->layout == T3_COL_MAJOR,
		.length = request->rows,
		.cross = request->cols,
		.element = element,
		.block_bytes = block_bytes,
	};
	if (cuts->transposed) {
		band = longest < most ? longest : most;
		width = at_least_one(most / band);
	} else {
		band = row_major_band(cuts, most, longest);
		width = at_least_one(most / band);
	}
	cuts->crosses = ceil_div(cuts->cross, width);
	for (s = 0; s < cuts->ranks; s++)
		cuts->first[s + 1] = cuts->first[s] +
				     ceil_div(shard_length(cuts, s), band);
}

uint32_t t3_cuts_choose(const struct t3_plan_request *request)
{
	uint64_t longest = ceil_div(request->rows, request->ranks);
	/* Under 2^31 * 2^31 * 8 / BLOCKS_A_SHARD: it does not wrap. */
	uint64_t bytes = ceil_div(longest * request->cols, BLOCKS_A_SHARD) *
			 t3_dtype_size(request->dtype);

	if (bytes < T3_CUTS_LEAST)
		return T3_CUTS_LEAST;
	return bytes < T3_MAX_BLOCK_BYTES ? (uint32_t)bytes :
					    T3_MAX_BLOCK_BYTES;
}

uint64_t t3_cuts_blocks(const struct t3_cuts *cuts)
{
	/* Under 2^31 each: no wrap. */
	return cuts->first[cuts->ranks] * cuts->crosses;
}

uint64_t t3_cuts_shard_blocks(const struct t3_cuts *cuts, uint32_t shard)
{
	return (cuts->first[shard + 1] - cuts->first[shard]) * cuts->crosses;
}

uint32_t t3_cuts_block(const struct t3_cuts *cuts, uint32_t shard, uint32_t i)
{
	uint32_t first = (uint32_t)cuts->first[shard];
	uint32_t bands = (uint32_t)cuts->first[shard + 1] - first;
	uint32_t crosses = (uint32_t)cuts->crosses;

	if (cuts->transposed)
		return i / bands * (uint32_t)cuts->first[cuts->ranks] + first +
		       i % bands;
	return (first + i / crosses) * crosses + i % crosses;
}

void t3_cuts_fill(const struct t3_cuts *cuts, uint32_t *out)
{
	uint32_t s;

	for (s = 0; s < cuts->ranks; s++) {
		uint64_t begin = t3_planner_shard(cuts->length, cuts->ranks, s);
		uint64_t bands = cuts->first[s + 1] - cuts->first[s];
		uint64_t i;

		for (i = 0; i < bands; i++)
			*out++ = (uint32_t)(begin +
					    i * shard_length(cuts, s) / bands);
	}
	*out = (uint32_t)cuts->length;
}

void t3_cuts_fill_cross(const struct t3_cuts *cuts, uint32_t *out)
{
	uint64_t i;

	for (i = 0; i <= cuts->crosses; i++)
		out[i] = (uint32_t)(i * cuts->cross / cuts->crosses);
}
