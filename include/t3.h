/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libt3: a GEMM's result travels to its peers, and is summed in their memory,
 * while the GEMM is still running.
 *
 *	t3_open(path, rank, ranks, NULL, &member);
 *	t3_alloc(member, bytes, &c);
 *	t3_region_add(member, &matrix, &region);
 *	t3_plan_add(member, &collective, &plan);
 *	for each epoch:
 *		t3_arm(plan);
 *		for (i = 0; t3_plan_step(plan, i, &rect) == 0; i++) {
 *			GEMM into rect;
 *			t3_produced(plan, i);
 *		}
 *		t3_wait(plan, T3_TIMEOUT_DEFAULT);
 *
 * Every call returns 0 or a number >= 0 on success and a negative errno on
 * failure; t3_error() then has a sentence that names the argument, its value
 * and what was allowed. A refused call changes nothing. No call waits without
 * a bound.
 *
 * Threads: different members may be used by different threads freely. Calls on
 * one member, its regions and its plans may come from several threads, but
 * t3_arm(), t3_plan_del(), t3_region_del() and t3_leave() of one object
 * exclude all other calls on it; t3_produced() and t3_tile_done() may be called
 * from any number of threads at once.
 *
 * Errors that many calls give:
 *  EINVAL      a NULL pointer, an unknown flag or name
 *  ENOMEM      no memory
 *  EOWNERDEAD  a rank died, or left, with an epoch armed; t3_error() names it
 *  ECANCELED   t3_abort()
 *  ETIMEDOUT   the watchdog: an armed epoch made no progress for too long
 *  ESTALE      a region's memory was unmapped while it was in use
 *  EIO         an engine failed, or a dma-buf can't be used any more
 *  EPERM       a child of the process that joined uses the member: it has not
 *		the right (t3_leave() frees its copies of the handles)
 *
 * Structures that begin with their size: a shorter one than the first version
 * is EINVAL, a longer one than this library knows is taken when the surplus is
 * zero, else E2BIG.
 */
#ifndef T3_H
#define T3_H

#include <linux/t3.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define T3_VERSION_MAJOR	0
#define T3_VERSION_MINOR	1
#define T3_VERSION_PATCH	0

struct t3_group;
struct t3_member;
struct t3_region;
struct t3_plan;

/* Engines: who carries out triggers. */
enum t3_engine {
	T3_ENGINE_AUTO,		/* the best there is; T3_ENGINE may say which */
	T3_ENGINE_SOFT,		/* threads or processes, no module */
	T3_ENGINE_KERNEL,	/* /dev/t3 */
	T3_ENGINE_GPU,		/* a plug-in */
};

/* Milliseconds; a wait never has no limit. */
#define T3_TIMEOUT_DEFAULT	30000
#define T3_TIMEOUT_MAX		86400000

/**
 * struct t3_options - how a group works; zero is the default of each
 * @size: sizeof(struct t3_options)
 * @engine: enum t3_engine; AUTO asks the environment variable T3_ENGINE
 *	(auto, kernel, soft, gpu), then takes the best that is there; gpu only
 *	where it is named, for its memory is not the processor's
 * @setup_ms: longest wait for peers in setting up, 1 .. T3_TIMEOUT_MAX;
 *	0: T3_TIMEOUT_DEFAULT
 * @watchdog_ms: longest time without progress of an armed epoch before the
 *	group breaks, 1 .. T3_TIMEOUT_MAX; 0: T3_TIMEOUT_DEFAULT
 * @workers: threads of a member (soft engine) that carry out triggers while
 *	the program computes: 0: the library chooses (one where there are more
 *	processors than ranks, else none); 1 .. 64; T3_NO_WORKERS: none,
 *	triggers run inside t3_produced() and t3_wait() only
 * @flags: T3_OPTION_URING or 0; may be missing: the first version ended before
 *	it
 */
struct t3_options {
	uint32_t size;
	uint32_t engine;
	uint32_t setup_ms;
	uint32_t watchdog_ms;
	uint32_t workers;
	uint32_t flags;
};

