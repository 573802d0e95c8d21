// SPDX-License-Identifier: GPL-2.0-only
/*
 * What two channels tell each other beside what the connection manager carries for them: whether
 * a queue pair answers a keepalive, where it is granted credits, and how long the packets may be
 * that the accepting side takes, for which the connection manager's answer has no place. This
 * "front" lies in front of the private data, which have as many bytes less. No consumer sees it.
 *
 * A peer that is no ibchan neither gets a front nor sends one. The accepting side puts one into its
 * answer where the request had one. The asking side cannot know whom it asks, so its consumer says
 * that the peer may be no ibchan: IBCHAN_CONNECT_FOREIGN. Over iWARP there is nothing to tell.
 * The connection manager's own fields mean the same to an ibchan as to any other peer.
 *
 * A front is told from private data by its first bytes, with which no text begins, by bits that
 * are zero in this version, and by its kind: a peer that sends back what it got sends no answer.
 *
 * The connection manager rejects by itself where somebody listens at the port and nobody at
 * the address, with the code that a consumer's rejection has and without data. So a side
 * that rejects an ibchan's request puts a mark behind its data; only where the connection
 * manager does it for that side, as when an answer could not be sent, there is none. Over iWARP
 * the code says as much.
 */
#include <linux/stddef.h>
#include <linux/string.h>

#include "cm.h"
#include "flow.h"
#include "parts.h"

#define FRONT_MAGIC	0xc41b		/* neither ASCII nor UTF-8 */
#define FRONT_VERSION	1
#define FRONT_FLAGS	(IBCHAN_FRONT_WRITES | IBCHAN_FRONT_CREDITS | IBCHAN_FRONT_MTU)
#define MTU_SHIFT	4
#define REJECT_MAGIC	0x4942434aU	/* "IBCJ" */

/* Of a front without credits. */
#define SHORT_FRONT	offsetof(struct ibchan_cm_front, rkey)

/* Of a rejection, the mark included. Its length does not cross. */
struct reject_data {
	u8 data[IBCHAN_REJECT_DATA];
	__be32 magic;
};

static u32 front_length(const struct ibchan_cm_front *front)
{
	if (!front->magic)
		return 0;
	return front->what & IBCHAN_FRONT_CREDITS ? sizeof(*front) : SHORT_FRONT;
}

/**
 * ibchan_cm_data_room - bytes in front of the private data
 * @ch: the channel
 * @plain: see struct ibchan_cm
 *
 * Return: as many as the private data have less.
 */
u32 ibchan_cm_data_room(const struct ibchan_channel *ch, bool plain)
{
	if (plain)
		return 0;
	return ch->flow ? sizeof(struct ibchan_cm_front) : SHORT_FRONT;
}

/**
 * ibchan_cm_data_fill - what goes to the peer
 * @cm: filled
 * @data: the caller's
 * @length: bytes of @data; checked
 */
void ibchan_cm_data_fill(struct ibchan_cm *cm, const void *data, u32 length)
{
	const struct ibchan_channel *ch = cm->ch;
	u32 room = ibchan_cm_data_room(ch, cm->plain);
	struct ibchan_cm_front front = {
		.magic = cpu_to_be16(FRONT_MAGIC),
		.version = FRONT_VERSION,
	};

	if (ch->qp.params.access & IBCHAN_ACCESS_REMOTE_WRITE)
		front.what |= IBCHAN_FRONT_WRITES;
	if (ch->flow)
		front.what |= IBCHAN_FRONT_CREDITS;
	ibchan_flow_own(ch, &front.addr, &front.rkey);
	memcpy(cm->data, &front, room);
	if (length)
		memcpy(cm->data + room, data, length);
	cm->length = room + length;
}

/**
 * ibchan_cm_data_answer - what goes to the peer is an answer
 * @cm: filled
 * @mtu: of this side, in bytes, if it is less than the peer has asked for; else 0
 */
void ibchan_cm_data_answer(struct ibchan_cm *cm, u32 mtu)
{
	u8 what = IBCHAN_FRONT_ANSWER;

	if (mtu)
		what |= ib_mtu_int_to_enum(mtu) << MTU_SHIFT;
	if (!cm->plain)
		cm->data[offsetof(struct ibchan_cm_front, what)] |= what;
}

