// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the dmaengine engine: a memcpy channel moves the bytes.
 *
 * A transfer is a part of a trigger's block: as many descriptors as it has
 * room for. It is announced in t3_group.inflight for its whole life, before
 * t3_group.broken is read. Its end comes from the device's last callback, or
 * from whoever takes it back (a cut): because it is late, because the group has
 * broken or because the channel goes. What did not arrive is done again by the
 * processor, from the first descriptor on of which the device did not say that
 * all of it has arrived: no count that comes with an error is believed.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "dma.h"
#include "reduce.h"
#include "trace.h"

#define ROW_BYTES	1024	/* shorter rows are the processor's */
#define LOST_MS		1000	/* until a transfer that none can stop is lost */

/* --- mapping -------------------------------------------------------------- */

static bool map_span(struct t3_dma_chan *ch, struct t3_dma_span *s)
{
	s->dma_from = dma_map_page(ch->dev, virt_to_page(s->from),
				   offset_in_page(s->from), s->bytes,
				   DMA_TO_DEVICE);
	if (dma_mapping_error(ch->dev, s->dma_from))
		return false;
	s->dma_to = dma_map_page(ch->dev, virt_to_page(s->to),
				 offset_in_page(s->to), s->bytes,
				 DMA_FROM_DEVICE);
	if (!dma_mapping_error(ch->dev, s->dma_to))
		return true;
	dma_unmap_page(ch->dev, s->dma_from, s->bytes, DMA_TO_DEVICE);
	return false;
}

void t3_dma_unmap(struct t3_dma_xfer *x)
{
	struct t3_dma_chan *ch = x->chan;
	u32 i;

	for (i = 0; i < x->spans; i++) {
		struct t3_dma_span *s = &x->span[i];

		dma_unmap_page(ch->dev, s->dma_to, s->bytes, DMA_FROM_DEVICE);
		dma_unmap_page(ch->dev, s->dma_from, s->bytes, DMA_TO_DEVICE);
	}
}

/* Pages of a transfer that the device may never give back are kept for ever. */
static void keep_pages(struct t3_dma_xfer *x)
{
	u32 i, k;

	for (i = 0; i < x->spans; i++) {
		const struct t3_dma_span *s = &x->span[i];

		for (k = 0; k < s->bytes; k += PAGE_SIZE - offset_in_page(s->to + k))
			get_page(virt_to_page(s->to + k));
		for (k = 0; k < s->bytes; k += PAGE_SIZE - offset_in_page(s->from + k))
			get_page(virt_to_page(s->from + k));
	}
}

/* --- the end of a transfer ------------------------------------------------ */

void t3_dma_free(struct t3_dma_xfer *x)
{
	x->plan = NULL;
	x->waiter = NULL;
	/* Pairs with t3_dma_take(). */
	smp_store_release(&x->state, T3_XFER_FREE);
}

static void put_work(struct work_struct *work)
{
	struct t3_dma_xfer *x = container_of(work, struct t3_dma_xfer, put);
	struct t3_plan *plan = x->plan;

	t3_dma_free(x);
	t3_plan_put(plan);
}

/*
 * Sets the walk back to where the first byte may be missing.
 * Return: bytes that have arrived.
 */
static u64 settle_walk(struct t3_dma_xfer *x, bool *failed)
{
	struct t3_walk *w = &x->plan->walk[x->trigger];
	u64 moved = 0;
	u32 i;

	for (i = 0; i < x->spans && x->span[i].ok; i++)
		moved += x->span[i].bytes;
	*failed = i < x->submitted;
	if (i < x->spans) {
		w->row = x->span[i].row;
		w->at = x->span[i].at;
	}
	return moved;
}

/* The rest of a failed trigger is the processor's. */
void t3_dma_count(struct t3_dma_xfer *x, bool failed)
{
	struct t3_dma_chan *ch = x->chan;

	if (!failed) {
		atomic_set(&ch->failures, 0);
		return;
	}
	set_bit(x->trigger, x->plan->by_cpu);
	t3_counted(T3_COUNT_DMA_ERRORS, 1);
	pr_warn_ratelimited("%s: a transfer of group %u did not end well: a processor goes on with it\n",
			    ch->name, x->plan->group->id);
	if (atomic_inc_return(&ch->failures) == T3_DMA_FAILURES)
		t3_dma_give_up();
}

