// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core: its rules one by one, and programs at random against the
 * reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "play.h"

#define WORLDS_DEFAULT	100000

static void count_fault(u32 *seen, u32 error)
{
	static const u32 errors[] = {
		EINVAL, ERANGE, ENOTUNIQ, EMSGSIZE, EPROTOTYPE, EACCES, ELOOP,
		EROFS, EADDRINUSE, EBADMSG, E2BIG,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i] == error)
			*seen |= 1 << i;
}

/* One epoch of all ranks, events in an order drawn at random. */
struct course {
	struct play *p;
	struct rng *rng;
	u32 epoch[WORLD_RANKS];
	u32 left[WORLD_RANKS];
	u32 order[WORLD_RANKS][WORLD_BLOCKS];
};

/* Untracked blocks are written before arming, as their contract says. */
static void course_arm(struct course *c, u32 rank)
{
	struct world_rank *me = &c->p->w->rank[rank];
	u32 epoch, block, b;

	for (b = 0; b < me->prog.blocks; b++)
		if (me->block[b].flags && !me->block[b].tiles)
			world_produce(c->p->w, rank, b, c->epoch[rank] + 1);
	assert_int_equal(t3_machine_arm(&c->p->m, rank, &epoch, &block), 0);
	assert_int_equal(epoch, ++c->epoch[rank]);
	c->left[rank] = 0;
	for (b = 0; b < me->prog.blocks; b++) {
		u32 at = rng_below(c->rng, c->left[rank] + 1);

		if (!me->block[b].tiles)
			continue;
		c->order[rank][c->left[rank]++] = c->order[rank][at];
		c->order[rank][at] = b;
	}
}

static void course_check(struct course *c, struct world *expected, u32 rank)
{
	assert_memory_equal(c->p->w->rank[rank].memory,
			    expected->rank[rank].memory, WORLD_BYTES);
}

/* One step of one rank; false where it can't move. */
static bool course_step(struct course *c, u32 rank, u32 last,
			struct world *expected)
{
	u32 epoch = c->epoch[rank];

	if (c->left[rank]) {
		play_produce(c->p, rank, c->order[rank][--c->left[rank]], epoch);
		return true;
	}
	if (c->p->retired[rank] != epoch || epoch == last)
		return false;
	course_arm(c, rank);
	if (c->p->retired[rank] == c->epoch[rank])
		course_check(c, &expected[c->epoch[rank] - last + 2], rank);
	return true;
}

/* Some course through a few epochs; all ranks' bytes at each retirement. */
static void play_course(struct play *p, struct rng *rng, u32 first, u32 epochs,
			struct world *expected)
{
	struct course c = { .p = p, .rng = rng };
	u32 last = first + epochs;
	u32 idle = 0;
	u32 r;

	for (r = 0; r < p->w->ranks; r++)
		c.epoch[r] = first;
	while (idle < 200) {
		u32 before[WORLD_RANKS];
		bool moved;

		memcpy(before, p->retired, sizeof(before));
		if (rng_chance(rng, 50))
			moved = play_run(p);
		else
			moved = course_step(&c, rng_below(rng, p->w->ranks), last,
					    expected);
		idle = moved ? 0 : idle + 1;
		for (r = 0; r < p->w->ranks; r++)
			if (before[r] != p->retired[r])
				course_check(&c, &expected[p->retired[r] - last + 2], r);
	}
	for (r = 0; r < p->w->ranks; r++)
		assert_int_equal(p->retired[r], last);
}

static bool plain_dtypes(const struct world *w)
{
	u32 r, g;

	for (r = 0; r < w->ranks; r++)
		for (g = 0; g < w->rank[r].prog.grids; g++)
			if (w->rank[r].grid[g].dtype != T3_DTYPE_F32 &&
			    w->rank[r].grid[g].dtype != T3_DTYPE_I32)
				return false;
	return true;
}

