// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting. Under the post lock each request is checked, takes all that it needs, and is built
 * for the device. Requests for the same queue make a chain of up to IBCHAN_CHAIN_WRS, which
 * is posted at once; a single request is a chain of one. What the device did not take is
 * undone from the end.
 *
 * A request needs, in this order: a place in the queue, a message's credit, room for its
 * completion in the sink (by wr_id only), and for each element a reference to the region and,
 * with IBCHAN_WR_EXCLUSIVE, the range. These are kept at its place, where they stay until the work
 * ends. A refusal gives back what this request has taken.
 */
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "compat.h"
#include "counters.h"
#include "post.h"
#include "trace.h"
#include "work.h"

/* Each takes some 300 bytes of stack, and what the consumer's done() needs. */
#define MAX_NESTED_REAPS	4

static bool is_receive(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV;
}

static noinline int refuse_full(struct ibchan_queue *queue, struct ibchan_reason *reason)
{
	u32 code = queue == &queue->channel->send ? IBCHAN_REASON_SEND_QUEUE_FULL :
						    IBCHAN_REASON_RECV_QUEUE_FULL;

	return ibchan_refuse_values(reason, code, -EAGAIN,
				    (u64[3]) { queue->credit.depth });
}

/* A message for which the peer has no receive would not be taken there. */
static noinline int check_credits(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				  struct ibchan_reason *reason)
{
	return ibchan_uses_receive(wr->opcode, wr->flags) ? ch->credit_ops->refuse(ch, reason) : 0;
}

/*
 * The work of a request that brings none is the queue's own, in the same place. Its completion
 * has room in the sink.
 */
static int take_own_work(struct ibchan_queue *queue, const struct ibchan_wr *wr,
			 struct ibchan_reason *reason)
{
	const struct ibchan_sink *sink = queue->cq->sink;
	int ret = 0;

	/* A list ends in another place than it begins: see sgl.c. */
	if (unlikely(!queue->slots || wr->flags & IBCHAN_WR_SGL))
		return ibchan_refuse(reason, IBCHAN_REASON_NO_SINK, -EINVAL);
	if (sink->reserve)
		ret = sink->reserve(queue->cq->priv);
	if (unlikely(ret == -EAGAIN))
		return ibchan_refuse(reason, IBCHAN_REASON_RING_FULL, ret);
	return ret;
}

/*
 * From its post until it ends a work has this done(). Posted once more it would be shared by two
 * requests of the device. Of two posts at the same moment, on two channels, neither sees the other.
 */
static bool is_in_flight(const struct ibchan_work *work)
{
	return READ_ONCE(work->cqe.done) == ibchan_work_done;
}

static __always_inline int check_work(const struct ibchan_work *work, struct ibchan_reason *reason)
{
	if (unlikely(!work->done))
		return ibchan_refuse(reason, IBCHAN_REASON_NO_DONE, -EINVAL);
	if (unlikely(is_in_flight(work)))
		return ibchan_refuse(reason, IBCHAN_REASON_WORK_IN_FLIGHT, -EBUSY);
	return 0;
}

/*
 * Everything that can refuse a request. @out: the device's elements are built from here on.
 * Returns how many these are, with @taken in the queue's next place, which is taken next;
 * -ENOSPC when there is no room for them in this chain; what ibchan_post() says. On an error
 * nothing is held.
 */
static __always_inline int reserve(struct ibchan_queue *queue, const struct ibchan_wr *wr,
				   struct ib_sge *out, struct ibchan_work **taken,
				   struct ibchan_reason *reason)
{
	u32 number = queue->credit.posted, place = number & queue->credit.mask;
	struct ibchan_channel *ch = queue->channel;
	struct ibchan_work *work = wr->work;
	int ret;

