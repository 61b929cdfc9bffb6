# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# make bench-arbitration: what each policy does to the GEMM and to the epoch.

bench-arbitration-build: $(B)/tools/t3bench $(B)/module/6.1/t3.ko $(B)/tests/vm/guest

bench-arbitration:
	@tools/setup/install-packages check
	@tools/setup/fetch-kernels demo
	@$(MAKE) --no-print-directory -j$(JOBS) bench-arbitration-build
	@tests/bench/bench-arbitration

.PHONY: bench-arbitration bench-arbitration-build