static void play_world(struct play *p, struct world *w, struct rng *rng)
{
	static struct world expected[3];
	u32 first = rng_chance(rng, 50) ? 0 : -(u32)rng_below(rng, 4);
	u32 e, t;

	for (e = 0; e < 3; e++) {
		expected[e] = e ? expected[e - 1] : *w;
		/* A copy points to its own arrays. */
		for (t = 0; t < w->ranks; t++) {
			struct world_rank *me = &expected[e].rank[t];
			u32 g;

			me->prog.grid = me->grid;
			me->prog.block = me->block;
			me->prog.trigger = me->trigger;
			me->prog.source = me->source;
			for (g = 0; g < WORLD_GRIDS; g++) {
				me->grid[g].row_cuts = me->row_cuts[g];
				me->grid[g].col_cuts = me->col_cuts[g];
			}
		}
		world_epoch(&expected[e], first + e + 1);
	}
	play_start(p, first);
	play_course(p, rng, first, 3, expected);
	for (t = 0; t < p->graph.triggers; t++)
		assert_int_equal(p->fired[t], 3);
}

static void test_worlds(void **state)
{
	const char *wish = getenv("T3_TEST_WORLDS");
	u32 worlds = wish ? strtoul(wish, NULL, 0) : WORLDS_DEFAULT;
	static struct world w;
	u32 live = 0;
	u32 seen = 0;
	u32 i;

	(void)state;
	for (i = 0; i < worlds; i++) {
		struct rng rng = { i };
		struct t3_verdict v;
		struct play p;
		int ret;

		world_make(&w, &rng, 50);
		ret = play_verdict(&p, &w, &v);
		if (!!ret != world_any_fault(&w) || (ret && !world_fault(&w, &v)))
			fail_msg("world %u: error %u rank %u trigger %u detail %u",
				 i, v.error, v.rank, v.trigger, v.detail);
		if (ret) {
			count_fault(&seen, -ret);
			continue;
		}
		live++;
		if (plain_dtypes(&w))
			play_world(&p, &w, &rng);
		play_end(&p);
	}
	print_message("# %u worlds, %u live\n", worlds, live);
	assert_true(live > worlds / 4);
	/* Every cause has come up: else the dice are loaded. */
	if (worlds >= 10000)
		assert_int_equal(seen, (1 << 11) - 1);
}

/* Ring reduce-scatter of two ranks, one block a shard, two tiles a block. */
static void make_pair(struct world *w)
{
	u32 r, s;

	memset(w, 0, sizeof(*w));
	w->ranks = 2;
	for (r = 0; r < 2; r++) {
		struct world_rank *me = &w->rank[r];

		me->row_cuts[0][1] = 1;
		me->row_cuts[0][2] = 2;
		me->col_cuts[0][1] = 8;
		me->grid[0] = (struct t3_grid) {
			.dtype = T3_DTYPE_I32, .block_rows = 2, .block_cols = 1,
			.row_cuts = me->row_cuts[0], .col_cuts = me->col_cuts[0],
			.base = WORLD_BASE, .row_stride = 32,
		};
		for (s = 0; s < 2; s++)
			me->block[s] = (struct t3_plan_block) {
				.readers = 3, .tiles = 2,
				.flags = T3_BLOCK_PRODUCED };
		me->trigger[0] = (struct t3_trigger) {
			.op = T3_OP_SUM, .block = r, .seq = 2, .sources = 2 };
		for (s = 0; s < 2; s++)
			me->source[s] = (struct t3_source) {
				.rank = s, .block = r, .at = 1 };
		me->prog = (struct t3_program) {
			.grids = 1, .blocks = 2, .triggers = 1, .sources = 2,
			.grid = me->grid, .block = me->block,
			.trigger = me->trigger, .source = me->source,
		};
	}
}

struct pair {
	struct world w;
	struct play p;
};

static int pair_setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	struct t3_verdict v;

	make_pair(&pair->w);
	if (play_verdict(&pair->p, &pair->w, &v))
		return -1;
	play_start(&pair->p, 0);
	*state = pair;
	return 0;
}

