/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: what differs between kernels. T3_HAS_* come from the compile probes in
 * probes/, never from version numbers: distributions backport.
 */
#ifndef T3_COMPAT_H
#define T3_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#ifdef T3_HAS_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

static inline void t3_vm_flags_set(struct vm_area_struct *vma,
				   unsigned long flags)
{
#ifdef T3_HAS_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void t3_vm_flags_clear(struct vm_area_struct *vma,
				     unsigned long flags)
{
#ifdef T3_HAS_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/* Caller holds mmap_lock. */
static inline long t3_pin_user_pages(unsigned long start, unsigned long pages,
				     unsigned int flags, struct page **page)
{
#ifdef T3_HAS_PIN_VMAS
	return pin_user_pages(start, pages, flags, page, NULL);
#else
	return pin_user_pages(start, pages, flags, page);
#endif
}

/* The command's 16 bytes, in memory that the user may write at any time. */
static inline const void *t3_uring_sqe_cmd(const struct io_uring_cmd *cmd)
{
#ifdef T3_HAS_URING_SQE
	return io_uring_sqe_cmd(cmd->sqe);
#else
	return cmd->cmd;
#endif
}

static inline void t3_uring_done(struct io_uring_cmd *cmd, int ret,
				 unsigned int issue_flags)
{
#ifdef T3_HAS_URING_DONE_RES2
	io_uring_cmd_done(cmd, ret, 0, issue_flags);
#else
	io_uring_cmd_done(cmd, ret, issue_flags);
#endif
}

static inline void t3_hrtimer_setup(struct hrtimer *timer,
				    enum hrtimer_restart (*fn)(struct hrtimer *),
				    enum hrtimer_mode mode)
{
#ifdef T3_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = fn;
#endif
}

#ifdef T3_HAS_IMPORT_NS_TOKEN
#define T3_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define T3_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/* Caller does not hold the buffer's reservation. */
static inline int t3_dma_buf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
#ifdef T3_HAS_DMA_BUF_VMAP_UNLOCKED
	return dma_buf_vmap_unlocked(buf, map);
#else
	return dma_buf_vmap(buf, map);
#endif
}

/* Likewise. */
static inline void t3_dma_buf_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
#ifdef T3_HAS_DMA_BUF_VMAP_UNLOCKED
	dma_buf_vunmap_unlocked(buf, map);
#else
	dma_buf_vunmap(buf, map);
#endif
}

#endif /* T3_COMPAT_H */
