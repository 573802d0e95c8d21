// SPDX-License-Identifier: GPL-2.0-only
/*
 * What two channels tell each other beside what the connection manager carries for
 * them: where each of them is granted credits. It lies in front of the private data,
 * which have as many bytes less; a channel that counts none sends and sees nothing of
 * it, unless its own data look like it: then one without credits goes in front.
 *
 * Whether a queue pair answers a keepalive goes in the message's flow control bit,
 * which has no other use where receives are not counted by the devices.
 *
 * A request names the longest packet that its side takes; the connection manager's answer
 * has no place for a shorter one. So the asking side sets the bit for shared receive queues,
 * which no channel uses, to say that it looks for an MTU in front of the answer's data. The
 * accepting side puts its MTU there, before all else, if it is the smaller one.
 *
 * The connection manager rejects by itself where somebody listens at the port and nobody at
 * the address, with the code that a consumer's rejection has and without data. So a side
 * that rejects puts a mark behind its data; only where the connection manager does it for
 * that side, as when an answer could not be sent, there is none. Over iWARP the code says as
 * much.
 */
#include <linux/string.h>

#include "cm.h"
#include "flow.h"
#include "parts.h"

#define CREDITS_MAGIC	0x49424352U	/* "IBCR" */
#define MTU_MAGIC	0x4942434dU	/* "IBCM" */
#define REJECT_MAGIC	0x4942434aU	/* "IBCJ" */

/* Of a rejection, the mark included. Its length does not cross. */
struct reject_data {
	u8 data[IBCHAN_REJECT_DATA];
	__be32 magic;
};

static bool begins_with(const void *data, u32 magic)
{
	__be32 first;

	memcpy(&first, data, sizeof(first));
	return first == cpu_to_be32(magic);
}

/**
 * ibchan_cm_data_room - bytes in front of the private data
 * @ch: the channel
 * @data: the caller's
 * @length: bytes of @data
 *
 * Return: 0, or sizeof(struct ibchan_cm_credits).
 */
u32 ibchan_cm_data_room(const struct ibchan_channel *ch, const void *data, u32 length)
{
	/* The transport may fill up what is shorter than a header. */
	bool looks_like_one = length >= sizeof(__be32) &&
			      (begins_with(data, CREDITS_MAGIC) || begins_with(data, MTU_MAGIC));

	return ch->flow || looks_like_one ? sizeof(struct ibchan_cm_credits) : 0;
}

/**
 * ibchan_cm_data_fill - what goes to the peer
 * @cm: filled
 * @data: the caller's
 * @length: bytes of @data; checked
 */
void ibchan_cm_data_fill(struct ibchan_cm *cm, const void *data, u32 length)
{
	struct ibchan_cm_credits credits = { .magic = cpu_to_be32(CREDITS_MAGIC) };
	u32 room = ibchan_cm_data_room(cm->ch, data, length);

	if (room) {
		ibchan_flow_own(cm->ch, &credits.addr, &credits.rkey);
		memcpy(cm->data, &credits, room);
	}
	if (length)
		memcpy(cm->data + room, data, length);
	cm->length = room + length;
}

/**
 * ibchan_cm_data_tell_mtu - the peer is told of this side's shorter packets
 * @cm: filled with as many bytes less than a message has
 * @mtu: in bytes
 */
void ibchan_cm_data_tell_mtu(struct ibchan_cm *cm, u32 mtu)
{
	const struct ibchan_cm_mtu front = {
		.magic = cpu_to_be32(MTU_MAGIC),
		.mtu = cpu_to_be32(mtu),
	};

	memmove(cm->data + sizeof(front), cm->data, cm->length);
	memcpy(cm->data, &front, sizeof(front));
	cm->length += sizeof(front);
}

