// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit: user work requests to kernel ones, in chunks, and the wait behind.
 *
 * Copying and pinning may sleep, so they come first, and nothing is looked up meanwhile: each word
 * is copied once, to where the post wants it, and handles are kept. Then, under RCU, handles become
 * pointers, and the requests go to ibchan_post() in runs for the same channel; the post takes its
 * own references before the RCU section ends.
 *
 * A chunk ends before the first request that copying, pinning or a look for its regions refuses.
 * Those before it are posted. The next chunk begins with it, and there its refusal is the answer:
 * so the first one in order is told, whichever step finds it. A chunk also ends where the room for
 * elements or for inline data is used up.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "submit.h"

/* The opcode, the flags and the number of elements: as in struct ibchan_wr. */
#define SAME_PLACE(member)						\
	static_assert(offsetof(struct ibchan_submit_wr, member) -	\
		      offsetof(struct ibchan_submit_wr, opcode) ==	\
		      offsetof(struct ibchan_wr, member) - offsetof(struct ibchan_wr, head))
SAME_PLACE(opcode);
SAME_PLACE(flags);
SAME_PLACE(num_sge);
#undef SAME_PLACE

/*
 * Copies requests from number @num on, less than @want, as long as they are like most: of one
 * element, of a region, and with nothing that others have. Returns the number of the first one that
 * is not, or that cannot be copied, or @want. Of what the post reads, only these words come from
 * the caller. The others are the kernel's, or of no use to such a request: an earlier chunk may
 * have left them.
 */
static __always_inline u32 copy_most(struct ibchan_submit_scratch *s, unsigned long num,
				     unsigned long want, u64 addr)
{
	const struct ibchan_submit_wr __user *user = u64_to_user_ptr(addr);
	union ibchan_submit_element *element = &s->elements[s->num_elements];
	struct ibchan_wr *wr = &s->wrs[num];
	unsigned long first = num;
	u64 operand, imm;
	u32 head;

	if (!user_read_access_begin(user, (want - num) * sizeof(*user)))
		return num;
	/* The compiler's checks of an array's bounds would call functions here. */
	do {
		unsafe_get_user(*(s->handles + num), &user->channel, end);
		unsafe_get_user(head, (const u32 __user *)&user->opcode, end);
		unsafe_get_user(wr->wr_id, &user->wr_id, end);
		unsafe_get_user(operand, &user->operand, end);
		unsafe_get_user(wr->remote_addr, &user->remote_addr, end);
		unsafe_get_user(wr->rkey, &user->rkey, end);
		unsafe_get_user(imm, &user->imm, end);
		unsafe_get_user(element->words[0], &user->sge.offset, end);
		unsafe_get_user(element->words[1], (const u64 __user *)&user->sge.length, end);
		unsafe_get_user(wr->remote_length, &user->remote_length, end);
		wr->head = IBCHAN_SUBMIT_HEAD(head);
		wr->sges = &element->sge;
		if (wr->head & IBCHAN_ODD_HEAD || wr->num_sge != 1 || operand | imm ||
		    element->user.mr == IBCHAN_MR_PLAIN ||
		    (!(wr->opcode & IBCHAN_OP_WRITE) &&
		     wr->remote_addr | wr->rkey | wr->remote_length))
			break;
		user++;
		wr++;
		element++;
	} while (++num < want);
end:
	user_read_access_end();
	s->num_elements += num - first;
	return num;
}

/* As copy_chunk(), from the request on that copy_most() has left, number @num. */
static noinline int copy_on(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
			    u32 want, u64 addr, u32 len, struct ibchan_reason *reason)
{
	int ret;

	s->num_data = 0;
	s->has_plain = 0;
	while (num < want) {
		ret = ibchan_submit_copy_odd(s, num, addr + num * len, len, reason);
		if (ret && !num)
			return ret;
		if (ret) {
			*reason = (struct ibchan_reason) {};
			break;
		}
		num++;
		if (s->has_plain)
			want = min_t(u32, want, CHUNK_PLAIN);
		if (num < want && len == sizeof(struct ibchan_submit_wr))
			num = copy_most(s, num, want, addr + num * len);
	}
	if (!s->has_plain)
		return num;
	ret = ibchan_submit_pin(ctx, s, num, reason);
	ibchan_fault_linger(IBCHAN_WINDOW_PINNED);
	return ret;
}

/*
 * Copies the next of @left requests, 1 and up, from @addr, and pins their plain memory. Returns how
 * many; if not even the first one could be copied and pinned, its errno.
 */
