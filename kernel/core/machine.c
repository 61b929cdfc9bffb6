// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The dataflow machine: counting and firing, arm, retire, failure.
 */
#include "machine.h"

#define NODES_A_LINE	(T3_LINE / sizeof(struct t3_node))
#define LINES_MOST	64

static u32 t3_rank_triggers(const struct t3_graph *g, u32 rank)
{
	return g->first_trigger[rank + 1] - g->first_trigger[rank];
}

/*
 * Over how many lines to spread a rank's nodes: as many as hold them, more
 * where they are few, so that each of a small plan has a line to itself.
 */
static u32 t3_rank_lines(const struct t3_graph *g, u32 rank)
{
	u32 triggers = t3_rank_triggers(g, rank);
	u32 lines = 1;

	while (lines * NODES_A_LINE < triggers ||
	       (lines < triggers && lines < LINES_MOST))
		lines *= 2;
	return lines;
}

static size_t t3_to_line(size_t bytes)
{
	return (bytes + T3_LINE - 1) & ~(size_t)(T3_LINE - 1);
}

/* Bytes of all nodes; fills the ways to them where asked. */
static size_t t3_nodes_bytes(const struct t3_graph *g, struct t3_machine *m)
{
	size_t lines = 0;
	u32 r;

	for (r = 0; r < g->ranks; r++) {
		u32 own = t3_rank_lines(g, r);

		if (m) {
			m->first_node[r] = lines * NODES_A_LINE;
			m->lines[r] = own - 1;
		}
		lines += own;
	}
	return lines * T3_LINE;
}

/* Neighbours lie a line apart. */
static struct t3_node *t3_machine_node(const struct t3_machine *m, u32 trigger)
{
	const struct t3_graph *g = m->graph;
	u32 rank = g->action[trigger].rank;
	u32 i = trigger - g->first_trigger[rank];
	u32 mask = m->lines[rank];

	/* i / lines < NODES_A_LINE, by the choice of lines. */
	return &m->node[m->first_node[rank] + (i & mask) * NODES_A_LINE +
			(i >> t3_bits(mask))];
}

size_t t3_machine_bytes(const struct t3_graph *graph)
{
	return graph->ranks * sizeof(struct t3_rank_state) +
	       t3_nodes_bytes(graph, NULL) +
	       t3_to_line(graph->blocks * sizeof(u32));
}

void t3_machine_attach(struct t3_machine *m, const struct t3_graph *graph,
		       const struct t3_machine_ops *ops, void *mem)
{
	size_t nodes = t3_nodes_bytes(graph, m);

	m->graph = graph;
	m->ops = ops;
	m->state = mem;
	m->node = (struct t3_node *)(m->state + graph->ranks);
	m->claimed = (u32 *)((u8 *)m->node + nodes);
}

static void t3_node_start(struct t3_node *node, u32 epoch, u32 edges)
{
	node->have = epoch * edges;
	node->due = (epoch + 1) * edges;
}

void t3_machine_start(struct t3_machine *m, u32 epoch)
{
	const struct t3_graph *g = m->graph;
	u32 i, r;

	for (i = 0; i < g->triggers; i++)
		t3_node_start(t3_machine_node(m, i), epoch, g->edges[i]);
	for (i = 0; i < g->blocks; i++) {
		u32 block;

		r = g->block_rank[i];
		block = i - g->first_block[r];
		m->claimed[i] = epoch;
		t3_store(&m->tiles[r][block], epoch * g->tiles[i]);
		t3_store(&m->count[r][block], epoch * g->updates[i]);
	}
	for (r = 0; r < g->ranks; r++) {
		t3_node_start(&m->state[r].retire, epoch,
			      g->edges[g->triggers + r]);
		m->state[r].armed = epoch;
		m->state[r].status = epoch;
	}
}

/*
 * Count one edge. The node is not due again before all its edges of this epoch
 * are counted, this one among them: so @due stands still while it is read.
 */
