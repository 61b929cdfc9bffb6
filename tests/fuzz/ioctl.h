/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ioctl fuzzer: what its parts share.
 *
 * A case is a list of steps. For each case fresh worker processes are forked;
 * the parent hands them the steps in order and, but for those that are marked,
 * waits for each. What a step did (its errno, and with KCOV the code that it
 * ran through) becomes features; a case with a new feature is kept and mutated.
 */
#ifndef T3_FUZZ_IOCTL_H
#define T3_FUZZ_IOCTL_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/t3.h>

#define WORKERS		3
#define MAX_STEPS	48
#define SLOTS		16	/* descriptors of a worker */
#define FEATURES	(1 << 16)

/* What a step does; its arguments are the step's bytes. */
enum fuzz_op {
	OP_QUERY, OP_CREATE, OP_JOIN, OP_INFO, OP_ABORT, OP_SET,
	OP_REGION_ADD, OP_REGION_DEL, OP_PLAN_ADD, OP_PLAN_WAIT, OP_PLAN_DEL,
	OP_ARM, OP_NOTIFY, OP_WAIT, OP_LEAVE,
	OP_CLOSE, OP_DUP, OP_GRAB, OP_FORK, OP_EXIT,
	OP_MMAP, OP_COUNT, OP_MUNMAP, OP_MEMORY, OP_POLL, OP_RAW, OP_KNOB,
	OP_READ, OP_PAUSE,
	OP_COUNT_OF_OPS
};

/**
 * struct fuzz_step - one step
 * @op: enum fuzz_op, modulo their number
 * @worker: who does it, modulo WORKERS; FUZZ_ASYNC: nobody waits for its end
 * @a: arguments, each op's own
 */
struct fuzz_step {
	__u8 op;
	__u8 worker;
	__u8 a[6];
};

#define FUZZ_ASYNC	0x80

struct fuzz_case {
	__u32 steps;
	struct fuzz_step step[MAX_STEPS];
};

/**
 * struct fuzz_mail - between the parent and a worker
 * @step: to be done
 * @posted: steps handed over; written by the parent, futex
 * @done: steps finished; written by the worker, futex
 * @result: of the last step: 0 or a positive errno
 * @op: what the worker is at, for messages
 *
 * In memory that all share. The parent posts only when @done has reached
 * @posted.
 */
struct fuzz_mail {
	struct fuzz_step step;
	__u32 posted;
	__u32 done;
	__u32 result;
	__u32 op;
};

/**
 * struct fuzz_shared - memory of the parent and all workers
 * @mail: each worker's
 * @seen: [FEATURES] 1: a step of this case had that feature; set by any worker
 */
struct fuzz_shared {
	struct fuzz_mail mail[WORKERS];
	__u8 seen[FEATURES];
};

/* ops.c: carries out a step in this process; returns 0 or a positive errno. */
int fuzz_do(const struct fuzz_step *step, const pid_t *peers);
/* Sets up this process: buffers, an open device. */
void fuzz_begin(void);

/* kcov.c: false where the kernel has no KCOV. */
bool kcov_begin(void);
void kcov_reset(void);
/* Marks what was run through since; @salt tells steps apart. */
void kcov_collect(__u8 *seen, __u32 salt);

/* mutate.c */
struct fuzz_dice {
	__u64 state;
};

__u32 dice(struct fuzz_dice *d, __u32 n);
void fuzz_seed(struct fuzz_case *c, __u32 which);
void fuzz_mutate(struct fuzz_case *c, const struct fuzz_case *other,
		 struct fuzz_dice *d);
#define FUZZ_SEEDS	8

#endif /* T3_FUZZ_IOCTL_H */
