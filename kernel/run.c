// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the cpu engine: triggers that are ready are run here, in process
 * context, from a work list that is never recursive.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/cpumask.h>
#include <linux/highmem.h>

#include "fp_env.h"
#include "reduce.h"
#include "t3.h"
#include "trace.h"

#define FPU_BYTES	(16 << 10)	/* of destination in one FPU section */
#define FPU_RUNS	256		/* pieces in one FPU section */
#define COPY_BYTES	(64 << 10)	/* between two looks at a break */

/**
 * struct t3_exec - what running a trigger needs; one executor's own
 * @lanes: operands: the destination, then the sources
 * @operand: places in their regions
 * @pages: their regions' pages
 * @skew: where the region begins in its first page
 * @at: where each operand's bytes are now
 */
struct t3_exec {
	u32 lanes;
	struct t3_operand operand[T3_MAX_RANKS + 1];
	struct page **pages[T3_MAX_RANKS + 1];
	u32 skew[T3_MAX_RANKS + 1];
	void *at[T3_MAX_RANKS + 1];
};

enum outcome {
	DONE,		/* the trigger has completed */
	PARKED,		/* the budget is used up, it is queued again */
	BROKEN,		/* the group broke, it is forgotten */
};

/* --- finding the memory --------------------------------------------------- */

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
	x->pages[n] = region->pages;
	x->skew[n] = offset_in_page(region->base);
	if (likely(!READ_ONCE(region->stale)))
		return true;
	t3_group_break(plan->group,
		       t3_cause(ESTALE, plan->graph.block_rank[block],
				plan->slot, T3_NONE));
	return false;
}

static bool set_lanes(struct t3_exec *x, const struct t3_plan *plan,
		      const struct t3_action *action, struct t3_rect *rect,
		      u32 *dtype)
{
	struct t3_rect other;
	u32 i;

	x->lanes = 0;
	if (!set_lane(x, plan, action->block, rect, dtype))
		return false;
	for (i = 0; i < action->sources; i++)
		if (!set_lane(x, plan,
			      plan->graph.source[action->first_source + i],
			      &other, dtype))
			return false;
	return true;
}

/*
 * Where an operand is now, and how many of @want bytes follow without a break
 * in the direct map.
 */
static u64 lane_span(struct t3_exec *x, u32 n, const struct t3_walk *w, u64 want)
{
	u64 pos = x->skew[n] + t3_walk_offset(w, &x->operand[n]);
	struct page **page = x->pages[n] + (pos >> PAGE_SHIFT);
	u64 bytes = PAGE_SIZE - offset_in_page(pos);
	u8 *base = page_address(*page);

	x->at[n] = base + offset_in_page(pos);
	while (bytes < want) {
		base += PAGE_SIZE;
		if (page_address(*++page) != base)
			return bytes;
		bytes += PAGE_SIZE;
	}
	return want;
}

static u64 span(struct t3_exec *x, const struct t3_walk *w, u64 want)
{
	u32 n;

	for (n = 0; n < x->lanes; n++)
		want = lane_span(x, n, w, want);
	return want;
}

/* --- moving --------------------------------------------------------------- */

static u64 copy_section(struct t3_exec *x, struct t3_walk *w)
{
	u64 bytes, done = 0;

	while (done < COPY_BYTES && t3_walk_run(w)) {
		bytes = span(x, w, min_t(u64, t3_walk_run(w),
					 COPY_BYTES - done));
		memcpy(x->at[0], x->at[1], bytes);
		t3_walk_step(w, bytes);
		done += bytes;
	}
	return done;
}

