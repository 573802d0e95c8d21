// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens and closes listeners, at which requests come in and wait until they are taken. request.c
 * answers a request that was taken.
 *
 * Code that destroys a listener's id takes it out with xchg() first: its owner, the
 * handler when the device leaves, or a work item that listens again.
 *
 * An id stays with the device that had the address when it was bound. When a bond fails
 * over, the address moves to another device, and the id hears nothing any more. So where
 * an address may have gone, a work item looks, and if it has, gives the id up and binds
 * another one to the same address and port. In between no id listens, and a peer that asks is
 * refused. While no device has the address, or another listener has the port, the work item
 * tries again and again.
 */
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

/* The pause from one try to listen again to the next. */
#define RENEW_PAUSE	(HZ / 4)

static DEFINE_MUTEX(listeners_lock);
static LIST_HEAD(listeners);

/* An address at which requests come in */
struct ibchan_listener {
	struct rdma_cm_id *id;	/* the code that destroys it takes it out with xchg(); NULL then */
	struct ibchan_device *dev;	/* only requests over it; holds a reference; NULL: any */
	struct ibchan_request_queue queue;	/* requests that are not taken yet */
	u32 backlog;	/* how many may wait there */
	struct ibchan_payer payer;	/* the budget that requests are charged to */
	/* it closes, or the device of its address, or the only one, has left */
	int dead;
	struct net *net;	/* holds a reference */
	struct delayed_work renew;	/* listens again where the address is, if it has gone */
	bool begun;	/* @address and @id are there for @renew */
	struct list_head link;	/* in the list of all, under listeners_lock */
	void (*ready)(void *priv);	/* the consumer's, with @priv */
	void *priv;
	struct sockaddr_storage address;	/* with the port */
};

/*
 * A request that this answers with ENOMEM is not rejected, so that the peer asks again: an
 * instant later there may be room.
 */
static int request_arrived(struct ibchan_listener *listener, struct rdma_cm_id *id,
			   const struct rdma_conn_param *param)
{
	struct ibchan_wire wire;
	int ret;

	if (READ_ONCE(listener->queue.waiting) >= listener->backlog)
		return -ENOMEM;
	ret = ibchan_request_arrive(id, param, listener->dev, &listener->payer, &listener->queue);
	if (ret && ret != -ENOMEM) {
		ibchan_cm_data_wire(param, IBCHAN_WIRE_REQUEST, &wire);
		ibchan_cm_reject(id, &wire, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0);
	}
	if (!ret && listener->ready)
		listener->ready(listener->priv);
	return ret;
}

static void listener_die(struct ibchan_listener *listener)
{
	WRITE_ONCE(listener->dead, 1);
	if (listener->ready)
		listener->ready(listener->priv);
}

/*
 * Nothing comes over the device any more. The connection manager tells only the listeners at an
 * address of the device, and these may hear it twice.
 */
static void device_left(struct ibchan_device *dev)
{
	struct ibchan_listener *listener;

	guard(mutex)(&listeners_lock);
	list_for_each_entry(listener, &listeners, link)
		if (listener->dev == dev)
			listener_die(listener);
}

/* An address of a listener may have come or gone. */
static void addresses_change(struct ibchan_device *dev)
{
	struct ibchan_listener *listener;

	guard(mutex)(&listeners_lock);
	list_for_each_entry(listener, &listeners, link)
		queue_delayed_work(ibchan_slow_wq, &listener->renew, 0);
}

const struct ibchan_device_client ibchan_listen_client = {
	.addresses_change = addresses_change,
	.left = device_left,
};

static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_listener *listener = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return request_arrived(listener, id, &event->param.conn);
	case RDMA_CM_EVENT_ADDR_CHANGE:
		queue_delayed_work(ibchan_slow_wq, &listener->renew, 0);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		listener_die(listener);
		/* Nothing of @listener is touched after this. */
		return !!ibchan_cm_take_id(&listener->id);
	default:
		return 0;
	}
}

/*
 * The connection manager says of a port that another listener has the same as of an address that is
 * not there, where one of the two is for any address.
 */
