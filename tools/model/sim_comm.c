// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Triggers in the simulation: transfers, engines, the tracker.
 */
#include <math.h>
#include <stdlib.h>

#include "sim_impl.h"

static const struct t3_graph *graph_of(const struct sim *sim)
{
	return &sim->plan->graph;
}

/* The trigger as the program has it. */
static const struct t3_trigger *trigger_of(const struct sim *sim, uint32_t t)
{
	uint32_t rank = graph_of(sim)->action[t].rank;

	return &sim->plan->rank[rank].program.trigger
		[t - graph_of(sim)->first_trigger[rank]];
}

/* After which of its updates a trigger's source is read. */
static uint32_t read_at(const struct sim *sim, uint32_t t, uint32_t block)
{
	const struct t3_action *action = &graph_of(sim)->action[t];
	const struct t3_program *program = &sim->plan->rank[action->rank].program;
	uint32_t i;

	for (i = 0; i < action->sources; i++)
		if (graph_of(sim)->source[action->first_source + i] == block)
			return program->source[trigger_of(sim, t)->first_source + i].at;
	return 0;
}

static bool is_ring(const struct sim *sim)
{
	return sim->plan->work.algorithm == T3_ALG_RING;
}

/* ---- stores that go to the neighbour themselves (the paper's remote_map) ---- */

static uint32_t remote_trigger(const struct sim *sim, uint32_t block)
{
	const struct t3_graph *g = graph_of(sim);
	uint32_t first = g->successor_first[block];
	const struct t3_action *action;

	if (!g->produced[block] || g->updates[block] != 1 ||
	    g->successor_first[block + 1] != first + 1)
		return NOTHING;
	action = &g->action[g->successor[first]];
	if (action->op != T3_OP_SUM || action->block == block)
		return NOTHING;
	return g->successor[first];
}

void comm_map(struct sim *sim)
{
	bool maps = sim->run->gemm && sim->run->carrier == MODEL_BY_MEMORY;
	uint32_t b;

	for (b = 0; b < graph_of(sim)->blocks; b++)
		sim->remote_of[b] = maps ? remote_trigger(sim, b) : NOTHING;
}

/* ---- engines ---- */

static uint32_t owner_of(const struct sim *sim, const struct transfer *t)
{
	if (sim->run->carrier == MODEL_BY_SUMS)
		return graph_of(sim)->action[t->trigger].rank;
	return graph_of(sim)->block_rank[t->source];
}

static uint32_t engines(const struct sim *sim)
{
	switch (sim->run->carrier) {
	case MODEL_BY_MEMORY:
		return (uint32_t)sim->machine->dma_engines;
	case MODEL_BY_SUMS:
		return (uint32_t)fmax(sim->machine->sum_units,
				      sim->machine->dma_engines);
	default:
		return is_ring(sim) ? 1 : sim->plan->work.ranks;
	}
}

static void next_transfer(struct sim *sim, uint32_t rank)
{
	struct sim_rank *r = &sim->rank[rank];
	double fixed = sim->run->carrier == MODEL_BY_UNITS ? 0 :
		       sim->machine->dma_fixed;
	uint32_t transfer;

	while (r->engines < engines(sim) && fifo_get(&r->engine, &transfer)) {
		r->engines++;
		sim_timer(sim, fixed, TIMER_ENGINE, transfer);
	}
}

/* ---- transfers ---- */

static uint32_t new_transfer(struct sim *sim, uint32_t trigger, uint32_t source)
{
	const struct t3_graph *g = graph_of(sim);
	uint32_t rank = g->block_rank[source];

	if (sim->transfers == sim->transfer_room) {
		uint32_t room = sim->transfer_room ? sim->transfer_room * 2 : 256;
		void *more = realloc(sim->transfer, room * sizeof(*sim->transfer));

		if (!more) {
			sim->failed = true;
			return NOTHING;
		}
		sim->transfer = more;
		sim->transfer_room = room;
	}
	sim->transfer[sim->transfers] = (struct transfer) {
		.trigger = trigger,
		.source = source,
		.bytes = sim->plan->rank[rank].block[source - g->first_block[rank]].bytes,
	};
	return sim->transfers++;
}

void comm_ready(struct sim *sim, uint32_t trigger)
{
	const struct t3_graph *g = graph_of(sim);
	const struct t3_action *action = &g->action[trigger];
	uint32_t first = sim->transfers;
	uint32_t i, transfer;

	sim->left[trigger] = 1;
	for (i = 0; i < action->sources && !sim->run->alone; i++) {
		/* Each rank begins with the next one: no crowd at the first. */
		uint32_t source = g->source[action->first_source +
			(action->rank + 1 + i) % action->sources];

		if (source == action->block ||
		    sim->remote_of[source] == trigger)
			continue;
		transfer = new_transfer(sim, trigger, source);
		if (transfer == NOTHING)
			return;
		sim->left[trigger]++;
		fifo_put(sim, &sim->rank[owner_of(sim, &sim->transfer[transfer])].engine,
			 transfer);
	}
	/* The core asks not to be called back from here: a timer does. */
	transfer = new_transfer(sim, trigger, action->block);
	if (transfer == NOTHING)
		return;
	sim_timer(sim, 0, TIMER_TRANSFER, transfer);
	for (i = first; i < transfer; i++)
		next_transfer(sim, owner_of(sim, &sim->transfer[i]));
}

