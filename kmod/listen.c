// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners, and the requests that come to them.
 *
 * A request is an id of the connection manager that waits in its listener until it
 * is taken, and then belongs to who took it, whatever becomes of the listener. When
 * it is accepted, its id becomes that of the channel's connection. Whoever wants to
 * destroy an id takes it out with xchg() first: its owner, or the handler when the
 * device leaves.
 */
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

static DEFINE_MUTEX(listeners_lock);

/**
 * struct ibchan_listener - where requests come in
 * @id: taken with xchg() by who destroys it; NULL then
 * @dev: only requests that come over it; holds a reference; NULL: any
 * @lock: guards @requests and @waiting
 * @requests: not taken yet, the oldest first
 * @waiting: how many
 * @backlog: how many may
 * @dead: the device of its address, or the only one, has left
 * @link: in @dev's list, under listeners_lock
 * @ready: the consumer's
 * @priv: the consumer's
 * @address: with the port
 */
struct ibchan_listener {
	struct rdma_cm_id *id;
	struct ibchan_device *dev;
	spinlock_t lock;		/* requests */
	struct list_head requests;
	u32 waiting;
	u32 backlog;
	int dead;
	struct list_head link;
	void (*ready)(void *priv);
	void *priv;
	struct sockaddr_storage address;
};

/**
 * struct ibchan_request - somebody asks
 * @id: taken with xchg() by who destroys it; NULL then
 * @dev: that it came over; holds a reference
 * @error: errno, positive, of the peer's giving up; 0: it waits
 * @responder_resources: reads and atomics that the peer serves at a time
 * @initiator_depth: reads and atomics that the peer has in flight
 * @mtu: what the peer's packets may have, in bytes; 0 on iWARP
 * @credits: where the peer is granted some
 * @remote: of the peer
 * @link: in its listener
 * @attr: for its owner
 */
struct ibchan_request {
	struct rdma_cm_id *id;
	struct ibchan_device *dev;
	int error;
	u8 responder_resources;
	u8 initiator_depth;
	u32 mtu;
	struct ibchan_cm_credits credits;
	struct ibchan_cm_peer remote;
	struct list_head link;
	struct ibchan_request_attr attr;
};

static void request_fill(struct ibchan_request *request, const struct rdma_cm_id *id,
			 const struct rdma_conn_param *param)
{
	struct ibchan_request_attr *attr = &request->attr;

	strscpy(attr->device, dev_name(&id->device->dev), sizeof(attr->device));
	attr->port = id->port_num;
	attr->local = id->route.addr.src_addr;
	attr->peer = id->route.addr.dst_addr;
	attr->length = ibchan_cm_data_take(param, attr->data, &request->credits);
	ibchan_cm_keep_peer(&request->remote, param);
	request->responder_resources = param->responder_resources;
	request->initiator_depth = param->initiator_depth;
	if (id->route.path_rec)
		request->mtu = ib_mtu_enum_to_int(id->route.path_rec->mtu);
}

/* The peer is told, unless it knows. */
static void request_free(struct ibchan_request *request)
{
	struct rdma_cm_id *id = ibchan_cm_take_id(&request->id);

	if (id)
		rdma_destroy_id(id);
	ibchan_device_put(request->dev);
	kfree(request);
}

/* Somebody who asked gives up, or is lost. */
static int request_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_request *request = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		WRITE_ONCE(request->error, ENODEV);
		/* Nothing of @request is touched after this. */
		return ibchan_cm_take_id(&request->id) ? 1 : 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		WRITE_ONCE(request->error, ETIMEDOUT);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		WRITE_ONCE(request->error, ECONNRESET);
		return 0;
	default:
		return 0;
	}
}

static struct ibchan_request *request_create(struct ibchan_listener *listener,
					     struct rdma_cm_id *id)
{
	struct ibchan_device *dev = ibchan_device_find(id->device);
	struct ibchan_request *request;

	if (!dev)
		return ERR_PTR(-ENODEV);
	if (listener->dev && listener->dev != dev) {
		ibchan_device_put(dev);
		return ERR_PTR(-EXDEV);
	}
	request = kzalloc(sizeof(*request), GFP_KERNEL);
	if (!request) {
		ibchan_device_put(dev);
		return ERR_PTR(-ENOMEM);
	}
	request->dev = dev;
	return request;
}

