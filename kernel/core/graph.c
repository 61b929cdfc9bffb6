// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deriving the graph of a plan, in passes that are each linear in the size of
 * the programs: resolve numbers, list the readers of each update, count and
 * then fill the edges, and go through the graph in order to see that it has
 * no cycle.
 */
#include "graph.h"

/**
 * struct t3_build - a build under way
 * @graph: what is built
 * @prog: from what
 * @verdict: what was found
 * @first_update: [blocks + 1] a block's first update
 * @writer: [updates] the node that makes an update
 * @first_reader: [updates + 1] an update's first entry in @reader
 * @reader: [sources] triggers that read an update
 * @waits: [triggers] edges of a trigger that are still open
 * @order: [nodes] nodes whose edges are all done, in order
 * @needs: [nodes] bit r is set: the node waits for rank r's arming
 * @updates: updates of all blocks
 * @nodes: blocks + triggers
 *
 * On the builder's stack; the arrays are its scratch.
 */
struct t3_build {
	struct t3_graph *graph;
	const struct t3_program *const *prog;
	struct t3_verdict *verdict;
	u64 *needs;
	u32 *first_update;
	u32 *writer;
	u32 *first_reader;
	u32 *reader;
	u32 *waits;
	u32 *order;
	u32 updates;
	u32 nodes;
};

/* A piece of memory that is handed out front to back. */
struct t3_space {
	uintptr_t at;
};

static void *t3_space_take(struct t3_space *space, u64 bytes)
{
	void *taken = (void *)space->at;

	space->at += (bytes + 7) & ~7ULL;
	return taken;
}

/* Sizes of a graph: what is to be known before there is memory. */
struct t3_sizes {
	u64 blocks;
	u64 triggers;
	u64 sources;
	u64 edges;
};

static struct t3_sizes t3_graph_sizes(const struct t3_program *const *prog,
				      u32 ranks)
{
	struct t3_sizes s = { 0 };
	u32 r;

	for (r = 0; r < ranks; r++) {
		s.blocks += prog[r]->blocks;
		s.triggers += prog[r]->triggers;
		s.sources += prog[r]->sources;
	}
	/* One for each source, the update before, and its other readers. */
	s.edges = 2 * s.sources + s.triggers;
	return s;
}

static void t3_graph_place(struct t3_graph *g, const struct t3_sizes *s,
			   u32 ranks, struct t3_space *space)
{
	g->ranks = ranks;
	g->blocks = s->blocks;
	g->triggers = s->triggers;
	g->sources = s->sources;
	g->retires = t3_space_take(space, s->triggers * sizeof(u64));
	g->needs = t3_space_take(space, ranks * sizeof(u64));
	g->action = t3_space_take(space, s->triggers * sizeof(*g->action));
	g->first_block = t3_space_take(space, (ranks + 1) * sizeof(u32));
	g->first_trigger = t3_space_take(space, (ranks + 1) * sizeof(u32));
	g->edges = t3_space_take(space, (s->triggers + ranks) * sizeof(u32));
	g->updates = t3_space_take(space, s->blocks * sizeof(u32));
	g->tiles = t3_space_take(space, s->blocks * sizeof(u32));
	g->successor_first = t3_space_take(space, (s->blocks + s->triggers + 1) *
						  sizeof(u32));
	g->successor = t3_space_take(space, s->edges * sizeof(u32));
	g->source = t3_space_take(space, s->sources * sizeof(u32));
	g->produced = t3_space_take(space, s->blocks);
	g->grid_of = t3_space_take(space, s->blocks);
	g->block_rank = t3_space_take(space, s->blocks);
}

static void t3_build_place(struct t3_build *b, const struct t3_sizes *s,
			   struct t3_space *space)
{
	u64 nodes = s->blocks + s->triggers;

	b->needs = t3_space_take(space, nodes * sizeof(u64));
	b->first_update = t3_space_take(space, (s->blocks + 1) * sizeof(u32));
	b->writer = t3_space_take(space, nodes * sizeof(u32));
	b->first_reader = t3_space_take(space, (nodes + 1) * sizeof(u32));
	b->reader = t3_space_take(space, s->sources * sizeof(u32));
	b->waits = t3_space_take(space, s->triggers * sizeof(u32));
	b->order = t3_space_take(space, nodes * sizeof(u32));
}

u64 t3_graph_bytes(const struct t3_program *const *prog, u32 ranks,
		   u64 *scratch)
{
	struct t3_sizes s = t3_graph_sizes(prog, ranks);
	struct t3_space space = { 0 };
	struct t3_graph graph;
	struct t3_build build;
	u64 bytes;

	t3_graph_place(&graph, &s, ranks, &space);
	bytes = space.at;
	space.at = 0;
	t3_build_place(&build, &s, &space);
	*scratch = space.at;
	return bytes > 1ULL << 31 || *scratch > 1ULL << 31 ? 0 : bytes;
}

