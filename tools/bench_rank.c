// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One rank: sets up, runs the epochs, takes the times.
 *
 * Every epoch times all phases one after the other, so that whatever else the
 * machine does meanwhile falls on all alike.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define COPY_LEAST	(64 << 10)
#define COPY_MOST	(64 << 20)
#define COPIES		5

/* t3_wait() may say "not yet"; the group's watchdog is what ends a stuck one. */
static int wait_epoch(struct bench_job *job)
{
	int ret;

	do {
		ret = t3_wait(job->plan, T3_TIMEOUT_DEFAULT);
	} while (ret == -ETIME && !atomic_load(&job->control->stop));
	if (ret < 0)
		bench_fail(job, "t3_wait: %s", t3_error());
	return ret;
}

/* All output is there already: what is left is the collective. */
static int collective(struct bench_job *job)
{
	if (t3_arm(job->plan) < 0) {
		bench_fail(job, "t3_arm: %s", t3_error());
		return -1;
	}
	if (t3_produced_all(job->plan) < 0) {
		bench_fail(job, "t3_produced_all: %s", t3_error());
		return -1;
	}
	return wait_epoch(job);
}

static void gemm(struct bench_job *job, bool in_steps)
{
	struct t3_rectangle rect;
	uint32_t i;

	if (!in_steps)
		bench_gemm(job, &job->whole);
	else
		for (i = 0; !t3_plan_step(job->plan, i, &rect); i++)
			bench_gemm(job, &rect);
}

/* Each step is reported when it is done. Return: seconds in the GEMM, or < 0. */
static double produce_steps(struct bench_job *job)
{
	struct t3_rectangle rect;
	double in_gemm = 0, start;
	uint32_t i;

	for (i = 0; !t3_plan_step(job->plan, i, &rect); i++) {
		start = bench_now();
		bench_gemm(job, &rect);
		in_gemm += bench_now() - start;
		if (t3_produced(job->plan, i) < 0) {
			bench_fail(job, "t3_produced: step %u: %s", i,
				   t3_error());
			return -1;
		}
	}
	return in_gemm;
}

/* All is reported when all is done. */
static double produce_whole(struct bench_job *job)
{
	double start = bench_now(), in_gemm;

	gemm(job, job->record->in_steps);
	in_gemm = bench_now() - start;
	if (t3_produced_all(job->plan) < 0) {
		bench_fail(job, "t3_produced_all: %s", t3_error());
		return -1;
	}
	return in_gemm;
}

/* Return: seconds of it in the GEMM; negative: failed. */
static double fused(struct bench_job *job, bool overlap)
{
	double in_gemm;

	if (t3_arm(job->plan) < 0) {
		bench_fail(job, "t3_arm: %s", t3_error());
		return -1;
	}
	in_gemm = overlap ? produce_steps(job) : produce_whole(job);
	if (in_gemm < 0)
		return -1;
	return wait_epoch(job) < 0 ? -1 : in_gemm;
}

static void record(struct bench_job *job, enum bench_phase phase,
		   uint32_t epoch, double seconds)
{
	const struct bench_options *o = job->options;

	if (epoch >= o->warmup)
		*bench_time(job->control, o, phase, epoch - o->warmup,
			    job->rank) = seconds;
}

static void record_best(double *best, double seconds)
{
	if (!*best || seconds < *best)
		*best = seconds;
}

/* Everybody starts from the same line, with the output poisoned. */
static bool start_phase(struct bench_job *job)
{
	if (job->options->check && job->options->k)
		bench_poison(job);
	return bench_barrier(job->control);
}

static bool time_gemm(struct bench_job *job, uint32_t epoch)
{
	bool in_steps = job->record->in_steps;
	double start;

	if (epoch < job->options->warmup) {
		if (!start_phase(job))
			return false;
		start = bench_now();
		gemm(job, true);
		record_best(&job->record->gemm_best[1], bench_now() - start);
	}
	if (!start_phase(job))
		return false;
	start = bench_now();
	gemm(job, in_steps);
	record_best(&job->record->gemm_best[in_steps], bench_now() - start);
	record(job, BENCH_GEMM, epoch, bench_now() - start);
	return true;
}

static bool time_comm(struct bench_job *job, uint32_t epoch)
{
	double start;

	if (!bench_barrier(job->control))
		return false;
	start = bench_now();
	if (collective(job) < 0)
		return false;
	record(job, BENCH_COMM, epoch, bench_now() - start);
	if (job->options->check)
		bench_check(job, epoch);
	return true;
}

