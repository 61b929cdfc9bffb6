// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Wrong calls: every command with a wrong size, flag, reserved field, pointer,
 * kind of file, address space; every argument out of range. Each is refused
 * with its documented errno, changes nothing, and the right call after it
 * succeeds. errnos.txt has the list of errors and where each is provoked.
 */
#include "t3_kselftest.h"

#include <sys/resource.h>

#define ARG_MAX_BYTES	256
#define TILES		2
#define BLOCKS		2

/* A group of one rank with all that a right call of any command needs. */
struct scene {
	struct world w;
	int joinable;		/* a group of one rank that nobody took */
	void *memory;		/* two pages: one for each region */
	__u32 used;		/* region of the plan in slot 0 */
	__u32 unused;		/* another */
	struct part *plan;	/* live, in slot 0 */
	struct part *next;	/* not yet added, for slot 1 */
	struct t3_plan_status *status;
	__u32 *tiles;
	struct t3_tiles entry;
};

static void make_part(struct part *part, __u32 slot, __u32 region)
{
	part_init(part, slot, 1);
	part_region(part, region, BLOCKS, 64, BLOCKS, 1);
	FOR_EACH(b, BLOCKS)
		part_produced(part, 0, b, TILES);
}

static int scene_regions(struct scene *s)
{
	char *memory = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (memory == MAP_FAILED)
		return -errno;
	s->memory = memory;
	ret = region_add(s->w.member[0], memory, T3_DTYPE_F32, BLOCKS,
			 64 * sizeof(float), &s->used);
	if (ret)
		return ret;
	return region_add(s->w.member[0], memory + page_size(), T3_DTYPE_F32,
			  BLOCKS, 64 * sizeof(float), &s->unused);
}

static int scene_open(struct scene *s)
{
	struct part *parts[1];
	int ret;

	s->plan = calloc(2, sizeof(*s->plan));
	if (!s->plan)
		return -ENOMEM;
	s->next = s->plan + 1;
	ret = world_open(&s->w, 1);
	if (ret)
		return ret;
	s->joinable = group_create(s->w.dev, 1, 0);
	if (s->joinable < 0)
		return s->joinable;
	ret = scene_regions(s);
	if (ret)
		return ret;
	make_part(s->plan, 0, s->used);
	make_part(s->next, 1, s->used);
	parts[0] = s->plan;
	ret = world_plan(&s->w, parts, NULL);
	if (ret)
		return ret;
	s->status = part_map_status(s->w.member[0], s->plan);
	s->tiles = part_map_tiles(s->w.member[0], s->plan);
	return s->status == MAP_FAILED || (void *)s->tiles == MAP_FAILED ?
		-errno : 0;
}

static void scene_close(struct scene *s)
{
	close(s->joinable);
	world_close(&s->w);
	free(s->plan);
}

/* All that can be seen from outside and that a refused call may not change. */
struct snapshot {
	struct t3_group_info info;
	struct t3_group_info joinable;
	struct t3_plan_status status;
	__u32 count[BLOCKS];
	__u32 tiles[BLOCKS];
	int plan[2];
	int files;
	long pinned;
};

static void snapshot(struct scene *s, struct snapshot *snap)
{
	memset(snap, 0, sizeof(*snap));
	group_info(s->w.group, &snap->info);
	group_info(s->joinable, &snap->joinable);
	snap->status = *s->status;
	/* the poller may fall asleep in between, which is no change */
	snap->status.need_wakeup = 0;
	memcpy(snap->count, (char *)s->status + s->status->count_offset,
	       sizeof(snap->count));
	memcpy(snap->tiles, s->tiles, sizeof(snap->tiles));
	FOR_EACH(slot, 2)
		snap->plan[slot] = plan_wait(s->w.member[0], slot, 0, NULL);
	snap->files = open_files();
	snap->pinned = vm_pin();
}

/* --- what the right call of each command is ------------------------------- */

enum { ON_DEVICE = 1, ON_GROUP = 2, ON_MEMBER = 4, ON_JOINABLE = 8 };

static int scene_fd(const struct scene *s, unsigned int on)
{
	switch (on) {
	case ON_DEVICE:
		return s->w.dev;
	case ON_GROUP:
		return s->w.group;
	case ON_JOINABLE:
		return s->joinable;
	default:
		return s->w.member[0];
	}
}

static void fill_nothing(struct scene *s, void *arg)
{
}

static void fill_create(struct scene *s, void *arg)
{
	((struct t3_group_create *)arg)->ranks = 3;
}

static void fill_set(struct scene *s, void *arg)
{
	((struct t3_group_set *)arg)->watchdog_ms = 1000;
}

static void fill_region_add(struct scene *s, void *arg)
{
	struct t3_region_add *add = arg;

	add->type = T3_REGION_USER;
	add->dtype = T3_DTYPE_I32;
	add->base = (uintptr_t)s->memory;
	add->row_bytes = 64;
	add->row_stride = 128;
	add->rows = 3;
}

static void fill_region_del(struct scene *s, void *arg)
{
	((struct t3_region_del *)arg)->region = s->unused;
}

static void fill_plan_add(struct scene *s, void *arg)
{
	memcpy(arg, &s->next->add, sizeof(s->next->add));
}

