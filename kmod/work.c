// SPDX-License-Identifier: GPL-2.0-only
/*
 * Works: prepare, post, retire.
 *
 * Down: under the post lock each request is checked and everything it needs is
 * reserved (region references, ranges, room in the sink, a place), in that order,
 * so that a refusal undoes only what this request took. Requests for the same
 * queue are built into one chain and posted at once. What the device did not
 * take is undone from the end.
 *
 * Up: who reaps the cq retires works in order. The place belongs to the poster
 * again once its credit is returned, and the work to its owner once done() is
 * called, so everything is copied out of both before.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "check.h"
#include "compat.h"
#include "counters.h"
#include "internal.h"
#include "post.h"
#include "trace.h"

static void work_done(struct ib_cq *ib, struct ib_wc *wc);

static int alloc_slots(struct ibchan_queue *queue, u32 places)
{
	u32 i;

	if (!queue->cq->sink->done)
		return 0;
	queue->slots = kvcalloc(places, sizeof(*queue->slots), GFP_KERNEL_ACCOUNT);
	queue->sges = kvcalloc(places, queue->max_sge * sizeof(*queue->sges),
			       GFP_KERNEL_ACCOUNT);
	if (!queue->slots || !queue->sges)
		return -ENOMEM;
	for (i = 0; i < places; i++)
		queue->slots[i].sges = &queue->sges[(size_t)i * queue->max_sge];
	return 0;
}

/* Room for what is in flight, and for the works of those who bring none. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth)
{
	u32 places;

	queue->channel = ch;
	queue->cq = cq;
	ibchan_credit_init(&queue->credit, depth);
	places = queue->credit.mask + 1;
	queue->works = kvcalloc(places, sizeof(*queue->works), GFP_KERNEL_ACCOUNT);
	if (queue->works && !alloc_slots(queue, places))
		return 0;
	ibchan_queue_fini(queue);
	return -ENOMEM;
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_queue_fini(struct ibchan_queue *queue)
{
	kvfree(queue->works);
	kvfree(queue->slots);
	kvfree(queue->sges);
	queue->works = NULL;
	queue->slots = NULL;
	queue->sges = NULL;
}

static struct ibchan_work *work_at(struct ibchan_queue *queue, u32 number)
{
	return queue->works[number & queue->credit.mask];
}

static bool is_exclusive(const struct ibchan_work *work)
{
	return work->flags & IBCHAN_WR_EXCLUSIVE;
}

static noinline void release_range(struct ibchan_work *work, struct ibchan_sge *sge)
{
	ibchan_busy_release(&sge->mr->busy, sge, ibchan_op_scatters(work->opcode));
}

/* Gives back what the first @num elements hold. */
static __always_inline void put_sges(struct ibchan_work *work, u32 num)
{
	struct ibchan_sge *sge = work->sges;

	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		if (unlikely(is_exclusive(work)))
			release_range(work, sge);
		ibchan_mr_drop(sge->mr);
	}
}

static noinline int take_range(struct ibchan_work *work, struct ibchan_sge *sge,
			       struct ibchan_reason *reason)
{
	int ret;

	sge->work = work;
	ret = ibchan_busy_take(&sge->mr->busy, sge, ibchan_op_scatters(work->opcode), reason);
	if (ret)
		ibchan_mr_drop(sge->mr);
	return ret;
}

