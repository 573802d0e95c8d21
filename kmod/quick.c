// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, the quick way: a few requests of the kind that nearly all are of, each with
 * one element of a region. They are read field by field to where the post wants them,
 * without a copy of the caller's structs from his memory, which he may write to at any
 * time. So each member of a request is read once. The members of a command that are about a
 * wait are read once more before the wait, and judged then.
 *
 * Whatever else a submit asks for goes the way of all commands, and so does what cannot
 * be read or found: the refusal is worded there. Only the post and the wait refuse here.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "form.h"
#include "submit.h"

/* Whether the quick way is for it, whatever its entries are. */
static __always_inline bool is_usual(u32 size, u32 flags, u32 len, u32 num)
{
	return size == sizeof(struct ibchan_cmd_submit) && !(flags & ~IBCHAN_SUBMIT_SINCE) &&
	       len == sizeof(struct ibchan_submit_wr) && num - 1 < CHUNK_WRS;
}

/*
 * A command of any other form is left to the general way. The answer of a success is written
 * before anything is posted: a caller that cannot be answered has nothing posted. @waits:
 * whether the command says anything about a wait.
 */
static __always_inline bool read_command(struct ibchan_cmd_submit __user *cmd, u64 *entries,
					 u32 *num, bool *waits)
{
	u32 size, len, flags, cq, min_complete, tail;
	bool ret = false;
	s64 timeout_ns;

	if (!user_access_begin(cmd, sizeof(*cmd)))
		return false;
	unsafe_get_user(flags, &cmd->flags, fault);
	unsafe_get_user(cq, &cmd->cq, fault);
	unsafe_get_user(min_complete, &cmd->min_complete, fault);
	unsafe_get_user(tail, &cmd->tail, fault);
	unsafe_get_user(timeout_ns, &cmd->timeout_ns, fault);
	*waits = (flags | cq | min_complete | tail) || timeout_ns < IBCHAN_TIMEOUT_NEVER;
	unsafe_get_user(size, &cmd->size, fault);
	unsafe_get_user(len, &cmd->entry_len, fault);
	unsafe_get_user(*entries, &cmd->entries, fault);
	unsafe_get_user(*num, &cmd->entry_num, fault);
	if (unlikely(!is_usual(size, flags, len, *num)))
		goto fault;
	unsafe_put_user(*num, &cmd->entry_num, fault);
	unsafe_put_user(IBCHAN_REASON_NONE, &cmd->reason.code, fault);
	ret = true;
fault:
	user_access_end();
	return ret;
}

/* @form is as the caller wrote it, in our order. */
static __always_inline bool is_quick(const struct ibchan_wr *wr, u32 form, u32 imm)
{
	u8 opcode = ibchan_form_opcode(form);

	if (!ibchan_form_is_plain(form, IBCHAN_WR_UNCHECKED) || imm)
		return false;
	if (likely(opcode == IBCHAN_OP_WRITE || opcode == IBCHAN_OP_READ))
		return !(wr->operand | wr->swap);
	if (opcode == IBCHAN_OP_SEND || opcode == IBCHAN_OP_RECV)
		return !(wr->operand | wr->swap | wr->remote_addr | wr->rkey);
	if (opcode == IBCHAN_OP_FETCH_ADD)
		return !wr->swap;
	return opcode == IBCHAN_OP_COMPARE_SWAP;
}

/* For a form that is_quick() has taken: the flag means the opposite in the kernel. */
static __always_inline u32 kernel_form(u32 form)
{
	const u32 unchecked = ibchan_form(0, 0, IBCHAN_WR_UNCHECKED);
	const u32 exclusive = ibchan_form(0, 0, IBCHAN_WR_EXCLUSIVE);

	return (form & ~unchecked) | (~form & unchecked) / (unchecked / exclusive);
}

/* Three members are next to each other in the caller's struct, as in ours in another order. */
static_assert(offsetof(struct ibchan_submit_wr, opcode) % sizeof(u32) == 0);
static_assert(offsetof(struct ibchan_submit_wr, flags) ==
	      offsetof(struct ibchan_submit_wr, opcode) + sizeof(u8));
static_assert(offsetof(struct ibchan_submit_wr, num_sge) ==
	      offsetof(struct ibchan_submit_wr, opcode) + sizeof(u16));

