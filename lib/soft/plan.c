// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making a plan together: all publish their parts, all read and check all
 * parts and so come to the same verdict, all attach to the shared state.
 */
#include <sched.h>
#include <stdlib.h>

#include "soft.h"

u32 soft_first_epoch;

/**
 * struct setup - a plan being made
 * @plan: which
 * @m: whose
 * @copy: [ranks] all parts
 * @deadline: of it all
 * @rank: out of the waits: who is at fault, or lacks
 * @told: the sentence for our own refusal was made
 * @verdict: the joint one
 */
struct setup {
	struct soft_plan *plan;
	struct soft_member *m;
	struct soft_copy *copy;
	u64 deadline;
	u32 rank;
	bool told;
	struct t3_verdict *verdict;
};

static struct soft_part *part_of(struct setup *s, u32 rank)
{
	return &soft_slot_of(s->m, rank)->part[s->plan->p.slot];
}

static void set_state(struct soft_plan *plan, enum soft_part_state state)
{
	struct soft_member *m = soft_member(plan->p.member);
	u32 rank;

	t3_store_release(&m->slot->part[plan->p.slot].word,
			 soft_plan_word(plan, state));
	for (rank = 0; rank < m->m.ranks; rank++)
		soft_ring(soft_slot_of(m, rank), false);
}

/* Does an older plan hold on to the slot at some rank? */
static bool slot_free(void *arg)
{
	struct setup *s = arg;
	u64 generation = s->plan->p.generation;

	for (s->rank = 0; s->rank < s->m->m.ranks; s->rank++) {
		u64 word = t3_load_acquire(&part_of(s, s->rank)->word);
		u32 state = word & 0xff;

		if (word >> 8 < generation &&
		    (state == SOFT_PUBLISHED || state == SOFT_ATTACHED) &&
		    !soft_gone(s->m, s->rank))
			return false;
	}
	return true;
}

/*
 * Have all come as far as @state in this plan? Where one can't any more there
 * is nothing to wait for: the caller looks at who that is.
 */
static bool all_at(struct setup *s, enum soft_part_state state)
{
	u32 lacks = T3_NONE;
	u32 rank;

	for (rank = 0; rank < s->m->m.ranks; rank++) {
		u32 gone = soft_gone(s->m, rank);
		u64 word = t3_load_acquire(&part_of(s, rank)->word);
		u64 generation = word >> 8;

		if (generation == s->plan->p.generation &&
		    (word & 0xff) >= state)
			continue;
		if (gone || generation > s->plan->p.generation) {
			s->rank = rank;
			return true;
		}
		if (lacks == T3_NONE)
			lacks = rank;
	}
	s->rank = lacks;
	return lacks == T3_NONE;
}

static bool all_published(void *arg)
{
	return all_at(arg, SOFT_PUBLISHED);
}

static bool all_attached(void *arg)
{
	return all_at(arg, SOFT_ATTACHED);
}

/* Run others' triggers meanwhile: they may be waiting for those to come. */
static int setup_wait(struct setup *s, soft_done_fn done, int error)
{
	u64 now = t3_now();
	u64 left = s->deadline > now ? (s->deadline - now) / 1000000 + 1 : 0;
	int ret = soft_until(s->m, done, s, left);

	if (ret == -EOWNERDEAD)
		return soft_fail_broken(s->m);
	if (!ret)
		return 0;
	if (error == EBUSY)
		return t3_fail(EBUSY, "t3_plan_add: slot %u still holds an older plan at rank %u after %u ms",
			       s->plan->p.slot, s->rank,
			       s->m->m.options.setup_ms);
	return t3_fail(ETIME, "t3_plan_add: rank %u has not come with its part of plan %u in %u ms",
		       s->rank, s->plan->p.slot, s->m->m.options.setup_ms);
}

static int one_left(struct setup *s, u32 rank)
{
	/* It may have died with an epoch of another plan armed. */
	soft_check(s->m);
	if (soft_is_broken(s->m))
		return soft_fail_broken(s->m);
	t3_refuse(s->verdict, EPIPE, rank, T3_NONE, T3_NONE);
	return t3_fail(EPIPE, "t3_plan_add: rank %u (process %u) left, or gave up, before plan %u was made",
		       rank, t3_load(&soft_slot_of(s->m, rank)->pid),
		       s->plan->p.slot);
}

