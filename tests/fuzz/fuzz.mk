# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Fuzzing. fuzz_plan: libFuzzer on the core's validation of plans; the core is
# built again for it with clang, which alone has libFuzzer.

FUZZ := $(B)/tests/fuzz
FUZZ_CC ?= clang
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
# The reference and the world are no target: their paths would fill the corpus.
FUZZ_CORE_OBJ := $(CORE_SRC:kernel/core/%.c=$(FUZZ)/core/%.o)
FUZZ_HELP_OBJ := $(addprefix $(FUZZ)/,fuzz_plan.o world.o reference.o play.o)

$(FUZZ)/core/reduce_avx2.o: ISA := -mavx2 -mf16c
$(FUZZ)/core/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$(FUZZ)/core/%.o: kernel/core/%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CFLAGS_T3) $(FUZZ_SAN) -fsanitize=fuzzer-no-link $(ISA) -MMD -MP -c $< -o $@

$(FUZZ)/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CFLAGS_T3) $(FUZZ_SAN) -Itests/core -MMD -MP -c $< -o $@

$(FUZZ)/%.o: tests/core/%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CFLAGS_T3) $(FUZZ_SAN) -MMD -MP -c $< -o $@

$(FUZZ)/fuzz_plan: $(FUZZ_HELP_OBJ) $(FUZZ_CORE_OBJ)
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer $^ -o $@ $(LDFLAGS)

CHECK_SUITES += tests/fuzz/plan
CHECK_NEEDS += $(FUZZ)/fuzz_plan

-include $(wildcard $(FUZZ)/*.d $(FUZZ)/core/*.d)

# ioctl: our own fuzzer of /dev/t3, static, for a virtual machine.
IOCTL_OBJ := $(addprefix $(FUZZ)/ioctl-,ioctl.o ops.o kcov.o mutate.o)

$(FUZZ)/ioctl-%.o: tests/fuzz/%.c | $(KSELFTEST_H)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -g $(WARN) -Iinclude/uapi -isystem $(KSELFTEST_H) -MMD -MP -c $< -o $@

$(FUZZ)/ioctl: $(IOCTL_OBJ)
	$(CC) -static $^ -o $@ -lpthread

# A moment of it, in the kernel of the other tests: does the fuzzer itself work?
# tests/fuzz/debug is ten minutes in the KASAN kernel.
CHECK_SUITES += tests/fuzz/smoke
CHECK_NEEDS += $(FUZZ)/ioctl
