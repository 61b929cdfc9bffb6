// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The front: what it refuses, with which sentence, and that nothing changes;
 * and what it asks of an engine.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock_engine.h"

/* After the others: it needs their types. */
#include <cmocka.h>

#define ROWS	64
#define COLS	32

/**
 * struct world - a member of a group of four, with regions, and one plan
 */
struct world {
	struct t3_group *group;
	struct t3_member *member;
	float *memory;
	float *second;
	struct t3_region *region;
	struct t3_region *other;
	struct t3_plan *plan;
};

static struct t3_matrix matrix_of(void *base)
{
	return (struct t3_matrix) {
		.base = base,
		.rows = ROWS,
		.cols = COLS,
		.ld = COLS,
		.dtype = T3_DTYPE_F32,
	};
}

static struct t3_collective collective_of(struct world *w)
{
	return (struct t3_collective) {
		.size = sizeof(struct t3_collective),
		.op = T3_ALL_REDUCE,
		.block_bytes = 512,
		.region = w->region,
	};
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct t3_matrix m;
	struct t3_collective c;

	memset(&mock, 0, sizeof(mock));
	setenv("T3_ENGINE", "soft", 1);
	assert_int_equal(t3_group_create(4, NULL, &w->group), 0);
	assert_int_equal(t3_join(w->group, 1, &w->member), 0);
	assert_int_equal(t3_alloc(w->member, ROWS * COLS * 4,
				  (void **)&w->memory), 0);
	assert_int_equal(t3_alloc(w->member, ROWS * COLS * 4,
				  (void **)&w->second), 0);
	m = matrix_of(w->memory);
	assert_int_equal(t3_region_add(w->member, &m, &w->region), 0);
	m = matrix_of(w->second);
	assert_int_equal(t3_region_add(w->member, &m, &w->other), 0);
	c = collective_of(w);
	assert_int_equal(t3_plan_add(w->member, &c, &w->plan), 0);
	memset(&mock, 0, sizeof(mock));
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	mock.armed = false;
	mock.fail = 0;
	t3_leave(w->member);
	t3_group_close(w->group);
	free(w);
	return 0;
}

/* The call was refused so, with such a sentence, and no engine heard of it. */
static void refused(int ret, int error, const char *sentence)
{
	if (ret != -error || strcmp(t3_error(), sentence))
		fail_msg("%d \"%s\", not %d \"%s\"", ret, t3_error(), -error,
			 sentence);
	assert_int_equal(mock.calls, 0);
}

/* ---- groups ---- */

static void test_group_create(void **state)
{
	struct t3_group *group = NULL;
	struct t3_options o = { .size = sizeof(o) };
	struct {
		struct t3_options o;
		uint32_t more;
	} longer = { { .size = sizeof(longer) }, 7 };

	(void)state;
	refused(t3_group_create(4, NULL, NULL), EINVAL,
		"t3_group_create: group is NULL");
	refused(t3_group_create(0, NULL, &group), ERANGE,
		"t3_group_create: ranks is 0, allowed are 1 to 64");
	refused(t3_group_create(65, NULL, &group), ERANGE,
		"t3_group_create: ranks is 65, allowed are 1 to 64");
	o.size = 4;
	refused(t3_group_create(4, &o, &group), EINVAL,
		"t3_group_create: options->size is 4, allowed are 20 and more");
	refused(t3_group_create(4, &longer.o, &group), E2BIG,
		"t3_group_create: options->size is 28, byte 0 behind the known 24 is not 0");
	o.size = sizeof(o);
	o.engine = 4;
	refused(t3_group_create(4, &o, &group), EINVAL,
		"t3_group_create: options->engine is 4, allowed are 0 to 3");
	o.engine = 0;
	o.setup_ms = T3_TIMEOUT_MAX + 1;
	refused(t3_group_create(4, &o, &group), ERANGE,
		"t3_group_create: options->setup_ms is 86400001, allowed are 0 to 86400000");
	o.setup_ms = 0;
	o.watchdog_ms = T3_TIMEOUT_MAX + 1;
	refused(t3_group_create(4, &o, &group), ERANGE,
		"t3_group_create: options->watchdog_ms is 86400001, allowed are 0 to 86400000");
	o.watchdog_ms = 0;
	o.workers = 65;
	refused(t3_group_create(4, &o, &group), ERANGE,
		"t3_group_create: options->workers is 65, allowed are 0 to 64");
	o.workers = 0;
	o.flags = 2;
	refused(t3_group_create(4, &o, &group), EINVAL,
		"t3_group_create: options->flags is 0x2, allowed is 0x1");
	assert_null(group);
}

