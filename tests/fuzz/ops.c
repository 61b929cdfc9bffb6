// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ioctl fuzzer: what steps do. Nothing here judges: every call may fail.
 */
#define _GNU_SOURCE
#include "ioctl.h"

#include "../kselftest/t3_kselftest.h"

#include <poll.h>
#include <sys/syscall.h>

#define BUFFER_BYTES	(256 << 10)
#define BUFFERS		5

static struct {
	int dev;
	int slot[SLOTS];
	/* anonymous, memfd, memfd read-only, /dev/zero shared, a device's */
	char *buffer[BUFFERS];
	int memfd;
	/* of the member in the slot: the last part's offsets, and mappings */
	struct t3_plan_add part[SLOTS];
	__u32 *tiles[SLOTS];
	struct t3_plan_status *status[SLOTS];
	__u32 epoch[SLOTS];
	pid_t child;
} me;

/* A number at the edge of something for arguments from 0xe0 up. */
static __u32 edge(__u8 a)
{
	static const __u32 edges[32] = {
		0, 1, 2, 3, 63, 64, 65, 255, 256, 4095, 4096, 4097, 65535,
		65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 4 << 20,
		(4 << 20) + 1, 1 << 24, 0x7ffffffe, 0x7fffffff, 0x80000000,
		0x80000001, 0xfffffffe, 0xffffffff, 0xdead0000, 8, 16, 32, 24,
	};

	return a < 0xe0 ? a : edges[a - 0xe0];
}

static int *slot(__u8 a)
{
	return &me.slot[a % SLOTS];
}

static int fill(__u8 a, int fd)
{
	if (fd < 0)
		return -fd;
	if (*slot(a) >= 0)
		close(*slot(a));
	*slot(a) = fd;
	return 0;
}

