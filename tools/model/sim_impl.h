/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulation's parts: flows and how they share memory and links, GEMMs,
 * transfers.
 *
 * Time passes in pieces in which all rates are constant. A piece ends when a
 * flow is through or a timer is due.
 */
#ifndef T3_MODEL_SIM_IMPL_H
#define T3_MODEL_SIM_IMPL_H

#include "queue.h"
#include "sim.h"

#define NOTHING	UINT32_MAX

/* Demand of a flow that takes what it gets. */
#define UNLIMITED	1e18

enum flow_kind {
	FLOW_FIRST,	/* a stage's first reads */
	FLOW_MAIN,	/* a stage's main loop: seconds, not bytes */
	FLOW_STORE,	/* a piece of a tile, to the rank's own memory */
	FLOW_REMOTE,	/* likewise, to the neighbour's memory */
	FLOW_TRANSFER,	/* of a trigger, from one source */
	FLOW_FINISH,	/* of a trigger, after its transfers, in its own memory */
};

/**
 * struct flow - work that goes on at a rate
 * @kind: enum flow_kind
 * @from: rank that is read or that stores
 * @to: rank that is written
 * @what: the piece of a tile, the transfer, or the trigger
 * @left: bytes, or seconds of work, to do
 * @bytes: at the start
 * @begin: when it started
 * @demand: bytes a second that it could take
 * @read: bytes of memory at @from for each of its own
 * @write: time of memory at @to for each byte, in bytes
 * @written: bytes of memory written at @to for each of its own
 * @reread: bytes of memory read at @to likewise
 * @rate: now
 *
 * In sim.active while it runs.
 */
struct flow {
	uint32_t kind;
	uint32_t from;
	uint32_t to;
	uint32_t what;
	double left;
	double bytes;
	double begin;
	double demand;
	double read;
	double write;
	double written;
	double reread;
	double rate;
};

/**
 * struct fifo - numbers that wait
 * @item: them
 * @head: the next to take
 * @tail: the next to fill
 * @room: entries of @item
 */
struct fifo {
	uint32_t *item;
	uint32_t head;
	uint32_t tail;
	uint32_t room;
};

/**
 * struct memory - a rank's memory, in one piece of time
 * @compute: bytes a second that compute asks for; FLOW_MAIN and the like
 * @takers: flows of compute that take what they get
 * @comm: bytes a second that transfers ask for
 * @compute_share: what compute gets of @compute, for each
 * @taker_rate: what each of @takers gets
 * @comm_share: what transfers get of @comm
 * @transfers: number of flows that are transfers
 */
struct memory {
	double compute;
	uint32_t takers;
	double comm;
	double compute_share;
	double taker_rate;
	double comm_share;
	uint32_t transfers;
};

/**
 * struct sim_rank - a simulated rank
 * @stage: of its GEMM, the one under way; stages: over
 * @waits: the stage is over but for stores of the stage before it
 * @dirty: bytes that the last stage left in the cache
 * @stores: pieces that wait to be stored in its own memory
 * @remotes: pieces that wait to be stored at the neighbour
 * @storing: one is under way
 * @sending: likewise
 * @undone: pieces of finished stages that are not yet stored
 * @engine: transfers that wait for one of its engines
 * @engines: in use
 * @egress: flows on its way out
 * @ingress: flows on its way in
 * @memory: its memory
 * @tracked: entries of its tracker in use
 * @traffic: so far
 */
struct sim_rank {
	uint32_t stage;
	bool waits;
	double dirty;
	struct fifo stores;
	struct fifo remotes;
	bool storing;
	bool sending;
	uint32_t undone;
	struct fifo engine;
	uint32_t engines;
	uint32_t egress;
	uint32_t ingress;
	struct memory memory;
	uint32_t tracked;
	struct model_traffic traffic;
};

/**
 * struct transfer - one source of a trigger
 * @trigger: whose
 * @source: the block, counted over all ranks
 * @bytes: of it
 */
struct transfer {
	uint32_t trigger;
	uint32_t source;
	double bytes;
};

/**
 * struct tracked - a block in the tracker
 * @local: tiles that its own rank has stored
 * @remote: tiles that have come from elsewhere
 * @updates: so far
 */
struct tracked {
	uint32_t local;
	uint32_t remote;
	uint32_t updates;
};

