/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worked example of <t3_device.h>: a bf16 GEMM for Hopper that counts each
 * tile when it is in memory. C = A B, all row-major.
 *
 * One launch stays on the SMs that it is given and makes tiles in the order in
 * which they are to travel. One warp keeps shared memory filled by TMA; two
 * warpgroups multiply, 64 rows each; two more warps store tiles by TMA while the
 * next are multiplied, and count each when it is in memory.
 *
 * For sm_90a. A's and B's rows are multiples of 16 bytes; C's too.
 */
#ifndef T3_GEMM_CUH
#define T3_GEMM_CUH

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>

#include <t3_device.h>

#define GEMM_ROWS	128	/* of a tile */
#define GEMM_COLS	256
#define GEMM_DEPTH	64	/* of a stage */
#define GEMM_STAGES	3
#define GEMM_THREADS	384	/* a warpgroup that loads, two that multiply */
#define GEMM_A_BYTES	(GEMM_ROWS * GEMM_DEPTH * 2)
#define GEMM_B_BYTES	(GEMM_DEPTH * GEMM_COLS * 2)
#define GEMM_B_PART	(GEMM_DEPTH * 64 * 2)	/* 64 columns */
#define GEMM_C_PART	(64 * 64 * 2)
#define GEMM_C_BYTES	(GEMM_ROWS * GEMM_COLS * 2)
#define GEMM_SHARED	(GEMM_STAGES * (GEMM_A_BYTES + GEMM_B_BYTES) + \
			 GEMM_C_BYTES + 1024)
#define GEMM_COUNTS	2	/* of a tile: one by each warpgroup */

/**
 * struct gemm_args - what is multiplied, and who is told
 * @depth: columns of A
 * @cols: columns of C
 * @tile_rows: rows of tiles
 * @tile_cols: columns of tiles
 * @group: tile rows that are made together, so that B is read from the cache
 * @chunk: tile columns of a band: @group by @chunk tiles are made in a row
 * @count_rows: tile rows, from the first, that are counted
 * @counters: of the bands, in the order in which they are made; NULL: none
 * @apart: words from one to the next
 */
struct gemm_args {
	uint32_t depth;
	uint32_t cols;
	uint32_t tile_rows;
	uint32_t tile_cols;
	uint32_t group;
	uint32_t chunk;
	uint32_t count_rows;
	uint32_t *counters;
	uint32_t apart;
};

/* A tile: where it is, and of which band. */
struct gemm_tile {
	uint32_t row, col, band;
};

/* Bands of a group of rows, one behind the other; of a band by columns. */
__host__ __device__ static inline struct gemm_tile
gemm_tile_at(const struct gemm_args &g, uint32_t i)
{
	uint32_t per_group = g.group * g.tile_cols;
	uint32_t chunks = (g.tile_cols + g.chunk - 1) / g.chunk;
	uint32_t group = i / per_group, left = i % per_group;
	uint32_t first = group * g.group;
	uint32_t rows = g.tile_rows - first < g.group ? g.tile_rows - first :
							g.group;
	uint32_t chunk = left / (rows * g.chunk);
	struct gemm_tile t;

	left -= chunk * rows * g.chunk;
	t.row = first + left % rows;
	t.col = chunk * g.chunk + left / rows;
	t.band = group * chunks + chunk;
	return t;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ static inline uint32_t gemm_smem(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline void gemm_wait(uint32_t barrier, uint32_t parity)
{
	asm volatile("{\n\t.reg .pred p;\nAGAIN:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
		     "@!p bra AGAIN;\n\t}"
		     :: "r"(barrier), "r"(parity) : "memory");
}

__device__ static inline void gemm_load(uint32_t to, const CUtensorMap *from,
					uint32_t x, uint32_t y, uint32_t barrier)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile."
		     "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		     :: "r"(to), "l"(from), "r"(x), "r"(y), "r"(barrier)
		     : "memory");
}

/*
 * Shared memory as wgmma is told of it: 128-byte swizzle; @lead is the distance
 * of 64 columns from the next where columns lie next to each other, @stride
 * that of 8 rows from the next.
 */
__device__ static inline uint64_t gemm_matrix(uint32_t at, uint32_t lead,
					      uint32_t stride)
{
	return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(lead >> 4) << 16 |
	       (uint64_t)(stride >> 4) << 32 | 1ULL << 62;
}

