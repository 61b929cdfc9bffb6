// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3bench's command line.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "number.h"

#define STR_(x)	#x
#define STR(x)	STR_(x)

/* libc looks for it by name, so it can't be hidden as all else is */
__attribute__((visibility("default")))
const char *argp_program_version = "t3bench " STR(T3_VERSION_MAJOR) "."
	STR(T3_VERSION_MINOR) "." STR(T3_VERSION_PATCH);

/* Options without a letter. */
enum {
	OPT_ENGINE = 0x100, OPT_OP, OPT_ALG, OPT_RANKS, OPT_DTYPE, OPT_EPOCHS,
	OPT_WARMUP, OPT_CHECK, OPT_JSON, OPT_NO_GEMM, OPT_THREADS,
	OPT_PROCESSES, OPT_BLOCK_BYTES, OPT_LAYOUT, OPT_WORKERS, OPT_BIND, OPT_OVERLAP,
	OPT_TIMEOUT, OPT_SHAPE, OPT_LIST_SHAPES,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What runs:", 1 },
	{ "engine", OPT_ENGINE, "NAME", 0, "auto, soft or kernel (auto)", 1 },
	{ "op", OPT_OP, "NAME", 0,
	  "rs, ag, ar or a2a: reduce-scatter, all-gather, all-reduce, all-to-all (rs)", 1 },
	{ "alg", OPT_ALG, "NAME", 0,
	  "auto, ring, direct, ring-direct or direct-ring (auto)", 1 },
	{ "ranks", OPT_RANKS, "N", 0, "1 to 64 (2)", 1 },
	{ "threads", OPT_THREADS, NULL, 0, "ranks are threads", 1 },
	{ "processes", OPT_PROCESSES, NULL, 0, "ranks are processes (default)", 1 },
	{ "workers", OPT_WORKERS, "N", 0,
	  "soft engine: a rank's threads beside the GEMM, auto or 0 to 64 (auto)", 1 },
	{ "overlap", OPT_OVERLAP, "WHETHER", 0,
	  "auto, yes or no; auto decides by the warm-up (auto)", 1 },
	{ "bind", OPT_BIND, NULL, 0, "rank r stays on the r-th processor", 1 },
	{ NULL, 0, NULL, 0, "The GEMM, C[M,N] = A[M,K] B[K,N] on each rank:", 2 },
	{ "shape", OPT_SHAPE, "NAME", 0,
	  "MODEL/SUBLAYER/TP of --list-shapes; -m, -n, -k and --dtype change it", 2 },
	{ "list-shapes", OPT_LIST_SHAPES, NULL, 0, "print the table of shapes", 2 },
	{ NULL, 'm', "M", 0, "rows of the output (1024)", 2 },
	{ NULL, 'n', "N", 0, "columns of the output (1024)", 2 },
	{ NULL, 'k', "K", 0, "length of the dot products (1024); 0: no GEMM", 2 },
	{ "dtype", OPT_DTYPE, "NAME", 0, "bf16, f16, f32, f64 or i32 (f32)", 2 },
	{ "layout", OPT_LAYOUT, "NAME", 0, "row or col (row)", 2 },
	{ "no-gemm", OPT_NO_GEMM, NULL, 0, "time the collective alone", 2 },
	{ "block-bytes", OPT_BLOCK_BYTES, "BYTES", 0,
	  "largest block, 0 to 4194304; 0: the planner chooses (0)", 2 },
	{ NULL, 0, NULL, 0, "How it is measured and told:", 3 },
	{ "epochs", OPT_EPOCHS, "E", 0, "measured epochs, 1 to 100000 (11)", 3 },
	{ "warmup", OPT_WARMUP, "E", 0, "epochs before, 0 to 1000 (2)", 3 },
	{ "check", OPT_CHECK, NULL, 0, "compare with a reference", 3 },
	{ "json", OPT_JSON, NULL, 0, "print JSON", 3 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0,
	  "longest the whole run may take, 1 to 86400 (3600)", 3 },
	{ 0 }
};

struct name {
	const char *name;
	uint32_t value;
};

