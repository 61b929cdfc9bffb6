// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deadlines: every wait of libt3 ends at one.
 */
#include <limits.h>
#include <time.h>

#include "engine.h"

#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

uint64_t t3_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t t3_deadline(uint32_t timeout_ms)
{
	return t3_now() + timeout_ms * NS_PER_MS;
}

uint64_t t3_time_left(uint64_t deadline)
{
	uint64_t now = t3_now();

	return deadline > now ? deadline - now : 0;
}

int t3_time_left_ms(uint64_t deadline)
{
	uint64_t ms = (t3_time_left(deadline) + NS_PER_MS - 1) / NS_PER_MS;

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

void t3_sleep(uint64_t ns, uint64_t deadline)
{
	uint64_t left = t3_time_left(deadline);
	struct timespec nap;

	if (ns > left)
		ns = left;
	nap.tv_sec = (time_t)(ns / NS_PER_S);
	nap.tv_nsec = (long)(ns % NS_PER_S);
	nanosleep(&nap, NULL);
}
