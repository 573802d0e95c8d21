// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues.
 *
 * Reaping: ibchan_cq_reap() is the only poller of an ib_cq. One caller at a
 * time has the right to reap (CQ_OWNED); another that comes meanwhile leaves
 * CQ_AGAIN behind and goes, and the owner looks once more. So completions of a
 * qp are retired in order, and nobody waits. Callbacks of the consumer run under
 * that right, with bottom halves off and no lock held.
 *
 * Events: an ib_cq is armed only while works are in flight and nobody is about
 * to reap. The completion handler may run under locks of the driver with
 * interrupts off; it wakes an in-kernel waiter or has a tasklet reap, no more. What
 * takes the tasklet too long is left to a worker, which lets others run.
 *
 * Life: the last user kills the cq, so that no verb is called on it any more,
 * and a worker destroys the ib_cq behind a grace period: soft-RoCE of 6.1 calls
 * the handler from a tasklet that lives inside the cq and that it never stops.
 * A shell that was never armed has had no handler, so its owner destroys it there
 * and then.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "caches.h"
#include "compat.h"
#include "counters.h"
#include "fault.h"
#include "internal.h"
#include "work.h"

/* Room for 120 channels with the default queues; a quarter of a megabyte on soft-RoCE. */
#define DEFAULT_ENTRIES		4096

static bool cq_try_own(struct ibchan_cq *cq)
{
	local_bh_disable();
	if (!test_and_set_bit_lock(CQ_OWNED, &cq->flags))
		return true;
	local_bh_enable();
	return false;
}

/* Spins: whoever owns a cq is on another cpu, cannot sleep and is soon done. */
void ibchan_cq_own(struct ibchan_cq *cq)
{
	while (!cq_try_own(cq))
		cpu_relax();
}

/* Gives up the right to reap; who left CQ_AGAIN since then must be heard. */
void ibchan_cq_disown(struct ibchan_cq *cq)
{
	clear_bit_unlock(CQ_OWNED, &cq->flags);
	local_bh_enable();
}

/* The caller owns the cq and has retired works. */
static __always_inline void cq_notify(struct ibchan_cq *cq)
{
	int retired = cq->retired;

	if (!retired)
		return;
	cq->retired = 0;
	atomic_sub(retired, &cq->in_flight);
	if (cq->sink->notify)
		cq->sink->notify(cq->priv);
	if (wq_has_sleeper(&cq->wait))
		wake_up_all(&cq->wait);
}

void ibchan_cq_notify(struct ibchan_cq *cq)
{
	cq_notify(cq);
}

/* The caller owns the cq, which is not dead. Returns how many there were, up to a batch. */
static __always_inline int cq_poll_alive(struct ibchan_cq *cq)
{
	int num = ibchan_fault(IBCHAN_FAULT_CQ_POLL) ?:
		  ib_poll_cq(cq->ib, IBCHAN_REAP_BATCH, cq->wc);

	if (num > 0)
		ibchan_retire(cq, num);
	cq_notify(cq);
	return max(num, 0);
}

static noinline int cq_poll_batch(struct ibchan_cq *cq)
{
	return test_bit(CQ_DEAD, &cq->flags) ? 0 : cq_poll_alive(cq);
}

/*
 * The caller owns the cq and wants what is in it now, up to about @max: other channels may
 * go on, but no more than its size was there when this began. False: nothing is left.
 */
bool ibchan_cq_sweep(struct ibchan_cq *cq, u32 max)
{
	u32 total = 0;
	int num;

	do {
		num = cq_poll_batch(cq);
		total += num;
	} while (num && total < max);
	return num;
}

/* Waiters want to know of any completion, some consumers of solicited ones only. */
static enum ib_cq_notify_flags cq_event_kind(struct ibchan_cq *cq)
{
	clear_bit(CQ_ARM_SOLICITED, &cq->flags);
	return test_and_clear_bit(CQ_ARM, &cq->flags) ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED;
}

