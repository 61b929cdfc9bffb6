# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The gpu engine's plan compiler, played back without a GPU. What needs a GPU is
# under tests/bench/gpu and run by hand (Documentation/gpu-engine.rst).

GPUT := $(B)/tests/gpu
GPUT_SRC := tests/gpu/test_compile.c tests/gpu/record.c lib/gpu/compile.c \
	lib/gpu/submit.c $(wildcard lib/planner*.c) lib/error.c \
	kernel/core/graph.c kernel/core/grid.c kernel/core/program.c
GPUT_FLAGS_san := -fsanitize=address,undefined -fno-sanitize-recover=all -O1

$(GPUT)/compile: GPUT_FLAGS :=
$(GPUT)/compile_san: GPUT_FLAGS := $(GPUT_FLAGS_san)
$(GPUT)/compile $(GPUT)/compile_san: $(GPUT_SRC) $(wildcard tests/gpu/*.[h] \
		tests/gpu/*.inc lib/gpu/*.h kernel/core/*.h lib/*.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -Ilib -Ilib/gpu $(GPUT_FLAGS) $(GPUT_SRC) -o $@ \
		$(LDFLAGS) -lcmocka

CHECK_SUITES += $(GPUT)/compile $(GPUT)/compile_san
CHECK_BESIDE += gpu/compile gpu/compile_san

# The engine itself, on a mocked plug-in; on a real one: build/tests/gpu/engine.
$(GPUT)/mock/libt3-cuda.so: tests/gpu/mock_runtime.c lib/gpu/runtime.h \
		$(B)/core/libt3core.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -Ilib/gpu -fPIC -shared -pthread $< $(B)/core/libt3core.a \
		-o $@ $(LDFLAGS)

$(GPUT)/engine: tests/gpu/test_engine.c tests/soft/ranks.c tests/soft/matrix.c \
		$(LIB_A) $(wildcard tests/soft/*.h lib/gpu/*.h lib/soft/*.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -Ilib -Ilib/gpu -Itests/soft -pthread \
		$(filter %.c,$^) $(LIB_A) -o $@ $(LDFLAGS) -lm

CHECK_SUITES += tests/gpu/mocked tests/gpu/hip
CHECK_NEEDS += $(GPUT)/engine $(GPUT)/mock/libt3-cuda.so

# For a machine with a GPU; not part of make check.
$(GPUT)/cuda: tests/gpu/test_cuda.cu tests/bench/gpu/gemm.cuh $(LIB_A)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -Iinclude -Iinclude/uapi \
		-gencode arch=compute_90a,code=sm_90a $< $(LIB_A) -o $@ \
		$(addprefix -L,$(CUDA_STUBS)) -lcuda -lpthread -ldl