static bool listener_has_room(struct ibchan_listener *listener)
{
	return READ_ONCE(listener->waiting) < listener->backlog;
}

static void listener_add(struct ibchan_listener *listener, struct ibchan_request *request)
{
	spin_lock(&listener->lock);
	list_add_tail(&request->link, &listener->requests);
	WRITE_ONCE(listener->waiting, listener->waiting + 1);
	spin_unlock(&listener->lock);
	if (listener->ready)
		listener->ready(listener->priv);
}

/*
 * What this answers with ENOMEM is not rejected, so that the peer asks again: an
 * instant later there may be room.
 */
static int request_arrived(struct ibchan_listener *listener, struct rdma_cm_id *id,
			   const struct rdma_conn_param *param)
{
	struct ibchan_request *request;

	if (!listener_has_room(listener))
		return -ENOMEM;
	request = request_create(listener, id);
	if (IS_ERR(request))
		return PTR_ERR(request);
	request_fill(request, id, param);
	request->id = id;
	id->context = request;
	id->event_handler = request_event;
	listener_add(listener, request);
	return 0;
}

static void listener_die(struct ibchan_listener *listener)
{
	WRITE_ONCE(listener->dead, 1);
	if (listener->ready)
		listener->ready(listener->priv);
}

/**
 * ibchan_listeners_lose_device - nothing comes over a device any more
 * @dev: it has left
 *
 * The connection manager says so only to those at an address of the device, and those
 * may hear it twice.
 *
 * Context: process, may sleep; without the gate.
 */
void ibchan_listeners_lose_device(struct ibchan_device *dev)
{
	struct ibchan_listener *listener;

	guard(mutex)(&listeners_lock);
	list_for_each_entry(listener, &dev->listeners, link)
		listener_die(listener);
}

static int listener_lost(struct ibchan_listener *listener)
{
	listener_die(listener);
	/* Nothing of @listener is touched after this. */
	return ibchan_cm_take_id(&listener->id) ? 1 : 0;
}

static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_listener *listener = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return request_arrived(listener, id, &event->param.conn);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return listener_lost(listener);
	default:
		return 0;
	}
}

static u32 listener_backlog(const struct ibchan_listener_init *init)
{
	return init->backlog ?: IBCHAN_DEFAULT_BACKLOG;
}

static int check_listener(const struct ibchan_listener_init *init,
			  struct ibchan_reason *reason)
{
	if (listener_backlog(init) > IBCHAN_MAX_BACKLOG) {
		if (reason)
			reason->element = IBCHAN_PARAMETER_BACKLOG;
		return ibchan_refuse_values(reason, IBCHAN_REASON_PARAMETER, -EINVAL,
					    (u64[3]) { init->backlog, 1,
						      IBCHAN_MAX_BACKLOG });
	}
	return ibchan_check_address(init->address, reason);
}

static struct ibchan_listener *listener_alloc(const struct ibchan_listener_init *init)
{
	struct ibchan_listener *listener = kzalloc(sizeof(*listener), GFP_KERNEL_ACCOUNT);

	if (!listener)
		return NULL;
	spin_lock_init(&listener->lock);
	INIT_LIST_HEAD(&listener->requests);
	INIT_LIST_HEAD(&listener->link);
	listener->backlog = listener_backlog(init);
	listener->ready = init->ready;
	listener->priv = init->priv;
	listener->dev = init->dev;
	if (listener->dev)
		ibchan_device_hold(listener->dev);
	return listener;
}

static void listener_free(struct ibchan_listener *listener)
{
	if (listener->dev)
		ibchan_device_put(listener->dev);
	kfree(listener);
}

/* Nothing comes over a device that has left, and who has one hears of its leaving. */
static int listener_join(struct ibchan_listener *listener)
{
	struct ibchan_device *dev = listener->dev;
	int ret = ibchan_device_enter(dev);

	if (ret)
		return ret;
	mutex_lock(&listeners_lock);
	list_add_tail(&listener->link, &dev->listeners);
	mutex_unlock(&listeners_lock);
	ibchan_device_exit(dev);
	return 0;
}

static void listener_leave(struct ibchan_listener *listener)
{
	guard(mutex)(&listeners_lock);
	list_del_init(&listener->link);
}

