// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gpu engine on a real GPU, by its public functions only: ranks are threads
 * that share it. Epochs that are queued, epochs of a replayed graph, and a GEMM
 * that counts its tiles. Whatever is wrong is counted on the GPU.
 *
 * usage: cuda [epochs]
 * built by: make build/tests/gpu/cuda; T3_PLUGIN_DIR=build/lib
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <t3.h>

#include "../bench/gpu/gemm.cuh"

#define FAIL(...) do {							\
	fprintf(stderr, "# " __VA_ARGS__);				\
	fprintf(stderr, "\n");						\
	_exit(1);							\
} while (0)
#define CUDA(x) do {							\
	cudaError_t e_ = (x);						\
	if (e_ != cudaSuccess)						\
		FAIL("%s:%d: %s: %s", __FILE__, __LINE__, #x,		\
		     cudaGetErrorString(e_));				\
} while (0)
#define TRY(x) do {							\
	if (x)								\
		FAIL("%s:%d: %s: %s", __FILE__, __LINE__, #x, t3_error()); \
} while (0)

#define POISON	0xffff
#define COLS	512
#define DEPTH	256

/**
 * struct words - what a rank's kernels keep on the GPU
 * @epoch: that is under way
 * @wrong: elements, in all epochs
 */
struct words {
	unsigned int epoch;
	unsigned long long wrong;
};

/* Sums of eight of these are exact in bf16. */
__host__ __device__ static int value_of(int rank, unsigned int epoch, int row,
					int col)
{
	unsigned int x = row * 2654435761U ^ col * 40503U ^ rank * 977U ^
			 epoch * 31337U;

	x ^= x >> 15;
	x *= 2246822519U;
	return (int)((x >> 13) % 13) - 6;
}

__global__ static void begin(struct words *w)
{
	w->epoch++;
}

/* A GEMM's place: values of this rank and epoch, after a random time. */
__global__ static void produce(__nv_bfloat16 *c, int ld, struct t3_rectangle r,
			       int rank, const struct words *w, int delay_ns)
{
	unsigned int epoch = w->epoch;
	long n = (long)(r.rows * r.cols);

	if (delay_ns && threadIdx.x == 0)
		__nanosleep((epoch * 7919U + rank * 104729U + (int)r.row) %
			    delay_ns);
	__syncthreads();
	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (long)blockDim.x) {
		int row = (int)(r.row + i / r.cols), col = (int)(r.col + i % r.cols);

		c[(long)row * ld + col] =
			__int2bfloat16_rn(value_of(rank, epoch, row, col));
	}
}

/* This rank's shard of the sum; then all is poisoned. */
__global__ static void check(__nv_bfloat16 *c, int ld, int rows, int first,
			     int last, int ranks, struct words *w)
{
	unsigned int epoch = w->epoch;
	long n = (long)rows * ld;

	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (long)blockDim.x) {
		int row = (int)(i / ld), col = (int)(i % ld), sum = 0;

		if (row >= first && row < last) {
			for (int r = 0; r < ranks; r++)
				sum += value_of(r, epoch, row, col);
			if (__bfloat162float(c[i]) != (float)sum)
				atomicAdd(&w->wrong, 1ULL);
		}
		c[i] = __ushort_as_bfloat16(POISON);
	}
}

static char path[64];

struct actor {
	int rank, ranks, rows;
	unsigned int epochs;
	uint32_t algorithm, tiles, block_bytes;
	struct t3_member *member;
	struct t3_region *region;
	struct t3_plan *plan;
	cudaStream_t stream;
	__nv_bfloat16 *c, *left, *right;
	struct words *words;
	unsigned long long wrong;
	double us;
};

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static void enter(struct actor &a)
{
	struct t3_options options = {};
	struct t3_matrix m = {};
	struct t3_collective c = {};
	void *memory;

	options.size = sizeof(options);
	options.engine = T3_ENGINE_GPU;
	CUDA(cudaSetDevice(0));
	TRY(t3_open(path, a.rank, a.ranks, &options, &a.member));
	TRY(t3_alloc(a.member, (size_t)a.rows * COLS * 2, &memory));
	a.c = (__nv_bfloat16 *)memory;
	m.base = memory;
	m.rows = a.rows;
	m.cols = COLS;
	m.ld = COLS;
	m.dtype = T3_DTYPE_BF16;
	TRY(t3_region_add(a.member, &m, &a.region));
	c.size = sizeof(c);
	c.op = T3_REDUCE_SCATTER;
	c.algorithm = a.algorithm;
	c.block_bytes = a.block_bytes;
	c.tiles = a.tiles;
	c.region = a.region;
	CUDA(cudaStreamCreateWithFlags(&a.stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&a.words, sizeof(*a.words)));
	CUDA(cudaMemsetAsync(a.words, 0, sizeof(*a.words), a.stream));
	CUDA(cudaMalloc(&a.left, a.rows * DEPTH * 2));
	CUDA(cudaMalloc(&a.right, DEPTH * COLS * 2));
	CUDA(cudaStreamSynchronize(a.stream));
	/*
	 * All ranks are here when this returns. From now on nothing may wait
	 * for the whole GPU, for that waits for the other ranks' streams.
	 */
	TRY(t3_plan_add(a.member, &c, &a.plan));
}

