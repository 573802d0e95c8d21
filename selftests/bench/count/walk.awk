# SPDX-License-Identifier: GPL-2.0-only
#
# awk -v name=CASE -v works=N -f walk.awk PLACES ADDRESSES: the functions of kmod/ that an operation passes.
#
# PLACES is what addr2line -a -f -i says of each address, ADDRESSES the executed ones in their order. An
# instruction belongs to the innermost function that is inline in its place.

FNR == NR && /^0x/ {
	sub(/^0x0*/, "")
	address = $0
	inner = 1
	next
}

FNR == NR && !function_name {
	function_name = $0
	next
}

FNR == NR {
	file = $0
	sub(/:[0-9?]+( .*)?$/, "", file)
	if (file ~ /\/kmod\//) {
		sub(/.*\/kmod\//, "", file)
		chain[address] = function_name " " file " " chain[address]
		if (inner)
			floor_at[address] = substr(file, 1, index(file, "/") - 1)
	}
	inner = 0
	function_name = ""
	next
}

$1 in chain {
	count = split(chain[$1], part, " ")
	for (i = 1; i < count; i += 2) {
		if (!((part[i], part[i + 1]) in seen)) {
			seen[part[i], part[i + 1]]
			functions = functions sprintf("  %s: %s\n", part[i + 1], part[i])
			num_functions++
		}
		if (!(part[i + 1] in files)) {
			files[part[i + 1]]
			num_files++
		}
	}
}

$1 in floor_at {
	instructions[floor_at[$1]]++
	changes += floor != "" && floor != floor_at[$1]
	floor = floor_at[$1]
}

END {
	printf "%s: %d functions of %d files, %.1f changes of floor\n", name, num_functions, num_files, changes / works
	for (floor in instructions)
		printf "%9.1f %s\n", instructions[floor] / works, floor
	printf "%s\n", functions
}
