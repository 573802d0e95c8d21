// SPDX-License-Identifier: GPL-2.0-only
/*
 * The short way for requests by wr_id: as many leading ones as are plain (check.h) get
 * a work of the channel's own, and a place in the chain. What they need is taken for all
 * of them at once where that is possible: room in the sink, places, the lock of the
 * region's ranges. A request that does not fit goes the long way (reserve.c), which is also
 * where a refused request learns why.
 */
#include <linux/errno.h>

#include "slot.h"

DEFINE_PER_CPU_ALIGNED(struct ibchan_copies, ibchan_copies);

/* Places of the queue that are free, up to @num. */
static __always_inline u32 places(const struct ibchan_queue *queue, u32 num)
{
	u32 taken = ibchan_credit_in_flight(&queue->credit);

	return min(num, queue->credit.depth - taken);
}

static __always_inline bool is_for(const struct ibchan_wr *wr, bool receives)
{
	bool is_receive = wr->opcode == IBCHAN_OP_RECV;

	return !wr->work && is_receive == receives;
}

/*
 * How many leading requests are for this queue, and bring no work. Where all complete on one cq,
 * more than these do no harm: they need room as well, and the caller looks at each.
 */
static __always_inline u32 leading(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
				   u32 num, bool receives)
{
	u32 i;

	if (likely(ch->send.cq == ch->recv.cq && num && is_for(&wr[num - 1], receives)))
		return num;
	for (i = 0; i < num && is_for(&wr[i], receives); i++)
		;
	return i;
}

/**
 * struct run - requests in a row
 * @queue: where they go
 * @number: of the next one's place
 * @end: of the one behind the last
 * @mr: what they name; its ranges are locked; NULL: none
 * @spare: references to it that no request needs yet
 */
struct run {
	struct ibchan_queue *queue;
	u32 number;
	u32 end;
	struct ibchan_mr *mr;
	u32 spare;
};

static __always_inline void run_end(struct run *run)
{
	struct ibchan_mr *mr = run->mr;

	ibchan_busy_lock(&run->mr, NULL);
	if (unlikely(run->spare))
		ibchan_mr_drop_many(mr, run->spare);
	run->spare = 0;
}

/* A reference for the next request, and for the others that may follow. */
static __always_inline bool run_get(struct run *run, struct ibchan_mr *mr)
{
	u32 left = run->end - run->number;

	if (likely(run->spare && run->mr == mr)) {
		run->spare--;
		return true;
	}
	run_end(run);
	if (unlikely(!refcount_add_not_zero(left, &mr->users)))
		return false;
	ibchan_busy_lock(&run->mr, mr);
	run->spare = left - 1;
	return true;
}

/* Takes the element's region, and its range, under the run's lock. */
static __always_inline bool take_range(struct run *run, struct ibchan_sge *sge, bool writes)
{
	if (unlikely(!run_get(run, sge->mr)))
		return false;
	if (likely(!ibchan_busy_take_locked(&sge->mr->busy, sge, writes, NULL)))
		return true;
	run->spare++;
	return false;
}

/* False when something is in the way; then nothing is taken. */
static __always_inline bool take(struct run *run, struct ibchan_work *work, bool writes)
{
	struct ibchan_queue *queue = run->queue;
	struct ibchan_sge *sge = work->sges;
	bool taken = work->flags & IBCHAN_WR_EXCLUSIVE ? take_range(run, sge, writes) :
							 ibchan_mr_get(sge->mr);

	if (unlikely(!taken))
		return false;
	queue->works[run->number++ & queue->credit.mask] = work;
	trace_ibchan_post(work);
	return true;
}

/* As many of @num as there are places and there is room for; it is taken. False: none. */
static __always_inline bool run_begin(struct run *run, struct ibchan_queue *queue, u32 num)
{
	num = places(queue, num);
	if (unlikely(!num || !queue->slots))
		return false;
	run->queue = queue;
	run->number = queue->credit.posted;
	run->end = run->number + ibchan_sink_take(queue->cq, num);
	return true;
}

/* The requests that were taken are posted next: how many. */
static __always_inline u32 finish(struct run *run)
{
	struct ibchan_queue *queue = run->queue;
	u32 num = run->number - queue->credit.posted;

	run_end(run);
	ibchan_sink_give(queue->cq, run->end - run->number);
	if (likely(num))
		ibchan_credit_take_signaled(&queue->credit, run->number - 1);
	return num;
}

