// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: T3_FENCE_OUT: the end of an epoch as a fence.
 *
 * Whoever waits for a fence may hold locks and memory that others need, so that
 * it must never depend on a program's doing something. When all ranks have
 * armed an epoch and each production has been, or is another fence, only the
 * workers are left; these allocate nothing and take no lock that somebody
 * holds who waits for fences (t3_wq has a rescuer, lockdep watches run.c). A
 * plan with dma-bufs takes their reservations while it runs, and so gives its
 * fence when it has retired.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/file.h>
#include <linux/sync_file.h>

#include "fence.h"
#include "t3.h"

/* --- when one may be given -------------------------------------------------- */

/* Needs nobody's tiles any more in @epoch, which its rank has armed. */
static bool is_settled(const struct t3_part *part, u32 block, u32 epoch)
{
	const struct t3_plan *plan = part->plan;
	u32 node = plan->graph.first_block[part->rank] + block;
	const unsigned long *fenced;

	if (!(part->prog.block[block].flags & T3_BLOCK_PRODUCED) ||
	    !part->prog.block[block].tiles ||
	    t3_reached(t3_load_acquire(&plan->machine.claimed[node]), epoch))
		return true;
	/* Pairs with fence_in.c. Cleared before arming: set in this epoch. */
	fenced = smp_load_acquire(&part->fenced);
	return fenced && test_bit(block, fenced);
}

/*
 * What is settled stays so until the rank has retired @epoch, so that looking
 * goes on where it last stopped.
 */
static bool all_settled(struct t3_part *part, u32 epoch)
{
	u64 hint = READ_ONCE(part->settled);
	u32 b = (u32)(hint >> 32) == epoch ? (u32)hint : 0;

	while (b < part->prog.blocks && is_settled(part, b, epoch)) {
		b++;
		if (!(b & 1023))
			cond_resched();
	}
	WRITE_ONCE(part->settled, (u64)epoch << 32 | b);
	return b == part->prog.blocks;
}

/* Context: may sleep. */
static bool is_ready(const struct t3_plan *plan, u32 rank, u32 epoch)
{
	u64 needs = plan->graph.needs[rank] | BIT_ULL(rank);
	u32 r;

	if (plan->imports)
		return false;
	for (r = 0; r < plan->group->ranks; r++)
		if (needs & BIT_ULL(r) &&
		    !t3_reached(t3_machine_armed(&plan->machine, r), epoch))
			return false;
	for (r = 0; r < plan->group->ranks; r++)
		if (needs & BIT_ULL(r) && !all_settled(plan->part[r], epoch))
			return false;
	return true;
}

/*
 * As is_ready(), but where it is not whoever polls the member will be woken.
 * The wish is written, then we look again; whoever settles something does that,
 * then reads the wish (t3_fence_wake()).
 */
static bool is_ready_or_wanted(struct t3_part *part, u32 epoch)
{
	struct t3_plan *plan = part->plan;

	if (is_ready(plan, part->rank, epoch))
		return true;
	WRITE_ONCE(part->wanted, epoch);
	set_bit(part->rank, &plan->fence_wanted);
	smp_mb__after_atomic();	/* see above */
	return is_ready(plan, part->rank, epoch);
}

/**
 * t3_fence_wanted - would a T3_FENCE_OUT that was told EAGAIN succeed now?
 * @part: of a plan that is live
 *
 * Context: may sleep.
 */
bool t3_fence_wanted(struct t3_part *part)
{
	const struct t3_plan *plan = part->plan;
	u32 epoch = READ_ONCE(part->wanted);

	return test_bit(part->rank, &plan->fence_wanted) &&
	       (t3_machine_retired(&plan->machine, part->rank, epoch) ||
		is_ready(plan, part->rank, epoch));
}

/**
 * t3_fence_wake - something was settled that a fence may wait for
 * @plan: live
 *
 * Context: any.
 */
void t3_fence_wake(struct t3_plan *plan)
{
	unsigned long wanted;
	u32 r;

	smp_mb();	/* pairs with is_ready_or_wanted() */
	wanted = READ_ONCE(plan->fence_wanted);
	for_each_set_bit(r, &wanted, BITS_PER_LONG)
		wake_up_all(&plan->group->rank_wait[r]);
}

/* --- its signal --------------------------------------------------------------- */