/* Between user_read_access_begin() and its end. */
static __always_inline bool read_entry(struct ibchan_wr *wr, struct ibchan_sge *sge,
				       struct ibchan_submit_handles *handles,
				       const struct ibchan_submit_wr __user *from)
{
	u32 form, imm;

	unsafe_get_user(handles->channel, &from->channel, fault);
	unsafe_get_user(form, (const u32 __user *)&from->opcode, fault);
	form = rol32(form, 16);
	wr->form = kernel_form(form);
	unsafe_get_user(wr->wr_id, &from->wr_id, fault);
	unsafe_get_user(wr->operand, &from->operand, fault);
	unsafe_get_user(wr->remote_addr, &from->remote_addr, fault);
	unsafe_get_user(wr->rkey, &from->rkey, fault);
	unsafe_get_user(imm, &from->imm, fault);
	unsafe_get_user(sge->offset, &from->sge.offset, fault);
	unsafe_get_user(sge->length, &from->sge.length, fault);
	unsafe_get_user(handles->mr, &from->sge.mr, fault);
	unsafe_get_user(wr->swap, &from->swap, fault);
	return is_quick(wr, form, imm);
fault:
	return false;
}

static __always_inline bool read_first(struct ibchan_submit_scratch *s,
				       const struct ibchan_submit_wr __user *from)
{
	bool ret;

	if (!user_read_access_begin(from, sizeof(*from)))
		return false;
	ret = read_entry(s->wrs, s->sges, s->handles, from);
	user_read_access_end();
	return ret;
}

/* What is the same in all of them, for as long as they go the quick way. */
static noinline void prepare(struct ibchan_submit_scratch *s)
{
	u32 i;

	for (i = 0; i < CHUNK_WRS; i++) {
		s->wrs[i].work = NULL;
		s->wrs[i].sges = &s->sges[i];
		s->wrs[i].remote_length = IBCHAN_REMOTE_UNCHECKED;
	}
	s->is_prepared = true;
}

static __always_inline bool read_all(struct ibchan_submit_scratch *s,
				     const struct ibchan_submit_wr __user *from, u32 num)
{
	struct ibchan_submit_handles *handles = s->handles;
	struct ibchan_sge *sge = s->sges;
	struct ibchan_wr *wr = s->wrs;
	u64 differ = 0;

	for (; num; num--, handles++) {
		if (unlikely(!read_entry(wr++, sge++, handles, from++)))
			return false;
		differ |= handles->both ^ s->handles->both;
	}
	s->is_uniform = !differ;
	return true;
}

static noinline bool read_several(struct ibchan_submit_scratch *s,
				  const struct ibchan_submit_wr __user *from, u32 num)
{
	bool ret;

	if (!user_read_access_begin(from, num * sizeof(*from)))
		return false;
	ret = read_all(s, from, num);
	user_read_access_end();
	return ret;
}

/* Reads all requests, or returns false. */
static __always_inline bool read_entries(struct ibchan_submit_scratch *s, u64 entries, u32 num)
{
	const struct ibchan_submit_wr __user *from = u64_to_user_ptr(entries);

	return num == 1 ? read_first(s, from) : read_several(s, from, num);
}

/* What its handles mean: returns the channel, or NULL. */
static __always_inline struct ibchan_channel *resolve_entry(struct ibchan_context *ctx,
							    struct ibchan_submit_scratch *s,
							    u32 index)
{
	struct ibchan_object *channel, *mr;

	channel = ibchan_object_find(ctx, s->handles[index].channel, OBJECT_CHANNEL);
	mr = ibchan_object_find(ctx, s->handles[index].mr, OBJECT_MR);
	if (unlikely(!channel || !mr))
		return NULL;
	s->sges[index].mr = mr->mr;
	return channel->channel;
}

static bool resolve_each(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num)
{
	u32 i;

	s->has_one_channel = true;
	for (i = 0; i < num; i++) {
		s->channels[i] = resolve_entry(ctx, s, i);
		if (unlikely(!s->channels[i]))
			return false;
		s->has_one_channel &= s->channels[i] == s->channels[0];
	}
	return true;
}

/* Nearly always all name the same. */
static noinline bool resolve_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				 u32 num)
{
	struct ibchan_mr *mr;
	u32 i;

	if (!s->is_uniform)
		return resolve_each(ctx, s, num);
	s->has_one_channel = true;
	s->channels[0] = resolve_entry(ctx, s, 0);
	mr = s->sges[0].mr;
	for (i = 1; i < num; i++)
		s->sges[i].mr = mr;
	return s->channels[0];
}

