// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: sums with dmaengine: a channel copies the operands of other ranks into a
 * bounce buffer, a worker waits for it and adds. What the processor reads has
 * then come from near, and it was free meanwhile.
 */
#include "dma.h"
#include "fp_env.h"
#include "reduce.h"

#define ROUND_BYTES	(64 << 10)	/* of each operand, at most */
#define FPU_BYTES	(16 << 10)	/* of destination in one FPU section */

/**
 * struct sum - a sum being done
 * @r: the run
 * @bounce: @lanes pieces of @each bytes
 * @each: bytes of an operand that one round takes
 * @lanes: operands that are fetched
 * @fetched: bit i is set: source i is one of them
 * @kept: the device never gave it back: @bounce must not be freed
 */
struct sum {
	struct t3_run *r;
	u8 *bounce;
	u32 each;
	u32 lanes;
	u64 fetched;
	bool kept;
};

static void choose_lanes(struct sum *s)
{
	const struct t3_graph *g = &s->r->plan->graph;
	const struct t3_action *action = &g->action[s->r->trigger];
	u32 i, source;

	for (i = 0; i < action->sources; i++) {
		source = g->source[action->first_source + i];
		if (g->block_rank[source] == action->rank)
			continue;
		s->fetched |= BIT_ULL(i);
		s->lanes++;
	}
	/* Each piece may lie across one page more than it has. */
	if (s->lanes && s->lanes <= T3_DMA_SPANS / 2)
		s->each = min_t(u32, ROUND_BYTES,
				(T3_DMA_SPANS / s->lanes - 1) * PAGE_SIZE);
}

/* One operand's next @bytes. Return: all of them are in the transfer. */
static bool add_lane(struct sum *s, struct t3_dma_xfer *x, u32 lane, u8 *to,
		     u32 bytes)
{
	struct t3_exec *exec = s->r->exec;
	struct t3_walk w = s->r->plan->walk[s->r->trigger];
	u32 n;

	while (bytes && x->spans < T3_DMA_SPANS) {
		n = t3_lane_span(exec, lane, &w,
				 min(bytes, x->chan->max_bytes));
		n = t3_dma_add_span(x, to, exec->at[lane], &w, n);
		if (!n)
			break;
		t3_walk_step(&w, n);
		to += n;
		bytes -= n;
	}
	return !bytes;
}

static bool build(struct sum *s, struct t3_dma_xfer *x, u32 bytes)
{
	u64 left = s->fetched;
	u32 n = 0;

	x->spans = 0;
	for (; left; left &= left - 1, n++)
		if (!add_lane(s, x, __ffs64(left) + 1,
			      s->bounce + n * s->each, bytes))
			return false;
	return true;
}

/* Caller has preemption off. Return: a transfer that flies, or NULL. */
static struct t3_dma_xfer *launch(struct sum *s, struct t3_dma_chan *ch,
				  u32 bytes, struct completion *done)
{
	struct t3_plan *plan = s->r->plan;
	struct t3_dma_xfer *x = t3_dma_take(ch);

	if (!x)
		return NULL;
	x->trigger = s->r->trigger;
	x->plan = plan;		/* the worker's reference outlives it */
	WRITE_ONCE(x->group, plan->group);
	x->waiter = done;
	if (build(s, x, bytes) && t3_dma_submit(x))
		return x;
	t3_dma_unmap(x);
	t3_dma_free(x);
	return NULL;
}

static bool all_arrived(struct sum *s, struct t3_dma_xfer *x)
{
	u32 i;

	/* Written before @waiter was told. */
	if (READ_ONCE(x->state) == T3_XFER_LOST) {
		s->kept = true;
		return false;
	}
	for (i = 0; i < x->spans && x->span[i].ok; i++)
		;
	t3_dma_count(x, i < x->submitted);
	i = i == x->spans;
	t3_dma_free(x);
	return i;
}

/* Return: the next @bytes of all operands that are fetched are there. */
static bool fetch(struct sum *s, int node, u32 bytes)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct t3_dma_xfer *x = NULL;
	struct t3_dma_chan *ch;

	preempt_disable();
	rcu_read_lock();
	ch = t3_dma_pick(node);
	if (ch)
		x = launch(s, ch, bytes, &done);
	rcu_read_unlock();
	preempt_enable();
	if (!x)
		return false;
	/* Bounded: what is late is taken back, and so is what a break meets. */
	wait_for_completion(&done);
	return all_arrived(s, x);
}

