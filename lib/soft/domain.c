// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shared file of a group, and what this process has mapped of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft.h"

#define SOFT_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define ARENA_MOST	(1ULL << 41)
#define ARENA_LEAST	(64ULL << 20)

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;
u32 soft_forks;
static struct soft_domain *soft_domains;

static u64 head_bytes(u32 ranks)
{
	return sizeof(struct soft_head) + ranks * sizeof(struct soft_slot);
}

static u64 arena_first(u32 ranks)
{
	return (head_bytes(ranks) + SOFT_HUGE - 1) & ~(SOFT_HUGE - 1);
}

/* A file as large as it may be: only what is used takes memory. */
static u64 size_file(int fd, u32 ranks)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	u64 arena;

	/* Past the limit there is a signal, not just an error. */
	getrlimit(RLIMIT_FSIZE, &limit);
	for (arena = ARENA_MOST; arena >= ARENA_LEAST; arena /= 2) {
		u64 bytes = arena_first(ranks) + ranks * arena;

		if (limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
			continue;
		if (!ftruncate(fd, bytes))
			return arena;
	}
	errno = EFBIG;
	return 0;
}

int soft_group_create(struct t3_group *group)
{
	struct soft_head head = {
		.magic = group->ops->id == T3_ENGINE_GPU ? SOFT_MAGIC_GPU :
							   SOFT_MAGIC,
		.version = SOFT_VERSION,
		.ranks = group->ranks,
		.arena_first = arena_first(group->ranks),
	};
	int error;
	int fd;

	fd = memfd_create("t3", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return t3_fail(errno, "t3_group_create: memfd_create: %s",
			       strerror(errno));
	head.arena_bytes = size_file(fd, group->ranks);
	if (head.arena_bytes &&
	    pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    !fcntl(fd, F_ADD_SEALS, SOFT_SEALS)) {
		group->fd = fd;
		return 0;
	}
	error = errno;
	close(fd);
	return t3_fail(error, "t3_group_create: sizing the shared file: %s",
		       strerror(error));
}

/* Read and check the head of what may be a group. */
static int read_head(int fd, struct soft_head *head)
{
	struct stat st;
	int seals;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SOFT_SEALS) != SOFT_SEALS || fstat(fd, &st) ||
	    pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) ||
	    (head->magic != SOFT_MAGIC && head->magic != SOFT_MAGIC_GPU))
		return -ENOTTY;
	if (head->version != SOFT_VERSION)
		return -EPROTO;
	if (!head->ranks || head->ranks > T3_MAX_RANKS ||
	    head->arena_first != arena_first(head->ranks) ||
	    head->arena_bytes < ARENA_LEAST || head->arena_bytes > ARENA_MOST ||
	    head->arena_bytes % SOFT_HUGE ||
	    (u64)st.st_size != head->arena_first +
			       head->ranks * head->arena_bytes)
		return -EPROTO;
	return 0;
}

int soft_group_is(int fd, u64 magic, uint32_t *ranks)
{
	struct soft_head head;
	int ret = read_head(fd, &head);

	if (ret != -ENOTTY && ret != -EBADF && head.magic != magic)
		ret = -ENOTTY;
	if (!ret)
		*ranks = head.ranks;
	else if (ret == -EPROTO)
		t3_fail(EPROTO, "descriptor %d: a soft group of version %u, this library has %u",
			fd, head.version, SOFT_VERSION);
	else
		t3_fail(-ret, "descriptor %d: not a group of the soft engine",
			fd);
	return ret;
}

/* In a forked child: its parent's members are nothing of its own. */
static void fork_prepare(void)
{
	pthread_mutex_lock(&soft_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&soft_lock);
}

static void fork_child(void)
{
	soft_forks++;
	soft_domains = NULL;
	pthread_mutex_unlock(&soft_lock);
}

static void fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int soft_foreign(void)
{
	return t3_fail(EPERM, "the member belongs to the parent of this process: join again as another rank");
}

/* Under soft_lock. */
static int domain_make(int fd, const struct stat *st,
		       struct soft_domain **domain)
{
	struct soft_domain *d;
	struct soft_head head;
	int ret = read_head(fd, &head);
	u32 r;

