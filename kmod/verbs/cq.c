// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues: how they are made and end, and completions that stay in the kernel until the
 * consumer polls for them. Reaping is in cq_reap.c.
 *
 * Life: the last user kills the cq, so that no verb is called on it any more, and a worker destroys
 * the ib_cq behind a grace period: soft-RoCE of 6.1 calls the handler from a tasklet that lives
 * inside the cq and that it never stops, so for an event that is due the worker comes again, grace
 * period by grace period. A shell that was never armed has had no handler, so its owner destroys it
 * there and then.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "private.h"

/* Room for 120 channels with the default queues; a megabyte on soft-RoCE. */
#define DEFAULT_ENTRIES		4096U

/* Dead cqs that wait for an event. */
static atomic_t num_late;

/* Completions that nobody has taken yet. Like those of user space they get room before the post. */
struct ibchan_cq_fifo {
	spinlock_t lock;	/* of pollers; bottom halves off */
	const struct ibchan_sink *sink;	/* the consumer's, for events */
	void *priv;		/* the consumer's */
	u32 mask;		/* number of entries, a power of two, less one */
	atomic_t room;		/* entries that no work or completion has */
	u32 tail;		/* completions that ever came; written by the owner of CQ_OWNED */
	u32 head;		/* completions that were ever taken; written under @lock */
	struct ibchan_completion entries[];
};

static int fifo_reserve(void *priv, u32 num)
{
	struct ibchan_cq_fifo *fifo = priv;
	int room = atomic_read(&fifo->room);
	u32 taken;

	do {
		if (unlikely(!room))
			return -EAGAIN;
		taken = min_t(u32, num, room);
		/* Pairs with fifo_take(): what was in these entries has been read. */
	} while (!atomic_try_cmpxchg(&fifo->room, &room, room - taken));
	return taken;
}

static void fifo_cancel(void *priv, u32 num)
{
	struct ibchan_cq_fifo *fifo = priv;

	atomic_add(num, &fifo->room);
}

/* The caller owns the cq, so there is one at a time. */
static void fifo_done(void *priv, const struct ibchan_completion *completion)
{
	struct ibchan_cq_fifo *fifo = priv;
	u32 tail = fifo->tail;

	fifo->entries[tail & fifo->mask] = *completion;
	/* Pairs with fifo_take(): who sees the tail sees what is before it. */
	smp_store_release(&fifo->tail, tail + 1);
}

static void fifo_notify(void *priv)
{
	struct ibchan_cq_fifo *fifo = priv;

	if (fifo->sink->notify)
		fifo->sink->notify(fifo->priv);
}

static void fifo_gone(void *priv)
{
	struct ibchan_cq_fifo *fifo = priv;

	if (fifo->sink->gone)
		fifo->sink->gone(fifo->priv);
}

static const struct ibchan_sink fifo_sink = {
	.reserve = fifo_reserve,
	.cancel = fifo_cancel,
	.done = fifo_done,
	.notify = fifo_notify,
	.gone = fifo_gone,
};

/* Puts a ring for as many completions as @cq has entries before the consumer's sink. */
static int add_fifo(struct ibchan_cq *cq)
{
	u32 size = roundup_pow_of_two(cq->entries);
	struct ibchan_cq_fifo *fifo = kvzalloc(struct_size(fifo, entries, size),
					       GFP_KERNEL_ACCOUNT);

	if (!fifo)
		return -ENOMEM;
	fifo->sink = cq->sink;
	fifo->priv = cq->priv;
	spin_lock_init(&fifo->lock);
	fifo->mask = size - 1;
	atomic_set(&fifo->room, size);
	cq->fifo = fifo;
	cq->sink = &fifo_sink;
	cq->priv = fifo;
	return 0;
}

/*
 * How many wait to be taken, without the lock: more than there are where another poller takes some
 * at this moment. Where it is 0, there was none when the tail was read.
 */
static u32 fifo_count(const struct ibchan_cq_fifo *fifo)
{
	u32 head = smp_load_acquire(&fifo->head); /* not behind the tail */

	return READ_ONCE(fifo->tail) - head;
}

/* Oldest first; how many. */
static int fifo_take(struct ibchan_cq_fifo *fifo, struct ibchan_completion *completions, int num)
{
	u32 head, tail;
	int taken = 0;

	spin_lock_bh(&fifo->lock);
	head = fifo->head;
	/* Pairs with fifo_done(). */
	tail = smp_load_acquire(&fifo->tail);
	for (; taken < num && head != tail; taken++, completions++, head++)
		*completions = fifo->entries[head & fifo->mask];
	WRITE_ONCE(fifo->head, head);
	spin_unlock_bh(&fifo->lock);
	/* Pairs with fifo_reserve(): the entries are read before they may be written again. */
	smp_mb__before_atomic();
	atomic_add(taken, &fifo->room);
	return taken;
}

