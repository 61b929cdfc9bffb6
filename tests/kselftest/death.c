// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ranks that die or leave, at every stage and in every way: the survivors that
 * needed them are told who it was, a clean end breaks nobody, and nothing
 * stays behind whatever the order in which things are let go.
 */
#include "t3_kselftest.h"

#include <setjmp.h>
#include <pthread.h>
#include <sys/syscall.h>

#define RANKS	3
#define VICTIM	1

/* What exec() makes of the victim: a program that only sleeps. */
static __attribute__((constructor)) void sleeper(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "--sleep"))
		return;
	for (;;)
		pause();
}

/* --- a rank --------------------------------------------------------------------- */

struct actor {
	__u32 rank;
	int member;
	__u32 region;
	float *memory;
	struct part *part;
	struct t3_plan_status *status;
	__u32 *tiles;
};

/* An all-reduce of three blocks, which needs everybody. */
static int actor_open(struct actor *a, __u32 rank, int member)
{
	int ret;

	memset(a, 0, sizeof(*a));
	a->rank = rank;
	a->member = member;
	if (member < 0)
		return member;
	a->part = calloc(1, sizeof(*a->part));
	a->memory = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!a->part || a->memory == MAP_FAILED)
		return -ENOMEM;
	ret = region_add(member, a->memory, T3_DTYPE_F32, RANKS, 256,
			 &a->region);
	if (ret)
		return ret;
	part_init(a->part, 0, 1);
	part_region(a->part, a->region, RANKS, 64, RANKS, 1);
	part_collective(a->part, AR_DIRECT, rank, RANKS, 1);
	return part_add(member, a->part);
}

static int actor_map(struct actor *a)
{
	a->tiles = part_map_tiles(a->member, a->part);
	a->status = part_map_status(a->member, a->part);
	return (void *)a->tiles == MAP_FAILED ||
	       (void *)a->status == MAP_FAILED ? -ENOMEM : 0;
}

static int actor_live(struct actor *a)
{
	return plan_wait(a->member, 0, BOUND_NS, NULL);
}

static int actor_produce(struct actor *a, __u32 blocks)
{
	int ret = 0;

	FOR_EACH(b, blocks)
		ret = ret ?: notify_one(a->member, 0, b, 1);
	return ret;
}

/* --- stages and ways ---------------------------------------------------------------- */

/* How far the victim is when it ends. */
enum stage {
	NOT_JOINED,
	JOINED,
	PLANNED,
	ARMED,
	HALF,		/* some of its blocks are produced */
	PRODUCED,	/* all are, the others' are not */
	WAITING,	/* likewise, and it is in T3_WAIT */
	RETIRED,	/* its epoch is over */
};

enum way { KILL, EXIT, EXEC, CLOSE };

struct board {
	__u32 ready;	/* the victim is where it should be */
	__u32 go;	/* it may end now */
	__u32 holder;	/* a child of the victim, which has its files too */
	__u32 joined;	/* how many of a crowd have joined */
};

static bool seen(__u32 *flag)
{
	__u64 until = now_ns() + BOUND_NS;

	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

static void show(__u32 *flag, __u32 value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

/* Brings the victim to @stage; returns its member, or -1. */
static int act(struct board *board, int group, enum stage stage)
{
	struct actor a;
	int member;

	if (stage == NOT_JOINED)
		return -1;
	member = group_join(group, VICTIM);
	MUST(member >= 0);
	if (stage == JOINED)
		return member;
	MUST(!actor_open(&a, VICTIM, member));
	MUST(!actor_live(&a));
	if (stage == PLANNED)
		return member;
	MUST(plan_arm(member, 0) == 1);
	if (stage == ARMED)
		return member;
	MUST(!actor_produce(&a, stage == HALF ? 1 : RANKS));
	if (stage == RETIRED) {
		MUST(!plan_wait_epoch(member, 0, 1, BOUND_NS, NULL));
	} else if (stage == WAITING) {
		show(&board->ready, 1);
		plan_wait_epoch(member, 0, 1, 20 * BOUND_NS, NULL);
	}
	return member;
}

static void hold_files(struct board *board)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid)
		return;
	show(&board->holder, (__u32)getpid());
	for (;;)
		pause();
}

