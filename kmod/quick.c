// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, the quick way: a few requests of the kind that nearly all are of, each with
 * one element of a region. They are read field by field to where the post wants them,
 * without a copy of the caller's structs.
 *
 * Whatever else a submit asks for goes the way of all commands, and so does what cannot
 * be read or found: the refusal is worded there. Only the post and the wait refuse here.
 */
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "submit.h"

/*
 * What is not of the usual form is left to others; @cmd has then any content. The answer of
 * a success is written before anything is posted, so that who cannot be answered has nothing
 * posted.
 */
static __always_inline bool read_command(struct ibchan_cmd_submit __user *user,
					 struct ibchan_cmd_submit *cmd)
{
	u32 size, len, num;

	if (!user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(size, &user->size, fault);
	unsafe_get_user(len, &user->entry_len, fault);
	unsafe_get_user(num, &user->entry_num, fault);
	unsafe_get_user(cmd->flags, &user->flags, fault);
	unsafe_get_user(cmd->entries, &user->entries, fault);
	unsafe_get_user(cmd->cq, &user->cq, fault);
	unsafe_get_user(cmd->min_complete, &user->min_complete, fault);
	unsafe_get_user(cmd->timeout_ns, &user->timeout_ns, fault);
	unsafe_get_user(cmd->tail, &user->tail, fault);
	unsafe_put_user(num, &user->entry_num, fault);
	unsafe_put_user(IBCHAN_REASON_NONE, &user->reason.code, fault);
	user_access_end();
	cmd->entry_num = num;
	return size == sizeof(*cmd) && len == sizeof(struct ibchan_submit_wr) &&
	       num - 1 < CHUNK_WRS;
fault:
	user_access_end();
	return false;
}

static __always_inline bool is_quick(const struct ibchan_wr *wr, u32 imm)
{
	if (wr->num_sge != 1 || wr->flags & ~IBCHAN_WR_UNCHECKED || imm)
		return false;
	if (likely(wr->opcode == IBCHAN_OP_WRITE || wr->opcode == IBCHAN_OP_READ))
		return !(wr->operand | wr->swap);
	if (wr->opcode == IBCHAN_OP_SEND || wr->opcode == IBCHAN_OP_RECV)
		return !(wr->operand | wr->swap | wr->remote_addr | wr->rkey);
	if (wr->opcode == IBCHAN_OP_FETCH_ADD)
		return !wr->swap;
	return wr->opcode == IBCHAN_OP_COMPARE_SWAP;
}

/* Between user_read_access_begin() and its end. */
static __always_inline bool read_entry(struct ibchan_wr *wr, struct ibchan_sge *sge,
				       struct ibchan_submit_handles *handles,
				       const struct ibchan_submit_wr __user *user)
{
	u32 imm;

	unsafe_get_user(handles->channel, &user->channel, fault);
	unsafe_get_user(wr->opcode, &user->opcode, fault);
	unsafe_get_user(wr->flags, &user->flags, fault);
	unsafe_get_user(wr->num_sge, &user->num_sge, fault);
	unsafe_get_user(wr->wr_id, &user->wr_id, fault);
	unsafe_get_user(wr->operand, &user->operand, fault);
	unsafe_get_user(wr->remote_addr, &user->remote_addr, fault);
	unsafe_get_user(wr->rkey, &user->rkey, fault);
	unsafe_get_user(imm, &user->imm, fault);
	unsafe_get_user(sge->offset, &user->sge.offset, fault);
	unsafe_get_user(sge->length, &user->sge.length, fault);
	unsafe_get_user(handles->mr, &user->sge.mr, fault);
	unsafe_get_user(wr->swap, &user->swap, fault);
	return is_quick(wr, imm);
fault:
	return false;
}

static __always_inline bool read_first(struct ibchan_submit_scratch *s, u64 entries)
{
	const struct ibchan_submit_wr __user *user = u64_to_user_ptr(entries);
	bool ret;

	if (!user_read_access_begin(user, sizeof(*user)))
		return false;
	ret = read_entry(s->wrs, s->sges, s->handles, user);
	user_read_access_end();
	return ret;
}

/* All of them, or false. */
static noinline bool read_entries(struct ibchan_submit_scratch *s, u64 entries, u32 num)
{
	const struct ibchan_submit_wr __user *user = u64_to_user_ptr(entries);
	struct ibchan_submit_handles *handles = s->handles;
	struct ibchan_sge *sge = s->sges;
	struct ibchan_wr *wr = s->wrs;

	if (!user_read_access_begin(user, num * sizeof(*user)))
		return false;
	for (; num; num--)
		if (unlikely(!read_entry(wr++, sge++, handles++, user++)))
			break;
	user_read_access_end();
	return !num;
}

/* What was not read of a request. */
static __always_inline void fill_entry(struct ibchan_submit_scratch *s, u32 index,
				       struct ibchan_channel *channel, struct ibchan_mr *mr)
{
	struct ibchan_wr *wr = &s->wrs[index];

