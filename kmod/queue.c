// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of a channel: their places, and works for requests that bring none.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "caches.h"
#include "work.h"

static bool has_slots(const struct ibchan_queue *queue)
{
	return queue->cq->sink->done;
}

/* Whether the queue's memory comes in one piece. What decides that does not change. */
static bool is_small(const struct ibchan_queue *queue)
{
	u32 places = queue->credit.mask + 1;

	return has_slots(queue) && places <= IBCHAN_FEW &&
	       places * queue->max_sge <= IBCHAN_FEW;
}

static void alloc_few(struct ibchan_queue *queue)
{
	struct ibchan_few *few = kmem_cache_alloc(ibchan_few_cache, GFP_KERNEL_ACCOUNT);

	if (!few)
		return;
	queue->works = few->works;
	queue->slots = few->slots;
	queue->sges = few->sges;
}

static void alloc_many(struct ibchan_queue *queue, u32 places)
{
	u32 i;

	queue->works = kvcalloc(places, sizeof(*queue->works), GFP_KERNEL_ACCOUNT);
	if (!has_slots(queue))
		return;
	queue->slots = kvcalloc(places, sizeof(*queue->slots), GFP_KERNEL_ACCOUNT);
	queue->sges = kvcalloc(places, queue->max_sge * sizeof(*queue->sges),
			       GFP_KERNEL_ACCOUNT);
	for (i = 0; queue->slots && i < places; i++)
		queue->slots[i].cqe.done = ibchan_work_done;
}

static void tie_slots(struct ibchan_queue *queue, u32 places)
{
	struct ibchan_work *slot, *end = queue->slots + places;
	struct ibchan_sge *sge = queue->sges;

	for (slot = queue->slots; slot < end; slot++, sge += queue->max_sge) {
		slot->queue = queue;
		slot->sges = sge;
	}
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
	if (is_small(queue))
		alloc_few(queue);
	else
		alloc_many(queue, places);
	if (!queue->works || (has_slots(queue) && (!queue->slots || !queue->sges))) {
		ibchan_queue_fini(queue);
		return -ENOMEM;
	}
	if (has_slots(queue))
		tie_slots(queue, places);
	return 0;
}

static void free_many(struct ibchan_queue *queue)
{
	kvfree(queue->works);
	kvfree(queue->slots);
	kvfree(queue->sges);
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_queue_fini(struct ibchan_queue *queue)
{
	if (!queue->works && !queue->slots && !queue->sges)
		return;
	if (is_small(queue))
		kmem_cache_free(ibchan_few_cache, container_of(queue->works, struct ibchan_few,
							       works[0]));
	else
		free_many(queue);
	queue->works = NULL;
	queue->slots = NULL;
	queue->sges = NULL;
}
