// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GEMM + reduce-scatter on one GPU that stands for all by symmetry: what a
 * rank sends goes out, an equal stream comes in, both in its own memory, at a
 * limited rate. Each way of tracking is tried, with several settings; the best
 * is measured again and checked.
 *
 * usage: loopback [--rate GB/s] [--only N] [--algos N] [--json FILE] [--all 1]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda.h>
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

/* Words that host, streams and kernels share, each on a line of its own. */
enum { W_DONE, W_TICKET, W_LINK, W_WRONG, W_GATE, W_ABORT, W_BAND };

static cublasLtHandle_t lt;
static cudaStream_t gemm_stream[2], comm_stream, gate_stream;
static void *workspace[2];
static const size_t workspace_bytes = 64 << 20;
static char *a_mem, *b_mem, *c_mem, *y_mem, *r_mem;
static uint32_t *words, *order_mem, *stamp_mem;
static uint32_t epoch, ticket, gate;
static int rate = 400, algos = 4, sm_count, everything;

static uint32_t *word(int i)
{
	return words + 32 * i;
}

/* Some rows of the GEMM, in one launch. */
struct gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algo;
	int rows, target;
	float alone_ms;
};

static void run_gemm(const struct shape &s, const struct gemm &g, int row,
		     void *out, int stream)
{
	float one = 1, zero = 0;
	char *c = (char *)out + (size_t)row * s.n * 2;

	CHECK(cublasLtMatmul(lt, g.desc, &one, b_mem, g.a,
			     a_mem + (size_t)row * s.k * 2, g.b, &zero, c, g.c,
			     c, g.c, &g.algo, workspace[stream], workspace_bytes,
			     gemm_stream[stream]));
}

static float middle(std::vector<float> t)
{
	std::sort(t.begin(), t.end());
	return t[t.size() / 2];
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
	return middle(t);
}

/* The candidates: cuBLAS's own, each measured alone; the fastest first. */
static std::vector<gemm> find_gemms(const struct shape &s, int rows, int target,
				    int n = 11)
{
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulHeuristicResult_t found[16];
	std::vector<gemm> list;
	uint32_t schemes = 0;
	struct gemm g = {};
	int count = 0;

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
	CHECK(cublasLtMatrixLayoutCreate(&g.b, CUDA_R_16BF, s.k, rows, s.k));
	CHECK(cublasLtMatrixLayoutCreate(&g.c, CUDA_R_16BF, s.n, rows, s.n));
	CHECK(cublasLtMatmulAlgoGetHeuristic(lt, g.desc, g.a, g.b, g.c, g.c,
					     pref, algos, found, &count));
	cublasLtMatmulPreferenceDestroy(pref);
	g.target = target;
	g.rows = rows;
	for (int i = 0; i < count; i++) {
		g.algo = found[i].algo;
		g.alone_ms = median_ms([&] { run_gemm(s, g, 0, r_mem, 0); },
				       gemm_stream[0], n);
		list.push_back(g);
	}
	std::sort(list.begin(), list.end(), [](const gemm &x, const gemm &y) {
		return x.alone_ms < y.alone_ms; });
	return list;
}

/* Wrong elements of y after @times sums of r. */
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

/* One way to run a shape. */
struct way {
	bool bands;
	int sms;
	int streams;		/* of the bands */
	struct gemm whole;	/* in band */
	std::vector<int> row;	/* of the bands, and the end */
	std::vector<const gemm *> band;
	int travelling;		/* bands that travel */
	float ms, gemm_ms;
	char name[64];
};

struct job {
	struct shape s;
	int travel_rows;
	size_t travel_bytes;
	struct t3_track track;
	struct t3_bands drain;
	std::map<std::pair<int, int>, gemm> plan;
};

static struct t3_pace pace(void)
{
	struct t3_pace p = {};

	p.ticket = word(W_TICKET);
	p.first_ticket = ticket;
	p.rate = rate;
	p.link = (unsigned long long *)word(W_LINK);
	p.abort = word(W_ABORT);
	p.patience_ns = 2000000000;
	return p;
}

static void launch_tracker(struct job &j, int sms)
{
	j.track.pace = pace();
	j.track.epoch = epoch;
	t3_tracker<<<sms, T3_THREADS, 0, comm_stream>>>(j.track);
	/* Each warp takes one ticket too many. */
	ticket += j.track.tiles + sms * T3_THREADS / 32;
	CHECK(cudaGetLastError());
}

