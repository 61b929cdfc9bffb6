// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The sums, each implementation against a slow reference that knows formats
 * only by their precision and exponents, and against each other bit by bit.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fp16.h"
#include "fp_env.h"
#include "reduce.h"

/* After the others: it needs their types. */
#include <cmocka.h>

#define GUARD 64
#define PATTERNS 10000000ul

static u64 seed = 0x9e3779b97f4a7c15ull;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dull;
}

/* ---- the reference ---- */

/**
 * struct format - a binary floating-point format
 * @bits: of an element
 * @p: of precision, the hidden one included
 * @emax: exponent of the greatest number; that of the least normal one is
 *	1 - @emax
 */
struct format {
	int bits, p, emax;
};

static const struct format formats[T3_DTYPE_COUNT + 1] = {
	[T3_DTYPE_F32] = { 32, 24, 127 },
	[T3_DTYPE_F64] = { 64, 53, 1023 },
	[T3_DTYPE_F16] = { 16, 11, 15 },
	[T3_DTYPE_BF16] = { 16, 8, 127 },
};

static const char *const dtype_names[T3_DTYPE_COUNT + 1] = {
	NULL, "f32", "f64", "f16", "bf16", "i32",
};

static double ref_decode(const struct format *f, u64 x)
{
	u64 mant = x & ((1ull << (f->p - 1)) - 1);
	int exp = (int)(x >> (f->p - 1)) & (2 * f->emax + 1);
	double v;

	if (exp == 2 * f->emax + 1)
		v = mant ? (double)NAN : (double)INFINITY;
	else if (exp)
		v = ldexp((double)(mant + (1ull << (f->p - 1))),
			  exp - f->emax - f->p + 1);
	else
		v = ldexp((double)mant, 2 - f->emax - f->p);
	return x >> (f->bits - 1) & 1 ? -v : v;
}

/* A double to the nearest number of the format, ties to even, and its bits. */
static u64 ref_encode(const struct format *f, double v)
{
	u64 sign = signbit(v) ? 1ull << (f->bits - 1) : 0;
	u64 inf = (u64)(2 * f->emax + 1) << (f->p - 1);
	int e, quantum;
	double n;

	if (isnan(v))
		return inf | 1ull << (f->p - 2);
	if (isinf(v))
		return sign | inf;
	if (v == 0)
		return sign;
	e = ilogb(v);
	if (e < 1 - f->emax)
		e = 1 - f->emax;
	quantum = e - f->p + 1;
	n = nearbyint(ldexp(fabs(v), -quantum));
	if (n == ldexp(1, f->p)) {
		n /= 2;
		e++;
	}
	if (e > f->emax)
		return sign | inf;
	if (n < ldexp(1, f->p - 1))	/* subnormal */
		return sign | (u64)n;
	return sign | ((u64)(e + f->emax) << (f->p - 1)) |
	       ((u64)n - (1ull << (f->p - 1)));
}

/* One add, rounded to f32 or f64. */
static double ref_add(u32 dtype, double a, double b)
{
	const struct format *f32 = &formats[T3_DTYPE_F32];

	/* 113 bits of precision round innocuously to 53, and 53 to 24. */
	if (dtype == T3_DTYPE_F64)
		return (double)((_Float128)a + (_Float128)b);
	return ref_decode(f32, ref_encode(f32, a + b));
}

static u64 ref_sum(u32 dtype, const u64 *x, u32 n)
{
	const struct format *f = &formats[dtype];
	u32 whole = 0;
	double acc;
	u32 s;

	if (dtype == T3_DTYPE_I32) {
		for (s = 0; s < n; s++)
			whole += (u32)x[s];
		return whole;
	}
	acc = ref_decode(f, x[0]);
	for (s = 1; s < n; s++)
		acc = ref_add(dtype, acc, ref_decode(f, x[s]));
	return ref_encode(f, acc);
}

/* ---- elements and buffers ---- */

static u64 get(u32 dtype, const void *p, size_t i)
{
	switch (t3_dtype_size(dtype)) {
	case 2:
		return ((const u16 *)p)[i];
	case 4:
		return ((const u32 *)p)[i];
	default:
		return ((const u64 *)p)[i];
	}
}

