// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How flows share memory and links.
 */
#include <math.h>
#include <stdlib.h>

#include "sim_impl.h"

/* Where all ranks' memory is one, it is the first rank's. */
static struct memory *memory_of(struct sim *sim, uint32_t rank)
{
	return &sim->rank[sim->machine->topology == MODEL_SHARED ? 0 : rank].memory;
}

static bool is_comm(const struct flow *flow)
{
	return flow->kind >= FLOW_REMOTE;
}

/* ---- links ---- */

static uint32_t *pair_of(struct sim *sim, const struct flow *flow)
{
	return &sim->pair[flow->from * sim->plan->simulated + flow->to];
}

static bool uses_links(const struct sim *sim, const struct flow *flow)
{
	return (flow->kind == FLOW_REMOTE || flow->kind == FLOW_TRANSFER) &&
	       sim->machine->topology != MODEL_SHARED;
}

static void link_count(struct sim *sim, const struct flow *flow, uint32_t by)
{
	if (!uses_links(sim, flow))
		return;
	sim->rank[flow->from].egress += by;
	sim->rank[flow->to].ingress += by;
	*pair_of(sim, flow) += by;
	sim->root += by;
}

/* Links between two ranks of a ring; a folded ring's are always neighbours. */
static uint32_t hops(const struct sim *sim, const struct flow *flow)
{
	uint32_t n = sim->plan->simulated;
	uint32_t up = (flow->to + n - flow->from) % n;

	if (n < 3)
		return 1;
	return up < n - up ? up : n - up;
}

static double link_rate(struct sim *sim, const struct flow *flow)
{
	const struct model_machine *m = sim->machine;
	double out = sim->rank[flow->from].egress;
	double in = sim->rank[flow->to].ingress;

	switch ((int)m->topology) {
	case MODEL_RING:
		return m->link / out / hops(sim, flow);
	case MODEL_FULL:
		return m->link / *pair_of(sim, flow);
	case MODEL_PCIE:
		return fmin(m->link / fmax(out, in), m->root / sim->root);
	default:
		return m->link / fmax(out, in);
	}
}

/* What those who carry a transfer can do, apart from memory. */
static double carrier_rate(struct sim *sim, const struct flow *flow)
{
	const struct model_machine *m = sim->machine;
	double rate = uses_links(sim, flow) ? link_rate(sim, flow) : UNLIMITED;

	if (flow->kind != FLOW_TRANSFER)
		return rate;
	if (sim->run->carrier == MODEL_BY_UNITS && sim->run->units)
		rate = fmin(rate, m->copy_rate * sim->run->units /
			    sim->rank[flow->from].engines);
	if (sim->run->carrier == MODEL_BY_SUMS)
		rate = fmin(rate, m->sum_rate * fmax(m->sum_units, 1) /
			    sim->rank[flow->to].engines);
	return rate;
}

/* ---- memory ---- */

static void ask(struct sim *sim, struct flow *flow)
{
	struct memory *from = memory_of(sim, flow->from);

	if (!is_comm(flow)) {
		if (flow->kind == FLOW_MAIN)
			from->compute += flow->demand;
		else
			from->takers++;
		return;
	}
	flow->demand = fmin(carrier_rate(sim, flow), sim->machine->dram);
	from->comm += flow->demand * flow->read;
	from->transfers += flow->read > 0;
	if (flow->write > 0) {
		struct memory *to = memory_of(sim, flow->to);

		to->comm += flow->demand * flow->write;
		to->transfers++;
	}
}

/*
 * The dynamic threshold of compute-first: entries that transfers may hold in a
 * channel's queue, by how much memory the GEMM's first stage asked for.
 */
static double threshold(const struct sim *sim)
{
	static const struct {
		double intensity;
		double entries;
	} step[] = { { 0.5, 5 }, { 0.25, 10 }, { 0.1, 30 } };
	const struct model_gemm *gemm = sim->run->gemm;
	uint32_t i;

	for (i = 0; gemm && i < sizeof(step) / sizeof(step[0]); i++)
		if (gemm->intensity >= step[i].intensity)
			return fmin(step[i].entries, sim->machine->dram_queue);
	return sim->machine->dram_queue;
}

/* How much of memory transfers get. */
static double comm_part(const struct sim *sim, const struct memory *memory)
{
	double all = sim->machine->dram;
	double compute = memory->takers ? UNLIMITED : memory->compute;
	double entries;

	switch (sim->run->policy) {
	case MODEL_ROUND_ROBIN:
		return fmin(memory->comm, fmax(all / 2, all - compute));
	case MODEL_COMPUTE_FIRST:
		/* So many entries are in a queue that is busy for this share. */
		entries = threshold(sim);
		return fmin(memory->comm,
			    fmax(all * sim->machine->starve,
				 all * (compute > 0 ? entries / (1 + entries) : 1) -
				 fmin(compute, all)));
	default:
		return fmin(memory->comm, all);
	}
}

