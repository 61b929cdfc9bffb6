// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Submitting a process's part of the list.
 */
#include "backend.h"

static u32 turn_of(const struct t3_gpu_list *list, const struct t3_gpu_op *op)
{
	if (op->kind == T3_GPU_ARM || op->kind == T3_GPU_PRODUCE)
		return op->kind;
	return op->group >= list->retire ? T3_GPU_RETIRE : 0;
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

const struct t3_gpu_op *t3_gpu_turn_op(struct t3_gpu_submitter *s)
{
	return next_op(s);
}

u32 t3_gpu_turn(struct t3_gpu_submitter *s)
{
	const struct t3_gpu_op *op = next_op(s);

	return op ? turn_of(s->list, op) : 0;
}

int t3_gpu_submit(struct t3_gpu_submitter *s,
		  const struct t3_gpu_backend *backend, void *arg, u32 done)
{
	const struct t3_gpu_op *op = next_op(s);
	int ret;

	if (!op || turn_of(s->list, op) != done)
		return -EPROTO;
	if (done != T3_GPU_RETIRE)
		s->next++;
	for (op = next_op(s); op; op = next_op(s)) {
		if (done != T3_GPU_RETIRE && turn_of(s->list, op))
			break;
		ret = submit_one(s, backend, arg, op);
		if (ret)
			return ret;
		s->next++;
	}
	return 0;
}
