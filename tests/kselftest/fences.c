// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fences: as productions of blocks, and as the end of an epoch. The fences of
 * others are the test exporter's, vgem's and sw_sync's, where they are.
 */
#include "dmabufs.h"

#include <linux/sync_file.h>
#include <sys/resource.h>

#define RANKS	2
#define ROWS	4
#define COLS	256

/* --- calls ------------------------------------------------------------------ */

static int fence_in_list(int member, __u32 slot, int fd, const __u32 *list,
			 __u32 entries)
{
	struct t3_fence_in arg = {
		.size = sizeof(arg), .slot = slot, .fd = fd,
		.entries = entries, .list = (uintptr_t)list,
	};

	return t3_call(member, T3_FENCE_IN, &arg);
}

/* Returns the sync_file. */
static int fence_out(int member, __u32 slot, __u32 epoch)
{
	struct t3_fence_out arg = {
		.size = sizeof(arg), .slot = slot, .epoch = epoch,
		.out_fd = -77,
	};
	int ret = t3_call(member, T3_FENCE_OUT, &arg);

	return ret ? ret : arg.out_fd;
}

/* 1 signalled, 0 not yet, or the fence's error. */
static int fence_status(int fd)
{
	struct sync_file_info info = { 0 };

	return ioctl(fd, SYNC_IOC_FILE_INFO, &info) ? -errno : info.status;
}

/* As fence_status(), when it is signalled, or after a long time. */
static int fence_wait(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	poll(&p, 1, (int)(BOUND_NS / MS));
	return fence_status(fd);
}

static short member_poll(int member, short events, int ms)
{
	struct pollfd p = { .fd = member, .events = events };

	return poll(&p, 1, ms) < 0 ? 0 : p.revents;
}

static int has_fences(void)
{
	struct t3_query query;
	int dev = device_open();
	int ret = device_query(dev, &query);

	close(dev);
	return ret ? ret : !!(query.features & T3_FEATURE_FENCES);
}

/* --- others' fences ----------------------------------------------------------- */

enum source { SOURCE_EXPORTER, SOURCE_VGEM, SOURCE_SW_SYNC };

/**
 * struct source_fence - a fence that the test signals
 * @sync: its sync_file
 */
struct source_fence {
	enum source source;
	struct dbuf buf;
	__u32 number;
	int timeline;
	int sync;
};

static int export_sync(int fd)
{
	struct dma_buf_export_sync_file arg = { .flags = DMA_BUF_SYNC_RW };

	return ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &arg) ? -errno :
								 arg.fd;
}

/* As in drm/vgem_drm.h, which libdrm does not bring along. */
#define VGEM_ATTACH	1
#define VGEM_SIGNAL	2
#define VGEM_WRITE	1

struct vgem_attach {
	__u32 handle;
	__u32 flags;
	__u32 out_fence;
	__u32 pad;
};

struct vgem_signal {
	__u32 fence;
	__u32 flags;
};

static int vgem_fence(struct source_fence *f)
{
	struct vgem_attach arg = { .flags = VGEM_WRITE };
	int ret = dbuf_new(&f->buf, MAKER_VGEM, 4096);

	if (ret)
		return ret;
	arg.handle = f->buf.handle;
	ret = drmCommandWriteRead(f->buf.node, VGEM_ATTACH, &arg, sizeof(arg));
	if (ret)
		return ret;
	f->number = arg.out_fence;
	f->sync = export_sync(f->buf.fd);
	return f->sync < 0 ? f->sync : 0;
}

struct sw_sync_create {
	__u32 value;
	char name[32];
	__s32 fence;
};

#define SW_SYNC_CREATE	_IOWR('W', 0, struct sw_sync_create)
#define SW_SYNC_INC	_IOW('W', 1, __u32)

static int sw_sync_fence(struct source_fence *f)
{
	struct sw_sync_create arg = { .value = 1, .name = "t3" };

	f->timeline = open("/sys/kernel/debug/sync/sw_sync",
			   O_RDWR | O_CLOEXEC);
	if (f->timeline < 0)
		return -ENODEV;
	if (ioctl(f->timeline, SW_SYNC_CREATE, &arg))
		return -errno;
	f->sync = arg.fence;
	return 0;
}

