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
 * A step that fails breaks the channel, unless the peer has another address: see cm_attempt.c. That
 * tells the peer, if there is one already.
 */
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/uidgid.h>
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
		ibchan_qp_follow_gid(&ch->qp);
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
	ibchan_qp_follow_gid(&ch->qp);
}

static int address_resolved(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;

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
	return ibchan_cm_stepped(cm, rdma_resolve_route(id, cm->stage_ms[IBCHAN_STAGE_ROUTE]));
}

/* The parameters of a request, or of an answer; @kind: IBCHAN_WIRE_*. @param refers to @cm. */
void ibchan_cm_fill_message(struct ibchan_cm *cm, u16 kind, struct rdma_conn_param *param)
{
	const struct ibchan_params *params = &cm->ch->qp.params;

	ibchan_cm_data_head(cm, kind);
	*param = (struct rdma_conn_param){
		.private_data = cm->length ? cm->data : NULL,
		.private_data_len = cm->length,
		.responder_resources = params->max_rd_atomic,
		.initiator_depth = params->max_rd_atomic,
		.flow_control = 1,
		.retry_count = params->ack_retries,
		.rnr_retry_count = params->rnr_retries,
		.qp_num = cm->ch->qp.ib->qp_num,
	};
}

/*
 * Requests over iWARP. The driver may wait for TCP before it sends one: siw does, as long
 * as TCP tries, which are minutes. The connection manager has one worker for the events of
 * all connections, so a thread of the connection's own asks, and a signal ends its wait.
 *
 * Once the request is sent nothing can be done before the answer: the connection manager
 * waits for it without an end when an id is destroyed, and so do a close and the removal of
 * the device. Drivers have an end: siw gives up 10 s after it has sent the request. Where a
 * port mapper runs and does not answer, 10 s more may pass before TCP is asked.
 *
 * A user's limit on processes does not count kernel threads. So a user's channels have at most
 * MAX_ASKERS threads at a time; a further channel waits until one of these threads ends, and
 * its deadline runs meanwhile.
 */

/* Threads of one user. */
#define MAX_ASKERS	32

/* Guards the lists, and @asker and @ask_link of each connection; inside the qp lock. */
static DEFINE_MUTEX(ask_lock);
static LIST_HEAD(asking);
static LIST_HEAD(waiting);

static int ask(void *arg);

static int begin_to_ask(struct ibchan_cm *cm)
{
	struct task_struct *asker = kthread_create(ask, cm, "ibchan_ask");

	if (IS_ERR(asker))
		return PTR_ERR(asker);
	cm->asker = get_task_struct(asker);
	list_move_tail(&cm->ask_link, &asking);
	wake_up_process(asker);
	return 0;
}

/* For a connection that has had a thread. A second call does nothing. */
static void end_asking(struct ibchan_cm *cm)
{
	struct ibchan_cm *other;

	guard(mutex)(&ask_lock);
	if (list_empty(&cm->ask_link))
		return;
	list_del_init(&cm->ask_link);
	/* One that cannot get a thread waits on, as long as its deadline lets it. */
	list_for_each_entry(other, &waiting, ask_link) {
		if (!uid_eq(other->uid, cm->uid))
			continue;
		begin_to_ask(other);
		return;
	}
}

/* The signal comes behind a break or a close of the channel, so it is not missed. */
static int ask(void *arg)
{
	struct rdma_conn_param param;
	struct ibchan_cm *cm = arg;
	int ret = 0;

	/* The channel's end waits for this thread. */
	guard(ibchan_noio)();
	allow_signal(SIGKILL);
	if (is_connecting(cm->ch)) {
		ibchan_cm_fill_message(cm, IBCHAN_WIRE_REQUEST, &param);
		ret = rdma_connect(cm->id, &param);
	}
	/* An interrupted wait has no result that matters. */
	if (is_connecting(cm->ch))
		ibchan_cm_stepped(cm, ret);
	/* A signal that is pending, or comes, would keep the next thread from being made. */
	disallow_signal(SIGKILL);
	/* The close of the channel waits for this thread. */
	end_asking(cm);
	return 0;
}

/*
 * Under the qp lock. 0 when that has begun, or is going to: a failure then breaks the
 * channel. -EAGAIN when there may be no more processes.
 */
