# SPDX-License-Identifier: GPL-2.0-only
#
# Reads symbols and counts by address, see `profile`: a function goes from its symbol to the
# next. -v operations=N: how many were done.

$2 == "S" {
	layer = $3
	name = $4
	next
}

{
	sum[layer, $3] += $4
	total[$3] += $4
	seen[layer]
	if ($3 == 0 && (layer == "ibchan" || layer == "libibchan"))
		own[name " | " layer] += $4
}

function each(number) {
	return sprintf("%d", number / operations + 0.5)
}

END {
	sorter = "sort -t '|' -k 3,3nr"
	print "| layer | libibchan | libibverbs |\n|---|---|---|"
	for (layer in seen)
		print "| " layer " | " each(sum[layer, 0]) " | " each(sum[layer, 1]) " |" | sorter
	close(sorter)
	print "| together | " each(total[0]) " | " each(total[1]) " |"
	print "\n| function | layer | instructions |\n|---|---|---|"
	sorter = "sort -t '|' -k 4,4nr"
	for (name in own)
		if (own[name] >= operations)
			print "| " name " | " each(own[name]) " |" | sorter
	close(sorter)
}
