// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The device and groups.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "kernel.h"

static const char *open_trouble(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return "the module t3 is not loaded";
	case EACCES:
	case EPERM:
		return "this user may not open it";
	default:
		return strerror(error);
	}
}

/* What keeps this kernel's t3 from being used; NULL: nothing. */
static const char *query_trouble(int fd, struct t3_query *query)
{
	*query = (struct t3_query) { .size = sizeof(*query) };
	if (kernel_call(fd, T3_QUERY, query))
		return "the module and this library can't speak with each other";
	if ((query->features & KERNEL_NEEDS) != KERNEL_NEEDS)
		return "the module lacks features that this library needs";
	return NULL;
}

int kernel_open(const char *call, int *fd, struct t3_query *query)
{
	const char *trouble;

	*fd = open(KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return t3_fail(errno == EMFILE || errno == ENFILE ? EMFILE : ENODEV,
			       "%s: " KERNEL_DEVICE ": %s", call,
			       open_trouble(errno));
	trouble = query_trouble(*fd, query);
	if (!trouble)
		return 0;
	close(*fd);
	return t3_fail(ENODEV, "%s: " KERNEL_DEVICE ": %s", call, trouble);
}

int kernel_probe(char *why, size_t bytes)
{
	struct t3_query query;
	const char *trouble = NULL;
	int fd = open(KERNEL_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		trouble = open_trouble(errno);
	} else {
		trouble = query_trouble(fd, &query);
		close(fd);
	}
	snprintf(why, bytes, "kernel: " KERNEL_DEVICE ": %s",
		 trouble ? trouble : "it is there");
	return trouble ? -ENODEV : 0;
}

int kernel_group_create(struct t3_group *group)
{
	struct t3_group_create create = {
		.size = sizeof(create),
		.ranks = group->ranks,
		.watchdog_ms = group->options.watchdog_ms,
	};
	struct t3_query query;
	int fd, ret;

	ret = kernel_open("t3_group_create", &fd, &query);
	if (ret)
		return ret;
	ret = kernel_call(fd, T3_GROUP_CREATE, &create);
	close(fd);
	if (ret == -ERANGE)
		return t3_fail(ERANGE,
			       "t3_group_create: watchdog_ms is %u, this kernel allows 1 to %u",
			       create.watchdog_ms, query.watchdog_max_ms);
	if (ret == -EMFILE || ret == -ENFILE)
		return t3_fail(EMFILE, "t3_group_create: no descriptor left: %s",
			       strerror(-ret));
	if (ret)
		return t3_fail(-ret, "t3_group_create: the kernel refused: %s",
			       strerror(-ret));
	group->fd = create.out_fd;
	return 0;
}

/*
 * A group answers INFO, as a member does; but only a group knows JOIN, which
 * here asks for a rank that none has.
 */
int kernel_group_is(int fd, uint32_t *ranks)
{
	struct t3_group_info info = { .size = sizeof(info) };
	struct t3_group_join join = { .size = sizeof(join), .rank = T3_NONE };
	int ret = kernel_call(fd, T3_GROUP_INFO, &info);

	if (ret == -EINVAL || ret == -E2BIG)
		return t3_fail(EPROTO, "the kernel's t3 group: another version");
	if (ret || kernel_call(fd, T3_GROUP_JOIN, &join) == -ENOTTY)
		return t3_fail(ENOTTY, "no group of the kernel engine");
	*ranks = info.ranks;
	return 0;
}
