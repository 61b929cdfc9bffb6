// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Epochs: queued behind the user's own work, and not looked at again until
 * somebody asks.
 */
#include "gpu.h"

#define SPIN_NS		50000
#define LOOK_NS		20000

static struct gpu_member *member_of(struct gpu_plan *plan)
{
	return gpu_member(plan->s.p.member);
}

/* ---- what the compiler's operations become ---- */

static int put_wait(void *arg, u32 stream, u32 word, u32 epoch)
{
	struct gpu_plan *plan = arg;
	struct gpu_member *m = member_of(plan);
	u32 rank = m->s.m.rank;

	if (!plan->captured)
		return gpu->wait(m->device, plan->stream[stream],
				 plan->word[rank] + word, epoch);
	/* Inside a graph order is by edges. */
	if (plan->writer[word] == rank)
		return gpu->after(m->device, plan->stream[stream],
				  plan->event[word]);
	return gpu->wait_at(m->device, plan->stream[stream],
			    plan->word[rank] + word, &plan->share->armed);
}

static int put_write(void *arg, u32 stream, u32 owner, u32 word, u32 epoch)
{
	struct gpu_plan *plan = arg;
	struct gpu_member *m = member_of(plan);

	if (!plan->captured)
		return gpu->write(m->device, plan->stream[stream],
				  plan->word[owner] + word, epoch);
	if (owner == m->s.m.rank)
		return gpu->mark(m->device, plan->stream[stream],
				 plan->event[word]);
	return gpu->write_at(m->device, plan->stream[stream],
			     plan->word[owner] + word, &plan->share->armed);
}

static int put_transfer(void *arg, u32 stream, const struct t3_gpu_op *op,
			const struct t3_gpu_place *source)
{
	struct gpu_plan *plan = arg;
	struct t3_gpu_transfer t;
	u32 k;

	t.by = op->kind == T3_GPU_COPY ? T3_GPU_BY_ENGINE :
	       op->kind == T3_GPU_MOVE ? T3_GPU_BY_KERNEL : T3_GPU_BY_SUM;
	t.dtype = op->dtype;
	t.rows = op->rows;
	t.sources = op->sources;
	t.width = op->width;
	t.to = plan->base[op->to.rank][op->to.region] + op->to.offset;
	t.pitch = op->to.pitch;
	for (k = 0; k < op->sources; k++) {
		t.from[k] = plan->base[source[k].rank][source[k].region] +
			    source[k].offset;
		t.from_pitch[k] = source[k].pitch;
	}
	return gpu->transfer(member_of(plan)->device, plan->stream[stream], &t);
}

static const struct t3_gpu_backend backend = {
	.wait = put_wait,
	.write = put_write,
	.transfer = put_transfer,
};

/* Half an epoch is queued and no more can be: nobody can go on. */
static int gpu_failed(struct gpu_plan *plan, int ret)
{
	struct gpu_member *m = member_of(plan);
	const struct soft_cause cause = {
		.error = EIO,
		.why = SOFT_WHY_GPU,
		.rank = m->s.m.rank,
		.slot = plan->s.p.slot,
		.block = T3_NONE,
	};

	soft_break(&m->s, &cause);
	return gpu_fail("queueing an epoch, and the group broke", ret);
}

/* So that it can be seen when all that is ours on the user's stream has run. */
static int mark_tail(struct gpu_plan *plan)
{
	if (plan->captured)
		return 0;
	return gpu->mark(member_of(plan)->device, plan->stream[0], plan->tail);
}

static int submit(struct gpu_plan *plan, u32 done)
{
	int ret = t3_gpu_submit(&plan->submitter, &backend, plan, done);

	if (!ret && done != T3_GPU_RETIRE)
		ret = mark_tail(plan);
	return ret ? gpu_failed(plan, ret) : 0;
}

/* ---- arming ---- */

/* Under submit. Another plan's epoch under way that writes the same bytes? */
static int check_conflicts(struct gpu_member *m, struct gpu_plan *plan)
{
	u64 others = t3_load_acquire(&plan->s.conflicts);

	for (; others; others &= others - 1) {
		u32 slot = __builtin_ctzll(others);
		struct soft_plan *other = soft_plan_get(&m->s, slot);
		bool armed;

		if (!other)
			continue;
		armed = ((struct gpu_plan *)other)->submitted !=
			((struct gpu_plan *)other)->waited;
		soft_plan_put(&m->s, slot);
		if (armed)
			return t3_fail(EBUSY, "t3_arm: plan %u, which writes some of the same bytes as plan %u, is armed",
				       slot, plan->s.p.slot);
	}
	return 0;
}

