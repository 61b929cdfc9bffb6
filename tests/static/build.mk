# SPDX-License-Identifier: GPL-2.0-only OR MIT
CHECK_SUITES += tests/static/checkpatch tests/static/headers \
	tests/static/kernel-doc tests/static/module
CHECK_LIMITS += static/module=900 static/checkpatch=900
CHECK_BESIDE += static