/* One FPU section from @at of the round. Return: bytes. */
static u32 add_section(struct sum *s, struct t3_walk *w, u32 at, u32 bytes)
{
	const struct t3_reduce *reduce = t3_reduce_best();
	struct t3_exec *x = s->r->exec;
	u32 dtype = s->r->dtype, n, lane = 0;
	u64 saved, span = min_t(u32, bytes, FPU_BYTES);

	for (n = 0; n < x->lanes; n++) {
		if (n && s->fetched >> (n - 1) & 1)
			x->at[n] = s->bounce + lane++ * s->each + at;
		else
			span = t3_lane_span(x, n, w, span);
	}
	saved = t3_fp_enter();
	reduce->sum[dtype - 1](x->at[0], (const void *const *)&x->at[1],
			       x->lanes - 1, span / t3_dtype_size(dtype));
	t3_fp_leave(saved);
	t3_walk_step(w, span);
	return span;
}

/* Return: the trigger has completed. */
static bool add_round(struct sum *s, u32 bytes)
{
	struct t3_plan *plan = s->r->plan;
	struct t3_walk *w = &plan->walk[s->r->trigger];
	u32 at;

	for (at = 0; at < bytes; cond_resched())
		at += add_section(s, w, at, bytes - at);
	s->r->moved += bytes;
	if (t3_walk_run(w))
		return false;
	w->rows = 0;
	t3_machine_complete(&plan->machine, s->r->trigger);
	return true;
}

/* One round, in flight for its whole time. */
static enum t3_outcome do_round(struct sum *s, int node)
{
	struct t3_plan *plan = s->r->plan;
	struct t3_group *group = plan->group;
	enum t3_outcome outcome = T3_RUN_DECLINED;
	u32 bytes;

	if (!t3_machine_enter(&group->inflight, &group->broken))
		return T3_RUN_BROKEN;
	bytes = min_t(u64, t3_walk_run(&plan->walk[s->r->trigger]), s->each);
	bytes = round_down(bytes, L1_CACHE_BYTES);
	if (bytes && fetch(s, node, bytes)) {
		t3_counted(T3_COUNT_BYTES_DMA, (u64)bytes * s->lanes);
		outcome = add_round(s, bytes) ? T3_RUN_DONE : T3_RUN_AWAY;
	}
	t3_machine_leave(&group->inflight);	/* a full fence */
	if (unlikely(READ_ONCE(group->broken))) {
		wake_up_all(&group->drained);
		return outcome == T3_RUN_DONE ? outcome : T3_RUN_BROKEN;
	}
	return outcome;
}

/**
 * t3_dma_sum - carry out a sum whose operands a channel fetches
 * @r: the run
 * @node: of the destination
 *
 * In a call that only helps, the sum is left to the workers, who may wait.
 *
 * Context: sleeps. Return: as t3_engine.run(), but never T3_RUN_AWAY; what is
 * declined goes on from where the walk stands.
 */
enum t3_outcome t3_dma_sum(struct t3_run *r, int node)
{
	struct sum s = { .r = r };
	enum t3_outcome outcome = T3_RUN_AWAY;
	size_t bytes;

	choose_lanes(&s);
	if (!s.each)
		return T3_RUN_DECLINED;
	if (*r->budget < U64_MAX / 2) {	/* no worker's */
		t3_ready_push(r->plan->ready, r->plan->ready_mask, r->trigger);
		return T3_RUN_PARKED;
	}
	bytes = (size_t)s.each * s.lanes;
	/* Not for the price of waiting for memory: who adds may be waited for. */
	s.bounce = alloc_pages_exact(bytes, GFP_NOWAIT | __GFP_NOWARN);
	if (!s.bounce)
		return T3_RUN_DECLINED;
	while (outcome == T3_RUN_AWAY)
		outcome = do_round(&s, node);
	if (!s.kept)
		free_pages_exact(s.bounce, bytes);
	/* We go on with it ourselves. */
	if (outcome == T3_RUN_DECLINED)
		clear_bit(r->trigger, r->plan->by_cpu);
	return outcome;
}
