// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3model's parts: files, folding, the cache, and simulations that must obey
 * the paper's equations.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fold.h"
#include "llc.h"
#include "machine_file.h"
#include "queue.h"
#include "variants.h"

#define NEARLY	(1 / 1e9)
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static struct model_file paper;

static int read_paper(void **state)
{
	char why[256];

	(void)state;
	return model_file_read(&paper, "paper", why, sizeof(why));
}

/* ---- machine files ---- */

static const char good[] =
	"name = x\nranks = 2 # s\ncompute.units = 4 # s\n"
	"compute.clock = 1 GHz # s\ncompute.f16 = 8 flop/clock # s\n"
	"compute.f32 = 4 flop/clock # s\ncompute.efficiency = 50 % # s\n"
	"tile.m = 8 # s\ntile.n = 8 # s\ntile.k = 8 # s\ntile.prefetch = 2 # s\n"
	"llc.size = 1 MiB # s\nllc.ways = 16 # s\ndram.rate = 10 GB/s # s\n"
	"dram.latency = 100 ns # s\ndram.queue = 8 # s\ndram.channels = 1 # s\n"
	"dram.near-memory = yes # s\nlink.topology = ring # s\n"
	"link.rate = 1 GB/s # s\nlink.latency = 1 ns # s\ndma.engines = 1 # s\n"
	"dma.fixed = 0 us # s\nmemory.policy = round-robin # s\n"
	"memory.starve = 5 % # s\n";

/**
 * struct refusal - a line that is added, or that takes one's place
 * @from: the beginning of the line that it replaces, or NULL: it is added
 * @line: the line
 * @why: the whole message
 */
struct refusal {
	const char *from;
	const char *line;
	const char *why;
};

static const struct refusal refusals[] = {
	{
		NULL, "speed = 3 # s",
		"f:26: there is no key \"speed\"",
	},
	{
		NULL, "ranks = 3 # s",
		"f:26: ranks is given twice, first in line 2",
	},
	{
		NULL, "name = y",
		"f:26: name is given twice",
	},
	{
		NULL, "nonsense",
		"f:26: \"nonsense\" is not \"key = value\"",
	},
	{
		NULL, "tracker.entries = 3",
		"f:26: tracker.entries has no source: \"# where it comes from\" must follow",
	},
	{
		NULL, "tracker.entries = -1 # s",
		"f:26: tracker.entries is -1, allowed are 0 to 1e+07",
	},
	{
		"name", "name = two words",
		"f:1: name is \"two words\", allowed is one word of up to 63 letters",
	},
	{
		"name", "",
		"f:26: name is missing",
	},
	{
		"ranks", "ranks = 2.5 # s",
		"f:2: ranks is 2.5, allowed are whole numbers",
	},
	{
		"ranks", "ranks = 0 # s",
		"f:2: ranks is 0, allowed are 1 to 4096",
	},
	{
		"ranks", "ranks = nan # s",
		"f:2: ranks is \"nan\", not a number",
	},
	{
		"ranks", "ranks = # s",
		"f:2: ranks is \"\", not a number",
	},
	{
		"ranks", "",
		"f:26: ranks is missing",
	},
	{
		"compute.clock", "compute.clock = 1 MHz # s",
		"f:4: compute.clock has the unit \"MHz\", it takes \"GHz\"",
	},
	{
		"compute.clock", "compute.clock = 1 # s",
		"f:4: compute.clock has the unit \"\", it takes \"GHz\"",
	},
	{
		"compute.clock", "compute.clock = 1e999 GHz # s",
		"f:4: compute.clock is \"1e999 GHz\", not a number",
	},
	{
		"compute.eff", "compute.efficiency = 101 % # s",
		"f:7: compute.efficiency is 101, allowed are 1 to 100 %",
	},
	{
		"link.topology", "link.topology = torus # s",
		"f:19: link.topology is \"torus\", allowed are ring, full, switch, pcie, shared",
	},
	{
		"dram.near", "dram.near-memory = maybe # s",
		"f:18: dram.near-memory is \"maybe\", allowed are no, yes",
	},
	{
		"dram.near", "dram.near-memory = no # s",
		"f:26: sum.rate is missing: dram.near-memory is \"no\", so units add",
	},
	{
		NULL, "sum.units = 4 # s",
		"f:27: sum.units is 4, allowed are fewer than compute.units, 4",
	},
	{
		NULL, "sum.units = 1 # s",
		"f:27: sum.units is 1, allowed is 0 where dram.near-memory is \"yes\"",
	},
};

static char *spoiled(const struct refusal *refusal)
{
	char *text = malloc(sizeof(good) + 100);
	char *at = text;
	const char *line = good;

	assert_non_null(text);
	while (*line) {
		size_t n = strcspn(line, "\n") + 1;

		if (refusal->from && !strncmp(line, refusal->from, strlen(refusal->from)))
			at += sprintf(at, "%s\n", refusal->line);
		else
			at += sprintf(at, "%.*s", (int)n, line);
		line += n;
	}
	if (!refusal->from)
		sprintf(at, "%s\n", refusal->line);
	return text;
}

static void test_refusals(void **state)
{
	struct model_file *file = malloc(sizeof(*file));
	char why[256];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(refusals); i++) {
		char *text = spoiled(&refusals[i]);

		assert_int_equal(model_file_parse(file, "f", text, why,
						  sizeof(why)), -EINVAL);
		assert_string_equal(why, refusals[i].why);
		free(text);
	}
	free(file);
}

static void test_good_file(void **state)
{
	struct model_file *file = malloc(sizeof(*file));
	char *text = strdup(good);
	char why[256];

	(void)state;
	assert_int_equal(model_file_parse(file, "f", text, why, sizeof(why)), 0);
	assert_true(file->machine.dram == 10e9);
	assert_int_equal(file->parameters, 24);
	free(text);
	free(file);
}

static void test_shipped(void **state)
{
	struct model_file *file = malloc(sizeof(*file));
	char why[256];
	size_t i;

	(void)state;
	for (i = 0; model_shipped[i].name; i++)
		assert_int_equal(model_file_read(file, model_shipped[i].name,
						 why, sizeof(why)), 0);
	assert_true(i >= 6);
	assert_int_equal(model_file_read(file, "/nonexistent", why, sizeof(why)),
			 -ENOENT);
	assert_int_equal(model_file_read(file, "/dev/zero", why, sizeof(why)),
			 -E2BIG);
	free(file);
}

static void test_fitted(void **state)
{
	struct model_parameter p = { .source = "fitted to a-8, b and c: so" };

	(void)state;
	assert_true(model_file_fitted(&p, "a-8"));
	assert_true(model_file_fitted(&p, "b"));
	assert_true(model_file_fitted(&p, "c"));
	assert_false(model_file_fitted(&p, "a"));
	assert_false(model_file_fitted(&p, "so"));
	strcpy(p.source, "not fitted to b");
	assert_false(model_file_fitted(&p, "b"));
}

/* ---- small parts ---- */

static void test_queue(void **state)
{
	struct model_queue queue = { 0 };
	double last = -1;
	uint32_t i, what = 0;

	(void)state;
	for (i = 0; i < 1000; i++)
		assert_true(model_queue_add(&queue, i * 7919 % 100, 0, i));
	for (i = 0; i < 1000; i++) {
		struct model_timer t = model_queue_take(&queue);

		/* Those of the same time come as they were added. */
		assert_true(t.time > last || (t.time == last && t.what > what));
		last = t.time;
		what = t.what;
	}
	assert_int_equal(queue.timers, 0);
	assert_true(model_queue_add(&queue, 1, 0, 1));
	assert_true(model_queue_add(&queue, 1, 0, 2));
	assert_int_equal(model_queue_take(&queue).what, 1);
	free(queue.timer);
}