/* Any address of IPv6 means any of IPv4, too, whatever the system's default is. */
static int listener_bind(struct rdma_cm_id *id, const struct ibchan_listener_init *init,
			 struct ibchan_reason *reason)
{
	int ret = 0;

	if (init->address->sa_family == AF_INET6)
		ret = rdma_set_afonly(id, 0);
	if (!ret)
		ret = rdma_bind_addr(id, (struct sockaddr *)init->address);
	return ret ? ibchan_refuse_cm(reason, CM_STEP_BIND, ret) : 0;
}

static int listener_listen(struct ibchan_listener *listener, struct rdma_cm_id *id,
			   const struct ibchan_listener_init *init,
			   struct ibchan_reason *reason)
{
	int ret = listener_bind(id, init, reason);

	if (ret)
		return ret;
	listener->address = id->route.addr.src_addr;
	ret = rdma_listen(id, listener->backlog);
	return ret ? ibchan_refuse_cm(reason, CM_STEP_LISTEN, ret) : 0;
}

/*
 * From here on the connection manager may take the id when its device leaves. Has it left
 * already, then listener_lost() has found none to give away.
 */
static void listener_own(struct ibchan_listener *listener, struct rdma_cm_id *id)
{
	/* Seen before @dead is read: listener_lost() writes that, then takes the id. */
	smp_store_mb(listener->id, id);
	if (!READ_ONCE(listener->dead))
		return;
	id = ibchan_cm_take_id(&listener->id);
	if (id)
		rdma_destroy_id(id);
}

static int listener_start(struct ibchan_listener *listener,
			  const struct ibchan_listener_init *init,
			  struct ibchan_reason *reason)
{
	struct rdma_cm_id *id;
	int ret = listener->dev ? listener_join(listener) : 0;

	if (ret)
		return ret;
	id = rdma_create_id(init->net, listener_event, listener, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return ibchan_refuse_cm(reason, CM_STEP_ID, PTR_ERR(id));
	ret = listener_listen(listener, id, init, reason);
	if (ret)
		rdma_destroy_id(id);
	else
		listener_own(listener, id);
	return ret;
}

/**
 * ibchan_listener_create - listen for requests
 * @init: where
 * @reason: why not, or NULL
 *
 * Requests beyond the backlog are not answered; the peer's connection manager asks again,
 * on InfiniBand and RoCE after 4 s.
 *
 * Context: process, may sleep.
 * Return: the listener, for ibchan_listener_close(); -EAFNOSUPPORT; -EINVAL for a
 * backlog that is too long; -EADDRINUSE; -EADDRNOTAVAIL and -ENODEV for an
 * address that no RDMA device has, or when the wanted one is gone; -EACCES for a port
 * that only root may have; -ENOMEM.
 */
struct ibchan_listener *ibchan_listener_create(const struct ibchan_listener_init *init,
					       struct ibchan_reason *reason)
{
	struct ibchan_listener *listener;
	int ret = check_listener(init, reason);

	if (ret)
		return ERR_PTR(ret);
	listener = listener_alloc(init);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	ret = listener_start(listener, init, reason);
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
	u32 waiting = READ_ONCE(listener->waiting);

	return !waiting && READ_ONCE(listener->dead) ? -ENODEV : waiting;
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_waiting, IBCHAN_NS);

static struct ibchan_request *listener_pop(struct ibchan_listener *listener)
{
	struct ibchan_request *request;

	spin_lock(&listener->lock);
	request = list_first_entry_or_null(&listener->requests, struct ibchan_request, link);
	if (request) {
		list_del(&request->link);
		WRITE_ONCE(listener->waiting, listener->waiting - 1);
	}
	spin_unlock(&listener->lock);
	return request;
}

/**
 * ibchan_listener_close - listen no more
 * @listener: not to be used any more
 *
 * Requests that nobody has taken are rejected; those that were taken live on.
 *
 * Context: process, may sleep; not from a callback of the listener.
 */
void ibchan_listener_close(struct ibchan_listener *listener)
{
	struct rdma_cm_id *id = ibchan_cm_take_id(&listener->id);
	struct ibchan_request *request;

	if (listener->dev)
		listener_leave(listener);
	if (id)
		rdma_destroy_id(id);
	while ((request = listener_pop(listener)))
		request_free(request);
	listener_free(listener);
}
EXPORT_SYMBOL_NS_GPL(ibchan_listener_close, IBCHAN_NS);

/**
 * ibchan_request_take - take the next request of a listener
 * @listener: the listener
 *
 * Those whose peers have given up meanwhile are left out.
 *
 * Context: process, may sleep.
 * Return: the request, for ibchan_request_accept() or ibchan_request_reject();
 * -EAGAIN when none waits; -ENODEV when none comes any more.
 */
struct ibchan_request *ibchan_request_take(struct ibchan_listener *listener)
{
	struct ibchan_request *request;