static __always_inline int take_sge(struct ibchan_work *work, struct ibchan_sge *sge,
				    struct ibchan_reason *reason)
{
	if (unlikely(!ibchan_mr_get(sge->mr)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	return unlikely(is_exclusive(work)) ? take_range(work, sge, reason) : 0;
}

/* What the device will see of a region that it knows in pieces. */
static noinline struct ib_sge *build_pieces(struct ib_sge *out, const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;
	const struct ibchan_piece *piece = mr->pieces;
	u64 offset = sge->offset;
	u32 left = sge->length;
	u32 part;

	piece += ibchan_pieces_find(mr->pieces, mr->num_pieces, offset);
	for (; left; piece++, left -= part, offset += part) {
		part = min_t(u64, left, piece[1].start - offset);
		*out++ = (struct ib_sge){
			.addr = piece->dma + (offset - piece->start),
			.length = part,
			.lkey = mr->lkey,
		};
	}
	return out;
}

static __always_inline struct ib_sge *build_sge(struct ib_sge *out,
						const struct ibchan_sge *sge)
{
	if (unlikely(sge->mr->pieces))
		return build_pieces(out, sge);
	out->addr = sge->mr->addr + sge->offset;
	out->length = sge->length;
	out->lkey = sge->mr->lkey;
	return out + 1;
}

static u32 device_elements(const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;

	if (likely(!mr->pieces))
		return 1;
	return ibchan_pieces_count(mr->pieces, mr->num_pieces, sge->offset, sge->length);
}

static u32 room_for_elements(const struct ibchan_chain *chain, const struct ib_sge *sge)
{
	return &chain->sges[IBCHAN_CHAIN_SGES] - sge;
}

/* More than there ever is; or no room left in this chain, where another one has it. */
static noinline int refuse_room(struct ibchan_work *work, u32 taken, u32 elements,
				struct ibchan_reason *reason)
{
	u32 max = work->queue->channel->max_sge[work->opcode];

	put_sges(work, taken);
	return elements > max ? ibchan_refuse_elements(elements, max, reason) : -ENOSPC;
}

static noinline int refuse_element(struct ibchan_work *work, u32 element, int error,
				   struct ibchan_reason *reason)
{
	put_sges(work, element);
	if (reason)
		reason->element = element;
	return error;
}

/*
 * Checks the elements, takes them for the work and shows them to the device from
 * @out on, one after the other; a refusal gives back what was taken. Empty ones
 * stay here: a length of 0 means 2 GiB to some devices. Return: how many elements
 * the device sees, or an errno.
 */
static noinline int add_sges(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			     struct ibchan_work *work, struct ib_sge *out,
			     struct ibchan_reason *reason)
{
	u32 max = min_t(u32, ch->max_sge[wr->opcode], room_for_elements(&ch->chain, out));
	u32 needed = ibchan_ops[wr->opcode].needed;
	struct ibchan_sge *sge = work->sges;
	u32 elements = 0;
	u64 total = 0;
	int ret;
	u32 i;

	for (i = 0; i < wr->num_sge; i++, sge++) {
		ret = ibchan_check_sge(ch, sge, needed, reason);
		if (unlikely(ret))
			return refuse_element(work, i, ret, reason);
		if (!sge->length)
			continue;
		elements += device_elements(sge);
		if (unlikely(elements > max))
			return refuse_room(work, i, elements, reason);
		ret = take_sge(work, sge, reason);
		if (unlikely(ret))
			return refuse_element(work, i, ret, reason);
		total += sge->length;
		out = build_sge(out, sge);
	}
	ret = ibchan_check_total(ch, wr, total, elements, reason);
	if (unlikely(ret))
		put_sges(work, wr->num_sge);
	return ret ?: elements;
}

/*
 * The same for nearly all requests: one element, in one piece, that nobody asks to
 * be exclusive. It is straight, which is half as long as the loop.
 */
static __always_inline int add_sge(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				   struct ibchan_work *work, struct ib_sge *out,
				   struct ibchan_reason *reason)
{
	struct ibchan_sge *sge = work->sges;
	struct ibchan_mr *mr = sge->mr;
	u32 length = sge->length;
	int ret;

	if (unlikely(!length || mr->pieces || is_exclusive(work) ||
		     !room_for_elements(&ch->chain, out)))
		return add_sges(ch, wr, work, out, reason);
	ret = ibchan_check_sge(ch, sge, ibchan_ops[wr->opcode].needed, reason);
	if (likely(!ret))
		ret = ibchan_check_total(ch, wr, length, 1, reason);
	if (unlikely(ret))
		return ret;
	if (unlikely(!ibchan_mr_get(mr)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	out->addr = mr->addr + sge->offset;
	out->length = length;
	out->lkey = mr->lkey;
	return 1;
}

/*
 * Shows data that is in the request to the device, which reads it by the kernel's
 * address during the post. Return: as many elements as that takes; an errno.
 */
static noinline int add_inline(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			       struct ib_sge *out, struct ibchan_reason *reason)
{
	int ret;

	if (!room_for_elements(&ch->chain, out))
		return -ENOSPC;
	ret = ibchan_check_inline(ch, wr, reason);
	if (!ret)
		ret = ibchan_check_total(ch, wr, wr->data_length, 1, reason);
	if (ret || !wr->data_length)
		return ret;
	*out = (struct ib_sge){
		.addr = (uintptr_t)wr->data,
		.length = wr->data_length,
	};
	return 1;
}

static noinline int refuse_full(struct ibchan_queue *queue, struct ibchan_reason *reason)
{
	u32 code = queue == &queue->channel->send ? IBCHAN_REASON_SEND_QUEUE_FULL :
						    IBCHAN_REASON_RECV_QUEUE_FULL;

	return ibchan_refuse_values(reason, code, -EAGAIN,
				    (u64[3]) { queue->credit.depth });
}

static int sink_reserve(struct ibchan_cq *cq, struct ibchan_reason *reason)
{
	int ret = cq->sink->reserve ? cq->sink->reserve(cq->priv) : 0;

	if (ret == -EAGAIN)
		return ibchan_refuse(reason, IBCHAN_REASON_RING_FULL, ret);
	return ret;
}

static void sink_cancel(struct ibchan_cq *cq)
{
	if (cq->sink->cancel)
		cq->sink->cancel(cq->priv);
}

static void copy_sges(struct ibchan_sge *to, const struct ibchan_wr *wr)
{
	u32 i;

	for (i = 0; i < wr->num_sge; i++) {
		to[i].mr = wr->sges[i].mr;
		to[i].offset = wr->sges[i].offset;
		to[i].length = wr->sges[i].length;
	}
}

/* A work of the channel's own for who brings none, with room for its completion. */
static noinline struct ibchan_work *take_slot(struct ibchan_queue *queue,
					      const struct ibchan_wr *wr,
					      struct ibchan_reason *reason)
{
	struct ibchan_work *work = &queue->slots[queue->credit.posted & queue->credit.mask];
	int ret;

	if (!queue->slots)
		return ERR_PTR(ibchan_refuse(reason, IBCHAN_REASON_NO_SINK, -EINVAL));
	ret = sink_reserve(queue->cq, reason);
	if (ret)
		return ERR_PTR(ret);
	copy_sges(work->sges, wr);
	return work;
}

static __always_inline void fill_work(struct ibchan_work *work, struct ibchan_queue *queue,
				      const struct ibchan_wr *wr, u32 number)
{
	work->cqe.done = work_done;
	work->queue = queue;
	work->wr_id = wr->wr_id;
	work->number = number;
	work->num_sge = wr->num_sge;
	work->opcode = wr->opcode;
	work->flags = wr->flags;
}

static __always_inline int add_elements(struct ibchan_channel *ch,
					const struct ibchan_wr *wr, struct ibchan_work *work,
					struct ib_sge *out, struct ibchan_reason *reason)
{
	if (unlikely(wr->flags & IBCHAN_WR_INLINE))
		return add_inline(ch, wr, out, reason);
	if (likely(wr->num_sge == 1))
		return add_sge(ch, wr, work, out, reason);
	return add_sges(ch, wr, work, out, reason);
}

/*
 * Everything that can refuse a request; the device's elements are built on the
 * way. Return: how many; an errno, with *@taken as it was.
 */
static __always_inline int work_reserve(struct ibchan_queue *queue, const struct ibchan_wr *wr,
					struct ib_sge *out, struct ibchan_work **taken,
					struct ibchan_reason *reason)
{
	struct ibchan_channel *ch = queue->channel;
	struct ibchan_work *work = wr->work;
	u32 number = queue->credit.posted;
	int ret;

	ret = ibchan_check_form(ch, wr, reason);
	if (unlikely(ret))
		return ret;
	if (unlikely(ibchan_credit_is_spent(&queue->credit)))
		return refuse_full(queue, reason);
	if (likely(work)) {
		work->sges = wr->sges;
	} else {
		work = take_slot(queue, wr, reason);
		if (IS_ERR(work))
			return PTR_ERR(work);
	}
	fill_work(work, queue, wr, number);
	ret = add_elements(ch, wr, work, out, reason);
	if (likely(ret >= 0)) {
		queue->works[number & queue->credit.mask] = work;
		*taken = work;
	} else if (!wr->work) {
		sink_cancel(queue->cq);
	}
	return ret;
}

/* The opposite, for the request that took its place last. */
static void work_unreserve(struct ibchan_queue *queue)
{
	struct ibchan_work *work = work_at(queue, queue->credit.posted - 1);

	ibchan_credit_untake(&queue->credit);
	put_sges(work, work->num_sge);
	if (!work->done)
		sink_cancel(queue->cq);
}

/* What few opcodes need besides. */
static noinline void build_rare(union ibchan_send_wr *out, const struct ibchan_wr *wr)
{
	const struct ibchan_mr *mr = wr->data;

	switch (wr->opcode) {
	case IBCHAN_OP_COMPARE_SWAP:
	case IBCHAN_OP_FETCH_ADD:
		out->atomic.remote_addr = wr->remote_addr;
		out->atomic.rkey = wr->rkey;
		out->atomic.compare_add = wr->operand;
		out->atomic.swap = wr->swap;
		break;
	case IBCHAN_OP_REGISTER:
		out->reg.mr = mr->ib;
		out->reg.key = mr->ib->rkey;
		out->reg.access = mr->access;
		break;
	case IBCHAN_OP_INVALIDATE:
		out->wr.ex.invalidate_rkey = mr->ib->rkey;
		break;
	}
}

static int send_flags(u8 flags, bool signal)
{
	int ret = signal ? IB_SEND_SIGNALED : 0;

	if (unlikely(flags & (IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED | IBCHAN_WR_INLINE))) {
		ret |= flags & IBCHAN_WR_FENCE ? IB_SEND_FENCE : 0;
		ret |= flags & IBCHAN_WR_SOLICITED ? IB_SEND_SOLICITED : 0;
		ret |= flags & IBCHAN_WR_INLINE ? IB_SEND_INLINE : 0;
	}
	return ret;
}

/* Each request points to the next one; the post ends the chain. */
static __always_inline void build_send(union ibchan_send_wr *out, const struct ibchan_wr *wr,
				       struct ib_cqe *cqe, bool signal)
{
	const struct ibchan_op *op = &ibchan_ops[wr->opcode];

	out->wr.next = &out[1].wr;
	out->wr.wr_cqe = cqe;
	out->wr.opcode = op->verb[wr->flags & IBCHAN_WR_IMM];
	out->wr.send_flags = send_flags(wr->flags, signal);
	out->wr.ex.imm_data = cpu_to_be32(wr->imm);
	out->rdma.remote_addr = wr->remote_addr;
	out->rdma.rkey = wr->rkey;
	if (unlikely(op->traits & (OP_ATOMIC | OP_SERVICE)))
		build_rare(out, wr);
}

static bool is_receive(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV;
}

/*
 * Both builders take leading requests for their queue, as long as they fit one
 * chain, and return how many; a refusal ends it too, and is in chain.refused.
 */
static __always_inline u32 build_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				       u32 left, struct ibchan_reason *reason)
{
	const struct ibchan_wr *end = wr + min_t(u32, left, IBCHAN_CHAIN_WRS);
	union ibchan_send_wr *out = ch->chain.send;
	struct ib_sge *sge = ch->chain.sges;
	struct ibchan_work *work;
	int ret;
	bool signal;

	ch->chain.refused = 0;
	do {
		ret = work_reserve(&ch->send, wr, sge, &work, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		signal = ibchan_credit_take(&ch->send.credit,
					    !(wr->flags & IBCHAN_WR_UNSIGNALED));
		trace_ibchan_post(ch->cookie, wr->wr_id, wr->opcode, wr->num_sge);
		out->wr.sg_list = sge;
		out->wr.num_sge = ret;
		build_send(out, wr, &work->cqe, signal);
		sge += ret;
		out++;
		wr++;
	} while (wr < end && !is_receive(wr));
	return out - ch->chain.send;
}

static __always_inline u32 build_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				       u32 left, struct ibchan_reason *reason)
{
	const struct ibchan_wr *end = wr + min_t(u32, left, IBCHAN_CHAIN_WRS);
	struct ib_recv_wr *out = ch->chain.recv;
	struct ib_sge *sge = ch->chain.sges;
	struct ibchan_work *work;
	int ret;

	ch->chain.refused = 0;
	do {
		ret = work_reserve(&ch->recv, wr, sge, &work, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		ibchan_credit_take(&ch->recv.credit, true);
		trace_ibchan_post(ch->cookie, wr->wr_id, wr->opcode, wr->num_sge);
		out->next = out + 1;
		out->wr_cqe = &work->cqe;
		out->sg_list = sge;
		out->num_sge = ret;
		sge += ret;
		out++;
		wr++;
	} while (wr < end && is_receive(wr));
	return out - ch->chain.recv;
}

static noinline int undo_posts(struct ibchan_queue *queue, u32 num, int error,
			       struct ibchan_reason *reason)
{
	atomic_sub(num, &queue->cq->in_flight);
	for (; num; num--)
		work_unreserve(queue);
	return ibchan_refuse_values(reason, IBCHAN_REASON_POST_FAILED, error,
				    (u64[3]) { -error });
}

/*
 * One chain of each kind: how many leading requests the device has taken. The works
 * count as in flight before it has them, because they may be retired before the
 * verb returns.
 */
static noinline u32 post_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
			       struct ibchan_reason *reason)
{
	u32 num = build_sends(ch, wr, left, reason);
	u32 posted;

	if (unlikely(!num))
		return 0;
	atomic_add(num, &ch->send.cq->in_flight);
	posted = ibchan_post_sends(ch->qp, &ch->chain, num);
	ibchan_count(works_posted, posted);
	if (unlikely(posted < num))
		ch->chain.refused = undo_posts(&ch->send, num - posted, ch->chain.error, reason);
	return posted;
}

static noinline u32 post_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
			       struct ibchan_reason *reason)
{
	u32 num = build_recvs(ch, wr, left, reason);
	u32 posted;

	if (unlikely(!num))
		return 0;
	atomic_add(num, &ch->recv.cq->in_flight);
	posted = ibchan_post_recvs(ch->qp, &ch->chain, num);
	ibchan_count(works_posted, posted);
	if (unlikely(posted < num))
		ch->chain.refused = undo_posts(&ch->recv, num - posted, ch->chain.error, reason);
	return posted;
}

static noinline int refuse_state(struct ibchan_channel *ch, u32 state,
				 struct ibchan_reason *reason)
{
	u32 error = READ_ONCE(ch->error);
	int ret = ibchan_state_error(state, error);

	switch (ret) {
	case -ENOTCONN:
		return ibchan_refuse(reason, IBCHAN_REASON_NOT_CONNECTED, ret);
	case -ENODEV:
		return ibchan_refuse(reason, IBCHAN_REASON_DEVICE_GONE, ret);
	default:
		return ibchan_refuse_values(reason, IBCHAN_REASON_BROKEN, ret,
					    (u64[3]) { error, READ_ONCE(ch->status) });
	}
}

/*
 * How many leading requests were posted. Why not more is in chain.refused; one that
 * only found no room in a chain gets another.
 */
static __always_inline u32 post_some(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				     u32 left, struct ibchan_reason *reason)
{
	u32 state = READ_ONCE(ch->state);
	u32 posted;

	if (unlikely(state != IBCHAN_CHANNEL_CONNECTED)) {
		ch->chain.refused = refuse_state(ch, state, reason);
		return 0;
	}
	posted = is_receive(wr) ? post_recvs(ch, wr, left, reason) :
				  post_sends(ch, wr, left, reason);
	if (unlikely(ch->chain.refused == -ENOSPC))
		ch->chain.refused = 0;
	return posted;
}

/* Who does not poll by himself is called back: now, or when an event comes. */
static void reap_after_post(struct ibchan_channel *ch)
{
	if (!(ch->send.cq->mode & IBCHAN_CQ_POLLED))
		ibchan_cq_arm(ch->send.cq);
	if (!(ch->recv.cq->mode & IBCHAN_CQ_POLLED) && ch->recv.cq != ch->send.cq)
		ibchan_cq_arm(ch->recv.cq);
}

/**
 * ibchan_post - post work requests
 * @ch: the channel; RCU or the caller keeps its memory
 * @wrs: the requests, any mix
 * @num: how many
 * @accepted: how many leading ones were posted, also on an error
 * @reason: why the next one was refused, with its index and element; or NULL
 *
 * An accepted request completes exactly once: by done() of its work, or through
 * the sink of its cq. Its ranges belong to the device until then. On a cq that is
 * IBCHAN_CQ_POLLED the caller then reaps, polls, waits or arms. Any other calls
 * back by itself: what has completed already before this returns, the rest from
 * a worker.
 *
 * A work that is IBCHAN_WR_UNSIGNALED ends when a later work of the send queue
 * does that is not, or with an error, or when the channel is broken; until then
 * it keeps its place, and its ranges stay busy. Posted by wr_id, it has no
 * completion unless it fails. At least every second half of a queue is signaled
 * whatever the flags say, so that a queue cannot fill up for ever.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: 0 when all were posted; else what the first refused one met: -EINVAL,
 * -EOPNOTSUPP, -EXDEV, -EACCES as check.h says; -EBUSY for a range
 * that collides with one in flight (IBCHAN_WR_EXCLUSIVE); -ENOENT for a region
 * that is being given up; -EAGAIN for a full queue or sink; -ENOTCONN before the
 * handshake; -ESHUTDOWN on a broken channel; -ENODEV when the device is gone;
 * what else the sink's reserve() or the driver answers.
 */
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason)
{
	u32 total = 0;
	int ret = 0;

	if (reason)
		reason->element = 0;
	spin_lock_bh(&ch->post_lock);
	while (total < num && !ret) {
		total += post_some(ch, wrs + total, num - total, reason);
		ret = ch->chain.refused;
	}
	spin_unlock_bh(&ch->post_lock);
	*accepted = total;
	if (unlikely(ret && reason))
		reason->wr = total;
	if (total)
		reap_after_post(ch);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post, IBCHAN_NS);

static noinline void fill_error(struct ibchan_completion *completion, const struct ib_wc *wc)
{
	completion->error = ibchan_status_error(wc->status);
	completion->vendor_err = wc->vendor_err;
}

static void fill_received(struct ibchan_completion *completion, const struct ib_wc *wc)
{
	completion->bytes = wc->byte_len;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		completion->imm = be32_to_cpu(wc->ex.imm_data);
		completion->flags |= IBCHAN_CQE_IMM;
	}
}

