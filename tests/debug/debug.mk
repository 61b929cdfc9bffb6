# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The module's tests in kernels that watch themselves:
#
#   make check-debug	builds the kernels where they are not in the cache
#   make check DEBUG=1	these suites after all others; of a kernel that is not in
#			the cache it is said that its tests were left out
#   make coverage	lines of kernel/ and kernel/core that tests reach

.PHONY: check-debug coverage kunit debug-tests

DEBUG_SUITES := tests/debug/kasan tests/debug/kcsan
DEBUG_LIMITS := debug/kasan=4000 debug/kcsan=4000

ifdef DEBUG
CHECK_SUITES += $(DEBUG_SUITES)
CHECK_LIMITS += $(DEBUG_LIMITS)
endif

# KUnit's module: the core and its tests, in a directory of links.
kunit: $(B)/kunit/$(MODULE_NAME)/t3-core-kunit.ko

$(B)/kunit/%/t3-core-kunit.ko: FORCE
	@mkdir -p $(@D)
	@find $(@D) -xtype l -delete
	@cp -rsf $(CURDIR)/kernel $(CURDIR)/include $(CURDIR)/tests/kunit/. $(@D)/
	@ln -sfn $(CURDIR)/Kbuild $(@D)/Kbuild.t3
	@flock -w 600 $(@D)/.lock $(MAKE) --no-print-directory -C $(call kernel-headers,$*) \
		M=$(abspath $(@D)) CONFIG_DEBUG_INFO_BTF_MODULES= $(KBUILD_FLAGS) modules

debug-tests: $(KSELFTESTS) $(B)/tests/vm/guest

check-debug:
	@tools/setup/install-packages check debug-kernel
	@tools/setup/debug-kernel kasan kcsan
	@tests/run $(SUITES:%=--only '%') $(DEBUG_LIMITS:%=--limit %) $(DEBUG_SUITES)

coverage:
	@tests/debug/coverage

# The core and its native tests, each line counted.
COVERAGE := $(B)/coverage/native
$(COVERAGE)/reduce_avx2.o: ISA := -mavx2 -mf16c
$(COVERAGE)/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$(COVERAGE)/%.o: kernel/core/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -O1 --coverage -fprofile-update=atomic $(ISA) \
		-c $< -o $@

$(COVERAGE)/test_reduce: tests/unit/test_reduce.c
$(COVERAGE)/test_machine: tests/core/test_machine.c $(CORE_WORLD:%=tests/core/%.c)
$(COVERAGE)/test_hammer: tests/core/test_hammer.c $(CORE_WORLD:%=tests/core/%.c)
$(COVERAGE)/test_reduce $(COVERAGE)/test_machine $(COVERAGE)/test_hammer: \
		$(CORE_SRC:kernel/core/%.c=$(COVERAGE)/%.o)
	$(CC) $(CFLAGS_T3) $^ -o $@ $(LDFLAGS) --coverage -lcmocka -lpthread -lm

.PHONY: coverage-native
coverage-native: $(addprefix $(COVERAGE)/test_,machine hammer reduce)
