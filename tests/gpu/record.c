// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Recording, and playing back: each process's streams share hardware queues; a
 * queue's operations run in order, each when it can; whichever queue can go on,
 * one at random does. If none can and something is left, that is a deadlock.
 */
#include <stdio.h>
#include <stdlib.h>

#include "record.h"

static int append(struct record *r, const struct t3_gpu_op *op, u32 epoch)
{
	if (r->ops == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->op = realloc(r->op, r->room * sizeof(*r->op));
		r->epoch = realloc(r->epoch, r->room * sizeof(*r->epoch));
		if (!r->op || !r->epoch)
			return -ENOMEM;
	}
	r->op[r->ops] = *op;
	r->epoch[r->ops++] = epoch;
	return 0;
}

static int record_wait(void *arg, u32 stream, u32 word, u32 epoch)
{
	struct t3_gpu_op op = {
		.kind = T3_GPU_WAIT,
		.stream = stream,
		.word = word,
	};

	return append(arg, &op, epoch);
}

static int record_write(void *arg, u32 stream, u32 owner, u32 word, u32 epoch)
{
	struct t3_gpu_op op = {
		.kind = T3_GPU_WRITE,
		.stream = stream,
		.owner = owner,
		.word = word,
	};

	return append(arg, &op, epoch);
}

static int record_transfer(void *arg, u32 stream, const struct t3_gpu_op *op,
			   const struct t3_gpu_place *source)
{
	struct record *r = arg;

	(void)stream;
	(void)source;
	return append(r, op, r->now);
}

const struct t3_gpu_backend record_backend = {
	.wait = record_wait,
	.write = record_write,
	.transfer = record_transfer,
};

int record_user(struct record *r, const struct t3_gpu_op *op, u32 epoch)
{
	return append(r, op, epoch);
}

void record_free(struct record *r)
{
	free(r->op);
	free(r->epoch);
	*r = (struct record) { 0 };
}

static int record_epoch(struct record *r, struct t3_gpu_submitter *s)
{
	u32 turn;
	int ret = 0;

	for (turn = t3_gpu_turn(s); turn && !ret; turn = t3_gpu_turn(s)) {
		if (turn != T3_GPU_RETIRE)
			ret = record_user(r, t3_gpu_turn_op(s), s->epoch);
		if (!ret)
			ret = t3_gpu_submit(s, &record_backend, r, turn);
	}
	return ret;
}

int record_epochs(struct record *r, const struct t3_gpu_list *list, u32 process,
		  u32 epochs)
{
	struct t3_gpu_op retire = { .kind = T3_GPU_RETIRE, .process = process };
	u32 e;
	int ret = 0;

	for (e = 1; e <= epochs && !ret; e++) {
		struct t3_gpu_submitter s = {
			.list = list,
			.process = process,
			.epoch = e,
		};

		r->now = e;
		ret = record_epoch(r, &s);
		if (!ret)
			ret = record_user(r, &retire, e);
	}
	return ret;
}

/**
 * struct player - a run
 * @next: [ranks * queues] where a queue goes on
 * @word: [ranks][words]
 * @have: [triggers] edges that arrived
 * @ran: [blocks + triggers] epochs in which the node ran
 * @armed: [ranks] epochs
 * @retired: [ranks] epochs
 */
struct player {
	const struct record *record;
	const struct t3_gpu_list *list;
	const struct t3_graph *graph;
	u32 *next;
	u32 *word[T3_MAX_RANKS];
	u32 *have;
	u32 *ran;
	u32 armed[T3_MAX_RANKS];
	u32 retired[T3_MAX_RANKS];
	char *why;
	size_t bytes;
};

static int wrong(struct player *p, u32 process, u32 at, const char *what)
{
	snprintf(p->why, p->bytes, "process %u operation %u (kind %u): %s",
		 process, at, p->record[process].op[at].kind, what);
	return -1;
}

static void count(struct player *p, u32 node)
{
	const struct t3_graph *g = p->graph;
	u32 k;

	p->ran[node]++;
	for (k = g->successor_first[node]; k < g->successor_first[node + 1]; k++)
		p->have[g->successor[k]]++;
}

static int play_nodes(struct player *p, u32 process, u32 at)
{
	const struct t3_gpu_op *op = &p->record[process].op[at];
	const struct t3_graph *g = p->graph;
	u32 epoch = p->record[process].epoch[at], i;

	for (i = 0; i < op->nodes; i++) {
		u32 node = p->list->node[op->first_node + i];

		if (p->ran[node] != epoch - 1)
			return wrong(p, process, at, "a node runs twice, or not");
		if (node < g->blocks) {
			if (p->armed[g->block_rank[node]] != epoch)
				return wrong(p, process, at, "produced, not armed");
		} else if (p->have[node - g->blocks] !=
			   epoch * g->edges[node - g->blocks]) {
			return wrong(p, process, at, "too early, or too late");
		}
	}
	for (i = 0; i < op->nodes; i++)
		count(p, p->list->node[op->first_node + i]);
	return 0;
}

