// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the device's files in sysfs, debugfs and /proc say: knobs and what they
 * refuse, counters, the dump, fdinfo.
 */
#include "t3_kselftest.h"
#include "knob_files.h"

#include <limits.h>
#include <sys/resource.h>

#define DEVICE	"/sys/class/misc/t3/"
#define PARAMS	"/sys/module/t3/parameters/"
#define DUMP	"/sys/kernel/debug/t3/state"

/* Returns 0 or the negative errno of the write. */
/* The whole file, as a string in memory of its own; NULL where it is not. */
static char *get(const char *folder, const char *name)
{
	static char text[65536];
	char path[PATH_MAX];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static long long number(const char *folder, const char *name)
{
	char *text = get(folder, name);

	return text ? strtoll(text, NULL, 10) : -1;
}

/* --- knobs ---------------------------------------------------------------- */

static const struct knob {
	const char *name;
	const char *good;	/* least, another, most */
	const char *other;
	const char *most;
	const char *low;	/* NULL: nothing is too low */
	const char *high;
} knobs[] = {
	{ "poll_us", "0", "7", "1000000", NULL, "1000001" },
	{ "poll_max_us", "1", "7", "1000000", "0", "1000001" },
	{ "inline_max_bytes", "0", "4096", "1073741824", NULL, "1073741825" },
	{ "watchdog_ms", "1", "1000", "86400000", "0", "86400001" },
	{ "watchdog_max_ms", "1", "1000", "86400000", "0", "86400001" },
	{ "max_pinned_mb", "0", "16", "4294967295", NULL, "4294967296" },
	{ "max_pinned_user_mb", "0", "16", "4294967295", NULL, "4294967296" },
	{ "workers", "1", "3", "8", "0", "9" },
	{ "dma_min_bytes", "1", "4096", "1073741824", "0", "1073741825" },
	{ "dma_timeout_ms", "1", "10", "60000", "0", "60001" },
	{ "inflight_max_bytes", "0", "4096", "1073741824", NULL, "1073741825" },
	{ "starve_us", "1", "50", "1000000", "0", "1000001" },
};

/* Sets all that is possible, nothing else, and puts the old value back. */
static void try_knob(struct __test_metadata *_metadata, const struct knob *k,
		     const char *folder)
{
	const char * const bad[] = { k->low, k->high, "-1", "x", "1x", "1 2",
				     "99999999999999999999" };
	const char * const good[] = { k->good, k->most, k->other };
	long long old = number(folder, k->name);
	char text[32];

	ASSERT_GE(old, 0);
	FOR_EACH(i, 3) {
		ASSERT_EQ(0, put(folder, k->name, good[i])) {
			TH_LOG("%s%s = %s", folder, k->name, good[i]);
		}
		ASSERT_EQ(strtoll(good[i], NULL, 10), number(DEVICE, k->name));
		ASSERT_EQ(strtoll(good[i], NULL, 10), number(PARAMS, k->name));
	}
	FOR_EACH(i, sizeof(bad) / sizeof(*bad)) {
		if (!bad[i])
			continue;
		ASSERT_GT(0, put(folder, k->name, bad[i])) {
			TH_LOG("%s%s = %s", folder, k->name, bad[i]);
		}
		ASSERT_EQ(strtoll(k->other, NULL, 10), number(DEVICE, k->name));
	}
	snprintf(text, sizeof(text), "%lld\n", old);
	ASSERT_EQ(0, put(folder, k->name, text));
}

TEST(knobs_take_what_is_possible)
{
	if (geteuid())
		SKIP(return, "not root");
	FOR_EACH(i, sizeof(knobs) / sizeof(*knobs)) {
		try_knob(_metadata, &knobs[i], DEVICE);
		try_knob(_metadata, &knobs[i], PARAMS);
	}
}

TEST(knobs_say_what_is_possible)
{
	char want[64];

	FOR_EACH(i, sizeof(knobs) / sizeof(*knobs)) {
		char *text = get(DEVICE "available/", knobs[i].name);

		ASSERT_NE(NULL, text);
		snprintf(want, sizeof(want), "[%s 1 %s]\n", knobs[i].good,
			 knobs[i].most);
		EXPECT_STREQ(want, text);
	}
}

/* What a knob says holds for the next group, region, query. */
TEST(knobs_have_effect)
{
	struct t3_query query;
	struct t3_group_info info;
	struct world w;
	__u32 region;
	void *p;

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, put(DEVICE, "inline_max_bytes", "4096"));
	ASSERT_EQ(0, put(DEVICE, "watchdog_max_ms", "5000"));
	ASSERT_EQ(0, put(DEVICE, "watchdog_ms", "3000"));
	ASSERT_EQ(0, put(DEVICE, "max_pinned_mb", "1"));
	ASSERT_EQ(0, world_open(&w, 1));
	EXPECT_EQ(0, device_query(w.dev, &query));
	EXPECT_EQ(4096, query.inline_max_bytes);
	EXPECT_EQ(5000, query.watchdog_max_ms);
	EXPECT_EQ(0, group_info(w.group, &info));
	EXPECT_EQ(3000, info.watchdog_ms);
	EXPECT_EQ(-ERANGE, group_set(w.group, 5001));
	p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-EDQUOT, region_add(w.member[0], p, T3_DTYPE_F32, 1, 2 << 20,
				      &region));
	EXPECT_EQ(0, region_add(w.member[0], p, T3_DTYPE_F32, 1, 1 << 20,
				&region));
	world_close(&w);
	EXPECT_EQ(0, put(DEVICE, "inline_max_bytes", "1048576"));
	EXPECT_EQ(0, put(DEVICE, "watchdog_max_ms", "600000"));
	EXPECT_EQ(0, put(DEVICE, "watchdog_ms", "30000"));
	EXPECT_EQ(0, put(DEVICE, "max_pinned_mb", "0"));
}

