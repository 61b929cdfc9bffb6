// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the watchdog: no epoch stays armed for ever.
 *
 * It measures from the last progress of a plan: an arm, a tile, an update. An
 * epoch that needs a rank which has left without arming it cannot retire; it
 * runs on as far as it can, and where that is nowhere any more it is ended
 * soon, with the rank that left as the cause.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/jiffies.h>

#include "t3.h"

#define DOOMED_MS	1000	/* every survivor knows within 2 s */
#define TICK_MS		200

/*
 * A rank that armed @rank's epoch needs, that has left and will not arm it; or
 * T3_NONE.
 */
static u32 doomed_by(const struct t3_plan *plan, u32 rank)
{
	const struct t3_machine *m = &plan->machine;
	u32 epoch = t3_machine_armed(m, rank);
	u64 gone = READ_ONCE(plan->group->left) & plan->graph.needs[rank];

	while (gone) {
		u32 r = __ffs64(gone);

		if (!t3_reached(t3_machine_armed(m, r), epoch))
			return r;
		gone &= gone - 1;
	}
	return T3_NONE;
}

/* Tiles of the armed epoch that a part's counters show. */
static u64 tiles_counted(const struct t3_part *part, u32 epoch)
{
	const struct t3_plan_block *block = part->prog.block;
	const u32 *tiles = part->tiles.addr;
	u64 sum = 0;
	u32 b;

	for (b = 0; b < part->prog.blocks; b++) {
		u32 n, most = block[b].tiles;

		if (!(block[b].flags & T3_BLOCK_PRODUCED))
			continue;
		n = READ_ONCE(tiles[b]) - (epoch - 1) * most;
		sum += n <= most ? n : 0;
		if (!(b & 1023))
			cond_resched();
	}
	return sum;
}

/*
 * Were tiles counted in the mapping, which nobody has told us of? The user can
 * write anything there: only more tiles than ever in this epoch are progress,
 * and so there is an end to it.
 */
static bool tiles_moved(struct t3_part *part)
{
	u32 epoch = t3_machine_armed(&part->plan->machine, part->rank);
	u64 sum = tiles_counted(part, epoch);

	if (epoch != part->tiles_epoch) {
		part->tiles_epoch = epoch;
		part->tiles_most = 0;
	}
	if (sum <= part->tiles_most)
		return false;
	part->tiles_most = sum;
	return true;
}

static void plan_expired(struct t3_plan *plan, u32 rank, u32 doomed)
{
	struct t3_lack lack = { .rank = rank, .block = T3_NONE };

	if (doomed != T3_NONE) {
		t3_group_break(plan->group, t3_cause(EOWNERDEAD, doomed,
						     plan->slot, T3_NONE));
		return;
	}
	t3_machine_lacks(&plan->machine, rank, &lack);
	t3_group_break(plan->group, t3_cause(ETIMEDOUT, lack.rank, plan->slot,
					     lack.block));
}

/* Return: something is armed. */
static bool watch_plan(struct t3_plan *plan)
{
	u32 limit, doomed, r, ms = READ_ONCE(plan->group->watchdog_ms);
	bool armed = false;

	for (r = 0; r < plan->group->ranks; r++) {
		if (!t3_plan_armed(plan, r))
			continue;
		if (tiles_moved(plan->part[r]))
			WRITE_ONCE(plan->progress, jiffies);
		armed = true;
		doomed = doomed_by(plan, r);
		limit = doomed == T3_NONE ? ms : min_t(u32, ms, DOOMED_MS);
		if (time_after(jiffies, READ_ONCE(plan->progress) +
					msecs_to_jiffies(limit)))
			plan_expired(plan, r, doomed);
	}
	return armed;
}

static void again(struct t3_group *group)
{
	u32 ms = clamp(READ_ONCE(group->watchdog_ms) / 4, 1U, (u32)TICK_MS);

	queue_delayed_work(t3_wq, &group->watchdog, msecs_to_jiffies(ms));
}

/* Some member has not left for as long as this is pending or runs. */
void t3_watchdog(struct work_struct *work)
{
	struct t3_group *group =
		container_of(work, struct t3_group, watchdog.work);
	struct t3_plan *plan[T3_MAX_PLANS];
	bool armed = false;
	u32 i, n;

	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		armed |= watch_plan(plan[i]);
		t3_plan_put(plan[i]);
	}
	if (armed && !READ_ONCE(group->broken))
		again(group);
}

/**
 * t3_watchdog_start - something was armed
 * @group: the caller is a member that has not left
 *
 * Pending already is enough; running already is not lost, since then it is
 * queued once more.
 *
 * Context: any.
 */
void t3_watchdog_start(struct t3_group *group)
{
	again(group);
}
