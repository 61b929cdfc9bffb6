/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Kernels that send a GEMM's output while the GEMM runs, on a few SMs that they
 * hold: each piece is read once and added into a peer's memory by reductions
 * that the memory carries out: TMA's, or vectors of eight elements.
 *
 * t3_drain follows a GEMM that is launched in bands, each counted by a stream
 * write behind it, or one that counts its tiles itself (t3_device.h). t3_tracker follows one unmodified launch in band: the output
 * was poisoned before with T3_POISON, a bf16 NaN that arithmetic never makes
 * (the hardware's own is 0x7fff), and an element that is not poison any more is
 * final. When the launch has ended (@done) all is final, poison or not: that is
 * the backstop. It needs a producer that stores each element once: beta = 0, no
 * split-K reduction in place.
 *
 * The tracker leaves poison behind for the next epoch, in lines that are still
 * in the cache and dirty: it costs no traffic to memory. So what travelled is
 * no longer in the output afterwards.
 *
 * No wait is unbounded: each ends at @patience_ns, or when *@abort is set.
 */
#ifndef T3_GPU_TRACKER_CUH
#define T3_GPU_TRACKER_CUH

#include <cstdint>

#include <cuda.h>

#define T3_POISON	0xffffffffU	/* two elements */

/* What a warp takes at a time. */
#define T3_TILE_ROWS	64
#define T3_TILE_COLS	128
#define T3_BOX_ROWS	64
#define T3_BOX_COLS	128
#define T3_CHUNK	(T3_BOX_ROWS * T3_BOX_COLS * 2)
#define T3_SLOTS	13
#define T3_UNROLL	8
#define T3_THREADS	1024
/* GEMM kernels come in clusters of 2: leave them whole pairs of SMs. */
#define T3_CLUSTER	2
#define T3_MAX_BANDS	128

/**
 * struct t3_pace - what all of a launch's warps share
 * @ticket: pieces taken so far, in all epochs; grows
 * @first_ticket: its value when the epoch began
 * @link: when the link is free again, in ps of globaltimer; the rate limiter
 * @rate: of the link, in GB/s; 0: no limit
 * @abort: set by the host, or by a warp whose patience ended; never reset by
 *	the device
 * @patience_ns: how long a piece is waited for
 *
 * Written by the host before the launch; what it points to is device memory
 * that the launch shares with the stream and with itself.
 */
struct t3_pace {
	uint32_t *ticket;
	uint32_t first_ticket;
	uint32_t rate;
	unsigned long long *link;
	uint32_t *abort;
	uint64_t patience_ns;
};

/**
 * struct t3_band - a rectangle of the output, one launch of the GEMM
 * @row: its first
 * @col: its first
 * @cols: of the rectangle
 * @chunk: its first chunk (a TMA box), counted over all bands
 * @counter: index of its counter
 * @each: what its counter grows by in an epoch: 1 where a stream writes the
 *	epoch's number behind a launch, else as often as the kernel counts
 */
struct t3_band {
	uint32_t row;
	uint32_t col;
	uint32_t cols;
	uint32_t chunk;
	uint32_t counter;
	uint32_t each;
};

/**
 * struct t3_bands - what t3_drain works on
 * @pace: see there
 * @bands: how many
 * @epoch: this one, of those that the counters have counted
 * @counter: [32 * bands] every 32nd: @epoch * @each when a band was written;
 *	grow
 * @band: [bands + 1] in the order in which the GEMM makes them; of the last
 *	only the chunk counts
 */
struct t3_bands {
	struct t3_pace pace;
	uint32_t bands;
	uint32_t epoch;
	const uint32_t *counter;
	struct t3_band band[T3_MAX_BANDS + 1];
};

/**
 * struct t3_track - what t3_tracker and t3_learn work on
 * @pace: see there
 * @order: [tiles] tiles in the order in which the GEMM finishes them
 * @tiles: how many travel
 * @tile_cols: tiles in a row of tiles
 * @rows: rows of the output
 * @cols: columns of the output; a multiple of 8
 * @output: the output, row-major, without gaps
 * @peer: where it is added, likewise
 * @done: the epoch whose GEMM has ended last; grows
 * @epoch: this one
 * @leave_poison: for the next epoch
 */
struct t3_track {
	struct t3_pace pace;
	const uint32_t *order;
	uint32_t tiles;
	uint32_t tile_cols;
	uint32_t rows;
	uint32_t cols;
	char *output;
	char *peer;
	const uint32_t *done;
	uint32_t epoch;
	uint32_t leave_poison;
};

__device__ static inline uint64_t t3_ns(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

__device__ static inline uint32_t t3_word(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}

__device__ static inline bool t3_word_reached(const uint32_t *p, uint32_t epoch)
{
	return (int32_t)(t3_word(p) - epoch) >= 0;
}

__device__ static inline uint4 t3_read(const char *p)
{
	uint4 v;

	asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "l"(p) : "memory");
	return v;
}

__device__ static inline void t3_write(char *p, uint32_t v)
{
	asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %1, %1, %1};"
		     :: "l"(p), "r"(v) : "memory");
}

