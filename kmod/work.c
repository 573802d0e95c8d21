// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting works. Under the post lock each request is checked and everything that
 * it needs is reserved; requests for the same queue are built into one chain and
 * posted at once. What the device did not take is undone from the end.
 *
 * Nearly all requests are plain and come one at a time, so these have a short way,
 * which is straight. A request that does not fit goes the long way (reserve.c), which is
 * also where a refused request learns why.
 */
#include <linux/errno.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "compat.h"
#include "counters.h"
#include "flow.h"
#include "post.h"
#include "slot.h"

/* Each takes some 300 bytes of stack, and what the consumer's done() needs. */
#define MAX_NESTED_REAPS	4

/* What few opcodes need besides. */
void ibchan_build_rare(union ibchan_send_wr *out, const struct ibchan_wr *wr)
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
		out->reg.access = mr->access;
		break;
	case IBCHAN_OP_INVALIDATE:
		out->wr.ex.invalidate_rkey = mr->key;
		break;
	}
}

static int send_flags(u8 flags, bool signal)
{
	int ret = signal ? IB_SEND_SIGNALED : 0;

	ret |= flags & IBCHAN_WR_FENCE ? IB_SEND_FENCE : 0;
	ret |= flags & IBCHAN_WR_SOLICITED ? IB_SEND_SOLICITED : 0;
	ret |= flags & IBCHAN_WR_INLINE ? IB_SEND_INLINE : 0;
	return ret;
}

static void build_flags(union ibchan_send_wr *out, const struct ibchan_wr *wr, bool signal)
{
	const struct ibchan_op *op = &ibchan_ops[wr->opcode];

	out->wr.send_flags = send_flags(wr->flags, signal);
	if (wr->flags & IBCHAN_WR_IMM) {
		out->wr.opcode = op->verb[1];
		out->wr.ex.imm_data = cpu_to_be32(wr->imm);
	}
	if (op->traits & (OP_ATOMIC | OP_SERVICE))
		ibchan_build_rare(out, wr);
}

static __always_inline void build_recv(struct ib_recv_wr *out, struct ib_cqe *cqe)
{
	out->wr_cqe = cqe;
}

/* Takes a place and all else for a request that is plain; false: nothing is taken. */
static __always_inline bool take_plain(struct ibchan_queue *queue, const struct ibchan_wr *wr,
				       struct ibchan_work *work, u8 opcode,
				       struct ib_sge *out)
{
	struct ibchan_sge *sge = wr->sges;
	struct ibchan_mr *mr;
	u32 number;

	if (unlikely(!work || !ibchan_credit_next(&queue->credit, &number)))
		return false;
	mr = sge->mr;
	if (unlikely(!ibchan_mr_get(mr)))
		return false;
	out->addr = mr->addr + sge->offset;
	out->length = sge->length;
	out->lkey = mr->lkey;
	work->cqe.done = ibchan_work_done;
	work->queue = queue;
	work->sges = sge;
	work->wr_id = wr->wr_id;
	work->number = number;
	work->num_sge = 1;
	work->opcode = opcode;
	work->flags = IBCHAN_WORK_PLAIN;
	queue->works[number & queue->credit.mask] = work;
	ibchan_credit_take_signaled(&queue->credit, number);
	trace_ibchan_post(work);
	return true;
}

static __always_inline bool take_plain_send(struct ibchan_channel *ch,
					    const struct ibchan_wr *wr,
					    struct ibchan_work *work, struct ib_sge *out)
{
	return likely(ibchan_send_is_plain(ch, wr, 0)) &&
	       take_plain(&ch->send, wr, work, wr->opcode, out);
}

static __always_inline bool take_plain_recv(struct ibchan_channel *ch,
					    const struct ibchan_wr *wr,
					    struct ibchan_work *work, struct ib_sge *out)
{
	return likely(ibchan_recv_is_plain(ch, wr, 0)) &&
	       take_plain(&ch->recv, wr, work, IBCHAN_OP_RECV, out);
}

static bool is_receive(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV;
}

static bool has_room(const struct ibchan_channel *ch, const struct ib_sge *sges)
{
	return sges != &ch->chain.sges[IBCHAN_CHAIN_SGES];
}

/* Returns how many elements the device sees; an errno. */
static noinline int add_any_send(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 union ibchan_send_wr *out, struct ib_sge *sges,
				 struct ibchan_reason *reason)
{
	struct ibchan_work *work;
	bool signal;
	int ret;

