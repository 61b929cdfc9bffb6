// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ranks that die: each in turn, by SIGKILL, exec and exit, at every point of an
 * epoch. The survivors get EOWNERDEAD that names it. T3_TEST_KILLS: how many
 * kills at random times.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "matrix.h"

#define RANKS	3

static const struct shape shape = {
	.op = T3_ALL_REDUCE,
	.algorithm = T3_ALG_RING,
	.dtype = T3_DTYPE_F32,
	.rows = 24,
	.cols = 64,
	.block_bytes = 512,
};

/* When the victim is ready to die, or how it ends itself. */
enum point {
	BEFORE_ARM,
	ARMED,
	HALF_PRODUCED,
	IN_WAIT,
	ENDS,
	RANDOM = ENDS,
	EXEC,
	EXIT_ARMED,
	KILL_CHILD_ALIVE,
	POINTS,
};

static const char *const point_name[] = {
	[BEFORE_ARM] = "killed before it arms",
	[ARMED] = "killed when armed",
	[HALF_PRODUCED] = "killed in the middle of producing",
	[IN_WAIT] = "killed in t3_wait()",
	[RANDOM] = "killed at random times",
	[EXEC] = "armed, runs another program",
	[EXIT_ARMED] = "armed, exits",
	[KILL_CHILD_ALIVE] = "armed, killed, its forked child lives on",
};

/**
 * struct scene - what the test's processes share
 * @victim: the rank that dies
 * @point: where
 * @at_point: set by the victim when it is there
 * @died_ms: when it was killed
 * @slowest_ms: until the last survivor knew
 * @told: survivors that know
 * @armed: ranks that have armed
 * @child: the victim's forked child
 */
struct scene {
	uint32_t victim;
	enum point point;
	uint32_t at_point;
	uint64_t died_ms;
	uint64_t slowest_ms;
	uint32_t told;
	uint32_t armed;
	pid_t child;
};

static struct scene *scene;

static void wait_for(uint32_t *what, uint32_t value)
{
	while (__atomic_load_n(what, __ATOMIC_SEQ_CST) < value)
		sleep_ms(1);
}

static void at_point(void)
{
	__atomic_store_n(&scene->at_point, 1, __ATOMIC_SEQ_CST);
}

/* Be there until killed. */
static void stay(void)
{
	at_point();
	for (;;)
		pause();
}

static void run_another(void)
{
	/* Its descriptors and mappings go, its process number stays. */
	execl("/bin/sleep", "sleep", "30", (char *)NULL);
	_exit(1);
}

static void fork_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	scene->child = pid;
}

static int die(struct t3_member *member, struct work *work)
{
	struct t3_rectangle rect;
	uint32_t step;

	if (scene->point == BEFORE_ARM)
		stay();
	RANK_TRY(member, t3_arm(work->plan));
	wait_for(&scene->armed, RANKS - 1);
	switch (scene->point) {
	case ARMED:
		stay();
		break;
	case EXEC:
		at_point();
		run_another();
		break;
	case EXIT_ARMED:
		at_point();
		exit(0);
		break;
	case KILL_CHILD_ALIVE:
		fork_child();
		stay();
		break;
	default:
		break;
	}
	for (step = 0; !t3_plan_step(work->plan, step, &rect); step++) {
		if (scene->point == HALF_PRODUCED && step == 3)
			stay();
		buffer_produce(&work->buffer[0], &shape, scene->victim,
			       t3_epoch(work->plan), &rect);
		RANK_TRY(member, t3_produced(work->plan, step));
	}
	/* The others don't produce: so this stays where it is. */
	at_point();
	t3_wait(work->plan, 60000);
	return rank_fails(member, "lived on");
}

/* One epoch that can't end; it must say so in time, and say who. */
static int survive(struct t3_member *member, struct work *work)
{
	uint64_t ms;
	char name[16];
	int ret;

	RANK_TRY(member, t3_arm(work->plan));
	__atomic_add_fetch(&scene->armed, 1, __ATOMIC_SEQ_CST);
	if (scene->point != IN_WAIT)
		RANK_TRY(member, t3_produced_all(work->plan));
	ret = t3_wait(work->plan, 30000);
	ms = now_ms();
	RANK_CHECK(member, ret == -EOWNERDEAD);
	snprintf(name, sizeof(name), "rank %u ", scene->victim);
	RANK_CHECK(member, strstr(t3_error(), name));
	RANK_CHECK(member, __atomic_load_n(&scene->at_point, __ATOMIC_SEQ_CST));
	if (ms > scene->slowest_ms)
		scene->slowest_ms = ms;
	RANK_GIVES(member, EOWNERDEAD, t3_arm(work->plan));
	return work_end(work);
}

static int play(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &shape) || work_epoch(&work))
		return 1;
	if (t3_rank(member) == scene->victim)
		return die(member, &work);
	return survive(member, &work);
}

static int play_scene(enum point point, uint32_t victim)
{
	struct t3_group *group = new_group(RANKS, NULL);
	pid_t pid[RANKS];
	int failed = 0;
	uint32_t r;

	*scene = (struct scene) { .victim = victim, .point = point };
	for (r = 0; r < RANKS; r++)
		pid[r] = fork_rank(group, r, play, NULL);
	wait_for(&scene->at_point, 1);
	wait_for(&scene->armed, RANKS - 1);
	if (point != EXEC && point != EXIT_ARMED) {
		sleep_ms(2);
		kill(pid[victim], SIGKILL);
	}
	scene->died_ms = now_ms();
	for (r = 0; r < RANKS; r++)
		failed += r != victim && reap_rank(pid[r]);
	kill(pid[victim], SIGKILL);
	waitpid(pid[victim], NULL, 0);
	if (scene->child)
		kill(scene->child, SIGKILL);
	t3_group_close(group);
	return failed;
}

