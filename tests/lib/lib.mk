# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# libt3's front, planner and meetings, plain and under the sanitizers. Those of
# the engines are elsewhere: tests of the front bring an engine of their own.

LIBT := $(B)/tests/lib
LIBT_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -O1 \
	-fno-omit-frame-pointer
LIBT_CFLAGS := $(CFLAGS_T3) -Ilib -pthread
# The front with the kernel engine, without the soft one.
LIBT_SRC := $(LIB_FRONT_SRC) $(wildcard lib/kernel/*.c) \
	kernel/core/program.c kernel/core/grid.c kernel/core/graph.c \
	kernel/core/reduce.c kernel/core/reduce_scalar.c \
	kernel/core/reduce_avx2.c kernel/core/reduce_avx512.c
LIBT_TESTS := planner front rendezvous

LIBT_planner := plan_checker plan_runner mock_engine
LIBT_front := mock_engine
LIBT_rendezvous := mock_engine

$(LIBT)/%/kernel/core/reduce_avx2.o: ISA := -mavx2 -mf16c
$(LIBT)/%/kernel/core/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$(LIBT)/plain/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIBT_CFLAGS) $(ISA) -MMD -MP -c $< -o $@

$(LIBT)/san/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIBT_CFLAGS) $(LIBT_SAN) $(ISA) -DT3_TESTS_SLOW -MMD -MP -c $< -o $@

define LIBT_rule
$(LIBT)/$(1): $(patsubst %,$(LIBT)/plain/tests/lib/%.o,test_$(1) $(LIBT_$(1))) \
		$(LIBT_SRC:%.c=$(LIBT)/plain/%.o)
	$(CC) $(LIBT_CFLAGS) $$^ -o $$@ $(LDFLAGS) -lcmocka

$(LIBT)/$(1)_san: $(patsubst %,$(LIBT)/san/tests/lib/%.o,test_$(1) $(LIBT_$(1))) \
		$(LIBT_SRC:%.c=$(LIBT)/san/%.o)
	$(CC) $(LIBT_CFLAGS) $(LIBT_SAN) $$^ -o $$@ $(LDFLAGS) -lcmocka

CHECK_SUITES += $(LIBT)/$(1) $(LIBT)/$(1)_san
endef
$(foreach t,$(LIBT_TESTS),$(eval $(call LIBT_rule,$(t))))

# The whole library, as others link it; for the kernel engine in VMs.
$(LIBT)/engines: tests/lib/test_engines.c $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -pthread -MMD -MP $^ -o $@ $(LDFLAGS) -lcmocka

# Its way through io_uring, in the same VMs.
$(LIBT)/uring: tests/lib/test_uring.c $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -pthread -MMD -MP $^ -o $@ $(LDFLAGS) -lcmocka

# The same with libdrm, which makes buffers; for the drm suites in VMs too.
$(LIBT)/dmabuf: tests/lib/test_dmabuf.c $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -isystem /usr/include/libdrm -pthread -MMD -MP $^ \
		-o $@ $(LDFLAGS) -lcmocka -ldrm

CHECK_SUITES += $(LIBT)/dmabuf
CHECK_SUITES += $(LIBT)/engines tests/lib/kernel-6.1 tests/lib/kernel-6.12
CHECK_NEEDS += $(LIBT)/uring

# Where others compile meanwhile, the exhaustive one takes minutes.
CHECK_LIMITS += lib/planner=900 lib/planner_san=900
CHECK_SUITES += tests/lib/api
CHECK_BESIDE += lib/planner lib/planner_san
CHECK_NEEDS += lib

-include $(shell find $(LIBT) -name '*.d' 2>/dev/null)
