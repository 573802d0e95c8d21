// SPDX-License-Identifier: GPL-2.0-only
/* A cq or a whole device reports that it has failed. */
#include <net/net_namespace.h>
#include <rdma/ibchan_scope.h>

#include "faults.h"

/* --- works that wait, in each of the ways there are --- */

enum { WAIT_BLOCKING, WAIT_PENDING, WAIT_SCOPE, WAITERS };

/* Receives that they have in flight together. */
#define WAITED_FOR	4

/**
 * struct waiter - a thread that waits for receives that do not come
 * @thread: it
 * @side: on whose channel
 * @pending: its works, unless it is in a blocking call
 * @scope: around two of them
 */
struct waiter {
	struct thread thread;
	struct side *side;
	struct ibchan_pending pending[2];
	struct ibchan_scope scope;
};

static int wait_blocking(void *arg)
{
	struct side *side = ((struct waiter *)arg)->side;

	return ibchan_channel_receive(side->ch, side_sge(side, 0, 64), 1, NULL);
}

static int wait_pending(void *arg)
{
	struct waiter *waiter = arg;
	struct side *side = waiter->side;
	struct ibchan_wr wr = ibchan_wr_receive(side_sge(side, 64, 64), 1);
	int ret;

	ret = ibchan_pending_post(&waiter->pending[0], side->ch, &wr, NULL);
	return ret ?: ibchan_pending_wait(&waiter->pending[0]);
}

static int wait_scope(void *arg)
{
	struct waiter *waiter = arg;
	struct side *side = waiter->side;
	struct ibchan_wr wr;
	int ret = 0;
	int i;

	ibchan_scoped(&waiter->scope) {
		for (i = 0; i < 2 && !ret; i++) {
			wr = ibchan_wr_receive(side_sge(side, 128 + i * 64, 64), 1);
			ret = ibchan_scope_post(&waiter->scope, &waiter->pending[i], side->ch,
						&wr, NULL);
		}
	}
	return ret ?: ibchan_scope_error(&waiter->scope);
}

static int all_wait(void *arg)
{
	return channel_in_flight(arg) == WAITED_FOR;
}

static struct waiter *start_waiters(struct world *w)
{
	static int (* const run[])(void *arg) = {
		[WAIT_BLOCKING] = wait_blocking,
		[WAIT_PENDING] = wait_pending,
		[WAIT_SCOPE] = wait_scope,
	};
	struct waiter *waiters = world_alloc(w, WAITERS * sizeof(*waiters));
	int i;

	for (i = 0; i < WAITERS; i++) {
		waiters[i].side = &w->side[0];
		waiters[i].thread = (struct thread){
			.world = w, .run = run[i], .arg = &waiters[i],
		};
		expect_eq(w, thread_start(&waiters[i].thread), 0);
	}
	expect(w, fault_poll_until(all_wait, w->side[0].ch));
	return waiters;
}

/* Joining breaks the channel when it takes too long, which is a failure then. */
static void expect_waiters_end(struct world *w, struct waiter *waiters)
{
	int i;

	for (i = 0; i < WAITERS; i++)
		if (waiters[i].thread.task)
			expect_eq(w, thread_join(&waiters[i].thread), -ECANCELED);
	expect_eq(w, waiters[WAIT_SCOPE].scope.num_failed, 2);
	expect_eq(w, channel_in_flight(w->side[0].ch), 0);
	expect_eq(w, atomic_read(&w->side[0].broken), 1);
}

/* --- who is told --- */

/**
 * struct told - what a channel's broken() was told
 * @w: woken
 * @ch: the channel; closed when it is told, if @closes
 * @closes: see @ch
 * @times: how often
 * @error: last
 */
struct told {
	struct world *w;
	struct ibchan_channel *ch;
	int closes;
	atomic_t times;
	int error;
};

static void tell(void *priv, int error)
{
	struct told *told = priv;

	told->error = error;
	if (told->closes)
		ibchan_channel_close_async(told->ch, &told->w->closing, NULL);
	atomic_inc(&told->times);
	wake_up(&told->w->wait);
}

