// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans for the simulation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "plan_impl.h"
#include "reduce.h"

#define CALL	"model_plan_make: "

/* Addresses of regions, for the core's check of overlaps; no memory is there. */
#define REGION_BASE	(1ULL << 30)

uint32_t model_element(uint32_t dtype)
{
	return t3_dtype_size(dtype);
}

void *model_array(size_t n, size_t bytes)
{
	return calloc(n ? n : 1, bytes);
}

struct model_rect model_block_rect(const struct model_work *work,
				   const struct t3_grid *grid, uint32_t block)
{
	struct t3_rect rect = t3_grid_rect(grid, block);

	if (work->layout == T3_COL_MAJOR)
		return (struct model_rect) {
			rect.col, rect.col + rect.cols, rect.row, rect.row + rect.rows
		};
	return (struct model_rect) {
		rect.row, rect.row + rect.rows, rect.col, rect.col + rect.cols
	};
}

/* Bytes of a row of tiles, or of a shard's column: within what a block may have. */
static uint32_t block_bytes(const struct model_work *work, uint32_t tile_m,
			    uint32_t tile_n)
{
	uint64_t shard = (work->rows + work->ranks - 1) / work->ranks;
	bool columns = work->layout == T3_COL_MAJOR;
	uint64_t least = (columns ? shard : work->cols) * model_element(work->dtype);
	uint64_t bytes = least * (columns ? tile_n : tile_m);
	uint64_t all = work->rows * work->cols * model_element(work->dtype);

	if (work->block_bytes == MODEL_PLANNER_BLOCKS)
		return 0;
	if (work->block_bytes > bytes)
		bytes *= work->block_bytes / bytes;
	/* Many ranks: fewer blocks, so that all of them fit a plan. */
	while (all / bytes > T3_MAX_BLOCKS / 2)
		bytes *= 2;
	while (bytes > T3_MAX_BLOCK_BYTES && bytes / 2 >= least)
		bytes /= 2;
	return bytes < T3_MAX_BLOCK_BYTES ? (uint32_t)bytes :
					    T3_MAX_BLOCK_BYTES;
}

/**
 * struct size - the lists of a program
 */
struct size {
	uint32_t block_rows;
	uint32_t block_cols;
	uint32_t triggers;
	uint32_t sources;
};

/* The program's arrays, copied: the planner's own are constant. */
static int make_room(struct model_rank *rank, const struct size *size)
{
	uint32_t blocks = size->block_rows * size->block_cols;
	struct t3_grid *grid = model_array(1, sizeof(*grid));
	uint32_t *cuts = model_array(size->block_rows + size->block_cols + 2,
				     sizeof(*cuts));

	if (!grid || !cuts) {
		free(grid);
		free(cuts);
		return t3_fail(ENOMEM, CALL "no memory for a grid");
	}
	grid->block_rows = size->block_rows;
	grid->block_cols = size->block_cols;
	grid->row_cuts = cuts;
	grid->col_cuts = cuts + size->block_rows + 1;
	rank->program = (struct t3_program) {
		.grids = 1,
		.blocks = blocks,
		.triggers = size->triggers,
		.sources = size->sources,
		.grid = grid,
		.block = model_array(blocks, sizeof(struct t3_plan_block)),
		.trigger = model_array(size->triggers, sizeof(struct t3_trigger)),
		.source = model_array(size->sources, sizeof(struct t3_source)),
	};
	rank->block = model_array(blocks, sizeof(*rank->block));
	if (!rank->program.block || !rank->program.trigger ||
	    !rank->program.source || !rank->block)
		return t3_fail(ENOMEM, CALL "no memory for %u blocks", blocks);
	return 0;
}

static uint32_t *writable(const u32 *cuts)
{
	return (uint32_t *)cuts;
}

static void place_grid(const struct model_maker *m, struct model_rank *rank)
{
	struct t3_grid *grid = (struct t3_grid *)rank->program.grid;

	grid->dtype = m->request.dtype;
	grid->base = REGION_BASE;
	grid->row_stride = (uint64_t)grid->col_cuts[grid->block_cols] *
			   model_element(m->request.dtype);
}

