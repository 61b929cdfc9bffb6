// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: members: joining, leaving, dying.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/file.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>

#include "t3.h"

/**
 * t3_part_get - a member's part in a slot
 * @member: the member
 * @slot: any number
 *
 * Context: any but hard-irq. Return: the part with a reference, to be given
 * back with t3_part_put(); ERR_PTR(-ERANGE), ERR_PTR(-ENOENT).
 */
struct t3_part *t3_part_get(struct t3_member *member, u32 slot)
{
	struct t3_part *part;

	if (slot >= T3_MAX_PLANS) {
		t3_say(member, "slot %u: 0 .. %u are possible", slot,
		       T3_MAX_PLANS - 1);
		return ERR_PTR(-ERANGE);
	}
	slot = array_index_nospec(slot, T3_MAX_PLANS);
	spin_lock(&member->part_lock);
	part = member->part[slot];
	if (part)
		kref_get(&part->plan->ref);
	spin_unlock(&member->part_lock);
	return part ?: ERR_PTR(-ENOENT);
}

void t3_part_put(struct t3_part *part)
{
	t3_plan_put(part->plan);
}

static void member_free(struct kref *ref)
{
	struct t3_member *member = container_of(ref, struct t3_member, ref);

	if (!IS_ERR_OR_NULL(member->map_file))
		fput(member->map_file);
	xa_destroy(&member->regions);
	mutex_destroy(&member->lock);
	mmdrop(member->mm);
	t3_group_put(member->group);
	kfree(member);
}

static void member_put(struct t3_member *member)
{
	kref_put(&member->ref, member_free);
}

/*
 * The member's last armed epoch will not retire: it breaks the group.
 * Context: any but hard-irq.
 */
static void member_died(struct t3_member *member)
{
	u32 slot;

	if (t3_member_armed(member, &slot))
		t3_group_break(member->group,
			       t3_cause(EOWNERDEAD, member->rank, slot,
					T3_NONE));
}

/*
 * Marks the rank as left: whoever needs it can't arm any more, and the
 * watchdog ends what is armed and needs it.
 */
static void member_mark(struct t3_member *member)
{
	WRITE_ONCE(member->left, true);
	t3_or64(&member->group->left, BIT_ULL(member->rank));
}

/* Caller holds member->lock. */
static void member_drop_all(struct t3_member *member)
{
	struct t3_group *group = member->group;
	struct t3_region *region;
	unsigned long id;
	u32 slot;

	mutex_lock(&group->lock);
	for (slot = 0; slot < T3_MAX_PLANS; slot++)
		if (member->part[slot])
			t3_plan_drop(member, slot, true);
	/* Plans that wait for a part of this rank wait no longer. */
	t3_plans_refuse(group, member->rank);
	mutex_unlock(&group->lock);

	if (READ_ONCE(group->broken))
		t3_group_drain(group);
	xa_for_each(&member->regions, id, region) {
		xa_erase(&member->regions, id);
		t3_region_unpin(region);
		t3_region_put(region);
	}
}

/* The last member stops what works for the group. */
static void group_lose(struct t3_group *group)
{
	mutex_lock(&group->lock);
	if (!--group->members) {
		t3_poller_stop(group);
		/* A break's last run may queue itself once more: no more. */
		cancel_delayed_work_sync(&group->watchdog);
	}
	mutex_unlock(&group->lock);
}

/*
 * All that the member has goes. @polite: not with an epoch armed.
 * Context: may sleep; not killable: what it waits for is bounded.
 */
static int member_leave(struct t3_member *member, bool polite)
{
	u32 slot;

	mutex_lock(&member->lock);
	if (member->gone) {
		mutex_unlock(&member->lock);
		return polite ? -ESHUTDOWN : 0;
	}
	if (polite && t3_member_armed(member, &slot)) {
		t3_say(member, "LEAVE: an epoch of slot %u is armed", slot);
		mutex_unlock(&member->lock);
		return -EBUSY;
	}
	member_died(member);
	member_mark(member);
	member_drop_all(member);
	member->gone = true;
	mutex_unlock(&member->lock);

	mmu_notifier_unregister(&member->notifier, member->mm);
	group_lose(member->group);
	t3_group_wake(member->group);
	return 0;
}

static void leave_work(struct work_struct *work)
{
	struct t3_member *member =
		container_of(work, struct t3_member, leave_work);

	member_leave(member, false);
	member_put(member);
}

/*
 * The mm goes, whoever still holds the file. Nobody may be waited for here:
 * break at once, free what the member has from a worker.
 */
static void mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct t3_member *member =
		container_of(notifier, struct t3_member, notifier);

	if (READ_ONCE(member->left))	/* mmu_notifier_unregister() calls too */
		return;
	member_died(member);
	member_mark(member);
	t3_group_wake(member->group);
	kref_get(&member->ref);
	if (!queue_work(t3_slow_wq, &member->leave_work))
		member_put(member);
}