static void launch_drain(struct job &j, int sms)
{
	j.drain.pace = pace();
	j.drain.epoch = epoch;
	t3_drain<<<sms, T3_THREADS, 0, comm_stream>>>(j.drain);
	ticket += j.drain.chunk[j.drain.bands] + sms * T3_THREADS / 32;
	CHECK(cudaGetLastError());
}

static void write_word(int i, cudaStream_t s, uint32_t value)
{
	CHECK(cuStreamWriteValue32(s, (CUdeviceptr)word(i), value, 0));
}

/* One epoch in which the tracker's kernel only watches. */
static void learn(struct job &j, const struct gemm &g, int sms)
{
	std::vector<uint32_t> stamp(j.track.tiles), order(j.track.tiles);

	CHECK(cudaMemset(c_mem, 0xff, j.travel_bytes));
	CHECK(cudaDeviceSynchronize());
	epoch++;
	j.track.pace = pace();
	j.track.epoch = epoch;
	t3_learn<<<sms, 1024, 0, comm_stream>>>(j.track, stamp_mem);
	run_gemm(j.s, g, 0, c_mem, 0);
	write_word(W_DONE, gemm_stream[0], epoch);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(stamp.data(), stamp_mem, stamp.size() * 4,
			 cudaMemcpyDeviceToHost));
	std::iota(order.begin(), order.end(), 0U);
	std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
		return stamp[x] < stamp[y]; });
	CHECK(cudaMemcpy(order_mem, order.data(), order.size() * 4,
			 cudaMemcpyHostToDevice));
}

static const gemm *band_plan(struct job &j, int rows, int target)
{
	auto key = std::make_pair(rows, target);

	if (!j.plan.count(key)) {
		auto list = find_gemms(j.s, rows, target, 5);

		j.plan[key] = list[0];
	}
	return &j.plan[key];
}

/* Cut rows into bands: a first one, then others; own rows come last. */
static void cut(struct job &j, struct way &w, int first, int rows, int target)
{
	int at = 0;

	w.row.push_back(0);
	while (at < j.s.m) {
		int end = at < j.travel_rows ? j.travel_rows : j.s.m;
		int next = std::min(at + (at ? rows : first), end);

		/* No sliver at the end. */
		if (end - next < rows / 3)
			next = end;
		w.band.push_back(band_plan(j, next - at, target));
		at = next;
		w.row.push_back(at);
		if (at == j.travel_rows)
			w.travelling = w.band.size();
	}
}

static void set_bands(struct job &j, const std::vector<int> &row, int bands)
{
	struct t3_bands &d = j.drain;

	d.bands = bands;
	for (int i = 0; i <= bands; i++)
		d.byte[i] = (uint64_t)row[i] * j.s.n * 2;
	for (int i = 0; i < bands; i++)
		d.chunk[i + 1] = d.chunk[i] + (d.byte[i + 1] - d.byte[i] +
					       T3_CHUNK - 1) / T3_CHUNK;
}

static void queue_bands(struct job &j, const struct way &w)
{
	launch_drain(j, w.sms);
	for (size_t i = 0; i < w.band.size(); i++) {
		int s = i % w.streams;

		run_gemm(j.s, *w.band[i], w.row[i], c_mem, s);
		if ((int)i < w.travelling)
			write_word(W_BAND + i, gemm_stream[s], epoch);
	}
}

static void queue_whole(struct job &j, const struct way &w)
{
	launch_tracker(j, w.sms);
	run_gemm(j.s, w.whole, 0, c_mem, 0);
	write_word(W_DONE, gemm_stream[0], epoch);
}

struct events {
	cudaEvent_t begin, gemm[2], tracked, end;
};

static void queue_epoch(struct job &j, const struct way &w, struct events &e)
{
	epoch++;
	CHECK(cudaEventRecord(e.begin, gemm_stream[0]));
	CHECK(cudaStreamWaitEvent(gemm_stream[1], e.begin));
	CHECK(cudaStreamWaitEvent(comm_stream, e.begin));
	if (w.bands)
		queue_bands(j, w);
	else
		queue_whole(j, w);
	for (int i = 1; i >= 0; i--) {
		CHECK(cudaEventRecord(e.gemm[i], gemm_stream[i]));
		CHECK(cudaStreamWaitEvent(gemm_stream[0], e.gemm[i]));
	}
	CHECK(cudaEventRecord(e.tracked, comm_stream));
	CHECK(cudaStreamWaitEvent(gemm_stream[0], e.tracked));
	CHECK(cudaEventRecord(e.end, gemm_stream[0]));
}

