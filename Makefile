# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3: the two commands to know are `make demo` and `make check`.
# Each folder's part of the build is its own build.mk; all outputs are under
# build/, the kernel module's too.
#
#   make                     libraries, tools
#   make demo                see it work
#   make check [SUITES=...]  all tests, or those named (see Documentation/testing.rst)
#   make module [KVER=6.1|6.12] [KFLAVOUR=cloud|amd64]
#   make module KDIR=/lib/modules/$(uname -r)/build
#   make check-dma           the dmaengine engine on more kernels
#   make check-debug         the module's tests in kernels with KASAN, KCSAN ...
#   make check-static        coccinelle, analyzers, arm64
#   make coverage            lines of kernel/ that tests reach
#   make check-install       an installation from end to end, in a virtual machine
#   make install, make uninstall [DESTDIR=...] [prefix=/usr/local]
#   make bench, bench-mpi, bench-cpu, bench-vm, bench-arbitration
#   make clean

SHELL := /bin/bash
B := build

ifeq ($(origin CC),default)
CC := gcc
endif
OPT ?= -O2
WARN := -Wall -Wextra
CFLAGS_T3 := -std=gnu11 $(OPT) -g $(WARN) -ffp-contract=off -fno-strict-aliasing \
	-fvisibility=hidden -Iinclude -Iinclude/uapi -Ikernel/core $(CFLAGS)

JOBS ?= $(shell nproc)

.DELETE_ON_ERROR:
.PHONY: all clean check check-build check-run demo demo-build bench bench-mpi \
	module FORCE

all:

include tools/setup/module.mk
include tools/dist/install.mk
include kernel/core/build.mk
include lib/build.mk
include tools/build.mk
include tests/build.mk

# What a machine lacks is installed before anything asks for it, and the build
# is another make, so that what asks pkg-config asks then.
demo:
	@tools/setup/install-packages demo
	@tools/setup/fetch-kernels demo
	@tools/setup/quietly build $(B)/logs/demo-build.log \
		$(MAKE) --no-print-directory -j$(JOBS) demo-build
	@tools/demo

demo-build: all $(B)/module/6.1/t3.ko

# What does not build is one failed test; the rest is tested all the same.
check:
	@tools/setup/install-packages check
	@tools/setup/fetch-kernels check
	@bad=; tools/setup/quietly build $(B)/logs/check-build.log \
		$(MAKE) --no-print-directory -k -j$(JOBS) check-build || bad=build; \
	$(MAKE) --no-print-directory check-run BROKEN=$$bad

clean:
	rm -rf $(B)