	while ((request = listener_pop(listener))) {
		if (!READ_ONCE(request->error))
			return request;
		request_free(request);
	}
	return ERR_PTR(READ_ONCE(listener->dead) ? -ENODEV : -EAGAIN);
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_take, IBCHAN_NS);

/**
 * ibchan_request_query - who asks
 * @request: taken
 * @attr: filled
 *
 * Context: any.
 */
void ibchan_request_query(const struct ibchan_request *request,
			  struct ibchan_request_attr *attr)
{
	*attr = request->attr;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_query, IBCHAN_NS);

/* What both sides can: what one has in flight, the other serves. */
static int agree(const struct ibchan_request *request, const struct ibchan_channel *ch,
		 struct rdma_conn_param *agreed, struct ibchan_reason *reason)
{
	u32 ours = ch->params.max_rd_atomic;

	agreed->responder_resources = min_t(u32, ours, request->initiator_depth);
	agreed->initiator_depth = min_t(u32, ours, request->responder_resources);
	/* With none, soft-RoCE would keep a read for ever. */
	if (agreed->initiator_depth)
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PEER_RD_ATOMIC, -EINVAL,
				    (u64[3]) { 1 });
}

/* What the channel's packets may have, if that is less than was asked for; else 0. */
static u32 shorter_mtu(const struct ibchan_request *request, const struct ibchan_channel *ch)
{
	u32 ours = READ_ONCE(ch->params.mtu);

	return request->remote.hears_mtu && ours < request->mtu ? ours : 0;
}

/* iWARP: the device does the rest when it has sent the answer. */
static int connect_qp(struct ibchan_channel *ch, struct rdma_cm_id *id,
		      const struct rdma_conn_param *agreed, u32 mtu)
{
	int ret;

	ret = ibchan_qp_cm_init(ch, id);
	ibchan_cm_adopt_gid(ch, id);
	if (ret || rdma_protocol_iwarp(id->device, id->port_num))
		return ret;
	ret = ibchan_qp_cm_connect(ch, id, agreed, mtu);
	if (!ret)
		ch->connected = 1;
	return ret;
}

static int reject_code(int error)
{
	return error == -EMSGSIZE ? IB_CM_REJ_INVALID_MTU : IB_CM_REJ_CONSUMER_DEFINED;
}

static int answer(struct ibchan_cm *cm, struct rdma_cm_id *id,
		  struct rdma_conn_param *agreed, u32 mtu)
{
	int ret = connect_qp(cm->ch, id, agreed, mtu);

	if (ret) {
		rdma_reject(id, NULL, 0, reject_code(ret));
		return ret;
	}
	if (mtu)
		ibchan_cm_data_tell_mtu(cm, mtu);
	agreed->private_data = cm->length ? cm->data : NULL;
	agreed->private_data_len = cm->length;
	agreed->rnr_retry_count = cm->ch->params.rnr_retries;
	agreed->flow_control = ibchan_cm_flow_control(cm->ch);
	agreed->qp_num = cm->ch->qp->qp_num;
	return ibchan_cm_refusal(rdma_accept(id, agreed));
}

/* From now on the id is the channel's, and what fails breaks that. */
static void hand_over(struct ibchan_request *request, struct ibchan_cm *cm,
		      struct rdma_conn_param *agreed)
{
	struct rdma_cm_id *id = request->id;
	int ret;

	request->id = NULL;
	cm->id = id;
	cm->local = request->attr.local;
	cm->peer = request->attr.peer;
	cm->remote = request->remote;
	id->context = cm;
	id->event_handler = ibchan_cm_event;
	ret = answer(cm, id, agreed, shorter_mtu(request, cm->ch));
	cm->length = request->attr.length;
	memcpy(cm->data, request->attr.data, sizeof(cm->data));
	if (ret)
		ibchan_cm_fail(cm, ret, ret);
}