static int check_arm(struct gpu_member *m, struct gpu_plan *plan, bool queued)
{
	u32 rank = m->s.m.rank;

	if (plan->submitted != plan->waited || plan->captured ||
	    ((!queued || plan->replays) && soft_armed(&plan->s, rank)))
		return t3_fail(EBUSY, "t3_arm: epoch %u of plan %u has not %s",
			       soft_epoch(&plan->s, rank), plan->s.p.slot,
			       queued ? "been waited for" : "retired");
	return check_conflicts(m, plan);
}

/*
 * Announce that something of ours runs, then look for a break. The sentence is
 * made when submit is free: draining takes it.
 */
static int enter(struct gpu_member *m)
{
	if (!m->busy) {
		t3_add32(&m->s.running, 1);
		t3_add32(&m->s.slot->inflight, 1);
		t3_store(&m->busy, true);
	}
	t3_fence();
	return soft_is_broken(&m->s) ? -EOWNERDEAD : 0;
}

/* All of the plan's streams become part of the graph. */
static int fork_streams(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	int ret = gpu->begin_at(m->device, plan->stream[0], &plan->share->armed);
	u32 i;

	if (!ret)
		ret = gpu->mark(m->device, plan->stream[0], plan->fork);
	for (i = 1; i <= plan->streams && !ret; i++)
		ret = gpu->after(m->device, plan->stream[i], plan->fork);
	return ret ? gpu_failed(plan, ret) : 0;
}

static int join_streams(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	int ret = gpu->write_at(m->device, plan->stream[0],
				&plan->share->retired, &plan->share->armed);
	u32 i;

	for (i = 1; i <= plan->streams && !ret; i++) {
		ret = gpu->mark(m->device, plan->stream[i], plan->join[i]);
		if (!ret)
			ret = gpu->after(m->device, plan->stream[0],
					 plan->join[i]);
	}
	return ret ? gpu_failed(plan, ret) : 0;
}

/* Productions whose blocks are all made let the epoch go on. */
static int go_on(struct gpu_plan *plan)
{
	u32 rank = plan->s.p.member->rank;
	u32 first = plan->s.graph.first_block[rank];
	int ret = 0;

	while (!ret && t3_gpu_turn(&plan->submitter) == T3_GPU_PRODUCE) {
		const struct t3_gpu_op *op = t3_gpu_turn_op(&plan->submitter);
		u32 i;

		for (i = 0; i < op->nodes; i++)
			if (!plan->made[plan->list.node[op->first_node + i] - first])
				return 0;
		ret = submit(plan, T3_GPU_PRODUCE);
	}
	return ret;
}

static void begin(struct gpu_plan *plan, void *stream)
{
	const struct t3_graph *g = &plan->s.graph;
	u32 rank = plan->s.p.member->rank;
	u32 first = g->first_block[rank], i;

	plan->stream[0] = stream;
	plan->submitter.next = 0;
	/* What no tiles produce is produced by arming. */
	for (i = first; i < g->first_block[rank + 1]; i++) {
		plan->have[i - first] = 0;
		plan->made[i - first] = !g->tiles[i];
	}
}

/* Under submit. */
static int arm(struct gpu_plan *plan, void *stream, bool queued)
{
	struct gpu_member *m = member_of(plan);
	struct soft_share *share = plan->s.share[m->s.m.rank];
	int capturing = queued ? gpu->capturing(m->device, stream) : 0;
	int ret;

	if (capturing < 0)
		return gpu_fail("t3_arm", capturing);
	ret = check_arm(m, plan, queued);
	if (!ret)
		ret = enter(m);
	if (ret)
		return ret;
	begin(plan, stream);
	plan->captured = capturing;
	if (capturing) {
		plan->replays = true;
		ret = fork_streams(plan);
	} else {
		plan->submitted = t3_load(&share->armed) + 1;
		plan->waited = plan->submitted - 1;
		plan->s.p.epoch = plan->submitted;
		plan->submitter.epoch = plan->submitted;
		t3_store_release(&share->armed, plan->submitted);
	}
	if (!ret)
		ret = submit(plan, T3_GPU_ARM);
	return ret ? ret : go_on(plan);
}

/* With submit free again. */
static int told(struct gpu_member *m, int ret)
{
	return ret == -EOWNERDEAD ? soft_fail_broken(&m->s) : ret;
}

static int arm_locked(struct t3_plan *p, void *stream, bool queued)
{
	struct gpu_member *m = gpu_member(p->member);
	int ret;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	if (soft_is_broken(&m->s))
		return soft_fail_broken(&m->s);
	ret = soft_check_needed(&m->s, soft_plan(p));
	if (ret)
		return ret;
	pthread_mutex_lock(&m->submit);
	ret = arm(gpu_plan(p), stream, queued);
	pthread_mutex_unlock(&m->submit);
	soft_watch_wake(&m->s);
	return told(m, ret);
}

