// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue pair: create, connect, end, destroy. All verbs on an ib_qp are here,
 * but the verbs that post, which are in post.h.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>

#include "private.h"

/* 67 ms and 8.6 s for a try, so a minute at most for all of them. */
#define ACK_TIMEOUT_LEAST	14
#define ACK_TIMEOUT_MOST	21

/* Steps of a handshake, for IBCHAN_REASON_VERBS. */
enum qp_step { STEP_CREATE, STEP_INIT, STEP_RTR, STEP_RTS };

static int refuse_step(struct ibchan_reason *reason, enum qp_step step, int error)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_VERBS, error, (u64[3]) { -error, step });
}

/*
 * Keeps what a queue pair is made of; its memory has just been cleared. @event is called with the
 * device's events of it, and with @qp as the context; @state is that of its channel.
 */
void ibchan_qp_setup(struct ibchan_qp *qp, const struct ibchan_build *build,
		     const struct ibchan_params *params,
		     void (*event)(struct ib_event *event, void *context), const u32 *state)
{
	mutex_init(&qp->lock);
	qp->event = event;
	qp->state = state;
	qp->dev = build->pd->dev;
	qp->pd = build->pd;
	qp->net = build->net;
	qp->send_cq = build->send_cq;
	qp->recv_cq = build->recv_cq;
	qp->params = *params;
	qp->wanted_mtu = params->mtu;
	qp->ack_by_cm = params->ack_timeout == IBCHAN_AUTO;
}

/* The parameters that follow from the address which the queue pair has now. */
void ibchan_qp_follow_gid(struct ibchan_qp *qp)
{
	qp->params.mtu = min_not_zero(qp->wanted_mtu, qp->gid.mtu);
	qp->params.port = qp->gid.port;
	qp->params.gid_index = qp->gid.index;
}

/* Chooses what was left to us, within the port's limits. @alone: it is to be its own peer. */
int ibchan_qp_choose(struct ibchan_qp *qp, bool alone, struct ibchan_reason *reason)
{
	struct ibchan_params *params = &qp->params;
	/* A builder that leaves the address to the rule, or to a connection, knows but the port. */
	bool named = params->gid_index < IBCHAN_AUTO_IPV6;
	int ret = ibchan_gid_choose(qp->dev->ib, qp->net, alone ? NULL : params, &qp->gid, reason);
	u32 most;

	if (ret)
		return ret;
	most = named ? qp->gid.mtu : qp->gid.port_mtu;
	if (params->mtu > most)
		return ibchan_refuse_values(reason, IBCHAN_REASON_MTU_ABOVE_PORT, -EINVAL,
					    (u64[3]) { params->mtu, most });
	ibchan_qp_follow_gid(qp);
	if (params->send_psn == IBCHAN_AUTO)
		params->send_psn = get_random_u32() & 0xffffff;
	ibchan_params_choose(params, &qp->dev->attr);
	return 0;
}

/*
 * @given: bytes of inline data that the device says it takes. Drivers have no attribute for that
 * limit. Their answer for a queue pair that was made is the truth, and the largest of these is
 * shown as the device's; whether it takes more is not known until a caller asks for more. A refusal
 * is never remembered: it may come from another part of the request, or from a lack of memory, and
 * would let one user decide what another may have.
 */
static int qp_make(struct ibchan_qp *qp, u32 max_inline, u32 *given)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp->event,
		.qp_context = qp,
		.send_cq = qp->send_cq->ib,
		.recv_cq = qp->recv_cq->ib,
		.cap = {
			.max_send_wr = qp->params.max_send_wr + IBCHAN_MARKERS,
			.max_recv_wr = qp->params.max_recv_wr + IBCHAN_MARKERS,
			.max_send_sge = qp->params.max_send_sge,
			.max_recv_sge = qp->params.max_recv_sge,
			.max_inline_data = max_inline,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = qp->gid.port,
	};
	u32 known = READ_ONCE(qp->dev->max_inline);
	struct ib_qp *ib;

	ib = ibchan_fault_ptr(IBCHAN_FAULT_QP_CREATE) ?: ib_create_qp(qp->pd->ib, &attr);
	/* No memory for a socket, which soft-RoCE has for each. */
	if (ib == ERR_PTR(-ENFILE))
		return -ENOMEM;
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	qp->ib = ib;
	*given = attr.cap.max_inline_data;
	while (known == IBCHAN_AUTO || known < *given)
		if (try_cmpxchg(&qp->dev->max_inline, &known, *given))
			break;
	return 0;
}

