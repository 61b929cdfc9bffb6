// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ranks as processes or threads, and the parent that watches them: it
 * waits for nobody without a limit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define GRACE_S		5.0	/* what ranks have left after one has failed */
#define WATCHDOG_MS	120000	/* one step of a large GEMM takes long */

/**
 * struct runner - one rank as its parent sees it; the parent's alone
 * @job: the rank's
 * @group: what it joins (a process opens it anew from @fd)
 * @fd: the right to join, for processes; -1 for threads
 * @pid: of its process; 0: ended
 * @status: as waitpid() gives it
 */
struct runner {
	struct bench_job job;
	struct t3_group *group;
	int fd;
	pid_t pid;
	int status;
	pthread_t thread;
};

static void bind_to(uint32_t rank)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(rank % cpus, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int one_rank(struct runner *r)
{
	struct bench_job *job = &r->job;
	struct t3_group *group = r->group;
	struct t3_options options = {
		.size = sizeof(options),
		.workers = job->options->workers,
	};
	int ret;

	if (job->options->bind)
		bind_to(job->rank);
	if (r->fd >= 0 && t3_group_from_fd(r->fd, &options, &group)) {
		bench_fail(job, "t3_group_from_fd: %s", t3_error());
		return 1;
	}
	ret = bench_rank_run(job, group);
	if (r->fd >= 0)
		t3_group_close(group);
	return ret;
}

/* @shown: when it was last shown; the caller's */
static void progress(const struct bench_options *o,
		     struct bench_control *control, double start, double *shown)
{
	unsigned int epoch = atomic_load(&control->epoch);
	double now = bench_now();

	if (!isatty(STDERR_FILENO) || now - start < 1 || now - *shown < 0.5)
		return;
	*shown = now;
	fprintf(stderr, "\r\033[K");
	if (epoch < o->epochs)
		fprintf(stderr, "t3bench: epoch %u of %u, %.0f s", epoch + 1,
			o->epochs, now - start);
	fflush(stderr);
}

static void progress_end(double start)
{
	if (isatty(STDERR_FILENO) && bench_now() - start >= 1)
		fprintf(stderr, "\r\033[K");
}

/* What a rank says for itself, or what its process's end says. */
static int report_rank(const struct runner *r)
{
	const struct bench_rank *record = r->job.record;
	uint32_t rank = r->job.rank;

	if (record->failed)
		fprintf(stderr, "t3bench: rank %u: %s\n", rank, record->error);
	else if (r->fd >= 0 && WIFSIGNALED(r->status))
		fprintf(stderr, "t3bench: rank %u was killed by signal %d (%s)\n",
			rank, WTERMSIG(r->status),
			strsignal(WTERMSIG(r->status)));
	else if (r->fd >= 0 && WEXITSTATUS(r->status))
		fprintf(stderr, "t3bench: rank %u ended with status %d\n", rank,
			WEXITSTATUS(r->status));
	else
		return 0;
	return 1;
}

/* Reap what has ended. Return: ranks that still run. */
static uint32_t reap(struct runner *r, uint32_t ranks, bool *failed)
{
	uint32_t i, running = 0;

	for (i = 0; i < ranks; i++) {
		if (!r[i].pid)
			continue;
		if (waitpid(r[i].pid, &r[i].status, WNOHANG) != r[i].pid) {
			running++;
			continue;
		}
		r[i].pid = 0;
		if (report_rank(&r[i]))
			*failed = true;
	}
	return running;
}

static void kill_all(struct runner *r, uint32_t ranks)
{
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		if (!r[i].pid)
			continue;
		fprintf(stderr, "t3bench: rank %u did not end by itself; killed\n",
			r[i].job.rank);
		kill(r[i].pid, SIGKILL);
		waitpid(r[i].pid, &r[i].status, 0);
		r[i].pid = 0;
	}
}

static void nap(void)
{
	static const struct timespec t = { .tv_nsec = 2000000 };
	sigset_t set;

	/* a child's end wakes us */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &t);
}

/* Return: 0; 1: somebody failed, and said so. */
static int watch(struct runner *r, const struct bench_options *o,
		 struct bench_control *control)
{
	double start = bench_now(), deadline = start + o->timeout_s, shown = 0;
	bool failed = false, late = false;

	while (reap(r, o->ranks, &failed)) {
		double now = bench_now();

		if (now > deadline) {
			if (!failed && !late)
				fprintf(stderr, "t3bench: more than --timeout %u s\n",
					o->timeout_s);
			late = true;
			kill_all(r, o->ranks);
			break;
		}
		if (failed && !late) {
			atomic_store(&control->stop, 1);
			deadline = now + GRACE_S;
			late = true;
		}
		progress(o, control, start, &shown);
		nap();
	}
	progress_end(start);
	return failed || late;
}

