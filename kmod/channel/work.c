// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting. Under the post lock each request is checked, takes all that it needs, and is built
 * for the device. Requests for the same queue make a chain of up to IBCHAN_CHAIN_WRS, which
 * is posted at once; a single request is a chain of one. A request that the device did not take is
 * undone from the end.
 *
 * A request needs, in this order: a place in the queue, room for its completion in the sink (by
 * wr_id only), and for each element a reference to the region and, with IBCHAN_WR_EXCLUSIVE, the
 * range. These are kept at its place, where they stay until the work ends. A refusal gives back
 * what this request has taken.
 */
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "compat.h"
#include "counters.h"
#include "post.h"
#include "trace.h"

#include "private.h"
#include "work.h"

/* Each takes some 300 bytes of stack, and what the consumer's done() needs. */
#define MAX_NESTED_REAPS	4

static noinline int refuse_full(struct ibchan_queue *queue, struct ibchan_reason *reason)
{
	u32 code = queue == &queue->channel->send ? IBCHAN_REASON_SEND_QUEUE_FULL :
						    IBCHAN_REASON_RECV_QUEUE_FULL;

	return ibchan_refuse_values(reason, code, -EAGAIN, (u64[3]) { queue->places.depth });
}

/* Takes room for completions of up to @num requests; give_room_back() returns the surplus. */
static int take_room(struct ibchan_queue *queue, u32 num, struct ibchan_reason *reason)
{
	const struct ibchan_sink *sink = queue->cq->sink;
	int ret = num;

	if (unlikely(!queue->slots))
		return ibchan_refuse(reason, IBCHAN_REASON_NO_SINK, -EINVAL);
	if (sink->reserve)
		ret = sink->reserve(queue->cq->priv, num);
	if (unlikely(ret == -EAGAIN))
		return ibchan_refuse(reason, IBCHAN_REASON_RING_FULL, ret);
	if (unlikely(ret < 0))
		return ret;
	queue->channel->chain.room = ret;
	return 0;
}

/* Room in the sink that no request needs. */
static noinline void give_room_back(struct ibchan_queue *queue)
{
	struct ibchan_chain *chain = &queue->channel->chain;

	ibchan_sink_cancel(queue->cq, chain->room);
	chain->room = 0;
}

static __always_inline int check_work(const struct ibchan_work *work, struct ibchan_reason *reason)
{
	if (unlikely(!work->done))
		return ibchan_refuse(reason, IBCHAN_REASON_NO_DONE, -EINVAL);
	/*
	 * From its post until it ends a work has this done(). Posted once more, two requests of
	 * the device would share it. Of two posts at the same moment, on two channels, neither
	 * sees the other.
	 */
	if (unlikely(READ_ONCE(work->cqe.done) == ibchan_work_done))
		return ibchan_refuse(reason, IBCHAN_REASON_WORK_IN_FLIGHT, -EBUSY);
	return 0;
}

