// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A memcpy device of dmaengine in software, for tests: a work copies, a tasklet
 * calls back, and what goes wrong with real ones can be had in debugfs,
 * t3_testdma/:
 *
 *	delay_us	before each copy
 *	room		copies that a channel has room for at once
 *	fail_in		n: the n-th copy from now on goes wrong, once; 0: none
 *	fail_every	n: each n-th copy goes wrong; 0: none
 *	fail_kind	how, see enum kind
 *	reverse		1: the last one that was issued is done first
 *	copies		how many were done (read only)
 *
 * The device goes and comes back by its driver's files unbind and bind.
 */
#define pr_fmt(fmt) "t3_testdma: " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

MODULE_DESCRIPTION("A memcpy device in software, for tests of t3");
MODULE_LICENSE("Dual MIT/GPL");

static bool stoppable = true;
module_param(stoppable, bool, 0444);
MODULE_PARM_DESC(stoppable, "transfers can be terminated (Y)");

static int node;
module_param(node, int, 0444);
MODULE_PARM_DESC(node, "NUMA node of the device (0)");

#define CHANNELS	2

enum kind {
	KIND_ERROR,	/* half is copied, and an error says so */
	KIND_LYING,	/* half is copied, an error says that nothing is left */
	KIND_SHORT,	/* half is copied, no error, but a residue */
	KIND_NONSENSE,	/* nothing is copied, the residue is larger than all */
	KIND_LOST,	/* half is copied, nobody is called back */
	KIND_SILENT,	/* nothing is copied, and all is said to be well */
};

static u32 delay_us, room = 256, fail_every, fail_kind, reverse;
static atomic_t fail_in, copies;

/**
 * struct test_desc - one copy
 * @tx: the dmaengine's part
 * @node: in one list of its channel
 * @to: where to
 * @from: where from
 * @len: bytes
 * @result: for the callback
 */
struct test_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t to;
	dma_addr_t from;
	size_t len;
	struct dmaengine_result result;
};

/**
 * struct test_chan - a channel
 * @chan: the dmaengine's part
 * @lock: spinlock, bottom halves off: all that follows
 * @submitted: not issued yet
 * @issued: to be copied
 * @done: copied, to be called back
 * @used: descriptors that exist
 * @stops: grows with each termination
 * @work: copies
 * @tasklet: calls back
 */
struct test_chan {
	struct dma_chan chan;
	spinlock_t lock; /* all that follows */
	struct list_head submitted;
	struct list_head issued;
	struct list_head done;
	u32 used;
	u32 stops;
	struct work_struct work;
	struct tasklet_struct tasklet;
};

/* A device, until nobody has a channel of it any more. */
struct test_device {
	struct dma_device dma;
	struct test_chan chan[CHANNELS];
};

static struct workqueue_struct *wq;

static struct test_chan *to_test(struct dma_chan *chan)
{
	return container_of(chan, struct test_chan, chan);
}

/* --- copying -------------------------------------------------------------- */

static bool goes_wrong(int n)
{
	if (fail_every && n % fail_every == 0)
		return true;
	return atomic_dec_if_positive(&fail_in) == 0;
}

/* Return: somebody is to be called back. */
static bool copy(struct test_desc *d, struct device *dev)
{
	void *to = phys_to_virt(dma_to_phys(dev, d->to));
	void *from = phys_to_virt(dma_to_phys(dev, d->from));
	size_t half = d->len / 2;

	d->result.result = DMA_TRANS_NOERROR;
	d->result.residue = 0;
	if (!goes_wrong(atomic_inc_return(&copies))) {
		memcpy(to, from, d->len);
		return true;
	}
	if (fail_kind != KIND_NONSENSE && fail_kind != KIND_SILENT)
		memcpy(to, from, half);
	if (fail_kind == KIND_ERROR || fail_kind == KIND_LYING ||
	    fail_kind == KIND_NONSENSE)
		d->result.result = DMA_TRANS_WRITE_FAILED;
	if (fail_kind == KIND_ERROR || fail_kind == KIND_SHORT)
		d->result.residue = d->len - half;
	if (fail_kind == KIND_NONSENSE)
		d->result.residue = d->len + 12345;
	return fail_kind != KIND_LOST;
}

