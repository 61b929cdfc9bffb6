/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: engines: what carries out a trigger that is ready.
 *
 * run.c has the work list, the budget and the workers, and asks an engine for
 * one trigger at a time. How far a trigger has come is kept in the plan
 * (t3_plan.walk), so that any engine goes on where another one stopped.
 */
#ifndef T3_ENGINE_H
#define T3_ENGINE_H

#include "t3.h"

/**
 * struct t3_exec - what running a trigger needs; one executor's own
 * @lanes: operands: the destination, then the sources
 * @operand: places in their regions
 * @region: their regions
 * @pages: their regions' pages
 * @skew: where the region begins in its first page
 * @linear: of a dma-buf that is held: where its region begins; else NULL
 * @hold: a worker's, in plans with dma-bufs; else NULL
 * @at: where each operand's bytes are now
 */
struct t3_exec {
	u32 lanes;
	struct t3_operand operand[T3_MAX_RANKS + 1];
	const struct t3_region *region[T3_MAX_RANKS + 1];
	struct page **pages[T3_MAX_RANKS + 1];
	u32 skew[T3_MAX_RANKS + 1];
	void *linear[T3_MAX_RANKS + 1];
	struct t3_hold *hold;
	void *at[T3_MAX_RANKS + 1];
};

enum t3_outcome {
	T3_RUN_DONE,	/* the trigger has completed */
	T3_RUN_PARKED,	/* the budget is used up, it is queued again */
	T3_RUN_BROKEN,	/* the group broke, it is forgotten */
	T3_RUN_AWAY,	/* the engine goes on with it by itself */
	T3_RUN_DECLINED, /* nothing was done, another engine is to run it */
};

/**
 * struct t3_run - one trigger that somebody has taken from t3_plan.ready
 * @plan: live
 * @exec: the executor's; t3_lanes_find() has filled it for this trigger
 * @trigger: which
 * @dtype: of its blocks
 * @held: its dma-bufs are held: the engine moves all bytes and does not
 *	complete it
 * @budget: bytes that may be moved, less what was or was sent away
 * @moved: bytes moved so far, from 0
 * @began: t3_arb_begin()
 *
 * The executor's own, as are the trigger and its walk while it runs.
 */
struct t3_run {
	struct t3_plan *plan;
	struct t3_exec *exec;
	u32 trigger;
	u32 dtype;
	bool held;
	u64 *budget;
	u64 moved;
	u64 began;
};

/**
 * struct t3_engine - one way of carrying out triggers
 * @name: for knobs and messages
 * @run: carry out a trigger from where its walk stands, until it is done, the
 *	budget is used up or the group has broken. Each piece of work is
 *	announced in t3_group.inflight before t3_group.broken is read. It
 *	completes the trigger in the machine before the last piece is no
 *	longer in flight; t3_arb_end() is the caller's to call, or the
 *	engine's after T3_RUN_AWAY. Context: sleeps.
 *
 * Constant.
 */
struct t3_engine {
	const char *name;
	enum t3_outcome (*run)(struct t3_run *r);
};

extern const struct t3_engine t3_engine_cpu;
extern const struct t3_engine t3_engine_import;

/* engine_import.c */
bool t3_imports_find(struct t3_exec *x);

extern const struct t3_engine t3_engine_dma;

/* The knob "engine". */
enum t3_engine_choice {
	T3_ENGINE_CPU,
	T3_ENGINE_DMA,		/* large copies */
	T3_ENGINE_DMA_SUMS,	/* and what large sums read */
};

/* engine.c */
enum t3_outcome t3_engine_run(struct t3_run *r);

/* dma_chan.c */
#ifdef CONFIG_DMA_ENGINE
int t3_dma_open(void);
void t3_dma_close(void);
void t3_dma_cut(struct t3_group *group);
void t3_dma_exit(void);
#else
static inline int t3_dma_open(void)
{
	return -EOPNOTSUPP;
}

static inline void t3_dma_close(void)
{
}

static inline void t3_dma_cut(struct t3_group *group)
{
}

static inline void t3_dma_exit(void)
{
}
#endif

/* lanes.c */
bool t3_lanes_find(struct t3_run *r);
u64 t3_trigger_bytes(const struct t3_plan *plan, u32 trigger);

/*
 * Where an operand is now, and how many of @want bytes follow without a break
 * in the direct map.
 */
static inline u64 t3_lane_span(struct t3_exec *x, u32 n,
			       const struct t3_walk *w, u64 want)
{
	u64 pos = x->skew[n] + t3_walk_offset(w, &x->operand[n]);
	u64 bytes = PAGE_SIZE - offset_in_page(pos);
	struct page **page;
	u8 *base;

	if (x->linear[n]) {
		x->at[n] = x->linear[n] + t3_walk_offset(w, &x->operand[n]);
		return want;
	}
	page = x->pages[n] + (pos >> PAGE_SHIFT);
	base = page_address(*page);
	x->at[n] = base + offset_in_page(pos);
	while (bytes < want) {
		base += PAGE_SIZE;
		if (page_address(*++page) != base)
			return bytes;
		bytes += PAGE_SIZE;
	}
	return want;
}

/* As above, at all operands; x->at[] says where they are. */
static inline u64 t3_lanes_span(struct t3_exec *x, const struct t3_walk *w,
				u64 want)
{
	u32 n;

	for (n = 0; n < x->lanes; n++)
		want = t3_lane_span(x, n, w, want);
	return want;
}

#endif /* T3_ENGINE_H */
