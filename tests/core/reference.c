// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reference: what programs mean, said as plainly as can be. It is slow: it
 * looks for the next update that may run by trying all, and knows nothing of
 * counters, edges or graphs.
 */
#include <errno.h>
#include <string.h>

#include "reduce.h"
#include "world.h"

/* One update of one block: a production, or a trigger. */
struct update {
	u32 rank;
	u32 block;
	u32 seq;
	const struct t3_trigger *trigger;	/* NULL: a production */
	bool done;
};

struct updates {
	u32 n;
	struct update of[WORLD_RANKS * (WORLD_BLOCKS + WORLD_TRIGGERS)];
};

static u32 blocks_of_grid(const struct t3_grid *grid)
{
	return grid->block_rows * grid->block_cols;
}

static const struct t3_program *prog_of(const struct world *w, u32 rank)
{
	return &w->rank[rank].prog;
}

static u32 destination(const struct world *w, u32 rank,
		       const struct t3_trigger *t)
{
	return prog_of(w, rank)->grid[t->region].first_block + t->block;
}

static const struct t3_source *sources(const struct world *w, u32 rank,
				       const struct t3_trigger *t)
{
	return prog_of(w, rank)->source + t->first_source;
}

static u32 source_block(const struct world *w, const struct t3_source *s)
{
	return prog_of(w, s->rank)->grid[s->region].first_block + s->block;
}

static bool cuts_ascend(const u32 *cuts, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (cuts[i + 1] <= cuts[i])
			return false;
	return !cuts[0] && n;
}

static bool grids_sound(const struct world *w, u32 rank)
{
	const struct t3_program *prog = prog_of(w, rank);
	u32 blocks = 0;
	u32 i;

	for (i = 0; i < prog->grids; i++) {
		const struct t3_grid *grid = &prog->grid[i];

		if (!t3_dtype_size(grid->dtype) ||
		    !cuts_ascend(grid->row_cuts, grid->block_rows) ||
		    !cuts_ascend(grid->col_cuts, grid->block_cols) ||
		    grid->first_block != blocks)
			return false;
		blocks += blocks_of_grid(grid);
	}
	return blocks == prog->blocks;
}

static bool has_bad_grid(const struct world *w, u32 rank, u32 error)
{
	const struct t3_program *prog = prog_of(w, rank);
	u32 i;

	for (i = 0; i < prog->grids; i++)
		if (error == EINVAL && !t3_dtype_size(prog->grid[i].dtype))
			return true;
	/* Cuts that don't ascend, or blocks that the grids don't have. */
	return error == ERANGE || error == E2BIG;
}

static bool block_fault(const struct world *w, u32 rank, u32 b, u32 error)
{
	const struct t3_plan_block *block = &prog_of(w, rank)->block[b];
	bool produced = block->flags == T3_BLOCK_PRODUCED;

	switch (error) {
	case EINVAL:
		return block->flags > 1 || (block->tiles && !produced);
	case ERANGE:
		return block->tiles > T3_MAX_TILES ||
		       block->readers >> w->ranks;
	}
	return false;
}

static bool any_block_fault(const struct world *w, u32 rank, u32 error)
{
	u32 b;

	for (b = 0; b < prog_of(w, rank)->blocks; b++)
		if (block_fault(w, rank, b, error))
			return true;
	return false;
}

static u32 list_start(const struct world *w, u32 rank, u32 i)
{
	u32 at = 0;

	while (i--)
		at += prog_of(w, rank)->trigger[i].sources;
	return at;
}

static bool in_range(const struct world *w, u32 rank, u32 i)
{
	const struct t3_program *prog = prog_of(w, rank);
	const struct t3_trigger *t = &prog->trigger[i];
	u32 k;

	if (t->region >= prog->grids ||
	    t->block >= blocks_of_grid(&prog->grid[t->region]) ||
	    !t->sources || t->first_source != list_start(w, rank, i) ||
	    t->first_source + t->sources > prog->sources ||
	    (t->op == T3_OP_COPY && t->sources != 1))
		return false;
	for (k = 0; k < t->sources; k++)
		if (sources(w, rank, t)[k].rank >= w->ranks ||
		    !sources(w, rank, t)[k].at)
			return false;
	return true;
}

