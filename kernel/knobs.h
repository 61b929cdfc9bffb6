/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: what an administrator can set and count (knobs.c).
 */
#ifndef T3_KNOBS_H
#define T3_KNOBS_H

#include <linux/sysfs.h>
#include <linux/types.h>

/* Each is a file of the device's folder "counters". */
enum t3_counter {
	T3_COUNT_EPOCHS,	/* retired, of each rank */
	T3_COUNT_TRIGGERS,	/* completed */
	T3_COUNT_BYTES_CPU,	/* written by the cpu engine */
	T3_COUNT_BYTES_DMA,	/* by memcpy channels */
	T3_COUNT_DMA_ERRORS,	/* transfers that did not end well */
	T3_COUNT_DMA_TIMEOUTS,	/* channels that were late */
	T3_COUNT_DMA_REMOVED,	/* channels whose device went */
	T3_COUNT_HELD,		/* times that transfers were held back */
	T3_COUNT_DIED,		/* groups that broke, by cause */
	T3_COUNT_ABORTED,
	T3_COUNT_WATCHDOG,
	T3_COUNT_STALE,
	T3_COUNT_ENGINE,
	T3_COUNT_OTHER,
	T3_COUNTERS
};

/**
 * struct t3_counts - one processor's counters
 * @count: one each; only grow. Added to by anybody on this processor, in any
 *	context, by operations that interrupts can't split; read by anybody.
 */
struct t3_counts {
	u64 count[T3_COUNTERS];
};

/* Knobs, each read once a use. */
extern unsigned int t3_poll_us;
extern unsigned int t3_poll_max_us;
extern unsigned int t3_inline_max_bytes;
extern unsigned int t3_watchdog_ms;
extern unsigned int t3_watchdog_max_ms;
extern unsigned int t3_max_pinned_mb;
extern unsigned int t3_max_pinned_user_mb;
extern unsigned int t3_workers;
extern unsigned int t3_dma_min_bytes;
extern unsigned int t3_dma_timeout_ms;
extern unsigned int t3_inflight_max_bytes;
extern unsigned int t3_starve_us;
extern unsigned int t3_engine;		/* enum t3_engine_choice */
extern unsigned int t3_arbitration;	/* enum t3_arbitration */

extern const struct attribute_group *t3_device_groups[];

void t3_counted(enum t3_counter what, u64 n);
u64 t3_pinned_pages(void);
void t3_counted_break(u32 error);

#endif /* T3_KNOBS_H */
