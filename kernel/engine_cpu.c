// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the cpu engine: the executor itself moves the bytes, section by section.
 */
#include <linux/highmem.h>

#include "engine.h"
#include "fp_env.h"
#include "reduce.h"

#define FPU_BYTES	(16 << 10)	/* of destination in one FPU section */
#define FPU_RUNS	256		/* pieces in one FPU section */
#define COPY_BYTES	(64 << 10)	/* between two looks at a break */

static u64 copy_section(struct t3_exec *x, struct t3_walk *w)
{
	u64 bytes, done = 0;

	while (done < COPY_BYTES && t3_walk_run(w)) {
		bytes = t3_lanes_span(x, w, min_t(u64, t3_walk_run(w),
						  COPY_BYTES - done));
		memcpy(x->at[0], x->at[1], bytes);
		t3_walk_step(w, bytes);
		done += bytes;
	}
	return done;
}

static u64 sum_section(struct t3_exec *x, struct t3_walk *w, u32 dtype)
{
	const struct t3_reduce *reduce = t3_reduce_best();
	u32 size = t3_dtype_size(dtype), runs;
	u64 bytes, done = 0, saved;

	saved = t3_fp_enter();
	for (runs = 0; runs < FPU_RUNS && done < FPU_BYTES && t3_walk_run(w);
	     runs++) {
		bytes = t3_lanes_span(x, w, min_t(u64, t3_walk_run(w),
						  FPU_BYTES - done));
		reduce->sum[dtype - 1](x->at[0], (const void *const *)&x->at[1],
				       x->lanes - 1, bytes / size);
		t3_walk_step(w, bytes);
		done += bytes;
	}
	t3_fp_leave(saved);
	return done;
}

/*
 * One section, announced to breakers; the last one of a trigger completes it
 * before it is no longer in flight: who has seen a break drained finds no
 * count moving either. Preemption is off meanwhile: a breaker waits for as long
 * as the memory takes, and not until a thread that somebody gave a low priority
 * gets a processor again.
 *
 * Return: bytes; 0 where the group has broken. *@done: all is moved; where no
 * dma-bufs are held the trigger has completed, and its walk may be somebody
 * else's already.
 */
static u64 run_section(struct t3_run *r, bool *done)
{
	struct t3_plan *plan = r->plan;
	struct t3_group *group = plan->group;
	struct t3_walk *w = &plan->walk[r->trigger];
	u64 bytes = 0;

	*done = false;
	preempt_disable();
	if (t3_machine_enter(&group->inflight, &group->broken)) {
		if (plan->graph.action[r->trigger].op == T3_OP_COPY)
			bytes = copy_section(r->exec, w);
		else
			bytes = sum_section(r->exec, w, r->dtype);
		*done = !t3_walk_run(w);
		if (*done && !r->held) {
			w->rows = 0;
			t3_machine_complete(&plan->machine, r->trigger);
		}
		t3_machine_leave(&group->inflight);	/* a full fence */
	}
	preempt_enable();
	if (unlikely(READ_ONCE(group->broken)))
		wake_up_all(&group->drained);
	return bytes;
}

static enum t3_outcome cpu_run(struct t3_run *r)
{
	bool done = false;
	u64 bytes;

	while (*r->budget) {
		bytes = run_section(r, &done);
		if (!bytes)
			return T3_RUN_BROKEN;
		r->moved += bytes;
		*r->budget -= min(*r->budget, bytes);
		cond_resched();
		if (done)
			return T3_RUN_DONE;
	}
	t3_ready_push(r->plan->ready, r->plan->ready_mask, r->trigger);
	return T3_RUN_PARKED;
}

const struct t3_engine t3_engine_cpu = {
	.name = "cpu",
	.run = cpu_run,
};
