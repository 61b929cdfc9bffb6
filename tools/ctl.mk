# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3ctl. What the module needs of a kernel is part of the program.

CTL_OBJ := $(patsubst tools/%.c,$(B)/tools/%.o,tools/t3ctl.c $(wildcard tools/ctl/*.c)) \
	$(B)/tools/ctl/needs.o

$(B)/tools/ctl/needs.c: kernel/needs tools/ctl/needs.awk
	@mkdir -p $(@D)
	awk -f tools/ctl/needs.awk $< > $@

$(B)/tools/ctl/needs.o: $(B)/tools/ctl/needs.c
	$(CC) $(CFLAGS_T3) -Itools/ctl -MMD -MP -c $< -o $@

$(B)/tools/t3ctl: $(CTL_OBJ) $(B)/lib/libt3.a
	$(CC) $(LDFLAGS) $^ -o $@ -ljson-c -lpthread

-include $(CTL_OBJ:.o=.d)

all: $(B)/tools/t3ctl
