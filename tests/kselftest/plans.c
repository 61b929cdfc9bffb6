// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans: every verdict with the rank and trigger that it names, how parts
 * arrive and go, generations of a slot.
 */
#include "t3_kselftest.h"

#include <pthread.h>

#define RANKS	3
#define ROWS	6
#define COLS	64
#define BLOCKS	3
#define ALL	((1ULL << RANKS) - 1)

/* Regions of each rank. */
enum {
	REG,		/* f32 */
	REG_I32,	/* other bytes, same shape */
	REG_SHIFTED,	/* REG, one row on: shares all bytes but two rows */
	REG_READ_ONLY,	/* f32, other bytes */
	REG_LEFT,	/* left and right half of the same rows */
	REG_RIGHT,
	REGS
};

struct stage {
	struct world w;
	struct part *part[RANKS];
	__u32 region[RANKS][REGS];
	char *memory[RANKS];
};

static int add_region(struct stage *s, __u32 rank, int which, size_t offset,
		      __u32 dtype, __u64 row_bytes, __u32 flags)
{
	struct t3_region_add how = {
		.flags = flags, .type = T3_REGION_USER, .dtype = dtype,
		.base = (uintptr_t)s->memory[rank] + offset,
		.row_bytes = row_bytes, .row_stride = COLS * 4, .rows = ROWS,
	};

	return region_add_full(s->w.member[rank], &how,
			       &s->region[rank][which]);
}

static int add_regions(struct stage *s, __u32 rank)
{
	const __u64 row = COLS * 4;
	int ret;

	s->memory[rank] = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory[rank] == MAP_FAILED)
		return -errno;
	ret = add_region(s, rank, REG, 0, T3_DTYPE_F32, row, 0);
	ret = ret ?: add_region(s, rank, REG_I32, 4096, T3_DTYPE_I32, row, 0);
	ret = ret ?: add_region(s, rank, REG_SHIFTED, row, T3_DTYPE_F32, row, 0);
	ret = ret ?: add_region(s, rank, REG_READ_ONLY, 8192, T3_DTYPE_F32, row,
				T3_REGION_READ_ONLY);
	ret = ret ?: add_region(s, rank, REG_LEFT, 12288, T3_DTYPE_F32,
				row / 2, 0);
	return ret ?: add_region(s, rank, REG_RIGHT, 12288 + row / 2,
				 T3_DTYPE_F32, row / 2, 0);
}

/* Three blocks a rank, all produced by one tile and readable by all. */
static void right_parts(struct stage *s, __u32 slot, __u64 generation)
{
	FOR_EACH(r, RANKS) {
		part_init(s->part[r], slot, generation);
		part_region(s->part[r], s->region[r][REG], ROWS, COLS, BLOCKS,
			    1);
		FOR_EACH(b, BLOCKS) {
			part_produced(s->part[r], 0, b, 1);
			s->part[r]->block[b].readers = ALL;
		}
	}
	/* rank 1's block 1 becomes the sum of all */
	part_trigger(s->part[1], T3_OP_SUM, 0, 1, 2);
	FOR_EACH(r, RANKS)
		part_source(s->part[1], r, 0, 1, 1);
}

static int stage_open(struct stage *s)
{
	int ret = world_open(&s->w, RANKS);

	s->part[0] = calloc(RANKS, sizeof(struct part));
	FOR_EACH(r, RANKS) {
		s->part[r] = s->part[0] + r;
		ret = ret ?: add_regions(s, r);
	}
	right_parts(s, 0, 1);
	return ret;
}

static void stage_close(struct stage *s)
{
	world_close(&s->w);
	free(s->part[0]);
}

static int delete_all(struct stage *s, __u32 slot)
{
	int ret = 0;

	FOR_EACH(r, RANKS)
		ret = ret ?: plan_del(s->w.member[r], slot);
	return ret;
}

/* --- what can be wrong ------------------------------------------------------ */

/* One more region of rank 1 in the plan: region 1, blocks 3 .. 5. */
static __u32 more(struct stage *s, int which, __u32 cols)
{
	__u32 index = part_region(s->part[1], s->region[1][which], ROWS, cols,
				  BLOCKS, 1);

	FOR_EACH(b, BLOCKS)
		part_block(s->part[1], index, b)->readers = ALL;
	return index;
}

#define SPOIL(name, statement)						\
static void name(struct stage *s)					\
{									\
	statement;							\
}

SPOIL(op_0, s->part[1]->trigger[0].op = 0)
SPOIL(op_3, s->part[1]->trigger[0].op = 3)
SPOIL(op_max, s->part[1]->trigger[0].op = 0xffff)
SPOIL(flags_2, s->part[1]->block[2].flags |= 2)
SPOIL(flags_31, s->part[1]->block[2].flags |= 1U << 31)
SPOIL(region_1, s->part[1]->trigger[0].region = 1)
SPOIL(region_max, s->part[1]->trigger[0].region = 0xffff)
SPOIL(block_3, s->part[1]->trigger[0].block = 3)
SPOIL(block_max, s->part[1]->trigger[0].block = ~0U)
SPOIL(seq_0, s->part[1]->trigger[0].seq = 0)
SPOIL(seq_1, s->part[1]->trigger[0].seq = 1)
SPOIL(seq_3, s->part[1]->trigger[0].seq = 3)
SPOIL(seq_max, s->part[1]->trigger[0].seq = ~0U)
SPOIL(no_sources, s->part[1]->trigger[0].sources = 0)
SPOIL(beyond, s->part[1]->trigger[0].first_source = 1)
SPOIL(wraps, s->part[1]->trigger[0].first_source = ~0U)
SPOIL(rank_3, s->part[1]->source[2].rank = 3)
SPOIL(rank_max, s->part[1]->source[2].rank = 0xffff)
SPOIL(at_0, s->part[1]->source[2].at = 0)
SPOIL(at_2, s->part[1]->source[2].at = 2)
SPOIL(at_max, s->part[1]->source[2].at = ~0U)
SPOIL(from_region_1, s->part[1]->source[2].region = 1)
SPOIL(from_block_3, s->part[1]->source[2].block = 3)
SPOIL(from_block_max, s->part[1]->source[2].block = ~0U)

