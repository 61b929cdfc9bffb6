/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What libt3's front (checking arguments, planning, messages) asks of an
 * engine, and the objects that both share.
 */
#ifndef T3_LIB_ENGINE_H
#define T3_LIB_ENGINE_H

#include <pthread.h>
#include <stdbool.h>

#include <t3.h>

#include "program.h"

struct t3_engine_ops;

/**
 * struct t3_memory - memory of t3_alloc()
 * @base: as the engine gave it
 * @bytes: as the user asked
 * @next: the member's next
 *
 * Made and freed by the front, under member->lock; constant but for @next.
 */
struct t3_memory {
	void *base;
	size_t bytes;
	struct t3_memory *next;
};

/**
 * struct t3_group - a handle of a group
 * @ops: the group's engine
 * @fd: the right to join
 * @ranks: how many
 * @options: with every default filled in
 *
 * Constant after it is made.
 */
struct t3_group {
	const struct t3_engine_ops *ops;
	int fd;
	uint32_t ranks;
	struct t3_options options;
};

/**
 * struct t3_member - a rank; the engine's own struct begins with it
 * @ops: the engine
 * @rank: which
 * @ranks: of how many
 * @options: the group's
 * @plan_lock: held by t3_plan_add() from end to end: one plan at a time;
 *	taken before @lock
 * @lock: guards @plan, @generation, @regions, @memory and the @users of
 *	regions; never held while an engine is called
 * @plan: the member's plans by slot
 * @generation: of the plan made last; the same at all ranks that make the same
 *	plans in the same order
 * @regions: the member's regions
 * @memory: what t3_alloc() gave and t3_free() has not taken back
 *
 * All but what @lock guards is constant after t3_join(). All of it is the
 * front's; an engine reads @plan, @regions and @memory in @leave only.
 */
struct t3_member {
	const struct t3_engine_ops *ops;
	uint32_t rank;
	uint32_t ranks;
	struct t3_options options;
	pthread_mutex_t plan_lock;
	pthread_mutex_t lock;
	struct t3_plan *plan[T3_MAX_PLANS];
	uint64_t generation;
	struct t3_region *regions;
	struct t3_memory *memory;
};

/**
 * struct t3_region - a registered buffer; the engine's own struct begins with it
 * @member: whose
 * @matrix: as the user gave it; in a dma-buf its base is an offset
 * @dmabuf: it is in a dma-buf
 * @fd: the dma-buf in the engine's region_add, else -1: it is the user's
 * @rows: rows in memory: the matrix's columns where it is column-major
 * @row_bytes: bytes of such a row's elements
 * @row_stride: bytes from one to the next
 * @users: plans that use it, under member->lock
 * @next: the member's next, under member->lock
 *
 * All but @users and @next is constant.
 */
struct t3_region {
	struct t3_member *member;
	struct t3_matrix matrix;
	bool dmabuf;
	int fd;
	uint32_t rows;
	uint64_t row_bytes;
	uint64_t row_stride;
	uint32_t users;
	struct t3_region *next;
};

/**
 * struct t3_planned - what the planner made for one rank
 * @program: the rank's part; its arrays are the planner's memory
 * @grid: program.grid, for the caller to fill in base, row_stride, read_only
 * @algorithm: the one chosen
 * @overlap: see struct t3_plan_info
 * @moved_bytes: see struct t3_plan_info
 * @steps: number of entries of @step
 * @step: blocks in the order in which the rank produces them
 * @updates: [program.blocks] K: updates of a block in an epoch
 * @cuts: the grids' cuts
 *
 * Constant after it is made.
 */
struct t3_planned {
	struct t3_program program;
	struct t3_grid *grid;
	uint32_t algorithm;
	uint32_t overlap;
	uint64_t moved_bytes;
	uint32_t steps;
	uint32_t *step;
	uint32_t *updates;
	uint32_t *cuts;
};

/**
 * struct t3_plan - one rank's part of a plan; the engine's own struct begins
 *	with it
 * @member: whose
 * @regions: the plan's regions, 1 or 2
 * @region: them
 * @collective: as the user gave it
 * @planned: what the planner made of it
 * @slot: the same at all ranks
 * @generation: likewise
 * @submitted: set by the engine's plan_add once the group has this part: its
 *	generation is used up, even where the plan is refused afterwards
 * @epoch: armed last; written by t3_arm() only
 * @armed: an epoch was armed; likewise
 *
 * All but @epoch and @armed is constant after t3_plan_add().
 */
struct t3_plan {
	struct t3_member *member;
	uint32_t regions;
	struct t3_region *region[2];
	struct t3_collective collective;
	struct t3_planned planned;
	uint32_t slot;
	uint64_t generation;
	bool submitted;
	uint32_t epoch;
	bool armed;
};

