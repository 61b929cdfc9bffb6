// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: regions: pinned memory of a member, and what becomes of it.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/hugetlb.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "import.h"
#include "reduce.h"

#define PIN_BATCH	512	/* pages pinned without looking at signals */

/* --- what is taken, what is not ------------------------------------------ */

/* NULL, or what is wrong with a mapping. Caller holds mmap_lock. */
static const char *vma_refusal(struct vm_area_struct *vma)
{
	if (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP))
		return "a device's memory or a PFN map";
	if (userfaultfd_armed(vma))
		return "registered with userfaultfd";
	if (vma_is_anonymous(vma) || is_vm_hugetlb_page(vma))
		return NULL;
	if (vma->vm_file && shmem_mapping(vma->vm_file->f_mapping))
		return NULL;
	return vma->vm_file ? "a file's mapping" : "a special mapping";
}

/*
 * Looks at all mappings of a region. Caller holds mmap_lock of current->mm.
 * Return: FOLL_WRITE or 0; -EFAULT, -EMEDIUMTYPE.
 */
static int check_vmas(struct t3_member *member, const struct t3_region *region)
{
	unsigned long at = region->start;
	unsigned long end = at + (region->npages << PAGE_SHIFT);
	struct vm_area_struct *vma;
	int gup = FOLL_WRITE;
	const char *why;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, region->mm, at);
	for_each_vma_range(vmi, vma, end) {
		if (vma->vm_start > at)
			break;
		why = vma_refusal(vma);
		if (why) {
			t3_say(member, "REGION_ADD: base 0x%llx: %lx-%lx is %s: anonymous, shmem and hugetlb memory are possible",
			       region->base, vma->vm_start, vma->vm_end, why);
			return -EMEDIUMTYPE;
		}
		if (!(vma->vm_flags & VM_WRITE)) {
			if (!(region->flags & T3_REGION_READ_ONLY) ||
			    vma_is_anonymous(vma) ||
			    !(vma->vm_flags & VM_SHARED)) {
				t3_say(member, "REGION_ADD: base 0x%llx: %lx-%lx is not writable: only a shared mapping in a read-only region may be so",
				       region->base, vma->vm_start,
				       vma->vm_end);
				return -EFAULT;
			}
			gup = 0;
		}
		at = vma->vm_end;
	}
	if (at < end) {
		t3_say(member, "REGION_ADD: base 0x%llx: 0x%lx is not mapped",
		       region->base, at);
		return -EFAULT;
	}
	return gup;
}

static int check_geometry(struct t3_member *member,
			  const struct t3_region_add *add)
{
	u32 elem = t3_dtype_size(add->dtype);
	u64 span, end;

	if (!elem) {
		t3_say(member, "REGION_ADD: dtype %u: 1 .. %u are possible",
		       add->dtype, T3_DTYPE_COUNT);
		return -EINVAL;
	}
	if ((add->base | add->row_bytes | add->row_stride) & (elem - 1)) {
		t3_say(member, "REGION_ADD: base 0x%llx, row_bytes %llu or row_stride %llu is not a multiple of %u",
		       add->base, add->row_bytes, add->row_stride, elem);
		return -EDOM;
	}
	if (!add->rows || add->rows > S32_MAX || !add->row_bytes ||
	    add->row_bytes / elem > S32_MAX ||
	    add->row_stride < add->row_bytes ||
	    check_mul_overflow((u64)(add->rows - 1), (u64)add->row_stride,
			       &span) ||
	    check_add_overflow(span, (u64)add->row_bytes, &span) ||
	    span > TASK_SIZE ||
	    check_add_overflow(span, (u64)add->base, &end) ||
	    end > ULONG_MAX - PAGE_SIZE) {
		t3_say(member, "REGION_ADD: base 0x%llx, %u rows of %llu bytes, stride %llu: empty, wrapping or too large",
		       add->base, add->rows, add->row_bytes, add->row_stride);
		return -ERANGE;
	}
	if (add->type == T3_REGION_USER && end > TASK_SIZE) {
		t3_say(member, "REGION_ADD: base 0x%llx: 0x%llx is not the user's",
		       add->base, end - 1);
		return -EFAULT;
	}
	return 0;
}