static bool time_sequential(struct bench_job *job, uint32_t epoch)
{
	double start;

	if (!start_phase(job))
		return false;
	start = bench_now();
	gemm(job, job->record->in_steps);
	if (!bench_barrier(job->control) || collective(job) < 0)
		return false;
	record(job, BENCH_SEQUENTIAL, epoch, bench_now() - start);
	if (job->options->check)
		bench_check(job, epoch);
	return true;
}

static bool run_fused(struct bench_job *job, uint32_t epoch, bool overlap)
{
	double start, in_gemm;

	if (!start_phase(job))
		return false;
	start = bench_now();
	in_gemm = fused(job, overlap);
	if (in_gemm < 0)
		return false;
	record_best(&job->record->fused_best[overlap], bench_now() - start);
	record(job, BENCH_FUSED, epoch, bench_now() - start);
	record(job, BENCH_FUSED_GEMM, epoch, in_gemm);
	if (job->options->check)
		bench_check(job, epoch);
	return true;
}

static bool time_fused(struct bench_job *job, uint32_t epoch)
{
	/* Whether to overlap is found out by doing both. */
	if (epoch < job->options->warmup &&
	    job->options->overlap == BENCH_OVERLAP_AUTO &&
	    !run_fused(job, epoch, !job->record->overlap))
		return false;
	return run_fused(job, epoch, job->record->overlap);
}

/* Which of two ways is faster? Where ranks differ, the slowest counts. */
static bool second_is_faster(struct bench_job *job,
			     double (*best_of)(const struct bench_rank *rank,
					       uint32_t way))
{
	double slowest[2] = { 0 };
	uint32_t r, way;

	for (r = 0; r < job->options->ranks; r++)
		for (way = 0; way < 2; way++)
			slowest[way] = fmax(slowest[way],
					    best_of(&job->control->rank[r], way));
	return slowest[1] < slowest[0];
}

static double best_gemm(const struct bench_rank *rank, uint32_t way)
{
	return rank->gemm_best[way];
}

static double best_fused(const struct bench_rank *rank, uint32_t way)
{
	return rank->fused_best[way];
}

/* What the warm-up has taught; all ranks come to the same answers. */
static bool choose(struct bench_job *job)
{
	bool in_steps, overlap;

	if (!job->options->warmup)
		return true;
	if (!bench_barrier(job->control))
		return false;
	in_steps = second_is_faster(job, best_gemm);
	overlap = second_is_faster(job, best_fused);
	/* nobody may change its bests while another still reads them */
	if (!bench_barrier(job->control))
		return false;
	job->record->in_steps = in_steps;
	if (job->options->overlap == BENCH_OVERLAP_AUTO)
		job->record->overlap = overlap;
	return true;
}

static void start_values(struct bench_job *job, uint32_t epoch)
{
	if (job->options->check) {
		bench_poison(job);
		bench_fill_values(job, job->c, epoch);
	} else {
		memcpy(job->c, job->copy, job->bytes);
	}
}

static void epochs(struct bench_job *job)
{
	const struct bench_options *o = job->options;
	uint32_t e;

	for (e = 0; e < o->warmup + o->epochs; e++) {
		if (job->rank == 0)
			atomic_store(&job->control->epoch,
				     e < o->warmup ? 0 : e - o->warmup);
		if (!o->k) {
			start_values(job, e);
			if (!time_comm(job, e))
				return;
			continue;
		}
		if ((e == o->warmup && !choose(job)) ||
		    !time_gemm(job, e) || !time_comm(job, e) ||
		    !time_sequential(job, e) || !time_fused(job, e))
			return;
	}
}

/* What this machine's memory gives all ranks at once. */
static bool copy_rate(struct bench_job *job)
{
	size_t bytes = job->bytes / 2;
	double start;
	char *buffer;
	int i;

	if (bytes < COPY_LEAST)
		bytes = COPY_LEAST;
	if (bytes > COPY_MOST)
		bytes = COPY_MOST;
	buffer = malloc(2 * bytes);
	if (!buffer) {
		bench_fail(job, "no memory for a copy of %zu bytes", bytes);
		return false;
	}
	memset(buffer, 1, 2 * bytes);
	memcpy(buffer + bytes, buffer, bytes);
	if (!bench_barrier(job->control)) {
		free(buffer);
		return false;
	}
	start = bench_now();
	for (i = 0; i < COPIES; i++) {
		memcpy(buffer + bytes, buffer, bytes);
		/* the compiler must believe that somebody looks */
		__asm__ volatile ("" : : "r" (buffer) : "memory");
	}
	job->record->copy_rate = 2. * COPIES * bytes / (bench_now() - start);
	free(buffer);
	return true;
}

