// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: peers that ask at a listener, and what becomes of them.
 *
 * A request is an id of the connection manager that waits in its listener until it
 * is taken, or its peer gives up: then it leaves at once, in the handler of its id. The code that
 * takes a request out of the listener's queue owns it. A request that was taken belongs to the
 * caller that took it, whatever becomes of the listener and of the peer. When it is accepted,
 * its id becomes that of the channel's connection. Code that destroys an id takes it out with
 * xchg() first: the request's owner, or the handler when the device leaves.
 *
 * An accept checks everything before it changes the channel, and the channel's state
 * first: any peer may have sent the request, and the channel may be connected already.
 */
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

/* All queues of requests. */
static DEFINE_SPINLOCK(queues_lock);

static void request_fill(struct ibchan_request *request, const struct rdma_cm_id *id,
			 const struct rdma_conn_param *param)
{
	bool iwarp = rdma_protocol_iwarp(id->device, id->port_num);
	struct ibchan_request_attr *attr = &request->attr;

	attr->port = id->port_num;
	attr->local = id->route.addr.src_addr;
	attr->peer = id->route.addr.dst_addr;
	ibchan_cm_data_wire(param, IBCHAN_WIRE_REQUEST, &request->remote.wire);
	request->remote.qpn = param->qp_num;
	attr->length = ibchan_cm_data_take(param, &request->remote.wire, attr->data);
	request->reject_room = (iwarp ? IBCHAN_PRIVATE_DATA_SIZE : IBCHAN_REJECT_DATA) -
			       (request->remote.wire.version ? IBCHAN_WIRE_HEADER : 0);
	/* As this side sees them: reads to serve, and reads that may be in flight. */
	request->responder_resources = param->responder_resources;
	request->initiator_depth = param->initiator_depth;
	/* irdma does not tell the former. A side that serves more than is wanted loses nothing. */
	if (iwarp && !request->responder_resources)
		request->responder_resources = U8_MAX;
	if (id->route.path_rec)
		request->mtu = ib_mtu_enum_to_int(id->route.path_rec->mtu);
}

/*
 * Ends a request that was not accepted; its peer is told, unless it knows. In the handler of its
 * id only without the id.
 */
void ibchan_request_free(struct ibchan_request *request)
{
	struct rdma_cm_id *id = ibchan_cm_take_id(&request->id);

	if (id) {
		if (!READ_ONCE(request->error))
			ibchan_cm_reject(id, &request->remote.wire,
					 IB_CM_REJ_CONSUMER_DEFINED, NULL, 0);
		rdma_destroy_id(id);
	}
	ibchan_device_put(request->dev);
	ibchan_cost_pay_back(&request->cost);
	kfree(request);
}

/* False: somebody has taken it. */
static bool request_leave(struct ibchan_request *request)
{
	struct ibchan_request_queue *queue = request->queue;

	lockdep_assert_held(&queues_lock);
	if (!queue)
		return false;
	list_del(&request->link);
	WRITE_ONCE(queue->waiting, queue->waiting - 1);
	request->queue = NULL;
	return true;
}

/* The oldest request, which is the caller's now; NULL when there is none. */
struct ibchan_request *ibchan_request_pop(struct ibchan_request_queue *queue)
{
	struct ibchan_request *request;

	guard(spinlock)(&queues_lock);
	request = list_first_entry_or_null(&queue->requests, struct ibchan_request, link);
	if (request)
		request_leave(request);
	return request;
}

/* How a peer that asked gives up, or is lost; 0: it does not. */
static int event_error(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	default:
		return 0;
	}
}

static int request_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_request *request = id->context;
	const struct ibchan_wire wire = request->remote.wire;
	int error = event_error(event), was_lost;
	bool left;

	if (!error)
		return 0;
	was_lost = xchg(&request->error, -error);
	scoped_guard(spinlock, &queues_lock)
		left = request_leave(request);
	/* A request that was taken keeps its id unless the device takes that along. */
	if (!left && error != -ENODEV)
		return 0;
	/* Nothing of a taken request is touched after this. */
	if (!ibchan_cm_take_id(&request->id))
		return 0;
	if (error == -ENODEV && !was_lost)
		ibchan_cm_reject(id, &wire, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0);
	if (left)
		ibchan_request_free(request);
	return 1;
}

/*
 * A peer asks by @id, which is a request's on success, and that waits in @queue. @only: the device
 * that it has to come over; NULL: any. Under the handler's mutex of @id. -ENODEV; -EXDEV; -ENOMEM,
 * also when @payer may not pay for it.
 */