static void end(struct board *board, int member, enum way way)
{
	show(&board->ready, 1);
	if (way != KILL)
		MUST(seen(&board->go));
	if (way == EXIT)
		_exit(0);
	if (way == EXEC)
		execl("/proc/self/exe", "death", "--sleep", NULL);
	if (way == CLOSE)
		close(member);
	for (;;)
		pause();
}

FIXTURE(death) {
	int dev;
	int group;
	struct board *board;
	struct actor survivor[RANKS];	/* all but the victim's */
	pid_t victim;
};

FIXTURE_VARIANT(death) {
	enum stage stage;
	enum way way;
	bool held;
};

FIXTURE_VARIANT_ADD(death, not_joined_kill) { NOT_JOINED, KILL };
FIXTURE_VARIANT_ADD(death, not_joined_exec) { NOT_JOINED, EXEC };
FIXTURE_VARIANT_ADD(death, joined_kill) { JOINED, KILL };
FIXTURE_VARIANT_ADD(death, joined_kill_held) { JOINED, KILL, true };
FIXTURE_VARIANT_ADD(death, joined_exit) { JOINED, EXIT };
FIXTURE_VARIANT_ADD(death, joined_exec) { JOINED, EXEC };
FIXTURE_VARIANT_ADD(death, joined_close) { JOINED, CLOSE };
FIXTURE_VARIANT_ADD(death, planned_kill) { PLANNED, KILL };
FIXTURE_VARIANT_ADD(death, planned_kill_held) { PLANNED, KILL, true };
FIXTURE_VARIANT_ADD(death, planned_exit) { PLANNED, EXIT };
FIXTURE_VARIANT_ADD(death, planned_exec) { PLANNED, EXEC };
FIXTURE_VARIANT_ADD(death, planned_close) { PLANNED, CLOSE };
FIXTURE_VARIANT_ADD(death, armed_kill) { ARMED, KILL };
FIXTURE_VARIANT_ADD(death, armed_kill_held) { ARMED, KILL, true };
FIXTURE_VARIANT_ADD(death, armed_exit) { ARMED, EXIT };
FIXTURE_VARIANT_ADD(death, armed_exit_held) { ARMED, EXIT, true };
FIXTURE_VARIANT_ADD(death, armed_exec) { ARMED, EXEC };
FIXTURE_VARIANT_ADD(death, armed_exec_held) { ARMED, EXEC, true };
FIXTURE_VARIANT_ADD(death, armed_close) { ARMED, CLOSE };
FIXTURE_VARIANT_ADD(death, half_kill) { HALF, KILL };
FIXTURE_VARIANT_ADD(death, half_kill_held) { HALF, KILL, true };
FIXTURE_VARIANT_ADD(death, half_exit) { HALF, EXIT };
FIXTURE_VARIANT_ADD(death, half_exec) { HALF, EXEC };
FIXTURE_VARIANT_ADD(death, half_close) { HALF, CLOSE };
FIXTURE_VARIANT_ADD(death, produced_kill) { PRODUCED, KILL };
FIXTURE_VARIANT_ADD(death, produced_exit) { PRODUCED, EXIT };
FIXTURE_VARIANT_ADD(death, produced_exec) { PRODUCED, EXEC };
FIXTURE_VARIANT_ADD(death, produced_close) { PRODUCED, CLOSE };
FIXTURE_VARIANT_ADD(death, waiting_kill) { WAITING, KILL };
FIXTURE_VARIANT_ADD(death, waiting_kill_held) { WAITING, KILL, true };
FIXTURE_VARIANT_ADD(death, retired_kill) { RETIRED, KILL };
FIXTURE_VARIANT_ADD(death, retired_kill_held) { RETIRED, KILL, true };
FIXTURE_VARIANT_ADD(death, retired_exit) { RETIRED, EXIT };
FIXTURE_VARIANT_ADD(death, retired_exec) { RETIRED, EXEC };
FIXTURE_VARIANT_ADD(death, retired_close) { RETIRED, CLOSE };

static bool is_survivor(__u32 rank)
{
	return rank != VICTIM;
}

