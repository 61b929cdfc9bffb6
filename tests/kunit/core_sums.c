// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * KUnit: the sums, inside the kernel's FPU sections: every implementation that
 * the processor runs gives the bits of the scalar one, and known answers.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "fp_env.h"
#include "reduce.h"

#define BYTES	1024
#define SOURCES	5

struct sums {
	u8 source[SOURCES][BYTES];
	u8 want[BYTES];
	u8 got[BYTES];
};

static void sum(const struct t3_reduce *reduce, u32 dtype, void *to,
		const struct sums *s, u32 elems)
{
	const void *source[SOURCES];
	u64 saved;
	u32 i;

	for (i = 0; i < SOURCES; i++)
		source[i] = s->source[i];
	saved = t3_fp_enter();
	reduce->sum[dtype - 1](to, source, SOURCES, elems);
	t3_fp_leave(saved);
}

/* Any bits at all: NaNs, infinities, subnormals among them. */
static void same_bits(struct kunit *test)
{
	struct sums *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	const struct t3_reduce *reduce;
	struct rnd_state dice;
	u32 dtype, n, round;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, s);
	prandom_seed_state(&dice, 7);
	for (round = 0; round < 20; round++) {
		prandom_bytes_state(&dice, s->source, sizeof(s->source));
		for (dtype = 1; dtype <= T3_DTYPE_COUNT; dtype++) {
			u32 elems = BYTES / t3_dtype_size(dtype) - round;

			memset(s->want, 0, BYTES);
			sum(t3_reduce_nth(0), dtype, s->want, s, elems);
			for (n = 1; (reduce = t3_reduce_nth(n)); n++) {
				memset(s->got, 0, BYTES);
				sum(reduce, dtype, s->got, s, elems);
				KUNIT_EXPECT_EQ_MSG(test, 0,
						    memcmp(s->got, s->want,
							   BYTES),
						    "%s, dtype %u",
						    reduce->name, dtype);
			}
		}
	}
	KUNIT_EXPECT_PTR_EQ(test, t3_reduce_best(), t3_reduce_nth(n - 1));
}

/* Bits of 1.0, 2.0 and 3.0, and of the canonical NaN. */
static const u64 known[T3_DTYPE_COUNT][4] = {
	[T3_DTYPE_F32 - 1] = { 0x3f800000, 0x40000000, 0x40400000, 0x7fc00000 },
	[T3_DTYPE_F64 - 1] = { 0x3ff0000000000000, 0x4000000000000000,
			       0x4008000000000000, 0x7ff8000000000000 },
	[T3_DTYPE_F16 - 1] = { 0x3c00, 0x4000, 0x4200, 0x7e00 },
	[T3_DTYPE_BF16 - 1] = { 0x3f80, 0x4000, 0x4040, 0x7fc0 },
	[T3_DTYPE_I32 - 1] = { 1, 2, 3, 3 },
};

static u64 sum_two(const struct t3_reduce *reduce, u32 dtype, u64 a, u64 b)
{
	const void *source[] = { &a, &b };
	u64 to = 0, saved;

	saved = t3_fp_enter();
	reduce->sum[dtype - 1](&to, source, 2, 1);
	t3_fp_leave(saved);
	return to;
}

static void known_answers(struct kunit *test)
{
	const struct t3_reduce *reduce;
	u32 dtype, n;

	for (n = 0; (reduce = t3_reduce_nth(n)); n++) {
		for (dtype = 1; dtype <= T3_DTYPE_COUNT; dtype++) {
			const u64 *k = known[dtype - 1];
			bool integer = dtype == T3_DTYPE_I32;

			KUNIT_EXPECT_EQ(test, k[2],
					sum_two(reduce, dtype, k[0], k[1]));
			/* a NaN with a payload, which is lost */
			KUNIT_EXPECT_EQ(test, k[3],
					sum_two(reduce, dtype, k[0],
						integer ? 2 : k[3] | 5));
		}
	}
	KUNIT_EXPECT_EQ(test, 0U, t3_dtype_size(0));
	KUNIT_EXPECT_EQ(test, 0U, t3_dtype_size(T3_DTYPE_COUNT + 1));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(same_bits),
	KUNIT_CASE(known_answers),
	{ }
};

static struct kunit_suite suite = {
	.name = "t3-sums",
	.test_cases = cases,
};

kunit_test_suite(suite);
