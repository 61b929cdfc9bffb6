// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The kernel engine's table, its commands and their sentences.
 */
#include <sys/ioctl.h>

#include "kernel.h"

int kernel_call(int fd, unsigned long command, void *argument)
{
	int ret;

	do {
		ret = ioctl(fd, command, argument);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

bool kernel_is_broken(int error)
{
	return error == EOWNERDEAD || error == ECANCELED ||
	       error == ETIMEDOUT || error == ESTALE || error == EIO;
}

int kernel_fail(const struct t3_member *member, const char *call, int error)
{
	struct t3_group_info info = { .size = sizeof(info) };

	if (error == EPERM)
		return t3_fail(error,
			       "%s: the member belongs to the process that joined, not to its child",
			       call);
	/* A fence may break a group with any error. */
	if (!kernel_call(kernel_fd(member), T3_GROUP_INFO, &info) &&
	    info.broken == (uint32_t)error) {
		if (error == ETIMEDOUT && info.broken_block != T3_NONE)
			return t3_fail(error,
				       "%s: the group broke: no progress for %u ms: rank %u, slot %u, block %u",
				       call, info.watchdog_ms, info.broken_rank,
				       info.broken_slot, info.broken_block);
		return t3_fail_broken(call, (uint32_t)error, info.broken_rank);
	}
	return t3_fail(error, "%s: the kernel refused: %s", call,
		       strerror(error));
}

const struct t3_engine_ops t3_kernel_engine = {
	.id = T3_ENGINE_KERNEL,
	.name = "kernel",
	.member_bytes = sizeof(struct kernel_member),
	.region_bytes = sizeof(struct kernel_region),
	.plan_bytes = sizeof(struct kernel_plan),
	.dmabufs = true,
	.probe = kernel_probe,
	.group_create = kernel_group_create,
	.group_is = kernel_group_is,
	.join = kernel_join,
	.leave = kernel_leave,
	.abort = kernel_abort,
	.alloc = kernel_alloc,
	.free = kernel_free,
	.region_add = kernel_region_add,
	.region_del = kernel_region_del,
	.plan_add = kernel_plan_add,
	.plan_del = kernel_plan_del,
	.arm = kernel_arm,
	.tiles = kernel_tiles,
	.wait = kernel_wait,
	.wait_block = kernel_wait_block,
	.uring_why = kernel_uring_why,
};
