# SPDX-License-Identifier: GPL-2.0-only
#
# Reads the guest's lines, as one string; $want is json, text or failed (how many figures lie
# above their bar); $kernel is its name, $gate 1 or 0.
#
#   time SIDE.WAY.CASE MINIMUM MEDIAN
#   allocations SIDE.WAY.CASE NUMBER
#   memory SIDE.WHAT OWN RAW
#   connect CASE MINIMUM MEDIAN and both of librdmacm

# Whose operations are the baseline of a side.
def baseline_of: { kernel: "raw" };

# The highest ratio allowed; null where it is only reported.
def bar_of($way; $test):
  { unpolled: 1.03, blocking: 1.03, scoped: 1.05 }[$way]
  | if . != null and ($test | startswith("send_")) then 1.05 else . end;

# Connecting may cost what it does with librdmacm, and no more.
def connect_bar: 1;

def memory_bar: { "kernel.idle_channel": 4096 };

def thousandths: . * 1000 | round | tostring
  | if length < 4 then "0000"[length:] + . else . end
  | .[:-3] + "." + .[-3:];

def measured:
  .[0] as $kind | .[1] as $name | ($name | split(".")) as $part
  | .[2:] | map(tonumber) as $value
  | { kind: $kind, name: $name, side: $part[0], way: $part[1], case: $part[2], value: $value };

# The best raw way to do a case, by side and case.
def baselines:
  map(select(.kind == "time")) | group_by([.side, .case])
  | map({ key: "\(.[0].side) \(.[0].case)", value: (map(.value[0]) | min) }) | from_entries;

def ratio_of($baselines):
  $baselines["\(baseline_of[.side]) \(.case)"] as $raw
  | { kind: "ratio", name, own: .value[0], median: .value[1], raw: $raw,
      bar: bar_of(.way; .case) }
  | if $raw == null then error("\(.name) has no baseline") else . + { ratio: (.own / $raw) } end
  | . + { above: (.bar != null and .ratio > .bar) };

# Fewer than the baseline would mean that somebody else did the work.
def allocations_of:
  { kind, name, own: .value[0], bar: 0, above: (.value[0] != 0) };

def memory_of:
  { kind, name, own: (.value[0] - .value[1]), raw: .value[1], bar: memory_bar[.name] }
  | . + { above: (.bar != null and .own > .bar) };

def connect_of:
  { kind: "ratio", name: "connect.\(.name)", own: .value[0], median: .value[1],
    raw: .value[2], raw_median: .value[3], bar: connect_bar, ratio: (.value[0] / .value[2]) }
  | . + { above: (.ratio > .bar) };

def figure($baselines):
  if .kind == "allocations" then allocations_of
  elif .kind == "memory" then memory_of
  elif .kind == "connect" then connect_of
  elif baseline_of[.side] then ratio_of($baselines)
  else empty end;

def line:
  (.kind + (if $kernel == "6.1" then "" else "-" + $kernel end)) + " " + .name + " "
  + if .kind == "ratio" then "\(.own) \(.raw) \(.ratio | thousandths)" else "\(.own)" end;

def complaint:
  "not ok: \(.name) is \(if .ratio then .ratio | thousandths else .own end), its bar is \(.bar)";

def count(condition): map(select(condition)) | length;

def summary:
  count(.bar != null) as $barred | count(.above) as $above
  | if $gate == 1 then "\($barred - $above) passed, \($above) failed, 0 skipped"
    else "0 passed, 0 failed, \($barred) skipped" end;

split("\n") | map(select(length > 0) | split(" ") | measured)
| baselines as $baselines
| . as $lines
| map(figure($baselines))
| if $want == "failed" then (if $gate == 1 then count(.above) else 0 end)
  elif $want == "json" then
    { kernel: $kernel, unit: "instructions", bytes_unit: "bytes",
      raw: ($lines | map(select(.kind == "time" and (baseline_of[.side] | not))
                         | { name, minimum: .value[0], median: .value[1] })),
      figures: . }
  else (.[] | line),
    (if $gate == 1 then .[] | select(.above) | complaint else empty end),
    summary
  end