static u64 sum_section(struct t3_exec *x, struct t3_walk *w, u32 dtype)
{
	const struct t3_reduce *reduce = t3_reduce_best();
	u32 size = t3_dtype_size(dtype), runs;
	u64 bytes, done = 0, saved;

	saved = t3_fp_enter();
	for (runs = 0; runs < FPU_RUNS && done < FPU_BYTES && t3_walk_run(w);
	     runs++) {
		bytes = span(x, w, min_t(u64, t3_walk_run(w),
					 FPU_BYTES - done));
		reduce->sum[dtype - 1](x->at[0], (const void *const *)&x->at[1],
				       x->lanes - 1, bytes / size);
		t3_walk_step(w, bytes);
		done += bytes;
	}
	t3_fp_leave(saved);
	return done;
}

/*
 * One section, announced to breakers; the last one of a trigger completes it
 * before it is no longer in flight: who has seen a break drained finds no
 * count moving either. Preemption is off meanwhile: a breaker waits for as long
 * as the memory takes, and not until a thread that somebody gave a low priority
 * gets a processor again.
 *
 * Return: bytes; 0 where the group has broken. *@done: the trigger has
 * completed, and its walk may be somebody else's already.
 */
static u64 run_section(struct t3_plan *plan, struct t3_exec *x, u32 trigger,
		       u32 dtype, bool *done)
{
	struct t3_group *group = plan->group;
	struct t3_walk *w = &plan->walk[trigger];
	u64 bytes = 0;

	*done = false;
	preempt_disable();
	if (t3_machine_enter(&group->inflight, &group->broken)) {
		if (plan->graph.action[trigger].op == T3_OP_COPY)
			bytes = copy_section(x, w);
		else
			bytes = sum_section(x, w, dtype);
		if (!t3_walk_run(w)) {
			w->rows = 0;
			*done = true;
			t3_machine_complete(&plan->machine, trigger);
		}
		t3_machine_leave(&group->inflight);	/* a full fence */
	}
	preempt_enable();
	if (unlikely(READ_ONCE(group->broken)))
		wake_up_all(&group->drained);
	return bytes;
}

/*
 * Runs a trigger from where it stands. A walk is kept in the plan, so that
 * whoever takes an interrupted trigger next goes on and never begins again.
 * *@moved: bytes so far, from 0.
 */
static enum outcome run_trigger(struct t3_plan *plan, struct t3_exec *x,
				u32 trigger, u64 *budget, u64 *moved)
{
	const struct t3_action *action = &plan->graph.action[trigger];
	struct t3_walk *w = &plan->walk[trigger];
	struct t3_rect rect;
	bool done = false;
	u32 dtype;
	u64 bytes;

	if (!set_lanes(x, plan, action, &rect, &dtype))
		return BROKEN;
	if (!w->rows)
		t3_walk_start(w, rect.rows,
			      (u64)rect.cols * t3_dtype_size(dtype),
			      x->operand, x->lanes);
	while (*budget) {
		bytes = run_section(plan, x, trigger, dtype, &done);
		if (!bytes)
			return BROKEN;
		*moved += bytes;
		*budget -= min(*budget, bytes);
		cond_resched();
		if (done)
			return DONE;
	}
	t3_ready_push(plan->ready, plan->ready_mask, trigger);
	return PARKED;
}

/* --- executors ------------------------------------------------------------ */

static enum outcome run_one(struct t3_plan *plan, struct t3_exec *x,
			    u32 trigger, u64 *budget)
{
	enum outcome outcome;
	u64 moved = 0;

	trace_t3_trigger_start(plan, trigger, 0);
	outcome = run_trigger(plan, x, trigger, budget, &moved);
	trace_t3_trigger_end(plan, trigger, moved);
	t3_counted(T3_COUNT_BYTES_CPU, moved);
	t3_counted(T3_COUNT_TRIGGERS, outcome == DONE);
	return outcome;
}

static void run(struct t3_plan *plan, struct t3_exec *x, u64 *budget)
{
	u32 trigger;

	while (*budget && !READ_ONCE(plan->group->broken) &&
	       t3_ready_pop(plan->ready, plan->ready_mask, &trigger)) {
		/* More than one is ready: others may help. */
		if (t3_ready_any(plan->ready))
			t3_plan_kick(plan);
		if (run_one(plan, x, trigger, budget) != DONE)
			break;
	}
}

