// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Commands through io_uring: the same results as by ioctl(), one completion
 * each, whatever ends first: the epoch, the time, the member, the thread that
 * submitted, the process, or the ring.
 */
#include "t3_kselftest.h"
#include "pair.h"

#include <liburing.h>
#include <pthread.h>

#define ROW_BYTES	PAIR_ROW_BYTES
#define BLOCKS		PAIR_BLOCKS

/* What exec() makes of a rank: a program that only sleeps. */
static __attribute__((constructor)) void sleeper(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "--sleep"))
		return;
	for (;;)
		pause();
}

/* --- a ring --------------------------------------------------------------------- */

static int ring_open(struct io_uring *ring, __u32 entries, __u32 flags)
{
	struct io_uring_params params = { .flags = flags };

	if (flags & IORING_SETUP_SQPOLL)
		params.sq_thread_idle = 100;
	return io_uring_queue_init_params(entries, ring, &params);
}

/* The thread of a polling ring takes entries in its own time. */
static struct io_uring_sqe *ring_entry(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	__u64 until = now_ns() + BOUND_NS;

	while (!sqe && now_ns() < until) {
		io_uring_submit(ring);
		io_uring_sqring_wait(ring);
		sqe = io_uring_get_sqe(ring);
	}
	return sqe;
}

/* @arg begins with its size, as every command's structure. */
static struct io_uring_sqe *queue(struct io_uring *ring, int fd, __u32 code,
				  void *arg, __u64 tag)
{
	struct io_uring_sqe *sqe = ring_entry(ring);
	struct t3_uring_cmd uc = { .arg = (uintptr_t)arg };

	MUST(sqe);
	if (arg)
		uc.size = *(__u32 *)arg;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = code;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &uc,
	       sizeof(uc));
	sqe->user_data = tag;
	return sqe;
}

/* The next completion's result; -ETIME: none has come. */
static int completion(struct io_uring *ring, __u64 *tag, __u64 ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = (long long)(ns / 1000000000),
		.tv_nsec = (long long)(ns % 1000000000),
	};
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);
	} while (ret == -EINTR || ret == -EAGAIN);
	if (ret)
		return ret;
	ret = cqe->res;
	if (tag)
		*tag = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static int issue(struct io_uring *ring, int fd, __u32 code, void *arg,
		 __u8 flags)
{
	__u64 tag = 0;
	int ret;

	queue(ring, fd, code, arg, 0x7433)->flags |= flags;
	ret = io_uring_submit(ring);
	if (ret < 0)
		return ret;
	ret = completion(ring, &tag, BOUND_NS);
	MUST(tag == 0x7433);
	return ret;
}

static struct t3_wait wait_for(__u32 epoch, __u64 ns)
{
	return (struct t3_wait) {
		.size = sizeof(struct t3_wait), .epoch = epoch,
		.timeout_ns = ns, .rank = 0xaaaa,
	};
}

static bool waits_pend(int dev)
{
	struct t3_query query;

	return !device_query(dev, &query) &&
	       query.features & T3_FEATURE_URING_WAIT;
}

/* --- every kind of ring ------------------------------------------------------------ */

FIXTURE(ring) {
	struct pair p;
	struct io_uring ring;
};

FIXTURE_VARIANT(ring) {
	__u32 flags;
	__u8 entry;
};

FIXTURE_VARIANT_ADD(ring, plain) { 0, 0 };
FIXTURE_VARIANT_ADD(ring, by_its_workers) { 0, IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(ring, polling) { IORING_SETUP_SQPOLL, 0 };
FIXTURE_VARIANT_ADD(ring, wide) { IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0 };
FIXTURE_VARIANT_ADD(ring, deferred) {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, pair_open(&self->p));
	ASSERT_EQ(0, ring_open(&self->ring, 8, variant->flags));
}

FIXTURE_TEARDOWN(ring)
{
	io_uring_queue_exit(&self->ring);
	pair_close(&self->p);
}

