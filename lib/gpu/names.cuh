/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One API by two names: CUDA's and HIP's. T3_GPU_HIP chooses HIP.
 *
 * GPU(MemcpyAsync) is cudaMemcpyAsync or hipMemcpyAsync; VMM(MemMap) is
 * cuMemMap or hipMemMap. What differs by more than its name is below.
 */
#ifndef T3_GPU_NAMES_CUH
#define T3_GPU_NAMES_CUH

#include <stdint.h>

#ifdef T3_GPU_HIP

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define GPU(name)		hip##name
#define VMM(name)		hip##name
#define GPU_NAME		"hip"

#define gpu_mem_prop	hipMemAllocationProp
#define gpu_mem_access	hipMemAccessDesc
#define gpu_mem_handle	hipMemGenericAllocationHandle_t
#define gpu_address	void *

#define GPU_MEM_PINNED		hipMemAllocationTypePinned
#define GPU_MEM_DEVICE		hipMemLocationTypeDevice
#define GPU_MEM_FD		hipMemHandleTypePosixFileDescriptor
#define GPU_MEM_READ_WRITE	hipMemAccessFlagsProtReadWrite
#define GPU_MEM_GRANULE		hipMemAllocationGranularityMinimum
#define gpu_mem_handle_types	requestedHandleType

#define GPU_WAIT_GEQ		hipStreamWaitValueGte
#define gpu_stream_wait(stream, word, value) \
	hipStreamWaitValue32(stream, word, value, GPU_WAIT_GEQ, 0xffffffff)
#define gpu_stream_write(stream, word, value) \
	hipStreamWriteValue32(stream, word, value, 0)

__device__ static inline uint32_t gpu_load_system(const uint32_t *p)
{
	return __hip_atomic_load(p, __ATOMIC_ACQUIRE,
				 __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ static inline void gpu_store_system(uint32_t *p, uint32_t v)
{
	__hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ static inline void gpu_sleep(void)
{
	__builtin_amdgcn_s_sleep(8);
}

#else /* CUDA */

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define GPU(name)		cuda##name
#define VMM(name)		cu##name
#define GPU_NAME		"cuda"

#define gpu_mem_prop	CUmemAllocationProp
#define gpu_mem_access	CUmemAccessDesc
#define gpu_mem_handle	CUmemGenericAllocationHandle
#define gpu_address	CUdeviceptr

#define GPU_MEM_PINNED		CU_MEM_ALLOCATION_TYPE_PINNED
#define GPU_MEM_DEVICE		CU_MEM_LOCATION_TYPE_DEVICE
#define GPU_MEM_FD		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define GPU_MEM_READ_WRITE	CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define GPU_MEM_GRANULE		CU_MEM_ALLOC_GRANULARITY_MINIMUM
#define gpu_mem_handle_types	requestedHandleTypes

#define gpu_stream_wait(stream, word, value) \
	cuStreamWaitValue32((CUstream)(stream), (CUdeviceptr)(word), value, \
			    CU_STREAM_WAIT_VALUE_GEQ)
#define gpu_stream_write(stream, word, value) \
	cuStreamWriteValue32((CUstream)(stream), (CUdeviceptr)(word), value, \
			     CU_STREAM_WRITE_VALUE_DEFAULT)

__device__ static inline uint32_t gpu_load_system(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
		     : "=r"(v) : "l"(p) : "memory");
	return v;
}

__device__ static inline void gpu_store_system(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;"
		     :: "l"(p), "r"(v) : "memory");
}

__device__ static inline void gpu_sleep(void)
{
	__nanosleep(200);
}

#endif /* T3_GPU_HIP */

#endif /* T3_GPU_NAMES_CUH */
