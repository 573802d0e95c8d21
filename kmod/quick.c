// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, the quick way: a few requests of the kind that nearly all are of, each with
 * one element of a region. They are read field by field to where the post wants them,
 * without a copy of the caller's structs: from his memory, or from the page that he and
 * we share, which he may write to at any time. So each member of a request is read once;
 * of a command what is about a wait is read again by who waits, and judged then.
 *
 * Whatever else a submit asks for goes the way of all commands, and so does what cannot
 * be read or found: the refusal is worded there. Only the post and the wait refuse here.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/uaccess.h>
#include <linux/ibchan_submit_page.h>

#include "fault.h"
#include "form.h"
#include "submit.h"

/**
 * struct place - where a command stands
 * @cmd: its address; of memory that is shared: in ours
 * @wrs: of its entries, if that is shared
 * @is_shared: it is; a constant wherever it is asked often
 */
struct place {
	struct ibchan_cmd_submit __user *cmd;
	const struct ibchan_submit_wr __user *wrs;
	bool is_shared;
};

static __always_inline struct ibchan_cmd_submit *shared_cmd(const struct place at)
{
	return (__force struct ibchan_cmd_submit *)at.cmd;
}

/* @field is a member's address. Goes to @fault, which shared memory does not. */
#define fetch(is_shared, to, field, fault)						\
do {											\
	static_assert(sizeof(to) == sizeof(*(field)));					\
	if (is_shared)									\
		(to) = READ_ONCE(*(const __force typeof(to) *)(field));			\
	else										\
		unsafe_get_user(to, field, fault);					\
} while (0)

#define store(is_shared, value, field, fault)						\
do {											\
	if (is_shared)									\
		WRITE_ONCE(*(__force u32 *)(field), value);				\
	else										\
		unsafe_put_user(value, field, fault);					\
	static_assert(sizeof(u32) == sizeof(*(field)));					\
} while (0)

static __always_inline bool access_begin(bool is_shared, const void __user *from, size_t size)
{
	return is_shared || user_access_begin(from, size);
}

static __always_inline void access_end(bool is_shared)
{
	if (!is_shared)
		user_access_end();
}

/* How many entries there may be. */
static __always_inline u32 max_entries(const struct place at)
{
	return at.is_shared ? IBCHAN_SUBMIT_PAGE_WRS : CHUNK_WRS;
}

/*
 * What is not of the usual form is left to others. The answer of a success is written before
 * anything is posted, so that who cannot be answered has nothing posted. In @waits, whether
 * there is anything about a wait.
 */
