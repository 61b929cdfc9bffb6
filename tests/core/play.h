/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Playing a world on the machine: what an engine does, in its simplest form.
 */
#ifndef T3_TEST_PLAY_H
#define T3_TEST_PLAY_H

#include "machine.h"
#include "ready.h"
#include "world.h"

/**
 * struct play - a plan under way
 * @m: the machine; first, so that its ops find the rest
 * @w: the world
 * @graph: its graph
 * @ready: triggers that may run
 * @mask: of @ready
 * @fired: [triggers] how often each was handed out, atomic
 * @broken: the group's broken word
 * @inflight: of all executors
 *
 * Any number of threads: the machine's rules are what is tested.
 */
struct play {
	struct t3_machine m;
	struct world *w;
	struct t3_graph graph;
	struct t3_ready *ready;
	u32 mask;
	u32 *fired;
	u64 broken;
	u32 inflight;
	u32 retired[WORLD_RANKS];
	void *mem[4];
	u32 tiles[WORLD_RANKS][WORLD_BLOCKS];
	u32 count[WORLD_RANKS][WORLD_BLOCKS];
};

/**
 * play_verdict - check all parts and build the graph
 * @p: out
 * @w: the world
 * @v: out
 *
 * Return: 0, then play_end(); or the negative errno, all freed.
 */
int play_verdict(struct play *p, struct world *w, struct t3_verdict *v);

/* Start the machine as if @epoch had just retired. */
void play_start(struct play *p, u32 epoch);
void play_end(struct play *p);

/* Run one ready trigger; false where there is none, or the group broke. */
bool play_run(struct play *p);

/* Write a block's data and count its tiles, one by one. */
void play_produce(struct play *p, u32 rank, u32 block, u32 epoch);

#endif /* T3_TEST_PLAY_H */
