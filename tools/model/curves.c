// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fitting a machine's parameters to measured curves.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curves.h"
#include "engine.h"
#include "json.h"
#include "results.h"
#include "variants.h"

/* ---- reading ---- */

static uint32_t dtype_of(const char *name)
{
	return !strcmp(name, "f32") ? T3_DTYPE_F32 :
	       !strcmp(name, "f64") ? T3_DTYPE_F64 :
	       !strcmp(name, "f16") ? T3_DTYPE_F16 :
	       !strcmp(name, "bf16") ? T3_DTYPE_BF16 : 0;
}

static bool read_gemm(struct json_object *j, struct curve_gemm *gemm)
{
	double m = model_json_number(j, "m"), n = model_json_number(j, "n");
	double k = model_json_number(j, "k"), ms = model_json_number(j, "ms");

	if (!(m >= 1 && n >= 1 && k >= 1 && ms > 0 && m < INT32_MAX &&
	      n < INT32_MAX && k < INT32_MAX))
		return false;
	*gemm = (struct curve_gemm) {
		(uint64_t)m, (uint64_t)n, (uint64_t)k,
		dtype_of(model_json_text(j, "dtype", "bf16")), ms / 1e3
	};
	return gemm->dtype;
}

static bool read_point(struct json_object *j, const char *x, double x_scale,
		       const char *y, double y_scale, struct curve_point *point)
{
	point->x = model_json_number(j, x) * x_scale;
	point->y = model_json_number(j, y) * y_scale;
	return point->x > 0 && point->y > 0;
}

enum part { PART_GEMM, PART_COPY, PART_SUM };

static bool read_one(struct model_curves *c, enum part part,
		     struct json_object *j)
{
	switch (part) {
	case PART_GEMM:
		return read_gemm(j, &c->gemm[c->gemms++]);
	case PART_COPY:
		return read_point(j, "bytes", 1, "us", 1 / 1e6,
				  &c->copy[c->copies++]);
	default:
		return read_point(j, "units", 1, "GBps", 1e9, &c->sum[c->sums++]);
	}
}

static int read_part(struct model_curves *c, struct json_object *all,
		     enum part part, const char *path, char *why, size_t bytes)
{
	static const char *const names[] = { "gemm", "copy", "sum" };
	struct json_object *list;
	size_t i, n;

	if (!json_object_object_get_ex(all, names[part], &list))
		return 0;
	n = json_object_is_type(list, json_type_array) ?
	    json_object_array_length(list) : CURVE_POINTS + 1;
	if (n > CURVE_POINTS) {
		snprintf(why, bytes, "%s: %s is no list of up to %d points",
			 path, names[part], CURVE_POINTS);
		return -EINVAL;
	}
	for (i = 0; i < n; i++) {
		if (read_one(c, part, json_object_array_get_idx(list, i)))
			continue;
		snprintf(why, bytes, "%s: %s[%zu] lacks a positive number",
			 path, names[part], i);
		return -EINVAL;
	}
	return 0;
}

int model_curves_read(struct model_curves *curves, const char *path, char *why,
		      size_t bytes)
{
	struct json_object *all = model_json_read(path, why, bytes);
	int ret = all ? 0 : -EINVAL;
	uint32_t part;
	double dram;

	memset(curves, 0, sizeof(*curves));
	if (ret)
		return ret;
	for (part = PART_GEMM; part <= PART_SUM && !ret; part++)
		ret = read_part(curves, all, part, path, why, bytes);
	dram = model_json_number(all, "dram_GBps");
	if (dram > 0)
		curves->dram = dram * 1e9;
	snprintf(curves->from, sizeof(curves->from), "%.60s",
		 model_json_text(all, "from", "curves"));
	json_object_put(all);
	if (!ret && !curves->gemms && !curves->copies && !curves->sums &&
	    !(curves->dram > 0)) {
		snprintf(why, bytes, "%s: no gemm, copy, sum or dram_GBps", path);
		ret = -EINVAL;
	}
	return ret;
}

/* ---- errors ---- */

/**
 * struct misfit - how far a fit is off
 */
