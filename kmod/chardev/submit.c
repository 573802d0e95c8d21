// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit: user work requests to kernel ones, in chunks, and the wait behind.
 *
 * Copying and pinning may sleep, so they come first, and nothing is looked up meanwhile: each word
 * is copied once, to where the post wants it, and handles are kept. Then, under RCU, handles become
 * pointers, and the requests go to ibchan_post() in runs for the same channel; the post takes its
 * own references before the RCU section ends.
 *
 * A chunk ends early at the first entry that one of the steps refuses: what comes before it is
 * posted all the same. It also ends where the room for elements or for inline data is used up; the
 * next chunk begins with that entry.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "submit.h"

/* --- copying --- */

/* The opcode, the flags and the number of elements: as in struct ibchan_wr. */
static const u32 __user *head_of(const struct ibchan_submit_wr __user *user)
{
#define SAME_PLACE(member)						\
	static_assert(offsetof(struct ibchan_submit_wr, member) -	\
		      offsetof(struct ibchan_submit_wr, opcode) ==	\
		      offsetof(struct ibchan_wr, member) - offsetof(struct ibchan_wr, head))
	SAME_PLACE(opcode);
	SAME_PLACE(flags);
	SAME_PLACE(num_sge);
#undef SAME_PLACE

	return (const u32 __user *)&user->opcode;
}

/* Most have one element, of a region, and nothing that others have. */
static __always_inline bool is_odd(const struct ibchan_wr *wr,
				   const union ibchan_submit_element *element)
{
	return wr->head & IBCHAN_ODD_HEAD || wr->num_sge != 1 ||
	       element->user.mr == IBCHAN_MR_PLAIN || wr->operand | wr->imm ||
	       (!(wr->opcode & IBCHAN_OP_WRITE) &&
		wr->remote_addr | wr->rkey | wr->remote_length);
}

/*
 * The words of one request. Of what the post reads, only these come from the caller. The pointers
 * are the kernel's: no request that is not inline looks at @data, which that of an earlier chunk
 * may have left. Within user_read_access_begin().
 */
static __always_inline int copy_words(struct ibchan_wr *wr, union ibchan_submit_element *element,
				      u32 *handle, const struct ibchan_submit_wr __user *user)
{
	u32 head;

	static_assert(IBCHAN_WR_EXCLUSIVE == IBCHAN_WR_UNCHECKED);
	unsafe_get_user(*handle, &user->channel, fault);
	unsafe_get_user(wr->wr_id, &user->wr_id, fault);
	unsafe_get_user(wr->remote_addr, &user->remote_addr, fault);
	unsafe_get_user(wr->rkey, &user->rkey, fault);
	unsafe_get_user(wr->remote_length, &user->remote_length, fault);
	unsafe_get_user(element->user.offset, &user->sge.offset, fault);
	unsafe_get_user(element->user.length, &user->sge.length, fault);
	unsafe_get_user(element->user.mr, &user->sge.mr, fault);
	unsafe_get_user(wr->operand, &user->operand, fault);
	unsafe_get_user(wr->imm, &user->imm, fault);
	unsafe_get_user(head, head_of(user), fault);
	/* Ranges exclude each other unless the caller does not want that. */
	wr->head = head ^ IBCHAN_HEAD(0, IBCHAN_WR_EXCLUSIVE);
	wr->sges = &element->sge;
	return 0;
fault:
	return -EFAULT;
}

/*
 * Copies requests up to @want as long as they are like most, and returns how many. @ret: 0; 1: the
 * next one is copied as far as this, and is odd, or longer than this kernel knows; -EFAULT.
 */
static __always_inline u32 copy_most(struct ibchan_submit_scratch *s, u32 done, u32 want,
				     u64 addr, u32 len, int *ret)
{
	const struct ibchan_submit_wr __user *user = u64_to_user_ptr(addr);
	/* Wraps: there are requests without an element. */
	u32 i, place = s->num_elements - done;

	*ret = -EFAULT;
	if (!user_read_access_begin(user, (want - done) * len))
		return done;
	/* The compiler's checks of an array's bounds would call functions here. */
	for (i = done; i < want; i++, user++) {
		union ibchan_submit_element *element = s->elements + (place + i);
		struct ibchan_wr *wr = s->wrs + i;

		*ret = copy_words(wr, element, s->handles + i, user);
		if (unlikely(*ret))
			break;
		*ret = is_odd(wr, element) || len != sizeof(*user);
		if (unlikely(*ret))
			break;
		*(s->index + (place + i)) = 0;
	}
	user_read_access_end();
	s->num_elements = place + i;
	return i;
}

