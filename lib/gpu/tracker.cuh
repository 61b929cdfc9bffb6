/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * In-band tracking on Hopper: a few SMs watch the output of one unmodified
 * GEMM launch, and add each finished tile into a peer's memory by TMA.
 *
 * The output was poisoned before with T3_POISON, a bf16 NaN that arithmetic
 * never makes (the hardware's own is 0x7fff). A tile is finished when no
 * element of it is poison any more; that is looked at for all of its elements,
 * in the very bytes that are then added. When the launch has ended (@done) all
 * is final, poison or not: that is the backstop.
 *
 * It needs a producer that stores each element once: beta = 0, no split-K
 * reduction in place.
 */
#ifndef T3_GPU_TRACKER_CUH
#define T3_GPU_TRACKER_CUH

#include <cstdint>

#include <cuda.h>

#define T3_POISON	0xffffU

/* A tracker's tile: one TMA box, and one slot of shared memory. */
#define T3_TILE_ROWS	64
#define T3_TILE_COLS	128
#define T3_TILE_BYTES	(T3_TILE_ROWS * T3_TILE_COLS * 2)
#define T3_SLOTS	13	/* warps of a block, each with a slot */
#define T3_TRACKER_SMEM	(T3_SLOTS * T3_TILE_BYTES)
/* GEMM kernels come in clusters of 2: leave them whole pairs of SMs. */
#define T3_CLUSTER	2

/**
 * struct t3_track - what a tracker's launch works on
 * @order: [tiles] tiles in the order in which the GEMM finishes them
 * @tiles: how many travel
 * @tile_cols: tiles in a row of tiles
 * @rows: rows of the output
 * @cols: columns of the output
 * @output: the output, row-major, without gaps
 * @done: the epoch whose GEMM has ended last; grows
 * @epoch: this one
 * @ticket: tiles taken so far, in all epochs; grows
 * @first_ticket: its value when the epoch began
 * @link: when the link is free again, in ns of globaltimer; the rate limiter
 * @tile_ps: how long a tile keeps the link busy, in ps; 0: no limit
 *
 * Written by the host before the launch; @done, @ticket and @link point to
 * device memory that the launch shares with the stream and with itself.
 */
struct t3_track {
	const uint32_t *order;
	uint32_t tiles;
	uint32_t tile_cols;
	uint32_t rows;
	uint32_t cols;
	const uint16_t *output;
	const uint32_t *done;
	uint32_t epoch;
	uint32_t *ticket;
	uint32_t first_ticket;
	unsigned long long *link;
	uint32_t tile_ps;
};

__device__ static inline uint32_t t3_smem(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline uint64_t t3_ns(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

__device__ static inline bool t3_ended(const struct t3_track &t)
{
	uint32_t done;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
		     : "=r"(done) : "l"(t.done));
	return (int32_t)(done - t.epoch) >= 0;
}

__device__ static inline uint16_t t3_peek(const struct t3_track &t,
					  uint32_t row, uint32_t col)
{
	uint16_t v;

	row = min(row, t.rows - 1);
	col = min(col, t.cols - 1);
	asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];"
		     : "=h"(v) : "l"(t.output + (size_t)row * t.cols + col));
	return v;
}

/* A cheap look by a warp: corners of the tile, the last columns of its rows. */
__device__ static inline bool t3_seems_poisoned(const struct t3_track &t,
						uint32_t row, uint32_t col)
{
	uint32_t lane = threadIdx.x & 31;
	uint32_t last = col + T3_TILE_COLS - 1;
	bool bad = t3_peek(t, row + lane, last) == T3_POISON ||
		   t3_peek(t, row + lane + 32, last) == T3_POISON ||
		   t3_peek(t, row + lane, col + (lane & 1) * 64) == T3_POISON;

	return __any_sync(~0U, bad);
}

/* Look at every element of a tile in shared memory. */
__device__ static inline bool t3_is_poisoned(const uint4 *slot)
{
	uint32_t lane = threadIdx.x & 31;
	uint32_t bad = 0;

#pragma unroll 8
	for (int i = 0; i < T3_TILE_BYTES / 16 / 32; i++) {
		uint4 v = slot[i * 32 + lane];

		bad |= __vcmpeq2(v.x, ~0U) | __vcmpeq2(v.y, ~0U) |
		       __vcmpeq2(v.z, ~0U) | __vcmpeq2(v.w, ~0U);
	}
	return __any_sync(~0U, bad != 0);
}