struct misfit {
	double error[CURVE_POINTS];
	uint32_t n;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void misfit_text(struct misfit *misfit, char *text, size_t bytes)
{
	qsort(misfit->error, misfit->n, sizeof(double), by_size);
	snprintf(text, bytes, "%u points, error median %.1f %%, largest %.1f %%",
		 misfit->n, misfit->error[misfit->n / 2] * 100,
		 misfit->error[misfit->n - 1] * 100);
}

static void replace(struct model_file *file, const struct model_curves *curves,
		    const char *key, const char *text, const char *how)
{
	size_t i;

	for (i = 0; i < file->parameters; i++) {
		struct model_parameter *p = &file->parameter[i];

		if (strcmp(p->key, key))
			continue;
		snprintf(p->text, sizeof(p->text), "%s", text);
		snprintf(p->source, sizeof(p->source), "measured, %s: %s",
			 curves->from, how);
	}
}

/* ---- GEMMs ---- */

static int gemm_time(double *seconds, const struct model_machine *machine,
		     const struct curve_gemm *g)
{
	struct model_sublayer s = {
		g->m, g->n, g->k, g->dtype, (uint32_t)machine->ranks, 1
	};

	return model_gemm_ask(seconds, machine, &s);
}

static bool is_aligned(const struct curve_gemm *g)
{
	return g->k * model_element(g->dtype) % 16 == 0;
}

/* The times of the points that are aligned, or are not; no launch in them. */
static int gemm_times(double *seconds, const struct model_machine *machine,
		      const struct model_curves *curves, bool aligned)
{
	struct model_machine m = *machine;
	uint32_t i;
	int ret = 0;

	m.launch = 0;
	for (i = 0; i < curves->gemms && !ret; i++)
		if (is_aligned(&curves->gemm[i]) == aligned)
			ret = gemm_time(&seconds[i], &m, &curves->gemm[i]);
	return ret;
}

/* Sum of the errors' logarithms: outliers count once, not by their square. */
static double gemm_misfit(const double *seconds,
			  const struct model_curves *curves, bool aligned,
			  double launch)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < curves->gemms; i++)
		if (is_aligned(&curves->gemm[i]) == aligned)
			sum += fabs(log((seconds[i] + launch) /
					curves->gemm[i].seconds));
	return sum;
}

/**
 * struct search - the best value of a parameter so far
 * @least: its misfit
 * @value: of the parameter
 * @launch: that goes with it
 */
struct search {
	double least;
	double value;
	double launch;
};

/* Try the values around @middle; where launch is not fixed, all launches. */
static int search_around(struct search *best, struct model_machine *m,
			 double *field, const struct model_curves *curves,
			 bool aligned, double middle, double step)
{
	double seconds[CURVE_POINTS] = { 0 };
	double most = aligned ? 20 / 1e6 : m->launch;
	double launch, misfit, e;
	int ret = 0;

	for (e = middle - 8 * step; e <= middle + 8.5 * step && !ret; e += step) {
		if (e < 0.01 || e > 1)
			continue;
		*field = e;
		ret = gemm_times(seconds, m, curves, aligned);
		for (launch = aligned ? 0 : m->launch; launch <= most && !ret;
		     launch += 0.25 / 1e6) {
			misfit = gemm_misfit(seconds, curves, aligned, launch);
			if (misfit < best->least)
				*best = (struct search) { misfit, e, launch };
		}
	}
	return ret;
}

static int search(struct model_machine *m, double *field,
		  const struct model_curves *curves, bool aligned)
{
	struct search best = { INFINITY, *field, m->launch };
	int ret = search_around(&best, m, field, curves, aligned, 0.5, 0.06);

	if (!ret)
		ret = search_around(&best, m, field, curves, aligned,
				    best.value, 0.0075);
	*field = best.value;
	m->launch = best.launch;
	return ret;
}

static int tell_gemm(struct model_file *file, const struct model_curves *curves,
		     const char *key, double value, bool aligned, FILE *log)
{
	double seconds[CURVE_POINTS] = { 0 };
	struct misfit misfit = { .n = 0 };
	char text[40], how[128];
	uint32_t i;
	int ret = gemm_times(seconds, &file->machine, curves, aligned);

	if (ret)
		return ret;
	for (i = 0; i < curves->gemms; i++)
		if (is_aligned(&curves->gemm[i]) == aligned)
			misfit.error[misfit.n++] =
				fabs((seconds[i] + file->machine.launch) /
				     curves->gemm[i].seconds - 1);
	if (!misfit.n)
		return 0;
	misfit_text(&misfit, how, sizeof(how));
	snprintf(text, sizeof(text), "%.4g %%", value * 100);
	replace(file, curves, key, text, how);
	fprintf(log, "%s = %s: %s\n", key, text, how);
	return 0;
}

/* How fast the main loop is, and what a launch costs. */
static int fit_gemm(struct model_file *file, const struct model_curves *curves,
		    FILE *log)
{
	struct model_machine *m = &file->machine;
	uint32_t i, unaligned = 0;
	char text[40];
	int ret = search(m, &m->efficiency, curves, true);

	for (i = 0; i < curves->gemms; i++)
		unaligned += !is_aligned(&curves->gemm[i]);
	if (!ret && unaligned)
		ret = search(m, &m->unaligned, curves, false);
	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%.3g us", m->launch * 1e6);
	replace(file, curves, "compute.launch", text, "with compute.efficiency");
	fprintf(log, "compute.launch = %s\n", text);
	ret = tell_gemm(file, curves, "compute.efficiency", m->efficiency, true,
			log);
	return ret ? ret : tell_gemm(file, curves, "compute.unaligned",
				     m->unaligned, false, log);
}

