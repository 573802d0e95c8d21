# SPDX-License-Identifier: GPL-2.0-only
#
# Reads the guest's lines, as one string; $want is json, text or failed (how many figures lie
# above their bar); $kernel is its name, $gate 1 or 0.
#
#   time SIDE.WAY.CASE MINIMUM MEDIAN
#   allocations SIDE.WAY.CASE NUMBER
#   memory SIDE.WHAT OWN RAW
#   connect CASE MINIMUM MEDIAN and both of librdmacm
#   stream CASE MINIMUM MEDIAN and both of rsockets
#   ways, plain, scale: see operate/measure.h, plain.c and scale.c
#   clock: as ways, in nanoseconds
#   own, own-virtual: see own.jq
#   storage CASE OWN STOCK: I/Os in a second of a clock that counts instructions

# Whose operations are the baseline of a side.
def baseline_of: { kernel: "raw" };

# Soft-RoCE of later kernels has a workqueue, whose single runs differ by that much.
def room: if $kernel == "6.1" then 1 else 1.05 end;

# The highest ratio that is wanted, and that is allowed because it is what is reached; of a send
# the second one. null where it is only reported.
def way_of($ways; $way; $test):
  $ways[$way]
  | if . == null then null
    else (if $test | startswith("send_") then .[1] else .[0] end) * room end;

def way_goal($way; $test):
  way_of({ unpolled: [1.03, 1.05], blocking: [1.03, 1.05], scoped: [1.03, 1.05],
           unpolled_exclusive: [1.08, 1.12] }; $way; $test);

def bar_of($way; $test):
  way_of({ unpolled: [1.05, 1.085], blocking: [1.06, 1.1], scoped: [1.06, 1.1],
           unpolled_exclusive: [1.08, 1.12] }; $way; $test);

# Connecting, compared with librdmacm.
def connect_bar: 0.90 * room;

# Messages of the short way, compared with rsockets.
def stream_bar: 1.00 * room;

# What operate may cost, compared with libibverbs.
def goals:
  { "user.write_64": 1.03, "user.write_64_unchecked": 1.03, "user.atomic": 1.03, "user.read_4k": 1,
    "user.send_64": 1.06, "user.write_64_blocking": 1.045, "user.write_64_depth_16": 1.03,
    "user.write_64_chain_16": 1.04, "user.write_64_chain_64": 1.04, "user.write_64k": 1,
    "user.write_1m": 1, "setup.pair": 0.75, "setup.mr_4k": 1.02, "setup.mr_1m": 1.02,
    "setup.mr_256m": 1.02, "setup.mr_256m_huge": 1.02, "plain.receive_4k": 0.40,
    "plain.receive_1m": 0.80, "plain.receive_1m_huge": 0.80, "plain.receive_1m_many": 0.80,
    "storage.read_4k_1": 1, "storage.read_4k_16": 1, "storage.write_4k_1": 1,
    "storage.write_4k_16": 1, "storage.write_4k_keyed_1": 1, "storage.write_4k_keyed_16": 1,
    "storage.read_64k_1": 1, "storage.read_64k_16": 1, "storage.write_64k_1": 1,
    "storage.write_64k_16": 1, "storage.read_1m_1": 1 };

# Where that has not been reached: what has been, and some room. There is one way to post, which
# serves each kind of request, and soft-RoCE looks for the region that libibverbs writes into
# its queue. Of storage: soft-RoCE sends at once behind a post that held off its softirq; what
# moves 64 KiB and more is equal, and fio tells it in steps of up to 0.5 %.
def held:
  { "6.1": { "user.atomic": 1.05, "setup.mr_4k": 1.07, "plain.receive_1m": 0.92,
             "plain.receive_1m_many": 0.835,
             "storage.read_4k_16": 1.035, "storage.write_4k_16": 1.035,
             "storage.write_4k_keyed_16": 1.035, "storage.read_64k_1": 1.01,
             "storage.read_64k_16": 1.01, "storage.write_64k_1": 1.01,
             "storage.read_1m_1": 1.01 },
    "6.12": { "user.write_64": 1.1, "user.write_64_unchecked": 1.1, "user.atomic": 1.1,
              "user.send_64": 1.19, "user.write_64_blocking": 1.09,
              "user.write_64_depth_16": 1.11, "user.write_64_chain_16": 1.19,
              "user.write_64_chain_64": 1.2, "setup.mr_4k": 1.18,
              "plain.receive_1m_many": 1.12 } }[$kernel] // {};

