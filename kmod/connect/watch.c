// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive: a peer that dies without a word is noticed, also by a channel that only
 * receives.
 *
 * Where neither queue of a channel has completed anything for half of the keepalive time,
 * an RDMA write of no bytes is posted, which the peer's device acknowledges by itself: it
 * uses up no receive, needs no region and makes no completion there. A dead peer
 * acknowledges nothing, the device gives up after its retries, and the channel breaks like
 * by any work.
 *
 * Not each device does: soft-RoCE tries for ever to send what the own machine drops. So the worker
 * has a clock, too, which leaves a device the time that its retries take. A completion of any work
 * since the probe is a sign of life like the answer, and starts the clock again. It does not run
 * while works are in front of the probe: a peer that is alive may let a message wait for a receive
 * as long as it likes, and nobody sees how far a long transfer has come. Once the time is over, the
 * worker fetches what has completed, and its next look breaks the channel; so a machine that stood
 * still gets its answers before they count as late.
 *
 * A queue pair that forbids remote writes refuses empty ones too, and breaks both
 * ends: so a peer says in its endpoint whether it takes them. Allowing them in every
 * queue pair would undo what its access is for. Empty reads are no way out: soft-RoCE
 * of 6.1 refuses one that it has to answer a second time.
 *
 * Posts and completions do not know of keepalive: the worker looks at counters that they
 * keep anyway. The probe uses the marker's place in the send queue, see below. The worker
 * reaps the cq of a probe that is out, so that its end is seen also where the owner of the
 * cq does not poll.
 *
 * Each channel has a time at which it is looked at next: a channel that hears its peer is
 * looked at eight times in the silence that it allows, a silent one when that has passed. A
 * worker of ordinary priority takes the channels of a device that are due, and rests after
 * MAX_STEPS steps. So the channels of a device, however many and however impatient, cost it and a
 * processor no more than that.
 *
 * Each user has a queue of channels for each device, by when they are looked at. Of the users that
 * have a channel which is due, each gets a look in turn, so one with many channels delays the
 * others' by as many looks as they have themselves, and its own by all of them: all of a user's
 * are late by the same time, and notice_ms says so.
 */
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "cm.h"
#include "fault.h"
#include "post.h"

/*
 * The send queue has one entry more than the user may fill. It is for the marker of a drain.
 * While the channel lives, the probe uses it; a probe that has not completed when the drain
 * begins posts the marker from its completion.
 */
enum {
	WATCH_SPARE_FREE,
	WATCH_SPARE_PROBE,
	WATCH_SPARE_PROBE_THEN_MARKER,
};

/* Looks within the keepalive time at a channel that is not silent. */
#define LOOKS		16

/*
 * Steps that the worker of a device takes before it rests, and the length of the rest: questions,
 * and answers that it fetches, 3200 in a second; and looks of any kind.
 */
#define MAX_STEPS	32
#define MAX_LOOKS	1024
#define REST_MS		10
/* The tick that is under way does not count. */
#define REST		(msecs_to_jiffies(REST_MS) + 1)

/* Steps that end the channel of a dead peer: it asks, fetches the answer, and has none. */
#define STEPS_OF_ROUND	3

/*
 * The channels of one user on one device.
 *
 * Under the device's watch_lock.
 */
struct ibchan_watch_share {
	struct list_head link;	/* in the device's list; the next one to get a look stands first */
	/* the user's, to compare with; NULL: kernel consumers */
	const struct ibchan_budget *budget;
	u32 users;	/* channels that are built with a keepalive */
	u32 num;	/* of these, the ones that are connected */
	/* of these, the ones that wait for a look, by when that is due */
	struct rb_root_cached watched;
};

static bool is_due_before(struct rb_node *a, const struct rb_node *b)
{
	return time_before(rb_entry(a, struct ibchan_watch, node)->due,
			   rb_entry(b, struct ibchan_watch, node)->due);
}

