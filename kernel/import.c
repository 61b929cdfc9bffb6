// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: imports: dma-bufs that regions lie in, their attachment and mapping.
 *
 * We are a dynamic importer: the exporter may move the buffer whenever no
 * fence of ours is on it. It tells of that with the buffer's reservation held,
 * perhaps out of memory reclaim, so that all we do then is to set a flag.
 *
 * Mapping is done without the reservation, since until 6.2 exporters took it
 * themselves; who uses a mapping takes the reservation afterwards, looks at
 * the flag and begins again where it is set (hold.c).
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/delay.h>
#include <linux/dma-resv.h>
#include <linux/module.h>

#include "compat.h"
#include "fence.h"
#include "import.h"

T3_IMPORT_NS_DMA_BUF;

/* Where dma-bufs lie for the test whether blocks overlap: no user's address. */
#define PLACES	BIT_ULL(63)

/* --- mapping -------------------------------------------------------------- */

/* The mapping goes; caller has set BUSY. */
static void unmap(struct t3_import *import)
{
	t3_dma_buf_vunmap(import->buf, &import->map);
	iosys_map_clear(&import->map);
}

static void set_state(struct t3_import *import, enum t3_import_state state)
{
	spin_lock(&import->lock);
	import->state = state;
	spin_unlock(&import->lock);
	wake_up_all(&import->idle);
}

/* Caller has set BUSY. Return: 0; -EMEDIUMTYPE, -EREMOTEIO, -ENOMEM. */
static int map(struct t3_import *import)
{
	int ret;

	WRITE_ONCE(import->moved, false);
	smp_mb();	/* what moves from here on is seen under the reservation */
	if (!import->buf->ops->vmap)
		return -EMEDIUMTYPE;
	ret = t3_dma_buf_vmap(import->buf, &import->map);
	if (ret)
		return ret == -ENOMEM ? ret : -EREMOTEIO;
	if (!import->map.is_iomem)
		return 0;
	unmap(import);
	return -EMEDIUMTYPE;
}

static void tidy(struct work_struct *work)
{
	struct t3_import *import =
		container_of(work, struct t3_import, tidy);
	bool mine;

	spin_lock(&import->lock);
	mine = import->state == T3_IMPORT_MAPPED && !import->users &&
	       READ_ONCE(import->moved);
	if (mine)
		import->state = T3_IMPORT_BUSY;
	spin_unlock(&import->lock);
	if (!mine)
		return;
	unmap(import);
	set_state(import, T3_IMPORT_UNMAPPED);
}

/* Caller (the exporter) holds the reservation. */
static void move_notify(struct dma_buf_attachment *attach)
{
	struct t3_import *import = attach->importer_priv;

	WRITE_ONCE(import->moved, true);
	queue_work(t3_slow_wq, &import->tidy);
}

static const struct dma_buf_attach_ops attach_ops = {
	.move_notify = move_notify,
};

/* Return: 1 mapped, and not moved as far as is known; 0 BUSY is ours; or why. */
static int try_map(struct t3_import *import, bool *was_mapped)
{
	int ret = -EAGAIN;

	spin_lock(&import->lock);
	*was_mapped = import->state == T3_IMPORT_MAPPED;
	if (import->closing)
		ret = -ESTALE;
	else if (*was_mapped && !READ_ONCE(import->moved))
		ret = 1;
	else if (import->state != T3_IMPORT_BUSY && !import->users)
		ret = 0;
	if (!ret)
		import->state = T3_IMPORT_BUSY;
	spin_unlock(&import->lock);
	return ret;
}

/**
 * t3_import_map - see that a dma-buf is mapped where it was last heard to be
 * @import: the import
 * @group: give up when it breaks; NULL: never
 *
 * The caller holds no reservation, and uses no import: it may have to wait
 * until others have stopped using a mapping that is out of date.
 *
 * Context: sleeps; on a worker only.
 * Return: 0; -ESTALE it is being closed; -ECANCELED the group broke;
 * -EMEDIUMTYPE the CPU can't reach it; -EREMOTEIO the exporter's refusal;
 * -ENOMEM.
 */
int t3_import_map(struct t3_import *import, const struct t3_group *group)
{
	bool was_mapped;
	int ret;

	for (;;) {
		ret = try_map(import, &was_mapped);
		if (ret != -EAGAIN)
			break;
		if (group && READ_ONCE(group->broken))
			return -ECANCELED;
		/* Whoever is at it wakes us; look again by ourselves too. */
		wait_event_timeout(import->idle,
				   READ_ONCE(import->state) != T3_IMPORT_BUSY &&
				   !READ_ONCE(import->users), HZ / 10);
	}
	if (ret)
		return min(ret, 0);
	if (was_mapped)
		unmap(import);
	ret = map(import);
	set_state(import, ret ? T3_IMPORT_UNMAPPED : T3_IMPORT_MAPPED);
	return ret;
}

