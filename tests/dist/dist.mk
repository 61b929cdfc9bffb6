# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Installing: quick here, whole in a virtual machine (make check-install).

CHECK_SUITES += tests/dist/install
CHECK_NEEDS += $(B)/tools/t3ctl
