// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * KUnit: programs, what is refused of them and how, and the small world that
 * the machine's tests use.
 */
#include "core_world.h"
#include "fp_env.h"
#include "reduce.h"
#include "walk.h"

/* --- the world ------------------------------------------------------------ */

static u32 chain_rank(u32 shard, u32 at)
{
	return (shard + 1 + at) % RANKS;
}

static u32 chain_at(u32 shard, u32 rank)
{
	return (rank + 2 * RANKS - shard - 1) % RANKS;
}

static void add_trigger(struct rank *me, u16 op, u32 block, u32 seq)
{
	me->trigger[me->prog.triggers++] = (struct t3_trigger) {
		.op = op, .block = block, .seq = seq,
		.first_source = me->prog.sources,
	};
}

static void add_source(struct rank *me, u32 rank, u32 block, u32 at)
{
	me->trigger[me->prog.triggers - 1].sources++;
	me->source[me->prog.sources++] = (struct t3_source) {
		.rank = rank, .block = block, .at = at,
	};
}

/* A ring's two halves: the sum goes round, then the result does. */
static void make_triggers(struct rank *me, u32 rank, u32 shard)
{
	u32 at = chain_at(shard, rank);

	if (at) {
		add_trigger(me, T3_OP_SUM, shard, 2);
		add_source(me, chain_rank(shard, at - 1), shard, at == 1 ? 1 : 2);
		add_source(me, rank, shard, 1);
	}
	if (at == RANKS - 1)
		return;
	add_trigger(me, T3_OP_COPY, shard, at ? 3 : 2);
	add_source(me, at ? chain_rank(shard, at - 1) : shard, shard,
		   at == 0 || at == 1 ? 2 : 3);
}

static void make_rank(struct rank *me, u32 rank)
{
	u32 i;

	me->prog = (struct t3_program) {
		.grids = 1, .blocks = RANKS, .grid = &me->grid,
		.block = me->block, .trigger = me->trigger,
		.source = me->source,
	};
	me->grid = (struct t3_grid) {
		.dtype = T3_DTYPE_I32, .block_rows = RANKS, .block_cols = 1,
		.row_cuts = me->row_cuts, .col_cuts = me->col_cuts,
		.base = 0x10000, .row_stride = sizeof(me->data[0]),
	};
	me->col_cuts[1] = ELEMS;
	for (i = 0; i < RANKS; i++) {
		me->row_cuts[i + 1] = i + 1;
		me->block[i] = (struct t3_plan_block) {
			.readers = (1 << RANKS) - 1, .tiles = TILES,
			.flags = T3_BLOCK_PRODUCED,
		};
		make_triggers(me, rank, i);
	}
}

struct world *world_make(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 r;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, w);
	for (r = 0; r < RANKS; r++)
		make_rank(&w->rank[r], r);
	return w;
}

int world_check(struct kunit *test, struct world *w)
{
	void *scratch;
	u32 r;
	int ret = 0;

	for (r = 0; r < RANKS && !ret; r++) {
		const struct t3_program *prog = &w->rank[r].prog;

		scratch = kunit_kzalloc(test, t3_program_scratch(prog),
					GFP_KERNEL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, scratch);
		ret = t3_program_check(prog, r, RANKS, scratch, &w->verdict);
		KUNIT_EXPECT_EQ(test, -ret, (int)w->verdict.error);
		kunit_kfree(test, scratch);
	}
	return ret;
}

int world_build(struct kunit *test, struct world *w)
{
	const struct t3_program *prog[RANKS];
	u64 bytes, scratch_bytes;
	void *mem, *scratch;
	u32 r;
	int ret;

	ret = world_check(test, w);
	if (ret)
		return ret;
	for (r = 0; r < RANKS; r++)
		prog[r] = &w->rank[r].prog;
	bytes = t3_graph_bytes(prog, RANKS, &scratch_bytes);
	KUNIT_ASSERT_GT(test, bytes, 0ULL);
	mem = kunit_kzalloc(test, bytes, GFP_KERNEL);
	scratch = kunit_kzalloc(test, scratch_bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mem);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, scratch);
	ret = t3_graph_build(&w->graph, prog, RANKS, mem, scratch,
			     &w->verdict);
	kunit_kfree(test, scratch);
	return ret;
}

