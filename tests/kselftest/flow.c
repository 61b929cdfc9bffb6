// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Data: what arrives is what was sent, for every collective, number of ranks,
 * element type and way of counting tiles; and the rules of arm, tiles and
 * retirement.
 */
#include "t3_kselftest.h"

#include <pthread.h>

#define CANARY	0xc7

/* --- one collective ------------------------------------------------------------- */

enum how {
	BY_NOTIFY,	/* T3_NOTIFY for each tile */
	BY_LIST,	/* one T3_NOTIFY for all blocks */
	BY_COUNTERS,	/* mapped counters, T3_NOTIFY where need_wakeup says so */
	BY_LOOK,	/* mapped counters, then "look at every block" */
	BY_BOTH,	/* some tiles this way, the others that way */
	HOWS
};

/**
 * struct rig - what all ranks agree on
 * @what: the collective
 * @ranks: of how many ranks
 * @dtype: of all regions
 * @rows: of each region
 * @cols: elements of a row
 * @gap: bytes between two rows, a multiple of the element's size
 * @offset: of the first element from a page's beginning, likewise
 * @block_rows: blocks of a region, by rows
 * @block_cols: and by columns
 * @tiles: of each produced block
 */
struct rig {
	enum collective what;
	__u32 ranks;
	__u32 dtype;
	__u32 rows;
	__u32 cols;
	size_t gap;
	size_t offset;
	__u32 block_rows;
	__u32 block_cols;
	__u32 tiles;
};

/* One rank's side of it. */
struct side {
	const struct rig *rig;
	__u32 rank;
	int member;
	__u32 slot;
	size_t bytes;
	char *memory[2];
	__u32 regions;
	struct part *part;
	__u32 *tiles;
	struct t3_plan_status *status;
};

/* Odd in every way; shapes of A2A must be the same for all shards. */
static struct rig odd_rig(enum collective what, __u32 ranks, __u32 dtype)
{
	size_t element = dtype_bytes(dtype);

	return (struct rig) {
		.what = what, .ranks = ranks, .dtype = dtype,
		.rows = ranks * 2 * 3 + (what == A2A ? 0 : 1),
		.cols = 37, .gap = 5 * element, .offset = 3 * element,
		.block_rows = ranks * 2, .block_cols = 2, .tiles = 3,
	};
}

static size_t stride_of(const struct rig *rig)
{
	return rig->cols * dtype_bytes(rig->dtype) + rig->gap;
}

static char *element(struct side *side, __u32 index, __u32 row, __u32 col)
{
	return side->memory[index] + side->rig->offset +
	       row * stride_of(side->rig) + col * dtype_bytes(side->rig->dtype);
}

/* Small enough that the sum of 64 ranks is exact in f16; of 19 in bf16. */
static unsigned int value(__u32 rank, __u32 epoch, __u32 row, __u32 col)
{
	return (rank * 5 + row * 7 + col * 3 + epoch * 11) % 13;
}

static int side_region(struct side *side, __u32 index)
{
	const struct rig *rig = side->rig;
	struct t3_region_add how = {
		.type = T3_REGION_USER, .dtype = rig->dtype,
		.row_bytes = rig->cols * dtype_bytes(rig->dtype),
		.row_stride = stride_of(rig), .rows = rig->rows,
	};
	__u32 region;
	int ret;

	side->memory[index] = aligned_alloc(page_size(), side->bytes);
	if (!side->memory[index])
		return -ENOMEM;
	memset(side->memory[index], CANARY, side->bytes);
	how.base = (uintptr_t)side->memory[index] + rig->offset;
	ret = region_add_full(side->member, &how, &region);
	if (!ret)
		part_region(side->part, region, rig->rows, rig->cols,
			    rig->block_rows, rig->block_cols);
	return ret;
}

static int side_open(struct side *side, const struct rig *rig, __u32 rank,
		     int member, __u32 slot)
{
	size_t page = page_size();
	int ret = 0;

	memset(side, 0, sizeof(*side));
	side->rig = rig;
	side->rank = rank;
	side->member = member;
	side->slot = slot;
	side->bytes = (rig->offset + rig->rows * stride_of(rig) + page) /
		      page * page;
	side->regions = rig->what == A2A ? 2 : 1;
	side->part = calloc(1, sizeof(*side->part));
	if (!side->part)
		return -ENOMEM;
	part_init(side->part, slot, 1);
	FOR_EACH(i, side->regions)
		ret = ret ?: side_region(side, i);
	if (ret)
		return ret;
	part_collective(side->part, rig->what, rank, rig->ranks, rig->tiles);
	return part_add(member, side->part);
}

