// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection id that lingers after its channel is closed.
 *
 * The accepting side may close its channel between the reply that it sent and the peer's
 * ready-to-use message. A rejection sent then goes out once, without repetition: where it is
 * lost, or is handled before the reply, the peer takes the reply for good and has a channel
 * that leads nowhere. So the id stays, without its channel, until the peer has answered the
 * reply or its time is over. A peer that has answered is told by a disconnect request, which
 * cannot overtake the reply; a peer that has not gets the rejection.
 *
 * The code that takes an id off its device's list destroys it: the id's own work, or the
 * removal of the device.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "cm.h"
#include "parts.h"

/* The connection manager repeats a reply every four seconds. */
#define LINGER_MS	10000

/* Of one user on a device: a program may close channels quicker than their peers give up. */
#define MAX_LINGERING	64

/*
 * The id of a channel that is closed.
 *
 * @link, @begun and @over are under @dev->linger_lock.
 */
struct ibchan_cm_linger {
	struct rdma_cm_id *id;	/* its handler may bring @end forward */
	struct ibchan_device *dev;	/* holds a reference */
	struct ibchan_cost cost;	/* of kernel memory, charged to the channel's user */
	struct list_head link;	/* in @dev->lingering until it is taken */
	bool begun;	/* @end is, or was, queued */
	bool over;	/* there is nothing to wait for */
	struct delayed_work end;	/* destroys @id */
};

static void linger_free(struct ibchan_cm_linger *linger)
{
	ibchan_device_put(linger->dev);
	ibchan_cost_pay_back(&linger->cost);
	kfree(linger);
}

/* The caller holds the device's linger_lock. */
static bool linger_unlink(struct ibchan_cm_linger *linger)
{
	if (list_empty(&linger->link))
		return false;
	list_del_init(&linger->link);
	return true;
}

static void linger_work(struct work_struct *work)
{
	struct ibchan_cm_linger *linger =
		container_of(to_delayed_work(work), struct ibchan_cm_linger, end);
	bool is_ours;

	spin_lock(&linger->dev->linger_lock);
	is_ours = linger_unlink(linger);
	spin_unlock(&linger->dev->linger_lock);
	if (!is_ours)
		return;
	rdma_destroy_id(linger->id);
	/* A handler may have queued @end once more before the id was taken. */
	cancel_delayed_work(&linger->end);
	linger_free(linger);
}

/* Any event ends the wait: the peer has answered or has given up. */
static int linger_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_cm_linger *linger = id->context;
	struct ibchan_device *dev = linger->dev;

	spin_lock(&dev->linger_lock);
	linger->over = true;
	if (linger->begun && !list_empty(&linger->link))
		mod_delayed_work(ibchan_slow_wq, &linger->end, 0);
	spin_unlock(&dev->linger_lock);
	return 0;
}

/* Returns false where as many of the user's ids linger on the device as may. */
static bool linger_join(struct ibchan_cm_linger *linger, struct ibchan_device *dev)
{
	struct ibchan_cm_linger *other;
	u32 num = 0;

	spin_lock(&dev->linger_lock);
	list_for_each_entry(other, &dev->lingering, link)
		num += other->cost.budget == linger->cost.budget;
	if (num < MAX_LINGERING)
		list_add_tail(&linger->link, &dev->lingering);
	spin_unlock(&dev->linger_lock);
	return num < MAX_LINGERING;
}

/*
 * The id has sent its reply, and the peer has not answered it: the id, and with it its network
 * namespace, may outlive its channel until the peer can be told. Inside the gate, or it is closed;
 * under the handler's mutex of @id. NULL, with @id as it was, when as many of the user's ids
 * linger on the device as may, or there is no memory.
 */
struct ibchan_cm_linger *ibchan_cm_linger_prepare(struct ibchan_device *dev, struct rdma_cm_id *id,
						  struct ibchan_budget *budget)
{
	const struct ibchan_payer payer = { .budget = budget, .exempt = true };
	struct ibchan_cm_linger *linger = kzalloc(sizeof(*linger), GFP_KERNEL_ACCOUNT);

	if (!linger)
		return NULL;
	/* The few that a user may have are not refused for the budget. */
	ibchan_cost_charge_to(&linger->cost, &payer, IBCHAN_FOOTPRINT_REQUEST);
	ibchan_device_hold(dev);
	linger->id = id;
	linger->dev = dev;
	if (!linger_join(linger, dev)) {
		linger_free(linger);
		return NULL;
	}
	INIT_DELAYED_WORK(&linger->end, linger_work);
	id->context = linger;
	id->event_handler = linger_event;
	return linger;
}

/*
 * The id belongs to @linger from here on, which may be gone when this returns. Waits for the peer
 * for @ms, and ten seconds at most. The gate is still held, the handler's mutex is not.
 */
void ibchan_cm_linger_begin(struct ibchan_cm_linger *linger, s64 ms)
{
	struct ibchan_device *dev = linger->dev;
	u32 wait_ms = clamp_t(s64, ms, 0, LINGER_MS);

	spin_lock(&dev->linger_lock);
	linger->begun = true;
	queue_delayed_work(ibchan_slow_wq, &linger->end,
			   linger->over ? 0 : msecs_to_jiffies(wait_ms));
	spin_unlock(&dev->linger_lock);
}

static struct ibchan_cm_linger *linger_take_first(struct ibchan_device *dev)
{
	struct ibchan_cm_linger *linger;

	spin_lock(&dev->linger_lock);
	linger = list_first_entry_or_null(&dev->lingering, struct ibchan_cm_linger, link);
	if (linger)
		linger_unlink(linger);
	spin_unlock(&dev->linger_lock);
	return linger;
}

/* None of the device's channels has an id any more. */
static void device_ended(struct ibchan_device *dev)
{
	struct ibchan_cm_linger *linger;

	while ((linger = linger_take_first(dev))) {
		rdma_destroy_id(linger->id);
		cancel_delayed_work_sync(&linger->end);
		linger_free(linger);
	}
}

const struct ibchan_device_client ibchan_linger_client = { .ended = device_ended };
