// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan compiler: exact sequences, and every collective played back on one
 * hardware queue and on many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner.h"
#include "record.h"
#include "reduce.h"

/* After the others: it needs their types. */
#include <cmocka.h>

#define EPOCHS	2

struct form {
	const char *name;
	uint32_t op;
	uint32_t algorithm;
};

static const struct form forms[] = {
	{ "ring RS", T3_REDUCE_SCATTER, T3_ALG_RING },
	{ "direct RS", T3_REDUCE_SCATTER, T3_ALG_DIRECT },
	{ "ring AG", T3_ALL_GATHER, T3_ALG_RING },
	{ "direct AG", T3_ALL_GATHER, T3_ALG_DIRECT },
	{ "ring AR", T3_ALL_REDUCE, T3_ALG_RING },
	{ "direct AR", T3_ALL_REDUCE, T3_ALG_DIRECT },
	{ "ring direct AR", T3_ALL_REDUCE, T3_ALG_RING_DIRECT },
	{ "direct ring AR", T3_ALL_REDUCE, T3_ALG_DIRECT_RING },
	{ "A2A", T3_ALL_TO_ALL, T3_ALG_DIRECT },
};

/* A plan of all ranks, and what is made of it. */
struct plan {
	uint32_t ranks;
	struct t3_planned part[8];
	const struct t3_program *prog[8];
	const uint32_t *step[8];
	uint32_t steps[8];
	struct t3_graph graph;
	void *memory;
	struct t3_gpu_mapping map;
	struct t3_gpu_list list;
	struct record record[8];
};

static void make_graph(struct plan *p)
{
	struct t3_verdict verdict = { 0 };
	uint64_t scratch_bytes;
	uint64_t bytes = t3_graph_bytes(p->prog, p->ranks, &scratch_bytes);
	void *scratch = malloc(scratch_bytes);

	p->memory = malloc(bytes);
	assert_int_equal(t3_graph_build(&p->graph, p->prog, p->ranks, p->memory,
					scratch, &verdict), 0);
	free(scratch);
}

static void make_plan(struct plan *p, const struct form *form, uint32_t ranks,
		      uint32_t rows, uint32_t block_bytes)
{
	const struct t3_plan_request q = {
		.op = form->op,
		.algorithm = form->algorithm,
		.ranks = ranks,
		.rows = rows,
		.cols = 64,
		.dtype = T3_DTYPE_BF16,
		.layout = T3_ROW_MAJOR,
		.block_bytes = block_bytes,
		.tiles = 1,
	};
	uint32_t r, g;

	*p = (struct plan) { .ranks = ranks };
	for (r = 0; r < ranks; r++) {
		assert_int_equal(t3_planner_make(&q, r, &p->part[r]), 0);
		for (g = 0; g < p->part[r].program.grids; g++) {
			p->part[r].grid[g].row_stride = 128;
			p->part[r].grid[g].base = (1ULL << 20) * (8 * g + r + 1);
		}
		p->prog[r] = &p->part[r].program;
		p->step[r] = p->part[r].step;
		p->steps[r] = p->part[r].steps;
	}
	make_graph(p);
}

static void compile_plan(struct plan *p, uint32_t streams, bool push,
			 uint32_t band_bytes)
{
	uint32_t r;

	p->map = (struct t3_gpu_mapping) {
		.streams = streams,
		.band_bytes = band_bytes,
		.push = push,
		.step = p->step,
		.steps = p->steps,
	};
	assert_int_equal(t3_gpu_compile(&p->list, p->prog, &p->graph, &p->map), 0);
	for (r = 0; r < p->ranks; r++)
		assert_int_equal(record_epochs(&p->record[r], &p->list, r, EPOCHS), 0);
}

static void free_list(struct plan *p)
{
	uint32_t r;

	for (r = 0; r < p->ranks; r++)
		record_free(&p->record[r]);
	t3_gpu_list_free(&p->list);
}

