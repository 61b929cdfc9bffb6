// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan checker. Blocks of all ranks are numbered rank * blocks + block,
 * triggers through all ranks. A node is a block's production (the block's
 * number) or a trigger (behind all blocks).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_checker.h"
#include "reduce.h"

#define NOBODY	0xffffffffU

/**
 * struct list - numbers, appended one by one
 */
struct list {
	uint32_t n;
	uint32_t room;
	uint32_t *at;
};

/**
 * struct checker - a check under way
 * @request: what the plan is to do; NULL for plan_order()
 * @part: the programs
 * @ranks: how many
 * @blocks: of one rank
 * @all: blocks of all ranks
 * @triggers: of all ranks
 * @first: [ranks + 1] a rank's first trigger
 * @rank_of: [triggers] whose it is
 * @updates: [all] K
 * @update: [all] the nodes that update a block, by number - 1
 * @reader: [all] triggers that read a block, once for each source
 * @next: [all + triggers] the nodes that wait for a node
 * @waits: [all + triggers] how many edges a node still waits for
 * @order: an order in which all can run
 * @nodes: entries of @order
 * @why: what is wrong
 * @bytes: size of @why
 */
struct checker {
	const struct t3_plan_request *request;
	const struct t3_planned *part;
	uint32_t ranks;
	uint32_t blocks;
	uint32_t all;
	uint32_t triggers;
	uint32_t first[T3_MAX_RANKS + 1];
	uint32_t *rank_of;
	uint32_t *updates;
	struct list *update;
	struct list *reader;
	struct list *next;
	uint32_t *waits;
	uint32_t *order;
	uint32_t nodes;
	char *why;
	size_t bytes;
};

static int wrong(struct checker *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(struct checker *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->why, c->bytes, format, args);
	va_end(args);
	return -1;
}

static void append(struct list *list, uint32_t value)
{
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 4;
		list->at = realloc(list->at, list->room * sizeof(uint32_t));
		if (!list->at)
			abort();
	}
	list->at[list->n++] = value;
}

static void *zeroed(size_t n, size_t bytes)
{
	void *memory = calloc(n ? n : 1, bytes);

	if (!memory)
		abort();
	return memory;
}

/* ---- numbering ---- */

static const struct t3_program *program(const struct checker *c, uint32_t rank)
{
	return &c->part[rank].program;
}

static uint32_t block_number(const struct checker *c, uint32_t rank,
			     uint32_t region, uint32_t block)
{
	return rank * c->blocks + program(c, rank)->grid[region].first_block +
	       block;
}

static uint32_t trigger_rank(const struct checker *c, uint32_t t)
{
	return c->rank_of[t];
}

static const struct t3_trigger *trigger(const struct checker *c, uint32_t t)
{
	uint32_t r = trigger_rank(c, t);

	return &program(c, r)->trigger[t - c->first[r]];
}

static const struct t3_source *source(const struct checker *c, uint32_t t,
				      uint32_t i)
{
	uint32_t r = trigger_rank(c, t);

	return &program(c, r)->source[program(c, r)->trigger[t - c->first[r]]
				      .first_source + i];
}

static uint32_t source_block(const struct checker *c, uint32_t t, uint32_t i)
{
	const struct t3_source *s = source(c, t, i);

	return block_number(c, s->rank, s->region, s->block);
}

static uint32_t target_block(const struct checker *c, uint32_t t)
{
	return block_number(c, trigger_rank(c, t), trigger(c, t)->region,
			    trigger(c, t)->block);
}

static bool produced(const struct checker *c, uint32_t block)
{
	return program(c, block / c->blocks)->block[block % c->blocks].flags &
	       T3_BLOCK_PRODUCED;
}

