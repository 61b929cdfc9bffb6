// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Several groups, and ranks that have nothing in common but their group: what
 * happens in one is nothing to another, and the file is all the right there is.
 */
#include "t3_kselftest.h"
#include "pair.h"

#include <pthread.h>
#include <sys/prctl.h>

#define GROUPS	6

/* --- ranks of different users ---------------------------------------------------- */

/* Nobody may look into it, as where ptrace() is restricted. */
static void become(uid_t id)
{
	if (!geteuid()) {
		MUST(!setgid(id));
		MUST(!setuid(id));
	}
	MUST(!prctl(PR_SET_DUMPABLE, 0));
	/* a user's child may not be killed with its parent: its end is bounded */
	alarm(60);
}

static void stranger(int group, __u32 r)
{
	static struct pair p;
	int member;

	become(1000 + r);
	member = group_join(group, r);
	MUST(member >= 0 && !pair_rank(&p, r, member));
	MUST(!plan_wait(member, 0, BOUND_NS, NULL));
	for (__u32 e = 1; e <= 20; e++) {
		FOR_EACH(i, PAIR_BYTES / 4)
			p.memory[r][i] = e * 1000 * (r + 1) + i;
		MUST(plan_arm(member, 0) == (int)e);
		FOR_EACH(b, PAIR_BLOCKS)
			MUST(!notify_one(member, 0, b, 1));
		MUST(!plan_wait_epoch(member, 0, e, BOUND_NS, NULL));
		FOR_EACH(i, PAIR_BYTES / 4)
			MUST(p.memory[r][i] == e * 3000 + 2 * i);
	}
	MUST(!member_leave(member));
	_exit(0);
}

TEST(ranks_of_different_users)
{
	int dev = device_open(), group = group_create(dev, 2, 0);
	pid_t pid[2];

	ASSERT_GE(group, 0);
	FOR_EACH(r, 2) {
		pid[r] = fork_child();
		ASSERT_GE(pid[r], 0);
		if (!pid[r])
			stranger(group, r);
	}
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, reap(pid[r]));
	}
	close(group);
	close(dev);
}

/* --- several groups over one buffer ------------------------------------------------ */

/* @p with the memory of @of: another group over the same bytes. */
static int pair_open_over(struct pair *p, const struct pair *of)
{
	int ret = world_open(&p->w, 2);

	p->epoch = 0;
	FOR_EACH(r, 2) {
		__u32 region;

		p->memory[r] = of->memory[r];
		ret = ret ?: region_add(p->w.member[r], p->memory[r],
					T3_DTYPE_I32, 2, PAIR_ROW_BYTES,
					&region);
		ret = ret ?: pair_part(p, r, p->w.member[r], region);
	}
	FOR_EACH(r, 2)
		ret = ret ?: plan_wait(p->w.member[r], 0, BOUND_NS, NULL);
	return ret;
}

static int pair_end(struct pair *p)
{
	int ret = pair_produce(p);

	FOR_EACH(r, 2)
		ret = ret ?: plan_wait_epoch(p->w.member[r], 0, p->epoch,
					     BOUND_NS, NULL);
	return ret ?: pair_right(p) ? 0 : -EILSEQ;
}

static int pair_epoch(struct pair *p)
{
	return pair_arm(p) ?: pair_end(p);
}

FIXTURE(groups) {
	struct pair p[GROUPS];
};

FIXTURE_SETUP(groups)
{
	ASSERT_EQ(0, pair_open(&self->p[0]));
	FOR_EACH(i, GROUPS - 1) {
		ASSERT_EQ(0, pair_open_over(&self->p[i + 1], &self->p[0]));
	}
}

FIXTURE_TEARDOWN(groups)
{
	for (__u32 i = 1; i < GROUPS; i++)
		world_close(&self->p[i].w);
	pair_close(&self->p[0]);
}

