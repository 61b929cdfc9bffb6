// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Collectives as programs: checks, choices, and one rank's part.
 */
#include <stdlib.h>

#include "front.h"
#include "planner_impl.h"
#include "reduce.h"

/* Part of the digest: to be changed with anything that changes programs. */
#define PLANNER_VERSION	2

#define CALL		"t3_plan_add: "

/**
 * struct maker - one rank's part in the making
 * @request: what the plan does, its algorithm chosen
 * @rank: whose part
 * @cuts: of all regions
 * @regions: 1 or 2
 * @planned: out
 * @block: planned->program.block, writable
 * @trigger: likewise
 * @source: likewise
 * @triggers: filled so far
 * @sources: filled so far
 */
struct maker {
	const struct t3_plan_request *request;
	uint32_t rank;
	const struct t3_cuts *cuts;
	uint32_t regions;
	struct t3_planned *planned;
	struct t3_plan_block *block;
	struct t3_trigger *trigger;
	struct t3_source *source;
	uint32_t triggers;
	uint32_t sources;
};

/* ---- checks and choices ---- */

static int check_algorithm(const struct t3_plan_request *request)
{
	uint32_t most = request->op == T3_ALL_REDUCE ? T3_ALG_DIRECT_RING :
							T3_ALG_DIRECT;

	if (request->op < T3_REDUCE_SCATTER || request->op > T3_ALL_TO_ALL)
		return t3_fail(EINVAL, CALL "op is %u, allowed are %u to %u",
			       request->op, T3_REDUCE_SCATTER, T3_ALL_TO_ALL);
	if (request->algorithm > most)
		return t3_fail(EINVAL,
			       CALL "algorithm is %u, allowed with op %u are 0 to %u",
			       request->algorithm, request->op, most);
	if (request->op == T3_ALL_TO_ALL && request->algorithm == T3_ALG_RING)
		return t3_fail(EINVAL,
			       CALL "algorithm is %u, all-to-all has only %u (direct)",
			       T3_ALG_RING, T3_ALG_DIRECT);
	return 0;
}

static int check_request(const struct t3_plan_request *request, uint32_t rank)
{
	uint32_t element = t3_dtype_size(request->dtype);
	int ret = check_algorithm(request);

	if (ret)
		return ret;
	if (!request->ranks || request->ranks > T3_MAX_RANKS)
		return t3_fail_range("t3_plan_add", "ranks", request->ranks, 1,
				     T3_MAX_RANKS);
	if (rank >= request->ranks)
		return t3_fail_range("t3_plan_add", "rank", rank, 0, request->ranks - 1);
	if (!element)
		return t3_fail(EINVAL, CALL "dtype is %u, allowed are 1 to %u",
			       request->dtype, T3_DTYPE_COUNT);
	if (request->layout > T3_COL_MAJOR)
		return t3_fail(EINVAL, CALL "layout is %u, allowed are 0 and 1",
			       request->layout);
	if (!request->rows || request->rows > INT32_MAX)
		return t3_fail_range("t3_plan_add", "rows", request->rows, 1, INT32_MAX);
	if (!request->cols || request->cols > INT32_MAX)
		return t3_fail_range("t3_plan_add", "cols", request->cols, 1, INT32_MAX);
	if (request->block_bytes && (request->block_bytes < element ||
				     request->block_bytes > T3_MAX_BLOCK_BYTES))
		return t3_fail_range("t3_plan_add", "block_bytes", request->block_bytes,
				     element, T3_MAX_BLOCK_BYTES);
	if (!request->tiles || request->tiles > T3_MAX_TILES)
		return t3_fail_range("t3_plan_add", "tiles", request->tiles, 1,
				     T3_MAX_TILES);
	if (request->op == T3_ALL_TO_ALL && request->rows % request->ranks)
		return t3_fail(EDOM,
			       CALL "all-to-all of %llu rows, allowed are multiples of %u",
			       (unsigned long long)request->rows, request->ranks);
	return 0;
}