static char *map_buffer(__u32 kind)
{
	int flags = kind ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int prot = kind == 2 ? PROT_READ : PROT_READ | PROT_WRITE;
	int fd = kind == 1 || kind == 2 ? me.memfd : -1;
	char *p;

	if (kind == 3)
		flags |= MAP_ANONYMOUS;
	if (kind == 4) {
		/* a file of a kind that is refused */
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		prot = PROT_READ;
		flags = MAP_PRIVATE;
	}
	p = mmap(NULL, BUFFER_BYTES, prot, flags, fd, 0);
	if (kind == 4 && fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void fuzz_begin(void)
{
	me.dev = open("/dev/t3", O_RDWR | O_CLOEXEC);
	me.memfd = memfd_create("fuzz", MFD_CLOEXEC);
	if (me.memfd >= 0 && ftruncate(me.memfd, BUFFER_BYTES))
		perror("# ftruncate");
	FOR_EACH(i, SLOTS)
		me.slot[i] = -1;
	FOR_EACH(k, BUFFERS)
		me.buffer[k] = map_buffer(k);
}

/* --- registering ------------------------------------------------------------ */

static int do_region_add(const __u8 *a)
{
	struct t3_region_add add = {
		.size = sizeof(add), .flags = edge(a[4]) >> 4 & 1,
		.type = a[4] >= 0xf0 ? edge(a[5]) : T3_REGION_USER,
		.dtype = 1 + a[4] % (T3_DTYPE_COUNT + (a[4] >= 0xe0)),
		.base = (uintptr_t)me.buffer[a[1] % BUFFERS] + a[2] * 64,
		.row_bytes = a[3] < 0xe0 ? 8 * (a[3] & 31) : edge(a[3]),
		.rows = a[5] < 0xe0 ? a[5] & 31 : edge(a[5]),
	};

	if (a[2] >= 0xf0)
		add.base += edge(a[2]);
	add.row_stride = add.row_bytes + (a[3] < 0xe0 ? 8 * (a[3] >> 6) : 0);
	return -t3_call(*slot(a[0]), T3_REGION_ADD, &add);
}

/* Spoils one of a part's numbers. */
static void spoil(struct part *part, __u8 where, __u8 what)
{
#define FIELD(x) { &(x), sizeof(x) }
	const struct {
		void *at;
		size_t bytes;
	} field[] = {
		FIELD(part->add.triggers),
		FIELD(part->add.sources),
		FIELD(part->add.regions),
		FIELD(part->add.generation),
		FIELD(part->add.digest[0]),
		FIELD(part->trigger[what % 8].op),
		FIELD(part->trigger[what % 8].region),
		FIELD(part->trigger[what % 8].block),
		FIELD(part->trigger[what % 8].seq),
		FIELD(part->trigger[what % 8].first_source),
		FIELD(part->trigger[what % 8].sources),
		FIELD(part->source[what % 16].rank),
		FIELD(part->source[what % 16].block),
		FIELD(part->source[what % 16].at),
		FIELD(part->source[what % 16].region),
		FIELD(part->block[what % 8].flags),
		FIELD(part->block[what % 8].tiles),
		FIELD(part->block[what % 8].readers),
		FIELD(part->region[what % 2].block_rows),
		FIELD(part->region[what % 2].block_cols),
		FIELD(part->cut[what % 16]),
		FIELD(part->region[what % 2].row_cuts),
		FIELD(part->add.trigger_list),
		FIELD(part->add.flags),
	};
#undef FIELD
	__u32 i = where % (sizeof(field) / sizeof(field[0]));
	__u64 value = edge(what);

	/* the low bytes: little endian */
	memcpy(field[i].at, &value, field[i].bytes);
}

static int do_plan_add(const __u8 *a)
{
	static struct part part;
	__u32 ranks = 1 + (a[2] >> 3 & 3), rank = a[2] >> 5 & 3;
	__u32 grid = 1 + (a[3] >> 2 & 3);
	int ret;

	part_init(&part, a[1] & 7, 1 + (a[1] >> 3 & 3));
	part_region(&part, a[3] & 3, 8, 8, grid, ranks);
	if ((a[2] & 7) == A2A)
		part_region(&part, (a[3] & 3) + 1, 8, 8, grid, ranks);
	part_collective(&part, (a[2] & 7) % (A2A + 1), rank % ranks, ranks,
			a[3] >> 4 & 3);
	if (a[1] & 0x80)
		part.add.flags = T3_PLAN_SILENT_PRODUCERS;
	if (a[4])
		spoil(&part, a[4], a[5]);
	if (a[4] >= 0x80)
		spoil(&part, a[4] >> 2, a[5] ^ a[4]);
	ret = part_add(*slot(a[0]), &part);
	if (!ret)
		me.part[a[0] % SLOTS] = part.add;
	return -ret;
}

/* --- running ------------------------------------------------------------------ */

static int do_arm(const __u8 *a)
{
	int ret = plan_arm(*slot(a[0]), edge(a[1]) & 0xff);

	if (ret < 0)
		return -ret;
	me.epoch[a[0] % SLOTS] = ret;
	return 0;
}

static int do_notify(const __u8 *a)
{
	struct t3_tiles list[8];
	__u32 n = a[2] & 7;

	if (a[2] & 0x40)	/* the usual thing: look at all */
		return -plan_notify(*slot(a[0]), a[1] & 7, NULL, 0, NULL);
	FOR_EACH(i, n)
		list[i] = (struct t3_tiles){ .block = a[3] < 0xe0 ? a[3] % 16 + i :
						      edge(a[3]),
					     .tiles = a[4] < 0xe0 ? a[4] & 3 :
						      edge(a[4]) };
	return -plan_notify(*slot(a[0]), a[1] & 7, list,
			    a[5] >= 0xe0 ? edge(a[5]) : n, NULL);
}

static int do_wait(const __u8 *a)
{
	__u32 epoch = a[2] < 0xe0 ? me.epoch[a[0] % SLOTS] : edge(a[2]);

	return -plan_wait_epoch(*slot(a[0]), a[1] & 7, epoch,
				(a[3] & 7) * 1000000ULL, NULL);
}

/* --- mappings ------------------------------------------------------------------ */

static int do_mmap(const __u8 *a)
{
	const struct t3_plan_add *add = &me.part[a[0] % SLOTS];
	bool status = a[1] & 1;
	size_t bytes = status ? add->status_bytes : add->tiles_bytes;
	off_t offset = status ? add->status_offset : add->tiles_offset;
	void *p;

	if (a[2] >= 0xe0) {
		bytes = edge(a[3]);
		offset = (off_t)edge(a[4]) << 12;
	}
	p = mmap(NULL, bytes, a[1] & 2 ? PROT_READ : PROT_READ | PROT_WRITE,
		 a[1] & 0x80 ? MAP_PRIVATE : MAP_SHARED, *slot(a[0]), offset);
	if (p == MAP_FAILED)
		return errno;
	if (a[2] >= 0xe0)
		munmap(p, bytes);
	else if (status)
		me.status[a[0] % SLOTS] = p;
	else if (!(a[1] & 2))
		me.tiles[a[0] % SLOTS] = p;
	return 0;
}

static int do_count(const __u8 *a)
{
	__u32 *tiles = me.tiles[a[0] % SLOTS];

	if (!tiles)
		return ENOENT;
	if (a[2] & 0x80)
		__atomic_store_n(&tiles[a[1] & 15], edge(a[3]), __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(&tiles[a[1] & 15], a[3] & 3, __ATOMIC_RELEASE);
	return 0;
}

static int do_munmap(const __u8 *a)
{
	__u32 i = a[0] % SLOTS;

	if (!me.tiles[i] || munmap(me.tiles[i], me.part[i].tiles_bytes))
		return ENOENT;
	me.tiles[i] = NULL;
	return 0;
}

/* What programs do to memory that they have registered. */
static int do_memory(const __u8 *a)
{
	char **p = &me.buffer[a[0] % BUFFERS];
	size_t at = (size_t)(a[2] & 31) * 4096, n = (1 + (a[3] & 31)) * 4096UL;

	if (!*p)
		*p = map_buffer(a[0] % BUFFERS);
	if (!*p)
		return ENOMEM;
	switch (a[1] % 9) {
	case 0:
		munmap(*p, BUFFER_BYTES);
		*p = NULL;
		return 0;
	case 1:
		return madvise(*p + at, n, MADV_DONTNEED) ? errno : 0;
	case 2:
		return mprotect(*p + at, n, PROT_READ) ? errno : 0;
	case 3:
		return mprotect(*p + at, n, PROT_READ | PROT_WRITE) ? errno : 0;
	case 4:
		return munmap(*p + at, n) ? errno : 0;
	case 5:
		return mmap(*p + at, n, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
			       MAP_FAILED ? errno : 0;
	case 6:
		return madvise(*p + at, n, MADV_HUGEPAGE) ? errno : 0;
	case 7:
		return fallocate(me.memfd, FALLOC_FL_PUNCH_HOLE |
				 FALLOC_FL_KEEP_SIZE, at, n) ? errno : 0;
	default:
		if (mprotect(*p, 4096, PROT_READ | PROT_WRITE))
			return errno;
		__atomic_store_n(*p, a[4], __ATOMIC_RELAXED);
		return 0;
	}
}

/* --- processes and files --------------------------------------------------------- */

static int do_grab(const __u8 *a, const pid_t *peers)
{
	int pidfd = syscall(SYS_pidfd_open, peers[a[1] % WORKERS], 0);
	int fd;

	if (pidfd < 0)
		return errno;
	/* All workers begin alike: the device, the memfd, KCOV, then the rest. */
	fd = syscall(SYS_pidfd_getfd, pidfd, me.dev + (a[2] & 31), 0);
	close(pidfd);
	return fd < 0 ? errno : fill(a[0], fd);
}

/* A child that holds all our descriptors, until the next one or our end. */
static int do_fork(const __u8 *a)
{
	if (me.child > 0) {
		kill(me.child, SIGKILL);
		waitpid(me.child, NULL, 0);
	}
	me.child = fork();
	if (me.child < 0)
		return errno;
	if (me.child)
		return 0;
	if (a[0] & 1)
		plan_arm(*slot(a[1]), a[2] & 7);
	if (a[0] & 2)
		_exit(0);
	for (;;)
		pause();
}

static int do_poll(const __u8 *a)
{
	struct pollfd p = { .fd = *slot(a[0]), .events = POLLIN };

	return poll(&p, 1, a[1] & 3) < 0 ? errno : p.revents ? EALREADY : 0;
}

/* Any command on any file, with a structure of any bytes and size. */
static int do_raw(const __u8 *a)
{
	static const __u8 sizes[] = { 8, 16, 24, 32, 40, 48, 120, 4, 200 };
	__u8 bytes[256] = { 0 };
	__u32 size = a[2] < 0xe0 ? sizes[a[2] % sizeof(sizes)] : edge(a[2]);
	int fd = a[0] & 0x80 ? me.dev : *slot(a[0]);

	memcpy(bytes, &size, sizeof(size));
	bytes[4 + a[3] % 128] = a[4];
	bytes[8 + a[5] % 120] ^= a[3];
	if (ioctl(fd, _IO(T3_IOC_TYPE, a[1] < 0xe0 ? a[1] % 0x60 : a[1]),
		  a[4] == 0xff ? (void *)(uintptr_t)edge(a[5]) : bytes) < 0)
		return errno;
	/* what it may have made */
	return 0;
}

static int do_knob(const __u8 *a)
{
	static const char * const knobs[] = {
		"poll_us", "poll_max_us", "inline_max_bytes", "watchdog_ms",
		"max_pinned_mb", "workers", "arbitration", "engine",
	};
	static const char * const values[] = {
		"0", "1", "7", "100", "4096", "65536", "1000000", "x",
	};
	char path[96];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/sys/class/misc/t3/%s", knobs[a[0] & 7]);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (write(fd, values[a[1] & 7], strlen(values[a[1] & 7])) < 0)
		ret = errno;
	close(fd);
	return ret;
}

static int do_read(const __u8 *a)
{
	char path[64], text[512];
	int fd, ret = 0;

	if (a[1] & 1)
		snprintf(path, sizeof(path), "/sys/kernel/debug/t3/state");
	else
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", *slot(a[0]));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	while ((ret = read(fd, text, sizeof(text))) > 0)
		;
	close(fd);
	return ret < 0 ? errno : 0;
}

static int do_create(const __u8 *a)
{
	static const __u32 watchdogs[] = { 0, 20, 50, 1, 600000, 600001 };

	__u32 ranks = a[1] < 0xe0 ? 1U + a[1] % 4 : edge(a[1]);

	return fill(a[0], group_create(me.dev, ranks, watchdogs[a[2] % 6]));
}

static int do_pause(const __u8 *a)
{
	usleep((a[0] & 7) * 1000);
	return 0;
}

static int do_call(const struct fuzz_step *s, const pid_t *peers)
{
	const __u8 *a = s->a;
	struct t3_group_info info;
	struct t3_query query;

	switch (s->op % OP_COUNT_OF_OPS) {
	case OP_QUERY: return -device_query(me.dev, &query);
	case OP_CREATE: return do_create(a);
	case OP_JOIN: return fill(a[0], group_join(*slot(a[1]), edge(a[2])));
	case OP_INFO: return -group_info(*slot(a[0]), &info);
	case OP_ABORT: return -group_abort(*slot(a[0]));
	case OP_SET: return -group_set(*slot(a[0]), edge(a[1]));
	case OP_REGION_ADD: return do_region_add(a);
	case OP_REGION_DEL: return -region_del(*slot(a[0]), edge(a[1]));
	case OP_PLAN_ADD: return do_plan_add(a);
	case OP_PLAN_WAIT: return -plan_wait(*slot(a[0]), a[1] & 7,
					     (a[2] & 7) * 1000000ULL, NULL);
	case OP_PLAN_DEL: return -plan_del(*slot(a[0]), edge(a[1]));
	case OP_ARM: return do_arm(a);
	case OP_NOTIFY: return do_notify(a);
	case OP_WAIT: return do_wait(a);
	case OP_LEAVE: return -member_leave(*slot(a[0]));
	case OP_DUP: return fill(a[0], fcntl(*slot(a[1]), F_DUPFD_CLOEXEC, 3));
	case OP_GRAB: return do_grab(a, peers);
	case OP_FORK: return do_fork(a);
	case OP_MMAP: return do_mmap(a);
	case OP_COUNT: return do_count(a);
	case OP_MUNMAP: return do_munmap(a);
	case OP_MEMORY: return do_memory(a);
	case OP_POLL: return do_poll(a);
	case OP_RAW: return do_raw(a);
	case OP_KNOB: return do_knob(a);
	case OP_READ: return do_read(a);
	default: return do_pause(a);
	}
}

int fuzz_do(const struct fuzz_step *step, const pid_t *peers)
{
	int fd;

	switch (step->op % OP_COUNT_OF_OPS) {
	case OP_CLOSE:
		fd = *slot(step->a[0]);
		*slot(step->a[0]) = -1;
		return fd < 0 || close(fd) ? EBADF : 0;
	case OP_EXIT:
		/* not often, else nothing else happens */
		if (step->a[0] == 0xee)
			_exit(0);
		if (step->a[0] == 0xef)
			raise(SIGKILL);
		return 0;
	default:
		return do_call(step, peers);
	}
}
