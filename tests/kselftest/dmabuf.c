// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions in dma-bufs: what is taken, that sums are right wherever the buffer
 * is and wherever it goes, and that its exporter gets everything back.
 */
#include "dmabufs.h"

#include <pthread.h>

#define RANKS	3
#define ROWS	12
#define COLS	1024	/* a row is a page */
#define STRIDE	8192
#define OFFSET	4096
#define BYTES	(OFFSET + ROWS * STRIDE)

/* --- a group whose buffers are dma-bufs --------------------------------------- */

struct rig {
	struct world w;
	struct dbuf buf[RANKS];
	struct part part[RANKS];
	__u32 region[RANKS];
	int epoch;
};

/* Returns 0 or -errno; what was made is closed by rig_close(). */
static int rig_open(struct rig *rig, enum maker maker, __u32 slots)
{
	int ret;

	memset(rig, 0, sizeof(*rig));
	FOR_EACH(r, RANKS)
		rig->buf[r] = (struct dbuf) { .fd = -1, .node = -1,
					      .map = MAP_FAILED };
	ret = world_open(&rig->w, RANKS);
	FOR_EACH(r, RANKS) {
		if (!ret)
			ret = dbuf_new(&rig->buf[r], maker, BYTES);
		if (!ret)
			ret = region_import(rig->w.member[r], rig->buf[r].fd,
					    OFFSET, ROWS, COLS * 4, STRIDE, 0,
					    &rig->region[r]);
	}
	return ret;
}

static void rig_close(struct rig *rig)
{
	world_close(&rig->w);
	FOR_EACH(r, RANKS)
		dbuf_close(&rig->buf[r]);
}

static int rig_plan(struct rig *rig, enum collective what, __u32 slot)
{
	struct part *part[RANKS];

	FOR_EACH(r, RANKS) {
		part[r] = &rig->part[r];
		part_init(part[r], slot, 1);
		part_region(part[r], rig->region[r], ROWS, COLS, ROWS, 2);
		part_collective(part[r], what, r, RANKS, 1);
	}
	return world_plan(&rig->w, part, NULL);
}

static __s32 value(__u32 rank, __u32 row, __u32 col, int epoch)
{
	return (__s32)(rank * 1000003 + row * 1009 + col) * (epoch + 1);
}

static void fill(struct rig *rig)
{
	__s32 row[COLS];

	FOR_EACH(r, RANKS) {
		FOR_EACH(i, ROWS) {
			FOR_EACH(k, COLS)
				row[k] = value(r, i, k, rig->epoch);
			MUST(!dbuf_io(&rig->buf[r], true, OFFSET + i * STRIDE,
				      row, sizeof(row)));
		}
	}
}

/* Returns the errno of the first call that failed. */
static int epoch_begin(struct rig *rig)
{
	FOR_EACH(r, RANKS) {
		int ret = plan_arm(rig->w.member[r], 0);

		if (ret < 0)
			return ret;
		rig->epoch = ret;
	}
	fill(rig);
	FOR_EACH(r, RANKS) {
		FOR_EACH(b, rig->part[r].blocks) {
			if (rig->part[r].block[b].flags & T3_BLOCK_PRODUCED)
				notify_one(rig->w.member[r], 0, b, 1);
		}
	}
	return 0;
}

static int epoch_end(struct rig *rig)
{
	int ret = 0;

	FOR_EACH(r, RANKS) {
		int err = plan_wait_epoch(rig->w.member[r], 0,
					  (__u32)rig->epoch, 3 * BOUND_NS,
					  NULL);

		ret = ret ? ret : err;
	}
	return ret;
}

static int run_epoch(struct rig *rig)
{
	int ret = epoch_begin(rig);

	return ret ? ret : epoch_end(rig);
}

