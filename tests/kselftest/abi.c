// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The module that is loaded speaks the frozen ABI: which command numbers each
 * kind of file knows, what it offers, and the layout of what it maps.
 */
#include "t3_kselftest.h"
#include "../uapi/frozen.h"

TEST(numbers)
{
	FOR_EACH(i, FROZEN_NUMBERS) {
		EXPECT_EQ(frozen_numbers[i].was, frozen_numbers[i].is)
			TH_LOG("%s", frozen_numbers[i].name);
	}
}

TEST(fields)
{
	FOR_EACH(i, FROZEN_FIELDS) {
		EXPECT_EQ(frozen_fields[i].was_offset, frozen_fields[i].offset)
			TH_LOG("%s", frozen_fields[i].name);
		EXPECT_EQ(frozen_fields[i].was_bytes, frozen_fields[i].bytes)
			TH_LOG("%s", frozen_fields[i].name);
	}
}

FIXTURE(live) {
	struct world w;
};

FIXTURE_SETUP(live)
{
	ASSERT_EQ(0, world_open(&self->w, 1));
}

FIXTURE_TEARDOWN(live)
{
	world_close(&self->w);
}

/* Command numbers by their first two digits, as they were given out. */
static bool device_knows(unsigned int nr)
{
	return nr <= 0x01;
}

static bool group_knows(unsigned int nr)
{
	return nr >= 0x20 && nr <= 0x23;
}

static bool offers_fences(void)
{
	struct t3_query query = { 0 };
	int dev = device_open();

	device_query(dev, &query);
	close(dev);
	return query.features & T3_FEATURE_FENCES;
}

/* Those of fences are known where the kernel has sync_files. */
static bool member_knows(unsigned int nr)
{
	if (nr == 0x49 || nr == 0x4a)
		return offers_fences();
	return nr == 0x21 || nr == 0x22 || (nr >= 0x40 && nr <= 0x48);
}

/* A command that is known can't read its structure at NULL. */
static int probe(int fd, unsigned int nr)
{
	return t3_call(fd, 0xbe00 | nr, NULL);
}

TEST_F(live, command_numbers)
{
	FOR_EACH(nr, 256) {
		EXPECT_EQ(device_knows(nr) ? -EFAULT : -ENOTTY,
			  probe(self->w.dev, nr))
			TH_LOG("device, command %#x", nr);
		EXPECT_EQ(group_knows(nr) ? -EFAULT : -ENOTTY,
			  probe(self->w.group, nr))
			TH_LOG("group, command %#x", nr);
		EXPECT_EQ(member_knows(nr) ? -EFAULT : -ENOTTY,
			  probe(self->w.member[0], nr))
			TH_LOG("member, command %#x", nr);
	}
}

/* The whole of an ioctl's number counts: type, direction and size too. */
TEST_F(live, other_encodings)
{
	struct t3_query query = { .size = sizeof(query) };
	int dev = self->w.dev;

	EXPECT_EQ(-ENOTTY, t3_call(dev, _IO(0xbd, 0), &query));
	EXPECT_EQ(-ENOTTY, t3_call(dev, _IOR(0xbe, 0, struct t3_query), &query));
	EXPECT_EQ(-ENOTTY, t3_call(dev, _IOWR(0xbe, 0, struct t3_query), &query));
	EXPECT_EQ(-ENOTTY, t3_call(dev, 0xbe00 | 1UL << 16, &query));
	EXPECT_EQ(0, t3_call(dev, 0xbe00, &query));
}

#define KNOWN_FEATURES	(T3_FEATURE_USER_MEMORY | \
			 T3_FEATURE_ENGINE_CPU | \
			 T3_FEATURE_POLLER | \
			 T3_FEATURE_DMABUF | \
			 T3_FEATURE_FENCES | \
			 T3_FEATURE_URING | \
			 T3_FEATURE_URING_WAIT)

