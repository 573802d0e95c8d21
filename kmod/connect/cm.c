// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections by address: the steps from an IP address to a connected channel, and
 * the end of a connection, by the kernel's connection manager (rdma_cm).
 *
 * The queue pair is ours from the beginning, and the connection manager only says
 * what to set: so a channel is the same whichever way it was connected. The steps
 * run in the handler of the channel's id, under the handler's mutex, with the qp
 * lock inside. They need no gate: before the queue pair is destroyed the id is, and that
 * waits for the handler. Removal keeps this order, too; rdma_cm, whose
 * client is older than ours, sees a device leave later and has no channel's id on it.
 *
 * A step that fails breaks the channel. That tells the peer, if there is one already.
 */
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

/* A negative status is the network's errno; positive ones are codes of the connection manager. */
static int plain_error(int status, int otherwise)
{
	return status < 0 ? status : otherwise;
}

/*
 * A connection has failed, or ended; @cm_error as in struct ibchan_connection. If the peer has
 * another address, that is tried instead. Returns 0.
 */
int ibchan_cm_fail(struct ibchan_cm *cm, int cm_error, int error)
{
	if (ibchan_cm_goes_on(cm, cm_error, error))
		return 0;
	error = ibchan_cm_verdict(cm, &cm_error, error);
	if (is_connecting(cm->ch))
		ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, error, READ_ONCE(cm->stage),
				   (s64)cm_error);
	WRITE_ONCE(cm->cm_error, cm_error);
	cm->over = true;
	ibchan_channel_break(cm->ch, error);
	return 0;
}

/* In the address stage only a neighbour's answer is waited for: without one it is not there. */
static int stage_error(const struct ibchan_cm *cm, int error)
{
	return error == -ETIMEDOUT && READ_ONCE(cm->stage) == IBCHAN_STAGE_ADDRESS ?
	       -EHOSTUNREACH : error;
}

static void deadline_passed(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(to_delayed_work(work), struct ibchan_cm, deadline);
	ktime_t left = ktime_sub(READ_ONCE(cm->stage_end), ktime_get());
	int error = stage_error(cm, -ETIMEDOUT);
	int cm_error = 0;

	/* Ticks that were late when the stage began come at once, and the timer with them. */
	if (left > 0)
		queue_delayed_work(ibchan_wq, &cm->deadline, nsecs_to_jiffies(left) + 1);
	else if (!ibchan_cm_goes_on(cm, 0, error))
		ibchan_channel_give_up(cm->ch, ibchan_cm_verdict(cm, &cm_error, error));
}

/* The stage begins, and its time. */
void ibchan_cm_enter_stage(struct ibchan_cm *cm, u32 stage)
{
	u32 ms = ibchan_cm_stage_ms(cm, stage);

	WRITE_ONCE(cm->stage, stage);
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, 0, stage, 0);
	WRITE_ONCE(cm->stage_end, ktime_add_ms(ktime_get(), ms));
	mod_delayed_work(ibchan_wq, &cm->deadline, msecs_to_jiffies(ms));
}

/* From now on a channel posts only the reads that its peer serves. Under the qp lock. */
void ibchan_cm_bound_reads(struct ibchan_channel *ch)
{
	spin_lock_bh(&ch->post_lock);
	ch->bounds.max_rd_atomic = ch->qp.params.max_rd_atomic;
	spin_unlock_bh(&ch->post_lock);
}

/* The address that a connection has is the channel's. Under the qp lock. */
void ibchan_cm_adopt_gid(struct ibchan_channel *ch, const struct rdma_cm_id *id)
{
	const struct ib_gid_attr *attr = id->route.addr.dev_addr.sgid_attr;

	if (ch->qp.gid.iwarp) {
		ch->qp.gid.port = id->port_num;
		ch->qp.params.port = id->port_num;
		return;
	}
	/* The queue pair has done so: see ibchan_qp_cm_init(). */
	if (rdma_protocol_ib(id->device, id->port_num)) {
		ch->gid_gone = false;
		return;
	}
	if (!attr || ibchan_gid_adopt(&ch->qp.gid, id->port_num, attr))
		return;
	if (ch->gid_gone)
		ibchan_history_address(ch, 0);
	ch->gid_gone = false;
	ibchan_qp_choose_mtu(&ch->qp);
	ch->qp.params.port = ch->qp.gid.port;
	ch->qp.params.gid_index = ch->qp.gid.index;
}

