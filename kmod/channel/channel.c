// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels: handshake, query, close. How a channel is built is in build.c, how it breaks in
 * break.c.
 *
 * Closing drains, destroys the queue pair, retires what the device forgot, and gives up
 * memory last. Removal of the device does the same from the outside and leaves a shell for
 * ibchan_channel_close().
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "private.h"
#include "compat.h"
#include "counters.h"
#include "fault.h"

/* What both sides can. */
static void agree(struct ibchan_channel *ch, const struct ibchan_endpoint *peer)
{
	struct ibchan_params *params = &ch->qp.params;
	u32 peer_mtu = ib_mtu_enum_to_int(peer->mtu);

	params->mtu = min(params->mtu, peer_mtu);
	params->max_rd_atomic = min_t(u32, params->max_rd_atomic, peer->max_dest_rd_atomic);
	if (params->recv_psn == IBCHAN_AUTO)
		params->recv_psn = be32_to_cpu(peer->psn);
}

/* Receives that are posted already would be lost on the way back. */
static void undo_connect(struct ibchan_channel *ch, int error)
{
	ibchan_channel_await_posters(ch);
	if (ibchan_credit_in_flight(&ch->recv.credit)) {
		ibchan_channel_break(ch, error);
		return;
	}
	ibchan_qp_rewind(&ch->qp);
	ibchan_channel_change_state(ch, IBCHAN_CHANNEL_PREPARED);
}

static int check_own_gid(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	if (ibchan_gid_still_there(ch->qp.dev->ib, ch->qp.net, &ch->qp.gid))
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_GID_GONE, -EADDRNOTAVAIL,
				    (u64[3]) { ch->qp.gid.port, ch->qp.gid.index });
}

static int refuse_broken(const struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_BROKEN, -ESHUTDOWN,
				    (u64[3]) { READ_ONCE(ch->error), READ_ONCE(ch->status) });
}

/* The channel may have been broken meanwhile; its work item waits for the queue pair's lock. */
static int connect_qp(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
		      struct ibchan_reason *reason)
{
	struct ibchan_params before = ch->qp.params;
	int ret;

	agree(ch, peer);
	ret = check_own_gid(ch, reason);
	if (!ret)
		ret = ibchan_qp_connect(&ch->qp, peer, reason);
	if (ret) {
		ch->qp.params = before;
		undo_connect(ch, ret);
		return ret;
	}
	ibchan_parts_call(agree, ch, peer);
	ch->connected = 1;
	if (ibchan_channel_change_state(ch, IBCHAN_CHANNEL_CONNECTED)) {
		ch->peer = *peer;
		ibchan_history_add(ch, IBCHAN_HISTORY_CONNECTED, 0, be32_to_cpu(peer->qpn),
				   ch->qp.params.mtu);
		ibchan_parts_call(connected, ch, peer);
		return 0;
	}
	return refuse_broken(ch, reason);
}

/**
 * ibchan_channel_check_prepared - may a channel begin to connect?
 * @ch: the channel
 * @reason: why not, or NULL
 *
 * Context: any; under the qp lock only a break can change the answer.
 * Return: 0; -EISCONN; -ESHUTDOWN on a broken channel.
 */
int ibchan_channel_check_prepared(const struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	switch (READ_ONCE(ch->state)) {
	case IBCHAN_CHANNEL_PREPARED:
		return 0;
	case IBCHAN_CHANNEL_CONNECTING:
	case IBCHAN_CHANNEL_CONNECTED:
		return -EISCONN;
	default:
		return refuse_broken(ch, reason);
	}
}

/**
 * ibchan_channel_begin - a prepared channel begins to connect
 * @ch: the channel
 * @reason: why not, or NULL
 *
 * Context: process, under the qp lock.
 * Return: 0; -EISCONN; -ESHUTDOWN on a broken channel.
 */
int ibchan_channel_begin(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	lockdep_assert_held(&ch->qp.lock);
	if (ibchan_channel_change_state(ch, IBCHAN_CHANNEL_CONNECTING))
		return 0;
	return ibchan_channel_check_prepared(ch, reason);
}

