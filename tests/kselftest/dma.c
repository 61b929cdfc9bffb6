// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The dmaengine engine, on the software device of t3_testdma: copies and sums
 * arrive whatever the channel does, and nothing waits for it for ever.
 */
#include "t3_kselftest.h"
#include "knob_files.h"

#include <limits.h>

#define DEVICE	"/sys/class/misc/t3/"
#define COUNTER	DEVICE "counters/"
#define TESTDMA	"/sys/kernel/debug/t3_testdma/"
#define DRIVER	"/sys/bus/platform/drivers/t3_testdma/"

/* As in t3_testdma.c. */
enum kind { KIND_ERROR, KIND_LYING, KIND_SHORT, KIND_NONSENSE, KIND_LOST,
	    KIND_SILENT, KINDS };

/* Returns 0 or the negative errno of the write. */
static int put_number(const char *folder, const char *name, long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	return put(folder, name, text);
}

static int get(const char *folder, const char *name, char *text, int size)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	text[0] = 0;
	if (fgets(text, size, f))
		text[strcspn(text, "\n")] = 0;
	fclose(f);
	return 0;
}

static long long number(const char *folder, const char *name)
{
	char text[64];

	return get(folder, name, text, sizeof(text)) ? -1 :
	       strtoll(text, NULL, 10);
}

static bool stoppable(void)
{
	char text[8];

	return !get("/sys/module/t3_testdma/parameters/", "stoppable", text,
		    sizeof(text)) && text[0] == 'Y';
}

/* The device as it is when it is loaded. */
static void calm(void)
{
	put_number(TESTDMA, "delay_us", 0);
	put_number(TESTDMA, "room", 256);
	put_number(TESTDMA, "fail_in", 0);
	put_number(TESTDMA, "fail_every", 0);
	put_number(TESTDMA, "reverse", 0);
}

/* --- without a channel ---------------------------------------------------- */

TEST(refused_with_a_reason)
{
	char text[32];
	int ret;

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, get(DEVICE, "engine", text, sizeof(text)));
	EXPECT_STREQ("cpu", text);
	EXPECT_EQ(-EINVAL, put(DEVICE, "engine", "gpu"));
	EXPECT_EQ(-EINVAL, put(DEVICE, "engine", "\n"));
	/* Which of the two depends on the kernel. */
	put(DRIVER, "unbind", "t3_testdma");
	ret = put(DEVICE, "engine", "dmaengine");
	EXPECT_TRUE(ret == -ENODEV || ret == -EOPNOTSUPP) {
		TH_LOG("%d", ret);
	}
	ASSERT_EQ(0, get(DEVICE, "engine", text, sizeof(text)));
	EXPECT_STREQ("cpu", text);
	put(DRIVER, "bind", "t3_testdma");
}

/* A channel that says that it copies and does not is not taken. */
TEST(a_channel_that_lies_is_not_taken)
{
	if (number(TESTDMA, "room") < 0)
		SKIP(return, "no t3_testdma");
	calm();
	FOR_EACH(kind, KINDS) {
		put_number(TESTDMA, "fail_kind", kind);
		put_number(TESTDMA, "fail_every", 1);
		if (kind == KIND_LOST && !stoppable())
			continue;
		EXPECT_EQ(-ENODEV, put(DEVICE, "engine", "dmaengine")) {
			TH_LOG("kind %u", kind);
		}
	}
	calm();
	EXPECT_EQ(0, put(DEVICE, "engine", "dmaengine"));
	EXPECT_EQ(0, put(DEVICE, "engine", "cpu"));
}

/* --- two ranks that gather ------------------------------------------------- */

#define RANKS	2
#define BLOCKS	4	/* of a region; half of them are each rank's own */
#define ROWS	4	/* of a block */

/**
 * struct shape - of a region
 * @cols: elements of a row
 * @gap: bytes between rows
 */
struct shape {
	__u32 cols;
	__u32 gap;
};

FIXTURE(gather)
{
	struct world w;
	struct part *part[RANKS];
	char *memory[RANKS];
	size_t bytes;
	__u64 stride;
	__u32 epoch;
	__u64 generation;
	struct shape shape;
};