static struct test_desc *take(struct test_chan *c, struct list_head *list,
			      bool last, u32 *stops)
{
	struct test_desc *d = NULL;

	spin_lock_bh(&c->lock);
	if (!list_empty(list)) {
		d = last ? list_last_entry(list, struct test_desc, node) :
			   list_first_entry(list, struct test_desc, node);
		list_del(&d->node);
	}
	*stops = c->stops;
	spin_unlock_bh(&c->lock);
	return d;
}

static void free_desc(struct test_chan *c, struct test_desc *d)
{
	spin_lock_bh(&c->lock);
	c->used--;
	spin_unlock_bh(&c->lock);
	kfree(d);
}

/* Sleeps in short pieces. Return: the channel was not stopped meanwhile. */
static bool wait_for_it(struct test_chan *c, u32 stops)
{
	u32 left = READ_ONCE(delay_us);

	while (left && READ_ONCE(c->stops) == stops) {
		u32 now = min(left, 2000U);

		usleep_range(now, now + 50);
		left -= now;
	}
	return READ_ONCE(c->stops) == stops;
}

static void copy_work(struct work_struct *work)
{
	struct test_chan *c = container_of(work, struct test_chan, work);
	struct test_desc *d;
	u32 stops;
	bool call;

	while ((d = take(c, &c->issued, reverse, &stops))) {
		call = wait_for_it(c, stops) &&
		       copy(d, c->chan.device->dev);
		spin_lock_bh(&c->lock);
		call = call && c->stops == stops;
		if (call)
			list_add_tail(&d->node, &c->done);
		spin_unlock_bh(&c->lock);
		if (call)
			tasklet_schedule(&c->tasklet);
		else
			free_desc(c, d);
	}
}

static void call_back(struct tasklet_struct *t)
{
	struct test_chan *c = from_tasklet(c, t, tasklet);
	struct test_desc *d;
	u32 stops;

	while ((d = take(c, &c->done, false, &stops))) {
		c->chan.completed_cookie = d->tx.cookie;
		if (d->tx.callback_result)
			d->tx.callback_result(d->tx.callback_param, &d->result);
		else if (d->tx.callback)
			d->tx.callback(d->tx.callback_param);
		free_desc(c, d);
	}
}

/* --- what dmaengine calls ------------------------------------------------- */

static dma_cookie_t submit(struct dma_async_tx_descriptor *tx)
{
	struct test_desc *d = container_of(tx, struct test_desc, tx);
	struct test_chan *c = to_test(tx->chan);

	spin_lock_bh(&c->lock);
	if (++c->chan.cookie < DMA_MIN_COOKIE)
		c->chan.cookie = DMA_MIN_COOKIE;
	tx->cookie = c->chan.cookie;
	list_add_tail(&d->node, &c->submitted);
	spin_unlock_bh(&c->lock);
	return tx->cookie;
}

static struct dma_async_tx_descriptor *prep(struct dma_chan *chan,
					    dma_addr_t to, dma_addr_t from,
					    size_t len, unsigned long flags)
{
	struct test_chan *c = to_test(chan);
	struct test_desc *d;
	bool full;

	d = kzalloc(sizeof(*d), GFP_NOWAIT);
	if (!d)
		return NULL;
	spin_lock_bh(&c->lock);
	full = c->used >= READ_ONCE(room);
	c->used += !full;
	spin_unlock_bh(&c->lock);
	if (full) {
		kfree(d);
		return NULL;
	}
	dma_async_tx_descriptor_init(&d->tx, chan);
	d->tx.tx_submit = submit;
	d->tx.flags = flags;
	d->to = to;
	d->from = from;
	d->len = len;
	return &d->tx;
}

static void issue(struct dma_chan *chan)
{
	struct test_chan *c = to_test(chan);

	spin_lock_bh(&c->lock);
	list_splice_tail_init(&c->submitted, &c->issued);
	spin_unlock_bh(&c->lock);
	queue_work(wq, &c->work);
}

static enum dma_status status(struct dma_chan *chan, dma_cookie_t cookie,
			      struct dma_tx_state *state)
{
	dma_set_tx_state(state, chan->completed_cookie, chan->cookie, 0);
	return dma_async_is_complete(cookie, chan->completed_cookie,
				     chan->cookie);
}

static int terminate(struct dma_chan *chan)
{
	struct test_chan *c = to_test(chan);
	struct test_desc *d, *next;
	LIST_HEAD(gone);

	spin_lock_bh(&c->lock);
	c->stops++;
	list_splice_init(&c->submitted, &gone);
	list_splice_init(&c->issued, &gone);
	list_splice_init(&c->done, &gone);
	spin_unlock_bh(&c->lock);
	list_for_each_entry_safe(d, next, &gone, node)
		free_desc(c, d);
	return 0;
}

