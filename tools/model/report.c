// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tables and JSON.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

#include "report.h"

/* ---- tables ---- */

static void row(const struct model_line *line)
{
	const struct model_answer *a = &line->answer;
	double before = a->bytes[MODEL_SEQUENTIAL];

	printf("%-22s %8.3f %8.3f %8.3f | %8.3f %8.3f | %6.3f %6.3f %6.3f | %+6.1f%% %7u\n",
	       line->name, a->gemm.time * 1e3, a->rs.time * 1e3,
	       a->ag.time * 1e3, a->time[MODEL_SEQUENTIAL] * 1e3,
	       a->time[MODEL_T3_MCA] * 1e3, model_speedup(a, MODEL_T3),
	       model_speedup(a, MODEL_T3_MCA), model_speedup(a, MODEL_IDEAL),
	       (a->bytes[MODEL_T3_MCA] / before - 1) * 100,
	       a->fused[MODEL_T3_MCA].tracked);
}

static void means(const struct model_line *line, size_t lines)
{
	double logs[MODEL_VARIANTS] = { 0 };
	double bytes = 0;
	size_t i;
	int v;

	for (i = 0; i < lines; i++) {
		for (v = 0; v < MODEL_VARIANTS; v++)
			logs[v] += log(model_speedup(&line[i].answer, v));
		bytes += log(line[i].answer.bytes[MODEL_T3_MCA] /
			     line[i].answer.bytes[MODEL_SEQUENTIAL]);
	}
	printf("%-22s %8s %8s %8s | %8s %8s | %6.3f %6.3f %6.3f | %+6.1f%%\n",
	       "geometric mean", "", "", "", "", "",
	       exp(logs[MODEL_T3] / lines), exp(logs[MODEL_T3_MCA] / lines),
	       exp(logs[MODEL_IDEAL] / lines), (exp(bytes / lines) - 1) * 100);
}

void model_report_table(const struct model_machine *machine,
			const struct model_line *line, size_t lines)
{
	size_t i;
	uint32_t over = 0;

	printf("t3model: %s, times in ms\n\n", machine->name);
	printf("%-22s %8s %8s %8s | %8s %8s | %6s %6s %6s | %7s %7s\n",
	       "sublayer", "gemm", "rs", "ag", "sequent.", "T3-MCA", "T3",
	       "MCA", "ideal", "bytes", "tracked");
	for (i = 0; i < lines; i++) {
		row(&line[i]);
		over += machine->tracker > 0 &&
			line[i].answer.fused[MODEL_T3_MCA].tracked > machine->tracker;
	}
	if (lines > 1)
		means(line, lines);
	printf("\nT3, MCA, ideal: speedups over sequential. bytes: of memory, T3-MCA against\nsequential. tracked: the most tiles that were in the tracker at once.\n");
	if (over)
		printf("%u of them need more than the tracker's %.0f entries.\n",
		       over, machine->tracker);
}

void model_report_networks(const struct model_machine *machine,
			   const struct model_total *total, size_t totals,
			   bool json)
{
	struct json_object *list = json ? json_object_new_array() : NULL;
	size_t i;

	if (!json)
		printf("t3model: %s, whole networks, estimates in s\n\n%-12s %4s %7s %7s | %9s %9s %7s | %9s %9s %7s\n",
		       machine->name, "network", "TP", "layers", "sliced",
		       "training", "T3-MCA", "speedup", "prompt", "T3-MCA",
		       "speedup");
	for (i = 0; i < totals; i++) {
		const struct model_network *n = total[i].network;
		const struct model_estimate *e = &total[i].estimate;
		double t = e->training[MODEL_SEQUENTIAL];
		double p = e->prompt[MODEL_SEQUENTIAL];
		struct json_object *j;

		if (!json) {
			printf("%-12s %4u %7u %6.1f%% | %9.4f %9.4f %7.3f | %9.4f %9.4f %7.3f\n",
			       n->name, n->ranks, n->layers, e->sliced * 100, t,
			       e->training[MODEL_T3_MCA],
			       t / e->training[MODEL_T3_MCA], p,
			       e->prompt[MODEL_T3_MCA],
			       p / e->prompt[MODEL_T3_MCA]);
			continue;
		}
		j = json_object_new_object();
		json_object_object_add(j, "network", json_object_new_string(n->name));
		json_object_object_add(j, "ranks", json_object_new_int64(n->ranks));
		json_object_object_add(j, "training_s", json_object_new_double(t));
		json_object_object_add(j, "training_t3_mca_s",
				       json_object_new_double(e->training[MODEL_T3_MCA]));
		json_object_object_add(j, "prompt_s", json_object_new_double(p));
		json_object_object_add(j, "prompt_t3_mca_s",
				       json_object_new_double(e->prompt[MODEL_T3_MCA]));
		json_object_array_add(list, j);
	}
	if (json) {
		puts(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY));
		json_object_put(list);
	}
}

