// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Members: joining, leaving, and a member's memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "front.h"

#define ALLOC_MAX	0x10000000000ULL	/* 2^40 */

int t3_join(struct t3_group *group, uint32_t rank, struct t3_member **member)
{
	struct t3_member *m;
	int ret;

	if (!group)
		return t3_fail_null(__func__, "group");
	if (!member)
		return t3_fail_null(__func__, "member");
	if (rank >= group->ranks)
		return t3_fail_range(__func__, "rank", rank, 0,
				     group->ranks - 1);
	m = calloc(1, group->ops->member_bytes);
	if (!m)
		return t3_fail(ENOMEM, "%s: no memory", __func__);
	m->ops = group->ops;
	m->rank = rank;
	m->ranks = group->ranks;
	m->options = group->options;
	pthread_mutex_init(&m->plan_lock, NULL);
	pthread_mutex_init(&m->lock, NULL);
	ret = m->ops->join(m, group->fd);
	if (ret) {
		pthread_mutex_destroy(&m->lock);
		pthread_mutex_destroy(&m->plan_lock);
		free(m);
		return ret;
	}
	*member = m;
	return 0;
}

/* Delete plans that let themselves be deleted. True where one is armed. */
static bool delete_plans(struct t3_member *member)
{
	bool armed = false;
	uint32_t slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct t3_plan *plan = member->plan[slot];
		int ret = plan ? member->ops->plan_del(plan) : -ENOENT;

		if (!ret)
			t3_plan_forget(plan);
		else if (ret == -EBUSY)
			armed = true;
	}
	return armed;
}

static void delete_regions(struct t3_member *member)
{
	struct t3_region *region = member->regions;

	while (region) {
		struct t3_region *next = region->next;

		if (!region->users) {
			member->ops->region_del(region);
			t3_region_forget(region);
		}
		region = next;
	}
}

/* What the engine had of these is gone. */
static void forget_rest(struct t3_member *member)
{
	uint32_t slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++)
		if (member->plan[slot])
			t3_plan_forget(member->plan[slot]);
	while (member->regions)
		t3_region_forget(member->regions);
	while (member->memory) {
		struct t3_memory *memory = member->memory;

		member->memory = memory->next;
		free(memory);
	}
}

int t3_leave(struct t3_member *member)
{
	bool armed;
	int ret;

	if (!member)
		return 0;
	armed = delete_plans(member);
	delete_regions(member);
	ret = member->ops->leave(member, armed);
	forget_rest(member);
	if (armed)
		ret = t3_fail(EOWNERDEAD,
			      "%s: an epoch was armed at rank %u: the group broke",
			      __func__, member->rank);
	pthread_mutex_destroy(&member->lock);
	pthread_mutex_destroy(&member->plan_lock);
	free(member);
	return ret;
}

int t3_abort(struct t3_member *member)
{
	if (!member)
		return t3_fail_null(__func__, "member");
	return member->ops->abort(member);
}

uint32_t t3_rank(const struct t3_member *member)
{
	return member ? member->rank : T3_NONE;
}

uint32_t t3_ranks(const struct t3_member *member)
{
	return member ? member->ranks : 0;
}

uint32_t t3_engine(const struct t3_member *member)
{
	return member ? member->ops->id : T3_ENGINE_AUTO;
}

int t3_uring_why(const struct t3_member *member, char *why, size_t bytes)
{
	if (!member)
		return t3_fail_null(__func__, "member");
	if (!why && bytes)
		return t3_fail_null(__func__, "why");
	if (member->ops->uring_why)
		return member->ops->uring_why(member, why, bytes);
	snprintf(why, bytes,
		 "io_uring is not used: the %s engine has no use for it",
		 member->ops->name);
	return 0;
}

int t3_alloc(struct t3_member *member, size_t bytes, void **memory)
{
	struct t3_memory *record;
	void *base;
	int ret;

	if (!member)
		return t3_fail_null(__func__, "member");
	if (!memory)
		return t3_fail_null(__func__, "memory");
	if (!bytes || bytes > ALLOC_MAX)
		return t3_fail_range(__func__, "bytes", bytes, 1, ALLOC_MAX);
	record = calloc(1, sizeof(*record));
	if (!record)
		return t3_fail(ENOMEM, "%s: no memory", __func__);
	ret = member->ops->alloc(member, bytes, &base);
	if (ret) {
		free(record);
		return ret;
	}
	record->base = base;
	record->bytes = bytes;
	pthread_mutex_lock(&member->lock);
	record->next = member->memory;
	member->memory = record;
	pthread_mutex_unlock(&member->lock);
	*memory = base;
	return 0;
}

/* Where the member's list points to the record of @base; caller holds lock. */
static struct t3_memory **find_memory(struct t3_member *member,
				      const void *base)
{
	struct t3_memory **at = &member->memory;

	while (*at && (*at)->base != base)
		at = &(*at)->next;
	return at;
}

size_t t3_memory_bytes(struct t3_member *member, const void *base)
{
	struct t3_memory *record;

	pthread_mutex_lock(&member->lock);
	record = *find_memory(member, base);
	pthread_mutex_unlock(&member->lock);
	return record ? record->bytes : 0;
}

static int check_memory(const char *call, struct t3_member *member,
			const void *base)
{
	struct t3_memory *record;
	bool used;

	pthread_mutex_lock(&member->lock);
	record = *find_memory(member, base);
	used = record && t3_region_within(member, base, record->bytes);
	pthread_mutex_unlock(&member->lock);
	if (!record)
		return t3_fail(EINVAL,
			       "%s: memory is %p, which t3_alloc() did not give to this member",
			       call, base);
	if (used)
		return t3_fail(EBUSY, "%s: memory is %p, in which a region lies",
			       call, base);
	return 0;
}

int t3_free(struct t3_member *member, void *memory)
{
	struct t3_memory **at, *record;
	int ret;

	if (!member)
		return t3_fail_null(__func__, "member");
	ret = check_memory(__func__, member, memory);
	if (!ret)
		ret = member->ops->free(member, memory);
	if (ret)
		return ret;
	pthread_mutex_lock(&member->lock);
	at = find_memory(member, memory);
	record = *at;
	*at = record->next;
	pthread_mutex_unlock(&member->lock);
	free(record);
	return 0;
}
