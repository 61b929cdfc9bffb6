# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# make bench-cpu: fits t3model to this machine's processors, and says how well it
# then foretells t3bench. Results in build/bench/cpu.{machine,json}.

bench-cpu: $(B)/tools/t3bench $(B)/tools/t3model
	@mkdir -p $(B)/bench
	@tests/bench/run-cpu $(B)/bench/cpu.machine $(B)/bench/cpu.json

.PHONY: bench-cpu