/* An atomic writes into its element, so the range is exclusive. No lock is held. */
static noinline bool build_atomic(struct ibchan_channel *ch, u32 number,
				  const struct ibchan_wr *wr, union ibchan_send_wr *out,
				  struct ib_sge *sge)
{
	struct run run = { .queue = &ch->send, .number = number, .end = number + 1 };
	struct ibchan_work *work;
	bool taken;

	if (!ibchan_atomic_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE))
		return false;
	work = ibchan_slot_place(&ch->send, number, wr, sge);
	taken = take(&run, work, true);
	run_end(&run);
	if (!taken)
		return false;
	ibchan_build_send(out, wr, &work->cqe);
	ibchan_build_rare(out, wr);
	return true;
}

static __always_inline bool build_send(struct ibchan_channel *ch, struct run *run,
				       const struct ibchan_wr *wr, union ibchan_send_wr *out,
				       struct ib_sge *sge)
{
	bool scatters = wr->opcode == IBCHAN_OP_READ;
	struct ibchan_work *work;

	if (unlikely(!ibchan_send_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE))) {
		run_end(run);
		if (!build_atomic(ch, run->number, wr, out, sge))
			return false;
		run->number++;
		return true;
	}
	work = ibchan_slot_place(run->queue, run->number, wr, sge);
	if (unlikely(!take(run, work, scatters)))
		return false;
	ibchan_build_send(out, wr, &work->cqe);
	if (!scatters)
		ibchan_slot_copy(ch, work->sges, out - ch->chain.send, out, sge);
	return true;
}

/**
 * ibchan_slot_sends - build the beginning of a chain for the send queue
 * @ch: the channel
 * @wr: the first request
 * @left: how many there are, up to what fits a chain
 *
 * Context: process or softirq, under the post lock.
 * Return: how many leading ones were taken.
 */
u32 ibchan_slot_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left)
{
	union ibchan_send_wr *out = ch->chain.send;
	struct ib_sge *sge = ch->chain.sges;
	struct run run = {};

	if (unlikely(!run_begin(&run, &ch->send, leading(ch, wr, left, false))))
		return 0;
	for (; run.number != run.end; wr++, out++, sge++) {
		if (unlikely(!is_for(wr, false) ||
			     !build_send(ch, &run, wr, out, sge)))
			break;
		out->wr.sg_list = sge;
		out->wr.num_sge = 1;
		out->wr.next = &out[1].wr;
	}
	return finish(&run);
}

/**
 * ibchan_slot_recvs - build the beginning of a chain for the receive queue
 * @ch: the channel
 * @wr: the first request
 * @left: how many there are, up to what fits a chain
 *
 * Context: process or softirq, under the post lock.
 * Return: how many leading ones were taken.
 */
u32 ibchan_slot_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left)
{
	struct ib_recv_wr *out = ch->chain.recv;
	struct ib_sge *sge = ch->chain.sges;
	struct ibchan_work *work;
	struct run run = {};

	if (unlikely(!run_begin(&run, &ch->recv, leading(ch, wr, left, true))))
		return 0;
	for (; run.number != run.end; wr++, out++, sge++) {
		if (unlikely(!is_for(wr, true) ||
			     !ibchan_recv_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE)))
			break;
		work = ibchan_slot_place(run.queue, run.number, wr, sge);
		if (unlikely(!take(&run, work, true)))
			break;
		out->wr_cqe = &work->cqe;
		out->sg_list = sge;
		out->num_sge = 1;
		out->next = out + 1;
	}
	return finish(&run);
}

/**
 * ibchan_slot_atomic - build a chain of one atomic
 * @ch: the channel
 * @wr: the request, by wr_id; anything for the send queue
 *
 * Context: process or softirq, under the post lock.
 * Return: whether it was taken.
 */
bool ibchan_slot_atomic(struct ibchan_channel *ch, const struct ibchan_wr *wr)
{
	struct ibchan_work *work;
	u32 number;

	if (!ibchan_atomic_is_plain(ch, wr, IBCHAN_WR_EXCLUSIVE) ||
	    !ibchan_slot_next(&ch->send, &number))
		return false;
	work = ibchan_slot_place(&ch->send, number, wr, ch->chain.sges);
	if (!ibchan_slot_take(&ch->send, work, true))
		return false;
	ibchan_build_send(ch->chain.send, wr, &work->cqe);
	ibchan_build_rare(ch->chain.send, wr);
	return true;
}
