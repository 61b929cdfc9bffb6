// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the dma-bufs of a trigger, held while a worker moves its bytes.
 *
 * First, without any lock: the fences of others are waited for, CPU access
 * begins, the buffers are mapped. Then all reservations are taken under one
 * context; where a buffer has moved meanwhile, or has a new fence, all is let
 * go and begun again. Else our fence goes onto all of them, and they are let
 * go: the fence keeps them where they are, and others off them.
 *
 * From there to the fence's signal nothing is waited for, allocated or locked;
 * lockdep is told so. Only then does CPU access end, since exporters may take
 * the reservation for that, whose holder may wait for our fence; and only then
 * is the trigger complete.
 */
#include <linux/delay.h>
#include <linux/dma-resv.h>

#include "fence.h"
#include "import.h"

#define NONE	0xffffffff

struct t3_hold *t3_hold_new(void)
{
	struct t3_hold *hold = kzalloc(sizeof(*hold), GFP_KERNEL_ACCOUNT);

	if (hold)
		hold->context = dma_fence_context_alloc(1);
	return hold;
}

/* Forget the last trigger's buffers. */
void t3_hold_reset(struct t3_hold *hold)
{
	hold->buffers = 0;
}

/**
 * t3_hold_add - one more buffer of the trigger
 * @hold: not begun
 * @import: of a region of the trigger; may be there already
 * @write: it is the destination
 */
void t3_hold_add(struct t3_hold *hold, struct t3_import *import, bool write)
{
	u32 i;

	for (i = 0; i < hold->buffers; i++) {
		if (hold->held[i].import == import) {
			hold->held[i].write |= write;
			return;
		}
	}
	hold->held[hold->buffers++] = (struct t3_held) {
		.import = import, .write = write,
	};
}

static enum dma_data_direction direction(const struct t3_held *held)
{
	return held->write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
}

/* --- without locks -------------------------------------------------------- */

static int wait_fences(const struct t3_held *held, const struct t3_group *group)
{
	enum dma_resv_usage usage = dma_resv_usage_rw(held->write);
	long left;

	do {
		left = dma_resv_wait_timeout(held->buf->resv, usage, false,
					     HZ / 20);
		if (left)
			return left > 0 ? 0 : -EREMOTEIO;
	} while (!READ_ONCE(group->broken) &&
		 !READ_ONCE(held->import->closing));
	return -ECANCELED;
}

static void unprepare(struct t3_hold *hold, u32 n)
{
	while (n--) {
		const struct t3_held *held = &hold->held[n];

		dma_buf_end_cpu_access(held->buf, direction(held));
		dma_buf_put(held->buf);
	}
}

static int prepare_one(struct t3_held *held, const struct t3_group *group)
{
	int ret;

	held->buf = t3_import_get(held->import);
	if (!held->buf)
		return -ESTALE;
	ret = wait_fences(held, group);
	if (ret)
		goto put;
	ret = dma_buf_begin_cpu_access(held->buf, direction(held));
	if (ret)
		goto put;
	ret = t3_import_map(held->import, group);
	if (!ret)
		return 0;
	dma_buf_end_cpu_access(held->buf, direction(held));
put:
	dma_buf_put(held->buf);
	return ret;
}

/* Buffers may share a reservation; the first of them stands for it. */
static void find_twins(struct t3_hold *hold)
{
	struct t3_held *held = hold->held;
	u32 i, k;

	for (i = 0; i < hold->buffers; i++) {
		held[i].twin = false;
		held[i].fence_write = held[i].write;
		for (k = 0; k < i && !held[i].twin; k++) {
			if (held[k].buf->resv != held[i].buf->resv)
				continue;
			held[i].twin = true;
			held[k].fence_write |= held[i].write;
		}
	}
}

static int prepare(struct t3_hold *hold, const struct t3_group *group)
{
	u32 i;
	int ret;

	for (i = 0; i < hold->buffers; i++) {
		ret = prepare_one(&hold->held[i], group);
		if (ret) {
			unprepare(hold, i);
			return ret;
		}
	}
	find_twins(hold);
	return 0;
}

/* --- the reservations ----------------------------------------------------- */

/* The first @n, and @also. */
static void unlock(struct t3_hold *hold, u32 n, u32 also)
{
	u32 i;

	for (i = 0; i < hold->buffers; i++)
		if (!hold->held[i].twin && (i < n || i == also))
			dma_resv_unlock(hold->held[i].buf->resv);
}

