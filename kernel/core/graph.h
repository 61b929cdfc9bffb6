/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The graph of a plan: what waits for what. Derived once from the programs of
 * all ranks, then constant.
 */
#ifndef T3_CORE_GRAPH_H
#define T3_CORE_GRAPH_H

#include "env.h"
#include "program.h"

/**
 * struct t3_action - a trigger with every number resolved
 * @op: T3_OP_*
 * @rank: the destination's rank
 * @block: the destination, counted over the blocks of all ranks
 * @first_source: its first source in t3_graph.source
 * @sources: how many
 */
struct t3_action {
	u16 op;
	u16 rank;
	u32 block;
	u32 first_source;
	u32 sources;
};

/**
 * struct t3_graph - a plan's graph
 * @ranks: number of ranks
 * @blocks: blocks of all ranks
 * @triggers: triggers of all ranks
 * @sources: sources of all triggers
 * @first_block: [ranks + 1] a rank's first block
 * @first_trigger: [ranks + 1] a rank's first trigger
 * @edges: [triggers + ranks] edges into each trigger and each retire(rank)
 * @updates: [blocks] K: updates of a block in an epoch
 * @tiles: [blocks] T: tiles of the block's production
 * @produced: [blocks] P: 1 where a local producer writes the block
 * @grid_of: [blocks] the block's grid in its rank's program
 * @block_rank: [blocks] whose block it is
 * @successor_first: [blocks + triggers + 1] a node's first entry in @successor
 * @successor: triggers that wait for an update. Node n < @blocks is block n's
 *	production, node blocks + t is trigger t
 * @retires: [triggers] bit r is set: the trigger writes or reads rank r
 * @action: [triggers]
 * @source: [sources] blocks, counted over the blocks of all ranks
 * @needs: [ranks] bit s is set: an epoch of the rank can't retire unless rank
 *	s arms it too
 *
 * Built by one thread, constant afterwards: anybody may read it. It points
 * only into the memory that it was built in. Never lies in memory that another
 * process can write.
 */
struct t3_graph {
	u32 ranks;
	u32 blocks;
	u32 triggers;
	u32 sources;
	u32 *first_block;
	u32 *first_trigger;
	u32 *edges;
	u32 *updates;
	u32 *tiles;
	u8 *produced;
	u8 *grid_of;
	u8 *block_rank;
	u32 *successor_first;
	u32 *successor;
	u64 *retires;
	u64 *needs;
	struct t3_action *action;
	u32 *source;
};

/**
 * t3_graph_bytes - memory that a graph takes, and needs while it is built
 * @prog: [ranks] the programs; only their numbers are read
 * @ranks: number of ranks
 * @scratch: out: bytes needed only while it is built
 *
 * Return: bytes of the graph's own memory; 0 if it is over 2^31.
 */
u64 t3_graph_bytes(const struct t3_program *const *prog, u32 ranks,
		   u64 *scratch);

/**
 * t3_graph_build - derive the graph, or refuse the plan
 * @graph: out
 * @prog: [ranks] the programs, each accepted by t3_program_check()
 * @ranks: number of ranks
 * @mem: t3_graph_bytes() bytes, aligned to 8; the caller's, kept as long as
 *	the graph is used
 * @scratch: the scratch bytes, aligned to 8; the caller's again on return
 * @verdict: out: what is wrong
 *
 * The edges are those of the machine's definition (Documentation/machine.rst):
 * sources, the update before, its other readers, arming, and retirement.
 * Linear in the size of the programs.
 *
 * Context: may be rescheduled (t3_relax()); takes no lock.
 * Return: 0 or the negative errno of struct t3_verdict.
 */
int t3_graph_build(struct t3_graph *graph, const struct t3_program *const *prog,
		   u32 ranks, void *mem, void *scratch,
		   struct t3_verdict *verdict);

/* The rank whose trigger @trigger is. */
static inline u32 t3_graph_trigger_rank(const struct t3_graph *graph,
					u32 trigger)
{
	return graph->action[trigger].rank;
}

#endif /* T3_CORE_GRAPH_H */
