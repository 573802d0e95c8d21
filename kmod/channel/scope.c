// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scopes: works that cannot outlive a block.
 *
 * A scope lists its pending works in the order of their first posts. It has one
 * owner, the task whose block it is, so it needs no lock. Ending it waits for each
 * in turn, and reads the results that the owner has not read.
 */
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "compat.h"
#include "pending.h"

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

static noinline void wait_in_turn(struct ibchan_scope *scope, struct ibchan_pending *pending)
{
	int ret = ibchan_pending_try(pending, scope->deadline);
	struct ibchan_pending *other;

	if (!ret)
		return;
	/* A work of the scope could not be waited for, so none is: they end together. */
	for (other = pending; other; other = other->next)
		if (!ibchan_pending_is_done(other))
			ibchan_channel_break(other->channel, ret);
	ibchan_pending_end(pending, ret);
}

/* Returns where the next failure is to be linked. */
static struct ibchan_pending **auto_poll(struct ibchan_scope *scope, struct ibchan_pending *pending,
					 struct ibchan_pending **failed)
{
	if (!ibchan_pending_is_done(pending))
		ibchan_pending_reap(pending);
	if (unlikely(!ibchan_pending_is_done(pending)))
		wait_in_turn(scope, pending);
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
