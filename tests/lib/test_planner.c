// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every table that the planner makes, judged by the checker, accepted by the
 * core, and run on data; and that the checker sees what is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"
#include "plan_checker.h"
#include "plan_runner.h"
#include "reduce.h"

/* After the others: it needs their types. */
#include <cmocka.h>

/* Elements of the matrices that are run on data. */
#define RUN_ELEMENTS	3000

/* The sanitizers take their time: every third number of ranks will do. */
#ifdef T3_TESTS_SLOW
#define STRIDE		3
#else
#define STRIDE		1
#endif

struct form {
	uint32_t op;
	uint32_t algorithm;
};

static const struct form forms[] = {
	{ T3_REDUCE_SCATTER, T3_ALG_RING },
	{ T3_REDUCE_SCATTER, T3_ALG_DIRECT },
	{ T3_ALL_GATHER, T3_ALG_RING },
	{ T3_ALL_GATHER, T3_ALG_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_RING },
	{ T3_ALL_REDUCE, T3_ALG_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_RING_DIRECT },
	{ T3_ALL_REDUCE, T3_ALG_DIRECT_RING },
	{ T3_ALL_TO_ALL, T3_ALG_DIRECT },
};

static const char *name(const struct t3_plan_request *q)
{
	static char text[160];

	snprintf(text, sizeof(text),
		 "op %u algorithm %u ranks %u %llu x %llu dtype %u layout %u block_bytes %u tiles %u",
		 q->op, q->algorithm, q->ranks, (unsigned long long)q->rows,
		 (unsigned long long)q->cols, q->dtype, q->layout,
		 q->block_bytes, q->tiles);
	return text;
}

/* ---- making all parts ---- */

static void make_all(const struct t3_plan_request *q, struct t3_planned *part)
{
	uint32_t r, g;

	for (r = 0; r < q->ranks; r++) {
		if (t3_planner_make(q, r, &part[r]))
			fail_msg("%s: %s", name(q), t3_error());
		for (g = 0; g < part[r].program.grids; g++) {
			struct t3_grid *grid = &part[r].grid[g];

			/* Far from each other, as the core looks for overlap. */
			grid->base = (g + 1ULL) << 44;
			grid->row_stride =
				grid->col_cuts[grid->block_cols] * 8ULL;
		}
	}
}

static void free_all(const struct t3_plan_request *q, struct t3_planned *part)
{
	uint32_t r;

	for (r = 0; r < q->ranks; r++)
		t3_planner_free(&part[r]);
}

/* ---- the core's opinion ---- */

static void check_part(const struct t3_plan_request *q,
		       const struct t3_program *program, uint32_t rank)
{
	void *scratch = malloc(t3_program_scratch(program));
	struct t3_verdict verdict;

	assert_non_null(scratch);
	if (t3_program_check(program, rank, q->ranks, scratch, &verdict))
		fail_msg("%s: refused: %u, rank %u, trigger %u, detail %u",
			 name(q), verdict.error, verdict.rank, verdict.trigger,
			 verdict.detail);
	free(scratch);
}

/* Retirement waits for every trigger that touches the rank: rule 4. */
static void check_retires(const struct t3_plan_request *q,
			  const struct t3_graph *graph,
			  const struct t3_program *const *program)
{
	uint32_t r, t, i;

	for (r = 0; r < q->ranks; r++) {
		for (t = 0; t < program[r]->triggers; t++) {
			const struct t3_trigger *what = &program[r]->trigger[t];
			const struct t3_source *from =
				&program[r]->source[what->first_source];
			uint64_t touched = 1ULL << r;

			for (i = 0; i < what->sources; i++)
				touched |= 1ULL << from[i].rank;
			if (graph->retires[graph->first_trigger[r] + t] != touched)
				fail_msg("%s: trigger %u of rank %u", name(q), t,
					 r);
		}
	}
}

static void check_core(const struct t3_plan_request *q,
		       const struct t3_planned *part)
{
	const struct t3_program *program[T3_MAX_RANKS];
	struct t3_verdict verdict;
	struct t3_graph graph;
	uint64_t bytes, scratch_bytes;
	void *memory, *scratch;
	uint32_t r, b;

	for (r = 0; r < q->ranks; r++) {
		program[r] = &part[r].program;
		check_part(q, program[r], r);
	}
	bytes = t3_graph_bytes(program, q->ranks, &scratch_bytes);
	memory = malloc(bytes + 1);
	scratch = malloc(scratch_bytes + 1);
	assert_non_null(memory);
	assert_non_null(scratch);
	if (t3_graph_build(&graph, program, q->ranks, memory, scratch, &verdict))
		fail_msg("%s: no graph: %u, rank %u, trigger %u, detail %u",
			 name(q), verdict.error, verdict.rank, verdict.trigger,
			 verdict.detail);
	for (r = 0; r < q->ranks; r++)
		for (b = 0; b < program[r]->blocks; b++)
			assert_int_equal(graph.updates[graph.first_block[r] + b],
					 part[r].updates[b]);
	check_retires(q, &graph, program);
	free(scratch);
	free(memory);
}