static void begin(struct checker *c)
{
	uint32_t r, t;

	c->blocks = program(c, 0)->blocks;
	c->all = c->ranks * c->blocks;
	for (r = 0; r < c->ranks; r++)
		c->first[r + 1] = c->first[r] + program(c, r)->triggers;
	c->triggers = c->first[c->ranks];
	c->rank_of = zeroed(c->triggers, sizeof(*c->rank_of));
	for (r = 0; r < c->ranks; r++)
		for (t = c->first[r]; t < c->first[r + 1]; t++)
			c->rank_of[t] = r;
	c->updates = zeroed(c->all, sizeof(*c->updates));
	c->update = zeroed(c->all, sizeof(*c->update));
	c->reader = zeroed(c->all, sizeof(*c->reader));
	c->next = zeroed(c->all + c->triggers, sizeof(*c->next));
	c->waits = zeroed(c->all + c->triggers, sizeof(*c->waits));
	c->order = zeroed(c->all + c->triggers, sizeof(*c->order));
}

static void free_lists(struct list *list, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		free(list[i].at);
	free(list);
}

static void end(struct checker *c)
{
	free_lists(c->update, c->all);
	free_lists(c->reader, c->all);
	free_lists(c->next, c->all + c->triggers);
	free(c->rank_of);
	free(c->updates);
	free(c->waits);
	free(c->order);
}

/* ---- shape ---- */

/* The place of a block in its region's memory. */
static struct t3_rect place(const struct checker *c, uint32_t block,
			    uint32_t *region)
{
	const struct t3_program *p = program(c, block / c->blocks);
	uint32_t in_rank = block % c->blocks;
	uint32_t g = p->grids - 1;
	const struct t3_grid *grid;

	while (p->grid[g].first_block > in_rank)
		g--;
	grid = &p->grid[g];
	in_rank -= grid->first_block;
	*region = g;
	return (struct t3_rect) {
		.row = grid->row_cuts[in_rank / grid->block_cols],
		.col = grid->col_cuts[in_rank % grid->block_cols],
		.rows = grid->row_cuts[in_rank / grid->block_cols + 1] -
			grid->row_cuts[in_rank / grid->block_cols],
		.cols = grid->col_cuts[in_rank % grid->block_cols + 1] -
			grid->col_cuts[in_rank % grid->block_cols],
	};
}

/* The same, as a part of the matrix: row is the matrix's row. */
static struct t3_rect matrix_place(const struct checker *c, uint32_t block,
				   uint32_t *region)
{
	struct t3_rect r = place(c, block, region);

	if (c->request->layout == T3_COL_MAJOR)
		return (struct t3_rect) { r.col, r.row, r.cols, r.rows };
	return r;
}

static uint32_t shard_begin(const struct checker *c, uint32_t s)
{
	return (uint32_t)((uint64_t)s * c->request->rows / c->ranks);
}

/* The shard that a block lies in, or NOBODY where it lies in two. */
static uint32_t shard_of(const struct checker *c, uint32_t block)
{
	uint32_t region, s;
	struct t3_rect r = matrix_place(c, block, &region);

	for (s = 0; s < c->ranks; s++)
		if (r.row >= shard_begin(c, s) &&
		    r.row + r.rows <= shard_begin(c, s + 1))
			return s;
	return NOBODY;
}

static int check_cuts(struct checker *c, const uint32_t *cuts, uint32_t n,
		      uint64_t length)
{
	uint32_t i;

	if (cuts[0] || cuts[n] != length)
		return wrong(c, "cuts from %u to %u, not from 0 to %llu",
			     cuts[0], cuts[n], (unsigned long long)length);
	for (i = 0; i < n; i++)
		if (cuts[i] >= cuts[i + 1])
			return wrong(c, "cut %u does not ascend", i);
	return 0;
}

static int check_grid(struct checker *c, const struct t3_grid *grid)
{
	bool across = c->request->layout == T3_COL_MAJOR;
	uint64_t rows = across ? c->request->cols : c->request->rows;
	uint64_t cols = across ? c->request->rows : c->request->cols;

	if (grid->dtype != c->request->dtype)
		return wrong(c, "a grid's dtype is %u", grid->dtype);
	if (check_cuts(c, grid->row_cuts, grid->block_rows, rows))
		return -1;
	return check_cuts(c, grid->col_cuts, grid->block_cols, cols);
}

