// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit: user work requests to kernel ones, in chunks, and the wait behind.
 *
 * Copying and pinning may sleep, so they come first. Then, under RCU, handles become
 * pointers, and the requests go to ibchan_post() in runs for the same channel; the
 * post takes its own references before the RCU section ends. A chunk ends early at
 * the first entry that one of the steps refuses: what comes before it is posted all
 * the same.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "submit.h"

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

	while (done < num && !ret) {
		struct ibchan_channel *ch = s->channels[done];

		ret = ibchan_post(ch, &s->wrs[done], run_length(s, done, num), &accepted,
				  &refusal);
		done += accepted;
		/* What has completed makes room for what follows a full run. */
		if (accepted == CHUNK_RUN && done < num)
			ibchan_channel_reap(ch, waited);
	}
	if (unlikely(ret)) {
		ibchan_submit_translate(s, done, &refusal);
		*reason = refusal;
		*error = ret;
	}
	return done;
}

/*
 * Has the cqs of the posted channels raise an event for works that are still in flight. Works
 * that have completed by now, such as a receive whose message was sent by a later request of the
 * same submit, need no event.
 */
static void arm_channels(const struct ibchan_submit_scratch *s, u32 num,
			 const struct ibchan_cq *waited)
{
	u32 i;

	for (i = 0; i < num; i++)
		if (!i || s->channels[i] != s->channels[i - 1])
			ibchan_channel_arm(s->channels[i], waited);
}

/* Each step takes entries before those that the last one has refused: the first refusal stays. */
static u32 post_copied(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		       struct ibchan_cmd_submit *cmd, u32 num, const struct ibchan_cq *waited,
		       int *error)
{
	u32 done;

	rcu_read_lock();
	num = ibchan_submit_resolve(ctx, s, num, &cmd->reason, error);
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
	u32 num = ibchan_submit_copy(s, cmd, left, &cmd->reason, error);

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
	ibchan_submit_refuse(&cmd->reason, IBCHAN_REASON_PARAMETER, cmd->entry_len,
			     sizeof(struct ibchan_submit_wr));
	cmd->reason.element = IBCHAN_PARAMETER_ENTRY_LEN;
	cmd->reason.value[2] = PAGE_SIZE;
	return -EINVAL;
}

/*
 * The count is written before anything is posted: if the caller's struct cannot
 * be written, nothing has happened yet.
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
	scratch = ibchan_submit_scratch_get(call->ctx);
	if (!scratch)
		return -ENOMEM;
	ret = submit_all(call->ctx, scratch, cmd, wanted, waited);
	ibchan_submit_scratch_put(call->ctx, scratch);
	return ret;
}

/* The ring's cq and memory stay as long as its cq has a user. */
static struct ibchan_user_ring *get_ring(struct ibchan_context *ctx, u32 handle)
{
	struct ibchan_user_ring *ring = NULL;
	struct ibchan_object *object;

	rcu_read_lock();
	object = ibchan_object_find(ctx, handle, OBJECT_CQ);
	if (object && ibchan_cq_tryget(object->ring->cq))
		ring = object->ring;
	rcu_read_unlock();
	return ring;
}

static int check_wait(const struct ibchan_user_ring *ring, struct ibchan_cmd_submit *cmd)
{
	if (cmd->min_complete <= ring->entries)
		return 0;
	ibchan_submit_refuse(&cmd->reason, IBCHAN_REASON_PARAMETER, cmd->min_complete, 0);
	cmd->reason.element = IBCHAN_PARAMETER_MIN_COMPLETE;
	cmd->reason.value[2] = ring->entries;
	return -EINVAL;
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

/**
 * ibchan_run_submit - the submit command
 * @call: with a struct ibchan_cmd_submit
 *
 * Context: process, may sleep; the context is not locked.
 * Return: as <linux/ibchan.h> says.
 */
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
