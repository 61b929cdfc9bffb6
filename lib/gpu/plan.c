// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making a plan: compile it, get hold of the memory that it works on, and of
 * everything that an epoch needs, so that nothing is made while one runs.
 */
#include <stdlib.h>

#include "../planner.h"
#include "gpu.h"

#define WORDS_MOST	(1U << 18)	/* of a process, in a plan */
#define STREAMS_MOST	7		/* beside the user's */
#define HARDWARE_QUEUES	32
#define SETTLE_NS	5000000000ULL

/* Every operation has a word at most for each process: that is ample. */
static u32 words_room(const struct t3_program *program, u32 ranks)
{
	u64 words = 2ULL * ranks * (program->blocks + program->triggers + 2) + 64;

	return words < WORDS_MOST ? (u32)words : WORDS_MOST;
}

u64 gpu_room(const struct t3_program *program, u32 ranks)
{
	return words_room(program, ranks) * sizeof(u32);
}

static struct gpu_member *member_of(struct gpu_plan *plan)
{
	return gpu_member(plan->s.p.member);
}

/* ---- compiling ---- */

/* In which order each rank produces: the planner says so to all alike. */
static int all_steps(struct gpu_plan *plan, struct t3_planned *part)
{
	const struct t3_plan *p = &plan->s.p;
	const struct t3_matrix *matrix = &p->region[0]->matrix;
	const struct t3_plan_request request = {
		.op = p->collective.op,
		.algorithm = p->planned.algorithm,
		.ranks = p->member->ranks,
		.rows = matrix->rows,
		.cols = matrix->cols,
		.dtype = matrix->dtype,
		.layout = matrix->layout,
		.block_bytes = p->collective.block_bytes,
		.tiles = p->collective.tiles ? p->collective.tiles : 1,
	};
	u32 r;
	int ret = 0;

	for (r = 0; r < request.ranks && !ret; r++)
		ret = t3_planner_make(&request, r, &part[r]);
	return ret;
}

/*
 * How many streams beside the user's. Ranks of one process share its hardware
 * queues and have no common order there: what waits on one's stream may not
 * stand in front of what another waits for. All ranks know who shares a process,
 * so all come to the same number.
 */
static u32 streams_for(struct gpu_plan *plan)
{
	struct soft_member *m = &member_of(plan)->s;
	u32 most = 1, streams, r, q;

	for (r = 0; r < m->m.ranks; r++) {
		u32 pid = t3_load(&soft_slot_of(m, r)->pid), same = 0;

		for (q = 0; q < m->m.ranks; q++)
			same += t3_load(&soft_slot_of(m, q)->pid) == pid;
		if (same > most)
			most = same;
	}
	if (most * 4 > HARDWARE_QUEUES)
		return 0;
	/* Beside the user's, the plan's own, and the plug-in's. */
	streams = HARDWARE_QUEUES / most - 3;
	if (streams > STREAMS_MOST)
		streams = STREAMS_MOST;
	return streams < m->m.ranks ? streams : m->m.ranks;
}

static int compile_parts(struct gpu_plan *plan, const struct soft_copy *copy,
			 const struct t3_planned *part)
{
	const struct t3_program *prog[T3_MAX_RANKS] = { NULL };
	const u32 *step[T3_MAX_RANKS];
	u32 steps[T3_MAX_RANKS];
	u32 ranks = plan->s.p.member->ranks, r;
	const struct t3_gpu_mapping map = {
		.streams = 1 + streams_for(plan),
		.step = step,
		.steps = steps,
	};
	int ret;

	for (r = 0; r < ranks; r++) {
		prog[r] = &copy[r].program;
		step[r] = part[r].step;
		steps[r] = part[r].steps;
	}
	plan->streams = map.streams - 1;
	ret = t3_gpu_compile(&plan->list, prog, &plan->s.graph, &map);
	if (ret)
		return t3_fail(-ret, "t3_plan_add: compiling the plan: %s",
			       strerror(-ret));
	for (r = 0; r < ranks; r++)
		if (plan->list.words[r] > words_room(prog[r], ranks))
			return t3_fail(E2BIG, "t3_plan_add: rank %u would have %u words, allowed are %u",
				       r, plan->list.words[r],
				       words_room(prog[r], ranks));
	return 0;
}

static int compile(struct gpu_plan *plan, const struct soft_copy *copy)
{
	u32 ranks = plan->s.p.member->ranks, r;
	struct t3_planned *part = calloc(ranks, sizeof(*part));
	int ret;

	if (!part)
		return t3_fail(ENOMEM, "t3_plan_add: no memory");
	ret = all_steps(plan, part);
	if (!ret)
		ret = compile_parts(plan, copy, part);
	for (r = 0; r < ranks; r++)
		t3_planner_free(&part[r]);
	free(part);
	return ret;
}

