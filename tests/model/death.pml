/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flow of a plan while ranks die: at any step, all processes of a rank
 * stop for good, an executor perhaps in the middle of a trigger. Every
 * survivor's wait ends: a success where its epoch retired first, else an error
 * that names a rank that died; no survivor gets its buffers back while an
 * executor still runs on them.
 *
 * Processes: for each rank a member (arms, waits, notices deaths, breaks), a
 * producer and an executor; and the killer. Executors take triggers of any
 * rank, or with -DOWN of their own rank only.
 *
 * C: t3_machine_arm(), t3_machine_retired(), t3_machine_break(),
 * t3_machine_enter(), t3_machine_leave(); noticing deaths is the engine's.
 */
#ifndef GRAIN
#define GRAIN	1
#endif
#ifndef DEATHS
#define DEATHS	1
#endif

#include "machine.pml"

#define LAST	((START + EPOCHS) & EMASK)
#define AFTER(a, b)	((a) != (b) && REACHED(a, b))

bool dead[RANKS];		/* and its exit is certain */
byte returned[RANKS];		/* the epoch for which arm has returned last */

/* The group's broken word: 0, or 1 + the rank that is the cause. */
byte cause;
/* With retired[]: one atomic word. C: T3_STATUS_BROKEN in m->status[] */
bool broken[RANKS];

byte inflight[RANKS];		/* of the rank's executor */
byte runs[RANKS];		/* 1 + the trigger it runs on: in memory */
byte given_back;		/* ranks whose buffers are their own again */
mtype = { working, success, failed, refused };
mtype outcome[RANKS] = working;

/* One compare-and-swap on the status word: after a break nothing retires. */
inline retire(r)
{
	if
	:: !broken[r] ->
		retired[r] = (retired[r] + 1) & EMASK;
		assert(retired[r] == armed[r]);
		check_retired(r, retired[r])
	:: else
	fi
}

/*
 * A dead rank x that epoch e of another needs: it has an armed epoch that has
 * not retired, or its executor owes the rest of a trigger, or it has not armed
 * e and never will.
 */
#ifdef MUT_IGNORE_INFLIGHT
#define OWES(x)		false
#else
#define OWES(x)		(inflight[x] > 0)
#endif
#define MISSED(x, e)	(dead[x] && (armed[x] != retired[x] || OWES(x) || \
				     AFTER(e, armed[x])))

#if RANKS == 2
#define SOME_MISSED(e)	(MISSED(0, e) || MISSED(1, e))
#define SOME_DEAD	(dead[0] || dead[1])
#else
#define SOME_MISSED(e)	(MISSED(0, e) || MISSED(1, e) || MISSED(2, e))
#define SOME_DEAD	(dead[0] || dead[1] || dead[2])
#endif

/* Rank r's buffers are its own again. */
inline give_back(r, how)
{
	j = 0;
	do
	:: j < RANKS ->
		assert(dead[j] || !runs[j] ||
		       !((t_ranks[runs[j] - 1] >> r) & 1));
		j++
	:: else -> break
	od;
	outcome[r] = how;
	given_back = given_back | (1 << r)
}

#define MORE	(e != LAST)
#ifdef MUT_DRAIN_DEAD
#define DEAD_SHARE(x)	false
#else
#define DEAD_SHARE(x)	dead[x]
#endif
#ifdef OWN
#define MAY_TAKE(x, t)	(IS_READY(t) && t_rank[t] == (x))
#define SOME_READY(x)	(ready & owned[x])
#else
#define MAY_TAKE(x, t)	IS_READY(t)
#define SOME_READY(x)	ready
#endif

