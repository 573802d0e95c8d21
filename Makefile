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
TIMEOUT ?= $(if $(filter debug kcsan,$(KERNEL)),4500,2400)

# The kernel to build for: the one that runs, if its headers are here, else the
# guest's.
running_headers := /lib/modules/$(shell uname -r)/build
ifeq ($(origin KDIR),undefined)
KDIR = $(eval KDIR := $$(or $$(wildcard $$(running_headers)),$$(shell $$(VM)/kernel headers $$(KERNEL))))$(KDIR)
endif
kernel_release = $(shell sed -n 's/.*"\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
MODULE_DIR = $(BUILD)/$(kernel_release)$(if $(filter 1,$(FAULTS)),-faults)$(if \
	$(filter 1,$(KCOV)),-kcov)$(if $(filter 1,$(GCOV)),-gcov)$(if $(WIRE),-wire$(WIRE))
TEST_DIR = $(MODULE_DIR)/tests

.PHONY: all
all: modules lib selftests ## build everything

.PHONY: help
help: ## this list
	@echo 'make demo    two processes exchange data over two soft-RoCE devices in a guest'
	@echo 'make check   the tests, in a guest'
	@echo 'make check-all  all suites on 6.1, 6.12 and a debug 7.2, and the campaigns'
	@echo 'make flavors the test programs as 32-bit ones, with sanitizers, in valgrind'
	@echo 'make fuzz    random commands, for MINUTES=3; on KERNEL=debug coverage guides them'
	@echo 'make coverage  how much of the module that reaches, on the debug kernel; or of a FLOOR its tests'
	@echo 'make fuzz-parsers  any bytes for what takes apart a peer'"'"'s, in user space'
	@echo 'make bench   what ibchan costs above raw verbs, in a guest'
	@echo
	@sed -n -E 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | expand -t 16
	@echo
	@echo 'KDIR=DIR      kernel headers to build the module for'
	@echo 'FAULTS=1      with modules: those whose verbs can be made to fail'
	@echo 'OBJECT=FILE   with modules: only that one, say kmod/verbs/cq.o'
	@echo 'KCOV=1        the same on the debug kernel: the code tells which way it takes'
	@echo 'GCOV=1        the same: it counts how often each line ran'
	@echo 'WIRE=2        with modules: one that says to its peers that it has that version of the wire'
	@echo 'TESTS=FOLDERS with test-modules: only kunit, kclient, bench, dmabuf or hca'
	@echo 'FLAVORS=NAMES with flavors: only m32, asan, tsan or valgrind'
	@echo 'SUITES=NAMES  with check: only these, see selftests/run-tests'
	@echo 'CHANGED=1     with check: only what has changed since SINCE=COMMIT concerns (the remote'"'"'s main)'
	@echo 'OPTIONS=WORDS with check and check-hca: of selftests/check, say "--part virtual"'
	@echo 'KERNEL=6.1    guest to run in: 6.1, 6.12, 6.12-rt, debug, 7.2, kcsan, or a folder'
	@echo 'DESTDIR=DIR   PREFIX=/usr/local   where install puts things'
	@echo 'HOST=1        with demo: on this machine'"'"'s own RDMA devices, no guest'

# Header packages have no vmlinux to take the base types from; kbuild would say so each time.
no_btf = $(if $(wildcard $(KDIR)/vmlinux),,CONFIG_DEBUG_INFO_BTF_MODULES=)

# What is built for guests is for tests: a warning of W=1 fails it. Elsewhere another compiler may
# know others.
STRICT ?= $(if $(findstring /ibchan/kernel/,$(KDIR)),1,0)
fault_flag = $(if $(filter 1,$(FAULTS)),-DIBCHAN_FAULTS=1,-UIBCHAN_FAULTS)
wire_flag = $(if $(WIRE), -DIBCHAN_WIRE_VERSION=$(WIRE))

kbuild_flags = $(if $(filter 1,$(STRICT)),W=1) KCFLAGS='$(if $(filter 1,$(STRICT)),-Werror )$(fault_flag)$(wire_flag)' $(no_btf) \
	$(if $(filter 1,$(FAULTS)),IBCHAN_FAULTS=1) $(if $(filter 1,$(KCOV)),IBCHAN_KCOV=1) $(if $(filter 1,$(GCOV)),IBCHAN_GCOV=1)

# Objects land beside their sources, so each kernel gets a tree of links; two
# builds of one tree take turns.
take_turns = mkdir -p $(TEST_DIR)/selftests && exec 9>$(MODULE_DIR)/.lock && flock 9

# Most objects of the variant whose verbs fail are those of the other one, where that is built.
reuse = $(if $(filter 1,$(FAULTS)),selftests/reuse-objects $(MODULE_DIR:-faults=) $(MODULE_DIR),:)

.PHONY: modules
modules: ## ibchan.ko for KDIR
	+@$(take_turns) && \
	mkdir -p $(MODULE_DIR)/selftests && \
	cp -rsf $(top)/Kbuild $(top)/kmod $(top)/uapi $(MODULE_DIR)/ && \
	$(if $(filter 1,$(FAULTS)),cp -rsf $(top)/selftests/faults $(MODULE_DIR)/selftests/ &&) \
	$(reuse) && \
	$(MAKE) -C $(KDIR) M=$(MODULE_DIR) $(kbuild_flags) $(or $(OBJECT),modules) 9>&-

# Only one of them, the consumer, can make verbs fail.
TESTS ?= $(if $(filter 1,$(FAULTS)),kclient,kunit kclient bench dmabuf hca)

# Kbuild does not look whether the versions of symbols that it was told of have changed.
.PHONY: test-modules
test-modules: modules ## the modules that test and measure ibchan.ko
	+@$(take_turns) && \
	cp -rsf $(top)/kmod $(top)/uapi $(top)/selftests/Kbuild $(TEST_DIR)/ && \
	cp -rsf $(top)/selftests/faults $(wildcard $(TESTS:%=$(top)/selftests/%)) $(TEST_DIR)/selftests/ && \
	find $(TEST_DIR) -maxdepth 1 -name Module.symvers ! -newer $(MODULE_DIR)/Module.symvers -delete && \
	$(reuse) && \
	$(MAKE) -C $(KDIR) M=$(TEST_DIR) $(kbuild_flags) IBCHAN_TESTS='$(TESTS)' \
		KBUILD_EXTRA_SYMBOLS=$(MODULE_DIR)/Module.symvers modules 9>&-

# The one private header that it includes comes from the source of the same series, unless NVMET is
# the folder of another one, and has to fit the nvmet.ko that will be used.
.PHONY: nvmet
nvmet: modules ## ibchan_nvmet.ko, the kernel's NVMe target over ibchan, for KDIR
	+@release=$(kernel_release) series=$$(cut -d. -f1,2 <<<"$(kernel_release)") tree=$(MODULE_DIR)/nvmet && \
	source=$${NVMET:-$$($(VM)/kernel source "$$series" drivers/nvme/target)/drivers/nvme/target} && \
	if [ "$$release" = "$$(uname -r)" ]; then root='' types=/sys/kernel/btf/vmlinux; \
	else root=$$($(VM)/kernel dir $(KERNEL)) && types=$$(echo "$$root"/boot/vmlinux-*); fi && \
	kmod/nvmet/check-layout "$$source/nvmet.h" $(KDIR) \
		"$$(echo "$$root/lib/modules/$$release/kernel/drivers/nvme/target/nvmet.ko"*)" "$$types" && \
	mkdir -p "$$tree" && exec 9>"$$tree/.lock" && flock 9 && \
	cp -rsf $(top)/kmod $(top)/uapi "$$tree/" && \
	$(MAKE) -C $(KDIR) M="$$tree/kmod/nvmet" NVMET="$$source" $(kbuild_flags) \
		KBUILD_EXTRA_SYMBOLS=$(MODULE_DIR)/Module.symvers modules 9>&- && \
	cp "$$tree/kmod/nvmet/ibchan_nvmet.ko" "$$tree/"

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
install: lib ## header, library, pkg-config file, manual, tool, udev rule
	+$(MAKE) -C userspace BUILD=$(BUILD)/userspace PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) install

