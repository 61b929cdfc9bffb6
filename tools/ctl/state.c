// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: the groups, put together from all sources.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct group *state_find(const struct state *state, unsigned int id)
{
	unsigned int i;

	for (i = 0; i < state->groups; i++)
		if (state->group[i].id == id)
			return &state->group[i];
	return NULL;
}

struct group *state_group(struct state *state, unsigned int id)
{
	struct group *group = state_find(state, id);
	unsigned int at = state->groups;

	if (group)
		return group;
	state->group = must_grow(state->group, state->groups + 1,
				 sizeof(*group));
	while (at && state->group[at - 1].id > id)
		at--;
	memmove(&state->group[at + 1], &state->group[at],
		(state->groups++ - at) * sizeof(*group));
	state->group[at] = (struct group){ .id = id };
	return &state->group[at];
}

struct plan *state_plan(struct group *group, unsigned int slot)
{
	struct plan *plan;
	unsigned int i;

	for (i = 0; i < group->plans; i++)
		if (group->plan[i].slot == slot)
			return &group->plan[i];
	group->plan = must_grow(group->plan, group->plans + 1, sizeof(*plan));
	plan = &group->plan[group->plans++];
	*plan = (struct plan){ .slot = slot, .ranks = T3_MAX_RANKS };
	return plan;
}

void state_read(struct state *state)
{
	char *text = read_text_of("/sys/kernel/debug/t3/state");

	*state = (struct state){ .dump = text, .dump_errno = text ? 0 : errno };
	if (text)
		dump_parse(state, text);
	free(text);
	holders_read(state);
}

static void plan_free(struct plan *plan)
{
	unsigned int r, i;

	for (r = 0; r < T3_MAX_RANKS; r++) {
		for (i = 0; i < plan->rank[r].waits; i++) {
			free(plan->rank[r].wait[i].what);
			free(plan->rank[r].wait[i].lack);
			free(plan->rank[r].wait[i].rest);
		}
		free(plan->rank[r].wait);
	}
}

void state_free(struct state *state)
{
	unsigned int g, i;

	for (g = 0; g < state->groups; g++) {
		struct group *group = &state->group[g];

		for (i = 0; i < group->plans; i++)
			plan_free(&group->plan[i]);
		for (i = 0; i < T3_MAX_RANKS; i++)
			free(group->member[i].by.command);
		free(group->by.command);
		free(group->sentence);
		free(group->plan);
	}
	free(state->group);
}

void state_remark(const struct state *state)
{
	if (state->dump)
		return;
	fprintf(stderr, "t3ctl: /sys/kernel/debug/t3/state can't be read (%s): %s\n",
		strerror(state->dump_errno),
		state->dump_errno == EACCES ?
		"only your own groups are shown, and not what they wait for; run as root" :
		"is the module loaded and debugfs mounted?");
}

char *rank_text(const struct group *group, unsigned int rank)
{
	const struct holder *by = &group->member[rank].by;

	if (!by->pid)
		return text_of("rank %u", rank);
	return text_of("rank %u (pid %d, %s)", rank, by->pid,
		       by->command ? by->command : "?");
}

/* --- JSON ------------------------------------------------------------------ */

static void add_number(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_uint64(value));
}

static void add_text(struct json_object *to, const char *key, const char *value)
{
	json_object_object_add(to, key,
			       value ? json_object_new_string(value) : NULL);
}

static struct json_object *mask_json(uint64_t mask)
{
	struct json_object *list = json_object_new_array();
	int r;

	for (r = 0; r < T3_MAX_RANKS; r++)
		if (mask >> r & 1)
			json_object_array_add(list, json_object_new_int(r));
	return list;
}

static struct json_object *wait_json(const struct wait *wait)
{
	struct json_object *json = json_object_new_object();
	struct json_object *list = json_object_new_array();
	unsigned int i;

	add_number(json, "trigger", wait->trigger);
	add_text(json, "what", wait->what);
	for (i = 0; i < wait->lacks; i++) {
		struct json_object *lack = json_object_new_object();

		add_number(lack, "rank", wait->lack[i].rank);
		add_number(lack, "block", wait->lack[i].block);
		add_number(lack, "have", wait->lack[i].have);
		add_number(lack, "need", wait->lack[i].need);
		json_object_object_add(lack, "armed",
				       json_object_new_boolean(!wait->lack[i].unarmed));
		json_object_array_add(list, lack);
	}
	json_object_object_add(json, "lacks", list);
	if (wait->rest)
		add_text(json, "remark", wait->rest);
	return json;
}

static struct json_object *plan_json(const struct group *group,
				     const struct plan *plan)
{
	struct json_object *json = json_object_new_object();
	struct json_object *ranks = json_object_new_array();
	unsigned int r, i;

	add_number(json, "slot", plan->slot);
	add_number(json, "generation", plan->generation);
	add_number(json, "triggers", plan->triggers);
	for (r = 0; r < group->ranks; r++) {
		struct json_object *rank = json_object_new_object();
		struct json_object *waits = json_object_new_array();

		add_number(rank, "rank", r);
		add_number(rank, "armed", plan->rank[r].armed);
		add_number(rank, "retired", plan->rank[r].retired);
		for (i = 0; i < plan->rank[r].waits; i++)
			json_object_array_add(waits,
					      wait_json(&plan->rank[r].wait[i]));
		json_object_object_add(rank, "waiting", waits);
		add_number(rank, "not_shown", plan->rank[r].more);
		json_object_array_add(ranks, rank);
	}
	json_object_object_add(json, "ranks", ranks);
	return json;
}

static void add_members(struct json_object *json, const struct group *group)
{
	struct json_object *list = json_object_new_array();
	unsigned int r;

	for (r = 0; r < group->ranks; r++) {
		const struct member *member = &group->member[r];
		struct json_object *one;

		if (!member->seen)
			continue;
		one = json_object_new_object();
		add_number(one, "rank", r);
		add_number(one, "pid", member->by.pid);
		add_text(one, "command", member->by.command);
		add_number(one, "regions", member->regions);
		add_number(one, "pinned_bytes", member->pinned);
		json_object_array_add(list, one);
	}
	json_object_object_add(json, "members", list);
}

struct json_object *group_json(const struct group *group)
{
	struct json_object *json = json_object_new_object();
	struct json_object *plans = json_object_new_array();
	unsigned int i;

	add_number(json, "group", group->id);
	add_number(json, "ranks", group->ranks);
	json_object_object_add(json, "joined", mask_json(group->joined));
	json_object_object_add(json, "left", mask_json(group->left));
	add_number(json, "watchdog_ms", group->watchdog_ms);
	add_number(json, "in_flight", group->in_flight);
	json_object_object_add(json, "broken_errno",
			       json_object_new_int(group->broken));
	add_text(json, "broken", group->sentence);
	add_members(json, group);
	for (i = 0; i < group->plans; i++)
		json_object_array_add(plans, plan_json(group, &group->plan[i]));
	json_object_object_add(json, "plans", plans);
	return json;
}
