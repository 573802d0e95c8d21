// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pending works, whose result waits in its slot until its owner looks; and scopes of them, which
 * cannot outlive a block.
 *
 * The structs are the caller's and have one owner, so nothing here needs a lock but the cq. A
 * pending work holds a ticket; no slot knows where it is. A scope lists its works in the order of
 * their first posts. Ending it waits for each in turn, and looks at those that the owner has not
 * looked at.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait.h"

enum pending_state {
	PENDING_IDLE,
	PENDING_POSTED,
	PENDING_DONE,
};

/* The kernel will never tell how it ended. */
static void lose(struct ibchan_pending *pending, int error)
{
	pending->completion.error = error;
	pending->completion.status = IBCHAN_STATUS_GENERAL_ERR;
	pending->completion.channel = 0;
	pending->state = PENDING_DONE;
}

/*
 * 1 if it has ended; 0 if not, without a @deadline to wait until; else a negative errno, as
 * ticket_wait() says. Until it has ended the completion in the struct is what the post wrote.
 */
static int look(struct ibchan_pending *pending, const struct deadline *deadline)
{
	const struct ticket ticket = { pending->cq, pending->slot, pending->generation };
	int ret;

	if (pending->state != PENDING_POSTED)
		return 1;
	ret = context_check(ticket.cq->object.context);
	if (ret)
		return ret;
	ret = deadline ? ticket_wait(&ticket, deadline, 0, &pending->completion) ?: 1 :
			 ticket_look(&ticket, &pending->completion, NULL);
	if (ret == -ESTALE) {
		lose(pending, ret);
		return 1;
	}
	if (ret > 0)
		pending->state = PENDING_DONE;
	return ret;
}

static int start(struct ibchan_pending *pending, struct ibchan_channel *channel,
		 const struct ibchan_submit_wr *wr, struct ibchan_reason *reason)
{
	struct ibchan_submit_wr kept = *wr;
	struct ibchan_cmd_submit cmd;
	struct ticket ticket;
	int ret = context_check(channel->object.context);

	if (ret)
		return ret;
	ret = look(pending, NULL);
	if (ret < 0)
		return ret;
	/* The scope of one that nobody has looked at would never learn how it ended. */
	if (!ret || (pending->scope && !pending->seen))
		return -EALREADY;
	await_nothing(&cmd);
	ret = post_kept(channel, &kept, &cmd, &ticket);
	if (ret) {
		*reason = cmd.reason;
		return ret;
	}
	pending->completion = (struct ibchan_cqe) {
		.wr_id = wr->wr_id, .channel = wr->channel, .opcode = wr->opcode,
	};
	pending->cq = ticket.cq;
	pending->channel = channel;
	pending->slot = ticket.index;
	pending->generation = ticket.generation;
	pending->state = PENDING_POSTED;
	pending->seen = 0;
	return 0;
}

int ibchan_pending_post(struct ibchan_pending *pending, struct ibchan_channel *channel,
			const struct ibchan_submit_wr *wr, struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };

	return error_set(error, start(pending, channel, wr, &reason), &reason);
}

int ibchan_pending_result(const struct ibchan_pending *pending)
{
	if (pending->state == PENDING_DONE)
		return pending->completion.error;
	return pending->state == PENDING_POSTED ? -EINPROGRESS : -EINVAL;
}

int ibchan_pending_poll(struct ibchan_pending *pending)
{
	int ret = pending->state == PENDING_IDLE ? -EINVAL : look(pending, NULL);

	if (ret > 0)
		pending->seen = 1;
	return ret;
}

/*
 * How often to look before another thread gets the cpu, and the kernel is asked. Without a waiter,
 * unsolicited completions stay out of the ring of a cq that was made for that; and only the kernel
 * tells that a device is gone.
 */
#define SPIN_LOOKS	64

int ibchan_pending_spin(struct ibchan_pending *pending)
{
	int ret, err = 0;
	__u32 looks;

	for (looks = 1;; looks++) {
		ret = ibchan_pending_poll(pending);
		if (ret)
			return ret > 0 ? 0 : ret;
		/* One last look has been taken after the kernel gave up. */
		if (err && err != -EINTR)
			return err;
		if (looks % SPIN_LOOKS)
			continue;
		sched_yield();
		err = cq_bring_in(pending->cq);
	}
}

