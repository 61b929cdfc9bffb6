// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whole networks.
 *
 * A layer forward: IP (the projection to queries, keys and values), attention,
 * OP, FC1, FC2; OP and FC2 end in a collective. Backward, each has a GEMM for
 * its input's gradient, of which those of IP and FC1 end in a collective, and
 * one for its weights'. What is done element by element is memory traffic.
 */
#include <string.h>

#include "network.h"

/*
 * Times that the elements of an activation of full width pass memory in a
 * layer forward: two norms, two residual sums, two dropouts, each read and
 * written. Backward: twice that.
 */
#define PASSES	12

const struct model_network model_networks[] = {
	{ "Mega-GPT-2", 74, 3072, 16384, 1024, 8, true,
	  "Megatron-LM: 8.3 billion" },
	{ "Mega-GPT-2", 74, 3072, 16384, 1024, 16, true,
	  "Megatron-LM: 8.3 billion" },
	{ "T-NLG", 78, 4256, 8192, 1024, 8, true, "Turing-NLG: 17 billion" },
	{ "T-NLG", 78, 4256, 8192, 1024, 16, true, "Turing-NLG: 17 billion" },
	{ "GPT-3", 96, 12288, 2048, 2048, 32, true, "GPT-3: 175 billion" },
	{ "PALM", 118, 18432, 2048, 2048, 32, true, "PaLM: 540 billion" },
	{ "MT-NLG", 105, 20480, 2048, 2048, 32, true, "MT-NLG: 530 billion" },
	{ "1T", 128, 25600, 2048, 2048, 64, false,
	  "Megatron-LM's 1 trillion configuration" },
	{ "10T", 200, 65536, 2048, 2048, 64, false,
	  "assumed: 12 layers hidden^2 is 10 trillion" },
};

const uint32_t model_networks_count =
	sizeof(model_networks) / sizeof(model_networks[0]);

/* The time of a GEMM that ends in no collective. */
static int plain_gemm(double *sum, const struct model_machine *machine,
		      const struct model_network *net, uint64_t m, uint64_t n,
		      uint64_t k)
{
	struct model_sublayer s = { m, n, k, T3_DTYPE_BF16, net->ranks, 1 };
	double seconds;
	int ret = model_gemm_ask(&seconds, machine, &s);

	if (!ret)
		*sum += seconds;
	return ret;
}

/* Scores and weighted sums; forward, where all of the square is computed. */
static double attention(const struct model_machine *machine,
			const struct model_network *net)
{
	double flops = 4.0 * net->tokens * net->sequence * net->hidden /
		       net->ranks;

	return flops / (model_unit_rate(machine, 2) * machine->units);
}

static double elements(const struct model_machine *machine,
		       const struct model_network *net)
{
	double wide = (double)net->tokens * net->hidden * 2;
	/* The 4 hidden / ranks of the feed-forward: read and written once. */
	double inner = 4 * wide / net->ranks * 2;

	return (PASSES * wide + inner) / machine->dram;
}

static int other_forward(double *sum, const struct model_machine *machine,
			 const struct model_network *net)
{
	uint64_t h = net->hidden, t = net->tokens;
	uint32_t n = net->ranks;
	int ret = plain_gemm(sum, machine, net, t, 3 * h / n, h);

	if (!ret)
		ret = plain_gemm(sum, machine, net, t, 4 * h / n, h);
	*sum += attention(machine, net) + elements(machine, net);
	return ret;
}

static int other_backward(double *sum, const struct model_machine *machine,
			  const struct model_network *net)
{
	uint64_t h = net->hidden, t = net->tokens;
	uint32_t n = net->ranks;
	/* Gradients of OP's and FC2's inputs, then of the four weights. */
	const uint64_t gemm[][3] = {
		{ t, h / n, h }, { t, 4 * h / n, h }, { h, 3 * h / n, t },
		{ h, h / n, t }, { h, 4 * h / n, t }, { h, 4 * h / n, t },
	};
	size_t i;
	int ret = 0;

	for (i = 0; i < sizeof(gemm) / sizeof(gemm[0]) && !ret; i++)
		ret = plain_gemm(sum, machine, net, gemm[i][0], gemm[i][1],
				 gemm[i][2]);
	*sum += 2 * (attention(machine, net) + elements(machine, net));
	return ret;
}

static int add_sublayer(double *sum, const struct model_machine *machine,
			const struct model_network *net, uint64_t k)
{
	struct model_sublayer s = {
		net->tokens, net->hidden, k, T3_DTYPE_BF16, net->ranks, 1
	};
	struct model_answer answer;
	int ret = model_ask(&answer, machine, &s, false);
	uint32_t v;

	for (v = 0; v < MODEL_VARIANTS && !ret; v++)
		sum[v] += answer.time[v];
	if (!ret)
		model_answer_free(&answer);
	return ret;
}

int model_estimate_make(struct model_estimate *estimate,
			const struct model_machine *machine,
			const struct model_network *net)
{
	double back[MODEL_VARIANTS] = { 0 };
	double forward = 0, backward = 0;
	uint64_t slice = net->hidden / net->ranks;
	uint32_t v;
	int ret;

	memset(estimate, 0, sizeof(*estimate));
	ret = add_sublayer(estimate->prompt, machine, net, slice);
	if (!ret)
		ret = add_sublayer(estimate->prompt, machine, net, 4 * slice);
	if (!ret)
		ret = add_sublayer(back, machine, net, 4 * slice);
	if (!ret)
		ret = add_sublayer(back, machine, net, 3 * slice);
	if (!ret)
		ret = other_forward(&forward, machine, net);
	if (!ret)
		ret = other_backward(&backward, machine, net);
	if (ret)
		return ret;
	for (v = 0; v < MODEL_VARIANTS; v++) {
		double sliced = estimate->prompt[v] + back[v];

		estimate->training[v] = net->layers * (sliced + forward + backward);
		estimate->prompt[v] = net->layers * (estimate->prompt[v] + forward);
		if (v == MODEL_SEQUENTIAL)
			estimate->sliced = net->layers * sliced /
					   estimate->training[v];
	}
	return 0;
}