static int start_process(struct runner *r)
{
	pid_t parent = getpid();

	fflush(NULL);
	r->pid = fork();
	if (r->pid < 0) {
		perror("t3bench: fork");
		r->pid = 0;
		return 1;
	}
	if (r->pid)
		return 0;
	/* nobody outlives the parent */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(one_rank(r));
}

static int run_processes(struct runner *r, const struct bench_options *o,
			 struct bench_control *control)
{
	sigset_t set;
	uint32_t i;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < o->ranks; i++) {
		r[i].fd = t3_group_fd(r[i].group);
		if (start_process(&r[i])) {
			kill_all(r, o->ranks);
			return 1;
		}
	}
	/* the right to join is the children's now */
	t3_group_close(r[0].group);
	return watch(r, o, control);
}

static void *thread_main(void *arg)
{
	struct runner *r = arg;

	one_rank(r);
	atomic_fetch_add(&r->job.control->done, 1);
	return NULL;
}

static int run_threads(struct runner *r, const struct bench_options *o,
		       struct bench_control *control)
{
	double start = bench_now(), deadline = start + o->timeout_s, shown = 0;
	int failed = 0;
	uint32_t i;

	for (i = 0; i < o->ranks; i++) {
		r[i].fd = -1;
		errno = pthread_create(&r[i].thread, NULL, thread_main, &r[i]);
		if (errno) {
			perror("t3bench: pthread_create");
			return 1;
		}
	}
	while (atomic_load(&control->done) < o->ranks &&
	       bench_now() < deadline) {
		if (atomic_load(&control->stop) && !failed) {
			failed = 1;
			deadline = bench_now() + GRACE_S;
		}
		progress(o, control, start, &shown);
		nap();
	}
	progress_end(start);
	for (i = 0; i < o->ranks; i++)
		failed |= report_rank(&r[i]);
	if (atomic_load(&control->done) < o->ranks) {
		fprintf(stderr, "t3bench: %u of %u ranks did not end in time\n",
			o->ranks - atomic_load(&control->done), o->ranks);
		return 1;
	}
	for (i = 0; i < o->ranks; i++)
		pthread_join(r[i].thread, NULL);
	t3_group_close(r[0].group);
	return failed;
}

/* Bytes that one rank takes. */
static double rank_bytes(const struct bench_options *o)
{
	double size = bench_dtype_size(o->dtype);
	double factor = size < 4 ? 4 : size;	/* f16, bf16: multiplied in f32 */
	double matrix = (double)o->m * o->n;
	double bytes = matrix * size * (o->op == T3_ALL_TO_ALL ? 2 : 1);

	if (!o->k)
		return bytes + matrix * size;
	bytes += ((double)o->m + o->n) * o->k * factor;
	return size < 4 ? bytes + matrix * 4 : bytes;
}

/* Better said before than by the kernel's killing a rank. */
static bool enough_memory(const struct bench_options *o)
{
	double want = rank_bytes(o) * o->ranks, have = -1;
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long kib;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			have = kib * 1024.;
	if (f)
		fclose(f);
	if (have < 0 || want < have)
		return true;
	fprintf(stderr, "t3bench: %u ranks need %.1f GiB, %.1f GiB are available; try a smaller -m\n",
		o->ranks, want / (1 << 30), have / (1 << 30));
	return false;
}

/**
 * bench_run - run all ranks to their end
 *
 * Return: 0; 1: a rank failed, died or did not end, and was named on stderr.
 */
int bench_run(const struct bench_options *o, struct bench_control *control)
{
	struct t3_options options = {
		.size = sizeof(options),
		.engine = o->engine,
		.workers = o->workers,
		.watchdog_ms = WATCHDOG_MS,
	};
	struct t3_group *group;
	struct runner *r;
	uint32_t i;
	int ret;

	if (!enough_memory(o))
		return 1;
	if (t3_group_create(o->ranks, &options, &group)) {
		fprintf(stderr, "t3bench: t3_group_create: %s\n", t3_error());
		return 1;
	}
	r = calloc(o->ranks, sizeof(*r));
	if (!r) {
		perror("t3bench");
		return 1;
	}
	for (i = 0; i < o->ranks; i++) {
		r[i].group = group;
		r[i].job.options = o;
		r[i].job.control = control;
		r[i].job.record = &control->rank[i];
		r[i].job.rank = i;
	}
	ret = o->threads ? run_threads(r, o, control) :
		run_processes(r, o, control);
	if (!ret || !o->threads)
		free(r);
	return ret;
}
