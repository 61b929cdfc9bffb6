// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: T3_FENCE_IN: a fence as the production of blocks.
 *
 * Its signal is an event as any other: it counts tiles, makes triggers ready,
 * and wakes a worker, wherever it comes from.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>

#include "t3.h"

#define IRQ_BLOCKS	64	/* more are counted by a worker */

/**
 * struct production - blocks that a fence produces
 * @ref: whoever makes or cancels it, and its callback until @work is done
 * @cb: on @fence
 * @fence: with a reference
 * @plan: with a reference
 * @part: of it
 * @epoch: armed when it was made
 * @blocks: number of entries of @block
 * @block: blocks of the part's rank
 * @error: of the fence
 * @counted: the callback has counted; else @work does
 * @over: @work is done with it; under t3_part.fence_lock
 * @node: in t3_part.fences until @over or cancelled; under its lock
 * @work: what the callback leaves to do
 *
 * What is not said otherwise is constant once @cb is on the fence; @error and
 * @counted are the callback's, then @work's.
 */
struct production {
	struct kref ref;
	struct dma_fence_cb cb;
	struct dma_fence *fence;
	struct t3_plan *plan;
	struct t3_part *part;
	u32 epoch;
	u32 blocks;
	u32 *block;
	int error;
	bool counted;
	bool over;
	struct list_head node;
	struct work_struct work;
};

static void production_free(struct kref *ref)
{
	struct production *p = container_of(ref, struct production, ref);

	dma_fence_put(p->fence);
	if (p->plan)
		t3_plan_put(p->plan);
	kvfree(p->block);
	kfree(p);
}

/* Context: may sleep. */
static void production_put(struct production *p)
{
	kref_put(&p->ref, production_free);
}

/* --- the signal --------------------------------------------------------------- */

static void break_by(const struct production *p, int error, u32 block)
{
	t3_group_break(p->plan->group,
		       t3_cause(-error, p->part->rank, p->plan->slot, block) |
		       T3_CAUSE_FENCE);
}

/* Context: any. */
static void count(const struct production *p)
{
	struct t3_machine *m = &p->plan->machine;
	u32 rank = p->part->rank;
	u32 i;

	if (p->error) {
		break_by(p, p->error, p->block[0]);
		return;
	}
	/* The user has counted its tiles too, and gone on: his own loss. */
	if (t3_machine_armed(m, rank) != p->epoch)
		return;
	for (i = 0; i < p->blocks; i++) {
		u32 block = p->block[i];

		if (t3_machine_tiles(m, rank, block,
				     p->part->prog.block[block].tiles) &&
		    !t3_machine_retired(m, rank, p->epoch))
			break_by(p, -EPROTO, block);
	}
	WRITE_ONCE(p->plan->progress, jiffies);
	t3_plan_kick(p->plan);
}

static void work(struct work_struct *work)
{
	struct production *p = container_of(work, struct production, work);
	unsigned long irqs;

	if (!p->counted)
		count(p);
	spin_lock_irqsave(&p->part->fence_lock, irqs);
	p->over = true;
	list_del_init(&p->node);
	spin_unlock_irqrestore(&p->part->fence_lock, irqs);
	production_put(p);
}

/* Caller (who signals it) holds the fence's lock, irqs off. */
static void signalled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct production *p = container_of(cb, struct production, cb);

	p->error = fence->error;
	p->counted = p->blocks <= IRQ_BLOCKS;
	if (p->counted)
		count(p);
	queue_work(t3_wq, &p->work);
}

/**
 * t3_fences_cancel - forget the fences that a part waits for
 * @part: nothing of it will be produced any more
 *
 * Context: may sleep.
 */
void t3_fences_cancel(struct t3_part *part)
{
	struct production *p;
	unsigned long irqs;

	for (;;) {
		spin_lock_irqsave(&part->fence_lock, irqs);
		p = list_first_entry_or_null(&part->fences, struct production,
					     node);
		if (p) {
			list_del_init(&p->node);
			kref_get(&p->ref);
		}
		spin_unlock_irqrestore(&part->fence_lock, irqs);
		if (!p)
			return;
		/* Where it was signalled its work lets go of it. */
		if (dma_fence_remove_callback(p->fence, &p->cb))
			production_put(p);
		production_put(p);
	}
}

/* --- the command ---------------------------------------------------------------- */

/* Is the block free for a fence in the armed epoch? */
static int check_block(struct t3_member *member, const struct t3_part *part,
		       u32 block, u32 epoch)
{
	const struct t3_machine *m = &part->plan->machine;
	u32 tiles;

	if (block >= part->prog.blocks) {
		t3_say(member, "FENCE_IN slot %u: block %u: there are %u blocks",
		       part->plan->slot, block, part->prog.blocks);
		return -ERANGE;
	}
	block = array_index_nospec(block, part->prog.blocks);
	tiles = part->prog.block[block].tiles;
	if (!(part->prog.block[block].flags & T3_BLOCK_PRODUCED) || !tiles) {
		t3_say(member, "FENCE_IN slot %u: block %u is not produced by tiles",
		       part->plan->slot, block);
		return -EINVAL;
	}
	if (test_bit(block, part->fenced) ||
	    t3_load(&m->tiles[part->rank][block]) != (epoch - 1) * tiles) {
		t3_say(member, "FENCE_IN slot %u: block %u has a fence or tiles in epoch %u already",
		       part->plan->slot, block, epoch);
		return -EALREADY;
	}
	return 0;
}