static void fill_notify(struct scene *s, void *arg)
{
	struct t3_notify *notify = arg;

	if (!s->status->armed)
		plan_arm(s->w.member[0], 0);
	s->entry.block = 1;
	s->entry.tiles = 1;
	notify->entries = 1;
	notify->list = (uintptr_t)&s->entry;
}

static void fill_wait(struct scene *s, void *arg)
{
	struct t3_wait *wait = arg;

	if (!s->status->armed) {
		plan_arm(s->w.member[0], 0);
		FOR_EACH(b, BLOCKS)
			notify_one(s->w.member[0], 0, b, TILES);
	}
	wait->epoch = 1;
	wait->timeout_ns = BOUND_NS;
}

FIXTURE(command) {
	struct scene s;
	struct snapshot before;
	unsigned char arg[ARG_MAX_BYTES + 8192];
	int fd;
};

/*
 * @first_size: of the structure's first version, 0: @size
 * @known_flags: bits of .flags that mean something
 * @reserved: offset of .__reserved, 0: none
 * @out: offset and length of the outputs; no length: none
 */
FIXTURE_VARIANT(command) {
	unsigned long nr;
	unsigned int on;
	__u32 size;
	__u32 first_size;
	__u32 known_flags;
	unsigned int reserved;
	unsigned int out;
	unsigned int out_bytes;
	void (*fill)(struct scene *s, void *arg);
};

#define OUT(type, from, to) \
	.out = offsetof(struct type, from), \
	.out_bytes = offsetof(struct type, to) + \
		     sizeof(((struct type *)0)->to) - offsetof(struct type, from)

FIXTURE_VARIANT_ADD(command, query) {
	.nr = T3_QUERY, .on = ON_DEVICE, .size = sizeof(struct t3_query),
	OUT(t3_query, features, watchdog_max_ms), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_create) {
	.nr = T3_GROUP_CREATE, .on = ON_DEVICE,
	.size = sizeof(struct t3_group_create),
	.reserved = offsetof(struct t3_group_create, __reserved),
	OUT(t3_group_create, out_fd, out_fd), .fill = fill_create,
};

FIXTURE_VARIANT_ADD(command, group_join) {
	.nr = T3_GROUP_JOIN, .on = ON_JOINABLE,
	.size = sizeof(struct t3_group_join),
	OUT(t3_group_join, out_fd, out_fd), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_info) {
	.nr = T3_GROUP_INFO, .on = ON_GROUP,
	.size = sizeof(struct t3_group_info),
	OUT(t3_group_info, ranks, broken_block), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_info_by_member) {
	.nr = T3_GROUP_INFO, .on = ON_MEMBER,
	.size = sizeof(struct t3_group_info),
	OUT(t3_group_info, ranks, broken_block), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_abort) {
	.nr = T3_GROUP_ABORT, .on = ON_GROUP,
	.size = sizeof(struct t3_group_abort), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_abort_by_member) {
	.nr = T3_GROUP_ABORT, .on = ON_MEMBER,
	.size = sizeof(struct t3_group_abort), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, group_set) {
	.nr = T3_GROUP_SET, .on = ON_GROUP,
	.size = sizeof(struct t3_group_set),
	.reserved = offsetof(struct t3_group_set, __reserved),
	.fill = fill_set,
};

FIXTURE_VARIANT_ADD(command, region_add) {
	.nr = T3_REGION_ADD, .on = ON_MEMBER,
	.size = sizeof(struct t3_region_add), .first_size = 48,
	.known_flags = T3_REGION_READ_ONLY,
	.reserved = offsetof(struct t3_region_add, __reserved),
	OUT(t3_region_add, region, region), .fill = fill_region_add,
};

FIXTURE_VARIANT_ADD(command, region_del) {
	.nr = T3_REGION_DEL, .on = ON_MEMBER,
	.size = sizeof(struct t3_region_del),
	.reserved = offsetof(struct t3_region_del, __reserved),
	.fill = fill_region_del,
};

FIXTURE_VARIANT_ADD(command, plan_add) {
	.nr = T3_PLAN_ADD, .on = ON_MEMBER, .size = sizeof(struct t3_plan_add),
	.known_flags = T3_PLAN_SILENT_PRODUCERS,
	OUT(t3_plan_add, verdict, status_bytes), .fill = fill_plan_add,
};

FIXTURE_VARIANT_ADD(command, plan_wait) {
	.nr = T3_PLAN_WAIT, .on = ON_MEMBER,
	.size = sizeof(struct t3_plan_wait),
	.reserved = offsetof(struct t3_plan_wait, __reserved),
	OUT(t3_plan_wait, verdict, verdict), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, plan_del) {
	.nr = T3_PLAN_DEL, .on = ON_MEMBER, .size = sizeof(struct t3_plan_del),
	.reserved = offsetof(struct t3_plan_del, __reserved),
	.fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, arm) {
	.nr = T3_ARM, .on = ON_MEMBER, .size = sizeof(struct t3_arm),
	OUT(t3_arm, epoch, epoch), .fill = fill_nothing,
};

FIXTURE_VARIANT_ADD(command, notify) {
	.nr = T3_NOTIFY, .on = ON_MEMBER, .size = sizeof(struct t3_notify),
	.reserved = offsetof(struct t3_notify, __reserved),
	OUT(t3_notify, done, done), .fill = fill_notify,
};

