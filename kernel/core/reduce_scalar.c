// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The sums in plain C: for processors without vectors that we know, and the
 * yardstick of the others.
 */
#include "fp16.h"
#include "reduce_impl.h"

#define ACC_UNIT_MAX	8
#define ACC_BATCH	1

/* One element. The members' use goes by dtype. */
struct acc {
	union {
		float f32;	/* F32, F16, BF16 */
		double f64;	/* F64 */
		u32 u32;	/* I32, and f32's bits */
		u64 u64;	/* f64's bits */
	};
};

static inline size_t acc_unit(const u32 dtype)
{
	return t3_dtype_size(dtype);
}

static inline struct acc acc_load(const u32 dtype, const u8 *p)
{
	switch (dtype) {
	case T3_DTYPE_F64:
		return (struct acc){ .u64 = *(const u64 *)p };
	case T3_DTYPE_F16:
		return (struct acc){ .u32 = t3_f16_widen(*(const u16 *)p) };
	case T3_DTYPE_BF16:
		return (struct acc){ .u32 = (u32)*(const u16 *)p << 16 };
	default:
		return (struct acc){ .u32 = *(const u32 *)p };
	}
}

static inline struct acc acc_add(const u32 dtype, struct acc x, struct acc y)
{
	switch (dtype) {
	case T3_DTYPE_I32:
		return (struct acc){ .u32 = x.u32 + y.u32 };
	case T3_DTYPE_F64:
		return (struct acc){ .f64 = x.f64 + y.f64 };
	default:
		return (struct acc){ .f32 = x.f32 + y.f32 };
	}
}

static inline void acc_store(const u32 dtype, u8 *p, struct acc x)
{
	switch (dtype) {
	case T3_DTYPE_F32:
		*(u32 *)p = t3_f32_canon(x.u32);
		break;
	case T3_DTYPE_F64:
		*(u64 *)p = t3_f64_canon(x.u64);
		break;
	case T3_DTYPE_F16:
		*(u16 *)p = t3_f16_narrow(x.u32);
		break;
	case T3_DTYPE_BF16:
		*(u16 *)p = t3_bf16_narrow(x.u32);
		break;
	default:
		*(u32 *)p = x.u32;
	}
}

#include "reduce_loop.h"

const struct t3_reduce t3_reduce_scalar = {
	.name = "scalar",
	.sum = SUM_TABLE,
};
