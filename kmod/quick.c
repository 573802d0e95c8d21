// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, the quick way: a few requests of the kind that nearly all are of, each with
 * one element of a region. They are read field by field to where the post wants them,
 * without a copy of the caller's structs.
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

/*
 * What is not of the usual form is left to others. The answer of a success is written before
 * anything is posted, so that who cannot be answered has nothing posted. In @waits, whether
 * there is anything about a wait.
 */
static __always_inline bool read_command(struct ibchan_cmd_submit __user *user, u64 *entries,
					 u32 *num, bool *waits)
{
	u32 size, len, flags, cq, min_complete, tail;
	s64 timeout_ns;

	if (!user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(flags, &user->flags, fault);
	unsafe_get_user(cq, &user->cq, fault);
	unsafe_get_user(min_complete, &user->min_complete, fault);
	unsafe_get_user(tail, &user->tail, fault);
	unsafe_get_user(timeout_ns, &user->timeout_ns, fault);
	*waits = (flags | cq | min_complete | tail) || timeout_ns < IBCHAN_TIMEOUT_NEVER;
	unsafe_get_user(size, &user->size, fault);
	unsafe_get_user(len, &user->entry_len, fault);
	unsafe_get_user(*entries, &user->entries, fault);
	unsafe_get_user(*num, &user->entry_num, fault);
	unsafe_put_user(*num, &user->entry_num, fault);
	unsafe_put_user(IBCHAN_REASON_NONE, &user->reason.code, fault);
	user_access_end();
	return size == sizeof(*user) && len == sizeof(struct ibchan_submit_wr) &&
	       *num - 1 < CHUNK_WRS;
fault:
	user_access_end();
	return false;
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

/* Of the one that is_quick(): its flag means the opposite in the kernel. */
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
				       const struct ibchan_submit_wr __user *user)
{
	u32 form, imm;

	unsafe_get_user(handles->channel, &user->channel, fault);
	unsafe_get_user(form, (const u32 __user *)&user->opcode, fault);
	form = rol32(form, 16);
	wr->form = kernel_form(form);
	unsafe_get_user(wr->wr_id, &user->wr_id, fault);
	unsafe_get_user(wr->operand, &user->operand, fault);
	unsafe_get_user(wr->remote_addr, &user->remote_addr, fault);
	unsafe_get_user(wr->rkey, &user->rkey, fault);
	unsafe_get_user(imm, &user->imm, fault);
	unsafe_get_user(sge->offset, &user->sge.offset, fault);
	unsafe_get_user(sge->length, &user->sge.length, fault);
	unsafe_get_user(handles->mr, &user->sge.mr, fault);
	unsafe_get_user(wr->swap, &user->swap, fault);
	return is_quick(wr, form, imm);
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

/* Nearly always it names what the one before it names. */
static noinline bool resolve_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				 u32 num)
{
	const struct ibchan_submit_handles *handles = s->handles;
	u32 i;

	s->has_one_channel = true;
	s->channels[0] = resolve_entry(ctx, s, 0);
	if (unlikely(!s->channels[0]))
		return false;
	for (i = 1; i < num; i++) {
		if (likely(handles[i].channel == handles[i - 1].channel &&
			   handles[i].mr == handles[i - 1].mr)) {
			s->sges[i].mr = s->sges[i - 1].mr;
			s->channels[i] = s->channels[i - 1];
			continue;
		}
		s->channels[i] = resolve_entry(ctx, s, i);
		if (unlikely(!s->channels[i]))
			return false;
		s->has_one_channel &= s->channels[i] == s->channels[i - 1];
	}
	return true;
}

/* The one, without a look for runs. 1: it is none of ours. */
static __always_inline int post_one(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    const struct ibchan_cq *waited, u32 *accepted)
{
	struct ibchan_channel *channel = resolve_entry(ctx, s, 0);
	int ret;

	if (unlikely(!channel))
		return 1;
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	ret = ibchan_post(channel, s->wrs, 1, accepted, &s->reason);
	if (likely(!ret))
		ibchan_channel_arm(channel, waited);
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
		ret = post_one(ctx, s, waited, accepted);
	else if (resolve_all(ctx, s, num))
		*accepted = post_all(s, waited, num, &ret);
	else
		ret = 1;
	rcu_read_unlock();
	return ret;
}

/* A caller whose struct cannot be written any more loses the count: the errno says so. */
static int refuse(struct ibchan_cmd_submit __user *user, struct ibchan_reason *reason,
		  u32 accepted, int error)
{
	if (put_user(accepted, &user->entry_num) || put_user(0, &user->out_ready) ||
	    copy_to_user(&user->reason, reason, sizeof(*reason)))
		return -EFAULT;
	return error;
}

/* What the post said; the scratch is as it was then. */
static noinline int refuse_post(struct ibchan_cmd_submit __user *user,
				struct ibchan_submit_scratch *s, u32 accepted, int error)
{
	struct ibchan_reason reason = s->reason;

	s->reason = (struct ibchan_reason) {};
	reason.wr = accepted;
	return refuse(user, &reason, accepted, error);
}

static __always_inline int submit(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				  struct ibchan_cmd_submit __user *user, u32 num)
{
	u32 accepted = 0;
	int ret = post(ctx, s, NULL, num, &accepted);

	return likely(ret >= 0) ? ret : refuse_post(user, s, accepted, ret);
}

/* What is read of a command about the wait. */
struct wish {
	s64 timeout_ns;
	u32 flags;
	u32 cq;
	u32 min_complete;
	u32 tail;
};

static __always_inline bool read_wish(struct ibchan_cmd_submit __user *user, struct wish *wish)
{
	if (!user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(wish->timeout_ns, &user->timeout_ns, fault);
	unsafe_get_user(wish->flags, &user->flags, fault);
	unsafe_get_user(wish->cq, &user->cq, fault);
	unsafe_get_user(wish->min_complete, &user->min_complete, fault);
	unsafe_get_user(wish->tail, &user->tail, fault);
	unsafe_put_user(0, &user->out_ready, fault);
	user_access_end();
	return wish->cq && !ibchan_submit_check_form(wish->flags, wish->tail, wish->cq,
						     wish->min_complete, wish->timeout_ns);
fault:
	user_access_end();
	return false;
}

/* What was posted stays posted. */
static noinline int refuse_wait(struct ibchan_cmd_submit __user *user, u32 accepted, int error)
{
	struct ibchan_reason reason = {};

	return refuse(user, &reason, accepted, error);
}

/* Nearly always what was posted has completed by the time when it is waited for. */
static __always_inline int wait(struct ibchan_user_ring *ring, const struct wish *wish)
{
	const u32 *since = wish->flags & IBCHAN_SUBMIT_SINCE ? &wish->tail : NULL;

	if (since && wish->min_complete &&
	    ibchan_ring_has_come(ring, wish->min_complete, wish->tail))
		return 0;
	return ibchan_ring_wait(ring, wish->min_complete, since, wish->timeout_ns);
}

static __always_inline int tell_ready(struct ibchan_user_ring *ring,
				      struct ibchan_cmd_submit __user *user, int ret)
{
	int ready = ibchan_ring_ready(ring);

	return put_user(max(ready, 0), &user->out_ready) ? -EFAULT : ret;
}

/* Nobody waits after a refusal. */
static noinline int refuse_both(struct ibchan_user_ring *ring, struct ibchan_submit_scratch *s,
				struct ibchan_cmd_submit __user *user, u32 accepted, int ret)
{
	ibchan_cq_arm(ring->cq);
	ret = refuse_post(user, s, accepted, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	return tell_ready(ring, user, ret);
}

/*
 * The scratch goes back before the wait, which takes as long as the caller likes, unless
 * nothing was done.
 */
static __always_inline int post_and_wait(struct ibchan_user_ring *ring,
					 struct ibchan_submit_scratch *s,
					 struct ibchan_cmd_submit __user *user, u32 num,
					 const struct wish *wish)
{
	u32 accepted = 0;
	int ret = post(ring->ctx, s, ring->cq, num, &accepted);

	if (unlikely(ret))
		return ret > 0 ? ret : refuse_both(ring, s, user, accepted, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	ret = wait(ring, wish);
	if (unlikely(ret))
		ret = refuse_wait(user, accepted, ret);
	return tell_ready(ring, user, ret);
}

/* If the caller's struct cannot be written, nothing has happened yet. */
static noinline int submit_and_wait(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    struct ibchan_cmd_submit __user *user, u32 num)
{
	struct ibchan_user_ring *ring = NULL;
	struct wish wish;
	int ret = 1;

	if (read_wish(user, &wish))
		ring = ibchan_submit_ring(ctx, wish.cq);
	if (likely(ring)) {
		if (wish.min_complete <= ring->entries)
			ret = post_and_wait(ring, s, user, num, &wish);
		ibchan_cq_put(ring->cq);
	}
	if (unlikely(ret > 0))
		ibchan_submit_scratch_put(ctx, s);
	return ret;
}

/* The scratch goes back. */
static __always_inline int run(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			       struct ibchan_cmd_submit __user *user)
{
	bool waits, is_read;
	u64 entries;
	int ret = 1;
	u32 num;

	is_read = read_command(user, &entries, &num, &waits) &&
		  (num == 1 ? read_first(s, entries) : read_entries(s, entries, num));
	if (is_read && waits)
		return submit_and_wait(ctx, s, user, num);
	if (likely(is_read))
		ret = submit(ctx, s, user, num);
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
	return run(ctx, s, user);
}
