// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: groups, and how they break.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/poll.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>

#include "t3.h"
#include "trace.h"

#define PATIENCE_MS	20	/* with transfers of a group that broke */

void t3_group_get(struct t3_group *group)
{
	kref_get(&group->ref);
}

static void group_free(struct kref *ref)
{
	struct t3_group *group = container_of(ref, struct t3_group, ref);

	/* The last member to leave has stopped them. */
	WARN_ON(group->poller || delayed_work_pending(&group->watchdog));
	t3_dump_remove(group);
	put_task_struct(group->creator);
	mutex_destroy(&group->lock);
	kfree(group);
}

/* Context: may sleep where it is the last reference. */
void t3_group_put(struct t3_group *group)
{
	kref_put(&group->ref, group_free);
}

/**
 * t3_group_wake - wake all who wait for anything in a group
 * @group: the group
 *
 * Context: any.
 */
void t3_group_wake(struct t3_group *group)
{
	u32 r;

	for (r = 0; r < group->ranks; r++)
		wake_up_all(&group->rank_wait[r]);
	wake_up_all(&group->setup_wait);
}

static void plan_break(struct t3_plan *plan, u64 cause)
{
	u32 r;

	t3_machine_break(&plan->machine);
	for (r = 0; r < plan->group->ranks; r++) {
		struct t3_plan_status *status = t3_part_status(plan->part[r]);

		WRITE_ONCE(status->broken_rank, t3_cause_rank(cause));
		/* Pairs with the acquire of whoever reads the page. */
		smp_store_release(&status->broken, t3_cause_error(cause));
		t3_fence_over(plan->part[r]);
	}
}

/**
 * t3_group_break - break a group
 * @group: the caller holds a reference
 * @cause: t3_cause()
 *
 * From now on nothing begins to run and nothing retires. What runs may go on
 * for one chunk more: t3_group_drain(). A plan that becomes live meanwhile
 * looks at t3_group.broken under live_lock (plan.c), as this does the
 * opposite.
 *
 * Context: any; takes live_lock. Return: false where it had broken before.
 */
bool t3_group_break(struct t3_group *group, u64 cause)
{
	struct t3_plan *plan;
	unsigned long irqs;

	if (t3_cmpxchg64(&group->broken, 0, cause))
		return false;
	trace_t3_break(group, cause);
	t3_counted_break(t3_cause_error(cause));
	spin_lock_irqsave(&group->live_lock, irqs);
	list_for_each_entry(plan, &group->live, live)
		plan_break(plan, cause);
	spin_unlock_irqrestore(&group->live_lock, irqs);
	t3_group_wake(group);
	t3_group_get(group);
	if (!queue_work(t3_slow_wq, &group->broken_work))
		t3_group_put(group);
	return true;
}

/**
 * t3_group_enlist - a plan is about to be live
 * @plan: with a machine
 *
 * Pairs with t3_group_break(), which sets the word and then takes the lock: it
 * finds the plan, or the plan finds the word.
 */
void t3_group_enlist(struct t3_plan *plan)
{
	struct t3_group *group = plan->group;
	unsigned long irqs;
	u64 cause;

	spin_lock_irqsave(&group->live_lock, irqs);
	list_add_tail(&plan->live, &group->live);
	cause = READ_ONCE(group->broken);
	if (cause)
		plan_break(plan, cause);
	spin_unlock_irqrestore(&group->live_lock, irqs);
}

/* A plan, live or not, has no parts any more. */
void t3_group_delist(struct t3_plan *plan)
{
	struct t3_group *group = plan->group;
	unsigned long irqs;

	spin_lock_irqsave(&group->live_lock, irqs);
	list_del_init(&plan->live);
	spin_unlock_irqrestore(&group->live_lock, irqs);
}

/**
 * t3_group_drain - wait until nothing of a broken group runs any more
 * @group: it has broken
 *
 * Not killable: it takes as long as one section of each executor, which runs
 * with preemption off (engine_cpu.c). An executor that was preempted right
 * afterwards wakes us late: look again by ourselves. A transfer that a channel
 * has is left to it for a moment, and then taken back.
 *
 * Context: sleeps; not from an executor.
 */
