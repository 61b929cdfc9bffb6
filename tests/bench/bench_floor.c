// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The floor of a reduce-scatter of two processes on one machine: both buffers
 * in one shared mapping, a spinning barrier, each process adds the peer's half
 * to its own in place, a barrier. Nothing checks, plans or watches.
 *
 * usage: bench_floor BYTES...	(of each rank's whole input)
 *
 * Prints lines "BYTES us VARIANT".
 */
#define _GNU_SOURCE
#include <immintrin.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reduce_scatter.h"

#define MOST_ITERATIONS	512

/*
 * What both processes share. The barrier's words each have a writer of their
 * own; release on writing, acquire on reading. @time: each writes its own.
 */
struct shared {
	_Alignas(64) atomic_uint turn[2][16];
	double time[2 * MOST_ITERATIONS];
	size_t wrong[2];
};

static void barrier(struct shared *s, int rank)
{
	unsigned int turn = atomic_load_explicit(&s->turn[rank][0],
						 memory_order_relaxed) + 1;

	atomic_store_explicit(&s->turn[rank][0], turn, memory_order_release);
	while ((int)(atomic_load_explicit(&s->turn[!rank][0],
					  memory_order_acquire) - turn) < 0)
		_mm_pause();
}

/* @n is a multiple of 64 in all of them. */
__attribute__((target("avx2")))
static void add_avx2(float *to, const float *from, size_t n)
{
	size_t i;
	int j;

	for (i = 0; i < n; i += 32)
		for (j = 0; j < 32; j += 8)
			_mm256_store_ps(to + i + j,
					_mm256_add_ps(_mm256_load_ps(to + i + j),
						      _mm256_load_ps(from + i + j)));
}

__attribute__((target("avx512f")))
static void add_avx512(float *to, const float *from, size_t n)
{
	size_t i;
	int j;

	for (i = 0; i < n; i += 64)
		for (j = 0; j < 64; j += 16)
			_mm512_store_ps(to + i + j,
					_mm512_add_ps(_mm512_load_ps(to + i + j),
						      _mm512_load_ps(from + i + j)));
}

#define AHEAD	512	/* elements: 2 KiB */

__attribute__((target("avx512f")))
static void add_avx512_ahead(float *to, const float *from, size_t n)
{
	size_t i;
	int j;

	for (i = 0; i < n; i += 64) {
		for (j = 0; j < 64; j += 16) {
			_mm_prefetch(from + i + j + AHEAD, _MM_HINT_T0);
			_mm_prefetch(to + i + j + AHEAD, _MM_HINT_T0);
		}
		for (j = 0; j < 64; j += 16)
			_mm512_store_ps(to + i + j,
					_mm512_add_ps(_mm512_load_ps(to + i + j),
						      _mm512_load_ps(from + i + j)));
	}
}

static const struct variant {
	const char *name;
	void (*add)(float *to, const float *from, size_t n);
	int avx512;
} variants[] = {
	{ "avx2", add_avx2, 0 },
	{ "avx512", add_avx512, 1 },
	{ "avx512-prefetch", add_avx512_ahead, 1 },
};

static void bind_to(int rank)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void run_rank(struct shared *s, int rank, float *const buffer[2],
		     size_t n, const struct variant *v)
{
	int iterations = iterations_for(n * sizeof(float)), i;
	size_t half = n / 2, at = rank * half;
	float *copy = malloc(n * sizeof(float));
	size_t j;

	bind_to(rank);
	if (!copy)
		_exit(1);
	for (j = 0; j < n; j++)
		copy[j] = input(rank, j);
	for (i = -WARMUP; i < iterations; i++) {
		double start;

		memcpy(buffer[rank], copy, n * sizeof(float));
		barrier(s, rank);
		start = now();
		/* all inputs are there: the same as the peer's arm */
		barrier(s, rank);
		v->add(buffer[rank] + at, buffer[!rank] + at, half);
		/* the peer may still read: the same as waiting for retire */
		barrier(s, rank);
		if (i >= 0)
			s->time[2 * i + rank] = now() - start;
	}
	s->wrong[rank] = count_wrong(buffer[rank] + at, at, half);
	free(copy);
}

static int run(size_t bytes, const struct variant *v, double *us)
{
	size_t n = bytes / sizeof(float);
	struct shared *s;
	float *buffer[2];
	char *memory;
	int status = 0;
	pid_t child;

	memory = mmap(NULL, sizeof(*s) + 4096 + 2 * bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	s = (struct shared *)memory;
	buffer[0] = (float *)(memory + (sizeof(*s) + 4095) / 4096 * 4096);
	buffer[1] = buffer[0] + n;
	child = fork();
	if (child < 0)
		return -1;
	if (!child) {
		run_rank(s, 1, buffer, n, v);
		_exit(0);
	}
	run_rank(s, 0, buffer, n, v);
	waitpid(child, &status, 0);
	*us = median_of_slower(s->time, iterations_for(bytes));
	if (status || s->wrong[0] || s->wrong[1])
		return -1;
	return munmap(memory, sizeof(*s) + 4096 + 2 * bytes);
}

static int all_variants(size_t bytes)
{
	size_t i, ran = 0;
	double us;

	for (i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (!__builtin_cpu_supports("avx2") ||
		    (variants[i].avx512 && !__builtin_cpu_supports("avx512f")))
			continue;
		if (run(bytes, &variants[i], &us)) {
			fprintf(stderr, "bench_floor: %zu bytes, %s: failed\n",
				bytes, variants[i].name);
			return 1;
		}
		printf("%zu %.3f %s\n", bytes, us, variants[i].name);
		ran++;
	}
	if (!ran)
		fprintf(stderr, "bench_floor: this processor has no AVX2\n");
	return !ran;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);

		if (!bytes || bytes % 512) {
			fprintf(stderr, "bench_floor: \"%s\" is no multiple of 512 bytes\n",
				argv[i]);
			return 2;
		}
		if (all_variants(bytes))
			return 1;
	}
	return 0;
}