	ret = ibchan_work_reserve(&ch->send, wr, sges, &work, reason);
	if (ret < 0)
		return ret;
	signal = ibchan_credit_take(&ch->send.credit, !(wr->flags & IBCHAN_WR_UNSIGNALED));
	if (unlikely(ch->flow))
		ibchan_flow_take(ch->flow, wr->opcode, wr->flags);
	trace_ibchan_post(work);
	ibchan_build_send(out, wr, &work->cqe);
	build_flags(out, wr, signal);
	return ret;
}

static __always_inline int add_send(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				    union ibchan_send_wr *out, struct ib_sge *sges,
				    struct ibchan_reason *reason)
{
	if (unlikely(!has_room(ch, sges) || !take_plain_send(ch, wr, wr->work, sges)))
		return add_any_send(ch, wr, out, sges, reason);
	ibchan_build_send(out, wr, &wr->work->cqe);
	return 1;
}

static noinline int add_any_recv(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 struct ib_recv_wr *out, struct ib_sge *sges,
				 struct ibchan_reason *reason)
{
	struct ibchan_work *work;
	int ret;

	ret = ibchan_work_reserve(&ch->recv, wr, sges, &work, reason);
	if (ret < 0)
		return ret;
	ibchan_credit_take(&ch->recv.credit, true);
	trace_ibchan_post(work);
	build_recv(out, &work->cqe);
	return ret;
}

static __always_inline int add_recv(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				    struct ib_recv_wr *out, struct ib_sge *sges,
				    struct ibchan_reason *reason)
{
	if (unlikely(!has_room(ch, sges) || !take_plain_recv(ch, wr, wr->work, sges)))
		return add_any_recv(ch, wr, out, sges, reason);
	build_recv(out, &wr->work->cqe);
	return 1;
}

/*
 * Both builders take leading requests for their queue, as long as they fit one
 * chain, and return how many; a refusal ends it too, and is in chain.refused. Each
 * request points to the next one; the post ends the chain.
 */
static u32 build_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
		       struct ibchan_reason *reason)
{
	u32 max = min_t(u32, left, IBCHAN_CHAIN_WRS);
	u32 num = wr->work ? 0 : ibchan_slot_sends(ch, wr, max);
	union ibchan_send_wr *out = &ch->chain.send[num];
	const struct ibchan_wr *end = wr + max;
	struct ib_sge *sge = &ch->chain.sges[num];
	int ret;

	for (wr += num; wr < end && !is_receive(wr); wr++, num++) {
		ret = add_send(ch, wr, out, sge, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		out->wr.next = &out[1].wr;
		out->wr.sg_list = sge;
		out->wr.num_sge = ret;
		out++;
		sge += ret;
	}
	return num;
}

static u32 build_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
		       struct ibchan_reason *reason)
{
	u32 max = min_t(u32, left, IBCHAN_CHAIN_WRS);
	u32 num = wr->work ? 0 : ibchan_slot_recvs(ch, wr, max);
	struct ib_recv_wr *out = &ch->chain.recv[num];
	const struct ibchan_wr *end = wr + max;
	struct ib_sge *sge = &ch->chain.sges[num];
	int ret;

	for (wr += num; wr < end && is_receive(wr); wr++, num++) {
		ret = add_recv(ch, wr, out, sge, reason);
		if (unlikely(ret < 0)) {
			ch->chain.refused = ret;
			break;
		}
		out->next = out + 1;
		out->sg_list = sge;
		out->num_sge = ret;
		out++;
		sge += ret;
	}
	return num;
}

/* The device did not take the last @num requests. */
static noinline int undo_posts(struct ibchan_queue *queue, u32 num,
			       struct ibchan_reason *reason)
{
	int error = queue->channel->chain.error;

	atomic_sub(num, &queue->cq->in_flight);
	for (; num; num--)
		ibchan_work_unreserve(queue);
	if (reason)
		reason->element = 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_POST_FAILED, error,
				    (u64[3]) { -error });
}

/*
 * Posts the chain: how many leading requests the device has taken. The works count
 * as in flight before it has them, because they may be retired before the verb
 * returns.
 */
static __always_inline u32 post_sends(struct ibchan_channel *ch, u32 num,
				      struct ibchan_reason *reason)
{
	u32 posted;

	atomic_add(num, &ch->send.cq->in_flight);
	posted = ibchan_post_sends(ch->qp, &ch->chain, num);
	ibchan_count(works_posted, posted);
	if (unlikely(posted < num))
		ch->chain.refused = undo_posts(&ch->send, num - posted, reason);
	return posted;
}

