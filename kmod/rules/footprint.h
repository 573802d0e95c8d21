/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel memory that objects take, in bytes; see footprint.c. */
#ifndef IBCHAN_FOOTPRINT_H
#define IBCHAN_FOOTPRINT_H

#include <linux/types.h>

/* How large a queue of a channel is */
struct ibchan_queue_size {
	u32 depth;	/* works that may be in flight */
	u32 max_sge;	/* elements of one work */
	bool has_works;	/* it has works of its own, for requests that bring none */
	bool exclusive;	/* works may keep others out of their ranges */
};

/* A protection domain, with its pool. */
#define IBCHAN_FOOTPRINT_PD		1024
/* A listener, with an id of the connection manager for each device. */
#define IBCHAN_FOOTPRINT_LISTENER	8192
/* A request, with an id of the connection manager, which keeps a part of the peer's message. */
#define IBCHAN_FOOTPRINT_REQUEST	4096

u64 ibchan_footprint_cq(u32 entries);
u64 ibchan_footprint_channel(const struct ibchan_queue_size *send,
			     const struct ibchan_queue_size *recv, u32 max_inline,
			     u32 max_rd_atomic);
u64 ibchan_footprint_mr(u64 pages, u64 room);

#endif /* IBCHAN_FOOTPRINT_H */
