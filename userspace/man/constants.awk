# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk -v out=DIR -v version=V -v date=YYYY-MM-DD -f constants.awk HEADER...
#
# Makes a manual page ibchan_<family>_values.3type of each family of constants: IBCHAN_OP_SEND and its
# like are ibchan_op_values. A constant's text is the comment behind it, or in an enum's kernel-doc its
# @IBCHAN_... line, or the text in its line of an X list. A family of one goes to ibchan_other_values.
# With -v list=1 it prints the names of the pages.

# The constant's family: its first word, or two where the first one says too little.
function family_of(name) {
	sub(/^IBCHAN_/, "", name)
	if (name ~ /^(LINK_LAYER|GID_TYPE|GID_VERDICT)_/)
		match(name, /^[A-Z]+_[A-Z]+/)
	else
		match(name, /^[A-Z]+/)
	return tolower(substr(name, 1, RLENGTH))
}

function constant(name, value, text) {
	if (name in known)
		return
	constants++
	known[name] = constants
	names[constants] = name
	values[constants] = value
	texts[constants] = text
	intros[constants] = intro
	members[family_of(name)]++
}

function trimmed(text) {
	gsub(/^[ \t]+|[ \t]+$/, "", text)
	return text
}

# The comment behind a constant, without its marks.
function behind(line) {
	if (!match(line, /\/\*.*\*\//))
		return ""
	return trimmed(substr(line, RSTART + 2, RLENGTH - 4))
}

FNR == 1 {
	intro = list_intro = ""
	commenting = 0
}

# --- comments ---

/^\/\*.*\*\/$/ {
	intro = behind($0)
	next
}

/^\/\*/ {
	commenting = 1
	documented = $0 ~ /^\/\*\*/
	intro = ""
	member = ""
	next
}

commenting && /\*\// { commenting = 0; next }

commenting {
	line = $0
	sub(/^ \* ?/, "", line)
	if (match(line, /^@IBCHAN_[A-Z0-9_]+: */)) {
		member = substr(line, 2, RLENGTH - 1)
		sub(/: *$/, "", member)
		told[member] = substr(line, RLENGTH + 1)
	} else if (member != "" && line != "") {
		told[member] = told[member] " " trimmed(line)
	} else {
		member = ""
		sub(/^enum [a-z_]+ - /, "", line)
		intro = intro "\n" line
	}
	next
}

# --- constants ---

/^#define IBCHAN_[A-Z0-9_]+\(X\)/ {
	in_list = 1
	items = 0
	list_intro = intro
	next
}

# An item may go on in further lines, with a text in quotes.
in_list && /^\tX\(/ {
	items++
	line = $0
	sub(/^\tX\(/, "", line)
	item_value[items] = line
	sub(/,.*/, "", item_value[items])
	sub(/^[^,]*, */, "", line)
	item_name[items] = line
	sub(/[,)].*/, "", item_name[items])
	item_text[items] = behind($0)
	if (item_text[items] != "")
		item_text[items] = "values: " item_text[items]
}

in_list && match($0, /"[^"]+"/) { item_text[items] = substr($0, RSTART + 1, RLENGTH - 2) }

/IBCHAN_[A-Z_]+_##NAME = \(nr\)/ {
	match($0, /IBCHAN_[A-Z_]+_##NAME/)
	prefix = substr($0, RSTART, RLENGTH - 6)
	intro = list_intro
	gsub(/: X\([^)]*\)[.]/, ".", intro)
	gsub(/The comment names/, "The texts name", intro)
	for (i = 1; i <= items; i++)
		constant(prefix item_name[i], item_value[i], item_text[i])
	in_list = 0
	next
}

# Masks of all flags are the module's and the library's business.
/^#define IBCHAN_[A-Z0-9_]+_FLAGS[ \t]/ { next }

/^#define IBCHAN_[A-Z0-9_]+[ \t]+/ {
	value = $3
	gsub(/[()U]/, "", value)
	constant($2, value, behind($0))
	next
}

/^\tIBCHAN_[A-Z0-9_]+ = / {
	value = $3
	sub(/,$/, "", value)
	constant($1, value, told[$1])
	next
}

/^$/ { intro = "" }

# --- pages ---

function say(line) {
	print line >page
}

function folded(text,	n, words, i, line, lines) {
	gsub(/@/, "", text)
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	n = split(text, words, /[ \t\n]+/)
	for (i = 1; i <= n; i++) {
		if (words[i] == "")
			continue
		if (line != "" && length(line) + length(words[i]) > 76) {
			lines = lines (line ~ /^[.']/ ? "\\&" : "") line "\n"
			line = ""
		}
		line = line == "" ? words[i] : line " " words[i]
	}
	return lines (line ~ /^[.']/ ? "\\&" : "") line
}

function page_of(i,	family) {
	family = family_of(names[i])
	return "ibchan_" (members[family] > 1 ? family : "other") "_values"
}

function capital(text) {
	return text ~ /^[a-z]+[ ,]/ ? toupper(substr(text, 1, 1)) substr(text, 2) : text
}

function say_page(title,	i, all, family) {
	page = out "/" title ".3type"
	for (i = 1; i <= constants; i++)
		if (page_of(i) == title)
			all = all (all == "" ? "" : ", ") names[i]
	family = title
	gsub(/^ibchan_|_values$/, "", family)
	say(".\\\" Made from the ioctl contract by constants.awk; the comments there are the source.")
	say(".TH " toupper(title) " 3type " date " \"ibchan " version "\" \"ibchan manual\"")
	say(".SH NAME\n" folded(title ", " all) " \\-\n" \
		(family == "other" ? "further constants" : "the IBCHAN_" toupper(family) "_* constants"))
	say(".SH LIBRARY\nlibibchan, RDMA channels (\\-libchan)")
	say(".SH SYNOPSIS\n.nf\n.B #include <ibchan.h>\n.fi\n.SH DESCRIPTION")
	said = ""
	for (i = 1; i <= constants; i++) {
		if (page_of(i) != title)
			continue
		if (intros[i] ~ /[a-z]/ && intros[i] != said)
			say((said == "" ? "" : ".PP\n") folded(capital(trimmed(intros[i]))))
		said = intros[i] ~ /[a-z]/ ? intros[i] : said
		say(".TP\n.B " names[i])
		say(folded(values[i] (texts[i] ~ /[a-z]/ ? ": " texts[i] (texts[i] ~ /[.]$/ ? "" : ".") : "")))
	}
	say(".SH SEE ALSO\n.BR ibchan (4),\n.BR ibchan (7)")
	close(page)
}

END {
	for (c = 1; c <= constants; c++) {
		title = page_of(c)
		if (title in done)
			continue
		done[title] = 1
		if (list)
			print title ".3type"
		else
			say_page(title)
	}
	exit !constants
}
