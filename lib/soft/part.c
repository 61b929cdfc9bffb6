// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Programs in the shared file. A rank writes its part once; the others copy it
 * to private memory, check the copy, and never look at the file again.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "reduce.h"
#include "soft.h"

/* A part in the file: this, then grids, blocks, triggers, sources and cuts. */
struct blob_head {
	u64 digest[2];
	u32 grids;
	u32 blocks;
	u32 triggers;
	u32 sources;
	u64 cuts;
};

struct blob_grid {
	u32 dtype;
	u32 read_only;
	u32 block_rows;
	u32 block_cols;
	u32 first_block;
	u32 pad;
	u64 row_stride;
	struct soft_place place;
};

/* Where each list begins in a blob of these numbers. */
struct blob_plan {
	u64 grids;
	u64 blocks;
	u64 triggers;
	u64 sources;
	u64 cuts;
	u64 bytes;
};

static struct blob_plan blob_plan(const struct blob_head *h)
{
	struct blob_plan p;

	p.grids = sizeof(*h);
	p.blocks = p.grids + h->grids * sizeof(struct blob_grid);
	p.triggers = p.blocks + h->blocks * sizeof(struct t3_plan_block);
	p.sources = p.triggers + h->triggers * sizeof(struct t3_trigger);
	p.cuts = p.sources + h->sources * sizeof(struct t3_source);
	p.bytes = p.cuts + h->cuts * sizeof(u32);
	return p;
}

static u64 line_up(u64 bytes)
{
	return (bytes + 63) & ~63ULL;
}

u64 soft_share_bytes(const struct t3_program *program)
{
	return sizeof(struct soft_share) +
	       line_up(t3_ready_bytes(program->triggers)) +
	       2 * line_up(program->blocks * sizeof(u32));
}

u64 soft_share_room(const struct soft_member *m, const struct t3_program *program)
{
	u64 room = m->hooks ? m->hooks->room(program, m->m.ranks) : 0;

	return soft_share_bytes(program) + room;
}

static struct blob_head blob_head(const struct t3_program *program)
{
	struct blob_head h = {
		.digest = { program->digest[0], program->digest[1] },
		.grids = program->grids,
		.blocks = program->blocks,
		.triggers = program->triggers,
		.sources = program->sources,
	};
	u32 i;

	for (i = 0; i < program->grids; i++)
		h.cuts += program->grid[i].block_rows +
			  program->grid[i].block_cols + 2;
	return h;
}

static struct soft_place own_place(const struct soft_plan *plan, u32 grid)
{
	const struct soft_region *region = soft_region(plan->p.region[grid]);

	return (struct soft_place) {
		.at = region->arena ? region->at : SOFT_PRIVATE,
		.base = (uintptr_t)region->r.matrix.base,
		.bytes = region->bytes,
	};
}

static void blob_fill(u8 *blob, const struct soft_plan *plan,
		      const struct blob_head *h)
{
	const struct t3_program *program = &plan->p.planned.program;
	struct blob_plan at = blob_plan(h);
	struct blob_grid *grid = (struct blob_grid *)(blob + at.grids);
	u32 *cuts = (u32 *)(blob + at.cuts);
	u32 i;

	memcpy(blob, h, sizeof(*h));
	for (i = 0; i < h->grids; i++) {
		const struct t3_grid *g = &program->grid[i];

		grid[i] = (struct blob_grid) {
			.dtype = g->dtype,
			.read_only = g->read_only,
			.block_rows = g->block_rows,
			.block_cols = g->block_cols,
			.first_block = g->first_block,
			.row_stride = g->row_stride,
			.place = own_place(plan, i),
		};
		memcpy(cuts, g->row_cuts, (g->block_rows + 1) * sizeof(u32));
		cuts += g->block_rows + 1;
		memcpy(cuts, g->col_cuts, (g->block_cols + 1) * sizeof(u32));
		cuts += g->block_cols + 1;
	}
	memcpy(blob + at.blocks, program->block, at.triggers - at.blocks);
	memcpy(blob + at.triggers, program->trigger, at.sources - at.triggers);
	memcpy(blob + at.sources, program->source, at.cuts - at.sources);
}

