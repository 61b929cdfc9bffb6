// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The whole of libt3, by its public functions only, on one engine: the one
 * named by the first argument, soft without.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <t3.h>
#include <unistd.h>

/* After the others: it needs their types. */
#include <cmocka.h>

#define RANKS_MAX	5
#define LONG_MS		20000
#define SHORT_MS	300

static uint32_t engine = T3_ENGINE_SOFT;
static char path[64];

/**
 * struct scene - what all ranks of a test do
 * @ranks: how many
 * @op: enum t3_collective_op
 * @algorithm: enum t3_algorithm
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR
 * @rows: of the matrix
 * @cols: of the matrix
 * @tiles: of a block
 * @own: not t3_alloc()'s memory
 * @setup_ms: 0: LONG_MS
 * @watchdog_ms: 0: LONG_MS
 * @lock: guards the rest
 * @moved: somebody came or went
 * @acting: threads that have not ended
 * @waiting: threads at the gate, see meet()
 * @meetings: so far
 */
struct scene {
	uint32_t ranks;
	uint32_t op;
	uint32_t algorithm;
	uint32_t layout;
	uint32_t rows;
	uint32_t cols;
	uint32_t tiles;
	bool own;
	uint32_t setup_ms;
	uint32_t watchdog_ms;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint32_t acting;
	uint32_t waiting;
	uint32_t meetings;
};

/**
 * struct actor - one rank
 * @end: where it goes when it fails
 * @error: why it failed
 */
struct actor {
	struct scene *scene;
	uint32_t rank;
	pthread_t thread;
	void (*act)(struct actor *a);
	struct t3_member *member;
	struct t3_region *region;
	struct t3_region *second;
	struct t3_plan *plan;
	float *data;
	float *result;
	uint32_t ld;
	jmp_buf end;
	char error[700];
};

/* Not further: cmocka's own way works in the main thread only. */
static void give_up(struct actor *a, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void give_up(struct actor *a, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->error, sizeof(a->error), format, args);
	va_end(args);
	longjmp(a->end, 1);
}

static void check_ok(struct actor *a, int ret, const char *call)
{
	if (ret)
		give_up(a, "%s: %d \"%s\"", call, ret, t3_error());
}

static void check_no(struct actor *a, int ret, int error, const char *words,
		     const char *call)
{
	if (ret != -error || !strstr(t3_error(), words))
		give_up(a, "%s: %d \"%s\"", call, ret, t3_error());
}

static void check_that(struct actor *a, bool so, const char *what)
{
	if (!so)
		give_up(a, "%s", what);
}

/* The call must succeed; must fail so, with a sentence that has these words. */
#define OK(a, call)		check_ok(a, call, #call)
#define NO(a, call, err, words)	check_no(a, call, err, words, #call)
#define MUST(a, what)		check_that(a, what, #what)

/* ---- the stage ---- */

static void enter(struct actor *a)
{
	struct scene *s = a->scene;
	struct t3_options o = {
		.size = sizeof(o),
		.engine = engine,
		.setup_ms = s->setup_ms ? s->setup_ms : LONG_MS,
		.watchdog_ms = s->watchdog_ms ? s->watchdog_ms : LONG_MS,
	};

	OK(a, t3_open(path, a->rank, s->ranks, &o, &a->member));
	MUST(a, t3_engine(a->member) == engine);
}

static void take_memory(struct actor *a, float **memory)
{
	size_t bytes = (size_t)a->ld * (a->scene->layout ? a->scene->cols :
							   a->scene->rows) * 4;

	if (a->scene->own) {
		*memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(a, *memory != MAP_FAILED);
	} else {
		OK(a, t3_alloc(a->member, bytes, (void **)memory));
	}
}

static struct t3_matrix matrix(const struct actor *a, float *base)
{
	return (struct t3_matrix) {
		.base = base,
		.rows = a->scene->rows,
		.cols = a->scene->cols,
		.ld = a->ld,
		.dtype = T3_DTYPE_F32,
		.layout = a->scene->layout,
	};
}

