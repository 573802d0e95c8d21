// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flow control by credits: a message is posted only when the peer has a receive for
 * it, so that no device ever finds a message without one.
 *
 * Each side has a word in kernel memory that its peer writes: how many receives the
 * peer has ever posted. A side that has sent fewer messages may send. The word is written by
 * an RDMA write from a place of the send queue that no work ever takes. There is one
 * such write at a time; when it has completed and there are more receives by then,
 * the next one follows. As it completes in the channel's send cq, that cq is armed
 * whenever one is in flight, even if its consumer polls it.
 *
 * A write from the peer makes no event here. A sender without credit looks at the word
 * again and again, with pauses that grow.
 *
 * The region belongs to the channel and outlives the queue pair, since the peer may
 * write as long as there is one. Registering and giving it back go through the
 * domain's service, hence both happen without the gate.
 */
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "flow.h"
#include "parts.h"
#include "post.h"

/* One write at a time. */
#define TELL_PLACES	1

/* How long a waiter looks without a pause; then pauses, from the first to the longest. */
#define LOOK_NS		(10 * NSEC_PER_USEC)
#define PAUSE_FIRST_NS	(20 * NSEC_PER_USEC)
#define PAUSE_LAST_NS	NSEC_PER_MSEC

/* On a device that registers no memory of the kernel's, there is none to count credits in. */
static int check(const struct ibchan_build *build, const struct ibchan_params *params,
		 struct ibchan_reason *reason)
{
	const struct ibchan_device_attr *attr = &build->pd->dev->attr;
	u32 depth = ibchan_params_max_depth(attr) - TELL_PLACES;

	if (!(build->options.mode & IBCHAN_MODE_CREDITS))
		return 0;
	if (!attr->max_fast_reg_pages)
		return ibchan_refuse_values(reason, IBCHAN_REASON_MODE, -EOPNOTSUPP,
					    (u64[3]) { build->options.mode, 0 });
	if (!(params->access & IBCHAN_ACCESS_REMOTE_WRITE))
		return ibchan_refuse_values(reason, IBCHAN_REASON_CREDIT_ACCESS, -EACCES,
					    (u64[3]) { params->access,
						      IBCHAN_ACCESS_REMOTE_WRITE });
	if (params->max_send_wr <= depth)
		return 0;
	if (reason)
		reason->element = IBCHAN_PARAMETER_MAX_SEND_WR;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PARAMETER, -EINVAL,
				    (u64[3]) { params->max_send_wr, 1, depth });
}

/* Its users are the region, and the channel for as long as anyone may read that. */
static void flow_put(struct ibchan_flow *flow)
{
	if (!refcount_dec_and_test(&flow->users))
		return;
	kfree(flow->area);
	kfree(flow);
}

static void flow_release(struct ibchan_backing *backing)
{
	flow_put(container_of(backing, struct ibchan_flow, backing));
}

static const struct ibchan_credit_ops credit_ops;

static struct ibchan_flow *flow_alloc(struct ibchan_channel *ch)
{
	struct ibchan_flow *flow = kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);

	if (!flow)
		return NULL;
	flow->backing.release = flow_release;
	flow->ch = ch;
	refcount_set(&flow->users, 1);
	flow->area = kzalloc(sizeof(*flow->area), GFP_KERNEL_ACCOUNT);
	if (flow->area)
		return flow;
	kfree(flow);
	return NULL;
}

static int make(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	struct ibchan_flow *flow;
	struct ibchan_mr *mr;

	if (!(ch->options.mode & IBCHAN_MODE_CREDITS))
		return 0;
	flow = flow_alloc(ch);
	if (!flow)
		return -ENOMEM;
	mr = ibchan_mr_reg_kernel(ch->qp.pd, flow->area, sizeof(*flow->area),
				  IBCHAN_ACCESS_LOCAL_WRITE | IBCHAN_ACCESS_REMOTE_WRITE,
				  reason);
	if (IS_ERR(mr)) {
		flow_put(flow);
		return PTR_ERR(mr);
	}
	refcount_inc(&flow->users);
	mr->backing = &flow->backing;
	flow->mr = mr;
	ch->flow = flow;
	ch->credit_ops = &credit_ops;
	ch->after_post |= IBCHAN_AFTER_TELL;
	ch->send.spare += TELL_PLACES;
	return 0;
}

