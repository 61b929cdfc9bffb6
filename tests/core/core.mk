# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The dataflow machine: its rules and random programs (plain, and under ASan
# and UBSan), and threads that hammer it (plain, and under TSan). The core is
# compiled again for each sanitizer, so that it is watched too.

CORE_WORLD := world reference play

CORE_SAN_plain :=
CORE_SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -O1
CORE_SAN_tsan := -fsanitize=thread -O1

# $(1): plain, asan or tsan
define CORE_VARIANT
$$(B)/tests/core/$(1)/reduce_avx2.o: ISA := -mavx2 -mf16c
$$(B)/tests/core/$(1)/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$$(B)/tests/core/$(1)/%.o: kernel/core/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_T3) $$(CORE_SAN_$(1)) $$(ISA) -MMD -MP -c $$< -o $$@

$$(B)/tests/core/$(1)/%.o: tests/core/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_T3) $$(CORE_SAN_$(1)) -MMD -MP -c $$< -o $$@

CORE_OBJ_$(1) := $$(CORE_SRC:kernel/core/%.c=$$(B)/tests/core/$(1)/%.o) \
	$$(CORE_WORLD:%=$$(B)/tests/core/$(1)/%.o)

$$(B)/tests/core/test_machine_$(1) $$(B)/tests/core/test_hammer_$(1): \
$$(B)/tests/core/test_%_$(1): $$(B)/tests/core/$(1)/test_%.o $$(CORE_OBJ_$(1))
	$$(CC) $$(CORE_SAN_$(1)) $$^ -o $$@ $$(LDFLAGS) -lcmocka -lpthread
endef
$(foreach v,plain asan tsan,$(eval $(call CORE_VARIANT,$(v))))

CHECK_SUITES += $(addprefix $(B)/tests/core/test_,machine_plain machine_asan \
	hammer_plain hammer_tsan)
CHECK_BESIDE += core/test_machine_plain core/test_machine_asan

-include $(wildcard $(B)/tests/core/*/*.d)
