/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: fences that the driver signals: of a trigger, on the dma-bufs that it
 * reads and writes.
 */
#ifndef T3_FENCE_H
#define T3_FENCE_H

#include <linux/dma-fence.h>

struct dma_fence *t3_fence_new(const char *timeline, u64 context, u64 seqno);
void t3_fence_signal(struct dma_fence *fence, int error);
bool t3_fence_is_ours(const struct dma_fence *fence);

#endif /* T3_FENCE_H */