/* ---- memory ---- */

static int find_base(struct gpu_plan *plan, const struct t3_gpu_place *place,
		     const struct soft_copy *copy)
{
	struct gpu_member *m = member_of(plan);
	const struct soft_place *where = &copy[place->rank].place[place->region];
	char **base = &plan->base[place->rank][place->region];
	int ret;

	if (*base)
		return 0;
	if (place->rank == m->s.m.rank) {
		*base = (char *)where->base;
		return 0;
	}
	ret = gpu_pair_test(m, place->rank);
	if (ret)
		return ret;
	return gpu_import_get(m, place->rank, where->base, where->bytes,
			      &plan->import[place->rank][place->region], base);
}

static int bind_memory(struct gpu_plan *plan, const struct soft_copy *copy)
{
	const struct t3_gpu_list *list = &plan->list;
	u32 i, k;
	int ret = 0;

	for (i = 0; i < list->ops && !ret; i++) {
		const struct t3_gpu_op *op = &list->op[i];

		if (op->process != plan->s.p.member->rank || !op->sources)
			continue;
		ret = find_base(plan, &op->to, copy);
		for (k = 0; k < op->sources && !ret; k++)
			ret = find_base(plan, &list->source[op->first_source + k],
					copy);
	}
	return ret;
}

/* The words of all, and our own share, as the GPU sees them. */
static int bind_words(struct gpu_plan *plan, const struct soft_copy *copy)
{
	struct gpu_member *m = member_of(plan);
	u32 r;

	for (r = 0; r < m->s.m.ranks; r++) {
		const struct t3_program *program = &copy[r].program;
		u64 words_at = soft_share_bytes(program);
		char *memory = (char *)plan->s.share[r];
		u64 bytes = words_at + gpu_room(program, m->s.m.ranks);
		void *at;
		int ret;

		bytes = (bytes + SOFT_PAGE - 1) & ~(u64)(SOFT_PAGE - 1);
		ret = gpu->pin(m->device, memory, bytes, &at);
		if (ret)
			return gpu_fail("t3_plan_add: pinning words", ret);
		plan->pinned[r] = memory;
		plan->word[r] = (u32 *)((char *)at + words_at);
		if (r != m->s.m.rank)
			continue;
		plan->share = at;
		plan->own_word = (u32 *)(memory + words_at);
	}
	return 0;
}

/* ---- the rest ---- */

static int take_streams(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	bool tiles = plan->s.p.collective.tiles > 1;
	u32 i;

	plan->own = gpu_stream_take(m);
	if (tiles)
		plan->counter = gpu_stream_take(m);
	for (i = 1; i <= plan->streams; i++)
		plan->stream[i] = gpu_stream_take(m);
	for (i = 1; i <= plan->streams; i++)
		if (!plan->stream[i])
			break;
	if (!plan->own || (tiles && !plan->counter) || i <= plan->streams)
		return gpu_fail("t3_plan_add: making streams", EIO);
	return 0;
}

/* Who writes each of our words, and a mark for those that we write. */
static int make_marks(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	u32 rank = m->s.m.rank, words = plan->list.words[rank], i;
	int ret = 0;

	plan->writer = calloc(words + 1, sizeof(*plan->writer));
	plan->event = calloc(words + 1, sizeof(*plan->event));
	if (!plan->writer || !plan->event)
		return t3_fail(ENOMEM, "t3_plan_add: no memory");
	for (i = 0; i < plan->list.ops && !ret; i++) {
		const struct t3_gpu_op *op = &plan->list.op[i];

		if (op->kind != T3_GPU_WRITE || op->owner != rank)
			continue;
		plan->writer[op->word] = op->process;
		if (op->process == rank)
			ret = gpu->event(m->device, &plan->event[op->word]);
	}
	if (!ret)
		ret = gpu->event(m->device, &plan->tail);
	if (!ret)
		ret = gpu->event(m->device, &plan->fork);
	for (i = 1; i <= plan->streams && !ret; i++)
		ret = gpu->event(m->device, &plan->join[i]);
	return ret ? gpu_fail("t3_plan_add: making events", ret) : 0;
}