static struct world *world_of(struct t3_machine *m)
{
	return container_of(m, struct world, m);
}

static void ready(struct t3_machine *m, u32 trigger)
{
	struct world *w = world_of(m);

	t3_add32(&w->fired[trigger], 1);
	t3_ready_push(w->ready, w->mask, trigger);
}

static void retired(struct t3_machine *m, u32 rank, u32 epoch)
{
	t3_store_release(&world_of(m)->rank[rank].retired, epoch);
}

static const struct t3_machine_ops world_ops = {
	.ready = ready,
	.retired = retired,
};

void world_start(struct kunit *test, struct world *w, u32 epoch)
{
	u32 triggers = w->graph.triggers;
	void *mem;
	u32 r;

	mem = kunit_kzalloc(test, ALIGN(t3_machine_bytes(&w->graph), 64),
			    GFP_KERNEL);
	w->ready = kunit_kzalloc(test, t3_ready_bytes(triggers), GFP_KERNEL);
	w->fired = kunit_kzalloc(test, triggers * sizeof(u32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mem);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, w->ready);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, w->fired);
	w->mask = t3_ready_size(triggers) - 1;
	t3_machine_attach(&w->m, &w->graph, &world_ops, mem);
	for (r = 0; r < RANKS; r++) {
		w->m.tiles[r] = w->rank[r].tiles;
		w->m.count[r] = w->rank[r].count;
		w->rank[r].retired = epoch;
	}
	t3_machine_start(&w->m, epoch);
}

/* --- the engine ----------------------------------------------------------- */

static void *block_data(struct world *w, u32 node)
{
	u32 rank = w->graph.block_rank[node];

	return w->rank[rank].data[node - w->graph.first_block[rank]];
}

static void act(struct world *w, const struct t3_action *a)
{
	const void *source[T3_MAX_RANKS];
	u64 saved;
	u32 i;

	for (i = 0; i < a->sources; i++)
		source[i] = block_data(w, w->graph.source[a->first_source + i]);
	if (a->op == T3_OP_COPY) {
		memcpy(block_data(w, a->block), source[0], ELEMS * sizeof(s32));
		return;
	}
	saved = t3_fp_enter();
	t3_reduce_best()->sum[T3_DTYPE_I32 - 1](block_data(w, a->block),
						source, a->sources, ELEMS);
	t3_fp_leave(saved);
}

/* One ready trigger; false where there is none, or the group broke. */
bool world_run(struct world *w)
{
	bool ran = false;
	u32 trigger;

	if (!t3_machine_enter(&w->inflight, &w->broken))
		return false;
	if (t3_ready_pop(w->ready, w->mask, &trigger)) {
		act(w, &w->graph.action[trigger]);
		t3_machine_complete(&w->m, trigger);
		ran = true;
	}
	t3_machine_leave(&w->inflight);
	return ran;
}

s32 world_value(u32 rank, u32 block, u32 elem, u32 epoch)
{
	return (s32)(epoch * 0x9e3779b1U + rank * 1000003U + block * 7919U +
		     elem);
}

void world_produce(struct world *w, u32 rank, u32 block, u32 epoch)
{
	u32 i;

	for (i = 0; i < ELEMS; i++)
		w->rank[rank].data[block][i] =
			world_value(rank, block, i, epoch);
}

/* --- refusals ------------------------------------------------------------- */

static void sound(struct kunit *test)
{
	struct world *w = world_make(test);

	KUNIT_EXPECT_EQ(test, 0, world_build(test, w));
	KUNIT_EXPECT_EQ(test, w->graph.triggers, RANKS * (2 * RANKS - 2));
	KUNIT_EXPECT_EQ(test, w->graph.needs[0], (1ULL << RANKS) - 1);
}

/*
 * Each fault alone, in rank 1's part. Of its triggers, 1 is the last of a chain
 * of sums, 2 and 3 write the same block.
 */