/*
 * The caller owns the cq. A completion that came before the request makes no
 * event: CQ_AGAIN then has the owner look once more.
 */
static void cq_request_event(struct ibchan_cq *cq)
{
	enum ib_cq_notify_flags kind;
	int ret;

	if (!test_bit(CQ_ARM, &cq->flags) && !test_bit(CQ_ARM_SOLICITED, &cq->flags))
		return;
	kind = cq_event_kind(cq);
	if (test_bit(CQ_DEAD, &cq->flags) || !atomic_read(&cq->in_flight))
		return;
	/* An event that is due for anything serves; one for solicited ones may not. */
	if (test_and_set_bit(CQ_ARMED, &cq->flags) && kind != IB_CQ_NEXT_COMP)
		return;
	if (kind == IB_CQ_NEXT_COMP && test_and_set_bit(CQ_ARMED_ANY, &cq->flags))
		return;
	set_bit(CQ_EVENTFUL, &cq->flags);
	ret = ibchan_fault(IBCHAN_FAULT_CQ_NOTIFY) ?:
	      ib_req_notify_cq(cq->ib, kind | IB_CQ_REPORT_MISSED_EVENTS);
	if (ret > 0)
		set_bit(CQ_AGAIN, &cq->flags);
	if (ret >= 0)
		return;
	/* No event will come: the worker goes on until nothing is in flight. */
	clear_bit(CQ_ARMED_ANY, &cq->flags);
	clear_bit(CQ_ARMED, &cq->flags);
	set_bit(CQ_WANTED, &cq->flags);
	queue_work(ibchan_wq, &cq->reap_work);
}

/* What nearly nobody needs: the cq holds more than a batch, or is to be armed. */
static noinline int cq_reap_more(struct ibchan_cq *cq, int num, int budget)
{
	int total = num;

	while (num == IBCHAN_REAP_BATCH && total < budget) {
		num = cq_poll_batch(cq);
		total += num;
	}
	if (num == IBCHAN_REAP_BATCH)
		queue_work(ibchan_wq, &cq->reap_work);
	else
		cq_request_event(cq);
	return total;
}

/* The caller owns the cq. Whoever has left word is heard with the poll behind this. */
static noinline int cq_reap_marked(struct ibchan_cq *cq)
{
	clear_bit(CQ_AGAIN, &cq->flags);
	/* What made somebody set it before this is seen by the poll. */
	smp_mb__after_atomic();
	return cq_poll_batch(cq);
}

static __always_inline int cq_poll_owned(struct ibchan_cq *cq)
{
	/* Who leaves word after this look is seen by the one when the cq is given up. */
	if (unlikely(READ_ONCE(cq->flags) & (BIT(CQ_AGAIN) | BIT(CQ_DEAD))))
		return cq_reap_marked(cq);
	return cq_poll_alive(cq);
}

static __always_inline bool cq_has_wish(const struct ibchan_cq *cq)
{
	return READ_ONCE(cq->flags) & (BIT(CQ_ARM) | BIT(CQ_ARM_SOLICITED));
}

static __always_inline int cq_reap_owned(struct ibchan_cq *cq, int budget)
{
	int num = cq_poll_owned(cq);

	if (likely(num < IBCHAN_REAP_BATCH && !cq_has_wish(cq)))
		return num;
	return cq_reap_more(cq, num, budget);
}

/* Takes the right to reap, or leaves word with who has it. */
static __always_inline bool cq_claim(struct ibchan_cq *cq)
{
	if (likely(cq_try_own(cq)))
		return true;
	set_bit(CQ_AGAIN, &cq->flags);
	/* Pairs with the owner's barrier in cq_give_up(). */
	smp_mb__after_atomic();
	return cq_try_own(cq);
}

