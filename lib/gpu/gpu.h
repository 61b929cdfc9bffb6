/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The gpu engine: ranks meet, agree and die as in the soft engine; triggers are
 * operations that wait on streams. Documentation/gpu-engine.rst tells how it
 * works.
 */
#ifndef T3_GPU_GPU_H
#define T3_GPU_GPU_H

#include "../soft/soft.h"
#include "backend.h"
#include "runtime.h"

#define GPU_CANARY	65536		/* bytes of the pairs' test */
#define GPU_RELEASE	0x40000000U	/* added to an epoch: past all that waits */

/**
 * struct gpu_block - memory that t3_alloc() gave
 * @next: list of the member's
 * @serial: tells it from what lay at its address before
 * @memory: the plug-in's
 *
 * Under gpu_member.memory_lock.
 */
struct gpu_block {
	struct gpu_block *next;
	u64 serial;
	struct t3_gpu_memory memory;
};

/**
 * struct gpu_import - a peer's memory, mapped here
 * @next: list of the member's
 * @rank: whose
 * @serial: of its block
 * @users: plans
 * @memory: the plug-in's
 *
 * Under gpu_member.memory_lock.
 */
struct gpu_import {
	struct gpu_import *next;
	u32 rank;
	u64 serial;
	u32 users;
	struct t3_gpu_memory memory;
};

/**
 * struct gpu_stream - a stream of the member's pool
 * @next: list
 * @stream: the plug-in's
 * @taken: a plan has it
 *
 * Under gpu_member.memory_lock; the stream itself is used under
 * gpu_member.submit.
 */
struct gpu_stream {
	struct gpu_stream *next;
	void *stream;
	bool taken;
};

/**
 * struct gpu_member - a rank of the gpu engine
 * @s: the soft engine's
 * @device: its GPU
 * @memory_lock: guards the lists and @serial
 * @blocks: what t3_alloc() gave
 * @imports: peers' memory
 * @streams: the pool
 * @serial: of the next block
 * @canary: memory with a pattern of this rank's, for peers to read
 * @tested: bit r is set: rank r's canary was read, and was right
 * @door: the socket where peers ask for memory
 * @porter: answers there
 * @porting: @porter runs
 * @submit: held while anything is queued; taken before @memory_lock
 * @busy: something was queued since the streams were seen idle; with @submit
 * @stuck: draining failed: memory is kept for good
 */
struct gpu_member {
	struct soft_member s;
	struct t3_gpu_device *device;
	pthread_mutex_t memory_lock;
	struct gpu_block *blocks;
	struct gpu_import *imports;
	struct gpu_stream *streams;
	u64 serial;
	void *canary;
	u64 tested;
	int door;
	pthread_t porter;
	bool porting;
	pthread_mutex_t submit;
	bool busy;
	bool stuck;
};

/**
 * struct gpu_plan - a plan of the gpu engine
 * @s: the soft engine's
 * @list: all ranks' operations
 * @submitter: where we stand
 * @streams: how many, the user's not counted
 * @stream: [streams + 1] of the list's; 0 is set when armed
 * @own: the stream that stands for the user's where he names none
 * @counter: the stream that waits for tiles
 * @base: [rank][region] where memory is, as this GPU sees it
 * @import: [rank][region] or NULL
 * @word: [rank] its words, as this GPU sees them
 * @share: our soft_share, likewise
 * @own_word: our own words, as this process sees them
 * @pinned: [rank] soft_share that was pinned
 * @writer: [own words] which process writes it
 * @event: [own words] marks of what this process writes, for graphs
 * @tail: marks the end of what was queued on the user's stream
 * @fork: marks the user's stream, for graphs
 * @join: [streams + 1] likewise
 * @have: [own blocks] tiles of this epoch
 * @made: [own blocks] produced in this epoch
 * @tiles: [own blocks] counters of GPU kernels; GPU memory
 * @submitted: epoch submitted last
 * @waited: epoch whose end was submitted last
 * @retired: epoch seen retired last, the group not broken
 * @captured: this epoch is recorded into a graph
 * @replays: a graph of the plan exists
 *
 * What changes is under gpu_member.submit.
 */