/* The grid that the planner made, with addresses of its own. */
static void copy_grid(struct model_rank *rank, const struct t3_grid *from)
{
	const struct t3_grid *grid = rank->program.grid;

	memcpy(writable(grid->row_cuts), from->row_cuts,
	       (from->block_rows + 1) * sizeof(u32));
	memcpy(writable(grid->col_cuts), from->col_cuts,
	       (from->block_cols + 1) * sizeof(u32));
}

static void describe_blocks(const struct model_maker *m, struct model_rank *rank)
{
	const struct model_work *work = &m->plan->work;
	uint32_t b;

	for (b = 0; b < rank->program.blocks; b++) {
		struct model_rect rect = model_block_rect(work,
							  rank->program.grid, b);
		uint64_t shard = (uint64_t)rect.row * work->ranks / work->rows;

		/* The division is of the shard that begins at or before it. */
		if (t3_planner_shard(work->rows, work->ranks, shard + 1) <= rect.row)
			shard++;
		rank->block[b].bytes = (rect.row_end - rect.row) *
				       (rect.col_end - rect.col) *
				       model_element(work->dtype);
		rank->block[b].shard = (uint32_t)shard;
	}
}

/* ---- programs ---- */

static int fold(const struct model_maker *m, struct model_rank *rank,
		const struct t3_planned *planned, uint32_t number)
{
	const struct t3_program *program = &rank->program;
	bool transposed = m->plan->work.layout == T3_COL_MAJOR;
	uint32_t ranks = m->request.ranks;
	uint32_t bands = transposed ? program->grid->block_cols :
				      program->grid->block_rows;
	struct model_cut cut = {
		.bands = bands / ranks,
		.crosses = program->blocks / bands,
		.transposed = transposed,
	};

	if (m->request.rows % ranks || bands % ranks)
		return t3_fail(EDOM, CALL "rows is %llu, allowed are multiples of the %u ranks where a ring is folded",
			       (unsigned long long)m->request.rows, ranks);
	model_fold(planned, &cut, number, ranks,
		   (struct t3_trigger *)program->trigger,
		   (struct t3_source *)program->source,
		   (struct t3_plan_block *)program->block);
	return 0;
}

static void copy_program(struct model_rank *rank,
			 const struct t3_program *from)
{
	struct t3_program *program = &rank->program;

	memcpy(program->digest, from->digest, sizeof(program->digest));
	memcpy((void *)program->block, from->block,
	       program->blocks * sizeof(*program->block));
	memcpy((void *)program->trigger, from->trigger,
	       program->triggers * sizeof(*program->trigger));
	memcpy((void *)program->source, from->source,
	       program->sources * sizeof(*program->source));
}

static int from_planned(const struct model_maker *m, struct model_rank *rank,
			const struct t3_planned *planned, uint32_t number)
{
	const struct t3_program *from = &planned->program;
	struct size size = {
		planned->grid[0].block_rows, planned->grid[0].block_cols,
		from->triggers, from->sources
	};
	int ret = make_room(rank, &size);

	if (ret)
		return ret;
	copy_grid(rank, &planned->grid[0]);
	place_grid(m, rank);
	copy_program(rank, from);
	if (m->plan->work.fold)
		ret = fold(m, rank, planned, number);
	if (ret || m->request.op == T3_ALL_GATHER || !m->plan->work.k)
		return ret;
	return model_tiles_make(m, rank, planned->step, planned->steps);
}

static int from_planner(const struct model_maker *m, struct model_rank *rank,
			uint32_t number)
{
	struct t3_planned planned;
	int ret = t3_planner_make(&m->request, number, &planned);

	if (ret)
		return ret;
	ret = from_planned(m, rank, &planned, number);
	t3_planner_free(&planned);
	return ret;
}

/* Even cuts, as the planner makes them where all shards are alike. */
static void even_cuts(uint32_t *cuts, uint64_t length, uint32_t parts)
{
	uint32_t i;

	for (i = 0; i <= parts; i++)
		cuts[i] = (uint32_t)(i * length / parts);
}

