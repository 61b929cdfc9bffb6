/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The poller's sleep, with store buffers: two producers report tiles by adding
 * to memory; the poller looks, and before it sleeps sets need_wakeup, fences
 * and looks again; a producer adds, fences, reads need_wakeup and notifies if
 * it is set. The poller never sleeps through a tile: here that would be a
 * deadlock, since the producers wait for each epoch to be claimed.
 *
 * Lets the poller fall asleep at once (poll_us = 0), the worst case.
 */
#define EPOCHS	3
#define TILES	2

byte tiles;		/* grows; 2 an epoch */
bool tile_buffer[TILES];
byte claimed;		/* epochs; written by the poller */
bool need_wakeup;
byte need_buffer = 2;	/* 2: nothing on its way, else the value */
bool woken;		/* a wake-up, sticky until the sleeper takes it */

active proctype memory()
{
end:	do
	:: d_step { tile_buffer[0] -> tiles++; tile_buffer[0] = false }
	:: d_step { tile_buffer[1] -> tiles++; tile_buffer[1] = false }
	:: d_step { need_buffer != 2 -> need_wakeup = need_buffer; need_buffer = 2 }
	od
}

#define FOUND	(tiles == (claimed + 1) * TILES)

active proctype poller()
{
	do
	:: claimed == EPOCHS -> break
	:: else ->
		if
		:: FOUND -> claimed++		/* look */
		:: else ->
			/* stores of one process to one word stay in order */
			d_step { need_buffer == 2 -> need_buffer = 1 };
#ifndef MUT_NO_FENCE_POLLER
			need_buffer == 2;		/* full fence */
#endif
#ifndef MUT_NO_SECOND_LOOK
			if
			:: FOUND			/* look again */
			:: else ->
				d_step { woken -> woken = false }	/* sleep */
			fi;
#else
			d_step { woken -> woken = false };
#endif
			d_step { need_buffer == 2 -> need_buffer = 0 }
		fi
	od
}

active [TILES] proctype producer()
{
	byte e;

	do
	:: e < EPOCHS ->
		d_step { claimed == e && !tile_buffer[_pid - 2] -> e++ };
		tile_buffer[_pid - 2] = true;
#ifndef MUT_NO_FENCE_PRODUCER
		!tile_buffer[_pid - 2];			/* full fence */
#endif
		if
		:: need_wakeup -> woken = true		/* NOTIFY */
		:: else
		fi
	:: else -> break
	od;
	claimed == EPOCHS
}
