# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3.ko against the cache's kernels, or against any headers (KDIR=...).
# Kbuild writes its objects beside the source that it is given, so that it is
# given a directory of links: build/module/NAME, where NAME is 6.1, 6.12 (the
# cloud flavour), 6.1-amd64, 6.12-amd64, or "running" for KDIR.

T3_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/t3
export T3_CACHE

KVER ?= 6.1
KFLAVOUR ?= cloud
MODULE_NAME := $(if $(KDIR),running,$(KVER)$(filter-out -cloud,-$(KFLAVOUR)))

# Links to what is gone go too; others are made anew.
define link-module
	@mkdir -p $(1)
	@find $(1) -xtype l -delete
	@cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kernel $(CURDIR)/include $(1)/
endef

module: $(B)/module/$(MODULE_NAME)/t3.ko

# 6.1 -> 6.1-cloud
kernel-item = $(if $(findstring -,$(1)),$(1),$(1)-cloud)
kernel-headers = $(if $(filter running,$(1)),$(KDIR),$(T3_CACHE)/kernels/$(call kernel-item,$(1))/headers)

# Kbuild knows best what is out of date; two makes at once must not share its
# directory, and none waits for ever. BTF of a module needs pahole, which
# nothing here does.
$(B)/module/%/t3.ko: FORCE
	$(if $(filter running,$*),,@tools/setup/fetch-kernels $(call kernel-item,$*) >/dev/null)
	$(call link-module,$(@D))
	@flock -w 600 $(@D)/.lock $(MAKE) --no-print-directory -C $(call kernel-headers,$*) \
		M=$(abspath $(@D)) CONFIG_DEBUG_INFO_BTF_MODULES= $(KBUILD_FLAGS) modules

FORCE:
