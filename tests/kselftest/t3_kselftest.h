/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of /dev/t3 share: calls, plans made by hand, tiny
 * collectives, child processes.
 *
 * Every helper that makes a call returns 0 (or what its comment says) on
 * success and the negative errno on failure, and asserts nothing, so that a
 * test can expect a failure too.
 */
#ifndef T3_KSELFTEST_H
#define T3_KSELFTEST_H

#include "kselftest_harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <linux/t3.h>

/* For SKIP() in a fixture's setup, after which some harnesses go on. */
#define SKIPPED		255

/*
 * The contract's bound for telling the survivors of a death is 2 s; emulated
 * processors get five times that. A wait that ends with this bound has failed.
 */
#define BOUND_NS	(10ULL * 1000 * 1000 * 1000)
#define MS		(1000ULL * 1000)

/* The harness's ASSERT and EXPECT need braces around them in a loop. */
#define FOR_EACH(i, n)	for (__u32 i = 0; i < (n); i++)

static inline size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * How much of what takes long: the environment's T3_TEST_SCALE, in percent,
 * multiplies the numbers that suit an emulated machine.
 */
static inline __u32 scaled(__u32 n)
{
	const char *scale = getenv("T3_TEST_SCALE");

	return scale ? (__u32)(n * strtoull(scale, NULL, 10) / 100) : n;
}

/* A kernel that watches itself is slow: T3_TEST_SLOW multiplies time limits. */
static inline int harness_run(int argc, char **argv)
{
	const char *slow = getenv("T3_TEST_SLOW");
	struct __fixture_metadata *f;
	struct __test_metadata *t;

	for (f = __fixture_list; slow && f; f = f->next)
		for (t = f->tests; t; t = t->next)
			t->timeout *= (int)strtol(slow, NULL, 10);
	return test_harness_run(argc, argv);
}

/* what TEST_HARNESS_MAIN calls */
#define test_harness_run(argc, argv)	harness_run(argc, argv)

/* Without the device nothing can be tested: one skipped list, status 4. */
static __attribute__((constructor)) void need_device(void)
{
	int fd = open("/dev/t3", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return;
	}
	printf("TAP version 13\n1..0 # SKIP /dev/t3: %s\n", strerror(errno));
	fflush(stdout);
	_exit(KSFT_SKIP);
}

/* --- calls ------------------------------------------------------------- */

