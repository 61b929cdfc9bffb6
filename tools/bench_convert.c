// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Values of the dtypes, and the one rounding of a product that was computed in
 * f32.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "bench.h"

/* Finite values only. To the nearest, ties to even. */
static inline uint16_t bf16_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* f16's least exponents; a double holds the value and all steps exactly. */
static uint16_t f16_of(double x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double magnitude = fabs(x), unit;
	int exponent;

	if (magnitude >= 65520)
		return sign | 0x7c00;
	if (!magnitude)
		return sign;
	frexp(magnitude, &exponent);
	if (exponent < -13)
		exponent = -13;
	unit = ldexp(1, exponent - 11);
	/* carries by itself into the exponent */
	return sign + (uint16_t)((exponent + 13) * 1024 +
				 (int)rint(magnitude / unit));
}

__attribute__((target_clones("avx2", "default")))
static void narrow_bf16(uint16_t *to, const float *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = bf16_of(from[i]);
}

__attribute__((target("avx2,f16c")))
static size_t narrow_f16_f16c(uint16_t *to, const float *from, size_t n)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(to + i),
				 _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
						 _MM_FROUND_TO_NEAREST_INT));
	return i;
}

static void narrow_f16(uint16_t *to, const float *from, size_t n)
{
	size_t i = 0;

	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
		i = narrow_f16_f16c(to, from, n);
	for (; i < n; i++)
		to[i] = f16_of(from[i]);
}

/**
 * bench_narrow - round f32 to f16 or bf16, to the nearest, ties to even
 * @dtype: T3_DTYPE_F16 or T3_DTYPE_BF16
 * @from: finite
 */
void bench_narrow(uint32_t dtype, uint16_t *to, const float *from, size_t n)
{
	if (dtype == T3_DTYPE_BF16)
		narrow_bf16(to, from, n);
	else
		narrow_f16(to, from, n);
}

static double load_f16(uint16_t h)
{
	int exponent = h >> 10 & 31;
	double x = h & 1023;

	if (exponent == 31)
		x = x ? NAN : INFINITY;
	else if (exponent)
		x = ldexp(x + 1024, exponent - 25);
	else
		x = ldexp(x, -24);
	return h & 0x8000 ? -x : x;
}

/* An element as a double: exact for every dtype. */
double bench_load(uint32_t dtype, const void *from, size_t index)
{
	uint32_t bits;
	float f;

	switch (dtype) {
	case T3_DTYPE_F64:
		return ((const double *)from)[index];
	case T3_DTYPE_F32:
		return ((const float *)from)[index];
	case T3_DTYPE_I32:
		return ((const int32_t *)from)[index];
	case T3_DTYPE_F16:
		return load_f16(((const uint16_t *)from)[index]);
	default:
		bits = (uint32_t)((const uint16_t *)from)[index] << 16;
		memcpy(&f, &bits, 4);
		return f;
	}
}

/**
 * bench_store - an element from a double, rounded once from f32
 * @value: finite; for f16 and bf16 a value of f32; for i32 an integer
 */
void bench_store(uint32_t dtype, void *to, size_t index, double value)
{
	switch (dtype) {
	case T3_DTYPE_F64:
		((double *)to)[index] = value;
		break;
	case T3_DTYPE_F32:
		((float *)to)[index] = (float)value;
		break;
	case T3_DTYPE_I32:
		((uint32_t *)to)[index] = (uint32_t)(int64_t)value;
		break;
	case T3_DTYPE_F16:
		((uint16_t *)to)[index] = f16_of(value);
		break;
	default:
		((uint16_t *)to)[index] = bf16_of((float)value);
	}
}

/* The value of the dtype that bench_store() would store. */
double bench_round(uint32_t dtype, double value)
{
	uint64_t bits = 0;

	bench_store(dtype, &bits, 0, value);
	return bench_load(dtype, &bits, 0);
}
