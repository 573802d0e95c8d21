// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attempts to connect by address: how one begins, how long its stages may take, and how it fails.
 *
 * A peer may have several addresses: when there is no connection by one of them, the next one is
 * tried, with an id of its own and the same queue pair. That has not left INIT, so receives
 * that are posted stay where they are. Once the peer has answered, no other is tried.
 *
 * A peer may still have a connection with the queue pair of this number that was here before this
 * host crashed. It rejects the request as stale and ends that connection, so the same
 * address is tried again, as long as it has time.
 *
 * A work item does that, because an id cannot be destroyed in its own handler and live on
 * in another's hands. From when it is queued until the next attempt begins, the handler of the
 * old id does nothing more. Closing stops the item before it takes the id and once more
 * behind that: see stop() in cm_end.c.
 */
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

/* Before a peer that has rejected a request as stale is asked again; that often doubled. */
#define STALE_PAUSE_MS	100
#define STALE_DOUBLINGS	5

/* Then a thread uses the id, or is going to: see cm.c. */
static bool asks_by_thread(const struct ibchan_cm *cm)
{
	return cm->ch->qp.gid.iwarp && READ_ONCE(cm->stage) >= IBCHAN_STAGE_REQUEST;
}

/* The addresses that have not had their share of the times; the one that is tried is one. */
static u32 num_left(const struct ibchan_cm *cm)
{
	return cm->num_others - READ_ONCE(cm->at) + 1;
}

/*
 * An attempt to connect has failed. Returns true when the next address will be tried, and the
 * channel goes on connecting.
 */
bool ibchan_cm_goes_on(struct ibchan_cm *cm, int cm_error, int error)
{
	const struct ibchan_cm_failure failure = {
		.stage = READ_ONCE(cm->stage),
		.cm_error = cm_error,
		.error = error,
	};
	s64 unused;
	u32 *left;

	/* Behind the last stage no time of it is left for another address. */
	if (READ_ONCE(cm->at) >= cm->num_others || asks_by_thread(cm) || !is_connecting(cm->ch) ||
	    failure.stage >= IBCHAN_STAGE_DONE)
		return false;
	if (cmpxchg(&cm->failed, CM_NOT_FAILED, CM_TRIES_NEXT))
		return true;
	/* Addresses that come later have what is left of the stage that ends. */
	left = &cm->stage_ms[failure.stage];
	unused = ktime_ms_delta(READ_ONCE(cm->stage_end), ktime_get());
	*left -= clamp_t(s64, *left / num_left(cm) - unused, 0, *left - 1);
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, error, failure.stage, (s64)cm_error);
	if (failure.stage >= cm->furthest.stage)
		cm->furthest = failure;
	queue_delayed_work(ibchan_slow_wq, &cm->again, 0);
	return true;
}

/*
 * The peer has rejected a request as stale. Returns true when it will be asked again, and the
 * channel goes on connecting.
 */
bool ibchan_cm_asks_again(struct ibchan_cm *cm)
{
	/* Nothing tells when the peer has ended it. */
	u32 pause = STALE_PAUSE_MS << min_t(u32, cm->stale, STALE_DOUBLINGS);

	if (READ_ONCE(cm->stage) != IBCHAN_STAGE_REQUEST || !is_connecting(cm->ch) ||
	    ktime_ms_delta(cm->ask_end, ktime_get()) <= pause)
		return false;
	if (cmpxchg(&cm->failed, CM_NOT_FAILED, CM_ASKS_AGAIN))
		return true;
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, -ECONNRESET, IBCHAN_STAGE_REQUEST,
			   IB_CM_REJ_STALE_CONN);
	cm->stale++;
	queue_delayed_work(ibchan_slow_wq, &cm->again, msecs_to_jiffies(pause));
	return true;
}

/*
 * Returns, of all attempts to connect, the error of the one that came furthest; @cm_error and the
 * stage become those of that attempt.
 */
static int verdict(struct ibchan_cm *cm, int *cm_error, int error)
{
	if (cm->furthest.stage <= READ_ONCE(cm->stage))
		return error;
	WRITE_ONCE(cm->stage, cm->furthest.stage);
	*cm_error = cm->furthest.cm_error;
	return cm->furthest.error;
}

/* In the address stage only a neighbour's answer is waited for: without one it is not there. */
static int stage_error(const struct ibchan_cm *cm, int error)
{
	return error == -ETIMEDOUT && READ_ONCE(cm->stage) == IBCHAN_STAGE_ADDRESS ?
	       -EHOSTUNREACH : error;
}

