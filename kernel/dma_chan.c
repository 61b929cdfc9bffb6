// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the memcpy channels that the dmaengine engine holds.
 *
 * Channels are taken while the knob "engine" asks for them and are ours alone
 * meanwhile: taking back a transfer ends all that a channel does. Their driver
 * can't be unloaded then, but its device may go: the notifier of its bus tells
 * us just before, when the channel can still be stopped and given back.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/notifier.h>
#include <linux/topology.h>

#include "dma.h"

#define CHANS_A_NODE	2
#define TEST_BYTES	PAGE_SIZE
#define TEST_MS		500
#define BUSES		4	/* whose devices may go */

static DEFINE_MUTEX(t3_dma_lock);	/* see dma.h */
/* Written under t3_dma_lock, read under it or RCU. */
static struct t3_dma_chan __rcu *chans[T3_DMA_CHANS];

static struct t3_dma_chan *chan_at(u32 i)
{
	return rcu_dereference_protected(chans[i],
					 lockdep_is_held(&t3_dma_lock));
}

/* --- choosing ------------------------------------------------------------- */

static int distance(int from, int to)
{
	if (from == NUMA_NO_NODE || to == NUMA_NO_NODE)
		return REMOTE_DISTANCE;
	return node_distance(from, to);
}

/**
 * t3_dma_pick - the channel for a destination
 * @node: of its memory
 *
 * The nearest one; of equally near ones that which has least to do.
 *
 * Context: any, under rcu_read_lock().
 * Return: the channel, or NULL where there is none.
 */
struct t3_dma_chan *t3_dma_pick(int node)
{
	struct t3_dma_chan *ch, *best = NULL;
	int d, best_d = INT_MAX;
	u32 i;

	for (i = 0; i < T3_DMA_CHANS; i++) {
		ch = rcu_dereference(chans[i]);
		if (!ch || READ_ONCE(ch->closed))
			continue;
		d = distance(ch->node, node);
		if (d > best_d || (d == best_d && atomic_read(&ch->flying) >=
						  atomic_read(&best->flying)))
			continue;
		best = ch;
		best_d = d;
	}
	return best;
}

/* --- is it to be believed? ------------------------------------------------ */

/**
 * struct trial - one copy that shows whether a channel copies
 * @done: its callback was called
 * @called: likewise, and stays so when that was waited for
 * @ok: and said that all is well
 */
struct trial {
	struct completion done;
	bool called;
	bool ok;
};

static void trial_done(void *param, const struct dmaengine_result *result)
{
	struct trial *t = param;

	t->ok = result->result == DMA_TRANS_NOERROR && !result->residue;
	WRITE_ONCE(t->called, true);
	complete(&t->done);
}

static const char *try_submit(struct t3_dma_chan *ch, struct trial *t,
			      dma_addr_t to, dma_addr_t from)
{
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(ch->chan, to, from, TEST_BYTES,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx)
		return "it takes no copy";
	tx->callback_result = trial_done;
	tx->callback_param = t;
	if (dma_submit_error(dmaengine_submit(tx)))
		return "it takes no copy";
	dma_async_issue_pending(ch->chan);
	if (wait_for_completion_timeout(&t->done, msecs_to_jiffies(TEST_MS)))
		return t->ok ? NULL : "a copy fails";
	return "a copy does not end";
}

/* Return: NULL, or what is wrong; *@stuck: the device still has the memory. */
static const char *try_copy(struct t3_dma_chan *ch, struct trial *t,
			    void *to, void *from, bool *stuck)
{
	dma_addr_t dma_to, dma_from;
	const char *why = "its memory can't be mapped";

	dma_from = dma_map_single(ch->dev, from, TEST_BYTES, DMA_TO_DEVICE);
	if (dma_mapping_error(ch->dev, dma_from))
		return why;
	dma_to = dma_map_single(ch->dev, to, TEST_BYTES, DMA_FROM_DEVICE);
	if (!dma_mapping_error(ch->dev, dma_to)) {
		why = try_submit(ch, t, dma_to, dma_from);
		/* Whatever it still does ends here, if it can be ended. */
		if (why && dmaengine_terminate_sync(ch->chan))
			*stuck = !READ_ONCE(t->called);
		if (*stuck)
			return why;
		dma_unmap_single(ch->dev, dma_to, TEST_BYTES, DMA_FROM_DEVICE);
	}
	dma_unmap_single(ch->dev, dma_from, TEST_BYTES, DMA_TO_DEVICE);
	if (!why && memcmp(to, from, TEST_BYTES))
		why = "a copy is said to be done and is not";
	return why;
}

/*
 * One page is copied and compared: behind a wrong IOMMU, or with a driver that
 * tells nobody of its completions, a channel is worse than none.
 */