static int listener_bind(struct rdma_cm_id *id, const struct sockaddr *address)
{
	struct sockaddr_storage any_port = {};
	int ret = 0;

	/* Any address of IPv6 means any of IPv4, too, whatever the system's default is. */
	if (address->sa_family == AF_INET6)
		ret = rdma_set_afonly(id, 0);
	ret = ret ?: rdma_bind_addr(id, (struct sockaddr *)address);
	if (ret != -EADDRNOTAVAIL)
		return ret;
	memcpy(&any_port, address, rdma_addr_size(address));
	/* The port of IPv6 is at the same place. */
	((struct sockaddr_in *)&any_port)->sin_port = 0;
	return rdma_bind_addr(id, (struct sockaddr *)&any_port) ? ret : -EADDRINUSE;
}

static struct rdma_cm_id *listener_open(struct ibchan_listener *listener,
					const struct sockaddr *address,
					struct ibchan_reason *reason)
{
	enum ibchan_cm_step step = CM_STEP_BIND;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(listener->net, listener_event, listener, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return ERR_PTR(ibchan_refuse_cm(reason, CM_STEP_ID, PTR_ERR(id)));
	ret = listener_bind(id, address);
	/* A request to the address of one device never comes over another one. */
	if (!ret && listener->dev && id->device && id->device != READ_ONCE(listener->dev->ib))
		ret = -EXDEV;
	if (!ret) {
		step = CM_STEP_LISTEN;
		ret = rdma_listen(id, listener->backlog);
	}
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ibchan_refuse_cm(reason, step, ret));
}

/*
 * From here on the connection manager may take the id when its device leaves. If the device has
 * left already, listener_event() has found no id to give away.
 */
static void listener_own(struct ibchan_listener *listener, struct rdma_cm_id *id)
{
	/* Seen before @dead is read: a handler and the close write that, then take the id. */
	smp_store_mb(listener->id, id);
	if (!READ_ONCE(listener->dead))
		return;
	id = ibchan_cm_take_id(&listener->id);
	if (id)
		rdma_destroy_id(id);
}

/* If the device leaves meanwhile, this function destroys the id: see listener_own(). */
static void listener_renew(struct work_struct *work)
{
	struct ibchan_listener *listener = container_of(to_delayed_work(work),
							struct ibchan_listener, renew);
	const struct ib_gid_attr *bound;
	struct rdma_cm_id *id;

	/* Its opener looks again. */
	if (!smp_load_acquire(&listener->begun))
		return;
	id = ibchan_cm_take_id(&listener->id);
	/* One of all devices has no address. */
	bound = id && id->device ? id->route.addr.dev_addr.sgid_attr : NULL;
	if (id && (!bound || ibchan_gid_is_current(bound))) {
		listener_own(listener, id);
		return;
	}
	if (id)
		rdma_destroy_id(id);
	if (READ_ONCE(listener->dead))
		return;
	id = listener_open(listener, (struct sockaddr *)&listener->address, NULL);
	if (IS_ERR(id))
		queue_delayed_work(ibchan_slow_wq, &listener->renew, RENEW_PAUSE);
	else
		listener_own(listener, id);
}

static int listener_start(struct ibchan_listener *listener, const struct sockaddr *address,
			  struct ibchan_reason *reason)
{
	struct ibchan_device *dev = listener->dev;
	int ret = dev ? ibchan_device_enter(dev) : 0;
	struct rdma_cm_id *id;

	if (ret)
		return ret;
	/* No request comes over a device that has left: its removal tells the listeners here. */
	scoped_guard(mutex, &listeners_lock)
		list_add_tail(&listener->link, &listeners);
	if (dev)
		ibchan_device_exit(dev);
	id = listener_open(listener, address, reason);
	if (IS_ERR(id))
		return PTR_ERR(id);
	listener->address = id->route.addr.src_addr;
	listener_own(listener, id);
	/* Pairs with listener_renew(). */
	smp_store_release(&listener->begun, true);
	/* The address may have gone before. */
	queue_delayed_work(ibchan_slow_wq, &listener->renew, 0);
	return 0;
}

/**
 * ibchan_listener_create - listen for requests
 * @init: where
 * @reason: why not, or NULL
 *
 * Requests beyond the backlog, or beyond the budget, are not answered; the peer's connection
 * manager asks again, on InfiniBand and RoCE after 4 s.
 *
 * Context: process, may sleep.
 * Return: the listener, for ibchan_listener_close(); -EAFNOSUPPORT; -EINVAL for a
 * backlog that is too long; -EXDEV for an address of another device than the wanted one;
 * -EADDRINUSE; -EADDRNOTAVAIL and -ENODEV for an address that no RDMA device has, or when
 * the wanted one is gone; -EACCES for a port that only root may have; -ENOMEM.
 */
