// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Becoming a rank, and ceasing to be one.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft.h"

/* The library's threads take no signals: those are for the program's own. */
int soft_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return t3_fail(error, "t3_join: starting a thread: %s",
			       strerror(error));
	return 0;
}

/* A rank is taken once in a group's life. */
static int claim(struct soft_member *m)
{
	struct soft_slot *slot = m->slot;

	if (t3_cmpxchg32(&slot->state, SOFT_FREE, SOFT_JOINING) != SOFT_FREE)
		return t3_fail(EEXIST, "t3_join: rank %u is or was taken by process %u",
			       m->m.rank, t3_load(&slot->pid));
	t3_store(&slot->pid, (u32)getpid());
	t3_store(&slot->start, soft_start_time(getpid()));
	t3_store(&slot->pidns, soft_pid_namespace());
	return 0;
}

static u32 workers_wanted(const struct soft_member *m, u32 cpus)
{
	u32 workers = m->m.options.workers;

	if (workers == T3_NO_WORKERS)
		return 0;
	if (workers)
		return workers;
	return cpus > m->m.ranks ? 1 : 0;
}

static void stop_workers(struct soft_member *m)
{
	u32 i;

	t3_store_release(&m->stop, 1);
	soft_ring(m->slot, true);
	for (i = 0; i < m->workers; i++)
		pthread_join(m->worker[i], NULL);
	free(m->worker);
	m->worker = NULL;
	m->workers = 0;
}

static int start_workers(struct soft_member *m, u32 wanted)
{
	int ret;

	if (!wanted)
		return 0;
	m->worker = calloc(wanted, sizeof(*m->worker));
	if (!m->worker)
		return t3_fail(ENOMEM, "t3_join: no memory");
	for (; m->workers < wanted; m->workers++) {
		ret = soft_thread(&m->worker[m->workers], soft_worker, m);
		if (ret) {
			stop_workers(m);
			return ret;
		}
	}
	return 0;
}

static void be_local(struct soft_member *m, struct soft_member *who)
{
	pthread_mutex_lock(&soft_lock);
	m->domain->member[m->m.rank] = who;
	pthread_mutex_unlock(&soft_lock);
}

static int begin(struct soft_member *m)
{
	u32 cpus;
	int ret;

	if (soft_is_broken(m))
		return soft_fail_broken(m);
	ret = claim(m);
	if (ret)
		return ret;
	cpus = soft_cpus_publish(m->slot);
	m->crowded = m->m.ranks > cpus;
	m->spin = SOFT_SPIN_NS;
	be_local(m, m);
	ret = soft_watch_start(m);
	if (ret)
		goto out_left;
	ret = start_workers(m, workers_wanted(m, cpus));
	if (ret)
		goto out_watch;
	return 0;

out_watch:
	t3_store_release(&m->slot->state, SOFT_LEFT);
	soft_watch_stop(m);
out_left:
	t3_store_release(&m->slot->state, SOFT_LEFT);
	be_local(m, NULL);
	return ret;
}

int soft_join(struct t3_member *member, int fd)
{
	struct soft_member *m = soft_member(member);
	const struct soft_hooks *hooks = m->hooks;
	int ret;

	memset((char *)m + sizeof(m->m), 0, sizeof(*m) - sizeof(m->m));
	m->hooks = hooks;
	m->generation = soft_forks;
	ret = soft_domain_get(fd, &m->domain);
	if (ret)
		return ret;
	if (member->rank >= m->domain->ranks) {
		ret = t3_fail(ERANGE, "t3_join: rank %u, the group has 0 .. %u",
			      member->rank, m->domain->ranks - 1);
		goto out_domain;
	}
	m->slot = soft_slot_of(m, member->rank);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->check, NULL);
	ret = begin(m);
	if (!ret)
		return 0;
	pthread_mutex_destroy(&m->check);
	pthread_mutex_destroy(&m->lock);
out_domain:
	soft_domain_put(m->domain);
	return ret;
}

/* What is left of plans that could not be deleted: an epoch was armed. */
static void drop_plans(struct soft_member *m)
{
	u32 slot;

	for (slot = 0; slot < T3_MAX_PLANS; slot++) {
		struct soft_plan *plan = m->plan[slot];

		if (plan)
			soft_plan_release(plan, SOFT_DELETED);
	}
}

static int break_as_left(struct soft_member *m)
{
	const struct soft_cause cause = {
		.error = EOWNERDEAD,
		.why = SOFT_WHY_LEFT,
		.rank = m->m.rank,
		.slot = T3_NONE,
		.block = T3_NONE,
	};

	soft_break(m, &cause);
	return soft_fail_broken(m);
}

int soft_leave(struct t3_member *member, bool armed)
{
	struct soft_member *m = soft_member(member);
	u32 rank;
	int ret = 0;

	if (soft_is_foreign(m))
		return soft_foreign();
	if (armed)
		ret = break_as_left(m);
	else if (soft_is_broken(m))
		soft_drain(m);
	stop_workers(m);
	drop_plans(m);
	be_local(m, NULL);
	t3_store_release(&m->slot->state, SOFT_LEFT);
	for (rank = 0; rank < member->ranks; rank++)
		soft_ring(soft_slot_of(m, rank), false);
	soft_watch_stop(m);
	soft_arena_end(m);
	soft_domain_put(m->domain);
	pthread_mutex_destroy(&m->check);
	pthread_mutex_destroy(&m->lock);
	return ret;
}