/* ---- one request, all opinions ---- */

static unsigned long judged;

static void judge(const struct t3_plan_request *q)
{
	struct t3_planned part[T3_MAX_RANKS];
	char why[160] = "";

	make_all(q, part);
	if (part[0].algorithm != q->algorithm)
		fail_msg("%s: algorithm %u", name(q), part[0].algorithm);
	if (plan_check(q, part, why, sizeof(why)))
		fail_msg("%s: %s", name(q), why);
	check_core(q, part);
	if (q->rows * q->cols <= RUN_ELEMENTS &&
	    plan_run(q, part, judged % 3, why, sizeof(why)))
		fail_msg("%s: %s", name(q), why);
	free_all(q, part);
	judged++;
}

/* A request of this form at these sizes; all-to-all rounds the rows up. */
static struct t3_plan_request request(const struct form *form, uint32_t ranks,
				      uint64_t rows, uint64_t cols)
{
	struct t3_plan_request q = {
		.op = form->op,
		.algorithm = form->algorithm,
		.ranks = ranks,
		.rows = rows,
		.cols = cols,
		.dtype = 1 + judged % T3_DTYPE_COUNT,
		.layout = T3_ROW_MAJOR,
		.tiles = 1 + judged % 7,
	};

	if (form->op == T3_ALL_TO_ALL)
		q.rows = (rows + ranks - 1) / ranks * ranks;
	return q;
}

static void judge_sizes(const struct form *form, uint32_t ranks, uint64_t rows,
			uint64_t cols)
{
	/* In elements: the least, odd ones, all of it, the planner's choice. */
	static const uint32_t limit[] = { 1, 3, 16, 100, 5000, 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limit); i++) {
		struct t3_plan_request q = request(form, ranks, rows, cols);

		if (limit[i] == 1 && rows * cols > 200)
			continue;
		q.block_bytes = limit[i] * t3_dtype_size(q.dtype);
		for (q.layout = 0; q.layout <= T3_COL_MAJOR; q.layout++)
			judge(&q);
	}
}

static void judge_ranks(uint32_t ranks)
{
	const uint64_t size[][2] = {
		{ 1, 1 }, { ranks, 1 }, { 2 * ranks + 1, 5 }, { 7, 23 },
		{ ranks > 1 ? ranks - 1 : 1, 3 }, { 40, 64 }, { 1, 40 },
		{ 301, 2 },
	};
	size_t f, s;

	for (f = 0; f < ARRAY_SIZE(forms); f++)
		for (s = 0; s < ARRAY_SIZE(size); s++)
			judge_sizes(&forms[f], ranks, size[s][0], size[s][1]);
}

static void test_all_to_13_ranks(void **state)
{
	uint32_t ranks;

	(void)state;
	for (ranks = 1; ranks <= 13; ranks += STRIDE)
		judge_ranks(ranks);
	assert_true(judged > 10000 / STRIDE);
}

static void test_many_ranks(void **state)
{
	static const uint32_t ranks[] = { 14, 16, 17, 31, 32, 48, 63, 64 };
	size_t i, f;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ranks); i += STRIDE) {
		for (f = 0; f < ARRAY_SIZE(forms); f++) {
			judge_sizes(&forms[f], ranks[i], 130, 3);
			judge_sizes(&forms[f], ranks[i], 20, 9);
		}
	}
}

/* ---- what the planner chooses ---- */

