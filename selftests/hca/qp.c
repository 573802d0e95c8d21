// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs, shared receive queues, and posting: see hca.h. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "hca.h"

/* --- events --- */

/* A number for each event that a queue pair may have. */
static void tell_events(struct work_struct *work)
{
	struct hca_qp *qp = container_of(work, struct hca_qp, event_work);
	struct ib_event event = { .device = qp->ib.device, .element.qp = &qp->ib };
	u32 type;

	for (type = 0; type < BITS_PER_LONG; type++) {
		if (!test_and_clear_bit(type, &qp->events) || !qp->init.event_handler)
			continue;
		event.event = type;
		qp->init.event_handler(&event, qp->init.qp_context);
	}
}

/* Under the lock. */
void hca_qp_tell(struct hca_qp *qp, enum ib_event_type type)
{
	set_bit(type, &qp->events);
	queue_work(hca_wq, &qp->event_work);
}

static void tell_limit(struct work_struct *work)
{
	struct hca_srq *srq = container_of(work, struct hca_srq, limit_work);
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

/* --- making and ending --- */

static int queue_alloc(struct hca_queue *queue, u32 size)
{
	queue->size = size;
	queue->ring = kvcalloc(size ?: 1, sizeof(*queue->ring), GFP_KERNEL);
	return queue->ring ? 0 : -ENOMEM;
}

static int check_cap(const struct hca_device *hca, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_GSI)
		return -EOPNOTSUPP;
	return cap->max_send_wr > HCA_MAX_WR || cap->max_recv_wr > HCA_MAX_WR ||
	       cap->max_send_sge > hca->preset->max_sge ||
	       cap->max_recv_sge > hca->preset->max_sge ? -EINVAL : 0;
}

static int number_qp(struct hca_device *hca, struct hca_qp *qp)
{
	u32 qpn;
	int ret;

	if (qp->init.qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = 1;
		WRITE_ONCE(hca->gsi[qp->init.port_num - 1], qp);
		return 0;
	}
	ret = xa_alloc_cyclic_irq(&hca->qps, &qpn, qp, XA_LIMIT(2, (1 << 24) - 1),
				  &hca->next_qpn, GFP_KERNEL);
	qp->ib.qp_num = qpn;
	return min(ret, 0);
}

/* Drivers that have no inline data for kernel queue pairs take any number and answer 0. */
static int create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct hca_device *hca = to_hca(ib->device);
	struct hca_qp *qp = to_hca_qp(ib);
	int ret = check_cap(hca, init);

	if (ret)
		return ret;
	init->cap.max_inline_data = min(init->cap.max_inline_data, hca->preset->max_inline);
	qp->init = *init;
	qp->state = IB_QPS_RESET;
	INIT_DELAYED_WORK(&qp->work, hca_engine_work);
	INIT_WORK(&qp->event_work, tell_events);
	ret = queue_alloc(&qp->sq, init->cap.max_send_wr);
	if (!ret)
		ret = queue_alloc(&qp->rq, init->srq ? 0 : init->cap.max_recv_wr);
	if (!ret)
		ret = number_qp(hca, qp);
	if (!ret)
		return 0;
	kvfree(qp->sq.ring);
	kvfree(qp->rq.ring);
	return ret;
}

static void queue_reset(struct hca_queue *queue)
{
	queue->posted = 0;
	queue->done = 0;
	queue->freed = 0;
}

/* Nothing of the queue pair is in a cq afterwards, and its works never end. */
static void forget_works(struct hca_qp *qp)
{
	hca_cq_clean(to_hca_cq(qp->init.send_cq), qp);
	hca_cq_clean(to_hca_cq(qp->init.recv_cq), qp);
	queue_reset(&qp->sq);
	queue_reset(&qp->rq);
	qp->retries = 0;
	qp->rnr_retries = 0;
	qp->retry_at = 0;
	qp->established = false;
	qp->asked_to_fail = false;
	qp->took_last = false;
}

static int destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct hca_device *hca = to_hca(ib->device);
	struct hca_qp *qp = to_hca_qp(ib);

	hca_command();
	if (qp->init.qp_type == IB_QPT_RC && hca_keeps(HCA_DESTROY_QP))
		return -EBUSY;
	spin_lock_irq(&hca_lock);
	if (qp->init.qp_type == IB_QPT_GSI)
		hca->gsi[qp->init.port_num - 1] = NULL;
	else
		xa_erase(&hca->qps, ib->qp_num);
	qp->state = IB_QPS_RESET;
	forget_works(qp);
	spin_unlock_irq(&hca_lock);
	cancel_delayed_work_sync(&qp->work);
	cancel_work_sync(&qp->event_work);
	kvfree(qp->sq.ring);
	kvfree(qp->rq.ring);
	return 0;
}

