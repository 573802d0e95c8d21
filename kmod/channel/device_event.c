// SPDX-License-Identifier: GPL-2.0-only
/* Breaks channels when an event of their device, completion queue or queue pair asks for it. */
#include <linux/errno.h>

#include "channel.h"

/*
 * Breaks the channels of @cq, or all where it is NULL: at once, so that they flush while the first
 * one drains.
 */
static void break_channels(struct ibchan_device *dev, const struct ibchan_cq *cq, int error)
{
	struct ibchan_channel *ch;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link)
		if (!cq || ch->send.cq == cq || ch->recv.cq == cq)
			ibchan_channel_break(ch, error);
}

/*
 * A channel that is connected, or about to be, breaks when its own address has gone: with soft-RoCE
 * it would hear nothing for ever. A returning address gets another entry, because the queue pair
 * keeps its own, so what is gone stays gone. One without a peer is told at its handshake, and not
 * if the address is there again.
 *
 * A connection by address may just be moving a channel to this port or away from it: that has
 * read the address anew. To ask the port takes long on some devices, so it is asked once.
 */
static void check_addresses(struct ibchan_device *dev, u32 port)
{
	struct ibchan_channel *ch;
	u32 lid, state;
	bool gone;

	guard(mutex)(&dev->lock);
	if (list_empty(&dev->channels))
		return;
	lid = ibchan_port_lid(dev->ib, port);
	list_for_each_entry(ch, &dev->channels, link) {
		/* Works of a service never leave the device. */
		if (READ_ONCE(ch->qp.gid.port) != port || ch->bounds.service)
			continue;
		/* A connection by address may bring an address of its own. */
		guard(ibchan_qp)(&ch->qp);
		state = READ_ONCE(ch->state);
		/* The namespace of one that its maker never heard of may have gone. */
		if (state >= IBCHAN_CHANNEL_BROKEN || ch->leaked)
			continue;
		gone = !ibchan_gid_still_there(dev->ib, ch->qp.net, &ch->qp.gid, lid);
		if (gone != ch->gid_gone)
			ibchan_history_address(ch, gone ? EADDRNOTAVAIL : 0);
		ch->gid_gone = gone;
		if (gone && state != IBCHAN_CHANNEL_PREPARED)
			ibchan_channel_break(ch, -EADDRNOTAVAIL);
	}
}

/* Which channels have lost their address? */
static void addresses_change(struct ibchan_device *dev)
{
	u32 port;

	if (ibchan_device_enter(dev))
		return;
	rdma_for_each_port(dev->ib, port)
		check_addresses(dev, port);
	ibchan_device_exit(dev);
}

/* A connection by address may just be moving a channel to another port of the device. */
static void port_changes(struct ibchan_device *dev, u32 port, u32 event)
{
	struct ibchan_channel *ch;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link) {
		if (READ_ONCE(ch->qp.gid.port) != port)
			continue;
		/* A caller that reads the event in the history finds this set. */
		if (event == IB_EVENT_PORT_ERR)
			WRITE_ONCE(ch->port_down_at, jiffies ?: 1);
		ibchan_history_add(ch, IBCHAN_HISTORY_PORT, 0, port, event);
	}
}

/*
 * The device reports something of a qp, mostly that it has put it into ERR; any context. Of what
 * a peer asked for and did not get no work here tells, so the cause is in the event alone. iWARP
 * reports the end of a connection by any of them.
 */
void ibchan_channel_qp_event(struct ib_event *event, void *context)
{
	struct ibchan_channel *ch = container_of((struct ibchan_qp *)context,
						 struct ibchan_channel, qp);
	u32 status = ch->qp.gid.iwarp ? IBCHAN_STATUS_FATAL_ERR : IBCHAN_STATUS_SUCCESS;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
		ibchan_channel_fail(ch, EIO, IBCHAN_STATUS_FATAL_ERR);
		break;
	case IB_EVENT_QP_REQ_ERR:
		ibchan_channel_fail_responder(ch, EPROTO, status);
		break;
	case IB_EVENT_QP_ACCESS_ERR:
		ibchan_channel_fail_responder(ch, EACCES, status);
		break;
	case IB_EVENT_COMM_EST:
		ibchan_parts_call(heard_peer, ch);
		break;
	default:
		break;
	}
}

/* The gate is closed, so the list does not change. */
static bool device_ends(struct ibchan_device *dev, unsigned long deadline)
{
	struct ibchan_channel *ch;
	bool gone = true;

	list_for_each_entry(ch, &dev->channels, link) {
		ibchan_channel_stop(ch, true, deadline);
		gone &= !ch->leaked;
	}
	return gone;
}

const struct ibchan_device_client ibchan_channel_client = {
	.breaks = break_channels,
	.addresses_change = addresses_change,
	.port_changes = port_changes,
	.ends = device_ends,
};
