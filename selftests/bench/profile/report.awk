# SPDX-License-Identifier: GPL-2.0-only
#
# Reads symbols and counts by address, see `profile`: a function goes from its symbol to the
# next. -v operations=N: how many were done; titles=WORDS: what each way is; all=1: the
# functions of all layers; differ=N: of all layers, those by which two ways differ by N
# instructions and more.

BEGIN {
	ways = split(titles, title, " ")
}

$2 == "S" {
	layer = $3
	name = $4
	next
}

{
	sum[layer, $3] += $4
	total[$3] += $4
	seen[layer]
	if (all || differ || layer == "ibchan" || layer == "libibchan") {
		own[name " | " layer, $3] += $4
		functions[name " | " layer] += $4
	}
}

function each(number) {
	return sprintf("%d", number / operations + 0.5)
}

function print_head(first,    head, line, i) {
	head = line = "| " first " |"
	gsub(/[^|]+/, "---", line)
	for (i = 1; i <= ways; i++) {
		head = head " " title[i] " |"
		line = line "---|"
	}
	print head "\n" line
}

function row(name, numbers, key,    text, i) {
	text = "| " name " |"
	for (i = 0; i < ways; i++)
		text = text " " each(key == "" ? numbers[i] : numbers[key, i]) " |"
	return text
}

# The largest difference first, with a column for it.
function print_differences(    name, difference, sorter) {
	print "| function | layer | " title[1] " | " title[2] " | difference |"
	print "|---|---|---|---|---|"
	sorter = "sort -t '|' -k 6,6nr"
	for (name in functions) {
		difference = (own[name, 0] - own[name, 1]) / operations
		if (difference >= differ || difference <= -differ)
			print row(name, own, name) sprintf(" %d |", difference) | sorter
	}
	close(sorter)
}

END {
	print_head("layer")
	sorter = "sort -t '|' -k 3,3nr"
	for (layer in seen)
		print row(layer, sum, layer) | sorter
	close(sorter)
	print row("together", total, "")
	print ""
	if (differ) {
		print_differences()
		exit
	}
	print_head("function | layer")
	sorter = "sort -t '|' -k 4,4nr"
	for (name in functions)
		if (functions[name] >= operations)
			print row(name, own, name) | sorter
	close(sorter)
}
