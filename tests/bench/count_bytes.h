/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bytes that a program's MPI moves in user space and has moved by
 * process_vm_readv(): compiled with COUNT_BYTES, and with count_bytes.c, whose
 * memcpy(), memmove() and process_vm_readv() all the libraries then find before
 * libc's; else all this is nothing.
 */
#ifndef T3_TESTS_BENCH_COUNT_BYTES_H
#define T3_TESTS_BENCH_COUNT_BYTES_H

enum count {
	COUNT_CALLS,	/* read by process_vm_readv(), and so written */
	COUNT_COPIED,	/* by memcpy() and memmove() */
	COUNT_SUMMED,	/* results of sums of two */
	COUNTS
};

#ifdef COUNT_BYTES
#define COUNTING	1
void count_start(void);
void count_stop(void);
void count_reset(void);
void count_read(unsigned long long counts[COUNTS]);
/* MPI's sum of floats. */
void count_sum(void *in, void *inout, int *n, MPI_Datatype *type);
#else
#define COUNTING	0
static inline void count_start(void) { }
static inline void count_stop(void) { }
static inline void count_reset(void) { }
static inline void count_read(unsigned long long counts[COUNTS])
{
	(void)counts;
}

static inline void count_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in;
	(void)inout;
	(void)n;
	(void)type;
}
#endif

#endif /* T3_TESTS_BENCH_COUNT_BYTES_H */
