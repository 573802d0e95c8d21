# SPDX-License-Identifier: GPL-2.0-only
#
# awk -f undocumented.awk HEADER... SOURCE...: what an interface leaves unsaid.
#
# Exported functions and those in headers have kernel-doc that says where one may
# call them and what they return. Macros in headers need not return anything, and
# structs have kernel-doc. Whether that names all parameters and members is for
# scripts/kernel-doc to say.

function gap(name, what) {
	print FILENAME ": " name ": no " what
}

function first_word(text) {
	match(text, /^[A-Za-z0-9_]+/)
	return substr(text, 1, RLENGTH)
}

# The word before the first parenthesis.
function called(line) {
	sub(/\(.*/, "", line)
	sub(/.*[ *]/, "", line)
	return line
}

function has(name, section) {
	if (index(doc[name], "\n * " section ": ") == 0)
		gap(name, section ":")
}

function callable(name) {
	if (!(name in doc)) {
		gap(name, "kernel-doc")
		return
	}
	has(name, "Context")
	if (!(name in void))
		has(name, "Return")
}

/^\/\*\*$/ {
	text = ""
	commenting = 1
	next
}

commenting && /^ \*\// {
	commenting = 0
	sub(/^\n \* /, "", text)
	sub(/^struct /, "struct_", text)
	if (text ~ /^[a-z0-9_]+ - /)
		doc[first_word(text)] = text
	next
}

commenting {
	text = text "\n" $0
	next
}

/^(static inline )?void [a-z0-9_]+\(/ {
	void[called($0)] = 1
}

/^EXPORT_SYMBOL/ {
	sub(/^[A-Z_]+\(/, "")
	callable(first_word($0))
	exported++
}

FILENAME !~ /\/include\// {
	next
}

/^static (__always_)?inline / {
	if ($0 ~ /\(/)
		callable(called($0))
	else
		gap($0, "name in this line")
	inlined++
}

/^#define [a-z][a-z0-9_]*\(/ {
	name = first_word($2)
	void[name] = 1
	callable(name)
}

/^struct [a-z0-9_]+ \{/ {
	if (!(("struct_" $2) in doc))
		gap("struct " $2, "kernel-doc")
	structs++
}

END {
	if (!exported || !inlined || !structs)
		print "some kind of thing was not found at all"
}
