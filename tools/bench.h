/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * t3bench: a GEMM whose output goes through a collective, fused and one after
 * the other, on real ranks.
 */
#ifndef T3_TOOLS_BENCH_H
#define T3_TOOLS_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include <t3.h>

#include "shapes.h"

#define BENCH_MAX_EPOCHS	100000
#define BENCH_MAX_K		(1 << 18)	/* sums of A * B stay exact in f32 */

/* What is timed, in every epoch, in this order. */
enum bench_phase {
	BENCH_GEMM,		/* the GEMM without communication */
	BENCH_COMM,		/* the collective alone */
	BENCH_SEQUENTIAL,	/* GEMM, barrier, collective */
	BENCH_FUSED,		/* the GEMM in steps, each reported */
	BENCH_FUSED_GEMM,	/* the GEMM's share of BENCH_FUSED */
	BENCH_PHASES
};

/**
 * struct bench_options - the command line, checked
 *
 * Constant after it is parsed.
 */
struct bench_options {
	uint32_t engine;	/* enum t3_engine */
	uint32_t op;		/* enum t3_collective_op */
	uint32_t algorithm;	/* enum t3_algorithm */
	uint32_t dtype;		/* T3_DTYPE_* */
	uint32_t layout;	/* T3_ROW_MAJOR, T3_COL_MAJOR */
	uint32_t ranks;
	uint64_t m;
	uint64_t n;
	uint64_t k;		/* 0: the collective alone */
	bool no_gemm;		/* the same: k is then 0 */
	uint32_t block_bytes;	/* 0: the planner's choice */
	uint32_t workers;	/* as in struct t3_options */
	uint32_t overlap;	/* enum bench_overlap */
	uint32_t epochs;
	uint32_t warmup;
	uint32_t timeout_s;	/* of the whole run */
	bool threads;		/* ranks are threads, not processes */
	bool bind;		/* rank r stays on the r-th processor */
	bool check;
	bool json;
	bool list_shapes;
	const struct t3_shape *shape;
};

/* Whether fused runs the collective inside the GEMM. */
enum bench_overlap {
	BENCH_OVERLAP_AUTO,	/* the warm-up does both and decides */
	BENCH_OVERLAP_YES,
	BENCH_OVERLAP_NO,
};

/**
 * struct bench_verdict - what comparing with the reference has found
 * @checked: elements compared, over all epochs
 * @elements: elements of the result that were looked at for left-over poison,
 *	over all epochs
 * @wrong: elements outside the bound
 * @max_rel_err: see bench_check()
 * @first: the first wrong element, in words
 */
struct bench_verdict {
	uint64_t checked;
	uint64_t elements;
	uint64_t wrong;
	double max_rel_err;
	char first[200];
};

/**
 * struct bench_rank - what a rank tells the parent
 * @engine: enum t3_engine that was taken
 * @algorithm: that the planner took
 * @blocks: of this rank
 * @steps: of this rank
 * @overlap: the collective runs inside the GEMM; else it comes after it, since
 *	the planner, the user or the warm-up found that better
 * @in_steps: the GEMM without communication is fastest in steps
 * @moved_bytes: see struct t3_plan_info
 * @gemm_best: fastest warm-up of the GEMM: [0] in one call, [1] in steps; s
 * @fused_best: fastest warm-up of both: [0] not overlapped, [1] overlapped; s
 * @copy_rate: bytes read and written a second by a plain copy, all ranks at once
 * @verdict: of the check
 * @failed: the rank gave up; @error says why
 * @error: a sentence
 *
 * Written by its rank only. Read by the parent after the rank has ended, and
 * by the other ranks (the bests) after a barrier.
 */
struct bench_rank {
	uint32_t engine;
	uint32_t algorithm;
	uint32_t blocks;
	uint32_t steps;
	uint32_t overlap;
	uint32_t in_steps;
	uint64_t moved_bytes;
	double gemm_best[2];
	double fused_best[2];
	double copy_rate;
	struct bench_verdict verdict;
	bool failed;
	char error[400];
};

