// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ioctl fuzzer, for a virtual machine: a kernel that has KCOV tells what a
 * case ran through; any other one, by the errnos alone, does what it can.
 *
 * It fails where a worker does not end when it is killed, where the module is
 * still held or memory still pinned when all are gone; all else (KASAN,
 * lockdep, a panic) is for the kernel's log, which tests/vm/run-vm reads. What
 * was going on then: a worker's name is "fz OP", and --trace FILE (a serial
 * port) gets each case before it runs; --replay runs one.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ioctl.h"

#define MAX_CORPUS	4096
#define STEP_MS		50	/* a step that takes longer is left behind */
#define END_MS		20000	/* a killed worker is gone by then, emulated */
#define CHECK_EVERY	64	/* cases between two looks at what is held */

/**
 * struct fuzz - the run
 * @shared: with the workers
 * @pid: the workers of this case
 * @corpus: [@n] cases with a feature of their own
 * @n: how many
 * @known: [FEATURES] 1: some case had it
 * @features: how many are known
 * @cases: run so far
 * @steps: likewise
 * @kcov: the kernel has it
 * @dice: for all that is drawn
 * @trace: each case goes there first, or NULL
 */
static struct fuzz {
	struct fuzz_shared *shared;
	pid_t pid[WORKERS];
	struct fuzz_case corpus[MAX_CORPUS];
	__u32 n;
	__u8 known[FEATURES];
	__u32 features;
	__u64 cases;
	__u64 steps;
	bool kcov;
	struct fuzz_dice dice;
	FILE *trace;
} fuzz;

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

/* --- workers --------------------------------------------------------------- */