/**
 * t3_plan_run - run what is ready, here and now
 * @plan: live
 * @budget: bytes that may be moved, less what was; the rest is the workers'
 *
 * Context: sleeps.
 */
void t3_plan_run(struct t3_plan *plan, u64 *budget)
{
	struct t3_exec *x;

	if (!*budget || !t3_ready_any(plan->ready))
		goto kick;
	/* Without memory the workers, who have theirs, do all of it. */
	x = kmalloc(sizeof(*x), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (x) {
		run(plan, x, budget);
		kfree(x);
	}
kick:
	t3_plan_kick(plan);
}

/**
 * t3_plan_kick - if something is ready, see that a worker runs it
 * @plan: live; the caller holds a reference
 *
 * Context: any.
 */
void t3_plan_kick(struct t3_plan *plan)
{
	u32 n;

	if (!t3_ready_any(plan->ready))
		return;
	n = (u32)atomic_inc_return(&plan->next) %
	    min(plan->workers, READ_ONCE(t3_workers));
	kref_get(&plan->ref);
	if (!queue_work(t3_wq, &plan->worker[n].work))
		t3_plan_put(plan);
}

static void worker(struct work_struct *work)
{
	struct t3_worker *w = container_of(work, struct t3_worker, work);
	struct t3_plan *plan = w->plan;
	u64 budget = U64_MAX;

	run(plan, w->exec, &budget);
	t3_plan_put(plan);
}

int t3_plan_workers_init(struct t3_plan *plan)
{
	u32 i;

	plan->workers = clamp(num_online_cpus(), 1U, (u32)T3_WORKERS);
	for (i = 0; i < plan->workers; i++) {
		INIT_WORK(&plan->worker[i].work, worker);
		plan->worker[i].plan = plan;
		plan->worker[i].exec = kmalloc(sizeof(*plan->worker[i].exec),
					       GFP_KERNEL_ACCOUNT);
		if (!plan->worker[i].exec)
			return -ENOMEM;
	}
	return 0;
}

/* No worker is pending or running, but the one that calls this at its end. */
void t3_plan_workers_free(struct t3_plan *plan)
{
	u32 i;

	for (i = 0; i < plan->workers; i++) {
		kfree(plan->worker[i].exec);
		plan->worker[i].exec = NULL;
	}
}

/* --- what the machine tells ------------------------------------------------ */

static struct t3_plan *machine_plan(struct t3_machine *m)
{
	return container_of(m, struct t3_plan, machine);
}

/* Whoever caused the event runs it or calls t3_plan_kick() afterwards. */
static void ready(struct t3_machine *m, u32 trigger)
{
	struct t3_plan *plan = machine_plan(m);

	trace_t3_trigger_ready(plan, trigger, 0);
	t3_ready_push(plan->ready, plan->ready_mask, trigger);
}

static void retired(struct t3_machine *m, u32 rank, u32 epoch)
{
	struct t3_plan *plan = machine_plan(m);

	trace_t3_retire(plan, rank, epoch);
	t3_counted(T3_COUNT_EPOCHS, 1);
	/* Pairs with the acquire of whoever reads the page. */
	smp_store_release(&t3_part_status(plan->part[rank])->retired, epoch);
	wake_up_all(&plan->group->rank_wait[rank]);
}

static void updated(struct t3_machine *m, u32 rank, u32 block)
{
	struct t3_plan *plan = machine_plan(m);

	trace_t3_block(plan, rank, block, READ_ONCE(m->count[rank][block]));
	WRITE_ONCE(plan->progress, jiffies);
}

const struct t3_machine_ops t3_plan_ops = {
	.ready = ready,
	.retired = retired,
	.updated = updated,
};
