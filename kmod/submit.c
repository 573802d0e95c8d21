// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit: user work requests to kernel ones, in chunks, and the wait behind.
 *
 * Copying from user space may sleep, so a chunk is copied first, each field
 * once. Then, under RCU, handles become pointers, and the requests go to
 * ibchan_post() in runs for the same channel; the post takes its own references
 * before the RCU section ends. A chunk ends early at the first entry that cannot
 * be copied or resolved: what comes before it is posted all the same.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "context.h"

#define CHUNK_WRS	16	/* as many as go into one chain */
#define CHUNK_SGES	64	/* of entries with two or more; at least one entry's */

/**
 * struct ibchan_submit_scratch - one chunk, as copied and as resolved
 * @entries: the user's requests
 * @user_sges: elements of those that have two or more
 * @first_sge: per entry, where in @user_sges its elements begin
 * @num_sges: used of @user_sges
 * @wrs: resolved
 * @channels: resolved, per entry
 * @sges: resolved; one for each entry that has just one, too
 */
struct ibchan_submit_scratch {
	struct ibchan_submit_wr entries[CHUNK_WRS];
	struct ibchan_submit_sge user_sges[CHUNK_SGES];
	u32 first_sge[CHUNK_WRS];
	u32 num_sges;
	struct ibchan_wr wrs[CHUNK_WRS];
	struct ibchan_channel *channels[CHUNK_WRS];
	struct ibchan_sge sges[CHUNK_SGES + CHUNK_WRS];
};

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

static void set_reason(struct ibchan_reason *reason, u32 code, u64 value)
{
	*reason = (struct ibchan_reason){ .code = code, .value = { value } };
}

static int copy_entry(struct ibchan_submit_wr *entry, u64 addr, u32 len)
{
	return copy_struct_from_user(entry, sizeof(*entry), u64_to_user_ptr(addr), len);
}

/* Elements may not fit what is left of the chunk: -ENOSPC, and the next one begins. */
static int copy_sges(struct ibchan_submit_scratch *s, u32 index,
		     struct ibchan_reason *reason)
{
	struct ibchan_submit_wr *entry = &s->entries[index];
	size_t size = entry->num_sge * sizeof(s->user_sges[0]);

	s->first_sge[index] = s->num_sges;
	if (entry->num_sge < 2)
		return 0;
	if (entry->num_sge > IBCHAN_MAX_SGE) {
		set_reason(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, entry->num_sge);
		reason->value[1] = IBCHAN_MAX_SGE;
		return -EINVAL;
	}
	if (entry->num_sge > CHUNK_SGES - s->num_sges)
		return -ENOSPC;
	if (copy_from_user(&s->user_sges[s->num_sges], u64_to_user_ptr(entry->sges), size)) {
		set_reason(reason, IBCHAN_REASON_ELEMENT_POINTER, entry->sges);
		return -EFAULT;
	}
	s->num_sges += entry->num_sge;
	return 0;
}

static u64 entry_addr(const struct ibchan_cmd_submit *cmd, u32 index)
{
	return cmd->entries + (u64)index * cmd->entry_len;
}

/* How many entries from @first on are copied; @error and @reason are of the next. */
static u32 copy_chunk(struct ibchan_submit_scratch *s, struct ibchan_cmd_submit *cmd,
		      u32 first, u32 left, int *error)
{
	u32 want = min_t(u32, left, CHUNK_WRS);
	u32 num;

	*error = 0;
	s->num_sges = 0;
	for (num = 0; num < want && !*error; num++) {
		*error = copy_entry(&s->entries[num], entry_addr(cmd, first + num),
				    cmd->entry_len);
		if (!*error)
			*error = copy_sges(s, num, &cmd->reason);
		if (*error)
			break;
	}
	if (*error == -ENOSPC)
		*error = 0;
	return num;
}

static int resolve_sge(struct ibchan_context *ctx, const struct ibchan_submit_sge *user,
		       struct ibchan_sge *sge, struct ibchan_reason *reason)
{
	struct ibchan_object *object = ibchan_object_find(ctx, user->mr, OBJECT_MR);

	if (!object) {
		set_reason(reason, IBCHAN_REASON_MR_HANDLE, user->mr);
		return -ENOENT;
	}
	*sge = (struct ibchan_sge){
		.mr = object->mr,
		.offset = user->offset,
		.length = user->length,
	};
	return 0;
}

/* Ranges exclude each other unless the caller does not want that. */
static u8 kernel_flags(u8 flags)
{
	return flags & IBCHAN_WR_UNCHECKED ? flags & ~IBCHAN_WR_UNCHECKED :
					     flags | IBCHAN_WR_EXCLUSIVE;
}

/* The flags that the kernel's own interface names in a refusal, in the contract's terms. */
static void translate_flags(struct ibchan_reason *reason, u8 flags)
{
	if (reason->code != IBCHAN_REASON_WR_FLAGS)
		return;
	reason->value[0] = flags;
	reason->value[1] = (reason->value[1] | IBCHAN_WR_UNCHECKED) & IBCHAN_WR_FLAGS;
}

static bool sge_is_zero(const struct ibchan_submit_sge *sge)
{
	return !sge->offset && !sge->length && !sge->mr;
}

