// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Joining and leaving, making and deleting plans, refusals, failures that are
 * not deaths, forks.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "matrix.h"

static const struct shape small = {
	.op = T3_REDUCE_SCATTER,
	.algorithm = T3_ALG_DIRECT,
	.dtype = T3_DTYPE_F32,
	.rows = 8,
	.cols = 16,
	.block_bytes = 64,
	.epochs = 3,
};

/* Where the threads of a group meet: how many have come since it began. */
static uint32_t come;

static void meet(uint32_t all)
{
	uint32_t turn = __atomic_add_fetch(&come, 1, __ATOMIC_SEQ_CST);
	uint32_t end = (turn + all - 1) / all * all;

	while (__atomic_load_n(&come, __ATOMIC_SEQ_CST) < end)
		sleep_ms(1);
}

static int run_threads(uint32_t ranks, const struct t3_options *options,
		       rank_fn fn, void *arg)
{
	come = 0;
	return run_ranks(false, ranks, options, fn, arg);
}

static struct t3_collective collective_of(const struct shape *shape,
					  struct t3_region *region)
{
	return (struct t3_collective) {
		.size = sizeof(struct t3_collective),
		.op = shape->op,
		.algorithm = shape->algorithm,
		.block_bytes = shape->block_bytes,
		.region = region,
	};
}

static void test_join(void)
{
	struct t3_group *group = new_group(2, NULL);
	struct t3_group *other = NULL;
	struct t3_member *member, *again;
	int ends[2];
	bool ok;

	ok = !t3_join(group, 1, &member);
	ok = ok && t3_join(group, 1, &again) == -EEXIST;
	ok = ok && !t3_leave(member);
	ok = ok && t3_join(group, 1, &again) == -EEXIST;
	tap_ok(ok, "a rank is taken once");
	ok = !t3_group_from_fd(t3_group_fd(group), NULL, &other) &&
	     !t3_join(other, 0, &member) && t3_ranks(member) == 2 &&
	     t3_engine(member) == T3_ENGINE_SOFT && !t3_leave(member);
	t3_group_close(other);
	tap_ok(ok, "a group by its descriptor");
	ok = !pipe(ends);
	ok = ok && t3_group_from_fd(ends[0], NULL, &other) == -ENOTTY;
	close(ends[0]);
	close(ends[1]);
	ok = ok && t3_group_from_fd(ends[0], NULL, &other) == -EBADF;
	tap_ok(ok, "what is no group is refused");
	t3_group_close(group);
}

static int order(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_GIVES(member, EPROTO, t3_produced(work.plan, 0));
	RANK_GIVES(member, EPROTO, t3_wait(work.plan, 0));
	meet(t3_ranks(member));
	RANK_TRY(member, t3_arm(work.plan));
	RANK_GIVES(member, EBUSY, t3_arm(work.plan));
	RANK_GIVES(member, EBUSY, t3_plan_del(work.plan));
	RANK_GIVES(member, ETIME, t3_wait(work.plan, 0));
	RANK_GIVES(member, ETIME, t3_wait(work.plan, 20));
	if (t3_rank(member) == 0)
		RANK_TRY(member, t3_produced(work.plan, 0));
	else
		RANK_TRY(member, t3_produced(work.plan, 1));
	meet(t3_ranks(member));
	RANK_GIVES(member, EPROTO, t3_produced(work.plan, t3_rank(member)));
	RANK_CHECK(member, strstr(t3_error(), "block"));
	meet(t3_ranks(member));
	/* All others: the mistake has changed nothing. */
	for (int i = 0; !t3_plan_step(work.plan, i, &(struct t3_rectangle){ 0 });
	     i++) {
		if (i != (int)t3_rank(member))
			RANK_TRY(member, t3_produced(work.plan, i));
	}
	RANK_TRY(member, t3_wait(work.plan, 10000));
	RANK_GIVES(member, EPROTO, t3_produced(work.plan, 0));
	if (work_epoch(&work))
		return 1;
	return work_end(&work);
}

