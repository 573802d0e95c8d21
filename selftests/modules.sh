# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Test modules: to load and to unload, with an end to each wait, and what they have told the
# kernel log. Sourced, never run, by scripts that have set `here`, the folder of this
# file, and `limit`, the seconds that a module may take; they find the results in `passed`, `failed` and `skipped`.
: "${here:?}" "${limit:?}"
# shellcheck source=SCRIPTDIR/pause.sh
. "$here/pause.sh"
passed=0 failed=0 skipped=0 number=0 marker=''

# What runs insmod, where something has to be set up around it.
loader=()

# --- the kernel log ---

mark() {
	number=$((number + 1))
	marker="${0##*/} $$ $number $EPOCHREALTIME"
	echo "$marker" >/dev/kmsg
}

# What the test modules have written since then. KUnit writes without the module's name, and
# explains a failure in lines of its own.
ktap() {
	dmesg --notime | sed "1,/$marker/d" |
		sed -n -E 's/^ibchan_[a-z]+: //; /^(KTAP|1\.\.| *ok | *not ok | *#|    )/p'
}

# Prints passed, failed, skipped. A result is a case, unless results of a subtest came before
# it: then it stands for those. What was planned and never came has failed.
count_ktap() {
	awk '
		function end_plans_below(level,    l) {
			for (l in plan)
				if (l + 0 > level) {
					if (plan[l] > seen[l]) failed += plan[l] - seen[l]
					delete plan[l]
					delete seen[l]
				}
		}
		{ match($0, /^ */); level = RLENGTH; line = substr($0, level + 1) }
		line ~ /^1\.\.[0-9]+/ {
			end_plans_below(level)
			plan[level] = substr(line, 4) + 0
			seen[level] = 0
			planned += plan[level]
		}
		line ~ /^(not )?ok / {
			stands_for_others = 0
			for (l in seen) if (l + 0 > level) stands_for_others = 1
			end_plans_below(level)
			seen[level]++
			bad = line ~ /^not/
			if (stands_for_others) { if (bad && failed == before[level]) failed++ }
			else if (bad) failed++
			else if (line ~ /# SKIP/) skipped++
			else passed++
			before[level] = failed
		}
		END {
			end_plans_below(-1)
			if (!planned) failed++
			print passed + 0, failed + 0, skipped + 0
		}'
}

add() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# A case of this script's own.
verdict() {
	if [ "$1" -eq 0 ]; then
		add 1 0 0
		echo "    ok - $2"
	else
		add 0 1 0
		echo "    not ok - $2"
	fi
}

report() {
	local p f s

	ktap | sed 's/^/    /'
	read -r p f s < <(ktap | count_ktap)
	add "$p" "$f" "$s"
}

# --- modules ---

# Bash need not have noticed the end of a child: that leaves a zombie.
has_ended() {
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ ${stat##*) } == Z* ]]
}

# ends_in_time PID
ends_in_time() {
	patience=$limit eventually has_ended "$1"
}

# Nothing ends a module's init from outside: what waits here for ever stays behind.
bounded() {
	"$@" &
	ends_in_time $! || {
		echo "    # \"$*\" has not ended after $limit s"
		return 1
	}
	wait $!
}

load() {
	bounded "${loader[@]}" insmod "$@"
}

unload() {
	bounded rmmod "$1"
}

# run_module FILE [PARAMETER...]
run_module() {
	local name=${1##*/}

	mark
	load "$@"
	verdict $? "the module loads"
	unload "${name%.ko}"
	verdict $? "the module unloads"
	report
}