	ret = ibchan_check_form(&ch->bounds, wr, reason);
	if (unlikely(ret))
		return ret;
	if (unlikely(ibchan_credit_is_spent(&queue->credit)))
		return refuse_full(queue, reason);
	ret = unlikely(ch->flow) ? check_credits(ch, wr, reason) : 0;
	if (unlikely(ret))
		return ret;
	if (work) {
		ret = check_work(work, reason);
	} else {
		work = &queue->slots[place];
		ret = take_own_work(queue, wr, reason);
	}
	if (unlikely(ret))
		return ret;
	work->queue = queue;
	work->mrs = &queue->mrs[place * queue->max_sge];
	work->wr_id = wr->wr_id;
	work->number = number;
	work->num_sge = wr->num_sge;
	work->opcode = wr->opcode;
	work->flags = wr->flags;
	if (unlikely(wr->flags & (IBCHAN_WR_INLINE | IBCHAN_WR_SGL))) {
		if (wr->flags & IBCHAN_WR_INLINE)
			ret = ibchan_work_add_inline(wr, ch, out, reason);
		else
			ret = ibchan_sgl_take(wr, work, out, reason);
		/* That of the last part. */
		place = work->number & queue->credit.mask;
	} else {
		ret = ibchan_work_add_sges(wr, work, out, reason);
	}
	if (unlikely(ret < 0)) {
		if (!wr->work)
			ibchan_sink_cancel(queue->cq);
		return ret;
	}
	WRITE_ONCE(work->cqe.done, ibchan_work_done);
	queue->works[place] = work;
	*taken = work;
	return ret;
}

/* Undoes the request that took its places last. */
static void unreserve(struct ibchan_queue *queue, struct ibchan_work *work)
{
	WRITE_ONCE(work->cqe.done, NULL);
	ibchan_credit_untake(&queue->credit);
	if (queue->channel->flow && ibchan_uses_receive(work->opcode, work->flags))
		WRITE_ONCE(queue->channel->sent, queue->channel->sent - 1);
	if (work->flags & IBCHAN_WR_SGL)
		ibchan_sgl_untake(work);
	else
		ibchan_work_put_mrs(work);
	if (!work->done)
		ibchan_sink_cancel(queue->cq);
}

/* The members that only some opcodes have. */
static noinline void build_opcode(union ibchan_send_wr *out, const struct ibchan_wr *wr)
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
		out->reg.key = mr->key;
		out->reg.access = mr->extent.access;
		break;
	case IBCHAN_OP_INVALIDATE:
		out->wr.ex.invalidate_rkey = mr->key;
		break;
	case IBCHAN_OP_SEND_INVALIDATE:
		out->wr.ex.invalidate_rkey = wr->rkey;
		break;
	}
}

#define BUILD_FLAGS	(IBCHAN_WR_IMM | IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED | \
			 IBCHAN_WR_INLINE | IBCHAN_WR_SGL)

/* Returns the last WR of the request. */
static noinline union ibchan_send_wr *build_flags(union ibchan_send_wr *out,
						  const struct ibchan_wr *wr,
						  struct ibchan_work *work)
{
	if (wr->flags & IBCHAN_WR_IMM) {
		out->wr.opcode = ibchan_ops[wr->opcode].verb[1];
		out->wr.ex.imm_data = cpu_to_be32(wr->imm);
	}
	if (wr->flags & IBCHAN_WR_FENCE)
		out->wr.send_flags |= IB_SEND_FENCE;
	if (wr->flags & IBCHAN_WR_SOLICITED)
		out->wr.send_flags |= IB_SEND_SOLICITED;
	if (wr->flags & IBCHAN_WR_INLINE)
		out->wr.send_flags |= IB_SEND_INLINE;
	return wr->flags & IBCHAN_WR_SGL ? ibchan_sgl_split(work, out) : out;
}

/* @next: the next WR of the chain, then that behind the request. Returns as add_recv(). */
static __always_inline int add_send(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				    union ibchan_send_wr **next, struct ib_sge *sges,
				    struct ibchan_reason *reason)
{
	union ibchan_send_wr *out = *next;
	struct ibchan_work *work;
	bool signal;
	int ret;

	ret = reserve(&ch->send, wr, sges, &work, reason);
	if (unlikely(ret < 0))
		return ret;
	signal = ibchan_credit_take(&ch->send.credit, !(wr->flags & IBCHAN_WR_UNSIGNALED));
	if (unlikely(ch->flow) && ibchan_uses_receive(wr->opcode, wr->flags))
		WRITE_ONCE(ch->sent, ch->sent + 1);
	trace_ibchan_post(ch->cookie, work);
	out->wr.wr_cqe = &work->cqe;
	out->wr.sg_list = sges;
	out->wr.num_sge = ret;
	out->wr.opcode = ibchan_ops[wr->opcode].verb[0];
	out->wr.send_flags = likely(signal) ? IB_SEND_SIGNALED : 0;
	out->rdma.remote_addr = wr->remote_addr;
	out->rdma.rkey = wr->rkey;
	if (unlikely(ibchan_ops[wr->opcode].traits & (OP_ATOMIC | OP_SERVICE | OP_INVALIDATES)))
		build_opcode(out, wr);
	if (unlikely(wr->flags & BUILD_FLAGS))
		out = build_flags(out, wr, work);
	out->wr.next = &out[1].wr;
	*next = out + 1;
	return ret;
}

