# SPDX-License-Identifier: GPL-2.0-only
#
# Reads symbols and counts by address, see `profile`: a function goes from its symbol to the
# next. -v operations=N: how many were done; titles=WORDS: what each way is; all=1: the
# functions of all layers.

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
	if (all || layer == "ibchan" || layer == "libibchan") {
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

END {
	print_head("layer")
	sorter = "sort -t '|' -k 3,3nr"
	for (layer in seen)
		print row(layer, sum, layer) | sorter
	close(sorter)
	print row("together", total, "")
	print ""
	print_head("function | layer")
	sorter = "sort -t '|' -k 4,4nr"
	for (name in functions)
		if (functions[name] >= operations)
			print row(name, own, name) | sorter
	close(sorter)
}