static int refuse_inline(const struct ibchan_qp *qp, u32 most, struct ibchan_reason *reason)
{
	return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_MAX_INLINE_DATA,
				       qp->params.max_inline_data, 0, most);
}

/* A queue pair that is as the channel's should be but for @bytes, and ends at once. */
static int qp_try(struct ibchan_qp *qp, u32 bytes, u32 *given)
{
	return qp_make(qp, bytes, given) ?: ibchan_qp_destroy(qp);
}

/*
 * The device has refused to make @qp, with -EINVAL. Returns -EINVAL, and the most that the device
 * takes in @reason, if that was for its inline data, else 0. A device that does not let go of a
 * queue pair that was made to find out leaves it to @qp.
 */
static int find_inline(struct ibchan_qp *qp, struct ibchan_reason *reason)
{
	u32 refused = qp->params.max_inline_data;
	u32 most, given, middle;
	int ret;

	if (qp_try(qp, 0, &most))
		return 0;
	most = min(most, refused - 1);
	while (refused - most > 1) {
		middle = most + (refused - most) / 2;
		ret = qp_try(qp, middle, &given);
		if (ret && (ret != -EINVAL || qp->ib))
			break;
		if (!ret && given >= middle)
			most = min(given, refused - 1);
		else
			refused = middle;
	}
	return refuse_inline(qp, most, reason);
}

/*
 * The queue pair takes receives from now on. The qp lock is held once others know of the channel.
 */
static int qp_init(struct ibchan_qp *qp, struct ibchan_reason *reason)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.pkey_index = qp->gid.pkey_index,
		.port_num = qp->gid.port,
		.qp_access_flags = qp->params.access,
	};
	int ret = ibchan_fault(IBCHAN_FAULT_QP_INIT) ?:
		  ib_modify_qp(qp->ib, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			       IB_QP_ACCESS_FLAGS);

	if (ret)
		return refuse_step(reason, STEP_INIT, ret);
	WRITE_ONCE(qp->ready, 1);
	return 0;
}

/*
 * Makes the queue pair and its endpoint: in INIT, so that receives can be posted without a peer.
 * Where this fails and leaves @qp a queue pair, the caller destroys that. -EINVAL for more inline
 * data than the device takes.
 */
int ibchan_qp_create(struct ibchan_qp *qp, struct ibchan_reason *reason)
{
	u32 asked = qp->params.max_inline_data;
	u32 given;
	int ret = qp_make(qp, asked, &given);

	if (ret == -EINVAL && asked && find_inline(qp, reason))
		return ret;
	if (ret)
		return refuse_step(reason, STEP_CREATE, ret);
	/* Some drivers take any number and then less data, or none. */
	if (given < asked)
		return refuse_inline(qp, given, reason);
	ibchan_endpoint_build(&qp->endpoint, &qp->gid, &qp->params, qp->ib->qp_num);
	return qp_init(qp, reason);
}

/* The core resolves nothing for kernel users: route.c has. */
static void fill_address(struct ibchan_qp *qp, const struct ibchan_endpoint *peer,
			 struct rdma_ah_attr *ah)
{
	ah->type = rdma_ah_find_type(qp->ib->device, qp->gid.port);
	rdma_ah_set_port_num(ah, qp->gid.port);
	rdma_ah_set_sl(ah, qp->params.service_level);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(ah->roce.dmac, qp->path.dmac, sizeof(ah->roce.dmac));
	else
		rdma_ah_set_dlid(ah, be32_to_cpu(peer->lid));
	/* Virtual ports of InfiniBand share a LID and are told apart by their GIDs only. */
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE || qp->gid.grh ||
	    peer->flags & IBCHAN_ENDPOINT_GRH) {
		rdma_ah_set_grh(ah, NULL, 0, qp->gid.index, qp->path.hop_limit,
				qp->params.traffic_class);
		rdma_ah_set_dgid_raw(ah, (void *)peer->gid);
	}
}

static int move(struct ibchan_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp->ib, &attr, IB_QP_STATE);
}

int ibchan_qp_to_reset(struct ibchan_qp *qp)
{
	int ret = ibchan_fault(IBCHAN_FAULT_QP_RESET) ?: move(qp, IB_QPS_RESET);

	if (!ret && ibchan_device_has(qp->dev, IBCHAN_QUIRK_RESET_KEEPS_PACKET)) {
		get_state_synchronize_rcu_full(&qp->reset_at);
		qp->may_keep = true;
	}
	return ret;
}