TEST_F(live, query)
{
	struct t3_query query;

	ASSERT_EQ(0, device_query(self->w.dev, &query));
	EXPECT_EQ(sizeof(query), query.size);
	EXPECT_EQ(0U, query.flags);
	EXPECT_TRUE(query.features & T3_FEATURE_USER_MEMORY);
	EXPECT_TRUE(query.features & T3_FEATURE_ENGINE_CPU);
	EXPECT_TRUE(query.features & T3_FEATURE_DMABUF);
	EXPECT_EQ(0ULL, query.features & ~KNOWN_FEATURES);
	EXPECT_GE(query.max_regions, (__u32)T3_MAX_PLAN_REGIONS);
	EXPECT_GT(query.max_block_bytes, 0U);
	EXPECT_LE(query.max_block_bytes, (__u32)T3_MAX_BLOCK_BYTES);
	EXPECT_GT(query.watchdog_max_ms, 0U);
}

TEST_F(live, info_of_a_new_group)
{
	struct t3_group_info by_group, by_member;

	ASSERT_EQ(0, group_info(self->w.group, &by_group));
	ASSERT_EQ(0, group_info(self->w.member[0], &by_member));
	EXPECT_EQ(0, memcmp(&by_group, &by_member, sizeof(by_group)));
	EXPECT_EQ(1U, by_group.ranks);
	EXPECT_EQ(30000U, by_group.watchdog_ms);
	EXPECT_EQ(1ULL, by_group.joined);
	EXPECT_EQ(0ULL, by_group.left);
	EXPECT_EQ(0U, by_group.broken);
	EXPECT_EQ(T3_NONE, by_group.broken_rank);
	EXPECT_EQ(T3_NONE, by_group.broken_slot);
	EXPECT_EQ(T3_NONE, by_group.broken_block);
}

TEST_F(live, files_are_cloexec)
{
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->w.group, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->w.member[0], F_GETFD) & FD_CLOEXEC);
}

/* What is mapped: one counter a block, and a status with one count a block. */
TEST_F(live, mapped_layout)
{
	static struct part part;
	size_t bytes = 6 * 64 * sizeof(float);
	struct t3_plan_status *status;
	__u32 region, *tiles;
	void *buffer;

	buffer = aligned_alloc(page_size(), page_size());
	ASSERT_NE(NULL, buffer);
	ASSERT_EQ(0, region_add(self->w.member[0], buffer, T3_DTYPE_F32, 6,
				bytes / 6, &region));
	part_init(&part, 3, 1);
	part_region(&part, region, 6, 64, 3, 2);
	FOR_EACH(b, 6)
		part_produced(&part, 0, b, 1);
	ASSERT_EQ(0, part_add(self->w.member[0], &part));
	EXPECT_GE(part.add.tiles_bytes, 6 * sizeof(__u32));
	EXPECT_GE(part.add.status_bytes,
		  sizeof(*status) + 6 * sizeof(__u32));
	tiles = part_map_tiles(self->w.member[0], &part);
	status = part_map_status(self->w.member[0], &part);
	ASSERT_NE(MAP_FAILED, (void *)tiles);
	ASSERT_NE(MAP_FAILED, (void *)status);
	EXPECT_EQ(6U, status->blocks);
	EXPECT_GE(status->count_offset, sizeof(*status));
	EXPECT_EQ(0U, status->count_offset % sizeof(__u32));
	EXPECT_LE(status->count_offset + 6 * sizeof(__u32),
		  part.add.status_bytes);
	EXPECT_EQ(0U, status->armed);
	EXPECT_EQ(0U, status->retired);
	EXPECT_EQ(0U, status->broken);
	EXPECT_EQ(T3_NONE, status->broken_rank);
	FOR_EACH(b, 6) {
		EXPECT_EQ(0U, tiles[b]);
	}
	FOR_EACH(i, ARRAY_SIZE(status->__reserved)) {
		EXPECT_EQ(0U, status->__reserved[i]);
	}
}

TEST_HARNESS_MAIN