static int add_part(struct _test_data_gather *self, __u32 r, enum collective what)
{
	struct t3_region_add add = {
		.type = T3_REGION_USER, .dtype = T3_DTYPE_I32,
		.base = (uintptr_t)self->memory[r],
		.row_bytes = self->shape.cols * 4, .row_stride = self->stride,
		.rows = BLOCKS * ROWS,
	};
	__u32 region;
	int ret = region_add_full(self->w.member[r], &add, &region);

	if (ret)
		return ret;
	part_init(self->part[r], 0, ++self->generation);
	self->part[r]->add.generation = 1;
	self->part[r]->add.digest[1] = 1;
	part_region(self->part[r], region, BLOCKS * ROWS, self->shape.cols,
		    BLOCKS, 1);
	part_collective(self->part[r], what, r, RANKS, 1);
	return 0;
}

static int gather_open(struct _test_data_gather *self, enum collective what,
		       struct shape shape)
{
	int ret = world_open(&self->w, RANKS);

	self->epoch = 0;
	self->shape = shape;
	self->stride = shape.cols * 4 + shape.gap;
	self->bytes = self->stride * BLOCKS * ROWS;
	FOR_EACH(r, RANKS) {
		self->memory[r] = mmap(NULL, self->bytes,
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		self->part[r] = calloc(1, sizeof(*self->part[r]));
		if (!ret)
			ret = add_part(self, r, what);
	}
	return ret ?: world_plan(&self->w, self->part, NULL);
}

static void gather_close(struct _test_data_gather *self)
{
	world_close(&self->w);
	FOR_EACH(r, RANKS) {
		if (self->memory[r])
			munmap(self->memory[r], self->bytes);
		free(self->part[r]);
		self->memory[r] = NULL;
		self->part[r] = NULL;
	}
}

static __u32 *row_of(struct _test_data_gather *self, __u32 r, __u32 row)
{
	return (__u32 *)(self->memory[r] + row * self->stride);
}

static __u32 value(struct _test_data_gather *self, __u32 owner, __u32 row,
		   __u32 col)
{
	return self->epoch * 1000003 + owner * 77777 + row * 4099 + col;
}

/* All a rank produces; the rest is poison. */
static void fill(struct _test_data_gather *self, bool all)
{
	FOR_EACH(r, RANKS)
		FOR_EACH(row, BLOCKS * ROWS) {
			bool own = row / ROWS / (BLOCKS / RANKS) == r;

			FOR_EACH(c, self->shape.cols)
				row_of(self, r, row)[c] = own || all ?
					value(self, r, row, c) : 0xdeadbeef;
			if (self->shape.gap)
				memset(row_of(self, r, row) + self->shape.cols,
				       0x5a, self->shape.gap);
		}
}

/* Returns 0, or 1 + the first row that is wrong. */
static int check_gathered(struct _test_data_gather *self)
{
	FOR_EACH(r, RANKS)
		FOR_EACH(row, BLOCKS * ROWS) {
			const __u32 *at = row_of(self, r, row);
			__u32 owner = row / ROWS / (BLOCKS / RANKS);

			FOR_EACH(c, self->shape.cols)
				if (at[c] != value(self, owner, row, c))
					return (int)row + 1;
			FOR_EACH(i, self->shape.gap)
				if (((char *)(at + self->shape.cols))[i] != 0x5a)
					return (int)row + 1;
		}
	return 0;
}

static int begin(struct _test_data_gather *self, bool all)
{
	self->epoch++;
	fill(self, all);
	FOR_EACH(r, RANKS) {
		int ret = plan_arm(self->w.member[r], 0);

		if (ret < 0)
			return ret;
	}
	FOR_EACH(r, RANKS)
		FOR_EACH(b, BLOCKS) {
			int ret;

			if (!(part_block(self->part[r], 0, b)->flags &
			      T3_BLOCK_PRODUCED))
				continue;
			ret = notify_one(self->w.member[r], 0, b, 1);
			if (ret)
				return ret;
		}
	return 0;
}

static int end(struct _test_data_gather *self)
{
	FOR_EACH(r, RANKS) {
		int ret = plan_wait_epoch(self->w.member[r], 0, self->epoch,
					  BOUND_NS, NULL);

		if (ret)
			return ret;
	}
	return 0;
}

/* One epoch, and its data. */
static int run_epoch(struct _test_data_gather *self)
{
	return begin(self, false) ?: end(self) ?: check_gathered(self);
}

FIXTURE_SETUP(gather)
{
	static const struct shape shape = { 16384, 0 };

	if (number(TESTDMA, "room") < 0)
		SKIP(_exit(SKIPPED), "no t3_testdma");
	calm();
	ASSERT_EQ(0, put_number(DEVICE, "dma_min_bytes", 4096));
	ASSERT_EQ(0, put_number(DEVICE, "dma_timeout_ms", 1000));
	ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine"));
	ASSERT_EQ(0, gather_open(self, AG_DIRECT, shape));
}

FIXTURE_TEARDOWN(gather)
{
	calm();
	gather_close(self);
	put(DEVICE, "engine", "cpu");
}

/* What was copied: half of each rank's region. */
#define GATHERED(self)	((long long)(self)->shape.cols * 4 * BLOCKS * ROWS / \
			 RANKS * RANKS)

