# SPDX-License-Identifier: GPL-2.0-only OR MIT
CHECK_SUITES += tests/runner/selftest
