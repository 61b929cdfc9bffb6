// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GEMM + reduce-scatter on one GPU that stands for all by symmetry: what a
 * rank sends goes out, an equal stream comes in, both in its own memory, at a
 * limited rate. Each way of tracking is tried, with several settings; the best
 * is measured again and checked.
 *
 * With --link host the bands travel by copy engines, through host memory and
 * back, piece by piece.
 *
 * usage: loopback [--link loopback|host] [--rate GB/s] [--only N] [--algos N]
 *	[--sweep-copy 1] [--seeds FILE] [--from N] [--to N] [--decode 1] [--climbs N] [--in-band 0|1] [--epilogue 0|1] [--json FILE] [--all 1]
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
#include "gemm.cuh"

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
enum { W_DONE, W_TICKET, W_LINK, W_WRONG, W_GATE, W_ABORT, W_HOLD,
       W_BAND, W_OWN = W_BAND + T3_MAX_BANDS };

static cublasLtHandle_t lt;
#define STREAMS	3

static cudaStream_t gemm_stream[STREAMS], comm_stream, gate_stream;
static void *workspace[STREAMS];
static const size_t workspace_bytes = 64 << 20;
static char *a_mem, *b_mem, *c_mem, *y_mem, *r_mem;
static uint32_t *words, *order_mem, *stamp_mem;
static uint32_t epoch, own_epoch, ticket, gate, hold;
static int in_band = 1, own = 1, climbs = 200;
static bool host_link;
static int rate = 400, algos = 6, sm_count, everything;

static uint32_t *word(int i)
{
	return words + 32 * i;
}

/* A rectangle of the output. */
struct rect {
	int row, col, rows, cols;
};

/* A rectangle of the GEMM, in one launch. */
struct gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algo;
	int rows, cols, target;
	float alone_ms;
};

