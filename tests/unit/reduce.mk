# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The sums' unit test, plain and under the sanitizers. It compiles the sums
# itself, so that the sanitizers watch them too.

REDUCE_SRC := $(wildcard kernel/core/reduce*.c)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -O1 \
	-fno-omit-frame-pointer

$(B)/tests/unit/san/core/reduce_avx2.o: ISA := -mavx2 -mf16c
$(B)/tests/unit/san/core/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$(B)/tests/unit/san/core/%.o: kernel/core/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) $(SAN) $(ISA) -MMD -MP -c $< -o $@

$(B)/tests/unit/test_reduce: tests/unit/test_reduce.c \
		$(REDUCE_SRC:kernel/core/%.c=$(B)/core/%.o)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -MMD -MP $(filter %.c %.o,$^) -o $@ $(LDFLAGS) -lcmocka -lm

$(B)/tests/unit/test_reduce_san: tests/unit/test_reduce.c \
		$(REDUCE_SRC:kernel/core/%.c=$(B)/tests/unit/san/core/%.o)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) $(SAN) -MMD -MP $(filter %.c %.o,$^) -o $@ $(LDFLAGS) -lcmocka -lm

CHECK_SUITES += $(B)/tests/unit/test_reduce $(B)/tests/unit/test_reduce_san

-include $(wildcard $(B)/tests/unit/test_reduce*.d $(B)/tests/unit/san/core/*.d)
