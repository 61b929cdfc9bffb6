// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: mappings of a member: tile counters and status.
 *
 * The pages are ordinary ones, inserted at once; a mapping holds references
 * on them and so may outlive the plan and the member. Its file is not the
 * member's but a bystander: closing the member is leaving, whatever is still
 * mapped. The module stays for as long as a mapping does.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/anon_inodes.h>
#include <linux/module.h>

#include "compat.h"
#include "t3.h"

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.llseek = noop_llseek,
};

/* The file of a member's mappings. Context: may sleep. Return: or ERR_PTR(). */
struct file *t3_map_file(void)
{
	return anon_inode_getfile("[t3_mapping]", &map_fops, NULL, O_RDWR);
}

/* Caller (the core) holds mmap_lock for writing. */
int t3_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct t3_member *member = file->private_data;
	unsigned long index = vma->vm_pgoff >> (T3_MMAP_SHIFT - PAGE_SHIFT);
	bool status = index & 1;
	struct t3_part *part;
	struct t3_pages *p;
	int ret;

	if (current->mm != member->mm)
		return -EPERM;
	if (READ_ONCE(member->left))
		return -ESHUTDOWN;
	if (vma->vm_pgoff & ((1UL << (T3_MMAP_SHIFT - PAGE_SHIFT)) - 1) ||
	    index / 2 >= T3_MAX_PLANS || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (status && vma->vm_flags & VM_WRITE)
		return -EACCES;
	part = t3_part_get(member, index / 2);
	if (IS_ERR(part))
		return PTR_ERR(part);
	p = status ? &part->status : &part->tiles;

	t3_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	if (status)
		t3_vm_flags_clear(vma, VM_MAYWRITE);
	/* -ENXIO where the mapping is longer than what there is. */
	ret = vm_map_pages_zero(vma, p->page, p->nr);
	if (!ret)
		vma_set_file(vma, member->map_file);
	t3_part_put(part);
	return ret;
}
