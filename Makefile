# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# t3: the two commands to know are `make demo` and `make check`.
# Each folder's part of the build is its own build.mk; all outputs are under
# build/, but for the kernel module's, which Kbuild puts where it is told.

SHELL := /bin/bash
B := build

CC ?= gcc
OPT ?= -O2
WARN := -Wall -Wextra
CFLAGS_T3 := -std=gnu11 $(OPT) -g $(WARN) -ffp-contract=off -fno-strict-aliasing \
	-fvisibility=hidden -Iinclude -Iinclude/uapi -Ikernel/core $(CFLAGS)

.DELETE_ON_ERROR:
.PHONY: all clean check demo bench bench-mpi

all:

include kernel/core/build.mk
include lib/build.mk
include tools/build.mk
include tests/build.mk

clean:
	rm -rf $(B)