/* Returns how many elements the device sees; an errno. */
static __always_inline int add_recv(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				    struct ib_recv_wr *out, struct ib_sge *sges,
				    struct ibchan_reason *reason)
{
	struct ibchan_work *work;
	int ret;

	ret = reserve(&ch->recv, wr, sges, &work, reason);
	if (unlikely(ret < 0))
		return ret;
	ibchan_credit_take(&ch->recv.credit, true);
	trace_ibchan_post(ch->cookie, work);
	out->wr_cqe = &work->cqe;
	out->sg_list = sges;
	out->num_sge = ret;
	return ret;
}

/*
 * Behind @num requests that take the WRs and elements before @out and @sge. An empty chain has room
 * for any list that the channel takes. Each request that may still come needs a WR at least, so
 * that a chain of IBCHAN_CHAIN_WRS requests never has too few.
 */
static noinline bool has_room_for_list(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
				       u32 num, const union ibchan_send_wr *out,
				       const struct ib_sge *sge)
{
	const struct ibchan_chain *chain = &ch->chain;
	u32 others = out - chain->send + IBCHAN_CHAIN_WRS - num - 1;

	return wr->num_sge <= &chain->sges[chain->max_sges] - sge &&
	       ibchan_sgl_places(ch, wr->opcode, wr->num_sge) + others <= chain->max_wrs;
}

/*
 * Both builders take leading requests for their queue, as long as they fit one
 * chain, and return how many; a refusal ends it too, and is in chain.refused. Each
 * request points to the next one; the post ends the chain.
 */
static u32 build_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
		       struct ibchan_reason *reason)
{
	u32 num, max = min_t(u32, left, IBCHAN_CHAIN_WRS);
	union ibchan_send_wr *out = ch->chain.send;
	struct ib_sge *sge = ch->chain.sges;
	int ret;

	for (num = 0; num < max && !is_receive(wr); num++, wr++) {
		if (unlikely(wr->flags & IBCHAN_WR_SGL) && num &&
		    !has_room_for_list(ch, wr, num, out, sge))
			break;
		ret = add_send(ch, wr, &out, sge, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		sge += ret;
	}
	ch->chain.wrs = out - ch->chain.send;
	return num;
}

static u32 build_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
		       struct ibchan_reason *reason)
{
	u32 num, max = min_t(u32, left, IBCHAN_CHAIN_WRS);
	struct ib_recv_wr *out = ch->chain.recv;
	struct ib_sge *sge = ch->chain.sges;
	int ret;

	for (num = 0; num < max && is_receive(wr); num++, wr++, out++) {
		ret = add_recv(ch, wr, out, sge, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		out->next = out + 1;
		sge += ret;
	}
	return num;
}

/*
 * The device has taken the first parts of a request, and uses its memory: the request is posted,
 * and ends with its channel.
 */
static void cut_request(struct ibchan_queue *queue, u32 missing)
{
	queue->cut_at = queue->credit.posted - missing;
	queue->cut = true;
	ibchan_channel_break_later(queue->channel, queue->channel->chain.error,
				   IBCHAN_STATUS_SUCCESS);
}

/* The device did not take the last @missing WRs. Returns how many requests are undone. */
static noinline u32 undo_posts(struct ibchan_queue *queue, u32 missing,
			       struct ibchan_reason *reason)
{
	int error = queue->channel->chain.error;
	struct ibchan_work *work;
	u32 places, undone;

