/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs a plan by hand, on real data, in one thread.
 */
#ifndef T3_TESTS_PLAN_RUNNER_H
#define T3_TESTS_PLAN_RUNNER_H

#include "planner.h"

/**
 * plan_run - run one epoch and compare with what the collective means
 * @request: what it does; its algorithm is the one that was chosen
 * @part: [request->ranks] the parts
 * @padding: elements between the rows of memory
 * @why: out: what is wrong
 * @bytes: size of @why
 *
 * All numbers are small integers, so that every dtype and every order of the
 * sum is exact.
 *
 * Return: 0; -1 with a sentence in @why.
 */
int plan_run(const struct t3_plan_request *request,
	     const struct t3_planned *part, uint32_t padding, char *why,
	     size_t bytes);

#endif /* T3_TESTS_PLAN_RUNNER_H */
