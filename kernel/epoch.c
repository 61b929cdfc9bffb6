// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: epochs: arm, notify, wait.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/hrtimer.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "t3.h"
#include "trace.h"

/* An epoch of the part is armed, has not retired, and may still. */
bool t3_part_running(const struct t3_part *part)
{
	const struct t3_plan *plan = part->plan;

	return t3_plan_state(plan) == T3_PLAN_LIVE &&
	       !READ_ONCE(plan->group->broken) &&
	       t3_plan_armed(plan, part->rank);
}

/**
 * t3_member_armed - is any epoch of a member armed, and may still retire?
 * @member: the member
 * @slot: out: where
 *
 * Context: any but hard-irq.
 */
bool t3_member_armed(struct t3_member *member, u32 *slot)
{
	bool armed = false;
	u32 s;

	spin_lock(&member->part_lock);
	for (s = 0; s < T3_MAX_PLANS && !armed; s++) {
		if (member->part[s] && t3_part_running(member->part[s])) {
			*slot = s;
			armed = true;
		}
	}
	spin_unlock(&member->part_lock);
	return armed;
}

/* Return: 0 live; -EAGAIN, or the errno of the verdict. */
int t3_plan_usable(const struct t3_plan *plan)
{
	switch (t3_plan_state(plan)) {
	case T3_PLAN_LIVE:
		return 0;
	case T3_PLAN_COLLECTING:
		return -EAGAIN;
	default:
		return -(int)plan->verdict.error;
	}
}

/* --- arm ------------------------------------------------------------------ */

/* Do two parts of a member share bytes that one of them writes? */
static bool parts_clash(const struct t3_part *a, const struct t3_part *b)
{
	u32 i, k, block;

	for (i = 0; i < a->prog.grids; i++)
		for (k = 0; k < b->prog.grids; k++)
			if (t3_grids_clash(&a->grid[i],
					   a->use + a->grid[i].first_block,
					   &b->grid[k],
					   b->use + b->grid[k].first_block,
					   &block))
				return true;
	return false;
}

/* Caller holds member->lock: parts don't go. */
static int check_others(struct t3_member *member, const struct t3_part *part)
{
	u32 slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		const struct t3_part *other = member->part[slot];

		if (!other || other == part || !t3_part_running(other) ||
		    !parts_clash(part, other))
			continue;
		t3_say(member, "ARM slot %u: slot %u is armed and they share bytes that one of them writes",
		       part->plan->slot, slot);
		return -EBUSY;
	}
	return 0;
}

static int check_ranks(struct t3_member *member, const struct t3_part *part)
{
	const struct t3_plan *plan = part->plan;
	u64 gone = READ_ONCE(plan->deleted) |
		   (READ_ONCE(member->group->left) &
		    plan->graph.needs[part->rank]);

	if (!gone)
		return 0;
	t3_say(member, "ARM slot %u: rank %lu has left or deleted the plan",
	       plan->slot, (unsigned long)__ffs64(gone));
	return -EPIPE;
}

static int check_regions(struct t3_member *member, const struct t3_part *part)
{
	u32 i;

	for (i = 0; i < part->prog.grids; i++) {
		if (!t3_region_recheck(part->region[i]))
			continue;
		t3_say(member, "ARM slot %u: region %u's memory was unmapped or replaced",
		       part->plan->slot, part->region[i]->id);
		return -ESTALE;
	}
	return 0;
}

static int arm_machine(struct t3_member *member, struct t3_part *part,
		       u32 *epoch)
{
	struct t3_plan *plan = part->plan;
	u32 block = T3_NONE;
	int ret;

	WRITE_ONCE(plan->progress, jiffies);
	t3_arb_arm(plan, part, false);
	ret = t3_machine_arm(&plan->machine, part->rank, epoch, &block);
	if (ret)
		t3_arb_arm(plan, part, true);
	if (!ret)
		trace_t3_arm(plan, part->rank, *epoch);
	if (ret == -EOWNERDEAD)
		return t3_group_error(member->group) ?: -EIO;
	if (ret == -EBUSY)
		t3_say(member, "ARM slot %u: epoch %u has not retired",
		       plan->slot, t3_machine_armed(&plan->machine, part->rank));
	if (ret == -EPROTO)
		t3_say(member, "ARM slot %u: block %u's tile counter is not where the last epoch left it",
		       plan->slot, block);
	return ret;
}

