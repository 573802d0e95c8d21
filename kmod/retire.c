// SPDX-License-Identifier: GPL-2.0-only
/*
 * How works end. The cq's owner retires them in order. A place belongs to the
 * poster again once its credit is returned, and a work to its owner once done()
 * is called, so everything is copied out of both before.
 */
#include <linux/errno.h>

#include "compat.h"
#include "counters.h"
#include "fault.h"
#include "flow.h"
#include "pending.h"
#include "trace.h"
#include "work.h"

static void fill_received(struct ibchan_completion *completion, const struct ib_wc *wc)
{
	completion->bytes = wc->byte_len;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		completion->imm = be32_to_cpu(wc->ex.imm_data);
		completion->flags |= IBCHAN_CQE_IMM;
	}
}

static __always_inline void fill_success(struct ibchan_completion *completion,
					 const struct ibchan_work *work,
					 const struct ib_wc *wc)
{
	*completion = (struct ibchan_completion){
		.wr_id = work->wr_id,
		.cookie = work->queue->channel->cookie,
		.opcode = work->opcode,
	};
	if (work->opcode == IBCHAN_OP_RECV)
		fill_received(completion, wc);
}

/* Only status, vendor_err and the cqe mean anything. */
static void fill_failure(struct ibchan_completion *completion, const struct ibchan_work *work,
			 const struct ib_wc *wc)
{
	*completion = (struct ibchan_completion){
		.wr_id = work->wr_id,
		.cookie = work->queue->channel->cookie,
		.status = wc->status,
		.error = ibchan_status_error(wc->status),
		.vendor_err = wc->vendor_err,
		.opcode = work->opcode,
	};
	/* All that are in flight flush when one has failed. */
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		ibchan_history_failed(work->queue->channel, completion);
	if (work->queue == &work->queue->channel->send)
		ibchan_channel_fail_send(work->queue->channel, wc);
	else
		ibchan_channel_fail(work->queue->channel, completion->error, wc->status);
}

/* The work's elements were given back; the caller owns the cq. */
static __always_inline void give_place_untold(struct ibchan_queue *queue, struct ibchan_cq *cq)
{
	ibchan_credit_give(&queue->credit);
	ibchan_count(works_retired, 1);
	cq->retired++;
}

static __always_inline void give_place(struct ibchan_queue *queue, struct ibchan_cq *cq,
				       const struct ibchan_completion *completion)
{
	trace_ibchan_complete(completion);
	give_place_untold(queue, cq);
}

/* By wr_id: a success that the poster did not ask for reaches only a sink that wants it. */
static void publish_to_sink(struct ibchan_cq *cq, u8 flags,
			    const struct ibchan_completion *completion)
{
	if (!(flags & IBCHAN_WR_UNSIGNALED) || completion->error)
		cq->sink->done(cq->priv, completion);
	else if (cq->sink->quiet)
		cq->sink->quiet(cq->priv, completion);
	else
		ibchan_sink_cancel(cq);
}

/* The device may still be busy with what a failed work named, until its qp is gone. */
static void park_sges(struct ibchan_work *work)
{
	struct llist_head *parked = &work->queue->channel->parked;
	struct ibchan_sge *sge = work->sges;
	u32 i;

	for (i = 0; i < work->num_sge; i++, sge++)
		if (sge->length && sge->mr->transient)
			ibchan_mr_park(sge->mr, parked);
}

static void work_retire(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_cq *cq = queue->cq;
	struct ibchan_completion *completion = &cq->completion;
	bool by_wr_id = !work->done;
	u8 flags = work->flags;

	if (wc->status == IB_WC_SUCCESS) {
		fill_success(completion, work, wc);
	} else {
		fill_failure(completion, work, wc);
		park_sges(work);
	}
	ibchan_work_put_sges(work, work->num_sge);
	ibchan_fault_linger(IBCHAN_WINDOW_RELEASED);
	give_place(queue, cq, completion);
	/* The place may have another work by now; a caller's own is still there. */
	if (by_wr_id)
		publish_to_sink(cq, flags, completion);
	else
		work->done(work, completion);
}