static inline int t3_call(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static inline int device_open(void)
{
	int fd = open("/dev/t3", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static inline int device_query(int dev, struct t3_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return t3_call(dev, T3_QUERY, query);
}

/* Returns the group. */
static inline int group_create(int dev, __u32 ranks, __u32 watchdog_ms)
{
	struct t3_group_create arg = {
		.size = sizeof(arg), .ranks = ranks,
		.watchdog_ms = watchdog_ms, .out_fd = -1,
	};
	int ret = t3_call(dev, T3_GROUP_CREATE, &arg);

	return ret ? ret : arg.out_fd;
}

/* Returns the member. */
static inline int group_join(int group, __u32 rank)
{
	struct t3_group_join arg = {
		.size = sizeof(arg), .rank = rank, .out_fd = -1,
	};
	int ret = t3_call(group, T3_GROUP_JOIN, &arg);

	return ret ? ret : arg.out_fd;
}

static inline int group_info(int fd, struct t3_group_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return t3_call(fd, T3_GROUP_INFO, info);
}

static inline int group_abort(int fd)
{
	struct t3_group_abort arg = { .size = sizeof(arg) };

	return t3_call(fd, T3_GROUP_ABORT, &arg);
}

static inline int group_set(int group, __u32 watchdog_ms)
{
	struct t3_group_set arg = {
		.size = sizeof(arg), .watchdog_ms = watchdog_ms,
	};

	return t3_call(group, T3_GROUP_SET, &arg);
}

static inline int region_add_full(int member, const struct t3_region_add *how,
				  __u32 *region)
{
	struct t3_region_add arg = *how;
	int ret;

	arg.size = sizeof(arg);
	ret = t3_call(member, T3_REGION_ADD, &arg);
	if (!ret)
		*region = arg.region;
	return ret;
}

/* A matrix of rows without gaps between them. */
static inline int region_add(int member, const void *base, __u32 dtype,
			     __u32 rows, __u64 row_bytes, __u32 *region)
{
	struct t3_region_add arg = {
		.type = T3_REGION_USER, .dtype = dtype,
		.base = (uintptr_t)base, .row_bytes = row_bytes,
		.row_stride = row_bytes, .rows = rows,
	};

	return region_add_full(member, &arg, region);
}

static inline int region_del(int member, __u32 region)
{
	struct t3_region_del arg = { .size = sizeof(arg), .region = region };

	return t3_call(member, T3_REGION_DEL, &arg);
}

static inline int plan_wait(int member, __u32 slot, __u64 timeout_ns,
			    struct t3_verdict *verdict)
{
	struct t3_plan_wait arg = {
		.size = sizeof(arg), .slot = slot, .timeout_ns = timeout_ns,
		/* the call must not believe what lies in an output */
		.verdict = { 0xaa, 0xaa, 0xaa, 0xaa },
	};
	int ret = t3_call(member, T3_PLAN_WAIT, &arg);

	if (verdict)
		*verdict = arg.verdict;
	return ret;
}

static inline int plan_del(int member, __u32 slot)
{
	struct t3_plan_del arg = { .size = sizeof(arg), .slot = slot };

	return t3_call(member, T3_PLAN_DEL, &arg);
}

/* Returns the epoch. */
static inline int plan_arm(int member, __u32 slot)
{
	struct t3_arm arg = { .size = sizeof(arg), .slot = slot };
	int ret = t3_call(member, T3_ARM, &arg);

	return ret ? ret : (int)arg.epoch;
}

/* @done may be NULL. */
static inline int plan_notify(int member, __u32 slot,
			      const struct t3_tiles *list, __u32 entries,
			      __u32 *done)
{
	struct t3_notify arg = {
		.size = sizeof(arg), .slot = slot, .entries = entries,
		.list = (uintptr_t)list, .done = 0xaaaaaaaa,
	};
	int ret = t3_call(member, T3_NOTIFY, &arg);

	if (done)
		*done = arg.done;
	return ret;
}

static inline int notify_one(int member, __u32 slot, __u32 block, __u32 tiles)
{
	struct t3_tiles entry = { .block = block, .tiles = tiles };

	return plan_notify(member, slot, &entry, 1, NULL);
}

/* @rank may be NULL. */
static inline int plan_wait_epoch(int member, __u32 slot, __u32 epoch,
				  __u64 timeout_ns, __u32 *rank)
{
	struct t3_wait arg = {
		.size = sizeof(arg), .slot = slot, .epoch = epoch,
		.timeout_ns = timeout_ns, .rank = 0xaaaa,
	};
	int ret = t3_call(member, T3_WAIT, &arg);

	if (rank)
		*rank = arg.rank;
	return ret;
}

static inline int member_leave(int member)
{
	struct t3_leave arg = { .size = sizeof(arg) };

	return t3_call(member, T3_LEAVE, &arg);
}

/* --- one rank's part of a plan, made by hand ----------------------------- */

#define PART_BLOCKS	256
#define PART_TRIGGERS	512
#define PART_SOURCES	2048
#define PART_CUTS	512

/**
 * struct part - a part and the arrays that it points to
 * @add: what T3_PLAN_ADD takes; the last call's outputs are in it
 *
 * A part points into itself: it is not to be copied.
 */
struct part {
	struct t3_plan_add add;
	struct t3_plan_region region[T3_MAX_PLAN_REGIONS + 1];
	struct t3_plan_block block[PART_BLOCKS];
	struct t3_trigger trigger[PART_TRIGGERS];
	struct t3_source source[PART_SOURCES];
	__u32 cut[PART_CUTS];
	__u32 blocks;
	__u32 cuts;
};

static inline void part_init(struct part *part, __u32 slot, __u64 generation)
{
	memset(part, 0, sizeof(*part));
	part->add.size = sizeof(part->add);
	part->add.slot = slot;
	part->add.generation = generation;
	part->add.digest[0] = 0x7433 + slot;
	part->add.digest[1] = generation;
	part->add.region_list = (uintptr_t)part->region;
	part->add.trigger_list = (uintptr_t)part->trigger;
	part->add.source_list = (uintptr_t)part->source;
}

/* Cuts @length into @pieces that differ by at most 1. */
static inline __u64 part_cuts(struct part *part, __u32 length, __u32 pieces)
{
	__u32 *cut = &part->cut[part->cuts];

	FOR_EACH(i, pieces + 1)
		cut[i] = (__u32)((__u64)length * i / pieces);
	part->cuts += pieces + 1;
	return (uintptr_t)cut;
}

/* Returns the plan region's index; its blocks are neither produced nor read. */
static inline __u32 part_region(struct part *part, __u32 region, __u32 rows,
				__u32 cols, __u32 block_rows, __u32 block_cols)
{
	struct t3_plan_region *r = &part->region[part->add.regions];

	r->region = region;
	r->block_rows = block_rows;
	r->block_cols = block_cols;
	r->row_cuts = part_cuts(part, rows, block_rows);
	r->col_cuts = part_cuts(part, cols, block_cols);
	r->blocks = (uintptr_t)&part->block[part->blocks];
	part->blocks += block_rows * block_cols;
	return part->add.regions++;
}

static inline __u32 part_region_blocks(const struct part *part, __u32 index)
{
	return part->region[index].block_rows * part->region[index].block_cols;
}

static inline struct t3_plan_block *part_block(struct part *part, __u32 index,
					       __u32 block)
{
	return (struct t3_plan_block *)(uintptr_t)
		part->region[index].blocks + block;
}

static inline void part_produced(struct part *part, __u32 index, __u32 block,
				 __u32 tiles)
{
	struct t3_plan_block *b = part_block(part, index, block);

	b->flags = T3_BLOCK_PRODUCED;
	b->tiles = tiles;
}

static inline struct t3_trigger *part_trigger(struct part *part, __u32 op,
					      __u32 index, __u32 block,
					      __u32 seq)
{
	struct t3_trigger *t = &part->trigger[part->add.triggers++];

	t->op = (__u16)op;
	t->region = (__u16)index;
	t->block = block;
	t->seq = seq;
	t->first_source = part->add.sources;
	t->sources = 0;
	return t;
}

/* One more source of the trigger that was made last. */
static inline struct t3_source *part_source(struct part *part, __u32 rank,
					    __u32 index, __u32 block, __u32 at)
{
	struct t3_source *s = &part->source[part->add.sources++];

	s->rank = (__u16)rank;
	s->region = (__u16)index;
	s->block = block;
	s->at = at;
	part->trigger[part->add.triggers - 1].sources++;
	return s;
}

static inline int part_add(int member, struct part *part)
{
	memset(&part->add.verdict, 0xaa, sizeof(part->add.verdict));
	return t3_call(member, T3_PLAN_ADD, &part->add);
}

/* The mapped counters and status; MAP_FAILED as mmap() gives it. */
static inline __u32 *part_map_tiles(int member, const struct part *part)
{
	return mmap(NULL, part->add.tiles_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED, member, (off_t)part->add.tiles_offset);
}

static inline struct t3_plan_status *part_map_status(int member,
						     const struct part *part)
{
	return mmap(NULL, part->add.status_bytes, PROT_READ, MAP_SHARED,
		    member, (off_t)part->add.status_offset);
}

/* As the ABI asks of producers: count with release, full fence, look. */
static inline int count_tiles(int member, __u32 slot, __u32 *tiles,
			      const struct t3_plan_status *status,
			      __u32 block, __u32 n)
{
	__atomic_fetch_add(&tiles[block], n, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&status->need_wakeup, __ATOMIC_ACQUIRE))
		return 0;
	return notify_one(member, slot, block, 0);
}

/* --- tiny collectives ---------------------------------------------------- */

enum collective { RS_DIRECT, RS_RING, AG_DIRECT, AG_RING, AR_DIRECT, AR_RING,
		  A2A };

/* Chain position of @rank in the ring of @shard, and the rank at a position. */
static inline __u32 ring_pos(__u32 ranks, __u32 shard, __u32 rank)
{
	return (rank + 2 * ranks - shard - 1) % ranks;
}

static inline __u32 ring_rank(__u32 ranks, __u32 shard, __u32 pos)
{
	return (shard + 1 + pos) % ranks;
}

static inline __u32 shard_of(const struct part *part, __u32 ranks, __u32 block)
{
	return block / (part_region_blocks(part, 0) / ranks);
}

static inline void sum_direct(struct part *part, __u32 ranks, __u32 block)
{
	part_trigger(part, T3_OP_SUM, 0, block, 2);
	FOR_EACH(r, ranks)
		part_source(part, r, 0, block, 1);
}

static inline void sum_ring(struct part *part, __u32 rank, __u32 ranks,
			    __u32 shard, __u32 block)
{
	__u32 j = ring_pos(ranks, shard, rank);

	if (!j)
		return;
	part_trigger(part, T3_OP_SUM, 0, block, 2);
	part_source(part, ring_rank(ranks, shard, j - 1), 0, block,
		    j == 1 ? 1 : 2);
	part_source(part, rank, 0, block, 1);
}

static inline void copy_one(struct part *part, __u32 block, __u32 seq,
			    __u32 from, __u32 at)
{
	part_trigger(part, T3_OP_COPY, 0, block, seq);
	part_source(part, from, 0, block, at);
}

static inline void gather_ring(struct part *part, __u32 rank, __u32 ranks,
			       __u32 shard, __u32 block)
{
	__u32 j = ring_pos(ranks, shard, rank);

	if (rank != shard)
		copy_one(part, block, 1,
			 j ? ring_rank(ranks, shard, j - 1) : shard, 1);
}

/* The second half of a ring all-reduce in place. */
static inline void regather_ring(struct part *part, __u32 rank, __u32 ranks,
				 __u32 shard, __u32 block)
{
	__u32 j = ring_pos(ranks, shard, rank);

	if (rank == shard)
		return;
	if (!j)
		copy_one(part, block, 2, shard, 2);
	else
		copy_one(part, block, 3, ring_rank(ranks, shard, j - 1),
			 j == 1 ? 2 : 3);
}

static inline void reduce_block(struct part *part, enum collective what,
				__u32 rank, __u32 ranks, __u32 block)
{
	__u32 shard = shard_of(part, ranks, block);

	switch (what) {
	case RS_DIRECT:
	case AR_DIRECT:
		if (rank == shard)
			sum_direct(part, ranks, block);
		else if (what == AR_DIRECT)
			copy_one(part, block, 2, shard, 2);
		break;
	case RS_RING:
	case AR_RING:
		sum_ring(part, rank, ranks, shard, block);
		if (what == AR_RING)
			regather_ring(part, rank, ranks, shard, block);
		break;
	case AG_DIRECT:
		if (rank != shard)
			copy_one(part, block, 1, shard, 1);
		break;
	case AG_RING:
		gather_ring(part, rank, ranks, shard, block);
		break;
	case A2A:
		break;
	}
}

/* Block q, i of plan region 1 comes from block rank, i of rank q's region 0. */
static inline void exchange(struct part *part, __u32 rank, __u32 ranks)
{
	__u32 each = part_region_blocks(part, 0) / ranks;

	FOR_EACH(b, ranks * each) {
		part_trigger(part, T3_OP_COPY, 1, b, 1);
		part_source(part, b / each, 0, rank * each + b % each, 1);
	}
}

/**
 * part_collective - the triggers of one rank, by the tables of the design
 * @part: has region 0 (and region 1 for A2A), whose number of blocks is a
 *	multiple of @ranks
 * @what: which
 * @rank: whose part
 * @ranks: of how many
 * @tiles: of each block that is produced; 0: arming produces it
 *
 * Every block is readable by all.
 */
static inline void part_collective(struct part *part, enum collective what,
				   __u32 rank, __u32 ranks, __u32 tiles)
{
	bool gather = what == AG_DIRECT || what == AG_RING;

	FOR_EACH(b, part->blocks)
		part->block[b].readers = ~0ULL >> (64 - ranks);
	FOR_EACH(b, part_region_blocks(part, 0)) {
		if (!gather || shard_of(part, ranks, b) == rank)
			part_produced(part, 0, b, tiles);
		if (ranks > 1)
			reduce_block(part, what, rank, ranks, b);
	}
	if (what == A2A)
		exchange(part, rank, ranks);
}

/* --- elements ------------------------------------------------------------ */

static inline size_t dtype_bytes(__u32 dtype)
{
	static const size_t bytes[] = { 0, 4, 8, 2, 2, 4 };

	return bytes[dtype];
}

/* Bits of a small natural number: up to 2048 in f16, up to 256 in bf16. */
static inline __u16 f16_bits(unsigned int value)
{
	int e;

	if (!value)
		return 0;
	e = 31 - __builtin_clz(value);
	return (__u16)((e + 15) << 10 | ((value << 10 >> e) & 0x3ff));
}

static inline __u16 bf16_bits(unsigned int value)
{
	float f = (float)value;
	__u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return (__u16)(bits >> 16);
}

static inline void put_element(void *at, __u32 dtype, unsigned int value)
{
	float f = (float)value;
	double d = value;
	__u16 h = dtype == T3_DTYPE_F16 ? f16_bits(value) : bf16_bits(value);

	if (dtype == T3_DTYPE_F32)
		memcpy(at, &f, sizeof(f));
	else if (dtype == T3_DTYPE_F64)
		memcpy(at, &d, sizeof(d));
	else if (dtype == T3_DTYPE_I32)
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &h, sizeof(h));
}

static inline bool is_element(const void *at, __u32 dtype, unsigned int value)
{
	unsigned char want[8];

	put_element(want, dtype, value);
	return !memcmp(at, want, dtype_bytes(dtype));
}

/* --- processes ----------------------------------------------------------- */

/*
 * For children and threads, where the harness's ASSERT does not reach: says
 * what was wrong and ends the process with status 1.
 */
#define MUST(cond) must_be((cond), #cond, __FILE__, __LINE__)

static inline void must_be(bool cond, const char *text, const char *file,
			   int line)
{
	if (cond)
		return;
	fprintf(stderr, "# %s:%d: not so: %s (errno %d)\n", file, line, text,
		errno);
	_exit(1);
}

/* fork(); the child dies with its parent. */
static inline pid_t fork_child(void)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* Returns the exit status, or 1000 + the signal. */
static inline int reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   1000 + WTERMSIG(status);
}