/* Are all triggers of a rank well-formed, and its list of sources used up? */
static bool form_sound(const struct world *w, u32 rank)
{
	const struct t3_program *prog = prog_of(w, rank);
	u32 i;

	for (i = 0; i < prog->triggers; i++)
		if ((prog->trigger[i].op != T3_OP_COPY &&
		     prog->trigger[i].op != T3_OP_SUM) ||
		    !in_range(w, rank, i) ||
		    prog->grid[prog->trigger[i].region].read_only)
			return false;
	return list_start(w, rank, prog->triggers) == prog->sources;
}

static u32 updates_of(const struct world *w, u32 rank, u32 block)
{
	const struct t3_program *prog = prog_of(w, rank);
	u32 n = prog->block[block].flags & 1;
	u32 i;

	for (i = 0; i < prog->triggers; i++)
		n += destination(w, rank, &prog->trigger[i]) == block;
	return n;
}

static bool number_used(const struct world *w, u32 rank, u32 i)
{
	const struct t3_program *prog = prog_of(w, rank);
	const struct t3_trigger *t = &prog->trigger[i];
	u32 k;

	for (k = 0; k < prog->triggers; k++)
		if (k != i && prog->trigger[k].seq == t->seq &&
		    destination(w, rank, &prog->trigger[k]) ==
		    destination(w, rank, t))
			return true;
	return false;
}

static bool number_wild(const struct world *w, u32 rank, u32 i)
{
	const struct t3_trigger *t = &prog_of(w, rank)->trigger[i];
	u32 block = destination(w, rank, t);

	return t->seq <= (prog_of(w, rank)->block[block].flags & 1) ||
	       t->seq > updates_of(w, rank, block);
}

static bool numbers_sound(const struct world *w, u32 rank)
{
	u32 i;

	for (i = 0; i < prog_of(w, rank)->triggers; i++)
		if (number_used(w, rank, i) || number_wild(w, rank, i))
			return false;
	return true;
}

static bool written(const struct world *w, u32 rank, u32 block)
{
	const struct t3_plan_block *b = &prog_of(w, rank)->block[block];

	return b->tiles || updates_of(w, rank, block) > (b->flags & 1);
}

static bool blocks_meet(struct world *w, u32 rank, u32 a, u32 b)
{
	struct t3_rect of_a = world_rect(w, rank, a);
	struct t3_rect of_b = world_rect(w, rank, b);
	u32 size_a = t3_dtype_size(world_dtype(w, rank, a));
	u32 size_b = t3_dtype_size(world_dtype(w, rank, b));
	u32 i, j;

	for (i = 0; i < of_a.rows; i++) {
		u8 *begin_a = world_element(w, rank, a, i, 0);

		for (j = 0; j < of_b.rows; j++) {
			u8 *begin_b = world_element(w, rank, b, j, 0);

			if (begin_a < begin_b + of_b.cols * size_b &&
			    begin_b < begin_a + of_a.cols * size_a)
				return true;
		}
	}
	return false;
}

static bool overlaps(struct world *w, u32 rank)
{
	u32 blocks = prog_of(w, rank)->blocks;
	u32 a, b;

	for (a = 0; a < blocks; a++)
		for (b = 0; b < a; b++)
			if (updates_of(w, rank, a) && updates_of(w, rank, b) &&
			    (written(w, rank, a) || written(w, rank, b)) &&
			    blocks_meet(w, rank, a, b))
				return true;
	return false;
}

static bool part_sound(struct world *w, u32 rank)
{
	return grids_sound(w, rank) && !any_block_fault(w, rank, EINVAL) &&
	       !any_block_fault(w, rank, ERANGE) && form_sound(w, rank) &&
	       numbers_sound(w, rank) && !overlaps(w, rank);
}

/* A fault of one source, seen from its owner's side. */
static u32 source_fault(const struct world *w, u32 rank,
			const struct t3_trigger *t, u32 k)
{
	const struct t3_source *s = &sources(w, rank, t)[k];
	struct t3_rect from, to;

	if (s->region >= prog_of(w, s->rank)->grids ||
	    s->block >= blocks_of_grid(&prog_of(w, s->rank)->grid[s->region]))
		return ERANGE;
	if (s->rank != rank &&
	    !(prog_of(w, s->rank)->block[source_block(w, s)].readers >> rank & 1))
		return EACCES;
	if (s->at > updates_of(w, s->rank, source_block(w, s)))
		return ERANGE;
	if (world_dtype(w, s->rank, source_block(w, s)) !=
	    world_dtype(w, rank, destination(w, rank, t)))
		return EPROTOTYPE;
	from = world_rect(w, s->rank, source_block(w, s));
	to = world_rect(w, rank, destination(w, rank, t));
	return from.rows != to.rows || from.cols != to.cols ? EMSGSIZE : 0;
}

