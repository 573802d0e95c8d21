/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waiting, for the calls that do it. */
#ifndef _LIBIBCHAN_WAIT_H
#define _LIBIBCHAN_WAIT_H

#include "slots.h"

/* The end of a call's time. */
struct deadline {
	__s64 timeout_ns;	/* the caller's; IBCHAN_TIMEOUT_NEVER: no end */
	__s64 end_ns;		/* on the monotonic clock; not used without an end */
};

#pragma GCC visibility push(hidden)

__s64 now_ns(void);	/* on the monotonic clock */
void deadline_start(struct deadline *deadline);
__s64 deadline_left(const struct deadline *deadline);
int fd_await(int fd, const struct deadline *deadline);
int cq_sleep(const struct ibchan_cq *cq, __u32 tail, const struct deadline *deadline);
int ticket_sort(const struct ticket *ticket, struct ibchan_cqe *completion, __u32 *tail);
int ticket_wait_longer(const struct ticket *ticket, const struct deadline *deadline, int err,
		       __u32 tail, struct ibchan_cqe *completion);

#pragma GCC visibility pop

static inline void deadline_set(struct deadline *deadline, __s64 timeout_ns)
{
	deadline->timeout_ns = timeout_ns;
	deadline->end_ns = 0;
	if (timeout_ns > 0)
		deadline_start(deadline);
}

/* Of a call that may wait: 0; -EPERM in a child; -EINVAL: @timeout_ns is none. */
static inline int deadline_begin(struct deadline *deadline, const struct ibchan_context *context,
				 __s64 timeout_ns)
{
	int err = context_check(context);

	if (!err && timeout_ns < IBCHAN_TIMEOUT_NEVER)
		err = -EINVAL;
	if (!err)
		deadline_set(deadline, timeout_ns);
	return err;
}

/* @err is that of deadline_begin(), or of what the call has checked beside it. */
static inline int refuse_begin(int err, __s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_reason reason =
		out_of_range(IBCHAN_PARAMETER_TIMEOUT_NS, (__u64)timeout_ns,
			     (__u64)IBCHAN_TIMEOUT_NEVER, INT64_MAX);

	return error_set(error, err, timeout_ns < IBCHAN_TIMEOUT_NEVER ? &reason : NULL);
}

/* How a wait without success ends: the program may try again. */
static inline int too_late(const struct deadline *deadline)
{
	return deadline->timeout_ns ? -ETIMEDOUT : -EAGAIN;
}

/* Asks for a sleep until @min completions were published behind @tail. */
static inline void submit_wait(struct ibchan_cmd_submit *cmd, const struct ibchan_cq *cq,
			       __u32 tail, __u32 min)
{
	cmd->flags = IBCHAN_SUBMIT_SINCE;
	cmd->cq = cq->object.handle;
	cmd->tail = tail;
	cmd->min_complete = min;
}

/* Returns 1 when @completion was filled, 0 while the work is in flight; -ESTALE. */
static forced_inline int ticket_look(const struct ticket *ticket, struct ibchan_cqe *completion,
				     __u32 *tail)
{
	struct ibchan_cq *cq = ticket->cq;

	lock_take(&cq->lock);
	if (unlikely(!ticket_read(cq, ticket, completion)))
		return ticket_sort(ticket, completion, tail);
	ticket_unlock(cq);
	return 1;
}

/*
 * @err is what became of a wait that the post went along with. Returns 0 when
 * @completion was filled. With any error but -ESTALE the work may be in flight.
 */
static forced_inline int ticket_wait(const struct ticket *ticket, const struct deadline *deadline,
				     int err, struct ibchan_cqe *completion)
{
	__u32 tail;
	int ret = ticket_look(ticket, completion, &tail);

	if (unlikely(!ret))
		return ticket_wait_longer(ticket, deadline, err, tail, completion);
	return min(ret, 0);
}

#endif /* _LIBIBCHAN_WAIT_H */
