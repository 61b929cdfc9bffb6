// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: a rank's part of a plan: copied once, checked, kept.
 */
#define pr_fmt(fmt) "t3: " fmt

#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fence.h"
#include "reduce.h"
#include "t3.h"

/* --- pages that users map ------------------------------------------------- */

void t3_pages_free(struct t3_pages *p)
{
	unsigned int i;

	if (p->addr)
		vunmap(p->addr);
	for (i = 0; i < p->nr; i++)
		put_page(p->page[i]);
	kvfree(p->page);
	memset(p, 0, sizeof(*p));
}

/* Context: sleeps. Return: 0 or -ENOMEM, and then nothing is to be freed. */
int t3_pages_alloc(struct t3_pages *p, size_t bytes)
{
	unsigned int n = DIV_ROUND_UP(max_t(size_t, bytes, 1), PAGE_SIZE);

	p->page = kvcalloc(n, sizeof(*p->page), GFP_KERNEL_ACCOUNT);
	if (!p->page)
		return -ENOMEM;
	for (p->nr = 0; p->nr < n; p->nr++) {
		p->page[p->nr] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!p->page[p->nr])
			goto fail;
	}
	p->addr = vmap(p->page, n, VM_MAP, PAGE_KERNEL);
	if (p->addr)
		return 0;
fail:
	t3_pages_free(p);
	return -ENOMEM;
}

/* --- copying -------------------------------------------------------------- */

/* Where the copied lists lie in t3_part.mem, each a multiple of 8 bytes. */
struct layout {
	size_t grid, block, trigger, source, cuts, bytes;
};

static size_t take(size_t *at, size_t n, size_t size)
{
	size_t here = *at;

	*at = ALIGN(here + n * size, 8);
	return here;
}

static int too_long(struct t3_member *member, struct t3_plan_add *add,
		    const char *what, u64 n, u64 limit)
{
	t3_say(member, "PLAN_ADD slot %u: %llu %s: at most %llu are possible",
	       add->slot, n, what, limit);
	return t3_refuse(&add->verdict, E2BIG, member->rank, T3_NONE, T3_NONE);
}

/* Numbers are checked before anything is allocated by them. */
static int lay_out(struct t3_member *member, struct t3_plan_add *add,
		   const struct t3_plan_region *list, struct layout *l,
		   u32 *blocks)
{
	u64 n, cuts = 0;
	u32 i;

	*blocks = 0;
	for (i = 0; i < add->regions; i++) {
		const struct t3_plan_region *r = &list[i];

		if (r->__reserved)
			return -EOPNOTSUPP;
		n = (u64)r->block_rows * r->block_cols;
		if (!n) {
			t3_say(member, "PLAN_ADD slot %u: region %u: a grid of %u by %u blocks",
			       add->slot, i, r->block_rows, r->block_cols);
			return t3_refuse(&add->verdict, ERANGE, member->rank,
					 T3_NONE, i);
		}
		if (n > T3_MAX_BLOCKS || *blocks + n > T3_MAX_BLOCKS)
			return too_long(member, add, "blocks", *blocks + n,
					T3_MAX_BLOCKS);
		*blocks += n;
		cuts += (u64)r->block_rows + r->block_cols + 2;
	}
	l->bytes = 0;
	l->grid = take(&l->bytes, add->regions, sizeof(struct t3_grid));
	l->block = take(&l->bytes, *blocks, sizeof(struct t3_plan_block));
	l->trigger = take(&l->bytes, add->triggers, sizeof(struct t3_trigger));
	l->source = take(&l->bytes, add->sources, sizeof(struct t3_source));
	l->cuts = take(&l->bytes, cuts, sizeof(u32));
	return 0;
}

static int fetch(void *to, u64 from, size_t n, size_t size)
{
	return copy_from_user(to, u64_to_user_ptr(from), n * size) ? -EFAULT : 0;
}

static int fetch_region(struct t3_grid *grid, const struct t3_plan_region *r,
			struct t3_plan_block *block, u32 **cuts)
{
	u32 rows = r->block_rows, cols = r->block_cols;

