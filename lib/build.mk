# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# libt3: build/lib/libt3.so.VERSION with its links, libt3.a (the core within),
# libt3.pc (as it would be installed: tools/dist).

# The one version number is in include/t3.h.
T3_VERSION := $(shell awk '$$2 ~ /^T3_VERSION_(MAJOR|MINOR|PATCH)$$/ \
	{ v = v s $$3; s = "." } END { print v }' include/t3.h)
T3_SONAME := libt3.so.$(firstword $(subst ., ,$(T3_VERSION)))

# The engines are folders, so that tests can link the front without them.
LIB_FRONT_SRC := $(wildcard lib/*.c)
LIB_SRC := $(LIB_FRONT_SRC) $(wildcard lib/kernel/*.c lib/soft/*.c lib/gpu/*.c)
LIB_FRONT_OBJ := $(LIB_FRONT_SRC:%.c=$(B)/%.o)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
LIB_SO := $(B)/lib/libt3.so.$(T3_VERSION)
LIB_A := $(B)/lib/libt3.a

$(B)/lib/%.o: lib/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) -fPIC -pthread -MMD -MP -c $< -o $@

$(LIB_SO): $(LIB_OBJ) $(B)/core/libt3core.a lib/libt3.map
	$(CC) $(CFLAGS_T3) -shared -pthread -Wl,-soname,$(T3_SONAME) \
		-Wl,--version-script=lib/libt3.map -Wl,-z,defs -Wl,-z,relro,-z,now \
		$(LIB_OBJ) -Wl,--exclude-libs,ALL $(B)/core/libt3core.a -o $@ $(LDFLAGS)

$(B)/lib/$(T3_SONAME): $(LIB_SO)
	ln -sfn $(<F) $@

$(B)/lib/libt3.so: $(B)/lib/$(T3_SONAME)
	ln -sfn $(<F) $@

$(LIB_A): $(LIB_OBJ) $(CORE_OBJ)
	rm -f $@ && ar rcs $@ $^

$(B)/lib/libt3.pc: lib/libt3.pc.in include/t3.h
	@mkdir -p $(@D)
	sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
		-e 's|@includedir@|$(includedir)|' -e 's|@version@|$(T3_VERSION)|' $< > $@

# The gpu engine's plug-ins: one source, compiled for each runtime whose compiler
# is here. Their kernels are inside: an installed t3 needs no compiler.
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
HIPCC ?= $(shell command -v hipcc)
HIP_ARCHS ?= gfx90a
CUDA_STUBS := $(wildcard $(dir $(NVCC))../lib64/stubs $(dir $(NVCC))../lib/stubs)
PLUGIN_SRC := lib/gpu/plugin.cu
PLUGIN_DEPS := $(PLUGIN_SRC) lib/gpu/kernels.cuh lib/gpu/names.cuh lib/gpu/runtime.h
PLUGIN_FLAGS := -std=c++20 -O2 -Iinclude -Iinclude/uapi
PLUGINS := $(if $(NVCC),$(B)/lib/libt3-cuda.so) $(if $(HIPCC),$(B)/lib/libt3-hip.so)

$(B)/lib/libt3-cuda.so: $(PLUGIN_DEPS)
	@mkdir -p $(@D)
	$(NVCC) $(PLUGIN_FLAGS) -gencode arch=compute_80,code=compute_80 \
		-gencode arch=compute_90,code=sm_90 \
		-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -shared \
		$(PLUGIN_SRC) -o $@ $(addprefix -L,$(CUDA_STUBS)) -lcuda

$(B)/lib/libt3-hip.so: $(PLUGIN_DEPS)
	@mkdir -p $(@D)
	$(HIPCC) $(PLUGIN_FLAGS) -DT3_GPU_HIP $(addprefix --offload-arch=,$(HIP_ARCHS)) \
		-x hip -fPIC -fvisibility=hidden -Wall -Wextra -shared \
		$(PLUGIN_SRC) -o $@

.PHONY: lib plugins
plugins: $(PLUGINS)
	$(if $(NVCC),,@echo "libt3-cuda.so is left out: there is no nvcc")
	$(if $(HIPCC),,@echo "libt3-hip.so is left out: there is no hipcc")

lib: $(B)/lib/libt3.so $(LIB_A) $(B)/lib/libt3.pc plugins
all: lib

-include $(LIB_OBJ:.o=.d)
