# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The frozen ABI, on the machine that builds; tests/kselftest/abi.c holds a
# loaded module against the same table.

$(B)/tests/uapi/frozen: tests/uapi/frozen.c tests/uapi/frozen.h include/uapi/linux/t3.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) $(WARN) -Iinclude/uapi $< -o $@

CHECK_SUITES += $(B)/tests/uapi/frozen tests/uapi/complete