struct ibchan_listener *ibchan_listener_create(const struct ibchan_listener_init *init,
					       struct ibchan_reason *reason)
{
	u32 backlog = init->backlog ?: IBCHAN_DEFAULT_BACKLOG;
	struct ibchan_listener *listener;
	int ret;

	might_sleep();
	if (backlog > IBCHAN_MAX_BACKLOG)
		return ERR_PTR(ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_BACKLOG, backlog, 1,
						       IBCHAN_MAX_BACKLOG));
	ret = ibchan_check_address(init->address, reason);
	if (ret)
		return ERR_PTR(ret);
	listener = kzalloc(sizeof(*listener), GFP_KERNEL_ACCOUNT);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&listener->queue.requests);
	INIT_LIST_HEAD(&listener->link);
	INIT_DELAYED_WORK(&listener->renew, listener_renew);
	ibchan_payer_init(&listener->payer, init->budget);
	listener->net = get_net(init->net);
	listener->backlog = backlog;
	listener->ready = init->ready;
	listener->priv = init->priv;
	listener->dev = init->dev;
	if (listener->dev)
		ibchan_device_hold(listener->dev);
	ret = listener_start(listener, init->address, reason);
	if (!ret)
		return listener;
	ibchan_listener_close(listener);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_create, IBCHAN_NS);

/**
 * ibchan_listener_address - where a listener listens
 * @listener: the listener
 * @address: filled, with the port
 *
 * Context: any.
 */
void ibchan_listener_address(const struct ibchan_listener *listener,
			     struct sockaddr_storage *address)
{
	*address = listener->address;
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_address, IBCHAN_NS);

/**
 * ibchan_listener_waiting - how many requests wait to be taken
 * @listener: the listener
 *
 * Context: any.
 * Return: the number; -ENODEV when the device of its address, or the only one, has left,
 * and none waits.
 */
int ibchan_listener_waiting(const struct ibchan_listener *listener)
{
	u32 waiting = READ_ONCE(listener->queue.waiting);

	return !waiting && READ_ONCE(listener->dead) ? -ENODEV : waiting;
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_waiting, IBCHAN_NS);

/**
 * ibchan_listener_close - listen no more
 * @listener: not to be used any more
 *
 * Requests that were not taken are rejected; taken ones live on.
 *
 * Context: process, may sleep; not from a callback of the listener.
 */
void ibchan_listener_close(struct ibchan_listener *listener)
{
	struct ibchan_request *request;
	struct rdma_cm_id *id;

	might_sleep();
	scoped_guard(mutex, &listeners_lock)
		list_del_init(&listener->link);
	/* Either the work sees this and destroys its id, or the id is there to be taken. */
	WRITE_ONCE(listener->dead, 1);
	cancel_delayed_work_sync(&listener->renew);
	id = ibchan_cm_take_id(&listener->id);
	if (id)
		rdma_destroy_id(id);
	/* The handler of the id may have queued it meanwhile. */
	cancel_delayed_work_sync(&listener->renew);
	while ((request = ibchan_request_pop(&listener->queue)))
		ibchan_request_free(request);
	if (listener->dev)
		ibchan_device_put(listener->dev);
	put_net(listener->net);
	kfree(listener);
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_close, IBCHAN_NS);

/**
 * ibchan_request_take - take the next request of a listener
 * @listener: the listener
 *
 * A request that its peer has withdrawn waits no more, and is not returned.
 *
 * Context: process, may sleep.
 * Return: the request, for ibchan_request_accept() or ibchan_request_reject();
 * -EAGAIN when none waits; -ENODEV when none comes any more.
 */
struct ibchan_request *ibchan_request_take(struct ibchan_listener *listener)
{
	struct ibchan_request *request;

	might_sleep();
	request = ibchan_request_pop(&listener->queue);
	if (request)
		return request;
	return ERR_PTR(READ_ONCE(listener->dead) ? -ENODEV : -EAGAIN);
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_take, IBCHAN_NS);
