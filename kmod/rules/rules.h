/* SPDX-License-Identifier: GPL-2.0-only */
/* The door of rules/, which decides without side effects, in any context. */
#ifndef IBCHAN_RULES_H
#define IBCHAN_RULES_H

#include <linux/mm.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>

#include "budget.h"
#include "busy.h"
#include "check.h"
#include "places.h"
#include "footprint.h"
#include "params.h"
#include "segments.h"
#include "wire.h"

/* The bit of a P_Key that says full: a limited member talks to full ones only. */
#define IBCHAN_PKEY_FULL_MEMBER	0x8000

/**
 * struct ibchan_gid - the address that a channel uses
 * @port: port
 * @index: entry of the port's GID table
 * @gid: the address
 * @mac: Ethernet address behind it
 * @family: 4 or 6; 0 on InfiniBand and iWARP
 * @type: enum ib_gid_type
 * @iwarp: the port connects by rdma_cm only
 * @pkey_index: entry of the port's P_Key table; 0 on Ethernet
 * @pkey: that entry; 0 on Ethernet
 * @port_mtu: of the port when it was chosen, in bytes
 * @mtu: bytes of a packet that go over the address's network device and the port
 * @max_message: that the port takes, in bytes
 * @lid: of the port, on InfiniBand
 * @max_lid: that a port of this fabric may have, on InfiniBand
 * @grh: packets to it need a global route header, on InfiniBand
 */
struct ibchan_gid {
	u32 port;
	u32 index;
	u32 pkey_index;
	u32 port_mtu;
	u32 mtu;
	u32 max_message;
	u32 lid;
	u32 max_lid;
	union ib_gid gid;
	u16 pkey;
	u8 mac[ETH_ALEN];
	u8 family;
	u8 type;
	u8 iwarp;
	u8 grh;
};

/*
 * Each qp keeps one slot of each queue for the marker of its own drain. Until then the one of
 * the send queue is the keepalive's.
 */
#define IBCHAN_MARKERS		1

/* wr.c */
int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error);
int ibchan_refuse_parameter(struct ibchan_reason *reason, u32 which, u64 value, u64 low, u64 high);
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error,
			 const u64 value[3]);

/* times.c */
void ibchan_times_fill(const struct ibchan_params *params, struct ibchan_times *times);

/* endpoint.c */
void ibchan_endpoint_build(struct ibchan_endpoint *endpoint, const struct ibchan_gid *gid,
			   const struct ibchan_params *params, u32 qpn);
int ibchan_endpoint_check(const struct ibchan_endpoint *ours,
			  const struct ibchan_endpoint *theirs, u32 max_lid,
			  struct ibchan_reason *reason);
u8 ibchan_gid_family(const u8 *gid);
int ibchan_pkey_rank(u16 pkey);

/* state.c */
bool ibchan_state_may(u32 from, u32 to);
int ibchan_state_error(u32 state, u32 error);

/* Pages that a range touches. The end of the range does not wrap. */
static inline u64 ibchan_pages_spanned(u64 addr, u64 length)
{
	return (PAGE_ALIGN(addr + length) - PAGE_ALIGN_DOWN(addr)) >> PAGE_SHIFT;
}

#endif /* IBCHAN_RULES_H */
