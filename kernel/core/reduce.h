/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reductions: what a trigger does to its destination's elements.
 */
#ifndef T3_CORE_REDUCE_H
#define T3_CORE_REDUCE_H

#include "env.h"

/**
 * struct t3_reduce - one implementation of the sums, for one instruction set
 * @name: "scalar", "avx2", "avx512"
 * @sum: destination = the sum of the sources, indexed by T3_DTYPE_* - 1
 *
 * Constant after start: anybody may read it.
 *
 * sum[dtype - 1](dst, src, nsrc, elems): dst[i] = src[0][i] + src[1][i] + ...
 * in the order listed, accumulated in f32 (f64 for f64, modulo 2^32 for i32)
 * and rounded once to nearest even. NaN results are the canonical quiet NaN
 * with a clear sign (f32 0x7fc00000, f64 0x7ff8000000000000, f16 0x7e00,
 * bf16 0x7fc0), overflow is Inf, subnormals are kept. One source goes through
 * the same steps (so its NaNs become canonical). All implementations give the
 * same bits. dst and the sources are aligned to their element. dst may be the
 * very same address as any of the sources, wherever it stands in the list;
 * any other overlap is the caller's fault. 1 <= nsrc <= T3_MAX_RANKS.
 *
 * Context: no fault, no sleep. In the kernel the caller is inside one FPU
 * section (16 KiB of destination at most); in user space the caller has set
 * rounding and flush modes (see t3_fp_enter() in fp_env.h).
 */
struct t3_reduce {
	const char *name;
	void (*sum[T3_DTYPE_COUNT])(void *dst, const void *const *src,
				    u32 nsrc, size_t elems);
};

/**
 * t3_dtype_size - bytes of one element
 * @dtype: T3_DTYPE_*
 *
 * Return: 2, 4 or 8; 0 where @dtype is none of T3_DTYPE_*.
 */
static inline u32 t3_dtype_size(u32 dtype)
{
	switch (dtype) {
	case T3_DTYPE_F64:
		return 8;
	case T3_DTYPE_F32:
	case T3_DTYPE_I32:
		return 4;
	case T3_DTYPE_F16:
	case T3_DTYPE_BF16:
		return 2;
	default:
		return 0;
	}
}

/**
 * t3_reduce_best - the fastest implementation that this processor runs
 *
 * Looks at the processor and the operating system's saved state once; cheap
 * enough to call again. Every call gives the same answer on one machine.
 */
const struct t3_reduce *t3_reduce_best(void);

/**
 * t3_reduce_nth - every implementation that this processor runs, for tests
 * @n: 0, 1, 2 ...: scalar first, the best last
 *
 * Return: the implementation, or NULL past the last.
 */
const struct t3_reduce *t3_reduce_nth(u32 n);

#endif /* T3_CORE_REDUCE_H */