static void divide(const struct sim *sim, struct memory *memory)
{
	double comm = comm_part(sim, memory);
	double rest = sim->run->policy == MODEL_NO_CONTENTION ?
		      sim->machine->dram : sim->machine->dram - comm;
	/* Main loops ask for little; those that take all share what is left. */
	double fair = rest / (memory->takers + (memory->compute > 0));
	double main = fmin(memory->compute, memory->takers ?
			   fmax(fair, 0) : rest);

	memory->comm_share = memory->comm > 0 ? comm / memory->comm : 1;
	memory->compute_share = memory->compute > 0 ?
				main / memory->compute : 1;
	memory->taker_rate = memory->takers ?
			     (rest - main) / memory->takers : 0;
}

double flow_latency(const struct sim *sim, uint32_t rank)
{
	const struct model_machine *m = sim->machine;
	const struct memory *memory = memory_of((struct sim *)sim, rank);
	double service = m->dram_access * m->dram_channels / m->dram;
	double entries = 0;

	if (memory->transfers && sim->run->policy == MODEL_ROUND_ROBIN)
		entries = m->dram_queue;
	else if (memory->transfers && sim->run->policy == MODEL_COMPUTE_FIRST)
		entries = threshold(sim);
	if (sim->run->carrier == MODEL_BY_MEMORY)
		service *= (1 + m->update) / 2;
	return m->dram_latency + entries * service;
}

/*
 * A main loop hides a wait for memory behind the steps that are in flight;
 * what is longer holds it up.
 */
static double main_rate(struct sim *sim, const struct flow *flow)
{
	const struct model_gemm *gemm = sim->run->gemm;
	const struct model_stage *stage = &gemm->stage[sim->rank[flow->from].stage];
	double hidden = (sim->machine->prefetch - 1) * gemm->step;
	double late = flow_latency(sim, flow->from) - hidden;
	double slow = late > 0 ? stage->missing * late / hidden : 0;
	bool sums = sim->run->carrier == MODEL_BY_SUMS &&
		    sim->rank[flow->from].engines;
	double own = sums ? 1 - sim->machine->sum_steal : 1;

	return own * fmin(1 / (1 + slow),
			  memory_of(sim, flow->from)->compute_share);
}

static void set_rate(struct sim *sim, struct flow *flow)
{
	struct memory *from = memory_of(sim, flow->from);
	double share = 1;

	switch (flow->kind) {
	case FLOW_MAIN:
		flow->rate = main_rate(sim, flow);
		break;
	case FLOW_FIRST:
	case FLOW_STORE:
		flow->rate = from->taker_rate;
		break;
	default:
		if (flow->read > 0)
			share = from->comm_share;
		if (flow->write > 0)
			share = fmin(share, memory_of(sim, flow->to)->comm_share);
		flow->rate = flow->demand * share;
	}
}

void flow_rates(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->plan->simulated; i++)
		sim->rank[i].memory = (struct memory) { 0 };
	for (i = 0; i < sim->actives; i++)
		ask(sim, &sim->flow[sim->active[i]]);
	for (i = 0; i < sim->plan->simulated; i++)
		divide(sim, &sim->rank[i].memory);
	for (i = 0; i < sim->actives; i++)
		set_rate(sim, &sim->flow[sim->active[i]]);
}

/* ---- flows ---- */

static bool more_flows(struct sim *sim)
{
	uint32_t room = sim->flow_room ? sim->flow_room * 2 : 256;
	void *flow = realloc(sim->flow, room * sizeof(*sim->flow));

	if (!flow)
		return false;
	sim->flow = flow;
	flow = realloc(sim->active, room * sizeof(*sim->active));
	if (!flow)
		return false;
	sim->active = flow;
	sim->flow_room = room;
	return true;
}

void flow_start(struct sim *sim, const struct flow *flow)
{
	uint32_t i;

	if (!fifo_get(&sim->free, &i)) {
		if (sim->flows == sim->flow_room && !more_flows(sim)) {
			sim->failed = true;
			return;
		}
		i = sim->flows++;
	}
	sim->flow[i] = *flow;
	sim->flow[i].begin = sim->now;
	sim->flow[i].bytes = flow->left;
	sim->active[sim->actives++] = i;
	link_count(sim, flow, 1);
}

double flow_first(const struct sim *sim)
{
	double first = UNLIMITED;
	uint32_t i;

	for (i = 0; i < sim->actives; i++) {
		const struct flow *flow = &sim->flow[sim->active[i]];

		if (flow->rate > 0)
			first = fmin(first, flow->left / flow->rate);
	}
	return first;
}

static void flow_through(struct sim *sim, const struct flow *flow)
{
	link_count(sim, flow, -1U);
	if (flow->kind >= FLOW_TRANSFER)
		comm_flow(sim, flow);
	else
		gemm_flow(sim, flow);
}

void flow_pass(struct sim *sim, double time)
{
	struct flow done[64];
	uint32_t i, n = 0, kept = 0;

	for (i = 0; i < sim->actives; i++) {
		struct flow *flow = &sim->flow[sim->active[i]];

		flow->left -= flow->rate * time;
		/* What is left of a flow by rounding is nothing. */
		if (n == 64 || flow->left > flow->bytes / 1e12) {
			sim->active[kept++] = sim->active[i];
			continue;
		}
		done[n++] = *flow;
		fifo_put(sim, &sim->free, sim->active[i]);
	}
	sim->actives = kept;
	for (i = 0; i < n; i++)
		flow_through(sim, &done[i]);
}