FIXTURE_VARIANT_ADD(command, wait) {
	.nr = T3_WAIT, .on = ON_MEMBER, .size = sizeof(struct t3_wait),
	.reserved = offsetof(struct t3_wait, __reserved),
	OUT(t3_wait, rank, rank), .fill = fill_wait,
};

FIXTURE_VARIANT_ADD(command, leave) {
	.nr = T3_LEAVE, .on = ON_MEMBER, .size = sizeof(struct t3_leave),
	.fill = fill_nothing,
};

static void right_arg(struct _test_data_command *self,
		      const struct _fixture_variant_command *variant)
{
	memset(self->arg, 0, sizeof(self->arg));
	variant->fill(&self->s, self->arg);
	memcpy(self->arg, &variant->size, sizeof(variant->size));
	/* what lies in an output before the call means nothing */
	memset(self->arg + variant->out, 0x5a, variant->out_bytes);
}

FIXTURE_SETUP(command)
{
	ASSERT_EQ(0, scene_open(&self->s));
	self->fd = scene_fd(&self->s, variant->on);
	right_arg(self, variant);
	/* the first look at /proc may itself open nothing for good */
	snapshot(&self->s, &self->before);
	snapshot(&self->s, &self->before);
}

FIXTURE_TEARDOWN(command)
{
	scene_close(&self->s);
}

static bool changed(struct _test_data_command *self)
{
	struct snapshot after;

	snapshot(&self->s, &after);
	return memcmp(&self->before, &after, sizeof(after));
}

#define EXPECT_REFUSED(error, arg) do {					\
	EXPECT_EQ(-(error), t3_call(self->fd, variant->nr, arg));	\
	EXPECT_FALSE(changed(self));					\
} while (0)

/* The right call must succeed, and as if nothing had been before it. */
#define EXPECT_TAKEN(arg) do {						\
	EXPECT_EQ(0, t3_call(self->fd, variant->nr, arg));		\
	if (variant->nr == T3_ARM)					\
		EXPECT_EQ(1U, ((struct t3_arm *)(arg))->epoch);		\
} while (0)

TEST_F(command, right_call_defines_its_outputs)
{
	unsigned char was[ARG_MAX_BYTES];

	memcpy(was, self->arg, variant->size);
	EXPECT_TAKEN(self->arg);
	FOR_EACH(i, variant->size) {
		bool out = i >= variant->out &&
			   i < variant->out + variant->out_bytes;

		if (out) {
			EXPECT_NE(0x5a, self->arg[i])
				TH_LOG("output byte %u not written", i);
		} else {
			EXPECT_EQ(was[i], self->arg[i])
				TH_LOG("input byte %u written", i);
		}
	}
}

TEST_F(command, short_size)
{
	__u32 first = variant->first_size ? variant->first_size : variant->size;
	const __u32 sizes[] = { 0, 1, 4, first - 4, first - 1 };

	FOR_EACH(i, ARRAY_SIZE(sizes)) {
		memcpy(self->arg, &sizes[i], sizeof(sizes[i]));
		EXPECT_REFUSED(EINVAL, self->arg);
	}
	right_arg(self, variant);
	EXPECT_TAKEN(self->arg);
}

/* A caller that knows the first version only. */
TEST_F(command, first_size)
{
	if (!variant->first_size)
		SKIP(return, "there is one version");
	memcpy(self->arg, &variant->first_size, sizeof(variant->first_size));
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, surplus_not_zero)
{
	const __u32 surplus[] = { 1, 8, 64, 4096 };

	FOR_EACH(i, ARRAY_SIZE(surplus)) {
		__u32 size = variant->size + surplus[i];

		right_arg(self, variant);
		memcpy(self->arg, &size, sizeof(size));
		self->arg[size - 1] = 1;
		EXPECT_REFUSED(E2BIG, self->arg);
		self->arg[size - 1] = 0;
		self->arg[variant->size] = 1;
		EXPECT_REFUSED(E2BIG, self->arg);
	}
	right_arg(self, variant);
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, surplus_of_8_zeros)
{
	__u32 size = variant->size + 8;

	memcpy(self->arg, &size, sizeof(size));
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, surplus_of_a_page_of_zeros)
{
	__u32 size = variant->size + 4096;

	memcpy(self->arg, &size, sizeof(size));
	EXPECT_TAKEN(self->arg);
}