.PHONY: uninstall
uninstall: ## what install put there
	+$(MAKE) -C userspace BUILD=$(BUILD)/userspace PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) uninstall

# What a kernel module elsewhere is built with. The pages are what the sources say: of the exported
# functions, and of all that the headers have.
exported = $(wildcard kmod/include/rdma/*.h)
kernel_headers = $(DESTDIR)$(PREFIX)/include/ibchan-kernel
kernel_symbols = $(DESTDIR)$(PREFIX)/lib/ibchan-kernel
kernel_hint = $(DESTDIR)$(PREFIX)/lib/pkgconfig/ibchan-kernel.pc
kernel_pages = $(DESTDIR)$(PREFIX)/share/man/man9
kernel_doc = perl "$$($(VM)/kernel source 6.1 scripts/kernel-doc)/scripts/kernel-doc" -man
version = $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

.PHONY: install-kernel
install-kernel: modules ## for kernel modules elsewhere: headers, symbol versions for KDIR, pkg-config file, man 9
	install -D -m 644 -t $(kernel_headers)/rdma $(exported)
	install -D -m 644 -t $(kernel_headers)/linux uapi/linux/*.h
	install -D -m 644 -t $(kernel_symbols)/$(kernel_release) $(MODULE_DIR)/Module.symvers
	install -d $(dir $(kernel_hint)) $(kernel_pages)
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(version)|' kmod/ibchan-kernel.pc.in >$(kernel_hint)
	exporting=$$(grep -l '^EXPORT_SYMBOL_NS_GPL' kmod/*/*.c) && \
	{ $(kernel_doc) $$(sed -n 's/^EXPORT_SYMBOL_NS_GPL(\([a-z0-9_]*\),.*/-function \1/p' $$exporting) $$exporting && \
	$(kernel_doc) $(exported); } | awk -F '"' -v out=$(kernel_pages) \
		'/^\.TH / { close(page); page = $$4; sub(/.* /, "", page); page = out "/" page ".9" } { print >page }'