static void leave(struct actor &a)
{
	struct words w;

	CUDA(cudaMemcpy(&w, a.words, sizeof(w), cudaMemcpyDeviceToHost));
	a.wrong = w.wrong;
	TRY(t3_plan_del(a.plan));
	TRY(t3_region_del(a.region));
	TRY(t3_free(a.member, a.c));
	TRY(t3_leave(a.member));
	CUDA(cudaStreamDestroy(a.stream));
	/* What is freed here waits for all ranks: they have all left the plan. */
	CUDA(cudaFree(a.words));
	CUDA(cudaFree(a.left));
	CUDA(cudaFree(a.right));
}

static void queue_epoch(struct actor &a, int delay_ns)
{
	struct t3_rectangle r;

	begin<<<1, 1, 0, a.stream>>>(a.words);
	TRY(t3_arm_stream(a.plan, a.stream));
	for (uint32_t i = 0; !t3_plan_step(a.plan, i, &r); i++) {
		produce<<<8, 256, 0, a.stream>>>(a.c, COLS, r, a.rank, a.words,
						 delay_ns);
		TRY(t3_produced_stream(a.plan, i, a.stream));
	}
	TRY(t3_wait_stream(a.plan, a.stream));
	t3_plan_shard(a.plan, a.rank, &r);
	check<<<16, 256, 0, a.stream>>>(a.c, COLS, a.rows, (int)r.row,
					(int)(r.row + r.rows), a.ranks, a.words);
	CUDA(cudaGetLastError());
}

static void run_queued(struct actor &a)
{
	double begin_us;

	enter(a);
	begin_us = now_us();
	for (unsigned int e = 1; e <= a.epochs; e++) {
		queue_epoch(a, 20000);
		/* Not further ahead than what a stream holds. */
		if (e % 16 == 0)
			TRY(t3_wait(a.plan, 8000));
	}
	TRY(t3_wait(a.plan, 8000));
	CUDA(cudaStreamSynchronize(a.stream));
	a.us = (now_us() - begin_us) / a.epochs;
	leave(a);
}

static void run_graph(struct actor &a)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	double begin_us;

	enter(a);
	CUDA(cudaStreamBeginCapture(a.stream, cudaStreamCaptureModeRelaxed));
	queue_epoch(a, 5000);
	CUDA(cudaStreamEndCapture(a.stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	begin_us = now_us();
	for (unsigned int e = 1; e <= a.epochs; e++) {
		CUDA(cudaGraphLaunch(exec, a.stream));
		if (e % 16 == 0)
			CUDA(cudaStreamSynchronize(a.stream));
	}
	CUDA(cudaStreamSynchronize(a.stream));
	TRY(t3_wait(a.plan, 8000));
	a.us = (now_us() - begin_us) / a.epochs;
	/* And again without a graph. */
	queue_epoch(a, 0);
	TRY(t3_wait(a.plan, 8000));
	CUDA(cudaStreamSynchronize(a.stream));
	cudaGraphExecDestroy(exec);
	cudaGraphDestroy(graph);
	leave(a);
}

/* ---- a GEMM that counts its tiles ---- */

__host__ __device__ static int factor(int which, int row, int col)
{
	return value_of(which, 5, row, col) % 3;
}

__global__ static void fill(__nv_bfloat16 *m, int rows, int cols, int which)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols;
	     i += gridDim.x * blockDim.x)
		m[i] = __int2bfloat16_rn(factor(which, i / cols, i % cols));
}

/* The shard of the sum of all ranks' products, from scratch. */
__global__ static void check_gemm(const __nv_bfloat16 *c, int first, int rows,
				  int ranks, struct words *w)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * COLS;
	     i += gridDim.x * blockDim.x) {
		int row = first + i / COLS, col = i % COLS;
		float sum = 0;

		for (int r = 0; r < ranks; r++) {
			int product = 0;

			for (int k = 0; k < DEPTH; k++)
				product += factor(r, row, k) * factor(99, k, col);
			sum += __bfloat162float(__float2bfloat16_rn(product));
		}
		if (__bfloat162float(c[(long)row * COLS + col]) !=
		    __bfloat162float(__float2bfloat16_rn(sum)))
			atomicAdd(&w->wrong, 1ULL);
	}
}

