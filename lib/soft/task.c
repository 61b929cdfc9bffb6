// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Triggers with all numbers turned into addresses, once, when a plan is made.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "grid.h"
#include "reduce.h"
#include "soft.h"

/**
 * struct bases - where the grids of all ranks are, as this process sees them
 * @address: [rank][grid]; 0: not looked up
 * @reader: [rank][grid] 0, or the process that has the memory
 *
 * On the heap, while a plan is made.
 */
struct bases {
	u64 address[T3_MAX_RANKS][T3_MAX_PLAN_REGIONS];
	pid_t reader[T3_MAX_RANKS][T3_MAX_PLAN_REGIONS];
};

static bool read_byte(pid_t pid, u64 at)
{
	char byte;
	struct iovec here = { &byte, 1 };
	struct iovec there = { (void *)at, 1 };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == 1;
}

/*
 * Is the process a member of the group, as its slot says? Only members map the
 * file, so nobody can have us read a stranger's memory.
 */
static bool maps_group(const struct soft_domain *domain, pid_t pid)
{
	unsigned long long inode;
	unsigned int major, minor;
	bool found = false;
	char line[512];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", pid);
	f = fopen(line, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %*s %x:%x %llu", &major, &minor,
			       &inode) == 3 && inode == domain->ino &&
			makedev(major, minor) == domain->dev;
	fclose(f);
	return found;
}

/* Can the process be read, here and now? */
static int probe_remote(struct soft_member *m, u32 rank,
			const struct soft_place *place, pid_t *reader,
			struct t3_verdict *verdict)
{
	struct soft_slot *slot = soft_slot_of(m, rank);
	pid_t pid = (pid_t)t3_load(&slot->pid);
	const char *why;

	if (!soft_same_pids(m, rank) || pid <= 0)
		why = "it lives in another PID namespace";
	else if (!maps_group(m->domain, pid))
		why = "its process can't be seen to be a member";
	else if (read_byte(pid, place->base) &&
		 read_byte(pid, place->base + place->bytes - 1))
		why = NULL;
	else
		why = strerror(errno);
	if (!why) {
		*reader = pid;
		return 0;
	}
	t3_refuse(verdict, EMEDIUMTYPE, m->m.rank, T3_NONE, rank);
	return t3_fail(EMEDIUMTYPE, "t3_plan_add: region memory at %#llx of rank %u is not from t3_alloc(), and rank %u can't read it: process_vm_readv: %s",
		       (unsigned long long)place->base, rank, m->m.rank, why);
}

static int map_arena(struct soft_plan *plan, const struct soft_place *place,
		     u64 *address, struct t3_verdict *verdict)
{
	struct soft_member *m = soft_member(plan->p.member);
	void *memory = soft_map(m->domain, place->at, place->bytes, false);

	if (!memory) {
		t3_refuse(verdict, ENOMEM, m->m.rank, T3_NONE, T3_NONE);
		return t3_fail(ENOMEM, "t3_plan_add: mapping %llu bytes of a peer: %s",
			       (unsigned long long)place->bytes,
			       strerror(errno));
	}
	plan->map[plan->maps++] = memory;
	*address = (uintptr_t)memory;
	/* Faults now, not in an epoch; where that fails they come then. */
	soft_populate(*address, place->bytes, false);
	return 0;
}

/* How this process gets at a grid of a rank. */
static int find_base(struct soft_plan *plan, u32 rank, u32 grid,
		     const struct soft_copy *copy, struct bases *bases,
		     struct t3_verdict *verdict)
{
	struct soft_member *m = soft_member(plan->p.member);
	const struct soft_place *place = &copy[rank].place[grid];
	u64 *address = &bases->address[rank][grid];

