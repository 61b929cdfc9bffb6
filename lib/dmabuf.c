// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions in dma-bufs.
 */
#include <errno.h>

#include "front.h"

int t3_region_dmabuf(const char *call, struct t3_member *member,
		     const struct t3_matrix *matrix, int fd,
		     struct t3_region **region)
{
	if (!member)
		return t3_fail_null(call, "member");
	if (fd < 0)
		return t3_fail(EBADF, "%s: fd is %d, allowed are dma-bufs",
			       call, fd);
	if (!member->ops->dmabufs)
		return t3_fail(EOPNOTSUPP, "%s: the %s engine takes no dma-bufs, the kernel engine does",
			       call, member->ops->name);
	return t3_region_make(call, member, matrix, fd, region);
}

int t3_region_add_dmabuf(struct t3_member *member,
			 const struct t3_matrix *matrix, int fd,
			 struct t3_region **region)
{
	return t3_region_dmabuf(__func__, member, matrix, fd, region);
}
