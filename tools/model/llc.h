/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A last-level cache that holds pieces of matrices: strips of input panels,
 * and tiles of output.
 *
 * Its sets are found by a hash and each evicts what was used longest ago. So
 * a line is still there if fewer other lines than the set has ways have come
 * to the set since; their number is Poisson distributed about the bytes used
 * since then. Every use is counted by this likelihood: no dice, no cliff.
 */
#ifndef T3_MODEL_LLC_H
#define T3_MODEL_LLC_H

#include <stdbool.h>
#include <stdint.h>

struct model_llc;

/**
 * model_llc_new - a cache, empty
 * @bytes: its size
 * @ways: of a set
 * @pieces: pieces are numbered 0 .. @pieces - 1
 * @uses: most calls of model_llc_use()
 *
 * Return: the cache, or NULL: no memory.
 */
struct model_llc *model_llc_new(double bytes, uint32_t ways, uint32_t pieces,
				uint32_t uses);

/* Free a cache; NULL is fine. */
void model_llc_free(struct model_llc *llc);

/**
 * model_llc_use - read or write a piece
 * @llc: the cache
 * @piece: which
 * @bytes: of it, the same at each use
 *
 * Return: the share of it that is not there any more, 0 .. 1; 1 at its first
 * use.
 */
double model_llc_use(struct model_llc *llc, uint32_t piece, double bytes);

#endif /* T3_MODEL_LLC_H */