static const char *self_test(struct t3_dma_chan *ch)
{
	u8 *from = (u8 *)__get_free_page(GFP_KERNEL);
	u8 *to = (u8 *)get_zeroed_page(GFP_KERNEL);
	struct trial *t = kzalloc(sizeof(*t), GFP_KERNEL);
	const char *why = "no memory";
	bool stuck = false;
	u32 i;

	if (from && to && t) {
		init_completion(&t->done);
		for (i = 0; i < TEST_BYTES; i++)
			from[i] = i * 7 + (i >> 8) + 1;
		why = try_copy(ch, t, to, from, &stuck);
	}
	if (!stuck) {	/* else the device may still write there: kept */
		free_page((unsigned long)from);
		free_page((unsigned long)to);
		kfree(t);
	} else {
		__module_get(THIS_MODULE);	/* and may call back */
	}
	return why;
}

/* --- devices that go ------------------------------------------------------ */

static void close_chan(u32 i);

static int bus_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct device *dev = data;
	u32 i;

	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	mutex_lock(&t3_dma_lock);
	for (i = 0; i < T3_DMA_CHANS; i++) {
		struct t3_dma_chan *ch = chan_at(i);

		if (!ch || ch->provider != dev)
			continue;
		pr_info("%s: its device goes: given back\n", ch->name);
		t3_counted(T3_COUNT_DMA_REMOVED, 1);
		close_chan(i);
	}
	mutex_unlock(&t3_dma_lock);
	return NOTIFY_OK;
}

/* Buses that were ever seen, under the knob's lock; watched until the end. */
static struct watched_bus {
	typeof_member(struct device, bus) bus;
	struct notifier_block nb;
} buses[BUSES];

/*
 * Not under t3_dma_lock, which the notifier takes.
 * Return: false where nobody would tell us.
 */
static bool watch_bus(struct device *dev)
{
	u32 i;

	if (!dev->bus)
		return false;
	for (i = 0; i < BUSES; i++) {
		if (buses[i].bus == dev->bus)
			return true;
		if (buses[i].bus)
			continue;
		buses[i].nb.notifier_call = bus_event;
		if (bus_register_notifier(dev->bus, &buses[i].nb))
			return false;
		buses[i].bus = dev->bus;
		return true;
	}
	return false;
}

static void unwatch_buses(void)
{
	u32 i;

	for (i = 0; i < BUSES && buses[i].bus; i++) {
		bus_unregister_notifier(buses[i].bus, &buses[i].nb);
		buses[i].bus = NULL;
	}
}

/* --- taking and giving back ----------------------------------------------- */

/* Drivers whose way of preparing a copy sleeps, which ours must not. */
static bool sleeps(const struct device *dev)
{
	return dev->driver && !strcmp(dev->driver->name, "idxd");
}

static bool suits(struct dma_chan *chan, void *param)
{
	struct device *dev = chan->device->dev;

	return dev_to_node(dev) == *(int *)param &&
	       !sleeps(dev);
}

static void free_chan(struct t3_dma_chan *ch)
{
	dma_release_channel(ch->chan);
	put_device(ch->dev);
	put_device(ch->provider);
	kvfree(ch);
}

/* Caller holds t3_dma_lock. Context: sleeps, for a bounded time. */
static void close_chan(u32 i)
{
	struct t3_dma_chan *ch = chan_at(i);

	RCU_INIT_POINTER(chans[i], NULL);
	t3_dma_chan_stop(ch);
	if (!ch->lost)
		free_chan(ch);
}

static u32 max_bytes(struct device *dev)
{
	size_t most = min_t(size_t, dma_max_mapping_size(dev), SZ_1M);

	return round_down(min_t(size_t, most, dma_get_max_seg_size(dev)),
			  PAGE_SIZE);
}

static struct t3_dma_chan *take_chan(int node)
{
	struct t3_dma_chan *ch = kvzalloc(sizeof(*ch), GFP_KERNEL);
	dma_cap_mask_t mask;

	if (!ch)
		return NULL;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	ch->chan = dma_request_channel(mask, suits, &node);
	if (!ch->chan) {
		kvfree(ch);
		return NULL;
	}
	strscpy(ch->name, dma_chan_name(ch->chan), sizeof(ch->name));
	ch->dev = get_device(dmaengine_get_dma_device(ch->chan));
	ch->provider = get_device(ch->chan->device->dev);
	ch->node = node;
	ch->max_bytes = max_bytes(ch->dev);
	ch->line = max_t(u32, L1_CACHE_BYTES, dma_get_cache_alignment());
	ch->stoppable = ch->chan->device->device_terminate_all;
	ch->closed = true;
	t3_dma_chan_init(ch);
	return ch;
}

