// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A rank's arena: its part of the shared file. Only the rank itself gives out
 * pieces of it, so what is in use is known by private lists alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "soft.h"

/* Under m->lock. First fit; the list is short. */
static struct soft_extent *extent_take(struct soft_member *m, u64 bytes)
{
	struct soft_domain *d = m->domain;
	u64 align = bytes >= SOFT_HUGE ? SOFT_HUGE : SOFT_GRAIN;
	u64 at = d->arena_first + m->m.rank * d->arena_bytes;
	u64 end = at + d->arena_bytes;
	struct soft_extent **p;
	struct soft_extent *e;

	bytes = (bytes + SOFT_GRAIN - 1) & ~(u64)(SOFT_GRAIN - 1);
	for (p = &m->extents; *p; p = &(*p)->next) {
		if ((*p)->at >= at && (*p)->at - at >= bytes)
			break;
		at = ((*p)->at + (*p)->bytes + align - 1) & ~(align - 1);
	}
	if (at > end || end - at < bytes)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->at = at;
	e->bytes = bytes;
	e->next = *p;
	*p = e;
	return e;
}

/* Under m->lock. The hole gives the memory back, and zeros to the next. */
static void extent_give(struct soft_member *m, struct soft_extent **p)
{
	struct soft_extent *e = *p;

	if (e->memory)
		soft_unmap(m->domain, e->memory);
	fallocate(m->domain->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  e->at, e->bytes);
	*p = e->next;
	free(e);
}

int soft_arena_take(struct soft_member *m, u64 bytes, u64 *at)
{
	struct soft_extent *e;

	pthread_mutex_lock(&m->lock);
	e = extent_take(m, bytes);
	if (e)
		*at = e->at;
	pthread_mutex_unlock(&m->lock);
	return e ? 0 : -ENOMEM;
}

void soft_arena_give(struct soft_member *m, u64 at)
{
	struct soft_extent **p;

	pthread_mutex_lock(&m->lock);
	for (p = &m->extents; *p && (*p)->at != at; p = &(*p)->next)
		;
	if (*p)
		extent_give(m, p);
	pthread_mutex_unlock(&m->lock);
}

/*
 * At the end of the member. What plans have there stays: other ranks may still
 * be using it. It goes with the file.
 */
void soft_arena_end(struct soft_member *m)
{
	struct soft_extent **p = &m->extents;
	struct soft_extent *e;

	while ((e = *p)) {
		if (e->memory) {
			extent_give(m, p);
		} else {
			*p = e->next;
			free(e);
		}
	}
}

/* More than the machine has would be killed for, not refused, when touched. */
static u64 memory_there(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		return ~0ULL;
	return ((u64)info.totalram + info.totalswap) * info.mem_unit;
}

int soft_alloc(struct t3_member *member, size_t bytes, void **memory)
{
	struct soft_member *m = soft_member(member);
	u64 most = memory_there();
	struct soft_extent *e;
	void *mapped = NULL;

	if (soft_is_foreign(m))
		return soft_foreign();
	if (bytes > most)
		return t3_fail(ENOMEM, "t3_alloc: %zu bytes, the machine has %llu",
			       bytes, (unsigned long long)most);
	pthread_mutex_lock(&m->lock);
	e = extent_take(m, bytes);
	if (e)
		mapped = soft_map(m->domain, e->at, e->bytes, true);
	if (mapped)
		e->memory = mapped;
	pthread_mutex_unlock(&m->lock);
	if (mapped) {
		*memory = mapped;
		return 0;
	}
	if (e)
		soft_arena_give(m, e->at);
	return t3_fail(ENOMEM, "t3_alloc: no %zu bytes in an arena of %llu",
		       bytes, (unsigned long long)m->domain->arena_bytes);
}

int soft_free(struct t3_member *member, void *memory)
{
	struct soft_member *m = soft_member(member);
	struct soft_extent **p;
	bool found;

	if (soft_is_foreign(m))
		return soft_foreign();
	pthread_mutex_lock(&m->lock);
	for (p = &m->extents; *p; p = &(*p)->next) {
		if ((*p)->memory == memory && memory)
			break;
	}
	found = *p;
	if (found)
		extent_give(m, p);
	pthread_mutex_unlock(&m->lock);
	if (!found)
		return t3_fail(EINVAL, "t3_free: %p was not given by t3_alloc() of rank %u",
			       memory, member->rank);
	return 0;
}

/* Does @base lie in memory of t3_alloc()? Then where in the file. */
bool soft_arena_find(struct soft_member *m, const void *base, u64 bytes,
		     u64 *at)
{
	u64 address = (uintptr_t)base;
	struct soft_extent *e;
	bool found = false;

	pthread_mutex_lock(&m->lock);
	for (e = m->extents; e && !found; e = e->next) {
		u64 first = (uintptr_t)e->memory;

		found = first && address >= first && bytes <= e->bytes &&
			address - first <= e->bytes - bytes;
		if (found)
			*at = e->at + (address - first);
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}
