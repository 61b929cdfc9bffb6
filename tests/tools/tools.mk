# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3bench's own tests, and README.md's commands.

CHECK_SUITES += $(addprefix tests/tools/,options shapes json matrix death readme)
CHECK_NEEDS += $(B)/tools/t3bench
CHECK_LIMITS += tools/matrix=900
