// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Scopes: works that cannot outlive a block.
 *
 * A scope lists its pending works in the order of their first posts. It has one
 * owner, the thread whose block it is, so it needs no lock. Ending it waits for
 * each in turn, and looks at those that the owner has not looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pending.h"

static struct ibchan_scope *begin(struct ibchan_scope *scope, __s64 timeout_ns, __u32 manual)
{
	struct deadline deadline;

	deadline_set(&deadline, timeout_ns);
	*scope = (struct ibchan_scope) {
		.manual = manual,
		.timeout_ns = deadline.timeout_ns,
		.end_ns = deadline.end_ns,
	};
	return scope;
}

struct ibchan_scope *ibchan_scope_begin(struct ibchan_scope *scope)
{
	return begin(scope, IBCHAN_TIMEOUT_NEVER, 0);
}

struct ibchan_scope *ibchan_scope_begin_timeout(struct ibchan_scope *scope, __s64 timeout_ns)
{
	if (timeout_ns < 0)
		timeout_ns = IBCHAN_TIMEOUT_NEVER;
	return begin(scope, timeout_ns, 0);
}

struct ibchan_scope *ibchan_scope_begin_manual_timeout(struct ibchan_scope *scope, __s64 timeout_ns)
{
	if (timeout_ns < 0)
		timeout_ns = IBCHAN_TIMEOUT_NEVER;
	return begin(scope, timeout_ns, 1);
}

struct ibchan_scope *ibchan_scope_begin_manual(struct ibchan_scope *scope)
{
	return begin(scope, IBCHAN_TIMEOUT_NEVER, 1);
}

static void enlist(struct ibchan_scope *scope, struct ibchan_pending *pending)
{
	pending->scope = scope;
	pending->next = NULL;
	if (scope->last)
		scope->last->next = pending;
	else
		scope->first = pending;
	scope->last = pending;
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
	if (!err && !pending->scope)
		enlist(scope, pending);
	return err;
}

int ibchan_scope_fail(struct ibchan_scope *scope, int error)
{
	if (!scope->error)
		scope->error = error;
	return error;
}

int ibchan_scope_error(const struct ibchan_scope *scope)
{
	if (scope->error)
		return scope->error;
	return (int)scope->failed_error;
}

/* A work of the scope could not be waited for, so none is: they end together. */
static void break_rest(struct ibchan_pending *pending)
{
	struct ibchan_channel *broken = NULL;

	for (; pending; pending = pending->next) {
		if (pending_has_ended(pending) || pending->channel == broken)
			continue;
		broken = pending->channel;
		ibchan_channel_break(broken);
	}
}

/* With its channel broken, a work takes no longer than the device needs to flush. */
static void complete(struct ibchan_scope *scope, struct ibchan_pending *pending)
{
	const struct deadline deadline = {
		.timeout_ns = scope->timeout_ns,
		.end_ns = scope->end_ns,
	};
	int err = pending_end(pending, &deadline);

	if (err == -ETIMEDOUT) {
		break_rest(pending);
		scope->timeout_ns = IBCHAN_TIMEOUT_NEVER;
	}
	if (err)
		pending_finish(pending);
}

/* Returns where the next failure is to be linked. */
static struct ibchan_pending **auto_poll(struct ibchan_scope *scope, struct ibchan_pending *pending,
					 struct ibchan_pending **failed)
{
	complete(scope, pending);
	if (pending->seen)
		return failed;
	pending->seen = 1;
	scope->auto_polled++;
	if (!pending->completion.error)
		return failed;
	if (!scope->num_failed++)
		scope->failed_error = pending->completion.error;
	pending->next_failed = NULL;
	*failed = pending;
	return &pending->next_failed;
}

/* Not by stdio, which ends a thread that was cancelled. */
static void complain(const struct ibchan_scope *scope, const void *caller)
{
	char line[128];
	int n;

	n = snprintf(line, sizeof(line),
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
		failed = auto_poll(scope, pending, failed);
		pending->scope = NULL;
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
