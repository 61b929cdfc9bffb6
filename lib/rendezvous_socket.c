// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The socket at a meeting's path: made, taken over from the dead, removed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous.h"

#define NAP_NS	1000000

/*
 * Looking whether a left-over is dead, removing it and binding are three
 * steps; a lock on the directory keeps another host from doing them at the
 * same time. It takes milliseconds. Where a directory can't be opened, or
 * somebody else keeps it locked for long, we go on without.
 */
static int lock_directory(const struct t3_meeting *meeting)
{
	uint64_t deadline = t3_deadline(1000);
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;
	int fd;

	snprintf(name, sizeof(name), "%s", meeting->path);
	slash = strrchr(name, '/');
	if (slash)
		slash[slash == name ? 1 : 0] = '\0';
	fd = open(slash ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK &&
	       t3_time_left(deadline) && t3_time_left(meeting->deadline))
		t3_sleep(NAP_NS, deadline);
	return fd;
}

/* Is nobody behind the socket at the path any more? */
static bool is_dead(const struct t3_meeting *meeting,
		    const struct sockaddr_un *address)
{
	int fd = t3_meeting_socket(meeting);
	bool dead;

	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)address,
		       sizeof(*address)) && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/* Remove what is at the path if it is a left-over. */
static int remove_dead(const struct t3_meeting *m,
		       const struct sockaddr_un *address)
{
	struct stat st;

	if (lstat(m->path, &st))
		return errno == ENOENT ? 0 :
		       t3_fail(errno, "%s: path %s: %s", m->call, m->path,
			       strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return t3_fail(EEXIST, "%s: path is %s, where something else is that is no socket",
			       m->call, m->path);
	if (!is_dead(m, address))
		return t3_fail(EEXIST, "%s: path is %s, where somebody else listens",
			       m->call, m->path);
	if (unlink(m->path) && errno != ENOENT)
		return t3_fail(EEXIST, "%s: path is %s, a left-over that can't be removed: %s",
			       m->call, m->path, strerror(errno));
	return 0;
}

static int bind_there(const struct t3_meeting *m, int fd)
{
	struct sockaddr_un address;
	int ret;

	t3_meeting_address(m, &address);
	/* The socket's own mode is the one that its name gets. */
	fchmod(fd, 0600);
	while (bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (errno != EADDRINUSE)
			return t3_fail(errno, "%s: path is %s: %s", m->call,
				       m->path, strerror(errno));
		ret = remove_dead(m, &address);
		if (ret)
			return ret;
		if (!t3_time_left(m->deadline))
			return t3_fail(ETIME, "%s: path is %s, which others take again and again",
				       m->call, m->path);
	}
	if (listen(fd, T3_MAX_RANKS)) {
		ret = t3_fail(errno, "%s: path is %s: %s", m->call, m->path,
			      strerror(errno));
		unlink(m->path);
		return ret;
	}
	return 0;
}

int t3_meeting_listen(const struct t3_meeting *meeting, int *fd)
{
	int lock, ret;

	*fd = t3_meeting_socket(meeting);
	if (*fd < 0)
		return *fd;
	lock = lock_directory(meeting);
	ret = bind_there(meeting, *fd);
	if (lock >= 0)
		close(lock);
	if (ret)
		close(*fd);
	return ret;
}

void t3_meeting_unlisten(const struct t3_meeting *meeting, int fd)
{
	unlink(meeting->path);
	close(fd);
}
