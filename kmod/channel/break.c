// SPDX-License-Identifier: GPL-2.0-only
/*
 * The states of a channel, and its one way to die.
 *
 * It is marked, from any context, and takes no more work. If the device has not ended
 * the queue pair by itself, a work item does; everything posted then completes flushed.
 */
#include <linux/errno.h>

#include "private.h"
#include "compat.h"
#include "fault.h"
#include "trace.h"

/* The caller holds the state lock. */
bool ibchan_channel_move_state(struct ibchan_channel *ch, u32 to)
{
	u32 from = ch->state;

	lockdep_assert_held(&ch->state_lock);
	if (!ibchan_state_may(from, to))
		return false;
	/* Pairs with a caller that reads the state, then the error that came with it. */
	smp_store_release(&ch->state, to);
	trace_ibchan_state(ch->cookie, from, to, ch->error);
	return true;
}

bool ibchan_channel_change_state(struct ibchan_channel *ch, u32 to)
{
	guard(spinlock_irqsave)(&ch->state_lock);
	return ibchan_channel_move_state(ch, to);
}

/*
 * Why a channel takes no work: ENODEV when its device has left, else the errno of its first error,
 * positive. RCU or the caller keeps its memory.
 */
u32 ibchan_channel_cause(const struct ibchan_channel *ch)
{
	return READ_ONCE(ch->device_gone) ? ENODEV : READ_ONCE(ch->error);
}

/*
 * Tells the consumer of the end; behind connected_to(), if that is being called. The state
 * lock is not held any more, but others may be. Bottom halves are off, so that a consumer that
 * closes the channel does not wait for them.
 */
static void tell_broken(struct ibchan_channel *ch)
{
	void (*broken)(void *priv, int error) = NULL;
	bool may_disable = !irqs_disabled();
	int begun;

	wake_up_all(&ch->state_wait);
	scoped_guard(spinlock_irqsave, &ch->state_lock) {
		ch->tell_later = ch->telling;
		if (!ch->telling)
			broken = READ_ONCE(ch->broken);
	}
	if (!broken)
		return;
	if (may_disable)
		local_bh_disable();
	begun = ibchan_callback_begin(ch->recv.cq, ch->send.cq);
	broken(ch->priv, -(int)READ_ONCE(ch->error));
	ibchan_callback_end(ch->recv.cq, ch->send.cq, begun);
	if (may_disable)
		local_bh_enable();
}

/* In steps: other channels may have much there, and the cq's owner keeps all others waiting. */
static void sweep_cq(struct ibchan_cq *cq)
{
	u32 swept = 0;
	bool more;

	do {
		ibchan_cq_own(cq);
		more = ibchan_cq_sweep(cq, IBCHAN_REAP_BUDGET);
		ibchan_cq_disown(cq);
		ibchan_cq_leave(cq);
		swept += IBCHAN_REAP_BUDGET;
		cond_resched();
	} while (more && swept < cq->entries);
}

/*
 * How long after its port went down a failure of a channel is put down to that, in ms. A device
 * may retry for seconds, and the port be up again when the work fails.
 */
#define OUTAGE_MS	10000

/*
 * The two queues complete in any order, so what was flushed may be seen before the failure
 * that it comes from. That lies in one of the cqs by now, or nothing tells why.
 */
void ibchan_channel_cause_turn(struct ibchan_turn *turn)
{
	struct ibchan_channel *ch = container_of(turn, struct ibchan_channel, cause_turn);
	unsigned long down_at;
	bool down;
	u32 status;

	guard(ibchan_noio)();
	ibchan_fault_linger(IBCHAN_WINDOW_SEEKING);
	sweep_cq(ch->send.cq);
	if (ch->recv.cq != ch->send.cq)
		sweep_cq(ch->recv.cq);
	status = READ_ONCE(ch->status);
	/* For the lack of a link some devices flush, and name no work that failed. */
	if (status == IB_WC_LOC_QP_OP_ERR || status == IB_WC_WR_FLUSH_ERR) {
		down = ibchan_port_is_down(ch->qp.dev, READ_ONCE(ch->qp.gid.port));
		/* An event may have come while the port was asked. */
		down_at = READ_ONCE(ch->port_down_at);
		down |= down_at && ch->broken_at - down_at < msecs_to_jiffies(OUTAGE_MS);
		scoped_guard(spinlock_irqsave, &ch->state_lock)
			if (down)
				WRITE_ONCE(ch->error, ENETDOWN);
	}
	tell_broken(ch);
}

/* How a channel breaks, and what follows. */
enum break_how {
	BREAK_MOVES = BIT(0),		/* a worker moves the qp to ERR */
	BREAK_ASKED = BIT(1),		/* the same, and the peer is told as well */
	BREAK_LATER = BIT(2),		/* a worker looks for the cause, and calls broken() */
	BREAK_FAILED = BIT(3),		/* the device has reported a failure */
	BREAK_UNCONNECTED = BIT(4),	/* only if the channel is connecting */
};

