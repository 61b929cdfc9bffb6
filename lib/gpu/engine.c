// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gpu engine's table.
 */
#include "gpu.h"

static int group_is(int fd, uint32_t *ranks)
{
	char why[256];
	int ret = soft_group_is(fd, SOFT_MAGIC_GPU, ranks);

	/* A group that was passed: nobody has asked for the plug-in yet. */
	if (!ret && gpu_probe(why, sizeof(why)))
		ret = t3_fail(ENOTTY, "descriptor %d: a group of the gpu engine, which is not here: %s",
			      fd, why);
	return ret;
}

const struct t3_engine_ops t3_gpu_engine = {
	.id = T3_ENGINE_GPU,
	.name = "gpu",
	.member_bytes = sizeof(struct gpu_member),
	.region_bytes = sizeof(struct soft_region),
	.plan_bytes = sizeof(struct gpu_plan),
	.probe = gpu_probe,
	.group_create = soft_group_create,
	.group_is = group_is,
	.join = gpu_join,
	.leave = gpu_leave,
	.abort = soft_abort,
	.alloc = gpu_alloc,
	.free = gpu_free,
	.region_add = gpu_region_add,
	.region_del = soft_region_del,
	.plan_add = soft_plan_add,
	.plan_del = gpu_plan_del,
	.arm = gpu_arm,
	.tiles = gpu_tiles,
	.wait = gpu_wait,
	.wait_block = gpu_wait_block,
	.arm_stream = gpu_arm_stream,
	.wait_stream = gpu_wait_stream,
	.produced_tiles = gpu_produced_tiles,
	.stream_of = gpu_stream_of,
	.tiles_of = gpu_tiles_of,
};
