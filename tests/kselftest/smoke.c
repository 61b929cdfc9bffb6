// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Smoke test of /dev/t3: direct reduce-scatters between processes, by
 * T3_NOTIFY and by mapped counters, and the plainest of endings. One file, no
 * harness: it is the first thing to run when the driver has changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/t3.h>

#define RANKS	3
#define ROWS	96		/* 32 a shard */
#define COLS	1500		/* rows end within pages */
#define STRIDE	(COLS + 4)
#define EPOCHS	20
#define ROUNDS	40
#define SECOND	1000000000ULL

static int tests, failed;

/* The kernel writes it at any time. */
#define look(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			printf("# %s:%d: %s (errno %d)\n", __FILE__,	\
			       __LINE__, #cond, errno);			\
			fflush(stdout);					\
			_exit(1);					\
		}							\
	} while (0)

struct rank {
	int fd;
	uint32_t rank;
	float *data;
	uint32_t region;
	uint32_t *tiles;
	const struct t3_plan_status *status;	/* read by look() */
};

static int group_create(uint32_t watchdog_ms)
{
	struct t3_group_create c = {
		.size = sizeof(c), .ranks = RANKS, .watchdog_ms = watchdog_ms,
	};
	int dev = open("/dev/t3", O_RDWR | O_CLOEXEC);

	CHECK(dev >= 0);
	CHECK(!ioctl(dev, T3_GROUP_CREATE, &c));
	close(dev);
	return c.out_fd;
}

static struct t3_group_info info(int group)
{
	struct t3_group_info i = { .size = sizeof(i) };

	CHECK(!ioctl(group, T3_GROUP_INFO, &i));
	return i;
}