/*
 * The queue pair has not been connected since it came to RESET. Channels that were reset before the
 * first of them ends wait for one grace period together.
 */
static void let_packets_go(struct ibchan_qp *qp)
{
	if (!qp->may_keep)
		return;
	cond_synchronize_rcu_expedited_full(&qp->reset_at);
	move(qp, IB_QPS_RESET);
	qp->may_keep = false;
}

/*
 * Undoes a handshake that has failed, while nothing is posted and no call posts. If that fails,
 * the next handshake fails, too, and tries again to undo it; closing works in any case.
 */
void ibchan_qp_rewind(struct ibchan_qp *qp)
{
	WRITE_ONCE(qp->ready, 0);
	if (ibchan_qp_to_reset(qp))
		return;
	let_packets_go(qp);
	qp_init(qp, NULL);
}

/* From INIT through RTR to RTS, with the agreed parameters in place, under the qp lock. */
int ibchan_qp_connect(struct ibchan_qp *qp, const struct ibchan_endpoint *peer,
		      struct ibchan_reason *reason)
{
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = ib_mtu_int_to_enum(qp->params.mtu),
		.dest_qp_num = be32_to_cpu(peer->qpn),
		.rq_psn = qp->params.recv_psn,
		.max_dest_rd_atomic = qp->endpoint.max_dest_rd_atomic,
		.min_rnr_timer = qp->params.min_rnr_timer,
	};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS,
		.timeout = qp->params.ack_timeout,
		.retry_cnt = qp->params.ack_retries,
		.rnr_retry = qp->params.rnr_retries,
		.max_rd_atomic = qp->params.max_rd_atomic,
		.sq_psn = qp->params.send_psn,
	};
	int ret = qp->ready ? 0 : qp_init(qp, reason);

	if (ret)
		return ret;
	fill_address(qp, peer, &rtr.ah_attr);
	ret = ibchan_fault(IBCHAN_FAULT_QP_RTR) ?:
	      ib_modify_qp(qp->ib, &rtr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (ret)
		return refuse_step(reason, STEP_RTR, ret);
	ret = ibchan_fault(IBCHAN_FAULT_QP_RTS) ?:
	      ib_modify_qp(qp->ib, &rts, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			   IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_SQ_PSN);
	return ret ? refuse_step(reason, STEP_RTS, ret) : 0;
}

/*
 * An iWARP device goes from INIT on by itself. The ack time-out the connection manager computes of
 * what the path takes and the devices need to answer. On the accepting side it is the peer's word,
 * which neither lets this side wait for hours nor has it repeat a message each few microseconds.
 */
static int modify_by_cm(struct ibchan_qp *qp, struct rdma_cm_id *id,
			struct ib_qp_attr *attr, int *mask)
{
	const struct ibchan_params *params = &qp->params;
	int ret = ibchan_cm_refusal(rdma_init_qp_attr(id, attr, mask));

	if (ret)
		return ret;
	/* The builder's wishes count, up to the most that this side takes. */
	attr->qp_access_flags = params->access;
	attr->min_rnr_timer = params->min_rnr_timer;
	attr->timeout = !qp->ack_by_cm ? params->ack_timeout :
			clamp_t(u8, attr->timeout, ACK_TIMEOUT_LEAST, ACK_TIMEOUT_MOST);
	attr->retry_cnt = params->ack_retries;
	attr->rnr_retry = params->rnr_retries;
	if (*mask & IB_QP_AV && params->service_level)
		rdma_ah_set_sl(&attr->ah_attr, params->service_level);
	if (*mask & IB_QP_AV && params->traffic_class)
		attr->ah_attr.grh.traffic_class = params->traffic_class;
	return 0;
}

/* The queue pair goes where the connection manager says. Under the qp lock. */
int ibchan_qp_cm_init(struct ibchan_qp *qp, struct rdma_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int mask, ret;

	/* As it was built. */
	if (id->port_num == qp->gid.port && !rdma_protocol_ib(id->device, id->port_num))
		return 0;
	ret = modify_by_cm(qp, id, &attr, &mask);
	if (!ret)
		ret = ib_modify_qp(qp->ib, &attr, mask);
	if (ret || !rdma_protocol_ib(id->device, id->port_num))
		return ret;
	ret = ibchan_gid_adopt_port(id->device, &qp->gid, id->port_num, attr.pkey_index);
	ibchan_qp_follow_gid(qp);
	return ret;
}

