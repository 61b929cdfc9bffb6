// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Members, and memory that the kernel engine takes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

#define HUGE_PAGE	(2UL << 20)

uint32_t kernel_forks;

static void count_fork(void)
{
	kernel_forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

int kernel_join(struct t3_member *member, int fd)
{
	struct t3_group_join join = {
		.size = sizeof(join),
		.rank = member->rank,
	};
	struct t3_group_info info = { .size = sizeof(info) };
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret;

	pthread_once(&once, watch_forks);
	ret = kernel_call(fd, T3_GROUP_JOIN, &join);
	if (ret == -EEXIST)
		return t3_fail(EEXIST, "t3_join: rank is %u, which is or was taken",
			       member->rank);
	if (ret && kernel_is_broken(-ret) &&
	    !kernel_call(fd, T3_GROUP_INFO, &info))
		return t3_fail_broken("t3_join", (uint32_t)-ret,
				      info.broken_rank);
	if (ret)
		return t3_fail(-ret, "t3_join: the kernel refused: %s",
			       strerror(-ret));
	((struct kernel_member *)member)->fd = join.out_fd;
	((struct kernel_member *)member)->forks = kernel_forks;
	kernel_uring_choose((struct kernel_member *)member);
	return 0;
}

/* What the front could not delete before: an armed plan, and its regions. */
static void unmap_plans(struct t3_member *member)
{
	uint32_t slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++)
		if (member->plan[slot])
			kernel_plan_unmap(kernel_plan(member->plan[slot]));
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

int kernel_leave(struct t3_member *member, bool armed)
{
	const struct t3_memory *memory;

	/* Mappings hold the file; without them closing it is leaving. */
	(void)armed;
	if (!kernel_is_foreign(member))
		unmap_plans(member);
	close(kernel_fd(member));
	for (memory = member->memory; memory; memory = memory->next)
		munmap(memory->base, whole_pages(memory->bytes));
	return 0;
}

int kernel_abort(struct t3_member *member)
{
	struct t3_group_abort abort = { .size = sizeof(abort) };
	int ret = kernel_call(kernel_fd(member), T3_GROUP_ABORT, &abort);

	if (ret == -EALREADY)
		return t3_fail(EALREADY, "t3_abort: the group has broken before");
	return ret ? kernel_fail(member, "t3_abort", -ret) : 0;
}

int kernel_alloc(struct t3_member *member, size_t bytes, void **memory)
{
	size_t length = whole_pages(bytes);
	void *base;

	(void)member;
	base = mmap(NULL, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return t3_fail(ENOMEM, "t3_alloc: bytes is %zu: %s", bytes,
			       strerror(errno));
	/* Fewer pages to pin and to walk; it does not matter where it fails. */
	if (length >= HUGE_PAGE)
		madvise(base, length, MADV_HUGEPAGE);
	*memory = base;
	return 0;
}

int kernel_free(struct t3_member *member, void *memory)
{
	munmap(memory, whole_pages(t3_memory_bytes(member, memory)));
	return 0;
}
