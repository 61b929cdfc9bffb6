// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ranks' inputs: a hash of their place, so that every process can compute
 * any rank's.
 *
 * The GEMM's factors are odd integers from -7 to 7 (for floating-point types A
 * is an eighth of that), so the product of any split of K is exact in f32 up
 * to BENCH_MAX_K, whatever the BLAS's order, and is rounded once, to the dtype.
 * Without a GEMM the inputs use every bit of the dtype's significand, and
 * differ from epoch to epoch.
 */
#include "bench.h"

/* Mixes well enough to pass for random; Steele, Lea and Flood's constants. */
uint64_t bench_hash(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static int64_t factor(uint32_t which, uint32_t rank, uint64_t i, uint64_t j)
{
	uint64_t x = i * 0x9e3779b97f4a7c15ull ^ j * 0xd6e8feb86659fd93ull ^
		((uint64_t)rank << 1 | which) * 0xa0761d6478bd642full;

	x ^= x >> 32;
	x *= 0xbf58476d1ce4e5b9ull;
	return 2 * (int64_t)(x >> 61) - 7;
}

/* A[row, k], times 8 for floating-point types */
int64_t bench_a(uint32_t rank, uint64_t row, uint64_t k)
{
	return factor(0, rank, row, k);
}

/* B[k, col] */
int64_t bench_b(uint32_t rank, uint64_t k, uint64_t col)
{
	return factor(1, rank, k, col);
}

static double scaled(int64_t x, unsigned int shift)
{
	return (double)x / (double)(1u << shift);
}

/**
 * bench_value - an element of a rank's input where there is no GEMM
 *
 * Return: exactly a value of the dtype.
 */
double bench_value(const struct bench_options *o, uint32_t rank, uint64_t epoch,
		   uint64_t row, uint64_t col)
{
	uint64_t h = bench_hash(row * o->n + col +
				bench_hash((epoch << 8) + rank));
	unsigned int shift = h & 7;

	switch (o->dtype) {
	case T3_DTYPE_I32:
		return (int32_t)(h >> 32);
	case T3_DTYPE_F64:
		return scaled((int64_t)h >> 11, shift);
	case T3_DTYPE_F32:
		return scaled((int64_t)h >> 40, shift);
	case T3_DTYPE_F16:
		return scaled((int64_t)h >> 53, shift);
	default:
		return scaled((int64_t)h >> 56, shift);
	}
}

/**
 * bench_contribution - an element of what a rank brings to the collective
 *
 * Return: exactly a value of the dtype (i32: modulo 2^32).
 */
double bench_contribution(const struct bench_options *o, uint32_t rank,
			  uint64_t epoch, uint64_t row, uint64_t col)
{
	int64_t sum = 0;
	uint64_t k;

	if (!o->k)
		return bench_value(o, rank, epoch, row, col);
	for (k = 0; k < o->k; k++)
		sum += bench_a(rank, row, k) * bench_b(rank, k, col);
	if (o->dtype == T3_DTYPE_I32)
		return (double)sum;
	return bench_round(o->dtype, (double)sum / 8);
}

static void put(const struct bench_options *o, void *to, size_t index,
		double value)
{
	/* f16 and bf16 are multiplied as f32 */
	if (o->dtype == T3_DTYPE_F16 || o->dtype == T3_DTYPE_BF16)
		((float *)to)[index] = (float)value;
	else
		bench_store(o->dtype, to, index, value);
}

/* Both factors of a rank, as struct bench_job says. */
void bench_fill_factors(struct bench_job *job)
{
	const struct bench_options *o = job->options;
	bool col = o->layout == T3_COL_MAJOR;
	double scale = o->dtype == T3_DTYPE_I32 ? 1 : 0.125;
	uint64_t i, k;

	for (i = 0; i < o->m; i++)
		for (k = 0; k < o->k; k++)
			put(o, col ? job->right : job->left,
			    col ? k * o->m + i : i * o->k + k,
			    scale * (double)bench_a(job->rank, i, k));
	for (k = 0; k < o->k; k++)
		for (i = 0; i < o->n; i++)
			put(o, col ? job->left : job->right,
			    col ? i * o->k + k : k * o->n + i,
			    (double)bench_b(job->rank, k, i));
}

/* What a rank's input is in an epoch without a GEMM; only what it produces. */
void bench_fill_values(struct bench_job *job, void *to, uint64_t epoch)
{
	const struct bench_options *o = job->options;
	const struct t3_rectangle *w = &job->whole;
	bool by_col = o->layout == T3_COL_MAJOR;
	uint64_t i, j;

	for (i = w->row; i < w->row + w->rows; i++)
		for (j = w->col; j < w->col + w->cols; j++)
			bench_store(o->dtype, to,
				    by_col ? j * o->m + i : i * o->n + j,
				    bench_value(o, job->rank, epoch, i, j));
}
