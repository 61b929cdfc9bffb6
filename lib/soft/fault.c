// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How a group breaks: who finds that out, what becomes of those in flight, and
 * how it is said.
 */
#include <sched.h>
#include <stdio.h>

#include "soft.h"

#define DRAIN_PEER_NS	1200000000ULL	/* a rank in another process */
#define DRAIN_OWN_NS	10000000000ULL	/* a thread of ours */

#define NO_RANK		0xffu
#define NO_BLOCK	0xffffffu

/* error: 12 bits, why: 8, rank: 8, slot: 8, block: 24 */
static u64 pack(const struct soft_cause *c)
{
	return (u64)c->error | (u64)c->why << 12 |
	       (u64)(c->rank & NO_RANK) << 20 | (u64)(c->slot & 0xff) << 28 |
	       (u64)(c->block & NO_BLOCK) << 36;
}

/* The word may be anybody's: what it says is made sense of, never used. */
static struct soft_cause unpack(u64 word)
{
	struct soft_cause c = {
		.error = word & 0xfff,
		.why = word >> 12 & 0xff,
		.rank = word >> 20 & NO_RANK,
		.slot = word >> 28 & 0xff,
		.block = word >> 36 & NO_BLOCK,
	};

	switch (c.error) {
	case EOWNERDEAD:
	case ECANCELED:
	case ETIMEDOUT:
	case ESTALE:
		break;
	default:
		c.error = EIO;
	}
	return c;
}

/* Nothing retires any more in any plan of ours; wake who waits. */
static void spread(struct soft_member *m)
{
	u64 live = t3_load_acquire(&m->live);
	u32 r;

	for (; live; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(m, slot);

		if (!plan)
			continue;
		if (m->hooks)
			m->hooks->broken(plan);
		else
			t3_machine_break(&plan->machine);
		soft_plan_put(m, slot);
	}
	for (r = 0; r < m->m.ranks; r++)
		soft_ring(soft_slot_of(m, r), true);
}

void soft_break(struct soft_member *m, const struct soft_cause *cause)
{
	t3_cmpxchg64(soft_broken(m), 0, pack(cause));
	spread(m);
}

int soft_abort(struct t3_member *member)
{
	struct soft_member *m = soft_member(member);
	const struct soft_cause cause = {
		.error = ECANCELED,
		.why = SOFT_WHY_ABORT,
		.rank = member->rank,
		.slot = T3_NONE,
		.block = T3_NONE,
	};

	if (soft_is_foreign(m))
		return soft_foreign();
	if (t3_cmpxchg64(soft_broken(m), 0, pack(&cause)))
		return t3_fail(EALREADY, "t3_abort: the group has broken before");
	spread(m);
	return 0;
}

/*
 * Is it sure that no thread of a rank runs triggers? Of ranks in this process
 * our own count says so, which no stranger can write.
 */
static bool drained(struct soft_member *m, u32 rank, u64 waited)
{
	struct soft_slot *slot = soft_slot_of(m, rank);
	bool local, runs;

	pthread_mutex_lock(&soft_lock);
	local = m->domain->member[rank];
	runs = local && t3_load_sc(&m->domain->member[rank]->running);
	pthread_mutex_unlock(&soft_lock);
	if (local)
		return !runs || waited > DRAIN_OWN_NS;
	return !t3_load_sc(&slot->inflight) || waited > DRAIN_PEER_NS ||
	       soft_surely_dead(m, rank);
}

/*
 * Wait for those in flight. They look at the broken word every few hundred
 * KiB. A rank of another process that does not come back in time (it may be
 * stopped) can only read what our arena holds, and writes only its own memory:
 * it is not worth waiting for without end.
 */
void soft_drain(struct soft_member *m)
{
	u64 begin = t3_now();
	u32 rank;

	if (t3_load_acquire(&m->drained))
		return;
	if (m->hooks)
		m->hooks->drain(m);
	for (rank = 0; rank < m->m.ranks; rank++) {
		while (!drained(m, rank, t3_now() - begin))
			sched_yield();
	}
	/* Nobody begins any more. */
	t3_store_release(&m->drained, 1);
}

/* What a rank did, for sentences. */
static const char *why_text(u32 why)
{
	switch (why) {
	case SOFT_WHY_ABORT:
		return "called t3_abort()";
	case SOFT_WHY_DIED:
		return "died with an epoch armed";
	case SOFT_WHY_LEFT:
		return "left with an epoch armed";
	case SOFT_WHY_MISSED:
		return "is gone and had not armed an epoch that others had";
	case SOFT_WHY_UNARMED:
		return "did not arm in the watchdog's time";
	case SOFT_WHY_BLOCK:
		return "made no progress in the watchdog's time";
	case SOFT_WHY_STALE:
		return "unmapped memory that is in use";
	case SOFT_WHY_CORRUPT:
		return "found shared memory overwritten";
	case SOFT_WHY_GPU:
		return "has a GPU that failed";
	default:
		return "is where no progress was seen in the watchdog's time";
	}
}

