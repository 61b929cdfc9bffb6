/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * t3: the ABI of /dev/t3.
 *
 * Three kinds of file descriptor, each with its own commands: the device
 * (/dev/t3), a group (made by T3_GROUP_CREATE; holding it is the right to
 * join) and a member (made by T3_GROUP_JOIN; one rank of the group). All are
 * O_CLOEXEC.
 *
 * Rules of every command:
 *  - The structure's first field is its size as the caller knows it. A longer
 *    structure than the kernel knows is taken when the surplus is zero.
 *  - Reserved fields and unknown flags are zero.
 *  - Outputs are written only on success, but for those marked "also on
 *    error", and every byte of them is defined.
 *  - A refused call changes nothing.
 *
 * Errors that every command can give:
 *  ENOTTY      no such command on this kind of file
 *  EINVAL      size shorter than the command's first version
 *  E2BIG       size longer than known, and the surplus is not zero
 *  EFAULT      the structure, or an array it points to, can't be read or
 *              written
 *  EOPNOTSUPP  an unknown flag, or a reserved field that is not zero
 *  ENOMEM      no kernel memory
 *  EINTR       a signal came first and its handler ran, or it is fatal; nothing
 *              has changed. Without a handler the call begins anew.
 *
 * Errors that every command on a member can give:
 *  EPERM       the caller's address space is not the one that joined
 *  ESHUTDOWN   the member has left (T3_LEAVE)
 *
 * Errors of a group that broke (its cause in T3_GROUP_INFO), from ARM, NOTIFY,
 * WAIT, PLAN_ADD and PLAN_WAIT:
 *  EOWNERDEAD  a member died, or left, with an epoch armed
 *  ECANCELED   T3_GROUP_ABORT
 *  ETIMEDOUT   the watchdog (WAIT's own timeout is ETIME)
 *  ESTALE      a region's memory changed under an armed epoch
 *  EIO         an engine failed, or a dma-buf can't be used any more
 *  any other   the error of a fence that T3_FENCE_IN was given; EPROTO where
 *              tiles of its blocks were counted too
 */
#ifndef _UAPI_LINUX_T3_H
#define _UAPI_LINUX_T3_H

#include <linux/types.h>
#include <linux/ioctl.h>

/* Element types of a region. */
#define T3_DTYPE_F32	1
#define T3_DTYPE_F64	2
#define T3_DTYPE_F16	3
#define T3_DTYPE_BF16	4
#define T3_DTYPE_I32	5
#define T3_DTYPE_COUNT	5

/* What a trigger does. */
#define T3_OP_COPY	1	/* one source */
#define T3_OP_SUM	2	/* one or more sources, added in the order listed */

/* Limits that are part of the ABI. Others are in struct t3_query. */
#define T3_MAX_RANKS		64
#define T3_MAX_PLANS		64	/* slots of a group: 0 .. 63 */
#define T3_MAX_PLAN_REGIONS	16	/* regions of one rank in one plan */
#define T3_MAX_BLOCKS		65536	/* blocks of one rank in one plan */
#define T3_MAX_TRIGGERS		65536	/* triggers of one rank in one plan */
#define T3_MAX_SOURCES		(1 << 20) /* sources of one rank in one plan */
#define T3_MAX_BLOCK_BYTES	(4 << 20)
#define T3_MAX_TILES		(1 << 20) /* tiles of one block in an epoch */
#define T3_MAX_NOTIFY		65536	/* entries of one T3_NOTIFY */

/* What the kernel offers: bits of t3_query.features. */
#define T3_FEATURE_USER_MEMORY	(1ULL << 0)
#define T3_FEATURE_ENGINE_CPU	(1ULL << 1)
#define T3_FEATURE_POLLER	(1ULL << 2)
#define T3_FEATURE_DMABUF	(1ULL << 3)	/* T3_REGION_DMABUF */
#define T3_FEATURE_FENCES	(1ULL << 4)	/* T3_FENCE_IN, T3_FENCE_OUT */
#define T3_FEATURE_URING	(1ULL << 8)	/* struct t3_uring_cmd */
#define T3_FEATURE_URING_WAIT	(1ULL << 9)	/* T3_WAIT is one of them */

#define T3_IOC_TYPE	0xBE

enum {
	T3_CMD_QUERY = 0x00,
	T3_CMD_GROUP_CREATE,

	T3_CMD_GROUP_JOIN = 0x20,
	T3_CMD_GROUP_INFO,
	T3_CMD_GROUP_ABORT,
	T3_CMD_GROUP_SET,

	T3_CMD_REGION_ADD = 0x40,
	T3_CMD_REGION_DEL,
	T3_CMD_PLAN_ADD,
	T3_CMD_PLAN_WAIT,
	T3_CMD_PLAN_DEL,
	T3_CMD_ARM,
	T3_CMD_NOTIFY,
	T3_CMD_WAIT,
	T3_CMD_LEAVE,
	T3_CMD_FENCE_IN,	/* ENOTTY without T3_FEATURE_FENCES */
	T3_CMD_FENCE_OUT,	/* likewise */
};

/**
 * struct t3_query - T3_QUERY on /dev/t3: what this kernel offers
 * @size: sizeof(struct t3_query)
 * @flags: 0
 * @features: out: T3_FEATURE_* bits
 * @max_regions: out: regions of one member
 * @max_block_bytes: out: bytes of one block
 * @inline_max_bytes: out: bytes that one T3_NOTIFY moves by itself before it
 *	hands the rest to the workers
 * @watchdog_max_ms: out: the longest watchdog that a group may ask for
 *
 * Context: may sleep. Errors: those of every command.
 */
struct t3_query {
	__u32 size;
	__u32 flags;
	__aligned_u64 features;
	__u32 max_regions;
	__u32 max_block_bytes;
	__u32 inline_max_bytes;
	__u32 watchdog_max_ms;
};
#define T3_QUERY _IO(T3_IOC_TYPE, T3_CMD_QUERY)

/**
 * struct t3_group_create - T3_GROUP_CREATE on /dev/t3: a new group
 * @size: sizeof(struct t3_group_create)
 * @flags: 0
 * @ranks: how many ranks the group has, 1 .. T3_MAX_RANKS
 * @watchdog_ms: longest time without progress of an armed epoch before the
 *	group breaks; 0: the default (30 s)
 * @out_fd: out: the group
 * @__reserved: 0
 *
 * Context: may sleep. Errors: ERANGE @ranks or @watchdog_ms; EMFILE, ENFILE.
 */
struct t3_group_create {
	__u32 size;
	__u32 flags;
	__u32 ranks;
	__u32 watchdog_ms;
	__s32 out_fd;
	__u32 __reserved;
};
#define T3_GROUP_CREATE _IO(T3_IOC_TYPE, T3_CMD_GROUP_CREATE)

/**
 * struct t3_group_join - T3_GROUP_JOIN on a group: become a rank
 * @size: sizeof(struct t3_group_join)
 * @flags: 0
 * @rank: 0 .. ranks - 1
 * @out_fd: out: the member. It belongs to the caller's address space: when
 *	that goes (exit, exec, kill) with an epoch armed, the group breaks,
 *	whoever else still holds the file.
 *
 * A rank is taken once in a group's life.
 *
 * Context: may sleep. Errors: ERANGE @rank; EEXIST the rank is or was taken;
 * EMFILE, ENFILE; those of a group that broke.
 */
struct t3_group_join {
	__u32 size;
	__u32 flags;
	__u32 rank;
	__s32 out_fd;
};
#define T3_GROUP_JOIN _IO(T3_IOC_TYPE, T3_CMD_GROUP_JOIN)

/* No rank, block or trigger is meant. */
#define T3_NONE		0xffffffffU

/**
 * struct t3_group_info - T3_GROUP_INFO on a group or a member
 * @size: sizeof(struct t3_group_info)
 * @flags: 0
 * @ranks: out: how many ranks the group has
 * @watchdog_ms: out: see struct t3_group_create
 * @joined: out: bit r is set: rank r has joined (and perhaps left again)
 * @left: out: bit r is set: rank r has left or died
 * @broken: out: 0, or the errno with which the group broke
 * @broken_rank: out: the rank that is the cause, or T3_NONE
 * @broken_slot: out: the plan's slot, or T3_NONE
 * @broken_block: out: a block of @broken_rank that lacks an update, or T3_NONE
 *
 * Context: may sleep. Errors: those of every command.
 */
struct t3_group_info {
	__u32 size;
	__u32 flags;
	__u32 ranks;
	__u32 watchdog_ms;
	__aligned_u64 joined;
	__aligned_u64 left;
	__u32 broken;
	__u32 broken_rank;
	__u32 broken_slot;
	__u32 broken_block;
};
#define T3_GROUP_INFO _IO(T3_IOC_TYPE, T3_CMD_GROUP_INFO)

/**
 * struct t3_group_abort - T3_GROUP_ABORT on a group or a member
 * @size: sizeof(struct t3_group_abort)
 * @flags: 0
 *
 * Breaks the group with ECANCELED and returns when no transfer runs any more.
 *
 * Context: sleeps for as long as one chunk of a transfer takes. Errors:
 * EALREADY the group has broken before.
 */
struct t3_group_abort {
	__u32 size;
	__u32 flags;
};
#define T3_GROUP_ABORT _IO(T3_IOC_TYPE, T3_CMD_GROUP_ABORT)

/**
 * struct t3_group_set - T3_GROUP_SET on a group
 * @size: sizeof(struct t3_group_set)
 * @flags: 0
 * @watchdog_ms: see struct t3_group_create; 0: the default
 * @__reserved: 0
 *
 * Context: may sleep. Errors: ERANGE @watchdog_ms over the administrator's
 * cap.
 */
struct t3_group_set {
	__u32 size;
	__u32 flags;
	__u32 watchdog_ms;
	__u32 __reserved;
};
#define T3_GROUP_SET _IO(T3_IOC_TYPE, T3_CMD_GROUP_SET)

/* Where a region's memory is: t3_region_add.type. */
#define T3_REGION_USER		1	/* anonymous, shmem or hugetlb memory */
#define T3_REGION_DMABUF	2	/* a dma-buf: T3_FEATURE_DMABUF */

/* t3_region_add.flags: the region is only ever a source. */
#define T3_REGION_READ_ONLY	(1U << 0)

/**
 * struct t3_region_add - T3_REGION_ADD on a member: register a buffer
 * @size: sizeof(struct t3_region_add)
 * @flags: T3_REGION_READ_ONLY or 0
 * @type: T3_REGION_USER or T3_REGION_DMABUF
 * @dtype: T3_DTYPE_*
 * @base: address of the first element, a multiple of the element's size; of a
 *	dma-buf: its offset in the buffer
 * @row_bytes: bytes of one row's elements, a multiple of the element's size
 * @row_stride: bytes from one row to the next, >= @row_bytes, likewise
 * @rows: number of rows, 1 .. 2^31 - 1; a row has at most 2^31 - 1 elements
 * @region: out: the region's number in this member
 * @fd: the dma-buf, which stays the caller's and may be closed afterwards; 0
 *	for T3_REGION_USER. Not in the structure's first version (48 bytes).
 * @__reserved: 0
 *
 * User memory: the pages are pinned and charged to RLIMIT_MEMLOCK until
 * T3_REGION_DEL or the member's end. A region made of memory that is later
 * unmapped is stale: its use gives ESTALE.
 *
 * A dma-buf: its exporter may move it whenever no transfer runs. Transfers
 * wait for the fences that others have put on it, and put theirs on it. They
 * run on the workers only. Where it has moved to I/O memory, or can't be mapped
 * any more, the group breaks with EIO.
 *
 * Context: may sleep. Errors: EOPNOTSUPP @type, or unknown @flags, or @fd with
 * T3_REGION_USER; EINVAL @dtype; EDOM alignment of @base, @row_bytes or
 * @row_stride; ERANGE zero, wrapping or too large geometry, or past the
 * dma-buf's end; EBADF @fd is not open, or not a dma-buf; EFAULT a page is not
 * mapped, or memory or the dma-buf is not writable where it must be;
 * EMEDIUMTYPE memory of a kind that is not taken (files, devices, PFN maps,
 * userfaultfd; a dma-buf that the CPU can't map, or in I/O memory); EREMOTEIO
 * the dma-buf's exporter refused to attach or to map it; EDQUOT over
 * RLIMIT_MEMLOCK; ENOSPC too many regions.
 */
struct t3_region_add {
	__u32 size;
	__u32 flags;
	__u32 type;
	__u32 dtype;
	__aligned_u64 base;
	__aligned_u64 row_bytes;
	__aligned_u64 row_stride;
	__u32 rows;
	__u32 region;
	__s32 fd;
	__u32 __reserved;
};
#define T3_REGION_ADD _IO(T3_IOC_TYPE, T3_CMD_REGION_ADD)

/**
 * struct t3_region_del - T3_REGION_DEL on a member
 * @size: sizeof(struct t3_region_del)
 * @flags: 0
 * @region: as given by T3_REGION_ADD
 * @__reserved: 0
 *
 * Context: may sleep. Errors: ENOENT no such region; EBUSY a plan uses it.
 */
struct t3_region_del {
	__u32 size;
	__u32 flags;
	__u32 region;
	__u32 __reserved;
};
#define T3_REGION_DEL _IO(T3_IOC_TYPE, T3_CMD_REGION_DEL)

/**
 * struct t3_source - what a trigger reads
 * @rank: the owner of the block
 * @region: which of the owner's plan regions (index into its own list)
 * @block: block of that region, row-major in the region's grid
 * @at: after which of the block's updates it is read, 1 .. K
 */
struct t3_source {
	__u16 rank;
	__u16 region;
	__u32 block;
	__u32 at;
};

/**
 * struct t3_trigger - one pre-programmed operation
 * @op: T3_OP_*
 * @region: destination: which of the caller's plan regions
 * @block: destination: block of that region
 * @seq: number of this update among the block's updates, 1 .. K (2 .. K where
 *	the block has a local producer)
 * @first_source: index of its first source in the plan's list of sources: the
 *	lists of the triggers follow each other without a gap
 * @sources: number of sources: 1 for T3_OP_COPY, 1 .. T3_MAX_RANKS for
 *	T3_OP_SUM
 *
 * All blocks that a trigger names have the same dtype, rows and columns.
 */
struct t3_trigger {
	__u16 op;
	__u16 region;
	__u32 block;
	__u32 seq;
	__u32 first_source;
	__u32 sources;
};

/* t3_plan_block.flags: a local producer writes the block (P = 1). */
#define T3_BLOCK_PRODUCED	(1U << 0)

/**
 * struct t3_plan_block - one block of a plan region
 * @readers: bit r is set: rank r may read the block; its own rank always may
 * @tiles: how many tiles make the block's production, 0 .. T3_MAX_TILES; 0:
 *	arming is its production
 * @flags: T3_BLOCK_PRODUCED or 0
 */
struct t3_plan_block {
	__aligned_u64 readers;
	__u32 tiles;
	__u32 flags;
};

/**
 * struct t3_plan_region - a region's part in a plan: a grid of blocks
 * @region: as given by T3_REGION_ADD
 * @block_rows: rows of the grid, >= 1
 * @block_cols: columns of the grid, >= 1
 * @__reserved: 0
 * @row_cuts: address of @block_rows + 1 __u32: where each row of blocks
 *	begins, in rows; the first is 0, each is greater than the one before,
 *	the last is the region's rows
 * @col_cuts: address of @block_cols + 1 __u32: likewise in elements of a row
 * @blocks: address of @block_rows * @block_cols struct t3_plan_block,
 *	row-major
 */
struct t3_plan_region {
	__u32 region;
	__u32 block_rows;
	__u32 block_cols;
	__u32 __reserved;
	__aligned_u64 row_cuts;
	__aligned_u64 col_cuts;
	__aligned_u64 blocks;
};

/* t3_plan_add.flags: tiles are also counted by producers that can't call
 * T3_NOTIFY (a GPU's kernels): the poller never sleeps long while armed.
 */
#define T3_PLAN_SILENT_PRODUCERS	(1U << 0)

/**
 * struct t3_verdict - why a plan was refused
 * @error: 0: live; else the errno
 * @rank: the rank whose program is at fault, or T3_NONE
 * @trigger: index of the trigger in that rank's list, or T3_NONE
 * @detail: the value at fault: a source's index within the trigger, a block's
 *	number within the rank, or T3_NONE
 *
 * @error is one of
 *  EINVAL      @trigger's op is unknown, a block's flags are, or it has tiles
 *              and no producer; a grid's dtype
 *  ERANGE      a region, block, rank, seq, at, source index, number of
 *              sources or of tiles out of range
 *  ENOTUNIQ    two updates of a block have the same number
 *  EMSGSIZE    the blocks of a trigger differ in rows or columns
 *  EPROTOTYPE  the blocks of a trigger differ in dtype
 *  EACCES      a source's owner did not mark it as readable by @rank
 *  ELOOP       the trigger is on a cycle
 *  EROFS       a block of a read-only region is the destination
 *  EADDRINUSE  two blocks of a rank overlap in bytes, and one is written in the
 *              epoch (a destination, or produced by tiles)
 *  EBADMSG     the digests of rank 0 and of @rank differ
 *  E2BIG       a block is larger than T3_MAX_BLOCK_BYTES, or a list is longer
 *              than its limit
 *  EPIPE       @rank left, or deleted its part, before all parts had come
 */
struct t3_verdict {
	__u32 error;
	__u32 rank;
	__u32 trigger;
	__u32 detail;
};

/**
 * struct t3_plan_add - T3_PLAN_ADD on a member: this rank's part of a plan
 * @size: sizeof(struct t3_plan_add)
 * @flags: T3_PLAN_SILENT_PRODUCERS or 0
 * @slot: 0 .. T3_MAX_PLANS - 1: the same at all ranks
 * @regions: number of entries of @region_list, 0 .. T3_MAX_PLAN_REGIONS
 * @triggers: number of entries of @trigger_list
 * @sources: number of entries of @source_list
 * @generation: the same at all ranks; a slot that was used before takes only
 *	a greater one
 * @digest: the same at all ranks: a hash of the whole plan
 * @region_list: address of struct t3_plan_region []
 * @trigger_list: address of struct t3_trigger []
 * @source_list: address of struct t3_source []
 * @verdict: out, also on error: where this part alone is at fault
 * @tiles_offset: out: mmap offset of the tile counters: __u32 [blocks of all
 *	plan regions, in order], readable and writable
 * @tiles_bytes: out: length for mmap
 * @status_offset: out: mmap offset of struct t3_plan_status, read-only
 * @status_bytes: out: length for mmap
 *
 * The plan is live when the parts of all ranks have come and fit together:
 * T3_PLAN_WAIT.
 *
 * Context: may sleep. Errors: those of struct t3_verdict; ERANGE @slot;
 * E2BIG a list is too long; ENOENT no such region; EEXIST this member has a
 * part in the slot; ESTALE @generation is not greater than the slot's last;
 * EBUSY the slot still holds an older generation; those of a group that broke.
 */
struct t3_plan_add {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 regions;
	__u32 triggers;
	__u32 sources;
	__aligned_u64 generation;
	__aligned_u64 digest[2];
	__aligned_u64 region_list;
	__aligned_u64 trigger_list;
	__aligned_u64 source_list;
	struct t3_verdict verdict;
	__aligned_u64 tiles_offset;
	__aligned_u64 tiles_bytes;
	__aligned_u64 status_offset;
	__aligned_u64 status_bytes;
};
#define T3_PLAN_ADD _IO(T3_IOC_TYPE, T3_CMD_PLAN_ADD)

/**
 * struct t3_plan_wait - T3_PLAN_WAIT on a member: the joint verdict
 * @size: sizeof(struct t3_plan_wait)
 * @flags: 0
 * @slot: the plan
 * @__reserved: 0
 * @timeout_ns: longest wait; 0 only looks
 * @verdict: out, also on error: @verdict.error is the call's errno
 *
 * Context: sleeps. Errors: ERANGE @slot; ENOENT this member has no part in the
 * slot; ETIME not all parts have come in @timeout_ns; those of struct
 * t3_verdict; those of a group that broke.
 */
struct t3_plan_wait {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 __reserved;
	__aligned_u64 timeout_ns;
	struct t3_verdict verdict;
};
#define T3_PLAN_WAIT _IO(T3_IOC_TYPE, T3_CMD_PLAN_WAIT)

/**
 * struct t3_plan_del - T3_PLAN_DEL on a member
 * @size: sizeof(struct t3_plan_del)
 * @flags: 0
 * @slot: the plan
 * @__reserved: 0
 *
 * After the first T3_PLAN_DEL the plan is dead for all; the slot is free when
 * all have deleted their parts.
 *
 * Context: may sleep. Errors: ERANGE @slot; ENOENT this member has no part in
 * the slot; EBUSY an epoch of it is armed here.
 */
struct t3_plan_del {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 __reserved;
};
#define T3_PLAN_DEL _IO(T3_IOC_TYPE, T3_CMD_PLAN_DEL)

/**
 * struct t3_arm - T3_ARM on a member: hand the plan's buffers to the machine
 * @size: sizeof(struct t3_arm)
 * @flags: 0
 * @slot: the plan
 * @epoch: out: the epoch that is armed now: 1, 2, 3 ...
 *
 * Promises that the caller's own reads of the last epoch are over. No tile of
 * the epoch may be counted before it has returned.
 *
 * Context: may sleep. Errors: ERANGE @slot; ENOENT this member has no part in
 * the slot; EAGAIN the joint verdict is not there yet; those of struct
 * t3_verdict; EBUSY the last epoch has not retired here, or another armed
 * plan of this member writes the same bytes; EPROTO a block's tile counter is
 * not where the last epoch left it: early or excess tiles; EPIPE a rank that
 * the epoch needs has left or has deleted the plan; ESTALE a region's memory
 * was unmapped; those of a group that broke.
 */
struct t3_arm {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 epoch;
};
#define T3_ARM _IO(T3_IOC_TYPE, T3_CMD_ARM)

/**
 * struct t3_tiles - one entry of T3_NOTIFY
 * @block: block of this rank in the plan, counted over its plan regions in
 *	order
 * @tiles: tiles to count now, 0 .. T3_MAX_TILES; 0: they were counted in the
 *	mapped counters, look
 */
struct t3_tiles {
	__u32 block;
	__u32 tiles;
};

/**
 * struct t3_notify - T3_NOTIFY on a member: tiles are done
 * @size: sizeof(struct t3_notify)
 * @flags: 0
 * @slot: the plan
 * @entries: number of entries of @list, 0 .. T3_MAX_NOTIFY; 0: look at every
 *	block of this rank
 * @list: address of struct t3_tiles []
 * @done: out, also on error: how many entries were taken; the entry at fault
 *	is the one with this index
 * @__reserved: 0
 *
 * Carries out what became ready, up to inline_max_bytes; the rest goes to the
 * workers.
 *
 * Context: may sleep. Errors: ERANGE @slot or an entry's block or tiles, or
 * @entries; ENOENT this member has no part in the slot; EAGAIN the joint
 * verdict is not there yet; EINVAL an entry's block is not produced by tiles;
 * EPROTO no epoch is armed, or the block has more tiles than it takes in an
 * epoch; those of a group that broke.
 */
struct t3_notify {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 entries;
	__aligned_u64 list;
	__u32 done;
	__u32 __reserved;
};
#define T3_NOTIFY _IO(T3_IOC_TYPE, T3_CMD_NOTIFY)

/**
 * struct t3_wait - T3_WAIT on a member: until an epoch has retired here
 * @size: sizeof(struct t3_wait)
 * @flags: 0
 * @slot: the plan
 * @epoch: the epoch, as given by T3_ARM
 * @timeout_ns: longest wait; 0 only looks
 * @rank: out, also on error: the rank that is the cause, or T3_NONE
 * @__reserved: 0
 *
 * Context: sleeps, and meanwhile carries out triggers. Errors: ERANGE @slot,
 * or @epoch was never armed; ENOENT this member has no part in the slot; ETIME
 * not retired in @timeout_ns; those of a group that broke. A signal gives
 * EINTR; waiting again is right.
 */
struct t3_wait {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 epoch;
	__aligned_u64 timeout_ns;
	__u32 rank;
	__u32 __reserved;
};
#define T3_WAIT _IO(T3_IOC_TYPE, T3_CMD_WAIT)

/**
 * struct t3_leave - T3_LEAVE on a member
 * @size: sizeof(struct t3_leave)
 * @flags: 0
 *
 * Frees all that the member has, as closing it does. Epochs that others have
 * armed run on as far as they can without it.
 *
 * Context: may sleep. Errors: EBUSY an epoch is armed here.
 */
struct t3_leave {
	__u32 size;
	__u32 flags;
};
#define T3_LEAVE _IO(T3_IOC_TYPE, T3_CMD_LEAVE)

/**
 * struct t3_fence_in - T3_FENCE_IN on a member: a fence produces blocks
 * @size: sizeof(struct t3_fence_in)
 * @flags: 0
 * @slot: the plan
 * @fd: a sync_file; it stays the caller's and may be closed afterwards
 * @entries: number of entries of @list, 1 .. T3_MAX_NOTIFY
 * @__reserved: 0
 * @list: address of __u32 []: blocks of this rank, each once
 *
 * When the fence is signalled all tiles of these blocks are counted at once:
 * what it stands for (a GPU's job) has written them. Nobody else is to count
 * any of their tiles in the armed epoch. A fence that has failed breaks the
 * group with its error.
 *
 * Context: may sleep. Errors: ERANGE @slot, @entries or a block; ENOENT this
 * member has no part in the slot; EAGAIN the joint verdict is not there yet;
 * EBADF @fd is not open, or not a sync_file; EINVAL a block is not produced by
 * tiles; EPROTO no epoch is armed; EALREADY a block has a fence, or tiles, in
 * this epoch already, or is listed twice; those of a group that broke.
 */
struct t3_fence_in {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__s32 fd;
	__u32 entries;
	__u32 __reserved;
	__aligned_u64 list;
};
#define T3_FENCE_IN _IO(T3_IOC_TYPE, T3_CMD_FENCE_IN)

/**
 * struct t3_fence_out - T3_FENCE_OUT on a member: an epoch's end as a fence
 * @size: sizeof(struct t3_fence_out)
 * @flags: 0
 * @slot: the plan
 * @epoch: the epoch armed last, or one before it, as given by T3_ARM
 * @out_fd: out: a sync_file that is signalled when the epoch has retired at
 *	this rank, with the group's error where that breaks
 * @__reserved: 0
 *
 * A fence must not depend on user space. So it is given out only when all
 * ranks that the epoch needs have armed it, and each block that tiles produce
 * has been produced or has been given a fence of its own; and, where the plan
 * has dma-bufs, when it has retired. Until then it is EAGAIN, and after that
 * the member polls as POLLPRI as soon as asking again makes sense.
 *
 * Context: may sleep. Errors: ERANGE @slot, or @epoch was never armed; ENOENT
 * this member has no part in the slot; EAGAIN see above; EMFILE, ENFILE; those
 * of a group that broke.
 */
struct t3_fence_out {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 epoch;
	__s32 out_fd;
	__u32 __reserved;
};
#define T3_FENCE_OUT _IO(T3_IOC_TYPE, T3_CMD_FENCE_OUT)

/**
 * struct t3_uring_cmd - a command of a member through io_uring
 * @arg: address of the command's structure, which stays the kernel's until the
 *	command has completed
 * @size: the same as the structure's own size
 * @__reserved: 0
 *
 * Where T3_FEATURE_URING is set: an IORING_OP_URING_CMD on a member, whose
 * cmd_op is T3_ARM, T3_NOTIFY or T3_REGION_ADD and whose cmd is this. It
 * completes exactly once, with 0 or the negative errno that ioctl() would have
 * given, and the outputs are in the structure by then. The caller's address
 * space is that of whoever submits, also where one of the ring's threads does.
 * T3_NOTIFY leaves transfers to the workers.
 *
 * Where T3_FEATURE_URING_WAIT is set, T3_WAIT is possible as well. It keeps no
 * thread, and completes when the epoch has retired, or with T3_WAIT's errors
 * (not EINTR), or with ECANCELED, and then without outputs, when the thread
 * that submitted it or the ring ends first. Elsewhere poll the member
 * (IORING_OP_POLL_ADD), then call T3_WAIT.
 *
 * Errors beside the command's own: EINVAL @size is not the structure's; EBUSY
 * T3_WAIT: 1024 are pending in this member; EOPNOTSUPP the command is not to
 * be had through io_uring, or @__reserved is not 0.
 */
struct t3_uring_cmd {
	__aligned_u64 arg;
	__u32 size;
	__u32 __reserved;
};

/*
 * poll() of a member gives
 *
 *  POLLIN, POLLRDNORM	in some plan an epoch has retired that the caller was
 *			not told of yet, by T3_WAIT or by arming the next one;
 *			T3_WAIT of that plan's last epoch ends it
 *  POLLPRI		a T3_FENCE_OUT that was told EAGAIN may succeed now
 *  POLLERR		the group has broken: T3_WAIT says why, and returns
 *			when no transfer runs any more
 *  POLLHUP		the member has left, or its address space has gone
 *
 * and wakes up when one of them begins. A group or the device has no poll().
 */

/**
 * struct t3_plan_status - what a member may read of a plan without a call
 * @armed: the epoch armed last
 * @retired: the epoch retired last
 * @broken: 0, or the errno with which the group broke
 * @broken_rank: the rank that is the cause, or T3_NONE
 * @need_wakeup: not 0: the poller sleeps; after counting tiles call T3_NOTIFY.
 *	Count with release, then a full fence, then load this.
 * @count_offset: where count begins, in bytes from here: __u32 [blocks]: the
 *	number of updates of each block so far, in all epochs
 * @blocks: how many
 * @__reserved: 0
 *
 * Load with acquire. The page is read-only.
 */
struct t3_plan_status {
	__u32 armed;
	__u32 retired;
	__u32 broken;
	__u32 broken_rank;
	__u32 need_wakeup;
	__u32 count_offset;
	__u32 blocks;
	__u32 __reserved[9];
};

#endif /* _UAPI_LINUX_T3_H */
