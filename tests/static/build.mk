# SPDX-License-Identifier: GPL-2.0-only OR MIT
CHECK_SUITES += tests/static/checkpatch tests/static/headers \
	tests/static/kernel-doc tests/static/module
CHECK_LIMITS += static/module=900 static/checkpatch=900
CHECK_BESIDE += static

# Longer ones: make check-static.
.PHONY: check-static
check-static:
	@tools/setup/install-packages check check-static
	@tools/setup/fetch-kernels check source
	@tests/run $(SUITES:%=--only '%') --timeout 2400 tests/static/module tests/static/deep