static void cq_error_work(struct work_struct *work)
{
	struct ibchan_cq *cq = container_of(work, struct ibchan_cq, error_work);

	ibchan_device_tell(breaks, cq->dev, cq, -EIO);
}

/* May run with interrupts off, under locks of the driver. */
static void cq_error(struct ib_event *event, void *context)
{
	ibchan_cq_distrust(context);
}

static void cq_free(struct rcu_head *rcu)
{
	struct ibchan_cq *cq = container_of(rcu, struct ibchan_cq, rcu);

	if (test_bit(CQ_LEAKED, &cq->flags))
		return;
	kvfree(cq->fifo);
	ibchan_cost_pay_back(&cq->cost);
	kfree(cq);
}

/* Where the device does not let go, its events go on to find the cq and this module's code. */
static void cq_destroy(struct ibchan_cq *cq, struct ib_cq *ib)
{
	unsigned int tries = 0;
	int ret;

	do {
		ret = ib_destroy_cq_user(ib, NULL);
	} while (ibchan_device_insist(cq->dev, ret, &tries));
	if (!ret)
		return;
	set_bit(CQ_LEAKED, &cq->flags);
	__module_get(THIS_MODULE);
	ibchan_gauge(leaked, 1);
}

/*
 * Must the end of the cq wait for an event? An event that is asked for while another one comes
 * leaves one of the first two flags.
 */
static bool cq_event_is_due(const struct ibchan_cq *cq)
{
	return ibchan_device_has(cq->dev, IBCHAN_QUIRK_EVENT_OUTLIVES_CQ) &&
	       READ_ONCE(cq->flags) & (BIT(CQ_ARMED) | BIT(CQ_ARMED_ANY) | BIT(CQ_MAYBE_ARMED));
}

/* An event that is due comes at once; one that is not is given up. */
void ibchan_cq_settle(struct ibchan_cq *cq, unsigned long deadline)
{
	unsigned long now = jiffies;

	if (time_before(now, deadline))
		wait_event_timeout(cq->wait, !cq_event_is_due(cq), deadline - now);
}

/*
 * The cq is dead and settled, and a grace period has passed since. Inside the gate, or it is
 * closed.
 */
void ibchan_cq_release_verbs(struct ibchan_cq *cq)
{
	struct ib_cq *ib = xchg(&cq->ib, NULL);

	if (!ib)
		return;
	cq_destroy(cq, ib);
	ibchan_gauge(cqs, -1);
}

/* All but the memory, see ibchan_cq_release_verbs(). */
static void cq_end(struct ibchan_cq *cq)
{
	struct ibchan_device *dev = cq->dev;

	guard(ibchan_noio)();
	ibchan_device_enter_to_end(dev);
	scoped_guard(mutex, &dev->lock)
		list_del(&cq->link);
	ibchan_cq_release_verbs(cq);
	ibchan_device_exit(dev);
	/* No event comes from a cq that is destroyed. */
	ibchan_cq_end_reaping(cq);
	cancel_work_sync(&cq->error_work);
	ibchan_device_put(dev);
}

/*
 * Runs a grace period after the cq died, which ends every handler that had begun by then. As long
 * as an event is due it runs again behind the next one, and once more when that has come, as its
 * handler may still run. It holds no worker meanwhile: a user may have any number of such cqs.
 */
static void cq_free_work(struct work_struct *work)
{
	struct ibchan_cq *cq = container_of(to_rcu_work(work), struct ibchan_cq, free_work);
	bool waits;

	if (!test_bit(CQ_LATE, &cq->flags)) {
		cq_end(cq);
		cq_free(&cq->rcu);
		return;
	}
	/* A second of looks begins behind the first grace period. */
	if (!cq->late_until)
		cq->late_until = (jiffies + IBCHAN_EVENT_TIMEOUT) ?: 1;
	/* Without a verbs object no event comes. */
	waits = READ_ONCE(cq->ib) && cq_event_is_due(cq) && time_before(jiffies, cq->late_until);
	if (!waits)
		clear_bit(CQ_LATE, &cq->flags);
	queue_rcu_work(ibchan_slow_wq, &cq->free_work);
	if (!waits && atomic_dec_and_test(&num_late))
		wake_up_var(&num_late);
}

/* Behind this the works of all cqs that have died are queued, or will be by RCU. */
void ibchan_cq_await_late(void)
{
	wait_var_event(&num_late, !atomic_read(&num_late));
}

