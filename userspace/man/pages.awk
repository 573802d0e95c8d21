# SPDX-License-Identifier: LGPL-2.1-or-later
#
# awk [-v out=DIR -v version=V -v date=YYYY-MM-DD -v constants="PAGE..."] -f pages.awk HEADER...
#
# Makes a manual page of each kernel-doc comment: name.3 for a function or macro, name.3type
# for a struct or enum; and of a comment "DOC: name - title", which declares nothing, name.3. The comments are the only source. They must say it all: no declaration
# goes without one; parameters, what a call returns, and when the buffers of a call that has to
# do with buffers may be reused (a paragraph "Buffers: ...") are not left out.
#
# Without `out` it only checks: it prints what is missing, and exits 1. With -v list=1 it prints
# the names of the pages.

function complain(what) {
	bad = 1
	if (checking)
		print FILENAME ": " what
}

# --- a comment becomes an entry ---

function forget() {
	title = brief = body = returns = buffers = ""
	section = "brief"
	params = 0
}

function comment_start(text) {
	title = text
	sub(/ - .*/, "", title)
	brief = text
	if (!sub(/^.* - /, "", brief))
		complain("no \" - \" in the first line of a comment: " text)
}

function parameter(text) {
	params++
	param_name[params] = text
	sub(/^@/, "", param_name[params])
	sub(/:.*/, "", param_name[params])
	sub(/^@[^:]*: */, "", text)
	param_text[params] = text
	section = "parameter"
}

function joined(old, text) {
	return old == "" ? text : old "\n" text
}