/* Who has left word meanwhile is to be heard behind this. */
static __always_inline void cq_give_up(struct ibchan_cq *cq)
{
	ibchan_fault_linger(IBCHAN_WINDOW_REAPED);
	ibchan_cq_disown(cq);
	/* Pairs with the one of who leaves word: one of the two sees the other. */
	smp_mb();
}

/* The caller gives up the cq here. */
static __always_inline int cq_reap_once(struct ibchan_cq *cq, int budget)
{
	int num = cq_reap_owned(cq, budget);

	cq_give_up(cq);
	return num;
}

/* Others may leave word for ever, and there may be nothing for them each time. */
static noinline int cq_reap_again(struct ibchan_cq *cq, int total, int budget)
{
	int looks = 0;

	while (test_bit(CQ_AGAIN, &cq->flags)) {
		if (total >= budget || ++looks > IBCHAN_REAP_BUDGET) {
			queue_work(ibchan_wq, &cq->reap_work);
			break;
		}
		if (!cq_claim(cq))
			break;
		total += cq_reap_once(cq, budget);
	}
	return total;
}

/**
 * ibchan_cq_reap - retire what has completed
 * @cq: the queue
 * @budget: stop after about this many; a worker then does the rest
 *
 * Calls the sink. When somebody else is reaping already, that one goes on until
 * nothing is left, and this call returns at once.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: how many completions this call took.
 */
int ibchan_cq_reap(struct ibchan_cq *cq, int budget)
{
	int total;

	if (unlikely(!cq_claim(cq)))
		return 0;
	total = cq_reap_once(cq, budget);
	if (likely(!test_bit(CQ_AGAIN, &cq->flags)))
		return total;
	return cq_reap_again(cq, total, budget);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_reap, IBCHAN_NS);

/*
 * Who sleeps wants any completion; his own wish was dropped if nothing was in flight
 * when he fell asleep. The barrier of that look is also that of @unsolicited.
 */
static bool solicited_will_do(struct ibchan_cq *cq)
{
	return (cq->mode & IBCHAN_CQ_SOLICITED) && !wq_has_sleeper(&cq->wait) &&
	       !atomic_read(&cq->unsolicited);
}

static void cq_wish(struct ibchan_cq *cq)
{
	set_bit(CQ_WANTED, &cq->flags);
	set_bit(solicited_will_do(cq) ? CQ_ARM_SOLICITED : CQ_ARM, &cq->flags);
}

/**
 * ibchan_cq_arm - have the cq reaped by itself while works are in flight
 * @cq: the queue
 *
 * For a consumer that is going to do something else: the next completion makes
 * an event, on which a softirq reaps. Nothing is armed when nothing is in flight.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_cq_arm(struct ibchan_cq *cq)
{
	int num;

	if (!atomic_read(&cq->in_flight))
		return;
	if (unlikely(!cq_try_own(cq))) {
		cq_wish(cq);
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
		return;
	}
	num = cq_poll_owned(cq);
	if (num == IBCHAN_REAP_BATCH || atomic_read(&cq->in_flight) || cq_has_wish(cq)) {
		cq_wish(cq);
		num = cq_reap_more(cq, num, IBCHAN_REAP_BUDGET);
	}
	cq_give_up(cq);
	if (unlikely(test_bit(CQ_AGAIN, &cq->flags)))
		cq_reap_again(cq, num, IBCHAN_REAP_BUDGET);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_arm, IBCHAN_NS);

/*
 * Who has waited on the cq, or owned it, goes. An event may have come to him that
 * somebody else wanted; a cq that its owner polls is not armed behind his back.
 */
void ibchan_cq_leave(struct ibchan_cq *cq)
{
	/* Who found it owned, and has left word, is seen to have works in flight. */
	smp_mb();
	if (!(cq->mode & IBCHAN_CQ_POLLED) || test_bit(CQ_WANTED, &cq->flags))
		ibchan_cq_arm(cq);
	else
		ibchan_cq_reap(cq, cq->entries);
}