static void end(struct ibchan_channel *ch)
{
	struct ibchan_mr *mr = ch->flow ? ch->flow->mr : NULL;

	if (!mr)
		return;
	ibchan_mr_put(mr, NULL, NULL);
}

static void free_flow(struct ibchan_channel *ch)
{
	if (ch->flow)
		flow_put(ch->flow);
}

/**
 * ibchan_flow_own - what the peer needs to grant credits
 * @ch: the channel
 * @addr: of the word that it writes; 0 where the channel counts none
 * @rkey: key to it; 0 where the channel counts none
 */
void ibchan_flow_own(const struct ibchan_channel *ch, __be64 *addr, __be32 *rkey)
{
	const struct ibchan_mr *mr = ch->flow ? ch->flow->mr : NULL;

	*addr = mr ? cpu_to_be64(mr->addr + offsetof(struct ibchan_flow_area, theirs)) : 0;
	*rkey = mr ? cpu_to_be32(mr->rkey) : 0;
}

/**
 * ibchan_flow_peer - where the peer is told of receives
 * @ch: the channel, connecting
 * @addr: as the peer's ibchan_flow_own() gave it, checked by ibchan_endpoint_check() or
 *	ibchan_cm_data_check()
 * @rkey: the same
 *
 * Context: process, under the qp lock.
 */
void ibchan_flow_peer(struct ibchan_channel *ch, __be64 addr, __be32 rkey)
{
	lockdep_assert_held(&ch->qp.lock);
	if (!ch->flow)
		return;
	spin_lock_bh(&ch->post_lock);
	ch->flow->peer_addr = be64_to_cpu(addr);
	ch->flow->peer_rkey = be32_to_cpu(rkey);
	spin_unlock_bh(&ch->post_lock);
}

static int post_tell(struct ibchan_flow *flow, u32 total)
{
	struct ib_sge sge = {
		.addr = flow->mr->addr + offsetof(struct ibchan_flow_area, ours),
		.length = sizeof(flow->area->ours),
		.lkey = flow->mr->lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &flow->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = flow->peer_addr,
		.rkey = flow->peer_rkey,
	};

	flow->area->ours = (struct ibchan_flow_word){
		.total = cpu_to_be32(total),
		.inverse = cpu_to_be32(~total),
	};
	return ibchan_post_tell(flow->ch->qp.ib, &wr);
}

/* The next completion of any kind is to be reaped. The next reaper asks for the event. */
static void want_event(struct ibchan_cq *cq)
{
	set_bit(CQ_WANTED, &cq->flags);
	set_bit(CQ_ARM, &cq->flags);
}

static void tell_done(struct ib_cq *ib, struct ib_wc *wc);

/*
 * Under the post lock. Returns whether a write was posted. A channel whose write cannot be
 * posted breaks: its peer would wait for credit in vain.
 */
static bool tell(struct ibchan_flow *flow)
{
	struct ibchan_channel *ch = flow->ch;
	u32 total = ch->recv.credit.posted;
	int ret;

	lockdep_assert_held(&ch->post_lock);
	if (flow->telling || flow->told == total ||
	    READ_ONCE(ch->state) != IBCHAN_CHANNEL_CONNECTED)
		return false;
	flow->cqe.done = tell_done;
	WRITE_ONCE(flow->telling, 1);
	atomic_inc(&ch->send.cq->in_flight);
	atomic_inc(&ch->send.cq->unsolicited);
	ret = post_tell(flow, total);
	if (!ret) {
		flow->told = total;
		return true;
	}
	atomic_dec(&ch->send.cq->unsolicited);
	atomic_dec(&ch->send.cq->in_flight);
	WRITE_ONCE(flow->telling, 0);
	/* Under the lock, and maybe within a post. */
	ibchan_channel_break_later(ch, ret, IBCHAN_STATUS_SUCCESS);
	return false;
}

