// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nothing is left behind: after many cycles of whatever can be made and let
 * go, pinned pages, kernel objects and free memory are where they were.
 *
 * T3_TEST_SCALE=500 makes that 10^4 register cycles and 10^5 epochs.
 */
#include "t3_kselftest.h"

#include <sys/resource.h>

#define CYCLES		2000
#define EPOCHS		20000
#define LIVES		300
#define KILLS		60
#define CACHES		512
#define REGION_BYTES	8192

struct usage {
	long vm_pin;			/* kB of this process */
	long foll_pin;			/* pages pinned on the whole machine */
	long available;			/* kB */
	long vmalloc;			/* kB */
	__u32 caches;
	struct cache {
		char name[64];
		long active;
	} cache[CACHES];
};

/* The kernel adds each processor's share up when asked, or in its own time. */
static long pages_pinned(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "1", 1) < 0)
			perror("# stat_refresh");
		close(fd);
	}
	return proc_number("/proc/vmstat", "nr_foll_pin_acquired") -
	       proc_number("/proc/vmstat", "nr_foll_pin_released");
}

/* Root only; without it the other numbers must do. */
static void read_caches(struct usage *u)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	char line[512];

	u->caches = 0;
	while (f && u->caches < CACHES && fgets(line, sizeof(line), f)) {
		struct cache *c = &u->cache[u->caches];

		if (sscanf(line, "%63s %ld", c->name, &c->active) == 2)
			u->caches++;
	}
	if (f)
		fclose(f);
}

static void measure(struct usage *u)
{
	u->vm_pin = vm_pin();
	u->foll_pin = pages_pinned();
	u->available = proc_number("/proc/meminfo", "MemAvailable:");
	u->vmalloc = proc_number("/proc/meminfo", "VmallocUsed:");
	read_caches(u);
}

static long active(const struct usage *u, const char *name)
{
	FOR_EACH(i, u->caches)
		if (!strcmp(u->cache[i].name, name))
			return u->cache[i].active;
	return 0;
}

/*
 * One object, or a few kB, lost in each cycle is seen; what the kernel keeps
 * for itself by the way is less. Returns what grew, or NULL.
 */
static const char *grown(const struct usage *was, const struct usage *is,
			 __u32 cycles)
{
	static char what[160];
	long slack = 8192;

	if (is->vm_pin > was->vm_pin || is->foll_pin > was->foll_pin) {
		snprintf(what, sizeof(what), "pinned: %ld kB, were %ld; %ld pages, were %ld",
			 is->vm_pin, was->vm_pin, is->foll_pin,
			 was->foll_pin);
		return what;
	}
	FOR_EACH(i, is->caches) {
		const struct cache *c = &is->cache[i];
		long more = c->active - active(was, c->name);

		/* areas that are free are put away in thousands */
		if (!strcmp(c->name, "vmap_area"))
			continue;
		if (more > (long)cycles / 2 && more > 100) {
			snprintf(what, sizeof(what), "%ld objects of %s", more,
				 c->name);
			return what;
		}
	}
	if (is->vmalloc > was->vmalloc + slack / 4 ||
	    is->available < was->available - slack) {
		snprintf(what, sizeof(what), "vmalloc %ld kB, was %ld; available %ld kB, was %ld",
			 is->vmalloc, was->vmalloc, is->available,
			 was->available);
		return what;
	}
	return NULL;
}

FIXTURE(leak) {
	int dev;
	char *memory;
	struct part part[2];
	struct usage before;
	struct usage after;
};

FIXTURE_SETUP(leak)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->memory = mmap(NULL, 4 * REGION_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->memory);
	memset(self->memory, 1, 4 * REGION_BYTES);
}

FIXTURE_TEARDOWN(leak)
{
	close(self->dev);
}

/* What is freed after a grace period, or by a worker, gets the time it needs. */
static const char *settle(struct _test_data_leak *self, __u32 cycles)
{
	const char *what = NULL;

	FOR_EACH(i, 50) {
		measure(&self->after);
		what = grown(&self->before, &self->after, cycles);
		if (!what)
			return NULL;
		sleep_ms(100);
	}
	return what;
}