static void register_memory(struct actor *a)
{
	struct scene *s = a->scene;
	struct t3_matrix m;

	a->ld = (s->layout ? s->rows : s->cols) + a->rank;
	take_memory(a, &a->data);
	take_memory(a, &a->result);
	m = matrix(a, a->data);
	OK(a, t3_region_add(a->member, &m, &a->region));
	m = matrix(a, a->result);
	OK(a, t3_region_add(a->member, &m, &a->second));
}

static struct t3_collective collective(const struct actor *a)
{
	return (struct t3_collective) {
		.size = sizeof(struct t3_collective),
		.op = a->scene->op,
		.algorithm = a->scene->algorithm,
		.block_bytes = 400,
		.tiles = a->scene->tiles,
		.region = a->region,
		.second = a->scene->op == T3_ALL_TO_ALL ? a->second : NULL,
	};
}

/* Up to a live plan. */
static void begin(struct actor *a)
{
	struct t3_collective c;

	enter(a);
	register_memory(a);
	c = collective(a);
	OK(a, t3_plan_add(a->member, &c, &a->plan));
}

static void leave(struct actor *a)
{
	OK(a, t3_leave(a->member));
}

/* Open the gate when all that still act are there. Caller holds the lock. */
static void look_at_gate(struct scene *s)
{
	if (s->waiting == s->acting) {
		s->waiting = 0;
		s->meetings++;
		pthread_cond_broadcast(&s->moved);
	}
}

