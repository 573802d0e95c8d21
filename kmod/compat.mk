# SPDX-License-Identifier: GPL-2.0-only
#
# What differs between kernels (kmod/trace/compat.h), asked of the headers themselves.
ibchan-has = $(shell grep -qE '$(1)' $(srctree)/include/linux/$(2) 2>/dev/null && echo -D$(3))
ccflags-y += $(call ibchan-has,void vm_flags_set.,mm.h,IBCHAN_HAVE_VM_FLAGS_SET)
ccflags-y += $(call ibchan-has,EXPORT_SYMBOL_NS_GPL.*"GPL". ns.,export.h,IBCHAN_HAVE_STRING_SYMBOL_NS)
ccflags-y += $(call ibchan-has,int dma_buf_vmap_unlocked.,dma-buf.h,IBCHAN_HAVE_DMA_BUF_VMAP_UNLOCKED)
ibchan-has-file = $(shell test -e $(srctree)/include/$(1) && echo -D$(2))
ccflags-y += $(call ibchan-has-file,net/ipv6_stubs.h,IBCHAN_HAVE_IPV6_STUBS)

# What drivers do no header tells: see kmod/verbs/quirks.c for IBCHAN_RXE_*, kmod/trace/compat.h for the rest.
ibchan-version := $(shell expr $(VERSION) \* 1000 + $(PATCHLEVEL))
ccflags-$(shell expr $(ibchan-version) \>= 6002 \& $(ibchan-version) \< 7002 | tr 10 yn) += \
	-DIBCHAN_RXE_ERR_IS_UNSAFE=1
ccflags-$(shell expr $(ibchan-version) \< 6002 | tr 10 yn) += \
	-DIBCHAN_RXE_ERR_KEEPS_MR=1 -DIBCHAN_RXE_FLUSHES_IN_BH=1
ccflags-$(shell expr $(ibchan-version) \< 6003 | tr 10 yn) += -DIBCHAN_PIN_IS_UNKILLABLE=1
ccflags-$(shell expr $(ibchan-version) \< 6004 | tr 10 yn) += -DIBCHAN_RXE_EVENT_OUTLIVES_CQ=1
ccflags-$(shell expr $(ibchan-version) \>= 6004 | tr 10 yn) += -DIBCHAN_RXE_RESET_KEEPS_PACKET=1
ccflags-$(shell expr $(ibchan-version) \< 6005 | tr 10 yn) += -DIBCHAN_PIN_TAKES_FILES=1
ccflags-$(shell expr $(ibchan-version) \< 6010 | tr 10 yn) += -DIBCHAN_RXE_READS_ON=1