/* time = fixed + bytes / rate, least sum of relative errors. */
static void fit_line(const struct curve_point *point, uint32_t points,
		     double *fixed, double *rate, char *how, size_t bytes)
{
	double slope = point[0].y / point[0].x;
	struct misfit misfit = { .n = 0 };
	uint32_t i, round;

	*fixed = 0;
	/* Least squares, each point weighted by its last error: the least sum. */
	for (round = 0; round < 50; round++) {
		double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;

		for (i = 0; i < points; i++) {
			double x = point[i].x, y = point[i].y;
			double off = fabs((*fixed + slope * x) / y - 1);
			double w = 1 / (y * y) / fmax(off, 1 / 1e4);

			sw += w;
			sx += w * x;
			sy += w * y;
			sxx += w * x * x;
			sxy += w * x * y;
		}
		slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx);
		*fixed = (sy - slope * sx) / sw;
		/* Nothing takes less than no time: a line through zero. */
		if (*fixed < 0) {
			*fixed = 0;
			slope = sxy / sxx;
		}
	}
	*rate = 1 / slope;
	for (i = 0; i < points; i++)
		misfit.error[misfit.n++] = fabs((*fixed + slope * point[i].x) /
						point[i].y - 1);
	misfit_text(&misfit, how, bytes);
}

static void put_rate(struct model_file *file, const struct model_curves *curves,
		     const char *name, double rate, const char *key,
		     double fixed, const char *how, FILE *log)
{
	char text[40];

	snprintf(text, sizeof(text), "%.4g GB/s", rate / 1e9);
	replace(file, curves, name, text, how);
	fprintf(log, "%s = %s, ", name, text);
	snprintf(text, sizeof(text), "%.3g us", fixed * 1e6);
	replace(file, curves, key, text, how);
	fprintf(log, "%s = %s: %s\n", key, text, how);
}

static void fit_copy(struct model_file *file, const struct model_curves *curves,
		     FILE *log)
{
	struct model_machine *m = &file->machine;
	char how[128];

	fit_line(curves->copy, curves->copies, &m->dma_fixed, &m->link, how,
		 sizeof(how));
	put_rate(file, curves, "link.rate", m->link, "dma.fixed", m->dma_fixed,
		 how, log);
}

/*
 * Measured is launch + simulated, if the link's rate is right (where there are
 * no links, that of sums); where it is not, the line through the points says by
 * how much.
 */
static int fit_collective(struct model_file *file,
			  const struct model_curves *curves, FILE *log)
{
	struct model_machine *m = &file->machine;
	bool links = m->topology != MODEL_SHARED;
	double *rate = links ? &m->link : &m->sum_rate;
	struct curve_point point[CURVE_POINTS];
	char how[128];
	double slope;
	uint32_t i, round;
	int ret = 0;

	for (round = 0; round < 4; round++) {
		double launch;

		m->comm_launch = 0;
		for (i = 0; i < curves->collectives && !ret; i++) {
			point[i].y = curves->collective[i].seconds;
			ret = model_predict_comm(&point[i].x, m,
						 &curves->collective[i].work);
		}
		if (ret)
			return ret;
		fit_line(point, curves->collectives, &launch, &slope, how,
			 sizeof(how));
		m->comm_launch = launch;
		if (round < 3)
			*rate *= slope;
	}
	put_rate(file, curves, links ? "link.rate" : "sum.rate", *rate,
		 "collective.launch", m->comm_launch, how, log);
	return 0;
}

static void fit_sum(struct model_file *file, const struct model_curves *curves,
		    FILE *log)
{
	struct misfit misfit = { .n = 0 };
	char text[40], how[128];
	double rate = 0;
	uint32_t i;

	for (i = 0; i < curves->sums; i++)
		rate += log2(curves->sum[i].y / curves->sum[i].x) / curves->sums;
	rate = exp2(rate);
	for (i = 0; i < curves->sums; i++)
		misfit.error[misfit.n++] = fabs(rate * curves->sum[i].x /
						curves->sum[i].y - 1);
	misfit_text(&misfit, how, sizeof(how));
	snprintf(text, sizeof(text), "%.4g GB/s", rate / 1e9);
	replace(file, curves, "sum.rate", text, how);
	fprintf(log, "sum.rate = %s: %s\n", text, how);
}

int model_curves_fit(struct model_file *file, const struct model_curves *curves,
		     FILE *log)
{
	char text[40];
	int ret = 0;

	if (curves->dram > 0) {
		snprintf(text, sizeof(text), "%.4g GB/s", curves->dram / 1e9);
		replace(file, curves, "dram.rate", text, "all cores copy");
		file->machine.dram = curves->dram;
		fprintf(log, "dram.rate = %s\n", text);
	}
	if (curves->copies == 1 || curves->collectives == 1)
		return t3_fail(EINVAL, "a curve of transfers has 1 point, allowed are 2 or more");
	if (curves->copies)
		fit_copy(file, curves, log);
	if (curves->collectives)
		ret = fit_collective(file, curves, log);
	if (ret)
		return ret;
	if (curves->sums)
		fit_sum(file, curves, log);
	return curves->gemms ? fit_gemm(file, curves, log) : 0;
}
