// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dma-buf exporter for tests. It keeps to the rules of dma-buf and makes the
 * most of them: a buffer moves between an importer's mapping it and its using
 * it; what was its memory is overwritten at once, so that whoever still reads
 * or writes there gets the wrong bytes; each operation can be made to fail.
 */
#define pr_fmt(fmt) "t3_exporter: " fmt

#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "exporter.h"

MODULE_DESCRIPTION("dma-bufs that move, for tests of t3");
MODULE_LICENSE("Dual MIT/GPL");
T3_IMPORT_NS_DMA_BUF;

#define POISON		0x5a
#define SIZE_MOST	(64 << 20)

/**
 * struct buffer - a dma-buf of ours
 * @dmabuf: it
 * @flags: EXPORTER_*
 * @lock: mutex: @mem, @mapped and @iomem; taken under the reservation
 * @mem: where it is now
 * @mapped: what the mapping shows, or NULL
 * @iomem: the mapping says so
 * @fail: how many calls are still to fail
 * @chase: how many mappings are still to be followed by a move
 * @chaser: moves it
 * @fence: somebody's, or NULL; under the reservation
 */
struct buffer {
	struct dma_buf *dmabuf;
	u32 flags;
	struct mutex lock; /* see above */
	void *mem;
	void *mapped;
	bool iomem;
	atomic_t fail[EXPORTER_WHATS];
	atomic_t chase;
	struct work_struct chaser;
	struct dma_fence *fence;
};

static atomic_t buffers, attachments, mappings, moves, notified, begun, fenced;
static atomic_t fail_next[EXPORTER_WHATS];

static bool shall_fail(atomic_t *count)
{
	return atomic_dec_if_positive(count) >= 0;
}

/* --- fences of somebody else ----------------------------------------------- */

struct other_fence {
	struct dma_fence base;
	spinlock_t lock; /* of @base */
};

static const char *other_name(struct dma_fence *fence)
{
	return "t3_exporter";
}

static const struct dma_fence_ops other_ops = {
	.get_driver_name = other_name,
	.get_timeline_name = other_name,
};

static struct dma_fence *other_new(void)
{
	struct other_fence *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return NULL;
	spin_lock_init(&f->lock);
	dma_fence_init(&f->base, &other_ops, &f->lock,
		       dma_fence_context_alloc(1), 1);
	return &f->base;
}

/* Caller holds the reservation. */
static void other_signal(struct buffer *b, int error)
{
	struct dma_fence *fence = b->fence;

	if (!fence)
		return;
	b->fence = NULL;
	if (error)
		dma_fence_set_error(fence, error);
	dma_fence_signal(fence);
	dma_fence_put(fence);
}

static int put_fence(struct buffer *b, const struct exporter_fence *arg)
{
	struct dma_resv *resv = b->dmabuf->resv;
	struct dma_fence *fence = arg->signal ? NULL : other_new();
	int ret;

	if (!arg->signal && !fence)
		return -ENOMEM;
	dma_resv_lock(resv, NULL);
	other_signal(b, arg->error);
	ret = fence ? dma_resv_reserve_fences(resv, 1) : 0;
	if (fence && !ret) {
		dma_resv_add_fence(resv, fence,
				   arg->write ? DMA_RESV_USAGE_WRITE :
						DMA_RESV_USAGE_READ);
		b->fence = fence;
	} else {
		dma_fence_put(fence);
	}
	dma_resv_unlock(resv);
	return ret;
}

/* --- moving --------------------------------------------------------------- */

static bool is_t3(struct dma_fence *fence)
{
	return !strcmp(fence->ops->get_driver_name(fence), "t3") &&
	       !dma_fence_is_signaled(fence);
}

/* As a buffer is moved by the rules: when all fences on it are signalled. */
static int wait_fences(struct dma_resv *resv)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;
	bool t3 = false;

	dma_resv_for_each_fence(&cursor, resv, DMA_RESV_USAGE_BOOKKEEP, fence)
		t3 |= is_t3(fence);
	atomic_add(t3, &fenced);
	return dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false,
				     5 * HZ) > 0 ? 0 : -ETIME;
}

