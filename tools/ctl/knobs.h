/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * t3ctl: the driver's knobs. None of them is known here by name: they are what
 * can be written in the device's directory of sysfs, and in its workqueue's.
 */
#ifndef T3_TOOLS_CTL_KNOBS_H
#define T3_TOOLS_CTL_KNOBS_H

#include "ctl.h"

/**
 * struct knob - something that can be set
 * @name: as users say it, owned; those of the workqueue are "workqueue/..."
 * @path: its file, owned
 * @value: what it is now, owned: a number or a word
 * @number: the value is a number
 * @least: if @ranged: the least it may be
 * @most: likewise the most
 * @ranged: the driver says so
 * @words: the words that it may be, owned, separated by blanks, or NULL: the
 *	driver does not say
 */
struct knob {
	char *name;
	char *path;
	char *value;
	bool number;
	uint64_t least;
	uint64_t most;
	bool ranged;
	char *words;
};

struct knobs {
	struct knob *knob;
	unsigned int n;
};

/* Return: 0, or a negative errno: the module is not loaded. */
int knobs_read(struct knobs *knobs);
void knobs_free(struct knobs *knobs);
const struct knob *knobs_find(const struct knobs *knobs, const char *name);

/**
 * struct change - a value that a knob is to have
 * @knob: which
 * @value: the text to write, owned
 */
struct change {
	const struct knob *knob;
	char *value;
};

/**
 * struct changes - values that are set together or not at all
 * @change: [@n] owned
 * @n: how many
 */
struct changes {
	struct change *change;
	unsigned int n;
};

/**
 * changes_add - one more, if the knob can have that value
 * @changes: to it
 * @knobs: what there is
 * @name: which
 * @value: its text
 *
 * Return: NULL; else why not, to be freed.
 */
char *changes_add(struct changes *changes, const struct knobs *knobs,
		  const char *name, const char *value);

/**
 * changes_apply - set all; where the driver refuses one, set none
 * @changes: each was found possible
 *
 * Those that had been set before the refusal get their old values back.
 *
 * Return: NULL; else why not, to be freed.
 */
char *changes_apply(const struct changes *changes);
void changes_free(struct changes *changes);

#endif /* T3_TOOLS_CTL_KNOBS_H */
