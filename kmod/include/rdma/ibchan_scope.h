/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pending works and scopes.
 *
 * A pending work (struct ibchan_pending) is a work whose result waits until
 * somebody looks. A scope is a set of them that cannot outlive a block:
 *
 *	struct ibchan_pending first = {}, second = {};
 *	struct ibchan_scope scope;
 *
 *	ibchan_scoped(&scope) {
 *		ret = ibchan_scope_post(&scope, &first, ch, &wr, NULL);
 *		if (ret)
 *			break;
 *		ret = ibchan_scope_post(&scope, &second, other, &wr, NULL);
 *		if (ret)
 *			break;
 *		ret = ibchan_pending_wait(&first);
 *	}
 *	...
 *
 * All works posted in the block have ended when it is left, by return, goto, break, or
 * at its end. The pending works live outside the block, so that they
 * outlive it.
 *
 * A channel stays open until the pending works on it have ended.
 */
#ifndef _RDMA_IBCHAN_SCOPE_H
#define _RDMA_IBCHAN_SCOPE_H

#include <linux/cleanup.h>
#include <rdma/ibchan.h>

/**
 * struct ibchan_pending - a posted work and, when it has ended, its result
 * @completion: how it ended, once ibchan_pending_poll() has said so
 * @next_failed: in the list of a scope's failures
 *
 * All zero before the first post; may be posted again when it has ended.
 */
struct ibchan_pending {
	struct ibchan_completion completion;
	struct ibchan_pending *next_failed;
	/* private: */
	struct ibchan_work work;
	struct ibchan_channel *channel;
	struct ibchan_scope *scope;
	struct ibchan_pending *next;
	int state;
	int seen;
};

/**
 * struct ibchan_scope - works that end together
 * @error: the block's own error: the first that ibchan_scope_fail() was told; 0: none
 * @auto_polled: number of works that the block left without having polled their results
 * @num_failed: how many of those failed
 * @failed: these, in the order of their posts, by next_failed
 */
struct ibchan_scope {
	int error;
	u32 auto_polled;
	u32 num_failed;
	struct ibchan_pending *failed;
	/* private: */
	ktime_t deadline;
	struct ibchan_pending *first;
	struct ibchan_pending *last;
	int manual;
};

int ibchan_pending_post(struct ibchan_pending *pending, struct ibchan_channel *ch,
			const struct ibchan_wr *wr, struct ibchan_reason *reason);
int ibchan_pending_poll(struct ibchan_pending *pending);
int ibchan_pending_spin(struct ibchan_pending *pending);
int ibchan_pending_wait(struct ibchan_pending *pending);
int ibchan_pending_wait_until(struct ibchan_pending *pending, ktime_t deadline);
int ibchan_pending_result(const struct ibchan_pending *pending);
void ibchan_pending_drop(struct ibchan_pending *pending);

DEFINE_FREE(ibchan_pending, struct ibchan_pending *, ibchan_pending_drop(_T))

int ibchan_scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      struct ibchan_channel *ch, const struct ibchan_wr *wr,
		      struct ibchan_reason *reason);
int ibchan_scope_fail(struct ibchan_scope *scope, int error);
void ibchan_scope_end(struct ibchan_scope *scope);

/**
 * ibchan_scope_begin_until - begin a scope that does not wait for ever
 * @scope: any bytes
 * @deadline: of the monotonic clock; KTIME_MAX: none; see ibchan_scoped_until()
 *
 * Context: any.
 */
static inline void ibchan_scope_begin_until(struct ibchan_scope *scope, ktime_t deadline)
{
	*scope = (struct ibchan_scope){ .deadline = deadline };
}

/**
 * ibchan_scope_begin - begin a scope
 * @scope: any bytes
 *
 * Context: any.
 */
static inline void ibchan_scope_begin(struct ibchan_scope *scope)
{
	ibchan_scope_begin_until(scope, KTIME_MAX);
}

/**
 * ibchan_scope_begin_manual - begin a scope that looks at each work itself
 * @scope: any bytes
 *
 * Context: any.
 */
static inline void ibchan_scope_begin_manual(struct ibchan_scope *scope)
{
	*scope = (struct ibchan_scope){ .deadline = KTIME_MAX, .manual = 1 };
}

/**
 * ibchan_scope_error - the error of a scope, all in all
 * @scope: ended
 *
 * Context: any.
 * Return: the block's own error, else that of the first work that failed without
 * anybody having looked, else 0.
 */
static inline int ibchan_scope_error(const struct ibchan_scope *scope)
{
	if (scope->error)
		return scope->error;
	return scope->failed ? -(int)scope->failed->completion.error : 0;
}

/**
 * ibchan_scope_opened - a scope that has begun, for __ibchan_scoped()
 * @scope: the scope
 *
 * Context: any.
 * Return: @scope.
 */
static inline struct ibchan_scope *ibchan_scope_opened(struct ibchan_scope *scope)
{
	return scope;
}

/**
 * ibchan_scope_leave - end a scope where its variable is left
 * @scope: the variable; NULL in it is fine
 *
 * Context: process, may sleep.
 */
static inline void ibchan_scope_leave(struct ibchan_scope **scope)
{
	if (*scope)
		ibchan_scope_end(*scope);
}

/* Begins in the first expression, ends where the variable goes out of scope. */
#define __ibchan_scoped(scope, begin)					\
	for (struct ibchan_scope *__ibchan_scope __cleanup(ibchan_scope_leave) = \
		({ begin; ibchan_scope_opened(scope); }),		\
		*__ibchan_once = NULL;					\
	     !__ibchan_once; __ibchan_once = __ibchan_scope)

/**
 * ibchan_scoped - a block of code; leaving it waits for the works that were posted in it
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 *
 * Context: process, may sleep when it is left.
 */
#define ibchan_scoped(scope)						\
	__ibchan_scoped(scope, ibchan_scope_begin(scope))

/**
 * ibchan_scoped_until - the same, bounded
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 * @deadline: ktime_t of the monotonic clock; KTIME_MAX: none. The end of the scope
 *	waits until then, and breaks the channels of the works that are still in
 *	flight with -ETIMEDOUT.
 *
 * Context: process, may sleep when it is left.
 */
#define ibchan_scoped_until(scope, deadline)				\
	__ibchan_scoped(scope, ibchan_scope_begin_until(scope, deadline))

/**
 * ibchan_scoped_manual - a block that looks at each of its works itself
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 *
 * Leaving a work unpolled is a bug of the caller's, unless ibchan_scope_fail()
 * was called: the kernel log says so once, and the work is completed.
 *
 * Context: process, may sleep when it is left.
 */
#define ibchan_scoped_manual(scope)					\
	__ibchan_scoped(scope, ibchan_scope_begin_manual(scope))

#endif /* _RDMA_IBCHAN_SCOPE_H */