static u32 length_of(const struct rdma_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

static u32 copy_behind(const struct rdma_conn_param *param, u32 room, u8 *data)
{
	u32 length = min_t(u32, length_of(param) - room, IBCHAN_PRIVATE_DATA_SIZE);

	memset(data, 0, IBCHAN_PRIVATE_DATA_SIZE);
	if (length)
		memcpy(data, param->private_data + room, length);
	return length;
}

/**
 * ibchan_cm_reject - send a peer away
 * @id: the peer's request, or its answer
 * @code: IB_CM_REJ_*
 * @data: for the peer; NULL: none
 * @length: bytes of @data, checked
 *
 * Context: process, may sleep.
 */
void ibchan_cm_reject(struct rdma_cm_id *id, u8 code, const void *data, u32 length)
{
	struct reject_data reject = { .magic = cpu_to_be32(REJECT_MAGIC) };

	if (rdma_protocol_iwarp(id->device, id->port_num)) {
		rdma_reject(id, data, length, code);
		return;
	}
	if (length)
		memcpy(reject.data, data, length);
	rdma_reject(id, &reject, sizeof(reject), code);
}

/**
 * ibchan_cm_data_rejected - what came from a peer with a rejection
 * @param: of the event
 * @data: IBCHAN_PRIVATE_DATA_SIZE bytes; zeros behind what came
 *
 * Return: bytes that came.
 */
u32 ibchan_cm_data_rejected(const struct rdma_conn_param *param, u8 *data)
{
	u32 length = copy_behind(param, 0, data);

	if (length == sizeof(struct reject_data) && begins_with(data + IBCHAN_REJECT_DATA,
								REJECT_MAGIC)) {
		memset(data + IBCHAN_REJECT_DATA, 0, sizeof(__be32));
		length = IBCHAN_REJECT_DATA;
	}
	return length;
}

/* Whether a rejection carries not even a mark: nobody there has seen the request. */
bool ibchan_cm_data_none(const struct rdma_conn_param *param)
{
	u32 length = length_of(param);

	return !length || !memchr_inv(param->private_data, 0, length);
}

static bool has_mtu(const struct rdma_conn_param *param)
{
	return length_of(param) >= sizeof(struct ibchan_cm_mtu) &&
	       begins_with(param->private_data, MTU_MAGIC);
}

/**
 * ibchan_cm_data_mtu - what packets the peer takes
 * @param: of the event
 *
 * Return: any number, in bytes; 0: as long as it was asked for.
 */
u32 ibchan_cm_data_mtu(const struct rdma_conn_param *param)
{
	struct ibchan_cm_mtu front;

	if (!has_mtu(param))
		return 0;
	memcpy(&front, param->private_data, sizeof(front));
	return be32_to_cpu(front.mtu);
}

/**
 * ibchan_cm_data_take - take apart what came from a peer
 * @param: of the event
 * @data: IBCHAN_PRIVATE_DATA_SIZE bytes for the caller's part; zeros behind it
 * @credits: all zero if the peer counts none
 *
 * Return: bytes of the caller's part.
 */
u32 ibchan_cm_data_take(const struct rdma_conn_param *param, u8 *data,
			struct ibchan_cm_credits *credits)
{
	u32 front = has_mtu(param) ? sizeof(struct ibchan_cm_mtu) : 0;

	*credits = (struct ibchan_cm_credits) {};
	if (length_of(param) >= front + sizeof(*credits) &&
	    begins_with(param->private_data + front, CREDITS_MAGIC)) {
		memcpy(credits, param->private_data + front, sizeof(*credits));
		front += sizeof(*credits);
	}
	return copy_behind(param, front, data);
}

/**
 * ibchan_cm_data_check - do both sides count credits, or none?
 * @ch: this side
 * @credits: of the peer
 * @reason: which side does, or NULL
 *
 * Return: 0 or -EINVAL.
 */
int ibchan_cm_data_check(const struct ibchan_channel *ch,
			 const struct ibchan_cm_credits *credits, struct ibchan_reason *reason)
{
	__be64 addr;
	__be32 rkey;

	ibchan_flow_own(ch, &addr, &rkey);
	return ibchan_credit_mode_check(rkey, credits->rkey, reason);
}
