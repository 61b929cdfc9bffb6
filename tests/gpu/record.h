/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A back end that records what is submitted, and a GPU that plays it back with
 * few or many hardware queues.
 */
#ifndef T3_TESTS_GPU_RECORD_H
#define T3_TESTS_GPU_RECORD_H

#include "backend.h"

/**
 * struct record - what one process submitted, in order
 * @ops: used of @op
 * @room: entries of @op
 * @op: of the list's form; WAIT and WRITE have their value in @epoch
 * @epoch: [ops] of each
 */
struct record {
	u32 ops;
	u32 room;
	struct t3_gpu_op *op;
	u32 *epoch;
	u32 now;
};

extern const struct t3_gpu_backend record_backend;

/* What the user does himself: his GEMM, and arming. */
int record_user(struct record *r, const struct t3_gpu_op *op, u32 epoch);

void record_free(struct record *r);

/**
 * record_epochs - submit a process's part of some epochs
 *
 * Return: 0 or a negative errno.
 */
int record_epochs(struct record *r, const struct t3_gpu_list *list, u32 process,
		  u32 epochs);

/**
 * record_play - run what all processes submitted
 * @record: [graph->ranks]
 * @list: from which it was
 * @graph: against which each step is judged
 * @epochs: that were submitted
 * @queues: hardware queues of each process, that its streams share
 * @seed: of the order in which queues go on
 * @why: out: what is wrong
 * @bytes: size of @why
 *
 * Return: 0; -1 with a sentence.
 */
int record_play(const struct record *record, const struct t3_gpu_list *list,
		const struct t3_graph *graph, u32 epochs, u32 queues, u32 seed,
		char *why, size_t bytes);

#endif /* T3_TESTS_GPU_RECORD_H */
