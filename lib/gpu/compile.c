// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan compiler, in passes: a level and a key for each node; groups of
 * nodes that run as one (only nodes of one level are joined, so that joining
 * makes no cycle); the groups' edges; which of them need a word; and the list.
 */
#include <stdlib.h>

#include "compile.h"
#include "reduce.h"

#define NONE	(~0U)

/**
 * struct node - what is known of a graph's node
 * @level: longest path to it from a production
 * @key: the latest production step before it: when it can run at the earliest
 * @group: its group
 */
struct node {
	u32 level;
	u32 key;
	u32 group;
};

/**
 * struct group - nodes that run as one
 * @kind: enum t3_gpu_kind
 * @process: who runs it
 * @stream: where
 * @first: its first node in compiler.member
 * @nodes: how many
 * @op: the transfer
 */
struct group {
	u32 kind;
	u32 process;
	u32 stream;
	u32 first;
	u32 nodes;
	struct t3_gpu_op op;
};

struct edge {
	u32 from;
	u32 to;
};

/**
 * struct compiler - a compilation under way
 * @graph: of what
 * @prog: likewise
 * @map: how
 * @list: what is made
 * @node: [blocks + triggers]
 * @sorted: [triggers] in the order of levels
 * @member: nodes of all groups
 * @members: how many
 * @group: in the global order
 * @groups: how many
 * @sources: used of list->source
 * @edge: between groups, by @to
 * @edges: how many
 * @word: [groups * ranks] the word by which a group tells a process; NONE
 * @told: [groups * ranks] bit s: the process's stream s has waited for it
 *
 * On the compiler's stack.
 */
struct compiler {
	const struct t3_graph *graph;
	const struct t3_program *const *prog;
	const struct t3_gpu_mapping *map;
	struct t3_gpu_list *list;
	struct node *node;
	u32 *sorted;
	u32 *member;
	u32 members;
	struct group *group;
	u32 groups;
	u32 sources;
	struct edge *edge;
	u32 edges;
	u32 *word;
	u32 *told;
};

/* The compiler whose nodes are sorted; qsort() has no argument for it. */
static _Thread_local const struct compiler *sorting;

static const struct t3_grid *grid_of(const struct compiler *c, u32 block)
{
	return &c->prog[c->graph->block_rank[block]]
			->grid[c->graph->grid_of[block]];
}

static struct t3_rect rect_of(const struct compiler *c, u32 block)
{
	const struct t3_grid *grid = grid_of(c, block);
	u32 rank = c->graph->block_rank[block];

	return t3_grid_rect(grid, block - c->graph->first_block[rank] -
				  grid->first_block);
}

static struct t3_gpu_place place_of(const struct compiler *c, u32 block)
{
	const struct t3_grid *grid = grid_of(c, block);
	struct t3_rect rect = rect_of(c, block);

	return (struct t3_gpu_place) {
		.rank = c->graph->block_rank[block],
		.region = c->graph->grid_of[block],
		.offset = rect.row * grid->row_stride +
			  (u64)rect.col * t3_dtype_size(grid->dtype),
		.pitch = grid->row_stride,
	};
}

static u32 other_source(const struct compiler *c, u32 trigger)
{
	const struct t3_action *a = &c->graph->action[trigger];
	u32 k;

	for (k = 0; k < a->sources; k++) {
		u32 rank = c->graph->block_rank[c->graph->source[a->first_source + k]];

		if (rank != a->rank)
			return rank;
	}
	return a->rank;
}

static u32 process_of(const struct compiler *c, u32 trigger)
{
	const struct t3_action *a = &c->graph->action[trigger];

	if (c->map->push && a->sources <= 2)
		return other_source(c, trigger);
	return a->rank;
}

/* Transfers between different pairs go on different streams, while they last. */
static u32 stream_of(const struct compiler *c, u32 trigger)
{
	const struct t3_action *a = &c->graph->action[trigger];
	u32 n = c->graph->ranks;

	if (c->map->streams == 1)
		return 0;
	return 1 + (a->rank + n - other_source(c, trigger)) % n %
		   (c->map->streams - 1);
}

/* ---- levels ---- */