.PHONY: uninstall-kernel
uninstall-kernel: ## what install-kernel put there, for all kernels
	rm -rf $(kernel_headers) $(kernel_symbols) $(kernel_hint)
	rm -f $(kernel_pages)/ibchan_*.9 $(kernel_pages)/__ibchan_*.9

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)

# What a fresh machine lacks comes first; the rest of make needs it.
.PHONY: setup
setup:
	@$(VM)/setup build $(if $(filter 1,$(HOST)),,guest)

.PHONY: demo
demo: export STRICT ?= 0
demo: setup ## see above
	@echo 'building the library'
	+@$(MAKE) -s -j"$$(nproc)" lib
ifeq ($(HOST),1)
	+@test -e /dev/ibchan || { $(MAKE) -s modules && modprobe rdma_cm && insmod $(MODULE_DIR)/ibchan.ko; }
	@HOST=1 selftests/demo
else
	@$(VM)/run --kernel $(KERNEL) -- selftests/demo
endif

.PHONY: shell
shell: setup ## a prompt in a guest with two RDMA devices, 10.77.0.1 and 10.77.0.2
	+@$(MAKE) -s lib
	@$(VM)/run --kernel $(KERNEL) --shell

# In two guests, since the kernel's NVMe host and target both work in the first network namespace.
.PHONY: demo-storage
demo-storage: setup ## a storage target and its host in two guests, beside the kernel's own transport
	+@$(MAKE) -s nvmet KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/pair --kernels $(KERNEL),$(KERNEL) --timeout 900 -- selftests/storage/demo

.PHONY: bench-storage
bench-storage: setup ## instructions of an I/O over ibchan_nvmet and over nvmet-rdma; CLOCK=1: by the clock
	+@$(MAKE) -s nvmet KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/run --kernel $(KERNEL) --mem 3072 --timeout $(TIMEOUT) $(if $(CLOCK),,--icount) \
		-- selftests/storage/measure $(if $(CLOCK),--clock)

# The test modules are for the guest's kernel, which need not be that of KDIR. What is compiled here
# goes through sparse as well, on one kernel: its finds are the same on the others. Only some suites
# need the module whose verbs fail.
.PHONY: check-programs
check-programs: setup ## what check runs; a warning fails it
	@$(VM)/setup rust
	@echo 'building the library, the tests and the test modules for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests WERROR=1
	+@build="$(MAKE) -s -j$$(nproc) KDIR=$$($(VM)/kernel headers $(KERNEL)) $(sparse)" && \
	$$build test-modules TESTS='kunit kclient dmabuf' \
	$(if $(strip $(SUITES)),$(if $(filter kernel faults window,$(SUITES)),$(and_faults)),$(and_faults))

and_faults = && $$build test-modules FAULTS=1
sparse = $(if $(filter 6.1,$(KERNEL)),C=1 CF=-Wsparse-error)

# The rest that is built for a guest's kernel: of what only measures, and of the HCAs, one kernel tells.
.PHONY: other-modules
other-modules: setup
	+@build="$(MAKE) -s -j$$(nproc) KDIR=$$($(VM)/kernel headers $(KERNEL)) $(sparse)" && \
	$(if $(filter 6.1,$(KERNEL)),$$build test-modules &&) $$build nvmet

