# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3model's tests: its parts, plain and under the sanitizers, and the program.

MSIM := $(B)/tests/model-sim
MSIM_CFLAGS := $(CFLAGS_T3) -Ilib -Itools -Itools/model -pthread
MSIM_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -O1
MSIM_SRC := $(filter-out tools/model/measure.c,$(wildcard tools/model/*.c)) \
	tools/shapes.c

$(MSIM)/san/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(MSIM_CFLAGS) $(MSIM_SAN) -MMD -MP -c $< -o $@

$(MSIM)/plain/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(MSIM_CFLAGS) -MMD -MP -c $< -o $@

$(MSIM)/test_model: $(MSIM)/plain/tests/model-sim/test_model.o \
		$(MODEL_LIB_OBJ) $(B)/lib/libt3.a
	$(CC) $(MSIM_CFLAGS) $^ -o $@ $(LDFLAGS) -lcmocka -ljson-c -lopenblas -lm

$(MSIM)/test_model_san: $(MSIM)/san/tests/model-sim/test_model.o \
		$(MSIM_SRC:%.c=$(MSIM)/san/%.o) $(B)/tools/model/shipped.o \
		$(B)/lib/libt3.a
	$(CC) $(MSIM_CFLAGS) $(MSIM_SAN) $^ -o $@ $(LDFLAGS) -lcmocka -ljson-c -lm

CHECK_SUITES += $(MSIM)/test_model $(MSIM)/test_model_san
CHECK_SUITES += $(addprefix tests/model-sim/,paper options output)
CHECK_BESIDE += model-sim
CHECK_NEEDS += $(B)/tools/t3model

-include $(shell find $(MSIM) -name '*.d' 2>/dev/null)
