/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: the driver's private header.
 *
 * Locks, outermost first; a later one may be taken under an earlier one:
 *
 *	t3_member.lock		mutex: a member's regions, parts, arming, leaving
 *	t3_group.lock		mutex: ranks, slots, plans until they are live
 *	mmap_lock		of the member's mm; never held when taking the two
 *				above: mmap() and the notifiers take only what
 *				is below
 *	t3_member.part_lock	spinlock: the way from a slot to a part
 *	t3_group.live_lock	spinlock, irqs off: the list of live plans
 *
 *	dma.h			the channels' locks, below all of these but
 *				live_lock
 *
 * Events (tiles, a transfer's completion, a break) take no lock but live_lock,
 * and may come in hard-irq context. What they make ready is run in process
 * context only (run.c).
 */
#ifndef T3_PRIVATE_H
#define T3_PRIVATE_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/bits.h>
#include <linux/dma-fence.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/t3.h>

#include "arb.h"
#include "knobs.h"
#include "machine.h"
#include "program.h"
#include "ready.h"
#include "walk.h"

#ifndef CONFIG_64BIT
#error "t3 needs a 64-bit kernel: it reaches all memory by the direct map"
#endif
#ifndef CONFIG_MMU_NOTIFIER
#error "t3 needs CONFIG_MMU_NOTIFIER"
#endif
#ifndef CONFIG_DMA_SHARED_BUFFER
#error "t3 needs CONFIG_DMA_SHARED_BUFFER"
#endif

#ifdef CONFIG_IO_URING
#define T3_URING	T3_FEATURE_URING
#else
#define T3_URING	0
#endif
/* A wait may pend in a ring only where the ring can get rid of it. */
#ifdef T3_HAS_URING_CANCEL
#define T3_URING_WAIT	(T3_URING ? T3_FEATURE_URING_WAIT : 0)
#else
#define T3_URING_WAIT	0
#endif
#define T3_FEATURES	(T3_FEATURE_USER_MEMORY | T3_FEATURE_ENGINE_CPU | \
			 T3_FEATURE_POLLER | T3_FEATURE_DMABUF | T3_URING | \
			 T3_URING_WAIT | \
			 (IS_ENABLED(CONFIG_SYNC_FILE) ? T3_FEATURE_FENCES : 0))
#define T3_MAX_REGIONS	1024	/* of one member */
#define T3_MAX_WAITS	1024	/* pending in rings, of one member */

/* mmap offsets of a member: (slot * 2 + kind) << T3_MMAP_SHIFT. */
#define T3_MMAP_SHIFT	20
#define T3_MMAP_TILES	0
#define T3_MMAP_STATUS	1

/* Set once, before any file exists. */
extern struct workqueue_struct *t3_wq;
extern struct workqueue_struct *t3_first_wq;	/* of dma_first */
extern struct workqueue_struct *t3_slow_wq;	/* what waits for others */

/*
 * t3_group.broken: 0, or why the group broke: the errno, the rank that is the
 * cause, the plan's slot, and a block of that rank.
 */
#define T3_CAUSE_NONE	0xff
#define T3_CAUSE_FENCE	0x8000ULL	/* the errno is that of a fence */

static inline u64 t3_cause(u32 error, u32 rank, u32 slot, u32 block)
{
	return error | (u64)(rank & 0xff) << 16 | (u64)(slot & 0xff) << 24 |
	       (u64)block << 32;
}

static inline u32 t3_cause_error(u64 cause)
{
	return cause & 0x7fff;
}

static inline u32 t3_cause_rank(u64 cause)
{
	u32 rank = cause >> 16 & 0xff;

	return rank == T3_CAUSE_NONE ? T3_NONE : rank;
}

static inline u32 t3_cause_slot(u64 cause)
{
	u32 slot = cause >> 24 & 0xff;

	return slot == T3_CAUSE_NONE ? T3_NONE : slot;
}

static inline u32 t3_cause_block(u64 cause)
{
	return cause >> 32;
}

/**
 * struct t3_pages - zeroed kernel memory that may be mapped by user space
 * @page: its pages
 * @nr: how many
 * @addr: where the kernel sees them
 *
 * Set once by t3_pages_alloc(). A mapping holds its own references on the
 * pages: they outlive this where a mapping does.
 */
struct t3_pages {
	struct page **page;
	unsigned int nr;
	void *addr;
};