static int arm_locked(struct t3_member *member, struct t3_part *part,
		      u32 *epoch)
{
	struct t3_plan *plan = part->plan;
	int ret;

	if (member->gone)
		return -ESHUTDOWN;
	ret = t3_group_error(member->group) ?: t3_plan_usable(plan);
	if (ret)
		return ret;
	if (t3_plan_armed(plan, part->rank)) {
		t3_say(member, "ARM slot %u: epoch %u has not retired",
		       plan->slot, t3_machine_armed(&plan->machine, part->rank));
		return -EBUSY;
	}
	ret = check_ranks(member, part) ?: check_others(member, part) ?:
	      check_regions(member, part);
	if (!ret && part->fenced)
		bitmap_zero(part->fenced, part->prog.blocks);
	if (!ret && plan->polled)
		ret = t3_poller_start(member->group);
	if (!ret)
		ret = arm_machine(member, part, epoch);
	if (ret)
		return ret;
	WRITE_ONCE(part->seen, *epoch - 1);
	WRITE_ONCE(part->arms, part->arms + 1);	/* read without the lock */
	/* Pairs with the acquire of whoever reads the page. */
	smp_store_release(&t3_part_status(part)->armed, *epoch);
	t3_watchdog_start(member->group);
	if (plan->silent)
		t3_poller_poke(member->group);
	t3_plan_kick(plan);
	t3_fence_wake(plan);
	return 0;
}

int t3_arm(struct t3_cmd *cmd)
{
	struct t3_member *member = cmd->member;
	struct t3_arm *arm = cmd->arg;
	struct t3_part *part;
	int ret;

	if (arm->flags)
		return -EOPNOTSUPP;
	if (mutex_lock_interruptible(&member->lock))
		return -EINTR;
	part = t3_part_get(member, arm->slot);
	if (IS_ERR(part)) {
		ret = PTR_ERR(part);
	} else {
		ret = arm_locked(member, part, &arm->epoch);
		t3_part_put(part);
	}
	mutex_unlock(&member->lock);
	return ret;
}

/* --- notify --------------------------------------------------------------- */

/* One entry. Return: 0 or the errno of the contract. */
static int notify_one(struct t3_member *member, struct t3_part *part,
		      const struct t3_tiles *entry)
{
	struct t3_plan *plan = part->plan;
	struct t3_machine *m = &plan->machine;
	u32 block = entry->block;
	int ret;

	if (block >= part->prog.blocks || entry->tiles > T3_MAX_TILES) {
		t3_say(member, "NOTIFY slot %u: block %u, %u tiles: there are %u blocks, and %u tiles are possible",
		       plan->slot, block, entry->tiles, part->prog.blocks,
		       T3_MAX_TILES);
		return -ERANGE;
	}
	block = array_index_nospec(block, part->prog.blocks);
	trace_t3_tile(plan, part->rank, block, entry->tiles);
	if (entry->tiles) {
		ret = t3_machine_tiles(m, part->rank, block, entry->tiles);
	} else if (part->prog.block[block].flags & T3_BLOCK_PRODUCED &&
		   part->prog.block[block].tiles) {
		t3_machine_look(m, part->rank, block);
		ret = 0;
	} else {
		ret = -EINVAL;
	}
	if (ret == -EINVAL)
		t3_say(member, "NOTIFY slot %u: block %u is not produced by tiles",
		       plan->slot, block);
	if (ret == -EPROTO)
		t3_say(member, "NOTIFY slot %u: block %u: no epoch is armed, or %u tiles more are too many",
		       plan->slot, block, entry->tiles);
	return ret;
}

static int notify_list(struct t3_member *member, struct t3_part *part,
		       struct t3_notify *notify, bool *mapped)
{
	struct t3_tiles __user *list = u64_to_user_ptr(notify->list);
	struct t3_tiles entry[32];
	u32 i, n;
	int ret;

	while (notify->done < notify->entries) {
		n = min_t(u32, notify->entries - notify->done,
			  ARRAY_SIZE(entry));
		if (copy_from_user(entry, list + notify->done,
				   n * sizeof(*entry)))
			return -EFAULT;
		for (i = 0; i < n; i++) {
			ret = notify_one(member, part, &entry[i]);
			if (ret)
				return ret;
			*mapped |= !entry[i].tiles;
			notify->done++;
		}
		cond_resched();
	}
	return 0;
}