static int add_region(struct bench_job *job, uint32_t i, void **memory)
{
	const struct bench_options *o = job->options;
	struct t3_matrix matrix = {
		.rows = o->m,
		.cols = o->n,
		.ld = o->layout == T3_COL_MAJOR ? o->m : o->n,
		.dtype = o->dtype,
		.layout = o->layout,
	};

	if (t3_alloc(job->member, job->bytes, memory) < 0) {
		bench_fail(job, "t3_alloc: %s", t3_error());
		return -1;
	}
	matrix.base = *memory;
	if (t3_region_add(job->member, &matrix, &job->region[i]) < 0) {
		bench_fail(job, "t3_region_add: %s", t3_error());
		return -1;
	}
	return 0;
}

static int make_plan(struct bench_job *job)
{
	const struct bench_options *o = job->options;
	struct t3_collective collective = {
		.size = sizeof(collective),
		.op = o->op,
		.algorithm = o->algorithm,
		.block_bytes = o->block_bytes,
		.region = job->region[0],
		.second = job->region[1],
	};

	if (t3_plan_add(job->member, &collective, &job->plan) < 0) {
		bench_fail(job, "t3_plan_add: %s", t3_error());
		return -1;
	}
	job->info.size = sizeof(job->info);
	job->whole = (struct t3_rectangle){ .rows = o->m, .cols = o->n };
	if (t3_plan_info(job->plan, &job->info) < 0 ||
	    (o->op == T3_ALL_GATHER &&
	     t3_plan_shard(job->plan, job->rank, &job->whole) < 0)) {
		bench_fail(job, "t3_plan_info: %s", t3_error());
		return -1;
	}
	job->record->engine = job->info.engine;
	job->record->algorithm = job->info.algorithm;
	job->record->blocks = job->info.blocks;
	job->record->steps = job->info.steps;
	job->record->overlap = job->info.overlap &&
			       job->options->overlap != BENCH_OVERLAP_NO;
	job->record->moved_bytes = job->info.moved_bytes;
	return 0;
}

static void *get(struct bench_job *job, size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, bytes ? bytes : 64)) {
		bench_fail(job, "no memory for %zu bytes", bytes);
		return NULL;
	}
	memset(p, 0, bytes);
	return p;
}

static int make_input(struct bench_job *job)
{
	const struct bench_options *o = job->options;
	size_t size = bench_dtype_size(o->dtype);
	bool by_col = o->layout == T3_COL_MAJOR;

	if (!o->k) {
		job->copy = get(job, job->bytes);
		if (!job->copy)
			return -1;
		bench_fill_values(job, job->copy, 0);
		return 0;
	}
	job->rows = by_col ? o->n : o->m;
	job->cols = by_col ? o->m : o->n;
	if (size == 2) {
		size = 4;
		job->scratch = get(job, job->whole.rows * job->whole.cols * 4);
		if (!job->scratch)
			return -1;
	}
	job->left = get(job, job->rows * o->k * size);
	job->right = get(job, job->cols * o->k * size);
	if (!job->left || !job->right)
		return -1;
	bench_fill_factors(job);
	return 0;
}

static int set_up(struct bench_job *job, struct t3_group *group)
{
	const struct bench_options *o = job->options;

	if (t3_join(group, job->rank, &job->member) < 0) {
		bench_fail(job, "t3_join: %s", t3_error());
		return -1;
	}
	job->bytes = o->m * o->n * bench_dtype_size(o->dtype);
	if (add_region(job, 0, &job->c) < 0 ||
	    (o->op == T3_ALL_TO_ALL && add_region(job, 1, &job->d) < 0) ||
	    make_plan(job) < 0 || make_input(job) < 0)
		return -1;
	return 0;
}

/* On failure others may still be in an epoch: leaving tells them. */
static void tear_down(struct bench_job *job)
{
	if (job->member && t3_leave(job->member) < 0)
		bench_fail(job, "t3_leave: %s", t3_error());
	free(job->copy);
	free(job->left);
	free(job->right);
	free(job->scratch);
}

/**
 * bench_rank_run - a rank's whole life
 * @job: its options, control, record and rank are filled in
 * @group: to join
 *
 * Return: 0; 1: it gave up, and its record says why (nothing, where it only
 * followed others).
 */
int bench_rank_run(struct bench_job *job, struct t3_group *group)
{
	bench_gemm_threads(job->options);
	if (!set_up(job, group) && bench_barrier(job->control) &&
	    copy_rate(job) && bench_barrier(job->control))
		epochs(job);
	/* nobody leaves while others still need it */
	bench_barrier(job->control);
	tear_down(job);
	return job->record->failed;
}