/* Returns 0; -ENODEV there is no such source here. */
static int source_new(struct source_fence *f, enum source source)
{
	int ret;

	memset(f, 0, sizeof(*f));
	f->source = source;
	f->buf = (struct dbuf) { .fd = -1, .node = -1, .map = MAP_FAILED };
	f->timeline = -1;
	f->sync = -1;
	if (source == SOURCE_VGEM)
		return vgem_fence(f);
	if (source == SOURCE_SW_SYNC)
		return sw_sync_fence(f);
	ret = dbuf_new(&f->buf, MAKER_DYNAMIC, 4096);
	if (!ret)
		ret = exporter_fence(f->buf.fd, true);
	if (ret)
		return ret;
	f->sync = export_sync(f->buf.fd);
	return f->sync < 0 ? f->sync : 0;
}

static int source_signal(struct source_fence *f, int error)
{
	struct vgem_signal arg = { .fence = f->number };
	__u32 one = 1;

	if (f->source == SOURCE_VGEM)
		return drmCommandWrite(f->buf.node, VGEM_SIGNAL, &arg,
				       sizeof(arg));
	if (f->source == SOURCE_SW_SYNC)
		return ioctl(f->timeline, SW_SYNC_INC, &one) ? -errno : 0;
	return exporter_signal(f->buf.fd, error);
}

static void source_close(struct source_fence *f)
{
	if (f->sync >= 0)
		close(f->sync);
	if (f->timeline >= 0)
		close(f->timeline);
	dbuf_close(&f->buf);
}

/* --- a group that reduces ------------------------------------------------------ */

struct sums {
	struct world w;
	struct part part[RANKS];
	__s32 memory[RANKS][ROWS * COLS];
	__u32 blocks[ROWS];
};

static int sums_open(struct sums *s)
{
	struct part *part[RANKS];
	int ret = world_open(&s->w, RANKS);
	__u32 region = 0;

	FOR_EACH(b, ROWS)
		s->blocks[b] = b;
	FOR_EACH(r, RANKS) {
		part[r] = &s->part[r];
		if (!ret)
			ret = region_add(s->w.member[r], s->memory[r],
					 T3_DTYPE_I32, ROWS, COLS * 4,
					 &region);
		part_init(part[r], 0, 1);
		part_region(part[r], region, ROWS, COLS, ROWS, 1);
		part_collective(part[r], RS_DIRECT, r, RANKS, 3);
	}
	return ret ? ret : world_plan(&s->w, part, NULL);
}

static int sums_arm(struct sums *s)
{
	int epoch = 0;

	FOR_EACH(r, RANKS) {
		epoch = plan_arm(s->w.member[r], 0);
		if (epoch < 0)
			return epoch;
		FOR_EACH(i, ROWS * COLS)
			s->memory[r][i] = (__s32)(i * (r + 1) + (__u32)epoch);
	}
	return epoch;
}

static int sums_fenced(struct sums *s, __u32 rank, int fd)
{
	return fence_in_list(s->w.member[rank], 0, fd, s->blocks, ROWS);
}

static void sums_count(struct sums *s, __u32 rank)
{
	FOR_EACH(b, ROWS)
		notify_one(s->w.member[rank], 0, b, 3);
}

static int sums_wait(struct sums *s, __u32 rank, int epoch)
{
	return plan_wait_epoch(s->w.member[rank], 0, (__u32)epoch, BOUND_NS,
			       NULL);
}

static bool sums_right(const struct sums *s, int epoch)
{
	FOR_EACH(r, RANKS)
		FOR_EACH(i, ROWS * COLS / RANKS) {
			__u32 at = r * (ROWS * COLS / RANKS) + i;

			if (s->memory[r][at] != (__s32)(at * 3) + 2 * epoch)
				return false;
		}
	return true;
}

/* --- fences as productions ------------------------------------------------------- */

FIXTURE(in) {
	struct sums s;
	struct source_fence f[RANKS];
	int epoch;
};

FIXTURE_VARIANT(in) {
	enum source source;
};

FIXTURE_VARIANT_ADD(in, exporter) { .source = SOURCE_EXPORTER };
FIXTURE_VARIANT_ADD(in, vgem) { .source = SOURCE_VGEM };
FIXTURE_VARIANT_ADD(in, sw_sync) { .source = SOURCE_SW_SYNC };

static int new_fences(struct source_fence *f, enum source source)
{
	int ret = 0;

	FOR_EACH(r, RANKS) {
		int err = source_new(&f[r], source);

		ret = ret ? ret : err;
	}
	return ret;
}