/* The caller holds the watch lock, here and in the functions up to schedule_worker(). */
static void enqueue(struct ibchan_watch *watch)
{
	rb_add_cached(&watch->node, &watch->share->watched, is_due_before);
}

/* Returns false where the channel waits for no look. */
static bool dequeue(struct ibchan_watch *watch)
{
	if (RB_EMPTY_NODE(&watch->node))
		return false;
	rb_erase_cached(&watch->node, &watch->share->watched);
	RB_CLEAR_NODE(&watch->node);
	return true;
}

static struct ibchan_watch *first_of(const struct ibchan_watch_share *share)
{
	return rb_entry_safe(rb_first_cached(&share->watched), struct ibchan_watch, node);
}

/* The channel that is due before all others; NULL: none waits for a look. */
static struct ibchan_watch *first_watched(const struct ibchan_device *dev)
{
	struct ibchan_watch *first = NULL, *watch;
	struct ibchan_watch_share *share;

	list_for_each_entry(share, &dev->watch_shares, link) {
		watch = first_of(share);
		if (watch && (!first || time_before(watch->due, first->due)))
			first = watch;
	}
	return first;
}

/* Users take turns. Takes the first due channel of the next user; NULL: no channel is due. */
static struct ibchan_watch *take_due(struct ibchan_device *dev)
{
	struct ibchan_watch_share *share;
	struct ibchan_watch *watch;

	list_for_each_entry(share, &dev->watch_shares, link) {
		watch = first_of(share);
		if (!watch || time_after(watch->due, jiffies))
			continue;
		dequeue(watch);
		list_move_tail(&share->link, &dev->watch_shares);
		return watch;
	}
	return NULL;
}

static unsigned long look_interval(const struct ibchan_watch *watch)
{
	return max(2 * watch->silence / LOOKS, REST);
}

/* The worker has its rest in any case. */
static void schedule_worker(struct ibchan_device *dev)
{
	const struct ibchan_watch *first = first_watched(dev);
	unsigned long delay = REST;

	if (!first)
		return;
	if (time_after(first->due, jiffies + delay))
		delay = first->due - jiffies;
	mod_delayed_work(ibchan_watch_wq, &dev->watch_work, delay);
}

/* Works of both queues that have ever completed. */
static u32 count_retired(const struct ibchan_channel *ch)
{
	return READ_ONCE(ch->send.places.retired) + READ_ONCE(ch->recv.places.retired);
}

/* Counts a channel that is about to be built among those of its user, until it ends. */
static int make(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	struct ibchan_watch_share *share, *fresh;
	struct ibchan_device *dev = ch->qp.dev;

	RB_CLEAR_NODE(&ch->watch.node);
	if (ch->bounds.service || ch->options.keepalive_ms == IBCHAN_KEEPALIVE_OFF)
		return 0;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	fresh->budget = ch->qp.pd->cost.budget;
	spin_lock(&dev->watch_lock);
	list_for_each_entry(share, &dev->watch_shares, link)
		if (share->budget == fresh->budget)
			break;
	if (list_entry_is_head(share, &dev->watch_shares, link)) {
		share = fresh;
		fresh = NULL;
		list_add(&share->link, &dev->watch_shares);
	}
	share->users++;
	ch->watch.share = share;
	spin_unlock(&dev->watch_lock);
	kfree(fresh);
	return 0;
}

/* The channel has broken, if it was ever watched; it may have no share. */
static void end(struct ibchan_channel *ch)
{
	struct ibchan_watch_share *share = ch->watch.share;

	if (!share)
		return;
	/* Under this lock the worker does not look at the channel, and finds it no more. */
	guard(mutex)(&ch->qp.dev->lock);
	guard(spinlock)(&ch->qp.dev->watch_lock);
	dequeue(&ch->watch);
	/* A query may still come. */
	ch->watch.share = NULL;
	share->num -= !!ch->watch.silence;
	if (--share->users)
		return;
	list_del(&share->link);
	kfree(share);
}

