// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GEMM + reduce-scatter on one GPU that stands for all by symmetry: what a
 * rank sends goes out, an equal stream comes in, both in its own memory, at a
 * limited rate. Tracked in band.
 *
 * usage: loopback [--rate GB/s] [--shapes N] [--json FILE]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "../../../lib/gpu/tracker.cuh"

#define CHECK(x) do {							\
	auto err_ = (x);						\
	if ((int)err_) {						\
		fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__,	\
			__LINE__, #x, (int)err_);			\
		exit(1);						\
	}								\
} while (0)

struct shape {
	const char *model, *sublayer;
	int tp, m, n, k;
};

static const struct shape shapes[] = {
#include "shapes.inc"
};

static cublasLtHandle_t lt;
static cudaStream_t gemm_stream, comm_stream, poison_stream, gate_stream;
static void *workspace;
static const size_t workspace_bytes = 64 << 20;
static char *a_mem, *b_mem, *c_mem[2], *y_mem, *r_mem, *poison_mem;
static uint32_t *words, *order_mem, *stamp_mem;
static unsigned long long *link_word, *wrong_word;
static uint32_t epoch, ticket, gate;
static double rate = 400e9;

struct gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algo;
	int target;
	float alone_ms;
};

static void run_gemm(const struct gemm &g, void *out)
{
	float one = 1, zero = 0;

	CHECK(cublasLtMatmul(lt, g.desc, &one, b_mem, g.a, a_mem, g.b, &zero,
			     out, g.c, out, g.c, &g.algo, workspace,
			     workspace_bytes, gemm_stream));
}

template <class F> static float median_ms(F f, cudaStream_t s, int n = 11)
{
	std::vector<float> t;
	cudaEvent_t begin, end;

	cudaEventCreate(&begin);
	cudaEventCreate(&end);
	for (int i = 0; i < n + 2; i++) {
		float ms;

		CHECK(cudaEventRecord(begin, s));
		f();
		CHECK(cudaEventRecord(end, s));
		CHECK(cudaEventSynchronize(end));
		cudaEventElapsedTime(&ms, begin, end);
		if (i >= 2)
			t.push_back(ms);
	}
	cudaEventDestroy(begin);
	cudaEventDestroy(end);
	std::sort(t.begin(), t.end());
	return t[t.size() / 2];
}