/*
 * Two users: each has its own limit, and all have one together. Ranks in
 * processes of their own; 4 MiB are tried where 1 MiB is left.
 */
static int pin_as(int group, __u32 rank, uid_t uid, size_t bytes, int hold)
{
	int member, ret;
	__u32 region;
	void *p;
	char c;

	if (setresuid(uid, uid, uid))
		return 100;
	member = group_join(group, rank);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ret = region_add(member, p, T3_DTYPE_F32, 1, bytes, &region);
	/* The parent goes on; the region stays until it closes its end. */
	if (!ret && hold >= 0) {
		c = 'x';
		ret = write(hold, &c, 1) == 1 ? 0 : 101;
		pause();
	}
	return -ret;
}

TEST(limits_of_a_user_and_of_all)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int dev, group, fd[2];
	pid_t holder, pid;
	char c;

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &all));
	ASSERT_EQ(0, put(DEVICE, "max_pinned_user_mb", "4"));
	dev = device_open();
	group = group_create(dev, 8, 0);
	ASSERT_EQ(0, pipe(fd));
	holder = fork_child();
	if (!holder)
		_exit(pin_as(group, 0, 1000, 3 << 20, fd[1]));
	ASSERT_EQ(1, read(fd[0], &c, 1));
	/* user, bytes, what becomes of it */
	static const struct { uid_t uid; size_t bytes; int ret; } tries[] = {
		{ 1000, 2 << 20, EDQUOT }, { 1000, 1 << 20, 0 },
		{ 1001, 4 << 20, 0 }, { 1001, 5 << 20, EDQUOT },
	};
	FOR_EACH(i, 4) {
		pid = fork_child();
		if (!pid)
			_exit(pin_as(group, 1 + i, tries[i].uid,
				     tries[i].bytes, -1));
		EXPECT_EQ(tries[i].ret, reap(pid)) {
			TH_LOG("user %u, %zu bytes", tries[i].uid,
			       tries[i].bytes);
		}
	}
	/* Together: 3 MiB are there. */
	ASSERT_EQ(0, put(DEVICE, "max_pinned_mb", "5"));
	FOR_EACH(i, 2) {
		pid = fork_child();
		if (!pid)
			_exit(pin_as(group, 5 + i, 1001, (2 + i) << 20, -1));
		EXPECT_EQ(i ? EDQUOT : 0, reap(pid));
	}
	kill(holder, SIGKILL);
	reap(holder);
	EXPECT_EQ(0, put(DEVICE, "max_pinned_user_mb", "0"));
	EXPECT_EQ(0, put(DEVICE, "max_pinned_mb", "0"));
	close(group);
	close(dev);
}

