/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How ranks that know a path get hold of the group's descriptor.
 */
#ifndef T3_LIB_RENDEZVOUS_H
#define T3_LIB_RENDEZVOUS_H

#include "engine.h"

/**
 * struct t3_meeting - what a rank brings to a meeting
 * @call: the public function's name, for sentences
 * @path: where
 * @rank: the caller's
 * @ranks: how many are to come
 * @engine: enum t3_engine: host: the group's; visitor: the one it insists on,
 *	or T3_ENGINE_AUTO
 * @deadline: when to give up, see t3_deadline()
 */
struct t3_meeting {
	const char *call;
	const char *path;
	uint32_t rank;
	uint32_t ranks;
	uint32_t engine;
	uint64_t deadline;
};

/**
 * t3_meeting_check - does the path fit into a socket's address?
 * @meeting: where
 *
 * Return: 0; -EINVAL it is empty; -ENAMETOOLONG.
 */
int t3_meeting_check(const struct t3_meeting *meeting);

/**
 * t3_meeting_host - rank 0: wait for all others, then hand a descriptor out
 * @meeting: what, where
 * @fd: the descriptor; stays the caller's
 *
 * Makes a socket at the path and removes it again, whatever comes. With one
 * rank there is nothing to do, and the path isn't touched.
 *
 * Return: 0; -EEXIST something else is at the path; -ETIME who has not come is
 * in the sentence; -EPROTO a rank disagrees; other errors of the file system.
 */
int t3_meeting_host(const struct t3_meeting *meeting, int fd);

/**
 * t3_meeting_visit - another rank: come, wait for all others, get a descriptor
 * @meeting: what, where
 * @fd: out: the descriptor, close-on-exec, the caller's
 *
 * Return: 0; -ETIME; -EPROTO; -EACCES the socket is another user's;
 * -EEXIST something else is at the path; -EOWNERDEAD rank 0 died meanwhile.
 */
int t3_meeting_visit(const struct t3_meeting *meeting, int *fd);

/*
 * The wire, private to rendezvous*.c and its tests: fixed-size messages over a
 * SOCK_SEQPACKET socket, in the machine's own byte order.
 */
#define T3_MEETING_MAGIC	0x54334d54U
#define T3_MEETING_VERSION	1

/* Visitor to host, once. */
struct t3_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t rank;
	uint32_t ranks;
	uint32_t engine;
	uint32_t pad;
};

enum t3_reply_kind {
	T3_REPLY_WAIT = 1,	/* you are in; @here says who else is */
	T3_REPLY_GO,		/* all have come; the descriptor is attached */
	T3_REPLY_NO,		/* @error, @culprit, @theirs, @ours */
};

/**
 * struct t3_reply - host to visitor
 * @magic: T3_MEETING_MAGIC
 * @version: the host's
 * @kind: enum t3_reply_kind
 * @error: T3_REPLY_NO: errno
 * @here: bit r is set: rank r has come
 * @culprit: T3_REPLY_NO with EPROTO: the rank that disagrees
 * @about: enum t3_reply_about
 * @theirs: the culprit's value
 * @ours: rank 0's
 */
struct t3_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t error;
	uint64_t here;
	uint32_t culprit;
	uint32_t about;
	uint32_t theirs;
	uint32_t ours;
};

enum t3_reply_about {
	T3_ABOUT_NOTHING,
	T3_ABOUT_VERSION,
	T3_ABOUT_RANKS,
	T3_ABOUT_RANK,
	T3_ABOUT_ENGINE,
	T3_ABOUT_TWICE,
};

struct sockaddr_un;

/* The path as a socket's address; it was checked. */
void t3_meeting_address(const struct t3_meeting *meeting,
			struct sockaddr_un *address);

/* A socket for the meeting: does not block, close-on-exec. Or -errno. */
int t3_meeting_socket(const struct t3_meeting *meeting);

/* Is the other end the same user's, or root's? @uid: out: whose it is. */
bool t3_meeting_trusts(int fd, uint32_t *uid);

/* The sentence of T3_REPLY_NO, or of one that never came. Return: -error. */
int t3_meeting_refused(const struct t3_meeting *meeting,
		       const struct t3_reply *reply);

/**
 * t3_meeting_listen - a listening socket at the path
 * @meeting: where
 * @fd: out
 *
 * A left-over of a dead host is replaced.
 *
 * Return: 0 or a negative errno with a sentence.
 */
int t3_meeting_listen(const struct t3_meeting *meeting, int *fd);

/* Remove the path of t3_meeting_listen() and close the socket. */
void t3_meeting_unlisten(const struct t3_meeting *meeting, int fd);

#endif /* T3_LIB_RENDEZVOUS_H */