FIXTURE_SETUP(death)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->group = group_create(self->dev, RANKS, 0);
	ASSERT_GE(self->group, 0);
	self->board = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->board);
	self->victim = fork_child();
	ASSERT_GE(self->victim, 0);
	if (!self->victim) {
		int member = act(self->board, self->group, variant->stage);

		if (variant->held)
			hold_files(self->board);
		end(self->board, member, variant->way);
	}
	FOR_EACH(r, RANKS) {
		if (!is_survivor(r))
			continue;
		ASSERT_EQ(0, actor_open(&self->survivor[r], r,
					group_join(self->group, r)));
		ASSERT_EQ(0, actor_map(&self->survivor[r]));
	}
}

FIXTURE_TEARDOWN(death)
{
	if (self->board->holder)
		kill((pid_t)self->board->holder, SIGKILL);
	kill(self->victim, SIGKILL);
	reap(self->victim);
	FOR_EACH(r, RANKS) {
		if (is_survivor(r))
			close(self->survivor[r].member);
	}
	close(self->group);
	close(self->dev);
}

/* The victim is where it should be, rank 0 has armed if there is a plan. */
static bool prepare(struct _test_data_death *self, enum stage stage, bool held)
{
	struct actor *first = &self->survivor[0], *last = &self->survivor[2];
	bool good = true;

	if (stage >= PLANNED)
		good = !actor_live(first) && !actor_live(last);
	if (stage >= ARMED)
		good = good && plan_arm(first->member, 0) == 1;
	if (stage == RETIRED)
		good = good && plan_arm(last->member, 0) == 1 &&
		       !actor_produce(first, RANKS) &&
		       !actor_produce(last, RANKS);
	good = good && seen(&self->board->ready);
	if (held && stage != WAITING)
		good = good && seen(&self->board->holder);
	/* where it can't be seen: to be in the call by then */
	if (stage == WAITING)
		sleep_ms(50);
	return good;
}

static void strike(struct _test_data_death *self, enum way way)
{
	if (way == KILL)
		kill(self->victim, SIGKILL);
	else
		show(&self->board->go, 1);
}

/* It is gone, as soon as the group says so: a dead process may be a zombie. */
static bool has_left(struct _test_data_death *self, struct t3_group_info *info)
{
	__u64 until = now_ns() + BOUND_NS;

	do {
		if (group_info(self->group, info))
			return false;
		if (info->left & 1U << VICTIM)
			return true;
		sleep_ms(1);
	} while (now_ns() < until);
	return false;
}

/* Nobody had anything armed with it, or all of it was over. */
static void expect_clean(struct __test_metadata *_metadata,
			 struct _test_data_death *self, enum stage stage)
{
	struct t3_group_info info;
	struct t3_verdict v;

	ASSERT_TRUE(has_left(self, &info));
	EXPECT_EQ(0U, info.broken);
	EXPECT_EQ(T3_NONE, info.broken_rank);
	EXPECT_EQ(-EEXIST, group_join(self->group, VICTIM));
	FOR_EACH(r, RANKS) {
		int member = self->survivor[r].member;

		if (!is_survivor(r))
			continue;
		if (stage == JOINED) {
			EXPECT_EQ(-EPIPE, plan_wait(member, 0, BOUND_NS, &v));
			EXPECT_EQ((__u32)VICTIM, v.rank);
		}
		if (stage == RETIRED) {
			EXPECT_EQ(0, plan_wait_epoch(member, 0, 1, BOUND_NS,
						     NULL));
		}
		EXPECT_EQ(-EPIPE, plan_arm(member, 0));
		EXPECT_EQ(0, plan_del(member, 0));
		EXPECT_EQ(0, region_del(member, self->survivor[r].region));
		EXPECT_EQ(0, member_leave(member));
	}
	ASSERT_EQ(0, group_info(self->group, &info));
	EXPECT_EQ(0U, info.broken);
	EXPECT_EQ(7ULL, info.left);
}

static void expect_broken(struct __test_metadata *_metadata,
			  struct _test_data_death *self)
{
	struct actor *first = &self->survivor[0], *last = &self->survivor[2];
	struct t3_group_info info;
	__u32 rank = 99;

