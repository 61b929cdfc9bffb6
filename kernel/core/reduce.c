// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The choice of an implementation.
 */
#include "fp_env.h"
#include "reduce_impl.h"

static bool always(void)
{
	return true;
}

/* From the slowest to the fastest. */
static const struct {
	const struct t3_reduce *reduce;
	bool (*usable)(void);
} impls[] = {
	{ &t3_reduce_scalar, always },
#ifdef __x86_64__
	{ &t3_reduce_avx2, t3_cpu_has_avx2 },
	{ &t3_reduce_avx512, t3_cpu_has_avx512 },
#endif
};

const struct t3_reduce *t3_reduce_nth(u32 n)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(impls); i++)
		if (impls[i].usable() && n-- == 0)
			return impls[i].reduce;
	return NULL;
}

/*
 * What was found, set once. CPUID traps in a virtual machine, too dear for
 * each transfer. Two threads may both look; they find, and store, the same
 * constant object, so relaxed accesses do.
 */
static const struct t3_reduce *best;

const struct t3_reduce *t3_reduce_best(void)
{
	const struct t3_reduce *found = t3_load(&best);
	u32 i;

	if (likely(found))
		return found;
	for (i = 0; i < ARRAY_SIZE(impls); i++)
		if (impls[i].usable())
			found = impls[i].reduce;
	t3_store(&best, found);
	return found;
}