static void join(struct rank *r, int group, uint32_t rank)
{
	struct t3_group_join j = { .size = sizeof(j), .rank = rank };
	struct t3_region_add a = {
		.size = sizeof(a), .type = T3_REGION_USER,
		.dtype = T3_DTYPE_F32, .row_bytes = COLS * sizeof(float),
		.row_stride = STRIDE * sizeof(float), .rows = ROWS,
	};

	CHECK(!ioctl(group, T3_GROUP_JOIN, &j));
	r->fd = j.out_fd;
	r->rank = rank;
	r->data = mmap(NULL, ROWS * STRIDE * sizeof(float),
		       PROT_READ | PROT_WRITE,
		       (rank & 1 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS,
		       -1, 0);
	CHECK(r->data != MAP_FAILED);
	a.base = (uintptr_t)r->data;
	CHECK(!ioctl(r->fd, T3_REGION_ADD, &a));
	r->region = a.region;
}

static int plan_add(struct rank *r, uint64_t generation, uint32_t tiles)
{
	uint32_t rows[RANKS + 1], cols[2] = { 0, COLS };
	struct t3_plan_block block[RANKS] = { };
	struct t3_source source[RANKS];
	struct t3_trigger trigger = {
		.op = T3_OP_SUM, .block = r->rank, .seq = 2, .sources = RANKS,
	};
	struct t3_plan_region region = {
		.region = r->region, .block_rows = RANKS, .block_cols = 1,
		.row_cuts = (uintptr_t)rows, .col_cuts = (uintptr_t)cols,
		.blocks = (uintptr_t)block,
	};
	struct t3_plan_add a = {
		.size = sizeof(a), .slot = 5, .regions = 1, .triggers = 1,
		.sources = RANKS, .generation = generation,
		.digest = { 1, 2 }, .region_list = (uintptr_t)&region,
		.trigger_list = (uintptr_t)&trigger,
		.source_list = (uintptr_t)source,
	};

	for (uint32_t i = 0; i <= RANKS; i++)
		rows[i] = i * (ROWS / RANKS);
	for (uint32_t i = 0; i < RANKS; i++) {
		block[i].readers = 1u << i;
		block[i].tiles = tiles;
		block[i].flags = T3_BLOCK_PRODUCED;
		source[i] = (struct t3_source) { i, 0, r->rank, 1 };
	}
	if (ioctl(r->fd, T3_PLAN_ADD, &a)) {
		printf("# PLAN_ADD: verdict %u rank %d trigger %d detail %d\n",
		       a.verdict.error, (int)a.verdict.rank,
		       (int)a.verdict.trigger, (int)a.verdict.detail);
		return -errno;
	}
	r->tiles = mmap(NULL, a.tiles_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			r->fd, a.tiles_offset);
	CHECK(r->tiles != MAP_FAILED);
	CHECK(mmap(NULL, a.status_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		   r->fd, a.status_offset) == MAP_FAILED && errno == EACCES);
	r->status = mmap(NULL, a.status_bytes, PROT_READ, MAP_SHARED, r->fd,
			 a.status_offset);
	CHECK(r->status != MAP_FAILED);
	return 0;
}

static int plan_wait(struct rank *r)
{
	struct t3_plan_wait w = {
		.size = sizeof(w), .slot = 5, .timeout_ns = 20 * SECOND,
	};

	if (!ioctl(r->fd, T3_PLAN_WAIT, &w))
		return 0;
	printf("# PLAN_WAIT: verdict %u rank %d trigger %d detail %d\n",
	       w.verdict.error, (int)w.verdict.rank, (int)w.verdict.trigger,
	       (int)w.verdict.detail);
	return -errno;
}

static int arm(struct rank *r, uint32_t *epoch)
{
	struct t3_arm a = { .size = sizeof(a), .slot = 5 };

	if (ioctl(r->fd, T3_ARM, &a))
		return -errno;
	*epoch = a.epoch;
	return 0;
}

static int wait_epoch(struct rank *r, uint32_t epoch, uint64_t ns, uint32_t *who)
{
	struct t3_wait w = {
		.size = sizeof(w), .slot = 5, .epoch = epoch, .timeout_ns = ns,
	};
	int ret = ioctl(r->fd, T3_WAIT, &w) ? -errno : 0;

	if (who)
		*who = w.rank;
	return ret;
}

static int notify(struct rank *r, uint32_t block, uint32_t tiles)
{
	struct t3_tiles t = { block, tiles };
	struct t3_notify n = {
		.size = sizeof(n), .slot = 5, .entries = 1,
		.list = (uintptr_t)&t,
	};

	return ioctl(r->fd, T3_NOTIFY, &n) ? -errno : 0;
}

/* As a producer in user space counts; the kernel is called if it sleeps. */
static void count(struct rank *r, uint32_t block)
{
	__atomic_add_fetch(&r->tiles[block], 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->status->need_wakeup, __ATOMIC_RELAXED))
		CHECK(!notify(r, block, 0));
}

static float value(uint32_t rank, uint32_t epoch, uint32_t row, uint32_t col)
{
	return (float)(rank + 1) * 0.5f + (float)epoch + (float)(row % 7) +
	       (float)(col % 11) * 0.25f;
}

static void produce(struct rank *r, uint32_t epoch, uint32_t tiles, bool mapped)
{
	for (uint32_t b = 0; b < RANKS; b++) {
		for (uint32_t t = 0; t < tiles; t++) {
			uint32_t n = ROWS / RANKS / tiles;
			uint32_t from = b * (ROWS / RANKS) + t * n;

			for (uint32_t i = from; i < from + n; i++)
				for (uint32_t j = 0; j < COLS; j++)
					r->data[i * STRIDE + j] =
						value(r->rank, epoch, i, j);
			if (mapped)
				count(r, b);
			else
				CHECK(!notify(r, b, 1));
		}
	}
}