/* The surplus can't be read: not taken for zeros. */
TEST_F(command, huge_size)
{
	__u32 size = 0xffffffff;
	char *pages = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(pages + page_size(), page_size()));
	memcpy(pages, self->arg, variant->size);
	memcpy(pages, &size, sizeof(size));
	ret = t3_call(self->fd, variant->nr, pages);
	EXPECT_TRUE(ret == -EFAULT || ret == -E2BIG) TH_LOG("got %d", ret);
	EXPECT_FALSE(changed(self));
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, unknown_flags)
{
	FOR_EACH(bit, 32) {
		__u32 flags = 1U << bit;

		if (flags & variant->known_flags)
			continue;
		memcpy(self->arg + 4, &flags, sizeof(flags));
		EXPECT_REFUSED(EOPNOTSUPP, self->arg);
	}
	right_arg(self, variant);
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, reserved_not_zero)
{
	if (!variant->reserved)
		SKIP(return, "the command has no reserved field");
	FOR_EACH(i, sizeof(__u32)) {
		self->arg[variant->reserved + i] = 0x80;
		EXPECT_REFUSED(EOPNOTSUPP, self->arg);
		self->arg[variant->reserved + i] = 0;
	}
	right_arg(self, variant);
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, wild_pointers)
{
	char *page = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t wild[] = {
		0, 1, 8, page_size(),
		(uintptr_t)page + page_size(),		/* unmapped */
		(uintptr_t)page + page_size() - 2,	/* .size itself ends in it */
		(uintptr_t)page + page_size() - 4,	/* .size alone is readable */
		0x00007ffffffffff8,			/* the last of user space */
		0x0000800000000000,			/* not canonical */
		0xffff888000000000,			/* the kernel's memory */
		0xffffffff81000000,			/* the kernel's text */
		(uintptr_t)-1, (uintptr_t)-8,
	};

	ASSERT_NE(MAP_FAILED, (void *)page);
	ASSERT_EQ(0, munmap(page + page_size(), page_size()));
	memcpy(page + page_size() - 4, &variant->size, 4);
	FOR_EACH(i, ARRAY_SIZE(wild)) {
		EXPECT_EQ(-EFAULT, t3_call(self->fd, variant->nr,
					   (void *)wild[i]))
			TH_LOG("at %#lx", (unsigned long)wild[i]);
		EXPECT_FALSE(changed(self));
	}
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, page_without_rights)
{
	char *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)page);
	memcpy(page, self->arg, variant->size);
	ASSERT_EQ(0, mprotect(page, page_size(), PROT_NONE));
	EXPECT_REFUSED(EFAULT, page);
	EXPECT_TAKEN(self->arg);
}

/*
 * A structure that can be read but not written: refused where there are
 * outputs, with no file left open, no rank taken, no epoch armed.
 */
TEST_F(command, read_only_page)
{
	char *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)page);
	memcpy(page, self->arg, variant->size);
	ASSERT_EQ(0, mprotect(page, page_size(), PROT_READ));
	if (!variant->out_bytes) {
		EXPECT_EQ(0, t3_call(self->fd, variant->nr, page));
		return;
	}
	EXPECT_REFUSED(EFAULT, page);
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, wrong_kind_of_file)
{
	const unsigned int kinds[] = { ON_DEVICE, ON_GROUP, ON_MEMBER };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	ASSERT_GE(null, 0);
	EXPECT_EQ(-ENOTTY, t3_call(null, variant->nr, self->arg));
	close(null);
	EXPECT_EQ(-EBADF, t3_call(null, variant->nr, self->arg));
	FOR_EACH(i, ARRAY_SIZE(kinds)) {
		unsigned int on = variant->on == ON_JOINABLE ? ON_GROUP :
							       variant->on;
		bool both = variant->nr == T3_GROUP_INFO ||
			    variant->nr == T3_GROUP_ABORT;

		if (kinds[i] == on || (both && kinds[i] != ON_DEVICE))
			continue;
		EXPECT_EQ(-ENOTTY, t3_call(scene_fd(&self->s, kinds[i]),
					   variant->nr, self->arg))
			TH_LOG("on kind %u", kinds[i]);
		EXPECT_FALSE(changed(self));
	}
	EXPECT_TAKEN(self->arg);
}

TEST_F(command, after_leave)
{
	if (variant->on != ON_MEMBER)
		SKIP(return, "not a member's command");
	if (self->s.status->armed) {
		FOR_EACH(b, BLOCKS)
			notify_one(self->fd, 0, b, TILES);
		plan_wait_epoch(self->fd, 0, 1, BOUND_NS, NULL);
	}
	ASSERT_EQ(0, member_leave(self->fd));
	EXPECT_EQ(-ESHUTDOWN, t3_call(self->fd, variant->nr, self->arg));
}

