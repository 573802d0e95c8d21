// SPDX-License-Identifier: GPL-2.0-only
/* Where the tracepoints and the counters live. */
#include <linux/types.h>

#include "counters.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

DEFINE_PER_CPU(struct ibchan_events, ibchan_events);
struct ibchan_gauges ibchan_gauges;
