// SPDX-License-Identifier: GPL-2.0-only
/* The module's counters: see counters.h. debugfs.c shows them. */
#include "counters.h"

DEFINE_PER_CPU(struct ibchan_events, ibchan_events);
struct ibchan_gauges ibchan_gauges;
