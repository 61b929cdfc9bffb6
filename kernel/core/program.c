// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What one rank's part of a plan can show to be wrong by itself.
 */
#include "program.h"

/**
 * struct t3_check - a check under way
 * @prog: what is checked
 * @rank: whose
 * @ranks: of how many
 * @verdict: what was found
 * @first_update: [blocks + 1] a block's first entry in @seen
 * @seen: [blocks + triggers] the block's update of that number has a writer
 * @use: [blocks] T3_USE_*
 *
 * On the checker's stack; the arrays are its scratch.
 */
struct t3_check {
	const struct t3_program *prog;
	u32 rank;
	u32 ranks;
	struct t3_verdict *verdict;
	u32 *first_update;
	u8 *seen;
	u8 *use;
};

static int t3_check_fails(struct t3_check *c, u32 error, u32 trigger,
			  u32 detail)
{
	return t3_refuse(c->verdict, error, c->rank, trigger, detail);
}

static u32 t3_grid_blocks(const struct t3_grid *grid)
{
	return grid->block_rows * grid->block_cols;
}

static int t3_check_sizes(struct t3_check *c)
{
	const struct t3_program *prog = c->prog;

	if (prog->grids > T3_MAX_PLAN_REGIONS ||
	    prog->blocks > T3_MAX_BLOCKS ||
	    prog->triggers > T3_MAX_TRIGGERS ||
	    prog->sources > T3_MAX_SOURCES)
		return t3_check_fails(c, E2BIG, T3_NONE, T3_NONE);
	return 0;
}

static int t3_check_grids(struct t3_check *c)
{
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < c->prog->grids; i++) {
		const struct t3_grid *grid = &c->prog->grid[i];
		int ret = t3_grid_check(grid);

		if (ret)
			return t3_check_fails(c, -ret, T3_NONE, grid->first_block);
		if (grid->first_block != blocks)
			return t3_check_fails(c, ERANGE, T3_NONE, blocks);
		blocks += (u64)grid->block_rows * grid->block_cols;
		if (blocks > c->prog->blocks)
			return t3_check_fails(c, E2BIG, T3_NONE, grid->first_block);
	}
	if (blocks != c->prog->blocks)
		return t3_check_fails(c, ERANGE, T3_NONE, blocks);
	return 0;
}

static int t3_check_blocks(struct t3_check *c)
{
	u64 strangers = c->ranks < 64 ? ~0ULL << c->ranks : 0;
	u32 i;

	for (i = 0; i < c->prog->blocks; i++) {
		const struct t3_plan_block *block = &c->prog->block[i];
		bool produced = block->flags & T3_BLOCK_PRODUCED;

		if (block->flags & ~T3_BLOCK_PRODUCED ||
		    (block->tiles && !produced))
			return t3_check_fails(c, EINVAL, T3_NONE, i);
		if (block->tiles > T3_MAX_TILES || block->readers & strangers)
			return t3_check_fails(c, ERANGE, T3_NONE, i);
		c->use[i] = !produced ? 0 :
			    block->tiles ? T3_USE_WRITTEN : T3_USE_SOURCE;
	}
	return 0;
}

/* The form of one trigger: its destination and its list of sources. */
static int t3_check_trigger(struct t3_check *c, u32 i, u32 next_source)
{
	const struct t3_trigger *t = &c->prog->trigger[i];
	u32 max = t->op == T3_OP_COPY ? 1 : T3_MAX_RANKS;
	const struct t3_grid *grid;

	if (t->op != T3_OP_COPY && t->op != T3_OP_SUM)
		return t3_check_fails(c, EINVAL, i, t->op);
	if (t->region >= c->prog->grids)
		return t3_check_fails(c, ERANGE, i, t->region);
	grid = &c->prog->grid[t->region];
	if (t->block >= t3_grid_blocks(grid))
		return t3_check_fails(c, ERANGE, i, t->block);
	if (grid->read_only)
		return t3_check_fails(c, EROFS, i, grid->first_block + t->block);
	if (!t->sources || t->sources > max)
		return t3_check_fails(c, ERANGE, i, t->sources);
	if (t->first_source != next_source ||
	    t->sources > c->prog->sources - next_source)
		return t3_check_fails(c, ERANGE, i, t->first_source);
	return 0;
}

