// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libFuzzer on the validation of plans: bytes become the programs of a few
 * ranks, sound or not; the core says what it thinks of them.
 *
 * - Nothing outside the arrays is touched (ASan: each has its exact size).
 * - A refusal names a rank, and a trigger of it or none, and where the slow
 *   reference looks it finds the fault too.
 * - What is accepted has no fault that the reference knows, and runs: each
 *   trigger fires once an epoch and every rank retires.
 *
 * A byte's usual values make usual programs; its highest ones make numbers that
 * are wrong, huge or both.
 */
#include <stdio.h>
#include <stdlib.h>

#include "play.h"
#include "reduce.h"

#define MAX_GRIDS	3
#define MAX_SIDE	3	/* blocks of a grid in a row or a column */
#define MAX_FUZZ_TRIGGERS	16
#define EPOCHS		2

/* Of the inputs, one in so many is shown to the reference, which is slow. */
#ifndef REFERENCE_EVERY
#define REFERENCE_EVERY	8
#endif

/* What is left of an input; zeros follow its end. */
struct bytes {
	const u8 *at;
	const u8 *end;
};

/* Numbers at the edge of something, for bytes from WILD up. */
#define WILD	0xf0

static const u32 wild[256 - WILD] = {
	0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff, 0, 63, 64, 65,
	65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 4 << 20, (4 << 20) + 1,
	256,
};