/*
 * t3_options.flags: calls of the kernel engine go through io_uring where that
 * is possible, else by ioctl() with the same results; t3_uring_why() says which.
 * The environment variable T3_URING asks for it too (1), or forbids it (0).
 */
#define T3_OPTION_URING	(1U << 0)

#define T3_NO_WORKERS	0xffffffffU

/**
 * t3_error - the sentence for the calling thread's last failure
 *
 * Return: never NULL; "" where nothing has failed. Valid until the thread's
 * next failing call.
 */
const char *t3_error(void);

/**
 * t3_version - the library's version at run time
 *
 * Return: major * 10000 + minor * 100 + patch.
 */
int t3_version(void);

/**
 * t3_engine_name - "auto", "soft", "kernel", "gpu"
 * @engine: enum t3_engine
 *
 * Return: NULL where @engine is none of them.
 */
const char *t3_engine_name(uint32_t engine);

/**
 * t3_engine_why - is an engine there, and if not, why?
 * @engine: enum t3_engine; AUTO: which one AUTO takes
 * @why: out: a sentence, at most @bytes with its end
 * @bytes: size of @why
 *
 * Return: the engine that would be taken (> 0); -ENODEV it is not there.
 */
int t3_engine_why(uint32_t engine, char *why, size_t bytes);

/**
 * t3_group_create - a new group
 * @ranks: 1 .. T3_MAX_RANKS
 * @options: NULL: the defaults
 * @group: out
 *
 * Errors: ERANGE a number out of range; ENODEV no such engine here; EMFILE.
 */
int t3_group_create(uint32_t ranks, const struct t3_options *options,
		    struct t3_group **group);

/**
 * t3_group_fd - the file descriptor that is the right to join
 * @group: the group
 *
 * To be inherited (dup() it, it is close-on-exec) or sent through a socket.
 * It stays the group's: don't close it.
 */
int t3_group_fd(const struct t3_group *group);

/**
 * t3_group_from_fd - the group behind a descriptor that was passed
 * @fd: a descriptor as t3_group_fd() gives; the caller keeps it
 * @options: NULL: the defaults; the engine is the group's, others are refused
 * @group: out
 *
 * Errors: EBADF @fd is not open; ENOTTY it is no t3 group; EPROTO it is one of
 * a version that this library can't speak.
 */
int t3_group_from_fd(int fd, const struct t3_options *options,
		     struct t3_group **group);

/**
 * t3_group_at_path - meet the other ranks at a path in the file system
 * @path: a path that does not exist or is a left-over of an earlier meeting;
 *	rank 0 makes a socket there, serves the other ranks of the same user,
 *	and removes it
 * @rank: the caller's
 * @ranks: 1 .. T3_MAX_RANKS, the same at all
 * @options: NULL: the defaults
 * @group: out
 *
 * The socket is its user's alone, and descriptors are given to and taken from
 * the same user or root only. With one rank the path isn't touched.
 *
 * Errors: ERANGE @rank or @ranks; ENAMETOOLONG @path; EEXIST something else is
 * at @path, or another meeting; EACCES it is another user's socket; ETIME not
 * all came within setup_ms (the sentence names who); EPROTO the ranks disagree
 * in ranks, engine or version, or @rank has come already (the sentence says
 * which); EOWNERDEAD rank 0 died meanwhile; those of the file system.
 */
int t3_group_at_path(const char *path, uint32_t rank, uint32_t ranks,
		     const struct t3_options *options, struct t3_group **group);

/**
 * t3_group_close - give up the handle and its descriptor
 * @group: NULL does nothing. Members that joined through it live on.
 */
void t3_group_close(struct t3_group *group);

/**
 * t3_join - become a rank of a group
 * @group: the group; it may be closed afterwards
 * @rank: 0 .. ranks - 1
 * @member: out
 *
 * Errors: ERANGE @rank; EEXIST the rank is or was taken; those of a group that
 * broke.
 */
int t3_join(struct t3_group *group, uint32_t rank, struct t3_member **member);