/* A channel that is its own peer, on a cq for sends and one for receives. */
static struct told *told_channel(struct side *side, struct ibchan_cq *send_cq,
				 struct ibchan_cq *recv_cq)
{
	struct told *told = world_alloc(side->world, sizeof(*told));
	struct ibchan_params params;
	struct ibchan_build build;

	told->w = side->world;
	side_build_init(side, &build);
	build.send_cq = send_cq;
	build.recv_cq = recv_cq;
	build.broken = tell;
	build.priv = told;
	ibchan_params_init(&params);
	told->ch = ibchan_channel_build(&build, &params, NULL);
	if (!expect(told->w, !IS_ERR(told->ch)))
		return NULL;
	world_keep(told->w, THING_CHANNEL, told->ch);
	return side_connect(told->w, told->ch, told->ch) ? NULL : told;
}

static void expect_told(struct told *told, int times)
{
	struct world *w = told->w;

	if (!times) {
		expect_eq(w, channel_state(told->ch), IBCHAN_CHANNEL_CONNECTED);
		expect_eq(w, atomic_read(&told->times), 0);
		return;
	}
	expect_soon(w, atomic_read(&told->times));
	expect_eq(w, atomic_read(&told->times), times);
	expect_eq(w, told->error, -EIO);
}

static struct ibchan_cq *plain_cq(struct side *side)
{
	const struct ibchan_cq_init init = {};

	return world_cq(side->world, side->dev, &init);
}

/* --- cq errors --- */

static void expect_flushed(struct world *w, struct job *jobs, u32 num)
{
	u32 i;

	expect_soon(w, jobs_ended(jobs, num) == num);
	expect_eq(w, jobs_repeated(jobs, num), 0);
	for (i = 0; i < num; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}

void a_cq_error_breaks_the_channels_of_that_cq_and_no_others(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct told *sends, *receives, *neither;
	struct job *jobs = world_jobs(w, 4);
	struct ibchan_cq *bad, *good;
	u32 i;

	if (fault_pair(w, NULL))
		return;
	bad = plain_cq(a);
	good = plain_cq(a);
	if (!bad || !good)
		return;
	sends = told_channel(a, bad, good);
	receives = told_channel(a, good, bad);
	neither = told_channel(a, good, good);
	if (!sends || !receives || !neither)
		return;
	for (i = 0; i < 4; i++) {
		struct ibchan_wr wr = job_wr(&jobs[i], IBCHAN_OP_RECV, a, i * 64, 64);

		expect_eq(w, job_post(&jobs[i], i % 2 ? sends->ch : receives->ch, &wr, NULL), 0);
	}
	ibchan_fault_raise_cq_error(bad);
	expect_told(sends, 1);
	expect_told(receives, 1);
	expect_flushed(w, jobs, 4);
	expect_told(neither, 0);
	expect_eq(w, atomic_read(&a->broken) + atomic_read(&b->broken), 0);
	expect_eq(w, ibchan_post_receive(sends->ch, a->local, 0, 64, 0), -ESHUTDOWN);
	fault_data_flows(w);
}

/* Nothing is posted here, so nothing but the event tells. A flush that was first is explained. */
void a_queue_pair_that_the_peer_has_ended_says_how(struct world *w)
{
	static const struct {
		u32 event;
		u32 error;
		u32 status;
	} rows[] = {
		{ IB_EVENT_QP_ACCESS_ERR, EACCES, IBCHAN_STATUS_SUCCESS },
		{ IB_EVENT_QP_REQ_ERR, EPROTO, IBCHAN_STATUS_SUCCESS },
		{ IB_EVENT_QP_FATAL, EIO, IBCHAN_STATUS_FATAL_ERR },
	};
	struct ibchan_channel_attr attr;
	struct told *told;
	u32 i;

	if (fault_pair(w, NULL))
		return;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		told = told_channel(&w->side[0], w->side[0].send_cq, w->side[0].send_cq);
		if (!told)
			return;
		ibchan_fault_raise_qp_event(told->ch, IB_EVENT_COMM_EST);
		expect_eq(w, channel_state(told->ch), IBCHAN_CHANNEL_CONNECTED);
		ibchan_fault_raise_qp_event(told->ch, rows[i].event);
		expect_eq(w, channel_state(told->ch), IBCHAN_CHANNEL_BROKEN);
		expect_eq(w, atomic_read(&told->times), 1);
		expect_eq(w, told->error, -(int)rows[i].error);
		ibchan_fault_raise_qp_event(told->ch, IB_EVENT_QP_FATAL);
		ibchan_channel_query(told->ch, &attr);
		expect_eq(w, attr.error, rows[i].error);
		expect_eq(w, attr.status, rows[i].status);
	}
}