	EXPECT_EQ(-EOWNERDEAD, plan_wait_epoch(first->member, 0, 1, BOUND_NS,
					       &rank));
	EXPECT_EQ((__u32)VICTIM, rank);
	EXPECT_EQ(-EOWNERDEAD, plan_arm(last->member, 0));
	EXPECT_EQ(-EOWNERDEAD, notify_one(first->member, 0, 0, 1));
	EXPECT_EQ(-EOWNERDEAD, plan_wait(last->member, 0, 0, NULL));
	ASSERT_TRUE(has_left(self, &info));
	EXPECT_EQ((__u32)EOWNERDEAD, info.broken);
	EXPECT_EQ((__u32)VICTIM, info.broken_rank);
	EXPECT_EQ((__u32)EOWNERDEAD, last->status->broken);
	EXPECT_EQ((__u32)VICTIM, last->status->broken_rank);
	FOR_EACH(r, RANKS) {
		int member = self->survivor[r].member;

		if (!is_survivor(r))
			continue;
		EXPECT_EQ(0, plan_del(member, 0));
		EXPECT_EQ(0, region_del(member, self->survivor[r].region));
		EXPECT_EQ(0, member_leave(member));
	}
	EXPECT_EQ(0L, vm_pin());
}

TEST_F_TIMEOUT(death, survivors, 60)
{
	ASSERT_TRUE(prepare(self, variant->stage, variant->held));
	strike(self, variant->way);
	if (variant->stage == NOT_JOINED) {
		/* nothing has happened: somebody else can take the rank */
		struct actor late;

		if (variant->way == KILL)
			reap(self->victim);
		ASSERT_EQ(0, actor_open(&late, VICTIM,
					group_join(self->group, VICTIM)));
		EXPECT_EQ(0, actor_live(&late));
		EXPECT_EQ(0, actor_live(&self->survivor[0]));
		close(late.member);
	} else if (variant->stage <= PLANNED || variant->stage == RETIRED) {
		expect_clean(_metadata, self, variant->stage);
	} else {
		expect_broken(_metadata, self);
	}
}

/* --- what is not a death -------------------------------------------------------------- */

FIXTURE(alive) {
	struct world w;
	struct actor actor[RANKS];
	struct board *board;
};

FIXTURE_SETUP(alive)
{
	ASSERT_EQ(0, world_open(&self->w, RANKS));
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, actor_open(&self->actor[r], r, self->w.member[r]));
	}
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, actor_live(&self->actor[r]));
		ASSERT_EQ(0, actor_map(&self->actor[r]));
		ASSERT_EQ(1, plan_arm(self->w.member[r], 0));
	}
	self->board = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->board);
}

FIXTURE_TEARDOWN(alive)
{
	world_close(&self->w);
}

static int finish(struct _test_data_alive *self)
{
	int ret = 0;

	FOR_EACH(r, RANKS)
		ret = ret ?: actor_produce(&self->actor[r], RANKS);
	FOR_EACH(r, RANKS)
		ret = ret ?: plan_wait_epoch(self->w.member[r], 0, 1, BOUND_NS,
					     NULL);
	return ret;
}

TEST_F(alive, child_exits)
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(0);
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, finish(self));
}

TEST_F(alive, child_closes)
{
	pid_t pid = fork_child();

	if (!pid) {
		FOR_EACH(r, RANKS)
			close(self->w.member[r]);
		close(self->w.group);
		close(self->w.dev);
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, finish(self));
}

TEST_F(alive, child_is_killed)
{
	pid_t pid = fork_child();

	if (!pid)
		pause();
	kill(pid, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, reap(pid));
	EXPECT_EQ(0, finish(self));
}

/* As system() and popen() do: a child by vfork() that becomes a program. */
TEST_F(alive, starts_a_program)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/proc/self/exe", "death", "--sleep", NULL);
		_exit(1);
	}
	ASSERT_GT(pid, 0);
	sleep_ms(20);
	kill(pid, SIGKILL);
	reap(pid);
	EXPECT_EQ(0, finish(self));
}

static void *nothing(void *arg)
{
	return arg;
}

TEST_F(alive, thread_exits)
{
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, nothing, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, finish(self));
}

TEST_F(alive, group_and_device_closed)
{
	close(self->w.group);
	close(self->w.dev);
	EXPECT_EQ(0, finish(self));
}

TEST_F(alive, duplicate_closed)
{
	int copy = dup(self->w.member[0]);

	ASSERT_GE(copy, 0);
	close(copy);
	copy = dup(self->w.member[0]);
	close(self->w.member[0]);
	self->w.member[0] = copy;
	self->actor[0].member = copy;
	EXPECT_EQ(0, finish(self));
}

