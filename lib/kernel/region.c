// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions of the kernel engine.
 */
#include <sys/resource.h>

#include "kernel.h"

#define CALL		"t3_region_add"
#define CALL_DMABUF	"t3_region_add_dmabuf"

static uint64_t extent(const struct t3_region *region)
{
	return (region->rows - 1) * region->row_stride + region->row_bytes;
}

static int fail_quota(const struct t3_region *region)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	return t3_fail(EDQUOT,
		       "%s: the region needs %llu bytes of RLIMIT_MEMLOCK beside what is locked already, the limit is %llu",
		       CALL, (unsigned long long)extent(region),
		       (unsigned long long)limit.rlim_cur);
}

static int fail_dmabuf(const struct t3_region *region, int error)
{
	switch (error) {
	case E2BIG:	/* a module that does not know the field */
	case EOPNOTSUPP:
		return t3_fail(EOPNOTSUPP, "%s: the kernel's t3 module takes no dma-bufs",
			       CALL_DMABUF);
	case EBADF:
		return t3_fail(error, "%s: fd is %d, which is not open or not a dma-buf",
			       CALL_DMABUF, region->fd);
	case EFAULT:
		return t3_fail(error, "%s: fd %d is a dma-buf for reading only: it may be in a region with T3_REGION_READ_ONLY",
			       CALL_DMABUF, region->fd);
	case EMEDIUMTYPE:
		return t3_fail(error, "%s: fd %d is a dma-buf that the processor can't map, or is in I/O memory",
			       CALL_DMABUF, region->fd);
	case EREMOTEIO:
		return t3_fail(error, "%s: fd %d: the dma-buf's exporter refuses to attach or to map it",
			       CALL_DMABUF, region->fd);
	case ERANGE:
		return t3_fail(error, "%s: fd %d: the matrix's %llu bytes from %llu on end past the dma-buf",
			       CALL_DMABUF, region->fd,
			       (unsigned long long)extent(region),
			       (unsigned long long)(uintptr_t)region->matrix.base);
	default:
		return kernel_fail(region->member, CALL_DMABUF, error);
	}
}

static int fail(const struct t3_region *region, int error)
{
	const struct t3_matrix *m = &region->matrix;

	if (region->dmabuf)
		return fail_dmabuf(region, error);
	switch (error) {
	case EDQUOT:
		return fail_quota(region);
	case EMEDIUMTYPE:
		return t3_fail(error,
			       "%s: matrix->base is %p, memory of a kind that the kernel engine does not take: it takes anonymous, shmem, memfd and hugetlb memory",
			       CALL, m->base);
	case EFAULT:
		return t3_fail(error,
			       "%s: matrix->base is %p, of whose %llu bytes some are not mapped%s",
			       CALL, m->base, (unsigned long long)extent(region),
			       m->flags & T3_REGION_READ_ONLY ? "" :
			       " or not writable");
	case ENOSPC:
		return t3_fail(error, "%s: the member has as many regions as the kernel allows",
			       CALL);
	case ERANGE:
		return t3_fail(error, "%s: the matrix is larger than the kernel allows: %llu bytes",
			       CALL, (unsigned long long)extent(region));
	case EDOM:
		return t3_fail(error, "%s: matrix->base is %p, which is not aligned",
			       CALL, m->base);
	default:
		return kernel_fail(region->member, CALL, error);
	}
}

int kernel_region_add(struct t3_region *region)
{
	struct t3_region_add add = {
		.size = sizeof(add),
		.flags = region->matrix.flags,
		.type = region->dmabuf ? T3_REGION_DMABUF : T3_REGION_USER,
		.dtype = region->matrix.dtype,
		.base = (uintptr_t)region->matrix.base,
		.row_bytes = region->row_bytes,
		.row_stride = region->row_stride,
		.rows = region->rows,
		.fd = region->dmabuf ? region->fd : 0,
	};
	int ret;

	do {
		ret = kernel_issue(region->member, T3_REGION_ADD, &add);
	} while (ret == -EINTR);
	if (ret)
		return fail(region, -ret);
	((struct kernel_region *)region)->number = add.region;
	return 0;
}

void kernel_region_del(struct t3_region *region)
{
	struct t3_region_del del = {
		.size = sizeof(del),
		.region = kernel_region_number(region),
	};

	kernel_call(kernel_fd(region->member), T3_REGION_DEL, &del);
}
