/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the timings of bench-mpi have in common: the input, the clock, the
 * statistics. t3bench --no-gemm does the same: before each iteration every
 * rank copies its input into place, all meet, the operation is timed on every
 * rank, the slowest rank's time counts, and the median over the iterations is
 * told.
 */
#ifndef T3_TESTS_BENCH_REDUCE_SCATTER_H
#define T3_TESTS_BENCH_REDUCE_SCATTER_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WARMUP	5

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;	/* us */
}

/* Small integers: sums are exact, whatever the order. */
static inline float input(int rank, size_t i)
{
	return (float)((i * 7 + i / 64) % 251) + (float)rank;
}

/* Return: elements of @got, the sum over both ranks from element @from, that are wrong. */
static inline size_t count_wrong(const float *got, size_t from, size_t n)
{
	size_t i, wrong = 0;

	for (i = 0; i < n; i++)
		wrong += got[i] != input(0, from + i) + input(1, from + i);
	return wrong;
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* @time: [iteration][rank], of two ranks. Return: the median of the slower. */
static inline double median_of_slower(double *time, int iterations)
{
	int i;

	for (i = 0; i < iterations; i++)
		time[i] = time[2 * i] > time[2 * i + 1] ? time[2 * i] :
			time[2 * i + 1];
	qsort(time, iterations, sizeof(*time), by_size);
	return time[iterations / 2];
}

/* Fewer iterations of what takes longer. */
static inline int iterations_for(size_t bytes)
{
	size_t n = ((size_t)512 << 20) / bytes;

	return n < 15 ? 15 : n > 301 ? 301 : (int)n;
}

#endif /* T3_TESTS_BENCH_REDUCE_SCATTER_H */