static const struct mmu_notifier_ops mm_ops = {
	.release = mm_release,
};

static int leave(struct t3_cmd *cmd)
{
	struct t3_leave *leave = cmd->arg;

	if (leave->flags)
		return -EOPNOTSUPP;
	return member_leave(cmd->member, true);
}

static const struct t3_op member_ops[] = {
	T3_OP(T3_CMD_NOTIFY, t3_notify, 32, true, true, t3_notify),
	T3_OP(T3_CMD_WAIT, t3_wait, 32, true, true, t3_wait),
	T3_OP(T3_CMD_ARM, t3_arm, 16, true, false, t3_arm),
	T3_OP(T3_CMD_REGION_ADD, t3_region_add, 48, true, false,
	      t3_region_add),
	T3_OP(T3_CMD_REGION_DEL, t3_region_del, 16, false, false,
	      t3_region_del),
	T3_OP(T3_CMD_PLAN_ADD, t3_plan_add, 120, true, true,
	      t3_plan_add),
	T3_OP(T3_CMD_PLAN_WAIT, t3_plan_wait, 40, true, true,
	      t3_plan_wait),
	T3_OP(T3_CMD_PLAN_DEL, t3_plan_del, 16, false, false,
	      t3_plan_del),
	T3_OP(T3_CMD_LEAVE, t3_leave, 8, false, false, leave),
#if IS_ENABLED(CONFIG_SYNC_FILE)
	T3_OP(T3_CMD_FENCE_IN, t3_fence_in, 32, false, false, t3_fence_in),
	T3_OP(T3_CMD_FENCE_OUT, t3_fence_out, 24, true, false, t3_fence_out),
#endif
	T3_OP(T3_CMD_GROUP_INFO, t3_group_info, 48, true, false,
	      t3_group_info),
	T3_OP(T3_CMD_GROUP_ABORT, t3_group_abort, 8, false, false,
	      t3_group_abort),
};

/**
 * t3_member_op - look up a command of members
 * @code: the ioctl's code
 *
 * Return: NULL where there is no such command.
 */
const struct t3_op *t3_member_op(unsigned int code)
{
	return t3_op_find(member_ops, ARRAY_SIZE(member_ops), code);
}

/**
 * t3_member_allowed - may the caller use a member?
 * @member: the member
 *
 * Return: 0; -EPERM, -ESHUTDOWN.
 */
int t3_member_allowed(const struct t3_member *member)
{
	if (current->mm != member->mm)
		return -EPERM;
	return READ_ONCE(member->left) ? -ESHUTDOWN : 0;
}

static long member_ioctl(struct file *file, unsigned int code,
			 unsigned long arg)
{
	struct t3_member *member = file->private_data;
	struct t3_cmd cmd = { .group = member->group, .member = member };

	return t3_member_allowed(member) ?:
	       t3_ioctl_end(t3_dispatch(&cmd, t3_member_op(code),
					(void __user *)arg));
}

/* A fence that was asked for too early can be had now. Context: may sleep. */
static bool fence_wanted(struct t3_member *member)
{
	struct t3_part *part;
	bool wanted = false;
	u32 slot;

	for (slot = 0; slot < T3_MAX_PLANS && !wanted; slot++) {
		if (!READ_ONCE(member->part[slot]))
			continue;
		part = t3_part_get(member, slot);
		if (IS_ERR(part))
			continue;
		wanted = t3_plan_state(part->plan) == T3_PLAN_LIVE &&
			 t3_fence_wanted(part);
		t3_part_put(part);
	}
	return wanted;
}

/*
 * Readable while an epoch has retired that the user was not told of by
 * T3_WAIT or T3_ARM.
 */
static __poll_t member_poll(struct file *file, poll_table *wait)
{
	struct t3_member *member = file->private_data;
	__poll_t events = 0;
	u32 slot;

	poll_wait(file, &member->group->rank_wait[member->rank], wait);
	if (READ_ONCE(member->left))
		return EPOLLHUP;
	spin_lock(&member->part_lock);
	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct t3_part *part = member->part[slot];

		if (!part || t3_plan_state(part->plan) != T3_PLAN_LIVE)
			continue;
		if (t3_part_retired(part) != READ_ONCE(part->seen))
			events |= EPOLLIN | EPOLLRDNORM;
	}
	spin_unlock(&member->part_lock);
	if (fence_wanted(member))
		events |= EPOLLPRI;
	if (t3_group_error(member->group))
		events |= EPOLLERR;
	return events;
}

static int member_release(struct inode *inode, struct file *file)
{
	struct t3_member *member = file->private_data;

	member_leave(member, false);
	member_put(member);
	return 0;
}

