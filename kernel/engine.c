// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: which engine carries out a trigger.
 */
#define pr_fmt(fmt) "t3: " fmt

#include "engine.h"

/* Of the knob: keeps writers and their opening and closing of channels apart. */
static DEFINE_MUTEX(set_lock);
static bool started;	/* under set_lock */

#ifdef CONFIG_DMA_ENGINE
static enum t3_outcome run_dma(struct t3_run *r)
{
	/* What a channel failed to do is the processor's. */
	if (READ_ONCE(t3_engine) == T3_ENGINE_CPU ||
	    (test_bit(r->trigger, r->plan->by_cpu) &&
	     test_and_clear_bit(r->trigger, r->plan->by_cpu)))
		return T3_RUN_DECLINED;
	return t3_engine_dma.run(r);
}
#else
static enum t3_outcome run_dma(struct t3_run *r)
{
	return T3_RUN_DECLINED;
}
#endif

/**
 * t3_engine_run - carry out a trigger by the engine that suits it
 * @r: the run; its lanes are found
 *
 * Context: sleeps.
 */
enum t3_outcome t3_engine_run(struct t3_run *r)
{
	enum t3_outcome outcome;

	if (r->plan->imports && t3_imports_find(r->exec))
		return t3_engine_import.run(r);
	outcome = run_dma(r);
	if (outcome != T3_RUN_DECLINED)
		return outcome;
	return t3_engine_cpu.run(r);
}

/**
 * t3_engines_cut - end what engines do by themselves for a broken group
 * @group: the group
 *
 * Context: sleeps, for a bounded time; the group's and members' locks may be
 * held.
 */
void t3_engines_cut(struct t3_group *group)
{
	t3_dma_cut(group);
}

static int take_channels(void)
{
	int ret = t3_dma_open();

	if (ret == -ENODEV)
		pr_warn("engine: no memcpy channel of dmaengine is to be had\n");
	if (ret == -EOPNOTSUPP)
		pr_warn("engine: this kernel has no dmaengine (CONFIG_DMA_ENGINE)\n");
	return ret;
}

/**
 * t3_engine_set - choose
 * @which: enum t3_engine_choice
 *
 * Written again, it takes channels that have come or were given up meanwhile.
 *
 * Context: sleeps. Return: 0; -EOPNOTSUPP, -ENODEV, and nothing has changed.
 */
int t3_engine_set(unsigned int which)
{
	int ret = 0;

	mutex_lock(&set_lock);
	if (started && which != T3_ENGINE_CPU)
		ret = take_channels();
	if (!ret)
		WRITE_ONCE(t3_engine, which);
	if (started && which == T3_ENGINE_CPU)
		t3_dma_close();
	mutex_unlock(&set_lock);
	return ret;
}

/* The parameter was given when nothing was there yet. */
void t3_engine_init(void)
{
	mutex_lock(&set_lock);
	started = true;
	if (t3_engine != T3_ENGINE_CPU && take_channels()) {
		pr_warn("engine: cpu, then\n");
		WRITE_ONCE(t3_engine, T3_ENGINE_CPU);
	}
	mutex_unlock(&set_lock);
}

/* No plan is left. */
void t3_engine_exit(void)
{
	t3_dma_exit();
}
