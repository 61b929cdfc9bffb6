// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The GPU's memory: our own, peers', and the streams that work on it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu.h"

static int take_block(struct gpu_member *m, u64 bytes, struct gpu_block **out)
{
	struct gpu_block *block = calloc(1, sizeof(*block));
	int ret;

	if (!block)
		return t3_fail(ENOMEM, "t3_alloc: no memory");
	ret = gpu->alloc(m->device, bytes, &block->memory);
	if (ret) {
		free(block);
		return gpu_fail("t3_alloc", ret);
	}
	pthread_mutex_lock(&m->memory_lock);
	block->serial = ++m->serial;
	block->next = m->blocks;
	m->blocks = block;
	pthread_mutex_unlock(&m->memory_lock);
	*out = block;
	return 0;
}

int gpu_alloc(struct t3_member *member, size_t bytes, void **memory)
{
	struct gpu_member *m = gpu_member(member);
	struct gpu_block *block;
	int ret;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	ret = take_block(m, bytes, &block);
	if (!ret)
		*memory = block->memory.address;
	return ret;
}

int gpu_free(struct t3_member *member, void *memory)
{
	struct gpu_member *m = gpu_member(member);
	struct gpu_block **at, *block;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	pthread_mutex_lock(&m->memory_lock);
	for (at = &m->blocks; *at; at = &(*at)->next)
		if ((*at)->memory.address == memory)
			break;
	block = *at;
	if (block)
		*at = block->next;
	pthread_mutex_unlock(&m->memory_lock);
	if (!block)
		return t3_fail(EINVAL, "t3_free: %p was not given by t3_alloc() of rank %u",
			       memory, member->rank);
	gpu->free(m->device, &block->memory);
	free(block);
	return 0;
}

/* Under memory_lock. */
static struct gpu_block *holder(struct gpu_member *m, u64 base, u64 bytes)
{
	struct gpu_block *block;

	for (block = m->blocks; block; block = block->next) {
		u64 first = (uintptr_t)block->memory.address;

		if (base >= first && bytes <= block->memory.bytes &&
		    base - first <= block->memory.bytes - bytes)
			return block;
	}
	return NULL;
}

s64 gpu_memory_find(struct gpu_member *m, u64 base, u64 bytes,
		    struct gpu_block *block)
{
	struct gpu_block *found;
	s64 at = -EFAULT;

	pthread_mutex_lock(&m->memory_lock);
	found = holder(m, base, bytes);
	if (found)
		at = base - (uintptr_t)found->memory.address;
	if (found && block) {
		*block = *found;
		block->memory.fd = fcntl(found->memory.fd, F_DUPFD_CLOEXEC, 0);
		if (block->memory.fd < 0)
			at = -errno;
	}
	pthread_mutex_unlock(&m->memory_lock);
	return at;
}

int gpu_region_add(struct t3_region *r)
{
	struct gpu_member *m = gpu_member(r->member);
	struct soft_region *region = soft_region(r);

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	region->bytes = (r->rows - 1) * r->row_stride + r->row_bytes;
	if (gpu_memory_find(m, (uintptr_t)r->matrix.base, region->bytes, NULL) < 0)
		return t3_fail(EMEDIUMTYPE, "t3_region_add: the %llu bytes at %p are not all in memory of t3_alloc(), which is what the gpu engine takes",
			       (unsigned long long)region->bytes,
			       r->matrix.base);
	soft_region_enter(region);
	return 0;
}

/* ---- peers' memory ---- */

/* Under memory_lock. */
static struct gpu_import *imported(struct gpu_member *m, u32 rank, u64 serial)
{
	struct gpu_import *import;

	for (import = m->imports; import; import = import->next) {
		if (import->rank != rank || import->serial != serial)
			continue;
		import->users++;
		return import;
	}
	return NULL;
}

/* Under memory_lock; the block's descriptor is closed. */
static int map_block(struct gpu_member *m, u32 rank, struct gpu_block *block,
		     struct gpu_import **out)
{
	struct gpu_import *import = calloc(1, sizeof(*import));
	int ret = import ? gpu->import_memory(m->device, &block->memory) :
			   -ENOMEM;

	close(block->memory.fd);
	if (ret) {
		free(import);
		return ret;
	}
	import->rank = rank;
	import->serial = block->serial;
	import->users = 1;
	import->memory = block->memory;
	import->memory.fd = -1;
	import->next = m->imports;
	m->imports = import;
	*out = import;
	return 0;
}

/* A rank of this process has it at the same address. */
static bool is_local(struct gpu_member *m, u32 rank, u64 base, u64 bytes,
		     char **at)
{
	struct soft_member *peer;
	bool local = false;

	pthread_mutex_lock(&soft_lock);
	peer = m->s.domain->member[rank];
	if (peer) {
		struct gpu_member *p = (struct gpu_member *)peer;

		if (!base)
			base = (uintptr_t)p->canary;
		local = gpu_memory_find(p, base, bytes, NULL) >= 0;
	}
	pthread_mutex_unlock(&soft_lock);
	*at = (char *)base;
	return local;
}

int gpu_import_get(struct gpu_member *m, u32 rank, u64 base, u64 bytes,
		   struct gpu_import **import, char **at)
{
	struct gpu_block block;
	int ret = 0;
	s64 offset;