/* Wait for the others, but not for one that has failed and is gone. */
static void meet(struct actor *a)
{
	struct scene *s = a->scene;
	uint32_t meeting;

	pthread_mutex_lock(&s->lock);
	meeting = s->meetings;
	s->waiting++;
	look_at_gate(s);
	while (s->meetings == meeting)
		pthread_cond_wait(&s->moved, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void perform(struct actor *a, void (*act)(struct actor *a))
{
	if (!setjmp(a->end))
		act(a);
}

static void *actor_main(void *arg)
{
	struct actor *a = arg;

	perform(a, a->act);
	pthread_mutex_lock(&a->scene->lock);
	a->scene->acting--;
	look_at_gate(a->scene);
	pthread_mutex_unlock(&a->scene->lock);
	return NULL;
}

static void prepare_path(void)
{
	static unsigned int n;

	snprintf(path, sizeof(path), "/tmp/t3-engines.%d.%u", (int)getpid(), n++);
}

/* All ranks as threads. */
static void play(struct scene *s, void (*act)(struct actor *a))
{
	struct actor a[RANKS_MAX];
	uint32_t r;

	prepare_path();
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->moved, NULL);
	s->acting = s->ranks;
	memset(a, 0, sizeof(a));
	for (r = 0; r < s->ranks; r++) {
		a[r].scene = s;
		a[r].rank = r;
		a[r].act = act;
		assert_int_equal(pthread_create(&a[r].thread, NULL, actor_main,
						&a[r]), 0);
	}
	for (r = 0; r < s->ranks; r++)
		pthread_join(a[r].thread, NULL);
	for (r = 0; r < s->ranks; r++)
		if (a[r].error[0])
			fail_msg("op %u algorithm %u ranks %u layout %u rank %u: %s",
				 s->op, s->algorithm, s->ranks, s->layout, r,
				 a[r].error);
}

static struct scene two(void)
{
	return (struct scene) {
		.ranks = 2, .op = T3_ALL_REDUCE, .rows = 20, .cols = 30,
	};
}

/* ---- data ---- */

static float *element(const struct actor *a, float *base, uint64_t row,
		      uint64_t col)
{
	return base + (a->scene->layout ? col * a->ld + row :
					  row * a->ld + col);
}

/* Small integers: sums are exact. */
static float made(uint32_t rank, uint64_t row, uint64_t col, uint32_t epoch)
{
	return (float)((rank * 7 + row * 3 + col * 5 + epoch) % 11);
}

static void compute(struct actor *a, const struct t3_rectangle *r)
{
	uint64_t i, j;

	for (i = r->row; i < r->row + r->rows; i++)
		for (j = r->col; j < r->col + r->cols; j++)
			*element(a, a->data, i, j) =
				made(a->rank, i, j, t3_epoch(a->plan));
}

static void produce(struct actor *a)
{
	struct t3_rectangle rect;
	uint32_t i;

	for (i = 0; !t3_plan_step(a->plan, i, &rect); i++) {
		compute(a, &rect);
		OK(a, t3_produced(a->plan, i));
	}
}

static float wanted(const struct actor *a, uint64_t row, uint64_t col,
		    uint32_t owner, uint64_t first)
{
	uint32_t epoch = t3_epoch(a->plan);
	struct t3_rectangle mine;
	float sum = 0;
	uint32_t q;

	switch (a->scene->op) {
	case T3_ALL_GATHER:
		return made(owner, row, col, epoch);
	case T3_ALL_TO_ALL:
		t3_plan_shard(a->plan, a->rank, &mine);
		return made(owner, mine.row + row - first, col, epoch);
	default:
		for (q = 0; q < a->scene->ranks; q++)
			sum += made(q, row, col, epoch);
		return sum;
	}
}

static void judge(struct actor *a)
{
	float *base = a->scene->op == T3_ALL_TO_ALL ? a->result : a->data;
	struct t3_rectangle s;
	uint64_t i, j;
	uint32_t q;

	for (q = 0; q < a->scene->ranks; q++) {
		if (a->scene->op == T3_REDUCE_SCATTER && q != a->rank)
			continue;
		OK(a, t3_plan_shard(a->plan, q, &s));
		for (i = s.row; i < s.row + s.rows; i++) {
			for (j = 0; j < s.cols; j++) {
				float found = *element(a, base, i, j);
				float want = wanted(a, i, j, q, s.row);

				if (found != want)
					give_up(a, "epoch %u: row %lu, column %lu is %g, not %g",
						t3_epoch(a->plan), i, j, found, want);
			}
		}
	}
}

static void epoch(struct actor *a)
{
	OK(a, t3_arm(a->plan));
	produce(a);
	OK(a, t3_wait(a->plan, LONG_MS));
	judge(a);
}

/* ---- results ---- */

static void act_epochs(struct actor *a)
{
	int i;

	begin(a);
	for (i = 0; i < 4; i++)
		epoch(a);
	/*
	 * A rank with an empty shard may be done before others have armed, and
	 * to delete the plan ends it for them. (Processes meet in the data.)
	 */
	if (a->scene->acting)
		meet(a);
	OK(a, t3_plan_del(a->plan));
	OK(a, t3_region_del(a->region));
	OK(a, t3_region_del(a->second));
	leave(a);
}

static const uint32_t forms[][2] = {
	{ T3_REDUCE_SCATTER, T3_ALG_RING },
	{ T3_REDUCE_SCATTER, T3_ALG_DIRECT },
	{ T3_ALL_GATHER, T3_ALG_RING },
	{ T3_ALL_GATHER, T3_ALG_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_RING },
	{ T3_ALL_REDUCE, T3_ALG_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_RING_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_DIRECT_RING },
	{ T3_ALL_TO_ALL, T3_ALG_DIRECT },
};

static void test_tables(void **state)
{
	static const uint32_t ranks[] = { 1, 2, 3, RANKS_MAX };
	size_t f, n;

	(void)state;
	for (f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		for (n = 0; n < sizeof(ranks) / sizeof(ranks[0]); n++) {
			struct scene s = {
				.ranks = ranks[n],
				.op = forms[f][0],
				.algorithm = forms[f][1],
				.layout = (f + n) % 2,
				.rows = forms[f][0] == T3_ALL_TO_ALL ? 30 : 31,
				.cols = 17,
				.own = f % 2,
			};

			play(&s, act_epochs);
		}
	}
}

/* More ranks than rows: some shards are empty. */
static void test_empty_shards(void **state)
{
	size_t f;

	(void)state;
	for (f = 0; f < 8; f++) {
		struct scene s = {
			.ranks = 5, .op = forms[f][0], .algorithm = forms[f][1],
			.rows = 3, .cols = 9,
		};

		play(&s, act_epochs);
	}
}

/* The same, each rank a process. */
static void test_processes(void **state)
{
	struct scene s = {
		.ranks = 3, .op = T3_ALL_REDUCE, .rows = 31, .cols = 17,
	};
	pid_t child[3];
	uint32_t r;
	int status;

	(void)state;
	prepare_path();
	for (r = 0; r < 3; r++) {
		child[r] = fork();
		if (!child[r]) {
			struct actor a = { .scene = &s, .rank = r };

			perform(&a, act_epochs);
			if (a.error[0])
				printf("# rank %u: %s\n", r, a.error);
			fflush(NULL);
			_exit(!!a.error[0]);
		}
	}
	for (r = 0; r < 3; r++) {
		assert_int_equal(waitpid(child[r], &status, 0), child[r]);
		assert_int_equal(status, 0);
	}
}

static void act_many_plans(struct actor *a)
{
	struct t3_collective c;
	int i;

	begin(a);
	for (i = 0; i < 150; i++) {
		epoch(a);
		OK(a, t3_plan_del(a->plan));
		c = collective(a);
		OK(a, t3_plan_add(a->member, &c, &a->plan));
	}
	leave(a);
}

static void test_many_plans(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_many_plans);
}