static int ring_arm(struct io_uring *ring, int member, __u8 flags)
{
	struct t3_arm arm = { .size = sizeof(arm), .epoch = 0xaaaa };
	int ret = issue(ring, member, T3_ARM, &arm, flags);

	return ret ?: (int)arm.epoch;
}

static int ring_notify(struct io_uring *ring, int member,
		       const struct t3_tiles *list, __u32 entries, __u32 *done,
		       __u8 flags)
{
	struct t3_notify notify = {
		.size = sizeof(notify), .entries = entries,
		.list = (uintptr_t)list, .done = 0xaaaa,
	};
	int ret = issue(ring, member, T3_NOTIFY, &notify, flags);

	if (done)
		*done = notify.done;
	return ret;
}

/* Where a wait can't pend the member is polled. */
static int ring_wait(struct io_uring *ring, int dev, int member, __u32 epoch,
		     __u64 ns, __u32 *rank, __u8 flags)
{
	struct t3_wait wait = wait_for(epoch, ns);
	int ret;

	if (!waits_pend(dev)) {
		io_uring_prep_poll_add(ring_entry(ring), member, POLLIN);
		ret = io_uring_submit(ring);
		ret = ret < 0 ? ret : completion(ring, NULL, BOUND_NS);
		return ret < 0 ? ret : plan_wait_epoch(member, 0, epoch, ns,
						       rank);
	}
	ret = issue(ring, member, T3_WAIT, &wait, flags);
	if (rank)
		*rank = wait.rank;
	return ret;
}

TEST_F(ring, epochs)
{
	const struct t3_tiles both[] = { { 0, 1 }, { 1, 1 } };
	struct io_uring *ring = &self->ring;
	__u8 flags = variant->entry;
	__u32 done;

	FOR_EACH(e, 50) {
		pair_fill(&self->p);
		FOR_EACH(r, 2) {
			ASSERT_EQ((int)e + 1, ring_arm(ring,
						       self->p.w.member[r],
						       flags));
		}
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, ring_notify(ring, self->p.w.member[r],
						 both, 2, &done, flags));
			ASSERT_EQ(2U, done);
		}
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, ring_wait(ring, self->p.w.dev,
					       self->p.w.member[r], e + 1,
					       BOUND_NS, NULL, flags));
		}
		ASSERT_TRUE(pair_right(&self->p)) TH_LOG("epoch %u", e + 1);
	}
}

TEST_F(ring, regions)
{
	struct t3_region_add add = {
		.size = sizeof(add), .type = T3_REGION_USER,
		.dtype = T3_DTYPE_F32, .base = (uintptr_t)self->p.memory[0],
		.row_bytes = ROW_BYTES, .row_stride = ROW_BYTES, .rows = 2,
		.region = T3_NONE,
	};
	int member = self->p.w.member[0];
	long pinned = vm_pin();

	EXPECT_EQ(0, issue(&self->ring, member, T3_REGION_ADD, &add,
			   variant->entry));
	EXPECT_EQ(1U, add.region);
	EXPECT_EQ(pinned + (long)page_size() / 1024, vm_pin());
	EXPECT_EQ(0, region_del(member, add.region));
	EXPECT_EQ(pinned, vm_pin());
	add.base = page_size();
	EXPECT_EQ(-EFAULT, issue(&self->ring, member, T3_REGION_ADD, &add,
				 variant->entry));
	add.dtype = 99;
	EXPECT_EQ(-EINVAL, issue(&self->ring, member, T3_REGION_ADD, &add,
				 variant->entry));
}

