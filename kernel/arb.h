/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: arbitration: who gives way, producers or transfers (arb.c).
 */
#ifndef T3_ARB_H
#define T3_ARB_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/workqueue.h>

struct t3_part;
struct t3_plan;

/* The knob "arbitration". */
enum t3_arbitration {
	T3_ARB_ROUND_ROBIN,
	T3_ARB_COMPUTE_FIRST,
	T3_ARB_DMA_FIRST,
};

/**
 * struct t3_arb - what is known of a plan's producers and transfers
 * @total: blocks that tiles produce in one epoch, of all ranks; constant
 * @first: of these, the first so many show the pace; constant
 * @block_bytes: of a block, on average; constant
 * @outstanding: productions that armed epochs still wait for
 * @produced: productions of this epoch, all ranks together
 * @began: ns: the first of them
 * @pace: ns between two of the first blocks, the shortest that was seen
 * @move: ns from a transfer's start to its end, on average
 * @late: the last look found the producers behind their own pace
 * @held: a timer or its work is pending, which holds a reference on the plan
 * @starving: transfers were held back for starve_us: the next one runs
 * @timer: ends a hold
 * @work: wakes an executor
 *
 * Numbers for a choice that may be wrong: written with no lock by whoever sees
 * an event, in any context, and so now and then by two at a time. @held moves
 * from 0 to 1 by compare-and-swap, and back by @work.
 */
struct t3_arb {
	u32 total;
	u32 first;
	u64 block_bytes;
	atomic_t outstanding;
	atomic_t produced;
	u64 began;
	u64 pace;
	u64 move;
	bool late;
	int held;
	bool starving;
	struct hrtimer timer;
	struct work_struct work;
};

void t3_arb_init(struct t3_plan *plan);
void t3_arb_arm(struct t3_plan *plan, const struct t3_part *part, bool undo);
void t3_arb_updated(struct t3_plan *plan, u32 rank, u32 block);
bool t3_arb_late(const struct t3_plan *plan);
bool t3_arb_holds(struct t3_plan *plan);
u64 t3_arb_begin(struct t3_plan *plan, u32 trigger);
void t3_arb_end(struct t3_plan *plan, u32 trigger, u64 began);
void t3_arb_forget(struct t3_plan *plan);

#endif /* T3_ARB_H */