static void number_steps(struct compiler *c)
{
	const struct t3_graph *g = c->graph;
	u32 r, i;

	for (r = 0; r < g->ranks; r++) {
		for (i = g->first_block[r]; i < g->first_block[r + 1]; i++)
			c->node[i].key = i - g->first_block[r];
		for (i = 0; c->map->step && i < c->map->steps[r]; i++)
			c->node[g->first_block[r] + c->map->step[r][i]].key = i;
	}
}

/* Go through the graph in order; it has no cycle. */
static int find_levels(struct compiler *c)
{
	const struct t3_graph *g = c->graph;
	u32 nodes = g->blocks + g->triggers;
	u32 *waits = calloc(nodes + 1, sizeof(*waits));
	u32 *order = calloc(nodes + 1, sizeof(*order));
	u32 at, k, end = 0;

	if (!waits || !order) {
		free(waits);
		free(order);
		return -ENOMEM;
	}
	for (k = 0; k < g->successor_first[nodes]; k++)
		waits[g->successor[k]]++;
	for (at = 0; at < g->blocks; at++)
		order[end++] = at;
	/* A trigger that only waits for arming. */
	for (at = 0; at < g->triggers; at++)
		if (!waits[at])
			order[end++] = g->blocks + at;
	for (at = 0; at < end; at++) {
		const struct node *from = &c->node[order[at]];

		for (k = g->successor_first[order[at]];
		     k < g->successor_first[order[at] + 1]; k++) {
			struct node *to = &c->node[g->blocks + g->successor[k]];

			if (to->level <= from->level)
				to->level = from->level + 1;
			if (to->key < from->key)
				to->key = from->key;
			if (!--waits[g->successor[k]])
				order[end++] = g->blocks + g->successor[k];
		}
	}
	free(waits);
	free(order);
	return 0;
}

static int by_number(u32 x, u32 y)
{
	return x < y ? -1 : x > y;
}

static int by_level(const void *a, const void *b)
{
	const struct compiler *c = sorting;
	u32 x = *(const u32 *)a, y = *(const u32 *)b;
	const struct node *m = &c->node[c->graph->blocks + x];
	const struct node *n = &c->node[c->graph->blocks + y];
	int d = by_number(m->level, n->level);

	if (!d)
		d = by_number(process_of(c, x), process_of(c, y));
	if (!d)
		d = by_number(stream_of(c, x), stream_of(c, y));
	if (!d)
		d = by_number(m->key, n->key);
	return d ? d : by_number(x, y);
}

static int by_key(const void *a, const void *b)
{
	const struct compiler *c = sorting;
	u32 x = *(const u32 *)a, y = *(const u32 *)b;
	int d = by_number(c->node[x].key, c->node[y].key);

	return d ? d : by_number(x, y);
}

/* ---- groups ---- */

static struct group *new_group(struct compiler *c, u32 kind, u32 process,
			       u32 stream)
{
	struct group *g = &c->group[c->groups++];

	*g = (struct group) {
		.kind = kind,
		.process = process,
		.stream = stream,
		.first = c->members,
	};
	return g;
}

static void join(struct compiler *c, u32 node)
{
	c->member[c->members++] = node;
	c->group[c->groups - 1].nodes++;
	c->node[node].group = c->groups - 1;
}

static u32 kind_of(const struct compiler *c, u32 trigger)
{
	const struct t3_action *a = &c->graph->action[trigger];
	u32 second;

	if (a->op == T3_OP_COPY)
		return other_source(c, trigger) == a->rank ? T3_GPU_MOVE :
							     T3_GPU_COPY;
	if (a->sources != 2)
		return T3_GPU_SUM;
	second = c->graph->source[a->first_source + 1];
	/* Addition of two commutes; so does its rounding. */
	return second == a->block ||
	       c->graph->source[a->first_source] == a->block ? T3_GPU_ADD :
							       T3_GPU_SUM;
}

static bool follows(const struct t3_gpu_place *a, u32 rows,
		    const struct t3_gpu_place *b)
{
	return a->rank == b->rank && a->region == b->region &&
	       a->pitch == b->pitch && a->offset + rows * a->pitch == b->offset;
}