static int t3_build_fails(struct t3_build *b, u32 error, u32 trigger,
			  u32 detail)
{
	u32 rank = b->graph->action[trigger].rank;

	return t3_refuse(b->verdict, error, rank,
			 trigger - b->graph->first_trigger[rank], detail);
}

/* Number blocks and triggers over all ranks, and copy what blocks are. */
static void t3_build_blocks(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 block = 0;
	u32 trigger = 0;
	u32 r, i, grid;

	for (r = 0; r < g->ranks; r++) {
		const struct t3_program *prog = b->prog[r];

		g->first_block[r] = block;
		g->first_trigger[r] = trigger;
		grid = 0;
		for (i = 0; i < prog->blocks; i++, block++) {
			while (grid + 1 < prog->grids &&
			       prog->grid[grid + 1].first_block <= i)
				grid++;
			g->block_rank[block] = r;
			g->grid_of[block] = grid;
			g->tiles[block] = prog->block[i].tiles;
			g->produced[block] =
				prog->block[i].flags & T3_BLOCK_PRODUCED ? 1 : 0;
			g->updates[block] = g->produced[block];
		}
		trigger += prog->triggers;
		t3_relax();
	}
	g->first_block[g->ranks] = block;
	g->first_trigger[g->ranks] = trigger;
}

/* Resolve the triggers' own numbers; the sources come later. */
static void t3_build_actions(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 next_source = 0;
	u32 r, i;

	for (r = 0; r < g->ranks; r++) {
		const struct t3_program *prog = b->prog[r];

		for (i = 0; i < prog->triggers; i++) {
			const struct t3_trigger *t = &prog->trigger[i];
			u32 block = g->first_block[r] + t->block +
				    prog->grid[t->region].first_block;

			g->action[g->first_trigger[r] + i] = (struct t3_action) {
				.op = t->op,
				.rank = r,
				.block = block,
				.first_source = next_source,
				.sources = t->sources,
			};
			g->updates[block]++;
			next_source += t->sources;
		}
		t3_relax();
	}
}

static const struct t3_trigger *t3_trigger_of(const struct t3_build *b,
					      u32 trigger)
{
	u32 rank = b->graph->action[trigger].rank;

	return &b->prog[rank]->trigger[trigger - b->graph->first_trigger[rank]];
}

static const struct t3_source *t3_source_of(const struct t3_build *b,
					    u32 trigger, u32 k)
{
	const struct t3_program *prog =
		b->prog[b->graph->action[trigger].rank];

	return &prog->source[t3_trigger_of(b, trigger)->first_source + k];
}

/* Who makes each update. */
static void t3_build_writers(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 i;

	b->updates = 0;
	for (i = 0; i < g->blocks; i++) {
		b->first_update[i] = b->updates;
		if (g->produced[i])
			b->writer[b->updates] = i;
		b->updates += g->updates[i];
	}
	b->first_update[g->blocks] = b->updates;
	for (i = 0; i < g->triggers; i++) {
		u32 update = b->first_update[g->action[i].block] +
			     t3_trigger_of(b, i)->seq - 1;

		b->writer[update] = g->blocks + i;
	}
}

static const struct t3_grid *t3_grid_of(const struct t3_build *b, u32 block)
{
	return &b->prog[b->graph->block_rank[block]]
			->grid[b->graph->grid_of[block]];
}

static struct t3_rect t3_rect_of(const struct t3_build *b, u32 block)
{
	const struct t3_grid *grid = t3_grid_of(b, block);
	u32 rank = b->graph->block_rank[block];

	return t3_grid_rect(grid, block - b->graph->first_block[rank] -
				  grid->first_block);
}

/* Does a source's block fit its trigger's destination? */
static int t3_build_fit(struct t3_build *b, u32 trigger, u32 k, u32 block)
{
	u32 to = b->graph->action[trigger].block;
	struct t3_rect from_rect = t3_rect_of(b, block);
	struct t3_rect to_rect = t3_rect_of(b, to);

	if (t3_grid_of(b, block)->dtype != t3_grid_of(b, to)->dtype)
		return t3_build_fails(b, EPROTOTYPE, trigger, k);
	if (from_rect.rows != to_rect.rows || from_rect.cols != to_rect.cols)
		return t3_build_fails(b, EMSGSIZE, trigger, k);
	return 0;
}