int gpu_arm(struct t3_plan *p)
{
	return arm_locked(p, gpu_plan(p)->own, false);
}

int gpu_arm_stream(struct t3_plan *p, void *stream)
{
	return arm_locked(p, stream, true);
}

void *gpu_stream_of(struct t3_plan *p)
{
	return gpu_plan(p)->stream[0];
}

uint32_t *gpu_tiles_of(struct t3_plan *p)
{
	return gpu_plan(p)->tiles;
}

/* ---- producing ---- */

static bool is_open(const struct gpu_plan *plan)
{
	return plan->captured || plan->submitted != plan->waited;
}

static int count_tiles(struct gpu_plan *plan, const struct t3_tiles *tiles)
{
	u32 rank = plan->s.p.member->rank;
	const struct t3_graph *g = &plan->s.graph;
	u32 all = g->tiles[g->first_block[rank] + tiles->block];
	u32 *have = &plan->have[tiles->block];

	if (!all)
		return t3_fail(EINVAL, "block %u of rank %u is not produced by tiles",
			       tiles->block, rank);
	if (tiles->tiles > all - *have)
		return t3_fail(EPROTO, "block %u of rank %u: %u tiles more than its %u in an epoch",
			       tiles->block, rank, tiles->tiles, all);
	*have += tiles->tiles;
	plan->made[tiles->block] = *have == all;
	return 0;
}

static int tiles(struct gpu_member *m, struct gpu_plan *plan,
		 const struct t3_tiles *entry, u32 n)
{
	int ret = 0, more;
	u32 i;

	if (soft_is_broken(&m->s))
		return -EOWNERDEAD;
	if (!is_open(plan))
		return t3_fail(EPROTO, "block %u of rank %u: no epoch of plan %u is armed",
			       entry->block, m->s.m.rank, plan->s.p.slot);
	for (i = 0; i < n && !ret; i++)
		ret = count_tiles(plan, &entry[i]);
	/* Those ahead of a wrong one count. */
	more = go_on(plan);
	return ret ? ret : more;
}

int gpu_tiles(struct t3_plan *p, const struct t3_tiles *entry, uint32_t n)
{
	struct gpu_member *m = gpu_member(p->member);
	int ret;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	if (!n)
		return 0;
	pthread_mutex_lock(&m->submit);
	ret = tiles(m, gpu_plan(p), entry, n);
	pthread_mutex_unlock(&m->submit);
	return told(m, ret);
}

/* A stream of our own waits for the tiles of each production, in turn. */
static int await_tiles(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	const struct t3_graph *g = &plan->s.graph;
	const struct t3_gpu_op *op = t3_gpu_turn_op(&plan->submitter);
	u32 first = g->first_block[m->s.m.rank], i;
	int ret = 0;

	for (i = 0; i < op->nodes && !ret; i++) {
		u32 node = plan->list.node[op->first_node + i];

		if (g->tiles[node])
			ret = gpu->wait(m->device, plan->counter,
					plan->tiles + (node - first),
					plan->submitter.epoch * g->tiles[node]);
	}
	return ret ? gpu_failed(plan, ret) : submit(plan, T3_GPU_PRODUCE);
}

static int produced_tiles(struct gpu_member *m, struct gpu_plan *plan)
{
	void *user = plan->stream[0];
	int ret = 0;

	if (soft_is_broken(&m->s))
		return -EOWNERDEAD;
	if (!is_open(plan))
		return t3_fail(EPROTO, "t3_produced_tiles_stream: no epoch of plan %u is armed",
			       plan->s.p.slot);
	if (!plan->counter)
		return t3_fail(EOPNOTSUPP, "t3_produced_tiles_stream: plan %u was made with one tile to a block",
			       plan->s.p.slot);
	if (plan->captured)
		return t3_fail(EOPNOTSUPP, "t3_produced_tiles_stream: the stream is recorded into a graph");
	plan->stream[0] = plan->counter;
	while (!ret && t3_gpu_turn(&plan->submitter) == T3_GPU_PRODUCE)
		ret = await_tiles(plan);
	plan->stream[0] = user;
	return ret;
}

int gpu_produced_tiles(struct t3_plan *p)
{
	struct gpu_member *m = gpu_member(p->member);
	int ret;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	pthread_mutex_lock(&m->submit);
	ret = produced_tiles(m, gpu_plan(p));
	pthread_mutex_unlock(&m->submit);
	return told(m, ret);
}

/* ---- waiting ---- */