static int write_all(int fd, const u8 *from, u64 bytes, u64 at)
{
	while (bytes) {
		ssize_t done = pwrite(fd, from, bytes, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -errno;
		from += done;
		at += done;
		bytes -= done;
	}
	return 0;
}

static int read_all(int fd, u8 *to, u64 bytes, u64 at)
{
	while (bytes) {
		ssize_t done = pread(fd, to, bytes, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -EIO;
		to += done;
		at += done;
		bytes -= done;
	}
	return 0;
}

/*
 * Write our own part and take our share of the machine. What was taken is
 * remembered in m->remains, for whoever uses the slot next.
 */
int soft_part_publish(struct soft_plan *plan)
{
	struct soft_member *m = soft_member(plan->p.member);
	struct soft_remains *remains = &m->remains[plan->p.slot];
	struct soft_part *part = &m->slot->part[plan->p.slot];
	struct blob_head h = blob_head(&plan->p.planned.program);
	u64 bytes = blob_plan(&h).bytes;
	u64 share = soft_share_room(m, &plan->p.planned.program);
	u8 *blob = calloc(1, bytes);
	int ret = -ENOMEM;

	if (!blob)
		goto out;
	blob_fill(blob, plan, &h);
	remains->generation = plan->p.generation;
	if (soft_arena_take(m, bytes, &remains->at[0]) ||
	    soft_arena_take(m, share, &remains->at[1]))
		goto out;
	ret = write_all(m->domain->fd, blob, bytes, remains->at[0]);
	if (ret)
		goto out;
	part->blob_at = remains->at[0];
	part->blob_bytes = bytes;
	part->state_at = remains->at[1];
	part->state_bytes = share;
out:
	free(blob);
	return ret ? t3_fail(-ret, "t3_plan_add: writing the plan's part: %s",
			     strerror(-ret)) : 0;
}

static bool head_sane(const struct blob_head *h)
{
	return h->grids <= T3_MAX_PLAN_REGIONS && h->blocks <= T3_MAX_BLOCKS &&
	       h->triggers <= T3_MAX_TRIGGERS && h->sources <= T3_MAX_SOURCES &&
	       h->cuts <= T3_MAX_PLAN_REGIONS * 2 * (T3_MAX_BLOCKS + 1);
}

/* Does the grid's matrix lie where its owner says, and can it be walked? */
static bool place_sane(const struct soft_domain *domain, u32 rank,
		       const struct soft_place *place,
		       const struct t3_grid *grid)
{
	u64 element = t3_dtype_size(grid->dtype);
	u64 rows = grid->row_cuts[grid->block_rows];
	u64 row_bytes = grid->col_cuts[grid->block_cols] * element;
	u64 first = place->at == SOFT_PRIVATE ? place->base : place->at;
	u64 bytes;

	if (grid->row_stride < row_bytes || grid->row_stride % element ||
	    first % element ||
	    __builtin_mul_overflow(rows - 1, grid->row_stride, &bytes) ||
	    __builtin_add_overflow(bytes, row_bytes, &bytes) ||
	    bytes > place->bytes)
		return false;
	if (place->at != SOFT_PRIVATE)
		return soft_in_arena(domain, rank, place->at, place->bytes);
	return place->base + place->bytes > place->base;
}

/* Point a grid into the copy. Return: how many cuts it takes; 0 too many. */
static u64 take_grid(struct t3_grid *grid, const struct blob_grid *from,
		     const u32 *cuts, u64 left)
{
	u64 need = (u64)from->block_rows + from->block_cols + 2;

	if (from->block_rows > T3_MAX_BLOCKS ||
	    from->block_cols > T3_MAX_BLOCKS || need > left)
		return 0;
	*grid = (struct t3_grid) {
		.dtype = from->dtype,
		.read_only = from->read_only,
		.block_rows = from->block_rows,
		.block_cols = from->block_cols,
		.first_block = from->first_block,
		.row_cuts = cuts,
		.col_cuts = cuts + from->block_rows + 1,
		.row_stride = from->row_stride,
	};
	return need;
}

static bool take_grids(struct soft_copy *copy, const struct blob_plan *at,
		       const struct soft_domain *domain, u32 rank)
{
	const struct blob_head *h = copy->blob;
	const struct blob_grid *from = copy->blob + at->grids;
	const u32 *cuts = copy->blob + at->cuts;
	u64 left = h->cuts;
	u32 i;

	for (i = 0; i < h->grids; i++) {
		struct t3_grid *grid = &copy->grid[i];
		u64 used = take_grid(grid, &from[i], cuts, left);

		if (!used || t3_grid_check(grid))
			return false;
		copy->place[i] = from[i].place;
		if (!place_sane(domain, rank, &copy->place[i], grid))
			return false;
		/*
		 * Whether its regions overlap is for the owner itself to find
		 * out: here they lie far apart.
		 */
		grid->base = (u64)(i + 1) << 56;
		cuts += used;
		left -= used;
	}
	return true;
}

static bool take_blob(struct soft_copy *copy, const struct soft_domain *domain,
		      u32 rank)
{
	const struct blob_head *h = copy->blob;
	struct blob_plan at;

	if (!head_sane(h))
		return false;
	at = blob_plan(h);
	if (at.bytes != copy->part.blob_bytes)
		return false;
	copy->program = (struct t3_program) {
		.digest = { h->digest[0], h->digest[1] },
		.grids = h->grids,
		.blocks = h->blocks,
		.triggers = h->triggers,
		.sources = h->sources,
		.grid = copy->grid,
		.block = copy->blob + at.blocks,
		.trigger = copy->blob + at.triggers,
		.source = copy->blob + at.sources,
	};
	return take_grids(copy, &at, domain, rank);
}

static int check_program(const struct t3_program *program, u32 rank, u32 ranks,
			 struct t3_verdict *verdict)
{
	void *scratch = calloc(1, t3_program_scratch(program) + 8);
	int ret;

	if (!scratch)
		return t3_refuse(verdict, ENOMEM, rank, T3_NONE, T3_NONE);
	ret = t3_program_check(program, rank, ranks, scratch, verdict);
	free(scratch);
	return ret;
}

static int fetch_own(struct soft_plan *plan, struct soft_copy *copy,
		     struct t3_verdict *verdict)
{
	u32 i;

	copy->program = plan->p.planned.program;
	if (copy->program.grids != plan->p.regions)
		return t3_refuse(verdict, ERANGE, plan->p.member->rank, T3_NONE,
				 T3_NONE);
	for (i = 0; i < copy->program.grids; i++) {
		copy->grid[i] = copy->program.grid[i];
		copy->place[i] = own_place(plan, i);
	}
	return check_program(&copy->program, plan->p.member->rank,
			     plan->p.member->ranks, verdict);
}

/* Read each number once: the file may change under us. */
static void read_part(const struct soft_part *from, struct soft_part *to)
{
	to->blob_at = t3_load(&from->blob_at);
	to->blob_bytes = t3_load(&from->blob_bytes);
	to->state_at = t3_load(&from->state_at);
	to->state_bytes = t3_load(&from->state_bytes);
}

int soft_part_fetch(struct soft_plan *plan, u32 rank, struct soft_copy *copy,
		    struct t3_verdict *verdict)
{
	struct soft_member *m = soft_member(plan->p.member);
	struct soft_domain *d = m->domain;
	struct soft_part *part = &copy->part;

	read_part(&d->head->slot[rank].part[plan->p.slot], part);
	if (rank == m->m.rank)
		return fetch_own(plan, copy, verdict);
	if (part->blob_bytes < sizeof(struct blob_head) ||
	    part->blob_bytes > 1ULL << 31 ||
	    !soft_in_arena(d, rank, part->blob_at, part->blob_bytes))
		return t3_refuse(verdict, EIO, rank, T3_NONE, T3_NONE);
	copy->blob = malloc(part->blob_bytes);
	if (!copy->blob)
		return t3_refuse(verdict, ENOMEM, m->m.rank, T3_NONE, T3_NONE);
	if (read_all(d->fd, copy->blob, part->blob_bytes, part->blob_at) ||
	    !take_blob(copy, d, rank) || part->state_at % 64 ||
	    part->state_bytes < soft_share_room(m, &copy->program) ||
	    !soft_in_arena(d, rank, part->state_at, part->state_bytes))
		return t3_refuse(verdict, EIO, rank, T3_NONE, T3_NONE);
	return check_program(&copy->program, rank, m->m.ranks, verdict);
}
