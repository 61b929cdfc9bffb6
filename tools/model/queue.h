/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Timers, ordered by time and then by age.
 */
#ifndef T3_MODEL_QUEUE_H
#define T3_MODEL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct model_timer - something that happens at a time
 * @time: seconds
 * @order: number of the timer, for those of the same time
 * @kind: the owner's
 * @what: the owner's
 */
struct model_timer {
	double time;
	uint64_t order;
	uint32_t kind;
	uint32_t what;
};

/**
 * struct model_queue - timers that have not happened; all zero: none
 * @timer: a heap, the earliest first
 * @timers: how many
 * @room: entries of @timer
 * @order: of the next timer
 */
struct model_queue {
	struct model_timer *timer;
	uint32_t timers;
	uint32_t room;
	uint64_t order;
};

/**
 * model_queue_add - add a timer
 *
 * Return: false: no memory.
 */
bool model_queue_add(struct model_queue *queue, double time, uint32_t kind,
		     uint32_t what);

/* Take the earliest timer; there must be one. */
struct model_timer model_queue_take(struct model_queue *queue);

#endif /* T3_MODEL_QUEUE_H */
