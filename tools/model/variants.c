// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The paper's variants.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "variants.h"

/**
 * struct asker - a question under way
 * @answer: out
 * @machine: where
 * @sublayer: what
 * @rs: the plan of the reduce-scatter
 * @cached: the GEMM on all units, its output in the cache
 * @fused: the GEMM of the fused variants
 */
struct asker {
	struct model_answer *answer;
	const struct model_machine *machine;
	const struct model_sublayer *sublayer;
	struct model_plan rs;
	struct model_gemm cached;
	struct model_gemm fused;
};

struct model_work model_work_of(const struct model_machine *machine,
				const struct model_sublayer *sublayer,
				uint32_t op)
{
	const struct model_sublayer *s = sublayer;
	/* Shards cut the longer axis: panels of the shorter one stay cached. */
	bool turned = s->n > s->m;
	bool ring = machine->topology == MODEL_RING || s->ranks > T3_MAX_RANKS;
	struct model_work work = {
		.rows = turned ? s->n : s->m,
		.cols = turned ? s->m : s->n,
		.k = op == T3_REDUCE_SCATTER ? s->k : 0,
		.dtype = s->dtype,
		.op = op,
		.algorithm = ring ? T3_ALG_RING : T3_ALG_DIRECT,
		.ranks = s->ranks,
		.layout = (uint32_t)machine->layout,
	};

	/*
	 * Large enough that what a transfer costs by itself is a tenth, where
	 * as many go on at once as can.
	 */
	work.block_bytes = (uint32_t)fmin(10 * machine->dma_fixed * machine->link /
					  fmax(machine->dma_engines, machine->sum_units),
					  T3_MAX_BLOCK_BYTES);
	work.fold = ring && work.rows % s->ranks == 0;
	return work;
}

static int no_memory(void)
{
	return t3_fail(ENOMEM, "model_ask: no memory");
}

static int simulate(struct model_result *result, const struct asker *a,
		    const struct model_plan *plan, const struct model_run *run)
{
	int ret = model_sim(result, a->machine, plan, run);

	if (ret == -EDEADLK)
		return t3_fail(EDEADLK, "model_sim: the plan did not retire: a defect of t3model");
	return ret ? no_memory() : 0;
}

static int ask_gemm(struct asker *a, bool trace)
{
	const struct model_machine *m = a->machine;
	struct model_run run = {
		.gemm = &a->cached, .policy = MODEL_NO_CONTENTION,
		.alone = true, .trace = trace,
	};

	if (model_gemm_make(&a->cached, m, &a->rs.work, &a->rs.rank[0],
			    (uint32_t)m->units, true))
		return no_memory();
	return simulate(&a->answer->gemm, a, &a->rs, &run);
}

int model_gemm_ask(double *seconds, const struct model_machine *machine,
		   const struct model_sublayer *sublayer)
{
	struct model_answer answer = { .sum_units = 0 };
	struct asker a = {
		.answer = &answer, .machine = machine, .sublayer = sublayer,
	};
	struct model_work work = model_work_of(machine, sublayer,
					       T3_REDUCE_SCATTER);
	int ret;

	ret = model_plan_make(&a.rs, &work, (uint32_t)machine->tile_m,
			      (uint32_t)machine->tile_n);
	if (!ret)
		ret = ask_gemm(&a, false);
	*seconds = answer.gemm.time;
	model_gemm_free(&a.cached);
	model_plan_free(&a.rs);
	return ret;
}