/* --- the notifier --------------------------------------------------------- */

/*
 * Only sets flags: it may be called where nothing may block. The sequence
 * number goes first, see t3_region_recheck().
 */
static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct t3_region *region =
		container_of(notifier, struct t3_region, notifier);

	mmu_interval_set_seq(notifier, seq);
	smp_wmb();	/* pairs with the smp_mb() of t3_region_recheck() */
	switch (range->event) {
	case MMU_NOTIFY_RELEASE:	/* the member's own notifier sees to it */
		break;
	case MMU_NOTIFY_UNMAP:
		WRITE_ONCE(region->stale, true);
		t3_group_get(region->group);
		if (!queue_work(t3_wq, &region->group->stale_work))
			t3_group_put(region->group);
		break;
	default:
		WRITE_ONCE(region->suspect, true);
	}
	return true;
}

static const struct mmu_interval_notifier_ops interval_ops = {
	.invalidate = invalidate,
};

/* Does an armed epoch use a stale region? */
static void break_if_stale(struct t3_plan *plan)
{
	u32 r, i;

	for (r = 0; r < plan->group->ranks; r++) {
		const struct t3_part *part = plan->part[r];

		if (!t3_plan_armed(plan, r))
			continue;
		for (i = 0; i < part->prog.grids; i++)
			if (READ_ONCE(part->region[i]->stale))
				t3_group_break(plan->group,
					       t3_cause(ESTALE, r, plan->slot,
							T3_NONE));
	}
}

/* t3_group.stale_work: holds a reference on the group. */
void t3_stale_work(struct work_struct *work)
{
	struct t3_group *group =
		container_of(work, struct t3_group, stale_work);
	struct t3_plan *plan[T3_MAX_PLANS];
	u32 i, n;

	n = t3_group_live(group, plan);
	for (i = 0; i < n; i++) {
		break_if_stale(plan[i]);
		t3_plan_put(plan[i]);
	}
	t3_group_put(group);
}

static bool same_pages(const struct t3_region *region)
{
	struct page *page[32];
	unsigned long at = 0;
	int i, n;

	while (at < region->npages) {
		n = min_t(unsigned long, ARRAY_SIZE(page), region->npages - at);
		n = get_user_pages_fast(region->start + (at << PAGE_SHIFT), n,
					0, page);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++) {
			if (page[i] != region->pages[at + i])
				break;
		}
		at += i;
		release_pages(page, n);
		if (i < n)
			return false;
		cond_resched();
	}
	return true;
}

/**
 * t3_region_recheck - does the region's memory still lie where it was pinned?
 * @region: pinned, of current->mm; the caller keeps it so
 *
 * Fork, protection changes, splits of huge pages and the like touch mappings
 * and leave the pages; MADV_DONTNEED and holes punched into files don't. Where
 * the mapping was touched, all pages are compared. An invalidation that begins
 * meanwhile leaves the region suspect: its callback sets the sequence number,
 * then @suspect, and here @suspect is cleared before the number is looked at.
 *
 * Context: sleeps. Return: 0 or -ESTALE.
 */
int t3_region_recheck(struct t3_region *region)
{
	unsigned long seq;

	if (READ_ONCE(region->stale))
		return -ESTALE;
	if (!READ_ONCE(region->suspect))
		return 0;
	seq = mmu_interval_read_begin(&region->notifier);
	WRITE_ONCE(region->suspect, false);
	smp_mb();	/* pairs with the smp_wmb() of invalidate() */
	if (!same_pages(region))
		WRITE_ONCE(region->stale, true);
	if (mmu_interval_read_retry(&region->notifier, seq))
		WRITE_ONCE(region->suspect, true);
	return READ_ONCE(region->stale) ? -ESTALE : 0;
}

