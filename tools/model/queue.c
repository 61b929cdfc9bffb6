// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Timers.
 */
#include <stdlib.h>

#include "queue.h"

static bool before(const struct model_timer *a, const struct model_timer *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void swap(struct model_timer *a, struct model_timer *b)
{
	struct model_timer t = *a;

	*a = *b;
	*b = t;
}

bool model_queue_add(struct model_queue *queue, double time, uint32_t kind,
		     uint32_t what)
{
	uint32_t i = queue->timers;

	if (i == queue->room) {
		uint32_t room = queue->room ? queue->room * 2 : 64;
		void *more = realloc(queue->timer, room * sizeof(*queue->timer));

		if (!more)
			return false;
		queue->timer = more;
		queue->room = room;
	}
	queue->timer[queue->timers++] = (struct model_timer) {
		.time = time, .order = queue->order++, .kind = kind, .what = what,
	};
	for (; i && before(&queue->timer[i], &queue->timer[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&queue->timer[i], &queue->timer[(i - 1) / 2]);
	return true;
}

struct model_timer model_queue_take(struct model_queue *queue)
{
	struct model_timer first = queue->timer[0];
	uint32_t i = 0;

	queue->timer[0] = queue->timer[--queue->timers];
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= queue->timers)
			return first;
		if (child + 1 < queue->timers &&
		    before(&queue->timer[child + 1], &queue->timer[child]))
			child++;
		if (!before(&queue->timer[child], &queue->timer[i]))
			return first;
		swap(&queue->timer[child], &queue->timer[i]);
		i = child;
	}
}
