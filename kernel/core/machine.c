// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The dataflow machine: counting and firing, arm, retire, failure.
 */
#include "machine.h"

size_t t3_machine_bytes(const struct t3_graph *graph)
{
	return graph->ranks * (sizeof(u64) + sizeof(u32)) +
	       (graph->triggers + graph->ranks) * sizeof(struct t3_node) +
	       graph->blocks * sizeof(u32);
}

void t3_machine_attach(struct t3_machine *m, const struct t3_graph *graph,
		       const struct t3_machine_ops *ops, void *mem)
{
	m->graph = graph;
	m->ops = ops;
	m->status = mem;
	m->node = (struct t3_node *)(m->status + graph->ranks);
	m->armed = (u32 *)(m->node + graph->triggers + graph->ranks);
	m->claimed = m->armed + graph->ranks;
}

void t3_machine_start(struct t3_machine *m, u32 epoch)
{
	const struct t3_graph *g = m->graph;
	u32 i, r;

	for (i = 0; i < g->triggers + g->ranks; i++) {
		m->node[i].have = epoch * g->edges[i];
		m->node[i].due = (epoch + 1) * g->edges[i];
	}
	for (i = 0; i < g->blocks; i++) {
		u32 block;

		r = g->block_rank[i];
		block = i - g->first_block[r];
		m->claimed[i] = epoch;
		t3_store(&m->tiles[r][block], epoch * g->tiles[i]);
		t3_store(&m->count[r][block], epoch * g->updates[i]);
	}
	for (r = 0; r < g->ranks; r++) {
		m->armed[r] = epoch;
		m->status[r] = epoch;
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
	if (t3_node_edge(&m->node[trigger], m->graph->edges[trigger]))
		m->ops->ready(m, trigger);
}

/*
 * Retirement and the broken bit meet in one word: an epoch that retired first
 * stays a success, one that is broken never retires.
 */
static bool t3_retire(struct t3_machine *m, u32 rank, u32 epoch)
{
	u64 found = t3_load(&m->status[rank]);

	while (!(found & T3_STATUS_BROKEN)) {
		u64 before = found;

		found = t3_cmpxchg64(&m->status[rank], before, epoch);
		if (found == before)
			return true;
	}
	return false;
}

static void t3_retire_edge(struct t3_machine *m, u32 rank)
{
	u32 node = m->graph->triggers + rank;
	u32 epoch;

	if (!t3_node_edge(&m->node[node], m->graph->edges[node]))
		return;
	epoch = t3_load(&m->armed[rank]);
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
	u32 epoch = t3_load_sc(&m->armed[rank]);
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
	u32 epoch = t3_load(&m->armed[rank]);
	u32 *counter = &m->tiles[rank][block];
	u32 found = t3_load(counter);
	u32 before;

	if (!m->graph->produced[node] || !m->graph->tiles[node])
		return -EINVAL;
	if ((u32)t3_load(&m->status[rank]) == epoch)
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
	u64 status = t3_load_acquire(&m->status[rank]);
	u32 last = t3_load(&m->armed[rank]);
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
	t3_store_sc(&m->armed[rank], last + 1);
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
		t3_or64(&m->status[r], T3_STATUS_BROKEN);
}

int t3_machine_retired(const struct t3_machine *m, u32 rank, u32 epoch)
{
	u64 status = t3_load_acquire(&m->status[rank]);

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
	u32 epoch = t3_load(&m->armed[rank]);
	u64 needs = g->needs[rank];
	u32 pass, i, r;

	*lack = (struct t3_lack) { .block = T3_NONE };
	for (r = 0; r < g->ranks; r++) {
		lack->rank = r;
		if (needs >> r & 1 && !t3_reached(t3_load(&m->armed[r]), epoch))
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