/* The contract has fewer opcodes and flags than the kernel's own interface. */
static int check_known(const struct ibchan_submit_wr *entry, struct ibchan_reason *reason)
{
	if (entry->opcode > IBCHAN_OP_READ) {
		set_reason(reason, IBCHAN_REASON_OPCODE, entry->opcode);
		return -EINVAL;
	}
	if (entry->flags & ~IBCHAN_WR_FLAGS) {
		set_reason(reason, IBCHAN_REASON_WR_FLAGS, entry->flags);
		reason->value[1] = IBCHAN_WR_FLAGS;
		return -EOPNOTSUPP;
	}
	return 0;
}

static bool is_one_sided(const struct ibchan_submit_wr *entry)
{
	return entry->opcode == IBCHAN_OP_WRITE || entry->opcode == IBCHAN_OP_READ;
}

/* What neither the opcode nor the flags nor the number of elements asks for is 0. */
static bool has_surplus(const struct ibchan_submit_wr *entry)
{
	return entry->reserved ||
	       (entry->imm && !(entry->flags & IBCHAN_WR_IMM)) ||
	       ((entry->remote_addr || entry->rkey) && !is_one_sided(entry)) ||
	       (entry->sges && entry->num_sge < 2) ||
	       (entry->num_sge != 1 && !sge_is_zero(&entry->sge));
}

static int check_reserved(const struct ibchan_submit_wr *entry,
			  struct ibchan_reason *reason)
{
	if (!has_surplus(entry))
		return 0;
	set_reason(reason, IBCHAN_REASON_RESERVED, 0);
	return -EINVAL;
}

static int resolve_sges(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			u32 index, struct ibchan_sge *sges, struct ibchan_reason *reason)
{
	const struct ibchan_submit_wr *entry = &s->entries[index];
	const struct ibchan_submit_sge *user = entry->num_sge == 1 ? &entry->sge :
					       &s->user_sges[s->first_sge[index]];
	int ret;
	u32 i;

	for (i = 0; i < entry->num_sge; i++) {
		ret = resolve_sge(ctx, &user[i], &sges[i], reason);
		if (ret) {
			reason->element = i;
			return ret;
		}
	}
	return 0;
}

static int resolve_entry(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			 u32 index, struct ibchan_sge *sges, struct ibchan_reason *reason)
{
	const struct ibchan_submit_wr *entry = &s->entries[index];
	struct ibchan_object *object;
	int ret;

	ret = check_known(entry, reason);
	if (!ret)
		ret = check_reserved(entry, reason);
	if (ret)
		return ret;
	object = ibchan_object_find(ctx, entry->channel, OBJECT_CHANNEL);
	if (!object) {
		set_reason(reason, IBCHAN_REASON_CHANNEL_HANDLE, entry->channel);
		return -ENOENT;
	}
	s->channels[index] = object->channel;
	s->wrs[index] = (struct ibchan_wr){
		.wr_id = entry->wr_id,
		.sges = sges,
		.remote_addr = entry->remote_addr,
		.remote_length = IBCHAN_REMOTE_UNCHECKED,
		.rkey = entry->rkey,
		.imm = entry->imm,
		.num_sge = entry->num_sge,
		.opcode = entry->opcode,
		.flags = kernel_flags(entry->flags),
	};
	return resolve_sges(ctx, s, index, sges, reason);
}

static u32 resolve_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			 u32 num, struct ibchan_reason *reason, int *error)
{
	struct ibchan_sge *sges = s->sges;
	u32 i;

	for (i = 0; i < num; i++) {
		*error = resolve_entry(ctx, s, i, sges, reason);
		if (*error)
			break;
		sges += s->entries[i].num_sge;
	}
	return i;
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
			translate_flags(reason, s->entries[done].flags);
			*error = ret;
			break;
		}
	}
	return done;
}

static u32 submit_chunk(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			struct ibchan_cmd_submit *cmd, u32 num, int *error)
{
	struct ibchan_object *waited;
	u32 done;

	rcu_read_lock();
	waited = ibchan_object_find(ctx, cmd->cq, OBJECT_CQ);
	num = resolve_chunk(ctx, s, num, &cmd->reason, error);
	done = post_chunk(s, num, waited ? waited->ring->cq : NULL, &cmd->reason, error);
	rcu_read_unlock();
	return done;
}

/* cmd->entry_num counts what was accepted. */
static int submit_all(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
		      struct ibchan_cmd_submit *cmd, u32 wanted)
{
	int copy_error = 0, error = 0;
	u32 total = 0;
	u32 num;

	while (total < wanted && !error) {
		if (fatal_signal_pending(current))
			return -EINTR;
		num = copy_chunk(s, cmd, total, wanted - total, &copy_error);
		if (num)
			total += submit_chunk(ctx, s, cmd, num, &error);
		error = error ?: copy_error;
		cmd->entry_num = total;
		cond_resched();
	}
	cmd->reason.wr = error ? total : 0;
	return error;
}

static int check_entry_len(struct ibchan_cmd_submit *cmd)
{
	if (cmd->entry_len >= sizeof(struct ibchan_submit_wr) && cmd->entry_len <= PAGE_SIZE)
		return 0;
	set_reason(&cmd->reason, IBCHAN_REASON_PARAMETER, cmd->entry_len);
	cmd->reason.element = IBCHAN_PARAMETER_ENTRY_LEN;
	cmd->reason.value[1] = sizeof(struct ibchan_submit_wr);
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
	set_reason(&cmd->reason, IBCHAN_REASON_PARAMETER, cmd->min_complete);
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