static void put(u32 dtype, void *p, size_t i, u64 v)
{
	switch (t3_dtype_size(dtype)) {
	case 2:
		((u16 *)p)[i] = (u16)v;
		break;
	case 4:
		((u32 *)p)[i] = (u32)v;
		break;
	default:
		((u64 *)p)[i] = v;
	}
}

/*
 * Bits in which all that is special is frequent: any pattern; near another
 * exponent, so that sums cancel and round; zeros, infinities, NaNs, the
 * greatest and least numbers.
 */
static u64 pattern(u32 dtype)
{
	const struct format *f = &formats[dtype];
	u64 all = f->bits == 64 ? ~0ull : (1ull << f->bits) - 1;
	u64 r = rnd(), mant, exp;

	if (dtype == T3_DTYPE_I32)
		return (u32)r;
	mant = r & ((1ull << (f->p - 1)) - 1);
	exp = (u64)(f->emax + (int)(r >> 54 & 7) - 4) << (f->p - 1);
	switch (r >> 58 & 7) {
	case 0:		/* subnormal */
		return mant | (r >> 57 & 1) << (f->bits - 1);
	case 1:		/* few bits: ties */
		return exp | (mant & (3ull << (f->p - 3))) |
		       (r >> 57 & 1) << (f->bits - 1);
	case 2:
	case 3:
	case 4:		/* of one another's size */
		return exp | mant | (r >> 57 & 1) << (f->bits - 1);
	case 5:		/* of exponents near the ends */
		return (all >> 1) - ((mant & 0xff) << (f->p / 2));
	default:
		return rnd() & all;
	}
}

static void fill(u32 dtype, void *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		put(dtype, p, i, pattern(dtype));
}

static void *buffer(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);

	assert_non_null(p);
	return p;
}

static void run(const struct t3_reduce *r, u32 dtype, void *dst,
		const void *const *src, u32 nsrc, size_t elems)
{
	u64 fp = t3_fp_enter();

	r->sum[dtype - 1](dst, src, nsrc, elems);
	t3_fp_leave(fp);
}

/* What element i of the sum must be. */
static void expect(const struct t3_reduce *r, u32 dtype, const void *dst,
		   const void *const *src, u32 nsrc, size_t i)
{
	u64 x[T3_MAX_RANKS], want, got = get(dtype, dst, i);
	u32 s;

	for (s = 0; s < nsrc; s++)
		x[s] = get(dtype, src[s], i);
	want = ref_sum(dtype, x, nsrc);
	if (got == want)
		return;
	fail_msg("%s %s: element %zu of %u sources (%#llx, %#llx ...) is %#llx, not %#llx",
		 r->name, dtype_names[dtype], i, nsrc, (unsigned long long)x[0],
		 (unsigned long long)x[nsrc > 1], (unsigned long long)got,
		 (unsigned long long)want);
}

static void run_and_expect(const struct t3_reduce *r, u32 dtype, void *dst,
			   const void *const *src, u32 nsrc, size_t elems)
{
	size_t i;

	run(r, dtype, dst, src, nsrc, elems);
	for (i = 0; i < elems; i++)
		expect(r, dtype, dst, src, nsrc, i);
}

/* The @n-th pair of an implementation and a dtype; false past the last. */
static bool nth_sum(u32 n, const struct t3_reduce **r, u32 *dtype)
{
	*r = t3_reduce_nth(n / T3_DTYPE_COUNT);
	*dtype = 1 + n % T3_DTYPE_COUNT;
	return *r;
}

#define FOR_EACH_SUM(r, dtype)						\
	for (u32 n_ = 0; nth_sum(n_, &(r), &(dtype)); n_++)

/* ---- tests ---- */

