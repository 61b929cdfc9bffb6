/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What t3model prints: sublayers and networks, as tables and as JSON.
 */
#ifndef T3_MODEL_REPORT_H
#define T3_MODEL_REPORT_H

#include "network.h"

/**
 * struct model_line - a sublayer that was simulated
 * @name: for people: "T-NLG/FC2/8"
 * @sublayer: its sizes
 * @answer: what was found
 */
struct model_line {
	char name[64];
	struct model_sublayer sublayer;
	struct model_answer answer;
};

/**
 * struct model_total - a network that was estimated
 */
struct model_total {
	const struct model_network *network;
	struct model_estimate estimate;
};

void model_report_table(const struct model_machine *machine,
			const struct model_line *line, size_t lines);
void model_report_json(const struct model_machine *machine,
		       const struct model_line *line, size_t lines);
void model_report_networks(const struct model_machine *machine,
			   const struct model_total *total, size_t totals,
			   bool json);

#endif /* T3_MODEL_REPORT_H */
