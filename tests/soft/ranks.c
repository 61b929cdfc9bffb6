// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "ranks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int tap_points;
static int tap_failed;

int rank_fails(const struct t3_member *member, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "# rank %u of %u: %s\n", t3_rank(member),
		t3_ranks(member), line);
	return 1;
}

/* Where a rank's thread goes when its function is to end. */
struct rank_end {
	jmp_buf at;
};

static __thread struct rank_end *rank_end;

static void end_rank(void)
{
	if (!rank_end)
		exit(1);
	longjmp(rank_end->at, 1);
}

void rank_check(const struct t3_member *member, bool ok, const char *format,
		...)
{
	char line[1024];
	va_list args;

	if (ok)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	rank_fails(member, "%s", line);
	end_rank();
}

void rank_gives(const struct t3_member *member, int want, int ret,
		const char *where, const char *call)
{
	if (ret == want)
		return;
	rank_fails(member, "%s: %s: %d, not %d: %s", where, call, ret, want,
		   t3_error());
	end_rank();
}

struct t3_options soft_options(void)
{
	const char *name = getenv("T3_TEST_ENGINE");

	return (struct t3_options) {
		.size = sizeof(struct t3_options),
		.engine = name && !strcmp(name, "gpu") ? T3_ENGINE_GPU :
							 T3_ENGINE_SOFT,
		.setup_ms = 20000,
		.watchdog_ms = 20000,
		.workers = T3_NO_WORKERS,
	};
}

struct t3_group *new_group(uint32_t ranks, const struct t3_options *options)
{
	struct t3_options soft = soft_options();
	struct t3_group *group;

	if (t3_group_create(ranks, options ? options : &soft, &group)) {
		printf("Bail out! t3_group_create: %s\n", t3_error());
		exit(1);
	}
	return group;
}

/**
 * struct rank_run - a rank to run
 *
 * Its thread's or process's own, once it runs.
 */
struct rank_run {
	struct t3_group *group;
	uint32_t rank;
	rank_fn fn;
	void *arg;
	int failed;
};

int rank_call(struct t3_member *member, rank_fn fn, void *arg)
{
	struct rank_end end;
	int failed;

	rank_end = &end;
	failed = setjmp(end.at) ? 1 : fn(member, arg);
	rank_end = NULL;
	return failed;
}

static int run_one(struct rank_run *run)
{
	struct t3_member *member;
	int failed;

	if (t3_join(run->group, run->rank, &member)) {
		fprintf(stderr, "# rank %u: t3_join: %s\n", run->rank,
			t3_error());
		return 1;
	}
	failed = rank_call(member, run->fn, run->arg);
	if (t3_leave(member) && !failed) {
		fprintf(stderr, "# rank %u: t3_leave: %s\n", run->rank,
			t3_error());
		failed = 1;
	}
	return failed;
}

static void *run_thread(void *arg)
{
	struct rank_run *run = arg;

	run->failed = run_one(run);
	return NULL;
}

pid_t fork_rank(struct t3_group *group, uint32_t rank, rank_fn fn, void *arg)
{
	struct rank_run run = { group, rank, fn, arg, 0 };
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	_exit(run_one(&run));
}

int reap_rank(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static int run_processes(struct t3_group *group, uint32_t ranks, rank_fn fn,
			 void *arg)
{
	pid_t pid[T3_MAX_RANKS];
	int failed = 0;
	uint32_t r;

	for (r = 0; r < ranks; r++)
		pid[r] = fork_rank(group, r, fn, arg);
	for (r = 0; r < ranks; r++)
		failed += reap_rank(pid[r]);
	return failed;
}

static int run_threads(struct t3_group *group, uint32_t ranks, rank_fn fn,
		       void *arg)
{
	struct rank_run run[T3_MAX_RANKS];
	pthread_t thread[T3_MAX_RANKS];
	int failed = 0;
	uint32_t r;

	for (r = 0; r < ranks; r++) {
		run[r] = (struct rank_run) { group, r, fn, arg, 0 };
		if (pthread_create(&thread[r], NULL, run_thread, &run[r]))
			abort();
	}
	for (r = 0; r < ranks; r++) {
		pthread_join(thread[r], NULL);
		failed += run[r].failed;
	}
	return failed;
}

int run_ranks(bool processes, uint32_t ranks, const struct t3_options *options,
	      rank_fn fn, void *arg)
{
	struct t3_group *group = new_group(ranks, options);
	int failed = processes ? run_processes(group, ranks, fn, arg) :
				 run_threads(group, ranks, fn, arg);

	t3_group_close(group);
	return failed;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void sleep_ms(uint32_t ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

void tap_ok(bool ok, const char *format, ...)
{
	va_list args;

	tap_failed += !ok;
	printf("%sok %d - ", ok ? "" : "not ", ++tap_points);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void tap_skip(const char *why)
{
	printf("ok %d # SKIP %s\n", ++tap_points, why);
}

int tap_end(void)
{
	printf("1..%d\n", tap_points);
	return tap_failed ? 1 : 0;
}