/**
 * t3_open - t3_group_at_path() and t3_join() in one
 * @path: see t3_group_at_path()
 * @rank: the caller's
 * @ranks: of how many
 * @options: NULL: the defaults
 * @member: out
 *
 * Errors: those of both.
 */
int t3_open(const char *path, uint32_t rank, uint32_t ranks,
	    const struct t3_options *options, struct t3_member **member);

/**
 * t3_leave - leave the group and free all that the member has
 * @member: NULL does nothing
 *
 * Plans, regions and memory of the member are gone. With an epoch armed it
 * still leaves, and breaks the group as dying would.
 *
 * Return: 0; -EOWNERDEAD an epoch was armed and the group broke.
 */
int t3_leave(struct t3_member *member);

/**
 * t3_abort - break the group with ECANCELED
 * @member: a member of it
 *
 * Errors: EALREADY it has broken before.
 */
int t3_abort(struct t3_member *member);

/* What a member is. */
uint32_t t3_rank(const struct t3_member *member);
uint32_t t3_ranks(const struct t3_member *member);
uint32_t t3_engine(const struct t3_member *member);

/**
 * t3_uring_why - do a member's calls go through io_uring, and if not, why?
 * @member: the member
 * @why: out: a sentence, at most @bytes with its end
 * @bytes: size of @why
 *
 * Return: 1 they do; 0 they don't.
 */
int t3_uring_why(const struct t3_member *member, char *why, size_t bytes);

/**
 * t3_alloc - memory that is good on every engine
 * @member: whose
 * @bytes: 1 .. 2^40
 * @memory: out: zeroed, page-aligned
 *
 * Errors: ERANGE @bytes; ENOMEM.
 */
int t3_alloc(struct t3_member *member, size_t bytes, void **memory);

/**
 * t3_free - give memory of t3_alloc() back
 * @member: whose
 * @memory: as t3_alloc() gave it
 *
 * Errors: EINVAL @memory is none of the member's; EBUSY a region lies in it.
 */
int t3_free(struct t3_member *member, void *memory);

/* struct t3_matrix.layout */
#define T3_ROW_MAJOR	0
#define T3_COL_MAJOR	1

/**
 * struct t3_matrix - a matrix in memory
 * @base: first element, aligned to the element
 * @rows: rows, 1 .. 2^31 - 1
 * @cols: columns, 1 .. 2^31 - 1
 * @ld: elements from one row (T3_COL_MAJOR: column) to the next, >= @cols
 *	(@rows)
 * @dtype: T3_DTYPE_*
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR
 * @flags: T3_REGION_READ_ONLY or 0
 */
struct t3_matrix {
	void *base;
	uint64_t rows;
	uint64_t cols;
	uint64_t ld;
	uint32_t dtype;
	uint32_t layout;
	uint32_t flags;
};

/**
 * t3_region_add - register a buffer
 * @member: whose
 * @matrix: the buffer
 * @region: out
 *
 * Errors: EINVAL dtype, layout or flags; ERANGE zero, wrapping or too large;
 * EDOM alignment; EFAULT not mapped, or not writable; EMEDIUMTYPE memory of a
 * kind that the engine does not take (the sentence says which it takes);
 * EDQUOT over RLIMIT_MEMLOCK (the sentence says needed and limit); ENOSPC too
 * many regions.
 */
int t3_region_add(struct t3_member *member, const struct t3_matrix *matrix,
		  struct t3_region **region);

/**
 * t3_region_add_dmabuf - register a buffer that is a dma-buf
 * @member: whose
 * @matrix: the buffer; its base is not an address but the first element's
 *	offset in the dma-buf
 * @fd: the dma-buf; it stays the caller's, who may close it at once
 * @region: out
 *
 * Whoever made it (a GPU's driver) may move it meanwhile. Transfers wait for
 * the fences that others have put on it, and put theirs on it.
 *
 * Errors: EOPNOTSUPP the engine takes no dma-bufs, of the kernel engine: its
 * module; EBADF @fd is not open, or not a dma-buf; EFAULT it is for reading
 * only; EMEDIUMTYPE the processor can't map it, or it is in I/O memory;
 * EREMOTEIO its exporter's refusal; EINVAL, ERANGE, EDOM, ENOSPC as of
 * t3_region_add(), ERANGE past its end too.
 */
