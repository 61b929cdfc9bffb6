// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Meetings at a path: ranks that are late, missing, wrong, twice there or
 * dead; what else may be at the path; strangers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mock_engine.h"
#include "rendezvous.h"

/* After the others: it needs their types. */
#include <cmocka.h>

/* Long: for what must not fail. Short: for what must. */
#define LONG_MS		20000
#define SHORT_MS	400

static char dir[64];
static char path[100];

/**
 * struct visitor - one rank, in a thread of its own
 */
struct visitor {
	pthread_t thread;
	uint32_t rank;
	uint32_t ranks;
	struct t3_options o;
	unsigned int delay_ms;
	int ret;
	ino_t ino;
	char error[512];
};

static int setup(void **state)
{
	(void)state;
	memset(&mock, 0, sizeof(mock));
	setenv("T3_ENGINE", "soft", 1);
	snprintf(dir, sizeof(dir), "/tmp/t3-meeting-XXXXXX");
	assert_non_null(mkdtemp(dir));
	chmod(dir, 0777);
	snprintf(path, sizeof(path), "%s/meet", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	rmdir(path);
	return rmdir(dir);
}

static void *visit(void *arg)
{
	struct visitor *v = arg;
	struct t3_group *group;
	struct stat st;

	usleep(v->delay_ms * 1000);
	v->o.size = sizeof(v->o);
	v->ret = t3_group_at_path(path, v->rank, v->ranks, &v->o, &group);
	snprintf(v->error, sizeof(v->error), "%s", t3_error());
	if (!v->ret) {
		if (!fstat(t3_group_fd(group), &st))
			v->ino = st.st_ino;
		t3_group_close(group);
	}
	return NULL;
}

static void start(struct visitor *v, uint32_t rank, uint32_t ranks,
		  uint32_t setup_ms)
{
	v->rank = rank;
	v->ranks = ranks;
	v->o.setup_ms = setup_ms;
	assert_int_equal(pthread_create(&v->thread, NULL, visit, v), 0);
}

static void finish(struct visitor *v)
{
	assert_int_equal(pthread_join(v->thread, NULL), 0);
}

static void finish_well(struct visitor *v, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		finish(&v[i]);
	for (i = 0; i < n; i++) {
		if (v[i].ret)
			fail_msg("rank %u: %s", v[i].rank, v[i].error);
		assert_int_equal(v[i].ino, v[0].ino);
	}
	assert_int_equal(access(path, F_OK), -1);
}

static void ended(const struct visitor *v, int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (v->ret != -error || strcmp(v->error, text))
		fail_msg("rank %u: %d \"%s\", not %d \"%s\"", v->rank, v->ret,
			 v->error, -error, text);
}

/* ---- by hand ---- */

static struct sockaddr_un address(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

/* A connection, once somebody listens; -1: nobody does. */
static int raw_connect(void)
{
	uint64_t deadline = t3_deadline(LONG_MS);
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	while (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		if (!t3_time_left(deadline))
			fail_msg("nobody listens");
		t3_sleep(1000000, deadline);
	}
	return fd;
}

static int raw_listen(void)
{
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static int raw_hello(uint32_t version, uint32_t rank, uint32_t ranks)
{
	struct t3_hello hello = {
		.magic = T3_MEETING_MAGIC,
		.version = version,
		.rank = rank,
		.ranks = ranks,
	};
	int fd = raw_connect();

	assert_int_equal(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL),
			 sizeof(hello));
	return fd;
}

/* Listen until all of @here are there. */
static void raw_await(int fd, uint64_t here)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	struct t3_reply reply = { 0 };

	while ((reply.here & here) != here) {
		assert_int_equal(poll(&one, 1, LONG_MS), 1);
		assert_int_equal(recv(fd, &reply, sizeof(reply), 0),
				 sizeof(reply));
		assert_int_equal(reply.kind, T3_REPLY_WAIT);
	}
}

/* ---- good meetings ---- */

static void test_any_order(void **state)
{
	struct visitor v[5] = { 0 };
	uint32_t late, i;

	(void)state;
	for (late = 0; late < 5; late++) {
		memset(v, 0, sizeof(v));
		v[late].delay_ms = 60;
		for (i = 0; i < 5; i++)
			start(&v[i], i, 5, LONG_MS);
		finish_well(v, 5);
	}
}

static void test_64_ranks(void **state)
{
	struct visitor v[64] = { 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 64; i++)
		start(&v[i], 63 - i, 64, LONG_MS);
	finish_well(v, 64);
}

/* The same path again and again, with nobody waiting for the others. */
static void *visit_often(void *arg)
{
	struct visitor *v = arg;
	int i;

	for (i = 0; i < 100 && !v->ret; i++)
		visit(v);
	return NULL;
}

static void test_again_and_again(void **state)
{
	struct visitor v[3] = { 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		v[i].rank = i;
		v[i].ranks = 3;
		v[i].o.setup_ms = LONG_MS;
		pthread_create(&v[i].thread, NULL, visit_often, &v[i]);
	}
	finish_well(v, 3);
}

static void test_one_rank(void **state)
{
	struct t3_group *group;

	(void)state;
	assert_int_equal(t3_group_at_path("/nowhere/at/all", 0, 1, NULL, &group),
			 0);
	t3_group_close(group);
}

static void test_open(void **state)
{
	struct t3_member *member;

	(void)state;
	assert_int_equal(t3_open(path, 0, 1, NULL, &member), 0);
	assert_int_equal(t3_leave(member), 0);
}

/* ---- late and missing ---- */

static void test_missing(void **state)
{
	struct visitor v[3] = { 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		start(&v[i], i, 5, i ? LONG_MS : SHORT_MS);
	for (i = 0; i < 3; i++) {
		finish(&v[i]);
		ended(&v[i], ETIME,
		      "t3_group_at_path: not all ranks came to %s in time, missing: 3, 4",
		      path);
	}
	assert_int_equal(access(path, F_OK), -1);
}

/* A visitor's own time is over first: it still knows who was there. */
static void test_impatient(void **state)
{
	struct visitor v[2] = { 0 };

	(void)state;
	start(&v[0], 0, 3, 3 * SHORT_MS);
	start(&v[1], 1, 3, SHORT_MS);
	finish(&v[1]);
	ended(&v[1], ETIME,
	      "t3_group_at_path: not all ranks came to %s in time, missing: 2",
	      path);
	finish(&v[0]);
	ended(&v[0], ETIME,
	      "t3_group_at_path: not all ranks came to %s in time, missing: 1, 2",
	      path);
}

static void test_no_host(void **state)
{
	struct visitor v = { 0 };

	(void)state;
	start(&v, 1, 3, SHORT_MS);
	finish(&v);
	ended(&v, ETIME, "t3_group_at_path: rank 0 did not come to %s in time",
	      path);
}

/* ---- disagreements ---- */

/* All hear of it, not only the two that disagree. */
static void test_wrong_ranks(void **state)
{
	struct visitor v[3] = { 0 };
	struct t3_reply reply = { 0 };
	int fd;

	(void)state;
	start(&v[0], 0, 4, LONG_MS);
	fd = raw_hello(T3_MEETING_VERSION, 1, 4);
	raw_await(fd, 3);
	start(&v[2], 2, 5, LONG_MS);
	finish(&v[0]);
	finish(&v[2]);
	ended(&v[0], EPROTO,
	      "t3_group_at_path: ranks is 5 at rank 2, and 4 at rank 0");
	ended(&v[2], EPROTO,
	      "t3_group_at_path: ranks is 5 at rank 2, and 4 at rank 0");
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(reply.kind, T3_REPLY_NO);
	assert_int_equal(reply.culprit, 2);
	close(fd);
}

static void test_wrong_engine(void **state)
{
	struct visitor v[2] = { 0 };
	uint32_t i;

	(void)state;
	v[1].o.engine = T3_ENGINE_KERNEL;
	start(&v[0], 0, 2, LONG_MS);
	start(&v[1], 1, 2, LONG_MS);
	for (i = 0; i < 2; i++) {
		finish(&v[i]);
		ended(&v[i], EPROTO,
		      "t3_group_at_path: the engine is kernel at rank 1, and soft at rank 0");
	}
}

static void test_wrong_version(void **state)
{
	struct visitor v = { 0 };
	int fd;

	(void)state;
	start(&v, 0, 2, LONG_MS);
	fd = raw_hello(T3_MEETING_VERSION + 1, 1, 2);
	finish(&v);
	ended(&v, EPROTO,
	      "t3_group_at_path: a rank's libt3 meets by version 2, rank 0's by 1");
	close(fd);
}

static void test_twice(void **state)
{
	struct visitor v[4] = { 0 };
	int fd;

	(void)state;
	start(&v[0], 0, 3, LONG_MS);
	fd = raw_hello(T3_MEETING_VERSION, 1, 3);
	raw_await(fd, 3);
	start(&v[3], 1, 3, LONG_MS);
	finish(&v[3]);
	ended(&v[3], EPROTO,
	      "t3_group_at_path: rank is 1, which has come already");
	/* The first one goes, which makes room for another; all is well. */
	close(fd);
	start(&v[2], 2, 3, LONG_MS);
	fd = raw_connect();
	close(fd);
	usleep(20000);
	start(&v[1], 1, 3, LONG_MS);
	finish_well(v, 3);
}

static void test_bad_rank(void **state)
{
	struct visitor v[2] = { 0 };
	struct t3_reply reply = { 0 };
	int fd;

	(void)state;
	start(&v[0], 0, 2, LONG_MS);
	fd = raw_hello(T3_MEETING_VERSION, 7, 2);
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(reply.kind, T3_REPLY_NO);
	assert_int_equal(reply.about, T3_ABOUT_RANK);
	close(fd);
	start(&v[1], 1, 2, LONG_MS);
	finish_well(v, 2);
}

/* ---- what is at the path ---- */

static void test_left_over(void **state)
{
	struct visitor v[2] = { 0 };
	struct stat st;
	int fd = raw_listen();

	(void)state;
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	start(&v[1], 1, 2, LONG_MS);
	usleep(20000);
	start(&v[0], 0, 2, LONG_MS);
	finish_well(v, 2);
	/* And a name that only its owner may use. */
	start(&v[0], 0, 2, LONG_MS);
	fd = raw_connect();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	start(&v[1], 1, 2, LONG_MS);
	finish_well(v, 2);
}

static void both_refused(const char *what)
{
	struct visitor v[2] = { 0 };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		start(&v[i], i, 2, LONG_MS);
		finish(&v[i]);
		if (v[i].ret != -EEXIST || !strstr(v[i].error, "something else"))
			fail_msg("%s: rank %u: %d \"%s\"", what, i, v[i].ret,
				 v[i].error);
	}
}

static void test_something_else(void **state)
{
	struct stat before, after;
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	(void)state;
	assert_int_equal(write(fd, "precious", 8), 8);
	assert_int_equal(fstat(fd, &before), 0);
	both_refused("file");
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, 8);
	close(fd);
	unlink(path);
	assert_int_equal(mkdir(path, 0777), 0);
	both_refused("directory");
	rmdir(path);
	assert_int_equal(symlink("nothing", path), 0);
	both_refused("symbolic link");
	unlink(path);
}