static void copy_of_two(struct stage *s)
{
	s->part[1]->trigger[0].op = T3_OP_COPY;
	s->part[1]->trigger[0].sources = 2;
}

static void many_sources(struct stage *s)
{
	while (s->part[1]->trigger[0].sources <= T3_MAX_RANKS)
		part_source(s->part[1], 0, 0, 1, 1);
}

static void sources_shared(struct stage *s)
{
	struct t3_trigger *t = part_trigger(s->part[1], T3_OP_SUM, 0, 2, 2);

	t->first_source = 0;
	t->sources = 2;
}

static void sources_left_over(struct stage *s)
{
	s->part[1]->trigger[0].sources = 2;
}

static void gap_between_sources(struct stage *s)
{
	s->part[1]->add.sources++;
	part_trigger(s->part[1], T3_OP_COPY, 0, 2, 2);
	part_source(s->part[1], 0, 0, 2, 1);
}

static void tiles_without_producer(struct stage *s)
{
	s->part[1]->block[2].flags = 0;
}

static void many_tiles(struct stage *s)
{
	s->part[1]->block[2].tiles = T3_MAX_TILES + 1;
}

SPOIL(cuts_not_from_0, s->part[1]->cut[0] = 1)
SPOIL(cuts_not_to_end, s->part[1]->cut[3] = 5)
SPOIL(cuts_past_end, s->part[1]->cut[3] = 7)
SPOIL(cuts_equal, s->part[1]->cut[2] = 2)
SPOIL(cuts_falling, s->part[1]->cut[1] = 5)
SPOIL(cols_past_end, s->part[1]->cut[5] = COLS + 1)

static void no_block_rows(struct stage *s)
{
	s->part[1]->region[0].block_rows = 0;
}

static void no_block_cols(struct stage *s)
{
	s->part[1]->region[0].block_cols = 0;
}

static void same_number(struct stage *s)
{
	part_trigger(s->part[1], T3_OP_COPY, 0, 1, 2);
	part_source(s->part[1], 0, 0, 1, 1);
}

/* Blocks of 1, 2 and 3 rows: block 2 is not of block 1's size. */
static void other_rows(struct stage *s)
{
	s->part[2]->cut[1] = 1;
	s->part[2]->cut[2] = 4;
}

/* Rank 2 cuts its rows in two. */
static void other_cols(struct stage *s)
{
	struct part *p = s->part[2];

	part_init(p, 0, 1);
	part_region(p, s->region[2][REG], ROWS, COLS, BLOCKS, 2);
	FOR_EACH(b, 2 * BLOCKS) {
		part_produced(p, 0, b, 1);
		p->block[b].readers = ALL;
	}
}

static void own_rows(struct stage *s)
{
	s->part[1]->cut[2] = 5;
	s->part[1]->source[0].rank = 1;
	s->part[1]->source[0].block = 0;
}

static void other_dtype(struct stage *s)
{
	s->part[2]->region[0].region = s->region[2][REG_I32];
}

static void own_dtype(struct stage *s)
{
	__u32 index = more(s, REG_I32, COLS);

	part_produced(s->part[1], index, 1, 1);
	s->part[1]->source[0].rank = 1;
	s->part[1]->source[0].region = (__u16)index;
}

static void not_readable(struct stage *s)
{
	s->part[2]->block[1].readers = ALL & ~2ULL;
}

static void readable_by_nobody(struct stage *s)
{
	s->part[0]->block[1].readers = 0;
}

/* Reads what it writes. */
static void cycle_of_one(struct stage *s)
{
	s->part[1]->source[1].at = 2;
}

/* Each waits for the other's second update. */
static void cycle_of_two(struct stage *s)
{
	part_trigger(s->part[0], T3_OP_COPY, 0, 0, 2);
	part_source(s->part[0], 2, 0, 0, 2);
	part_trigger(s->part[2], T3_OP_COPY, 0, 0, 2);
	part_source(s->part[2], 0, 0, 0, 2);
}

/* An exchange in place: each overwrites what the other has yet to read. */
static void exchange_in_place(struct stage *s)
{
	part_trigger(s->part[0], T3_OP_COPY, 0, 0, 2);
	part_source(s->part[0], 2, 0, 0, 1);
	part_trigger(s->part[2], T3_OP_COPY, 0, 0, 2);
	part_source(s->part[2], 0, 0, 0, 1);
}

static void write_read_only(struct stage *s)
{
	__u32 index = more(s, REG_READ_ONLY, COLS);

	part_trigger(s->part[1], T3_OP_COPY, index, 0, 1);
	part_source(s->part[1], 0, 0, 0, 1);
}