/*
 * To RTS, as the connection manager says. @agreed: reads and atomics, on the accepting side; NULL:
 * as the peer has answered. @mtu: of the shorter packets that the two sides agreed on; 0: they did
 * not. -EMSGSIZE when the peer sends longer packets than this side takes; -ECONNRESET when it has
 * given up.
 */
int ibchan_qp_cm_connect(struct ibchan_qp *qp, struct rdma_cm_id *id,
			 const struct rdma_conn_param *agreed, u32 mtu)
{
	struct ib_qp_attr rtr = { .qp_state = IB_QPS_RTR };
	struct ib_qp_attr rts = { .qp_state = IB_QPS_RTS };
	int mask, ret;

	ret = modify_by_cm(qp, id, &rtr, &mask);
	if (ret)
		return ret;
	if (mtu)
		rtr.path_mtu = min(rtr.path_mtu, ib_mtu_int_to_enum(mtu));
	/*
	 * Longer packets than it was made for would end this side's queue pair; a peer may also
	 * ask for a length that is none.
	 */
	if (rtr.path_mtu < IB_MTU_256 || rtr.path_mtu > ib_mtu_int_to_enum(qp->params.mtu))
		return -EMSGSIZE;
	rtr.max_dest_rd_atomic = agreed ? agreed->responder_resources :
				 min_t(u32, rtr.max_dest_rd_atomic, qp->params.max_rd_atomic);
	ret = ibchan_fault(IBCHAN_FAULT_QP_RTR) ?: ib_modify_qp(qp->ib, &rtr, mask);
	if (!ret)
		ret = modify_by_cm(qp, id, &rts, &mask);
	if (ret)
		return ret;
	/* This side's own wish bounds the peer's offer. */
	rts.max_rd_atomic = agreed ? agreed->initiator_depth :
			    min_t(u32, rts.max_rd_atomic, qp->params.max_rd_atomic);
	ret = ibchan_fault(IBCHAN_FAULT_QP_RTS) ?: ib_modify_qp(qp->ib, &rts, mask);
	if (ret)
		return ret;
	qp->params.mtu = ib_mtu_enum_to_int(rtr.path_mtu);
	qp->params.recv_psn = rtr.rq_psn;
	qp->params.send_psn = rts.sq_psn;
	qp->params.ack_timeout = rts.timeout;
	qp->params.max_rd_atomic = rts.max_rd_atomic;
	return 0;
}

/* Has the device ended a queue pair by itself? Under the qp lock. */
bool ibchan_qp_has_failed(struct ibchan_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};

	return !ib_query_qp(qp->ib, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_ERR;
}

/*
 * Reads which retries and times the device uses. A driver that cannot say leaves @params as they
 * are, and so does a queue pair that has not come to RTS, where it takes the last of them.
 */
void ibchan_qp_ask(struct ibchan_qp *qp, struct ibchan_params *params)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	int mask = IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
		   IB_QP_MIN_RNR_TIMER;

	if (ib_query_qp(qp->ib, &attr, mask, &init) || attr.qp_state != IB_QPS_RTS)
		return;
	params->ack_timeout = attr.timeout;
	params->ack_retries = attr.retry_cnt;
	params->rnr_retries = attr.rnr_retry;
	params->min_rnr_timer = attr.min_rnr_timer;
}

/* The device flushes what is posted. */
void ibchan_qp_to_error(struct ibchan_qp *qp)
{
	/* It fails only where the device has put the qp there already. */
	if (!ibchan_fault(IBCHAN_FAULT_QP_ERR))
		move(qp, IB_QPS_ERR);
}

/*
 * Ends all access of the device to the memory of works in flight. On an error the device may still
 * use everything.
 */
int ibchan_qp_destroy(struct ibchan_qp *qp)
{
	int ret = ibchan_fault(IBCHAN_FAULT_QP_DESTROY);
	unsigned int tries = 0;

	let_packets_go(qp);
	if (!ret)
		do {
			ret = ib_destroy_qp(qp->ib);
		} while (ibchan_device_insist(qp->dev, ret, &tries));
	if (!ret)
		qp->ib = NULL;
	return ret;
}

/* The device may use the queue pair further, so what it refers to stays. */
void ibchan_qp_leak(struct ibchan_qp *qp)
{
	qp->pd->leaked = 1;
	set_bit(CQ_ORPHANED, &qp->send_cq->flags);
	set_bit(CQ_ORPHANED, &qp->recv_cq->flags);
}