/* Before success is known only status, vendor_err and the cqe mean anything. */
static __always_inline void fill_completion(struct ibchan_completion *completion,
					    const struct ibchan_work *work,
					    const struct ib_wc *wc)
{
	*completion = (struct ibchan_completion){
		.wr_id = work->wr_id,
		.cookie = work->queue->channel->cookie,
		.status = wc->status,
		.opcode = work->opcode,
	};
	if (unlikely(wc->status != IB_WC_SUCCESS))
		fill_error(completion, wc);
	else if (work->opcode == IBCHAN_OP_RECV)
		fill_received(completion, wc);
}

/* By wr_id: who did not want to hear of success does not. */
static noinline void publish_to_sink(struct ibchan_cq *cq, u8 flags,
				     const struct ibchan_completion *completion)
{
	if (!(flags & IBCHAN_WR_UNSIGNALED) || completion->error)
		cq->sink->done(cq->priv, completion);
	else
		sink_cancel(cq);
}

/* The caller owns the cq. */
static __always_inline void retire(struct ibchan_work *work, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_cq *cq = queue->cq;
	struct ibchan_completion *completion = &cq->completion;
	bool by_wr_id = !work->done;
	u8 flags = work->flags;

	fill_completion(completion, work, wc);
	if (unlikely(wc->status != IB_WC_SUCCESS))
		ibchan_channel_fail(queue->channel, completion->error, completion->status);
	put_sges(work, work->num_sge);
	ibchan_credit_give(&queue->credit);
	trace_ibchan_complete(completion->cookie, completion->wr_id, completion->status,
			      completion->bytes);
	ibchan_count(works_retired, 1);
	cq->retired++;
	/* The place may have another work by now; a caller's own is still there. */
	if (by_wr_id)
		publish_to_sink(cq, flags, completion);
	else
		work->done(work, completion);
}

