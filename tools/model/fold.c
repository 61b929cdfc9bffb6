// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Folding a ring's programs to one rank's.
 */
#include "fold.h"

uint32_t model_fold_block(const struct model_cut *cut, uint32_t ranks,
			  uint32_t shard, uint32_t i)
{
	uint32_t band, cross;

	if (cut->transposed) {
		band = shard * cut->bands + i % cut->bands;
		cross = i / cut->bands;
		return cross * cut->bands * ranks + band;
	}
	band = shard * cut->bands + i / cut->crosses;
	cross = i % cut->crosses;
	return band * cut->crosses + cross;
}

/* The block's place in its shard, the shard turned by @rank. */
static uint32_t turn(const struct model_cut *cut, uint32_t block, uint32_t rank,
		     uint32_t ranks)
{
	uint32_t all = cut->bands * ranks;
	uint32_t band = cut->transposed ? block % all : block / cut->crosses;
	uint32_t cross = cut->transposed ? block / all : block % cut->crosses;
	uint32_t shard = (band / cut->bands + ranks - rank) % ranks;

	band = shard * cut->bands + band % cut->bands;
	return cut->transposed ? cross * all + band : band * cut->crosses + cross;
}

void model_fold(const struct t3_planned *planned, const struct model_cut *cut,
		uint32_t rank, uint32_t ranks, struct t3_trigger *trigger,
		struct t3_source *source, struct t3_plan_block *block)
{
	const struct t3_program *program = &planned->program;
	uint32_t i;

	for (i = 0; i < program->blocks; i++) {
		uint32_t to = turn(cut, i, rank, ranks);

		block[to] = program->block[i];
		block[to].readers = 1;
	}
	for (i = 0; i < program->triggers; i++) {
		trigger[i] = program->trigger[i];
		trigger[i].block = turn(cut, trigger[i].block, rank, ranks);
	}
	for (i = 0; i < program->sources; i++) {
		source[i] = program->source[i];
		source[i].block = turn(cut, source[i].block, source[i].rank,
				       ranks);
		source[i].rank = 0;
	}
}

/**
 * struct ring - a ring's folded program in the making
 * @op: T3_REDUCE_SCATTER or T3_ALL_GATHER
 * @ranks: of the ring
 * @cut: how shards are cut
 * @trigger: out
 * @source: out
 * @triggers: so far
 * @sources: so far
 */
struct ring {
	uint32_t op;
	uint32_t ranks;
	const struct model_cut *cut;
	struct t3_trigger *trigger;
	struct t3_source *source;
	uint32_t triggers;
	uint32_t sources;
};

static void ring_trigger(struct ring *r, uint32_t shard, uint32_t i)
{
	/* Rank 0's place in the chain of the shard; the sender's is before. */
	uint32_t j = r->ranks - 1 - shard;
	uint32_t to = model_fold_block(r->cut, r->ranks, shard, i);
	bool sum = r->op == T3_REDUCE_SCATTER;
	uint32_t sender = sum || j ? (shard + 1) % r->ranks : 0;

	r->trigger[r->triggers++] = (struct t3_trigger) {
		.op = sum ? T3_OP_SUM : T3_OP_COPY,
		.block = to,
		.seq = sum ? 2 : 1,
		.first_source = r->sources,
		.sources = sum ? 2 : 1,
	};
	r->source[r->sources++] = (struct t3_source) {
		.block = model_fold_block(r->cut, r->ranks, sender, i),
		.at = sum && j > 1 ? 2 : 1,
	};
	if (sum)
		r->source[r->sources++] = (struct t3_source) {
			.block = to, .at = 1,
		};
}

void model_fold_ring(uint32_t op, uint32_t ranks, const struct model_cut *cut,
		     struct t3_trigger *trigger, struct t3_source *source,
		     struct t3_plan_block *block, uint32_t *sources)
{
	struct ring r = {
		.op = op, .ranks = ranks, .cut = cut, .trigger = trigger,
		.source = source,
	};
	bool sum = op == T3_REDUCE_SCATTER;
	uint32_t s, i;

	for (s = 0; s < ranks; s++) {
		bool produced = sum || s == 0;
		/* Chain place 0 begins the sum; the owner begins the gathering. */
		bool begins = sum ? s == ranks - 1 : s == 0;

		for (i = 0; i < cut->bands * cut->crosses; i++) {
			block[model_fold_block(cut, ranks, s, i)] =
				(struct t3_plan_block) {
					.readers = 1,
					.flags = produced ? T3_BLOCK_PRODUCED : 0,
					.tiles = produced ? 1 : 0,
				};
			if (!begins)
				ring_trigger(&r, s, i);
		}
	}
	*sources = r.sources;
}
