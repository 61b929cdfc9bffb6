/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What submits compiled operations: a GPU's runtime, or a test's recorder.
 */
#ifndef T3_GPU_BACKEND_H
#define T3_GPU_BACKEND_H

#include "compile.h"

/**
 * struct t3_gpu_backend - how operations are submitted
 * @wait: let @stream wait until this process's word @word is at or past
 *	@epoch, cyclically
 * @write: let @stream set word @word of process @owner to @epoch, after all
 *	that it did before is visible to all
 * @transfer: COPY, MOVE, ADD or SUM
 *
 * Each returns at once, 0 or a negative errno; the operation is queued then.
 * Called in the order of the list. Constant.
 */
struct t3_gpu_backend {
	int (*wait)(void *arg, u32 stream, u32 word, u32 epoch);
	int (*write)(void *arg, u32 stream, u32 owner, u32 word, u32 epoch);
	int (*transfer)(void *arg, u32 stream, const struct t3_gpu_op *op,
			const struct t3_gpu_place *source);
};

/**
 * struct t3_gpu_submitter - where a process's submission stands
 * @list: the plan
 * @process: whose part is submitted
 * @epoch: the epoch under way
 * @next: the list's next operation
 *
 * One thread's.
 */
struct t3_gpu_submitter {
	const struct t3_gpu_list *list;
	u32 process;
	u32 epoch;
	u32 next;
};

/**
 * t3_gpu_submit - submit until something that the user must do first
 * @s: where it stands; goes on
 * @backend: to whom
 * @arg: its
 * @until: the kind that was just done by the user: T3_GPU_ARM begins an epoch
 *	(@s->epoch was set, @s->next is 0), T3_GPU_PRODUCE is the next production;
 *	T3_GPU_RETIRE is not waited for: it is reached by itself
 *
 * Submits what follows up to the process's next ARM or PRODUCE, or the end.
 *
 * Return: 0; -EPROTO the user's next step is another; the backend's errno.
 */
int t3_gpu_submit(struct t3_gpu_submitter *s,
		  const struct t3_gpu_backend *backend, void *arg, u32 until);

#endif /* T3_GPU_BACKEND_H */
