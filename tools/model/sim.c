// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The simulation: setting up, the loop over time, the core's calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

/* More of a timeline than anybody can look at. */
#define MOST_SPANS	200000

/* ---- small things ---- */

void fifo_put(struct sim *sim, struct fifo *fifo, uint32_t item)
{
	if (fifo->tail == fifo->room) {
		uint32_t room = fifo->room ? fifo->room * 2 : 64;
		void *more;

		/* What was taken makes room before memory is asked for. */
		if (fifo->head > fifo->room / 2) {
			memmove(fifo->item, fifo->item + fifo->head,
				(fifo->tail - fifo->head) * sizeof(*fifo->item));
			fifo->tail -= fifo->head;
			fifo->head = 0;
		} else {
			more = realloc(fifo->item, room * sizeof(*fifo->item));
			if (!more) {
				sim->failed = true;
				return;
			}
			fifo->item = more;
			fifo->room = room;
		}
	}
	fifo->item[fifo->tail++] = item;
}

bool fifo_get(struct fifo *fifo, uint32_t *item)
{
	if (fifo->head == fifo->tail)
		return false;
	*item = fifo->item[fifo->head++];
	return true;
}

void sim_timer(struct sim *sim, double after, uint32_t kind, uint32_t what)
{
	if (!model_queue_add(&sim->queue, sim->now + after, kind, what))
		sim->failed = true;
}

void sim_span(struct sim *sim, uint32_t rank, uint32_t kind, uint32_t shard,
	      double begin)
{
	struct model_result *result = sim->result;

	if (!sim->run->trace || rank || result->spans == MOST_SPANS)
		return;
	if (result->spans == sim->span_room) {
		uint32_t room = sim->span_room ? sim->span_room * 2 : 1024;
		void *more = realloc(result->span, room * sizeof(*result->span));

		if (!more) {
			sim->failed = true;
			return;
		}
		result->span = more;
		sim->span_room = room;
	}
	result->span[result->spans++] = (struct model_span) {
		.kind = kind, .shard = shard, .begin = begin, .end = sim->now,
	};
}

/* ---- what the core calls ---- */

static struct sim *sim_of(struct t3_machine *core)
{
	return (struct sim *)((char *)core - offsetof(struct sim, core));
}

static void core_ready(struct t3_machine *core, u32 trigger)
{
	comm_ready(sim_of(core), trigger);
}

static void core_retired(struct t3_machine *core, u32 rank, u32 epoch)
{
	(void)rank;
	(void)epoch;
	sim_of(core)->retired++;
}

static void core_updated(struct t3_machine *core, u32 rank, u32 block)
{
	comm_updated(sim_of(core), rank, block);
}

/* ---- time ---- */

static void timer_due(struct sim *sim, const struct model_timer *timer)
{
	switch (timer->kind) {
	case TIMER_STAGE:
		gemm_stage(sim, timer->what);
		break;
	case TIMER_PIECE:
		gemm_came(sim, timer->what >> 24, timer->what & 0xffffff);
		break;
	case TIMER_TRANSFER:
		comm_came(sim, timer->what);
		break;
	default:
		comm_move(sim, timer->what);
	}
}

static bool step(struct sim *sim)
{
	struct model_timer timer;
	double flow, next;

	flow_rates(sim);
	flow = flow_first(sim);
	next = sim->queue.timers ? sim->queue.timer[0].time - sim->now :
				   UNLIMITED;
	if (flow >= UNLIMITED && !sim->queue.timers)
		return false;
	sim->result->events++;
	if (flow < next) {
		sim->now += flow;
		flow_pass(sim, flow);
		return true;
	}
	flow_pass(sim, next);
	timer = model_queue_take(&sim->queue);
	sim->now = timer.time;
	timer_due(sim, &timer);
	/* What is due at once needs no new rates in between. */
	while (sim->queue.timers && sim->queue.timer[0].time == sim->now) {
		timer = model_queue_take(&sim->queue);
		timer_due(sim, &timer);
	}
	return true;
}

/* ---- setting up ---- */

