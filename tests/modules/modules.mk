# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Test modules: build/tests/modules/NAME/*.ko, where NAME is that of t3.ko's
# own builds (tools/setup/module.mk), in which way they are built too.

TEST_MODULE_SRC := $(wildcard tests/modules/*.[ch] tests/modules/Kbuild)

$(B)/tests/modules/%/t3_exporter.ko: FORCE
	$(if $(filter running,$*),,@tools/setup/fetch-kernels $(call kernel-item,$*) >/dev/null)
	@mkdir -p $(@D)
	@find $(@D) -xtype l -delete
	@cp -rsf $(CURDIR)/kernel $(addprefix $(CURDIR)/,$(TEST_MODULE_SRC)) $(@D)/
	@flock -w 600 $(@D)/.lock $(MAKE) --no-print-directory -C $(call kernel-headers,$*) \
		M=$(abspath $(@D)) CONFIG_DEBUG_INFO_BTF_MODULES= $(KBUILD_FLAGS) modules

CHECK_NEEDS += $(foreach k,6.1 6.12,$(B)/tests/modules/$(k)/t3_exporter.ko)
