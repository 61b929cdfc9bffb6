// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: fences that the driver signals.
 *
 * Others may hold a fence for as long as they like, and call into it when they
 * let it go: so each holds the module.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "fence.h"

/**
 * struct t3_fence - a fence
 * @base: the fence
 * @timeline: its timeline's name, a literal
 * @lock: of @base; the fence's own, so that signalling one from another's
 *	callback can't deadlock
 *
 * Constant but for @base.
 */
struct t3_fence {
	struct dma_fence base;
	const char *timeline;
	spinlock_t lock; /* see above */
};

static const char *driver_name(struct dma_fence *fence)
{
	return "t3";
}

static const char *timeline_name(struct dma_fence *fence)
{
	return container_of(fence, struct t3_fence, base)->timeline;
}

/* A grace period also keeps the module's text until this has returned. */
static void free_rcu_cb(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct t3_fence, base.rcu));
	module_put(THIS_MODULE);
}

static void release(struct dma_fence *fence)
{
	call_rcu(&fence->rcu, free_rcu_cb);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = driver_name,
	.get_timeline_name = timeline_name,
	.release = release,
};

bool t3_fence_is_ours(const struct dma_fence *fence)
{
	return fence->ops == &fence_ops;
}

/**
 * t3_fence_new - a fence that is not signalled
 * @timeline: its name, a literal
 * @context: of dma_fence_context_alloc()
 * @seqno: greater than those of the fences of @context so far, which are
 *	signalled before it
 *
 * Context: may sleep. Return: the fence with one reference, or NULL.
 */
struct dma_fence *t3_fence_new(const char *timeline, u64 context, u64 seqno)
{
	struct t3_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	__module_get(THIS_MODULE);	/* the caller came through a file of ours */
	fence->timeline = timeline;
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, context, seqno);
	return &fence->base;
}

/**
 * t3_fence_signal - signal a fence and drop the caller's reference
 * @fence: not signalled
 * @error: 0, or the negative errno that it has failed with
 *
 * Context: any.
 */
void t3_fence_signal(struct dma_fence *fence, int error)
{
	if (error)
		dma_fence_set_error(fence, error);
	dma_fence_signal(fence);
	dma_fence_put(fence);
}
