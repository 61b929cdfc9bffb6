// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rank 0 of a meeting. It serves from inside the call, and only until all have
 * come, one disagrees, or the time is over.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous.h"

/* Guests at a time; some of them may be strangers that never speak. */
#define GUESTS	(2 * T3_MAX_RANKS)

/**
 * struct guest - a connection
 * @fd: the socket
 * @rank: whose, T3_NONE before it has said so
 */
struct guest {
	int fd;
	uint32_t rank;
};

/**
 * struct host - a meeting under way; on rank 0's stack
 * @meeting: what, where
 * @listener: the socket at the path
 * @here: bit r is set: rank r has come
 * @guests: number of entries of @guest
 * @guest: connections
 * @no: the answer to all once @no.error is set
 */
struct host {
	const struct t3_meeting *meeting;
	int listener;
	uint64_t here;
	uint32_t guests;
	struct guest guest[GUESTS];
	struct t3_reply no;
};

static void reply(int to, const struct t3_reply *what, int fd)
{
	struct t3_reply copy = *what;
	struct iovec part = { .iov_base = &copy, .iov_len = sizeof(copy) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *attached;

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		attached = CMSG_FIRSTHDR(&message);
		attached->cmsg_level = SOL_SOCKET;
		attached->cmsg_type = SCM_RIGHTS;
		attached->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(attached), &fd, sizeof(int));
	}
	/* Whoever can't be told is dead or dying, and finds out by itself. */
	sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reply_all(const struct host *host, struct t3_reply *what, int fd)
{
	uint32_t i;

	what->magic = T3_MEETING_MAGIC;
	what->version = T3_MEETING_VERSION;
	what->here = host->here;
	for (i = 0; i < host->guests; i++)
		if (host->guest[i].rank != T3_NONE || what->error)
			reply(host->guest[i].fd, what, fd);
}

static void tell_who_is_here(const struct host *host)
{
	struct t3_reply what = { .kind = T3_REPLY_WAIT };

	reply_all(host, &what, -1);
}

static void let_in(struct host *host)
{
	int fd = accept4(host->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint32_t uid;

	if (fd < 0)
		return;
	if (!t3_meeting_trusts(fd, &uid)) {
		close(fd);
		return;
	}
	host->guest[host->guests++] = (struct guest) { fd, T3_NONE };
}

static void show_out(struct host *host, uint32_t i)
{
	uint32_t rank = host->guest[i].rank;

	close(host->guest[i].fd);
	host->guest[i] = host->guest[--host->guests];
	if (rank == T3_NONE)
		return;
	host->here &= ~(1ULL << rank);
	tell_who_is_here(host);
}

/* A hello that does not fit: what about it? */
static enum t3_reply_about disagrees(const struct host *host,
				     const struct t3_hello *hello,
				     struct t3_reply *no)
{
	const struct t3_meeting *m = host->meeting;

	*no = (struct t3_reply) {
		.magic = T3_MEETING_MAGIC,
		.version = T3_MEETING_VERSION,
		.kind = T3_REPLY_NO,
		.error = EPROTO,
		.culprit = hello->rank,
		.theirs = hello->ranks,
		.ours = m->ranks,
	};
	if (hello->version != T3_MEETING_VERSION) {
		no->about = T3_ABOUT_VERSION;
		no->theirs = hello->version;
		no->ours = T3_MEETING_VERSION;
	} else if (hello->ranks != m->ranks) {
		no->about = T3_ABOUT_RANKS;
	} else if (!hello->rank || hello->rank >= m->ranks) {
		no->about = T3_ABOUT_RANK;
	} else if (hello->engine && hello->engine != m->engine) {
		no->about = T3_ABOUT_ENGINE;
		no->theirs = hello->engine;
		no->ours = m->engine;
	} else if (host->here >> hello->rank & 1) {
		no->about = T3_ABOUT_TWICE;
	}
	return no->about;
}

/* A guest has spoken, or is gone. False where it is to be shown out. */
static bool listen_to(struct host *host, struct guest *guest)
{
	struct t3_hello hello = { 0 };
	struct t3_reply no;
	ssize_t n = recv(guest->fd, &hello, sizeof(hello), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	/* One hello each; a newer version's may be longer, and is cut. */
	if (n < (ssize_t)(2 * sizeof(uint32_t)) || guest->rank != T3_NONE ||
	    hello.magic != T3_MEETING_MAGIC)
		return false;
	switch (disagrees(host, &hello, &no)) {
	case T3_ABOUT_NOTHING:
		guest->rank = hello.rank;
		host->here |= 1ULL << hello.rank;
		tell_who_is_here(host);
		return true;
	case T3_ABOUT_TWICE:
	case T3_ABOUT_RANK:
		/* The first of that name may well be right: only this one goes. */
		reply(guest->fd, &no, -1);
		return false;
	default:
		host->no = no;
		return true;
	}
}

static void serve(struct host *host)
{
	struct pollfd list[GUESTS + 1];
	uint32_t n = host->guests;
	uint32_t i;

	/* A full house: who waits outside does so until somebody goes. */
	list[n] = (struct pollfd) {
		.fd = n < GUESTS ? host->listener : -1,
		.events = POLLIN,
	};
	for (i = 0; i < n; i++)
		list[i] = (struct pollfd) {
			.fd = host->guest[i].fd,
			.events = POLLIN,
		};
	if (poll(list, n + 1, t3_time_left_ms(host->meeting->deadline)) <= 0)
		return;
	/* Backwards, as whoever goes is replaced by the last. */
	for (i = n; i-- > 0 && !host->no.error;)
		if (list[i].revents && !listen_to(host, &host->guest[i]))
			show_out(host, i);
	if (list[n].revents && !host->no.error)
		let_in(host);
}

static void meet(struct host *host)
{
	uint64_t all = host->meeting->ranks < 64 ?
		       (1ULL << host->meeting->ranks) - 1 : ~0ULL;

	while (host->here != all && !host->no.error) {
		if (!t3_time_left(host->meeting->deadline)) {
			host->no.kind = T3_REPLY_NO;
			host->no.error = ETIME;
			break;
		}
		serve(host);
	}
}

int t3_meeting_host(const struct t3_meeting *meeting, int fd)
{
	struct host host = { .meeting = meeting, .here = 1 };
	struct t3_reply go = { .kind = T3_REPLY_GO };
	int ret;

	if (meeting->ranks == 1)
		return 0;
	ret = t3_meeting_listen(meeting, &host.listener);
	if (ret)
		return ret;
	meet(&host);
	/* First of all, so that nobody finds the path after he got the word. */
	t3_meeting_unlisten(meeting, host.listener);
	if (host.no.error)
		reply_all(&host, &host.no, -1);
	else
		reply_all(&host, &go, fd);
	while (host.guests)
		close(host.guest[--host.guests].fd);
	if (!host.no.error)
		return 0;
	host.no.here = host.here;
	return t3_meeting_refused(meeting, &host.no);
}