/* The candidates: cuBLAS's own order, each measured alone. */
static std::vector<gemm> find_gemms(const struct shape &s, int target, int want)
{
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulHeuristicResult_t found[8];
	std::vector<gemm> list;
	uint32_t schemes = 0;
	struct gemm g = {};
	int n = 0;

	CHECK(cublasLtMatmulPreferenceCreate(&pref));
	CHECK(cublasLtMatmulPreferenceSetAttribute(pref,
		CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
		sizeof(workspace_bytes)));
	CHECK(cublasLtMatmulPreferenceSetAttribute(pref,
		CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
		sizeof(schemes)));
	CHECK(cublasLtMatmulDescCreate(&g.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	if (target)
		CHECK(cublasLtMatmulDescSetAttribute(g.desc,
			CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &target,
			sizeof(target)));
	CHECK(cublasLtMatrixLayoutCreate(&g.a, CUDA_R_16BF, s.n, s.k, s.n));
	CHECK(cublasLtMatrixLayoutCreate(&g.b, CUDA_R_16BF, s.k, s.m, s.k));
	CHECK(cublasLtMatrixLayoutCreate(&g.c, CUDA_R_16BF, s.n, s.m, s.n));
	CHECK(cublasLtMatmulAlgoGetHeuristic(lt, g.desc, g.a, g.b, g.c, g.c,
					     pref, want, found, &n));
	g.target = target;
	for (int i = 0; i < n; i++) {
		g.algo = found[i].algo;
		g.alone_ms = median_ms([&] { run_gemm(g, r_mem); }, gemm_stream);
		list.push_back(g);
	}
	std::sort(list.begin(), list.end(), [](const gemm &x, const gemm &y) {
		return x.alone_ms < y.alone_ms; });
	return list;
}

static CUtensorMap tensor_map(void *p, int m, int n)
{
	CUtensorMap map;
	cuuint64_t dims[2] = { (cuuint64_t)n, (cuuint64_t)m };
	cuuint64_t strides[1] = { (cuuint64_t)n * 2 };
	cuuint32_t box[2] = { T3_TILE_COLS, T3_TILE_ROWS }, ones[2] = { 1, 1 };

	CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
		p, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

__global__ static void compare(const uint16_t *y, const uint16_t *r, size_t n,
			       unsigned times, unsigned long long *wrong)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	for (; i < n; i += (size_t)gridDim.x * blockDim.x) {
		__nv_bfloat16 v = __ushort_as_bfloat16(r[i]), sum = v;

		for (unsigned k = 1; k < times; k++)
			sum = __float2bfloat16(__bfloat162float(sum) +
					       __bfloat162float(v));
		if (y[i] != __bfloat16_as_ushort(sum))
			atomicAdd(wrong, 1ULL);
	}
}

struct job {
	struct shape s;
	struct t3_track track;
	CUtensorMap from[2], to;
	size_t travel_bytes;
	int sms;
	int poison;	/* 0 none, 1 copy engine, 2 memset */
};

static void poison(const struct job &j, int buffer, int how, cudaStream_t s)
{
	if (how == 2) {
		CHECK(cudaMemsetAsync(c_mem[buffer], 0xff, j.travel_bytes, s));
	} else if (how == 1) {
		struct cudaMemcpyAttributes attr = {};
		void *dst[1] = { c_mem[buffer] };
		const void *src[1] = { poison_mem };
		size_t size[1] = { j.travel_bytes }, index = 0;

		attr.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
		attr.flags = cudaMemcpyFlagPreferOverlapWithCompute;
		CHECK(cudaMemcpyBatchAsync(dst, src, size, 1, &attr, &index, 1, s));
	}
}

static void launch_tracker(struct job &j, int buffer)
{
	j.track.output = (const uint16_t *)c_mem[buffer];
	j.track.epoch = epoch;
	j.track.first_ticket = ticket;
	t3_tracker<<<j.sms, 32 * T3_SLOTS, T3_TRACKER_SMEM, comm_stream>>>(
		j.from[buffer], j.to, j.track);
	/* Each warp takes one ticket too many. */
	ticket += j.track.tiles + j.sms * T3_SLOTS;
	CHECK(cudaGetLastError());
}

static void gemm_done(void)
{
	CHECK(cuStreamWriteValue32(gemm_stream, (CUdeviceptr)words, epoch, 0));
}

static void learn(struct job &j, const struct gemm &g)
{
	std::vector<uint32_t> stamp(j.track.tiles), order(j.track.tiles);

	CHECK(cudaMemset(c_mem[0], 0xff, j.travel_bytes));
	CHECK(cudaDeviceSynchronize());
	epoch++;
	j.track.output = (const uint16_t *)c_mem[0];
	j.track.epoch = epoch;
	t3_learn<<<j.sms, 1024, T3_TRACKER_SMEM, comm_stream>>>(j.track, stamp_mem);
	run_gemm(g, c_mem[0]);
	gemm_done();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(stamp.data(), stamp_mem, stamp.size() * 4,
			 cudaMemcpyDeviceToHost));
	std::iota(order.begin(), order.end(), 0U);
	std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
		return stamp[x] < stamp[y]; });
	CHECK(cudaMemcpy(order_mem, order.data(), order.size() * 4,
			 cudaMemcpyHostToDevice));
}

struct fused {
	float ms, gemm_ms;
	unsigned long long wrong;
};

/* Epochs one after the other; the poison for the next is laid meanwhile. */
static struct fused run_fused(struct job &j, const struct gemm &g, int epochs)
{
	struct fused f = {};
	std::vector<cudaEvent_t> begin(epochs), end(epochs), tracked(epochs),
		laid(epochs), last(epochs);
	std::vector<float> all, gemms;