/* Triggers write rows 2 and 3 of REG, and row 3 again by another name. */
static void overlap_of_triggers(struct stage *s)
{
	__u32 index = more(s, REG_SHIFTED, COLS);

	part_trigger(s->part[1], T3_OP_COPY, index, 1, 1);
	part_source(s->part[1], 0, 0, 0, 1);
}

/* Nobody produces, writes or reads it. */
static void overlap_with_idle_block(struct stage *s)
{
	more(s, REG_SHIFTED, COLS);
}

static void overlap_with_source(struct stage *s)
{
	__u32 index = more(s, REG_SHIFTED, COLS);

	part_produced(s->part[1], index, 0, 0);
}

static void overlap_with_producer(struct stage *s)
{
	__u32 index = more(s, REG_SHIFTED, COLS);

	part_trigger(s->part[1], T3_OP_COPY, index, 2, 1);
	part_source(s->part[1], 0, 0, 0, 1);
}

SPOIL(digest_of_2, s->part[2]->add.digest[1] ^= 1)
SPOIL(digest_of_1, s->part[1]->add.digest[0] ^= 1ULL << 63)
SPOIL(digest_of_0, s->part[0]->add.digest[0] += 1)

/* --- right, though it may not look so ----------------------------------------- */

static void nothing(struct stage *s)
{
}

static void readable_by_one(struct stage *s)
{
	FOR_EACH(r, RANKS)
		FOR_EACH(b, BLOCKS)
			s->part[r]->block[b].readers = b == 1 ? 2 : 0;
}

static void halves(struct stage *s)
{
	__u32 left = more(s, REG_LEFT, COLS / 2);
	__u32 right = more(s, REG_RIGHT, COLS / 2);

	FOR_EACH(b, BLOCKS) {
		part_produced(s->part[1], left, b, 1);
		part_trigger(s->part[1], T3_OP_COPY, right, b, 1);
		part_source(s->part[1], 1, left, b, 1);
	}
}

/* Overlapping bytes that nobody writes in the epoch. */
static void overlap_not_written(struct stage *s)
{
	struct part *part = s->part[0];
	__u32 index = part_region(part, s->region[0][REG_SHIFTED], ROWS, COLS,
				  BLOCKS, 1);

	FOR_EACH(b, BLOCKS) {
		part_produced(part, 0, b, 0);
		part_produced(part, index, b, 0);
		part_block(part, index, b)->readers = ALL;
	}
	part_trigger(s->part[1], T3_OP_COPY, 0, 2, 2);
	part_source(s->part[1], 0, index, 1, 1);
}

static void read_only_source(struct stage *s)
{
	__u32 index = more(s, REG_READ_ONLY, COLS);

	part_produced(s->part[1], index, 0, 0);
	s->part[1]->source[0].rank = 1;
	s->part[1]->source[0].region = (__u16)index;
	s->part[1]->source[0].block = 0;
}

static void most_sources(struct stage *s)
{
	while (s->part[1]->trigger[0].sources < T3_MAX_RANKS)
		part_source(s->part[1], 0, 0, 1, 1);
}

/* Its own rank may always read a block. */
static void own_is_readable(struct stage *s)
{
	s->part[1]->block[1].readers = 0;
}

static void other_order(struct stage *s)
{
	/* a block's updates may be listed in any order */
	s->part[1]->trigger[0].seq = 3;
	part_trigger(s->part[1], T3_OP_COPY, 0, 1, 2);
	part_source(s->part[1], 0, 0, 1, 1);
	/* and the sum reads the update before its own */
	s->part[1]->source[1].at = 2;
}

static void chain(struct stage *s)
{
	/* rank 2 takes what rank 1 has summed, rank 0 takes it from there */
	part_trigger(s->part[2], T3_OP_COPY, 0, 1, 2);
	part_source(s->part[2], 1, 0, 1, 2);
	part_trigger(s->part[0], T3_OP_COPY, 0, 1, 2);
	part_source(s->part[0], 2, 0, 1, 2);
}

static void rank_without_regions(struct stage *s)
{
	part_init(s->part[2], 0, 1);
	s->part[1]->trigger[0].sources = 2;
	s->part[1]->add.sources = 2;
}

FIXTURE(verdict) {
	struct stage s;
};

enum when {
	ALONE,		/* one part shows it: T3_PLAN_ADD refuses that part */
	JOINT,		/* it takes all parts */
	EITHER
};

#define ANY	0xfffffffeU	/* a field of a verdict that is not told */

/* @also: another errno that the ABI's words allow */
FIXTURE_VARIANT(verdict) {
	void (*spoil)(struct stage *s);
	struct t3_verdict want;
	enum when when;
	__u32 also;
};

#define WRONG(name, how, error, ...)					\
	.spoil = name, .when = how, .want = { error, __VA_ARGS__ }
#define LOOSE(name, how, error, other, ...)				\
	.spoil = name, .when = how, .want = { error, __VA_ARGS__ },	\
	.also = other
#define RIGHT(name)							\
	.spoil = name, .when = JOINT, .want = { 0, T3_NONE, T3_NONE, T3_NONE }

FIXTURE_VARIANT_ADD(verdict, nothing) { RIGHT(nothing) };
FIXTURE_VARIANT_ADD(verdict, readable_by_one) { RIGHT(readable_by_one) };
FIXTURE_VARIANT_ADD(verdict, halves) { RIGHT(halves) };
FIXTURE_VARIANT_ADD(verdict, overlap_not_written) {
	RIGHT(overlap_not_written)
};