/* When the plan is live. */
static int side_map(struct side *side)
{
	int ret = plan_wait(side->member, side->slot, BOUND_NS, NULL);

	if (ret)
		return ret;
	side->tiles = part_map_tiles(side->member, side->part);
	side->status = part_map_status(side->member, side->part);
	return (void *)side->tiles == MAP_FAILED ||
	       (void *)side->status == MAP_FAILED ? -ENOMEM : 0;
}

static void side_close(struct side *side)
{
	if (side->tiles)
		munmap(side->tiles, side->part->add.tiles_bytes);
	if (side->status)
		munmap(side->status, side->part->add.status_bytes);
	FOR_EACH(i, side->regions)
		free(side->memory[i]);
	free(side->part);
}

/* A block's place in its region. */
struct area {
	__u32 row, rows, col, cols;
};

static struct area area_of(const struct side *side, __u32 block)
{
	const struct t3_plan_region *r = &side->part->region[0];
	const __u32 *row = (void *)(uintptr_t)r->row_cuts;
	const __u32 *col = (void *)(uintptr_t)r->col_cuts;
	__u32 br = block / r->block_cols, bc = block % r->block_cols;

	return (struct area) {
		row[br], row[br + 1] - row[br], col[bc], col[bc + 1] - col[bc]
	};
}

static void fill_block(struct side *side, __u32 block, __u32 epoch)
{
	struct area a = area_of(side, block);

	FOR_EACH(i, a.rows)
		FOR_EACH(j, a.cols)
			put_element(element(side, 0, a.row + i, a.col + j),
				    side->rig->dtype,
				    value(side->rank, epoch, a.row + i,
					  a.col + j));
}

/* What must not survive the epoch lies in every element that is overwritten. */
static void poison(struct side *side)
{
	size_t row_bytes = side->rig->cols * dtype_bytes(side->rig->dtype);

	FOR_EACH(k, side->regions)
		FOR_EACH(i, side->rig->rows)
			memset(element(side, k, i, 0), 0x6b, row_bytes);
}

static bool is_produced(const struct side *side, __u32 block)
{
	return side->part->block[block].flags & T3_BLOCK_PRODUCED;
}

/* The data of each produced block; before arming where arming is production. */
static void fill(struct side *side, __u32 epoch)
{
	FOR_EACH(b, side->part->blocks)
		if (is_produced(side, b))
			fill_block(side, b, epoch);
}

static int produce_by_list(struct side *side)
{
	struct t3_tiles list[PART_BLOCKS];
	__u32 n = 0, done = 0;
	int ret;

	FOR_EACH(b, side->part->blocks)
		if (is_produced(side, b))
			list[n++] = (struct t3_tiles) { b, side->rig->tiles };
	/* no entries would mean "look at all" */
	if (!n)
		return 0;
	ret = plan_notify(side->member, side->slot, list, n, &done);
	return ret ? ret : done == n ? 0 : -EBADMSG;
}

static int produce_block(struct side *side, __u32 block, enum how how)
{
	int ret = 0;

	FOR_EACH(t, side->rig->tiles) {
		bool mapped = how == BY_COUNTERS || (how == BY_BOTH && t % 2);

		if (how == BY_LOOK)
			__atomic_fetch_add(&side->tiles[block], 1,
					   __ATOMIC_RELEASE);
		else if (mapped)
			ret = ret ?: count_tiles(side->member, side->slot,
						 side->tiles, side->status,
						 block, 1);
		else
			ret = ret ?: notify_one(side->member, side->slot,
						block, 1);
	}
	return ret;
}

static int produce(struct side *side, enum how how)
{
	int ret = 0;

	if (!side->rig->tiles)
		return 0;
	if (how == BY_LIST)
		return produce_by_list(side);
	FOR_EACH(b, side->part->blocks)
		if (is_produced(side, b))
			ret = ret ?: produce_block(side, b, how);
	if (how == BY_LOOK)
		ret = ret ?: plan_notify(side->member, side->slot, NULL, 0,
					 NULL);
	return ret;
}

/* --- what the result must be ----------------------------------------------------- */

static unsigned int sum_of_all(const struct side *side, __u32 epoch, __u32 row,
			       __u32 col)
{
	unsigned int sum = 0;

	FOR_EACH(r, side->rig->ranks)
		sum += value(r, epoch, row, col);
	return sum;
}

