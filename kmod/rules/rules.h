/* SPDX-License-Identifier: GPL-2.0-only */
/* The door of rules/, which decides without side effects, in any context. */
#ifndef IBCHAN_RULES_H
#define IBCHAN_RULES_H

#include <linux/mm.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>

#include "budget.h"
#include "busy.h"
#include "check.h"
#include "places.h"
#include "refuse.h"
#include "wire.h"

/* The bit of a P_Key that says full: a limited member talks to full ones only. */
#define IBCHAN_PKEY_FULL_MEMBER	0x8000

/* The address that a channel uses */
struct ibchan_gid {
	u32 port;	/* port */
	u32 index;	/* entry of the port's GID table */
	u32 pkey_index;	/* entry of the port's P_Key table; 0 on Ethernet */
	u32 port_mtu;	/* of the port when it was chosen, in bytes */
	/* bytes of a packet that go over the address's network device and the port */
	u32 mtu;
	u32 max_message;	/* that the port takes, in bytes */
	u32 lid;	/* of the port, on InfiniBand */
	u32 max_lid;	/* that a port of this fabric may have, on InfiniBand */
	union ib_gid gid;	/* the address */
	u16 pkey;	/* that entry; 0 on Ethernet */
	u8 mac[ETH_ALEN];	/* Ethernet address behind it */
	u8 family;	/* 4 or 6; 0 on InfiniBand and iWARP */
	u8 type;	/* enum ib_gid_type */
	u8 iwarp;	/* the port connects by rdma_cm only */
	u8 grh;	/* packets to it need a global route header, on InfiniBand */
};

/* A part of a region that is contiguous for the device: see segments.c */
struct ibchan_segment {
	u64 start;	/* offset of its first byte in the region */
	u64 dma;	/* address of that byte for the device */
};

/*
 * Each qp keeps one slot of each queue for the marker of its own drain. Until then the one of
 * the send queue is the keepalive's.
 */
#define IBCHAN_MARKERS		1

/* params.c */
void ibchan_params_choose(struct ibchan_params *params, const struct ibchan_device_attr *attr);
int ibchan_params_check(const struct ibchan_params *params, const struct ibchan_device_attr *attr,
			struct ibchan_reason *reason);
int ibchan_options_check(const struct ibchan_options *options, struct ibchan_reason *reason);
u32 ibchan_keepalive_asks_ms(u32 keepalive_ms);
u32 ibchan_keepalive_notice_ms(u32 keepalive_ms, const struct ibchan_params *params);
int ibchan_access_check(u32 access, struct ibchan_reason *reason);
void ibchan_times_fill(const struct ibchan_params *params, struct ibchan_times *times);

/* segments.c */
u32 ibchan_segments_find(const struct ibchan_segment *segments, u32 num, u64 offset);
u32 ibchan_segments_count(const struct ibchan_segment *segments, u32 num, u64 offset, u64 length);

/* endpoint.c */
void ibchan_endpoint_build(struct ibchan_endpoint *endpoint, const struct ibchan_gid *gid,
			   const struct ibchan_params *params, u32 qpn);
int ibchan_endpoint_check(const struct ibchan_endpoint *ours,
			  const struct ibchan_endpoint *theirs, u32 max_lid,
			  struct ibchan_reason *reason);
u8 ibchan_gid_family(const u8 *gid);
int ibchan_pkey_rank(u16 pkey);

/* status.c */
bool ibchan_state_may(u32 from, u32 to);
int ibchan_state_error(u32 state, u32 error);

/* Pages that a range touches. The end of the range does not wrap. */
static inline u64 ibchan_pages_spanned(u64 addr, u64 length)
{
	return (PAGE_ALIGN(addr + length) - PAGE_ALIGN_DOWN(addr)) >> PAGE_SHIFT;
}

#endif /* IBCHAN_RULES_H */
