/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Knobs of the module and of the test device, as files.
 */
#ifndef T3_TESTS_KNOB_FILES_H
#define T3_TESTS_KNOB_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Write @text to the file @name of @folder, which ends in a slash. */
static inline int put(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

#endif /* T3_TESTS_KNOB_FILES_H */
