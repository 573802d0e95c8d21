// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From work requests to SUBMIT.
 *
 * The kernel judges a request. Here only what it cannot see is refused: an
 * object of another context (handles mean something within their own), numbers
 * that do not fit its types, and a remote region that is too short.
 */
#include <errno.h>
#include <string.h>

#include "post.h"

static int refuse(struct ibchan_reason *reason, __u32 code, int err,
		  const __u64 value[3])
{
	reason->code = code;
	reason->element = 0;
	reason->reserved = 0;
	memcpy(reason->value, value, sizeof(reason->value));
	return err;
}

static int is_atomic(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_COMPARE_SWAP ||
	       wr->opcode == IBCHAN_OP_FETCH_ADD;
}

static int is_one_sided(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_WRITE ||
	       wr->opcode == IBCHAN_OP_READ || is_atomic(wr);
}

/* The kernel looks for an atomic's operand where others have their list. */
static int has_surplus(const struct ibchan_wr *wr)
{
	return (wr->reserved[0] | wr->reserved[1] | wr->remote.reserved) ||
	       (wr->operand && !is_atomic(wr));
}

static __u32 wr_max_sge(const struct ibchan_wr *wr)
{
	if (is_atomic(wr))
		return 1;
	return wr->opcode == IBCHAN_OP_RECV ? wr->channel->params.max_recv_sge :
					      wr->channel->params.max_send_sge;
}

/* Most have one element, and nothing that others have. */
static inline bool is_odd(const struct ibchan_context *context, const struct ibchan_wr *wr)
{
	return !wr->channel || wr->channel->object.context != context ||
	       wr->opcode > IBCHAN_OP_READ || wr->flags > UINT8_MAX || wr->num_sge != 1 ||
	       !wr->sges || has_surplus(wr);
}

static noinline int check_odd(const struct ibchan_context *context,
			      const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	if (!wr->channel || wr->channel->object.context != context)
		return refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, -ENOENT,
			      (__u64[3]) { 0 });
	if (wr->opcode > UINT8_MAX)
		return refuse(reason, IBCHAN_REASON_OPCODE, -EINVAL,
			      (__u64[3]) { wr->opcode });
	if (wr->flags > UINT8_MAX)
		return refuse(reason, IBCHAN_REASON_WR_FLAGS, -EOPNOTSUPP,
			      (__u64[3]) { wr->flags, IBCHAN_WR_FLAGS });
	if (has_surplus(wr))
		return refuse(reason, IBCHAN_REASON_RESERVED, -EINVAL,
			      (__u64[3]) { 0 });
	if (wr->num_sge > IBCHAN_MAX_SGE || (wr->num_sge > 1 && is_atomic(wr)))
		return refuse(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, -EINVAL,
			      (__u64[3]) { wr->num_sge, wr_max_sge(wr) });
	if (wr->num_sge && !wr->sges)
		return refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, -EFAULT,
			      (__u64[3]) { 0 });
	return 0;
}

static int put_plain(const struct ibchan_sge *sge,
		     struct ibchan_submit_sge *out, struct ibchan_reason *reason)
{
	if (sge->length > UINT32_MAX)
		return refuse(reason, IBCHAN_REASON_MESSAGE_TOO_LONG, -EINVAL,
			      (__u64[3]) { sge->length, UINT32_MAX });
	*out = (struct ibchan_submit_sge) {
		.offset = (uintptr_t)sge->addr,
		.length = (__u32)sge->length,
		.mr = IBCHAN_MR_PLAIN,
	};
	return 0;
}

/*
 * The kernel copies inline data from wherever they are. A region that the caller
 * has not mapped has no address to copy from.
 */
static int put_inline(const struct ibchan_sge *sge, __u64 offset,
		      struct ibchan_submit_sge *out, struct ibchan_reason *reason)
{
	const __u64 size = sge->mr->length;

	if (!sge->mr->addr)
		return refuse(reason, IBCHAN_REASON_INLINE_ELEMENT, -EINVAL,
			      (__u64[3]) { sge->mr->object.handle });
	if (offset > size || sge->length > size - offset)
		return refuse(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
			      (__u64[3]) { offset, sge->length, size });
	return put_plain(sge, out, reason);
}