/* Under submit: the end of an epoch that is all produced. */
static int end(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	int ret = 0;

	if (t3_gpu_turn(&plan->submitter) == T3_GPU_RETIRE)
		ret = submit(plan, T3_GPU_RETIRE);
	if (ret)
		return ret;
	if (plan->captured) {
		ret = join_streams(plan);
	} else {
		ret = gpu->write(m->device, plan->stream[0],
				 &plan->share->retired, plan->submitted);
		if (!ret)
			ret = mark_tail(plan);
		if (ret)
			ret = gpu_failed(plan, ret);
	}
	plan->captured = false;
	plan->waited = plan->submitted;
	return ret;
}

static bool all_produced(struct gpu_plan *plan)
{
	u32 turn = t3_gpu_turn(&plan->submitter);

	return !turn || turn == T3_GPU_RETIRE;
}

int gpu_wait_stream(struct t3_plan *p, void *stream)
{
	struct gpu_member *m = gpu_member(p->member);
	struct gpu_plan *plan = gpu_plan(p);
	int ret;

	(void)stream;
	if (soft_is_foreign(&m->s))
		return soft_foreign();
	pthread_mutex_lock(&m->submit);
	if (!is_open(plan))
		ret = t3_fail(EPROTO, "t3_wait_stream: no epoch of plan %u is armed",
			      p->slot);
	else if (!all_produced(plan))
		ret = t3_fail(EPROTO, "t3_wait_stream: not all steps of epoch %u of plan %u were reported",
			      p->epoch, p->slot);
	else
		ret = end(plan);
	pthread_mutex_unlock(&m->submit);
	if (!ret && soft_is_broken(&m->s))
		ret = soft_fail_broken(&m->s);
	return ret;
}

/*
 * Once the group has broken, words are set to let waiters go, here and at
 * peers, so that a retired epoch means nothing any more: look at the word
 * first, then for a break.
 */
static bool has_retired(struct gpu_member *m, struct gpu_plan *plan)
{
	u32 rank = m->s.m.rank;
	u32 epoch = plan->replays ? soft_epoch(&plan->s, rank) : plan->submitted;
	u32 retired = t3_load_acquire(&plan->s.share[rank]->retired);

	t3_fence();
	if (!soft_is_broken(&m->s))
		plan->retired = retired;
	return t3_reached(plan->retired, epoch) && plan->waited == plan->submitted;
}

/*
 * Has all that we queued run? What peers wait for may still be on its way when
 * our own end has come: who exits now would take it along.
 */
static bool has_told(struct gpu_member *m, struct gpu_plan *plan)
{
	bool told = gpu->passed(m->device, plan->tail) == 1;
	u32 i;

	for (i = 1; i <= plan->streams && told; i++)
		told = gpu->idle(m->device, plan->stream[i]) == 1;
	return told;
}

/* What was reported since makes it possible to wait for the end. */
static int try_end(struct gpu_member *m, struct gpu_plan *plan)
{
	int ret = 0;

	pthread_mutex_lock(&m->submit);
	if (plan->submitted != plan->waited && all_produced(plan) &&
	    !soft_is_broken(&m->s))
		ret = end(plan);
	pthread_mutex_unlock(&m->submit);
	return ret;
}

int gpu_wait(struct t3_plan *p, uint32_t timeout_ms)
{
	struct gpu_member *m = gpu_member(p->member);
	struct gpu_plan *plan = gpu_plan(p);
	u64 deadline = t3_deadline(timeout_ms);
	u64 spin = t3_now() + SPIN_NS;

	if (soft_is_foreign(&m->s))
		return soft_foreign();
	for (;;) {
		int ret = try_end(m, plan);
		u64 now;

		if (ret)
			return ret;
		if (has_retired(m, plan) && has_told(m, plan))
			return 0;
		if (soft_is_broken(&m->s))
			return soft_fail_broken(&m->s);
		now = t3_now();
		if (now >= deadline)
			return t3_fail(ETIME, "epoch %u of plan %u has not ended in %u ms%s",
				       p->epoch, p->slot, timeout_ms,
				       all_produced(plan) ? "" :
				       ": not all of its steps were reported");
		if (now > spin)
			t3_sleep(LOOK_NS, deadline);
	}
}

/* The GPU tells of whole epochs only: a block is final when all are. */
int gpu_wait_block(struct t3_plan *p, uint32_t block, uint32_t updates,
		   uint32_t timeout_ms)
{
	(void)block;
	(void)updates;
	return gpu_wait(p, timeout_ms);
}

int gpu_plan_del(struct t3_plan *p)
{
	struct gpu_member *m = gpu_member(p->member);
	struct gpu_plan *plan = gpu_plan(p);

	if (!soft_is_foreign(&m->s) && !soft_is_broken(&m->s) && is_open(plan))
		return t3_fail(EBUSY, "t3_plan_del: epoch %u of plan %u is armed",
			       p->epoch, p->slot);
	return soft_plan_del(p);
}
