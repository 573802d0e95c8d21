// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From work requests to SUBMIT. They have the form of the contract, and the kernel judges them:
 * handles of another context are none of this one's.
 */
#include <errno.h>

#include "post.h"

/* The ring that was full when a request was refused, and its head before that. */
struct full_ring {
	const struct ibchan_cq *cq;
	__u32 head;
};

/*
 * Works that nobody is shown may have filled the ring that a request completes on: a program that
 * posts unsignaled works only has no reason to poll. Returns whether a place has become free since
 * @full was written, by this thread or another one; where it is new, one may have.
 */
static bool make_room(struct ibchan_context *context, const struct ibchan_submit_wr *wr,
		      struct full_ring *full)
{
	struct ibchan_channel *channel = channel_find(context, wr->channel);
	struct full_ring now;
	struct ibchan_cq *cq;
	bool has_moved;

	if (!channel)
		return false;
	cq = completes_on(channel, wr);
	lock_take(&cq->lock);
	ring_make_room(cq);
	now = (struct full_ring) { cq, cq->head };
	lock_give(&cq->lock);
	has_moved = now.cq != full->cq || now.head != full->head;
	*full = now;
	return has_moved;
}

/* Posts the rest after a call that has failed with @err. */
static noinline int submit_rest(struct ibchan_context *context, const struct ibchan_submit_wr *wrs,
				__u32 n, struct ibchan_cmd_submit *cmd, int err)
{
	__u32 posted = cmd->entry_num;
	struct full_ring full = { 0 };

	while (err == -EAGAIN && cmd->reason.code == IBCHAN_REASON_RING_FULL && posted < n &&
	       make_room(context, &wrs[posted], &full)) {
		cmd->entries = (uintptr_t)&wrs[posted];
		cmd->entry_num = n - posted;
		err = context_submit(context, cmd);
		posted += cmd->entry_num;
	}
	cmd->entry_num = posted;
	if (!err)
		return 0;
	cmd->reason.wr = posted;
	/* A busy range belongs to a work that its poster knows by another number. */
	if (cmd->reason.code == IBCHAN_REASON_BUSY)
		cmd->reason.value[2] = callers_wr_id(context, cmd->reason.value[2]);
	return err;
}

/*
 * Posts requests, and waits for what @cmd asks for. An error of the wait leaves @cmd->entry_num at
 * the full number.
 */
static inline int submit(struct ibchan_context *context, const struct ibchan_submit_wr *wrs,
			 __u32 n, struct ibchan_cmd_submit *cmd)
{
	int err;

	cmd->entries = (uintptr_t)wrs;
	cmd->entry_num = n;
	err = context_submit(context, cmd);
	return unlikely(err) ? submit_rest(context, wrs, n, cmd, err) : 0;
}

int ibchan_post(struct ibchan_context *context, const struct ibchan_submit_wr *wrs,
		__u32 n, __u32 *accepted, struct ibchan_error *error)
{
	struct ibchan_cmd_submit cmd;
	int err = context_check(context);

	if (unlikely(err)) {
		cmd.entry_num = 0;
		cmd.reason = (struct ibchan_reason) { 0 };
	} else {
		await_nothing(&cmd);
		err = submit(context, wrs, n, &cmd);
	}
	if (accepted)
		*accepted = cmd.entry_num;
	return unlikely(err || error) ? error_set(error, err, &cmd.reason) : 0;
}

static int take_slot(struct ibchan_cq *cq, struct ibchan_channel *channel, __u64 wr_id,
		     struct ticket *ticket)
{
	struct slot *slot;
	__u32 index;

	lock_take(&cq->lock);
	index = slot_take(cq);
	if (likely(index != SLOT_NONE)) {
		slot = &cq->slots[index];
		slot->wr_id = wr_id;
		slot->channel = channel;
		*ticket = (struct ticket) { cq, index, slot->generation };
	}
	lock_give(&cq->lock);
	return index == SLOT_NONE ? -EAGAIN : 0;
}

/*
 * Posts one request and keeps its result until the caller asks for it: its completion is
 * therefore always signaled. If @cmd asks for a wait as well, the error of that is returned. If
 * the request is refused, @ticket->cq is NULL.
 */
int post_kept(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
	      struct ibchan_cmd_submit *cmd, struct ticket *ticket, struct ibchan_reason *reason)
{
	struct ibchan_cq *cq = completes_on(channel, wr);
	struct ibchan_submit_wr kept = *wr;
	int err;

	ticket->cq = NULL;
	if (unlikely(wr->channel != channel->object.handle)) {
		reason->code = IBCHAN_REASON_CHANNEL_HANDLE;
		reason->value[0] = wr->channel;
		return -ENOENT;
	}
	err = take_slot(cq, channel, wr->wr_id, ticket);
	if (unlikely(err)) {
		reason->code = IBCHAN_REASON_RING_FULL;
		return err;
	}
	kept.flags &= (__u8)~IBCHAN_WR_UNSIGNALED;
	kept.wr_id = slot_wr_id(cq, ticket->index);
	err = submit(channel->object.context, &kept, 1, cmd);
	if (likely(cmd->entry_num))
		return err;
	*reason = cmd->reason;
	/* A work that the kernel did not accept will not complete. */
	lock_take(&cq->lock);
	slot_free(cq, &cq->slots[ticket->index]);
	lock_give(&cq->lock);
	ticket->cq = NULL;
	return err;
}