static uint32_t regions_of(const struct t3_plan_request *request)
{
	return request->op == T3_ALL_TO_ALL ? 2 : 1;
}

struct count {
	const struct t3_cuts *cuts;
	uint64_t triggers;
	uint64_t sources;
};

static void count_step(void *arg, const struct t3_step *step)
{
	struct count *count = arg;
	uint64_t blocks = t3_cuts_shard_blocks(count->cuts, step->dst.shard);

	count->triggers += blocks;
	count->sources += blocks * step->sources;
}

static struct count count_rank(const struct t3_plan_request *request,
			       const struct t3_cuts *cuts, uint32_t rank)
{
	struct count count = { .cuts = cuts };

	t3_table_steps(request, rank, count_step, &count);
	return count;
}

static int check_limit(const struct t3_cuts *cuts, const char *what,
		       uint64_t value, uint64_t most)
{
	if (value <= most)
		return 0;
	return t3_fail(E2BIG,
		       CALL "blocks of %u bytes make %llu %s a rank, allowed are %llu",
		       cuts->block_bytes, (unsigned long long)value, what,
		       (unsigned long long)most);
}

/*
 * The ABI's limits, at every rank, so that all ranks find the same answer.
 * Only blocks of the user's size, or more than 256 GiB, reach them.
 */
static int check_limits(const struct t3_plan_request *request,
			const struct t3_cuts *cuts)
{
	uint64_t blocks = t3_cuts_blocks(cuts) * regions_of(request);
	int ret = check_limit(cuts, "blocks", blocks, T3_MAX_BLOCKS);
	uint32_t r;

	for (r = 0; r < request->ranks && !ret; r++) {
		struct count count = count_rank(request, cuts, r);

		ret = check_limit(cuts, "triggers", count.triggers,
				  T3_MAX_TRIGGERS);
		if (!ret)
			ret = check_limit(cuts, "sources", count.sources,
					  T3_MAX_SOURCES);
	}
	return ret;
}

/*
 * Direct everywhere: one rounding, fewest transfers one after another, and in
 * memory that all ranks share every peer is equally near.
 */
static uint32_t choose_algorithm(const struct t3_plan_request *request)
{
	return request->algorithm ? request->algorithm : T3_ALG_DIRECT;
}

/* ---- the digest ---- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static void digest(const struct t3_plan_request *request,
		   const struct t3_cuts *cuts, uint64_t out[2])
{
	const uint64_t field[] = {
		PLANNER_VERSION, request->op, request->algorithm,
		request->ranks, request->rows, request->cols, request->dtype,
		request->layout, cuts->block_bytes, request->tiles,
	};
	size_t i;

	out[0] = 0x9e3779b97f4a7c15ULL;
	out[1] = 0xd1b54a32d192ed03ULL;
	for (i = 0; i < ARRAY_SIZE(field); i++) {
		out[0] = mix(out[0] + field[i] + 0x9e3779b97f4a7c15ULL);
		out[1] = mix((out[1] ^ field[i]) * 0xff51afd7ed558ccdULL + i);
	}
}

/* ---- the program ---- */

static uint32_t block_in_rank(const struct maker *m, uint32_t region,
			      uint32_t shard, uint32_t i)
{
	return m->planned->grid[region].first_block +
	       t3_cuts_block(m->cuts, shard, i);
}

static void emit_trigger(struct maker *m, const struct t3_step *step,
			 uint32_t i)
{
	uint32_t s;

	m->trigger[m->triggers++] = (struct t3_trigger) {
		.op = (uint16_t)step->op,
		.region = (uint16_t)step->dst.region,
		.block = t3_cuts_block(m->cuts, step->dst.shard, i),
		.seq = step->dst.at,
		.first_source = m->sources,
		.sources = step->sources,
	};
	m->planned->updates[block_in_rank(m, step->dst.region, step->dst.shard, i)]++;
	for (s = 0; s < step->sources; s++)
		m->source[m->sources++] = (struct t3_source) {
			.rank = (uint16_t)step->src[s].rank,
			.region = (uint16_t)step->src[s].region,
			.block = t3_cuts_block(m->cuts, step->src[s].shard, i),
			.at = step->src[s].at,
		};
}