struct t3_import;
struct t3_user;

/**
 * struct t3_region - memory of a member: pinned, or a dma-buf
 * @ref: the member's region table, and each part that names it
 * @mm: whose memory it is; the notifier holds a reference while @pinned
 * @id: its number in the member
 * @flags: T3_REGION_*
 * @dtype: T3_DTYPE_*
 * @rows: geometry as registered
 * @base: likewise
 * @row_bytes: likewise
 * @row_stride: likewise
 * @start: address of its first page
 * @npages: pages from there, all pinned and charged to @mm->pinned_vm
 * @place: where it lies for the test whether blocks overlap: @base, or a place
 *	of its dma-buf's own
 * @user: whom they are charged to besides, see charge.c; while charged
 * @pages: the pages
 * @import: the dma-buf that it lies in, or NULL: then it has no pages, and
 *	@base is an offset in it
 * @dirty: they were pinned for writing
 * @pinned: pages are pinned, or the dma-buf is attached; under t3_member.lock
 * @users: parts that name it; under t3_member.lock
 * @stale: its memory was unmapped, or it is unpinned: never to be used again.
 *	Set by anybody at any time, never cleared. Read before each use; who
 *	reads it too late uses pages that are still pinned, since these are
 *	unpinned only when nothing can run on them any more.
 * @suspect: the mapping was touched: compare before believing in it. Set by
 *	the notifier after its sequence number; cleared by t3_region_recheck(),
 *	which looks at the sequence number afterwards.
 * @group: to tell of a break; a reference for as long as @pinned
 * @notifier: watches the address range
 *
 * What is not said otherwise is constant once the region is in the table.
 */
struct t3_region {
	struct kref ref;
	struct mm_struct *mm;
	struct t3_group *group;
	u32 id;
	u32 flags;
	u32 dtype;
	u32 rows;
	u64 base;
	u64 row_bytes;
	u64 row_stride;
	unsigned long start;
	unsigned long npages;
	u64 place;
	struct t3_user *user;
	struct page **pages;
	struct t3_import *import;
	bool dirty;
	bool pinned;
	u32 users;
	bool stale;
	bool suspect;
	struct mmu_interval_notifier notifier;
};

/**
 * struct t3_part - a rank's part of a plan
 * @plan: the plan that it belongs to, and with which it is freed
 * @rank: whose
 * @flags: T3_PLAN_*
 * @prog: the program, pointing into @mem
 * @grid: [prog.grids]
 * @mem: one allocation for all that was copied from the user
 * @number: [prog.grids] numbers of the regions
 * @region: [prog.grids] the regions, each with a reference
 * @use: [prog.blocks] T3_USE_*, for the test against other plans; set before
 *	the plan is live
 * @tiles: pages of the tile counters, writable by the user
 * @status: pages of struct t3_plan_status and the counts
 * @arms: how many epochs were armed; under t3_member.lock, read by anybody
 * @seen: the retired epoch that the user was told of last; a hint for poll
 * @watch: [watched] blocks produced by tiles; the poller's own, in any order
 * @watched: how many
 * @watch_left: the first so many of @watch are not produced yet in
 * @watch_epoch
 * @watch_epoch: the poller's own
 * @tiles_most: most tiles that the watchdog saw counted in @tiles_epoch
 * @tiles_epoch: the watchdog's own
 * @fence_lock: spinlock, irqs off: @out, @fences
 * @out: the fence of an epoch that has not been signalled yet, or NULL; with a
 *	reference
 * @out_context: its timeline
 * @out_work: signals it
 * @fences: productions that wait for a fence (fence_in.c)
 * @fenced: [prog.blocks] bits of blocks that a fence produces in the armed
 *	epoch; NULL: there never was any. Set under t3_member.lock, cleared
 *	under it before arming, read by anybody.
 * @settled: an epoch above, and below how many blocks from the first need
 *	nobody's tiles any more in it; a hint (fence_out.c)
 * @wanted: the epoch whose fence was asked for too early, where the rank's bit
 *	of t3_plan.fence_wanted is set
 */
