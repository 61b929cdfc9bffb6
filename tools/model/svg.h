/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Charts.
 */
#ifndef T3_MODEL_SVG_H
#define T3_MODEL_SVG_H

#include "report.h"

/**
 * model_svg_speedups - bars: each sublayer's speedups over sequential
 * model_svg_movement - stacked bars: bytes of memory by cause, sequential and
 *	T3-MCA
 * model_svg_timeline - one sublayer over time; it was asked for with its trace
 * @path: the file to write
 * @machine: where they were simulated
 * @line: the sublayers
 * @lines: how many
 *
 * Return: 0 or a negative errno of writing the file.
 */
int model_svg_speedups(const char *path, const struct model_machine *machine,
		       const struct model_line *line, size_t lines);
int model_svg_movement(const char *path, const struct model_machine *machine,
		       const struct model_line *line, size_t lines);
int model_svg_timeline(const char *path, const struct model_machine *machine,
		       const struct model_line *line);

#endif /* T3_MODEL_SVG_H */
