# SPDX-License-Identifier: GPL-2.0-only
#
# make help lists the targets. Everything that is built goes to build/.

# Recipes that need Debian packages get them through selftests/vm/setup.
SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
.DELETE_ON_ERROR:

top := $(CURDIR)
BUILD ?= $(top)/build
VM := $(top)/selftests/vm

PREFIX ?= /usr/local
KERNEL ?= 6.1
# Seconds for all tests together; the debug kernel is ten times slower.
TIMEOUT ?= $(if $(filter debug,$(KERNEL)),2700,900)

# The kernel to build for: the one that runs, if its headers are here, else the
# guest's.
running_headers := /lib/modules/$(shell uname -r)/build
ifeq ($(origin KDIR),undefined)
KDIR = $(eval KDIR := $$(or $$(wildcard $$(running_headers)),$$(shell $$(VM)/kernel headers $$(KERNEL))))$(KDIR)
endif
kernel_release = $(shell sed -n 's/.*"\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
MODULE_DIR = $(BUILD)/$(kernel_release)

.PHONY: all
all: modules lib selftests ## build everything

.PHONY: help
help: ## this list
	@echo 'make demo    two processes exchange data over two soft-RoCE devices in a guest'
	@echo 'make check   the tests, in a guest'
	@echo
	@sed -n -E 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | expand -t 16
	@echo
	@echo 'KDIR=DIR      kernel headers to build the module for'
	@echo 'KERNEL=6.1    guest to run in: 6.1, 6.12, debug, or a folder'
	@echo 'DESTDIR=DIR   PREFIX=/usr/local   where install puts things'
	@echo 'HOST=1        with demo: on this machine'"'"'s own RDMA devices, no guest'

# Header packages have no vmlinux to take the base types from; kbuild would say so each time.
no_btf = $(if $(wildcard $(KDIR)/vmlinux),,CONFIG_DEBUG_INFO_BTF_MODULES=)

# Objects land beside their sources, so each kernel gets a tree of links.
.PHONY: modules
modules: ## ibchan.ko for KDIR
	@mkdir -p $(MODULE_DIR)
	@cp -rsf $(top)/Kbuild $(top)/kmod $(top)/uapi $(MODULE_DIR)/
	+$(MAKE) -C $(KDIR) M=$(MODULE_DIR) $(if $(W),W=$(W)) $(if $(C),C=$(C)) $(no_btf) modules

.PHONY: print-module
print-module:
	@echo $(MODULE_DIR)/ibchan.ko

.PHONY: lib
lib: ## libibchan and the ibchan tool
	+$(MAKE) -C userspace BUILD=$(BUILD)/userspace all

.PHONY: selftests
selftests: lib ## the test programs
	+$(MAKE) -C selftests BUILD=$(BUILD)/selftests LIB=$(BUILD)/userspace all

.PHONY: install
install: lib ## header, library, pkg-config file, tool, udev rule
	+$(MAKE) -C userspace BUILD=$(BUILD)/userspace PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) install

.PHONY: uninstall
uninstall: ## what install put there
	+$(MAKE) -C userspace BUILD=$(BUILD)/userspace PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) uninstall

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)

# What a fresh machine lacks comes first; the rest of make needs it.
.PHONY: setup
setup:
	@$(VM)/setup build $(if $(filter 1,$(HOST)),,guest)

.PHONY: demo
demo: setup ## see above
	@echo 'building the library'
	+@$(MAKE) -s -j"$$(nproc)" lib
ifeq ($(HOST),1)
	+@test -e /dev/ibchan || { $(MAKE) -s modules && modprobe ib_core && insmod $(MODULE_DIR)/ibchan.ko; }
	@HOST=1 selftests/demo
else
	@$(VM)/run --kernel $(KERNEL) -- selftests/demo
endif

.PHONY: check
check: setup ## see above
	@echo 'building the library and the tests'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	@$(VM)/run --kernel $(KERNEL) --timeout $(TIMEOUT) -- selftests/run-tests