/* Sizes of real layers: enough blocks to overlap, none too small or flat. */
static void test_choice_of_blocks(void **state)
{
	static const uint64_t size[][2] = {
		{ 8192, 4256 }, { 16384, 3072 }, { 2048, 12288 }, { 8192, 16384 },
	};
	static const uint32_t ranks[] = { 2, 8, 16, 64 };
	size_t s, n;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(size); s++) {
		for (n = 0; n < ARRAY_SIZE(ranks); n++) {
			struct t3_plan_request q = request(&forms[1], ranks[n],
							   size[s][0], size[s][1]);
			struct t3_planned p;
			uint64_t shard = size[s][0] / ranks[n];
			uint64_t shard_bytes = shard * size[s][1] * 2;
			uint64_t block, rows;

			q.dtype = T3_DTYPE_BF16;
			assert_int_equal(t3_planner_make(&q, 1, &p), 0);
			block = q.rows * q.cols * 2 / p.program.blocks;
			rows = p.program.grid->row_cuts[1];
			assert_in_range(block, 128 << 10, 4 << 20);
			/* a small shard is not worth many */
			assert_in_range(p.program.blocks / ranks[n],
					shard_bytes > 1 << 20 ? 3 : 2, 64);
			assert_true(rows >= (shard < 128 ? shard : 128));
			assert_int_equal(p.overlap, 1);
			t3_planner_free(&p);
		}
	}
}

static void test_auto_is_direct(void **state)
{
	uint32_t op;

	(void)state;
	for (op = T3_REDUCE_SCATTER; op <= T3_ALL_TO_ALL; op++) {
		struct form form = { op, T3_ALG_AUTO };
		struct t3_plan_request q = request(&form, 4, 64, 64);
		struct t3_planned part, same;

		assert_int_equal(t3_planner_make(&q, 3, &part), 0);
		assert_int_equal(part.algorithm, T3_ALG_DIRECT);
		q.algorithm = T3_ALG_DIRECT;
		assert_int_equal(t3_planner_make(&q, 3, &same), 0);
		assert_memory_equal(part.program.digest, same.program.digest, 16);
		t3_planner_free(&part);
		t3_planner_free(&same);
	}
}

static void test_digests_differ(void **state)
{
	const struct t3_plan_request base = request(&forms[4], 4, 64, 64);
	struct t3_plan_request q[10];
	struct t3_planned part[10];
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(q); i++)
		q[i] = base;
	q[1].op = T3_REDUCE_SCATTER;
	q[2].algorithm = T3_ALG_DIRECT;
	q[3].ranks = 5;
	q[4].rows = 65;
	q[5].cols = 65;
	q[6].dtype = base.dtype == T3_DTYPE_F32 ? T3_DTYPE_I32 : T3_DTYPE_F32;
	q[7].layout = T3_COL_MAJOR;
	q[8].block_bytes = 512;
	q[9].tiles = base.tiles + 1;
	for (i = 0; i < ARRAY_SIZE(q); i++)
		assert_int_equal(t3_planner_make(&q[i], 1, &part[i]), 0);
	for (i = 0; i < ARRAY_SIZE(q); i++)
		for (j = 0; j < i; j++)
			assert_true(part[i].program.digest[0] !=
				    part[j].program.digest[0] &&
				    part[i].program.digest[1] !=
				    part[j].program.digest[1]);
	for (i = 0; i < ARRAY_SIZE(q); i++)
		t3_planner_free(&part[i]);
}

/* ---- refusals ---- */

/* A field of the request that is set to a value that is refused. */
struct edit {
	size_t at;
	size_t bytes;
	uint64_t value;
};

struct refusal {
	struct edit edit[4];
	uint32_t rank;
	int error;
	const char *sentence;
};

#define SET(field, to)	{ offsetof(struct t3_plan_request, field), 4, (to) }
#define SET64(field, to) { offsetof(struct t3_plan_request, field), 8, (to) }

