/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * t3ctl doctor: what its examinations share.
 */
#ifndef T3_TOOLS_CTL_DOCTOR_H
#define T3_TOOLS_CTL_DOCTOR_H

#include "ctl.h"

enum health { HEALTHY, WARNING, PROBLEM };

/**
 * struct finding - a row of what doctor says
 * @how: how it is
 * @what: what was looked at
 * @is: what was found, owned
 * @means: what follows from it, or NULL where it is healthy
 * @advice: what to do, owned, or NULL
 */
struct finding {
	enum health how;
	const char *what;
	char *is;
	const char *means;
	char *advice;
};

/**
 * struct findings - all rows, and what several examinations want to know
 * @row: [@n] owned
 * @n: how many
 * @release: of the running kernel, owned
 */
struct findings {
	struct finding *row;
	unsigned int n;
	char *release;
};

/* One more row; @is and @advice become its own. */
void found(struct findings *f, enum health how, const char *what, char *is,
	   const char *means, char *advice);

/* doctor_kernel.c */
void examine_options(struct findings *f);
void examine_headers(struct findings *f);
void examine_versions(struct findings *f);
void examine_signing(struct findings *f);

/* doctor_device.c */
void examine_node(struct findings *f);
void examine_group(struct findings *f);
void examine_boot(struct findings *f);

/* doctor_limits.c */
void examine_memlock(struct findings *f);
void examine_io_uring(struct findings *f);
void examine_huge_pages(struct findings *f);
void examine_debugfs(struct findings *f);

/**
 * struct need - a kernel option without which the module can't be
 * @option: CONFIG_...
 * @why: half a sentence
 *
 * Made from kernel/needs when t3ctl is built; the last one's option is NULL.
 */
struct need {
	const char *option;
	const char *why;
};

extern const struct need kernel_needs[];

#endif /* T3_TOOLS_CTL_DOCTOR_H */