static bool t3_node_edge(struct t3_node *node, u32 edges)
{
	u32 due = t3_load(&node->due);

	if (t3_add32(&node->have, 1) != due)
		return false;
	/* Before any successor is told, and so before the next epoch's edges. */
	t3_store(&node->due, due + edges);
	return true;
}

static void t3_trigger_edge(struct t3_machine *m, u32 trigger)
{
	if (t3_node_edge(t3_machine_node(m, trigger), m->graph->edges[trigger]))
		m->ops->ready(m, trigger);
}

/*
 * Retirement and the broken bit meet in one word: an epoch that retired first
 * stays a success, one that is broken never retires.
 */
static bool t3_retire(struct t3_machine *m, u32 rank, u32 epoch)
{
	u64 found = t3_load(&m->state[rank].status);

	while (!(found & T3_STATUS_BROKEN)) {
		u64 before = found;

		found = t3_cmpxchg64(&m->state[rank].status, before, epoch);
		if (found == before)
			return true;
	}
	return false;
}

static void t3_retire_edge(struct t3_machine *m, u32 rank)
{
	u32 edges = m->graph->edges[m->graph->triggers + rank];
	u32 epoch;

	if (!t3_node_edge(&m->state[rank].retire, edges))
		return;
	epoch = t3_load(&m->state[rank].armed);
	if (t3_retire(m, rank, epoch))
		m->ops->retired(m, rank, epoch);
}

/* A block has one more update: for its consumers, then for the graph. */
static void t3_update(struct t3_machine *m, u32 node, u32 block)
{
	const struct t3_graph *g = m->graph;
	u32 rank = g->block_rank[block];
	u32 i;

	t3_add32(&m->count[rank][block - g->first_block[rank]], 1);
	if (m->ops->updated)
		m->ops->updated(m, rank, block - g->first_block[rank]);
	for (i = g->successor_first[node]; i < g->successor_first[node + 1]; i++)
		t3_trigger_edge(m, g->successor[i]);
}

/* Claim a block's production for an epoch; only one caller gets it. */
static bool t3_produce(struct t3_machine *m, u32 rank, u32 block, u32 epoch)
{
	if (t3_cmpxchg32(&m->claimed[block], epoch - 1, epoch) != epoch - 1)
		return false;
	t3_update(m, block, block);
	t3_retire_edge(m, rank);
	return true;
}

bool t3_machine_look(struct t3_machine *m, u32 rank, u32 block)
{
	u32 node = m->graph->first_block[rank] + block;
	u32 epoch = t3_load_sc(&m->state[rank].armed);
	u32 tiles = t3_load_sc(&m->tiles[rank][block]);

	/* Most looks are at blocks that nothing has happened to. */
	if (!m->graph->produced[node] ||
	    t3_load(&m->claimed[node]) != epoch - 1 ||
	    !t3_reached(tiles, epoch * m->graph->tiles[node]))
		return false;
	return t3_produce(m, rank, node, epoch);
}

int t3_machine_tiles(struct t3_machine *m, u32 rank, u32 block, u32 tiles)
{
	u32 node = m->graph->first_block[rank] + block;
	u32 epoch = t3_load(&m->state[rank].armed);
	u32 *counter = &m->tiles[rank][block];
	u32 found = t3_load(counter);
	u32 before;

	if (!m->graph->produced[node] || !m->graph->tiles[node])
		return -EINVAL;
	if ((u32)t3_load(&m->state[rank].status) == epoch)
		return -EPROTO;
	do {
		u32 left = epoch * m->graph->tiles[node] - found;

		if (left > m->graph->tiles[node] || left < tiles)
			return -EPROTO;
		before = found;
		found = t3_cmpxchg32(counter, before, before + tiles);
	} while (found != before);
	t3_machine_look(m, rank, block);
	return 0;
}