function comment_line(text) {
	if (title ~ /^DOC: / && text ~ /^[A-Z][A-Za-z, ']*: /) {
		parameter("@" text)
	} else if (section != "brief" && text ~ /^@[a-z0-9_]+:/ || text ~ /^@[A-Za-z0-9_]+:/) {
		parameter(text)
	} else if (text ~ /^Return: /) {
		section = "return"
		returns = substr(text, 9)
	} else if (text ~ /^Buffers: /) {
		section = "buffers"
		buffers = substr(text, 10)
	} else if (text == "") {
		section = "body"
		body = joined(body, "")
	} else if (section == "parameter") {
		param_text[params] = joined(param_text[params], trimmed(text))
	} else if (section == "return") {
		returns = joined(returns, text)
	} else if (section == "buffers") {
		buffers = joined(buffers, text)
	} else if (section == "brief") {
		brief = brief " " trimmed(text)
	} else {
		body = joined(body, text)
	}
}

function trimmed(text) {
	gsub(/^[ \t\n]+|[ \t\n]+$/, "", text)
	return text
}

# --- the declaration behind it ---

function entry_name(text) {
	sub(/\(.*/, "", text)
	sub(/^(struct|enum|DOC:) /, "", text)
	return text
}

# Of the kernel's headers, what programs of the library fill in or read.
function is_wanted() {
	return FILENAME !~ /\/linux\// || title ~ \
	       /^(struct ibchan_(params|endpoint|reason|history_event|(context|device|port|gid)_attr)|enum ibchan_(class|channel_state|stage|port_state))$/
}

function remember(what) {
	if (!is_wanted())
		return
	entries++
	kind[entries] = what
	name[entries] = entry_name(title)
	briefs[entries] = brief
	bodies[entries] = body
	return_text[entries] = returns
	buffer_text[entries] = buffers
	decl[entries] = declaration
	count[entries] = params
	for (i = 1; i <= params; i++) {
		names[entries, i] = param_name[i]
		texts[entries, i] = param_text[i]
	}
	entry_of[what ~ /struct|enum/ ? "type " name[entries] : name[entries]] = entries
	check_entry(entries)
}

function check_entry(e) {
	if (kind[e] == "doc")
		return
	check_shape(e)
	if (declared_name(decl[e]) != name[e])
		complain("the comment of " name[e] " is in front of: " decl[e])
	for (i = 1; i <= count[e]; i++)
		if (!has_word(decl[e], names[e, i]))
			complain(name[e] ": @" names[e, i] " is not a part of it")
	if (kind[e] == "macro" && name[e] ~ /_(scoped|dropped)/ && buffer_text[e] == "")
		complain(name[e] ": no Buffers:")
	if (kind[e] != "function")
		return
	check_arguments(e)
	check_error(e)
	if (decl[e] !~ /^(static inline )?void [a-z]/ && return_text[e] == "")
		complain(name[e] ": no Return:")
	if (touches_buffers(decl[e]) && buffer_text[e] == "")
		complain(name[e] ": no Buffers:")
}

function check_arguments(e,	n, words, list, word) {
	list = decl[e]
	sub(/^[^(]*\(/, "", list)
	sub(/\).*/, "", list)
	n = split(list, words, ",")
	for (i = 1; i <= n; i++) {
		word = words[i]
		sub(/\[.*/, "", word)
		sub(/.*[ *]/, "", word)
		if (word != "void" && !documented(e, word))
			complain(name[e] ": no @" word)
	}
}

# The rules "Times" and "Structs that callers fill in" of <ibchan.h>, which the kernel's structs
# within those do not follow.
function check_shape(e,	text) {
	if (FILENAME ~ /\/linux\//)
		return
	text = decl[e]
	gsub(/__s64 [a-z_]*_ns[;,)]/, "", text)
	if (kind[e] != "macro" && text ~ /_([mun]?s|m?sec)[;,)[]/)
		complain(name[e] ": a time is not a __s64 of nanoseconds")
	if (kind[e] == "struct" && name[e] ~ /_(params|builder)$/ &&
	    decl[e] !~ /^struct [a-z_]+ \{\n\t__u32 size;\n/)
		complain(name[e] ": parameters do not begin with their size")
}

# The rule "Errors". A code has one cause in calls that end an object, hand out a descriptor, or
# collect what was posted.
function check_error(e,	text) {
	text = decl[e]
	gsub(/[ \t\n]+/, " ", text)
	if (text ~ /[(,] ?struct ibchan_error \*/) {
		if (text !~ /^(int|ssize_t) .*, struct ibchan_error \*error\);$/)
			complain(name[e] ": the error is not the last argument of an int")
	} else if (text ~ /^(int|ssize_t) / && codes(return_text[e]) > 1 && name[e] !~ \
		   /_(close|destroy|free|dereg|break|fd|poll|spin|wait|result|checked)$/) {
		complain(name[e] ": can fail in more than one way, and takes no struct ibchan_error")
	}
}

# How many errors a text names; one that speaks of another call's may be any.
function codes(text,	n, code, seen) {
	if (text ~ /negative errno|[Aa]s ibchan_/)
		return 2
	while (match(text, /-E[A-Z0-9]+/)) {
		code = substr(text, RSTART, RLENGTH)
		n += !seen[code]
		seen[code] = 1
		text = substr(text, RSTART + RLENGTH)
	}
	return n
}

function documented(e, word,	j) {
	for (j = 1; j <= count[e]; j++)
		if (names[e, j] == word)
			return 1
	return 0
}

function has_word(text, word) {
	return text ~ ("(^|[^A-Za-z0-9_])" word "([^A-Za-z0-9_]|$)")
}

function declared_name(text) {
	gsub(/\n/, " ", text)
	sub(/^#define /, "", text)
	sub(/^(struct|enum) /, "struct ", text)
	if (text ~ /^struct [a-z0-9_]+ \{/) {
		sub(/^struct /, "", text)
		sub(/ .*/, "", text)
		return text
	}
	sub(/[(].*/, "", text)
	sub(/[ \t]+__attribute__.*/, "", text)
	sub(/.*[ *]/, "", text)
	return text
}

# Works, memory and whatever waits for works.
function touches_buffers(text) {
	return text ~ /struct ibchan_(submit_wr|submit_sge|mr|pending|scope|cqe|channel|context|cq) \**[a-z]/ &&
		text ~ /_(post(_[a-z]+)?|perform|send|receive|write|read|wait|poll|spin|drop|(de)?reg(_[a-z]+)?|swap|add|end|leave|close|break)\(/
}

# --- text ---

# The markup of one paragraph, as lines of at most 78 bytes.
function marked(text) {
	gsub(/\\/, "\\e", text)
	gsub(/see Fork/, "see Fork in @@ibchan(7)", text)
	gsub(/See Fork/, "See Fork in @@ibchan(7)", text)
	gsub(/-E/, "\\-E", text)
	text = replaced(text, "@@[a-z]+", "\\fB", "\\fP", 2, 0)
	text = replaced(text, "@[A-Za-z_][A-Za-z0-9_]*([.][a-z_]+)*", "\\fI", "\\fP", 1, 0)
	return folded(referring(text))
}

# Around each match of `pattern`, less `skip` leading and `drop` trailing bytes.
function replaced(text, pattern, before, after, skip, drop,	done) {
	done = ""
	while (match(text, pattern)) {
		done = done substr(text, 1, RSTART - 1) before \
			substr(text, RSTART + skip, RLENGTH - skip - drop) after
		text = substr(text, RSTART + RLENGTH)
	}
	return done text
}

# Calls by the section that they are in; those of the kernel API have none.
function referring(text,	done, call) {
	while (match(text, /ibchan_[a-z0-9_]+[(][)]/)) {
		call = substr(text, RSTART, RLENGTH - 2)
		done = done substr(text, 1, RSTART - 1) "\\fB" call "\\fP" \
			(call in entry_of ? "(3)" : "()")
		text = substr(text, RSTART + RLENGTH)
	}
	return done text
}

function folded(text,	n, words, i, line, lines) {
	n = split(text, words, /[ \t\n]+/)
	for (i = 1; i <= n; i++) {
		if (words[i] == "")
			continue
		if (line != "" && length(line) + length(words[i]) > 76) {
			lines = lines safe(line) "\n"
			line = ""
		}
		line = line == "" ? words[i] : line " " words[i]
	}
	return lines safe(line)
}

function safe(line) {
	return line ~ /^[.']/ ? "\\&" line : line
}

function say(line) {
	print line >page
}

# Paragraphs, and blocks of code, which a tab begins.
function say_body(text,	n, lines, i, part, code) {
	first = !count[e] || kind[e] == "doc"
	n = split(text, lines, "\n")
	for (i = 1; i <= n + 1; i++) {
		if (i <= n && lines[i] != "" && (lines[i] ~ /^\t/) == code) {
			part = joined(part, lines[i])
			continue
		}
		say_part(part, code)
		part = i <= n ? lines[i] : ""
		code = part ~ /^\t/
	}
}

function say_part(part, code,	n, lines, i) {
	if (part == "")
		return
	if (!first)
		say(".PP")
	first = 0
	if (!code) {
		say(marked(part))
		return
	}
	gsub(/\\/, "\\e", part)
	gsub(/@/, "", part)
	say(".nf")
	n = split(part, lines, "\n")
	for (i = 1; i <= n; i++)
		say(expanded(lines[i]))
	say(".fi")
}

# The comment's " * " is gone, its tabs still count from there.
function expanded(line,	i, c, column, done) {
	column = 3
	for (i = 1; i <= length(line); i++) {
		c = substr(line, i, 1)
		do {
			done = done (c == "\t" ? " " : c)
			column++
		} while (c == "\t" && column % 8)
	}
	return done
}

function say_list(e,	j) {
	for (j = 1; j <= count[e]; j++) {
		say(".TP\n.I " names[e, j])
		say(marked(texts[e, j]))
	}
}

# "0; -EPERM: this; -EAGAIN: that": a list of the errors behind the rest.
function say_returns(text,	error, head) {
	gsub(/\n/, " ", text)
	error = "(; |: |[.] )-E[A-Z0-9]+((,|,? or) -E[A-Z0-9]+)*: "
	if (!match(text, error)) {
		say(marked(capital(text)))
		return
	}
	head = substr(text, 1, RSTART - 1)
	if (head == "0")
		head = "0 on success"
	say(marked(capital(head) (substr(text, RSTART, 1) == ":" ? ":" : ".")))
	text = substr(text, RSTART)
	while (match(text, error)) {
		head = substr(text, RSTART + 2, RLENGTH - 4)
		text = substr(text, RSTART + RLENGTH)
		say(".TP\n.B " escaped(head))
		say_cause(match(text, error) ? substr(text, 1, RSTART - 1) : text)
	}
}

function escaped(text) {
	gsub(/-/, "\\-", text)
	return text
}

function say_cause(text,	rest) {
	if (match(text, /; (what|or, with|else) .*/)) {
		rest = substr(text, RSTART + 2)
		text = substr(text, 1, RSTART - 1)
	}
	say(marked(capital(text) (text ~ /[.]$/ ? "" : ".")))
	if (rest != "")
		say(".PP\n" marked(capital(rest)))
}

function capital(text) {
	return text ~ /^[a-z][a-z]*[ ,]/ ? toupper(substr(text, 1, 1)) substr(text, 2) : text
}

# --- pages ---

function say_head(e, type) {
	page = checking ? "/dev/null" : out "/" page_name(e)
	say(".\\\" Made from " source[e] " by pages.awk; the comments there are the source.")
	say(".TH " toupper(name[e]) " " type " " date " \"ibchan " version "\" \"ibchan manual\"")
	say(".SH NAME\n" folded(name[e] " \\- " briefs[e]))
	say(".SH LIBRARY\nlibibchan, RDMA channels (\\-libchan)")
	say(".SH SYNOPSIS\n.nf\n.B #include <ibchan.h>\n.PP")
}

function say_call(e,	text) {
	text = decl[e]
	if (kind[e] == "macro")
		sub(/^#define /, "", text)
	gsub(/[ \t\n]+/, " ", text)
	sub(/\( /, "(", text)
	while (length(text) > 76 && match(substr(text, 1, 76), /.*, /)) {
		say(".B \"" substr(text, 1, RLENGTH - 1) "\"")
		text = "        " substr(text, RLENGTH + 1)
	}
	say(".B \"" text "\"\n.fi")
}

function say_type(e,	n, lines, i, private) {
	n = split(decl[e], lines, "\n")
	for (i = 1; i <= n; i++) {
		if (lines[i] ~ /\/\* public: /)
			private = 0
		else if (lines[i] ~ /\/\* private: /)
			private = hidden_shown(private)
		else if (!private || lines[i] ~ /^}/)
			say(code_line(lines[i]))
	}
	say(".fi")
}

function hidden_shown(private) {
	if (!private)
		say(".B \"    /* private members */\"")
	return 1
}

function code_line(line) {
	gsub(/\\/, "\\e", line)
	gsub(/\t/, "    ", line)
	return ".B \"" line "\""
}

function say_also(e,	list, text, n, refs, i) {
	text = bodies[e] "\n" return_text[e] "\n" buffer_text[e]
	for (i = 1; i <= count[e]; i++)
		text = text "\n" texts[e, i]
	gsub(/ibchan_[a-z0-9_]+[(][)] in the kernel API/, "", text)
	while (match(text, /ibchan_[a-z0-9_]+[(][)]/)) {
		list = with(list, substr(text, RSTART, RLENGTH - 2), e)
		text = substr(text, RSTART + RLENGTH)
	}
	text = decl[e] "\n" texts_of(e)
	while (match(text, /(struct|enum) ibchan_[a-z0-9_]+/)) {
		list = with_type(list, substr(text, RSTART, RLENGTH), e)
		text = substr(text, RSTART + RLENGTH)
	}
	list = with_constants(list, decl[e] "\n" texts_of(e))
	n = split(list, refs, " ")
	say(".SH SEE ALSO")
	for (i = 1; i <= n; i++)
		say(".BR " reference(refs[i]) ",")
	say(".BR ibchan (4),\n.BR ibchan (7)")
}

function texts_of(e,	i, all) {
	for (i = 1; i <= count[e]; i++)
		all = all "\n" texts[e, i]
	return all "\n" bodies[e]
}

function reference(ref) {
	sub(/[.]/, " (", ref)
	return ref ")"
}

function with(list, ref, e) {
	if (!(ref in entry_of))
		complain(name[e] " names " ref "(), which does not exist")
	else if (ref != name[e] && index(" " list " ", " " ref ".3 ") == 0)
		list = list == "" ? ref ".3" : list " " ref ".3"
	return list
}

function with_type(list, ref, e) {
	sub(/.* /, "", ref)
	if (("type " ref) in entry_of && entry_of["type " ref] != e &&
	    index(" " list " ", " " ref ".3type ") == 0)
		list = list == "" ? ref ".3type" : list " " ref ".3type"
	return list
}

# The pages of constants.awk whose constants a text names.
function with_constants(list, text,	family) {
	while (match(text, /IBCHAN_[A-Z]+(_TYPE|_LAYER|_VERDICT)?_/)) {
		family = tolower(substr(text, RSTART, RLENGTH)) "values"
		text = substr(text, RSTART + RLENGTH)
		if (index(" " constants " ", " " family ".3type ") &&
		    index(" " list " ", " " family ".3type ") == 0)
			list = list == "" ? family ".3type" : list " " family ".3type"
	}
	return list
}

function is_type(e) {
	return kind[e] == "struct" || kind[e] == "enum"
}

function page_name(e) {
	return name[e] "." (is_type(e) ? "3type" : "3")
}

function say_page(e) {
	say_head(e, is_type(e) ? "3type" : "3")
	if (is_type(e))
		say_type(e)
	else if (kind[e] == "doc")
		say(".fi")
	else
		say_call(e)
	say(".SH DESCRIPTION")
	if (kind[e] == "doc")
		say_body(bodies[e])
	say_list(e)
	if (kind[e] != "doc")
		say_body(bodies[e])
	if (bodies[e] !~ /[a-z]/ && !count[e])
		say(marked(capital(briefs[e]) "."))
	if (return_text[e] != "") {
		say(".SH RETURN VALUE")
		say_returns(return_text[e])
	}
	if (!is_type(e) && kind[e] != "doc")
		say_buffers(e)
	say_also(e)
	close(page)
}

function say_buffers(e) {
	say(".SH BUFFERS")
	if (buffer_text[e] != "")
		say(marked(capital(buffer_text[e])))
	else
		say("The call hands no buffer to a device and takes none back. What its\n" \
			"arguments point to may be reused when it returns.")
}

# --- reading ---

BEGIN {
	checking = out == "" && !list
	forget()
}

FNR == 1 {
	short = FILENAME
	sub(/.*(include|uapi)\//, "", short)
	open_declaration = 0
}

/^\/\*\*$/ {
	forget()
	commenting = 1
	next
}

commenting && /^ \*\// {
	commenting = 0
	declaration = ""
	awaiting = title !~ /^DOC: /
	source[entries + 1] = short
	if (!awaiting)
		remember("doc")
	next
}

commenting {
	line = $0
	sub(/^ \* ?/, "", line)
	if (title == "")
		comment_start(line)
	else
		comment_line(line)
	next
}

awaiting || open_declaration {
	declaration = joined(declaration, $0)
	if (awaiting)
		style = $0 ~ /^#define/ ? "macro" : $0 ~ /^struct [a-z0-9_]+ \{/ ? "struct" : \
			$0 ~ /^enum / ? "enum" : "function"
	awaiting = 0
	open_declaration = 1
	if (style == "macro") {
		sub(/[ \t]*\\$/, "", declaration)
		sub(/[ \t]+__attribute__.*/, "", declaration)
		if (declaration ~ /\(/)
			sub(/\).*/, ")", declaration)
	} else if (style == "function" ? $0 !~ /[;{]$/ : $0 !~ /^};/) {
		next
	}
	sub(/\n?\{$/, "", declaration)
	open_declaration = 0
	source[entries + 1] = short
	remember(style)
	next
}

# What has no comment in front of it. Names that begin with two underscores are nobody's.
/^[a-z_][A-Za-z0-9_ ]*[ *]ibchan_[a-z0-9_]+\(/ && !/^static/ {
	complain("no comment: " $0)
}

/^static inline .*[ *]ibchan_[a-z0-9_]+\(/ {
	complain("no comment: " $0)
}

FILENAME !~ /\/linux\// && /^(struct|enum) ibchan_[a-z0-9_]+ \{/ {
	complain("no comment: " $0)
}

END {
	if (!entries)
		complain("nothing found")
	for (e = 1; e <= entries; e++) {
		if (list)
			print page_name(e)
		else
			say_page(e)
	}
	exit checking && bad
}
