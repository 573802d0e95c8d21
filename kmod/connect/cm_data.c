// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts a header in front of the private data that go to a peer, and takes it off those that come.
 * The header says whether a queue pair answers a keepalive, and how long the packets may be that a
 * side takes, for which the connection manager's answer has no place: see rules/endpoint.c. The
 * private data have as many bytes less. No consumer sees it. The connection manager's own fields
 * mean the same to an ibchan as to any other peer.
 *
 * A peer that is no ibchan neither gets a header nor sends one. Each side refuses such a peer,
 * unless its consumer says that the peer may be none: IBCHAN_CONNECT_FOREIGN. The asking side
 * cannot know what its peer is: with that flag it sends no header and looks for none. The accepting
 * side puts one into its answer where the request had one.
 *
 * The connection manager rejects by itself where somebody listens at the port and nobody at
 * the address, with the code that a consumer's rejection has and without data. So a side
 * that rejects an ibchan's request puts a header in front of its data; only where the connection
 * manager does it for that side, as when an answer could not be sent, there is none.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "cm.h"

/* Bytes in front of the private data, which have as many less; @plain as in struct ibchan_cm. */
u32 ibchan_cm_data_room(bool plain)
{
	return plain ? 0 : IBCHAN_WIRE_HEADER;
}

/* Keeps the private data for the peer, behind the room for a header. @length is checked. */
void ibchan_cm_data_fill(struct ibchan_cm *cm, const void *data, u32 length)
{
	u32 room = ibchan_cm_data_room(cm->plain);

	if (length)
		memcpy(cm->data + room, data, length);
	cm->length = room + length;
}

/* Writes the header, of @kind IBCHAN_WIRE_*, once it is known how long packets are. */
void ibchan_cm_data_head(struct ibchan_cm *cm, u16 kind)
{
	const struct ibchan_channel *ch = cm->ch;
	const struct ibchan_wire own = {
		.version = IBCHAN_WIRE_VERSION,
		.room = IBCHAN_WIRE_HEADER,
		.length = cm->length - IBCHAN_WIRE_HEADER,
		.mtu = ch->qp.gid.iwarp ? 0 : ib_mtu_int_to_enum(ch->qp.params.mtu),
		.flags = ch->qp.params.access & IBCHAN_ACCESS_REMOTE_WRITE ? IBCHAN_WIRE_WRITES : 0,
	};

	if (!cm->plain)
		ibchan_wire_write(&own, kind, cm->data);
}

static u32 length_of(const struct rdma_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

/* Reads the header, of @kind IBCHAN_WIRE_*, of an event: all zero if the peer is no ibchan. */
void ibchan_cm_data_wire(const struct rdma_conn_param *param, u16 kind, struct ibchan_wire *wire)
{
	ibchan_wire_read(param->private_data, length_of(param), kind, wire);
}

/* The longest packets that a peer takes, in bytes; 0: it does not tell. */
u32 ibchan_cm_wire_mtu(const struct ibchan_wire *wire)
{
	return wire->mtu ? ib_mtu_enum_to_int(wire->mtu) : 0;
}

/*
 * Copies the private data of an event, behind their header, into the IBCHAN_PRIVATE_DATA_SIZE bytes
 * of @data, with zeros behind them. Returns the bytes that came, without the zeros behind those of
 * an ibchan.
 */
u32 ibchan_cm_data_take(const struct rdma_conn_param *param, const struct ibchan_wire *wire,
			u8 *data)
{
	u32 length = wire->version ? wire->length :
				     min_t(u32, length_of(param), IBCHAN_PRIVATE_DATA_SIZE);

	memset(data, 0, IBCHAN_PRIVATE_DATA_SIZE);
	if (length)
		memcpy(data, param->private_data + wire->room, length);
	return length;
}

/* Returns -EPROTOTYPE when the peer is no ibchan and may not be @foreign. */
int ibchan_cm_data_check(const struct ibchan_wire *wire, bool foreign, struct ibchan_reason *reason)
{
	if (!wire->version && !foreign)
		return ibchan_refuse(reason, IBCHAN_REASON_FOREIGN, -EPROTOTYPE);
	return 0;
}

/* @code: IB_CM_REJ_*. */
void ibchan_cm_reject(struct rdma_cm_id *id, const struct ibchan_wire *wire, u8 code,
		      const void *data, u32 length)
{
	const struct ibchan_wire own = {
		.version = IBCHAN_WIRE_VERSION,
		.room = IBCHAN_WIRE_HEADER,
		.length = length,
	};
	u8 bytes[IBCHAN_PRIVATE_DATA_SIZE];

	if (!wire->version) {
		rdma_reject(id, data, length, code);
		return;
	}
	ibchan_wire_write(&own, IBCHAN_WIRE_REJECTION, bytes);
	if (length)
		memcpy(bytes + own.room, data, length);
	rdma_reject(id, bytes, own.room + length, code);
}

/* Keeps the private data of a peer's rejection. Under the qp lock. */
void ibchan_cm_data_rejected(struct ibchan_cm *cm, const struct rdma_conn_param *param)
{
	struct ibchan_wire wire = {};

	if (!cm->plain)
		ibchan_cm_data_wire(param, IBCHAN_WIRE_REJECTION, &wire);
	cm->length = ibchan_cm_data_take(param, &wire, cm->data);
	cm->heard = true;
}

/* Has a rejection not even a header? Then no ibchan there has seen the request. */
bool ibchan_cm_data_none(const struct rdma_conn_param *param)
{
	u32 length = length_of(param);

	return !length || !memchr_inv(param->private_data, 0, length);
}
