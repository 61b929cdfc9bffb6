# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3bench's and t3ctl's tests, and README.md's commands.

CHECK_SUITES += $(addprefix tests/tools/,options shapes json matrix death ctl readme)
CHECK_NEEDS += $(B)/tools/t3bench $(B)/tools/t3ctl
CHECK_LIMITS += tools/matrix=900