	wr->work = NULL;
	wr->sges = &s->sges[index];
	wr->remote_length = IBCHAN_REMOTE_UNCHECKED;
	wr->flags = ibchan_kernel_flags(wr->flags);
	s->sges[index].mr = mr;
	s->channels[index] = channel;
}

/* What its handles mean. */
static __always_inline bool resolve_entry(struct ibchan_context *ctx,
					  struct ibchan_submit_scratch *s, u32 index)
{
	struct ibchan_object *channel, *mr;

	channel = ibchan_object_find(ctx, s->handles[index].channel, OBJECT_CHANNEL);
	mr = ibchan_object_find(ctx, s->handles[index].mr, OBJECT_MR);
	if (unlikely(!channel || !mr))
		return false;
	fill_entry(s, index, channel->channel, mr->mr);
	return true;
}

/* Nearly always it names what the one before it names. */
static noinline bool resolve_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				 u32 num)
{
	const struct ibchan_submit_handles *handles = s->handles;
	u32 i;

	if (unlikely(!resolve_entry(ctx, s, 0)))
		return false;
	for (i = 1; i < num; i++) {
		if (likely(handles[i].channel == handles[i - 1].channel &&
			   handles[i].mr == handles[i - 1].mr))
			fill_entry(s, i, s->channels[i - 1], s->sges[i - 1].mr);
		else if (unlikely(!resolve_entry(ctx, s, i)))
			return false;
	}
	return true;
}

/* The one, without a look for runs. */
static __always_inline int post_one(struct ibchan_submit_scratch *s,
				    const struct ibchan_cq *waited, u32 *accepted)
{
	int ret;

	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	ret = ibchan_post(s->channels[0], s->wrs, 1, accepted, &s->reason);
	if (likely(!ret))
		ibchan_channel_arm(s->channels[0], waited);
	return ret;
}

static u32 post_all(struct ibchan_submit_scratch *s, const struct ibchan_cq *waited, u32 num,
		    int *error)
{
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	return ibchan_submit_post(s, num, waited, &s->reason, error);
}

/* 1: these are none of ours, and nothing was done. Returns in @accepted how many were posted. */
static __always_inline int post(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				const struct ibchan_cq *waited, u32 num, u32 *accepted)
{
	int ret = 0;

	rcu_read_lock();
	if (num == 1)
		ret = resolve_entry(ctx, s, 0) ? post_one(s, waited, accepted) : 1;
	else if (resolve_all(ctx, s, num))
		*accepted = post_all(s, waited, num, &ret);
	else
		ret = 1;
	rcu_read_unlock();
	return ret;
}

/* A caller whose struct cannot be written any more loses the count: the errno says so. */
static noinline int refuse(struct ibchan_cmd_submit __user *user, struct ibchan_reason *reason,
			   u32 accepted, int error)
{
	if (put_user(accepted, &user->entry_num) || put_user(0, &user->out_ready) ||
	    copy_to_user(&user->reason, reason, sizeof(*reason)))
		return -EFAULT;
	return error;
}

/* What the post said; the scratch is as it was then. */
static struct ibchan_reason take_reason(struct ibchan_submit_scratch *s, u32 accepted)
{
	struct ibchan_reason reason = s->reason;

	s->reason = (struct ibchan_reason) {};
	reason.wr = accepted < s->cmd.entry_num ? accepted : 0;
	return reason;
}

static noinline int refuse_post(struct ibchan_cmd_submit __user *user,
				struct ibchan_submit_scratch *s, u32 accepted, int error)
{
	struct ibchan_reason reason = take_reason(s, accepted);

	return refuse(user, &reason, accepted, error);
}

