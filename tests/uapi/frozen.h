/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ABI of /dev/t3 as it was given out, in literals. What is here never
 * changes; what is new is added. tests/uapi/complete sees to it that nothing
 * of the header is missing here.
 */
#ifndef T3_FROZEN_H
#define T3_FROZEN_H

#include <linux/t3.h>
#include <stddef.h>

struct frozen_number {
	const char *name;
	unsigned long long is;
	unsigned long long was;
};

#define NUMBER(name, was) { #name, (unsigned long long)(name), was }

static const struct frozen_number frozen_numbers[] = {
	NUMBER(T3_DTYPE_F32, 1),
	NUMBER(T3_DTYPE_F64, 2),
	NUMBER(T3_DTYPE_F16, 3),
	NUMBER(T3_DTYPE_BF16, 4),
	NUMBER(T3_DTYPE_I32, 5),
	NUMBER(T3_DTYPE_COUNT, 5),
	NUMBER(T3_OP_COPY, 1),
	NUMBER(T3_OP_SUM, 2),
	NUMBER(T3_MAX_RANKS, 64),
	NUMBER(T3_MAX_PLANS, 64),
	NUMBER(T3_MAX_PLAN_REGIONS, 16),
	NUMBER(T3_MAX_BLOCKS, 65536),
	NUMBER(T3_MAX_TRIGGERS, 65536),
	NUMBER(T3_MAX_SOURCES, 1048576),
	NUMBER(T3_MAX_BLOCK_BYTES, 4194304),
	NUMBER(T3_MAX_TILES, 1048576),
	NUMBER(T3_MAX_NOTIFY, 65536),
	NUMBER(T3_FEATURE_USER_MEMORY, 1),
	NUMBER(T3_FEATURE_ENGINE_CPU, 2),
	NUMBER(T3_FEATURE_POLLER, 4),
	NUMBER(T3_FEATURE_DMABUF, 8),
	NUMBER(T3_FEATURE_FENCES, 16),
	NUMBER(T3_FEATURE_URING, 256),
	NUMBER(T3_FEATURE_URING_WAIT, 512),
	NUMBER(T3_IOC_TYPE, 0xbe),
	NUMBER(T3_CMD_QUERY, 0x00),
	NUMBER(T3_CMD_GROUP_CREATE, 0x01),
	NUMBER(T3_CMD_GROUP_JOIN, 0x20),
	NUMBER(T3_CMD_GROUP_INFO, 0x21),
	NUMBER(T3_CMD_GROUP_ABORT, 0x22),
	NUMBER(T3_CMD_GROUP_SET, 0x23),
	NUMBER(T3_CMD_REGION_ADD, 0x40),
	NUMBER(T3_CMD_REGION_DEL, 0x41),
	NUMBER(T3_CMD_PLAN_ADD, 0x42),
	NUMBER(T3_CMD_PLAN_WAIT, 0x43),
	NUMBER(T3_CMD_PLAN_DEL, 0x44),
	NUMBER(T3_CMD_ARM, 0x45),
	NUMBER(T3_CMD_NOTIFY, 0x46),
	NUMBER(T3_CMD_WAIT, 0x47),
	NUMBER(T3_CMD_LEAVE, 0x48),
	NUMBER(T3_CMD_FENCE_IN, 0x49),
	NUMBER(T3_CMD_FENCE_OUT, 0x4a),
	NUMBER(T3_QUERY, 0xbe00),
	NUMBER(T3_GROUP_CREATE, 0xbe01),
	NUMBER(T3_GROUP_JOIN, 0xbe20),
	NUMBER(T3_GROUP_INFO, 0xbe21),
	NUMBER(T3_GROUP_ABORT, 0xbe22),
	NUMBER(T3_GROUP_SET, 0xbe23),
	NUMBER(T3_REGION_ADD, 0xbe40),
	NUMBER(T3_REGION_DEL, 0xbe41),
	NUMBER(T3_PLAN_ADD, 0xbe42),
	NUMBER(T3_PLAN_WAIT, 0xbe43),
	NUMBER(T3_PLAN_DEL, 0xbe44),
	NUMBER(T3_ARM, 0xbe45),
	NUMBER(T3_NOTIFY, 0xbe46),
	NUMBER(T3_WAIT, 0xbe47),
	NUMBER(T3_LEAVE, 0xbe48),
	NUMBER(T3_FENCE_IN, 0xbe49),
	NUMBER(T3_FENCE_OUT, 0xbe4a),
	NUMBER(T3_NONE, 0xffffffff),
	NUMBER(T3_REGION_USER, 1),
	NUMBER(T3_REGION_DMABUF, 2),
	NUMBER(T3_REGION_READ_ONLY, 1),
	NUMBER(T3_BLOCK_PRODUCED, 1),
	NUMBER(T3_PLAN_SILENT_PRODUCERS, 1),
};