/* Are all tile counters of a rank where the last epoch left them? */
static int t3_tiles_settled(const struct t3_machine *m, u32 rank, u32 epoch,
			    u32 *block)
{
	const struct t3_graph *g = m->graph;
	u32 first = g->first_block[rank];
	u32 i;

	for (i = first; i < g->first_block[rank + 1]; i++) {
		if (!g->tiles[i])
			continue;
		if (t3_load(&m->tiles[rank][i - first]) != epoch * g->tiles[i]) {
			*block = i - first;
			return -EPROTO;
		}
	}
	return 0;
}

int t3_machine_arm(struct t3_machine *m, u32 rank, u32 *epoch, u32 *block)
{
	const struct t3_graph *g = m->graph;
	u64 status = t3_load_acquire(&m->state[rank].status);
	u32 last = t3_load(&m->state[rank].armed);
	u32 i;
	int ret;

	*block = T3_NONE;
	if (status & T3_STATUS_BROKEN)
		return -EOWNERDEAD;
	if ((u32)status != last)
		return -EBUSY;
	ret = t3_tiles_settled(m, rank, last, block);
	if (ret)
		return ret;
	*epoch = last + 1;
	t3_store_sc(&m->state[rank].armed, last + 1);
	for (i = 0; i < g->first_block[rank + 1] - g->first_block[rank]; i++)
		t3_machine_look(m, rank, i);
	for (i = g->first_trigger[rank]; i < g->first_trigger[rank + 1]; i++)
		t3_trigger_edge(m, i);
	t3_retire_edge(m, rank);
	return 0;
}

void t3_machine_complete(struct t3_machine *m, u32 trigger)
{
	u32 own = m->graph->action[trigger].rank;
	u64 ranks = m->graph->retires[trigger] & ~(1ULL << own);

	t3_update(m, m->graph->blocks + trigger,
		  m->graph->action[trigger].block);
	for (; ranks; ranks &= ranks - 1)
		t3_retire_edge(m, __builtin_ctzll(ranks));
	/*
	 * The executor's own rank last: once that has retired its process may
	 * exit, and nobody else may still wait for what is counted here.
	 */
	t3_retire_edge(m, own);
}

void t3_machine_break(struct t3_machine *m)
{
	u32 r;

	for (r = 0; r < m->graph->ranks; r++)
		t3_or64(&m->state[r].status, T3_STATUS_BROKEN);
}

int t3_machine_retired(const struct t3_machine *m, u32 rank, u32 epoch)
{
	u64 status = t3_load_acquire(&m->state[rank].status);

	if (t3_reached((u32)status, epoch))
		return 1;
	return status & T3_STATUS_BROKEN ? -EOWNERDEAD : 0;
}

/* Updates that a block still lacks in an epoch. */
static bool t3_block_lacks(const struct t3_machine *m, u32 node, u32 epoch,
			   struct t3_lack *lack)
{
	const struct t3_graph *g = m->graph;
	u32 rank = g->block_rank[node];
	u32 need = g->updates[node];
	u32 have;

	lack->rank = rank;
	lack->block = node - g->first_block[rank];
	lack->need = need;
	have = t3_load(&m->count[rank][lack->block]) - (epoch - 1) * need;
	lack->have = have;
	return !t3_reached(have, need);
}

bool t3_machine_lacks(const struct t3_machine *m, u32 rank,
		      struct t3_lack *lack)
{
	const struct t3_graph *g = m->graph;
	u32 epoch = t3_load(&m->state[rank].armed);
	u64 needs = g->needs[rank];
	u32 pass, i, r;

	*lack = (struct t3_lack) { .block = T3_NONE };
	for (r = 0; r < g->ranks; r++) {
		lack->rank = r;
		if (needs >> r & 1 && !t3_reached(t3_load(&m->state[r].armed), epoch))
			return true;
	}
	/* Blocks that nobody has produced first: others wait for those. */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < g->blocks; i++) {
			bool late = g->produced[i] &&
				    t3_load(&m->claimed[i]) == epoch - 1;

			if (!(needs >> g->block_rank[i] & 1) || (!pass && !late))
				continue;
			if (t3_block_lacks(m, i, epoch, lack))
				return true;
		}
	}
	return false;
}
