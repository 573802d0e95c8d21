// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a connection by address: the peer is told, the id goes, and neither a handler,
 * the deadline nor the next attempt comes after that.
 *
 * The accepting side may close its channel between the reply that it sent and the peer's
 * ready-to-use message. A rejection sent then goes out once, without repetition: where it is
 * lost, or is handled before the reply, the peer takes the reply for good and has a channel
 * that leads nowhere. So the id lingers, without its channel, until the peer has answered the
 * reply or its time is over. A peer that has answered is told by a disconnect request, which
 * cannot overtake the reply; a peer that has not gets the rejection.
 *
 * The code that takes a lingering id off its device's list destroys it: the id's own work, or the
 * removal of the device.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "cm.h"

/* The connection manager repeats a reply every four seconds. */
#define LINGER_MS	10000

/* Of one user on a device: a program may close channels quicker than their peers give up. */
#define MAX_LINGERING	64

/*
 * The id of a channel that is closed.
 *
 * @link and @over are under @dev->linger_lock.
 */
struct lingering {
	struct rdma_cm_id *id;	/* its handler may bring @end forward */
	struct ibchan_device *dev;	/* holds a reference */
	struct ibchan_cost cost;	/* of kernel memory, charged to the channel's user */
	struct list_head link;	/* in @dev->lingering until it is taken */
	bool over;	/* there is nothing to wait for */
	struct delayed_work end;	/* destroys @id */
};

/* No handler of the id runs any more. */
static void linger_free(struct lingering *linger)
{
	ibchan_device_put(linger->dev);
	ibchan_cost_pay_back(&linger->cost);
	kfree(linger);
}

static void linger_work(struct work_struct *work)
{
	struct lingering *linger = container_of(to_delayed_work(work), struct lingering, end);
	bool is_ours;

	scoped_guard(spinlock, &linger->dev->linger_lock) {
		is_ours = !list_empty(&linger->link);
		list_del_init(&linger->link);
	}
	if (!is_ours)
		return;
	rdma_destroy_id(linger->id);
	/* A handler may have queued @end once more. */
	cancel_delayed_work(&linger->end);
	linger_free(linger);
}

/* Any event ends the wait: the peer has answered or has given up. */
static int linger_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct lingering *linger = id->context;

	guard(spinlock)(&linger->dev->linger_lock);
	linger->over = true;
	if (delayed_work_pending(&linger->end))
		mod_delayed_work(ibchan_slow_wq, &linger->end, 0);
	return 0;
}

/*
 * The id has sent its reply, and the peer has not answered it: the id, and with it its network
 * namespace, may outlive its channel until the peer can be told. Inside the gate, or it is closed;
 * under the handler's mutex of @id. NULL, with @id as it was, when as many of the user's ids
 * linger on the device as may, or there is no memory.
 */
static struct lingering *linger_prepare(struct ibchan_device *dev, struct rdma_cm_id *id,
					struct ibchan_budget *budget)
{
	const struct ibchan_payer payer = { .budget = budget, .exempt = true };
	struct lingering *linger = kzalloc(sizeof(*linger), GFP_KERNEL_ACCOUNT), *other;
	u32 num = 0;

	if (!linger)
		return NULL;
	/* The few that a user may have are not refused for the budget. */
	ibchan_cost_charge_to(&linger->cost, &payer, IBCHAN_FOOTPRINT_REQUEST);
	ibchan_device_hold(dev);
	linger->id = id;
	linger->dev = dev;
	INIT_DELAYED_WORK(&linger->end, linger_work);
	scoped_guard(spinlock, &dev->linger_lock) {
		list_for_each_entry(other, &dev->lingering, link)
			num += other->cost.budget == budget;
		if (num < MAX_LINGERING)
			list_add_tail(&linger->link, &dev->lingering);
	}
	if (num >= MAX_LINGERING) {
		linger_free(linger);
		return NULL;
	}
	id->context = linger;
	id->event_handler = linger_event;
	return linger;
}

static void device_comes(struct ibchan_device *dev)
{
	INIT_LIST_HEAD(&dev->lingering);
	spin_lock_init(&dev->linger_lock);
}

/* None of the device's channels has an id any more. */
static void device_ended(struct ibchan_device *dev)
{
	struct lingering *linger;

	spin_lock(&dev->linger_lock);
	while ((linger = list_first_entry_or_null(&dev->lingering, struct lingering, link))) {
		list_del_init(&linger->link);
		spin_unlock(&dev->linger_lock);
		rdma_destroy_id(linger->id);
		cancel_delayed_work_sync(&linger->end);
		linger_free(linger);
		spin_lock(&dev->linger_lock);
	}
	spin_unlock(&dev->linger_lock);
}

const struct ibchan_device_client ibchan_linger_client = {
	.comes = device_comes,
	.ended = device_ended,
};

/*
 * Before the peer's answer there is nothing to end, and the next attempt may take the id. On
 * iWARP rdma_disconnect() would wait for the answer to a request; the handler of a good answer
 * tells the peer.
 */
static void disconnect(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);
	struct rdma_cm_id *id = cm ? READ_ONCE(cm->id) : NULL;
	u32 stage;

	if (!id)
		return;
	stage = READ_ONCE(cm->stage);
	if (stage > IBCHAN_STAGE_REQUEST ||
	    (stage == IBCHAN_STAGE_REQUEST && !ch->qp.gid.iwarp && READ_ONCE(ch->connected)))
		rdma_disconnect(id);
}

static void heard_peer(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);

	if (cm)
		queue_work(ibchan_wq, &cm->heard_work);
}

/* The gate is held, or it is closed. */
static void id_end(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_device *dev = cm->ch->qp.dev;
	s64 ms = ktime_ms_delta(cm->stage_end, ktime_get());
	struct lingering *linger = NULL;

	rdma_lock_handler(id);
	/* Has it accepted, and may the peer still hear of that, and tell? */
	if (cm->stage == IBCHAN_STAGE_ACCEPT && !cm->over && !cm->ch->qp.gid.iwarp)
		linger = linger_prepare(dev, id, cm->ch->qp.pd->cost.budget);
	rdma_unlock_handler(id);
	if (!linger) {
		rdma_destroy_id(id);
		return;
	}
	/* It may be gone behind this. */
	guard(spinlock)(&dev->linger_lock);
	queue_delayed_work(ibchan_slow_wq, &linger->end, linger->over ? 0 :
			   msecs_to_jiffies(clamp_t(s64, ms, 0, LINGER_MS)));
}

/*
 * Nothing happens to the connection any more. If the channel is connected, this tells the peer;
 * if the peer is about to hear that it is, the end of the id does.
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

const struct ibchan_channel_part ibchan_cm_part = {
	.interrupt = ibchan_cm_interrupt,
	.disconnect = disconnect,
	.heard_peer = heard_peer,
	.stop = stop,
	.end = end,
};
