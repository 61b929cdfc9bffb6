// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions: the geometry of a registered buffer.
 */
#include <stdlib.h>

#include "front.h"
#include "reduce.h"

static int check_form(const char *call, const struct t3_matrix *m)
{
	uint64_t row = m->layout == T3_ROW_MAJOR ? m->cols : m->rows;

	if (!t3_dtype_size(m->dtype))
		return t3_fail(EINVAL, "%s: matrix->dtype is %u, allowed are 1 to %u",
			       call, m->dtype, T3_DTYPE_COUNT);
	if (m->layout > T3_COL_MAJOR)
		return t3_fail(EINVAL, "%s: matrix->layout is %u, allowed are 0 and 1",
			       call, m->layout);
	if (m->flags & ~T3_REGION_READ_ONLY)
		return t3_fail(EINVAL, "%s: matrix->flags is %#x, allowed are 0 and %#x",
			       call, m->flags, T3_REGION_READ_ONLY);
	if (!m->rows || m->rows > INT32_MAX)
		return t3_fail_range(call, "matrix->rows", m->rows, 1, INT32_MAX);
	if (!m->cols || m->cols > INT32_MAX)
		return t3_fail_range(call, "matrix->cols", m->cols, 1, INT32_MAX);
	if (m->ld < row)
		return t3_fail(ERANGE, "%s: matrix->ld is %llu, allowed are %llu and more",
			       call, (unsigned long long)m->ld,
			       (unsigned long long)row);
	return 0;
}

/* @fd: a dma-buf, in which the matrix's base is an offset; or -1 */
static int check_place(const char *call, const struct t3_matrix *m, int fd)
{
	uint64_t element = t3_dtype_size(m->dtype);
	uint64_t rows = m->layout == T3_ROW_MAJOR ? m->rows : m->cols;
	uint64_t base = (uintptr_t)m->base;
	uint64_t bytes;

	if (!m->base && fd < 0)
		return t3_fail_null(call, "matrix->base");
	if (base % element)
		return t3_fail(EDOM, "%s: matrix->base is %p, allowed are multiples of %llu",
			       call, m->base, (unsigned long long)element);
	/* One row more than is used: never less than the extent. */
	if (__builtin_mul_overflow(m->ld, element * rows, &bytes) ||
	    bytes > INT64_MAX || base + bytes < base)
		return t3_fail(ERANGE,
			       "%s: matrix->ld is %llu, with which %llu rows do not end in memory",
			       call, (unsigned long long)m->ld,
			       (unsigned long long)rows);
	return 0;
}

static void fill(struct t3_region *region, struct t3_member *member,
		 const struct t3_matrix *m, int fd)
{
	bool transposed = m->layout == T3_COL_MAJOR;
	uint64_t element = t3_dtype_size(m->dtype);

	region->member = member;
	region->matrix = *m;
	region->dmabuf = fd >= 0;
	region->fd = fd;
	region->rows = (uint32_t)(transposed ? m->cols : m->rows);
	region->row_bytes = (transposed ? m->rows : m->cols) * element;
	region->row_stride = m->ld * element;
}

int t3_region_make(const char *call, struct t3_member *member,
		   const struct t3_matrix *matrix, int fd,
		   struct t3_region **region)
{
	struct t3_region *r;
	int ret;

	if (!member)
		return t3_fail_null(call, "member");
	if (!matrix)
		return t3_fail_null(call, "matrix");
	if (!region)
		return t3_fail_null(call, "region");
	ret = check_form(call, matrix);
	if (!ret)
		ret = check_place(call, matrix, fd);
	if (ret)
		return ret;
	r = calloc(1, member->ops->region_bytes);
	if (!r)
		return t3_fail(ENOMEM, "%s: no memory", call);
	fill(r, member, matrix, fd);
	ret = member->ops->region_add(r);
	r->fd = -1;	/* the caller's again */
	if (ret) {
		free(r);
		return ret;
	}
	pthread_mutex_lock(&member->lock);
	r->next = member->regions;
	member->regions = r;
	pthread_mutex_unlock(&member->lock);
	*region = r;
	return 0;
}

int t3_region_add(struct t3_member *member, const struct t3_matrix *matrix,
		  struct t3_region **region)
{
	return t3_region_make(__func__, member, matrix, -1, region);
}

int t3_region_del(struct t3_region *region)
{
	uint32_t users;

	if (!region)
		return 0;
	pthread_mutex_lock(&region->member->lock);
	users = region->users;
	pthread_mutex_unlock(&region->member->lock);
	if (users)
		return t3_fail(EBUSY, "%s: %u plans use the region", __func__,
			       users);
	region->member->ops->region_del(region);
	t3_region_forget(region);
	return 0;
}

void t3_region_forget(struct t3_region *region)
{
	struct t3_member *member = region->member;
	struct t3_region **at = &member->regions;

	pthread_mutex_lock(&member->lock);
	while (*at != region)
		at = &(*at)->next;
	*at = region->next;
	pthread_mutex_unlock(&member->lock);
	free(region);
}

uint64_t t3_region_extent(const struct t3_region *region)
{
	return (region->rows - 1) * region->row_stride + region->row_bytes;
}

/* Caller holds member->lock. */
bool t3_region_within(struct t3_member *member, const void *base, size_t bytes)
{
	uintptr_t begin = (uintptr_t)base;
	const struct t3_region *r;

	for (r = member->regions; r; r = r->next) {
		uintptr_t at = (uintptr_t)r->matrix.base;

		if (!r->dmabuf && at < begin + bytes && begin < at + t3_region_extent(r))
			return true;
	}
	return false;
}