	for (auto *list : { &begin, &end, &tracked, &laid, &last })
		for (auto &e : *list)
			CHECK(cudaEventCreate(&e));
	CHECK(cudaMemset(y_mem, 0, (size_t)j.s.m * j.s.n * 2));
	CHECK(cudaMemset(c_mem[0], 0xff, j.travel_bytes));
	CHECK(cudaMemset(c_mem[1], 0xff, j.travel_bytes));
	CHECK(cudaDeviceSynchronize());
	/* Nothing starts before all is queued: the host's time is not measured. */
	gate++;
	if (j.poison)
		CHECK(cuStreamWaitValue32(gemm_stream, (CUdeviceptr)(words + 128),
					  gate, CU_STREAM_WAIT_VALUE_GEQ));
	for (int i = 0; i < epochs; i++) {
		epoch++;
		if (!j.poison) {
			CHECK(cudaDeviceSynchronize());
			CHECK(cudaMemset(c_mem[i & 1], 0xff, j.travel_bytes));
			CHECK(cudaDeviceSynchronize());
			gate++;
			CHECK(cuStreamWaitValue32(gemm_stream,
				(CUdeviceptr)(words + 128), gate,
				CU_STREAM_WAIT_VALUE_GEQ));
		}
		CHECK(cudaEventRecord(begin[i], gemm_stream));
		CHECK(cudaStreamWaitEvent(comm_stream, begin[i]));
		CHECK(cudaStreamWaitEvent(poison_stream, begin[i]));
		launch_tracker(j, i & 1);
		CHECK(cudaEventRecord(tracked[i], comm_stream));
		run_gemm(g, c_mem[i & 1]);
		gemm_done();
		CHECK(cudaEventRecord(end[i], gemm_stream));
		if (i)
			poison(j, !(i & 1), j.poison, poison_stream);
		CHECK(cudaEventRecord(laid[i], poison_stream));
		CHECK(cudaStreamWaitEvent(gemm_stream, tracked[i]));
		CHECK(cudaStreamWaitEvent(gemm_stream, laid[i]));
		CHECK(cudaEventRecord(last[i], gemm_stream));
		if (!j.poison)
			CHECK(cuStreamWriteValue32(gate_stream,
				(CUdeviceptr)(words + 128), gate, 0));
	}
	if (j.poison)
		CHECK(cuStreamWriteValue32(gate_stream,
			(CUdeviceptr)(words + 128), gate, 0));
	CHECK(cudaDeviceSynchronize());
	for (int i = 2; i < epochs; i++) {
		float ms;

		cudaEventElapsedTime(&ms, begin[i], last[i]);
		all.push_back(ms);
		cudaEventElapsedTime(&ms, begin[i], end[i]);
		gemms.push_back(ms);
	}
	std::sort(all.begin(), all.end());
	std::sort(gemms.begin(), gemms.end());
	f.ms = all[all.size() / 2];
	f.gemm_ms = gemms[gemms.size() / 2];
	CHECK(cudaMemset(wrong_word, 0, 8));
	compare<<<264, 256>>>((uint16_t *)y_mem, (uint16_t *)r_mem,
			      j.travel_bytes / 2, epochs, wrong_word);
	CHECK(cudaMemcpy(&f.wrong, wrong_word, 8, cudaMemcpyDeviceToHost));
	for (auto *list : { &begin, &end, &tracked, &laid, &last })
		for (auto &e : *list)
			cudaEventDestroy(e);
	return f;
}

static void setup(void)
{
	std::vector<__nv_bfloat16> h(64 << 20);
	int low, high;

	CHECK(cudaFree(0));
	CHECK(cudaFuncSetAttribute(t3_tracker,
		cudaFuncAttributeMaxDynamicSharedMemorySize, T3_TRACKER_SMEM));
	CHECK(cudaFuncSetAttribute(t3_learn,
		cudaFuncAttributeMaxDynamicSharedMemorySize, T3_TRACKER_SMEM));
	CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
	CHECK(cudaStreamCreateWithPriority(&gemm_stream, cudaStreamNonBlocking, low));
	CHECK(cudaStreamCreateWithPriority(&comm_stream, cudaStreamNonBlocking, high));
	CHECK(cudaStreamCreateWithPriority(&poison_stream, cudaStreamNonBlocking, high));
	CHECK(cudaStreamCreateWithPriority(&gate_stream, cudaStreamNonBlocking, high));
	CHECK(cublasLtCreate(&lt));
	CHECK(cudaMalloc(&workspace, workspace_bytes));
	for (char **p : { &a_mem, &b_mem })
		CHECK(cudaMalloc(p, 256UL << 20));
	for (char **p : { &c_mem[0], &c_mem[1], &y_mem, &r_mem, &poison_mem })
		CHECK(cudaMalloc(p, 400UL << 20));
	CHECK(cudaMemset(poison_mem, 0xff, 400UL << 20));
	srand(1);
	for (auto &v : h)
		v = __float2bfloat16((rand() % 200 - 100) / 100.f);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaMemcpy(a_mem + i * (128UL << 20), h.data(), 128UL << 20,
				 cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(b_mem + i * (128UL << 20), h.data() + 777,
				 (128UL << 20) - 4096, cudaMemcpyHostToDevice));
	}
	CHECK(cudaMalloc(&words, 4096));
	CHECK(cudaMemset(words, 0, 4096));
	link_word = (unsigned long long *)(words + 64);
	wrong_word = (unsigned long long *)(words + 96);
	CHECK(cudaMalloc(&order_mem, 4 << 20));
	CHECK(cudaMalloc(&stamp_mem, 4 << 20));
}

static struct job make_job(const struct shape &s)
{
	struct job j = {};
	int travel = s.m * 7 / 8 / T3_TILE_ROWS * T3_TILE_ROWS;

	j.s = s;
	j.travel_bytes = (size_t)travel * s.n * 2;
	j.track.order = order_mem;
	j.track.tile_cols = (s.n + T3_TILE_COLS - 1) / T3_TILE_COLS;
	j.track.tiles = j.track.tile_cols * (travel / T3_TILE_ROWS);
	j.track.rows = s.m;
	j.track.cols = s.n;
	j.track.done = words;
	j.track.ticket = words + 32;
	j.track.link = link_word;
	if (rate > 0)
		j.track.tile_ps = (double)j.travel_bytes / j.track.tiles / rate * 1e12;
	for (int i = 0; i < 2; i++)
		j.from[i] = tensor_map(c_mem[i], s.m, s.n);
	j.to = tensor_map(y_mem, s.m, s.n);
	return j;
}