/* Whoever has it mapped keeps the old memory until he unmaps it. */
static void take_place(struct buffer *b, void *mem, bool iomem)
{
	void *old;

	mutex_lock(&b->lock);
	old = b->mem;
	memcpy(mem, old, b->dmabuf->size);
	memset(old, POISON, b->dmabuf->size);
	b->mem = mem;
	b->iomem |= iomem;
	if (old == b->mapped)
		old = NULL;
	mutex_unlock(&b->lock);
	vfree(old);
}

static int move(struct buffer *b, bool iomem)
{
	struct dma_resv *resv = b->dmabuf->resv;
	void *mem;
	int ret;

	if (!(b->flags & EXPORTER_DYNAMIC))
		return -EPERM;
	mem = vmalloc(b->dmabuf->size);
	if (!mem)
		return -ENOMEM;
	dma_resv_lock(resv, NULL);
	ret = wait_fences(resv);
	if (!ret) {
		take_place(b, mem, iomem);
		atomic_inc(&moves);
		atomic_add(!list_empty(&b->dmabuf->attachments), &notified);
		dma_buf_move_notify(b->dmabuf);
	}
	dma_resv_unlock(resv);
	if (ret)
		vfree(mem);
	return ret;
}

static void chaser(struct work_struct *work)
{
	struct buffer *b = container_of(work, struct buffer, chaser);

	if (move(b, false))
		pr_warn("cannot move\n");
	dma_buf_put(b->dmabuf);
}

/* --- operations ----------------------------------------------------------- */

static int attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	struct buffer *b = dmabuf->priv;

	if (shall_fail(&b->fail[EXPORTER_ATTACH]))
		return -EIO;
	atomic_inc(&attachments);
	return 0;
}

static void detach(struct dma_buf *dmabuf,
		   struct dma_buf_attachment *attachment)
{
	atomic_dec(&attachments);
}

static int pin(struct dma_buf_attachment *attachment)
{
	return 0;
}

static void unpin(struct dma_buf_attachment *attachment)
{
}

static int fill_table(struct buffer *b, struct sg_table *sgt)
{
	unsigned long i, n = b->dmabuf->size >> PAGE_SHIFT;
	struct page **page = kvmalloc_array(n, sizeof(*page), GFP_KERNEL);
	int ret;

	if (!page)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		page[i] = vmalloc_to_page(b->mem + (i << PAGE_SHIFT));
	ret = sg_alloc_table_from_pages(sgt, page, n, 0, b->dmabuf->size,
					GFP_KERNEL);
	kvfree(page);
	return ret;
}

static struct sg_table *map_dma_buf(struct dma_buf_attachment *attachment,
				    enum dma_data_direction dir)
{
	struct buffer *b = attachment->dmabuf->priv;
	struct sg_table *sgt;
	int ret;

	if (shall_fail(&b->fail[EXPORTER_MAP]))
		return ERR_PTR(-EIO);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = fill_table(b, sgt);
	if (ret)
		goto free;
	ret = dma_map_sgtable(attachment->dev, sgt, dir, 0);
	if (!ret)
		return sgt;
	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void unmap_dma_buf(struct dma_buf_attachment *attachment,
			  struct sg_table *sgt, enum dma_data_direction dir)
{
	dma_unmap_sgtable(attachment->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct buffer *b = dmabuf->priv;

	if (shall_fail(&b->fail[EXPORTER_BEGIN]))
		return -EIO;
	/* As some exporters do; whoever calls with it held stops here. */
	dma_resv_lock(dmabuf->resv, NULL);
	dma_resv_unlock(dmabuf->resv);
	atomic_inc(&begun);
	return 0;
}

static int end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	dma_resv_lock(dmabuf->resv, NULL);
	dma_resv_unlock(dmabuf->resv);
	atomic_dec(&begun);
	return 0;
}

static int exporter_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct buffer *b = dmabuf->priv;