/* Eight bf16 sums, rounded to the nearest even, made by the memory. */
__device__ static inline void t3_add(char *p, uint4 v)
{
	asm volatile("red.relaxed.sys.global.add.noftz.v4.bf16x2 [%0], "
		     "{%1, %2, %3, %4};"
		     :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
		     : "memory");
}

/* Is any of eight elements poison? */
__device__ static inline uint32_t t3_is_poison(uint4 v)
{
	return __vcmpeq2(v.x, T3_POISON) | __vcmpeq2(v.y, T3_POISON) |
	       __vcmpeq2(v.z, T3_POISON) | __vcmpeq2(v.w, T3_POISON);
}

/* After a failed look: wait a little. False: the wait is over, for good. */
__device__ static inline bool t3_patient(const struct t3_pace &p, uint64_t since)
{
	if (*(volatile uint32_t *)p.abort)
		return false;
	if (t3_ns() - since > p.patience_ns) {
		atomicExch_system(p.abort, 1);
		return false;
	}
	__nanosleep(100);
	return true;
}

/* Wait for the link: it is free in turn, and never lent in advance. */
__device__ static inline void t3_await_link(const struct t3_pace &p,
					    uint32_t bytes)
{
	unsigned long long now, turn;

	if (!p.rate)
		return;
	now = t3_ns() * 1000;
	atomicMax(p.link, now);
	turn = atomicAdd(p.link, bytes * 1000ULL / p.rate);
	while (t3_ns() * 1000 < turn)
		__nanosleep(32);
}

/* A warp's next piece. */
__device__ static inline uint32_t t3_take(const struct t3_pace &p)
{
	uint32_t i = 0;

	if ((threadIdx.x & 31) == 0)
		i = atomicAdd(p.ticket, 1) - p.first_ticket;
	return __shfl_sync(~0U, i, 0);
}

/* By one lane. */
__device__ static inline bool t3_await_band(const struct t3_bands &t,
					    uint32_t band)
{
	const uint32_t *counter = t.counter + 32 * t.band[band].counter;
	uint64_t since = t3_ns();

	while (!t3_word_reached(counter, t.epoch * t.band[band].each))
		if (!t3_patient(t.pace, since))
			return false;
	return true;
}

