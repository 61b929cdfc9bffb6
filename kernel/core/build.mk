# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The core, built natively: build/core/libt3core.a for libt3, tools and tests.

CORE_SRC := $(wildcard kernel/core/*.c)
CORE_OBJ := $(CORE_SRC:kernel/core/%.c=$(B)/core/%.o)

# The vector files name their own instruction sets; nothing else may use them.
$(B)/core/reduce_avx2.o: ISA := -mavx2 -mf16c
$(B)/core/reduce_avx512.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c

$(B)/core/%.o: kernel/core/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -fPIC $(ISA) -MMD -MP -c $< -o $@

$(B)/core/libt3core.a: $(CORE_OBJ)
	rm -f $@ && ar rcs $@ $^

-include $(CORE_OBJ:.o=.d)