static void run_tiles(struct actor &a)
{
	struct gemm_args g = {};
	struct t3_rectangle shard;
	CUtensorMap ta, tb, tc;
	uint32_t *counters;

	enter(a);
	fill<<<64, 256, 0, a.stream>>>(a.left, a.rows, DEPTH, a.rank);
	fill<<<64, 256, 0, a.stream>>>(a.right, DEPTH, COLS, 99);
	if (gemm_map(&ta, a.left, a.rows, DEPTH, GEMM_ROWS) ||
	    gemm_map(&tb, a.right, DEPTH, COLS, GEMM_DEPTH) ||
	    gemm_map(&tc, a.c, a.rows, COLS, 64))
		FAIL("cuTensorMapEncodeTiled");
	TRY(t3_plan_tiles(a.plan, &counters));
	g.depth = DEPTH;
	g.cols = COLS;
	g.tile_rows = a.rows / GEMM_ROWS;
	g.tile_cols = COLS / GEMM_COLS;
	g.group = 1;
	g.chunk = g.tile_cols;
	g.count_rows = g.tile_rows;
	g.counters = counters;
	g.apart = 1;
	TRY(t3_plan_shard(a.plan, a.rank, &shard));
	for (unsigned int e = 1; e <= a.epochs; e++) {
		TRY(t3_arm_stream(a.plan, a.stream));
		gemm_kernel<<<16, GEMM_THREADS, GEMM_SHARED, a.stream>>>(ta, tb, tc,
									 g);
		CUDA(cudaGetLastError());
		TRY(t3_produced_tiles_stream(a.plan, a.stream));
		TRY(t3_wait_stream(a.plan, a.stream));
		check_gemm<<<32, 256, 0, a.stream>>>(a.c, (int)shard.row,
						     (int)shard.rows, a.ranks,
						     a.words);
		if (e % 8 == 0)
			TRY(t3_wait(a.plan, 8000));
	}
	TRY(t3_wait(a.plan, 8000));
	CUDA(cudaStreamSynchronize(a.stream));
	leave(a);
}

/* ---- */

static int points, bad;

static void run(const char *name, void (*act)(struct actor &), int ranks,
		int rows, unsigned int epochs, uint32_t algorithm, uint32_t tiles,
		uint32_t block_bytes)
{
	std::vector<struct actor> all(ranks);
	std::vector<std::thread> threads;
	unsigned long long wrong = 0;
	double us = 0;

	for (int r = 0; r < ranks; r++) {
		all[r] = {};
		all[r].rank = r;
		all[r].ranks = ranks;
		all[r].rows = rows;
		all[r].epochs = epochs;
		all[r].algorithm = algorithm;
		all[r].tiles = tiles;
		all[r].block_bytes = block_bytes;
		threads.emplace_back(act, std::ref(all[r]));
	}
	for (int r = 0; r < ranks; r++) {
		threads[r].join();
		wrong += all[r].wrong;
		us += all[r].us / ranks;
	}
	bad += wrong != 0;
	printf("%sok %d - %s, %d ranks, %u epochs: %llu wrong, %.1f us an epoch\n",
	       wrong ? "not " : "", ++points, name, ranks, epochs, wrong, us);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned int epochs = argc > 1 ? atoi(argv[1]) : 1000;

	/* Before there is a context: several ranks share its queues. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	snprintf(path, sizeof(path), "/tmp/t3-cuda-test-%d", getpid());
	/* Nothing may be loaded while something waits. */
	for (const void *kernel : { (const void *)begin, (const void *)produce,
				    (const void *)check, (const void *)fill,
				    (const void *)check_gemm,
				    (const void *)gemm_kernel }) {
		struct cudaFuncAttributes attributes;

		CUDA(cudaFuncGetAttributes(&attributes, kernel));
	}
	CUDA(cudaFuncSetAttribute(gemm_kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, GEMM_SHARED));
	run("queued, direct", run_queued, 2, 64, 200, T3_ALG_DIRECT, 0, 16384);
	run("queued, ring", run_queued, 4, 64, 200, T3_ALG_RING, 0, 16384);
	run("tiles counted by a GEMM", run_tiles, 2, 512, 50, T3_ALG_DIRECT, 4,
	    GEMM_ROWS * COLS * 2);
	run("tiles counted by a GEMM", run_tiles, 4, 1024, 50, T3_ALG_DIRECT, 4,
	    GEMM_ROWS * COLS * 2);
	run("a graph, direct", run_graph, 2, 64, 200, T3_ALG_DIRECT, 0, 65536);
	run("a graph, ring", run_graph, 4, 64, 200, T3_ALG_RING, 0, 65536);
	run("queued, direct", run_queued, 4, 32, epochs, T3_ALG_DIRECT, 0, 65536);
	run("a graph, direct", run_graph, 4, 32, epochs, T3_ALG_DIRECT, 0, 65536);
	printf("1..%d\n", points);
	return bad != 0;
}
