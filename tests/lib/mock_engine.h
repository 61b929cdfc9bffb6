/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An engine that does nothing but tell what it was asked: it stands in for the
 * soft engine where the front is tested.
 */
#ifndef T3_TESTS_MOCK_ENGINE_H
#define T3_TESTS_MOCK_ENGINE_H

#include "engine.h"

/**
 * struct mock - what the engine does and was asked
 * @calls: how many calls it got, of any kind but probe and group_is
 * @fail: errno that the next such call gives, then 0 again
 * @submitted: plan_add says so even where it fails
 * @armed: plan_del gives EBUSY
 * @absent: probe says so
 * @tiles: entries given to tiles
 * @last: the last of them
 * @updates: last given to wait_block
 * @left: leave was called; with armed: 2
 * @seen_plans: plans that still stood then
 * @seen_regions: regions
 * @watchdog_ms: of the group created last
 */
struct mock {
	unsigned int calls;
	int fail;
	bool submitted;
	bool armed;
	bool absent;
	unsigned int tiles;
	struct t3_tiles last;
	uint32_t updates;
	int left;
	unsigned int seen_plans;
	unsigned int seen_regions;
	uint32_t watchdog_ms;
};

extern struct mock mock;

#endif /* T3_TESTS_MOCK_ENGINE_H */