FIXTURE_SETUP(in)
{
	int ret;

	if (has_fences() != 1)
		SKIP(_exit(SKIPPED), "no sync_file in this kernel");
	ret = new_fences(self->f, variant->source);
	if (ret == -ENODEV)
		SKIP(_exit(SKIPPED), "no such fences here");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, sums_open(&self->s));
	self->epoch = sums_arm(&self->s);
	ASSERT_EQ(1, self->epoch);
}

FIXTURE_TEARDOWN(in)
{
	FOR_EACH(r, RANKS)
		source_close(&self->f[r]);
	world_close(&self->s.w);
}

TEST_F(in, produces)
{
	struct sums *s = &self->s;

	FOR_EACH(i, 3) {
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, sums_fenced(s, r, self->f[r].sync));
			close(self->f[r].sync);
			self->f[r].sync = -1;
		}
		EXPECT_EQ(-ETIME, plan_wait_epoch(s->w.member[0], 0,
						  (__u32)self->epoch, 20 * MS,
						  NULL));
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, source_signal(&self->f[r], 0));
		}
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, sums_wait(s, r, self->epoch));
			source_close(&self->f[r]);
		}
		EXPECT_TRUE(sums_right(s, self->epoch));
		ASSERT_EQ(0, new_fences(self->f, variant->source));
		self->epoch = sums_arm(s);
	}
}

/* One rank counts its tiles, the other has a fence for some blocks only. */
TEST_F(in, mixed)
{
	struct sums *s = &self->s;

	ASSERT_EQ(0, fence_in_list(s->w.member[0], 0, self->f[0].sync,
				   s->blocks, 2));
	sums_count(s, 1);
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(-ETIME, plan_wait_epoch(s->w.member[0], 0, 1, 20 * MS, NULL));
	EXPECT_EQ(0, notify_one(s->w.member[0], 0, 2, 3));
	EXPECT_EQ(0, notify_one(s->w.member[0], 0, 3, 3));
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, sums_wait(s, r, self->epoch));
	}
	EXPECT_TRUE(sums_right(s, self->epoch));
}

TEST_F(in, signalled_before)
{
	struct sums *s = &self->s;

	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, source_signal(&self->f[r], 0));
		ASSERT_EQ(0, sums_fenced(s, r, self->f[r].sync));
	}
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, sums_wait(s, r, self->epoch));
	}
	EXPECT_TRUE(sums_right(s, self->epoch));
}

/* A fence that is never signalled holds nobody when the group has ended. */
TEST_F(in, aborted)
{
	ASSERT_EQ(0, sums_fenced(&self->s, 0, self->f[0].sync));
	ASSERT_EQ(0, group_abort(self->s.w.group));
	EXPECT_EQ(-ECANCELED, sums_wait(&self->s, 0, self->epoch));
	EXPECT_EQ(-ECANCELED, sums_fenced(&self->s, 1, self->f[1].sync));
	world_close(&self->s.w);
	EXPECT_EQ(0, source_signal(&self->f[0], 0));
}

TEST_F(in, refused)
{
	const __u32 twice[] = { 0, 1, 0 }, far[] = { 0, ROWS };
	int m = self->s.w.member[0], sync = self->f[0].sync;
	struct sums *s = &self->s;

	EXPECT_EQ(-EBADF, sums_fenced(s, 0, -1));
	EXPECT_EQ(-EBADF, sums_fenced(s, 0, m));
	EXPECT_EQ(-ERANGE, fence_in_list(m, 64, sync, s->blocks, 1));
	EXPECT_EQ(-ENOENT, fence_in_list(m, 1, sync, s->blocks, 1));
	EXPECT_EQ(-ERANGE, fence_in_list(m, 0, sync, s->blocks, 0));
	EXPECT_EQ(-ERANGE, fence_in_list(m, 0, sync, s->blocks,
					 T3_MAX_NOTIFY + 1));
	EXPECT_EQ(-ERANGE, fence_in_list(m, 0, sync, far, 2));
	EXPECT_EQ(-EFAULT, fence_in_list(m, 0, sync, NULL, 1));
	EXPECT_EQ(-EALREADY, fence_in_list(m, 0, sync, twice, 3));
	ASSERT_EQ(0, notify_one(m, 0, 2, 1));
	EXPECT_EQ(-EALREADY, fence_in_list(m, 0, sync, s->blocks, 3));
	/* Nothing of that has changed anything. */
	ASSERT_EQ(0, fence_in_list(m, 0, sync, s->blocks, 2));
	EXPECT_EQ(-EALREADY, fence_in_list(m, 0, sync, s->blocks, 1));
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(0, notify_one(m, 0, 2, 2));
	EXPECT_EQ(0, notify_one(m, 0, 3, 3));
	EXPECT_EQ(-EALREADY, fence_in_list(m, 0, sync, s->blocks, 1));
	sums_count(s, 1);
	EXPECT_EQ(0, sums_wait(s, 0, 1));
	EXPECT_EQ(-EPROTO, sums_fenced(s, 0, sync));
	EXPECT_TRUE(sums_right(s, 1));
}

