// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a plan looks like: steps, shards, blocks.
 */
#include "front.h"
#include "planner.h"

int t3_plan_info(const struct t3_plan *plan, struct t3_plan_info *info)
{
	struct t3_plan_info all = { 0 };

	if (!plan)
		return t3_fail_null(__func__, "plan");
	if (!info)
		return t3_fail_null(__func__, "info");
	if (info->size < sizeof(all))
		return t3_fail(EINVAL, "%s: info->size is %u, allowed are %zu and more",
			       __func__, info->size, sizeof(all));
	all.size = info->size;
	all.engine = plan->member->ops->id;
	all.algorithm = plan->planned.algorithm;
	all.steps = plan->planned.steps;
	all.blocks = plan->planned.program.blocks;
	all.triggers = plan->planned.program.triggers;
	all.overlap = plan->planned.overlap;
	all.moved_bytes = plan->planned.moved_bytes;
	/* A longer structure than this library knows: zero what is unknown. */
	memset(info, 0, info->size);
	memcpy(info, &all, sizeof(all));
	return 0;
}

static bool transposed(const struct t3_plan *plan)
{
	return plan->region[0]->matrix.layout == T3_COL_MAJOR;
}

int t3_plan_step(const struct t3_plan *plan, uint32_t step,
		 struct t3_rectangle *rect)
{
	struct t3_rect r;

	if (!plan)
		return t3_fail_null(__func__, "plan");
	if (!rect)
		return t3_fail_null(__func__, "rect");
	if (step >= plan->planned.steps)
		return -ERANGE;
	/* Steps are blocks of the first region. */
	r = t3_grid_rect(plan->planned.grid, plan->planned.step[step]);
	if (transposed(plan))
		*rect = (struct t3_rectangle) { r.col, r.row, r.cols, r.rows };
	else
		*rect = (struct t3_rectangle) { r.row, r.col, r.rows, r.cols };
	return 0;
}

int t3_plan_shard(const struct t3_plan *plan, uint32_t rank,
		  struct t3_rectangle *rect)
{
	const struct t3_matrix *m;
	uint32_t ranks;

	if (!plan)
		return t3_fail_null(__func__, "plan");
	if (!rect)
		return t3_fail_null(__func__, "rect");
	m = &plan->region[0]->matrix;
	ranks = plan->member->ranks;
	if (rank >= ranks)
		return t3_fail_range(__func__, "rank", rank, 0, ranks - 1);
	*rect = (struct t3_rectangle) {
		.row = t3_planner_shard(m->rows, ranks, rank),
		.rows = t3_planner_shard(m->rows, ranks, rank + 1) -
			t3_planner_shard(m->rows, ranks, rank),
		.cols = m->cols,
	};
	return 0;
}

/* The last of @n ascending cuts that is not past @at. */
static uint32_t find_cut(const uint32_t *cut, uint32_t n, uint64_t at)
{
	uint32_t low = 0;

	while (n - low > 1) {
		uint32_t middle = low + (n - low) / 2;

		if (cut[middle] <= at)
			low = middle;
		else
			n = middle;
	}
	return low;
}

int64_t t3_block_of(const struct t3_plan *plan, uint64_t row, uint64_t col)
{
	const struct t3_grid *grid;
	const struct t3_matrix *m;

	if (!plan)
		return t3_fail_null(__func__, "plan");
	m = &plan->region[0]->matrix;
	if (row >= m->rows)
		return t3_fail_range(__func__, "row", row, 0, m->rows - 1);
	if (col >= m->cols)
		return t3_fail_range(__func__, "col", col, 0, m->cols - 1);
	grid = plan->planned.grid;
	if (transposed(plan)) {
		uint64_t other = row;

		row = col;
		col = other;
	}
	return (int64_t)find_cut(grid->row_cuts, grid->block_rows, row) *
	       grid->block_cols +
	       find_cut(grid->col_cuts, grid->block_cols, col);
}
