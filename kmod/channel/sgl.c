// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that move a scatterlist. The list is mapped for DMA when the request is posted, and
 * unmapped when its work ends. A list of more elements than the device takes in one WR is cut into
 * several: parts, each of which takes a place of the send queue and has a work of the queue's own,
 * with a live cqe. The last part is the request's work, so that parts end before it.
 *
 * Nothing is allocated for a request: the parts, and the room to build the longest list in one
 * chain, are the channel's from the start.
 */
#include <linux/errno.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "compat.h"
#include "counters.h"
#include "work.h"

static struct ibchan_sg_range range_of(struct scatterlist *sgl, u32 entries, u8 opcode)
{
	return (struct ibchan_sg_range){
		.sgl = sgl,
		.entries = entries,
		.direction = ibchan_op_scatters(opcode) ? DMA_FROM_DEVICE : DMA_TO_DEVICE,
	};
}

static struct ibchan_work *part_at(struct ibchan_queue *queue, u32 number)
{
	return &queue->parts[number & queue->places.mask];
}

/**
 * ibchan_sgl_places - how many places of the send queue a scatterlist takes
 * @ch: the channel; RCU or the caller keeps its memory
 * @opcode: IBCHAN_OP_WRITE or IBCHAN_OP_READ
 * @entries: of the list
 *
 * Fewer are taken where entries are neighbours for the device, but as many have to be free.
 *
 * Context: any.
 * Return: the number, 1 and up; 0 for an opcode that moves no scatterlist.
 */
u32 ibchan_sgl_places(const struct ibchan_channel *ch, u8 opcode, u32 entries)
{
	if (opcode != IBCHAN_OP_WRITE && opcode != IBCHAN_OP_READ)
		return 0;
	return DIV_ROUND_UP(max(entries, 1U), ch->bounds.max_sge[opcode]);
}
EXPORT_SYMBOL_NS_GPL(ibchan_sgl_places, IBCHAN_NS);

/*
 * The bounds are filled and the queues made. @max_sgl: entries of the longest list. On -ENOMEM
 * ibchan_sgl_fini() is still to be called.
 */
int ibchan_sgl_init(struct ibchan_channel *ch, u32 max_sgl)
{
	struct ibchan_chain *chain = &ch->chain;
	struct ibchan_queue *queue = &ch->send;
	u32 sges, places = queue->places.mask + 1;
	size_t size;

	chain->wrs = chain->own_wrs;
	chain->sges = chain->own_sges;
	chain->max_wrs = IBCHAN_CHAIN_WRS;
	chain->end = &chain->sges[IBCHAN_CHAIN_SGES];
	if (!max_sgl)
		return 0;
	/* A list that needs more places than the queue has is too long. */
	ch->bounds.max_sgl = min(max_sgl, queue->places.depth *
				 min(ch->bounds.max_sge[IBCHAN_OP_WRITE],
				     ch->bounds.max_sge[IBCHAN_OP_READ]));
	chain->max_wrs += max(ibchan_sgl_places(ch, IBCHAN_OP_WRITE, ch->bounds.max_sgl),
			      ibchan_sgl_places(ch, IBCHAN_OP_READ, ch->bounds.max_sgl));
	sges = IBCHAN_CHAIN_SGES + ch->bounds.max_sgl;
	size = chain->max_wrs * sizeof(*chain->wrs) + sges * sizeof(*chain->sges);
	chain->wrs = kvzalloc_node(size, GFP_KERNEL_ACCOUNT, ch->qp.dev->node);
	if (!chain->wrs)
		return -ENOMEM;
	chain->sges = (struct ib_sge *)&chain->wrs[chain->max_wrs];
	chain->end = &chain->sges[sges];
	queue->parts = kvzalloc_node(array_size(places, sizeof(*queue->parts)), GFP_KERNEL_ACCOUNT,
				     ch->qp.dev->node);
	return queue->parts ? 0 : -ENOMEM;
}

/* Nothing is in flight any more, or nothing ever was. May be called for a channel without. */
void ibchan_sgl_fini(struct ibchan_channel *ch)
{
	if (ch->chain.wrs != ch->chain.own_wrs)
		kvfree(ch->chain.wrs);
	ch->chain.wrs = NULL;
	kvfree(ch->send.parts);
	ch->send.parts = NULL;
}

/* All that can refuse a list, but for what ibchan_check_form() has looked at. */
static int check(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
		 struct ibchan_reason *reason)
{
	const struct ibchan_places *places = &ch->send.places;
	struct scatterlist *sg;
	u64 total = 0;
	int i;

	/* A work of the queue's own is in the place where the list begins, not where it ends. */
	if (!wr->work)
		return ibchan_refuse(reason, IBCHAN_REASON_NO_SINK, -EINVAL);
	if (!wr->num_sge)
		return ibchan_refuse(reason, IBCHAN_REASON_EMPTY_RANGE, -EINVAL);
	if (wr->opcode == IBCHAN_OP_READ && ch->qp.gid.iwarp)
		return ibchan_refuse_values(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP,
					    (u64[3]) { 1 });
	if (ibchan_places_in_flight(places) + ibchan_sgl_places(ch, wr->opcode, wr->num_sge) >
	    places->depth)
		return ibchan_refuse_values(reason, IBCHAN_REASON_SEND_QUEUE_FULL, -EAGAIN,
					    (u64[3]) { places->depth });
	for_each_sg(wr->sgl, sg, wr->num_sge, i)
		total += sg->length;
	return ibchan_check_total(&ch->bounds, wr, total, 1, reason);
}

