// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Commands by way of io_uring.
 *
 * Each thread that calls has a ring of its own, made at its first call, so that
 * none waits for another's and no lock is taken; it goes with the thread. A
 * thread for which none can be made, or whose ring fails, uses ioctl(), with
 * the same results. liburing is loaded when somebody asks for it: the library
 * does not depend on it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel.h"

#if __has_include("liburing.h")

#include <dlfcn.h>
#include <liburing.h>
#include <poll.h>

#define LIBURING	"liburing.so.2"
#define ENTRIES		4

/* What is not inline in its header. */
static struct {
	int (*queue_init)(unsigned int entries, struct io_uring *ring,
			  unsigned int flags);
	void (*queue_exit)(struct io_uring *ring);
	int (*submit_and_wait)(struct io_uring *ring, unsigned int n);
	struct io_uring_probe *(*get_probe)(void);
	void (*free_probe)(struct io_uring_probe *probe);
	pthread_key_t key;
	const char *trouble;
} liburing;

enum ring_state { RING_NONE, RING_OPEN, RING_FAILED };

/**
 * struct thread_ring - a thread's own
 * @state: enum ring_state
 * @forks: kernel_forks when it was made: a forked child has a copy, which it
 *	must not use
 * @ring: valid while open; nothing is in it between two calls
 */
static __thread struct thread_ring {
	enum ring_state state;
	uint32_t forks;
	struct io_uring ring;
} thread_ring;

static void ring_close(void *arg)
{
	struct thread_ring *t = arg;

	if (t->state == RING_OPEN)
		liburing.queue_exit(&t->ring);
	t->state = RING_NONE;
}

static void load(void)
{
	void *so = dlopen(LIBURING, RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		liburing.trouble = "the library liburing can't be loaded";
		return;
	}
	*(void **)&liburing.queue_init = dlsym(so, "io_uring_queue_init");
	*(void **)&liburing.queue_exit = dlsym(so, "io_uring_queue_exit");
	*(void **)&liburing.submit_and_wait =
		dlsym(so, "io_uring_submit_and_wait");
	*(void **)&liburing.get_probe = dlsym(so, "io_uring_get_probe");
	*(void **)&liburing.free_probe = dlsym(so, "io_uring_free_probe");
	if (!liburing.queue_init || !liburing.queue_exit ||
	    !liburing.submit_and_wait || !liburing.get_probe ||
	    !liburing.free_probe)
		liburing.trouble = "the library liburing lacks functions";
	else if (pthread_key_create(&liburing.key, ring_close))
		liburing.trouble = "too many thread-specific keys";
}

/* Return: the calling thread's ring, or NULL; *@error: why none. */
static struct thread_ring *ring_get(int *error)
{
	struct thread_ring *t = &thread_ring;

	if (t->state == RING_OPEN && t->forks != kernel_forks)
		ring_close(t);
	if (t->state == RING_OPEN)
		return t;
	if (t->state == RING_FAILED && t->forks == kernel_forks)
		return NULL;
	t->forks = kernel_forks;
	*error = -liburing.queue_init(ENTRIES, &t->ring, 0);
	if (!*error && pthread_setspecific(liburing.key, t)) {
		liburing.queue_exit(&t->ring);
		*error = ENOMEM;
	}
	t->state = *error ? RING_FAILED : RING_OPEN;
	return *error ? NULL : t;
}

static void ring_fail(struct thread_ring *t)
{
	ring_close(t);
	t->state = RING_FAILED;
}

static const char *ring_trouble(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return "a sandbox or kernel.io_uring_disabled forbids it (EPERM)";
	case ENOSYS:
		return "the kernel has none, or a sandbox hides it (ENOSYS)";
	case EMFILE:
	case ENFILE:
		return "no descriptor is left";
	case ENOMEM:
		return "no memory, or RLIMIT_MEMLOCK is too low";
	default:
		return strerror(error);
	}
}

/* The kernel has rings, but has it their commands? */
static bool has_commands(void)
{
	struct io_uring_probe *probe = liburing.get_probe();
	bool has = probe && io_uring_opcode_supported(probe,
						      IORING_OP_URING_CMD);

	if (probe)
		liburing.free_probe(probe);
	return has;
}

/* What keeps io_uring from being used; NULL: nothing. */
static const char *find_trouble(uint64_t features)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error = 0;

	if (!(features & T3_FEATURE_URING))
		return "the module has no commands for it";
	pthread_once(&once, load);
	if (liburing.trouble)
		return liburing.trouble;
	/* What failed before may be possible by now. */
	if (thread_ring.state == RING_FAILED)
		thread_ring.state = RING_NONE;
	if (!ring_get(&error))
		return ring_trouble(error);
	return has_commands() ? NULL : "the kernel's has no commands of drivers";
}

