/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is a plan right? Judged from the programs of all ranks by the definitions of
 * the machine and of the collectives alone: neither the core's graph nor the
 * planner's own tables are asked.
 */
#ifndef T3_TESTS_PLAN_CHECKER_H
#define T3_TESTS_PLAN_CHECKER_H

#include "planner.h"

/**
 * plan_check - judge a plan
 * @request: what it is to do; its algorithm is the one that was chosen
 * @part: [request->ranks] the parts
 * @why: out: what is wrong
 * @bytes: size of @why
 *
 * Checks: the grids partition the matrix, are alike, and are cut where shards
 * begin; blocks keep to their limit; updates are numbered 1..K; steps are the
 * produced blocks, each once, in the order that suits the algorithm; readers
 * are marked exactly; sources and destinations have one form; there is no
 * cycle and no race; retirement waits for all that touches a rank; and each
 * result is made of the right contributions, each once, in the right order.
 *
 * Return: 0; -1 with a sentence in @why.
 */
int plan_check(const struct t3_plan_request *request,
	       const struct t3_planned *part, char *why, size_t bytes);

/**
 * plan_order - an order in which the plan's nodes can run
 * @ranks: number of ranks
 * @part: [@ranks] the parts
 * @order: out: a node is block number n of rank n / blocks, or, past all
 *	blocks, a trigger in the order of the ranks; to be freed
 * @nodes: out: how many, productions of blocks without a producer left out
 *
 * Return: 0; -1 there is a cycle.
 */
int plan_order(uint32_t ranks, const struct t3_planned *part,
	       uint32_t **order, uint32_t *nodes);

#endif /* T3_TESTS_PLAN_CHECKER_H */
