// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of a channel: their places, and works for requests that bring none.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "work.h"

static void tie_slots(struct ibchan_queue *queue, u32 places)
{
	struct ibchan_work *slot, *end = queue->slots + places;
	struct ibchan_sge *sge = queue->sges;

	for (slot = queue->slots; slot < end; slot++, sge += queue->max_sge)
		slot->sges = sge;
}

/* Near the device, as the works that it completes are touched for each completion. */
static void *queue_alloc(const struct ibchan_channel *ch, u32 places, size_t size)
{
	return kvmalloc_node(array_size(places, size), GFP_KERNEL_ACCOUNT | __GFP_ZERO,
			     ch->qp.dev->node);
}

/* Room for what is in flight, and for the works of requests that bring none. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth)
{
	u32 places;

	queue->channel = ch;
	queue->cq = cq;
	ibchan_credit_init(&queue->credit, depth);
	places = queue->credit.mask + 1;
	queue->works = queue_alloc(ch, places, sizeof(*queue->works));
	if (!queue->works)
		return -ENOMEM;
	if (!cq->sink->done)
		return 0;
	queue->slots = queue_alloc(ch, places, sizeof(*queue->slots));
	queue->sges = queue_alloc(ch, places, queue->max_sge * sizeof(*queue->sges));
	if (!queue->slots || !queue->sges) {
		ibchan_queue_fini(queue);
		return -ENOMEM;
	}
	tie_slots(queue, places);
	return 0;
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
