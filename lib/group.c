// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Groups: made, passed on, met at a path.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "front.h"
#include "rendezvous.h"

int t3_version(void)
{
	return T3_VERSION_MAJOR * 10000 + T3_VERSION_MINOR * 100 +
	       T3_VERSION_PATCH;
}

static struct t3_group *new_group(const char *call, uint32_t ranks,
				  const struct t3_options *options)
{
	struct t3_group *group = calloc(1, sizeof(*group));

	if (!group) {
		t3_fail(ENOMEM, "%s: no memory", call);
		return NULL;
	}
	group->fd = -1;
	group->ranks = ranks;
	group->options = *options;
	return group;
}

/* The caller has checked the numbers and taken the options. */
static int create(const char *call, uint32_t ranks,
		  const struct t3_options *options, struct t3_group **out)
{
	struct t3_group *group = new_group(call, ranks, options);
	int ret;

	if (!group)
		return -ENOMEM;
	ret = t3_engine_find(call, options->engine, &group->ops);
	if (!ret) {
		group->options.engine = group->ops->id;
		ret = group->ops->group_create(group);
	}
	if (ret) {
		free(group);
		return ret;
	}
	*out = group;
	return 0;
}

int t3_group_create(uint32_t ranks, const struct t3_options *options,
		    struct t3_group **group)
{
	struct t3_options taken;
	int ret;

	if (!group)
		return t3_fail_null(__func__, "group");
	if (!ranks || ranks > T3_MAX_RANKS)
		return t3_fail_range(__func__, "ranks", ranks, 1, T3_MAX_RANKS);
	ret = t3_options_take(__func__, options, &taken);
	if (ret)
		return ret;
	return create(__func__, ranks, &taken, group);
}

int t3_group_fd(const struct t3_group *group)
{
	return group ? group->fd : t3_fail_null(__func__, "group");
}

/* @fd becomes the group's on success only. */
static int adopt(const char *call, int fd, const struct t3_options *options,
		 struct t3_group **out)
{
	const struct t3_engine_ops *ops;
	uint32_t ranks;
	int ret = t3_engine_of_fd(call, fd, &ranks, &ops);

	if (ret)
		return ret;
	if (options->engine != T3_ENGINE_AUTO && options->engine != ops->id)
		return t3_fail(EINVAL,
			       "%s: options->engine is %u (%s), the group's is %u (%s)",
			       call, options->engine,
			       t3_engine_name(options->engine), ops->id,
			       ops->name);
	*out = new_group(call, ranks, options);
	if (!*out)
		return -ENOMEM;
	(*out)->ops = ops;
	(*out)->options.engine = ops->id;
	(*out)->fd = fd;
	return 0;
}

int t3_group_from_fd(int fd, const struct t3_options *options,
		     struct t3_group **group)
{
	struct t3_options taken;
	int ret, copy;

	if (!group)
		return t3_fail_null(__func__, "group");
	ret = t3_options_take(__func__, options, &taken);
	if (ret)
		return ret;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0 && errno != EBADF)
		return t3_fail(errno, "%s: fd is %d: %s", __func__, fd,
			       strerror(errno));
	ret = adopt(__func__, copy < 0 ? fd : copy, &taken, group);
	if (ret && copy >= 0)
		close(copy);
	return ret;
}

/* Rank 0's part of a meeting: make the group and hand it out. */
static int host(const char *call, const struct t3_meeting *meeting,
		const struct t3_options *options, struct t3_group **out)
{
	struct t3_group *group;
	struct t3_meeting hosted = *meeting;
	int ret = create(call, meeting->ranks, options, &group);

	if (ret)
		return ret;
	hosted.engine = group->ops->id;
	ret = t3_meeting_host(&hosted, group->fd);
	if (ret) {
		t3_group_close(group);
		return ret;
	}
	*out = group;
	return 0;
}

static int visit(const char *call, const struct t3_meeting *meeting,
		 const struct t3_options *options, struct t3_group **out)
{
	struct t3_group *group;
	int fd = -1;
	int ret = t3_meeting_visit(meeting, &fd);

	if (ret)
		return ret;
	ret = adopt(call, fd, options, &group);
	if (ret) {
		close(fd);
		return ret;
	}
	if (group->ranks != meeting->ranks) {
		ret = t3_fail(EPROTO, "%s: ranks is %u, the group has %u",
			      call, meeting->ranks, group->ranks);
		t3_group_close(group);
		return ret;
	}
	*out = group;
	return 0;
}

static int at_path(const char *call, const char *path, uint32_t rank,
		   uint32_t ranks, const struct t3_options *options,
		   struct t3_group **group)
{
	struct t3_options taken;
	struct t3_meeting meeting = {
		.call = call,
		.path = path,
		.rank = rank,
		.ranks = ranks,
	};
	int ret;

	if (!path)
		return t3_fail_null(call, "path");
	if (!ranks || ranks > T3_MAX_RANKS)
		return t3_fail_range(call, "ranks", ranks, 1, T3_MAX_RANKS);
	if (rank >= ranks)
		return t3_fail_range(call, "rank", rank, 0, ranks - 1);
	ret = t3_options_take(call, options, &taken);
	if (!ret)
		ret = t3_meeting_check(&meeting);
	if (ret)
		return ret;
	meeting.engine = taken.engine;
	meeting.deadline = t3_deadline(taken.setup_ms);
	return rank ? visit(call, &meeting, &taken, group) :
		      host(call, &meeting, &taken, group);
}

int t3_group_at_path(const char *path, uint32_t rank, uint32_t ranks,
		     const struct t3_options *options, struct t3_group **group)
{
	if (!group)
		return t3_fail_null(__func__, "group");
	return at_path(__func__, path, rank, ranks, options, group);
}

int t3_open(const char *path, uint32_t rank, uint32_t ranks,
	    const struct t3_options *options, struct t3_member **member)
{
	struct t3_group *group;
	int ret;

	if (!member)
		return t3_fail_null(__func__, "member");
	ret = at_path(__func__, path, rank, ranks, options, &group);
	if (ret)
		return ret;
	ret = t3_join(group, rank, member);
	t3_group_close(group);
	return ret;
}

void t3_group_close(struct t3_group *group)
{
	if (!group)
		return;
	close(group->fd);
	free(group);
}
