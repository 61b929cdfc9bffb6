// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The speed of the sums, beside a plain loop that reads the same sources and
 * writes the same destination with no arithmetic to speak of (it xors whole
 * vectors: without some use of a source its read would not happen).
 *
 * The machine may be busy, and its clock may change: so the two are timed in
 * turn on the same blocks, and each pair gives one ratio. Of the ratios the
 * median and the quartiles are told.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fp_env.h"
#include "reduce.h"

#define MAX_REPS 100000

struct options {
	size_t block;		/* bytes */
	size_t pool;		/* bytes */
	int reps;
	bool all;		/* every implementation, not the best only */
	const char *out;
};

/**
 * struct setting - what one line of the result is about
 * @dtype: T3_DTYPE_*
 * @nsrc: sources
 * @in_place: the destination is the first source
 * @sets: distinct sets of blocks to cycle through; 1 is cache-hot
 */
struct setting {
	u32 dtype, nsrc;
	bool in_place;
	size_t sets;
	const struct t3_reduce *reduce;
};

struct result {
	double gbps, plain_gbps;
	double ratio, ratio_min, ratio_q1, ratio_q3, ratio_max;
};

static const char *const dtype_names[] = {
	NULL, "f32", "f64", "f16", "bf16", "i32",
};

/* ---- the plain loops ---- */

#define PLAIN(name, bytes, isa)						\
typedef u64 vec_##name							\
	__attribute__((vector_size(bytes), aligned(8), may_alias));	\
									\