static bool make_core(struct sim *sim)
{
	const struct t3_graph *g = &sim->plan->graph;
	size_t bytes = t3_machine_bytes(g);
	void *state = aligned_alloc(64, (bytes + 63) / 64 * 64);
	uint32_t *words = calloc(2 * (size_t)g->blocks, sizeof(*words));
	uint32_t r;

	if (!state || !words) {
		free(state);
		free(words);
		return false;
	}
	memset(state, 0, bytes);
	sim->ops = (struct t3_machine_ops) {
		core_ready, core_retired, core_updated
	};
	t3_machine_attach(&sim->core, g, &sim->ops, state);
	for (r = 0; r < g->ranks; r++) {
		sim->core.tiles[r] = words + g->first_block[r];
		sim->core.count[r] = words + g->blocks + g->first_block[r];
	}
	t3_machine_start(&sim->core, 0);
	return true;
}

static bool make_room(struct sim *sim)
{
	const struct t3_graph *g = &sim->plan->graph;
	size_t ranks = sim->plan->simulated;

	sim->rank = calloc(ranks, sizeof(*sim->rank));
	sim->left = calloc(g->triggers + 1, sizeof(*sim->left));
	sim->remote_of = calloc(g->blocks, sizeof(*sim->remote_of));
	sim->block = calloc(g->blocks, sizeof(*sim->block));
	sim->pair = calloc(ranks * ranks, sizeof(*sim->pair));
	return sim->rank && sim->left && sim->remote_of && sim->block &&
	       sim->pair && make_core(sim);
}

static void free_room(struct sim *sim)
{
	uint32_t r;

	for (r = 0; sim->rank && r < sim->plan->simulated; r++) {
		free(sim->rank[r].stores.item);
		free(sim->rank[r].remotes.item);
		free(sim->rank[r].engine.item);
	}
	/* attach() put the states first, rank 0's tiles were the first. */
	free(sim->core.state);
	free(sim->core.tiles[0]);
	free(sim->rank);
	free(sim->left);
	free(sim->remote_of);
	free(sim->block);
	free(sim->pair);
	free(sim->queue.timer);
	free(sim->flow);
	free(sim->active);
	free(sim->free.item);
	free(sim->transfer);
}

static void add_traffic(struct model_traffic *sum, const struct model_traffic *t,
			double part)
{
	sum->gemm_read += t->gemm_read * part;
	sum->gemm_write += t->gemm_write * part;
	sum->comm_read += t->comm_read * part;
	sum->comm_write += t->comm_write * part;
	sum->link_out += t->link_out * part;
	sum->link_in += t->link_in * part;
}

static int end(struct sim *sim)
{
	const struct t3_graph *g = &sim->plan->graph;
	struct model_result *result = sim->result;
	uint32_t i;

	result->time = sim->now;
	for (i = 0; i < sim->plan->simulated; i++)
		add_traffic(&result->traffic, &sim->rank[i].traffic,
			    1.0 / sim->plan->simulated);
	for (i = 0; i < g->blocks; i++)
		result->wanted += g->updates[i];
	if (sim->failed)
		return -ENOMEM;
	return sim->retired == sim->plan->simulated ? 0 : -EDEADLK;
}

int model_sim(struct model_result *result, const struct model_machine *machine,
	      const struct model_plan *plan, const struct model_run *run)
{
	struct sim sim = {
		.machine = machine, .plan = plan, .run = run, .result = result,
	};
	u32 epoch, block;
	uint32_t r;
	int ret = -ENOMEM;

	memset(result, 0, sizeof(*result));
	if (!make_room(&sim))
		goto out;
	comm_map(&sim);
	for (r = 0; r < plan->simulated; r++)
		t3_machine_arm(&sim.core, r, &epoch, &block);
	for (r = 0; r < plan->simulated; r++)
		gemm_begin(&sim, r);
	while (!sim.failed && step(&sim))
		;
	ret = end(&sim);
out:
	free_room(&sim);
	if (ret) {
		free(result->span);
		result->span = NULL;
	}
	return ret;
}