struct t3_part {
	struct t3_plan *plan;
	u32 rank;
	u32 flags;
	struct t3_program prog;
	struct t3_grid *grid;
	void *mem;
	u32 number[T3_MAX_PLAN_REGIONS];
	struct t3_region *region[T3_MAX_PLAN_REGIONS];
	u8 *use;
	struct t3_pages tiles;
	struct t3_pages status;
	u64 arms;
	u32 seen;
	u32 *watch;
	u32 watched;
	u32 watch_left;
	u32 watch_epoch;
	u64 tiles_most;
	u32 tiles_epoch;
	spinlock_t fence_lock; /* see above */
	struct dma_fence *out;
	u64 out_context;
	struct work_struct out_work;
	struct list_head fences;
	unsigned long *fenced;
	u64 settled;
	u32 wanted;
};

static inline struct t3_plan_status *t3_part_status(const struct t3_part *part)
{
	return part->status.addr;
}

enum t3_plan_state {
	T3_PLAN_COLLECTING,	/* not all parts have come */
	T3_PLAN_LIVE,
	T3_PLAN_REFUSED,	/* the verdict says why */
};

struct t3_exec;

/* One of a plan's workers: pending or running at most once. */
struct t3_worker {
	struct work_struct work;
	struct t3_plan *plan;
	struct t3_exec *exec;
};

#define T3_WORKERS	8	/* of one plan, at most */

/**
 * struct t3_plan - one collective
 * @ref: the slot, each part in a member's table, each pending worker, and
 *	whoever works with it
 * @group: with a reference
 * @slot: in the group
 * @generation: of the slot
 * @state: enum t3_plan_state; moves once, under t3_group.lock, with release
 *	after @verdict and all the rest; whoever sees LIVE (acquire) may use
 *	all of it
 * @verdict: constant once @state has moved
 * @parts: bit r is set: rank r's part has come; under t3_group.lock
 * @present: bit r is set: rank r's part has come and was not deleted;
 *	under t3_group.lock
 * @deleted: bit r is set: rank r has called T3_PLAN_DEL. Only grows; written
 *	under t3_group.lock, read by arming without.
 * @part: [ranks] set under t3_group.lock, constant afterwards
 * @graph: the graph
 * @graph_mem: its memory
 * @machine: the machine
 * @machine_mem: its shared state
 * @ready: triggers that may run and nobody has taken
 * @ready_mask: of its slots
 * @walk: [triggers] how far an interrupted trigger has come; rows = 0: not
 *	begun. Belongs to whoever has taken the trigger from @ready.
 * @by_cpu: [triggers] bits: a channel failed to move all of it. Set by whoever
 *	ends such a transfer, before it queues the trigger; cleared by whoever
 *	takes it.
 * @arb: see arb.h
 * @progress: jiffies of the last arm, tile or update; written by anybody
 * @live: in t3_group.live, under live_lock
 * @silent: a part has T3_PLAN_SILENT_PRODUCERS
 * @polled: some block is produced by tiles
 * @imports: some region is a dma-buf: triggers run on workers only
 * @fence_wanted: bit r is set: rank r wants to hear when it can have a fence;
 *	atomic
 * @next: the worker to wake next, modulo @workers
 * @workers: number of entries of @worker
 * @worker: workers, then those of dma_first
 */
struct t3_plan {
	struct kref ref;
	struct t3_group *group;
	u32 slot;
	u64 generation;
	int state;
	struct t3_verdict verdict;
	u64 parts;
	u64 present;
	u64 deleted;
	struct t3_part *part[T3_MAX_RANKS];
	struct t3_graph graph;
	void *graph_mem;
	struct t3_machine machine;
	void *machine_mem;
	struct t3_ready *ready;
	u32 ready_mask;
	struct t3_walk *walk;
	unsigned long *by_cpu;
	struct t3_arb arb;
	unsigned long progress;
	struct list_head live;
	bool silent;
	bool polled;
	bool imports;
	unsigned long fence_wanted;
	atomic_t next;
	u32 workers;
	struct t3_worker worker[2 * T3_WORKERS];
};

/* What is seen before it says LIVE or REFUSED is all there. */
static inline int t3_plan_state(const struct t3_plan *plan)
{
	/* Pairs with plan_decide(). */
	return smp_load_acquire(&plan->state);
}

/* The epoch that has retired last. The plan is live. */
static inline u32 t3_part_retired(const struct t3_part *part)
{
	return t3_machine_status(&part->plan->machine, part->rank);
}