TEST_F(alive, tracer_looks)
{
	/* /proc takes references on the address space for a moment */
	FOR_EACH(i, 20)
		proc_number("/proc/self/smaps_rollup", "Rss:");
	EXPECT_EQ(0, finish(self));
}

/* The member's address space outlives the process that joined. */
static char stack[16384] __attribute__((aligned(16)));

static int heir(void *arg)
{
	struct _test_data_alive *self = arg;

	if (!seen(&self->board->go))
		return 1;
	return actor_produce(&self->actor[VICTIM], RANKS) ||
	       plan_wait_epoch(self->w.member[VICTIM], 0, 1, BOUND_NS, NULL);
}

TEST_F(alive, address_space_lives_on)
{
	struct actor mine;
	int group = group_create(self->w.dev, RANKS, 0);
	pid_t pid, child;

	ASSERT_GE(group, 0);
	pid = fork_child();
	if (!pid) {
		self->w.member[VICTIM] = group_join(group, VICTIM);
		MUST(!actor_open(&self->actor[VICTIM], VICTIM,
				 self->w.member[VICTIM]));
		MUST(!actor_live(&self->actor[VICTIM]));
		MUST(plan_arm(self->w.member[VICTIM], 0) == 1);
		child = clone(heir, stack + sizeof(stack), CLONE_VM | SIGCHLD,
			      self);
		MUST(child > 0);
		show(&self->board->ready, 1);
		/* only this process ends: the heir has what is left */
		syscall(SYS_exit, 0);
	}
	FOR_EACH(i, 2) {
		ASSERT_EQ(0, actor_open(&self->actor[2 * i], 2 * i,
					group_join(group, 2 * i)));
	}
	FOR_EACH(i, 2) {
		mine = self->actor[2 * i];
		ASSERT_EQ(0, actor_live(&mine));
		ASSERT_EQ(1, plan_arm(mine.member, 0));
		ASSERT_EQ(0, actor_produce(&mine, RANKS));
	}
	ASSERT_TRUE(seen(&self->board->ready));
	EXPECT_EQ(0, reap(pid));
	show(&self->board->go, 1);
	FOR_EACH(i, 2) {
		mine = self->actor[2 * i];
		EXPECT_EQ(0, plan_wait_epoch(mine.member, 0, 1, BOUND_NS,
					     NULL));
		close(mine.member);
	}
	close(group);
}

/* --- ends of many ---------------------------------------------------------------------- */

FIXTURE(crowd) {
	int dev;
	struct board *board;
};

FIXTURE_SETUP(crowd)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->board = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->board);
}

FIXTURE_TEARDOWN(crowd)
{
	close(self->dev);
}

/*
 * Returns 0, or what tells of a missing rank: EOWNERDEAD, EPIPE, and for a part
 * that came when all others had gone already, ESTALE. A wait that was not told
 * ends with ETIME.
 */
static int epochs_of(struct board *board, int group, __u32 rank, __u32 epochs)
{
	struct actor a;
	int member = group_join(group, rank);
	int ret;

	__atomic_fetch_add(&board->joined, 1, __ATOMIC_RELEASE);
	ret = actor_open(&a, rank, member);
	if (ret == -ESTALE)
		return -EPIPE;
	ret = ret ?: actor_live(&a);
	for (__u32 e = 1; !ret && e <= epochs; e++) {
		ret = plan_arm(a.member, 0);
		if (ret < 0)
			break;
		MUST(ret == (int)e);
		ret = actor_produce(&a, RANKS);
		ret = ret ?: plan_wait_epoch(a.member, 0, e, BOUND_NS, NULL);
	}
	return ret;
}

static void work(struct board *board, int group, __u32 rank, __u32 epochs)
{
	int ret = epochs_of(board, group, rank, epochs);

	if (ret && ret != -EOWNERDEAD && ret != -EPIPE)
		fprintf(stderr, "# rank %u: errno %d\n", rank, -ret);
	_exit(!ret ? 0 : ret == -EOWNERDEAD || ret == -EPIPE ? 3 : 1);
}