/* Epochs one after the other, all queued before the first begins. */
static unsigned long long run_way(struct job &j, struct way &w, int epochs)
{
	std::vector<events> ev(epochs);
	std::vector<float> all, gemms;
	unsigned long long wrong;
	uint32_t aborted;

	for (auto &e : ev)
		for (auto *x : { &e.begin, &e.gemm[0], &e.gemm[1], &e.tracked, &e.end })
			CHECK(cudaEventCreate(x));
	CHECK(cudaMemset(y_mem, 0, j.travel_bytes));
	CHECK(cudaMemset(c_mem, 0xff, j.travel_bytes));
	CHECK(cudaMemset(word(W_WRONG), 0, 8));
	if (w.bands)
		set_bands(j, w.row, w.travelling);
	CHECK(cudaDeviceSynchronize());
	CHECK(cuStreamWaitValue32(gemm_stream[0], (CUdeviceptr)word(W_GATE),
				  ++gate, CU_STREAM_WAIT_VALUE_GEQ));
	for (auto &e : ev)
		queue_epoch(j, w, e);
	write_word(W_GATE, gate_stream, gate);
	CHECK(cudaDeviceSynchronize());
	for (int i = 2; i < epochs; i++) {
		float ms, one, two;

		cudaEventElapsedTime(&ms, ev[i].begin, ev[i].end);
		all.push_back(ms);
		cudaEventElapsedTime(&one, ev[i].begin, ev[i].gemm[0]);
		cudaEventElapsedTime(&two, ev[i].begin, ev[i].gemm[1]);
		gemms.push_back(std::max(one, two));
	}
	w.ms = middle(all);
	w.gemm_ms = middle(gemms);
	for (auto &e : ev)
		for (auto x : { e.begin, e.gemm[0], e.gemm[1], e.tracked, e.end })
			cudaEventDestroy(x);
	/* Each way has its own reference: what its own GEMMs make by themselves. */
	if (w.bands)
		for (size_t i = 0; i < w.band.size(); i++)
			run_gemm(j.s, *w.band[i], w.row[i], r_mem, 0);
	else
		run_gemm(j.s, w.whole, 0, r_mem, 0);
	CHECK(cudaDeviceSynchronize());
	compare<<<264, 256>>>((uint16_t *)y_mem, (uint16_t *)r_mem,
			      j.travel_bytes / 2, epochs,
			      (unsigned long long *)word(W_WRONG));
	CHECK(cudaMemcpy(&wrong, word(W_WRONG), 8, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&aborted, word(W_ABORT), 4, cudaMemcpyDeviceToHost));
	return aborted ? ~0ULL : wrong;
}

static std::vector<way> ways_in_band(struct job &j, const std::vector<gemm> &plain,
				     int sms)
{
	std::vector<gemm> list = find_gemms(j.s, j.s.m, sm_count - sms, 5);
	std::vector<way> ways;

	list.resize(std::min<size_t>(list.size(), 2));
	list.insert(list.end(), plain.begin(),
		    plain.begin() + std::min<size_t>(plain.size(), 2));
	for (auto &g : list) {
		struct way w = {};

		w.sms = sms;
		w.whole = g;
		snprintf(w.name, sizeof(w.name), "in-band target=%d", g.target);
		ways.push_back(w);
	}
	return ways;
}

static std::vector<way> ways_bands(struct job &j, int sms)
{
	std::vector<way> ways;
	std::vector<int> seen;
	int strip = (j.s.n + 255) / 256;	/* tiles in 128 rows */
	int wave = std::max(1, (sm_count - sms) / strip) * 128;

	for (int half : { 2, 3, 4, 6, 8, 12, 16, 24 }) {
		int rows = std::max(128, wave * half / 2 / 128 * 128);

		if (rows > j.travel_rows / 2 ||
		    j.s.m / rows > T3_MAX_BANDS / 2 ||
		    std::count(seen.begin(), seen.end(), rows))
			continue;
		seen.push_back(rows);
		for (int target : { 0, sm_count - sms }) {
			for (int streams : { 1, 2 }) {
				struct way w = {};

				w.bands = true;
				w.sms = sms;
				w.streams = streams;
				cut(j, w, std::min(rows, wave), rows, target);
				snprintf(w.name, sizeof(w.name),
					 "bands rows=%d n=%zu streams=%d target=%d",
					 rows, w.band.size(), streams, target);
				ways.push_back(w);
			}
		}
	}
	return ways;
}

