// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the poller: one thread a group that looks for tiles counted in mapped
 * counters.
 *
 * Producers count with release, then a full fence, then load need_wakeup, and
 * call T3_NOTIFY if it is set. The poller sets need_wakeup, then a full fence,
 * then looks once more, then sleeps. So either it sees the tile, or the
 * producer sees need_wakeup.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>

#include "t3.h"

enum seen {
	SEEN_ARMED	= 1,	/* something is armed that tiles produce */
	SEEN_SILENT	= 2,	/* and its producers cannot call */
	SEEN_FOUND	= 4,	/* a production was complete */
};

/* The poller alone calls this, so @part->watch* need no lock. */
static int look_at_part(struct t3_plan *plan, struct t3_part *part)
{
	struct t3_machine *m = &plan->machine;
	u32 epoch = t3_machine_armed(m, part->rank);
	u32 i, first = plan->graph.first_block[part->rank];
	int seen = 0;

	if (!t3_plan_armed(plan, part->rank))
		return 0;
	if (part->watch_epoch != epoch) {
		part->watch_epoch = epoch;
		part->watch_left = part->watched;
	}
	for (i = part->watch_left; i-- > 0;) {
		u32 block = part->watch[i];

		if (t3_machine_look(m, part->rank, block))
			seen |= SEEN_FOUND;
		/* Whoever has claimed it: not to be looked at any more. */
		if (READ_ONCE(m->claimed[first + block]) == epoch) {
			part->watch_left--;
			swap(part->watch[i], part->watch[part->watch_left]);
		}
		if (!(i & 1023))
			cond_resched();
	}
	if (part->watch_left)
		seen |= SEEN_ARMED;
	return seen;
}

static int look_at_plan(struct t3_plan *plan)
{
	int seen = 0;
	u32 r;

	if (!plan->polled)
		return 0;
	for (r = 0; r < plan->group->ranks; r++)
		seen |= look_at_part(plan, plan->part[r]);
	if (seen & SEEN_FOUND) {
		WRITE_ONCE(plan->progress, jiffies);
		t3_plan_kick(plan);
	}
	if (seen & SEEN_ARMED && plan->silent)
		seen |= SEEN_SILENT;
	return seen;
}

static int look_at_group(struct t3_group *group)
{
	struct t3_plan *plan[T3_MAX_PLANS];
	int seen = 0;
	u32 i, n;

	if (READ_ONCE(group->broken))
		return 0;
	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		seen |= look_at_plan(plan[i]);
		t3_plan_put(plan[i]);
	}
	return seen;
}

static void set_need_wakeup(struct t3_group *group, u32 value)
{
	struct t3_plan *plan[T3_MAX_PLANS];
	u32 i, n, r;

	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		for (r = 0; plan[i]->polled && r < group->ranks; r++)
			WRITE_ONCE(t3_part_status(plan[i]->part[r])->need_wakeup,
				   value);
		t3_plan_put(plan[i]);
	}
	smp_mb();	/* see the head of this file */
}

/* Spin until nothing was found for poll_us. */
static void spin(struct t3_group *group)
{
	ktime_t end = 0;
	int seen;

	set_need_wakeup(group, 0);
	do {
		seen = look_at_group(group);
		if (seen & SEEN_FOUND || !end)
			end = ktime_add_us(ktime_get(), READ_ONCE(t3_poll_us));
		cpu_relax();
		cond_resched();
	} while (seen & SEEN_ARMED && !kthread_should_stop() &&
		 ktime_before(ktime_get(), end));
	set_need_wakeup(group, 1);
}

static void sleep(struct t3_group *group, bool silent)
{
	ktime_t longest = ns_to_ktime((u64)NSEC_PER_USEC *
				      max(1U, READ_ONCE(t3_poll_max_us)));

	/* Pairs with t3_poller_poke(): state, then poke; poke, then wake. */
	set_current_state(TASK_IDLE);
	if (!READ_ONCE(group->poke) && !kthread_should_stop())
		schedule_hrtimeout_range(silent ? &longest : NULL,
					 NSEC_PER_USEC * 50, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
}

static int poller(void *data)
{
	struct t3_group *group = data;
	int seen;

	while (!kthread_should_stop()) {
		if (READ_ONCE(group->poke)) {
			WRITE_ONCE(group->poke, false);
			spin(group);
		}
		/* The look after need_wakeup was set. */
		seen = look_at_group(group);
		if (seen & SEEN_FOUND)
			WRITE_ONCE(group->poke, true);
		else
			sleep(group, seen & SEEN_SILENT);
	}
	return 0;
}

/* In the creator's cgroups, as far as a module can say so: v1's. */
static void join_cgroups(struct t3_group *group, struct task_struct *task)
{
	int ret = cgroup_attach_task_all(group->creator, task);

	if (ret)
		pr_info_ratelimited("group %u: the poller stays in the root cgroup: error %d\n",
				    group->id, ret);
}

static void set_poller(struct t3_group *group, struct task_struct *task)
{
	unsigned long irqs;

	spin_lock_irqsave(&group->live_lock, irqs);
	WRITE_ONCE(group->poller, task);
	spin_unlock_irqrestore(&group->live_lock, irqs);
}

/**
 * t3_poller_start - see that the group's poller is there
 * @group: the caller is a member that has not left, and so the thread stays
 *
 * Context: sleeps. Return: 0; -ENOMEM, -EINTR.
 */
int t3_poller_start(struct t3_group *group)
{
	struct task_struct *task;
	int ret = 0;

	if (READ_ONCE(group->poller))	/* it stays while we do */
		return 0;
	if (mutex_lock_killable(&group->lock))
		return -EINTR;
	if (!group->poller) {
		task = kthread_create(poller, group, "t3-poll/%u", group->id);
		if (IS_ERR(task)) {
			ret = PTR_ERR(task);
		} else {
			join_cgroups(group, task);
			set_poller(group, task);
			wake_up_process(task);
		}
	}
	mutex_unlock(&group->lock);
	return ret;
}

/* Caller holds group->lock, and no member is left. Context: sleeps. */
void t3_poller_stop(struct t3_group *group)
{
	struct task_struct *task = group->poller;

	if (!task)
		return;
	set_poller(group, NULL);
	kthread_stop(task);
}

/**
 * t3_poller_poke - have the poller look, and spin for a while
 * @group: the group
 *
 * Context: any.
 */
void t3_poller_poke(struct t3_group *group)
{
	unsigned long irqs;

	WRITE_ONCE(group->poke, true);
	spin_lock_irqsave(&group->live_lock, irqs);
	if (group->poller)
		wake_up_process(group->poller);	/* a full fence comes first */
	spin_unlock_irqrestore(&group->live_lock, irqs);
}
