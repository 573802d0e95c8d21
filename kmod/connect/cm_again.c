// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer with several addresses: when there is no connection by one of them, the next one is
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
#include <linux/errno.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "cm.h"
#include "compat.h"

/* Before a peer that has rejected a request as stale is asked again; that often doubled. */
#define STALE_PAUSE_MS	100
#define STALE_DOUBLINGS	5

/* Then a thread uses the id, or is going to: see cm_ask.c. */
static bool asks_by_thread(const struct ibchan_cm *cm)
{
	return cm->ch->qp.gid.iwarp && READ_ONCE(cm->stage) >= IBCHAN_STAGE_REQUEST;
}

/* The addresses that have not had their share of the times; the one that is tried is one. */
static u32 num_left(const struct ibchan_cm *cm)
{
	return cm->num_others - READ_ONCE(cm->next) + 1;
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

	if (READ_ONCE(cm->next) >= cm->num_others || asks_by_thread(cm) || !is_connecting(cm->ch))
		return false;
	/* The last stage is over: no time of it is left for another address. */
	if (failure.stage >= IBCHAN_STAGE_DONE)
		return false;
	if (test_and_set_bit(0, &cm->failed))
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
	if (test_and_set_bit(0, &cm->failed))
		return true;
	ibchan_history_add(cm->ch, IBCHAN_HISTORY_CM, -ECONNRESET, IBCHAN_STAGE_REQUEST,
			   IB_CM_REJ_STALE_CONN);
	cm->stale++;
	cm->same = true;
	queue_delayed_work(ibchan_slow_wq, &cm->again, msecs_to_jiffies(pause));
	return true;
}

/*
 * How long a stage may take that begins now. A peer that is asked again has no more time than one
 * that is asked once. Of several addresses each has an equal share of what those before it have
 * left.
 */
u32 ibchan_cm_stage_ms(struct ibchan_cm *cm, u32 stage)
{
	u32 ms = max(cm->stage_ms[stage] / num_left(cm), 1U);

	if (cm->stale)
		return clamp_t(s64, ktime_ms_delta(cm->ask_end, ktime_get()), 1, ms);
	if (stage == IBCHAN_STAGE_REQUEST)
		cm->ask_end = ktime_add_ms(ktime_get(), ms);
	return ms;
}

/*
 * Returns, of all attempts to connect, the error of the one that came furthest; @cm_error and the
 * stage become those of that attempt.
 */
int ibchan_cm_verdict(struct ibchan_cm *cm, int *cm_error, int error)
{
	if (cm->furthest.stage <= READ_ONCE(cm->stage))
		return error;
	WRITE_ONCE(cm->stage, cm->furthest.stage);
	*cm_error = cm->furthest.cm_error;
	return cm->furthest.error;
}

/* Under the qp lock. The handler tells what fails, or this call does at once. */
void ibchan_cm_resolve(struct ibchan_cm *cm, struct rdma_cm_id *id,
		       const struct sockaddr_storage *peer)
{
	struct sockaddr *source = cm->source.ss_family ? (struct sockaddr *)&cm->source : NULL;
	int ret;

	ret = rdma_resolve_addr(id, source, (const struct sockaddr *)peer,
				cm->stage_ms[IBCHAN_STAGE_ADDRESS]);
	if (ret)
		ibchan_cm_fail(cm, ret, ret);
}

/* False: there is nothing to connect any more, and @id stays the caller's. */
static bool begin_next(struct ibchan_cm *cm, struct rdma_cm_id *id)
{
	struct sockaddr_storage peer;

	guard(ibchan_qp)(&cm->ch->qp);
	if (!is_connecting(cm->ch))
		return false;
	cm->id = id;
	if (cm->same) {
		peer = cm->peer;
		cm->same = false;
	} else {
		peer = cm->others[cm->next];
		cm->stale = 0;
		WRITE_ONCE(cm->next, cm->next + 1);
	}
	clear_bit(0, &cm->failed);
	ibchan_cm_enter_stage(cm, IBCHAN_STAGE_ADDRESS);
	ibchan_cm_resolve(cm, id, &peer);
	return true;
}

/* Over iWARP the thread may have begun just before: then it is too late to go on. */
static bool end_attempt(struct ibchan_cm *cm)
{
	struct rdma_cm_id *id = NULL;
	bool asks;

	ibchan_qp_lock(&cm->ch->qp);
	asks = asks_by_thread(cm);
	if (!asks)
		id = ibchan_cm_end_id(cm);
	ibchan_qp_unlock(&cm->ch->qp);
	if (id) {
		/* The work that breaks the channel may hold the id; a later one finds none. */
		flush_work(&cm->ch->break_turn.work);
		rdma_destroy_id(id);
	}
	cancel_delayed_work_sync(&cm->deadline);
	return !asks && is_connecting(cm->ch);
}

/* Where an answer comes after all, the peer hears that it is not wanted. */
static void go_on(struct work_struct *work)
{
	struct ibchan_cm *cm = container_of(to_delayed_work(work), struct ibchan_cm, again);
	struct net *net = cm->ch->qp.net ?: &init_net;
	struct rdma_cm_id *id;
	bool is_answered;

	/* The peer's answer came before the attempt was given up: see answered(). */
	ibchan_qp_lock(&cm->ch->qp);
	is_answered = cm->ch->connected;
	if (is_answered)
		clear_bit(0, &cm->failed);
	ibchan_qp_unlock(&cm->ch->qp);
	if (is_answered)
		return;
	if (!end_attempt(cm)) {
		ibchan_channel_break(cm->ch, -ETIMEDOUT);
		return;
	}
	id = rdma_create_id(net, ibchan_cm_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		ibchan_channel_break(cm->ch, PTR_ERR(id));
	else if (!begin_next(cm, id))
		rdma_destroy_id(id);
}

void ibchan_cm_again_init(struct ibchan_cm *cm, const struct ibchan_connect *connect)
{
	INIT_DELAYED_WORK(&cm->again, go_on);
	cm->num_others = connect->num_others;
	if (cm->num_others)
		memcpy(cm->others, connect->others, cm->num_others * sizeof(*cm->others));
	if (connect->source)
		memcpy(&cm->source, connect->source, rdma_addr_size(connect->source));
}