/* The device flushes nothing here: the queue pair is sound. */
void what_is_posted_ends_where_only_an_event_tells_of_the_failure(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 3);
	int i;

	if (fault_pair(w, NULL))
		return;
	for (i = 0; i < 3; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
	ibchan_fault_raise_qp_event(a->ch, IB_EVENT_COMM_EST);
	expect_eq(w, channel_in_flight(a->ch), 3);
	ibchan_fault_raise_qp_event(a->ch, IB_EVENT_QP_FATAL);
	expect_flushed(w, jobs, 3);
	expect_eq(w, channel_in_flight(a->ch), 0);
	expect_eq(w, a->error, -EIO);
}

void a_cq_may_go_right_after_its_error(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_cq *cq;
	int i;

	if (fault_pair(w, NULL))
		return;
	for (i = 0; i < 20; i++) {
		cq = plain_cq(a);
		if (!cq)
			return;
		world_forget(w, THING_CQ, cq);
		ibchan_fault_raise_cq_error(cq);
		expect_eq(w, ibchan_cq_try_destroy(cq), 0);
		ibchan_cq_put(cq);
	}
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
}

void a_channel_may_be_closed_when_its_cq_error_is_told(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct ibchan_cq *cq;
	struct told *told;
	struct ibchan_wr wr;

	if (fault_pair(w, NULL))
		return;
	cq = plain_cq(a);
	told = cq ? told_channel(a, cq, cq) : NULL;
	if (!told)
		return;
	wr = job_wr(job, IBCHAN_OP_RECV, a, 0, 64);
	expect_eq(w, job_post(job, told->ch, &wr, NULL), 0);
	told->closes = 1;
	world_forget(w, THING_CHANNEL, told->ch);
	ibchan_fault_raise_cq_error(cq);
	expect_told(told, 1);
	ibchan_closing_wait(&w->closing);
	expect_flushed(w, job, 1);
}

void a_cq_error_ends_every_kind_of_wait(struct world *w)
{
	struct waiter *waiters;

	if (fault_pair(w, NULL))
		return;
	waiters = start_waiters(w);
	ibchan_fault_raise_cq_error(w->side[0].recv_cq);
	expect_waiters_end(w, waiters);
	expect_eq(w, w->side[0].error, -EIO);
}

/* --- fatal events --- */

void a_fatal_event_breaks_the_channels_of_that_device_and_no_others(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 5);
	struct told *second, *other;
	u32 i;

	if (fault_pair(w, NULL))
		return;
	second = told_channel(a, a->send_cq, a->recv_cq);
	other = told_channel(b, b->send_cq, b->recv_cq);
	if (!second || !other)
		return;
	for (i = 0; i < 4; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
	ibchan_fault_raise_fatal(a->dev);
	expect_soon(w, atomic_read(&a->broken));
	expect_told(second, 1);
	expect_flushed(w, jobs, 4);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, a->error, -EIO);
	expect_eq(w, atomic_read(&a->gone), 0);
	expect_told(other, 0);
	expect_eq(w, atomic_read(&b->broken), 0);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
}

void a_device_that_lives_on_after_a_fatal_event_can_be_used(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_params params;

	if (fault_pair(w, NULL) || !side_share(a) || !side_share(b))
		return;
	ibchan_fault_raise_fatal(a->dev);
	expect_soon(w, atomic_read(&a->broken));
	ibchan_params_init(&params);
	if (fault_fresh_channels(w, &params) || !fault_data_flows(w))
		return;
	/* The service of the domain has broken too; another takes its place. */
	if (!side_share(a))
		return;
	expect_eq(w, ibchan_channel_write(b->ch, side_sge(b, 0, 64), 1, &a->remote, NULL), 0);
}

/* --- a work fails --- */