static bool same_grids(const struct t3_grid *a, const struct t3_grid *b)
{
	return a->block_rows == b->block_rows &&
	       a->block_cols == b->block_cols &&
	       a->first_block == b->first_block &&
	       !memcmp(a->row_cuts, b->row_cuts, (a->block_rows + 1) * 4) &&
	       !memcmp(a->col_cuts, b->col_cuts, (a->block_cols + 1) * 4);
}

static int check_block_size(struct checker *c, uint32_t block)
{
	uint32_t limit = c->request->block_bytes ? c->request->block_bytes :
						   T3_MAX_BLOCK_BYTES;
	uint32_t region;
	struct t3_rect r = place(c, block, &region);
	uint64_t bytes = (uint64_t)r.rows * r.cols *
			 t3_dtype_size(c->request->dtype);

	if (bytes > limit)
		return wrong(c, "block %u has %llu bytes, over %u", block,
			     (unsigned long long)bytes, limit);
	if (shard_of(c, block) == NOBODY)
		return wrong(c, "block %u lies in two shards", block);
	return 0;
}

static int check_shape(struct checker *c)
{
	uint32_t grids = c->request->op == T3_ALL_TO_ALL ? 2 : 1;
	uint32_t r, g, b;

	for (r = 0; r < c->ranks; r++) {
		const struct t3_program *p = program(c, r);
		uint32_t blocks = 0;

		if (p->grids != grids || p->blocks != c->blocks)
			return wrong(c, "rank %u has %u grids, %u blocks", r,
				     p->grids, p->blocks);
		if (memcmp(p->digest, program(c, 0)->digest, 16))
			return wrong(c, "rank %u's digest is not rank 0's", r);
		for (g = 0; g < grids; g++) {
			if (check_grid(c, &p->grid[g]))
				return -1;
			if (!same_grids(&p->grid[g], &program(c, 0)->grid[g]))
				return wrong(c, "rank %u's grid is not rank 0's", r);
			if (p->grid[g].first_block != blocks)
				return wrong(c, "grid %u begins at block %u", g,
					     p->grid[g].first_block);
			blocks += p->grid[g].block_rows * p->grid[g].block_cols;
		}
		if (blocks != p->blocks)
			return wrong(c, "the grids have %u blocks", blocks);
	}
	for (b = 0; b < c->blocks; b++)
		if (check_block_size(c, b))
			return -1;
	return 0;
}

/* ---- updates and readers ---- */

static int note_update(struct checker *c, uint32_t block, uint32_t number,
		       uint32_t node)
{
	struct list *list = &c->update[block];

	if (!number)
		return wrong(c, "block %u has an update 0", block);
	while (list->n < number)
		append(list, NOBODY);
	if (list->at[number - 1] != NOBODY)
		return wrong(c, "block %u has two updates %u", block, number);
	list->at[number - 1] = node;
	c->updates[block]++;
	return 0;
}

static int note_trigger(struct checker *c, uint32_t t)
{
	const struct t3_trigger *what = trigger(c, t);
	uint32_t region, i;
	struct t3_rect to, from;

	if (what->op != T3_OP_COPY && what->op != T3_OP_SUM)
		return wrong(c, "trigger %u has op %u", t, what->op);
	if (!what->sources || (what->op == T3_OP_COPY && what->sources > 1))
		return wrong(c, "trigger %u has %u sources", t, what->sources);
	to = place(c, target_block(c, t), &region);
	for (i = 0; i < what->sources; i++) {
		from = place(c, source_block(c, t, i), &region);
		if (from.rows != to.rows || from.cols != to.cols)
			return wrong(c, "trigger %u's source %u has another form",
				     t, i);
		append(&c->reader[source_block(c, t, i)], t);
	}
	return note_update(c, target_block(c, t), what->seq, c->all + t);
}

