# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Installing: quick in make check, below a DESTDIR; whole, with DKMS and a
# reboot, in a virtual machine by
#
#   make check-install

CHECK_SUITES += tests/dist/install
CHECK_NEEDS += $(B)/tools/t3ctl

.PHONY: check-install
check-install:
	@tools/setup/install-packages check check-install
	@tools/setup/guest-root
	@tools/setup/quietly build $(B)/logs/check-install-build.log \
		$(MAKE) --no-print-directory -j$(JOBS) all $(B)/tests/vm/guest
	@tests/run --limit dist/vm=2600 tests/dist/vm