static void test_cache(void **state)
{
	struct model_llc *llc = model_llc_new(1000, 16, 100, 10000);
	double gone;
	uint32_t i, round;

	(void)state;
	assert_true(model_llc_use(llc, 0, 10) == 1);
	assert_true(model_llc_use(llc, 0, 10) < NEARLY);
	/* 300 bytes in turn stay, 3000 bytes in turn do not. */
	for (round = 0, gone = 0; round < 3; round++)
		for (i = 0; i < 30; i++)
			gone = model_llc_use(llc, i, 10);
	assert_true(gone < 0.001);
	for (round = 0; round < 3; round++)
		for (i = 0; i < 60; i++)
			gone = model_llc_use(llc, 30 + i, 50);
	assert_true(gone > 0.999);
	model_llc_free(llc);
}

/* ---- folding ---- */

static void fold_of(const struct t3_plan_request *request, uint32_t rank,
		    const struct model_cut *cut, struct model_rank *out)
{
	struct t3_planned planned;
	const struct t3_program *p = &planned.program;

	assert_int_equal(t3_planner_make(request, rank, &planned), 0);
	out->program = *p;
	out->program.block = calloc(p->blocks, sizeof(*p->block));
	out->program.trigger = calloc(p->triggers, sizeof(*p->trigger));
	out->program.source = calloc(p->sources, sizeof(*p->source));
	model_fold(&planned, cut, rank, request->ranks,
		   (struct t3_trigger *)out->program.trigger,
		   (struct t3_source *)out->program.source,
		   (struct t3_plan_block *)out->program.block);
	t3_planner_free(&planned);
}

static void free_fold(struct model_rank *rank)
{
	free((void *)rank->program.block);
	free((void *)rank->program.trigger);
	free((void *)rank->program.source);
}

static const struct t3_source *source_of(const struct t3_program *p,
					 const struct t3_trigger *t, uint32_t i)
{
	return &p->source[t->first_source + i];
}

static const struct t3_trigger *find(const struct t3_program *p, uint32_t block)
{
	uint32_t i;

	for (i = 0; i < p->triggers; i++)
		if (p->trigger[i].block == block)
			return &p->trigger[i];
	return NULL;
}

/* The order of triggers means nothing: those of each block must be alike. */
static void assert_same(const struct t3_program *a, const struct t3_program *b)
{
	uint32_t i, s;

	assert_int_equal(a->blocks, b->blocks);
	assert_int_equal(a->triggers, b->triggers);
	for (i = 0; i < a->blocks; i++) {
		const struct t3_trigger *x = find(a, i), *y = find(b, i);

		assert_int_equal(a->block[i].flags, b->block[i].flags);
		assert_int_equal(!x, !y);
		if (!x)
			continue;
		assert_int_equal(x->op, y->op);
		assert_int_equal(x->seq, y->seq);
		assert_int_equal(x->sources, y->sources);
		for (s = 0; s < x->sources; s++) {
			assert_int_equal(source_of(a, x, s)->block,
					 source_of(b, y, s)->block);
			assert_int_equal(source_of(a, x, s)->at,
					 source_of(b, y, s)->at);
		}
	}
}

static void by_rule(uint32_t op, uint32_t ranks, const struct model_cut *cut,
		    struct model_rank *out)
{
	uint32_t each = cut->bands * cut->crosses;

	out->program.blocks = ranks * each;
	out->program.triggers = (ranks - 1) * each;
	out->program.block = calloc(ranks * each, sizeof(*out->program.block));
	out->program.trigger = calloc(ranks * each, sizeof(*out->program.trigger));
	out->program.source = calloc(2 * ranks * each, sizeof(*out->program.source));
	model_fold_ring(op, ranks, cut,
			(struct t3_trigger *)out->program.trigger,
			(struct t3_source *)out->program.source,
			(struct t3_plan_block *)out->program.block,
			&out->program.sources);
}

