// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: who pays for pinned pages: the address space by RLIMIT_MEMLOCK's account,
 * and where the administrator wants it, each user and all together.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched/signal.h>

#include "t3.h"

/**
 * struct t3_user - a user who has pages pinned
 * @node: in users
 * @uid: who
 * @regions: charged to it; it goes with the last one
 * @pages: pinned
 *
 * All under users_lock.
 */
struct t3_user {
	struct list_head node;
	kuid_t uid;
	u32 regions;
	u64 pages;
};

static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);	/* few: under users_lock */
static u64 pinned;		/* pages of all; under users_lock */

/* What is charged for regions at this moment. Context: any but hard-irq. */
u64 t3_pinned_pages(void)
{
	u64 pages;

	spin_lock(&users_lock);
	pages = pinned;
	spin_unlock(&users_lock);
	return pages;
}

/* Caller holds users_lock. */
static struct t3_user *user_of(kuid_t uid)
{
	struct t3_user *user;

	list_for_each_entry(user, &users, node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static bool is_over(u64 pages, unsigned int mb)
{
	return mb && pages > (u64)mb << (20 - PAGE_SHIFT);
}

#define KIB(pages)	((u64)(pages) << (PAGE_SHIFT - 10))

static int charge_mm(struct t3_member *member, const struct t3_region *region)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(region->npages, &region->mm->pinned_vm);

	if (now <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(region->npages, &region->mm->pinned_vm);
	t3_say(member, "REGION_ADD: %llu KiB would be pinned, RLIMIT_MEMLOCK is %llu KiB",
	       KIB(now), KIB(limit));
	return -EDQUOT;
}

/* Caller holds users_lock. Return: NULL, or which limit is in the way. */
static const char *over_which(u64 user_pages, u64 *now, unsigned int *mb)
{
	*now = user_pages;
	*mb = READ_ONCE(t3_max_pinned_user_mb);
	if (is_over(*now, *mb))
		return "max_pinned_user_mb";
	*now = pinned;
	*mb = READ_ONCE(t3_max_pinned_mb);
	if (is_over(*now, *mb))
		return "max_pinned_mb";
	return NULL;
}

static void credit(struct t3_user *user, unsigned long npages)
{
	spin_lock(&users_lock);
	user->pages -= npages;
	pinned -= npages;
	if (!--user->regions)
		list_del(&user->node);
	else
		user = NULL;
	spin_unlock(&users_lock);
	kfree(user);
}

static int charge_user(struct t3_member *member, struct t3_region *region)
{
	struct t3_user *user, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	const char *which;
	unsigned int mb;
	u64 now;

	if (!fresh)
		return -ENOMEM;
	fresh->uid = current_uid();
	spin_lock(&users_lock);
	user = user_of(fresh->uid);
	if (!user) {
		list_add(&fresh->node, &users);
		user = fresh;
		fresh = NULL;
	}
	user->regions++;
	user->pages += region->npages;
	pinned += region->npages;
	which = over_which(user->pages, &now, &mb);
	spin_unlock(&users_lock);
	kfree(fresh);
	region->user = user;
	if (!which)
		return 0;
	credit(user, region->npages);
	t3_say(member, "REGION_ADD: %llu KiB would be pinned, the module's %s is %u",
	       KIB(now), which, mb);
	return -EDQUOT;
}

/**
 * t3_charge - charge a region's pages
 * @member: whose; for messages
 * @region: of current->mm, not charged
 *
 * Context: sleeps. Return: 0; -EDQUOT, -ENOMEM, and nothing is charged.
 */
int t3_charge(struct t3_member *member, struct t3_region *region)
{
	int ret = charge_mm(member, region);

	if (ret)
		return ret;
	ret = charge_user(member, region);
	if (ret)
		atomic64_sub(region->npages, &region->mm->pinned_vm);
	return ret;
}

/* Context: any but hard-irq. */
void t3_uncharge(struct t3_region *region)
{
	credit(region->user, region->npages);
	atomic64_sub(region->npages, &region->mm->pinned_vm);
}
