// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions in dma-bufs through libt3: what the front refuses, and, where vgem
 * and /dev/t3 are (in a VM), a GPU's buffer by its handle. With an argument
 * what is not there is an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <t3.h>
#include <xf86drm.h>
#include <xf86drmMode.h>

#define RANKS	2
#define ROWS	64
#define COLS	256
#define OFFSET	4096
#define BYTES	(OFFSET + ROWS * COLS * 4)

static bool wanted;

static int vgem_node(void)
{
	drmVersionPtr version;
	char path[32];
	bool found;
	int fd, i;

	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		version = drmGetVersion(fd);
		found = version && !strcmp(version->name, "vgem");
		drmFreeVersion(version);
		if (found)
			return fd;
		close(fd);
	}
	return -1;
}

static const struct t3_matrix shape = {
	.base = (void *)OFFSET, .rows = ROWS, .cols = COLS, .ld = COLS,
	.dtype = T3_DTYPE_F32,
};

/* --- the front ---------------------------------------------------------------- */

static struct t3_group *group_on(uint32_t engine, uint32_t ranks)
{
	struct t3_options options = { .size = sizeof(options), .engine = engine };
	struct t3_group *group;

	return t3_group_create(ranks, &options, &group) ? NULL : group;
}

static void soft_takes_none(void **state)
{
	struct t3_group *group = group_on(T3_ENGINE_SOFT, 1);
	struct t3_member *member;
	struct t3_region *region;

	(void)state;
	assert_non_null(group);
	assert_int_equal(t3_join(group, 0, &member), 0);
	assert_int_equal(t3_region_add_dmabuf(member, &shape, 0, &region),
			 -EOPNOTSUPP);
	assert_non_null(strstr(t3_error(), "soft"));
	assert_int_equal(t3_region_add_dmabuf(member, &shape, -1, &region),
			 -EBADF);
	assert_int_equal(t3_region_add_dmabuf(NULL, &shape, 0, &region),
			 -EINVAL);
	assert_int_equal(t3_region_add_prime(NULL, &shape, 0, 1, &region),
			 -EINVAL);
	/* standard input is no GPU */
	assert_true(t3_region_add_prime(member, &shape, 0, 1, &region) < 0);
	t3_leave(member);
	t3_group_close(group);
}

/* --- GPU buffers ---------------------------------------------------------------- */

struct rank {
	pthread_t thread;
	struct t3_group *group;
	uint32_t rank;
	int node;
	uint32_t handle;
	float *map;
	int result;
};

static int buffer_new(struct rank *r)
{
	uint32_t pitch;
	uint64_t bytes;
	int fd;

	if (drmModeCreateDumbBuffer(r->node, BYTES / 4, 1, 32, 0, &r->handle,
				    &pitch, &bytes) ||
	    drmPrimeHandleToFD(r->node, r->handle, DRM_CLOEXEC | DRM_RDWR, &fd))
		return -errno;
	r->map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return r->map == MAP_FAILED ? -errno : 0;
}

static int run_epochs(struct rank *r, struct t3_plan *plan)
{
	float *matrix = r->map + OFFSET / 4;
	int ret = 0, epoch, i;

	for (epoch = 0; epoch < 3 && !ret; epoch++) {
		ret = t3_arm(plan);
		for (i = 0; i < ROWS * COLS; i++)
			matrix[i] = (float)(i % 1000 + epoch) *
				    (float)(r->rank + 1);
		if (!ret)
			ret = t3_produced_all(plan);
		if (!ret)
			ret = t3_wait(plan, T3_TIMEOUT_DEFAULT);
		for (i = 0; i < ROWS * COLS && !ret; i++)
			if (matrix[i] != (float)(i % 1000 + epoch) * 3)
				ret = -EILSEQ;
	}
	return ret;
}

static void *reduce(void *arg)
{
	struct t3_collective c = {
		.size = sizeof(c), .op = T3_ALL_REDUCE,
	};
	struct t3_member *member;
	struct t3_plan *plan;
	struct rank *r = arg;

	r->result = t3_join(r->group, r->rank, &member);
	if (!r->result)
		r->result = t3_region_add_prime(member, &shape, r->node,
						r->handle, &c.region);
	if (!r->result)
		r->result = t3_plan_add(member, &c, &plan);
	if (!r->result)
		r->result = run_epochs(r, plan);
	if (r->result)
		printf("# rank %u: %s\n", r->rank, t3_error());
	return NULL;
}

static void gpu_buffers(void **state)
{
	struct t3_group *group = group_on(T3_ENGINE_KERNEL, RANKS);
	struct rank rank[RANKS];
	uint32_t i;
	int node = vgem_node();

	(void)state;
	if (!group || node < 0) {
		assert_false(wanted);
		skip();
	}
	for (i = 0; i < RANKS; i++) {
		rank[i] = (struct rank) {
			.group = group, .rank = i, .node = node,
		};
		assert_int_equal(buffer_new(&rank[i]), 0);
	}
	for (i = 0; i < RANKS; i++)
		assert_int_equal(pthread_create(&rank[i].thread, NULL, reduce,
						&rank[i]), 0);
	for (i = 0; i < RANKS; i++)
		pthread_join(rank[i].thread, NULL);
	for (i = 0; i < RANKS; i++)
		assert_int_equal(rank[i].result, 0);
}

static void no_such_handle(void **state)
{
	struct t3_group *group = group_on(T3_ENGINE_KERNEL, 1);
	struct t3_member *member;
	struct t3_region *region;
	int node = vgem_node();

	(void)state;
	if (!group || node < 0)
		skip();
	assert_int_equal(t3_join(group, 0, &member), 0);
	assert_int_equal(t3_region_add_prime(member, &shape, node, 4711,
					     &region), -ENOENT);
	assert_int_equal(t3_region_add_dmabuf(member, &shape, node, &region),
			 -EBADF);
	t3_leave(member);
	t3_group_close(group);
	close(node);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soft_takes_none),
		cmocka_unit_test(gpu_buffers),
		cmocka_unit_test(no_such_handle),
	};

	(void)argv;
	wanted = argc > 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
