// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gpu engine, on whatever plug-in is loaded: a real GPU's, or the mocked
 * one (T3_PLUGIN_DIR). Several ranks share one GPU.
 *
 * usage: engine [processes | threads]
 * T3_TEST_EPOCHS: how many epochs the long runs have.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soft/matrix.h"
#include "gpu.h"

static char path[64];
static uint32_t epochs_long = 200;

static struct t3_options gpu_options(void)
{
	return (struct t3_options) {
		.size = sizeof(struct t3_options),
		.engine = T3_ENGINE_GPU,
		.setup_ms = 60000,
		.watchdog_ms = 30000,
	};
}

/**
 * struct job - what each rank of a run does
 * @fn: with a member
 * @arg: for it
 * @delays: sleep at random between steps
 * @streams: epochs are queued on a stream
 */
struct job {
	rank_fn fn;
	const struct shape *shape;
	bool delays;
	bool streams;
};

/**
 * struct gwork - a rank's part: struct work, whose buffers are the host's copy
 *	of what is on the GPU
 */
struct gwork {
	struct work w;
	struct gpu_member *m;
	char *device[2];
	void *stream;
	unsigned int seed;
};

static int open_region(struct gwork *g, int i)
{
	struct buffer *b = &g->w.buffer[i];
	struct t3_matrix matrix;
	void *memory;

	if (buffer_make(g->w.member, g->w.shape, b))
		return 1;
	RANK_TRY(g->w.member, t3_alloc(g->w.member, b->bytes, &memory));
	g->device[i] = memory;
	matrix = b->matrix;
	matrix.base = g->device[i] + ((char *)b->matrix.base -
				      (char *)b->memory);
	RANK_TRY(g->w.member, t3_region_add(g->w.member, &matrix,
					    &g->w.region[i]));
	return 0;
}

static int begin(struct gwork *g, struct t3_member *member,
		 const struct shape *shape)
{
	struct t3_collective collective = {
		.size = sizeof(collective),
		.op = shape->op,
		.algorithm = shape->algorithm,
		.block_bytes = shape->block_bytes,
		.tiles = shape->tiles,
	};

	memset(g, 0, sizeof(*g));
	g->w.member = member;
	g->w.shape = shape;
	g->m = gpu_member(member);
	g->seed = t3_rank(member) * 7919 + 1;
	if (open_region(g, 0) ||
	    (shape->op == T3_ALL_TO_ALL && open_region(g, 1)))
		return 1;
	collective.region = g->w.region[0];
	collective.second = g->w.region[1];
	RANK_TRY(member, gpu->stream(g->m->device, &g->stream));
	if (t3_plan_add(member, &collective, &g->w.plan))
		return rank_fails(member, "t3_plan_add: %s", t3_error());
	return 0;
}

static int end(struct gwork *g)
{
	int i;

	RANK_TRY(g->w.member, t3_plan_del(g->w.plan));
	gpu->stream_end(g->m->device, g->stream);
	for (i = 0; i < 2 && g->device[i]; i++) {
		RANK_TRY(g->w.member, t3_region_del(g->w.region[i]));
		RANK_TRY(g->w.member, t3_free(g->w.member, g->device[i]));
		free(g->w.buffer[i].memory);
	}
	return 0;
}

/* The host's copy to the GPU, or back. */
static void push(struct gwork *g)
{
	int i;

	for (i = 0; i < 2 && g->device[i]; i++)
		RANK_TRY(g->w.member, gpu->fill(g->m->device, g->device[i],
						g->w.buffer[i].memory,
						g->w.buffer[i].bytes));
}

static void pull(struct gwork *g)
{
	int i;

	for (i = 0; i < 2 && g->device[i]; i++)
		RANK_TRY(g->w.member, gpu->fetch(g->m->device,
						 g->w.buffer[i].memory,
						 g->device[i],
						 g->w.buffer[i].bytes));
}

static void maybe_sleep(struct gwork *g, const struct job *job)
{
	if (job->delays && rand_r(&g->seed) % 4 == 0)
		usleep(rand_r(&g->seed) % 200);
}