static __always_inline u32 post_recvs(struct ibchan_channel *ch, u32 num,
				      struct ibchan_reason *reason)
{
	u32 posted;

	atomic_add(num, &ch->recv.cq->in_flight);
	posted = ibchan_post_recvs(ch->qp, &ch->chain, num);
	ibchan_count(works_posted, posted);
	if (unlikely(posted < num))
		ch->chain.refused = undo_posts(&ch->recv, num - posted, reason);
	return posted;
}

static int refuse_state(struct ibchan_channel *ch, u32 state, struct ibchan_reason *reason)
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
		return is_receive(wr) && READ_ONCE(ch->ready);
	if (state != IBCHAN_CHANNEL_CONNECTING || !READ_ONCE(ch->cm))
		return false;
	/* A peer whose message has come is connected, before word of that is here. */
	return is_receive(wr) ? READ_ONCE(ch->ready) :
				READ_ONCE(ch->connected) && READ_ONCE(ch->recv.credit.retired);
}

/* There can be too little room in a chain only behind others. */
static void forgive_room(struct ibchan_channel *ch, u32 num)
{
	if (unlikely(ch->chain.refused == -ENOSPC && num))
		ch->chain.refused = 0;
}

/*
 * How many leading requests were posted. Why not more is in chain.refused; one that
 * only found no room in a chain gets another.
 */
static u32 post_some(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left,
		     struct ibchan_reason *reason)
{
	u32 state = READ_ONCE(ch->state);
	u32 num;

	if (unlikely(state != IBCHAN_CHANNEL_CONNECTED) && !takes_early(ch, state, wr)) {
		ch->chain.refused = refuse_state(ch, state, reason);
		return 0;
	}
	ibchan_fault_linger(IBCHAN_WINDOW_CHECKED);
	if (is_receive(wr)) {
		num = build_recvs(ch, wr, left, reason);
		forgive_room(ch, num);
		return num ? post_recvs(ch, num, reason) : 0;
	}
	num = build_sends(ch, wr, left, reason);
	forgive_room(ch, num);
	return num ? post_sends(ch, num, reason) : 0;
}

/* The long way: as many as go, unless the device has refused already. */
static noinline int post_any(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
			     u32 *accepted, struct ibchan_reason *reason)
{
	int ret = ch->chain.refused;
	u32 total = 0;

	if (reason)
		reason->element = 0;
	while (total < num && !ret) {
		total += post_some(ch, wrs + total, num - total, reason);
		ret = ch->chain.refused;
	}
	*accepted = total;
	if (!ret)
		return 0;
	if (reason)
		reason->wr = total;
	ibchan_history_refused(ch, ret, reason ? reason->code : 0, wrs[total].wr_id);
	return ret;
}

/* Posts one request with another work than its own. */
static noinline int post_copy(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			      struct ibchan_work *work, struct ibchan_reason *reason)
{
	struct ibchan_wr copy = *wr;
	u32 accepted;

	copy.work = work;
	/* The caller is going to wait for its end. */
	copy.flags &= ~IBCHAN_WR_UNSIGNALED;
	return post_any(ch, &copy, 1, &accepted, reason);
}

static __always_inline u32 post_plain_send(struct ibchan_channel *ch,
					   const struct ibchan_wr *wr,
					   struct ibchan_work *work,
					   struct ibchan_reason *reason)
{
	union ibchan_send_wr *out = &ch->chain.send[0];

	ibchan_build_send(out, wr, &work->cqe);
	out->wr.sg_list = ch->chain.sges;
	out->wr.num_sge = 1;
	return post_sends(ch, 1, reason);
}

static __always_inline u32 post_plain_recv(struct ibchan_channel *ch, struct ibchan_work *work,
					   struct ibchan_reason *reason)
{
	struct ib_recv_wr *out = &ch->chain.recv[0];

	build_recv(out, &work->cqe);
	out->sg_list = ch->chain.sges;
	out->num_sge = 1;
	return post_recvs(ch, 1, reason);
}

/* The short way: false when it is not posted; if the device refused, chain.refused says so. */
static __always_inline bool post_plain(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				       struct ibchan_work *work, struct ibchan_reason *reason)
{
	if (unlikely(READ_ONCE(ch->state) != IBCHAN_CHANNEL_CONNECTED))
		return false;
	ibchan_fault_linger(IBCHAN_WINDOW_CHECKED);
	if (is_receive(wr))
		return take_plain_recv(ch, wr, work, ch->chain.sges) &&
		       post_plain_recv(ch, work, reason);
	return take_plain_send(ch, wr, work, ch->chain.sges) &&
	       post_plain_send(ch, wr, work, reason);
}