static int t3_check_sources(struct t3_check *c, u32 i)
{
	const struct t3_trigger *t = &c->prog->trigger[i];
	u32 k;

	for (k = 0; k < t->sources; k++) {
		const struct t3_source *source =
			&c->prog->source[t->first_source + k];

		if (source->rank >= c->ranks || !source->at)
			return t3_check_fails(c, ERANGE, i, k);
	}
	return 0;
}

/* Check all triggers, and count the writers of each block. */
static int t3_check_triggers(struct t3_check *c)
{
	u32 next_source = 0;
	u32 i;
	int ret;

	for (i = 0; i < c->prog->triggers; i++) {
		const struct t3_trigger *t = &c->prog->trigger[i];
		u32 block;

		ret = t3_check_trigger(c, i, next_source);
		if (!ret)
			ret = t3_check_sources(c, i);
		if (ret)
			return ret;
		next_source += t->sources;
		block = c->prog->grid[t->region].first_block + t->block;
		c->first_update[block + 1]++;
		c->use[block] = T3_USE_WRITTEN;
		if (!(i % 1024))
			t3_relax();
	}
	if (next_source != c->prog->sources)
		return t3_check_fails(c, ERANGE, T3_NONE, next_source);
	return 0;
}

/* The updates of each block have the numbers P + 1 .. K, each once. */
static int t3_check_numbers(struct t3_check *c)
{
	u32 i;

	for (i = 0; i < c->prog->blocks; i++)
		c->first_update[i + 1] += c->first_update[i];
	for (i = 0; i < c->prog->triggers; i++) {
		const struct t3_trigger *t = &c->prog->trigger[i];
		u32 block = c->prog->grid[t->region].first_block + t->block;
		u32 p = c->prog->block[block].flags & T3_BLOCK_PRODUCED ? 1 : 0;
		u32 first = c->first_update[block];
		u32 writers = c->first_update[block + 1] - first;

		if (t->seq <= p || t->seq - p > writers)
			return t3_check_fails(c, ERANGE, i, t->seq);
		if (c->seen[first + t->seq - p - 1]++)
			return t3_check_fails(c, ENOTUNIQ, i, t->seq);
	}
	return 0;
}

static int t3_check_overlaps(struct t3_check *c)
{
	const struct t3_grid *grid = c->prog->grid;
	u32 i, j, block;

	for (i = 0; i < c->prog->grids; i++) {
		for (j = 0; j < i; j++) {
			if (t3_grids_clash(&grid[i], c->use + grid[i].first_block,
					   &grid[j], c->use + grid[j].first_block,
					   &block))
				return t3_check_fails(c, EADDRINUSE, T3_NONE,
						      grid[i].first_block + block);
		}
	}
	return 0;
}

u64 t3_program_scratch(const struct t3_program *prog)
{
	return ((u64)prog->blocks + 1) * sizeof(u32) +
	       (u64)prog->triggers + prog->blocks;
}

int t3_program_check(const struct t3_program *prog, u32 rank, u32 ranks,
		     void *scratch, struct t3_verdict *verdict)
{
	struct t3_check c = {
		.prog = prog,
		.rank = rank,
		.ranks = ranks,
		.verdict = verdict,
		.first_update = scratch,
	};
	int ret;

	t3_refuse(verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	ret = t3_check_sizes(&c);
	if (ret)
		return ret;
	c.seen = (u8 *)(c.first_update + prog->blocks + 1);
	c.use = c.seen + prog->triggers;
	memset(scratch, 0, t3_program_scratch(prog));
	ret = t3_check_grids(&c);
	if (!ret)
		ret = t3_check_blocks(&c);
	if (!ret)
		ret = t3_check_triggers(&c);
	if (!ret)
		ret = t3_check_numbers(&c);
	if (!ret)
		ret = t3_check_overlaps(&c);
	return ret;
}