TEST_F(gather, copies_are_the_channel_s)
{
	long long dma = number(COUNTER, "bytes_dma");
	long long cpu = number(COUNTER, "bytes_cpu");

	FOR_EACH(i, 5) {
		ASSERT_EQ(0, run_epoch(self));
	}
	sleep_ms(100);
	EXPECT_EQ(dma + 5 * GATHERED(self), number(COUNTER, "bytes_dma"));
	EXPECT_EQ(cpu, number(COUNTER, "bytes_cpu"));
	ASSERT_EQ(0, put(DEVICE, "engine", "cpu"));
	ASSERT_EQ(0, run_epoch(self));
	sleep_ms(100);
	EXPECT_EQ(dma + 5 * GATHERED(self), number(COUNTER, "bytes_dma"));
	EXPECT_EQ(cpu + GATHERED(self), number(COUNTER, "bytes_cpu"));
}

TEST_F(gather, small_ones_are_not)
{
	long long dma = number(COUNTER, "bytes_dma");

	ASSERT_EQ(0, put_number(DEVICE, "dma_min_bytes", 1 << 30));
	ASSERT_EQ(0, run_epoch(self));
	EXPECT_EQ(dma, number(COUNTER, "bytes_dma"));
}

/* Rows with gaps, rows that are no whole lines, rows that are too short. */
TEST_F(gather, every_shape_arrives)
{
	static const struct shape shapes[] = {
		{ 4096, 64 }, { 4096, 4 }, { 5003, 0 }, { 1500, 8 }, { 7, 0 },
		{ 16, 48 }, { 65536 + 16, 0 },
	};

	FOR_EACH(i, sizeof(shapes) / sizeof(*shapes)) {
		gather_close(self);
		ASSERT_EQ(0, gather_open(self, AG_DIRECT, shapes[i]));
		FOR_EACH(k, 2) {
			ASSERT_EQ(0, run_epoch(self)) {
				TH_LOG("%u columns, gap %u", shapes[i].cols,
				       shapes[i].gap);
			}
		}
	}
}

/* The n-th copy goes wrong, in each way, for each n of an epoch. */
TEST_F_TIMEOUT(gather, what_goes_wrong_is_made_good, 120)
{
	long long errors, copies = number(TESTDMA, "copies");

	ASSERT_EQ(0, run_epoch(self));
	copies = number(TESTDMA, "copies") - copies;
	ASSERT_GT(copies, 8);
	FOR_EACH(kind, KIND_LOST) {
		put_number(TESTDMA, "fail_kind", kind);
		FOR_EACH(n, 8) {
			errors = number(COUNTER, "dma_errors");
			put_number(TESTDMA, "fail_in", 1 + n * copies / 8);
			ASSERT_EQ(0, run_epoch(self)) {
				TH_LOG("kind %u, copy %u", kind, n);
			}
			ASSERT_EQ(0, number(TESTDMA, "fail_in"));
			ASSERT_EQ(errors + 1, number(COUNTER, "dma_errors"));
		}
	}
}

