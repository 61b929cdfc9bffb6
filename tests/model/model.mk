# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The spin models of the dataflow machine: Documentation/model.rst.

CHECK_SUITES += tests/model/run
CHECK_LIMITS += model/run=1800
CHECK_BESIDE += model

.PHONY: check-model check-model-deep
check-model:
	tests/model/run
check-model-deep:
	tests/model/run --deep