/* A rank comes late to a plan, and once too late. */
static int late(struct t3_member *member, void *arg)
{
	struct t3_collective collective;
	struct t3_region *region;
	struct buffer buffer;
	struct t3_plan *plan;

	(void)arg;
	if (buffer_make(member, &small, &buffer))
		return 1;
	RANK_TRY(member, t3_region_add(member, &buffer.matrix, &region));
	collective = collective_of(&small, region);
	if (t3_rank(member) == 0) {
		RANK_GIVES(member, ETIME,
			   t3_plan_add(member, &collective, &plan));
		RANK_CHECK(member, strstr(t3_error(), "rank 1"));
		meet(2);
		meet(2);
	} else {
		meet(2);
		RANK_GIVES(member, EPIPE,
			   t3_plan_add(member, &collective, &plan));
		RANK_CHECK(member, strstr(t3_error(), "rank 0"));
		meet(2);
		sleep_ms(100);
	}
	RANK_TRY(member, t3_plan_add(member, &collective, &plan));
	RANK_TRY(member, t3_plan_del(plan));
	return 0;
}

static void test_late(void)
{
	struct t3_options options = soft_options();

	options.setup_ms = 1000;
	tap_ok(!run_threads(2, &options, late, NULL),
	       "a rank too late, then in time");
}

static int disagree(struct t3_member *member, void *arg)
{
	struct t3_collective collective;
	struct t3_region *region;
	struct buffer buffer;
	struct t3_plan *plan;

	(void)arg;
	if (buffer_make(member, &small, &buffer))
		return 1;
	RANK_TRY(member, t3_region_add(member, &buffer.matrix, &region));
	collective = collective_of(&small, region);
	if (t3_rank(member) == 1)
		collective.block_bytes = 128;
	RANK_GIVES(member, EBADMSG, t3_plan_add(member, &collective, &plan));
	collective.block_bytes = 256;
	RANK_TRY(member, t3_plan_add(member, &collective, &plan));
	RANK_TRY(member, t3_plan_del(plan));
	return 0;
}

/* Two plans on one buffer, and two on halves of one. */
static int overlap(struct t3_member *member, void *arg)
{
	struct t3_collective collective;
	struct t3_region *region[3];
	struct t3_plan *plan[3];
	struct t3_matrix half;
	struct buffer buffer;
	int i;

	(void)arg;
	if (buffer_make(member, &small, &buffer))
		return 1;
	half = buffer.matrix;
	half.cols /= 2;
	RANK_TRY(member, t3_region_add(member, &buffer.matrix, &region[0]));
	RANK_TRY(member, t3_region_add(member, &half, &region[1]));
	half.base = (char *)half.base + half.cols * sizeof(float);
	RANK_TRY(member, t3_region_add(member, &half, &region[2]));
	for (i = 0; i < 3; i++) {
		collective = collective_of(&small, region[i]);
		RANK_TRY(member, t3_plan_add(member, &collective, &plan[i]));
	}
	RANK_TRY(member, t3_arm(plan[1]));
	RANK_GIVES(member, EBUSY, t3_arm(plan[0]));
	RANK_TRY(member, t3_arm(plan[2]));
	for (i = 1; i < 3; i++) {
		RANK_TRY(member, t3_produced_all(plan[i]));
		RANK_TRY(member, t3_wait(plan[i], 10000));
	}
	RANK_TRY(member, t3_arm(plan[0]));
	RANK_GIVES(member, EBUSY, t3_arm(plan[1]));
	RANK_TRY(member, t3_produced_all(plan[0]));
	RANK_TRY(member, t3_wait(plan[0], 10000));
	for (i = 0; i < 3; i++)
		RANK_TRY(member, t3_plan_del(plan[i]));
	return 0;
}

static struct t3_group *second_group;