/* A grace period later, as handlers may be running. */
static void cq_free_later(struct ibchan_cq *cq)
{
	/* An event that came while it was asked for may have cleared what says so. */
	if (cq_event_is_due(cq) || (cq->mode & IBCHAN_CQ_SOLICITED)) {
		set_bit(CQ_LATE, &cq->flags);
		atomic_inc(&num_late);
	}
	queue_rcu_work(ibchan_slow_wq, &cq->free_work);
}

static struct ibchan_cq *cq_alloc(struct ibchan_device *dev, const struct ibchan_cq_init *init,
				  struct lock_class_key *class)
{
	static const struct ibchan_sink no_sink;
	struct ibchan_cq *cq = kzalloc_node(sizeof(*cq), GFP_KERNEL_ACCOUNT, dev->node);

	if (!cq)
		return NULL;
	cq->dev = dev;
	cq->sink = init->sink ?: &no_sink;
	cq->priv = init->priv;
	cq->mode = init->flags;
	cq->entries = init->entries ?: min(DEFAULT_ENTRIES, dev->attr.max_cqe);
	ibchan_cq_init_reaping(cq);
	ibchan_callback_init(cq, class);
	INIT_WORK(&cq->error_work, cq_error_work);
	INIT_RCU_WORK(&cq->free_work, cq_free_work);
	refcount_set(&cq->users, 1);
	spin_lock_init(&cq->space_lock);
	return cq;
}

static int create_verbs(struct ibchan_cq *cq, const struct ibchan_cq_init *init)
{
	struct ib_cq_init_attr attr = {
		.cqe = cq->entries,
		.comp_vector = init->comp_vector - 1,
	};
	struct ib_cq *ib;
	int ret = 0;

	/* Each vector interrupts a cpu of its own, as long as there are enough of them. */
	if (!init->comp_vector)
		attr.comp_vector = (u32)atomic_fetch_inc(&cq->dev->next_vector) %
				   max(cq->dev->attr.comp_vectors, 1U);
	ib = ibchan_fault_ptr(IBCHAN_FAULT_CQ_CREATE) ?:
	     ib_create_cq(cq->dev->ib, ibchan_cq_event, cq_error, cq, &attr);
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	if (init->moderation_count)
		ret = rdma_set_cq_moderation(ib, init->moderation_count, init->moderation_us);
	if (!ret)
		cq->ib = ib;
	else
		cq_destroy(cq, ib);
	return ret;
}

static int check_init(const struct ibchan_device *dev, const struct ibchan_cq_init *init,
		      struct ibchan_reason *reason)
{
	if (init->flags & ~(IBCHAN_CQ_POLLED | IBCHAN_CQ_KEEP | IBCHAN_CQ_SOLICITED |
			    IBCHAN_CQ_POST_REAPS))
		return -EOPNOTSUPP;
	if ((init->flags & IBCHAN_CQ_POLLED) && (init->flags & IBCHAN_CQ_POST_REAPS))
		return -EINVAL;
	if (init->sink && init->sink->done && (init->flags & IBCHAN_CQ_KEEP))
		return -EINVAL;
	if (!init->moderation_count != !init->moderation_us)
		return -EINVAL;
	if (init->entries > dev->attr.max_cqe)
		return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_CQ_ENTRIES,
					       init->entries, 1, dev->attr.max_cqe);
	if (init->comp_vector > dev->attr.comp_vectors)
		return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_COMP_VECTOR,
					       init->comp_vector, 1, dev->attr.comp_vectors);
	return 0;
}

/**
 * __ibchan_cq_create - ibchan_cq_create(), which is to be used instead
 * @dev: where
 * @init: its properties
 * @reason: why not, or NULL
 * @class: its class for lockdep
 *
 * Context: process, may sleep.
 * Return: the queue or an errno.
 */
struct ibchan_cq *__ibchan_cq_create(struct ibchan_device *dev, const struct ibchan_cq_init *init,
				     struct ibchan_reason *reason, struct lock_class_key *class)
{
	struct ibchan_cq *cq;
	int ret;

	might_sleep();
	ret = check_init(dev, init, reason);
	if (ret)
		return ERR_PTR(ret);
	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return ERR_PTR(-ENODEV);
	cq = cq_alloc(dev, init, class);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	ret = ibchan_cost_charge(&cq->cost, init->budget, ibchan_footprint_cq(cq->entries), reason);
	if (!ret && cq->mode & IBCHAN_CQ_KEEP)
		ret = add_fifo(cq);
	if (!ret)
		ret = create_verbs(cq, init);
	if (ret) {
		cq_free(&cq->rcu);
		return ERR_PTR(ret);
	}
	ibchan_device_hold(dev);
	scoped_guard(mutex, &dev->lock)
		list_add_tail(&cq->link, &dev->cqs);
	ibchan_gauge(cqs, 1);
	return cq;
}
EXPORT_SYMBOL_NS_GPL(__ibchan_cq_create, IBCHAN_NS);

