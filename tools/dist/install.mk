# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make install [DESTDIR=...] [prefix=/usr/local]
#   make uninstall		what make install has put there, and nothing else
#
# Without DESTDIR the running system is set up too: the group, the device's
# rule, the module by DKMS (tools/dist/setup-system).

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
# Where DKMS looks, whatever the prefix.
srcdir := /usr/src
# A package's files lie below /usr/lib; what an administrator installs by hand
# lies below /etc, where every systemd looks whatever the prefix.
sysconfdir ?= /etc
confdir := $(if $(filter /usr,$(prefix)),/usr/lib,$(sysconfdir))
udevdir ?= $(confdir)/udev/rules.d
sysusersdir ?= $(confdir)/sysusers.d
modulesloaddir ?= $(confdir)/modules-load.d

DIST = DESTDIR='$(DESTDIR)' B='$(B)' version='$(T3_VERSION)' prefix='$(prefix)' \
	bindir='$(bindir)' libdir='$(libdir)' includedir='$(includedir)' \
	mandir='$(mandir)' srcdir='$(srcdir)' udevdir='$(udevdir)' \
	sysusersdir='$(sysusersdir)' modulesloaddir='$(modulesloaddir)'

.PHONY: install install-lib uninstall

install: all
	@$(if $(DESTDIR),,tools/dist/setup-system unbuild $(T3_VERSION) $(prefix))
	@$(DIST) tools/dist/install lib tools module system
	@$(if $(DESTDIR),,tools/dist/setup-system install $(T3_VERSION) $(prefix))

install-lib: lib
	@$(DIST) tools/dist/install lib

uninstall:
	@$(if $(DESTDIR),,tools/dist/setup-system remove $(T3_VERSION) $(prefix))
	@$(DIST) tools/dist/install -u
	@$(if $(DESTDIR),,tools/dist/setup-system removed $(T3_VERSION) $(prefix))