void t3_group_drain(struct t3_group *group)
{
	unsigned long patience = jiffies + msecs_to_jiffies(PATIENCE_MS);

	while (!wait_event_timeout(group->drained,
				   !t3_load_acquire(&group->inflight), 1))
		if (time_after(jiffies, patience))
			t3_engines_cut(group);
}

/**
 * t3_group_live - the live plans of a group
 * @group: the group
 * @plan: out: [T3_MAX_PLANS], each with a reference
 *
 * Context: any. Return: how many.
 */
u32 t3_group_live(struct t3_group *group, struct t3_plan **plan)
{
	struct t3_plan *p;
	unsigned long irqs;
	u32 n = 0;

	spin_lock_irqsave(&group->live_lock, irqs);
	list_for_each_entry(p, &group->live, live) {
		kref_get(&p->ref);
		plan[n++] = p;
	}
	spin_unlock_irqrestore(&group->live_lock, irqs);
	return n;
}

/* Nobody waits for fences any more. */
static void cancel_fences(struct t3_group *group)
{
	struct t3_plan *plan[T3_MAX_PLANS];
	u32 i, n, r;

	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		for (r = 0; r < group->ranks; r++)
			t3_fences_cancel(plan[i]->part[r]);
		t3_plan_put(plan[i]);
	}
}

static void broken_work(struct work_struct *work)
{
	struct t3_group *group =
		container_of(work, struct t3_group, broken_work);
	char *buf = kmalloc(512, GFP_KERNEL);

	cancel_fences(group);
	if (buf) {
		t3_broken_say(group, READ_ONCE(group->broken), buf, 512);
		pr_warn_ratelimited("%s\n", buf);
	}
	kfree(buf);
	t3_group_put(group);
}

int t3_group_info(struct t3_cmd *cmd)
{
	struct t3_group *group = cmd->group;
	struct t3_group_info *info = cmd->arg;
	u64 cause = t3_group_cause(group);

	if (info->flags)
		return -EOPNOTSUPP;
	info->ranks = group->ranks;
	info->watchdog_ms = READ_ONCE(group->watchdog_ms);
	info->joined = READ_ONCE(group->joined);
	info->left = READ_ONCE(group->left);
	info->broken = t3_cause_error(cause);
	info->broken_rank = cause ? t3_cause_rank(cause) : T3_NONE;
	info->broken_slot = cause ? t3_cause_slot(cause) : T3_NONE;
	info->broken_block = cause ? t3_cause_block(cause) : T3_NONE;
	return 0;
}

int t3_group_abort(struct t3_cmd *cmd)
{
	struct t3_group_abort *abort = cmd->arg;
	u32 rank = cmd->member ? cmd->member->rank : T3_CAUSE_NONE;

	if (abort->flags)
		return -EOPNOTSUPP;
	if (!t3_group_break(cmd->group, t3_cause(ECANCELED, rank,
						 T3_CAUSE_NONE, T3_NONE)))
		return -EALREADY;
	t3_group_drain(cmd->group);
	return 0;
}

static int check_watchdog(u32 ms)
{
	u32 max = READ_ONCE(t3_watchdog_max_ms);

	if (ms <= max)
		return 0;
	pr_info_ratelimited("watchdog_ms %u is over the administrator's cap of %u\n",
			    ms, max);
	return -ERANGE;
}

static u32 watchdog_or_default(u32 ms)
{
	u32 max = READ_ONCE(t3_watchdog_max_ms);

	/* Never off, whatever the administrator writes. */
	return max(1U, ms ?: min(READ_ONCE(t3_watchdog_ms), max));
}

