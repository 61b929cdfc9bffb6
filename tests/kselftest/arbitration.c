// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Arbitration: each policy gives the same results, who is held back is let go,
 * and all of it can be changed while plans run.
 */
#include "t3_kselftest.h"
#include "knob_files.h"

#include <limits.h>
#include <pthread.h>

#define DEVICE	"/sys/class/misc/t3/"
#define COUNTER	DEVICE "counters/"
#define TESTDMA	"/sys/kernel/debug/t3_testdma/"

#define RANKS	2
#define BLOCKS	16		/* of a region */
#define COLS	8192		/* of i32: a block's elements */
#define BYTES	(BLOCKS * COLS * 4)

static const char * const policies[] = { "round_robin", "compute_first",
					 "dma_first" };

/* Returns 0 or the negative errno of the write. */
static long long number(const char *folder, const char *name)
{
	char path[PATH_MAX], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return strtoll(text, NULL, 10);
}

FIXTURE(policy)
{
	struct world w;
	struct part *part[RANKS];
	__u32 *memory[RANKS];
	struct t3_plan_status *status[RANKS];
	__u32 epoch;
	bool stop;
};

static int open_plan(struct _test_data_policy *self, enum collective what)
{
	__u32 region = 0;
	int ret = world_open(&self->w, RANKS);

	FOR_EACH(r, RANKS) {
		self->memory[r] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		self->part[r] = calloc(1, sizeof(*self->part[r]));
		if (!ret)
			ret = region_add(self->w.member[r], self->memory[r],
					 T3_DTYPE_I32, BLOCKS, COLS * 4,
					 &region);
		part_init(self->part[r], 0, 1);
		part_region(self->part[r], region, BLOCKS, COLS, BLOCKS, 1);
		part_collective(self->part[r], what, r, RANKS, 1);
	}
	ret = ret ?: world_plan(&self->w, self->part, NULL);
	FOR_EACH(r, RANKS)
		self->status[r] = ret ? NULL :
				  part_map_status(self->w.member[r],
						  self->part[r]);
	return ret;
}

FIXTURE_SETUP(policy)
{
	if (geteuid())
		SKIP(_exit(SKIPPED), "not root");
	self->epoch = 0;
	self->stop = false;
	ASSERT_EQ(0, open_plan(self, RS_DIRECT));
}

static void close_plan(struct _test_data_policy *self)
{
	world_close(&self->w);
	FOR_EACH(r, RANKS) {
		if (self->status[r])
			munmap(self->status[r], self->part[r]->add.status_bytes);
		munmap(self->memory[r], BYTES);
		free(self->part[r]);
	}
}

FIXTURE_TEARDOWN(policy)
{
	put(DEVICE, "arbitration", "compute_first");
	put(DEVICE, "inflight_max_bytes", "0");
	put(DEVICE, "starve_us", "2000");
	close_plan(self);
}