/* The same from a worker. */
void ibchan_cq_reap_later(struct ibchan_cq *cq)
{
	queue_work(ibchan_wq, &cq->reap_work);
}

/* That there was more than a batch is no wish to be called back. Softirq or process. */
static void cq_reap_now(struct ibchan_cq *cq)
{
	if ((cq->mode & IBCHAN_CQ_POLLED) && !test_and_clear_bit(CQ_WANTED, &cq->flags))
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
	else
		ibchan_cq_arm(cq);
}

static void cq_reap_work(struct work_struct *work)
{
	cq_reap_now(container_of(work, struct ibchan_cq, reap_work));
}

static void cq_reap_tasklet(struct tasklet_struct *tasklet)
{
	cq_reap_now(container_of(tasklet, struct ibchan_cq, reap_tasklet));
}

static void cq_kick_work(struct irq_work *work)
{
	tasklet_schedule(&container_of(work, struct ibchan_cq, kick_work)->reap_tasklet);
}

/*
 * Behind a softirq or an interrupt the tasklet comes by itself. A thread, which may have
 * interrupts off, would leave it to ksoftirqd: an interrupt of our own, as soon as they
 * are on, saves that way.
 */
static void cq_kick(struct ibchan_cq *cq)
{
	if (in_interrupt())
		tasklet_schedule(&cq->reap_tasklet);
	else
		irq_work_queue(&cq->kick_work);
}

/* The device has lost completions, so nothing on this cq can be relied on. */
static void cq_error_work(struct work_struct *work)
{
	struct ibchan_cq *cq = container_of(work, struct ibchan_cq, error_work);
	struct ibchan_channel *ch;

	guard(mutex)(&cq->dev->lock);
	list_for_each_entry(ch, &cq->dev->channels, link)
		if (ch->send.cq == cq || ch->recv.cq == cq)
			ibchan_channel_break(ch, -EIO);
}

/* May run with interrupts off, under locks of the driver. */
static void cq_error(struct ib_event *event, void *context)
{
	struct ibchan_cq *cq = context;

	if (!test_bit(CQ_DEAD, &cq->flags))
		queue_work(ibchan_wq, &cq->error_work);
}

/* Drains arm a cq as well, which its owner may want to poll by himself. */
static bool cq_is_wanted(struct ibchan_cq *cq)
{
	return test_bit(CQ_WANTED, &cq->flags) || !(cq->mode & IBCHAN_CQ_POLLED);
}

/*
 * A channel has broken. What it flushes is an error, but not all devices take the
 * completion for one that wakes a cq for solicited ones only. Any context but NMI.
 */
void ibchan_cq_add_broken(struct ibchan_cq *cq)
{
	atomic_inc(&cq->unsolicited);
	/* Pairs with solicited_will_do(): who arms it now sees that, or is seen to want it. */
	smp_mb__after_atomic();
	if ((cq->mode & IBCHAN_CQ_SOLICITED) && !test_bit(CQ_DEAD, &cq->flags) &&
	    cq_is_wanted(cq))
		queue_work(ibchan_wq, &cq->reap_work);
}

/* It is closed. */
void ibchan_cq_drop_broken(struct ibchan_cq *cq)
{
	atomic_dec(&cq->unsolicited);
}

/* May run with interrupts off, under locks of the driver: no verbs here. */
static void cq_event(struct ib_cq *ib, void *context)
{
	struct ibchan_cq *cq = context;

	clear_bit(CQ_ARMED_ANY, &cq->flags);
	clear_bit(CQ_ARMED, &cq->flags);
	if (wq_has_sleeper(&cq->wait))
		wake_up_all(&cq->wait);
	else if (!test_bit(CQ_DEAD, &cq->flags) && cq_is_wanted(cq))
		cq_kick(cq);
}

static void cq_free_work(struct work_struct *work);

