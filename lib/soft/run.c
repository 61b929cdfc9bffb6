// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Carrying out triggers: each rank runs those that write its own blocks.
 */
#define _GNU_SOURCE
#include <sys/uio.h>

#include "fp_env.h"
#include "reduce.h"
#include "soft.h"
#include "walk.h"

/*
 * Between looks at the broken word: a look finds that word, and all else that it
 * needs, washed out of the cache by the sum, which costs as much as 8 KiB of it.
 */
#define CHUNK		(2u << 20)
#define BOUNCE		(64u << 10)	/* on the stack, for remote sources */

static struct soft_plan *plan_of(struct t3_machine *m)
{
	return (struct soft_plan *)((char *)m -
				    offsetof(struct soft_plan, machine));
}

static void op_ready(struct t3_machine *machine, u32 trigger)
{
	struct soft_plan *plan = plan_of(machine);
	u32 rank = t3_graph_trigger_rank(&plan->graph, trigger);

	t3_ready_push(plan->queue[rank], plan->queue_mask[rank], trigger);
	soft_ring(soft_slot_of(soft_member(plan->p.member), rank), true);
}

static void op_retired(struct t3_machine *machine, u32 rank, u32 epoch)
{
	struct soft_plan *plan = plan_of(machine);

	(void)epoch;
	soft_ring(soft_slot_of(soft_member(plan->p.member), rank), false);
}

/* Only a rank's own threads update its blocks. */
static void op_updated(struct t3_machine *machine, u32 rank, u32 block)
{
	struct soft_plan *plan = plan_of(machine);

	(void)block;
	soft_ring(soft_slot_of(soft_member(plan->p.member), rank), false);
}

const struct t3_machine_ops soft_machine_ops = {
	.ready = op_ready,
	.retired = op_retired,
	.updated = op_updated,
};