static int group_set(struct t3_cmd *cmd)
{
	struct t3_group_set *set = cmd->arg;
	int ret;

	if (set->flags || set->__reserved)
		return -EOPNOTSUPP;
	ret = check_watchdog(set->watchdog_ms);
	if (ret)
		return ret;
	WRITE_ONCE(cmd->group->watchdog_ms,
		   watchdog_or_default(set->watchdog_ms));
	return 0;
}

static const struct t3_op group_ops[] = {
	T3_OP(T3_CMD_GROUP_JOIN, t3_group_join, 16, true, false,
	      t3_group_join),
	T3_OP(T3_CMD_GROUP_INFO, t3_group_info, 48, true, false,
	      t3_group_info),
	T3_OP(T3_CMD_GROUP_ABORT, t3_group_abort, 8, false, false,
	      t3_group_abort),
	T3_OP(T3_CMD_GROUP_SET, t3_group_set, 16, false, false,
	      group_set),
};

static long group_ioctl(struct file *file, unsigned int code,
			unsigned long arg)
{
	struct t3_cmd cmd = { .group = file->private_data };

	return t3_ioctl_end(t3_dispatch(&cmd,
					t3_op_find(group_ops,
						   ARRAY_SIZE(group_ops), code),
					(void __user *)arg));
}

static int group_release(struct inode *inode, struct file *file)
{
	t3_group_put(file->private_data);
	return 0;
}

#ifdef CONFIG_PROC_FS
static void group_fdinfo(struct seq_file *m, struct file *file)
{
	struct t3_group *group = file->private_data;

	seq_printf(m, "t3-group:\t%u\n", group->id);
	seq_printf(m, "t3-ranks:\t%u\n", group->ranks);
	seq_printf(m, "t3-joined:\t0x%llx\n", READ_ONCE(group->joined));
	seq_printf(m, "t3-left:\t0x%llx\n", READ_ONCE(group->left));
	seq_printf(m, "t3-watchdog:\t%u ms\n", READ_ONCE(group->watchdog_ms));
	seq_printf(m, "t3-broken:\t%u\n",
		   t3_cause_error(t3_group_cause(group)));
}
#endif

static const struct file_operations group_fops = {
	.owner = THIS_MODULE,
	.release = group_release,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = group_fdinfo,
#endif
	.unlocked_ioctl = group_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct t3_group *group_alloc(u32 ranks, u32 watchdog_ms)
{
	struct t3_group *group;
	u32 r;

	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return NULL;
	kref_init(&group->ref);
	group->ranks = ranks;
	group->watchdog_ms = watchdog_or_default(watchdog_ms);
	mutex_init(&group->lock);
	init_waitqueue_head(&group->drained);
	init_waitqueue_head(&group->setup_wait);
	for (r = 0; r < T3_MAX_RANKS; r++)
		init_waitqueue_head(&group->rank_wait[r]);
	spin_lock_init(&group->live_lock);
	INIT_LIST_HEAD(&group->live);
	group->creator = get_task_struct(current);
	INIT_DELAYED_WORK(&group->watchdog, t3_watchdog);
	INIT_WORK(&group->stale_work, t3_stale_work);
	INIT_WORK(&group->broken_work, broken_work);
	t3_dump_add(group);
	return group;
}

int t3_group_create(struct t3_cmd *cmd)
{
	struct t3_group_create *create = cmd->arg;
	struct t3_group *group;
	int ret;

	if (create->flags || create->__reserved)
		return -EOPNOTSUPP;
	if (!create->ranks || create->ranks > T3_MAX_RANKS) {
		pr_info_ratelimited("GROUP_CREATE: %u ranks: 1 .. %u are possible\n",
				    create->ranks, T3_MAX_RANKS);
		return -ERANGE;
	}
	ret = check_watchdog(create->watchdog_ms);
	if (ret)
		return ret;
	group = group_alloc(create->ranks, create->watchdog_ms);
	if (!group)
		return -ENOMEM;
	ret = t3_cmd_file(cmd, "[t3_group]", &group_fops, group);
	if (ret)
		t3_group_put(group);
	else
		create->out_fd = cmd->fd;
	return ret;
}