/* Can a trigger's rectangle be joined to the last group's, below it? */
static bool fits(const struct compiler *c, const struct t3_gpu_op *op,
		 u32 trigger, const struct t3_rect *rect, u64 width)
{
	const struct t3_action *a = &c->graph->action[trigger];
	struct t3_gpu_place to = place_of(c, a->block);
	u32 last = c->member[c->members - 1];
	u64 limit = c->map->band_bytes ? c->map->band_bytes : T3_GPU_BAND;
	u32 k;

	if (last < c->graph->blocks || op->kind != kind_of(c, trigger) ||
	    op->process != process_of(c, trigger) ||
	    op->stream != stream_of(c, trigger) || op->width != width ||
	    op->sources != a->sources || !follows(&op->to, op->rows, &to) ||
	    c->node[last].level !=
		    c->node[c->graph->blocks + trigger].level ||
	    (op->rows + rect->rows) * width > limit)
		return false;
	for (k = 0; k < a->sources; k++) {
		struct t3_gpu_place from =
			place_of(c, c->graph->source[a->first_source + k]);

		if (!follows(&c->list->source[op->first_source + k], op->rows,
			     &from))
			return false;
	}
	return true;
}

static void add_trigger(struct compiler *c, u32 trigger)
{
	const struct t3_action *a = &c->graph->action[trigger];
	struct t3_rect rect = rect_of(c, a->block);
	u32 dtype = grid_of(c, a->block)->dtype;
	u64 width = (u64)rect.cols * t3_dtype_size(dtype);
	struct t3_gpu_op *op = &c->group[c->groups - 1].op;
	u32 k;

	if (c->members && fits(c, op, trigger, &rect, width)) {
		op->rows += rect.rows;
		join(c, c->graph->blocks + trigger);
		return;
	}
	op = &new_group(c, kind_of(c, trigger), process_of(c, trigger),
			stream_of(c, trigger))->op;
	*op = (struct t3_gpu_op) {
		.kind = kind_of(c, trigger),
		.process = process_of(c, trigger),
		.stream = stream_of(c, trigger),
		.dtype = dtype,
		.rows = rect.rows,
		.width = width,
		.to = place_of(c, a->block),
		.first_source = c->sources,
		.sources = a->sources,
	};
	for (k = 0; k < a->sources; k++)
		c->list->source[c->sources++] =
			place_of(c, c->graph->source[a->first_source + k]);
	join(c, c->graph->blocks + trigger);
}

/* Do two blocks' productions let the same bands go on? */
static bool alike(const struct compiler *c, u32 x, u32 y)
{
	const struct t3_graph *g = c->graph;
	u32 n = g->successor_first[x + 1] - g->successor_first[x];
	u32 k;

	if (g->successor_first[y + 1] - g->successor_first[y] != n ||
	    !g->tiles[x] != !g->tiles[y])
		return false;
	for (k = 0; k < n; k++) {
		u32 s = g->successor[g->successor_first[x] + k];
		u32 t = g->successor[g->successor_first[y] + k];

		if (c->node[g->blocks + s].group != c->node[g->blocks + t].group)
			return false;
	}
	return true;
}

/* A rank's productions, in their order; those of bands are one step each. */
static void add_productions(struct compiler *c, u32 rank, u32 *sorted)
{
	const struct t3_graph *g = c->graph;
	u32 n = 0, i;

	for (i = g->first_block[rank]; i < g->first_block[rank + 1]; i++)
		if (g->produced[i])
			sorted[n++] = i;
	sorting = c;
	qsort(sorted, n, sizeof(*sorted), by_key);
	for (i = 0; i < n; i++) {
		if (!i || !alike(c, sorted[i - 1], sorted[i]))
			new_group(c, T3_GPU_PRODUCE, rank, 0);
		join(c, sorted[i]);
	}
}

/*
 * Bands are made first, for productions are grouped by them; they are put
 * behind the productions afterwards.
 */