proctype member(byte r) provided (!dead[r])
{
	byte e = START, x, v = NONE, i, seen = NONE;

	do
	:: MORE && SOME_DEAD ->
		/* arm refuses: EPIPE, or EOWNERDEAD */
		d_step { give_back(r, refused) };
		break
	:: MORE && !SOME_DEAD ->
		d_step {
			assert(retired[r] == e);
			e = (e + 1) & EMASK;
			armed[r] = e;
			v = ARM(r)
		};
		do
		COMPLETION
		:: v == NONE -> break
		od;
		returned[r] = e;
		/* wait */
		do
		:: retired[r] == e -> break
		:: retired[r] != e && broken[r] -> break
		:: d_step {
			retired[r] != e && !broken[r] && SOME_MISSED(e) ->
			/* break the group: the cause once ... */
			x = 0;
			do
			:: !MISSED(x, e) -> x++
			:: else -> break
			od;
			if
			:: !cause -> cause = x + 1
			:: else
			fi;
			x = 0
		   };
			/* ... then every rank's word */
			do
			:: x < RANKS -> d_step { broken[x] = true; x++ }
			:: else -> x = 0; break
			od
		od;
		if
		:: retired[r] == e
		:: else ->
			/* drain: wait for whoever may run, but not for the dead */
#ifndef MUT_NO_DRAIN
			do
			:: x < RANKS ->
				d_step { !inflight[x] || DEAD_SHARE(x) -> x++ }
			:: else -> x = 0; break
			od;
#endif
			atomic {
				assert(cause && dead[cause - 1]);
				give_back(r, failed)
			};
			break
		fi
	:: !MORE ->
		d_step { give_back(r, success) };
		break
	od
}

proctype producer(byte r) provided (!dead[r])
{
	byte e = START, k, a, v = NONE, i, seen = NONE;

	do
	:: e != LAST ->
		d_step {
			returned[r] == ((e + 1) & EMASK) ->
			e = (e + 1) & EMASK;
			k = 0;
			do
			:: k < ORDER -> begin_tile(order[r * ORDER + k]); k++
			:: else -> k = 0; break
			od
		};
		do
		:: k < ORDER ->
			d_step { end_tile(order[r * ORDER + k], e) };
			atomic {
				a = armed[r];
				if
				:: CLAIMABLE(order[r * ORDER + k], a) ->
					claim(order[r * ORDER + k], a)
				:: else
				fi;
				a = 0;
				k++
			};
			do
			COMPLETION
			:: v == NONE -> break
			od
		:: else -> k = 0; break
		od
	:: else -> break
	od
}

/* Runs ready triggers until the group breaks. */
proctype executor(byte x) provided (!dead[x])
{
	byte t, v = NONE, i, seen = NONE;
	bool stop;

	do
	:: stop -> break
	:: !stop && SOME_READY(x) ->
		/* raise the count, then read the group's broken word, then run */
#ifdef MUT_BROKEN_FIRST
		stop = (cause != 0);
		inflight[x]++;
#else
		inflight[x]++;
		stop = (cause != 0);
#endif
		if
		:: !stop ->
			/* take any one that is ready: one atomic step */
			atomic {
				do
				:: t < TRIGGERS && MAY_TAKE(x, t) -> break
				:: t < TRIGGERS -> t++
				:: t == TRIGGERS -> break
				od;
				if
				:: t == TRIGGERS -> t = 0
				:: else ->
					ready = ready & ~(1 << t);
					runs[x] = t + 1;
					assert(!(given_back & t_ranks[t]));
					t = 0
				fi
			};
			if
			:: runs[x] ->
				d_step {
					end_trigger(runs[x] - 1);
					n = t_dst[runs[x] - 1];
					count[n] = (count[n] + 1) & EMASK;
					v = runs[x] - 1;
					runs[x] = 0
				};
				do
				COMPLETION
				:: v == NONE -> break
				od
			:: else
			fi
		:: else
		fi;
		inflight[x]--
	od
}

/* Up to DEATHS ranks die, at any moment, or none does. */
proctype killer()
{
	byte deaths, x;

	do
	:: deaths < DEATHS ->
		atomic {
			do
			:: x < RANKS - 1 -> x++
			:: !dead[x] -> break
			od;
			dead[x] = true;
			x = 0;
			deaths++
		}
	:: true -> break
	od
}

init
{
	byte r;

	atomic {
		start_machine();
		do
		:: r < RANKS ->
			returned[r] = START;
			run member(r);
			run producer(r);
			run executor(r);
			r++
		:: else -> r = 0; break
		od;
		run killer()
	};
	/* nobody can do anything any more: has every survivor its answer? */
	timeout;
	d_step {
		r = 0;
		do
		:: r < RANKS ->
			assert(dead[r] || outcome[r] != working);
			assert(outcome[r] != success || retired[r] == LAST);
			assert(SOME_DEAD || outcome[r] == success);
			r++
		:: else -> break
		od
	}
}
