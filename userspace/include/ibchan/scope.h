/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan: pending works and scopes. Include <ibchan.h>.
 *
 * The result of a pending work (struct ibchan_pending) stays until its owner fetches it. A scope is
 * a set of pending works that cannot outlive a block:
 *
 *	struct ibchan_pending first = { 0 }, second = { 0 };
 *	struct ibchan_scope scope;
 *
 *	ibchan_scoped(&scope) {
 *		ret = ibchan_scope_post(&scope, &first, channel, &wr, NULL);
 *		if (ret)
 *			break;
 *		ret = ibchan_scope_post(&scope, &second, channel, &other, NULL);
 *		if (ret)
 *			break;
 *		ret = ibchan_pending_wait(&first, IBCHAN_TIMEOUT_NEVER);
 *	}
 *	...
 *
 * All works posted in the block have ended when it is left, in any way: return, goto, break, its
 * end, a C++ exception, the end of a thread that was cancelled. The pending works, and the memory
 * of their requests, live outside the block, so that they outlive it.
 *
 * Both belong to one thread at a time. Nothing in the library points to them: a thread that leaves
 * the block by longjmp() leaves works behind that end by themselves. Their places in the cq stay
 * taken, and their ranges must be left alone, until their channel has been closed; a pending work
 * that was jumped over is set to zero then, to be used again. A signal handler must not jump out of
 * a call of the library, unless it knows that the call is asleep in the kernel: it may have a lock.
 *
 * A pending work ends before its context does: asking for one, or dropping it, behind
 * ibchan_context_close() reads memory that is gone.
 */
#ifndef _IBCHAN_SCOPE_H
#define _IBCHAN_SCOPE_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * struct ibchan_pending - a posted work and, when it has ended, its result
 * @completion: how it ended, once ibchan_pending_poll() or one of the waits has said so; its wr_id,
 *	channel and opcode are there from the post on
 * @next_failed: in the list of a scope's failures
 *
 * All zero before the first post; may be posted again when it has ended.
 */
struct ibchan_pending {
	struct ibchan_cqe completion;
	struct ibchan_pending *next_failed;
	/* private: */
	struct ibchan_cq *cq;
	struct ibchan_channel *channel;
	struct ibchan_scope *scope;
	struct ibchan_pending *next;
	__u64 generation;
	__u32 slot;
	__u32 state;
	__u32 seen;
	__u32 reserved;
	__u64 more[2];
};

/**
 * struct ibchan_scope - works that end together
 * @error: the block's own error: the first one of ibchan_scope_fail(); 0: none
 * @auto_polled: how many works had a result that the block had not polled when it ended
 * @num_failed: how many of those failed
 * @failed: these, in the order of their posts, by next_failed, until one of them is posted again
 */
struct ibchan_scope {
	int error;
	__u32 auto_polled;
	__u32 num_failed;
	/* private: */
	__u32 manual;
	/* public: */
	struct ibchan_pending *failed;
	/* private: */
	struct ibchan_pending *first;
	struct ibchan_pending *last;
	__s64 timeout_ns;
	__s64 end_ns;
	__s64 failed_error;
	__u64 reserved;
};

/**
 * ibchan_pending_post() - post a work and keep its result
 * @pending: all zero, or done
 * @channel: where to post it
 * @wr: the request, made for @channel
 * @error: details; NULL is fine
 *
 * Its completion never shows up in ibchan_cq_poll(). One system call.
 *
 * Buffers: the ranges belong to the device until one of the calls on @pending has said that the
 * work has ended; not if the post was refused.
 *
 * Return: as ibchan_post() for one request; -EALREADY: it is in flight, or it is in a scope and
 * nobody has looked at its result.
 */
int ibchan_pending_post(struct ibchan_pending *pending, struct ibchan_channel *channel,
			const struct ibchan_submit_wr *wr, struct ibchan_error *error);

/**
 * ibchan_pending_poll() - has a pending work ended?
 * @pending: posted
 *
 * No system call, but for one to the cq's descriptor where that was asked for. It takes the same
 * time however many other works have completed; their completions are kept for their owners.
 *
 * When the channel was closed meanwhile, the result is there until the cq needs its place for a
 * later pending work or blocking call. From then on the work counts as one that ended with -ESTALE.
 *
 * Buffers: those of the work may be reused when this has returned 1.
 * Return: 1: it has, ibchan_pending_result() tells how; 0: not yet; -EINVAL: it was never posted;
 * -EPERM: see Fork.
 */
