/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * t3ctl: the groups that there are, as debugfs and /proc show them.
 */
#ifndef T3_TOOLS_CTL_STATE_H
#define T3_TOOLS_CTL_STATE_H

#include "ctl.h"

#include <linux/t3.h>

/**
 * struct lack - something that a trigger waits for
 * @rank: whose block
 * @block: which
 * @have: updates it has in the epoch
 * @need: updates it needs
 * @unarmed: the rank has not armed the epoch
 */
struct lack {
	unsigned int rank;
	unsigned int block;
	unsigned int have;
	unsigned int need;
	bool unarmed;
};

/**
 * struct wait - a trigger that has not been carried out
 * @trigger: its number in its rank's part
 * @what: "sum to block 0 as update 2", owned
 * @lack: [@lacks] what it waits for, owned; none: readers, or it is at work
 * @lacks: how many
 * @rest: what else the driver says, owned, or NULL
 */
struct wait {
	unsigned int trigger;
	char *what;
	struct lack *lack;
	unsigned int lacks;
	char *rest;
};

/**
 * struct plan_rank - a rank of a plan
 * @armed: epoch armed last
 * @retired: epoch retired last
 * @wait: [@waits] its triggers that wait, owned; the driver shows 256
 * @waits: how many
 * @more: how many more there are
 */
struct plan_rank {
	unsigned int armed;
	unsigned int retired;
	struct wait *wait;
	unsigned int waits;
	unsigned int more;
};

/**
 * struct plan - a live plan
 * @slot: where
 * @generation: of the slot
 * @triggers: of all ranks
 * @ranks: those of the group
 * @rank: its ranks
 */
struct plan {
	unsigned int slot;
	unsigned long long generation;
	unsigned int triggers;
	unsigned int ranks;
	struct plan_rank rank[T3_MAX_RANKS];
};

/**
 * struct holder - who holds a member's or the group's descriptor
 * @pid: the first process found that does; 0: none was seen
 * @others: further processes that do: forked children mostly
 * @command: its name, owned, or NULL
 */
struct holder {
	int pid;
	unsigned int others;
	char *command;
};

/**
 * struct member - a rank as /proc shows it
 * @seen: a descriptor of it was seen
 * @by: by whom it is held
 * @regions: registered
 * @pinned: bytes
 */
struct member {
	bool seen;
	struct holder by;
	unsigned int regions;
	uint64_t pinned;
};

/**
 * struct group - a group
 * @id: as the kernel's log calls it
 * @ranks: how many
 * @joined: bit r is set: rank r has joined
 * @left: bit r is set: and has left or died
 * @watchdog_ms: its watchdog
 * @in_flight: executors at work at that moment
 * @poller: it has a poller
 * @broken: the errno with which it broke, or 0; -1: not known
 * @sentence: why it broke, owned, or NULL
 * @by: who holds the group's descriptor
 * @member: by rank
 * @plan: [@plans] owned
 * @plans: how many
 */
struct group {
	unsigned int id;
	unsigned int ranks;
	uint64_t joined;
	uint64_t left;
	unsigned int watchdog_ms;
	unsigned int in_flight;
	bool poller;
	int broken;
	char *sentence;
	struct holder by;
	struct member member[T3_MAX_RANKS];
	struct plan *plan;
	unsigned int plans;
};

/**
 * struct state - all that was seen
 * @group: [@groups] by growing number, owned
 * @groups: how many
 * @dump: the driver's dump was read: all groups are here, with their plans.
 *	Else only those of which some process that may be looked at has a file.
 * @dump_errno: why not
 */
struct state {
	struct group *group;
	unsigned int groups;
	bool dump;
	int dump_errno;
};

/* Reads it all; state_free() afterwards. It was not one moment. */
void state_read(struct state *state);
void state_free(struct state *state);

/* dump.c: adds what /sys/kernel/debug/t3/state says in @text. */
void dump_parse(struct state *state, const char *text);
/* holders.c: adds what processes hold. */
void holders_read(struct state *state);

/* The group of that number; added where there is none yet. */
struct group *state_group(struct state *state, unsigned int id);
/* The same, or NULL. */
struct group *state_find(const struct state *state, unsigned int id);

/* The group's plan in that slot; added where there is none yet. */
struct plan *state_plan(struct group *group, unsigned int slot);

/* Explains on stderr what was not seen, and how to see it; or is silent. */
void state_remark(const struct state *state);

/* "rank 1 (pid 77, t3bench)"; to be freed. */
char *rank_text(const struct group *group, unsigned int rank);

struct json_object *group_json(const struct group *group);

#endif /* T3_TOOLS_CTL_STATE_H */
