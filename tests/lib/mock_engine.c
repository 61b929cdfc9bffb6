// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The mock engine. A group is a memfd whose first bytes say so.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock_engine.h"

struct mock mock;

static const char magic[] = "mock group";

struct head {
	char magic[sizeof(magic)];
	uint32_t ranks;
};

/* One more call; negative where it is to fail. */
static int called(const char *what)
{
	int error = mock.fail;

	mock.calls++;
	mock.fail = 0;
	return error ? t3_fail(error, "mock: %s fails", what) : 0;
}

static int mock_probe(char *why, size_t bytes)
{
	snprintf(why, bytes, "soft: %s", mock.absent ? "absent" : "mocked");
	return mock.absent ? -ENODEV : 0;
}

static int mock_group_create(struct t3_group *group)
{
	struct head head = { .ranks = group->ranks };
	int ret = called("group_create");

	if (ret)
		return ret;
	mock.watchdog_ms = group->options.watchdog_ms;
	memcpy(head.magic, magic, sizeof(magic));
	group->fd = memfd_create("mock", MFD_CLOEXEC);
	if (group->fd < 0 || write(group->fd, &head, sizeof(head)) < 0)
		abort();
	return 0;
}

static int mock_group_is(int fd, uint32_t *ranks)
{
	struct head head = { .ranks = 0 };

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.magic, magic, sizeof(magic)))
		return -ENOTTY;
	*ranks = head.ranks;
	return head.ranks == T3_NONE ? -EPROTO : 0;
}

static int mock_join(struct t3_member *member, int fd)
{
	(void)member;
	(void)fd;
	return called("join");
}

static int mock_leave(struct t3_member *member, bool armed)
{
	const struct t3_region *region;
	uint32_t slot;

	mock.left = armed ? 2 : 1;
	mock.seen_plans = 0;
	mock.seen_regions = 0;
	for (slot = 0; slot < T3_MAX_PLANS; slot++)
		mock.seen_plans += !!member->plan[slot];
	for (region = member->regions; region; region = region->next)
		mock.seen_regions++;
	while (member->memory) {
		struct t3_memory *memory = member->memory;

		member->memory = memory->next;
		free(memory->base);
		free(memory);
	}
	return called("leave");
}

static int mock_abort(struct t3_member *member)
{
	(void)member;
	return called("abort");
}

static int mock_alloc(struct t3_member *member, size_t bytes, void **memory)
{
	int ret = called("alloc");

	(void)member;
	if (!ret)
		*memory = calloc(1, bytes);
	return ret;
}

static int mock_free(struct t3_member *member, void *memory)
{
	int ret = called("free");

	(void)member;
	if (!ret)
		free(memory);
	return ret;
}

static int mock_region_add(struct t3_region *region)
{
	(void)region;
	return called("region_add");
}

static void mock_region_del(struct t3_region *region)
{
	(void)region;
	called("region_del");
}

static int mock_plan_add(struct t3_plan *plan, struct t3_verdict *verdict)
{
	(void)verdict;
	plan->submitted = mock.submitted;
	return called("plan_add");
}

static int mock_plan_del(struct t3_plan *plan)
{
	(void)plan;
	if (mock.armed)
		return t3_fail(EBUSY, "mock: armed");
	return called("plan_del");
}

static int mock_arm(struct t3_plan *plan)
{
	int ret = called("arm");

	if (!ret)
		plan->epoch++;
	return ret;
}

static int mock_tiles(struct t3_plan *plan, const struct t3_tiles *tiles,
		      uint32_t n)
{
	(void)plan;
	mock.tiles += n;
	mock.last = tiles[n - 1];
	return called("tiles");
}

static int mock_wait(struct t3_plan *plan, uint32_t timeout_ms)
{
	(void)plan;
	(void)timeout_ms;
	return called("wait");
}

static int mock_wait_block(struct t3_plan *plan, uint32_t block,
			   uint32_t updates, uint32_t timeout_ms)
{
	(void)plan;
	(void)block;
	(void)timeout_ms;
	mock.updates = updates;
	return called("wait_block");
}

const struct t3_engine_ops t3_soft_engine = {
	.id = T3_ENGINE_SOFT,
	.name = "soft",
	.member_bytes = sizeof(struct t3_member),
	.region_bytes = sizeof(struct t3_region),
	.plan_bytes = sizeof(struct t3_plan),
	.probe = mock_probe,
	.group_create = mock_group_create,
	.group_is = mock_group_is,
	.join = mock_join,
	.leave = mock_leave,
	.abort = mock_abort,
	.alloc = mock_alloc,
	.free = mock_free,
	.region_add = mock_region_add,
	.region_del = mock_region_del,
	.plan_add = mock_plan_add,
	.plan_del = mock_plan_del,
	.arm = mock_arm,
	.tiles = mock_tiles,
	.wait = mock_wait,
	.wait_block = mock_wait_block,
};

/* Where there is no plug-in. */
static int no_gpu_probe(char *why, size_t bytes)
{
	snprintf(why, bytes, "gpu: no plug-in");
	return -ENODEV;
}

static int no_gpu_group_is(int fd, uint32_t *ranks)
{
	(void)fd;
	(void)ranks;
	return -ENOTTY;
}

const struct t3_engine_ops t3_gpu_engine = {
	.id = T3_ENGINE_GPU,
	.name = "gpu",
	.probe = no_gpu_probe,
	.group_is = no_gpu_group_is,
};