static inline __attribute__((always_inline, target(isa)))		\
void plain_##name##_n(u8 *dst, const u8 *const *src, const u32 n,	\
		      size_t size)					\
{									\
	vec_##name v[4];						\
	size_t at;							\
	u32 s, u;							\
									\
	for (at = 0; at < size; at += sizeof(v)) {			\
		_Pragma("GCC unroll 4")					\
		for (u = 0; u < 4; u++)					\
			v[u] = ((const vec_##name *)(src[0] + at))[u];	\
		_Pragma("GCC unroll 4")					\
		for (s = 1; s < n; s++) {				\
			_Pragma("GCC unroll 4")				\
			for (u = 0; u < 4; u++)				\
				v[u] ^= ((const vec_##name *)		\
					 (src[s] + at))[u];		\
		}							\
		_Pragma("GCC unroll 4")					\
		for (u = 0; u < 4; u++)					\
			((vec_##name *)(dst + at))[u] = v[u];		\
	}								\
}									\
									\
static __attribute__((target(isa)))					\
void plain_##name(void *dst, const void *const *sources, u32 n,		\
		  size_t size)						\
{									\
	const u8 *const *src = (const u8 *const *)sources;		\
									\
	if (n == 2) {							\
		const u8 *const two[] = { src[0], src[1] };		\
									\
		plain_##name##_n(dst, two, 2, size);			\
	} else {							\
		const u8 *const four[] = { src[0], src[1], src[2],	\
					   src[3] };			\
									\
		plain_##name##_n(dst, four, 4, size);			\
	}								\
}

#ifdef __x86_64__
PLAIN(avx512, 64, "avx512f")
PLAIN(avx2, 32, "avx2")
PLAIN(base, 16, "sse2")
#else
PLAIN(base, 16, "arch=armv8-a")
#endif

/* One of the above: 2 or 4 sources, @size bytes, a multiple of 256. */
struct plain {
	const char *name;
	void (*run)(void *dst, const void *const *src, u32 n, size_t size);
};

/* The plain loops that this processor runs; returns how many. */
static int plains(struct plain p[3])
{
	int n = 0;

	p[n++] = (struct plain){ "base", plain_base };
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		p[n++] = (struct plain){ "avx2", plain_avx2 };
	if (__builtin_cpu_supports("avx512f"))
		p[n++] = (struct plain){ "avx512", plain_avx512 };
#endif
	return n;
}

/* ---- timing ---- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The buffers of set @k: destination and sources, in a pool of whole sets. */
static void *set_of(const struct options *o, const struct setting *s, u8 *pool,
		    size_t k, const void **src)
{
	size_t each = s->nsrc + !s->in_place;
	u8 *base = pool + (k % s->sets) * each * o->block;
	u32 i;

	for (i = 0; i < s->nsrc; i++)
		src[i] = base + i * o->block;
	return base + (s->in_place ? 0 : s->nsrc * o->block);
}

static double time_sum(const struct options *o, const struct setting *s,
		       u8 *pool, size_t k)
{
	const void *src[T3_MAX_RANKS];
	void *dst = set_of(o, s, pool, k, src);
	size_t elems = o->block / t3_dtype_size(s->dtype);
	double start = now();

	s->reduce->sum[s->dtype - 1](dst, src, s->nsrc, elems);
	return now() - start;
}

static double time_plain(const struct options *o, const struct setting *s,
			 u8 *pool, size_t k, const struct plain *plain)
{
	const void *src[T3_MAX_RANKS];
	void *dst = set_of(o, s, pool, k, src);
	double start = now();

	plain->run(dst, src, s->nsrc, o->block);
	return now() - start;
}

/* Finite numbers of moderate size in every dtype, so that nothing overflows. */
static void fill(u8 *pool, size_t bytes)
{
	u16 *p = (u16 *)pool;
	size_t i;

	for (i = 0; i < bytes / 2; i++)
		p[i] = (u16)(0x3c00 + (i * 40503 >> 7 & 0xff));
}

/* The widest plain loop is not always the fastest: the fastest is the rival. */
static const struct plain *fastest(const struct options *o,
				   const struct setting *s, u8 *pool,
				   double *spare)
{
	static struct plain p[3];
	int n = plains(p), i, k, best = 0;
	double median[3];

	for (i = 0; i < n; i++) {
		for (k = 0; k < 40; k++)
			spare[k] = time_plain(o, s, pool, (size_t)k * 7 + 3,
					      &p[i]);
		qsort(spare, 40, sizeof(*spare), by_value);
		median[i] = spare[20];
		if (median[i] < median[best])
			best = i;
	}
	return &p[best];
}

static struct result measure(const struct options *o, const struct setting *s,
			     u8 *pool)
{
	double bytes = (double)(s->nsrc + 1) * (double)o->block; /* r and w */
	double *ratio = calloc(3 * MAX_REPS, sizeof(*ratio));
	double *sum = ratio + MAX_REPS, *plain = sum + MAX_REPS;
	const struct plain *rival;
	struct result r;
	size_t k = 0;
	int i;

	if (!ratio)
		exit(1);
	fill(pool, (s->nsrc + 1) * s->sets * o->block);
	rival = fastest(o, s, pool, ratio);
	for (i = -4; i < o->reps; i++) {
		double a, b;

		/* Who goes first alternates, in case order matters. */
		if (i & 1) {
			a = time_sum(o, s, pool, k++);
			b = time_plain(o, s, pool, k++, rival);
		} else {
			b = time_plain(o, s, pool, k++, rival);
			a = time_sum(o, s, pool, k++);
		}
		if (i < 0)	/* warming up */
			continue;
		sum[i] = a;
		plain[i] = b;
		ratio[i] = b / a;
	}
	qsort(ratio, (size_t)o->reps, sizeof(*ratio), by_value);
	qsort(sum, (size_t)o->reps, sizeof(*sum), by_value);
	qsort(plain, (size_t)o->reps, sizeof(*plain), by_value);
	r.gbps = bytes / sum[o->reps / 2] / 1e9;
	r.plain_gbps = bytes / plain[o->reps / 2] / 1e9;
	r.ratio = ratio[o->reps / 2];
	r.ratio_min = ratio[0];
	r.ratio_q1 = ratio[o->reps / 4];
	r.ratio_q3 = ratio[o->reps * 3 / 4];
	r.ratio_max = ratio[o->reps - 1];
	free(ratio);
	return r;
}

/* ---- output ---- */

static void print_result(FILE *json, bool first, const struct options *o,
			 const struct setting *s, const struct result *r)
{
	const char *place = s->in_place ? "in" : "out";
	const char *residence = s->sets == 1 ? "cache" : "dram";

	printf("%-5s %7u %-8s %-9s %-7s %8.1f %8.1f %6.2f %6.2f %6.2f %6.2f %6.2f\n",
	       dtype_names[s->dtype], s->nsrc, place, residence,
	       s->reduce->name, r->gbps, r->plain_gbps, r->ratio, r->ratio_min,
	       r->ratio_q1, r->ratio_q3, r->ratio_max);
	fprintf(json, "%s\n  {\"dtype\": \"%s\", \"sources\": %u, ",
		first ? "" : ",", dtype_names[s->dtype], s->nsrc);
	fprintf(json, "\"in_place\": %s, \"block_bytes\": %zu, ",
		s->in_place ? "true" : "false", o->block);
	fprintf(json, "\"residence\": \"%s\", \"impl\": \"%s\", ", residence,
		s->reduce->name);
	fprintf(json, "\"gbps\": %.3f, \"plain_gbps\": %.3f, ", r->gbps,
		r->plain_gbps);
	fprintf(json, "\"ratio\": %.4f, \"ratio_min\": %.4f, ", r->ratio,
		r->ratio_min);
	fprintf(json, "\"ratio_q1\": %.4f, \"ratio_q3\": %.4f, ", r->ratio_q1,
		r->ratio_q3);
	fprintf(json, "\"ratio_max\": %.4f, \"reps\": %d}", r->ratio_max,
		o->reps);
}

static void measure_all(FILE *json, const struct options *o,
			const struct t3_reduce *reduce, u8 *pool, bool *first)
{
	u32 i;

	/* Bits of i: sources, place, residence. */
	for (i = 0; i < 8 * T3_DTYPE_COUNT; i++) {
		struct setting s = {
			.dtype = 1 + i / 8,
			.nsrc = i & 4 ? 4 : 2,
			.in_place = i & 2,
			.sets = 1,
			.reduce = reduce,
		};
		struct result r;

		if (!(i & 1))
			s.sets = o->pool / ((s.nsrc + 1) * o->block);
		r = measure(o, &s, pool);
		print_result(json, *first, o, &s, &r);
		fflush(stdout);
		*first = false;
	}
}

/* Four last-level caches, where their size can be found. */
static size_t default_pool(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t pool = 512ul << 20;

	if (cache > 0 && 4 * (size_t)cache > pool)
		pool = 4 * (size_t)cache;
	return pool;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'a':
		o->all = true;
		return 0;
	case 'b':
		o->block = strtoul(arg, NULL, 0) << 10;
		if (!o->block || o->block > 4ul << 20)
			argp_error(state, "block of %s KiB: 1 to 4096", arg);
		return 0;
	case 'n':
		o->reps = atoi(arg);
		if (o->reps < 1 || o->reps > MAX_REPS)
			argp_error(state, "%s repetitions: 1 to %d", arg,
				   MAX_REPS);
		return 0;
	case 'o':
		o->out = arg;
		return 0;
	case 'p':
		o->pool = strtoul(arg, NULL, 0) << 20;
		if (o->pool < 64ul << 20)
			argp_error(state, "pool of %s MiB: 64 at least", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option argp_options[] = {
	{ "all", 'a', NULL, 0, "every implementation, not only the best", 0 },
	{ "block", 'b', "KiB", 0, "size of the destination (1024)", 0 },
	{ "reps", 'n', "N", 0, "pairs timed for each line (401)", 0 },
	{ "output", 'o', "FILE", 0, "JSON goes there (/dev/null)", 0 },
	{ "pool", 'p', "MiB", 0,
	  "memory cycled through (512, or four last-level caches)", 0 },
	{ 0 },
};

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse,
		.doc = "Sums of blocks beside a plain read and write loop.",
	};
	struct options o = {
		.block = 1ul << 20,
		.pool = default_pool(),
		.reps = 401,
		.out = "/dev/null",
	};
	const struct t3_reduce *r;
	bool first = true;
	FILE *json;
	u8 *pool;
	u64 fp;
	u32 n;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	json = fopen(o.out, "w");
	if (!json) {
		fprintf(stderr, "%s: %s\n", o.out, strerror(errno));
		return 1;
	}
	pool = mmap(NULL, o.pool, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED) {
		fprintf(stderr, "pool of %zu bytes: %s\n", o.pool,
			strerror(errno));
		return 1;
	}
	madvise(pool, o.pool, MADV_HUGEPAGE);
	printf("%-5s %7s %-8s %-9s %-7s %8s %8s %6s %6s %6s %6s %6s\n",
	       "dtype", "sources", "place", "residence", "impl", "GB/s",
	       "plain", "ratio", "min", "q1", "q3", "max");
	fprintf(json, "[");
	fp = t3_fp_enter();
	for (n = 0; (r = t3_reduce_nth(n)); n++)
		if (o.all || r == t3_reduce_best())
			measure_all(json, &o, r, pool, &first);
	t3_fp_leave(fp);
	fprintf(json, "\n]\n");
	if (fclose(json)) {
		fprintf(stderr, "%s: %s\n", o.out, strerror(errno));
		return 1;
	}
	return 0;
}
