// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The last-level cache.
 */
#include <math.h>
#include <stdlib.h>

#include "llc.h"

/**
 * struct model_llc - a cache
 * @bytes: its size
 * @ways: of a set
 * @uses: most uses
 * @now: uses so far
 * @sum: Fenwick tree over the uses: bytes of the pieces used last then
 * @last: [pieces] a piece's last use, counted from 1; 0: none
 *
 * One thread's.
 */
struct model_llc {
	double bytes;
	uint32_t ways;
	uint32_t uses;
	uint32_t now;
	double *sum;
	uint32_t *last;
};

struct model_llc *model_llc_new(double bytes, uint32_t ways, uint32_t pieces,
				uint32_t uses)
{
	struct model_llc *llc = calloc(1, sizeof(*llc));

	if (!llc)
		return NULL;
	llc->bytes = bytes;
	llc->ways = ways;
	llc->uses = uses;
	llc->sum = calloc((size_t)uses + 1, sizeof(*llc->sum));
	llc->last = calloc(pieces ? pieces : 1, sizeof(*llc->last));
	if (!llc->sum || !llc->last) {
		model_llc_free(llc);
		return NULL;
	}
	return llc;
}

void model_llc_free(struct model_llc *llc)
{
	if (!llc)
		return;
	free(llc->sum);
	free(llc->last);
	free(llc);
}

static void add(struct model_llc *llc, uint32_t use, double bytes)
{
	for (; use <= llc->uses; use += use & -use)
		llc->sum[use] += bytes;
}

/* Bytes of the pieces whose last use is no later than @use. */
static double upto(const struct model_llc *llc, uint32_t use)
{
	double bytes = 0;

	for (; use; use -= use & -use)
		bytes += llc->sum[use];
	return bytes;
}

/* The likelihood that a set got as many lines as it has ways, or more. */
static double gone(const struct model_llc *llc, double since)
{
	double mean = llc->ways * since / llc->bytes;
	double term = exp(-mean);
	double stays = 0;
	uint32_t i;

	for (i = 0; i < llc->ways; i++) {
		stays += term;
		term *= mean / (i + 1);
	}
	return stays < 1 ? 1 - stays : 0;
}

double model_llc_use(struct model_llc *llc, uint32_t piece, double bytes)
{
	uint32_t last = llc->last[piece];
	double missing = 1;

	llc->now++;
	if (last) {
		missing = gone(llc, upto(llc, llc->now) - upto(llc, last));
		add(llc, last, -bytes);
	}
	add(llc, llc->now, bytes);
	llc->last[piece] = llc->now;
	return missing;
}
