/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tile-done for GPU kernels, CUDA's and HIP's: a producer that knows its tiles
 * counts each in its epilogue.
 *
 *	... store the tile ...
 *	__syncthreads();
 *	if (threadIdx.x == 0)
 *		t3_tile_done_device(&tiles[block]);
 *
 * @tiles is the plan's counters as the GPU sees them. They grow; never reset
 * them. A block is produced when its counter reaches epoch * tiles of a block.
 */
#ifndef T3_DEVICE_H
#define T3_DEVICE_H

#if defined(__CUDACC__) || defined(__HIPCC__)

/**
 * t3_tile_done_device - count one tile of a block
 * @counter: the block's counter; memory that all who read it can reach
 *
 * Called by one thread of the work-group, after a barrier behind its stores:
 * the barrier orders the work-group's stores before it, and the fence makes
 * them visible to the whole system before the count is. Pairs with the acquire
 * load of whoever waits for the counter.
 *
 * Context: a kernel, after t3_arm() of the epoch.
 */
__device__ static inline void t3_tile_done_device(unsigned int *counter)
{
	__threadfence_system();
#if defined(__HIPCC__) && !defined(__CUDACC__)
	__hip_atomic_fetch_add(counter, 1U, __ATOMIC_RELEASE,
			       __HIP_MEMORY_SCOPE_SYSTEM);
#else
	asm volatile("red.release.sys.global.add.u32 [%0], 1;"
		     :: "l"(counter) : "memory");
#endif
}

#endif /* __CUDACC__ || __HIPCC__ */

#endif /* T3_DEVICE_H */