static void test_group_options(void **state)
{
	struct t3_group *group;
	struct {
		struct t3_options o;
		uint32_t more;
	} longer = { { .size = sizeof(longer), .workers = T3_NO_WORKERS }, 0 };

	(void)state;
	assert_int_equal(t3_group_create(4, &longer.o, &group), 0);
	assert_int_equal(group->options.size, sizeof(struct t3_options));
	assert_int_equal(group->options.engine, T3_ENGINE_SOFT);
	assert_int_equal(group->options.setup_ms, T3_TIMEOUT_DEFAULT);
	assert_int_equal(group->options.workers, T3_NO_WORKERS);
	assert_int_equal(mock.watchdog_ms, T3_TIMEOUT_DEFAULT);
	t3_group_close(group);
	t3_group_close(NULL);
	/* the first version ended before the flags: what lies there is not read */
	longer.o.size = offsetof(struct t3_options, flags);
	longer.o.flags = 2;
	assert_int_equal(t3_group_create(4, &longer.o, &group), 0);
	assert_int_equal(group->options.flags, 0);
	assert_int_equal(group->options.workers, T3_NO_WORKERS);
	t3_group_close(group);
}

static void test_group_from_fd(void **state)
{
	struct world *w = *state;
	struct t3_options o = { .size = sizeof(o), .engine = T3_ENGINE_KERNEL };
	int file = memfd_create("no group", MFD_CLOEXEC);
	int future = memfd_create("of another version", MFD_CLOEXEC);
	struct t3_group *group;
	char text[100];

	refused(t3_group_fd(NULL), EINVAL, "t3_group_fd: group is NULL");
	refused(t3_group_from_fd(0, NULL, NULL), EINVAL,
		"t3_group_from_fd: group is NULL");
	refused(t3_group_from_fd(-1, NULL, &group), EBADF,
		"t3_group_from_fd: fd is -1, which is not open");
	refused(t3_group_from_fd(987, NULL, &group), EBADF,
		"t3_group_from_fd: fd is 987, which is not open");
	assert_int_equal(t3_group_from_fd(file, NULL, &group), -ENOTTY);
	assert_non_null(strstr(t3_error(), ", which is no t3 group"));
	assert_int_equal(write(future, "mock group\0\0\377\377\377\377", 16), 16);
	assert_int_equal(t3_group_from_fd(future, NULL, &group), -EPROTO);
	assert_int_equal(t3_group_from_fd(t3_group_fd(w->group), &o, &group),
			 -EINVAL);
	snprintf(text, sizeof(text),
		 "t3_group_from_fd: options->engine is 2 (kernel), the group's is 1 (soft)");
	assert_string_equal(t3_error(), text);
	close(file);
	close(future);
	assert_int_equal(t3_group_from_fd(t3_group_fd(w->group), NULL, &group), 0);
	assert_int_equal(group->ranks, 4);
	assert_int_not_equal(t3_group_fd(group), t3_group_fd(w->group));
	t3_group_close(group);
}

static void test_at_path(void **state)
{
	struct t3_group *group;
	struct t3_member *member;
	char path[200];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	refused(t3_group_at_path("/x", 0, 4, NULL, NULL), EINVAL,
		"t3_group_at_path: group is NULL");
	refused(t3_group_at_path(NULL, 0, 4, NULL, &group), EINVAL,
		"t3_group_at_path: path is NULL");
	refused(t3_group_at_path("/x", 4, 4, NULL, &group), ERANGE,
		"t3_group_at_path: rank is 4, allowed are 0 to 3");
	refused(t3_group_at_path("/x", 0, 65, NULL, &group), ERANGE,
		"t3_group_at_path: ranks is 65, allowed are 1 to 64");
	refused(t3_group_at_path("", 0, 4, NULL, &group), EINVAL,
		"t3_group_at_path: path is empty");
	refused(t3_group_at_path(path, 0, 4, NULL, &group), ENAMETOOLONG,
		"t3_group_at_path: path begins \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\", allowed are 107 bytes");
	refused(t3_open("/x", 0, 4, NULL, NULL), EINVAL,
		"t3_open: member is NULL");
	refused(t3_open("/x", 1, 1, NULL, &member), ERANGE,
		"t3_open: rank is 1, allowed are 0 to 0");
}

/* ---- engines ---- */