/*
 * The channel is connected; the caller holds its qp lock, or nobody else knows it yet. After a
 * handshake the peer may still be about to connect its own side: it gets half of the keepalive
 * time more where one was asked for, and else as long as it takes. By address it has done so.
 */
void ibchan_watch_begin(struct ibchan_channel *ch, const struct ibchan_endpoint *peer)
{
	struct ibchan_watch *watch = &ch->watch;
	u32 keepalive_ms = ch->options.keepalive_ms;

	if (!watch->share || !(peer->flags & IBCHAN_ENDPOINT_REMOTE_WRITE))
		return;
	watch->retired = count_retired(ch);
	watch->patient = watch->patient && !ch->cm;
	watch->looked = jiffies;
	watch->heard = watch->looked + (ch->cm ? 0 : msecs_to_jiffies(keepalive_ms) / 2);
	watch->silence = msecs_to_jiffies(keepalive_ms) / 2;
	watch->due = watch->looked + look_interval(watch);
	guard(spinlock)(&ch->qp.dev->watch_lock);
	watch->share->num++;
	enqueue(watch);
	if (first_watched(ch->qp.dev) == watch)
		schedule_worker(ch->qp.dev);
}

/*
 * Something tells against the peer, and proves nothing. Where the channel is watched, the peer is
 * asked as soon as others have had their turn, and what the device says then counts.
 */
void ibchan_watch_doubt(struct ibchan_channel *ch)
{
	struct ibchan_device *dev = ch->qp.dev;

	/* Removal has stopped the worker for good. */
	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return;
	/* Under this lock the worker does not look at the channel. */
	guard(mutex)(&dev->lock);
	guard(spinlock)(&dev->watch_lock);
	if (!dequeue(&ch->watch))
		return;
	ch->watch.doubted = true;
	ch->watch.due = jiffies;
	enqueue(&ch->watch);
	schedule_worker(dev);
}

/* Under the right to reap the cq. */
static void probe_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_channel *ch = container_of(wc->wr_cqe, struct ibchan_channel, watch.cqe);
	struct ibchan_queue *queue = &ch->send;
	int use;

	/* Another completion of it would count twice. */
	ch->watch.cqe.done = NULL;
	use = atomic_xchg(&ch->watch.spare, WATCH_SPARE_FREE);
	queue->cq->retired++;
	if (wc->status == IB_WC_SUCCESS)
		WRITE_ONCE(ch->watch.answered, ch->watch.answered + 1);
	else
		ibchan_channel_fail_send(ch, wc);
	if (use == WATCH_SPARE_PROBE_THEN_MARKER &&
	    ibchan_post_send_marker(ch->qp.ib, &queue->marker))
		ibchan_queue_end_marker(queue);
}

/* The caller holds the post lock and the channel is connected. */
static void post_probe(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;

	atomic_set(&watch->spare, WATCH_SPARE_PROBE);
	if (ibchan_post_own(&ch->send, &watch->cqe, probe_done, ibchan_post_probe)) {
		atomic_set(&watch->spare, WATCH_SPARE_FREE);
		return;
	}
	WRITE_ONCE(watch->sent, watch->sent + 1);
	watch->behind = ch->send.places.posted;
	watch->asked = watch->looked;
}

/*
 * A probe is out, and since it is, each look writes its time into @heard. The caller holds the post
 * lock. The look that finds the probe overdue has its completion fetched, in case that it is there,
 * and the next one breaks the channel. Without a @notice_ms it may be out for ever.
 */