/* The same errnos as by ioctl(), and the outputs that go with them. */
TEST_F(ring, errors)
{
	const struct t3_tiles bad[] = { { 0, 1 }, { BLOCKS, 1 } };
	struct t3_arm arm = { .size = sizeof(arm), .slot = T3_MAX_PLANS };
	struct io_uring *ring = &self->ring;
	int member = self->p.w.member[0];
	__u8 flags = variant->entry;
	__u32 done;

	EXPECT_EQ(-ERANGE, issue(ring, member, T3_ARM, &arm, flags));
	arm.slot = 5;
	EXPECT_EQ(-ENOENT, issue(ring, member, T3_ARM, &arm, flags));
	arm.flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, issue(ring, member, T3_ARM, &arm, flags));
	ASSERT_EQ(1, ring_arm(ring, member, flags));
	EXPECT_EQ(-EBUSY, ring_arm(ring, member, flags));
	EXPECT_EQ(-ERANGE, ring_notify(ring, member, bad, 2, &done, flags));
	EXPECT_EQ(1U, done);
	EXPECT_EQ(-EFAULT, ring_notify(ring, member, (void *)8, 1, &done,
				       flags));
	EXPECT_EQ(0U, done);
	EXPECT_EQ(-EPROTO, ring_notify(ring, member, bad, 1, &done, flags));
}

/* A plan whose other part has not come: EAGAIN is an answer like any other. */
TEST_F(ring, not_live)
{
	int group = group_create(self->p.w.dev, 2, 0);
	int member = group_join(group, 0);
	const struct t3_tiles one = { 0, 1 };

	ASSERT_EQ(0, pair_rank(&self->p, 0, member));
	EXPECT_EQ(-EAGAIN, ring_arm(&self->ring, member, variant->entry));
	EXPECT_EQ(-EAGAIN, ring_notify(&self->ring, member, &one, 1, NULL,
				       variant->entry));
	close(member);
	close(group);
}

TEST_F(ring, waits)
{
	int member = self->p.w.member[0];
	__u8 flags = variant->entry;
	struct t3_wait wait = wait_for(1, 0);
	__u32 rank;

	if (!waits_pend(self->p.w.dev)) {
		EXPECT_EQ(-EOPNOTSUPP, issue(&self->ring, member, T3_WAIT,
					     &wait, flags));
		return;
	}
	EXPECT_EQ(-ERANGE, issue(&self->ring, member, T3_WAIT, &wait, flags));
	EXPECT_EQ(T3_NONE, wait.rank);
	ASSERT_EQ(0, pair_arm(&self->p));
	FOR_EACH(i, 2) {
		rank = 7;
		EXPECT_EQ(-ETIME, ring_wait(&self->ring, self->p.w.dev, member,
					    1, i * 20 * MS, &rank, flags));
		EXPECT_EQ(T3_NONE, rank);
	}
	ASSERT_EQ(0, pair_produce(&self->p));
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, ring_wait(&self->ring, self->p.w.dev,
				       self->p.w.member[r], 1, BOUND_NS, &rank,
				       flags));
		EXPECT_EQ(T3_NONE, rank);
	}
	/* over already, and for ever */
	EXPECT_EQ(0, ring_wait(&self->ring, self->p.w.dev, member, 1, 0, NULL,
			       flags));
	ASSERT_EQ(0, pair_arm(&self->p));
	ASSERT_EQ(0, group_abort(self->p.w.member[1]));
	EXPECT_EQ(-ECANCELED, ring_wait(&self->ring, self->p.w.dev, member, 2,
					BOUND_NS, &rank, flags));
	EXPECT_EQ(1U, rank);
}

/* --- what is wrong with the command itself --------------------------------------- */

FIXTURE(command) {
	struct pair p;
	struct io_uring ring;
};

FIXTURE_SETUP(command)
{
	ASSERT_EQ(0, pair_open(&self->p));
	ASSERT_EQ(0, ring_open(&self->ring, 8, 0));
}

FIXTURE_TEARDOWN(command)
{
	io_uring_queue_exit(&self->ring);
	pair_close(&self->p);
}

static int issue_raw(struct io_uring *ring, int fd, __u32 code,
		     const struct t3_uring_cmd *uc)
{
	struct io_uring_sqe *sqe = queue(ring, fd, code, NULL, 1);

	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), uc,
	       sizeof(*uc));
	io_uring_submit(ring);
	return completion(ring, NULL, BOUND_NS);
}

