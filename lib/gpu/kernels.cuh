/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plug-ins' kernels: moving within a GPU, ordered sums with the same bits
 * as kernel/core's, and what stands in for stream operations in graphs.
 */
#ifndef T3_GPU_KERNELS_CUH
#define T3_GPU_KERNELS_CUH

#include <linux/t3.h>

#include "names.cuh"
#include "runtime.h"

#define T3_GPU_BLOCKS	16	/* at most: it runs beside a GEMM */
#define T3_GPU_THREADS	512

/* ---- elements: to what they are summed in, and back, rounded once ---- */

struct bf16 {
	typedef float sum;
	uint16_t bits;
};

struct f16 {
	typedef float sum;
	__half value;
};

struct f32 {
	typedef float sum;
	float value;
};

struct f64 {
	typedef double sum;
	double value;
};

struct i32 {
	typedef uint32_t sum;
	uint32_t value;
};

__device__ static inline float widen(bf16 x)
{
	return __uint_as_float((uint32_t)x.bits << 16);
}

__device__ static inline float widen(f16 x)
{
	return __half2float(x.value);
}

__device__ static inline float widen(f32 x)
{
	return x.value;
}

__device__ static inline double widen(f64 x)
{
	return x.value;
}

__device__ static inline uint32_t widen(i32 x)
{
	return x.value;
}

/* A NaN becomes the canonical one, as on every engine. */
__device__ static inline void narrow(bf16 *to, float x)
{
	uint32_t bits = __float_as_uint(x);

	to->bits = x != x ? 0x7fc0 :
			    (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

__device__ static inline void narrow(f16 *to, float x)
{
	to->value = x != x ? __ushort_as_half(0x7e00) : __float2half_rn(x);
}

__device__ static inline void narrow(f32 *to, float x)
{
	to->value = x != x ? __uint_as_float(0x7fc00000) : x;
}

__device__ static inline void narrow(f64 *to, double x)
{
	to->value = x != x ? __longlong_as_double(0x7ff8000000000000LL) : x;
}

__device__ static inline void narrow(i32 *to, uint32_t x)
{
	to->value = x;
}

/* ---- rectangles ---- */

/* As many elements as are loaded at once. */
template <typename T, int N> struct alignas(N * sizeof(T)) pack {
	T e[N];
};

/**
 * sum_rows - to = from[0] + from[1] + ..., in that order
 * @t: the rectangle; whole packs, each aligned to itself
 *
 * A source may be the destination: each thread reads a pack of all before it
 * writes it.
 */
template <typename T, int N>
__global__ static void sum_rows(const struct t3_gpu_transfer t)
{
	typedef pack<T, N> P;
	uint32_t packs = (uint32_t)(t.width / sizeof(P));
	uint32_t all = packs * t.rows;
	uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;

	for (; at < all; at += gridDim.x * blockDim.x) {
		uint32_t row = at / packs, col = at % packs;
		typename T::sum sum[N];
		P p;

		for (uint32_t s = 0; s < t.sources; s++) {
			p = ((const P *)((const char *)t.from[s] +
					 row * t.from_pitch[s]))[col];
			for (int i = 0; i < N; i++)
				sum[i] = s ? sum[i] + widen(p.e[i]) :
					     widen(p.e[i]);
		}
		for (int i = 0; i < N; i++)
			narrow(&p.e[i], sum[i]);
		((P *)((char *)t.to + row * t.pitch))[col] = p;
	}
}

/* Packs of any bits: no sum, so that NaNs keep theirs. */
template <typename P>
__global__ static void move_rows(const struct t3_gpu_transfer t)
{
	uint32_t packs = (uint32_t)(t.width / sizeof(P));
	uint32_t all = packs * t.rows;
	uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;

	for (; at < all; at += gridDim.x * blockDim.x) {
		uint32_t row = at / packs, col = at % packs;

		((P *)((char *)t.to + row * t.pitch))[col] =
			((const P *)((const char *)t.from[0] +
				     row * t.from_pitch[0]))[col];
	}
}

/* ---- words, in graphs: an epoch's number is known when it runs ---- */

__global__ static void begin_epoch(uint32_t *epoch)
{
	if (epoch)
		gpu_store_system(epoch, gpu_load_system(epoch) + 1);
}

/* Bounded by the member's watcher: when the group breaks it sets the words. */
__global__ static void await_word(const uint32_t *word, const uint32_t *epoch)
{
	while (word && (int32_t)(gpu_load_system(word) -
				 gpu_load_system(epoch)) < 0)
		gpu_sleep();
}

__global__ static void write_word(uint32_t *word, const uint32_t *epoch)
{
	if (!word)
		return;
	__threadfence_system();
	gpu_store_system(word, gpu_load_system(epoch));
}

#endif /* T3_GPU_KERNELS_CUH */