static void order_groups(struct compiler *c, u32 bands, struct group *spare)
{
	u32 rest = c->groups - bands, i;

	memcpy(spare, c->group, bands * sizeof(*spare));
	memmove(c->group, c->group + bands, rest * sizeof(*spare));
	memcpy(c->group + rest, spare, bands * sizeof(*spare));
	for (i = 0; i < c->graph->blocks + c->graph->triggers; i++) {
		struct node *n = &c->node[i];

		if (n->group != NONE)
			n->group = n->group < bands ? n->group + rest :
						      n->group - bands;
	}
}

static int make_groups(struct compiler *c)
{
	const struct t3_graph *g = c->graph;
	u32 *sorted = calloc(g->blocks + 1, sizeof(*sorted));
	struct group *spare = calloc(g->triggers + 1, sizeof(*spare));
	u32 bands, i;

	if (!sorted || !spare) {
		free(sorted);
		free(spare);
		return -ENOMEM;
	}
	for (i = 0; i < g->blocks + g->triggers; i++)
		c->node[i].group = NONE;
	for (i = 0; i < g->triggers; i++)
		c->sorted[i] = i;
	sorting = c;
	qsort(c->sorted, g->triggers, sizeof(*c->sorted), by_level);
	for (i = 0; i < g->triggers; i++)
		add_trigger(c, c->sorted[i]);
	bands = c->groups;
	for (i = 0; i < g->ranks; i++)
		new_group(c, T3_GPU_ARM, i, 0);
	for (i = 0; i < g->ranks; i++)
		add_productions(c, i, sorted);
	order_groups(c, bands, spare);
	for (i = 0; i < g->ranks; i++)
		new_group(c, T3_GPU_RETIRE, i, 0);
	free(sorted);
	free(spare);
	return 0;
}

/* ---- edges ---- */

static void add_edge(struct compiler *c, u32 from, u32 to)
{
	c->edge[c->edges++] = (struct edge) { from, to };
}

static void trigger_edges(struct compiler *c, u32 trigger)
{
	const struct t3_graph *g = c->graph;
	u32 group = c->node[g->blocks + trigger].group;
	u32 r;

	/* Groups 0 .. ranks - 1 arm; the last ones retire. */
	add_edge(c, g->action[trigger].rank, group);
	for (r = 0; r < g->ranks; r++)
		if (g->retires[trigger] >> r & 1)
			add_edge(c, group, c->groups - g->ranks + r);
}

static int by_target(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	int d = by_number(x->to, y->to);

	return d ? d : by_number(x->from, y->from);
}

static int make_edges(struct compiler *c)
{
	const struct t3_graph *g = c->graph;
	u32 nodes = g->blocks + g->triggers, i, k, n = 0;

	c->edge = calloc(g->successor_first[nodes] +
			 (u64)g->triggers * (1 + g->ranks) + 1, sizeof(*c->edge));
	if (!c->edge)
		return -ENOMEM;
	for (i = 0; i < nodes; i++)
		for (k = g->successor_first[i]; k < g->successor_first[i + 1]; k++)
			if (c->node[i].group != NONE)
				add_edge(c, c->node[i].group,
					 c->node[g->blocks + g->successor[k]].group);
	for (i = 0; i < g->triggers; i++)
		trigger_edges(c, i);
	qsort(c->edge, c->edges, sizeof(*c->edge), by_target);
	for (i = 0; i < c->edges; i++)
		if (!n || by_target(&c->edge[n - 1], &c->edge[i]))
			c->edge[n++] = c->edge[i];
	c->edges = n;
	return 0;
}

/* ---- words and the list ---- */

/* Does an edge need a word? Not where a stream's order is enough. */
static bool needs_word(struct compiler *c, const struct edge *e)
{
	const struct group *from = &c->group[e->from];
	const struct group *to = &c->group[e->to];
	u32 *told = &c->told[(u64)e->from * c->graph->ranks + to->process];

	if (from->process == to->process && from->stream == to->stream)
		return false;
	if (*told >> to->stream & 1)
		return false;
	*told |= 1U << to->stream;
	return true;
}

static u32 give_words(struct compiler *c)
{
	u32 i, waits = 0;

	for (i = 0; i < c->edges; i++) {
		u32 process = c->group[c->edge[i].to].process;
		u32 *word = &c->word[(u64)c->edge[i].from * c->graph->ranks +
				     process];

		if (!needs_word(c, &c->edge[i])) {
			c->edge[i].from = NONE;
			continue;
		}
		waits++;
		if (*word == NONE) {
			*word = c->list->words[process]++;
			waits++;
		}
	}
	return waits;
}