	*import = NULL;
	if (is_local(m, rank, base, bytes, at))
		return 0;
	offset = gpu_door_ask(m, rank, base, bytes, &block);
	if (offset < 0)
		return t3_fail((int)-offset, "t3_plan_add: asking rank %u for its memory: %s",
			       rank, strerror((int)-offset));
	if ((u64)offset > block.memory.bytes ||
	    bytes > block.memory.bytes - offset) {
		close(block.memory.fd);
		return t3_fail(EIO, "t3_plan_add: rank %u gave memory of %llu bytes, wanted are %llu at %lld",
			       rank, (unsigned long long)block.memory.bytes,
			       (unsigned long long)bytes, (long long)offset);
	}
	pthread_mutex_lock(&m->memory_lock);
	*import = imported(m, rank, block.serial);
	if (*import)
		close(block.memory.fd);
	else
		ret = map_block(m, rank, &block, import);
	pthread_mutex_unlock(&m->memory_lock);
	if (ret)
		return t3_fail(-ret, "t3_plan_add: rank %u can't map memory of rank %u: %s",
			       m->s.m.rank, rank, gpu->error());
	*at = (char *)(*import)->memory.address + offset;
	return 0;
}

void gpu_import_put(struct gpu_member *m, struct gpu_import *import)
{
	struct gpu_import **at;

	if (!import)
		return;
	pthread_mutex_lock(&m->memory_lock);
	if (!--import->users && !m->stuck) {
		for (at = &m->imports; *at != import; at = &(*at)->next)
			;
		*at = import->next;
		gpu->unimport(m->device, &import->memory);
		free(import);
	}
	pthread_mutex_unlock(&m->memory_lock);
}

/* ---- the pairs' test ---- */

static void pattern(u32 *words, u32 rank)
{
	u32 i;

	for (i = 0; i < GPU_CANARY / sizeof(*words); i++)
		words[i] = (rank + 1) * 0x9e3779b9U ^ i * 0x85ebca6bU;
}

/* Behind it is room for a peer's. */
int gpu_canary_make(struct gpu_member *m)
{
	u32 *words = malloc(GPU_CANARY);
	struct gpu_block *block;
	int ret;

	if (!words)
		return t3_fail(ENOMEM, "t3_join: no memory");
	pattern(words, m->s.m.rank);
	ret = take_block(m, 2 * GPU_CANARY, &block);
	if (!ret) {
		m->canary = block->memory.address;
		ret = gpu->fill(m->device, m->canary, words, GPU_CANARY);
		if (ret)
			ret = gpu_fail("t3_join", ret);
	}
	free(words);
	return ret;
}

static int compare(struct gpu_member *m, u32 rank, const char *from)
{
	char *room = (char *)m->canary + GPU_CANARY;
	u32 *want = malloc(2 * GPU_CANARY);
	u32 *have = want + GPU_CANARY / sizeof(*want);
	int ret;

	if (!want)
		return t3_fail(ENOMEM, "t3_plan_add: no memory");
	pattern(want, rank);
	memset(have, 0, GPU_CANARY);
	ret = gpu->fill(m->device, room, from, GPU_CANARY);
	if (!ret)
		ret = gpu->fetch(m->device, have, room, GPU_CANARY);
	if (ret)
		ret = gpu_fail("t3_plan_add: reading a peer's memory", ret);
	else if (memcmp(want, have, GPU_CANARY))
		ret = t3_fail(EIO, "t3_plan_add: rank %u reads memory of rank %u, and gets other bytes than are there",
			      m->s.m.rank, rank);
	free(want);
	return ret;
}

int gpu_pair_test(struct gpu_member *m, u32 rank)
{
	struct gpu_import *import;
	char *at;
	int ret;

	if (rank == m->s.m.rank || m->tested >> rank & 1)
		return 0;
	ret = gpu_import_get(m, rank, 0, GPU_CANARY, &import, &at);
	if (ret)
		return ret;
	ret = compare(m, rank, at);
	gpu_import_put(m, import);
	if (!ret)
		m->tested |= 1ULL << rank;
	return ret;
}

/* ---- streams ---- */

void *gpu_stream_take(struct gpu_member *m)
{
	struct gpu_stream *s;

	pthread_mutex_lock(&m->memory_lock);
	for (s = m->streams; s && s->taken; s = s->next)
		;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (s && gpu->stream(m->device, &s->stream)) {
			free(s);
			s = NULL;
		}
		if (s) {
			s->next = m->streams;
			m->streams = s;
		}
	}
	if (s)
		s->taken = true;
	pthread_mutex_unlock(&m->memory_lock);
	return s ? s->stream : NULL;
}

void gpu_stream_give(struct gpu_member *m, void *stream)
{
	struct gpu_stream *s;

	pthread_mutex_lock(&m->memory_lock);
	for (s = m->streams; s; s = s->next)
		if (s->stream == stream)
			s->taken = false;
	pthread_mutex_unlock(&m->memory_lock);
}

/* All that is left, at the member's end; what can't be drained is left alone. */
void gpu_memory_end(struct gpu_member *m)
{
	while (m->streams && !m->stuck) {
		struct gpu_stream *s = m->streams;

		m->streams = s->next;
		gpu->stream_end(m->device, s->stream);
		free(s);
	}
	while (m->imports && !m->stuck) {
		struct gpu_import *import = m->imports;

		m->imports = import->next;
		gpu->unimport(m->device, &import->memory);
		free(import);
	}
	while (m->blocks && !m->stuck) {
		struct gpu_block *block = m->blocks;

		m->blocks = block->next;
		gpu->free(m->device, &block->memory);
		free(block);
	}
}
