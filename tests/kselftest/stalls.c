// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The watchdog: an epoch that nothing moves breaks its group and says what it
 * lacked, in GROUP_INFO, in the log and in the dump; one that something moves
 * lives on for longer than the watchdog waits.
 */
#include "t3_kselftest.h"

#define BYTES		8192
#define SHORT_MS	400
#define SLOW_MS		2000
#define DUMP		"/sys/kernel/debug/t3/state"

FIXTURE(watchdog)
{
	struct world w;
	struct part *part[2];
	char *memory[2];
};

/* A block takes 100 tiles. */
FIXTURE_SETUP(watchdog)
{
	__u32 region;

	ASSERT_EQ(0, world_open(&self->w, 2));
	ASSERT_EQ(0, group_set(self->w.group, SHORT_MS));
	FOR_EACH(r, 2) {
		self->memory[r] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, self->memory[r]);
		self->part[r] = calloc(1, sizeof(*self->part[r]));
		ASSERT_NE(NULL, self->part[r]);
		part_init(self->part[r], 7, 1);
		ASSERT_EQ(0, region_add(self->w.member[r], self->memory[r],
					T3_DTYPE_F32, 2, BYTES / 2, &region));
		part_region(self->part[r], region, 2, BYTES / 2 / 4, 2, 1);
		part_collective(self->part[r], RS_DIRECT, r, 2, 100);
	}
	ASSERT_EQ(0, world_plan(&self->w, self->part, NULL));
}

FIXTURE_TEARDOWN(watchdog)
{
	world_close(&self->w);
	FOR_EACH(r, 2)
		munmap(self->memory[r], BYTES);
}

/* Does a file, or the kernel's log (NULL), have all of these words in a line? */
static bool says(const char *path, const char *a, const char *b)
{
	FILE *f = path ? fopen(path, "r") : popen("dmesg", "r");
	char line[1024];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, a) && strstr(line, b);
	if (f && path)
		fclose(f);
	else if (f)
		pclose(f);
	return found;
}

TEST_F(watchdog, a_rank_that_does_not_arm)
{
	struct t3_group_info info;
	__u32 rank;

	ASSERT_EQ(1, plan_arm(self->w.member[0], 7));
	EXPECT_EQ(-ETIMEDOUT, plan_wait_epoch(self->w.member[0], 7, 1,
					      BOUND_NS, &rank));
	EXPECT_EQ(1, rank);
	ASSERT_EQ(0, group_info(self->w.group, &info));
	EXPECT_EQ(ETIMEDOUT, info.broken);
	EXPECT_EQ(1, info.broken_rank);
	EXPECT_EQ(7, info.broken_slot);
	EXPECT_EQ(T3_NONE, info.broken_block);
}

/* Rank 1 makes half of its block 0, which rank 0 waits for. */
TEST_F(watchdog, a_block_that_is_not_produced)
{
	static const char what[] = "waits for rank 1's block 0, which has 0 of 1 updates";
	struct t3_group_info info;
	__u32 rank;

	/* Tests before this one may have used up what the log takes in 5 s. */
	sleep_ms(6000);
	FOR_EACH(r, 2)
		ASSERT_EQ(1, plan_arm(self->w.member[r], 7));
	FOR_EACH(r, 2)
		ASSERT_EQ(0, notify_one(self->w.member[r], 7, 1, 100));
	ASSERT_EQ(0, notify_one(self->w.member[0], 7, 0, 100));
	ASSERT_EQ(0, notify_one(self->w.member[1], 7, 0, 50));
	EXPECT_EQ(-ETIMEDOUT, plan_wait_epoch(self->w.member[0], 7, 1,
					      BOUND_NS, &rank));
	ASSERT_EQ(0, group_info(self->w.group, &info));
	EXPECT_EQ(ETIMEDOUT, info.broken);
	EXPECT_EQ(info.broken_rank, rank);
	EXPECT_EQ(7, info.broken_slot);
	if (geteuid() || access(DUMP, R_OK))
		SKIP(return, "no debugfs: the sentence is not compared");
	EXPECT_TRUE(says(DUMP, "made no progress", "errno 110"));
	EXPECT_TRUE(says(DUMP, "slot 7: rank ", what));
	/* The log is written by a worker, in its own time. */
	for (__u64 end = now_ns() + BOUND_NS; now_ns() < end; sleep_ms(100))
		if (says(NULL, "made no progress", what))
			return;
	EXPECT_TRUE(says(NULL, "made no progress", what));
}

/* A tile now and then, each way of counting: it goes on, and ends well. */
TEST_F(watchdog, progress_keeps_it_away)
{
	__u32 *tiles = part_map_tiles(self->w.member[1], self->part[1]);

	ASSERT_NE(MAP_FAILED, tiles);
	ASSERT_EQ(0, group_set(self->w.group, SLOW_MS));
	FOR_EACH(r, 2)
		ASSERT_EQ(1, plan_arm(self->w.member[r], 7));
	FOR_EACH(i, 6) {
		sleep_ms(SLOW_MS / 8);
		ASSERT_EQ(0, notify_one(self->w.member[1], 7, 0, 1));
		sleep_ms(SLOW_MS / 8);
		__atomic_fetch_add(&tiles[0], 1, __ATOMIC_RELEASE);
	}
	ASSERT_EQ(0, notify_one(self->w.member[1], 7, 0, 88));
	ASSERT_EQ(0, notify_one(self->w.member[1], 7, 1, 100));
	FOR_EACH(b, 2)
		ASSERT_EQ(0, notify_one(self->w.member[0], 7, b, 100));
	FOR_EACH(r, 2)
		EXPECT_EQ(0, plan_wait_epoch(self->w.member[r], 7, 1, BOUND_NS,
					     NULL));
}

/* Nobody watches what is not armed. */
TEST_F(watchdog, nothing_armed)
{
	struct t3_group_info info;

	sleep_ms(3 * SHORT_MS);
	ASSERT_EQ(0, group_info(self->w.group, &info));
	EXPECT_EQ(0, info.broken);
}

TEST_HARNESS_MAIN