static bool all_are(struct side *side, __u32 index, __u32 block, __u32 epoch)
{
	const struct rig *rig = side->rig;
	struct area a = area_of(side, block), from = a;
	__u32 shard = shard_of(side->part, rig->ranks, block);
	__u32 each = part_region_blocks(side->part, 0) / rig->ranks;
	bool sum = rig->what != AG_DIRECT && rig->what != AG_RING;
	unsigned int want;

	if (rig->what == A2A)
		from = area_of(side, side->rank * each + block % each);
	FOR_EACH(i, a.rows)
		FOR_EACH(j, a.cols) {
			if (sum && rig->what != A2A)
				want = sum_of_all(side, epoch, a.row + i,
						  a.col + j);
			else
				want = value(shard, epoch, from.row + i,
					     from.col + j);
			if (!is_element(element(side, index, a.row + i,
						a.col + j), rig->dtype, want))
				return false;
		}
	return true;
}

static bool results_right(struct side *side, __u32 epoch)
{
	bool scatter = side->rig->what == RS_DIRECT ||
		       side->rig->what == RS_RING;

	FOR_EACH(b, part_region_blocks(side->part, 0)) {
		if (scatter &&
		    shard_of(side->part, side->rig->ranks, b) != side->rank)
			continue;
		if (!all_are(side, side->regions - 1, b, epoch))
			return false;
	}
	return true;
}

/* Nothing but elements was written. */
static bool canaries_live(struct side *side)
{
	const struct rig *rig = side->rig;
	size_t row_bytes = rig->cols * dtype_bytes(rig->dtype);

	FOR_EACH(k, side->regions)
		FOR_EACH(i, side->bytes) {
			size_t at = i - rig->offset;
			bool inside = i >= rig->offset &&
				      at / stride_of(rig) < rig->rows &&
				      at % stride_of(rig) < row_bytes;

			if (!inside &&
			    (unsigned char)side->memory[k][i] != CANARY)
				return false;
		}
	return true;
}

/* Each block has had as many updates as its production and its triggers. */
static bool counts_right(struct side *side, __u32 epoch)
{
	const __u32 *count = (void *)((char *)side->status +
				      side->status->count_offset);
	__u32 updates[PART_BLOCKS] = { 0 };

	FOR_EACH(b, side->part->blocks)
		updates[b] = is_produced(side, b);
	FOR_EACH(t, side->part->add.triggers) {
		const struct t3_trigger *tr = &side->part->trigger[t];

		updates[tr->region * part_region_blocks(side->part, 0) +
			tr->block]++;
	}
	FOR_EACH(b, side->part->blocks)
		if (__atomic_load_n(&count[b], __ATOMIC_ACQUIRE) !=
		    epoch * updates[b])
			return false;
	return side->status->blocks == side->part->blocks &&
	       side->status->armed == epoch && side->status->retired == epoch;
}

static int begin(struct side *side, __u32 epoch)
{
	int ret;

	poison(side);
	if (!side->rig->tiles)
		fill(side, epoch);
	ret = plan_arm(side->member, side->slot);
	if (ret != (int)epoch)
		return ret < 0 ? ret : -EBADMSG;
	if (side->rig->tiles)
		fill(side, epoch);
	return 0;
}

static int end(struct side *side, __u32 epoch)
{
	int ret = plan_wait_epoch(side->member, side->slot, epoch, BOUND_NS,
				  NULL);

	if (ret)
		return ret;
	return !results_right(side, epoch) ? -EILSEQ :
	       !canaries_live(side) ? -EOVERFLOW :
	       !counts_right(side, epoch) ? -ECHRNG : 0;
}

/* --- by one thread, by threads, by processes ----------------------------------- */

FIXTURE(collective) {
	struct world w;
	struct side side[WORLD_MAX];
};

FIXTURE_VARIANT(collective) {
	enum collective what;
	__u32 ranks;
};