/* A request that copy_most() has begun. The tail that this kernel does not know has to be zero. */
static int copy_rest(struct ibchan_submit_scratch *s, u32 num, u64 addr, u32 len,
		     struct ibchan_reason *reason)
{
	u32 known = sizeof(struct ibchan_submit_wr);
	int zero = len == known ? 1 :
		   check_zeroed_user(u64_to_user_ptr(addr + known), len - known);

	if (zero <= 0)
		return zero ?: -E2BIG;
	return ibchan_submit_copy_odd(s, &s->wrs[num], reason);
}

/*
 * Goes on behind copy_most(), which has answered @ret for request number @num. Returns how many are
 * copied. @error: as below.
 */
static noinline u32 copy_on(struct ibchan_submit_scratch *s, struct ibchan_cmd_submit *cmd, u32 num,
			    u32 want, int ret, int *error)
{
	const u32 len = cmd->entry_len;
	u64 addr;

	for (;;) {
		addr = cmd->entries + (u64)(cmd->entry_num + num) * len;
		if (ret > 0) {
			ret = copy_rest(s, num, addr, len, &cmd->reason);
			num += !ret;
			addr += len;
		} else if (want > num + 1 &&
			   !access_ok(u64_to_user_ptr(addr), (want - num) * len)) {
			/* Of requests that are not all in the caller's memory the first are. */
			want = num + 1;
			ret = 0;
		}
		if (s->has_plain)
			want = min_t(u32, want, CHUNK_PLAIN);
		if (ret || num >= want)
			break;
		num = copy_most(s, num, want, addr, len, &ret);
		if (!ret)
			break;
	}
	if (ret && ret != -ENOSPC)
		*error = ret;
	return num;
}

/*
 * Copies the next of @left requests, 1 and up, and returns how many. @error: of the first one that
 * could not be copied; else as it was.
 */
static __always_inline u32 copy_chunk(struct ibchan_submit_scratch *s,
				      struct ibchan_cmd_submit *cmd, u32 left, int *error)
{
	u32 num, want = min_t(u32, left, CHUNK_WRS), len = cmd->entry_len;
	int ret;

	s->num_elements = 0;
	s->num_data = 0;
	s->has_plain = 0;
	num = copy_most(s, 0, want, cmd->entries + (u64)cmd->entry_num * len, len, &ret);
	if (likely(!ret))
		return num;
	return copy_on(s, cmd, num, want, ret, error);
}

/* --- handles --- */

static noinline int refuse_handle(struct ibchan_reason *reason, u32 code, u32 handle, u32 element)
{
	ibchan_submit_refuse(reason, code, -ENOENT, handle, 0);
	reason->element = element;
	return -ENOENT;
}

/* The regions of the elements from @place to @end. Returns the first that is none, or @end. */
static __always_inline u32 find_regions(struct ibchan_context *ctx,
					struct ibchan_submit_scratch *s, u32 place, u32 end)
{
	for (; place < end; place++) {
		union ibchan_submit_element *element = &s->elements[place];
		struct ibchan_object *object;

		/* Those of plain memory are there. */
		if (unlikely(element->user.mr == IBCHAN_MR_PLAIN))
			continue;
		object = ibchan_object_find(ctx, element->user.mr, OBJECT_MR);
		if (unlikely(!object))
			break;
		element->mr = object->mr;
	}
	return place;
}

/*
 * Makes a chunk's requests the kernel's own, under RCU, and returns how many leading ones are.
 * @error: of the first that is not; else as it was. The elements of all lie one behind the other.
 */
static __always_inline u32 resolve(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				   u32 num, struct ibchan_reason *reason, int *error)
{
	u32 i, end, place = 0;

	for (i = 0; i < num; i++) {
		struct ibchan_object *object = ibchan_object_find(ctx, s->handles[i],
								  OBJECT_CHANNEL);

		if (unlikely(!object)) {
			*error = refuse_handle(reason, IBCHAN_REASON_CHANNEL_HANDLE,
					       s->handles[i], 0);
			break;
		}
		s->channels[i] = object->channel;
		end = place + s->wrs[i].num_sge;
		place = find_regions(ctx, s, place, end);
		if (unlikely(place < end)) {
			*error = refuse_handle(reason, IBCHAN_REASON_MR_HANDLE,
					       s->elements[place].user.mr, s->index[place]);
			break;
		}
	}
	return i;
}