/* Each has counters of its own, whoever uses the bytes in turn. */
TEST_F(groups, in_turn)
{
	FOR_EACH(e, 30) {
		__u32 i = e * 5 % GROUPS;

		ASSERT_EQ(0, pair_epoch(&self->p[i]))
			TH_LOG("group %u, epoch %u", i, e);
	}
	/* one is pinned as often as it was registered, and no more */
	EXPECT_EQ((long)(GROUPS * 2 * page_size() / 1024), vm_pin());
}

/* A tile in one is none in another, though the bytes are the same. */
TEST_F(groups, tiles_are_their_own)
{
	ASSERT_EQ(0, pair_arm(&self->p[0]));
	ASSERT_EQ(0, pair_arm(&self->p[1]));
	ASSERT_EQ(0, pair_end(&self->p[1]));
	EXPECT_EQ(-ETIME, plan_wait_epoch(self->p[0].w.member[0], 0, 1, MS,
					  NULL));
	EXPECT_EQ(-EPROTO, notify_one(self->p[1].w.member[0], 0, 0, 1));
	FOR_EACH(r, 2)
		FOR_EACH(i, PAIR_BYTES / 4)
			self->p[0].memory[r][i] = 1000 * (r + 1) + i;
	EXPECT_EQ(0, pair_end(&self->p[0]));
}

TEST_F(groups, one_breaks)
{
	ASSERT_EQ(0, pair_arm(&self->p[2]));
	close(self->p[2].w.member[1]);
	self->p[2].w.member[1] = -1;
	EXPECT_EQ(-EOWNERDEAD, plan_wait_epoch(self->p[2].w.member[0], 0, 1,
					       BOUND_NS, NULL));
	FOR_EACH(i, GROUPS) {
		if (i == 2)
			continue;
		EXPECT_EQ(0, pair_epoch(&self->p[i]));
	}
}

/* --- aborting with several open ------------------------------------------------------- */

struct waiter {
	pthread_t thread;
	int member;
	int ret;
};

static void *wait_first(void *arg)
{
	struct waiter *w = arg;

	w->ret = plan_wait_epoch(w->member, 0, 1, BOUND_NS, NULL);
	return NULL;
}

static void *abort_it(void *arg)
{
	struct waiter *w = arg;

	w->ret = group_abort(w->member);
	return NULL;
}

/* Waits in all of them; each ends when its own group is aborted, and no other. */
TEST_F(groups, aborts_with_all_waiting)
{
	struct waiter w[GROUPS];

	FOR_EACH(i, GROUPS) {
		w[i] = (struct waiter) { .member = self->p[i].w.member[0] };
		ASSERT_EQ(0, pair_arm(&self->p[i]));
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_first,
					    &w[i]));
	}
	FOR_EACH(i, GROUPS - 1) {
		ASSERT_EQ(0, group_abort(self->p[i].w.group));
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(-ECANCELED, w[i].ret) TH_LOG("group %u", i);
	}
	ASSERT_EQ(0, pair_end(&self->p[GROUPS - 1]));
	pthread_join(w[GROUPS - 1].thread, NULL);
	EXPECT_EQ(0, w[GROUPS - 1].ret);
}

/* All at once, from everywhere: one is the first, nobody hangs. */
TEST_F(groups, aborts_at_once)
{
	struct waiter w[GROUPS][2];

	FOR_EACH(i, GROUPS) {
		ASSERT_EQ(0, pair_arm(&self->p[i]));
	}
	FOR_EACH(i, GROUPS)
		FOR_EACH(r, 2) {
			w[i][r].member = self->p[i].w.member[r];
			ASSERT_EQ(0, pthread_create(&w[i][r].thread, NULL,
						    abort_it, &w[i][r]));
		}
	FOR_EACH(i, GROUPS) {
		int first = 0, later = 0;

		FOR_EACH(r, 2) {
			pthread_join(w[i][r].thread, NULL);
			first += !w[i][r].ret;
			later += w[i][r].ret == -EALREADY;
		}
		EXPECT_EQ(1, first);
		EXPECT_EQ(1, later);
	}
}

TEST_HARNESS_MAIN
