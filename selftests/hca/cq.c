// SPDX-License-Identifier: GPL-2.0-only
/* Completion queues: see hca.h. */
#include <linux/slab.h>

#include "hca.h"

static void tell(struct hca_cq *cq)
{
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static void tell_irq(struct irq_work *irq)
{
	tell(container_of(irq, struct hca_cq, irq));
}

static void tell_work(struct work_struct *work)
{
	tell(container_of(work, struct hca_cq, work));
}

/* Under the lock. */
static void raise_event(struct hca_cq *cq)
{
	cq->armed = 0;
	cq->held = 0;
	if (hca_hard_irq)
		irq_work_queue(&cq->irq);
	else
		queue_work(hca_wq, &cq->work);
}

/* Fewer completions than make an event have waited for its period. */
static void end_period(struct work_struct *work)
{
	struct hca_cq *cq = container_of(to_delayed_work(work), struct hca_cq, period);
	unsigned long flags;

	spin_lock_irqsave(&hca_lock, flags);
	if (cq->armed && cq->held)
		raise_event(cq);
	spin_unlock_irqrestore(&hca_lock, flags);
}

/* How many cqs each vector has: a test asks whether they are spread. */
static void count_cq(const struct hca_cq *cq, int change)
{
	spin_lock_irq(&hca_lock);
	to_hca(cq->ib.device)->cqs_on_vector[cq->vector] += change;
	spin_unlock_irq(&hca_lock);
}

static int make_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr)
{
	struct hca_cq *cq = to_hca_cq(ib);

	if (attr->flags || attr->cqe > HCA_MAX_CQE ||
	    attr->comp_vector >= ib->device->num_comp_vectors)
		return -EINVAL;
	cq->size = roundup_pow_of_two(attr->cqe + 1);
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	ib->cqe = cq->size - 1;
	cq->vector = attr->comp_vector;
	count_cq(cq, 1);
	/* As a driver's handler it is a thread with PREEMPT_RT. */
	cq->irq = IRQ_WORK_INIT(tell_irq);
	INIT_WORK(&cq->work, tell_work);
	INIT_DELAYED_WORK(&cq->period, end_period);
	return 0;
}

#ifdef HCA_CQ_BY_BUNDLE
static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
#else
static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *attrs)
#endif
{
	return make_cq(ib, attr);
}

static int destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct hca_cq *cq = to_hca_cq(ib);

	hca_command();
	if (hca_keeps(HCA_DESTROY_CQ))
		return -EBUSY;
	count_cq(cq, -1);
	cancel_delayed_work_sync(&cq->period);
	irq_work_sync(&cq->irq);
	cancel_work_sync(&cq->work);
	kvfree(cq->ring);
	return 0;
}

/* A completion frees its work's slot, and those of the works before it. */
static void free_slots(const struct hca_cqe *cqe)
{
	struct hca_queue *queue;

	if (!cqe->qp)
		return;
	queue = cqe->is_send ? &cqe->qp->sq : hca_recv_queue(cqe->qp);
	if (cqe->is_send)
		queue->freed = cqe->slot + 1;
	else
		queue->freed++;
}

static int poll_cq(struct ib_cq *ib, int num, struct ib_wc *wc)
{
	struct hca_cq *cq = to_hca_cq(ib);
	unsigned long flags;
	int taken = 0;

	spin_lock_irqsave(&hca_lock, flags);
	for (; taken < num; cq->tail++) {
		struct hca_cqe *cqe = &cq->ring[cq->tail & (cq->size - 1)];

		if (cq->tail == cq->head)
			break;
		/* Of a queue pair that has been destroyed. */
		if (!cqe->qp)
			continue;
		free_slots(cqe);
		wc[taken++] = cqe->wc;
	}
	spin_unlock_irqrestore(&hca_lock, flags);
	return taken;
}

/* An event is told once for each time that it was asked for. Under the lock. */
static void tell_if_armed(struct hca_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed == IB_CQ_SOLICITED && !solicited))
		return;
	if (++cq->held >= cq->moderation_count)
		raise_event(cq);
	else if (cq->held == 1)
		mod_delayed_work(hca_wq, &cq->period, usecs_to_jiffies(cq->moderation_us));
}

static int modify_cq(struct ib_cq *ib, u16 count, u16 us)
{
	struct hca_cq *cq = to_hca_cq(ib);

	spin_lock_irq(&hca_lock);
	cq->moderation_count = count;
	cq->moderation_us = us;
	spin_unlock_irq(&hca_lock);
	return 0;
}

/* Is there a completion that the consumer has not taken, of the kind that it waits for? */
static bool has_unread(const struct hca_cq *cq, bool solicited)
{
	u32 i;

	for (i = cq->tail; i != cq->head; i++)
		if (!solicited || cq->ring[i & (cq->size - 1)].solicited)
			return true;
	return false;
}

/* A device that does not report what was missed tells of it by an event. */
static int req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	const struct hca_preset *preset = to_hca(ib->device)->preset;
	struct hca_cq *cq = to_hca_cq(ib);
	unsigned long irq_flags;
	bool missed;

	spin_lock_irqsave(&hca_lock, irq_flags);
	missed = preset->reports_missed && (flags & IB_CQ_REPORT_MISSED_EVENTS) &&
		 cq->tail != cq->head;
	if (cq->armed != IB_CQ_NEXT_COMP && !(missed && preset->arms_nothing))
		cq->armed = flags & IB_CQ_SOLICITED_MASK;
	if (!preset->reports_missed && has_unread(cq, cq->armed == IB_CQ_SOLICITED))
		tell_if_armed(cq, true);
	spin_unlock_irqrestore(&hca_lock, irq_flags);
	return missed;
}

const struct ib_device_ops hca_cq_ops = {
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.modify_cq = modify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, hca_cq, ib),
};

/**
 * hca_cq_push - a completion
 * @cq: where
 * @cqe: what
 * @solicited: the peer asked for an event, or the work has failed
 *
 * Context: under the lock.
 */
void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited)
{
	if (cq->head - cq->tail >= cq->size - 1) {
		hca_report(to_hca(cq->ib.device), HCA_CQ_OVERRUN, "filled", cq->size - 1);
		return;
	}
	cq->ring[cq->head & (cq->size - 1)] = *cqe;
	cq->ring[cq->head & (cq->size - 1)].solicited = solicited;
	cq->head++;
	tell_if_armed(cq, solicited);
}

/*
 * What is left of a queue pair's completions goes with it, as drivers do it. The slots of what
 * it had received are those of a queue that others may share.
 */
void hca_cq_clean(struct hca_cq *cq, const struct hca_qp *qp)
{
	u32 i;

	for (i = cq->tail; i != cq->head; i++) {
		struct hca_cqe *cqe = &cq->ring[i & (cq->size - 1)];

		if (cqe->qp != qp)
			continue;
		free_slots(cqe);
		cqe->qp = NULL;
	}
}
