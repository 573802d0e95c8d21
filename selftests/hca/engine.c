// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device does with posted works: see hca.h. Each queue pair's works run in order, in
 * a worker of its own; those of different queue pairs run as the scheduler has it, and as late
 * as the parameters delay_us and jitter_us say.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>

#include "hca.h"

/* What a work may come to besides an ib_wc_status, which it has ended with. */
enum { MORE_TO_MOVE = -1, NO_RECEIVE = -2, NO_ANSWER = -3, STUCK = -4 };

/* --- completions --- */

struct hca_wqe *hca_queue_next(struct hca_queue *queue)
{
	return queue->done != queue->posted ? &queue->ring[queue->done % queue->size] : NULL;
}

static void push(struct hca_qp *qp, const struct hca_wqe *wqe, struct ib_wc *wc, bool is_send,
		 bool solicited)
{
	struct hca_cqe cqe = { .qp = qp, .slot = wqe->slot, .is_send = is_send };

	wc->wr_id = wqe->wr_id;
	wc->qp = &qp->ib;
	wc->port_num = qp->attr.port_num;
	cqe.wc = *wc;
	hca_cq_push(to_hca_cq(is_send ? qp->init.send_cq : qp->init.recv_cq), &cqe,
		    solicited || wc->status);
}

static enum ib_wc_opcode wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* A work of the send queue has ended. */
static void complete_send(struct hca_qp *qp, enum ib_wc_status status)
{
	struct hca_wqe *wqe = hca_queue_next(&qp->sq);
	struct ib_wc wc = {
		.status = status,
		.opcode = wc_opcode(wqe->opcode),
		.byte_len = wqe->length,
	};

	qp->sq.done++;
	if (status || wqe->flags & IB_SEND_SIGNALED || qp->init.sq_sig_type == IB_SIGNAL_ALL_WR)
		push(qp, wqe, &wc, true, false);
}

/**
 * hca_complete_recv - the next receive of a queue pair has ended
 * @qp: whose
 * @wc: how, but for what the receive knows itself
 * @solicited: the sender asked for an event
 *
 * Context: under the lock.
 */
void hca_complete_recv(struct hca_qp *qp, struct ib_wc *wc, bool solicited)
{
	struct hca_queue *queue = hca_recv_queue(qp);
	struct hca_wqe *wqe = hca_queue_next(queue);

	queue->done++;
	push(qp, wqe, wc, false, solicited);
	hca_srq_taken(qp);
}

