/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * dma-bufs of several makers, for the tests: of the test exporter, udmabuf and
 * vgem. A maker that is not there gives -ENODEV.
 */
#ifndef T3_KSELFTEST_DMABUFS_H
#define T3_KSELFTEST_DMABUFS_H

#include "t3_kselftest.h"
#include "../modules/exporter.h"

#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <xf86drm.h>
#include <xf86drmMode.h>

enum maker { MAKER_STATIC, MAKER_DYNAMIC, MAKER_UDMABUF, MAKER_VGEM };

/**
 * struct dbuf - a dma-buf as its owner sees it
 * @fd: it
 * @map: its memory, or MAP_FAILED: the test exporter's
 */
struct dbuf {
	int fd;
	size_t bytes;
	char *map;
	int node;	/* vgem's, else -1 */
	__u32 handle;
};

/* --- the test exporter ------------------------------------------------------ */

/* Loads the module where it was put; returns its device or -errno. */
static inline int exporter_open(void)
{
	int fd = open("/dev/t3_exporter", O_RDWR | O_CLOEXEC);
	int file;

	if (fd >= 0)
		return fd;
	file = open("/t/t3_exporter.ko", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -ENODEV;
	if (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST)
		fd = -errno;
	close(file);
	fd = open("/dev/t3_exporter", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -ENODEV : fd;
}

static inline int exporter_call(unsigned long code, void *arg)
{
	int dev = exporter_open();
	int ret;

	if (dev < 0)
		return dev;
	ret = ioctl(dev, code, arg) < 0 ? -errno : 0;
	close(dev);
	return ret;
}

/* Returns the dma-buf. */
static inline int exporter_new(size_t bytes, __u32 flags)
{
	struct exporter_new arg = { .size = bytes, .flags = flags, .fd = -1 };
	int ret = exporter_call(EXPORTER_IOC_NEW, &arg);

	return ret ? ret : arg.fd;
}

static inline int exporter_move(int fd, bool iomem)
{
	struct exporter_move arg = { .fd = fd, .iomem = iomem };

	return exporter_call(EXPORTER_IOC_MOVE, &arg);
}

static inline int exporter_chase(int fd, __u32 count)
{
	struct exporter_chase arg = { .fd = fd, .count = count };

	return exporter_call(EXPORTER_IOC_CHASE, &arg);
}

static inline int exporter_fail(int fd, __u32 what, __u32 count)
{
	struct exporter_fail arg = { .fd = fd, .what = what, .count = count };

	return exporter_call(EXPORTER_IOC_FAIL, &arg);
}

static inline int exporter_fence(int fd, bool write)
{
	struct exporter_fence arg = { .fd = fd, .write = write };

	return exporter_call(EXPORTER_IOC_FENCE, &arg);
}

static inline int exporter_signal(int fd, int error)
{
	struct exporter_fence arg = { .fd = fd, .signal = 1, .error = error };

	return exporter_call(EXPORTER_IOC_FENCE, &arg);
}

static inline struct exporter_stat exporter_stat(void)
{
	struct exporter_stat stat = { 0 };

	exporter_call(EXPORTER_IOC_STAT, &stat);
	return stat;
}

/*
 * A file's last reference may be dropped a moment after close(). Returns
 * whether nothing of the exporter's is left.
 */
static inline bool exporter_is_clean(void)
{
	struct exporter_stat stat = exporter_stat();

	FOR_EACH(i, 500) {
		if (!stat.buffers && !stat.attachments && !stat.mappings &&
		    !stat.begun)
			return true;
		sleep_ms(10);
		stat = exporter_stat();
	}
	fprintf(stderr, "# exporter: %u buffers, %u attachments, %u mappings, %u begun\n",
		stat.buffers, stat.attachments, stat.mappings, stat.begun);
	return false;
}

/* --- the kernel's own makers ------------------------------------------------ */

static inline int udmabuf_new(struct dbuf *b)
{
	struct udmabuf_create arg = {
		.flags = UDMABUF_FLAGS_CLOEXEC, .size = b->bytes,
	};
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return -ENODEV;
	arg.memfd = (__u32)memfd_create("udmabuf", MFD_CLOEXEC |
					MFD_ALLOW_SEALING);
	b->fd = -1;
	if (!ftruncate((int)arg.memfd, (off_t)b->bytes) &&
	    !fcntl((int)arg.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		b->fd = ioctl(dev, UDMABUF_CREATE, &arg);
	b->map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      (int)arg.memfd, 0);
	close((int)arg.memfd);
	close(dev);
	return b->fd < 0 ? -errno : 0;
}

/* The node of a DRM driver; -ENODEV. */
static inline int drm_node(const char *driver)
{
	drmVersionPtr version;
	char path[32];
	bool same;
	int fd;

	FOR_EACH(i, 8) {
		snprintf(path, sizeof(path), "/dev/dri/card%u", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		version = drmGetVersion(fd);
		same = version && !strcmp(version->name, driver);
		drmFreeVersion(version);
		if (same)
			return fd;
		close(fd);
	}
	return -ENODEV;
}

static inline int vgem_new(struct dbuf *b)
{
	uint64_t bytes;
	__u32 pitch;

	b->node = drm_node("vgem");
	if (b->node < 0)
		return b->node;
	if (drmModeCreateDumbBuffer(b->node, (__u32)(b->bytes / 4), 1, 32, 0,
				    &b->handle, &pitch, &bytes) ||
	    drmPrimeHandleToFD(b->node, b->handle, DRM_CLOEXEC | DRM_RDWR,
			       &b->fd))
		return -errno;
	b->map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      b->fd, 0);
	return b->map == MAP_FAILED ? -errno : 0;
}

/* --- any of them ------------------------------------------------------------- */

static inline int dbuf_new(struct dbuf *b, enum maker by, size_t bytes)
{
	*b = (struct dbuf) { .fd = -1, .bytes = bytes, .map = MAP_FAILED,
			     .node = -1 };
	if (by == MAKER_UDMABUF)
		return udmabuf_new(b);
	if (by == MAKER_VGEM)
		return vgem_new(b);
	b->fd = exporter_new(bytes, by == MAKER_DYNAMIC ?
				    EXPORTER_DYNAMIC : 0);
	return b->fd < 0 ? b->fd : 0;
}

static inline void dbuf_close(struct dbuf *b)
{
	if (b->map != MAP_FAILED)
		munmap(b->map, b->bytes);
	if (b->fd >= 0)
		close(b->fd);
	if (b->node >= 0)
		close(b->node);
	b->fd = -1;
	b->node = -1;
	b->map = MAP_FAILED;
}

static inline int dbuf_sync(const struct dbuf *b, __u64 flags)
{
	struct dma_buf_sync arg = { .flags = flags | DMA_BUF_SYNC_RW };

	return ioctl(b->fd, DMA_BUF_IOCTL_SYNC, &arg) ? -errno : 0;
}

/* As its owner writes or reads it. */
static inline int dbuf_io(const struct dbuf *b, bool write, size_t offset,
			  void *data, size_t bytes)
{
	struct exporter_io arg = {
		.fd = b->fd, .write = write, .offset = offset,
		.bytes = bytes, .user = (uintptr_t)data,
	};

	if (b->map == MAP_FAILED)
		return exporter_call(EXPORTER_IOC_IO, &arg);
	if (dbuf_sync(b, DMA_BUF_SYNC_START))
		return -errno;
	if (write)
		memcpy(b->map + offset, data, bytes);
	else
		memcpy(data, b->map + offset, bytes);
	return dbuf_sync(b, DMA_BUF_SYNC_END);
}

static inline int region_import(int member, int fd, __u64 offset, __u32 rows,
				__u64 row_bytes, __u64 row_stride,
				__u32 flags, __u32 *region)
{
	struct t3_region_add how = {
		.type = T3_REGION_DMABUF, .flags = flags,
		.dtype = T3_DTYPE_I32, .base = offset,
		.row_bytes = row_bytes, .row_stride = row_stride,
		.rows = rows, .fd = fd,
	};

	return region_add_full(member, &how, region);
}

#endif /* T3_KSELFTEST_DMABUFS_H */