/* How the planner would cut, were there no limit to ranks. */
static int cut_alike(const struct model_maker *m, struct model_cut *cut)
{
	const struct model_work *work = &m->plan->work;
	uint64_t most = m->request.block_bytes / model_element(work->dtype);
	uint64_t shard = work->rows / work->ranks;
	uint64_t band, width;

	if (work->rows % work->ranks)
		return t3_fail(EDOM, CALL "rows is %llu, allowed are multiples of the %u ranks where a ring is folded",
			       (unsigned long long)work->rows, work->ranks);
	cut->transposed = work->layout == T3_COL_MAJOR;
	if (cut->transposed) {
		band = shard < most ? shard : most;
		width = most / band;
	} else {
		width = work->cols < most ? work->cols : most;
		band = most / width;
	}
	cut->bands = (uint32_t)((shard + band - 1) / band);
	cut->crosses = (uint32_t)((work->cols + width - 1) / width);
	if ((uint64_t)cut->bands * cut->crosses * work->ranks <= T3_MAX_BLOCKS)
		return 0;
	return t3_fail(E2BIG, CALL "%llu blocks, allowed are %u",
		       (unsigned long long)cut->bands * cut->crosses * work->ranks,
		       T3_MAX_BLOCKS);
}

/* Rank 0's blocks in the order of production: shards N - 1, N - 2, .. 0. */
static int tiles_by_rule(const struct model_maker *m, struct model_rank *rank,
			 const struct model_cut *cut)
{
	uint32_t ranks = m->plan->work.ranks;
	uint32_t each = cut->bands * cut->crosses;
	uint32_t *step = model_array(rank->program.blocks, sizeof(*step));
	uint32_t i;
	int ret;

	if (!step)
		return t3_fail(ENOMEM, CALL "no memory for %u blocks",
			       rank->program.blocks);
	for (i = 0; i < rank->program.blocks; i++)
		step[i] = model_fold_block(cut, ranks, ranks - 1 - i / each,
					   i % each);
	ret = model_tiles_make(m, rank, step, rank->program.blocks);
	free(step);
	return ret;
}

/* Beyond the core's ranks: the folded program by its rule. */
static int from_rule(const struct model_maker *m, struct model_rank *rank)
{
	const struct model_work *work = &m->plan->work;
	struct model_cut cut;
	struct size size;
	uint32_t bands, triggers;
	int ret = cut_alike(m, &cut);

	if (ret)
		return ret;
	bands = cut.bands * work->ranks;
	triggers = cut.bands * cut.crosses * (work->ranks - 1);
	size = (struct size) {
		cut.transposed ? cut.crosses : bands,
		cut.transposed ? bands : cut.crosses, triggers, 2 * triggers
	};
	ret = make_room(rank, &size);
	if (ret)
		return ret;
	model_fold_ring(work->op, work->ranks, &cut,
			(struct t3_trigger *)rank->program.trigger,
			(struct t3_source *)rank->program.source,
			(struct t3_plan_block *)rank->program.block,
			&rank->program.sources);
	even_cuts(writable(rank->program.grid->row_cuts), cut.transposed ?
		  work->cols : work->rows, size.block_rows);
	even_cuts(writable(rank->program.grid->col_cuts), cut.transposed ?
		  work->rows : work->cols, size.block_cols);
	place_grid(m, rank);
	if (work->op != T3_REDUCE_SCATTER || !work->k)
		return 0;
	return tiles_by_rule(m, rank, &cut);
}

/* ---- the graph ---- */

static int check_part(const struct t3_program *program, uint32_t rank,
		      uint32_t ranks)
{
	struct t3_verdict verdict;
	void *scratch = model_array(t3_program_scratch(program), 1);
	int ret;

	if (!scratch)
		return t3_fail(ENOMEM, CALL "no memory to check a program");
	ret = t3_program_check(program, rank, ranks, scratch, &verdict);
	free(scratch);
	return ret ? t3_fail_verdict("model_plan_make", &verdict) : 0;
}

static int make_graph(struct model_plan *plan)
{
	const struct t3_program *part[T3_MAX_RANKS];
	struct t3_verdict verdict;
	u64 scratch_bytes;
	void *scratch;
	uint32_t r;
	int ret = 0;

	for (r = 0; r < plan->simulated && !ret; r++) {
		part[r] = &plan->rank[r].program;
		ret = check_part(part[r], r, plan->simulated);
	}
	if (ret)
		return ret;
	plan->graph_memory = model_array(t3_graph_bytes(part, plan->simulated,
							&scratch_bytes), 1);
	scratch = model_array(scratch_bytes, 1);
	if (plan->graph_memory && scratch) {
		ret = t3_graph_build(&plan->graph, part, plan->simulated,
				     plan->graph_memory, scratch, &verdict);
		if (ret)
			t3_fail_verdict("model_plan_make", &verdict);
	} else {
		ret = t3_fail(ENOMEM, CALL "no memory for the graph");
	}
	free(scratch);
	return ret;
}