/* The kernel is not asked: it has no room for such a length. */
static int refuse_long(const struct ibchan_sge *sge, __u64 offset,
		       struct ibchan_reason *reason)
{
	const __u64 size = sge->mr->length;

	if (offset > size || sge->length > size - offset)
		return refuse(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
			      (__u64[3]) { offset, sge->length, size });
	return refuse(reason, IBCHAN_REASON_MESSAGE_TOO_LONG, -EINVAL,
		      (__u64[3]) { sge->length, UINT32_MAX });
}

/* All that is no range of a region, or is too long. */
static noinline int put_odd_sge(const struct ibchan_wr *wr, const struct ibchan_sge *sge,
				struct ibchan_submit_sge *out, struct ibchan_reason *reason)
{
	const struct ibchan_mr *mr = sge->mr;
	__u64 offset;

	if (!mr)
		return refuse(reason, IBCHAN_REASON_MR_HANDLE, -ENOENT,
			      (__u64[3]) { 0 });
	if (mr == IBCHAN_PLAIN)
		return put_plain(sge, out, reason);
	if (mr->object.context != wr->channel->object.context)
		return refuse(reason, IBCHAN_REASON_OTHER_PD, -EXDEV,
			      (__u64[3]) { 0 });
	offset = (__u64)(uintptr_t)sge->addr - (__u64)(uintptr_t)mr->addr;
	if (wr->flags & IBCHAN_WR_INLINE)
		return put_inline(sge, offset, out, reason);
	return refuse_long(sge, offset, reason);
}

/*
 * An address below its region gives an offset near 2^64, which the kernel finds
 * out of bounds as it does one beyond the end.
 */
static inline int put_sge(const struct ibchan_wr *wr, const struct ibchan_sge *sge,
			  struct ibchan_submit_sge *out, struct ibchan_reason *reason)
{
	const struct ibchan_mr *mr = sge->mr;

	if (unlikely(!mr || mr == IBCHAN_PLAIN ||
		     mr->object.context != wr->channel->object.context ||
		     wr->flags & IBCHAN_WR_INLINE || sge->length > UINT32_MAX))
		return put_odd_sge(wr, sge, out, reason);
	out->offset = (__u64)(uintptr_t)sge->addr - (__u64)(uintptr_t)mr->addr;
	out->length = (__u32)sge->length;
	out->mr = mr->object.handle;
	return 0;
}

/* None, or a list. */
static noinline int put_list(struct chunk *chunk, const struct ibchan_wr *wr,
			     struct ibchan_submit_wr *out, __u64 *total,
			     struct ibchan_reason *reason)
{
	struct ibchan_submit_sge *list = &chunk->sges[chunk->num_sges];
	__u32 i;
	int err;

	for (i = 0; i < wr->num_sge; i++) {
		err = put_sge(wr, &wr->sges[i], &list[i], reason);
		if (err) {
			reason->element = i;
			return err;
		}
		*total += wr->sges[i].length;
	}
	if (wr->num_sge)
		out->sges = (uintptr_t)list;
	chunk->num_sges += wr->num_sge;
	return 0;
}

static inline int put_sges(struct chunk *chunk, const struct ibchan_wr *wr,
			   struct ibchan_submit_wr *out, struct ibchan_reason *reason)
{
	__u64 total = 0;
	int err;

	if (likely(wr->num_sge == 1)) {
		err = put_sge(wr, wr->sges, &out->sge, reason);
		total = wr->sges->length;
	} else {
		err = put_list(chunk, wr, out, &total, reason);
	}
	if (unlikely(err))
		return err;
	if (unlikely(total > wr->remote.length) && is_one_sided(wr))
		return refuse(reason, IBCHAN_REASON_REMOTE_BOUNDS, -EINVAL,
			      (__u64[3]) { total, wr->remote.length });
	return 0;
}

static inline void put_wr(const struct ibchan_wr *wr, struct ibchan_submit_wr *out)
{
	*out = (struct ibchan_submit_wr) {
		.channel = wr->channel->object.handle,
		.opcode = (__u8)wr->opcode,
		.flags = (__u8)wr->flags,
		.num_sge = (__u16)wr->num_sge,
		.remote_addr = wr->remote.addr,
		.rkey = wr->remote.rkey,
		.imm = wr->imm,
		.swap = wr->swap,
		.wr_id = wr->wr_id,
	};
	if (is_atomic(wr))
		out->operand = wr->operand;
}

