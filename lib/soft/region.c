// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Registered buffers: in the arena, which every process can map, or elsewhere.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "soft.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

/* Touch all pages, as a write would, without changing them: 0, or an errno. */
int soft_populate(u64 first, u64 bytes, bool write)
{
	u64 page = first & ~(u64)(sysconf(_SC_PAGESIZE) - 1);

	return madvise((void *)page, first + bytes - page,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ?
	       errno : 0;
}

/* Is the advice known (Linux 5.14)? Asked of a page that is surely there. */
static bool populate_works(void)
{
	char here = 0;

	return !soft_populate((uintptr_t)&here, 1, true);
}

static int check_memory(const struct soft_region *region)
{
	bool write = !(region->r.matrix.flags & T3_REGION_READ_ONLY);
	int error = soft_populate((uintptr_t)region->r.matrix.base,
				  region->bytes, write);

	if (!error || !populate_works())
		return 0;
	if (error == ENOMEM)
		return t3_fail(EFAULT, "t3_region_add: not all of the %llu bytes at %p are mapped",
			       (unsigned long long)region->bytes,
			       region->r.matrix.base);
	return t3_fail(EFAULT, "t3_region_add: the %llu bytes at %p can't be %s: %s",
		       (unsigned long long)region->bytes, region->r.matrix.base,
		       write ? "written" : "read", strerror(error));
}

/* From here on peers in this process may look for it. */
void soft_region_enter(struct soft_region *region)
{
	struct soft_member *m = soft_member(region->r.member);

	pthread_mutex_lock(&soft_lock);
	region->next = m->regions;
	m->regions = region;
	pthread_mutex_unlock(&soft_lock);
}

int soft_region_add(struct t3_region *r)
{
	struct soft_region *region = soft_region(r);
	struct soft_member *m = soft_member(r->member);
	int ret;

	if (soft_is_foreign(m))
		return soft_foreign();
	region->bytes = (r->rows - 1) * r->row_stride + r->row_bytes;
	ret = check_memory(region);
	if (ret)
		return ret;
	region->arena = soft_arena_find(m, r->matrix.base, region->bytes,
					&region->at);
	soft_region_enter(region);
	return 0;
}

void soft_region_del(struct t3_region *r)
{
	struct soft_member *m = soft_member(r->member);
	struct soft_region **p;

	if (soft_is_foreign(m))
		return;
	pthread_mutex_lock(&soft_lock);
	for (p = &m->regions; *p; p = &(*p)->next) {
		if (*p == soft_region(r)) {
			*p = (*p)->next;
			break;
		}
	}
	pthread_mutex_unlock(&soft_lock);
}

/* Has a rank in this process a region that holds these bytes? */
bool soft_region_local(struct soft_domain *domain, u32 rank, u64 base,
		       u64 bytes)
{
	const struct soft_region *region;
	bool found = false;

	pthread_mutex_lock(&soft_lock);
	if (domain->member[rank]) {
		region = domain->member[rank]->regions;
		for (; region && !found; region = region->next) {
			u64 first = (uintptr_t)region->r.matrix.base;

			found = base >= first && bytes <= region->bytes &&
				base - first <= region->bytes - bytes;
		}
	}
	pthread_mutex_unlock(&soft_lock);
	return found;
}
