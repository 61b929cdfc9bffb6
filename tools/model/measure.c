// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * This machine's curves: a core's GEMM and sums, all cores' memory.
 */
#include <cblas.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "curves.h"
#include "engine.h"
#include "reduce.h"

/* Larger than any last-level cache's share. */
#define AREA	(64u << 20)

#define REPEATS	9

static double now(void)
{
	return (double)t3_now() / 1e9;
}

/* The best of some: what disturbs only makes slower. */
static double best_of(double best, double time, int i)
{
	return i == 0 || time < best ? time : best;
}

static double time_gemm(int m, int n, int k, const float *a, const float *b,
			float *c)
{
	double best = 0, begin;
	int i;

	for (i = 0; i < REPEATS; i++) {
		begin = now();
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k,
			    1, a, k, b, n, 0, c, n);
		best = best_of(best, now() - begin, i);
	}
	return best;
}

static void measure_gemm(struct model_curves *c, float *a, float *b, float *out)
{
	static const int size[][3] = {
		{ 256, 256, 256 }, { 512, 512, 512 }, { 1024, 1024, 1024 },
		{ 1024, 512, 2048 }, { 2048, 1024, 512 }, { 1536, 1536, 256 },
	};
	size_t i;

	openblas_set_num_threads(1);
	for (i = 0; i < AREA / sizeof(float); i++) {
		a[i] = (float)(i % 7);
		b[i] = (float)(i % 5);
	}
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		c->gemm[c->gemms++] = (struct curve_gemm) {
			(uint64_t)size[i][0], (uint64_t)size[i][1],
			(uint64_t)size[i][2], T3_DTYPE_F32,
			time_gemm(size[i][0], size[i][1], size[i][2], a, b, out),
		};
}

static void measure_sum(struct model_curves *c, float *a, float *b)
{
	const struct t3_reduce *reduce = t3_reduce_best();
	const void *src[2] = { a, b };
	size_t bytes;

	for (bytes = 4 << 20; bytes <= AREA; bytes <<= 1) {
		double best = 0, begin;
		int i;

		for (i = 0; i < REPEATS; i++) {
			begin = now();
			reduce->sum[T3_DTYPE_F32 - 1](a, src, 2, bytes / 4);
			best = best_of(best, now() - begin, i);
		}
		c->sum[c->sums++] = (struct curve_point) { 1, bytes / best };
	}
}

/**
 * struct copier - one core's part of the measure of memory
 */
struct copier {
	pthread_t thread;
	pthread_barrier_t *start;
	char *from;
	char *to;
	double seconds;
};

static void *copy(void *arg)
{
	struct copier *c = arg;
	double begin;
	int i;

	memcpy(c->to, c->from, AREA);
	pthread_barrier_wait(c->start);
	begin = now();
	for (i = 0; i < REPEATS; i++)
		memcpy(c->to, c->from, AREA);
	c->seconds = now() - begin;
	return NULL;
}

static int measure_memory(struct model_curves *c)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct copier copier[16];
	pthread_barrier_t start;
	long i, n = cores < 16 ? cores : 16;
	int ret = 0;

	memset(copier, 0, sizeof(copier));
	for (i = 0; i < n; i++) {
		copier[i].from = calloc(1, AREA);
		copier[i].to = calloc(1, AREA);
		copier[i].start = &start;
		if (!copier[i].from || !copier[i].to)
			ret = -ENOMEM;
	}
	if (ret || pthread_barrier_init(&start, NULL, (unsigned int)n))
		goto out;
	for (i = 1; i < n && !ret; i++)
		ret = -pthread_create(&copier[i].thread, NULL, copy, &copier[i]);
	if (!ret)
		copy(&copier[0]);
	for (i = 1; i < n && !ret; i++)
		pthread_join(copier[i].thread, NULL);
	for (i = 0; i < n && !ret; i++)
		c->dram += 2.0 * AREA * REPEATS / copier[i].seconds;
	pthread_barrier_destroy(&start);
out:
	for (i = 0; i < n; i++) {
		free(copier[i].from);
		free(copier[i].to);
	}
	return ret;
}

int model_curves_measure(struct model_curves *curves)
{
	float *a = aligned_alloc(64, AREA), *b = aligned_alloc(64, AREA);
	float *out = aligned_alloc(64, AREA);
	int ret = -ENOMEM;

	memset(curves, 0, sizeof(*curves));
	strcpy(curves->from, "this machine");
	if (a && b && out) {
		memset(out, 0, AREA);
		measure_gemm(curves, a, b, out);
		measure_sum(curves, a, b);
		ret = measure_memory(curves);
	}
	free(a);
	free(b);
	free(out);
	return ret;
}