/* What was asked for, with defaults in place. */
static int set_sink(struct ibchan_cq *cq, const struct ibchan_cq_init *init)
{
	static const struct ibchan_sink no_sink;
	const struct ibchan_sink *sink = init->sink ?: &no_sink;

	cq->sink = sink;
	cq->priv = init->priv;
	if (!(init->flags & IBCHAN_CQ_KEEP))
		return 0;
	cq->kept = ibchan_kept_alloc(cq->entries, sink, init->priv);
	if (!cq->kept)
		return -ENOMEM;
	cq->sink = &ibchan_kept_sink;
	cq->priv = cq->kept;
	return 0;
}

static void cq_free(struct ibchan_cq *cq)
{
	ibchan_kept_free(cq->kept);
	kmem_cache_free(ibchan_cq_cache, cq);
}

static struct ibchan_cq *cq_alloc(struct ibchan_device *dev, u32 entries,
				  const struct ibchan_cq_init *init)
{
	struct ibchan_cq *cq = kmem_cache_alloc(ibchan_cq_cache, GFP_KERNEL_ACCOUNT);

	if (!cq)
		return NULL;
	memset(cq, 0, offsetof(struct ibchan_cq, wc));
	cq->dev = dev;
	cq->mode = init->flags;
	cq->entries = entries;
	init_waitqueue_head(&cq->wait);
	INIT_WORK(&cq->reap_work, cq_reap_work);
	cq->kick_work = IRQ_WORK_INIT_HARD(cq_kick_work);
	tasklet_setup(&cq->reap_tasklet, cq_reap_tasklet);
	INIT_WORK(&cq->error_work, cq_error_work);
	INIT_RCU_WORK(&cq->free_work, cq_free_work);
	refcount_set(&cq->users, 1);
	spin_lock_init(&cq->space_lock);
	if (!set_sink(cq, init))
		return cq;
	cq_free(cq);
	return NULL;
}

static struct ibchan_cq *cq_create(struct ibchan_device *dev, u32 entries,
				   const struct ibchan_cq_init *init)
{
	struct ib_cq_init_attr attr = { .cqe = entries };
	struct ibchan_cq *cq = cq_alloc(dev, entries, init);
	struct ib_cq *ib;

	if (!cq)
		return ERR_PTR(-ENOMEM);
	ib = ibchan_fault_ptr(IBCHAN_FAULT_CQ_CREATE) ?:
	     ib_create_cq(dev->ib, cq_event, cq_error, cq, &attr);
	if (IS_ERR(ib)) {
		cq_free(cq);
		return ERR_CAST(ib);
	}
	cq->ib = ib;
	ibchan_device_hold(dev);
	mutex_lock(&dev->lock);
	list_add_tail(&cq->link, &dev->cqs);
	mutex_unlock(&dev->lock);
	ibchan_gauge(cqs, 1);
	return cq;
}

static int check_init(const struct ibchan_device *dev, const struct ibchan_cq_init *init,
		      struct ibchan_reason *reason)
{
	if (init->flags & ~(IBCHAN_CQ_POLLED | IBCHAN_CQ_KEEP | IBCHAN_CQ_SOLICITED))
		return -EOPNOTSUPP;
	if (init->sink && init->sink->done && (init->flags & IBCHAN_CQ_KEEP))
		return -EINVAL;
	if (init->entries <= dev->attr.max_cqe)
		return 0;
	if (reason)
		reason->element = IBCHAN_PARAMETER_CQ_ENTRIES;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PARAMETER, -EINVAL,
				    (u64[3]) { init->entries, 1, dev->attr.max_cqe });
}

/**
 * ibchan_cq_create - make a completion queue
 * @dev: where
 * @init: what it is like; not needed afterwards, but for the sink
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: the queue; -EINVAL when the device cannot have so many entries, or for
 * a sink that takes completions which are to be kept; -EOPNOTSUPP for an unknown
 * flag; -ENODEV when the device is gone; -ENOMEM; the driver's errno.
 */
