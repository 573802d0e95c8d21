// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pending works keep their result until their owner looks. A blocking call has one on its caller's
 * stack. A scope is a set of pending works that cannot outlive a block.
 *
 * The reaper of the cq writes the result and then says so; after that the pending work belongs to
 * the waiter. Waiters sleep on the cq, which wakes them after each batch, so nothing of the pending
 * work is touched any more.
 *
 * A work that lives on a stack must have ended before its function returns. When a signal or a
 * deadline does not allow to wait any longer, the channel is broken, which flushes its works, and
 * where the device does not do that in time the queue pair is destroyed, which ends them.
 */
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <rdma/ibchan_scope.h>

#include "compat.h"
#include "channel.h"

enum pending_state { PENDING_IDLE, PENDING_POSTED, PENDING_DONE };

static bool is_done(const struct ibchan_pending *pending)
{
	/* Pairs with pending_work_done(): the result is whole. */
	return smp_load_acquire(&pending->state) == PENDING_DONE;
}

static int pending_ready(void *arg)
{
	return is_done(arg);
}

/* For a pending work that was posted: takes what has completed. */
static void reap(struct ibchan_pending *pending)
{
	ibchan_cq_reap(pending->work.queue->cq, IBCHAN_REAP_BATCH);
}

static void pending_work_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	struct ibchan_pending *pending = container_of(work, struct ibchan_pending, work);

	pending->completion = *completion;
	/* Pairs with is_done(): the result is whole. */
	smp_store_release(&pending->state, PENDING_DONE);
}

/**
 * ibchan_pending_post - post a work and keep its result
 * @pending: all zero, or done; stays where it is until the work has ended
 * @ch: the channel
 * @wr: the request; its work is not used
 * @reason: why not, or NULL
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post(); -EALREADY while it is in flight.
 */
int ibchan_pending_post(struct ibchan_pending *pending, struct ibchan_channel *ch,
			const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	int ret, state = READ_ONCE(pending->state);
	struct ibchan_wr own = *wr;

	if (unlikely(state == PENDING_POSTED))
		return -EALREADY;
	own.work = &pending->work;
	own.flags &= ~IBCHAN_WR_UNSIGNALED;
	pending->work.done = pending_work_done;
	WRITE_ONCE(pending->state, PENDING_POSTED);
	ret = ibchan_post_wr(ch, &own, reason);
	if (unlikely(ret)) {
		/* The result of the work before stays. */
		WRITE_ONCE(pending->state, state);
		return ret;
	}
	pending->channel = ch;
	pending->seen = 0;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_post, IBCHAN_NS);

/**
 * ibchan_pending_result - how a pending work ended
 * @pending: done, as ibchan_pending_poll() or one of the waits has said
 *
 * Details are in its completion.
 *
 * Context: any.
 * Return: 0, or the errno of its status, negative; -EINPROGRESS while it is in
 * flight; -EINVAL if it was never posted.
 */
int ibchan_pending_result(const struct ibchan_pending *pending)
{
	if (is_done(pending))
		return -(int)pending->completion.error;
	return READ_ONCE(pending->state) == PENDING_POSTED ? -EINPROGRESS : -EINVAL;
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_result, IBCHAN_NS);

static int look(struct ibchan_pending *pending)
{
	pending->seen = 1;
	return ibchan_pending_result(pending);
}

/**
 * ibchan_pending_poll - has a pending work ended?
 * @pending: posted
 *
 * Looks at the cq once.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_pending_result().
 */
int ibchan_pending_poll(struct ibchan_pending *pending)
{
	if (READ_ONCE(pending->state) == PENDING_POSTED)
		reap(pending);
	return is_done(pending) ? look(pending) : ibchan_pending_result(pending);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_poll, IBCHAN_NS);

/**
 * ibchan_pending_spin - poll until a pending work has ended
 * @pending: posted
 *
 * Lets others run where they want to, and a signal that kills ends it.
 *
 * Context: process, may sleep.
 * Return: as ibchan_pending_result(); -EINTR when the caller is killed, with the
 * work still in flight.
 */
int ibchan_pending_spin(struct ibchan_pending *pending)
{
	int ret;

	might_sleep();
	for (;;) {
		ret = ibchan_pending_poll(pending);
		if (ret != -EINPROGRESS)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		ibchan_cq_make_way(pending->work.queue->cq);
	}
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_spin, IBCHAN_NS);

static noinline int wait_longer(struct ibchan_pending *pending, ktime_t deadline,
				unsigned int state)
{
	const struct ibchan_wait wait = {
		.ready = pending_ready,
		.arg = pending,
		.deadline = deadline,
		.state = state,
	};

	return ibchan_cq_wait_for(pending->work.queue->cq, &wait);
}