static void free_plan(struct plan *p)
{
	uint32_t r;

	for (r = 0; r < p->ranks; r++)
		t3_planner_free(&p->part[r]);
	free(p->memory);
}

/* What must hold of every list, whatever it does. */
static void check_list(const struct plan *p)
{
	uint32_t limit = p->map.band_bytes, i, k;
	uint32_t nodes = 0;

	for (i = 0; i < p->list.ops; i++) {
		const struct t3_gpu_op *op = &p->list.op[i];
		const struct t3_gpu_place *from = p->list.source + op->first_source;

		nodes += op->nodes;
		assert_true(op->stream < p->map.streams);
		if (op->kind == T3_GPU_WAIT)
			assert_int_equal(op->owner, op->process);
		if (op->kind == T3_GPU_COPY)
			assert_int_not_equal(from->rank, op->to.rank);
		if (op->kind == T3_GPU_MOVE)
			assert_int_equal(from->rank, op->to.rank);
		if (op->nodes > 1 && op->kind != T3_GPU_PRODUCE)
			assert_true(op->rows * op->width <= limit);
		for (k = 0; k < i && op->kind == T3_GPU_WRITE; k++)
			assert_false(p->list.op[k].kind == T3_GPU_WRITE &&
				     p->list.op[k].owner == op->owner &&
				     p->list.op[k].word == op->word);
	}
	for (i = 0; i < p->graph.blocks; i++)
		nodes -= p->graph.produced[i];
	assert_int_equal(nodes, p->graph.triggers);
}

static void play_all(const struct plan *p, const char *name)
{
	static const uint32_t queues[] = { 1, 2, 3, 32 };
	char why[200];
	uint32_t i, seed;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		for (seed = 0; seed < 3; seed++) {
			if (record_play(p->record, &p->list, &p->graph, EPOCHS,
					queues[i], seed, why, sizeof(why)))
				fail_msg("%s, %u ranks, %u streams, push %d: %s",
					 name, p->ranks, p->map.streams,
					 p->map.push, why);
		}
	}
}

static void test_play(void **state)
{
	static const uint32_t streams[] = { 1, 2, 4, 9 };
	uint32_t i, n, s, push;
	struct plan p;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		for (n = 1; n <= 8; n++) {
			make_plan(&p, &forms[i], n, 6 * n, 256);
			for (s = 0; s < ARRAY_SIZE(streams); s++) {
				for (push = 0; push < 2; push++) {
					compile_plan(&p, streams[s], push,
						     push ? 256 : 512);
					check_list(&p);
					play_all(&p, forms[i].name);
					free_list(&p);
				}
			}
			free_plan(&p);
		}
	}
}

/* One line a process: kind, stream, and what it is about. */
static void write_process(const struct plan *p, uint32_t process, char *text,
			  size_t bytes)
{
	static const char *const names[] = {
		"?", "arm", "produce", "wait", "copy", "move", "add", "sum",
		"write", "retire",
	};
	size_t at = 0;
	uint32_t i;

	text[0] = 0;
	for (i = 0; i < p->list.ops && at < bytes; i++) {
		const struct t3_gpu_op *op = &p->list.op[i];

		if (op->process != process)
			continue;
		at += snprintf(text + at, bytes - at, "%s%s@%u", at ? " " : "",
			       names[op->kind], op->stream);
		if (op->kind == T3_GPU_WAIT)
			at += snprintf(text + at, bytes - at, ":%u", op->word);
		else if (op->kind == T3_GPU_WRITE)
			at += snprintf(text + at, bytes - at, ":%u.%u",
				       op->owner, op->word);
		else if (op->sources)
			at += snprintf(text + at, bytes - at, ":%u<%u+%llu/%llu",
				       op->to.rank,
				       p->list.source[op->first_source].rank,
				       (unsigned long long)op->to.offset,
				       (unsigned long long)op->rows * op->width);
	}
}

