// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a channel.
 *
 * Stopping drains, destroys the queue pair, retires what the device forgot, and gives up
 * memory last. The owner's drain does that and leaves the channel; so does removal of the device,
 * from the outside. Closing stops what has not been stopped and takes the channel out of its
 * device's list. Its memory goes with the last reference.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "private.h"
#include "compat.h"
#include "counters.h"
#include "fault.h"

/* After this no call posts, and no break is under way or can begin. */
static void refuse_all(struct ibchan_channel *ch, bool device_gone)
{
	scoped_guard(spinlock_irqsave, &ch->state_lock) {
		if (device_gone) {
			WRITE_ONCE(ch->device_gone, true);
			WRITE_ONCE(ch->error, ch->error ?: ENODEV);
		}
		if (ibchan_channel_move_state(ch, IBCHAN_CHANNEL_CLOSED))
			ibchan_history_add(ch, IBCHAN_HISTORY_CLOSED, device_gone ? ENODEV : 0,
					   0, 0);
	}
	ibchan_channel_await_posters(ch);
	/* Both are queued only once it has broken. */
	if (!ch->broken_at)
		return;
	ibchan_turn_cancel(&ch->cause_turn);
	ibchan_turn_cancel(&ch->break_turn);
}

/* Returns the driver's errno; in @idle, whether the device has forgotten what was posted. */
static int end_qp(struct ibchan_channel *ch, unsigned long deadline, bool *idle)
{
	/*
	 * A channel without works is closed by destroying its queue pair: that flushes nothing, and
	 * ends the peer's access to our memory. No poster comes any more.
	 */
	bool drains = ibchan_channel_has_posted(ch) && (ch->cm || !ibchan_channel_is_unused(ch));
	int ret;

	*idle = !drains || !ibchan_drain(ch, deadline);
	ibchan_parts_call(forget_marker, ch);
	/* A query of the queue pair runs under this lock: none begins behind it. */
	ibchan_qp_lock(&ch->qp);
	ret = ibchan_qp_destroy(&ch->qp);
	ibchan_qp_unlock(&ch->qp);
	/* It stays, and peers must not reach our memory by it. */
	if (ret && !drains && ch->connected)
		*idle = !ibchan_drain(ch, deadline);
	return ret;
}

/*
 * Takes the verbs objects of a channel apart, once. @device_gone: later posts say so. @deadline:
 * of the drain, in jiffies. Inside the gate, or it is closed.
 */
void ibchan_channel_stop(struct ibchan_channel *ch, bool device_gone, unsigned long deadline)
{
	bool idle;
	int ret;

	guard(ibchan_noio)();
	refuse_all(ch, device_gone);
	ibchan_fault_linger(IBCHAN_WINDOW_REFUSING);
	if (!ch->qp.ib)
		return;
	ibchan_parts_call(stop, ch);
	ret = end_qp(ch, deadline, &idle);
	ch->qp.ib = NULL;
	if (ret)
		ibchan_channel_leak(ch);
	if (!ret || idle) {
		ibchan_queue_retire_rest(&ch->send);
		ibchan_queue_retire_rest(&ch->recv);
	}
	if (ret)
		return;
	/* The channel is closed, so that it does not break any more. */
	if (ch->broken_at) {
		ibchan_cq_drop_broken(ch->send.cq);
		ibchan_cq_drop_broken(ch->recv.cq);
	}
	ibchan_channel_release_queues(ch);
	ibchan_mr_unpark(&ch->parked);
	if (!ch->bounds.service)
		ibchan_pd_put(ch->qp.pd);
	ibchan_gauge(channels, -1);
}

/* Channels that broke together drain together, however many there are. */
static unsigned long drain_deadline(const struct ibchan_channel *ch)
{
	return (ch->broken_at ?: jiffies) + IBCHAN_DRAIN_TIMEOUT;
}

