// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan runner: buffers of all ranks in one process, the plan's nodes one
 * after another.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fp16.h"
#include "plan_checker.h"
#include "plan_runner.h"
#include "reduce.h"

/* What no element ever is: not produced yet, or padding. */
#define POISON	99

/**
 * struct runner - a run under way
 * @request: what the plan does
 * @part: the programs
 * @element: bytes
 * @rows: of memory
 * @cols: elements of a row of memory
 * @stride: bytes from row to row
 * @memory: [ranks][2] buffers
 */
struct runner {
	const struct t3_plan_request *request;
	const struct t3_planned *part;
	uint32_t element;
	uint64_t rows;
	uint64_t cols;
	uint64_t stride;
	uint8_t *memory[T3_MAX_RANKS][2];
};

/* ---- elements ---- */

static void put(uint32_t dtype, void *at, double value)
{
	float f = (float)value;
	int32_t i = (int32_t)value;
	uint32_t bits;
	uint16_t half;

	memcpy(&bits, &f, sizeof(bits));
	half = dtype == T3_DTYPE_F16 ? t3_f16_narrow(bits) :
				       t3_bf16_narrow(bits);
	switch (dtype) {
	case T3_DTYPE_F64:
		memcpy(at, &value, sizeof(value));
		break;
	case T3_DTYPE_F32:
		memcpy(at, &f, sizeof(f));
		break;
	case T3_DTYPE_I32:
		memcpy(at, &i, sizeof(i));
		break;
	default:
		memcpy(at, &half, sizeof(half));
	}
}

static double get(uint32_t dtype, const void *at)
{
	double value;
	float f;
	int32_t i;
	uint32_t bits;
	uint16_t half;

	switch (dtype) {
	case T3_DTYPE_F64:
		memcpy(&value, at, sizeof(value));
		return value;
	case T3_DTYPE_I32:
		memcpy(&i, at, sizeof(i));
		return i;
	case T3_DTYPE_F32:
		memcpy(&f, at, sizeof(f));
		return f;
	default:
		memcpy(&half, at, sizeof(half));
		bits = dtype == T3_DTYPE_F16 ? t3_f16_widen(half) :
					       (uint32_t)half << 16;
		memcpy(&f, &bits, sizeof(f));
		return f;
	}
}

/* What rank @rank produces at a place: 0 .. 3, and each place its own. */
static double made(uint32_t rank, uint64_t row, uint64_t col)
{
	uint64_t x = rank * 0x9e3779b97f4a7c15ULL + row * 0xc2b2ae3d27d4eb4fULL +
		     col * 0x165667b19e3779f9ULL;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ULL;
	return (double)(x >> 62);
}

/* ---- places ---- */

static uint8_t *at(const struct runner *r, uint32_t rank, uint32_t region,
		   uint64_t row, uint64_t col)
{
	return r->memory[rank][region] + row * r->stride + col * r->element;
}

static void allocate(struct runner *r, uint32_t padding)
{
	uint32_t rank, g;
	uint64_t i, n;

	r->element = t3_dtype_size(r->request->dtype);
	r->rows = r->request->layout ? r->request->cols : r->request->rows;
	r->cols = r->request->layout ? r->request->rows : r->request->cols;
	r->stride = (r->cols + padding) * r->element;
	n = r->rows * r->stride / r->element;
	for (rank = 0; rank < r->request->ranks; rank++) {
		for (g = 0; g < r->part[rank].program.grids; g++) {
			r->memory[rank][g] = malloc(n * r->element);
			if (!r->memory[rank][g])
				abort();
			for (i = 0; i < n; i++)
				put(r->request->dtype,
				    r->memory[rank][g] + i * r->element, POISON);
		}
	}
}

static void release(struct runner *r)
{
	uint32_t rank;

	for (rank = 0; rank < r->request->ranks; rank++) {
		free(r->memory[rank][0]);
		free(r->memory[rank][1]);
	}
}

static struct t3_rect rect_of(const struct runner *r, uint32_t region,
			      uint32_t block)
{
	return t3_grid_rect(&r->part[0].program.grid[region], block);
}

/* ---- running ---- */

/* Productions are in the first region, everywhere. */
static void produce(struct runner *r, uint32_t rank, uint32_t block)
{
	struct t3_rect rect = rect_of(r, 0, block);
	uint32_t row, col;

	for (row = rect.row; row < rect.row + rect.rows; row++) {
		for (col = rect.col; col < rect.col + rect.cols; col++) {
			uint64_t i = r->request->layout ? col : row;
			uint64_t j = r->request->layout ? row : col;

			put(r->request->dtype, at(r, rank, 0, row, col),
			    made(rank, i, j));
		}
	}
}

