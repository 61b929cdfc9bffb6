/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The dataflow machine: counting and firing, arm, retire, failure.
 *
 * An event (tiles counted, a transfer done) only counts; whoever makes a
 * node's last count fires it, so each node fires exactly once an epoch and
 * nothing is searched, locked or reset. What became ready is handed to the
 * engine through t3_machine_ops.ready, which never runs it there and then.
 */
#ifndef T3_CORE_MACHINE_H
#define T3_CORE_MACHINE_H

#include "env.h"
#include "graph.h"

/**
 * struct t3_node - the counter of a trigger or of retire(rank)
 * @have: edges counted so far, in all epochs; only grows. Anybody adds 1
 *	(sequentially consistent).
 * @due: the value of @have at which it fires next. Written only by the one who
 *	fired it, before any of the node's own edges are counted; an edge of
 *	the next epoch can only come after those, so whoever counts an edge
 *	reads a @due that nobody is writing.
 */
struct t3_node {
	u32 have;
	u32 due;
};

/* t3_rank_state.status: retired epoch below, the broken bit above. */
#define T3_STATUS_BROKEN	(1ULL << 32)

#define T3_LINE		64	/* bytes of a cache line: a hint, no promise */

/**
 * struct t3_rank_state - a rank's own words, on a line of their own
 * @status: retired epoch and broken bit in one word; by whoever retires or
 *	breaks
 * @retire: the counter of retire(rank); anybody who completes a trigger
 * @armed: the epoch armed last; written by the rank itself, read by whoever
 *	counts its tiles
 * @pad: to the end of the line
 */
struct t3_rank_state {
	u64 status;
	struct t3_node retire;
	u32 armed;
	u32 pad[T3_LINE / 4 - 5];
};

struct t3_machine;

/**
 * struct t3_machine_ops - what the engine does for the machine
 * @ready: trigger @trigger may run now. Called in the context of the event,
 *	perhaps hard-irq: queue it, wake somebody, nothing more.
 * @retired: @epoch of @rank has retired. Likewise: wake the waiters.
 * @updated: block @block of @rank has one more update. Likewise. May be NULL.
 */
struct t3_machine_ops {
	void (*ready)(struct t3_machine *m, u32 trigger);
	void (*retired)(struct t3_machine *m, u32 rank, u32 epoch);
	void (*updated)(struct t3_machine *m, u32 rank, u32 block);
};

/**
 * struct t3_machine - one holder's way to a plan's state
 * @graph: the plan's graph, private to the holder
 * @ops: the engine
 * @state: [ranks], shared
 * @node: [t3_machine_nodes()] the triggers' counters, shared. Neighbours are
 *	counted at the same time by several ranks, so they lie on different
 *	lines: see t3_machine_node()
 * @claimed: [blocks] the epoch for which a block's production was claimed
 *	last, shared; moved from e - 1 to e by one compare-and-swap
 * @first_node: [ranks] a rank's first entry in @node, the holder's own
 * @lines: [ranks] over how many lines the rank's nodes are spread, less one;
 *	lines are a power of two; the holder's own
 * @tiles: [ranks] the tile counters of a rank's blocks; producers add, with
 *	release; may lie in memory that a user writes: read once, never
 *	believed beyond the rank's own contribution
 * @count: [ranks] updates of a rank's blocks so far, for consumers (acquire);
 *	written by the machine only and never read by it
 *
 * The struct itself is private to its holder and constant once set up. What it
 * points to is shared by all holders: kernel memory, or memory that processes
 * share. Every index into it comes from the holder's own graph.
 */
struct t3_machine {
	const struct t3_graph *graph;
	const struct t3_machine_ops *ops;
	struct t3_rank_state *state;
	struct t3_node *node;
	u32 *claimed;
	u32 first_node[T3_MAX_RANKS];
	u32 lines[T3_MAX_RANKS];
	u32 *tiles[T3_MAX_RANKS];
	u32 *count[T3_MAX_RANKS];
};

/**
 * t3_machine_bytes - size of the shared state but for tiles and counts
 * @graph: the plan's graph
 */
size_t t3_machine_bytes(const struct t3_graph *graph);

/**
 * t3_machine_attach - point a machine into its shared state
 * @m: out; @m->tiles and @m->count are the caller's to set
 * @graph: the plan's graph
 * @ops: the engine
 * @mem: t3_machine_bytes() bytes, aligned to T3_LINE
 */
void t3_machine_attach(struct t3_machine *m, const struct t3_graph *graph,
		       const struct t3_machine_ops *ops, void *mem);

/**
 * t3_machine_start - set the shared state as if @epoch had just retired
 * @m: attached, tiles and counts set
 * @epoch: 0, or any other for tests of the wrap
 *
 * Once, before anybody else attaches.
 */
void t3_machine_start(struct t3_machine *m, u32 epoch);