/* d (64 by 256) = a (64 by 16) b (16 by 256), or += where @add. */
__device__ static inline void gemm_multiply(float *d, uint64_t a, uint64_t b,
					    uint32_t add)
{
	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.b32 p, %130, 0;\n\t"
		     "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
		     "%0, %1, %2, %3, %4, %5, %6, %7, "
		     "%8, %9, %10, %11, %12, %13, %14, %15, "
		     "%16, %17, %18, %19, %20, %21, %22, %23, "
		     "%24, %25, %26, %27, %28, %29, %30, %31, "
		     "%32, %33, %34, %35, %36, %37, %38, %39, "
		     "%40, %41, %42, %43, %44, %45, %46, %47, "
		     "%48, %49, %50, %51, %52, %53, %54, %55, "
		     "%56, %57, %58, %59, %60, %61, %62, %63, "
		     "%64, %65, %66, %67, %68, %69, %70, %71, "
		     "%72, %73, %74, %75, %76, %77, %78, %79, "
		     "%80, %81, %82, %83, %84, %85, %86, %87, "
		     "%88, %89, %90, %91, %92, %93, %94, %95, "
		     "%96, %97, %98, %99, %100, %101, %102, %103, "
		     "%104, %105, %106, %107, %108, %109, %110, %111, "
		     "%112, %113, %114, %115, %116, %117, %118, %119, "
		     "%120, %121, %122, %123, %124, %125, %126, %127"
		     "}, %128, %129, p, 1, 1, 0, 1;\n\t}"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
		       "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
		       "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
		       "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
		       "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
		       "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
		       "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
		       "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
		       "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
		       "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
		       "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
		       "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
		       "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
		       "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
		       "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
		       "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
		       "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]),
		       "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
		       "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]),
		       "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
		       "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
		       "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
		       "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
		       "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
		       "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
		       "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
		       "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]),
		       "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
		       "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
		       "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
		       "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]),
		       "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
		     : "l"(a), "l"(b), "r"(add));
}

__device__ static inline uint32_t gemm_pair(float x, float y)
{
	__nv_bfloat162 v = __floats2bfloat162_rn(x, y);

	return *(uint32_t *)&v;
}

/**
 * struct gemm_room - a block's shared memory
 * @a: [GEMM_STAGES]
 * @b: [GEMM_STAGES] four parts of 64 columns
 * @c: [2][4] 64 by 64
 * @full: [GEMM_STAGES] barriers: a stage was loaded
 * @empty: [GEMM_STAGES] it was read
 * @staged: [2] a warpgroup's part of a tile lies in @c
 * @stored: [2] it was read from there
 */
struct gemm_room {
	uint32_t a, b, c, full, empty, staged, stored;
};

/* One thread: keep the stages filled. */
__device__ static inline void gemm_produce(const CUtensorMap *a,
					   const CUtensorMap *b,
					   const struct gemm_args &g,
					   const struct gemm_room &r)
{
	uint32_t steps = (g.depth + GEMM_DEPTH - 1) / GEMM_DEPTH;
	uint32_t tiles = g.tile_rows * g.tile_cols, stage = 0, parity = 0;

	for (uint32_t i = blockIdx.x; i < tiles; i += gridDim.x) {
		struct gemm_tile t = gemm_tile_at(g, i);

		for (uint32_t k = 0; k < steps; k++) {
			uint32_t full = r.full + 8 * stage;

			gemm_wait(r.empty + 8 * stage, parity ^ 1);
			asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 "
				     "_, [%0], %1;"
				     :: "r"(full), "r"(GEMM_A_BYTES + GEMM_B_BYTES)
				     : "memory");
			gemm_load(r.a + stage * GEMM_A_BYTES, a, k * GEMM_DEPTH,
				  t.row * GEMM_ROWS, full);
			for (uint32_t n = 0; n < GEMM_COLS / 64; n++)
				gemm_load(r.b + stage * GEMM_B_BYTES +
					  n * GEMM_B_PART, b,
					  t.col * GEMM_COLS + n * 64,
					  k * GEMM_DEPTH, full);
			if (++stage == GEMM_STAGES) {
				stage = 0;
				parity ^= 1;
			}
		}
	}
}

/* A warpgroup's 64 rows to shared memory, as TMA stores them. */
__device__ static inline void gemm_put(const float *d, uint32_t c)
{
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32 & 3;
	uint32_t row = warp * 16 + (lane & 8) + (lane & 7);

#pragma unroll
	for (uint32_t j = 0; j < 32; j += 2) {
		uint32_t col = j + (lane >> 4);
		uint32_t at = c + col / 8 * GEMM_C_PART + row * 128 +
			      ((col & 7) ^ (row & 7)) * 16;

		asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 "
			     "[%0], {%1, %2, %3, %4};"
			     :: "r"(at), "r"(gemm_pair(d[4 * j], d[4 * j + 1])),
				"r"(gemm_pair(d[4 * j + 2], d[4 * j + 3])),
				"r"(gemm_pair(d[4 * j + 4], d[4 * j + 5])),
				"r"(gemm_pair(d[4 * j + 6], d[4 * j + 7]))
			     : "memory");
	}
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ static inline void gemm_arrive(uint32_t barrier)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
		     :: "r"(barrier) : "memory");
}

/*
 * One thread for each warpgroup: store its tiles, and count each when it is in
 * memory. Nobody waits for that but for the room in shared memory.
 */