TEST_F(gather, what_never_ends_is_taken_back)
{
	long long late = number(COUNTER, "dma_timeouts");

	if (!stoppable())
		SKIP(return, "its driver can't end transfers");
	put_number(TESTDMA, "fail_kind", KIND_LOST);
	put_number(DEVICE, "dma_timeout_ms", 50);
	FOR_EACH(n, 3) {
		put_number(TESTDMA, "fail_in", 1 + n * 7);
		ASSERT_EQ(0, run_epoch(self));
	}
	EXPECT_GT(number(COUNTER, "dma_timeouts"), late);
}

/* Completions in another order, and little room. */
TEST_F(gather, any_order_and_little_room)
{
	put_number(TESTDMA, "reverse", 1);
	ASSERT_EQ(0, run_epoch(self));
	FOR_EACH(room, 5) {
		put_number(TESTDMA, "room", room);
		ASSERT_EQ(0, run_epoch(self)) {
			TH_LOG("room %u", room);
		}
	}
}

/* A channel that always fails is given up, and taken again when told so. */
TEST_F(gather, a_bad_channel_is_given_up)
{
	long long dma;

	put_number(TESTDMA, "fail_kind", KIND_ERROR);
	put_number(TESTDMA, "fail_every", 1);
	FOR_EACH(i, 6) {
		ASSERT_EQ(0, run_epoch(self));
	}
	calm();
	sleep_ms(200);
	dma = number(COUNTER, "bytes_dma");
	ASSERT_EQ(0, run_epoch(self));
	EXPECT_EQ(dma, number(COUNTER, "bytes_dma"));
	ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine"));
	ASSERT_EQ(0, run_epoch(self));
	sleep_ms(100);
	EXPECT_EQ(dma + GATHERED(self), number(COUNTER, "bytes_dma"));
}

/* The device goes while it copies, and comes back. */
TEST_F(gather, the_device_goes)
{
	long long gone = number(COUNTER, "dma_removed");
	long long dma;

	put_number(TESTDMA, "delay_us", stoppable() ? 3000 : 200);
	FOR_EACH(i, 3) {
		ASSERT_EQ(0, begin(self, false));
		sleep_ms(10 * i);
		ASSERT_EQ(0, put(DRIVER, "unbind", "t3_testdma"));
		ASSERT_EQ(0, end(self));
		ASSERT_EQ(0, check_gathered(self));
		EXPECT_GT(number(COUNTER, "dma_removed"), gone);
		ASSERT_EQ(0, run_epoch(self));
		ASSERT_EQ(0, put(DRIVER, "bind", "t3_testdma"));
		ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine"));
	}
	calm();
	dma = number(COUNTER, "bytes_dma");
	ASSERT_EQ(0, run_epoch(self));
	sleep_ms(100);
	EXPECT_EQ(dma + GATHERED(self), number(COUNTER, "bytes_dma"));
}

/* The administrator changes the engine while channels are at work. */
TEST_F(gather, the_engine_changes)
{
	static const char * const name[] = { "cpu", "dmaengine_sums",
					     "dmaengine" };

	put_number(TESTDMA, "delay_us", stoppable() ? 1000 : 100);
	FOR_EACH(i, 9) {
		ASSERT_EQ(0, begin(self, false));
		ASSERT_EQ(0, put(DEVICE, "engine", name[i % 3]));
		ASSERT_EQ(0, end(self));
		ASSERT_EQ(0, check_gathered(self));
	}
}

/*
 * A break does not wait for a slow channel, and the memory is ours again: a
 * transfer that still ran would write to it.
 */
TEST_F(gather, a_break_takes_it_back)
{
	__u64 before;

	put_number(TESTDMA, "delay_us", stoppable() ? 300000 : 200);
	ASSERT_EQ(0, begin(self, false));
	before = now_ns();
	ASSERT_EQ(0, group_abort(self->w.group));
	EXPECT_EQ(-ECANCELED, end(self));
	EXPECT_LT(now_ns() - before, BOUND_NS);
	FOR_EACH(r, RANKS)
		memset(self->memory[r], 0x77, self->bytes);
	FOR_EACH(r, RANKS) {
		plan_del(self->w.member[r], 0);
		EXPECT_EQ(0, region_del(self->w.member[r],
					self->part[r]->region[0].region));
	}
	sleep_ms(700);
	FOR_EACH(r, RANKS)
		FOR_EACH(i, self->bytes) {
			ASSERT_EQ(0x77, self->memory[r][i]) {
				TH_LOG("rank %u, byte %u", r, i);
			}
		}
}

