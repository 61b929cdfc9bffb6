// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the module, its device, and the way of every command.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/anon_inodes.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "t3.h"

struct workqueue_struct *t3_wq;
struct workqueue_struct *t3_slow_wq;
struct workqueue_struct *t3_first_wq;

/**
 * t3_cmd_file - make the file that a command returns
 * @cmd: the command; gets the file and the number reserved for it
 * @name: of the anonymous inode
 * @fops: its operations
 * @priv: its private data, which stays the caller's on failure
 *
 * Context: may sleep. Return: 0; -EMFILE, -ENFILE, -ENOMEM.
 */
int t3_cmd_file(struct t3_cmd *cmd, const char *name,
		const struct file_operations *fops, void *priv)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = anon_inode_getfile(name, fops, priv, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	cmd->file = file;
	cmd->fd = fd;
	return 0;
}

static void cmd_finish(struct t3_cmd *cmd, bool keep)
{
	if (!cmd->file)
		return;
	if (keep) {
		fd_install(cmd->fd, cmd->file);
	} else {
		put_unused_fd(cmd->fd);
		fput(cmd->file);
	}
}

/**
 * t3_op_find - look a command up
 * @ops: the commands of a kind of file
 * @nops: how many
 * @code: the ioctl's code
 *
 * Return: NULL where that kind of file has no such command.
 */
const struct t3_op *t3_op_find(const struct t3_op *ops, u32 nops,
			       unsigned int code)
{
	u32 i;

	for (i = 0; i < nops; i++)
		if (code == _IO(T3_IOC_TYPE, ops[i].nr))
			return &ops[i];
	return NULL;
}

/**
 * t3_arg_take - read a command's structure
 * @op: the command
 * @uarg: the user's structure
 * @arg: out: the kernel's copy
 *
 * A command with outputs first writes back what it has read, so that memory
 * that can't be written is refused before anything has changed.
 *
 * Context: may sleep. Return: 0 or the errno of the contract in linux/t3.h.
 */
int t3_arg_take(const struct t3_op *op, void __user *uarg, union t3_arg *arg)
{
	u32 usize;
	int ret;

	if (WARN_ON_ONCE(op->size > sizeof(*arg)))
		return -ENOTTY;
	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	if (usize < op->min_size)
		return -EINVAL;
	if (usize > SZ_64K)	/* nobody shall have us look for zeros for long */
		return -E2BIG;
	memset(arg, 0, sizeof(*arg));
	ret = copy_struct_from_user(arg, op->size, uarg, usize);
	if (ret)
		return ret;
	/* Read again, it may be another one; all commands have flags next. */
	arg->head[0] = usize;
	if (op->out && copy_to_user(uarg, arg, min(usize, op->size)))
		return -EFAULT;
	return 0;
}

/**
 * t3_arg_give - write a command's outputs
 * @op: the command
 * @uarg: the user's structure
 * @arg: the kernel's copy
 * @ret: what the command returns
 *
 * Context: may sleep. Return: @ret, or -EFAULT in the place of 0.
 */
int t3_arg_give(const struct t3_op *op, void __user *uarg,
		const union t3_arg *arg, int ret)
{
	if (op->out && (!ret || op->out_on_error) &&
	    copy_to_user(uarg, arg, min(arg->head[0], op->size)) && !ret)
		return -EFAULT;
	return ret;
}

/**
 * t3_dispatch - carry out a command
 * @cmd: what it is called on
 * @op: the command, or NULL: there is none
 * @uarg: the user's structure
 *
 * Context: may sleep. Return: 0 or the errno of the contract in linux/t3.h.
 */
int t3_dispatch(struct t3_cmd *cmd, const struct t3_op *op, void __user *uarg)
{
	union t3_arg arg;
	int ret;

	if (!op)
		return -ENOTTY;
	ret = t3_arg_take(op, uarg, &arg);
	if (ret)
		return ret;
	cmd->arg = &arg;
	ret = t3_arg_give(op, uarg, &arg, op->fn(cmd));
	cmd_finish(cmd, !ret);
	return ret;
}

