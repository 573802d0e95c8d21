# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A run in stages, of which some may run side by side, with one result at its end. Sourced, never
# run. `logs` is a folder of this run's, which is gone when it ends.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# stage NAME COMMAND...: its last "N passed, N failed" line is what counts. A stage that
# fails without one counts as one failure, one that passes as one success.
stage() {
	local name=$1 log=$logs/$1.log start=$SECONDS rc

	shift
	echo "== $name: $*"
	"$@" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	echo "$(counts_of "$rc" "$log") $((SECONDS - start))" >"$logs/$name.counts"
	echo "== $name: exit code $rc after $((SECONDS - start)) s, $((SECONDS / 60)) min in all"
}

# counts_of EXIT-CODE LOG: passed, failed, skipped.
counts_of() {
	local p=0 f=0 s=0

	read -r p f s < <(sed -n -E \
		's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "$2" | tail -n 1)
	if [ "$1" -ne 0 ] && [ "${f:-0}" -eq 0 ]; then f=$((${f:-0} + 1)); fi
	if [ "$1" -eq 0 ] && [ -z "$p" ]; then p=1; fi
	echo "${p:-0} ${f:-0} ${s:-0}"
}

# What led to a failure is in the lines before it. Where no test has failed, it is the last one
# that ended, and what the end of the log says but for registers.
failures() {
	grep -h -B 12 -A 6 -E '^([a-z0-9-]+\| )? *not ok|^    # kclient: .* [1-9][0-9]* failed' "$1" && return
	grep -E '^([a-z0-9-]+\| )? *ok [0-9]+ ' "$1" | tail -n 2
	tail -n 60 "$1" | grep -v -E '\] +(R[^I][A-Z0-9]|[FC]S|CR2|DR[0-7]|PKRU|Code|Modules linked in): ' |
		tail -n 30
}

# A line for each stage, and once more what failed; the last line is the result, and so is the
# return code.
summary() {
	local counts name p f s seconds

	echo "== summary of $(git describe --always --dirty 2>/dev/null), $((SECONDS / 60)) min $((SECONDS % 60)) s"
	for counts in "$logs"/*.counts; do
		name=${counts##*/}
		name=${name%.counts}
		read -r p f s seconds <"$counts"
		printf '%s: %s passed, %s failed, %s skipped, %d:%02d min\n' "$name" "$p" "$f" "$s" \
			$((seconds / 60)) $((seconds % 60))
		sed -n "s/^unsteady: /unsteady: $name: /p" "$logs/$name.log"
		if [ "$f" -ne 0 ]; then failures "$logs/$name.log"; fi
	done
	awk '{ p += $1; f += $2; s += $3 }
		END { print p " passed, " f " failed, " s " skipped"; exit f != 0 }' "$logs"/*.counts
}
