// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --check: results against a reference in wider arithmetic.
 *
 * x_r is what rank r brings, a value of the dtype. For a sum over N ranks:
 *  - direct algorithms: the result has the very bits of x_0 + x_1 + ... in that
 *    order in f32 (f64 for f64), rounded once to the dtype, to the nearest,
 *    ties to even;
 *  - rings: |result - sum| <= (N - 1) u sum|x_r|, u = 2^-p + 2^-24 for p
 *    significand bits of f16 (11) and bf16 (8), 2^-24 for f32, 2^-53 for f64:
 *    each of the N - 1 steps rounds once to f32 and once to the dtype; terms
 *    of second order are allowed for by 1%;
 *  - i32: the very bits of the sum modulo 2^32.
 * Where nothing is summed, the very bits.
 *
 * max_rel_err is the largest |result - sum| / sum|x_r|, the sum in long double.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

#define BUDGET		(1u << 27)	/* products and hashes of a rank in a run */
#define LEAST		64		/* elements of a check, whatever it costs */

#define POISON_I32	0xa5		/* any bits are a value of i32 */
#define POISON		0xff		/* a NaN that arithmetic never makes */

static int poison_byte(const struct bench_options *o)
{
	return o->dtype == T3_DTYPE_I32 ? POISON_I32 : POISON;
}

/* Everything that the epoch is to write. */
void bench_poison(struct bench_job *job)
{
	memset(job->c, poison_byte(job->options), job->bytes);
	if (job->d)
		memset(job->d, poison_byte(job->options), job->bytes);
}

static bool is_ring(const struct bench_job *job)
{
	return job->info.algorithm == T3_ALG_RING ||
	       job->info.algorithm == T3_ALG_RING_DIRECT;
}

static bool is_sum(const struct bench_options *o)
{
	return o->op == T3_REDUCE_SCATTER || o->op == T3_ALL_REDUCE;
}

/* u of the comment above */
static long double unit(uint32_t dtype)
{
	static const long double to_f32 = 1.0L / (1 << 24);

	switch (dtype) {
	case T3_DTYPE_F64:
		return 1.0L / (1ull << 53);
	case T3_DTYPE_F32:
		return to_f32;
	case T3_DTYPE_F16:
		return 1.0L / (1 << 11) + to_f32;
	default:
		return 1.0L / (1 << 8) + to_f32;
	}
}

static uint64_t shard_start(const struct bench_options *o, uint32_t s)
{
	return s * o->m / o->ranks;
}

static uint32_t owner_of(const struct bench_options *o, uint64_t row)
{
	uint32_t s = 0;

	while (row >= shard_start(o, s + 1))
		s++;
	return s;
}

/* Where nothing is summed: who brings the element, and from which row? */
static double moved(const struct bench_job *job, uint64_t epoch, uint64_t row,
		    uint64_t col)
{
	const struct bench_options *o = job->options;
	uint32_t s = owner_of(o, row);

	if (o->op == T3_ALL_TO_ALL)
		row += shard_start(o, job->rank) - shard_start(o, s);
	return bench_contribution(o, s, epoch, row, col);
}

/**
 * struct sums - the reference of one element
 * @exact: in long double
 * @magnitude: sum|x_r|
 * @direct: in the order of the ranks, in f32 (f64), rounded once
 */
struct sums {
	long double exact;
	long double magnitude;
	double direct;
};

static struct sums sum_up(const struct bench_job *job, uint64_t epoch,
			  uint64_t row, uint64_t col)
{
	const struct bench_options *o = job->options;
	struct sums s = { 0 };
	double d = 0;
	float f = 0;
	uint32_t r;

	for (r = 0; r < o->ranks; r++) {
		double x = bench_contribution(o, r, epoch, row, col);

		s.exact += x;
		s.magnitude += fabs(x);
		d = r ? d + x : x;
		f = r ? f + (float)x : (float)x;
	}
	s.direct = o->dtype == T3_DTYPE_F64 || o->dtype == T3_DTYPE_I32 ? d :
		bench_round(o->dtype, f);
	return s;
}

static bool same_bits(const struct bench_options *o, const void *at,
		      size_t index, double want)
{
	size_t size = bench_dtype_size(o->dtype);
	uint64_t bits = 0;

	bench_store(o->dtype, &bits, 0, want);
	return !memcmp((const char *)at + index * size, &bits, size);
}

