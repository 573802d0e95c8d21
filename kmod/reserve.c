// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a request needs before it can be posted, whichever kind it is: region
 * references, ranges, room in the sink, a place. Taken in that order, so that a
 * refusal undoes only what this request took. The post lock is held throughout.
 *
 * Plain requests do not come here, unless they are refused: see work.c and slot.c.
 */
#include <linux/errno.h>

#include "flow.h"
#include "work.h"

static bool is_exclusive(const struct ibchan_work *work)
{
	return work->flags & IBCHAN_WR_EXCLUSIVE;
}

/**
 * ibchan_work_put_sges - give back what elements of a work hold
 * @work: the work
 * @num: how many, from the first one
 *
 * Context: any; not NMI.
 */
void ibchan_work_put_sges(struct ibchan_work *work, u32 num)
{
	struct ibchan_sge *sge = work->sges;

	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		if (is_exclusive(work))
			ibchan_busy_release(&sge->mr->busy, sge);
		ibchan_mr_drop(sge->mr);
	}
}

static int take_range(struct ibchan_work *work, struct ibchan_sge *sge,
		      struct ibchan_reason *reason)
{
	int ret;

	sge->work = work;
	ret = ibchan_busy_take(&sge->mr->busy, sge, ibchan_op_scatters(work->opcode), reason);
	if (ret)
		ibchan_mr_drop(sge->mr);
	return ret;
}

static int take_sge(struct ibchan_work *work, struct ibchan_sge *sge,
		    struct ibchan_reason *reason)
{
	if (!ibchan_mr_get(sge->mr))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	return is_exclusive(work) ? take_range(work, sge, reason) : 0;
}

/* What the device will see of a region that it knows in pieces. */
static struct ib_sge *build_pieces(struct ib_sge *out, const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;
	const struct ibchan_piece *piece = mr->pieces;
	u64 offset = sge->offset;
	u32 left = sge->length;
	u32 part;

	piece += ibchan_pieces_find(mr->pieces, mr->num_pieces, offset);
	for (; left; piece++, left -= part, offset += part) {
		part = min_t(u64, left, piece[1].start - offset);
		*out++ = (struct ib_sge){
			.addr = piece->dma + (offset - piece->start),
			.length = part,
			.lkey = mr->lkey,
		};
	}
	return out;
}

static struct ib_sge *build_sge(struct ib_sge *out, const struct ibchan_sge *sge)
{
	if (sge->mr->pieces)
		return build_pieces(out, sge);
	out->addr = sge->mr->addr + sge->offset;
	out->length = sge->length;
	out->lkey = sge->mr->lkey;
	return out + 1;
}

static u32 device_elements(const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;

	if (!mr->pieces)
		return 1;
	return ibchan_pieces_count(mr->pieces, mr->num_pieces, sge->offset, sge->length);
}

static u32 room_for_elements(const struct ibchan_chain *chain, const struct ib_sge *sge)
{
	return &chain->sges[IBCHAN_CHAIN_SGES] - sge;
}

/* More than there ever is; or no room left in this chain, where another one has it. */
static int refuse_room(struct ibchan_work *work, u32 taken, u32 elements,
		       struct ibchan_reason *reason)
{
	u32 max = work->queue->channel->max_sge[work->opcode];

	ibchan_work_put_sges(work, taken);
	return elements > max ? ibchan_refuse_elements(elements, max, reason) : -ENOSPC;
}

static int refuse_element(struct ibchan_work *work, u32 element, int error,
			  struct ibchan_reason *reason)
{
	ibchan_work_put_sges(work, element);
	if (reason)
		reason->element = element;
	return error;
}

/*
 * iWARP tells the peer the key of the memory that a read goes to, as what the answer is
 * written by. That of a region without a registration of its own is the key of all memory.
 */
static bool key_must_stay(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
			  const struct ibchan_sge *sge)
{
	return wr->opcode == IBCHAN_OP_READ && ch->gid.iwarp && !sge->mr->ib;
}

static int check_element(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
			 const struct ibchan_sge *sge, struct ibchan_reason *reason)
{
	int ret = ibchan_check_sge(ch, sge, ibchan_ops[wr->opcode].needed, reason);

	if (!ret && unlikely(key_must_stay(ch, wr, sge)))
		ret = ibchan_refuse_values(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP,
					   (u64[3]) { 1 });
	return ret;
}

/*
 * Checks the elements, takes them for the work and shows them to the device from
 * @out on, one after the other; a refusal gives back what was taken. Empty ones
 * stay here: a length of 0 means 2 GiB to some devices. Return: how many elements
 * the device sees, or an errno.
 */
static int add_sges(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		    struct ibchan_work *work, struct ib_sge *out,
		    struct ibchan_reason *reason)
{
	u32 max = min_t(u32, ch->max_sge[wr->opcode], room_for_elements(&ch->chain, out));
	struct ibchan_sge *sge = work->sges;
	u32 elements = 0;
	u64 total = 0;
	int ret;
	u32 i;

	for (i = 0; i < wr->num_sge; i++, sge++) {
		ret = check_element(ch, wr, sge, reason);
		if (ret)
			return refuse_element(work, i, ret, reason);
		if (!sge->length)
			continue;
		elements += device_elements(sge);
		if (elements > max)
			return refuse_room(work, i, elements, reason);
		ret = take_sge(work, sge, reason);
		if (ret)
			return refuse_element(work, i, ret, reason);
		total += sge->length;
		out = build_sge(out, sge);
	}
	ret = ibchan_check_total(ch, wr, total, elements, reason);
	if (ret)
		ibchan_work_put_sges(work, wr->num_sge);
	return ret ?: elements;
}

/*
 * Shows data that is in the request to the device, which reads it by the kernel's
 * address during the post. Return: as many elements as that takes; an errno.
 */