/**
 * struct sim - a simulation
 * @machine: where
 * @plan: what
 * @run: how
 * @core: the dataflow machine
 * @ops: of @core
 * @now: seconds
 * @queue: timers
 * @rank: [plan->simulated]
 * @flow: all that ever ran and is not yet reused
 * @flows: entries in use
 * @flow_room: entries there are
 * @free: flows to use again
 * @active: flows that run
 * @actives: how many
 * @transfer: transfers, numbered by trigger and source
 * @transfers: so far
 * @transfer_room: entries there are
 * @left: [triggers] transfers to do
 * @remote_of: [blocks] the trigger that takes the block from the stores
 *	themselves, or NOTHING
 * @block: [blocks] in the tracker
 * @pair: [simulated * simulated] flows on each link (MODEL_FULL)
 * @root: flows through the root (MODEL_PCIE)
 * @retired: ranks
 * @result: out
 * @span_room: entries of @result->span
 * @failed: memory ran out
 *
 * One thread's.
 */
struct sim {
	const struct model_machine *machine;
	const struct model_plan *plan;
	const struct model_run *run;
	struct t3_machine core;
	struct t3_machine_ops ops;
	double now;
	struct model_queue queue;
	struct sim_rank *rank;
	struct flow *flow;
	uint32_t flows;
	uint32_t flow_room;
	struct fifo free;
	uint32_t *active;
	uint32_t actives;
	struct transfer *transfer;
	uint32_t transfers;
	uint32_t transfer_room;
	uint32_t *left;
	uint32_t *remote_of;
	struct tracked *block;
	uint32_t *pair;
	uint32_t root;
	uint32_t retired;
	struct model_result *result;
	uint32_t span_room;
	bool failed;
};

enum timer_kind {
	TIMER_STAGE,	/* a rank's stage may read */
	TIMER_PIECE,	/* a remote piece has come */
	TIMER_TRANSFER,	/* a transfer's last byte has come */
	TIMER_ENGINE,	/* an engine begins to move bytes */
};

/* ---- sim.c ---- */

void fifo_put(struct sim *sim, struct fifo *fifo, uint32_t item);
bool fifo_get(struct fifo *fifo, uint32_t *item);
void sim_timer(struct sim *sim, double after, uint32_t kind, uint32_t what);
void sim_span(struct sim *sim, uint32_t rank, uint32_t kind, uint32_t shard,
	      double begin);

/* ---- sim_flow.c ---- */

/* Start a flow; its rate is found before time passes. */
void flow_start(struct sim *sim, const struct flow *flow);

/* How long until the first flow is through; UNLIMITED: none runs. */
double flow_first(const struct sim *sim);

/* Let time pass; end the flows that are through, in the order they started. */
void flow_pass(struct sim *sim, double time);

/* Find all rates. */
void flow_rates(struct sim *sim);

/* The wait of a read at a rank's memory, with what is queued there. */
double flow_latency(const struct sim *sim, uint32_t rank);

/* ---- sim_gemm.c ---- */

/* Begin a rank's GEMM, or report all its blocks where there is none. */
void gemm_begin(struct sim *sim, uint32_t rank);

/* A stage may read now. */
void gemm_stage(struct sim *sim, uint32_t rank);

/* A flow of the GEMM is through. */
void gemm_flow(struct sim *sim, const struct flow *flow);

/* A remote piece of @rank has come.  */
void gemm_came(struct sim *sim, uint32_t rank, uint32_t piece);

/* ---- sim_comm.c ---- */

/* Find out which blocks are stored at the neighbour. */
void comm_map(struct sim *sim);

/* The core says that a trigger may run. */
void comm_ready(struct sim *sim, uint32_t trigger);

/* An engine begins to move a transfer's bytes. */
void comm_move(struct sim *sim, uint32_t transfer);

/* A flow of a transfer is through. */
void comm_flow(struct sim *sim, const struct flow *flow);

/* A transfer's last byte has come. */
void comm_came(struct sim *sim, uint32_t transfer);

/* A tile is where it belongs: count it in the tracker. */
void comm_track(struct sim *sim, uint32_t rank, uint32_t block, bool remote);

/* A block has one more update: it may leave the tracker. */
void comm_updated(struct sim *sim, uint32_t rank, uint32_t block);

#endif /* T3_MODEL_SIM_IMPL_H */
