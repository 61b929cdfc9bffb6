/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The T3 paper's figures beside ours.
 */
#ifndef T3_MODEL_PAPER_H
#define T3_MODEL_PAPER_H

#include "machine_file.h"

#define MODEL_ROWS	40

/**
 * struct model_row - one of the paper's figures
 * @id: a word
 * @what: for people
 * @unit: "x", "%" or ""
 * @paper: the paper's value
 * @ours: ours
 * @tolerance: how far ours may be off
 * @asked: the tolerance is the project's; else this program's own choice
 * @fitted: the parameter that was fitted to it, or NULL: then it judges
 *	nothing
 * @ok: ours is within the tolerance, and nothing was fitted to it
 * @why: why it is not met, or NULL
 */
struct model_row {
	const char *id;
	const char *what;
	const char *unit;
	double paper;
	double ours;
	double tolerance;
	bool asked;
	const char *fitted;
	bool ok;
	const char *why;
};

/**
 * struct model_paper - all of them
 * @row: them
 * @rows: how many
 */
struct model_paper {
	struct model_row row[MODEL_ROWS];
	uint32_t rows;
};

/**
 * model_paper_find - simulate everything that the rows ask for
 * @paper: out
 * @file: the paper's machine
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_paper_find(struct model_paper *paper, const struct model_file *file);

/* Print a table, or a list in JSON. */
void model_paper_table(const struct model_paper *paper,
		       const struct model_file *file);
void model_paper_json(const struct model_paper *paper);

#endif /* T3_MODEL_PAPER_H */