static int pair_teardown(void **state)
{
	struct pair *pair = *state;

	play_end(&pair->p);
	free(pair);
	return 0;
}

static int arm(struct play *p, u32 rank)
{
	u32 epoch, block;

	return t3_machine_arm(&p->m, rank, &epoch, &block);
}

static void test_arm_twice_is_busy(void **state)
{
	struct play *p = &((struct pair *)*state)->p;

	assert_int_equal(arm(p, 0), 0);
	assert_int_equal(arm(p, 0), -EBUSY);
}

static void test_tiles_before_arm(void **state)
{
	struct play *p = &((struct pair *)*state)->p;
	u32 epoch, block;

	assert_int_equal(t3_machine_tiles(&p->m, 0, 1, 1), -EPROTO);
	assert_int_equal(p->tiles[0][1], 0);
	/* Counted behind the machine's back: arming finds it. */
	p->tiles[0][1] = 1;
	assert_int_equal(t3_machine_arm(&p->m, 0, &epoch, &block), -EPROTO);
	assert_int_equal(block, 1);
	assert_int_equal(t3_machine_armed(&p->m, 0), 0);
}

static void test_excess_tiles(void **state)
{
	struct play *p = &((struct pair *)*state)->p;

	arm(p, 0);
	assert_int_equal(t3_machine_tiles(&p->m, 0, 0, 3), -EPROTO);
	assert_int_equal(t3_machine_tiles(&p->m, 0, 0, 1), 0);
	assert_int_equal(p->count[0][0], 0);
	assert_int_equal(t3_machine_tiles(&p->m, 0, 0, 2), -EPROTO);
	assert_int_equal(t3_machine_tiles(&p->m, 0, 0, 1), 0);
	assert_int_equal(p->count[0][0], 1);
	assert_int_equal(t3_machine_tiles(&p->m, 0, 0, 1), -EPROTO);
	assert_int_equal(p->tiles[0][0], 2);
}

/* An event that comes between arming's steps is seen by arming. */
static void test_arm_looks(void **state)
{
	struct play *p = &((struct pair *)*state)->p;

	p->w->rank[0].block[0].tiles = 0;
	p->graph.tiles[0] = 0;
	p->tiles[0][0] = 0;
	arm(p, 0);
	assert_int_equal(p->count[0][0], 1);
	assert_int_equal(p->count[0][1], 0);
}

static void pair_epoch(struct play *p, u32 epoch)
{
	u32 r, b;

	for (r = 0; r < 2; r++)
		assert_int_equal(arm(p, r), 0);
	for (b = 0; b < 2; b++)
		for (r = 0; r < 2; r++)
			play_produce(p, r, b, epoch);
	while (play_run(p))
		;
}

static void test_retires_after_readers(void **state)
{
	struct play *p = &((struct pair *)*state)->p;
	u32 b;

	arm(p, 0);
	for (b = 0; b < 2; b++)
		play_produce(p, 0, b, 1);
	/* Rank 0's own update waits for rank 1's production. */
	assert_int_equal(t3_machine_retired(&p->m, 0, 1), 0);
	arm(p, 1);
	play_produce(p, 1, 0, 1);
	assert_true(play_run(p));
	assert_int_equal(p->count[0][0], 2);
	/* Its result is final, but rank 1 still reads block 1. */
	assert_int_equal(t3_machine_retired(&p->m, 0, 1), 0);
	play_produce(p, 1, 1, 1);
	assert_true(play_run(p));
	assert_int_equal(t3_machine_retired(&p->m, 0, 1), 1);
	assert_int_equal(t3_machine_retired(&p->m, 1, 1), 1);
}

