// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: reading the driver's dump. A line or a remark that this version does
 * not know is kept where it has a place, and else passed over: the dump is for
 * people, and may say more one day.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* Where the next line of the dump belongs. */
struct place {
	struct state *state;
	struct group *group;
	struct plan *plan;
	struct plan_rank *rank;
};

/* Room for one more, zeroed. */
static void *grow(void *list, unsigned int n, size_t size)
{
	char *more = must_grow(list, n + 1, size);

	memset(more + n * size, 0, size);
	return more;
}

static bool group_line(struct place *at, const char *line)
{
	unsigned long long joined, left;
	unsigned int id, ranks, watchdog, in_flight;
	struct group *group;

	if (sscanf(line, "group %u: %u ranks, joined 0x%llx, left 0x%llx, watchdog %u ms, in flight %u",
		   &id, &ranks, &joined, &left, &watchdog, &in_flight) != 6 ||
	    ranks > T3_MAX_RANKS)
		return false;
	group = state_group(at->state, id);
	group->ranks = ranks;
	group->joined = joined;
	group->left = left;
	group->watchdog_ms = watchdog;
	group->in_flight = in_flight;
	group->poller = strstr(line, "has a poller");
	at->group = group;
	at->plan = NULL;
	at->rank = NULL;
	return true;
}

static bool broken_line(struct place *at, const char *line)
{
	const char *number;
	unsigned int id;
	int n = 0;

	if (!at->group || sscanf(line, " group %u broke: %n", &id, &n) != 1 || !n)
		return false;
	free(at->group->sentence);
	at->group->sentence = must_strdup(line + n);
	number = strstr(line, "(errno ");
	at->group->broken = number ? atoi(number + 7) : -1;
	return true;
}

static bool slot_line(struct place *at, const char *line)
{
	unsigned long long generation;
	unsigned int slot, triggers;
	struct group *group = at->group;

	if (!group ||
	    sscanf(line, " slot %u: generation %llu, %u triggers", &slot,
		   &generation, &triggers) != 3)
		return false;
	group->plan = grow(group->plan, group->plans, sizeof(*group->plan));
	at->plan = &group->plan[group->plans++];
	at->plan->slot = slot;
	at->plan->generation = generation;
	at->plan->triggers = triggers;
	at->plan->ranks = group->ranks;
	at->rank = NULL;
	return true;
}

static bool rank_line(struct place *at, const char *line)
{
	unsigned int rank, armed, retired;

	if (!at->plan ||
	    sscanf(line, " rank %u: armed %u, retired %u", &rank, &armed,
		   &retired) != 3 || rank >= at->plan->ranks)
		return false;
	at->rank = &at->plan->rank[rank];
	at->rank->armed = armed;
	at->rank->retired = retired;
	return true;
}

/* One of the parts of a trigger's line that follow the first. */
static void trigger_part(struct wait *wait, const char *part)
{
	struct lack lack = { 0 };

	if (sscanf(part, "rank %u block %u has %u of %u updates", &lack.rank,
		   &lack.block, &lack.have, &lack.need) == 4 &&
	    lack.rank < T3_MAX_RANKS) {
		lack.unarmed = strstr(part, "not armed");
		wait->lack = grow(wait->lack, wait->lacks, sizeof(lack));
		wait->lack[wait->lacks++] = lack;
	} else if (!wait->rest) {
		wait->rest = must_strdup(part);
	}
}

static bool trigger_line(struct place *at, const char *line)
{
	char *text, *part, *save;
	struct plan_rank *rank = at->rank;
	struct wait *wait;
	unsigned int trigger;
	int n = 0;

	if (!rank || sscanf(line, " trigger %u: %n", &trigger, &n) != 1 || !n)
		return false;
	rank->wait = grow(rank->wait, rank->waits, sizeof(*wait));
	wait = &rank->wait[rank->waits++];
	wait->trigger = trigger;
	text = must_strdup(line + n);
	part = strtok_r(text, ";", &save);
	wait->what = must_strdup(part ? part : "");
	while ((part = strtok_r(NULL, ";", &save)))
		trigger_part(wait, part + strspn(part, " "));
	free(text);
	return true;
}

static bool more_line(struct place *at, const char *line)
{
	return at->rank && sscanf(line, " and %u more", &at->rank->more) == 1;
}

static void dump_line(struct place *at, const char *line)
{
	if (group_line(at, line) || broken_line(at, line) ||
	    slot_line(at, line) || rank_line(at, line) ||
	    trigger_line(at, line) || more_line(at, line))
		return;
}

void dump_parse(struct state *state, const char *text)
{
	struct place at = { .state = state };
	char *copy = must_strdup(text);
	char *line, *save;

	for (line = strtok_r(copy, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		dump_line(&at, line);
	free(copy);
}