/* The first rank whose part is in a state; T3_NONE where there is none. */
static u32 first_in(struct setup *s, enum soft_part_state state)
{
	u64 word = soft_plan_word(s->plan, state);
	u32 rank;

	for (rank = 0; rank < s->m->m.ranks; rank++) {
		if (t3_load_acquire(&part_of(s, rank)->word) == word)
			return rank;
	}
	return T3_NONE;
}

static int refused(struct setup *s, u32 rank)
{
	const struct t3_verdict *theirs = &part_of(s, rank)->verdict;
	struct t3_verdict v = {
		.error = t3_load(&theirs->error),
		.rank = t3_load(&theirs->rank),
		.trigger = t3_load(&theirs->trigger),
		.detail = t3_load(&theirs->detail),
	};

	/* A stranger may have written it: an errno it is in any case. */
	if (!v.error || v.error > 4095)
		v.error = EIO;
	*s->verdict = v;
	if (rank == s->m->m.rank && s->told)
		return -(int)v.error;
	if (v.error == EMEDIUMTYPE)
		return t3_fail(EMEDIUMTYPE, "t3_plan_add: rank %u can't read region memory of rank %u that is not from t3_alloc()",
			       rank, v.detail);
	return t3_fail_verdict("t3_plan_add", &v);
}

/* The first rank that is gone and has not attached. */
static u32 first_gone(struct setup *s)
{
	u64 generation = s->plan->p.generation;
	u32 rank;

	for (rank = 0; rank < s->m->m.ranks; rank++) {
		u32 gone = soft_gone(s->m, rank);
		u64 word = t3_load_acquire(&part_of(s, rank)->word);

		if (gone && !(word >> 8 == generation &&
			      (word & 0xff) >= SOFT_ATTACHED))
			return rank;
	}
	return T3_NONE;
}

/*
 * After a wait for all: did it go well? Who gave up may have done so because
 * another refused: then that is the verdict, and it is there to be seen.
 */
static int judge(struct setup *s)
{
	u32 gave_up = first_in(s, SOFT_GIVEN_UP);
	u32 refuses = first_in(s, SOFT_REFUSED);
	u32 gone = first_gone(s);

	if (refuses != T3_NONE)
		return refused(s, refuses);
	/* Others give up because of it. */
	if (gone != T3_NONE)
		return one_left(s, gone);
	if (gave_up != T3_NONE)
		return one_left(s, gave_up);
	if (s->rank != T3_NONE)
		return one_left(s, s->rank);
	return 0;
}

static int build_graph(struct setup *s)
{
	const struct t3_program *prog[T3_MAX_RANKS];
	struct soft_plan *plan = s->plan;
	u64 bytes, scratch_bytes;
	void *scratch;
	u32 r;
	int ret;

	for (r = 0; r < s->m->m.ranks; r++)
		prog[r] = &s->copy[r].program;
	bytes = t3_graph_bytes(prog, s->m->m.ranks, &scratch_bytes);
	if (!bytes)
		return t3_refuse(s->verdict, E2BIG, T3_NONE, T3_NONE, T3_NONE);
	plan->graph_memory = calloc(1, bytes);
	scratch = calloc(1, scratch_bytes + 8);
	if (plan->graph_memory && scratch)
		ret = t3_graph_build(&plan->graph, prog, s->m->m.ranks,
				     plan->graph_memory, scratch, s->verdict);
	else
		ret = t3_refuse(s->verdict, ENOMEM, s->m->m.rank, T3_NONE,
				T3_NONE);
	free(scratch);
	return ret;
}

/* Map a piece of shared state. */
static void *map_state(struct soft_plan *plan, u64 at, u64 bytes)
{
	void *memory = soft_map(soft_member(plan->p.member)->domain, at, bytes,
				true);

	if (memory) {
		plan->map[plan->maps++] = memory;
		soft_populate((uintptr_t)memory, bytes, true);
	}
	return memory;
}

/* Each rank's share: progress, queue, tiles and counts, one after the other. */
static int map_shares(struct setup *s)
{
	struct soft_plan *plan = s->plan;
	u32 r;

	for (r = 0; r < s->m->m.ranks; r++) {
		const struct t3_program *p = &s->copy[r].program;
		u64 line = (p->blocks * sizeof(u32) + 63) & ~63ULL;
		u64 bytes = soft_share_bytes(p);
		u8 *memory = map_state(plan, s->copy[r].part.state_at,
				       soft_share_room(s->m, p));

		if (!memory)
			return t3_refuse(s->verdict, ENOMEM, s->m->m.rank,
					 T3_NONE, T3_NONE);
		plan->share[r] = (struct soft_share *)memory;
		plan->queue[r] = (struct t3_ready *)(plan->share[r] + 1);
		plan->queue_mask[r] = t3_ready_size(p->triggers) - 1;
		plan->machine.tiles[r] = (u32 *)(memory + bytes - 2 * line);
		plan->machine.count[r] = (u32 *)(memory + bytes - line);
	}
	return 0;
}

