// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sleeping on a word, also of memory that processes share.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "soft.h"

/* Sleep while *@word is @value, @ns at most; may wake without a reason. */
void soft_futex_wait(u32 *word, u32 value, u64 ns)
{
	struct timespec limit = {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void soft_futex_wake(u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The fence pairs with the addition to @waiters or @idlers in soft_sleep(). */
void soft_ring(struct soft_slot *slot, bool work)
{
	t3_fence();
	if (likely(!t3_load(&slot->waiters) &&
		   (!work || !t3_load(&slot->idlers))))
		return;
	t3_add32(&slot->bell, 1);
	soft_futex_wake(&slot->bell);
}