/*
 * The first error wins, and says so. But the first failure behind a flush is what that came from;
 * one that the device reports beside the cqs may be later than the search. The works are queued
 * under the lock: none is any more once closing has set CLOSED.
 */
static void break_channel(struct ibchan_channel *ch, u32 error, u32 status, u32 how)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&ch->state_lock, flags);
	first = how & BREAK_UNCONNECTED ? ch->state == IBCHAN_CHANNEL_CONNECTING :
					  ibchan_state_may(ch->state, IBCHAN_CHANNEL_BROKEN);
	if (first || (how & BREAK_FAILED && ch->status == IB_WC_WR_FLUSH_ERR)) {
		WRITE_ONCE(ch->error, error);
		WRITE_ONCE(ch->status, status);
	}
	if (first) {
		ch->broken_at = jiffies ?: 1;
		ibchan_history_add(ch, IBCHAN_HISTORY_BROKEN, error, status, 0);
		ibchan_cq_add_broken(ch->send.cq);
		ibchan_cq_add_broken(ch->recv.cq);
		ibchan_channel_move_state(ch, IBCHAN_CHANNEL_BROKEN);
	}
	if (first && how & BREAK_LATER)
		ibchan_turn_queue(&ch->cause_turn);
	if (how & (BREAK_MOVES | BREAK_ASKED) && ch->state == IBCHAN_CHANNEL_BROKEN &&
	    (first || !(how & BREAK_UNCONNECTED))) {
		if (how & BREAK_ASKED)
			WRITE_ONCE(ch->asked, true);
		ibchan_turn_queue(&ch->break_turn);
	}
	spin_unlock_irqrestore(&ch->state_lock, flags);
	if (first && how & BREAK_LATER)
		wake_up_all(&ch->state_wait);
	else if (first)
		tell_broken(ch);
}

/*
 * The device has reported a failure. A broken channel flushes its works, one after the other: that
 * is no news. A device that has ended the qp by itself need not flush both queues before it is
 * asked to, so most callers have BREAK_MOVES in @how.
 *
 * With the connection ends the queue pair on iWARP, and the device may say so before the
 * connection manager does: everything is flushed, or siw fails the work that was under way
 * and reports the queue pair as well. A message that siw itself cannot send looks the same.
 */
static void fail_channel(struct ibchan_channel *ch, u32 error, u32 status, u32 how)
{
	bool is_vague = status == IB_WC_WR_FLUSH_ERR || status == IB_WC_LOC_QP_OP_ERR;
	u32 state = READ_ONCE(ch->state);

	if (state >= IBCHAN_CHANNEL_BROKEN && status == IB_WC_WR_FLUSH_ERR)
		return;
	if (ch->qp.gid.iwarp && (is_vague || status == IBCHAN_STATUS_FATAL_ERR)) {
		/* The answer, or the stage's deadline, says why, and with which data. */
		if (state == IBCHAN_CHANNEL_CONNECTING)
			return;
		error = ECONNRESET;
	} else if (is_vague) {
		how |= BREAK_LATER;
	}
	break_channel(ch, error, status, how | BREAK_FAILED);
}

/*
 * The device has reported an error that is not a work's: a positive errno, and an enum
 * ib_wc_status or a code of this module's.
 */
void ibchan_channel_fail(struct ibchan_channel *ch, u32 error, u32 status)
{
	fail_channel(ch, error, status, BREAK_MOVES);
}

/*
 * As ibchan_channel_fail(), for the failure of what was sent. A peer whose device does not take
 * part in the failure, as where it has no receive or does not answer in time, is told. On iWARP the
 * end of the TCP connection tells it.
 */
void ibchan_channel_fail_send(struct ibchan_channel *ch, const struct ib_wc *wc)
{
	bool tells = wc->status != IB_WC_WR_FLUSH_ERR && READ_ONCE(ch->cm) && !ch->qp.gid.iwarp;

	fail_channel(ch, ibchan_status_error(wc->status), wc->status,
		     tells ? BREAK_ASKED : BREAK_MOVES);
}

/*
 * As ibchan_channel_fail(), for a receive that failed, or an event: the device refuses the peer's
 * request. One that has yet to tell the peer could not any more.
 */
void ibchan_channel_fail_responder(struct ibchan_channel *ch, u32 error, u32 status)
{
	fail_channel(ch, error, status,
		     ibchan_device_has(ch->qp.dev, IBCHAN_QUIRK_REPORTS_FIRST) ? 0 : BREAK_MOVES);
}

/* Both markers have come: a broken channel's qp has another step to go. Any context but NMI. */
void ibchan_channel_break_on(struct ibchan_channel *ch)
{
	guard(spinlock_irqsave)(&ch->state_lock);
	if (ch->state == IBCHAN_CHANNEL_BROKEN)
		ibchan_turn_queue(&ch->break_turn);
}

static bool is_unused(const struct ibchan_queue *queue)
{
	return !queue->marked && !queue->places.posted &&
	       !ibchan_places_in_flight(&queue->places);
}

