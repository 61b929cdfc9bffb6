/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measured results (t3bench's JSON and the like) beside predictions.
 */
#ifndef T3_MODEL_RESULTS_H
#define T3_MODEL_RESULTS_H

#include "curves.h"
#include "plan.h"

#define RESULTS_MOST	1024

/**
 * struct model_time - what is timed of a GEMM with its collective, seconds
 * @gemm: the GEMM alone
 * @comm: the collective alone
 * @fused: both, overlapped
 */
struct model_time {
	double gemm;
	double comm;
	double fused;
};

/**
 * struct model_measured - one result
 * @name: for people
 * @machine: a machine's name or file, or "": the one that was asked for
 * @work: what ran
 * @time: what was measured; NAN: was not
 */
struct model_measured {
	char name[64];
	char machine[64];
	struct model_work work;
	struct model_time time;
};

/**
 * struct model_results - results that were read
 * @result: them
 * @results: how many
 * @files: files that were read
 * @skipped: results that the model has no work for (all-to-all ...)
 */
struct model_results {
	struct model_measured result[RESULTS_MOST];
	uint32_t results;
	uint32_t files;
	uint32_t skipped;
};

/**
 * model_results_read - read results
 * @results: out
 * @path: a file, or a folder: its *.json
 * @machine: for the layout and blocks of results of GPUs
 * @why: out: the cause
 * @bytes: size of @why
 *
 * A result is an object with "m", "n", "k" and "gemm_ms"; what it does not say
 * ("ranks", "dtype", "machine", "engine" ...) is looked for in the objects
 * around it. "comm_ms" and "fused_ms" may be missing.
 *
 * Return: 0, also where there are none; or -EINVAL.
 */
int model_results_read(struct model_results *results, const char *path,
		       const struct model_machine *machine, char *why,
		       size_t bytes);

/**
 * model_results_compare - predict each and print it beside what was measured
 * @results: them
 * @file: the machine, where a result names none
 * @json: print JSON
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_results_compare(const struct model_results *results,
			  const struct model_file *file, bool json);

/* The curves that results hold: their GEMMs and collectives. */
void model_results_curves(const struct model_results *results,
			  struct model_curves *curves);

/**
 * model_predict - simulate what a result timed
 * @time: out
 * @machine: where
 * @work: what
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_predict(struct model_time *time, const struct model_machine *machine,
		  const struct model_work *work);

/* Likewise, of the collective alone. */
int model_predict_comm(double *time, const struct model_machine *machine,
		       const struct model_work *work);

#endif /* T3_MODEL_RESULTS_H */