/* Takes a reference for a queue of a channel. The caller has one. ibchan_cq_put() gives it back. */
void ibchan_cq_hold(struct ibchan_cq *cq)
{
	refcount_inc(&cq->users);
}

/* Promises entries to queues of a channel. */
int ibchan_cq_reserve(struct ibchan_cq *cq, u32 entries, struct ibchan_reason *reason)
{
	u32 unused;

	guard(spinlock)(&cq->space_lock);
	unused = cq->entries - cq->reserved;
	if (entries > unused)
		return ibchan_refuse_values(reason, IBCHAN_REASON_CQ_FULL, -EAGAIN,
					    (u64[3]) { entries, unused });
	cq->reserved += entries;
	return 0;
}

/* The counterpart, for one queue or all. */
void ibchan_cq_unreserve(struct ibchan_cq *cq, u32 entries)
{
	guard(spinlock)(&cq->space_lock);
	cq->reserved -= entries;
}

/* No verbs and no callbacks from here on. */
static void cq_stop(struct ibchan_cq *cq)
{
	ibchan_cq_own(cq);
	set_bit(CQ_DEAD, &cq->flags);
	ibchan_cq_disown(cq);
}

/* Stops a cq whose device leaves: waiters go away with -ENODEV. */
void ibchan_cq_remove(struct ibchan_cq *cq)
{
	int begun;

	ibchan_cq_own(cq);
	begun = ibchan_callback_begin(cq, NULL);
	if (!test_and_set_bit(CQ_DEAD, &cq->flags) && cq->sink->gone &&
	    !test_bit(CQ_ORPHANED, &cq->flags))
		cq->sink->gone(cq->priv);
	ibchan_callback_end(cq, NULL, begun);
	ibchan_cq_disown(cq);
	wake_up_all(&cq->wait);
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
 * ibchan_cq_try_destroy - destroy a cq, unless it is in use
 * @cq: the queue
 *
 * On success the sink is not called any more, and only ibchan_cq_put() may still be called on @cq.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY, with nothing changed, while a channel or a waiter uses it.
 */
int ibchan_cq_try_destroy(struct ibchan_cq *cq)
{
	might_sleep();
	if (!refcount_dec_if_one(&cq->users))
		return -EBUSY;
	cq_stop(cq);
	set_bit(CQ_SHELL, &cq->flags);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_try_destroy, IBCHAN_NS);

/**
 * ibchan_cq_put - give a reference back, or the shell of a destroyed cq
 * @cq: the queue
 *
 * The device's queue goes a little later, from a worker, unless @cq is a shell that no
 * event was ever asked of. One that has ended has no reference to give back: a caller that does so
 * is told in the log, and nothing happens.
 *
 * Context: process, may sleep.
 */
void ibchan_cq_put(struct ibchan_cq *cq)
{
	ibchan_may_sleep();
	if (test_and_clear_bit(CQ_SHELL, &cq->flags)) {
		/* No handler has begun, or can begin, on one without events. */
		if (test_bit(CQ_EVENTFUL, &cq->flags)) {
			cq_free_later(cq);
			return;
		}
		cq_end(cq);
		call_rcu(&cq->rcu, cq_free);
	} else if (!refcount_read(&cq->users)) {
		pr_warn_once("ibchan: a completion queue that has ended is given back, at %pS\n",
			     __builtin_return_address(0));
	} else if (refcount_dec_and_test(&cq->users)) {
		cq_stop(cq);
		cq_free_later(cq);
	}
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_put, IBCHAN_NS);

/**
 * ibchan_cq_poll - take completions from a cq that keeps them
 * @cq: made with IBCHAN_CQ_KEEP
 * @completions: filled, oldest first
 * @num: how many at most
 *
 * Only works without a done() of their own have such completions. Each completion is given
 * to one poller.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: how many; -EOPNOTSUPP for another cq.
 */
int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_completion *completions, int num)
{
	struct ibchan_cq_fifo *fifo = cq->fifo;

	if (!fifo)
		return -EOPNOTSUPP;
	ibchan_callback_may_come(cq);
	if (fifo_count(fifo) < num)
		ibchan_cq_reap(cq, max(num, IBCHAN_REAP_BATCH));
	return fifo_count(fifo) ? fifo_take(fifo, completions, num) : 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_poll, IBCHAN_NS);