/* Some epoch of a rank is armed and has not retired; a snapshot. */
static inline bool t3_plan_armed(const struct t3_plan *plan, u32 rank)
{
	return t3_machine_is_armed(&plan->machine, rank);
}

/**
 * struct t3_slot - a place for a plan
 * @plan: the plan in it, with a reference, or NULL
 * @used: some plan was ever in it
 * @generation: of the last one
 *
 * Under t3_group.lock.
 */
struct t3_slot {
	struct t3_plan *plan;
	bool used;
	u64 generation;
};

/**
 * struct t3_group - ranks that share memory
 * @ref: the group's file, its members, its plans, pending works
 * @id: for messages
 * @all: in the list of all groups, under its lock (dump.c)
 * @ranks: how many
 * @lock: see the head of this file
 * @joined: bit r is set: rank r was ever taken; under @lock
 * @members: how many have joined and not left; under @lock
 * @left: bit r is set: rank r has left or died. Only grows, by atomic or;
 *	arming reads it without a lock, before and after (the watchdog ends
 *	what slips through).
 * @watchdog_ms: written under @lock, read by anybody
 * @broken: 0, then the cause for ever: set by one compare-and-swap. Pairs
 *	with @inflight, see "Executors" in machine.h.
 * @inflight: executors that move bytes of this group or complete a trigger at
 *	this moment, with preemption off, and transfers that a channel has
 * @flying: bytes of transfers that were taken and are not over; anybody
 * @late_plans: plans whose producers are behind, see arb.c; anybody
 * @drained: waits for @inflight to be 0 once @broken is set
 * @setup_wait: waits for a plan's verdict
 * @rank_wait: [ranks] waits for a rank's epochs to retire, and polls
 * @slot: plans, under @lock
 * @live_lock: see the head of this file
 * @live: live plans, under @live_lock
 * @creator: whose cgroups the poller gets
 * @poller: the poller's thread or NULL; written under @lock and @live_lock,
 *	read under either
 * @poke: the poller is to look; set by anybody, cleared by the poller before
 *	it looks
 * @watchdog: runs while anything is armed
 * @stale_work: breaks the group where a region of an armed epoch is stale
 * @broken_work: tells the log, lets go of fences
 */
struct t3_group {
	struct kref ref;
	u32 id;
	struct list_head all;
	u32 ranks;
	struct mutex lock; /* see the head of this file */
	u64 joined;
	u32 members;
	u64 left;
	u32 watchdog_ms;
	u64 broken;
	u32 inflight;
	atomic64_t flying;
	atomic_t late_plans;
	wait_queue_head_t drained;
	wait_queue_head_t setup_wait;
	wait_queue_head_t rank_wait[T3_MAX_RANKS];
	struct t3_slot slot[T3_MAX_PLANS];
	spinlock_t live_lock; /* see the head of this file */
	struct list_head live;
	struct task_struct *creator;
	struct task_struct *poller;
	bool poke;
	struct delayed_work watchdog;
	struct work_struct stale_work;
	struct work_struct broken_work;
};

/**
 * struct t3_member - a rank of a group
 * @ref: its file, and pending @leave_work
 * @group: with a reference
 * @rank: which
 * @mm: the address space that joined, with a reference on the struct
 * @lock: see the head of this file
 * @left: it has left, or its mm has gone; only moves to true. Written under
 *	@lock or by the mm's end, read by anybody; who acts on false takes
 *	@lock and looks at @gone.
 * @gone: all it had was freed; under @lock
 * @part_lock: see the head of this file
 * @part: its parts, changed under @lock and @part_lock, read under either;
 *	each with a reference on its plan
 * @regions: its regions, under @lock; an entry without a region is reserved
 * @map_file: stands for the member in its mappings, which so don't keep the
 *	member open; constant
 * @waits: pending waits of io_uring (uring.c)
 * @notifier: tells when the mm goes
 * @leave_work: frees all when the mm went before the file
 */
struct t3_member {
	struct kref ref;
	struct t3_group *group;
	u32 rank;
	struct mm_struct *mm;
	struct mutex lock; /* see the head of this file */
	bool left;
	bool gone;
	spinlock_t part_lock; /* see the head of this file */
	struct t3_part *part[T3_MAX_PLANS];
	struct xarray regions;
	struct file *map_file;
	atomic_t waits;
	struct mmu_notifier notifier;
	struct work_struct leave_work;
};

