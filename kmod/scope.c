// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scopes: works that cannot outlive a block.
 *
 * A scope lists its pending works in the order of their first posts. It has one
 * owner, the task whose block it is, so it needs no lock. Ending it waits for each
 * in turn; what the owner has not looked at is looked at then.
 */
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <rdma/ibchan_scope.h>

#include "compat.h"
#include "internal.h"

/**
 * ibchan_scope_begin - begin a scope
 * @scope: any bytes
 */
void ibchan_scope_begin(struct ibchan_scope *scope)
{
	*scope = (struct ibchan_scope){ .deadline = KTIME_MAX };
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_begin, IBCHAN_NS);

/**
 * ibchan_scope_begin_until - begin a scope that does not wait for ever
 * @scope: any bytes
 * @deadline: of the monotonic clock; see ibchan_scoped_until()
 */
void ibchan_scope_begin_until(struct ibchan_scope *scope, ktime_t deadline)
{
	*scope = (struct ibchan_scope){ .deadline = deadline };
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_begin_until, IBCHAN_NS);

/**
 * ibchan_scope_begin_manual - begin a scope that looks at each work itself
 * @scope: any bytes
 */
void ibchan_scope_begin_manual(struct ibchan_scope *scope)
{
	*scope = (struct ibchan_scope){ .deadline = KTIME_MAX, .manual = 1 };
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_begin_manual, IBCHAN_NS);

static void enlist(struct ibchan_scope *scope, struct ibchan_pending *pending)
{
	if (pending->scope == scope)
		return;
	pending->scope = scope;
	pending->next = NULL;
	if (scope->last)
		scope->last->next = pending;
	else
		scope->first = pending;
	scope->last = pending;
}

/**
 * ibchan_scope_post - post a work that ends with its scope
 * @scope: the scope
 * @pending: all zero, or done and looked at; outlives the scope
 * @ch: any channel, open until the scope has ended
 * @wr: the request; its elements outlive the scope
 * @reason: why not, or NULL
 *
 * Context: process.
 * Return: as ibchan_pending_post(); -EALREADY also when nobody has looked at the
 * result of its work before in this scope.
 */
int ibchan_scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      struct ibchan_channel *ch, const struct ibchan_wr *wr,
		      struct ibchan_reason *reason)
{
	int ret;

	/* Its result would be lost. */
	if (pending->scope == scope && !pending->seen)
		return -EALREADY;
	ret = ibchan_pending_post(pending, ch, wr, reason);
	if (!ret)
		enlist(scope, pending);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_post, IBCHAN_NS);

/**
 * ibchan_scope_fail - the block has an error of its own
 * @scope: the scope
 * @error: negative errno; the first one stays
 *
 * Return: @error, so that one can return it.
 */
int ibchan_scope_fail(struct ibchan_scope *scope, int error)
{
	if (!scope->error)
		scope->error = error;
	return error;
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_fail, IBCHAN_NS);

/* Returns where the next failure is to be linked. */
static struct ibchan_pending **auto_poll(struct ibchan_scope *scope,
					 struct ibchan_pending *pending,
					 struct ibchan_pending **failed)
{
	ibchan_pending_complete(pending, scope->deadline);
	if (pending->seen)
		return failed;
	pending->seen = 1;
	scope->auto_polled++;
	if (!pending->completion.error)
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

/**
 * ibchan_scope_error - the error of a scope, all in all
 * @scope: ended
 *
 * Return: the block's own error, else that of the first work that failed without
 * anybody having looked, else 0.
 */
int ibchan_scope_error(const struct ibchan_scope *scope)
{
	if (scope->error)
		return scope->error;
	return scope->failed ? ibchan_pending_result(scope->failed) : 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_scope_error, IBCHAN_NS);