static __always_inline int submit(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				  struct ibchan_cmd_submit __user *user)
{
	u32 accepted = 0;
	int ret = post(ctx, s, NULL, s->cmd.entry_num, &accepted);

	return likely(ret >= 0) ? ret : refuse_post(user, s, accepted, ret);
}

/* What a wait is for, when the scratch is others' again. */
struct wish {
	u32 min_complete;
	u32 tail;
	const u32 *since;
	s64 timeout_ns;
};

static void make_wish(struct wish *wish, const struct ibchan_cmd_submit *cmd)
{
	wish->min_complete = cmd->min_complete;
	wish->tail = cmd->tail;
	wish->since = cmd->flags & IBCHAN_SUBMIT_SINCE ? &wish->tail : NULL;
	wish->timeout_ns = cmd->timeout_ns;
}

/* Nobody waits after a refusal. Returns @error, or that of the wait. */
static int wait(struct ibchan_user_ring *ring, const struct wish *wish, int error)
{
	if (!error)
		return ibchan_ring_wait(ring, wish->min_complete, wish->since,
					wish->timeout_ns);
	ibchan_cq_arm(ring->cq);
	return error;
}

/* The scratch goes back before the wait, which takes as long as the caller likes. */
static int post_and_wait(struct ibchan_user_ring *ring, struct ibchan_submit_scratch **s,
			 struct ibchan_cmd_submit __user *user)
{
	struct ibchan_reason reason;
	u32 accepted = 0;
	struct wish wish;
	int ret, ready;

	make_wish(&wish, &(*s)->cmd);
	ret = post(ring->ctx, *s, ring->cq, (*s)->cmd.entry_num, &accepted);
	if (ret > 0)
		return ret;
	reason = take_reason(*s, accepted);
	ibchan_submit_scratch_put(ring->ctx, *s);
	*s = NULL;
	ret = wait(ring, &wish, ret);
	ready = ibchan_ring_ready(ring);
	if (ret)
		ret = refuse(user, &reason, accepted, ret);
	return put_user(max(ready, 0), &user->out_ready) ? -EFAULT : ret;
}

static noinline int submit_and_wait(struct ibchan_context *ctx,
				    struct ibchan_submit_scratch **s,
				    struct ibchan_cmd_submit __user *user)
{
	const struct ibchan_cmd_submit *cmd = &(*s)->cmd;
	struct ibchan_user_ring *ring;
	int ret = 1;

	if (ibchan_submit_check_form(cmd))
		return 1;
	ring = ibchan_submit_ring(ctx, cmd->cq);
	if (!ring)
		return 1;
	/* If the caller's struct cannot be written, nothing has happened yet. */
	if (cmd->min_complete <= ring->entries && !put_user(0, &user->out_ready))
		ret = post_and_wait(ring, s, user);
	ibchan_cq_put(ring->cq);
	return ret;
}

/* 1: nothing was done. */
static __always_inline int run(struct ibchan_context *ctx, struct ibchan_submit_scratch **s,
			       struct ibchan_cmd_submit __user *user)
{
	struct ibchan_cmd_submit *cmd = &(*s)->cmd;

	if (unlikely(!read_command(user, cmd)))
		return 1;
	if (cmd->entry_num == 1 ? !read_first(*s, cmd->entries) :
				  !read_entries(*s, cmd->entries, cmd->entry_num))
		return 1;
	if (cmd->cq)
		return submit_and_wait(ctx, s, user);
	if (unlikely(cmd->flags | cmd->min_complete | cmd->tail || cmd->timeout_ns < -1))
		return 1;
	return submit(ctx, *s, user);
}

/**
 * ibchan_submit_quick - post a few requests of the usual kind
 * @ctx: of the file
 * @user: the command
 * @ret: as <linux/ibchan.h> says
 *
 * Context: process, may sleep; the context is not locked.
 * Return: false when it goes the way of all commands: nothing was done.
 */
bool ibchan_submit_quick(struct ibchan_context *ctx, struct ibchan_cmd_submit __user *user,
			 int *ret)
{
	struct ibchan_submit_scratch *s;

	if (unlikely(ibchan_caller_check(ctx)))
		return false;
	s = ibchan_submit_scratch_get(ctx);
	if (unlikely(!s))
		return false;
	*ret = run(ctx, &s, user);
	if (likely(s))
		ibchan_submit_scratch_put(ctx, s);
	return likely(*ret <= 0);
}