static void keep_attr(struct hca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
}

static int modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct hca_qp *qp = to_hca_qp(ib);
	enum ib_qp_state now, next;
	int ret = -EINVAL;

	hca_command();
	spin_lock_irq(&hca_lock);
	now = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : now;
	if (now == qp->state && next != IB_QPS_SQD && next != IB_QPS_SQE &&
	    ib_modify_qp_is_ok(now, next, ib->qp_type, mask)) {
		keep_attr(qp, attr, mask);
		if (next == IB_QPS_RESET)
			forget_works(qp);
		qp->asked_to_fail = next == IB_QPS_ERR;
		qp->state = next;
		ret = 0;
	}
	spin_unlock_irq(&hca_lock);
	if (!ret)
		hca_engine_run(qp);
	return ret;
}

static int query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct hca_qp *qp = to_hca_qp(ib);

	spin_lock_irq(&hca_lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	spin_unlock_irq(&hca_lock);
	return 0;
}

/* --- shared receive queues --- */

static struct hca_srq *to_hca_srq(struct ib_srq *ib)
{
	return container_of(ib, struct hca_srq, ib);
}

static int create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct hca_srq *srq = to_hca_srq(ib);

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (init->attr.max_wr > HCA_MAX_WR ||
	    init->attr.max_sge > to_hca(ib->device)->preset->max_sge)
		return -EINVAL;
	srq->limit = init->attr.srq_limit;
	srq->max_sge = init->attr.max_sge;
	INIT_WORK(&srq->limit_work, tell_limit);
	return queue_alloc(&srq->queue, init->attr.max_wr);
}

static int modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata)
{
	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (attr->srq_limit > to_hca_srq(ib)->queue.size)
		return -EINVAL;
	spin_lock_irq(&hca_lock);
	to_hca_srq(ib)->limit = attr->srq_limit;
	spin_unlock_irq(&hca_lock);
	return 0;
}

static int query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	attr->max_wr = to_hca_srq(ib)->queue.size;
	attr->max_sge = to_hca_srq(ib)->max_sge;
	attr->srq_limit = READ_ONCE(to_hca_srq(ib)->limit);
	return 0;
}

static int destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	cancel_work_sync(&to_hca_srq(ib)->limit_work);
	kvfree(to_hca_srq(ib)->queue.ring);
	return 0;
}

/* Where a queue pair's receives are. */
struct hca_queue *hca_recv_queue(struct hca_qp *qp)
{
	return qp->init.srq ? &to_hca_srq(qp->init.srq)->queue : &qp->rq;
}

/* In which domain their regions have to be. */
struct ib_pd *hca_recv_pd(const struct hca_qp *qp)
{
	return qp->init.srq ? qp->init.srq->pd : qp->ib.pd;
}

/* Under the lock. A receive was taken from what may be a shared queue. */
void hca_srq_taken(struct hca_qp *qp)
{
	struct hca_srq *srq;

	if (!qp->init.srq)
		return;
	srq = to_hca_srq(qp->init.srq);
	if (!srq->limit || srq->queue.posted - srq->queue.done >= srq->limit)
		return;
	srq->limit = 0;
	queue_work(hca_wq, &srq->limit_work);
}

/* --- posting --- */

static struct hca_wqe *queue_slot(struct hca_queue *queue)
{
	struct hca_wqe *wqe;

	if (queue->posted - queue->freed >= queue->size)
		return NULL;
	wqe = &queue->ring[queue->posted % queue->size];
	wqe->slot = queue->posted;
	wqe->moved = 0;
	wqe->due = 0;
	return wqe;
}

static int set_elements(struct hca_wqe *wqe, const struct ib_sge *sge, int num, u32 max)
{
	u64 length = 0;
	int i;

	if (num < 0 || num > max)
		return -EINVAL;
	for (i = 0; i < num; i++) {
		wqe->sge[i] = sge[i];
		length += sge[i].length;
	}
	if (length > 1U << 31)
		return -EINVAL;
	wqe->num_sge = num;
	wqe->length = length;
	return 0;
}