/* Sampled elements of the last reference against fp64: the largest error. */
static double max_rel_err(const struct shape &s)
{
	std::vector<__nv_bfloat16> a(s.k), b((size_t)s.k * s.n), r(s.n);
	double worst = 0;

	CHECK(cudaMemcpy(b.data(), b_mem, b.size() * 2, cudaMemcpyDeviceToHost));
	for (int row : { 0, s.m / 3 + 1, s.m - 1 }) {
		double size = 0, error = 0;

		CHECK(cudaMemcpy(a.data(), a_mem + (size_t)row * s.k * 2, s.k * 2,
				 cudaMemcpyDeviceToHost));
		CHECK(cudaMemcpy(r.data(), r_mem + (size_t)row * s.n * 2, s.n * 2,
				 cudaMemcpyDeviceToHost));
		for (int col = row % 7; col < s.n; col += 7) {
			double sum = 0;

			for (int k = 0; k < s.k; k++)
				sum += (double)__bfloat162float(a[k]) *
				       (double)__bfloat162float(b[(size_t)k * s.n + col]);
			size = std::max(size, fabs(sum));
			error = std::max(error, fabs(sum - __bfloat162float(r[col])));
		}
		worst = std::max(worst, error / size);
	}
	return worst;
}

static void setup(void)
{
	std::vector<__nv_bfloat16> h(64 << 20);
	int low, high;

	CHECK(cudaFree(0));
	CHECK(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
	for (auto &s : gemm_stream)
		CHECK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, low));
	CHECK(cudaStreamCreateWithPriority(&comm_stream, cudaStreamNonBlocking, high));
	CHECK(cudaStreamCreateWithPriority(&gate_stream, cudaStreamNonBlocking, high));
	CHECK(cublasLtCreate(&lt));
	for (auto &w : workspace)
		CHECK(cudaMalloc(&w, workspace_bytes));
	for (char **p : { &a_mem, &b_mem })
		CHECK(cudaMalloc(p, 256UL << 20));
	for (char **p : { &c_mem, &y_mem, &r_mem })
		CHECK(cudaMalloc(p, 400UL << 20));
	srand(1);
	for (auto &v : h)
		v = __float2bfloat16((rand() % 200 - 100) / 100.f);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaMemcpy(a_mem + i * (128UL << 20), h.data(), 128UL << 20,
				 cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(b_mem + i * (128UL << 20), h.data() + 777,
				 (128UL << 20) - 4096, cudaMemcpyHostToDevice));
	}
	/* Nothing may be loaded while a kernel or a stream waits. */
	for (const void *kernel : { (const void *)t3_drain, (const void *)t3_tracker,
				    (const void *)t3_learn, (const void *)compare }) {
		struct cudaFuncAttributes attributes;

		CHECK(cudaFuncGetAttributes(&attributes, kernel));
	}
	CHECK(cudaMalloc(&words, 65536));
	CHECK(cudaMemset(words, 0, 65536));
	CHECK(cudaMalloc(&order_mem, 4 << 20));
	CHECK(cudaMalloc(&stamp_mem, 4 << 20));
}

static struct job make_job(const struct shape &s)
{
	struct job j = {};
	struct t3_track &t = j.track;

	j.s = s;
	j.travel_rows = s.m * 7 / 8 / T3_TILE_ROWS * T3_TILE_ROWS;
	j.travel_bytes = (size_t)j.travel_rows * s.n * 2;
	t.order = order_mem;
	t.tile_cols = (s.n + T3_TILE_COLS - 1) / T3_TILE_COLS;
	t.tiles = t.tile_cols * (j.travel_rows / T3_TILE_ROWS);
	t.rows = s.m;
	t.cols = s.n;
	t.output = c_mem;
	t.peer = y_mem;
	t.done = word(W_DONE);
	t.leave_poison = 1;
	j.drain.output = c_mem;
	j.drain.peer = y_mem;
	j.drain.counter = word(W_BAND);
	return j;
}

