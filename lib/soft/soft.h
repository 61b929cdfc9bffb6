/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The soft engine: ranks are threads or processes that share one memfd; no
 * module, no privilege. Documentation/soft-engine.rst tells how it works.
 *
 * Whoever holds the group's descriptor can write all of the shared file. So
 * what lies there is either copied to private memory and checked before use,
 * or is a counter or index that is checked at every use.
 */
#ifndef T3_LIB_SOFT_H
#define T3_LIB_SOFT_H

#include <pthread.h>
#include <sys/types.h>

#include "../engine.h"
#include "graph.h"
#include "machine.h"
#include "ready.h"
#include "walk.h"

#define SOFT_MAGIC	0x31746f5333740a1aULL
#define SOFT_MAGIC_GPU	0x3175704733740a1aULL	/* the gpu engine's groups */
#define SOFT_VERSION	2
#define SOFT_PAGE	4096
#define SOFT_GRAIN	65536	/* of mappings: no page is larger */
#define SOFT_HUGE	(2ULL << 20)
#define SOFT_LINE	__attribute__((aligned(64)))
#define SOFT_SPIN_NS	20000		/* to begin with */
#define SOFT_CPU_WORDS	16		/* a cpu_set_t */

/* soft_slot.state */
enum soft_state {
	SOFT_FREE,
	SOFT_JOINING,
	SOFT_JOINED,
	SOFT_LEFT,
};

/* The low byte of soft_part.word; the generation is above it. */
enum soft_part_state {
	SOFT_NO_PART,
	SOFT_PUBLISHED,		/* the program can be read */
	SOFT_ATTACHED,		/* all programs were read and fit */
	SOFT_REFUSED,		/* they don't: soft_part.verdict */
	SOFT_GIVEN_UP,		/* before the joint verdict, or after a no */
	SOFT_DELETED,		/* after the plan was live */
};

/**
 * struct soft_part - one rank's part of the plan in one slot
 * @word: generation and enum soft_part_state, stored with release by the rank
 *	itself when the rest is written, loaded with acquire by the others
 * @blob_at: offset of the program in the file
 * @blob_bytes: its length
 * @state_at: offset of the rank's share of the machine: queue, tiles, counts
 * @state_bytes: its length
 * @machine_at: rank 0: offset of the rest of the machine's state
 * @verdict: why it is refused
 *
 * Written by the rank alone; others copy it and believe nothing.
 */
struct soft_part {
	u64 word;
	u64 blob_at;
	u64 blob_bytes;
	u64 state_at;
	u64 state_bytes;
	u64 machine_at;
	struct t3_verdict verdict;
};

/**
 * struct soft_slot - a rank in the shared file
 * @state: enum soft_state: FREE to JOINING by compare-and-swap of whoever
 *	becomes the rank, then by the rank alone, with release
 * @word: a robust futex of the member's watcher: its thread number; the kernel
 *	sets FUTEX_OWNER_DIED in it when that thread ends, however it ends
 * @pid: the member's process
 * @start: when that began, /proc/PID/stat's 22nd field
 * @pidns: inode of the PID namespace in which @pid is meant
 * @cpus: bit c is set: the rank may run on processor c; a hint
 * @door: gpu engine: where it hands out its memory, and the right to ask
 * @inflight: threads of this rank that run triggers (see machine.h)
 * @bell: futex: what a sleeper of this rank waits for
 * @waiters: threads that sleep at @bell, or are about to, until anything
 *	happens. A sleeper adds, then looks; whoever makes something happen
 *	looks here after that, with a full fence on either side: see
 *	soft_ring() and soft_sleep()
 * @idlers: likewise workers, until there is something to run
 * @part: the plans by slot
 */
struct soft_slot {
	u32 state;
	u32 word;
	u32 pid;
	u32 pad;
	u64 start;
	u64 pidns;
	u64 cpus[SOFT_CPU_WORDS];
	u64 door[2];
	u32 inflight SOFT_LINE;
	u32 bell SOFT_LINE;
	u32 waiters;
	u32 idlers;
	struct soft_part part[T3_MAX_PLANS] __attribute__((aligned(SOFT_PAGE)));
};