/* The rows that a rank owns after a reduction are the sums of all ranks. */
static __u32 wrong_rows(struct rig *rig, bool all)
{
	__s32 row[COLS];
	__u32 wrong = 0;

	FOR_EACH(r, RANKS) {
		FOR_EACH(i, ROWS) {
			bool bad = false;

			if (!all && i / (ROWS / RANKS) != r)
				continue;
			MUST(!dbuf_io(&rig->buf[r], false, OFFSET + i * STRIDE,
				      row, sizeof(row)));
			FOR_EACH(k, COLS) {
				__u32 sum = 0;

				FOR_EACH(q, RANKS)
					sum += (__u32)value(q, i, k,
							    rig->epoch);
				bad |= (__u32)row[k] != sum;
			}
			wrong += bad;
		}
	}
	return wrong;
}

/* --- every maker's buffers ---------------------------------------------------- */

FIXTURE(sum) {
	struct rig rig;
};

FIXTURE_VARIANT(sum) {
	enum maker maker;
	enum collective what;
};

FIXTURE_VARIANT_ADD(sum, udmabuf) { .maker = MAKER_UDMABUF, .what = RS_DIRECT };
FIXTURE_VARIANT_ADD(sum, vgem) { .maker = MAKER_VGEM, .what = RS_RING };
FIXTURE_VARIANT_ADD(sum, unmoving) { .maker = MAKER_STATIC, .what = AR_RING };
FIXTURE_VARIANT_ADD(sum, moving_direct) { .maker = MAKER_DYNAMIC, .what = RS_DIRECT };
FIXTURE_VARIANT_ADD(sum, moving_ring) { .maker = MAKER_DYNAMIC, .what = AR_RING };
FIXTURE_VARIANT_ADD(sum, moving_all_reduce) { .maker = MAKER_DYNAMIC, .what = AR_DIRECT };

FIXTURE_SETUP(sum)
{
	int ret = rig_open(&self->rig, variant->maker, 1);

	/* 6.1's udmabuf can't be mapped by the kernel. */
	if (ret == -ENODEV || (ret == -EMEDIUMTYPE &&
			       variant->maker == MAKER_UDMABUF)) {
		rig_close(&self->rig);
		SKIP(_exit(SKIPPED), "no such maker here: error %d", ret);
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, rig_plan(&self->rig, variant->what, 0));
}

FIXTURE_TEARDOWN(sum)
{
	rig_close(&self->rig);
}

TEST_F(sum, is_right)
{
	bool all = variant->what == AR_DIRECT || variant->what == AR_RING;

	FOR_EACH(i, 5) {
		ASSERT_EQ(0, run_epoch(&self->rig));
		EXPECT_EQ(0, wrong_rows(&self->rig, all));
	}
}

/* The caller's descriptor is its own: it may go. */
TEST_F(sum, without_the_descriptor)
{
	struct dbuf other = self->rig.buf[1];

	other.fd = dup(other.fd);
	close(self->rig.buf[1].fd);
	self->rig.buf[1].fd = -1;
	ASSERT_LE(0, other.fd);
	self->rig.buf[1].fd = other.fd;
	ASSERT_EQ(0, run_epoch(&self->rig));
	EXPECT_EQ(0, wrong_rows(&self->rig, false));
}

/* --- what is taken, what is not ------------------------------------------------ */

FIXTURE(take) {
	struct world w;
	int fd;
	int member;
};

FIXTURE_SETUP(take)
{
	self->fd = exporter_new(BYTES, EXPORTER_DYNAMIC);
	if (self->fd == -ENODEV)
		SKIP(_exit(SKIPPED), "no test exporter here");
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, world_open(&self->w, 1));
	self->member = self->w.member[0];
}

FIXTURE_TEARDOWN(take)
{
	world_close(&self->w);
	close(self->fd);
	EXPECT_TRUE(exporter_is_clean());
}

static int try_import(int member, int fd, __u64 offset, __u32 flags)
{
	__u32 region;

	return region_import(member, fd, offset, ROWS, COLS * 4, STRIDE, flags,
			     &region);
}

TEST_F(take, descriptors)
{
	int null = open("/dev/null", O_RDWR);

	EXPECT_EQ(-EBADF, try_import(self->member, -1, 0, 0));
	EXPECT_EQ(-EBADF, try_import(self->member, 1000, 0, 0));
	EXPECT_EQ(-EBADF, try_import(self->member, null, 0, 0));
	EXPECT_EQ(-EBADF, try_import(self->member, self->member, 0, 0));
	EXPECT_EQ(0, try_import(self->member, self->fd, 0, 0));
	close(null);
}

