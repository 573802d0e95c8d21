// SPDX-License-Identifier: GPL-2.0-only
/*
 * How works end. The cq's owner retires them in order. A place of the queue may be used
 * again by the poster as soon as it is given back, and the owner of a work may free it
 * as soon as done() is called. So everything is copied out of both before.
 */
#include <linux/errno.h>

#include "compat.h"
#include "counters.h"
#include "fault.h"
#include "trace.h"

#include "work.h"

static void fill_received(struct ibchan_completion *completion, const struct ibchan_queue *queue,
			  const struct ib_wc *wc)
{
	completion->bytes = wc->byte_len;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		completion->imm = be32_to_cpu(wc->ex.imm_data);
		completion->flags |= IBCHAN_CQE_IMM;
	} else if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		completion->imm = wc->ex.invalidate_rkey;
		completion->flags |= IBCHAN_CQE_INVALIDATED;
		ibchan_key_invalidated(queue->channel->qp.pd, completion->imm);
	}
}

/* Only status, vendor_err and the cqe mean anything. */
static noinline void fill_failure(struct ibchan_completion *completion,
				  struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_channel *ch = work->queue->channel;
	struct ib_wc blamed;

	if (work->flags & IBCHAN_WR_SGL)
		wc = ibchan_sgl_blame(work, wc, &blamed);
	completion->status = wc->status;
	completion->error = ibchan_status_error(wc->status);
	completion->vendor_err = wc->vendor_err;
	/* All that are in flight flush when one has failed. */
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		ibchan_history_failed(ch, completion);
	if (work->queue == &ch->send)
		ibchan_channel_fail_send(ch, wc);
	else
		ibchan_channel_fail_responder(ch, completion->error, wc->status);
}

/* The device may still be busy with what a failed work named, until its qp is gone. */
static noinline void park_mrs(struct ibchan_work *work)
{
	struct llist_head *parked = &work->queue->channel->parked;
	struct ibchan_kept *kept = work->kept;
	u32 i;

	for (i = 0; i < work->num_sge; i++, kept = ibchan_kept_next(work->queue, kept))
		if (kept->mr->transient)
			ibchan_mr_park(kept->mr, parked);
}

/* By wr_id: a success that the poster did not ask for reaches only a sink that wants it. */
static __always_inline void publish_to_sink(struct ibchan_cq *cq, u8 flags,
					    const struct ibchan_completion *completion)
{
	if (likely(!(flags & IBCHAN_WR_UNSIGNALED) || completion->error))
		cq->sink->done(cq->priv, completion);
	else if (cq->sink->quiet)
		cq->sink->quiet(cq->priv, completion);
	else
		ibchan_sink_cancel(cq, 1);
}

/* Ends a work: it gives back what it holds, then its place; then its owner is told. */
static __always_inline void work_retire(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_cq *cq = queue->cq;
	struct ibchan_completion *completion = &cq->completion;
	u8 flags = work->flags;
	int begun;

	if (unlikely(flags & (IBCHAN_WORK_PART | IBCHAN_WR_SGL))) {
		if (flags & IBCHAN_WORK_PART) {
			ibchan_sgl_retire_part(work, wc);
			return;
		}
		/* It has no elements from here on. */
		ibchan_sgl_unmap(work);
	}
	*completion = (struct ibchan_completion){
		.wr_id = work->wr_id,
		.cookie = queue->channel->cookie,
		.opcode = work->opcode,
	};
	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		fill_failure(completion, work, wc);
		park_mrs(work);
	} else if (work->opcode == IBCHAN_OP_RECV) {
		fill_received(completion, queue, wc);
		if (unlikely(READ_ONCE(queue->channel->state) == IBCHAN_CHANNEL_CONNECTING))
			ibchan_parts_call(heard_peer, queue->channel);
	}
	ibchan_work_put_mrs(queue, work);
	ibchan_fault_linger(IBCHAN_WINDOW_RELEASED);
	trace_ibchan_complete(completion);
	/* From here on the work may be posted again. */
	WRITE_ONCE(work->cqe.done, NULL);
	ibchan_places_give(&queue->places);
	ibchan_count(works_retired, 1);
	cq->retired++;
	begun = ibchan_callback_begin(cq, NULL);
	/* A work of the queue's own never has a done(), whatever it is by now. */
	if (work->done)
		work->done(work, completion);
	else
		publish_to_sink(cq, flags, completion);
	ibchan_callback_end(cq, NULL, begun);
}

/* The oldest of a queue. */
static noinline void retire_next(struct ibchan_queue *queue, const struct ib_wc *wc)
{
	work_retire(ibchan_work_at(queue, queue->places.retired), wc);
}