static void verify(struct rank *r, uint32_t epoch)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		for (uint32_t j = 0; j < COLS; j++) {
			float want = value(r->rank, epoch, i, j);
			float have = r->data[i * STRIDE + j];

			if (i / (ROWS / RANKS) == r->rank) {
				want = 0;
				for (uint32_t k = 0; k < RANKS; k++)
					want += value(k, epoch, i, j);
			}
			if (have != want) {
				printf("# rank %u epoch %u row %u col %u: %g, not %g\n",
				       r->rank, epoch, i, j, have, want);
				CHECK(have == want);
			}
		}
	}
}

static void setup(struct rank *r, int group, uint32_t rank, uint32_t tiles)
{
	join(r, group, rank);
	CHECK(!plan_add(r, 1, tiles));
	CHECK(!plan_wait(r));
}

static void epochs(int group, uint32_t rank, bool mapped)
{
	struct rank r;

	setup(&r, group, rank, 4);
	for (uint32_t e = 1; e <= EPOCHS; e++) {
		struct pollfd p = { .events = POLLIN };
		uint32_t got = 0;

		p.fd = r.fd;
		CHECK(!arm(&r, &got));
		CHECK(got == e);
		produce(&r, e, 4, mapped);
		if (e & 1)
			CHECK(poll(&p, 1, 20000) == 1 && p.revents == POLLIN);
		CHECK(!wait_epoch(&r, e, 20 * SECOND, NULL));
		CHECK(poll(&p, 1, 0) == 0);
		CHECK(look(r.status->retired) == e && look(r.status->armed) == e);
		verify(&r, e);
	}
	_exit(0);
}

static void by_notify(int group, uint32_t rank)
{
	epochs(group, rank, false);
}

static void by_counters(int group, uint32_t rank)
{
	epochs(group, rank, true);
}

/*
 * Sets up and arms, unless the group has broken by then with the cause
 * expected: another rank may be that far already.
 */
static bool arm_unless(struct rank *r, int group, uint32_t rank,
		       uint32_t *epoch, int cause)
{
	int ret;

	join(r, group, rank);
	ret = plan_add(r, 1, 1);
	if (!ret)
		ret = plan_wait(r);
	if (!ret)
		ret = arm(r, epoch);
	CHECK(!ret || ret == -cause);
	return !ret;
}

/* Rank 1 is killed with an epoch armed: the others know who it was. */
static void killed(int group, uint32_t rank)
{
	struct rank r;
	uint32_t e = 0, who;

	if (!arm_unless(&r, group, rank, &e, EOWNERDEAD))
		_exit(0);
	if (rank == 1)
		raise(SIGKILL);
	CHECK(wait_epoch(&r, e, 20 * SECOND, &who) == -EOWNERDEAD);
	CHECK(who == 1);
	CHECK(look(r.status->broken) == EOWNERDEAD);
	CHECK(look(r.status->broken_rank) == 1);
	_exit(0);
}

/* Rank 1 leaves without having armed: they know too. */
static void left(int group, uint32_t rank)
{
	struct rank r;
	uint32_t e = 0, who;
	int ret;

	setup(&r, group, rank, 1);
	if (rank == 1) {
		usleep(500000);		/* most often the others have armed */
		_exit(0);
	}
	ret = arm(&r, &e);
	CHECK(!ret || ret == -EPIPE || ret == -EOWNERDEAD);
	if (ret)
		_exit(0);
	CHECK(wait_epoch(&r, e, 20 * SECOND, &who) == -EOWNERDEAD);
	CHECK(who == 1);
	_exit(0);
}

/* Nobody produces: the watchdog ends it. */
static void stalled(int group, uint32_t rank)
{
	struct rank r;
	uint32_t e = 0;

	if (!arm_unless(&r, group, rank, &e, ETIMEDOUT))
		_exit(0);
	CHECK(wait_epoch(&r, e, 20 * SECOND, NULL) == -ETIMEDOUT);
	_exit(0);
}

static void aborted(int group, uint32_t rank)
{
	struct t3_group_abort a = { .size = sizeof(a) };
	struct rank r;
	uint32_t e = 0;

	if (!arm_unless(&r, group, rank, &e, ECANCELED))
		_exit(0);
	if (rank == 2)
		CHECK(!ioctl(r.fd, T3_GROUP_ABORT, &a));
	CHECK(wait_epoch(&r, e, 20 * SECOND, NULL) == -ECANCELED);
	_exit(0);
}

