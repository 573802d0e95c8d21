// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a connection by address: the peer is told, the id goes, and neither a handler,
 * the deadline nor the next attempt comes after that.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "cm.h"
#include "parts.h"

/*
 * Before the peer's answer there is nothing to end, and the next attempt may take the id. On
 * iWARP rdma_disconnect() would wait for the answer to a request; the handler of a good answer
 * tells the peer.
 */
static bool can_disconnect(const struct ibchan_cm *cm)
{
	u32 stage = READ_ONCE(cm->stage);

	return stage > IBCHAN_STAGE_REQUEST ||
	       (stage == IBCHAN_STAGE_REQUEST && !cm->ch->qp.gid.iwarp &&
		READ_ONCE(cm->ch->connected));
}

static void disconnect(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);
	struct rdma_cm_id *id = cm ? READ_ONCE(cm->id) : NULL;

	if (id && can_disconnect(cm))
		rdma_disconnect(id);
}

static void heard_peer(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);

	if (cm)
		queue_work(ibchan_wq, &cm->heard_work);
}

/* On iWARP the end of the TCP connection tells the peer. */
static bool tells_peer(struct ibchan_channel *ch)
{
	return READ_ONCE(ch->cm) && !ch->qp.gid.iwarp;
}

static void id_end(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_cm_linger *linger = NULL;

	rdma_lock_handler(id);
	/* Has it accepted, and may the peer still hear of that, and tell? */
	if (cm->stage == IBCHAN_STAGE_ACCEPT && !cm->over && !cm->ch->qp.gid.iwarp)
		linger = ibchan_cm_linger_prepare(cm->ch->qp.dev, id,
						  cm->ch->qp.pd->cost.budget);
	rdma_unlock_handler(id);
	if (linger)
		ibchan_cm_linger_begin(linger, ktime_ms_delta(cm->stage_end, ktime_get()));
	else
		rdma_destroy_id(id);
}

/*
 * Nothing happens to the connection any more. If the channel is connected, this tells the peer;
 * if the peer is about to hear that it is, cm_linger.c does.
 */
static void stop(struct ibchan_channel *ch)
{
	struct rdma_cm_id *id;

	/* A caller that has still seen the channel prepared may be about to connect it. */
	ibchan_qp_lock(&ch->qp);
	ibchan_qp_unlock(&ch->qp);
	if (!ch->cm)
		return;
	cancel_delayed_work_sync(&ch->cm->again);
	/* A handler that has still seen the channel connect may be about to ask. */
	ibchan_qp_lock(&ch->qp);
	ibchan_qp_unlock(&ch->qp);
	ibchan_cm_interrupt(ch);
	id = ibchan_cm_end_id(ch->cm);
	if (id)
		id_end(ch->cm, id);
	cancel_delayed_work_sync(&ch->cm->deadline);
	/* A handler, or the deadline, may have queued @again before it saw that the id is gone. */
	cancel_delayed_work_sync(&ch->cm->again);
}

/* The queue pair, whose events may have queued @heard_work, is gone. */
static void end(struct ibchan_channel *ch)
{
	if (ch->cm)
		cancel_work_sync(&ch->cm->heard_work);
}

/* The connection has no id any more, and no deadline. */
static void free_cm(struct ibchan_channel *ch)
{
	kfree(ch->cm);
}

const struct ibchan_channel_part ibchan_cm_part = {
	.interrupt = ibchan_cm_interrupt,
	.disconnect = disconnect,
	.tells_peer = tells_peer,
	.heard_peer = heard_peer,
	.stop = stop,
	.end = end,
	.free = free_cm,
};
