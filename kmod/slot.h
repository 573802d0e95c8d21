/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The short way for a request by wr_id, see slot.c. Inline is what a request that comes
 * alone does, because most do.
 */
#ifndef IBCHAN_SLOT_H
#define IBCHAN_SLOT_H

#include <linux/percpu.h>

#include "counters.h"
#include "place.h"
#include "trace.h"
#include "work.h"

bool ibchan_slot_atomic(struct ibchan_channel *ch, const struct ibchan_wr *wr);

/* How many completions there is room for now, up to @num; it is taken. */
static __always_inline u32 ibchan_sink_take(const struct ibchan_cq *cq, u32 num)
{
	const struct ibchan_sink *sink = cq->sink;
	u32 got = 0;

	if (sink->reserve_many)
		return sink->reserve_many(cq->priv, num);
	if (!sink->reserve)
		return num;
	while (got < num && !sink->reserve(cq->priv))
		got++;
	return got;
}

static __always_inline void ibchan_sink_give(struct ibchan_cq *cq, u32 num)
{
	for (; unlikely(num); num--)
		ibchan_sink_cancel(cq);
}

static __always_inline void ibchan_slot_fill(struct ibchan_sge *sge,
					     const struct ibchan_sge *from,
					     struct ib_sge *out, struct ibchan_work *work)
{
	const struct ibchan_mr *mr = from->mr;
	u64 offset = from->offset;
	u32 length = from->length;

	sge->mr = from->mr;
	sge->offset = offset;
	sge->length = length;
	sge->work = work;
	out->addr = mr->addr + offset;
	out->length = length;
	out->lkey = mr->lkey;
}

/* Takes the element's region, and its range if that is @exclusive. */
static __always_inline bool ibchan_slot_range(struct ibchan_sge *sge, bool exclusive, bool writes)
{
	struct ibchan_mr *mr = sge->mr;

	if (unlikely(!ibchan_mr_get(mr)))
		return false;
	if (!exclusive || likely(!ibchan_busy_take(&mr->busy, sge, writes, NULL)))
		return true;
	ibchan_mr_drop(mr);
	return false;
}

/*
 * Where the next one goes: a range is seen by others once it is taken, so that is filled in.
 * @wr has one element. It is read before anything is written, so that the compiler does not
 * read again what has just been checked.
 */
static __always_inline struct ibchan_work *ibchan_slot_place(struct ibchan_queue *queue,
							     u32 number,
							     const struct ibchan_wr *wr,
							     struct ib_sge *out)
{
	struct ibchan_work *work = &queue->slots[number & queue->credit.mask];
	u32 form = wr->form | IBCHAN_FORM_PLAIN;
	u64 wr_id = wr->wr_id;

	ibchan_slot_fill(work->sges, wr->sges, out, work);
	work->wr_id = wr_id;
	work->number = number;
	work->form = form;
	return work;
}

/* What it needs: room for its completion, its region and range, its place. False: none is taken. */
static __always_inline bool ibchan_slot_take(struct ibchan_queue *queue,
					     struct ibchan_work *work, bool writes)
{
	if (unlikely(!ibchan_sink_take(queue->cq, 1)))
		return false;
	if (unlikely(!ibchan_slot_range(work->sges, work->flags & IBCHAN_WR_EXCLUSIVE, writes))) {
		ibchan_sink_give(queue->cq, 1);
		return false;
	}
	queue->works[work->number & queue->credit.mask] = work;
	ibchan_credit_take_signaled(&queue->credit, work->number);
	trace_ibchan_post(work);
	return true;
}

/* The next place for one that comes alone; false: there is none. */
static __always_inline bool ibchan_slot_next(const struct ibchan_queue *queue, u32 *number)
{
	return likely(ibchan_credit_next(&queue->credit, number) && queue->slots);
}

/**
 * struct ibchan_copies - what requests carry themselves, until the post returns
 * @bytes: of each request of a chain
 *
 * One on each cpu: the poster keeps bottom halves off from here until the driver has it.
 */
struct ibchan_copies {
	u8 bytes[IBCHAN_CHAIN_WRS][IBCHAN_MAX_COPIED];
};

DECLARE_PER_CPU_ALIGNED(struct ibchan_copies, ibchan_copies);

/*
 * A few bytes of a send or a write are copied, where that is cheaper than to have the device
 * look for them. The range is in flight all the same.
 */
static __always_inline void ibchan_slot_copy(const struct ibchan_channel *ch,
					     const struct ibchan_sge *from, u32 index,
					     union ibchan_send_wr *out, struct ib_sge *sge)
{
	u8 *copied = this_cpu_ptr(&ibchan_copies)->bytes[index];

	if (from->length > ch->max_copied ||
	    !ibchan_place_copy(from->mr, from->offset, from->length, copied))
		return;
	sge->addr = (uintptr_t)copied;
	out->wr.send_flags |= IB_SEND_INLINE;
	ibchan_count(works_copied, 1);
}

/**
 * ibchan_slot_send - build a chain of one request for the send queue
 * @ch: the channel
 * @wr: the request, by wr_id; no receive
 *
 * Context: process or softirq, under the post lock.
 * Return: whether it was taken.
 */
static __always_inline bool ibchan_slot_send(struct ibchan_channel *ch, const struct ibchan_wr *wr)
{
	union ibchan_send_wr *out = ch->chain.send;
	struct ib_sge *sge = ch->chain.sges;
	struct ibchan_work *work;
	u32 number;

	out->wr.sg_list = sge;
	out->wr.num_sge = 1;
	if (unlikely(!ibchan_send_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE)))
		return ibchan_slot_atomic(ch, wr);
	if (unlikely(!ibchan_slot_next(&ch->send, &number)))
		return false;
	work = ibchan_slot_place(&ch->send, number, wr, sge);
	if (unlikely(!ibchan_slot_take(&ch->send, work, wr->opcode == IBCHAN_OP_READ)))
		return false;
	ibchan_build_send(out, wr, &work->cqe);
	if (wr->opcode != IBCHAN_OP_READ)
		ibchan_slot_copy(ch, work->sges, 0, out, sge);
	return true;
}

/**
 * ibchan_slot_recv - build a chain of one request for the receive queue
 * @ch: the channel
 * @wr: the receive, by wr_id
 *
 * Context: process or softirq, under the post lock.
 * Return: whether it was taken.
 */
static __always_inline bool ibchan_slot_recv(struct ibchan_channel *ch, const struct ibchan_wr *wr)
{
	struct ib_recv_wr *out = ch->chain.recv;
	struct ib_sge *sge = ch->chain.sges;
	struct ibchan_work *work;
	u32 number;

	if (unlikely(!ibchan_recv_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE) ||
		     !ibchan_slot_next(&ch->recv, &number)))
		return false;
	work = ibchan_slot_place(&ch->recv, number, wr, sge);
	if (unlikely(!ibchan_slot_take(&ch->recv, work, true)))
		return false;
	out->wr_cqe = &work->cqe;
	out->sg_list = sge;
	out->num_sge = 1;
	return true;
}

#endif /* IBCHAN_SLOT_H */