static void await_answer(struct ibchan_channel *ch, bool heard)
{
	struct ibchan_watch *watch = &ch->watch;
	u32 keepalive_ms = ch->options.keepalive_ms;
	u32 notice_ms = ibchan_keepalive_notice_ms(keepalive_ms, &ch->qp.params);
	unsigned long time = msecs_to_jiffies(notice_ms - ibchan_keepalive_asks_ms(keepalive_ms));

	/* A probe behind works that have not ended is held up. */
	if (heard || (s32)(watch->behind - READ_ONCE(ch->send.places.retired)) > 0)
		watch->asked = watch->looked;
	/* It was overdue at the last look. */
	if (notice_ms && time_after(watch->heard, watch->asked + time) &&
	    !ibchan_cq_is_to_reap(ch->send.cq))
		ibchan_channel_break_later(ch, -ETIMEDOUT, IB_WC_RESP_TIMEOUT_ERR);
	else
		ibchan_cq_reap_later(ch->send.cq);
}

/* The caller holds the post lock. Returns the steps that it took. */
static u32 look_closer(struct ibchan_channel *ch, bool heard)
{
	struct ibchan_watch *watch = &ch->watch;
	bool is_out = atomic_read(&watch->spare) != WATCH_SPARE_FREE;
	unsigned long end = watch->heard + watch->silence;

	if (!is_out && !watch->doubted && time_after(end, watch->looked)) {
		watch->due = end;
		return 0;
	}
	if (is_out) {
		await_answer(ch, heard);
	} else {
		watch->doubted = false;
		post_probe(ch);
		ibchan_history_add(ch, IBCHAN_HISTORY_PROBES, 0, READ_ONCE(watch->answered),
				   READ_ONCE(watch->sent));
	}
	/* The answer to a probe is a sign of life; the next look fetches it. */
	watch->heard = watch->looked;
	watch->due = watch->looked + min_t(unsigned long, look_interval(watch), HZ);
	return 1;
}

/*
 * The peer may not have connected its side yet, and a probe would then end this channel. So
 * the own device is asked for the queue pair's state: it may have ended the queue pair, and no
 * work tells. A holder of the qp lock looks at the state anyway.
 */
static void look_at_itself(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;

	if (time_before(watch->looked, watch->heard + watch->silence) ||
	    !mutex_trylock(&ch->qp.lock))
		return;
	watch->heard = watch->looked;
	if (READ_ONCE(ch->state) == IBCHAN_CHANNEL_CONNECTED && ibchan_qp_has_failed(&ch->qp))
		ibchan_channel_fail(ch, ECANCELED, IB_WC_WR_FLUSH_ERR);
	mutex_unlock(&ch->qp.lock);
}

static u32 look_at(struct ibchan_channel *ch)
{
	struct ibchan_watch *watch = &ch->watch;
	u32 retired = count_retired(ch), steps = 0;
	bool heard = watch->retired != retired;

	/* A work that has completed since the last look did so at an unknown time: that counts. */
	if (heard)
		watch->heard = watch->looked;
	watch->retired = retired;
	watch->looked = jiffies;
	watch->due = watch->looked + look_interval(watch);
	watch->patient = watch->patient && !heard;
	if (watch->patient) {
		look_at_itself(ch);
		return 0;
	}
	if (heard && !watch->doubted && atomic_read(&watch->spare) == WATCH_SPARE_FREE)
		return 0;
	spin_lock_bh(&ch->post_lock);
	if (READ_ONCE(ch->state) == IBCHAN_CHANNEL_CONNECTED)
		steps = look_closer(ch, heard);
	spin_unlock_bh(&ch->post_lock);
	return steps;
}

/* Returns false where no channel is due. A channel that has broken is not looked at again. */
static bool look_at_next(struct ibchan_device *dev, u32 *steps)
{
	struct ibchan_watch *watch;
	struct ibchan_channel *ch;

	/* The lock keeps the channel. */
	guard(mutex)(&dev->lock);
	scoped_guard(spinlock, &dev->watch_lock)
		watch = take_due(dev);
	if (!watch)
		return false;
	ch = container_of(watch, struct ibchan_channel, watch);
	ibchan_fault_linger(IBCHAN_WINDOW_WATCHED);
	if (READ_ONCE(ch->state) < IBCHAN_CHANNEL_BROKEN) {
		*steps += look_at(ch);
		scoped_guard(spinlock, &dev->watch_lock)
			enqueue(watch);
	}
	return true;
}

