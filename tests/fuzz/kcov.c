// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ioctl fuzzer: what code the kernel ran through for this process.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ioctl.h"

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0
#define KCOV_ENTRIES	(64 << 10)

static unsigned long *cover;

bool kcov_begin(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	void *p;

	if (fd < 0)
		return false;
	if (ioctl(fd, KCOV_INIT_TRACE, KCOV_ENTRIES))
		goto fail;
	p = mmap(NULL, KCOV_ENTRIES * sizeof(unsigned long),
		 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		goto fail;
	/* The descriptor stays open: it is this thread's for its life. */
	if (ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		goto fail;
	cover = p;
	return true;

fail:
	close(fd);
	return false;
}

void kcov_reset(void)
{
	if (cover)
		__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
}

static __u32 hash(unsigned long x)
{
	x *= 0x9e3779b97f4a7c15;
	return x >> 48;
}

/* Steps from one place in the code to the next, in the manner of AFL. */
void kcov_collect(__u8 *seen, __u32 salt)
{
	unsigned long i, n, before = 0;

	if (!cover)
		return;
	n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (i = 0; i < n && i < KCOV_ENTRIES - 1; i++) {
		unsigned long pc = cover[i + 1];

		seen[hash(pc ^ (before << 1) ^ ((unsigned long)salt << 56)) %
		     FEATURES] = 1;
		before = pc;
	}
}