TEST_F(command, entry)
{
	struct t3_arm arm = { .size = sizeof(arm) };
	struct t3_uring_cmd uc = { .arg = (uintptr_t)&arm, .size = 15 };
	int member = self->p.w.member[0];

	EXPECT_EQ(-EINVAL, issue_raw(&self->ring, member, T3_ARM, &uc));
	uc.size = sizeof(arm);
	uc.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, issue_raw(&self->ring, member, T3_ARM, &uc));
	uc.__reserved = 0;
	uc.arg = 0;
	EXPECT_EQ(-EFAULT, issue_raw(&self->ring, member, T3_ARM, &uc));
	arm.size = 8;
	uc.size = 8;
	uc.arg = (uintptr_t)&arm;
	EXPECT_EQ(-EINVAL, issue_raw(&self->ring, member, T3_ARM, &uc));
	arm.size = 1 << 20;
	uc.size = 1 << 20;
	EXPECT_EQ(-E2BIG, issue_raw(&self->ring, member, T3_ARM, &uc));
	EXPECT_EQ(0, group_abort(self->p.w.group));
}

/* Four commands, and no others; on a member only. */
TEST_F(command, numbers)
{
	struct t3_group_abort arg = { .size = sizeof(arg) };
	struct io_uring *ring = &self->ring;

	EXPECT_EQ(-ENOTTY, issue(ring, self->p.w.member[0], 0xbe00, &arg, 0));
	EXPECT_EQ(-ENOTTY, issue(ring, self->p.w.member[0], 0xbeff, &arg, 0));
	EXPECT_EQ(-ENOTTY, issue(ring, self->p.w.member[0], T3_CMD_ARM, &arg,
				 0));
	EXPECT_EQ(-EOPNOTSUPP, issue(ring, self->p.w.member[0],
				     T3_GROUP_ABORT, &arg, 0));
	EXPECT_EQ(-EOPNOTSUPP, issue(ring, self->p.w.member[0], T3_PLAN_ADD,
				     &arg, 0));
	EXPECT_EQ(-EOPNOTSUPP, issue(ring, self->p.w.group, T3_GROUP_ABORT,
				     &arg, 0));
	EXPECT_EQ(-EOPNOTSUPP, issue(ring, self->p.w.dev, T3_QUERY, &arg, 0));
	EXPECT_EQ(0, pair_arm(&self->p));
}

TEST_F(command, after_leave)
{
	int member = self->p.w.member[0];

	ASSERT_EQ(0, member_leave(member));
	EXPECT_EQ(-ESHUTDOWN, ring_arm(&self->ring, member, 0));
	EXPECT_EQ(-ESHUTDOWN, ring_arm(&self->ring, member, IOSQE_ASYNC));
}

/* A child with the member's file and a ring of its own, or its parent's. */
static void child_tries(int member, struct io_uring *old)
{
	struct io_uring ring;

	MUST(!ring_open(&ring, 8, 0));
	MUST(ring_arm(&ring, member, 0) == -EPERM);
	MUST(ring_arm(&ring, member, IOSQE_ASYNC) == -EPERM);
	/* the memory of the ring is the same, the one who submits is not */
	MUST(ring_arm(old, member, 0) == -EPERM);
	_exit(0);
}

TEST_F(command, from_another_address_space)
{
	pid_t pid = fork_child();

	if (!pid)
		child_tries(self->p.w.member[0], &self->ring);
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, pair_arm(&self->p));
}

/* --- waits that pend --------------------------------------------------------------- */

FIXTURE(pending) {
	struct pair p;
	struct io_uring ring;
	struct t3_wait *wait;
};

#define MANY	1024

#define NO_WAITS	"no wait pends in this kernel's rings"

FIXTURE_SETUP(pending)
{
	ASSERT_EQ(0, pair_open(&self->p));
	if (!waits_pend(self->p.w.dev))
		return;
	ASSERT_EQ(0, ring_open(&self->ring, 8, 0));
	self->wait = calloc(MANY, sizeof(*self->wait));
	ASSERT_NE(NULL, self->wait);
	ASSERT_EQ(0, pair_arm(&self->p));
}

FIXTURE_TEARDOWN(pending)
{
	if (!self->wait)
		return;
	io_uring_queue_exit(&self->ring);
	pair_close(&self->p);
	free(self->wait);
}

