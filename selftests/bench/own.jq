# SPDX-License-Identifier: GPL-2.0-only
#
# Reads the lines of a guest whose device costs nothing, as one string; $kind is own or
# own-virtual. A line for each figure: what ibchan takes above raw verbs of the kernel, in
# instructions of one operation; the entry of a system call, which those do not have, is left
# out as well.
#
#   KIND NAME INSTRUCTIONS MEDIAN

# The raw case that is the baseline of an operation from user space; others are not reported.
def raw_case:
  { "user.write_64": "write_64_depth_1", "user.write_64_unchecked": "write_64_depth_1",
    "user.write_64_blocking": "write_64_depth_1", "user.write_64_depth_16": "write_64_depth_16",
    "user.write_64_chain_16": "write_64_chain_16", "user.send_64": "send_64_depth_1",
    "user.read_4k": "read_4k_depth_1", "user.write_64k": "write_64k_depth_1",
    "setup.pair": "pair", "setup.mr_4k": "mr_4k" };

split("\n") | map(select(length > 0) | split(" "))
| (map(select(.[0] == "time") | (.[1] | split(".")) as $part
       | { side: $part[0], way: $part[1], case: $part[2], least: (.[2] | tonumber),
           median: (.[3] | tonumber) })) as $kernel
| (map(select(.[0] == "own")
       | { name: .[1], least: (.[2] | tonumber), median: (.[3] | tonumber),
           calls: (.[4] | tonumber) })) as $user
| ($kernel | map(select(.side == "raw")) | group_by(.case)
   | map({ key: .[0].case, value: (map(.least) | min) }) | from_entries) as $raw
| (first($user[] | select(.name == "user.entry") | .least) // error("no user.entry")) as $entry
| ($kernel[] | select(.side == "kernel")
   | "\($kind) kernel.\(.way).\(.case | sub("_depth_1$"; "")) \(.least - $raw[.case])"
     + " \(.median - $raw[.case])"),
  ($user[] | select(.name | startswith("plain.")) | "\($kind) \(.name) \(.least) \(.median)"),
  ($user[] | select(raw_case[.name])
   | ($raw[raw_case[.name]] + ($entry * .calls / 1000 | round)) as $below
   | "\($kind) \(.name) \(.least - $below) \(.median - $below)"),
  "\($kind) user.entry \($entry) \($entry)"