struct gpu_plan {
	struct soft_plan s;
	struct t3_gpu_list list;
	struct t3_gpu_submitter submitter;
	u32 streams;
	void *stream[T3_GPU_STREAMS];
	void *own;
	void *counter;
	char *base[T3_MAX_RANKS][T3_MAX_PLAN_REGIONS];
	struct gpu_import *import[T3_MAX_RANKS][T3_MAX_PLAN_REGIONS];
	u32 *word[T3_MAX_RANKS];
	struct soft_share *share;
	u32 *own_word;
	void *pinned[T3_MAX_RANKS];
	u16 *writer;
	void **event;
	void *tail;
	void *fork;
	void *join[T3_GPU_STREAMS];
	u32 *have;
	u8 *made;
	u32 *tiles;
	u32 submitted;
	u32 waited;
	u32 retired;
	bool captured;
	bool replays;
};

static inline struct gpu_member *gpu_member(struct t3_member *member)
{
	return (struct gpu_member *)member;
}

static inline struct gpu_plan *gpu_plan(struct t3_plan *plan)
{
	return (struct gpu_plan *)plan;
}

/* plugin.c: the plug-in; NULL before gpu_probe() has succeeded. */
extern const struct t3_gpu_runtime *gpu;

int gpu_probe(char *why, size_t bytes);
/* The plug-in's last failure as ours. Return: -@error. */
int gpu_fail(const char *call, int error);

/* memory.c */
int gpu_alloc(struct t3_member *member, size_t bytes, void **memory);
int gpu_free(struct t3_member *member, void *memory);
int gpu_region_add(struct t3_region *region);
/**
 * gpu_memory_find - which block holds some bytes
 * @block: out: a copy
 *
 * Return: bytes from its beginning; -EFAULT none does.
 */
s64 gpu_memory_find(struct gpu_member *m, u64 base, u64 bytes,
		    struct gpu_block *block);
/**
 * gpu_import_get - a peer's memory, mapped here
 * @rank: whose
 * @base: where it has it
 * @bytes: how many
 * @import: out; NULL where it is this process's
 * @at: out: where it is here
 *
 * Return: 0 or a negative errno, with a sentence.
 */
int gpu_import_get(struct gpu_member *m, u32 rank, u64 base, u64 bytes,
		   struct gpu_import **import, char **at);
void gpu_import_put(struct gpu_member *m, struct gpu_import *import);
/* Read a peer's canary, once. Return: 0; -EIO it is wrong. */
int gpu_pair_test(struct gpu_member *m, u32 rank);
int gpu_canary_make(struct gpu_member *m);
void *gpu_stream_take(struct gpu_member *m);
void gpu_stream_give(struct gpu_member *m, void *stream);
void gpu_memory_end(struct gpu_member *m);

/* door.c: memory is handed to who holds the group */
int gpu_door_open(struct gpu_member *m);
void gpu_door_close(struct gpu_member *m);
/**
 * gpu_door_ask - the block that holds some of a peer's bytes
 * @base: where the peer has it; 0: its canary
 * @block: out; its memory.fd is the caller's
 *
 * Return: bytes from the block's beginning; a negative errno, no sentence.
 */
s64 gpu_door_ask(struct gpu_member *m, u32 rank, u64 base, u64 bytes,
		 struct gpu_block *block);

/* member.c */
int gpu_join(struct t3_member *member, int fd);
int gpu_leave(struct t3_member *member, bool armed);
/* Has all that was queued run? */
bool gpu_is_idle(struct gpu_member *m);

/* plan.c */
u64 gpu_room(const struct t3_program *program, u32 ranks);
int gpu_make(struct soft_plan *plan, const struct soft_copy *copy,
	     struct t3_verdict *verdict);
void gpu_release(struct soft_plan *plan);
void gpu_broken(struct soft_plan *plan);

/* run.c */
int gpu_arm(struct t3_plan *plan);
int gpu_arm_stream(struct t3_plan *plan, void *stream);
int gpu_tiles(struct t3_plan *plan, const struct t3_tiles *tiles, uint32_t n);
int gpu_produced_tiles(struct t3_plan *plan);
void *gpu_stream_of(struct t3_plan *plan);
uint32_t *gpu_tiles_of(struct t3_plan *plan);
int gpu_wait(struct t3_plan *plan, uint32_t timeout_ms);
int gpu_wait_block(struct t3_plan *plan, uint32_t block, uint32_t updates,
		   uint32_t timeout_ms);
int gpu_wait_stream(struct t3_plan *plan, void *stream);
int gpu_plan_del(struct t3_plan *plan);

#endif /* T3_GPU_GPU_H */