static int connect_by_path(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
			   const struct ibchan_path *path, struct ibchan_reason *reason)
{
	int ret;

	guard(ibchan_qp)(&ch->qp);
	ret = ibchan_channel_begin(ch, reason);
	if (ret)
		return ret;
	ch->qp.path = *path;
	ret = connect_qp(ch, peer, reason);
	wake_up_all(&ch->state_wait);
	return ret;
}

static int channel_handshake(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason)
{
	struct ibchan_path path = {};
	int ret;

	if (ch->qp.gid.iwarp)
		return ibchan_refuse(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP);
	ret = ibchan_endpoint_check(&ch->qp.endpoint, peer, ch->qp.gid.max_lid, reason);
	if (ret)
		return ret;
	ret = ibchan_channel_check_prepared(ch, reason);
	if (!ret)
		ret = check_own_gid(ch, reason);
	if (!ret)
		ret = ibchan_route_find(&ch->qp, peer, &path, reason);
	/* It does not say of what. */
	if (ret == -ESHUTDOWN)
		return ibchan_channel_check_prepared(ch, reason) ?: ret;
	return ret ?: connect_by_path(ch, peer, &path, reason);
}

/**
 * ibchan_channel_handshake - connect a channel to its peer
 * @ch: the prepared channel
 * @peer: the peer's endpoint: any bytes, all are checked
 * @reason: which field does not fit, with both values; or NULL
 *
 * A channel may be its own peer.
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP on iWARP, where only ibchan_channel_connect() and
 * ibchan_request_accept() connect; -EINVAL for a peer that does not fit, with nothing
 * changed; -EADDRNOTAVAIL when the channel's own address has been taken away; -EHOSTUNREACH
 * when there is no route to the peer, or its next hop does not answer within 2 s; -EINTR
 * when the caller is killed meanwhile; -EISCONN when it is connected already; -ESHUTDOWN
 * on a broken channel; -ENODEV when the device is gone; the driver's errno, when the
 * handshake may be tried again, unless receives were posted: then the channel is broken.
 */
int ibchan_channel_handshake(struct ibchan_channel *ch,
			     const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason)
{
	struct ibchan_reason own = {};
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	reason = reason ?: &own;
	ret = channel_handshake(ch, peer, reason);
	if (ret)
		ibchan_history_add(ch, IBCHAN_HISTORY_HANDSHAKE, ret, reason->code, 0);
	ibchan_device_exit(ch->qp.dev);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_handshake, IBCHAN_NS);

/**
 * ibchan_channel_query - how a channel fares
 * @ch: the channel
 * @attr: filled
 *
 * Context: process, may sleep.
 */
void ibchan_channel_query(struct ibchan_channel *ch, struct ibchan_channel_attr *attr)
{
	u32 state;

	ibchan_qp_lock(&ch->qp);
	state = ibchan_channel_state(ch);
	*attr = (struct ibchan_channel_attr){
		.state = state,
		.error = READ_ONCE(ch->error),
		.status = READ_ONCE(ch->status),
		.sends_in_flight = ibchan_credit_in_flight(&ch->send.credit),
		.recvs_in_flight = ibchan_credit_in_flight(&ch->recv.credit),
		.params = ch->qp.params,
		.endpoint = ch->qp.endpoint,
		.options = ch->options,
	};
	ibchan_qp_unlock(&ch->qp);
	ibchan_facts_fill(ch, &attr->facts);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_query, IBCHAN_NS);

/**
 * ibchan_channel_state - where a channel is
 * @ch: the channel; RCU or the caller keeps its memory
 *
 * Context: any.
 * Return: enum ibchan_channel_state.
 */
u32 ibchan_channel_state(const struct ibchan_channel *ch)
{
	/* Pairs with ibchan_channel_move_state(): the error of a broken channel is there. */
	return smp_load_acquire(&ch->state);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_state, IBCHAN_NS);

