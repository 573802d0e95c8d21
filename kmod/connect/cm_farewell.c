// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a connection that was accepted, and of which the peer has not heard yet.
 *
 * A side that closes then could only send a refusal, once. If that gets lost, or is looked at
 * before the answer that it follows, the peer takes the answer for good and has a
 * channel that leads nowhere. So the id stays, without its channel, until the peer has
 * heard of the answer or has given up: then it is told that the connection has ended,
 * which nothing can overtake. A peer that says nothing gets the refusal when its time is
 * over.
 *
 * The code that takes a farewell off its device's list ends it: its own work, or removal.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "cm.h"
#include "parts.h"

/* The connection manager repeats an answer every four seconds. */
#define FAREWELL_MS	10000

/* A program may close channels quicker than their peers give up. */
#define MAX_FAREWELLS	64

/**
 * struct ibchan_cm_farewell - the id of a channel that is closed
 * @id: whose handler may hasten @end
 * @dev: holds a reference
 * @link: in @dev->farewells, once @end is queued and until it is taken
 * @over: there is nothing to wait for
 * @end: destroys @id
 *
 * @link and @over are under @dev->farewell_lock.
 */
struct ibchan_cm_farewell {
	struct rdma_cm_id *id;
	struct ibchan_device *dev;
	struct list_head link;
	bool over;
	struct delayed_work end;
};

static void farewell_free(struct ibchan_cm_farewell *farewell)
{
	ibchan_device_put(farewell->dev);
	kfree(farewell);
}

/* The lock of the farewell's device is held. */
static bool take(struct ibchan_cm_farewell *farewell)
{
	if (list_empty(&farewell->link))
		return false;
	list_del_init(&farewell->link);
	farewell->dev->num_farewells--;
	return true;
}

static bool farewell_take(struct ibchan_cm_farewell *farewell)
{
	struct ibchan_device *dev = farewell->dev;
	bool taken;

	spin_lock(&dev->farewell_lock);
	taken = take(farewell);
	spin_unlock(&dev->farewell_lock);
	return taken;
}

static void farewell_work(struct work_struct *work)
{
	struct ibchan_cm_farewell *farewell =
		container_of(to_delayed_work(work), struct ibchan_cm_farewell, end);

	if (!farewell_take(farewell))
		return;
	rdma_destroy_id(farewell->id);
	/* A handler may have asked for this once more before it was taken. */
	cancel_delayed_work(&farewell->end);
	farewell_free(farewell);
}

/* Whatever has happened, the peer is not about to hear of the answer any more. */
static int farewell_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_cm_farewell *farewell = id->context;
	struct ibchan_device *dev = farewell->dev;

	spin_lock(&dev->farewell_lock);
	farewell->over = true;
	if (!list_empty(&farewell->link))
		mod_delayed_work(ibchan_free_wq, &farewell->end, 0);
	spin_unlock(&dev->farewell_lock);
	return 0;
}

static bool take_place(struct ibchan_device *dev)
{
	bool taken;

	spin_lock(&dev->farewell_lock);
	taken = dev->num_farewells < MAX_FAREWELLS;
	dev->num_farewells += taken;
	spin_unlock(&dev->farewell_lock);
	return taken;
}

/**
 * ibchan_cm_farewell - let an id outlive its channel until the peer can be told
 * @dev: of the channel; inside the gate, or it is closed
 * @id: has accepted, and not heard from the peer since
 *
 * Until the id is destroyed, it keeps its network namespace.
 *
 * Context: process, may sleep, under the handler's mutex of @id.
 * Return: what ibchan_cm_farewell_begin() is called with next; NULL when nothing has
 * happened: there are too many, or no memory.
 */
struct ibchan_cm_farewell *ibchan_cm_farewell(struct ibchan_device *dev,
					      struct rdma_cm_id *id)
{
	struct ibchan_cm_farewell *farewell = kzalloc(sizeof(*farewell), GFP_KERNEL_ACCOUNT);

	if (!farewell)
		return NULL;
	if (!take_place(dev)) {
		kfree(farewell);
		return NULL;
	}
	ibchan_device_hold(dev);
	farewell->id = id;
	farewell->dev = dev;
	INIT_LIST_HEAD(&farewell->link);
	INIT_DELAYED_WORK(&farewell->end, farewell_work);
	id->context = farewell;
	id->event_handler = farewell_event;
	return farewell;
}

/**
 * ibchan_cm_farewell_begin - from here on only the farewell touches its id
 * @farewell: from ibchan_cm_farewell(); may be gone when this returns
 * @ms: how long to wait for the peer; not longer than ten seconds in any case
 *
 * Context: process, without the handler's mutex; the gate is still held.
 */
void ibchan_cm_farewell_begin(struct ibchan_cm_farewell *farewell, s64 ms)
{
	struct ibchan_device *dev = farewell->dev;
	u32 wait_ms = clamp_t(s64, ms, 0, FAREWELL_MS);

	spin_lock(&dev->farewell_lock);
	list_add_tail(&farewell->link, &dev->farewells);
	queue_delayed_work(ibchan_free_wq, &farewell->end,
			   farewell->over ? 0 : msecs_to_jiffies(wait_ms));
	spin_unlock(&dev->farewell_lock);
}

static struct ibchan_cm_farewell *take_first(struct ibchan_device *dev)
{
	struct ibchan_cm_farewell *farewell;

	spin_lock(&dev->farewell_lock);
	farewell = list_first_entry_or_null(&dev->farewells, struct ibchan_cm_farewell, link);
	if (farewell)
		take(farewell);
	spin_unlock(&dev->farewell_lock);
	return farewell;
}

/* None of the device's channels has an id any more. */
static void device_ended(struct ibchan_device *dev)
{
	struct ibchan_cm_farewell *farewell;

	while ((farewell = take_first(dev))) {
		rdma_destroy_id(farewell->id);
		cancel_delayed_work_sync(&farewell->end);
		farewell_free(farewell);
	}
}

const struct ibchan_device_client ibchan_farewell_client = { .ended = device_ended };
