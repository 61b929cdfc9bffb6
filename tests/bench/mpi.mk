# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# make bench-mpi: t3, a hand-written floor and Open MPI, the same
# reduce-scatter side by side. Results in build/bench/mpi.json.

$(B)/bench/bench_floor: tests/bench/bench_floor.c tests/bench/reduce_scatter.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T3) $< -o $@ $(LDFLAGS)

$(B)/bench/bench_mpi: tests/bench/bench_mpi.c tests/bench/reduce_scatter.h tests/bench/count_bytes.h
	@mkdir -p $(@D)
	OMPI_CC=$(CC) mpicc $(CFLAGS_T3) $< -o $@ $(LDFLAGS)

bench-mpi-build: $(B)/tools/t3bench $(B)/bench/bench_floor $(B)/bench/bench_mpi

# As for demo: install first, then another make builds.
bench-mpi:
	@tools/setup/install-packages bench-mpi
	@$(MAKE) --no-print-directory -j$(JOBS) bench-mpi-build
	@tests/bench/bench-mpi $(B)/bench/mpi.json

.PHONY: bench-mpi-build
