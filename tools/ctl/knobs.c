// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: finding and setting knobs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "knobs.h"

#define DEVICE		"/sys/class/misc/t3"
#define WORKQUEUE	"/sys/devices/virtual/workqueue/t3"

/* "auto [cpu] dmaengine" has the word in force in brackets. */
static char *word_in_force(const char *text)
{
	const char *begin = strchr(text, '[');
	size_t n = begin ? strcspn(begin + 1, "]") : 0;

	if (!begin || !begin[n + 1] || !strchr(text, ' '))
		return must_strdup(text);
	return text_of("%.*s", (int)n, begin + 1);
}

static char *without_brackets(const char *text)
{
	char *copy = must_strdup(text), *to = copy;

	for (; *text; text++)
		if (*text != '[' && *text != ']')
			*to++ = *text;
	*to = 0;
	return copy;
}

static bool is_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* available/NAME: "[least step most]", or words. */
static void read_available(struct knob *knob, const char *directory,
			   const char *file)
{
	char *text = read_text_of("%s/available/%s", directory, file);
	unsigned long long least, step, most;

	if (!text)
		return;
	if (sscanf(text, "[%llu %llu %llu]", &least, &step, &most) == 3) {
		knob->ranged = true;
		knob->least = least;
		knob->most = most;
	} else {
		free(knob->words);
		knob->words = must_strdup(text);
	}
	free(text);
}

static void add_knob(struct knobs *knobs, const char *directory,
		     const char *prefix, const char *file)
{
	char *text = read_text_of("%s/%s", directory, file);
	struct knob knob = { 0 };
	uint64_t value;

	if (!text)
		return;
	knob.name = text_of("%s%s", prefix, file);
	knob.path = path_of("%s/%s", directory, file);
	knob.value = word_in_force(text);
	/* A mask of processors, "ff", may look like a number. */
	knob.number = is_number(text, &value) && !strstr(file, "mask");
	if (strcmp(knob.value, text))
		knob.words = without_brackets(text);
	read_available(&knob, directory, file);
	knobs->knob = must_grow(knobs->knob, knobs->n + 1, sizeof(knob));
	knobs->knob[knobs->n++] = knob;
	free(text);
}

/* Every device has these, and they are no knobs of ours. */
static bool of_the_core(const char *file)
{
	static const char * const names[] = {
		"uevent", "per_cpu", "max_active", "affinity_scope",
		"affinity_strict", "numa",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(file, names[i]))
			return true;
	return file[0] == '.';
}

static int read_directory(struct knobs *knobs, const char *directory,
			  const char *prefix)
{
	char *path = path_of("%s", directory);
	struct dirent **entry = NULL;
	int i, n = scandir(path, &entry, NULL, alphasort);
	int ret = n < 0 ? -errno : 0;

	for (i = 0; i < n; i++) {
		char *file = text_of("%s/%s", path, entry[i]->d_name);
		struct stat st;

		if (!of_the_core(entry[i]->d_name) && !lstat(file, &st) &&
		    S_ISREG(st.st_mode) && st.st_mode & 0200)
			add_knob(knobs, directory, prefix, entry[i]->d_name);
		free(file);
		free(entry[i]);
	}
	free(entry);
	free(path);
	return ret;
}

int knobs_read(struct knobs *knobs)
{
	int ret;

	*knobs = (struct knobs){ 0 };
	ret = read_directory(knobs, DEVICE, "");
	if (!ret)
		read_directory(knobs, WORKQUEUE, "workqueue/");
	return ret;
}

void knobs_free(struct knobs *knobs)
{
	unsigned int i;

	for (i = 0; i < knobs->n; i++) {
		free(knobs->knob[i].name);
		free(knobs->knob[i].path);
		free(knobs->knob[i].value);
		free(knobs->knob[i].words);
	}
	free(knobs->knob);
}

const struct knob *knobs_find(const struct knobs *knobs, const char *name)
{
	unsigned int i;

	for (i = 0; i < knobs->n; i++)
		if (!strcmp(knobs->knob[i].name, name))
			return &knobs->knob[i];
	return NULL;
}

/* --- changes ----------------------------------------------------------------- */

static bool is_one_of(const char *words, const char *value)
{
	size_t n = strlen(value);
	const char *at = words;

	while (n && (at = strstr(at, value))) {
		if ((at == words || at[-1] == ' ') &&
		    (!at[n] || at[n] == ' '))
			return true;
		at++;
	}
	return false;
}

static char *no_such_knob(const struct knobs *knobs, const char *name)
{
	char *list = must_strdup("");
	char *text;
	unsigned int i;

	for (i = 0; i < knobs->n; i++) {
		text = text_of("%s%s%s", list, i ? ", " : "",
			       knobs->knob[i].name);
		free(list);
		list = text;
	}
	text = text_of("\"%s\" is no knob; there are: %s", name, list);
	free(list);
	return text;
}

static char *not_possible(const struct knob *knob, const char *value)
{
	uint64_t x;

	if (knob->words && !is_one_of(knob->words, value))
		return text_of("%s is \"%s\"; allowed: %s", knob->name, value,
			       knob->words);
	if (knob->number && knob->ranged &&
	    (!is_number(value, &x) || x < knob->least || x > knob->most))
		return text_of("%s is \"%s\"; allowed: %llu to %llu",
			       knob->name, value,
			       (unsigned long long)knob->least,
			       (unsigned long long)knob->most);
	if (knob->number && !is_number(value, &x) &&
	    (value[0] != '-' || !is_number(value + 1, &x)))
		return text_of("%s is \"%s\"; allowed: a number", knob->name,
			       value);
	if (!*value || strchr(value, '\n'))
		return text_of("%s is \"%s\"; allowed: one word", knob->name,
			       value);
	return NULL;
}

char *changes_add(struct changes *changes, const struct knobs *knobs,
		  const char *name, const char *value)
{
	const struct knob *knob = knobs_find(knobs, name);
	unsigned int i;
	char *why;

	if (!knob)
		return no_such_knob(knobs, name);
	for (i = 0; i < changes->n; i++)
		if (changes->change[i].knob == knob)
			return text_of("%s is set twice", name);
	why = not_possible(knob, value);
	if (why)
		return why;
	changes->change = must_grow(changes->change, changes->n + 1,
				    sizeof(*changes->change));
	changes->change[changes->n++] = (struct change){
		.knob = knob, .value = must_strdup(value),
	};
	return NULL;
}

static int write_knob(const struct knob *knob, const char *value)
{
	char *text = text_of("%s\n", value);
	int fd = open(knob->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int ret = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	free(text);
	return ret;
}

static char *was_refused(const struct change *change, int ret)
{
	return text_of("%s = %s: %s%s; nothing is changed", change->knob->name,
		       change->value, strerror(-ret),
		       ret == -EACCES || ret == -EPERM ? ": only root may" :
		       ": the driver has refused it, the kernel's log may say why (dmesg)");
}

char *changes_apply(const struct changes *changes)
{
	unsigned int i;
	int ret;

	for (i = 0; i < changes->n; i++) {
		const struct change *change = &changes->change[i];
		char *why;

		ret = write_knob(change->knob, change->value);
		if (!ret)
			continue;
		why = was_refused(change, ret);
		while (i--)
			write_knob(changes->change[i].knob,
				   changes->change[i].knob->value);
		return why;
	}
	return NULL;
}

void changes_free(struct changes *changes)
{
	unsigned int i;

	for (i = 0; i < changes->n; i++)
		free(changes->change[i].value);
	free(changes->change);
}