static void run(struct runner *r, uint32_t rank, const struct t3_trigger *t)
{
	const struct t3_source *s =
		&r->part[rank].program.source[t->first_source];
	const struct t3_reduce *reduce = t3_reduce_nth(0);
	struct t3_rect to = rect_of(r, t->region, t->block);
	const void *from[T3_MAX_RANKS];
	uint32_t row, i;

	for (row = 0; row < to.rows; row++) {
		uint8_t *dst = at(r, rank, t->region, to.row + row, to.col);

		for (i = 0; i < t->sources; i++) {
			struct t3_rect f = rect_of(r, s[i].region, s[i].block);

			from[i] = at(r, s[i].rank, s[i].region, f.row + row,
				     f.col);
		}
		if (t->op == T3_OP_COPY)
			memcpy(dst, from[0], to.cols * r->element);
		else
			reduce->sum[r->request->dtype - 1](dst, from, t->sources,
							   to.cols);
	}
}

static void run_node(struct runner *r, uint32_t node)
{
	uint32_t blocks = r->part[0].program.blocks;
	uint32_t all = r->request->ranks * blocks;
	uint32_t rank = 0;

	if (node < all) {
		produce(r, node / blocks, node % blocks);
		return;
	}
	node -= all;
	while (node >= r->part[rank].program.triggers)
		node -= r->part[rank++].program.triggers;
	run(r, rank, &r->part[rank].program.trigger[node]);
}

/* ---- judging ---- */

static uint32_t owner_of(const struct runner *r, uint64_t row)
{
	uint32_t s = 0;

	while (t3_planner_shard(r->request->rows, r->request->ranks, s + 1) <=
	       row)
		s++;
	return s;
}

static double sum_of(const struct runner *r, uint64_t row, uint64_t col)
{
	double sum = 0;
	uint32_t q;

	for (q = 0; q < r->request->ranks; q++)
		sum += made(q, row, col);
	return sum;
}

/* What rank @rank must find at a place in its result; NAN: no matter. */
static double wanted(const struct runner *r, uint32_t rank, uint64_t row,
		     uint64_t col)
{
	uint32_t ranks = r->request->ranks;
	uint32_t owner = owner_of(r, row);
	uint64_t mine = t3_planner_shard(r->request->rows, ranks, rank);

	switch (r->request->op) {
	case T3_REDUCE_SCATTER:
		return owner == rank ? sum_of(r, row, col) : __builtin_nan("");
	case T3_ALL_REDUCE:
		return sum_of(r, row, col);
	case T3_ALL_GATHER:
		return made(owner, row, col);
	default:
		return made(owner, mine + row -
			    t3_planner_shard(r->request->rows, ranks, owner),
			    col);
	}
}

static int judge(const struct runner *r, uint32_t rank, char *why, size_t bytes)
{
	uint32_t region = r->request->op == T3_ALL_TO_ALL;
	uint64_t row, col;

	for (row = 0; row < r->rows; row++) {
		for (col = 0; col < r->stride / r->element; col++) {
			uint64_t i = r->request->layout ? col : row;
			uint64_t j = r->request->layout ? row : col;
			double found = get(r->request->dtype,
					   at(r, rank, region, row, col));
			double want = col < r->cols ? wanted(r, rank, i, j) :
						      POISON;

			if (want != want || want == found)
				continue;
			snprintf(why, bytes,
				 "rank %u: row %llu, column %llu is %g, not %g",
				 rank, (unsigned long long)i,
				 (unsigned long long)j, found, want);
			return -1;
		}
	}
	return 0;
}

int plan_run(const struct t3_plan_request *request,
	     const struct t3_planned *part, uint32_t padding, char *why,
	     size_t bytes)
{
	struct runner r = { .request = request, .part = part };
	uint32_t *order;
	uint32_t nodes, i;
	int ret = 0;

	if (plan_order(request->ranks, part, &order, &nodes)) {
		snprintf(why, bytes, "there is no order");
		return -1;
	}
	allocate(&r, padding);
	for (i = 0; i < nodes; i++)
		run_node(&r, order[i]);
	for (i = 0; i < request->ranks && !ret; i++)
		ret = judge(&r, i, why, bytes);
	release(&r);
	free(order);
	return ret;
}