static int check_updates(struct checker *c)
{
	uint32_t b, t, i;

	for (b = 0; b < c->all; b++)
		if (produced(c, b) && note_update(c, b, 1, b))
			return -1;
	for (t = 0; t < c->triggers; t++)
		if (note_trigger(c, t))
			return -1;
	for (b = 0; b < c->all; b++) {
		if (c->updates[b] != c->update[b].n)
			return wrong(c, "block %u lacks one of its updates", b);
		if (c->part[b / c->blocks].updates[b % c->blocks] != c->updates[b])
			return wrong(c, "block %u has %u updates, not as told", b,
				     c->updates[b]);
	}
	for (t = 0; t < c->triggers; t++) {
		for (i = 0; i < trigger(c, t)->sources; i++) {
			uint32_t at = source(c, t, i)->at;

			if (!at || at > c->updates[source_block(c, t, i)])
				return wrong(c, "trigger %u reads source %u at %u",
					     t, i, at);
		}
	}
	return 0;
}

static int check_readers(struct checker *c)
{
	uint32_t b, i;

	for (b = 0; b < c->all; b++) {
		const struct t3_plan_block *block =
			&program(c, b / c->blocks)->block[b % c->blocks];
		uint64_t readers = 0;

		for (i = 0; i < c->reader[b].n; i++)
			readers |= 1ULL << trigger_rank(c, c->reader[b].at[i]);
		if (readers != block->readers)
			return wrong(c, "block %u: readers %#llx, marked %#llx", b,
				     (unsigned long long)readers,
				     (unsigned long long)block->readers);
		if (block->tiles != (produced(c, b) ? c->request->tiles : 0))
			return wrong(c, "block %u has %u tiles", b, block->tiles);
	}
	return 0;
}

/* ---- order ---- */

static void add_edge(struct checker *c, uint32_t from, uint32_t to)
{
	append(&c->next[from], to);
	c->waits[to]++;
}

/* Edges 1 and 2 of the machine's definition. */
static void add_edges(struct checker *c, uint32_t t)
{
	const struct t3_trigger *what = trigger(c, t);
	uint32_t target = target_block(c, t);
	uint32_t i, k;

	for (i = 0; i < what->sources; i++)
		add_edge(c, c->update[source_block(c, t, i)]
			 .at[source(c, t, i)->at - 1], c->all + t);
	if (what->seq == 1)
		return;
	add_edge(c, c->update[target].at[what->seq - 2], c->all + t);
	for (i = 0; i < c->reader[target].n; i++) {
		uint32_t other = c->reader[target].at[i];

		for (k = 0; other != t && k < trigger(c, other)->sources; k++)
			if (source_block(c, other, k) == target &&
			    source(c, other, k)->at == what->seq - 1)
				add_edge(c, c->all + other, c->all + t);
	}
}

static int make_order(struct checker *c)
{
	uint32_t t, b, i, at;
	uint32_t expected = c->triggers;

	for (t = 0; t < c->triggers; t++)
		add_edges(c, t);
	for (b = 0; b < c->all; b++) {
		if (!produced(c, b))
			continue;
		c->order[c->nodes++] = b;
		expected++;
	}
	for (at = 0; at < c->nodes; at++) {
		const struct list *next = &c->next[c->order[at]];

		for (i = 0; i < next->n; i++)
			if (!--c->waits[next->at[i]])
				c->order[c->nodes++] = next->at[i];
	}
	if (c->nodes != expected)
		return wrong(c, "%u of %u nodes are on or behind a cycle",
			     expected - c->nodes, expected);
	return 0;
}

/* ---- races ---- */

/**
 * struct component - blocks that triggers join, and their nodes
 * @nodes: how many
 * @words: 64-bit words of a row of @reach
 * @node: the nodes, in an order that can run
 * @reach: [nodes][words] bit n is set: node n comes behind this one
 *
 * Blocks that no trigger joins don't meet, so reachability is looked at in one
 * component at a time.
 */
