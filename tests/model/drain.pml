/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Executors against a breaker, with store buffers: an executor raises its
 * in-flight count, then reads `broken`; the breaker writes `broken`, then the
 * word of each rank; a survivor that sees its rank's word waits for the counts
 * and has its buffers back. Nobody runs on memory that was given back: an
 * executor's run is on the buffers of both ranks.
 *
 * C: t3_machine_enter(), t3_machine_leave(); the breaker is the engine's.
 */
#define EXECUTORS	2
#define RUNS		2

bool broken;
bool broken_buffer;
bool word[EXECUTORS];	/* of each rank. C: T3_STATUS_BROKEN */
byte inflight[EXECUTORS];
bool inflight_buffer[EXECUTORS];	/* an add of 1 that is on its way */
byte running;
bool given_back;

active proctype memory()
{
end:	do
	:: d_step { broken_buffer -> broken = true; broken_buffer = false }
	:: d_step { inflight_buffer[0] -> inflight[0]++; inflight_buffer[0] = false }
	:: d_step { inflight_buffer[1] -> inflight[1]++; inflight_buffer[1] = false }
	od
}

inline raise(x)
{
	inflight_buffer[x] = true;
#ifndef MUT_NO_FENCE_ENTER
	!inflight_buffer[x]			/* full fence */
#endif
}

proctype executor(byte x)
{
	byte k;
	bool stop;

	do
	:: k < RUNS ->
#ifdef MUT_BROKEN_FIRST
		stop = broken;
		raise(x);
#else
		raise(x);
#ifdef MUT_OWN_WORD
		stop = word[x];
#else
		stop = broken;
#endif
#endif
		if
		:: !stop ->
			d_step { assert(!given_back); running++ };
			d_step { assert(!given_back); running-- }
		:: else
		fi;
		/* a later add to the same word comes after the earlier */
		atomic { !inflight_buffer[x] -> inflight[x]-- };
		if
		:: stop -> break
		:: else -> k++
		fi
	:: else -> break
	od
}

proctype breaker()
{
	broken_buffer = true;
#ifndef MUT_NO_FENCE_BREAK
	!broken_buffer;				/* full fence */
#endif
	word[0] = true;
	word[1] = true
}

proctype survivor(byte r)
{
	byte x;

	word[r];
	do
	:: x < EXECUTORS -> !inflight[x]; x++
	:: else -> break
	od;
	atomic { assert(!running); given_back = true }
}

init
{
	atomic { run executor(0); run executor(1); run breaker();
		 run survivor(0); run survivor(1) }
}
