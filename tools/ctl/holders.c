// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: which processes hold groups and members, by /proc/PID/fdinfo.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

/* A number of a file of lines "key:<blanks>number"; false: no such line. */
static bool field(const char *text, const char *key, unsigned long long *value)
{
	const char *at = text;
	size_t n = strlen(key);

	while (at) {
		if (!strncmp(at, key, n) && at[n] == ':') {
			*value = strtoull(at + n + 1, NULL, 0);
			return true;
		}
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static unsigned long long field_or(const char *text, const char *key,
				   unsigned long long other)
{
	field(text, key, &other);
	return other;
}

static void held_by(struct holder *by, int pid)
{
	if (by->pid == pid)
		return;
	if (by->pid) {
		by->others++;
		return;
	}
	by->pid = pid;
	by->command = read_text_of("/proc/%d/comm", pid);
}

static void see_group(struct state *state, int pid, const char *info)
{
	unsigned long long id;
	struct group *group;

	if (!field(info, "t3-group", &id))
		return;
	group = state_group(state, id);
	held_by(&group->by, pid);
	if (state->dump)
		return;
	group->ranks = field_or(info, "t3-ranks", 0) % (T3_MAX_RANKS + 1);
	group->joined = field_or(info, "t3-joined", 0);
	group->left = field_or(info, "t3-left", 0);
	group->watchdog_ms = field_or(info, "t3-watchdog", 0);
	group->broken = field_or(info, "t3-broken", 0);
}

/* Without the dump, a member's own plans are all that is known of them. */
static void see_plans(struct group *group, unsigned int rank, const char *info)
{
	unsigned int slot, armed, retired;
	const char *at = info;

	while ((at = strstr(at, "t3-plan-"))) {
		if (sscanf(at, "t3-plan-%u: armed %u retired %u", &slot, &armed,
			   &retired) == 3) {
			struct plan *plan = state_plan(group, slot);

			plan->rank[rank].armed = armed;
			plan->rank[rank].retired = retired;
		}
		at++;
	}
}

static void see_member(struct state *state, int pid, const char *info)
{
	unsigned long long id, rank;
	struct member *member;
	struct group *group;

	if (!field(info, "t3-group", &id) || !field(info, "t3-rank", &rank) ||
	    rank >= T3_MAX_RANKS)
		return;
	group = state_group(state, id);
	member = &group->member[rank];
	member->seen = true;
	held_by(&member->by, pid);
	member->regions = field_or(info, "t3-regions", 0);
	member->pinned = field_or(info, "t3-memory-pinned", 0) * 1024;
	if (state->dump)
		return;
	group->ranks = rank + 1 > group->ranks ? rank + 1 : group->ranks;
	group->joined |= 1ULL << rank;
	group->left |= field_or(info, "t3-left", 0) << rank;
	see_plans(group, rank, info);
}

static void see_fd(struct state *state, int pid, const char *fd)
{
	char target[64], *path = path_of("/proc/%d/fd/%s", pid, fd);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	char *info;

	free(path);
	if (n < 0)
		return;
	target[n] = 0;
	if (!strstr(target, "[t3_group]") && !strstr(target, "[t3_member]"))
		return;
	info = read_text_of("/proc/%d/fdinfo/%s", pid, fd);
	if (!info)
		return;
	if (strstr(target, "[t3_group]"))
		see_group(state, pid, info);
	else
		see_member(state, pid, info);
	free(info);
}

static void see_process(struct state *state, int pid)
{
	char *path = path_of("/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	struct dirent *entry;

	free(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			see_fd(state, pid, entry->d_name);
	if (dir)
		closedir(dir);
}

static int compare_pids(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The oldest first, mostly: parents before children. */
void holders_read(struct state *state)
{
	char *path = path_of("/proc");
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t i, n = 0;
	int *pids = NULL;

	free(path);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (!(n & (n - 1)))
			pids = must_grow(pids, n ? 2 * n : 1, sizeof(*pids));
		pids[n++] = atoi(entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(pids, n, sizeof(*pids), compare_pids);
	for (i = 0; i < n; i++)
		see_process(state, pids[i]);
	free(pids);
}
