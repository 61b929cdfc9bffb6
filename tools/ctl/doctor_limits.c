// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl doctor: what the system allows: pinned memory, io_uring, huge pages,
 * and looking.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor.h"

#define MEMLOCK_LITTLE	(64UL << 20)	/* a buffer of one large GEMM */
#define RAISE_MEMLOCK	\
	"\"@t3 - memlock unlimited\" in /etc/security/limits.d/t3.conf, then log in again; of a service: LimitMEMLOCK=infinity"
#define CAP_IPC_LOCK_BIT	14

static bool may_lock_anything(void)
{
	char *status = read_text_of("/proc/self/status");
	char *line = status ? strstr(status, "\nCapEff:") : NULL;
	unsigned long long caps = line ? strtoull(line + 8, NULL, 16) : 0;

	free(status);
	return caps >> CAP_IPC_LOCK_BIT & 1;
}

void examine_memlock(struct findings *f)
{
	struct rlimit limit;
	char *soft, *hard;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (may_lock_anything() || limit.rlim_cur == RLIM_INFINITY) {
		found(f, HEALTHY, "locked memory",
		      must_strdup("no limit for this user"), NULL, NULL);
		return;
	}
	soft = bytes_text(limit.rlim_cur);
	hard = limit.rlim_max == RLIM_INFINITY ? must_strdup("no limit") :
						 bytes_text(limit.rlim_max);
	if (limit.rlim_cur >= MEMLOCK_LITTLE)
		found(f, HEALTHY, "locked memory",
		      text_of("%s (may be raised to: %s)", soft, hard), NULL,
		      NULL);
	else
		found(f, WARNING, "locked memory",
		      text_of("%s (may be raised to: %s)", soft, hard),
		      "Registered buffers of one process may not be larger than this in all (EDQUOT).",
		      must_strdup(RAISE_MEMLOCK));
	free(soft);
	free(hard);
}

/* --- io_uring -------------------------------------------------------------------- */

#define RING_PARAMS_BYTES	120	/* struct io_uring_params */

/* Return: 0 or the negative errno of setting up a ring. */
static int try_ring(void)
{
	char params[RING_PARAMS_BYTES] = { 0 };
	long fd = syscall(SYS_io_uring_setup, 1, params);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

void examine_io_uring(struct findings *f)
{
	char *disabled = read_text_of("/proc/sys/kernel/io_uring_disabled");
	int ret = try_ring();

	if (!ret)
		found(f, HEALTHY, "io_uring", must_strdup("allowed"), NULL, NULL);
	else if (ret == -ENOMEM)
		found(f, WARNING, "io_uring",
		      must_strdup("no memory for a ring"),
		      "Rings of old kernels are charged to the limit of locked memory.",
		      must_strdup("raise that limit (see above)"));
	else if (ret == -EPERM || ret == -EACCES)
		found(f, WARNING, "io_uring",
		      text_of("forbidden: %s%s%s", strerror(-ret),
			      disabled ? ", kernel.io_uring_disabled = " : "",
			      disabled ? disabled : ""),
		      "libt3 uses ioctls: the same results.",
		      must_strdup("sysctl kernel.io_uring_disabled=0, or the sandbox's rules"));
	else
		found(f, WARNING, "io_uring",
		      text_of("not to be had: %s", strerror(-ret)),
		      "libt3 uses ioctls: the same results.", NULL);
	free(disabled);
}

/* --- huge pages ------------------------------------------------------------------ */

void examine_huge_pages(struct findings *f)
{
	char *thp = read_text_of("/sys/kernel/mm/transparent_hugepage/enabled");
	char *nr = read_text_of("/proc/sys/vm/nr_hugepages");
	const char *reserved = nr ? nr : "0";

	if (thp && strstr(thp, "[never]") && !strcmp(reserved, "0"))
		found(f, WARNING, "huge pages",
		      must_strdup("transparent ones are off, none are reserved"),
		      "Large buffers are pinned page by page: registering takes longer.",
		      must_strdup("echo madvise >/sys/kernel/mm/transparent_hugepage/enabled"));
	else
		found(f, HEALTHY, "huge pages",
		      text_of("transparent: %s; reserved: %s",
			      thp ? thp : "the kernel has none", reserved),
		      NULL, NULL);
	free(thp);
	free(nr);
}

/* --- looking ----------------------------------------------------------------------- */

void examine_debugfs(struct findings *f)
{
	char *text = read_text_of("/sys/kernel/debug/t3/state");
	char *module = path_of("/sys/module/t3");

	if (text)
		found(f, HEALTHY, "debugfs",
		      must_strdup("t3ctl ls and inspect see all groups"), NULL,
		      NULL);
	else if (!geteuid() && !access(module, F_OK))
		found(f, WARNING, "debugfs",
		      must_strdup("/sys/kernel/debug/t3/state can't be read"),
		      "t3ctl inspect can't say what triggers wait for.",
		      must_strdup("mount -t debugfs none /sys/kernel/debug"));
	free(text);
	free(module);
}