static uint64_t block_bytes(const struct maker *m, uint32_t block)
{
	struct t3_rect rect = t3_grid_rect(&m->planned->grid[0], block);

	return (uint64_t)rect.rows * rect.cols * m->cuts->element;
}

static void emit_step(void *arg, const struct t3_step *step)
{
	struct maker *m = arg;
	uint32_t shard = step->dst.shard;
	uint32_t blocks = (uint32_t)t3_cuts_shard_blocks(m->cuts, shard);
	uint32_t i, s;

	for (i = 0; i < blocks; i++) {
		emit_trigger(m, step, i);
		for (s = 0; s < step->sources; s++)
			if (step->src[s].rank != m->rank)
				m->planned->moved_bytes += block_bytes(m,
					t3_cuts_block(m->cuts, shard, i));
	}
}

struct marker {
	struct maker *maker;
	uint32_t reader;
};

/* Another rank's line: mark what it reads of this rank. */
static void mark_step(void *arg, const struct t3_step *step)
{
	const struct marker *marker = arg;
	struct maker *m = marker->maker;
	uint32_t s, i;

	for (s = 0; s < step->sources; s++) {
		const struct t3_shard_at *src = &step->src[s];

		if (src->rank != m->rank)
			continue;
		for (i = 0; i < t3_cuts_shard_blocks(m->cuts, src->shard); i++)
			m->block[block_in_rank(m, src->region, src->shard, i)]
				.readers |= 1ULL << marker->reader;
	}
}

static void make_blocks(struct maker *m)
{
	const struct t3_plan_request *request = m->request;
	struct marker marker = { .maker = m };
	uint32_t g, s, i;

	for (g = 0; g < m->regions; g++) {
		for (s = 0; s < request->ranks; s++) {
			if (!t3_table_produces(request, m->rank, g, s))
				continue;
			for (i = 0; i < t3_cuts_shard_blocks(m->cuts, s); i++) {
				uint32_t b = block_in_rank(m, g, s, i);

				m->block[b].flags = T3_BLOCK_PRODUCED;
				m->block[b].tiles = request->tiles;
				m->planned->updates[b] = 1;
			}
		}
	}
	for (; marker.reader < request->ranks; marker.reader++)
		t3_table_steps(request, marker.reader, mark_step, &marker);
}

static void emit_production(struct maker *m, uint32_t shard, uint32_t i)
{
	if (t3_table_produces(m->request, m->rank, 0, shard) &&
	    i < t3_cuts_shard_blocks(m->cuts, shard))
		m->planned->step[m->planned->steps++] =
			block_in_rank(m, 0, shard, i);
}

/*
 * A ring: shards r - 1, r - 2, .. r, each arrives just in time. Else the same
 * order at all ranks, one block of each owner in turn: a block is complete as
 * soon as all have produced it, and all owners have work all the time.
 */
static void make_order(struct maker *m)
{
	uint32_t n = m->request->ranks;
	uint32_t most = 0;
	uint32_t s, i;

	for (s = 0; s < n; s++) {
		uint32_t blocks = (uint32_t)t3_cuts_shard_blocks(m->cuts, s);

		most = blocks > most ? blocks : most;
	}
	if (t3_table_ring_first(m->request)) {
		for (s = 1; s <= n; s++)
			for (i = 0; i < most; i++)
				emit_production(m, (m->rank + n - s) % n, i);
	} else {
		for (i = 0; i < most; i++)
			for (s = 0; s < n; s++)
				emit_production(m, s, i);
	}
}