/**
 * t3_import_use - begin to use the mapping
 * @import: the caller holds its reservation
 *
 * Context: may sleep. Return: false where it has moved meanwhile.
 */
bool t3_import_use(struct t3_import *import)
{
	bool good;

	spin_lock(&import->lock);
	good = import->state == T3_IMPORT_MAPPED && !import->closing &&
	       !READ_ONCE(import->moved);
	import->users += good;
	spin_unlock(&import->lock);
	return good;
}

/* The opposite. Context: may sleep. */
void t3_import_unuse(struct t3_import *import)
{
	bool moved;

	spin_lock(&import->lock);
	import->users--;
	moved = !import->users && READ_ONCE(import->moved) && !import->closing;
	if (moved)
		queue_work(t3_slow_wq, &import->tidy);
	/* Under the lock: it may be gone as soon as its closer finds 0. */
	wake_up_all(&import->idle);
	spin_unlock(&import->lock);
}

/* The dma-buf with a reference, or NULL where it is being closed. */
struct dma_buf *t3_import_get(struct t3_import *import)
{
	struct dma_buf *buf = NULL;

	spin_lock(&import->lock);
	if (!import->closing) {
		buf = import->buf;
		get_dma_buf(buf);
	}
	spin_unlock(&import->lock);
	return buf;
}

/* --- closing -------------------------------------------------------------- */

/* Is a fence of @context on a reservation that is not signalled? */
static bool is_pending(struct dma_resv *resv, u64 context)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	dma_resv_for_each_fence(&cursor, resv, DMA_RESV_USAGE_BOOKKEEP, fence)
		if (fence->context == context && !dma_fence_is_signaled(fence))
			return true;
	return false;
}

/* A fence of ours on a reservation that is over. Caller holds it. */
static struct dma_fence *find_ours(struct dma_resv *resv)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	dma_resv_for_each_fence(&cursor, resv, DMA_RESV_USAGE_BOOKKEEP, fence)
		if (t3_fence_is_ours(fence) &&
		    !is_pending(resv, fence->context))
			return fence;
	return NULL;
}

/*
 * Signalled fences stay on a reservation until others take their place. Ours
 * hold the module: leave none behind. One that a trigger of another region
 * has put there, and that is not signalled yet, goes when that one closes.
 */