/* The works of the first parts, in the queue's next places. */
static void take_parts(struct ibchan_queue *queue, struct ibchan_work *work, u32 parts)
{
	u32 i;

	for (i = 0; i < parts; i++) {
		struct ibchan_work *part = part_at(queue, work->number + i);

		part->queue = queue;
		part->number = work->number + i;
		part->opcode = work->opcode;
		part->flags = IBCHAN_WORK_PART;
		WRITE_ONCE(part->cqe.done, ibchan_work_done);
		queue->works[part->number & queue->places.mask] = part;
	}
	work->number += parts;
	queue->works[work->number & queue->places.mask] = work;
	part_at(queue, work->number)->num_sge = parts;
}

/*
 * Checks the scatterlist of a request, and takes all that it needs; @built becomes the WR of all
 * parts together, and the work's number that of the last part. @more: how many requests may come
 * behind this one in the chain. Under the post lock. -ENOSPC when there is no room in this chain.
 * On an error nothing is taken.
 */
int ibchan_sgl_take(const struct ibchan_wr *wr, struct ibchan_work *work,
		    union ibchan_chain_wr *built, u32 more, struct ibchan_reason *reason)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_sg_range list = range_of(wr->sgl, wr->num_sge, wr->opcode);
	struct ibchan_channel *ch = queue->channel;
	int elements = check(ch, wr, reason);
	u32 places;

	if (elements)
		return elements;
	/*
	 * Before @built there are the WRs of other requests, which may take elements, too. An empty
	 * chain has room for any list that the channel takes. Each of the @more requests that may
	 * still come needs a WR at least, so that a chain of IBCHAN_CHAIN_WRS requests never has
	 * too few.
	 */
	places = ibchan_sgl_places(ch, wr->opcode, wr->num_sge);
	if (wr->num_sge > ch->chain.end - ch->chain.free ||
	    built - ch->chain.wrs + places + more > ch->chain.max_wrs)
		return -ENOSPC;
	elements = ibchan_mr_map_list(ch->qp.pd, &list, ch->chain.free);
	if (elements < 0)
		return ibchan_refuse_values(reason, IBCHAN_REASON_VERBS, elements,
					    (u64[3]) { -elements });
	work->sgl = wr->sgl;
	take_parts(queue, work, ibchan_sgl_places(ch, wr->opcode, elements) - 1);
	built->wr.sg_list = ch->chain.free;
	built->wr.num_sge = elements;
	ch->chain.free += elements;
	return 0;
}

static u64 bytes_of(const struct ib_send_wr *wr)
{
	u64 bytes = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/*
 * Makes a WR for each part of a request, in the place of @out and those behind it. Under the post
 * lock; the work's place is taken, not yet its parts'. Returns the WR of the last part.
 */
union ibchan_chain_wr *ibchan_sgl_split(struct ibchan_work *work, union ibchan_chain_wr *out)
{
	struct ibchan_queue *queue = work->queue;
	u32 i, max = queue->channel->bounds.max_sge[work->opcode];
	u32 parts = ibchan_sgl_parts(work);
	union ibchan_chain_wr rest = *out;
	struct ibchan_work *part;
	bool signal;

	for (i = 0; i < parts; i++, out++) {
		*out = rest;
		out->wr.num_sge = max;
		out->wr.next = &out[1].wr;
		rest.wr.sg_list += max;
		rest.wr.num_sge -= max;
		rest.rdma.remote_addr += bytes_of(&out->wr);
		part = part_at(queue, work->number - parts + i);
		signal = ibchan_places_take(&queue->places, false);
		out->wr.wr_cqe = &part->cqe;
		/* The immediate goes with the last part: it tells that all is there. */
		out->wr.opcode = ibchan_ops[part->opcode].verb[0];
		/* A fence is the first one's. */
		out->wr.send_flags = (signal ? IB_SEND_SIGNALED : 0) |
				     (i ? 0 : out->wr.send_flags & IB_SEND_FENCE);
	}
	if (parts)
		rest.wr.send_flags &= ~IB_SEND_FENCE;
	*out = rest;
	return out;
}

/* The work has ended, or was not posted. With bottom halves off. */
void ibchan_sgl_unmap(struct ibchan_work *work)
{
	struct ibchan_sg_range list = range_of(work->sgl, work->num_sge, work->opcode);

	ibchan_mr_unmap_list(work->queue->channel->qp.pd, &list);
	work->num_sge = 0;
}

/*
 * Gives back what ibchan_sgl_take() has taken; the work's own place is given back. Under the post
 * lock.
 */
void ibchan_sgl_untake(struct ibchan_work *work)
{
	u32 parts = ibchan_sgl_parts(work);

	while (parts) {
		WRITE_ONCE(part_at(work->queue, work->number - parts--)->cqe.done, NULL);
		ibchan_places_untake(&work->queue->places);
	}
	ibchan_sgl_unmap(work);
}

/* Ends a part of a request, but not the last. Under the right to reap the cq. */
void ibchan_sgl_retire_part(struct ibchan_work *part, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = part->queue;

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR) {
		queue->part_status = wc->status;
		queue->part_vendor_err = wc->vendor_err;
		ibchan_channel_fail_send(queue->channel, wc);
	}
	WRITE_ONCE(part->cqe.done, NULL);
	queue->cq->retired++;
	ibchan_places_give(&queue->places);
	ibchan_count(works_retired, 1);
}

/*
 * The request has failed, its last part with @wc. Returns @blamed when a part before has failed,
 * which is forgotten then, else @wc. Under the right to reap the cq.
 */
const struct ib_wc *ibchan_sgl_blame(struct ibchan_work *work, const struct ib_wc *wc,
				     struct ib_wc *blamed)
{
	struct ibchan_queue *queue = work->queue;

	if (!queue->part_status)
		return wc;
	*blamed = (struct ib_wc){
		.status = queue->part_status,
		.vendor_err = queue->part_vendor_err,
	};
	queue->part_status = 0;
	return blamed;
}