static void emit(struct compiler *c, const struct t3_gpu_op *op)
{
	c->list->op[c->list->ops++] = *op;
}

static void emit_group(struct compiler *c, u32 at, u32 *edge)
{
	const struct group *g = &c->group[at];
	struct t3_gpu_op own = g->op;
	struct t3_gpu_op op = {
		.process = g->process,
		.stream = g->stream,
		.group = at,
	};
	u32 r;

	for (; *edge < c->edges && c->edge[*edge].to == at; (*edge)++) {
		if (c->edge[*edge].from == NONE)
			continue;
		op.kind = T3_GPU_WAIT;
		op.owner = g->process;
		op.word = c->word[(u64)c->edge[*edge].from * c->graph->ranks +
				  g->process];
		emit(c, &op);
	}
	own.kind = g->kind;
	own.process = g->process;
	own.stream = g->stream;
	own.group = at;
	own.first_node = g->first;
	own.nodes = g->nodes;
	emit(c, &own);
	for (r = 0; r < c->graph->ranks; r++) {
		op.kind = T3_GPU_WRITE;
		op.owner = r;
		op.word = c->word[(u64)at * c->graph->ranks + r];
		if (op.word != NONE)
			emit(c, &op);
	}
}

static int make_list(struct compiler *c)
{
	u64 cells = (u64)c->groups * c->graph->ranks;
	u32 edge = 0, i;

	c->word = malloc(cells * sizeof(*c->word));
	c->told = calloc(cells, sizeof(*c->told));
	if (!c->word || !c->told)
		return -ENOMEM;
	memset(c->word, 0xff, cells * sizeof(*c->word));
	c->list->op = calloc(give_words(c) + c->groups, sizeof(*c->list->op));
	if (!c->list->op)
		return -ENOMEM;
	c->list->retire = c->groups - c->graph->ranks;
	for (i = 0; i < c->groups; i++)
		emit_group(c, i, &edge);
	return 0;
}

static int allocate(struct compiler *c)
{
	const struct t3_graph *g = c->graph;
	u64 nodes = (u64)g->blocks + g->triggers;

	c->node = calloc(nodes + 1, sizeof(*c->node));
	c->sorted = calloc(g->triggers + 1, sizeof(*c->sorted));
	c->group = calloc(nodes + 2 * g->ranks, sizeof(*c->group));
	c->member = calloc(nodes + 1, sizeof(*c->member));
	c->list->node = c->member;
	c->list->source = calloc(g->sources + 1, sizeof(*c->list->source));
	c->list->words = calloc(g->ranks, sizeof(*c->list->words));
	return c->node && c->sorted && c->group && c->member &&
	       c->list->source && c->list->words ? 0 : -ENOMEM;
}

int t3_gpu_compile(struct t3_gpu_list *list, const struct t3_program *const *prog,
		   const struct t3_graph *graph,
		   const struct t3_gpu_mapping *mapping)
{
	struct compiler c = {
		.graph = graph,
		.prog = prog,
		.map = mapping,
		.list = list,
	};
	int ret;

	*list = (struct t3_gpu_list) { 0 };
	if (!mapping->streams || mapping->streams > T3_GPU_STREAMS ||
	    !mapping->step != !mapping->steps)
		return -EINVAL;
	ret = allocate(&c);
	if (!ret) {
		number_steps(&c);
		ret = find_levels(&c);
	}
	if (!ret)
		ret = make_groups(&c);
	if (!ret)
		ret = make_edges(&c);
	if (!ret)
		ret = make_list(&c);
	free(c.node);
	free(c.sorted);
	free(c.group);
	free(c.edge);
	free(c.word);
	free(c.told);
	if (ret)
		t3_gpu_list_free(list);
	return ret;
}

void t3_gpu_list_free(struct t3_gpu_list *list)
{
	free(list->op);
	free(list->source);
	free(list->node);
	free(list->words);
	*list = (struct t3_gpu_list) { 0 };
}