static bool all_sources_sound(const struct world *w)
{
	u32 r, i, k;

	for (r = 0; r < w->ranks; r++)
		for (i = 0; i < prog_of(w, r)->triggers; i++)
			for (k = 0; k < prog_of(w, r)->trigger[i].sources; k++)
				if (source_fault(w, r, &prog_of(w, r)->trigger[i], k))
					return false;
	return true;
}

static void list_updates(const struct world *w, struct updates *u)
{
	u32 r, i;

	u->n = 0;
	for (r = 0; r < w->ranks; r++) {
		const struct t3_program *prog = prog_of(w, r);

		for (i = 0; i < prog->blocks; i++)
			if (prog->block[i].flags & 1)
				u->of[u->n++] = (struct update) {
					.rank = r, .block = i, .seq = 1 };
		for (i = 0; i < prog->triggers; i++)
			u->of[u->n++] = (struct update) {
				.rank = r,
				.block = destination(w, r, &prog->trigger[i]),
				.seq = prog->trigger[i].seq,
				.trigger = &prog->trigger[i],
			};
	}
}

static const struct update *find(const struct updates *u, u32 rank, u32 block,
				 u32 seq)
{
	u32 i;

	for (i = 0; i < u->n; i++)
		if (u->of[i].rank == rank && u->of[i].block == block &&
		    u->of[i].seq == seq)
			return &u->of[i];
	return NULL;
}

/* Does @x read the value that @block of @rank has after update @seq? */
static bool reads(const struct world *w, const struct update *x, u32 rank,
		  u32 block, u32 seq)
{
	u32 k;

	for (k = 0; x->trigger && k < x->trigger->sources; k++) {
		const struct t3_source *s = &sources(w, x->rank, x->trigger)[k];

		if (s->rank == rank && source_block(w, s) == block &&
		    s->at == seq)
			return true;
	}
	return false;
}

/* Must @before be done for @x to run? */
static bool depends(const struct world *w, const struct update *x,
		    const struct update *before)
{
	if (!x->trigger)
		return false;
	if (reads(w, x, before->rank, before->block, before->seq))
		return true;
	if (before->rank == x->rank && before->block == x->block &&
	    before->seq == x->seq - 1)
		return true;
	return before != x && x->seq > 1 &&
	       reads(w, before, x->rank, x->block, x->seq - 1);
}

static bool may_run(const struct world *w, const struct updates *u,
		    const struct update *x)
{
	u32 i;

	for (i = 0; i < u->n; i++)
		if (!u->of[i].done && depends(w, x, &u->of[i]))
			return false;
	return true;
}

/* Run what may run until nothing may; returns how many are left. */
static u32 run_all(struct world *w, struct updates *u,
		   void (*run)(struct world *w, const struct update *x, u32 epoch),
		   u32 epoch)
{
	u32 left = u->n;
	bool moved = true;
	u32 i;

	while (moved) {
		moved = false;
		for (i = 0; i < u->n; i++) {
			if (u->of[i].done || !may_run(w, u, &u->of[i]))
				continue;
			if (run)
				run(w, &u->of[i], epoch);
			u->of[i].done = true;
			moved = true;
			left--;
		}
	}
	return left;
}

/* Is @x on a cycle of what is left? Spread from it until nothing is new. */
static bool on_cycle(const struct world *w, const struct updates *u,
		     const struct update *x)
{
	bool reached[ARRAY_SIZE(u->of)] = { 0 };
	bool moved = true;
	u32 i, k;

	for (i = 0; i < u->n; i++)
		reached[i] = !u->of[i].done && depends(w, x, &u->of[i]);
	while (moved) {
		moved = false;
		for (i = 0; i < u->n; i++) {
			for (k = 0; k < u->n; k++) {
				if (!reached[i] || reached[k] || u->of[k].done ||
				    !depends(w, &u->of[i], &u->of[k]))
					continue;
				reached[k] = true;
				moved = true;
			}
		}
	}
	return reached[x - u->of];
}

static bool has_cycle(struct world *w)
{
	struct updates u;

	list_updates(w, &u);
	return run_all(w, &u, NULL, 0);
}

