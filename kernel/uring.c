// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: commands of a member that come through io_uring.
 *
 * The same commands as by ioctl(), with the same structures and results. What
 * may sleep for long is refused where the ring must not be kept, and comes
 * again from one of the ring's workers; T3_NOTIFY leaves the transfers to the
 * workqueue and is carried out at once. A worker and a polling ring's thread
 * have the address space of whoever made the ring, so that the check against
 * the member's is the same for all.
 *
 * A wait that is not over pends: it keeps no thread. It completes once, by
 * whoever sets wait_state.taken first: the waker of the rank's queue, the
 * timer, the one who has begun it, or the ring, which gets rid of it when its
 * task ends. All but the ring complete it in the task, where the user's memory
 * is.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "t3.h"

/* What is in the entry. The user may write it at any time: it is read once. */
static struct t3_uring_cmd entry_of(const struct io_uring_cmd *cmd)
{
	const struct t3_uring_cmd *uc = t3_uring_sqe_cmd(cmd);

	return (struct t3_uring_cmd) {
		.arg = READ_ONCE(uc->arg),
		.size = READ_ONCE(uc->size),
		.__reserved = READ_ONCE(uc->__reserved),
	};
}

#ifdef T3_HAS_URING_CANCEL

/**
 * struct uring_wait - a wait that pends
 * @cmd: the ring's command; alive until it is completed
 * @member: who waits; the command holds its file
 * @part: with a reference
 * @entry: in the rank's queue
 * @timer: armed unless @end is KTIME_MAX
 * @end: when it is over at the latest
 * @uarg: the user's structure
 * @arg: the kernel's copy
 *
 * Belongs to whoever begins it, and from then on to the one who takes it; the
 * waker and the timer only look at it, and are gone before it is freed.
 */
struct uring_wait {
	struct io_uring_cmd *cmd;
	struct t3_member *member;
	struct t3_part *part;
	struct wait_queue_entry entry;
	struct hrtimer timer;
	ktime_t end;
	void __user *uarg;
	union t3_arg arg;
};

/**
 * struct wait_state - the part of it that is in the ring's command
 * @wait: the wait; valid for who has set @taken
 * @taken: not 0: it is being begun, or completed; set by xchg(), cleared once,
 *	with release, by who has begun it
 */
struct wait_state {
	struct uring_wait *wait;
	u32 taken;
};

static struct wait_state *wait_state(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct wait_state) > sizeof(cmd->pdu));
	return (struct wait_state *)cmd->pdu;
}

static void wait_free(struct uring_wait *w)
{
	atomic_dec(&w->member->waits);
	kfree(w);
}

/* Nobody else will look at it any more. Context: may sleep. */
static void wait_detach(struct uring_wait *w)
{
	hrtimer_cancel(&w->timer);
	remove_wait_queue(&w->member->group->rank_wait[w->member->rank],
			  &w->entry);
}

/*
 * In the task, or, where that is dying already, in some thread without its
 * memory: then nobody is there to be told.
 */
static void wait_complete(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct uring_wait *w = wait_state(cmd)->wait;
	struct t3_member *member = w->member;
	int ret;

	wait_detach(w);
	if (current->mm == member->mm) {
		ret = t3_wait_look(member, w->part, w->arg.wait.epoch, w->end);
		ret = t3_wait_end(member, w->part, &w->arg.wait, ret);
		ret = t3_arg_give(t3_member_op(T3_WAIT), w->uarg, &w->arg, ret);
	} else {
		t3_part_put(w->part);
		ret = -ECANCELED;
	}
	wait_free(w);
	t3_uring_done(cmd, ret, issue_flags);
}

/* Context: any. */
static void wait_take(struct io_uring_cmd *cmd)
{
	if (!xchg(&wait_state(cmd)->taken, 1))
		io_uring_cmd_complete_in_task(cmd, wait_complete);
}

static int wait_wake(struct wait_queue_entry *entry, unsigned int mode,
		     int flags, void *key)
{
	struct uring_wait *w = container_of(entry, struct uring_wait, entry);

	if (t3_wait_look(w->member, w->part, w->arg.wait.epoch, KTIME_MAX))
		wait_take(w->cmd);
	return 0;
}

static enum hrtimer_restart wait_expire(struct hrtimer *timer)
{
	wait_take(container_of(timer, struct uring_wait, timer)->cmd);
	return HRTIMER_NORESTART;
}

/*
 * The ring wants to get rid of the command. It asks again for as long as the
 * command is there, and so whoever else has taken it may go on.
 */
static int wait_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct wait_state *state = wait_state(cmd);
	struct uring_wait *w;

	if (xchg(&state->taken, 1))
		return 0;
	w = state->wait;
	wait_detach(w);
	t3_part_put(w->part);
	wait_free(w);
	t3_uring_done(cmd, -ECANCELED, issue_flags);
	return 0;
}

static struct uring_wait *wait_alloc(struct t3_member *member)
{
	struct uring_wait *w;

	if (atomic_inc_return(&member->waits) > T3_MAX_WAITS) {
		t3_say(member, "WAIT: %u are pending already", T3_MAX_WAITS);
		atomic_dec(&member->waits);
		return ERR_PTR(-EBUSY);
	}
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w) {
		atomic_dec(&member->waits);
		return ERR_PTR(-ENOMEM);
	}
	w->member = member;
	t3_hrtimer_setup(&w->timer, wait_expire, HRTIMER_MODE_ABS);
	init_waitqueue_func_entry(&w->entry, wait_wake);
	return w;
}