/* Not all slots: what the kernel is going to refuse must not keep others from posting. */
static inline __u32 chunk_limit(const struct ibchan_cq *cq)
{
	__u32 half = cq->ring.entries / 2;

	if (half > CHUNK_WRS)
		return CHUNK_WRS;
	return half < CHUNK_LEAST ? CHUNK_LEAST : half;
}

static inline bool chunk_is_full(const struct chunk *chunk, const struct ibchan_wr *wr)
{
	return (chunk->num >= CHUNK_LEAST && chunk->num >= chunk_limit(wr_cq(wr))) ||
	       wr->num_sge > CHUNK_SGES - chunk->num_sges;
}

/* Returns 0; CHUNK_FULL; or why this request can never be posted. */
static inline int chunk_put(struct chunk *chunk, const struct ibchan_wr *wr,
			    struct ibchan_reason *reason)
{
	struct ibchan_submit_wr *out = &chunk->wrs[chunk->num];
	int err = 0;

	if (unlikely(is_odd(chunk->context, wr)))
		err = check_odd(chunk->context, wr, reason);
	if (unlikely(err))
		return err;
	if (unlikely(chunk_is_full(chunk, wr)))
		return CHUNK_FULL;
	put_wr(wr, out);
	if (chunk->slot_state == SLOT_KEPT)
		out->flags &= (__u8)~IBCHAN_WR_UNSIGNALED;
	err = put_sges(chunk, wr, out, reason);
	if (unlikely(err))
		return err;
	chunk->channels[chunk->num++] = wr->channel;
	return 0;
}

/* Where an entry completes. */
static inline struct ibchan_cq *entry_cq(const struct chunk *chunk, __u32 i)
{
	const struct ibchan_channel *channel = chunk->channels[i];

	return chunk->wrs[i].opcode == IBCHAN_OP_RECV ? channel->recv_cq : channel->send_cq;
}

/* Most chunks stay on one cq: change locks only when the cq changes. */
static inline void lock_switch(struct ibchan_cq **held, struct ibchan_cq *cq)
{
	if (*held == cq)
		return;
	if (*held)
		lock_give(&(*held)->lock);
	if (cq)
		lock_take(&cq->lock);
	*held = cq;
}

/*
 * Gives each request its slot. Where a cq has none left, that request and the ones after it
 * leave the chunk, with -EAGAIN.
 */
static inline int chunk_take_slots(struct chunk *chunk, struct ibchan_reason *reason)
{
	struct ibchan_cq *held = NULL;
	__u32 i;

	for (i = 0; i < chunk->num; i++) {
		struct ibchan_submit_wr *out = &chunk->wrs[i];
		struct ibchan_cq *cq = entry_cq(chunk, i);
		struct slot *slot;
		__u32 index;

		lock_switch(&held, cq);
		index = slot_take(cq, chunk->slot_state);
		/* A program that posts unsignaled works only has no reason to poll. */
		if (unlikely(index == SLOT_NONE) && ring_skip_silent(cq))
			index = slot_take(cq, chunk->slot_state);
		if (unlikely(index == SLOT_NONE))
			break;
		slot = &cq->slots[index];
		slot->wr_id = out->wr_id;
		slot->channel = chunk->channels[i];
		chunk->generation = slot->generation;
		out->wr_id = slot_wr_id(cq, index);
	}
	lock_switch(&held, NULL);
	if (likely(i == chunk->num))
		return 0;
	chunk->num = i;
	reason->wr = i;
	reason->element = 0;
	return refuse(reason, IBCHAN_REASON_RING_FULL, -EAGAIN, (__u64[3]) { 0 });
}

/*
 * Puts leading requests into the chunk, each with its slot. The caller's memory is read without
 * a lock. Returns 0; CHUNK_FULL; or why the next one is refused.
 */
static inline int chunk_fill(struct chunk *chunk, const struct ibchan_wr *wrs, __u32 n,
			     struct ibchan_reason *reason)
{
	int refused = 0, err;

	while (chunk->num < n && !refused)
		refused = chunk->num < CHUNK_WRS ? chunk_put(chunk, &wrs[chunk->num], reason) :
						   CHUNK_FULL;
	if (unlikely(refused))
		reason->wr = chunk->num;
	err = chunk_take_slots(chunk, reason);
	return unlikely(err) ? err : refused;
}