/**
 * struct bench_control - what all ranks and the parent share
 * @ranks: how many
 * @spin: worth spinning: every rank has a processor
 * @arrived: ranks that are at the barrier
 * @turn: the barrier's futex: its number; release by the last to arrive,
 *	acquire by the rest
 * @sleepers: ranks that sleep at @turn, or are about to: they add here, then
 *	look at @turn; who moves that looks here after it
 * @stop: somebody failed: leave every loop
 * @done: ranks that have ended (threads only)
 * @epoch: rank 0's, for the progress line
 * @rank: what each tells
 * @time: [phase][epoch][rank] in seconds; each written by its rank only
 *
 * Lies in memory that processes share. @ranks and @spin are constant.
 */
struct bench_control {
	uint32_t ranks;
	bool spin;
	atomic_uint arrived;
	atomic_uint turn;
	atomic_uint sleepers;
	atomic_uint stop;
	atomic_uint done;
	atomic_uint epoch;
	struct bench_rank rank[T3_MAX_RANKS];
	double time[];
};

/**
 * struct bench_job - one rank at work; belongs to its thread
 *
 * A column-major product is computed as the row-major product of the
 * transposes: @left is then B and @right is A, @rows is N and @cols is M.
 */
struct bench_job {
	const struct bench_options *options;
	struct bench_control *control;
	struct bench_rank *record;
	uint32_t rank;
	struct t3_member *member;
	struct t3_region *region[2];
	struct t3_plan *plan;
	struct t3_plan_info info;
	struct t3_rectangle whole;	/* what this rank produces */
	size_t bytes;			/* of the matrix */
	void *c;			/* the output */
	void *d;			/* all-to-all: what arrives */
	void *copy;			/* without GEMM: the input, to start from */
	void *left;
	void *right;
	float *scratch;			/* f16, bf16: the product in f32 */
	uint64_t rows;			/* of the row-major product */
	uint64_t cols;
};

static inline double *bench_time(struct bench_control *control,
				 const struct bench_options *o,
				 enum bench_phase phase, uint32_t epoch,
				 uint32_t rank)
{
	return &control->time[((size_t)phase * o->epochs + epoch) * o->ranks +
			      rank];
}

/* bench_options.c */
int bench_parse(int argc, char **argv, struct bench_options *o);
const char *bench_op_name(uint32_t op);
const char *bench_alg_name(uint32_t algorithm);
const char *bench_dtype_name(uint32_t dtype);
size_t bench_dtype_size(uint32_t dtype);

/* bench_control.c */
struct bench_control *bench_control_new(const struct bench_options *o);
bool bench_barrier(struct bench_control *control);
void bench_fail(struct bench_job *job, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
double bench_now(void);

/* bench_run.c */
int bench_run(const struct bench_options *o, struct bench_control *control);

/* bench_rank.c */
int bench_rank_run(struct bench_job *job, struct t3_group *group);

/* bench_input.c */
int64_t bench_a(uint32_t rank, uint64_t row, uint64_t k);
int64_t bench_b(uint32_t rank, uint64_t k, uint64_t col);
double bench_value(const struct bench_options *o, uint32_t rank, uint64_t epoch,
		   uint64_t row, uint64_t col);
double bench_contribution(const struct bench_options *o, uint32_t rank,
			  uint64_t epoch, uint64_t row, uint64_t col);
uint64_t bench_hash(uint64_t x);
void bench_fill_factors(struct bench_job *job);
void bench_fill_values(struct bench_job *job, void *to, uint64_t epoch);

/* bench_convert.c */
void bench_narrow(uint32_t dtype, uint16_t *to, const float *from, size_t n);
double bench_load(uint32_t dtype, const void *from, size_t index);
void bench_store(uint32_t dtype, void *to, size_t index, double value);
double bench_round(uint32_t dtype, double value);

/* bench_gemm.c */
void bench_gemm_prepare(const struct bench_options *o, char **argv);
void bench_gemm_threads(const struct bench_options *o);
void bench_gemm(struct bench_job *job, const struct t3_rectangle *rect);

/* bench_check.c */
void bench_poison(struct bench_job *job);
void bench_check(struct bench_job *job, uint64_t epoch);

/* bench_report.c */
bool bench_ok(const struct bench_options *o, struct bench_control *control);
void bench_report(const struct bench_options *o, struct bench_control *control);
void bench_list_shapes(FILE *out);

#endif /* T3_TOOLS_BENCH_H */