static void test_engines(void **state)
{
	struct t3_group *group;
	struct t3_options o = { .size = sizeof(o), .engine = T3_ENGINE_GPU };
	char why[200];

	(void)state;
	assert_string_equal(t3_engine_name(T3_ENGINE_KERNEL), "kernel");
	assert_null(t3_engine_name(4));
	assert_int_equal(t3_version(), 100);
	assert_int_equal(t3_engine_why(T3_ENGINE_SOFT, why, sizeof(why)),
			 T3_ENGINE_SOFT);
	assert_string_equal(why, "soft: mocked");
	assert_int_equal(t3_engine_why(T3_ENGINE_GPU, why, sizeof(why)), -ENODEV);
	assert_string_equal(why, "gpu: no plug-in");
	assert_int_equal(t3_engine_why(T3_ENGINE_GPU, NULL, 0), -ENODEV);
	refused(t3_engine_why(4, why, sizeof(why)), EINVAL,
		"t3_engine_why: engine is 4, allowed are 0 to 3");
	refused(t3_engine_why(1, NULL, 5), EINVAL, "t3_engine_why: why is NULL");
	refused(t3_group_create(4, &o, &group), ENODEV,
		"t3_group_create: no engine: gpu: no plug-in");
}

static void test_engine_of_environment(void **state)
{
	struct t3_group *group;
	char why[400];
	int ret;

	(void)state;
	assert_int_equal(t3_engine_why(T3_ENGINE_AUTO, why, sizeof(why)),
			 T3_ENGINE_SOFT);
	setenv("T3_ENGINE", "hard", 1);
	refused(t3_group_create(4, NULL, &group), EINVAL,
		"t3_group_create: T3_ENGINE is \"hard\", allowed are auto, kernel, soft and gpu");
	assert_int_equal(t3_engine_why(T3_ENGINE_AUTO, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "T3_ENGINE is \"hard\""));
	setenv("T3_ENGINE", "gpu", 1);
	assert_int_equal(t3_group_create(4, NULL, &group), -ENODEV);
	/* The best there is: the module may be loaded where this runs. */
	setenv("T3_ENGINE", "auto", 1);
	ret = t3_engine_why(T3_ENGINE_AUTO, why, sizeof(why));
	assert_true(ret == T3_ENGINE_SOFT || ret == T3_ENGINE_KERNEL);
	if (ret == T3_ENGINE_SOFT)
		assert_non_null(strstr(why, "soft: mocked (not kernel: /dev/t3: "));
	mock.absent = true;
	if (ret == T3_ENGINE_SOFT) {
		unsetenv("T3_ENGINE");
		assert_int_equal(t3_group_create(4, NULL, &group), -ENODEV);
		assert_non_null(strstr(t3_error(), "no engine is there"));
	}
}

/* ---- members ---- */

static void test_join(void **state)
{
	struct world *w = *state;
	struct t3_member *member = NULL;
	char why[128];

	refused(t3_join(NULL, 0, &member), EINVAL, "t3_join: group is NULL");
	refused(t3_join(w->group, 0, NULL), EINVAL, "t3_join: member is NULL");
	refused(t3_join(w->group, 4, &member), ERANGE,
		"t3_join: rank is 4, allowed are 0 to 3");
	mock.fail = EEXIST;
	assert_int_equal(t3_join(w->group, 2, &member), -EEXIST);
	assert_null(member);
	assert_int_equal(t3_rank(w->member), 1);
	assert_int_equal(t3_ranks(w->member), 4);
	assert_int_equal(t3_engine(w->member), T3_ENGINE_SOFT);
	assert_int_equal(t3_uring_why(w->member, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "io_uring is not used: the "));
	assert_int_equal(t3_uring_why(w->member, NULL, 0), 0);
	mock.calls = 0;
	refused(t3_uring_why(NULL, why, sizeof(why)), EINVAL,
		"t3_uring_why: member is NULL");
	refused(t3_uring_why(w->member, NULL, 9), EINVAL,
		"t3_uring_why: why is NULL");
	assert_int_equal(t3_rank(NULL), T3_NONE);
	assert_int_equal(t3_ranks(NULL), 0);
	assert_int_equal(t3_engine(NULL), T3_ENGINE_AUTO);
	assert_int_equal(t3_abort(NULL), -EINVAL);
	assert_int_equal(t3_leave(NULL), 0);
}

