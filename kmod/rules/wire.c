// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and reads the header that two ibchans put in front of the private data of each message of
 * the connection manager. It comes over a wire that nobody vouches for. Pure.
 *
 * Each side tells its own version of the wire and what it has. Both use the smaller version, and
 * of what it has only bits that both know: so a later version adds bits, and puts what belongs to
 * them between this header and the private data, which is why a header tells how long it is.
 */
#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "wire.h"

/* The bytes themselves, in network order */
struct header {
	__be16 kind;	/* IBCHAN_WIRE_REQUEST and its like */
	u8 version;	/* of the wire, 1 and up */
	u8 room;	/* bytes in front of the private data */
	u8 length;	/* bytes of private data */
	u8 mtu;	/* see struct ibchan_wire */
	__be16 flags;	/* see struct ibchan_wire */
};

/* Writes IBCHAN_WIRE_HEADER bytes; @kind is IBCHAN_WIRE_REQUEST, _ANSWER or _REJECTION. */
void ibchan_wire_write(const struct ibchan_wire *wire, u16 kind, u8 *to)
{
	const struct header header = {
		.kind = cpu_to_be16(kind),
		.version = wire->version,
		.room = wire->room,
		.length = wire->length,
		.mtu = wire->mtu,
		.flags = cpu_to_be16(wire->flags),
	};

	BUILD_BUG_ON(sizeof(header) != IBCHAN_WIRE_HEADER);
	memcpy(to, &header, sizeof(header));
}

/*
 * Reads the header of a peer from @size bytes, which may be any at all. @wire is all zero if the
 * peer is no ibchan, or its header is damaged. The header must be of @kind: a peer that sends the
 * request back does not answer.
 */
void ibchan_wire_read(const u8 *from, u32 size, u16 kind, struct ibchan_wire *wire)
{
	struct header header;

	*wire = (struct ibchan_wire) {};
	if (size < sizeof(header))
		return;
	memcpy(&header, from, sizeof(header));
	if (header.kind != cpu_to_be16(kind) || !header.version ||
	    header.room < IBCHAN_WIRE_HEADER || header.length > IBCHAN_PRIVATE_DATA_SIZE ||
	    header.room + header.length > size)
		return;
	*wire = (struct ibchan_wire) {
		.version = min_t(u8, header.version, IBCHAN_WIRE_VERSION),
		.room = header.room,
		.length = header.length,
		.mtu = header.mtu <= IB_MTU_4096 ? header.mtu : 0,
		.flags = be16_to_cpu(header.flags) & IBCHAN_WIRE_FLAGS,
	};
}
