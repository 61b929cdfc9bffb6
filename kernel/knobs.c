// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: what an administrator can set and count: attributes of the device, and
 * module parameters of the same names, which are checked the same way.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/device.h>
#include <linux/module.h>
#include <linux/percpu.h>

#include "engine.h"
#include "knobs.h"

unsigned int t3_poll_us = 20;
unsigned int t3_poll_max_us = 1000;
unsigned int t3_inline_max_bytes = 1 << 20;
unsigned int t3_watchdog_ms = 30000;
unsigned int t3_watchdog_max_ms = 600000;
unsigned int t3_max_pinned_mb;
unsigned int t3_max_pinned_user_mb;
unsigned int t3_workers = T3_WORKERS;
unsigned int t3_dma_min_bytes = 64 << 10;
unsigned int t3_dma_timeout_ms = 1000;
unsigned int t3_inflight_max_bytes;
unsigned int t3_starve_us = 2000;
unsigned int t3_engine;
unsigned int t3_arbitration = T3_ARB_COMPUTE_FIRST;

#define DAY_MS	(24 * 60 * 60 * 1000)

/**
 * struct t3_knob - one number, or one word of a list, that can be set
 * @attr: under the device
 * @range: its range, under the device's available/
 * @value: the number, or the word's place in the list; written by whoever sets
 *	it, read once a use
 * @min: the least it may be
 * @max: the most
 * @unit: for the log
 * @words: NULL, or the list, which ends with NULL
 * @set: NULL, or what writes @value and may refuse with a reason in the log
 */
struct t3_knob {
	struct device_attribute attr;
	struct device_attribute range;
	unsigned int *value;
	unsigned int min;
	unsigned int max;
	const char *unit;
	const char * const *words;
	int (*set)(unsigned int value);
};

/* So much of what was written is repeated in the log. */
static int said(const char *buf)
{
	return min_t(size_t, strcspn(buf, "\n"), 32);
}

static int knob_set_word(const struct t3_knob *knob, const char *buf)
{
	char all[64] = "";
	size_t at = 0;
	int i, which = __sysfs_match_string(knob->words, -1, buf);

	if (which >= 0 && knob->set)
		return knob->set(which);
	if (which >= 0) {
		WRITE_ONCE(*knob->value, which);
		return 0;
	}
	for (i = 0; knob->words[i]; i++)
		at += scnprintf(all + at, sizeof(all) - at, "%s%s",
				i ? ", " : "", knob->words[i]);
	pr_warn_ratelimited("%s: \"%.*s\": %s are possible\n",
			    knob->attr.attr.name, said(buf), buf, all);
	return -EINVAL;
}

static int knob_set(const struct t3_knob *knob, const char *buf)
{
	const char *name = knob->attr.attr.name;
	unsigned int value;
	int ret;

	if (knob->words)
		return knob_set_word(knob, buf);

	ret = kstrtouint(buf, 0, &value);
	if (ret) {
		pr_warn_ratelimited("%s: \"%.*s\" is no number from %u to %u\n",
				    name, said(buf), buf, knob->min, knob->max);
		return ret;
	}
	if (value < knob->min || value > knob->max) {
		pr_warn_ratelimited("%s: %u: %u .. %u %s are possible\n", name,
				    value, knob->min, knob->max, knob->unit);
		return -ERANGE;
	}
	WRITE_ONCE(*knob->value, value);
	return 0;
}

static int knob_get(const struct t3_knob *knob, char *buf)
{
	unsigned int value = READ_ONCE(*knob->value);

	if (knob->words)
		return sysfs_emit(buf, "%s\n", knob->words[value]);
	return sysfs_emit(buf, "%u\n", value);
}

static ssize_t knob_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	return knob_get(container_of(attr, struct t3_knob, attr), buf);
}

static ssize_t knob_store(struct device *dev, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	int ret = knob_set(container_of(attr, struct t3_knob, attr), buf);

	return ret ?: count;
}

/* As the kernel's iio writes ranges: least, step, most. */
static ssize_t range_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	const struct t3_knob *knob = container_of(attr, struct t3_knob, range);
	int i, at = 0;

	for (i = 0; knob->words && knob->words[i]; i++)
		at += sysfs_emit_at(buf, at, "%s%s", i ? " " : "",
				    knob->words[i]);
	if (knob->words)
		return at + sysfs_emit_at(buf, at, "\n");
	return sysfs_emit(buf, "[%u 1 %u]\n", knob->min, knob->max);
}

static int param_set(const char *buf, const struct kernel_param *kp)
{
	return knob_set(kp->arg, buf);
}