static void test_memory(void **state)
{
	struct world *w = *state;
	char text[100];
	void *memory = NULL;

	refused(t3_alloc(NULL, 1, &memory), EINVAL, "t3_alloc: member is NULL");
	refused(t3_alloc(w->member, 1, NULL), EINVAL, "t3_alloc: memory is NULL");
	refused(t3_alloc(w->member, 0, &memory), ERANGE,
		"t3_alloc: bytes is 0, allowed are 1 to 1099511627776");
	refused(t3_alloc(w->member, (1ULL << 40) + 1, &memory), ERANGE,
		"t3_alloc: bytes is 1099511627777, allowed are 1 to 1099511627776");
	refused(t3_free(NULL, w->memory), EINVAL, "t3_free: member is NULL");
	snprintf(text, sizeof(text),
		 "t3_free: memory is %p, in which a region lies", (void *)w->memory);
	refused(t3_free(w->member, w->memory), EBUSY, text);
	snprintf(text, sizeof(text),
		 "t3_free: memory is %p, which t3_alloc() did not give to this member",
		 (void *)(w->memory + 1));
	refused(t3_free(w->member, w->memory + 1), EINVAL, text);
	assert_int_equal(t3_free(w->member, NULL), -EINVAL);
	assert_int_equal(t3_alloc(w->member, 10, &memory), 0);
	assert_int_equal(t3_memory_bytes(w->member, memory), 10);
	assert_int_equal(t3_free(w->member, memory), 0);
	assert_int_equal(t3_free(w->member, memory), -EINVAL);
	assert_int_equal(t3_memory_bytes(w->member, memory), 0);
}

/* ---- regions ---- */

struct bad_matrix {
	struct t3_matrix m;
	int error;
	const char *sentence;
};

static char place[64] __attribute__((aligned(64)));

static const struct bad_matrix bad_matrices[] = {
	{ { place, 4, 4, 4, 0, 0, 0 }, EINVAL,
	  "matrix->dtype is 0, allowed are 1 to 5" },
	{ { place, 4, 4, 4, 6, 0, 0 }, EINVAL,
	  "matrix->dtype is 6, allowed are 1 to 5" },
	{ { place, 4, 4, 4, 1, 2, 0 }, EINVAL,
	  "matrix->layout is 2, allowed are 0 and 1" },
	{ { place, 4, 4, 4, 1, 0, 2 }, EINVAL,
	  "matrix->flags is 0x2, allowed are 0 and 0x1" },
	{ { place, 0, 4, 4, 1, 0, 0 }, ERANGE,
	  "matrix->rows is 0, allowed are 1 to 2147483647" },
	{ { place, 1ULL << 31, 4, 4, 1, 0, 0 }, ERANGE,
	  "matrix->rows is 2147483648, allowed are 1 to 2147483647" },
	{ { place, 4, 0, 4, 1, 0, 0 }, ERANGE,
	  "matrix->cols is 0, allowed are 1 to 2147483647" },
	{ { place, 4, 1ULL << 31, 1ULL << 31, 1, 0, 0 }, ERANGE,
	  "matrix->cols is 2147483648, allowed are 1 to 2147483647" },
	{ { place, 4, 5, 4, 1, 0, 0 }, ERANGE,
	  "matrix->ld is 4, allowed are 5 and more" },
	{ { place, 5, 4, 4, 1, 1, 0 }, ERANGE,
	  "matrix->ld is 4, allowed are 5 and more" },
	{ { NULL, 4, 4, 4, 1, 0, 0 }, EINVAL, "matrix->base is NULL" },
	{ { (void *)4098, 4, 4, 4, 1, 0, 0 }, EDOM,
	  "matrix->base is 0x1002, allowed are multiples of 4" },
	{ { (void *)4100, 4, 4, 4, 2, 0, 0 }, EDOM,
	  "matrix->base is 0x1004, allowed are multiples of 8" },
	{ { (void *)4096, 4, 4, 1ULL << 62, 1, 0, 0 }, ERANGE,
	  "matrix->ld is 4611686018427387904, with which 4 rows do not end in memory" },
	{ { (void *)-4096, 4, 1024, 1024, 1, 0, 0 }, ERANGE,
	  "matrix->ld is 1024, with which 4 rows do not end in memory" },
};

static void test_region_add(void **state)
{
	struct world *w = *state;
	struct t3_region *region = NULL;
	struct t3_matrix m = matrix_of(place);
	char text[200];
	size_t i;

	refused(t3_region_add(NULL, &m, &region), EINVAL,
		"t3_region_add: member is NULL");
	refused(t3_region_add(w->member, NULL, &region), EINVAL,
		"t3_region_add: matrix is NULL");
	refused(t3_region_add(w->member, &m, NULL), EINVAL,
		"t3_region_add: region is NULL");
	for (i = 0; i < ARRAY_SIZE(bad_matrices); i++) {
		snprintf(text, sizeof(text), "t3_region_add: %s",
			 bad_matrices[i].sentence);
		refused(t3_region_add(w->member, &bad_matrices[i].m, &region),
			bad_matrices[i].error, text);
	}
	mock.fail = EMEDIUMTYPE;
	assert_int_equal(t3_region_add(w->member, &m, &region), -EMEDIUMTYPE);
	assert_null(region);
	assert_ptr_equal(w->member->regions, w->other);
}