/* As post_plain(), by wr_id: @wr brings no work. */
static __always_inline bool post_slot(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				      struct ibchan_reason *reason)
{
	if (unlikely(READ_ONCE(ch->state) != IBCHAN_CHANNEL_CONNECTED))
		return false;
	ibchan_fault_linger(IBCHAN_WINDOW_CHECKED);
	if (is_receive(wr))
		return ibchan_slot_recv(ch, wr) && post_recvs(ch, 1, reason);
	return ibchan_slot_send(ch, wr) && post_sends(ch, 1, reason);
}

static void reap_both(struct ibchan_channel *ch, void (*reap)(struct ibchan_cq *cq))
{
	struct ibchan_cq *send = ch->send.cq, *recv = ch->recv.cq;

	if (!(send->mode & IBCHAN_CQ_POLLED))
		reap(send);
	if (!(recv->mode & IBCHAN_CQ_POLLED) && recv != send)
		reap(recv);
}

/*
 * A consumer that does not poll is called back: now, or when an event comes. A done()
 * that posts to another cq makes this nest, which the stack allows a few times only.
 */
static noinline void after_post(struct ibchan_channel *ch)
{
	static DEFINE_PER_CPU(int, depth);

	if (unlikely(ch->after_post != IBCHAN_AFTER_REAP)) {
		ibchan_flow_tell(ch);
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

/* As post_any(), for one request. */
static noinline int post_any_one(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 struct ibchan_reason *reason)
{
	u32 accepted;

	return post_any(ch, wr, 1, &accepted, reason);
}

/**
 * ibchan_post_by_id - post one work request by wr_id
 * @ch: the channel; RCU or the caller keeps its memory
 * @wr: the request, without a work
 * @reason: why not, or NULL
 *
 * As ibchan_post().
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
 */
int ibchan_post_by_id(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		      struct ibchan_reason *reason)
{
	int ret = 0;

	spin_lock_bh(&ch->post_lock);
	ch->chain.refused = 0;
	if (unlikely(!post_slot(ch, wr, reason)))
		ret = post_any_one(ch, wr, reason);
	spin_unlock_bh(&ch->post_lock);
	if (ch->after_post && !ret)
		after_post(ch);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post_by_id, IBCHAN_NS);

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
 * back by itself: for what has completed already mostly before this returns, for the
 * rest mostly from a softirq.
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
 * where the cq has nowhere to put a completion; -EOPNOTSUPP for an unknown flag, or
 * an atomic on a device that has none; -EXDEV for a region of another domain;
 * -EACCES for a region that does not allow the access; -EBUSY for a range that
 * collides with one in flight (IBCHAN_WR_EXCLUSIVE); -ENOENT for a region that is
 * being given up; -EAGAIN for a full queue or sink, and for a message that the peer
 * has no receive for (IBCHAN_MODE_CREDITS); -ENOTCONN before the handshake, for all
 * but receives; -ESHUTDOWN on a broken channel; -ENODEV when the device is gone; what
 * else the sink's reserve() or the driver answers.
 */
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason)
{
	int ret = 0;

	if (num == 1 && !wrs->work) {
		ret = ibchan_post_by_id(ch, wrs, reason);
		*accepted = !ret;
		return ret;
	}
	*accepted = 1;
	spin_lock_bh(&ch->post_lock);
	ch->chain.refused = 0;
	if (unlikely(num != 1 || !post_plain(ch, wrs, wrs->work, reason)))
		ret = post_any(ch, wrs, num, accepted, reason);
	spin_unlock_bh(&ch->post_lock);
	if (ch->after_post && *accepted)
		after_post(ch);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post, IBCHAN_NS);

/**
 * ibchan_post_work - post one request that the caller waits for
 * @ch: the channel
 * @wr: the request; its own work is not looked at, and it is signaled
 * @work: stands for it; done() is set
 * @reason: why not, or NULL
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
 */
int ibchan_post_work(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		     struct ibchan_work *work, struct ibchan_reason *reason)
{
	int ret = 0;

	spin_lock_bh(&ch->post_lock);
	ch->chain.refused = 0;
	if (unlikely(!post_plain(ch, wr, work, reason)))
		ret = post_copy(ch, wr, work, reason);
	spin_unlock_bh(&ch->post_lock);
	if (ch->after_post && !ret)
		after_post(ch);
	return ret;
}