/* t3_part.out_work: holds a reference on the plan. */
static void out_work(struct work_struct *work)
{
	struct t3_part *part = container_of(work, struct t3_part, out_work);
	struct t3_plan *plan = part->plan;
	bool cookie = dma_fence_begin_signalling();
	struct dma_fence *fence;
	unsigned long irqs;
	int ret = 0;

	spin_lock_irqsave(&part->fence_lock, irqs);
	fence = part->out;
	if (fence)
		ret = t3_machine_retired(&plan->machine, part->rank,
					 (u32)fence->seqno);
	if (ret)
		part->out = NULL;
	spin_unlock_irqrestore(&part->fence_lock, irqs);
	if (ret)
		t3_fence_signal(fence, ret == 1 ? 0 :
				t3_group_error(plan->group) ?: -EIO);
	dma_fence_end_signalling(cookie);
	t3_plan_put(plan);
}

/**
 * t3_fence_over - an epoch of a part has retired, or never will
 * @part: the caller holds a reference on its plan
 *
 * Pairs with install(): either this finds the fence, or that finds the end.
 * A worker signals it: here one may be in another fence's callback.
 *
 * Context: any.
 */
void t3_fence_over(struct t3_part *part)
{
	struct t3_plan *plan = part->plan;

	smp_mb();	/* see above */
	if (!READ_ONCE(part->out))
		return;
	kref_get(&plan->ref);
	if (!queue_work(t3_wq, &part->out_work))
		t3_plan_put(plan);
}

/* --- the command ---------------------------------------------------------------- */

void t3_fence_init(struct t3_part *part)
{
	spin_lock_init(&part->fence_lock);
	INIT_LIST_HEAD(&part->fences);
	INIT_WORK(&part->out_work, out_work);
	part->out_context = dma_fence_context_alloc(1);
}

/* Return: the epoch's one fence, with a reference for the caller. */
static struct dma_fence *install(struct t3_part *part, struct dma_fence *fence)
{
	struct dma_fence *old;
	unsigned long irqs;

	dma_fence_get(fence);
	spin_lock_irqsave(&part->fence_lock, irqs);
	old = part->out;
	if (old && old->seqno == fence->seqno) {
		swap(old, fence);
		dma_fence_get(fence);
	} else {
		part->out = fence;
	}
	spin_unlock_irqrestore(&part->fence_lock, irqs);
	if (old && old->seqno == fence->seqno) {	/* nobody has seen it */
		dma_fence_put(old);
		t3_fence_signal(old, 0);
	} else if (old) {	/* of an epoch before, which has retired */
		t3_fence_signal(old, 0);
	}
	t3_fence_over(part);
	return fence;
}

/* Return: with a reference; ERR_PTR(). */
static struct dma_fence *epoch_fence(struct t3_part *part, u32 epoch)
{
	const struct t3_plan *plan = part->plan;
	struct dma_fence *fence;
	int ret;

	ret = t3_machine_retired(&plan->machine, part->rank, epoch);
	if (!ret && !is_ready_or_wanted(part, epoch)) {
		/* It may have retired before the wish was there. */
		ret = t3_machine_retired(&plan->machine, part->rank, epoch);
		if (!ret)
			return ERR_PTR(-EAGAIN);
	}
	if (ret < 0)
		return ERR_PTR(t3_group_error(plan->group) ?: -EIO);
	clear_bit(part->rank, &part->plan->fence_wanted);
	if (ret)
		return dma_fence_get_stub();
	fence = t3_fence_new("epoch", part->out_context, epoch);
	return fence ? install(part, fence) : ERR_PTR(-ENOMEM);
}

static int give(struct t3_cmd *cmd, struct dma_fence *fence)
{
	struct sync_file *sync;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	sync = sync_file_create(fence);
	if (!sync) {
		put_unused_fd(fd);
		return -ENOMEM;
	}
	cmd->file = sync->file;
	cmd->fd = fd;
	return 0;
}

static int fence_out(struct t3_cmd *cmd, struct t3_part *part,
		     struct t3_fence_out *out)
{
	struct dma_fence *fence;
	int ret;

	ret = t3_epoch_check(cmd->member, part, out->epoch, "FENCE_OUT");
	if (ret)
		return ret;
	fence = epoch_fence(part, out->epoch);
	if (IS_ERR(fence))
		return PTR_ERR(fence);
	ret = give(cmd, fence);
	if (!ret)
		out->out_fd = cmd->fd;
	dma_fence_put(fence);
	return ret;
}

int t3_fence_out(struct t3_cmd *cmd)
{
	struct t3_fence_out *out = cmd->arg;
	struct t3_part *part;
	int ret;

	if (out->flags || out->__reserved)
		return -EOPNOTSUPP;
	part = t3_part_get(cmd->member, out->slot);
	if (IS_ERR(part))
		return PTR_ERR(part);
	ret = fence_out(cmd, part, out);
	t3_part_put(part);
	return ret;
}
