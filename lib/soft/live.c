// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Who lives. Each member has a thread, the watcher, that owns a robust futex
 * in the member's slot. When the thread ends for any reason, the kernel marks
 * the futex: at exit, at exec, at SIGKILL, and whatever forked children live
 * on. Everybody else just loads the word, also from another PID namespace.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft.h"

#define WATCH_NS	50000000	/* between looks while something is armed */
#define IDLE_LOOKS	20		/* with nothing armed before it sleeps */
#define GRACE_NS	1000000000	/* a death that no pidfd confirms */

/* When a process began; 0 where that can't be known. */
u64 soft_start_time(pid_t pid)
{
	unsigned long long start = 0;
	char line[1024];
	char *p;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/stat", pid);
	f = fopen(line, "re");
	if (!f)
		return 0;
	/* The name, in brackets, may hold anything: go on from its end. */
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (p)
		sscanf(p + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		       &start);
	fclose(f);
	return start;
}

u64 soft_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/* Does the rank's process number mean the same here as there? */
bool soft_same_pids(struct soft_member *m, u32 rank)
{
	u64 theirs = t3_load(&soft_slot_of(m, rank)->pidns);

	return theirs && theirs == t3_load(&m->slot->pidns);
}

u32 soft_gone(struct soft_member *m, u32 rank)
{
	struct soft_slot *slot = soft_slot_of(m, rank);
	u32 state = t3_load_acquire(&slot->state);

	if (likely(state == SOFT_JOINED))
		return t3_load_acquire(&slot->word) & FUTEX_OWNER_DIED ?
		       SOFT_WHY_DIED : 0;
	return state == SOFT_LEFT ? SOFT_WHY_LEFT : 0;
}

/* A descriptor of a rank's process, if it is still the one that joined. */
static int hold_peer(struct soft_member *m, u32 rank)
{
	struct soft_slot *slot = soft_slot_of(m, rank);
	pid_t pid = (pid_t)t3_load(&slot->pid);
	int fd;

	if (!soft_same_pids(m, rank) || pid <= 0)
		return -1;
	fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -1;
	if (soft_start_time(pid) == t3_load(&slot->start))
		return fd;
	close(fd);
	return -1;
}

void soft_hold_peers(struct soft_member *m)
{
	struct soft_domain *d = m->domain;
	u32 r;

	pthread_mutex_lock(&soft_lock);
	for (r = 0; r < d->ranks; r++) {
		if (d->member[r] || d->pidfd_tried >> r & 1)
			continue;
		d->pidfd_tried |= 1ULL << r;
		d->pidfd[r] = hold_peer(m, r);
	}
	pthread_mutex_unlock(&soft_lock);
}

/*
 * The watcher is not the first nor the last thread of its process to end. The
 * process is gone for sure when its pidfd says so. Where there is none, or the
 * process lives on under another program, its other threads were killed no
 * later than the watcher; a second is ample for them to notice.
 */
bool soft_surely_dead(struct soft_member *m, u32 rank)
{
	struct pollfd pollfd = { .fd = m->domain->pidfd[rank], .events = POLLIN };
	u64 since;

	if (soft_gone(m, rank) != SOFT_WHY_DIED)
		return false;
	if (pollfd.fd >= 0 && poll(&pollfd, 1, 0) == 1)
		return true;
	pthread_mutex_lock(&m->check);
	if (!m->dead_since[rank])
		m->dead_since[rank] = t3_now();
	since = m->dead_since[rank];
	pthread_mutex_unlock(&m->check);
	return t3_now() - since > GRACE_NS;
}

/**
 * struct robust - the watcher's robust list: one futex, in shared memory
 * @head: what the kernel reads
 * @entry: the only entry
 *
 * The watcher's own; the kernel reads it when the watcher ends.
 */
struct robust {
	struct robust_list_head head;
	struct robust_list entry;
};

static void robust_hold(struct robust *robust, u32 *word)
{
	robust->entry.next = &robust->head.list;
	robust->head.list.next = &robust->entry;
	robust->head.futex_offset = (long)((char *)word - (char *)&robust->entry);
	robust->head.list_op_pending = NULL;
	t3_store_release(word, (u32)syscall(SYS_gettid));
	syscall(SYS_set_robust_list, &robust->head, sizeof(robust->head));
}

static bool any_armed(struct soft_member *m)
{
	u64 live = t3_load_acquire(&m->live);
	bool armed = m->hooks && m->hooks->tick(m);

	for (; live && !armed; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(m, slot);

		if (!plan)
			continue;
		armed = soft_armed(plan, m->m.rank);
		soft_plan_put(m, slot);
	}
	return armed;
}

/* Sleep until something is armed; pairs with soft_watch_wake(). */
static void watch_idle(struct soft_member *m)
{
	u32 word = t3_load_acquire(&m->watch_word);

	__atomic_store_n(&m->watch_idle, 1, __ATOMIC_SEQ_CST);
	t3_fence();
	if (!any_armed(m) && !t3_load_acquire(&m->stop))
		soft_futex_wait(&m->watch_word, word, 3600000000000ULL);
	t3_store(&m->watch_idle, 0);
}

void soft_watch_wake(struct soft_member *m)
{
	t3_fence();
	if (likely(!t3_load(&m->watch_idle)))
		return;
	t3_add32(&m->watch_word, 1);
	soft_futex_wake(&m->watch_word);
}

static void *watch(void *arg)
{
	struct soft_member *m = arg;
	u64 period = WATCH_NS;
	struct robust robust;
	u32 idle = 0;

	robust_hold(&robust, &m->slot->word);
	t3_store_release(&m->slot->state, SOFT_JOINED);
	t3_store_release(&m->watching, 1);
	soft_futex_wake(&m->watching);
	if (m->m.options.watchdog_ms < 200)
		period = m->m.options.watchdog_ms * 250000ULL;
	while (!t3_load_acquire(&m->stop)) {
		u32 word = t3_load_acquire(&m->watch_word);

		idle = any_armed(m) ? 0 : idle + 1;
		if (idle > IDLE_LOOKS) {
			watch_idle(m);
			idle = 0;
			continue;
		}
		soft_check(m);
		if (!t3_load_acquire(&m->stop))
			soft_futex_wait(&m->watch_word, word, period);
	}
	/* In good order: nothing is left for the kernel to mark. */
	robust.head.list.next = &robust.head.list;
	return NULL;
}

int soft_watch_start(struct soft_member *m)
{
	int ret = soft_thread(&m->watcher, watch, m);

	if (ret)
		return ret;
	while (!t3_load_acquire(&m->watching))
		soft_futex_wait(&m->watching, 0, 10000000);
	return 0;
}

/* The slot's state is LEFT by now. */
void soft_watch_stop(struct soft_member *m)
{
	t3_add32(&m->watch_word, 1);
	soft_futex_wake(&m->watch_word);
	pthread_join(m->watcher, NULL);
}
