/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: what differs between kernels. T3_HAS_* come from the compile probes in
 * probes/, never from version numbers: distributions backport.
 */
#ifndef T3_COMPAT_H
#define T3_COMPAT_H

#include <linux/mm.h>

static inline void t3_vm_flags_set(struct vm_area_struct *vma,
				   unsigned long flags)
{
#ifdef T3_HAS_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void t3_vm_flags_clear(struct vm_area_struct *vma,
				     unsigned long flags)
{
#ifdef T3_HAS_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/* Caller holds mmap_lock. */
static inline long t3_pin_user_pages(unsigned long start, unsigned long pages,
				     unsigned int flags, struct page **page)
{
#ifdef T3_HAS_PIN_VMAS
	return pin_user_pages(start, pages, flags, page, NULL);
#else
	return pin_user_pages(start, pages, flags, page);
#endif
}

#endif /* T3_COMPAT_H */