static void make_grids(struct maker *m)
{
	const struct t3_cuts *cuts = m->cuts;
	uint32_t bands = (uint32_t)cuts->first[cuts->ranks];
	uint32_t crosses = (uint32_t)cuts->crosses;
	uint32_t *along = m->planned->cuts;
	uint32_t *across = along + bands + 1;
	uint32_t g;

	t3_cuts_fill(cuts, along);
	t3_cuts_fill_cross(cuts, across);
	for (g = 0; g < m->regions; g++)
		m->planned->grid[g] = (struct t3_grid) {
			.dtype = m->request->dtype,
			.block_rows = cuts->transposed ? crosses : bands,
			.block_cols = cuts->transposed ? bands : crosses,
			.first_block = g * bands * crosses,
			.row_cuts = cuts->transposed ? across : along,
			.col_cuts = cuts->transposed ? along : across,
		};
}

static void *array(size_t n, size_t bytes)
{
	return calloc(n ? n : 1, bytes);
}

/* Everything is allocated here, so that the rest can't fail. */
static int make_room(struct maker *m)
{
	struct count count = count_rank(m->request, m->cuts, m->rank);
	struct t3_planned *planned = m->planned;
	struct t3_program *program = &planned->program;

	program->grids = m->regions;
	program->blocks = (uint32_t)t3_cuts_blocks(m->cuts) * m->regions;
	program->triggers = (uint32_t)count.triggers;
	program->sources = (uint32_t)count.sources;
	planned->grid = array(program->grids, sizeof(*planned->grid));
	planned->step = array(program->blocks, sizeof(*planned->step));
	planned->updates = array(program->blocks, sizeof(*planned->updates));
	planned->cuts = array(m->cuts->first[m->cuts->ranks] +
			      m->cuts->crosses + 2, sizeof(uint32_t));
	m->block = array(program->blocks, sizeof(*m->block));
	m->trigger = array(program->triggers, sizeof(*m->trigger));
	m->source = array(program->sources, sizeof(*m->source));
	program->grid = planned->grid;
	program->block = m->block;
	program->trigger = m->trigger;
	program->source = m->source;
	if (!planned->grid || !planned->step || !planned->updates ||
	    !planned->cuts || !m->block || !m->trigger || !m->source) {
		t3_planner_free(planned);
		return t3_fail(ENOMEM, CALL "no memory for %u blocks and %u triggers",
			       program->blocks, program->triggers);
	}
	return 0;
}

int t3_planner_make(const struct t3_plan_request *request, uint32_t rank,
		    struct t3_planned *planned)
{
	struct t3_plan_request chosen = *request;
	struct t3_cuts cuts;
	struct maker m = {
		.request = &chosen,
		.rank = rank,
		.cuts = &cuts,
		.planned = planned,
	};
	int ret;

	memset(planned, 0, sizeof(*planned));
	ret = check_request(request, rank);
	if (ret)
		return ret;
	chosen.algorithm = choose_algorithm(request);
	m.regions = regions_of(request);
	t3_cuts_make(&cuts, &chosen, request->block_bytes ?
		     request->block_bytes : t3_cuts_choose(&chosen));
	ret = check_limits(&chosen, &cuts);
	if (!ret)
		ret = make_room(&m);
	if (ret)
		return ret;
	planned->algorithm = chosen.algorithm;
	planned->overlap = 1;
	digest(&chosen, &cuts, planned->program.digest);
	make_grids(&m);
	make_blocks(&m);
	t3_table_steps(&chosen, rank, emit_step, &m);
	make_order(&m);
	return 0;
}

void t3_planner_free(struct t3_planned *planned)
{
	free((void *)planned->program.block);
	free((void *)planned->program.trigger);
	free((void *)planned->program.source);
	free(planned->grid);
	free(planned->step);
	free(planned->updates);
	free(planned->cuts);
	memset(planned, 0, sizeof(*planned));
}