static void run_gemm(const struct shape &s, const struct gemm &g, int row,
		     int col, void *out, int stream)
{
	float one = 1, zero = 0;
	char *c = (char *)out + ((size_t)row * s.n + col) * 2;

	CHECK(cublasLtMatmul(lt, g.desc, &one, b_mem + (size_t)col * 2, g.a,
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

/* cuBLAS's candidates for a rectangle's size. */
static std::vector<gemm> candidates(const struct shape &s, int rows, int cols,
				    int target)
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
	CHECK(cublasLtMatrixLayoutCreate(&g.a, CUDA_R_16BF, cols, s.k, s.n));
	CHECK(cublasLtMatrixLayoutCreate(&g.b, CUDA_R_16BF, s.k, rows, s.k));
	CHECK(cublasLtMatrixLayoutCreate(&g.c, CUDA_R_16BF, cols, rows, s.n));
	CHECK(cublasLtMatmulAlgoGetHeuristic(lt, g.desc, g.a, g.b, g.c, g.c,
					     pref, algos, found, &count));
	cublasLtMatmulPreferenceDestroy(pref);
	g.target = target;
	g.rows = rows;
	g.cols = cols;
	for (int i = 0; i < count; i++) {
		g.algo = found[i].algo;
		list.push_back(g);
	}
	return list;
}

static struct t3_pace pace(void);

/*
 * The candidates, the fastest first; each is measured by itself while @held SMs
 * are held by others.
 */
static std::vector<gemm> find_gemms(const struct shape &s, int rows, int cols,
				    int target, int held, int n)
{
	std::vector<gemm> list = candidates(s, rows, cols, target);

	for (auto &g : list)
		run_gemm(s, g, 0, 0, r_mem, 0);
	CHECK(cudaDeviceSynchronize());
	hold++;
	if (held) {
		t3_hold<<<held, T3_THREADS, 0, comm_stream>>>(word(W_HOLD), hold,
							      pace());
		CHECK(cudaGetLastError());
	}
	for (auto &g : list)
		g.alone_ms = median_ms([&] { run_gemm(s, g, 0, 0, r_mem, 0); },
				       gemm_stream[0], n);
	CHECK(cuStreamWriteValue32(gate_stream, (CUdeviceptr)word(W_HOLD), hold, 0));
	CHECK(cudaDeviceSynchronize());
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

/* How to run a shape in bands: what is searched. */
struct recipe {
	int kind;		/* rows, columns of what travels, full columns */
	int sms, target;
	int streams;
	int pick;		/* of the GEMM's candidates */
	std::vector<int> size;	/* of the bands, in units */
};

/* One way to run a shape. */
struct way {
	bool bands;
	bool after;		/* not overlapped: the collective follows the GEMM */
	bool own;		/* one launch of the example that counts its tiles */
	struct gemm_args args;	/* its */
	int sms;
	int streams;		/* of the bands */
	struct recipe recipe;
	struct gemm whole;	/* in band */
	std::vector<rect> rect;	/* of the bands */
	std::vector<const gemm *> band;
	int travelling;		/* bands that travel */
	float ms, gemm_ms;
	char name[160];
};

struct job {
	struct shape s;
	int travel_rows;
	size_t travel_bytes;
	struct t3_track track;
	struct t3_bands drain;
	CUtensorMap from, to;
	CUtensorMap own_a, own_b, own_c, own_r;
	std::map<std::vector<int>, std::vector<gemm>> plan;
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
	j.drain.epoch = j.drain.counter == word(W_OWN) ? ++own_epoch : epoch;
	t3_drain<<<sms, 32 * T3_SLOTS, T3_SLOTS * T3_CHUNK, comm_stream>>>(
		j.from, j.to, j.drain);
	ticket += j.drain.band[j.drain.bands].chunk + sms * T3_SLOTS;
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
	run_gemm(j.s, g, 0, 0, c_mem, 0);
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

/* What is sought: the least time; of the same time, the least of the GEMM's. */
static double score(const struct way &w)
{
	return w.ms + .05 * w.gemm_ms;
}

static const gemm *band_plan(struct job &j, int rows, int cols, int target,
			     int held, int pick = 0)
{
	std::vector<int> key = { rows, cols, target, held };

	if (!j.plan.count(key)) {
		auto list = find_gemms(j.s, rows, cols, target, held, 5);

		list.resize(std::min<size_t>(list.size(), 3));
		j.plan[key] = list;
	}
	auto &list = j.plan[key];

	return &list[std::min<size_t>(pick, list.size() - 1)];
}

static void set_bands(struct job &j, const std::vector<rect> &list, int bands)
{
	struct t3_bands &d = j.drain;

	d.bands = bands;
	for (int i = 0; i < bands; i++) {
		const struct rect &r = list[i];
		/* Of full columns only the rows of others travel. */
		int rows = std::min(r.rows, j.travel_rows - r.row);

		d.band[i].row = r.row;
		d.band[i].col = r.col;
		d.band[i].cols = r.cols;
		d.band[i].counter = i;
		d.band[i].each = 1;
		d.band[i + 1].chunk = d.band[i].chunk +
			(rows + T3_BOX_ROWS - 1) / T3_BOX_ROWS * ((r.cols + T3_BOX_COLS - 1) / T3_BOX_COLS);
	}
}

/* Does the example take a shape: rows of 16 bytes, whole tiles of rows? */
static bool own_fits(const struct shape &s)
{
	return s.k % 8 == 0 && s.n % 8 == 0 && s.m % GEMM_ROWS == 0;
}

static void launch_own(const struct job &j, const struct way &w, bool reference)
{
	struct gemm_args args = w.args;

	if (reference)
		args.counters = NULL;
	gemm_kernel<<<sm_count - (reference ? 0 : w.sms), GEMM_THREADS, GEMM_SHARED,
		      gemm_stream[0]>>>(j.own_a, j.own_b,
					reference ? j.own_r : j.own_c, args);
	CHECK(cudaGetLastError());
}

/* The bands of the example, as it makes them; the last columns are few. */
static void set_own(struct job &j, const struct way &w)
{
	const struct gemm_args &g = w.args;
	struct t3_bands &d = j.drain;

	d.bands = 0;
	for (uint32_t row = 0; row < g.count_rows; row += g.group) {
		for (uint32_t col = 0; col < g.tile_cols; col += g.chunk) {
			struct t3_band &b = d.band[d.bands];
			uint32_t cols = std::min(g.chunk, g.tile_cols - col);
			uint32_t rows = std::min(g.group, g.count_rows - row);

			b.row = row * GEMM_ROWS;
			b.col = col * GEMM_COLS;
			b.cols = std::min(cols * GEMM_COLS, g.cols - b.col);
			b.counter = d.bands;
			b.each = rows * cols * GEMM_COUNTS;
			d.band[++d.bands].chunk = b.chunk + rows * GEMM_ROWS /
				T3_BOX_ROWS * ((b.cols + T3_BOX_COLS - 1) /
					       T3_BOX_COLS);
		}
	}
	CHECK(cudaMemset(word(W_OWN), 0, 128 * T3_MAX_BANDS));
	own_epoch = 0;
	d.counter = word(W_OWN);
}

static std::vector<way> ways_own(struct job &j, int sms)
{
	std::vector<way> ways;

	for (uint32_t group : { 1, 2, 4, 7, 8, 14 }) {
		for (uint32_t chunk : { 1, 2, 4, 8, 16, 32 }) {
			struct way w = {};
			struct gemm_args &g = w.args;
			uint32_t bands;

			g.depth = j.s.k;
			g.cols = j.s.n;
			g.tile_rows = j.s.m / GEMM_ROWS;
			g.tile_cols = (j.s.n + GEMM_COLS - 1) / GEMM_COLS;
			g.group = group;
			g.chunk = chunk;
			g.count_rows = j.travel_rows / GEMM_ROWS;
			g.counters = word(W_OWN);
			g.apart = 32;
			bands = g.count_rows / group *
				((g.tile_cols + chunk - 1) / chunk);
			if (g.count_rows % group || bands > T3_MAX_BANDS ||
			    chunk >= 2 * g.tile_cols ||
			    group * chunk > (uint32_t)sm_count || bands < 4)
				continue;
			w.bands = w.own = true;
			w.sms = sms;
			w.streams = 1;
			snprintf(w.name, sizeof(w.name), "epilogue %u x %u tiles",
				 group, chunk);
			ways.push_back(w);
		}
	}
	return ways;
}

static void queue_after(struct job &j, const struct way &w)
{
	cudaEvent_t made;

	CHECK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
	run_gemm(j.s, *w.band[0], 0, 0, c_mem, 0);
	write_word(W_BAND, gemm_stream[0], epoch);
	CHECK(cudaEventRecord(made, gemm_stream[0]));
	CHECK(cudaStreamWaitEvent(comm_stream, made));
	launch_drain(j, w.sms);
	cudaEventDestroy(made);
}

static void queue_bands(struct job &j, const struct way &w)
{
	launch_drain(j, w.sms);
	for (size_t i = 0; i < w.band.size(); i++) {
		int s = i % w.streams;

		run_gemm(j.s, *w.band[i], w.rect[i].row, w.rect[i].col, c_mem, s);
		if ((int)i < w.travelling)
			write_word(W_BAND + i, gemm_stream[s], epoch);
	}
}

static void queue_whole(struct job &j, const struct way &w)
{
	launch_tracker(j, w.sms);
	run_gemm(j.s, w.whole, 0, 0, c_mem, 0);
	write_word(W_DONE, gemm_stream[0], epoch);
}

struct events {
	cudaEvent_t begin, gemm[STREAMS], tracked, end;
};

static void queue_epoch(struct job &j, const struct way &w, struct events &e)
{
	epoch++;
	CHECK(cudaEventRecord(e.begin, gemm_stream[0]));
	for (int i = 1; i < STREAMS; i++)
		CHECK(cudaStreamWaitEvent(gemm_stream[i], e.begin));
	CHECK(cudaStreamWaitEvent(comm_stream, e.begin));
	if (w.after) {
		queue_after(j, w);
	} else if (w.own) {
		launch_drain(j, w.sms);
		launch_own(j, w, false);
	} else if (w.bands)
		queue_bands(j, w);
	else
		queue_whole(j, w);
	for (int i = STREAMS - 1; i >= 0; i--) {
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
		for (auto *x : { &e.begin, &e.gemm[0], &e.gemm[1], &e.gemm[2],
				 &e.tracked, &e.end })
			CHECK(cudaEventCreate(x));
	CHECK(cudaMemset(y_mem, 0, j.travel_bytes));
	CHECK(cudaMemset(c_mem, 0xff, j.travel_bytes));
	CHECK(cudaMemset(word(W_WRONG), 0, 8));
	j.drain.counter = word(W_BAND);
	if (w.own)
		set_own(j, w);
	else if (w.bands)
		set_bands(j, w.rect, w.travelling);
	CHECK(cudaDeviceSynchronize());
	CHECK(cuStreamWaitValue32(gemm_stream[0], (CUdeviceptr)word(W_GATE),
				  ++gate, CU_STREAM_WAIT_VALUE_GEQ));
	for (auto &e : ev)
		queue_epoch(j, w, e);
	write_word(W_GATE, gate_stream, gate);
	CHECK(cudaDeviceSynchronize());
	for (int i = 2; i < epochs; i++) {
		float ms, last = 0;

		cudaEventElapsedTime(&ms, ev[i].begin, ev[i].end);
		all.push_back(ms);
		for (auto e : ev[i].gemm) {
			cudaEventElapsedTime(&ms, ev[i].begin, e);
			last = std::max(last, ms);
		}
		gemms.push_back(last);
	}
	w.ms = middle(all);
	w.gemm_ms = middle(gemms);
	for (auto &e : ev)
		for (auto x : { e.begin, e.gemm[0], e.gemm[1], e.gemm[2], e.tracked,
				e.end })
			cudaEventDestroy(x);
	/* Each way has its own reference: what its own GEMMs make by themselves. */
	if (w.own)
		launch_own(j, w, true);
	else if (w.bands)
		for (size_t i = 0; i < w.band.size(); i++)
			run_gemm(j.s, *w.band[i], w.rect[i].row, w.rect[i].col,
				 r_mem, 0);
	else
		run_gemm(j.s, w.whole, 0, 0, r_mem, 0);
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
	std::vector<gemm> list = find_gemms(j.s, j.s.m, j.s.n, sm_count - sms, sms, 5);
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

/* How a shape is cut: units of rows or of columns. */
struct cutting {
	int kind;
	int units;
	int largest;		/* a band's units */
	double unit_comm_ms;
	double own_ms;		/* the GEMM of rows that are made by themselves */
	std::vector<float> ms;	/* of a band's GEMM alone, by its units */
	int target, sms;
};

static struct rect cut_rect(const struct job &j, int kind, int at, int size)
{
	if (kind)
		return { 0, at * 256, kind == 2 ? j.s.m : j.travel_rows,
			 std::min(size * 256, j.s.n - at * 256) };
	return { at * 128, 0, size * 128, j.s.n };
}

static int cut_units(const struct job &j, int kind)
{
	return kind ? (j.s.n + 255) / 256 : j.travel_rows / 128;
}

static struct cutting make_cutting(struct job &j, int kind, int sms, int target,
				   float comm_ms)
{
	struct cutting c = {};

	c.kind = kind;
	c.units = cut_units(j, kind);
	c.largest = std::min(c.units, 48);
	c.unit_comm_ms = comm_ms / c.units;
	c.target = target;
	c.sms = sms;
	c.ms.resize(c.largest + 1);
	for (int n = 1; n <= c.largest; n++) {
		struct rect r = cut_rect(j, kind, 0, n);

		/* Measured where it matters; between, a line. */
		if (n > 12 && n % 4 && n != c.largest)
			continue;
		c.ms[n] = band_plan(j, r.rows, r.cols, target, sms)->alone_ms;
		for (int m = n - 1; m && !c.ms[m]; m--)
			c.ms[m] = c.ms[m / 4 * 4] + (c.ms[n] - c.ms[m / 4 * 4]) *
				  (m - m / 4 * 4) / (n - m / 4 * 4);
	}
	if (kind != 2)
		c.own_ms = band_plan(j, j.s.m - j.travel_rows, j.s.n, target,
				     sms)->alone_ms;
	return c;
}

/* A way to have made some units: when the GEMM and the link are done. */
struct point {
	float gemm, link;
	int size, before;	/* the last band, and the point before it */
};

/*
 * The best schedules by dynamic programming over the units made. @hidden is how
 * much of a launch's time alone is hidden behind the one before.
 */
static std::vector<int> schedule(const struct cutting &c, float hidden)
{
	std::vector<std::vector<point>> made(c.units + 1);
	std::vector<int> sizes;
	float best = 1e9;
	int which = 0;

	made[0].push_back({ 0, 0, 0, 0 });
	for (int at = 0; at < c.units; at++) {
		auto &list = made[at];
		std::vector<point> front;

		std::sort(list.begin(), list.end(), [](const point &x, const point &y) {
			return x.gemm < y.gemm || (x.gemm == y.gemm && x.link < y.link); });
		for (auto &p : list)
			if (front.empty() || p.link < front.back().link - 1e-4)
				front.push_back(p);
		if (front.size() > 24)
			front.resize(24);
		list = front;
		for (size_t i = 0; i < list.size(); i++) {
			for (int n = 1; n <= std::min(c.largest, c.units - at); n++) {
				float gemm = list[i].gemm + c.ms[n] - (at ? hidden : 0);
				float link = std::max(list[i].link, gemm) +
					     n * (float)c.unit_comm_ms;

				made[at + n].push_back({ gemm, link, n, (int)i });
			}
		}
	}
	for (size_t i = 0; i < made[c.units].size(); i++) {
		auto &p = made[c.units][i];
		float ms = std::max(p.link, p.gemm + (float)std::max(0.,
						c.own_ms - hidden));

		if (ms < best) {
			best = ms;
			which = i;
		}
	}
	for (int at = c.units; at;) {
		struct point p = made[at][which];

		sizes.insert(sizes.begin(), p.size);
		at -= p.size;
		which = p.before;
	}
	return sizes;
}

/* Own rows come last: while they are made, the last band drains. */
static struct way make_way(struct job &j, const struct recipe &r)
{
	static const char *const names[] = { "rows", "columns", "full-columns" };
	struct way w = {};
	int at = 0, n;

	w.bands = true;
	w.recipe = r;
	w.sms = r.sms;
	w.streams = r.streams;
	n = snprintf(w.name, sizeof(w.name), "%s streams=%d target=%d pick=%d ",
		     names[r.kind], r.streams, r.target, r.pick);
	for (int size : r.size) {
		w.rect.push_back(cut_rect(j, r.kind, at, size));
		if (n < (int)sizeof(w.name))
			n += snprintf(w.name + n, sizeof(w.name) - n, "%s%d",
				      at ? "+" : "", size);
		at += size;
	}
	w.travelling = w.rect.size();
	if (r.kind != 2)
		w.rect.push_back({ j.travel_rows, 0, j.s.m - j.travel_rows, j.s.n });
	for (auto &x : w.rect)
		w.band.push_back(band_plan(j, x.rows, x.cols, r.target, r.sms, r.pick));
	return w;
}

/* Bands that grow or shrink evenly, from a number of waves on. */
static std::vector<int> even(const struct job &j, int kind, int sms, double first,
			     double factor)
{
	int tiles = kind ? ((kind == 2 ? j.s.m : j.travel_rows) + 127) / 128 :
			   (j.s.n + 255) / 256;
	double next = std::max(1., floor(first * (sm_count - sms) / tiles));
	std::vector<int> sizes;
	int left = cut_units(j, kind);

	while (left) {
		int n = std::max(1, (int)(next + .5));

		if (n > left || left - n < .4 * n * factor)
			n = left;
		sizes.push_back(n);
		left -= n;
		next *= factor;
	}
	return sizes;
}

static void add_way(struct job &j, std::vector<way> &ways, const struct recipe &r)
{
	if (r.size.size() > T3_MAX_BANDS / 2 ||
	    std::any_of(ways.begin(), ways.end(), [&](const way &w) {
		return w.recipe.kind == r.kind && w.recipe.sms == r.sms &&
		       w.recipe.target == r.target && w.recipe.size == r.size &&
		       w.recipe.streams == r.streams; }))
		return;
	ways.push_back(make_way(j, r));
}

static std::vector<way> ways_bands(struct job &j, int sms, float comm_ms)
{
	std::vector<way> ways;

	for (int kind = 0; kind < 3; kind++) {
		if (kind && j.s.n < 2 * j.s.m && j.s.n < 8192)
			continue;
		for (int target : { 0, sm_count - sms }) {
			struct cutting c = make_cutting(j, kind, sms, target, comm_ms);

			for (float hidden : { 0.f, .003f, .006f, .01f })
				add_way(j, ways, { kind, sms, target, 2, 0,
						   schedule(c, hidden) });
			for (double first : { 1., 1.5, 2., 3., 4., 6. })
				add_way(j, ways, { kind, sms, target, 2, 0,
						   even(j, kind, sms, first, 1) });
			for (double first : { .5, 1., 2. })
				add_way(j, ways, { kind, sms, target, 2, 0,
						   even(j, kind, sms, first, 1.4) });
			for (double first : { 3., 6. })
				add_way(j, ways, { kind, sms, target, 2, 0,
						   even(j, kind, sms, first, .7) });
		}
	}
	return ways;
}

static int pick_one(int n)
{
	return rand() % n;
}

/* Another recipe, near this one. */
static struct recipe mutate(const struct recipe &from)
{
	struct recipe r = from;
	int n = r.size.size(), a = pick_one(n), b = pick_one(n), some;

	switch (pick_one(10)) {
	case 0:
		r.streams = 1 + pick_one(STREAMS);
		break;
	case 1:
		r.target = r.target ? 0 : sm_count - r.sms;
		break;
	case 2:
		r.pick = pick_one(3);
		break;
	case 3:
	case 4:
		if (r.size[a] < 2)
			break;
		some = 1 + pick_one(r.size[a] - 1);
		r.size[a] -= some;
		r.size.insert(r.size.begin() + a, some);
		break;
	case 5:
	case 6:
		if (a + 1 == n)
			break;
		r.size[a] += r.size[a + 1];
		r.size.erase(r.size.begin() + a + 1);
		break;
	default:
		some = 1 + pick_one(std::max(1, r.size[a] / 2));
		if (r.size[a] <= some)
			break;
		r.size[a] -= some;
		r.size[b] += some;
	}
	return r;
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
	for (const void *kernel : { (const void *)t3_drain,
				    (const void *)t3_hold, (const void *)t3_tracker,
				    (const void *)t3_learn, (const void *)compare,
				    (const void *)gemm_kernel }) {
		struct cudaFuncAttributes attributes;

		CHECK(cudaFuncGetAttributes(&attributes, kernel));
	}
	CHECK(cudaFuncSetAttribute(t3_drain,
		cudaFuncAttributeMaxDynamicSharedMemorySize, T3_SLOTS * T3_CHUNK));
	CHECK(cudaFuncSetAttribute(gemm_kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, GEMM_SHARED));
	CHECK(cudaMalloc(&words, 65536));
	CHECK(cudaMemset(words, 0, 65536));
	CHECK(cudaMalloc(&order_mem, 4 << 20));
	CHECK(cudaMalloc(&stamp_mem, 4 << 20));
}

static CUtensorMap tensor_map(void *p, int m, int n)
{
	CUtensorMap map;
	cuuint64_t dims[2] = { (cuuint64_t)n, (cuuint64_t)m };
	cuuint64_t strides[1] = { (cuuint64_t)n * 2 };
	cuuint32_t box[2] = { T3_BOX_COLS, T3_BOX_ROWS }, ones[2] = { 1, 1 };

	CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
		p, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

static CUtensorMap own_map(void *p, int rows, int cols, int box_rows)
{
	CUtensorMap map;

	CHECK(gemm_map(&map, p, rows, cols, box_rows));
	return map;
}

static struct job make_job(const struct shape &s)
{
	struct job j = {};
	struct t3_track &t = j.track;

	j.s = s;
	j.travel_rows = s.m * 7 / 8;
	if (s.m > 512)
		j.travel_rows = j.travel_rows / T3_TILE_ROWS * T3_TILE_ROWS;
	else if (!j.travel_rows)
		j.travel_rows = 1;
	j.travel_bytes = (size_t)j.travel_rows * s.n * 2;
	t.order = order_mem;
	t.tile_cols = (s.n + T3_TILE_COLS - 1) / T3_TILE_COLS;
	t.tiles = t.tile_cols * ((j.travel_rows + T3_TILE_ROWS - 1) /
				 T3_TILE_ROWS);
	t.rows = s.m;
	t.cols = s.n;
	t.output = c_mem;
	t.peer = y_mem;
	t.done = word(W_DONE);
	t.leave_poison = 1;
	/* What is past the rows that travel is outside, and does not. */
	j.from = tensor_map(c_mem, j.travel_rows, s.n);
	j.to = tensor_map(y_mem, j.travel_rows, s.n);
	j.drain.counter = word(W_BAND);
	return j;
}

/* The collective alone, over what a GEMM left: all is there. */
static float comm_alone(struct job &j, int sms)
{
	set_bands(j, { { 0, 0, j.travel_rows, j.s.n } }, 1);
	write_word(W_BAND, comm_stream, epoch);
	return median_ms([&] { launch_drain(j, sms); }, comm_stream);
}

/* What SMs can move, with no limit. */
static void print_curve(void)
{
	struct job j = make_job({ "", "", 8, 16384, 4096, 64 });
	int limit = rate;

	rate = 0;
	for (int sms : { 2, 4, 6, 8, 10, 16 }) {
		float ms = comm_alone(j, sms);

		printf("adds on %d SMs: %.0f GB/s, %.1f an SM\n", sms,
		       j.travel_bytes / ms / 1e6, j.travel_bytes / ms / 1e6 / sms);
	}
	rate = limit;
}

struct result {
	struct shape s;
	float gemm_ms, comm_ms, fill_ms;
	struct way w, best_bands, best_inband, best_own, after;
	float own_alone_ms;	/* the example, by itself on all SMs */
	double error, own_error;
	unsigned long long wrong;
};

static void try_ways(struct job &j, const std::vector<way> &ways,
		     struct result &r)
{
	for (auto w : ways) {
		struct way &best = w.own ? r.best_own :
				   w.bands ? r.best_bands : r.best_inband;

		if (!w.bands)
			learn(j, w.whole, w.sms);
		r.wrong += run_way(j, w, 7);
		if (everything)
			printf("    %-60s sms=%d fused %.4f gemm %.4f\n", w.name,
			       w.sms, w.ms, w.gemm_ms);
		if (best.ms == 0 || score(w) < score(best))
			best = w;
	}
}

/* Climb: keep what is better when measured twice. */
static void improve(struct job &j, struct result &r)
{
	srand(1);
	r.wrong += run_way(j, r.best_bands, 17);
	for (int i = 0; i < climbs; i++) {
		struct recipe next = mutate(r.best_bands.recipe);

		if (next.size.size() > T3_MAX_BANDS / 2)
			continue;
		struct way w = make_way(j, next);

		r.wrong += run_way(j, w, 9);
		if (score(w) >= score(r.best_bands))
			continue;
		r.wrong += run_way(j, w, 17);
		if (score(w) < score(r.best_bands))
			r.best_bands = w;
	}
}

/*
 * Recipes that an earlier run found best, by shape: the "mode" of its rows. What
 * they say is only where the search begins; all is measured anew.
 */
static std::map<int, struct recipe> seeds;

static void read_seeds(const char *path)
{
	static const char *const names[] = { "rows", "columns", "full-columns" };
	FILE *f = fopen(path, "r");
	char line[4096], kind[32];
	int number = 0;

	while (f && fgets(line, sizeof(line), f)) {
		const char *mode = strstr(line, "\"mode\": \"");
		struct recipe r = {};
		int used = 0;

		if (!mode)
			continue;
		number++;
		if (sscanf(mode + 9, "%31s streams=%d target=%d pick=%d %n", kind,
			   &r.streams, &r.target, &r.pick, &used) < 4)
			continue;
		for (r.kind = 0; r.kind < 3 && strcmp(names[r.kind], kind);)
			r.kind++;
		r.sms = r.target ? sm_count - r.target : 10;
		for (const char *p = mode + 9 + used; *p >= '0' && *p <= '9';) {
			r.size.push_back((int)strtol(p, (char **)&p, 10));
			p += *p == '+';
		}
		if (r.kind < 3 && !r.size.empty())
			seeds[number - 1] = r;
	}
	if (f)
		fclose(f);
}

/* A seed that still covers all that travels. */
static std::vector<way> ways_seeded(struct job &j, int number)
{
	std::vector<way> ways;
	int units = 0;

	if (!seeds.count(number))
		return ways;
	struct recipe r = seeds[number];

	for (int size : r.size)
		units += size;
	if (units != cut_units(j, r.kind))
		return ways;
	for (int sms : { 8, 10 }) {
		r.sms = sms;
		r.target = r.target ? sm_count - sms : 0;
		ways.push_back(make_way(j, r));
	}
	return ways;
}

/* Its figures are those of cuBLAS's GEMM: what it loses alone counts. */
static void measure_own(struct job &j, struct result &r)
{
	j.own_a = own_map(a_mem, j.s.m, j.s.k, GEMM_ROWS);
	j.own_b = own_map(b_mem, j.s.k, j.s.n, GEMM_DEPTH);
	j.own_c = own_map(c_mem, j.s.m, j.s.n, 64);
	j.own_r = own_map(r_mem, j.s.m, j.s.n, 64);
	for (int sms : { 8, 10 })
		try_ways(j, ways_own(j, sms), r);
	if (r.best_own.ms)
		r.own_alone_ms = median_ms([&] { launch_own(j, r.best_own, true); },
					   gemm_stream[0]);
}

static struct result measure(const struct shape &s)
{
	struct job j = make_job(s);
	struct result r = {};
	auto plain = find_gemms(s, s.m, s.n, 0, 0, 11);
	int wave = std::max(1, sm_count / ((s.n + 255) / 256)) * 128;

	r.s = s;
	r.gemm_ms = plain[0].alone_ms;
	r.comm_ms = 1e9;
	for (int sms : { 8, 10 }) {
		float ms = comm_alone(j, sms);

		if (everything)
			printf("    comm alone sms=%d %.4f\n", sms, ms);
		r.comm_ms = std::min(r.comm_ms, ms);
	}
	try_ways(j, ways_seeded(j, (int)(&s - shapes)), r);
	for (int sms : { 8, 10 })
		if (!r.best_bands.ms)
			try_ways(j, ways_bands(j, sms, r.comm_ms), r);
	improve(j, r);
	if (in_band)
		try_ways(j, ways_in_band(j, plain, 10), r);
	if (own && own_fits(s))
		measure_own(j, r);
	r.after.bands = r.after.after = true;
	r.after.sms = 10;
	r.after.streams = 1;
	r.after.rect.push_back({ 0, 0, s.m, s.n });
	r.after.band.push_back(&plain[0]);
	r.after.travelling = 1;
	snprintf(r.after.name, sizeof(r.after.name), "not overlapped");
	r.fill_ms = band_plan(j, std::min(wave, s.m), s.n, 0, 0)->alone_ms;
	for (struct way *w : { &r.best_bands, &r.best_inband, &r.best_own, &r.after }) {
		if (w->ms == 0 && !w->after)
			continue;
		if (!w->bands)
			learn(j, w->whole, w->sms);
		r.wrong += run_way(j, *w, 25);
		if (w->own)
			r.own_error = max_rel_err(s);
		if (r.w.ms == 0 || w->ms < r.w.ms)
			r.w = *w;
	}
	r.error = r.w.own ? r.own_error : max_rel_err(s);
	return r;
}

/* When, where, by what. */
static void json_head(FILE *f)
{
	struct cudaDeviceProp prop;
	int driver, runtime;
	char date[32];
	time_t now = time(NULL);

	cudaGetDeviceProperties(&prop, 0);
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	fprintf(f, "{\n  \"date\": \"%s\", \"gpu\": \"%s\", \"driver\": \"%s\", \"driver_cuda\": %d, \"runtime\": %d, \"cublaslt\": %zu,\n",
		date, prop.name, getenv("T3_DRIVER") ? getenv("T3_DRIVER") : "",
		driver, runtime, cublasLtGetVersion());
	fprintf(f, "  \"link\": \"%s\", \"rate_gb_s\": %d, \"ranks\": 8, \"dtype\": \"bf16\", \"collective\": \"reduce-scatter\",\n",
		host_link ? "host" : "loopback", host_link ? 0 : rate);
}

/* ---- few rows: decoding ---- */

static struct way not_overlapped(const struct shape &s, const struct gemm *g)
{
	struct way w = {};

	w.bands = w.after = true;
	w.sms = 10;
	w.streams = 1;
	w.rect.push_back({ 0, 0, s.m, s.n });
	w.band.push_back(g);
	w.travelling = 1;
	snprintf(w.name, sizeof(w.name), "not overlapped");
	return w;
}

/*
 * Auto overlaps only where that was clearly faster when it was tried. Then both
 * are measured afresh, in turn: what auto took against not overlapping.
 */
static bool measure_decode(const struct shape &s, FILE *f, bool last)
{
	struct job j = make_job(s);
	auto plain = find_gemms(s, s.m, s.n, 0, 0, 11);
	struct way unfused = not_overlapped(s, &plain[0]), chosen = unfused;
	unsigned long long wrong = run_way(j, unfused, 33);
	float best = unfused.ms * .95f, a[3], u[3];

	for (int parts : { 2, 4 }) {
		struct recipe r = { 2, 10, 0, 2, 0, {} };
		int units = cut_units(j, 2);

		for (int i = 0; i < parts; i++)
			r.size.push_back((i + 1) * units / parts - i * units / parts);
		struct way w = make_way(j, r);

		wrong += run_way(j, w, 33);
		if (w.ms < best) {
			best = w.ms;
			chosen = w;
		}
	}
	for (int i = 0; i < 3; i++) {
		wrong += run_way(j, unfused, 65);
		u[i] = unfused.ms;
		wrong += run_way(j, chosen, 65);
		a[i] = chosen.ms;
	}
	float before = middle({ u[0], u[1], u[2] }), now = middle({ a[0], a[1], a[2] });

	printf("decode M %3d N %5d K %5d: gemm %.4f unfused %.4f auto %.4f (%.3f) wrong %llu %s\n",
	       s.m, s.n, s.k, plain[0].alone_ms, before, now, now / before, wrong,
	       chosen.name);
	fflush(stdout);
	if (f)
		fprintf(f, "    {\"m\": %d, \"n\": %d, \"k\": %d, \"gemm_ms\": %.4f, \"unfused_ms\": %.4f, \"auto_ms\": %.4f, \"ratio\": %.3f, \"wrong\": %llu, \"mode\": \"%s\"}%s\n",
			s.m, s.n, s.k, plain[0].alone_ms, before, now, now / before,
			wrong, chosen.name, last ? "" : ",");
	return !wrong && now <= 1.02f * before;
}

static int decode(const char *path)
{
	FILE *f = path ? fopen(path, "w") : NULL;
	int bad = 0, n = 0;

	if (f) {
		json_head(f);
		fprintf(f, "  \"rows\": [\n");
	}
	for (int wide : { 0, 1 }) {
		for (int m : { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 }) {
			const struct shape s = { "decode", "FC2", 8, m,
				wide ? 16384 : 8192, wide ? 6656 : 3584 };

			bad += !measure_decode(s, f, ++n == 20);
		}
	}
	if (f) {
		fprintf(f, "  ],\n  \"over_two_percent\": %d\n}\n", bad);
		fclose(f);
	}
	printf("decode: %d of %d over 2%%, or wrong\n", bad, n);
	return bad != 0;
}

/* ---- through host memory ---- */

#define PIECE_BYTES	(4 << 20)

static cudaStream_t out_stream, in_stream;
static char *host_mem, *stage_mem;

struct host_job {
	struct job j;
	CUtensorMap staged;
	std::vector<int> row;		/* of the pieces, and the end */
	std::vector<cudaEvent_t> out, in;
};

static void setup_host(void)
{
	uint32_t always = 0x3fffffff;

	CHECK(cudaStreamCreateWithFlags(&out_stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&in_stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host_mem, 256UL << 20));
	CHECK(cudaMalloc(&stage_mem, 400UL << 20));
	CHECK(cudaMemcpy(word(W_BAND + 63), &always, 4, cudaMemcpyHostToDevice));
}

static cudaEvent_t plain_event(void)
{
	cudaEvent_t e;

	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	return e;
}

/* One piece: out by one engine, back by the other, and added. */
static void queue_piece(struct host_job &h, size_t i)
{
	struct t3_bands &d = h.j.drain;
	int rows = h.row[i + 1] - h.row[i];
	size_t pitch = (size_t)h.j.s.n * 2, at = h.row[i] * pitch;
	int sms = 8;

	CHECK(cudaMemcpyAsync(host_mem + at, c_mem + at, rows * pitch,
			      cudaMemcpyDeviceToHost, out_stream));
	CHECK(cudaEventRecord(h.out[i], out_stream));
	CHECK(cudaStreamWaitEvent(in_stream, h.out[i]));
	CHECK(cudaMemcpyAsync(stage_mem + at, host_mem + at, rows * pitch,
			      cudaMemcpyHostToDevice, in_stream));
	CHECK(cudaEventRecord(h.in[i], in_stream));
	CHECK(cudaStreamWaitEvent(comm_stream, h.in[i]));
	set_bands(h.j, { { h.row[i], 0, rows, h.j.s.n } }, 1);
	d.band[0].counter = 63;
	d.band[0].each = 1;
	d.pace = pace();
	d.pace.rate = 0;
	d.epoch = 1;
	t3_drain<<<sms, 32 * T3_SLOTS, T3_SLOTS * T3_CHUNK, comm_stream>>>(
		h.staged, h.j.to, d);
	ticket += d.band[1].chunk + sms * T3_SLOTS;
	CHECK(cudaGetLastError());
}

static void queue_host(struct host_job &h, const struct way *w,
		       std::vector<cudaEvent_t> &made)
{
	size_t piece = 0;

	for (size_t i = 0; w && i < w->band.size(); i++) {
		int end = w->rect[i].row + w->rect[i].rows;

		run_gemm(h.j.s, *w->band[i], w->rect[i].row, 0, c_mem, 0);
		CHECK(cudaEventRecord(made[i], gemm_stream[0]));
		CHECK(cudaStreamWaitEvent(out_stream, made[i]));
		for (; piece + 1 < h.row.size() && h.row[piece + 1] <= end; piece++)
			queue_piece(h, piece);
	}
	for (; !w && piece + 1 < h.row.size(); piece++)
		queue_piece(h, piece);
}

/* Epochs one after the other; the host queues while the GPU works. */
static float run_host(struct host_job &h, const struct way *w, int epochs,
		      float *gemm_ms)
{
	std::vector<cudaEvent_t> made(64), begin(epochs), gemm(epochs), end(epochs);
	std::vector<float> all, gemms;

	for (auto &e : made)
		e = plain_event();
	for (auto *list : { &begin, &gemm, &end })
		for (auto &e : *list)
			CHECK(cudaEventCreate(&e));
	CHECK(cudaMemset(y_mem, 0, h.j.travel_bytes));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < epochs; i++) {
		CHECK(cudaEventRecord(begin[i], gemm_stream[0]));
		CHECK(cudaStreamWaitEvent(out_stream, begin[i]));
		queue_host(h, w, made);
		CHECK(cudaEventRecord(gemm[i], gemm_stream[0]));
		CHECK(cudaEventRecord(made[0], comm_stream));
		CHECK(cudaStreamWaitEvent(gemm_stream[0], made[0]));
		CHECK(cudaEventRecord(end[i], gemm_stream[0]));
	}
	CHECK(cudaDeviceSynchronize());
	for (int i = 1; i < epochs; i++) {
		float ms;

		cudaEventElapsedTime(&ms, begin[i], end[i]);
		all.push_back(ms);
		cudaEventElapsedTime(&ms, begin[i], gemm[i]);
		gemms.push_back(ms);
	}
	*gemm_ms = middle(gemms);
	for (auto *list : { &made, &begin, &gemm, &end })
		for (auto &e : *list)
			cudaEventDestroy(e);
	return middle(all);
}

static unsigned long long wrong_host(struct host_job &h, const struct way &w,
				     int epochs)
{
	unsigned long long wrong;

	for (size_t i = 0; i < w.band.size(); i++)
		run_gemm(h.j.s, *w.band[i], w.rect[i].row, 0, r_mem, 0);
	CHECK(cudaMemset(word(W_WRONG), 0, 8));
	CHECK(cudaDeviceSynchronize());
	compare<<<264, 256>>>((uint16_t *)y_mem, (uint16_t *)r_mem,
			      h.j.travel_bytes / 2, epochs,
			      (unsigned long long *)word(W_WRONG));
	CHECK(cudaMemcpy(&wrong, word(W_WRONG), 8, cudaMemcpyDeviceToHost));
	return wrong;
}

static struct host_job make_host_job(const struct shape &s)
{
	struct host_job h = {};
	int unit = 128;

	h.j = make_job(s);
	h.staged = tensor_map(stage_mem, s.m, s.n);
	while ((size_t)(unit * 2) * s.n * 2 <= PIECE_BYTES)
		unit *= 2;
	for (int at = 0; at < h.j.travel_rows; at += unit)
		h.row.push_back(at);
	h.row.push_back(h.j.travel_rows);
	for (size_t i = 0; i < h.row.size(); i++) {
		h.out.push_back(plain_event());
		h.in.push_back(plain_event());
	}
	return h;
}

static struct result measure_host(const struct shape &s)
{
	struct host_job h = make_host_job(s);
	struct result r = {};
	auto plain = find_gemms(s, s.m, s.n, 0, 0, 11);
	float unused;

	r.s = s;
	r.gemm_ms = plain[0].alone_ms;
	r.comm_ms = run_host(h, NULL, 7, &unused);
	for (int first : { 1, 2, 4, 8 }) {
		for (int factor : { 1, 2, 4 }) {
			struct recipe recipe = { 0, 0, 0, 1, 0, {} };
			int units = cut_units(h.j, 0), n;
			int piece = (h.row[1] - h.row[0]) / 128;

			for (n = first * piece; units; n *= factor) {
				recipe.size.push_back(std::min(n, units));
				units -= recipe.size.back();
			}
			if (recipe.size.size() > 40)
				continue;
			struct way w = make_way(h.j, recipe);

			w.ms = run_host(h, &w, 5, &w.gemm_ms);
			r.wrong += wrong_host(h, w, 5);
			if (r.w.ms == 0 || w.ms < r.w.ms)
				r.w = w;
		}
	}
	r.w.ms = run_host(h, &r.w, 11, &r.w.gemm_ms);
	r.wrong += wrong_host(h, r.w, 11);
	r.w.sms = 8;	/* for the adds, while a piece is added */
	r.best_bands = r.w;
	r.fill_ms = band_plan(h.j, r.w.rect[0].rows, s.n, 0, 0)->alone_ms;
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

	printf("%-12s %-8s %3d %6d %6d %6d %.4f %.4f %.4f %.4f %.4f %.4f %.3f %.3f %.3f %.3f %+5.1f%% %d %.1e %llu %s | bands %.4f in-band %.4f epilogue %.4f (alone %.4f, err %.1e) after %.4f\n",
	       r.s.model, r.s.sublayer, r.s.tp, r.s.m, r.s.n, r.s.k, r.gemm_ms,
	       r.comm_ms, r.fill_ms, r.w.ms, r.w.gemm_ms, floor_ms(r),
	       seq / r.w.ms, seq / most, most / r.w.ms, floor_ms(r) / r.w.ms,
	       (r.w.gemm_ms / r.gemm_ms - 1) * 100, r.w.sms, r.error, r.wrong,
	       r.w.name, r.best_bands.ms, r.best_inband.ms, r.best_own.ms,
	       r.own_alone_ms, r.own_error, r.after.ms);
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
	fprintf(f, "\"fill_ms\": %.4f, \"floor_ms\": %.4f, \"floor_ratio\": %.3f, \"mode\": \"%s\", \"bands_ms\": %.4f, \"in_band_ms\": %.4f, \"epilogue_ms\": %.4f, \"example_gemm_ms\": %.4f, \"after_ms\": %.4f}%s\n",
		r.fill_ms, floor_ms(r), floor_ms(r) / r.w.ms, r.w.name,
		r.best_bands.ms, r.best_inband.ms, r.best_own.ms, r.own_alone_ms,
		r.after.ms, last ? "" : ",");
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
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	json_head(f);
	fprintf(f, "  \"rows\": [\n");
	for (auto &r : all)
		json_row(f, r, &r == &all.back());
	fprintf(f, "  ],\n  \"geomean\": {\"speedup\": %.3f, \"ideal\": %.3f, \"limit_ratio\": %.3f, \"floor_ratio\": %.3f, \"gemm_slowdown\": %.3f},\n  \"best_speedup\": %.3f\n}\n",
		g.speedup, g.ideal, g.limit, g.floor, g.slow, g.best);
	fclose(f);
}

/* What engines and kernels move, by size: for the planner, and to be looked at. */
static int sweep_copy(const char *path)
{
	FILE *f = path ? fopen(path, "w") : NULL;
	char *host;

	CHECK(cudaMallocHost(&host, 256UL << 20));
	if (f) {
		json_head(f);
		fprintf(f, "  \"copies\": [\n");
	}
	printf("copies, us (GB/s): bytes, to host, from host, within\n");
	for (size_t bytes = 4096; bytes <= 64 << 20; bytes *= 4) {
		float out = median_ms([&] { cudaMemcpyAsync(host, c_mem, bytes,
			cudaMemcpyDeviceToHost, comm_stream); }, comm_stream, 21);
		float in = median_ms([&] { cudaMemcpyAsync(c_mem, host, bytes,
			cudaMemcpyHostToDevice, comm_stream); }, comm_stream, 21);
		float own = median_ms([&] { cudaMemcpyAsync(y_mem, c_mem, bytes,
			cudaMemcpyDeviceToDevice, comm_stream); }, comm_stream, 21);

		printf("%9zu %9.2f (%5.1f) %9.2f (%5.1f) %9.2f (%6.1f)\n", bytes,
		       out * 1e3, bytes / out / 1e6, in * 1e3, bytes / in / 1e6,
		       own * 1e3, bytes / own / 1e6);
		if (f)
			fprintf(f, "    {\"bytes\": %zu, \"to_host_us\": %.2f, \"from_host_us\": %.2f, \"within_us\": %.2f}%s\n",
				bytes, out * 1e3, in * 1e3, own * 1e3,
				bytes == 64 << 20 ? "" : ",");
	}
	if (f) {
		fprintf(f, "  ]\n}\n");
		fclose(f);
	}
	print_curve();
	return 0;
}

int main(int argc, char **argv)
{
	std::vector<result> all;
	const char *path = NULL, *seed_path = NULL;
	int only = -1, from = 0, to = 1000, decoding = 0, sweep = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--rate"))
			rate = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--only"))
			only = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--algos"))
			algos = std::min(atoi(argv[i + 1]), 16);
		else if (!strcmp(argv[i], "--json"))
			path = argv[i + 1];
		else if (!strcmp(argv[i], "--climbs"))
			climbs = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--in-band"))
			in_band = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--epilogue"))
			own = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--link"))
			host_link = !strcmp(argv[i + 1], "host");
		else if (!strcmp(argv[i], "--decode"))
			decoding = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--from"))
			from = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--to"))
			to = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--sweep-copy"))
			sweep = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seeds"))
			seed_path = argv[i + 1];
		else if (!strcmp(argv[i], "--all"))
			everything = atoi(argv[i + 1]);
	}
	setup();
	if (seed_path)
		read_seeds(seed_path);
	if (decoding)
		return decode(path);
	if (sweep)
		return sweep_copy(path);
	if (host_link)
		setup_host();
	else
		print_curve();
	printf("model layer tp M N K gemm comm fill fused gemm' floor speedup ideal limit floor-ratio slow sms err wrong way\n");
	for (auto &s : shapes) {
		int number = (int)(&s - shapes);

		if ((only >= 0 && only != number) || number < from || number > to)
			continue;
		all.push_back(host_link ? measure_host(s) : measure(s));
		print_result(all.back());
	}
	struct means g = geomeans(all);
	printf("geomean speedup %.3f (max %.3f) ideal %.3f limit %.3f floor-ratio %.3f slowdown %.3f\n",
	       g.speedup, g.best, g.ideal, g.limit, g.floor, g.slow);
	if (path)
		json(path, all);
	return 0;
}
