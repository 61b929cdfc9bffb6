// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libt3's way through io_uring, on the kernel engine: taken when asked for,
 * left with a reason where it is forbidden, with the same results.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <t3.h>
#include <unistd.h>

/* After the others: it needs their types. */
#include <cmocka.h>

#define RANKS	2
#define ROWS	16
#define COLS	8
#define LONG_MS	20000

/* In a child, or one of its threads: says what was wrong and ends it. */
#define MUST(cond) must(!!(cond), #cond, __LINE__)

static void must(bool so, const char *what, int line)
{
	if (so)
		return;
	fprintf(stderr, "# test_uring.c:%d: not so: %s (\"%s\")\n", line, what,
		t3_error());
	_exit(1);
}

/* --- what is forbidden ----------------------------------------------------- */

/**
 * forbid - a system call fails from now on
 * @number: which
 * @argument: only where its second argument is one of these two; 0: always
 * @error: with this errno
 */
static void forbid(unsigned int number, const unsigned int argument[2],
		   int error)
{
	unsigned int to = argument ? 0 : 2;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 argument ? argument[0] : 0, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 argument ? argument[1] : 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 7, .filter = code };

	/* without arguments: the first jump skips the look at them */
	if (to) {
		code[1] = (struct sock_filter)
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 3, 4);
	}
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		      SECCOMP_FILTER_FLAG_TSYNC, &program));
}

/* --- ranks as threads -------------------------------------------------------- */

struct rank {
	struct t3_member *member;
	struct t3_region *region;
	struct t3_plan *plan;
	float *data;
	pthread_t thread;
};

static struct rank rank[RANKS];
static pthread_barrier_t gate;

static void join_ranks(uint32_t flags)
{
	struct t3_options options = {
		.size = sizeof(options), .engine = T3_ENGINE_KERNEL,
		.setup_ms = LONG_MS, .watchdog_ms = LONG_MS, .flags = flags,
	};
	struct t3_group *group;
	uint32_t r;

	MUST(!t3_group_create(RANKS, &options, &group));
	for (r = 0; r < RANKS; r++)
		MUST(!t3_join(group, r, &rank[r].member));
	t3_group_close(group);
}

static bool is_used(char *why, size_t bytes)
{
	int ret = t3_uring_why(rank[0].member, why, bytes);

	MUST(ret == 0 || ret == 1);
	return ret;
}

static void epoch(struct rank *k, uint32_t r, uint32_t e)
{
	struct t3_rectangle rect;
	uint32_t i, n;

	MUST(!t3_arm(k->plan));
	for (i = 0; i < ROWS * COLS; i++)
		k->data[i] = (float)((i + e) % 100 * (r + 1));
	for (n = 0; !t3_plan_step(k->plan, n, &rect); n++)
		MUST(!t3_produced(k->plan, n));
	MUST(t3_produced(k->plan, 0) == -EPROTO);
	MUST(!t3_wait_block(k->plan, 0, LONG_MS));
	MUST(!t3_wait(k->plan, LONG_MS));
	for (i = 0; i < ROWS * COLS; i++)
		MUST(k->data[i] == (float)((i + e) % 100 * 3));
}

/* Errors are the same, and so are their sentences, whatever way they come. */
static void errors(struct rank *k)
{
	struct t3_matrix m = {
		.base = (void *)64, .rows = 1, .cols = 1, .ld = 1,
		.dtype = T3_DTYPE_F32,
	};
	struct t3_region *region;

	MUST(t3_region_add(k->member, &m, &region) == -EFAULT);
	MUST(strstr(t3_error(), "not mapped"));
	MUST(t3_tile_done(k->plan, 0, 1) == -EPROTO);
	MUST(!t3_arm(k->plan));
	MUST(t3_arm(k->plan) == -EBUSY);
	MUST(strstr(t3_error(), "has not retired"));
	MUST(t3_wait(k->plan, 5) == -ETIME);
	MUST(t3_wait(k->plan, 0) == -ETIME);
	MUST(strstr(t3_error(), "has not retired within 0 ms"));
}

static void plan(struct rank *k)
{
	struct t3_matrix m = {
		.rows = ROWS, .cols = COLS, .ld = COLS, .dtype = T3_DTYPE_F32,
	};
	struct t3_collective c = {
		.size = sizeof(c), .op = T3_ALL_REDUCE,
		.algorithm = T3_ALG_DIRECT,
	};

	MUST(!t3_alloc(k->member, ROWS * COLS * sizeof(float),
		       (void **)&k->data));
	m.base = k->data;
	MUST(!t3_region_add(k->member, &m, &k->region));
	c.region = k->region;
	MUST(!t3_plan_add(k->member, &c, &k->plan));
}

/* What is forbidden once the plan stands and some epochs have run. */
static void (*then_forbid)(void);