/* ---- plans that are refused ---- */

static void act_disagree(struct actor *a)
{
	struct t3_collective c;

	enter(a);
	register_memory(a);
	c = collective(a);
	c.block_bytes = 400 + a->rank * 4;
	NO(a, t3_plan_add(a->member, &c, &a->plan), EBADMSG, "rank 1");
	/* And no harm is done. */
	c.block_bytes = 400;
	OK(a, t3_plan_add(a->member, &c, &a->plan));
	epoch(a);
	leave(a);
}

static void test_disagree(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_disagree);
}

/* Rank 1 makes its part when rank 0 has given up; then both again. */
static void act_too_late(struct actor *a)
{
	struct t3_collective c;
	int ret;

	enter(a);
	register_memory(a);
	c = collective(a);
	if (a->rank == 0)
		NO(a, t3_plan_add(a->member, &c, &a->plan), ETIME, "t3_plan_add: ");
	meet(a);
	if (a->rank == 1) {
		ret = t3_plan_add(a->member, &c, &a->plan);
		if (ret != -EPIPE && ret != -ETIME)
			give_up(a, "%d \"%s\"", ret, t3_error());
	}
	meet(a);
	OK(a, t3_plan_add(a->member, &c, &a->plan));
	epoch(a);
	leave(a);
}

static void test_too_late(void **state)
{
	struct scene s = two();

	(void)state;
	s.setup_ms = 1000;
	play(&s, act_too_late);
}

/* ---- waiting ---- */

static void act_late_producer(struct actor *a)
{
	begin(a);
	OK(a, t3_arm(a->plan));
	if (a->rank == 0) {
		produce(a);
		NO(a, t3_wait(a->plan, 20), ETIME, "epoch 1");
		NO(a, t3_wait(a->plan, 0), ETIME, "epoch 1");
		NO(a, t3_wait_block(a->plan, 0, 20), ETIME, "block 0");
	}
	meet(a);
	if (a->rank == 1)
		produce(a);
	OK(a, t3_wait_block(a->plan, 0, LONG_MS));
	OK(a, t3_wait(a->plan, LONG_MS));
	judge(a);
	leave(a);
}

static void test_late_producer(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_late_producer);
}