static int param_get(char *buf, const struct kernel_param *kp)
{
	return knob_get(kp->arg, buf);
}

static const struct kernel_param_ops param_ops = {
	.set = param_set,
	.get = param_get,
};

#define T3_KNOB(_name, _min, _max, _unit, _text)			\
	static struct t3_knob knob_##_name = {				\
		.attr = __ATTR(_name, 0644, knob_show, knob_store),	\
		.range = __ATTR(_name, 0444, range_show, NULL),		\
		.value = &t3_##_name, .min = (_min), .max = (_max),	\
		.unit = (_unit),					\
	};								\
	module_param_cb(_name, &param_ops, &knob_##_name, 0644);	\
	MODULE_PARM_DESC(_name, _text)

#define T3_KNOB_WORD(_name, _words, _set, _text)			\
	static struct t3_knob knob_##_name = {				\
		.attr = __ATTR(_name, 0644, knob_show, knob_store),	\
		.range = __ATTR(_name, 0444, range_show, NULL),		\
		.value = &t3_##_name, .words = (_words), .set = (_set),	\
	};								\
	module_param_cb(_name, &param_ops, &knob_##_name, 0644);	\
	MODULE_PARM_DESC(_name, _text)

/* By enum t3_engine_choice, enum t3_arbitration. */
static const char * const engine_words[] = {
	"cpu", "dmaengine", "dmaengine_sums", NULL
};

static const char * const arbitration_words[] = {
	"round_robin", "compute_first", "dma_first", NULL
};

T3_KNOB(poll_us, 0, 1000000, "microseconds",
	"microseconds that a group's poller spins after it found something (20)");
T3_KNOB(poll_max_us, 1, 1000000, "microseconds",
	"longest sleep, in microseconds, of a poller that has silent producers (1000)");
T3_KNOB(inline_max_bytes, 0, 1 << 30, "bytes",
	"bytes that one call moves itself before workers do the rest (1048576)");
T3_KNOB(watchdog_ms, 1, DAY_MS, "milliseconds",
	"a group's watchdog where it asks for none, in milliseconds (30000)");
T3_KNOB(watchdog_max_ms, 1, DAY_MS, "milliseconds",
	"the longest watchdog that a group may ask for, in milliseconds (600000)");
T3_KNOB(max_pinned_mb, 0, UINT_MAX, "MiB",
	"MiB that all may have pinned together, privileged or not; 0: RLIMIT_MEMLOCK alone decides (0)");
T3_KNOB(max_pinned_user_mb, 0, UINT_MAX, "MiB",
	"MiB that one user may have pinned, privileged or not; 0: as above (0)");
T3_KNOB(dma_min_bytes, 1, 1 << 30, "bytes",
	"smallest copy that a channel gets (65536)");
T3_KNOB(dma_timeout_ms, 1, 60000, "milliseconds",
	"longest time that a channel may take for a copy, in milliseconds (1000)");
T3_KNOB(inflight_max_bytes, 0, 1 << 30, "bytes",
	"bytes in flight from which on compute_first holds transfers back; 0: from the plan's first blocks (0)");
T3_KNOB(starve_us, 1, 1000000, "microseconds",
	"longest time that transfers are held back, in microseconds (2000)");
T3_KNOB_WORD(engine, engine_words, t3_engine_set,
	     "what moves bytes: cpu, dmaengine, dmaengine_sums (cpu)");
T3_KNOB_WORD(arbitration, arbitration_words, NULL,
	     "who gives way: round_robin, compute_first, dma_first (compute_first)");
T3_KNOB(workers, 1, T3_WORKERS, "workers",
	"workers that carry out one plan's triggers, at most (8)");

static struct attribute *knob_attrs[] = {
	&knob_poll_us.attr.attr,
	&knob_poll_max_us.attr.attr,
	&knob_inline_max_bytes.attr.attr,
	&knob_watchdog_ms.attr.attr,
	&knob_watchdog_max_ms.attr.attr,
	&knob_max_pinned_mb.attr.attr,
	&knob_max_pinned_user_mb.attr.attr,
	&knob_workers.attr.attr,
	&knob_engine.attr.attr,
	&knob_dma_min_bytes.attr.attr,
	&knob_dma_timeout_ms.attr.attr,
	&knob_arbitration.attr.attr,
	&knob_inflight_max_bytes.attr.attr,
	&knob_starve_us.attr.attr,
	NULL
};

static struct attribute *range_attrs[] = {
	&knob_poll_us.range.attr,
	&knob_poll_max_us.range.attr,
	&knob_inline_max_bytes.range.attr,
	&knob_watchdog_ms.range.attr,
	&knob_watchdog_max_ms.range.attr,
	&knob_max_pinned_mb.range.attr,
	&knob_max_pinned_user_mb.range.attr,
	&knob_workers.range.attr,
	&knob_engine.range.attr,
	&knob_dma_min_bytes.range.attr,
	&knob_dma_timeout_ms.range.attr,
	&knob_arbitration.range.attr,
	&knob_inflight_max_bytes.range.attr,
	&knob_starve_us.range.attr,
	NULL
};

/* --- counters ------------------------------------------------------------- */

static DEFINE_PER_CPU(struct t3_counts, counts);

/**
 * t3_counted - something has happened
 * @what: index of struct t3_counts
 * @n: so often
 *
 * Context: any.
 */
void t3_counted(enum t3_counter what, u64 n)
{
	this_cpu_add(counts.count[what], n);
}

/* A counter under the device. */
struct counter_attr {
	struct device_attribute attr;
	enum t3_counter what;
};

static ssize_t counter_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	enum t3_counter what =
		container_of(attr, struct counter_attr, attr)->what;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(counts, cpu).count[what]);
	return sysfs_emit(buf, "%llu\n", sum);
}

