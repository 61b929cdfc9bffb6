// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The door: a socket of each member where peers get descriptors of its memory.
 * Its name and the right to ask are in the group's shared file, so whoever
 * holds the group may ask, and nobody else can.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu.h"

#define ANSWER_MS	5000

/* What is asked, and the answer; the descriptor comes with it. */
struct question {
	u64 right;
	u64 base;
	u64 bytes;
};

struct answer {
	s64 at;
	u64 serial;
	u64 bytes;
};

/* A descriptor that travels. */
union parcel {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static socklen_t name_of(struct sockaddr_un *name, u64 number)
{
	int n;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* Abstract: it begins with a zero, and goes with its socket. */
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		     "t3-gpu-%016llx", (unsigned long long)number);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

static void limit_time(int fd, u32 ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

static s64 find(struct gpu_member *m, const struct question *q,
		struct gpu_block *block)
{
	if (q->right != t3_load(&m->s.slot->door[1]))
		return -EACCES;
	if (!q->base)
		return gpu_memory_find(m, (uintptr_t)m->canary, GPU_CANARY,
				       block);
	return gpu_memory_find(m, q->base, q->bytes, block);
}

static void answer(struct gpu_member *m, int fd)
{
	struct gpu_block block = { 0 };
	struct question q = { 0 };
	struct answer a = { 0 };
	struct iovec data = { &a, sizeof(a) };
	union parcel parcel = { 0 };
	struct msghdr msg = { .msg_iov = &data, .msg_iovlen = 1 };

	if (recv(fd, &q, sizeof(q), 0) != sizeof(q))
		return;
	a.at = find(m, &q, &block);
	a.serial = block.serial;
	a.bytes = block.memory.bytes;
	if (a.at >= 0) {
		msg.msg_control = &parcel;
		msg.msg_controllen = sizeof(parcel);
		parcel.header.cmsg_level = SOL_SOCKET;
		parcel.header.cmsg_type = SCM_RIGHTS;
		parcel.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&parcel.header), &block.memory.fd, sizeof(int));
	}
	sendmsg(fd, &msg, MSG_NOSIGNAL);
	/* A copy: it was the block's own, or a duplicate made for us. */
	if (a.at >= 0)
		close(block.memory.fd);
}

static void *porter(void *arg)
{
	struct gpu_member *m = arg;

	for (;;) {
		int fd = accept4(m->door, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		/* gpu_door_close() has shut it. */
		if (fd < 0)
			return NULL;
		limit_time(fd, ANSWER_MS);
		answer(m, fd);
		close(fd);
	}
}

int gpu_door_open(struct gpu_member *m)
{
	struct sockaddr_un name;
	u64 number[2];
	socklen_t bytes;
	int ret;

	if (getrandom(number, sizeof(number), 0) != sizeof(number))
		return t3_fail(errno, "t3_join: getrandom: %s", strerror(errno));
	m->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (m->door < 0)
		return t3_fail(errno, "t3_join: socket: %s", strerror(errno));
	bytes = name_of(&name, number[0]);
	if (bind(m->door, (struct sockaddr *)&name, bytes) ||
	    listen(m->door, 4 * T3_MAX_RANKS)) {
		ret = t3_fail(errno, "t3_join: a socket for memory: %s",
			      strerror(errno));
		goto out;
	}
	t3_store(&m->s.slot->door[1], number[1]);
	t3_store_release(&m->s.slot->door[0], number[0]);
	ret = soft_thread(&m->porter, porter, m);
	if (ret)
		goto out;
	m->porting = true;
	return 0;

out:
	close(m->door);
	m->door = -1;
	return ret;
}

void gpu_door_close(struct gpu_member *m)
{
	if (!m->porting)
		return;
	shutdown(m->door, SHUT_RDWR);
	pthread_join(m->porter, NULL);
	close(m->door);
	m->door = -1;
	m->porting = false;
}

static s64 hear(int fd, struct gpu_block *block)
{
	struct answer a = { 0 };
	struct iovec data = { &a, sizeof(a) };
	union parcel parcel = { 0 };
	struct msghdr msg = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &parcel,
		.msg_controllen = sizeof(parcel),
	};
	struct cmsghdr *header;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(a))
		return -EPIPE;
	if (a.at < 0)
		return a.at > -4096 ? a.at : -EIO;
	header = CMSG_FIRSTHDR(&msg);
	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EIO;
	memcpy(&block->memory.fd, CMSG_DATA(header), sizeof(int));
	block->memory.address = NULL;
	block->memory.bytes = a.bytes;
	block->serial = a.serial;
	return a.at;
}

s64 gpu_door_ask(struct gpu_member *m, u32 rank, u64 base, u64 bytes,
		 struct gpu_block *block)
{
	struct soft_slot *slot = soft_slot_of(&m->s, rank);
	struct question q = { .base = base, .bytes = bytes };
	struct sockaddr_un name;
	socklen_t length = name_of(&name, t3_load_acquire(&slot->door[0]));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	s64 ret;

	q.right = t3_load(&slot->door[1]);
	if (fd < 0)
		return -errno;
	limit_time(fd, ANSWER_MS);
	if (connect(fd, (struct sockaddr *)&name, length) ||
	    send(fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))
		ret = -errno;
	else
		ret = hear(fd, block);
	close(fd);
	return ret;
}
