// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: sees to the driver: who uses it, what they wait for, its knobs, and
 * whether the machine is set up for it.
 */
#include <argp.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <t3.h>

#include "ctl/ctl.h"

struct options options = { .sysroot = "" };

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "ls", cmd_ls },
	{ "inspect", cmd_inspect },
	{ "config", cmd_config },
	{ "doctor", cmd_doctor },
};

enum { OPTION_SYSROOT = 256 };

static const struct argp_option main_options[] = {
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ "sysroot", OPTION_SYSROOT, "DIR", 0,
	  "look at the files below DIR in place of the running system's: those collected from another machine, for example",
	  0 },
	{ 0 }
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	(void)state;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	options.json = true;
	return 0;
}

/* What is good before a command's name is so after it. */
static const struct argp_option common_options[] = {
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 }
};

static const struct argp common_argp = {
	.options = common_options,
	.parser = parse_common,
};

const struct argp_child common[] = { { &common_argp, 0, NULL, 0 }, { 0 } };

static const char doc[] =
	"Sees to the t3 driver.\vCommands:\n"
	"  ls                      groups: ranks, processes, epochs, pinned memory\n"
	"  inspect [GROUP]         what each group waits for\n"
	"  config show             the driver's knobs, and what they may be\n"
	"  config set NAME=VALUE   set some; all of them or none\n"
	"  config save [FILE]      write them as JSON\n"
	"  config load [FILE]      set those that a file has; all of them or none\n"
	"  doctor                  is this machine set up for t3? what is to be done?\n\n"
	"Each has its own --help. Exit status: 0 fine; 1 refused, not there, or\n"
	"doctor has found a problem; 2 usage.";

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	size_t i;

	switch (key) {
	case 'j':
		options.json = true;
		return 0;
	case OPTION_SYSROOT:
		options.sysroot = arg;
		return 0;
	case ARGP_KEY_ARG:
		for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (!strcmp(arg, commands[i].name)) {
				*(const struct command **)state->input =
					&commands[i];
				return 0;
			}
		argp_error(state, "\"%s\" is no command; there are: ls, inspect, config, doctor",
			   arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which command? ls, inspect, config, doctor");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp main_argp = {
	.options = main_options,
	.parser = parse_main,
	.args_doc = "COMMAND [ARGUMENT]...",
	.doc = doc,
};

#define STR(x)	STR_(x)
#define STR_(x)	#x

__attribute__((visibility("default")))
const char *argp_program_version = "t3ctl " STR(T3_VERSION_MAJOR) "."
	STR(T3_VERSION_MINOR) "." STR(T3_VERSION_PATCH);

/* Where the command's name is; argp would take its options for its own. */
static int command_index(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++)
		if (!strcmp(argv[i], "--sysroot"))
			i++;
	return i;
}

int main(int argc, char **argv)
{
	const struct command *command = NULL;
	int at = command_index(argc, argv);
	int ret;

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&main_argp, at < argc ? at + 1 : argc, argv, ARGP_IN_ORDER,
		   NULL, &command);
	if (!command)
		return EXIT_USAGE;
	argv[at] = text_of("t3ctl %s", command->name);	/* for its usage */
	ret = command->run(argc - at, argv + at);
	free(argv[at]);
	if (fflush(stdout) || ferror(stdout))
		errx(EXIT_NOT_FINE, "stdout can't be written");
	return ret;
}
