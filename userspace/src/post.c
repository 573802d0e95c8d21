// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From work requests to SUBMIT. They have the form of the contract, and the kernel judges them:
 * handles of another context are none of this one's.
 */
#include <errno.h>

#include "slots.h"

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

/* Returns false if there is none. */
static inline bool take_slot(struct ibchan_cq *cq, struct ibchan_channel *channel, __u64 wr_id,
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
	return index != SLOT_NONE;
}

/* A work that the kernel did not accept will not complete. */
static noinline void return_slot(struct ticket *ticket)
{
	struct ibchan_cq *cq = ticket->cq;

	lock_take(&cq->lock);
	slot_free(cq, &cq->slots[ticket->index]);
	lock_give(&cq->lock);
	ticket->cq = NULL;
}

/*
 * Posts one request, which this changes, and keeps its result until the caller asks for it: its
 * completion is therefore always signaled. If @cmd asks for a wait as well, the error of that is
 * returned. If the request is refused, @ticket->cq is NULL, and @cmd has the reason.
 */
int post_kept(struct ibchan_channel *channel, struct ibchan_submit_wr *wr,
	      struct ibchan_cmd_submit *cmd, struct ticket *ticket)
{
	struct ibchan_cq *cq = completes_on(channel, wr);
	int err;

	ticket->cq = NULL;
	if (unlikely(wr->channel != channel->object.handle)) {
		cmd->reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_CHANNEL_HANDLE, .value = { wr->channel },
		};
		return -ENOENT;
	}
	if (unlikely(!take_slot(cq, channel, wr->wr_id, ticket))) {
		cmd->reason = (struct ibchan_reason) { .code = IBCHAN_REASON_RING_FULL };
		return -EAGAIN;
	}
	wr->flags &= (__u8)~IBCHAN_WR_UNSIGNALED;
	wr->wr_id = slot_wr_id(cq, ticket->index);
	err = submit(channel->object.context, wr, 1, cmd);
	if (unlikely(!cmd->entry_num))
		return_slot(ticket);
	return err;
}

/* No message has as many bytes: a post refuses it. */
static __u32 length_of(size_t length)
{
	return length < UINT32_MAX ? (__u32)length : UINT32_MAX;
}

struct ibchan_submit_sge ibchan_sge_plain(void *addr, size_t length)
{
	return (struct ibchan_submit_sge) {
		.offset = (uintptr_t)addr, .length = length_of(length), .mr = IBCHAN_MR_PLAIN,
	};
}

struct ibchan_submit_sge ibchan_sge_unchecked(const struct ibchan_mr *mr, size_t offset,
					      size_t length)
{
	return (struct ibchan_submit_sge) {
		.offset = offset, .length = length_of(length), .mr = mr->object.handle,
	};
}

int ibchan_sge_checked(const struct ibchan_mr *mr, __u64 offset, __u64 length,
		       struct ibchan_submit_sge *sge)
{
	if (offset > mr->length || length > mr->length - offset)
		return -EINVAL;
	if (length > UINT32_MAX)
		return -EOVERFLOW;
	*sge = ibchan_sge_unchecked(mr, (size_t)offset, (size_t)length);
	return 0;
}

/* More elements than the contract can count are as good as the most that it can. */
static forced_inline struct ibchan_submit_wr make(struct ibchan_channel *channel, __u8 opcode,
						  const struct ibchan_submit_sge *sges,
						  __u32 num_sge,
						  const struct ibchan_remote_region *remote)
{
	static const struct ibchan_submit_sge no_sge;
	static const struct ibchan_remote_region no_remote;
	const struct ibchan_submit_sge *sge = num_sge == 1 ? sges : &no_sge;

	remote = remote ?: &no_remote;
	return (struct ibchan_submit_wr) {
		.channel = channel->object.handle, .opcode = opcode,
		.num_sge = (__u16)min(num_sge, UINT16_MAX),
		.sges = num_sge > 1 ? (uintptr_t)sges : 0, .sge = *sge,
		.remote_addr = remote->addr, .rkey = remote->rkey,
		.remote_length = remote->length,
	};
}

struct ibchan_submit_wr ibchan_wr_send(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge)
{
	return make(channel, IBCHAN_OP_SEND, sges, num_sge, NULL);
}

struct ibchan_submit_wr ibchan_wr_receive(struct ibchan_channel *channel,
					  const struct ibchan_submit_sge *sges, __u32 num_sge)
{
	return make(channel, IBCHAN_OP_RECV, sges, num_sge, NULL);
}

struct ibchan_submit_wr ibchan_wr_write(struct ibchan_channel *channel,
					const struct ibchan_submit_sge *sges, __u32 num_sge,
					const struct ibchan_remote_region *remote)
{
	return make(channel, IBCHAN_OP_WRITE, sges, num_sge, remote);
}

struct ibchan_submit_wr ibchan_wr_read(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge,
				       const struct ibchan_remote_region *remote)
{
	return make(channel, IBCHAN_OP_READ, sges, num_sge, remote);
}

/*
 * The contract has the new value where others have the length of the peer's region. A region that
 * is too short has no word, and a post refuses an address that is none.
 */
struct ibchan_submit_wr ibchan_wr_compare_swap(struct ibchan_channel *channel,
					       const struct ibchan_submit_sge *sge,
					       const struct ibchan_remote_region *remote,
					       __u64 compare, __u64 swap)
{
	struct ibchan_submit_wr wr = make(channel, IBCHAN_OP_COMPARE_SWAP, sge, 1, remote);

	if (remote->length < sizeof(__u64))
		wr.remote_addr |= 1;
	wr.operand = compare;
	wr.swap = swap;
	return wr;
}

struct ibchan_submit_wr ibchan_wr_fetch_add(struct ibchan_channel *channel,
					    const struct ibchan_submit_sge *sge,
					    const struct ibchan_remote_region *remote, __u64 add)
{
	struct ibchan_submit_wr wr = make(channel, IBCHAN_OP_FETCH_ADD, sge, 1, remote);

	wr.operand = add;
	return wr;
}

void ibchan_wr_set_imm(struct ibchan_submit_wr *wr, __u32 imm)
{
	wr->imm = imm;
	wr->flags |= IBCHAN_WR_IMM;
}

static int post_one(struct ibchan_channel *channel, struct ibchan_submit_wr wr, __u64 wr_id,
		    struct ibchan_error *error)
{
	wr.wr_id = wr_id;
	return ibchan_post(channel->object.context, &wr, 1, NULL, error);
}

int ibchan_post_send(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
		     size_t length, __u64 wr_id, struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(channel, ibchan_wr_send(channel, &sge, 1), wr_id, error);
}

int ibchan_post_receive(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
			size_t length, __u64 wr_id, struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(channel, ibchan_wr_receive(channel, &sge, 1), wr_id, error);
}

int ibchan_post_write(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		      const struct ibchan_remote_region *remote, __u64 wr_id,
		      struct ibchan_error *error)
{
	return post_one(channel, ibchan_wr_write(channel, &sge, 1, remote), wr_id, error);
}

int ibchan_post_read(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		     const struct ibchan_remote_region *remote, __u64 wr_id,
		     struct ibchan_error *error)
{
	return post_one(channel, ibchan_wr_read(channel, &sge, 1, remote), wr_id, error);
}
