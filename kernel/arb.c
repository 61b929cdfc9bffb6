// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: arbitration: who gives way, producers or transfers.
 *
 * round_robin	nobody: transfers run when they are ready, in the call that made
 *		them so and on workers, and share the processors as threads do
 * dma_first	the producers: workers have the highest priority
 * compute_first  the transfers, while the producers are behind and the bytes in
 *		flight are over a threshold
 *
 * Producers are behind while blocks of an armed epoch are outstanding and come
 * more slowly than the plan's first blocks came, when there was little to move
 * yet. The threshold is as many bytes as must be in flight for transfers to keep
 * up with that pace: the time that one block takes to be moved, divided by the
 * time between two productions, in blocks. So transfers get as much of the
 * memory as they need to hide behind the producers, and no more.
 *
 * Nothing is held back while nothing is in flight, and nothing for longer than
 * starve_us: who holds back starts a timer.
 */
#include <linux/ktime.h>

#include "compat.h"
#include "engine.h"

#define FIRST_MOST	8	/* blocks that show the pace */
#define SLACK		8	/* behind is an eighth more time than at the pace */

static bool compute_first(void)
{
	return READ_ONCE(t3_arbitration) == T3_ARB_COMPUTE_FIRST;
}

/* --- the producers -------------------------------------------------------- */

/**
 * t3_arb_arm - a rank is about to arm, or could not
 * @plan: live
 * @part: the rank's
 * @undo: it could not
 *
 * Context: any.
 */
void t3_arb_arm(struct t3_plan *plan, const struct t3_part *part, bool undo)
{
	int n = part->watched;

	atomic_add(undo ? -n : n, &plan->arb.outstanding);
}

static void measure_pace(struct t3_arb *arb, u64 now)
{
	u64 pace = div_u64(now - READ_ONCE(arb->began), arb->first - 1);
	u64 old = READ_ONCE(arb->pace);

	if (!old || pace < old)
		WRITE_ONCE(arb->pace, max(pace, 1ULL));
}

/* More than an eighth later than @produced blocks are at the pace. */
static bool is_late(const struct t3_arb *arb, u32 produced, u64 now)
{
	u64 pace = READ_ONCE(arb->pace);
	u64 due = pace * produced;

	return pace && produced && atomic_read(&arb->outstanding) > 0 &&
	       now - READ_ONCE(arb->began) > due + due / SLACK;
}

static void set_late(struct t3_plan *plan, bool late)
{
	if (READ_ONCE(plan->arb.late) == late)
		return;
	if (xchg(&plan->arb.late, late) != late)
		atomic_add(late ? 1 : -1, &plan->group->late_plans);
}

static void produced(struct t3_plan *plan)
{
	struct t3_arb *arb = &plan->arb;
	u64 now = ktime_get_ns();
	u32 n = atomic_inc_return(&arb->produced);
	bool late;

	atomic_dec(&arb->outstanding);
	if (n == 1)
		WRITE_ONCE(arb->began, now);
	else if (n == arb->first)
		measure_pace(arb, now);
	late = n > arb->first && n < arb->total && is_late(arb, n - 1, now);
	set_late(plan, late);
	/* The next one begins another epoch. */
	if (n >= arb->total)
		atomic_set(&arb->produced, 0);
}

/**
 * t3_arb_updated - a block has one more update
 * @plan: live
 * @rank: of the block
 * @block: which
 *
 * Context: any.
 */
void t3_arb_updated(struct t3_plan *plan, u32 rank, u32 block)
{
	const struct t3_graph *g = &plan->graph;
	const struct t3_machine *m = &plan->machine;
	u32 node = g->first_block[rank] + block;
	u32 before = (t3_machine_armed(m, rank) - 1) * g->updates[node];

	/* Production is a block's first update. */
	if (g->produced[node] && g->tiles[node] &&
	    READ_ONCE(m->count[rank][block]) - before == 1)
		produced(plan);
}

/**
 * t3_arb_late - do transfers of a plan have to give way now?
 * @plan: live
 *
 * Context: any. Return: always false but under compute_first.
 */
bool t3_arb_late(const struct t3_plan *plan)
{
	const struct t3_arb *arb = &plan->arb;
	u32 n = atomic_read(&arb->produced);

	if (!compute_first())
		return false;
	return atomic_read(&plan->group->late_plans) > 0 ||
	       (n > arb->first && is_late(arb, n, ktime_get_ns()));
}