int ibchan_pending_poll(struct ibchan_pending *pending);

/**
 * ibchan_pending_spin() - poll until a pending work has ended
 * @pending: posted
 *
 * Lets other threads run now and then, and asks the kernel for what has completed.
 *
 * Buffers: those of the work may be reused when this has returned 0.
 * Return: 0: it has; else as ibchan_pending_poll(), with the work still in flight; -ENODEV: the
 * device is gone; -EPROTO: a ring was damaged.
 */
int ibchan_pending_spin(struct ibchan_pending *pending);

/**
 * ibchan_pending_wait() - wait for a pending work
 * @pending: posted
 * @timeout_ns: in nanoseconds, 0 and up; IBCHAN_TIMEOUT_NEVER: no limit
 *
 * Enters the kernel only if it has not ended yet.
 *
 * Buffers: those of the work may be reused when this has returned 0.
 * Return: 0: it has ended, ibchan_pending_result() tells how; -ETIMEDOUT: it is still in flight;
 * -EINVAL: it was never posted, or a negative time-out; -EPERM: see Fork.
 */
int ibchan_pending_wait(struct ibchan_pending *pending, __s64 timeout_ns);

/**
 * ibchan_pending_result() - how a pending work ended
 * @pending: any
 *
 * Tells the same as often as one asks. Details are in its completion.
 *
 * Return: 0, or the negative errno of its status; -EINPROGRESS: nobody has yet seen it end;
 * -EINVAL: it was never posted.
 */
int ibchan_pending_result(const struct ibchan_pending *pending);

/**
 * ibchan_pending_drop() - be done with a pending work
 * @pending: posted or not; NULL is fine
 *
 * Waits until it has ended, however long that takes.
 *
 * Buffers: those of the work may be reused on return; see ibchan_scope_end().
 */
void ibchan_pending_drop(struct ibchan_pending *pending);

/**
 * ibchan_scope_begin() - begin a scope
 * @scope: any bytes
 *
 * Return: @scope.
 */
struct ibchan_scope *ibchan_scope_begin(struct ibchan_scope *scope);

/**
 * ibchan_scope_begin_timeout() - begin a scope that does not last for ever
 * @scope: any bytes
 * @timeout_ns: from now, in nanoseconds; negative: no limit; see ibchan_scoped_timeout()
 *
 * Return: @scope.
 */
struct ibchan_scope *ibchan_scope_begin_timeout(struct ibchan_scope *scope, __s64 timeout_ns);

/**
 * ibchan_scope_begin_manual() - begin a scope that looks at each work itself
 * @scope: any bytes; see ibchan_scoped_manual()
 *
 * Return: @scope.
 */
struct ibchan_scope *ibchan_scope_begin_manual(struct ibchan_scope *scope);

/**
 * ibchan_scope_begin_manual_timeout() - the same, for a limited time
 * @scope: any bytes
 * @timeout_ns: from now, in nanoseconds; negative: no limit; see ibchan_scoped_timeout()
 *
 * Return: @scope.
 */
struct ibchan_scope *ibchan_scope_begin_manual_timeout(struct ibchan_scope *scope,
						       __s64 timeout_ns);

/**
 * ibchan_scope_post() - post a work that ends with its scope
 * @scope: has begun
 * @pending: all zero, or done and looked at; outlives the scope, and is in no other one until then
 * @channel: where to post it, which stays open until the scope has ended
 * @wr: the request, made for @channel; the ranges of its elements outlive the scope
 * @error: details; NULL is fine
 *
 * Buffers: the ranges belong to the device until one of the calls on @pending has said that the
 * work has ended, or the scope has ended.
 *
 * Return: as ibchan_pending_post(); -EALREADY also when nobody has looked at the result of the work
 * that it posted in this scope before, and when it is in another scope that has not ended.
 */
int ibchan_scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		      struct ibchan_error *error);

/**
 * ibchan_scope_fail() - the block has an error of its own
 * @scope: has begun
 * @error: negative errno; the first one stays
 *
 * Return: @error, so that one can return it.
 */
int ibchan_scope_fail(struct ibchan_scope *scope, int error);

