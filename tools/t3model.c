// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3model: how long would it take on that machine?
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine.h"
#include "paper.h"
#include "report.h"
#include "results.h"
#include "shapes.h"
#include "svg.h"
#include "number.h"

#define STR_(x)	#x
#define STR(x)	STR_(x)

/* libc looks for it by name, so it can't be hidden as all else is */
__attribute__((visibility("default")))
const char *argp_program_version = "t3model " STR(T3_VERSION_MAJOR) "."
	STR(T3_VERSION_MINOR) "." STR(T3_VERSION_PATCH);

enum {
	OPT_MACHINE = 0x100, OPT_PAPER, OPT_JSON, OPT_SHAPE, OPT_RANKS,
	OPT_DTYPE, OPT_NETWORKS, OPT_MACHINES, OPT_SHOW, OPT_SVG,
	OPT_NODES, OPT_CALIBRATE, OPT_COMPARE,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What is simulated:", 1 },
	{ "machine", OPT_MACHINE, "FILE", 0,
	  "a machine's file, or a name of --machines (paper)", 1 },
	{ "shape", OPT_SHAPE, "NAME", 0,
	  "MODEL/SUBLAYER/TP of t3bench --list-shapes, T3, today or all (T3)", 1 },
	{ NULL, 'm', "M", 0, "rows of one GEMM's output, with -n and -k", 1 },
	{ NULL, 'n', "N", 0, "columns of the output", 1 },
	{ NULL, 'k', "K", 0, "length of the dot products", 1 },
	{ "ranks", OPT_RANKS, "N", 0,
	  "2 to 4096 (the shape's, or the machine's)", 1 },
	{ "nodes", OPT_NODES, "N", 0,
	  "so many nodes of --ranks each, 1 to 4096, 4096 ranks in all (1)", 1 },
	{ "dtype", OPT_DTYPE, "NAME", 0, "bf16, f16, f32 or f64 (bf16)", 1 },
	{ NULL, 0, NULL, 0, "What is told:", 2 },
	{ "paper", OPT_PAPER, NULL, 0, "the T3 paper's figures beside ours", 2 },
	{ "networks", OPT_NETWORKS, NULL, 0,
	  "estimates for whole networks, training and prompt", 2 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 2 },
	{ "svg", OPT_SVG, "DIR", 0,
	  "write charts to DIR: speedups, movement and the first shape's timeline", 2 },
	{ "compare", OPT_COMPARE, "PATH", 0,
	  "predictions beside the results in a JSON file, or a folder of them", 2 },
	{ "calibrate", OPT_CALIBRATE, "FROM", 0,
	  "print --machine's file, fitted to curves or results in JSON, or to this cpu", 2 },
	{ "machines", OPT_MACHINES, NULL, 0, "list the machines that are shipped", 2 },
	{ "show", OPT_SHOW, NULL, 0, "print the machine's file", 2 },
	{ 0 }
};

/**
 * struct request - what the command line asks for
 * @machine: a path or a name
 * @shape: of --shape
 * @m: 0: not given
 * @n: likewise
 * @k: likewise
 * @ranks: likewise
 * @nodes: 1: one
 * @dtype: T3_DTYPE_*
 * @mode: the option that says what is told, or 0: sublayers
 * @json: print JSON
 * @path: of --compare or --calibrate
 * @svg: directory for charts, or NULL
 */
struct request {
	const char *machine;
	const char *shape;
	uint64_t m;
	uint64_t n;
	uint64_t k;
	uint32_t ranks;
	uint32_t nodes;
	uint32_t dtype;
	int mode;
	bool json;
	const char *path;
	const char *svg;
};

static uint32_t parse_dtype(struct argp_state *state, const char *arg)
{
	static const char *const name[] = { "f32", "f64", "f16", "bf16" };
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (!strcmp(name[i], arg))
			return T3_DTYPE_F32 + i;
	argp_error(state, "--dtype is \"%s\"; allowed: bf16, f16, f32, f64", arg);
	return 0;
}

static bool is_set(const char *name)
{
	return !strcmp(name, "T3") || !strcmp(name, "today") ||
	       !strcmp(name, "all");
}