/**
 * struct t3_engine_ops - an engine
 * @id: enum t3_engine
 * @name: as in T3_ENGINE
 * @member_bytes: size of the engine's own struct that begins with t3_member
 * @region_bytes: likewise
 * @plan_bytes: likewise
 * @dmabufs: it takes regions in dma-bufs
 * @probe: is it there? 0, or -ENODEV and a sentence in @why
 * @group_create: set group->fd; the front has filled in the rest
 * @group_is: is @fd a group of this engine? 0 and *@ranks; -ENOTTY no;
 *	-EPROTO of a version that this library can't speak
 * @join: become member->rank of the group behind @fd (the caller's)
 * @leave: leave and free all that the engine has, memory too. Plans and
 *	regions were deleted before, but where @armed: an epoch is armed: break
 *	the group as dying would, then free what member->plan[] and
 *	member->regions still have of the engine's. The structs themselves are
 *	the front's to free, always
 * @abort: break the group with ECANCELED
 * @alloc: see t3_alloc(); @bytes was checked
 * @free: see t3_free(); @memory was checked, no region lies in it
 * @region_add: the front has checked the geometry and filled in the region
 * @region_del: no plan uses it
 * @plan_add: submit plan->planned.program and wait for the joint verdict,
 *	options.setup_ms at most; a slot that others have not yet given up is
 *	waited for too. On a refused plan the engine has cleaned up and
 *	*@verdict, all zero at the call, says why (t3_fail_verdict())
 * @plan_del: see t3_plan_del()
 * @arm: see t3_arm(); sets plan->epoch
 * @tiles: report tiles of @n blocks in order, and carry out what became ready
 * @wait: until plan->epoch has retired here, @timeout_ms at most
 * @wait_block: until @block's count reaches (cyclic) @updates: epoch * K
 * @uring_why: see t3_uring_why(); NULL: the engine makes no calls that could
 *	go through io_uring
 * @arm_stream: see t3_arm_stream(). This and what follows is NULL where the
 *	engine has no streams
 * @wait_stream: see t3_wait_stream()
 * @produced_tiles: see t3_produced_tiles_stream()
 * @stream_of: the stream on which the plan was armed last
 * @tiles_of: see t3_plan_tiles()
 *
 * Constant. Each returns 0 or a negative errno of t3.h and, on failure, has
 * called t3_fail() with the sentence. Concurrency is as t3.h promises it to
 * the user, so arm and the deletions of one object never run beside others.
 */
struct t3_engine_ops {
	uint32_t id;
	const char *name;
	size_t member_bytes;
	size_t region_bytes;
	size_t plan_bytes;
	bool dmabufs;
	int (*probe)(char *why, size_t bytes);
	int (*group_create)(struct t3_group *group);
	int (*group_is)(int fd, uint32_t *ranks);
	int (*join)(struct t3_member *member, int fd);
	int (*leave)(struct t3_member *member, bool armed);
	int (*abort)(struct t3_member *member);
	int (*alloc)(struct t3_member *member, size_t bytes, void **memory);
	int (*free)(struct t3_member *member, void *memory);
	int (*region_add)(struct t3_region *region);
	void (*region_del)(struct t3_region *region);
	int (*plan_add)(struct t3_plan *plan, struct t3_verdict *verdict);
	int (*plan_del)(struct t3_plan *plan);
	int (*arm)(struct t3_plan *plan);
	int (*tiles)(struct t3_plan *plan, const struct t3_tiles *tiles,
		     uint32_t n);
	int (*wait)(struct t3_plan *plan, uint32_t timeout_ms);
	int (*wait_block)(struct t3_plan *plan, uint32_t block,
			  uint32_t updates, uint32_t timeout_ms);
	int (*uring_why)(const struct t3_member *member, char *why,
			 size_t bytes);
	int (*arm_stream)(struct t3_plan *plan, void *stream);
	int (*wait_stream)(struct t3_plan *plan, void *stream);
	int (*produced_tiles)(struct t3_plan *plan);
	void *(*stream_of)(struct t3_plan *plan);
	uint32_t *(*tiles_of)(struct t3_plan *plan);
};

extern const struct t3_engine_ops t3_soft_engine;
extern const struct t3_engine_ops t3_kernel_engine;
extern const struct t3_engine_ops t3_gpu_engine;

/**
 * t3_fail - keep the sentence for t3_error() and hand the errno through
 * @error: a positive errno
 * @format: the sentence: names the argument, its value and what was allowed
 *
 * Context: any thread; async-signal-unsafe.
 * Return: -@error.
 */
int t3_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Bytes that were asked of t3_alloc() for @base; 0 where it is not from it. */
size_t t3_memory_bytes(struct t3_member *member, const void *base);

/**
 * t3_fail_verdict - the sentence for a plan that was refused
 * @call: the function's name
 * @verdict: why
 *
 * Return: -@verdict->error.
 */
int t3_fail_verdict(const char *call, const struct t3_verdict *verdict);

/**
 * t3_fail_broken - the sentence for a group that broke
 * @call: the function's name
 * @error: the errno with which it broke
 * @rank: the rank that is the cause, or T3_NONE
 *
 * Return: -@error.
 */
int t3_fail_broken(const char *call, uint32_t error, uint32_t rank);

/**
 * t3_deadline - a point in time for bounded waits
 * @timeout_ms: from now
 *
 * Return: CLOCK_MONOTONIC nanoseconds.
 */
uint64_t t3_deadline(uint32_t timeout_ms);

/* CLOCK_MONOTONIC now, in nanoseconds. */
uint64_t t3_now(void);

/* Nanoseconds until a deadline; 0 where it has passed. */
uint64_t t3_time_left(uint64_t deadline);

/* The same in milliseconds, rounded up, for poll(). */
int t3_time_left_ms(uint64_t deadline);

/* Sleep, but not past a deadline; a signal may cut it short. */
void t3_sleep(uint64_t ns, uint64_t deadline);

#endif /* T3_LIB_ENGINE_H */