static void check_fold(uint32_t op, uint32_t ranks, bool transposed)
{
	/* Blocks of 16 x 8: a shard is cut both ways. */
	struct model_cut cut = {
		.bands = transposed ? 1 : 2, .crosses = transposed ? 4 : 1,
		.transposed = transposed
	};
	struct t3_plan_request request = {
		.op = op, .algorithm = T3_ALG_RING, .ranks = ranks,
		.rows = 32ULL * ranks, .cols = 16, .dtype = T3_DTYPE_F32,
		.layout = transposed ? T3_COL_MAJOR : T3_ROW_MAJOR,
		.block_bytes = transposed ? 512 : 1024, .tiles = 1,
	};
	struct model_rank first, other;
	uint32_t r;

	fold_of(&request, 0, &cut, &first);
	assert_int_equal(first.program.blocks, ranks * cut.bands * cut.crosses);
	for (r = 1; r < ranks; r++) {
		fold_of(&request, r, &cut, &other);
		assert_same(&first.program, &other.program);
		free_fold(&other);
	}
	by_rule(op, ranks, &cut, &other);
	assert_same(&first.program, &other.program);
	free_fold(&other);
	free_fold(&first);
}

/* All ranks fold to the same program, which is the rule's. */
static void test_fold(void **state)
{
	static const uint32_t ranks[] = { 2, 3, 4, 5, 8, 13, 64 };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(ranks); i++) {
		check_fold(T3_REDUCE_SCATTER, ranks[i], false);
		check_fold(T3_ALL_GATHER, ranks[i], false);
		check_fold(T3_REDUCE_SCATTER, ranks[i], true);
		check_fold(T3_ALL_GATHER, ranks[i], true);
	}
}

/* One rank that stands for all takes as long as all do. */
static void test_fold_time(void **state)
{
	struct model_sublayer s = { 2048, 1024, 512, T3_DTYPE_BF16, 4, 1 };
	struct model_work work = model_work_of(&paper.machine, &s,
					       T3_REDUCE_SCATTER);
	struct model_run run = {
		.carrier = MODEL_BY_MEMORY, .policy = MODEL_ROUND_ROBIN,
	};
	struct model_result one, all;
	struct model_gemm gemm;
	struct model_plan plan;

	(void)state;
	assert_int_equal(model_plan_make(&plan, &work, 128, 128), 0);
	assert_int_equal(plan.simulated, 1);
	assert_int_equal(model_gemm_make(&gemm, &paper.machine, &work,
					 &plan.rank[0], 80, false), 0);
	run.gemm = &gemm;
	assert_int_equal(model_sim(&one, &paper.machine, &plan, &run), 0);
	model_plan_free(&plan);
	work.fold = false;
	assert_int_equal(model_plan_make(&plan, &work, 128, 128), 0);
	assert_int_equal(plan.simulated, 4);
	assert_int_equal(model_sim(&all, &paper.machine, &plan, &run), 0);
	model_plan_free(&plan);
	model_gemm_free(&gemm);
	assert_true(fabs(all.time / one.time - 1) < NEARLY);
	assert_true(all.traffic.comm_read == one.traffic.comm_read);
	assert_true(all.traffic.link_out == one.traffic.link_out);
	assert_int_equal(all.updates, 4 * one.updates);
}

/* ---- what simulations must obey ---- */

static const struct model_sublayer sublayers[] = {
	{ 16384, 3072, 384, T3_DTYPE_BF16, 8, 1 },
	{ 16384, 3072, 768, T3_DTYPE_BF16, 16, 1 },
	{ 8192, 4256, 2128, T3_DTYPE_BF16, 8, 1 },
	{ 2048, 18432, 576, T3_DTYPE_BF16, 32, 1 },	/* tiles across shards */
	{ 512, 256, 64, T3_DTYPE_F32, 2, 1 },
	{ 12800, 1024, 256, T3_DTYPE_BF16, 100, 1 },	/* beyond the core's ranks */
};

static void assert_bytes(double is, double shards, const struct model_sublayer *s)
{
	double whole = (double)s->m * s->n * (s->dtype == T3_DTYPE_F32 ? 4 : 2);

	assert_true(is == shards * whole / s->ranks);
}

