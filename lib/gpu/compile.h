/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plan compiler: a plan's graph as stream operations, for any GPU.
 *
 * All processes' operations are one list, in one global topological order:
 * what writes a word stands before what waits for it. Each process submits its
 * part of the list in order, over all its streams. So whatever number of
 * hardware queues the streams share, the first operation of the list that has
 * not run can run: there is no deadlock.
 */
#ifndef T3_GPU_COMPILE_H
#define T3_GPU_COMPILE_H

#include "graph.h"

#define T3_GPU_STREAMS	32	/* at most */
#define T3_GPU_BAND	(4U << 20)	/* bytes of a copy, unless told */

/* What an operation does. */
enum t3_gpu_kind {
	T3_GPU_ARM = 1,	/* the user has armed: nothing to do on the GPU */
	T3_GPU_PRODUCE,	/* the user's GEMM has made these blocks */
	T3_GPU_WAIT,	/* until the process's own word reaches the epoch */
	T3_GPU_COPY,	/* by a copy engine */
	T3_GPU_MOVE,	/* a copy within one GPU: by a kernel, never an engine */
	T3_GPU_ADD,	/* in place, two sources: the first is added to memory */
	T3_GPU_SUM,	/* ordered sum in fp32, rounded once */
	T3_GPU_WRITE,	/* set a process's word to the epoch */
	T3_GPU_RETIRE,	/* all is final; the user's stream goes on */
};

/**
 * struct t3_gpu_place - a rectangle of a region's memory
 * @rank: whose
 * @region: which of its regions in the plan
 * @offset: bytes from the region's base to its first element
 * @pitch: bytes from row to row
 */
struct t3_gpu_place {
	u32 rank;
	u32 region;
	u64 offset;
	u64 pitch;
};

/**
 * struct t3_gpu_op - one stream operation
 * @kind: enum t3_gpu_kind
 * @process: who submits it
 * @stream: on which of its streams; 0 is the user's
 * @group: operations of one band, or one production, have the same
 * @owner: WAIT, WRITE: whose word; of a WAIT, @process
 * @word: WAIT, WRITE: which of the owner's words. One operation writes it, to
 *	the epoch's number; so it grows and is never reset
 * @dtype: of the elements
 * @rows: of the rectangle
 * @width: bytes of a row
 * @to: the destination
 * @first_source: in t3_gpu_list.source
 * @sources: how many
 * @first_node: in t3_gpu_list.node: what of the graph it carries out
 * @nodes: how many
 */
struct t3_gpu_op {
	u16 kind;
	u16 process;
	u16 stream;
	u16 owner;
	u32 group;
	u32 word;
	u32 dtype;
	u32 rows;
	u64 width;
	struct t3_gpu_place to;
	u32 first_source;
	u32 sources;
	u32 first_node;
	u32 nodes;
};

/**
 * struct t3_gpu_mapping - who carries out what, where
 * @streams: of each process, 1 .. T3_GPU_STREAMS; with one, all queues behind
 *	the GEMM
 * @band_bytes: largest merged transfer; 0: T3_GPU_BAND
 * @push: the process of the first source that is another rank's carries out a
 *	trigger; else the destination's. Not for sums of more than two sources
 * @step: [ranks] a rank's produced blocks in the order of production (struct
 *	t3_planned); NULL: in order of number
 * @steps: [ranks] how many; not read where @step is NULL
 */
struct t3_gpu_mapping {
	u32 streams;
	u32 band_bytes;
	bool push;
	const u32 *const *step;
	const u32 *steps;
};

/**
 * struct t3_gpu_list - what t3_gpu_compile() made
 * @ops: number of entries of @op
 * @op: in the global order
 * @source: the transfers' sources
 * @node: graph nodes: block n's production is n, trigger t is blocks + t
 * @words: [ranks] how many words each process has
 * @retire: groups from this one on are the ranks' ends: a process's last waits,
 *	and its RETIRE
 *
 * Constant after it is made.
 */
struct t3_gpu_list {
	u32 ops;
	struct t3_gpu_op *op;
	struct t3_gpu_place *source;
	u32 *node;
	u32 *words;
	u32 retire;
};

/**
 * t3_gpu_compile - a plan as stream operations
 * @list: out; to be freed by t3_gpu_list_free()
 * @prog: [graph->ranks] the programs
 * @graph: made of them by t3_graph_build()
 * @mapping: who, where
 *
 * Return: 0; -EINVAL a mapping that says what it may not; -ENOMEM.
 */
int t3_gpu_compile(struct t3_gpu_list *list, const struct t3_program *const *prog,
		   const struct t3_graph *graph,
		   const struct t3_gpu_mapping *mapping);

/* Free what t3_gpu_compile() allocated; all zero afterwards. */
void t3_gpu_list_free(struct t3_gpu_list *list);

#endif /* T3_GPU_COMPILE_H */