/* All of the rank's values of an epoch, poison elsewhere. */
static void prepare(struct gwork *g, uint32_t epoch)
{
	struct t3_rectangle rect;
	uint32_t step;

	buffer_poison(&g->w.buffer[0]);
	if (g->device[1])
		buffer_poison(&g->w.buffer[1]);
	for (step = 0; !t3_plan_step(g->w.plan, step, &rect); step++)
		buffer_produce(&g->w.buffer[0], g->w.shape,
			       t3_rank(g->w.member), epoch, &rect);
	push(g);
}

static void run_queued(struct gwork *g, const struct job *job)
{
	struct t3_member *m = g->w.member;
	struct t3_rectangle rect;
	uint32_t step;

	RANK_TRY(m, t3_arm_stream(g->w.plan, g->stream));
	for (step = 0; !t3_plan_step(g->w.plan, step, &rect); step++) {
		maybe_sleep(g, job);
		RANK_TRY(m, t3_produced_stream(g->w.plan, step, g->stream));
	}
	RANK_TRY(m, t3_wait_stream(g->w.plan, g->stream));
}

static void run_waited(struct gwork *g, const struct job *job)
{
	struct t3_member *m = g->w.member;
	struct t3_rectangle rect;
	uint32_t step, i;

	RANK_TRY(m, t3_arm(g->w.plan));
	for (step = 0; !t3_plan_step(g->w.plan, step, &rect); step++) {
		int64_t block = t3_block_of(g->w.plan, rect.row, rect.col);

		maybe_sleep(g, job);
		if (g->w.shape->tiles < 2)
			RANK_TRY(m, t3_produced(g->w.plan, step));
		for (i = 0; g->w.shape->tiles > 1 && i < g->w.shape->tiles; i++)
			RANK_TRY(m, t3_tile_done(g->w.plan, block, 1));
	}
}

static int run_epochs(struct t3_member *member, void *arg)
{
	const struct job *job = arg;
	struct gwork g;
	uint32_t e;

	if (begin(&g, member, job->shape))
		return 1;
	for (e = 1; e <= job->shape->epochs; e++) {
		prepare(&g, e);
		if (job->streams)
			run_queued(&g, job);
		else
			run_waited(&g, job);
		RANK_TRY(member, t3_wait(g.w.plan, 30000));
		RANK_CHECK(member, t3_epoch(g.w.plan) == e);
		pull(&g);
		if (work_check(&g.w, e))
			return 1;
	}
	return end(&g);
}

/* Nothing is looked at between: as far ahead of the GPU as it goes. */
static int run_ahead(struct t3_member *member, void *arg)
{
	const struct job *job = arg;
	uint32_t e, all = job->shape->epochs;
	struct gwork g;

	if (begin(&g, member, job->shape))
		return 1;
	prepare(&g, all);
	for (e = 1; e <= all; e++) {
		run_queued(&g, job);
		if (e % 64 == 0)
			RANK_TRY(member, t3_wait(g.w.plan, 30000));
	}
	RANK_TRY(member, t3_wait(g.w.plan, 30000));
	RANK_CHECK(member, t3_epoch(g.w.plan) == all);
	pull(&g);
	/* An all-gather of the same data is the same, however often. */
	if (work_check(&g.w, all))
		return 1;
	return end(&g);
}

/* ---- ranks that meet at a path: no GPU is touched before they fork ---- */

struct runner {
	const struct job *job;
	uint32_t rank;
	uint32_t ranks;
	int failed;
	pthread_t thread;
};

static int one_rank(struct runner *r)
{
	struct t3_options options = gpu_options();
	struct t3_member *member;
	int failed;

	if (t3_open(path, r->rank, r->ranks, &options, &member)) {
		fprintf(stderr, "# rank %u: t3_open: %s\n", r->rank, t3_error());
		return 1;
	}
	failed = rank_call(member, r->job->fn, (void *)r->job);
	if (t3_leave(member) && !failed) {
		fprintf(stderr, "# rank %u: t3_leave: %s\n", r->rank, t3_error());
		failed = 1;
	}
	return failed;
}

static void *run_thread(void *arg)
{
	struct runner *r = arg;

	r->failed = one_rank(r);
	return NULL;
}

