// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the sentence that says why a group broke and what was missing.
 */
#include "t3.h"

/* Not snprintf(): what does not fit is cut, and @at never passes the end. */
#define say(...) (at += scnprintf(buf + at, size - at, __VA_ARGS__))

static const char *what(u64 cause)
{
	if (cause & T3_CAUSE_FENCE)
		return "gave a fence that failed";
	switch (t3_cause_error(cause)) {
	case EOWNERDEAD:
		return "died or left while an armed epoch needed it";
	case ECANCELED:
		return "aborted it";
	case ETIMEDOUT:
		return "made no progress for as long as the watchdog waits";
	case ESTALE:
		return "unmapped or replaced memory of an armed epoch";
	default:
		return "had an engine fail";
	}
}

static size_t say_plan(const struct t3_plan *plan, char *buf, size_t size)
{
	struct t3_lack lack;
	size_t at = 0;
	u64 seen = 0;
	u32 r;

	for (r = 0; r < plan->group->ranks; r++) {
		if (!t3_plan_armed(plan, r) ||
		    !t3_machine_lacks(&plan->machine, r, &lack))
			continue;
		/* What several ranks wait for is said once. */
		if (lack.rank >= T3_MAX_RANKS || seen & BIT_ULL(lack.rank))
			continue;
		seen |= BIT_ULL(lack.rank);
		if (lack.block == T3_NONE)
			say("; slot %u: rank %u waits for rank %u, which has not armed",
			    plan->slot, r, lack.rank);
		else
			say("; slot %u: rank %u waits for rank %u's block %u, which has %u of %u updates",
			    plan->slot, r, lack.rank, lack.block, lack.have,
			    lack.need);
	}
	return at;
}

/**
 * t3_broken_say - one sentence on a group that broke
 * @group: the group
 * @cause: t3_cause()
 * @buf: out
 * @size: its bytes
 *
 * Names the rank that is the cause, the ranks that had not armed and the
 * blocks that lacked updates.
 *
 * Context: may sleep.
 */
void t3_broken_say(struct t3_group *group, u64 cause, char *buf, size_t size)
{
	struct t3_plan *plan[T3_MAX_PLANS];
	size_t at = 0;
	u32 i, n;

	say("group %u broke: ", group->id);
	if (t3_cause_rank(cause) != T3_NONE)
		say("rank %u ", t3_cause_rank(cause));
	else
		say("somebody ");
	say("%s (errno %u)", what(cause), t3_cause_error(cause));

	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		at += say_plan(plan[i], buf + at, size - at);
		t3_plan_put(plan[i]);
	}
}
