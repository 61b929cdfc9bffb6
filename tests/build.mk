# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Tests. A suite is an executable that prints TAP, or nothing (tests/run says
# how it is judged). A fragment (tests/*/*.mk, or lib's or tools' own)
# registers its suites, built under build/tests/ or scripts under tests/:
#
#   CHECK_SUITES += $(B)/tests/core/graph
#   CHECK_LIMITS += core/graph=600		(seconds; 300 without)
#
# A suite of one thread, that no crowded machine can change (it has no deadline
# of its own), runs beside the others:
#
#	CHECK_BESIDE += core/graph
#
# What a suite needs but is not: CHECK_NEEDS += $(B)/something

-include $(wildcard tests/*/*.mk)

check-build: all $(CHECK_SUITES) $(CHECK_NEEDS)

check-run:
	@tests/run $(BROKEN:%=--failed %) $(SUITES:%=--only '%') $(CHECK_LIMITS:%=--limit %) \
		$(CHECK_BESIDE:%=--beside '%') $(CHECK_SUITES)
