// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive: a peer that dies without a word is noticed, also by a channel that only
 * receives.
 *
 * One delayed work for each device looks at its channels now and then. Where neither
 * queue has completed anything for half of the keepalive time, it posts an RDMA write
 * of no bytes, which the peer's device acknowledges by itself: it uses up no receive,
 * needs no region and makes no completion there. A dead peer acknowledges nothing, the
 * device gives up after its retries, and the channel breaks like by any work.
 *
 * A queue pair that forbids remote writes refuses empty ones too, and breaks both
 * ends: so a peer says in its endpoint whether it takes them. Allowing them in every
 * queue pair would undo what its access is for. Empty reads are no way out: soft-RoCE
 * of 6.1 refuses one that it has to answer a second time.
 *
 * Posts and completions do not know of this: it looks at counters that they keep
 * anyway. The probe has no place of its own but the marker's, see watch.h. The work
 * reaps the cq of a probe that is out, so that its end is seen also where the owner of
 * the cq does not look.
 */
#include <linux/errno.h>
#include <linux/jiffies.h>

#include "internal.h"
#include "post.h"

/* Looks within the keepalive time, half of which may pass in silence. */
#define LOOKS		16

/* The first look comes soon enough for the shortest interval on the device. */
static void schedule_look(struct ibchan_device *dev, unsigned long interval)
{
	spin_lock(&dev->watch_lock);
	if (!dev->watch_interval || interval < dev->watch_interval) {
		dev->watch_interval = interval;
		mod_delayed_work(ibchan_wq, &dev->watch_work, interval);
	}
	spin_unlock(&dev->watch_lock);
}

static unsigned long look_interval(const struct ibchan_watch *watch)
{
	return max(2 * watch->silence / LOOKS, 1UL);
}

/* Works of both queues that have ever completed. */
static u32 count_retired(const struct ibchan_channel *ch)
{
	return READ_ONCE(ch->send.credit.retired) + READ_ONCE(ch->recv.credit.retired);
}

/**
 * ibchan_watch_begin - the channel is connected
 * @ch: the channel; its qp_lock is held, or nobody else knows it yet
 * @peer_flags: IBCHAN_ENDPOINT_* of the peer
 *
 * After a handshake the peer may still be about to connect its own side: it gets half
 * of the keepalive time more where one was asked for, and else as long as it takes. By
 * address it has done so.
 *
 * Context: process, may sleep; the gate is held.
 */
void ibchan_watch_begin(struct ibchan_channel *ch, u8 peer_flags)
{
	struct ibchan_watch *watch = &ch->watch;
	u32 keepalive_ms = ch->options.keepalive_ms;

	if (ch->service || keepalive_ms == IBCHAN_KEEPALIVE_OFF ||
	    !(peer_flags & IBCHAN_ENDPOINT_REMOTE_WRITE))
		return;
	watch->heard = jiffies + (ch->cm ? 0 : msecs_to_jiffies(keepalive_ms) / 2);
	watch->retired = count_retired(ch);
	watch->patient = watch->patient && !ch->cm;
	/* Pairs with the acquire of who looks: what is above is there. */
	smp_store_release(&watch->silence, msecs_to_jiffies(keepalive_ms) / 2);
	schedule_look(ch->dev, look_interval(watch));
}

/* Under the right to reap the cq. */
static void probe_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_channel *ch = container_of(wc->wr_cqe, struct ibchan_channel, watch.cqe);
	struct ibchan_queue *queue = &ch->send;
	int place = atomic_xchg(&ch->watch.place, WATCH_PLACE_FREE);

	queue->cq->retired++;
	if (wc->status == IB_WC_SUCCESS)
		WRITE_ONCE(ch->watch.answered, ch->watch.answered + 1);
	else
		ibchan_channel_fail_send(ch, wc);
	if (place == WATCH_PLACE_PROBE_THEN_MARKER &&
	    ibchan_post_send_marker(ch->qp, &queue->marker))
		ibchan_queue_give_marker_up(queue);
}

/* The caller holds the post lock and the channel is connected. */
static void post_probe(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;
	struct ibchan_cq *cq = ch->send.cq;

	watch->cqe.done = probe_done;
	atomic_set(&watch->place, WATCH_PLACE_PROBE);
	atomic_inc(&cq->in_flight);
	if (!ibchan_post_probe(ch->qp, &watch->cqe)) {
		WRITE_ONCE(watch->sent, watch->sent + 1);
		return;
	}
	atomic_dec(&cq->in_flight);
	atomic_set(&watch->place, WATCH_PLACE_FREE);
}

static void note_probes(struct ibchan_channel *ch)
{
	ibchan_history_add(ch, IBCHAN_HISTORY_PROBES, 0, READ_ONCE(ch->watch.answered),
			   READ_ONCE(ch->watch.sent));
}