static void test_choice(void **state)
{
	const struct t3_reduce *r, *last = NULL;
	u32 n;

	(void)state;
	for (n = 0; (r = t3_reduce_nth(n)); n++) {
		print_message("# implementation %u: %s\n", n, r->name);
		last = r;
	}
	assert_true(n >= 1);
	assert_string_equal(t3_reduce_nth(0)->name, "scalar");
	assert_ptr_equal(t3_reduce_best(), last);
	assert_ptr_equal(t3_reduce_best(), last);
	assert_null(t3_reduce_nth(n + 1));
#ifdef __x86_64__
	/* The compiler's own detection must agree. */
	assert_int_equal(n, 1 +
			 !!(__builtin_cpu_supports("avx2") &&
			    __builtin_cpu_supports("f16c")) +
			 !!(__builtin_cpu_supports("avx512f") &&
			    __builtin_cpu_supports("avx512bw") &&
			    __builtin_cpu_supports("avx512vl") &&
			    __builtin_cpu_supports("avx512dq")));
#endif
}

static void test_dtype_size(void **state)
{
	(void)state;
	assert_int_equal(t3_dtype_size(0), 0);
	assert_int_equal(t3_dtype_size(T3_DTYPE_F32), 4);
	assert_int_equal(t3_dtype_size(T3_DTYPE_F64), 8);
	assert_int_equal(t3_dtype_size(T3_DTYPE_F16), 2);
	assert_int_equal(t3_dtype_size(T3_DTYPE_BF16), 2);
	assert_int_equal(t3_dtype_size(T3_DTYPE_I32), 4);
	assert_int_equal(t3_dtype_size(T3_DTYPE_COUNT + 1), 0);
	assert_int_equal(t3_dtype_size(~0u), 0);
}

/* Bits written down by hand: the reference itself is tested by these. */
static void test_known_answers(void **state)
{
	static const struct {
		u32 dtype;
		u64 a, b, sum;
	} known[] = {
		{ T3_DTYPE_F32, 0x3f800000, 0x33800000, 0x3f800000 }, /* tie */
		{ T3_DTYPE_F32, 0x3f800001, 0x33800000, 0x3f800002 }, /* tie */
		{ T3_DTYPE_F32, 0x7f7fffff, 0x73000000, 0x7f800000 },
		{ T3_DTYPE_F32, 0x7f7fffff, 0x72ffffff, 0x7f7fffff },
		{ T3_DTYPE_F32, 0x7f800000, 0xff800000, 0x7fc00000 },
		{ T3_DTYPE_F32, 0xffc12345, 0x00000000, 0x7fc00000 },
		{ T3_DTYPE_F32, 0x00000001, 0x00000001, 0x00000002 },
		{ T3_DTYPE_F32, 0x00800000, 0x80000001, 0x007fffff },
		{ T3_DTYPE_F32, 0x80000000, 0x80000000, 0x80000000 },
		{ T3_DTYPE_F32, 0x80000000, 0x00000000, 0x00000000 },
		{ T3_DTYPE_F64, 0x3ff0000000000001, 0x3ca0000000000000,
			0x3ff0000000000002 },
		{ T3_DTYPE_F64, 0x7fefffffffffffff, 0x7fefffffffffffff,
			0x7ff0000000000000 },
		{ T3_DTYPE_F64, 0xfff0000000000001, 0, 0x7ff8000000000000 },
		{ T3_DTYPE_F64, 1, 0x8000000000000002, 0x8000000000000001 },
		{ T3_DTYPE_F16, 0x3c00, 0x1000, 0x3c00 },	/* tie */
		{ T3_DTYPE_F16, 0x3c01, 0x1000, 0x3c02 },	/* tie */
		{ T3_DTYPE_F16, 0x7bff, 0x4c00, 0x7c00 },	/* 65520 */
		{ T3_DTYPE_F16, 0x7bff, 0x4bff, 0x7bff },
		{ T3_DTYPE_F16, 0x0001, 0x0001, 0x0002 },
		{ T3_DTYPE_F16, 0x03ff, 0x0001, 0x0400 },
		{ T3_DTYPE_F16, 0xfc01, 0x0000, 0x7e00 },
		{ T3_DTYPE_F16, 0x7c00, 0xfc00, 0x7e00 },
		{ T3_DTYPE_BF16, 0x3f80, 0x3b80, 0x3f80 },	/* tie */
		{ T3_DTYPE_BF16, 0x3f81, 0x3b80, 0x3f82 },	/* tie */
		{ T3_DTYPE_BF16, 0x7f7f, 0x7b00, 0x7f80 },
		{ T3_DTYPE_BF16, 0x0001, 0x0001, 0x0002 },
		{ T3_DTYPE_BF16, 0x0080, 0x8001, 0x007f },
		{ T3_DTYPE_BF16, 0xff81, 0x3f80, 0x7fc0 },
		{ T3_DTYPE_I32, 0x7fffffff, 1, 0x80000000 },
		{ T3_DTYPE_I32, 0x80000000, 0x80000000, 0 },
	};
	u64 a[8], b[8], dst[8];
	const void *src[] = { a, b };
	const struct t3_reduce *r;
	size_t i;
	u32 n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		u64 x[] = { known[i].a, known[i].b };

		assert_int_equal(ref_sum(known[i].dtype, x, 2), known[i].sum);
		for (n = 0; (r = t3_reduce_nth(n)); n++) {
			put(known[i].dtype, a, 0, known[i].a);
			put(known[i].dtype, b, 0, known[i].b);
			run(r, known[i].dtype, dst, src, 2, 1);
			assert_int_equal(get(known[i].dtype, dst, 0),
					 known[i].sum);
		}
	}
}