static noinline void work_retire(struct ibchan_work *work, const struct ib_wc *wc)
{
	retire(work, wc);
}

/* For who has no completion of his own. */
static const struct ib_wc succeeded = { .status = IB_WC_SUCCESS };

/*
 * Works before this one that have not completed are unsignaled ones that have
 * succeeded: one that fails says so.
 */
static void work_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_work *work = container_of(wc->wr_cqe, struct ibchan_work, cqe);
	struct ibchan_queue *queue = work->queue;
	u32 number = work->number;

	while (unlikely(queue->credit.retired != number))
		work_retire(work_at(queue, queue->credit.retired), &succeeded);
	retire(work, wc);
}

/*
 * Nothing is posted any more, and all that has a completion has been retired. Who
 * fails has one, and so has each receive. The caller owns the cq.
 */
void ibchan_queue_end_silent(struct ibchan_queue *queue)
{
	struct ibchan_credit *credit = &queue->credit;

	if (queue == &queue->channel->recv)
		return;
	while (credit->retired != credit->posted)
		work_retire(work_at(queue, credit->retired), &succeeded);
}

/*
 * The qp is destroyed and its cq swept: what is still there the device has
 * forgotten. The caller owns the cq.
 */
void ibchan_queue_flush(struct ibchan_queue *queue)
{
	static const struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };
	struct ibchan_credit *credit = &queue->credit;

	while (credit->retired != credit->posted)
		work_retire(work_at(queue, credit->retired), &wc);
	if (queue->marked && !queue->drained) {
		queue->drained = 1;
		queue->cq->retired++;
	}
}