struct ibchan_cq *ibchan_cq_create(struct ibchan_device *dev,
				   const struct ibchan_cq_init *init,
				   struct ibchan_reason *reason)
{
	u32 entries = init->entries ?: min_t(u32, DEFAULT_ENTRIES, dev->attr.max_cqe);
	struct ibchan_cq *cq;
	int ret;

	ret = check_init(dev, init, reason);
	if (!ret)
		ret = ibchan_device_enter(dev);
	if (ret)
		return ERR_PTR(ret);
	cq = cq_create(dev, entries, init);
	ibchan_device_exit(dev);
	return cq;
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_create, IBCHAN_NS);

/* Promises entries to so many queues of a channel, each of which becomes a user. */
int ibchan_cq_reserve(struct ibchan_cq *cq, u32 entries, int queues,
		      struct ibchan_reason *reason)
{
	u32 unused;

	spin_lock(&cq->space_lock);
	unused = cq->entries - cq->reserved;
	if (entries <= unused)
		cq->reserved += entries;
	spin_unlock(&cq->space_lock);
	if (entries > unused)
		return ibchan_refuse_values(reason, IBCHAN_REASON_CQ_FULL, -EAGAIN,
					    (u64[3]) { entries, unused });
	refcount_add(queues, &cq->users);
	return 0;
}

/* The counterpart, for one queue. */
void ibchan_cq_unreserve(struct ibchan_cq *cq, u32 entries)
{
	spin_lock(&cq->space_lock);
	cq->reserved -= entries;
	spin_unlock(&cq->space_lock);
	ibchan_cq_put(cq);
}

/* One that is asked for while another one comes leaves either of them. */
static bool cq_event_is_due(const struct ibchan_cq *cq)
{
	return READ_ONCE(cq->flags) & (BIT(CQ_ARMED) | BIT(CQ_ARMED_ANY));
}

/* No verbs and no callbacks from here on. */
static void cq_stop(struct ibchan_cq *cq)
{
	ibchan_cq_own(cq);
	set_bit(CQ_DEAD, &cq->flags);
	/* An event that came while it was asked for may have cleared what says so. */
	if (cq_event_is_due(cq) || (cq->mode & IBCHAN_CQ_SOLICITED))
		set_bit(CQ_LATE, &cq->flags);
	ibchan_cq_disown(cq);
}

/* The same when the device leaves: waiters go away with -ENODEV. */
void ibchan_cq_remove(struct ibchan_cq *cq)
{
	ibchan_cq_own(cq);
	if (!test_and_set_bit(CQ_DEAD, &cq->flags) && cq->sink->gone &&
	    !test_bit(CQ_ORPHANED, &cq->flags))
		cq->sink->gone(cq->priv);
	ibchan_cq_disown(cq);
	wake_up_all(&cq->wait);
}

/* An event that is due comes at once; one that is not is given up. */
void ibchan_cq_settle(struct ibchan_cq *cq, unsigned long deadline)
{
	unsigned long now = jiffies;

	if (time_before(now, deadline))
		wait_event_timeout(cq->wait, !cq_event_is_due(cq), deadline - now);
}

/* Waits for what events have begun, in the order in which one begins the other. */
static void cq_end_reaping(struct ibchan_cq *cq)
{
	irq_work_sync(&cq->kick_work);
	tasklet_kill(&cq->reap_tasklet);
	cancel_work_sync(&cq->reap_work);
}

/*
 * The cq is dead and settled, and a grace period has passed since. The gate is
 * held for read or closed.
 */
void ibchan_cq_release_verbs(struct ibchan_cq *cq)
{
	struct ib_cq *ib = xchg(&cq->ib, NULL);

	if (!ib)
		return;
	cq_end_reaping(cq);
	ib_destroy_cq(ib);
	ibchan_gauge(cqs, -1);
}

