// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: where the operands of a trigger are: its lanes.
 */
#include <linux/highmem.h>

#include "engine.h"
#include "reduce.h"

static const struct t3_grid *block_grid(const struct t3_plan *plan, u32 block,
					struct t3_rect *rect,
					const struct t3_region **region)
{
	const struct t3_graph *g = &plan->graph;
	const struct t3_part *part = plan->part[g->block_rank[block]];
	const struct t3_grid *grid = &part->grid[g->grid_of[block]];

	*region = part->region[g->grid_of[block]];
	*rect = t3_grid_rect(grid, block - g->first_block[part->rank] -
				   grid->first_block);
	return grid;
}

/**
 * t3_trigger_bytes - bytes of a trigger's block
 * @plan: with graph and parts
 * @trigger: which
 *
 * Context: any.
 */
u64 t3_trigger_bytes(const struct t3_plan *plan, u32 trigger)
{
	const struct t3_region *region;
	const struct t3_grid *grid;
	struct t3_rect rect;

	grid = block_grid(plan, plan->graph.action[trigger].block, &rect,
			  &region);
	return (u64)rect.rows * rect.cols * t3_dtype_size(grid->dtype);
}

/* Return: false where the block's memory is stale; the group is broken then. */
static bool set_lane(struct t3_exec *x, const struct t3_plan *plan, u32 block,
		     struct t3_rect *rect, u32 *dtype)
{
	const struct t3_region *region;
	const struct t3_grid *grid = block_grid(plan, block, rect, &region);
	u32 n = x->lanes++;

	*dtype = grid->dtype;
	x->operand[n].offset = rect->row * grid->row_stride +
			       (u64)rect->col * t3_dtype_size(grid->dtype);
	x->operand[n].stride = grid->row_stride;
	x->region[n] = region;
	x->pages[n] = region->pages;
	x->skew[n] = offset_in_page(region->base);
	x->linear[n] = NULL;
	if (likely(!READ_ONCE(region->stale)))
		return true;
	t3_group_break(plan->group,
		       t3_cause(ESTALE, plan->graph.block_rank[block],
				plan->slot, T3_NONE));
	return false;
}

/**
 * t3_lanes_find - find the memory of a trigger's operands
 * @r: plan, trigger and executor are set; its lanes and dtype are filled in
 *
 * A walk that has not begun is set to its beginning.
 *
 * Context: any but hard-irq.
 * Return: false where some of it is stale; the group is broken then.
 */
bool t3_lanes_find(struct t3_run *r)
{
	const struct t3_graph *g = &r->plan->graph;
	const struct t3_action *action = &g->action[r->trigger];
	struct t3_walk *w = &r->plan->walk[r->trigger];
	struct t3_exec *x = r->exec;
	struct t3_rect rect, other;
	u32 i;

	x->lanes = 0;
	if (!set_lane(x, r->plan, action->block, &rect, &r->dtype))
		return false;
	for (i = 0; i < action->sources; i++)
		if (!set_lane(x, r->plan, g->source[action->first_source + i],
			      &other, &r->dtype))
			return false;
	if (!w->rows)
		t3_walk_start(w, rect.rows,
			      (u64)rect.cols * t3_dtype_size(r->dtype),
			      x->operand, x->lanes);
	return true;
}