FIXTURE_VARIANT_ADD(collective, rs_direct_1) { RS_DIRECT, 1 };
FIXTURE_VARIANT_ADD(collective, rs_direct_2) { RS_DIRECT, 2 };
FIXTURE_VARIANT_ADD(collective, rs_direct_3) { RS_DIRECT, 3 };
FIXTURE_VARIANT_ADD(collective, rs_direct_4) { RS_DIRECT, 4 };
FIXTURE_VARIANT_ADD(collective, rs_ring_1) { RS_RING, 1 };
FIXTURE_VARIANT_ADD(collective, rs_ring_2) { RS_RING, 2 };
FIXTURE_VARIANT_ADD(collective, rs_ring_3) { RS_RING, 3 };
FIXTURE_VARIANT_ADD(collective, rs_ring_4) { RS_RING, 4 };
FIXTURE_VARIANT_ADD(collective, ag_direct_1) { AG_DIRECT, 1 };
FIXTURE_VARIANT_ADD(collective, ag_direct_2) { AG_DIRECT, 2 };
FIXTURE_VARIANT_ADD(collective, ag_direct_3) { AG_DIRECT, 3 };
FIXTURE_VARIANT_ADD(collective, ag_direct_4) { AG_DIRECT, 4 };
FIXTURE_VARIANT_ADD(collective, ag_ring_2) { AG_RING, 2 };
FIXTURE_VARIANT_ADD(collective, ag_ring_3) { AG_RING, 3 };
FIXTURE_VARIANT_ADD(collective, ag_ring_4) { AG_RING, 4 };
FIXTURE_VARIANT_ADD(collective, ar_direct_1) { AR_DIRECT, 1 };
FIXTURE_VARIANT_ADD(collective, ar_direct_2) { AR_DIRECT, 2 };
FIXTURE_VARIANT_ADD(collective, ar_direct_3) { AR_DIRECT, 3 };
FIXTURE_VARIANT_ADD(collective, ar_direct_4) { AR_DIRECT, 4 };
FIXTURE_VARIANT_ADD(collective, ar_ring_2) { AR_RING, 2 };
FIXTURE_VARIANT_ADD(collective, ar_ring_3) { AR_RING, 3 };
FIXTURE_VARIANT_ADD(collective, ar_ring_4) { AR_RING, 4 };
FIXTURE_VARIANT_ADD(collective, a2a_1) { A2A, 1 };
FIXTURE_VARIANT_ADD(collective, a2a_2) { A2A, 2 };
FIXTURE_VARIANT_ADD(collective, a2a_3) { A2A, 3 };
FIXTURE_VARIANT_ADD(collective, a2a_4) { A2A, 4 };

FIXTURE_SETUP(collective)
{
	ASSERT_EQ(0, world_open(&self->w, variant->ranks));
}

FIXTURE_TEARDOWN(collective)
{
	world_close(&self->w);
}

/* All sides of one rig in slot @slot of @w, live. */
static int sides_open(struct world *w, struct side *side, const struct rig *rig,
		      __u32 slot)
{
	int ret = 0;

	FOR_EACH(r, rig->ranks)
		ret = ret ?: side_open(&side[r], rig, r, w->member[r], slot);
	FOR_EACH(r, rig->ranks)
		ret = ret ?: side_map(&side[r]);
	return ret;
}

static void sides_close(struct side *side, const struct rig *rig)
{
	FOR_EACH(r, rig->ranks)
		side_close(&side[r]);
}

/* One thread for all ranks: arms and productions in a rotated order. */
static int run_sides(struct side *side, __u32 epoch, enum how how)
{
	__u32 n = side->rig->ranks;
	int ret = 0;

	FOR_EACH(i, n)
		ret = ret ?: begin(&side[(i + epoch) % n], epoch);
	FOR_EACH(i, n)
		ret = ret ?: produce(&side[(i + epoch / 2) % n], how);
	FOR_EACH(i, n)
		ret = ret ?: end(&side[i], epoch);
	return ret;
}

TEST_F(collective, every_way_of_counting)
{
	struct rig rig = odd_rig(variant->what, variant->ranks, T3_DTYPE_F32);

	ASSERT_EQ(0, sides_open(&self->w, self->side, &rig, 0));
	FOR_EACH(how, HOWS) {
		ASSERT_EQ(0, run_sides(self->side, how + 1, how))
			TH_LOG("how %u", how);
	}
	sides_close(self->side, &rig);
}

TEST_F(collective, every_dtype)
{
	FOR_EACH(i, T3_DTYPE_COUNT) {
		struct rig rig = odd_rig(variant->what, variant->ranks, i + 1);

		ASSERT_EQ(0, sides_open(&self->w, self->side, &rig, i));
		FOR_EACH(e, 2) {
			ASSERT_EQ(0, run_sides(self->side, e + 1, BY_LIST))
				TH_LOG("dtype %u", i + 1);
		}
		FOR_EACH(r, rig.ranks) {
			EXPECT_EQ(0, plan_del(self->w.member[r], i));
		}
		sides_close(self->side, &rig);
	}
}

/* Arming is the production, and the last one to arm sets all in motion. */
TEST_F(collective, no_tiles)
{
	struct rig rig = odd_rig(variant->what, variant->ranks, T3_DTYPE_F16);

	rig.tiles = 0;
	ASSERT_EQ(0, sides_open(&self->w, self->side, &rig, 0));
	FOR_EACH(e, 5) {
		ASSERT_EQ(0, run_sides(self->side, e + 1, BY_NOTIFY));
	}
	sides_close(self->side, &rig);
}

