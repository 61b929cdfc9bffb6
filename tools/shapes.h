/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The matrix shapes that matter: sublayers of transformers whose output is
 * summed over tensor-parallel ranks.
 */
#ifndef T3_TOOLS_SHAPES_H
#define T3_TOOLS_SHAPES_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct t3_shape - one sublayer's GEMM on one rank
 * @model: the model
 * @sublayer: OP, FC2, FC1-bwd or IP-bwd
 * @tp: tensor-parallel ranks
 * @m: rows of the output: tokens
 * @n: columns of the output: the hidden size
 * @k: length of the dot products of one rank
 * @dtype: as t3bench's --dtype
 * @source: "T3": evaluated in the T3 paper; "today": a model of today
 */
struct t3_shape {
	const char *model;
	const char *sublayer;
	uint32_t tp;
	uint64_t m;
	uint64_t n;
	uint64_t k;
	const char *dtype;
	const char *source;
};

extern const struct t3_shape t3_shapes[];
extern const size_t t3_shapes_count;

/**
 * t3_shape_find - look a shape up
 * @name: "MODEL/SUBLAYER/TP", letters of either case
 *
 * Return: the shape, or NULL.
 */
const struct t3_shape *t3_shape_find(const char *name);

#endif /* T3_TOOLS_SHAPES_H */
