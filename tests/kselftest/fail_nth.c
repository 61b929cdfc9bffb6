// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Each place where a call of ours can run out of memory, or find the user's
 * memory gone, fails once: the first, the second, and so on until the call
 * passes untouched. The caller sees success, ENOMEM or EFAULT; the same call
 * made once more does what it would have done; nothing is left behind.
 *
 * Needs a kernel with fault injection (make check-debug); skipped elsewhere.
 */
#include "t3_kselftest.h"

#include <linux/udmabuf.h>
#include <pthread.h>

#define MOST_FAULTS	2000	/* no call comes near it */
#define REGION_BYTES	(16 * 4096)

/* How far a group of two has come; each step needs those before it. */
enum stage {
	OPENED, CREATED, JOINED, REGISTERED, ONE_PART, PLANNED, LOOKED, ARMED,
	NOTIFIED, WAITED,
};

/**
 * struct nth - a group of two ranks in this process
 * @stage: how far it has come
 * @extra: what the call under test made, to be let go: a file, or -1
 * @given: files that the call is given: a dma-buf, or a timeline and its fence
 * @mapped: likewise a mapping
 * @stop: a thread that watches is to end
 * @memory: of both ranks
 */
struct nth {
	enum stage stage;
	int dev;
	int group;
	int member[2];
	int extra;
	int given[2];
	void *mapped;
	bool stop;
	__u32 region[2];
	struct part part[2];
	char *memory;
};

/* --- injection ------------------------------------------------------------ */

static bool put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

/* Allocations that may sleep fail too, whatever their order; no stack dumps. */
static bool set_up_faults(void)
{
	static const char *const quiet[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};
	char path[128];

	FOR_EACH(i, ARRAY_SIZE(quiet)) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose",
			 quiet[i]);
		if (!put_text(path, "0"))
			return false;
	}
	return put_text("/sys/kernel/debug/failslab/ignore-gfp-wait", "N") &&
	       put_text("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait",
			"N") &&
	       put_text("/sys/kernel/debug/fail_page_alloc/min-order", "0");
}

/* Where nothing can be made to fail there is nothing to test: one skipped list. */
static __attribute__((constructor)) void need_faults(void)
{
	const char *why = "no fault injection";

	if (!access("/proc/thread-self/fail-nth", W_OK)) {
		if (set_up_faults())
			return;
		why = "failslab, fail_page_alloc and fail_usercopy are not all in debugfs";
	}
	printf("TAP version 13\n1..0 # SKIP %s: make check-debug has such a kernel\n",
	       why);
	fflush(stdout);
	_exit(KSFT_SKIP);
}

/* Writing is a copy from the user, and so may itself be what fails. */
static void set_nth(int fd, __u32 n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	while (pwrite(fd, text, len, 0) != len)
		MUST(errno == EFAULT || errno == ENOMEM);
}

/* Did the fault that was asked for come? Nothing fails afterwards. */
static bool was_injected(int fd)
{
	char text[16] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	/* where exactly one was left, this very read has got it */
	if (n < 0)
		return false;
	if (!atoi(text))
		return true;
	set_nth(fd, 0);
	return false;
}

/* --- a group, step by step ------------------------------------------------ */

static int keep(int *where, int ret)
{
	*where = ret;
	return ret < 0 ? ret : 0;
}

static int add_region(struct nth *n, __u32 r)
{
	return region_add(n->member[r], n->memory + r * REGION_BYTES,
			  T3_DTYPE_I32, 4, REGION_BYTES / 4, &n->region[r]);
}

static void make_part(struct nth *n, __u32 r)
{
	part_init(&n->part[r], 0, 1);
	part_region(&n->part[r], n->region[r], 4, REGION_BYTES / 16, 4, 1);
	part_collective(&n->part[r], RS_DIRECT, r, 2, 1);
}

static int add_part(struct nth *n, __u32 r)
{
	make_part(n, r);
	return part_add(n->member[r], &n->part[r]);
}

static int arm_one(struct nth *n, __u32 r)
{
	int ret = plan_arm(n->member[r], 0);

	return ret < 0 ? ret : 0;
}

static int notify_all(struct nth *n, __u32 r)
{
	static const struct t3_tiles all[] = { {0, 1}, {1, 1}, {2, 1}, {3, 1} };

	return plan_notify(n->member[r], 0, all, ARRAY_SIZE(all), NULL);
}

static int wait_one(struct nth *n, __u32 r)
{
	return plan_wait_epoch(n->member[r], 0, 1, BOUND_NS, NULL);
}