TEST_F(in, not_by_tiles)
{
	int m = self->s.w.member[0], sync = self->f[0].sync;
	struct part *part = &self->s.part[0];
	__u32 region, block = 0;

	/* A plan whose other part has not come. */
	ASSERT_EQ(0, region_add(m, self->s.memory[0], T3_DTYPE_I32, ROWS,
				COLS * 4, &region));
	part_init(part, 1, 1);
	part_region(part, region, ROWS, COLS, ROWS, 1);
	ASSERT_EQ(0, part_add(m, part));
	EXPECT_EQ(-EAGAIN, fence_in_list(m, 1, sync, &block, 1));
	/* Blocks produced by nobody, by arming, by tiles. */
	part = &self->s.part[1];
	m = self->s.w.member[1];
	ASSERT_EQ(0, region_add(m, self->s.memory[1], T3_DTYPE_I32, ROWS,
				COLS * 4, &region));
	part_init(part, 1, 1);
	part_region(part, region, ROWS, COLS, ROWS, 1);
	part_produced(part, 0, 1, 0);
	part_produced(part, 0, 2, 1);
	ASSERT_EQ(0, part_add(m, part));
	ASSERT_EQ(0, plan_wait(m, 1, BOUND_NS, NULL));
	ASSERT_EQ(0, sums_fenced(&self->s, 0, self->f[0].sync));
	ASSERT_EQ(0, sums_fenced(&self->s, 1, self->f[1].sync));
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, source_signal(&self->f[r], 0));
	}
	EXPECT_EQ(0, sums_wait(&self->s, 1, 1));
	EXPECT_EQ(-EPROTO, fence_in_list(m, 1, sync, &block, 1));
	ASSERT_EQ(1, plan_arm(m, 1));
	EXPECT_EQ(-EINVAL, fence_in_list(m, 1, sync, &block, 1));
	block = 1;
	EXPECT_EQ(-EINVAL, fence_in_list(m, 1, sync, &block, 1));
	block = 2;
	EXPECT_EQ(0, fence_in_list(m, 1, sync, &block, 1));
	EXPECT_EQ(0, plan_wait_epoch(m, 1, 1, BOUND_NS, NULL));
}

/* Tiles are counted beside the fence: a lie about who produces the block. */
TEST_F(in, tiles_too)
{
	struct t3_group_info info;
	struct sums *s = &self->s;

	ASSERT_EQ(0, sums_fenced(s, 0, self->f[0].sync));
	ASSERT_EQ(0, notify_one(s->w.member[0], 0, 1, 1));
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(-EPROTO, sums_wait(s, 1, 1));
	ASSERT_EQ(0, group_info(s->w.group, &info));
	EXPECT_EQ(0, info.broken_rank);
	EXPECT_EQ(1, info.broken_block);
}

TEST_F(in, error)
{
	struct t3_group_info info;
	struct sums *s = &self->s;

	if (variant->source != SOURCE_EXPORTER)
		SKIP(return, "these fences don't fail");
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, sums_fenced(s, r, self->f[r].sync));
	}
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	ASSERT_EQ(0, source_signal(&self->f[1], -EREMOTE));
	EXPECT_EQ(-EREMOTE, sums_wait(s, 0, 1));
	ASSERT_EQ(0, group_info(s->w.group, &info));
	EXPECT_EQ(EREMOTE, info.broken);
	EXPECT_EQ(1, info.broken_rank);
	EXPECT_EQ(0, info.broken_slot);
	EXPECT_EQ(0, info.broken_block);
}

/* --- the end of an epoch as a fence ------------------------------------------------ */

FIXTURE(out) {
	struct sums s;
	struct source_fence f[RANKS];
	int epoch;
};

FIXTURE_SETUP(out)
{
	int ret;

	if (has_fences() != 1)
		SKIP(_exit(SKIPPED), "no sync_file in this kernel");
	ret = new_fences(self->f, SOURCE_EXPORTER);
	if (ret == -ENODEV)
		SKIP(_exit(SKIPPED), "no test exporter here");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, sums_open(&self->s));
}