/*
 * A connection has failed, or ended; @cm_error as in struct ibchan_connection. If the peer has
 * another address, that is tried instead. Returns 0.
 */
int ibchan_cm_fail(struct ibchan_cm *cm, int cm_error, int error)
{
	error = stage_error(cm, error);
	if (ibchan_cm_goes_on(cm, cm_error, error))
		return 0;
	error = verdict(cm, &cm_error, error);
	if (is_connecting(cm->ch))
		ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, error, READ_ONCE(cm->stage),
				   (s64)cm_error);
	WRITE_ONCE(cm->cm_error, cm_error);
	cm->over = true;
	ibchan_channel_break(cm->ch, error);
	return 0;
}

static void deadline_passed(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(to_delayed_work(work), struct ibchan_cm, deadline);
	ktime_t left = ktime_sub(READ_ONCE(cm->stage_end), ktime_get());
	int error = stage_error(cm, -ETIMEDOUT), cm_error = 0;

	/* Ticks that were late when the stage began come at once, and the timer with them. */
	if (left > 0)
		queue_delayed_work(ibchan_wq, &cm->deadline, nsecs_to_jiffies(left) + 1);
	else if (!ibchan_cm_goes_on(cm, 0, error))
		ibchan_channel_give_up(cm->ch, verdict(cm, &cm_error, error));
}

/*
 * The stage begins, and its time. A peer that is asked again has no more time than one that is
 * asked once. Of several addresses each has an equal share of what those before it have left.
 */
void ibchan_cm_enter_stage(struct ibchan_cm *cm, u32 stage)
{
	u32 ms = max(cm->stage_ms[stage] / num_left(cm), 1U);

	if (cm->stale)
		ms = clamp_t(s64, ktime_ms_delta(cm->ask_end, ktime_get()), 1, ms);
	else if (stage == IBCHAN_STAGE_REQUEST)
		cm->ask_end = ktime_add_ms(ktime_get(), ms);
	WRITE_ONCE(cm->stage, stage);
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, 0, stage, 0);
	WRITE_ONCE(cm->stage_end, ktime_add_ms(ktime_get(), ms));
	mod_delayed_work(ibchan_wq, &cm->deadline, msecs_to_jiffies(ms));
}

struct rdma_cm_id *ibchan_cm_new_id(struct ibchan_cm *cm)
{
	return rdma_create_id(cm->ch->qp.net ?: &init_net, ibchan_cm_event, cm, RDMA_PS_TCP,
			      IB_QPT_RC);
}

/* Under the qp lock. The handler tells what fails, or this call does at once. */
void ibchan_cm_resolve(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct sockaddr *source = cm->source.ss_family ? (struct sockaddr *)&cm->source : NULL;

	ibchan_cm_stepped(cm, rdma_resolve_addr(id, source, (struct sockaddr *)&cm->peers[cm->at],
						cm->stage_ms[IBCHAN_STAGE_ADDRESS]));
}

/* False: there is nothing to connect any more, and @id stays the caller's. */
static bool begin_next(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	guard(ibchan_qp)(&cm->ch->qp);
	if (!is_connecting(cm->ch))
		return false;
	cm->id = id;
	if (cm->failed == CM_TRIES_NEXT) {
		cm->stale = 0;
		WRITE_ONCE(cm->at, cm->at + 1);
	}
	WRITE_ONCE(cm->failed, CM_NOT_FAILED);
	ibchan_cm_enter_stage(cm, IBCHAN_STAGE_ADDRESS);
	ibchan_cm_resolve(cm, id);
	return true;
}

/* Where an answer comes after all, the peer hears that it is not wanted. */
static void go_on(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(to_delayed_work(work), struct ibchan_cm, again);
	struct ibchan_channel *ch = cm->ch;
	struct rdma_cm_id *id = NULL;
	bool asks;

	scoped_guard(ibchan_qp, &ch->qp) {
		/* The peer's answer came before the attempt was given up: see answered(). */
		if (ch->connected) {
			WRITE_ONCE(cm->failed, CM_NOT_FAILED);
			return;
		}
		/* Over iWARP the thread may have begun just before: then it is too late. */
		asks = asks_by_thread(cm);
		if (!asks)
			id = ibchan_cm_end_id(cm);
	}
	if (id) {
		/* The work that breaks the channel may hold the id; a later one finds none. */
		flush_work(&ch->break_turn.work);
		rdma_destroy_id(id);
	}
	cancel_delayed_work_sync(&cm->deadline);
	if (asks || !is_connecting(ch)) {
		ibchan_channel_break(ch, -ETIMEDOUT);
		return;
	}
	id = ibchan_cm_new_id(cm);
	if (IS_ERR(id))
		ibchan_channel_break(ch, PTR_ERR(id));
	else if (!begin_next(cm, id))
		rdma_destroy_id(id);
}