/* Each of the 65536 values alone, and with random partners. */
static void test_16_bits_exhaustive(void **state)
{
	static u16 x[65536], y[65536], z[65536], dst[65536];
	const void *src[] = { x, y, z };
	const struct t3_reduce *r;
	u32 dtype, nsrc, i;

	(void)state;
	for (i = 0; i < 65536; i++)
		x[i] = (u16)i;
	FOR_EACH_SUM(r, dtype) {
		if (t3_dtype_size(dtype) != 2)
			continue;
		fill(dtype, y, 65536);
		fill(dtype, z, 65536);
		for (nsrc = 1; nsrc <= 3; nsrc++)
			run_and_expect(r, dtype, dst, src, nsrc, 65536);
	}
}

/* The scalar conversions, also of what no sum of 16-bit numbers can be. */
static void test_narrow_any_f32(void **state)
{
	static const u32 edges[] = {
		0x33000000, 0x33000001, 0x337fffff, 0x33800000, 0x387fffff,
		0x38800000, 0x477fefff, 0x477ff000, 0x47800000, 0x7f7f7fff,
		0x7f7f8000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fffffff,
	};
	u32 i, x;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		double v;

		x = (u32)rnd();
		if (i & 1)	/* an exponent that f16 knows */
			x = (x & 0x8fffffff) | 0x30000000;
		if (i < 2 * ARRAY_SIZE(edges))
			x = edges[i / 2] | i << 31;
		v = ref_decode(&formats[T3_DTYPE_F32], x);
		assert_int_equal(t3_f16_narrow(x),
				 ref_encode(&formats[T3_DTYPE_F16], v));
		assert_int_equal(t3_bf16_narrow(x),
				 ref_encode(&formats[T3_DTYPE_BF16], v));
	}
}

/* Every special with every special. */
static void test_specials_crossed(void **state)
{
	enum { MAX = 64 };
	u64 one[MAX], *a = buffer(MAX * MAX * 8), *b = buffer(MAX * MAX * 8);
	u64 *dst = buffer(MAX * MAX * 8);
	const void *src[] = { a, b };
	const struct t3_reduce *r;
	u32 dtype, n, i;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		const struct format *f = &formats[dtype];
		u64 ulp1 = 1ull << (f->p - 1 + !f->p);
		u64 inf = (u64)(2 * f->emax + 1) * ulp1;
		u64 unity = (u64)f->emax * ulp1;
		u64 sign = f->bits ? 1ull << (f->bits - 1) : 1u << 31;
		const u64 magnitudes[] = {
			0, 1, 2, ulp1 / 2, ulp1 - 1, ulp1, ulp1 + 1, 2 * ulp1,
			unity - 1, unity, unity + 1, unity + ulp1,
			unity - ((u64)f->p - 1) * ulp1,
			unity - (u64)f->p * ulp1, unity - (u64)f->p * ulp1 + 1,
			inf - 1, inf - 2, inf - ulp1, inf - (u64)f->p * ulp1,
			inf - ((u64)f->p + 1) * ulp1, inf, inf + 1,
			inf + ulp1 / 2, inf + ulp1 - 1,
		};

		n = 0;
		for (i = 0; i < ARRAY_SIZE(magnitudes); i++) {
			u64 magnitude = magnitudes[i] & (sign - 1);

			one[n++] = magnitude;
			one[n++] = magnitude | sign;
		}
		for (i = 0; i < n * n; i++) {
			put(dtype, a, i, one[i % n]);
			put(dtype, b, i, one[i / n]);
		}
		run_and_expect(r, dtype, dst, src, 1, n * n);
		run_and_expect(r, dtype, dst, src, 2, n * n);
	}
	free(a);
	free(b);
	free(dst);
}