/* ---- JSON ---- */

static void put(struct json_object *j, const char *key, double x)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", x);
	json_object_object_add(j, key, json_object_new_double_s(x, text));
}

static struct json_object *traffic(const struct model_traffic *t)
{
	struct json_object *j = json_object_new_object();

	put(j, "gemm_read", t->gemm_read);
	put(j, "gemm_write", t->gemm_write);
	put(j, "comm_read", t->comm_read);
	put(j, "comm_write", t->comm_write);
	put(j, "link_out", t->link_out);
	put(j, "link_in", t->link_in);
	return j;
}

static struct json_object *result(const struct model_result *r)
{
	struct json_object *j = json_object_new_object();

	put(j, "ms", r->time * 1e3);
	json_object_object_add(j, "bytes", traffic(&r->traffic));
	json_object_object_add(j, "updates", json_object_new_int64((int64_t)r->updates));
	json_object_object_add(j, "updates_wanted",
			       json_object_new_int64((int64_t)r->wanted));
	json_object_object_add(j, "events", json_object_new_int64((int64_t)r->events));
	return j;
}

static struct json_object *sublayer(const struct model_line *line)
{
	const struct model_answer *a = &line->answer;
	struct json_object *j = json_object_new_object();
	struct json_object *ms = json_object_new_object();
	struct json_object *bytes = json_object_new_object();
	int v;

	json_object_object_add(j, "sublayer", json_object_new_string(line->name));
	json_object_object_add(j, "m", json_object_new_int64((int64_t)line->sublayer.m));
	json_object_object_add(j, "n", json_object_new_int64((int64_t)line->sublayer.n));
	json_object_object_add(j, "k", json_object_new_int64((int64_t)line->sublayer.k));
	json_object_object_add(j, "ranks", json_object_new_int64(line->sublayer.ranks));
	json_object_object_add(j, "simulated_ranks", json_object_new_int64(a->ranks));
	json_object_object_add(j, "nodes", json_object_new_int64(line->sublayer.nodes));
	put(j, "between_nodes_ms", a->nodes * 1e3);
	for (v = 0; v < MODEL_VARIANTS; v++) {
		put(ms, model_variant_name(v), a->time[v] * 1e3);
		put(bytes, model_variant_name(v), a->bytes[v]);
	}
	json_object_object_add(j, "ms", ms);
	json_object_object_add(j, "memory_bytes", bytes);
	json_object_object_add(j, "gemm", result(&a->gemm));
	json_object_object_add(j, "reduce_scatter", result(&a->rs));
	json_object_object_add(j, "reduce_scatter_near_memory", result(&a->rs_nmc));
	json_object_object_add(j, "all_gather", result(&a->ag));
	json_object_object_add(j, "t3", result(&a->fused[MODEL_T3]));
	json_object_object_add(j, "t3_mca", result(&a->fused[MODEL_T3_MCA]));
	json_object_object_add(j, "tracked",
			       json_object_new_int64(a->fused[MODEL_T3_MCA].tracked));
	return j;
}

void model_report_json(const struct model_machine *machine,
		       const struct model_line *line, size_t lines)
{
	struct json_object *j = json_object_new_object();
	struct json_object *list = json_object_new_array();
	size_t i;

	json_object_object_add(j, "machine", json_object_new_string(machine->name));
	for (i = 0; i < lines; i++)
		json_object_array_add(list, sublayer(&line[i]));
	json_object_object_add(j, "sublayers", list);
	puts(json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(j);
}