/* After this no call posts, and no break is under way or can begin. */
static void refuse_all(struct ibchan_channel *ch, bool device_gone)
{
	unsigned long flags;

	spin_lock_irqsave(&ch->state_lock, flags);
	if (device_gone) {
		WRITE_ONCE(ch->device_gone, true);
		WRITE_ONCE(ch->error, ch->error ?: ENODEV);
	}
	if (ibchan_channel_move_state(ch, IBCHAN_CHANNEL_CLOSED))
		ibchan_history_add(ch, IBCHAN_HISTORY_CLOSED, device_gone ? ENODEV : 0, 0, 0);
	spin_unlock_irqrestore(&ch->state_lock, flags);
	ibchan_channel_await_posters(ch);
	/* Both are queued only once it has broken. */
	if (!ch->on_cqs)
		return;
	cancel_work_sync(&ch->cause_work);
	cancel_work_sync(&ch->break_work);
}

/* The channel is closed, so that it does not break any more. */
static void forget_broken(struct ibchan_channel *ch)
{
	if (!ch->on_cqs)
		return;
	ibchan_cq_drop_broken(ch->send.cq);
	ibchan_cq_drop_broken(ch->recv.cq);
}

/*
 * A channel without works is closed by destroying its queue pair: that flushes nothing, and
 * ends the peer's access to our memory. No poster comes any more.
 */
static bool has_to_drain(const struct ibchan_channel *ch)
{
	return ibchan_channel_has_posted(ch) && (ch->cm || !ibchan_channel_is_unused(ch));
}

/* Returns the driver's errno; in @idle, whether the device has forgotten what was posted. */
static int end_qp(struct ibchan_channel *ch, unsigned long deadline, bool *idle)
{
	bool drains = has_to_drain(ch);
	int ret;

	*idle = !drains || !ibchan_drain(ch, deadline);
	ibchan_parts_call(forget_marker, ch);
	/* A query of the queue pair runs under this lock: none begins behind it. */
	ibchan_qp_lock(&ch->qp);
	ret = ibchan_qp_destroy(&ch->qp);
	if (!ret)
		ch->qp.ib = NULL;
	ibchan_qp_unlock(&ch->qp);
	/* It stays, and peers must not reach our memory by it. */
	if (ret && !drains && ch->connected)
		*idle = !ibchan_drain(ch, deadline);
	return ret;
}

/**
 * ibchan_channel_stop - take the verbs objects of a channel apart
 * @ch: the channel
 * @device_gone: that is why; later posts say so
 * @deadline: of the drain, in jiffies
 *
 * Context: process, may sleep; inside the gate, or it is closed. Done once.
 */
void ibchan_channel_stop(struct ibchan_channel *ch, bool device_gone, unsigned long deadline)
{
	bool idle;
	int ret;

	guard(ibchan_noio)();
	refuse_all(ch, device_gone);
	ibchan_fault_linger(IBCHAN_WINDOW_REFUSING);
	if (!ch->qp.ib)
		return;
	ibchan_parts_call(stop, ch);
	ret = end_qp(ch, deadline, &idle);
	ch->qp.ib = NULL;
	if (ret)
		ibchan_channel_leak(ch);
	if (!ret || idle) {
		ibchan_queue_retire_rest(&ch->send);
		ibchan_queue_retire_rest(&ch->recv);
	}
	if (ret)
		return;
	forget_broken(ch);
	ibchan_channel_release_queue(&ch->send);
	ibchan_channel_release_queue(&ch->recv);
	ibchan_mr_unpark(&ch->parked);
	if (!ch->bounds.service)
		ibchan_pd_drop(ch->qp.pd);
	ibchan_gauge(channels, -1);
}

/* Channels that broke together drain together, however many there are. */
static unsigned long drain_deadline(const struct ibchan_channel *ch)
{
	unsigned long start = ch->broken_at ?: jiffies;

	return start + IBCHAN_DRAIN_TIMEOUT;
}

static void channel_free(struct rcu_head *rcu)
{
	struct ibchan_channel *ch = container_of(rcu, struct ibchan_channel, rcu);

	ibchan_parts_call(free, ch);
	ibchan_history_free(&ch->history);
	ibchan_cost_pay_back(&ch->cost);
	kmem_cache_free(ibchan_channel_cache, ch);
}