static u8 take(struct bytes *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static u32 number(u8 byte)
{
	return byte < WILD ? byte : wild[byte - WILD];
}

/* An array's memory, of its exact size, so that a step outside is seen. */
static void *exactly(size_t n, size_t size)
{
	void *p = malloc(n * size ?: 1);

	if (!p)
		abort();
	memset(p, 0, n * size);
	return p;
}

static void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

/* --- from bytes to programs ------------------------------------------------ */

/* Steps are small, or so large that the grid is refused for it. */
static u32 *make_cuts(struct bytes *in, u32 n)
{
	static const u32 large[] = { 0xffffffff, 0x80000000, (4 << 20) + 1, 0 };
	u32 *cuts = exactly(n + 1, sizeof(u32));
	u32 i;

	for (i = 0; i < n; i++) {
		u8 b = take(in);

		if (b >= WILD)
			cuts[i + 1] = cuts[i] + large[b & 3];
		else
			cuts[i + 1] = cuts[i] + 1 + (b & 7);
	}
	if (take(in) >= WILD)
		cuts[0] = 1;
	return cuts;
}

static void make_grid(struct bytes *in, struct t3_grid *grid, u32 *blocks)
{
	u8 kind = take(in);
	u8 shape = take(in);
	u8 place = take(in);
	u32 rows = shape % (MAX_SIDE + 1);
	u32 cols = shape / 16 % (MAX_SIDE + 1);

	grid->dtype = kind & 7;
	grid->read_only = kind >= 0xe0;
	grid->row_cuts = make_cuts(in, rows);
	grid->col_cuts = make_cuts(in, cols);
	grid->block_rows = rows;
	grid->block_cols = cols;
	grid->first_block = *blocks + (place == 0xff);
	grid->base = WORLD_BASE + place * 8;
	grid->row_stride = ((u64)grid->col_cuts[cols] + (take(in) & 15)) *
			   t3_dtype_size(grid->dtype);
	*blocks += rows * cols;
	/* Over the limit these are refused before the cuts are read. */
	if (shape >= WILD)
		grid->block_rows = T3_MAX_BLOCKS + 1 + shape;
}

static void make_block(struct bytes *in, struct t3_plan_block *block)
{
	u8 b = take(in);

	block->flags = b & 1;
	block->tiles = b & 1 ? b >> 1 & 3 : 0;
	block->readers = b >> 3 & 15;
	if (b < 0x80)
		return;
	switch (b >> 5 & 3) {
	case 0:
		block->flags = take(in);
		break;
	case 1:
		block->tiles = number(take(in));
		break;
	case 2:
		block->readers = 1ULL << (take(in) & 63);
		break;
	}
}

static void make_source(struct bytes *in, struct t3_source *s, u32 ranks)
{
	u8 who = take(in);
	u8 what = take(in);

	s->rank = who & 0x80 ? number(take(in)) : (who & 15) % ranks;
	s->region = who >> 4 & 3;
	s->block = what & 7;
	s->at = 1 + (what >> 3 & 3);
	if (what >= 0xe0)
		s->at = number(take(in));
	else if (what >= 0xc0)
		s->block = number(take(in));
}

/* Returns how many sources it really has. */
static u32 make_trigger(struct bytes *in, struct t3_trigger *t, u32 first)
{
	u8 kind = take(in);
	u8 what = take(in);
	u32 sources = 1 + (kind >> 3 & 3);

	t->op = kind & 1 ? T3_OP_SUM : T3_OP_COPY;
	if (t->op == T3_OP_COPY)
		sources = 1;
	t->region = kind >> 1 & 3;
	t->block = what & 7;
	t->seq = 1 + (what >> 3 & 3);
	t->first_source = first;
	t->sources = sources;
	if (kind >= 0xf0)
		t->op = take(in);
	else if (kind >= 0xe0)
		t->sources = number(take(in));
	else if (kind >= 0xd0)
		t->first_source = number(take(in));
	if (what >= 0xe0)
		t->seq = number(take(in));
	else if (what >= 0xc0)
		t->block = number(take(in));
	return sources;
}

static void make_triggers(struct bytes *in, struct t3_program *prog, u32 ranks)
{
	u8 n = take(in);
	u32 triggers = n % (MAX_FUZZ_TRIGGERS + 1);
	struct t3_trigger *trigger = exactly(triggers, sizeof(*trigger));
	struct t3_source *source;
	u32 i, sources = 0;

	for (i = 0; i < triggers; i++)
		sources += make_trigger(in, &trigger[i], sources);
	source = exactly(sources, sizeof(*source));
	for (i = 0; i < sources; i++)
		make_source(in, &source[i], ranks);
	prog->trigger = trigger;
	prog->source = source;
	prog->triggers = n == 0xff ? T3_MAX_TRIGGERS + 1 : triggers;
	/* One less than there are is an array that is longer, which is fine. */
	prog->sources = n == 0xfe ? T3_MAX_SOURCES + 1 :
			n == 0xfd && sources ? sources - 1 : sources;
}

static void make_program(struct bytes *in, struct t3_program *prog, u32 ranks)
{
	u8 n = take(in);
	u32 grids = n % (MAX_GRIDS + 1);
	struct t3_grid *grid = exactly(grids, sizeof(*grid));
	struct t3_plan_block *block;
	u32 i, blocks = 0;

	prog->digest[0] = n == 0xfc;
	prog->digest[1] = n == 0xfb;
	for (i = 0; i < grids; i++)
		make_grid(in, &grid[i], &blocks);
	block = exactly(blocks, sizeof(*block));
	for (i = 0; i < blocks; i++)
		make_block(in, &block[i]);
	prog->grid = grid;
	prog->block = block;
	prog->grids = n == 0xff ? T3_MAX_PLAN_REGIONS + 1 : grids;
	prog->blocks = n == 0xfe ? T3_MAX_BLOCKS + 1 :
		       n == 0xfd && blocks ? blocks - 1 : blocks;
	make_triggers(in, prog, ranks);
}

static void free_program(struct t3_program *prog, u32 grids)
{
	u32 i;

	for (i = 0; i < grids; i++) {
		free((void *)prog->grid[i].row_cuts);
		free((void *)prog->grid[i].col_cuts);
	}
	free((void *)prog->grid);
	free((void *)prog->block);
	free((void *)prog->trigger);
	free((void *)prog->source);
}

/* --- what must hold ------------------------------------------------------- */

/* The reference reads what programs say, so that they may not say too much. */
static bool reference_can(const struct world *w)
{
	u32 r, g;

	for (r = 0; r < w->ranks; r++) {
		const struct t3_program *prog = &w->rank[r].prog;

		if (prog->grids > MAX_GRIDS || prog->blocks > WORLD_BLOCKS ||
		    prog->triggers > WORLD_TRIGGERS ||
		    prog->sources > WORLD_SOURCES)
			return false;
		for (g = 0; g < prog->grids; g++)
			if (prog->grid[g].block_rows > MAX_SIDE)
				return false;
	}
	return true;
}

static void check_refusal(struct world *w, const struct t3_verdict *v, int ret,
			  bool reference)
{
	must(v->error == (u32)-ret, "the verdict has the returned errno");
	must(v->rank < w->ranks, "a refusal names a rank");
	must(v->trigger == T3_NONE ||
	     v->trigger < w->rank[v->rank].prog.triggers,
	     "a refusal names a trigger of that rank");
	if (reference && ret != -E2BIG)
		must(world_fault(w, v), "the reference finds the fault");
}

static void arm_all(struct play *p)
{
	u32 r, b, k, epoch, block;

	for (r = 0; r < p->w->ranks; r++)
		must(!t3_machine_arm(&p->m, r, &epoch, &block), "it can be armed");
	for (r = 0; r < p->w->ranks; r++) {
		const struct t3_program *prog = &p->w->rank[r].prog;

		for (b = 0; b < prog->blocks; b++) {
			u32 tiles = prog->block[b].tiles;

			for (k = 0; k < tiles; k += tiles > 4 ? tiles : 1)
				must(!t3_machine_tiles(&p->m, r, b,
						       tiles > 4 ? tiles : 1),
				     "tiles are counted");
		}
	}
}

static void check_run(struct play *p)
{
	u32 e, i, trigger;

	play_start(p, 0);
	for (e = 1; e <= EPOCHS; e++) {
		arm_all(p);
		while (t3_ready_pop(p->ready, p->mask, &trigger))
			t3_machine_complete(&p->m, trigger);
		for (i = 0; i < p->w->ranks; i++)
			must(p->retired[i] == e, "every rank retires");
	}
	for (i = 0; i < p->graph.triggers; i++)
		must(p->fired[i] == EPOCHS, "a trigger fires once an epoch");
}

static bool show_reference(const u8 *data, size_t size)
{
	u32 hash = 2166136261u;
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 16777619;
	return !((hash >> 8) % REFERENCE_EVERY);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct bytes in = { data, data + size };
	static struct world w;
	u32 grids[WORLD_RANKS];
	struct t3_verdict v;
	bool reference;
	struct play p;
	u32 r;
	int ret;

	w.ranks = 1 + take(&in) % WORLD_RANKS;
	for (r = 0; r < w.ranks; r++) {
		grids[r] = in.at < in.end ? *in.at % (MAX_GRIDS + 1) : 0;
		make_program(&in, &w.rank[r].prog, w.ranks);
	}
	reference = show_reference(data, size) && reference_can(&w);
	ret = play_verdict(&p, &w, &v);
	if (ret) {
		check_refusal(&w, &v, ret, reference);
	} else {
		if (reference)
			must(!world_any_fault(&w), "the reference finds no fault");
		check_run(&p);
		play_end(&p);
	}
	for (r = 0; r < w.ranks; r++)
		free_program(&w.rank[r].prog, grids[r]);
	return 0;
}