/* No reference is left. */
static void channel_release(struct ibchan_channel *ch)
{
	struct ibchan_device *dev = ch->qp.dev;

	ibchan_channel_drop_cqs(ch);
	call_rcu(&ch->rcu, ibchan_channel_free);
	ibchan_device_put(dev);
}

/* Closes a channel here and now. Returns whether the device has let go of it. */
bool ibchan_channel_end(struct ibchan_channel *ch)
{
	struct ibchan_device *dev = ch->qp.dev;

	mutex_lock(&ch->end_lock);
	ibchan_device_enter_to_end(dev);
	ibchan_channel_stop(ch, false, drain_deadline(ch));
	if (!ch->leaked) {
		mutex_lock(&dev->lock);
		list_del(&ch->link);
		mutex_unlock(&dev->lock);
	}
	ibchan_device_exit(dev);
	mutex_unlock(&ch->end_lock);
	if (ch->leaked)
		return false;
	ibchan_parts_call(end, ch);
	if (refcount_dec_and_test(&ch->refs))
		channel_release(ch);
	return true;
}

/* Its owner has given the channel up, or the last of its references has gone behind that. */
void ibchan_channel_close_work(struct work_struct *work)
{
	struct ibchan_channel *ch = container_of(work, struct ibchan_channel, close_work);
	struct ibchan_closing *closing = ch->closing;
	void (*closed)(void *priv) = ch->closed;
	void *priv = ch->priv;

	if (!refcount_read(&ch->refs)) {
		channel_release(ch);
		return;
	}
	ibchan_channel_end(ch);
	if (closed)
		closed(priv);
	if (atomic_dec_and_test(&closing->num))
		wake_up_var(closing);
}

/*
 * The connection manager's workers, which have no rescuer, take part in the end of an id; and
 * closed() may wait for ours.
 */
static void close_later(struct ibchan_channel *ch)
{
	queue_work(READ_ONCE(ch->cm) || ch->closed ? ibchan_close_wq : ibchan_free_wq,
		   &ch->close_work);
}

/**
 * ibchan_channel_close_async - give a channel back without waiting for its end
 * @ch: the channel; not to be used any more, but by owners of references
 * @closing: counts it until @closed has returned, for ibchan_closing_wait()
 * @closed: called once with @priv of struct ibchan_build, in process context, when all that was
 *	posted has ended and the device has let go of the channel: its domain and cqs may
 *	be given back there. Also called where the device does not let go: then ibchan_pd_free()
 *	answers -EBUSY, and memory that was posted must stay for ever. It may sleep, but not in
 *	ibchan_closing_wait() for @closing. May be NULL.
 *
 * The channel breaks now; broken() is not called any more, though one that has begun elsewhere may
 * still run. A worker without a rescuer does the rest where @closed is set. A channel is given up
 * once: a caller that does so again is told in the log, and nothing happens.
 *
 * This is how broken() closes its own channel. But broken() may come before ibchan_channel_build()
 * has returned to the owner, and within any call of the owner's on the channel: where that can be,
 * the channel is closed when the owner is through as well, say by a count of two.
 *
 * Context: any but NMI.
 */
void ibchan_channel_close_async(struct ibchan_channel *ch, struct ibchan_closing *closing,
				void (*closed)(void *priv))
{
	if (cmpxchg(&ch->closing, NULL, closing)) {
		pr_warn_once("ibchan: a channel that is closing is given back, at %pS\n",
			     __builtin_return_address(0));
		return;
	}
	atomic_inc(&closing->num);
	/* Its owner knows. */
	WRITE_ONCE(ch->broken, NULL);
	WRITE_ONCE(ch->connected_to, NULL);
	ch->closed = closed;
	ibchan_channel_break(ch, -ECANCELED);
	close_later(ch);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_close_async, IBCHAN_NS);