struct component {
	uint32_t nodes;
	uint32_t words;
	uint32_t *node;
	uint64_t *reach;
};

static uint32_t find(uint32_t *parent, uint32_t b)
{
	while (parent[b] != b) {
		parent[b] = parent[parent[b]];
		b = parent[b];
	}
	return b;
}

static bool reaches(const struct component *k, const uint32_t *local,
		    uint32_t from, uint32_t to)
{
	return k->reach[(size_t)local[from] * k->words + local[to] / 64] >>
	       local[to] % 64 & 1;
}

static void close_component(const struct checker *c, struct component *k,
			    const uint32_t *local)
{
	uint32_t n, i, w;

	k->words = (k->nodes + 63) / 64;
	k->reach = zeroed((size_t)k->nodes * k->words, sizeof(uint64_t));
	for (n = k->nodes; n-- > 0;) {
		const struct list *next = &c->next[k->node[n]];
		uint64_t *mine = k->reach + (size_t)n * k->words;

		for (i = 0; i < next->n; i++) {
			uint32_t to = local[next->at[i]];

			mine[to / 64] |= 1ULL << to % 64;
			for (w = 0; w < k->words; w++)
				mine[w] |= k->reach[(size_t)to * k->words + w];
		}
	}
}

/* Every read is behind the update it names and before the next one. */
static int check_block_races(struct checker *c, const struct component *k,
			     const uint32_t *local, uint32_t b)
{
	const struct list *u = &c->update[b];
	uint32_t i, s, n;

	for (i = 0; i + 1 < u->n; i++)
		if (!reaches(k, local, u->at[i], u->at[i + 1]))
			return wrong(c, "block %u: updates %u and %u race", b,
				     i + 1, i + 2);
	for (i = 0; i < c->reader[b].n; i++) {
		uint32_t t = c->reader[b].at[i];

		for (s = 0; s < trigger(c, t)->sources; s++) {
			if (source_block(c, t, s) != b)
				continue;
			n = source(c, t, s)->at;
			if (!reaches(k, local, u->at[n - 1], c->all + t))
				return wrong(c, "block %u: trigger %u reads before update %u",
					     b, t, n);
			if (n < u->n && u->at[n] != c->all + t &&
			    !reaches(k, local, c->all + t, u->at[n]))
				return wrong(c, "block %u: trigger %u reads while update %u writes",
					     b, t, n + 1);
		}
	}
	return 0;
}

static void join_blocks(const struct checker *c, uint32_t *parent)
{
	uint32_t t, i;

	for (i = 0; i < c->all; i++)
		parent[i] = i;
	for (t = 0; t < c->triggers; t++)
		for (i = 0; i < trigger(c, t)->sources; i++)
			parent[find(parent, source_block(c, t, i))] =
				find(parent, target_block(c, t));
}

static int check_races(struct checker *c)
{
	uint32_t *parent = zeroed(c->all, sizeof(*parent));
	uint32_t *local = zeroed(c->all + c->triggers, sizeof(*local));
	struct list *nodes = zeroed(c->all, sizeof(*nodes));
	struct list *members = zeroed(c->all, sizeof(*members));
	uint32_t i, b, k;
	int ret = 0;

	join_blocks(c, parent);
	for (i = 0; i < c->nodes; i++) {
		uint32_t node = c->order[i];

		b = node < c->all ? node : target_block(c, node - c->all);
		b = find(parent, b);
		local[node] = nodes[b].n;
		append(&nodes[b], node);
	}
	for (b = 0; b < c->all; b++)
		append(&members[find(parent, b)], b);
	for (b = 0; b < c->all && !ret; b++) {
		struct component part = {
			.nodes = nodes[b].n, .node = nodes[b].at,
		};

		if (!part.nodes)
			continue;
		close_component(c, &part, local);
		for (k = 0; k < members[b].n && !ret; k++)
			ret = check_block_races(c, &part, local,
						members[b].at[k]);
		free(part.reach);
	}
	free_lists(nodes, c->all);
	free_lists(members, c->all);
	free(local);
	free(parent);
	return ret;
}

