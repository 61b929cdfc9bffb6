// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans: made together with all ranks, looked at, deleted.
 */
#include <stdlib.h>

#include "front.h"
#include "planner.h"

static int check_region(const char *call, const char *name,
			const struct t3_member *member,
			const struct t3_region *region, bool written)
{
	if (!region)
		return t3_fail_null(call, name);
	if (region->member != member)
		return t3_fail(EINVAL, "%s: %s is another member's", call, name);
	if (written && region->matrix.flags & T3_REGION_READ_ONLY)
		return t3_fail(EROFS, "%s: %s is read-only, and the plan writes it",
			       call, name);
	return 0;
}

static int check_same_form(const char *call, const struct t3_matrix *a,
			   const struct t3_matrix *b)
{
	if (a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype &&
	    a->layout == b->layout)
		return 0;
	return t3_fail(EINVAL,
		       "%s: collective->second is %llu x %llu, dtype %u, layout %u, not as region: %llu x %llu, %u, %u",
		       call, (unsigned long long)b->rows,
		       (unsigned long long)b->cols, b->dtype, b->layout,
		       (unsigned long long)a->rows, (unsigned long long)a->cols,
		       a->dtype, a->layout);
}

static int check_regions(const char *call, const struct t3_member *member,
			 const struct t3_collective *c)
{
	bool exchange = c->op == T3_ALL_TO_ALL;
	int ret = check_region(call, "collective->region", member, c->region,
			       !exchange);

	if (ret)
		return ret;
	if (!exchange && c->second)
		return t3_fail(EINVAL,
			       "%s: collective->second is not NULL, op %u has one region",
			       call, c->op);
	if (!exchange)
		return 0;
	ret = check_region(call, "collective->second", member, c->second, true);
	if (ret)
		return ret;
	if (c->second == c->region)
		return t3_fail(ELOOP,
			       "%s: collective->second is region: all-to-all in place is a cycle",
			       call);
	return check_same_form(call, &c->region->matrix, &c->second->matrix);
}

static int check(const char *call, const struct t3_member *member,
		 const struct t3_collective *c)
{
	if (c->op < T3_REDUCE_SCATTER || c->op > T3_ALL_TO_ALL)
		return t3_fail(EINVAL, "%s: collective->op is %u, allowed are %u to %u",
			       call, c->op, T3_REDUCE_SCATTER, T3_ALL_TO_ALL);
	if (c->flags & ~T3_PLAN_SILENT_PRODUCERS)
		return t3_fail(EINVAL, "%s: collective->flags is %#x, allowed are 0 and %#x",
			       call, c->flags, T3_PLAN_SILENT_PRODUCERS);
	return check_regions(call, member, c);
}

static int make_program(struct t3_plan *plan)
{
	const struct t3_collective *c = &plan->collective;
	const struct t3_matrix *m = &c->region->matrix;
	const struct t3_plan_request request = {
		.op = c->op,
		.algorithm = c->algorithm,
		.ranks = plan->member->ranks,
		.rows = m->rows,
		.cols = m->cols,
		.dtype = m->dtype,
		.layout = m->layout,
		.block_bytes = c->block_bytes,
		.tiles = c->tiles ? c->tiles : 1,
	};
	uint32_t i;
	int ret;

	ret = t3_planner_make(&request, plan->member->rank, &plan->planned);
	if (ret)
		return ret;
	for (i = 0; i < plan->regions; i++) {
		struct t3_grid *grid = &plan->planned.grid[i];

		grid->base = (uintptr_t)plan->region[i]->matrix.base;
		/* Whether two dma-bufs are one, the engine knows. */
		if (plan->region[i]->dmabuf)
			grid->base += (uint64_t)(i + 1) << 62;
		grid->row_stride = plan->region[i]->row_stride;
		grid->read_only = plan->region[i]->matrix.flags &
				  T3_REGION_READ_ONLY;
	}
	return 0;
}

/* What is wrong with this part alone is found before others hear of it. */
static int check_program(const char *call, const struct t3_plan *plan)
{
	const struct t3_program *program = &plan->planned.program;
	struct t3_verdict verdict;
	void *scratch = malloc(t3_program_scratch(program));
	int ret;

	if (!scratch)
		return t3_fail(ENOMEM, "%s: no memory", call);
	ret = t3_program_check(program, plan->member->rank,
			       plan->member->ranks, scratch, &verdict);
	free(scratch);
	return ret ? t3_fail_verdict(call, &verdict) : 0;
}

