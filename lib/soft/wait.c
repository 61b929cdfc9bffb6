// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Arming, reporting and waiting. Whoever waits runs the rank's triggers; with
 * none to run it spins a little, then sleeps at the rank's bell.
 */
#include <sched.h>

#include "soft.h"

#define SLICE_NS	50000000	/* longest sleep between looks around */
#define SPIN_LEAST_NS	4000
#define SPIN_MOST_NS	100000
#define YIELDS		16		/* where ranks share processors */

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Pairs with soft_ring(): we add to @sleepers, then look; who rings has made
 * its work visible, then looks at @sleepers.
 */
void soft_sleep(struct soft_member *m, u32 *sleepers, soft_done_fn done,
		void *arg, u64 ns)
{
	u32 *word = &m->slot->bell;
	u32 bell;

	t3_add32(sleepers, 1);
	bell = t3_load_acquire(word);
	t3_fence();
	if (!done(arg) && (soft_is_broken(m) || !soft_any_ready(m)))
		soft_futex_wait(word, bell, ns);
	t3_add32(sleepers, (u32)-1);
}

bool soft_spin(struct soft_member *m, soft_done_fn done, void *arg)
{
	u32 spin_ns = t3_load(&m->spin);
	bool crowded = t3_load(&m->crowded);
	u64 end = t3_now() + spin_ns;
	u32 round = 0;

	for (;;) {
		if (done(arg) || soft_any_ready(m) || soft_is_broken(m)) {
			if (!crowded && spin_ns < SPIN_MOST_NS)
				t3_store(&m->spin, spin_ns * 2);
			return true;
		}
		if (crowded) {
			if (round++ == YIELDS)
				return false;
			sched_yield();
		} else if (!(++round % 16) && t3_now() >= end) {
			break;
		}
		pause_cpu();
	}
	if (spin_ns > SPIN_LEAST_NS)
		t3_store(&m->spin, spin_ns / 2);
	return false;
}

int soft_until(struct soft_member *m, soft_done_fn done, void *arg,
	       u32 timeout_ms)
{
	u64 deadline = t3_deadline(timeout_ms);
	u32 round = 0;

	for (;;) {
		u32 ran = soft_run(m);
		u64 now;

		if (done(arg))
			return 0;
		if (soft_is_broken(m))
			return -EOWNERDEAD;
		/* A queue that a stranger fills may not hold us for ever. */
		if (++round % 64 && (ran || (timeout_ms &&
					     soft_spin(m, done, arg))))
			continue;
		now = t3_now();
		if (now >= deadline)
			return -ETIME;
		soft_sleep(m, &m->slot->waiters, done, arg,
			   deadline - now < SLICE_NS ? deadline - now :
						       SLICE_NS);
		soft_check(m);
	}
}

/* Who of those that an epoch needs can't take part any more? */
int soft_check_needed(struct soft_member *m, struct soft_plan *plan)
{
	u64 needs = plan->graph.needs[m->m.rank];
	u64 word = soft_plan_word(plan, SOFT_ATTACHED);

	for (; needs; needs &= needs - 1) {
		u32 rank = __builtin_ctzll(needs);
		struct soft_slot *slot = soft_slot_of(m, rank);

		if (likely(!soft_gone(m, rank) &&
			   t3_load_acquire(&slot->part[plan->p.slot].word) ==
			   word))
			continue;
		/* It may have died with an epoch armed. */
		soft_check(m);
		if (soft_is_broken(m))
			return soft_fail_broken(m);
		return t3_fail(EPIPE, "t3_arm: rank %u (process %u), which the epoch needs, %s",
			       rank, t3_load(&slot->pid),
			       soft_gone(m, rank) ? "has left the group" :
						    "has deleted the plan");
	}
	return 0;
}

/* Another plan of ours that is armed and writes the same bytes? */
static int check_conflicts(struct soft_member *m, struct soft_plan *plan)
{
	u64 others = t3_load_acquire(&plan->conflicts);

	for (; others; others &= others - 1) {
		u32 slot = __builtin_ctzll(others);
		struct soft_plan *other = soft_plan_get(m, slot);
		bool armed;

		if (!other)
			continue;
		armed = soft_armed(other, m->m.rank);
		soft_plan_put(m, slot);
		if (armed)
			return t3_fail(EBUSY, "t3_arm: plan %u, which writes some of the same bytes as plan %u, is armed",
				       slot, plan->p.slot);
	}
	return 0;
}

static int arm_failed(struct soft_member *m, struct soft_plan *plan, int ret,
		      u32 block)
{
	switch (ret) {
	case -EBUSY:
		return t3_fail(EBUSY, "t3_arm: epoch %u of plan %u has not retired",
			       t3_machine_armed(&plan->machine, m->m.rank),
			       plan->p.slot);
	case -EPROTO:
		return t3_fail(EPROTO, "t3_arm: block %u of rank %u has early or excess tiles",
			       block, m->m.rank);
	default:
		return soft_fail_broken(m);
	}
}

