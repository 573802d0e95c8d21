// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining a queue pair: everything that was posted is retired, or the device has forgotten it.
 *
 * It is our own: ib_drain_qp() waits without end and may come back undrained. Each queue has
 * a place and a cq entry in reserve for a marker. The qp goes to ERR, the markers are posted,
 * and when a marker has come everything before it has been retired. If one does not come in
 * time, destroying the qp ends all access, and what is left is retired by software.
 */
#include <linux/errno.h>

#include "channel.h"
#include "fault.h"
#include "post.h"

static bool has_drained(const struct ibchan_channel *ch)
{
	return READ_ONCE(ch->send.drained) && READ_ONCE(ch->recv.drained);
}

static void marker_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_queue *queue = container_of(wc->wr_cqe, struct ibchan_queue, marker);

	/* Another completion of it would count twice. */
	queue->marker.done = NULL;
	ibchan_queue_end_silent(queue);
	ibchan_queue_end_marker(queue);
	/* Pairs with itself: of the two markers the one that is done last sees the other one. */
	smp_mb();
	if (ibchan_device_has(queue->channel->qp.dev, IBCHAN_QUIRK_ERR_KEEPS_MR) &&
	    has_drained(queue->channel))
		ibchan_channel_break_on(queue->channel);
}

/*
 * Posts a request of the module's own by @post; @done is called once when it completes. The caller
 * holds the post lock, or is the only one left. Returns 0 or why it is not posted.
 */
int ibchan_post_own(struct ibchan_queue *queue, struct ib_cqe *cqe,
		    void (*done)(struct ib_cq *ib, struct ib_wc *wc),
		    int (*post)(struct ib_qp *qp, struct ib_cqe *cqe))
{
	int ret;

	cqe->done = done;
	ibchan_cq_count_posted(queue->cq, 1);
	ret = post(queue->channel->qp.ib, cqe);
	if (ret)
		ibchan_cq_count_posted(queue->cq, -1);
	return ret;
}

/* A part of the channel may have the marker's place, and posts it later. */
static int post_send_marker(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct ibchan_queue *queue = container_of(cqe, struct ibchan_queue, marker);

	return ibchan_parts_ask(defers_marker, queue->channel) ? 0 :
	       ibchan_post_send_marker(qp, cqe);
}

static void post_marker(struct ibchan_queue *queue,
			int (*post)(struct ib_qp *qp, struct ib_cqe *cqe))
{
	if (queue->marked)
		return;
	queue->marked = 1;
	if (ibchan_post_own(queue, &queue->marker, marker_done, post))
		queue->marked = 0;
}

/*
 * No call posts any more. May be called again, and is where a device keeps a region, when both
 * markers have come. Returns true when the device flushes what is posted, with a marker behind it,
 * or when it could not be stopped; false when it has forgotten it, and does not touch its memory
 * any more.
 */
bool ibchan_drain_begin(struct ibchan_channel *ch)
{
	bool in_bh = ibchan_device_has(ch->qp.dev, IBCHAN_QUIRK_FLUSHES_IN_BH);

	if (ibchan_device_has(ch->qp.dev, IBCHAN_QUIRK_ERR_IS_UNSAFE))
		return ibchan_qp_to_reset(&ch->qp) != 0;
	if (ibchan_device_has(ch->qp.dev, IBCHAN_QUIRK_ERR_KEEPS_MR) && has_drained(ch)) {
		/* The softirq that has flushed the last receive must not find RESET. */
		synchronize_rcu_expedited();
		return ibchan_qp_to_reset(&ch->qp) != 0;
	}
	if (in_bh)
		local_bh_disable();
	ibchan_qp_to_error(&ch->qp);
	post_marker(&ch->send, post_send_marker);
	post_marker(&ch->recv, ibchan_post_recv_marker);
	if (in_bh)
		local_bh_enable();
	return true;
}

/*
 * Without a marker nothing tells when the queue is empty: works that have completed by now are
 * reaped, as some devices remove the completions of a queue pair that they destroy.
 */
static void await_marker(struct ibchan_queue *queue, unsigned long deadline)
{
	if (queue->marked)
		ibchan_cq_wait_drained(queue->cq, &queue->drained, deadline);
	else
		ibchan_cq_reap(queue->cq, IBCHAN_REAP_BUDGET);
}

/* Has the device flush everything. Returns as ibchan_drain_begin() does. */
bool ibchan_drain(struct ibchan_channel *ch, unsigned long deadline)
{
	/* Destroying it does all that is left. */
	if (has_drained(ch))
		return true;
	ibchan_fault_rest(IBCHAN_WINDOW_DRAINING);
	if (!ibchan_drain_begin(ch))
		return false;
	await_marker(&ch->send, deadline);
	await_marker(&ch->recv, deadline);
	return true;
}
