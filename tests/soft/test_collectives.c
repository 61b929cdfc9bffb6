// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every collective by every algorithm, dtype and number of ranks, as threads
 * and as processes, against sums in f64; with poison in and around the
 * buffers. Under the sanitizers it takes fewer.
 */
#include "matrix.h"

#define THREADS_MOST	8
#define PROCESSES_MOST	4

/* Are ranks processes where one kind is enough? */
#ifdef T3_NO_FORK
#define PROCESSES	false
#else
#define PROCESSES	true
#endif

static bool quick;

static bool has_algorithm(uint32_t op, uint32_t algorithm)
{
	switch (op) {
	case T3_ALL_TO_ALL:
		return algorithm == T3_ALG_DIRECT || algorithm == T3_ALG_AUTO;
	case T3_ALL_REDUCE:
		return true;
	default:
		return algorithm <= T3_ALG_DIRECT;
	}
}

static int run_shape(bool processes, uint32_t ranks, struct shape shape)
{
	if (shape.op == T3_ALL_TO_ALL)
		shape.rows = (shape.rows / ranks + 1) * ranks;
	return run_ranks(processes, ranks, NULL, work_all, &shape);
}

/* All numbers of ranks of one case. */
static void test_shape(const struct shape *shape)
{
	char name[128];
	int failed = 0;
	uint32_t n;

	for (n = 1; n <= THREADS_MOST; n += quick ? 3 : 1)
		failed += run_shape(false, n, *shape);
	tap_ok(!failed, "%s, threads", shape_name(shape, name, sizeof(name)));
#ifndef T3_NO_FORK
	failed = 0;
	for (n = 2; n <= PROCESSES_MOST; n += quick ? 2 : 1)
		failed += run_shape(true, n, *shape);
	tap_ok(!failed, "%s, processes", shape_name(shape, name, sizeof(name)));
#endif
}

static void test_op(uint32_t op, uint32_t algorithm, uint32_t dtype)
{
	struct shape shape = {
		.op = op,
		.algorithm = algorithm,
		.dtype = dtype,
		.layout = T3_ROW_MAJOR,
		.rows = 37,
		.cols = 29,
		.gap = 3,
		.block_bytes = 512,
		.epochs = 3,
		.wild = true,
	};

	test_shape(&shape);
	/* The other layout, no gap, several tiles a block, exact sums. */
	shape.layout = T3_COL_MAJOR;
	shape.gap = 0;
	shape.tiles = 3;
	shape.wild = false;
	shape.rows = 64;
	shape.cols = 21;
	shape.block_bytes = 0;
	test_shape(&shape);
}

/* Fewer rows than ranks: some shards are empty. */
static void test_small(void)
{
	struct shape shape = {
		.op = T3_ALL_REDUCE,
		.algorithm = T3_ALG_AUTO,
		.dtype = T3_DTYPE_F32,
		.rows = 3,
		.cols = 1,
		.epochs = 5,
	};

	test_shape(&shape);
	shape.op = T3_REDUCE_SCATTER;
	shape.rows = 1;
	shape.cols = 7;
	test_shape(&shape);
}

/* Blocks as large as they may be, and many of them. */
static void test_large(void)
{
	struct shape shape = {
		.op = T3_REDUCE_SCATTER,
		.algorithm = T3_ALG_DIRECT,
		.dtype = T3_DTYPE_BF16,
		.rows = 1000,
		.cols = 3001,
		.gap = 7,
		.epochs = 2,
		.wild = true,
	};
	int failed;

	failed = run_shape(PROCESSES, 2, shape);
	shape.algorithm = T3_ALG_RING;
	failed += run_shape(PROCESSES, 3, shape);
	tap_ok(!failed, "megabytes");
}

static void test_workers(void)
{
	struct t3_options options = soft_options();
	struct shape shape = {
		.op = T3_ALL_REDUCE,
		.algorithm = T3_ALG_RING_DIRECT,
		.dtype = T3_DTYPE_F32,
		.rows = 128,
		.cols = 64,
		.block_bytes = 1024,
		.epochs = 50,
		.wild = true,
	};
	int failed;

	options.workers = 2;
	failed = run_ranks(false, 3, &options, work_all, &shape);
	failed += run_ranks(PROCESSES, 3, &options, work_all, &shape);
	tap_ok(!failed, "with two workers a rank");
}

int main(void)
{
	uint32_t op, algorithm, dtype;

#ifdef T3_TEST_QUICK
	quick = true;
#endif
	test_small();
	test_workers();
	test_large();
	for (op = T3_REDUCE_SCATTER; op <= T3_ALL_TO_ALL; op++) {
		for (algorithm = 0; algorithm <= T3_ALG_DIRECT_RING;
		     algorithm++) {
			if (!has_algorithm(op, algorithm))
				continue;
			for (dtype = 1; dtype <= T3_DTYPE_COUNT; dtype++)
				test_op(op, algorithm, dtype);
		}
	}
	return tap_end();
}