/* What the kernel did not accept will not complete. */
static noinline void chunk_free_slots(struct chunk *chunk, __u32 first)
{
	struct ibchan_cq *held = NULL;
	__u32 i;

	for (i = first; i < chunk->num; i++) {
		lock_switch(&held, entry_cq(chunk, i));
		slot_free(held, (__u32)chunk->wrs[i].wr_id);
	}
	lock_switch(&held, NULL);
}

/* A busy range belongs to a work that its poster knows by another number. */
static noinline void translate_reason(struct ibchan_context *context,
				      struct ibchan_reason *reason)
{
	if (reason->code == IBCHAN_REASON_BUSY)
		reason->value[2] = callers_wr_id(context, reason->value[2]);
}

/*
 * Posts the chunk. The caller may have asked for a wait in @cmd; an error of
 * the wait leaves @cmd->entry_num at the full number.
 */
static inline int chunk_submit(struct chunk *chunk, struct ibchan_cmd_submit *cmd)
{
	int err;

	cmd->entries = (uintptr_t)chunk->wrs;
	cmd->entry_num = chunk->num;
	err = context_submit(chunk->context, cmd);
	if (unlikely(err))
		translate_reason(chunk->context, &cmd->reason);
	if (unlikely(cmd->entry_num < chunk->num))
		chunk_free_slots(chunk, cmd->entry_num);
	return err;
}

static void chunk_init(struct chunk *chunk, struct ibchan_context *context,
		       __u32 slot_state)
{
	chunk->context = context;
	chunk->slot_state = slot_state;
	chunk->num = 0;
	chunk->num_sges = 0;
}

/* Posts as many as fit one chunk. */
static inline int post_some(struct ibchan_context *context, const struct ibchan_wr *wrs,
			    __u32 n, __u32 *accepted, struct ibchan_reason *reason)
{
	struct ibchan_cmd_submit cmd;
	struct chunk chunk;
	int refused, err;

	*accepted = 0;
	chunk_init(&chunk, context, SLOT_POSTED);
	refused = chunk_fill(&chunk, wrs, n, reason);
	if (unlikely(!chunk.num))
		return refused;
	await_nothing(&cmd);
	err = chunk_submit(&chunk, &cmd);
	*accepted = cmd.entry_num;
	if (unlikely(err)) {
		*reason = cmd.reason;
		return err;
	}
	return refused == CHUNK_FULL ? 0 : refused;
}

int ibchan_post(struct ibchan_context *context, const struct ibchan_wr *wrs,
		__u32 n, __u32 *accepted, struct ibchan_error *error)
{
	struct ibchan_reason reason;	/* there is one behind an error */
	__u32 some, posted = 0;
	int err = context_check(context);

	if (unlikely(err))
		reason = (struct ibchan_reason) { 0 };
	while (!err && posted < n) {
		err = post_some(context, wrs + posted, n - posted, &some, &reason);
		if (unlikely(err))
			reason.wr += posted;
		posted += some;
	}
	if (accepted)
		*accepted = posted;
	return unlikely(err || error) ? error_set(error, err, &reason) : 0;
}

/*
 * Posts one request and keeps its result until the caller asks for it: its completion is
 * therefore always signaled. If @cmd asks for a wait as well, the error of that is returned. If
 * the request is refused, @ticket->cq is NULL.
 */
int post_kept(const struct ibchan_wr *wr, struct ibchan_cmd_submit *cmd,
	      struct ticket *ticket, struct ibchan_reason *reason)
{
	struct chunk chunk;
	int err;

	ticket->cq = NULL;
	chunk_init(&chunk, wr->channel->object.context, SLOT_KEPT);
	err = chunk_fill(&chunk, wr, 1, reason);
	if (unlikely(err))
		return err;
	err = chunk_submit(&chunk, cmd);
	if (unlikely(!cmd->entry_num)) {
		*reason = cmd->reason;
		return err;
	}
	*ticket = (struct ticket) {
		.cq = entry_cq(&chunk, 0),
		.index = (__u32)chunk.wrs[0].wr_id,
		.generation = chunk.generation,
	};
	return err;
}
