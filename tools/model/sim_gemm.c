// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GEMMs in the simulation: stages, and the stores of their tiles.
 */
#include "sim_impl.h"

static const struct model_stage *stage_of(const struct sim *sim, uint32_t rank)
{
	return &sim->run->gemm->stage[sim->rank[rank].stage];
}

/* Memory adds, so that outputs must not stay in the cache. */
static bool uncached(const struct sim *sim)
{
	return sim->run->carrier == MODEL_BY_MEMORY;
}

static void report(struct sim *sim, uint32_t rank, uint32_t block,
		   uint32_t tiles)
{
	/* A wrong count would leave the plan unretired, which is found. */
	t3_machine_tiles(&sim->core, rank, block, tiles);
}

static void produce_all(struct sim *sim, uint32_t rank)
{
	const struct t3_program *program = &sim->plan->rank[rank].program;
	uint32_t b;

	for (b = 0; b < program->blocks; b++)
		if (program->block[b].tiles)
			report(sim, rank, b, program->block[b].tiles);
}

static void start_stage(struct sim *sim, uint32_t rank)
{
	if (sim->rank[rank].stage == sim->run->gemm->stages) {
		if (sim->now > sim->result->gemm)
			sim->result->gemm = sim->now;
		return;
	}
	sim_timer(sim, flow_latency(sim, rank), TIMER_STAGE, rank);
}

void gemm_begin(struct sim *sim, uint32_t rank)
{
	if (!sim->run->gemm) {
		produce_all(sim, rank);
		return;
	}
	sim_timer(sim, sim->machine->launch + flow_latency(sim, rank),
		  TIMER_STAGE, rank);
}

static void start_main(struct sim *sim, uint32_t rank)
{
	const struct model_stage *stage = stage_of(sim, rank);
	double reads = stage->reads - stage->first_reads + sim->rank[rank].dirty;

	flow_start(sim, &(struct flow) {
		.kind = FLOW_MAIN,
		.from = rank,
		.to = rank,
		.left = stage->work,
		.demand = reads / stage->work,
	});
}

void gemm_stage(struct sim *sim, uint32_t rank)
{
	flow_start(sim, &(struct flow) {
		.kind = FLOW_FIRST,
		.from = rank,
		.to = rank,
		.left = stage_of(sim, rank)->first_reads,
	});
}

/* ---- stores ---- */

static uint32_t global(const struct sim *sim, uint32_t rank, uint32_t block)
{
	return sim->plan->graph.first_block[rank] + block;
}

static void next_store(struct sim *sim, uint32_t rank)
{
	struct sim_rank *r = &sim->rank[rank];
	uint32_t piece;

	if (r->storing || !fifo_get(&r->stores, &piece))
		return;
	r->storing = true;
	flow_start(sim, &(struct flow) {
		.kind = FLOW_STORE,
		.from = rank,
		.to = rank,
		.what = piece,
		.left = sim->plan->rank[rank].piece[piece].bytes,
	});
}

static void next_remote(struct sim *sim, uint32_t rank)
{
	const struct model_rank *part = &sim->plan->rank[rank];
	struct sim_rank *r = &sim->rank[rank];
	uint32_t piece, trigger;

	if (r->sending || !fifo_get(&r->remotes, &piece))
		return;
	r->sending = true;
	trigger = sim->remote_of[global(sim, rank, part->piece[piece].block)];
	flow_start(sim, &(struct flow) {
		.kind = FLOW_REMOTE,
		.from = rank,
		.to = sim->plan->graph.action[trigger].rank,
		.what = piece,
		.left = part->piece[piece].bytes,
		.write = sim->machine->update,
		.written = 1,
	});
}

static void store_stage(struct sim *sim, uint32_t rank)
{
	const struct model_stage *stage = stage_of(sim, rank);
	const struct model_rank *part = &sim->plan->rank[rank];
	const struct model_tile *last = &part->tile[stage->first + stage->tiles - 1];
	struct sim_rank *r = &sim->rank[rank];
	uint32_t i;

	for (i = part->tile[stage->first].first_piece;
	     i < last->first_piece + last->pieces; i++) {
		uint32_t block = part->piece[i].block;

		if (!uncached(sim)) {
			comm_track(sim, rank, block, false);
			report(sim, rank, block, 1);
			continue;
		}
		r->undone++;
		if (sim->remote_of[global(sim, rank, block)] == NOTHING)
			fifo_put(sim, &r->stores, i);
		else
			fifo_put(sim, &r->remotes, i);
	}
	if (!uncached(sim)) {
		r->dirty = stage->writes;
		r->traffic.gemm_write += stage->writes;
	}
	next_store(sim, rank);
	next_remote(sim, rank);
}

/* The main loop is over: store, where the stage before has stored all. */
static void end_stage(struct sim *sim, uint32_t rank)
{
	struct sim_rank *r = &sim->rank[rank];

	r->waits = r->undone > 0;
	if (r->waits)
		return;
	r->traffic.gemm_read += stage_of(sim, rank)->reads;
	store_stage(sim, rank);
	r->stage++;
	start_stage(sim, rank);
}

static void stored(struct sim *sim, uint32_t rank)
{
	sim->rank[rank].undone--;
	if (sim->rank[rank].waits && !sim->rank[rank].undone)
		end_stage(sim, rank);
}

static void end_store(struct sim *sim, const struct flow *flow)
{
	uint32_t block = sim->plan->rank[flow->from].piece[flow->what].block;

	sim_span(sim, flow->from, MODEL_SPAN_STORE,
		 sim->plan->rank[flow->from].block[block].shard, flow->begin);
	sim->rank[flow->from].storing = false;
	sim->rank[flow->from].traffic.gemm_write += flow->bytes;
	comm_track(sim, flow->from, block, false);
	report(sim, flow->from, block, 1);
	next_store(sim, flow->from);
	stored(sim, flow->from);
}

static void end_remote(struct sim *sim, const struct flow *flow)
{
	uint32_t block = sim->plan->rank[flow->from].piece[flow->what].block;

	sim_span(sim, flow->from, MODEL_SPAN_REMOTE,
		 sim->plan->rank[flow->from].block[block].shard, flow->begin);
	sim->rank[flow->from].sending = false;
	sim->rank[flow->from].traffic.link_out += flow->bytes;
	sim->rank[flow->to].traffic.link_in += flow->bytes;
	sim->rank[flow->to].traffic.comm_write += flow->bytes;
	sim_timer(sim, sim->machine->link_latency, TIMER_PIECE,
		  flow->from << 24 | flow->what);
	next_remote(sim, flow->from);
	stored(sim, flow->from);
}

void gemm_came(struct sim *sim, uint32_t rank, uint32_t piece)
{
	uint32_t block = sim->plan->rank[rank].piece[piece].block;
	uint32_t trigger = sim->remote_of[global(sim, rank, block)];
	const struct t3_action *action = &sim->plan->graph.action[trigger];

	comm_track(sim, action->rank, action->block -
		   sim->plan->graph.first_block[action->rank], true);
	report(sim, rank, block, 1);
}

void gemm_flow(struct sim *sim, const struct flow *flow)
{
	switch (flow->kind) {
	case FLOW_FIRST:
		start_main(sim, flow->from);
		break;
	case FLOW_MAIN:
		sim_span(sim, flow->from, MODEL_SPAN_STAGE,
			 sim->rank[flow->from].stage, flow->begin);
		end_stage(sim, flow->from);
		break;
	case FLOW_STORE:
		end_store(sim, flow);
		break;
	default:
		end_remote(sim, flow);
	}
}
