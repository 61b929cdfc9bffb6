// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that hammer the machine: a thread a rank arms, produces, waits and
 * compares; others only run triggers. Under TSan this shows that every byte
 * that a trigger or a consumer touches is ordered by the machine's counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <cmocka.h>

#include "play.h"

#define EPOCHS		16
#define WORLDS_DEFAULT	400
#define EXECUTORS	2
#define PATIENCE_S	60

/**
 * struct hammer - one world under the hammer
 * @expected: [EPOCHS] its memory after each epoch, constant
 * @first: the epoch before the first
 * @stop: the ranks are through; atomic
 * @wrong: something was; atomic
 */
struct hammer {
	struct play p;
	struct world w;
	struct world expected[EPOCHS];
	u32 first;
	u32 stop;
	u32 wrong;
};

struct hammer_rank {
	struct hammer *h;
	u32 rank;
};

static u64 seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Wait for retirement, running what there is. */
static bool hammer_wait(struct hammer *h, u32 rank, u32 epoch)
{
	u64 end = seconds() + PATIENCE_S;
	u32 spins = 0;

	while (t3_machine_retired(&h->p.m, rank, epoch) != 1) {
		if (play_run(&h->p))
			continue;
		sched_yield();
		if (!(++spins % 1024) &&
		    (seconds() > end || t3_load_acquire(&h->wrong)))
			return false;
	}
	return true;
}

static bool hammer_epoch(struct hammer *h, u32 rank, u32 e, struct rng *rng)
{
	struct world_rank *me = &h->w.rank[rank];
	u32 blocks = me->prog.blocks;
	u32 start = rng_below(rng, blocks);
	u32 epoch, block, b;

	for (b = 0; b < blocks; b++)
		if (me->block[b].flags && !me->block[b].tiles)
			world_produce(&h->w, rank, b, h->first + e + 1);
	if (t3_machine_arm(&h->p.m, rank, &epoch, &block) ||
	    epoch != h->first + e + 1)
		return false;
	for (b = 0; b < blocks; b++) {
		block = (start + b) % blocks;
		if (me->block[block].tiles)
			play_produce(&h->p, rank, block, epoch);
		if (rng_chance(rng, 30))
			play_run(&h->p);
	}
	return hammer_wait(h, rank, epoch) &&
	       !memcmp(me->memory, h->expected[e].rank[rank].memory,
		       WORLD_BYTES);
}

static void *hammer_rank(void *arg)
{
	struct hammer_rank *me = arg;
	struct rng rng = { me->rank };
	u32 e;

	for (e = 0; e < EPOCHS; e++) {
		if (!hammer_epoch(me->h, me->rank, e, &rng)) {
			t3_store_release(&me->h->wrong, e + 1);
			break;
		}
	}
	return NULL;
}

static void *hammer_executor(void *arg)
{
	struct hammer *h = arg;

	while (!t3_load_acquire(&h->stop)) {
		if (!play_run(&h->p))
			sched_yield();
	}
	return NULL;
}

static void hammer_expect(struct hammer *h)
{
	static struct world play;
	u32 e, r, g;

	play = h->w;
	for (r = 0; r < play.ranks; r++) {
		struct world_rank *me = &play.rank[r];

		me->prog.grid = me->grid;
		me->prog.block = me->block;
		me->prog.trigger = me->trigger;
		me->prog.source = me->source;
		for (g = 0; g < WORLD_GRIDS; g++) {
			me->grid[g].row_cuts = me->row_cuts[g];
			me->grid[g].col_cuts = me->col_cuts[g];
		}
	}
	for (e = 0; e < EPOCHS; e++) {
		world_epoch(&play, h->first + e + 1);
		h->expected[e] = play;
	}
}

static void hammer_run(struct hammer *h)
{
	pthread_t rank[WORLD_RANKS], executor[EXECUTORS];
	struct hammer_rank me[WORLD_RANKS];
	u32 i;

	for (i = 0; i < EXECUTORS; i++)
		pthread_create(&executor[i], NULL, hammer_executor, h);
	for (i = 0; i < h->w.ranks; i++) {
		me[i] = (struct hammer_rank) { h, i };
		pthread_create(&rank[i], NULL, hammer_rank, &me[i]);
	}
	for (i = 0; i < h->w.ranks; i++)
		pthread_join(rank[i], NULL);
	t3_store_release(&h->stop, 1);
	for (i = 0; i < EXECUTORS; i++)
		pthread_join(executor[i], NULL);
}