static void expect(const struct form *form, uint32_t process, const char *want)
{
	char text[2000];
	struct plan p;

	make_plan(&p, form, 2, 8, 256);
	compile_plan(&p, 2, false, 1024);
	write_process(&p, process, text, sizeof(text));
	assert_string_equal(text, want);
	free_list(&p);
	free_plan(&p);
}

#include "sequences.inc"

static void test_sequences(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sequences); i++) {
		expect(&forms[i], 0, sequences[i][0]);
		expect(&forms[i], 1, sequences[i][1]);
	}
}

static void test_refused(void **state)
{
	struct t3_gpu_list list;
	struct plan p;
	struct t3_gpu_mapping map = { .streams = 0 };

	(void)state;
	make_plan(&p, &forms[0], 2, 8, 256);
	assert_int_equal(t3_gpu_compile(&list, p.prog, &p.graph, &map), -EINVAL);
	map.streams = T3_GPU_STREAMS + 1;
	assert_int_equal(t3_gpu_compile(&list, p.prog, &p.graph, &map), -EINVAL);
	map.streams = 1;
	map.step = p.step;
	assert_int_equal(t3_gpu_compile(&list, p.prog, &p.graph, &map), -EINVAL);
	assert_null(list.op);
	free_plan(&p);
}

/* Out of turn: producing before arming, arming twice. */
static void test_turn(void **state)
{
	struct t3_gpu_submitter s = { 0 };
	struct plan p;

	(void)state;
	make_plan(&p, &forms[0], 2, 8, 256);
	compile_plan(&p, 2, false, 1024);
	s.list = &p.list;
	s.epoch = 1;
	record_free(&p.record[0]);
	assert_int_equal(t3_gpu_submit(&s, &record_backend, &p.record[0],
				       T3_GPU_PRODUCE), -EPROTO);
	assert_int_equal(p.record[0].ops, 0);
	assert_int_equal(t3_gpu_submit(&s, &record_backend, &p.record[0],
				       T3_GPU_ARM), 0);
	assert_int_equal(t3_gpu_submit(&s, &record_backend, &p.record[0],
				       T3_GPU_ARM), -EPROTO);
	free_list(&p);
	free_plan(&p);
}

/* The player sees a missing wait, and a deadlock. */
static void test_player(void **state)
{
	char why[200];
	struct plan p;
	uint32_t i;

	(void)state;
	make_plan(&p, &forms[0], 4, 16, 256);
	compile_plan(&p, 2, false, 256);
	for (i = 0; i < p.record[1].ops; i++)
		if (p.record[1].op[i].kind == T3_GPU_WAIT &&
		    p.record[1].op[i].stream == 1)
			p.record[1].epoch[i] = 0;
	assert_int_equal(record_play(p.record, &p.list, &p.graph, EPOCHS, 2, 1,
				     why, sizeof(why)), -1);
	for (i = 0; i < p.record[1].ops; i++)
		if (p.record[1].op[i].kind == T3_GPU_WAIT)
			p.record[1].epoch[i] = 3;
	assert_int_equal(record_play(p.record, &p.list, &p.graph, EPOCHS, 2, 1,
				     why, sizeof(why)), -1);
	assert_string_equal(why, "deadlock with 2 queues");
	free_list(&p);
	free_plan(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_play),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_player),
	};
	char text[2000];
	struct plan p;
	uint32_t i, r;

	/* Print the sequences, to look at and to keep. */
	for (i = 0; argc > 1 && argv[1][0] == 'p' && i < ARRAY_SIZE(forms); i++) {
		printf("\t{ /* %s */\n", forms[i].name);
		make_plan(&p, &forms[i], 2, 8, 256);
		compile_plan(&p, 2, false, 1024);
		for (r = 0; r < 2; r++) {
			write_process(&p, r, text, sizeof(text));
			printf("\t\t\"%s\",\n", text);
		}
		printf("\t},\n");
		free_list(&p);
		free_plan(&p);
	}
	if (argc > 1)
		return 0;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
