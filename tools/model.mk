# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3model. The machines that are shipped are part of the program.

MODEL_MACHINES := $(sort $(wildcard tools/model/machines/*.machine))
MODEL_LIB_OBJ := $(patsubst tools/%.c,$(B)/tools/%.o,$(wildcard tools/model/*.c)) \
	$(B)/tools/model/shipped.o $(B)/tools/shapes.o

$(B)/tools/model/%.o: CFLAGS_T3 += -Ilib -Itools -Itools/model
$(B)/tools/t3model.o: CFLAGS_T3 += -Ilib -Itools/model

$(B)/tools/model/shipped.c: $(MODEL_MACHINES) tools/model/shipped.awk
	@mkdir -p $(@D)
	awk -f tools/model/shipped.awk $(MODEL_MACHINES) > $@

$(B)/tools/model/shipped.o: $(B)/tools/model/shipped.c
	$(CC) $(CFLAGS_T3) -MMD -MP -c $< -o $@

$(B)/tools/t3model: $(B)/tools/t3model.o $(MODEL_LIB_OBJ) $(B)/lib/libt3.a
	$(CC) $(LDFLAGS) $^ -o $@ -ljson-c -lopenblas -lpthread -lm

-include $(MODEL_LIB_OBJ:.o=.d) $(B)/tools/t3model.d

all: $(B)/tools/t3model