static int check_blocks(struct t3_member *member, const struct production *p,
			unsigned long *seen)
{
	u32 i;
	int ret;

	for (i = 0; i < p->blocks; i++) {
		ret = check_block(member, p->part, p->block[i], p->epoch);
		if (ret)
			return ret;
		if (__test_and_set_bit(p->block[i], seen)) {
			t3_say(member, "FENCE_IN slot %u: block %u is listed twice",
			       p->plan->slot, p->block[i]);
			return -EALREADY;
		}
		if (!(i & 1023))
			cond_resched();
	}
	return 0;
}

/* From now on the blocks are a fence's. Caller holds member->lock. */
static void commit(struct production *p)
{
	struct t3_part *part = p->part;
	unsigned long irqs;
	u32 i;

	for (i = 0; i < p->blocks; i++)
		set_bit(p->block[i], part->fenced);
	kref_get(&p->ref);	/* the callback's */
	if (dma_fence_add_callback(p->fence, &p->cb, signalled)) {
		p->error = p->fence->error;
		count(p);
		production_put(p);
		goto wake;
	}
	spin_lock_irqsave(&part->fence_lock, irqs);
	if (!p->over)
		list_add_tail(&p->node, &part->fences);
	spin_unlock_irqrestore(&part->fence_lock, irqs);
	/* Whoever breaks cancels what is in the list afterwards. */
	smp_mb();
	if (READ_ONCE(p->plan->group->broken))
		t3_fences_cancel(part);
wake:
	t3_fence_wake(p->plan);
}

/* Which blocks have fences. Caller holds member->lock. */
static int make_fenced(struct t3_part *part)
{
	unsigned long *fenced;

	if (part->fenced)
		return 0;
	fenced = bitmap_zalloc(part->prog.blocks, GFP_KERNEL_ACCOUNT);
	if (!fenced)
		return -ENOMEM;
	/* Pairs with is_settled(). */
	smp_store_release(&part->fenced, fenced);
	return 0;
}

/* Caller holds member->lock: nothing is armed or deleted meanwhile. */
static int fence_in_locked(struct t3_member *member, struct production *p)
{
	struct t3_part *part = p->part;
	unsigned long *seen;
	int ret;

	if (member->gone)
		return -ESHUTDOWN;
	ret = t3_group_error(member->group) ?: t3_plan_usable(p->plan);
	if (ret)
		return ret;
	if (!t3_plan_armed(p->plan, part->rank)) {
		t3_say(member, "FENCE_IN slot %u: no epoch is armed",
		       p->plan->slot);
		return -EPROTO;
	}
	p->epoch = t3_machine_armed(&p->plan->machine, part->rank);
	ret = make_fenced(part);
	if (ret)
		return ret;
	seen = bitmap_zalloc(part->prog.blocks, GFP_KERNEL);
	if (!seen)
		return -ENOMEM;
	ret = check_blocks(member, p, seen);
	bitmap_free(seen);
	if (!ret)
		commit(p);
	return ret;
}

static int fetch(struct t3_member *member, struct production *p,
		 const struct t3_fence_in *in)
{
	p->fence = sync_file_get_fence(in->fd);
	if (!p->fence) {
		t3_say(member, "FENCE_IN slot %u: fd %d is not open, or is not a sync_file",
		       in->slot, in->fd);
		return -EBADF;
	}
	p->blocks = in->entries;
	p->block = kvmalloc_array(in->entries, sizeof(u32),
				  GFP_KERNEL_ACCOUNT);
	if (!p->block)
		return -ENOMEM;
	return copy_from_user(p->block, u64_to_user_ptr(in->list),
			      in->entries * sizeof(u32)) ? -EFAULT : 0;
}

static int fence_in(struct t3_member *member, struct production *p,
		    const struct t3_fence_in *in)
{
	int ret;

	ret = fetch(member, p, in);
	if (ret)
		return ret;
	if (mutex_lock_interruptible(&member->lock))
		return -EINTR;
	p->part = t3_part_get(member, in->slot);
	if (IS_ERR(p->part)) {
		ret = PTR_ERR(p->part);
	} else {
		p->plan = p->part->plan;	/* and its reference */
		ret = fence_in_locked(member, p);
	}
	mutex_unlock(&member->lock);
	return ret;
}

int t3_fence_in(struct t3_cmd *cmd)
{
	const struct t3_fence_in *in = cmd->arg;
	struct production *p;
	int ret;

	if (in->flags || in->__reserved)
		return -EOPNOTSUPP;
	if (!in->entries || in->entries > T3_MAX_NOTIFY) {
		t3_say(cmd->member, "FENCE_IN: %u entries: 1 .. %u are possible",
		       in->entries, T3_MAX_NOTIFY);
		return -ERANGE;
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	kref_init(&p->ref);
	INIT_LIST_HEAD(&p->node);
	INIT_WORK(&p->work, work);
	ret = fence_in(cmd->member, p, in);
	production_put(p);
	return ret;
}
