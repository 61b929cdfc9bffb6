/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one loop of all sums. A file that includes this has defined, for its
 * instruction set:
 *
 *	struct acc		the partial sums of one unit's elements
 *	acc_unit(dtype)		bytes of a unit: what one acc_load() reads
 *	acc_load(dtype, p)	one unit, widened to f32 (f64, u32) lanes
 *	acc_add(dtype, a, b)	lane by lane
 *	acc_store(dtype, p, a)	rounded once, NaNs made canonical
 *	ACC_BATCH		units added side by side, so that the latency
 *				of an add does not bound the speed
 *
 * dtype is a constant wherever these are called: their switches cost nothing.
 */
#ifndef T3_CORE_REDUCE_LOOP_H
#define T3_CORE_REDUCE_LOOP_H

#include "reduce.h"

#define T3_INLINE inline __attribute__((always_inline))

/*
 * A batch stays in registers only if its loops are unrolled to the end. That
 * over the sources is where their number is a constant: 4 sources are up to
 * twice as fast so.
 */
#ifdef __clang__
#define T3_UNROLL _Pragma("clang loop unroll(full)")
#define T3_UNROLL_SOME
#else
#define T3_UNROLL _Pragma("GCC unroll 8")
#define T3_UNROLL_SOME _Pragma("GCC unroll 4")
#endif

/*
 * @units units at byte @at. All sources are read before anything is written,
 * so @dst may be any of them.
 */
static T3_INLINE void sum_units(const u32 dtype, const u32 units, u8 *dst,
				const u8 *const *src, const u32 nsrc, size_t at)
{
	const size_t unit = acc_unit(dtype);
	struct acc a[ACC_BATCH];
	u32 s, u;

	T3_UNROLL
	for (u = 0; u < units; u++)
		a[u] = acc_load(dtype, src[0] + at + u * unit);
	T3_UNROLL_SOME
	for (s = 1; s < nsrc; s++) {
		T3_UNROLL
		for (u = 0; u < units; u++)
			a[u] = acc_add(dtype, a[u],
				       acc_load(dtype, src[s] + at + u * unit));
	}
	T3_UNROLL
	for (u = 0; u < units; u++)
		acc_store(dtype, dst + at + u * unit, a[u]);
}

/*
 * The last @rest bytes, less than a unit, by way of a buffer of one unit: the
 * same steps as elsewhere, and nothing read or written past the ends.
 */
static T3_INLINE void sum_rest(const u32 dtype, u8 *dst, const u8 *const *src,
			       u32 nsrc, size_t at, size_t rest)
{
	u64 words[ACC_UNIT_MAX / 8] = { 0 };
	u8 *buf = (u8 *)words;
	struct acc a;
	u32 s;

	memcpy(buf, src[0] + at, rest);
	a = acc_load(dtype, buf);
	for (s = 1; s < nsrc; s++) {
		memcpy(buf, src[s] + at, rest);
		a = acc_add(dtype, a, acc_load(dtype, buf));
	}
	acc_store(dtype, buf, a);
	memcpy(dst + at, buf, rest);
}

static T3_INLINE void sum_n(const u32 dtype, u8 *dst, const u8 *const *src,
			    const u32 nsrc, size_t bytes)
{
	const size_t unit = acc_unit(dtype);
	size_t at = 0;

	for (; bytes - at >= ACC_BATCH * unit; at += ACC_BATCH * unit)
		sum_units(dtype, ACC_BATCH, dst, src, nsrc, at);
	for (; bytes - at >= unit; at += unit)
		sum_units(dtype, 1, dst, src, nsrc, at);
	if (at < bytes)
		sum_rest(dtype, dst, src, nsrc, at, bytes - at);
}

/* The numbers of sources that occur most have a loop of their own. */
static T3_INLINE void sum(const u32 dtype, u8 *dst, const void *const *sources,
			  u32 nsrc, size_t elems)
{
	const u8 *const *src = (const u8 *const *)sources;
	size_t bytes = elems * t3_dtype_size(dtype);

	if (nsrc == 2) {
		const u8 *const two[] = { src[0], src[1] };

		sum_n(dtype, dst, two, 2, bytes);
	} else if (nsrc == 4) {
		const u8 *const four[] = { src[0], src[1], src[2], src[3] };

		sum_n(dtype, dst, four, 4, bytes);
	} else {
		sum_n(dtype, dst, src, nsrc, bytes);
	}
}

#define SUM_OF(dtype, DTYPE)						\
static void sum_##dtype(void *dst, const void *const *src, u32 nsrc,	\
			size_t elems)					\
{									\
	sum(T3_DTYPE_##DTYPE, dst, src, nsrc, elems);			\
}

SUM_OF(f32, F32)
SUM_OF(f64, F64)
SUM_OF(f16, F16)
SUM_OF(bf16, BF16)
SUM_OF(i32, I32)

#define SUM_TABLE {							\
	[T3_DTYPE_F32 - 1] = sum_f32,					\
	[T3_DTYPE_F64 - 1] = sum_f64,					\
	[T3_DTYPE_F16 - 1] = sum_f16,					\
	[T3_DTYPE_BF16 - 1] = sum_bf16,					\
	[T3_DTYPE_I32 - 1] = sum_i32,					\
}

#endif /* T3_CORE_REDUCE_LOOP_H */