static void run_rank(struct side *side, __u32 epochs)
{
	FOR_EACH(e, epochs) {
		MUST(!begin(side, e + 1));
		MUST(!produce(side, (e + side->rank) % HOWS));
		MUST(!end(side, e + 1));
	}
}

static void *run_thread(void *arg)
{
	run_rank(arg, 20);
	return NULL;
}

TEST_F(collective, threads)
{
	struct rig rig = odd_rig(variant->what, variant->ranks, T3_DTYPE_BF16);
	pthread_t thread[WORLD_MAX];

	ASSERT_EQ(0, sides_open(&self->w, self->side, &rig, 0));
	FOR_EACH(r, rig.ranks) {
		ASSERT_EQ(0, pthread_create(&thread[r], NULL, run_thread,
					    &self->side[r]));
	}
	FOR_EACH(r, rig.ranks)
		pthread_join(thread[r], NULL);
	sides_close(self->side, &rig);
}

TEST_F(collective, processes)
{
	struct rig rig = odd_rig(variant->what, variant->ranks, T3_DTYPE_F64);
	int group = group_create(self->w.dev, variant->ranks, 0);
	pid_t pid[WORLD_MAX];

	ASSERT_GE(group, 0);
	FOR_EACH(r, rig.ranks) {
		pid[r] = fork_child();
		ASSERT_GE(pid[r], 0);
		if (pid[r])
			continue;
		MUST(!side_open(self->side, &rig, r, group_join(group, r), 0));
		MUST(!side_map(self->side));
		run_rank(self->side, 20);
		_exit(0);
	}
	FOR_EACH(r, rig.ranks) {
		EXPECT_EQ(0, reap(pid[r]));
	}
	close(group);
}

/* --- rules ---------------------------------------------------------------------- */

FIXTURE(rules) {
	struct world w;
	struct rig rig;
	struct side side[2];
};

FIXTURE_SETUP(rules)
{
	ASSERT_EQ(0, world_open(&self->w, 2));
	self->rig = odd_rig(AR_DIRECT, 2, T3_DTYPE_F32);
	ASSERT_EQ(0, sides_open(&self->w, self->side, &self->rig, 0));
}

FIXTURE_TEARDOWN(rules)
{
	world_close(&self->w);
	sides_close(self->side, &self->rig);
}

TEST_F(rules, early_tile)
{
	struct side *side = &self->side[0];

	side->tiles[3]++;
	EXPECT_EQ(-EPROTO, plan_arm(side->member, 0));
	EXPECT_EQ(-EPROTO, plan_arm(side->member, 0));
	EXPECT_EQ(0U, side->status->armed);
	side->tiles[3]--;
	EXPECT_EQ(0, run_sides(self->side, 1, BY_NOTIFY));
	/* and backwards */
	side->tiles[3]--;
	EXPECT_EQ(-EPROTO, plan_arm(side->member, 0));
	side->tiles[3]++;
	EXPECT_EQ(0, run_sides(self->side, 2, BY_NOTIFY));
}

TEST_F(rules, excess_tile)
{
	struct side *side = &self->side[0];

	FOR_EACH(r, 2) {
		ASSERT_EQ(0, begin(&self->side[r], 1));
	}
	ASSERT_EQ(0, notify_one(side->member, 0, 3, side->rig->tiles));
	EXPECT_EQ(-EPROTO, notify_one(side->member, 0, 3, 1));
	EXPECT_EQ(side->rig->tiles, side->tiles[3]);
	side->tiles[3]++;
	FOR_EACH(b, side->part->blocks) {
		if (b == 3)
			continue;
		ASSERT_EQ(0, produce_block(side, b, BY_NOTIFY));
	}
	ASSERT_EQ(0, produce(&self->side[1], BY_NOTIFY));
	/* this epoch has what it needs, the next one is told */
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, end(&self->side[r], 1));
	}
	EXPECT_EQ(-EPROTO, plan_arm(side->member, 0));
	side->tiles[3]--;
	EXPECT_EQ(0, run_sides(self->side, 2, BY_NOTIFY));
}

/* A program that writes rubbish into its counters spoils nobody's machine. */
TEST_F(rules, rubbish_in_the_counters)
{
	struct side *side = &self->side[0];

	FOR_EACH(r, 2) {
		ASSERT_EQ(0, begin(&self->side[r], 1));
	}
	memset(side->tiles, 0xff, side->part->add.tiles_bytes);
	plan_notify(side->member, 0, NULL, 0, NULL);
	memset(side->tiles, 0, side->part->add.tiles_bytes);
	plan_notify(side->member, 0, NULL, 0, NULL);
	ASSERT_EQ(0, produce(&self->side[1], BY_NOTIFY));
	EXPECT_EQ(0, group_abort(self->w.group));
	EXPECT_EQ(-ECANCELED, plan_wait_epoch(self->side[1].member, 0, 1,
					      BOUND_NS, NULL));
}