static int add_inline(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		      struct ib_sge *out, struct ibchan_reason *reason)
{
	int ret;

	if (!room_for_elements(&ch->chain, out))
		return -ENOSPC;
	ret = ibchan_check_inline(ch, wr, reason);
	if (!ret)
		ret = ibchan_check_total(ch, wr, wr->data_length, 1, reason);
	if (ret || !wr->data_length)
		return ret;
	*out = (struct ib_sge){
		.addr = (uintptr_t)wr->data,
		.length = wr->data_length,
	};
	return 1;
}

static int refuse_full(struct ibchan_queue *queue, struct ibchan_reason *reason)
{
	u32 code = queue == &queue->channel->send ? IBCHAN_REASON_SEND_QUEUE_FULL :
						    IBCHAN_REASON_RECV_QUEUE_FULL;

	return ibchan_refuse_values(reason, code, -EAGAIN,
				    (u64[3]) { queue->credit.depth });
}

/* A message for which the peer has no receive would not be taken there. */
static int check_credits(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			 struct ibchan_reason *reason)
{
	if (likely(!ch->flow) || !ibchan_flow_counts(wr->opcode, wr->flags))
		return 0;
	return ibchan_flow_refuse(ch->flow, reason);
}

static int sink_reserve(struct ibchan_cq *cq, struct ibchan_reason *reason)
{
	int ret = cq->sink->reserve ? cq->sink->reserve(cq->priv) : 0;

	if (ret == -EAGAIN)
		return ibchan_refuse(reason, IBCHAN_REASON_RING_FULL, ret);
	return ret;
}

static void copy_sges(struct ibchan_sge *to, const struct ibchan_wr *wr)
{
	u32 i;

	for (i = 0; i < wr->num_sge; i++) {
		to[i].mr = wr->sges[i].mr;
		to[i].offset = wr->sges[i].offset;
		to[i].length = wr->sges[i].length;
	}
}

/* One of the queue's own works, for a request that brings none. Takes room in the sink. */
static struct ibchan_work *take_slot(struct ibchan_queue *queue, const struct ibchan_wr *wr,
				     struct ibchan_reason *reason)
{
	struct ibchan_work *work = &queue->slots[queue->credit.posted & queue->credit.mask];
	int ret;

	if (!queue->slots)
		return ERR_PTR(ibchan_refuse(reason, IBCHAN_REASON_NO_SINK, -EINVAL));
	ret = sink_reserve(queue->cq, reason);
	if (ret)
		return ERR_PTR(ret);
	copy_sges(work->sges, wr);
	return work;
}

/* The caller's own work, or one of the channel's. */
static struct ibchan_work *choose_work(struct ibchan_queue *queue, const struct ibchan_wr *wr,
				       struct ibchan_reason *reason)
{
	if (!wr->work)
		return take_slot(queue, wr, reason);
	wr->work->sges = wr->sges;
	return wr->work;
}

static void fill_work(struct ibchan_work *work, struct ibchan_queue *queue,
		      const struct ibchan_wr *wr)
{
	work->cqe.done = ibchan_work_done;
	work->queue = queue;
	work->wr_id = wr->wr_id;
	work->number = queue->credit.posted;
	work->num_sge = wr->num_sge;
	work->opcode = wr->opcode;
	work->flags = wr->flags;
}

static int add_elements(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			struct ibchan_work *work, struct ib_sge *out,
			struct ibchan_reason *reason)
{
	if (wr->flags & IBCHAN_WR_INLINE)
		return add_inline(ch, wr, out, reason);
	return add_sges(ch, wr, work, out, reason);
}

/**
 * ibchan_work_reserve - everything that can refuse a request
 * @queue: where it is going to be posted; its next place is not taken yet
 * @wr: the request
 * @out: the device's elements are built from here on
 * @taken: the work that stands for it
 * @reason: why not, or NULL
 *
 * Context: process or softirq, under the post lock.
 * Return: how many elements; -ENOSPC when there is no room for them in this chain;
 * what ibchan_post() says. On an error nothing is held and @taken is as it was.
 */
int ibchan_work_reserve(struct ibchan_queue *queue, const struct ibchan_wr *wr,
			struct ib_sge *out, struct ibchan_work **taken,
			struct ibchan_reason *reason)
{
	struct ibchan_channel *ch = queue->channel;
	struct ibchan_work *work;
	int ret;

	ret = ibchan_check_form(ch, wr, reason);
	if (ret)
		return ret;
	if (ibchan_credit_is_spent(&queue->credit))
		return refuse_full(queue, reason);
	ret = check_credits(ch, wr, reason);
	if (ret)
		return ret;
	work = choose_work(queue, wr, reason);
	if (IS_ERR(work))
		return PTR_ERR(work);
	fill_work(work, queue, wr);
	ret = add_elements(ch, wr, work, out, reason);
	if (ret >= 0) {
		queue->works[work->number & queue->credit.mask] = work;
		*taken = work;
	} else if (!wr->work) {
		ibchan_sink_cancel(queue->cq);
	}
	return ret;
}

/**
 * ibchan_work_unreserve - undo the request that took its place last
 * @queue: where it was to be posted
 *
 * Context: process or softirq, under the post lock.
 */
void ibchan_work_unreserve(struct ibchan_queue *queue)
{
	struct ibchan_work *work = ibchan_work_at(queue, queue->credit.posted - 1);

	ibchan_credit_untake(&queue->credit);
	if (queue->channel->flow)
		ibchan_flow_untake(queue->channel->flow, work->opcode, work->flags);
	ibchan_work_put_sges(work, work->num_sge);
	if (!work->done)
		ibchan_sink_cancel(queue->cq);
}