/**
 * struct soft_head - the beginning of the shared file
 * @magic: SOFT_MAGIC or SOFT_MAGIC_GPU
 * @version: SOFT_VERSION
 * @ranks: how many
 * @arena_first: offset of rank 0's arena
 * @arena_bytes: length of each rank's arena
 * @broken: 0, or struct soft_cause packed; set once, by compare-and-swap
 * @slot: [ranks]
 *
 * All before @broken is written by whoever makes the group, before anybody
 * else has the descriptor, and read once.
 */
struct soft_head {
	u64 magic;
	u32 version;
	u32 ranks;
	u64 arena_first;
	u64 arena_bytes;
	u64 broken SOFT_LINE;
	struct soft_slot slot[] __attribute__((aligned(SOFT_PAGE)));
};

/* soft_cause.why */
enum soft_why {
	SOFT_WHY_ABORT = 1,
	SOFT_WHY_DIED,		/* the rank died with an epoch armed */
	SOFT_WHY_LEFT,		/* it left with an epoch armed */
	SOFT_WHY_MISSED,	/* it is gone, and never armed what others did */
	SOFT_WHY_UNARMED,	/* watchdog: it has not armed */
	SOFT_WHY_BLOCK,		/* watchdog: its block lacks updates */
	SOFT_WHY_STUCK,		/* watchdog: nothing to blame */
	SOFT_WHY_STALE,		/* its memory can't be read any more */
	SOFT_WHY_CORRUPT,	/* shared memory was written by a stranger */
	SOFT_WHY_GPU,		/* the GPU failed */
};

/* Why a group broke; @block is T3_NONE or below 2^24. */
struct soft_cause {
	u32 error;
	u32 why;
	u32 rank;
	u32 slot;
	u32 block;
};

/**
 * struct soft_map - a range of the file, mapped in this process
 * @next: list
 * @at: offset
 * @bytes: length
 * @memory: where
 * @write: writable
 * @refs: users
 *
 * Under soft_lock.
 */
struct soft_map {
	struct soft_map *next;
	u64 at;
	u64 bytes;
	u8 *memory;
	bool write;
	u32 refs;
};

struct soft_member;
struct soft_plan;
struct soft_copy;

/**
 * struct soft_hooks - an engine that uses this one to meet, agree and die, and
 *	carries out triggers by other means
 * @magic: of its groups
 * @room: bytes that a plan wants behind each rank's share, by its program
 * @make: all parts are there and fit: get ready to run. Return: 0; else a
 *	negative errno, with the sentence, and *@verdict filled in
 * @release: free what @make made, as far as it went; the plan is not looked
 *	at any more
 * @broken: the group broke: let nothing of ours wait any more. Again and again
 * @drain: the group broke: wait, not for ever, until nothing of ours runs
 * @tick: now and then, by the watcher. Return: true where it is to go on
 *	looking, whatever is armed
 *
 * Constant.
 */
struct soft_hooks {
	u64 magic;
	u64 (*room)(const struct t3_program *program, u32 ranks);
	int (*make)(struct soft_plan *plan, const struct soft_copy *copy,
		    struct t3_verdict *verdict);
	void (*release)(struct soft_plan *plan);
	void (*broken)(struct soft_plan *plan);
	void (*drain)(struct soft_member *m);
	bool (*tick)(struct soft_member *m);
};

/**
 * struct soft_domain - what the members of one group in one process share
 * @next: list of all
 * @dev: the file's device
 * @ino: and inode
 * @fd: our own descriptor
 * @ranks: private copy
 * @arena_first: private copy, checked
 * @arena_bytes: private copy, checked
 * @refs: members
 * @head: the shared head
 * @maps: other mappings
 * @member: those in this process by rank
 * @pidfd: [rank] of other processes, or -1
 * @pidfd_tried: bit r is set: there is no use in trying again
 *
 * All mapped memory is mapped once a process, so that its threads meet at the
 * same addresses. What changes is under soft_lock.
 */