static __always_inline int copy_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				      u32 left, u64 addr, u32 len, struct ibchan_reason *reason)
{
	u32 num = 0, want = min_t(u32, left, CHUNK_WRS);

	s->num_elements = 0;
	s->odd = 0;
	if (likely(len == sizeof(struct ibchan_submit_wr)))
		num = copy_most(s, 0, want, addr);
	return likely(num == want) ? num : copy_on(ctx, s, num, want, addr, len, reason);
}

static noinline int refuse_handle(struct ibchan_reason *reason, u32 code, u32 handle, u32 element)
{
	ibchan_submit_refuse(reason, code, -ENOENT, handle, 0);
	reason->element = element;
	return -ENOENT;
}

/*
 * The element at @place has no region. Returns how many of the @num requests come before the one
 * that names it; if it is the first one, the errno.
 */
static noinline int cut_chunk(struct ibchan_context *ctx, const struct ibchan_submit_scratch *s,
			      u32 num, u32 place, struct ibchan_reason *reason)
{
	u32 i, end = 0;

	for (i = 0; i < num; i++) {
		end += s->wrs[i].num_sge;
		if (end > place)
			break;
	}
	if (i)
		return i;
	if (!ibchan_object_find(ctx, s->handles[0], OBJECT_CHANNEL))
		return refuse_handle(reason, IBCHAN_REASON_CHANNEL_HANDLE, s->handles[0], 0);
	return refuse_handle(reason, IBCHAN_REASON_MR_HANDLE, s->elements[place].user.mr,
			     ibchan_submit_index(s, 0, place));
}

/*
 * Finds the regions of all elements: those of all requests lie one behind the other. Works often
 * name one region again and again. Returns the first element that has none, or NULL.
 */
static __always_inline union ibchan_submit_element *
find_regions(struct ibchan_context *ctx, struct ibchan_submit_scratch *s)
{
	union ibchan_submit_element *element = s->elements, *end = element + s->num_elements;

	while (element < end) {
		u32 handle = element->user.mr;
		struct ibchan_object *object = ibchan_object_find(ctx, handle, OBJECT_MR);
		struct ibchan_mr *mr;

		if (unlikely(!object)) {
			/* That of plain memory is there: no handle has this number. */
			if (handle != IBCHAN_MR_PLAIN)
				return element;
			element++;
			continue;
		}
		mr = object->mr;
		do
			element++->mr = mr;
		while (element < end && element->user.mr == handle);
	}
	return NULL;
}

/* A refusal of a post, in the contract's terms. @index: of the entry. */
static noinline void translate(const struct ibchan_submit_scratch *s, u32 index,
			       struct ibchan_reason *reason)
{
	const struct ibchan_wr *wr = &s->wrs[index];

	if (reason->code == IBCHAN_REASON_WR_FLAGS) {
		reason->value[0] = wr->flags ^ IBCHAN_WR_UNCHECKED;
		reason->value[1] = (reason->value[1] | IBCHAN_WR_UNCHECKED) & IBCHAN_WR_FLAGS;
	}
	if (reason->element < wr->num_sge)
		reason->element = ibchan_submit_index(s, index, reason->element);
}

/*
 * Posts the @num requests of a chunk, 1 and up: how many leading ones were accepted. @error: the
 * errno of the next one.
 */
static __always_inline u32 post_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				      int num, const struct ibchan_cq *waited,
				      struct ibchan_reason *reason, int *error)
{
	u32 handle, accepted, done = 0, num_others = 0;
	unsigned long end, limit;
	union ibchan_submit_element *stray;
	struct ibchan_channel *ch, *last = NULL;
	struct ibchan_object *object;
	int ret = 0;

