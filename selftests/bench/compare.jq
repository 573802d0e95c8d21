# SPDX-License-Identifier: GPL-2.0-only
#
# Reads two reports, the older first: a line for each figure that differs by more than one in
# a hundred, and for each that only one of them has, but for what a clock measured.
#
#   change NAME OLD NEW DIFFERENCE

def by_name:
  map(select(.kind != "clock"))
  | map({ key: (if .kind == "ratio" then .name else "\(.kind) \(.name)" end), value: .own })
  | from_entries;

def percent: . * 1000 | round / 10 | if . > 0 then "+\(.)" else "\(.)" end;

.[0].kernel as $old_kernel | .[1].kernel as $new_kernel
| if $old_kernel != $new_kernel then
    error("one is of kernel \($old_kernel), the other of \($new_kernel)") else . end
| (.[0].figures | by_name) as $old | (.[1].figures | by_name) as $new
| ($old + $new | keys[]) as $name
| $old[$name] as $was | $new[$name] as $is
| if $was == null then "change \($name) - \($is) new"
  elif $is == null then "change \($name) \($was) - gone"
  elif $was == $is then empty
  elif $was == 0 then "change \($name) 0 \($is) new"
  elif (($is - $was) / $was | fabs) > 0.01 then
    "change \($name) \($was) \($is) \(($is - $was) / $was | percent) %"
  else empty end
