# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The sums' speed beside a plain loop over the same bytes.

$(B)/tests/bench/bench_reduce: tests/bench/bench_reduce.c \
		$(patsubst kernel/core/%.c,$(B)/core/%.o,$(wildcard kernel/core/reduce*.c))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -MMD -MP $(filter %.c %.o,$^) -o $@ $(LDFLAGS)

$(B)/bench/reduce.json: $(B)/tests/bench/bench_reduce FORCE_BENCH
	@mkdir -p $(@D)
	$< -o $@

.PHONY: FORCE_BENCH
bench: $(B)/bench/reduce.json

-include $(B)/tests/bench/bench_reduce.d