static int ask_by_thread(struct ibchan_cm *cm)
{
	const struct ibchan_cm *other;
	u32 num = 0;

	lockdep_assert_held(&cm->ch->qp.lock);
	guard(mutex)(&ask_lock);
	list_for_each_entry(other, &asking, ask_link)
		num += uid_eq(other->uid, cm->uid);
	if (num < MAX_ASKERS)
		return begin_to_ask(cm);
	list_add_tail(&cm->ask_link, &waiting);
	return 0;
}

/* A request over iWARP waits for TCP no longer. Without the qp lock. */
void ibchan_cm_interrupt(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);
	struct task_struct *asker;

	/*
	 * Only iWARP has askers. Its callers create them under ask_lock, which allocates: other
	 * transports do not wait for that lock.
	 */
	if (!cm || !ch->qp.gid.iwarp)
		return;
	scoped_guard(mutex, &ask_lock) {
		asker = cm->asker;
		cm->asker = NULL;
		/* The connection waits for its turn no longer. */
		if (!asker)
			list_del_init(&cm->ask_link);
	}
	if (!asker)
		return;
	send_sig(SIGKILL, asker, 1);
	kthread_stop(asker);
	put_task_struct(asker);
	/* A thread that is stopped before it has begun does nothing. */
	end_asking(cm);
}

static int send_request(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;
	struct rdma_conn_param param;
	int ret;

	guard(ibchan_qp)(&ch->qp);
	if (!is_connecting(ch) || cm->failed)
		return 0;
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
		return ask_by_thread(cm);
	ibchan_cm_fill_message(cm, IBCHAN_WIRE_REQUEST, &param);
	return rdma_connect_locked(id, &param);
}

static void connected(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct ibchan_channel *ch = cm->ch;

	cancel_delayed_work(&cm->deadline);
	WRITE_ONCE(cm->stage, IBCHAN_STAGE_DONE);
	scoped_guard(ibchan_qp, &ch->qp) {
		/* The device may be leaving; then the peer need not be watched any more. */
		CLASS(ibchan_command, inside)(ch->qp.dev);

		ch->peer.qpn = cpu_to_be32(cm->remote.qpn);
		/* On iWARP nothing looks after a peer but TCP. */
		if (!ch->qp.gid.iwarp)
			ch->peer.flags = cm->remote.wire.flags & IBCHAN_WIRE_WRITES;
		rdma_ip2gid((struct sockaddr *)&cm->peer, (union ib_gid *)ch->peer.gid);
		ibchan_history_add(ch, IBCHAN_HISTORY_CONNECTED, 0, cm->remote.qpn,
				   ch->qp.params.mtu);
		if (inside)
			ibchan_watch_begin(ch, &ch->peer);
	}
	if (!ibchan_channel_connected(ch))
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

/* The peer has accepted: the queue pair, then word that it may send. Under the qp lock. */
static int take_answer(struct ibchan_cm *cm, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	int ret;

	if (!is_connecting(cm->ch) || READ_ONCE(cm->failed))
		return -ECANCELED;
	/* No other address is tried. */
	WRITE_ONCE(cm->at, cm->num_others);
	ret = hear_answer(cm, param);
	if (!ret)
		ret = ibchan_qp_cm_connect(&cm->ch->qp, id, NULL,
					   ibchan_cm_wire_mtu(&cm->remote.wire));
	if (ret)
		return ret;
	ibchan_cm_bound_reads(cm->ch);
	cm->ch->connected = 1;
	return rdma_accept(id, NULL);
}

static int answered(struct ibchan_cm *cm, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param)
{
	int ret;

	scoped_guard(ibchan_qp, &cm->ch->qp) {
		ret = take_answer(cm, id, param);
		if (ret)
			rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	}
	if (!ret)
		connected(cm, id);
	return ibchan_cm_stepped(cm, ret);
}

/* On iWARP the asking side hears of the answer and of the connection by one event. */
static int established(struct ibchan_cm *cm, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	int ret;

	scoped_guard(ibchan_qp, &cm->ch->qp) {
		ret = cm->heard ? 0 : hear_answer(cm, param);
		cm->ch->connected = 1;
	}
	/* The end of the channel tells the peer of an error. */
	if (!ret)
		connected(cm, id);
	return ibchan_cm_stepped(cm, ret);
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
	scoped_guard(ibchan_qp, &cm->ch->qp)
		ibchan_cm_data_rejected(cm, &event->param.conn);
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
		return ibchan_cm_stepped(cm, send_request(cm, id));
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
		return ibchan_cm_fail(cm, event->status, plain_error(event->status, -EHOSTUNREACH));
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
		 * ibchan_channel_connect() may still be using the id under this lock.
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