/* Under the handler's mutex of the id. */
static int request_answer(struct ibchan_request *request, struct ibchan_cm *cm,
			  struct ibchan_reason *reason)
{
	struct rdma_conn_param agreed = {};
	int ret = -READ_ONCE(request->error);

	if (!ret)
		ret = agree(request, cm->ch, &agreed, reason);
	if (ret)
		return ret;
	guard(mutex)(&cm->ch->qp_lock);
	ret = ibchan_cm_data_agree(cm->ch, &request->credits, reason);
	if (!ret)
		ret = ibchan_cm_begin(cm, IBCHAN_STAGE_ACCEPT, reason);
	if (!ret)
		hand_over(request, cm, &agreed);
	return ret;
}

/* The gate keeps the device, and the device the id: see cm.c. */
static int request_accept(struct ibchan_request *request, struct ibchan_cm *cm,
			  struct ibchan_reason *reason)
{
	struct rdma_cm_id *id = request->id;
	int ret;

	rdma_lock_handler(id);
	ret = request_answer(request, cm, reason);
	rdma_unlock_handler(id);
	return ret;
}

static int request_start(struct ibchan_request *request, struct ibchan_channel *ch,
			 const struct ibchan_connect *connect, struct ibchan_reason *reason)
{
	u32 max = IBCHAN_PRIVATE_DATA_SIZE;
	struct ibchan_cm *cm;
	int ret;

	if (request->dev != ch->dev)
		return ibchan_refuse(reason, IBCHAN_REASON_REQUEST_DEVICE, -EXDEV);
	if (shorter_mtu(request, ch))
		max -= sizeof(struct ibchan_cm_mtu);
	ret = ibchan_check_data(ch, connect, max, reason);
	if (ret)
		return ret;
	cm = ibchan_cm_create(ch, connect, reason);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	ret = request_accept(request, cm, reason);
	if (ret)
		ibchan_cm_free(cm);
	return ret;
}

/**
 * ibchan_request_accept - begin to connect a channel to who asks
 * @request: used up on success
 * @ch: prepared, of the request's device
 * @connect: data, length and connect_ms are used
 * @reason: why not, or NULL
 *
 * Of two sides that take packets of different length the shorter ones count; the peer
 * hears of them by 8 bytes of the answer, which @connect has less. What goes wrong after
 * it has begun breaks the channel: see ibchan_channel_connect(); -EMSGSIZE when the peer
 * uses no ibchan and sends longer packets than this side's port takes. If @ch is closed
 * before the peer has heard of the answer, the peer is told of the end when it has, for up
 * to ten seconds.
 *
 * Context: process, may sleep.
 * Return: 0 when it has begun; -EXDEV when the request came over another device;
 * -EINVAL for too much data, a time that is too long, or a peer that can serve no
 * read; -ECONNRESET, -ETIMEDOUT when the peer has given up; -EISCONN when @ch is
 * connected or connecting already; -ESHUTDOWN when it is broken; -ENODEV when the
 * device is gone; -ENOMEM.
 */
int ibchan_request_accept(struct ibchan_request *request, struct ibchan_channel *ch,
			  const struct ibchan_connect *connect,
			  struct ibchan_reason *reason)
{
	int ret = ibchan_device_enter(ch->dev);

	if (ret)
		return ret;
	ret = request_start(request, ch, connect, reason);
	ibchan_device_exit(ch->dev);
	if (!ret)
		request_free(request);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_accept, IBCHAN_NS);

/**
 * ibchan_request_reject - send who asks away
 * @request: used up on success
 * @data: for the peer; NULL: none
 * @length: bytes of @data
 *
 * Context: process, may sleep.
 * Return: 0, also when the peer does not wait any more; -EINVAL for too much data.
 */
int ibchan_request_reject(struct ibchan_request *request, const void *data, u32 length)
{
	int ret = ibchan_device_enter(request->dev);

	if (!ret) {
		ret = length > IBCHAN_REJECT_DATA ? -EINVAL : 0;
		/* Without data the end of the id says as much. */
		if (!ret && length && !READ_ONCE(request->error))
			rdma_reject(request->id, data, length, IB_CM_REJ_CONSUMER_DEFINED);
		ibchan_device_exit(request->dev);
		if (ret)
			return ret;
	}
	request_free(request);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_reject, IBCHAN_NS);