.PHONY: check
check: check-programs ## see above
	+@names='$(strip $(SUITES))'; \
	if [ '$(CHANGED)' = 1 ]; then \
		names=$$(selftests/changed $(SINCE) | xargs) && echo "concerned: $${names:-nothing}"; \
		[ -n "$$names" ] || exit 0; \
	fi; \
	if [[ " $$names " == *' storage '* ]]; then $(MAKE) -s other-modules; fi; \
	selftests/check --kernel $(KERNEL) $(OPTIONS) $$names

.PHONY: check-all
check-all: ## see above
	+@selftests/check-all

# Behind an IOMMU; an Ethernet port, with -2 behind the name two, with -ib InfiniBand ones.
HCA ?= mlx5-2 mlx5-ib
HCA_SUITES ?= hca_reports hca hello data post busy law_memory memory rare shim_limits shim_vrf kunit \
	kclient

.PHONY: check-hca
check-hca: check-programs ## the data tests on HCAs like HCA="mlx5-2 mlx5-ib", see selftests/hca
	@OPTIONS='$(OPTIONS)' selftests/hca/check $(KERNEL) "$(strip $(HCA_SUITES))" $(HCA)

# One is on 6.1 and the other on 6.12.
.PHONY: check-pair
check-pair: setup ## the tests that take two guests, which a network connects
	@echo 'building the library and the tests'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	@$(VM)/pair -- selftests/pair-tests

.PHONY: check-pair-wire
check-pair-wire: setup ## some of them between a version of the wire and the next one
	@echo 'building the library and the tests'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	@$(VM)/pair --variants ,WIRE=2 -- selftests/pair-tests versions

# What check runs of these is short. A run may last longer than it was told to: the last round
# is not cut off.
campaign_timeout = $$(($(1) + $(TIMEOUT)))

.PHONY: network
network: MINUTES ?= 10
network: setup ## traffic over a network that loses, repeats and spoils packets; MINUTES=10
	@echo 'building the library, the tests and the test modules for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	+@$(MAKE) -s -j"$$(nproc)" test-modules TESTS=dmabuf KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/run --kernel $(KERNEL) --timeout $(call campaign_timeout,$(MINUTES) * 60) \
		-- selftests/network $(MINUTES)

.PHONY: unplug
unplug: ROUNDS ?= 200
unplug: setup ## devices that leave under load, in all ways; ROUNDS=200, LIKE=mlx5: HCAs for tests
	@echo 'building the library, the tests and the test modules for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	+@$(MAKE) -s -j"$$(nproc)" test-modules TESTS="kclient hca" KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/run --kernel $(KERNEL) --timeout $(call campaign_timeout,$(ROUNDS) * 60) \
		$(if $(LIKE),--hca $(LIKE) --iommu) \
		-- selftests/unplug/unplug $(ROUNDS)

.PHONY: check-storage
check-storage: check-programs other-modules ## the kernel's NVMe target over ibchan; STORAGE=--short or --long
	@IBCHAN_STORAGE=$(STORAGE) $(VM)/run --kernel $(KERNEL) --mem 3072 --timeout $(TIMEOUT) \
		-- selftests/run-tests storage

# In two guests: the target's kernel, and the host's.
.PHONY: check-storage-pair
check-storage-pair: KERNELS ?= 6.1,6.12
check-storage-pair: setup ## a target and a stock host of another kernel; KERNELS=6.1,6.12
	@echo 'building ibchan_nvmet'
	+@kernel=$$(cut -d, -f1 <<<'$(KERNELS)') && \
	$(MAKE) -s nvmet KERNEL="$$kernel" KDIR="$$($(VM)/kernel headers "$$kernel")"
	@$(VM)/pair --kernels $(KERNELS) --smp 2 --timeout $(TIMEOUT) -- selftests/storage/crosswise

# ATTACKS="fuse queues" for some of them only.
.PHONY: neighbours
neighbours: setup ## how long a hostile user holds up others, on a device and beside it
	@echo 'building the library, the tests and the module for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	+@$(MAKE) -s -j"$$(nproc)" modules KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/run --kernel $(KERNEL) --timeout $(TIMEOUT) -- selftests/neighbours/neighbours $(ATTACKS)

.PHONY: soak
soak: KERNEL = debug
soak: MINUTES ?= 20
soak: check-programs ## a mixture of the tests for MINUTES=20, on the debug kernel; nothing may grow
	@selftests/soak/soak --kernel $(KERNEL) --minutes $(MINUTES)