/* --- pinning -------------------------------------------------------------- */

static void unpin(struct t3_region *region, unsigned long n)
{
	unpin_user_pages_dirty_lock(region->pages, n, region->dirty);
}

static int pin_locked(struct t3_member *member, struct t3_region *region)
{
	unsigned long at = 0;
	long n;
	int gup;

	gup = check_vmas(member, region);
	if (gup < 0)
		return gup;
	region->dirty = gup & FOLL_WRITE;
	while (at < region->npages) {
		n = min_t(unsigned long, PIN_BATCH, region->npages - at);
		n = t3_pin_user_pages(region->start + (at << PAGE_SHIFT), n,
				      gup | FOLL_LONGTERM, region->pages + at);
		if (n <= 0 || fatal_signal_pending(current)) {
			if (n > 0)
				at += n;
			unpin(region, at);
			if (fatal_signal_pending(current))
				return -EINTR;
			t3_say(member, "REGION_ADD: base 0x%llx: cannot pin 0x%lx: error %ld",
			       region->base,
			       region->start + (at << PAGE_SHIFT), n);
			return n == -ENOMEM ? -ENOMEM : -EFAULT;
		}
		at += n;
		cond_resched();
	}
	return 0;
}

/*
 * The look at the mappings and the pinning are under one mmap_lock, so that
 * what is pinned is what was looked at. The notifier was there before: what
 * changes from then on is known.
 */
static int pin(struct t3_member *member, struct t3_region *region)
{
	int ret;

	if (mmap_read_lock_killable(region->mm))
		return -EINTR;
	/*
	 * An unmapping until now did not take any of ours; but whether one of
	 * the other kind is still going on nobody knows: compare once.
	 */
	if (READ_ONCE(region->stale)) {
		WRITE_ONCE(region->stale, false);
		WRITE_ONCE(region->suspect, true);
	}
	ret = pin_locked(member, region);
	mmap_read_unlock(region->mm);
	return ret;
}

static void region_free(struct kref *ref)
{
	struct t3_region *region = container_of(ref, struct t3_region, ref);

	kvfree(region->pages);
	kfree(region->import);
	kfree(region);
}

void t3_region_put(struct t3_region *region)
{
	kref_put(&region->ref, region_free);
}

/**
 * t3_region_unpin - give the pages back and undo the charge
 * @region: no part of a plan that can still run uses it; the caller holds
 *	t3_member.lock
 *
 * Context: sleeps.
 */
void t3_region_unpin(struct t3_region *region)
{
	if (!region->pinned)
		return;
	region->pinned = false;
	WRITE_ONCE(region->stale, true);
	if (region->import) {
		t3_import_close(region->import);
	} else {
		mmu_interval_notifier_remove(&region->notifier);
		unpin(region, region->npages);
		t3_uncharge(region);
	}
	t3_group_put(region->group);
}

static struct t3_region *region_alloc(struct t3_member *member,
				      const struct t3_region_add *add)
{
	struct t3_region *region;
	u64 last = add->base + (add->rows - 1) * add->row_stride +
		   add->row_bytes - 1;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	kref_init(&region->ref);
	region->mm = member->mm;
	region->group = member->group;
	region->flags = add->flags;
	region->dtype = add->dtype;
	region->rows = add->rows;
	region->base = add->base;
	region->row_bytes = add->row_bytes;
	region->row_stride = add->row_stride;
	if (add->type == T3_REGION_DMABUF)
		return region;
	region->place = add->base;
	region->start = add->base & PAGE_MASK;
	region->npages = (last >> PAGE_SHIFT) - (add->base >> PAGE_SHIFT) + 1;
	return region;
}