static void queue_waits(struct io_uring *ring, int member, struct t3_wait *wait,
			__u32 n, __u32 epoch, __u64 ns)
{
	FOR_EACH(i, n) {
		wait[i] = wait_for(epoch, ns);
		queue(ring, member, T3_WAIT, &wait[i], i);
	}
	MUST(io_uring_submit(ring) >= 0);
}

/*
 * Takes @n completions, each of another command and each with @want or @or,
 * and sees that no more come. Returns how many were @want, or -1.
 */
static int collect(struct io_uring *ring, __u32 n, int want, int or)
{
	bool seen[MANY] = { false };
	int found = 0;
	__u64 tag;

	FOR_EACH(i, n) {
		int ret = completion(ring, &tag, BOUND_NS);

		if (tag >= n || seen[tag] || (ret != want && ret != or)) {
			fprintf(stderr, "# completion %u: tag %llu, result %d\n",
				i, tag, ret);
			return -1;
		}
		seen[tag] = true;
		found += ret == want;
	}
	return completion(ring, &tag, 20 * MS) == -ETIME ? found : -1;
}

TEST_F(pending, retires)
{
	struct pollfd p = { .fd = self->p.w.member[0], .events = POLLIN };

	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 3, 1,
		    BOUND_NS);
	EXPECT_EQ(-ETIME, completion(&self->ring, NULL, 20 * MS));
	ASSERT_EQ(0, pair_produce(&self->p));
	EXPECT_EQ(3, collect(&self->ring, 3, 0, 0));
	EXPECT_TRUE(pair_right(&self->p));
	/* poll() knows that the user was told */
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(pending, for_ever)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 3, 1, ~0ULL);
	ASSERT_EQ(0, pair_produce(&self->p));
	EXPECT_EQ(3, collect(&self->ring, 3, 0, 0));
}

TEST_F(pending, expires)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 3, 1,
		    30 * MS);
	EXPECT_EQ(3, collect(&self->ring, 3, -ETIME, -ETIME));
	EXPECT_EQ(T3_NONE, self->wait[0].rank);
}

TEST_F(pending, breaks)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 3, 1,
		    BOUND_NS);
	close(self->p.w.member[1]);
	self->p.w.member[1] = -1;
	EXPECT_EQ(3, collect(&self->ring, 3, -EOWNERDEAD, -EOWNERDEAD));
	EXPECT_EQ(1U, self->wait[2].rank);
}

TEST_F(pending, aborts)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 3, 1,
		    BOUND_NS);
	ASSERT_EQ(0, group_abort(self->p.w.group));
	EXPECT_EQ(3, collect(&self->ring, 3, -ECANCELED, -ECANCELED));
	EXPECT_EQ(0, member_leave(self->p.w.member[0]));
}

/* The structure has gone by the time the answer comes. */
TEST_F(pending, unmapped)
{
	void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!self->wait)
		SKIP(return, NO_WAITS);
	ASSERT_NE(MAP_FAILED, page);
	queue_waits(&self->ring, self->p.w.member[0], page, 1, 1, BOUND_NS);
	munmap(page, page_size());
	ASSERT_EQ(0, pair_produce(&self->p));
	EXPECT_EQ(1, collect(&self->ring, 1, -EFAULT, -EFAULT));
}

/* More completions than the ring has places for: none is lost. */
TEST_F(pending, full_ring)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, 300, 1,
		    BOUND_NS);
	ASSERT_EQ(0, pair_produce(&self->p));
	ASSERT_EQ(0, plan_wait_epoch(self->p.w.member[0], 0, 1, BOUND_NS,
				     NULL));
	EXPECT_EQ(300, collect(&self->ring, 300, 0, 0));
}