static int check_work(const struct model_work *work)
{
	if (!work->ranks || work->ranks > MODEL_MAX_RANKS)
		return t3_fail(ERANGE, CALL "ranks is %u, allowed are 1 to %u",
			       work->ranks, MODEL_MAX_RANKS);
	if (work->fold && work->algorithm != T3_ALG_RING)
		return t3_fail(EINVAL, CALL "algorithm is %u, only rings (%u) are folded",
			       work->algorithm, T3_ALG_RING);
	if (work->ranks > T3_MAX_RANKS && !work->fold)
		return t3_fail(ERANGE, CALL "ranks is %u, allowed are 1 to %u, and up to %u for folded rings",
			       work->ranks, T3_MAX_RANKS, MODEL_MAX_RANKS);
	if (work->op < T3_REDUCE_SCATTER || work->op > T3_ALL_REDUCE ||
	    (work->fold && work->op == T3_ALL_REDUCE))
		return t3_fail(EINVAL, CALL "op is %u, allowed are %u to %u, and %u not folded",
			       work->op, T3_REDUCE_SCATTER, T3_ALL_REDUCE,
			       T3_ALL_REDUCE);
	if (work->rows > INT32_MAX || work->cols > INT32_MAX || !work->rows ||
	    !work->cols)
		return t3_fail(ERANGE, CALL "%llu x %llu elements, allowed are 1 to %d each",
			       (unsigned long long)work->rows,
			       (unsigned long long)work->cols, INT32_MAX);
	return 0;
}

static int make_ranks(struct model_maker *m)
{
	struct model_plan *plan = m->plan;
	uint32_t r;
	int ret = 0;

	for (r = 0; r < plan->simulated && !ret; r++) {
		if (plan->work.ranks > T3_MAX_RANKS)
			ret = from_rule(m, &plan->rank[r]);
		else
			ret = from_planner(m, &plan->rank[r], r);
		if (!ret)
			describe_blocks(m, &plan->rank[r]);
	}
	return ret;
}

int model_plan_make(struct model_plan *plan, const struct model_work *work,
		    uint32_t tile_m, uint32_t tile_n)
{
	struct model_maker m = { .plan = plan, .tile_m = tile_m, .tile_n = tile_n };
	int ret;

	memset(plan, 0, sizeof(*plan));
	plan->work = *work;
	ret = check_work(work);
	if (ret)
		return ret;
	m.request = (struct t3_plan_request) {
		.op = work->op,
		.algorithm = work->algorithm,
		.ranks = work->ranks,
		.rows = work->rows,
		.cols = work->cols,
		.dtype = work->dtype,
		.layout = work->layout,
		.block_bytes = block_bytes(work, tile_m, tile_n),
		.tiles = 1,
	};
	plan->tile_rows = (uint32_t)((work->rows + tile_m - 1) / tile_m);
	plan->tile_cols = (uint32_t)((work->cols + tile_n - 1) / tile_n);
	plan->simulated = work->fold ? 1 : work->ranks;
	plan->rank = model_array(plan->simulated, sizeof(*plan->rank));
	ret = plan->rank ? make_ranks(&m) :
	      t3_fail(ENOMEM, CALL "no memory for %u ranks", plan->simulated);
	if (!ret)
		ret = make_graph(plan);
	if (ret)
		model_plan_free(plan);
	return ret;
}

static void free_rank(struct model_rank *rank)
{
	if (rank->program.grid)
		free((void *)rank->program.grid->row_cuts);
	free((void *)rank->program.grid);
	free((void *)rank->program.block);
	free((void *)rank->program.trigger);
	free((void *)rank->program.source);
	free(rank->tile);
	free(rank->piece);
	free(rank->block);
}

void model_plan_free(struct model_plan *plan)
{
	uint32_t r;

	for (r = 0; plan->rank && r < plan->simulated; r++)
		free_rank(&plan->rank[r]);
	free(plan->rank);
	free(plan->graph_memory);
	memset(plan, 0, sizeof(*plan));
}