/* Producers before the peers have armed; tiles after, in any order. */
TEST_F(rules, produced_before_the_peer_arms)
{
	FOR_EACH(e, 4) {
		__u32 first = e % 2;

		ASSERT_EQ(0, begin(&self->side[first], e + 1));
		ASSERT_EQ(0, produce(&self->side[first], BY_NOTIFY));
		EXPECT_EQ(-ETIME, plan_wait_epoch(self->side[first].member, 0,
						  e + 1, MS, NULL));
		ASSERT_EQ(0, begin(&self->side[!first], e + 1));
		ASSERT_EQ(0, produce(&self->side[!first], BY_NOTIFY));
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, end(&self->side[r], e + 1));
		}
	}
}

/* A rank may be an epoch ahead of the other, never two. */
TEST_F(rules, arm_is_busy_until_retired)
{
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, begin(&self->side[r], 1));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(-EBUSY, plan_arm(self->side[r].member, 0));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, produce(&self->side[r], BY_NOTIFY));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, end(&self->side[r], 1));
	}
	ASSERT_EQ(0, begin(&self->side[0], 2));
	ASSERT_EQ(0, produce(&self->side[0], BY_NOTIFY));
	EXPECT_EQ(-EBUSY, plan_arm(self->side[0].member, 0));
	ASSERT_EQ(0, begin(&self->side[1], 2));
	ASSERT_EQ(0, produce(&self->side[1], BY_NOTIFY));
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, end(&self->side[r], 2));
	}
}

/* A block may be read as soon as its count says so. */
TEST_F(rules, one_block_ahead)
{
	struct side *side = &self->side[1];
	const __u32 *count = (void *)((char *)side->status +
				      side->status->count_offset);
	__u64 until = now_ns() + BOUND_NS;

	FOR_EACH(r, 2) {
		ASSERT_EQ(0, begin(&self->side[r], 1));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, produce_block(&self->side[r], 0, BY_NOTIFY));
	}
	while (__atomic_load_n(&count[0], __ATOMIC_ACQUIRE) < 2 &&
	       now_ns() < until)
		sleep_ms(1);
	EXPECT_EQ(2U, count[0]);
	EXPECT_TRUE(all_are(side, 0, 0, 1));
	EXPECT_EQ(0U, side->status->retired);
	FOR_EACH(r, 2) {
		FOR_EACH(b, self->side[r].part->blocks) {
			if (b) {
				ASSERT_EQ(0, produce_block(&self->side[r], b,
							   BY_NOTIFY));
			}
		}
	}
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, end(&self->side[r], 1));
	}
}

/* Another plan that writes the same bytes, by the same region and another. */
TEST_F(rules, two_plans_over_one_buffer)
{
	struct part *part = calloc(2, sizeof(*part));
	__u32 again;

	ASSERT_EQ(0, region_add(self->w.member[0],
				element(&self->side[0], 0, 5, 0),
				T3_DTYPE_I32, 1, 64, &again));
	FOR_EACH(r, 2) {
		part_init(&part[r], 1, 1);
		if (r)
			continue;
		part_region(&part[r], again, 1, 16, 1, 1);
		part_produced(&part[r], 0, 0, 1);
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, part_add(self->w.member[r], &part[r]));
	}
	ASSERT_EQ(0, begin(&self->side[0], 1));
	EXPECT_EQ(-EBUSY, plan_arm(self->w.member[0], 1));
	ASSERT_EQ(0, begin(&self->side[1], 1));
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, produce(&self->side[r], BY_NOTIFY));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, end(&self->side[r], 1));
	}
	ASSERT_EQ(1, plan_arm(self->w.member[0], 1));
	EXPECT_EQ(-EBUSY, plan_arm(self->w.member[0], 0));
	ASSERT_EQ(0, notify_one(self->w.member[0], 1, 0, 1));
	ASSERT_EQ(0, plan_wait_epoch(self->w.member[0], 1, 1, BOUND_NS, NULL));
	EXPECT_EQ(0, run_sides(self->side, 2, BY_NOTIFY));
	free(part);
}

