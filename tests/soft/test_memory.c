// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions in memory that is not from t3_alloc(): of threads, of processes, of
 * a process that unmaps it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "matrix.h"

static const struct shape sums = {
	.op = T3_REDUCE_SCATTER,
	.algorithm = T3_ALG_RING,
	.dtype = T3_DTYPE_F16,
	.rows = 61,
	.cols = 301,
	.gap = 5,
	.block_bytes = 70000,
	.epochs = 5,
	.ordinary = true,
	.wild = true,
};

/* Every other rank has memory from t3_alloc(). */
static int mixed(struct t3_member *member, void *arg)
{
	struct shape shape = *(const struct shape *)arg;

	shape.ordinary = t3_rank(member) % 2;
	return work_all(member, &shape);
}

static void test_kinds(void)
{
	static const uint32_t ops[] = {
		T3_REDUCE_SCATTER, T3_ALL_GATHER, T3_ALL_REDUCE,
	};
	struct shape shape = sums;
	char name[128];
	uint32_t i;

	for (i = 0; i < 6; i++) {
		shape.op = ops[i / 2];
		shape.algorithm = i % 2 ? T3_ALG_DIRECT : T3_ALG_RING;
		shape_name(&shape, name, sizeof(name));
		tap_ok(!run_ranks(false, 3, NULL, work_all, &shape),
		       "%s, threads", name);
		tap_ok(!run_ranks(true, 3, NULL, work_all, &shape),
		       "%s, processes", name);
		tap_ok(!run_ranks(true, 4, NULL, mixed, &shape),
		       "%s, some of each", name);
	}
}

/* What is no memory, or not writable, is refused at once. */
static int refused(struct t3_member *member, void *arg)
{
	size_t bytes = 1 << 20;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct t3_matrix m = {
		.base = memory,
		.rows = 256,
		.cols = 1024,
		.ld = 1024,
		.dtype = T3_DTYPE_F32,
	};
	struct t3_region *region;

	(void)arg;
	RANK_CHECK(member, memory != MAP_FAILED);
	RANK_TRY(member, t3_region_add(member, &m, &region));
	RANK_TRY(member, t3_region_del(region));
	munmap(memory + bytes / 2, 4096);
	RANK_GIVES(member, EFAULT, t3_region_add(member, &m, &region));
	mprotect(memory, bytes / 2, PROT_READ);
	m.rows = 128;
	RANK_GIVES(member, EFAULT, t3_region_add(member, &m, &region));
	m.flags = T3_REGION_READ_ONLY;
	RANK_TRY(member, t3_region_add(member, &m, &region));
	RANK_TRY(member, t3_region_del(region));
	munmap(memory, bytes);
	RANK_GIVES(member, EFAULT, t3_region_add(member, &m, &region));
	return 0;
}

/* As a sandbox does: process_vm_readv() fails. */
static int forbid_reading(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int sandboxed(struct t3_member *member, void *arg)
{
	struct shape shape = sums;
	struct work work;

	(void)arg;
	if (t3_rank(member) == 1)
		RANK_CHECK(member, !forbid_reading());
	if (!work_begin(&work, member, &shape))
		return rank_fails(member, "not refused");
	RANK_CHECK(member, strstr(t3_error(), "t3_alloc()"));
	RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	/* The advice holds. */
	shape.ordinary = false;
	return work_all(member, &shape);
}

/* The half of rank 1's memory that the other reads goes. */
static int unmaps(struct t3_member *member, void *arg)
{
	struct t3_collective collective = {
		.size = sizeof(collective),
		.op = T3_ALL_GATHER,
		.algorithm = T3_ALG_DIRECT,
	};
	size_t bytes = 1 << 20;
	struct t3_matrix m = {
		.rows = 256,
		.cols = 1024,
		.ld = 1024,
		.dtype = T3_DTYPE_F32,
	};
	struct t3_region *region;
	struct t3_plan *plan;
	int ret;

	(void)arg;
	m.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	RANK_CHECK(member, m.base != MAP_FAILED);
	RANK_TRY(member, t3_region_add(member, &m, &region));
	collective.region = region;
	RANK_TRY(member, t3_plan_add(member, &collective, &plan));
	RANK_TRY(member, t3_arm(plan));
	if (t3_rank(member) == 1)
		munmap((char *)m.base + bytes / 2, bytes / 2);
	ret = t3_produced_all(plan);
	RANK_CHECK(member, !ret || ret == -ESTALE);
	RANK_GIVES(member, ESTALE, t3_wait(plan, 10000));
	RANK_CHECK(member, strstr(t3_error(), "rank 1"));
	RANK_TRY(member, t3_plan_del(plan));
	return 0;
}

int main(void)
{
	test_kinds();
	tap_ok(!run_ranks(true, 1, NULL, refused, NULL),
	       "memory that is not there, or not writable");
	tap_ok(!run_ranks(true, 3, NULL, sandboxed, NULL),
	       "where process_vm_readv() is forbidden the plan is refused");
	tap_ok(!run_ranks(true, 2, NULL, unmaps, NULL),
	       "memory unmapped under an epoch");
	return tap_end();
}