/* Charged, watched, pinned, in this order; undone in the reverse. */
static int region_pin(struct t3_member *member, struct t3_region *region)
{
	int ret;

	ret = t3_charge(member, region);
	if (ret)
		return ret;
	ret = -ENOMEM;
	if (region->npages > INT_MAX / sizeof(struct page *))
		goto uncharge;
	region->pages = kvmalloc_array(region->npages, sizeof(struct page *),
				       GFP_KERNEL_ACCOUNT);
	if (!region->pages)
		goto uncharge;
	ret = mmu_interval_notifier_insert(&region->notifier, region->mm,
					   region->start,
					   region->npages << PAGE_SHIFT,
					   &interval_ops);
	if (ret)
		goto uncharge;
	ret = pin(member, region);
	if (ret)
		goto remove;
	t3_group_get(region->group);
	region->pinned = true;
	return 0;

remove:
	mmu_interval_notifier_remove(&region->notifier);
uncharge:
	t3_uncharge(region);
	return ret;
}

static int region_publish(struct t3_member *member, struct t3_region *region)
{
	int ret;

	mutex_lock(&member->lock);
	if (member->gone) {
		ret = -ESHUTDOWN;
		goto unlock;
	}
	ret = region->import ? t3_import_place(member, region) : 0;
	if (ret)
		goto unlock;
	ret = xa_alloc(&member->regions, &region->id, region,
		       XA_LIMIT(0, T3_MAX_REGIONS - 1), GFP_KERNEL_ACCOUNT);
	if (ret == -EBUSY) {
		t3_say(member, "REGION_ADD: there are %u regions already",
		       T3_MAX_REGIONS);
		ret = -ENOSPC;
	}
unlock:
	if (ret)
		t3_region_unpin(region);
	mutex_unlock(&member->lock);
	return ret;
}

static int check_kind(struct t3_member *member, const struct t3_region_add *add)
{
	bool import = add->type == T3_REGION_DMABUF;

	if (add->flags & ~T3_REGION_READ_ONLY ||
	    (add->type != T3_REGION_USER && !import)) {
		t3_say(member, "REGION_ADD: type %u, flags 0x%x: types %u and %u and flag 0x%x are possible",
		       add->type, add->flags, T3_REGION_USER, T3_REGION_DMABUF,
		       T3_REGION_READ_ONLY);
		return -EOPNOTSUPP;
	}
	if ((!import && add->fd) || add->__reserved) {
		t3_say(member, "REGION_ADD: fd %d, reserved field %u: user memory has no fd, and the field is 0",
		       add->fd, add->__reserved);
		return -EOPNOTSUPP;
	}
	return 0;
}

int t3_region_add(struct t3_cmd *cmd)
{
	struct t3_member *member = cmd->member;
	struct t3_region_add *add = cmd->arg;
	struct t3_region *region;
	int ret;

	ret = check_kind(member, add) ?: check_geometry(member, add);
	if (ret)
		return ret;
	region = region_alloc(member, add);
	if (IS_ERR(region))
		return PTR_ERR(region);
	if (add->type == T3_REGION_DMABUF)
		ret = t3_import_region(member, region, add->fd);
	else
		ret = region_pin(member, region);
	if (!ret)
		ret = region_publish(member, region);
	if (ret) {
		t3_region_put(region);
		return ret;
	}
	add->region = region->id;
	return 0;
}

int t3_region_del(struct t3_cmd *cmd)
{
	struct t3_member *member = cmd->member;
	struct t3_region_del *del = cmd->arg;
	struct t3_region *region;
	int ret = 0;

	if (del->flags || del->__reserved)
		return -EOPNOTSUPP;
	if (mutex_lock_interruptible(&member->lock))
		return -EINTR;
	region = xa_load(&member->regions, del->region);
	if (!region) {
		t3_say(member, "REGION_DEL: no region %u", del->region);
		ret = -ENOENT;
	} else if (region->users) {
		t3_say(member, "REGION_DEL: region %u: %u plans use it",
		       del->region, region->users);
		ret = -EBUSY;
	} else {
		xa_erase(&member->regions, del->region);
		t3_region_unpin(region);
	}
	mutex_unlock(&member->lock);
	if (!ret)
		t3_region_put(region);
	return ret;
}