/* The write has ended, well or badly. Under the right to reap the cq. */
static void end_tell(struct ibchan_flow *flow)
{
	struct ibchan_cq *cq = flow->ch->send.cq;

	atomic_dec(&cq->unsolicited);
	cq->retired++;
}

static void tell_done(struct ib_cq *ib, struct ib_wc *wc)
{
	struct ibchan_flow *flow = container_of(wc->wr_cqe, struct ibchan_flow, cqe);
	struct ibchan_channel *ch = flow->ch;
	bool again;

	/* Another completion of it would count twice. */
	flow->cqe.done = NULL;
	end_tell(flow);
	if (wc->status != IB_WC_SUCCESS)
		ibchan_channel_fail_send(ch, wc);
	spin_lock_bh(&ch->post_lock);
	WRITE_ONCE(flow->telling, 0);
	again = tell(flow);
	spin_unlock_bh(&ch->post_lock);
	if (again)
		want_event(ch->send.cq);
}

/**
 * ibchan_flow_tell - tell the peer of receives that it does not know of
 * @ch: the channel, which counts credits
 *
 * When it is being told already, the completion of that does the rest.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_flow_tell(struct ibchan_channel *ch)
{
	struct ibchan_flow *flow = ch->flow;
	bool told;

	/* The code that clears it looks at the receives behind that, under the lock. */
	if (READ_ONCE(flow->telling))
		return;
	spin_lock_bh(&ch->post_lock);
	told = tell(flow);
	spin_unlock_bh(&ch->post_lock);
	if (!told)
		return;
	want_event(ch->send.cq);
	ibchan_cq_arm_only(ch->send.cq);
}

/* Ends a write that the device has forgotten. */
static void flush(struct ibchan_channel *ch)
{
	struct ibchan_flow *flow = ch->flow;

	if (!flow || !flow->telling)
		return;
	flow->telling = 0;
	end_tell(flow);
}

/* The word may be half written just now: then what it said before holds. */
static u32 flow_granted(const struct ibchan_flow *flow)
{
	const u64 *raw = (const u64 *)&flow->area->theirs;
	union {
		u64 raw;
		struct ibchan_flow_word word;
	} read = { .raw = READ_ONCE(*raw) };
	u32 total = be32_to_cpu(read.word.total);

	return total == ~be32_to_cpu(read.word.inverse) ? total : READ_ONCE(flow->granted);
}

/**
 * ibchan_flow_left - messages that the peer has receives for
 * @flow: of the channel
 *
 * The device writes the word; what does not reach the cpu by itself was refused when
 * the region was registered. A peer that grants nonsense is told no more than that.
 *
 * Context: any.
 */
u32 ibchan_flow_left(struct ibchan_flow *flow)
{
	s32 left = flow_granted(flow) - READ_ONCE(flow->ch->sent);

	return max(left, 0);
}

/* Is there no credit for a message? Under the post lock. */
static int refuse(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	struct ibchan_flow *flow = ch->flow;
	u32 granted = flow_granted(flow);

	WRITE_ONCE(flow->granted, granted);
	if ((s32)(granted - flow->ch->sent) > 0)
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PEER_CREDITS, -EAGAIN,
				    (u64[3]) { flow->ch->sent, granted });
}

/**
 * ibchan_channel_credits - how many messages a channel may send now
 * @ch: the channel; RCU or the caller keeps its memory
 *
 * Context: any.
 * Return: messages that the peer has receives for and that were not posted yet;
 * -EOPNOTSUPP where credits are not counted; -ENOTCONN before the handshake;
 * -ESHUTDOWN on a broken channel; -ENODEV when the device is gone.
 */
int ibchan_channel_credits(struct ibchan_channel *ch)
{
	u32 state = ibchan_channel_state(ch);
	int ret = ibchan_state_error(state, ibchan_channel_cause(ch));

	if (!ch->flow)
		return -EOPNOTSUPP;
	return ret ?: min_t(u32, ibchan_flow_left(ch->flow), INT_MAX);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_credits, IBCHAN_NS);

/*
 * A poll, because what a peer writes makes no event. The condition is looked at
 * without a pause first, then with pauses that double up to the longest.
 */
