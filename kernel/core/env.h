/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The door of kernel/core to the outside: types, atomics, memory and errno
 * names, for the kernel module and for user space. No other file of
 * kernel/core includes a header of the kernel's or of libc's, but for fp_env.h:
 * the processor's state is a door of its own, which only executors use.
 */
#ifndef T3_CORE_ENV_H
#define T3_CORE_ENV_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>

#else

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#endif /* __KERNEL__ */

#include <linux/t3.h>

/*
 * Atomics of the dataflow machine, on plain u32 and u64 words, so that the
 * same state can lie in kernel memory and in memory that processes share.
 * add, or and cmpxchg are sequentially consistent read-modify-writes; they
 * return the NEW value (add) or the value found (cmpxchg, or). load_sc and
 * store_sc are ordered with them and with each other, in both directions of
 * "I write mine, then read yours".
 */
#ifdef __KERNEL__

#define t3_load(p)		READ_ONCE(*(p))
#define t3_store(p, v)		WRITE_ONCE(*(p), (v))
#define t3_load_acquire(p)	smp_load_acquire(p)
#define t3_store_release(p, v)	smp_store_release((p), (v))
#define t3_fence()		smp_mb()
#define t3_load_sc(p)		({ smp_mb(); READ_ONCE(*(p)); })
#define t3_store_sc(p, v)	smp_store_mb(*(p), (v))

static inline u32 t3_add32(u32 *p, u32 v)
{
	return (u32)atomic_add_return((int)v, (atomic_t *)p);
}

static inline u32 t3_cmpxchg32(u32 *p, u32 old, u32 new)
{
	return cmpxchg(p, old, new);
}

static inline u64 t3_cmpxchg64(u64 *p, u64 old, u64 new)
{
	return cmpxchg64(p, old, new);
}

static inline u64 t3_or64(u64 *p, u64 bits)
{
	return (u64)atomic64_fetch_or((s64)bits, (atomic64_t *)p);
}

#else

#define t3_load(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define t3_store(p, v)		__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define t3_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define t3_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define t3_fence()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define t3_load_sc(p)		__atomic_load_n((p), __ATOMIC_SEQ_CST)
#define t3_store_sc(p, v)	__atomic_store_n((p), (v), __ATOMIC_SEQ_CST)

static inline u32 t3_add32(u32 *p, u32 v)
{
	return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST);
}

static inline u32 t3_cmpxchg32(u32 *p, u32 old, u32 new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return old;
}

static inline u64 t3_cmpxchg64(u64 *p, u64 old, u64 new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return old;
}

static inline u64 t3_or64(u64 *p, u64 bits)
{
	return __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST);
}

#endif /* __KERNEL__ */

/* Bits of a mask that is a power of two less one. */
static inline u32 t3_bits(u32 mask)
{
	return mask ? 32 - (u32)__builtin_clz(mask) : 0;
}

/*
 * In long loops, where the caller may sleep: let others run.
 * In user space the scheduler sees to it.
 */
static inline void t3_relax(void)
{
#ifdef __KERNEL__
	cond_resched();
#endif
}

/* Cyclic order of 32-bit counters: true when a is at or past b. */
static inline bool t3_reached(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

#endif /* T3_CORE_ENV_H */
