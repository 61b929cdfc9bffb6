/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small world to test the core in: programs of a few ranks, at random, their
 * memory, and a slow, obvious reference that says what they mean.
 */
#ifndef T3_TEST_WORLD_H
#define T3_TEST_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"

#define WORLD_RANKS	4
#define WORLD_GRIDS	2
#define WORLD_CUTS	5
#define WORLD_BLOCKS	32
#define WORLD_TRIGGERS	48
#define WORLD_SOURCES	256
#define WORLD_BYTES	4096

/**
 * struct world_rank - one rank's program in fixed arrays, and its memory
 *
 * grid[].base is an offset into the memory, plus WORLD_BASE.
 */
struct world_rank {
	struct t3_program prog;
	struct t3_grid grid[WORLD_GRIDS];
	u32 row_cuts[WORLD_GRIDS][WORLD_CUTS];
	u32 col_cuts[WORLD_GRIDS][WORLD_CUTS];
	struct t3_plan_block block[WORLD_BLOCKS];
	struct t3_trigger trigger[WORLD_TRIGGERS];
	struct t3_source source[WORLD_SOURCES];
	u8 memory[WORLD_BYTES] __attribute__((aligned(64)));
};

#define WORLD_BASE	0x1000

struct world {
	u32 ranks;
	struct world_rank rank[WORLD_RANKS];
};

/* A small generator of numbers: the same seed, the same world. */
struct rng {
	u64 state;
};

u64 rng_next(struct rng *rng);
u32 rng_below(struct rng *rng, u32 n);
bool rng_chance(struct rng *rng, u32 percent);

/**
 * world_make - programs at random: most of them sound, some spoiled
 * @w: out
 * @rng: the dice
 * @spoil: percent of worlds that get a fault or two
 */
void world_make(struct world *w, struct rng *rng, u32 spoil);

/* Bytes of a block's element (row, col): where the reference finds it. */
u8 *world_element(struct world *w, u32 rank, u32 block, u32 row, u32 col);
struct t3_rect world_rect(const struct world *w, u32 rank, u32 block);
u32 world_dtype(const struct world *w, u32 rank, u32 block);

/* What a local producer writes into a block in an epoch. */
void world_produce(struct world *w, u32 rank, u32 block, u32 epoch);

/**
 * world_fault - is this fault, as a verdict names it, really there?
 * @w: the programs
 * @v: the verdict of a refusal
 */
bool world_fault(struct world *w, const struct t3_verdict *v);

/* Is there any fault at all? Looks for all that a verdict can name. */
bool world_any_fault(struct world *w);

/**
 * world_epoch - carry out one epoch of sound programs, one update at a time
 * @w: the programs and their memory
 * @epoch: for what producers write
 */
void world_epoch(struct world *w, u32 epoch);

#endif /* T3_TEST_WORLD_H */