static int query(struct t3_cmd *cmd)
{
	struct t3_query *q = cmd->arg;

	if (q->flags)
		return -EOPNOTSUPP;
	q->features = T3_FEATURES;
	q->max_regions = T3_MAX_REGIONS;
	q->max_block_bytes = T3_MAX_BLOCK_BYTES;
	q->inline_max_bytes = READ_ONCE(t3_inline_max_bytes);
	q->watchdog_max_ms = READ_ONCE(t3_watchdog_max_ms);
	return 0;
}

static const struct t3_op device_ops[] = {
	T3_OP(T3_CMD_QUERY, t3_query, 32, true, false, query),
	T3_OP(T3_CMD_GROUP_CREATE, t3_group_create, 24, true, false,
	      t3_group_create),
};

static long device_ioctl(struct file *file, unsigned int code,
			 unsigned long arg)
{
	struct t3_cmd cmd = { };

	return t3_ioctl_end(t3_dispatch(&cmd,
					t3_op_find(device_ops,
						   ARRAY_SIZE(device_ops), code),
					(void __user *)arg));
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "t3",
	.fops = &device_fops,
	.groups = t3_device_groups,
	.mode = 0660,
};

/* Nothing is really transferred by it: exporters may map in any pieces. */
static struct device_dma_parameters dma_parms = {
	.max_segment_size = UINT_MAX,
	.segment_boundary_mask = ULONG_MAX,
};

/* The device that dma-bufs are attached to. */
struct device *t3_device(void)
{
	return device.this_device;
}

static int make_queues(void)
{
	/* Fences depend on these: they go on where there is no memory. */
	t3_wq = alloc_workqueue("t3", WQ_UNBOUND | WQ_SYSFS | WQ_MEM_RECLAIM,
				0);
	t3_first_wq = alloc_workqueue("t3-first", WQ_UNBOUND | WQ_HIGHPRI |
				      WQ_SYSFS | WQ_MEM_RECLAIM, 0);
	t3_slow_wq = alloc_workqueue("t3-slow", WQ_UNBOUND | WQ_SYSFS, 0);
	return t3_wq && t3_first_wq && t3_slow_wq ? 0 : -ENOMEM;
}

static void destroy_queues(void)
{
	if (t3_slow_wq)
		destroy_workqueue(t3_slow_wq);
	if (t3_first_wq)
		destroy_workqueue(t3_first_wq);
	if (t3_wq)
		destroy_workqueue(t3_wq);
}

static int __init t3_init(void)
{
	int ret;

	ret = make_queues();
	if (ret)
		goto queues;
	t3_dump_init();
	t3_engine_init();
	ret = misc_register(&device);
	if (ret)
		goto engine;
	/* Some exporters map for the device as soon as it is attached. */
	device.this_device->dma_parms = &dma_parms;
	ret = dma_coerce_mask_and_coherent(device.this_device,
					   DMA_BIT_MASK(64));
	if (!ret)
		return 0;
	misc_deregister(&device);
engine:
	t3_engine_exit();
	t3_dump_exit();
queues:
	destroy_queues();
	return ret;
}

static void __exit t3_exit(void)
{
	misc_deregister(&device);
	t3_dump_exit();
	t3_engine_exit();
	/*
	 * No file is left; what is queued holds the last references. Works of
	 * one queue may put some on the other, and these the fences' last ones
	 * on the first again.
	 */
	flush_workqueue(t3_first_wq);
	flush_workqueue(t3_wq);
	flush_workqueue(t3_slow_wq);
	flush_workqueue(t3_wq);
	destroy_queues();
	rcu_barrier();	/* fences */
}

module_init(t3_init);
module_exit(t3_exit);
MODULE_DESCRIPTION("Transfers that fire when a GEMM's tiles are done");
MODULE_LICENSE("GPL");
MODULE_VERSION(T3_MODULE_VERSION);
