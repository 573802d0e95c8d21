# SPDX-License-Identifier: GPL-2.0-only
#
# awk -v median=N -v longest=N -v slices=PERCENT -f shape.awk SOURCE...: the shape of functions.
#
# Prints their number, the median of their lines (head and braces included), the longest one, and how many
# in a hundred are slices: static functions with a body of less than eight lines whose name stands in one
# other place of their file. Fails, and names offenders, if the median is less than `median`, a function
# is longer than `longest`, or more than `slices` in a hundred are slices.

# The words of a line outside comments and strings.
function count_words(line,    word) {
	gsub(/"([^"\\]|\\.)*"/, "", line)
	if (in_comment && !sub(/^.*\*\//, "", line))
		return
	in_comment = 0
	gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
	if (sub(/\/\*.*/, "", line))
		in_comment = 1
	while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
		word = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		seen[FILENAME, word]++
	}
}

# A head begins in the first column and may go on in lines that are indented.
function begin_function() {
	name = head
	sub(/\(.*/, "", name)
	sub(/.*[ *\t]/, "", name)
	first = FNR - head_lines
	inside = name != "" && head ~ /\(/
}

function end_function() {
	functions++
	lines[functions] = FNR - first + 1
	place[functions] = FILENAME ":" first ": " name
	if (head ~ /^static / && FILENAME ~ /\.c$/ && FNR - first - head_lines - 1 < 8)
		small[FILENAME, name] = functions
	inside = 0
}

FNR == 1 {
	in_comment = inside = 0
	head = ""
}

{ count_words($0) }

/^{$/ && !inside { begin_function(); next }
/^}/ && inside { end_function(); head = ""; next }
inside { next }
/^[A-Za-z_]/ { head = $0; head_lines = 1; next }
/^[ \t]/ && head != "" { head = head " " $0; head_lines++; next }
{ head = "" }

function middle(    n, i, held, half) {
	for (i = 1; i <= functions; i++)
		held[lines[i]]++
	for (n = 0; half < functions / 2; n++)
		half += held[n + 1]
	return n
}

END {
	for (key in small) {
		if (seen[key] != 2)
			continue
		cut++
		if (100 * cut > slices * functions)
			more[++extra] = place[small[key]] ": a slice of one caller"
	}
	for (i = 1; i <= functions; i++) {
		if (lines[i] > most)
			most = lines[i]
		if (lines[i] > longest) {
			print place[i] ": " lines[i] " lines"
			failed = 1
		}
	}
	printf "%d functions, half of them of %d lines or more, the longest %d, %.1f in a hundred are slices\n",
		functions, middle(), most, 100 * cut / functions
	for (i = 1; i <= extra; i++)
		print more[i]
	exit failed || extra || !functions || middle() < median
}