__device__ static inline void gemm_store(const CUtensorMap *c,
					 const struct gemm_args &g,
					 const struct gemm_room &r,
					 uint32_t group)
{
	uint32_t tiles = g.tile_rows * g.tile_cols, parity = 0;
	uint32_t from = r.c + group * GEMM_C_BYTES / 2;

	for (uint32_t i = blockIdx.x; i < tiles; i += gridDim.x, parity ^= 1) {
		struct gemm_tile t = gemm_tile_at(g, i);

		gemm_wait(r.staged + 8 * group, parity);
		for (uint32_t n = 0; n < GEMM_COLS / 64; n++) {
			uint32_t col = t.col * GEMM_COLS + n * 64;

			if (col >= g.cols)
				break;
			asm volatile("cp.async.bulk.tensor.2d.global.shared::cta."
				     "tile.bulk_group [%0, {%1, %2}], [%3];"
				     :: "l"(c), "r"(col),
					"r"(t.row * GEMM_ROWS + group * 64),
					"r"(from + n * GEMM_C_PART) : "memory");
		}
		asm volatile("cp.async.bulk.commit_group;" ::: "memory");
		asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
		gemm_arrive(r.stored + 8 * group);
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
		if (g.counters && t.row < g.count_rows)
			t3_tile_done_device(&g.counters[g.apart * t.band]);
	}
}

/* A warpgroup: multiply, and hand over what it has made. */
__device__ static inline void gemm_consume(const struct gemm_args &g,
					   const struct gemm_room &r,
					   uint32_t group)
{
	uint32_t steps = (g.depth + GEMM_DEPTH - 1) / GEMM_DEPTH;
	uint32_t tiles = g.tile_rows * g.tile_cols, stage = 0, parity = 0;
	bool first = threadIdx.x % 128 == 0;
	uint32_t room = 1;
	float d[128];

	for (uint32_t i = blockIdx.x; i < tiles; i += gridDim.x) {
		uint32_t before = ~0U;

		for (uint32_t k = 0; k < steps; k++) {
			uint32_t a = r.a + stage * GEMM_A_BYTES + group * 64 * 128;
			uint32_t b = r.b + stage * GEMM_B_BYTES;

			gemm_wait(r.full + 8 * stage, parity);
			asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
			for (uint32_t n = 0; n < GEMM_DEPTH / 16; n++)
				gemm_multiply(d, gemm_matrix(a + n * 32, 16, 1024),
					      gemm_matrix(b + n * 2048, GEMM_B_PART,
							  1024), k + n);
			asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
			/* The stage before this one has been read. */
			asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
			if (before != ~0U && first)
				gemm_arrive(r.empty + 8 * before);
			before = stage;
			if (++stage == GEMM_STAGES) {
				stage = 0;
				parity ^= 1;
			}
		}
		asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
		if (first)
			gemm_arrive(r.empty + 8 * before);
		gemm_wait(r.stored + 8 * group, room);
		room ^= 1;
		gemm_put(d, r.c + group * GEMM_C_BYTES / 2);
		gemm_arrive(r.staged + 8 * group);
	}
}

#endif /* __CUDA_ARCH_FEAT_SM90_ALL */

/*
 * Launched with GEMM_SHARED bytes and as many blocks as SMs are wanted; in pairs,
 * so that others find pairs of SMs free beside it.
 */
__global__ static void __cluster_dims__(2, 1, 1)
__launch_bounds__(GEMM_THREADS, 1)
gemm_kernel(const __grid_constant__ CUtensorMap a,
	    const __grid_constant__ CUtensorMap b,
	    const __grid_constant__ CUtensorMap c,
	    const __grid_constant__ struct gemm_args g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ unsigned char shared[];
	__shared__ __align__(8) uint64_t barriers[2 * GEMM_STAGES + 4];
	struct gemm_room r;

	r.a = (gemm_smem(shared) + 1023) & ~1023U;
	r.b = r.a + GEMM_STAGES * GEMM_A_BYTES;
	r.c = r.b + GEMM_STAGES * GEMM_B_BYTES;
	r.full = gemm_smem(barriers);
	r.empty = r.full + 8 * GEMM_STAGES;
	r.staged = r.empty + 8 * GEMM_STAGES;
	r.stored = r.staged + 16;
	if (threadIdx.x == 0) {
		for (uint32_t i = 0; i < GEMM_STAGES; i++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
				     :: "r"(r.full + 8 * i));
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;"
				     :: "r"(r.empty + 8 * i));
		}
		for (uint32_t i = 0; i < 2; i++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;"
				     :: "r"(r.staged + 8 * i));
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
				     :: "r"(r.stored + 8 * i));
		}
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	}
	__syncthreads();
	if (threadIdx.x < 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (threadIdx.x == 0)
			gemm_produce(&a, &b, g, r);
		else if (threadIdx.x == 32 || threadIdx.x == 64)
			gemm_store(&c, g, r, threadIdx.x / 32 - 1);
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
		gemm_consume(g, r, threadIdx.x / 128 - 1);
	}
#endif
}

/* A row-major bf16 matrix, in boxes of 64 columns, swizzled. */
static inline CUresult gemm_map(CUtensorMap *map, void *p, uint64_t rows,
				uint64_t cols, uint32_t box_rows)
{
	const cuuint64_t dims[2] = { cols, rows };
	const cuuint64_t strides[1] = { cols * 2 };
	const cuuint32_t box[2] = { 64, box_rows }, ones[2] = { 1, 1 };

	return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p,
		dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

#endif /* T3_GEMM_CUH */
