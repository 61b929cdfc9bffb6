// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Measured results beside predictions.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "results.h"
#include "variants.h"

/* Objects within objects, at most. */
#define DEEP	16

/**
 * struct reader - results being read
 * @results: out
 * @machine: where a result names none
 * @own: the machine that a result named last
 * @around: the objects around what is read, the outermost first
 * @depth: how many
 */
struct reader {
	struct model_results *results;
	const struct model_machine *machine;
	struct model_file own;
	struct json_object *around[DEEP];
	int depth;
};

/* ---- reading ---- */

static double number(const struct reader *r, const char *key, double none)
{
	int i;

	for (i = r->depth - 1; i >= 0; i--) {
		double x = model_json_number(r->around[i], key);

		if (!isnan(x))
			return x;
	}
	return none;
}

static const char *text(const struct reader *r, const char *key,
			const char *none)
{
	const char *found = NULL;
	int i;

	for (i = r->depth - 1; i >= 0 && !found; i--)
		found = model_json_text(r->around[i], key, NULL);
	return found ? found : none;
}

static uint32_t dtype_of(const char *name)
{
	return !strcmp(name, "f32") ? T3_DTYPE_F32 :
	       !strcmp(name, "f64") ? T3_DTYPE_F64 :
	       !strcmp(name, "f16") ? T3_DTYPE_F16 :
	       !strcmp(name, "i32") ? T3_DTYPE_I32 : T3_DTYPE_BF16;
}

/* Of an all-gather t3bench times the GEMM of a shard: no work of the model's. */
static uint32_t op_of(const char *name)
{
	if (!strcmp(name, "ar") || !strcmp(name, "all-reduce"))
		return T3_ALL_REDUCE;
	if (!strcmp(name, "rs") || !strcmp(name, "reduce-scatter"))
		return T3_REDUCE_SCATTER;
	return 0;
}

/* What t3bench ran: the planner's blocks of the matrix as it is. */
static void as_planned(const struct reader *r, struct model_work *work)
{
	work->rows = (uint64_t)number(r, "m", 0);
	work->cols = (uint64_t)number(r, "n", 0);
	work->fold = false;
	work->layout = strcmp(text(r, "layout", "row"), "col") ?
		       T3_ROW_MAJOR : T3_COL_MAJOR;
	work->algorithm = strcmp(text(r, "alg", "direct"), "ring") ?
			  T3_ALG_DIRECT : T3_ALG_RING;
	work->block_bytes = (uint32_t)number(r, "block_bytes", 0);
	if (!work->block_bytes)
		work->block_bytes = MODEL_PLANNER_BLOCKS;
}

/*
 * The machine that a result names; tests/bench/gpu names the GPU and the link.
 * One that is not known is told when it is compared.
 */
static const struct model_machine *machine_of(struct reader *r, char *name,
					      size_t bytes)
{
	char why[256];

	if (strstr(text(r, "gpu", ""), "H200"))
		snprintf(name, bytes, "%s", strcmp(text(r, "link", ""), "host") ?
			 "h200-loopback" : "h200x1");
	else
		snprintf(name, bytes, "%.63s", text(r, "machine", ""));
	if (*name && !model_file_read(&r->own, name, why, sizeof(why)))
		return &r->own.machine;
	return r->machine;
}

static void take(struct reader *r)
{
	struct model_measured *result = &r->results->result[r->results->results];
	char machine[sizeof(result->machine)];
	const struct model_machine *m = machine_of(r, machine, sizeof(machine));
	struct model_sublayer s = {
		(uint64_t)number(r, "m", 0), (uint64_t)number(r, "n", 0),
		(uint64_t)number(r, "k", 0), dtype_of(text(r, "dtype", "bf16")),
		(uint32_t)number(r, "ranks", m->ranks), 1
	};
	uint32_t op = op_of(text(r, "op", text(r, "collective", "rs")));
	const char *engine = text(r, "engine", "gpu");

	if (!op || s.ranks < 2 || !s.m || !s.n || !s.k ||
	    r->results->results == RESULTS_MOST) {
		r->results->skipped++;
		return;
	}
	memset(result, 0, sizeof(*result));
	strcpy(result->machine, machine);
	result->work = model_work_of(m, &s, op);
	result->work.k = s.k;
	if (!strcmp(engine, "soft") || !strcmp(engine, "kernel"))
		as_planned(r, &result->work);
	result->time = (struct model_time) {
		number(r, "gemm_ms", NAN) / 1e3, number(r, "comm_ms", NAN) / 1e3,
		number(r, "fused_ms", NAN) / 1e3
	};
	snprintf(result->name, sizeof(result->name), "%.20s %.10s %llux%llux%llu/%u",
		 text(r, "model", engine),
		 text(r, "sublayer", text(r, "op", "")),
		 (unsigned long long)s.m, (unsigned long long)s.n,
		 (unsigned long long)s.k, s.ranks);
	r->results->results++;
}

static void walk(struct reader *r, struct json_object *j)
{
	size_t i;

	if (json_object_is_type(j, json_type_array)) {
		for (i = 0; i < json_object_array_length(j); i++)
			walk(r, json_object_array_get_idx(j, i));
		return;
	}
	if (!json_object_is_type(j, json_type_object) || r->depth == DEEP)
		return;
	r->around[r->depth++] = j;
	if (!isnan(model_json_number(j, "gemm_ms"))) {
		take(r);
	} else {
		json_object_object_foreach(j, key, value) {
			(void)key;
			walk(r, value);
		}
	}
	r->depth--;
}