static void flush(struct hca_qp *qp)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV };

	while (hca_queue_next(&qp->sq))
		complete_send(qp, IB_WC_WR_FLUSH_ERR);
	while (!qp->init.srq && hca_queue_next(&qp->rq))
		hca_complete_recv(qp, &wc, false);
	if (qp->init.srq && !qp->took_last) {
		qp->took_last = true;
		hca_qp_tell(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* The device ends a queue pair by itself, because of what the peer has asked for. */
static void fail_responder(struct hca_qp *qp, enum ib_event_type event)
{
	qp->state = IB_QPS_ERR;
	hca_qp_tell(qp, event);
	mod_delayed_work(hca_wq, &qp->work, 0);
}

/* --- the way to the peer --- */

struct hca_port *hca_port_of(const struct hca_qp *qp)
{
	return &to_hca(qp->ib.device)->ports[(qp->attr.port_num ?: 1) - 1];
}

bool hca_port_is_up(const struct hca_port *port)
{
	return port->ndev ? netif_running(port->ndev) && netif_carrier_ok(port->ndev) : port->lid;
}

static bool has_gid(const struct hca_port *port, const union ib_gid *gid)
{
	int i;

	for (i = 0; i < HCA_GIDS; i++)
		if (!memcmp(&port->gids[i], gid, sizeof(*gid)))
			return true;
	return false;
}

/* Does a packet with this address come in at a port? */
static bool reaches(const struct hca_port *port, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	if (!hca_port_is_up(port))
		return false;
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		return port->ndev && ether_addr_equal(ah->roce.dmac, port->ndev->dev_addr) &&
		       has_gid(port, &grh->dgid);
	return port->lid == rdma_ah_get_dlid(ah) &&
	       (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH) || has_gid(port, &grh->dgid));
}

/* Both name the same partition, and one of them is a full member. */
static bool partitions_match(u16 a, u16 b)
{
	return !((a ^ b) & 0x7fff) && ((a | b) & 0x8000);
}

static bool takes_packets_of(const struct hca_qp *peer, const struct hca_qp *qp, u32 port)
{
	return peer && peer->attr.port_num == port &&
	       (peer->state == IB_QPS_RTR || peer->state == IB_QPS_RTS) &&
	       peer->attr.dest_qp_num == qp->ib.qp_num &&
	       peer->attr.rq_psn == qp->attr.sq_psn &&
	       partitions_match(hca_port_of(peer)->pkeys[peer->attr.pkey_index],
				hca_port_of(qp)->pkeys[qp->attr.pkey_index]);
}

static struct hca_qp *find_peer(const struct hca_qp *qp)
{
	struct hca_device *hca;
	struct hca_qp *peer;
	u32 port;

	if (!hca_port_is_up(hca_port_of(qp)))
		return NULL;
	list_for_each_entry(hca, &hca_devices, link)
		for (port = 1; port <= hca->ib.phys_port_cnt; port++) {
			if (!reaches(&hca->ports[port - 1], &qp->attr.ah_attr))
				continue;
			peer = xa_load(&hca->qps, qp->attr.dest_qp_num);
			return takes_packets_of(peer, qp, port) ? peer : NULL;
		}
	return NULL;
}

/* --- what a work does --- */

static void local_cursor(struct hca_cursor *cursor, const struct hca_qp *qp, struct hca_wqe *wqe,
			 u32 skip)
{
	*cursor = (struct hca_cursor) {
		.hca = to_hca(qp->ib.device),
		.pd = qp->ib.pd,
		.sge = wqe->sge,
		.num = wqe->num_sge,
		.data = wqe->flags & IB_SEND_INLINE ? wqe->data : NULL,
	};
	hca_advance(cursor, skip);
}

/* @sge: has to live as long as the cursor. */
static void remote_cursor(struct hca_cursor *cursor, const struct hca_qp *peer,
			  const struct hca_wqe *wqe, struct ib_sge *sge, int access)
{
	*sge = (struct ib_sge) {
		.addr = wqe->remote + wqe->moved,
		.length = wqe->length - wqe->moved,
		.lkey = wqe->rkey,
	};
	*cursor = (struct hca_cursor) {
		.hca = to_hca(peer->ib.device),
		.pd = peer->ib.pd,
		.sge = sge,
		.num = 1,
		.remote_access = access,
	};
}

static int refuse_access(struct hca_qp *peer)
{
	fail_responder(peer, IB_EVENT_QP_ACCESS_ERR);
	return IB_WC_REM_ACCESS_ERR;
}

static int refuse_request(struct hca_qp *peer)
{
	fail_responder(peer, IB_EVENT_QP_REQ_ERR);
	return IB_WC_REM_INV_REQ_ERR;
}

/* Tells the peer of a message: it takes a receive. */
static int deliver(struct hca_qp *peer, const struct hca_qp *qp, const struct hca_wqe *wqe,
		   enum ib_wc_opcode opcode)
{
	struct ib_wc wc = {
		.opcode = opcode,
		.byte_len = wqe->length,
		.src_qp = qp->ib.qp_num,
	};

	if (wqe->opcode == IB_WR_SEND_WITH_IMM || wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		wc.ex.imm_data = wqe->imm;
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	if (wqe->opcode == IB_WR_SEND_WITH_INV) {
		if (!hca_null &&
		    hca_invalidate(to_hca(peer->ib.device), peer->ib.pd, wqe->invalidate))
			return refuse_access(peer);
		wc.ex.invalidate_rkey = wqe->invalidate;
		wc.wc_flags |= IB_WC_WITH_INVALIDATE;
	}
	hca_complete_recv(peer, &wc, wqe->flags & IB_SEND_SOLICITED);
	return IB_WC_SUCCESS;
}

/* The receive is not to blame for the sender's elements, but it has to be for its own. */
static int fail_receive(struct hca_qp *peer, enum ib_wc_status status)
{
	struct ib_wc wc = { .status = status, .opcode = IB_WC_RECV };

	hca_complete_recv(peer, &wc, false);
	fail_responder(peer, IB_EVENT_QP_FATAL);
	return status == IB_WC_LOC_LEN_ERR ? IB_WC_REM_INV_REQ_ERR : IB_WC_REM_OP_ERR;
}

static int run_send(struct hca_qp *qp, struct hca_qp *peer, struct hca_wqe *wqe)
{
	struct hca_wqe *recv = hca_queue_next(hca_recv_queue(peer));
	struct hca_cursor from, to;
	int ret;

	if (!recv)
		return NO_RECEIVE;
	if (wqe->length > recv->length)
		return fail_receive(peer, IB_WC_LOC_LEN_ERR);
	recv->flags = 0;
	local_cursor(&from, qp, wqe, 0);
	local_cursor(&to, peer, recv, 0);
	to.pd = hca_recv_pd(peer);
	ret = hca_null ? 0 : hca_move(&to, &from, wqe->length);
	if (ret == -EFAULT)
		return IB_WC_LOC_PROT_ERR;
	if (ret)
		return fail_receive(peer, IB_WC_LOC_PROT_ERR);
	return deliver(peer, qp, wqe, IB_WC_RECV);
}

/* One step of a write or read. */
static int move_step(struct hca_qp *qp, struct hca_qp *peer, struct hca_wqe *wqe, bool is_read)
{
	u32 bytes = min_t(u32, wqe->length - wqe->moved, HCA_STEP);
	struct hca_cursor local, remote;
	struct ib_sge sge;
	int ret;

	local_cursor(&local, qp, wqe, wqe->moved);
	remote_cursor(&remote, peer, wqe, &sge,
		      is_read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE);
	ret = is_read ? hca_move(&local, &remote, bytes) : hca_move(&remote, &local, bytes);
	if (ret)
		return (ret == -EFAULT) == is_read ? refuse_access(peer) : IB_WC_LOC_PROT_ERR;
	wqe->moved += bytes;
	return wqe->moved < wqe->length ? MORE_TO_MOVE : IB_WC_SUCCESS;
}

static int run_write(struct hca_qp *qp, struct hca_qp *peer, struct hca_wqe *wqe)
{
	int ret;

	if (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE))
		return refuse_request(peer);
	if (!hca_null && wqe->moved < wqe->length) {
		ret = move_step(qp, peer, wqe, false);
		if (ret)
			return ret;
	}
	if (wqe->opcode == IB_WR_RDMA_WRITE)
		return IB_WC_SUCCESS;
	if (!hca_queue_next(hca_recv_queue(peer)))
		return NO_RECEIVE;
	return deliver(peer, qp, wqe, IB_WC_RECV_RDMA_WITH_IMM);
}

static int run_read(struct hca_qp *qp, struct hca_qp *peer, struct hca_wqe *wqe)
{
	if (!qp->attr.max_rd_atomic)
		return STUCK;
	if (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    !peer->attr.max_dest_rd_atomic)
		return refuse_request(peer);
	if (hca_null || !wqe->length)
		return IB_WC_SUCCESS;
	return move_step(qp, peer, wqe, true);
}

static void change_word(u64 *word, const struct hca_wqe *wqe)
{
	if (wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		*word += wqe->compare_add;
	else if (*word == wqe->compare_add)
		*word = wqe->swap;
}

static int run_atomic(struct hca_qp *qp, struct hca_qp *peer, struct hca_wqe *wqe)
{
	struct hca_cursor local, remote, old;
	u32 bytes = sizeof(u64);
	struct ib_sge sge;
	u64 *word, value;

	if (!qp->attr.max_rd_atomic)
		return STUCK;
	if (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) ||
	    !peer->attr.max_dest_rd_atomic || wqe->remote % sizeof(u64))
		return refuse_request(peer);
	if (hca_null)
		return IB_WC_SUCCESS;
	remote_cursor(&remote, peer, wqe, &sge, IB_ACCESS_REMOTE_ATOMIC);
	sge.length = bytes;
	word = (u64 *)hca_reach(&remote, true, &bytes);
	if (!word || bytes < sizeof(u64))
		return refuse_access(peer);
	value = *word;
	old = (struct hca_cursor) { .data = (u8 *)&value };
	local_cursor(&local, qp, wqe, 0);
	if (hca_move(&local, &old, min_t(u32, wqe->length, sizeof(value))))
		return IB_WC_LOC_PROT_ERR;
	change_word(word, wqe);
	return IB_WC_SUCCESS;
}

static int run_local(struct hca_qp *qp, const struct hca_wqe *wqe)
{
	struct hca_device *hca = to_hca(qp->ib.device);
	int ret = wqe->opcode == IB_WR_REG_MR ? hca_fast_register(hca, wqe) :
						hca_invalidate(hca, qp->ib.pd, wqe->invalidate);

	return ret ? IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
}

/*
 * rdma_cm's accepting side is in RTS by then. The standard has this event for RTR, some devices
 * tell of the first message in RTS as well.
 */
static void establish(struct hca_qp *peer)
{
	if (peer->established)
		return;
	peer->established = true;
	hca_qp_tell(peer, IB_EVENT_COMM_EST);
}

/* The longest packet of a message. */
static bool packets_fit(const struct hca_qp *peer, const struct hca_qp *qp, u32 length)
{
	return min_t(u32, length, ib_mtu_enum_to_int(qp->attr.path_mtu)) <=
	       ib_mtu_enum_to_int(peer->attr.path_mtu);
}

static int run_remote(struct hca_qp *qp, struct hca_wqe *wqe)
{
	struct hca_qp *peer = find_peer(qp);

	if (!peer)
		return NO_ANSWER;
	establish(peer);
	if (!packets_fit(peer, qp, wqe->length))
		return refuse_request(peer);
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return run_write(qp, peer, wqe);
	case IB_WR_RDMA_READ:
		return run_read(qp, peer, wqe);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return run_atomic(qp, peer, wqe);
	default:
		return run_send(qp, peer, wqe);
	}
}