int t3_region_add_dmabuf(struct t3_member *member,
			 const struct t3_matrix *matrix, int fd,
			 struct t3_region **region);

/**
 * t3_region_add_prime - register a GPU's buffer
 * @member: whose
 * @matrix: as of t3_region_add_dmabuf()
 * @drm_fd: the GPU's DRM node
 * @handle: the buffer's GEM handle there
 * @region: out
 *
 * Uses libdrm, which is loaded when this is called first.
 *
 * Errors: ELIBACC there is no libdrm here; those of its drmPrimeHandleToFD()
 * (ENOENT no such handle, EBADF and ENOTTY @drm_fd is no DRM node); those of
 * t3_region_add_dmabuf().
 */
int t3_region_add_prime(struct t3_member *member,
			const struct t3_matrix *matrix, int drm_fd,
			uint32_t handle, struct t3_region **region);

/**
 * t3_region_del - unregister
 * @region: NULL does nothing
 *
 * Errors: EBUSY a plan uses it.
 */
int t3_region_del(struct t3_region *region);

/* Collectives. */
enum t3_collective_op {
	T3_REDUCE_SCATTER = 1,	/* shard r of the sum ends at rank r, in place */
	T3_ALL_GATHER,		/* shard r comes from rank r, in place */
	T3_ALL_REDUCE,		/* the sum ends at all ranks, in place */
	T3_ALL_TO_ALL,		/* shard q of rank r's region goes to shard r
				 * of rank q's second region
				 */
};

enum t3_algorithm {
	T3_ALG_AUTO,
	T3_ALG_RING,
	T3_ALG_DIRECT,
	T3_ALG_RING_DIRECT,	/* all-reduce: ring, then direct */
	T3_ALG_DIRECT_RING,	/* all-reduce: direct, then ring */
};

/**
 * struct t3_collective - what a plan does
 * @size: sizeof(struct t3_collective)
 * @op: enum t3_collective_op
 * @algorithm: enum t3_algorithm
 * @block_bytes: largest block, 1 element .. T3_MAX_BLOCK_BYTES; 0: the planner
 *	chooses
 * @tiles: tiles that make one block's production, 1 .. T3_MAX_TILES; 0: one
 * @flags: T3_PLAN_SILENT_PRODUCERS or 0
 * @region: the buffer; the same rows, columns, dtype and layout at all ranks
 * @second: all-to-all: where shards arrive, another matrix of that form; else
 *	NULL
 *
 * Shard s of a matrix of M rows is rows s*M/ranks (rounded down) up to
 * (s+1)*M/ranks: sizes differ by one at most, and with M < ranks some are
 * empty. All-to-all takes only an M that the ranks divide.
 */
struct t3_collective {
	uint32_t size;
	uint32_t op;
	uint32_t algorithm;
	uint32_t block_bytes;
	uint32_t tiles;
	uint32_t flags;
	struct t3_region *region;
	struct t3_region *second;
};

/**
 * t3_plan_add - make a plan, together with all other ranks
 * @member: whose part
 * @collective: what it does; all but the buffers the same at all ranks
 * @plan: out
 *
 * All ranks make and delete their plans in the same order. Returns when the
 * plan is live, or refused, at all; waits for the others setup_ms at most.
 *
 * Errors: EINVAL op, algorithm or flags, an algorithm that the op has not, a
 * region of another member, a second region that is not wanted or has another
 * form; ERANGE block_bytes or tiles; EDOM all-to-all with rows that the ranks
 * don't divide; EROFS a read-only region that the plan writes; ELOOP all-to-all
 * in place; EADDRINUSE its two regions share bytes; ENOSPC T3_MAX_PLANS plans
 * already; E2BIG too many blocks for the ABI; EBADMSG the ranks disagree; ETIME
 * not all ranks came; EPIPE one left, or gave up before this one came.
 */
int t3_plan_add(struct t3_member *member, const struct t3_collective *collective,
		struct t3_plan **plan);

