# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of this directory share. Sourced, never run.

# depmod, modprobe and others are outside the path of an ordinary user.
PATH=$PATH:/usr/sbin:/sbin

# Progress goes to standard error: standard output belongs to the answer or to the command.
note() {
	printf 'vm: %s\n' "$*" >&2
}

die() {
	note "$*"
	exit 1
}

vm_cache() {
	printf '%s/ibchan\n' "${XDG_CACHE_HOME:-$HOME/.cache}"
}

# with_progress LABEL COMMAND...: the command's output is of interest only when it fails; its
# last line every five seconds shows that it moves on.
with_progress() {
	local label=$1 log rc=0

	shift
	log=$(mktemp)
	"$@" </dev/null >"$log" 2>&1 &
	await "$label" "$log" $! || rc=$?
	if [ "$rc" -ne 0 ]; then
		tail -n 30 "$log" >&2
		note "$label: failed with $rc"
	fi
	rm -f "$log"
	return "$rc"
}

# with_ticker LABEL COMMAND...: the same with the command's output shown as it comes.
with_ticker() {
	local label=$1

	shift
	"$@" </dev/null >&2 &
	await "$label" /dev/null $!
}

await() {
	local label=$1 log=$2 pid=$3 rc=0 started=$SECONDS

	# shellcheck disable=SC2064 # this process, not a later one
	trap "kill $pid 2>/dev/null; exit 143" INT TERM HUP
	while ! timeout 5 tail --pid="$pid" -f /dev/null; do
		note "$label: $((SECONDS - started)) s: $(last_line "$log")"
	done
	wait "$pid" || rc=$?
	trap - INT TERM HUP
	return "$rc"
}

last_line() {
	tail -c 300 "$1" | tr '\r' '\n' | sed '/^[[:space:]]*$/d' | tail -n 1 | cut -c 1-90
}

# build_module KERNEL [VARIABLE...]: prints the module; nothing where there is no tree.
build_module() {
	local top headers module

	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
	if [ ! -e "$top/Makefile" ]; then return; fi
	headers=$("$top/selftests/vm/kernel" headers "$1")
	with_ticker "building ibchan.ko for $1" make -s -C "$top" modules KDIR="$headers" "${@:2}"
	module=$(make -s -C "$top" print-module KDIR="$headers" "${@:2}")
	[ -e "$module" ] || die "make modules did not build $module"
	echo "$module"
}

# build_hca KERNEL: prints the module of the HCA for tests.
build_hca() {
	local top headers module

	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
	headers=$("$top/selftests/vm/kernel" headers "$1")
	with_ticker "building ibchan_hca.ko for $1" \
		make -s -C "$top" test-modules TESTS=hca KDIR="$headers"
	module=$(make -s -C "$top" print-module KDIR="$headers")
	echo "${module%/*}/tests/selftests/hca/ibchan_hca.ko"
}

# It panicked before its first process had a root, where nothing of this tree had run yet. That
# happens once in some thousand boots.
died_booting() {
	! grep -q ' booted$' "$1/.vm/times" 2>/dev/null && ! grep -q ibchan "$1/console.log"
}

# The kernel patches its code behind a breakpoint, and waits until no CPU can have that any more.
# An emulated one may have it for longer: it stops at an instruction that is none. RIP is behind
# the breakpoint's byte.
stopped_at_no_breakpoint() {
	local code

	code=$(sed -n 's/.* Code: //p' <<<"$1" | head -n 1)
	[[ $1 == *'int3: 0000 [#1]'* && $code == *'<'* && $code != *'cc <'* ]]
}

# since_first_splat LOG
since_first_splat() {
	local here=${BASH_SOURCE[0]%/*} line

	line=$(grep -n '' "$1" | grep -E -v -f <(sed -n 's/^allow //p' "$here/splats") |
		grep -E -m 1 -f <(sed -n 's/^splat //p' "$here/splats") || true)
	[ -z "$line" ] || tail -n "+${line%%:*}" "$1" | tr -d '\r'
}

# A fault becomes a double one when the CPU cannot push its frame. It has happened once in some
# hundred guests, outside of the module and on a stack that the instruction before had written to:
# the emulated CPU's doing; a breakpoint that is none, once in some thousand. Where a test has
# failed before, or the kernel has complained of anything else, or a module of this tree is in the
# trace, it is not taken for that.
died_of_its_cpu() {
	local said

	said=$(since_first_splat "$1/console.log")
	case ${said%%$'\n'*} in
	*'double fault'[:,]*) ;;
	*'int3: '*) stopped_at_no_breakpoint "$said" || return 1 ;;
	*) return 1 ;;
	esac
	[[ $said != *'[ibchan'* ]] && ! grep -qE '^ *not ok' "$1/output.log"
}

# kernel_lines RESULTS: what the kernel has said. A guest that died has left no kernel.log, one
# that did not has left most of it twice.
kernel_lines() {
	local log

	for log in "$1/kernel.log" "$1/console.log"; do
		if [ -e "$log" ]; then tr -d '\r' <"$log"; fi
	done | awk '!seen[$0]++'
}

# find_splats RESULTS [N]: the lines that tell that something is broken, with N lines behind each.
find_splats() {
	local here=${BASH_SOURCE[0]%/*}

	kernel_lines "$1" | grep -E -v -f <(sed -n 's/^allow //p' "$here/splats") |
		grep -E -A "${2-0}" -f <(sed -n 's/^splat //p' "$here/splats") || true
}

# The emulated CPU has raised a trap of single steps in the kernel, which makes none: 6.12's
# kprobes do without, and no debugger is there. exc_debug_kernel() says of it "something is
# wonky" and that QEMU is known for it. It has happened once in some thousand guests. The same
# restrictions hold as above, and nothing else may be wrong.
stepped_by_its_cpu() {
	local splats of_ours

	splats=$(find_splats "$1")
	if [[ $splats != *' at arch/x86/kernel/traps.c:'*' exc_debug_kernel+'* ]]; then return 1; fi
	of_ours=$(kernel_lines "$1" | grep -c '\[ibchan' || true)
	[ "$(wc -l <<<"$splats")" = 1 ] && [ "$of_ours" = 0 ] &&
		grep -qx 'command=0' "$1/.vm/status" && grep -qx 'finish=0' "$1/.vm/status" &&
		! grep -qE '^ *not ok' "$1/output.log"
}

# failed_by_itself RESULTS NUMBER: whether the guest's kernel panicked, or complained, for a reason
# that lies in the emulated machine. Such a guest is worth another boot; a kernel that does so each
# time is given up after boot NUMBER 3. Keeps what it said.
failed_by_itself() {
	if [ "$2" -ge 3 ]; then return 1; fi
	if grep -q 'Kernel panic' "$1/console.log" 2>/dev/null; then
		died_booting "$1" || died_of_its_cpu "$1" || return 1
	else
		stepped_by_its_cpu "$1" || return 1
	fi
	kernel_lines "$1" >"$1/kernel-boot-$2.log"
	tail -n 40 "$1/kernel-boot-$2.log" >&2
	note "the kernel failed by itself in boot $2 of 3; booting again"
}

# lock NAME: held until the script ends; the second of two concurrent runs finds the work done.
lock() {
	local file
	file=$(vm_cache)/lock/$1

	mkdir -p "${file%/*}"
	exec {lock_fd}>"$file"
	if flock -n "$lock_fd"; then return; fi
	note "waiting for another run that holds $1"
	flock "$lock_fd"
}