/* big + small - big is not big - big + small: the order must be kept. */
static void test_order(void **state)
{
	static const u64 big[] = { 0, 0x7f000000, 0x7fe0000000000000, 0x7800,
				   0x7f00, 1 };
	static const u64 one[] = { 0, 0x3f800000, 0x3ff0000000000000, 0x0001,
				   0x3f80, 2 };
	u64 bufs[3][64], dst[64], neg;
	const void *kept[] = { bufs[0], bufs[1], bufs[2] };
	const void *lost[] = { bufs[2], bufs[0], bufs[1] };
	const struct t3_reduce *r;
	u32 dtype, i;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		if (dtype == T3_DTYPE_I32)
			continue;
		neg = big[dtype] | 1ull << (formats[dtype].bits - 1);
		for (i = 0; i < 64; i++) {
			put(dtype, bufs[0], i, big[dtype]);
			put(dtype, bufs[1], i, neg);
			put(dtype, bufs[2], i, one[dtype]);
		}
		run_and_expect(r, dtype, dst, kept, 3, 64);
		assert_int_equal(get(dtype, dst, 63), one[dtype]);
		run_and_expect(r, dtype, dst, lost, 3, 64);
		assert_int_equal(get(dtype, dst, 63), 0);
	}
}

/* Rounded once: each step in f16 or bf16 would lose what f32 keeps. */
static void test_rounded_once(void **state)
{
	u16 one[1] = { 0x3c00 }, half_ulp[1] = { 0x1000 }, dst[1];
	const void *src[] = { one, half_ulp, half_ulp };
	const struct t3_reduce *r;
	u32 n;

	(void)state;
	for (n = 0; (r = t3_reduce_nth(n)); n++) {
		run(r, T3_DTYPE_F16, dst, src, 3, 1);
		assert_int_equal(dst[0], 0x3c01);
	}
	one[0] = 0x3f80;
	half_ulp[0] = 0x3b80;
	for (n = 0; (r = t3_reduce_nth(n)); n++) {
		run(r, T3_DTYPE_BF16, dst, src, 3, 1);
		assert_int_equal(dst[0], 0x3f81);
	}
}

/* Nothing outside dst[0 .. elems) is written, for any length. */
static void test_lengths_and_guards(void **state)
{
	enum { MAX = 300 };
	u8 *a = buffer(MAX * 8), *b = buffer(MAX * 8), *c = buffer(MAX * 8);
	u8 *dst = buffer(MAX * 8 + 2 * GUARD);
	const void *src[] = { a, b, c };
	const struct t3_reduce *r;
	size_t elems, i;
	u32 dtype, nsrc;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		fill(dtype, a, MAX);
		fill(dtype, b, MAX);
		fill(dtype, c, MAX);
		for (elems = 0; elems <= MAX; elems++) {
			size_t end = GUARD + elems * t3_dtype_size(dtype);

			nsrc = 1 + (u32)elems % 3;
			memset(dst, 0xa5, MAX * 8 + 2 * GUARD);
			run_and_expect(r, dtype, dst + GUARD, src, nsrc, elems);
			for (i = 0; i < GUARD; i++)
				assert_int_equal(dst[i], 0xa5);
			for (i = end; i < MAX * 8 + 2 * GUARD; i++)
				assert_int_equal(dst[i], 0xa5);
		}
	}
	free(a);
	free(b);
	free(c);
	free(dst);
}