int ibchan_request_arrive(struct rdma_cm_id *id, const struct rdma_conn_param *param,
			  const struct ibchan_device *only, const struct ibchan_payer *payer,
			  struct ibchan_request_queue *queue)
{
	struct ibchan_device *dev = ibchan_device_find(id->device);
	struct ibchan_request *request;

	if (!dev)
		return -ENODEV;
	if (only && only != dev) {
		ibchan_device_put(dev);
		return -EXDEV;
	}
	request = kzalloc(sizeof(*request), GFP_KERNEL);
	if (!request || ibchan_cost_charge_to(&request->cost, payer, IBCHAN_FOOTPRINT_REQUEST)) {
		kfree(request);
		ibchan_device_put(dev);
		return -ENOMEM;
	}
	request->dev = dev;
	request_fill(request, id, param);
	request->id = id;
	id->context = request;
	id->event_handler = request_event;
	guard(spinlock)(&queues_lock);
	request->queue = queue;
	list_add_tail(&request->link, &queue->requests);
	WRITE_ONCE(queue->waiting, queue->waiting + 1);
	return 0;
}

/**
 * ibchan_request_query - tell which peer asks
 * @request: taken
 * @attr: filled; the device's name is the one that it has now
 *
 * Context: process, may sleep.
 */
void ibchan_request_query(const struct ibchan_request *request, struct ibchan_request_attr *attr)
{
	might_sleep();
	*attr = request->attr;
	ibchan_device_name(request->dev, attr->device);
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_query, IBCHAN_NS);

/**
 * ibchan_request_device - the device that a request came over
 * @request: taken
 *
 * A channel that is to answer the request is built on it.
 *
 * Context: any.
 * Return: the device, to be given back with ibchan_device_put(); it may have left.
 */
struct ibchan_device *ibchan_request_device(const struct ibchan_request *request)
{
	ibchan_device_hold(request->dev);
	return request->dev;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_device, IBCHAN_NS);

/* iWARP: the device does the rest when it has sent the answer. */
static int connect_qp(struct ibchan_channel *ch, struct rdma_cm_id *id,
		      const struct rdma_conn_param *agreed, u32 mtu)
{
	int ret;

	if (rdma_protocol_iwarp(id->device, id->port_num)) {
		ch->qp.params.max_rd_atomic = agreed->initiator_depth;
	} else {
		ret = ibchan_qp_cm_connect(&ch->qp, id, agreed, mtu);
		if (ret)
			return ret;
		ch->connected = 1;
	}
	ibchan_cm_bound_reads(ch);
	return 0;
}

static int answer(const struct ibchan_request *request, struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	u32 ours = cm->ch->qp.params.max_rd_atomic, mtu;
	u32 served = min_t(u32, ours, request->responder_resources);
	/* One side serves as many reads as the other has in flight. */
	struct rdma_conn_param agreed = {
		.responder_resources = served,
		.initiator_depth = min_t(u32, ours, request->initiator_depth),
	};
	int ret = ibchan_qp_cm_init(&cm->ch->qp, id);

	/* The address that was asked at says how long packets may be. */
	ibchan_cm_adopt_gid(cm->ch, id);
	/* 0: the channel's packets are no shorter than what was asked for. */
	mtu = READ_ONCE(cm->ch->qp.params.mtu);
	if (!request->remote.wire.version || mtu >= request->mtu)
		mtu = 0;
	if (!ret)
		ret = connect_qp(cm->ch, id, &agreed, mtu);
	if (ret) {
		ibchan_cm_reject(id, &cm->remote.wire, ret == -EMSGSIZE ? IB_CM_REJ_INVALID_MTU :
				 IB_CM_REJ_CONSUMER_DEFINED, NULL, 0);
		return ret;
	}
	ibchan_cm_fill_message(cm, IBCHAN_WIRE_ANSWER, &agreed);
	agreed.responder_resources = served;
	return ibchan_cm_refusal(rdma_accept(id, &agreed));
}

/* From now on the id is the channel's, and what fails breaks that. */
static void hand_over(struct ibchan_request *request, struct ibchan_cm *cm)
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
	ret = answer(request, cm, id);
	cm->length = request->attr.length;
	memcpy(cm->data, request->attr.data, sizeof(cm->data));
	cm->heard = true;
	ibchan_cm_stepped(cm, ret);
}