/* Plans over other bytes do not hinder each other. */
TEST_F(rules, two_plans_at_once)
{
	struct rig rig = odd_rig(A2A, 2, T3_DTYPE_I32);
	struct side side[2];

	ASSERT_EQ(0, sides_open(&self->w, side, &rig, 1));
	FOR_EACH(e, 3) {
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, begin(&self->side[r], e + 1));
			ASSERT_EQ(0, begin(&side[r], e + 1));
		}
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, produce(&side[r], BY_COUNTERS));
			ASSERT_EQ(0, produce(&self->side[r], BY_LIST));
		}
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, end(&self->side[r], e + 1));
			ASSERT_EQ(0, end(&side[r], e + 1));
		}
	}
	sides_close(side, &rig);
}

/* Tiles that nobody tells of but the counters. */
TEST_F(rules, silent_producers)
{
	struct rig rig = odd_rig(RS_RING, 2, T3_DTYPE_F32);
	struct t3_query query;
	struct part *part;
	struct side side[2];

	ASSERT_EQ(0, device_query(self->w.dev, &query));
	if (!(query.features & T3_FEATURE_POLLER))
		SKIP(return, "no poller");
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, side_open(&side[r], &rig, r, self->w.member[r],
				       2 + r));
		/* once more, with the flag */
		ASSERT_EQ(0, plan_del(self->w.member[r], 2 + r));
		part = side[r].part;
		part->add.slot = 1;
		part->add.digest[0] = 1;
		part->add.flags = T3_PLAN_SILENT_PRODUCERS;
		side[r].slot = 1;
		ASSERT_EQ(0, part_add(self->w.member[r], part));
	}
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, side_map(&side[r]));
	}
	FOR_EACH(e, 3) {
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, begin(&side[r], e + 1));
		}
		/* long enough that a poller that may sleep does */
		sleep_ms(50);
		FOR_EACH(r, 2)
			FOR_EACH(b, side[r].part->blocks)
				__atomic_fetch_add(&side[r].tiles[b], rig.tiles,
						   __ATOMIC_RELEASE);
		FOR_EACH(r, 2) {
			ASSERT_EQ(0, end(&side[r], e + 1));
		}
	}
	sides_close(side, &rig);
}

/* The status alone tells of retirement, and so does poll(). */
TEST_F(rules, poll)
{
	struct pollfd p = { .fd = self->w.member[0], .events = POLLIN };

	FOR_EACH(r, 2) {
		ASSERT_EQ(0, begin(&self->side[r], 1));
	}
	EXPECT_EQ(0, poll(&p, 1, 0)) TH_LOG("revents %#x", p.revents);
	FOR_EACH(r, 2) {
		ASSERT_EQ(0, produce(&self->side[r], BY_NOTIFY));
	}
	EXPECT_EQ(1, poll(&p, 1, BOUND_NS / MS));
	EXPECT_TRUE(p.revents & POLLIN) TH_LOG("revents %#x", p.revents);
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, end(&self->side[r], 1));
	}
	ASSERT_EQ(0, begin(&self->side[0], 2));
	ASSERT_EQ(0, group_abort(self->w.group));
	EXPECT_EQ(1, poll(&p, 1, BOUND_NS / MS));
	EXPECT_TRUE(p.revents & (POLLERR | POLLHUP))
		TH_LOG("revents %#x", p.revents);
}

/* --- numbers --------------------------------------------------------------------- */

FIXTURE(sums) {
	struct world w;
	struct part part;
	__u16 *memory;
};

FIXTURE_SETUP(sums)
{
	ASSERT_EQ(0, world_open(&self->w, 1));
	self->memory = aligned_alloc(page_size(), page_size());
	ASSERT_NE(NULL, self->memory);
}

FIXTURE_TEARDOWN(sums)
{
	world_close(&self->w);
	free(self->memory);
}

/* Block 4 of five becomes the sum of @n of the others, each with 64 elements. */
static int sum_of(struct _test_data_sums *self, __u32 dtype, __u32 n,
		  const __u8 *order)
{
	__u32 region;
	int ret = region_add(self->w.member[0], self->memory, dtype, 5,
			     64 * dtype_bytes(dtype), &region);

	if (ret)
		return ret;
	part_init(&self->part, dtype, 1);
	part_region(&self->part, region, 5, 64, 5, 1);
	FOR_EACH(b, 4) {
		part_produced(&self->part, 0, b, 0);
		self->part.block[b].readers = 1;
	}
	part_trigger(&self->part, T3_OP_SUM, 0, 4, 1);
	FOR_EACH(i, n)
		part_source(&self->part, 0, 0, order[i], 1);
	ret = part_add(self->w.member[0], &self->part);
	if (!ret)
		ret = plan_arm(self->w.member[0], dtype) - 1;
	return ret ?: plan_wait_epoch(self->w.member[0], dtype, 1, BOUND_NS,
				      NULL);
}

