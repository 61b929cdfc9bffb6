// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl ls: the groups and who is in them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* Appends to a string that is owned; frees both. */
static char *join(char *a, char *b)
{
	char *both = text_of("%s%s%s", a, *a && *b ? ", " : "", b);

	free(a);
	free(b);
	return both;
}

/* "slot 3: 12 armed, 11 retired", of each plan that the rank has part in. */
static char *epochs_text(const struct group *group, unsigned int rank)
{
	char *text = must_strdup("");
	unsigned int i;

	for (i = 0; i < group->plans; i++) {
		const struct plan_rank *r = &group->plan[i].rank[rank];

		if (r->armed == r->retired)
			text = join(text, text_of("slot %u: %u done",
						  group->plan[i].slot,
						  r->retired));
		else
			text = join(text, text_of("slot %u: %u armed",
						  group->plan[i].slot,
						  r->armed));
	}
	return text;
}

static char *member_state(const struct group *group, unsigned int rank)
{
	if (!(group->joined >> rank & 1))
		return must_strdup("not joined");
	if (group->left >> rank & 1)
		return must_strdup("left");
	return must_strdup("joined");
}

static char *pid_text(const struct holder *by)
{
	if (!by->pid)
		return must_strdup("");
	return by->others ? text_of("%d+%u", by->pid, by->others) :
			    text_of("%d", by->pid);
}

static void add_member(struct table *t, const struct group *group,
		       unsigned int rank)
{
	const struct member *m = &group->member[rank];

	table_row(t, rank ? must_strdup("") : text_of("%u", group->id),
		  text_of("%u/%u", rank, group->ranks),
		  member_state(group, rank), pid_text(&m->by),
		  must_strdup(m->by.command ? m->by.command : ""),
		  m->seen ? text_of("%u", m->regions) : must_strdup(""),
		  m->seen ? bytes_text(m->pinned) : must_strdup(""),
		  epochs_text(group, rank));
}

static uint64_t pinned_of(const struct group *group, unsigned int *members)
{
	uint64_t bytes = 0;
	unsigned int r;

	for (r = 0; r < group->ranks; r++) {
		bytes += group->member[r].pinned;
		*members += group->joined >> r & ~group->left >> r & 1;
	}
	return bytes;
}

/* What the driver itself counts, or -1. */
static int64_t pinned_by_driver(void)
{
	char *text = read_text_of("/sys/class/misc/t3/counters/pinned_bytes");
	int64_t bytes = text ? strtoll(text, NULL, 10) : -1;

	free(text);
	return bytes;
}

static void print_sum(const struct state *state)
{
	unsigned int g, members = 0;
	uint64_t bytes = 0;
	int64_t whole;
	char *text;

	for (g = 0; g < state->groups; g++)
		bytes += pinned_of(&state->group[g], &members);
	whole = pinned_by_driver();
	text = bytes_text(whole < 0 ? bytes : (uint64_t)whole);
	printf("%s%u %s, %u %s, %s pinned%s\n", state->groups ? "\n" : "",
	       state->groups, state->groups == 1 ? "group" : "groups", members,
	       members == 1 ? "member" : "members", text,
	       whole >= 0 && !state->dump ? " on the whole machine" : "");
	free(text);
}

static void print_groups(const struct state *state)
{
	unsigned int g, r;
	struct table t;

	table_init(&t, 8, 1 << 3 | 1 << 5 | 1 << 6);
	table_row(&t, must_strdup("GROUP"), must_strdup("RANK"),
		  must_strdup("STATE"), must_strdup("PID"),
		  must_strdup("COMMAND"), must_strdup("REGIONS"),
		  must_strdup("PINNED"), must_strdup("EPOCHS"));
	for (g = 0; g < state->groups; g++)
		for (r = 0; r < state->group[g].ranks; r++)
			add_member(&t, &state->group[g], r);
	table_print(&t);
	for (g = 0; g < state->groups; g++) {
		const struct group *group = &state->group[g];

		if (!group->broken)
			continue;
		printf("%sgroup %u broke: ", colour(RED), group->id);
		if (group->sentence)
			fputs(group->sentence, stdout);
		else
			printf("%s", strerror(group->broken));
		printf("%s\n", colour(PLAIN));
	}
}

static struct json_object *ls_json(const struct state *state)
{
	struct json_object *json = json_object_new_object();
	struct json_object *groups = json_object_new_array();
	unsigned int g;

	for (g = 0; g < state->groups; g++)
		json_object_array_add(groups, group_json(&state->group[g]));
	json_object_object_add(json, "groups", groups);
	json_object_object_add(json, "complete",
			       json_object_new_boolean(state->dump));
	json_object_object_add(json, "pinned_bytes",
			       json_object_new_int64(pinned_by_driver()));
	return json;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "ls takes no \"%s\"", arg);
	return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

int cmd_ls(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.children = common,
		.doc =
			"Lists groups: each rank, the process that holds it (\"+1\": and one more, a forked child for example), its regions and pinned memory, and its epochs.\vRoot sees all of them; others see those of their own processes.",
	};
	struct state state;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	state_read(&state);
	if (options.json) {
		print_json(ls_json(&state));
	} else {
		if (state.groups)
			print_groups(&state);
		print_sum(&state);
	}
	state_remark(&state);
	state_free(&state);
	return EXIT_FINE;
}