/* Posts a single request. 1: the quick way does not take it, and nothing was done. */
static __always_inline int post_one(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    const struct ibchan_cq *waited)
{
	struct ibchan_channel *channel = resolve_entry(ctx, s, 0);
	int ret;

	if (unlikely(!channel))
		return 1;
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	ret = ibchan_post_by_id(channel, s->wrs, &s->reason);
	if (unlikely(ret))
		return ret;
	s->accepted = 1;
	if (ibchan_submit_gives_way(waited)) {
		ibchan_submit_give_way(ctx, s, 1);
		channel = s->channels[0];
	}
	if (likely(channel))
		ibchan_channel_arm(channel, waited);
	return 0;
}

static noinline int post_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			     const struct ibchan_cq *waited, u32 num)
{
	int error = 0;

	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	s->accepted = ibchan_submit_post(s, num, waited, &s->reason, &error);
	if (likely(s->accepted))
		ibchan_submit_arm(ctx, s, s->accepted, waited);
	return error;
}

/* Arms the cqs of two posted requests, or of the first one. */
static __always_inline void arm_two(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    const struct ibchan_cq *waited, u32 num)
{
	if (ibchan_submit_gives_way(waited))
		ibchan_submit_give_way(ctx, s, num);
	if (likely(num == 2 && s->channels[0] && s->channels[1]))
		ibchan_channels_arm(s->channels[0], s->channels[1], waited);
	else if (s->channels[0])
		ibchan_channel_arm(s->channels[0], waited);
	else if (num == 2 && s->channels[1])
		ibchan_channel_arm(s->channels[1], waited);
}

/* Two requests on two channels: a relay receives on one and sends on the other. As post_one(). */
static noinline int post_two(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			     const struct ibchan_cq *waited)
{
	int ret;

	s->channels[0] = resolve_entry(ctx, s, 0);
	s->channels[1] = resolve_entry(ctx, s, 1);
	if (unlikely(!s->channels[0] || !s->channels[1]))
		return 1;
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	ret = ibchan_post_by_id(s->channels[0], &s->wrs[0], &s->reason);
	if (unlikely(ret))
		return ret;
	ret = ibchan_post_by_id(s->channels[1], &s->wrs[1], &s->reason);
	s->accepted = likely(!ret) ? 2 : 1;
	arm_two(ctx, s, waited, s->accepted);
	return ret;
}

/* 1: the quick way does not take these requests, and nothing was done. */
static __always_inline int post(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				const struct ibchan_cq *waited, u32 num)
{
	int ret;

	s->accepted = 0;
	rcu_read_lock();
	if (num == 1)
		ret = post_one(ctx, s, waited);
	else if (num == 2 && s->handles[0].channel != s->handles[1].channel)
		ret = post_two(ctx, s, waited);
	else if (resolve_all(ctx, s, num))
		ret = post_all(ctx, s, waited, num);
	else
		ret = 1;
	rcu_read_unlock();
	return ret;
}

/* If the caller's struct cannot be written any more, the count is lost: -EFAULT says so. */
static noinline int refuse(struct ibchan_cmd_submit __user *cmd,
			   const struct ibchan_reason *reason, u32 accepted, int error)
{
	if (put_user(accepted, &cmd->entry_num) || put_user(0, &cmd->out_ready) ||
	    copy_to_user(&cmd->reason, reason, sizeof(*reason)))
		return -EFAULT;
	return error;
}

/* What the post said; the scratch is as it was then. */
static noinline int refuse_post(struct ibchan_cmd_submit __user *cmd,
				struct ibchan_submit_scratch *s, int error)
{
	struct ibchan_reason reason = s->reason;

	s->reason = (struct ibchan_reason) {};
	reason.wr = s->accepted;
	return refuse(cmd, &reason, s->accepted, error);
}

static __always_inline int submit(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				  struct ibchan_cmd_submit __user *cmd, u32 num)
{
	int ret = post(ctx, s, NULL, num);

	return likely(ret >= 0) ? ret : refuse_post(cmd, s, ret);
}

/* What is read of a command about the wait. */
struct wish {
	s64 timeout_ns;
	u32 flags;
	u32 cq;
	u32 min_complete;
	u32 tail;
};

static __always_inline bool read_wish(struct ibchan_cmd_submit __user *cmd, struct wish *wish)
{
	bool ret = false;

	if (!user_access_begin(cmd, sizeof(*cmd)))
		return false;
	unsafe_get_user(wish->timeout_ns, &cmd->timeout_ns, fault);
	unsafe_get_user(wish->flags, &cmd->flags, fault);
	unsafe_get_user(wish->cq, &cmd->cq, fault);
	unsafe_get_user(wish->min_complete, &cmd->min_complete, fault);
	unsafe_get_user(wish->tail, &cmd->tail, fault);
	unsafe_put_user(0, &cmd->out_ready, fault);
	ret = true;
fault:
	user_access_end();
	return ret && wish->cq && !ibchan_submit_check_form(wish->flags, wish->tail, wish->cq,
							    wish->min_complete, wish->timeout_ns);
}

