/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A number among an option's arguments.
 */
#ifndef T3_TOOLS_NUMBER_H
#define T3_TOOLS_NUMBER_H

#include <argp.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/**
 * parse_number - a whole number, or the end of the program with a message
 * @state: argp's
 * @option: the option's name, for the message
 * @arg: what the user gave
 * @least: smallest allowed
 * @most: largest allowed
 */
static inline uint64_t parse_number(struct argp_state *state,
				    const char *option, const char *arg,
				    uint64_t least, uint64_t most)
{
	unsigned long long x;
	char *end;

	errno = 0;
	x = strtoull(arg, &end, 10);
	if (arg[0] < '0' || arg[0] > '9' || *end || errno || x < least ||
	    x > most)
		argp_error(state, "%s is \"%s\"; allowed: %llu to %llu", option,
			   arg, (unsigned long long)least,
			   (unsigned long long)most);
	return x;
}

#endif /* T3_TOOLS_NUMBER_H */
