// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl inspect: what groups wait for. First who is to blame, then a sentence
 * for each trigger that waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define SENTENCES	20	/* of one rank, without --all */

/**
 * struct asked - the command's arguments
 * @group: its number; 0: all
 * @all: every trigger
 */
struct asked {
	unsigned int group;
	bool all;
};

static bool armed(const struct plan_rank *r)
{
	return r->armed != r->retired;
}

static bool plan_armed(const struct group *group, const struct plan *plan)
{
	unsigned int r;

	for (r = 0; r < group->ranks; r++)
		if (armed(&plan->rank[r]))
			return true;
	return false;
}

/* Frees both. */
static char *append(char *text, char *more)
{
	char *both = text_of("%s%s", text, more);

	free(text);
	free(more);
	return both;
}

/* --- who is to blame --------------------------------------------------------- */

/**
 * struct blame - a rank that others wait for
 * @triggers: that name it
 * @unarmed: it has not armed
 */
struct blame {
	unsigned int triggers;
	bool unarmed;
};

static void blame_plan(const struct group *group, const struct plan *plan,
		       struct blame *blame)
{
	unsigned int r, i, k;

	for (r = 0; r < group->ranks; r++) {
		for (i = 0; i < plan->rank[r].waits; i++) {
			const struct wait *wait = &plan->rank[r].wait[i];
			uint64_t named = 0;

			for (k = 0; k < wait->lacks; k++) {
				const struct lack *lack = &wait->lack[k];

				blame[lack->rank].triggers +=
					!(named >> lack->rank & 1);
				blame[lack->rank].unarmed |= lack->unarmed;
				named |= 1ULL << lack->rank;
			}
		}
	}
}

/*
 * A block that lacks an update because its own trigger waits is a consequence;
 * the cause is a rank that has not armed, or one whose tiles are not all there
 * and of which no trigger waits for another rank.
 */
static bool is_cause(const struct plan *plan, unsigned int rank,
		     const struct blame *blame)
{
	unsigned int i, k;

	if (!blame[rank].triggers || blame[rank].unarmed)
		return blame[rank].triggers;
	for (i = 0; i < plan->rank[rank].waits; i++)
		for (k = 0; k < plan->rank[rank].wait[i].lacks; k++)
			if (plan->rank[rank].wait[i].lack[k].rank != rank)
				return false;
	return true;
}

static char *cause_text(const struct group *group, unsigned int rank,
			const struct blame *blame)
{
	char *who = rank_text(group, rank);
	char *text = text_of("%u %s for %s, which %s%s",
			     blame[rank].triggers,
			     blame[rank].triggers == 1 ? "trigger waits" :
							 "triggers wait",
			     who,
			     blame[rank].unarmed ? "has not armed the epoch" :
				"has armed, but has not produced all its tiles",
			     group->left >> rank & 1 ? " and has left" : "");

	free(who);
	return text;
}

static void print_causes(const struct group *group, const struct plan *plan)
{
	struct blame blame[T3_MAX_RANKS] = { 0 };
	unsigned int r, n = 0;

	blame_plan(group, plan, blame);
	for (r = 0; r < group->ranks; r++) {
		char *text;

		if (!is_cause(plan, r, blame))
			continue;
		text = append(cause_text(group, r, blame), must_strdup("."));
		printf("  %s", colour(YELLOW));
		wrap(2, 4, text);
		fputs(colour(PLAIN), stdout);
		free(text);
		n++;
	}
	for (r = 0; !n && r < group->ranks; r++)
		if (blame[r].triggers) {
			printf("  Each waits for another that waits: it moves, look again.\n");
			return;
		}
}

/* --- sentences --------------------------------------------------------------- */

static char *lack_text(const struct lack *lack)
{
	return text_of("block %u of rank %u, which has %u of %u updates%s",
		       lack->block, lack->rank, lack->have, lack->need,
		       lack->unarmed ? " and is not armed" : "");
}

static char *wait_text(unsigned int rank, const struct wait *wait)
{
	char *text = text_of("rank %u trigger %u, %s, ", rank, wait->trigger,
			     wait->what);
	unsigned int k;

	if (!wait->lacks)
		return append(text, must_strdup(wait->rest ? wait->rest :
						"is at work"));
	text = append(text, must_strdup("waits for "));
	for (k = 0; k < wait->lacks; k++) {
		if (k)
			text = append(text, must_strdup(" and for "));
		text = append(text, lack_text(&wait->lack[k]));
	}
	return text;
}

