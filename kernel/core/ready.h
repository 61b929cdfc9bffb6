/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A queue of triggers that may run: any number of pushers and poppers, no
 * lock, never full, because a trigger is in it at most once.
 */
#ifndef T3_CORE_READY_H
#define T3_CORE_READY_H

#include "env.h"

/**
 * struct t3_ready - the queue's shared words
 * @head: tickets given to poppers; moved by compare-and-swap
 * @tail: tickets given to pushers; moved by add
 * @pad0: keeps @head and @tail on cache lines of their own
 * @pad1: likewise
 * @slot: [size] ticket + 1 in the high half, the trigger in the low; stored
 *	with release by the pusher that has the ticket, loaded with acquire by
 *	poppers
 *
 * All may lie in memory that processes share: what is popped is checked by
 * whoever pops it. At most size triggers are ever queued, so that a slot is
 * not stored to before its last entry was popped.
 */
struct t3_ready {
	u32 head;
	u32 pad0[15];
	u32 tail;
	u32 pad1[15];
	u64 slot[];
};

/* Slots of a queue for @triggers triggers: a power of two. */
static inline u32 t3_ready_size(u32 triggers)
{
	u32 size = 1;

	while (size < triggers)
		size *= 2;
	return size;
}

static inline size_t t3_ready_bytes(u32 triggers)
{
	return sizeof(struct t3_ready) + t3_ready_size(triggers) * sizeof(u64);
}

/**
 * t3_ready_push - queue a trigger
 * @q: the queue, zeroed at start
 * @mask: t3_ready_size() - 1, from the caller's own memory
 * @trigger: not queued now
 *
 * Context: any, hard-irq too.
 */
static inline void t3_ready_push(struct t3_ready *q, u32 mask, u32 trigger)
{
	u32 ticket = t3_add32(&q->tail, 1) - 1;

	t3_store_release(&q->slot[ticket & mask],
			 (u64)(ticket + 1) << 32 | trigger);
}

/**
 * t3_ready_pop - take the oldest trigger
 * @q: the queue
 * @mask: as for t3_ready_push()
 * @trigger: out
 *
 * A push that has begun and not ended hides what was pushed after it, until it
 * ends: whoever pushes looks for somebody to run it only afterwards.
 *
 * Context: any.
 * Return: false where there is none.
 */
static inline bool t3_ready_pop(struct t3_ready *q, u32 mask, u32 *trigger)
{
	u32 head = t3_load(&q->head);

	for (;;) {
		u64 entry = t3_load_acquire(&q->slot[head & mask]);
		u32 found;

		if ((u32)(entry >> 32) != head + 1) {
			found = t3_load(&q->head);
			if (found == head)
				return false;
			head = found;
			continue;
		}
		found = t3_cmpxchg32(&q->head, head, head + 1);
		if (found == head) {
			*trigger = (u32)entry;
			return true;
		}
		head = found;
	}
}

/* Is anything queued? A hint: true is sure only to the one who pops. */
static inline bool t3_ready_any(const struct t3_ready *q)
{
	return t3_load_acquire(&q->head) != t3_load_acquire(&q->tail);
}

#endif /* T3_CORE_READY_H */