/* The collective alone, over what a GEMM left: all is there. */
static float comm_alone(struct job &j, int sms)
{
	set_bands(j, { 0, j.travel_rows }, 1);
	write_word(W_BAND, comm_stream, epoch);
	return median_ms([&] { launch_drain(j, sms); }, comm_stream);
}

struct result {
	struct shape s;
	float gemm_ms, comm_ms, fill_ms;
	struct way w, best_bands, best_inband;
	double error;
	unsigned long long wrong;
};

static void try_ways(struct job &j, const std::vector<way> &ways,
		     struct result &r)
{

	for (auto w : ways) {
		struct way &best = w.bands ? r.best_bands : r.best_inband;

		if (!w.bands)
			learn(j, w.whole, w.sms);
		r.wrong += run_way(j, w, 8);
		if (everything)
			printf("    %-44s sms=%d fused %.4f gemm %.4f\n", w.name,
			       w.sms, w.ms, w.gemm_ms);
		if (best.ms == 0 || w.ms < best.ms)
			best = w;
	}
}

static struct result measure(const struct shape &s)
{
	struct job j = make_job(s);
	struct result r = {};
	auto plain = find_gemms(s, s.m, 0);

	r.s = s;
	r.gemm_ms = plain[0].alone_ms;
	r.comm_ms = 1e9;
	for (int sms : { 4, 6, 8, 10 }) {
		float ms = comm_alone(j, sms);

		if (everything)
			printf("    comm alone sms=%d %.4f\n", sms, ms);
		r.comm_ms = std::min(r.comm_ms, ms);
	}
	for (int sms : { 4, 6, 8, 10 }) {
		try_ways(j, ways_bands(j, sms), r);
		try_ways(j, ways_in_band(j, plain, sms), r);
	}
	r.fill_ms = band_plan(j, std::max(1, sm_count / ((s.n + 255) / 256)) * 128,
			      0)->alone_ms;
	for (struct way *w : { &r.best_bands, &r.best_inband }) {
		if (!w->bands)
			learn(j, w->whole, w->sms);
		r.wrong += run_way(j, *w, 25);
		if (r.w.ms == 0 || w->ms < r.w.ms)
			r.w = *w;
	}
	r.error = max_rel_err(s);
	return r;
}

static double floor_ms(const struct result &r)
{
	return std::max(r.gemm_ms, r.fill_ms + r.comm_ms);
}

static void print_result(const struct result &r)
{
	double seq = r.gemm_ms + r.comm_ms, most = std::max(r.gemm_ms, r.comm_ms);

	printf("%-12s %-8s %3d %6d %6d %6d %.4f %.4f %.4f %.4f %.4f %.4f %.3f %.3f %.3f %.3f %+5.1f%% %d %.1e %llu %s | bands %.4f in-band %.4f\n",
	       r.s.model, r.s.sublayer, r.s.tp, r.s.m, r.s.n, r.s.k, r.gemm_ms,
	       r.comm_ms, r.fill_ms, r.w.ms, r.w.gemm_ms, floor_ms(r),
	       seq / r.w.ms, seq / most, most / r.w.ms, floor_ms(r) / r.w.ms,
	       (r.w.gemm_ms / r.gemm_ms - 1) * 100, r.w.sms, r.error, r.wrong,
	       r.w.name, r.best_bands.ms, r.best_inband.ms);
	fflush(stdout);
}

