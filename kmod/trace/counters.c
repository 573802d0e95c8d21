// SPDX-License-Identifier: GPL-2.0-only
/* What the module counts: see counters.h. debugfs.c shows it. */
#include "counters.h"

DEFINE_PER_CPU(struct ibchan_events, ibchan_events);
struct ibchan_gauges ibchan_gauges;