/* A structure's fields in order: together they fill it, without a gap. */
struct frozen_field {
	const char *name;
	unsigned int offset;
	unsigned int bytes;
	unsigned int was_offset;
	unsigned int was_bytes;
	unsigned int whole;	/* not 0: the structure itself, which ends here */
};

#define FIELD(s, f, was_offset, was_bytes) \
	{ #s "." #f, offsetof(struct s, f), sizeof(((struct s *)0)->f), \
	  was_offset, was_bytes, 0 }
#define WHOLE(s, was_bytes) \
	{ "struct " #s, sizeof(struct s), sizeof(struct s), \
	  was_bytes, was_bytes, 1 }

static const struct frozen_field frozen_fields[] = {
	FIELD(t3_query, size, 0, 4),
	FIELD(t3_query, flags, 4, 4),
	FIELD(t3_query, features, 8, 8),
	FIELD(t3_query, max_regions, 16, 4),
	FIELD(t3_query, max_block_bytes, 20, 4),
	FIELD(t3_query, inline_max_bytes, 24, 4),
	FIELD(t3_query, watchdog_max_ms, 28, 4),
	WHOLE(t3_query, 32),

	FIELD(t3_group_create, size, 0, 4),
	FIELD(t3_group_create, flags, 4, 4),
	FIELD(t3_group_create, ranks, 8, 4),
	FIELD(t3_group_create, watchdog_ms, 12, 4),
	FIELD(t3_group_create, out_fd, 16, 4),
	FIELD(t3_group_create, __reserved, 20, 4),
	WHOLE(t3_group_create, 24),

	FIELD(t3_group_join, size, 0, 4),
	FIELD(t3_group_join, flags, 4, 4),
	FIELD(t3_group_join, rank, 8, 4),
	FIELD(t3_group_join, out_fd, 12, 4),
	WHOLE(t3_group_join, 16),

	FIELD(t3_group_info, size, 0, 4),
	FIELD(t3_group_info, flags, 4, 4),
	FIELD(t3_group_info, ranks, 8, 4),
	FIELD(t3_group_info, watchdog_ms, 12, 4),
	FIELD(t3_group_info, joined, 16, 8),
	FIELD(t3_group_info, left, 24, 8),
	FIELD(t3_group_info, broken, 32, 4),
	FIELD(t3_group_info, broken_rank, 36, 4),
	FIELD(t3_group_info, broken_slot, 40, 4),
	FIELD(t3_group_info, broken_block, 44, 4),
	WHOLE(t3_group_info, 48),

	FIELD(t3_group_abort, size, 0, 4),
	FIELD(t3_group_abort, flags, 4, 4),
	WHOLE(t3_group_abort, 8),

	FIELD(t3_group_set, size, 0, 4),
	FIELD(t3_group_set, flags, 4, 4),
	FIELD(t3_group_set, watchdog_ms, 8, 4),
	FIELD(t3_group_set, __reserved, 12, 4),
	WHOLE(t3_group_set, 16),

	FIELD(t3_region_add, size, 0, 4),
	FIELD(t3_region_add, flags, 4, 4),
	FIELD(t3_region_add, type, 8, 4),
	FIELD(t3_region_add, dtype, 12, 4),
	FIELD(t3_region_add, base, 16, 8),
	FIELD(t3_region_add, row_bytes, 24, 8),
	FIELD(t3_region_add, row_stride, 32, 8),
	FIELD(t3_region_add, rows, 40, 4),
	FIELD(t3_region_add, region, 44, 4),
	/* its first version ended here; 48 bytes are taken for ever */
	FIELD(t3_region_add, fd, 48, 4),
	FIELD(t3_region_add, __reserved, 52, 4),
	WHOLE(t3_region_add, 56),

	FIELD(t3_region_del, size, 0, 4),
	FIELD(t3_region_del, flags, 4, 4),
	FIELD(t3_region_del, region, 8, 4),
	FIELD(t3_region_del, __reserved, 12, 4),
	WHOLE(t3_region_del, 16),

	FIELD(t3_source, rank, 0, 2),
	FIELD(t3_source, region, 2, 2),
	FIELD(t3_source, block, 4, 4),
	FIELD(t3_source, at, 8, 4),
	WHOLE(t3_source, 12),

	FIELD(t3_trigger, op, 0, 2),
	FIELD(t3_trigger, region, 2, 2),
	FIELD(t3_trigger, block, 4, 4),
	FIELD(t3_trigger, seq, 8, 4),
	FIELD(t3_trigger, first_source, 12, 4),
	FIELD(t3_trigger, sources, 16, 4),
	WHOLE(t3_trigger, 20),

	FIELD(t3_plan_block, readers, 0, 8),
	FIELD(t3_plan_block, tiles, 8, 4),
	FIELD(t3_plan_block, flags, 12, 4),
	WHOLE(t3_plan_block, 16),

	FIELD(t3_plan_region, region, 0, 4),
	FIELD(t3_plan_region, block_rows, 4, 4),
	FIELD(t3_plan_region, block_cols, 8, 4),
	FIELD(t3_plan_region, __reserved, 12, 4),
	FIELD(t3_plan_region, row_cuts, 16, 8),
	FIELD(t3_plan_region, col_cuts, 24, 8),
	FIELD(t3_plan_region, blocks, 32, 8),
	WHOLE(t3_plan_region, 40),

	FIELD(t3_verdict, error, 0, 4),
	FIELD(t3_verdict, rank, 4, 4),
	FIELD(t3_verdict, trigger, 8, 4),
	FIELD(t3_verdict, detail, 12, 4),
	WHOLE(t3_verdict, 16),

	FIELD(t3_plan_add, size, 0, 4),
	FIELD(t3_plan_add, flags, 4, 4),
	FIELD(t3_plan_add, slot, 8, 4),
	FIELD(t3_plan_add, regions, 12, 4),
	FIELD(t3_plan_add, triggers, 16, 4),
	FIELD(t3_plan_add, sources, 20, 4),
	FIELD(t3_plan_add, generation, 24, 8),
	FIELD(t3_plan_add, digest, 32, 16),
	FIELD(t3_plan_add, region_list, 48, 8),
	FIELD(t3_plan_add, trigger_list, 56, 8),
	FIELD(t3_plan_add, source_list, 64, 8),
	FIELD(t3_plan_add, verdict, 72, 16),
	FIELD(t3_plan_add, tiles_offset, 88, 8),
	FIELD(t3_plan_add, tiles_bytes, 96, 8),
	FIELD(t3_plan_add, status_offset, 104, 8),
	FIELD(t3_plan_add, status_bytes, 112, 8),
	WHOLE(t3_plan_add, 120),

	FIELD(t3_plan_wait, size, 0, 4),
	FIELD(t3_plan_wait, flags, 4, 4),
	FIELD(t3_plan_wait, slot, 8, 4),
	FIELD(t3_plan_wait, __reserved, 12, 4),
	FIELD(t3_plan_wait, timeout_ns, 16, 8),
	FIELD(t3_plan_wait, verdict, 24, 16),
	WHOLE(t3_plan_wait, 40),

	FIELD(t3_plan_del, size, 0, 4),
	FIELD(t3_plan_del, flags, 4, 4),
	FIELD(t3_plan_del, slot, 8, 4),
	FIELD(t3_plan_del, __reserved, 12, 4),
	WHOLE(t3_plan_del, 16),

	FIELD(t3_arm, size, 0, 4),
	FIELD(t3_arm, flags, 4, 4),
	FIELD(t3_arm, slot, 8, 4),
	FIELD(t3_arm, epoch, 12, 4),
	WHOLE(t3_arm, 16),

	FIELD(t3_tiles, block, 0, 4),
	FIELD(t3_tiles, tiles, 4, 4),
	WHOLE(t3_tiles, 8),

	FIELD(t3_notify, size, 0, 4),
	FIELD(t3_notify, flags, 4, 4),
	FIELD(t3_notify, slot, 8, 4),
	FIELD(t3_notify, entries, 12, 4),
	FIELD(t3_notify, list, 16, 8),
	FIELD(t3_notify, done, 24, 4),
	FIELD(t3_notify, __reserved, 28, 4),
	WHOLE(t3_notify, 32),

	FIELD(t3_wait, size, 0, 4),
	FIELD(t3_wait, flags, 4, 4),
	FIELD(t3_wait, slot, 8, 4),
	FIELD(t3_wait, epoch, 12, 4),
	FIELD(t3_wait, timeout_ns, 16, 8),
	FIELD(t3_wait, rank, 24, 4),
	FIELD(t3_wait, __reserved, 28, 4),
	WHOLE(t3_wait, 32),

	FIELD(t3_leave, size, 0, 4),
	FIELD(t3_leave, flags, 4, 4),
	WHOLE(t3_leave, 8),

	FIELD(t3_uring_cmd, arg, 0, 8),
	FIELD(t3_uring_cmd, size, 8, 4),
	FIELD(t3_uring_cmd, __reserved, 12, 4),
	WHOLE(t3_uring_cmd, 16),

	FIELD(t3_fence_in, size, 0, 4),
	FIELD(t3_fence_in, flags, 4, 4),
	FIELD(t3_fence_in, slot, 8, 4),
	FIELD(t3_fence_in, fd, 12, 4),
	FIELD(t3_fence_in, entries, 16, 4),
	FIELD(t3_fence_in, __reserved, 20, 4),
	FIELD(t3_fence_in, list, 24, 8),
	WHOLE(t3_fence_in, 32),

	FIELD(t3_fence_out, size, 0, 4),
	FIELD(t3_fence_out, flags, 4, 4),
	FIELD(t3_fence_out, slot, 8, 4),
	FIELD(t3_fence_out, epoch, 12, 4),
	FIELD(t3_fence_out, out_fd, 16, 4),
	FIELD(t3_fence_out, __reserved, 20, 4),
	WHOLE(t3_fence_out, 24),

	FIELD(t3_plan_status, armed, 0, 4),
	FIELD(t3_plan_status, retired, 4, 4),
	FIELD(t3_plan_status, broken, 8, 4),
	FIELD(t3_plan_status, broken_rank, 12, 4),
	FIELD(t3_plan_status, need_wakeup, 16, 4),
	FIELD(t3_plan_status, count_offset, 20, 4),
	FIELD(t3_plan_status, blocks, 24, 4),
	FIELD(t3_plan_status, __reserved, 28, 36),
	WHOLE(t3_plan_status, 64),
};

#define FROZEN_NUMBERS (sizeof(frozen_numbers) / sizeof(frozen_numbers[0]))
#define FROZEN_FIELDS (sizeof(frozen_fields) / sizeof(frozen_fields[0]))

#endif /* T3_FROZEN_H */
