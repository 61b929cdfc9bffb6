// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of sublayers. The output is tokens x hidden, K is hidden / TP
 * (OP), 4 hidden / TP (FC2, FC1-bwd) or 3 hidden / TP (IP-bwd).
 */
#include <stdio.h>
#include <strings.h>

#include "shapes.h"

const struct t3_shape t3_shapes[] = {
	{ "Mega-GPT-2", "OP", 8, 16384, 3072, 384, "bf16", "T3" },
	{ "Mega-GPT-2", "FC2", 8, 16384, 3072, 1536, "bf16", "T3" },
	{ "Mega-GPT-2", "FC1-bwd", 8, 16384, 3072, 1536, "bf16", "T3" },
	{ "Mega-GPT-2", "IP-bwd", 8, 16384, 3072, 1152, "bf16", "T3" },
	{ "Mega-GPT-2", "OP", 16, 16384, 3072, 192, "bf16", "T3" },
	{ "Mega-GPT-2", "FC2", 16, 16384, 3072, 768, "bf16", "T3" },
	{ "Mega-GPT-2", "FC1-bwd", 16, 16384, 3072, 768, "bf16", "T3" },
	{ "Mega-GPT-2", "IP-bwd", 16, 16384, 3072, 576, "bf16", "T3" },
	{ "T-NLG", "OP", 8, 8192, 4256, 532, "bf16", "T3" },
	{ "T-NLG", "FC2", 8, 8192, 4256, 2128, "bf16", "T3" },
	{ "T-NLG", "FC1-bwd", 8, 8192, 4256, 2128, "bf16", "T3" },
	{ "T-NLG", "IP-bwd", 8, 8192, 4256, 1596, "bf16", "T3" },
	{ "T-NLG", "OP", 16, 8192, 4256, 266, "bf16", "T3" },
	{ "T-NLG", "FC2", 16, 8192, 4256, 1064, "bf16", "T3" },
	{ "T-NLG", "FC1-bwd", 16, 8192, 4256, 1064, "bf16", "T3" },
	{ "T-NLG", "IP-bwd", 16, 8192, 4256, 798, "bf16", "T3" },
	{ "GPT-3", "OP", 32, 2048, 12288, 384, "bf16", "T3" },
	{ "GPT-3", "FC2", 32, 2048, 12288, 1536, "bf16", "T3" },
	{ "GPT-3", "FC1-bwd", 32, 2048, 12288, 1536, "bf16", "T3" },
	{ "GPT-3", "IP-bwd", 32, 2048, 12288, 1152, "bf16", "T3" },
	{ "PALM", "OP", 32, 2048, 18432, 576, "bf16", "T3" },
	{ "PALM", "FC2", 32, 2048, 18432, 2304, "bf16", "T3" },
	{ "PALM", "FC1-bwd", 32, 2048, 18432, 2304, "bf16", "T3" },
	{ "PALM", "IP-bwd", 32, 2048, 18432, 1728, "bf16", "T3" },
	{ "MT-NLG", "OP", 32, 2048, 20480, 640, "bf16", "T3" },
	{ "MT-NLG", "FC2", 32, 2048, 20480, 2560, "bf16", "T3" },
	{ "MT-NLG", "FC1-bwd", 32, 2048, 20480, 2560, "bf16", "T3" },
	{ "MT-NLG", "IP-bwd", 32, 2048, 20480, 1920, "bf16", "T3" },
	{ "GPT-3", "OP", 8, 2048, 12288, 1536, "bf16", "today" },
	{ "GPT-3", "FC2", 8, 2048, 12288, 6144, "bf16", "today" },
	{ "Llama-3-70B", "OP", 8, 8192, 8192, 1024, "bf16", "today" },
	{ "Llama-3-70B", "FC2", 8, 8192, 8192, 3584, "bf16", "today" },
	{ "Llama-3-405B", "OP", 8, 8192, 16384, 2048, "bf16", "today" },
	{ "Llama-3-405B", "FC2", 8, 8192, 16384, 6656, "bf16", "today" },
	{ "Mixtral-8x7B", "OP", 8, 8192, 4096, 512, "bf16", "today" },
	{ "Mixtral-8x7B", "FC2", 8, 8192, 4096, 1792, "bf16", "today" },
	{ "DeepSeek-V3", "OP", 8, 4096, 7168, 2048, "bf16", "today" },
	{ "DeepSeek-V3", "FC2", 8, 4096, 7168, 2304, "bf16", "today" },
};

const size_t t3_shapes_count = sizeof(t3_shapes) / sizeof(t3_shapes[0]);

const struct t3_shape *t3_shape_find(const char *name)
{
	char full[64];
	size_t i;

	for (i = 0; i < t3_shapes_count; i++) {
		snprintf(full, sizeof(full), "%s/%s/%u", t3_shapes[i].model,
			 t3_shapes[i].sublayer, t3_shapes[i].tp);
		if (!strcasecmp(full, name))
			return &t3_shapes[i];
	}
	return NULL;
}
