# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a report: the Markdown table of what is done from user space, for reading.

def thousandths: . * 1000 | round | tostring
  | if length < 4 then "0000"[length:] + . else . end
  | .[:-3] + "." + .[-3:];

def calls: if . == null or . < 0 then "" else . / 1000 | tostring end;

"| what | libibverbs | libibchan | ratio | goal | system calls |",
"|---|---|---|---|---|---|",
(.figures[]
 | select(.kind == "ratio" and (.name | test("^(user|plain|setup|scale)\\.")))
 | "| \(.name) | \(.raw) | \(.own) | \(.ratio | thousandths) | \(.goal // .bar // "")"
   + " | \(.own_calls | calls) |")