struct soft_domain {
	struct soft_domain *next;
	dev_t dev;
	ino_t ino;
	int fd;
	u32 ranks;
	u64 arena_first;
	u64 arena_bytes;
	u32 refs;
	struct soft_head *head;
	struct soft_map *maps;
	struct soft_member *member[T3_MAX_RANKS];
	int pidfd[T3_MAX_RANKS];
	u64 pidfd_tried;
};

/* A piece of the member's arena; @memory is NULL where the plan owns it. */
struct soft_extent {
	struct soft_extent *next;
	u64 at;
	u64 bytes;
	u64 asked;
	u8 *memory;
};

/**
 * struct soft_region - a registered buffer
 * @r: the front's
 * @next: list of the member's
 * @bytes: from the first element to the last
 * @arena: it lies in memory of t3_alloc()
 * @at: then: offset in the file
 *
 * Constant, but for the list, which is under soft_lock.
 */
struct soft_region {
	struct t3_region r;
	struct soft_region *next;
	u64 bytes;
	bool arena;
	u64 at;
};

/* What a plan holds in its rank's arena until all ranks have deleted it. */
struct soft_remains {
	u64 generation;
	u64 at[3];
};

/**
 * struct soft_member - a rank of the soft engine
 * @m: the front's
 * @hooks: of the engine that uses this one; NULL: none
 * @domain: the group in this process
 * @slot: own slot in the shared file
 * @generation: soft_forks when it joined: another number is a forked child
 * @lock: guards @extents and @remains
 * @extents: pieces of the arena in use, ascending
 * @remains: [slot] of plans that this rank has deleted
 * @regions: under soft_lock
 * @live: bit s is set: @plan[s] may be run. Set and cleared by plan_add and
 *	plan_del; see soft_plan_get()
 * @plan: by slot; written before the bit is set
 * @users: [slot] threads that look at the plan without the user's promise that
 *	it stays; see soft_plan_get()
 * @running: threads of ours that run triggers: soft_slot.inflight, where no
 *	stranger writes
 * @drained: the group broke, and nobody runs triggers any more
 * @crowded: more ranks than processors: don't spin. A guess until all ranks
 *	have joined; any plan's making may set it
 * @spin: nanoseconds to spin before sleeping; a guess, anybody may change it
 * @dead_since: [rank] when it was first seen dead; 0 not yet
 * @check: guards what soft_check() keeps: @dead_since and the plans' watchdogs
 * @watcher: holds the robust list, looks for deaths, is the watchdog
 * @watching: futex: 1: the watcher holds the robust list
 * @watch_word: futex: wakes the watcher
 * @watch_idle: 1: the watcher sleeps until woken. It sets this, then looks for
 *	an armed epoch; whoever arms looks here after that, with a full fence
 *	on either side
 * @stop: tells all threads to end
 * @workers: number of @worker
 * @worker: threads that run triggers
 */
struct soft_member {
	struct t3_member m;
	const struct soft_hooks *hooks;
	struct soft_domain *domain;
	struct soft_slot *slot;
	u32 generation;
	pthread_mutex_t lock;
	struct soft_extent *extents;
	struct soft_remains remains[T3_MAX_PLANS];
	struct soft_region *regions;
	u64 live;
	struct soft_plan *plan[T3_MAX_PLANS];
	u32 users[T3_MAX_PLANS];
	u32 running;
	u32 drained;
	u32 crowded;
	u32 spin;
	u64 dead_since[T3_MAX_RANKS];
	pthread_mutex_t check;
	pthread_t watcher;
	u32 watching;
	u32 watch_word;
	u32 watch_idle;
	u32 stop;
	u32 workers;
	pthread_t *worker;
};

/**
 * struct soft_task - one of the rank's own triggers, ready to run
 * @op: T3_OP_*
 * @dtype: T3_DTYPE_*
 * @sources: how many
 * @first: its destination in soft_plan.operand; the sources follow
 * @rows: of each block
 * @remote: some sources are read by process_vm_readv()
 * @row_bytes: of each block
 */