/* A rank is killed while a channel works for it and its peer. */
TEST_F(gather, a_rank_is_killed)
{
	struct part *part = calloc(1, sizeof(*part));
	pid_t pid;
	int fd[2];
	char c;

	gather_close(self);
	put_number(TESTDMA, "delay_us", stoppable() ? 100000 : 200);
	ASSERT_EQ(0, world_open(&self->w, 1));
	ASSERT_EQ(0, pipe(fd));
	pid = fork_child();
	if (!pid) {
		MUST(!gather_open(self, AG_DIRECT, self->shape));
		MUST(!begin(self, false));
		MUST(write(fd[1], "x", 1) == 1);
		pause();
	}
	ASSERT_EQ(1, read(fd[0], &c, 1));
	kill(pid, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, reap(pid));
	free(part);
}

/* --- sums ------------------------------------------------------------------- */

static int check_summed(struct _test_data_gather *self)
{
	FOR_EACH(row, BLOCKS * ROWS) {
		__u32 owner = row / ROWS / (BLOCKS / RANKS);
		const __u32 *at = row_of(self, owner, row);

		FOR_EACH(c, self->shape.cols)
			if (at[c] != value(self, 0, row, c) +
				     value(self, 1, row, c))
				return (int)row + 1;
	}
	return 0;
}

static int run_sums(struct _test_data_gather *self)
{
	return begin(self, true) ?: end(self) ?: check_summed(self);
}

TEST_F(gather, sums_read_by_the_channel)
{
	static const struct shape shapes[] = {
		{ 16384, 0 }, { 4096, 64 }, { 5003, 4 }, { 7, 0 },
	};
	long long dma;

	ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine_sums"));
	FOR_EACH(i, sizeof(shapes) / sizeof(*shapes)) {
		gather_close(self);
		ASSERT_EQ(0, gather_open(self, RS_DIRECT, shapes[i]));
		dma = number(COUNTER, "bytes_dma");
		FOR_EACH(k, 2) {
			ASSERT_EQ(0, run_sums(self)) {
				TH_LOG("%u columns", shapes[i].cols);
			}
		}
		if (!i)
			EXPECT_GT(number(COUNTER, "bytes_dma"), dma);
	}
	gather_close(self);
	ASSERT_EQ(0, gather_open(self, RS_DIRECT, shapes[0]));
	FOR_EACH(kind, KIND_LOST) {
		put_number(TESTDMA, "fail_kind", kind);
		FOR_EACH(n, 4) {
			put_number(TESTDMA, "fail_in", 1 + n * 5);
			ASSERT_EQ(0, run_sums(self));
		}
	}
}

/* --- many ------------------------------------------------------------------ */

/* All at once: faults, little room, delays, in an order that is always the same. */
TEST_F_TIMEOUT(gather, many_epochs, 120)
{
	unsigned int seed = 1;

	put_number(DEVICE, "dma_timeout_ms", 20);
	FOR_EACH(i, scaled(150)) {
		put_number(TESTDMA, "fail_kind",
			   rand_r(&seed) % (stoppable() ? KIND_SILENT :
					    KIND_LOST));
		put_number(TESTDMA, "fail_in", rand_r(&seed) % 100);
		put_number(TESTDMA, "delay_us", rand_r(&seed) % 3 ? 0 : 200);
		put_number(TESTDMA, "room", 1 + rand_r(&seed) % 200);
		put_number(TESTDMA, "reverse", rand_r(&seed) % 2);
		ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine"));
		ASSERT_EQ(0, run_epoch(self)) {
			TH_LOG("epoch %u", i);
		}
	}
}

TEST_HARNESS_MAIN