/* For works that have no completion of their own. */
static const struct ib_wc succeeded = { .status = IB_WC_SUCCESS };

/*
 * Works before this one that have not completed are unsignaled ones that have
 * succeeded: one that fails says so.
 */
static noinline void retire_up_to(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	u32 number = work->number;

	while (queue->credit.retired != number)
		work_retire(ibchan_work_at(queue, queue->credit.retired), &succeeded);
	work_retire(work, wc);
}

/* An immediate came with it. */
static __always_inline bool is_told_in_full(u8 opcode, const struct ib_wc *wc)
{
	return opcode == IBCHAN_OP_RECV && wc->wc_flags & IB_WC_WITH_IMM;
}

/* A work by wr_id that is done; its queue is the poster's again. */
static __always_inline void tell_sink(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_cq *cq = queue->cq;
	const struct ibchan_sink *sink = cq->sink;
	u64 cookie = queue->channel->cookie;
	u64 wr_id = work->wr_id;
	u8 opcode = work->opcode;

	if (is_told_in_full(opcode, wc) || !sink->succeeded || trace_ibchan_complete_enabled()) {
		fill_success(&cq->completion, work, wc);
		give_place(queue, cq, &cq->completion);
		sink->done(cq->priv, &cq->completion);
		return;
	}
	give_place_untold(queue, cq);
	sink->succeeded(cq->priv, wr_id, cookie, opcode == IBCHAN_OP_RECV ? wc->byte_len : 0,
			opcode);
}

/* The result goes where it is looked for, without a way over the cq. */
static __always_inline void tell_pending(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_pending *pending = container_of(work, struct ibchan_pending, work);
	struct ibchan_queue *queue = work->queue;

	fill_success(&pending->completion, work, wc);
	give_place(queue, queue->cq, &pending->completion);
	ibchan_pending_set_done(pending);
}

static __always_inline void release_sge(struct ibchan_work *work)
{
	struct ibchan_sge *sge = work->sges;

	if (work->flags & IBCHAN_WR_EXCLUSIVE)
		ibchan_busy_release(&sge->mr->busy, sge);
	ibchan_mr_drop(sge->mr);
}

/*
 * The same for nearly all works, without what they do not need. One of a batch has given
 * its element back already.
 */
static __always_inline void retire_plain(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_cq *cq = queue->cq;

	if (work->num_sge)
		release_sge(work);
	ibchan_fault_linger(IBCHAN_WINDOW_RELEASED);
	if (!work->done) {
		tell_sink(work, wc);
		return;
	}
	if (work->done == ibchan_pending_work_done) {
		tell_pending(work, wc);
		return;
	}
	fill_success(&cq->completion, work, wc);
	give_place(queue, cq, &cq->completion);
	work->done(work, &cq->completion);
}

static __always_inline void work_done(struct ibchan_work *work, struct ib_wc *wc)
{
	if (likely(work->flags & IBCHAN_WORK_PLAIN && wc->status == IB_WC_SUCCESS &&
		   work->queue->credit.retired == work->number))
		retire_plain(work, wc);
	else
		retire_up_to(work, wc);
}

/**
 * ibchan_work_done - the device has completed a work
 * @ib: its cq
 * @wc: how
 *
 * Context: under the right to reap the cq.
 */
void ibchan_work_done(struct ib_cq *ib, struct ib_wc *wc)
{
	work_done(container_of(wc->wr_cqe, struct ibchan_work, cqe), wc);
}

/* Other completions are of markers, probes and writes of credits. */
static __always_inline bool is_of_work(const struct ib_wc *wc)
{
	return likely(wc->wr_cqe->done == ibchan_work_done);
}

static __always_inline struct ibchan_work *work_of(const struct ib_wc *wc)
{
	return container_of(wc->wr_cqe, struct ibchan_work, cqe);
}

static __always_inline bool holds_range(const struct ibchan_work *work)
{
	return (work->flags & (IBCHAN_WORK_PLAIN | IBCHAN_WR_EXCLUSIVE)) ==
	       (IBCHAN_WORK_PLAIN | IBCHAN_WR_EXCLUSIVE);
}

