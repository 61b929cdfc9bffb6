// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <assert.h>
#include <stdlib.h>

#include "play.h"
#include "reduce.h"
#include "walk.h"

static struct play *play_of(struct t3_machine *m)
{
	return (struct play *)m;
}

static void play_ready(struct t3_machine *m, u32 trigger)
{
	struct play *p = play_of(m);

	t3_add32(&p->fired[trigger], 1);
	t3_ready_push(p->ready, p->mask, trigger);
}

static void play_retired(struct t3_machine *m, u32 rank, u32 epoch)
{
	t3_store_release(&play_of(m)->retired[rank], epoch);
}

static const struct t3_machine_ops play_ops = {
	.ready = play_ready,
	.retired = play_retired,
};

static int play_check(struct world *w, struct t3_verdict *v)
{
	u32 r;

	for (r = 0; r < w->ranks; r++) {
		const struct t3_program *prog = &w->rank[r].prog;
		void *scratch = malloc(t3_program_scratch(prog));
		int ret = t3_program_check(prog, r, w->ranks, scratch, v);

		free(scratch);
		if (ret)
			return ret;
	}
	return 0;
}

int play_verdict(struct play *p, struct world *w, struct t3_verdict *v)
{
	const struct t3_program *prog[WORLD_RANKS];
	u64 bytes, scratch;
	u32 r;
	int ret;

	memset(p, 0, sizeof(*p));
	p->w = w;
	ret = play_check(w, v);
	if (ret)
		return ret;
	for (r = 0; r < w->ranks; r++)
		prog[r] = &w->rank[r].prog;
	bytes = t3_graph_bytes(prog, w->ranks, &scratch);
	p->mem[0] = malloc(bytes);
	p->mem[1] = malloc(scratch);
	ret = t3_graph_build(&p->graph, prog, w->ranks, p->mem[0], p->mem[1], v);
	if (ret)
		play_end(p);
	return ret;
}

void play_start(struct play *p, u32 epoch)
{
	u32 triggers = p->graph.triggers;
	size_t bytes = (t3_machine_bytes(&p->graph) + 63) & ~63UL;
	u32 r;

	p->mem[2] = aligned_alloc(64, bytes);
	t3_machine_attach(&p->m, &p->graph, &play_ops, p->mem[2]);
	for (r = 0; r < p->w->ranks; r++) {
		p->m.tiles[r] = p->tiles[r];
		p->m.count[r] = p->count[r];
		p->retired[r] = epoch;
	}
	t3_machine_start(&p->m, epoch);
	p->mem[3] = calloc(1, t3_ready_bytes(triggers));
	p->ready = p->mem[3];
	p->mask = t3_ready_size(triggers) - 1;
	p->fired = calloc(triggers + 1, sizeof(u32));
}

void play_end(struct play *p)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(p->mem); i++)
		free(p->mem[i]);
	free(p->fired);
}

static u8 *play_operand(struct play *p, u32 node, struct t3_operand *operand)
{
	u32 rank = p->graph.block_rank[node];
	const struct t3_grid *grid =
		&p->w->rank[rank].prog.grid[p->graph.grid_of[node]];
	struct t3_rect rect = t3_grid_rect(grid, node - grid->first_block -
						 p->graph.first_block[rank]);

	operand->stride = grid->row_stride;
	operand->offset = rect.row * grid->row_stride +
			  rect.col * t3_dtype_size(grid->dtype);
	return p->w->rank[rank].memory + (grid->base - WORLD_BASE);
}

static void play_action(struct play *p, u32 trigger)
{
	const struct t3_action *a = &p->graph.action[trigger];
	u32 dtype = world_dtype(p->w, a->rank,
				a->block - p->graph.first_block[a->rank]);
	struct t3_rect rect = world_rect(p->w, a->rank,
					 a->block - p->graph.first_block[a->rank]);
	struct t3_operand operand[T3_MAX_RANKS + 1];
	const void *src[T3_MAX_RANKS];
	u8 *base[T3_MAX_RANKS + 1];
	u32 size = t3_dtype_size(dtype);
	struct t3_walk walk;
	u64 bytes;
	u32 k;

	for (k = 0; k < a->sources; k++)
		base[k] = play_operand(p, p->graph.source[a->first_source + k],
				       &operand[k]);
	base[k] = play_operand(p, a->block, &operand[k]);
	t3_walk_start(&walk, rect.rows, rect.cols * size, operand,
		      a->sources + 1);
	while ((bytes = t3_walk_run(&walk))) {
		u8 *dst = base[a->sources] +
			  t3_walk_offset(&walk, &operand[a->sources]);

		/* In small pieces: a walk must find its way back. */
		if (bytes > 3 * size)
			bytes = 3 * size;
		for (k = 0; k < a->sources; k++)
			src[k] = base[k] + t3_walk_offset(&walk, &operand[k]);
		if (a->op == T3_OP_COPY)
			memmove(dst, src[0], bytes);
		else
			t3_reduce_nth(0)->sum[dtype - 1](dst, src, a->sources,
							 bytes / size);
		t3_walk_step(&walk, bytes);
	}
}

bool play_run(struct play *p)
{
	bool ran = false;
	u32 trigger;

	if (!t3_machine_enter(&p->inflight, &p->broken))
		return false;
	if (t3_ready_pop(p->ready, p->mask, &trigger)) {
		play_action(p, trigger);
		t3_machine_complete(&p->m, trigger);
		ran = true;
	}
	t3_machine_leave(&p->inflight);
	return ran;
}

void play_produce(struct play *p, u32 rank, u32 block, u32 epoch)
{
	u32 tiles = p->w->rank[rank].block[block].tiles;
	int ret;

	world_produce(p->w, rank, block, epoch);
	while (tiles--) {
		ret = t3_machine_tiles(&p->m, rank, block, 1);
		assert(!ret);
	}
}
