// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Many epochs of a small plan between two processes: every result is looked
 * at, and neither memory, nor descriptors, nor mappings grow. T3_TEST_EPOCHS:
 * how many; the default takes a few seconds.
 */
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

static const struct shape shape = {
	.op = T3_REDUCE_SCATTER,
	.algorithm = T3_ALG_DIRECT,
	.dtype = T3_DTYPE_F32,
	.rows = 4,
	.cols = 8,
	.block_bytes = 64,
};

/* Pages that a process has, from /proc/self/statm; all is in @total. */
static uint64_t pages(uint64_t *total)
{
	unsigned long long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		size = 0;
	if (f)
		fclose(f);
	*total = size;
	return resident;
}

/* Small integers: sums of them are exact. */
static float value(uint32_t rank, uint32_t epoch, uint32_t i)
{
	return (epoch * 7 + rank * 13 + i) % 1021;
}

static void fill(const struct work *work, float *to)
{
	uint32_t epoch = t3_epoch(work->plan);
	uint32_t i;

	for (i = 0; i < shape.rows * shape.cols; i++)
		to[i] = value(t3_rank(work->member), epoch, i);
}

static int look(const struct work *work, const float *at)
{
	uint32_t ranks = t3_ranks(work->member);
	uint32_t share = shape.rows / ranks * shape.cols;
	uint32_t first = t3_rank(work->member) * share;
	uint32_t epoch = t3_epoch(work->plan);
	uint32_t i, r;

	for (i = first; i < first + share; i++) {
		float sum = 0;

		for (r = 0; r < ranks; r++)
			sum += value(r, epoch, i);
		RANK_CHECK(work->member, at[i] == sum);
	}
	return 0;
}

static int epoch(struct work *work, float *at)
{
	RANK_TRY(work->member, t3_arm(work->plan));
	fill(work, at);
	RANK_TRY(work->member, t3_produced_all(work->plan));
	RANK_TRY(work->member, t3_wait(work->plan, T3_TIMEOUT_DEFAULT));
	if (look(work, at))
		return 1;
	memset(at, 0xff, shape.rows * shape.cols * sizeof(*at));
	return 0;
}

static int run(struct t3_member *member, void *arg)
{
	uint32_t epochs = *(uint32_t *)arg;
	uint64_t resident = 0, total = 0, now;
	struct work work;
	uint32_t i;

	if (work_begin(&work, member, &shape))
		return 1;
	for (i = 0; i < epochs; i++) {
		if (i == epochs / 10)
			resident = pages(&total);
		if (epoch(&work, work.buffer[0].matrix.base))
			return 1;
	}
	/* The C library may take some pages for itself, and the other thread. */
	RANK_CHECK(member, pages(&now) <= resident + 64);
	RANK_CHECK(member, now <= total + 64);
	return work_end(&work);
}

int main(void)
{
	const char *n = getenv("T3_TEST_EPOCHS");
	uint32_t epochs = n ? atoi(n) : 50000;
	uint64_t begin = now_ms();
	int failed;

	failed = run_ranks(true, 2, NULL, run, &epochs);
	tap_ok(!failed, "%u epochs between two processes", epochs);
	printf("# %.2f us an epoch\n",
	       (double)(now_ms() - begin) * 1000 / epochs);
	begin = now_ms();
	failed = run_ranks(false, 2, NULL, run, &epochs);
	tap_ok(!failed, "%u epochs between two threads", epochs);
	printf("# %.2f us an epoch\n",
	       (double)(now_ms() - begin) * 1000 / epochs);
	return tap_end();
}