static int start_crowd(int dev, struct board *board, pid_t pid[RANKS],
		       __u32 epochs)
{
	int group = group_create(dev, RANKS, 0);

	board->joined = 0;
	FOR_EACH(r, RANKS) {
		pid[r] = fork_child();
		if (!pid[r])
			work(board, group, r, epochs);
	}
	return group;
}

/* Nobody can be told of a rank that dies before it joins. */
static bool all_joined(struct board *board)
{
	__u64 until = now_ns() + BOUND_NS;

	while (__atomic_load_n(&board->joined, __ATOMIC_ACQUIRE) < RANKS) {
		if (now_ns() > until)
			return false;
		sched_yield();
	}
	return true;
}

/* Who is ready ends at once: that breaks nobody who is not ready yet. */
TEST_F_TIMEOUT(crowd, normal_exits, 120)
{
	FOR_EACH(i, scaled(30)) {
		pid_t pid[RANKS];
		int group = start_crowd(self->dev, self->board, pid,
					1 + i % 3);

		ASSERT_GE(group, 0);
		FOR_EACH(r, RANKS) {
			EXPECT_EQ(0, reap(pid[r])) TH_LOG("round %u", i);
		}
		close(group);
	}
}

/* T3_TEST_KILLS says how many. */
static __u32 kills(void)
{
	const char *n = getenv("T3_TEST_KILLS");

	return n ? (__u32)strtoul(n, NULL, 10) : scaled(40);
}

/* One is killed at any moment; the others end by themselves, and rightly. */
TEST_F_TIMEOUT(crowd, killed_at_any_moment, 1500)
{
	__u32 random = 12345;

	FOR_EACH(i, kills()) {
		pid_t pid[RANKS];
		__u32 victim = i % RANKS;
		int group = start_crowd(self->dev, self->board, pid, 1000000);
		struct timespec ts = { 0 };

		ASSERT_GE(group, 0);
		ASSERT_TRUE(all_joined(self->board));
		random = random * 1664525 + 1013904223;
		ts.tv_nsec = random % 60 * 1000 * 1000;
		nanosleep(&ts, NULL);
		kill(pid[victim], SIGKILL);
		FOR_EACH(r, RANKS) {
			EXPECT_EQ(r == victim ? 1000 + SIGKILL : 3,
				  reap(pid[r]))
				TH_LOG("round %u, rank %u", i, r);
		}
		close(group);
	}
}

/* --- letting go in every order ------------------------------------------------------------ */

enum thing { MAPPINGS, MEMBER, GROUP, BUFFER, THINGS };

static void let_go(struct actor *a, int group, enum thing what)
{
	switch (what) {
	case MAPPINGS:
		MUST(!munmap(a->tiles, a->part->add.tiles_bytes));
		MUST(!munmap(a->status, a->part->add.status_bytes));
		break;
	case MEMBER:
		MUST(!close(a->member));
		break;
	case GROUP:
		MUST(!close(group));
		break;
	case BUFFER:
		MUST(!munmap(a->memory, page_size()));
		break;
	case THINGS:
		break;
	}
}

/* In a process of its own: lets go in the order @n stands for, then exits. */
static void one_order(int dev, __u32 n, bool armed, __u32 stop_after)
{
	enum thing left[THINGS] = { MAPPINGS, MEMBER, GROUP, BUFFER };
	int group = group_create(dev, 1, 0);
	struct actor a = { .rank = 0 };

	a.member = group_join(group, 0);
	a.part = calloc(1, sizeof(*a.part));
	a.memory = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(!region_add(a.member, a.memory, T3_DTYPE_F32, 4, 256, &a.region));
	part_init(a.part, 0, 1);
	part_region(a.part, a.region, 4, 64, 4, 1);
	part_produced(a.part, 0, 0, 1);
	MUST(!part_add(a.member, a.part));
	MUST(!actor_map(&a));
	if (armed)
		MUST(plan_arm(a.member, 0) == 1);
	for (__u32 i = 0; i < THINGS && i < stop_after; i++) {
		__u32 pick = n % (THINGS - i);

		n /= THINGS - i;
		let_go(&a, group, left[pick]);
		/* with the member goes what it has, mapped or not */
		if (left[pick] == MEMBER)
			MUST(vm_pin() == 0);
		left[pick] = left[THINGS - 1 - i];
	}
	_exit(0);
}