static void spoil(struct rank *me, u32 error)
{
	switch (error) {
	case EINVAL:
		me->trigger[0].op = 9;
		break;
	case ERANGE:
		me->trigger[0].seq = 7;
		break;
	case ENOTUNIQ:
		me->trigger[2].seq = 3;
		break;
	case EROFS:
		me->grid.read_only = 1;
		break;
	case E2BIG:
		me->prog.triggers = T3_MAX_TRIGGERS + 1;
		break;
	case EPROTOTYPE:
		me->grid.dtype = T3_DTYPE_F32;
		break;
	case EMSGSIZE:
		me->col_cuts[1] = ELEMS / 2;
		break;
	case EACCES:
		me->block[2].readers = 0;
		break;
	case ELOOP:
		me->source[1].at = 3;
		break;
	case EBADMSG:
		me->prog.digest[1] = 1;
		break;
	}
}

static const u32 faults[] = {
	EINVAL, ERANGE, ENOTUNIQ, EROFS, E2BIG, EPROTOTYPE, EMSGSIZE, EACCES,
	ELOOP, EBADMSG,
};

static void refused(struct kunit *test)
{
	struct world *w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		w = world_make(test);
		spoil(&w->rank[1], faults[i]);
		KUNIT_EXPECT_EQ(test, world_build(test, w), -(int)faults[i]);
		KUNIT_EXPECT_EQ(test, w->verdict.error, faults[i]);
	}
}

static void grids(struct kunit *test)
{
	u32 rows[] = { 0, 2, 4 }, cols[] = { 0, 8 };
	struct t3_grid a = {
		.dtype = T3_DTYPE_F16, .block_rows = 2, .block_cols = 1,
		.row_cuts = rows, .col_cuts = cols, .base = 4096,
		.row_stride = 32,
	};
	u8 write[] = { 0, T3_USE_WRITTEN }, read[] = { T3_USE_SOURCE, 0 };
	struct t3_grid b = a;
	u32 block = 9;

	KUNIT_EXPECT_EQ(test, 0, t3_grid_check(&a));
	KUNIT_EXPECT_EQ(test, 2U, t3_grid_rect(&a, 1).row);
	/* The same place: a's second block is written, b's first is read. */
	KUNIT_EXPECT_FALSE(test, t3_grids_clash(&a, write, &b, read, &block));
	b.base += 2 * 32;
	KUNIT_EXPECT_TRUE(test, t3_grids_clash(&a, write, &b, read, &block));
	KUNIT_EXPECT_EQ(test, 1U, block);
	/* Side by side in the same rows. */
	b.base += 16;
	KUNIT_EXPECT_FALSE(test, t3_grids_clash(&a, write, &b, read, &block));
	a.dtype = 77;
	KUNIT_EXPECT_EQ(test, -EINVAL, t3_grid_check(&a));
	b.block_cols = 0;
	KUNIT_EXPECT_EQ(test, -ERANGE, t3_grid_check(&b));
	b.block_cols = T3_MAX_BLOCKS + 1;
	KUNIT_EXPECT_EQ(test, -E2BIG, t3_grid_check(&b));
	b.block_cols = 1;
	cols[1] = T3_MAX_BLOCK_BYTES;
	KUNIT_EXPECT_EQ(test, -E2BIG, t3_grid_check(&b));
	rows[2] = 2;
	KUNIT_EXPECT_EQ(test, -ERANGE, t3_grid_check(&b));
}

static void walks(struct kunit *test)
{
	struct t3_operand operand[] = { { 100, 64 }, { 0, 96 } };
	struct t3_walk w;
	u64 bytes, sum = 0;

	t3_walk_start(&w, 5, 48, operand, 2);
	while ((bytes = t3_walk_run(&w))) {
		KUNIT_EXPECT_EQ(test, t3_walk_offset(&w, &operand[0]),
				100 + sum / 48 * 64 + sum % 48);
		bytes = min_t(u64, bytes, 20);
		t3_walk_step(&w, bytes);
		sum += bytes;
	}
	KUNIT_EXPECT_EQ(test, sum, 5ULL * 48);
	operand[0].stride = 48;
	t3_walk_start(&w, 5, 48, operand, 1);
	KUNIT_EXPECT_EQ(test, t3_walk_run(&w), 5ULL * 48);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(sound),
	KUNIT_CASE(refused),
	KUNIT_CASE(grids),
	KUNIT_CASE(walks),
	{ }
};

static struct kunit_suite suite = {
	.name = "t3-plans",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of t3's core");
MODULE_LICENSE("GPL");
