/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whole networks: estimates from layer counts and sublayers.
 */
#ifndef T3_MODEL_NETWORK_H
#define T3_MODEL_NETWORK_H

#include "variants.h"

/**
 * struct model_network - a transformer
 * @name: its name, as in t3_shapes
 * @layers: how many
 * @hidden: size
 * @tokens: of a batch on one group
 * @sequence: tokens of a sequence
 * @ranks: tensor-parallel
 * @paper: among those of the T3 paper's figures
 * @source: where the numbers come from
 */
struct model_network {
	const char *name;
	uint32_t layers;
	uint64_t hidden;
	uint64_t tokens;
	uint64_t sequence;
	uint32_t ranks;
	bool paper;
	const char *source;
};

extern const struct model_network model_networks[];
extern const uint32_t model_networks_count;

/**
 * struct model_estimate - a network's times
 * @training: seconds of one step, forward and backward, by variant
 * @prompt: seconds of one pass forward, by variant
 * @sliced: share of a training step in the sublayers with a collective
 */
struct model_estimate {
	double training[MODEL_VARIANTS];
	double prompt[MODEL_VARIANTS];
	double sliced;
};

/**
 * model_estimate_make - estimate a network's times
 * @estimate: out
 * @machine: where
 * @network: what
 *
 * Return: 0 or a negative errno, with t3_error()'s sentence.
 */
int model_estimate_make(struct model_estimate *estimate,
			const struct model_machine *machine,
			const struct model_network *network);

#endif /* T3_MODEL_NETWORK_H */