/*
 * A work that ends within the post is found at the first look. Returns 1; -ETIMEDOUT; -EINTR when
 * the caller is killed; -ENODEV when the device is gone.
 */
static __always_inline int wait_in(struct ibchan_pending *pending, ktime_t deadline,
				   unsigned int state)
{
	if (!is_done(pending))
		reap(pending);
	return likely(is_done(pending)) ? 1 : wait_longer(pending, deadline, state);
}

/**
 * ibchan_pending_wait_until - wait for a pending work, for so long
 * @pending: posted
 * @deadline: of the monotonic clock; KTIME_MAX: none
 *
 * Polls for a moment, then sleeps.
 *
 * Context: process, may sleep.
 * Return: as ibchan_pending_result(); -ETIME when the deadline has passed, -EINTR
 * when the caller is killed: both with the work still in flight.
 */
int ibchan_pending_wait_until(struct ibchan_pending *pending, ktime_t deadline)
{
	int ret;

	ibchan_may_sleep();
	if (READ_ONCE(pending->state) == PENDING_IDLE)
		return -EINVAL;
	ret = wait_in(pending, deadline, TASK_KILLABLE);
	if (ret > 0)
		return look(pending);
	return ret == -ETIMEDOUT ? -ETIME : ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_wait_until, IBCHAN_NS);

/**
 * ibchan_pending_wait - wait for a pending work
 * @pending: posted
 *
 * As ibchan_pending_wait_until() without a deadline.
 *
 * Context: process, may sleep.
 * Return: as ibchan_pending_result(); -EINTR when the caller is killed, with the
 * work still in flight.
 */
int ibchan_pending_wait(struct ibchan_pending *pending)
{
	return ibchan_pending_wait_until(pending, KTIME_MAX);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_wait, IBCHAN_NS);

/*
 * Ends a pending work, whatever it takes: its memory is about to go. Breaks its channel. Without
 * the gate.
 */
static void end_pending(struct ibchan_pending *pending, int error)
{
	ktime_t deadline = ktime_add_ms(ktime_get(), jiffies_to_msecs(IBCHAN_DRAIN_TIMEOUT));

	ibchan_channel_break(pending->channel, error);
	if (wait_in(pending, deadline, TASK_UNINTERRUPTIBLE) > 0)
		return;
	ibchan_channel_stop_alone(pending->channel, jiffies);
	/* Only a device that cannot even destroy its queue pair has this wait on. */
	while (!is_done(pending)) {
		schedule_timeout_uninterruptible(HZ);
		reap(pending);
	}
}

/**
 * ibchan_pending_drop - be done with a pending work
 * @pending: posted or not; NULL is fine
 *
 * Waits until it has ended; a caller that is killed meanwhile breaks the channel.
 *
 * Context: process, may sleep.
 */
void ibchan_pending_drop(struct ibchan_pending *pending)
{
	int ret;

	might_sleep();
	if (!pending || READ_ONCE(pending->state) == PENDING_IDLE)
		return;
	ret = wait_in(pending, KTIME_MAX, TASK_KILLABLE);
	if (ret < 0)
		end_pending(pending, ret);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pending_drop, IBCHAN_NS);

static __always_inline int run(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			       ktime_t deadline, struct ibchan_outcome *outcome)
{
	struct ibchan_reason *reason = NULL;
	struct ibchan_pending pending;
	int ret;

	ibchan_may_sleep();
	if (outcome) {
		reason = &outcome->reason;
		*reason = (struct ibchan_reason) {};
		outcome->posted = 0;
	}
	pending.state = PENDING_IDLE;
	pending.work.cqe.done = NULL;
	ret = ibchan_pending_post(&pending, ch, wr, reason);
	if (unlikely(ret)) {
		if (outcome)
			outcome->completion = (struct ibchan_completion) {};
		return ret;
	}
	ret = wait_in(&pending, deadline, TASK_KILLABLE);
	if (unlikely(ret <= 0))
		end_pending(&pending, ret);
	if (outcome) {
		outcome->posted = 1;
		outcome->completion = pending.completion;
	}
	return likely(ret > 0) ? -(int)pending.completion.error : ret;
}

/**
 * ibchan_channel_run_until - post one request and wait for its end, for so long
 * @ch: the channel
 * @wr: the request
 * @deadline: of the monotonic clock; KTIME_MAX: none
 * @outcome: how it went, in detail; NULL is fine
 *
 * When the deadline passes, or the caller is killed, the channel is broken, and the call returns
 * when its work has been flushed. Polls for a moment, then sleeps.
 *
 * Context: process, may sleep.
 * Return: 0; as ibchan_post() if it was not posted; the errno of its status, negative, if it
 * failed; -ETIMEDOUT or -EINTR if the channel was broken for it.
 */
