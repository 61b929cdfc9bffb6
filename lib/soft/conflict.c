// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which plans of a member write the same bytes: those are not armed together.
 */
#include <stdlib.h>

#include "grid.h"
#include "soft.h"

static void mark_use(struct soft_plan *plan)
{
	const struct t3_graph *g = &plan->graph;
	u32 first = g->first_block[plan->p.member->rank];
	u32 blocks = g->first_block[plan->p.member->rank + 1] - first;
	u32 i;

	plan->use = calloc(blocks + 1, 1);
	for (i = 0; plan->use && i < blocks; i++) {
		bool written = g->tiles[first + i] ||
			       g->updates[first + i] > g->produced[first + i];

		plan->use[i] = written ? T3_USE_WRITTEN : 0;
	}
}

static bool plans_clash(const struct soft_plan *a, const struct soft_plan *b)
{
	const struct t3_program *pa = &a->p.planned.program;
	const struct t3_program *pb = &b->p.planned.program;
	u32 i, k, block;

	for (i = 0; i < pa->grids; i++) {
		for (k = 0; k < pb->grids; k++) {
			const struct t3_grid *ga = &pa->grid[i];
			const struct t3_grid *gb = &pb->grid[k];

			if (t3_grids_clash(ga, a->use + ga->first_block, gb,
					   b->use + gb->first_block, &block))
				return true;
		}
	}
	return false;
}

/* Without memory to know better, any two plans are taken to clash. */
static bool clash(const struct soft_plan *a, const struct soft_plan *b)
{
	return !a->use || !b->use || plans_clash(a, b);
}

/*
 * Two threads that add plans at once both see the other's, in the worst case:
 * m->lock makes one the later.
 */
void soft_conflicts_add(struct soft_member *m, struct soft_plan *plan)
{
	u32 slot;

	mark_use(plan);
	pthread_mutex_lock(&m->lock);
	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct soft_plan *other = m->plan[slot];

		if (!other || !clash(plan, other))
			continue;
		t3_or64(&plan->conflicts, 1ULL << slot);
		t3_or64(&other->conflicts, 1ULL << plan->p.slot);
	}
	m->plan[plan->p.slot] = plan;
	pthread_mutex_unlock(&m->lock);
}

void soft_conflicts_del(struct soft_member *m, struct soft_plan *plan)
{
	u64 bit = 1ULL << plan->p.slot;
	u32 slot;

	pthread_mutex_lock(&m->lock);
	m->plan[plan->p.slot] = NULL;
	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		if (m->plan[slot])
			__atomic_fetch_and(&m->plan[slot]->conflicts, ~bit,
					   __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&m->lock);
}
