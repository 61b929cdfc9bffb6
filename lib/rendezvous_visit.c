// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The other ranks of a meeting: they come, perhaps before rank 0 does, and
 * wait until all are there.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous.h"

#define NAP_FIRST_NS	1000000
#define NAP_LAST_NS	20000000

/* Not an error: rank 0 is not there yet, try again. */
#define NOT_YET		1

/* Never came, came and then was late: the same sentence. */
static int fail_late(const struct t3_meeting *m, uint64_t here)
{
	struct t3_reply no = { .error = ETIME, .here = here };

	return t3_meeting_refused(m, &no);
}

static int check_file(const struct t3_meeting *m)
{
	struct stat st;

	if (!lstat(m->path, &st) && !S_ISSOCK(st.st_mode))
		return t3_fail(EEXIST, "%s: path is %s, where something else is that is no socket",
			       m->call, m->path);
	return NOT_YET;
}

/* A connection to rank 0: 0, NOT_YET or a negative errno. */
static int connect_once(const struct t3_meeting *m, int *fd)
{
	struct sockaddr_un address;
	uint32_t uid;
	int error;

	*fd = t3_meeting_socket(m);
	if (*fd < 0)
		return *fd;
	t3_meeting_address(m, &address);
	if (connect(*fd, (struct sockaddr *)&address, sizeof(address))) {
		error = errno;
		close(*fd);
		if (error == EACCES || error == EPERM || error == EPROTOTYPE ||
		    error == ELOOP || error == ENOTDIR)
			return t3_fail(error, "%s: path is %s: %s", m->call,
				       m->path, strerror(error));
		return check_file(m);
	}
	if (t3_meeting_trusts(*fd, &uid))
		return 0;
	close(*fd);
	return t3_fail(EACCES,
		       "%s: path is %s, a socket of user %u, allowed are %u and root's",
		       m->call, m->path, uid, (uint32_t)geteuid());
}

static bool say_hello(const struct t3_meeting *m, int fd)
{
	const struct t3_hello hello = {
		.magic = T3_MEETING_MAGIC,
		.version = T3_MEETING_VERSION,
		.rank = m->rank,
		.ranks = m->ranks,
		.engine = m->engine,
	};

	return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) ==
	       (ssize_t)sizeof(hello);
}

/* One message; its descriptor, or -1, in @got. Bytes, 0 at the end, or -1. */
static ssize_t hear(int fd, struct t3_reply *what, int *got)
{
	struct iovec part = { .iov_base = what, .iov_len = sizeof(*what) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *attached;
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*got = -1;
	attached = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (attached && attached->cmsg_level == SOL_SOCKET &&
	    attached->cmsg_type == SCM_RIGHTS &&
	    attached->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(got, CMSG_DATA(attached), sizeof(int));
	return n;
}

/*
 * Rank 0 is gone. Before it has said anything, this was the end of an earlier
 * meeting at the same path, and the next one is yet to begin.
 */
static int fail_gone(const struct t3_meeting *m, bool welcomed)
{
	if (!welcomed)
		return NOT_YET;
	return t3_fail(EOWNERDEAD,
		       "%s: rank 0 died while the ranks met at %s", m->call,
		       m->path);
}

/* What rank 0 says: 0, NOT_YET to go on, or a negative errno. */
static int understand(const struct t3_meeting *m, const struct t3_reply *what,
		      ssize_t bytes, int got)
{
	if (bytes < (ssize_t)sizeof(*what) || what->magic != T3_MEETING_MAGIC ||
	    what->version != T3_MEETING_VERSION)
		return t3_fail(EPROTO,
			       "%s: who listens at %s does not speak version %u of t3's meeting",
			       m->call, m->path, T3_MEETING_VERSION);
	switch (what->kind) {
	case T3_REPLY_WAIT:
		return NOT_YET;
	case T3_REPLY_GO:
		if (got >= 0)
			return 0;
		return t3_fail(EMFILE, "%s: no descriptor left for the group",
			       m->call);
	default:
		return t3_meeting_refused(m, what);
	}
}

static int wait_for_all(const struct t3_meeting *m, int fd, int *got)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	struct t3_reply what = { 0 };
	bool welcomed = false;
	uint64_t here = 1ULL << m->rank;
	ssize_t n;
	int ret;

	while (t3_time_left(m->deadline)) {
		if (poll(&one, 1, t3_time_left_ms(m->deadline)) <= 0)
			continue;
		n = hear(fd, &what, got);
		/* Said once where rank 0 left unread what we said: go on. */
		if (n < 0 && errno == ECONNRESET)
			n = hear(fd, &what, got);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return fail_gone(m, welcomed);
		ret = understand(m, &what, n, *got);
		if (ret && *got >= 0)
			close(*got);
		if (ret <= 0)
			return ret;
		welcomed = true;
		here = what.here;
	}
	return fail_late(m, here);
}

int t3_meeting_visit(const struct t3_meeting *meeting, int *fd)
{
	uint64_t nap = NAP_FIRST_NS;
	int socket, ret;

	do {
		ret = connect_once(meeting, &socket);
		if (!ret) {
			ret = say_hello(meeting, socket) ?
			      wait_for_all(meeting, socket, fd) : NOT_YET;
			close(socket);
		}
		if (ret != NOT_YET)
			return ret;
		t3_sleep(nap, meeting->deadline);
		nap = nap < NAP_LAST_NS / 2 ? nap * 2 : NAP_LAST_NS;
	} while (t3_time_left(meeting->deadline));
	return t3_fail(ETIME, "%s: rank 0 did not come to %s in time",
		       meeting->call, meeting->path);
}
