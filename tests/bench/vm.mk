# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# make bench-vm: /dev/t3 and Open MPI with CMA, the same reduce-scatter side by
# side in one virtual machine. Results in build/bench/vm.json.

$(B)/bench/bench_mpi_count: tests/bench/bench_mpi.c tests/bench/count_bytes.c \
		tests/bench/reduce_scatter.h tests/bench/count_bytes.h
	@mkdir -p $(@D)
	OMPI_CC=$(CC) mpicc $(CFLAGS_T3) -DCOUNT_BYTES -fvisibility=default -fno-builtin \
		-fno-tree-loop-distribute-patterns -rdynamic \
		$(filter %.c,$^) -o $@ $(LDFLAGS)

$(B)/bench/bench_tile: tests/bench/bench_tile.c $(wildcard tests/kselftest/*.h) \
		include/uapi/linux/t3.h | $(KSELFTEST_H)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -g $(WARN) -Wno-unused-parameter -static \
		-Iinclude/uapi -isystem $(KSELFTEST_H) $< -o $@

bench-vm-build: $(B)/tools/t3bench $(B)/bench/bench_mpi \
	$(B)/bench/bench_mpi_count $(B)/bench/bench_tile $(B)/module/6.1/t3.ko

bench-vm:
	@tools/setup/install-packages bench-vm
	@tools/setup/fetch-kernels 6.1-cloud scripts
	@$(MAKE) --no-print-directory -j$(JOBS) bench-vm-build
	@tests/bench/bench-vm $(B)/bench/vm.json

.PHONY: bench-vm bench-vm-build
