// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Worlds at random: a sequence of updates is drawn first, each reading the
 * newest value of its sources, so that the programs are sound; then some are
 * spoiled.
 */
#include <string.h>

#include "reduce.h"
#include "world.h"

u64 rng_next(struct rng *rng)
{
	u64 z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

u32 rng_below(struct rng *rng, u32 n)
{
	return rng_next(rng) % n;
}

bool rng_chance(struct rng *rng, u32 percent)
{
	return rng_below(rng, 100) < percent;
}

static const struct t3_grid *grid_of(const struct world *w, u32 rank, u32 block)
{
	const struct t3_program *prog = &w->rank[rank].prog;
	u32 g = prog->grids - 1;

	while (prog->grid[g].first_block > block)
		g--;
	return &prog->grid[g];
}

u32 world_dtype(const struct world *w, u32 rank, u32 block)
{
	return grid_of(w, rank, block)->dtype;
}

struct t3_rect world_rect(const struct world *w, u32 rank, u32 block)
{
	const struct t3_grid *grid = grid_of(w, rank, block);
	u32 row = (block - grid->first_block) / grid->block_cols;
	u32 col = (block - grid->first_block) % grid->block_cols;
	struct t3_rect rect = {
		.row = grid->row_cuts[row],
		.col = grid->col_cuts[col],
		.rows = grid->row_cuts[row + 1] - grid->row_cuts[row],
		.cols = grid->col_cuts[col + 1] - grid->col_cuts[col],
	};

	return rect;
}

u8 *world_element(struct world *w, u32 rank, u32 block, u32 row, u32 col)
{
	const struct t3_grid *grid = grid_of(w, rank, block);
	struct t3_rect rect = world_rect(w, rank, block);

	return w->rank[rank].memory + (grid->base - WORLD_BASE) +
	       (rect.row + row) * grid->row_stride +
	       (rect.col + col) * t3_dtype_size(grid->dtype);
}

void world_produce(struct world *w, u32 rank, u32 block, u32 epoch)
{
	struct t3_rect rect = world_rect(w, rank, block);
	struct rng rng = { (u64)epoch << 32 | rank << 16 | block };
	u32 row, col;

	for (row = 0; row < rect.rows; row++) {
		for (col = 0; col < rect.cols; col++) {
			u8 *to = world_element(w, rank, block, row, col);
			s32 value = (s32)rng_below(&rng, 2000001) - 1000000;
			float single = value / 1024.0f;

			if (world_dtype(w, rank, block) == T3_DTYPE_I32)
				memcpy(to, &value, 4);
			else
				memcpy(to, &single, 4);
		}
	}
}

/* The same cuts at all ranks, so that blocks of the same place fit. */
static void make_grids(struct world *w, struct rng *rng)
{
	u32 grids = 1 + rng_chance(rng, 30);
	u32 dtype = rng_chance(rng, 50) ? T3_DTYPE_I32 : T3_DTYPE_F32;
	u32 rows = 1 + rng_below(rng, WORLD_CUTS - 1);
	u32 cols = 1 + rng_below(rng, WORLD_CUTS - 1);
	u32 height = 1 + rng_below(rng, 3);
	u32 width = 1 + rng_below(rng, 5);
	u32 r, g, i;

	for (r = 0; r < w->ranks; r++) {
		struct world_rank *me = &w->rank[r];
		u32 at = 0;

		me->prog.grids = grids;
		me->prog.grid = me->grid;
		for (g = 0; g < grids; g++) {
			struct t3_grid *grid = &me->grid[g];

			for (i = 0; i <= rows; i++)
				me->row_cuts[g][i] = i * height;
			for (i = 0; i <= cols; i++)
				me->col_cuts[g][i] = i * width;
			*grid = (struct t3_grid) {
				.dtype = dtype,
				.block_rows = rows,
				.block_cols = cols,
				.first_block = g * rows * cols,
				.row_cuts = me->row_cuts[g],
				.col_cuts = me->col_cuts[g],
				.base = WORLD_BASE + at,
				.row_stride = (cols * width + rng_below(rng, 3)) * 4,
			};
			at += rows * height * grid->row_stride;
		}
		me->prog.blocks = grids * rows * cols;
		me->prog.block = me->block;
		me->prog.trigger = me->trigger;
		me->prog.source = me->source;
	}
}

static void make_blocks(struct world *w, struct rng *rng)
{
	u32 r, b;

	for (r = 0; r < w->ranks; r++) {
		for (b = 0; b < w->rank[r].prog.blocks; b++) {
			struct t3_plan_block *block = &w->rank[r].block[b];
			bool produced = rng_chance(rng, 70);

			block->flags = produced ? T3_BLOCK_PRODUCED : 0;
			block->tiles = produced ? rng_below(rng, 4) : 0;
			block->readers = 0;
		}
	}
}

/* One more update, of a block at random, from what has a value by now. */
static void make_update(struct world *w, struct rng *rng,
			u32 done[WORLD_RANKS][WORLD_BLOCKS])
{
	u32 rank = rng_below(rng, w->ranks);
	struct world_rank *me = &w->rank[rank];
	u32 blocks = me->prog.blocks;
	u32 per_grid = blocks / me->prog.grids;
	u32 block = rng_below(rng, blocks);
	u32 want = rng_chance(rng, 25) ? 1 : 1 + rng_below(rng, 4);
	struct t3_trigger *t = &me->trigger[me->prog.triggers];
	u32 got = 0;

	if (me->prog.triggers == WORLD_TRIGGERS ||
	    me->prog.sources + want > WORLD_SOURCES)
		return;
	while (want--) {
		u32 from = rng_below(rng, w->ranks);
		u32 what = rng_chance(rng, 20) ? block : rng_below(rng, blocks);

		if (!done[from][what])
			continue;
		me->source[me->prog.sources + got++] = (struct t3_source) {
			.rank = from,
			.region = what / per_grid,
			.block = what % per_grid,
			.at = done[from][what],
		};
		w->rank[from].block[what].readers |= 1ULL << rank;
	}
	if (!got)
		return;
	*t = (struct t3_trigger) {
		.op = got == 1 && rng_chance(rng, 50) ? T3_OP_COPY : T3_OP_SUM,
		.region = block / per_grid,
		.block = block % per_grid,
		.seq = ++done[rank][block],
		.first_source = me->prog.sources,
		.sources = got,
	};
	me->prog.triggers++;
	me->prog.sources += got;
}

/* The order of a rank's triggers means nothing: shuffle it. */
static void shuffle(struct world_rank *me, struct rng *rng)
{
	struct t3_source old[WORLD_SOURCES];
	u32 at = 0;
	u32 i;

	for (i = me->prog.triggers; i > 1; i--) {
		u32 k = rng_below(rng, i);
		struct t3_trigger t = me->trigger[k];

		me->trigger[k] = me->trigger[i - 1];
		me->trigger[i - 1] = t;
	}
	memcpy(old, me->source, sizeof(old));
	for (i = 0; i < me->prog.triggers; i++) {
		struct t3_trigger *t = &me->trigger[i];

		memcpy(&me->source[at], &old[t->first_source],
		       t->sources * sizeof(*old));
		t->first_source = at;
		at += t->sources;
	}
}

static void spoil_trigger(struct world_rank *me, struct rng *rng)
{
	struct t3_trigger *t;

	if (!me->prog.triggers)
		return;
	t = &me->trigger[rng_below(rng, me->prog.triggers)];
	switch (rng_below(rng, 6)) {
	case 0:
		t->op = rng_below(rng, 4);
		break;
	case 1:
		t->region = rng_below(rng, 3);
		break;
	case 2:
		t->block = rng_below(rng, 40);
		break;
	case 3:
		t->seq += rng_below(rng, 3) - 1;
		break;
	case 4:
		t->first_source += rng_below(rng, 2);
		break;
	default:
		t->sources = rng_below(rng, 5);
		break;
	}
}

static void spoil_source(struct world_rank *me, struct rng *rng)
{
	struct t3_source *s;

	if (!me->prog.sources)
		return;
	s = &me->source[rng_below(rng, me->prog.sources)];
	switch (rng_below(rng, 4)) {
	case 0:
		s->rank = rng_below(rng, WORLD_RANKS + 1);
		break;
	case 1:
		s->region = rng_below(rng, 3);
		break;
	case 2:
		s->block = rng_below(rng, 20);
		break;
	default:
		s->at += rng_below(rng, 3) - 1;
		break;
	}
}

static void spoil_block(struct world_rank *me, struct rng *rng)
{
	struct t3_plan_block *b = &me->block[rng_below(rng, me->prog.blocks + 1)];

	switch (rng_below(rng, 4)) {
	case 0:
		b->flags ^= 1 << rng_below(rng, 2);
		break;
	case 1:
		b->readers ^= 1ULL << rng_below(rng, WORLD_RANKS + 1);
		break;
	case 2:
		b->readers = 0;
		break;
	default:
		b->tiles = rng_chance(rng, 50) ? 1 : T3_MAX_TILES + 1;
		break;
	}
}

static void spoil_grid(struct world_rank *me, struct rng *rng)
{
	/* Not f64: its rows would not fit their stride. */
	static const u32 dtypes[] = {
		0, T3_DTYPE_F32, T3_DTYPE_F16, T3_DTYPE_BF16, T3_DTYPE_I32, 6,
	};
	u32 g = rng_below(rng, me->prog.grids);
	struct t3_grid *grid = &me->grid[g];
	u32 last = grid->block_cols;

	switch (rng_below(rng, 7)) {
	case 0:
		grid->dtype = dtypes[rng_below(rng, ARRAY_SIZE(dtypes))];
		break;
	case 1:
		grid->read_only = 1;
		break;
	case 2:
		/* Two grids, one on the other, or interleaved. */
		grid->base = WORLD_BASE + 4 * rng_below(rng, 12);
		break;
	case 3:
		me->col_cuts[g][rng_below(rng, last + 1)] += 1;
		grid->row_stride += 4;
		break;
	case 4:
		me->row_cuts[g][rng_below(rng, grid->block_rows + 1)] += 1;
		break;
	case 5:
		me->prog.digest[rng_below(rng, 2)] ^= 1;
		break;
	default:
		me->prog.blocks -= rng_below(rng, 2);
		break;
	}
}

static void spoil_world(struct world *w, struct rng *rng)
{
	struct world_rank *me = &w->rank[rng_below(rng, w->ranks)];

	switch (rng_below(rng, 8)) {
	case 0:
	case 1:
		spoil_trigger(me, rng);
		break;
	case 2:
	case 3:
	case 4:
		spoil_source(me, rng);
		break;
	case 5:
		spoil_block(me, rng);
		break;
	default:
		spoil_grid(me, rng);
		break;
	}
}

void world_make(struct world *w, struct rng *rng, u32 spoil)
{
	u32 done[WORLD_RANKS][WORLD_BLOCKS] = { 0 };
	u32 updates = rng_below(rng, 40);
	u32 r, b;

	memset(w, 0, sizeof(*w));
	w->ranks = 1 + rng_below(rng, WORLD_RANKS);
	make_grids(w, rng);
	make_blocks(w, rng);
	for (r = 0; r < w->ranks; r++) {
		for (b = 0; b < w->rank[r].prog.blocks; b++)
			done[r][b] = w->rank[r].block[b].flags;
	}
	while (updates--)
		make_update(w, rng, done);
	for (r = 0; r < w->ranks; r++)
		shuffle(&w->rank[r], rng);
	if (!rng_chance(rng, spoil))
		return;
	do {
		spoil_world(w, rng);
	} while (rng_chance(rng, 20));
}