/* All that a plan needs of this process; nothing outside is changed. */
static int prepare(const char *call, struct t3_member *member,
		   const struct t3_collective *c, struct t3_plan **out)
{
	struct t3_plan *plan = calloc(1, member->ops->plan_bytes);
	int ret;

	if (!plan)
		return t3_fail(ENOMEM, "%s: no memory", call);
	plan->member = member;
	plan->collective = *c;
	plan->collective.size = sizeof(*c);
	plan->regions = c->op == T3_ALL_TO_ALL ? 2 : 1;
	plan->region[0] = c->region;
	plan->region[1] = c->second;
	ret = make_program(plan);
	if (!ret)
		ret = check_program(call, plan);
	if (ret) {
		t3_planner_free(&plan->planned);
		free(plan);
		return ret;
	}
	*out = plan;
	return 0;
}

/*
 * The first free slot from the generation's on: the same at all ranks, as they
 * make and delete plans in the same order, and not the one that was freed
 * last, which peers may not have given up yet. Caller holds member->plan_lock.
 */
static int choose_slot(const char *call, struct t3_plan *plan)
{
	struct t3_member *member = plan->member;
	uint32_t i;

	plan->generation = member->generation + 1;
	for (i = 0; i < T3_MAX_PLANS; i++) {
		plan->slot = (uint32_t)(member->generation + i) % T3_MAX_PLANS;
		if (!member->plan[plan->slot])
			return 0;
	}
	return t3_fail(ENOSPC, "%s: the member has %u plans, allowed are %u",
		       call, T3_MAX_PLANS, T3_MAX_PLANS);
}

static void use_regions(struct t3_plan *plan)
{
	uint32_t i;

	pthread_mutex_lock(&plan->member->lock);
	for (i = 0; i < plan->regions; i++)
		plan->region[i]->users++;
	pthread_mutex_unlock(&plan->member->lock);
}

/* Caller holds member->plan_lock. */
static int submit(const char *call, struct t3_plan *plan)
{
	struct t3_member *member = plan->member;
	struct t3_verdict verdict = { 0 };
	int ret = choose_slot(call, plan);

	if (ret)
		return ret;
	ret = member->ops->plan_add(plan, &verdict);
	pthread_mutex_lock(&member->lock);
	if (!ret || plan->submitted)
		member->generation = plan->generation;
	if (!ret)
		member->plan[plan->slot] = plan;
	pthread_mutex_unlock(&member->lock);
	return ret;
}

void t3_plan_forget(struct t3_plan *plan)
{
	struct t3_member *member = plan->member;
	uint32_t i;

	pthread_mutex_lock(&member->lock);
	for (i = 0; i < plan->regions; i++)
		plan->region[i]->users--;
	if (member->plan[plan->slot] == plan)
		member->plan[plan->slot] = NULL;
	pthread_mutex_unlock(&member->lock);
	t3_planner_free(&plan->planned);
	free(plan);
}

int t3_plan_add(struct t3_member *member, const struct t3_collective *collective,
		struct t3_plan **plan)
{
	struct t3_collective c;
	struct t3_plan *made = NULL;
	int ret;

	if (!member)
		return t3_fail_null(__func__, "member");
	if (!collective)
		return t3_fail_null(__func__, "collective");
	if (!plan)
		return t3_fail_null(__func__, "plan");
	ret = t3_copy_struct(__func__, "collective", &c, sizeof(c), sizeof(c),
			     collective);
	if (!ret)
		ret = check(__func__, member, &c);
	if (!ret)
		ret = prepare(__func__, member, &c, &made);
	if (ret)
		return ret;
	use_regions(made);
	pthread_mutex_lock(&member->plan_lock);
	ret = submit(__func__, made);
	pthread_mutex_unlock(&member->plan_lock);
	if (ret) {
		t3_plan_forget(made);
		return ret;
	}
	*plan = made;
	return 0;
}

int t3_plan_del(struct t3_plan *plan)
{
	int ret;

	if (!plan)
		return 0;
	ret = plan->member->ops->plan_del(plan);
	if (!ret)
		t3_plan_forget(plan);
	return ret;
}