static void check_equations(const struct model_answer *a,
			    const struct model_sublayer *s)
{
	const struct model_traffic *t = &a->fused[MODEL_T3].traffic;
	double n = s->ranks;

	assert_bytes(a->gemm.traffic.gemm_write, n, s);
	assert_bytes(a->rs.traffic.comm_read, 2 * n - 1, s);
	assert_bytes(a->rs.traffic.comm_write, n, s);
	assert_bytes(a->rs_nmc.traffic.comm_read, n - 1, s);
	assert_bytes(a->rs_nmc.traffic.comm_write, n - 1, s);
	assert_bytes(a->ag.traffic.comm_read, n - 1, s);
	assert_bytes(a->ag.traffic.comm_write, n - 1, s);
	assert_bytes(t->comm_read, n - 2, s);
	assert_bytes(t->comm_write, n - 1, s);
	assert_bytes(t->gemm_write, n - 1, s);
	assert_bytes(t->link_out, n - 1, s);
	assert_true(!memcmp(t, &a->fused[MODEL_T3_MCA].traffic, sizeof(*t)));
}

static void check_conserved(const struct model_result *r)
{
	assert_true(r->traffic.link_in == r->traffic.link_out);
	assert_int_equal(r->updates, r->wanted);
}

static void check_order(const struct model_answer *a, double link,
			const struct model_sublayer *s)
{
	double whole = (double)s->m * s->n * (s->dtype == T3_DTYPE_F32 ? 4 : 2);
	double limit = (s->ranks - 1) * whole / s->ranks / link;
	uint32_t v;

	/* Memory that compute has first is no slower for it. */
	assert_true(a->fused[MODEL_T3_MCA].gemm <= a->fused[MODEL_T3].gemm * (1 + NEARLY));
	for (v = MODEL_T3; v <= MODEL_T3_MCA; v++) {
		assert_true(a->fused[v].time >= limit);
		assert_true(a->fused[v].time >= a->fused[v].gemm);
		assert_true(a->time[v] <= a->time[MODEL_SEQUENTIAL]);
	}
	assert_true(a->time[MODEL_IDEAL_NMC] <= a->time[MODEL_IDEAL]);
	assert_true(a->time[MODEL_IDEAL] <= a->time[MODEL_SEQUENTIAL]);
	assert_true(a->rs_nmc.time <= a->rs.time);
	/* Reads that outputs no longer displace can only be fewer. */
	assert_true(a->fused[MODEL_T3].traffic.gemm_read <=
		    a->gemm.traffic.gemm_read * (1 + NEARLY));
}

static void test_laws(void **state)
{
	struct model_answer a;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(sublayers); i++) {
		assert_int_equal(model_ask(&a, &paper.machine, &sublayers[i],
					   false), 0);
		check_equations(&a, &sublayers[i]);
		check_conserved(&a.rs);
		check_conserved(&a.ag);
		check_conserved(&a.fused[MODEL_T3]);
		check_conserved(&a.fused[MODEL_T3_MCA]);
		check_order(&a, paper.machine.link, &sublayers[i]);
		model_answer_free(&a);
	}
}

