// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels: handshake, and what is asked of one. How a channel is built is in build.c, how it
 * breaks in break.c, how it ends in close.c.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "private.h"
#include "compat.h"

/* A service has it for the queue pair's sake only. */
static int check_own_gid(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	if (ch->bounds.service ||
	    ibchan_gid_still_there(ch->qp.dev->ib, ch->qp.net, &ch->qp.gid, IBCHAN_LID_UNKNOWN))
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_GID_GONE, -EADDRNOTAVAIL,
				    (u64[3]) { ch->qp.gid.port, ch->qp.gid.index });
}

int ibchan_channel_refuse_broken(const struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_BROKEN, -ESHUTDOWN,
				    (u64[3]) { READ_ONCE(ch->error), READ_ONCE(ch->status) });
}

/*
 * Keeps the limits that both sides have. The channel may have been broken meanwhile; its work item
 * waits for the queue pair's lock.
 */
static int connect_qp(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
		      struct ibchan_reason *reason)
{
	struct ibchan_params *params = &ch->qp.params, before = *params;
	int ret;

	params->mtu = min_t(u32, params->mtu, ib_mtu_enum_to_int(peer->mtu));
	params->max_rd_atomic = min_t(u32, params->max_rd_atomic, peer->max_dest_rd_atomic);
	if (params->recv_psn == IBCHAN_AUTO)
		params->recv_psn = be32_to_cpu(peer->psn);
	ret = check_own_gid(ch, reason);
	if (!ret)
		ret = ibchan_qp_connect(&ch->qp, peer, reason);
	if (ret) {
		*params = before;
		ibchan_channel_await_posters(ch);
		/* Receives that are posted already would be lost on the way back. */
		if (ibchan_places_in_flight(&ch->recv.places)) {
			ibchan_channel_break(ch, ret);
			return ret;
		}
		ibchan_qp_rewind(&ch->qp);
		ibchan_channel_change_state(ch, IBCHAN_CHANNEL_PREPARED);
		return ret;
	}
	ch->connected = 1;
	if (!ibchan_channel_change_state(ch, IBCHAN_CHANNEL_CONNECTED))
		return ibchan_channel_refuse_broken(ch, reason);
	ch->peer = *peer;
	ibchan_history_add(ch, IBCHAN_HISTORY_CONNECTED, 0, be32_to_cpu(peer->qpn), params->mtu);
	ibchan_parts_call(connected, ch, peer);
	return 0;
}

/* May a channel begin to connect? Under the qp lock only a break can change the answer. */
static int check_prepared(const struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	switch (READ_ONCE(ch->state)) {
	case IBCHAN_CHANNEL_PREPARED:
		return 0;
	case IBCHAN_CHANNEL_CONNECTING:
	case IBCHAN_CHANNEL_CONNECTED:
		return -EISCONN;
	default:
		return ibchan_channel_refuse_broken(ch, reason);
	}
}

/* Under the qp lock. -EISCONN; -ESHUTDOWN on a broken channel. */
int ibchan_channel_begin(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	lockdep_assert_held(&ch->qp.lock);
	if (ibchan_channel_change_state(ch, IBCHAN_CHANNEL_CONNECTING))
		return 0;
	return check_prepared(ch, reason);
}

static int channel_handshake(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason)
{
	struct ibchan_path path = {};
	int ret;

	if (ch->qp.gid.iwarp)
		return ibchan_refuse(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP);
	ret = ibchan_endpoint_check(&ch->qp.endpoint, peer, ch->qp.gid.max_lid, reason);
	if (ret)
		return ret;
	ret = check_prepared(ch, reason);
	ret = ret ?: check_own_gid(ch, reason);
	ret = ret ?: ibchan_route_find(&ch->qp, peer, &path, reason);
	/* It does not say of what. */
	if (ret == -ESHUTDOWN)
		return check_prepared(ch, reason) ?: ret;
	if (ret)
		return ret;
	guard(ibchan_qp)(&ch->qp);
	ret = ibchan_channel_begin(ch, reason);
	if (ret)
		return ret;
	ch->qp.path = path;
	ret = connect_qp(ch, peer, reason);
	wake_up_all(&ch->state_wait);
	return ret;
}

/**
 * ibchan_channel_handshake - connect a channel to its peer
 * @ch: the prepared channel
 * @peer: the peer's endpoint: any bytes, all are checked
 * @reason: the field that does not fit, with both values; or NULL
 *
 * A channel may be its own peer.
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP on iWARP, where only ibchan_channel_connect() and
 * ibchan_request_accept() connect; -EINVAL for a peer that does not fit, with nothing
 * changed; -EADDRNOTAVAIL when the channel's own address has been taken away; -EHOSTUNREACH
 * when there is no route to the peer, or its next hop does not answer within 2 s; -EINTR
 * when the caller is killed meanwhile; -EISCONN when it is connected already; -ESHUTDOWN
 * on a broken channel; -ENODEV when the device is gone; the driver's errno, when the
 * handshake may be tried again, unless receives were posted: then the channel is broken.
 */
