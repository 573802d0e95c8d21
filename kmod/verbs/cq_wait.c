// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting on a completion queue.
 *
 * A waiter reaps, first without sleeping. Before it sleeps it joins the queue's list and
 * asks for an event. A caller that posts or retires something after that sees it there.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "private.h"

/* How long a waiter polls before it sleeps; a context switch costs about this. */
#define SPIN_NS			(10 * NSEC_PER_USEC)

/**
 * ibchan_cq_wake - have waiters look at their condition again
 * @cq: the queue
 *
 * Context: any.
 */
void ibchan_cq_wake(struct ibchan_cq *cq)
{
	wake_up_all(&cq->wait);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_wake, IBCHAN_NS);

/* Why a waiter should not sleep, or 0. */
static int cq_should_wake(struct ibchan_cq *cq, const struct ibchan_wait *wait)
{
	int ret = wait->ready(wait->arg);

	if (ret)
		return ret;
	if (test_bit(CQ_DEAD, &cq->flags))
		return -ENODEV;
	/* A waiter that only looks is not interrupted. */
	if (wait->deadline != KTIME_MAX && ktime_compare(ktime_get(), wait->deadline) >= 0)
		return -ETIMEDOUT;
	return signal_pending_state(wait->state, current) ? -EINTR : 0;
}

static int cq_sleep(struct ibchan_cq *cq, const struct ibchan_wait *wait)
{
	ktime_t deadline = wait->deadline;
	DEFINE_WAIT(entry);
	int ret;

	for (;;) {
		prepare_to_wait(&cq->wait, &entry, wait->state);
		set_bit(CQ_ARM, &cq->flags);
		ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
		ret = cq_should_wake(cq, wait);
		if (ret)
			break;
		schedule_hrtimeout(deadline == KTIME_MAX ? NULL : &deadline, HRTIMER_MODE_ABS);
	}
	finish_wait(&cq->wait, &entry);
	ibchan_cq_leave(cq);
	return ret;
}

/* Returns what @ready does. */
static __always_inline int reap_and_ask(struct ibchan_cq *cq, int (*ready)(void *arg), void *arg)
{
	ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
	return ready(arg);
}

/*
 * Whether a waiter may poll. One whose cpu another thread wants sleeps at once: that thread may be
 * the one that it waits for.
 */
static bool cq_may_spin(struct ibchan_cq *cq, const struct ibchan_wait *wait, u64 end)
{
	return !test_bit(CQ_DEAD, &cq->flags) && !signal_pending_state(wait->state, current) &&
	       single_task_running() && ktime_get_ns() < end;
}

/*
 * Waits on, behind a first look that has found nothing. Polls for a moment, or until it has given
 * the cpu away. The thread that ran meanwhile may have brought the completion, as soft-RoCE's
 * worker does, so one look follows. @others_ran: the first look was that one.
 */
static noinline int cq_wait_longer(struct ibchan_cq *cq, const struct ibchan_wait *wait,
				   bool others_ran)
{
	u64 end = ktime_get_ns() + SPIN_NS;
	int ret;

	while (!others_ran && cq_may_spin(cq, wait, end)) {
		cpu_relax();
		others_ran = cond_resched();
		ret = reap_and_ask(cq, wait->ready, wait->arg);
		if (ret)
			return ret;
	}
	/* An event can have come to a sleeper only. */
	return cq_sleep(cq, wait);
}

/* As ibchan_cq_wait_for(). */
static __always_inline int cq_wait(struct ibchan_cq *cq, const struct ibchan_wait *wait)
{
	bool others_ran;
	int ret;

	ibchan_may_sleep();
	if (!wait->deadline)
		return cq_sleep(cq, wait);
	others_ran = cond_resched();
	/* A completion that is there already needs no clock. */
	ret = reap_and_ask(cq, wait->ready, wait->arg);
	return ret ?: cq_wait_longer(cq, wait, others_ran);
}

/* The caller has a reference. Returns as ibchan_cq_wait() does. */
int ibchan_cq_wait_for(struct ibchan_cq *cq, const struct ibchan_wait *wait)
{
	return cq_wait(cq, wait);
}

/**
 * ibchan_cq_wait - reap until a condition holds
 * @cq: the queue; the caller has a reference
 * @ready: returns 0 to go on, a positive number when the condition holds, or a
 *	negative errno to give up; called in any task state, must not sleep
 * @arg: for @ready
 * @timeout_ns: how long; negative: no limit; 0: reap and look once
 *
 * Polls for a moment, then sleeps. A cq that is IBCHAN_CQ_POLLED is not armed
 * afterwards, unless an event was asked for before.
 *
 * Context: process, may sleep.
 * Return: the result of @ready, if not 0; -ETIMEDOUT; -EINTR when a signal is
 * pending; -ENODEV when the device is gone and the condition does not hold.
 */
int ibchan_cq_wait(struct ibchan_cq *cq, int (*ready)(void *arg), void *arg, s64 timeout_ns)
{
	struct ibchan_wait wait = {
		.ready = ready,
		.arg = arg,
		.deadline = KTIME_MAX,
		.state = TASK_INTERRUPTIBLE,
	};

	if (timeout_ns >= 0)
		wait.deadline = timeout_ns ? ktime_add_safe(ktime_get(), timeout_ns) : 0;
	return cq_wait(cq, &wait);
}
EXPORT_SYMBOL_NS_GPL(ibchan_cq_wait, IBCHAN_NS);

/* Pairs with the release when the marker is done: all before it is retired. */
static int marker_came(void *drained)
{
	return smp_load_acquire((int *)drained); /* see above */
}

/*
 * For a drain: until the marker has come or the deadline, in jiffies, has. Bottom halves run when
 * the first look ends. There soft-RoCE of 6.1 flushes, and the wait begins with a look that finds
 * the marker: no event is asked for.
 */
void ibchan_cq_wait_drained(struct ibchan_cq *cq, int *drained, unsigned long deadline)
{
	long left = max((long)(deadline - jiffies), 0L);
	struct ibchan_wait wait = {
		.ready = marker_came,
		.arg = drained,
		.deadline = ktime_add_ns(ktime_get(), jiffies64_to_nsecs(left)),
		.state = TASK_UNINTERRUPTIBLE,
	};

	ibchan_cq_reap(cq, IBCHAN_REAP_BUDGET);
	ibchan_cq_wait_for(cq, &wait);
}