/**
 * t3_plan_del - delete this rank's part
 * @plan: NULL does nothing
 *
 * Errors: EBUSY an epoch is armed here and has not retired.
 */
int t3_plan_del(struct t3_plan *plan);

/**
 * struct t3_rectangle - a part of the matrix, in elements, whatever the layout
 * @row: first row
 * @col: first column
 * @rows: number of rows
 * @cols: number of columns
 */
struct t3_rectangle {
	uint64_t row;
	uint64_t col;
	uint64_t rows;
	uint64_t cols;
};

/**
 * struct t3_plan_info - what the planner chose
 * @size: sizeof(struct t3_plan_info)
 * @engine: enum t3_engine
 * @algorithm: enum t3_algorithm, never AUTO
 * @steps: pieces in which this rank produces
 * @blocks: blocks of this rank
 * @triggers: triggers of this rank
 * @overlap: 1; 0 where the planner chose not to overlap
 * @moved_bytes: bytes that this rank's triggers read from other ranks in an
 *	epoch
 */
struct t3_plan_info {
	uint32_t size;
	uint32_t engine;
	uint32_t algorithm;
	uint32_t steps;
	uint32_t blocks;
	uint32_t triggers;
	uint32_t overlap;
	uint64_t moved_bytes;
};

/**
 * t3_plan_info - what the planner chose for a plan
 * @plan: the plan
 * @info: in: @info->size; out: all of it
 */
int t3_plan_info(const struct t3_plan *plan, struct t3_plan_info *info);

/**
 * t3_plan_step - a piece of the output, in the order that suits the plan
 * @plan: the plan
 * @step: 0, 1, 2 ...
 * @rect: out: what to compute
 *
 * Return: 0; -ERANGE past the last step (no sentence: it ends loops).
 */
int t3_plan_step(const struct t3_plan *plan, uint32_t step,
		 struct t3_rectangle *rect);

/**
 * t3_plan_shard - which part of the matrix a rank owns
 * @plan: the plan
 * @rank: 0 .. ranks - 1
 * @rect: out; rows is 0 where the shard is empty
 */
int t3_plan_shard(const struct t3_plan *plan, uint32_t rank,
		  struct t3_rectangle *rect);

/**
 * t3_arm - hand the plan's buffers to the machine for one more epoch
 * @plan: the plan
 *
 * Promises that the caller's own reads of the last epoch are over. Nothing of
 * the epoch may be produced before it has returned.
 *
 * Errors: EBUSY the last epoch has not retired, or another armed plan of this
 * member writes the same bytes; EPROTO early or excess tiles; EPIPE a rank
 * that is needed has left (the sentence names it); ESTALE; those of a group
 * that broke.
 * Return: 0.
 */
int t3_arm(struct t3_plan *plan);

/**
 * t3_produced - a step of the output is written
 * @plan: the plan
 * @step: the step, each once an epoch
 *
 * Reports all tiles of the step's blocks, and carries out what became ready
 * as far as the engine's limits go.
 *
 * Errors: ERANGE @step; EPROTO no epoch is armed, or the step was reported
 * before; those of a group that broke.
 */
int t3_produced(struct t3_plan *plan, uint32_t step);

/*
 * t3_produced() of all steps. Where one was reported before, those ahead of it
 * in the plan's order are reported all the same.
 */
int t3_produced_all(struct t3_plan *plan);

/**
 * t3_tile_done - a fine-grained producer's tiles are written
 * @plan: the plan
 * @block: 0 .. blocks - 1 of this rank
 * @tiles: how many, 1 .. T3_MAX_TILES
 *
 * Errors: ERANGE; EINVAL the block is not produced by tiles; EPROTO no epoch
 * is armed, or more tiles than the block takes; those of a group that broke.
 */
int t3_tile_done(struct t3_plan *plan, uint32_t block, uint32_t tiles);

/**
 * t3_block_of - which block holds an element of the output
 * @plan: the plan
 * @row: row of the matrix
 * @col: column of the matrix
 *
 * Return: the block; -ERANGE.
 */
int64_t t3_block_of(const struct t3_plan *plan, uint64_t row, uint64_t col);