static void test_worlds(void **state)
{
	const char *wish = getenv("T3_TEST_WORLDS");
	u32 worlds = wish ? strtoul(wish, NULL, 0) : WORLDS_DEFAULT;
	struct hammer *h = calloc(1, sizeof(*h));
	u32 seed, t;

	(void)state;
	for (seed = 0; worlds; seed++) {
		struct rng rng = { seed };
		struct t3_verdict v;

		world_make(&h->w, &rng, 0);
		if (h->w.ranks < 2)
			continue;
		assert_int_equal(play_verdict(&h->p, &h->w, &v), 0);
		h->first = seed % 2 ? 0 : -(u32)(EPOCHS / 2);
		h->stop = 0;
		hammer_expect(h);
		play_start(&h->p, h->first);
		hammer_run(h);
		if (h->wrong)
			fail_msg("world %u: epoch %u", seed, h->wrong);
		for (t = 0; t < h->p.graph.triggers; t++)
			assert_int_equal(h->p.fired[t], EPOCHS);
		play_end(&h->p);
		worlds--;
	}
	free(h);
}

/*
 * A rank dies, so to speak: somebody breaks the group while all run. Nobody
 * hangs, and once the breaker has seen no executor, no byte moves any more.
 */
static void test_break(void **state)
{
	static struct world after;
	struct hammer *h = calloc(1, sizeof(*h));
	pthread_t executor[EXECUTORS];
	u32 seed, i, r, b, epoch, block;

	(void)state;
	for (seed = 0; seed < 300; seed++) {
		struct rng rng = { seed };
		struct t3_verdict v;

		world_make(&h->w, &rng, 0);
		assert_int_equal(play_verdict(&h->p, &h->w, &v), 0);
		play_start(&h->p, 0);
		h->stop = 0;
		for (i = 0; i < EXECUTORS; i++)
			pthread_create(&executor[i], NULL, hammer_executor, h);
		for (r = 0; r < h->w.ranks; r++)
			t3_machine_arm(&h->p.m, r, &epoch, &block);
		for (r = 0; r < h->w.ranks; r++)
			for (b = 0; b < h->w.rank[r].prog.blocks; b++)
				if (h->w.rank[r].block[b].tiles)
					play_produce(&h->p, r, b, 1);
		t3_cmpxchg64(&h->p.broken, 0, 1);
		t3_machine_break(&h->p.m);
		while (t3_load_sc(&h->p.inflight))
			sched_yield();
		after = h->w;
		sched_yield();
		for (r = 0; r < h->w.ranks; r++) {
			assert_memory_equal(after.rank[r].memory,
					    h->w.rank[r].memory, WORLD_BYTES);
			assert_int_not_equal(t3_machine_retired(&h->p.m, r, 1), 0);
			assert_int_equal(t3_machine_retired(&h->p.m, r, 2),
					 -EOWNERDEAD);
		}
		t3_store_release(&h->stop, 1);
		for (i = 0; i < EXECUTORS; i++)
			pthread_join(executor[i], NULL);
		play_end(&h->p);
	}
	free(h);
}

/* Many producers of one block: its production is claimed once an epoch. */
struct mates {
	struct play *p;
	u32 epochs;
	u32 wrong;
};

#define MATES	4

static void *mate(void *arg)
{
	struct mates *m = arg;
	u32 e;

	for (e = 1; e <= m->epochs; e++) {
		/* The mates are ahead of nobody: the epoch is armed first. */
		while (!t3_reached(t3_machine_armed(&m->p->m, 0), e))
			sched_yield();
		if (t3_machine_tiles(&m->p->m, 0, 0, 1))
			t3_store(&m->wrong, e);
	}
	return NULL;
}

static void test_mates(void **state)
{
	static struct world w;
	struct mates m = { .epochs = 3000 };
	pthread_t thread[MATES];
	struct t3_verdict v;
	struct play p;
	u32 e, i, epoch, block;

	(void)state;
	w.ranks = 1;
	w.rank[0].row_cuts[0][1] = 1;
	w.rank[0].col_cuts[0][1] = 1;
	w.rank[0].grid[0] = (struct t3_grid) {
		.dtype = T3_DTYPE_I32, .block_rows = 1, .block_cols = 1,
		.row_cuts = w.rank[0].row_cuts[0],
		.col_cuts = w.rank[0].col_cuts[0],
		.base = WORLD_BASE, .row_stride = 4,
	};
	w.rank[0].block[0] = (struct t3_plan_block) {
		.tiles = MATES, .flags = T3_BLOCK_PRODUCED };
	w.rank[0].prog = (struct t3_program) {
		.grids = 1, .blocks = 1,
		.grid = w.rank[0].grid, .block = w.rank[0].block };
	assert_int_equal(play_verdict(&p, &w, &v), 0);
	play_start(&p, 0);
	m.p = &p;
	for (i = 0; i < MATES; i++)
		pthread_create(&thread[i], NULL, mate, &m);
	for (e = 1; e <= m.epochs; e++) {
		assert_int_equal(t3_machine_arm(&p.m, 0, &epoch, &block), 0);
		while (t3_machine_retired(&p.m, 0, e) != 1)
			sched_yield();
		assert_int_equal(t3_load_acquire(&p.count[0][0]), e);
	}
	for (i = 0; i < MATES; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(m.wrong, 0);
	play_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mates),
		cmocka_unit_test(test_worlds),
		cmocka_unit_test(test_break),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