	if (*address)
		return 0;
	if (rank == m->m.rank) {
		*address = place->base;
		return 0;
	}
	if (place->at != SOFT_PRIVATE)
		return map_arena(plan, place, address, verdict);
	*address = place->base;
	if (soft_region_local(m->domain, rank, place->base, place->bytes))
		return 0;
	return probe_remote(m, rank, place, &bases->reader[rank][grid],
			    verdict);
}

/* One operand: a block's place. */
static int make_operand(struct soft_plan *plan, u32 block, u32 at,
			const struct soft_copy *copy, struct bases *bases,
			struct t3_verdict *verdict)
{
	const struct t3_graph *g = &plan->graph;
	u32 rank = g->block_rank[block];
	u32 grid_of = g->grid_of[block];
	const struct t3_grid *grid = &copy[rank].grid[grid_of];
	struct t3_rect rect = t3_grid_rect(grid, block - g->first_block[rank] -
						 grid->first_block);
	int ret = find_base(plan, rank, grid_of, copy, bases, verdict);

	if (ret)
		return ret;
	plan->operand[at].stride = grid->row_stride;
	plan->operand[at].offset = bases->address[rank][grid_of] +
				   rect.row * grid->row_stride +
				   (u64)rect.col * t3_dtype_size(grid->dtype);
	plan->reader[at] = bases->reader[rank][grid_of];
	return 0;
}

static int make_task(struct soft_plan *plan, u32 trigger, struct soft_task *task,
		     u32 first, const struct soft_copy *copy,
		     struct bases *bases, struct t3_verdict *verdict)
{
	const struct t3_graph *g = &plan->graph;
	const struct t3_action *a = &g->action[trigger];
	const struct t3_grid *grid = &copy[a->rank].grid[g->grid_of[a->block]];
	struct t3_rect rect = t3_grid_rect(grid, a->block -
						 g->first_block[a->rank] -
						 grid->first_block);
	int ret = make_operand(plan, a->block, first, copy, bases, verdict);
	u32 k;

	*task = (struct soft_task) {
		.op = a->op,
		.dtype = grid->dtype,
		.sources = a->sources,
		.first = first,
		.rows = rect.rows,
		.row_bytes = (u64)rect.cols * t3_dtype_size(grid->dtype),
	};
	for (k = 0; k < a->sources && !ret; k++) {
		ret = make_operand(plan, g->source[a->first_source + k],
				   first + 1 + k, copy, bases, verdict);
		task->remote += plan->reader[first + 1 + k] ? 1 : 0;
	}
	return ret;
}

static int make_all(struct soft_plan *plan, const struct soft_copy *copy,
		    struct bases *bases, struct t3_verdict *verdict)
{
	const struct t3_graph *g = &plan->graph;
	u32 rank = plan->p.member->rank;
	u32 from = g->first_trigger[rank];
	u32 first = 0;
	u32 t;
	int ret;

	for (t = from; t < g->first_trigger[rank + 1]; t++) {
		ret = make_task(plan, t, &plan->task[t - from], first, copy,
				bases, verdict);
		if (ret)
			return ret;
		first += 1 + g->action[t].sources;
	}
	return 0;
}

int soft_tasks_make(struct soft_plan *plan, const struct soft_copy *copy,
		    struct t3_verdict *verdict)
{
	const struct t3_program *own = &plan->p.planned.program;
	u64 operands = (u64)own->triggers + own->sources;
	struct bases *bases = calloc(1, sizeof(*bases));
	int ret;

	plan->task = calloc(own->triggers + 1, sizeof(*plan->task));
	plan->operand = calloc(operands + 1, sizeof(*plan->operand));
	plan->reader = calloc(operands + 1, sizeof(*plan->reader));
	if (bases && plan->task && plan->operand && plan->reader) {
		ret = make_all(plan, copy, bases, verdict);
	} else {
		t3_refuse(verdict, ENOMEM, plan->p.member->rank, T3_NONE,
			  T3_NONE);
		ret = t3_fail(ENOMEM, "t3_plan_add: no memory");
	}
	free(bases);
	return ret;
}
