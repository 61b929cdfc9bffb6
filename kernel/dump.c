// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the state of all groups, in debugfs: t3/state. Each trigger that waits
 * says for what.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "t3.h"

#define DUMP_TRIGGERS	256	/* waiting ones of a rank that are printed */

/*
 * All groups, by growing id. Under groups_lock; a group that is in the list may
 * have lost its last reference, and then must not be touched without the lock.
 */
static LIST_HEAD(groups);
static DEFINE_SPINLOCK(groups_lock);
static struct dentry *dir;

/* Context: sleeps or not; not hard-irq. */
void t3_dump_add(struct t3_group *group)
{
	static u32 last_id;

	spin_lock(&groups_lock);
	group->id = ++last_id;
	list_add_tail(&group->all, &groups);
	spin_unlock(&groups_lock);
}

void t3_dump_remove(struct t3_group *group)
{
	spin_lock(&groups_lock);
	list_del(&group->all);
	spin_unlock(&groups_lock);
}

/* The first group after those of the ids up to @id, with a reference. */
static struct t3_group *group_after(u64 id)
{
	struct t3_group *group, *found = NULL;

	spin_lock(&groups_lock);
	list_for_each_entry(group, &groups, all) {
		if (group->id > id && kref_get_unless_zero(&group->ref)) {
			found = group;
			break;
		}
	}
	spin_unlock(&groups_lock);
	return found;
}

/* --- triggers ------------------------------------------------------------- */

/* Of a block of a rank, in the epoch; its rank may not have armed it. */
static u32 updates(const struct t3_plan *plan, u32 node, u32 epoch)
{
	const struct t3_graph *g = &plan->graph;
	u32 rank = g->block_rank[node];
	u32 count = READ_ONCE(plan->machine.count[rank]
			      [node - g->first_block[rank]]);
	u32 have = count - (epoch - 1) * g->updates[node];

	return t3_reached(have, 0) ? have : 0;
}

/* Return: it lacks something, and it was printed. */
static bool show_lack(struct seq_file *m, const struct t3_plan *plan, u32 node,
		      u32 epoch, u32 need)
{
	const struct t3_graph *g = &plan->graph;
	u32 have = updates(plan, node, epoch);
	u32 rank = g->block_rank[node];

	if (have >= need)
		return false;
	seq_printf(m, "; rank %u block %u has %u of %u updates%s", rank,
		   node - g->first_block[rank], have, need,
		   t3_reached(t3_machine_armed(&plan->machine, rank), epoch) ?
		   "" : ", not armed");
	return true;
}

/*
 * A snapshot, taken while the machine runs. What is not an update is a reader
 * of the destination, or the trigger is queued or runs.
 */
static void show_trigger(struct seq_file *m, const struct t3_plan *plan,
			 u32 trigger, u32 epoch)
{
	const struct t3_graph *g = &plan->graph;
	const struct t3_action *action = &g->action[trigger];
	const struct t3_program *prog = &plan->part[action->rank]->prog;
	u32 own = trigger - g->first_trigger[action->rank];
	const struct t3_trigger *t = &prog->trigger[own];
	bool lacks;
	u32 i;

	seq_printf(m, "    trigger %u: %s to block %u as update %u", own,
		   action->op == T3_OP_SUM ? "sum" : "copy",
		   action->block - g->first_block[action->rank], t->seq);
	lacks = show_lack(m, plan, action->block, epoch, t->seq - 1);
	for (i = 0; i < action->sources; i++)
		lacks |= show_lack(m, plan,
				   g->source[action->first_source + i], epoch,
				   prog->source[t->first_source + i].at);
	seq_puts(m, lacks ? "\n" :
		 "; all updates are there: waits for readers, is queued or runs\n");
}

static void show_triggers(struct seq_file *m, const struct t3_plan *plan,
			  u32 rank, u32 epoch)
{
	const struct t3_graph *g = &plan->graph;
	const struct t3_program *prog = &plan->part[rank]->prog;
	u32 i, waiting = 0;

	for (i = 0; i < prog->triggers; i++) {
		u32 trigger = g->first_trigger[rank] + i;

		if (!(i & 1023))
			cond_resched();
		if (updates(plan, g->action[trigger].block, epoch) >=
		    prog->trigger[i].seq)
			continue;
		if (waiting++ < DUMP_TRIGGERS)
			show_trigger(m, plan, trigger, epoch);
	}
	if (waiting > DUMP_TRIGGERS)
		seq_printf(m, "    and %u more\n", waiting - DUMP_TRIGGERS);
}

/* --- the rest ------------------------------------------------------------- */

static void show_plan(struct seq_file *m, const struct t3_plan *plan)
{
	u32 r, armed, retired;

	seq_printf(m, "  slot %u: generation %llu, %u triggers\n", plan->slot,
		   plan->generation, plan->graph.triggers);
	for (r = 0; r < plan->group->ranks; r++) {
		armed = t3_machine_armed(&plan->machine, r);
		retired = t3_part_retired(plan->part[r]);
		seq_printf(m, "   rank %u: armed %u, retired %u\n", r, armed,
			   retired);
		if (armed != retired)
			show_triggers(m, plan, r, armed);
	}
}

static void show_broken(struct seq_file *m, struct t3_group *group)
{
	u64 cause = t3_group_cause(group);
	char *buf;

	if (!cause)
		return;
	buf = kmalloc(512, GFP_KERNEL);
	if (!buf)
		return;
	t3_broken_say(group, cause, buf, 512);
	seq_printf(m, "  %s\n", buf);
	kfree(buf);
}

static int dump_show(struct seq_file *m, void *v)
{
	struct t3_group *group = v;
	struct t3_plan *plan[T3_MAX_PLANS];
	u32 i, n;

	seq_printf(m, "group %u: %u ranks, joined 0x%llx, left 0x%llx, watchdog %u ms, in flight %u%s\n",
		   group->id, group->ranks, READ_ONCE(group->joined),
		   READ_ONCE(group->left), READ_ONCE(group->watchdog_ms),
		   READ_ONCE(group->inflight),
		   READ_ONCE(group->poller) ? ", has a poller" : "");
	show_broken(m, group);
	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		show_plan(m, plan[i]);
		t3_plan_put(plan[i]);
	}
	return 0;
}

/* Positions are ids. */
static void *dump_start(struct seq_file *m, loff_t *pos)
{
	return group_after(*pos);
}

static void *dump_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct t3_group *group = v;

	*pos = group->id;
	t3_group_put(group);
	return group_after(*pos);
}

static void dump_stop(struct seq_file *m, void *v)
{
	if (v)
		t3_group_put(v);
}

static const struct seq_operations dump_sops = {
	.start = dump_start,
	.next = dump_next,
	.stop = dump_stop,
	.show = dump_show,
};
DEFINE_SEQ_ATTRIBUTE(dump);

/* A kernel without debugfs has no dump; nothing else needs it. */
void t3_dump_init(void)
{
	dir = debugfs_create_dir("t3", NULL);
	debugfs_create_file("state", 0400, dir, NULL, &dump_fops);
}

void t3_dump_exit(void)
{
	debugfs_remove(dir);
}
