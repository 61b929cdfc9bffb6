// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What came out, for people and as JSON.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/**
 * struct figure - a time over the epochs, each epoch's being its slowest rank's
 * @median: seconds
 * @spread: the distance of the quartiles by the median
 */
struct figure {
	double median;
	double spread;
};

/**
 * struct results - everything that is printed; NAN: not measured
 */
struct results {
	struct figure time[BENCH_PHASES];
	double speedup;
	double limit_ratio;
	double hidden;
	double gemm_slowdown;
	double comm_floor;	/* seconds */
	double copy_rate;	/* all ranks, bytes a second */
	double max_rel_err;
	uint64_t moved_bytes;	/* all ranks */
	uint64_t blocks;	/* all ranks */
	uint64_t checked;
	uint64_t elements;
	uint64_t wrong;
};

static unsigned long long big(uint64_t x)
{
	return x;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, uint32_t n, double q)
{
	double at = q * (n - 1);
	uint32_t i = (uint32_t)at;

	return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) :
		sorted[i];
}

static struct figure figure_of(const struct bench_options *o,
			       struct bench_control *control,
			       enum bench_phase phase)
{
	struct figure f = { NAN, NAN };
	double *slowest = calloc(o->epochs, sizeof(*slowest));
	uint32_t e, r;

	if (!slowest)
		return f;
	for (e = 0; e < o->epochs; e++)
		for (r = 0; r < o->ranks; r++)
			slowest[e] = fmax(slowest[e],
					  *bench_time(control, o, phase, e, r));
	qsort(slowest, o->epochs, sizeof(*slowest), by_size);
	f.median = quantile(slowest, o->epochs, 0.5);
	f.spread = (quantile(slowest, o->epochs, 0.75) -
		    quantile(slowest, o->epochs, 0.25)) / f.median;
	free(slowest);
	return f;
}

/* Shards' worth of bytes that all triggers read and write, for each rank. */
static double shards_touched(const struct bench_options *o, uint32_t algorithm)
{
	double n = o->ranks;
	bool ring = algorithm == T3_ALG_RING || algorithm == T3_ALG_RING_DIRECT;
	double sum = ring ? 3 * (n - 1) : n + 1, gather = 2 * (n - 1);

	if (o->ranks == 1 && o->op != T3_ALL_TO_ALL)
		return 0;
	switch (o->op) {
	case T3_REDUCE_SCATTER:
		return sum;
	case T3_ALL_GATHER:
		return gather;
	case T3_ALL_REDUCE:
		return sum + gather;
	default:
		return 2 * n;
	}
}

static void add_ranks(struct results *r, const struct bench_options *o,
		      struct bench_control *control)
{
	uint32_t i;

	for (i = 0; i < o->ranks; i++) {
		const struct bench_rank *rank = &control->rank[i];

		r->moved_bytes += rank->moved_bytes;
		r->blocks += rank->blocks;
		r->copy_rate += rank->copy_rate;
		r->checked += rank->verdict.checked;
		r->elements += rank->verdict.elements;
		r->wrong += rank->verdict.wrong;
		if (!(rank->verdict.max_rel_err <= r->max_rel_err))
			r->max_rel_err = rank->verdict.max_rel_err;
	}
}

static void compute(struct results *r, const struct bench_options *o,
		    struct bench_control *control)
{
	double gemm, comm, fused, bytes;
	uint32_t phase;

	memset(r, 0, sizeof(*r));
	add_ranks(r, o, control);
	for (phase = 0; phase < BENCH_PHASES; phase++) {
		r->time[phase] = (struct figure){ NAN, NAN };
		if (o->k || phase == BENCH_COMM)
			r->time[phase] = figure_of(o, control, phase);
	}
	gemm = r->time[BENCH_GEMM].median;
	comm = r->time[BENCH_COMM].median;
	fused = r->time[BENCH_FUSED].median;
	r->speedup = r->time[BENCH_SEQUENTIAL].median / fused;
	r->limit_ratio = fmax(gemm, comm) / fused;
	r->hidden = (gemm + comm - fused) / fmin(gemm, comm);
	r->gemm_slowdown = r->time[BENCH_FUSED_GEMM].median / gemm - 1;
	bytes = (double)o->m * o->n * bench_dtype_size(o->dtype) *
		shards_touched(o, control->rank[0].algorithm);
	r->comm_floor = bytes / r->copy_rate;
	if (!o->k) {	/* fmax() and fmin() pass over a NAN */
		r->limit_ratio = NAN;
		r->hidden = NAN;
	}
	if (!o->check || o->dtype == T3_DTYPE_I32)
		r->max_rel_err = o->check ? 0 : NAN;
}