/* All but the memory, see ibchan_cq_release_verbs(). */
static void cq_end(struct ibchan_cq *cq)
{
	struct ibchan_device *dev = cq->dev;

	down_read(&dev->gate);
	mutex_lock(&dev->lock);
	list_del(&cq->link);
	mutex_unlock(&dev->lock);
	ibchan_cq_release_verbs(cq);
	up_read(&dev->gate);
	/* No event comes from a cq that is destroyed. */
	cq_end_reaping(cq);
	cancel_work_sync(&cq->error_work);
	ibchan_device_put(dev);
}

/*
 * Runs a grace period after the cq died, which ends every handler that had begun
 * by then. One that was still to begin gets a grace period after it has.
 */
static void cq_free_work(struct work_struct *work)
{
	struct ibchan_cq *cq = container_of(to_rcu_work(work), struct ibchan_cq, free_work);

	if (test_bit(CQ_LATE, &cq->flags)) {
		ibchan_cq_settle(cq, jiffies + IBCHAN_EVENT_TIMEOUT);
		synchronize_rcu();
	}
	cq_end(cq);
	cq_free(cq);
}

static void cq_free_rcu(struct rcu_head *rcu)
{
	cq_free(container_of(rcu, struct ibchan_cq, rcu));
}

/* No handler has begun, or can begin, on one without events. */
static void cq_free_shell(struct ibchan_cq *cq)
{
	if (test_bit(CQ_EVENTFUL, &cq->flags)) {
		queue_rcu_work(ibchan_free_wq, &cq->free_work);
		return;
	}
	cq_end(cq);
	call_rcu(&cq->rcu, cq_free_rcu);
}

/**
 * ibchan_cq_tryget - keep a cq that was found in a table
 * @cq: the queue; its memory is kept by RCU
 *
 * Context: any.
 * Return: true with a reference for ibchan_cq_put(); false if it is a shell.
 */
bool ibchan_cq_tryget(struct ibchan_cq *cq)
{
	return refcount_inc_not_zero(&cq->users);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_tryget, IBCHAN_NS);

/**
 * ibchan_cq_try_destroy - destroy a cq, unless somebody uses it
 * @cq: the queue
 *
 * On success the sink is not called any more, and only ibchan_cq_put() may still
 * be called on @cq.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY, with nothing changed, while a channel or a waiter uses it.
 */
int ibchan_cq_try_destroy(struct ibchan_cq *cq)
{
	if (!refcount_dec_if_one(&cq->users))
		return -EBUSY;
	cq_stop(cq);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_try_destroy, IBCHAN_NS);

/**
 * ibchan_cq_put - give a reference back, or the shell of a destroyed cq
 * @cq: the queue
 *
 * The device's queue goes a little later, from a worker, unless @cq is a shell that no
 * event was ever asked of.
 *
 * Context: process, may sleep.
 */
void ibchan_cq_put(struct ibchan_cq *cq)
{
	if (!refcount_read(&cq->users)) {
		cq_free_shell(cq);
	} else if (refcount_dec_and_test(&cq->users)) {
		cq_stop(cq);
		queue_rcu_work(ibchan_free_wq, &cq->free_work);
	}
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_put, IBCHAN_NS);

/**
 * ibchan_cq_poll - take completions from a cq that keeps them
 * @cq: made with IBCHAN_CQ_KEEP
 * @completions: filled, oldest first
 * @num: how many at most
 *
 * Only works without a done() of their own have such completions. Each is taken
 * once, whoever polls.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: how many; -EOPNOTSUPP for another cq.
 */
int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_completion *completions, int num)
{
	int taken;

	if (!cq->kept)
		return -EOPNOTSUPP;
	taken = ibchan_kept_take(cq->kept, completions, num);
	if (taken == num)
		return taken;
	ibchan_cq_reap(cq, max(num, IBCHAN_REAP_BATCH));
	return taken + ibchan_kept_take(cq->kept, completions + taken, num - taken);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_poll, IBCHAN_NS);
