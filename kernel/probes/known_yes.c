// SPDX-License-Identifier: GPL-2.0-only
/* Every kernel compiles this: if it fails, the probes can't be believed. */
#include <linux/mm.h>
#include <linux/module.h>

bool probe(struct vm_area_struct *vma);
bool probe(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_WRITE;
}

MODULE_LICENSE("GPL");
