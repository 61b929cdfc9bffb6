/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Floating point's second door, beside env.h: who may use the vector
 * registers, in which mode, and what the processor has. The one other file of
 * kernel/core that includes a header from outside it.
 */
#ifndef T3_CORE_FP_ENV_H
#define T3_CORE_FP_ENV_H

#include "env.h"

#ifdef __KERNEL__
#ifdef CONFIG_X86
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#else
#include <asm/neon.h>
#endif
#endif

/**
 * t3_fp_enter - make floating point behave as struct t3_reduce needs it
 *
 * Rounding to nearest even, subnormals neither flushed nor taken for zero, no
 * traps. In user space the modes belong to the calling thread, and a program
 * may have changed them (-ffast-math's start-up code sets FTZ and DAZ): they
 * are saved and set. In the kernel this opens the FPU section, in which the
 * modes are these: no sleep, no fault, preemption is off; 16 KiB of
 * destination at most.
 *
 * Context: user: any. Kernel: where may_use_simd() (arm64) or
 * irq_fpu_usable() (x86) holds; process context always does. Does not nest.
 *
 * Return: what t3_fp_leave() needs.
 */
static inline u64 t3_fp_enter(void);

/**
 * t3_fp_leave - undo t3_fp_enter()
 * @saved: what it returned
 *
 * The exception flags that the sums raised are forgotten too.
 */
static inline void t3_fp_leave(u64 saved);

#ifdef __KERNEL__

static inline u64 t3_fp_enter(void)
{
#ifdef CONFIG_X86
	kernel_fpu_begin();
#else
	kernel_neon_begin();
#endif
	return 0;
}

static inline void t3_fp_leave(u64 saved)
{
#ifdef CONFIG_X86
	kernel_fpu_end();
#else
	kernel_neon_end();
#endif
}

#elif defined(__x86_64__)

#define T3_MXCSR_DEFAULT 0x1f80u /* nearest even, all masked, no FTZ, no DAZ */

static inline u64 t3_fp_enter(void)
{
	u32 mode = T3_MXCSR_DEFAULT, saved;

	/* The memory clobber keeps calls of the sums behind the switch. */
	__asm__ volatile("stmxcsr %0\n\tldmxcsr %1"
			 : "=m" (saved) : "m" (mode) : "memory");
	return saved;
}

static inline void t3_fp_leave(u64 saved)
{
	u32 mode = (u32)saved;

	__asm__ volatile("ldmxcsr %0" : : "m" (mode) : "memory");
}

#elif defined(__aarch64__)

static inline u64 t3_fp_enter(void)
{
	u64 saved;

	__asm__ volatile("mrs %0, fpcr\n\tmsr fpcr, xzr"
			 : "=&r" (saved) : : "memory");
	return saved;
}

static inline void t3_fp_leave(u64 saved)
{
	__asm__ volatile("msr fpcr, %0" : : "r" (saved) : "memory");
}

#else
#error "t3 knows no floating-point modes for this machine"
#endif

/*
 * What the processor has and the operating system saves at a task switch:
 * both, or an instruction faults or loses its registers.
 */
#if defined(__x86_64__) && defined(__KERNEL__)

static inline bool t3_cpu_has_avx2(void)
{
	return boot_cpu_has(X86_FEATURE_AVX2) &&
	       boot_cpu_has(X86_FEATURE_F16C) &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

static inline bool t3_cpu_has_avx512(void)
{
	return boot_cpu_has(X86_FEATURE_AVX512F) &&
	       boot_cpu_has(X86_FEATURE_AVX512BW) &&
	       boot_cpu_has(X86_FEATURE_AVX512VL) &&
	       boot_cpu_has(X86_FEATURE_AVX512DQ) && t3_cpu_has_avx2() &&
	       cpu_has_xfeatures(XFEATURE_MASK_AVX512, NULL);
}

#elif defined(__x86_64__)

static inline bool t3_cpu_leaf(u32 leaf, u32 *ebx, u32 *ecx)
{
	u32 eax = 0, edx;

	*ecx = 0;
	__asm__("cpuid" : "+a" (eax), "=b" (*ebx), "+c" (*ecx), "=d" (edx));
	if (eax < leaf)
		return false;
	eax = leaf;
	*ecx = 0;
	__asm__("cpuid" : "+a" (eax), "=b" (*ebx), "+c" (*ecx), "=d" (edx));
	return true;
}

/* Bits of leaf 1 ECX, leaf 7 EBX and XCR0: Intel SDM volume 2, CPUID. */
static inline bool t3_cpu_has(u32 leaf1_ecx, u32 leaf7_ebx, u32 xcr0)
{
	u32 ebx, ecx, eax, edx;

	if (!t3_cpu_leaf(1, &ebx, &ecx) || (ecx & leaf1_ecx) != leaf1_ecx)
		return false;
	if (!t3_cpu_leaf(7, &ebx, &ecx) || (ebx & leaf7_ebx) != leaf7_ebx)
		return false;
	__asm__("xgetbv" : "=a" (eax), "=d" (edx) : "c" (0));
	return (eax & xcr0) == xcr0;
}

static inline bool t3_cpu_has_avx2(void)
{
	return t3_cpu_has(1u << 27 | 1u << 28 | 1u << 29, /* OSXSAVE AVX F16C */
			  1u << 5,			  /* AVX2 */
			  0x06);			  /* SSE YMM */
}

static inline bool t3_cpu_has_avx512(void)
{
	return t3_cpu_has_avx2() &&
	       t3_cpu_has(1u << 27,
			  1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, /* F DQ BW VL */
			  0xe6);		  /* opmask ZMM_Hi256 Hi16_ZMM */
}

#endif /* __x86_64__ */

#endif /* T3_CORE_FP_ENV_H */