/* --- posting --- */

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
		reason->element = s->index[ibchan_submit_place(s, wr) + reason->element];
}

static u32 run_length(const struct ibchan_submit_scratch *s, u32 first, u32 num)
{
	u32 end = min(num, first + CHUNK_RUN);
	u32 i = first + 1;

	while (i < end && s->channels[i] == s->channels[first])
		i++;
	return i - first;
}

/* Posts the requests of a chunk: how many leading ones were accepted. @error: of the next one. */
static u32 post_runs(struct ibchan_submit_scratch *s, u32 num, const struct ibchan_cq *waited,
		     struct ibchan_reason *reason, int *error)
{
	struct ibchan_reason refusal = {};
	u32 accepted, done = 0;
	int ret = 0;

	s->is_mixed = false;
	while (done < num && !ret) {
		struct ibchan_channel *ch = s->channels[done];

		ret = ibchan_post(ch, &s->wrs[done], run_length(s, done, num), &accepted,
				  &refusal);
		done += accepted;
		if (unlikely(ch != s->channels[0]))
			s->is_mixed = true;
		/* Works that have completed make room for those behind a full run. */
		if (accepted == CHUNK_RUN && done < num)
			ibchan_channel_reap(ch, waited);
	}
	if (unlikely(ret)) {
		translate(s, done, &refusal);
		*reason = refusal;
		*error = ret;
	}
	return done;
}

/*
 * Has the cqs of the posted channels raise an event for works that are still in flight. A work
 * that has completed by now needs no event: say, a receive of a message that a later request of the
 * same submit has sent.
 */
static void arm_channels(const struct ibchan_submit_scratch *s, u32 num,
			 const struct ibchan_cq *waited)
{
	u32 i;

	if (likely(num))
		ibchan_channel_arm(s->channels[0], waited);
	if (likely(!s->is_mixed))
		return;
	for (i = 1; i < num; i++)
		if (s->channels[i] != s->channels[i - 1])
			ibchan_channel_arm(s->channels[i], waited);
}

/* Each step takes entries before those that the last one has refused: the first refusal stays. */
static u32 post_copied(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		       struct ibchan_cmd_submit *cmd, u32 num, const struct ibchan_cq *waited,
		       int *error)
{
	u32 done;

	rcu_read_lock();
	num = resolve(ctx, s, num, &cmd->reason, error);
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	done = post_runs(s, num, waited, &cmd->reason, error);
	arm_channels(s, done, waited);
	rcu_read_unlock();
	return done;
}

/* Returns how many of the next requests were accepted; @error is of the one after them. */
static u32 submit_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			struct ibchan_cmd_submit *cmd, u32 left, const struct ibchan_cq *waited,
			int *error)
{
	u32 num = copy_chunk(s, cmd, left, error);

	if (unlikely(s->has_plain)) {
		num = ibchan_submit_pin(ctx, s, num, &cmd->reason, error);
		ibchan_fault_linger(IBCHAN_WINDOW_PINNED);
	}
	num = post_copied(ctx, s, cmd, num, waited, error);
	if (unlikely(s->has_plain))
		ibchan_submit_unpin(s);
	return num;
}

/* cmd->entry_num counts what was accepted. */
static int submit_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		      struct ibchan_cmd_submit *cmd, u32 wanted, const struct ibchan_cq *waited)
{
	int error = 0;

	while (cmd->entry_num < wanted && !error) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cmd->entry_num += submit_chunk(ctx, s, cmd, wanted - cmd->entry_num, waited,
					       &error);
		cond_resched();
	}
	cmd->reason.wr = error ? cmd->entry_num : 0;
	return error;
}

static int check_entry_len(struct ibchan_cmd_submit *cmd)
{
	if (cmd->entry_len >= sizeof(struct ibchan_submit_wr) && cmd->entry_len <= PAGE_SIZE)
		return 0;
	return ibchan_user_refuse_parameter(&cmd->reason, IBCHAN_PARAMETER_ENTRY_LEN,
					    cmd->entry_len, sizeof(struct ibchan_submit_wr),
					    PAGE_SIZE);
}