struct soft_task {
	u16 op;
	u16 dtype;
	u32 sources;
	u32 first;
	u32 rows;
	u32 remote;
	u64 row_bytes;
};

/* soft_place.at: the region is not in the file */
#define SOFT_PRIVATE	(~0ULL)

/**
 * struct soft_place - where a grid's memory is
 * @at: offset of its first element in the file, or SOFT_PRIVATE
 * @base: its address in the owner's process
 * @bytes: from the first element to behind the last
 */
struct soft_place {
	u64 at;
	u64 base;
	u64 bytes;
};

/**
 * struct soft_copy - a rank's part, copied from the shared file and checked
 * @blob: the copy; NULL for our own part
 * @part: how it was published
 * @program: points into @blob
 * @grid: likewise, by way of @program
 * @place: [grids]
 *
 * Private.
 */
struct soft_copy {
	void *blob;
	struct soft_part part;
	struct t3_program program;
	struct t3_grid grid[T3_MAX_PLAN_REGIONS];
	struct soft_place place[T3_MAX_PLAN_REGIONS];
};

/**
 * struct soft_share - a rank's share of the machine, in its arena
 * @progress: counts everything that happens; for the watchdog
 * @armed: where there are hooks: the epoch armed last
 * @retired: likewise: retired last
 *
 * After it lie the ready queue, the tile counters, the update counters, and
 * what the hooks asked for.
 */
struct soft_share {
	u32 progress;
	u32 armed;
	u32 retired;
	u32 pad[13];
};

/**
 * struct soft_plan - a plan of the soft engine
 * @p: the front's
 * @graph: private
 * @graph_memory: what it lies in
 * @machine: our way to the shared state
 * @share: [rank] shared
 * @queue: [rank] shared
 * @queue_mask: [rank] private
 * @task: [own triggers]
 * @operand: destinations and sources; offset is an address
 * @reader: [as @operand] the process to read it from, 0: the address is ours
 * @map: ranges of the file to unmap
 * @maps: how many
 * @use: [own blocks] T3_USE_*; which of them an epoch writes
 * @conflicts: bit s is set: the plan in slot s writes some of the same bytes;
 *	atomic, see soft_conflicts_add()
 * @watch_sum: sum of all @share progress when it last changed
 * @watch_since: when that was
 * @watch_epoch: in which epoch
 *
 * All but the last four are constant once the plan is live. The watch_ members
 * are under soft_member.check.
 */
struct soft_plan {
	struct t3_plan p;
	struct t3_graph graph;
	void *graph_memory;
	struct t3_machine machine;
	struct soft_share *share[T3_MAX_RANKS];
	struct t3_ready *queue[T3_MAX_RANKS];
	u32 queue_mask[T3_MAX_RANKS];
	struct soft_task *task;
	struct t3_operand *operand;
	pid_t *reader;
	void **map;
	u32 maps;
	u8 *use;
	u64 conflicts;
	u32 watch_sum;
	u32 watch_epoch;
	u64 watch_since;
};

static inline struct soft_member *soft_member(struct t3_member *member)
{
	return (struct soft_member *)member;
}

static inline struct soft_region *soft_region(struct t3_region *region)
{
	return (struct soft_region *)region;
}

static inline struct soft_plan *soft_plan(struct t3_plan *plan)
{
	return (struct soft_plan *)plan;
}

static inline struct soft_slot *soft_slot_of(struct soft_member *m, u32 rank)
{
	return &m->domain->head->slot[rank];
}

static inline u64 *soft_broken(struct soft_member *m)
{
	return &m->domain->head->broken;
}

/* Has the group broken? */
static inline bool soft_is_broken(struct soft_member *m)
{
	return unlikely(t3_load_acquire(soft_broken(m)));
}

/* Members of a process don't live on in its forked children. */
extern u32 soft_forks;

static inline bool soft_is_foreign(const struct soft_member *m)
{
	return unlikely(m->generation != soft_forks);
}

int soft_foreign(void);

/* domain.c */
extern pthread_mutex_t soft_lock;