/**
 * t3_wait - until the armed epoch has retired here
 * @plan: the plan
 * @timeout_ms: 0 only looks; at most T3_TIMEOUT_MAX
 *
 * Retired means: every result of this rank is final and nobody reads its
 * buffers any more. Carries out triggers meanwhile.
 *
 * Errors: ERANGE @timeout_ms; EPROTO no epoch was armed; ETIME not in
 * @timeout_ms (waiting again is right; the sentence says what lacks); those of
 * a group that broke.
 */
int t3_wait(struct t3_plan *plan, uint32_t timeout_ms);

/**
 * t3_wait_block - until one of this rank's blocks is final, before the whole
 * @plan: the plan
 * @block: 0 .. blocks - 1
 * @timeout_ms: as for t3_wait()
 *
 * The block may then be read, and not written, until the next t3_arm().
 */
int t3_wait_block(struct t3_plan *plan, uint32_t block, uint32_t timeout_ms);

/*
 * Streams: epochs that are queued on a GPU's stream (a cudaStream_t or
 * hipStream_t), behind the GEMMs that are queued there. These calls return at
 * once and can be called for many epochs ahead; only the gpu engine has them.
 *
 *	t3_arm_stream(plan, stream);
 *	for (i = 0; t3_plan_step(plan, i, &rect) == 0; i++) {
 *		GEMM into rect, queued on stream;
 *		t3_produced_stream(plan, i, stream);
 *	}
 *	t3_wait_stream(plan, stream);
 *
 * What is queued on the stream afterwards finds the epoch's results. Where the
 * group breaks, the stream goes on all the same, with wrong results: the next
 * call of the plan, or t3_wait(), says so. Memory is t3_alloc()'s, and
 * that is the GPU's own: the one that is current when the member joins.
 *
 * A stream that is being recorded into a graph records an epoch without a
 * number: each replay is one more. All ranks replay alike, with no other epochs
 * of the plan between, and t3_wait() waits for what was replayed.
 *
 * Errors that all give: EOPNOTSUPP the engine has no streams.
 */

/**
 * t3_arm_stream - t3_arm(), in a stream's order
 * @plan: the plan
 * @stream: where the epoch is; NULL is the default stream
 *
 * Errors: those of t3_arm(); EBUSY t3_wait_stream() of the last epoch was not
 * called.
 */
int t3_arm_stream(struct t3_plan *plan, void *stream);

/**
 * t3_produced_stream - what is queued so far writes a step of the output
 * @plan: the plan
 * @step: see t3_produced()
 * @stream: the one that was armed
 *
 * Errors: those of t3_produced(); EINVAL another stream.
 */
int t3_produced_stream(struct t3_plan *plan, uint32_t step, void *stream);

/**
 * t3_produced_tiles_stream - a kernel that is queued counts its tiles itself
 * @plan: the plan
 * @stream: the one that was armed
 *
 * The kernel counts with t3_tile_done_device() of <t3_device.h> in the counters
 * of t3_plan_tiles(). It stands for t3_produced_stream() of all steps that were
 * not reported.
 *
 * Errors: those of t3_produced(); EINVAL another stream; EOPNOTSUPP a stream
 * that is being recorded, or a plan whose blocks have one tile.
 */
int t3_produced_tiles_stream(struct t3_plan *plan, void *stream);

/**
 * t3_plan_tiles - the tile counters of this rank's blocks
 * @plan: the plan
 * @counters: out: [blocks], memory of the GPU; they only grow
 */
int t3_plan_tiles(struct t3_plan *plan, uint32_t **counters);

/**
 * t3_wait_stream - let the stream wait until the armed epoch has retired here
 * @plan: the plan
 * @stream: the one that was armed
 *
 * Errors: EPROTO no epoch was armed, or not all steps were reported; EINVAL
 * another stream; those of a group that broke.
 */
int t3_wait_stream(struct t3_plan *plan, void *stream);

/* The epoch armed last: 1, 2, 3 ...; 0 before the first. */
uint32_t t3_epoch(const struct t3_plan *plan);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* T3_H */
