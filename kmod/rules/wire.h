/* SPDX-License-Identifier: GPL-2.0-only */
/* The header that two ibchans put in front of the private data: see endpoint.c. */
#ifndef IBCHAN_WIRE_H
#define IBCHAN_WIRE_H

#include <linux/types.h>
#include <rdma/ibchan.h>

/* Of this side. A build may claim another one, to be the peer of a later version in a test. */
#ifndef IBCHAN_WIRE_VERSION
#define IBCHAN_WIRE_VERSION	IBCHAN_ENDPOINT_VERSION
#endif

/* Bytes in front of the private data. */
#define IBCHAN_WIRE_HEADER	8

/* Bits of @flags; the lowest ones are those of an endpoint. */
#define IBCHAN_WIRE_WRITES	IBCHAN_ENDPOINT_REMOTE_WRITE
#define IBCHAN_WIRE_FLAGS	IBCHAN_WIRE_WRITES

/* The kind of a header: its first two bytes. No text begins so, in ASCII or in UTF-8. */
#define IBCHAN_WIRE_REQUEST	0xc41b
#define IBCHAN_WIRE_ANSWER	0xc41c
#define IBCHAN_WIRE_REJECTION	0xc41d

/* The header that one side sends the other. */
struct ibchan_wire {
	/* of the wire; of a peer the smaller one of both sides'; 0: it is no ibchan */
	u8 version;
	u8 room;	/* bytes in front of the private data */
	u8 length;	/* bytes of private data */
	u8 mtu;	/* enum ib_mtu: how long packets the side takes; 0: it does not tell */
	u16 flags;	/* IBCHAN_WIRE_*; of a peer only those that this side knows */
};

void ibchan_wire_write(const struct ibchan_wire *wire, u16 kind, u8 *to);
void ibchan_wire_read(const u8 *from, u32 size, u16 kind, struct ibchan_wire *wire);

#endif /* IBCHAN_WIRE_H */