static void test_somebody_else(void **state)
{
	struct visitor v = { 0 };
	int fd = raw_listen();

	(void)state;
	start(&v, 0, 2, LONG_MS);
	finish(&v);
	ended(&v, EEXIST,
	      "t3_group_at_path: path is %s, where somebody else listens", path);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

static void test_two_hosts(void **state)
{
	struct visitor v[3] = { 0 };
	int fd;

	(void)state;
	start(&v[0], 0, 2, LONG_MS);
	fd = raw_connect();
	start(&v[2], 0, 2, LONG_MS);
	finish(&v[2]);
	ended(&v[2], EEXIST,
	      "t3_group_at_path: path is %s, where somebody else listens", path);
	start(&v[1], 1, 2, LONG_MS);
	finish_well(v, 2);
	close(fd);
}

static void test_no_directory(void **state)
{
	struct t3_group *group;

	(void)state;
	assert_int_equal(t3_group_at_path("/nowhere/at/all", 0, 2, NULL, &group),
			 -ENOENT);
	assert_string_equal(t3_error(),
			    "t3_group_at_path: path is /nowhere/at/all: No such file or directory");
}

/* A host that speaks something else. */
static void test_strange_host(void **state)
{
	struct visitor v = { 0 };
	int listener = raw_listen();
	char hello[sizeof(struct t3_hello)];
	int fd;

	(void)state;
	start(&v, 1, 2, LONG_MS);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(recv(fd, hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(send(fd, "welcome", 7, 0), 7);
	finish(&v);
	ended(&v, EPROTO,
	      "t3_group_at_path: who listens at %s does not speak version 1 of t3's meeting",
	      path);
	close(fd);
	close(listener);
}

/* ---- strangers and the dead ---- */

static void test_strangers(void **state)
{
	struct visitor v[3] = { 0 };
	int fd[20];
	size_t i;

	(void)state;
	start(&v[0], 0, 3, LONG_MS);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = raw_connect();
		if (i % 2)
			assert_int_equal(send(fd[i], "x", 1, MSG_NOSIGNAL), 1);
	}
	start(&v[1], 1, 3, LONG_MS);
	start(&v[2], 2, 3, LONG_MS);
	finish_well(v, 3);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

static pid_t fork_host(uint32_t ranks)
{
	struct t3_options o = { .size = sizeof(o), .setup_ms = LONG_MS };
	struct t3_group *group;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		t3_group_at_path(path, 0, ranks, &o, &group);
		_exit(0);
	}
	return child;
}

static void test_host_dies(void **state)
{
	struct visitor v = { 0 };
	pid_t child = fork_host(5);
	int fd, last;

	(void)state;
	start(&v, 1, 5, LONG_MS);
	fd = raw_hello(T3_MEETING_VERSION, 2, 5);
	raw_await(fd, 1 << 0 | 1 << 1 | 1 << 2);
	/* Whoever comes after that comes when rank 1 has been told. */
	last = raw_hello(T3_MEETING_VERSION, 3, 5);
	raw_await(last, 1 << 3);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	finish(&v);
	ended(&v, EOWNERDEAD,
	      "t3_group_at_path: rank 0 died while the ranks met at %s", path);
	close(fd);
	close(last);
}

/* A meeting that died leaves a socket; the next one takes the path over. */
static void test_meet_after_death(void **state)
{
	struct visitor v[2] = { 0 };
	pid_t child = fork_host(2);
	int fd = raw_connect();

	(void)state;
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	start(&v[1], 1, 2, LONG_MS);
	start(&v[0], 0, 2, LONG_MS);
	finish_well(v, 2);
}

/* What a child of another user gets. */
static int as_nobody(uint32_t rank, uint32_t setup_ms)
{
	struct t3_options o = { .size = sizeof(o), .setup_ms = setup_ms };
	struct t3_group *group;
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(255);
		_exit(-t3_group_at_path(path, rank, 2, &o, &group));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_other_user(void **state)
{
	struct visitor v[2] = { 0 };
	int listener, fd;

	(void)state;
	if (geteuid())
		skip();
	start(&v[0], 0, 2, LONG_MS);
	fd = raw_connect();
	assert_int_equal(as_nobody(1, LONG_MS), EACCES);
	/* Even with the name opened to all, rank 0 does not serve strangers. */
	chmod(path, 0666);
	assert_int_equal(as_nobody(1, SHORT_MS), ETIME);
	start(&v[1], 1, 2, LONG_MS);
	finish_well(v, 2);
	close(fd);
	/* Nor does a rank take a group from another user. */
	if (seteuid(65534))
		skip();
	listener = raw_listen();
	assert_int_equal(seteuid(0), 0);
	start(&v[1], 1, 2, LONG_MS);
	finish(&v[1]);
	ended(&v[1], EACCES,
	      "t3_group_at_path: path is %s, a socket of user 65534, allowed are 0 and root's",
	      path);
	close(listener);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_any_order),
		TEST(test_64_ranks),
		TEST(test_again_and_again),
		TEST(test_one_rank),
		TEST(test_open),
		TEST(test_missing),
		TEST(test_impatient),
		TEST(test_no_host),
		TEST(test_wrong_ranks),
		TEST(test_wrong_engine),
		TEST(test_wrong_version),
		TEST(test_twice),
		TEST(test_bad_rank),
		TEST(test_left_over),
		TEST(test_something_else),
		TEST(test_somebody_else),
		TEST(test_two_hosts),
		TEST(test_no_directory),
		TEST(test_strange_host),
		TEST(test_strangers),
		TEST(test_host_dies),
		TEST(test_meet_after_death),
		TEST(test_other_user),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("rendezvous", tests, NULL, NULL);
}
