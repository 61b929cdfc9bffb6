// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tracepoints: an epoch of two ranks, and the break of their group, leave the
 * events that the header of the tracepoints promises.
 */
#include "t3_kselftest.h"

#define TRACING	"/sys/kernel/tracing/"
#define BYTES	8192

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool good;

	if (fd < 0)
		return false;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

/* Lines of the trace that have all of the event's name and @text in them. */
static int events(const char *name, const char *text)
{
	FILE *f = fopen(TRACING "trace", "r");
	char line[512], event[64];
	int n = 0;

	snprintf(event, sizeof(event), " %s: ", name);
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, event) && strstr(line, text);
	if (f)
		fclose(f);
	return n;
}

FIXTURE(trace)
{
	struct world w;
	struct part *part[2];
	char *memory[2];
	bool on;
};

FIXTURE_SETUP(trace)
{
	__u32 region;

	self->on = put(TRACING "events/t3/enable", "1") &&
		   put(TRACING "trace", "\n");
	if (!self->on)
		SKIP(return, "no tracefs, or not root");
	ASSERT_EQ(0, world_open(&self->w, 2));
	FOR_EACH(r, 2) {
		self->memory[r] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, self->memory[r]);
		self->part[r] = calloc(1, sizeof(*self->part[r]));
		ASSERT_NE(NULL, self->part[r]);
		part_init(self->part[r], 5, 1);
		ASSERT_EQ(0, region_add(self->w.member[r], self->memory[r],
					T3_DTYPE_F32, 2, BYTES / 2, &region));
		part_region(self->part[r], region, 2, BYTES / 2 / 4, 2, 1);
		part_collective(self->part[r], AR_DIRECT, r, 2, 1);
	}
	ASSERT_EQ(0, world_plan(&self->w, self->part, NULL));
}

FIXTURE_TEARDOWN(trace)
{
	if (!self->on)
		return;
	put(TRACING "events/t3/enable", "0");
	world_close(&self->w);
	FOR_EACH(r, 2)
		munmap(self->memory[r], BYTES);
}

TEST_F(trace, an_epoch)
{
	FOR_EACH(r, 2)
		ASSERT_EQ(1, plan_arm(self->w.member[r], 5));
	FOR_EACH(r, 2)
		FOR_EACH(b, 2)
			ASSERT_EQ(0, notify_one(self->w.member[r], 5, b, 1));
	FOR_EACH(r, 2)
		ASSERT_EQ(0, plan_wait_epoch(self->w.member[r], 5, 1, BOUND_NS,
					     NULL));
	/* the end of a trigger is told after its completion */
	sleep_ms(200);
	EXPECT_EQ(2, events("t3_arm", "slot=5"));
	EXPECT_EQ(1, events("t3_arm", "rank=1 epoch=1"));
	EXPECT_EQ(4, events("t3_tile", "tiles=1"));
	EXPECT_EQ(1, events("t3_tile", "rank=1 block=0 tiles=1"));
	/* each block is produced, and written by one trigger */
	EXPECT_EQ(4, events("t3_block", "updates=1"));
	EXPECT_EQ(4, events("t3_block", "updates=2"));
	EXPECT_EQ(4, events("t3_trigger_ready", "slot=5"));
	EXPECT_EQ(4, events("t3_trigger_start", "slot=5"));
	EXPECT_EQ(2, events("t3_trigger_end", "op=sum bytes=4096"));
	EXPECT_EQ(2, events("t3_trigger_end", "op=copy bytes=4096"));
	EXPECT_EQ(1, events("t3_retire", "rank=0 epoch=1"));
	EXPECT_EQ(1, events("t3_retire", "rank=1 epoch=1"));
	EXPECT_EQ(0, events("t3_break", ""));
}

TEST_F(trace, a_break)
{
	ASSERT_EQ(1, plan_arm(self->w.member[0], 5));
	ASSERT_EQ(0, group_abort(self->w.member[1]));
	EXPECT_EQ(1, events("t3_break", "error=125 rank=1 slot=-1 block=-1"));
	EXPECT_EQ(0, events("t3_retire", ""));
}

TEST_HARNESS_MAIN
