// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fp16.h"
#include "reduce.h"

#define GUARD	256	/* bytes before and behind */
#define POISON	0xff	/* in every byte: a NaN in all dtypes, -1 in i32 */

static uint64_t matrix_lines(const struct t3_matrix *m)
{
	return m->layout == T3_ROW_MAJOR ? m->rows : m->cols;
}

static uint64_t matrix_line(const struct t3_matrix *m)
{
	return m->layout == T3_ROW_MAJOR ? m->cols : m->rows;
}

int buffer_make(struct t3_member *member, const struct shape *shape,
		struct buffer *buffer)
{
	uint32_t size = t3_dtype_size(shape->dtype);
	struct t3_matrix *m = &buffer->matrix;

	*m = (struct t3_matrix) {
		.rows = shape->rows,
		.cols = shape->cols,
		.dtype = shape->dtype,
		.layout = shape->layout,
	};
	m->ld = matrix_line(m) + shape->gap;
	buffer->bytes = 2 * GUARD + m->ld * matrix_lines(m) * size;
	if (shape->ordinary)
		buffer->memory = malloc(buffer->bytes);
	else
		RANK_TRY(member, t3_alloc(member, buffer->bytes,
					  &buffer->memory));
	RANK_CHECK(member, buffer->memory);
	m->base = (char *)buffer->memory + GUARD;
	buffer_poison(buffer);
	return 0;
}

void buffer_free(struct t3_member *member, const struct shape *shape,
		 struct buffer *buffer)
{
	if (shape->ordinary)
		free(buffer->memory);
	else
		t3_free(member, buffer->memory);
}

void buffer_poison(struct buffer *buffer)
{
	memset(buffer->memory, POISON, buffer->bytes);
}

static bool all_poison(const unsigned char *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (from[i] != POISON)
			return false;
	}
	return true;
}

bool buffer_intact(const struct buffer *buffer)
{
	const struct t3_matrix *m = &buffer->matrix;
	uint32_t size = t3_dtype_size(m->dtype);
	const unsigned char *at = buffer->memory;
	size_t line = matrix_line(m) * size;
	uint64_t i;

	if (!all_poison(at, GUARD) ||
	    !all_poison(at + buffer->bytes - GUARD, GUARD))
		return false;
	for (i = 0; i < matrix_lines(m); i++) {
		if (!all_poison(at + GUARD + i * m->ld * size + line,
				m->ld * size - line))
			return false;
	}
	return true;
}

static void *element(const struct buffer *buffer, uint64_t row, uint64_t col)
{
	const struct t3_matrix *m = &buffer->matrix;
	uint64_t at = m->layout == T3_ROW_MAJOR ? row * m->ld + col :
						  col * m->ld + row;

	return (char *)m->base + at * t3_dtype_size(m->dtype);
}