static void test_region_del(void **state)
{
	struct world *w = *state;

	refused(t3_region_del(w->region), EBUSY,
		"t3_region_del: 1 plans use the region");
	assert_int_equal(t3_region_del(NULL), 0);
	assert_int_equal(t3_region_del(w->other), 0);
	assert_int_equal(mock.calls, 1);
	assert_int_equal(t3_plan_del(w->plan), 0);
	assert_int_equal(t3_region_del(w->region), 0);
	assert_null(w->member->regions);
}

/* ---- plans ---- */

static void test_plan_add_refuses(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_plan *plan = NULL;

	refused(t3_plan_add(NULL, &c, &plan), EINVAL, "t3_plan_add: member is NULL");
	refused(t3_plan_add(w->member, NULL, &plan), EINVAL,
		"t3_plan_add: collective is NULL");
	refused(t3_plan_add(w->member, &c, NULL), EINVAL, "t3_plan_add: plan is NULL");
	c.size = 8;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->size is 8, allowed are 40 and more");
	c = collective_of(w);
	c.op = 0;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->op is 0, allowed are 1 to 4");
	c = collective_of(w);
	c.flags = 4;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->flags is 0x4, allowed are 0 and 0x1");
	c = collective_of(w);
	c.region = NULL;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->region is NULL");
	c = collective_of(w);
	c.second = w->other;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->second is not NULL, op 3 has one region");
	c = collective_of(w);
	c.block_bytes = 5000000;
	refused(t3_plan_add(w->member, &c, &plan), ERANGE,
		"t3_plan_add: block_bytes is 5000000, allowed are 4 to 4194304");
	c = collective_of(w);
	c.tiles = T3_MAX_TILES + 1;
	refused(t3_plan_add(w->member, &c, &plan), ERANGE,
		"t3_plan_add: tiles is 1048577, allowed are 1 to 1048576");
	assert_null(plan);
	assert_int_equal(w->region->users, 1);
	assert_int_equal(w->member->generation, 1);
}

static void test_all_to_all_refuses(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_matrix m = matrix_of(w->second);
	struct t3_region *narrow, *shifted;
	struct t3_plan *plan = NULL;

	m.cols = 16;
	assert_int_equal(t3_region_add(w->member, &m, &narrow), 0);
	m = matrix_of(w->memory + COLS);
	assert_int_equal(t3_region_add(w->member, &m, &shifted), 0);
	memset(&mock, 0, sizeof(mock));
	c.op = T3_ALL_TO_ALL;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->second is NULL");
	c.second = w->region;
	refused(t3_plan_add(w->member, &c, &plan), ELOOP,
		"t3_plan_add: collective->second is region: all-to-all in place is a cycle");
	c.second = narrow;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: collective->second is 64 x 16, dtype 1, layout 0, not as region: 64 x 32, 1, 0");
	c.second = shifted;
	assert_int_equal(t3_plan_add(w->member, &c, &plan), -EADDRINUSE);
	assert_int_equal(mock.calls, 0);
	c.second = w->other;
	c.algorithm = T3_ALG_RING;
	refused(t3_plan_add(w->member, &c, &plan), EINVAL,
		"t3_plan_add: algorithm is 1, all-to-all has only 2 (direct)");
	c.algorithm = T3_ALG_DIRECT;
	assert_int_equal(t3_plan_add(w->member, &c, &plan), 0);
	assert_int_equal(w->other->users, 1);
	assert_int_equal(w->region->users, 2);
}

static void test_read_only(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_matrix m = matrix_of(place);
	struct t3_region *region;
	struct t3_plan *plan;

	m.flags = T3_REGION_READ_ONLY;
	assert_int_equal(t3_region_add(w->member, &m, &region), 0);
	memset(&mock, 0, sizeof(mock));
	c.region = region;
	refused(t3_plan_add(w->member, &c, &plan), EROFS,
		"t3_plan_add: collective->region is read-only, and the plan writes it");
	c.op = T3_ALL_TO_ALL;
	c.region = w->other;
	c.second = region;
	refused(t3_plan_add(w->member, &c, &plan), EROFS,
		"t3_plan_add: collective->second is read-only, and the plan writes it");
	/* As the source of an all-to-all it will do. */
	c.region = region;
	c.second = w->other;
	assert_int_equal(t3_plan_add(w->member, &c, &plan), 0);
}