static void act_tiles(struct actor *a)
{
	struct t3_rectangle rect;
	struct t3_plan_info info = { .size = sizeof(info) };
	uint32_t i;

	begin(a);
	OK(a, t3_plan_info(a->plan, &info));
	OK(a, t3_arm(a->plan));
	for (i = 0; !t3_plan_step(a->plan, i, &rect); i++)
		compute(a, &rect);
	for (i = 0; i < info.blocks; i++) {
		OK(a, t3_tile_done(a->plan, i, 2));
		NO(a, t3_tile_done(a->plan, i, 2), EPROTO, "tile");
		OK(a, t3_tile_done(a->plan, i, 1));
	}
	OK(a, t3_wait(a->plan, LONG_MS));
	judge(a);
	/* Nothing is armed now. */
	if (t3_produced(a->plan, 0) != -EPROTO)
		give_up(a, "produced after the end: \"%s\"", t3_error());
	OK(a, t3_arm(a->plan));
	OK(a, t3_produced(a->plan, 0));
	/* A peer may need it no more, but this rank has not retired. */
	NO(a, t3_produced(a->plan, 0), EPROTO, "block 0");
	meet(a);
	for (i = 1; i < info.steps; i++)
		OK(a, t3_produced(a->plan, i));
	OK(a, t3_wait(a->plan, LONG_MS));
	leave(a);
}

static void test_tiles(void **state)
{
	struct scene s = two();

	(void)state;
	s.tiles = 3;
	play(&s, act_tiles);
}

static void act_busy(struct actor *a)
{
	begin(a);
	OK(a, t3_arm(a->plan));
	NO(a, t3_arm(a->plan), EBUSY, "t3_arm: ");
	NO(a, t3_plan_del(a->plan), EBUSY, "t3_plan_del: ");
	NO(a, t3_region_del(a->region), EBUSY, "t3_region_del: ");
	NO(a, t3_free(a->member, a->data), EBUSY, "t3_free: ");
	produce(a);
	OK(a, t3_wait(a->plan, LONG_MS));
	judge(a);
	OK(a, t3_plan_del(a->plan));
	OK(a, t3_region_del(a->region));
	OK(a, t3_free(a->member, a->data));
	leave(a);
}

static void test_busy(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_busy);
}

/* ---- leaving and dying ---- */

static void act_leave_armed(struct actor *a)
{
	begin(a);
	OK(a, t3_arm(a->plan));
	meet(a);
	if (a->rank == 1) {
		NO(a, t3_leave(a->member), EOWNERDEAD, "rank 1");
		return;
	}
	NO(a, t3_wait(a->plan, LONG_MS), EOWNERDEAD, "rank 1");
	NO(a, t3_arm(a->plan), EOWNERDEAD, "rank 1");
	leave(a);
}

static void test_leave_armed(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_leave_armed);
}

static void act_leave_clean(struct actor *a)
{
	begin(a);
	epoch(a);
	if (a->rank == 1)
		leave(a);
	meet(a);
	if (a->rank == 1)
		return;
	NO(a, t3_arm(a->plan), EPIPE, "rank 1");
	leave(a);
}

static void test_leave_clean(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_leave_clean);
}

static void act_abort(struct actor *a)
{
	begin(a);
	OK(a, t3_arm(a->plan));
	meet(a);
	if (a->rank == 1) {
		OK(a, t3_abort(a->member));
		NO(a, t3_abort(a->member), EALREADY, "t3_abort: ");
	}
	NO(a, t3_wait(a->plan, LONG_MS), ECANCELED, "t3_abort()");
	leave(a);
}

static void test_abort(void **state)
{
	struct scene s = two();

	(void)state;
	play(&s, act_abort);
}

static void act_watchdog(struct actor *a)
{
	begin(a);
	if (a->rank == 0) {
		OK(a, t3_arm(a->plan));
		produce(a);
		NO(a, t3_wait(a->plan, LONG_MS), ETIMEDOUT, "rank 1");
	}
	meet(a);
	leave(a);
}

