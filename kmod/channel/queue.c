// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of a channel: their places, each with room for what a work holds, and works for
 * requests that bring none.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "work.h"

/* Near the device, as the works that it completes are touched for each completion. */
static void *queue_alloc(const struct ibchan_channel *ch, u32 num, size_t size)
{
	return kvmalloc_node(array_size(num, size), GFP_KERNEL_ACCOUNT | __GFP_ZERO,
			     ch->qp.dev->node);
}

/* In one piece: most lengths of queues and of works are powers of two, and so is the sum. */
static struct ibchan_mr **alloc_elements(struct ibchan_queue *queue, u32 places)
{
	u32 num = places * queue->max_sge;
	bool exclusive = ibchan_bounds_exclude(&queue->channel->bounds);
	struct ibchan_mr **mrs = queue_alloc(queue->channel, num, sizeof(*mrs) +
					     (exclusive ? sizeof(*queue->ranges) : 0));

	if (mrs && exclusive)
		queue->ranges = (struct ibchan_range *)&mrs[num];
	return mrs;
}

/* Room for what is in flight, and for the works of requests that bring none. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth)
{
	u32 places;

	queue->channel = ch;
	queue->cq = cq;
	ibchan_places_init(&queue->places, depth);
	places = queue->places.mask + 1;
	queue->works = queue_alloc(ch, places, sizeof(*queue->works));
	queue->mrs = alloc_elements(queue, places);
	if (cq->sink->done)
		queue->slots = queue_alloc(ch, places, sizeof(*queue->slots));
	if (queue->works && queue->mrs && !queue->slots == !cq->sink->done)
		return 0;
	ibchan_queue_fini(queue);
	return -ENOMEM;
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_queue_fini(struct ibchan_queue *queue)
{
	kvfree(queue->works);
	kvfree(queue->mrs);
	kvfree(queue->slots);
	queue->works = NULL;
	queue->mrs = NULL;
	queue->ranges = NULL;
	queue->slots = NULL;
}