/*
 * The datagram by which the asking peer says that it is connected may be lost while its messages
 * arrive. The first of them that retires a receive ends the wait for that datagram, and so does a
 * device that reports the first message of a queue pair in RTS: rdma_notify() takes either in its
 * place.
 */
static void heard_work(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(work, struct ibchan_cm, heard_work);
	struct rdma_cm_id *id = READ_ONCE(cm->id);

	if (id && READ_ONCE(cm->stage) == IBCHAN_STAGE_ACCEPT)
		rdma_notify(id, IB_EVENT_COMM_EST);
}

static int fill_times(struct ibchan_cm *cm, const struct ibchan_connect *connect,
		      struct ibchan_reason *reason)
{
	u32 *times = cm->stage_ms, stage;

	times[IBCHAN_STAGE_ADDRESS] = connect->address_ms ?: IBCHAN_DEFAULT_ADDRESS_MS;
	times[IBCHAN_STAGE_ROUTE] = connect->route_ms ?: IBCHAN_DEFAULT_ROUTE_MS;
	times[IBCHAN_STAGE_REQUEST] = connect->connect_ms ?: IBCHAN_DEFAULT_CONNECT_MS;
	times[IBCHAN_STAGE_ACCEPT] = connect->connect_ms ?: IBCHAN_DEFAULT_ACCEPT_MS;
	for (stage = IBCHAN_STAGE_ADDRESS; stage <= IBCHAN_STAGE_ACCEPT; stage++)
		if (times[stage] > IBCHAN_MAX_STAGE_MS)
			return ibchan_refuse_values(reason, IBCHAN_REASON_STAGE_TIME, -EINVAL,
						    (u64[3]) { times[stage], IBCHAN_MAX_STAGE_MS });
	return 0;
}

/* The connection has no id yet; the channel frees it. -EINVAL for a time that is too long. */
struct ibchan_cm *ibchan_cm_create(struct ibchan_channel *ch, const struct ibchan_connect *connect,
				   struct ibchan_reason *reason)
{
	struct ibchan_cm *cm = kzalloc(struct_size(cm, peers, connect->num_others + 1),
				       GFP_KERNEL_ACCOUNT);
	int ret;

	if (!cm)
		return ERR_PTR(-ENOMEM);
	cm->ch = ch;
	cm->uid = current_uid();
	INIT_LIST_HEAD(&cm->ask_link);
	INIT_DELAYED_WORK(&cm->deadline, deadline_passed);
	INIT_DELAYED_WORK(&cm->again, go_on);
	INIT_WORK(&cm->heard_work, heard_work);
	cm->plain = connect->flags & IBCHAN_CONNECT_FOREIGN;
	ibchan_cm_data_fill(cm, connect->data, connect->length);
	if (connect->source)
		memcpy(&cm->source, connect->source, rdma_addr_size(connect->source));
	if (connect->peer)
		memcpy(&cm->peers[0], connect->peer, rdma_addr_size(connect->peer));
	cm->num_others = connect->num_others;
	if (cm->num_others)
		memcpy(&cm->peers[1], connect->others, cm->num_others * sizeof(*cm->peers));
	ret = fill_times(cm, connect, reason);
	if (!ret)
		return cm;
	kfree(cm);
	return ERR_PTR(ret);
}

/* The connection is the channel's from now on. Under the qp lock. -EISCONN; -ESHUTDOWN. */
int ibchan_cm_begin(struct ibchan_cm *cm, u32 stage, struct ibchan_reason *reason)
{
	struct ibchan_channel *ch = cm->ch;
	int ret;

	lockdep_assert_held(&ch->qp.lock);
	ret = ibchan_channel_begin(ch, reason);
	if (ret)
		return ret;
	/* A poster that sees the connection may post receives. */
	WRITE_ONCE(ch->cm, cm);
	ibchan_cm_enter_stage(cm, stage);
	return 0;
}