FIXTURE_TEARDOWN(out)
{
	FOR_EACH(r, RANKS)
		source_close(&self->f[r]);
	world_close(&self->s.w);
}

TEST_F(out, when_all_is_fenced)
{
	struct sums *s = &self->s;
	int out[RANKS], again;

	self->epoch = sums_arm(s);
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(-EAGAIN, fence_out(s->w.member[r], 0, 1));
	}
	ASSERT_EQ(0, sums_fenced(s, 0, self->f[0].sync));
	EXPECT_EQ(-EAGAIN, fence_out(s->w.member[0], 0, 1));
	EXPECT_EQ(0, member_poll(s->w.member[0], POLLPRI, 0));
	ASSERT_EQ(0, sums_fenced(s, 1, self->f[1].sync));
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(POLLPRI, member_poll(s->w.member[r], POLLPRI, 1000));
		out[r] = fence_out(s->w.member[r], 0, 1);
		ASSERT_LE(0, out[r]);
		EXPECT_EQ(0, fence_status(out[r]));
		EXPECT_EQ(0, member_poll(s->w.member[r], POLLPRI, 0));
	}
	again = fence_out(s->w.member[0], 0, 1);
	EXPECT_EQ(0, fence_status(again));
	EXPECT_EQ(FD_CLOEXEC, fcntl(again, F_GETFD));
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(0, fence_status(out[0]));
	ASSERT_EQ(0, source_signal(&self->f[1], 0));
	FOR_EACH(r, RANKS) {
		EXPECT_EQ(1, fence_wait(out[r]));
		close(out[r]);
	}
	EXPECT_EQ(1, fence_wait(again));
	close(again);
	EXPECT_TRUE(sums_right(s, 1));
}

/* Produced by tiles, which a waiting poll() hears of; then it is over at once. */
TEST_F(out, when_all_is_produced)
{
	struct sums *s = &self->s;
	pid_t pid;
	int out;

	EXPECT_EQ(-ERANGE, fence_out(s->w.member[0], 0, 1));
	ASSERT_EQ(1, plan_arm(s->w.member[0], 0));
	EXPECT_EQ(-EAGAIN, fence_out(s->w.member[0], 0, 1));
	sums_count(s, 0);
	EXPECT_EQ(-EAGAIN, fence_out(s->w.member[0], 0, 1));
	ASSERT_EQ(1, plan_arm(s->w.member[1], 0));
	pid = fork_child();
	if (!pid) {
		MUST(member_poll(s->w.member[0], POLLPRI,
				 (int)(BOUND_NS / MS)) == POLLPRI);
		_exit(0);
	}
	sleep_ms(50);
	sums_count(s, 1);
	EXPECT_EQ(0, reap(pid));
	out = fence_out(s->w.member[0], 0, 1);
	ASSERT_LE(0, out);
	EXPECT_EQ(1, fence_wait(out));
	close(out);
	EXPECT_EQ(-ERANGE, fence_out(s->w.member[0], 0, 2));
	EXPECT_EQ(-ERANGE, fence_out(s->w.member[0], 0, 0));
	EXPECT_EQ(-ERANGE, fence_out(s->w.member[0], 64, 1));
	EXPECT_EQ(-ENOENT, fence_out(s->w.member[0], 1, 1));
}

TEST_F(out, of_a_group_that_breaks)
{
	struct sums *s = &self->s;
	int out;

	self->epoch = sums_arm(s);
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, sums_fenced(s, r, self->f[r].sync));
	}
	out = fence_out(s->w.member[0], 0, 1);
	ASSERT_LE(0, out);
	ASSERT_EQ(0, group_abort(s->w.group));
	EXPECT_EQ(-ECANCELED, fence_wait(out));
	EXPECT_EQ(-ECANCELED, fence_out(s->w.member[0], 0, 1));
	close(out);
}

/* All files are gone; what waits for the fence hears the end of it. */
TEST_F(out, of_a_group_that_is_closed)
{
	struct sums *s = &self->s;
	int out;

	self->epoch = sums_arm(s);
	FOR_EACH(r, RANKS) {
		ASSERT_EQ(0, sums_fenced(s, r, self->f[r].sync));
	}
	out = fence_out(s->w.member[0], 0, 1);
	ASSERT_LE(0, out);
	world_close(&s->w);
	EXPECT_EQ(-EOWNERDEAD, fence_wait(out));
	/* The module stays for as long as there are fences of it. */
	EXPECT_LT(0, proc_number("/sys/module/t3/refcnt", ""));
	close(out);
}

