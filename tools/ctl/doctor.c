// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl doctor: is this machine set up for t3?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "doctor.h"

static const char * const health_text[] = {
	[HEALTHY] = "ok", [WARNING] = "warning", [PROBLEM] = "problem",
};

void found(struct findings *f, enum health how, const char *what, char *is,
	   const char *means, char *advice)
{
	f->row = must_grow(f->row, f->n + 1, sizeof(*f->row));
	f->row[f->n++] = (struct finding){
		.how = how, .what = what, .is = is, .means = means,
		.advice = advice,
	};
}

static int longest(const struct findings *f)
{
	unsigned int i;
	int most = 0;

	for (i = 0; i < f->n; i++) {
		int n = strlen(f->row[i].what);

		most = n > most ? n : most;
	}
	return most;
}

static void print_findings(const struct findings *f)
{
	static const enum colour colours[] = { GREEN, YELLOW, RED };
	int column = longest(f) + 11;
	unsigned int i;

	for (i = 0; i < f->n; i++) {
		const struct finding *row = &f->row[i];

		printf("%s%-7s%s  %-*s  ", colour(colours[row->how]),
		       health_text[row->how], colour(PLAIN), column - 11,
		       row->what);
		wrap(column, column, row->is);
		if (row->means) {
			printf("%*s", column, "");
			wrap(column, column, row->means);
		}
		if (row->advice) {
			printf("%*s%s-> ", column, "", colour(BOLD));
			wrap(column + 3, column + 3, row->advice);
			fputs(colour(PLAIN), stdout);
		}
	}
}

static unsigned int count(const struct findings *f, enum health how)
{
	unsigned int i, n = 0;

	for (i = 0; i < f->n; i++)
		n += f->row[i].how == how;
	return n;
}

static void print_verdict(const struct findings *f)
{
	unsigned int problems = count(f, PROBLEM), warnings = count(f, WARNING);

	if (problems)
		printf("\n%u %s, %u %s: t3's driver can't be used as it should.\n",
		       problems, problems == 1 ? "problem" : "problems",
		       warnings, warnings == 1 ? "warning" : "warnings");
	else if (warnings)
		printf("\nNo problem, %u %s.\n", warnings,
		       warnings == 1 ? "warning" : "warnings");
	else
		printf("\nAll is well.\n");
}

static void add_string(struct json_object *to, const char *key,
		       const char *value)
{
	json_object_object_add(to, key,
			       value ? json_object_new_string(value) : NULL);
}

static struct json_object *findings_json(const struct findings *f)
{
	struct json_object *json = json_object_new_object();
	struct json_object *list = json_object_new_array();
	unsigned int i;

	for (i = 0; i < f->n; i++) {
		struct json_object *row = json_object_new_object();

		add_string(row, "health", health_text[f->row[i].how]);
		add_string(row, "what", f->row[i].what);
		add_string(row, "is", f->row[i].is);
		add_string(row, "means", f->row[i].means);
		add_string(row, "advice", f->row[i].advice);
		json_object_array_add(list, row);
	}
	json_object_object_add(json, "findings", list);
	json_object_object_add(json, "problems",
			       json_object_new_int(count(f, PROBLEM)));
	json_object_object_add(json, "warnings",
			       json_object_new_int(count(f, WARNING)));
	return json;
}

static void examine_all(struct findings *f)
{
	examine_options(f);
	examine_headers(f);
	examine_versions(f);
	examine_signing(f);
	examine_node(f);
	examine_group(f);
	examine_boot(f);
	examine_memlock(f);
	examine_io_uring(f);
	examine_huge_pages(f);
	examine_debugfs(f);
}

static char *running_release(void)
{
	char *text = read_text_of("/proc/sys/kernel/osrelease");
	struct utsname name;

	if (text)
		return text;
	return must_strdup(uname(&name) ? "unknown" : name.release);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "doctor takes no \"%s\"", arg);
	return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.children = common,
		.doc =
			"Says whether this machine is set up for t3's driver, and what is to be done.\vRun it as the user who is to use t3; some rows know more when root runs it. Exit status: 0 no problem (there may be warnings); 1 there is a problem.",
	};
	struct findings f = { 0 };
	unsigned int i;
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	f.release = running_release();
	examine_all(&f);
	if (options.json) {
		print_json(findings_json(&f));
	} else {
		print_findings(&f);
		print_verdict(&f);
	}
	ret = count(&f, PROBLEM) ? EXIT_NOT_FINE : EXIT_FINE;
	for (i = 0; i < f.n; i++) {
		free(f.row[i].is);
		free(f.row[i].advice);
	}
	free(f.row);
	free(f.release);
	return ret;
}