TEST_F_TIMEOUT(crowd, every_order_of_letting_go, 120)
{
	FOR_EACH(n, 24) {
		FOR_EACH(armed, 2) {
			pid_t pid = fork_child();

			if (!pid)
				one_order(self->dev, n, armed, n % 5 ?: THINGS);
			ASSERT_EQ(0, reap(pid))
				TH_LOG("order %u, armed %u", n, armed);
			pid = fork_child();
			if (!pid)
				one_order(self->dev, n, armed, THINGS);
			ASSERT_EQ(0, reap(pid))
				TH_LOG("order %u, armed %u", n, armed);
		}
	}
}

static sigjmp_buf after_fault;

static void fault(int sig)
{
	siglongjmp(after_fault, sig);
}

/* Writes where a mapping was, which may give a signal. */
static __attribute__((noinline)) void poke(__u32 *at, __u32 value)
{
	struct sigaction action = { .sa_handler = fault };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(after_fault, 1))
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

/* A plan's mapping never shows another plan's counters. */
TEST_F(crowd, mapping_outlives_its_plan)
{
	int group = group_create(self->dev, 1, 0);
	struct part *part = calloc(2, sizeof(*part));
	int member = group_join(group, 0);
	__u32 *old_tiles, *tiles, region;
	struct t3_plan_status *status;
	static float memory[64];

	ASSERT_GE(member, 0);
	ASSERT_EQ(0, region_add(member, memory, T3_DTYPE_F32, 1, 256, &region));
	FOR_EACH(i, 2) {
		part_init(&part[i], 0, i + 1);
		part_region(&part[i], region, 1, 64, 1, 1);
		part_produced(&part[i], 0, 0, 1);
	}
	ASSERT_EQ(0, part_add(member, &part[0]));
	old_tiles = part_map_tiles(member, &part[0]);
	ASSERT_EQ(0, plan_del(member, 0));
	ASSERT_EQ(0, part_add(member, &part[1]));
	tiles = part_map_tiles(member, &part[1]);
	status = part_map_status(member, &part[1]);
	ASSERT_NE(MAP_FAILED, (void *)tiles);
	poke(old_tiles, 77);
	EXPECT_EQ(0U, tiles[0]);
	EXPECT_EQ(1, plan_arm(member, 0));
	EXPECT_EQ(0, count_tiles(member, 0, tiles, status, 0, 1));
	EXPECT_EQ(0, plan_wait_epoch(member, 0, 1, BOUND_NS, NULL));
	/* and without any file: still no way to somebody else's memory */
	close(member);
	close(group);
	poke(old_tiles, 78);
	poke(tiles, 78);
}

/* --- the module ------------------------------------------------------------------------------ */

FIXTURE(module) {
	struct world w;
	struct actor a;
};

FIXTURE_SETUP(module)
{
	ASSERT_EQ(0, world_open(&self->w, RANKS));
	ASSERT_EQ(0, actor_open(&self->a, 0, self->w.member[0]));
	ASSERT_EQ(0, actor_map(&self->a));
}

FIXTURE_TEARDOWN(module)
{
}

static int unload(void)
{
	return syscall(SYS_delete_module, "t3", O_NONBLOCK) ? -errno : 0;
}

static bool in_use(void)
{
	int ret = unload();

	return ret == -EWOULDBLOCK || ret == -EBUSY;
}

/* Each thing that is held keeps the module, down to the last mapping. */
TEST_F(module, unload_in_use)
{
	if (geteuid())
		SKIP(return, "needs root");
	if (access("/sys/module/t3/refcnt", F_OK))
		SKIP(return, "t3 is no module here");
	EXPECT_TRUE(in_use());
	close(self->w.dev);
	EXPECT_TRUE(in_use());
	close(self->w.group);
	EXPECT_TRUE(in_use());
	FOR_EACH(r, RANKS) {
		close(self->w.member[r]);
		EXPECT_TRUE(in_use());
	}
	munmap(self->a.tiles, self->a.part->add.tiles_bytes);
	EXPECT_TRUE(in_use());
	/* now only the status is mapped */
	EXPECT_EQ(0U, self->a.status->broken);
	munmap(self->a.status, self->a.part->add.status_bytes);
	EXPECT_EQ(0L, proc_number("/sys/module/t3/refcnt", ""));
}

TEST_HARNESS_MAIN