static void check(struct argp_state *state, const struct request *r)
{
	bool size = r->m || r->n || r->k;

	if (size && !(r->m && r->n && r->k))
		argp_error(state, "-m, -n and -k go together; given: %s%s%s",
			   r->m ? "-m " : "", r->n ? "-n " : "",
			   r->k ? "-k" : "");
	if (size && r->shape)
		argp_error(state, "--shape is \"%s\"; allowed with -m, -n and -k: none",
			   r->shape);
	if (r->shape && !is_set(r->shape) && !t3_shape_find(r->shape))
		argp_error(state, "--shape is \"%s\"; allowed: MODEL/SUBLAYER/TP of t3bench --list-shapes, T3, today, all",
			   r->shape);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	switch (key) {
	case OPT_MACHINE:
		r->machine = arg;
		return 0;
	case OPT_SHAPE:
		r->shape = arg;
		return 0;
	case 'm':
		r->m = parse_number(state, "-m", arg, 1, INT32_MAX);
		return 0;
	case 'n':
		r->n = parse_number(state, "-n", arg, 1, INT32_MAX);
		return 0;
	case 'k':
		r->k = parse_number(state, "-k", arg, 1, 1 << 24);
		return 0;
	case OPT_RANKS:
		r->ranks = (uint32_t)parse_number(state, "--ranks", arg, 2,
						  MODEL_MAX_RANKS);
		return 0;
	case OPT_NODES:
		r->nodes = (uint32_t)parse_number(state, "--nodes", arg, 1,
						  MODEL_MAX_RANKS);
		return 0;
	case OPT_DTYPE:
		r->dtype = parse_dtype(state, arg);
		return 0;
	case OPT_SVG:
		r->svg = arg;
		return 0;
	case OPT_JSON:
		r->json = true;
		return 0;
	case OPT_COMPARE:
	case OPT_CALIBRATE:
		r->path = arg;
		r->mode = key;
		return 0;
	case OPT_PAPER:
	case OPT_NETWORKS:
	case OPT_MACHINES:
	case OPT_SHOW:
		r->mode = key;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option", arg);
		return 0;
	case ARGP_KEY_END:
		check(state, r);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int fail(const char *why)
{
	fprintf(stderr, "t3model: %s\n", why);
	return 1;
}

/* ---- sublayers ---- */

static size_t choose(const struct request *r, const struct model_machine *m,
		     struct model_line *line)
{
	const char *set = r->shape ? r->shape : "T3";
	const struct t3_shape *one = t3_shape_find(set);
	size_t i, n = 0;

	if (r->m) {
		line[0].sublayer = (struct model_sublayer) {
			r->m, r->n, r->k, r->dtype,
			r->ranks ? r->ranks : (uint32_t)m->ranks, r->nodes
		};
		snprintf(line[0].name, sizeof(line[0].name), "%llux%llux%llu/%u",
			 (unsigned long long)r->m, (unsigned long long)r->n,
			 (unsigned long long)r->k, line[0].sublayer.ranks);
		return 1;
	}
	for (i = 0; i < t3_shapes_count; i++) {
		const struct t3_shape *s = &t3_shapes[i];
		uint32_t ranks = r->ranks ? r->ranks : s->tp;

		if (one ? s != one : strcmp(set, "all") && strcmp(set, s->source))
			continue;
		line[n].sublayer = (struct model_sublayer) {
			s->m, s->n, s->k, r->dtype, ranks, r->nodes
		};
		snprintf(line[n++].name, sizeof(line->name), "%s/%s/%u",
			 s->model, s->sublayer, ranks);
	}
	return n;
}

static int draw(const char *dir, const struct model_machine *machine,
		const struct model_line *line, size_t lines)
{
	static const char *const name[] = { "speedups", "movement", "timeline" };
	char path[1024];
	int i, ret = 0;

	if (mkdir(dir, 0777) && errno != EEXIST)
		ret = -errno;
	for (i = 0; i < 3 && !ret; i++) {
		snprintf(path, sizeof(path), "%s/%s.svg", dir, name[i]);
		if (i == 0)
			ret = model_svg_speedups(path, machine, line, lines);
		else if (i == 1)
			ret = model_svg_movement(path, machine, line, lines);
		else
			ret = model_svg_timeline(path, machine, line);
	}
	if (!ret)
		return 0;
	fprintf(stderr, "t3model: --svg is \"%s\": %s\n", dir, strerror(-ret));
	return 1;
}

static int run_sublayers(const struct request *r, const struct model_file *file)
{
	struct model_line *line = calloc(t3_shapes_count, sizeof(*line));
	size_t n, i;
	int ret = 0;

	if (!line)
		return fail("no memory");
	n = choose(r, &file->machine, line);
	for (i = 0; i < n && !ret; i++)
		if (line[i].sublayer.ranks * r->nodes > MODEL_MAX_RANKS)
			ret = t3_fail(ERANGE, "--nodes is %u, with %u ranks allowed are 1 to %u",
				      r->nodes, line[i].sublayer.ranks,
				      MODEL_MAX_RANKS / line[i].sublayer.ranks);
	for (i = 0; i < n && !ret; i++)
		ret = model_ask(&line[i].answer, &file->machine,
				&line[i].sublayer, r->svg && i == 0);
	if (ret)
		ret = fail(t3_error());
	else if (r->json)
		model_report_json(&file->machine, line, n);
	else
		model_report_table(&file->machine, line, n);
	if (!ret && r->svg)
		ret = draw(r->svg, &file->machine, line, n);
	while (i--)
		model_answer_free(&line[i].answer);
	free(line);
	return ret;
}

/* ---- the other things to tell ---- */

static int run_paper(const struct request *r, const struct model_file *file)
{
	struct model_paper paper;

	if (model_paper_find(&paper, file))
		return fail(t3_error());
	if (r->json)
		model_paper_json(&paper);
	else
		model_paper_table(&paper, file);
	return 0;
}

static int run_networks(const struct request *r, const struct model_file *file)
{
	struct model_total *total = calloc(model_networks_count, sizeof(*total));
	uint32_t i;
	int ret = 0;

	if (!total)
		return fail("no memory");
	for (i = 0; i < model_networks_count && !ret; i++) {
		total[i].network = &model_networks[i];
		ret = model_estimate_make(&total[i].estimate, &file->machine,
					  &model_networks[i]);
	}
	if (ret)
		ret = fail(t3_error());
	else
		model_report_networks(&file->machine, total,
				      model_networks_count, r->json);
	free(total);
	return ret;
}

static int list_machines(void)
{
	size_t i;

	for (i = 0; model_shipped[i].name; i++)
		puts(model_shipped[i].name);
	return 0;
}

static int show(const struct model_file *file)
{
	size_t i;

	printf("name = %s\n", file->machine.name);
	for (i = 0; i < file->parameters; i++)
		printf("%s = %s	# %s\n", file->parameter[i].key,
		       file->parameter[i].text, file->parameter[i].source);
	return 0;
}

static int run_compare(const struct request *r, const struct model_file *file)
{
	static struct model_results results;
	char why[512];

	if (model_results_read(&results, r->path, &file->machine, why,
			       sizeof(why)))
		return fail(why);
	if (model_results_compare(&results, file, r->json))
		return fail(t3_error());
	if (!results.results)
		fprintf(stderr, "t3model: no results in %s (%u files): nothing to compare\n",
			r->path, results.files);
	if (results.skipped)
		fprintf(stderr, "t3model: %u results are of a kind that is not simulated\n",
			results.skipped);
	return 0;
}

static int get_curves(const struct request *r, const struct model_file *file,
		      struct model_curves *curves, char *why, size_t bytes)
{
	static struct model_results results;
	int ret;

	if (!strcmp(r->path, "cpu")) {
		snprintf(why, bytes, "--calibrate cpu: no memory");
		return model_curves_measure(curves);
	}
	ret = model_results_read(&results, r->path, &file->machine, why, bytes);
	if (ret)
		return ret;
	if (!results.results)
		return model_curves_read(curves, r->path, why, bytes);
	model_results_curves(&results, curves);
	return 0;
}

static int run_calibrate(const struct request *r, struct model_file *file)
{
	static struct model_curves curves;
	char why[512];

	if (get_curves(r, file, &curves, why, sizeof(why)))
		return fail(why);
	if (model_curves_fit(file, &curves, stderr))
		return fail(t3_error());
	return show(file);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse,
		.doc = "Simulates GEMMs with collectives on a machine that a file describes.",
	};
	struct request r = {
		.machine = "paper", .dtype = T3_DTYPE_BF16, .nodes = 1,
	};
	static struct model_file file;
	char why[512];

	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, 0, NULL, &r))
		return 2;
	if (r.mode == OPT_MACHINES)
		return list_machines();
	if (model_file_read(&file, r.machine, why, sizeof(why)))
		return fail(why);
	switch (r.mode) {
	case OPT_PAPER:
		return run_paper(&r, &file);
	case OPT_NETWORKS:
		return run_networks(&r, &file);
	case OPT_SHOW:
		return show(&file);
	case OPT_COMPARE:
		return run_compare(&r, &file);
	case OPT_CALIBRATE:
		return run_calibrate(&r, &file);
	default:
		return run_sublayers(&r, &file);
	}
}