# What a work may cost by itself, in instructions.
def own_goals:
  { "kernel.unpolled.write_64": 450, "kernel.unpolled_exclusive.write_64": 520,
    "kernel.unpolled.write_64_chain_16": 240, "kernel.qp.write_64": 750,
    "user.write_64": 1250, "user.write_64_blocking": 1550, "user.write_64_depth_16": 1200,
    "user.write_64_chain_16": 480, "user.send_64": 2000 };

# Of what has no goal: what has been reached, and some room; behind an IOMMU, which costs the most.
def own_held:
  { "kernel.unpolled.send_64": 800, "kernel.blocking.write_64": 540,
    "kernel.scoped.write_64": 555, "user.write_64_unchecked": 1000 };

# The same of what maps memory, which is dear behind an IOMMU.
def own_mapping_held:
  { "own":
      { "6.1": { "setup.pair": 88000, "setup.mr_4k": 9300, "plain.receive_4k": 8300,
                 "plain.receive_1m": 285000, "plain.receive_1m_huge": 40000,
                 "plain.receive_1m_many": 275000 },
        "6.12": { "setup.pair": 67000, "setup.mr_4k": 11900, "plain.receive_4k": 7500,
                  "plain.receive_1m": 120000, "plain.receive_1m_huge": 49000,
                  "plain.receive_1m_many": 150000 } },
    "own-virtual":
      { "6.1": { "setup.pair": 88000, "setup.mr_4k": 5500, "plain.receive_4k": 4600,
                 "plain.receive_1m": 100000, "plain.receive_1m_huge": 24500,
                 "plain.receive_1m_many": 104000 },
        "6.12": { "setup.pair": 67000, "setup.mr_4k": 10100, "plain.receive_4k": 3800,
                  "plain.receive_1m": 101000, "plain.receive_1m_huge": 32500,
                  "plain.receive_1m_many": 129000 } } };

# However many there are.
def scale_bar: 1.05;

# Of one operation, in thousandths: what a post takes, and nothing for its end.
def calls_bar:
  if .chain > 0 then (1000 / .chain | floor) else null end;

def memory_bar: { "kernel.idle_channel": 8192 };

def thousandths: . * 1000 | round | tostring
  | if length < 4 then "0000"[length:] + . else . end
  | .[:-3] + "." + .[-3:];

def goal_of($name): if goals[$name] then goals[$name] * room else null end;

def ways_bar($name): held[$name] // goal_of($name);

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
      bar: bar_of(.way; .case), goal: way_goal(.way; .case) }
  | if $raw == null then error("\(.name) has no baseline") else . + { ratio: (.own / $raw) } end
  | . + { above: (.bar != null and .ratio > .bar) };

# Fewer than the baseline would mean that somebody else did the work.
def allocations_of:
  { kind, name, own: .value[0], bar: 0, above: (.value[0] != 0) };

def memory_of:
  { kind, name, own: (.value[0] - .value[1]), raw: .value[1], bar: memory_bar[.name] }
  | . + { above: (.bar != null and .own > .bar) };

def judged: . + { above: (.bar != null and .ratio > .bar) };

def pair_of($bar):
  { kind: "ratio", name: "\(.kind).\(.name)", own: .value[0], median: .value[1],
    raw: .value[2], raw_median: .value[3], bar: $bar, ratio: (.value[0] / .value[2]) }
  | judged;

def ways_of:
  .value as $v
  | { kind: "ratio", name, size: $v[0], depth: $v[1], chain: $v[2], own: $v[3], median: $v[4],
      raw: $v[5], raw_median: $v[6], own_calls: $v[7], raw_calls: $v[8],
      bar: ways_bar(.name), goal: goal_of(.name), ratio: ($v[3] / $v[5]) }
  | . + { calls_bar: calls_bar }
  | judged
  | . + { calls_above: (.calls_bar != null and .own_calls > .calls_bar) };