static void unmapped(int group, uint32_t rank)
{
	struct rank r;
	uint32_t e = 0;

	if (!arm_unless(&r, group, rank, &e, ESTALE))
		_exit(0);
	if (rank == 2)
		munmap(r.data, 4096);
	CHECK(wait_epoch(&r, e, 20 * SECOND, NULL) == -ESTALE);
	_exit(0);
}

/* Epochs without end, until a break that names the rank that was killed. */
static void endless(int group, uint32_t rank)
{
	struct rank r;
	uint32_t e = 0, who = 0;
	int ret;

	join(&r, group, rank);
	ret = plan_add(&r, 1, 4);
	if (!ret)
		ret = plan_wait(&r);
	while (!ret) {
		ret = arm(&r, &e);
		for (uint32_t b = 0; b < RANKS && !ret; b++)
			ret = notify(&r, b, 4);
		if (!ret)
			ret = wait_epoch(&r, e, 20 * SECOND, &who);
	}
	CHECK(ret == -EOWNERDEAD || ret == -EPIPE);
	_exit(0);
}

/* A rank is killed at any moment, ROUNDS times: nobody sticks. */
static void kill_anytime(void)
{
	bool good = true;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t victim = (uint32_t)(rand() % RANKS);
		int group = group_create(0), status;
		pid_t pid[RANKS];

		fflush(stdout);
		for (uint32_t r = 0; r < RANKS; r++) {
			pid[r] = fork();
			if (!pid[r]) {
				alarm(60);
				endless(group, r);
			}
		}
		/* Who dies before it has joined is nobody the group knows. */
		while (info(group).joined != (1u << RANKS) - 1)
			usleep(1000);
		usleep((useconds_t)(rand() % 100000));
		kill(pid[victim], SIGKILL);
		for (uint32_t r = 0; r < RANKS; r++) {
			waitpid(pid[r], &status, 0);
			if (r != victim)
				good = good && WIFEXITED(status) &&
				       !WEXITSTATUS(status);
		}
		close(group);
	}
	printf("%sok %d a rank is killed at any moment, %d times\n",
	       good ? "" : "not ", ++tests, ROUNDS);
	failed += !good;
}

static void run(const char *name, void (*fn)(int, uint32_t), uint32_t watchdog,
		uint32_t broken)
{
	int group = group_create(watchdog), status;
	pid_t pid[RANKS];
	bool good = true;

	fflush(stdout);
	for (uint32_t r = 0; r < RANKS; r++) {
		pid[r] = fork();
		if (!pid[r]) {
			alarm(60);
			fn(group, r);
		}
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		waitpid(pid[r], &status, 0);
		if (fn == killed && r == 1)
			good = good && WIFSIGNALED(status);
		else
			good = good && WIFEXITED(status) && !WEXITSTATUS(status);
	}
	if (info(group).broken != broken) {
		printf("# broken: %u\n", info(group).broken);
		good = false;
	}
	close(group);
	printf("%sok %d %s\n", good ? "" : "not ", ++tests, name);
	failed += !good;
}

int main(void)
{
	run("direct reduce-scatter, counted by NOTIFY", by_notify, 0, 0);
	run("direct reduce-scatter, counted in the mapping", by_counters, 0, 0);
	run("a rank is killed with an epoch armed", killed, 0, EOWNERDEAD);
	run("a rank leaves and another waits for it", left, 0, EOWNERDEAD);
	run("nobody produces", stalled, 300, ETIMEDOUT);
	run("a rank aborts", aborted, 0, ECANCELED);
	run("a rank unmaps its region", unmapped, 0, ESTALE);
	kill_anytime();
	printf("1..%d\n", tests);
	return failed ? 1 : 0;
}
