# SPDX-License-Identifier: GPL-2.0-only
#
# awk -v bare=PERCENT -f sentences.awk SOURCE...: sentences of comments, and of pages of the manual
# (*.in), that name no subject.
#
# A sentence begins where a comment, a paragraph or an entry of kernel-doc does, and behind ". ", "; " and
# ": ". It has no subject if it begins with "what", "who" or the like and is no question. Fails, and names
# offenders, if more than `bare` in a hundred have none.

function judge(sentence) {
	gsub(/^ +| +$/, "", sentence)
	if (split(sentence, words, " ") < 3)
		return
	sentences++
	if (words[1] !~ /^([Ww]hat|[Ww]ho|[Ww]hose|[Ww]hich)(ever)?$/ || sentence ~ /\?$/)
		return
	offenders[++without] = FILENAME ":" began ": " substr(sentence, 1, 80)
}

function end_paragraph() {
	gsub(/[ \t]+/, " ", paragraph)
	sub(/^ ?(@[A-Za-z0-9_.]+:|((struct|enum|union) )?[A-Za-z0-9_]+(\(\))? - |[A-Z][a-z]+:) ?/, "", paragraph)
	while (match(paragraph, /[.;:?!] /)) {
		judge(substr(paragraph, 1, RSTART))
		paragraph = substr(paragraph, RSTART + 2)
	}
	judge(paragraph)
	paragraph = ""
}

function add(text) {
	sub(/^[ \t]*\*+/, "", text)
	if (text ~ /^[ \t]*$/ || text ~ /^ ?(@[A-Za-z0-9_.]+:|[A-Z][a-z]+: )/)
		end_paragraph()
	if (paragraph == "")
		began = FNR
	paragraph = paragraph " " text
}

# The line behind a .TP is the entry's name.
function add_page_line() {
	if (named) {
		named = 0
		return
	}
	if (/^['.]/ && !/^\.(B|BI|BR|I|IB|IR|RB|RI) /) {
		named = /^\.TP/
		end_paragraph()
		return
	}
	gsub(/^\.[BIR]+ |\\f.|\\&|"/, "")
	if (paragraph == "")
		began = FNR
	paragraph = paragraph " " $0
}

FNR == 1 {
	end_paragraph()
	in_comment = 0
}

FILENAME ~ /\.in$/ {
	add_page_line()
	next
}

{
	line = $0
	while (line != "") {
		if (!in_comment) {
			at = index(line, "/*")
			if (!at)
				next
			line = substr(line, at + 2)
			in_comment = 1
			paragraph = ""
		}
		at = index(line, "*/")
		if (!at) {
			add(line)
			next
		}
		add(substr(line, 1, at - 1))
		end_paragraph()
		in_comment = 0
		line = substr(line, at + 2)
	}
}

END {
	end_paragraph()
	printf "%d sentences, %.1f in a hundred without a subject\n", sentences, 100 * without / sentences
	if (sentences && 100 * without <= bare * sentences)
		exit
	for (i = 1; i <= without; i++)
		print offenders[i]
	exit 1
}