__device__ static inline void t3_load_tile(const CUtensorMap *from, void *slot,
					   uint64_t *arrived, uint32_t col,
					   uint32_t row)
{
	asm volatile("fence.proxy.async.global;" ::: "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		     :: "r"(t3_smem(arrived)), "r"(T3_TILE_BYTES));
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile."
		     "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		     :: "r"(t3_smem(slot)), "l"(from), "r"(col), "r"(row),
			"r"(t3_smem(arrived)) : "memory");
}

__device__ static inline void t3_await_tile(uint64_t *arrived, uint32_t phase)
{
	asm volatile("{\n\t.reg .pred p;\nAGAIN:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
		     "@!p bra AGAIN;\n\t}"
		     :: "r"(t3_smem(arrived)), "r"(phase) : "memory");
}

__device__ static inline void t3_add_tile(const CUtensorMap *to, void *slot,
					  uint32_t col, uint32_t row)
{
	asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add."
		     "tile.bulk_group [%0, {%1, %2}], [%3];"
		     :: "l"(to), "r"(col), "r"(row), "r"(t3_smem(slot))
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;");
}

/* Wait for the link: it is free in turn, and never lent in advance. */
__device__ static inline void t3_await_link(const struct t3_track &t)
{
	unsigned long long now = t3_ns() * 1000, turn;

	if (!t.tile_ps)
		return;
	atomicMax(t.link, now);
	turn = atomicAdd(t.link, (unsigned long long)t.tile_ps);
	while (t3_ns() * 1000 < turn)
		__nanosleep(32);
}

/* A warp takes tiles in order: watch, load, look, add. */
__global__ void __cluster_dims__(T3_CLUSTER, 1, 1)
__launch_bounds__(32 * T3_SLOTS, 1)
t3_tracker(const __grid_constant__ CUtensorMap from,
	   const __grid_constant__ CUtensorMap to,
	   const __grid_constant__ struct t3_track t)
{
	extern __shared__ __align__(1024) unsigned char slots[];
	__shared__ __align__(8) uint64_t arrived[T3_SLOTS];
	uint32_t warp = threadIdx.x / 32, lane = threadIdx.x & 31;
	unsigned char *slot = slots + warp * T3_TILE_BYTES;
	uint32_t phase = 0;

	if (lane == 0) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
			     :: "r"(t3_smem(&arrived[warp])));
		asm volatile("fence.mbarrier_init.release.cluster;");
	}
	__syncwarp();
	for (;;) {
		uint32_t i = lane ? 0 : atomicAdd(t.ticket, 1) - t.first_ticket;
		uint32_t tile, row, col;
		bool ended = false;

		i = __shfl_sync(~0U, i, 0);
		if (i >= t.tiles)
			break;
		tile = t.order[i];
		row = tile / t.tile_cols * T3_TILE_ROWS;
		col = tile % t.tile_cols * T3_TILE_COLS;
		for (;;) {
			/* Ended is read first: what is seen then is final. */
			ended = __any_sync(~0U, t3_ended(t));
			if (!ended && t3_seems_poisoned(t, row, col)) {
				__nanosleep(200);
				continue;
			}
			if (lane == 0)
				t3_load_tile(&from, slot, &arrived[warp], col, row);
			t3_await_tile(&arrived[warp], phase);
			phase ^= 1;
			if (ended || !t3_is_poisoned((const uint4 *)slot))
				break;
			__nanosleep(200);
		}
		if (lane == 0) {
			t3_await_link(t);
			t3_add_tile(&to, slot, col, row);
			asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
		}
		__syncwarp();
	}
	if (lane == 0)
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/*
 * One epoch of watching only: when is each tile complete? Warps go over all
 * tiles in turn and stamp them.
 */
__global__ void __cluster_dims__(T3_CLUSTER, 1, 1)
t3_learn(const __grid_constant__ struct t3_track t, uint32_t *stamp)
{
	uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	uint32_t warps = gridDim.x * blockDim.x / 32;
	uint32_t lane = threadIdx.x & 31;
	uint32_t left = 0, i;

	for (i = warp; i < t.tiles; i += warps) {
		if (lane == 0)
			stamp[i] = ~0U;
		left++;
	}
	__syncwarp();
	while (left) {
		for (i = warp; i < t.tiles; i += warps) {
			uint32_t seen = lane ? 0 : stamp[i];
			bool ended;

			if (__shfl_sync(~0U, seen, 0) != ~0U)
				continue;
			ended = __any_sync(~0U, t3_ended(t));
			if (!ended &&
			    t3_seems_poisoned(t, i / t.tile_cols * T3_TILE_ROWS,
					      i % t.tile_cols * T3_TILE_COLS))
				continue;
			if (lane == 0)
				stamp[i] = (uint32_t)t3_ns() & 0x7fffffff;
			__syncwarp();
			left--;
		}
	}
}

#endif /* T3_GPU_TRACKER_CUH */