/* All of it is here, or what is not goes back to the list. */
static void end_copy(struct t3_dma_xfer *x)
{
	struct t3_plan *plan = x->plan;
	struct t3_walk *w = &plan->walk[x->trigger];
	bool failed;
	u64 moved;

	moved = settle_walk(x, &failed);
	t3_dma_count(x, failed);
	t3_counted(T3_COUNT_BYTES_DMA, moved);
	trace_t3_trigger_end(plan, x->trigger, moved);
	t3_arb_end(plan, x->trigger, t3_walk_run(w) ? 0 : x->began);
	if (t3_walk_run(w)) {
		t3_ready_push(plan->ready, plan->ready_mask, x->trigger);
		return;
	}
	w->rows = 0;
	t3_counted(T3_COUNT_TRIGGERS, 1);
	t3_machine_complete(&plan->machine, x->trigger);
}

/*
 * The transfer is over for the device. Lock-free, in any context. Whoever
 * waits for the group to drain may free all but the plan, to which we hold a
 * reference, as soon as it is no longer in flight.
 */
static void end_xfer(struct t3_dma_xfer *x)
{
	struct t3_plan *plan;
	struct t3_group *group;

	if (cmpxchg(&x->state, T3_XFER_FLYING, T3_XFER_BUSY) != T3_XFER_FLYING)
		return;
	plan = x->plan;
	group = plan->group;
	t3_dma_unmap(x);
	atomic_dec(&x->chan->flying);
	if (x->waiter) {
		complete(x->waiter);
		return;
	}
	end_copy(x);
	t3_machine_leave(&group->inflight);	/* a full fence */
	if (unlikely(READ_ONCE(group->broken)))
		wake_up_all(&group->drained);
	t3_plan_kick(plan);
	queue_work(t3_wq, &x->put);
}

/* The device's word on one descriptor: a tasklet's, mostly. */
static void span_done(void *param, const struct dmaengine_result *result)
{
	struct t3_dma_span *s = param;
	struct t3_dma_xfer *x = s->xfer;

	s->ok = result->result == DMA_TRANS_NOERROR && !result->residue;
	if (atomic_dec_and_test(&x->left))	/* orders @ok before it */
		end_xfer(x);
}

/* --- taking back ---------------------------------------------------------- */

static bool flies(const struct t3_dma_xfer *x)
{
	/* Pairs with t3_dma_submit(): what a flying one has is there. */
	return smp_load_acquire(&x->state) == T3_XFER_FLYING;
}

static bool any_flying(struct t3_dma_chan *ch)
{
	u32 i;

	for (i = 0; i < T3_DMA_XFERS; i++)
		if (flies(&ch->xfer[i]))
			return true;
	return false;
}

/*
 * The driver has no way to end it, and it does not end: nobody shall get the
 * memory that the device may still write to, and its callback must find us.
 */
static void lose_xfer(struct t3_dma_xfer *x)
{
	struct t3_plan *plan;
	struct t3_group *group;
	u32 block, rank;

	if (cmpxchg(&x->state, T3_XFER_FLYING, T3_XFER_LOST) != T3_XFER_FLYING)
		return;
	plan = x->plan;
	group = plan->group;
	block = plan->graph.action[x->trigger].block;
	rank = plan->graph.block_rank[block];
	keep_pages(x);
	t3_counted(T3_COUNT_DMA_ERRORS, 1);
	t3_group_break(group, t3_cause(EIO, rank, plan->slot, block -
				       plan->graph.first_block[rank]));
	if (x->waiter) {
		complete(x->waiter);
		return;
	}
	t3_arb_end(plan, x->trigger, 0);
	t3_machine_leave(&group->inflight);
	wake_up_all(&group->drained);
	t3_plan_put(plan);
}