int soft_group_create(struct t3_group *group);
/* @magic: of which engine. */
int soft_group_is(int fd, u64 magic, uint32_t *ranks);
int soft_domain_get(int fd, struct soft_domain **domain);
void soft_domain_put(struct soft_domain *domain);

/**
 * soft_map - map a range of the file
 * @domain: the group
 * @at: offset, not aligned to anything
 * @bytes: length, not 0
 * @write: for writing too
 *
 * Return: address of the byte at @at; NULL with errno.
 */
void *soft_map(struct soft_domain *domain, u64 at, u64 bytes, bool write);
void soft_unmap(struct soft_domain *domain, const void *memory);

/* Does a range lie in a rank's arena? */
bool soft_in_arena(const struct soft_domain *domain, u32 rank, u64 at,
		   u64 bytes);

/* arena.c: the member's own arena */
int soft_alloc(struct t3_member *member, size_t bytes, void **memory);
int soft_free(struct t3_member *member, void *memory);
int soft_arena_take(struct soft_member *m, u64 bytes, u64 *at);
void soft_arena_give(struct soft_member *m, u64 at);
void soft_arena_end(struct soft_member *m);
bool soft_arena_find(struct soft_member *m, const void *base, u64 bytes,
		     u64 *at);

/* region.c */
void soft_region_enter(struct soft_region *region);
int soft_region_add(struct t3_region *region);
void soft_region_del(struct t3_region *region);
int soft_populate(u64 first, u64 bytes, bool write);
bool soft_region_local(struct soft_domain *domain, u32 rank, u64 base,
		       u64 bytes);

