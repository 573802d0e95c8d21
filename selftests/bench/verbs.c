// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw queue pairs of the same kind as those of ibchan's channels: the queues have
 * the same room, and as many reads may be in flight.
 */
#include <linux/err.h>
#include <linux/ibchan.h>

#include "kbench.h"

/* Objects to make and destroy before measuring; see kbench_age(). */
#define AGE		4096

/* Each queue of a channel has room for the marker of its drain. */
#define MARKERS		1

#define HOP_LIMIT	64

/**
 * kbench_qp_create - a queue pair like a channel's
 * @pd: its protection domain
 * @cq: for both queues
 * @depth: work requests that a channel would hold in each queue
 * @sge: elements of one
 *
 * Return: the queue pair or the driver's errno.
 */
struct ib_qp *kbench_qp_create(struct ib_pd *pd, struct ib_cq *cq, u32 depth, u32 sge)
{
	struct ib_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = depth + MARKERS,
			.max_recv_wr = depth + MARKERS,
			.max_send_sge = sge,
			.max_recv_sge = sge,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = 1,
	};

	return ib_create_qp(pd, &attr);
}

static int to_init(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ib_qp *qp, u32 peer, const struct kbench_address *address)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = address->mtu,
		.dest_qp_num = peer,
		.rq_psn = 0,
		.max_dest_rd_atomic = qp->device->attrs.max_qp_rd_atom,
		.min_rnr_timer = IBCHAN_DEFAULT_MIN_RNR_TIMER,
	};

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, address->index, HOP_LIMIT, 0);
	rdma_ah_set_dgid_raw(&attr.ah_attr, (void *)address->gid.raw);
	memcpy(attr.ah_attr.roce.dmac, address->mac, ETH_ALEN);
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			    IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			    IB_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = IBCHAN_DEFAULT_ACK_TIMEOUT,
		.retry_cnt = IBCHAN_DEFAULT_ACK_RETRIES,
		.rnr_retry = IBCHAN_DEFAULT_RNR_RETRIES,
		.max_rd_atomic = qp->device->attrs.max_qp_rd_atom,
		.sq_psn = 0,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_SQ_PSN);
}

/**
 * kbench_qp_connect - one direction of a connection within the device
 * @qp: taken to RTS
 * @peer: on the same device
 * @address: of the device
 *
 * Return: 0 or the driver's errno.
 */
int kbench_qp_connect(struct ib_qp *qp, const struct ib_qp *peer,
		      const struct kbench_address *address)
{
	int ret = to_init(qp);

	if (!ret)
		ret = to_rtr(qp, peer->qp_num, address);
	return ret ?: to_rts(qp);
}

static int age_once(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
	struct ib_qp *qp;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	ib_dereg_mr(mr);
	qp = kbench_qp_create(pd, cq, 1, 1);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	return ib_destroy_qp(qp);
}

static int age_in(struct ib_pd *pd)
{
	struct ib_cq *cq = ib_alloc_cq(pd->device, NULL, 4, 0, IB_POLL_DIRECT);
	int ret = 0;
	int i;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	for (i = 0; i < AGE && !ret; i++) {
		ret = age_once(pd, cq);
		cond_resched();
	}
	ib_free_cq(cq);
	return ret;
}

/**
 * kbench_age - have the device number its objects as after some use
 * @dev: the device
 *
 * soft-RoCE finds queue pairs and regions through a tree over numbers that only
 * grow. A fresh device's tree is flat, and it would grow a level between one
 * way and the next.
 *
 * Return: 0 or the driver's errno.
 */
int kbench_age(struct ib_device *dev)
{
	struct ib_pd *pd = ib_alloc_pd(dev, 0);
	int ret;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ret = age_in(pd);
	ib_dealloc_pd(pd);
	return ret;
}