static bool cycle_fault(struct world *w, u32 rank, u32 trigger)
{
	const struct t3_trigger *t = &prog_of(w, rank)->trigger[trigger];
	struct updates u;

	list_updates(w, &u);
	return run_all(w, &u, NULL, 0) &&
	       on_cycle(w, &u, find(&u, rank, destination(w, rank, t), t->seq));
}

static bool digests_differ(const struct world *w, u32 rank)
{
	return memcmp(prog_of(w, rank)->digest, prog_of(w, 0)->digest,
		      sizeof(prog_of(w, 0)->digest));
}

static bool trigger_fault(struct world *w, const struct t3_verdict *v)
{
	const struct t3_program *prog = prog_of(w, v->rank);
	const struct t3_trigger *t = &prog->trigger[v->trigger];
	bool sound = part_sound(w, v->rank);
	u32 k;

	if (v->trigger >= prog->triggers)
		return false;
	switch (v->error) {
	case EINVAL:
		return t->op != T3_OP_COPY && t->op != T3_OP_SUM;
	case ENOTUNIQ:
		return form_sound(w, v->rank) &&
		       number_used(w, v->rank, v->trigger);
	case EROFS:
		return t->region < prog->grids &&
		       prog->grid[t->region].read_only;
	case ELOOP:
		return sound && cycle_fault(w, v->rank, v->trigger);
	case ERANGE:
		if (!in_range(w, v->rank, v->trigger))
			return true;
		if (form_sound(w, v->rank) &&
		    number_wild(w, v->rank, v->trigger))
			return true;
		break;
	}
	for (k = 0; sound && k < t->sources; k++)
		if (v->detail == k && source_fault(w, v->rank, t, k) == v->error)
			return true;
	return false;
}

bool world_fault(struct world *w, const struct t3_verdict *v)
{
	if (v->rank >= w->ranks)
		return false;
	if (v->trigger != T3_NONE)
		return trigger_fault(w, v);
	if (v->error == EBADMSG)
		return digests_differ(w, v->rank);
	if (!grids_sound(w, v->rank))
		return has_bad_grid(w, v->rank, v->error);
	if (v->error == EADDRINUSE)
		return overlaps(w, v->rank);
	if (any_block_fault(w, v->rank, v->error))
		return block_fault(w, v->rank, v->detail, v->error);
	return v->error == ERANGE &&
	       list_start(w, v->rank, prog_of(w, v->rank)->triggers) !=
	       prog_of(w, v->rank)->sources;
}

bool world_any_fault(struct world *w)
{
	u32 r;

	for (r = 0; r < w->ranks; r++)
		if (!part_sound(w, r))
			return true;
	for (r = 1; r < w->ranks; r++)
		if (digests_differ(w, r))
			return true;
	return !all_sources_sound(w) || has_cycle(w);
}

static void add_element(void *to, const u8 *from, u32 dtype)
{
	s32 whole[2];
	float single[2];

	if (dtype == T3_DTYPE_I32) {
		memcpy(&whole[0], to, 4);
		memcpy(&whole[1], from, 4);
		whole[0] = (u32)whole[0] + (u32)whole[1];
		memcpy(to, &whole[0], 4);
	} else {
		memcpy(&single[0], to, 4);
		memcpy(&single[1], from, 4);
		single[0] += single[1];
		memcpy(to, &single[0], 4);
	}
}

static void run_update(struct world *w, const struct update *x, u32 epoch)
{
	struct t3_rect rect = world_rect(w, x->rank, x->block);
	u32 dtype = world_dtype(w, x->rank, x->block);
	u32 row, col, k;

	if (!x->trigger) {
		world_produce(w, x->rank, x->block, epoch);
		return;
	}
	for (row = 0; row < rect.rows; row++) {
		for (col = 0; col < rect.cols; col++) {
			u8 sum[4] = { 0 };

			for (k = 0; k < x->trigger->sources; k++) {
				const struct t3_source *s =
					&sources(w, x->rank, x->trigger)[k];
				u8 *from = world_element(w, s->rank,
							 source_block(w, s),
							 row, col);

				if (k)
					add_element(sum, from, dtype);
				else
					memcpy(sum, from, 4);
			}
			memcpy(world_element(w, x->rank, x->block, row, col),
			       sum, 4);
		}
	}
}

void world_epoch(struct world *w, u32 epoch)
{
	struct updates u;

	list_updates(w, &u);
	run_all(w, &u, run_update, epoch);
}
