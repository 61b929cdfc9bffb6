// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: plans: parts come together, the joint verdict, slots.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/nospec.h>
#include <linux/hrtimer.h>

#include "t3.h"

static u64 all_ranks(const struct t3_group *group)
{
	return GENMASK_ULL(group->ranks - 1, 0);
}

/* --- life ----------------------------------------------------------------- */

static void free_machine(struct t3_plan *plan)
{
	t3_plan_workers_free(plan);
	kvfree(plan->by_cpu);
	kvfree(plan->walk);
	kvfree(plan->ready);
	kvfree(plan->machine_mem);
	kvfree(plan->graph_mem);
	plan->by_cpu = NULL;
	plan->walk = NULL;
	plan->ready = NULL;
	plan->machine_mem = NULL;
	plan->graph_mem = NULL;
}

static void plan_free(struct kref *ref)
{
	struct t3_plan *plan = container_of(ref, struct t3_plan, ref);
	struct t3_group *group = plan->group;
	u32 r;

	for (r = 0; r < group->ranks; r++)
		if (plan->part[r])
			t3_part_free(plan->part[r]);
	free_machine(plan);
	kfree(plan);
	t3_group_put(group);
}

/* Context: may sleep where it is the last reference. */
void t3_plan_put(struct t3_plan *plan)
{
	kref_put(&plan->ref, plan_free);
}

static struct t3_plan *plan_alloc(struct t3_group *group, u32 slot,
				  u64 generation)
{
	struct t3_plan *plan = kzalloc(sizeof(*plan), GFP_KERNEL_ACCOUNT);

	if (!plan)
		return NULL;
	kref_init(&plan->ref);	/* the slot's */
	plan->slot = slot;
	plan->generation = generation;
	INIT_LIST_HEAD(&plan->live);
	t3_group_get(group);
	plan->group = group;
	return plan;
}

/* --- from parts to a machine ---------------------------------------------- */

/* The verdict is there. Caller holds group->lock. */
static void plan_decide(struct t3_plan *plan, int state)
{
	/* Pairs with the acquires of all who look at a plan's state. */
	smp_store_release(&plan->state, state);
	t3_group_wake(plan->group);
}

static void plan_refuse(struct t3_plan *plan, u32 error, u32 rank)
{
	t3_refuse(&plan->verdict, error, rank, T3_NONE, T3_NONE);
	plan_decide(plan, T3_PLAN_REFUSED);
}

