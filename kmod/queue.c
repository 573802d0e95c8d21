// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of a channel: their places, and works for those who bring none.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "work.h"

static int alloc_slots(struct ibchan_queue *queue, u32 places)
{
	u32 i;

	if (!queue->cq->sink->done)
		return 0;
	queue->slots = kvcalloc(places, sizeof(*queue->slots), GFP_KERNEL_ACCOUNT);
	queue->sges = kvcalloc(places, queue->max_sge * sizeof(*queue->sges),
			       GFP_KERNEL_ACCOUNT);
	if (!queue->slots || !queue->sges)
		return -ENOMEM;
	for (i = 0; i < places; i++) {
		queue->slots[i].cqe.done = ibchan_work_done;
		queue->slots[i].queue = queue;
		queue->slots[i].sges = &queue->sges[(size_t)i * queue->max_sge];
	}
	return 0;
}

/* Room for what is in flight, and for the works of those who bring none. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth)
{
	u32 places;

	queue->channel = ch;
	queue->cq = cq;
	ibchan_credit_init(&queue->credit, depth);
	places = queue->credit.mask + 1;
	queue->works = kvcalloc(places, sizeof(*queue->works), GFP_KERNEL_ACCOUNT);
	if (queue->works && !alloc_slots(queue, places))
		return 0;
	ibchan_queue_fini(queue);
	return -ENOMEM;
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_queue_fini(struct ibchan_queue *queue)
{
	kvfree(queue->works);
	kvfree(queue->slots);
	kvfree(queue->sges);
	queue->works = NULL;
	queue->slots = NULL;
	queue->sges = NULL;
}