/* All but @have, which is locked. Return: where it failed, or NONE. */
static u32 lock_others(struct t3_hold *hold, u32 have)
{
	u32 i;

	for (i = 0; i < hold->buffers; i++) {
		if (hold->held[i].twin || i == have)
			continue;
		if (dma_resv_lock(hold->held[i].buf->resv, &hold->ctx))
			return i;
	}
	return NONE;
}

static void lock_all(struct t3_hold *hold)
{
	u32 have = NONE, failed;

	ww_acquire_init(&hold->ctx, &reservation_ww_class);
	while ((failed = lock_others(hold, have)) != NONE) {
		/* An older one wants what we have: let go, then wait for it. */
		unlock(hold, failed, have);
		dma_resv_lock_slow(hold->held[failed].buf->resv, &hold->ctx);
		have = failed;
	}
	ww_acquire_done(&hold->ctx);
}

static void unlock_all(struct t3_hold *hold)
{
	unlock(hold, hold->buffers, NONE);
	ww_acquire_fini(&hold->ctx);
}

static void unuse(struct t3_hold *hold, u32 n)
{
	while (n--)
		t3_import_unuse(hold->held[n].import);
}

/* Has somebody put a fence there since we waited? Room for ours? */
static int reserve(struct t3_hold *hold)
{
	enum dma_resv_usage usage;
	u32 i;

	for (i = 0; i < hold->buffers; i++) {
		const struct t3_held *held = &hold->held[i];
		struct dma_resv *resv = held->buf->resv;

		if (held->twin)
			continue;
		usage = dma_resv_usage_rw(held->fence_write);
		if (!dma_resv_test_signaled(resv, usage))
			return -EAGAIN;
		if (dma_resv_reserve_fences(resv, 1))
			return -ENOMEM;
	}
	return 0;
}

/* All reservations are held. Return: 0; -EAGAIN, -ENOMEM. */
static int publish(struct t3_hold *hold)
{
	u32 i;
	int ret;

	ret = reserve(hold);
	if (ret)
		return ret;
	for (i = 0; i < hold->buffers; i++) {
		if (!t3_import_use(hold->held[i].import)) {
			unuse(hold, i);
			return -EAGAIN;
		}
	}
	hold->cookie = dma_fence_begin_signalling();
	for (i = 0; i < hold->buffers; i++)
		if (!hold->held[i].twin)
			dma_resv_add_fence(hold->held[i].buf->resv, hold->fence,
					   hold->held[i].fence_write ?
					   DMA_RESV_USAGE_WRITE :
					   DMA_RESV_USAGE_READ);
	return 0;
}

/* --- all of it ------------------------------------------------------------ */

static int try_begin(struct t3_hold *hold, const struct t3_group *group)
{
	int ret;

	ret = prepare(hold, group);
	if (ret)
		return ret;
	lock_all(hold);
	ret = publish(hold);
	unlock_all(hold);
	if (ret)
		unprepare(hold, hold->buffers);
	return ret;
}

/**
 * t3_hold_begin - hold all buffers of a trigger
 * @hold: with the buffers
 * @group: give up when it breaks
 *
 * Where an exporter moves a buffer without end this takes until the group's
 * watchdog ends it.
 *
 * Context: sleeps; on a worker only.
 * Return: 0: their addresses may be used until t3_hold_end(); -ECANCELED the
 * group broke; -ESTALE a region is being deleted; else why the buffers can't
 * be used.
 */
int t3_hold_begin(struct t3_hold *hold, const struct t3_group *group)
{
	int ret;

	hold->fence = t3_fence_new("trigger", hold->context, ++hold->seqno);
	if (!hold->fence)
		return -ENOMEM;
	while ((ret = try_begin(hold, group)) == -EAGAIN) {
		if (READ_ONCE(group->broken)) {
			ret = -ECANCELED;
			break;
		}
		usleep_range(10, 100);
	}
	if (ret)
		t3_fence_signal(hold->fence, ret);
	return ret;
}

/**
 * t3_hold_end - a trigger's bytes are moved, or will not be
 * @hold: begun
 * @error: 0, or a negative errno for who waits for the fence
 *
 * Context: sleeps.
 */
void t3_hold_end(struct t3_hold *hold, int error)
{
	t3_fence_signal(hold->fence, error);
	dma_fence_end_signalling(hold->cookie);
	unuse(hold, hold->buffers);
	unprepare(hold, hold->buffers);
}