static const struct name engines[] = {
	{ "auto", T3_ENGINE_AUTO }, { "soft", T3_ENGINE_SOFT },
	{ "kernel", T3_ENGINE_KERNEL }, { 0 }
};

static const struct name ops[] = {
	{ "rs", T3_REDUCE_SCATTER }, { "ag", T3_ALL_GATHER },
	{ "ar", T3_ALL_REDUCE }, { "a2a", T3_ALL_TO_ALL }, { 0 }
};

static const struct name algorithms[] = {
	{ "auto", T3_ALG_AUTO }, { "ring", T3_ALG_RING },
	{ "direct", T3_ALG_DIRECT }, { "ring-direct", T3_ALG_RING_DIRECT },
	{ "direct-ring", T3_ALG_DIRECT_RING }, { 0 }
};

static const struct name dtypes[] = {
	{ "bf16", T3_DTYPE_BF16 }, { "f16", T3_DTYPE_F16 },
	{ "f32", T3_DTYPE_F32 }, { "f64", T3_DTYPE_F64 },
	{ "i32", T3_DTYPE_I32 }, { 0 }
};

static const struct name layouts[] = {
	{ "row", T3_ROW_MAJOR }, { "col", T3_COL_MAJOR }, { 0 }
};

static const char *name_of(const struct name *names, uint32_t value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return "?";
}

const char *bench_op_name(uint32_t op)
{
	return name_of(ops, op);
}

const char *bench_alg_name(uint32_t algorithm)
{
	return name_of(algorithms, algorithm);
}

const char *bench_dtype_name(uint32_t dtype)
{
	return name_of(dtypes, dtype);
}

size_t bench_dtype_size(uint32_t dtype)
{
	switch (dtype) {
	case T3_DTYPE_F64:
		return 8;
	case T3_DTYPE_F32:
	case T3_DTYPE_I32:
		return 4;
	default:
		return 2;
	}
}

static const struct name overlaps[] = {
	{ "auto", BENCH_OVERLAP_AUTO },
	{ "yes", BENCH_OVERLAP_YES },
	{ "no", BENCH_OVERLAP_NO },
	{ NULL, 0 },
};

static uint32_t parse_name(struct argp_state *state, const char *option,
			   const struct name *names, const char *arg)
{
	char allowed[100] = "";
	const struct name *p;

	for (p = names; p->name; p++) {
		if (!strcmp(p->name, arg))
			return p->value;
		if (p != names)
			strcat(allowed, ", ");
		strcat(allowed, p->name);
	}
	argp_error(state, "%s is \"%s\"; allowed: %s", option, arg, allowed);
	return 0;
}

static void parse_shape(struct argp_state *state, struct bench_options *o,
			const char *arg)
{
	o->shape = t3_shape_find(arg);
	if (!o->shape)
		argp_error(state, "--shape is \"%s\"; allowed: MODEL/SUBLAYER/TP of --list-shapes",
			   arg);
}

#define UNSET	UINT64_MAX