	grid->block_rows = rows;
	grid->block_cols = cols;
	grid->row_cuts = *cuts;
	grid->col_cuts = *cuts + rows + 1;
	if (fetch(*cuts, r->row_cuts, rows + 1, sizeof(u32)) ||
	    fetch(*cuts + rows + 1, r->col_cuts, cols + 1, sizeof(u32)) ||
	    fetch(block, r->blocks, (size_t)rows * cols, sizeof(*block)))
		return -EFAULT;
	*cuts += rows + cols + 2;
	return 0;
}

static int fetch_lists(struct t3_part *part, const struct t3_plan_add *add,
		       const struct t3_plan_region *list,
		       const struct layout *l)
{
	struct t3_plan_block *block = part->mem + l->block;
	void *trigger = part->mem + l->trigger;
	void *source = part->mem + l->source;
	u32 *cuts = part->mem + l->cuts;
	u32 i, first = 0;

	part->grid = part->mem + l->grid;
	for (i = 0; i < add->regions; i++) {
		part->grid[i].first_block = first;
		if (fetch_region(&part->grid[i], &list[i], block + first,
				 &cuts))
			return -EFAULT;
		first += list[i].block_rows * list[i].block_cols;
	}
	if (fetch(trigger, add->trigger_list, add->triggers,
		  sizeof(struct t3_trigger)) ||
	    fetch(source, add->source_list, add->sources,
		  sizeof(struct t3_source)))
		return -EFAULT;
	part->prog = (struct t3_program) {
		.digest = { add->digest[0], add->digest[1] },
		.grids = add->regions,
		.blocks = first,
		.triggers = add->triggers,
		.sources = add->sources,
		.grid = part->grid,
		.block = block,
		.trigger = trigger,
		.source = source,
	};
	return 0;
}

static int check_lengths(struct t3_member *member, struct t3_plan_add *add)
{
	if (add->regions > T3_MAX_PLAN_REGIONS)
		return too_long(member, add, "regions", add->regions,
				T3_MAX_PLAN_REGIONS);
	if (add->triggers > T3_MAX_TRIGGERS)
		return too_long(member, add, "triggers", add->triggers,
				T3_MAX_TRIGGERS);
	if (add->sources > T3_MAX_SOURCES)
		return too_long(member, add, "sources", add->sources,
				T3_MAX_SOURCES);
	return 0;
}

static int copy_part(struct t3_member *member, struct t3_part *part,
		     struct t3_plan_add *add)
{
	struct t3_plan_region list[T3_MAX_PLAN_REGIONS];
	struct layout l;
	u32 blocks, i;
	int ret;

	if (fetch(list, add->region_list, add->regions, sizeof(*list)))
		return -EFAULT;
	ret = lay_out(member, add, list, &l, &blocks);
	if (ret)
		return ret;
	part->mem = kvzalloc(max_t(size_t, l.bytes, 8), GFP_KERNEL_ACCOUNT);
	if (!part->mem)
		return -ENOMEM;
	ret = fetch_lists(part, add, list, &l);
	if (ret)
		return ret;
	/* Numbers of regions until t3_part_resolve() makes pointers of them. */
	for (i = 0; i < add->regions; i++)
		part->number[i] = list[i].region;
	ret = t3_pages_alloc(&part->tiles, blocks * sizeof(u32));
	if (!ret)
		ret = t3_pages_alloc(&part->status,
				     sizeof(struct t3_plan_status) +
				     blocks * sizeof(u32));
	return ret;
}

/* Blocks that the poller looks at: those produced by tiles. */
static int fill_watch(struct t3_part *part)
{
	const struct t3_plan_block *block = part->prog.block;
	u32 b, n = 0;

	for (b = 0; b < part->prog.blocks; b++)
		n += block[b].flags & T3_BLOCK_PRODUCED && block[b].tiles;
	part->use = kvzalloc(part->prog.blocks + 1, GFP_KERNEL_ACCOUNT);
	part->watch = kvmalloc_array(n + 1, sizeof(u32), GFP_KERNEL_ACCOUNT);
	if (!part->use || !part->watch)
		return -ENOMEM;
	for (b = 0; b < part->prog.blocks; b++)
		if (block[b].flags & T3_BLOCK_PRODUCED && block[b].tiles)
			part->watch[part->watched++] = b;
	return 0;
}

static void init_status(struct t3_part *part)
{
	struct t3_plan_status *status = t3_part_status(part);

	BUILD_BUG_ON(sizeof(*status) != 64);
	status->broken_rank = T3_NONE;
	status->need_wakeup = 1;	/* no poller spins yet */
	status->count_offset = sizeof(*status);
	status->blocks = part->prog.blocks;
}