	for (undone = 0; missing; undone++, missing -= places) {
		work = ibchan_work_at(queue, queue->credit.posted - 1);
		places = work->flags & IBCHAN_WR_SGL ? ibchan_sgl_parts(work) + 1 : 1;
		if (places > missing) {
			cut_request(queue, missing);
			break;
		}
		unreserve(queue, work);
		atomic_sub(places, &queue->cq->in_flight);
		ibchan_count(works_posted, -(int)places);
	}
	if (!undone)
		return 0;
	if (reason)
		reason->element = 0;
	queue->channel->chain.refused = ibchan_refuse_values(reason, IBCHAN_REASON_POST_FAILED,
							     error, (u64[3]) { -error });
	return undone;
}

/*
 * Posts the chain of @num requests: how many leading ones the device has taken. The works
 * count as in flight before it has them, because they may be retired before the verb
 * returns.
 */
static __always_inline u32 post_chain(struct ibchan_queue *queue, u32 num,
				      struct ibchan_reason *reason)
{
	struct ibchan_channel *ch = queue->channel;
	u32 wrs, posted;

	/* There can be too little room in a chain only behind others; the next one has it. */
	if (unlikely(ch->chain.refused == -ENOSPC && num))
		ch->chain.refused = 0;
	if (unlikely(!num))
		return 0;
	wrs = queue == &ch->recv ? num : ch->chain.wrs;
	atomic_add(wrs, &queue->cq->in_flight);
	if (queue == &ch->recv)
		posted = ibchan_post_recvs(ch->qp.ib, &ch->chain, wrs);
	else
		posted = ibchan_post_sends(ch->qp.ib, &ch->chain, wrs);
	ibchan_count(works_posted, wrs);
	if (unlikely(posted < wrs))
		num -= undo_posts(queue, wrs - posted, reason);
	return num;
}

static noinline int refuse_state(struct ibchan_channel *ch, u32 state,
				 struct ibchan_reason *reason)
{
	int ret = ibchan_state_error(state, ibchan_channel_cause(ch));