TEST_F(take, geometry)
{
	__u32 region;

	EXPECT_EQ(-EDOM, try_import(self->member, self->fd, 2, 0));
	/* The last row's last byte is the buffer's; its gap may stick out. */
	EXPECT_EQ(0, try_import(self->member, self->fd,
				BYTES - (ROWS - 1) * STRIDE - COLS * 4, 0));
	EXPECT_EQ(-ERANGE, try_import(self->member, self->fd,
				      BYTES - (ROWS - 1) * STRIDE - COLS * 4 + 4,
				      0));
	EXPECT_EQ(-ERANGE, try_import(self->member, self->fd, 1ULL << 40, 0));
	EXPECT_EQ(-ERANGE, try_import(self->member, self->fd, ~3ULL, 0));
	EXPECT_EQ(-ERANGE, region_import(self->member, self->fd, 0, 0x7fffffff,
					 4, 4, 0, &region));
}

TEST_F(take, fd_of_user_memory)
{
	__s32 memory[64];
	struct t3_region_add how = {
		.type = T3_REGION_USER, .dtype = T3_DTYPE_I32,
		.base = (uintptr_t)memory, .row_bytes = 256,
		.row_stride = 256, .rows = 1, .fd = self->fd,
	};
	__u32 region;

	EXPECT_EQ(-EOPNOTSUPP, region_add_full(self->member, &how, &region));
	how.fd = 0;
	how.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, region_add_full(self->member, &how, &region));
}

static int take_kind(int member, __u32 kind, __u32 flags)
{
	int fd = exporter_new(BYTES, kind);
	int ret = fd < 0 ? fd : try_import(member, fd, 0, flags);

	close(fd);
	return ret;
}

TEST_F(take, kinds)
{
	int m = self->member;

	EXPECT_EQ(-EMEDIUMTYPE, take_kind(m, EXPORTER_IOMEM, 0));
	EXPECT_EQ(-EMEDIUMTYPE, take_kind(m, EXPORTER_NO_VMAP, 0));
	EXPECT_EQ(-EFAULT, take_kind(m, EXPORTER_READ_ONLY, 0));
	EXPECT_EQ(0, take_kind(m, EXPORTER_READ_ONLY, T3_REGION_READ_ONLY));
}

TEST_F(take, exporter_refuses)
{
	ASSERT_EQ(0, exporter_fail(self->fd, EXPORTER_ATTACH, 1));
	EXPECT_EQ(-EREMOTEIO, try_import(self->member, self->fd, 0, 0));
	EXPECT_EQ(0, try_import(self->member, self->fd, 0, 0));
	/* One that does not move is mapped for the device when attached. */
	ASSERT_EQ(0, exporter_fail(-1, EXPORTER_MAP, 1));
	EXPECT_EQ(-EREMOTEIO, take_kind(self->member, 0, 0));
}

/* Nothing is pinned: neither the user's account nor the exporter's memory. */
TEST_F(take, charges_nobody)
{
	long before = vm_pin();

	ASSERT_EQ(0, try_import(self->member, self->fd, 0, 0));
	EXPECT_EQ(before, vm_pin());
	EXPECT_EQ(1, exporter_stat().attachments);
	EXPECT_EQ(0, exporter_stat().mappings);
	EXPECT_EQ(0, exporter_move(self->fd, false));
}

TEST_F(take, gives_back)
{
	__u32 region;

	FOR_EACH(i, 100) {
		ASSERT_EQ(0, region_import(self->member, self->fd, 0, ROWS,
					   COLS * 4, STRIDE, 0, &region));
		ASSERT_EQ(0, region_del(self->member, region));
	}
	EXPECT_EQ(0, exporter_stat().attachments);
	EXPECT_EQ(1, exporter_stat().buffers);
}

/* --- moving and failing --------------------------------------------------------- */

FIXTURE(exporter) {
	struct rig rig;
};

