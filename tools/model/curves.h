/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measured curves, and the parameters that fit them.
 */
#ifndef T3_MODEL_CURVES_H
#define T3_MODEL_CURVES_H

#include <stdio.h>

#include "machine_file.h"
#include "plan.h"

#define CURVE_POINTS	64

/**
 * struct curve_gemm - a GEMM that was timed
 */
struct curve_gemm {
	uint64_t m;
	uint64_t n;
	uint64_t k;
	uint32_t dtype;
	double seconds;
};

/**
 * struct curve_point - a copy (bytes, seconds) or a sum (units, bytes a second)
 */
struct curve_point {
	double x;
	double y;
};

/**
 * struct curve_collective - a collective that was timed alone
 */
struct curve_collective {
	struct model_work work;
	double seconds;
};

/**
 * struct model_curves - what was measured
 * @from: where, for the parameters' sources
 * @gemm: GEMMs
 * @gemms: how many
 * @copy: transfers
 * @copies: how many
 * @sum: sums
 * @sums: how many
 * @collective: collectives
 * @collectives: how many
 * @dram: bytes a second of memory, 0: not measured
 */
struct model_curves {
	char from[64];
	struct curve_gemm gemm[CURVE_POINTS];
	uint32_t gemms;
	struct curve_point copy[CURVE_POINTS];
	uint32_t copies;
	struct curve_point sum[CURVE_POINTS];
	uint32_t sums;
	struct curve_collective collective[CURVE_POINTS];
	uint32_t collectives;
	double dram;
};

/**
 * model_curves_read - read curves from JSON
 * @curves: out
 * @path: a file: {"gemm": [{"m", "n", "k", "dtype", "ms"}],
 *	"copy": [{"bytes", "us"}], "sum": [{"units", "GBps"}], "dram_GBps"}; each
 *	part may be missing
 * @why: out: the cause
 * @bytes: size of @why
 *
 * Return: 0 or -EINVAL.
 */
int model_curves_read(struct model_curves *curves, const char *path, char *why,
		      size_t bytes);

/**
 * model_curves_measure - measure this machine's processor: GEMMs, sums and
 *	copies, all cores at once
 * @curves: out
 *
 * Takes some seconds.
 *
 * Return: 0 or -ENOMEM.
 */
int model_curves_measure(struct model_curves *curves);

/**
 * model_curves_fit - replace a machine's parameters by those that fit
 * @file: the machine
 * @curves: what was measured
 * @log: where each fit and its error is told
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_curves_fit(struct model_file *file, const struct model_curves *curves,
		     FILE *log);

#endif /* T3_MODEL_CURVES_H */