/* The same buffer in two groups, in turn. */
static int two_groups(struct t3_member *member, void *arg)
{
	struct t3_member *second;
	struct work work, other;
	uint32_t i;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_join(second_group, t3_rank(member), &second));
	other = work;
	other.member = second;
	RANK_TRY(member, t3_region_add(second, &work.buffer[0].matrix,
				       &other.region[0]));
	{
		struct t3_collective collective =
			collective_of(&small, other.region[0]);

		RANK_TRY(member, t3_plan_add(second, &collective, &other.plan));
	}
	for (i = 0; i < 200; i++) {
		if (work_epoch(i % 2 ? &work : &other))
			return 1;
	}
	RANK_TRY(member, t3_leave(second));
	return work_end(&work);
}

static void test_two_groups(void)
{
	int failed;

	second_group = new_group(3, NULL);
	failed = run_threads(3, NULL, two_groups, NULL);
	t3_group_close(second_group);
	tap_ok(!failed, "two groups over one buffer, threads");
#ifndef T3_NO_FORK
	second_group = new_group(2, NULL);
	failed = run_ranks(true, 2, NULL, two_groups, NULL);
	t3_group_close(second_group);
	tap_ok(!failed, "two groups over one buffer, processes");
#endif
}

static int aborts(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	meet(t3_ranks(member));
	if (t3_rank(member) == 1)
		RANK_TRY(member, t3_abort(member));
	RANK_GIVES(member, ECANCELED, t3_wait(work.plan, 10000));
	RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	RANK_GIVES(member, ECANCELED, t3_arm(work.plan));
	RANK_GIVES(member, ECANCELED, t3_produced(work.plan, 0));
	RANK_GIVES(member, EALREADY, t3_abort(member));
	return work_end(&work);
}

static int watchdog_arm(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	if (t3_rank(member) == 0) {
		RANK_TRY(member, t3_arm(work.plan));
		RANK_TRY(member, t3_produced_all(work.plan));
		RANK_GIVES(member, ETIMEDOUT, t3_wait(work.plan, 20000));
		RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	}
	meet(t3_ranks(member));
	RANK_GIVES(member, ETIMEDOUT, t3_arm(work.plan));
	return work_end(&work);
}

static int watchdog_block(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	if (t3_rank(member) == 0)
		RANK_TRY(member, t3_produced_all(work.plan));
	else
		RANK_TRY(member, t3_produced(work.plan, 0));
	RANK_GIVES(member, ETIMEDOUT, t3_wait(work.plan, 20000));
	RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	RANK_CHECK(member, strstr(t3_error(), "block"));
	return work_end(&work);
}

static void test_watchdog(void)
{
	struct t3_options options = soft_options();

	options.watchdog_ms = 300;
	tap_ok(!run_threads(2, &options, watchdog_arm, NULL),
	       "the watchdog names who has not armed");
	tap_ok(!run_threads(2, &options, watchdog_block, NULL),
	       "the watchdog names the block that lacks");
}

/* A slow epoch is no reason to bite while something moves. */
static int slow(struct t3_member *member, void *arg)
{
	uint32_t step;
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	for (step = 0; step < 6; step++) {
		RANK_TRY(member, t3_produced(work.plan, step));
		sleep_ms(400);
	}
	for (; !t3_produced(work.plan, step); step++)
		;
	RANK_TRY(member, t3_wait(work.plan, 10000));
	return work_end(&work);
}

static void test_slow(void)
{
	struct t3_options options = soft_options();

	options.watchdog_ms = 1500;
	tap_ok(!run_threads(2, &options, slow, NULL),
	       "the watchdog lets a slow epoch be");
}

/* Rank 1 ends in good order; rank 0 finds out when it arms. */
static int leaves(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small) || work_epoch(&work))
		return 1;
	if (t3_rank(member) == 1)
		return 0;
	for (;;) {
		int ret = t3_arm(work.plan);

		/* It had not left yet: then nobody will run the epoch. */
		if (!ret)
			ret = t3_wait(work.plan, 10000);
		RANK_CHECK(member, ret == -EPIPE || ret == -EOWNERDEAD);
		RANK_CHECK(member, strstr(t3_error(), "rank 1"));
		break;
	}
	return 0;
}