/* Two ranks, two blocks, rank 1 copies what rank 0 has. */
static int make_plan(struct _test_data_leak *self, const int member[2],
		     __u32 slot, __u64 generation)
{
	__u32 region;
	int ret = 0;

	FOR_EACH(r, 2) {
		struct part *part = &self->part[r];

		ret = region_add(member[r], self->memory + r * REGION_BYTES,
				 T3_DTYPE_I32, 2, REGION_BYTES / 2, &region);
		if (ret)
			return ret;
		part_init(part, slot, generation);
		part_region(part, region, 2, REGION_BYTES / 8, 2, 1);
		FOR_EACH(b, 2) {
			if (r) {
				part_trigger(part, T3_OP_COPY, 0, b, 1);
				part_source(part, 0, 0, b, 1);
			} else {
				part_produced(part, 0, b, 1);
				part->block[b].readers = 2;
			}
		}
	}
	FOR_EACH(r, 2)
		ret = ret ?: part_add(member[r], &self->part[r]);
	return ret;
}

static int run_epoch(struct _test_data_leak *self, const int member[2],
		     __u32 slot, __u32 epoch)
{
	const struct t3_tiles both[] = { { 0, 1 }, { 1, 1 } };
	__u32 *from = (void *)self->memory;
	__u32 *to = (void *)(self->memory + REGION_BYTES);
	const __u32 last = REGION_BYTES / 4 - 1;
	int ret = 0;

	from[0] = epoch;
	from[last] = ~epoch;
	FOR_EACH(r, 2)
		ret = ret < 0 ? ret : plan_arm(member[r], slot);
	if (ret != (int)epoch)
		return ret < 0 ? ret : -EBADMSG;
	ret = plan_notify(member[0], slot, both, 2, NULL);
	FOR_EACH(r, 2)
		ret = ret ?: plan_wait_epoch(member[r], slot, epoch, BOUND_NS,
					     NULL);
	if (!ret && (to[0] != epoch || to[last] != ~epoch))
		return -EILSEQ;
	return ret;
}

static int drop_plan(struct _test_data_leak *self, const int member[2],
		     __u32 slot)
{
	int ret = 0;

	FOR_EACH(r, 2) {
		ret = ret ?: plan_del(member[r], slot);
		ret = ret ?: region_del(member[r],
					self->part[r].region[0].region);
	}
	return ret;
}

static int join_two(int group, int member[2])
{
	FOR_EACH(r, 2) {
		member[r] = group_join(group, r);
		if (member[r] < 0)
			return member[r];
	}
	return 0;
}

TEST_F_TIMEOUT(leak, register_cycles, 600)
{
	__u32 cycles = scaled(CYCLES);
	int group = group_create(self->dev, 2, 0);
	const char *what;
	int member[2];

	ASSERT_EQ(0, join_two(group, member));
	FOR_EACH(i, cycles + 100) {
		if (i == 100)
			measure(&self->before);
		ASSERT_EQ(0, make_plan(self, member, i % 64, i + 1))
			TH_LOG("cycle %u", i);
		ASSERT_EQ(0, run_epoch(self, member, i % 64, 1))
			TH_LOG("cycle %u", i);
		ASSERT_EQ(0, drop_plan(self, member, i % 64))
			TH_LOG("cycle %u", i);
	}
	what = settle(self, cycles);
	EXPECT_EQ(NULL, what) TH_LOG("%s", what);
	FOR_EACH(r, 2)
		close(member[r]);
	close(group);
}

/* Each refusal leaves nothing, however far the call had come. */
static int refuse_all(struct _test_data_leak *self, const int member[2],
		      int group)
{
	struct part *part = &self->part[0];
	struct rlimit was, none;
	__u32 region = 0;
	int bad = 0;

	bad |= region_add(member[0], self->memory, T3_DTYPE_I32, 1,
			  1 << 20, &region) != -EFAULT;
	part_init(part, 7, 1);
	part_region(part, 999, 2, 64, 2, 1);
	bad |= part_add(member[0], part) != -ENOENT;
	bad |= region_add(member[0], self->memory, T3_DTYPE_I32, 2, 256,
			  &region);
	part_init(part, 7, 1);
	part_region(part, region, 2, 64, 2, 1);
	part_trigger(part, T3_OP_SUM, 0, 0, 2);
	part_source(part, 0, 0, 1, 1);
	bad |= part_add(member[0], part) != -ERANGE;
	part->add.source_list = 0;
	bad |= part_add(member[0], part) != -EFAULT;
	bad |= region_del(member[0], region);
	bad |= group_join(group, 0) != -EEXIST;
	getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	bad |= group_create(self->dev, 2, 0) != -EMFILE;
	bad |= group_join(group, 2) != -EMFILE;
	setrlimit(RLIMIT_NOFILE, &was);
	return bad;
}