/* Resolve one source and check it against its owner's part. */
static int t3_build_source(struct t3_build *b, u32 trigger, u32 k)
{
	struct t3_graph *g = b->graph;
	const struct t3_source *s = t3_source_of(b, trigger, k);
	const struct t3_program *owner = b->prog[s->rank];
	u32 rank = g->action[trigger].rank;
	const struct t3_grid *grid;
	u32 block;

	if (s->region >= owner->grids)
		return t3_build_fails(b, ERANGE, trigger, k);
	grid = &owner->grid[s->region];
	if (s->block >= grid->block_rows * grid->block_cols)
		return t3_build_fails(b, ERANGE, trigger, k);
	block = grid->first_block + s->block;
	if (s->rank != rank && !(owner->block[block].readers >> rank & 1))
		return t3_build_fails(b, EACCES, trigger, k);
	block += g->first_block[s->rank];
	if (s->at > g->updates[block])
		return t3_build_fails(b, ERANGE, trigger, k);
	g->source[g->action[trigger].first_source + k] = block;
	g->retires[trigger] |= 1ULL << s->rank;
	return t3_build_fit(b, trigger, k, block);
}

static int t3_build_sources(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 i, k;
	int ret;

	for (i = 0; i < g->triggers; i++) {
		g->retires[i] = 1ULL << g->action[i].rank;
		for (k = 0; k < g->action[i].sources; k++) {
			ret = t3_build_source(b, i, k);
			if (ret)
				return ret;
		}
		if (!(i % 1024))
			t3_relax();
	}
	return 0;
}

/* The update that source @k of a trigger reads. */
static u32 t3_update_read(const struct t3_build *b, u32 trigger, u32 k)
{
	u32 block = b->graph->source[b->graph->action[trigger].first_source + k];

	return b->first_update[block] + t3_source_of(b, trigger, k)->at - 1;
}

/* Turn counts in first[1 .. n] into where each list begins, and ends. */
static void t3_counts_to_firsts(u32 *first, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		first[i + 1] += first[i];
}

/* Filling moved each first to its list's end: move them back. */
static void t3_firsts_restore(u32 *first, u32 n)
{
	memmove(first + 1, first, n * sizeof(*first));
	first[0] = 0;
}

/* Who reads each update. */
static void t3_build_readers(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 i, k;

	memset(b->first_reader, 0, (b->updates + 1) * sizeof(u32));
	for (i = 0; i < g->triggers; i++) {
		for (k = 0; k < g->action[i].sources; k++)
			b->first_reader[t3_update_read(b, i, k) + 1]++;
	}
	t3_relax();
	t3_counts_to_firsts(b->first_reader, b->updates);
	for (i = 0; i < g->triggers; i++) {
		for (k = 0; k < g->action[i].sources; k++)
			b->reader[b->first_reader[t3_update_read(b, i, k)]++] = i;
	}
	t3_firsts_restore(b->first_reader, b->updates);
	t3_relax();
}

/* One edge into a trigger: counted in the first pass, filled in the second. */
static void t3_build_edge(struct t3_build *b, u32 from, u32 trigger, bool fill)
{
	struct t3_graph *g = b->graph;

	if (fill) {
		g->successor[g->successor_first[from]++] = trigger;
	} else {
		g->successor_first[from + 1]++;
		g->edges[trigger]++;
	}
}

/* The edges into one trigger, but for that of arming. */
static void t3_build_edges_into(struct t3_build *b, u32 trigger, bool fill)
{
	struct t3_graph *g = b->graph;
	u32 seq = t3_trigger_of(b, trigger)->seq;
	u32 before = b->first_update[g->action[trigger].block] + seq - 2;
	bool in_place = false;
	u32 k, i;

	for (k = 0; k < g->action[trigger].sources; k++) {
		u32 update = t3_update_read(b, trigger, k);

		t3_build_edge(b, b->writer[update], trigger, fill);
		in_place = in_place || (seq > 1 && update == before);
	}
	if (seq == 1)
		return;
	/* Where it reads the update before, that edge is there already. */
	if (!in_place)
		t3_build_edge(b, b->writer[before], trigger, fill);
	for (i = b->first_reader[before]; i < b->first_reader[before + 1]; i++) {
		if (b->reader[i] != trigger)
			t3_build_edge(b, g->blocks + b->reader[i], trigger, fill);
	}
}