/* Caller holds ch->cut, and nothing is submitted. */
static void cut_unstoppable(struct t3_dma_chan *ch)
{
	unsigned long end = jiffies + msecs_to_jiffies(LOST_MS);
	u32 i;

	while (any_flying(ch) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	if (!any_flying(ch))
		return;
	/* Most drivers stop the device here. */
	dma_release_channel(ch->chan);
	ch->lost = true;
	pr_err("%s: transfers never end, and its driver can't end them: their memory is kept for ever\n",
	       ch->name);
	__module_get(THIS_MODULE);	/* for the callback that may still come */
	for (i = 0; i < T3_DMA_XFERS; i++)
		lose_xfer(&ch->xfer[i]);
	t3_dma_give_up();
}

static bool set_closed(struct t3_dma_chan *ch, bool closed)
{
	bool was;

	spin_lock_bh(&ch->lock);
	was = ch->closed;
	ch->closed = closed;
	spin_unlock_bh(&ch->lock);
	return was;
}

/**
 * t3_dma_chan_cut - take all transfers of a channel back from the device
 * @ch: the channel; it stays
 *
 * What had not arrived is the processor's, whichever group's it is.
 *
 * Context: sleeps, for a bounded time; no lock below t3_dma_lock is held.
 */
void t3_dma_chan_cut(struct t3_dma_chan *ch)
{
	bool was;
	u32 i;

	mutex_lock(&ch->cut);
	was = set_closed(ch, true);
	if (ch->lost)
		goto unlock;
	if (ch->stoppable && !dmaengine_terminate_sync(ch->chan)) {
		/* No callback runs any more. */
		for (i = 0; i < T3_DMA_XFERS; i++)
			end_xfer(&ch->xfer[i]);
	} else {
		cut_unstoppable(ch);
	}
	if (!ch->lost)
		set_closed(ch, was);
unlock:
	mutex_unlock(&ch->cut);
}

/* Does the channel work for a group? A snapshot; under t3_dma_lock or RCU. */
bool t3_dma_chan_serves(struct t3_dma_chan *ch, const struct t3_group *group)
{
	u32 i;

	for (i = 0; i < T3_DMA_XFERS; i++)
		if (flies(&ch->xfer[i]) &&
		    READ_ONCE(ch->xfer[i].group) == group)
			return true;
	return false;
}

static bool any_late(struct t3_dma_chan *ch)
{
	u32 i;

	for (i = 0; i < T3_DMA_XFERS; i++)
		if (flies(&ch->xfer[i]) &&
		    time_after(jiffies, READ_ONCE(ch->xfer[i].deadline)))
			return true;
	return false;
}

static void feed_dog(struct t3_dma_chan *ch)
{
	queue_delayed_work(t3_slow_wq, &ch->dog,
			   msecs_to_jiffies(READ_ONCE(t3_dma_timeout_ms)) + 1);
}

static void dog(struct work_struct *work)
{
	struct t3_dma_chan *ch =
		container_of(work, struct t3_dma_chan, dog.work);

	if (any_late(ch)) {
		t3_counted(T3_COUNT_DMA_TIMEOUTS, 1);
		t3_dma_chan_cut(ch);
	}
	if (any_flying(ch))
		feed_dog(ch);
}

void t3_dma_chan_init(struct t3_dma_chan *ch)
{
	u32 i, k;

	spin_lock_init(&ch->lock);
	mutex_init(&ch->cut);
	INIT_DELAYED_WORK(&ch->dog, dog);
	for (i = 0; i < T3_DMA_XFERS; i++) {
		ch->xfer[i].chan = ch;
		INIT_WORK(&ch->xfer[i].put, put_work);
		for (k = 0; k < T3_DMA_SPANS; k++)
			ch->xfer[i].span[k].xfer = &ch->xfer[i];
	}
}

/* Whoever ends it, or waited for it, is about to free it. */
static void wait_until_free(struct t3_dma_xfer *x)
{
	/* Pairs with t3_dma_free(). */
	while (smp_load_acquire(&x->state) == T3_XFER_BUSY)
		schedule_timeout_uninterruptible(1);
	flush_work(&x->put);
}

/**
 * t3_dma_chan_stop - nothing runs on a channel any more, nor will
 * @ch: out of the table
 *
 * Context: sleeps, for a bounded time; caller holds t3_dma_lock.
 */
void t3_dma_chan_stop(struct t3_dma_chan *ch)
{
	u32 i;

	set_closed(ch, true);
	/* Who has it from t3_dma_pick() is done with submitting. */
	synchronize_rcu();
	t3_dma_chan_cut(ch);
	cancel_delayed_work_sync(&ch->dog);
	for (i = 0; i < T3_DMA_XFERS; i++)
		wait_until_free(&ch->xfer[i]);
}

/* --- launching ------------------------------------------------------------ */

struct t3_dma_xfer *t3_dma_take(struct t3_dma_chan *ch)
{
	u32 i;

	for (i = 0; i < T3_DMA_XFERS; i++)
		if (READ_ONCE(ch->xfer[i].state) == T3_XFER_FREE &&
		    cmpxchg(&ch->xfer[i].state, T3_XFER_FREE,
			    T3_XFER_BUSY) == T3_XFER_FREE)
			return &ch->xfer[i];
	return NULL;
}

/*
 * One more descriptor for what the lanes' @at say. Lines of the destination
 * that others write at the same time are not the device's: it gets whole ones.
 * Return: bytes; 0 where the processor is to go on.
 */
u32 t3_dma_add_span(struct t3_dma_xfer *x, void *to, const void *from,
		    const struct t3_walk *w, u64 bytes)
{
	struct t3_dma_chan *ch = x->chan;
	struct t3_dma_span *s = &x->span[x->spans];

	bytes = round_down(bytes, ch->line);
	if (!bytes || !IS_ALIGNED((unsigned long)to, ch->line) ||
	    !virt_addr_valid(to) || !virt_addr_valid(from) ||
	    !is_dma_copy_aligned(ch->chan->device, offset_in_page(from),
				 offset_in_page(to), bytes))
		return 0;
	s->to = to;
	s->from = from;
	s->bytes = bytes;
	s->ok = false;
	s->row = w->row;
	s->at = w->at;
	if (!map_span(ch, s))
		return 0;
	x->spans++;
	return bytes;
}

/* As much of the block as a transfer takes; the walk goes along. */
static u64 build_copy(struct t3_dma_xfer *x, struct t3_run *r)
{
	struct t3_walk *w = &r->plan->walk[r->trigger];
	u64 sum = 0;
	u32 bytes;

	x->spans = 0;
	while (x->spans < T3_DMA_SPANS && t3_walk_run(w)) {
		bytes = t3_lanes_span(r->exec, w,
				      min_t(u64, t3_walk_run(w),
					    x->chan->max_bytes));
		bytes = t3_dma_add_span(x, r->exec->at[0], r->exec->at[1], w, bytes);
		if (!bytes)
			break;
		t3_walk_step(w, bytes);
		sum += bytes;
	}
	return sum;
}

/* Caller holds ch->lock. Return: the device has it now. */
static bool submit_span(struct t3_dma_chan *ch, struct t3_dma_span *s)
{
	struct dma_async_tx_descriptor *tx;

	/*
	 * Each asks for its callback: the next one may find no room, and
	 * some channels complete out of order.
	 */
	tx = dmaengine_prep_dma_memcpy(ch->chan, s->dma_to, s->dma_from,
				       s->bytes,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx)
		return false;
	tx->callback_result = span_done;
	tx->callback_param = s;
	atomic_inc(&s->xfer->left);
	if (!dma_submit_error(dmaengine_submit(tx)))
		return true;
	atomic_dec(&s->xfer->left);
	return false;
}

/* Return: the device has some of it, and the transfer is not ours any more. */
bool t3_dma_submit(struct t3_dma_xfer *x)
{
	struct t3_dma_chan *ch = x->chan;
	bool given = false;
	u32 i;

	x->submitted = 0;
	x->deadline = jiffies + msecs_to_jiffies(READ_ONCE(t3_dma_timeout_ms));
	atomic_set(&x->left, 1);
	spin_lock_bh(&ch->lock);
	if (ch->closed)
		goto unlock;
	/* Pairs with all who look whether it flies. */
	smp_store_release(&x->state, T3_XFER_FLYING);
	for (i = 0; i < x->spans && submit_span(ch, &x->span[i]); i++)
		x->submitted++;
	given = x->submitted;
	if (!given) {
		WRITE_ONCE(x->state, T3_XFER_BUSY);
		goto unlock;
	}
	atomic_inc(&ch->flying);
	dma_async_issue_pending(ch->chan);
	if (atomic_dec_and_test(&x->left))
		end_xfer(x);
unlock:
	spin_unlock_bh(&ch->lock);
	if (given && !delayed_work_pending(&ch->dog))
		feed_dog(ch);
	return given;
}

/* Nothing of it has been given to the device. */
static void unbuild(struct t3_dma_xfer *x)
{
	struct t3_walk *w = &x->plan->walk[x->trigger];

	t3_dma_unmap(x);
	if (x->spans) {
		w->row = x->span[0].row;
		w->at = x->span[0].at;
	}
}

/* In flight, and the group has not broken. Caller has preemption off. */
static enum t3_outcome launch(struct t3_dma_xfer *x, struct t3_run *r)
{
	u64 bytes;

	x->trigger = r->trigger;
	x->began = r->began;
	kref_get(&r->plan->ref);
	x->plan = r->plan;
	WRITE_ONCE(x->group, r->plan->group);
	bytes = build_copy(x, r);
	if (x->spans && t3_dma_submit(x)) {
		*r->budget -= min(*r->budget, bytes);
		return T3_RUN_AWAY;
	}
	unbuild(x);
	t3_dma_free(x);
	t3_plan_put(r->plan);	/* not the last one: the caller has its own */
	return T3_RUN_DECLINED;
}

static enum t3_outcome launch_on(struct t3_dma_chan *ch, struct t3_run *r)
{
	struct t3_group *group = r->plan->group;
	struct t3_dma_xfer *x = t3_dma_take(ch);
	enum t3_outcome outcome = T3_RUN_BROKEN;

	if (!x)		/* it has enough to do */
		return T3_RUN_DECLINED;
	if (!t3_machine_enter(&group->inflight, &group->broken)) {
		t3_dma_free(x);
	} else {
		outcome = launch(x, r);
		if (outcome == T3_RUN_AWAY)
			return outcome;
		t3_machine_leave(&group->inflight);
	}
	if (unlikely(READ_ONCE(group->broken)))
		wake_up_all(&group->drained);
	return outcome;
}

/* Worth a channel's while? */
static bool is_large(const struct t3_run *r)
{
	const struct t3_walk *w = &r->plan->walk[r->trigger];
	u64 left = (w->rows - w->row) * w->row_bytes - w->at;

	return left >= READ_ONCE(t3_dma_min_bytes) && w->row_bytes >= ROW_BYTES;
}

/* The node of the destination's first page. */
static int dma_node(const struct t3_run *r)
{
	u64 pos = r->exec->skew[0] + r->exec->operand[0].offset;

	return page_to_nid(r->exec->pages[0][pos >> PAGE_SHIFT]);
}

static enum t3_outcome dma_run(struct t3_run *r)
{
	enum t3_outcome outcome = T3_RUN_DECLINED;
	struct t3_dma_chan *ch;

	if (!is_large(r))
		return outcome;
	if (r->plan->graph.action[r->trigger].op == T3_OP_SUM)
		return READ_ONCE(t3_engine) == T3_ENGINE_DMA_SUMS ?
		       t3_dma_sum(r, dma_node(r)) : outcome;
	/* Off as in the cpu engine: a breaker waits for us. */
	preempt_disable();
	rcu_read_lock();
	ch = t3_dma_pick(dma_node(r));
	if (ch)
		outcome = launch_on(ch, r);
	rcu_read_unlock();
	preempt_enable();
	return outcome;
}

const struct t3_engine t3_engine_dma = {
	.name = "dmaengine",
	.run = dma_run,
};