/**
 * t3_machine_arm - hand a rank's buffers to the machine for one more epoch
 * @m: the machine
 * @rank: whose
 * @epoch: out: the epoch that is armed now
 * @block: out, on -EPROTO: the block with early or excess tiles
 *
 * The caller keeps other arms of the same rank out and has seen to it that no
 * other plan armed there writes the same bytes. Takes time linear in the
 * rank's blocks and triggers.
 *
 * Context: any but hard-irq.
 * Return: 0; -EBUSY the last epoch has not retired; -EOWNERDEAD the group
 * broke (the engine knows the cause); -EPROTO a tile counter is not where the
 * last epoch left it.
 */
int t3_machine_arm(struct t3_machine *m, u32 rank, u32 *epoch, u32 *block);

/**
 * t3_machine_look - see whether a block's production is complete
 * @m: the machine
 * @rank: whose block
 * @block: block of the rank, in range
 *
 * To be called after tiles were counted. Pairs with the arming of the rank:
 * the counter is added to before @armed is read here, and @armed is written
 * before the counter is read there, both sequentially consistent, so that one
 * of the two sees the production.
 *
 * Context: any, hard-irq too. Lock-free.
 * Return: true where this call made it complete.
 */
bool t3_machine_look(struct t3_machine *m, u32 rank, u32 block);

/**
 * t3_machine_tiles - count tiles and look
 * @m: the machine
 * @rank: whose block
 * @block: block of the rank, in range
 * @tiles: how many
 *
 * Context: any, hard-irq too. Lock-free.
 * Return: 0; -EINVAL the block is not produced by tiles; -EPROTO no epoch is
 * armed, or the block would have more tiles than an epoch takes.
 */
int t3_machine_tiles(struct t3_machine *m, u32 rank, u32 block, u32 tiles);

/**
 * t3_machine_complete - a trigger's data is written
 * @m: the machine
 * @trigger: which
 *
 * Counts the update, then the successors, then retirement. The data was
 * written before in program order; the counts are sequentially consistent
 * read-modify-writes and so publish it to whoever they make ready.
 *
 * Context: any, hard-irq too. Lock-free.
 */
void t3_machine_complete(struct t3_machine *m, u32 trigger);

/**
 * t3_machine_break - nothing retires any more
 * @m: the machine
 *
 * Epochs that have retired stay a success. The group's own broken word, which
 * holds the cause, was set before.
 *
 * Context: any. Lock-free, linear in the ranks.
 */
void t3_machine_break(struct t3_machine *m);

/**
 * t3_machine_retired - has an epoch of a rank retired?
 * @m: the machine
 * @rank: whose
 * @epoch: an epoch that was armed
 *
 * Return: 1 retired; 0 not yet; -EOWNERDEAD never: the group broke first.
 * After 1, all data of the epoch may be read (acquire).
 */
int t3_machine_retired(const struct t3_machine *m, u32 rank, u32 epoch);

/**
 * struct t3_lack - what an armed rank waits for
 * @rank: a rank
 * @block: a block of it, or T3_NONE: the rank has not armed
 * @have: updates it has in the epoch
 * @need: updates it needs
 */
struct t3_lack {
	u32 rank;
	u32 block;
	u32 have;
	u32 need;
};

/**
 * t3_machine_lacks - name one thing that an armed rank waits for
 * @m: the machine
 * @rank: the rank that waits
 * @lack: out
 *
 * A snapshot for messages, taken while the machine runs: first a needed rank
 * that has not armed, else the first block, produced late, of a needed rank.
 *
 * Return: true where something was found.
 */
bool t3_machine_lacks(const struct t3_machine *m, u32 rank,
		      struct t3_lack *lack);

/* The epoch that @rank armed last. */
static inline u32 t3_machine_armed(const struct t3_machine *m, u32 rank)
{
	return t3_load_acquire(&m->state[rank].armed);
}

/* The retired epoch and T3_STATUS_BROKEN of @rank, in one load. */
static inline u64 t3_machine_status(const struct t3_machine *m, u32 rank)
{
	return t3_load_acquire(&m->state[rank].status);
}

/* Is an epoch of @rank armed that has not retired? A snapshot. */
static inline bool t3_machine_is_armed(const struct t3_machine *m, u32 rank)
{
	return (u32)t3_machine_status(m, rank) != t3_machine_armed(m, rank);
}

/*
 * Executors. Whoever would run a trigger announces itself first and looks for
 * a break after that; whoever breaks sets the word first and looks for
 * executors after that; each side has a full fence between the two. So either
 * the executor sees the break, or the breaker sees the executor.
 */

/**
 * t3_machine_enter - before running triggers
 * @inflight: the executor's count of runs
 * @broken: the group's broken word: 0, or the cause
 *
 * Return: true to go on, then t3_machine_leave(); false where the group broke.
 */
static inline bool t3_machine_enter(u32 *inflight, const u64 *broken)
{
	t3_add32(inflight, 1);		/* a full fence on both sides */
	if (likely(!t3_load_sc(broken)))
		return true;
	t3_add32(inflight, (u32)-1);
	return false;
}

/* After running triggers: all that was written is published. */
static inline void t3_machine_leave(u32 *inflight)
{
	t3_add32(inflight, (u32)-1);
}

#endif /* T3_CORE_MACHINE_H */