/**
 * ibchan_closing_wait - wait for the end of channels that were given up
 * @closing: of ibchan_channel_close_async(); its memory, and the code of each closed(), may go
 *	afterwards
 *
 * It waits for no other consumer's channels. Each is bounded as ibchan_channel_close() is. In
 * writeback it is safe if none of them was connected by address or has a closed().
 *
 * Context: process, may sleep; not from a callback.
 */
void ibchan_closing_wait(struct ibchan_closing *closing)
{
	might_sleep();
	wait_var_event(closing, !atomic_read(&closing->num));
}
EXPORT_SYMBOL_NS_GPL(ibchan_closing_wait, IBCHAN_NS);

/**
 * ibchan_channel_close - give a channel back
 * @ch: the channel; not to be used any more, but by owners of references
 *
 * Posted works complete, flushed at the latest, before this returns. Bounded
 * by a drain of 2 s; over iWARP, between the request and its answer, also by how long the
 * driver waits for that, which with siw is 10 s.
 *
 * Context: process, may sleep; not from a callback, where ibchan_channel_close_async() is called.
 */
void ibchan_channel_close(struct ibchan_channel *ch)
{
	might_sleep();
	ibchan_channel_end(ch);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_close, IBCHAN_NS);

/**
 * ibchan_channel_tryget - take a reference to a channel
 * @ch: the channel; RCU, its owner or another reference keeps its memory
 *
 * Until ibchan_channel_put() posts, blocking calls, ibchan_channel_break() and
 * ibchan_channel_state() are allowed, also beside and after the owner's close, when they answer
 * -ESHUTDOWN (-ENODEV where the device has left). The channel's cqs may be given back by their
 * owner meanwhile, and so may the channel's domain; regions that were posted have a life of their
 * own. A reference does not hold up the close. If its owner breaks the channel, or has a
 * call that gives up do so, beside the close, broken() may be called behind that: its @priv stays
 * until the reference is given back.
 *
 * Context: any.
 * Return: false when the channel has been closed and no reference is left.
 */
bool ibchan_channel_tryget(struct ibchan_channel *ch)
{
	return refcount_inc_not_zero(&ch->refs);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_tryget, IBCHAN_NS);

/**
 * ibchan_channel_put - the counterpart of ibchan_channel_tryget()
 * @ch: the channel
 *
 * The last one leaves the rest to a worker.
 *
 * Context: any but NMI.
 */
void ibchan_channel_put(struct ibchan_channel *ch)
{
	if (refcount_dec_and_test(&ch->refs))
		close_later(ch);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_put, IBCHAN_NS);

/*
 * Stops a channel, and leaves it to its owner. A caller that cannot go on before a work of a broken
 * channel has ended destroys the queue pair so, which ends all access of the device: with a
 * @deadline that is over. Not beside its close, unless the caller has a reference. Without the
 * gate.
 */
void ibchan_channel_stop_alone(struct ibchan_channel *ch, unsigned long deadline)
{
	guard(mutex)(&ch->end_lock);
	ibchan_device_enter_to_end(ch->qp.dev);
	ibchan_channel_stop(ch, false, deadline);
	ibchan_device_exit(ch->qp.dev);
}

/**
 * ibchan_channel_drain - end a channel's works, and keep the channel
 * @ch: the channel
 *
 * When it returns nothing is in flight, each done() has returned, and the device has let go of the
 * channel, or keeps it for good, as ibchan_channel_close_async() tells. Posts are refused from the
 * call on, with -ESHUTDOWN, and so is all else but the close, which then has little to do: the
 * pointer stays valid for a caller that comes late, and the channel's cqs stay in use. broken() is
 * not called any more, though one that has begun elsewhere may still run. Bounded as
 * ibchan_channel_close() is. Several may drain a channel; not beside its close, unless they have a
 * reference.
 *
 * Context: process, may sleep; not from a callback.
 */
void ibchan_channel_drain(struct ibchan_channel *ch)
{
	might_sleep();
	ibchan_channel_stop_alone(ch, drain_deadline(ch));
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_drain, IBCHAN_NS);