/*
 * Submits what is queued and waits for @n completions, which it forgets.
 * *@result: of the one whose user_data is 1.
 *
 * Return: false: nothing was submitted, and the ring is no good.
 */
static bool ring_run(struct thread_ring *t, unsigned int n, int *result)
{
	struct io_uring *ring = &t->ring;
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;
	int ret;

	while (seen < n) {
		ret = liburing.submit_and_wait(ring, 1);
		if (ret < 0 && ret != -EINTR && ret != -EAGAIN &&
		    ret != -EBUSY && io_uring_sq_ready(ring))
			return false;
		ret = 0;
		io_uring_for_each_cqe(ring, head, cqe) {
			if (cqe->user_data == 1)
				*result = cqe->res;
			ret++;
		}
		io_uring_cq_advance(ring, (unsigned int)ret);
		seen += (unsigned int)ret;
	}
	return true;
}

static bool ring_command(struct thread_ring *t, int fd, unsigned long code,
			 void *arg, int *result)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&t->ring);
	struct t3_uring_cmd uc = { .arg = (uintptr_t)arg };

	/* Every structure begins with its size. */
	memcpy(&uc.size, arg, sizeof(uc.size));
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = (uint32_t)code;
	sqe->user_data = 1;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &uc,
	       sizeof(uc));
	return ring_run(t, 1, result);
}

/*
 * Where no wait can pend in a ring: until the member has something to tell,
 * perhaps of another plan, or the time is up. Return: false: the ring is no
 * good.
 */
static bool ring_poll(struct thread_ring *t, int fd, uint64_t ns)
{
	struct __kernel_timespec limit = {
		.tv_sec = (long long)(ns / 1000000000),
		.tv_nsec = (long long)(ns % 1000000000),
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(&t->ring);
	int result;

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 1;
	sqe = io_uring_get_sqe(&t->ring);
	io_uring_prep_link_timeout(sqe, &limit, 0);
	sqe->user_data = 2;
	return ring_run(t, 2, &result);
}

/* The answer, and what is left of the time, are T3_WAIT's by ioctl(). */
static void wait_by_poll(struct thread_ring *t, int fd, struct t3_wait *wait)
{
	uint64_t start = t3_now(), ns = wait->timeout_ns, passed;

	if (ns && !ring_poll(t, fd, ns))
		ring_fail(t);
	passed = t3_now() - start;
	wait->timeout_ns = passed < ns ? ns - passed : 0;
}

/* Return: 0 or -errno; 1: it is ioctl()'s to do. */
static int by_ring(const struct kernel_member *member, unsigned long code,
		   void *arg)
{
	int ret, error;
	struct thread_ring *t = ring_get(&error);

	if (!t)
		return 1;
	if (code == T3_WAIT && !member->uring_waits) {
		wait_by_poll(t, member->fd, arg);
		return 1;
	}
	if (ring_command(t, member->fd, code, arg, &ret))
		return ret;
	ring_fail(t);
	return 1;
}

#else /* no liburing */

static const char *find_trouble(uint64_t features)
{
	(void)features;
	return "this library was built without liburing";
}

static int by_ring(const struct kernel_member *member, unsigned long code,
		   void *arg)
{
	(void)member;
	(void)code;
	(void)arg;
	return 1;
}

#endif /* liburing */

int kernel_issue(const struct t3_member *m, unsigned long code, void *arg)
{
	const struct kernel_member *member = (const struct kernel_member *)m;
	int ret = 1;

	if (!member->no_uring && !kernel_is_foreign(m))
		ret = by_ring(member, code, arg);
	if (ret != 1)
		return ret;
	ret = ioctl(member->fd, code, arg);
	return ret < 0 ? -errno : 0;
}

static bool asked_for(const struct t3_options *options)
{
	const char *value = getenv("T3_URING");

	if (value && *value)
		return strcmp(value, "0");
	return options->flags & T3_OPTION_URING;
}

void kernel_uring_choose(struct kernel_member *member)
{
	struct t3_query query = { 0 };
	int fd;

	if (!asked_for(&member->m.options)) {
		member->no_uring = "nobody has asked for it";
		return;
	}
	if (kernel_open("t3_join", &fd, &query)) {
		member->no_uring = KERNEL_DEVICE " can't be opened, to ask the module";
		return;
	}
	close(fd);
	member->uring_waits = query.features & T3_FEATURE_URING_WAIT;
	member->no_uring = find_trouble(query.features);
}

int kernel_uring_why(const struct t3_member *m, char *why, size_t bytes)
{
	const struct kernel_member *member = (const struct kernel_member *)m;

	if (member->no_uring)
		snprintf(why, bytes, "io_uring is not used: %s",
			 member->no_uring);
	else
		snprintf(why, bytes, "io_uring is used, %s",
			 member->uring_waits ? "and waits pend in it" :
			 "and waits poll through it");
	return !member->no_uring;
}