static void json_row(FILE *f, const struct result &r, bool last)
{
	double seq = r.gemm_ms + r.comm_ms, most = std::max(r.gemm_ms, r.comm_ms);

	fprintf(f, "    {\"model\": \"%s\", \"sublayer\": \"%s\", \"tp\": %d, \"m\": %d, \"n\": %d, \"k\": %d, ",
		r.s.model, r.s.sublayer, r.s.tp, r.s.m, r.s.n, r.s.k);
	fprintf(f, "\"gemm_ms\": %.4f, \"comm_ms\": %.4f, \"sequential_ms\": %.4f, \"fused_ms\": %.4f, \"speedup\": %.3f, \"ideal\": %.3f, ",
		r.gemm_ms, r.comm_ms, seq, r.w.ms, seq / r.w.ms, seq / most);
	fprintf(f, "\"limit_ratio\": %.3f, \"hidden\": %.3f, \"gemm_fused_ms\": %.4f, \"gemm_slowdown\": %.3f, \"sms\": %d, \"max_rel_err\": %.2e, \"wrong\": %llu, ",
		most / r.w.ms, (seq - r.w.ms) / std::min(r.gemm_ms, r.comm_ms),
		r.w.gemm_ms, r.w.gemm_ms / r.gemm_ms, r.w.sms, r.error, r.wrong);
	fprintf(f, "\"fill_ms\": %.4f, \"floor_ms\": %.4f, \"floor_ratio\": %.3f, \"mode\": \"%s\", \"bands_ms\": %.4f, \"in_band_ms\": %.4f}%s\n",
		r.fill_ms, floor_ms(r), floor_ms(r) / r.w.ms, r.w.name,
		r.best_bands.ms, r.best_inband.ms, last ? "" : ",");
}

struct means {
	double speedup, ideal, limit, floor, slow, best;
};

static struct means geomeans(const std::vector<result> &all)
{
	struct means g = {};

	for (auto &r : all) {
		double seq = r.gemm_ms + r.comm_ms;
		double most = std::max(r.gemm_ms, r.comm_ms);

		g.speedup += log(seq / r.w.ms) / all.size();
		g.ideal += log(seq / most) / all.size();
		g.limit += log(most / r.w.ms) / all.size();
		g.floor += log(floor_ms(r) / r.w.ms) / all.size();
		g.slow += log(r.w.gemm_ms / r.gemm_ms) / all.size();
		g.best = std::max(g.best, seq / r.w.ms);
	}
	return { exp(g.speedup), exp(g.ideal), exp(g.limit), exp(g.floor),
		 exp(g.slow), g.best };
}

static void json(const char *path, const std::vector<result> &all)
{
	struct means g = geomeans(all);
	struct cudaDeviceProp prop;
	int driver, runtime;
	char date[32];
	time_t now = time(NULL);
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	cudaGetDeviceProperties(&prop, 0);
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	fprintf(f, "{\n  \"date\": \"%s\", \"gpu\": \"%s\", \"driver\": \"%s\", \"driver_cuda\": %d, \"runtime\": %d, \"cublaslt\": %zu,\n",
		date, prop.name, getenv("T3_DRIVER") ? getenv("T3_DRIVER") : "",
		driver, runtime, cublasLtGetVersion());
	fprintf(f, "  \"link\": \"loopback\", \"rate_gb_s\": %d, \"ranks\": 8, \"dtype\": \"bf16\", \"collective\": \"reduce-scatter\",\n  \"rows\": [\n",
		rate);
	for (auto &r : all)
		json_row(f, r, &r == &all.back());
	fprintf(f, "  ],\n  \"geomean\": {\"speedup\": %.3f, \"ideal\": %.3f, \"limit_ratio\": %.3f, \"floor_ratio\": %.3f, \"gemm_slowdown\": %.3f},\n  \"best_speedup\": %.3f\n}\n",
		g.speedup, g.ideal, g.limit, g.floor, g.slow, g.best);
	fclose(f);
}

int main(int argc, char **argv)
{
	std::vector<result> all;
	const char *path = NULL;
	int only = -1;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--rate"))
			rate = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--only"))
			only = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--algos"))
			algos = std::min(atoi(argv[i + 1]), 16);
		else if (!strcmp(argv[i], "--json"))
			path = argv[i + 1];
		else if (!strcmp(argv[i], "--all"))
			everything = atoi(argv[i + 1]);
	}
	setup();
	printf("model layer tp M N K gemm comm fill fused gemm' floor speedup ideal limit floor-ratio slow sms err wrong way\n");
	for (auto &s : shapes) {
		if (only >= 0 && only != (int)(&s - shapes))
			continue;
		all.push_back(measure(s));
		print_result(all.back());
	}
	struct means g = geomeans(all);
	printf("geomean speedup %.3f (max %.3f) ideal %.3f limit %.3f floor-ratio %.3f slowdown %.3f\n",
	       g.speedup, g.best, g.ideal, g.limit, g.floor, g.slow);
	if (path)
		json(path, all);
	return 0;
}