	if (ret)
		return t3_fail(-ret, "descriptor %d: not a group of the soft engine, or of another version",
			       fd);
	d = calloc(1, sizeof(*d));
	if (!d)
		return t3_fail(ENOMEM, "t3_join: no memory");
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	d->ranks = head.ranks;
	d->arena_first = head.arena_first;
	d->arena_bytes = head.arena_bytes;
	for (r = 0; r < T3_MAX_RANKS; r++)
		d->pidfd[r] = -1;
	d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (d->fd < 0) {
		ret = t3_fail(errno, "t3_join: dup: %s", strerror(errno));
		goto out_free;
	}
	d->head = mmap(NULL, head_bytes(d->ranks), PROT_READ | PROT_WRITE,
		       MAP_SHARED, d->fd, 0);
	if (d->head == MAP_FAILED) {
		ret = t3_fail(errno, "t3_join: mmap: %s", strerror(errno));
		goto out_close;
	}
	d->next = soft_domains;
	soft_domains = d;
	*domain = d;
	return 0;

out_close:
	close(d->fd);
out_free:
	free(d);
	return ret;
}

int soft_domain_get(int fd, struct soft_domain **domain)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct soft_domain *d;
	struct stat st;
	int ret = 0;

	if (fstat(fd, &st))
		return t3_fail(errno, "t3_join: descriptor %d: %s", fd,
			       strerror(errno));
	pthread_once(&once, fork_watch);
	pthread_mutex_lock(&soft_lock);
	for (d = soft_domains; d; d = d->next) {
		if (d->dev == st.st_dev && d->ino == st.st_ino)
			break;
	}
	if (!d)
		ret = domain_make(fd, &st, &d);
	if (!ret) {
		d->refs++;
		*domain = d;
	}
	pthread_mutex_unlock(&soft_lock);
	return ret;
}

static void domain_free(struct soft_domain *d)
{
	u32 r;

	while (d->maps) {
		struct soft_map *map = d->maps;

		d->maps = map->next;
		munmap(map->memory, map->bytes);
		free(map);
	}
	for (r = 0; r < d->ranks; r++) {
		if (d->pidfd[r] >= 0)
			close(d->pidfd[r]);
	}
	munmap(d->head, head_bytes(d->ranks));
	close(d->fd);
	free(d);
}

void soft_domain_put(struct soft_domain *domain)
{
	struct soft_domain **d;

	pthread_mutex_lock(&soft_lock);
	if (--domain->refs) {
		pthread_mutex_unlock(&soft_lock);
		return;
	}
	for (d = &soft_domains; *d != domain; d = &(*d)->next)
		;
	*d = domain->next;
	pthread_mutex_unlock(&soft_lock);
	domain_free(domain);
}

bool soft_in_arena(const struct soft_domain *domain, u32 rank, u64 at,
		   u64 bytes)
{
	u64 first = domain->arena_first + rank * domain->arena_bytes;

	return bytes && at >= first && bytes <= domain->arena_bytes &&
	       at - first <= domain->arena_bytes - bytes;
}

/* Under soft_lock. */
static struct soft_map *map_make(struct soft_domain *domain, u64 at, u64 bytes,
				 bool write)
{
	struct soft_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->at = at & ~(u64)(SOFT_GRAIN - 1);
	map->bytes = (at + bytes - map->at + SOFT_GRAIN - 1) &
		     ~(u64)(SOFT_GRAIN - 1);
	map->write = write;
	map->memory = mmap(NULL, map->bytes,
			   PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED,
			   domain->fd, map->at);
	if (map->memory == MAP_FAILED) {
		free(map);
		return NULL;
	}
	if (map->bytes >= SOFT_HUGE)
		madvise(map->memory, map->bytes, MADV_HUGEPAGE);
	map->next = domain->maps;
	domain->maps = map;
	return map;
}

void *soft_map(struct soft_domain *domain, u64 at, u64 bytes, bool write)
{
	struct soft_map *map;
	void *memory = NULL;

	pthread_mutex_lock(&soft_lock);
	for (map = domain->maps; map; map = map->next) {
		if (at >= map->at && at + bytes <= map->at + map->bytes &&
		    map->write >= write)
			break;
	}
	if (!map)
		map = map_make(domain, at, bytes, write);
	if (map) {
		map->refs++;
		memory = map->memory + (at - map->at);
	}
	pthread_mutex_unlock(&soft_lock);
	return memory;
}

void soft_unmap(struct soft_domain *domain, const void *memory)
{
	const u8 *p = memory;
	struct soft_map **at;
	struct soft_map *map;

	pthread_mutex_lock(&soft_lock);
	for (at = &domain->maps; *at; at = &(*at)->next) {
		if (p >= (*at)->memory && p < (*at)->memory + (*at)->bytes)
			break;
	}
	map = *at;
	if (map && !--map->refs) {
		*at = map->next;
		munmap(map->memory, map->bytes);
		free(map);
	}
	pthread_mutex_unlock(&soft_lock);
}
