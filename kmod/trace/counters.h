/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's counters. The first ones only grow and are per cpu; the others
 * say what exists now, and are all 0 when nobody uses the module.
 */
#ifndef IBCHAN_COUNTERS_H
#define IBCHAN_COUNTERS_H

#include <linux/atomic.h>
#include <linux/percpu.h>

#define IBCHAN_EVENTS(X)					\
	X(works_posted)						\
	X(works_retired)

#define IBCHAN_GAUGES(X)					\
	X(pds)							\
	X(mrs_registered)					\
	X(mr_pages)						\
	X(cqs)							\
	X(channels)						\
	X(contexts)						\
	X(rings)						\
	X(charges)						\
	X(charged_bytes)					\
	X(leaked)

#define IBCHAN_EVENT_FIELD(name) u64 name;
struct ibchan_events {
	IBCHAN_EVENTS(IBCHAN_EVENT_FIELD)
};

#define IBCHAN_GAUGE_FIELD(name) atomic64_t name;
struct ibchan_gauges {
	IBCHAN_GAUGES(IBCHAN_GAUGE_FIELD)
};

DECLARE_PER_CPU(struct ibchan_events, ibchan_events);
extern struct ibchan_gauges ibchan_gauges;

#define ibchan_count(name, n)	this_cpu_add(ibchan_events.name, n)
#define ibchan_gauge(name, n)	atomic64_add(n, &ibchan_gauges.name)

#endif /* IBCHAN_COUNTERS_H */