int main(int argc, char **argv)
{
	int want = 3, only = -1;
	double log_speedup = 0, log_ideal = 0, log_slow = 0, best_speedup = 0;
	int rows = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--rate"))
			rate = atof(argv[i + 1]) * 1e9;
		else if (!strcmp(argv[i], "--only"))
			only = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--algos"))
			want = atoi(argv[i + 1]);
	}
	setup();
	printf("%-12s %-8s %3s %6s %6s %6s  gemm    comm    seq     fused  gemm'  speedup ideal  of-ideal slow  sms target poison wrong\n",
	       "model", "layer", "tp", "M", "N", "K");
	for (auto &s : shapes) {
		struct job j = make_job(s);
		float best = 1e9, best_gemm = 0, gemm_ms, comm_ms;
		int best_sms = 0, best_target = 0, best_poison = 0;
		unsigned long long wrong = 0;
		std::vector<uint32_t> order(j.track.tiles);
		float mode_best[3] = { 1e9, 1e9, 1e9 }, lay_ms[3];

		if (only >= 0 && only != (int)(&s - shapes))
			continue;
		auto plain = find_gemms(s, 0, want);
		gemm_ms = plain[0].alone_ms;
		run_gemm(plain[0], r_mem);
		run_gemm(plain[0], c_mem[0]);
		CHECK(cudaDeviceSynchronize());
		/* The collective alone: all is there, the launch has ended. */
		std::iota(order.begin(), order.end(), 0U);
		CHECK(cudaMemcpy(order_mem, order.data(), order.size() * 4,
				 cudaMemcpyHostToDevice));
		CHECK(cudaMemset(y_mem, 0, (size_t)s.m * s.n * 2));
		comm_ms = 1e9;
		for (int sms : { 10, 12, 16 }) {
			j.sms = sms;
			/* words[0] is at the epoch: ended. */
			comm_ms = std::min(comm_ms, median_ms([&] {
				launch_tracker(j, 0); }, comm_stream));
		}
		for (int how : { 1, 2 })
			lay_ms[how] = median_ms([&] { poison(j, 1, how, poison_stream); },
						poison_stream);
		for (int sms : { 8, 10 }) {
			std::vector<gemm> list = find_gemms(s, 132 - sms, want);

			list.resize(std::min<size_t>(list.size(), 2));
			for (int i = 0; i < (int)std::min<size_t>(plain.size(), 2); i++)
				list.push_back(plain[i]);
			j.sms = sms;
			for (auto &g : list) {
				run_gemm(g, r_mem);
				learn(j, g);
				for (int how : { 0, 1, 2 }) {
					j.poison = how;
					auto f = run_fused(j, g, 9);

					wrong += f.wrong;
					mode_best[how] = std::min(mode_best[how], f.ms);
					if (f.ms < best) {
						best = f.ms;
						best_gemm = f.gemm_ms;
						best_sms = sms;
						best_target = g.target;
						best_poison = how;
					}
				}
			}
		}
		double speedup = (gemm_ms + comm_ms) / best;
		double ideal = (gemm_ms + comm_ms) / std::max(gemm_ms, comm_ms);

		log_speedup += log(speedup);
		log_ideal += log(ideal);
		log_slow += log(best_gemm / gemm_ms);
		best_speedup = std::max(best_speedup, speedup);
		rows++;
		printf("%-12s %-8s %3d %6d %6d %6d  %.4f  %.4f  %.4f  %.4f %.4f  %.3f   %.3f  %.3f    %+.1f%%  %d  %d  %d  %llu\n",
		       s.model, s.sublayer, s.tp, s.m, s.n, s.k, gemm_ms, comm_ms,
		       gemm_ms + comm_ms, best, best_gemm, speedup, ideal,
		       speedup / ideal, (best_gemm / gemm_ms - 1) * 100, best_sms,
		       best_target, best_poison, wrong);
		printf("    poison outside %.4f, by copy engine %.4f (alone %.4f), by memset %.4f (alone %.4f)\n",
		       mode_best[0], mode_best[1], lay_ms[1], mode_best[2], lay_ms[2]);
		fflush(stdout);
	}
	printf("geomean speedup %.3f (max %.3f), ideal %.3f, of ideal %.3f, GEMM slowdown %.3f\n",
	       exp(log_speedup / rows), best_speedup, exp(log_ideal / rows),
	       exp((log_speedup - log_ideal) / rows), exp(log_slow / rows));
	return 0;
}