TEST_F(command, from_another_address_space)
{
	pid_t pid;

	if (variant->on != ON_MEMBER)
		SKIP(return, "not a member's command");
	pid = fork_child();
	ASSERT_GE(pid, 0);
	if (!pid) {
		int ret = t3_call(self->fd, variant->nr, self->arg);

		if (ret != -EPERM)
			fprintf(stderr, "# in the child: %d\n", ret);
		_exit(ret != -EPERM);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_FALSE(changed(self));
	EXPECT_TAKEN(self->arg);
}

/* --- errors of single commands -------------------------------------------- */

FIXTURE(errors) {
	struct scene s;
	int member;
};

FIXTURE_SETUP(errors)
{
	ASSERT_EQ(0, scene_open(&self->s));
	self->member = self->s.w.member[0];
}

FIXTURE_TEARDOWN(errors)
{
	scene_close(&self->s);
}

/* No descriptor may be opened any more. */
static void close_the_table(struct rlimit *was)
{
	struct rlimit none;

	getrlimit(RLIMIT_NOFILE, was);
	none = *was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
}

TEST_F(errors, create)
{
	struct t3_query query;
	struct rlimit was;
	int dev = self->s.w.dev;
	int fd;

	ASSERT_EQ(0, device_query(dev, &query));
	EXPECT_EQ(-ERANGE, group_create(dev, 0, 0));
	EXPECT_EQ(-ERANGE, group_create(dev, T3_MAX_RANKS + 1, 0));
	EXPECT_EQ(-ERANGE, group_create(dev, 0xffffffff, 0));
	if (query.watchdog_max_ms != 0xffffffff) {
		EXPECT_EQ(-ERANGE,
			  group_create(dev, 1, query.watchdog_max_ms + 1));
		EXPECT_EQ(-ERANGE, group_create(dev, 1, 0xffffffff));
	}
	close_the_table(&was);
	EXPECT_EQ(-EMFILE, group_create(dev, 1, 0));
	setrlimit(RLIMIT_NOFILE, &was);
	fd = group_create(dev, T3_MAX_RANKS, query.watchdog_max_ms);
	EXPECT_GE(fd, 0);
	close(fd);
}

TEST_F(errors, join)
{
	struct rlimit was;
	int group = self->s.joinable;
	int fd;

	EXPECT_EQ(-ERANGE, group_join(group, 1));
	EXPECT_EQ(-ERANGE, group_join(group, 64));
	EXPECT_EQ(-ERANGE, group_join(group, 0xffffffff));
	close_the_table(&was);
	EXPECT_EQ(-EMFILE, group_join(group, 0));
	setrlimit(RLIMIT_NOFILE, &was);
	fd = group_join(group, 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EEXIST, group_join(group, 0));
	/* once in the group's life */
	close(fd);
	EXPECT_EQ(-EEXIST, group_join(group, 0));
}

TEST_F(errors, set)
{
	struct t3_group_info info;
	struct t3_query query;

	ASSERT_EQ(0, device_query(self->s.w.dev, &query));
	EXPECT_EQ(0, group_set(self->s.w.group, 1234));
	if (query.watchdog_max_ms != 0xffffffff) {
		EXPECT_EQ(-ERANGE, group_set(self->s.w.group,
					     query.watchdog_max_ms + 1));
	}
	ASSERT_EQ(0, group_info(self->s.w.group, &info));
	EXPECT_EQ(1234U, info.watchdog_ms);
	EXPECT_EQ(0, group_set(self->s.w.group, 0));
	ASSERT_EQ(0, group_info(self->s.w.group, &info));
	EXPECT_EQ(30000U, info.watchdog_ms);
}

TEST_F(errors, abort_twice)
{
	struct t3_group_info info;

	EXPECT_EQ(0, group_abort(self->s.w.group));
	EXPECT_EQ(-EALREADY, group_abort(self->s.w.group));
	EXPECT_EQ(-EALREADY, group_abort(self->member));
	ASSERT_EQ(0, group_info(self->s.w.group, &info));
	EXPECT_EQ((__u32)ECANCELED, info.broken);
}

/* Every command that a broken group refuses, and those that free things. */
TEST_F(errors, canceled)
{
	__u32 rank = 0;

	ASSERT_EQ(0, group_abort(self->s.joinable));
	EXPECT_EQ(-ECANCELED, group_join(self->s.joinable, 0));

	ASSERT_EQ(1, plan_arm(self->member, 0));
	ASSERT_EQ(0, group_abort(self->s.w.group));
	EXPECT_EQ(-ECANCELED, plan_arm(self->member, 0));
	EXPECT_EQ(-ECANCELED, notify_one(self->member, 0, 0, 1));
	EXPECT_EQ(-ECANCELED, plan_notify(self->member, 0, NULL, 0, NULL));
	EXPECT_EQ(-ECANCELED, plan_wait_epoch(self->member, 0, 1, BOUND_NS,
					      &rank));
	EXPECT_EQ(T3_NONE, rank);
	EXPECT_EQ(-ECANCELED, plan_wait(self->member, 0, 0, NULL));
	EXPECT_EQ(-ECANCELED, part_add(self->member, self->s.next));
	EXPECT_EQ((__u32)ECANCELED, self->s.status->broken);

	EXPECT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(0, region_del(self->member, self->s.used));
	EXPECT_EQ(0, region_del(self->member, self->s.unused));
	EXPECT_EQ(0L, vm_pin());
	EXPECT_EQ(0, member_leave(self->member));
}

/* An epoch that had retired before the break stays a success. */
TEST_F(errors, retired_before_the_break)
{
	ASSERT_EQ(1, plan_arm(self->member, 0));
	FOR_EACH(b, BLOCKS) {
		ASSERT_EQ(0, notify_one(self->member, 0, b, TILES));
	}
	ASSERT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
	ASSERT_EQ(0, group_abort(self->s.w.group));
	EXPECT_EQ(0, plan_wait_epoch(self->member, 0, 1, 0, NULL));
	EXPECT_EQ(-ECANCELED, plan_arm(self->member, 0));
}

TEST_F(errors, watchdog)
{
	struct t3_group_info info;

	ASSERT_EQ(0, group_set(self->s.w.group, 200));
	ASSERT_EQ(1, plan_arm(self->member, 0));
	ASSERT_EQ(0, notify_one(self->member, 0, 0, TILES));
	EXPECT_EQ(-ETIMEDOUT, plan_wait_epoch(self->member, 0, 1, BOUND_NS,
					      NULL));
	ASSERT_EQ(0, group_info(self->s.w.group, &info));
	EXPECT_EQ((__u32)ETIMEDOUT, info.broken);
	EXPECT_EQ(0U, info.broken_rank);
	EXPECT_EQ(0U, info.broken_slot);
	EXPECT_EQ(1U, info.broken_block);
}

TEST_F(errors, region_del)
{
	EXPECT_EQ(-ENOENT, region_del(self->member, 2));
	EXPECT_EQ(-ENOENT, region_del(self->member, 0xffffffff));
	EXPECT_EQ(-EBUSY, region_del(self->member, self->s.used));
	EXPECT_EQ(0, region_del(self->member, self->s.unused));
	EXPECT_EQ(-ENOENT, region_del(self->member, self->s.unused));
	EXPECT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(0, region_del(self->member, self->s.used));
}

TEST_F(errors, plan_add_slots)
{
	struct part *next = self->s.next;

	next->add.slot = T3_MAX_PLANS;
	EXPECT_EQ(-ERANGE, part_add(self->member, next));
	next->add.slot = 0xffffffff;
	EXPECT_EQ(-ERANGE, part_add(self->member, next));
	next->add.slot = 0;
	next->add.generation = 2;
	EXPECT_EQ(-EEXIST, part_add(self->member, next));
	next->add.slot = T3_MAX_PLANS - 1;
	EXPECT_EQ(0, part_add(self->member, next));
}

TEST_F(errors, plan_add_lists)
{
	struct part *next = self->s.next;
	struct t3_plan_add good = next->add;

	next->add.regions = T3_MAX_PLAN_REGIONS + 1;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	next->add = good;
	next->add.triggers = T3_MAX_TRIGGERS + 1;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	next->add = good;
	next->add.sources = T3_MAX_SOURCES + 1;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	next->add = good;
	next->add.regions = 0xffffffff;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	next->add = good;
	next->region[0].block_rows = T3_MAX_BLOCKS;
	next->region[0].block_cols = 2;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	/* a product that wraps 32 bits */
	next->region[0].block_rows = 1U << 16;
	next->region[0].block_cols = 1U << 16;
	EXPECT_EQ(-E2BIG, part_add(self->member, next));
	next->region[0].block_rows = BLOCKS;
	next->region[0].block_cols = 1;
	EXPECT_EQ(0, part_add(self->member, next));
}

TEST_F(errors, plan_add_regions)
{
	struct part *next = self->s.next;

	next->region[0].region = 2;
	EXPECT_EQ(-ENOENT, part_add(self->member, next));
	next->region[0].region = 0xffffffff;
	EXPECT_EQ(-ENOENT, part_add(self->member, next));
	next->region[0].region = self->s.used;
	next->region[0].__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, part_add(self->member, next));
	next->region[0].__reserved = 0;
	EXPECT_EQ(0, part_add(self->member, next));
}