/* For works that have no completion of their own. */
static const struct ib_wc succeeded = { .status = IB_WC_SUCCESS };
static const struct ib_wc flushed = { .status = IB_WC_WR_FLUSH_ERR };

/*
 * Ends the works before that one, which have no completion of their own. False: it is not in
 * flight, or one that is to complete before it has not.
 */
static noinline bool retire_before(struct ibchan_queue *queue, u32 number)
{
	struct ibchan_places *places = &queue->places;
	struct ibchan_work *work;

	if (number - places->retired >= ibchan_places_in_flight(places))
		return false;
	while (places->retired != number) {
		work = ibchan_work_at(queue, places->retired);
		if (!(work->flags & (IBCHAN_WR_UNSIGNALED | IBCHAN_WORK_PART)))
			return false;
		retire_next(queue, &succeeded);
	}
	return true;
}

/*
 * Under the right to reap the cq. Works before this one that have not completed are unsignaled ones
 * that have succeeded: one that fails says so. A completion that cannot be, such as the second one
 * of a work that was posted again meanwhile, ends nothing: its cq is not relied on any more.
 */
void ibchan_work_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_work *work = container_of(wc->wr_cqe, struct ibchan_work, cqe);
	struct ibchan_queue *queue = work->queue;

	if (unlikely(queue->places.retired != work->number) &&
	    !retire_before(queue, work->number)) {
		ibchan_cq_distrust(queue->cq);
		return;
	}
	work_retire(work, wc);
}

/*
 * Ends the works that will have no completion; nothing is posted any more, and all that has a
 * completion is retired. One that fails has one, and so has each receive. Parts of a scatterlist
 * that the device did not take end flushed. Under the right to reap the cq.
 */
void ibchan_queue_end_silent(struct ibchan_queue *queue)
{
	struct ibchan_places *places = &queue->places;
	bool is_cut;

	if (queue == &queue->channel->recv)
		return;
	while (places->retired != places->posted) {
		/* A part of a request that the device did not take has not succeeded. */
		is_cut = queue->cut && (s32)(places->retired - queue->cut_at) >= 0;
		retire_next(queue, is_cut ? &flushed : &succeeded);
	}
}

/* The marker has come, or one that counts as posted will not. Under the right to reap the cq. */
void ibchan_queue_end_marker(struct ibchan_queue *queue)
{
	queue->cq->retired++;
	/* Pairs with the load-acquire in ibchan_cq_wait_drained(). */
	smp_store_release(&queue->drained, 1);
}

/*
 * Ends up to @max works that the device has forgotten: their qp is destroyed or reset, and their
 * cq is swept. Under the right to reap the cq. Returns whether there are more.
 */
bool ibchan_queue_flush(struct ibchan_queue *queue, u32 max)
{
	struct ibchan_places *places = &queue->places;

	for (; places->retired != places->posted; max--) {
		if (!max)
			return true;
		retire_next(queue, &flushed);
	}
	if (queue == &queue->channel->send)
		ibchan_parts_call(flush, queue->channel);
	if (queue->marked && !queue->drained)
		ibchan_queue_end_marker(queue);
	return false;
}

/**
 * ibchan_channel_arm - have a channel's completions reaped by themselves
 * @ch: the channel; RCU or the caller keeps its memory
 * @except: a cq that the caller is about to wait on, or NULL
 *
 * As ibchan_cq_arm(), for the cqs of the channel.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_channel_arm(struct ibchan_channel *ch, const struct ibchan_cq *except)
{
	if (ch->send.cq != except)
		ibchan_cq_arm(ch->send.cq);
	if (ch->recv.cq != except && ch->recv.cq != ch->send.cq)
		ibchan_cq_arm(ch->recv.cq);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_arm, IBCHAN_NS);

/**
 * ibchan_channel_reap - retire what has completed of a channel
 * @ch: the channel; RCU or the caller keeps its memory
 * @except: a cq that the caller is about to wait on, or NULL
 *
 * As ibchan_cq_reap(), for the cqs of the channel, up to 256 completions of each.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_channel_reap(struct ibchan_channel *ch, const struct ibchan_cq *except)
{
	if (ch->send.cq != except)
		ibchan_cq_reap(ch->send.cq, IBCHAN_REAP_BUDGET);
	if (ch->recv.cq != except && ch->recv.cq != ch->send.cq)
		ibchan_cq_reap(ch->recv.cq, IBCHAN_REAP_BUDGET);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_reap, IBCHAN_NS);