/* @kept: where the work holds its region and its range. */
static __always_inline int take_element(const struct ibchan_work *work,
					const struct ibchan_sge *sge, struct ibchan_kept *kept,
					struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = sge->mr;
	int ret;

	if (unlikely(!ibchan_users_get(&mr->users)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	kept->mr = mr;
	if (!(work->flags & IBCHAN_WR_EXCLUSIVE))
		return 0;
	kept->range->offset = sge->offset;
	kept->range->length = sge->length;
	kept->range->wr_id = work->wr_id;
	ret = ibchan_busy_take(&mr->busy, kept->range,
			       ibchan_ops[work->opcode].traits & OP_SCATTERS, reason);
	return unlikely(ret) ? ibchan_element_untake(mr, ret) : 0;
}

static noinline int add_odd_sges(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 struct ibchan_work *work, union ibchan_chain_wr *built,
				 struct ibchan_reason *reason);

/*
 * Checks the elements of a request and takes them for its work, which has room for its regions. An
 * empty element is not shown: a length of 0 means 2 GiB to some devices. It holds nothing. Under
 * the post lock. -ENOSPC when there is no room for them in this chain. On an error none is taken.
 *
 * Without @odd, which the compiler knows, an element that is not like most makes it begin again
 * with @odd. The number of elements matters of an atomic only, which is odd.
 */
static __always_inline int add_sges(struct ibchan_channel *ch, bool odd, const struct ibchan_wr *wr,
				    struct ibchan_work *work, union ibchan_chain_wr *built,
				    struct ibchan_reason *reason)
{
	struct ibchan_queue *queue = work->queue;
	struct ibchan_kept *kept = work->kept;
	const struct ibchan_sge *sge = wr->sges;
	const struct ibchan_op *op = &ibchan_ops[wr->opcode];
	struct ib_sge *out = ch->chain.free;
	u32 left = wr->num_sge;
	u64 total = 0;
	int ret;

	built->wr.sg_list = out;
	built->wr.num_sge = left;
	for (; left; sge++, left--) {
		struct ibchan_mr *mr = sge->mr;

		if (odd) {
			ret = ibchan_check_sge(&ch->bounds, &mr->extent, sge, op->needed, reason);
			if (ret)
				goto refused;
			if (!sge->length) {
				work->num_sge--;
				built->wr.num_sge--;
				continue;
			}
		} else if (unlikely(!ibchan_sge_fits(&ch->bounds, &mr->extent, sge, op->needed) ||
				    out == ch->chain.end)) {
			ibchan_work_untake(work, work->num_sge - left, 0);
			return add_odd_sges(ch, wr, work, built, reason);
		}
		ret = take_element(work, sge, kept, reason);
		if (unlikely(ret))
			goto refused;
		kept = ibchan_kept_next(queue, kept);
		if (odd) {
			ret = ibchan_element_build(ch, wr->opcode, sge, out,
						   out - built->wr.sg_list, reason);
			if (ret < 0)
				return ibchan_work_untake(work, work->num_sge - left + 1, ret);
			built->wr.num_sge += ret - 1;
			out += ret;
		} else {
			out->addr = mr->addr + sge->offset;
			out->length = sge->length;
			out->lkey = mr->lkey;
			out++;
		}
		total += sge->length;
	}
	ret = ibchan_check_total(&ch->bounds, wr, total, odd ? built->wr.num_sge : 1, reason);
	if (unlikely(ret))
		return ibchan_work_untake(work, work->num_sge, ret);
	ch->chain.free = out;
	return 0;
refused:
	ch->chain.element = sge - wr->sges;
	return ibchan_work_untake(work, work->num_sge - left, ret);
}

static noinline int add_odd_sges(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 struct ibchan_work *work, union ibchan_chain_wr *built,
				 struct ibchan_reason *reason)
{
	work->num_sge = wr->num_sge;
	return add_sges(ch, true, wr, work, built, reason);
}

/* A scatterlist or inline data. @left: requests that may be in the chain, with this one. */
static noinline int add_others(const struct ibchan_wr *wr, struct ibchan_work *work,
			       union ibchan_chain_wr *out, u32 left, struct ibchan_reason *reason)
{
	if (wr->flags & IBCHAN_WR_INLINE)
		return ibchan_work_add_inline(wr, work->queue->channel, out, reason);
	return ibchan_sgl_take(wr, work, out, left - 1, reason);
}

/*
 * Everything that can refuse a request, which is built as far as both queues' are alike, and has
 * the queue's next place, which is taken next. Returns 0; -ENOSPC when there is no room for its
 * elements in this chain; the errno of ibchan_post(). On an error nothing is held.
 */
static __always_inline int reserve(struct ibchan_channel *ch, struct ibchan_queue *queue, bool odd,
				   const struct ibchan_wr *wr, union ibchan_chain_wr *out,
				   u32 left, struct ibchan_reason *reason)
{
	u32 number = queue->places.posted, place = number & queue->places.mask;
	struct ibchan_work *work = wr->work;
	int ret;

	ret = ibchan_check_form(&ch->bounds, wr, reason);
	if (unlikely(ret))
		return ret;
	if (unlikely(ibchan_places_taken(&queue->places, number) >= queue->places.depth))
		return refuse_full(queue, reason);
	if (work) {
		ret = check_work(work, reason);
	} else {
		/* The queue's own, in the same place. Its completion has room in the sink. */
		work = &queue->slots[place];
		ret = ch->chain.room ? 0 : take_room(queue, left, reason);
		if (likely(!ret))
			ch->chain.room--;
	}
	if (unlikely(ret))
		return ret;
	queue->works[place] = work;
	out->wr.wr_cqe = &work->cqe;
	work->wr_id = wr->wr_id;
	work->number = number;
	work->head = wr->head;
	work->queue = queue;
	work->kept = queue->kept + place * queue->place_size;
	if (!odd)
		ret = add_sges(ch, false, wr, work, out, reason);
	else if (wr->flags & (IBCHAN_WR_INLINE | IBCHAN_WR_SGL))
		ret = add_others(wr, work, out, left, reason);
	else
		ret = add_odd_sges(ch, wr, work, out, reason);
	if (unlikely(ret)) {
		ch->chain.room += !wr->work;
		return ret;
	}
	WRITE_ONCE(work->cqe.done, ibchan_work_done);
	if (trace_ibchan_post_enabled())
		trace_ibchan_post(ch->cookie, work);
	return 0;
}

/* Undoes the request that took its places last. */
static void unreserve(struct ibchan_queue *queue, struct ibchan_work *work)
{
	WRITE_ONCE(work->cqe.done, NULL);
	ibchan_places_untake(&queue->places);
	if (work->flags & IBCHAN_WR_SGL)
		ibchan_sgl_untake(work);
	else
		ibchan_work_put_mrs(queue, work);
	if (!work->done)
		ibchan_sink_cancel(queue->cq, 1);
}

/* The members that only some opcodes have. */
static void build_opcode(union ibchan_chain_wr *out, const struct ibchan_wr *wr)
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

/* The members that a request for the send queue has besides those of reserve(). */
static __always_inline void build_send(union ibchan_chain_wr *out, const struct ibchan_wr *wr)
{
	out->wr.opcode = ibchan_ops[wr->opcode].verb[0];
	out->wr.send_flags = IB_SEND_SIGNALED;
	out->rdma.remote_addr = wr->remote_addr;
	out->rdma.rkey = wr->rkey;
}

/*
 * Builds a request that is not like most, and takes its places. Returns as reserve() does; the
 * places that it has taken tell how many WRs it has.
 */
static noinline int build_odd(struct ibchan_channel *ch, struct ibchan_queue *queue,
			      const struct ibchan_wr *wr, union ibchan_chain_wr *out,
			      u32 left, struct ibchan_reason *reason)
{
	int ret = reserve(ch, queue, true, wr, out, left, reason);
	struct ibchan_work *work;

	if (ret)
		return ret;
	build_send(out, wr);
	if (!ibchan_places_take(&queue->places, !(wr->flags & IBCHAN_WR_UNSIGNALED)))
		out->wr.send_flags = 0;
	build_opcode(out, wr);
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
	if (wr->flags & IBCHAN_WR_SGL) {
		work = container_of(out->wr.wr_cqe, struct ibchan_work, cqe);
		out = ibchan_sgl_split(work, out);
	}
	out->wr.next = &out[1].wr;
	return 0;
}

/*
 * Takes leading requests of those that are left for their queue, as long as they fit one chain. A
 * refusal ends it, too. Each WR points to the next one. Returns 0 or why the next request is
 * refused; @next is that one, @left counts it and those behind it, and @wrs the WRs.
 */
static __always_inline int build_chain(struct ibchan_channel *ch, bool recv,
				       const struct ibchan_wr **next, u32 *left, u32 *wrs,
				       struct ibchan_reason *reason)
{
	struct ibchan_queue *queue = recv ? &ch->recv : &ch->send;
	u32 first = queue->places.posted, room = *left;
	union ibchan_chain_wr *out = ch->chain.wrs;
	const struct ibchan_wr *wr = *next;
	int ret;

	*left = 0;
	if (unlikely(room > IBCHAN_CHAIN_WRS)) {
		*left = room - IBCHAN_CHAIN_WRS;
		room = IBCHAN_CHAIN_WRS;
	}
	ch->chain.free = ch->chain.sges;
	do {
		if (unlikely(wr->head & ch->bounds.odd)) {
			ret = build_odd(ch, queue, wr, out, room, reason);
			if (ret)
				break;
			out = &ch->chain.wrs[queue->places.posted - first];
		} else {
			ret = reserve(ch, queue, false, wr, out, room, reason);
			if (unlikely(ret))
				break;
			if (!recv)
				build_send(out, wr);
			ibchan_places_take(&queue->places, true);
			out++;
			out[-1].wr.next = &out->wr;
		}
		wr++;
	} while (--room && (wr->opcode == IBCHAN_OP_RECV) == recv);
	if (unlikely(ret == -ENOSPC) && queue->places.posted != first)
		ret = 0;
	if (unlikely(ch->chain.room))
		give_room_back(queue);
	*wrs = queue->places.posted - first;
	*next = wr;
	*left += room;
	if (likely(*wrs))
		out[-1].wr.next = NULL;
	return ret;
}

/* The device did not take the last @missing WRs. Returns how many requests are undone. */
static noinline u32 undo_posts(struct ibchan_queue *queue, u32 missing)
{
	struct ibchan_work *work;
	u32 places, undone;

	for (undone = 0; missing; undone++, missing -= places) {
		work = ibchan_work_at(queue, queue->places.posted - 1);
		places = work->flags & IBCHAN_WR_SGL ? ibchan_sgl_parts(work) + 1 : 1;
		if (places > missing) {
			/*
			 * The device has taken the first parts of a request, and uses its memory:
			 * the request is posted, and ends with its channel.
			 */
			queue->cut_at = queue->places.posted - missing;
			queue->cut = true;
			ibchan_channel_break_later(queue->channel, queue->channel->chain.error,
						   IBCHAN_STATUS_SUCCESS);
			break;
		}
		unreserve(queue, work);
		ibchan_cq_count_posted(queue->cq, -(int)places);
		ibchan_count(works_posted, -(int)places);
	}
	return undone;
}

static noinline int refuse_undone(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	int error = ch->chain.error;

	ch->chain.element = 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_POST_FAILED, error, (u64[3]) { -error });
}

static noinline int refuse_state(struct ibchan_channel *ch, u32 state, struct ibchan_reason *reason)
{
	int ret = ibchan_state_error(state, ibchan_channel_cause(ch));

	switch (ret) {
	case -ENOTCONN:
		return ibchan_refuse(reason, IBCHAN_REASON_NOT_CONNECTED, ret);
	case -ENODEV:
		return ibchan_refuse(reason, IBCHAN_REASON_DEVICE_GONE, ret);
	default:
		return ibchan_channel_refuse_broken(ch, reason);
	}
}

/*
 * Receives for what the peer sends first: in place before it can. Not during a
 * handshake with an endpoint, which may have to go back.
 */
static bool takes_early(const struct ibchan_channel *ch, u32 state, bool recv)
{
	if (state == IBCHAN_CHANNEL_PREPARED)
		return recv && READ_ONCE(ch->qp.ready);
	if (state != IBCHAN_CHANNEL_CONNECTING || !READ_ONCE(ch->cm))
		return false;
	/* The peer's first message may come before the connection manager's word. */
	return recv ? READ_ONCE(ch->qp.ready) :
		      READ_ONCE(ch->connected) && READ_ONCE(ch->recv.places.retired);
}

/*
 * Posts one chain. Returns 0 or why a request is refused; @next becomes that one, or the first of
 * those that are @left.
 */
static __always_inline int post_some(struct ibchan_channel *ch, bool recv,
				     const struct ibchan_wr **next, u32 *left,
				     struct ibchan_reason *reason)
{
	u32 state = smp_load_acquire(&ch->state); /* refuse_state() tells the error */
	u32 wrs, posted, undone;
	int ret;

	if (unlikely(state != IBCHAN_CHANNEL_CONNECTED) && !takes_early(ch, state, recv))
		return refuse_state(ch, state, reason);
	ibchan_fault_linger(IBCHAN_WINDOW_CHECKED);
	ret = build_chain(ch, recv, next, left, &wrs, reason);
	if (unlikely(!wrs))
		return ret;
	ibchan_count(works_posted, wrs);
	posted = ibchan_post_chain(ch->qp.ib, recv ? ch->recv.cq : ch->send.cq, &ch->chain, recv,
				   wrs);
	if (likely(posted == wrs))
		return ret;
	undone = undo_posts(recv ? &ch->recv : &ch->send, wrs - posted);
	*next -= undone;
	*left += undone;
	return undone ? refuse_undone(ch, reason) : ret;
}

static void reap_both(struct ibchan_channel *ch, void (*reap)(struct ibchan_cq *cq))
{
	struct ibchan_cq *send = ch->send.cq, *recv = ch->recv.cq;

	if (send->mode & IBCHAN_CQ_POST_REAPS)
		reap(send);
	if ((recv->mode & IBCHAN_CQ_POST_REAPS) && recv != send)
		reap(recv);
}

/*
 * A consumer that does not poll is called back when an event comes or, where it wants that, now. A
 * done() that posts to another cq makes this nest, which the stack allows a few times only.
 */
static noinline void after_post(struct ibchan_channel *ch)
{
	static DEFINE_PER_CPU(int, depth);
	struct ibchan_cq *send = ch->send.cq, *recv = ch->recv.cq;

	if (unlikely(ch->after_post != IBCHAN_AFTER_REAP)) {
		if (!(send->mode & (IBCHAN_CQ_POLLED | IBCHAN_CQ_POST_REAPS)))
			ibchan_cq_arm_only(send);
		if (!(recv->mode & (IBCHAN_CQ_POLLED | IBCHAN_CQ_POST_REAPS)) && recv != send)
			ibchan_cq_arm_only(recv);
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

static noinline void note_refusal(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 index,
				  int error, struct ibchan_reason *reason)
{
	if (reason) {
		reason->wr = index;
		reason->element = ch->chain.element;
	}
	ch->chain.element = 0;
	ibchan_history_refused(ch, error, reason ? reason->code : 0, wr->wr_id);
}

/**
 * ibchan_post - post work requests
 * @ch: the channel; RCU or the caller keeps its memory
 * @wrs: the requests, any mix
 * @num: how many
 * @accepted: how many leading ones were posted, also on an error; not NULL
 * @reason: why the next one was refused, with its index and element; or NULL
 *
 * An accepted request completes exactly once: by done() of its work, or through the sink of its cq.
 * Its ranges belong to the device until then. On a cq that is IBCHAN_CQ_POLLED the caller then
 * reaps, polls, waits or arms. Any other calls back by itself, mostly from a softirq; only on one
 * that is IBCHAN_CQ_POST_REAPS within this call, too, for what has completed already, of whichever
 * channel.
 *
 * A work that is IBCHAN_WR_UNSIGNALED ends when a later work of the send queue does that is not, or
 * with an error, or when the channel is broken; until then it keeps its place, and its ranges stay
 * busy. Posted by wr_id, it has no completion unless it fails. At least every second half of a
 * queue is signaled whatever the flags say, so that a queue cannot fill up for ever.
 *
 * Context: process or softirq, not with interrupts off.
 * Return: 0 when all were posted; else the errno of the first refused one: -EINVAL for an opcode
 * that is not one, a flag or number of elements that does not go with the opcode, a range outside
 * its region, more bytes than a message, the inline data or the remote region may have, an atomic
 * that is not of 8 aligned bytes, or no work where the cq has nowhere to put a completion, or a
 * work without done(); -EOPNOTSUPP for an unknown flag, for a read or an atomic to a peer that
 * serves none, or an atomic on a device that has none; -EXDEV for a region of another domain;
 * -EACCES for a region that does not allow the access; -EKEYREVOKED for one whose key a peer has
 * invalidated, as a completion has told; -EBUSY for a range that collides with one in flight
 * (IBCHAN_WR_EXCLUSIVE), and for a work that is in flight; -ENOENT for a region that is being given
 * up; -EAGAIN for a full queue or sink; -ENOTCONN before the handshake, for all but receives;
 * -ESHUTDOWN on a broken channel; -ENODEV when the device is gone; -EDEADLK with interrupts off;
 * other errnos of the sink's reserve() or of the driver.
 */
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason)
{
	const struct ibchan_wr *wr = wrs;
	u32 left = num;
	int ret = 0;

	/* The end of bottom halves would switch them on. */
	if (unlikely(irqs_disabled())) {
		*accepted = 0;
		return ibchan_refuse(reason, IBCHAN_REASON_INTERRUPTS_OFF, -EDEADLK);
	}
	if (ch->after_post & IBCHAN_AFTER_REAP)
		reap_both(ch, ibchan_callback_may_come);
	spin_lock_bh(&ch->post_lock);
	while (left && likely(!ret))
		ret = wr->opcode == IBCHAN_OP_RECV ?
		      post_some(ch, true, &wr, &left, reason) :
		      post_some(ch, false, &wr, &left, reason);
	*accepted = num - left;
	if (unlikely(ret))
		note_refusal(ch, wr, num - left, ret, reason);
	spin_unlock_bh(&ch->post_lock);
	if (ch->after_post && left != num)
		after_post(ch);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post, IBCHAN_NS);