/*
 * Sources that end where their memory ends: under the address sanitizer a
 * read past the last element is an error.
 */
static void test_reads_stay_inside(void **state)
{
	const struct t3_reduce *r;
	const void *src[2];
	size_t elems, bytes;
	u32 dtype;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		for (elems = 1; elems <= 300; elems++) {
			void *a, *b, *dst;

			bytes = elems * t3_dtype_size(dtype);
			a = malloc(bytes);
			b = malloc(bytes);
			dst = malloc(bytes);
			assert_true(a && b && dst);
			fill(dtype, a, elems);
			fill(dtype, b, elems);
			src[0] = a;
			src[1] = b;
			run_and_expect(r, dtype, dst, src, 2, elems);
			free(a);
			free(b);
			free(dst);
		}
	}
}

/* Every alignment of each buffer to its element within a cache line. */
static void test_alignments(void **state)
{
	enum { N = 150 };
	u8 *a = buffer(N * 8 + 64), *b = buffer(N * 8 + 64);
	u8 *dst = buffer(N * 8 + 64);
	const struct t3_reduce *r;
	u32 dtype, i, j, size;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		size = t3_dtype_size(dtype);
		for (i = 0; i < 64; i += size) {
			for (j = 0; j < 64; j += size) {
				u32 k = (i * 3 + j * 5) % 64 / size * size;
				const void *src[] = { a + i, b + j };
				size_t last = N - 1;

				fill(dtype, a + i, N);
				fill(dtype, b + j, N);
				run(r, dtype, dst + k, src, 2, N);
				expect(r, dtype, dst + k, src, 2, 0);
				expect(r, dtype, dst + k, src, 2, (i + j) % N);
				expect(r, dtype, dst + k, src, 2, last);
			}
		}
	}
	free(a);
	free(b);
	free(dst);
}

/* One NaN among numbers, in every place: the rest must not change. */
static void test_lone_nan(void **state)
{
	enum { N = 300 };
	u64 a[N], b[N], dst[N];
	const void *src[] = { a, b };
	const struct t3_reduce *r;
	u32 dtype, i, j;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		const struct format *f = &formats[dtype];
		u64 unity = f->p ? (u64)f->emax << (f->p - 1) : 1;

		for (i = 0; i < N; i++) {
			for (j = 0; j < N; j++) {
				put(dtype, a, j, unity);
				put(dtype, b, j, unity + j % 100);
			}
			put(dtype, i & 1 ? a : b, i, ~0ull);
			run_and_expect(r, dtype, dst, src, 2, N);
		}
	}
}

/* nsrc 1 to 64, dst elsewhere and at each of the sources. */
static void test_sources_and_aliases(void **state)
{
	enum { N = 333 };
	u8 *bufs[T3_MAX_RANKS], *dst = buffer(N * 8), *kept = buffer(N * 8);
	const void *src[T3_MAX_RANKS];
	const struct t3_reduce *r;
	u32 dtype, nsrc, at;

	(void)state;
	for (at = 0; at < T3_MAX_RANKS; at++) {
		bufs[at] = buffer(N * 8);
		src[at] = bufs[at];
	}
	FOR_EACH_SUM(r, dtype) {
		for (at = 0; at < T3_MAX_RANKS; at++)
			fill(dtype, bufs[at], N);
		for (nsrc = 1; nsrc <= T3_MAX_RANKS; nsrc++) {
			size_t bytes = N * t3_dtype_size(dtype);

			run_and_expect(r, dtype, dst, src, nsrc, N);
			for (at = 0; at < nsrc; at++) {
				memcpy(kept, bufs[at], bytes);
				run(r, dtype, bufs[at], src, nsrc, N);
				assert_memory_equal(bufs[at], dst, bytes);
				memcpy(bufs[at], kept, bytes);
			}
		}
	}
	for (at = 0; at < T3_MAX_RANKS; at++)
		free(bufs[at]);
	free(dst);
	free(kept);
}

