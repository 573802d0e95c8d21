# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -v version=V -v date=YYYY-MM-DD -f fill.awk linux/*.h PAGE.in
#
# Fills in a hand-written page: @VERSION@, @DATE@, and from the headers @COMMANDS@, each command
# with the first line of its struct's comment, and @ERRORS@, the errno table of its prologue.

function escaped(text) {
	gsub(/\\/, "\\e", text)
	gsub(/^[.']/, "\\\\\\&&", text)
	while (match(text, /@[a-z_]+/))
		text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 1, RLENGTH - 1) "\\fP" \
			substr(text, RSTART + RLENGTH)
	return text
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

/^@(COMMANDS|ERRORS)@$/ {
	printf "%s", /ERRORS/ ? errors : commands
	next
}

{
	gsub(/@VERSION@/, version)
	gsub(/@DATE@/, date)
	print
}