static int deletes(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small) || work_epoch(&work))
		return 1;
	if (t3_rank(member) == 1)
		RANK_TRY(member, t3_plan_del(work.plan));
	meet(t3_ranks(member));
	if (t3_rank(member) == 1)
		return 0;
	RANK_GIVES(member, EPIPE, t3_arm(work.plan));
	RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	return work_end(&work);
}

static int leaves_armed(struct t3_member *member, void *arg)
{
	struct work work;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	meet(t3_ranks(member));
	if (t3_rank(member) == 0) {
		RANK_GIVES(member, EOWNERDEAD, t3_wait(work.plan, 10000));
		RANK_CHECK(member, strstr(t3_error(), "rank 1"));
		RANK_GIVES(member, EOWNERDEAD, t3_arm(work.plan));
		return work_end(&work);
	}
	return 0;
}

static void test_leaves_armed(void)
{
	tap_ok(!run_threads(2, NULL, leaves, NULL),
	       "a rank that left is named when arming");
	tap_ok(!run_threads(2, NULL, deletes, NULL),
	       "a rank that deleted its part is named when arming");
	/* One of the two leaves with an error, by design. */
	tap_ok(run_threads(2, NULL, leaves_armed, NULL) == 1,
	       "leaving with an epoch armed breaks the group");
}

static int blocks(struct t3_member *member, void *arg)
{
	struct t3_rectangle shard;
	struct work work;
	uint64_t row;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	if (work_produce(&work))
		return 1;
	RANK_TRY(member, t3_plan_shard(work.plan, t3_rank(member), &shard));
	for (row = shard.row; row < shard.row + shard.rows; row++)
		RANK_TRY(member,
			 t3_wait_block(work.plan,
				       t3_block_of(work.plan, row, shard.col),
				       10000));
	if (work_check(&work, 1))
		return 1;
	RANK_TRY(member, t3_wait(work.plan, 10000));
	return work_end(&work);
}

static uint32_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	uint32_t n = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* KiB of the shared file that take memory, by the file's own count. */
static uint64_t file_blocks(void)
{
	char path[64], target[64];
	struct stat st;
	uint64_t most = 0;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strstr(target, "memfd:t3") && !fstat(fd, &st) &&
		    (uint64_t)st.st_blocks > most)
			most = st.st_blocks;
	}
	return most / 2;
}

static int cycles(struct t3_member *member, void *arg)
{
	uint32_t files = 0, maps = 0;
	uint64_t kib = 0;
	struct work work;
	uint32_t i, n = *(uint32_t *)arg;

	for (i = 0; i < n; i++) {
		if (i == 200) {
			meet(t3_ranks(member));
			kib = file_blocks();
			files = open_files();
			maps = mappings();
			meet(t3_ranks(member));
		}
		if (work_begin(&work, member, &small) || work_epoch(&work) ||
		    work_end(&work))
			return 1;
	}
	meet(t3_ranks(member));
	RANK_CHECK(member, kib && file_blocks() <= kib + 64);
	/* Other threads' files and heaps come and go. */
	RANK_CHECK(member, open_files() <= files + 2);
	RANK_CHECK(member, mappings() <= maps + 16);
	meet(t3_ranks(member));
	return 0;
}

static void test_cycles(void)
{
	const char *n = getenv("T3_TEST_CYCLES");
	uint32_t number = n ? atoi(n) : 600;

	tap_ok(!run_threads(2, NULL, cycles, &number),
	       "%u plans made and deleted leave nothing behind", number);
}