static void test_foreign_region(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_member *member;
	struct t3_plan *plan;

	assert_int_equal(t3_join(w->group, 2, &member), 0);
	memset(&mock, 0, sizeof(mock));
	refused(t3_plan_add(member, &c, &plan), EINVAL,
		"t3_plan_add: collective->region is another member's");
	assert_int_equal(t3_leave(member), 0);
}

static void test_generations_and_slots(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_plan *plan[T3_MAX_PLANS];
	uint32_t i;

	/* A refused part that nobody else saw leaves the generation alone. */
	mock.fail = ENOMEM;
	assert_int_equal(t3_plan_add(w->member, &c, &plan[1]), -ENOMEM);
	assert_int_equal(w->member->generation, 1);
	mock.fail = ETIME;
	mock.submitted = true;
	assert_int_equal(t3_plan_add(w->member, &c, &plan[1]), -ETIME);
	assert_int_equal(w->member->generation, 2);
	assert_int_equal(w->region->users, 1);
	for (i = 1; i < T3_MAX_PLANS; i++)
		assert_int_equal(t3_plan_add(w->member, &c, &plan[i]), 0);
	assert_int_equal(plan[1]->slot, 2);
	mock.calls = 0;
	refused(t3_plan_add(w->member, &c, &plan[0]), ENOSPC,
		"t3_plan_add: the member has 64 plans, allowed are 64");
	assert_int_equal(t3_plan_del(plan[7]), 0);
	assert_int_equal(t3_plan_add(w->member, &c, &plan[7]), 0);
	assert_int_equal(plan[7]->slot, 8);
	assert_int_equal(plan[7]->generation, w->member->generation);
}

static void test_plan_del(void **state)
{
	struct world *w = *state;

	assert_int_equal(t3_plan_del(NULL), 0);
	mock.armed = true;
	assert_int_equal(t3_plan_del(w->plan), -EBUSY);
	assert_int_equal(w->region->users, 1);
	mock.armed = false;
	assert_int_equal(t3_plan_del(w->plan), 0);
	assert_int_equal(w->region->users, 0);
}

static void test_plan_looks(void **state)
{
	struct world *w = *state;
	struct t3_plan_info info = { .size = sizeof(info) };
	struct t3_rectangle r;
	uint64_t elements = 0;
	uint32_t i;

	refused(t3_plan_info(NULL, &info), EINVAL, "t3_plan_info: plan is NULL");
	refused(t3_plan_info(w->plan, NULL), EINVAL, "t3_plan_info: info is NULL");
	info.size = 4;
	refused(t3_plan_info(w->plan, &info), EINVAL,
		"t3_plan_info: info->size is 4, allowed are 40 and more");
	info.size = sizeof(info);
	assert_int_equal(t3_plan_info(w->plan, &info), 0);
	assert_int_equal(info.engine, T3_ENGINE_SOFT);
	assert_int_equal(info.algorithm, T3_ALG_DIRECT);
	assert_int_equal(info.blocks, 16);
	assert_int_equal(info.steps, 16);
	assert_int_equal(info.triggers, 16);
	assert_int_equal(info.overlap, 1);
	/* Own shard's sums read 3 ranks, other shards are copied from 3. */
	assert_int_equal(info.moved_bytes, 6 * ROWS / 4 * COLS * 4);
	for (i = 0; !t3_plan_step(w->plan, i, &r); i++) {
		assert_int_equal(r.col, 0);
		assert_int_equal(r.cols, COLS);
		assert_int_equal(t3_block_of(w->plan, r.row, 7),
				 w->plan->planned.step[i]);
		elements += r.rows * r.cols;
	}
	assert_int_equal(i, info.steps);
	assert_int_equal(elements, ROWS * COLS);
	assert_int_equal(t3_plan_step(w->plan, i, &r), -ERANGE);
	assert_int_equal(t3_plan_step(NULL, 0, &r), -EINVAL);
	assert_int_equal(t3_plan_step(w->plan, 0, NULL), -EINVAL);
}

static void test_plan_shards(void **state)
{
	struct world *w = *state;
	struct t3_rectangle r;

	refused(t3_plan_shard(w->plan, 4, &r), ERANGE,
		"t3_plan_shard: rank is 4, allowed are 0 to 3");
	assert_int_equal(t3_plan_shard(NULL, 0, &r), -EINVAL);
	assert_int_equal(t3_plan_shard(w->plan, 0, NULL), -EINVAL);
	assert_int_equal(t3_plan_shard(w->plan, 3, &r), 0);
	assert_int_equal(r.row, 48);
	assert_int_equal(r.rows, 16);
	assert_int_equal(r.cols, COLS);
	refused((int)t3_block_of(w->plan, ROWS, 0), ERANGE,
		"t3_block_of: row is 64, allowed are 0 to 63");
	refused((int)t3_block_of(w->plan, 0, COLS), ERANGE,
		"t3_block_of: col is 32, allowed are 0 to 31");
	assert_int_equal(t3_block_of(NULL, 0, 0), -EINVAL);
	assert_int_equal(t3_block_of(w->plan, ROWS - 1, COLS - 1), 15);
}