static int run(struct hca_qp *qp, struct hca_wqe *wqe)
{
	if (qp->init.qp_type == IB_QPT_GSI)
		return hca_send_datagram(qp, wqe);
	if (wqe->opcode == IB_WR_REG_MR || wqe->opcode == IB_WR_LOCAL_INV)
		return run_local(qp, wqe);
	return run_remote(qp, wqe);
}

/* --- when it does it --- */

/* The codes of the standard, in units of 10 us. */
static u32 rnr_delay_us(u8 code)
{
	static const u32 units[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
		768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return units[code & 31] * 10;
}

/* Again in a while, or not any more. */
static bool retry(struct hca_qp *qp, u32 *retries, u32 limit, u64 delay_us)
{
	if (++*retries > limit)
		return false;
	qp->retry_at = ktime_add_us(ktime_get(), delay_us);
	return true;
}

static bool retry_receive(struct hca_qp *qp)
{
	struct hca_qp *peer = find_peer(qp);
	u32 limit = qp->attr.rnr_retry == 7 ? U32_MAX : qp->attr.rnr_retry;

	return retry(qp, &qp->rnr_retries, limit,
		     rnr_delay_us(peer ? peer->attr.min_rnr_timer : 1));
}

static bool retry_answer(struct hca_qp *qp)
{
	/* 4.096 us times two to the power of the code. */
	u64 delay_us = (4096ULL << qp->attr.timeout) / 1000;

	return retry(qp, &qp->retries, qp->attr.timeout ? qp->attr.retry_cnt : U32_MAX, delay_us);
}

static ktime_t when(const struct hca_qp *qp, const struct hca_wqe *wqe)
{
	return max(wqe->due, qp->retry_at);
}

/*
 * Does one step of the next work. Returns whether there may be another one now; if not,
 * @delay says when, in jiffies, if ever.
 */
static bool step(struct hca_qp *qp, unsigned long *delay)
{
	struct hca_wqe *wqe = hca_queue_next(&qp->sq);
	s64 wait_us;
	int ret;

	*delay = 0;
	if (qp->state == IB_QPS_ERR) {
		if (qp->asked_to_fail || !hca_flushes_when_asked)
			flush(qp);
		return false;
	}
	if (!wqe || qp->state != IB_QPS_RTS)
		return false;
	if (when(qp, wqe)) {
		wait_us = ktime_us_delta(when(qp, wqe), ktime_get());
		if (wait_us > 0) {
			*delay = usecs_to_jiffies(wait_us) + 1;
			return false;
		}
	}
	ret = run(qp, wqe);
	if (ret == STUCK)
		return false;
	if ((ret == NO_RECEIVE && retry_receive(qp)) || (ret == NO_ANSWER && retry_answer(qp)) ||
	    ret == MORE_TO_MOVE)
		return true;
	qp->retries = 0;
	qp->rnr_retries = 0;
	qp->retry_at = 0;
	if (ret == NO_RECEIVE)
		ret = IB_WC_RNR_RETRY_EXC_ERR;
	if (ret == NO_ANSWER)
		ret = IB_WC_RETRY_EXC_ERR;
	complete_send(qp, ret);
	if (ret)
		qp->state = IB_QPS_ERR;
	return true;
}

void hca_engine_work(struct work_struct *work)
{
	struct hca_qp *qp = container_of(to_delayed_work(work), struct hca_qp, work);
	unsigned long delay;
	bool more;

	do {
		spin_lock_irq(&hca_lock);
		more = step(qp, &delay);
		spin_unlock_irq(&hca_lock);
		cond_resched();
	} while (more);
	if (delay)
		queue_delayed_work(hca_wq, &qp->work, delay);
}

/**
 * hca_engine_run - a queue pair may have something to do
 * @qp: which
 *
 * Context: any.
 */
void hca_engine_run(struct hca_qp *qp)
{
	unsigned long delay, flags;
	bool more = true;

	if (!hca_null || qp->init.qp_type == IB_QPT_GSI) {
		mod_delayed_work(hca_wq, &qp->work, 0);
		return;
	}
	while (more) {
		spin_lock_irqsave(&hca_lock, flags);
		more = step(qp, &delay);
		spin_unlock_irqrestore(&hca_lock, flags);
	}
	if (delay)
		queue_delayed_work(hca_wq, &qp->work, delay);
}
