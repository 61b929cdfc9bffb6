/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A block of two tiles, reported by two producers while its rank arms: each
 * epoch's production is claimed exactly once, by whoever sees it complete.
 *
 * Weak memory: each process has a store buffer for what the others wait for
 * (a member's `armed`, a producer's add to `tiles`): it may reach memory any
 * time later, unless a fence waits for it. So the pattern "write mine, look at
 * yours" is checked with what real processors do to it.
 *
 * Producers start when the last epoch has retired, before the rank has armed:
 * the worst case, and what a producer that cannot make system calls can do.
 *
 * C: t3_machine_arm(), t3_machine_look(), t3_machine_tiles().
 */
#define MASK	7
#define START	6
#define EPOCHS	3
#define LAST	((START + EPOCHS) & MASK)
#define T	2
#define REACHED(a, b)	((((a) - (b)) & MASK) < 4)
#define NONE	255

byte armed = START;
byte tiles = (START * T) & MASK;
byte claimed = START;
byte retired = START;
byte produced;		/* claims in this epoch */

/* Store buffers: what is written but not seen by others yet. */
byte armed_buffer = NONE;
bool tile_buffer[2];

/* Anything in a buffer reaches memory at some moment. */
active proctype memory()
{
end:	do
	:: d_step { armed_buffer != NONE -> armed = armed_buffer; armed_buffer = NONE }
	:: d_step { tile_buffer[0] -> tiles = (tiles + 1) & MASK; tile_buffer[0] = false }
	:: d_step { tile_buffer[1] -> tiles = (tiles + 1) & MASK; tile_buffer[1] = false }
	od
}

/* Who claims the production retires the epoch: here nothing else is left. */
inline retire_now()
{
	d_step {
		produced++;
		assert(produced == 1);
		assert(retired == ((claimed - 1) & MASK));
		assert(tiles == ((claimed * T) & MASK));
		retired = claimed;
		produced = 0
	}
}

inline claim(e)
{
#ifdef MUT_NO_CAS
	if
	:: REACHED(tiles, (e) * T) && claimed == (((e) - 1) & MASK) ->
		claimed = e;
		retire_now()
	:: else
	fi
#else
	atomic {
		if
		:: REACHED(tiles, (e) * T) && claimed == (((e) - 1) & MASK) ->
			claimed = e;
			retire_now()
		:: else
		fi
	}
#endif
}

active proctype member()
{
	byte e = START;

	do
	:: e != LAST ->
		d_step { retired == e -> e = (e + 1) & MASK; armed_buffer = e };
#ifndef MUT_NO_FENCE_ARM
		armed_buffer == NONE;		/* full fence */
#endif
#ifndef MUT_NO_LOOK
		claim(e)
#endif
	:: else -> break
	od;
	retired == LAST
}

active [2] proctype producer()
{
	byte e = START, a;

	do
	:: e != LAST ->
		/* the last tile of the last epoch is out, or it had not retired */
		d_step { retired == e && !tile_buffer[_pid - 2] -> e = (e + 1) & MASK };
		tile_buffer[_pid - 2] = true;
#ifndef MUT_NO_FENCE_TILE
		!tile_buffer[_pid - 2];		/* full fence */
#endif
		a = armed;
		claim(a);
		a = 0
	:: else -> break
	od;
	retired == LAST
}
