/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Machine descriptions: what t3model knows about a machine, read from a small
 * text file (Documentation/t3model.rst).
 */
#ifndef T3_MODEL_MACHINE_FILE_H
#define T3_MODEL_MACHINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How ranks are linked. */
enum model_topology {
	MODEL_RING,	/* to the next rank only; farther ones through those between */
	MODEL_FULL,	/* a link from each rank to each */
	MODEL_SWITCH,	/* one port a rank, any to any */
	MODEL_PCIE,	/* one port a rank, all of them through one root */
	MODEL_SHARED,	/* no links: all ranks' memory is one */
};

/* Who goes first to memory while a GEMM runs. */
enum model_policy {
	MODEL_ROUND_ROBIN,
	MODEL_COMPUTE_FIRST,
	MODEL_NO_CONTENTION,
};

/**
 * struct model_machine - a machine; seconds, bytes and their quotients
 * @name: one word
 * @ranks: how many it has
 * @units: compute units of a rank
 * @clock: Hz
 * @flops_f16: of f16 and bf16 in a clock of a unit
 * @flops_f32: likewise
 * @flops_f64: likewise
 * @efficiency: of the main loop of a GEMM, 0 .. 1
 * @unaligned: of that, where rows of K elements are no multiple of 16 bytes
 * @tile_m: rows of the output that a work-group makes
 * @tile_n: columns
 * @tile_k: length of one step of its main loop
 * @prefetch: steps that are in flight or in use
 * @layout: T3_ROW_MAJOR or T3_COL_MAJOR, of the output
 * @launch: time to start a kernel
 * @llc: bytes of the last-level cache
 * @llc_ways: lines of a set of it
 * @dram: bytes a second
 * @dram_latency: of a read when nothing else runs
 * @dram_queue: requests that a channel's queue holds
 * @dram_channels: how many
 * @dram_access: bytes of a request
 * @near_memory: memory itself adds (near-memory compute)
 * @update: time of such an update, in writes
 * @topology: enum model_topology
 * @link: bytes a second, one direction, of one link or port
 * @link_latency: of it
 * @root: bytes a second of what all ports share (MODEL_PCIE)
 * @dma_engines: transfers of a rank that run at once
 * @dma_fixed: time that a transfer costs beside its bytes
 * @sum_rate: bytes a second that a unit adds, where memory does not
 * @sum_units: units that are taken from the GEMM for it
 * @sum_steal: share of a rank's GEMM that stands still while its sums run
 * @comm_launch: time to start a collective that is no part of a GEMM
 * @copy_rate: bytes a second that a unit sends in a collective run by units
 * @net: bytes a second between nodes, for each rank and direction
 * @net_latency: likewise
 * @policy: enum model_policy, of the machine as it is
 * @starve: least share of memory that transfers keep
 * @tracker: entries of the tracker; 0: as many as it takes
 */
struct model_machine {
	char name[64];
	double ranks;
	double units;
	double clock;
	double flops_f16;
	double flops_f32;
	double flops_f64;
	double efficiency;
	double unaligned;
	double tile_m;
	double tile_n;
	double tile_k;
	double prefetch;
	double layout;
	double launch;
	double llc;
	double llc_ways;
	double dram;
	double dram_latency;
	double dram_queue;
	double dram_channels;
	double dram_access;
	double near_memory;
	double update;
	double topology;
	double link;
	double link_latency;
	double root;
	double dma_engines;
	double dma_fixed;
	double sum_rate;
	double sum_units;
	double sum_steal;
	double comm_launch;
	double copy_rate;
	double net;
	double net_latency;
	double policy;
	double starve;
	double tracker;
};

/**
 * struct model_parameter - a line of a machine's file, for people
 * @key: as in the file
 * @text: its value with the unit, as written
 * @source: where it comes from; begins with "fitted to ROW" where it was
 */
struct model_parameter {
	char key[40];
	char text[40];
	char source[200];
};

#define MODEL_PARAMETERS	48

/**
 * struct model_file - a machine with the sources of its parameters
 * @machine: the machine
 * @parameter: its lines
 * @parameters: how many
 *
 * Filled in by one thread, then constant.
 */
struct model_file {
	struct model_machine machine;
	struct model_parameter parameter[MODEL_PARAMETERS];
	size_t parameters;
};

/**
 * model_file_parse - read a machine from text
 * @file: out
 * @name: for messages
 * @text: the whole description; changed by parsing
 * @why: out: "NAME:LINE: cause"
 * @bytes: size of @why
 *
 * Return: 0 or -EINVAL; @file is undefined after a failure.
 */
int model_file_parse(struct model_file *file, const char *name, char *text,
		     char *why, size_t bytes);

/**
 * model_file_read - read a machine from a file
 * @file: out
 * @path: a path, or the name of a machine that is shipped
 * @why: out: the cause
 * @bytes: size of @why
 *
 * Return: 0 or a negative errno: -EINVAL what the file says; -E2BIG it is
 * larger than 64 KiB; those of open() and read().
 */
int model_file_read(struct model_file *file, const char *path, char *why,
		    size_t bytes);

/**
 * struct model_shipped - a machine that is part of the program
 * @name: of its file, without the ending
 * @text: its description
 */
struct model_shipped {
	const char *name;
	const char *text;
};

/* Ends with a NULL name. */
extern const struct model_shipped model_shipped[];

/**
 * model_file_fitted - was a parameter fitted to a figure?
 * @parameter: a line of a machine's file; its source says
 *	"fitted to ID, ID and ID: how" where it was
 * @id: the figure
 */
bool model_file_fitted(const struct model_parameter *parameter, const char *id);

/* FLOP a second of one unit; @bytes is the size of an element. */
double model_unit_rate(const struct model_machine *m, uint32_t bytes);

#endif /* T3_MODEL_MACHINE_FILE_H */