static void test_points(void)
{
	enum point point;
	uint64_t slowest = 0;

	for (point = 0; point < POINTS; point++) {
		uint32_t victim;
		int failed = 0;

		if (point == RANDOM)
			continue;
		for (victim = 0; victim < RANKS; victim++) {
			failed += play_scene(point, victim);
			if (scene->slowest_ms - scene->died_ms > slowest &&
			    scene->slowest_ms > scene->died_ms)
				slowest = scene->slowest_ms - scene->died_ms;
		}
		tap_ok(!failed, "each rank %s", point_name[point]);
	}
	printf("# the slowest survivor knew after %llu ms\n",
	       (unsigned long long)slowest);
}

/*
 * Run until it fails. A rank that died between two epochs is named by t3_arm()
 * of some and by t3_wait() of others; nobody leaves before all know.
 */
static int run_on(struct t3_member *member, void *arg)
{
	struct work work;
	char name[16];
	int ret = 0;

	(void)arg;
	if (work_begin(&work, member, &shape))
		return 1;
	while (!ret) {
		ret = t3_arm(work.plan);
		if (!ret)
			ret = t3_produced_all(work.plan);
		if (!ret)
			ret = t3_wait(work.plan, 30000);
		at_point();
	}
	RANK_CHECK(member, ret == -EOWNERDEAD || ret == -EPIPE);
	snprintf(name, sizeof(name), "rank %u ", scene->victim);
	RANK_CHECK(member, strstr(t3_error(), name));
	if (now_ms() > scene->slowest_ms)
		scene->slowest_ms = now_ms();
	__atomic_add_fetch(&scene->told, 1, __ATOMIC_SEQ_CST);
	wait_for(&scene->told, RANKS - 1);
	return 0;
}

static int kill_at_random(uint32_t victim, const struct t3_options *options)
{
	struct t3_group *group = new_group(RANKS, options);
	pid_t pid[RANKS];
	int failed = 0;
	uint32_t r;

	*scene = (struct scene) { .victim = victim, .point = RANDOM };
	for (r = 0; r < RANKS; r++)
		pid[r] = fork_rank(group, r, run_on, NULL);
	wait_for(&scene->at_point, 1);
	usleep(rand() % 5000);
	scene->died_ms = now_ms();
	kill(pid[victim], SIGKILL);
	for (r = 0; r < RANKS; r++)
		failed += r != victim && reap_rank(pid[r]);
	waitpid(pid[victim], NULL, 0);
	t3_group_close(group);
	return failed;
}

static void test_random(void)
{
	const char *n = getenv("T3_TEST_KILLS");
	struct t3_options options = soft_options();
	uint32_t i, kills = n ? atoi(n) : 60;
	uint64_t slowest = 0;
	int failed = 0;

	for (i = 0; i < kills && !failed; i++) {
		options.workers = i % 4 ? T3_NO_WORKERS : 1;
		failed += kill_at_random(i % RANKS, &options);
		if (scene->slowest_ms > scene->died_ms + slowest)
			slowest = scene->slowest_ms - scene->died_ms;
	}
	tap_ok(!failed, "%u kills at random times", kills);
	printf("# the slowest survivor knew after %llu ms\n",
	       (unsigned long long)slowest);
}

/* Ends without t3_leave() as soon as its last epoch has: that is no fault. */
static int run_and_exit(struct t3_member *member, void *arg)
{
	struct work work;
	uint32_t i;

	(void)arg;
	if (work_begin(&work, member, &shape))
		return 1;
	for (i = 0; i < 20; i++) {
		if (work_epoch(&work))
			return 1;
	}
	_exit(0);
}

static void test_exit(void)
{
	struct t3_options options = soft_options();
	int failed = 0;
	uint32_t i;

	for (i = 0; i < 30; i++) {
		options.workers = i % 3 ? T3_NO_WORKERS : 2;
		failed += run_ranks(true, RANKS, &options, run_and_exit, NULL);
	}
	tap_ok(!failed, "an exit after the last epoch breaks nobody");
}

/* Dies before it has made a plan, or while it does. */
static int never_plans(struct t3_member *member, void *arg)
{
	struct work work;
	int ret;

	(void)arg;
	if (t3_rank(member) == scene->victim) {
		at_point();
		pause();
	}
	scene->told = 1;
	ret = work_begin(&work, member, &shape);
	RANK_CHECK(member, ret && strstr(t3_error(), "rank 1 "));
	return 0;
}

static void test_setup(void)
{
	struct t3_group *group = new_group(RANKS, NULL);
	pid_t pid[RANKS];
	int failed = 0;
	uint32_t r;

	*scene = (struct scene) { .victim = 1 };
	for (r = 0; r < RANKS; r++)
		pid[r] = fork_rank(group, r, never_plans, NULL);
	wait_for(&scene->at_point, 1);
	wait_for(&scene->told, 1);
	kill(pid[1], SIGKILL);
	for (r = 0; r < RANKS; r++)
		failed += r != 1 && reap_rank(pid[r]);
	waitpid(pid[1], NULL, 0);
	t3_group_close(group);
	tap_ok(!failed, "a rank that dies in setting up is named");
}

int main(void)
{
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (scene == MAP_FAILED)
		return 1;
	srand(7);
	test_points();
	test_exit();
	test_setup();
	test_random();
	return tap_end();
}