static int attach(struct setup *s, u64 at)
{
	struct soft_plan *plan = s->plan;
	u64 bytes = t3_machine_bytes(&plan->graph);
	void *memory = NULL;

	if (soft_in_arena(s->m->domain, 0, at, bytes) && !(at % 64))
		memory = map_state(plan, at, bytes);
	if (!memory)
		return t3_refuse(s->verdict, EIO, 0, T3_NONE, T3_NONE);
	t3_machine_attach(&plan->machine, &plan->graph, &soft_machine_ops,
			  memory);
	return 0;
}

/* Rank 0 makes the shared state, before it says that it has attached. */
static int make_machine(struct setup *s)
{
	struct soft_plan *plan = s->plan;
	u64 *at = &s->m->remains[plan->p.slot].at[2];
	int ret;

	if (s->m->m.rank)
		return 0;
	if (soft_arena_take(s->m, t3_machine_bytes(&plan->graph), at))
		return t3_refuse(s->verdict, ENOMEM, 0, T3_NONE, T3_NONE);
	ret = attach(s, *at);
	if (ret)
		return ret;
	t3_machine_start(&plan->machine, soft_first_epoch);
	part_of(s, 0)->machine_at = *at;
	return 0;
}

/* Read all parts, and see what they make together. */
static int read_parts(struct setup *s)
{
	struct soft_plan *plan = s->plan;
	u32 maps = s->m->m.ranks * (1 + T3_MAX_PLAN_REGIONS) + 1;
	u32 r;
	int ret = 0;

	plan->map = calloc(maps, sizeof(*plan->map));
	if (!plan->map)
		return t3_refuse(s->verdict, ENOMEM, s->m->m.rank, T3_NONE,
				 T3_NONE);
	for (r = 0; r < s->m->m.ranks && !ret; r++)
		ret = soft_part_fetch(plan, r, &s->copy[r], s->verdict);
	if (!ret)
		ret = build_graph(s);
	if (!ret)
		ret = map_shares(s);
	if (!ret) {
		ret = s->m->hooks ? s->m->hooks->make(plan, s->copy, s->verdict) :
				    soft_tasks_make(plan, s->copy, s->verdict);
		s->told = ret;
	}
	if (!ret && !s->m->hooks)
		ret = make_machine(s);
	return ret;
}

/* Is nobody left who could use what the slot's last plan took here? */
static bool all_done(struct soft_member *m, u32 slot)
{
	u64 generation = m->remains[slot].generation;
	u32 rank;

	for (rank = 0; rank < m->m.ranks; rank++) {
		struct soft_slot *of = soft_slot_of(m, rank);
		u64 word = t3_load_acquire(&of->part[slot].word);
		u32 state = word & 0xff;

		if (word >> 8 == generation &&
		    (state == SOFT_PUBLISHED || state == SOFT_ATTACHED) &&
		    !soft_gone(m, rank))
			return false;
	}
	return true;
}

/* Give back what deleted plans took, where all ranks have deleted them. */
static void clear_remains(struct soft_member *m)
{
	u32 slot, i;

	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct soft_remains *remains = &m->remains[slot];

		if (!remains->generation || !all_done(m, slot))
			continue;
		for (i = 0; i < 3; i++) {
			if (remains->at[i])
				soft_arena_give(m, remains->at[i]);
		}
		*remains = (struct soft_remains) { 0 };
	}
}

static int come_together(struct setup *s)
{
	int ret = setup_wait(s, slot_free, EBUSY);

	if (ret)
		return ret;
	clear_remains(s->m);
	ret = soft_part_publish(s->plan);
	if (ret)
		return ret;
	s->plan->p.submitted = true;
	set_state(s->plan, SOFT_PUBLISHED);
	ret = setup_wait(s, all_published, ETIME);
	return ret ? ret : judge(s);
}