/*
 * The count is written before anything is posted: if the caller's struct cannot
 * be written, nothing has happened yet. Several threads may submit at once: the first takes the
 * context's scratch, others make one.
 */
static int submit_entries(struct ibchan_call *call, u32 wanted, const struct ibchan_cq *waited)
{
	struct ibchan_cmd_submit __user *user = call->user;
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_submit_scratch *scratch;
	int ret;

	ret = check_entry_len(cmd);
	if (ret)
		return ret;
	if (put_user(0, &user->entry_num))
		return -EFAULT;
	scratch = xchg(&call->ctx->scratch, NULL);
	if (unlikely(!scratch)) {
		scratch = kvzalloc(sizeof(*scratch), GFP_KERNEL_ACCOUNT);
		if (!scratch)
			return -ENOMEM;
	}
	ret = submit_all(call->ctx, scratch, cmd, wanted, waited);
	scratch = xchg(&call->ctx->scratch, scratch);
	if (unlikely(scratch))
		kvfree(scratch);
	return ret;
}

/* The ring's cq and memory stay as long as its cq has a user. */
static struct ibchan_user_ring *get_ring(struct ibchan_context *ctx, u32 handle)
{
	struct ibchan_object *object;

	guard(rcu)();
	object = ibchan_object_find(ctx, handle, OBJECT_CQ);
	return object && ibchan_cq_tryget(object->ring->cq) ? object->ring : NULL;
}

/* Run again by the kernel, a call with entries would post them twice. */
static int wait_for_cq(struct ibchan_user_ring *ring, struct ibchan_cmd_submit *cmd, u32 wanted)
{
	const u32 *since = cmd->flags & IBCHAN_SUBMIT_SINCE ? &cmd->tail : NULL;
	ktime_t start = wanted ? 0 : ktime_get();
	int ret;

	ret = ibchan_ring_wait(ring, cmd->min_complete, since,
			       ibchan_time_left(cmd->flags, cmd->timeout_ns));
	if (ret != -EINTR || wanted)
		return ret;
	return ibchan_wait_again(&cmd->flags, &cmd->timeout_ns, start);
}

static int check_wait(const struct ibchan_user_ring *ring, struct ibchan_cmd_submit *cmd)
{
	if (cmd->min_complete <= ring->entries)
		return 0;
	return ibchan_user_refuse_parameter(&cmd->reason, IBCHAN_PARAMETER_MIN_COMPLETE,
					    cmd->min_complete, 0, ring->entries);
}

static int post_and_wait(struct ibchan_call *call, struct ibchan_user_ring *ring, u32 wanted)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	int ret = 0;
	int ready;

	if (ring)
		ret = check_wait(ring, cmd);
	if (!ret && wanted)
		ret = submit_entries(call, wanted, ring ? ring->cq : NULL);
	if (!ret && ring)
		ret = wait_for_cq(ring, cmd, wanted);
	else if (ring)
		ibchan_cq_arm(ring->cq);	/* there is no wait after all */
	ready = ring ? ibchan_ring_ready(ring) : 0;
	cmd->out_ready = max(ready, 0);
	return ret;
}

static int check_form(const struct ibchan_cmd_submit *cmd)
{
	u32 since = cmd->flags & IBCHAN_SUBMIT_SINCE;

	if ((cmd->tail && !since) || (!cmd->cq && (cmd->min_complete || since)))
		return -EINVAL;
	return cmd->timeout_ns < IBCHAN_TIMEOUT_NEVER ? -EINVAL : 0;
}

/* Returns as <linux/ibchan.h> says. */
int ibchan_run_submit(struct ibchan_call *call)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_user_ring *ring = NULL;
	u32 wanted = cmd->entry_num;
	int ret;

	cmd->entry_num = 0;
	cmd->reason = (struct ibchan_reason) {};
	ret = ibchan_caller_check(call->ctx);
	if (!ret)
		ret = check_form(cmd);
	if (!ret && cmd->cq) {
		ring = get_ring(call->ctx, cmd->cq);
		if (!ring)
			ret = -ENOENT;
	}
	if (!ret)
		ret = post_and_wait(call, ring, wanted);
	if (ring)
		ibchan_cq_put(ring->cq);
	return ret;
}
