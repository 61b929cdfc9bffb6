// SPDX-License-Identifier: GPL-2.0-only
/* Is a timer's function given when it is set up? (6.13) */
#include <linux/hrtimer.h>
#include <linux/module.h>

void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *));
void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *))
{
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

MODULE_LICENSE("GPL");