#ifdef CONFIG_PROC_FS
/* Caller holds member->lock. */
static void fdinfo_locked(struct seq_file *m, struct t3_member *member)
{
	struct t3_region *region;
	unsigned long id;
	u64 pages = 0, imported = 0;
	u32 n = 0, slot;

	xa_for_each(&member->regions, id, region) {
		pages += region->npages;
		if (region->import)
			imported += region->rows * region->row_stride;
		n++;
	}
	seq_printf(m, "t3-regions:\t%u\n", n);
	seq_printf(m, "t3-memory-pinned:\t%llu KiB\n",
		   pages << (PAGE_SHIFT - 10));
	seq_printf(m, "t3-memory-imported:\t%llu KiB\n", imported >> 10);
	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		const struct t3_part *part = member->part[slot];

		if (!part || t3_plan_state(part->plan) != T3_PLAN_LIVE)
			continue;
		seq_printf(m, "t3-plan-%u:\tarmed %u retired %u\n", slot,
			   t3_machine_armed(&part->plan->machine, part->rank),
			   t3_part_retired(part));
	}
}

static void member_fdinfo(struct seq_file *m, struct file *file)
{
	struct t3_member *member = file->private_data;

	seq_printf(m, "t3-group:\t%u\n", member->group->id);
	seq_printf(m, "t3-rank:\t%u\n", member->rank);
	seq_printf(m, "t3-left:\t%u\n", READ_ONCE(member->left));
	if (mutex_lock_killable(&member->lock))
		return;
	fdinfo_locked(m, member);
	mutex_unlock(&member->lock);
}
#endif

static const struct file_operations member_fops = {
	.owner = THIS_MODULE,
	.release = member_release,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = member_fdinfo,
#endif
	.unlocked_ioctl = member_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = t3_uring_cmd,
	.poll = member_poll,
	.mmap = t3_mmap,
	.llseek = noop_llseek,
};

static struct t3_member *member_alloc(struct t3_group *group, u32 rank)
{
	struct t3_member *member;
	int ret;

	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member)
		return ERR_PTR(-ENOMEM);
	kref_init(&member->ref);
	member->group = group;
	member->rank = rank;
	mutex_init(&member->lock);
	spin_lock_init(&member->part_lock);
	xa_init_flags(&member->regions, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	INIT_WORK(&member->leave_work, leave_work);
	member->notifier.ops = &mm_ops;
	member->mm = current->mm;
	mmgrab(member->mm);
	t3_group_get(group);
	member->map_file = t3_map_file();
	ret = PTR_ERR_OR_ZERO(member->map_file);
	if (!ret)
		ret = mmu_notifier_register(&member->notifier, member->mm);
	if (ret) {
		member_put(member);
		return ERR_PTR(ret);
	}
	return member;
}

/* Before anybody knows of it. */
static void member_undo(struct t3_member *member)
{
	WRITE_ONCE(member->left, true);
	mmu_notifier_unregister(&member->notifier, member->mm);
	member_put(member);
}

static int take_rank(struct t3_group *group, u32 rank)
{
	int ret;

	if (mutex_lock_killable(&group->lock))
		return -EINTR;
	ret = t3_group_error(group);
	if (!ret && group->joined & BIT_ULL(rank))
		ret = -EEXIST;
	if (!ret) {
		WRITE_ONCE(group->joined, group->joined | BIT_ULL(rank));
		group->members++;
	}
	mutex_unlock(&group->lock);
	return ret;
}

static void untake_rank(struct t3_group *group, u32 rank)
{
	mutex_lock(&group->lock);
	WRITE_ONCE(group->joined, group->joined & ~BIT_ULL(rank));
	group->members--;
	mutex_unlock(&group->lock);
}

int t3_group_join(struct t3_cmd *cmd)
{
	struct t3_group *group = cmd->group;
	struct t3_group_join *join = cmd->arg;
	struct t3_member *member;
	int ret;

	if (join->flags)
		return -EOPNOTSUPP;
	if (join->rank >= group->ranks) {
		pr_info_ratelimited("group %u: JOIN: rank %u: the group has %u ranks\n",
				    group->id, join->rank, group->ranks);
		return -ERANGE;
	}
	member = member_alloc(group, join->rank);
	if (IS_ERR(member))
		return PTR_ERR(member);
	ret = take_rank(group, join->rank);
	if (ret) {
		t3_say(member, "JOIN: %s",
		       ret == -EEXIST ? "the rank is or was taken" :
					"the group has broken");
		goto undo;
	}
	ret = t3_cmd_file(cmd, "[t3_member]", &member_fops, member);
	if (ret)
		goto untake;
	join->out_fd = cmd->fd;
	return 0;

untake:
	untake_rank(group, join->rank);
undo:
	member_undo(member);
	return ret;
}