/* The device does not look at the pages of what was inline, whose addresses are the CPU's. */
static int copy_inline(struct hca_wqe *wqe, u32 max)
{
	u32 copied = 0;
	u32 i;

	if (wqe->length > max)
		return -EINVAL;
	for (i = 0; i < wqe->num_sge; i++) {
		memcpy(wqe->data + copied, (void *)(uintptr_t)wqe->sge[i].addr,
		       wqe->sge[i].length);
		copied += wqe->sge[i].length;
	}
	return 0;
}

static int set_opcode(struct hca_wqe *wqe, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		wqe->remote = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		break;
	case IB_WR_LOCAL_INV:
		break;
	case IB_WR_REG_MR:
		wqe->mr = to_hca_mr(reg_wr(wr)->mr);
		wqe->rkey = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		if (wqe->access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				    IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC))
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return 0;
}

static ktime_t due_time(void)
{
	u64 us = hca_delay_us;

	if (hca_jitter_us)
		us += get_random_u32() % hca_jitter_us;
	return us ? ktime_add_us(ktime_get(), us) : 0;
}

static int add_send(struct hca_qp *qp, const struct ib_send_wr *wr)
{
	struct hca_wqe *wqe = queue_slot(&qp->sq);
	int ret;

	if (qp->state == IB_QPS_RESET || qp->state == IB_QPS_INIT)
		return -EINVAL;
	if (!wqe)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->imm = wr->ex.imm_data;
	ret = set_elements(wqe, wr->sg_list, wr->num_sge, qp->init.cap.max_send_sge);
	if (!ret)
		ret = set_opcode(wqe, wr);
	if (!ret && wr->send_flags & IB_SEND_INLINE)
		ret = copy_inline(wqe, qp->init.cap.max_inline_data);
	if (ret)
		return ret;
	if (qp->init.qp_type == IB_QPT_GSI) {
		wqe->ah = container_of(ud_wr(wr)->ah, struct hca_ah, ib);
		wqe->remote_qpn = ud_wr(wr)->remote_qpn;
	}
	wqe->due = due_time();
	qp->sq.posted++;
	return 0;
}

static int post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct hca_qp *qp = to_hca_qp(ib);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&hca_lock, flags);
	for (; wr; wr = wr->next) {
		ret = add_send(qp, wr);
		if (ret)
			break;
	}
	*bad = wr;
	spin_unlock_irqrestore(&hca_lock, flags);
	hca_engine_run(qp);
	return ret;
}

static int add_recv(struct hca_queue *queue, const struct ib_recv_wr *wr, u32 max_sge)
{
	struct hca_wqe *wqe = queue_slot(queue);
	int ret;

	if (!wqe)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	ret = set_elements(wqe, wr->sg_list, wr->num_sge, max_sge);
	if (!ret)
		queue->posted++;
	return ret;
}

static int add_recvs(struct hca_queue *queue, const struct ib_recv_wr *wr, u32 max_sge,
		     const struct ib_recv_wr **bad)
{
	int ret = 0;

	for (; wr && !ret; wr = ret ? wr : wr->next)
		ret = add_recv(queue, wr, max_sge);
	*bad = wr;
	return ret;
}

static int post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct hca_qp *qp = to_hca_qp(ib);
	unsigned long flags;
	int ret = -EINVAL;

	*bad = wr;
	if (qp->init.srq)
		return ret;
	spin_lock_irqsave(&hca_lock, flags);
	if (qp->state != IB_QPS_RESET)
		ret = add_recvs(&qp->rq, wr, qp->init.cap.max_recv_sge, bad);
	spin_unlock_irqrestore(&hca_lock, flags);
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		hca_engine_run(qp);
	return ret;
}

static int post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&hca_lock, flags);
	ret = add_recvs(&to_hca_srq(ib)->queue, wr, to_hca_srq(ib)->max_sge, bad);
	spin_unlock_irqrestore(&hca_lock, flags);
	return ret;
}

const struct ib_device_ops hca_qp_ops = {
	.create_qp = create_qp,
	.create_srq = create_srq,
	.destroy_qp = destroy_qp,
	.destroy_srq = destroy_srq,
	.modify_qp = modify_qp,
	.modify_srq = modify_srq,
	.post_recv = post_recv,
	.post_send = post_send,
	.post_srq_recv = post_srq_recv,
	.query_qp = query_qp,
	.query_srq = query_srq,

	INIT_RDMA_OBJ_SIZE(ib_qp, hca_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, hca_srq, ib),
};