static int ask_collectives(struct asker *a, bool trace)
{
	struct model_work work = model_work_of(a->machine, a->sublayer,
					       T3_ALL_GATHER);
	struct model_run run = {
		.carrier = MODEL_BY_UNITS, .policy = MODEL_NO_CONTENTION,
		.trace = trace,
	};
	struct model_plan ag;
	int ret = simulate(&a->answer->rs, a, &a->rs, &run);

	if (ret)
		return ret;
	ret = model_plan_make(&ag, &work, (uint32_t)a->machine->tile_m,
			      (uint32_t)a->machine->tile_n);
	if (ret)
		return ret;
	ret = simulate(&a->answer->ag, a, &ag, &run);
	model_plan_free(&ag);
	a->answer->rs.time += a->machine->comm_launch;
	a->answer->ag.time += a->machine->comm_launch;
	if (ret)
		return ret;
	if (!a->machine->near_memory) {
		a->answer->rs_nmc = a->answer->rs;
		a->answer->rs_nmc.span = NULL;
		return 0;
	}
	run.carrier = MODEL_BY_MEMORY;
	run.trace = false;
	return simulate(&a->answer->rs_nmc, a, &a->rs, &run);
}

static int fuse(struct asker *a, enum model_variant v, uint32_t policy,
		bool trace)
{
	struct model_run run = {
		.gemm = &a->fused, .carrier = a->machine->near_memory ?
			MODEL_BY_MEMORY : MODEL_BY_SUMS,
		.policy = policy, .trace = trace,
	};
	struct model_result result;
	int ret = simulate(&result, a, &a->rs, &run);

	if (ret)
		return ret;
	free(a->answer->fused[v].span);
	a->answer->fused[v] = result;
	return 0;
}

/* The fused variants with so many units for sums. */
static int ask_fused(struct asker *a, bool trace)
{
	const struct model_machine *m = a->machine;
	int ret;

	if (model_gemm_make(&a->fused, m, &a->rs.work, &a->rs.rank[0],
			    (uint32_t)(m->units - m->sum_units), !m->near_memory))
		return no_memory();
	ret = fuse(a, MODEL_T3, MODEL_ROUND_ROBIN, trace);
	if (!ret)
		ret = fuse(a, MODEL_T3_MCA, MODEL_COMPUTE_FIRST, trace);
	model_gemm_free(&a->fused);
	return ret;
}

/*
 * How many units the sums should have differs by shape: half as many as the
 * machine would give, and half of that ... and the best is kept.
 */
static int search_fused(struct asker *a, bool trace)
{
	const struct model_machine *given = a->machine;
	struct model_machine tried = *given;
	double units, best = given->sum_units;
	double time = INFINITY;
	int ret = 0;

	a->machine = &tried;
	for (units = given->sum_units; units >= 1 && !ret; units = floor(units / 2)) {
		tried.sum_units = units;
		ret = ask_fused(a, false);
		if (!ret && a->answer->fused[MODEL_T3_MCA].time < time) {
			time = a->answer->fused[MODEL_T3_MCA].time;
			best = units;
		}
	}
	tried.sum_units = best;
	a->answer->sum_units = (uint32_t)best;
	if (!ret)
		ret = ask_fused(a, trace);
	a->machine = given;
	return ret;
}

double model_traffic_bytes(const struct model_traffic *traffic)
{
	return traffic->gemm_read + traffic->gemm_write + traffic->comm_read +
	       traffic->comm_write;
}

static void conclude(struct model_answer *answer)
{
	double gemm = answer->gemm.time, rs = answer->rs.time;
	double ag = answer->ag.time;
	double plain = model_traffic_bytes(&answer->gemm.traffic) +
		       model_traffic_bytes(&answer->rs.traffic);
	uint32_t v;

	answer->time[MODEL_SEQUENTIAL] = gemm + rs + ag;
	answer->time[MODEL_T3] = answer->fused[MODEL_T3].time + ag;
	answer->time[MODEL_T3_MCA] = answer->fused[MODEL_T3_MCA].time + ag;
	answer->time[MODEL_IDEAL] = fmax(gemm, rs) + ag;
	answer->time[MODEL_IDEAL_NMC] = fmax(gemm, answer->rs_nmc.time) + ag;
	for (v = 0; v < MODEL_VARIANTS; v++)
		answer->time[v] += answer->nodes;
	for (v = 0; v < MODEL_VARIANTS; v++)
		answer->bytes[v] = plain;
	answer->bytes[MODEL_IDEAL_NMC] =
		model_traffic_bytes(&answer->gemm.traffic) +
		model_traffic_bytes(&answer->rs_nmc.traffic);
	for (v = MODEL_T3; v <= MODEL_T3_MCA; v++)
		answer->bytes[v] = model_traffic_bytes(&answer->fused[v].traffic);
	for (v = 0; v < MODEL_VARIANTS; v++)
		answer->bytes[v] += model_traffic_bytes(&answer->ag.traffic);
}

