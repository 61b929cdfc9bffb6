// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Running a plan: arm, produce, wait.
 */
#include "front.h"

/* Entries that one call of an engine is given. */
#define BATCH	64

uint32_t t3_epoch(const struct t3_plan *plan)
{
	return plan ? plan->epoch : 0;
}

int t3_arm(struct t3_plan *plan)
{
	int ret;

	if (!plan)
		return t3_fail_null(__func__, "plan");
	ret = plan->member->ops->arm(plan);
	if (!ret)
		plan->armed = true;
	return ret;
}

static int check_armed(const char *call, const struct t3_plan *plan)
{
	if (!plan)
		return t3_fail_null(call, "plan");
	/* Not @epoch: that is 0 again after 2^32 epochs. */
	if (!plan->armed)
		return t3_fail(EPROTO, "%s: no epoch was armed", call);
	return 0;
}

/* Report @n steps from @step on. */
static int produce(struct t3_plan *plan, uint32_t step, uint32_t n)
{
	const struct t3_planned *planned = &plan->planned;
	struct t3_tiles tiles[BATCH];
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t block = planned->step[step + i];

		tiles[i].block = block;
		tiles[i].tiles = planned->program.block[block].tiles;
	}
	return plan->member->ops->tiles(plan, tiles, n);
}

int t3_produced(struct t3_plan *plan, uint32_t step)
{
	int ret = check_armed(__func__, plan);

	if (ret)
		return ret;
	if (step >= plan->planned.steps)
		return t3_fail(ERANGE, "%s: step is %u, the plan has %u here",
			       __func__, step, plan->planned.steps);
	return produce(plan, step, 1);
}

int t3_produced_all(struct t3_plan *plan)
{
	int ret = check_armed(__func__, plan);
	uint32_t step = 0;

	while (!ret && step < plan->planned.steps) {
		uint32_t n = plan->planned.steps - step;

		n = n < BATCH ? n : BATCH;
		ret = produce(plan, step, n);
		step += n;
	}
	return ret;
}

int t3_tile_done(struct t3_plan *plan, uint32_t block, uint32_t tiles)
{
	struct t3_tiles entry = { .block = block, .tiles = tiles };
	int ret = check_armed(__func__, plan);
	uint32_t blocks;

	if (ret)
		return ret;
	blocks = plan->planned.program.blocks;
	if (block >= blocks)
		return t3_fail_range(__func__, "block", block, 0, blocks - 1);
	if (!tiles || tiles > T3_MAX_TILES)
		return t3_fail_range(__func__, "tiles", tiles, 1, T3_MAX_TILES);
	if (!plan->planned.program.block[block].tiles)
		return t3_fail(EINVAL,
			       "%s: block is %u, which rank %u does not produce",
			       __func__, block, plan->member->rank);
	return plan->member->ops->tiles(plan, &entry, 1);
}

static int check_timeout(const char *call, uint32_t timeout_ms)
{
	if (timeout_ms > T3_TIMEOUT_MAX)
		return t3_fail_range(call, "timeout_ms", timeout_ms, 0,
				     T3_TIMEOUT_MAX);
	return 0;
}

int t3_wait(struct t3_plan *plan, uint32_t timeout_ms)
{
	int ret = check_armed(__func__, plan);

	if (!ret)
		ret = check_timeout(__func__, timeout_ms);
	if (ret)
		return ret;
	return plan->member->ops->wait(plan, timeout_ms);
}

int t3_wait_block(struct t3_plan *plan, uint32_t block, uint32_t timeout_ms)
{
	int ret = check_armed(__func__, plan);
	uint32_t blocks;

	if (!ret)
		ret = check_timeout(__func__, timeout_ms);
	if (ret)
		return ret;
	blocks = plan->planned.program.blocks;
	if (block >= blocks)
		return t3_fail_range(__func__, "block", block, 0, blocks - 1);
	/* Counters run on and may wrap, so does the product. */
	return plan->member->ops->wait_block(plan, block, plan->epoch *
					     plan->planned.updates[block],
					     timeout_ms);
}
