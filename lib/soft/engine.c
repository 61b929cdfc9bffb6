// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The soft engine's table.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft.h"

static int soft_probe(char *why, size_t bytes)
{
	int fd = memfd_create("t3-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0) {
		snprintf(why, bytes, "memfd_create: %s", strerror(errno));
		return -ENODEV;
	}
	close(fd);
	snprintf(why, bytes, "threads and processes over shared memory");
	return 0;
}

static int group_is(int fd, uint32_t *ranks)
{
	return soft_group_is(fd, SOFT_MAGIC, ranks);
}

const struct t3_engine_ops t3_soft_engine = {
	.id = T3_ENGINE_SOFT,
	.name = "soft",
	.member_bytes = sizeof(struct soft_member),
	.region_bytes = sizeof(struct soft_region),
	.plan_bytes = sizeof(struct soft_plan),
	.probe = soft_probe,
	.group_create = soft_group_create,
	.group_is = group_is,
	.join = soft_join,
	.leave = soft_leave,
	.abort = soft_abort,
	.alloc = soft_alloc,
	.free = soft_free,
	.region_add = soft_region_add,
	.region_del = soft_region_del,
	.plan_add = soft_plan_add,
	.plan_del = soft_plan_del,
	.arm = soft_arm,
	.tiles = soft_tiles,
	.wait = soft_wait,
	.wait_block = soft_wait_block,
};