/* ---- results ---- */

static void run_trigger(struct checker *c, struct list *value, uint32_t t)
{
	struct list sum = { 0 };
	uint32_t i, k;

	for (i = 0; i < trigger(c, t)->sources; i++) {
		const struct list *from = &value[source_block(c, t, i)];

		for (k = 0; k < from->n; k++)
			append(&sum, from->at[k]);
	}
	free(value[target_block(c, t)].at);
	value[target_block(c, t)] = sum;
}

static bool ring_first(const struct checker *c)
{
	return (c->request->op == T3_REDUCE_SCATTER ||
		c->request->op == T3_ALL_REDUCE) &&
	       (c->request->algorithm == T3_ALG_RING ||
		c->request->algorithm == T3_ALG_RING_DIRECT);
}

/* The @i-th rank whose contribution shard @s takes. */
static uint32_t contributor(const struct checker *c, uint32_t s, uint32_t i)
{
	return ring_first(c) ? (s + 1 + i) % c->ranks : i;
}

static int check_sum(struct checker *c, const struct list *value, uint32_t b)
{
	uint32_t s = shard_of(c, b);
	uint32_t i;

	if (value->n != c->ranks)
		return wrong(c, "block %u is the sum of %u, not of %u", b,
			     value->n, c->ranks);
	for (i = 0; i < c->ranks; i++)
		if (value->at[i] != contributor(c, s, i) * c->blocks +
				    b % c->blocks)
			return wrong(c, "block %u: addend %u is block %u", b, i,
				     value->at[i]);
	return 0;
}

static int check_one(struct checker *c, const struct list *value, uint32_t b,
		     uint32_t from)
{
	if (value->n == 1 && value->at[0] == from)
		return 0;
	return wrong(c, "block %u is not what block %u was", b, from);
}

/* What was in shard r of rank q's first region is in shard q of r's second. */
static int check_exchanged(struct checker *c, const struct list *value,
			   uint32_t b)
{
	uint32_t r = b / c->blocks;
	uint32_t q = shard_of(c, b);
	uint32_t region, source_region;
	struct t3_rect to = matrix_place(c, b, &region);
	struct t3_rect from;

	if (!region)
		return check_one(c, value, b, b);
	if (value->n != 1 || value->at[0] / c->blocks != q ||
	    shard_of(c, value->at[0]) != r)
		return wrong(c, "block %u is not from rank %u", b, q);
	from = matrix_place(c, value->at[0], &source_region);
	if (source_region || from.col != to.col ||
	    from.row - shard_begin(c, r) != to.row - shard_begin(c, q))
		return wrong(c, "block %u is from another place", b);
	return 0;
}

static int check_result(struct checker *c, const struct list *value,
			uint32_t b)
{
	uint32_t owner = shard_of(c, b);

	switch (c->request->op) {
	case T3_REDUCE_SCATTER:
		return owner == b / c->blocks ? check_sum(c, value, b) : 0;
	case T3_ALL_REDUCE:
		return check_sum(c, value, b);
	case T3_ALL_GATHER:
		return check_one(c, value, b, owner * c->blocks + b % c->blocks);
	default:
		return check_exchanged(c, value, b);
	}
}

static int check_results(struct checker *c)
{
	struct list *value = zeroed(c->all, sizeof(*value));
	uint32_t i;
	int ret = 0;

	for (i = 0; i < c->nodes; i++) {
		if (c->order[i] < c->all)
			append(&value[c->order[i]], c->order[i]);
		else
			run_trigger(c, value, c->order[i] - c->all);
	}
	for (i = 0; i < c->all && !ret; i++)
		ret = check_result(c, &value[i], i);
	free_lists(value, c->all);
	return ret;
}