static void test_watchdog(void **state)
{
	struct scene s = two();

	(void)state;
	s.watchdog_ms = SHORT_MS;
	play(&s, act_watchdog);
}

/* Rank 1 is a process that is killed with an epoch armed. */
static void test_killed(void **state)
{
	struct scene s = two();
	struct actor a = { .scene = &s };
	int armed[2];
	pid_t child;
	char byte;
	int ret;

	(void)state;
	prepare_path();
	assert_int_equal(pipe(armed), 0);
	child = fork();
	if (!child) {
		a.rank = 1;
		perform(&a, begin);
		if (a.error[0] || t3_arm(a.plan) || write(armed[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	perform(&a, begin);
	assert_string_equal(a.error, "");
	assert_int_equal(t3_arm(a.plan), 0);
	assert_int_equal(read(armed[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	ret = t3_wait(a.plan, LONG_MS);
	if (ret != -EOWNERDEAD || !strstr(t3_error(), "rank 1"))
		fail_msg("%d \"%s\"", ret, t3_error());
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(t3_leave(a.member), 0);
	close(armed[0]);
	close(armed[1]);
}

/* A forked child has the handles, but not the right to use them. */
static void test_forked_child(void **state)
{
	struct scene s = two();
	struct actor a = { .scene = &s };
	pid_t child;
	int status;

	(void)state;
	s.ranks = 1;
	prepare_path();
	perform(&a, begin);
	assert_string_equal(a.error, "");
	assert_int_equal(t3_arm(a.plan), 0);
	child = fork();
	if (!child)
		_exit(!(t3_arm(a.plan) < 0 && t3_wait(a.plan, 10) < 0 &&
			t3_produced(a.plan, 0) < 0 &&
			t3_wait_block(a.plan, 0, 10) < 0 &&
			t3_plan_del(a.plan) < 0));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	perform(&a, produce);
	assert_string_equal(a.error, "");
	assert_int_equal(t3_wait(a.plan, LONG_MS), 0);
	perform(&a, judge);
	assert_string_equal(a.error, "");
	assert_int_equal(t3_leave(a.member), 0);
}

/* ---- regions ---- */

static void refused(struct actor *a, void *base, uint32_t flags, int error)
{
	struct t3_matrix m = matrix(a, base);
	struct t3_region *region;
	int ret;

	m.flags = flags;
	ret = t3_region_add(a->member, &m, &region);
	if (ret != -error || strncmp(t3_error(), "t3_region_add: ", 15))
		fail_msg("%d \"%s\", not %d", ret, t3_error(), -error);
}

static void test_regions(void **state)
{
	struct scene s = two();
	struct actor a = { .scene = &s, .ld = 30 };
	char *page;

	(void)state;
	s.ranks = 1;
	prepare_path();
	perform(&a, enter);
	assert_string_equal(a.error, "");
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	refused(&a, page + 4096, 0, EFAULT);
	refused(&a, page + 2048, 0, EFAULT);
	mprotect(page, 4096, PROT_READ);
	refused(&a, page, 0, EFAULT);
	/* The kernel's own page in our address space is nobody's memory. */
	if (engine == T3_ENGINE_KERNEL)
		refused(&a, (void *)getauxval(AT_SYSINFO_EHDR),
			T3_REGION_READ_ONLY, EMEDIUMTYPE);
	munmap(page, 4096);
	assert_int_equal(t3_leave(a.member), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_empty_shards),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_many_plans),
		cmocka_unit_test(test_disagree),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_late_producer),
		cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_leave_armed),
		cmocka_unit_test(test_leave_clean),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_forked_child),
		cmocka_unit_test(test_regions),
	};

	if (argc > 1)
		for (engine = T3_ENGINE_GPU; engine; engine--)
			if (!strcmp(argv[1], t3_engine_name(engine)))
				break;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("engines", tests, NULL, NULL);
}