/**
 * ibchan_channel_end - close a channel here and now
 * @ch: the channel; not to be used any more
 *
 * Context: process, may sleep.
 * Return: whether the device has let go of it.
 */
bool ibchan_channel_end(struct ibchan_channel *ch)
{
	struct ibchan_device *dev = ch->qp.dev;

	ibchan_gate_enter_to_end(&dev->gate);
	ibchan_channel_stop(ch, false, drain_deadline(ch));
	if (!ch->leaked) {
		mutex_lock(&dev->lock);
		ibchan_parts_call(unlist, ch);
		list_del(&ch->link);
		mutex_unlock(&dev->lock);
	}
	ibchan_gate_exit(&dev->gate);
	if (ch->leaked)
		return false;
	ibchan_parts_call(end, ch);
	call_rcu(&ch->rcu, channel_free);
	ibchan_device_put(dev);
	return true;
}

/* Channels that were closed in atomic context and are not gone, by ibchan_flush()'s turns. */
static DEFINE_SPINLOCK(closing_lock);	/* the turn; interrupts off */
static atomic_t closing[2];
static u32 closing_turn;

void ibchan_channel_close_work(struct work_struct *work)
{
	struct ibchan_channel *ch = container_of(work, struct ibchan_channel, close_work);
	atomic_t *num = &closing[ch->closing_turn];

	ibchan_channel_end(ch);
	if (atomic_dec_and_test(num))
		wake_up_var(num);
}

/* The connection manager's workers, which have no rescuer, take part in the end of an id. */
static void close_later(struct ibchan_channel *ch)
{
	unsigned long flags;

	spin_lock_irqsave(&closing_lock, flags);
	ch->closing_turn = closing_turn;
	atomic_inc(&closing[closing_turn]);
	spin_unlock_irqrestore(&closing_lock, flags);
	queue_work(READ_ONCE(ch->cm) ? ibchan_slow_wq : ibchan_free_wq, &ch->close_work);
}

/* With PREEMPT_RT a spinlock leaves interrupts and bottom halves on, and is a read side of RCU. */
static bool may_sleep(void)
{
	return !in_interrupt() && !irqs_disabled() &&
	       !(IS_ENABLED(CONFIG_PREEMPT_RT) && rcu_preempt_depth());
}

/**
 * ibchan_channel_close - give a channel back
 * @ch: the channel; not to be used any more
 *
 * What is posted completes, flushed at the latest, before this returns. Bounded
 * by a drain of 2 s; over iWARP, between the request and its answer, also by how long the
 * driver waits for that, which with siw is 10 s.
 *
 * Where it cannot sleep, as in a done(), it only breaks the channel, and a worker
 * does the rest: works complete, the channel's domain and cqs are in use, and a
 * broken() that has begun elsewhere may still run, until then. ibchan_flush() waits
 * for that.
 *
 * Context: process, may sleep; or with bottom halves or interrupts off, then not. Not
 * under a spinlock that leaves both on.
 */
void ibchan_channel_close(struct ibchan_channel *ch)
{
	if (may_sleep()) {
		ibchan_channel_end(ch);
		return;
	}
	/* Its owner knows. */
	WRITE_ONCE(ch->broken, NULL);
	WRITE_ONCE(ch->connected_to, NULL);
	ibchan_channel_break(ch, -ECANCELED);
	close_later(ch);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_close, IBCHAN_NS);

static void await_closing(void)
{
	static DEFINE_MUTEX(one_at_a_time);
	u32 turn;

	guard(mutex)(&one_at_a_time);
	/* What is closed from here on is the next caller's: this one comes to an end. */
	spin_lock_irq(&closing_lock);
	turn = closing_turn;
	closing_turn = !turn;
	spin_unlock_irq(&closing_lock);
	wait_var_event(&closing[turn], !atomic_read(&closing[turn]));
}