/* ---- steps and numbers ---- */

/* For a ring: in which turn a rank produces a shard. */
static uint32_t turn(const struct checker *c, uint32_t rank, uint32_t shard)
{
	return (rank + c->ranks - shard + c->ranks - 1) % c->ranks;
}

static int check_step_order(struct checker *c, uint32_t rank)
{
	const struct t3_planned *part = &c->part[rank];
	uint32_t count[T3_MAX_RANKS] = { 0 };
	uint32_t block[T3_MAX_RANKS] = { 0 };
	uint32_t i, last = 0;

	for (i = 0; i < part->steps; i++) {
		uint32_t s = shard_of(c, part->step[i]);
		uint32_t now = ring_first(c) ? turn(c, rank, s) : count[s]++;

		if (now < last || part->step[i] < block[s])
			return wrong(c, "rank %u: step %u comes too late", rank, i);
		last = now;
		block[s] = part->step[i];
	}
	return 0;
}

static int check_steps(struct checker *c)
{
	uint32_t r, b, i;

	for (r = 0; r < c->ranks; r++) {
		const struct t3_planned *part = &c->part[r];
		uint8_t *seen = zeroed(c->blocks, 1);

		for (i = 0; i < part->steps; i++)
			seen[part->step[i]]++;
		for (b = 0; b < c->blocks; b++)
			if (seen[b] != (produced(c, r * c->blocks + b) ? 1 : 0))
				break;
		free(seen);
		if (b < c->blocks)
			return wrong(c, "rank %u: block %u is not one step", r, b);
		if (check_step_order(c, r))
			return -1;
		if (c->request->op != T3_ALL_GATHER && !ring_first(c) &&
		    memcmp(part->step, c->part[0].step, part->steps * 4))
			return wrong(c, "rank %u's order is not rank 0's", r);
	}
	return 0;
}

static int check_moved(struct checker *c)
{
	uint64_t moved[T3_MAX_RANKS] = { 0 };
	uint32_t t, i, r, region;

	for (t = 0; t < c->triggers; t++) {
		struct t3_rect rect = place(c, target_block(c, t), &region);

		r = trigger_rank(c, t);
		for (i = 0; i < trigger(c, t)->sources; i++)
			if (source(c, t, i)->rank != r)
				moved[r] += (uint64_t)rect.rows * rect.cols *
					    t3_dtype_size(c->request->dtype);
	}
	for (r = 0; r < c->ranks; r++)
		if (moved[r] != c->part[r].moved_bytes)
			return wrong(c, "rank %u moves %llu bytes, not as told",
				     r, (unsigned long long)moved[r]);
	return 0;
}

int plan_check(const struct t3_plan_request *request,
	       const struct t3_planned *part, char *why, size_t bytes)
{
	static int (*const check[])(struct checker *c) = {
		check_updates, check_readers, make_order, check_races,
		check_results, check_steps, check_moved,
	};
	struct checker c = {
		.request = request,
		.part = part,
		.ranks = request->ranks,
		.why = why,
		.bytes = bytes,
	};
	size_t i;
	int ret;

	begin(&c);
	ret = check_shape(&c);
	for (i = 0; i < ARRAY_SIZE(check) && !ret; i++)
		ret = check[i](&c);
	end(&c);
	return ret;
}

int plan_order(uint32_t ranks, const struct t3_planned *part,
	       uint32_t **order, uint32_t *nodes)
{
	char why[128];
	struct checker c = {
		.part = part,
		.ranks = ranks,
		.why = why,
		.bytes = sizeof(why),
	};
	int ret;

	begin(&c);
	ret = check_updates(&c);
	if (!ret)
		ret = make_order(&c);
	*order = c.order;
	*nodes = c.nodes;
	c.order = NULL;
	end(&c);
	if (ret)
		free(*order);
	return ret;
}