static void wrong(struct bench_job *job, uint64_t row, uint64_t col, double got,
		  double want)
{
	struct bench_verdict *v = &job->record->verdict;

	if (!v->wrong++)
		snprintf(v->first, sizeof(v->first),
			 "row %llu, column %llu: %.9g, not %.9g",
			 (unsigned long long)row, (unsigned long long)col, got,
			 want);
}

static void check_element(struct bench_job *job, const void *at, uint64_t epoch,
			  uint64_t row, uint64_t col)
{
	const struct bench_options *o = job->options;
	struct bench_verdict *v = &job->record->verdict;
	size_t index = o->layout == T3_COL_MAJOR ? col * o->m + row :
		row * o->n + col;
	double got = bench_load(o->dtype, at, index);
	struct sums s;
	double error;
	bool good;

	v->checked++;
	if (!is_sum(o)) {
		double want = moved(job, epoch, row, col);

		if (!same_bits(o, at, index, want))
			wrong(job, row, col, got, want);
		return;
	}
	s = sum_up(job, epoch, row, col);
	if (is_ring(job) && o->dtype != T3_DTYPE_I32)
		good = fabsl(got - s.exact) <= 1.01L * (o->ranks - 1) *
			unit(o->dtype) * s.magnitude;
	else
		good = same_bits(o, at, index, s.direct);
	if (!good)
		wrong(job, row, col, got, s.direct);
	if (o->dtype == T3_DTYPE_I32)
		return;
	error = s.magnitude ? (double)(fabsl(got - s.exact) / s.magnitude) :
		fabs(got);
	if (!(error <= v->max_rel_err))	/* a NaN too */
		v->max_rel_err = error;
}

/* Every element of the result, for poison that nobody has overwritten. */
static void scan_poison(struct bench_job *job, const void *at,
			const struct t3_rectangle *area)
{
	const struct bench_options *o = job->options;
	size_t size = bench_dtype_size(o->dtype);
	static const uint64_t poison = UINT64_MAX;
	uint64_t i, j;

	if (o->dtype == T3_DTYPE_I32)
		return;
	for (i = area->row; i < area->row + area->rows; i++) {
		for (j = area->col; j < area->col + area->cols; j++) {
			size_t index = o->layout == T3_COL_MAJOR ?
				j * o->m + i : i * o->n + j;

			if (!memcmp((const char *)at + index * size, &poison,
				    size))
				wrong(job, i, j, NAN, 0);
		}
	}
	job->record->verdict.elements += area->rows * area->cols;
}

static uint64_t samples(const struct bench_options *o, uint64_t elements)
{
	uint64_t checks = (uint64_t)(o->epochs + o->warmup) * (o->k ? 3 : 1);
	uint64_t cost = (o->k ? o->k : 1) * (is_sum(o) ? o->ranks : 1);
	uint64_t n = BUDGET / checks / cost;

	if (n < LEAST)
		n = LEAST;
	return n < elements ? n : elements;
}

/**
 * bench_check - compare this rank's result with the reference
 * @epoch: which, for inputs that differ by epoch
 *
 * Looks at every element for poison, and at as many as a budget allows for
 * their value: evenly over the result, others in each epoch, the first and the
 * last always.
 */
void bench_check(struct bench_job *job, uint64_t epoch)
{
	const struct bench_options *o = job->options;
	struct t3_rectangle area = { .rows = o->m, .cols = o->n };
	const void *at = job->d ? job->d : job->c;
	uint64_t elements, n, i;

	if (o->op == T3_REDUCE_SCATTER)
		t3_plan_shard(job->plan, job->rank, &area);
	elements = area.rows * area.cols;
	if (!elements)
		return;
	scan_poison(job, at, &area);
	n = samples(o, elements);
	for (i = 0; i < n; i++) {
		uint64_t from = (uint64_t)((__uint128_t)elements * i / n);
		uint64_t to = (uint64_t)((__uint128_t)elements * (i + 1) / n);
		uint64_t e = from + bench_hash(epoch * n + i) % (to - from);

		if (!i)
			e = 0;
		else if (i == n - 1)
			e = elements - 1;
		check_element(job, at, epoch, area.row + e / area.cols,
			      area.col + e % area.cols);
	}
}