/* Each pointer of a part, also the inner ones, points to nothing. */
TEST_F(errors, plan_add_wild_lists)
{
	const __u64 wild[] = { 0, 0x00007ffffffffff0, 0xffff888000000000,
			       0xfffffffffffffff8 };
	struct part *next = self->s.next;
	__u64 *const pointer[] = {
		(__u64 *)&next->add.region_list,
		(__u64 *)&next->add.trigger_list,
		(__u64 *)&next->add.source_list,
		(__u64 *)&next->region[0].row_cuts,
		(__u64 *)&next->region[0].col_cuts,
		(__u64 *)&next->region[0].blocks,
	};

	part_trigger(next, T3_OP_COPY, 0, 0, 2);
	part_source(next, 0, 0, 1, 1);
	next->block[1].readers = 1;
	FOR_EACH(i, ARRAY_SIZE(pointer)) {
		__u64 was = *pointer[i];

		FOR_EACH(j, ARRAY_SIZE(wild)) {
			*pointer[i] = wild[j];
			EXPECT_EQ(-EFAULT, part_add(self->member, next))
				TH_LOG("pointer %u is %#llx", i,
				       (unsigned long long)wild[j]);
		}
		*pointer[i] = was;
	}
	EXPECT_EQ(-ENOENT, plan_wait(self->member, 1, 0, NULL));
	EXPECT_EQ(0, part_add(self->member, next));
}

/* Lists of no entries are not looked at. */
TEST_F(errors, plan_add_empty_lists)
{
	struct part *next = self->s.next;

	part_init(next, 1, 1);
	next->add.region_list = 0;
	next->add.trigger_list = 8;
	next->add.source_list = ~0ULL;
	EXPECT_EQ(0, part_add(self->member, next));
	EXPECT_EQ(0, plan_wait(self->member, 1, 0, NULL));
	EXPECT_EQ(1, plan_arm(self->member, 1));
	EXPECT_EQ(0, plan_wait_epoch(self->member, 1, 1, BOUND_NS, NULL));
}

TEST_F(errors, generations)
{
	struct part *part = self->s.plan;

	ASSERT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(-ESTALE, part_add(self->member, part));
	part->add.generation = 0;
	EXPECT_EQ(-ESTALE, part_add(self->member, part));
	part->add.generation = ~0ULL;
	EXPECT_EQ(0, part_add(self->member, part));
	ASSERT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(-ESTALE, part_add(self->member, part));
	/* the other slots know nothing of it */
	self->s.next->add.generation = 0;
	EXPECT_EQ(0, part_add(self->member, self->s.next));
}

