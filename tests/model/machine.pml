/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The dataflow machine: counting, firing, production, completion, retirement.
 * Included by flow.pml (nobody dies) and death.pml (anybody may).
 *
 * Every step of a process here is one access to shared memory, or is merged
 * with one where that hides no behaviour (each such place says why). With
 * -DGRAIN=0 the three accesses of a firing (read `due`, add to `have`, write
 * `due`) are steps of their own; with 1 they are one step; with 2 all adds to
 * triggers are one step, and all adds to retire counters another; with 3 all
 * adds of one completion are one step.
 *
 * All counters are as after START epochs and wrap: epochs, tiles and counts
 * at 8, edges at HMASK + 1, so every model crosses the wrap of each of them.
 */
#include "plan.pml"

#ifndef GRAIN
#define GRAIN	0
#endif
#ifndef EPOCHS
#define EPOCHS	2
#endif

#define START		6
#define EMASK		7
#define REACHED(a, b)	((((a) - (b)) & EMASK) < 4)

#define RETIRE(r)	(TRIGGERS + (r))
#define PRODUCE(b)	(TRIGGERS + (b))
#define ARM(r)		(TRIGGERS + BLOCKS + (r))
#define NONE		255
#define FIRED		100	/* `seen` while firing: due is to be moved */
#define MOVED		101	/* ... due is moved, the node is to be handed on */

/* struct t3_node: have, due. C: m->node[] */
byte have[NODES];
byte due[NODES];
/* C: m->tiles, m->claimed, m->count, m->armed, m->status[].epoch */
byte tiles[BLOCKS];
byte claimed[BLOCKS];
byte count[BLOCKS];
byte armed[RANKS];
byte retired[RANKS];

/* The ready queue: one bit a trigger, taken by whoever runs it. */
unsigned ready : TRIGGERS;
#define IS_READY(t)	((ready >> (t)) & 1)

/*
 * The memory of the blocks. What a block holds is an epoch and a set of
 * contributions. Reads and writes are intervals, as long as they can be: a
 * producer's from the moment it may write to its last tile, a trigger's from
 * the moment it may run to its completion. So whatever two accesses could meet
 * in some execution do meet here, and the assertions see it.
 */
byte holds[BLOCKS];
byte writing[BLOCKS];
byte reading[BLOCKS];

#define HOLDS(e, set)	(((e) << 4) + (set))
#define BY_TRIGGER	128	/* in writing[]: else tiles being produced */

/* Scratch inside one step: no part of the state. */
hidden byte j;
hidden byte n;
hidden byte set;

inline start_machine()
{
	n = 0;
	do
	:: n < NODES ->
		have[n] = (START * edges[n]) & HMASK;
		due[n] = (have[n] + edges[n]) & HMASK;
		n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < BLOCKS ->
		tiles[n] = (START * b_t[n]) & EMASK;
		claimed[n] = START;
		count[n] = (START * b_k[n]) & EMASK;
		n++
	:: else -> break
	od;
	n = 0;
	do
	:: n < RANKS ->
		armed[n] = START;
		retired[n] = START;
		n++
	:: else -> break
	od;
	n = 0
}

/* A producer may write its tile of block b from here on. */
inline begin_tile(b)
{
	assert(!reading[b] && writing[b] < b_t[b]);
	writing[b]++
}

/* The tile of block b for epoch e is written and counted. */
inline end_tile(b, e)
{
	assert(!reading[b] && writing[b] && writing[b] <= b_t[b]);
	writing[b]--;
	tiles[b] = (tiles[b] + 1) & EMASK;
	if
	:: tiles[b] == ((e * b_t[b]) & EMASK) -> holds[b] = HOLDS(e, 1 << b_rank[b])
	:: else
	fi
}

/* Source j of trigger t holds what the table says, for the epoch of t. */
#define SOURCE(t)	t_src[(t) * SRCS + j]
#define EPOCH_OF(t)	armed[b_rank[t_dst[t]]]
#define SOURCE_GOOD(t)	(holds[SOURCE(t)] == \
			 HOLDS(EPOCH_OF(t), t_want[(t) * SRCS + j]))

/* Trigger t may run: its sources are there, its destination is free, and it
 * is its turn among the destination's updates.
 */
inline begin_trigger(t)
{
	j = 0;
	do
	:: j < t_nsrc[t] ->
		assert(SOURCE_GOOD(t) && !writing[SOURCE(t)]);
		reading[SOURCE(t)] = reading[SOURCE(t)] + (SOURCE(t) != t_dst[t]);
		j++
	:: else -> break
	od;
	assert(!reading[t_dst[t]] && !writing[t_dst[t]]);
	assert(count[t_dst[t]] == (((EPOCH_OF(t) - 1) * b_k[t_dst[t]] +
				    t_seq[t] - 1) & EMASK));
	writing[t_dst[t]] = BY_TRIGGER
}