static bool was_heard(struct ibchan_channel *ch)
{
	u32 retired = count_retired(ch);

	if (ch->watch.retired == retired)
		return false;
	ch->watch.retired = retired;
	ch->watch.heard = jiffies;
	return true;
}

/* The answer to a probe is a sign of life. */
static void look_closer(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;

	if (atomic_read(&watch->place) != WATCH_PLACE_FREE) {
		watch->heard = jiffies;
		ibchan_cq_reap_later(ch->send.cq);
	} else if (time_after_eq(jiffies, watch->heard + watch->silence)) {
		post_probe(ch);
		note_probes(ch);
		watch->heard = jiffies;
	}
}

static bool is_watched(const struct ibchan_channel *ch)
{
	/* Pairs with the release when it was connected. */
	return smp_load_acquire(&ch->watch.silence) &&
	       READ_ONCE(ch->state) == IBCHAN_CHANNEL_CONNECTED;
}

/*
 * A question would end the channel of who is early. Its own device may have ended it without
 * a word, and no work tells: that is asked instead. Who has the queue pair in hand looks himself.
 */
static void look_at_itself(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;

	if (time_before(jiffies, watch->heard + watch->silence) || !mutex_trylock(&ch->qp_lock))
		return;
	watch->heard = jiffies;
	if (is_watched(ch) && ibchan_qp_has_failed(ch))
		ibchan_channel_fail(ch, ECANCELED, IB_WC_WR_FLUSH_ERR);
	mutex_unlock(&ch->qp_lock);
}

static void look_at(struct ibchan_channel *ch)
{
	bool heard = was_heard(ch);

	ch->watch.patient = ch->watch.patient && !heard;
	if (ch->watch.patient) {
		look_at_itself(ch);
		return;
	}
	if (heard && atomic_read(&ch->watch.place) == WATCH_PLACE_FREE)
		return;
	spin_lock_bh(&ch->post_lock);
	if (is_watched(ch))
		look_closer(ch);
	spin_unlock_bh(&ch->post_lock);
}

/* Returns the shortest interval that a channel needs, or 0. */
static unsigned long look_at_all(struct ibchan_device *dev)
{
	struct ibchan_channel *ch;
	unsigned long interval = 0;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link) {
		if (!is_watched(ch))
			continue;
		look_at(ch);
		interval = min_not_zero(interval, look_interval(&ch->watch));
	}
	return interval;
}

/* While a channel needs it. */
void ibchan_watch_work(struct work_struct *work)
{
	struct ibchan_device *dev = container_of(to_delayed_work(work), struct ibchan_device,
						 watch_work);
	unsigned long interval;

	spin_lock(&dev->watch_lock);
	dev->watch_interval = 0;
	spin_unlock(&dev->watch_lock);
	interval = look_at_all(dev);
	if (interval)
		schedule_look(dev, interval);
}

/**
 * ibchan_watch_defers_marker - has the probe the marker's place?
 * @ch: the channel, whose marker counts as posted already; nobody else posts
 *
 * Return: true when the probe's completion will post the marker.
 */
bool ibchan_watch_defers_marker(struct ibchan_channel *ch)
{
	return atomic_cmpxchg(&ch->watch.place, WATCH_PLACE_PROBE,
			      WATCH_PLACE_PROBE_THEN_MARKER) == WATCH_PLACE_PROBE;
}

/*
 * The queue pair is about to go, so nothing may be posted any more. Who is about to
 * post the marker owns the cq. Process context.
 */
void ibchan_watch_forget_marker(struct ibchan_channel *ch)
{
	if (!ch->send.marked || READ_ONCE(ch->send.drained))
		return;
	ibchan_cq_own(ch->send.cq);
	atomic_cmpxchg(&ch->watch.place, WATCH_PLACE_PROBE_THEN_MARKER, WATCH_PLACE_PROBE);
	ibchan_cq_disown(ch->send.cq);
	ibchan_cq_leave(ch->send.cq);
}

/* The device has forgotten what was posted. Under the right to reap the cq. */
void ibchan_watch_flush(struct ibchan_channel *ch)
{
	if (atomic_xchg(&ch->watch.place, WATCH_PLACE_FREE) != WATCH_PLACE_FREE)
		ch->send.cq->retired++;
}

/* Soft-RoCE takes the highest number for "for ever". */
static bool retries_for_ever(const struct ibchan_channel *ch)
{
	return ch->dev->attr.driver_id == RDMA_DRIVER_RXE && ch->params.ack_retries == 7;
}

/**
 * ibchan_watch_notice_ms - how soon a dead peer is noticed
 * @ch: the channel
 *
 * Return: milliseconds, at the latest; 0: never.
 */
u32 ibchan_watch_notice_ms(const struct ibchan_channel *ch)
{
	if (!ch->watch.silence || retries_for_ever(ch))
		return 0;
	return ibchan_keepalive_notice_ms(ch->options.keepalive_ms, &ch->params);
}
