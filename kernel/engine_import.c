// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: triggers some of whose operands are in dma-bufs: these are held while the
 * cpu engine moves the bytes.
 */
#define pr_fmt(fmt) "t3: " fmt

#include "engine.h"
#include "import.h"

/**
 * t3_imports_find - find the dma-bufs among a trigger's operands
 * @x: its lanes are found; a worker's, with a hold
 *
 * Return: true where there is any: then t3_engine_import runs it.
 */
bool t3_imports_find(struct t3_exec *x)
{
	u32 n;

	t3_hold_reset(x->hold);
	for (n = 0; n < x->lanes; n++)
		if (x->region[n]->import)
			t3_hold_add(x->hold, x->region[n]->import, !n);
	return x->hold->buffers;
}

static void find_addresses(struct t3_exec *x)
{
	u32 n;

	for (n = 0; n < x->lanes; n++)
		if (x->region[n]->import)
			x->linear[n] = t3_import_address(x->region[n]->import) +
				       x->region[n]->base;
}

/* As the last section of a trigger without dma-bufs does it. */
static enum t3_outcome finish(const struct t3_run *r)
{
	struct t3_group *group = r->plan->group;
	bool good;

	preempt_disable();
	good = t3_machine_enter(&group->inflight, &group->broken);
	if (good) {
		r->plan->walk[r->trigger].rows = 0;
		t3_machine_complete(&r->plan->machine, r->trigger);
		t3_machine_leave(&group->inflight);	/* a full fence */
	}
	preempt_enable();
	if (unlikely(READ_ONCE(group->broken)))
		wake_up_all(&group->drained);
	return good ? T3_RUN_DONE : T3_RUN_BROKEN;
}

static enum t3_outcome fail(const struct t3_run *r, int error)
{
	const struct t3_graph *g = &r->plan->graph;
	u32 node = g->action[r->trigger].block;
	u32 rank = g->block_rank[node];
	u32 block = node - g->first_block[rank];

	if (error == -ECANCELED)
		return T3_RUN_BROKEN;
	pr_warn_ratelimited("group %u slot %u: rank %u block %u: a dma-buf of its trigger can't be used: error %d\n",
			    r->plan->group->id, r->plan->slot, rank, block,
			    error);
	t3_group_break(r->plan->group,
		       t3_cause(error == -ESTALE ? ESTALE : EIO, rank,
				r->plan->slot, block));
	return T3_RUN_BROKEN;
}

/* Workers alone run this, and they have no limit: it is never parked. */
static enum t3_outcome import_run(struct t3_run *r)
{
	u64 *limit = r->budget, all = U64_MAX;
	enum t3_outcome outcome;
	int ret;

	ret = t3_hold_begin(r->exec->hold, r->plan->group);
	if (ret)
		return fail(r, ret);
	find_addresses(r->exec);
	r->held = true;
	r->budget = &all;
	outcome = t3_engine_cpu.run(r);
	r->budget = limit;
	t3_hold_end(r->exec->hold, outcome == T3_RUN_DONE ? 0 : -ECANCELED);
	return outcome == T3_RUN_DONE ? finish(r) : outcome;
}

const struct t3_engine t3_engine_import = {
	.name = "import",
	.run = import_run,
};