static int address_resolved(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;
	int ret;

	if (id->device != ch->qp.dev->ib) {
		ibchan_cm_fail(cm, 0, -EXDEV);
		/* The id must not wait for its owner. Nothing of @cm is touched after this. */
		return !!ibchan_cm_take_id(&cm->id);
	}
	cm->local = id->route.addr.src_addr;
	cm->peer = id->route.addr.dst_addr;
	if (ch->qp.params.traffic_class)
		rdma_set_service_type(id, ch->qp.params.traffic_class);
	ibchan_cm_enter_stage(cm, IBCHAN_STAGE_ROUTE);
	ret = rdma_resolve_route(id, cm->stage_ms[IBCHAN_STAGE_ROUTE]);
	return ret ? ibchan_cm_fail(cm, ret, ret) : 0;
}

/* @param refers to @cm. */
void ibchan_cm_fill_request(const struct ibchan_cm *cm, struct rdma_conn_param *param)
{
	const struct ibchan_channel *ch = cm->ch;

	*param = (struct rdma_conn_param){
		.private_data = cm->length ? cm->data : NULL,
		.private_data_len = cm->length,
		.responder_resources = ch->qp.params.max_rd_atomic,
		.initiator_depth = ch->qp.params.max_rd_atomic,
		.flow_control = 1,
		.retry_count = ch->qp.params.ack_retries,
		.rnr_retry_count = ch->qp.params.rnr_retries,
		.qp_num = ch->qp.ib->qp_num,
	};
}

static int send_request(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;
	struct rdma_conn_param param;
	int ret;

	ret = ibchan_qp_cm_init(&ch->qp, id);
	if (ret)
		return ret;
	ibchan_cm_adopt_gid(ch, id);
	/* A packet may not be longer than this side takes, which the peer has to know. */
	if (id->route.path_rec)
		id->route.path_rec->mtu = min_t(u8, id->route.path_rec->mtu,
						ib_mtu_int_to_enum(ch->qp.params.mtu));
	ibchan_cm_enter_stage(cm, IBCHAN_STAGE_REQUEST);
	if (ch->qp.gid.iwarp)
		return ibchan_cm_ask(cm);
	ibchan_cm_fill_request(cm, &param);
	return rdma_connect_locked(id, &param);
}

static int route_resolved(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;
	int ret = 0;

	ibchan_qp_lock(&ch->qp);
	if (is_connecting(ch) && !cm->failed)
		ret = send_request(cm, id);
	ibchan_qp_unlock(&ch->qp);
	return ret ? ibchan_cm_fail(cm, ret, ret) : 0;
}

static void meet_peer(struct ibchan_cm *cm)
{
	struct ibchan_channel *ch = cm->ch;

	guard(ibchan_qp)(&ch->qp);
	ch->peer.qpn = cpu_to_be32(cm->remote.qpn);
	/* On iWARP nothing looks after a peer but TCP. */
	if (!ch->qp.gid.iwarp)
		ch->peer.flags = cm->remote.wire.flags & IBCHAN_WIRE_WRITES;
	rdma_ip2gid((struct sockaddr *)&cm->peer, (union ib_gid *)ch->peer.gid);
	ibchan_history_add(ch, IBCHAN_HISTORY_CONNECTED, 0, cm->remote.qpn, ch->qp.params.mtu);
	/* The device may be leaving; then the peer need not be watched any more. */
	if (ibchan_device_enter(ch->qp.dev))
		return;
	ibchan_watch_begin(ch, &ch->peer);
	ibchan_device_exit(ch->qp.dev);
}

static void connected(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	cancel_delayed_work(&cm->deadline);
	WRITE_ONCE(cm->stage, IBCHAN_STAGE_DONE);
	meet_peer(cm);
	if (!ibchan_channel_connected(cm->ch))
		/* Broken meanwhile: the peer has to know. */
		rdma_disconnect(id);
}

/* Keeps the parameters of an answer, which a peer has to be allowed. Under the qp lock. */
static int hear_answer(struct ibchan_cm *cm, const struct rdma_conn_param *param)
{
	struct ibchan_cm_peer *remote = &cm->remote;

	if (!cm->plain)
		ibchan_cm_data_wire(param, IBCHAN_WIRE_ANSWER, &remote->wire);
	remote->qpn = param->qp_num;
	cm->length = ibchan_cm_data_take(param, &remote->wire, cm->data);
	cm->heard = true;
	return ibchan_cm_data_check(&remote->wire, cm->plain, NULL);
}