int ibchan_channel_run_until(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			     ktime_t deadline, struct ibchan_outcome *outcome)
{
	return run(ch, wr, deadline, outcome);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_run_until, IBCHAN_NS);

/**
 * ibchan_channel_run - post one request and wait for its end
 * @ch: the channel
 * @wr: the request
 * @outcome: how it went, in detail; NULL is fine
 *
 * As ibchan_channel_run_until() without a deadline.
 *
 * Context: process, may sleep.
 * Return: 0; as ibchan_post() if it was not posted; the errno of its status, negative, if it
 * failed; -EINTR if the caller was killed and the channel broken for it.
 */
int ibchan_channel_run(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		       struct ibchan_outcome *outcome)
{
	return run(ch, wr, KTIME_MAX, outcome);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_run, IBCHAN_NS);

/*
 * A scope lists its pending works in the order of their first posts. It has one owner, the task
 * whose block it is, so it needs no lock.
 */

/**
 * ibchan_scope_post - post a work that ends with its scope
 * @scope: the scope
 * @pending: all zero, or done and looked at; outlives the scope, and is in no other one until then
 * @ch: any channel, open until the scope has ended
 * @wr: the request
 * @reason: why not, or NULL
 *
 * Context: process.
 * Return: as ibchan_pending_post(); -EALREADY also when nobody has looked at the result of the work
 * that it posted in this scope before, and when it is in another scope that has not ended.
 */
int ibchan_scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      struct ibchan_channel *ch, const struct ibchan_wr *wr,
		      struct ibchan_reason *reason)
{
	int ret;

	/* The pending work's result would be lost, or its place in the list of another scope. */
	if (pending->scope && (pending->scope != scope || !pending->seen))
		return -EALREADY;
	ret = ibchan_pending_post(pending, ch, wr, reason);
	if (ret || pending->scope)
		return ret;
	pending->scope = scope;
	pending->next = NULL;
	if (scope->last)
		scope->last->next = pending;
	else
		scope->first = pending;
	scope->last = pending;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_post, IBCHAN_NS);

/**
 * ibchan_scope_fail - the block has an error of its own
 * @scope: the scope
 * @error: negative errno; the first one stays
 *
 * Context: any; the scope is its owner's.
 * Return: @error, so that one can return it.
 */
int ibchan_scope_fail(struct ibchan_scope *scope, int error)
{
	if (!scope->error)
		scope->error = error;
	return error;
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_fail, IBCHAN_NS);

/*
 * Waits for a work of a scope, and reads its result if the owner has not. Returns where the next
 * failure is to be linked.
 */
static struct ibchan_pending **auto_poll(struct ibchan_scope *scope, struct ibchan_pending *pending,
					 struct ibchan_pending **failed)
{
	int ret = wait_in(pending, scope->deadline, TASK_KILLABLE);
	struct ibchan_pending *other;

	if (unlikely(ret < 0)) {
		/* A work of the scope could not be waited for, so none is: they end together. */
		for (other = pending; other; other = other->next)
			if (!is_done(other))
				ibchan_channel_break(other->channel, ret);
		end_pending(pending, ret);
	}
	if (pending->seen)
		return failed;
	pending->seen = 1;
	scope->auto_polled++;
	if (likely(!pending->completion.error))
		return failed;
	scope->num_failed++;
	pending->next_failed = NULL;
	*failed = pending;
	return &pending->next_failed;
}

/**
 * ibchan_scope_end - complete what is in flight
 * @scope: the scope
 *
 * All works posted in it have ended afterwards. Those that nobody had looked at
 * are counted in the scope, and those of them that failed are listed there. The
 * pending works may be used in another scope.
 *
 * Context: process, may sleep. A caller that is killed breaks the channels of the
 * works that are in flight.
 */
void ibchan_scope_end(struct ibchan_scope *scope)
{
	struct ibchan_pending **failed = &scope->failed;
	struct ibchan_pending *pending, *next;

	ibchan_may_sleep();
	for (pending = scope->first; pending; pending = next) {
		next = pending->next;
		failed = auto_poll(scope, pending, failed);
		pending->scope = NULL;
	}
	scope->first = NULL;
	scope->last = NULL;
	if (scope->manual && !scope->error && scope->auto_polled)
		pr_warn_once("ibchan: a manual scope has left %u works unpolled, at %pS\n",
			     scope->auto_polled, __builtin_return_address(0));
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_end, IBCHAN_NS);
