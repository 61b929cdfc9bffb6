/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sums on vectors of ACC_UNIT_MAX bytes, in the compilers' vector extensions:
 * no header of intrinsics is needed, which in the kernel drag libc in. A file
 * that includes this has defined ACC_UNIT_MAX and ACC_BATCH, and has switched
 * the instruction set on.
 */
#ifndef T3_CORE_REDUCE_VEC_H
#define T3_CORE_REDUCE_VEC_H

#include "env.h"

typedef u16 v_u16 __attribute__((vector_size(ACC_UNIT_MAX)));
typedef u32 v_u32 __attribute__((vector_size(ACC_UNIT_MAX)));
typedef u64 v_u64 __attribute__((vector_size(ACC_UNIT_MAX)));
typedef float v_f32 __attribute__((vector_size(ACC_UNIT_MAX)));
typedef double v_f64 __attribute__((vector_size(ACC_UNIT_MAX)));

/* As many 16-bit lanes as v_f32 has lanes: the f16 of one. */
typedef u16 v_half __attribute__((vector_size(ACC_UNIT_MAX / 2)));

/* The same in memory: aligned to its element only, of whatever type. */
typedef v_u32 v_u32_mem __attribute__((aligned(2), may_alias));
typedef v_half v_half_mem __attribute__((aligned(2), may_alias));

/*
 * Bits; a cast gives them their type. A unit of 16-bit elements takes two
 * vectors: f16 its first and second half, bf16 its even and odd elements,
 * which are the low and high halves of 32-bit words and need no shuffle.
 */
struct acc {
	v_u32 a, b;
};

static inline size_t acc_unit(const u32 dtype)
{
	(void)dtype;
	return ACC_UNIT_MAX;
}

/*
 * The few instructions that the extensions cannot name are in assembly: the
 * builtins' names differ between compilers.
 *
 * The conversions ignore FTZ; DAZ only makes zero of f32 subnormals, which are
 * zero in f16 anyway. Immediate 0: to nearest even, whatever MXCSR says.
 */
static inline v_u32 f16_widen(const void *p)
{
	v_half h = *(const v_half_mem *)p;
	v_f32 f;

	__asm__("vcvtph2ps %1, %0" : "=v" (f) : "v" (h));
	return (v_u32)f;
}

static inline void f16_narrow(void *p, v_u32 f)
{
	v_half h;

	__asm__("vcvtps2ph $0, %1, %0" : "=v" (h) : "v" ((v_f32)f));
	*(v_half_mem *)p = h;
}

/* x - y in 16-bit lanes, or 0 where y is greater. */
static inline v_u32 sub_floor_u16(v_u32 x, v_u32 y)
{
	__asm__("vpsubusw %1, %0, %0" : "+v" (x) : "v" (y));
	return x;
}

/* Whether any f32 lane of @x or @y is a NaN. */
static inline bool any_nan(struct acc x)
{
	bool nan;

#if ACC_UNIT_MAX == 64
	__asm__("vcmpunordps %2, %1, %%k1\n\tkortestw %%k1, %%k1"
		: "=@ccnz" (nan) : "v" ((v_f32)x.a), "v" ((v_f32)x.b) : "k1");
#else
	v_f32 lanes;

	__asm__("vcmpunordps %3, %2, %1\n\tvtestps %1, %1"
		: "=@ccnz" (nan), "=x" (lanes)
		: "x" ((v_f32)x.a), "x" ((v_f32)x.b));
#endif
	return nan;
}

static inline v_u32 canon_f32(v_u32 x)
{
	v_u32 number = (v_u32)((v_f32)x == (v_f32)x);

	return (x & number) | (0x7fc00000u & ~number);
}

static inline v_u32 canon_f64(v_u32 x)
{
	v_u64 number = (v_u64)((v_f64)x == (v_f64)x);

	return (v_u32)(((v_u64)x & number) |
		       (0x7ff8000000000000ull & ~number));
}

/*
 * To 16 bits, where making NaNs canonical costs as much as all the rest: they
 * are looked for, and rare.
 */
static inline struct acc canon_if_nan(struct acc x)
{
	if (unlikely(any_nan(x))) {
		x.a = canon_f32(x.a);
		x.b = canon_f32(x.b);
	}
	return x;
}

/*
 * f32 to the nearest even bf16, all of a unit at once in 16-bit lanes: what
 * stays, and what is cut off, which rounds up when above 0x8000 - (odd ? 1 : 0).
 * Integers, because the processor's own instruction would flush subnormals.
 */
static inline v_u32 bf16_round(struct acc x)
{
	v_u32 kept = x.a >> 16 | (x.b & 0xffff0000u);
	v_u32 cut = (x.a & 0xffffu) | x.b << 16;
	v_u32 even = ~kept & 0x00010001u;
	v_u16 up = (v_u16)sub_floor_u16(cut, even) >> 15;

	return (v_u32)((v_u16)kept + up);
}

static inline struct acc acc_load(const u32 dtype, const u8 *p)
{
	v_u32 x = *(const v_u32_mem *)p;

	switch (dtype) {
	case T3_DTYPE_F16:
		return (struct acc){
			f16_widen(p),
			f16_widen(p + ACC_UNIT_MAX / 2),
		};
	case T3_DTYPE_BF16:
		return (struct acc){ x << 16, x & 0xffff0000u };
	default:
		return (struct acc){ x, x };
	}
}

static inline struct acc acc_add(const u32 dtype, struct acc x, struct acc y)
{
	switch (dtype) {
	case T3_DTYPE_I32:
		x.a += y.a;
		break;
	case T3_DTYPE_F64:
		x.a = (v_u32)((v_f64)x.a + (v_f64)y.a);
		break;
	default:
		x.a = (v_u32)((v_f32)x.a + (v_f32)y.a);
		x.b = (v_u32)((v_f32)x.b + (v_f32)y.b);
	}
	return x;
}

static inline void acc_store(const u32 dtype, u8 *p, struct acc x)
{
	switch (dtype) {
	case T3_DTYPE_F32:
		*(v_u32_mem *)p = canon_f32(x.a);
		break;
	case T3_DTYPE_F64:
		*(v_u32_mem *)p = canon_f64(x.a);
		break;
	case T3_DTYPE_F16:
		x = canon_if_nan(x);
		f16_narrow(p, x.a);
		f16_narrow(p + ACC_UNIT_MAX / 2, x.b);
		break;
	case T3_DTYPE_BF16:
		*(v_u32_mem *)p = bf16_round(canon_if_nan(x));
		break;
	default:
		*(v_u32_mem *)p = x.a;
	}
}

#endif /* T3_CORE_REDUCE_VEC_H */