/* The peer has accepted: the queue pair, then word that it may send. */
static int take_answer(struct ibchan_cm *cm, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	int ret = hear_answer(cm, param);

	if (!ret)
		ret = ibchan_qp_cm_connect(&cm->ch->qp, id, NULL,
					   ibchan_cm_wire_mtu(&cm->remote.wire));
	if (ret) {
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		return ret;
	}
	ibchan_cm_bound_reads(cm->ch);
	cm->ch->connected = 1;
	return rdma_accept(id, NULL);
}

static int answered(struct ibchan_cm *cm, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param)
{
	struct ibchan_channel *ch = cm->ch;
	int ret = -ECANCELED;

	ibchan_qp_lock(&ch->qp);
	if (is_connecting(ch) && !READ_ONCE(cm->failed)) {
		/* No other address is tried. */
		WRITE_ONCE(cm->next, cm->num_others);
		ret = take_answer(cm, id, param);
	} else {
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	}
	ibchan_qp_unlock(&ch->qp);
	if (ret)
		return ibchan_cm_fail(cm, ret, ret);
	connected(cm, id);
	return 0;
}

/* On iWARP the asking side hears of the answer and of the connection by one event. */
static int established(struct ibchan_cm *cm, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	struct ibchan_channel *ch = cm->ch;
	int ret = 0;

	ibchan_qp_lock(&ch->qp);
	if (!cm->heard)
		ret = hear_answer(cm, param);
	ch->connected = 1;
	ibchan_qp_unlock(&ch->qp);
	/* The end of the channel tells the peer. */
	if (ret)
		return ibchan_cm_fail(cm, ret, ret);
	connected(cm, id);
	return 0;
}

static int reject_error(const struct ibchan_cm *cm, const struct rdma_cm_event *event)
{
	switch (event->status) {
	case IB_CM_REJ_INVALID_SERVICE_ID:
		return -ECONNREFUSED;
	case IB_CM_REJ_INVALID_MTU:
		return -EMSGSIZE;
	case IB_CM_REJ_CONSUMER_DEFINED:
		/*
		 * The connection manager rejects a request without data where nobody listens at
		 * its address. A rejected answer says nothing of that.
		 */
		return READ_ONCE(cm->stage) == IBCHAN_STAGE_REQUEST &&
		       ibchan_cm_data_none(&event->param.conn) ? -ECONNREFUSED : -ECONNRESET;
	default:
		return plain_error(event->status, -ECONNRESET);
	}
}

static int rejected(struct ibchan_cm *cm, const struct rdma_cm_event *event)
{
	int error = reject_error(cm, event);

	if (event->status == IB_CM_REJ_STALE_CONN && ibchan_cm_asks_again(cm))
		return 0;
	if (ibchan_cm_goes_on(cm, event->status, error))
		return 0;
	ibchan_qp_lock(&cm->ch->qp);
	ibchan_cm_data_rejected(cm, &event->param.conn);
	ibchan_qp_unlock(&cm->ch->qp);
	return ibchan_cm_fail(cm, event->status, error);
}

/*
 * Another neighbour entry, or another device below a bond, need not be the end of a
 * connection: the peer's answer to a question tells.
 */
static int way_changed(struct ibchan_cm *cm, u32 from_here)
{
	if (READ_ONCE(cm->ch->state) != IBCHAN_CHANNEL_CONNECTED)
		return 0;
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_WAY_CHANGED, 0, from_here, 0);
	ibchan_watch_doubt(cm->ch);
	return 0;
}