	rcu_read_lock();
	stray = find_regions(ctx, s);
	if (unlikely(stray)) {
		num = cut_chunk(ctx, s, num, stray - s->elements, reason);
		ret = min(num, 0);
	}
	while (!ret) {
		handle = s->handles[done];
		object = ibchan_object_find(ctx, handle, OBJECT_CHANNEL);
		if (unlikely(!object)) {
			ret = refuse_handle(reason, IBCHAN_REASON_CHANNEL_HANDLE, handle, 0);
			break;
		}
		ch = object->channel;
		if (unlikely(last && last != ch))
			s->others[num_others++] = last;
		limit = min_t(u32, num, done + CHUNK_RUN);
		for (end = done + 1; end < limit; end++)
			if (s->handles[end] != handle)
				break;
		ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
		ret = ibchan_post(ch, &s->wrs[done], end - done, &s->accepted, reason);
		accepted = s->accepted;
		done += accepted;
		if (likely(accepted))
			last = ch;
		if (unlikely(ret))
			translate(s, done, reason);
		else if (likely(done == num))
			break;
		/* Works that have completed make room for those behind a full run. */
		else if (accepted == CHUNK_RUN)
			ibchan_channel_reap(ch, waited);
	}
	/*
	 * Works that are still in flight raise an event. One that has completed by now needs none:
	 * say, a receive of a message that a later request of the same submit has sent.
	 */
	if (likely(last))
		ibchan_channel_arm(last, waited);
	while (unlikely(num_others))
		ibchan_channel_arm(s->others[--num_others], waited);
	rcu_read_unlock();
	*error = ret;
	return done;
}

/*
 * Posts @wanted requests, 1 and up; @cmd->entry_num counts those that were accepted. Several
 * threads may submit at once: the first takes the context's scratch, others make one.
 */
static int submit_entries(struct ibchan_call *call, u32 wanted, const struct ibchan_cq *waited)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_reason *reason = &cmd->reason;
	struct ibchan_context *ctx = call->ctx;
	struct ibchan_submit_scratch *s;
	u32 left = wanted, len = cmd->entry_len;
	u64 addr = cmd->entries;
	int ret;

	if (len < sizeof(struct ibchan_submit_wr) || len > PAGE_SIZE)
		return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_ENTRY_LEN, len,
					       sizeof(struct ibchan_submit_wr), PAGE_SIZE);
	s = xchg(&ctx->scratch, NULL) ?: kvzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	if (unlikely(!s))
		return -ENOMEM;
	do {
		ret = copy_chunk(ctx, s, left, addr, len, reason);
		if (likely(ret > 0))
			left -= post_chunk(ctx, s, ret, waited, reason, &ret);
		if (unlikely(s->num_pinned))
			ibchan_submit_unpin(s);
		if (unlikely(ret) || likely(!left))
			break;
		addr = cmd->entries + (u64)(wanted - left) * len;
		cond_resched();
		ret = fatal_signal_pending(current) ? -EINTR : 0;
	} while (!ret);
	cmd->entry_num = wanted - left;
	if (unlikely(ret))
		reason->wr = wanted - left;
	s = xchg(&ctx->scratch, s);
	if (unlikely(s))
		kvfree(s);
	return ret;
}

/* Posts for a submit that names a cq, and waits. */
static noinline int submit_and_wait(struct ibchan_call *call, u32 wanted)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_user_ring *ring = NULL;
	struct ibchan_object *object;
	int ret = 0;

	/* The ring's cq and its memory stay as long as its cq has a user. */
	scoped_guard(rcu) {
		object = ibchan_object_find(call->ctx, cmd->cq, OBJECT_CQ);
		if (object && ibchan_cq_tryget(object->ring->cq))
			ring = object->ring;
	}
	if (unlikely(!ring))
		return -ENOENT;
	call->ring = ring;
	if (unlikely(cmd->min_complete > ring->entries))
		ret = ibchan_refuse_parameter(&cmd->reason, IBCHAN_PARAMETER_MIN_COMPLETE,
					      cmd->min_complete, 0, ring->entries);
	else if (likely(wanted))
		ret = submit_entries(call, wanted, ring->cq);
	if (likely(!ret))
		ret = ibchan_ring_wait(call, wanted);
	else
		ibchan_cq_arm(ring->cq);	/* there is no wait after all */
	cmd->out_ready = max(ibchan_ring_ready(ring), 0);
	ibchan_cq_put(ring->cq);
	return ret;
}

/* Returns as <linux/ibchan.h> says. */
int ibchan_run_submit(struct ibchan_call *call)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	const u32 wanted = cmd->entry_num, since = cmd->flags & IBCHAN_SUBMIT_SINCE;
	int ret = ibchan_caller_check(call->ctx);

	cmd->entry_num = 0;
	cmd->reason = (struct ibchan_reason) {};
	if (ret)
		return ret;
	if ((cmd->tail && !since) || (!cmd->cq && (cmd->min_complete || since)) ||
	    cmd->timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	if (cmd->cq)
		return submit_and_wait(call, wanted);
	cmd->out_ready = 0;
	return wanted ? submit_entries(call, wanted, NULL) : 0;
}