/* Caller holds t3_dma_lock. Return: a place, or T3_DMA_CHANS. */
static u32 free_place(void)
{
	u32 i;

	for (i = 0; i < T3_DMA_CHANS && chan_at(i); i++)
		;
	return i;
}

/*
 * Tested in its place, where the notifier finds it: a device that goes earlier
 * does not pass the test.
 */
static void place_chan(struct t3_dma_chan *ch)
{
	const char *why;
	u32 i;

	mutex_lock(&t3_dma_lock);
	i = free_place();
	if (i == T3_DMA_CHANS) {
		free_chan(ch);
		goto unlock;
	}
	rcu_assign_pointer(chans[i], ch);
	why = ch->max_bytes ? self_test(ch) : "it takes less than a page";
	if (why) {
		pr_warn("%s of %s is not used: %s\n", ch->name,
			dev_name(ch->provider), why);
		close_chan(i);
		goto unlock;
	}
	pr_info("%s of %s, node %d, is used for copies%s\n", ch->name,
		dev_name(ch->provider), ch->node,
		ch->stoppable ? "" : "; its driver can't end transfers");
	WRITE_ONCE(ch->closed, false);
unlock:
	mutex_unlock(&t3_dma_lock);
}

/* Channels of a node that we have. */
static u32 chans_of(int node)
{
	u32 i, n = 0;

	mutex_lock(&t3_dma_lock);
	for (i = 0; i < T3_DMA_CHANS; i++)
		n += chan_at(i) && chan_at(i)->node == node;
	mutex_unlock(&t3_dma_lock);
	return n;
}

/* Return: how many channels of a node there are now. */
static u32 open_node(int node)
{
	u32 n = chans_of(node);
	struct t3_dma_chan *ch;

	for (; n < CHANS_A_NODE; n++) {
		ch = take_chan(node);
		if (!ch)
			break;
		if (watch_bus(ch->provider)) {
			place_chan(ch);
		} else {
			pr_warn("%s of %s is not used: nobody would say when it goes\n",
				ch->name, dev_name(ch->provider));
			free_chan(ch);
		}
	}
	return chans_of(node);
}

/**
 * t3_dma_open - take channels
 *
 * Two of each NUMA node, where there are any, with those that are held already.
 *
 * Context: sleeps; the caller keeps other opens and closes out.
 * Return: 0; -ENODEV where no channel is to be had.
 */
int t3_dma_open(void)
{
	u32 good = open_node(NUMA_NO_NODE);
	int node;

	for_each_online_node(node)
		good += open_node(node);
	return good ? 0 : -ENODEV;
}

static void close_all(void)
{
	u32 i;

	mutex_lock(&t3_dma_lock);
	for (i = 0; i < T3_DMA_CHANS; i++)
		if (chan_at(i))
			close_chan(i);
	mutex_unlock(&t3_dma_lock);
}

/**
 * t3_dma_close - give all channels back
 *
 * What they still do is taken back; processors go on with it.
 *
 * Context: sleeps; the caller keeps other opens and closes out.
 */
void t3_dma_close(void)
{
	close_all();
}

static void give_up_work(struct work_struct *work)
{
	u32 i;

	mutex_lock(&t3_dma_lock);
	for (i = 0; i < T3_DMA_CHANS; i++) {
		struct t3_dma_chan *ch = chan_at(i);

		if (!ch || (!ch->lost && atomic_read(&ch->failures) <
					 T3_DMA_FAILURES))
			continue;
		pr_warn("%s is not used any more: too many transfers have failed\n",
			ch->name);
		close_chan(i);
	}
	mutex_unlock(&t3_dma_lock);
}

static DECLARE_WORK(give_up, give_up_work);

/**
 * t3_dma_give_up - a channel has failed too often, or lost a transfer
 *
 * Context: any.
 */
void t3_dma_give_up(void)
{
	queue_work(t3_slow_wq, &give_up);
}

/**
 * t3_dma_cut - take back what channels do for a group that has broken
 * @group: the group
 *
 * Context: sleeps, for a bounded time.
 */
void t3_dma_cut(struct t3_group *group)
{
	u32 i;

	mutex_lock(&t3_dma_lock);
	for (i = 0; i < T3_DMA_CHANS; i++) {
		struct t3_dma_chan *ch = chan_at(i);

		if (ch && t3_dma_chan_serves(ch, group))
			t3_dma_chan_cut(ch);
	}
	mutex_unlock(&t3_dma_lock);
}

/* The module goes: no plan is left. */
void t3_dma_exit(void)
{
	close_all();
	cancel_work_sync(&give_up);
	unwatch_buses();
}