static inline __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000 + (__u64)ts.tv_nsec;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (ms % 1000) * 1000000L };

	nanosleep(&ts, NULL);
}

/* A line of numbers of a file of /proc; -1 where it is not there. */
static inline long proc_number(const char *path, const char *key)
{
	FILE *f = fopen(path, "r");
	char line[256];
	long value = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			value = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* kB that are pinned. */
static inline long vm_pin(void)
{
	return proc_number("/proc/self/status", "VmPin:");
}

static inline int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		return -errno;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* --- a group whose ranks are all in this process --------------------------- */

#define WORLD_MAX	8

struct world {
	int dev;
	int group;
	__u32 ranks;
	int member[WORLD_MAX];
};

/* Returns 0, or a negative errno with everything closed again. */
static inline int world_open(struct world *w, __u32 ranks)
{
	w->ranks = 0;
	w->dev = device_open();
	if (w->dev < 0)
		return w->dev;
	w->group = group_create(w->dev, ranks, 0);
	if (w->group < 0)
		return w->group;
	FOR_EACH(r, ranks) {
		w->member[r] = group_join(w->group, r);
		if (w->member[r] < 0)
			return w->member[r];
		w->ranks++;
	}
	return 0;
}

static inline void world_close(struct world *w)
{
	FOR_EACH(r, w->ranks)
		if (w->member[r] >= 0)
			close(w->member[r]);
	w->ranks = 0;
	close(w->group);
	close(w->dev);
}

/* The parts of all ranks and the joint verdict, which must be one for all. */
static inline int world_plan(struct world *w, struct part *const *part,
			     struct t3_verdict *verdict)
{
	struct t3_verdict v = { 0 };
	int ret = 0;

	FOR_EACH(r, w->ranks) {
		ret = part_add(w->member[r], part[r]);
		v = part[r]->add.verdict;
		if (ret)
			goto out;
	}
	FOR_EACH(r, w->ranks) {
		struct t3_verdict mine;
		int err = plan_wait(w->member[r], part[r]->add.slot, BOUND_NS,
				    &mine);

		if (r && (err != ret || memcmp(&mine, &v, sizeof(v))))
			return -ENOTRECOVERABLE;
		ret = err;
		v = mine;
	}
out:
	if (verdict)
		*verdict = v;
	return ret;
}

#endif /* T3_KSELFTEST_H */