static u32 length_of(const struct rdma_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

static bool is_front(const struct ibchan_cm_front *front, u8 kind)
{
	return front->magic == cpu_to_be16(FRONT_MAGIC) && front->version == FRONT_VERSION &&
	       (front->what & ~FRONT_FLAGS) == kind && front->what >> MTU_SHIFT <= IB_MTU_4096;
}

/**
 * ibchan_cm_data_front - what a peer that is an ibchan tells this one
 * @id: of the connection
 * @param: of the event
 * @kind: IBCHAN_FRONT_REQUEST or _ANSWER
 * @front: filled; all zero if there is none
 */
void ibchan_cm_data_front(const struct rdma_cm_id *id, const struct rdma_conn_param *param,
			  u8 kind, struct ibchan_cm_front *front)
{
	u32 length = length_of(param);

	*front = (struct ibchan_cm_front) {};
	if (length < SHORT_FRONT || rdma_protocol_iwarp(id->device, id->port_num))
		return;
	memcpy(front, param->private_data, SHORT_FRONT);
	if (!is_front(front, kind) || front_length(front) > length)
		*front = (struct ibchan_cm_front) {};
	else
		memcpy(front, param->private_data, front_length(front));
}

/**
 * ibchan_cm_front_mtu - what packets the peer takes
 * @front: of the peer's answer
 *
 * Return: bytes; 0: as long as it was asked for.
 */
u32 ibchan_cm_front_mtu(const struct ibchan_cm_front *front)
{
	u8 mtu = front->what >> MTU_SHIFT;

	return mtu ? ib_mtu_enum_to_int(mtu) : 0;
}

/**
 * ibchan_cm_data_take - the private data that came from a peer
 * @param: of the event
 * @front: what lies in front of them
 * @data: IBCHAN_PRIVATE_DATA_SIZE bytes; zeros behind what came
 *
 * Return: bytes that came.
 */
u32 ibchan_cm_data_take(const struct rdma_conn_param *param,
			const struct ibchan_cm_front *front, u8 *data)
{
	u32 room = front_length(front);
	u32 length = min_t(u32, length_of(param) - room, IBCHAN_PRIVATE_DATA_SIZE);

	memset(data, 0, IBCHAN_PRIVATE_DATA_SIZE);
	if (length)
		memcpy(data, param->private_data + room, length);
	return length;
}

/**
 * ibchan_cm_data_check - do both sides count credits, or none?
 * @ch: this side
 * @front: of the peer
 * @reason: which side does, or NULL
 *
 * Return: 0 or -EINVAL.
 */
int ibchan_cm_data_check(const struct ibchan_channel *ch, const struct ibchan_cm_front *front,
			 struct ibchan_reason *reason)
{
	__be64 addr;
	__be32 rkey;

	ibchan_flow_own(ch, &addr, &rkey);
	return ibchan_credit_mode_check(rkey, front->rkey, reason);
}

/**
 * ibchan_cm_reject - send a peer that asks away
 * @id: of the peer's request
 * @front: of the request
 * @code: IB_CM_REJ_*
 * @data: for the peer; NULL: none
 * @length: bytes of @data, checked
 *
 * Context: process, may sleep.
 */
void ibchan_cm_reject(struct rdma_cm_id *id, const struct ibchan_cm_front *front, u8 code,
		      const void *data, u32 length)
{
	struct reject_data reject = { .magic = cpu_to_be32(REJECT_MAGIC) };

	if (!front->magic) {
		rdma_reject(id, data, length, code);
		return;
	}
	if (length)
		memcpy(reject.data, data, length);
	rdma_reject(id, &reject, sizeof(reject), code);
}

static bool is_marked(const struct rdma_conn_param *param)
{
	struct reject_data reject;

	if (length_of(param) != sizeof(reject))
		return false;
	memcpy(&reject, param->private_data, sizeof(reject));
	return reject.magic == cpu_to_be32(REJECT_MAGIC);
}

/**
 * ibchan_cm_data_rejected - keep what came from a peer with a rejection
 * @cm: filled
 * @param: of the event
 *
 * Context: process, under the qp lock.
 */
void ibchan_cm_data_rejected(struct ibchan_cm *cm, const struct rdma_conn_param *param)
{
	const struct ibchan_cm_front none = {};

	cm->length = ibchan_cm_data_take(param, &none, cm->data);
	cm->heard = true;
	if (cm->plain || !is_marked(param))
		return;
	memset(cm->data + IBCHAN_REJECT_DATA, 0, sizeof(__be32));
	cm->length = IBCHAN_REJECT_DATA;
}

/**
 * ibchan_cm_data_none - is there not even a mark with a rejection?
 * @param: of the event
 *
 * Return: true if there is nothing: no ibchan there has seen the request.
 */
bool ibchan_cm_data_none(const struct rdma_conn_param *param)
{
	u32 length = length_of(param);

	return !length || !memchr_inv(param->private_data, 0, length);
}
