// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reaping completion queues.
 *
 * ibchan_cq_reap() and what is behind it is the only poller of an ib_cq. One caller at a time has
 * the right to reap (CQ_OWNED); another that comes meanwhile leaves CQ_AGAIN behind and goes, and
 * the owner looks once more. So completions of a qp are retired in order, and no caller waits.
 * Callbacks of the consumer run under that right, with bottom halves off and no lock held.
 * cq_reap.litmus states the memory ordering by which no look is lost.
 *
 * Events: an ib_cq is armed only while works are in flight and no caller is about to reap. The
 * completion handler may run under locks of the driver with interrupts off; it wakes an in-kernel
 * waiter or has a tasklet reap, no more. The tasklet leaves a long queue to a worker, which lets
 * others run.
 */
#include <linux/delay.h>

#include "private.h"

/* Of flags: the cq is to be armed. */
#define CQ_TO_ARM	(BIT(CQ_ARM) | BIT(CQ_ARM_SOLICITED))

static bool cq_try_own(struct ibchan_cq *cq)
{
	local_bh_disable();
	if (!test_and_set_bit_lock(CQ_OWNED, &cq->flags))
		return true;
	local_bh_enable();
	return false;
}

/*
 * For a caller that looks at the cq again and again. Its owner is on another cpu, cannot sleep
 * and is soon done. With PREEMPT_RT the owner may have been preempted, also by the caller: there
 * the caller sleeps. Process context.
 */
void ibchan_cq_make_way(struct ibchan_cq *cq)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && test_bit(CQ_OWNED, &cq->flags))
		usleep_range(10, 100);
	else
		cpu_relax();
}

/* Process context. */
void ibchan_cq_own(struct ibchan_cq *cq)
{
	might_sleep();
	while (!cq_try_own(cq))
		ibchan_cq_make_way(cq);
}

/* Gives up the right to reap. The caller then looks at CQ_AGAIN, which others may have set. */
static __always_inline void cq_give_up(struct ibchan_cq *cq)
{
	ibchan_fault_linger(IBCHAN_WINDOW_REAPED);
	clear_bit_unlock(CQ_OWNED, &cq->flags);
	/* Pairs with cq_claim(): the owner sees CQ_AGAIN, or the other caller gets the cq. */
	smp_mb__after_atomic();
	local_bh_enable();
}

void ibchan_cq_disown(struct ibchan_cq *cq)
{
	cq_give_up(cq);
}

/*
 * Waits for the owner, who takes a work out of its queue before he tells of it: a work that the
 * caller saw leave a queue has been told of afterwards. Process context.
 */
void ibchan_cq_await_owner(struct ibchan_cq *cq)
{
	/* Pairs with ibchan_cq_disown(). */
	while (smp_load_acquire(&cq->flags) & BIT(CQ_OWNED))
		ibchan_cq_make_way(cq);
}

/* The caller owns the cq and has retired works. */
static __always_inline void cq_notify(struct ibchan_cq *cq)
{
	int retired = cq->retired, begun;

	if (!retired)
		return;
	cq->retired = 0;
	atomic_sub(retired, &cq->in_flight);
	begun = ibchan_callback_begin(cq, NULL);
	if (cq->sink->notify)
		cq->sink->notify(cq->priv);
	ibchan_callback_end(cq, NULL, begun);
	if (wq_has_sleeper(&cq->wait))
		wake_up_all(&cq->wait);
}

void ibchan_cq_notify(struct ibchan_cq *cq)
{
	cq_notify(cq);
}

/*
 * A device that completes what is not in flight has lost count, and nothing on this cq can be
 * relied on. Any context.
 */
void ibchan_cq_distrust(struct ibchan_cq *cq)
{
	if (!test_bit(CQ_DEAD, &cq->flags))
		queue_work(ibchan_wq, &cq->error_work);
}

/*
 * The caller owns the cq. The poll finds what other callers have set CQ_AGAIN for. False: the cq is
 * dead.
 */
static noinline bool cq_look_again(struct ibchan_cq *cq)
{
	clear_bit(CQ_AGAIN, &cq->flags);
	/* The poll comes behind all that a caller did before it set CQ_AGAIN. */
	smp_mb__after_atomic();
	return !test_bit(CQ_DEAD, &cq->flags);
}