FIXTURE_SETUP(exporter)
{
	int ret = rig_open(&self->rig, MAKER_DYNAMIC, 1);

	if (ret == -ENODEV) {
		rig_close(&self->rig);
		SKIP(_exit(SKIPPED), "no test exporter here");
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, rig_plan(&self->rig, AR_DIRECT, 0));
}

FIXTURE_TEARDOWN(exporter)
{
	rig_close(&self->rig);
	EXPECT_TRUE(exporter_is_clean());
}

TEST_F(exporter, moved_between_epochs)
{
	FOR_EACH(i, 10) {
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, exporter_move(self->rig.buf[r].fd, false));
		}
		ASSERT_EQ(0, run_epoch(&self->rig));
		EXPECT_EQ(0, wrong_rows(&self->rig, true));
	}
}

/* Each mapping is out of date before it can be used, twenty times. */
TEST_F(exporter, moved_as_soon_as_mapped)
{
	__u32 before = exporter_stat().moves;

	FOR_EACH(i, 3) {
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, exporter_chase(self->rig.buf[r].fd, 20));
			ASSERT_EQ(0, exporter_move(self->rig.buf[r].fd, false));
		}
		ASSERT_EQ(0, run_epoch(&self->rig));
		EXPECT_EQ(0, wrong_rows(&self->rig, true));
	}
	EXPECT_LT(before + 3 * RANKS, exporter_stat().moves);
}

struct mover {
	struct rig *rig;
	bool stop;
};

static void *move_all(void *arg)
{
	struct mover *m = arg;

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED))
		FOR_EACH(r, RANKS)
			MUST(!exporter_move(m->rig->buf[r].fd, false));
	return NULL;
}

/* Somebody moves them without end, while transfers run too. */
TEST_F(exporter, moved_all_the_time)
{
	struct mover m = { .rig = &self->rig };
	__u32 before = exporter_stat().notified;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, move_all, &m));
	FOR_EACH(i, scaled(20)) {
		EXPECT_EQ(0, run_epoch(&self->rig));
		EXPECT_EQ(0, wrong_rows(&self->rig, true));
	}
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_LT(before, exporter_stat().notified);
}

TEST_F(exporter, moved_to_io_memory)
{
	struct t3_group_info info;

	ASSERT_EQ(0, run_epoch(&self->rig));
	ASSERT_EQ(0, exporter_move(self->rig.buf[1].fd, true));
	EXPECT_EQ(-EIO, run_epoch(&self->rig));
	ASSERT_EQ(0, group_info(self->rig.w.group, &info));
	EXPECT_EQ(EIO, info.broken);
	EXPECT_EQ(0, info.broken_slot);
}

TEST_F(exporter, access_fails)
{
	ASSERT_EQ(0, exporter_fail(self->rig.buf[2].fd, EXPORTER_BEGIN, 1));
	EXPECT_EQ(-EIO, run_epoch(&self->rig));
}

/* --- fences on the buffers -------------------------------------------------------- */

/* Somebody writes the buffer: nobody may read it. */
TEST_F(exporter, waits_for_a_writer)
{
	ASSERT_EQ(0, epoch_begin(&self->rig));
	ASSERT_EQ(0, epoch_end(&self->rig));
	ASSERT_EQ(0, exporter_fence(self->rig.buf[1].fd, true));
	ASSERT_EQ(0, epoch_begin(&self->rig));
	EXPECT_EQ(-ETIME, plan_wait_epoch(self->rig.w.member[0], 0,
					  (__u32)self->rig.epoch, 300 * MS,
					  NULL));
	ASSERT_EQ(0, exporter_signal(self->rig.buf[1].fd, 0));
	ASSERT_EQ(0, epoch_end(&self->rig));
	EXPECT_EQ(0, wrong_rows(&self->rig, true));
}