	mutex_lock(&b->lock);
	b->mapped = b->mem;
	if (b->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)b->mem);
	else
		iosys_map_set_vaddr(map, b->mem);
	mutex_unlock(&b->lock);
	atomic_inc(&mappings);
	if (shall_fail(&b->chase)) {
		get_dma_buf(dmabuf);
		if (!queue_work(system_unbound_wq, &b->chaser))
			dma_buf_put(dmabuf);
	}
	return 0;
}

static void exporter_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct buffer *b = dmabuf->priv;
	void *old;

	mutex_lock(&b->lock);
	old = b->mapped;
	b->mapped = NULL;
	if (old == b->mem)
		old = NULL;
	mutex_unlock(&b->lock);
	vfree(old);
	atomic_dec(&mappings);
}

static void release(struct dma_buf *dmabuf)
{
	struct buffer *b = dmabuf->priv;

	other_signal(b, 0);
	vfree(b->mem);
	kfree(b);
	atomic_dec(&buffers);
}

#define COMMON_OPS							\
	.attach = attach, .detach = detach,				\
	.map_dma_buf = map_dma_buf, .unmap_dma_buf = unmap_dma_buf,	\
	.begin_cpu_access = begin_cpu_access,				\
	.end_cpu_access = end_cpu_access, .release = release

static const struct dma_buf_ops static_ops = {
	COMMON_OPS, .vmap = exporter_vmap, .vunmap = exporter_vunmap,
};

static const struct dma_buf_ops dynamic_ops = {
	COMMON_OPS, .vmap = exporter_vmap, .vunmap = exporter_vunmap,
	.pin = pin, .unpin = unpin,
};

static const struct dma_buf_ops unmappable_ops = {
	COMMON_OPS, .pin = pin, .unpin = unpin,
};

static const struct dma_buf_ops *choose_ops(u32 flags)
{
	if (flags & EXPORTER_NO_VMAP)
		return &unmappable_ops;
	return flags & EXPORTER_DYNAMIC ? &dynamic_ops : &static_ops;
}

/* --- making them ---------------------------------------------------------- */

static struct buffer *buffer_alloc(const struct exporter_new *arg)
{
	struct buffer *b = kzalloc(sizeof(*b), GFP_KERNEL);
	u32 i;

	if (!b)
		return NULL;
	b->mem = vzalloc(arg->size);
	if (!b->mem) {
		kfree(b);
		return NULL;
	}
	b->flags = arg->flags;
	b->iomem = arg->flags & EXPORTER_IOMEM;
	mutex_init(&b->lock);
	INIT_WORK(&b->chaser, chaser);
	for (i = 0; i < EXPORTER_WHATS; i++)
		atomic_set(&b->fail[i], atomic_xchg(&fail_next[i], 0));
	return b;
}

static int buffer_new(struct exporter_new *arg)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	struct buffer *b;

	if (!arg->size || arg->size > SIZE_MOST || arg->size & ~PAGE_MASK)
		return -EINVAL;
	b = buffer_alloc(arg);
	if (!b)
		return -ENOMEM;
	info.ops = choose_ops(arg->flags);
	info.size = arg->size;
	info.flags = arg->flags & EXPORTER_READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = b;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		vfree(b->mem);
		kfree(b);
		return PTR_ERR(dmabuf);
	}
	b->dmabuf = dmabuf;
	atomic_inc(&buffers);
	arg->fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (arg->fd < 0)
		dma_buf_put(dmabuf);
	return min(arg->fd, 0);
}

/* With a reference. */
static struct buffer *buffer_get(int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	if (dmabuf->ops->release == release)
		return dmabuf->priv;
	dma_buf_put(dmabuf);
	return ERR_PTR(-EBADF);
}

