// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: executors: triggers that are ready are run from here by an engine, in
 * process context, from a work list that is never recursive.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/cpumask.h>

#include "engine.h"
#include "import.h"
#include "trace.h"

/* --- executors ------------------------------------------------------------ */

static enum t3_outcome run_one(struct t3_plan *plan, struct t3_exec *x,
			       u32 trigger, u64 *budget)
{
	struct t3_run r = {
		.plan = plan, .exec = x, .trigger = trigger, .budget = budget,
	};
	enum t3_outcome outcome = T3_RUN_BROKEN;

	trace_t3_trigger_start(plan, trigger, 0);
	r.began = t3_arb_begin(plan, trigger);
	if (t3_lanes_find(&r))
		outcome = t3_engine_run(&r);
	if (outcome == T3_RUN_AWAY)
		return outcome;
	t3_arb_end(plan, trigger, outcome == T3_RUN_DONE ? r.began : 0);
	trace_t3_trigger_end(plan, trigger, r.moved);
	t3_counted(T3_COUNT_BYTES_CPU, r.moved);
	t3_counted(T3_COUNT_TRIGGERS, outcome == T3_RUN_DONE);
	return outcome;
}

/*
 * The epoch's end may be somebody's fence: lockdep sees that nothing is done
 * here that may wait for it. With dma-bufs hold.c says which part that is.
 */
static void run(struct t3_plan *plan, struct t3_exec *x, u64 *budget)
{
	bool cookie = plan->imports || dma_fence_begin_signalling();
	enum t3_outcome outcome = T3_RUN_DONE;
	u32 trigger;

	while ((outcome == T3_RUN_DONE || outcome == T3_RUN_AWAY) &&
	       *budget && !READ_ONCE(plan->group->broken) &&
	       t3_ready_any(plan->ready) && !t3_arb_holds(plan) &&
	       t3_ready_pop(plan->ready, plan->ready_mask, &trigger)) {
		/* More than one is ready: others may help. */
		if (t3_ready_any(plan->ready))
			t3_plan_kick(plan);
		outcome = run_one(plan, x, trigger, budget);
	}
	if (!plan->imports)
		dma_fence_end_signalling(cookie);
}

/**
 * t3_plan_run - run what is ready, here and now
 * @plan: live
 * @budget: bytes that may be moved, less what was; the rest is the workers',
 *	and all of it in a plan with dma-bufs
 *
 * Where transfers have to give way to producers all is the workers', too.
 *
 * Context: sleeps. Return: something may have been run.
 */
bool t3_plan_run(struct t3_plan *plan, u64 *budget)
{
	struct t3_exec *x = NULL;

	if (!*budget || plan->imports || !t3_ready_any(plan->ready) ||
	    t3_arb_late(plan))
		goto kick;
	/* Without memory the workers, who have theirs, do all of it. */
	x = kmalloc(sizeof(*x), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (x) {
		x->hold = NULL;
		run(plan, x, budget);
		kfree(x);
	}
kick:
	t3_plan_kick(plan);
	return x;
}

/**
 * t3_plan_kick - if something is ready, see that a worker runs it
 * @plan: live; the caller holds a reference
 *
 * Context: any.
 */
void t3_plan_kick(struct t3_plan *plan)
{
	struct workqueue_struct *wq = t3_wq;
	u32 n;

	if (!t3_ready_any(plan->ready) || t3_arb_holds(plan))
		return;
	n = (u32)atomic_inc_return(&plan->next) %
	    min(plan->workers, READ_ONCE(t3_workers));
	kref_get(&plan->ref);
	if (plan->imports) {
		/* What waits for others' fences must not hold up what doesn't. */
		wq = t3_slow_wq;
	} else if (READ_ONCE(t3_arbitration) == T3_ARB_DMA_FIRST) {
		/* A worker's executor is its own: it never changes the queue. */
		wq = t3_first_wq;
		n += T3_WORKERS;
	}
	if (!queue_work(wq, &plan->worker[n].work))
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

static void exec_free(struct t3_exec *x)
{
	if (x)
		kfree(x->hold);
	kfree(x);
}

static struct t3_exec *exec_new(const struct t3_plan *plan)
{
	struct t3_exec *x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);

	if (!x || !plan->imports)
		return x;
	x->hold = t3_hold_new();
	if (x->hold)
		return x;
	exec_free(x);
	return NULL;
}

static int worker_init(struct t3_plan *plan, u32 i)
{
	struct t3_worker *w = &plan->worker[i];

	INIT_WORK(&w->work, worker);
	w->plan = plan;
	w->exec = exec_new(plan);
	return w->exec ? 0 : -ENOMEM;
}

int t3_plan_workers_init(struct t3_plan *plan)
{
	int ret = 0;
	u32 i;

	plan->workers = clamp(num_online_cpus(), 1U, (u32)T3_WORKERS);
	for (i = 0; i < plan->workers && !ret; i++)
		ret = worker_init(plan, i) ?:
		      worker_init(plan, T3_WORKERS + i);
	return ret;
}

/* No worker is pending or running, but the one that calls this at its end. */
void t3_plan_workers_free(struct t3_plan *plan)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(plan->worker); i++) {
		exec_free(plan->worker[i].exec);
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
	t3_fence_over(plan->part[rank]);
	wake_up_all(&plan->group->rank_wait[rank]);
}

static void updated(struct t3_machine *m, u32 rank, u32 block)
{
	struct t3_plan *plan = machine_plan(m);

	trace_t3_block(plan, rank, block, READ_ONCE(m->count[rank][block]));
	WRITE_ONCE(plan->progress, jiffies);
	if (unlikely(READ_ONCE(plan->fence_wanted)))
		t3_fence_wake(plan);
	t3_arb_updated(plan, rank, block);
}

const struct t3_machine_ops t3_plan_ops = {
	.ready = ready,
	.retired = retired,
	.updated = updated,
};