static void *run_rank(void *arg)
{
	uint32_t r = (uint32_t)(uintptr_t)arg, e;
	struct rank *k = &rank[r];

	plan(k);
	for (e = 1; e <= 8; e++) {
		epoch(k, r, e);
		if (e != 4 || !then_forbid)
			continue;
		pthread_barrier_wait(&gate);
		if (!r)
			then_forbid();
		pthread_barrier_wait(&gate);
	}
	errors(k);
	pthread_barrier_wait(&gate);
	if (!r)
		MUST(!t3_abort(k->member));
	pthread_barrier_wait(&gate);
	MUST(t3_wait(k->plan, LONG_MS) == -ECANCELED);
	MUST(!t3_leave(k->member));
	return NULL;
}

static void run_ranks(void)
{
	uint32_t r;

	pthread_barrier_init(&gate, NULL, RANKS);
	for (r = 0; r < RANKS; r++)
		MUST(!pthread_create(&rank[r].thread, NULL, run_rank,
				     (void *)(uintptr_t)r));
	for (r = 0; r < RANKS; r++)
		pthread_join(rank[r].thread, NULL);
}

/* Each test in a process of its own, which what is forbidden there ends with. */
static void in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(100);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- tests --------------------------------------------------------------------- */

static void not_asked(void)
{
	char why[256];

	unsetenv("T3_URING");
	join_ranks(0);
	MUST(!is_used(why, sizeof(why)));
	MUST(strstr(why, "asked"));
	run_ranks();
}

static void forbidden_by_environment(void)
{
	char why[256];

	setenv("T3_URING", "0", 1);
	join_ranks(T3_OPTION_URING);
	MUST(!is_used(why, sizeof(why)));
	run_ranks();
}

static bool waits_pend(void)
{
	struct t3_query query = { .size = sizeof(query) };
	int fd = open("/dev/t3", O_RDWR | O_CLOEXEC);

	MUST(fd >= 0 && !ioctl(fd, T3_QUERY, &query));
	close(fd);
	MUST(query.features & T3_FEATURE_URING);
	return query.features & T3_FEATURE_URING_WAIT;
}

static void asked(void)
{
	char why[256], few[8];

	unsetenv("T3_URING");
	join_ranks(T3_OPTION_URING);
	MUST(is_used(why, sizeof(why)));
	MUST(strstr(why, waits_pend() ? "pend" : "poll"));
	MUST(is_used(few, sizeof(few)));
	MUST(!strcmp(few, "io_urin"));
	run_ranks();
}

/* ioctl() would fail: so what runs does not use it. */
static void no_ioctl(void)
{
	static const unsigned int calls[2] = { T3_ARM, T3_NOTIFY };
	static const unsigned int wait[2] = { T3_WAIT, T3_REGION_ADD };

	forbid(SYS_ioctl, calls, EPERM);
	if (waits_pend())
		forbid(SYS_ioctl, wait, EPERM);
}

static void really_used(void)
{
	char why[256];

	setenv("T3_URING", "1", 1);
	join_ranks(0);
	MUST(is_used(why, sizeof(why)));
	then_forbid = no_ioctl;
	run_ranks();
}

static void no_setup(int error, const char *word)
{
	char why[256];

	setenv("T3_URING", "1", 1);
	forbid(SYS_io_uring_setup, NULL, error);
	join_ranks(0);
	MUST(!is_used(why, sizeof(why)));
	MUST(strstr(why, word));
	run_ranks();
}

static void setup_eperm(void)
{
	no_setup(EPERM, "EPERM");
}

static void setup_enosys(void)
{
	no_setup(ENOSYS, "ENOSYS");
}

static void no_enter(void)
{
	forbid(SYS_io_uring_enter, NULL, EPERM);
}

static void forbidden_later(void)
{
	char why[256];

	setenv("T3_URING", "1", 1);
	join_ranks(0);
	MUST(is_used(why, sizeof(why)));
	then_forbid = no_enter;
	run_ranks();
}

#define SYSCTL	"/proc/sys/kernel/io_uring_disabled"

static bool set_disabled(const char *value)
{
	int fd = open(SYSCTL, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, value, 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static void forbidden_by_sysctl(void)
{
	char why[256];

	setenv("T3_URING", "1", 1);
	join_ranks(0);
	MUST(!is_used(why, sizeof(why)));
	MUST(strstr(why, "io_uring_disabled"));
	run_ranks();
}

#define IN_CHILD(name)						\
static void test_##name(void **state)				\
{								\
	(void)state;						\
	in_child(name);						\
}

IN_CHILD(not_asked)
IN_CHILD(forbidden_by_environment)
IN_CHILD(asked)
IN_CHILD(really_used)
IN_CHILD(setup_eperm)
IN_CHILD(setup_enosys)
IN_CHILD(forbidden_later)

static void test_sysctl(void **state)
{
	(void)state;
	if (!set_disabled("2"))
		skip();
	in_child(forbidden_by_sysctl);
	assert_true(set_disabled("0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_forbidden_by_environment),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_really_used),
		cmocka_unit_test(test_setup_eperm),
		cmocka_unit_test(test_setup_enosys),
		cmocka_unit_test(test_forbidden_later),
		cmocka_unit_test(test_sysctl),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("uring", tests, NULL, NULL);
}