static int make_counters(struct gpu_plan *plan)
{
	u32 blocks = plan->s.p.planned.program.blocks;
	void *tiles;
	int ret;

	plan->have = calloc(blocks + 1, sizeof(*plan->have));
	plan->made = calloc(blocks + 1, sizeof(*plan->made));
	if (!plan->have || !plan->made)
		return t3_fail(ENOMEM, "t3_plan_add: no memory");
	ret = gpu_alloc(plan->s.p.member, (blocks + 1) * sizeof(u32), &tiles);
	if (!ret)
		plan->tiles = tiles;
	return ret;
}

int gpu_make(struct soft_plan *s, const struct soft_copy *copy,
	     struct t3_verdict *verdict)
{
	struct gpu_plan *plan = (struct gpu_plan *)s;
	int ret = compile(plan, copy);

	if (!ret)
		ret = bind_memory(plan, copy);
	if (!ret)
		ret = bind_words(plan, copy);
	if (!ret)
		ret = take_streams(plan);
	if (!ret)
		ret = make_marks(plan);
	if (!ret)
		ret = make_counters(plan);
	plan->submitter = (struct t3_gpu_submitter) {
		.list = &plan->list,
		.process = s->p.member->rank,
	};
	if (ret)
		t3_refuse(verdict, (u32)-ret, s->p.member->rank, T3_NONE, T3_NONE);
	return ret;
}

/* ---- undoing ---- */

/* Has all that the plan queued run? */
static bool has_settled(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	bool settled = !plan->tail || gpu->passed(m->device, plan->tail) == 1;
	u32 i;

	plan->stream[0] = plan->own;
	for (i = 0; i <= plan->streams && settled; i++)
		settled = !plan->stream[i] ||
			  gpu->idle(m->device, plan->stream[i]) == 1;
	return settled && (!plan->counter ||
			   gpu->idle(m->device, plan->counter) == 1);
}

/* Peers may still be being told of what has ended here. */
static void settle(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	u64 deadline = t3_now() + SETTLE_NS;

	while (!m->stuck && !has_settled(plan)) {
		if (soft_is_broken(&m->s))
			gpu_broken(&plan->s);
		if (t3_now() >= deadline)
			m->stuck = true;
		t3_sleep(20000, deadline);
	}
}

static void give_streams(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	u32 i;

	for (i = 1; i <= plan->streams; i++)
		if (plan->stream[i])
			gpu_stream_give(m, plan->stream[i]);
	if (plan->own)
		gpu_stream_give(m, plan->own);
	if (plan->counter)
		gpu_stream_give(m, plan->counter);
}

static void end_marks(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	u32 words = plan->list.words ? plan->list.words[m->s.m.rank] : 0, i;

	for (i = 0; plan->event && i < words; i++)
		if (plan->event[i])
			gpu->event_end(m->device, plan->event[i]);
	if (plan->tail)
		gpu->event_end(m->device, plan->tail);
	if (plan->fork)
		gpu->event_end(m->device, plan->fork);
	for (i = 1; i <= plan->streams; i++)
		if (plan->join[i])
			gpu->event_end(m->device, plan->join[i]);
}

static void let_go(struct gpu_plan *plan)
{
	struct gpu_member *m = member_of(plan);
	u32 r, g;

	for (r = 0; r < m->s.m.ranks; r++) {
		for (g = 0; g < T3_MAX_PLAN_REGIONS; g++)
			gpu_import_put(m, plan->import[r][g]);
		if (plan->pinned[r])
			gpu->unpin(m->device, plan->pinned[r]);
	}
	if (plan->tiles)
		gpu_free(&m->s.m, plan->tiles);
}

/* The plan may have been made in part only. What is stuck is kept. */
void gpu_release(struct soft_plan *s)
{
	struct gpu_plan *plan = (struct gpu_plan *)s;

	settle(plan);
	if (!member_of(plan)->stuck) {
		give_streams(plan);
		end_marks(plan);
		let_go(plan);
	}
	free(plan->writer);
	free(plan->event);
	free(plan->have);
	free(plan->made);
	t3_gpu_list_free(&plan->list);
	memset((char *)plan + sizeof(*s), 0, sizeof(*plan) - sizeof(*s));
}

/*
 * The group broke: let go whatever waits here for a word, in streams and in
 * graphs. A peer's own release may run into our words; so again and again.
 */
void gpu_broken(struct soft_plan *s)
{
	struct gpu_plan *plan = (struct gpu_plan *)s;
	u32 rank = s->p.member->rank;
	u32 past = t3_load(&s->share[rank]->armed) + GPU_RELEASE;
	u32 i;

	for (i = 0; plan->own_word && i < plan->list.words[rank]; i++)
		t3_store_release(&plan->own_word[i], past);
}
