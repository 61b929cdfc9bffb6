// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * This machine's curves, as ranks would see them: all cores at the same work at
 * once, for they share clocks, memory and perhaps more.
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

/* Larger than a core's share of any last-level cache. */
#define AREA	(64u << 20)

#define REPEATS	9
#define CORES	16

/**
 * struct crew - cores that measure together
 * @start: all begin at once
 * @cores: how many
 * @what: the work, for each of its sizes
 * @size: of the work
 * @a: [cores] AREA bytes each
 * @b: likewise
 * @c: likewise
 * @seconds: [cores] of the work just done
 */
struct crew {
	pthread_barrier_t start;
	long cores;
	void (*what)(struct crew *crew, long core);
	const void *size;
	float *a[CORES];
	float *b[CORES];
	float *c[CORES];
	double seconds[CORES];
};

/**
 * struct hand - one core of a crew
 */
struct hand {
	struct crew *crew;
	long core;
};

static double now(void)
{
	return (double)t3_now() / 1e9;
}

static void *work(void *arg)
{
	struct hand *hand = arg;
	struct crew *crew = hand->crew;
	double begin;

	pthread_barrier_wait(&crew->start);
	begin = now();
	crew->what(crew, hand->core);
	crew->seconds[hand->core] = now() - begin;
	return NULL;
}

/* The slowest core's time, in the best of some turns; 0: no threads. */
static double measure(struct crew *crew, void (*what)(struct crew *, long),
		      const void *size)
{
	struct hand hand[CORES];
	pthread_t thread[CORES];
	double best = 0;
	long i, turn;

	crew->what = what;
	crew->size = size;
	for (turn = 0; turn < REPEATS; turn++) {
		double slowest = 0;

		for (i = 0; i < crew->cores; i++) {
			hand[i] = (struct hand) { crew, i };
			/* Some at the barrier for ever would be worse. */
			if (pthread_create(&thread[i], NULL, work, &hand[i]))
				abort();
		}
		for (i = 0; i < crew->cores; i++) {
			pthread_join(thread[i], NULL);
			if (crew->seconds[i] > slowest)
				slowest = crew->seconds[i];
		}
		if (!turn || slowest < best)
			best = slowest;
	}
	return best;
}

static void gemm(struct crew *crew, long core)
{
	const struct curve_gemm *g = crew->size;
	int m = (int)g->m, n = (int)g->n, k = (int)g->k;

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1,
		    crew->a[core], k, crew->b[core], n, 0, crew->c[core], n);
}

static void sum(struct crew *crew, long core)
{
	const void *src[2] = { crew->a[core], crew->b[core] };

	t3_reduce_best()->sum[T3_DTYPE_F32 - 1](crew->a[core], src, 2,
						*(const size_t *)crew->size / 4);
}

static void copy(struct crew *crew, long core)
{
	memcpy(crew->a[core], crew->b[core], AREA);
}

static void measure_all(struct model_curves *c, struct crew *crew)
{
	static const uint64_t size[][3] = {
		{ 256, 256, 256 }, { 512, 512, 512 }, { 1024, 1024, 1024 },
		{ 1024, 512, 2048 }, { 2048, 1024, 512 }, { 1536, 1536, 256 },
	};
	size_t i, bytes;

	openblas_set_num_threads(1);
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		struct curve_gemm *g = &c->gemm[c->gemms++];

		*g = (struct curve_gemm) {
			size[i][0], size[i][1], size[i][2], T3_DTYPE_F32, 0
		};
		g->seconds = measure(crew, gemm, g);
	}
	for (bytes = 4 << 20; bytes <= AREA; bytes <<= 1)
		c->sum[c->sums++] = (struct curve_point) {
			1, bytes / measure(crew, sum, &bytes)
		};
	c->dram = 2.0 * AREA * crew->cores / measure(crew, copy, NULL);
}

static bool make_crew(struct crew *crew)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	bool good = true;
	long i;

	memset(crew, 0, sizeof(*crew));
	crew->cores = cores < CORES ? cores : CORES;
	for (i = 0; i < crew->cores; i++) {
		crew->a[i] = aligned_alloc(64, AREA);
		crew->b[i] = aligned_alloc(64, AREA);
		crew->c[i] = aligned_alloc(64, AREA);
		good = good && crew->a[i] && crew->b[i] && crew->c[i];
	}
	for (i = 0; i < crew->cores && good; i++) {
		memset(crew->a[i], 0, AREA);
		memset(crew->b[i], 0, AREA);
		memset(crew->c[i], 0, AREA);
	}
	return good && !pthread_barrier_init(&crew->start, NULL,
					     (unsigned int)crew->cores);
}

int model_curves_measure(struct model_curves *curves)
{
	struct crew crew;
	bool good = make_crew(&crew);
	long i;

	memset(curves, 0, sizeof(*curves));
	strcpy(curves->from, "this machine");
	if (good) {
		measure_all(curves, &crew);
		pthread_barrier_destroy(&crew.start);
	}
	for (i = 0; i < crew.cores; i++) {
		free(crew.a[i]);
		free(crew.b[i]);
		free(crew.c[i]);
	}
	return good ? 0 : -ENOMEM;
}