static void t3_build_edges(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 i;

	memset(g->successor_first, 0, (b->nodes + 1) * sizeof(u32));
	memset(g->edges, 0, (g->triggers + g->ranks) * sizeof(u32));
	for (i = 0; i < g->triggers; i++) {
		t3_build_edges_into(b, i, false);
		if (!(i % 1024))
			t3_relax();
	}
	memcpy(b->waits, g->edges, g->triggers * sizeof(u32));
	t3_counts_to_firsts(g->successor_first, b->nodes);
	for (i = 0; i < g->triggers; i++) {
		t3_build_edges_into(b, i, true);
		if (!(i % 1024))
			t3_relax();
	}
	t3_firsts_restore(g->successor_first, b->nodes);
}

/* The edges from arming, and those into retire(rank). */
static void t3_build_retires(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 *retire = g->edges + g->triggers;
	u32 i, r;

	for (r = 0; r < g->ranks; r++)
		retire[r] = 1;
	for (i = 0; i < g->blocks; i++)
		retire[g->block_rank[i]] += g->produced[i];
	for (i = 0; i < g->triggers; i++) {
		g->edges[i]++;
		for (r = 0; r < g->ranks; r++)
			retire[r] += g->retires[i] >> r & 1;
	}
}

/* Name a trigger on a cycle: go back along open edges until a repeat. */
static int t3_build_cycle(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 *before = b->order;
	u32 i, k, steps;

	for (i = 0; i < g->triggers; i++) {
		u32 node = g->blocks + i;

		if (!b->waits[i])
			continue;
		for (k = g->successor_first[node];
		     k < g->successor_first[node + 1]; k++)
			before[g->successor[k]] = i;
	}
	for (i = 0; !b->waits[i]; i++)
		;
	for (steps = 0; steps < g->triggers; steps++)
		i = before[i];
	return t3_build_fails(b, ELOOP, i, T3_NONE);
}

/* Go through all nodes in order, and gather what each needs. */
static int t3_build_order(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 end = 0;
	u32 at, k;

	for (at = 0; at < g->blocks; at++) {
		b->needs[at] = 1ULL << g->block_rank[at];
		b->order[end++] = at;
	}
	for (at = 0; at < g->triggers; at++)
		b->needs[g->blocks + at] = 1ULL << g->action[at].rank;
	for (at = 0; at < end; at++) {
		u32 node = b->order[at];

		for (k = g->successor_first[node];
		     k < g->successor_first[node + 1]; k++) {
			u32 next = g->successor[k];

			b->needs[g->blocks + next] |= b->needs[node];
			if (!--b->waits[next])
				b->order[end++] = g->blocks + next;
		}
		if (!(at % 1024))
			t3_relax();
	}
	return end == b->nodes ? 0 : t3_build_cycle(b);
}

/* Whose arming each rank's retirement waits for. */
static void t3_build_needs(struct t3_build *b)
{
	struct t3_graph *g = b->graph;
	u32 i, r;

	for (r = 0; r < g->ranks; r++)
		g->needs[r] = 1ULL << r;
	for (i = 0; i < g->triggers; i++) {
		for (r = 0; r < g->ranks; r++) {
			if (g->retires[i] >> r & 1)
				g->needs[r] |= b->needs[g->blocks + i];
		}
	}
}

static int t3_build_digests(struct t3_build *b)
{
	u32 r;

	for (r = 1; r < b->graph->ranks; r++) {
		if (b->prog[r]->digest[0] != b->prog[0]->digest[0] ||
		    b->prog[r]->digest[1] != b->prog[0]->digest[1])
			return t3_refuse(b->verdict, EBADMSG, r, T3_NONE,
					 T3_NONE);
	}
	return 0;
}

int t3_graph_build(struct t3_graph *graph, const struct t3_program *const *prog,
		   u32 ranks, void *mem, void *scratch,
		   struct t3_verdict *verdict)
{
	struct t3_sizes sizes = t3_graph_sizes(prog, ranks);
	struct t3_space space = { (uintptr_t)mem };
	struct t3_build b = {
		.graph = graph,
		.prog = prog,
		.verdict = verdict,
		.nodes = sizes.blocks + sizes.triggers,
	};
	int ret;

	t3_refuse(verdict, 0, T3_NONE, T3_NONE, T3_NONE);
	t3_graph_place(graph, &sizes, ranks, &space);
	space.at = (uintptr_t)scratch;
	t3_build_place(&b, &sizes, &space);
	ret = t3_build_digests(&b);
	if (ret)
		return ret;
	t3_build_blocks(&b);
	t3_build_actions(&b);
	t3_build_writers(&b);
	ret = t3_build_sources(&b);
	if (ret)
		return ret;
	t3_build_readers(&b);
	t3_build_edges(&b);
	ret = t3_build_order(&b);
	if (ret)
		return ret;
	t3_build_retires(&b);
	t3_build_needs(&b);
	return 0;
}