/**
 * ibchan_scope_end() - complete what is in flight
 * @scope: has begun
 *
 * All works posted in it have ended afterwards. Those that nobody had looked at are counted in the
 * scope, and those of them that failed are listed there. The pending works may be used in another
 * scope.
 *
 * A work that the kernel can tell no more about - the completion ring was damaged, or this is a
 * child of the process that posted it - counts as one that failed with -EPROTO or -EPERM; its
 * ranges must be left alone until the context is closed.
 *
 * Buffers: those of all works of the scope may be reused on return, but for a work that the kernel
 * can tell no more about.
 */
void ibchan_scope_end(struct ibchan_scope *scope);

/**
 * ibchan_scope_leave() - end a scope where its variable is left
 * @scope: the variable; NULL in it is fine
 *
 * The block macros call it; programs use ibchan_scope_end().
 *
 * Buffers: as ibchan_scope_end().
 */
void ibchan_scope_leave(struct ibchan_scope **scope);

/**
 * ibchan_scope_error() - the error of a scope, all in all
 * @scope: ended
 *
 * Return: the block's own error, else that of the first work that failed without anybody having
 * looked, else 0.
 */
int ibchan_scope_error(const struct ibchan_scope *scope);

/*
 * Blocks. Without -fexceptions a C++ exception or the end of a cancelled thread would go past them,
 * so that is an error of the compiler's then.
 */
#ifdef __EXCEPTIONS

/*
 * Begins in the first expression, ends where the variable goes out of scope. Each block has names
 * of its own, so that a block within a block shadows nothing.
 */
#define __ibchan_scoped(begin)				__ibchan_scoped_numbered(begin, __COUNTER__)
#define __ibchan_scoped_numbered(begin, number)		__ibchan_scoped_named(begin, number)
#define __ibchan_scoped_named(begin, number)				\
	for (struct ibchan_scope *__ibchan_scope_##number		\
		__attribute__((cleanup(ibchan_scope_leave))) = (begin),	\
		*__ibchan_once_##number = NULL;				\
	     !__ibchan_once_##number;					\
	     __ibchan_once_##number = __ibchan_scope_##number)

/**
 * ibchan_dropped - attribute of a struct ibchan_pending that drops it where it is left
 *
 *	struct ibchan_pending work ibchan_dropped = { 0 };
 *
 * Buffers: as ibchan_pending_drop().
 */
#define ibchan_dropped	__attribute__((cleanup(ibchan_pending_drop)))

#else

#define __ibchan_scoped(begin)	for (begin; sizeof(struct ibchan_scoped_needs_fexceptions);)
#define ibchan_dropped		__attribute__((cleanup(ibchan_dropped_needs_fexceptions)))

#endif /* __EXCEPTIONS */

/**
 * ibchan_scoped - a block of code; leaving it waits for the works that were posted in it
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 *
 * Buffers: as ibchan_scope_end().
 */
#define ibchan_scoped(scope)	__ibchan_scoped(ibchan_scope_begin(scope))

/**
 * ibchan_scoped_timeout - a block that waits for its works only so long
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 * @timeout_ns: from the beginning of the block, in nanoseconds; negative: no limit. The end of the
 *	scope waits until then, and breaks the channels of the works that are still in flight.
 *
 * Buffers: as ibchan_scope_end().
 */
#define ibchan_scoped_timeout(scope, timeout_ns)			\
	__ibchan_scoped(ibchan_scope_begin_timeout(scope, timeout_ns))

/**
 * ibchan_scoped_manual - a block that looks at each of its works itself
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 *
 * Leaving a work unpolled is a bug of the caller's, unless ibchan_scope_fail() was called: a line
 * on the standard error output says so, and the work is completed.
 *
 * Buffers: as ibchan_scope_end().
 */
#define ibchan_scoped_manual(scope)					\
	__ibchan_scoped(ibchan_scope_begin_manual(scope))

/**
 * ibchan_scoped_manual_timeout - the same, bounded
 * @scope: struct ibchan_scope *, any bytes; readable behind the block
 * @timeout_ns: as for ibchan_scoped_timeout()
 *
 * Buffers: as ibchan_scope_end().
 */
#define ibchan_scoped_manual_timeout(scope, timeout_ns)			\
	__ibchan_scoped(ibchan_scope_begin_manual_timeout(scope, timeout_ns))

__IBCHAN_END_DECLS

#endif /* _IBCHAN_SCOPE_H */
