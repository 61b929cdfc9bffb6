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
 * t3_gpu_turn - what the user must do before the process can go on
 * @s: where it stands
 *
 * Return: T3_GPU_ARM, T3_GPU_PRODUCE, or T3_GPU_RETIRE: his stream is to wait
 * for the epoch's end; 0: the epoch is all submitted.
 */
u32 t3_gpu_turn(struct t3_gpu_submitter *s);

/* The operation that t3_gpu_turn() speaks of; NULL where it gives 0. */
const struct t3_gpu_op *t3_gpu_turn_op(struct t3_gpu_submitter *s);

/**
 * t3_gpu_submit - submit until something that the user must do first
 * @s: where it stands; goes on
 * @backend: to whom
 * @arg: its
 * @done: what the user has just done. T3_GPU_ARM begins an epoch (@s->epoch was
 *	set, @s->next is 0)
 *
 * Return: 0; -EPROTO the user's turn is another; the backend's errno.
 */
int t3_gpu_submit(struct t3_gpu_submitter *s,
		  const struct t3_gpu_backend *backend, void *arg, u32 done);

#endif /* T3_GPU_BACKEND_H */
