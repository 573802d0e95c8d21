# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What must be as it was before when tests are over, each a function that says what is not.
# Sourced, never run, by scripts that have set:
#
#   here       the folder of this file
#   module     ibchan.ko, to be loaded again
#   patience   seconds to wait for what is sure to come
#
# and that set, when tests begin, pins_before to what `pins` says, and marker to what they write
# to the kernel log.
: "${here:?}" "${module:?}" "${patience:?}"
# shellcheck source=SCRIPTDIR/pause.sh
. "$here/pause.sh"
counters=/sys/kernel/debug/ibchan/counters pins_before='' marker=''

pins() {
	echo 1 >/proc/sys/vm/stat_refresh
	awk '$1 == "nr_foll_pin_acquired" { n += $2 } $1 == "nr_foll_pin_released" { n -= $2 }
		END { print n }' /proc/vmstat
}

# The last steps of a release are a worker's: hence eventually, here and below.
pins_equal() {
	[ "$(pins)" = "$1" ]
}

pins_are_back() {
	eventually pins_equal "$pins_before" || {
		echo "# pinned pages: $pins_before before, $(pins) after"
		return 1
	}
}

gauges() {
	awk '$1 !~ /^works_/ && $2 != 0' "$counters"
}

no_gauge() {
	[ -r "$counters" ] && [ -z "$(gauges)" ]
}

nothing_is_held() {
	eventually no_gauge || {
		sed 's/^/# /' "$counters"
		return 1
	}
}

# Memory that was given up because a driver refused to let go of it.
nothing_leaked() {
	awk '{ count[$1] = $2 }
		END { exit count["leaked"] != "0" || count["works_posted"] != count["works_retired"] }' \
		"$counters"
}

ours_in_rdma() {
	printf 'resource show %s\n' qp cq mr pd | rdma -b - | grep -w ibchan
}

rdma_shows_nothing() {
	local ours

	ours=$(ours_in_rdma)
	[ -z "$ours" ] || {
		printf '%s\n' "$ours" | sed 's/^/# /'
		return 1
	}
}

module_unloads() {
	rmmod ibchan 2>&1 | sed 's/^/# /'
	[ ! -e /sys/module/ibchan ] && [ ! -e /dev/ibchan ]
}

module_loads_again() {
	insmod "$module" 2>&1 | sed 's/^/# /'
	[ -c /dev/ibchan ] && no_gauge
}

# expressions KIND: of those in splats, one a line.
expressions() {
	local kind expression

	while read -r kind expression; do
		if [ "$kind" = "$1" ]; then echo "$expression"; fi
	done <"$here/vm/splats"
}

kernel_log_is_clean() {
	local found

	found=$(dmesg | sed "1,/$marker/d" | grep -E -v -e "$(expressions allow)" |
		grep -E -A 25 -e "$(expressions splat)")
	[ -z "$found" ] || {
		printf '%s\n' "$found" | head -n 60 | sed 's/^/# /'
		return 1
	}
}
