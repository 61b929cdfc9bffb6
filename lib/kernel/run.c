// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Running a plan on the kernel engine.
 *
 * Tiles go by T3_NOTIFY, which counts and carries out in one call; waits look
 * at the mapped status first.
 */
#include "kernel.h"
#include "env.h"

/* t3_wait_block() looks at a count this often at least. */
#define SLICE_NS	1000000

/* The lowest of the ranks that have left; T3_NONE: none has. */
static uint32_t who_left(const struct t3_member *member)
{
	struct t3_group_info info = { .size = sizeof(info) };

	if (kernel_call(kernel_fd(member), T3_GROUP_INFO, &info) || !info.left)
		return T3_NONE;
	return (uint32_t)__builtin_ctzll(info.left);
}

static int fail_arm(const struct t3_plan *plan, int error)
{
	const struct t3_plan_status *status =
		kernel_plan((struct t3_plan *)plan)->status;
	uint32_t left;

	if (kernel_is_foreign(plan->member))
		return kernel_fail(plan->member, "t3_arm", EPERM);
	switch (error) {
	case EBUSY:
		if (t3_load_acquire(&status->retired) !=
		    t3_load_acquire(&status->armed))
			return t3_fail(error, "t3_arm: epoch %u has not retired",
				       plan->epoch);
		return t3_fail(error,
			       "t3_arm: another armed plan of this rank writes the same bytes");
	case EPROTO:
		return t3_fail(error,
			       "t3_arm: early or excess tiles were counted since epoch %u retired",
			       plan->epoch);
	case EPIPE:
		left = who_left(plan->member);
		if (left != T3_NONE)
			return t3_fail(error,
				       "t3_arm: rank %u, which the epoch needs, has left",
				       left);
		return t3_fail(error,
			       "t3_arm: a rank that the epoch needs has deleted the plan");
	case ESTALE:
		if (!t3_load_acquire(&status->broken))
			return t3_fail(error,
				       "t3_arm: a region's memory was unmapped or replaced");
		break;
	}
	return kernel_fail(plan->member, "t3_arm", error);
}

int kernel_arm(struct t3_plan *plan)
{
	struct t3_arm arm = { .size = sizeof(arm), .slot = plan->slot };
	int ret;

	do {
		ret = kernel_issue(plan->member, T3_ARM, &arm);
	} while (ret == -EINTR);
	if (ret)
		return fail_arm(plan, -ret);
	plan->epoch = arm.epoch;
	return 0;
}

static int fail_tiles(const struct t3_plan *plan, int error,
		      const struct t3_tiles *tiles)
{
	switch (error) {
	case EPROTO:
		return t3_fail(error,
			       "t3_produced: block %u: no epoch is armed, or it was reported before and has %u tiles",
			       tiles->block,
			       plan->planned.program.block[tiles->block].tiles);
	case EINVAL:
		return t3_fail(error, "t3_tile_done: block is %u, which is not produced by tiles",
			       tiles->block);
	default:
		return kernel_fail(plan->member, "t3_produced", error);
	}
}

int kernel_tiles(struct t3_plan *plan, const struct t3_tiles *tiles,
		 uint32_t n)
{
	uint32_t at = 0;
	int ret;

	if (!n)
		return 0;
	do {
		struct t3_notify notify = {
			.size = sizeof(notify),
			.slot = plan->slot,
			.entries = n - at,
			.list = (uintptr_t)(tiles + at),
		};

		/* What was taken before a signal must not be counted again. */
		ret = kernel_issue(plan->member, T3_NOTIFY, &notify);
		at += notify.done < n - at ? notify.done : n - at;
	} while (ret == -EINTR && at < n);
	if (!ret || ret == -EINTR)
		return 0;
	return fail_tiles(plan, -ret, &tiles[at < n ? at : n - 1]);
}

static bool has_retired(const struct kernel_plan *plan)
{
	return t3_reached(t3_load_acquire(&plan->status->retired),
			  plan->p.epoch);
}

/* One T3_WAIT; @rank: the one that is the cause. */
static int wait_once(struct t3_plan *plan, uint64_t ns, uint32_t *rank)
{
	struct t3_wait wait = {
		.size = sizeof(wait),
		.slot = plan->slot,
		.epoch = plan->epoch,
		.timeout_ns = ns,
		.rank = T3_NONE,
	};
	int ret = kernel_issue(plan->member, T3_WAIT, &wait);

	*rank = wait.rank;
	return ret;
}

/* @block: the one that was waited for; T3_NONE: the epoch was. */
static int fail_wait(struct t3_plan *plan, int error, uint32_t block,
		     uint32_t rank, uint32_t timeout_ms)
{
	const char *call = block == T3_NONE ? "t3_wait" : "t3_wait_block";

	if (error != ETIME)
		return kernel_fail(plan->member, call, error);
	if (block != T3_NONE)
		return t3_fail(error, "%s: block %u is not final within %u ms",
			       call, block, timeout_ms);
	if (rank == T3_NONE)
		return t3_fail(error, "%s: epoch %u has not retired within %u ms",
			       call, plan->epoch, timeout_ms);
	return t3_fail(error,
		       "%s: epoch %u has not retired within %u ms: rank %u is late",
		       call, plan->epoch, timeout_ms, rank);
}

int kernel_wait(struct t3_plan *plan, uint32_t timeout_ms)
{
	uint64_t deadline = t3_deadline(timeout_ms);
	uint32_t rank;
	int ret;

	if (kernel_is_foreign(plan->member))
		return kernel_fail(plan->member, "t3_wait", EPERM);
	if (has_retired(kernel_plan(plan)))
		return 0;
	do {
		ret = wait_once(plan, t3_time_left(deadline), &rank);
	} while (ret == -EINTR);
	return ret ? fail_wait(plan, -ret, T3_NONE, rank, timeout_ms) : 0;
}

static bool has_updates(const struct kernel_plan *plan, uint32_t block,
			uint32_t updates)
{
	return t3_reached(t3_load_acquire(&plan->count[block]), updates);
}

int kernel_wait_block(struct t3_plan *plan, uint32_t block, uint32_t updates,
		      uint32_t timeout_ms)
{
	uint64_t deadline = t3_deadline(timeout_ms);
	uint32_t rank = T3_NONE;

	if (kernel_is_foreign(plan->member))
		return kernel_fail(plan->member, "t3_wait_block", EPERM);
	while (!has_updates(kernel_plan(plan), block, updates)) {
		uint64_t left = t3_time_left(deadline);
		int ret = wait_once(plan, left < SLICE_NS ? left : SLICE_NS,
				    &rank);

		if (ret && ret != -EINTR && ret != -ETIME)
			return fail_wait(plan, -ret, block, rank, timeout_ms);
		if (!left && !has_updates(kernel_plan(plan), block, updates))
			return fail_wait(plan, ETIME, block, rank, timeout_ms);
	}
	return 0;
}