TEST_F(pending, too_many)
{
	struct t3_wait one = wait_for(1, BOUND_NS);

	if (!self->wait)
		SKIP(return, NO_WAITS);
	queue_waits(&self->ring, self->p.w.member[0], self->wait, MANY, 1,
		    BOUND_NS);
	EXPECT_EQ(-EBUSY, issue(&self->ring, self->p.w.member[0], T3_WAIT,
				&one, 0));
	ASSERT_EQ(0, pair_produce(&self->p));
	EXPECT_EQ(MANY, collect(&self->ring, MANY, 0, 0));
	EXPECT_EQ(0, issue(&self->ring, self->p.w.member[0], T3_WAIT, &one, 0));
}

/* --- whoever ends first ------------------------------------------------------------ */

struct job {
	struct pair *p;
	struct io_uring *ring;
	struct t3_wait *wait;
	__u32 n;
	__u32 epoch;
	__u64 ns;
	pthread_barrier_t *gate;
};

/* Submits, and ends: the ring gets rid of what pends. */
static void *submit_and_end(void *arg)
{
	struct job *j = arg;

	queue_waits(j->ring, j->p->w.member[0], j->wait, j->n, j->epoch, j->ns);
	pthread_barrier_wait(j->gate);
	return NULL;
}

TEST_F_TIMEOUT(pending, thread_ends_as_it_retires, 120)
{
	pthread_barrier_t gate;
	struct job j = {
		.p = &self->p, .ring = &self->ring, .wait = self->wait,
		.n = 8, .ns = BOUND_NS, .gate = &gate,
	};
	__u32 retired = 0, gone = 0;
	pthread_t thread;

	if (!self->wait)
		SKIP(return, NO_WAITS);
	pthread_barrier_init(&gate, NULL, 2);
	FOR_EACH(e, scaled(150)) {
		int found;

		j.epoch = e + 1;
		ASSERT_EQ(0, pthread_create(&thread, NULL, submit_and_end, &j));
		pthread_barrier_wait(&gate);
		FOR_EACH(i, e % 16 * 500)
			__asm__ volatile("" ::: "memory");
		ASSERT_EQ(0, pair_produce(&self->p));
		pthread_join(thread, NULL);
		found = collect(&self->ring, j.n, 0, -ECANCELED);
		ASSERT_GE(found, 0) TH_LOG("epoch %u", j.epoch);
		retired += (__u32)found;
		gone += j.n - (__u32)found;
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, plan_wait_epoch(self->p.w.member[r], 0,
						     j.epoch, BOUND_NS, NULL));
		}
		ASSERT_EQ(0, pair_arm(&self->p));
	}
	fprintf(stderr, "# %u retired, %u were cancelled\n", retired, gone);
}

/* The time is up just when the epoch retires. */
TEST_F_TIMEOUT(pending, expires_as_it_retires, 120)
{
	__u32 late = 0;

	if (!self->wait)
		SKIP(return, NO_WAITS);
	FOR_EACH(e, scaled(100)) {
		int found;

		queue_waits(&self->ring, self->p.w.member[0], self->wait, 8,
			    e + 1, (e % 20 + 1) * 100 * 1000);
		ASSERT_EQ(0, pair_produce(&self->p));
		found = collect(&self->ring, 8, 0, -ETIME);
		ASSERT_GE(found, 0) TH_LOG("epoch %u", e + 1);
		late += 8 - (__u32)found;
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, plan_wait_epoch(self->p.w.member[r], 0,
						     e + 1, BOUND_NS, NULL));
		}
		ASSERT_EQ(0, pair_arm(&self->p));
	}
	fprintf(stderr, "# %u were late\n", late);
}

/* A ring that goes with all it has; the files may go before or afterwards. */
TEST_F_TIMEOUT(pending, ring_goes, 60)
{
	if (!self->wait)
		SKIP(return, NO_WAITS);
	FOR_EACH(i, 20) {
		struct io_uring ring;
		struct pair p;

		ASSERT_EQ(0, pair_open(&p));
		ASSERT_EQ(0, ring_open(&ring, 8,
				       i & 1 ? IORING_SETUP_SQPOLL : 0));
		ASSERT_EQ(0, pair_arm(&p));
		queue_waits(&ring, p.w.member[0], self->wait, 40, 1, BOUND_NS);
		if (i & 2)
			pair_close(&p);
		io_uring_queue_exit(&ring);
		if (!(i & 2)) {
			EXPECT_EQ(0, pair_produce(&p));
			EXPECT_EQ(0, plan_wait_epoch(p.w.member[0], 0, 1,
						     BOUND_NS, NULL));
			pair_close(&p);
		}
	}
}