int soft_fail_broken(struct soft_member *m)
{
	struct soft_cause c = unpack(t3_load_acquire(soft_broken(m)));
	char where[80] = "";
	u32 pid = 0;
	int used = 0;

	spread(m);
	soft_drain(m);
	if (c.rank < m->m.ranks)
		pid = t3_load(&soft_slot_of(m, c.rank)->pid);
	if (c.slot < T3_MAX_PLANS)
		used = snprintf(where, sizeof(where), ", plan %u", c.slot);
	if (c.block != NO_BLOCK)
		snprintf(where + used, sizeof(where) - used,
			 ", block %u lacks updates", c.block);
	return t3_fail(c.error, "the group broke: rank %u (process %u) %s%s",
		       c.rank, pid, why_text(c.why), where);
}

/* Does the death of a rank break this plan? Its words are final by now. */
static bool check_gone(struct soft_member *m, struct soft_plan *plan, u32 rank,
		       u32 why)
{
	u32 own = m->m.rank;
	struct soft_cause cause = {
		.error = EOWNERDEAD,
		.rank = rank,
		.slot = plan->p.slot,
		.block = T3_NONE,
	};

	if (soft_armed(plan, rank))
		cause.why = why;
	else if (soft_armed(plan, own) && plan->graph.needs[own] >> rank & 1 &&
		 !t3_reached(soft_epoch(plan, rank), soft_epoch(plan, own)))
		cause.why = SOFT_WHY_MISSED;
	else
		return false;
	soft_break(m, &cause);
	return true;
}

/* Whom does an armed rank wait for? Without a machine only arming is known. */
static bool lacks(const struct soft_plan *plan, u32 own, struct t3_lack *lack)
{
	u64 needs = plan->graph.needs[own];

	if (plan->machine.state)
		return t3_machine_lacks(&plan->machine, own, lack);
	lack->block = T3_NONE;
	for (; needs; needs &= needs - 1) {
		lack->rank = __builtin_ctzll(needs);
		if (!t3_reached(soft_epoch(plan, lack->rank),
				soft_epoch(plan, own)))
			return true;
	}
	return false;
}

static void watchdog_bites(struct soft_member *m, struct soft_plan *plan)
{
	struct soft_cause cause = {
		.error = ETIMEDOUT,
		.why = SOFT_WHY_STUCK,
		.rank = m->m.rank,
		.slot = plan->p.slot,
		.block = T3_NONE,
	};
	struct t3_lack lack;

	if (lacks(plan, m->m.rank, &lack)) {
		cause.rank = lack.rank;
		cause.block = lack.block;
		cause.why = lack.block == T3_NONE ? SOFT_WHY_UNARMED :
						    SOFT_WHY_BLOCK;
	}
	soft_break(m, &cause);
}

/* Under m->check. */
static void watchdog(struct soft_member *m, struct soft_plan *plan)
{
	u32 epoch = soft_epoch(plan, m->m.rank);
	u64 now = t3_now();
	u32 sum = 0;
	u32 r;

	for (r = 0; r < m->m.ranks; r++)
		sum += t3_load(&plan->share[r]->progress) +
		       t3_load(&plan->share[r]->retired);
	if (!plan->watch_since || sum != plan->watch_sum ||
	    epoch != plan->watch_epoch) {
		plan->watch_sum = sum;
		plan->watch_epoch = epoch;
		plan->watch_since = now;
	} else if (now - plan->watch_since >
		   m->m.options.watchdog_ms * 1000000ULL) {
		watchdog_bites(m, plan);
	}
}

static void check_plan(struct soft_member *m, struct soft_plan *plan)
{
	u32 r;

	for (r = 0; r < m->m.ranks; r++) {
		u32 why = soft_gone(m, r);

		if (unlikely(why) && check_gone(m, plan, r, why))
			return;
	}
	if (soft_armed(plan, m->m.rank))
		watchdog(m, plan);
	else
		plan->watch_since = 0;
}

void soft_check(struct soft_member *m)
{
	u64 live = t3_load_acquire(&m->live);

	if (soft_is_broken(m)) {
		spread(m);
		return;
	}
	/* One look at a time is enough. */
	if (pthread_mutex_trylock(&m->check))
		return;
	for (; live && !soft_is_broken(m); live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(m, slot);

		if (!plan)
			continue;
		check_plan(m, plan);
		soft_plan_put(m, slot);
	}
	pthread_mutex_unlock(&m->check);
}