/* --- the transfers -------------------------------------------------------- */

/* Bytes that may be in flight while the producers are behind. */
static u64 threshold(const struct t3_plan *plan)
{
	const struct t3_arb *arb = &plan->arb;
	u64 fixed = READ_ONCE(t3_inflight_max_bytes);
	u64 pace = READ_ONCE(arb->pace);
	u64 blocks = 1;

	if (fixed)
		return fixed;
	if (pace)
		blocks = clamp(div64_u64(READ_ONCE(arb->move), pace) + 1,
			       1ULL, (u64)T3_WORKERS);
	return blocks * arb->block_bytes;
}

static void hold(struct t3_plan *plan)
{
	if (READ_ONCE(plan->arb.held) || cmpxchg(&plan->arb.held, 0, 1))
		return;
	kref_get(&plan->ref);
	hrtimer_start(&plan->arb.timer,
		      ns_to_ktime((u64)NSEC_PER_USEC *
				  READ_ONCE(t3_starve_us)), HRTIMER_MODE_REL);
}

/**
 * t3_arb_holds - are transfers of a plan held back at this moment?
 * @plan: live; the caller holds a reference
 *
 * If so, a timer ends it; so does whatever else wakes an executor.
 *
 * Context: any.
 */
bool t3_arb_holds(struct t3_plan *plan)
{
	u64 flying;

	if (!compute_first())
		return false;
	flying = atomic64_read(&plan->group->flying);
	if (!flying || READ_ONCE(plan->arb.starving) ||
	    flying < threshold(plan) || !t3_arb_late(plan))
		return false;
	t3_counted(T3_COUNT_HELD, 1);
	hold(plan);
	return true;
}

static enum hrtimer_restart starved(struct hrtimer *timer)
{
	struct t3_arb *arb = container_of(timer, struct t3_arb, timer);

	WRITE_ONCE(arb->starving, true);
	queue_work(t3_wq, &arb->work);
	return HRTIMER_NORESTART;
}

static void starved_work(struct work_struct *work)
{
	struct t3_plan *plan = container_of(work, struct t3_plan, arb.work);

	/* From here on the next hold starts the timer again. */
	smp_store_release(&plan->arb.held, 0);
	t3_plan_kick(plan);
	t3_plan_put(plan);
}

/**
 * t3_arb_begin - a transfer was taken
 * @plan: live
 * @trigger: which; t3_arb_end() follows, whatever becomes of it
 *
 * Context: any. Return: what t3_arb_end() wants to know.
 */
u64 t3_arb_begin(struct t3_plan *plan, u32 trigger)
{
	if (READ_ONCE(plan->arb.starving))
		WRITE_ONCE(plan->arb.starving, false);
	atomic64_add(t3_trigger_bytes(plan, trigger), &plan->group->flying);
	return compute_first() ? ktime_get_ns() : 0;
}

/**
 * t3_arb_end - a transfer is over
 * @plan: live
 * @trigger: which
 * @began: 0, or what t3_arb_begin() said, where all of it was moved since
 *
 * Context: any.
 */
void t3_arb_end(struct t3_plan *plan, u32 trigger, u64 began)
{
	u64 old = READ_ONCE(plan->arb.move), ns;

	atomic64_sub(t3_trigger_bytes(plan, trigger), &plan->group->flying);
	if (!began)
		return;
	ns = ktime_get_ns() - began;
	WRITE_ONCE(plan->arb.move, old ? (3 * old + ns) / 4 : ns);
}

/* The plan is dead: it keeps nobody back any more. */
void t3_arb_forget(struct t3_plan *plan)
{
	set_late(plan, false);
}

/* The plan's graph and parts are there; nobody knows of it yet. */
void t3_arb_init(struct t3_plan *plan)
{
	const struct t3_graph *g = &plan->graph;
	struct t3_arb *arb = &plan->arb;
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < plan->group->ranks; i++)
		arb->total += plan->part[i]->watched;
	arb->first = clamp(arb->total / 4, 2U, (u32)FIRST_MOST);
	for (i = 0; i < g->triggers; i++)
		bytes += t3_trigger_bytes(plan, i);
	arb->block_bytes = g->triggers ? div_u64(bytes, g->triggers) : 0;
	t3_hrtimer_setup(&arb->timer, starved, HRTIMER_MODE_REL);
	INIT_WORK(&arb->work, starved_work);
}