/* The same buffer given many times. */
static void test_same_source_twice(void **state)
{
	u64 a[100], dst[100];
	const void *src[] = { a, a, a, a };
	const struct t3_reduce *r;
	u32 dtype;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		fill(dtype, a, 100);
		run_and_expect(r, dtype, dst, src, 4, 100);
	}
}

/* Ten million bit patterns a dtype: all implementations give one answer. */
static void test_implementations_agree(void **state)
{
	enum { N = 4096, NSRC = 5 };
	u8 *bufs[NSRC], *want = buffer(N * 8), *dst = buffer(N * 8);
	const void *src[NSRC];
	const struct t3_reduce *r;
	u64 done, i;
	u32 dtype, n, s;

	(void)state;
	for (s = 0; s < NSRC; s++) {
		bufs[s] = buffer(N * 8);
		src[s] = bufs[s];
	}
	for (dtype = 1; dtype <= T3_DTYPE_COUNT; dtype++) {
		size_t bytes = N * t3_dtype_size(dtype);

		for (done = 0; done < PATTERNS; done += N * NSRC) {
			u32 nsrc = 1 + (u32)(done / (N * NSRC)) % NSRC;

			for (s = 0; s < NSRC; s++)
				for (i = 0; i < bytes / 8; i++)
					((u64 *)bufs[s])[i] = rnd();
			run(t3_reduce_nth(0), dtype, want, src, nsrc, N);
			for (n = 1; (r = t3_reduce_nth(n)); n++) {
				run(r, dtype, dst, src, nsrc, N);
				assert_memory_equal(dst, want, bytes);
			}
		}
		/* And the one answer is right. */
		for (i = 0; i < 20; i++) {
			for (s = 0; s < NSRC; s++)
				fill(dtype, bufs[s], N);
			run_and_expect(t3_reduce_best(), dtype, dst, src,
				       2 + i % 4, N);
		}
	}
	for (s = 0; s < NSRC; s++)
		free(bufs[s]);
	free(want);
	free(dst);
}

#ifdef __x86_64__

/* A caller's rounding and flush modes change no bit, and are given back. */
static void test_modes(void **state)
{
	static const u32 modes[] = {
		0x1f80 | 0x8000,		/* FTZ */
		0x1f80 | 0x0040,		/* DAZ */
		0x1f80 | 0x8040,
		0x1f80 | 0x4000,		/* round up */
		0x1f80 | 0x2000,		/* round down */
		0x1f80 | 0xe040,		/* to zero, FTZ, DAZ */
		0x1f80 | 0x003f,		/* all flags raised */
	};
	enum { N = 5000 };
	u8 *a = buffer(N * 8), *b = buffer(N * 8), *dst = buffer(N * 8);
	u8 *want = buffer(N * 8);
	const void *src[] = { a, b };
	const struct t3_reduce *r;
	u32 dtype, old = __builtin_ia32_stmxcsr(), now;
	size_t i;

	(void)state;
	FOR_EACH_SUM(r, dtype) {
		size_t bytes = N * t3_dtype_size(dtype);

		fill(dtype, a, N);
		fill(dtype, b, N);
		run_and_expect(r, dtype, want, src, 2, N);
		for (i = 0; i < ARRAY_SIZE(modes); i++) {
			__builtin_ia32_ldmxcsr(modes[i]);
			run(r, dtype, dst, src, 2, N);
			now = __builtin_ia32_stmxcsr();
			__builtin_ia32_ldmxcsr(old);
			assert_int_equal(now, modes[i]);
			assert_memory_equal(dst, want, bytes);
		}
	}
	free(a);
	free(b);
	free(dst);
	free(want);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_dtype_size),
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_16_bits_exhaustive),
		cmocka_unit_test(test_narrow_any_f32),
		cmocka_unit_test(test_specials_crossed),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_rounded_once),
		cmocka_unit_test(test_lengths_and_guards),
		cmocka_unit_test(test_reads_stay_inside),
		cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_lone_nan),
		cmocka_unit_test(test_sources_and_aliases),
		cmocka_unit_test(test_same_source_twice),
		cmocka_unit_test(test_implementations_agree),
#ifdef __x86_64__
		cmocka_unit_test(test_modes),
#endif
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