static void look_at_all(struct t3_part *part)
{
	const struct t3_plan_block *block = part->prog.block;
	u32 b;

	for (b = 0; b < part->prog.blocks; b++) {
		if (block[b].flags & T3_BLOCK_PRODUCED && block[b].tiles)
			t3_machine_look(&part->plan->machine, part->rank, b);
		if (!(b & 1023))
			cond_resched();
	}
}

static int notify_part(struct t3_member *member, struct t3_part *part,
		       struct t3_notify *notify, u64 budget)
{
	struct t3_plan *plan = part->plan;
	bool mapped = !notify->entries;
	int ret;

	ret = t3_group_error(member->group) ?: t3_plan_usable(plan);
	if (ret)
		return ret;
	if (mapped)
		look_at_all(part);
	else
		ret = notify_list(member, part, notify, &mapped);
	WRITE_ONCE(plan->progress, jiffies);
	/* What the first entries made ready runs, whatever the last one was. */
	t3_plan_run(plan, &budget);
	/* Producers that count in the mapping are at work: spin for a while. */
	if (mapped)
		t3_poller_poke(member->group);
	return ret;
}

int t3_notify(struct t3_cmd *cmd)
{
	struct t3_notify *notify = cmd->arg;
	struct t3_part *part;
	int ret;

	notify->done = 0;
	if (notify->flags || notify->__reserved)
		return -EOPNOTSUPP;
	if (notify->entries > T3_MAX_NOTIFY) {
		t3_say(cmd->member, "NOTIFY: %u entries: at most %u are possible",
		       notify->entries, T3_MAX_NOTIFY);
		return -ERANGE;
	}
	part = t3_part_get(cmd->member, notify->slot);
	if (IS_ERR(part))
		return PTR_ERR(part);
	ret = notify_part(cmd->member, part, notify,
			  cmd->nowait ? 0 : READ_ONCE(t3_inline_max_bytes));
	t3_part_put(part);
	return ret;
}

/* --- wait ----------------------------------------------------------------- */

/* Return: 1 retired, 0 not yet, -errno of the group's cause. */
static int look(const struct t3_part *part, u32 epoch)
{
	const struct t3_plan *plan = part->plan;
	int ret = t3_machine_retired(&plan->machine, part->rank, epoch);

	if (ret == -EOWNERDEAD)
		ret = t3_group_error(plan->group) ?: -EIO;
	return ret;
}

/* When a wait that begins now ends at the latest. */
ktime_t t3_wait_deadline(u64 timeout_ns)
{
	return ktime_add_safe(ktime_get(),
			      ns_to_ktime(min_t(u64, timeout_ns, KTIME_MAX)));
}

/**
 * t3_wait_look - is a wait over?
 * @member: who waits
 * @part: for an epoch of this
 * @epoch: the epoch
 * @end: when it is over at the latest; KTIME_MAX: don't look at the time
 *
 * What is not 0 once remains so, whatever it becomes.
 *
 * Context: any. Return: 0 not yet; 1 the epoch has retired; -errno of the
 * group's cause, -ESHUTDOWN, -ETIME.
 */
int t3_wait_look(const struct t3_member *member, const struct t3_part *part,
		 u32 epoch, ktime_t end)
{
	int ret = look(part, epoch);

	if (ret)
		return ret;
	if (READ_ONCE(member->left))
		return -ESHUTDOWN;
	if (end != KTIME_MAX && ktime_compare(ktime_get(), end) >= 0)
		return -ETIME;
	return 0;
}

/* Sleep, but run what is ready meanwhile. Return: as t3_wait_look(), never 0. */
static int wait_retired(struct t3_member *member, struct t3_part *part,
			u32 epoch, ktime_t end)
{
	wait_queue_head_t *wq = &member->group->rank_wait[part->rank];
	u64 budget = READ_ONCE(t3_inline_max_bytes);
	struct t3_plan *plan = part->plan;
	int ret;

	for (;;) {
		ret = t3_wait_look(member, part, epoch, end);
		if (ret)
			return ret;
		if (signal_pending(current))
			return -EINTR;
		if (budget && !plan->imports && t3_ready_any(plan->ready)) {
			if (t3_plan_run(plan, &budget)) {
				cond_resched();
				continue;
			}
		}
		ret = wait_event_interruptible_hrtimeout
			(*wq, t3_wait_look(member, part, epoch, KTIME_MAX),
			 ktime_sub(end, ktime_get()));
		if (ret == -ERESTARTSYS)
			return t3_wait_look(member, part, epoch, KTIME_MAX) ?:
			       -EINTR;
	}
}