/* Column-major: memory's rows are the matrix's columns. */
static void test_columns(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_matrix m = matrix_of(w->second);
	struct t3_region *region;
	struct t3_rectangle r;
	struct t3_plan *plan;
	uint64_t elements = 0;
	uint32_t i;

	m.layout = T3_COL_MAJOR;
	m.ld = ROWS;
	assert_int_equal(t3_region_add(w->member, &m, &region), 0);
	assert_int_equal(region->rows, COLS);
	assert_int_equal(region->row_bytes, ROWS * 4);
	c.region = region;
	assert_int_equal(t3_plan_add(w->member, &c, &plan), 0);
	for (i = 0; !t3_plan_step(plan, i, &r); i++) {
		/* 16 rows of the shard, 8 columns: 512 bytes. */
		assert_int_equal(r.rows, 16);
		assert_int_equal(r.cols, 8);
		assert_int_equal(r.row % 16, 0);
		assert_int_equal(t3_block_of(plan, r.row + 15, r.col + 7),
				 plan->planned.step[i]);
		elements += r.rows * r.cols;
	}
	assert_int_equal(elements, ROWS * COLS);
	assert_int_equal(t3_plan_shard(plan, 1, &r), 0);
	assert_int_equal(r.row, 16);
}

/* ---- running ---- */

static void test_before_arming(void **state)
{
	struct world *w = *state;

	refused(t3_arm(NULL), EINVAL, "t3_arm: plan is NULL");
	refused(t3_produced(NULL, 0), EINVAL, "t3_produced: plan is NULL");
	refused(t3_produced(w->plan, 0), EPROTO, "t3_produced: no epoch was armed");
	refused(t3_produced_all(w->plan), EPROTO,
		"t3_produced_all: no epoch was armed");
	refused(t3_tile_done(w->plan, 0, 1), EPROTO,
		"t3_tile_done: no epoch was armed");
	refused(t3_wait(w->plan, 1), EPROTO, "t3_wait: no epoch was armed");
	refused(t3_wait_block(w->plan, 0, 1), EPROTO,
		"t3_wait_block: no epoch was armed");
	assert_int_equal(t3_epoch(w->plan), 0);
	assert_int_equal(t3_epoch(NULL), 0);
}

static void test_running(void **state)
{
	struct world *w = *state;

	assert_int_equal(t3_arm(w->plan), 0);
	assert_int_equal(t3_epoch(w->plan), 1);
	mock.calls = 0;
	refused(t3_produced(w->plan, 16), ERANGE,
		"t3_produced: step is 16, the plan has 16 here");
	refused(t3_tile_done(w->plan, 16, 1), ERANGE,
		"t3_tile_done: block is 16, allowed are 0 to 15");
	refused(t3_tile_done(w->plan, 0, 0), ERANGE,
		"t3_tile_done: tiles is 0, allowed are 1 to 1048576");
	refused(t3_wait(w->plan, T3_TIMEOUT_MAX + 1), ERANGE,
		"t3_wait: timeout_ms is 86400001, allowed are 0 to 86400000");
	refused(t3_wait_block(w->plan, 16, 1), ERANGE,
		"t3_wait_block: block is 16, allowed are 0 to 15");
	refused(t3_wait_block(w->plan, 1, T3_TIMEOUT_MAX + 1), ERANGE,
		"t3_wait_block: timeout_ms is 86400001, allowed are 0 to 86400000");
	assert_int_equal(t3_produced(w->plan, 3), 0);
	assert_int_equal(mock.last.block, w->plan->planned.step[3]);
	assert_int_equal(mock.last.tiles, 1);
	assert_int_equal(t3_produced_all(w->plan), 0);
	assert_int_equal(mock.tiles, 17);
	mock.fail = EPROTO;
	assert_int_equal(t3_produced_all(w->plan), -EPROTO);
	assert_int_equal(t3_tile_done(w->plan, 5, 2), 0);
	assert_int_equal(mock.last.block, 5);
	assert_int_equal(mock.last.tiles, 2);
	assert_int_equal(t3_wait(w->plan, 5), 0);
	assert_int_equal(t3_arm(w->plan), 0);
	assert_int_equal(t3_wait_block(w->plan, 4, 5), 0);
	/* Two updates in each of two epochs. */
	assert_int_equal(mock.updates, 4);
}