static void print_sentence(int indent, char *text)
{
	printf("%*s", indent, "");
	wrap(indent, indent + 2, text);
	free(text);
}

static char *idle_text(unsigned int rank)
{
	return text_of("rank %u has no trigger that waits: it retires when its own tiles are counted and when others have read its blocks.",
		       rank);
}

static void print_rank(const struct plan *plan, unsigned int rank, bool all)
{
	const struct plan_rank *r = &plan->rank[rank];
	unsigned int i, shown = all || r->waits <= SENTENCES ? r->waits :
							       SENTENCES;

	for (i = 0; i < shown; i++)
		print_sentence(4, append(wait_text(rank, &r->wait[i]),
					 must_strdup(".")));
	if (r->waits + r->more > shown)
		print_sentence(4, text_of("... and %u more of rank %u%s.",
					  r->waits + r->more - shown, rank,
					  r->waits > shown ? " (--all shows more)" : ""));
	if (!r->waits && armed(r))
		print_sentence(4, idle_text(rank));
}

static void print_plan(const struct group *group, const struct plan *plan,
		       bool all)
{
	unsigned int r, epoch = 0;

	for (r = 0; r < group->ranks; r++)
		if (armed(&plan->rank[r]))
			epoch = plan->rank[r].armed;
	printf("%sgroup %u slot %u, epoch %u%s: armed by", colour(BOLD),
	       group->id, plan->slot, epoch, colour(PLAIN));
	for (r = 0; r < group->ranks; r++)
		if (armed(&plan->rank[r]))
			printf(" %u", r);
	printf(" of %u ranks\n", group->ranks);
	print_causes(group, plan);
	for (r = 0; r < group->ranks; r++)
		print_rank(plan, r, all);
}

static void print_group(const struct group *group, const struct asked *asked,
			bool dump)
{
	unsigned int i, n = 0;

	if (group->broken)
		print_sentence(0, text_of("group %u broke: %s. Nothing runs in it any more.",
					  group->id, group->sentence ?
					  group->sentence :
					  strerror(group->broken)));
	for (i = 0; dump && !group->broken && i < group->plans; i++) {
		if (!plan_armed(group, &group->plan[i]))
			continue;
		print_plan(group, &group->plan[i], asked->all);
		n++;
	}
	if (!n && !group->broken)
		printf("group %u: %s\n", group->id, dump ?
		       "nothing is armed, so that it waits for nothing." :
		       "what it waits for only root can see.");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asked *asked = state->input;
	unsigned long id;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = NULL;
		return 0;
	case 'a':
		asked->all = true;
		return 0;
	case ARGP_KEY_ARG:
		id = strtoul(arg, &end, 10);
		if (*end || !id || id > UINT32_MAX || asked->group)
			argp_error(state, "GROUP is \"%s\"; allowed: one number, as t3ctl ls shows it",
				   arg);
		asked->group = id;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_inspect(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{ "all", 'a', NULL, 0,
		  "a sentence for every trigger that the driver shows; else 20 a rank",
		  0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[GROUP]",
		.children = common,
		.doc =
			"Says what groups wait for: for each plan with an armed epoch which rank is the cause, then a sentence for each trigger that waits.",
	};
	struct asked asked = { 0 };
	struct json_object *list = NULL;
	struct state state;
	unsigned int g, n = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &asked);
	state_read(&state);
	list = json_object_new_array();
	for (g = 0; g < state.groups; g++) {
		if (asked.group && state.group[g].id != asked.group)
			continue;
		n++;
		if (options.json)
			json_object_array_add(list, group_json(&state.group[g]));
		else
			print_group(&state.group[g], &asked, state.dump);
	}
	if (options.json)
		print_json(list);
	else
		json_object_put(list);
	if (!n && !options.json && !asked.group)
		puts("no groups");
	state_remark(&state);
	if (!n && asked.group)
		fprintf(stderr, "t3ctl: there is no group %u\n", asked.group);
	state_free(&state);
	return n || !asked.group ? EXIT_FINE : EXIT_NOT_FINE;
}