/* --- a rank that dies with one pending ----------------------------------------------- */

enum way { KILL, KILL_HELD, EXIT, EXEC, WAYS };

struct board {
	__u32 ready;
	__u32 holder;
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

/* A child that has the ring, the member and the group, and stays. */
static void hold_all(struct board *board)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid)
		return;
	__atomic_store_n(&board->holder, (__u32)getpid(), __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void victim(int group, struct board *board, enum way way, __u32 flags)
{
	bool pends = waits_pend(device_open());
	static struct t3_wait wait[4];
	static struct pair p;
	struct io_uring ring;
	int member = group_join(group, 1);

	MUST(member >= 0 && !pair_rank(&p, 1, member));
	MUST(!plan_wait(member, 0, BOUND_NS, NULL));
	MUST(plan_arm(member, 0) == 1);
	MUST(!ring_open(&ring, 8, flags));
	if (pends)
		queue_waits(&ring, member, wait, 4, 1, 20 * BOUND_NS);
	io_uring_prep_poll_add(ring_entry(&ring), member, POLLIN);
	MUST(io_uring_submit(&ring) >= 0);
	if (way == KILL_HELD)
		hold_all(board);
	__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
	if (way == EXIT)
		_exit(0);
	if (way == EXEC)
		execl("/proc/self/exe", "uring", "--sleep", NULL);
	for (;;)
		pause();
}

FIXTURE(death) {
	int dev;
	int group;
	struct board *board;
	struct pair p;
};

FIXTURE_VARIANT(death) {
	enum way way;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(death, kill) { KILL, 0 };
FIXTURE_VARIANT_ADD(death, kill_held) { KILL_HELD, 0 };
FIXTURE_VARIANT_ADD(death, exit) { EXIT, 0 };
FIXTURE_VARIANT_ADD(death, exec) { EXEC, 0 };
FIXTURE_VARIANT_ADD(death, kill_polling) { KILL, IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(death, kill_held_polling) {
	KILL_HELD, IORING_SETUP_SQPOLL
};

FIXTURE_SETUP(death)
{
	self->dev = device_open();
	self->group = group_create(self->dev, 2, 0);
	ASSERT_GE(self->group, 0);
	self->board = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->board);
}

FIXTURE_TEARDOWN(death)
{
	if (self->board->holder)
		kill((pid_t)self->board->holder, SIGKILL);
	close(self->group);
	close(self->dev);
}

static bool broken_by(int group, struct t3_group_info *info)
{
	__u64 until = now_ns() + BOUND_NS;

	do {
		if (group_info(group, info))
			return false;
		if (info->broken)
			return info->broken == EOWNERDEAD;
		sleep_ms(1);
	} while (now_ns() < until);
	return false;
}

TEST_F_TIMEOUT(death, with_one_pending, 60)
{
	pid_t pid = fork_child();
	struct t3_group_info info;
	int member;

	if (!pid)
		victim(self->group, self->board, variant->way, variant->flags);
	member = group_join(self->group, 0);
	ASSERT_EQ(0, pair_rank(&self->p, 0, member));
	ASSERT_EQ(0, plan_wait(member, 0, BOUND_NS, NULL));
	ASSERT_TRUE(seen(&self->board->ready));
	if (variant->way == KILL || variant->way == KILL_HELD)
		kill(pid, SIGKILL);
	ASSERT_TRUE(broken_by(self->group, &info));
	EXPECT_EQ(1U, info.broken_rank);
	EXPECT_EQ(-EOWNERDEAD, plan_arm(member, 0));
	if (variant->way == EXEC)
		kill(pid, SIGKILL);
	reap(pid);
	EXPECT_EQ(0, member_leave(member));
	EXPECT_EQ(0L, vm_pin());
	close(member);
}

TEST_HARNESS_MAIN