static int begin_to_accept(struct ibchan_request *request, struct ibchan_channel *ch,
			   const struct ibchan_connect *connect, struct ibchan_reason *reason)
{
	const struct ibchan_wire *wire = &request->remote.wire;
	struct ibchan_connect how = *connect;
	struct rdma_cm_id *id;
	struct ibchan_cm *cm;
	int ret;

	/* The gate keeps the device, and the device the id: see cm.c. */
	CLASS(ibchan_command, inside)(ch->qp.dev);
	if (!inside)
		return -ENODEV;
	if (connect->flags & ~IBCHAN_CONNECT_FLAGS)
		return -EINVAL;
	if (request->dev != ch->qp.dev)
		return ibchan_refuse(reason, IBCHAN_REASON_REQUEST_DEVICE, -EXDEV);
	ret = ibchan_cm_data_check(wire, connect->flags & IBCHAN_CONNECT_FOREIGN, reason);
	how.flags = wire->version ? 0 : IBCHAN_CONNECT_FOREIGN;
	how.peer = NULL;
	how.num_others = 0;
	ret = ret ?: ibchan_check_data(ch, &how, IBCHAN_PRIVATE_DATA_SIZE, reason);
	if (ret)
		return ret;
	cm = ibchan_cm_create(ch, &how, reason);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	id = request->id;
	rdma_lock_handler(id);
	ret = -READ_ONCE(request->error);
	if (!ret) {
		guard(ibchan_qp)(&ch->qp);
		/* Nothing of the channel changes unless it begins to connect. */
		ret = ibchan_cm_begin(cm, IBCHAN_STAGE_ACCEPT, reason);
		if (!ret)
			hand_over(request, cm);
	}
	rdma_unlock_handler(id);
	if (ret)
		kfree(cm);
	return ret;
}

/**
 * ibchan_request_accept - begin to connect a channel to the peer that asks
 * @request: used up on success
 * @ch: prepared, of the request's device
 * @connect: data, length, flags and connect_ms are used
 * @reason: why not, or NULL
 *
 * A peer that uses no ibchan, or has asked with IBCHAN_CONNECT_FOREIGN, is accepted with that
 * flag only. It gets @connect's data and nothing else, and no keepalive looks after it. Of two
 * sides that take packets of different length the shorter ones count, where both are ibchans.
 * A failure after it has begun breaks the channel: see ibchan_channel_connect(); -EMSGSIZE
 * when the peer is none and sends longer packets than this side takes. If @ch is closed before
 * the peer has heard of the answer, the peer is told of the end when it has, for up to ten
 * seconds.
 *
 * Each side has as many reads and atomics in flight as the other one serves. A peer that
 * serves none is accepted, and @ch then refuses to post any.
 *
 * Context: process, may sleep.
 * Return: 0 when it has begun; -EXDEV when the request came over another device; -EPROTOTYPE
 * when the peer is no ibchan, without IBCHAN_CONNECT_FOREIGN; -EINVAL for too much data or a time
 * that is too long; -ECONNRESET, -ETIMEDOUT when the peer has given up; -EISCONN when @ch is
 * connected or connecting already; -ESHUTDOWN when it is broken; -ENODEV when the device is gone;
 * -ENOMEM.
 */
int ibchan_request_accept(struct ibchan_request *request, struct ibchan_channel *ch,
			  const struct ibchan_connect *connect, struct ibchan_reason *reason)
{
	int ret = begin_to_accept(request, ch, connect, reason);

	/* The free may give the device back, and with it the gate: the caller is outside. */
	if (!ret)
		ibchan_request_free(request);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_accept, IBCHAN_NS);

/**
 * ibchan_request_reject - send the peer that asks away
 * @request: used up on success
 * @data: for the peer; NULL: none
 * @length: bytes of @data: see IBCHAN_PRIVATE_DATA_SIZE
 *
 * Context: process, may sleep.
 * Return: 0, also when the peer does not wait any more; -EINVAL for too much data.
 */
int ibchan_request_reject(struct ibchan_request *request, const void *data, u32 length)
{
	int ret = ibchan_device_enter(request->dev);

	if (!ret) {
		if (length > request->reject_room)
			ret = -EINVAL;
		/* Without data the end of the request says as much. */
		else if (length && !READ_ONCE(request->error))
			ibchan_cm_reject(request->id, &request->remote.wire,
					 IB_CM_REJ_CONSUMER_DEFINED, data, length);
		ibchan_device_exit(request->dev);
		if (ret)
			return ret;
	}
	ibchan_request_free(request);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_request_reject, IBCHAN_NS);