/*
 * From one region to the next, or NULL: what @works of the last one have held is given
 * back when it is not locked any more.
 */
static __always_inline void change_region(struct ibchan_mr **locked, struct ibchan_mr *next,
					  u32 *works)
{
	struct ibchan_mr *last = *locked;

	if (likely(last == next))
		return;
	ibchan_busy_lock(locked, next);
	if (last)
		ibchan_mr_drop_many(last, *works);
	*works = 0;
}

/*
 * Releases the ranges of plain works that have succeeded, before their owners are told.
 * Mostly all are of one region, which then is locked and let go of but once.
 */
static noinline void release_ranges(const struct ib_wc *wc, int num)
{
	struct ibchan_mr *locked = NULL;
	const struct ib_wc *end;
	u32 works = 0;

	for (end = wc + num; wc < end; wc++) {
		struct ibchan_work *work = work_of(wc);

		if (!is_of_work(wc) || wc->status != IB_WC_SUCCESS || !holds_range(work))
			continue;
		change_region(&locked, work->sges->mr, &works);
		ibchan_busy_release_locked(&locked->busy, work->sges);
		work->num_sge = 0;
		works++;
	}
	change_region(&locked, NULL, &works);
}

/* Two works gain nothing by a pass. Where the first one has no range, most have none. */
static __always_inline bool worth_a_pass(const struct ib_wc *wc, int num)
{
	return num > 2 && is_of_work(wc) && holds_range(work_of(wc));
}

/**
 * ibchan_retire - end what the device has completed
 * @cq: its cq
 * @num: of its @wc, 1 and up
 *
 * Context: under the right to reap the cq.
 */
void ibchan_retire(struct ibchan_cq *cq, int num)
{
	struct ib_wc *wc, *end = &cq->wc[num];

	for (wc = cq->wc; wc < end; wc++)
		ibchan_fault_completion(wc);
	wc = cq->wc;
	if (worth_a_pass(wc, num))
		release_ranges(wc, num);
	do {
		if (is_of_work(wc))
			work_done(work_of(wc), wc);
		else
			wc->wr_cqe->done(cq->ib, wc);
	} while (++wc < end);
}

/**
 * ibchan_queue_end_silent - end the works that will have no completion
 * @queue: nothing is posted any more, and all that has a completion is retired
 *
 * One that fails has one, and so has each receive.
 *
 * Context: under the right to reap the cq.
 */
void ibchan_queue_end_silent(struct ibchan_queue *queue)
{
	struct ibchan_credit *credit = &queue->credit;

	if (queue == &queue->channel->recv)
		return;
	while (credit->retired != credit->posted)
		work_retire(ibchan_work_at(queue, credit->retired), &succeeded);
}

/* A marker that counts as posted will not come. Under the right to reap the cq. */
void ibchan_queue_give_marker_up(struct ibchan_queue *queue)
{
	queue->cq->retired++;
	/* Pairs with the acquire of the code that waits for the drain. */
	smp_store_release(&queue->drained, 1);
}

/**
 * ibchan_queue_flush - end the works that the device has forgotten
 * @queue: its qp is destroyed or reset, and its cq is swept
 * @max: how many works, at most
 *
 * Context: under the right to reap the cq.
 * Return: whether there are more.
 */
bool ibchan_queue_flush(struct ibchan_queue *queue, u32 max)
{
	static const struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };
	struct ibchan_credit *credit = &queue->credit;

	for (; credit->retired != credit->posted; max--) {
		if (!max)
			return true;
		work_retire(ibchan_work_at(queue, credit->retired), &wc);
	}
	if (queue == &queue->channel->send)
		ibchan_watch_flush(queue->channel);
	if (queue->marked && !queue->drained)
		ibchan_queue_give_marker_up(queue);
	if (queue == &queue->channel->send && queue->channel->flow)
		ibchan_flow_flush(queue->channel->flow);
	return false;
}
