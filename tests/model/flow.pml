/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flow of a plan while nobody dies: each trigger runs exactly once an
 * epoch on the right data, nothing is lost, no rank gets its buffers back
 * while they are in use.
 *
 * Processes: for each rank one that arms and waits, one that produces (one
 * for each tile with -DTILEWISE), and one for each trigger, which stands for
 * whichever executor takes it: so any number of executors is covered.
 *
 * -DEARLY	producers start when the last epoch has retired, before or
 *		while the rank arms; else when arm has returned
 * -DFOREVER	no last epoch: all epochs there can be, since all counters wrap
 */
#include "machine.pml"

inline retire(r)
{
	retired[r] = (retired[r] + 1) & EMASK;
	assert(retired[r] == armed[r]);
	check_retired(r, retired[r])
}

#define LAST	((START + EPOCHS) & EMASK)
#ifdef FOREVER
#define MORE(e)	true
#else
#define MORE(e)	((e) != LAST)
#endif

#ifndef EARLY
byte returned[RANKS];	/* the epoch for which arm has returned last */
#endif

proctype member(byte r)
{
	byte e = START, k, v = NONE, i, seen = NONE;

	do
	:: MORE(e) ->
		/* EBUSY until then */
		d_step {
			retired[r] == e ->
			e = (e + 1) & EMASK;
			armed[r] = e;
			k = 0;
			do
			:: k < BLOCKS ->
				if
				:: b_rank[k] == r && b_p[k] && !b_t[k] ->
					assert(!reading[k] && !writing[k]);
					holds[k] = HOLDS(e, 1 << r)
				:: else
				fi;
				k++
			:: else -> break
			od;
			k = 0
		};
		/* look for productions: tiles may have been there before */
		do
		COMPLETION
		:: atomic {
			v == NONE && k < BLOCKS ->
			if
#ifdef MUT_NO_LOOK
			:: b_rank[k] == r && !b_t[k] && CLAIMABLE(k, e) -> claim(k, e)
#else
			:: b_rank[k] == r && CLAIMABLE(k, e) -> claim(k, e)
#endif
			:: else
			fi;
			k++
		   }
		:: atomic { v == NONE && k == BLOCKS -> k = 0; v = ARM(r); break }
		od;
		do
		COMPLETION
		:: v == NONE -> break
		od;
#ifndef EARLY
		returned[r] = e
#endif
	:: !MORE(e) && retired[r] == e -> break
	od
}

/* Produces the blocks order[r][first .. last - 1], a tile of each. */
proctype producer(byte r; byte first; byte last)
{
	byte e = START, k, a, v = NONE, i, seen = NONE;

	do
	:: MORE(e) ->
		d_step {
#ifdef EARLY
			retired[r] == e ->
#else
			returned[r] == ((e + 1) & EMASK) ->
#endif
			e = (e + 1) & EMASK;
			k = first;
			do
			:: k < last -> begin_tile(order[r * ORDER + k]); k++
			:: else -> k = first; break
			od
		};
		do
		:: k < last ->
			d_step { end_tile(order[r * ORDER + k], e) };
			a = armed[r];
#ifdef MUT_NO_CAS
			if
			:: CLAIMABLE(order[r * ORDER + k], a) ->
				d_step { claim(order[r * ORDER + k], a); a = 0; k++ }
			:: else -> d_step { a = 0; k++ }
			fi;
#else
			atomic {
				if
				:: CLAIMABLE(order[r * ORDER + k], a) ->
					claim(order[r * ORDER + k], a)
				:: else
				fi;
				a = 0;
				k++
			};
#endif
			do
			COMPLETION
			:: v == NONE -> break
			od
		:: else -> k = 0; break
		od
	:: !MORE(e) -> break
	od
}

/* The update is counted before the successors and the retire counters. */
#ifdef MUT_COUNT_LATE
#define LATE_DONE	!late
#else
#define LATE_DONE	true
#endif

proctype trigger(byte t)
{
	byte v = NONE, i, seen = NONE;
#ifdef MUT_COUNT_LATE
	bool late;
#endif

end:	do
	:: d_step {
		IS_READY(t) && v == NONE && LATE_DONE ->
		ready = ready & ~(1 << t);
		end_trigger(t);
#ifndef MUT_COUNT_LATE
		count[t_dst[t]] = (count[t_dst[t]] + 1) & EMASK;
#else
		late = true;
#endif
		v = t
	   }
#ifdef MUT_COUNT_LATE
	:: d_step {
		v == NONE && late ->
		count[t_dst[t]] = (count[t_dst[t]] + 1) & EMASK;
		late = false
	   }
#endif
	COMPLETION
	od
}

init
{
	byte r, k;

	atomic {
		start_machine();
		do
		:: r < RANKS ->
#ifndef EARLY
			returned[r] = START;
#endif
			run member(r);
			r++
		:: else -> r = 0; break
		od;
		do
		:: r < RANKS ->
#ifdef TILEWISE
			k = 0;
			do
			:: k < ORDER ->
				n = b_t[order[r * ORDER + k]];
				do
				:: n > 0 -> run producer(r, k, k + 1); n--
				:: else -> break
				od;
				k++
			:: else -> k = 0; break
			od;
#else
			run producer(r, 0, ORDER);
#endif
			r++
		:: else -> r = 0; break
		od;
		do
		:: r < TRIGGERS -> run trigger(r); r++
		:: else -> r = 0; break
		od
	}
}