/* An all-gather: what others own is not produced here. */
static void test_not_produced(void **state)
{
	struct world *w = *state;
	struct t3_collective c = collective_of(w);
	struct t3_plan *plan;

	c.op = T3_ALL_GATHER;
	c.tiles = 3;
	assert_int_equal(t3_plan_add(w->member, &c, &plan), 0);
	assert_int_equal(t3_arm(plan), 0);
	mock.calls = 0;
	refused(t3_tile_done(plan, 0, 1), EINVAL,
		"t3_tile_done: block is 0, which rank 1 does not produce");
	assert_int_equal(plan->planned.steps, 4);
	assert_int_equal(t3_produced(plan, 0), 0);
	assert_int_equal(mock.last.block, 4);
	assert_int_equal(mock.last.tiles, 3);
}

/* ---- leaving ---- */

static void test_leave(void **state)
{
	struct world *w = *state;

	assert_int_equal(t3_leave(w->member), 0);
	assert_int_equal(mock.left, 1);
	assert_int_equal(mock.seen_plans, 0);
	assert_int_equal(mock.seen_regions, 0);
	w->member = NULL;
}

static void test_leave_armed(void **state)
{
	struct world *w = *state;

	mock.armed = true;
	assert_int_equal(t3_leave(w->member), -EOWNERDEAD);
	assert_string_equal(t3_error(),
			    "t3_leave: an epoch was armed at rank 1: the group broke");
	assert_int_equal(mock.left, 2);
	/* The armed plan and its region; the other region was deleted. */
	assert_int_equal(mock.seen_plans, 1);
	assert_int_equal(mock.seen_regions, 1);
	w->member = NULL;
}

/* ---- sentences ---- */

static void test_sentences(void **state)
{
	struct t3_verdict v = { EBADMSG, 3, T3_NONE, T3_NONE };

	(void)state;
	assert_int_equal(t3_fail_broken("t3_wait", EOWNERDEAD, 2), -EOWNERDEAD);
	assert_string_equal(t3_error(),
			    "t3_wait: the group broke: rank 2 died, or left, with an epoch armed");
	t3_fail_broken("t3_wait", ECANCELED, T3_NONE);
	assert_string_equal(t3_error(),
			    "t3_wait: the group broke: a rank called t3_abort()");
	assert_int_equal(t3_fail_verdict("t3_plan_add", &v), -EBADMSG);
	assert_string_equal(t3_error(),
			    "t3_plan_add: the plan was refused: rank 3: op, algorithm, size, dtype, layout, block_bytes or tiles are not rank 0's");
	v = (struct t3_verdict) { ELOOP, 1, 7, 9 };
	t3_fail_verdict("t3_plan_add", &v);
	assert_string_equal(t3_error(),
			    "t3_plan_add: the plan was refused: rank 1, trigger 7, detail 9: a trigger on a cycle");
	/* The last sentence may be part of the next. */
	t3_fail(EIO, "again: %s", t3_error());
	assert_int_equal(strncmp(t3_error(), "again: t3_plan_add: ", 20), 0);
}

static void test_time(void **state)
{
	uint64_t now = t3_now();

	(void)state;
	assert_true(t3_deadline(1000) >= now + 1000000000ULL);
	assert_int_equal(t3_time_left(now), 0);
	assert_int_equal(t3_time_left_ms(now), 0);
	assert_true(t3_time_left_ms(t3_deadline(T3_TIMEOUT_MAX)) > 1000);
	t3_sleep(1ULL << 60, now);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_group_create),
		TEST(test_group_options),
		TEST(test_group_from_fd),
		TEST(test_at_path),
		TEST(test_engines),
		TEST(test_engine_of_environment),
		TEST(test_join),
		TEST(test_memory),
		TEST(test_region_add),
		TEST(test_region_del),
		TEST(test_plan_add_refuses),
		TEST(test_all_to_all_refuses),
		TEST(test_read_only),
		TEST(test_foreign_region),
		TEST(test_generations_and_slots),
		TEST(test_plan_del),
		TEST(test_plan_looks),
		TEST(test_plan_shards),
		TEST(test_columns),
		TEST(test_before_arming),
		TEST(test_running),
		TEST(test_not_produced),
		TEST(test_leave),
		TEST(test_leave_armed),
		TEST(test_sentences),
		TEST(test_time),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