static int run_group(bool processes, uint32_t ranks, const struct job *job)
{
	struct runner r[T3_MAX_RANKS];
	pid_t pid[T3_MAX_RANKS];
	int failed = 0;
	uint32_t i;

	fflush(NULL);
	for (i = 0; i < ranks; i++) {
		r[i] = (struct runner) { job, i, ranks, 0, 0 };
		if (!processes && pthread_create(&r[i].thread, NULL, run_thread,
						 &r[i]))
			abort();
		if (!processes)
			continue;
		pid[i] = fork();
		if (!pid[i])
			_exit(one_rank(&r[i]));
	}
	for (i = 0; i < ranks; i++) {
		if (processes)
			failed += reap_rank(pid[i]);
		else
			pthread_join(r[i].thread, NULL);
		failed += processes ? 0 : r[i].failed;
	}
	return failed;
}

/* ---- death ---- */

/**
 * struct scene - what the processes of a death share
 * @ready: ranks that are there
 * @killed_ms: when the victim was
 * @slowest_ms: until the last survivor knew
 * @told: survivors that got the right error
 */
struct scene {
	uint32_t victim;
	uint32_t ready;
	uint64_t killed_ms;
	uint64_t slowest_ms;
	uint32_t told;
};

static struct scene *scene;

static int die_or_live(struct t3_member *member, void *arg)
{
	const struct job *job = arg;
	struct gwork g;
	uint64_t took;
	int ret;

	if (begin(&g, member, job->shape))
		return 1;
	prepare(&g, 1);
	run_queued(&g, job);
	RANK_TRY(member, t3_wait(g.w.plan, 30000));
	prepare(&g, 2);
	if (t3_rank(member) == scene->victim) {
		RANK_TRY(member, t3_arm_stream(g.w.plan, g.stream));
		__atomic_add_fetch(&scene->ready, 1, __ATOMIC_SEQ_CST);
		for (;;)
			pause();
	}
	run_queued(&g, job);
	__atomic_add_fetch(&scene->ready, 1, __ATOMIC_SEQ_CST);
	ret = t3_wait(g.w.plan, 20000);
	took = now_ms() - scene->killed_ms;
	if (took > scene->slowest_ms)
		scene->slowest_ms = took;
	if (ret != -EOWNERDEAD || !strstr(t3_error(), "died with an epoch armed"))
		return rank_fails(member, "t3_wait: %d %s", ret, t3_error());
	RANK_CHECK(member, !g.m->stuck);
	__atomic_add_fetch(&scene->told, 1, __ATOMIC_SEQ_CST);
	/* What is left of it goes with the member. */
	return 0;
}

static void test_death(uint32_t ranks, uint32_t victim)
{
	static const struct shape shape = {
		.op = T3_ALL_REDUCE,
		.algorithm = T3_ALG_RING,
		.dtype = T3_DTYPE_BF16,
		.rows = 64,
		.cols = 256,
		.block_bytes = 4096,
		.ordinary = true,
	};
	const struct job job = { die_or_live, &shape, false, true };
	struct runner r[T3_MAX_RANKS];
	pid_t pid[T3_MAX_RANKS];
	int failed = 0;
	uint32_t i;

	memset(scene, 0, sizeof(*scene));
	scene->victim = victim;
	fflush(NULL);
	for (i = 0; i < ranks; i++) {
		r[i] = (struct runner) { &job, i, ranks, 0, 0 };
		pid[i] = fork();
		if (!pid[i])
			_exit(one_rank(&r[i]));
	}
	for (i = 0; i < 60000 && __atomic_load_n(&scene->ready, __ATOMIC_SEQ_CST) <
				 ranks; i++)
		sleep_ms(1);
	scene->killed_ms = now_ms();
	kill(pid[victim], SIGKILL);
	for (i = 0; i < ranks; i++) {
		int gone = reap_rank(pid[i]);

		failed += i == victim ? 0 : gone;
	}
	tap_ok(!failed && scene->told == ranks - 1 && scene->slowest_ms < 2000,
	       "rank %u of %u killed: %u were told, the last after %llu ms", victim,
	       ranks, scene->told, (unsigned long long)scene->slowest_ms);
}

/* ---- what is run ---- */

