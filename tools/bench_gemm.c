// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A piece of the output: OpenBLAS, then one rounding where the dtype is
 * narrower than what BLAS computes in.
 */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static int share(const struct bench_options *o)
{
	long threads = sysconf(_SC_NPROCESSORS_ONLN) / o->ranks;

	return threads < 1 ? 1 : (int)threads;
}

/**
 * bench_gemm_prepare - start over with OpenBLAS set up for the ranks
 * @argv: the program's
 *
 * OpenBLAS reads its environment before main(): how many threads to start (one
 * for each rank's share of the processors; with one it starts none, so nothing
 * but the program itself is forked), and which kernels to use, as older
 * versions do not know newer processors and fall back to AVX2. What the user
 * has set stays.
 */
void bench_gemm_prepare(const struct bench_options *o, char **argv)
{
	char threads[16];

	if (getenv("T3BENCH_AGAIN"))
		return;
	snprintf(threads, sizeof(threads), "%d", share(o));
	setenv("OPENBLAS_NUM_THREADS", threads, 0);
	if (__builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") &&
	    (!strcmp(openblas_get_corename(), "Haswell") ||
	     !strcmp(openblas_get_corename(), "Zen")))
		setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
	setenv("T3BENCH_AGAIN", "1", 1);
	execv("/proc/self/exe", argv);
	/* without /proc it runs as it is */
}

/* Ranks share the processors evenly. After the fork: BLAS may start threads. */
void bench_gemm_threads(const struct bench_options *o)
{
	openblas_set_num_threads(share(o));
}

static void gemm_i32(uint32_t *c, const uint32_t *a, const uint32_t *b,
		     uint64_t rows, uint64_t cols, uint64_t k, uint64_t ldb,
		     uint64_t ldc)
{
	uint64_t i, j, l;

	for (i = 0; i < rows; i++, c += ldc, a += k) {
		memset(c, 0, cols * sizeof(*c));
		for (l = 0; l < k; l++)
			for (j = 0; j < cols; j++)
				c[j] += a[l] * b[l * ldb + j];
	}
}

/* The product in f32 is packed: rows of @cols. */
static void gemm_half(struct bench_job *job, uint64_t row, uint64_t col,
		      uint64_t rows, uint64_t cols)
{
	const struct bench_options *o = job->options;
	uint16_t *c = (uint16_t *)job->c + row * job->cols + col;
	uint64_t i;

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, cols,
		    o->k, 1, (float *)job->left + row * o->k, o->k,
		    (float *)job->right + col, job->cols, 0, job->scratch,
		    cols);
	if (cols == job->cols) {
		bench_narrow(o->dtype, c, job->scratch, rows * cols);
		return;
	}
	for (i = 0; i < rows; i++)
		bench_narrow(o->dtype, c + i * job->cols,
			     job->scratch + i * cols, cols);
}

/**
 * bench_gemm - compute a rectangle of the output into the region
 * @rect: in elements of the matrix, whatever its layout
 */
void bench_gemm(struct bench_job *job, const struct t3_rectangle *rect)
{
	const struct bench_options *o = job->options;
	bool by_col = o->layout == T3_COL_MAJOR;
	uint64_t row = by_col ? rect->col : rect->row;
	uint64_t col = by_col ? rect->row : rect->col;
	uint64_t rows = by_col ? rect->cols : rect->rows;
	uint64_t cols = by_col ? rect->rows : rect->cols;
	uint64_t at = row * job->cols + col;

	if (!rows || !cols)
		return;
	switch (o->dtype) {
	case T3_DTYPE_F32:
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows,
			    cols, o->k, 1, (float *)job->left + row * o->k,
			    o->k, (float *)job->right + col, job->cols, 0,
			    (float *)job->c + at, job->cols);
		break;
	case T3_DTYPE_F64:
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows,
			    cols, o->k, 1, (double *)job->left + row * o->k,
			    o->k, (double *)job->right + col, job->cols, 0,
			    (double *)job->c + at, job->cols);
		break;
	case T3_DTYPE_I32:
		gemm_i32((uint32_t *)job->c + at,
			 (uint32_t *)job->left + row * o->k,
			 (uint32_t *)job->right + col, rows, cols, o->k,
			 job->cols, job->cols);
		break;
	default:
		gemm_half(job, row, col, rows, cols);
	}
}
