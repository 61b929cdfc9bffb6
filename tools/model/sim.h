/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulation of one epoch: the core's dataflow machine says what may run,
 * memory, links and engines say how long it takes.
 */
#ifndef T3_MODEL_SIM_H
#define T3_MODEL_SIM_H

#include "gemm.h"
#include "machine_file.h"
#include "plan.h"

/* Who carries out triggers. */
enum model_carrier {
	MODEL_BY_UNITS,		/* compute units, in a collective kernel: the baseline */
	MODEL_BY_MEMORY,	/* DMA engines, and memory adds */
	MODEL_BY_SUMS,		/* DMA engines copy, a few units add */
};

/**
 * struct model_run - how a plan is run
 * @gemm: its GEMM, at all ranks; NULL: everything is produced at once
 * @carrier: enum model_carrier
 * @policy: enum model_policy
 * @units: units that carry the collective (MODEL_BY_UNITS); 0: as many as
 *	the link asks for
 * @alone: triggers cost nothing: the GEMM's own time
 * @trace: keep the timeline of rank 0
 */
struct model_run {
	const struct model_gemm *gemm;
	uint32_t carrier;
	uint32_t policy;
	uint32_t units;
	bool alone;
	bool trace;
};

/**
 * struct model_traffic - bytes of one rank's memory and link, by cause
 * @gemm_read: inputs
 * @gemm_write: outputs stored in the rank's own memory
 * @comm_read: read to be sent, or to be added by units
 * @comm_write: written, or updated in memory, by transfers
 * @link_out: bytes that left
 * @link_in: bytes that came
 */
struct model_traffic {
	double gemm_read;
	double gemm_write;
	double comm_read;
	double comm_write;
	double link_out;
	double link_in;
};

/* What a span of a timeline is. */
enum model_span_kind {
	MODEL_SPAN_STAGE, MODEL_SPAN_STORE, MODEL_SPAN_REMOTE,
	MODEL_SPAN_TRANSFER,
};

/**
 * struct model_span - something on a timeline
 * @kind: enum model_span_kind
 * @shard: which, or the number of the stage
 * @begin: seconds
 * @end: seconds
 */
struct model_span {
	uint32_t kind;
	uint32_t shard;
	double begin;
	double end;
};

/**
 * struct model_result - what came out
 * @time: until the last rank retired
 * @gemm: until the last rank's GEMM was over
 * @traffic: of the mean rank
 * @updates: updates of blocks, of all simulated ranks
 * @wanted: updates that the programs ask for
 * @tracked: the most entries of the tracker that were in use at a rank
 * @events: of the simulation
 * @span: the timeline, or NULL
 * @spans: how many
 */
struct model_result {
	double time;
	double gemm;
	struct model_traffic traffic;
	uint64_t updates;
	uint64_t wanted;
	uint32_t tracked;
	uint64_t events;
	struct model_span *span;
	uint32_t spans;
};

/**
 * model_sim - simulate one epoch
 * @result: out; free(@result->span)
 * @machine: where
 * @plan: what
 * @run: how
 *
 * The same input gives the same output, to the bit.
 *
 * Return: 0; -ENOMEM; -EDEADLK the plan did not retire (a defect).
 */
int model_sim(struct model_result *result, const struct model_machine *machine,
	      const struct model_plan *plan, const struct model_run *run);

#endif /* T3_MODEL_SIM_H */
