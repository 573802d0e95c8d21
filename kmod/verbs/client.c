// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices come and leave.
 *
 * A device may leave at any time. Commands pass its gate (gate.c); removal closes it, so that no
 * command is under way while removal takes the verbs objects apart: channels first, which ends all
 * work, then memory and completion queues. Domains stay until the last guest of the gate has gone.
 * Our own objects stay behind as shells without a verbs object, until their owners give them back.
 */
#include <linux/errno.h>

#include "private.h"

static struct ib_client ibchan_client;

/* A guest of a device that leaves is named in the log each time after this long. */
#define IBCHAN_GUEST_LOG	(5 * HZ)

static void device_fatal_work(struct work_struct *work)
{
	ibchan_device_tell(breaks, container_of(work, struct ibchan_device, fatal_work), NULL,
			   -EIO);
}

static void device_gid_work(struct work_struct *work)
{
	ibchan_device_tell(addresses_change, container_of(work, struct ibchan_device, gid_work));
}

/*
 * A device that has failed completes nothing any more, and a channel without its address
 * hears nothing any more. Process context, under an rwsem of the device.
 */
static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct ibchan_device *dev = container_of(handler, struct ibchan_device, events);

	switch (event->event) {
	case IB_EVENT_DEVICE_FATAL:
		queue_work(ibchan_wq, &dev->fatal_work);
		break;
	case IB_EVENT_GID_CHANGE:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		queue_work(ibchan_wq, &dev->gid_work);
		break;
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
		ibchan_device_tell(port_changes, dev, event->element.port_num, event->event);
		break;
	default:
		break;
	}
}

static int client_add(struct ib_device *ib)
{
	struct ibchan_device *dev = ibchan_device_alloc(ib);

	if (!dev)
		return -ENOMEM;
	INIT_WORK(&dev->fatal_work, device_fatal_work);
	INIT_WORK(&dev->gid_work, device_gid_work);
	ibchan_device_tell(comes, dev);
	INIT_IB_EVENT_HANDLER(&dev->events, ib, device_event);
	ib_register_event_handler(&dev->events);
	ib_set_client_data(ib, &ibchan_client, dev);
	ibchan_device_publish(dev);
	return 0;
}

/* They are never called again, and what they stand for is counted as leaked. */
static void forget_verbs(struct ibchan_device *dev)
{
	struct ibchan_mr *mr;
	struct ibchan_cq *cq;
	struct ibchan_pd *pd;

	list_for_each_entry(mr, &dev->mrs, link) {
		mr->ib = NULL;
		mr->released = 1;
		mr->leaked = 1;
	}
	list_for_each_entry(cq, &dev->cqs, link)
		cq->ib = NULL;
	list_for_each_entry(pd, &dev->pds, link)
		pd->ib = NULL;
}

/*
 * The gate is closed, so the lists do not change. Where a client says that the device keeps some of
 * its objects, the device may still use any other one, and none of them goes. The grace period lets
 * the last completion handlers end, before the cqs go.
 */
static void release_verbs(struct ibchan_device *dev)
{
	unsigned long deadline = jiffies + IBCHAN_DRAIN_TIMEOUT;
	const struct ibchan_device_client *const *client;
	struct ibchan_mr *mr;
	struct ibchan_cq *cq;
	bool gone = true;

	for (client = ibchan_device_clients; *client; client++)
		if ((*client)->ends)
			gone &= (*client)->ends(dev, deadline);
	list_for_each_entry(cq, &dev->cqs, link)
		ibchan_cq_remove(cq);
	if (!gone) {
		forget_verbs(dev);
		return;
	}
	list_for_each_entry(mr, &dev->mrs, link)
		ibchan_mr_release_verbs(mr);
	deadline = jiffies + IBCHAN_EVENT_TIMEOUT;
	list_for_each_entry(cq, &dev->cqs, link)
		ibchan_cq_settle(cq, deadline);
	synchronize_rcu();
	list_for_each_entry(cq, &dev->cqs, link)
		ibchan_cq_release_verbs(cq);
}

/* A guest's region lies in a domain of the device, and only the guest can take it back. */
static void wait_for_guests(struct ibchan_device *dev)
{
	struct ibchan_guest guest;
	char name[IBCHAN_NAME_SIZE];

	while (ibchan_gate_wait_guests(&dev->gate, IBCHAN_GUEST_LOG, &guest)) {
		ibchan_device_name(dev, name);
		pr_warn_ratelimited("%s leaves and waits for process %d (%s): pages that it %s\n",
				    name, guest.pid, guest.comm, guest.ends ?
				    "has registered do not go" : "registers do not come");
	}
}

static void client_remove(struct ib_device *ib, void *client_data)
{
	struct ibchan_device *dev = client_data;
	struct ibchan_pd *pd;

	if (!dev)
		return;
	guard(ibchan_noio)();
	ibchan_device_unpublish(dev);
	ib_unregister_event_handler(&dev->events);
	cancel_work_sync(&dev->fatal_work);
	cancel_work_sync(&dev->gid_work);
	ibchan_device_tell(breaks, dev, NULL, -ENODEV);
	ibchan_fault_linger(IBCHAN_WINDOW_LEAVING);
	ibchan_gate_close(&dev->gate);
	ibchan_device_tell(closes, dev);
	/* Objects that were made meanwhile. */
	ibchan_device_tell(breaks, dev, NULL, -ENODEV);
	release_verbs(dev);
	ibchan_device_tell(ended, dev);
	ibchan_gate_open(&dev->gate);
	wait_for_guests(dev);
	ibchan_gate_close(&dev->gate);
	/* Nothing is left but domains. */
	list_for_each_entry(pd, &dev->pds, link)
		ibchan_pd_release_verbs(pd);
	ibchan_device_settle(dev);
	dev->ib = NULL;
	ibchan_gate_open(&dev->gate);
	ibchan_device_tell(left, dev);
	ibchan_device_put(dev);
}

static struct ib_client ibchan_client = {
	.name = "ibchan",
	.add = client_add,
	.remove = client_remove,
	.rename = ibchan_device_rename,
};

/* Begins to follow the devices that come and go. */
int ibchan_client_init(void)
{
	return ib_register_client(&ibchan_client);
}

void ibchan_client_fini(void)
{
	ib_unregister_client(&ibchan_client);
}