/* Large + 1 + 1 + 1: rounded once it grows, rounded each time it does not. */
TEST_F(sums, rounded_once)
{
	static const __u8 order[] = { 0, 1, 2, 3 };

	FOR_EACH(i, 256)
		self->memory[i] = bf16_bits(i < 64 ? 256 : 1);
	ASSERT_EQ(0, sum_of(self, T3_DTYPE_BF16, 4, order));
	FOR_EACH(i, 64) {
		ASSERT_EQ(bf16_bits(260), self->memory[256 + i]);
	}
	FOR_EACH(i, 256)
		self->memory[i] = f16_bits(i < 64 ? 2048 : 1);
	ASSERT_EQ(0, sum_of(self, T3_DTYPE_F16, 4, order));
	/* 2051 is half way between 2050 and 2052, whose last bit is even */
	FOR_EACH(i, 64) {
		ASSERT_EQ(0x6802, self->memory[256 + i]);
	}
}

/* No digit is lost, though f32 has fewer of them. */
TEST_F(sums, integers_are_exact)
{
	static const __u8 order[] = { 3, 0, 0, 2, 1 };
	__s32 *m = (__s32 *)self->memory;

	FOR_EACH(i, 256)
		m[i] = (__s32)(i * 1234567) - 99999999;
	ASSERT_EQ(0, sum_of(self, T3_DTYPE_I32, 5, order));
	FOR_EACH(i, 64) {
		ASSERT_EQ((__s32)((__u32)m[i] * 2 + (__u32)m[64 + i] +
				  (__u32)m[128 + i] + (__u32)m[192 + i]),
			  m[256 + i]);
	}
}

/* --- many ------------------------------------------------------------------------- */

FIXTURE(many) {
	int dev;
};

FIXTURE_SETUP(many)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
}

FIXTURE_TEARDOWN(many)
{
	close(self->dev);
}

TEST_F_TIMEOUT(many, epochs, 600)
{
	struct rig rig = {
		.what = AR_RING, .ranks = 2, .dtype = T3_DTYPE_I32, .rows = 2,
		.cols = 16, .block_rows = 2, .block_cols = 1, .tiles = 1,
	};
	struct side side[2];
	struct world w;

	ASSERT_EQ(0, world_open(&w, 2));
	ASSERT_EQ(0, sides_open(&w, side, &rig, 0));
	FOR_EACH(e, scaled(3000)) {
		ASSERT_EQ(0, run_sides(side, e + 1, BY_LIST))
			TH_LOG("epoch %u", e + 1);
	}
	sides_close(side, &rig);
	world_close(&w);
}

TEST_F_TIMEOUT(many, ranks, 60)
{
	struct rig rig = {
		.what = AR_DIRECT, .ranks = T3_MAX_RANKS,
		.dtype = T3_DTYPE_F32, .rows = T3_MAX_RANKS, .cols = 4,
		.block_rows = T3_MAX_RANKS, .block_cols = 1, .tiles = 1,
	};
	struct side *side = calloc(rig.ranks, sizeof(*side));
	int group = group_create(self->dev, rig.ranks, 0);

	ASSERT_GE(group, 0);
	FOR_EACH(r, rig.ranks) {
		ASSERT_EQ(0, side_open(&side[r], &rig, r, group_join(group, r),
				       0));
	}
	FOR_EACH(r, rig.ranks) {
		ASSERT_EQ(0, side_map(&side[r]));
	}
	FOR_EACH(e, 2) {
		ASSERT_EQ(0, run_sides(side, e + 1, BY_LIST));
	}
	FOR_EACH(r, rig.ranks)
		close(side[r].member);
	sides_close(side, &rig);
	close(group);
}

/* More than one call moves by itself: blocks of up to 4 MiB. */
TEST_F_TIMEOUT(many, bytes, 120)
{
	struct rig rig = {
		.what = RS_DIRECT, .ranks = 2, .dtype = T3_DTYPE_F32,
		.rows = 1026, .cols = 1023, .gap = 4, .offset = 4,
		.block_rows = 2, .block_cols = 1, .tiles = 1,
	};
	struct side side[2];
	struct world w;

	ASSERT_EQ(0, world_open(&w, 2));
	ASSERT_EQ(0, sides_open(&w, side, &rig, 0));
	FOR_EACH(e, 2) {
		ASSERT_EQ(0, run_sides(side, e + 1, BY_COUNTERS));
	}
	sides_close(side, &rig);
	world_close(&w);
}

TEST_HARNESS_MAIN