static int agree(struct setup *s)
{
	int ret = read_parts(s);

	if (ret) {
		part_of(s, s->m->m.rank)->verdict = *s->verdict;
		set_state(s->plan, SOFT_REFUSED);
	} else {
		set_state(s->plan, SOFT_ATTACHED);
	}
	ret = setup_wait(s, all_attached, ETIME);
	if (!ret)
		ret = judge(s);
	if (!ret && s->m->m.rank && !s->m->hooks) {
		ret = attach(s, t3_load(&part_of(s, 0)->machine_at));
		if (ret)
			t3_fail_verdict("t3_plan_add", s->verdict);
	}
	return ret;
}

static void go_live(struct soft_member *m, struct soft_plan *plan)
{
	plan->p.epoch = soft_epoch(plan, m->m.rank);
	t3_store(&m->crowded, soft_is_crowded(m));
	soft_conflicts_add(m, plan);
	__atomic_fetch_or(&m->live, 1ULL << plan->p.slot, __ATOMIC_SEQ_CST);
}

static void drop_copies(struct setup *s)
{
	u32 r;

	for (r = 0; s->copy && r < s->m->m.ranks; r++)
		free(s->copy[r].blob);
	free(s->copy);
}

int soft_plan_add(struct t3_plan *p, struct t3_verdict *verdict)
{
	struct soft_member *m = soft_member(p->member);
	struct soft_plan *plan = soft_plan(p);
	struct setup s = {
		.plan = plan,
		.m = m,
		.deadline = t3_deadline(m->m.options.setup_ms),
		.verdict = verdict,
	};
	u64 own;
	int ret;

	if (soft_is_foreign(m))
		return soft_foreign();
	memset((char *)plan + sizeof(*p), 0, sizeof(*plan) - sizeof(*p));
	t3_refuse(verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	if (soft_is_broken(m))
		return soft_fail_broken(m);
	s.copy = calloc(m->m.ranks, sizeof(*s.copy));
	if (!s.copy)
		return t3_fail(ENOMEM, "t3_plan_add: no memory");
	ret = come_together(&s);
	if (!ret) {
		soft_hold_peers(m);
		ret = agree(&s);
	}
	drop_copies(&s);
	if (!ret) {
		go_live(m, plan);
		return 0;
	}
	own = t3_load(&m->slot->part[p->slot].word);
	if (own == soft_plan_word(plan, SOFT_REFUSED))
		soft_plan_release(plan, SOFT_REFUSED);
	else
		soft_plan_release(plan, SOFT_GIVEN_UP);
	return ret;
}

/* No thread looks at the plan any more, nor will. */
void soft_plan_retract(struct soft_plan *plan)
{
	struct soft_member *m = soft_member(plan->p.member);
	u32 slot = plan->p.slot;
	u64 bit = 1ULL << slot;

	if (!(__atomic_fetch_and(&m->live, ~bit, __ATOMIC_SEQ_CST) & bit))
		return;
	while (__atomic_load_n(&m->users[slot], __ATOMIC_SEQ_CST))
		sched_yield();
	soft_conflicts_del(m, plan);
}

void soft_plan_release(struct soft_plan *plan, enum soft_part_state state)
{
	struct soft_member *m = soft_member(plan->p.member);

	soft_plan_retract(plan);
	if (m->hooks)
		m->hooks->release(plan);
	while (plan->maps)
		soft_unmap(m->domain, plan->map[--plan->maps]);
	set_state(plan, state);
	free(plan->map);
	free(plan->reader);
	free(plan->operand);
	free(plan->task);
	free(plan->graph_memory);
	free(plan->use);
	plan->map = NULL;
	plan->reader = NULL;
	plan->operand = NULL;
	plan->task = NULL;
	plan->graph_memory = NULL;
	plan->use = NULL;
}

int soft_plan_del(struct t3_plan *p)
{
	struct soft_member *m = soft_member(p->member);
	struct soft_plan *plan = soft_plan(p);

	if (soft_is_foreign(m))
		return soft_foreign();
	if (!soft_is_broken(m) && soft_armed(plan, m->m.rank))
		return t3_fail(EBUSY, "t3_plan_del: epoch %u of plan %u is armed",
			       p->epoch, p->slot);
	/* Without t3_wait() nobody has waited for those in flight yet. */
	if (soft_armed(plan, m->m.rank))
		soft_drain(m);
	soft_plan_release(plan, SOFT_DELETED);
	return 0;
}