static int play_arm(struct player *p, u32 process, u32 at)
{
	u32 epoch = p->record[process].epoch[at], i;

	if (p->retired[process] != epoch - 1)
		return wrong(p, process, at, "armed before it had retired");
	p->armed[process] = epoch;
	for (i = 0; i < p->graph->triggers; i++)
		if (p->graph->action[i].rank == process)
			p->have[i]++;
	return 0;
}

static int play_retire(struct player *p, u32 process, u32 at)
{
	const struct t3_graph *g = p->graph;
	u32 epoch = p->record[process].epoch[at], i;

	for (i = g->first_block[process]; i < g->first_block[process + 1]; i++)
		if (g->produced[i] && p->ran[i] != epoch)
			return wrong(p, process, at, "retired, not all produced");
	for (i = 0; i < g->triggers; i++)
		if (g->retires[i] >> process & 1 && p->ran[g->blocks + i] != epoch)
			return wrong(p, process, at, "retired, a trigger has not run");
	p->retired[process] = epoch;
	return 0;
}

/* 1: it ran; 0: it can't yet; -1: wrong. */
static int play_one(struct player *p, u32 process, u32 at)
{
	const struct t3_gpu_op *op = &p->record[process].op[at];
	u32 epoch = p->record[process].epoch[at];
	int ret = 0;

	switch (op->kind) {
	case T3_GPU_WAIT:
		if (!t3_reached(p->word[process][op->word], epoch))
			return 0;
		break;
	case T3_GPU_WRITE:
		if (p->word[op->owner][op->word] != epoch - 1)
			ret = wrong(p, process, at, "a word does not grow by one");
		p->word[op->owner][op->word] = epoch;
		break;
	case T3_GPU_ARM:
		ret = play_arm(p, process, at);
		break;
	case T3_GPU_RETIRE:
		ret = play_retire(p, process, at);
		break;
	default:
		ret = play_nodes(p, process, at);
	}
	return ret ? ret : 1;
}

/* Run a queue's next operation, if it can. */
static int play_queue(struct player *p, u32 q, u32 queues, u32 *left)
{
	u32 process = q / queues, *at = &p->next[q];
	const struct record *r = &p->record[process];
	int ret;

	while (*at < r->ops && r->op[*at].stream % queues != q % queues)
		++*at;
	if (*at == r->ops)
		return 0;
	++*left;
	ret = play_one(p, process, *at);
	*at += ret > 0;
	return ret;
}

static int play(struct player *p, u32 queues, u32 seed)
{
	u32 n = p->graph->ranks * queues, left, i;
	int ret, any;

	do {
		u32 start = rand_r(&seed) % n;

		left = 0;
		any = 0;
		for (i = 0; i < n; i++) {
			u32 q = (start + i) % n;

			/* Some sleep this time. */
			if (any && rand_r(&seed) % 4 == 0) {
				left++;
				continue;
			}
			ret = play_queue(p, q, queues, &left);
			if (ret < 0)
				return ret;
			any |= ret;
		}
		if (left && !any) {
			snprintf(p->why, p->bytes, "deadlock with %u queues", queues);
			return -1;
		}
	} while (left);
	return 0;
}

int record_play(const struct record *record, const struct t3_gpu_list *list,
		const struct t3_graph *graph, u32 epochs, u32 queues, u32 seed,
		char *why, size_t bytes)
{
	struct player p = {
		.record = record,
		.list = list,
		.graph = graph,
		.next = calloc((size_t)graph->ranks * queues, sizeof(u32)),
		.have = calloc(graph->triggers + 1, sizeof(u32)),
		.ran = calloc(graph->blocks + graph->triggers, sizeof(u32)),
		.why = why,
		.bytes = bytes,
	};
	u32 r;
	int ret;

	for (r = 0; r < graph->ranks; r++)
		p.word[r] = calloc(list->words[r] + 1, sizeof(u32));
	ret = play(&p, queues, seed);
	for (r = 0; r < graph->ranks; r++) {
		if (!ret && p.retired[r] != epochs) {
			snprintf(why, bytes, "rank %u has not retired", r);
			ret = -1;
		}
		free(p.word[r]);
	}
	free(p.next);
	free(p.have);
	free(p.ran);
	return ret;
}
