/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The test exporter: /dev/t3_exporter, which makes dma-bufs that move, fail and
 * count. Shared by the module and the tests.
 */
#ifndef T3_TEST_EXPORTER_H
#define T3_TEST_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* exporter_new.flags */
#define EXPORTER_DYNAMIC	1	/* may move */
#define EXPORTER_IOMEM		2	/* says that its mapping is I/O memory */
#define EXPORTER_NO_VMAP	4	/* the CPU can't map it */
#define EXPORTER_READ_ONLY	8	/* opened for reading */

struct exporter_new {
	__u64 size;
	__u32 flags;
	__s32 fd;
};

/* Read or write @bytes at @offset, as the buffer's owner. */
struct exporter_io {
	__s32 fd;
	__u32 write;
	__u64 offset;
	__u64 bytes;
	__u64 user;
};

/* The next @count calls of the operation fail. */
enum exporter_what { EXPORTER_ATTACH, EXPORTER_BEGIN, EXPORTER_MAP,
		     EXPORTER_WHATS };

struct exporter_fail {
	__s32 fd;	/* -1: of the next buffer that is made */
	__u32 what;
	__u32 count;
};

/* The next @count CPU mappings are each followed by a move at once. */
struct exporter_chase {
	__s32 fd;
	__u32 count;
};

/* @iomem: from the next move on the mapping is I/O memory */
struct exporter_move {
	__s32 fd;
	__u32 iomem;
};

/* A fence of somebody else on the buffer; @signal: signal it, with @error. */
struct exporter_fence {
	__s32 fd;
	__u32 write;
	__u32 signal;
	__s32 error;
};

/* Of all buffers. */
struct exporter_stat {
	__u32 buffers;
	__u32 attachments;
	__u32 mappings;
	__u32 moves;
	__u32 notified;	/* moves while somebody was attached */
	__u32 begun;	/* CPU accesses that have begun and not ended */
	__u32 fenced;	/* moves that had to wait for a fence of t3's */
	__u32 __reserved;
};

#define EXPORTER_IOC_NEW	_IOWR('x', 0, struct exporter_new)
#define EXPORTER_IOC_IO		_IOW('x', 1, struct exporter_io)
#define EXPORTER_IOC_FAIL	_IOW('x', 2, struct exporter_fail)
#define EXPORTER_IOC_CHASE	_IOW('x', 3, struct exporter_chase)
#define EXPORTER_IOC_MOVE	_IOW('x', 4, struct exporter_move)
#define EXPORTER_IOC_FENCE	_IOW('x', 5, struct exporter_fence)
#define EXPORTER_IOC_STAT	_IOR('x', 6, struct exporter_stat)

#endif /* T3_TEST_EXPORTER_H */
