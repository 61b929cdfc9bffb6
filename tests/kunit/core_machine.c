// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * KUnit: the machine. One thread in a random order, several threads at once,
 * and what a break leaves.
 */
#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/workqueue.h>

#include "core_world.h"

#define EPOCHS	200

/* All blocks hold what all ranks have produced, in fp-free arithmetic. */
static void check_results(struct kunit *test, struct world *w, u32 epoch)
{
	u32 bad = 0;
	u32 r, b, i, k;

	for (b = 0; b < RANKS; b++) {
		for (i = 0; i < ELEMS; i++) {
			u32 sum = 0;

			for (k = 0; k < RANKS; k++)
				sum += (u32)world_value(k, b, i, epoch);
			for (r = 0; r < RANKS; r++)
				bad += (u32)w->rank[r].data[b][i] != sum;
		}
	}
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

static void check_fired(struct kunit *test, struct world *w, u32 epochs)
{
	u32 bad = 0;
	u32 i;

	for (i = 0; i < w->graph.triggers; i++)
		bad += READ_ONCE(w->fired[i]) != epochs;
	KUNIT_EXPECT_EQ(test, bad, 0U);
}

/* Blocks of a rank are produced in order; @done counts tiles. */
static void one_tile(struct kunit *test, struct world *w, u32 rank, u32 *done,
		     u32 epoch)
{
	u32 block = *done / TILES;

	if (*done % TILES == 0)
		world_produce(w, rank, block, epoch);
	++*done;
	KUNIT_EXPECT_EQ(test, 0, t3_machine_tiles(&w->m, rank, block, 1));
}

/* One epoch of one thread: whatever can happen next, at random. */
static void random_epoch(struct kunit *test, struct world *w,
			 struct rnd_state *dice, u32 epoch)
{
	u32 done[RANKS] = { }, armed = 0, steps = 0;
	u32 got, block;

	while (steps++ < 100000) {
		u32 r = prandom_u32_state(dice) % RANKS;

		if (prandom_u32_state(dice) % 3 == 0) {
			world_run(w);
		} else if (!(armed & 1 << r)) {
			KUNIT_ASSERT_EQ(test, 0, t3_machine_arm(&w->m, r, &got,
								&block));
			KUNIT_EXPECT_EQ(test, got, epoch);
			armed |= 1 << r;
		} else if (done[r] < RANKS * TILES) {
			KUNIT_EXPECT_EQ(test, -EBUSY,
					t3_machine_arm(&w->m, r, &got, &block));
			one_tile(test, w, r, &done[r], epoch);
		} else if (t3_machine_retired(&w->m, 0, epoch) == 1 &&
			   t3_machine_retired(&w->m, 1, epoch) == 1 &&
			   t3_machine_retired(&w->m, 2, epoch) == 1 &&
			   t3_machine_retired(&w->m, 3, epoch) == 1) {
			return;
		}
	}
	KUNIT_FAIL(test, "epoch %u did not retire", epoch);
}

static void in_any_order(struct kunit *test, u32 first)
{
	struct world *w = world_make(test);
	struct rnd_state dice;
	u32 e;

	prandom_seed_state(&dice, 3 + first);
	KUNIT_ASSERT_EQ(test, 0, world_build(test, w));
	world_start(test, w, first);
	for (e = 1; e <= EPOCHS; e++) {
		random_epoch(test, w, &dice, first + e);
		check_results(test, w, first + e);
		KUNIT_EXPECT_EQ(test, w->rank[2].retired, first + e);
	}
	check_fired(test, w, EPOCHS);
}

static void one_thread(struct kunit *test)
{
	in_any_order(test, 0);
}

/* Epochs, tiles, counts and edges wrap in the middle. */
static void wrap(struct kunit *test)
{
	in_any_order(test, (u32)-EPOCHS / 2);
}

/* --- several threads ------------------------------------------------------ */

struct rank_work {
	struct work_struct work;
	struct world *w;
	u32 rank;
	u32 first;
	u32 bad;
};

/*
 * A rank: arms, counts tiles in the counters as a producer with a mapping
 * does, runs what is ready, waits for its epoch.
 */
static u32 rank_epoch(struct world *w, u32 rank, u32 epoch)
{
	u32 bad = 0, got, block, b;
	unsigned long end = jiffies + 60 * HZ;

	if (t3_machine_arm(&w->m, rank, &got, &block) || got != epoch)
		return 1;
	for (b = 0; b < RANKS; b++) {
		world_produce(w, rank, b, epoch);
		t3_add32(&w->rank[rank].tiles[b], TILES - 1);
		t3_machine_look(&w->m, rank, b);
		bad += !!t3_machine_tiles(&w->m, rank, b, 1);
		world_run(w);
	}
	while (t3_machine_retired(&w->m, rank, epoch) != 1) {
		if (time_after(jiffies, end))
			return 1;
		if (!world_run(w))
			cond_resched();
	}
	/* One's own results may be read until the next arming. */
	for (b = 0; b < RANKS; b++) {
		u32 sum = 0;
		u32 k;

		for (k = 0; k < RANKS; k++)
			sum += (u32)world_value(k, b, 1, epoch);
		bad += (u32)w->rank[rank].data[b][1] != sum;
	}
	return bad;
}

static void rank_work(struct work_struct *work)
{
	struct rank_work *me = container_of(work, struct rank_work, work);
	u32 e;

	for (e = 1; e <= EPOCHS && !me->bad; e++)
		me->bad = rank_epoch(me->w, me->rank, me->first + e);
}

static void threads(struct kunit *test)
{
	struct world *w = world_make(test);
	struct rank_work *work;
	u32 r;

	work = kunit_kcalloc(test, RANKS, sizeof(*work), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, work);
	KUNIT_ASSERT_EQ(test, 0, world_build(test, w));
	world_start(test, w, (u32)-EPOCHS / 2);
	for (r = 0; r < RANKS; r++) {
		work[r].w = w;
		work[r].rank = r;
		work[r].first = (u32)-EPOCHS / 2;
		INIT_WORK(&work[r].work, rank_work);
		queue_work(system_unbound_wq, &work[r].work);
	}
	for (r = 0; r < RANKS; r++) {
		flush_work(&work[r].work);
		KUNIT_EXPECT_EQ(test, work[r].bad, 0U);
	}
	check_fired(test, w, EPOCHS);
}

/* --- refusals and the break ----------------------------------------------- */

static void protocol(struct kunit *test)
{
	struct world *w = world_make(test);
	u32 epoch, block = T3_NONE;
	struct t3_lack lack;

	w->rank[0].block[0].tiles = 0;
	w->rank[0].block[0].flags = T3_BLOCK_PRODUCED;
	KUNIT_ASSERT_EQ(test, 0, world_build(test, w));
	world_start(test, w, 0);
	KUNIT_EXPECT_EQ(test, -EPROTO, t3_machine_tiles(&w->m, 0, 1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, t3_machine_tiles(&w->m, 0, 0, 1));
	w->rank[0].tiles[2] = 1;	/* early, in the mapping */
	KUNIT_EXPECT_EQ(test, -EPROTO,
			t3_machine_arm(&w->m, 0, &epoch, &block));
	KUNIT_EXPECT_EQ(test, block, 2U);
	w->rank[0].tiles[2] = 0;
	KUNIT_EXPECT_EQ(test, 0, t3_machine_arm(&w->m, 0, &epoch, &block));
	KUNIT_EXPECT_EQ(test, -EPROTO,
			t3_machine_tiles(&w->m, 0, 1, TILES + 1));
	KUNIT_EXPECT_TRUE(test, t3_machine_lacks(&w->m, 0, &lack));
	KUNIT_EXPECT_EQ(test, lack.rank, 1U);
	KUNIT_EXPECT_EQ(test, lack.block, T3_NONE);
}

static void broken(struct kunit *test)
{
	struct world *w = world_make(test);
	struct rnd_state dice;
	u32 epoch, block;

	prandom_seed_state(&dice, 5);
	KUNIT_ASSERT_EQ(test, 0, world_build(test, w));
	world_start(test, w, 0);
	random_epoch(test, w, &dice, 1);
	KUNIT_ASSERT_EQ(test, 0, t3_machine_arm(&w->m, 1, &epoch, &block));
	w->broken = 1;
	t3_machine_break(&w->m);
	KUNIT_EXPECT_FALSE(test, world_run(w));
	KUNIT_EXPECT_EQ(test, 1, t3_machine_retired(&w->m, 1, 1));
	KUNIT_EXPECT_EQ(test, -EOWNERDEAD, t3_machine_retired(&w->m, 1, 2));
	KUNIT_EXPECT_EQ(test, -EOWNERDEAD,
			t3_machine_arm(&w->m, 0, &epoch, &block));
	KUNIT_EXPECT_EQ(test, w->inflight, 0U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(one_thread),
	KUNIT_CASE(wrap),
	KUNIT_CASE(threads),
	KUNIT_CASE(protocol),
	KUNIT_CASE(broken),
	{ }
};

static struct kunit_suite suite = {
	.name = "t3-machine",
	.test_cases = cases,
};

kunit_test_suite(suite);