static __always_inline bool read_command(const struct place at, u64 *entries, u32 *num,
					 bool *waits)
{
	struct ibchan_cmd_submit __user *cmd = at.cmd;
	u32 size, len, flags, cq, min_complete, tail;
	s64 timeout_ns;

	if (!access_begin(at.is_shared, cmd, sizeof(*cmd)))
		return false;
	fetch(at.is_shared, flags, &cmd->flags, fault);
	fetch(at.is_shared, cq, &cmd->cq, fault);
	fetch(at.is_shared, min_complete, &cmd->min_complete, fault);
	fetch(at.is_shared, tail, &cmd->tail, fault);
	fetch(at.is_shared, timeout_ns, &cmd->timeout_ns, fault);
	*waits = (flags | cq | min_complete | tail) || timeout_ns < IBCHAN_TIMEOUT_NEVER;
	fetch(at.is_shared, size, &cmd->size, fault);
	fetch(at.is_shared, len, &cmd->entry_len, fault);
	fetch(at.is_shared, *entries, &cmd->entries, fault);
	fetch(at.is_shared, *num, &cmd->entry_num, fault);
	if (!at.is_shared)
		store(false, *num, &cmd->entry_num, fault);
	store(at.is_shared, IBCHAN_REASON_NONE, &cmd->reason.code, fault);
	access_end(at.is_shared);
	return size == sizeof(*cmd) && len == sizeof(struct ibchan_submit_wr) &&
	       *num - 1 < max_entries(at);
fault:
	access_end(at.is_shared);
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

/* What is not shared is read between user_read_access_begin() and its end. */
static __always_inline bool read_entry(struct ibchan_wr *wr, struct ibchan_sge *sge,
				       struct ibchan_submit_handles *handles,
				       const struct ibchan_submit_wr __user *from,
				       bool is_shared)
{
	u32 form, imm;

	fetch(is_shared, handles->channel, &from->channel, fault);
	fetch(is_shared, form, (const u32 __user *)&from->opcode, fault);
	form = rol32(form, 16);
	wr->form = kernel_form(form);
	fetch(is_shared, wr->wr_id, &from->wr_id, fault);
	fetch(is_shared, wr->operand, &from->operand, fault);
	fetch(is_shared, wr->remote_addr, &from->remote_addr, fault);
	fetch(is_shared, wr->rkey, &from->rkey, fault);
	fetch(is_shared, imm, &from->imm, fault);
	fetch(is_shared, sge->offset, &from->sge.offset, fault);
	fetch(is_shared, sge->length, &from->sge.length, fault);
	fetch(is_shared, handles->mr, &from->sge.mr, fault);
	fetch(is_shared, wr->swap, &from->swap, fault);
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
	ret = read_entry(s->wrs, s->sges, s->handles, from, false);
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
				     const struct ibchan_submit_wr __user *from, u32 num,
				     bool is_shared)
{
	struct ibchan_submit_handles *handles = s->handles;
	struct ibchan_sge *sge = s->sges;
	struct ibchan_wr *wr = s->wrs;
	u64 differ = 0;

	for (; num; num--, handles++) {
		if (unlikely(!read_entry(wr++, sge++, handles, from++, is_shared)))
			return false;
		differ |= handles->both ^ s->handles->both;
	}
	s->is_uniform = !differ;
	return true;
}

static noinline bool read_callers(struct ibchan_submit_scratch *s,
				  const struct ibchan_submit_wr __user *from, u32 num)
{
	bool ret;

	if (!user_read_access_begin(from, num * sizeof(*from)))
		return false;
	ret = read_all(s, from, num, false);
	user_read_access_end();
	return ret;
}

static noinline bool read_shared(struct ibchan_submit_scratch *s,
				 const struct ibchan_submit_wr __user *from, u32 num)
{
	return read_all(s, from, num, true);
}

/* A receive and a message to another, mostly: without the loop. */
static noinline bool read_shared_two(struct ibchan_submit_scratch *s,
				     const struct ibchan_submit_wr __user *from)
{
	if (unlikely(!read_entry(&s->wrs[0], &s->sges[0], &s->handles[0], &from[0], true) ||
		     !read_entry(&s->wrs[1], &s->sges[1], &s->handles[1], &from[1], true)))
		return false;
	s->is_uniform = s->handles[0].both == s->handles[1].both;
	return true;
}

/* All of them, or false. */
static __always_inline bool read_entries(struct ibchan_submit_scratch *s, const struct place at,
					 u64 entries, u32 num)
{
	const struct ibchan_submit_wr __user *from = at.wrs;

	if (at.is_shared && num == 1)
		return read_entry(s->wrs, s->sges, s->handles, from, true);
	if (at.is_shared)
		return num == 2 ? read_shared_two(s, from) : read_shared(s, from, num);
	from = u64_to_user_ptr(entries);
	return num == 1 ? read_first(s, from) : read_callers(s, from, num);
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

/* The one, without a look for runs. 1: it is none of ours. */
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

/* Of two that were posted, or of the first one. */
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

/* Those of two channels, as who takes a message and sends another has them. As post_one(). */
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

/* 1: these are none of ours, and nothing was done. */
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

/* A caller whose struct cannot be written any more loses the count: the errno says so. */
static int refuse_caller(struct ibchan_cmd_submit __user *cmd,
			 const struct ibchan_reason *reason, u32 accepted, int error)
{
	if (put_user(accepted, &cmd->entry_num) || put_user(0, &cmd->out_ready) ||
	    copy_to_user(&cmd->reason, reason, sizeof(*reason)))
		return -EFAULT;
	return error;
}

static noinline int refuse(const struct place at, const struct ibchan_reason *reason,
			   u32 accepted, int error)
{
	struct ibchan_cmd_submit *shared = shared_cmd(at);

	if (!at.is_shared)
		return refuse_caller(at.cmd, reason, accepted, error);
	WRITE_ONCE(shared->entry_num, accepted);
	WRITE_ONCE(shared->out_ready, 0);
	shared->reason = *reason;
	return error;
}

/* What the post said; the scratch is as it was then. */
static noinline int refuse_post(const struct place at, struct ibchan_submit_scratch *s,
				int error)
{
	struct ibchan_reason reason = s->reason;

	s->reason = (struct ibchan_reason) {};
	reason.wr = s->accepted;
	return refuse(at, &reason, s->accepted, error);
}

static __always_inline int submit(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				  const struct place at, u32 num)
{
	int ret = post(ctx, s, NULL, num);

	return likely(ret >= 0) ? ret : refuse_post(at, s, ret);
}

/* What is read of a command about the wait. */
struct wish {
	s64 timeout_ns;
	u32 flags;
	u32 cq;
	u32 min_complete;
	u32 tail;
};

static __always_inline bool read_wish(const struct place at, struct wish *wish)
{
	struct ibchan_cmd_submit __user *cmd = at.cmd;

	if (!access_begin(at.is_shared, cmd, sizeof(*cmd)))
		return false;
	fetch(at.is_shared, wish->timeout_ns, &cmd->timeout_ns, fault);
	fetch(at.is_shared, wish->flags, &cmd->flags, fault);
	fetch(at.is_shared, wish->cq, &cmd->cq, fault);
	fetch(at.is_shared, wish->min_complete, &cmd->min_complete, fault);
	fetch(at.is_shared, wish->tail, &cmd->tail, fault);
	store(at.is_shared, 0, &cmd->out_ready, fault);
	access_end(at.is_shared);
	return wish->cq && !ibchan_submit_check_form(wish->flags, wish->tail, wish->cq,
						     wish->min_complete, wish->timeout_ns);
fault:
	access_end(at.is_shared);
	return false;
}

/* Without a reason. What was posted stays posted. */
static noinline int refuse_wait(const struct place at, u32 accepted, int error)
{
	struct ibchan_reason reason = {};

	return refuse(at, &reason, accepted, error);
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

static __always_inline int tell_ready(struct ibchan_user_ring *ring, const struct place at,
				      int ret)
{
	int ready = ibchan_ring_ready(ring);

	if (!at.is_shared)
		return put_user(max(ready, 0), &at.cmd->out_ready) ? -EFAULT : ret;
	WRITE_ONCE(shared_cmd(at)->out_ready, max(ready, 0));
	return ret;
}

/* Nobody waits after a refusal. */
static noinline int refuse_both(struct ibchan_user_ring *ring, struct ibchan_submit_scratch *s,
				const struct place at, int ret)
{
	ibchan_cq_arm(ring->cq);
	ret = refuse_post(at, s, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	return tell_ready(ring, at, ret);
}

/*
 * The scratch goes back before the wait, which takes as long as the caller likes, unless
 * nothing was done.
 */
static __always_inline int post_and_wait(struct ibchan_user_ring *ring,
					 struct ibchan_submit_scratch *s,
					 const struct place at, u32 num,
					 const struct wish *wish)
{
	int ret = post(ring->ctx, s, ring->cq, num);

	if (unlikely(ret))
		return ret > 0 ? ret : refuse_both(ring, s, at, ret);
	ibchan_submit_scratch_put(ring->ctx, s);
	ret = wait(ring, wish);
	if (unlikely(ret))
		ret = refuse_wait(at, num, ret);
	return tell_ready(ring, at, ret);
}

/* If the caller's struct cannot be written, nothing has happened yet. */
static __always_inline int submit_and_wait(struct ibchan_context *ctx,
					   struct ibchan_submit_scratch *s,
					   const struct place at, u32 num)
{
	struct ibchan_user_ring *ring = NULL;
	struct wish wish;
	int ret = 1;

	if (read_wish(at, &wish))
		ring = ibchan_submit_ring(ctx, wish.cq);
	if (likely(ring)) {
		if (wish.min_complete <= ring->entries)
			ret = post_and_wait(ring, s, at, num, &wish);
		ibchan_cq_put(ring->cq);
	}
	if (unlikely(ret > 0))
		ibchan_submit_scratch_put(ctx, s);
	return ret;
}

static noinline int wait_for_caller(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    struct ibchan_cmd_submit __user *user, u32 num)
{
	return submit_and_wait(ctx, s, (struct place) { .cmd = user }, num);
}

static noinline int wait_for_shared(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    struct ibchan_cmd_submit __user *shared, u32 num)
{
	return submit_and_wait(ctx, s, (struct place) { .cmd = shared, .is_shared = true }, num);
}

/* The scratch goes back. */
static __always_inline int run_with(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				    const struct place at)
{
	bool waits, is_read;
	u64 entries;
	int ret = 1;
	u32 num;

	is_read = read_command(at, &entries, &num, &waits) && read_entries(s, at, entries, num);
	if (is_read && waits)
		return at.is_shared ? wait_for_shared(ctx, s, at.cmd, num) :
				      wait_for_caller(ctx, s, at.cmd, num);
	if (likely(is_read))
		ret = submit(ctx, s, at, num);
	ibchan_submit_scratch_put(ctx, s);
	return ret;
}

static __always_inline int run(struct ibchan_context *ctx, const struct place at)
{
	struct ibchan_submit_scratch *s = ibchan_submit_scratch_get(ctx);

	if (unlikely(!s))
		return 1;
	if (unlikely(!s->is_prepared))
		prepare(s);
	return run_with(ctx, s, at);
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
	if (unlikely(ibchan_caller_check(ctx)))
		return 1;
	return run(ctx, (struct place) { .cmd = user });
}

/**
 * ibchan_submit_shared - the same out of memory that is shared with the caller
 * @ctx: of the file
 * @page: the memory
 *
 * Context: process, may sleep; the context is not locked.
 * Nothing is written for another process than the one whose page it is.
 *
 * Return: as <linux/ibchan_submit_page.h> says; 1 instead of -ENOTTY.
 */
int ibchan_submit_shared(struct ibchan_context *ctx, struct ibchan_submit_page *page)
{
	const struct place at = {
		.cmd = (__force struct ibchan_cmd_submit __user *)&page->cmd,
		.wrs = (__force const struct ibchan_submit_wr __user *)page->wrs,
		.is_shared = true,
	};
	int ret = ibchan_caller_check(ctx);

	if (likely(!ret))
		return run(ctx, at);
	return ret == -EPERM ? ret : refuse_wait(at, 0, ret);
}