/*
 * From the mark on the ring may want to get rid of it, from the queue on it
 * may be woken, and the timer may fire: all that finds it taken, until it is
 * all there. What has been missed by then is looked for once more: the xchg()
 * of a waker comes after what it tells of, and here the look after the fence.
 */
static void wait_pend(struct uring_wait *w, struct io_uring_cmd *cmd,
		      unsigned int issue_flags)
{
	struct wait_state *state = wait_state(cmd);
	struct t3_member *member = w->member;
	struct t3_part *part = w->part;
	u32 epoch = w->arg.wait.epoch;
	ktime_t end = w->end;

	w->cmd = cmd;
	state->wait = w;
	state->taken = 1;
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	add_wait_queue(&member->group->rank_wait[member->rank], &w->entry);
	if (end != KTIME_MAX)
		hrtimer_start(&w->timer, end, HRTIMER_MODE_ABS);
	/* Who takes it gives its reference back: one more for the last look. */
	kref_get(&part->plan->ref);
	/* From here on @w is theirs; see above for both. */
	smp_store_release(&state->taken, 0);
	smp_mb();	/* see above */
	if (t3_wait_look(member, part, epoch, end))
		wait_take(cmd);
	t3_part_put(part);
}

/* The wait has not been carried out yet. @w has the part's reference. */
static int wait_start(struct uring_wait *w, struct io_uring_cmd *cmd,
		      unsigned int issue_flags)
{
	struct t3_wait *wait = &w->arg.wait;
	struct t3_member *member = w->member;
	int ret;

	w->end = t3_wait_deadline(wait->timeout_ns);
	ret = t3_wait_look(member, w->part, wait->epoch, w->end);
	if (!ret) {
		t3_plan_kick(w->part->plan);
		wait_pend(w, cmd, issue_flags);
		return -EIOCBQUEUED;
	}
	/* Somebody's last section may have to be waited for. */
	if (t3_group_cause(member->group) && issue_flags & IO_URING_F_NONBLOCK) {
		t3_part_put(w->part);
		ret = -EAGAIN;
	} else {
		ret = t3_wait_end(member, w->part, wait, ret);
		ret = t3_arg_give(t3_member_op(T3_WAIT), w->uarg, &w->arg, ret);
	}
	wait_free(w);
	return ret;
}

static int uring_wait(struct t3_member *member, struct io_uring_cmd *cmd,
		      void __user *uarg, unsigned int issue_flags)
{
	const struct t3_op *op = t3_member_op(T3_WAIT);
	struct uring_wait *w = wait_alloc(member);
	int ret;

	if (IS_ERR(w))
		return PTR_ERR(w);
	w->uarg = uarg;
	ret = t3_arg_take(op, uarg, &w->arg);
	if (ret)
		goto free;
	ret = t3_wait_begin(member, &w->arg.wait, &w->part);
	if (!ret)
		return wait_start(w, cmd, issue_flags);
	ret = t3_arg_give(op, uarg, &w->arg, ret);
free:
	wait_free(w);
	return ret;
}

#else /* !T3_HAS_URING_CANCEL */

static int uring_wait(struct t3_member *member, struct io_uring_cmd *cmd,
		      void __user *uarg, unsigned int issue_flags)
{
	t3_say(member, "WAIT through io_uring: this kernel can't cancel it: poll the member");
	return -EOPNOTSUPP;
}

#endif /* T3_HAS_URING_CANCEL */

/* The structure's own size must be the one in the entry. */
static int check_size(void __user *uarg, u32 size)
{
	u32 usize;

	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	return usize == size ? 0 : -EINVAL;
}

static int carry_out(struct t3_member *member, struct io_uring_cmd *cmd,
		     void __user *uarg, unsigned int issue_flags)
{
	struct t3_cmd c = {
		.group = member->group,
		.member = member,
		.nowait = issue_flags & IO_URING_F_NONBLOCK,
	};

	switch (cmd->cmd_op) {
	case T3_WAIT:
		return uring_wait(member, cmd, uarg, issue_flags);
	case T3_ARM:
	case T3_REGION_ADD:
		if (c.nowait)
			return -EAGAIN;
		break;
	case T3_NOTIFY:
		break;
	default:
		return t3_member_op(cmd->cmd_op) ? -EOPNOTSUPP : -ENOTTY;
	}
	return t3_dispatch(&c, t3_member_op(cmd->cmd_op), uarg);
}

/**
 * t3_uring_cmd - a command of a member that comes through io_uring
 * @cmd: the ring's command; its own part is a struct t3_uring_cmd
 * @issue_flags: IO_URING_F_*
 *
 * Context: may sleep, unless IO_URING_F_NONBLOCK for long. Return: 0 or the
 * errno of the contract in linux/t3.h; -EAGAIN with IO_URING_F_NONBLOCK: to be
 * given to a worker; -EIOCBQUEUED: it pends.
 */
int t3_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct t3_member *member = cmd->file->private_data;
	struct t3_uring_cmd entry;
	void __user *uarg;
	int ret;

#ifdef T3_HAS_URING_CANCEL
	if (issue_flags & IO_URING_F_CANCEL)
		return wait_cancel(cmd, issue_flags);
#endif
	ret = t3_member_allowed(member);
	if (ret)
		return ret;
	entry = entry_of(cmd);
	if (entry.__reserved)
		return -EOPNOTSUPP;
	uarg = u64_to_user_ptr(entry.arg);
	ret = check_size(uarg, entry.size);
	return ret ?: carry_out(member, cmd, uarg, issue_flags);
}