TEST_F_TIMEOUT(leak, refused_calls, 600)
{
	__u32 cycles = scaled(CYCLES);
	int group = group_create(self->dev, 3, 0);
	const char *what;
	int member[2];

	ASSERT_EQ(0, join_two(group, member));
	/* a hole, so that the first pages of a region can be pinned */
	ASSERT_EQ(0, munmap(self->memory + 3 * REGION_BYTES, REGION_BYTES));
	FOR_EACH(i, cycles + 100) {
		if (i == 100)
			measure(&self->before);
		ASSERT_EQ(0, refuse_all(self, member, group));
	}
	what = settle(self, cycles);
	EXPECT_EQ(NULL, what) TH_LOG("%s", what);
	FOR_EACH(r, 2)
		close(member[r]);
	close(group);
}

/* Whole groups; each third is closed with all that it has, some in an epoch. */
static int one_life(struct _test_data_leak *self, __u32 i)
{
	int group = group_create(self->dev, 2, 0);
	int member[2];
	int ret = join_two(group, member);

	ret = ret ?: make_plan(self, member, 0, 1);
	ret = ret ?: run_epoch(self, member, 0, 1);
	if (i % 3 == 0)
		ret = ret ?: drop_plan(self, member, 0);
	else if (i % 3 == 1)
		ret = ret ?: plan_arm(member[i / 3 % 2], 0) - 2;
	FOR_EACH(r, 2)
		close(member[r]);
	close(group);
	return ret;
}

TEST_F_TIMEOUT(leak, groups, 600)
{
	__u32 lives = scaled(LIVES);
	const char *what;

	FOR_EACH(i, lives + 30) {
		if (i == 30)
			measure(&self->before);
		ASSERT_EQ(0, one_life(self, i)) TH_LOG("group %u", i);
	}
	what = settle(self, lives);
	EXPECT_EQ(NULL, what) TH_LOG("%s", what);
}

/* Processes that are killed in the middle of it. */
static void killed_life(struct _test_data_leak *self)
{
	int group = group_create(self->dev, 2, 0);
	int member[2];

	MUST(!join_two(group, member));
	MUST(!make_plan(self, member, 0, 1));
	MUST(part_map_tiles(member[0], &self->part[0]) != MAP_FAILED);
	MUST((void *)part_map_status(member[1], &self->part[1]) != MAP_FAILED);
	for (__u32 e = 1;; e++)
		MUST(!run_epoch(self, member, 0, e));
}

TEST_F_TIMEOUT(leak, killed, 600)
{
	__u32 kills = scaled(KILLS);
	const char *what;

	FOR_EACH(i, kills + 10) {
		pid_t pid;

		if (i == 10)
			measure(&self->before);
		pid = fork_child();
		if (!pid)
			killed_life(self);
		sleep_ms(5 + i % 7 * 3);
		kill(pid, SIGKILL);
		ASSERT_EQ(1000 + SIGKILL, reap(pid));
	}
	what = settle(self, kills);
	EXPECT_EQ(NULL, what) TH_LOG("%s", what);
}

TEST_F_TIMEOUT(leak, epochs, 600)
{
	__u32 epochs = scaled(EPOCHS);
	int group = group_create(self->dev, 2, 0);
	const char *what;
	int member[2];

	ASSERT_EQ(0, join_two(group, member));
	ASSERT_EQ(0, make_plan(self, member, 0, 1));
	FOR_EACH(e, epochs + 100) {
		if (e == 100)
			measure(&self->before);
		ASSERT_EQ(0, run_epoch(self, member, 0, e + 1))
			TH_LOG("epoch %u", e + 1);
	}
	what = settle(self, epochs);
	EXPECT_EQ(NULL, what) TH_LOG("%s", what);
	ASSERT_EQ(0, drop_plan(self, member, 0));
	FOR_EACH(r, 2)
		close(member[r]);
	close(group);
}

TEST_HARNESS_MAIN