static void test_collectives(bool processes, uint32_t ranks)
{
	static const struct {
		uint32_t op, algorithm, dtype;
	} forms[] = {
		{ T3_REDUCE_SCATTER, T3_ALG_RING, T3_DTYPE_BF16 },
		{ T3_REDUCE_SCATTER, T3_ALG_DIRECT, T3_DTYPE_BF16 },
		{ T3_REDUCE_SCATTER, T3_ALG_DIRECT, T3_DTYPE_F32 },
		{ T3_REDUCE_SCATTER, T3_ALG_RING, T3_DTYPE_F16 },
		{ T3_ALL_GATHER, T3_ALG_RING, T3_DTYPE_F64 },
		{ T3_ALL_GATHER, T3_ALG_DIRECT, T3_DTYPE_BF16 },
		{ T3_ALL_REDUCE, T3_ALG_RING, T3_DTYPE_BF16 },
		{ T3_ALL_REDUCE, T3_ALG_DIRECT, T3_DTYPE_F16 },
		{ T3_ALL_REDUCE, T3_ALG_RING_DIRECT, T3_DTYPE_I32 },
		{ T3_ALL_REDUCE, T3_ALG_DIRECT_RING, T3_DTYPE_F64 },
		{ T3_ALL_TO_ALL, T3_ALG_DIRECT, T3_DTYPE_F32 },
	};
	struct shape s;
	char line[100];
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct job job = { run_epochs, &s, i % 2, i % 3 };

		memset(&s, 0, sizeof(s));
		s.op = forms[i].op;
		s.algorithm = forms[i].algorithm;
		s.dtype = forms[i].dtype;
		s.layout = i % 2 ? T3_COL_MAJOR : T3_ROW_MAJOR;
		/* Sometimes not a multiple of a pack. */
		s.rows = 24 * ranks;
		s.cols = i % 3 ? 96 : 37;
		s.gap = i % 3 ? 32 : 3;
		s.block_bytes = 2048;
		s.tiles = i == 1 && !job.streams ? 3 : 0;
		s.epochs = 4;
		s.ordinary = true;
		s.wild = i % 2;
		tap_ok(!run_group(processes, ranks, &job), "%u %s: %s%s", ranks,
		       processes ? "processes" : "threads",
		       shape_name(&s, line, sizeof(line)),
		       job.streams ? ", queued" : "");
	}
}

static void test_long(bool processes, uint32_t ranks)
{
	struct shape s = {
		.op = T3_REDUCE_SCATTER,
		.algorithm = T3_ALG_DIRECT,
		.dtype = T3_DTYPE_BF16,
		.rows = 8 * ranks,
		.cols = 64,
		.block_bytes = 1024,
		.epochs = epochs_long,
		.ordinary = true,
	};
	struct job job = { run_epochs, &s, true, true };

	tap_ok(!run_group(processes, ranks, &job),
	       "%u %s: %u epochs with poison and delays", ranks,
	       processes ? "processes" : "threads", s.epochs);
	s.op = T3_ALL_GATHER;
	s.algorithm = T3_ALG_RING;
	job.fn = run_ahead;
	job.delays = false;
	tap_ok(!run_group(processes, ranks, &job), "%u %s: %u epochs ahead", ranks,
	       processes ? "processes" : "threads", s.epochs);
}

static void test_processes(void)
{
	uint32_t victim;

	test_collectives(true, 2);
	test_collectives(true, 4);
	test_long(true, 2);
	test_long(true, 4);
	for (victim = 0; victim < 4; victim++)
		test_death(4, victim);
	test_death(2, 1);
}

static void test_threads(void)
{
	test_collectives(false, 1);
	test_collectives(false, 2);
	test_collectives(false, 4);
	test_collectives(false, 8);
	test_long(false, 4);
}

int main(int argc, char **argv)
{
	const char *epochs = getenv("T3_TEST_EPOCHS");

	if (epochs)
		epochs_long = (uint32_t)strtoul(epochs, NULL, 10);
	snprintf(path, sizeof(path), "/tmp/t3-gpu-test-%d", getpid());
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* Processes first: threads use the GPU in this process, for good. */
	if (argc < 2 || strcmp(argv[1], "threads"))
		test_processes();
	if (argc < 2 || strcmp(argv[1], "processes"))
		test_threads();
	return tap_end();
}
