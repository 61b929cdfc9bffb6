// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Running a plan on a GPU's stream: the same steps, queued.
 */
#include "front.h"

static int check_streams(const char *call, const struct t3_plan *plan)
{
	if (!plan)
		return t3_fail_null(call, "plan");
	if (!plan->member->ops->arm_stream)
		return t3_fail(EOPNOTSUPP, "%s: the %s engine has no streams",
			       call, plan->member->ops->name);
	return 0;
}

static int check_stream(const char *call, struct t3_plan *plan, void *stream)
{
	int ret = check_streams(call, plan);

	if (ret)
		return ret;
	if (!plan->armed)
		return t3_fail(EPROTO, "%s: no epoch was armed", call);
	if (plan->member->ops->stream_of(plan) != stream)
		return t3_fail(EINVAL, "%s: stream is %p, the epoch was armed on %p",
			       call, stream,
			       plan->member->ops->stream_of(plan));
	return 0;
}

int t3_arm_stream(struct t3_plan *plan, void *stream)
{
	int ret = check_streams(__func__, plan);

	if (!ret)
		ret = plan->member->ops->arm_stream(plan, stream);
	if (!ret)
		plan->armed = true;
	return ret;
}

int t3_produced_stream(struct t3_plan *plan, uint32_t step, void *stream)
{
	int ret = check_stream(__func__, plan, stream);

	return ret ? ret : t3_produced(plan, step);
}

int t3_produced_tiles_stream(struct t3_plan *plan, void *stream)
{
	int ret = check_stream(__func__, plan, stream);

	return ret ? ret : plan->member->ops->produced_tiles(plan);
}

int t3_plan_tiles(struct t3_plan *plan, uint32_t **counters)
{
	int ret = check_streams(__func__, plan);

	if (ret)
		return ret;
	if (!counters)
		return t3_fail_null(__func__, "counters");
	*counters = plan->member->ops->tiles_of(plan);
	return 0;
}

int t3_wait_stream(struct t3_plan *plan, void *stream)
{
	int ret = check_stream(__func__, plan, stream);

	return ret ? ret : plan->member->ops->wait_stream(plan, stream);
}