static void synchronize(struct dma_chan *chan)
{
	struct test_chan *c = to_test(chan);

	flush_work(&c->work);
	tasklet_kill(&c->tasklet);
}

static int alloc_chan(struct dma_chan *chan)
{
	chan->cookie = DMA_MIN_COOKIE;
	chan->completed_cookie = DMA_MIN_COOKIE;
	return 1;
}

static void free_chan(struct dma_chan *chan)
{
	terminate(chan);
	synchronize(chan);
}

static void release(struct dma_device *dma)
{
	kfree(container_of(dma, struct test_device, dma));
}

/* --- the device ----------------------------------------------------------- */

static void init_chan(struct test_device *td, u32 i)
{
	struct test_chan *c = &td->chan[i];

	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->submitted);
	INIT_LIST_HEAD(&c->issued);
	INIT_LIST_HEAD(&c->done);
	INIT_WORK(&c->work, copy_work);
	tasklet_setup(&c->tasklet, call_back);
	c->chan.device = &td->dma;
	list_add_tail(&c->chan.device_node, &td->dma.channels);
}

static void unregister(void *data)
{
	struct test_device *td = data;
	u32 i;

	for (i = 0; i < CHANNELS; i++)
		free_chan(&td->chan[i].chan);
	dma_async_device_unregister(&td->dma);
}

static int probe(struct platform_device *pdev)
{
	struct test_device *td = kzalloc(sizeof(*td), GFP_KERNEL);
	struct dma_device *dma;
	int ret;
	u32 i;

	if (!td)
		return -ENOMEM;
	dma = &td->dma;
	dma->dev = &pdev->dev;
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	dma_cap_set(DMA_PRIVATE, dma->cap_mask);
	INIT_LIST_HEAD(&dma->channels);
	dma->device_alloc_chan_resources = alloc_chan;
	dma->device_free_chan_resources = free_chan;
	dma->device_prep_dma_memcpy = prep;
	dma->device_issue_pending = issue;
	dma->device_tx_status = status;
	dma->device_release = release;
	if (stoppable) {
		dma->device_terminate_all = terminate;
		dma->device_synchronize = synchronize;
	}
	for (i = 0; i < CHANNELS; i++)
		init_chan(td, i);
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = dma_async_device_register(dma);
	if (ret) {
		kfree(td);
		return ret;
	}
	return devm_add_action_or_reset(&pdev->dev, unregister, td);
}

static struct platform_driver driver = {
	.probe = probe,
	.driver.name = "t3_testdma",
};

static struct platform_device *device;
static struct dentry *dir;

static void add_files(void)
{
	dir = debugfs_create_dir("t3_testdma", NULL);
	debugfs_create_u32("delay_us", 0600, dir, &delay_us);
	debugfs_create_u32("room", 0600, dir, &room);
	debugfs_create_u32("fail_every", 0600, dir, &fail_every);
	debugfs_create_u32("fail_kind", 0600, dir, &fail_kind);
	debugfs_create_u32("reverse", 0600, dir, &reverse);
	debugfs_create_atomic_t("fail_in", 0600, dir, &fail_in);
	debugfs_create_atomic_t("copies", 0400, dir, &copies);
}

static int __init testdma_init(void)
{
	int ret;

	wq = alloc_workqueue("t3_testdma", WQ_UNBOUND, 0);
	if (!wq)
		return -ENOMEM;
	device = platform_device_alloc("t3_testdma", PLATFORM_DEVID_NONE);
	ret = -ENOMEM;
	if (!device)
		goto no_device;
	set_dev_node(&device->dev, node);
	ret = platform_device_add(device);
	if (ret) {
		platform_device_put(device);
		goto no_device;
	}
	ret = platform_driver_register(&driver);
	if (ret)
		goto no_driver;
	add_files();
	return 0;

no_driver:
	platform_device_unregister(device);
no_device:
	destroy_workqueue(wq);
	return ret;
}

static void __exit testdma_exit(void)
{
	debugfs_remove(dir);
	platform_driver_unregister(&driver);
	platform_device_unregister(device);
	destroy_workqueue(wq);
}

module_init(testdma_init);
module_exit(testdma_exit);
