// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The GEMM's stages.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "llc.h"

/* An input panel is cached in so many strips along K, at most. */
#define STRIPS	16

/**
 * struct maker - a GEMM in the making
 * @gemm: out
 * @machine: where it runs
 * @work: its size
 * @rank: its tiles
 * @element: bytes
 * @strips: strips of a panel
 * @rows: rows of tiles
 * @cols: columns of tiles
 * @cached: outputs go through the cache
 * @llc: the cache; pieces are strips of rows, strips of columns, tiles
 */
struct maker {
	struct model_gemm *gemm;
	const struct model_machine *machine;
	const struct model_work *work;
	const struct model_rank *rank;
	uint32_t element;
	uint32_t strips;
	uint32_t rows;
	uint32_t cols;
	bool cached;
	struct model_llc *llc;
};

static double strip_bytes(const struct maker *m, double lines)
{
	return lines * (double)m->work->k / m->strips * m->element;
}

/*
 * All work-groups of a stage go along K together. The first to use a strip
 * that is not there waits for memory, and so do the others that use it then.
 */
static void use_strip(struct maker *m, struct model_stage *stage, uint32_t k,
		      double *missed)
{
	double a = strip_bytes(m, m->machine->tile_m);
	double b = strip_bytes(m, m->machine->tile_n);
	double *left = missed, *top = missed + m->rows;
	double waits = 0;
	uint32_t i;

	for (i = 0; i < m->rows + m->cols; i++)
		missed[i] = 0;
	for (i = stage->first; i < stage->first + stage->tiles; i++) {
		const struct model_tile *t = &m->rank->tile[i];
		double x = model_llc_use(m->llc, t->row * m->strips + k, a);
		double y = model_llc_use(m->llc, (m->rows + t->col) * m->strips +
					 k, b);

		stage->reads += x * a + y * b;
		left[t->row] = fmax(left[t->row], x);
		top[t->col] = fmax(top[t->col], y);
		waits += 1 - (1 - left[t->row]) * (1 - top[t->col]);
	}
	stage->missing += waits / stage->tiles / m->strips;
}

static double tile_bytes(const struct maker *m, uint32_t tile)
{
	const struct model_tile *t = &m->rank->tile[tile];
	double bytes = 0;
	uint32_t i;

	for (i = 0; i < t->pieces; i++)
		bytes += m->rank->piece[t->first_piece + i].bytes;
	return bytes;
}

static void use_outputs(struct maker *m, const struct model_stage *stage)
{
	uint32_t first = (m->rows + m->cols) * m->strips;
	uint32_t i;

	for (i = stage->first; i < stage->first + stage->tiles; i++)
		model_llc_use(m->llc, first + i, tile_bytes(m, i));
}

static void fill_stage(struct maker *m, struct model_stage *stage,
		       double *missed)
{
	const struct model_machine *machine = m->machine;
	double early = (machine->prefetch - 1) * machine->tile_k /
		       (double)m->work->k;
	uint32_t i, k;

	stage->work = ceil((double)m->work->k / machine->tile_k) * m->gemm->step;
	for (k = 0; k < m->strips; k++)
		use_strip(m, stage, k, missed);
	for (i = stage->first; i < stage->first + stage->tiles; i++)
		stage->writes += tile_bytes(m, i);
	if (m->cached)
		use_outputs(m, stage);
	stage->first_reads = stage->reads * (early < 1 ? early : 1);
	m->gemm->reads += stage->reads;
}

static int fill(struct maker *m, uint32_t units)
{
	struct model_gemm *gemm = m->gemm;
	double *missed = calloc(m->rows + m->cols, sizeof(*missed));
	uint32_t i;

	if (!missed)
		return -ENOMEM;
	for (i = 0; i < gemm->stages; i++) {
		struct model_stage *stage = &gemm->stage[i];

		stage->first = i * units;
		stage->tiles = m->rank->tiles - stage->first;
		if (stage->tiles > units)
			stage->tiles = units;
		fill_stage(m, stage, missed);
	}
	gemm->intensity = (gemm->stage[0].reads + gemm->stage[0].writes) /
			  gemm->stage[0].work / m->machine->dram;
	free(missed);
	return 0;
}

int model_gemm_make(struct model_gemm *gemm,
		    const struct model_machine *machine,
		    const struct model_work *work,
		    const struct model_rank *rank, uint32_t units,
		    bool cached)
{
	double steps = ceil((double)work->k / machine->tile_k);
	struct maker m = {
		.gemm = gemm,
		.machine = machine,
		.work = work,
		.rank = rank,
		.element = model_element(work->dtype),
		.strips = steps < STRIPS ? (uint32_t)steps : STRIPS,
		.cached = cached,
	};
	uint32_t i;
	int ret = -ENOMEM;

	memset(gemm, 0, sizeof(*gemm));
	for (i = 0; i < rank->tiles; i++) {
		m.rows = fmax(m.rows, rank->tile[i].row + 1);
		m.cols = fmax(m.cols, rank->tile[i].col + 1);
	}
	gemm->step = 2 * machine->tile_m * machine->tile_n * machine->tile_k /
		     model_unit_rate(machine, m.element);
	if (work->k * m.element % 16)
		gemm->step /= machine->unaligned;
	gemm->stages = (rank->tiles + units - 1) / units;
	gemm->stage = calloc(gemm->stages, sizeof(*gemm->stage));
	m.llc = model_llc_new(machine->llc, (uint32_t)machine->llc_ways,
			      (m.rows + m.cols) * m.strips + rank->tiles,
			      rank->tiles * (2 * m.strips + 1));
	if (gemm->stage && m.llc)
		ret = fill(&m, units);
	model_llc_free(m.llc);
	if (ret)
		model_gemm_free(gemm);
	return ret;
}

void model_gemm_free(struct model_gemm *gemm)
{
	free(gemm->stage);
	memset(gemm, 0, sizeof(*gemm));
}