__device__ static inline uint32_t t3_smem(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline void t3_box_load(const CUtensorMap *from, uint32_t slot,
					  uint32_t arrived, uint32_t col,
					  uint32_t row)
{
	asm volatile("fence.proxy.async.global;" ::: "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		     :: "r"(arrived), "r"(T3_CHUNK));
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile."
		     "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		     :: "r"(slot), "l"(from), "r"(col), "r"(row), "r"(arrived)
		     : "memory");
}

/* A load from the GPU's own memory ends by itself: no more patience needed. */
__device__ static inline void t3_box_arrives(uint32_t arrived, uint32_t phase)
{
	asm volatile("{\n\t.reg .pred p;\nAGAIN:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
		     "@!p bra AGAIN;\n\t}"
		     :: "r"(arrived), "r"(phase) : "memory");
}

__device__ static inline void t3_box_add(const CUtensorMap *to, uint32_t slot,
					 uint32_t col, uint32_t row)
{
	asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add."
		     "tile.bulk_group [%0, {%1, %2}], [%3];"
		     :: "l"(to), "r"(col), "r"(row), "r"(slot) : "memory");
	asm volatile("cp.async.bulk.commit_group;");
	asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/*
 * A warp, with a slot of shared memory, takes chunks in order: wait for the
 * band, load, wait for the link, add. One lane does all of it.
 */
__global__ void __cluster_dims__(T3_CLUSTER, 1, 1)
__launch_bounds__(32 * T3_SLOTS, 1)
t3_drain(const __grid_constant__ CUtensorMap from,
	 const __grid_constant__ CUtensorMap to,
	 const __grid_constant__ struct t3_bands t)
{
	extern __shared__ __align__(1024) unsigned char slots[];
	__shared__ __align__(8) uint64_t arrived_word[T3_SLOTS];
	uint32_t warp = threadIdx.x / 32, band = 0, phase = 0;
	uint32_t slot = t3_smem(slots) + warp * T3_CHUNK;
	uint32_t arrived = t3_smem(&arrived_word[warp]);

	if (threadIdx.x & 31)
		return;
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(arrived));
	asm volatile("fence.mbarrier_init.release.cluster;");
	for (;;) {
		uint32_t i = atomicAdd(t.pace.ticket, 1) - t.pace.first_ticket;
		uint32_t boxes, row, col;

		if (i >= t.band[t.bands].chunk)
			break;
		while (i >= t.band[band + 1].chunk)
			band++;
		if (!t3_await_band(t, band))
			break;
		i -= t.band[band].chunk;
		boxes = (t.band[band].cols + T3_BOX_COLS - 1) / T3_BOX_COLS;
		row = t.band[band].row + i / boxes * T3_BOX_ROWS;
		col = i % boxes * T3_BOX_COLS;
		t3_box_load(&from, slot, arrived, t.band[band].col + col, row);
		t3_box_arrives(arrived, phase);
		phase ^= 1;
		t3_await_link(t.pace, 2 * T3_BOX_ROWS *
			      min(T3_BOX_COLS, t.band[band].cols - col));
		t3_box_add(&to, slot, t.band[band].col + col, row);
	}
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Hold SMs until *@word reaches @value: to measure what others do without them. */
__global__ void __cluster_dims__(T3_CLUSTER, 1, 1)
__launch_bounds__(T3_THREADS, 1)
t3_hold(const uint32_t *word, uint32_t value, const __grid_constant__ struct t3_pace p)
{
	uint64_t since = t3_ns();

	while (!t3_word_reached(word, value) && t3_patient(p, since))
		__nanosleep(2000);
}

/* A cheap look by a warp: the last columns and a corner of each row. */
__device__ static inline bool t3_seems_poisoned(const struct t3_track &t,
						uint32_t row, uint32_t col)
{
	uint32_t lane = threadIdx.x & 31;
	uint32_t last = min(col + T3_TILE_COLS, t.cols) - 8;
	uint32_t bad = 0;

#pragma unroll
	for (int k = 0; k < T3_TILE_ROWS; k += 32) {
		uint64_t at = (uint64_t)min(row + k + lane, t.rows - 1) * t.cols;

		bad |= t3_is_poison(t3_read(t.output + 2 * (at + last)));
	}
	return __any_sync(~0U, bad);
}

/* Has the launch ended? What is read afterwards is final. */
__device__ static inline bool t3_ended(const struct t3_track &t)
{
	return __any_sync(~0U, t3_word_reached(t.done, t.epoch));
}

/*
 * Read an eighth of a tile (T3_UNROLL pairs of rows) until none of it is
 * poison. False: the wait is over, for good.
 */
__device__ static inline bool t3_read_rows(const struct t3_track &t, uint64_t at,
					   bool inside, uint4 *v, uint64_t since)
{
	bool ended = false;

	for (;;) {
		uint32_t bad = 0;

#pragma unroll
		for (int k = 0; k < T3_UNROLL; k++)
			if (inside)
				v[k] = t3_read(t.output + at + k * 4ULL * t.cols);
#pragma unroll
		for (int k = 0; k < T3_UNROLL; k++)
			if (inside)
				bad |= t3_is_poison(v[k]);
		/* What is read after the end is final, so read it once more. */
		if (ended || !__any_sync(~0U, bad))
			return true;
		ended = t3_ended(t);
		if (!ended && !__all_sync(~0U, t3_patient(t.pace, since)))
			return false;
	}
}

/* A warp takes tiles in order: watch, read, look, add, poison. */
__global__ void __cluster_dims__(T3_CLUSTER, 1, 1)
__launch_bounds__(T3_THREADS, 1)
t3_tracker(const __grid_constant__ struct t3_track t)
{
	uint32_t lane = threadIdx.x & 31;

	for (;;) {
		uint32_t i = t3_take(t.pace), tile, row, col;
		uint64_t since = t3_ns(), at;
		bool inside;

		if (i >= t.tiles)
			return;
		tile = t.order[i];
		row = tile / t.tile_cols * T3_TILE_ROWS;
		col = tile % t.tile_cols * T3_TILE_COLS;
		while (t3_seems_poisoned(t, row, col) && !t3_ended(t))
			if (!__all_sync(~0U, t3_patient(t.pace, since)))
				return;
		if (lane == 0)
			t3_await_link(t.pace, 2 * T3_TILE_ROWS *
				      min(T3_TILE_COLS, t.cols - col));
		__syncwarp();
		col += lane % 16 * 8;
		inside = col < t.cols;
		at = 2 * ((row + lane / 16) * (uint64_t)t.cols + col);
		for (int g = 0; g < T3_TILE_ROWS / 2 / T3_UNROLL; g++) {
			uint4 v[T3_UNROLL];

			if (!t3_read_rows(t, at, inside, v, since))
				return;
#pragma unroll
			for (int k = 0; k < T3_UNROLL; k++)
				if (inside)
					t3_add(t.peer + at + k * 4ULL * t.cols, v[k]);
			if (t.leave_poison && inside) {
#pragma unroll
				for (int k = 0; k < T3_UNROLL; k++)
					t3_write(t.output + at + k * 4ULL * t.cols,
						 T3_POISON);
			}
			at += T3_UNROLL * 4ULL * t.cols;
		}
	}
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
	uint32_t lane = threadIdx.x & 31, left = 0, i;
	uint64_t since = t3_ns();

	for (i = warp; i < t.tiles; i += warps) {
		if (lane == 0)
			stamp[i] = ~0U;
		left++;
	}
	__syncwarp();
	while (left && __all_sync(~0U, t3_ns() - since < t.pace.patience_ns)) {
		for (i = warp; i < t.tiles; i += warps) {
			uint32_t seen = lane ? 0 : stamp[i];

			if (__shfl_sync(~0U, seen, 0) != ~0U)
				continue;
			if (!t3_ended(t) &&
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
