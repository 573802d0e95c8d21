/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* Endpoints, which two peers exchange to connect. <linux/ibchan.h> includes this file. */
#ifndef _UAPI_LINUX_IBCHAN_ENDPOINT_H
#define _UAPI_LINUX_IBCHAN_ENDPOINT_H

#include <linux/types.h>

/* Sizes that are part of the contract. */
#define IBCHAN_GID_SIZE		16
#define IBCHAN_ENDPOINT_SIZE	64

#define IBCHAN_ENDPOINT_MAGIC	0x49424348U	/* "IBCH" */
#define IBCHAN_ENDPOINT_VERSION	1	/* also of what two ibchans tell each other by address */

/* Flags of an endpoint. */
#define IBCHAN_ENDPOINT_REMOTE_WRITE	0x1U	/* it takes writes, empty ones too */
#define IBCHAN_ENDPOINT_GRH		0x2U	/* InfiniBand: it is reached with a GRH only */

#define IBCHAN_LINK_LAYER_INFINIBAND	1
#define IBCHAN_LINK_LAYER_ETHERNET	2
#define IBCHAN_LINK_LAYER_IWARP		3	/* of an endpoint that nobody can use */

/**
 * struct ibchan_endpoint - one side of a channel to be, in network order
 * @magic: IBCHAN_ENDPOINT_MAGIC
 * @version: IBCHAN_ENDPOINT_VERSION, or a later one: both sides use what they have in common
 * @link_layer: IBCHAN_LINK_LAYER_*
 * @mtu: the largest this side takes, 1 (256 bytes) to 5 (4096 bytes)
 * @qpn: queue pair number, 24 bits
 * @psn: first packet sequence number that this side sends, 24 bits
 * @gid: the address that the peer sends to
 * @mac: Ethernet address behind @gid; 0 on InfiniBand
 * @max_dest_rd_atomic: reads and atomics of the peer that this side serves at
 *	a time
 * @flags: IBCHAN_ENDPOINT_*; the peer ignores bits that it does not know
 * @lid: InfiniBand address within the subnet, 1 to 0xbfff, on Omni-Path more; 0 on Ethernet
 * @reserved1: as @reserved
 * @pkey: InfiniBand partition that this side is in; 0 on Ethernet
 * @reserved: 0; a later version's, of bits of @flags that it has
 */
struct ibchan_endpoint {
	__be32 magic;
	__be16 version;
	__u8 link_layer;
	__u8 mtu;
	__be32 qpn;
	__be32 psn;
	__u8 gid[IBCHAN_GID_SIZE];
	__u8 mac[6];
	__u8 max_dest_rd_atomic;
	__u8 flags;
	__be32 lid;
	__u8 reserved1[12];
	__be16 pkey;
	__u8 reserved[6];
};

#endif /* _UAPI_LINUX_IBCHAN_ENDPOINT_H */
