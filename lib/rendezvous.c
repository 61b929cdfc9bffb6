// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What both sides of a meeting share: addresses, trust, sentences.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous.h"

int t3_meeting_check(const struct t3_meeting *meeting)
{
	struct sockaddr_un *address = NULL;
	size_t most = sizeof(address->sun_path) - 1;
	size_t length = strnlen(meeting->path, most + 1);

	if (!length)
		return t3_fail(EINVAL, "%s: path is empty", meeting->call);
	if (length > most)
		return t3_fail(ENAMETOOLONG,
			       "%s: path begins \"%.40s\", allowed are %zu bytes",
			       meeting->call, meeting->path, most);
	return 0;
}

void t3_meeting_address(const struct t3_meeting *meeting,
			struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, meeting->path, strlen(meeting->path));
}

int t3_meeting_socket(const struct t3_meeting *meeting)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	if (fd < 0)
		return t3_fail(errno, "%s: no socket: %s", meeting->call,
			       strerror(errno));
	return fd;
}

bool t3_meeting_trusts(int fd, uint32_t *uid)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	*uid = T3_NONE;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		return false;
	*uid = peer.uid;
	return peer.uid == geteuid() || !peer.uid;
}

/* "1, 4, 5": the ranks that are not there. */
static void name_missing(char *text, size_t bytes, uint32_t ranks, uint64_t here)
{
	size_t at = 0;
	uint32_t r;

	text[0] = '\0';
	for (r = 0; r < ranks && at < bytes; r++)
		if (!(here >> r & 1))
			at += (size_t)snprintf(text + at, bytes - at, "%s%u",
					       at ? ", " : "", r);
}

static int fail_late(const struct t3_meeting *m, uint64_t here)
{
	char missing[4 * T3_MAX_RANKS];

	name_missing(missing, sizeof(missing), m->ranks, here);
	return t3_fail(ETIME, "%s: not all ranks came to %s in time, missing: %s",
		       m->call, m->path, missing);
}

static int fail_disagreed(const struct t3_meeting *m,
			  const struct t3_reply *reply)
{
	const char *theirs = t3_engine_name(reply->theirs);
	const char *ours = t3_engine_name(reply->ours);

	switch (reply->about) {
	case T3_ABOUT_VERSION:
		return t3_fail(EPROTO,
			       "%s: a rank's libt3 meets by version %u, rank 0's by %u",
			       m->call, reply->theirs, reply->ours);
	case T3_ABOUT_RANKS:
		return t3_fail(EPROTO, "%s: ranks is %u at rank %u, and %u at rank 0",
			       m->call, reply->theirs, reply->culprit,
			       reply->ours);
	case T3_ABOUT_ENGINE:
		return t3_fail(EPROTO,
			       "%s: the engine is %s at rank %u, and %s at rank 0",
			       m->call, theirs ? theirs : "unknown",
			       reply->culprit, ours ? ours : "unknown");
	case T3_ABOUT_TWICE:
		return t3_fail(EPROTO, "%s: rank is %u, which has come already",
			       m->call, reply->culprit);
	default:
		return t3_fail(EPROTO, "%s: rank is %u, allowed are 1 to %u",
			       m->call, reply->culprit, reply->ours - 1);
	}
}

int t3_meeting_refused(const struct t3_meeting *meeting,
		       const struct t3_reply *reply)
{
	if (reply->error == EPROTO)
		return fail_disagreed(meeting, reply);
	if (reply->error == ETIME)
		return fail_late(meeting, reply->here);
	return t3_fail((int)reply->error, "%s: rank 0 failed: %s",
		       meeting->call, strerror((int)reply->error));
}