/* A part that is in no plan. Context: sleeps where regions are named. */
void t3_part_free(struct t3_part *part)
{
	u32 i;

	for (i = 0; i < T3_MAX_PLAN_REGIONS; i++)
		if (part->region[i])
			t3_region_put(part->region[i]);
	t3_pages_free(&part->tiles);
	t3_pages_free(&part->status);
	if (WARN_ON_ONCE(part->out))	/* retired, or broken: signalled */
		t3_fence_signal(part->out, -ECANCELED);
	bitmap_free(part->fenced);
	kvfree(part->watch);
	kvfree(part->use);
	kvfree(part->mem);
	kfree(part);
}

/**
 * t3_part_copy - copy a part from the user
 * @member: whose
 * @add: the command; its verdict is filled in where the part is refused
 *
 * Each list is copied once. Nothing of them is checked yet but their lengths.
 *
 * Context: sleeps; no lock is held. Return: the part or ERR_PTR().
 */
struct t3_part *t3_part_copy(struct t3_member *member, struct t3_plan_add *add)
{
	struct t3_part *part;
	int ret;

	ret = check_lengths(member, add);
	if (ret)
		return ERR_PTR(ret);
	part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);
	if (!part)
		return ERR_PTR(-ENOMEM);
	part->rank = member->rank;
	part->flags = add->flags;
	t3_fence_init(part);
	ret = copy_part(member, part, add);
	if (!ret)
		ret = fill_watch(part);
	if (ret) {
		t3_part_free(part);
		return ERR_PTR(ret);
	}
	init_status(part);
	return part;
}

/* The grid of a region covers it. */
static int check_cover(struct t3_member *member, const struct t3_grid *grid,
		       const struct t3_region *region,
		       struct t3_plan_add *add, u32 i)
{
	u32 rows = grid->row_cuts[grid->block_rows];
	u32 cols = grid->col_cuts[grid->block_cols];
	u64 width = region->row_bytes / t3_dtype_size(region->dtype);

	if (rows == region->rows && cols == width)
		return 0;
	t3_say(member, "PLAN_ADD slot %u: region %u: the grid ends at row %u, column %u: the region has %u rows of %llu elements",
	       add->slot, i, rows, cols, region->rows, width);
	return t3_refuse(&add->verdict, ERANGE, member->rank, T3_NONE, i);
}

static int check_program(struct t3_member *member, struct t3_part *part,
			 struct t3_plan_add *add)
{
	void *scratch = kvmalloc(max_t(u64, t3_program_scratch(&part->prog), 8),
				 GFP_KERNEL_ACCOUNT);
	int ret;

	if (!scratch)
		return -ENOMEM;
	ret = t3_program_check(&part->prog, member->rank, member->group->ranks,
			       scratch, &add->verdict);
	kvfree(scratch);
	if (ret)
		t3_say(member, "PLAN_ADD slot %u: trigger %d, detail %d: error %d",
		       add->slot, (int)add->verdict.trigger,
		       (int)add->verdict.detail, ret);
	return ret;
}

/**
 * t3_part_resolve - find a part's regions and check the part by itself
 * @member: the caller holds its lock
 * @part: copied, in no plan
 * @add: the command; its verdict is filled in where the part is refused
 *
 * Context: sleeps. Return: 0; -ENOENT, or the errno of the verdict.
 */
int t3_part_resolve(struct t3_member *member, struct t3_part *part,
		    struct t3_plan_add *add)
{
	struct t3_region *region;
	u32 i;
	int ret;

	for (i = 0; i < part->prog.grids; i++) {
		struct t3_grid *grid = &part->grid[i];

		region = xa_load(&member->regions, part->number[i]);
		if (!region) {
			t3_say(member, "PLAN_ADD slot %u: no region %u",
			       add->slot, part->number[i]);
			return -ENOENT;
		}
		kref_get(&region->ref);
		part->region[i] = region;
		grid->dtype = region->dtype;
		grid->read_only = !!(region->flags & T3_REGION_READ_ONLY);
		grid->base = region->place;
		grid->row_stride = region->row_stride;
		ret = check_cover(member, grid, region, add, i);
		if (ret)
			return ret;
	}
	return check_program(member, part, add);
}