static int both(struct nth *n, int (*step)(struct nth *n, __u32 r))
{
	return step(n, 0) ?: step(n, 1);
}

static int join_one(struct nth *n, __u32 r)
{
	return keep(&n->member[r], group_join(n->group, r));
}

static int look_one(struct nth *n, __u32 r)
{
	return plan_wait(n->member[r], 0, 0, NULL);
}

static int next_step(struct nth *n)
{
	switch (n->stage) {
	case OPENED:
		return keep(&n->group, group_create(n->dev, 2, 0));
	case CREATED:
		return both(n, join_one);
	case JOINED:
		return both(n, add_region);
	case REGISTERED:
		return add_part(n, 0);
	case ONE_PART:
		return add_part(n, 1);
	case PLANNED:
		return both(n, look_one);
	case LOOKED:
		return both(n, arm_one);
	case ARMED:
		return both(n, notify_all);
	default:
		return both(n, wait_one);
	}
}

static void nth_open(struct nth *n, enum stage stage)
{
	char *memory = n->memory;

	memset(n, 0, sizeof(*n));
	n->memory = memory;
	n->group = -1;
	n->member[0] = -1;
	n->member[1] = -1;
	n->extra = -1;
	n->given[0] = -1;
	n->given[1] = -1;
	n->mapped = MAP_FAILED;
	n->dev = device_open();
	MUST(n->dev >= 0);
	for (n->stage = OPENED; n->stage < stage; n->stage++)
		MUST(!next_step(n));
}

static void nth_close(struct nth *n)
{
	const int fds[] = { n->extra, n->member[0], n->member[1], n->group,
			    n->dev, n->given[0], n->given[1] };

	if (n->mapped != MAP_FAILED)
		munmap(n->mapped, n->part[0].add.tiles_bytes);
	FOR_EACH(i, ARRAY_SIZE(fds))
		if (fds[i] >= 0)
			close(fds[i]);
}

/* --- what calls are given -------------------------------------------------- */

