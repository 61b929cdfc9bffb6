/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: the dmaengine engine's own: channels (dma_chan.c) and the transfers on
 * them (engine_dma.c).
 *
 * Locks, outermost first, below those of t3.h:
 *
 *	t3_dma_lock		mutex: which channels there are
 *	t3_dma_chan.cut		mutex: one cut of a channel at a time
 *	t3_dma_chan.lock	spinlock, bottom halves off: submitting
 *
 * A transfer's end takes none of them and may come in any context.
 */
#ifndef T3_DMA_H
#define T3_DMA_H

#include <linux/completion.h>
#include <linux/dmaengine.h>

#include "engine.h"

#define T3_DMA_CHANS	8	/* that are held at most */
#define T3_DMA_XFERS	8	/* in flight on a channel */
#define T3_DMA_SPANS	128	/* descriptors of a transfer */
#define T3_DMA_FAILURES	3	/* in a row, then a channel is given up */

struct t3_dma_xfer;

/**
 * struct t3_dma_span - one descriptor: bytes without a break at both ends
 * @xfer: its transfer
 * @to: where the bytes go, in the kernel's direct map
 * @from: where they come from
 * @dma_to: the same for the device
 * @dma_from: likewise
 * @bytes: how many
 * @ok: the device has said that all of them have arrived
 * @row: the trigger's walk where this span begins
 * @at: likewise
 */
struct t3_dma_span {
	struct t3_dma_xfer *xfer;
	void *to;
	const void *from;
	dma_addr_t dma_to;
	dma_addr_t dma_from;
	u32 bytes;
	bool ok;
	u32 row;
	u64 at;
};

enum t3_dma_state {
	T3_XFER_FREE,
	T3_XFER_BUSY,	/* being built, or ending: somebody's own */
	T3_XFER_FLYING,	/* the device's */
	T3_XFER_LOST,	/* for ever: the device never gave it back */
};

/**
 * struct t3_dma_xfer - a transfer
 * @state: enum t3_dma_state. FREE to BUSY and FLYING to BUSY by one
 *	compare-and-swap of whoever then owns all below; BUSY to FLYING by the
 *	submitter, before the device may see it
 * @chan: its channel
 * @plan: what it is done for, with a reference
 * @group: @plan's, to be compared only: anybody reads it
 * @trigger: what it is done for; the transfer owns the trigger and its walk
 * @began: t3_arb_begin()
 * @waiter: NULL, or who wants to be told in place of the machine
 * @left: descriptors that the device has, and one more while submitting; who
 *	makes it 0 ends the transfer
 * @spans: descriptors
 * @submitted: the first so many were given to the device
 * @deadline: jiffies after which it is taken back
 * @put: drops @plan where that may sleep, then frees the transfer
 * @span: descriptors; @ok is written by the device's callback before it counts
 *	@left down
 */
struct t3_dma_xfer {
	int state;
	struct t3_dma_chan *chan;
	struct t3_plan *plan;
	const struct t3_group *group;
	u32 trigger;
	u64 began;
	struct completion *waiter;
	atomic_t left;
	u32 spans;
	u32 submitted;
	unsigned long deadline;
	struct work_struct put;
	struct t3_dma_span span[T3_DMA_SPANS];
};

/**
 * struct t3_dma_chan - a channel that we hold for ourselves
 * @chan: the dmaengine's
 * @name: for messages, ours: the dmaengine's goes when the device goes
 * @dev: whose DMA mappings are needed, with a reference
 * @provider: the device whose driver offers the channel, with a reference
 * @node: its NUMA node
 * @max_bytes: of one descriptor
 * @line: addresses and sizes of destinations are multiples of it
 * @stoppable: the driver can terminate transfers
 * @lock: see the head of this file
 * @closed: nothing is submitted any more; under @lock
 * @cut: see the head of this file
 * @lost: a transfer never came back: @chan is released, the rest stays for ever
 * @flying: transfers; a hint for choosing
 * @failures: in a row; written by whoever ends a transfer
 * @dog: takes back what is late
 * @xfer: transfers
 *
 * What is not said otherwise is constant. In the table of dma_chan.c, which is
 * read under RCU; freed a grace period after it was taken out, with no transfer
 * left.
 */
struct t3_dma_chan {
	struct dma_chan *chan;
	char name[32];
	struct device *dev;
	struct device *provider;
	int node;
	u32 max_bytes;
	u32 line;
	bool stoppable;
	spinlock_t lock; /* see the head of this file */
	bool closed;
	struct mutex cut; /* see the head of this file */
	bool lost;
	atomic_t flying;
	atomic_t failures;
	struct delayed_work dog;
	struct t3_dma_xfer xfer[T3_DMA_XFERS];
};

/* dma_chan.c */
struct t3_dma_chan *t3_dma_pick(int node);
void t3_dma_give_up(void);

/* dma_sum.c */
enum t3_outcome t3_dma_sum(struct t3_run *r, int node);

/* engine_dma.c */
struct t3_dma_xfer *t3_dma_take(struct t3_dma_chan *ch);
u32 t3_dma_add_span(struct t3_dma_xfer *x, void *to, const void *from,
		    const struct t3_walk *w, u64 bytes);
bool t3_dma_submit(struct t3_dma_xfer *x);
void t3_dma_unmap(struct t3_dma_xfer *x);
void t3_dma_count(struct t3_dma_xfer *x, bool failed);
void t3_dma_free(struct t3_dma_xfer *x);
void t3_dma_chan_init(struct t3_dma_chan *ch);
void t3_dma_chan_stop(struct t3_dma_chan *ch);
void t3_dma_chan_cut(struct t3_dma_chan *ch);
bool t3_dma_chan_serves(struct t3_dma_chan *ch, const struct t3_group *group);

#endif /* T3_DMA_H */