TEST_F(errors, plan_wait_and_del)
{
	EXPECT_EQ(-ERANGE, plan_wait(self->member, T3_MAX_PLANS, 0, NULL));
	EXPECT_EQ(-ERANGE, plan_wait(self->member, 0xffffffff, 0, NULL));
	EXPECT_EQ(-ENOENT, plan_wait(self->member, 1, 0, NULL));
	EXPECT_EQ(-ERANGE, plan_del(self->member, T3_MAX_PLANS));
	EXPECT_EQ(-ENOENT, plan_del(self->member, 1));
	ASSERT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-EBUSY, plan_del(self->member, 0));
	EXPECT_EQ(-EBUSY, member_leave(self->member));
	FOR_EACH(b, BLOCKS) {
		ASSERT_EQ(0, notify_one(self->member, 0, b, TILES));
	}
	ASSERT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
	EXPECT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(-ENOENT, plan_del(self->member, 0));
}

TEST_F(errors, arm)
{
	EXPECT_EQ(-ERANGE, plan_arm(self->member, T3_MAX_PLANS));
	EXPECT_EQ(-ERANGE, plan_arm(self->member, 0xffffffff));
	EXPECT_EQ(-ENOENT, plan_arm(self->member, 1));
	ASSERT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-EBUSY, plan_arm(self->member, 0));
	EXPECT_EQ(1U, self->s.status->armed);
	FOR_EACH(b, BLOCKS) {
		ASSERT_EQ(0, notify_one(self->member, 0, b, TILES));
	}
	ASSERT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
	EXPECT_EQ(2, plan_arm(self->member, 0));
}

TEST_F(errors, not_yet_live)
{
	int group = group_create(self->s.w.dev, 2, 0);
	int member = group_join(group, 0);
	struct part *part = self->s.next;
	struct t3_verdict verdict;

	ASSERT_GE(member, 0);
	part_init(part, 0, 1);
	ASSERT_EQ(0, part_add(member, part));
	EXPECT_EQ(-EAGAIN, plan_arm(member, 0));
	EXPECT_EQ(-EAGAIN, plan_notify(member, 0, NULL, 0, NULL));
	EXPECT_EQ(-ETIME, plan_wait(member, 0, 0, &verdict));
	EXPECT_EQ((__u32)ETIME, verdict.error);
	EXPECT_EQ(-ETIME, plan_wait(member, 0, 20 * MS, NULL));
	close(member);
	close(group);
}

TEST_F(errors, notify)
{
	struct t3_tiles list[3] = { { 0, 1 }, { 1, 1 }, { BLOCKS, 1 } };
	__u32 done;

	EXPECT_EQ(-EPROTO, plan_notify(self->member, 0, list, 1, &done));
	EXPECT_EQ(0U, done);
	ASSERT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-ERANGE, plan_notify(self->member, T3_MAX_PLANS, list, 1,
				       NULL));
	EXPECT_EQ(-ENOENT, plan_notify(self->member, 1, list, 1, NULL));
	EXPECT_EQ(-ERANGE, plan_notify(self->member, 0, list,
				       T3_MAX_NOTIFY + 1, NULL));
	EXPECT_EQ(-EFAULT, plan_notify(self->member, 0, NULL, 1, NULL));
	EXPECT_EQ(-EFAULT, plan_notify(self->member, 0,
				       (void *)0xffff888000000000, 1, NULL));
	EXPECT_EQ(-ERANGE, notify_one(self->member, 0, BLOCKS, 1));
	EXPECT_EQ(-ERANGE, notify_one(self->member, 0, 0xffffffff, 1));
	EXPECT_EQ(-ERANGE, notify_one(self->member, 0, 0, T3_MAX_TILES + 1));
	EXPECT_EQ(-ERANGE, notify_one(self->member, 0, 0, 0xffffffff));
	EXPECT_EQ(-EPROTO, notify_one(self->member, 0, 0, TILES + 1));
	FOR_EACH(b, BLOCKS) {
		EXPECT_EQ(0U, self->s.tiles[b]);
	}
	/* the entries before the one at fault are taken */
	EXPECT_EQ(-ERANGE, plan_notify(self->member, 0, list, 3, &done));
	EXPECT_EQ(2U, done);
	EXPECT_EQ(0, plan_notify(self->member, 0, list, 2, &done));
	EXPECT_EQ(2U, done);
	EXPECT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
}

/* The list ends where its memory does. */
TEST_F(errors, notify_list_ends)
{
	char *page = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct t3_tiles *last = (void *)(page + page_size());
	__u32 done = 7;

	ASSERT_NE(MAP_FAILED, (void *)page);
	ASSERT_EQ(0, munmap(page + page_size(), page_size()));
	last--;
	last->tiles = 1;
	ASSERT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-EFAULT, plan_notify(self->member, 0, last, 2, &done));
	/* what was taken is what was counted */
	EXPECT_EQ(self->s.tiles[0], done);
	EXPECT_EQ(0, notify_one(self->member, 0, 0, TILES - done));
	EXPECT_EQ(0, notify_one(self->member, 0, 1, TILES));
	EXPECT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
}