static ssize_t pinned_bytes_show(struct device *dev,
				 struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  t3_pinned_pages() << PAGE_SHIFT);
}
static DEVICE_ATTR_RO(pinned_bytes);

#define T3_COUNTER(_name, _what)					\
	static struct counter_attr counter_##_name = {			\
		.attr = __ATTR(_name, 0444, counter_show, NULL),	\
		.what = (_what),					\
	}

T3_COUNTER(epochs, T3_COUNT_EPOCHS);
T3_COUNTER(triggers, T3_COUNT_TRIGGERS);
T3_COUNTER(bytes_cpu, T3_COUNT_BYTES_CPU);
T3_COUNTER(bytes_dma, T3_COUNT_BYTES_DMA);
T3_COUNTER(dma_errors, T3_COUNT_DMA_ERRORS);
T3_COUNTER(dma_timeouts, T3_COUNT_DMA_TIMEOUTS);
T3_COUNTER(dma_removed, T3_COUNT_DMA_REMOVED);
T3_COUNTER(held_back, T3_COUNT_HELD);
T3_COUNTER(broken_died, T3_COUNT_DIED);
T3_COUNTER(broken_aborted, T3_COUNT_ABORTED);
T3_COUNTER(broken_watchdog, T3_COUNT_WATCHDOG);
T3_COUNTER(broken_stale, T3_COUNT_STALE);
T3_COUNTER(broken_engine, T3_COUNT_ENGINE);
T3_COUNTER(broken_other, T3_COUNT_OTHER);

static struct attribute *counter_attrs[] = {
	&counter_epochs.attr.attr,
	&counter_triggers.attr.attr,
	&counter_bytes_cpu.attr.attr,
	&counter_bytes_dma.attr.attr,
	&counter_dma_errors.attr.attr,
	&counter_dma_timeouts.attr.attr,
	&counter_dma_removed.attr.attr,
	&counter_held_back.attr.attr,
	&counter_broken_died.attr.attr,
	&counter_broken_aborted.attr.attr,
	&counter_broken_watchdog.attr.attr,
	&counter_broken_stale.attr.attr,
	&counter_broken_engine.attr.attr,
	&counter_broken_other.attr.attr,
	&dev_attr_pinned_bytes.attr,
	NULL
};

static enum t3_counter break_counter(u32 error)
{
	switch (error) {
	case EOWNERDEAD:
		return T3_COUNT_DIED;
	case ECANCELED:
		return T3_COUNT_ABORTED;
	case ETIMEDOUT:
		return T3_COUNT_WATCHDOG;
	case ESTALE:
		return T3_COUNT_STALE;
	case EIO:
		return T3_COUNT_ENGINE;
	default:
		return T3_COUNT_OTHER;
	}
}

/**
 * t3_counted_break - a group has broken
 * @error: with this errno, positive
 *
 * Context: any.
 */
void t3_counted_break(u32 error)
{
	t3_counted(break_counter(error), 1);
}

static const struct attribute_group knob_group = {
	.attrs = knob_attrs,
};

static const struct attribute_group range_group = {
	.name = "available",
	.attrs = range_attrs,
};

static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counter_attrs,
};

const struct attribute_group *t3_device_groups[] = {
	&knob_group,
	&range_group,
	&counter_group,
	NULL
};
