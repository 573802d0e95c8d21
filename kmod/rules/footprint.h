/* SPDX-License-Identifier: GPL-2.0-only */
/* What objects take of kernel memory; see footprint.c. */
#ifndef IBCHAN_FOOTPRINT_H
#define IBCHAN_FOOTPRINT_H

#include <linux/types.h>

struct ibchan_channel;

/* A protection domain, and the notifier that watches where its memory lies. */
#define IBCHAN_FOOTPRINT_PD		1024
/* A listener, with an id of the connection manager for each device. */
#define IBCHAN_FOOTPRINT_LISTENER	8192

u64 ibchan_footprint_cq(u32 entries);
u64 ibchan_footprint_channel(const struct ibchan_channel *ch);
u64 ibchan_footprint_mr(u64 pages, u64 room);

#endif /* IBCHAN_FOOTPRINT_H */
