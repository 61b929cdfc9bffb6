# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The soft engine's tests: plain, under the address and undefined-behaviour
# sanitizers, and, ranks as threads only, under the thread sanitizer. Each
# variant compiles the library for itself, so that the sanitizers watch it.

SOFT_LIB := $(wildcard lib/*.c lib/kernel/*.c lib/soft/*.c lib/gpu/*.c) $(CORE_SRC)
SOFT_HELP := tests/soft/ranks.c tests/soft/matrix.c
SOFT_FLAGS_plain :=
SOFT_FLAGS_asan := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all -DT3_TEST_QUICK
# Its fences order nothing that it watches, and it says so for each.
SOFT_FLAGS_tsan := -O1 -fsanitize=thread -Wno-tsan -DT3_TEST_QUICK -DT3_NO_FORK

# $(1): the variant
define SOFT_VARIANT
$$(B)/tests/soft/$(1)/kernel/core/reduce_avx2.o: ISA := -mavx2 -mf16c
$$(B)/tests/soft/$(1)/kernel/core/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$$(B)/tests/soft/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_T3) -Itests/soft $$(SOFT_FLAGS_$(1)) $$(ISA) -pthread \
		-MMD -MP -c $$< -o $$@

$$(B)/tests/soft/$(1)/libt3.a: $$(SOFT_LIB:%.c=$$(B)/tests/soft/$(1)/%.o) \
		$$(SOFT_HELP:%.c=$$(B)/tests/soft/$(1)/%.o)
	rm -f $$@ && ar rcs $$@ $$^

$$(B)/tests/soft/%_$(1): $$(B)/tests/soft/$(1)/tests/soft/%.o \
		$$(B)/tests/soft/$(1)/libt3.a
	$$(CC) $$(CFLAGS_T3) $$(SOFT_FLAGS_$(1)) -pthread $$^ -o $$@ $$(LDFLAGS) -lm

$$(B)/tests/stress/%_$(1): $$(B)/tests/soft/$(1)/tests/stress/%.o \
		$$(B)/tests/soft/$(1)/libt3.a
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_T3) $$(SOFT_FLAGS_$(1)) -pthread $$^ -o $$@ $$(LDFLAGS) -lm
endef

$(foreach variant,plain asan tsan,$(eval $(call SOFT_VARIANT,$(variant))))

SOFT_PROGRAMS := $(patsubst tests/%.c,%,$(wildcard tests/soft/test_*.c))
STRESS_PROGRAMS := $(patsubst tests/%.c,%,$(wildcard tests/stress/stress_*.c))
# Deaths and other processes' memory are not the thread sanitizer's.
SOFT_TSAN := soft/test_collectives soft/test_life

CHECK_SUITES += $(SOFT_PROGRAMS:%=$(B)/tests/%_plain) \
	$(SOFT_PROGRAMS:%=$(B)/tests/%_asan) $(SOFT_TSAN:%=$(B)/tests/%_tsan) \
	$(STRESS_PROGRAMS:%=$(B)/tests/%_plain)

.SECONDARY: $(foreach variant,plain asan tsan,\
	$(SOFT_PROGRAMS:%=$(B)/tests/soft/$(variant)/tests/%.o) \
	$(STRESS_PROGRAMS:%=$(B)/tests/soft/$(variant)/tests/%.o))
-include $(wildcard $(B)/tests/soft/*/*.d $(B)/tests/soft/*/*/*.d $(B)/tests/soft/*/*/*/*.d)

# The full counts: a million epochs, a thousand kills, ten thousand plans.
.PHONY: stress
stress: $(B)/tests/stress/stress_epochs_plain $(B)/tests/soft/test_death_plain \
		$(B)/tests/soft/test_life_plain $(B)/tests/soft/test_hostile_asan
	T3_TEST_EPOCHS=1000000 $(B)/tests/stress/stress_epochs_plain
	T3_TEST_KILLS=1000 $(B)/tests/soft/test_death_plain
	T3_TEST_CYCLES=10000 $(B)/tests/soft/test_life_plain
	T3_TEST_ROUNDS=200 $(B)/tests/soft/test_hostile_asan