static int read_file(struct model_results *results, const char *path,
		     const struct model_machine *machine, char *why,
		     size_t bytes)
{
	static struct reader r;
	struct json_object *j = model_json_read(path, why, bytes);

	if (!j)
		return -EINVAL;
	r = (struct reader) { .results = results, .machine = machine };
	walk(&r, j);
	json_object_put(j);
	results->files++;
	return 0;
}

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && !strcmp(entry->d_name + n - 5, ".json");
}

int model_results_read(struct model_results *results, const char *path,
		       const struct model_machine *machine, char *why,
		       size_t bytes)
{
	struct dirent **entry;
	struct stat st;
	char file[1024];
	int i, n, ret = 0;

	memset(results, 0, sizeof(*results));
	if (stat(path, &st)) {
		snprintf(why, bytes, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	if (!S_ISDIR(st.st_mode))
		return read_file(results, path, machine, why, bytes);
	n = scandir(path, &entry, is_json, alphasort);
	for (i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, entry[i]->d_name);
		if (!ret)
			ret = read_file(results, file, machine, why, bytes);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return ret;
}

void model_results_curves(const struct model_results *results,
			  struct model_curves *curves)
{
	uint32_t i;

	memset(curves, 0, sizeof(*curves));
	strcpy(curves->from, "results");
	for (i = 0; i < results->results && i < CURVE_POINTS; i++) {
		const struct model_measured *r = &results->result[i];

		if (r->time.gemm > 0)
			curves->gemm[curves->gemms++] = (struct curve_gemm) {
				r->work.rows, r->work.cols, r->work.k,
				r->work.dtype, r->time.gemm
			};
		if (r->time.comm > 0)
			curves->collective[curves->collectives++] =
				(struct curve_collective) { r->work, r->time.comm };
	}
}

/* ---- comparing ---- */

enum { GEMM, COMM, SEQUENTIAL, FUSED, TIMES };

static const char *const time_names[] = { "gemm", "comm", "sequential", "fused" };

/**
 * struct errors - how far predictions are off, by what was timed
 */
struct errors {
	double error[TIMES][RESULTS_MOST];
	uint32_t n[TIMES];
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void all_times(const struct model_time *t, double *out)
{
	out[GEMM] = t->gemm;
	out[COMM] = t->comm;
	out[SEQUENTIAL] = t->gemm + t->comm;
	out[FUSED] = t->fused;
}

static struct json_object *compared(const struct model_measured *r,
				    const double *was, const double *is)
{
	struct json_object *j = json_object_new_object();
	char key[32];
	int i;

	json_object_object_add(j, "result", json_object_new_string(r->name));
	for (i = 0; i < TIMES; i++) {
		snprintf(key, sizeof(key), "%s_measured_ms", time_names[i]);
		json_object_object_add(j, key, isnan(was[i]) ? NULL :
				       json_object_new_double(was[i] * 1e3));
		snprintf(key, sizeof(key), "%s_predicted_ms", time_names[i]);
		json_object_object_add(j, key, json_object_new_double(is[i] * 1e3));
	}
	return j;
}

static void print_result(const struct model_measured *r, const double *was,
			 const double *is)
{
	int i;

	printf("%-44s", r->name);
	for (i = 0; i < TIMES; i++) {
		if (isnan(was[i]))
			printf(" |%26s", "");
		else
			printf(" | %8.3f %8.3f %+6.1f%%", was[i] * 1e3,
			       is[i] * 1e3, (is[i] / was[i] - 1) * 100);
	}
	printf("\n");
}

static int compare_one(const struct model_measured *r,
		       const struct model_file *file, struct errors *errors,
		       struct json_object *list)
{
	static struct model_file own;
	const struct model_machine *machine = &file->machine;
	double was[TIMES], is[TIMES];
	struct model_time time;
	char why[256];
	int i, ret;

	if (*r->machine) {
		if (model_file_read(&own, r->machine, why, sizeof(why)))
			return t3_fail(EINVAL, "%s: %s", r->name, why);
		machine = &own.machine;
	}
	ret = model_predict(&time, machine, &r->work);
	if (ret)
		return ret;
	all_times(&r->time, was);
	all_times(&time, is);
	for (i = 0; i < TIMES; i++)
		if (!isnan(was[i]))
			errors->error[i][errors->n[i]++] = fabs(is[i] / was[i] - 1);
	if (list)
		json_object_array_add(list, compared(r, was, is));
	else
		print_result(r, was, is);
	return 0;
}

static void print_medians(struct errors *errors)
{
	int i;

	printf("%-44s", "median error");
	for (i = 0; i < TIMES; i++) {
		uint32_t n = errors->n[i];

		qsort(errors->error[i], n, sizeof(double), by_size);
		if (n)
			printf(" | %24.1f%%", (n % 2 ? errors->error[i][n / 2] :
				(errors->error[i][n / 2 - 1] +
				 errors->error[i][n / 2]) / 2) * 100);
		else
			printf(" |%26s", "");
	}
	printf("\n");
}

int model_results_compare(const struct model_results *results,
			  const struct model_file *file, bool json)
{
	struct json_object *list = json ? json_object_new_array() : NULL;
	struct errors *errors = calloc(1, sizeof(*errors));
	uint32_t i;
	int ret = errors ? 0 : t3_fail(ENOMEM, "no memory to compare results");

	if (!json && results->results)
		printf("t3model: ms: measured, predicted, error\n\n%-44s | %-25s | %-25s | %-25s | %-25s\n",
		       "", "gemm", "comm", "sequential",
		       "fused");
	for (i = 0; i < results->results && !ret; i++)
		ret = compare_one(&results->result[i], file, errors, list);
	if (!ret && json)
		puts(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY));
	else if (!ret && results->results)
		print_medians(errors);
	json_object_put(list);
	free(errors);
	return ret;
}