int ibchan_channel_handshake(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason)
{
	struct ibchan_reason own = {};
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	reason = reason ?: &own;
	ret = channel_handshake(ch, peer, reason);
	if (ret)
		ibchan_history_add(ch, IBCHAN_HISTORY_HANDSHAKE, ret, reason->code, 0);
	ibchan_device_exit(ch->qp.dev);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_handshake, IBCHAN_NS);

/**
 * ibchan_channel_query - how a channel fares
 * @ch: the channel
 * @attr: filled
 *
 * A work of a broken or closed channel that is not in flight any more has been told of.
 *
 * Context: process, may sleep.
 */
void ibchan_channel_query(struct ibchan_channel *ch, struct ibchan_channel_attr *attr)
{
	struct ibchan_history *history = &ch->history;
	struct ibchan_facts *facts = &attr->facts;
	u32 state;

	scoped_guard(ibchan_qp, &ch->qp) {
		state = ibchan_channel_state(ch);
		*attr = (struct ibchan_channel_attr){
			.state = state,
			.error = READ_ONCE(ch->error),
			.status = READ_ONCE(ch->status),
			.sends_in_flight = ibchan_places_in_flight(&ch->send.places),
			.recvs_in_flight = ibchan_places_in_flight(&ch->recv.places),
			.params = ch->qp.params,
			.endpoint = ch->qp.endpoint,
			.options = ch->options,
			.facts.failed_opcode = IBCHAN_FACTS_NO_OPCODE,
			.facts.peer_qpn = be32_to_cpu(ch->peer.qpn),
		};
		memcpy(facts->peer_gid, ch->peer.gid, sizeof(facts->peer_gid));
		if (ch->qp.params.ack_timeout)
			facts->ack_timeout_ns = 4096ULL << ch->qp.params.ack_timeout;
		ibchan_parts_call(fill_facts, ch, facts);
	}
	ibchan_device_name(ch->qp.dev, facts->device);
	/* The caller's reference keeps the cqs, also those of a closed channel. */
	if (state >= IBCHAN_CHANNEL_BROKEN) {
		ibchan_cq_await_owner(ch->send.cq);
		ibchan_cq_await_owner(ch->recv.cq);
	}
	guard(spinlock_irqsave)(&history->lock);
	if (history->failed.error) {
		facts->failed_wr_id = history->failed.wr_id;
		facts->failed_opcode = history->failed.opcode;
		facts->failed_vendor_err = history->failed.vendor_err;
	}
	if (history->connected_ns)
		facts->age_ns = ktime_get_ns() - history->connected_ns;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_query, IBCHAN_NS);

/**
 * ibchan_channel_state - where a channel is
 * @ch: the channel; RCU or the caller keeps its memory
 *
 * Context: any.
 * Return: enum ibchan_channel_state.
 */
u32 ibchan_channel_state(const struct ibchan_channel *ch)
{
	/* Pairs with ibchan_channel_move_state(): the error of a broken channel is there. */
	return smp_load_acquire(&ch->state);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_state, IBCHAN_NS);

/**
 * ibchan_channel_times - how long a channel tries, in times and counts
 * @ch: the channel
 * @times: filled
 *
 * Of a connected channel these are what its device says it uses, where its driver
 * tells, else what the parameters say.
 *
 * Context: process, may sleep.
 * Return: 0; -ENODEV when the device is gone.
 */
int ibchan_channel_times(struct ibchan_channel *ch, struct ibchan_times *times)
{
	struct ibchan_params params;
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	ibchan_qp_lock(&ch->qp);
	params = ch->qp.params;
	if (ch->qp.ib)
		ibchan_qp_ask(&ch->qp, &params);
	ibchan_qp_unlock(&ch->qp);
	ibchan_device_exit(ch->qp.dev);
	ibchan_times_fill(&params, times);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_times, IBCHAN_NS);

/**
 * ibchan_channel_max_sge - how many elements the device may see of one work
 * @ch: the channel; RCU or the caller keeps its memory
 * @opcode: IBCHAN_OP_*
 *
 * Context: any.
 * Return: the number; 0 for what is no opcode.
 */
u32 ibchan_channel_max_sge(const struct ibchan_channel *ch, u8 opcode)
{
	return opcode < IBCHAN_OPS ? ch->bounds.max_sge[opcode] : 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_max_sge, IBCHAN_NS);
