// SPDX-License-Identifier: GPL-2.0-only
/* Are a mapping's flags changed by functions? (6.3) */
#include <linux/mm.h>
#include <linux/module.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYWRITE);
}

MODULE_LICENSE("GPL");
