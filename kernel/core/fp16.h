/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Floating-point formats as bits, by integers only: no mode of the processor
 * has a say.
 */
#ifndef T3_CORE_FP16_H
#define T3_CORE_FP16_H

#include "env.h"

static inline u32 t3_f32_canon(u32 x)
{
	return (x & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : x;
}

static inline u64 t3_f64_canon(u64 x)
{
	return (x & 0x7fffffffffffffffull) > 0x7ff0000000000000ull ?
		0x7ff8000000000000ull : x;
}

/* @x without its low @n bits, 1 <= n <= 31, to the nearest, ties to even. */
static inline u32 t3_round_shift(u32 x, u32 n)
{
	return (x + (1u << (n - 1)) - 1 + (x >> n & 1)) >> n;
}

/* f32's bits to bf16's, to the nearest even; NaN becomes 0x7fc0. */
static inline u16 t3_bf16_narrow(u32 x)
{
	return (u16)t3_round_shift(t3_f32_canon(x), 16);
}

/* f16's bits to f32's, exactly; a NaN keeps its payload. */
static inline u32 t3_f16_widen(u16 h)
{
	u32 sign = (u32)(h & 0x8000) << 16;
	u32 mag = h & 0x7fff;
	u32 lead;

	if (mag >= 0x7c00)		/* Inf, NaN */
		return sign | 0x7f800000 | mag << 13;
	if (mag >= 0x0400)		/* normal: exponent bias 15 to 127 */
		return sign | (mag + (112 << 10)) << 13;
	if (!mag)
		return sign;
	lead = 31 - (u32)__builtin_clz(mag);	/* mag * 2^-24, 2^lead <= mag */
	return sign | (lead + 103) << 23 | (mag << (23 - lead) & 0x7fffff);
}

/* f32's bits to f16's, to the nearest even; NaN becomes 0x7e00. */
static inline u16 t3_f16_narrow(u32 x)
{
	u32 sign = x >> 16 & 0x8000;
	u32 mag = x & 0x7fffffff;
	u32 shift;

	if (mag > 0x7f800000)
		return 0x7e00;
	if (mag >= 0x47800000)		/* 2^16 and more, Inf */
		return (u16)(sign | 0x7c00);
	if (mag >= 0x38800000)		/* normal; may carry up to Inf */
		return (u16)(sign | t3_round_shift(mag - (112u << 23), 13));
	if (mag < 0x33000000)		/* less than half the least, 2^-25 */
		return (u16)sign;
	shift = 126 - (mag >> 23);	/* in units of 2^-24 */
	return (u16)(sign |
		     t3_round_shift((mag & 0x7fffff) | 0x800000, shift));
}

#endif /* T3_CORE_FP16_H */
