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
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "submit.h"

/* Several threads may submit at once: the first takes the context's, others make one. */
static struct ibchan_submit_scratch *scratch_get(struct ibchan_context *ctx)
{
	struct ibchan_submit_scratch *scratch = xchg(&ctx->scratch, NULL);

	return scratch ?: kmalloc(sizeof(*scratch), GFP_KERNEL_ACCOUNT);
}

static void scratch_put(struct ibchan_context *ctx, struct ibchan_submit_scratch *scratch)
{
	kfree(xchg(&ctx->scratch, scratch));
}

void ibchan_submit_scratch_free(struct ibchan_context *ctx)
{
	kfree(ctx->scratch);
}

static u32 run_length(const struct ibchan_submit_scratch *s, u32 first, u32 num)
{
	u32 i = first + 1;

	while (i < num && s->channels[i] == s->channels[first])
		i++;
	return i - first;
}

/* How many were accepted; @error is set if not all. */
static u32 post_chunk(struct ibchan_submit_scratch *s, u32 num,
		      const struct ibchan_cq *waited, struct ibchan_reason *reason,
		      int *error)
{
	u32 done = 0, accepted, run;
	int ret;

	while (done < num) {
		run = run_length(s, done, num);
		ret = ibchan_post(s->channels[done], &s->wrs[done], run, &accepted, reason);
		if (accepted)
			ibchan_channel_arm(s->channels[done], waited);
		done += accepted;
		if (ret) {
			ibchan_submit_translate(s, done, reason);
			*error = ret;
			break;
		}
	}
	return done;
}

static u32 post_copied(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		       struct ibchan_cmd_submit *cmd, u32 num, int *error)
{
	struct ibchan_object *waited;
	u32 done;

	rcu_read_lock();
	waited = ibchan_object_find(ctx, cmd->cq, OBJECT_CQ);
	num = ibchan_submit_resolve(ctx, s, num, &cmd->reason, error);
	ibchan_fault_linger(IBCHAN_WINDOW_FOUND);
	done = post_chunk(s, num, waited ? waited->ring->cq : NULL, &cmd->reason, error);
	rcu_read_unlock();
	return done;
}

static noinline u32 pin_and_post(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
				 struct ibchan_cmd_submit *cmd, u32 num, int *error)
{
	u32 done = ibchan_submit_pin(ctx, s, num, &cmd->reason, error);

	ibchan_fault_linger(IBCHAN_WINDOW_PINNED);
	if (done)
		done = post_copied(ctx, s, cmd, done, error);
	ibchan_submit_unpin(s);
	return done;
}

/* Returns how many of the next requests were accepted; @error is of the one after them. */
static u32 submit_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			struct ibchan_cmd_submit *cmd, u32 left, int *error)
{
	struct ibchan_reason copy_reason = {};
	int copy_error = 0;
	u32 num = ibchan_submit_copy(s, cmd, left, &copy_reason, &copy_error);
	u32 done = 0;

	if (num && s->has_plain)
		done = pin_and_post(ctx, s, cmd, num, error);
	else if (num)
		done = post_copied(ctx, s, cmd, num, error);
	if (copy_error && !*error) {
		*error = copy_error;
		cmd->reason = copy_reason;
	}
	return done;
}

/* cmd->entry_num counts what was accepted. */
static int submit_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		      struct ibchan_cmd_submit *cmd, u32 wanted)
{
	int error = 0;

	while (cmd->entry_num < wanted && !error) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cmd->entry_num += submit_chunk(ctx, s, cmd, wanted - cmd->entry_num, &error);
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
static int submit_entries(struct ibchan_call *call, u32 wanted)
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
	scratch = scratch_get(call->ctx);
	if (!scratch)
		return -ENOMEM;
	ret = submit_all(call->ctx, scratch, cmd, wanted);
	scratch_put(call->ctx, scratch);
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

static int wait_on(struct ibchan_user_ring *ring, struct ibchan_cmd_submit *cmd)
{
	const u32 *since = cmd->flags & IBCHAN_SUBMIT_SINCE ? &cmd->tail : NULL;

	return ibchan_ring_wait(ring, cmd->min_complete, since, cmd->timeout_ns);
}

static int post_and_wait(struct ibchan_call *call, struct ibchan_user_ring *ring, u32 wanted)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	int ret = 0;
	int ready;

	if (ring)
		ret = check_wait(ring, cmd);
	if (!ret && wanted)
		ret = submit_entries(call, wanted);
	if (!ret && ring)
		ret = wait_on(ring, cmd);
	else if (ring)
		ibchan_cq_arm(ring->cq);	/* nobody waits after all */
	ready = ring ? ibchan_ring_ready(ring) : 0;
	cmd->out_ready = max(ready, 0);
	return ret;
}

static int check_form(const struct ibchan_cmd_submit *cmd)
{
	int since = cmd->flags & IBCHAN_SUBMIT_SINCE;

	if (cmd->flags & ~IBCHAN_SUBMIT_SINCE)
		return -EOPNOTSUPP;
	if ((cmd->tail && !since) || (!cmd->cq && (cmd->min_complete || since)))
		return -EINVAL;
	return cmd->timeout_ns < IBCHAN_TIMEOUT_NEVER ? -EINVAL : 0;
}

/**
 * ibchan_submit - the submit command
 * @call: with a struct ibchan_cmd_submit
 *
 * Context: process, may sleep; the context is not locked.
 * Return: as <linux/ibchan.h> says.
 */
int ibchan_submit(struct ibchan_call *call)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_user_ring *ring = NULL;
	u32 wanted = cmd->entry_num;
	int ret;

	cmd->entry_num = 0;
	cmd->reason = (struct ibchan_reason) {};
	ret = ibchan_call_check(call);
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