FLAVORS ?= m32 asan tsan valgrind
flags_m32 := -O2 -g -m32
flags_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined
flags_tsan := -O1 -g -fsanitize=thread
flags_valgrind := -O1 -g

.PHONY: flavors $(addprefix flavor-,$(FLAVORS))
flavors: ## see above
	@$(VM)/setup build guest flavors
	@echo 'building the library and the tests as $(FLAVORS)'
	+@$(MAKE) -s -j"$$(nproc)" $(addprefix flavor-,$(FLAVORS))
	+@$(MAKE) -s test-modules TESTS=dmabuf KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@$(VM)/run --kernel $(KERNEL) --timeout $(TIMEOUT) -- selftests/flavors/flavors $(FLAVORS)

# All programs as 32-bit ones, which the kernel sees; else the library's, which the tools see.
# The tool's JSON library is there for this machine's own word size only.
library_tests := $(notdir $(basename $(wildcard $(top)/selftests/shim*_test.c)))
$(addprefix flavor-,$(FLAVORS)): flavor-%:
	+@$(MAKE) -s selftests BUILD=$(BUILD)/flavors/$* CFLAGS='$(flags_$*)' \
		$(if $(filter m32,$*),TOOL=no,PROGRAMS='$(library_tests)')

# Only the debug kernel has KCOV. The corpus that comes of it lies in the result folder.
fuzz_variant = $(if $(filter debug,$(KERNEL)),KCOV=1)

.PHONY: fuzz
fuzz coverage fuzz-parsers: MINUTES ?= 3
fuzz: setup ## see above; SEED=N repeats a run
	@echo 'building the library, the fuzzer and what it needs for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	+@$(MAKE) -s test-modules TESTS=dmabuf $(fuzz_variant) KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@IBCHAN_MINUTES=$(MINUTES) IBCHAN_SEED=$(SEED) $(VM)/run --kernel $(KERNEL) \
		$(if $(fuzz_variant),--variant $(fuzz_variant)) \
		--timeout $$(($(MINUTES) * 60 + 1200)) -- selftests/run-tests fuzzing

# How much of the module's code that reaches, or other tests: COVER="abi connect". FLOOR=connect: how
# much of a floor those tests reach that run when it has changed.
COVER ?= $(if $(FLOOR),$(shell selftests/changed --of kmod/$(FLOOR)/),fuzzing)

.PHONY: coverage
coverage: KERNEL := debug
coverage: setup ## see above
	@echo 'building the library, the tests and what they need for $(KERNEL)'
	+@$(MAKE) -s -j"$$(nproc)" selftests
	+@$(MAKE) -s test-modules TESTS='dmabuf$(if $(FLOOR), kclient kunit)' GCOV=1 KDIR="$$($(VM)/kernel headers $(KERNEL))"
	@rm -rf $(BUILD)/results/$(KERNEL)/gcov
	@IBCHAN_MINUTES=$(MINUTES) IBCHAN_SEED=$(SEED) $(VM)/run --kernel $(KERNEL) --variant GCOV=1 \
		--timeout $$(($(MINUTES) * 60 + 1200)) -- selftests/fuzz/coverage collect $(COVER)
	@selftests/fuzz/coverage report $(BUILD)/results/$(KERNEL)/gcov \
		$(BUILD)/$$($(VM)/kernel release $(KERNEL))-gcov $(FLOOR)

# On this machine, without a kernel.
.PHONY: fuzz-parsers
fuzz-parsers: ## see above
	@$(VM)/setup build fuzz
	+@$(MAKE) -s -C selftests BUILD=$(BUILD)/selftests parsers
	@IBCHAN_SEED=$(SEED) selftests/fuzz/parsers $$(($(MINUTES) * 30))

.PHONY: bench
bench: ## see above; BENCH=--no-gate only reports, BENCH=--no-clock is shorter
	@selftests/bench/bench --kernel $(KERNEL) $(BENCH)

# The stubs of the kernel are for 6.1.
.PHONY: count
count: setup ## instructions of a post in ibchan.ko and libibchan, by function, without a guest; CASE=user.write; WALK=1: its way
	+@$(MAKE) -s lib
	+@$(MAKE) -s modules KDIR="$$($(VM)/kernel headers 6.1)"
	@selftests/bench/count/count $(if $(WALK),--walk) $(CASE)

.PHONY: profile
profile: ## of which functions the instructions of CASE=user.write_64 are; OWN=1: of a device without a cost
	@selftests/bench/profile/profile --kernel $(KERNEL) $(if $(filter 1,$(OWN)),--own) $(CASE)