static int give_dmabuf(struct nth *n)
{
	struct udmabuf_create arg = {
		.flags = UDMABUF_FLAGS_CLOEXEC, .size = REGION_BYTES,
	};
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int memfd;

	if (dev < 0)
		return -errno;
	memfd = memfd_create("fail_nth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	arg.memfd = (__u32)memfd;
	if (!ftruncate(memfd, REGION_BYTES) &&
	    !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		n->given[0] = ioctl(dev, UDMABUF_CREATE, &arg);
	close(memfd);
	close(dev);
	return n->given[0] < 0 ? -ENODEV : 0;
}

struct sw_sync_create {
	__u32 value;
	char name[32];
	__s32 fence;
};

#define SW_SYNC_CREATE	_IOWR('W', 0, struct sw_sync_create)

/* The end of its timeline ends a fence. */
static int give_fence(struct nth *n)
{
	struct sw_sync_create arg = { .value = 1, .name = "fail_nth" };

	n->given[0] = open("/sys/kernel/debug/sync/sw_sync",
			   O_RDWR | O_CLOEXEC);
	if (n->given[0] < 0)
		return -errno;
	if (ioctl(n->given[0], SW_SYNC_CREATE, &arg))
		return -errno;
	n->given[1] = arg.fence;
	return 0;
}

/* --- the calls ------------------------------------------------------------ */

static int call_open(struct nth *n)
{
	return keep(&n->extra, device_open());
}

static int call_query(struct nth *n)
{
	struct t3_query query;

	return device_query(n->dev, &query);
}

static int call_create(struct nth *n)
{
	return keep(&n->extra, group_create(n->dev, 4, 0));
}

static int call_join(struct nth *n)
{
	return join_one(n, 0);
}

static int call_info(struct nth *n)
{
	struct t3_group_info info;

	return group_info(n->group, &info);
}

static int call_set(struct nth *n)
{
	return group_set(n->group, 1000);
}

static int call_abort(struct nth *n)
{
	return group_abort(n->member[0]);
}

static int call_region_add(struct nth *n)
{
	return add_region(n, 0);
}

static int call_region_del(struct nth *n)
{
	return region_del(n->member[0], n->region[0]);
}

static int call_first_part(struct nth *n)
{
	return add_part(n, 0);
}

/* The part that makes the plan whole: graph, machine, workers. */
static int call_last_part(struct nth *n)
{
	return add_part(n, 1);
}

static int call_plan_wait(struct nth *n)
{
	return plan_wait(n->member[0], 0, BOUND_NS, NULL);
}

static int call_plan_del(struct nth *n)
{
	return plan_del(n->member[0], 0);
}

static int call_arm(struct nth *n)
{
	return arm_one(n, 0);
}

static int call_notify(struct nth *n)
{
	return notify_all(n, 0);
}

static int call_wait(struct nth *n)
{
	return wait_one(n, 0);
}

static int call_leave(struct nth *n)
{
	return member_leave(n->member[0]);
}

static int call_map_tiles(struct nth *n)
{
	n->mapped = part_map_tiles(n->member[0], &n->part[0]);
	return n->mapped == MAP_FAILED ? -errno : 0;
}

static int call_map_status(struct nth *n)
{
	n->mapped = part_map_status(n->member[0], &n->part[0]);
	return n->mapped == MAP_FAILED ? -errno : 0;
}

static int call_poll(struct nth *n)
{
	struct pollfd p = { .fd = n->member[0], .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -errno : 0;
}

static int call_fdinfo(struct nth *n)
{
	char path[64], text[512];
	ssize_t ret;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", n->member[0]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read(fd, text, sizeof(text));
	ret = ret < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int call_state(struct nth *n)
{
	int fd = open("/sys/kernel/debug/t3/state", O_RDONLY | O_CLOEXEC);
	char text[512];
	ssize_t ret;

	if (fd < 0)
		return -errno;
	ret = read(fd, text, sizeof(text));
	ret = ret < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int call_region_dmabuf(struct nth *n)
{
	struct t3_region_add arg = {
		.type = T3_REGION_DMABUF, .dtype = T3_DTYPE_I32,
		.row_bytes = REGION_BYTES / 4, .row_stride = REGION_BYTES / 4,
		.rows = 4, .fd = n->given[0],
	};
	__u32 region;

	return region_add_full(n->member[0], &arg, &region);
}

static int call_fence_in(struct nth *n)
{
	static const __u32 block;
	struct t3_fence_in arg = {
		.size = sizeof(arg), .fd = n->given[1], .entries = 1,
		.list = (uintptr_t)&block,
	};

	return t3_call(n->member[0], T3_FENCE_IN, &arg);
}

static int call_fence_out(struct nth *n)
{
	struct t3_fence_out arg = {
		.size = sizeof(arg), .epoch = 1, .out_fd = -1,
	};
	int ret = t3_call(n->member[0], T3_FENCE_OUT, &arg);

	return keep(&n->extra, ret ? ret : arg.out_fd);
}

/* A call in the state in which it is made. */
FIXTURE(fail_nth) {
	struct nth n;
	int fd;
	int files;
};

/*
 * @again: what the call may say when it is made once more after an EFAULT:
 * the last copy to the user failed, and by then the call had done its work
 * @give: makes what the call is given; where it can't, the test is skipped
 * @watched: another thread looks for the part that the call may have to take
 * back, and must not get hold of it
 */
FIXTURE_VARIANT(fail_nth) {
	enum stage stage;
	int (*call)(struct nth *n);
	int again;
	int (*give)(struct nth *n);
	bool watched;
};

FIXTURE_VARIANT_ADD(fail_nth, open) {
	.stage = OPENED, .call = call_open,
};

FIXTURE_VARIANT_ADD(fail_nth, query) {
	.stage = OPENED, .call = call_query,
};

FIXTURE_VARIANT_ADD(fail_nth, create) {
	.stage = OPENED, .call = call_create,
};

FIXTURE_VARIANT_ADD(fail_nth, join) {
	.stage = CREATED, .call = call_join, .again = -EEXIST,
};

FIXTURE_VARIANT_ADD(fail_nth, info) {
	.stage = CREATED, .call = call_info,
};

FIXTURE_VARIANT_ADD(fail_nth, set) {
	.stage = CREATED, .call = call_set,
};

FIXTURE_VARIANT_ADD(fail_nth, abort) {
	.stage = ARMED, .call = call_abort,
};

FIXTURE_VARIANT_ADD(fail_nth, region_add) {
	.stage = JOINED, .call = call_region_add,
};

FIXTURE_VARIANT_ADD(fail_nth, region_del) {
	.stage = REGISTERED, .call = call_region_del,
};

FIXTURE_VARIANT_ADD(fail_nth, first_part) {
	.stage = REGISTERED, .call = call_first_part, .again = -EEXIST,
};

FIXTURE_VARIANT_ADD(fail_nth, last_part) {
	.stage = ONE_PART, .call = call_last_part, .again = -EEXIST,
};

FIXTURE_VARIANT_ADD(fail_nth, watched_part) {
	.stage = ONE_PART, .call = call_last_part, .again = -EEXIST,
	.watched = true,
};

FIXTURE_VARIANT_ADD(fail_nth, plan_wait) {
	.stage = PLANNED, .call = call_plan_wait,
};

FIXTURE_VARIANT_ADD(fail_nth, plan_del) {
	.stage = LOOKED, .call = call_plan_del,
};

FIXTURE_VARIANT_ADD(fail_nth, arm) {
	.stage = LOOKED, .call = call_arm, .again = -EBUSY,
};

FIXTURE_VARIANT_ADD(fail_nth, notify) {
	.stage = ARMED, .call = call_notify, .again = -EPROTO,
};

FIXTURE_VARIANT_ADD(fail_nth, wait) {
	.stage = NOTIFIED, .call = call_wait,
};

FIXTURE_VARIANT_ADD(fail_nth, leave) {
	.stage = LOOKED, .call = call_leave,
};

FIXTURE_VARIANT_ADD(fail_nth, map_tiles) {
	.stage = LOOKED, .call = call_map_tiles,
};

FIXTURE_VARIANT_ADD(fail_nth, map_status) {
	.stage = LOOKED, .call = call_map_status,
};

FIXTURE_VARIANT_ADD(fail_nth, poll) {
	.stage = ARMED, .call = call_poll,
};

FIXTURE_VARIANT_ADD(fail_nth, fdinfo) {
	.stage = ARMED, .call = call_fdinfo,
};

FIXTURE_VARIANT_ADD(fail_nth, state) {
	.stage = ARMED, .call = call_state,
};

FIXTURE_VARIANT_ADD(fail_nth, region_dmabuf) {
	.stage = JOINED, .call = call_region_dmabuf, .give = give_dmabuf,
};

FIXTURE_VARIANT_ADD(fail_nth, fence_in) {
	.stage = ARMED, .call = call_fence_in, .give = give_fence,
};

FIXTURE_VARIANT_ADD(fail_nth, fence_out) {
	.stage = NOTIFIED, .call = call_fence_out,
};

FIXTURE_SETUP(fail_nth)
{
	self->fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	self->n.memory = mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->n.memory);
	self->files = open_files();
}

FIXTURE_TEARDOWN(fail_nth)
{
	if (self->fd >= 0)
		close(self->fd);
}

static void *look_at_part(void *data)
{
	struct nth *n = data;

	while (!__atomic_load_n(&n->stop, __ATOMIC_ACQUIRE))
		plan_wait(n->member[1], 0, MS / 10, NULL);
	return NULL;
}

/* The call with its @nth fault. Return: what it gave; *injected: there was one. */
static int call_nth(struct nth *n, int (*call)(struct nth *n), bool watched,
		    int fd, __u32 nth, bool *injected)
{
	pthread_t thread;
	int ret;

	if (watched)
		MUST(!pthread_create(&thread, NULL, look_at_part, n));
	set_nth(fd, nth);
	ret = call(n);
	*injected = was_injected(fd);
	if (watched) {
		__atomic_store_n(&n->stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	return ret;
}

TEST_F_TIMEOUT(fail_nth, sweep, 600)
{
	struct nth *n = &self->n;
	bool injected = true;
	__u32 i, failed = 0;

	for (i = 1; injected && i < MOST_FAULTS; i++) {
		int ret, second = 0;

		nth_open(n, variant->stage);
		if (variant->give && variant->give(n)) {
			nth_close(n);
			SKIP(return, "this kernel has no udmabuf, or no sw_sync");
		}
		ret = call_nth(n, variant->call, variant->watched, self->fd, i,
			       &injected);
		if (ret) {
			failed++;
			second = variant->call(n);
		}
		nth_close(n);
		ASSERT_TRUE(!ret || (injected &&
				     (ret == -ENOMEM || ret == -EFAULT)))
			TH_LOG("fault %u: error %d", i, ret);
		ASSERT_TRUE(!second ||
			    (ret == -EFAULT && second == variant->again))
			TH_LOG("fault %u: error %d, then error %d", i, ret,
			       second);
	}
	TH_LOG("%u faults, %u of them seen by the caller", i - 2, failed);
	ASSERT_FALSE(injected);
	/* What the group held goes with it, by a worker where need be. */
	FOR_EACH(k, 50) {
		if (!vm_pin())
			break;
		sleep_ms(100);
	}
	ASSERT_EQ(0, vm_pin());
	ASSERT_EQ(self->files, open_files());
}

TEST_HARNESS_MAIN
