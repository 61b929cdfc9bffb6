/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The implementations of the sums, for reduce.c to choose from.
 */
#ifndef T3_CORE_REDUCE_IMPL_H
#define T3_CORE_REDUCE_IMPL_H

#include "reduce.h"

extern const struct t3_reduce t3_reduce_scalar;
#ifdef __x86_64__
extern const struct t3_reduce t3_reduce_avx2;
extern const struct t3_reduce t3_reduce_avx512;
#endif

#endif /* T3_CORE_REDUCE_IMPL_H */