int ibchan_pending_wait(struct ibchan_pending *pending, __s64 timeout_ns)
{
	struct deadline deadline;
	int ret;

	if (pending->state == PENDING_IDLE || timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	deadline_set(&deadline, timeout_ns);
	ret = look(pending, &deadline);
	if (ret > 0)
		pending->seen = 1;
	return min(ret, 0);
}

/* Waits as long as it takes. */
static void finish(struct ibchan_pending *pending)
{
	static const struct deadline never = { .timeout_ns = IBCHAN_TIMEOUT_NEVER };
	int ret = look(pending, &never);

	if (ret < 0)
		lose(pending, ret);
}

void ibchan_pending_drop(struct ibchan_pending *pending)
{
	if (!pending)
		return;
	finish(pending);
	/* A program that drops it does not want to know. */
	pending->seen = 1;
}

/* --- scopes --- */

/* A negative @timeout_ns has no end. */
static struct ibchan_scope *begin(struct ibchan_scope *scope, __s64 timeout_ns, __u32 manual)
{
	struct deadline deadline;

	deadline_set(&deadline, timeout_ns < 0 ? IBCHAN_TIMEOUT_NEVER : timeout_ns);
	*scope = (struct ibchan_scope) {
		.manual = manual, .timeout_ns = deadline.timeout_ns, .end_ns = deadline.end_ns,
	};
	return scope;
}

struct ibchan_scope *ibchan_scope_begin(struct ibchan_scope *scope)
{
	return begin(scope, IBCHAN_TIMEOUT_NEVER, 0);
}

struct ibchan_scope *ibchan_scope_begin_timeout(struct ibchan_scope *scope, __s64 timeout_ns)
{
	return begin(scope, timeout_ns, 0);
}

struct ibchan_scope *ibchan_scope_begin_manual_timeout(struct ibchan_scope *scope, __s64 timeout_ns)
{
	return begin(scope, timeout_ns, 1);
}

struct ibchan_scope *ibchan_scope_begin_manual(struct ibchan_scope *scope)
{
	return begin(scope, IBCHAN_TIMEOUT_NEVER, 1);
}

/*
 * A longjmp() may leave a scope without ending it; its works still name that scope. When the
 * scope is begun again at the same place, its list does not have those works.
 */
static bool is_listed(const struct ibchan_scope *scope, const struct ibchan_pending *pending)
{
	const struct ibchan_pending *member = scope->first;

	while (member && member != pending)
		member = member->next;
	return member;
}

int ibchan_scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		      struct ibchan_error *error)
{
	int err;

	if (pending->scope == scope && !is_listed(scope, pending))
		pending->scope = NULL;
	if (pending->scope && pending->scope != scope)
		return error_set(error, -EALREADY, NULL);
	err = ibchan_pending_post(pending, channel, wr, error);
	if (err || pending->scope)
		return err;
	pending->scope = scope;
	pending->next = NULL;
	if (scope->last)
		scope->last->next = pending;
	else
		scope->first = pending;
	scope->last = pending;
	return 0;
}

int ibchan_scope_fail(struct ibchan_scope *scope, int error)
{
	if (!scope->error)
		scope->error = error;
	return error;
}

int ibchan_scope_error(const struct ibchan_scope *scope)
{
	return scope->error ?: (int)scope->failed_error;
}

/* A work of the scope could not be waited for, so none is: they end together. */
static void break_rest(struct ibchan_pending *pending)
{
	struct ibchan_channel *broken = NULL;

	for (; pending; pending = pending->next) {
		if (look(pending, NULL) > 0 || pending->channel == broken)
			continue;
		broken = pending->channel;
		ibchan_channel_break(broken);
	}
}

/* With its channel broken, a work takes no longer than the device needs to flush. */
static void complete(struct ibchan_scope *scope, struct ibchan_pending *pending)
{
	const struct deadline deadline = { scope->timeout_ns, scope->end_ns };

	if (look(pending, &deadline) == -ETIMEDOUT) {
		break_rest(pending);
		scope->timeout_ns = IBCHAN_TIMEOUT_NEVER;
	}
	finish(pending);
}

/* Not by stdio, which ends a thread that was cancelled. */
static void complain(const struct ibchan_scope *scope, const void *caller)
{
	char line[128];
	int n = snprintf(line, sizeof(line),
			 "ibchan: a manual scope has left %u works unpolled, at %p\n",
			 scope->auto_polled, caller);

	syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
}

static void end(struct ibchan_scope *scope, const void *caller)
{
	struct ibchan_pending **failed = &scope->failed;
	struct ibchan_pending *pending, *next;

	for (pending = scope->first; pending; pending = next) {
		next = pending->next;
		complete(scope, pending);
		pending->scope = NULL;
		if (pending->seen)
			continue;
		pending->seen = 1;
		scope->auto_polled++;
		if (!pending->completion.error)
			continue;
		if (!scope->num_failed++)
			scope->failed_error = pending->completion.error;
		pending->next_failed = NULL;
		*failed = pending;
		failed = &pending->next_failed;
	}
	scope->first = NULL;
	scope->last = NULL;
	if (scope->manual && !scope->error && scope->auto_polled)
		complain(scope, caller);
	scope->manual = 0;
}

void ibchan_scope_end(struct ibchan_scope *scope)
{
	end(scope, __builtin_return_address(0));
}

void ibchan_scope_leave(struct ibchan_scope **scope)
{
	if (*scope)
		end(*scope, __builtin_return_address(0));
}
