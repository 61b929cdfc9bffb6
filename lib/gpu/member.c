// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Being a rank of the gpu engine: joining, leaving, and what the watcher does.
 */
#include <stdlib.h>

#include "gpu.h"

#define DRAIN_NS	5000000000ULL	/* longest wait for our own streams */

/* What the plans queued on the user's streams. */
static bool tails_passed(struct gpu_member *m)
{
	u64 live = t3_load_acquire(&m->s.live);
	bool passed = true;

	for (; live && passed; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(&m->s, slot);

		if (!plan)
			continue;
		passed = gpu->passed(m->device,
				     ((struct gpu_plan *)plan)->tail) == 1;
		soft_plan_put(&m->s, slot);
	}
	return passed;
}

bool gpu_is_idle(struct gpu_member *m)
{
	bool idle = tails_passed(m);
	struct gpu_stream *s;

	pthread_mutex_lock(&m->memory_lock);
	for (s = m->streams; s && idle; s = s->next)
		idle = gpu->idle(m->device, s->stream) == 1;
	pthread_mutex_unlock(&m->memory_lock);
	return idle;
}

/* Nothing of ours runs: peers that drain need not wait for us. */
static void rest(struct gpu_member *m)
{
	pthread_mutex_lock(&m->submit);
	if (m->busy && gpu_is_idle(m)) {
		m->busy = false;
		t3_add32(&m->s.slot->inflight, (u32)-1);
		t3_add32(&m->s.running, (u32)-1);
	}
	pthread_mutex_unlock(&m->submit);
}

/* The watcher: is anything queued, in a stream or by a graph? */
static bool tick(struct soft_member *s)
{
	struct gpu_member *m = (struct gpu_member *)s;
	u64 live = t3_load_acquire(&s->live);
	bool replays = false;

	rest(m);
	for (; live && !replays; live &= live - 1) {
		u32 slot = __builtin_ctzll(live);
		struct soft_plan *plan = soft_plan_get(s, slot);

		if (!plan)
			continue;
		replays = ((struct gpu_plan *)plan)->replays;
		soft_plan_put(s, slot);
	}
	return replays || t3_load(&m->busy);
}

/* What waits for a word is let go; what then runs does no harm, and ends. */
static void drain(struct soft_member *s)
{
	struct gpu_member *m = (struct gpu_member *)s;
	u64 deadline = t3_now() + DRAIN_NS;
	u64 live;

	while (t3_load(&m->busy) && t3_now() < deadline) {
		for (live = t3_load_acquire(&s->live); live; live &= live - 1) {
			u32 slot = __builtin_ctzll(live);
			struct soft_plan *plan = soft_plan_get(s, slot);

			if (!plan)
				continue;
			gpu_broken(plan);
			soft_plan_put(s, slot);
		}
		rest(m);
		t3_sleep(100000, deadline);
	}
	/* Memory that a transfer may still write is never given back. */
	if (t3_load(&m->busy))
		m->stuck = true;
}

static const struct soft_hooks hooks = {
	.magic = SOFT_MAGIC_GPU,
	.room = gpu_room,
	.make = gpu_make,
	.release = gpu_release,
	.broken = gpu_broken,
	.drain = drain,
	.tick = tick,
};

static int set_up(struct gpu_member *m)
{
	int ret = gpu->open(&m->device);

	if (ret)
		return gpu_fail("t3_join", ret);
	ret = gpu_canary_make(m);
	if (!ret)
		ret = gpu_door_open(m);
	if (ret) {
		gpu_memory_end(m);
		gpu->close(m->device);
	}
	return ret;
}

static void end_locks(struct gpu_member *m)
{
	pthread_mutex_destroy(&m->submit);
	pthread_mutex_destroy(&m->memory_lock);
}

int gpu_join(struct t3_member *member, int fd)
{
	struct gpu_member *m = gpu_member(member);
	int ret;

	memset((char *)m + sizeof(m->s), 0, sizeof(*m) - sizeof(m->s));
	m->door = -1;
	m->s.hooks = &hooks;
	/* Triggers are the GPU's. */
	member->options.workers = T3_NO_WORKERS;
	pthread_mutex_init(&m->memory_lock, NULL);
	pthread_mutex_init(&m->submit, NULL);
	ret = soft_join(member, fd);
	if (ret) {
		end_locks(m);
		return ret;
	}
	ret = set_up(m);
	if (ret) {
		/* The sentence is the first failure's. */
		soft_leave(member, false);
		end_locks(m);
	}
	return ret;
}

int gpu_leave(struct t3_member *member, bool armed)
{
	struct gpu_member *m = gpu_member(member);
	u64 deadline = t3_deadline(1000);
	int ret;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	gpu_door_close(m);
	/* What retired epochs still have to tell others. */
	while (!armed && t3_load(&m->busy) && t3_now() < deadline) {
		rest(m);
		t3_sleep(20000, deadline);
	}
	ret = soft_leave(member, armed);
	/* Its memory lives on where peers have it mapped. */
	gpu_memory_end(m);
	if (!m->stuck)
		gpu->close(m->device);
	end_locks(m);
	return ret;
}