FIXTURE_VARIANT_ADD(verdict, read_only_source) { RIGHT(read_only_source) };
FIXTURE_VARIANT_ADD(verdict, most_sources) { RIGHT(most_sources) };
FIXTURE_VARIANT_ADD(verdict, own_is_readable) { RIGHT(own_is_readable) };
FIXTURE_VARIANT_ADD(verdict, other_order) { RIGHT(other_order) };
FIXTURE_VARIANT_ADD(verdict, chain) { RIGHT(chain) };
FIXTURE_VARIANT_ADD(verdict, rank_without_regions) {
	RIGHT(rank_without_regions)
};

FIXTURE_VARIANT_ADD(verdict, op_0) { WRONG(op_0, ALONE, EINVAL, 1, 0, ANY) };
FIXTURE_VARIANT_ADD(verdict, op_3) { WRONG(op_3, ALONE, EINVAL, 1, 0, ANY) };
FIXTURE_VARIANT_ADD(verdict, op_max) {
	WRONG(op_max, ALONE, EINVAL, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, flags_2) {
	WRONG(flags_2, ALONE, EINVAL, 1, T3_NONE, 2)
};

FIXTURE_VARIANT_ADD(verdict, flags_31) {
	WRONG(flags_31, ALONE, EINVAL, 1, T3_NONE, 2)
};

FIXTURE_VARIANT_ADD(verdict, tiles_without_producer) {
	WRONG(tiles_without_producer, ALONE, EINVAL, 1, T3_NONE, 2)
};

FIXTURE_VARIANT_ADD(verdict, sources_shared) {
	WRONG(sources_shared, ALONE, ERANGE, 1, 1, ANY)
};

FIXTURE_VARIANT_ADD(verdict, gap_between_sources) {
	WRONG(gap_between_sources, ALONE, ERANGE, 1, 1, ANY)
};

FIXTURE_VARIANT_ADD(verdict, sources_left_over) {
	WRONG(sources_left_over, ALONE, ERANGE, 1, ANY, ANY)
};

FIXTURE_VARIANT_ADD(verdict, region_1) {
	WRONG(region_1, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, region_max) {
	WRONG(region_max, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, block_3) {
	WRONG(block_3, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, block_max) {
	WRONG(block_max, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, seq_0) { WRONG(seq_0, ALONE, ERANGE, 1, 0, ANY) };
/* out of the range 2 .. K, and also the number of the production */
FIXTURE_VARIANT_ADD(verdict, seq_1) {
	LOOSE(seq_1, ALONE, ERANGE, ENOTUNIQ, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, seq_3) { WRONG(seq_3, ALONE, ERANGE, 1, 0, ANY) };
FIXTURE_VARIANT_ADD(verdict, seq_max) {
	WRONG(seq_max, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, no_sources) {
	WRONG(no_sources, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, copy_of_two) {
	WRONG(copy_of_two, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, many_sources) {
	WRONG(many_sources, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, beyond) {
	WRONG(beyond, ALONE, ERANGE, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, wraps) { WRONG(wraps, ALONE, ERANGE, 1, 0, ANY) };
FIXTURE_VARIANT_ADD(verdict, many_tiles) {
	WRONG(many_tiles, ALONE, ERANGE, 1, T3_NONE, 2)
};

FIXTURE_VARIANT_ADD(verdict, rank_3) { WRONG(rank_3, ALONE, ERANGE, 1, 0, 2) };
FIXTURE_VARIANT_ADD(verdict, rank_max) {
	WRONG(rank_max, ALONE, ERANGE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, at_0) { WRONG(at_0, ALONE, ERANGE, 1, 0, 2) };
FIXTURE_VARIANT_ADD(verdict, at_2) { WRONG(at_2, JOINT, ERANGE, 1, 0, 2) };
FIXTURE_VARIANT_ADD(verdict, at_max) { WRONG(at_max, EITHER, ERANGE, 1, 0, 2) };
FIXTURE_VARIANT_ADD(verdict, from_region_1) {
	WRONG(from_region_1, JOINT, ERANGE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, from_block_3) {
	WRONG(from_block_3, JOINT, ERANGE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, from_block_max) {
	WRONG(from_block_max, EITHER, ERANGE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, cuts_not_from_0) {
	LOOSE(cuts_not_from_0, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cuts_not_to_end) {
	LOOSE(cuts_not_to_end, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cuts_past_end) {
	LOOSE(cuts_past_end, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cuts_equal) {
	LOOSE(cuts_equal, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cuts_falling) {
	LOOSE(cuts_falling, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cols_past_end) {
	LOOSE(cols_past_end, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, no_block_rows) {
	LOOSE(no_block_rows, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, no_block_cols) {
	LOOSE(no_block_cols, ALONE, ERANGE, EINVAL, 1, T3_NONE, ANY)
};

FIXTURE_VARIANT_ADD(verdict, same_number) {
	WRONG(same_number, ALONE, ENOTUNIQ, 1, 1, ANY)
};

FIXTURE_VARIANT_ADD(verdict, other_rows) {
	WRONG(other_rows, JOINT, EMSGSIZE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, other_cols) {
	WRONG(other_cols, JOINT, EMSGSIZE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, own_rows) {
	WRONG(own_rows, EITHER, EMSGSIZE, 1, 0, 0)
};

FIXTURE_VARIANT_ADD(verdict, other_dtype) {
	WRONG(other_dtype, JOINT, EPROTOTYPE, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, own_dtype) {
	WRONG(own_dtype, EITHER, EPROTOTYPE, 1, 0, 0)
};

FIXTURE_VARIANT_ADD(verdict, not_readable) {
	WRONG(not_readable, JOINT, EACCES, 1, 0, 2)
};

FIXTURE_VARIANT_ADD(verdict, readable_by_nobody) {
	WRONG(readable_by_nobody, JOINT, EACCES, 1, 0, 0)
};

FIXTURE_VARIANT_ADD(verdict, cycle_of_one) {
	WRONG(cycle_of_one, EITHER, ELOOP, 1, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, cycle_of_two) {
	WRONG(cycle_of_two, JOINT, ELOOP, ANY, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, exchange_in_place) {
	WRONG(exchange_in_place, JOINT, ELOOP, ANY, 0, ANY)
};

FIXTURE_VARIANT_ADD(verdict, write_read_only) {
	WRONG(write_read_only, ALONE, EROFS, 1, 1, ANY)
};

FIXTURE_VARIANT_ADD(verdict, overlap_of_triggers) {
	WRONG(overlap_of_triggers, ALONE, EADDRINUSE, 1, ANY, ANY)
};

FIXTURE_VARIANT_ADD(verdict, overlap_with_source) {
	WRONG(overlap_with_source, ALONE, EADDRINUSE, 1, ANY, ANY)
};

FIXTURE_VARIANT_ADD(verdict, overlap_with_idle_block) {
	RIGHT(overlap_with_idle_block)
};

FIXTURE_VARIANT_ADD(verdict, overlap_with_producer) {
	WRONG(overlap_with_producer, ALONE, EADDRINUSE, 1, ANY, ANY)
};

FIXTURE_VARIANT_ADD(verdict, digest_of_2) {
	WRONG(digest_of_2, JOINT, EBADMSG, 2, T3_NONE, T3_NONE)
};

FIXTURE_VARIANT_ADD(verdict, digest_of_1) {
	WRONG(digest_of_1, JOINT, EBADMSG, 1, T3_NONE, T3_NONE)
};

FIXTURE_VARIANT_ADD(verdict, digest_of_0) {
	WRONG(digest_of_0, JOINT, EBADMSG, 1, T3_NONE, T3_NONE)
};

FIXTURE_SETUP(verdict)
{
	ASSERT_EQ(0, stage_open(&self->s));
	variant->spoil(&self->s);
}

FIXTURE_TEARDOWN(verdict)
{
	stage_close(&self->s);
}

static bool same_field(__u32 want, __u32 got)
{
	return want == ANY || want == got;
}

/* Adds all parts; @alone: the call that refused one was its own. */
static int all_parts(struct stage *s, struct t3_verdict *verdict, bool *alone)
{
	int ret = 0;

	*alone = false;
	FOR_EACH(r, RANKS) {
		ret = part_add(s->w.member[r], s->part[r]);
		if (ret) {
			*alone = true;
			*verdict = s->part[r]->add.verdict;
			return ret;
		}
	}
	FOR_EACH(r, RANKS) {
		ret = plan_wait(s->w.member[r], 0, BOUND_NS, verdict);
		s->part[r]->add.verdict = *verdict;
	}
	return ret;
}

TEST_F(verdict, names_the_fault)
{
	const struct t3_verdict *want = &variant->want;
	struct t3_verdict v = { ANY, ANY, ANY, ANY };
	bool alone;
	int ret = all_parts(&self->s, &v, &alone);

	EXPECT_TRUE(ret == -(int)want->error ||
		    (variant->also && ret == -(int)variant->also))
		TH_LOG("errno %d, want %u", -ret, want->error);
	EXPECT_EQ((__u32)-ret, v.error);
	EXPECT_TRUE(same_field(want->rank, v.rank))
		TH_LOG("rank %#x, want %#x", v.rank, want->rank);
	EXPECT_TRUE(same_field(want->trigger, v.trigger))
		TH_LOG("trigger %#x, want %#x", v.trigger, want->trigger);
	EXPECT_TRUE(same_field(want->detail, v.detail))
		TH_LOG("detail %#x, want %#x", v.detail, want->detail);
	EXPECT_TRUE(variant->when == EITHER || alone == (variant->when == ALONE))
		TH_LOG("refused by T3_PLAN_ADD: %d", alone);
}

/* All learn the same; the slot is free again when all have deleted. */
TEST_F(verdict, then_a_right_plan)
{
	struct t3_verdict v;
	bool alone;
	int ret = all_parts(&self->s, &v, &alone);

	if (alone) {
		/* as if the refused part had not been */
		EXPECT_EQ(-ENOENT, plan_wait(self->s.w.member[1], 0, 0, NULL));
		EXPECT_EQ(-ETIME, plan_wait(self->s.w.member[0], 0, 0, NULL));
		EXPECT_EQ(-EAGAIN, plan_arm(self->s.w.member[0], 0));
		EXPECT_EQ(0, plan_del(self->s.w.member[0], 0));
	} else {
		FOR_EACH(r, RANKS) {
			EXPECT_EQ(0, memcmp(&v, &self->s.part[r]->add.verdict,
					    sizeof(v)));
			if (ret) {
				EXPECT_EQ(ret, plan_arm(self->s.w.member[r],
							0));
			}
		}
		EXPECT_EQ(0, delete_all(&self->s, 0));
	}
	right_parts(&self->s, 0, 2);
	EXPECT_EQ(0, all_parts(&self->s, &v, &alone));
	EXPECT_EQ(0U, v.error);
	EXPECT_EQ(T3_NONE, v.rank);
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(1, plan_arm(self->s.w.member[r], 0));
	}
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(0, plan_notify(self->s.w.member[r], 0,
					 (struct t3_tiles[]) {
						{ 0, 1 }, { 1, 1 }, { 2, 1 } },
					 3, NULL));
	}
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(0, plan_wait_epoch(self->s.w.member[r], 0, 1,
					     BOUND_NS, NULL));
	}
}

/* --- sizes -------------------------------------------------------------------- */

FIXTURE(size) {
	struct world w;
	struct part *part;
};

FIXTURE_SETUP(size)
{
	ASSERT_EQ(0, world_open(&self->w, 1));
	self->part = calloc(1, sizeof(*self->part));
}

FIXTURE_TEARDOWN(size)
{
	world_close(&self->w);
	free(self->part);
}

TEST_F(size, block_of_4_mib_and_a_little_more)
{
	const size_t most = T3_MAX_BLOCK_BYTES;
	char *memory = mmap(NULL, most + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct t3_query query;
	__u32 fits, larger;

	ASSERT_NE(MAP_FAILED, (void *)memory);
	ASSERT_EQ(0, device_query(self->w.dev, &query));
	ASSERT_EQ(0, region_add(self->w.member[0], memory, T3_DTYPE_I32, 1,
				query.max_block_bytes, &fits));
	ASSERT_EQ(0, region_add(self->w.member[0], memory, T3_DTYPE_I32, 1,
				query.max_block_bytes + 4, &larger));
	part_init(self->part, 0, 1);
	part_region(self->part, larger, 1, query.max_block_bytes / 4 + 1, 1, 1);
	EXPECT_EQ(-E2BIG, part_add(self->w.member[0], self->part));
	EXPECT_EQ((__u32)E2BIG, self->part->add.verdict.error);
	EXPECT_EQ(0U, self->part->add.verdict.rank);
	part_init(self->part, 0, 1);
	part_region(self->part, fits, 1, query.max_block_bytes / 4, 1, 1);
	EXPECT_EQ(0, part_add(self->w.member[0], self->part));
	/* as two blocks the larger one is no problem */
	part_init(self->part, 1, 1);
	part_region(self->part, larger, 1, query.max_block_bytes / 4 + 1, 1, 2);
	EXPECT_EQ(0, part_add(self->w.member[0], self->part));
}

/* As many blocks as there may be, each a row of one element, half of them
 * copied from the other half.
 */
TEST_F(size, most_blocks)
{
	const __u32 n = T3_MAX_BLOCKS / 2;
	struct t3_plan_block *block = calloc(2 * n, sizeof(*block));
	struct t3_trigger *trigger = calloc(n, sizeof(*trigger));
	struct t3_source *source = calloc(n, sizeof(*source));
	__u32 *cut = calloc(n + 1, sizeof(*cut));
	__u32 *memory = aligned_alloc(4096, 2 * n * sizeof(*memory));
	static const __u32 one_col[] = { 0, 1 };
	__u32 region[2];

	part_init(self->part, 0, 1);
	FOR_EACH(i, 2) {
		struct t3_plan_region *r = &self->part->region[i];

		ASSERT_EQ(0, region_add(self->w.member[0], memory + i * n,
					T3_DTYPE_I32, n, 4, &region[i]));
		r->region = region[i];
		r->block_rows = n;
		r->block_cols = 1;
		r->row_cuts = (uintptr_t)cut;
		r->col_cuts = (uintptr_t)one_col;
		r->blocks = (uintptr_t)(block + i * n);
	}
	FOR_EACH(b, n) {
		cut[b + 1] = b + 1;
		block[b].flags = T3_BLOCK_PRODUCED;
		block[b].readers = 1;
		trigger[b] = (struct t3_trigger) { T3_OP_COPY, 1, b, 1, b, 1 };
		source[b] = (struct t3_source) { 0, 0, n - 1 - b, 1 };
		memory[b] = b;
		memory[n + b] = ~0U;
	}
	self->part->add.regions = 2;
	self->part->add.triggers = n;
	self->part->add.sources = n;
	self->part->add.trigger_list = (uintptr_t)trigger;
	self->part->add.source_list = (uintptr_t)source;
	ASSERT_EQ(0, part_add(self->w.member[0], self->part));
	ASSERT_EQ(0, plan_wait(self->w.member[0], 0, BOUND_NS, NULL));
	ASSERT_EQ(1, plan_arm(self->w.member[0], 0));
	ASSERT_EQ(0, plan_wait_epoch(self->w.member[0], 0, 1, BOUND_NS, NULL));
	FOR_EACH(b, n) {
		ASSERT_EQ(n - 1 - b, memory[n + b]);
	}
}

/* One SUM of as many sources as there may be, all the same. */
TEST_F(size, every_slot)
{
	__u32 *memory = aligned_alloc(4096, 4096);
	__u32 region;

	ASSERT_EQ(0, region_add(self->w.member[0], memory, T3_DTYPE_I32, 2, 64,
				&region));
	FOR_EACH(slot, T3_MAX_PLANS) {
		part_init(self->part, slot, slot);
		part_region(self->part, region, 2, 16, 2, 1);
		self->part->block[0].readers = 1;
		part_produced(self->part, 0, 0, 0);
		part_trigger(self->part, T3_OP_SUM, 0, 1, 1);
		FOR_EACH(i, slot + 1)
			part_source(self->part, 0, 0, 0, 1);
		ASSERT_EQ(0, part_add(self->w.member[0], self->part));
		ASSERT_EQ(0, plan_wait(self->w.member[0], slot, BOUND_NS,
				       NULL));
	}
	FOR_EACH(slot, T3_MAX_PLANS) {
		FOR_EACH(i, 16)
			memory[i] = i + slot;
		ASSERT_EQ(1, plan_arm(self->w.member[0], slot));
		ASSERT_EQ(0, plan_wait_epoch(self->w.member[0], slot, 1,
					     BOUND_NS, NULL));
		FOR_EACH(i, 16) {
			ASSERT_EQ((i + slot) * (slot + 1), memory[16 + i]);
		}
	}
}

/* --- how parts come and go ------------------------------------------------------ */

FIXTURE(parts) {
	struct stage s;
};

FIXTURE_SETUP(parts)
{
	ASSERT_EQ(0, stage_open(&self->s));
}

FIXTURE_TEARDOWN(parts)
{
	stage_close(&self->s);
}

TEST_F(parts, any_order)
{
	static const __u8 order[6][RANKS] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};

	FOR_EACH(i, ARRAY_SIZE(order)) {
		right_parts(&self->s, 5, i + 1);
		FOR_EACH(j, RANKS) {
			__u32 r = order[i][j];

			EXPECT_EQ(0, part_add(self->s.w.member[r],
					      self->s.part[r]));
			EXPECT_EQ(j == RANKS - 1 ? 0 : -ETIME,
				  plan_wait(self->s.w.member[r], 5, 0, NULL));
		}
		FOR_EACH(j, RANKS) {
			EXPECT_EQ(0, plan_del(self->s.w.member[order[i][j]],
					      5));
		}
	}
}

struct waiter {
	int member;
	int ret;
	struct t3_verdict verdict;
};

static void *wait_for_plan(void *arg)
{
	struct waiter *w = arg;

	w->ret = plan_wait(w->member, 0, BOUND_NS, &w->verdict);
	return NULL;
}

/* Ranks 0 and 1 have come and wait; rank 2 is late and then ... */
static void late(struct stage *s, void (*act)(struct stage *s),
		 struct waiter waiter[2])
{
	pthread_t thread[2];

	FOR_EACH(r, 2) {
		MUST(!part_add(s->w.member[r], s->part[r]));
		MUST(plan_wait(s->w.member[r], 0, MS, NULL) == -ETIME);
		waiter[r].member = s->w.member[r];
		MUST(!pthread_create(&thread[r], NULL, wait_for_plan,
				     &waiter[r]));
	}
	sleep_ms(50);
	act(s);
	FOR_EACH(r, 2)
		pthread_join(thread[r], NULL);
}

static void add_2(struct stage *s)
{
	part_add(s->w.member[2], s->part[2]);
}

static void leave_2(struct stage *s)
{
	member_leave(s->w.member[2]);
}

static void close_2(struct stage *s)
{
	close(s->w.member[2]);
	s->w.member[2] = -1;
}

static void abort_all(struct stage *s)
{
	group_abort(s->w.group);
}

TEST_F(parts, late)
{
	struct waiter waiter[2];

	late(&self->s, add_2, waiter);
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, waiter[r].ret);
		EXPECT_EQ(0U, waiter[r].verdict.error);
	}
}

TEST_F(parts, late_one_leaves)
{
	struct waiter waiter[2];

	late(&self->s, leave_2, waiter);
	FOR_EACH(r, 2) {
		EXPECT_EQ(-EPIPE, waiter[r].ret);
		EXPECT_EQ((__u32)EPIPE, waiter[r].verdict.error);
		EXPECT_EQ(2U, waiter[r].verdict.rank);
		EXPECT_EQ(-EPIPE, plan_arm(self->s.w.member[r], 0));
	}
}

TEST_F(parts, late_one_closes)
{
	struct waiter waiter[2];

	late(&self->s, close_2, waiter);
	FOR_EACH(r, 2) {
		EXPECT_EQ(-EPIPE, waiter[r].ret);
		EXPECT_EQ(2U, waiter[r].verdict.rank);
	}
}

TEST_F(parts, aborted_meanwhile)
{
	struct waiter waiter[2];

	late(&self->s, abort_all, waiter);
	FOR_EACH(r, 2) {
		EXPECT_EQ(-ECANCELED, waiter[r].ret);
	}
}

TEST_F(parts, one_deletes_before_all_have_come)
{
	struct t3_verdict v;

	ASSERT_EQ(0, part_add(self->s.w.member[1], self->s.part[1]));
	ASSERT_EQ(0, part_add(self->s.w.member[0], self->s.part[0]));
	ASSERT_EQ(0, plan_del(self->s.w.member[1], 0));
	EXPECT_EQ(-EPIPE, plan_wait(self->s.w.member[0], 0, BOUND_NS, &v));
	EXPECT_EQ((__u32)EPIPE, v.error);
	EXPECT_EQ(1U, v.rank);
	EXPECT_EQ(-ENOENT, plan_wait(self->s.w.member[1], 0, 0, NULL));
}

/* A rank that is gone before it gave a part is never waited for. */
TEST_F(parts, left_before_anybody_came)
{
	struct t3_verdict v;

	leave_2(&self->s);
	FOR_EACH(r, 2) {
		int ret = part_add(self->s.w.member[r], self->s.part[r]);

		EXPECT_EQ(0, ret);
		EXPECT_EQ(-EPIPE, plan_wait(self->s.w.member[r], 0, BOUND_NS,
					    &v));
		EXPECT_EQ(2U, v.rank);
	}
}

TEST_F(parts, dead_after_the_first_delete)
{
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], self->s.part[r]));
	}
	ASSERT_EQ(0, plan_del(self->s.w.member[0], 0));
	EXPECT_EQ(-ENOENT, plan_arm(self->s.w.member[0], 0));
	EXPECT_EQ(-EPIPE, plan_arm(self->s.w.member[1], 0));
	/* its regions are in use until each has deleted */
	EXPECT_EQ(0, region_del(self->s.w.member[0], self->s.region[0][REG]));
	EXPECT_EQ(-EBUSY, region_del(self->s.w.member[1],
				     self->s.region[1][REG]));
	ASSERT_EQ(0, plan_del(self->s.w.member[1], 0));
	EXPECT_EQ(0, region_del(self->s.w.member[1], self->s.region[1][REG]));
}

TEST_F(parts, generations)
{
	struct part *const *part = self->s.part;

	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], part[r]));
	}
	ASSERT_EQ(0, plan_del(self->s.w.member[0], 0));
	/* the others still hold the first one */
	part[0]->add.generation = 2;
	EXPECT_EQ(-EBUSY, part_add(self->s.w.member[0], part[0]));
	ASSERT_EQ(0, plan_del(self->s.w.member[1], 0));
	EXPECT_EQ(-EBUSY, part_add(self->s.w.member[0], part[0]));
	ASSERT_EQ(0, plan_del(self->s.w.member[2], 0));
	part[0]->add.generation = 1;
	EXPECT_EQ(-ESTALE, part_add(self->s.w.member[0], part[0]));
	part[0]->add.generation = 5;
	ASSERT_EQ(0, part_add(self->s.w.member[0], part[0]));
	/* generation 5 it is now: an older one is late, a newer one early */
	part[1]->add.generation = 4;
	EXPECT_EQ(-ESTALE, part_add(self->s.w.member[1], part[1]));
	part[1]->add.generation = 6;
	EXPECT_EQ(-EBUSY, part_add(self->s.w.member[1], part[1]));
	part[1]->add.generation = 5;
	ASSERT_EQ(0, part_add(self->s.w.member[1], part[1]));
	part[2]->add.generation = 5;
	ASSERT_EQ(0, part_add(self->s.w.member[2], part[2]));
	EXPECT_EQ(0, plan_wait(self->s.w.member[0], 0, 0, NULL));
}

/* A leaver holds no slot: the others go on with it among themselves. */
TEST_F(parts, slot_of_a_leaver)
{
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], self->s.part[r]));
	}
	ASSERT_EQ(0, member_leave(self->s.w.member[2]));
	EXPECT_EQ(-EPIPE, plan_arm(self->s.w.member[1], 0));
	FOR_EACH(r, 2) {
		EXPECT_EQ(0, plan_del(self->s.w.member[r], 0));
	}
	right_parts(&self->s, 0, 2);
	/* not live without rank 2, but neither is the slot busy */
	EXPECT_EQ(0, part_add(self->s.w.member[0], self->s.part[0]));
	EXPECT_EQ(-EPIPE, plan_wait(self->s.w.member[0], 0, BOUND_NS, NULL));
}

/* Who has armed when another deletes is told within the watchdog's time. */
TEST_F(parts, deleted_under_an_armed_epoch)
{
	int ret;

	ASSERT_EQ(0, group_set(self->s.w.group, 300));
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], self->s.part[r]));
	}
	ASSERT_EQ(1, plan_arm(self->s.w.member[1], 0));
	EXPECT_EQ(-EBUSY, plan_del(self->s.w.member[1], 0));
	EXPECT_EQ(0, plan_del(self->s.w.member[2], 0));
	ret = plan_wait_epoch(self->s.w.member[1], 0, 1, BOUND_NS, NULL);
	EXPECT_TRUE(ret == -EPIPE || ret == -ETIMEDOUT || ret == -EOWNERDEAD)
		TH_LOG("errno %d", -ret);
}

/* What is pinned is not given back while a plan needs it. */
TEST_F(parts, regions_in_use)
{
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], self->s.part[r]));
	}
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(-EBUSY, region_del(self->s.w.member[r],
					     self->s.region[r][REG]));
		EXPECT_EQ(0, region_del(self->s.w.member[r],
					self->s.region[r][REG_I32]));
	}
	EXPECT_EQ(0, delete_all(&self->s, 0));
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(0, region_del(self->s.w.member[r],
					self->s.region[r][REG]));
	}
}

/* Parts of two slots at once, in opposite orders. */
TEST_F(parts, two_slots)
{
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[r], self->s.part[r]));
	}
	right_parts(&self->s, 1, 1);
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, part_add(self->s.w.member[RANKS - 1 - r],
				      self->s.part[RANKS - 1 - r]));
	}
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(0, plan_wait(self->s.w.member[r], 0, 0, NULL));
		EXPECT_EQ(0, plan_wait(self->s.w.member[r], 1, 0, NULL));
	}
}

TEST_HARNESS_MAIN