TEST_F(errors, notify_of_what_is_not_produced_by_tiles)
{
	struct part *next = self->s.next;

	/* block 0: by arming; block 1: by nobody */
	next->block[0].tiles = 0;
	next->block[1].tiles = 0;
	next->block[1].flags = 0;
	ASSERT_EQ(0, part_add(self->member, next));
	ASSERT_EQ(1, plan_arm(self->member, 1));
	EXPECT_EQ(-EINVAL, notify_one(self->member, 1, 0, 1));
	EXPECT_EQ(-EINVAL, notify_one(self->member, 1, 1, 1));
	EXPECT_EQ(0, plan_wait_epoch(self->member, 1, 1, BOUND_NS, NULL));
}

TEST_F(errors, wait)
{
	__u32 rank = 0;

	EXPECT_EQ(-ERANGE, plan_wait_epoch(self->member, T3_MAX_PLANS, 1, 0,
					   NULL));
	EXPECT_EQ(-ENOENT, plan_wait_epoch(self->member, 1, 1, 0, NULL));
	EXPECT_EQ(-ERANGE, plan_wait_epoch(self->member, 0, 1, 0, NULL));
	ASSERT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-ERANGE, plan_wait_epoch(self->member, 0, 2, 0, NULL));
	EXPECT_EQ(-ERANGE, plan_wait_epoch(self->member, 0, 0x80000001, 0,
					   NULL));
	EXPECT_EQ(-ETIME, plan_wait_epoch(self->member, 0, 1, 0, &rank));
	EXPECT_EQ(-ETIME, plan_wait_epoch(self->member, 0, 1, 30 * MS, NULL));
	FOR_EACH(b, BLOCKS) {
		ASSERT_EQ(0, notify_one(self->member, 0, b, TILES));
	}
	/* no limit that a number can express is refused */
	EXPECT_EQ(0, plan_wait_epoch(self->member, 0, 1, ~0ULL, &rank));
	EXPECT_EQ(T3_NONE, rank);
}

static void ignore(int sig)
{
}

/* Signals a process until it is killed itself. */
static pid_t nag(pid_t whom)
{
	pid_t pid = fork_child();

	if (pid)
		return pid;
	for (;;) {
		sleep_ms(20);
		kill(whom, SIGUSR1);
	}
}

TEST_F(errors, interrupted)
{
	struct sigaction action = { .sa_handler = ignore };
	int group = group_create(self->s.w.dev, 2, 0);
	int member = group_join(group, 0);
	pid_t pid;

	ASSERT_GE(member, 0);
	part_init(self->s.next, 0, 1);
	ASSERT_EQ(0, part_add(member, self->s.next));
	ASSERT_EQ(1, plan_arm(self->member, 0));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	pid = nag(getpid());
	EXPECT_EQ(-EINTR, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
	EXPECT_EQ(-EINTR, plan_wait(member, 0, BOUND_NS, NULL));
	kill(pid, SIGKILL);
	reap(pid);
	/* waiting again is right */
	FOR_EACH(b, BLOCKS) {
		EXPECT_EQ(0, notify_one(self->member, 0, b, TILES));
	}
	EXPECT_EQ(0, plan_wait_epoch(self->member, 0, 1, BOUND_NS, NULL));
	close(member);
	close(group);
}

/* Mappings: only at the offsets given out, status never writable. */
TEST_F(errors, mappings)
{
	struct t3_plan_add *add = &self->s.plan->add;
	size_t page = page_size();
	char *status = (char *)self->s.status;
	void *p;

	p = mmap(NULL, add->status_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		 self->member, (off_t)add->status_offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, add->tiles_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		 self->member, (off_t)add->tiles_offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, self->member,
		 0x7fffff000000);
	EXPECT_EQ(MAP_FAILED, p);
	/* the plan's memory has an end */
	p = mmap(NULL, 256 * page, PROT_READ, MAP_SHARED, self->member,
		 (off_t)add->tiles_offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, self->s.w.group, 0);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, self->s.w.dev, 0);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(status, page, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	/* VM_DONTEXPAND */
	p = mremap(status, page, 2 * page, MREMAP_MAYMOVE);
	EXPECT_EQ(MAP_FAILED, p);
}

/* Forked children have no mapping, and can't make one. */
TEST_F(errors, mappings_of_another_address_space)
{
	struct t3_plan_add *add = &self->s.plan->add;
	pid_t pid = fork_child();

	ASSERT_GE(pid, 0);
	if (!pid) {
		void *p = mmap(NULL, add->tiles_bytes, PROT_READ, MAP_SHARED,
			       self->member, (off_t)add->tiles_offset);

		MUST(p == MAP_FAILED);
		signal(SIGSEGV, SIG_DFL);
		_exit(__atomic_load_n(self->s.tiles, __ATOMIC_RELAXED) & 1);
	}
	EXPECT_EQ(1000 + SIGSEGV, reap(pid));
}

/* Calls that make no sense on these files, all refused. */
TEST_F(errors, other_system_calls)
{
	const int fds[] = { self->s.w.dev, self->s.w.group, self->member };
	char byte = 0;

	FOR_EACH(i, ARRAY_SIZE(fds)) {
		EXPECT_EQ(-1, read(fds[i], &byte, 1));
		EXPECT_EQ(-1, write(fds[i], &byte, 1));
		EXPECT_EQ(-1, ftruncate(fds[i], 0));
	}
}

TEST_HARNESS_MAIN
