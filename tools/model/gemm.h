/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The GEMM: stages of work-groups, and what each stage reads from memory
 * through a finite last-level cache.
 */
#ifndef T3_MODEL_GEMM_H
#define T3_MODEL_GEMM_H

#include "machine_file.h"
#include "plan.h"

/**
 * struct model_stage - work-groups that run at the same time
 * @first: the first tile
 * @tiles: how many
 * @work: seconds of its main loop with nothing in the way
 * @reads: bytes of inputs that it reads from memory
 * @first_reads: those of them that it asks for before it computes
 * @missing: share of its steps that wait for memory, not only for the cache
 * @writes: bytes of outputs
 */
struct model_stage {
	uint32_t first;
	uint32_t tiles;
	double work;
	double reads;
	double first_reads;
	double missing;
	double writes;
};

/**
 * struct model_gemm - a rank's GEMM
 * @stage: its stages
 * @stages: how many
 * @step: seconds of one step of a main loop
 * @reads: bytes of inputs that all stages read from memory
 * @intensity: share of memory's rate that the first stage asks for
 *
 * Constant after it is made.
 */
struct model_gemm {
	struct model_stage *stage;
	uint32_t stages;
	double step;
	double reads;
	double intensity;
};

/**
 * model_gemm_make - cut a GEMM into stages and find their reads
 * @gemm: out
 * @machine: where it runs
 * @work: its size
 * @rank: its tiles
 * @units: compute units that it has
 * @cached: outputs go through the cache, where they displace inputs
 *
 * Return: 0 or -ENOMEM.
 */
int model_gemm_make(struct model_gemm *gemm,
		    const struct model_machine *machine,
		    const struct model_work *work,
		    const struct model_rank *rank, uint32_t units,
		    bool cached);

/* Free what model_gemm_make() allocated; @gemm is all zero afterwards. */
void model_gemm_free(struct model_gemm *gemm);

#endif /* T3_MODEL_GEMM_H */