static void remove_fences(struct dma_buf *buf)
{
	struct dma_fence *stub = dma_fence_get_stub();
	struct dma_fence *fence;

	dma_resv_lock(buf->resv, NULL);
	while ((fence = find_ours(buf->resv)))
		dma_resv_replace_fences(buf->resv, fence->context, stub,
					DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_unlock(buf->resv);
	dma_fence_put(stub);
}

static bool is_idle(struct t3_import *import)
{
	bool idle;

	spin_lock(&import->lock);
	idle = import->state != T3_IMPORT_BUSY && !import->users;
	spin_unlock(&import->lock);
	return idle;
}

/**
 * t3_import_close - unmap, detach, give the dma-buf back
 * @import: its region is marked as stale
 *
 * Waits for those who move bytes at this moment, or map or unmap; for no
 * fence.
 *
 * Context: sleeps.
 */
void t3_import_close(struct t3_import *import)
{
	bool mapped;

	spin_lock(&import->lock);
	import->closing = true;
	spin_unlock(&import->lock);
	while (!wait_event_timeout(import->idle, is_idle(import), 1))
		;
	mapped = import->state == T3_IMPORT_MAPPED;
	set_state(import, T3_IMPORT_BUSY);
	if (mapped)
		unmap(import);
	remove_fences(import->buf);
	dma_buf_detach(import->buf, import->attach);
	cancel_work_sync(&import->tidy);
	dma_buf_put(import->buf);
	set_state(import, T3_IMPORT_CLOSED);
}

/* --- opening -------------------------------------------------------------- */

static int refuse(struct t3_member *member, int fd, int ret)
{
	const char *why = "is not open";

	switch (ret) {
	case -EINVAL:
		why = "is not a dma-buf";
		ret = -EBADF;
		break;
	case -EMEDIUMTYPE:
		why = "can't be mapped for the CPU, or is in I/O memory";
		break;
	case -EFAULT:
		why = "is read-only: it may be in a read-only region only";
		break;
	case -EREMOTEIO:
		why = "is refused by its exporter";
		break;
	case -ENOMEM:
		return ret;
	}
	t3_say(member, "REGION_ADD: fd %d %s", fd, why);
	return ret;
}

static int check_end(struct t3_member *member, const struct t3_region *region,
		     const struct dma_buf *buf)
{
	u64 end = region->base + (region->rows - 1) * region->row_stride +
		  region->row_bytes;

	if (end <= buf->size)
		return 0;
	t3_say(member, "REGION_ADD: base %llu, %u rows of %llu bytes, stride %llu end at %llu: the dma-buf has %zu bytes",
	       region->base, region->rows, region->row_bytes,
	       region->row_stride, end, buf->size);
	return -ERANGE;
}

/* An import being opened, by a worker for its caller. */
struct opening {
	struct work_struct work;
	struct t3_import *import;
	int ret;
};

/* Attached, and mapped once to see that this can be done. */
static void open_work(struct work_struct *work)
{
	struct opening *o = container_of(work, struct opening, work);
	struct t3_import *import = o->import;

	import->attach = dma_buf_dynamic_attach(import->buf, t3_device(),
						&attach_ops, import);
	if (IS_ERR(import->attach)) {
		o->ret = PTR_ERR(import->attach) == -ENOMEM ? -ENOMEM :
							      -EREMOTEIO;
		return;
	}
	o->ret = t3_import_map(import, NULL);
	if (o->ret) {
		dma_buf_detach(import->buf, import->attach);
		cancel_work_sync(&import->tidy);
		return;
	}
	/* Until it is used the exporter is free to move it. */
	set_state(import, T3_IMPORT_BUSY);
	unmap(import);
	set_state(import, T3_IMPORT_UNMAPPED);
}

static int open(struct t3_import *import)
{
	struct opening o = { .import = import };

	INIT_WORK_ONSTACK(&o.work, open_work);
	queue_work(t3_slow_wq, &o.work);
	flush_work(&o.work);
	destroy_work_on_stack(&o.work);
	return o.ret;
}

static struct t3_import *import_alloc(struct dma_buf *buf)
{
	struct t3_import *import = kzalloc(sizeof(*import), GFP_KERNEL_ACCOUNT);

	if (!import)
		return NULL;
	import->buf = buf;
	spin_lock_init(&import->lock);
	init_waitqueue_head(&import->idle);
	INIT_WORK(&import->tidy, tidy);
	return import;
}

/**
 * t3_import_region - put a region into a dma-buf
 * @member: whose
 * @region: new, its geometry checked but for the buffer's end
 * @fd: the dma-buf
 *
 * Context: sleeps. Return: 0; -EBADF, -ERANGE, -EFAULT, -EMEDIUMTYPE,
 * -EREMOTEIO, -ENOMEM, see T3_REGION_ADD.
 */
int t3_import_region(struct t3_member *member, struct t3_region *region, int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct t3_import *import;
	int ret;

	if (IS_ERR(buf))
		return refuse(member, fd, PTR_ERR(buf));
	ret = check_end(member, region, buf);
	if (ret)
		goto put;
	ret = -EFAULT;
	if (!(region->flags & T3_REGION_READ_ONLY) &&
	    !(buf->file->f_mode & FMODE_WRITE))
		goto refuse;
	import = import_alloc(buf);
	ret = -ENOMEM;
	if (!import)
		goto put;
	ret = open(import);
	if (ret) {
		kfree(import);
		goto refuse;
	}
	region->import = import;
	t3_group_get(region->group);
	region->pinned = true;
	return 0;

refuse:
	ret = refuse(member, fd, ret);
put:
	dma_buf_put(buf);
	return ret;
}

/**
 * t3_import_place - where a region lies among all regions of its member
 * @member: the caller holds its lock
 * @region: with an import, not yet in the table
 *
 * Two regions of one dma-buf lie in one place, others don't meet.
 *
 * Return: 0, and @region->place is set; -ENOSPC.
 */
int t3_import_place(struct t3_member *member, struct t3_region *region)
{
	const struct dma_buf *buf = region->import->buf;
	u64 end = PLACES, start = 0, last;
	struct t3_region *other;
	unsigned long id;

	xa_for_each(&member->regions, id, other) {
		if (!other->import)
			continue;
		start = other->place - other->base;
		if (other->import->buf == buf)
			goto found;
		end = max(end, start + other->import->buf->size);
	}
	start = ALIGN(end, PAGE_SIZE);
	if (start < PLACES || check_add_overflow(start, (u64)buf->size, &last))
		return -ENOSPC;
found:
	region->place = start + region->base;
	return 0;
}