static int buffer_io(struct buffer *b, const struct exporter_io *arg)
{
	void *bounce;
	int ret = 0;

	if (arg->bytes > b->dmabuf->size ||
	    arg->offset > b->dmabuf->size - arg->bytes)
		return -ERANGE;
	bounce = vmalloc(arg->bytes + 1);
	if (!bounce)
		return -ENOMEM;
	if (arg->write && copy_from_user(bounce, u64_to_user_ptr(arg->user),
					 arg->bytes))
		ret = -EFAULT;
	dma_resv_lock(b->dmabuf->resv, NULL);
	if (!ret && arg->write)
		memcpy(b->mem + arg->offset, bounce, arg->bytes);
	else if (!ret)
		memcpy(bounce, b->mem + arg->offset, arg->bytes);
	dma_resv_unlock(b->dmabuf->resv);
	if (!ret && !arg->write && copy_to_user(u64_to_user_ptr(arg->user),
						bounce, arg->bytes))
		ret = -EFAULT;
	vfree(bounce);
	return ret;
}

static void fill_stat(struct exporter_stat *stat)
{
	*stat = (struct exporter_stat) {
		.buffers = atomic_read(&buffers),
		.attachments = atomic_read(&attachments),
		.mappings = atomic_read(&mappings),
		.moves = atomic_read(&moves),
		.notified = atomic_read(&notified),
		.begun = atomic_read(&begun),
		.fenced = atomic_read(&fenced),
	};
}

union exporter_arg {
	__s32 fd;	/* where it has one: first, but for NEW and STAT */
	struct exporter_new new;
	struct exporter_io io;
	struct exporter_fail fail;
	struct exporter_chase chase;
	struct exporter_move move;
	struct exporter_fence fence;
	struct exporter_stat stat;
};

static int on_buffer(struct buffer *b, unsigned int code,
		     const union exporter_arg *arg)
{
	switch (code) {
	case EXPORTER_IOC_IO:
		return buffer_io(b, &arg->io);
	case EXPORTER_IOC_FAIL:
		if (arg->fail.what >= EXPORTER_WHATS)
			return -EINVAL;
		atomic_set(&b->fail[arg->fail.what], arg->fail.count);
		return 0;
	case EXPORTER_IOC_CHASE:
		atomic_set(&b->chase, arg->chase.count);
		return 0;
	case EXPORTER_IOC_MOVE:
		return move(b, arg->move.iomem);
	case EXPORTER_IOC_FENCE:
		return put_fence(b, &arg->fence);
	default:
		return -ENOTTY;
	}
}

static int dispatch(unsigned int code, union exporter_arg *arg)
{
	struct buffer *b;
	int ret;

	if (code == EXPORTER_IOC_NEW)
		return buffer_new(&arg->new);
	if (code == EXPORTER_IOC_STAT) {
		fill_stat(&arg->stat);
		return 0;
	}
	if (code == EXPORTER_IOC_FAIL && arg->fd < 0) {
		if (arg->fail.what >= EXPORTER_WHATS)
			return -EINVAL;
		atomic_set(&fail_next[arg->fail.what], arg->fail.count);
		return 0;
	}
	b = buffer_get(arg->fd);
	if (IS_ERR(b))
		return PTR_ERR(b);
	ret = on_buffer(b, code, arg);
	dma_buf_put(b->dmabuf);
	return ret;
}

static long exporter_ioctl(struct file *file, unsigned int code,
			   unsigned long user)
{
	void __user *at = (void __user *)user;
	union exporter_arg arg = { };
	int ret;

	if (_IOC_SIZE(code) > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(code) & _IOC_WRITE &&
	    copy_from_user(&arg, at, _IOC_SIZE(code)))
		return -EFAULT;
	ret = dispatch(code, &arg);
	if (!ret && _IOC_DIR(code) & _IOC_READ &&
	    copy_to_user(at, &arg, _IOC_SIZE(code)))
		ret = -EFAULT;
	return ret;
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "t3_exporter",
	.fops = &exporter_fops,
	.mode = 0666,
};

module_misc_device(device);