# Nobody judges these.
def clock_of:
  .value as $v
  | { kind, name, size: $v[0], depth: $v[1], chain: $v[2], own: $v[3], median: $v[4],
      raw: $v[5], raw_median: $v[6], unit: "nanoseconds", ratio: ($v[3] / $v[5]) };

def own_of:
  { kind, name, own: .value[0], median: .value[1], goal: own_goals[.name] }
  | . + { bar: (own_held[.name] // own_mapping_held[.kind][$kernel][.name] // .goal) }
  | . + { above: (.bar != null and .own > .bar) };

def plain_of:
  .value as $v
  | { kind: "ratio", name, size: $v[0], own: ($v[1] - $v[3]), median: ($v[2] - $v[4]),
      plain: $v[1], registered: $v[3], raw: $v[5], raw_median: $v[6],
      bar: ways_bar(.name), goal: goal_of(.name), ratio: (($v[1] - $v[3]) / $v[5]) }
  | judged;

def scale_of:
  .value as $v
  | { kind: "ratio", name, number: $v[0], own: $v[1], median: $v[2], raw: $v[3],
      raw_median: $v[4], bar: scale_bar, ratio: ($v[1] / $v[3]) }
  | judged;

def per_io: 1000000000 / . | round;

def storage_of:
  "storage.\(.name)" as $name
  | { kind: "ratio", name: $name, own: (.value[0] | per_io), raw: (.value[1] | per_io),
      bar: ways_bar($name), goal: goal_of($name), ratio: (.value[1] / .value[0]) }
  | judged;

def figure($baselines):
  if .kind == "ways" then ways_of
  elif .kind == "clock" then clock_of
  elif .kind == "plain" then plain_of
  elif .kind == "own" or .kind == "own-virtual" then own_of
  elif .kind == "scale" then scale_of
  elif .kind == "allocations" then allocations_of
  elif .kind == "memory" then memory_of
  elif .kind == "connect" then pair_of(connect_bar)
  elif .kind == "stream" then pair_of(stream_bar)
  elif .kind == "storage" then storage_of
  elif baseline_of[.side] then ratio_of($baselines)
  else empty end;

def line:
  (.kind + (if $kernel == "6.1" then "" else "-" + $kernel end)) + " " + .name + " "
  + if .ratio then "\(.own) \(.raw) \(.ratio | thousandths)" else "\(.own)" end;

def complaints:
  (select(.above)
   | "not ok: \(.kind) \(.name) is \(if .ratio then .ratio | thousandths else .own end), its bar is \(.bar)"),
  (select(.calls_above)
   | "not ok: \(.name) takes \(.own_calls) thousandths of a system call, its bar is \(.calls_bar)");

def open_goals:
  if .goal == null then empty
  elif .ratio == null then
    select(.own > .goal) | "open: \(.kind) \(.name) is \(.own), its goal is \(.goal)"
  else
    select(.ratio > .goal)
    | "open: \(.name) is \(.ratio | thousandths), its goal is \(.goal | thousandths)"
  end;

def count(condition): map(select(condition)) | length;

def barred: count(.bar != null) + count(.calls_bar != null);

def above: count(.above) + count(.calls_above);

def summary:
  barred as $barred | above as $above
  | if $gate == 1 then "\($barred - $above) passed, \($above) failed, 0 skipped"
    else "0 passed, 0 failed, \($barred) skipped" end;

split("\n") | map(select(length > 0) | split(" ") | measured)
| baselines as $baselines
| . as $lines
| map(figure($baselines))
| if $want == "failed" then (if $gate == 1 then above else 0 end)
  elif $want == "json" then
    { kernel: $kernel, unit: "instructions", bytes_unit: "bytes",
      raw: ($lines | map(select(.kind == "time" and (baseline_of[.side] | not))
                         | { name, minimum: .value[0], median: .value[1] })),
      figures: . }
  else (.[] | line),
    (.[] | open_goals),
    (if $gate == 1 then .[] | complaints else empty end),
    summary
  end
