# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Tests of the module, in VMs. One program a file of tests/kselftest, static,
# so that it runs in a guest that has no libraries; libdrm's too.

KSELFTEST_H := $(T3_CACHE)/kernels/scripts/tools/testing/selftests
KSELFTEST_SRC := $(wildcard tests/kselftest/*.c)
KSELFTESTS := $(KSELFTEST_SRC:tests/kselftest/%.c=$(B)/tests/kselftest/%)

$(B)/tests/kselftest/%: tests/kselftest/%.c $(wildcard tests/kselftest/*.h) \
		include/uapi/linux/t3.h tests/modules/exporter.h | $(KSELFTEST_H)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -g $(WARN) -Wno-unused-parameter -static -pthread \
		-Iinclude/uapi -isystem $(KSELFTEST_H) -isystem /usr/include/libdrm \
		$< -o $@ $(KSELFTEST_LIBS)

$(B)/tests/kselftest/uring: KSELFTEST_LIBS := -luring
$(B)/tests/kselftest/dmabuf $(B)/tests/kselftest/fences: KSELFTEST_LIBS := -ldrm

$(KSELFTEST_H):
	@tools/setup/fetch-kernels scripts

$(B)/tests/vm/guest: tests/vm/guest.c
	@mkdir -p $(@D)
	$(CC) -static -O2 $(WARN) -o $@ $<

# The other flavours, which no test boots, are built by tests/static/module.
MODULES := $(foreach k,6.1 6.12,$(B)/module/$(k)/t3.ko)

# A kernel with DRM: one of them in `make check`, both in `make check-drm`.
drm-needs = $(B)/module/$(1)-amd64/t3.ko \
	$(B)/tests/modules/$(1)-amd64/t3_exporter.ko

.PHONY: check-drm
check-drm: $(call drm-needs,6.1) $(call drm-needs,6.12) $(KSELFTESTS) \
		$(B)/tests/vm/guest $(B)/tests/lib/dmabuf
	@tests/run tests/vm/drm-6.1 tests/vm/drm-6.12

CHECK_NEEDS += $(call drm-needs,6.12)
CHECK_SUITES += tests/vm/drm-6.12
CHECK_LIMITS += vm/drm-6.12=660

CHECK_NEEDS += $(KSELFTESTS) $(MODULES) $(B)/tests/vm/guest
CHECK_SUITES += tests/vm/selftest tests/vm/kselftest-6.1 tests/vm/kselftest-6.12
CHECK_LIMITS += vm/selftest=900 vm/kselftest-6.1=960 vm/kselftest-6.12=960

CHECK_SUITES += tests/vm/reload

# The full counts: half an hour and more, emulated.
.PHONY: stress-vm
stress-vm: $(B)/tests/kselftest/death $(MODULES) $(B)/tests/vm/guest
	tests/vm/reload 200
	tests/vm/kills 1000
stress: stress-vm

# dmaengine is in the amd64 flavours only. One of them in make check, both, and
# bounce buffers for all DMA, in check-dma.
dma-needs = $(B)/module/$(1)-amd64/t3.ko $(B)/tests/modules/$(1)-amd64/t3_exporter.ko
CHECK_NEEDS += $(call dma-needs,6.1)
CHECK_SUITES += tests/vm/dma-6.1

check-dma: $(foreach k,6.1 6.12,$(call dma-needs,$(k))) $(B)/tests/vm/guest \
		$(B)/tests/kselftest/dma $(B)/tests/kselftest/arbitration
	tests/vm/dma 6.1
	tests/vm/dma 6.12
	tests/vm/dma 6.12 --append swiotlb=8192,force

.PHONY: check-dma
