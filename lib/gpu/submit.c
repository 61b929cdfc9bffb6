// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Submitting a process's part of the list.
 */
#include "backend.h"

static bool by_user(const struct t3_gpu_op *op)
{
	return op->kind == T3_GPU_ARM || op->kind == T3_GPU_PRODUCE;
}

static int submit_one(const struct t3_gpu_submitter *s,
		      const struct t3_gpu_backend *backend, void *arg,
		      const struct t3_gpu_op *op)
{
	switch (op->kind) {
	case T3_GPU_WAIT:
		return backend->wait(arg, op->stream, op->word, s->epoch);
	case T3_GPU_WRITE:
		return backend->write(arg, op->stream, op->owner, op->word,
				      s->epoch);
	case T3_GPU_RETIRE:
		return 0;
	default:
		return backend->transfer(arg, op->stream, op,
					 s->list->source + op->first_source);
	}
}

static const struct t3_gpu_op *next_op(struct t3_gpu_submitter *s)
{
	while (s->next < s->list->ops &&
	       s->list->op[s->next].process != s->process)
		s->next++;
	return s->next < s->list->ops ? &s->list->op[s->next] : NULL;
}

int t3_gpu_submit(struct t3_gpu_submitter *s,
		  const struct t3_gpu_backend *backend, void *arg, u32 until)
{
	const struct t3_gpu_op *op = next_op(s);
	int ret;

	if (!op || op->kind != until || !by_user(op))
		return -EPROTO;
	s->next++;
	for (op = next_op(s); op && !by_user(op); op = next_op(s)) {
		ret = submit_one(s, backend, arg, op);
		if (ret)
			return ret;
		s->next++;
	}
	return 0;
}
