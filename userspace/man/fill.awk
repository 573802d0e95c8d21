# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -v version=V -v date=YYYY-MM-DD -f fill.awk linux/*.h PAGE.in
#
# Fills in a hand-written page: @VERSION@, @DATE@, and from the headers @COMMANDS@, each command
# with the first line of its struct's comment, and @ERRORS@, the errno table of its prologue; and
# @EXAMPLE FILE@, the code of an example, from its first include on.

function escaped(text) {
	gsub(/\\/, "\\e", text)
	gsub(/^[.']/, "\\\\\\&&", text)
	while (match(text, /@[a-z_]+/))
		text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 1, RLENGTH - 1) "\\fP" \
			substr(text, RSTART + RLENGTH)
	return text
}

# What a reader types; the comments before it are said on the page.
function print_example(file,    line, begun) {
	while ((getline line <file) > 0) {
		begun = begun || line ~ /^#include/
		gsub(/\\/, "\\e", line)
		gsub(/-/, "\\-", line)
		sub(/^[.']/, "\\\\\\&&", line)
		gsub(/\t/, "    ", line)
		if (begun)
			print line
	}
	close(file)
}

FNR == 1 {
	in_header = FILENAME ~ /\.h$/
}

in_header && /^ \*\t[A-Z0-9]+\t+[a-zA-Z]/ {
	error = $2
	sub(/^ \*\t[A-Z0-9]+\t+/, "")
	errors = errors ".TP\n.B " error "\n" escaped($0) "\n"
	next
}

in_header && error != "" && /^ \*\t\t/ {
	sub(/^[ *\t]+/, "")
	errors = errors escaped($0) "\n"
	next
}

in_header && /^ \* struct ibchan_cmd_[a-z_]+ - / {
	command = $3
	sub(/^ibchan_cmd_/, "", command)
	sub(/^[^-]* - /, "")
	commands = commands ".TP\n.B IBCHAN_CMD_" toupper(command) "\n" escaped($0) "\n"
	next
}

in_header {
	error = ""
	next
}

/^@EXAMPLE .*@$/ {
	sub(/@$/, "", $2)
	print_example(examples "/" $2)
	next
}

/^@(COMMANDS|ERRORS)@$/ {
	printf "%s", /ERRORS/ ? errors : commands
	next
}

{
	gsub(/@VERSION@/, version)
	gsub(/@DATE@/, date)
	print
}