/**
 * ibchan_flush - wait for the end of objects that were given up in atomic context
 *
 * When it returns, channels that were closed in atomic context are gone, and so are regions
 * of the kernel's memory whose last work ended after their owner's ibchan_mr_put().
 * ibchan_pd_settle() waits for regions of any memory. In writeback it is safe if none of the
 * channels was connected by address.
 *
 * Context: process, may sleep; not from a callback.
 */
void ibchan_flush(void)
{
	/* Channels come first: they may be the last users of regions. */
	await_closing();
	flush_workqueue(ibchan_free_wq);
}
EXPORT_SYMBOL_NS_GPL(ibchan_flush, IBCHAN_NS);

/**
 * ibchan_channel_force - end a broken channel's works by destroying its queue pair
 * @ch: the channel, broken; its owner does not close it meanwhile
 *
 * A caller that cannot go on before a work has ended uses this. Destroying the queue pair
 * ends all access of the device.
 *
 * Context: process, may sleep; without the gate.
 */
void ibchan_channel_force(struct ibchan_channel *ch)
{
	static DEFINE_MUTEX(one_at_a_time);

	guard(mutex)(&one_at_a_time);
	ibchan_gate_enter_to_end(&ch->qp.dev->gate);
	ibchan_channel_stop(ch, false, jiffies);
	ibchan_gate_exit(&ch->qp.dev->gate);
}

/**
 * ibchan_channel_times - how long a channel tries, in times and counts
 * @ch: the channel
 * @times: filled
 *
 * Of a connected channel these are what its device says it uses, where its driver
 * tells, else what the parameters say.
 *
 * Context: process, may sleep.
 * Return: 0; -ENODEV when the device is gone.
 */
int ibchan_channel_times(struct ibchan_channel *ch, struct ibchan_times *times)
{
	struct ibchan_params params;
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	ibchan_qp_lock(&ch->qp);
	params = ch->qp.params;
	if (ch->qp.ib)
		ibchan_qp_ask(&ch->qp, &params);
	ibchan_qp_unlock(&ch->qp);
	ibchan_device_exit(ch->qp.dev);
	ibchan_times_fill(&params, times);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_times, IBCHAN_NS);

/**
 * ibchan_channel_max_sge - how many elements the device may see of one work
 * @ch: the channel; RCU or the caller keeps its memory
 * @opcode: IBCHAN_OP_*
 *
 * Context: any.
 * Return: the number; 0 for what is no opcode.
 */
u32 ibchan_channel_max_sge(const struct ibchan_channel *ch, u8 opcode)
{
	return opcode < IBCHAN_OPS ? ch->bounds.max_sge[opcode] : 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_max_sge, IBCHAN_NS);

/**
 * ibchan_channel_arm - have a channel's completions reaped by themselves
 * @ch: the channel; RCU or the caller keeps its memory
 * @except: a cq that the caller is about to wait on, or NULL
 *
 * As ibchan_cq_arm(), for the cqs of the channel.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_channel_arm(struct ibchan_channel *ch, const struct ibchan_cq *except)
{
	if (ch->send.cq != except)
		ibchan_cq_arm(ch->send.cq);
	if (ch->recv.cq != except && ch->recv.cq != ch->send.cq)
		ibchan_cq_arm(ch->recv.cq);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_arm, IBCHAN_NS);

/**
 * ibchan_channel_reap - retire what has completed of a channel
 * @ch: the channel; RCU or the caller keeps its memory
 * @except: a cq that the caller is about to wait on, or NULL
 *
 * As ibchan_cq_reap(), for the cqs of the channel, up to 256 completions of each.
 *
 * Context: process or softirq, not with interrupts off.
 */
void ibchan_channel_reap(struct ibchan_channel *ch, const struct ibchan_cq *except)
{
	if (ch->send.cq != except)
		ibchan_cq_reap(ch->send.cq, IBCHAN_REAP_BUDGET);
	if (ch->recv.cq != except && ch->recv.cq != ch->send.cq)
		ibchan_cq_reap(ch->recv.cq, IBCHAN_REAP_BUDGET);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_reap, IBCHAN_NS);