/*
 * The caller owns the cq. Returns how many completions there were, up to a batch. A work request
 * that has ended has no done() any more.
 */
static __always_inline int cq_poll(struct ibchan_cq *cq)
{
	void (*done)(struct ib_cq *ib, struct ib_wc *wc);
	int i, num, repeat;

	/* Where CQ_AGAIN is set after this look, the owner sees it when it gives the cq up. */
	if (unlikely(READ_ONCE(cq->flags) & (BIT(CQ_AGAIN) | BIT(CQ_DEAD))) && !cq_look_again(cq))
		return 0;
	num = ibchan_fault(IBCHAN_FAULT_CQ_POLL) ?: ib_poll_cq(cq->ib, IBCHAN_REAP_BATCH, cq->wc);
	if (unlikely(num <= 0))
		return 0;
	for (i = 0; i < num; i++) {
		ibchan_fault_completion(&cq->wc[i]);
		repeat = !!ibchan_fault(IBCHAN_FAULT_REPEAT);
		do {
			done = READ_ONCE(cq->wc[i].wr_cqe->done);
			if (likely(done))
				done(cq->ib, &cq->wc[i]);
			else
				ibchan_cq_distrust(cq);
		} while (repeat--);
	}
	cq_notify(cq);
	return num;
}

static noinline int cq_poll_batch(struct ibchan_cq *cq)
{
	return cq_poll(cq);
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

/* The caller owns the cq. */
static void cq_request_event(struct ibchan_cq *cq)
{
	enum ib_cq_notify_flags kind;
	int ret;

	if (!test_bit(CQ_ARM, &cq->flags) && !test_bit(CQ_ARM_SOLICITED, &cq->flags))
		return;
	/* Waiters want to know of any completion, some consumers of solicited ones only. */
	clear_bit(CQ_ARM_SOLICITED, &cq->flags);
	kind = test_and_clear_bit(CQ_ARM, &cq->flags) ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED;
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
	if (likely(!ret))
		return;
	clear_bit(CQ_ARMED_ANY, &cq->flags);
	clear_bit(CQ_ARMED, &cq->flags);
	if (ret > 0) {
		/*
		 * A completion was there before the request: it makes no event, and whether the
		 * next one does depends on the driver (bnxt_re has not armed the cq, most others
		 * have). So the owner looks once more, and asks once more behind that, as ib_core
		 * does.
		 */
		cq->is_late = false;
		set_bit(CQ_MAYBE_ARMED, &cq->flags);
		set_bit(kind == IB_CQ_NEXT_COMP ? CQ_ARM : CQ_ARM_SOLICITED, &cq->flags);
		set_bit(CQ_AGAIN, &cq->flags);
		return;
	}
	/* No event will come: the worker goes on until nothing is in flight. */
	set_bit(CQ_WANTED, &cq->flags);
	queue_work(ibchan_wq, &cq->reap_work);
}

/* The rare rest: the cq holds more than a batch, or is to be armed. */
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

/* Takes the right to reap, or leaves CQ_AGAIN for the owner. */
static __always_inline bool cq_claim(struct ibchan_cq *cq)
{
	if (likely(cq_try_own(cq)))
		return true;
	/* Pairs with cq_look_again(): the owner that sees CQ_AGAIN sees what is behind it. */
	smp_mb__before_atomic();
	set_bit(CQ_AGAIN, &cq->flags);
	/* Pairs with the owner's barrier in cq_give_up(); cq_reap.litmus has both pairs. */
	smp_mb__after_atomic();
	return cq_try_own(cq);
}

/* The caller, who owns the cq, gives it up here. */
static __always_inline int cq_reap_once(struct ibchan_cq *cq, int budget)
{
	int num = cq_poll(cq);

	if (unlikely(num == IBCHAN_REAP_BATCH || READ_ONCE(cq->flags) & CQ_TO_ARM))
		num = cq_reap_more(cq, num, budget);
	cq_give_up(cq);
	return num;
}

/* Others may set CQ_AGAIN for ever, with nothing to reap each time: so looks are counted. */
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
 * Calls the sink. When another caller is reaping already, this call returns at once, and
 * the other one goes on until nothing is left.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: how many completions this call took.
 */
int ibchan_cq_reap(struct ibchan_cq *cq, int budget)
{
	int total;

	ibchan_callback_may_come(cq);
	if (unlikely(!cq_claim(cq)))
		return 0;
	total = cq_reap_once(cq, budget);
	if (likely(!test_bit(CQ_AGAIN, &cq->flags)))
		return total;
	return cq_reap_again(cq, total, budget);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_reap, IBCHAN_NS);

/*
 * A sleeping waiter wants any completion; its own request to arm was dropped if nothing was
 * in flight when it fell asleep. The barrier of that look is also that of @broken.
 */
static void cq_ask_to_arm(struct ibchan_cq *cq)
{
	bool solicited_will_do;

	set_bit(CQ_WANTED, &cq->flags);
	solicited_will_do = (cq->mode & IBCHAN_CQ_SOLICITED) && !wq_has_sleeper(&cq->wait) &&
			    !atomic_read(&cq->broken);
	set_bit(solicited_will_do ? CQ_ARM_SOLICITED : CQ_ARM, &cq->flags);
}

/*
 * Whether an event is due for the next completion, of whatever kind it is. The cq is reaped
 * behind that event.
 */
static __always_inline bool cq_is_heard(struct ibchan_cq *cq)
{
	if (likely(!test_bit(CQ_ARMED_ANY, &cq->flags)))
		return false;
	set_bit(CQ_WANTED, &cq->flags);
	/* Pairs with ibchan_cq_event(): it has not come yet, or sees that it is wanted. */
	smp_mb__after_atomic();
	return test_bit(CQ_ARMED_ANY, &cq->flags);
}

/*
 * The caller owns the cq. Where nothing was there so soon the last time, asking for the event
 * is to tell, unless that is not for all: then nothing may be asked.
 */
static __always_inline int cq_look(struct ibchan_cq *cq)
{
	int num;

	if (cq->is_late && !(cq->mode & IBCHAN_CQ_SOLICITED))
		return 0;
	num = cq_poll(cq);
	cq->is_late = !num;
	return num;
}

static __always_inline void cq_arm(struct ibchan_cq *cq, int (*look)(struct ibchan_cq *cq))
{
	int num;

	if (unlikely(!cq_try_own(cq))) {
		cq_ask_to_arm(cq);
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
		return;
	}
	num = look(cq);
	if (num == IBCHAN_REAP_BATCH || atomic_read(&cq->in_flight) ||
	    READ_ONCE(cq->flags) & CQ_TO_ARM) {
		cq_ask_to_arm(cq);
		num = cq_reap_more(cq, num, IBCHAN_REAP_BUDGET);
	}
	cq_give_up(cq);
	if (unlikely(test_bit(CQ_AGAIN, &cq->flags)))
		cq_reap_again(cq, num, IBCHAN_REAP_BUDGET);
}

/**
 * ibchan_cq_arm - have the cq reaped by itself while works are in flight
 * @cq: the queue
 *
 * For a consumer that is going to do something else: the next completion makes
 * an event, on which a softirq reaps. Nothing is armed when nothing is in flight.
 * Completions that the device has made already are reaped now, or make the event.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_cq_arm(struct ibchan_cq *cq)
{
	ibchan_callback_may_come(cq);
	if (atomic_read(&cq->in_flight) && likely(!cq_is_heard(cq)))
		cq_arm(cq, cq_look);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_arm, IBCHAN_NS);

/* ibchan_cq_arm() for a caller that knows of completions that are, or may be, there. */
static noinline void cq_reap_and_arm(struct ibchan_cq *cq)
{
	if (atomic_read(&cq->in_flight))
		cq_arm(cq, cq_poll);
}

/* Drains arm a cq as well, which its owner may want to poll by himself. */
static bool cq_is_wanted(struct ibchan_cq *cq)
{
	return test_bit(CQ_WANTED, &cq->flags) || !(cq->mode & IBCHAN_CQ_POLLED);
}

/*
 * A waiter, or an owner of the cq, goes. It may have taken an event that another waiter
 * wanted. A cq with IBCHAN_CQ_POLLED is armed only if an event was asked for.
 */
void ibchan_cq_leave(struct ibchan_cq *cq)
{
	/* A poster that found the cq owned, and set CQ_AGAIN, is seen to have works in flight. */
	smp_mb();
	if (cq_is_wanted(cq))
		cq_reap_and_arm(cq);
	else
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
}

/* A worker reaps, and arms the cq if that is wanted. */
void ibchan_cq_reap_later(struct ibchan_cq *cq)
{
	queue_work(ibchan_wq, &cq->reap_work);
}

/* Whether it has yet to begin. */
bool ibchan_cq_is_to_reap(struct ibchan_cq *cq)
{
	return work_pending(&cq->reap_work);
}

/* More than a batch alone does not ask for an event. Softirq or process. */
static void cq_reap_now(struct ibchan_cq *cq)
{
	if ((cq->mode & IBCHAN_CQ_POLLED) && !test_and_clear_bit(CQ_WANTED, &cq->flags))
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
	else
		cq_reap_and_arm(cq);
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

/*
 * The caller must not be called back: a softirq reaps what is there already. Not with interrupts
 * off.
 */
void ibchan_cq_arm_only(struct ibchan_cq *cq)
{
	if (!atomic_read(&cq->in_flight) || cq_is_heard(cq))
		return;
	/* No event tells of a completion that is not solicited. */
	if (cq->mode & IBCHAN_CQ_SOLICITED) {
		set_bit(CQ_WANTED, &cq->flags);
		cq_kick(cq);
		return;
	}
	cq_ask_to_arm(cq);
	/* Another caller that owns the cq arms it. */
	if (!cq_claim(cq))
		return;
	cq_request_event(cq);
	cq_give_up(cq);
	if (test_bit(CQ_AGAIN, &cq->flags) && !test_bit(CQ_DEAD, &cq->flags))
		cq_kick(cq);
}

/*
 * A channel has broken. Its flushed works complete with an error, but not all devices
 * wake a cq for them that is armed for solicited completions only. Any context but NMI.
 */
void ibchan_cq_add_broken(struct ibchan_cq *cq)
{
	atomic_inc(&cq->broken);
	/* Pairs with cq_ask_to_arm(): its caller sees the count, or CQ_WANTED is seen here. */
	smp_mb__after_atomic();
	if ((cq->mode & IBCHAN_CQ_SOLICITED) && !test_bit(CQ_DEAD, &cq->flags) && cq_is_wanted(cq))
		queue_work(ibchan_wq, &cq->reap_work);
}

/* The broken channel is closed. */
void ibchan_cq_drop_broken(struct ibchan_cq *cq)
{
	atomic_dec(&cq->broken);
}

/* May run with interrupts off, under locks of the driver: no verbs here. */
void ibchan_cq_event(struct ib_cq *ib, void *context)
{
	struct ibchan_cq *cq = context;

	clear_bit(CQ_ARMED_ANY, &cq->flags);
	clear_bit(CQ_ARMED, &cq->flags);
	clear_bit(CQ_MAYBE_ARMED, &cq->flags);
	if (wq_has_sleeper(&cq->wait))
		wake_up_all(&cq->wait);
	else if (!test_bit(CQ_DEAD, &cq->flags) && cq_is_wanted(cq))
		cq_kick(cq);
}

void ibchan_cq_init_reaping(struct ibchan_cq *cq)
{
	init_waitqueue_head(&cq->wait);
	INIT_WORK(&cq->reap_work, cq_reap_work);
	cq->kick_work = IRQ_WORK_INIT_HARD(cq_kick_work);
	tasklet_setup(&cq->reap_tasklet, cq_reap_tasklet);
}

/* Waits for what events have begun, in the order in which one begins the other. */
void ibchan_cq_end_reaping(struct ibchan_cq *cq)
{
	irq_work_sync(&cq->kick_work);
	tasklet_kill(&cq->reap_tasklet);
	cancel_work_sync(&cq->reap_work);
}