/*
 * The epoch has retired; but were its results written to where the user will
 * look? Only a mapping that was touched and not unmapped is in doubt.
 */
static int recheck_retired(struct t3_member *member, struct t3_part *part)
{
	u32 i;

	for (i = 0; i < part->prog.grids; i++) {
		struct t3_region *region = part->region[i];

		if (!READ_ONCE(region->suspect) || READ_ONCE(region->stale))
			continue;
		if (mutex_lock_interruptible(&member->lock))
			return -EINTR;
		if (region->pinned && t3_region_recheck(region))
			t3_group_break(member->group,
				       t3_cause(ESTALE, part->rank,
						part->plan->slot, T3_NONE));
		mutex_unlock(&member->lock);
		if (READ_ONCE(region->stale))
			return -ESTALE;
	}
	return 0;
}

/**
 * t3_epoch_check - was an epoch ever armed?
 * @member: the caller
 * @part: its part
 * @epoch: the epoch
 * @call: for the message
 *
 * Return: 0; -ERANGE, or the error of a group that broke.
 */
int t3_epoch_check(struct t3_member *member, struct t3_part *part, u32 epoch,
		   const char *call)
{
	struct t3_plan *plan = part->plan;
	u32 armed;

	/* A plan that is not live has armed nothing. */
	armed = t3_plan_state(plan) == T3_PLAN_LIVE ?
		t3_machine_armed(&plan->machine, part->rank) : 0;
	if (armed - epoch < READ_ONCE(part->arms))
		return 0;
	t3_say(member, "%s slot %u: epoch %u was never armed, the last is %u",
	       call, plan->slot, epoch, armed);
	return t3_group_error(member->group) ?: -ERANGE;
}

/**
 * t3_wait_begin - check a wait before it waits
 * @member: who waits
 * @wait: what for
 * @part: out: the part, with a reference that t3_wait_end() gives back
 *
 * Context: may sleep. Return: 0 or the errno of the contract, and all is done.
 */
int t3_wait_begin(struct t3_member *member, struct t3_wait *wait,
		  struct t3_part **part)
{
	int ret;

	wait->rank = T3_NONE;
	if (wait->flags || wait->__reserved)
		return -EOPNOTSUPP;
	*part = t3_part_get(member, wait->slot);
	if (IS_ERR(*part))
		return PTR_ERR(*part);
	ret = t3_epoch_check(member, *part, wait->epoch, "WAIT");
	return ret ? t3_wait_end(member, *part, wait, ret) : 0;
}

/**
 * t3_wait_end - what is to be done when a wait is over
 * @member: who waited, of current->mm
 * @part: for an epoch of this; its reference is given back
 * @wait: gets the outputs
 * @ret: how it ended: t3_wait_look(), or -EINTR
 *
 * Context: sleeps. Return: 0 or the errno of the contract.
 */
int t3_wait_end(struct t3_member *member, struct t3_part *part,
		struct t3_wait *wait, int ret)
{
	u64 cause;

	if (ret == 1)
		ret = recheck_retired(member, part);
	if (!ret)
		WRITE_ONCE(part->seen, t3_part_retired(part));
	t3_part_put(part);
	cause = t3_group_cause(member->group);
	if (ret && cause) {
		/* With an error of a broken group the buffers are given back. */
		t3_group_drain(member->group);
		wait->rank = t3_cause_rank(cause);
	}
	return ret;
}

int t3_wait(struct t3_cmd *cmd)
{
	struct t3_wait *wait = cmd->arg;
	struct t3_part *part;
	int ret;

	ret = t3_wait_begin(cmd->member, wait, &part);
	if (ret)
		return ret;
	ret = wait_retired(cmd->member, part, wait->epoch,
			   t3_wait_deadline(wait->timeout_ns));
	return t3_wait_end(cmd->member, part, wait, ret);
}