/* Under the handler's mutex of @id. Returns 1 when @id is to be destroyed, else 0. */
int ibchan_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ibchan_cm *cm = id->context;

	if (READ_ONCE(cm->failed) && event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return address_resolved(cm, id);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return route_resolved(cm, id);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return answered(cm, id, &event->param.conn);
	case RDMA_CM_EVENT_ESTABLISHED:
		return established(cm, id, &event->param.conn);
	case RDMA_CM_EVENT_REJECTED:
		return rejected(cm, event);
	case RDMA_CM_EVENT_UNREACHABLE:
		/* Behind a connection, this is a neighbour's new hardware address. */
		if (READ_ONCE(cm->stage) == IBCHAN_STAGE_DONE)
			return way_changed(cm, 0);
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return ibchan_cm_fail(cm, event->status,
				      stage_error(cm, plain_error(event->status, -EHOSTUNREACH)));
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return way_changed(cm, 1);
	case RDMA_CM_EVENT_DISCONNECTED:
		/* The answer to this side's own word of the end is nothing that happened. */
		if (READ_ONCE(cm->ch->state) < IBCHAN_CHANNEL_BROKEN)
			ibchan_history_add(cm->ch, IBCHAN_HISTORY_DISCONNECTED, 0, 0, 0);
		return ibchan_cm_fail(cm, 0, -ECONNRESET);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/*
		 * It is not the channel's device: removal of that has destroyed the id before.
		 * begin_connect() may still be using the id under this lock.
		 */
		ibchan_qp_lock(&cm->ch->qp);
		ibchan_qp_unlock(&cm->ch->qp);
		ibchan_cm_fail(cm, 0, -ENODEV);
		/* As in address_resolved(). */
		return !!ibchan_cm_take_id(&cm->id);
	default:
		return 0;
	}
}

static int fill_times(struct ibchan_cm *cm, const struct ibchan_connect *connect,
		      struct ibchan_reason *reason)
{
	u32 *times = cm->stage_ms, stage;

	times[IBCHAN_STAGE_ADDRESS] = connect->address_ms ?: IBCHAN_DEFAULT_ADDRESS_MS;
	times[IBCHAN_STAGE_ROUTE] = connect->route_ms ?: IBCHAN_DEFAULT_ROUTE_MS;
	times[IBCHAN_STAGE_REQUEST] = connect->connect_ms ?: IBCHAN_DEFAULT_CONNECT_MS;
	times[IBCHAN_STAGE_ACCEPT] = connect->connect_ms ?: IBCHAN_DEFAULT_ACCEPT_MS;
	for (stage = IBCHAN_STAGE_ADDRESS; stage <= IBCHAN_STAGE_ACCEPT; stage++)
		if (times[stage] > IBCHAN_MAX_STAGE_MS)
			return ibchan_refuse_values(reason, IBCHAN_REASON_STAGE_TIME, -EINVAL,
						    (u64[3]) { times[stage], IBCHAN_MAX_STAGE_MS });
	return 0;
}

/*
 * The datagram by which the asking peer says that it is connected may be lost while its messages
 * arrive. The first of them that retires a receive ends the wait for that datagram, and so does a
 * device that reports the first message of a queue pair in RTS: rdma_notify() takes either in its
 * place.
 */
static void heard_work(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(work, struct ibchan_cm, heard_work);
	struct rdma_cm_id *id = READ_ONCE(cm->id);

	if (id && READ_ONCE(cm->stage) == IBCHAN_STAGE_ACCEPT)
		rdma_notify(id, IB_EVENT_COMM_EST);
}

/* The connection has no id yet; cm_end.c frees it. -EINVAL for a time that is too long. */
struct ibchan_cm *ibchan_cm_create(struct ibchan_channel *ch, const struct ibchan_connect *connect,
				   struct ibchan_reason *reason)
{
	struct ibchan_cm *cm = kzalloc(struct_size(cm, others, connect->num_others),
				       GFP_KERNEL_ACCOUNT);
	int ret;

	if (!cm)
		return ERR_PTR(-ENOMEM);
	cm->ch = ch;
	cm->uid = current_uid();
	INIT_LIST_HEAD(&cm->ask_link);
	INIT_DELAYED_WORK(&cm->deadline, deadline_passed);
	INIT_WORK(&cm->heard_work, heard_work);
	cm->plain = connect->flags & IBCHAN_CONNECT_FOREIGN;
	ibchan_cm_again_init(cm, connect);
	ret = fill_times(cm, connect, reason);
	if (ret) {
		kfree(cm);
		return ERR_PTR(ret);
	}
	ibchan_cm_data_fill(cm, connect->data, connect->length);
	return cm;
}

/* The connection is the channel's from now on. Under the qp lock. -EISCONN; -ESHUTDOWN. */
int ibchan_cm_begin(struct ibchan_cm *cm, u32 stage, struct ibchan_reason *reason)
{
	struct ibchan_channel *ch = cm->ch;
	int ret;

	lockdep_assert_held(&ch->qp.lock);
	ret = ibchan_channel_begin(ch, reason);
	if (ret)
		return ret;
	/* A poster that sees the connection may post receives. */
	WRITE_ONCE(ch->cm, cm);
	ibchan_cm_enter_stage(cm, stage);
	return 0;
}
