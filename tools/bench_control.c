// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the ranks share: a barrier, a word that ends them all, their results.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define NSEC_PER_SEC	1000000000
#define SPINS		20000
#define NAP_NS		20000000	/* a sleeper looks at @stop this often */

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NSEC_PER_SEC;
}

/**
 * bench_control_new - memory that the ranks share, whether forked or threads
 *
 * It lives as long as the program.
 *
 * Return: NULL: there is no memory.
 */
struct bench_control *bench_control_new(const struct bench_options *o)
{
	size_t bytes = sizeof(struct bench_control) + sizeof(double) *
		BENCH_PHASES * o->epochs * o->ranks;
	struct bench_control *control;

	control = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (control == MAP_FAILED)
		return NULL;
	control->ranks = o->ranks;
	control->spin = o->ranks <= sysconf(_SC_NPROCESSORS_ONLN);
	return control;
}

static long futex(atomic_uint *word, int op, unsigned int value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/**
 * bench_barrier - until all ranks are here
 *
 * Return: false: somebody failed, and so it ends without them.
 */
bool bench_barrier(struct bench_control *control)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	unsigned int turn = atomic_load(&control->turn);
	int i;

	if (atomic_fetch_add(&control->arrived, 1) + 1 == control->ranks) {
		atomic_store(&control->arrived, 0);
		atomic_store(&control->turn, turn + 1);
		/* no system call into a time that begins here */
		if (atomic_load(&control->sleepers))
			futex(&control->turn, FUTEX_WAKE, INT_MAX, NULL);
		return !atomic_load(&control->stop);
	}
	for (i = 0; control->spin && i < SPINS; i++) {
		if (atomic_load(&control->turn) != turn)
			return !atomic_load(&control->stop);
		__builtin_ia32_pause();
	}
	atomic_fetch_add(&control->sleepers, 1);
	while (atomic_load(&control->turn) == turn &&
	       !atomic_load(&control->stop))
		futex(&control->turn, FUTEX_WAIT, turn, &nap);
	atomic_fetch_sub(&control->sleepers, 1);
	return !atomic_load(&control->stop);
}

/**
 * bench_fail - keep a rank's sentence and end all ranks
 *
 * A rank that ends because another failed has nothing to add.
 */
void bench_fail(struct bench_job *job, const char *format, ...)
{
	struct bench_rank *record = job->record;
	va_list args;

	if (record->failed)
		return;
	va_start(args, format);
	vsnprintf(record->error, sizeof(record->error), format, args);
	va_end(args);
	record->failed = true;
	atomic_store(&job->control->stop, 1);
}