/* A shard's ring over the nodes; rows that do not divide are rounded up. */
static int ask_nodes(struct asker *a)
{
	const struct model_sublayer *s = a->sublayer;
	struct model_machine between = *a->machine;
	struct model_work work = a->rs.work;
	struct model_run run = {
		.carrier = MODEL_BY_UNITS, .policy = MODEL_NO_CONTENTION,
	};
	struct model_result result;
	struct model_plan plan;
	uint32_t op;
	int ret = 0;

	if (between.net < 1e8)
		return t3_fail(EINVAL, "model_ask: nodes is %u, allowed is 1: %s has no net.rate",
			       s->nodes, between.name);
	between.topology = MODEL_RING;
	between.link = between.net;
	between.link_latency = between.net_latency;
	work.rows = (work.rows + s->ranks * (uint64_t)s->nodes - 1) /
		    (s->ranks * (uint64_t)s->nodes) * s->nodes;
	work.k = 0;
	work.ranks = s->nodes;
	work.algorithm = T3_ALG_RING;
	work.fold = true;
	a->machine = &between;
	for (op = T3_REDUCE_SCATTER; op <= T3_ALL_GATHER && !ret; op++) {
		work.op = op;
		ret = model_plan_make(&plan, &work, (uint32_t)between.tile_m,
				      (uint32_t)between.tile_n);
		if (ret)
			return ret;
		ret = simulate(&result, a, &plan, &run);
		model_plan_free(&plan);
		a->answer->nodes += result.time + between.comm_launch;
	}
	return ret;
}

int model_ask(struct model_answer *answer, const struct model_machine *machine,
	      const struct model_sublayer *sublayer, bool trace)
{
	struct asker a = {
		.answer = answer, .machine = machine, .sublayer = sublayer,
	};
	struct model_work work = model_work_of(machine, sublayer,
					       T3_REDUCE_SCATTER);
	int ret;

	memset(answer, 0, sizeof(*answer));
	ret = model_plan_make(&a.rs, &work, (uint32_t)machine->tile_m,
			      (uint32_t)machine->tile_n);
	if (ret)
		return ret;
	answer->ranks = a.rs.simulated;
	ret = ask_gemm(&a, trace);
	if (!ret)
		ret = ask_collectives(&a, trace);
	if (!ret)
		ret = search_fused(&a, trace);
	if (!ret && sublayer->nodes > 1)
		ret = ask_nodes(&a);
	if (!ret)
		conclude(answer);
	model_gemm_free(&a.cached);
	model_plan_free(&a.rs);
	if (ret)
		model_answer_free(answer);
	return ret;
}

void model_answer_free(struct model_answer *answer)
{
	uint32_t v;

	free(answer->gemm.span);
	free(answer->rs.span);
	free(answer->rs_nmc.span);
	free(answer->ag.span);
	for (v = 0; v < MODEL_VARIANTS; v++)
		free(answer->fused[v].span);
	memset(answer, 0, sizeof(*answer));
}

double model_speedup(const struct model_answer *answer, enum model_variant v)
{
	return answer->time[MODEL_SEQUENTIAL] / answer->time[v];
}

const char *model_variant_name(enum model_variant v)
{
	static const char *const names[] = {
		"sequential", "T3", "T3-MCA", "ideal", "ideal+NMC"
	};

	return names[v];
}