static int build_graph(struct t3_plan *plan)
{
	const struct t3_program *prog[T3_MAX_RANKS];
	u32 r, ranks = plan->group->ranks;
	u64 bytes, scratch_bytes;
	void *scratch;
	int ret;

	for (r = 0; r < ranks; r++)
		prog[r] = &plan->part[r]->prog;
	bytes = t3_graph_bytes(prog, ranks, &scratch_bytes);
	if (!bytes || max(bytes, scratch_bytes) > INT_MAX)
		return t3_refuse(&plan->verdict, E2BIG, T3_NONE, T3_NONE,
				 T3_NONE);
	plan->graph_mem = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	scratch = kvzalloc(max_t(u64, scratch_bytes, 8), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (plan->graph_mem && scratch)
		ret = t3_graph_build(&plan->graph, prog, ranks,
				     plan->graph_mem, scratch, &plan->verdict);
	kvfree(scratch);
	return ret;
}

static void fill_use(struct t3_plan *plan)
{
	const struct t3_graph *g = &plan->graph;
	u32 r, b;

	for (r = 0; r < g->ranks; r++) {
		struct t3_part *part = plan->part[r];

		for (b = 0; b < part->prog.blocks; b++) {
			u32 n = g->first_block[r] + b;
			bool produced = g->produced[n];

			if (g->updates[n] > produced || (produced && g->tiles[n]))
				part->use[b] = T3_USE_WRITTEN;
			else if (produced)
				part->use[b] = T3_USE_SOURCE;
		}
		plan->silent |= part->flags & T3_PLAN_SILENT_PRODUCERS;
		plan->polled |= part->watched;
		for (b = 0; b < part->prog.grids; b++)
			if (part->region[b]->import)
				plan->imports = true;
	}
}

static int build_machine(struct t3_plan *plan)
{
	const struct t3_graph *g = &plan->graph;
	u32 r;

	plan->machine_mem = kvzalloc(ALIGN(t3_machine_bytes(g), 64),
				     GFP_KERNEL_ACCOUNT);
	plan->ready = kvzalloc(t3_ready_bytes(g->triggers), GFP_KERNEL_ACCOUNT);
	plan->walk = kvcalloc(g->triggers + 1, sizeof(*plan->walk),
			      GFP_KERNEL_ACCOUNT);
	plan->by_cpu = kvcalloc(BITS_TO_LONGS(g->triggers) + 1, sizeof(long),
				GFP_KERNEL_ACCOUNT);
	if (!plan->machine_mem || !plan->ready || !plan->walk || !plan->by_cpu)
		return -ENOMEM;
	plan->ready_mask = t3_ready_size(g->triggers) - 1;
	t3_machine_attach(&plan->machine, g, &t3_plan_ops, plan->machine_mem);
	for (r = 0; r < g->ranks; r++) {
		struct t3_part *part = plan->part[r];

		plan->machine.tiles[r] = part->tiles.addr;
		plan->machine.count[r] = part->status.addr +
					 t3_part_status(part)->count_offset;
	}
	t3_machine_start(&plan->machine, 0);
	fill_use(plan);
	t3_arb_init(plan);
	return t3_plan_workers_init(plan);
}

/*
 * All parts have come. Caller holds group->lock.
 * Return: 0, the verdict is given; -ENOMEM, and nothing has changed.
 */
static int plan_finish(struct t3_plan *plan)
{
	struct t3_group *group = plan->group;
	int ret;

	ret = build_graph(plan);
	if (!ret)
		ret = build_machine(plan);
	if (ret) {
		free_machine(plan);
		if (ret == -ENOMEM)
			return ret;
		pr_info_ratelimited("group %u: the plan in slot %u is refused: rank %d, trigger %d, detail %d: error %d\n",
				    group->id, plan->slot,
				    (int)plan->verdict.rank,
				    (int)plan->verdict.trigger,
				    (int)plan->verdict.detail, ret);
		plan_decide(plan, T3_PLAN_REFUSED);
		return 0;
	}
	t3_refuse(&plan->verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	t3_group_enlist(plan);
	plan_decide(plan, T3_PLAN_LIVE);
	return 0;
}

/* --- slots ---------------------------------------------------------------- */

/* Caller holds group->lock. Return: 0 or why @rank's part has no place. */
static int slot_check(const struct t3_slot *s, u32 rank, u64 generation)
{
	const struct t3_plan *plan = s->plan;

	if (!s->used || generation > s->generation)
		return plan ? -EBUSY : 0;
	if (generation < s->generation || !plan)
		return -ESTALE;
	/* The same generation, and its plan is there; one part a rank. */
	return plan->parts & BIT_ULL(rank) ? -ESTALE : 0;
}

static void part_attach(struct t3_member *member, struct t3_plan *plan,
			struct t3_part *part)
{
	u32 i;

	kref_get(&plan->ref);
	part->plan = plan;
	plan->part[member->rank] = part;
	/* give_verdict() reads it without the lock. */
	WRITE_ONCE(plan->parts, plan->parts | BIT_ULL(member->rank));
	plan->present |= BIT_ULL(member->rank);
	for (i = 0; i < part->prog.grids; i++)
		part->region[i]->users++;
}

/*
 * From now on other threads of the member find the part, and keep the plan
 * alive, not the part: it is the plan's for good.
 */
static void part_publish(struct t3_member *member, struct t3_part *part)
{
	spin_lock(&member->part_lock);
	member->part[part->plan->slot] = part;
	spin_unlock(&member->part_lock);
}

/* The last thing that happens to a plan in its slot: it is free again. */
static void slot_free_if_empty(struct t3_plan *plan)
{
	struct t3_group *group = plan->group;

	if (plan->present)
		return;
	t3_group_delist(plan);
	t3_arb_forget(plan);
	group->slot[plan->slot].plan = NULL;
	t3_plan_put(plan);
}

/* The member lets go of its part; the plan keeps it, and the reference. */
static void part_detach(struct t3_member *member, struct t3_part *part)
{
	struct t3_plan *plan = part->plan;
	u32 i;

	spin_lock(&member->part_lock);
	member->part[plan->slot] = NULL;
	spin_unlock(&member->part_lock);
	for (i = 0; i < part->prog.grids; i++)
		part->region[i]->users--;
	plan->present &= ~BIT_ULL(member->rank);
}

/* Caller holds both locks. Return: 0, and the plan owns the part, or why not. */
static int part_join(struct t3_member *member, struct t3_part *part,
		     struct t3_plan_add *add)
{
	struct t3_group *group = member->group;
	struct t3_slot *s = &group->slot[add->slot], old = *s;
	struct t3_plan *plan = s->plan;
	int ret;

	ret = slot_check(s, member->rank, add->generation);
	/* All others have gone meanwhile: tell the late one why. */
	if (ret == -ESTALE && add->generation == s->generation && group->left)
		return t3_refuse(&add->verdict, EPIPE, __ffs64(group->left),
				 T3_NONE, T3_NONE);
	if (ret)
		return ret;
	if (!plan) {
		plan = plan_alloc(group, add->slot, add->generation);
		if (!plan)
			return -ENOMEM;
		*s = (struct t3_slot) { plan, true, add->generation };
		if (group->left)
			plan_refuse(plan, EPIPE, __ffs64(group->left));
	}
	part_attach(member, plan, part);
	if (plan->state == T3_PLAN_COLLECTING &&
	    plan->parts == all_ranks(group))
		ret = plan_finish(plan);
	if (!ret) {
		part_publish(member, part);
	} else {	/* as if it had not come */
		part_detach(member, part);
		plan->part[member->rank] = NULL;
		WRITE_ONCE(plan->parts,
			   plan->parts & ~BIT_ULL(member->rank));
		if (!old.plan) {	/* a group of one */
			*s = old;
			t3_plan_put(plan);
		}
		t3_plan_put(plan);
	}
	return ret;
}

static void say_slot(struct t3_member *member, const struct t3_plan_add *add,
		     int ret)
{
	const struct t3_slot *s = &member->group->slot[add->slot];

	t3_say(member, "PLAN_ADD slot %u: generation %llu: the slot's is %llu%s: error %d",
	       add->slot, add->generation, s->generation,
	       s->plan ? ", and its plan is still there" : "", ret);
}

static int plan_add_locked(struct t3_member *member, struct t3_part *part,
			   struct t3_plan_add *add)
{
	struct t3_group *group = member->group;
	int ret;

	if (member->gone)
		return -ESHUTDOWN;
	if (member->part[add->slot]) {
		t3_say(member, "PLAN_ADD slot %u: this rank has a part in it",
		       add->slot);
		return -EEXIST;
	}
	ret = t3_part_resolve(member, part, add);
	if (ret)
		return ret;
	if (mutex_lock_killable(&group->lock))
		return -EINTR;
	ret = t3_group_error(group);
	if (!ret) {
		ret = part_join(member, part, add);
		if (ret == -EBUSY || ret == -ESTALE)
			say_slot(member, add, ret);
	}
	mutex_unlock(&group->lock);
	return ret;
}

int t3_plan_add(struct t3_cmd *cmd)
{
	struct t3_member *member = cmd->member;
	struct t3_plan_add *add = cmd->arg;
	struct t3_part *part;
	u64 at;
	int ret;

	t3_refuse(&add->verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	add->tiles_offset = 0;
	add->tiles_bytes = 0;
	add->status_offset = 0;
	add->status_bytes = 0;
	if (add->flags & ~T3_PLAN_SILENT_PRODUCERS)
		return -EOPNOTSUPP;
	if (add->slot >= T3_MAX_PLANS) {
		t3_say(member, "PLAN_ADD slot %u: 0 .. %u are possible",
		       add->slot, T3_MAX_PLANS - 1);
		return -ERANGE;
	}
	add->slot = array_index_nospec(add->slot, T3_MAX_PLANS);
	ret = t3_group_error(member->group);
	if (ret)
		return ret;
	part = t3_part_copy(member, add);
	if (IS_ERR(part))
		return PTR_ERR(part);
	if (mutex_lock_interruptible(&member->lock)) {
		t3_part_free(part);
		return -EINTR;
	}
	ret = plan_add_locked(member, part, add);
	if (!ret) {
		at = (u64)add->slot * 2 << T3_MMAP_SHIFT;
		add->tiles_offset = at + ((u64)T3_MMAP_TILES << T3_MMAP_SHIFT);
		add->tiles_bytes = (u64)part->tiles.nr << PAGE_SHIFT;
		add->status_offset = at + ((u64)T3_MMAP_STATUS << T3_MMAP_SHIFT);
		add->status_bytes = (u64)part->status.nr << PAGE_SHIFT;
	}
	mutex_unlock(&member->lock);
	if (ret)
		t3_part_free(part);
	return ret;
}

/**
 * t3_plan_drop - a member's part goes
 * @member: the caller holds its lock and the group's
 * @slot: the member has a part in it, and no epoch of it is armed and can run
 * @leaving: not by T3_PLAN_DEL: who does not need this rank may go on
 *
 * Context: sleeps.
 */
void t3_plan_drop(struct t3_member *member, u32 slot, bool leaving)
{
	struct t3_part *part = member->part[slot];
	struct t3_plan *plan = part->plan;

	if (!leaving)
		WRITE_ONCE(plan->deleted, plan->deleted | BIT_ULL(part->rank));
	if (plan->state == T3_PLAN_COLLECTING)
		plan_refuse(plan, EPIPE, member->rank);
	part_detach(member, part);
	t3_fences_cancel(part);
	slot_free_if_empty(plan);
	t3_plan_put(plan);
}

/**
 * t3_plans_refuse - a rank is gone: plans that wait for its part are refused
 * @group: the caller holds its lock
 * @rank: the rank
 */
void t3_plans_refuse(struct t3_group *group, u32 rank)
{
	u32 slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct t3_plan *plan = group->slot[slot].plan;

		if (plan && plan->state == T3_PLAN_COLLECTING)
			plan_refuse(plan, EPIPE, rank);
	}
}

int t3_plan_del(struct t3_cmd *cmd)
{
	struct t3_member *member = cmd->member;
	struct t3_plan_del *del = cmd->arg;
	struct t3_group *group = member->group;
	struct t3_part *part;
	int ret = 0;

	if (del->flags || del->__reserved)
		return -EOPNOTSUPP;
	if (mutex_lock_interruptible(&member->lock))
		return -EINTR;
	part = t3_part_get(member, del->slot);
	if (IS_ERR(part)) {
		ret = PTR_ERR(part);
		goto unlock;
	}
	if (t3_part_running(part)) {
		t3_say(member, "PLAN_DEL slot %u: an epoch is armed", del->slot);
		ret = -EBUSY;
		goto put;
	}
	if (mutex_lock_killable(&group->lock)) {
		ret = -EINTR;
		goto put;
	}
	/* What a broken group still runs must not find the memory gone. */
	if (READ_ONCE(group->broken))
		t3_group_drain(group);
	t3_plan_drop(member, del->slot, false);
	mutex_unlock(&group->lock);
put:
	t3_part_put(part);
unlock:
	mutex_unlock(&member->lock);
	return ret;
}

/* --- the verdict ---------------------------------------------------------- */

static int give_verdict(struct t3_plan *plan, struct t3_verdict *verdict)
{
	struct t3_group *group = plan->group;
	u64 cause = t3_group_cause(group);

	if (t3_plan_state(plan) != T3_PLAN_COLLECTING)
		*verdict = plan->verdict;
	if (!verdict->error && cause)
		t3_refuse(verdict, t3_cause_error(cause), t3_cause_rank(cause),
			  T3_NONE, T3_NONE);
	else if (t3_plan_state(plan) == T3_PLAN_COLLECTING)
		t3_refuse(verdict, ETIME,
			  __ffs64(~READ_ONCE(plan->parts)), T3_NONE, T3_NONE);
	return -(int)verdict->error;
}

int t3_plan_wait(struct t3_cmd *cmd)
{
	struct t3_plan_wait *wait = cmd->arg;
	struct t3_group *group = cmd->group;
	struct t3_part *part;
	struct t3_plan *plan;
	int ret = 0;

	t3_refuse(&wait->verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	if (wait->flags || wait->__reserved) {
		wait->verdict.error = EOPNOTSUPP;
		return -EOPNOTSUPP;
	}
	part = t3_part_get(cmd->member, wait->slot);
	if (IS_ERR(part)) {
		wait->verdict.error = -PTR_ERR(part);
		return PTR_ERR(part);
	}
	plan = part->plan;
	if (wait->timeout_ns)
		ret = wait_event_interruptible_hrtimeout
			(group->setup_wait,
			 t3_plan_state(plan) != T3_PLAN_COLLECTING ||
			 READ_ONCE(group->broken) ||
			 READ_ONCE(cmd->member->left),
			 ns_to_ktime(min_t(u64, wait->timeout_ns, KTIME_MAX)));
	if (ret == -ERESTARTSYS)
		t3_refuse(&wait->verdict, EINTR, T3_NONE, T3_NONE, T3_NONE);
	else
		give_verdict(plan, &wait->verdict);
	t3_part_put(part);
	return -(int)wait->verdict.error;
}
