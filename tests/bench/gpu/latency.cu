// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From a band's counter to its transfer's first byte, and from the last byte to
 * the destination's counter: three warps on SMs of their own, each stamping
 * globaltimer. A piece is 64 KiB.
 *
 * usage: latency [--json FILE]
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

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

#define ROUNDS	2000
#define PIECE	65536

/* Each on a line of its own. */
enum { W_MADE, W_THERE, W_ABORT, W_WORDS };

struct stamps {
	unsigned long long counted, first, last, seen;
};

__device__ static void publish(uint32_t *word, uint32_t value)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;"
		     :: "l"(word), "r"(value) : "memory");
}

__device__ static bool await(const uint32_t *word, uint32_t value,
			     const struct t3_pace &p)
{
	uint64_t since = t3_ns();

	while (!t3_word_reached(word, value))
		if (t3_ns() - since > p.patience_ns || t3_word(p.abort))
			return false;
	return true;
}

/* The producer waits for the round before to have arrived. */
__device__ static void produce(uint32_t *words, struct stamps *s,
			       const struct t3_pace &p)
{
	if (threadIdx.x)
		return;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		if (!await(words + 32 * W_THERE, i - 1, p))
			return;
		for (uint64_t t = t3_ns(); t3_ns() - t < 2000 + i % 7 * 300;)
			;
		s[i - 1].counted = t3_ns();
		publish(words + 32 * W_MADE, i);
	}
}

/* The sender: first byte when its first add is issued, last when all arrived. */
__device__ static void send(uint32_t *words, struct stamps *s, const char *from,
			    char *to, const struct t3_pace &p)
{
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		if (!await(words + 32 * W_MADE, i, p))
			return;
		for (int at = threadIdx.x * 16; at < PIECE; at += blockDim.x * 16) {
			uint4 v = t3_read(from + at);

			t3_add(to + at, v);
			if (at == 0)
				s[i - 1].first = t3_ns();
		}
		__threadfence_system();
		__syncthreads();
		if (threadIdx.x == 0) {
			s[i - 1].last = t3_ns();
			publish(words + 32 * W_THERE, i);
		}
	}
}

__device__ static void receive(uint32_t *words, struct stamps *s,
			       const struct t3_pace &p)
{
	if (threadIdx.x)
		return;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		if (!await(words + 32 * W_THERE, i, p))
			return;
		s[i - 1].seen = t3_ns();
	}
}

__global__ static void play(uint32_t *words, struct stamps *s, const char *from,
			    char *to, const __grid_constant__ struct t3_pace p)
{
	if (blockIdx.x == 0)
		produce(words, s, p);
	else if (blockIdx.x == 1)
		send(words, s, from, to, p);
	else
		receive(words, s, p);
}


static void spread_of(std::vector<double> v, FILE *f, const char *name)
{
	size_t n = v.size();
	int bin[24] = {};

	for (double x : v)
		bin[std::min(23, (int)(x / 250))]++;
	std::sort(v.begin(), v.end());
	printf("%s: median %.2f us, p5 %.2f, p95 %.2f, p99 %.2f, most %.2f\n", name,
	       v[n / 2] / 1e3, v[n / 20] / 1e3, v[n * 95 / 100] / 1e3,
	       v[n * 99 / 100] / 1e3, v[n - 1] / 1e3);
	if (f) {
		fprintf(f, "  \"%s\": {\"median_us\": %.3f, \"p5_us\": %.3f, \"p95_us\": %.3f, \"p99_us\": %.3f, \"most_us\": %.3f, \"histogram_250ns\": [",
			name, v[n / 2] / 1e3, v[n / 20] / 1e3,
			v[n * 95 / 100] / 1e3, v[n * 99 / 100] / 1e3,
			v[n - 1] / 1e3);
		for (int i = 0; i < 24; i++)
			fprintf(f, "%d%s", bin[i], i < 23 ? ", " : "]},\n");
	}

}

int main(int argc, char **argv)
{
	std::vector<stamps> h(ROUNDS);
	std::vector<double> first, there;
	struct t3_pace p = {};
	uint32_t *words, aborted;
	struct stamps *s;
	char *from, *to;
	FILE *f = NULL;

	if (argc == 3 && !strcmp(argv[1], "--json"))
		f = fopen(argv[2], "w");
	CHECK(cudaMalloc(&words, 128 * W_WORDS));
	CHECK(cudaMemset(words, 0, 128 * W_WORDS));
	CHECK(cudaMalloc(&s, ROUNDS * sizeof(*s)));
	CHECK(cudaMalloc(&from, PIECE));
	CHECK(cudaMalloc(&to, PIECE));
	CHECK(cudaMemset(from, 0, PIECE));
	CHECK(cudaMemset(to, 0, PIECE));
	p.abort = words + 32 * W_ABORT;
	p.patience_ns = 2000000000;
	play<<<3, 1024>>>(words, s, from, to, p);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(h.data(), s, ROUNDS * sizeof(*s), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&aborted, p.abort, 4, cudaMemcpyDeviceToHost));
	if (aborted || !h[ROUNDS - 1].seen) {
		fprintf(stderr, "a wait ended without its word\n");
		return 1;
	}
	for (int i = 100; i < ROUNDS; i++) {
		first.push_back((double)(long long)(h[i].first - h[i].counted));
		there.push_back((double)(long long)(h[i].seen - h[i].last));
	}
	if (f)
		fprintf(f, "{\n  \"piece_bytes\": %d, \"rounds\": %d,\n", PIECE, ROUNDS);
	spread_of(first, f, "counter_to_first_byte");
	spread_of(there, f, "last_byte_to_counter");
	if (f) {
		fprintf(f, "  \"clock\": \"globaltimer\"\n}\n");
		fclose(f);
	}
	return 0;
}
