// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tables of Documentation/planner.rst, line by line.
 *
 * Owner of shard s is rank s. Chain position j of shard s is rank
 * (s + 1 + j) mod N, so that the owner is at position N - 1.
 */
#include "planner_impl.h"

typedef void emit_fn(void *arg, const struct t3_step *step);

static uint32_t chain_rank(uint32_t ranks, uint32_t shard, uint32_t j)
{
	return (shard + 1 + j) % ranks;
}

static uint32_t chain_place(uint32_t ranks, uint32_t shard, uint32_t rank)
{
	return (rank + 2 * ranks - shard - 1) % ranks;
}

static bool reduces(const struct t3_plan_request *request)
{
	return request->op == T3_REDUCE_SCATTER ||
	       request->op == T3_ALL_REDUCE;
}

static bool gathers(const struct t3_plan_request *request)
{
	return request->op == T3_ALL_GATHER || request->op == T3_ALL_REDUCE;
}

bool t3_table_ring_first(const struct t3_plan_request *request)
{
	return reduces(request) && (request->algorithm == T3_ALG_RING ||
				    request->algorithm == T3_ALG_RING_DIRECT);
}

static bool ring_gather(const struct t3_plan_request *request)
{
	return gathers(request) && (request->algorithm == T3_ALG_RING ||
				    request->algorithm == T3_ALG_DIRECT_RING);
}

/* Updates of the block at chain position j before anything is gathered. */
static uint32_t before_gather(const struct t3_plan_request *request, uint32_t j)
{
	bool owner = j == request->ranks - 1;

	if (!reduces(request))
		return owner ? 1 : 0;
	if (t3_table_ring_first(request))
		return j == 0 ? 1 : 2;
	return owner ? 2 : 1;
}

static void emit_ring_reduce(const struct t3_plan_request *request,
			     uint32_t rank, uint32_t shard, emit_fn *emit,
			     void *arg)
{
	uint32_t j = chain_place(request->ranks, shard, rank);

	if (j == 0)
		return;
	emit(arg, &(struct t3_step) {
		.op = T3_OP_SUM,
		.dst = { rank, 0, shard, 2 },
		.sources = 2,
		.src = {
			{ chain_rank(request->ranks, shard, j - 1), 0, shard,
			  j == 1 ? 1 : 2 },
			{ rank, 0, shard, 1 },
		},
	});
}

static void emit_direct_reduce(const struct t3_plan_request *request,
			       uint32_t rank, emit_fn *emit, void *arg)
{
	struct t3_step step = {
		.op = T3_OP_SUM,
		.dst = { rank, 0, rank, 2 },
		.sources = request->ranks,
	};
	uint32_t r;

	for (r = 0; r < request->ranks; r++)
		step.src[r] = (struct t3_shard_at) { r, 0, rank, 1 };
	emit(arg, &step);
}

static void emit_gather(const struct t3_plan_request *request, uint32_t rank,
			uint32_t shard, emit_fn *emit, void *arg)
{
	uint32_t n = request->ranks;
	uint32_t j = chain_place(n, shard, rank);
	struct t3_step step = {
		.op = T3_OP_COPY,
		.dst = { rank, 0, shard, before_gather(request, j) + 1 },
		.sources = 1,
	};

	if (j == n - 1)
		return;
	if (j == 0 || !ring_gather(request))
		step.src[0] = (struct t3_shard_at) {
			shard, 0, shard, before_gather(request, n - 1),
		};
	else
		step.src[0] = (struct t3_shard_at) {
			chain_rank(n, shard, j - 1), 0, shard,
			before_gather(request, j - 1) + 1,
		};
	emit(arg, &step);
}

static void emit_exchange(const struct t3_plan_request *request, uint32_t rank,
			  emit_fn *emit, void *arg)
{
	uint32_t q;

	for (q = 0; q < request->ranks; q++)
		emit(arg, &(struct t3_step) {
			.op = T3_OP_COPY,
			.dst = { rank, 1, q, 1 },
			.sources = 1,
			.src = { { q, 0, rank, 1 } },
		});
}

void t3_table_steps(const struct t3_plan_request *request, uint32_t rank,
		    emit_fn *emit, void *arg)
{
	uint32_t s;

	if (request->op == T3_ALL_TO_ALL) {
		emit_exchange(request, rank, emit, arg);
		return;
	}
	if (request->ranks == 1)
		return;
	if (t3_table_ring_first(request)) {
		for (s = 0; s < request->ranks; s++)
			emit_ring_reduce(request, rank, s, emit, arg);
	} else if (reduces(request)) {
		emit_direct_reduce(request, rank, emit, arg);
	}
	for (s = 0; s < request->ranks && gathers(request); s++)
		emit_gather(request, rank, s, emit, arg);
}

bool t3_table_produces(const struct t3_plan_request *request, uint32_t rank,
		       uint32_t region, uint32_t shard)
{
	switch (request->op) {
	case T3_ALL_GATHER:
		return shard == rank;
	case T3_ALL_TO_ALL:
		return region == 0;
	default:
		return true;
	}
}