static error_t parse_what(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_ENGINE:
		o->engine = parse_name(state, "--engine", engines, arg);
		return 0;
	case OPT_OP:
		o->op = parse_name(state, "--op", ops, arg);
		return 0;
	case OPT_ALG:
		o->algorithm = parse_name(state, "--alg", algorithms, arg);
		return 0;
	case OPT_DTYPE:
		o->dtype = parse_name(state, "--dtype", dtypes, arg);
		return 0;
	case OPT_LAYOUT:
		o->layout = parse_name(state, "--layout", layouts, arg);
		return 0;
	case OPT_SHAPE:
		parse_shape(state, o, arg);
		return 0;
	case OPT_RANKS:
		o->ranks = parse_number(state, "--ranks", arg, 1, T3_MAX_RANKS);
		return 0;
	case 'm':
		o->m = parse_number(state, "-m", arg, 1, INT32_MAX);
		return 0;
	case 'n':
		o->n = parse_number(state, "-n", arg, 1, INT32_MAX);
		return 0;
	case 'k':
		o->k = parse_number(state, "-k", arg, 0, BENCH_MAX_K);
		return 0;
	case OPT_BLOCK_BYTES:
		o->block_bytes = parse_number(state, "--block-bytes", arg, 0,
					      T3_MAX_BLOCK_BYTES);
		return 0;
	case OPT_OVERLAP:
		o->overlap = parse_name(state, "--overlap", overlaps, arg);
		return 0;
	case OPT_WORKERS:
		if (!strcmp(arg, "auto")) {
			o->workers = 0;
			return 0;
		}
		o->workers = parse_number(state, "--workers", arg, 0, 64);
		if (!o->workers)
			o->workers = T3_NO_WORKERS;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void finish(struct argp_state *state, struct bench_options *o)
{
	const struct t3_shape *s = o->shape;

	if (o->m == UNSET)
		o->m = s ? s->m : 1024;
	if (o->n == UNSET)
		o->n = s ? s->n : 1024;
	if (o->k == UNSET)
		o->k = s ? s->k : 1024;
	if (o->no_gemm)
		o->k = 0;
	if (!o->dtype)
		o->dtype = s ? parse_name(state, "--dtype", dtypes, s->dtype) :
			T3_DTYPE_F32;
	if (o->op != T3_ALL_REDUCE && (o->algorithm == T3_ALG_RING_DIRECT ||
				       o->algorithm == T3_ALG_DIRECT_RING))
		argp_error(state,
			   "--alg is \"%s\"; allowed for --op %s: auto%s, direct",
			   bench_alg_name(o->algorithm), bench_op_name(o->op),
			   o->op == T3_ALL_TO_ALL ? "" : ", ring");
	if (o->op == T3_ALL_TO_ALL && o->algorithm == T3_ALG_RING)
		argp_error(state, "--alg is \"ring\"; allowed for --op a2a: auto, direct");
	if (o->op == T3_ALL_TO_ALL && o->m % o->ranks)
		argp_error(state, "-m is %llu; --op a2a takes multiples of --ranks, %u",
			   (unsigned long long)o->m, o->ranks);
	if (o->block_bytes && o->block_bytes < bench_dtype_size(o->dtype))
		argp_error(state, "--block-bytes is %u; allowed for %s: %zu to %u, or 0",
			   o->block_bytes, bench_dtype_name(o->dtype),
			   bench_dtype_size(o->dtype), T3_MAX_BLOCK_BYTES);
	if (o->m * o->n > (1ULL << 40) / bench_dtype_size(o->dtype))
		argp_error(state, "-m times -n is %llu elements; allowed: 2^40 bytes",
			   (unsigned long long)(o->m * o->n));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_EPOCHS:
		o->epochs = parse_number(state, "--epochs", arg, 1,
					 BENCH_MAX_EPOCHS);
		return 0;
	case OPT_WARMUP:
		o->warmup = parse_number(state, "--warmup", arg, 0, 1000);
		return 0;
	case OPT_TIMEOUT:
		o->timeout_s = parse_number(state, "--timeout", arg, 1, 86400);
		return 0;
	case OPT_CHECK:
		o->check = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_NO_GEMM:
		o->no_gemm = true;
		return 0;
	case OPT_THREADS:
		o->threads = true;
		return 0;
	case OPT_PROCESSES:
		o->threads = false;
		return 0;
	case OPT_BIND:
		o->bind = true;
		return 0;
	case OPT_LIST_SHAPES:
		o->list_shapes = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option", arg);
		return 0;
	case ARGP_KEY_SUCCESS:
		finish(state, o);
		return 0;
	default:
		return parse_what(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Times a GEMM and a collective on its output: apart and fused by t3.",
};

/**
 * bench_parse - the command line
 * @o: out
 *
 * A bad option ends the program with status 2 and a message that names it.
 *
 * Return: 0.
 */
int bench_parse(int argc, char **argv, struct bench_options *o)
{
	memset(o, 0, sizeof(*o));
	o->engine = T3_ENGINE_AUTO;
	o->op = T3_REDUCE_SCATTER;
	o->ranks = 2;
	o->m = UNSET;
	o->n = UNSET;
	o->k = UNSET;
	o->epochs = 11;
	o->warmup = 2;
	o->timeout_s = 3600;
	argp_err_exit_status = 2;
	return argp_parse(&argp, argc, argv, 0, NULL, o);
}