#ifndef T3_NO_FORK
/* In a forked child the parent's member is nothing. */
static int child_calls(struct t3_member *member, struct work *work)
{
	struct t3_region *region;
	void *memory;

	RANK_GIVES(member, EPERM, t3_arm(work->plan));
	RANK_GIVES(member, EPERM, t3_produced(work->plan, 0));
	RANK_GIVES(member, EPERM, t3_wait(work->plan, 1000));
	RANK_GIVES(member, EPERM, t3_alloc(member, 4096, &memory));
	RANK_GIVES(member, EPERM, t3_plan_del(work->plan));
	RANK_GIVES(member, EPERM, t3_abort(member));
	RANK_GIVES(member, EPERM, t3_region_add(member, &work->buffer[0].matrix,
						&region));
	RANK_GIVES(member, EPERM, t3_leave(member));
	return 0;
}

static int forks(struct t3_member *member, void *arg)
{
	struct work work;
	pid_t pid;
	int i;

	(void)arg;
	if (work_begin(&work, member, &small))
		return 1;
	RANK_TRY(member, t3_arm(work.plan));
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(child_calls(member, &work));
	RANK_CHECK(member, !reap_rank(pid));
	if (work_produce(&work))
		return 1;
	RANK_TRY(member, t3_wait(work.plan, 10000));
	if (work_check(&work, 1))
		return 1;
	buffer_poison(&work.buffer[0]);
	for (i = 0; i < 10; i++) {
		if (work_epoch(&work))
			return 1;
	}
	return work_end(&work);
}

static void test_fork(void)
{
	struct t3_group *group = new_group(2, NULL);
	struct t3_member *member;
	struct shape shape = small;
	pid_t pid;
	bool ok;

	tap_ok(!run_ranks(true, 2, NULL, forks, NULL),
	       "a forked child can't use its parent's member");
	/* Our child is another rank of our own group. */
	ok = !t3_join(group, 0, &member);
	pid = fork_rank(group, 1, work_all, &shape);
	ok = ok && !work_all(member, &shape) && !t3_leave(member);
	ok = !reap_rank(pid) && ok;
	t3_group_close(group);
	tap_ok(ok, "a forked child joins its parent's group");
}
#endif

/* For the engine's tests alone: see lib/soft/plan.c. */
extern uint32_t soft_first_epoch;

static void test_wrap(void)
{
	struct shape shape = small;
	int failed;

	shape.op = T3_ALL_REDUCE;
	shape.algorithm = T3_ALG_RING_DIRECT;
	shape.tiles = 5;
	shape.epochs = 8;
	soft_first_epoch = UINT32_MAX - 3;
	failed = run_threads(3, NULL, work_all, &shape);
#ifndef T3_NO_FORK
	failed += run_ranks(true, 3, NULL, work_all, &shape);
#endif
	/* Counters of blocks with 3 updates wrap at other epochs. */
	soft_first_epoch = UINT32_MAX / 3 - 3;
	failed += run_threads(4, NULL, work_all, &shape);
	soft_first_epoch = UINT32_MAX / 5 - 3;
	failed += run_threads(4, NULL, work_all, &shape);
	soft_first_epoch = 0;
	tap_ok(!failed, "epochs, tiles and counts across 2^32");
}

int main(void)
{
	test_join();
	tap_ok(!run_threads(2, NULL, order, NULL), "calls in wrong order");
	test_late();
	tap_ok(!run_threads(3, NULL, disagree, NULL),
	       "ranks that disagree hear so, and may try again");
	tap_ok(!run_threads(2, NULL, overlap, NULL),
	       "plans that write the same bytes are not armed together");
	test_two_groups();
	tap_ok(!run_threads(3, NULL, aborts, NULL), "abort");
	test_watchdog();
	test_slow();
	test_leaves_armed();
	tap_ok(!run_threads(2, NULL, blocks, NULL), "blocks before the whole");
	test_cycles();
	test_wrap();
#ifndef T3_NO_FORK
	test_fork();
#endif
	return tap_end();
}