/* Looks at channels that are due, and runs again while a channel is watched. */
static void watch_work(struct work_struct *work)
{
	struct ibchan_device *dev = container_of(to_delayed_work(work), struct ibchan_device,
						 watch_work);
	u32 steps = 0, looks = 0;

	/* Under the device's lock. */
	guard(ibchan_noio)();
	while (steps < MAX_STEPS && looks++ < MAX_LOOKS && look_at_next(dev, &steps))
		cond_resched();
	guard(spinlock)(&dev->watch_lock);
	schedule_worker(dev);
}

static void device_comes(struct ibchan_device *dev)
{
	spin_lock_init(&dev->watch_lock);
	INIT_LIST_HEAD(&dev->watch_shares);
	INIT_DELAYED_WORK(&dev->watch_work, watch_work);
}

/* No channel begins to be watched any more. */
static void device_closes(struct ibchan_device *dev)
{
	cancel_delayed_work_sync(&dev->watch_work);
}

const struct ibchan_device_client ibchan_watch_client = {
	.comes = device_comes,
	.closes = device_closes,
};

/*
 * Has the probe the marker's place? The channel's marker counts as posted already, and no other
 * call posts. Then the probe's completion will post the marker.
 */
static bool defers_marker(struct ibchan_channel *ch)
{
	return atomic_cmpxchg(&ch->watch.spare, WATCH_SPARE_PROBE,
			      WATCH_SPARE_PROBE_THEN_MARKER) == WATCH_SPARE_PROBE;
}

/*
 * The queue pair is about to go, so nothing may be posted any more, by probe_done() neither,
 * which owns the cq when it posts the marker. Process context.
 */
static void forget_marker(struct ibchan_channel *ch)
{
	if (!ch->send.marked || READ_ONCE(ch->send.drained))
		return;
	ibchan_cq_own(ch->send.cq);
	atomic_cmpxchg(&ch->watch.spare, WATCH_SPARE_PROBE_THEN_MARKER, WATCH_SPARE_PROBE);
	ibchan_cq_disown(ch->send.cq);
	ibchan_cq_leave(ch->send.cq);
}

/* The device has forgotten what was posted. Under the right to reap the cq. */
static void flush(struct ibchan_channel *ch)
{
	if (atomic_xchg(&ch->watch.spare, WATCH_SPARE_FREE) != WATCH_SPARE_FREE)
		ch->send.cq->retired++;
}

static void fill_facts(const struct ibchan_channel *ch, struct ibchan_facts *facts)
{
	const struct ibchan_watch_share *own, *share;
	struct ibchan_device *dev = ch->qp.dev;
	u32 looks = 0;

	facts->probes_sent = READ_ONCE(ch->watch.sent);
	facts->probes_answered = READ_ONCE(ch->watch.answered);
	facts->notice_ms = ch->watch.silence ?
			   ibchan_keepalive_notice_ms(ch->options.keepalive_ms, &ch->qp.params) : 0;
	guard(spinlock)(&dev->watch_lock);
	own = ch->watch.share;
	if (!facts->notice_ms || !own)
		return;
	/* At most so many looks come before one at this channel, that one included. */
	list_for_each_entry(share, &dev->watch_shares, link)
		looks += min(share->num, own->num);
	/* A question may be late by a round in which all channels of the device ask. */
	facts->notice_ms += looks * STEPS_OF_ROUND / MAX_STEPS * REST_MS;
}

const struct ibchan_channel_part ibchan_watch_part = {
	.make = make,
	.connected = ibchan_watch_begin,
	.forget_marker = forget_marker,
	.defers_marker = defers_marker,
	.flush = flush,
	.end = end,
	.fill_facts = fill_facts,
};