int soft_arm(struct t3_plan *p)
{
	struct soft_member *m = soft_member(p->member);
	struct soft_plan *plan = soft_plan(p);
	u32 epoch, block;
	int ret;

	if (soft_is_foreign(m))
		return soft_foreign();
	if (soft_is_broken(m))
		return soft_fail_broken(m);
	ret = soft_check_needed(m, plan);
	if (!ret && unlikely(plan->conflicts))
		ret = check_conflicts(m, plan);
	if (ret)
		return ret;
	ret = t3_machine_arm(&plan->machine, m->m.rank, &epoch, &block);
	if (ret)
		return arm_failed(m, plan, ret, block);
	p->epoch = epoch;
	soft_progress(plan);
	soft_watch_wake(m);
	return 0;
}

static int tiles_failed(struct soft_member *m, struct soft_plan *plan, int ret,
			const struct t3_tiles *tiles)
{
	if (ret == -EINVAL)
		return t3_fail(EINVAL, "block %u of rank %u is not produced by tiles",
			       tiles->block, m->m.rank);
	if (!soft_armed(plan, m->m.rank))
		return t3_fail(EPROTO, "block %u of rank %u: no epoch of plan %u is armed",
			       tiles->block, m->m.rank, plan->p.slot);
	return t3_fail(EPROTO, "block %u of rank %u: %u tiles more than its %u in an epoch",
		       tiles->block, m->m.rank, tiles->tiles,
		       plan->graph.tiles[plan->graph.first_block[m->m.rank] +
					 tiles->block]);
}

int soft_tiles(struct t3_plan *p, const struct t3_tiles *tiles, uint32_t n)
{
	struct soft_member *m = soft_member(p->member);
	struct soft_plan *plan = soft_plan(p);
	int ret = 0;
	u32 i;

	if (soft_is_foreign(m))
		return soft_foreign();
	for (i = 0; i < n && !ret; i++) {
		ret = t3_machine_tiles(&plan->machine, m->m.rank,
				       tiles[i].block, tiles[i].tiles);
		if (ret && !soft_is_broken(m))
			ret = tiles_failed(m, plan, ret, &tiles[i]);
	}
	if (soft_is_broken(m))
		return soft_fail_broken(m);
	soft_progress(plan);
	/* Workers have been rung; without them nobody else would run it. */
	if (!m->workers)
		soft_run(m);
	return ret;
}

static bool has_retired(void *arg)
{
	struct soft_plan *plan = arg;

	return t3_machine_retired(&plan->machine, plan->p.member->rank,
				  plan->p.epoch) == 1;
}

/* It broke: but for what ended before. */
static int wait_broken(struct soft_member *m, struct soft_plan *plan,
		       soft_done_fn done, void *arg)
{
	/* From here on nothing retires, whoever sets the bit. */
	t3_machine_break(&plan->machine);
	return done(arg) ? 0 : soft_fail_broken(m);
}

static int wait_timed_out(struct soft_member *m, struct soft_plan *plan,
			  u32 timeout_ms)
{
	struct t3_lack lack;

	if (!t3_machine_lacks(&plan->machine, m->m.rank, &lack))
		return t3_fail(ETIME, "epoch %u of plan %u has not ended in %u ms",
			       plan->p.epoch, plan->p.slot, timeout_ms);
	if (lack.block == T3_NONE)
		return t3_fail(ETIME, "epoch %u of plan %u has not ended in %u ms: rank %u has not armed it",
			       plan->p.epoch, plan->p.slot, timeout_ms,
			       lack.rank);
	return t3_fail(ETIME, "epoch %u of plan %u has not ended in %u ms: block %u of rank %u has %u of %u updates",
		       plan->p.epoch, plan->p.slot, timeout_ms, lack.block,
		       lack.rank, lack.have, lack.need);
}

static int wait_until(struct soft_plan *plan, soft_done_fn done, void *arg,
		      u32 timeout_ms)
{
	struct soft_member *m = soft_member(plan->p.member);
	int ret;

	if (soft_is_foreign(m))
		return soft_foreign();
	ret = soft_until(m, done, arg, timeout_ms);
	if (ret == -EOWNERDEAD)
		return wait_broken(m, plan, done, arg);
	if (ret)
		return wait_timed_out(m, plan, timeout_ms);
	return 0;
}

int soft_wait(struct t3_plan *p, uint32_t timeout_ms)
{
	struct soft_plan *plan = soft_plan(p);

	return wait_until(plan, has_retired, plan, timeout_ms);
}

struct block_wait {
	struct soft_plan *plan;
	u32 block;
	u32 updates;
};

static bool has_updates(void *arg)
{
	struct block_wait *w = arg;
	u32 *count = w->plan->machine.count[w->plan->p.member->rank];

	return t3_reached(t3_load_acquire(&count[w->block]), w->updates);
}

int soft_wait_block(struct t3_plan *p, uint32_t block, uint32_t updates,
		    uint32_t timeout_ms)
{
	struct block_wait w = {
		.plan = soft_plan(p),
		.block = block,
		.updates = updates,
	};

	return wait_until(w.plan, has_updates, &w, timeout_ms);
}
