# SPDX-License-Identifier: GPL-2.0-only
#
# Compile probes, read by Kbuild: each file here is compiled as part of the
# module would be, and what compiles becomes -DT3_HAS_NAME. Two with known
# answers show that the way of compiling itself is good: a compiler that fails
# for another reason is an error, never a "no".

t3-probe = $(shell $(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) \
	$(KBUILD_CFLAGS) $(KBUILD_CFLAGS_MODULE) -DMODULE \
	-DKBUILD_MODNAME='"t3"' -DKBUILD_BASENAME='"probe"' \
	-Werror -Wno-error=unused -fsyntax-only \
	$(src)/kernel/probes/$(1).c >/dev/null 2>&1 && echo y)

t3-define = $(if $(call t3-probe,$(1)),-DT3_HAS_$(2))

# Kbuild reads this more than once, and for other targets than building too.
ifneq ($(obj),)
ifneq ($(call t3-probe,known_yes),y)
$(error t3: cannot compile kernel/probes/known_yes.c, which any kernel's \
headers compile: are they complete, and of this compiler?)
endif
ifeq ($(call t3-probe,known_no),y)
$(error t3: kernel/probes/known_no.c compiles, which no kernel's headers do: \
the probes cannot be believed)
endif

ccflags-y += $(call t3-define,vm_flags_set,VM_FLAGS_SET)
ccflags-y += $(call t3-define,pin_vmas,PIN_VMAS)
ccflags-y += $(call t3-define,uring_cmd_h,URING_CMD_H)
ccflags-y += $(call t3-define,uring_sqe,URING_SQE)
ccflags-y += $(call t3-define,uring_cancel,URING_CANCEL)
ccflags-y += $(call t3-define,uring_done_res2,URING_DONE_RES2)
ccflags-y += $(call t3-define,hrtimer_setup,HRTIMER_SETUP)
ccflags-y += $(call t3-define,import_ns_token,IMPORT_NS_TOKEN)
ccflags-y += $(call t3-define,dma_buf_vmap_unlocked,DMA_BUF_VMAP_UNLOCKED)
endif