/* The data of trigger t is written. */
inline end_trigger(t)
{
	set = 0;
	j = 0;
	do
	:: j < t_nsrc[t] ->
		assert(SOURCE_GOOD(t));
		set = set | (holds[SOURCE(t)] & 15);
		reading[SOURCE(t)] = reading[SOURCE(t)] - (SOURCE(t) != t_dst[t]);
		j++
	:: else -> break
	od;
	assert(!reading[t_dst[t]] && writing[t_dst[t]] == BY_TRIGGER);
	holds[t_dst[t]] = HOLDS(EPOCH_OF(t), set);
	writing[t_dst[t]] = 0
}

/* What retirement promises: final, counted, read and written by nobody. */
inline check_retired(r, e)
{
	j = 0;
	do
	:: j < BLOCKS ->
		if
		:: b_rank[j] == r ->
			assert(!reading[j] && !writing[j]);
			assert(holds[j] == HOLDS(e, b_final[j]));
			assert(count[j] == ((e * b_k[j]) & EMASK));
			assert(!b_p[j] || claimed[j] == e)
		:: else
		fi;
		j++
	:: else -> break
	od
}

/*
 * Completion of event v: one add for each of its edges, in the order of the
 * table (triggers, then retire counters). v, i and seen are the process's.
 * C: t3_machine_complete(), t3_machine_arm(), the end of t3_machine_look().
 */
#define NODE	succ[v * SUCCS + i]

inline next_edge()
{
	i++;
	if
	:: i == nsucc[v] -> i = 0; v = NONE
	:: else
	fi
}

/* Who made the last count hands the node on. */
inline fire()
{
	if
	:: NODE < TRIGGERS ->
		assert(!IS_READY(NODE));
		begin_trigger(NODE);
		ready = ready | (1 << NODE)
	:: else ->
		retire(NODE - TRIGGERS)
	fi
}

#if GRAIN == 0

/* `due` is read before the add, and compared with the add's result. */
inline read_due()
{
	d_step { v != NONE && seen == NONE -> seen = due[NODE] }
}

inline count_edge()
{
	d_step {
		v != NONE && seen < FIRED ->
		have[NODE] = (have[NODE] + 1) & HMASK;
		if
		:: have[NODE] == seen -> seen = FIRED
		:: else -> seen = NONE; next_edge()
		fi
	}
}

/* Who fires moves `due` first, and only then lets anybody else go on. */
inline first_of_firing()
{
	d_step {
		seen == FIRED ->
#ifdef MUT_DUE_LATE
		fire();
#else
		due[NODE] = (due[NODE] + edges[NODE]) & HMASK;
#endif
		seen = MOVED
	}
}

inline last_of_firing()
{
	d_step {
		seen == MOVED ->
#ifdef MUT_DUE_LATE
		due[NODE] = (due[NODE] + edges[NODE]) & HMASK;
#else
		fire();
#endif
		seen = NONE;
		next_edge()
	}
}

#else

inline whole_edge()
{
	have[NODE] = (have[NODE] + 1) & HMASK;
	if
	:: have[NODE] == due[NODE] ->
		due[NODE] = (due[NODE] + edges[NODE]) & HMASK;
		fire()
	:: else
	fi;
	next_edge()
}

inline count_edge()
{
	d_step {
		v != NONE ->
#if GRAIN == 1
		whole_edge()
#elif GRAIN == 3
		do
		:: v != NONE -> whole_edge()
		:: else -> break
		od;
		n = 0
#else
		n = (NODE < TRIGGERS);
		do
		:: v != NONE && n == (NODE < TRIGGERS) -> whole_edge()
		:: else -> break
		od;
		n = 0
#endif
	}
}

#endif

/* The steps of one completion, as alternatives of a loop. */
#if GRAIN == 0
#define COMPLETION	:: read_due() :: count_edge() \
			:: first_of_firing() :: last_of_firing()
#else
#define COMPLETION	:: count_edge()
#endif

/*
 * Look whether block b is produced for epoch e, and claim it: one compare-
 * and-swap decides between all who look. C: t3_machine_look(). The read of the
 * tiles is merged with the compare-and-swap: tiles only grow, so a look that
 * found them complete would still find them so then.
 */
inline claim(b, e)
{
	claimed[b] = e;
	count[b] = (count[b] + 1) & EMASK;
	v = PRODUCE(b)
}

#define PRODUCED(b, e)	(b_p[b] && REACHED(tiles[b], (e) * b_t[b]))
#define CLAIMABLE(b, e)	(PRODUCED(b, e) && claimed[b] == (((e) - 1) & EMASK))
