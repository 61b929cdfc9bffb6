// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans of the kernel engine: submitted, judged, mapped.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "kernel.h"

#define CALL	"t3_plan_add"
#define NAP_NS	1000000

static void fill_regions(const struct t3_plan *plan,
			 struct t3_plan_region list[2])
{
	const struct t3_program *program = &plan->planned.program;
	uint32_t i;

	for (i = 0; i < plan->regions; i++) {
		const struct t3_grid *grid = &program->grid[i];

		list[i] = (struct t3_plan_region) {
			.region = kernel_region_number(plan->region[i]),
			.block_rows = grid->block_rows,
			.block_cols = grid->block_cols,
			.row_cuts = (uintptr_t)grid->row_cuts,
			.col_cuts = (uintptr_t)grid->col_cuts,
			.blocks = (uintptr_t)(program->block +
					      grid->first_block),
		};
	}
}

static void fill_add(const struct t3_plan *plan, struct t3_plan_add *add,
		     const struct t3_plan_region *list)
{
	const struct t3_program *program = &plan->planned.program;

	*add = (struct t3_plan_add) {
		.size = sizeof(*add),
		.flags = plan->collective.flags,
		.slot = plan->slot,
		.regions = plan->regions,
		.triggers = program->triggers,
		.sources = program->sources,
		.generation = plan->generation,
		.digest = { program->digest[0], program->digest[1] },
		.region_list = (uintptr_t)list,
		.trigger_list = (uintptr_t)program->trigger,
		.source_list = (uintptr_t)program->source,
	};
}

static int fail_submit(struct t3_plan *plan, int error,
		       const struct t3_verdict *found,
		       struct t3_verdict *verdict)
{
	struct t3_group_info info = { .size = sizeof(info) };

	if (error == ESTALE &&
	    !kernel_call(kernel_fd(plan->member), T3_GROUP_INFO, &info) &&
	    !info.broken) {
		/* The others' parts of this generation have come and gone. */
		plan->submitted = true;
		return t3_fail(EPIPE,
			       "%s: the other ranks gave this plan up before this one came",
			       CALL);
	}
	if (found->error != (uint32_t)error)
		return kernel_fail(plan->member, CALL, error);
	*verdict = *found;
	return t3_fail_verdict(CALL, verdict);
}

/* Submit; a peer may be slow to give up its part of the slot's last plan. */
static int submit(struct t3_plan *plan, struct t3_plan_add *add,
		  uint64_t deadline, struct t3_verdict *verdict)
{
	struct t3_plan_region list[2];
	int ret;

	fill_regions(plan, list);
	for (;;) {
		fill_add(plan, add, list);
		ret = kernel_call(kernel_fd(plan->member), T3_PLAN_ADD, add);
		if (ret != -EBUSY)
			break;
		if (!t3_time_left(deadline))
			return t3_fail(ETIME,
				       "%s: not all ranks have deleted the plan that was in slot %u before",
				       CALL, plan->slot);
		t3_sleep(NAP_NS, deadline);
	}
	if (!ret)
		return 0;
	return fail_submit(plan, -ret, &add->verdict, verdict);
}

static int fail_late(const struct t3_plan *plan)
{
	struct t3_group_info info = { .size = sizeof(info) };
	uint32_t r;

	/* Who has not even joined can be named; others just have not come. */
	if (!kernel_call(kernel_fd(plan->member), T3_GROUP_INFO, &info))
		for (r = 0; r < info.ranks && r < T3_MAX_RANKS; r++)
			if (!(info.joined >> r & 1))
				return t3_fail(ETIME,
					       "%s: rank %u has not joined within %u ms",
					       CALL, r,
					       plan->member->options.setup_ms);
	return t3_fail(ETIME, "%s: not all ranks made their part within %u ms",
		       CALL, plan->member->options.setup_ms);
}

static int wait_verdict(const struct t3_plan *plan, uint64_t deadline,
			struct t3_verdict *verdict)
{
	struct t3_plan_wait wait;
	int ret;

	do {
		wait = (struct t3_plan_wait) {
			.size = sizeof(wait),
			.slot = plan->slot,
			.timeout_ns = t3_time_left(deadline),
		};
		ret = ioctl(kernel_fd(plan->member), T3_PLAN_WAIT, &wait);
		ret = ret < 0 ? -errno : 0;
	} while (ret == -EINTR);
	if (ret == -ETIME)
		return fail_late(plan);
	*verdict = wait.verdict;
	if (ret && verdict->error == (uint32_t)-ret)
		return t3_fail_verdict(CALL, verdict);
	return ret ? kernel_fail(plan->member, CALL, -ret) : 0;
}

static int map_status(struct kernel_plan *plan, const struct t3_plan_add *add)
{
	uint32_t blocks = plan->p.planned.program.blocks;
	void *status = mmap(NULL, add->status_bytes, PROT_READ, MAP_SHARED,
			    kernel_fd(plan->p.member),
			    (off_t)add->status_offset);

	if (status == MAP_FAILED)
		return t3_fail(ENOMEM, "%s: the plan's status can't be mapped: %s",
			       CALL, strerror(errno));
	plan->status = status;
	plan->status_bytes = add->status_bytes;
	if (plan->status->blocks != blocks ||
	    plan->status->count_offset % sizeof(uint32_t) ||
	    plan->status->count_offset + blocks * sizeof(uint32_t) >
	    add->status_bytes) {
		kernel_plan_unmap(plan);
		return t3_fail(EIO, "%s: the plan's status does not fit the plan",
			       CALL);
	}
	plan->count = (const uint32_t *)((const char *)status +
					 plan->status->count_offset);
	return 0;
}

void kernel_plan_unmap(struct kernel_plan *plan)
{
	if (plan->status)
		munmap((void *)plan->status, plan->status_bytes);
	plan->status = NULL;
}

static int delete(const struct t3_plan *plan)
{
	struct t3_plan_del del = { .size = sizeof(del), .slot = plan->slot };

	return kernel_call(kernel_fd(plan->member), T3_PLAN_DEL, &del);
}

int kernel_plan_add(struct t3_plan *plan, struct t3_verdict *verdict)
{
	uint64_t deadline = t3_deadline(plan->member->options.setup_ms);
	struct t3_plan_add add;
	int ret;

	ret = submit(plan, &add, deadline, verdict);
	if (ret)
		return ret;
	plan->submitted = true;
	ret = map_status(kernel_plan(plan), &add);
	if (!ret)
		ret = wait_verdict(plan, deadline, verdict);
	if (ret) {
		kernel_plan_unmap(kernel_plan(plan));
		delete(plan);
	}
	return ret;
}

int kernel_plan_del(struct t3_plan *plan)
{
	int ret = delete(plan);

	if (ret == -EBUSY)
		return t3_fail(EBUSY,
			       "t3_plan_del: epoch %u is armed and has not retired",
			       plan->epoch);
	if (ret)
		return kernel_fail(plan->member, "t3_plan_del", -ret);
	kernel_plan_unmap(kernel_plan(plan));
	return 0;
}