/* Somebody reads the buffer: it may be read, and not be written. */
TEST_F(exporter, waits_for_a_reader)
{
	ASSERT_EQ(0, exporter_fence(self->rig.buf[1].fd, false));
	ASSERT_EQ(0, epoch_begin(&self->rig));
	EXPECT_EQ(-ETIME, plan_wait_epoch(self->rig.w.member[1], 0,
					  (__u32)self->rig.epoch, 300 * MS,
					  NULL));
	ASSERT_EQ(0, exporter_signal(self->rig.buf[1].fd, 0));
	ASSERT_EQ(0, epoch_end(&self->rig));
	EXPECT_EQ(0, wrong_rows(&self->rig, true));
}

/* A group that breaks does not wait for somebody's fence. */
TEST_F(exporter, breaks_while_it_waits)
{
	ASSERT_EQ(0, exporter_fence(self->rig.buf[1].fd, true));
	ASSERT_EQ(0, epoch_begin(&self->rig));
	sleep_ms(100);
	ASSERT_EQ(0, group_abort(self->rig.w.group));
	EXPECT_EQ(-ECANCELED, epoch_end(&self->rig));
}

/* --- places ------------------------------------------------------------------------ */

static int plan_of_one(int member, __u32 slot, __u32 region, struct part *part)
{
	part_init(part, slot, 1);
	part_region(part, region, ROWS, COLS, ROWS, 1);
	FOR_EACH(b, part->blocks)
		part_produced(part, 0, b, 1);
	return part_add(member, part);
}

/* Two regions of one buffer overlap; those of two buffers never do. */
TEST_F(take, overlap)
{
	int other = exporter_new(BYTES, 0);
	struct part part[3];
	__u32 region[3];

	ASSERT_EQ(0, region_import(self->member, self->fd, 0, ROWS, COLS * 4,
				   STRIDE, 0, &region[0]));
	ASSERT_EQ(0, region_import(self->member, self->fd, 4, ROWS, COLS * 4,
				   STRIDE, 0, &region[1]));
	ASSERT_EQ(0, region_import(self->member, other, 0, ROWS, COLS * 4,
				   STRIDE, 0, &region[2]));
	close(other);
	FOR_EACH(i, 3) {
		ASSERT_EQ(0, plan_of_one(self->member, i, region[i], &part[i]));
	}
	EXPECT_EQ(1, plan_arm(self->member, 0));
	EXPECT_EQ(-EBUSY, plan_arm(self->member, 1));
	EXPECT_EQ(1, plan_arm(self->member, 2));
}

/* --- life and death ------------------------------------------------------------------ */

/* A process that has armed an epoch on dma-bufs. */
static void live_and_wait(int *report)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	MUST(!rig_open(rig, MAKER_DYNAMIC, 1));
	MUST(!rig_plan(rig, AR_RING, 0));
	MUST(!run_epoch(rig));
	MUST(!exporter_fence(rig->buf[1].fd, true));
	MUST(!epoch_begin(rig));
	MUST(write(report[1], "", 1) == 1);
	for (;;)
		pause();
}

TEST(killed)
{
	int report[2];
	char c;

	if (exporter_open() < 0)
		SKIP(return, "no test exporter here");
	ASSERT_EQ(0, pipe(report));
	FOR_EACH(i, scaled(5)) {
		pid_t pid = fork_child();

		if (!pid)
			live_and_wait(report);
		ASSERT_EQ(1, read(report[0], &c, 1));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(1000 + SIGKILL, reap(pid));
		EXPECT_TRUE(exporter_is_clean());
	}
}

TEST(left)
{
	struct rig rig;

	if (exporter_open() < 0)
		SKIP(return, "no test exporter here");
	ASSERT_EQ(0, rig_open(&rig, MAKER_DYNAMIC, 1));
	ASSERT_EQ(0, rig_plan(&rig, AR_RING, 0));
	ASSERT_EQ(0, run_epoch(&rig));
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(-EBUSY, region_del(rig.w.member[r], rig.region[r]));
		EXPECT_EQ(0, member_leave(rig.w.member[r]));
		EXPECT_EQ(RANKS - r - 1, exporter_stat().attachments);
	}
	EXPECT_EQ(RANKS, exporter_stat().buffers);
	EXPECT_EQ(0, exporter_stat().mappings);
	rig_close(&rig);
	EXPECT_TRUE(exporter_is_clean());
}

TEST_HARNESS_MAIN