static void futex_wait(__u32 *word, __u32 value, __u32 ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

static void futex_wake(__u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void worker_step(struct fuzz_mail *mail, const struct fuzz_step *step)
{
	__u8 *seen = fuzz.shared->seen;
	__u32 op = step->op % OP_COUNT_OF_OPS, result;
	char name[16];

	mail->op = op;
	snprintf(name, sizeof(name), "fz %u", op);
	prctl(PR_SET_NAME, name);
	kcov_reset();
	result = fuzz_do(step, fuzz.pid);
	kcov_collect(seen, op);
	/* An errno that the call has not given yet is news, too. */
	seen[(op * 251 + result * 31 + 7) % FEATURES] = 1;
	mail->result = result;
}

static __attribute__((noreturn)) void worker(__u32 w)
{
	struct fuzz_mail *mail = &fuzz.shared->mail[w];
	struct fuzz_step step;
	__u32 done = 0;

	/* A group of its own: whom it forks dies with it. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fuzz_begin();
	kcov_begin();
	for (;;) {
		while (__atomic_load_n(&mail->posted, __ATOMIC_ACQUIRE) == done)
			futex_wait(&mail->posted, done, 1000);
		step = mail->step;
		worker_step(mail, &step);
		__atomic_store_n(&mail->done, ++done, __ATOMIC_RELEASE);
		futex_wake(&mail->done);
	}
}

/* --- a case ------------------------------------------------------------------ */

static void start_workers(void)
{
	__u32 w;

	memset(fuzz.shared, 0, sizeof(*fuzz.shared));
	fflush(NULL);
	for (w = 0; w < WORKERS; w++) {
		fuzz.pid[w] = fork();
		if (!fuzz.pid[w])
			worker(w);
		if (fuzz.pid[w] < 0) {
			perror("# fork");
			exit(1);
		}
		/* Both do it: it is done before either goes on. */
		setpgid(fuzz.pid[w], fuzz.pid[w]);
	}
}

static bool idle(const struct fuzz_mail *mail)
{
	return __atomic_load_n(&mail->done, __ATOMIC_ACQUIRE) == mail->posted;
}

/* Return: false where it is still at work. */
static bool wait_idle(struct fuzz_mail *mail, __u32 ms)
{
	__u64 end = now_ms() + ms;

	while (!idle(mail)) {
		__u64 now = now_ms();

		if (now >= end)
			return false;
		futex_wait(&mail->done, mail->posted - 1, end - now);
	}
	return true;
}

static void hand_over(const struct fuzz_step *step)
{
	struct fuzz_mail *mail =
		&fuzz.shared->mail[(step->worker & ~FUZZ_ASYNC) % WORKERS];

	/* One that is stuck or gone gets no more; the others go on. */
	if (!wait_idle(mail, STEP_MS))
		return;
	mail->step = *step;
	__atomic_store_n(&mail->posted, mail->posted + 1, __ATOMIC_RELEASE);
	futex_wake(&mail->posted);
	fuzz.steps++;
	if (!(step->worker & FUZZ_ASYNC))
		wait_idle(mail, STEP_MS);
}

static void show_stuck(__u32 w)
{
	char command[96];

	printf("# worker %u does not die; it was at operation %u\n", w,
	       fuzz.shared->mail[w].op);
	snprintf(command, sizeof(command), "sed 's/^/# /' /proc/%d/stack",
		 fuzz.pid[w]);
	fflush(NULL);
	if (system(command))
		printf("# no stack\n");
}

/* Return: false where one is not gone in time. */
static bool end_workers(void)
{
	__u64 end = now_ms() + END_MS;
	bool all = true;
	__u32 w;

	for (w = 0; w < WORKERS; w++)
		kill(-fuzz.pid[w], SIGKILL);
	for (w = 0; w < WORKERS; w++) {
		while (waitpid(fuzz.pid[w], NULL, WNOHANG) == 0) {
			if (now_ms() > end) {
				show_stuck(w);
				all = false;
				break;
			}
			usleep(500);
		}
	}
	return all;
}

static void print_case(FILE *f, const struct fuzz_case *c)
{
	const __u8 *bytes = (const __u8 *)c->step;
	size_t i;

	for (i = 0; i < c->steps * sizeof(c->step[0]); i++)
		fprintf(f, "%02x", bytes[i]);
	fputc('\n', f);
	fflush(f);
}

static bool run_case(const struct fuzz_case *c)
{
	__u32 i;

	if (fuzz.trace)
		print_case(fuzz.trace, c);
	start_workers();
	for (i = 0; i < c->steps; i++)
		hand_over(&c->step[i]);
	fuzz.cases++;
	return end_workers();
}

/* How many features of the last case no other had. */
static __u32 count_news(void)
{
	__u32 i, news = 0;

	for (i = 0; i < FEATURES; i++) {
		if (!fuzz.shared->seen[i] || fuzz.known[i])
			continue;
		fuzz.known[i] = 1;
		news++;
	}
	fuzz.features += news;
	return news;
}

static void keep(const struct fuzz_case *c)
{
	__u32 at = fuzz.n < MAX_CORPUS ? fuzz.n++ :
					 dice(&fuzz.dice, MAX_CORPUS);

	fuzz.corpus[at] = *c;
}

/* --- what must hold between cases ------------------------------------------------ */

static long long number_of(const char *path)
{
	long long value = -1;
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%lld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

static bool becomes_zero(const char *path)
{
	__u64 end = now_ms() + END_MS;
	long long value;

	for (;;) {
		value = number_of(path);
		if (value <= 0)
			return true;
		if (now_ms() > end)
			break;
		usleep(10000);
	}
	printf("# %s stays %lld with nobody left\n", path, value);
	fflush(NULL);
	if (system("ls -l /proc/[0-9]*/fd 2>/dev/null | grep t3; ps;"
		   "sed 's/^/# /' /sys/kernel/debug/t3/state"))
		printf("# nothing to show\n");
	return false;
}

/* Children of workers that were killed die, too; that takes a moment. */
static bool all_is_given_back(void)
{
	return becomes_zero("/sys/module/t3/refcnt") &&
	       becomes_zero("/sys/class/misc/t3/counters/pinned_bytes");
}

/* --- the run ----------------------------------------------------------------------- */

static void say(const char *what, __u64 since)
{
	printf("# %s: %llu cases, %llu steps, %u features, corpus %u, %llu s\n",
	       what, fuzz.cases, fuzz.steps, fuzz.features, fuzz.n,
	       (now_ms() - since) / 1000);
	fflush(stdout);
}

static bool one_case(const struct fuzz_case *c)
{
	bool good = run_case(c);

	if (count_news())
		keep(c);
	if (good && !(fuzz.cases % CHECK_EVERY))
		good = all_is_given_back();
	if (!good) {
		printf("# the case: ");
		print_case(stdout, c);
	}
	return good;
}

static bool run_seeds(void)
{
	struct fuzz_case c;
	__u32 i;

	for (i = 0; i < FUZZ_SEEDS; i++) {
		fuzz_seed(&c, i);
		if (!one_case(&c))
			return false;
		keep(&c);
	}
	return true;
}

static bool run_for(__u64 seconds)
{
	__u64 begin = now_ms(), said = begin;
	struct fuzz_case c;

	if (!run_seeds())
		return false;
	while (!seconds || now_ms() < begin + seconds * 1000) {
		c = fuzz.corpus[dice(&fuzz.dice, fuzz.n)];
		fuzz_mutate(&c, &fuzz.corpus[dice(&fuzz.dice, fuzz.n)],
			    &fuzz.dice);
		if (!one_case(&c))
			return false;
		if (now_ms() > said + 15000) {
			said = now_ms();
			say("so far", begin);
		}
	}
	say("in all", begin);
	return all_is_given_back();
}

static bool parse_case(struct fuzz_case *c, const char *hex)
{
	__u8 *bytes = (__u8 *)c->step;
	size_t n = strlen(hex) / 2, i;
	unsigned int byte;

	n -= n % sizeof(c->step[0]);
	if (!n || n > sizeof(c->step))
		return false;
	for (i = 0; i < n; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return false;
		bytes[i] = byte;
	}
	c->steps = n / sizeof(c->step[0]);
	return true;
}

/**
 * struct asked - the arguments
 * @seconds: how long; 0: until it is ended
 * @seed: of the dice
 * @replay: a case, as trace has it, or NULL
 * @trace: a file, or NULL
 */
struct asked {
	__u64 seconds;
	__u64 seed;
	const char *replay;
	const char *trace;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asked *asked = state->input;

	switch (key) {
	case 's':
		asked->seconds = strtoull(arg, NULL, 0);
		return 0;
	case 'S':
		asked->seed = strtoull(arg, NULL, 0);
		return 0;
	case 'r':
		asked->replay = arg;
		return 0;
	case 't':
		asked->trace = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option opts[] = {
	{ "seconds", 's', "N", 0, "how long (60); 0: for ever", 0 },
	{ "seed", 'S', "N", 0, "of the dice (1)", 0 },
	{ "replay", 'r', "HEX", 0, "run this case, a hundred times", 0 },
	{ "trace", 't', "FILE", 0, "each case goes there before it runs", 0 },
	{ 0 }
};

static bool replay(const char *hex)
{
	struct fuzz_case c;
	int i;

	if (!parse_case(&c, hex)) {
		fprintf(stderr, "no case: %s\n", hex);
		exit(2);
	}
	for (i = 0; i < 100; i++)
		if (!one_case(&c))
			return false;
	return all_is_given_back();
}

int main(int argc, char **argv)
{
	static const struct argp argp = { opts, parse, NULL,
		"Fuzzes /dev/t3. For a machine that may crash.", 0, 0, 0 };
	struct asked asked = { .seconds = 60, .seed = 1 };
	bool good;

	argp_parse(&argp, argc, argv, 0, NULL, &asked);
	if (access("/dev/t3", R_OK | W_OK)) {
		printf("1..0 # SKIP no /dev/t3\n");
		return 4;
	}
	if (asked.trace) {
		fuzz.trace = fopen(asked.trace, "we");
		if (!fuzz.trace) {
			perror(asked.trace);
			return 2;
		}
	}
	fuzz.shared = mmap(NULL, sizeof(*fuzz.shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fuzz.dice.state = asked.seed * 0x9e3779b97f4a7c15ULL | 1;
	fuzz.kcov = !access("/sys/kernel/debug/kcov", R_OK | W_OK);
	printf("TAP version 13\n1..1\n# seed %llu, %s\n", asked.seed,
	       fuzz.kcov ? "with KCOV" : "this kernel has no KCOV: errnos alone");
	good = asked.replay ? replay(asked.replay) : run_for(asked.seconds);
	printf("%sok 1 - %llu cases, %llu steps, %u features\n",
	       good ? "" : "not ", fuzz.cases, fuzz.steps, fuzz.features);
	return !good;
}