static const struct refusal refusals[] = {
	{ { SET(op, 0) }, 0, -EINVAL, "op is 0, allowed are 1 to 4" },
	{ { SET(op, 5) }, 0, -EINVAL, "op is 5, allowed are 1 to 4" },
	{ { SET(algorithm, 5) }, 0, -EINVAL,
	  "algorithm is 5, allowed with op 3 are 0 to 4" },
	{ { SET(op, T3_REDUCE_SCATTER), SET(algorithm, 3) }, 0, -EINVAL,
	  "algorithm is 3, allowed with op 1 are 0 to 2" },
	{ { SET(op, T3_ALL_TO_ALL), SET(algorithm, T3_ALG_RING) }, 0, -EINVAL,
	  "algorithm is 1, all-to-all has only 2 (direct)" },
	{ { SET(ranks, 0) }, 0, -ERANGE, "ranks is 0, allowed are 1 to 64" },
	{ { SET(ranks, 65) }, 0, -ERANGE, "ranks is 65, allowed are 1 to 64" },
	{ { SET(ranks, 4) }, 4, -ERANGE, "rank is 4, allowed are 0 to 3" },
	{ { SET(dtype, 0) }, 0, -EINVAL, "dtype is 0, allowed are 1 to 5" },
	{ { SET(dtype, 6) }, 0, -EINVAL, "dtype is 6, allowed are 1 to 5" },
	{ { SET(layout, 2) }, 0, -EINVAL, "layout is 2, allowed are 0 and 1" },
	{ { SET64(rows, 0) }, 0, -ERANGE,
	  "rows is 0, allowed are 1 to 2147483647" },
	{ { SET64(rows, 1ULL << 31) }, 0, -ERANGE,
	  "rows is 2147483648, allowed are 1 to 2147483647" },
	{ { SET64(cols, 0) }, 0, -ERANGE,
	  "cols is 0, allowed are 1 to 2147483647" },
	{ { SET64(cols, 1ULL << 31) }, 0, -ERANGE,
	  "cols is 2147483648, allowed are 1 to 2147483647" },
	{ { SET(block_bytes, 3) }, 0, -ERANGE,
	  "block_bytes is 3, allowed are 4 to 4194304" },
	{ { SET(block_bytes, 5000000) }, 0, -ERANGE,
	  "block_bytes is 5000000, allowed are 4 to 4194304" },
	{ { SET(tiles, 0) }, 0, -ERANGE,
	  "tiles is 0, allowed are 1 to 1048576" },
	{ { SET(tiles, 1048577) }, 0, -ERANGE,
	  "tiles is 1048577, allowed are 1 to 1048576" },
	{ { SET(op, T3_ALL_TO_ALL), SET64(rows, 63) }, 0, -EDOM,
	  "all-to-all of 63 rows, allowed are multiples of 4" },
	{ { SET64(rows, 1 << 20), SET(block_bytes, 4) }, 0, -E2BIG,
	  "blocks of 4 bytes make 67108864 blocks a rank, allowed are 65536" },
	{ { SET64(rows, INT32_MAX), SET64(cols, INT32_MAX) }, 0, -E2BIG,
	  "blocks of 4194304 bytes make " },
	{ { SET64(rows, 33000), SET(op, T3_ALL_TO_ALL), SET(block_bytes, 256) },
	  0, -E2BIG,
	  "blocks of 256 bytes make 66000 blocks a rank, allowed are 65536" },
	/* At every rank alike, whatever it has itself. */
	{ { SET64(rows, 44000), SET(algorithm, T3_ALG_RING),
	    SET(block_bytes, 256) }, 3, -E2BIG,
	  "blocks of 256 bytes make 66000 triggers a rank, allowed are 65536" },
	/* One row: rank 63's shard is all of it. */
	{ { SET(ranks, 64), SET64(rows, 1), SET64(cols, 20000),
	    SET(block_bytes, 4) }, 0, -E2BIG,
	  "blocks of 4 bytes make 1280000 sources a rank, allowed are 1048576" },
};

static struct t3_plan_request edited(const struct refusal *refusal)
{
	struct t3_plan_request q = {
		.op = T3_ALL_REDUCE,
		.ranks = 4,
		.rows = 64,
		.cols = 64,
		.dtype = T3_DTYPE_F32,
		.tiles = 1,
	};
	size_t i;

	/* The low bytes come first on all machines that t3 is for. */
	for (i = 0; i < ARRAY_SIZE(refusal->edit); i++)
		memcpy((char *)&q + refusal->edit[i].at, &refusal->edit[i].value,
		       refusal->edit[i].bytes);
	return q;
}

static void test_refusals(void **state)
{
	static const struct t3_planned nothing;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct t3_plan_request q = edited(&refusals[i]);
		struct t3_planned part;

		assert_int_equal(t3_planner_make(&q, refusals[i].rank, &part),
				 refusals[i].error);
		if (!strstr(t3_error(), refusals[i].sentence) ||
		    strncmp(t3_error(), "t3_plan_add: ", 13))
			fail_msg("\"%s\" has not \"%s\"", t3_error(),
				 refusals[i].sentence);
		assert_memory_equal(&part, &nothing, sizeof(part));
	}
}

/* ---- the checker itself ---- */

static struct t3_trigger *trigger_of(struct t3_planned *part, uint32_t t)
{
	return (struct t3_trigger *)&part->program.trigger[t];
}

static struct t3_source *source_of(struct t3_planned *part, uint32_t s)
{
	return (struct t3_source *)&part->program.source[s];
}

static struct t3_plan_block *block_of(struct t3_planned *part, uint32_t b)
{
	return (struct t3_plan_block *)&part->program.block[b];
}

static void spoil_at(struct t3_planned *part)
{
	source_of(part, 0)->at ^= 3;	/* 1 is 2, 2 is 1 */
}

