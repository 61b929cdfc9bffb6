/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The T3 paper's variants of one sublayer: a GEMM, a reduce-scatter of its
 * output, and an all-gather.
 */
#ifndef T3_MODEL_VARIANTS_H
#define T3_MODEL_VARIANTS_H

#include "machine_file.h"
#include "sim.h"

enum model_variant {
	MODEL_SEQUENTIAL,	/* one after the other */
	MODEL_T3,		/* fused, round robin */
	MODEL_T3_MCA,		/* fused, compute first */
	MODEL_IDEAL,		/* the longer of GEMM and reduce-scatter */
	MODEL_IDEAL_NMC,	/* likewise, memory adds */
	MODEL_VARIANTS
};

/**
 * struct model_sublayer - a sublayer's sizes
 * @m: rows of the output
 * @n: columns
 * @k: length of the dot products
 * @dtype: T3_DTYPE_*
 * @ranks: 2 .. MODEL_MAX_RANKS; of one node
 * @nodes: 0 or 1: one; else so many nodes, each rank reduces its shard over a
 *	ring of those at its place in the other nodes, after the GEMM
 */
struct model_sublayer {
	uint64_t m;
	uint64_t n;
	uint64_t k;
	uint32_t dtype;
	uint32_t ranks;
	uint32_t nodes;
};

/**
 * struct model_answer - what was found out about a sublayer
 * @gemm: the GEMM alone
 * @rs: the reduce-scatter alone, run by units
 * @rs_nmc: the same where memory adds; its time is @rs.time where it does not
 * @ag: the all-gather alone
 * @fused: GEMM with reduce-scatter, MODEL_T3 and MODEL_T3_MCA only
 * @nodes: seconds of reduce-scatter and all-gather between nodes, 0: one node
 * @time: seconds, all-gather and what is between nodes included
 * @bytes: of a rank's memory, all-gather included, between nodes not
 * @ranks: how many were simulated; 1: one stood for all
 * @sum_units: units that the sums of the fused variants had
 */
struct model_answer {
	struct model_result gemm;
	struct model_result rs;
	struct model_result rs_nmc;
	struct model_result ag;
	struct model_result fused[MODEL_VARIANTS];
	double nodes;
	double time[MODEL_VARIANTS];
	double bytes[MODEL_VARIANTS];
	uint32_t ranks;
	uint32_t sum_units;
};

/**
 * model_ask - simulate a sublayer's variants
 * @answer: out; model_answer_free() it
 * @machine: where
 * @sublayer: what
 * @trace: keep the timelines
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_ask(struct model_answer *answer, const struct model_machine *machine,
	      const struct model_sublayer *sublayer, bool trace);

/* Free what model_ask() allocated. */
void model_answer_free(struct model_answer *answer);

/**
 * model_gemm_ask - simulate a GEMM alone
 * @seconds: out
 * @machine: where
 * @sublayer: what
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_gemm_ask(double *seconds, const struct model_machine *machine,
		   const struct model_sublayer *sublayer);

/* The work that model_ask() plans; @op is T3_REDUCE_SCATTER or T3_ALL_GATHER. */
struct model_work model_work_of(const struct model_machine *machine,
				const struct model_sublayer *sublayer,
				uint32_t op);

/* Speedup over MODEL_SEQUENTIAL. */
double model_speedup(const struct model_answer *answer, enum model_variant v);

/* All bytes of memory in a traffic. */
double model_traffic_bytes(const struct model_traffic *traffic);

/* "T3-MCA" and the like. */
const char *model_variant_name(enum model_variant v);

#endif /* T3_MODEL_VARIANTS_H */