	switch (ret) {
	case -ENOTCONN:
		return ibchan_refuse(reason, IBCHAN_REASON_NOT_CONNECTED, ret);
	case -ENODEV:
		return ibchan_refuse(reason, IBCHAN_REASON_DEVICE_GONE, ret);
	default:
		return ibchan_refuse_values(reason, IBCHAN_REASON_BROKEN, ret,
					    (u64[3]) { READ_ONCE(ch->error),
						      READ_ONCE(ch->status) });
	}
}

/*
 * Receives for what the peer sends first: in place before it can. Not during a
 * handshake with an endpoint, which may have to go back.
 */
static bool takes_early(const struct ibchan_channel *ch, u32 state, const struct ibchan_wr *wr)
{
	if (state == IBCHAN_CHANNEL_PREPARED)
		return is_receive(wr) && READ_ONCE(ch->qp.ready);
	if (state != IBCHAN_CHANNEL_CONNECTING || !READ_ONCE(ch->cm))
		return false;
	/* The peer's first message may come before the connection manager's word. */
	return is_receive(wr) ? READ_ONCE(ch->qp.ready) :
				READ_ONCE(ch->connected) && READ_ONCE(ch->recv.credit.retired);
}

/* One chain: how many leading requests were posted. Why not more is in chain.refused. */
static __always_inline u32 post_some(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				     u32 left, struct ibchan_reason *reason)
{
	u32 state = smp_load_acquire(&ch->state); /* refuse_state() tells the error */

	if (unlikely(state != IBCHAN_CHANNEL_CONNECTED) && !takes_early(ch, state, wr)) {
		ch->chain.refused = refuse_state(ch, state, reason);
		return 0;
	}
	ibchan_fault_linger(IBCHAN_WINDOW_CHECKED);
	if (is_receive(wr))
		return post_chain(&ch->recv, build_recvs(ch, wr, left, reason), reason);
	return post_chain(&ch->send, build_sends(ch, wr, left, reason), reason);
}

static void reap_both(struct ibchan_channel *ch, void (*reap)(struct ibchan_cq *cq))
{
	struct ibchan_cq *send = ch->send.cq, *recv = ch->recv.cq;

	if (send->mode & IBCHAN_CQ_POST_REAPS)
		reap(send);
	if ((recv->mode & IBCHAN_CQ_POST_REAPS) && recv != send)
		reap(recv);
}

static void arm_both(struct ibchan_channel *ch)
{
	struct ibchan_cq *send = ch->send.cq, *recv = ch->recv.cq;

	if (!(send->mode & (IBCHAN_CQ_POLLED | IBCHAN_CQ_POST_REAPS)))
		ibchan_cq_arm_only(send);
	if (!(recv->mode & (IBCHAN_CQ_POLLED | IBCHAN_CQ_POST_REAPS)) && recv != send)
		ibchan_cq_arm_only(recv);
}

/*
 * A consumer that does not poll is called back when an event comes or, where it wants that, now. A
 * done() that posts to another cq makes this nest, which the stack allows a few times only.
 */
static noinline void after_post(struct ibchan_channel *ch)
{
	static DEFINE_PER_CPU(int, depth);

	if (unlikely(ch->after_post != IBCHAN_AFTER_REAP)) {
		if (ch->after_post & IBCHAN_AFTER_TELL)
			ch->credit_ops->tell(ch);
		if (ch->after_post & IBCHAN_AFTER_ARM)
			arm_both(ch);
		if (!(ch->after_post & IBCHAN_AFTER_REAP))
			return;
	}
	/* No done() is under way here. */
	if (!softirq_count()) {
		reap_both(ch, ibchan_cq_arm);
		return;
	}
	if (this_cpu_inc_return(depth) <= MAX_NESTED_REAPS)
		reap_both(ch, ibchan_cq_arm);
	else
		reap_both(ch, ibchan_cq_reap_later);
	this_cpu_dec(depth);
}

static noinline void note_refusal(struct ibchan_channel *ch, const struct ibchan_wr *wrs,
				  u32 total, struct ibchan_reason *reason)
{
	if (reason)
		reason->wr = total;
	ibchan_history_refused(ch, ch->chain.refused, reason ? reason->code : 0, wrs[total].wr_id);
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
 * back by itself, mostly from a softirq; only on one that is IBCHAN_CQ_POST_REAPS within
 * this call, too, for what has completed already, of whichever channel.
 *
 * A work that is IBCHAN_WR_UNSIGNALED ends when a later work of the send queue
 * does that is not, or with an error, or when the channel is broken; until then
 * it keeps its place, and its ranges stay busy. Posted by wr_id, it has no
 * completion unless it fails. At least every second half of a queue is signaled
 * whatever the flags say, so that a queue cannot fill up for ever.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: 0 when all were posted; else what the first refused one met: -EINVAL for
 * an opcode that is not one, a flag or number of elements that does not go with the
 * opcode, a range outside its region, more bytes than a message, the inline data or
 * the remote region may have, an atomic that is not of 8 aligned bytes, or no work
 * where the cq has nowhere to put a completion, or a work without done();
 * -EOPNOTSUPP for an unknown flag, for a read or an atomic to a peer that serves
 * none, or an atomic on a device that has none; -EXDEV for a region of another
 * domain; -EACCES for a region that does not allow the access; -EKEYREVOKED for one whose key
 * a peer has invalidated, as a completion has told; -EBUSY for a range
 * that collides with one in flight (IBCHAN_WR_EXCLUSIVE), and for a work that is in
 * flight; -ENOENT for a region that is being given up; -EAGAIN for
 * a full queue or sink, and for a message that the peer has no receive for
 * (IBCHAN_MODE_CREDITS); -ENOTCONN before the handshake, for all but receives;
 * -ESHUTDOWN on a broken channel; -ENODEV when the device is gone; -EDEADLK with
 * interrupts off; what else the sink's reserve() or the driver answers.
 */
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason)
{
	u32 total = 0;
	int ret;

	/* The end of bottom halves would switch them on. */
	if (unlikely(irqs_disabled())) {
		*accepted = 0;
		return ibchan_refuse(reason, IBCHAN_REASON_INTERRUPTS_OFF, -EDEADLK);
	}
	if (ch->after_post & IBCHAN_AFTER_REAP)
		reap_both(ch, ibchan_callback_may_come);
	if (reason)
		reason->element = 0;
	spin_lock_bh(&ch->post_lock);
	ch->chain.refused = 0;
	while (total < num && likely(!ch->chain.refused))
		total += post_some(ch, wrs + total, num - total, reason);
	ret = ch->chain.refused;
	if (unlikely(ret))
		note_refusal(ch, wrs, total, reason);
	spin_unlock_bh(&ch->post_lock);
	*accepted = total;
	if (ch->after_post && total)
		after_post(ch);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post, IBCHAN_NS);