static void spoil_rank(struct t3_planned *part)
{
	source_of(part, 0)->rank = (source_of(part, 0)->rank + 1) % 4;
}

static void spoil_block(struct t3_planned *part)
{
	source_of(part, 0)->block ^= 1;
}

static void spoil_order(struct t3_planned *part)
{
	struct t3_source first = *source_of(part, 0);

	*source_of(part, 0) = *source_of(part, 1);
	*source_of(part, 1) = first;
}

static void spoil_seq(struct t3_planned *part)
{
	trigger_of(part, 0)->seq++;
}

static void spoil_target(struct t3_planned *part)
{
	trigger_of(part, 0)->block ^= 1;
}

static void spoil_op(struct t3_planned *part)
{
	trigger_of(part, 0)->op = 3;
}

static void spoil_count(struct t3_planned *part)
{
	part->program.triggers--;
}

static void spoil_readers(struct t3_planned *part)
{
	block_of(part, 0)->readers ^= 1;
}

static void spoil_producer(struct t3_planned *part)
{
	block_of(part, 0)->flags ^= T3_BLOCK_PRODUCED;
}

static void spoil_tiles(struct t3_planned *part)
{
	block_of(part, 0)->tiles++;
}

static void spoil_updates(struct t3_planned *part)
{
	part->updates[0]++;
}

static void spoil_steps(struct t3_planned *part)
{
	part->steps--;
}

static void spoil_step_order(struct t3_planned *part)
{
	uint32_t last = part->step[part->steps - 1];

	part->step[part->steps - 1] = part->step[0];
	part->step[0] = last;
}

static void spoil_moved(struct t3_planned *part)
{
	part->moved_bytes++;
}

static void spoil_digest(struct t3_planned *part)
{
	part->program.digest[1]++;
}

static void spoil_cuts(struct t3_planned *part)
{
	part->cuts[1]++;
}

static void test_checker_sees(void **state)
{
	static void (*const spoil[])(struct t3_planned *part) = {
		spoil_at, spoil_rank, spoil_block, spoil_order, spoil_seq,
		spoil_target, spoil_op, spoil_count, spoil_readers,
		spoil_producer, spoil_tiles, spoil_updates, spoil_steps,
		spoil_step_order, spoil_moved, spoil_digest, spoil_cuts,
	};
	size_t i, f;

	(void)state;
	for (f = 0; f < ARRAY_SIZE(forms); f++) {
		for (i = 0; i < ARRAY_SIZE(spoil); i++) {
			struct t3_plan_request q = request(&forms[f], 4, 64, 16);
			struct t3_planned part[4];
			char why[160] = "";

			/* A copy has no order of addends. */
			if (spoil[i] == spoil_order &&
			    (q.op == T3_ALL_GATHER || q.op == T3_ALL_TO_ALL))
				continue;
			q.dtype = T3_DTYPE_F32;
			q.block_bytes = 4 * 16 * 4;
			make_all(&q, part);
			assert_int_equal(plan_check(&q, part, why, sizeof(why)), 0);
			spoil[i](&part[2]);
			if (!plan_check(&q, part, why, sizeof(why)))
				fail_msg("%s: spoiled by %zu, not seen", name(&q), i);
			assert_true(why[0]);
			free_all(&q, part);
		}
	}
}

/* The same collective in another order is another plan: cycles are seen. */
static void test_checker_sees_cycles(void **state)
{
	struct t3_plan_request q = request(&forms[0], 3, 3, 1);
	struct t3_planned part[3];
	char why[160] = "";
	uint32_t *order;
	uint32_t nodes, r, i;

	(void)state;
	make_all(&q, part);
	for (r = 0; r < 3; r++)
		for (i = 0; i < part[r].program.sources; i++)
			if (source_of(&part[r], i)->rank != r)
				*source_of(&part[r], i) = (struct t3_source) {
					.rank = (uint16_t)((r + 2) % 3),
					.block = 0, .at = 2,
				};
	assert_int_equal(plan_order(3, part, &order, &nodes), -1);
	assert_int_equal(plan_check(&q, part, why, sizeof(why)), -1);
	free_all(&q, part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_to_13_ranks),
		cmocka_unit_test(test_many_ranks),
		cmocka_unit_test(test_choice_of_blocks),
		cmocka_unit_test(test_auto_is_direct),
		cmocka_unit_test(test_digests_differ),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_checker_sees),
		cmocka_unit_test(test_checker_sees_cycles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("planner", tests, NULL, NULL);
}