static bool read_remote(pid_t pid, void *to, u64 from, u64 bytes)
{
	struct iovec here = { to, bytes };
	struct iovec there = { (void *)from, bytes };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* How many bytes to do at once. */
static u64 chunk_of(const struct soft_task *task, u64 run)
{
	u64 most = CHUNK;

	if (task->remote && task->op == T3_OP_SUM)
		most = BOUNCE / task->remote & ~63u;
	return run < most ? run : most;
}

/* Where the sources' next bytes are; those of other processes are fetched. */
static bool sources_at(const struct soft_plan *plan,
		       const struct soft_task *task, const struct t3_walk *w,
		       u64 bytes, const void **src, u8 *bounce)
{
	u32 k;

	for (k = 0; k < task->sources; k++) {
		u32 at = task->first + 1 + k;
		u64 from = t3_walk_offset(w, &plan->operand[at]);

		src[k] = (const void *)from;
		if (likely(!plan->reader[at]))
			continue;
		if (!read_remote(plan->reader[at], bounce, from, bytes))
			return false;
		src[k] = bounce;
		bounce += (bytes + 63) & ~63ULL;
	}
	return true;
}

static bool copy_chunk(const struct soft_plan *plan,
		       const struct soft_task *task, const struct t3_walk *w,
		       void *to, u64 bytes)
{
	u32 at = task->first + 1;
	u64 from = t3_walk_offset(w, &plan->operand[at]);

	if (plan->reader[at])
		return read_remote(plan->reader[at], to, from, bytes);
	memcpy(to, (const void *)from, bytes);
	return true;
}

static bool do_copy(struct soft_member *m, const struct soft_plan *plan,
		    const struct soft_task *task, struct t3_walk *w)
{
	u64 run;

	while ((run = t3_walk_run(w))) {
		u64 bytes = chunk_of(task, run);
		u64 to = t3_walk_offset(w, &plan->operand[task->first]);

		if (soft_is_broken(m) ||
		    !copy_chunk(plan, task, w, (void *)to, bytes))
			return false;
		t3_walk_step(w, bytes);
	}
	return true;
}

static bool sum_walk(struct soft_member *m, const struct soft_plan *plan,
		     const struct soft_task *task, struct t3_walk *w,
		     u8 *bounce)
{
	const struct t3_reduce *reduce = t3_reduce_best();
	u32 element = t3_dtype_size(task->dtype);
	const void *src[T3_MAX_RANKS];
	u64 run;

	while ((run = t3_walk_run(w))) {
		u64 bytes = chunk_of(task, run);
		u64 to = t3_walk_offset(w, &plan->operand[task->first]);

		if (soft_is_broken(m) ||
		    !sources_at(plan, task, w, bytes, src, bounce))
			return false;
		reduce->sum[task->dtype - 1]((void *)to, src, task->sources,
					     bytes / element);
		t3_walk_step(w, bytes);
	}
	return true;
}

/* The bounce buffer is on the stack only where it is needed. */
static __attribute__((noinline)) bool
sum_remote(struct soft_member *m, const struct soft_plan *plan,
	   const struct soft_task *task, struct t3_walk *w)
{
	u8 bounce[BOUNCE + T3_MAX_RANKS * 64] __attribute__((aligned(64)));

	return sum_walk(m, plan, task, w, bounce);
}

static bool do_sum(struct soft_member *m, const struct soft_plan *plan,
		   const struct soft_task *task, struct t3_walk *w)
{
	u64 saved = t3_fp_enter();
	bool done;

	if (unlikely(task->remote))
		done = sum_remote(m, plan, task, w);
	else
		done = sum_walk(m, plan, task, w, NULL);
	t3_fp_leave(saved);
	return done;
}

/* It can't go on. If the group broke before, this changes nothing. */
static void give_up(struct soft_member *m, const struct soft_plan *plan, u32 why,
		    u32 rank)
{
	const struct soft_cause cause = {
		.error = why == SOFT_WHY_STALE ? ESTALE : EIO,
		.why = why,
		.rank = rank,
		.slot = plan->p.slot,
		.block = T3_NONE,
	};

	soft_break(m, &cause);
}

/* The rank of a task's first source that is read from another process. */
static u32 remote_rank(const struct soft_plan *plan,
		       const struct soft_task *task, u32 trigger)
{
	const struct t3_graph *g = &plan->graph;
	u32 k;

	for (k = 0; k + 1 < task->sources; k++) {
		if (plan->reader[task->first + 1 + k])
			break;
	}
	return g->block_rank[g->source[g->action[trigger].first_source + k]];
}

/*
 * What was read from another process was its own memory if that lives: else
 * its number may be another's by now.
 */
static bool remotes_live(struct soft_member *m, const struct soft_plan *plan,
			 const struct soft_task *task, u32 trigger)
{
	const struct t3_graph *g = &plan->graph;
	const u32 *source = &g->source[g->action[trigger].first_source];
	u32 k;

	for (k = 0; k < task->sources; k++) {
		if (plan->reader[task->first + 1 + k] &&
		    soft_gone(m, g->block_rank[source[k]]))
			return false;
	}
	return true;
}

static void run_task(struct soft_member *m, struct soft_plan *plan, u32 trigger)
{
	u32 first = plan->graph.first_trigger[m->m.rank];
	const struct soft_task *task = &plan->task[trigger - first];
	struct t3_walk w;
	bool done;

	t3_walk_start(&w, task->rows, task->row_bytes,
		      &plan->operand[task->first], 1 + task->sources);
	if (task->op == T3_OP_COPY)
		done = do_copy(m, plan, task, &w);
	else
		done = do_sum(m, plan, task, &w);
	if (unlikely(task->remote))
		done = done && remotes_live(m, plan, task, trigger);
	if (likely(done)) {
		soft_progress(plan);
		t3_machine_complete(&plan->machine, trigger);
		return;
	}
	/* A peer that died can't be read: soft_check() finds that out. */
	soft_check(m);
	if (!soft_is_broken(m))
		give_up(m, plan, SOFT_WHY_STALE,
			remote_rank(plan, task, trigger));
}

/* Announced to our own process's breakers, then to all. */
static bool enter(struct soft_member *m)
{
	t3_add32(&m->running, 1);
	if (likely(t3_machine_enter(&m->slot->inflight, soft_broken(m))))
		return true;
	t3_add32(&m->running, (u32)-1);
	return false;
}

static void leave(struct soft_member *m)
{
	t3_machine_leave(&m->slot->inflight);
	t3_add32(&m->running, (u32)-1);
}

/* At most an epoch's work at once: what the queue says is not believed. */
static u32 run_plan(struct soft_member *m, struct soft_plan *plan)
{
	u32 rank = m->m.rank;
	u32 first = plan->graph.first_trigger[rank];
	u32 triggers = plan->graph.first_trigger[rank + 1] - first;
	u32 trigger;
	u32 ran = 0;

	if (likely(!t3_ready_any(plan->queue[rank])))
		return 0;
	while (ran < triggers &&
	       t3_ready_pop(plan->queue[rank], plan->queue_mask[rank], &trigger)) {
		if (unlikely(trigger - first >= triggers)) {
			give_up(m, plan, SOFT_WHY_CORRUPT, rank);
			return 0;
		}
		if (!enter(m))
			return 0;
		run_task(m, plan, trigger);
		leave(m);
		ran++;
	}
	return ran;
}

u32 soft_run(struct soft_member *m)
{
	u64 live = t3_load_acquire(&m->live);
	u32 ran = 0;

	for (; live; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(m, slot);

		if (!plan)
			continue;
		ran += run_plan(m, plan);
		soft_plan_put(m, slot);
	}
	return ran;
}

bool soft_any_ready(struct soft_member *m)
{
	u64 live = t3_load_acquire(&m->live);
	bool any = false;

	for (; live && !any; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(m, slot);

		if (!plan)
			continue;
		any = t3_ready_any(plan->queue[m->m.rank]);
		soft_plan_put(m, slot);
	}
	return any;
}

static bool worker_stops(void *arg)
{
	struct soft_member *m = arg;

	return t3_load_acquire(&m->stop);
}

void *soft_worker(void *arg)
{
	struct soft_member *m = arg;

	while (!worker_stops(m)) {
		/* Once broken there is nothing to run. */
		if (!soft_is_broken(m) &&
		    (soft_run(m) || soft_spin(m, worker_stops, m)))
			continue;
		soft_sleep(m, &m->slot->idlers, worker_stops, m, 1000000000);
	}
	return NULL;
}
