# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3bench, linked with libt3. It finds the library beside itself in build/, or
# where the system has it.

BENCH_OBJ := $(patsubst tools/%.c,$(B)/tools/%.o, \
	$(wildcard tools/t3bench.c tools/bench_*.c tools/shapes.c))

$(B)/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -MMD -MP -c $< -o $@

$(B)/tools/t3bench: $(BENCH_OBJ) $(B)/lib/libt3.a
	$(CC) $(LDFLAGS) $^ -o $@ -lopenblas -ljson-c -lpthread -lm

-include $(BENCH_OBJ:.o=.d)

all: $(B)/tools/t3bench

include tools/ctl.mk
include tools/model.mk