/* --- two ranks, one block that rank 0 sums --------------------------------- */

#define BYTES	8192

FIXTURE(pair)
{
	struct world w;
	struct part *part[2];
	char *memory[2];
};

FIXTURE_SETUP(pair)
{
	__u32 region;

	ASSERT_EQ(0, world_open(&self->w, 2));
	FOR_EACH(r, 2) {
		self->memory[r] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, self->memory[r]);
		self->part[r] = calloc(1, sizeof(*self->part[r]));
		ASSERT_NE(NULL, self->part[r]);
		part_init(self->part[r], 3, 1);
		ASSERT_EQ(0, region_add(self->w.member[r], self->memory[r],
					T3_DTYPE_F32, 2, BYTES / 2, &region));
		part_region(self->part[r], region, 2, BYTES / 2 / 4, 2, 1);
		part_collective(self->part[r], RS_DIRECT, r, 2, 1);
	}
	ASSERT_EQ(0, world_plan(&self->w, self->part, NULL));
}

FIXTURE_TEARDOWN(pair)
{
	world_close(&self->w);
	FOR_EACH(r, 2) {
		munmap(self->memory[r], BYTES);
		free(self->part[r]);
	}
}

static void produce_all(struct world *w)
{
	FOR_EACH(r, 2)
		FOR_EACH(b, 2)
			notify_one(w->member[r], 3, b, 1);
}

TEST_F(pair, counters)
{
	static const char * const name[] = { "epochs", "triggers", "bytes_cpu" };
	static const long long more[] = { 2, 2, BYTES };
	long long before[3], pinned, now;

	FOR_EACH(i, 3) {
		before[i] = number(DEVICE "counters/", name[i]);
		ASSERT_GE(before[i], 0);
	}
	FOR_EACH(r, 2)
		ASSERT_EQ(1, plan_arm(self->w.member[r], 3));
	produce_all(&self->w);
	FOR_EACH(r, 2)
		ASSERT_EQ(0, plan_wait_epoch(self->w.member[r], 3, 1, BOUND_NS,
					     NULL));
	/* whoever ran a trigger counts it when it is over with it */
	sleep_ms(200);
	FOR_EACH(i, 3) {
		now = number(DEVICE "counters/", name[i]);
		EXPECT_EQ(more[i], now - before[i]) {
			TH_LOG("%s", name[i]);
		}
	}
	pinned = number(DEVICE "counters/", "pinned_bytes");
	EXPECT_GE(pinned, 2 * BYTES);
	FOR_EACH(r, 2)
		plan_del(self->w.member[r], 3);
	FOR_EACH(r, 2)
		EXPECT_EQ(0, region_del(self->w.member[r],
					self->part[r]->region[0].region));
	EXPECT_EQ(pinned - 2 * BYTES,
		  number(DEVICE "counters/", "pinned_bytes"));
}

