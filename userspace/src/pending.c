// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pending works: a work whose result waits in its slot until its owner looks.
 *
 * The struct is the caller's and has one owner, so nothing here needs a lock but
 * the cq. It holds a ticket; no slot knows where it is.
 */
#include <errno.h>
#include <sched.h>

#include "pending.h"
#include "post.h"

enum pending_state {
	PENDING_IDLE,
	PENDING_POSTED,
	PENDING_DONE,
};

static struct ticket ticket_of(const struct ibchan_pending *pending)
{
	return (struct ticket) {
		.cq = pending->cq,
		.index = pending->slot,
		.generation = pending->generation,
	};
}

/* The kernel will never tell how it ended. */
void pending_lose(struct ibchan_pending *pending, int error)
{
	pending->completion.error = error;
	pending->completion.status = IBCHAN_STATUS_GENERAL_ERR;
	pending->completion.channel = 0;
	pending->state = PENDING_DONE;
}

/*
 * A result, once fetched, is the owner's alone. Until then the completion in the
 * struct is what the post wrote.
 */
static int settle(struct ibchan_pending *pending, const struct ibchan_cqe *completion, int ret)
{
	if (ret == -ESTALE) {
		pending_lose(pending, ret);
		return 1;
	}
	if (ret > 0) {
		pending->completion = *completion;
		pending->state = PENDING_DONE;
	}
	return ret;
}

/* 1 if it has ended, 0 if not, or a negative errno. */
static int look(struct ibchan_pending *pending)
{
	struct ticket ticket = ticket_of(pending);
	struct ibchan_cqe completion;
	int ret = context_check(ticket.cq->object.context);

	if (ret)
		return ret;
	ret = ticket_look(&ticket, &completion, NULL);
	return settle(pending, &completion, ret);
}

/* Whether it has ended by now, seen or not. */
int pending_has_ended(struct ibchan_pending *pending)
{
	return pending->state != PENDING_POSTED || look(pending) > 0;
}

/* 0 when it has ended, else as ticket_wait() says. */
int pending_end(struct ibchan_pending *pending, const struct deadline *deadline)
{
	struct ticket ticket = ticket_of(pending);
	struct ibchan_cqe completion;
	int ret;

	if (pending->state != PENDING_POSTED)
		return 0;
	ret = context_check(ticket.cq->object.context);
	if (ret)
		return ret;
	ret = ticket_wait(&ticket, deadline, 0, &completion);
	ret = settle(pending, &completion, ret ? ret : 1);
	return ret > 0 ? 0 : ret;
}

static int start(struct ibchan_pending *pending, struct ibchan_channel *channel,
		 const struct ibchan_submit_wr *wr, struct ibchan_reason *reason)
{
	struct ibchan_cmd_submit cmd;
	struct ticket ticket;
	int err = context_check(channel->object.context);
	int ret;

	if (err)
		return err;
	ret = pending->state == PENDING_POSTED ? look(pending) : 1;
	if (ret <= 0)
		return ret ? ret : -EALREADY;
	/* Its scope would never learn how it ended. */
	if (pending->scope && !pending->seen)
		return -EALREADY;
	await_nothing(&cmd);
	err = post_kept(channel, wr, &cmd, &ticket, reason);
	if (err)
		return err;
	pending->completion = (struct ibchan_cqe) {
		.wr_id = wr->wr_id,
		.channel = wr->channel,
		.opcode = wr->opcode,
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
	int err = start(pending, channel, wr, &reason);

	return error_set(error, err, &reason);
}

int ibchan_pending_result(const struct ibchan_pending *pending)
{
	switch (pending->state) {
	case PENDING_DONE:
		return pending->completion.error;
	case PENDING_POSTED:
		return -EINPROGRESS;
	default:
		return -EINVAL;
	}
}

int ibchan_pending_poll(struct ibchan_pending *pending)
{
	int ret = 1;

	if (pending->state == PENDING_IDLE)
		return -EINVAL;
	if (pending->state == PENDING_POSTED)
		ret = look(pending);
	if (ret > 0)
		pending->seen = 1;
	return ret;
}

/*
 * How often to look before another thread gets the cpu, and the kernel is asked. Without a
 * waiter, unsolicited completions stay out of the ring of a cq that was made for that; and
 * only the kernel tells that a device is gone.
 */
#define SPIN_LOOKS	64

int ibchan_pending_spin(struct ibchan_pending *pending)
{
	__u32 looks;
	int err = 0;
	int ret;

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
	int err;

	if (pending->state == PENDING_IDLE || timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	deadline_set(&deadline, timeout_ns);
	err = pending_end(pending, &deadline);
	if (!err)
		pending->seen = 1;
	return err;
}

/* Waits as long as it takes. */
void pending_finish(struct ibchan_pending *pending)
{
	static const struct deadline never = {
		.timeout_ns = IBCHAN_TIMEOUT_NEVER,
	};
	int err = pending_end(pending, &never);

	if (err)
		pending_lose(pending, err);
}

void ibchan_pending_drop(struct ibchan_pending *pending)
{
	if (!pending)
		return;
	pending_finish(pending);
	/* A program that drops it does not want to know. */
	pending->seen = 1;
}