/* One group's end is another's production, and so on. */
TEST_F(out, chain)
{
	struct sums *s = calloc(4, sizeof(*s));
	int out[4], first;

	ASSERT_NE(NULL, s);
	FOR_EACH(i, 4) {
		ASSERT_EQ(0, sums_open(&s[i]));
		ASSERT_EQ(1, sums_arm(&s[i]));
		first = i ? out[i - 1] : self->f[0].sync;
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, sums_fenced(&s[i], r, first));
		}
		out[i] = fence_out(s[i].w.member[1], 0, 1);
		ASSERT_LE(0, out[i]);
	}
	EXPECT_EQ(0, fence_status(out[3]));
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(1, fence_wait(out[3]));
	FOR_EACH(i, 4) {
		EXPECT_EQ(0, sums_wait(&s[i], 0, 1));
		EXPECT_TRUE(sums_right(&s[i], 1));
		close(out[i]);
		world_close(&s[i].w);
	}
	free(s);
}

TEST_F(out, many_epochs)
{
	struct sums *s = &self->s;

	FOR_EACH(i, 50) {
		int out;

		self->epoch = sums_arm(s);
		ASSERT_EQ((int)i + 1, self->epoch);
		ASSERT_EQ(0, exporter_fence(self->f[0].buf.fd, true));
		close(self->f[0].sync);
		self->f[0].sync = export_sync(self->f[0].buf.fd);
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, sums_fenced(s, r, self->f[0].sync));
		}
		out = fence_out(s->w.member[i % RANKS], 0, i + 1);
		ASSERT_LE(0, out);
		ASSERT_EQ(0, source_signal(&self->f[0], 0));
		EXPECT_EQ(1, fence_wait(out));
		close(out);
		FOR_EACH(r, RANKS) {
			ASSERT_EQ(0, sums_wait(s, r, self->epoch));
		}
		EXPECT_TRUE(sums_right(s, self->epoch));
	}
}

TEST_F(out, no_descriptor_left)
{
	struct rlimit limit = { 3, 3 };
	struct sums *s = &self->s;
	pid_t pid;

	/* A member's calls are its process's: another one with its own. */
	pid = fork_child();
	if (!pid) {
		struct sums *own = calloc(1, sizeof(*own));

		MUST(!sums_open(own));
		MUST(sums_arm(own) == 1);
		FOR_EACH(r, RANKS)
			sums_count(own, r);
		MUST(!sums_wait(own, 0, 1));
		MUST(!setrlimit(RLIMIT_NOFILE, &limit));
		MUST(fence_out(own->w.member[0], 0, 1) == -EMFILE);
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(1, sums_arm(s));
}

/* A plan with dma-bufs takes their locks: its fence comes when it is over. */
TEST_F(out, with_dmabufs)
{
	struct world w;
	struct part *part = calloc(1, sizeof(*part));
	__u32 region, block = 0;
	int out;

	ASSERT_EQ(0, world_open(&w, 1));
	ASSERT_EQ(0, region_import(w.member[0], self->f[0].buf.fd, 0, 1, 1024,
				   1024, 0, &region));
	part_init(part, 0, 1);
	part_region(part, region, 1, 256, 1, 1);
	part_produced(part, 0, 0, 1);
	ASSERT_EQ(0, part_add(w.member[0], part));
	ASSERT_EQ(1, plan_arm(w.member[0], 0));
	ASSERT_EQ(0, fence_in_list(w.member[0], 0, self->f[0].sync, &block, 1));
	EXPECT_EQ(-EAGAIN, fence_out(w.member[0], 0, 1));
	EXPECT_EQ(0, member_poll(w.member[0], POLLPRI, 0));
	ASSERT_EQ(0, source_signal(&self->f[0], 0));
	EXPECT_EQ(POLLPRI, member_poll(w.member[0], POLLPRI, 10000));
	out = fence_out(w.member[0], 0, 1);
	EXPECT_EQ(1, fence_status(out));
	close(out);
	world_close(&w);
	free(part);
}

/* A kernel without sync_file says so: no such command. */
TEST(not_offered)
{
	struct world w;
	__u32 block = 0;

	if (has_fences())
		SKIP(return, "this kernel has them");
	ASSERT_EQ(0, world_open(&w, 1));
	EXPECT_EQ(-ENOTTY, fence_in_list(w.member[0], 0, 0, &block, 1));
	EXPECT_EQ(-ENOTTY, fence_out(w.member[0], 0, 1));
	world_close(&w);
}

TEST_HARNESS_MAIN