static void test_many_epochs_over_the_wrap(void **state)
{
	struct play *p = &((struct pair *)*state)->p;
	u32 i;

	t3_machine_start(&p->m, -50U);
	for (i = 0; i < 100; i++) {
		pair_epoch(p, i);
		assert_int_equal(t3_machine_retired(&p->m, 0, i - 49), 1);
		assert_int_equal(t3_machine_retired(&p->m, 0, i - 48), 0);
	}
	assert_int_equal(p->fired[0], 100);
}

static void test_break(void **state)
{
	struct play *p = &((struct pair *)*state)->p;

	pair_epoch(p, 1);
	arm(p, 0);
	p->broken = 1;
	t3_machine_break(&p->m);
	assert_int_equal(t3_machine_retired(&p->m, 0, 1), 1);
	assert_int_equal(t3_machine_retired(&p->m, 0, 2), -EOWNERDEAD);
	assert_int_equal(arm(p, 1), -EOWNERDEAD);
	assert_false(play_run(p));
	assert_int_equal(p->inflight, 0);
	/* Even where the last edge comes now, the epoch does not retire. */
	play_produce(p, 0, 0, 2);
	play_produce(p, 0, 1, 2);
	assert_int_equal(t3_machine_retired(&p->m, 0, 2), -EOWNERDEAD);
}

static void test_lacks(void **state)
{
	struct play *p = &((struct pair *)*state)->p;
	struct t3_lack lack;

	arm(p, 0);
	assert_true(t3_machine_lacks(&p->m, 0, &lack));
	assert_int_equal(lack.rank, 1);
	assert_int_equal(lack.block, T3_NONE);
	arm(p, 1);
	play_produce(p, 0, 0, 1);
	assert_true(t3_machine_lacks(&p->m, 0, &lack));
	assert_int_equal(lack.rank, 0);
	assert_int_equal(lack.block, 1);
	assert_int_equal(lack.have, 0);
	assert_int_equal(lack.need, 1);
	play_produce(p, 0, 1, 1);
	play_produce(p, 1, 0, 1);
	play_produce(p, 1, 1, 1);
	assert_true(t3_machine_lacks(&p->m, 0, &lack));
	assert_int_equal(lack.rank, 0);
	assert_int_equal(lack.block, 0);
	assert_int_equal(lack.have, 1);
	assert_int_equal(lack.need, 2);
	while (play_run(p))
		;
	assert_false(t3_machine_lacks(&p->m, 0, &lack));
}

static void test_too_large(void **state)
{
	static struct world w;
	struct t3_verdict v;
	struct play p;

	(void)state;
	make_pair(&w);
	w.rank[1].col_cuts[0][1] = T3_MAX_BLOCK_BYTES / 4 + 1;
	w.rank[1].grid[0].row_stride = T3_MAX_BLOCK_BYTES + 4;
	assert_int_equal(play_verdict(&p, &w, &v), -E2BIG);
	assert_int_equal(v.rank, 1);
	make_pair(&w);
	w.rank[0].prog.triggers = T3_MAX_TRIGGERS + 1;
	assert_int_equal(play_verdict(&p, &w, &v), -E2BIG);
	make_pair(&w);
	w.rank[0].grid[0].block_rows = 1 << 16;
	w.rank[0].grid[0].block_cols = 1 << 17;
	assert_int_equal(play_verdict(&p, &w, &v), -E2BIG);
}

static void test_needs(void **state)
{
	struct play *p = &((struct pair *)*state)->p;

	assert_int_equal(p->graph.needs[0], 3);
	assert_int_equal(p->graph.needs[1], 3);
	assert_int_equal(p->graph.retires[0], 3);
}

#define PAIR_TEST(f)	cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(test_arm_twice_is_busy),
		PAIR_TEST(test_tiles_before_arm),
		PAIR_TEST(test_excess_tiles),
		PAIR_TEST(test_arm_looks),
		PAIR_TEST(test_retires_after_readers),
		PAIR_TEST(test_many_epochs_over_the_wrap),
		PAIR_TEST(test_break),
		PAIR_TEST(test_lacks),
		PAIR_TEST(test_needs),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_worlds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
