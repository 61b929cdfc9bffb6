// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The sums for AVX2. Sparse knows no vectors.
 */
#if defined(__x86_64__) && !defined(__CHECKER__)

#define ACC_UNIT_MAX	32
#define ACC_BATCH	4

#include "reduce_vec.h"
#include "reduce_loop.h"
#include "reduce_impl.h"

const struct t3_reduce t3_reduce_avx2 = {
	.name = "avx2",
	.sum = SUM_TABLE,
};

#endif