static void test_determinism(void **state)
{
	struct model_answer a, b;

	(void)state;
	assert_int_equal(model_ask(&a, &paper.machine, &sublayers[2], false), 0);
	assert_int_equal(model_ask(&b, &paper.machine, &sublayers[2], false), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	model_answer_free(&a);
	model_answer_free(&b);
}

/* Every topology and carrier comes to an end, and loses nothing. */
static void test_machines(void **state)
{
	static const char *const topology[] = {
		"ring", "full", "switch", "pcie", "shared"
	};
	struct model_sublayer s = { 1000, 500, 300, T3_DTYPE_BF16, 5, 1 };
	struct model_machine m = paper.machine;
	struct model_answer a;
	uint32_t t, near;

	(void)state;
	m.sum_rate = 10e9;
	for (t = 0; t < COUNT(topology); t++) {
		for (near = 0; near < 2; near++) {
			m.topology = t;
			m.near_memory = near;
			m.sum_units = near ? 0 : 4;
			assert_int_equal(model_ask(&a, &m, &s, false), 0);
			check_conserved(&a.rs);
			check_conserved(&a.fused[MODEL_T3]);
			check_conserved(&a.fused[MODEL_T3_MCA]);
			assert_bytes(a.rs.traffic.link_out, 4, &s);
			assert_bytes(a.fused[MODEL_T3].traffic.link_out, 4, &s);
			model_answer_free(&a);
		}
	}
}

/* A slower machine is slower. */
static void test_direction(void **state)
{
	struct model_machine m = paper.machine;
	struct model_answer a, b;

	(void)state;
	assert_int_equal(model_ask(&a, &m, &sublayers[0], false), 0);
	m.link /= 2;
	assert_int_equal(model_ask(&b, &m, &sublayers[0], false), 0);
	assert_true(b.rs.time > 1.8 * a.rs.time);
	assert_true(b.time[MODEL_T3] > a.time[MODEL_T3]);
	assert_true(b.gemm.time == a.gemm.time);
	m = paper.machine;
	m.clock /= 2;
	assert_int_equal(model_ask(&b, &m, &sublayers[0], false), 0);
	assert_true(b.gemm.time > 1.8 * a.gemm.time);
	assert_true(b.rs.time == a.rs.time);
}

/* Round robin: half of memory for each that wants it. Compute first: all. */
static void test_policies(void **state)
{
	struct model_sublayer s = { 8192, 4096, 64, T3_DTYPE_BF16, 8, 1 };
	struct model_machine m = paper.machine;
	struct model_answer a;

	(void)state;
	/* Transfers that could fill memory alone, and a GEMM that needs it. */
	m.link *= 10;
	m.dram_queue = 1;
	m.starve = 0.01;
	assert_int_equal(model_ask(&a, &m, &s, false), 0);
	assert_true(a.fused[MODEL_T3].gemm > 1.2 * a.gemm.time);
	assert_true(a.fused[MODEL_T3].gemm < 2.2 * a.gemm.time);
	assert_true(a.fused[MODEL_T3_MCA].gemm < a.fused[MODEL_T3].gemm);
	model_answer_free(&a);
}

static void test_nodes(void **state)
{
	struct model_sublayer s = { 1024, 1024, 256, T3_DTYPE_BF16, 4, 3 };
	struct model_machine m = paper.machine;
	struct model_answer a, b;

	(void)state;
	assert_int_equal(model_ask(&a, &m, &s, false), -EINVAL);
	m.net = 10e9;
	assert_int_equal(model_ask(&a, &m, &s, false), 0);
	/* Two thirds of a shard, twice, each way. */
	assert_true(a.nodes > 2 * 2. / 3 * 1024 * 1024 * 2 / 4 / m.net);
	s.nodes = 1;
	assert_int_equal(model_ask(&b, &m, &s, false), 0);
	assert_true(fabs(a.time[MODEL_T3] - b.time[MODEL_T3] - a.nodes) < NEARLY / 1000);
}

static void test_refused_work(void **state)
{
	struct model_sublayer s = { 1001, 1024, 64, T3_DTYPE_BF16, 100, 1 };
	struct model_answer a;

	(void)state;
	assert_int_equal(model_ask(&a, &paper.machine, &s, false), -ERANGE);
	assert_non_null(strstr(t3_error(), "ranks is 100"));
	s.ranks = MODEL_MAX_RANKS + 1;
	assert_int_equal(model_ask(&a, &paper.machine, &s, false), -ERANGE);
	assert_non_null(strstr(t3_error(), "allowed are 1 to 4096"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_good_file),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_fitted),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_fold_time),
		cmocka_unit_test(test_laws),
		cmocka_unit_test(test_determinism),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_direction),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_refused_work),
	};

	return cmocka_run_group_tests(tests, read_paper, NULL);
}