/* Why a call is refused, for the log: a user reads it, so it is limited. */
#define t3_say(member, fmt, ...)					\
do {									\
	const struct t3_member *__m = (member);				\
									\
	pr_info_ratelimited("group %u rank %u: " fmt "\n",		\
			    __m->group->id, __m->rank, ##__VA_ARGS__);	\
} while (0)

/**
 * struct t3_cmd - a command being carried out
 * @group: on a group or a member
 * @member: on a member
 * @arg: the command's structure, kernel's copy; every output is the
 *	handler's to set
 * @nowait: the caller must not be kept: transfers are the workers', and a wait
 *	only looks
 * @file: a file that the command made, to be installed at @fd when the
 *	structure has been copied out
 * @fd: reserved
 */
struct t3_cmd {
	struct t3_group *group;
	struct t3_member *member;
	void *arg;
	bool nowait;
	struct file *file;
	int fd;
};

/**
 * struct t3_op - a command of one kind of file
 * @size: of its structure
 * @min_size: of its structure's first version
 * @nr: T3_CMD_*
 * @out: it has outputs
 * @out_on_error: outputs that are written on error too
 * @fn: carries it out; returns 0 or -errno
 */
struct t3_op {
	u32 size;
	u32 min_size;
	u32 nr;
	bool out;
	bool out_on_error;
	int (*fn)(struct t3_cmd *cmd);
};

#define T3_OP(_nr, _struct, _min_size, _out, _err, _fn)			\
	{								\
		.size = sizeof(struct _struct), .min_size = (_min_size),\
		.nr = (_nr), .out = (_out), .out_on_error = (_err),	\
		.fn = (_fn),						\
	}

/* The kernel's copy of a command's structure. */
union t3_arg {
	struct t3_query query;
	struct t3_group_create create;
	struct t3_group_join join;
	struct t3_group_info info;
	struct t3_region_add region_add;
	struct t3_plan_add plan_add;
	struct t3_plan_wait plan_wait;
	struct t3_notify notify;
	struct t3_wait wait;
	struct t3_fence_in fence_in;
	struct t3_fence_out fence_out;
	u32 head[2];
};

/* main.c */
struct device *t3_device(void);
const struct t3_op *t3_op_find(const struct t3_op *ops, u32 nops,
			       unsigned int code);
int t3_arg_take(const struct t3_op *op, void __user *uarg, union t3_arg *arg);
int t3_arg_give(const struct t3_op *op, void __user *uarg,
		const union t3_arg *arg, int ret);
int t3_dispatch(struct t3_cmd *cmd, const struct t3_op *op, void __user *uarg);

/*
 * What a signal stops has changed nothing. Where no handler runs after it (a
 * debugger, a ring's task work) the call begins anew; else it is EINTR.
 */
static inline long t3_ioctl_end(int ret)
{
	return ret == -EINTR ? -ERESTARTNOHAND : ret;
}

int t3_cmd_file(struct t3_cmd *cmd, const char *name,
		const struct file_operations *fops, void *priv);

/* group.c */
int t3_group_create(struct t3_cmd *cmd);
int t3_group_info(struct t3_cmd *cmd);
int t3_group_abort(struct t3_cmd *cmd);
void t3_group_get(struct t3_group *group);
void t3_group_put(struct t3_group *group);
bool t3_group_break(struct t3_group *group, u64 cause);
void t3_group_drain(struct t3_group *group);
u32 t3_group_live(struct t3_group *group, struct t3_plan **plan);
void t3_group_enlist(struct t3_plan *plan);
void t3_group_delist(struct t3_plan *plan);
void t3_group_wake(struct t3_group *group);

static inline u64 t3_group_cause(const struct t3_group *group)
{
	/* Pairs with the compare-and-swap of t3_group_break(). */
	return smp_load_acquire(&group->broken);
}

/**
 * t3_group_error - has the group broken?
 * @group: the group
 *
 * Return: 0 or the negative errno of the cause.
 */
static inline int t3_group_error(const struct t3_group *group)
{
	return -(int)t3_cause_error(t3_group_cause(group));
}

/* broken.c */
void t3_broken_say(struct t3_group *group, u64 cause, char *buf, size_t size);

/* member.c */
int t3_group_join(struct t3_cmd *cmd);
const struct t3_op *t3_member_op(unsigned int code);
int t3_member_allowed(const struct t3_member *member);
struct t3_part *t3_part_get(struct t3_member *member, u32 slot);
void t3_part_put(struct t3_part *part);

/* region.c */
int t3_region_add(struct t3_cmd *cmd);
int t3_region_del(struct t3_cmd *cmd);
int t3_region_recheck(struct t3_region *region);
void t3_region_unpin(struct t3_region *region);
void t3_region_put(struct t3_region *region);
void t3_stale_work(struct work_struct *work);

/* charge.c */
int t3_charge(struct t3_member *member, struct t3_region *region);
void t3_uncharge(struct t3_region *region);

/* part.c */
struct t3_part *t3_part_copy(struct t3_member *member, struct t3_plan_add *add);
int t3_part_resolve(struct t3_member *member, struct t3_part *part,
		    struct t3_plan_add *add);
void t3_part_free(struct t3_part *part);
int t3_pages_alloc(struct t3_pages *p, size_t bytes);
void t3_pages_free(struct t3_pages *p);

/* plan.c */
int t3_plan_add(struct t3_cmd *cmd);
int t3_plan_wait(struct t3_cmd *cmd);
int t3_plan_del(struct t3_cmd *cmd);
void t3_plan_drop(struct t3_member *member, u32 slot, bool leaving);
void t3_plans_refuse(struct t3_group *group, u32 rank);
void t3_plan_put(struct t3_plan *plan);

/* epoch.c */
int t3_arm(struct t3_cmd *cmd);
int t3_notify(struct t3_cmd *cmd);
int t3_wait(struct t3_cmd *cmd);
int t3_wait_begin(struct t3_member *member, struct t3_wait *wait,
		  struct t3_part **part);
int t3_wait_look(const struct t3_member *member, const struct t3_part *part,
		 u32 epoch, ktime_t end);
ktime_t t3_wait_deadline(u64 timeout_ns);
int t3_wait_end(struct t3_member *member, struct t3_part *part,
		struct t3_wait *wait, int ret);
bool t3_member_armed(struct t3_member *member, u32 *slot);
bool t3_part_running(const struct t3_part *part);
int t3_plan_usable(const struct t3_plan *plan);
int t3_epoch_check(struct t3_member *member, struct t3_part *part, u32 epoch,
		   const char *call);

/* fence_in.c, fence_out.c */
#if IS_ENABLED(CONFIG_SYNC_FILE)
int t3_fence_in(struct t3_cmd *cmd);
int t3_fence_out(struct t3_cmd *cmd);
void t3_fence_init(struct t3_part *part);
void t3_fences_cancel(struct t3_part *part);
void t3_fence_over(struct t3_part *part);
void t3_fence_wake(struct t3_plan *plan);
bool t3_fence_wanted(struct t3_part *part);
#else
static inline void t3_fence_init(struct t3_part *part) {}
static inline void t3_fences_cancel(struct t3_part *part) {}
static inline void t3_fence_over(struct t3_part *part) {}
static inline void t3_fence_wake(struct t3_plan *plan) {}
static inline bool t3_fence_wanted(struct t3_part *part) { return false; }
#endif

/* uring.c */
struct io_uring_cmd;
int t3_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

/* run.c */
extern const struct t3_machine_ops t3_plan_ops;
int t3_plan_workers_init(struct t3_plan *plan);
void t3_plan_workers_free(struct t3_plan *plan);
void t3_plan_kick(struct t3_plan *plan);
bool t3_plan_run(struct t3_plan *plan, u64 *budget);

/* engine.c */
void t3_engine_init(void);
void t3_engine_exit(void);
int t3_engine_set(unsigned int which);
void t3_engines_cut(struct t3_group *group);

/* poller.c */
int t3_poller_start(struct t3_group *group);
void t3_poller_stop(struct t3_group *group);
void t3_poller_poke(struct t3_group *group);

/* watchdog.c */
void t3_watchdog(struct work_struct *work);
void t3_watchdog_start(struct t3_group *group);

/* dump.c */
void t3_dump_add(struct t3_group *group);
void t3_dump_remove(struct t3_group *group);
void t3_dump_init(void);
void t3_dump_exit(void);

/* mapping.c */
struct file *t3_map_file(void);
int t3_mmap(struct file *file, struct vm_area_struct *vma);

#endif /* T3_PRIVATE_H */