static int poll_until(int (*look)(void *arg), void *arg, ktime_t deadline, unsigned int state)
{
	ktime_t now = ktime_get();
	ktime_t pause_from = ktime_add_ns(now, LOOK_NS);
	u64 pause = PAUSE_FIRST_NS;
	ktime_t end;
	int ret;

	for (;; now = ktime_get()) {
		ret = look(arg);
		if (ret)
			return ret;
		if (ktime_compare(now, deadline) >= 0)
			return -ETIMEDOUT;
		if (signal_pending_state(state, current))
			return -EINTR;
		if (ktime_before(now, pause_from)) {
			cond_resched();
			cpu_relax();
			continue;
		}
		end = ktime_add_ns(now, pause);
		if (ktime_after(end, deadline))
			end = deadline;
		set_current_state(state);
		schedule_hrtimeout(&end, HRTIMER_MODE_ABS);
		pause = min_t(u64, 2 * pause, PAUSE_LAST_NS);
	}
}

/* A channel that takes no work says so when it is posted to. */
static int may_try_again(void *arg)
{
	return ibchan_channel_credits(arg);
}

/*
 * Waits until a message is worth another try. Returns 0 when there is credit, or the channel
 * takes no more work; -ETIMEDOUT; -EINTR when the caller is killed.
 */
static int wait(struct ibchan_channel *ch, ktime_t deadline)
{
	int ret = poll_until(may_try_again, ch, deadline, TASK_KILLABLE);

	return ret == -ETIMEDOUT || ret == -EINTR ? ret : 0;
}

/**
 * ibchan_credits_wait - look again and again until there is credit
 * @look: returns 0 to go on, a positive number when there is credit, or a negative
 *	errno to give up; must not sleep
 * @arg: for @look
 * @timeout_ns: how long; negative: no limit; 0: look once
 *
 * For a caller that finds its channel by handle each time; others call
 * ibchan_channel_wait_credits().
 *
 * Context: process, may sleep.
 * Return: what @look returned, if not 0; -ETIMEDOUT; -EINTR when a signal is pending.
 */
int ibchan_credits_wait(int (*look)(void *arg), void *arg, s64 timeout_ns)
{
	ktime_t deadline = KTIME_MAX;

	might_sleep();
	if (timeout_ns >= 0)
		deadline = ktime_add_safe(ktime_get(), timeout_ns);
	return poll_until(look, arg, deadline, TASK_INTERRUPTIBLE);
}
EXPORT_SYMBOL_NS_GPL(ibchan_credits_wait, IBCHAN_NS);

/**
 * ibchan_channel_wait_credits - wait until a channel may send
 * @ch: the channel; not closed meanwhile
 * @timeout_ns: how long; negative: no limit; 0: look once
 *
 * What a peer writes makes no event: this looks at the counter for a moment, then
 * with pauses that grow from 20 us to 1 ms.
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_credits(), but 0; -ETIMEDOUT; -EINTR when a signal is
 * pending.
 */
int ibchan_channel_wait_credits(struct ibchan_channel *ch, s64 timeout_ns)
{
	return ibchan_credits_wait(may_try_again, ch, timeout_ns);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_wait_credits, IBCHAN_NS);

static const struct ibchan_credit_ops credit_ops = {
	.refuse = refuse,
	.tell = ibchan_flow_tell,
	.wait = wait,
};

static void describe(const struct ibchan_channel *ch, struct ibchan_endpoint *endpoint)
{
	ibchan_flow_own(ch, &endpoint->credit_addr, &endpoint->credit_rkey);
}

static void agree(struct ibchan_channel *ch, const struct ibchan_endpoint *peer)
{
	ibchan_flow_peer(ch, peer->credit_addr, peer->credit_rkey);
}

static void connected(struct ibchan_channel *ch, const struct ibchan_endpoint *peer)
{
	if (ch->flow)
		ibchan_flow_tell(ch);
}

const struct ibchan_channel_part ibchan_flow_part = {
	.check = check,
	.make = make,
	.describe = describe,
	.agree = agree,
	.connected = connected,
	.flush = flush,
	.end = end,
	.free = free_flow,
};