/**
 * bench_ok - did every check hold?
 *
 * Return: true also where none was asked for.
 */
bool bench_ok(const struct bench_options *o, struct bench_control *control)
{
	uint32_t i;

	for (i = 0; i < o->ranks; i++)
		if (control->rank[i].verdict.wrong)
			return false;
	return true;
}

static void add_number(struct json_object *j, const char *key, double x)
{
	char text[32];

	if (isnan(x)) {
		json_object_object_add(j, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.6g", x);
	json_object_object_add(j, key, json_object_new_double_s(x, text));
}

static void add_text(struct json_object *j, const char *key, const char *text)
{
	json_object_object_add(j, key, json_object_new_string(text));
}

static void add_count(struct json_object *j, const char *key, uint64_t x)
{
	json_object_object_add(j, key, json_object_new_int64((int64_t)x));
}

static void add_what(struct json_object *j, const struct bench_options *o,
		     struct bench_control *control)
{
	add_text(j, "engine", t3_engine_name(control->rank[0].engine));
	add_text(j, "op", bench_op_name(o->op));
	add_text(j, "alg", bench_alg_name(control->rank[0].algorithm));
	add_count(j, "ranks", o->ranks);
	add_count(j, "m", o->m);
	add_count(j, "n", o->n);
	add_count(j, "k", o->k);
	add_text(j, "dtype", bench_dtype_name(o->dtype));
}

static void add_times(struct json_object *j, const struct results *r)
{
	add_number(j, "gemm_ms", r->time[BENCH_GEMM].median * 1e3);
	add_number(j, "comm_ms", r->time[BENCH_COMM].median * 1e3);
	add_number(j, "sequential_ms", r->time[BENCH_SEQUENTIAL].median * 1e3);
	add_number(j, "fused_ms", r->time[BENCH_FUSED].median * 1e3);
	add_number(j, "speedup", r->speedup);
	add_number(j, "limit_ratio", r->limit_ratio);
	add_number(j, "hidden", r->hidden);
	add_number(j, "gemm_slowdown", r->gemm_slowdown);
	add_count(j, "bytes_moved", r->moved_bytes);
	add_number(j, "max_rel_err", r->max_rel_err);
}

static void add_rest(struct json_object *j, const struct bench_options *o,
		     struct bench_control *control, const struct results *r)
{
	int v = t3_version();
	char version[32];

	add_number(j, "gemm_spread", r->time[BENCH_GEMM].spread);
	add_number(j, "comm_spread", r->time[BENCH_COMM].spread);
	add_number(j, "sequential_spread", r->time[BENCH_SEQUENTIAL].spread);
	add_number(j, "fused_spread", r->time[BENCH_FUSED].spread);
	add_number(j, "comm_floor_ms", r->comm_floor * 1e3);
	add_text(j, "gemm_form",
		 control->rank[0].in_steps ? "steps" : "one call");
	add_text(j, "layout", o->layout == T3_COL_MAJOR ? "col" : "row");
	add_count(j, "epochs", o->epochs);
	add_count(j, "block_bytes", o->block_bytes);
	add_count(j, "blocks", r->blocks);
	add_count(j, "steps", control->rank[0].steps);
	json_object_object_add(j, "overlap",
			       json_object_new_boolean(control->rank[0].overlap));
	add_count(j, "checked", r->checked);
	snprintf(version, sizeof(version), "%d.%d.%d", v / 10000,
		 v / 100 % 100, v % 100);
	add_text(j, "version", version);
}

static void report_json(const struct bench_options *o,
			struct bench_control *control, const struct results *r)
{
	struct json_object *j = json_object_new_object();

	add_what(j, o, control);
	add_times(j, r);
	json_object_object_add(j, "ok",
			       json_object_new_boolean(bench_ok(o, control)));
	add_rest(j, o, control, r);
	puts(json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(j);
}

static void row_time(const char *name, struct figure f, const char *what)
{
	printf("  %-12s %11.3f ms  +-%4.1f%%   %s\n", name, f.median * 1e3,
	       f.spread * 50, what);
}

static void report_gemm(struct bench_control *control, const struct results *r)
{
	const struct figure *t = r->time;

	row_time("gemm", t[BENCH_GEMM], control->rank[0].in_steps ?
		 "the GEMM alone, in steps (faster here than one call)" :
		 "the GEMM alone, in one call");
	row_time("comm", t[BENCH_COMM], "the collective alone");
	row_time("sequential", t[BENCH_SEQUENTIAL],
		 "the GEMM, then the collective");
	row_time("fused", t[BENCH_FUSED], control->rank[0].overlap ?
		 "the collective inside the GEMM" :
		 "not overlapped: the collective after the GEMM");
	printf("\n");
	printf("  %-12s %11.3f x             sequential / fused\n", "speedup",
	       r->speedup);
	printf("  %-12s %11.3f               max(gemm, comm) / fused: 1 is the limit\n",
	       "limit ratio", r->limit_ratio);
	printf("  %-12s %11.1f %%             of the shorter of gemm and comm\n",
	       "hidden", r->hidden * 100);
	printf("  %-12s %+11.1f %%             of the GEMM under communication\n",
	       "slowdown", r->gemm_slowdown * 100);
}

static void report_verdicts(const struct bench_options *o,
			    struct bench_control *control,
			    const struct results *r)
{
	uint32_t i;

	printf("\n  rank      checked   wrong   max rel err   verdict\n");
	for (i = 0; i < o->ranks; i++) {
		const struct bench_verdict *v = &control->rank[i].verdict;

		printf("  %4u %12llu %7llu   %11.2e   %s%s\n", i,
		       big(v->checked), big(v->wrong), v->max_rel_err,
		       v->wrong ? "WRONG: " : "ok", v->first);
	}
	printf("  %llu elements compared with the reference", big(r->checked));
	if (r->elements)
		printf(", %llu looked at for poison", big(r->elements));
	printf("\n");
}

static void report_table(const struct bench_options *o,
			 struct bench_control *control, const struct results *r)
{
	const struct bench_rank *first = &control->rank[0];

	printf("t3bench: %s, %s, %u ranks (%s), %s, %s engine\n",
	       bench_op_name(o->op), bench_alg_name(first->algorithm), o->ranks,
	       o->threads ? "threads" : "processes", bench_dtype_name(o->dtype),
	       t3_engine_name(first->engine));
	if (o->shape)
		printf("  %s %s of TP %u: ", o->shape->model,
		       o->shape->sublayer, o->shape->tp);
	else
		printf("  ");
	printf("M %llu, N %llu, K %llu\n", big(o->m), big(o->n), big(o->k));
	printf("  %u blocks and %u steps a rank, median of %u epochs\n\n",
	       first->blocks, first->steps, o->epochs);
	if (o->k)
		report_gemm(control, r);
	else
		row_time("comm", r->time[BENCH_COMM], "the collective alone");
	printf("  %-12s %11.3f ms            its bytes at a plain copy's %.1f GB/s\n",
	       "comm floor", r->comm_floor * 1e3, r->copy_rate / 1e9);
	printf("  %-12s %11.3f MiB           between ranks, in an epoch\n",
	       "bytes moved", (double)r->moved_bytes / (1 << 20));
	if (o->check)
		report_verdicts(o, control, r);
	if (!first->overlap && o->k && o->overlap == BENCH_OVERLAP_AUTO)
		printf("\n  not overlapped: in the warm-up that was faster here\n");
	else if (r->speedup < 1)
		printf("\n  fused is slower than sequential: better not to overlap here\n");
}

/* Results to stdout, a table or JSON. */
void bench_report(const struct bench_options *o, struct bench_control *control)
{
	struct results r;

	compute(&r, o, control);
	if (o->json)
		report_json(o, control, &r);
	else
		report_table(o, control, &r);
}

void bench_list_shapes(FILE *out)
{
	char name[64];
	size_t i;

	fprintf(out, "%-24s %6s %6s %6s  %-5s  %s\n", "shape", "M", "N", "K",
		"dtype", "source");
	for (i = 0; i < t3_shapes_count; i++) {
		const struct t3_shape *s = &t3_shapes[i];

		snprintf(name, sizeof(name), "%s/%s/%u", s->model, s->sublayer,
			 s->tp);
		fprintf(out, "%-24s %6llu %6llu %6llu  %-5s  %s\n", name,
			big(s->m), big(s->n), big(s->k), s->dtype, s->source);
	}
}