TEST_F(pair, breaks_are_counted_by_cause)
{
	long long aborted = number(DEVICE "counters/", "broken_aborted");
	long long died = number(DEVICE "counters/", "broken_died");

	ASSERT_EQ(0, group_abort(self->w.group));
	EXPECT_EQ(aborted + 1, number(DEVICE "counters/", "broken_aborted"));
	ASSERT_EQ(-EALREADY, group_abort(self->w.group));
	EXPECT_EQ(aborted + 1, number(DEVICE "counters/", "broken_aborted"));
	EXPECT_EQ(died, number(DEVICE "counters/", "broken_died"));
}

#define NOT_ARMED \
"trigger 0: sum to block 0 as update 2; rank 1 block 0 has 0 of 1 updates, not armed\n"

TEST_F(pair, dump_says_what_a_trigger_waits_for)
{
	char *text;

	if (geteuid() || !get("", DUMP))
		SKIP(return, "no debugfs");
	ASSERT_EQ(1, plan_arm(self->w.member[0], 3));
	ASSERT_EQ(0, notify_one(self->w.member[0], 3, 0, 1));
	text = get("", DUMP);
	EXPECT_NE(NULL, strstr(text, "rank 0: armed 1, retired 0"));
	EXPECT_NE(NULL, strstr(text, NOT_ARMED));
	ASSERT_EQ(1, plan_arm(self->w.member[1], 3));
	text = get("", DUMP);
	EXPECT_NE(NULL, strstr(text, "; rank 1 block 0 has 0 of 1 updates\n"));
	EXPECT_NE(NULL, strstr(text, "; rank 0 block 1 has 0 of 1 updates"));
	produce_all(&self->w);
	FOR_EACH(r, 2)
		ASSERT_EQ(0, plan_wait_epoch(self->w.member[r], 3, 1, BOUND_NS,
					     NULL));
	text = get("", DUMP);
	EXPECT_NE(NULL, strstr(text, "rank 1: armed 1, retired 1"));
	EXPECT_EQ(NULL, strstr(text, "trigger 0:"));
	ASSERT_EQ(2, plan_arm(self->w.member[0], 3));
	text = get("", DUMP);
	EXPECT_NE(NULL, strstr(text, "; rank 1 block 0 has 0 of 1 updates, not armed\n"));
	ASSERT_EQ(0, group_abort(self->w.group));
	EXPECT_NE(NULL, strstr(get("", DUMP), "broke: "));
}

TEST_F(pair, fdinfo)
{
	char path[64];
	char *text;

	ASSERT_EQ(1, plan_arm(self->w.member[1], 3));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->w.member[1]);
	text = get("", path);
	ASSERT_NE(NULL, text);
	EXPECT_NE(NULL, strstr(text, "\nt3-rank:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\nt3-regions:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\nt3-memory-pinned:\t8 KiB\n"));
	EXPECT_NE(NULL, strstr(text, "\nt3-plan-3:\tarmed 1 retired 0\n"));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->w.group);
	text = get("", path);
	EXPECT_NE(NULL, strstr(text, "\nt3-ranks:\t2\n"));
	EXPECT_NE(NULL, strstr(text, "\nt3-joined:\t0x3\n"));
	EXPECT_NE(NULL, strstr(text, "\nt3-broken:\t0\n"));
}

/* With one worker, and with all of them, the work is done. */
TEST_F(pair, workers)
{
	static const char * const n[] = { "1", "8" };

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, put(DEVICE, "inline_max_bytes", "0"));
	FOR_EACH(i, 2) {
		ASSERT_EQ(0, put(DEVICE, "workers", n[i]));
		FOR_EACH(r, 2)
			ASSERT_EQ((int)i + 1, plan_arm(self->w.member[r], 3));
		produce_all(&self->w);
		FOR_EACH(r, 2)
			ASSERT_EQ(0, plan_wait_epoch(self->w.member[r], 3,
						     i + 1, BOUND_NS, NULL));
	}
	ASSERT_EQ(0, put(DEVICE, "inline_max_bytes", "1048576"));
}

TEST_HARNESS_MAIN