static float float_of(u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static u32 bits_of(float f)
{
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static double load(const void *at, uint32_t dtype)
{
	switch (dtype) {
	case T3_DTYPE_F32:
		return *(const float *)at;
	case T3_DTYPE_F64:
		return *(const double *)at;
	case T3_DTYPE_F16:
		return float_of(t3_f16_widen(*(const u16 *)at));
	case T3_DTYPE_BF16:
		return float_of((u32)*(const u16 *)at << 16);
	default:
		return *(const s32 *)at;
	}
}

static void store(void *at, uint32_t dtype, double v)
{
	switch (dtype) {
	case T3_DTYPE_F32:
		*(float *)at = v;
		break;
	case T3_DTYPE_F64:
		*(double *)at = v;
		break;
	case T3_DTYPE_F16:
		*(u16 *)at = t3_f16_narrow(bits_of(v));
		break;
	case T3_DTYPE_BF16:
		*(u16 *)at = t3_bf16_narrow(bits_of(v));
		break;
	default:
		*(s32 *)at = v;
	}
}

double buffer_get(const struct buffer *buffer, uint64_t row, uint64_t col)
{
	return load(element(buffer, row, col), buffer->matrix.dtype);
}

void buffer_put(struct buffer *buffer, uint64_t row, uint64_t col, double v)
{
	store(element(buffer, row, col), buffer->matrix.dtype, v);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

double value_of(const struct shape *shape, uint32_t rank, uint32_t epoch,
		uint64_t row, uint64_t col)
{
	uint64_t x = mix(mix(row << 32 | col) + rank * 977 + epoch * 31337ULL);
	double v = (int)(x % 17) - 8;
	u64 held = 0;

	if (shape->wild && shape->dtype != T3_DTYPE_I32)
		v = ldexp((double)(x >> 12 & 0xffff) / 65536 - 0.5,
			  (int)(x % 6) - 2);
	store(&held, shape->dtype, v);
	return load(&held, shape->dtype);
}

void buffer_produce(struct buffer *buffer, const struct shape *shape,
		    uint32_t rank, uint32_t epoch,
		    const struct t3_rectangle *rect)
{
	uint64_t i, k;

	for (i = rect->row; i < rect->row + rect->rows; i++) {
		for (k = rect->col; k < rect->col + rect->cols; k++)
			buffer_put(buffer, i, k,
				   value_of(shape, rank, epoch, i, k));
	}
}

int work_begin(struct work *work, struct t3_member *member,
	       const struct shape *shape)
{
	struct t3_collective collective = {
		.size = sizeof(collective),
		.op = shape->op,
		.algorithm = shape->algorithm,
		.block_bytes = shape->block_bytes,
		.tiles = shape->tiles,
	};
	int i;

	*work = (struct work) { .member = member, .shape = shape };
	for (i = 0; i < (shape->op == T3_ALL_TO_ALL ? 2 : 1); i++) {
		if (buffer_make(member, shape, &work->buffer[i]))
			return 1;
		RANK_TRY(member, t3_region_add(member, &work->buffer[i].matrix,
					       &work->region[i]));
	}
	collective.region = work->region[0];
	collective.second = work->region[1];
	if (t3_plan_add(member, &collective, &work->plan))
		return rank_fails(member, "t3_plan_add: %s", t3_error());
	return 0;
}

int work_end(struct work *work)
{
	int i;

	RANK_TRY(work->member, t3_plan_del(work->plan));
	for (i = 0; i < 2; i++) {
		if (!work->region[i])
			continue;
		RANK_TRY(work->member, t3_region_del(work->region[i]));
		buffer_free(work->member, work->shape, &work->buffer[i]);
	}
	return 0;
}

/* Report a step in as many tiles as its block takes, one by one. */
static int report(struct work *work, uint32_t step,
		  const struct t3_rectangle *rect)
{
	int64_t block = t3_block_of(work->plan, rect->row, rect->col);
	uint32_t i;

	if (work->shape->tiles < 2) {
		RANK_TRY(work->member, t3_produced(work->plan, step));
		return 0;
	}
	RANK_CHECK(work->member, block >= 0);
	for (i = 0; i < work->shape->tiles; i++)
		RANK_TRY(work->member, t3_tile_done(work->plan, block, 1));
	return 0;
}

int work_produce(struct work *work)
{
	uint32_t rank = t3_rank(work->member);
	struct t3_rectangle rect;
	uint32_t step;

	for (step = 0; !t3_plan_step(work->plan, step, &rect); step++) {
		buffer_produce(&work->buffer[0], work->shape, rank,
			       t3_epoch(work->plan), &rect);
		if (report(work, step, &rect))
			return 1;
	}
	return 0;
}

/* How far a result may be from the sum, for this sum of magnitudes. */
static double bound(const struct shape *shape, uint32_t ranks, double sum)
{
	/* Bits of a significand: half its last is the error of a rounding. */
	static const int digits[] = {
		[T3_DTYPE_F32] = 24,
		[T3_DTYPE_F64] = 53,
		[T3_DTYPE_F16] = 11,
		[T3_DTYPE_BF16] = 8,
		[T3_DTYPE_I32] = 64,
	};
	bool wide = shape->dtype == T3_DTYPE_F64 || shape->dtype == T3_DTYPE_I32;

	/* A sum in f32 and a rounding at each hop, N - 1 of them at most. */
	return sum * ranks * 1.01 * (ldexp(1, -digits[shape->dtype]) +
				     (wide ? 0 : ldexp(1, -24)));
}

static int check_sum(struct work *work, uint32_t epoch, uint64_t row,
		     uint64_t col)
{
	const struct shape *shape = work->shape;
	uint32_t ranks = t3_ranks(work->member);
	double got = buffer_get(&work->buffer[0], row, col);
	double sum = 0;
	double size = 0;
	uint32_t r;

	for (r = 0; r < ranks; r++) {
		double v = value_of(shape, r, epoch, row, col);

		sum += v;
		size += fabs(v);
	}
	if (fabs(got - sum) <= (shape->wild ? bound(shape, ranks, size) : 0))
		return 0;
	return rank_fails(work->member, "epoch %u: (%llu, %llu) is %g, not %g",
			  epoch, (unsigned long long)row,
			  (unsigned long long)col, got, sum);
}

static int check_copy(struct work *work, const struct buffer *buffer,
		      uint64_t row, uint64_t col, double want)
{
	double got = buffer_get(buffer, row, col);

	if (got == want)
		return 0;
	return rank_fails(work->member, "(%llu, %llu) is %g, not %g",
			  (unsigned long long)row, (unsigned long long)col, got,
			  want);
}

static int check_element(struct work *work, uint32_t epoch, uint32_t shard,
			 uint64_t row, uint64_t col)
{
	const struct shape *shape = work->shape;
	uint32_t rank = t3_rank(work->member);
	uint64_t high = shape->rows / t3_ranks(work->member);
	uint64_t from;

	switch (shape->op) {
	case T3_REDUCE_SCATTER:
		return shard == rank ? check_sum(work, epoch, row, col) : 0;
	case T3_ALL_REDUCE:
		return check_sum(work, epoch, row, col);
	case T3_ALL_GATHER:
		return check_copy(work, &work->buffer[0], row, col,
				  value_of(shape, shard, epoch, row, col));
	default:
		/* Shard q here is shard r of rank q. */
		from = rank * high + (row - shard * high);
		return check_copy(work, &work->buffer[1], row, col,
				  value_of(shape, shard, epoch, from, col));
	}
}

int work_check(struct work *work, uint32_t epoch)
{
	const struct shape *shape = work->shape;
	uint32_t ranks = t3_ranks(work->member);
	uint32_t shard;
	uint64_t row, col;

	for (shard = 0; shard < ranks; shard++) {
		uint64_t end = (shard + 1ULL) * shape->rows / ranks;

		for (row = (uint64_t)shard * shape->rows / ranks; row < end;
		     row++) {
			for (col = 0; col < shape->cols; col++) {
				if (check_element(work, epoch, shard, row, col))
					return 1;
			}
		}
	}
	RANK_CHECK(work->member, buffer_intact(&work->buffer[0]));
	if (work->region[1])
		RANK_CHECK(work->member, buffer_intact(&work->buffer[1]));
	return 0;
}

int work_epoch(struct work *work)
{
	RANK_TRY(work->member, t3_arm(work->plan));
	if (work_produce(work))
		return 1;
	RANK_TRY(work->member, t3_wait(work->plan, T3_TIMEOUT_DEFAULT));
	if (work_check(work, t3_epoch(work->plan)))
		return 1;
	buffer_poison(&work->buffer[0]);
	if (work->region[1])
		buffer_poison(&work->buffer[1]);
	return 0;
}

int work_all(struct t3_member *member, void *arg)
{
	const struct shape *shape = arg;
	struct work work;
	uint32_t i;

	if (work_begin(&work, member, shape))
		return 1;
	for (i = 0; i < shape->epochs; i++) {
		if (work_epoch(&work))
			return 1;
	}
	return work_end(&work);
}

const char *shape_name(const struct shape *shape, char *line, size_t bytes)
{
	static const char *const op[] = {
		"", "reduce-scatter", "all-gather", "all-reduce", "all-to-all",
	};
	static const char *const algorithm[] = {
		"auto", "ring", "direct", "ring-direct", "direct-ring",
	};
	static const char *const dtype[] = {
		"", "f32", "f64", "f16", "bf16", "i32",
	};

	snprintf(line, bytes, "%s %s %s %ux%u%s%s", op[shape->op],
		 algorithm[shape->algorithm], dtype[shape->dtype], shape->rows,
		 shape->cols, shape->layout == T3_COL_MAJOR ? " transposed" : "",
		 shape->ordinary ? " ordinary memory" : "");
	return line;
}