/* Nothing was ever posted, not even by the channel itself, and no done() is running. */
bool ibchan_channel_is_unused(const struct ibchan_channel *ch)
{
	return !ch->watch.sent && is_unused(&ch->send) && is_unused(&ch->recv);
}

/*
 * Works that a queue still has in flight end here, in software, in steps as well. Completions that
 * the device has written for them lie in front of later ones, so the sweep finds all of them.
 */
void ibchan_queue_retire_rest(struct ibchan_queue *queue)
{
	bool more;

	/* The marker came last, and all works before it have ended. */
	if (queue->marked && READ_ONCE(queue->drained) && !ibchan_places_in_flight(&queue->places))
		return;
	if (ibchan_channel_is_unused(queue->channel))
		return;
	sweep_cq(queue->cq);
	do {
		ibchan_cq_own(queue->cq);
		more = ibchan_queue_flush(queue, IBCHAN_REAP_BUDGET);
		ibchan_cq_notify(queue->cq);
		ibchan_cq_disown(queue->cq);
		cond_resched();
	} while (more);
	/* Another caller may have wanted to reap meanwhile. */
	ibchan_cq_leave(queue->cq);
}

/* Each call that was posting when the channel broke has finished after this. */
void ibchan_channel_await_posters(struct ibchan_channel *ch)
{
	spin_lock_bh(&ch->post_lock);
	spin_unlock_bh(&ch->post_lock);
}

/* Behind the last poster: see ibchan_channel_await_posters(). */
bool ibchan_channel_has_posted(const struct ibchan_channel *ch)
{
	return ch->connected || ibchan_places_in_flight(&ch->recv.places);
}

void ibchan_channel_break_turn(struct ibchan_turn *turn)
{
	struct ibchan_channel *ch = container_of(turn, struct ibchan_channel, break_turn);
	bool asked = READ_ONCE(ch->asked);

	guard(ibchan_noio)();
	ibchan_fault_linger(IBCHAN_WINDOW_BREAKING);
	if (asked)
		ibchan_parts_call(interrupt, ch);
	ibchan_qp_lock(&ch->qp);
	ibchan_channel_await_posters(ch);
	if (ibchan_channel_has_posted(ch)) {
		if (!ibchan_drain_begin(ch)) {
			ch->connected = 0;
			ibchan_queue_retire_rest(&ch->send);
			ibchan_queue_retire_rest(&ch->recv);
		} else if (ibchan_device_has(ch->qp.dev, IBCHAN_QUIRK_ERR_KEEPS_MR)) {
			/* A region depends on the markers, which the cq's owner may never reap. */
			ibchan_cq_arm(ch->send.cq);
			ibchan_cq_arm(ch->recv.cq);
		}
	}
	ibchan_qp_unlock(&ch->qp);
	if (asked)
		ibchan_parts_call(disconnect, ch);
}

/**
 * ibchan_channel_break - end a channel
 * @ch: the channel
 * @error: why, a negative errno
 *
 * Posts are refused from now on, and what was posted completes flushed. The first
 * error stays; a closed channel stays as it is. The first break calls broken() itself.
 *
 * Context: any but NMI.
 */
void ibchan_channel_break(struct ibchan_channel *ch, int error)
{
	break_channel(ch, -error, IBCHAN_STATUS_SUCCESS, BREAK_ASKED);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_break, IBCHAN_NS);

/*
 * ibchan_channel_break() under a lock, or within a post: a worker calls broken(). @status: as of a
 * failed work; IBCHAN_STATUS_SUCCESS: no work has failed. Any context but NMI.
 */
void ibchan_channel_break_later(struct ibchan_channel *ch, int error, u32 status)
{
	break_channel(ch, -error, status, BREAK_ASKED | BREAK_LATER);
}

/* Ends a channel that has not got a peer in time; one that is connected stays as it is. */
void ibchan_channel_give_up(struct ibchan_channel *ch, int error)
{
	break_channel(ch, -error, IBCHAN_STATUS_SUCCESS, BREAK_ASKED | BREAK_UNCONNECTED);
}

/*
 * The channel has got its peer by address. Without the qp lock. Returns false when it has been
 * broken meanwhile.
 */
bool ibchan_channel_connected(struct ibchan_channel *ch)
{
	void (*connected)(void *priv) = READ_ONCE(ch->connected_to);
	bool late;

	scoped_guard(spinlock_irqsave, &ch->state_lock) {
		if (!ibchan_channel_move_state(ch, IBCHAN_CHANNEL_CONNECTED))
			return false;
		ch->telling = true;
	}
	wake_up_all(&ch->state_wait);
	if (connected) {
		local_bh_disable();
		connected(ch->priv);
		local_bh_enable();
	}
	scoped_guard(spinlock_irqsave, &ch->state_lock) {
		ch->telling = false;
		late = ch->tell_later;
	}
	if (late)
		tell_broken(ch);
	return true;
}
