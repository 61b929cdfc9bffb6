// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl config: shows, sets, saves and loads knobs.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "knobs.h"

static int complain(char *why)
{
	if (!why)
		return EXIT_FINE;
	fprintf(stderr, "t3ctl: %s\n", why);
	free(why);
	return EXIT_NOT_FINE;
}

/* --- show -------------------------------------------------------------------- */

static char *allowed_text(const struct knob *knob)
{
	if (knob->words)
		return must_strdup(knob->words);
	if (knob->ranged)
		return text_of("%llu to %llu", (unsigned long long)knob->least,
			       (unsigned long long)knob->most);
	return must_strdup("");
}

static struct json_object *value_json(const struct knob *knob)
{
	if (knob->number)
		return json_object_new_int64(strtoll(knob->value, NULL, 10));
	return json_object_new_string(knob->value);
}

static struct json_object *knobs_json(const struct knobs *knobs)
{
	struct json_object *json = json_object_new_object();
	unsigned int i;

	for (i = 0; i < knobs->n; i++)
		json_object_object_add(json, knobs->knob[i].name,
				       value_json(&knobs->knob[i]));
	return json;
}

static void print_knobs(const struct knobs *knobs)
{
	struct table t;
	unsigned int i;

	table_init(&t, 3, 1 << 1);
	table_row(&t, must_strdup("KNOB"), must_strdup("VALUE"),
		  must_strdup("ALLOWED"));
	for (i = 0; i < knobs->n; i++)
		table_row(&t, must_strdup(knobs->knob[i].name),
			  must_strdup(knobs->knob[i].value),
			  allowed_text(&knobs->knob[i]));
	table_print(&t);
}

static int config_show(const struct knobs *knobs, int argc, char **argv)
{
	(void)argv;
	if (argc) {
		fprintf(stderr, "t3ctl: config show takes no arguments\n");
		return EXIT_USAGE;
	}
	if (options.json)
		print_json(knobs_json(knobs));
	else
		print_knobs(knobs);
	return EXIT_FINE;
}

/* --- set --------------------------------------------------------------------- */

static int apply(struct changes *changes, char *why)
{
	int ret = complain(why);

	if (!ret)
		ret = complain(changes_apply(changes));
	changes_free(changes);
	return ret;
}

static int config_set(const struct knobs *knobs, int argc, char **argv)
{
	struct changes changes = { 0 };
	char *why = NULL;
	int i;

	if (!argc) {
		fprintf(stderr, "t3ctl: config set: what? NAME=VALUE ...\n");
		return EXIT_USAGE;
	}
	for (i = 0; i < argc && !why; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals) {
			why = text_of("\"%s\" is not NAME=VALUE", argv[i]);
			break;
		}
		*equals = 0;
		why = changes_add(&changes, knobs, argv[i], equals + 1);
	}
	return apply(&changes, why);
}

/* --- save and load ------------------------------------------------------------- */

static int save_failed(const char *path)
{
	return complain(text_of("%s: %s", path, strerror(errno)));
}

/* Beside its place and renamed: never half a file. */
static int save_to(const char *path, const char *text)
{
	char *new = text_of("%s.new", path);
	FILE *f = fopen(new, "we");
	int ret = EXIT_FINE;

	if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) ||
	    rename(new, path)) {
		ret = save_failed(path);
		unlink(new);
	}
	free(new);
	return ret;
}

static int config_save(const struct knobs *knobs, int argc, char **argv)
{
	struct json_object *json = knobs_json(knobs);
	int ret = EXIT_FINE;

	if (argc > 1) {
		fprintf(stderr, "t3ctl: config save takes one FILE at most\n");
		ret = EXIT_USAGE;
	} else if (argc && strcmp(argv[0], "-")) {
		ret = save_to(argv[0],
			      json_object_to_json_string_ext(json,
							     JSON_C_TO_STRING_PRETTY |
							     JSON_C_TO_STRING_NOSLASHESCAPE));
	} else {
		print_json(json);
		return EXIT_FINE;
	}
	json_object_put(json);
	return ret;
}

static char *read_input(const char *path)
{
	if (strcmp(path, "-"))
		return read_text(path);
	return read_text("/dev/stdin");
}

/* Strict: what follows the object is an error, too. */
static struct json_object *parse_json(const char *text, char **why)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *json;

	if (!tok)
		errx(EXIT_NOT_FINE, "no memory");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	json = json_tokener_parse_ex(tok, text, strlen(text) + 1);
	if (!json)
		*why = text_of("not JSON: %s, at byte %zu",
			       json_tokener_error_desc(json_tokener_get_error(tok)),
			       json_tokener_get_parse_end(tok));
	else if (!json_object_is_type(json, json_type_object))
		*why = must_strdup("not a JSON object of knobs and values");
	json_tokener_free(tok);
	return json;
}

static char *add_member(struct changes *changes, const struct knobs *knobs,
			const char *name, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_string))
		return text_of("%s is %s; allowed: a number or a string", name,
			       json_object_to_json_string(value));
	return changes_add(changes, knobs, name, json_object_get_string(value));
}

static int config_load(const struct knobs *knobs, int argc, char **argv)
{
	const char *path = argc ? argv[0] : "-";
	struct changes changes = { 0 };
	struct json_object *json = NULL;
	char *text, *why = NULL;
	int ret;

	if (argc > 1) {
		fprintf(stderr, "t3ctl: config load takes one FILE at most\n");
		return EXIT_USAGE;
	}
	text = read_input(path);
	if (!text)
		return save_failed(path);
	json = parse_json(text, &why);
	if (!why) {
		json_object_object_foreach(json, name, value) {
			if (!why)
				why = add_member(&changes, knobs, name, value);
		}
	}
	if (why) {
		char *whole = text_of("%s: %s; nothing is changed", path, why);

		free(why);
		why = whole;
	}
	ret = apply(&changes, why);
	json_object_put(json);
	free(text);
	return ret;
}

/* --- the command ----------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(const struct knobs *knobs, int argc, char **argv);
} verbs[] = {
	{ "show", config_show }, { "set", config_set },
	{ "save", config_save }, { "load", config_load },
};

/**
 * struct asked - the command's arguments
 * @verb: index of @verbs; -1: none yet
 * @argc: those after the verb
 * @argv: likewise
 */
struct asked {
	int verb;
	int argc;
	char **argv;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asked *asked = state->input;
	size_t i;

	switch (key) {
	case ARGP_KEY_ARG:
		for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
			if (!strcmp(arg, verbs[i].name))
				asked->verb = i;
		if (asked->verb < 0)
			argp_error(state, "\"%s\" is no verb of config; there are: show, set, save, load",
				   arg);
		asked->argc = state->argc - state->next;
		asked->argv = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		asked->verb = 0;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_config(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[show]\nset NAME=VALUE...\nsave [FILE]\nload [FILE]",
		.children = common,
		.doc =
			"Shows, sets, saves and loads the driver's knobs, and those of its workqueue. FILE is JSON, as save writes it; without one, or with \"-\", stdout or stdin.\vset and load look at all values before they set the first. Where the driver then still refuses one, those set before get their old values back.",
	};
	struct asked asked = { .verb = -1 };
	struct knobs knobs;
	int ret;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &asked);
	ret = knobs_read(&knobs);
	if (ret) {
		fprintf(stderr, "t3ctl: %s/sys/class/misc/t3: %s: is the module loaded? (t3ctl doctor)\n",
			options.sysroot, strerror(-ret));
		return EXIT_NOT_FINE;
	}
	ret = verbs[asked.verb].run(&knobs, asked.argc, asked.argv);
	knobs_free(&knobs);
	return ret;
}