/* Fails without a reason. Posted requests stay posted. */
static noinline int refuse_wait(struct ibchan_cmd_submit __user *cmd, u32 accepted, int error)
{
	struct ibchan_reason reason = {};

	return refuse(cmd, &reason, accepted, error);
}

/* Nearly always what was posted has completed by the time when it is waited for. */
static __always_inline int wait(struct ibchan_user_ring *ring, const struct wish *wish)
{
	const u32 *since = wish->flags & IBCHAN_SUBMIT_SINCE ? &wish->tail : NULL;

	if (since && wish->min_complete &&
	    ibchan_ring_has_come(ring, wish->min_complete, wish->tail))
		return 0;
	return ibchan_ring_wait(ring, wish->min_complete, since,
				ibchan_time_left(wish->flags, wish->timeout_ns));
}

static __always_inline int tell_ready(struct ibchan_user_ring *ring,
				      struct ibchan_cmd_submit __user *cmd, int ret)
{
	int ready = ibchan_ring_ready(ring);

	return put_user(max(ready, 0), &cmd->out_ready) ? -EFAULT : ret;
}

/* A refused post is not waited for. */
static noinline int refuse_both(struct ibchan_user_ring *ring, struct ibchan_submit_scratch *s,
				struct ibchan_cmd_submit __user *cmd, int ret)
{
	ibchan_cq_arm(ring->cq);
	ret = refuse_post(cmd, s, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	return tell_ready(ring, cmd, ret);
}

/*
 * The scratch goes back before the wait, which takes as long as the caller likes, unless
 * nothing was done.
 */
static __always_inline int post_and_wait(struct ibchan_user_ring *ring,
					 struct ibchan_submit_scratch *s,
					 struct ibchan_cmd_submit __user *cmd, u32 num,
					 const struct wish *wish)
{
	int ret = post(ring->ctx, s, ring->cq, num);

	if (unlikely(ret))
		return ret > 0 ? ret : refuse_both(ring, s, cmd, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	ret = wait(ring, wish);
	if (unlikely(ret))
		ret = refuse_wait(cmd, num, ret);
	return tell_ready(ring, cmd, ret);
}

/* If the caller's struct cannot be written, nothing has happened yet. */
static noinline int submit_and_wait(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    struct ibchan_cmd_submit __user *cmd, u32 num)
{
	struct ibchan_user_ring *ring = NULL;
	struct wish wish;
	int ret = 1;

	if (read_wish(cmd, &wish))
		ring = ibchan_submit_ring(ctx, wish.cq);
	if (likely(ring)) {
		if (wish.min_complete <= ring->entries)
			ret = post_and_wait(ring, s, cmd, num, &wish);
		ibchan_cq_put(ring->cq);
	}
	if (unlikely(ret > 0))
		ibchan_submit_scratch_put(ctx, s);
	return ret;
}

/* The scratch goes back. */
static __always_inline int run_with(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    struct ibchan_cmd_submit __user *cmd)
{
	bool waits, is_read;
	u64 entries;
	int ret = 1;
	u32 num;

	is_read = read_command(cmd, &entries, &num, &waits) && read_entries(s, entries, num);
	if (is_read && waits)
		return submit_and_wait(ctx, s, cmd, num);
	if (likely(is_read))
		ret = submit(ctx, s, cmd, num);
	ibchan_submit_scratch_put(ctx, s);
	return ret;
}

/**
 * ibchan_submit_quick - post a few requests of the usual kind
 * @ctx: of the file
 * @user: the command
 *
 * Context: process, may sleep; the context is not locked.
 * Return: as <linux/ibchan.h> says; 1 when it goes the way of all commands: nothing was
 * done.
 */
int ibchan_submit_quick(struct ibchan_context *ctx, struct ibchan_cmd_submit __user *user)
{
	struct ibchan_submit_scratch *s;

	if (unlikely(ibchan_caller_check(ctx)))
		return 1;
	s = ibchan_submit_scratch_get(ctx);
	if (unlikely(!s))
		return 1;
	if (unlikely(!s->is_prepared))
		prepare(s);
	return run_with(ctx, s, user);
}