static int arm_all(struct _test_data_policy *self)
{
	self->epoch++;
	FOR_EACH(r, RANKS) {
		int ret;

		FOR_EACH(i, BLOCKS * COLS)
			self->memory[r][i] = self->epoch * 77 + i * (r + 1);
		ret = plan_arm(self->w.member[r], 0);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Some spinning, as a producer does. */
static void compute(unsigned int n)
{
	while (n--)
		__asm__ volatile ("" ::: "memory");
}

/* The first blocks come fast, the others slowly: the producers are behind. */
static int produce_all(struct _test_data_policy *self)
{
	FOR_EACH(b, BLOCKS)
		FOR_EACH(r, RANKS) {
			int ret = notify_one(self->w.member[r], 0, b, 1);

			if (ret)
				return ret;
			compute(b < BLOCKS / 2 ? 10 : 20000);
		}
	return 0;
}

static int check_sums(struct _test_data_policy *self)
{
	FOR_EACH(i, BLOCKS * COLS) {
		__u32 owner = i / COLS / (BLOCKS / RANKS);

		if (self->memory[owner][i] != 2 * self->epoch * 77 + i * 3)
			return (int)(i / COLS) + 1;
	}
	return 0;
}

static int run_epoch(struct _test_data_policy *self)
{
	int ret = arm_all(self) ?: produce_all(self);

	FOR_EACH(r, RANKS)
		ret = ret ?: plan_wait_epoch(self->w.member[r], 0, self->epoch,
					     BOUND_NS, NULL);
	return ret ?: check_sums(self);
}

TEST_F(policy, nonsense_is_refused)
{
	static const char * const bad[] = { "\n", "0", "compute", "compute_first2",
					    "round_robin dma_first" };

	FOR_EACH(i, sizeof(bad) / sizeof(*bad)) {
		EXPECT_EQ(-EINVAL, put(DEVICE, "arbitration", bad[i])) {
			TH_LOG("%s", bad[i]);
		}
	}
	FOR_EACH(i, 3) {
		EXPECT_EQ(0, put(DEVICE, "arbitration", policies[i]));
	}
}

TEST_F(policy, all_give_the_same)
{
	static const char * const most[] = { "0", "1", "65536" };

	FOR_EACH(i, 3)
		FOR_EACH(k, 3) {
			ASSERT_EQ(0, put(DEVICE, "arbitration", policies[i]));
			ASSERT_EQ(0, put(DEVICE, "inflight_max_bytes", most[k]));
			FOR_EACH(e, 4) {
				ASSERT_EQ(0, run_epoch(self)) {
					TH_LOG("%s, %s", policies[i], most[k]);
				}
			}
		}
}

static void *change(void *arg)
{
	struct _test_data_policy *self = arg;
	static const char * const us[] = { "1", "200", "1000000" };
	static const char * const n[] = { "1", "8" };

	for (unsigned int i = 0; !__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE);
	     i++) {
		put(DEVICE, "arbitration", policies[i % 3]);
		put(DEVICE, "starve_us", us[i / 3 % 3]);
		put(DEVICE, "inflight_max_bytes", i % 2 ? "1" : "0");
		put(DEVICE, "workers", n[i / 5 % 2]);
	}
	return NULL;
}

TEST_F_TIMEOUT(policy, changed_all_the_time, 120)
{
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, change, self));
	FOR_EACH(e, scaled(100)) {
		EXPECT_EQ(0, run_epoch(self)) {
			TH_LOG("epoch %u", e);
		}
	}
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	put(DEVICE, "workers", "8");
}

/*
 * One transfer is in flight and does not end; the next is held back, since the
 * producers are behind, and then runs all the same.
 */
TEST_F(policy, held_back_and_let_go)
{
	long long held = number(COUNTER, "held_back");
	__u64 end;

	if (number(TESTDMA, "room") < 0)
		SKIP(return, "no t3_testdma");
	close_plan(self);
	ASSERT_EQ(0, put(DEVICE, "inflight_max_bytes", "1"));
	ASSERT_EQ(0, put(DEVICE, "dma_min_bytes", "4096"));
	ASSERT_EQ(0, put(DEVICE, "engine", "dmaengine"));
	ASSERT_EQ(0, put(DEVICE, "dma_timeout_ms", "60000"));
	ASSERT_EQ(0, open_plan(self, AG_DIRECT));
	ASSERT_EQ(0, put(TESTDMA, "delay_us", "5000000"));
	ASSERT_EQ(0, arm_all(self));
	/* The pace of the first four, of 16. */
	FOR_EACH(b, 4) {
		ASSERT_EQ(0, notify_one(self->w.member[0], 0, b, 1));
	}
	ASSERT_EQ(0, put(DEVICE, "dma_min_bytes", "1073741824"));
	sleep_ms(300);
	ASSERT_EQ(0, notify_one(self->w.member[0], 0, 4, 1));
	end = now_ns() + BOUND_NS / 4;
	while (!__atomic_load_n((__u32 *)((char *)self->status[1] +
				self->status[1]->count_offset) + 4,
				__ATOMIC_ACQUIRE)) {
		ASSERT_LT(now_ns(), end);
		sleep_ms(1);
	}
	EXPECT_GT(number(COUNTER, "held_back"), held);
	EXPECT_EQ(0, group_abort(self->w.group));
	put(TESTDMA, "delay_us", "0");
	put(DEVICE, "engine", "cpu");
	put(DEVICE, "dma_min_bytes", "65536");
	put(DEVICE, "dma_timeout_ms", "1000");
}

TEST_HARNESS_MAIN
