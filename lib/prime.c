// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A GPU's buffer as a region: its PRIME file descriptor, by libdrm. That is
 * loaded when it is needed, so that libt3 depends on it nowhere else.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "front.h"

#define LIBDRM	"libdrm.so.2"

typedef int (*handle_to_fd_fn)(int fd, uint32_t handle, uint32_t flags,
			       int *prime_fd);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static handle_to_fd_fn handle_to_fd;	/* set once */

static void load(void)
{
	void *libdrm = dlopen(LIBDRM, RTLD_NOW | RTLD_LOCAL);

	if (libdrm)
		handle_to_fd = (handle_to_fd_fn)dlsym(libdrm,
						      "drmPrimeHandleToFD");
}

int t3_region_add_prime(struct t3_member *member,
			const struct t3_matrix *matrix, int drm_fd,
			uint32_t handle, struct t3_region **region)
{
	int fd, ret;

	if (!member)
		return t3_fail_null(__func__, "member");
	pthread_once(&once, load);
	if (!handle_to_fd)
		return t3_fail(ELIBACC, "%s: %s is not installed, or has no drmPrimeHandleToFD()",
			       __func__, LIBDRM);
	/* libdrm's DRM_CLOEXEC and DRM_RDWR are these. */
	if (handle_to_fd(drm_fd, handle, O_CLOEXEC | O_RDWR, &fd)) {
		ret = errno;
		return t3_fail(ret, "%s: drm_fd %d, handle %u: no file descriptor for it: error %d",
			       __func__, drm_fd, handle, ret);
	}
	ret = t3_region_dmabuf(__func__, member, matrix, fd, region);
	close(fd);
	return ret;
}