/* member.c */
int soft_join(struct t3_member *member, int fd);
int soft_leave(struct t3_member *member, bool armed);
int soft_thread(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* live.c: who lives */
int soft_watch_start(struct soft_member *m);
void soft_watch_stop(struct soft_member *m);
void soft_watch_wake(struct soft_member *m);
u64 soft_start_time(pid_t pid);
u64 soft_pid_namespace(void);
/* 0: lives, or has not come yet; else SOFT_WHY_LEFT or SOFT_WHY_DIED. */
u32 soft_gone(struct soft_member *m, u32 rank);
/* Is it sure that no thread of a dead rank runs any more? */
bool soft_surely_dead(struct soft_member *m, u32 rank);
/* Get hold of the processes of all ranks, as far as it goes. */
void soft_hold_peers(struct soft_member *m);
bool soft_same_pids(struct soft_member *m, u32 rank);

/* fault.c: how a group breaks */
void soft_break(struct soft_member *m, const struct soft_cause *cause);
int soft_abort(struct t3_member *member);
/* The group broke: spread it, wait for those in flight, make the sentence. */
int soft_fail_broken(struct soft_member *m);
/* The group broke: wait, not for ever, until nobody runs a trigger. */
void soft_drain(struct soft_member *m);
/* Deaths and the watchdog; called now and then by all who wait. */
void soft_check(struct soft_member *m);

/* part.c: programs in shared memory */
int soft_part_publish(struct soft_plan *plan);
int soft_part_fetch(struct soft_plan *plan, u32 rank, struct soft_copy *copy,
		    struct t3_verdict *verdict);
u64 soft_share_bytes(const struct t3_program *program);
/* With what the hooks want behind it. */
u64 soft_share_room(const struct soft_member *m,
		    const struct t3_program *program);

/* task.c */
int soft_tasks_make(struct soft_plan *plan, const struct soft_copy *copy,
		    struct t3_verdict *verdict);

/* plan.c */
int soft_plan_add(struct t3_plan *plan, struct t3_verdict *verdict);
int soft_plan_del(struct t3_plan *plan);
/* Find the ranks that an epoch needs and that can't take part any more. */
int soft_check_needed(struct soft_member *m, struct soft_plan *plan);
void soft_plan_release(struct soft_plan *plan, enum soft_part_state state);
/* For tests of the wrap: the epoch with which new plans begin. */
extern u32 soft_first_epoch;

static inline u64 soft_plan_word(const struct soft_plan *plan,
				 enum soft_part_state state)
{
	return plan->p.generation << 8 | state;
}

/* Slots of plans whose writable bytes overlap with those of @plan. */
void soft_conflicts_add(struct soft_member *m, struct soft_plan *plan);
void soft_conflicts_del(struct soft_member *m, struct soft_plan *plan);

/* The epoch that a rank armed last. */
static inline u32 soft_epoch(const struct soft_plan *plan, u32 rank)
{
	if (plan->machine.state)
		return t3_machine_armed(&plan->machine, rank);
	return t3_load_acquire(&plan->share[rank]->armed);
}

/* Is an epoch of @rank armed and not retired? */
static inline bool soft_armed(const struct soft_plan *plan, u32 rank)
{
	if (plan->machine.state)
		return t3_machine_is_armed(&plan->machine, rank);
	return t3_load_acquire(&plan->share[rank]->retired) !=
	       soft_epoch(plan, rank);
}

static inline void soft_progress(struct soft_plan *plan)
{
	u32 *p = &plan->share[plan->p.member->rank]->progress;

	/* Lost additions don't matter: it changes. */
	t3_store(p, t3_load(p) + 1);
}

/**
 * soft_plan_get - look at a plan that another thread may delete
 * @m: the member
 * @slot: the plan's
 *
 * Raises the slot's users, then looks at the live bit; soft_plan_retract()
 * clears the bit, then waits for the users to go. Both in sequentially
 * consistent order: one of the two sees the other.
 *
 * Return: the plan, then soft_plan_put(); NULL where there is none.
 */
static inline struct soft_plan *soft_plan_get(struct soft_member *m, u32 slot)
{
	t3_add32(&m->users[slot], 1);
	if (__atomic_load_n(&m->live, __ATOMIC_SEQ_CST) >> slot & 1)
		return m->plan[slot];
	t3_add32(&m->users[slot], (u32)-1);
	return NULL;
}

static inline void soft_plan_put(struct soft_member *m, u32 slot)
{
	t3_add32(&m->users[slot], (u32)-1);
}

void soft_plan_retract(struct soft_plan *plan);

/* crowd.c */

/* Write down where this thread may run. Return: on how many processors. */
u32 soft_cpus_publish(struct soft_slot *slot);
/* More ranks than processors that they may use? All have joined. */
bool soft_is_crowded(struct soft_member *m);

/* run.c */
extern const struct t3_machine_ops soft_machine_ops;

/* Run ready triggers of this rank. Return: how many ran. */
u32 soft_run(struct soft_member *m);
bool soft_any_ready(struct soft_member *m);
/* Wake the rank's waiters; and its workers, where there is something to run. */
void soft_ring(struct soft_slot *slot, bool work);
void *soft_worker(void *arg);

/* wait.c */
typedef bool (*soft_done_fn)(void *arg);

/**
 * soft_until - run triggers until something is so
 * @m: the member
 * @done: is it so? Whoever makes it so rings this rank's bell
 * @arg: for @done
 * @timeout_ms: longest
 *
 * Return: 0; -ETIME; -EOWNERDEAD the group broke, or a rank is gone if
 * @done says so.
 */
int soft_until(struct soft_member *m, soft_done_fn done, void *arg,
	       u32 timeout_ms);
/* Spin a while. Return: something happened. */
bool soft_spin(struct soft_member *m, soft_done_fn done, void *arg);
/* Sleep until rung, @ns at most; @sleepers is one of the slot's two counts. */
void soft_sleep(struct soft_member *m, u32 *sleepers, soft_done_fn done,
		void *arg, u64 ns);
int soft_arm(struct t3_plan *plan);
int soft_tiles(struct t3_plan *plan, const struct t3_tiles *tiles, uint32_t n);
int soft_wait(struct t3_plan *plan, uint32_t timeout_ms);
int soft_wait_block(struct t3_plan *plan, uint32_t block, uint32_t updates,
		    uint32_t timeout_ms);

/* futex.c */
void soft_futex_wait(u32 *word, u32 value, u64 ns);
void soft_futex_wake(u32 *word);

#endif /* T3_LIB_SOFT_H */
