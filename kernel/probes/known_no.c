// SPDX-License-Identifier: GPL-2.0-only
/* No kernel compiles this: if it passes, the probes can't be believed. */
#include <linux/mm.h>
#include <linux/module.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	t3_no_kernel_has_this(vma);
}

MODULE_LICENSE("GPL");