/* What a transfer does to memory, for each of its bytes. */
static void set_costs(const struct sim *sim, const struct transfer *t,
		      struct flow *flow)
{
	const struct t3_action *action = &graph_of(sim)->action[t->trigger];
	double others = action->sources - 1;

	flow->read = 1;
	flow->write = 1;
	flow->written = 1;
	if (action->op == T3_OP_COPY)
		return;
	if (sim->run->carrier == MODEL_BY_MEMORY) {
		flow->write = sim->machine->update;
	} else if (sim->run->carrier == MODEL_BY_UNITS && is_ring(sim)) {
		/* The sum of the step before is made while sending. */
		flow->read = read_at(sim, t->trigger, t->source) > 1 ? 2 : 1;
	} else {
		/* All sources are read and added at once, in registers. */
		flow->written = 1 / others;
		flow->reread = 1 / others;
		flow->write = 2 / others;
	}
}

void comm_move(struct sim *sim, uint32_t transfer)
{
	const struct transfer *t = &sim->transfer[transfer];
	struct flow flow = {
		.kind = FLOW_TRANSFER,
		.from = graph_of(sim)->block_rank[t->source],
		.to = graph_of(sim)->action[t->trigger].rank,
		.what = transfer,
		.left = t->bytes,
	};

	set_costs(sim, t, &flow);
	flow_start(sim, &flow);
}

/* A ring run by units ends with a sum of its own: two reads and a write. */
static bool finishes(const struct sim *sim, uint32_t trigger)
{
	const struct t3_action *action = &graph_of(sim)->action[trigger];
	uint32_t block = action->block - graph_of(sim)->first_block[action->rank];

	return sim->run->carrier == MODEL_BY_UNITS && is_ring(sim) &&
	       action->op == T3_OP_SUM &&
	       sim->plan->rank[action->rank].block[block].shard == action->rank;
}

static void one_less(struct sim *sim, uint32_t trigger)
{
	if (!--sim->left[trigger])
		t3_machine_complete(&sim->core, trigger);
}

void comm_came(struct sim *sim, uint32_t transfer)
{
	const struct transfer t = sim->transfer[transfer];
	uint32_t rank = graph_of(sim)->action[t.trigger].rank;

	/* The sum at the end takes its turn after the last source has come. */
	if (t.source != graph_of(sim)->action[t.trigger].block &&
	    finishes(sim, t.trigger)) {
		flow_start(sim, &(struct flow) {
			.kind = FLOW_FINISH,
			.from = rank,
			.to = rank,
			.what = t.trigger,
			.left = t.bytes,
			.read = 2,
			.write = 1,
			.written = 1,
		});
		return;
	}
	one_less(sim, t.trigger);
}

static void count_flow(struct sim *sim, const struct flow *flow)
{
	sim->rank[flow->from].traffic.comm_read += flow->bytes * flow->read;
	sim->rank[flow->to].traffic.comm_read += flow->bytes * flow->reread;
	sim->rank[flow->to].traffic.comm_write += flow->bytes * flow->written;
}

void comm_flow(struct sim *sim, const struct flow *flow)
{
	const struct transfer *t = &sim->transfer[flow->what];
	uint32_t owner;

	count_flow(sim, flow);
	if (flow->kind == FLOW_FINISH) {
		one_less(sim, flow->what);
		return;
	}
	owner = owner_of(sim, t);
	sim->rank[flow->from].traffic.link_out += flow->bytes;
	sim->rank[flow->to].traffic.link_in += flow->bytes;
	sim_span(sim, flow->from, MODEL_SPAN_TRANSFER,
		 sim->plan->rank[flow->from].block
		 [t->source - graph_of(sim)->first_block[flow->from]].shard,
		 flow->begin);
	sim_timer(sim, sim->machine->topology == MODEL_SHARED ? 0 :
		  sim->machine->link_latency, TIMER_TRANSFER, flow->what);
	sim->rank[owner].engines--;
	next_transfer(sim, owner);
}

/* ---- the tracker ---- */

static uint32_t entries(const struct tracked *block)
{
	return block->local > block->remote ? block->local : block->remote;
}

void comm_track(struct sim *sim, uint32_t rank, uint32_t block, bool remote)
{
	struct tracked *t = &sim->block[graph_of(sim)->first_block[rank] + block];
	uint32_t before = entries(t);

	if (remote)
		t->remote++;
	else
		t->local++;
	sim->rank[rank].tracked += entries(t) - before;
	if (sim->rank[rank].tracked > sim->result->tracked)
		sim->result->tracked = sim->rank[rank].tracked;
}

void comm_updated(struct sim *sim, uint32_t rank, uint32_t block)
{
	uint32_t number = graph_of(sim)->first_block[rank] + block;
	struct tracked *t = &sim->block[number];

	sim->result->updates++;
	if (++t->updates < graph_of(sim)->updates[number])
		return;
	sim->rank[rank].tracked -= entries(t);
	t->local = 0;
	t->remote = 0;
}
