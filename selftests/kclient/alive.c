// SPDX-License-Identifier: GPL-2.0-only
/* What may happen to a channel that is connected, and must not hurt it. */
#include "meeting.h"
#include "suites.h"

static struct meeting *meeting_of(struct world *w)
{
	struct meeting *m = meeting_new(w);

	return meeting_begin(m) || meeting_connect(m) ? NULL : m;
}

/* Somebody else asks at the same address; @m has its request. */
static struct ibchan_channel *stranger_asks(struct meeting *m)
{
	struct party *stranger = world_alloc(m->w, sizeof(*stranger));
	struct side *side = &m->w->side[0];
	const struct ibchan_connect connect = { .peer = (struct sockaddr *)&m->address };
	struct ibchan_channel *ch;

	ch = party_build(stranger, side, &m->init.params);
	if (!ch || !expect_eq(m->w, ibchan_channel_connect(ch, &connect, NULL), 0))
		return NULL;
	return ch;
}

static void an_accept_that_is_refused_leaves_a_connected_channel_its_peer(struct world *w)
{
	struct meeting *m = meeting_of(w);
	struct ibchan_channel *stranger = m ? stranger_asks(m) : NULL;
	struct ibchan_request *request = stranger ? meeting_take(m) : NULL;
	struct ibchan_reason reason = {};
	const struct ibchan_connect connect = {};
	struct job *job = world_jobs(w, 1);

	if (!request)
		return;
	expect_eq(w, ibchan_request_accept(request, m->asked.side->ch, &connect, &reason),
		  -EISCONN);
	expect_eq(w, reason.code, 0);
	expect_eq(w, job_receive(job, m->asked.side, 0, 8), 0);
	expect_eq(w, ibchan_channel_send(m->asking.side->ch, side_sge(m->asking.side, 64, 8), 1,
					 NULL), 0);
	job_ended(job);
	expect_eq(w, job->completion.error, 0);
}

/* --- why it ends --- */

/* The device ends the queue pair of the side that sent, and only that. */
static void a_peer_hears_that_a_message_found_no_receive(struct world *w)
{
	struct meeting *m = meeting_new(w);
	struct ibchan_outcome outcome;
	struct side *a;

	m->init.params.rnr_retries = 1;
	if (meeting_begin(m) || meeting_connect(m))
		return;
	a = m->asking.side;
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, &outcome), -ETIMEDOUT);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_RNR_RETRY_EXC_ERR);
	expect_soon(w, atomic_read(&m->asked.broken));
	expect_eq(w, m->asked.error, -ECONNRESET);
}

/* What was flushed may be seen before the work that failed: a receive is there to show it. */
static void expect_wrong_key(struct world *w, const struct pair_init *init)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_channel_attr attr;
	struct ibchan_outcome outcome;

	if (world_pair(w, init) || !side_share(b))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 0, 64), 0);
	expect_eq(w, job_receive(&jobs[1], b, 0, 64), 0);
	b->remote.rkey ^= 0x55;
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 64, 64), 1, &b->remote, &outcome),
		  -EREMOTEIO);
	job_ended(&jobs[0]);
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect_eq(w, a->error, -EREMOTEIO);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.error, EREMOTEIO);
	expect_eq(w, attr.status, IBCHAN_STATUS_REM_ACCESS_ERR);
}

static void a_wrong_key_is_the_cause_though_receives_flush_on_the_same_cq(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	expect_wrong_key(w, &init);
}

static void a_wrong_key_is_the_cause_though_receives_flush_on_another_cq(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.two_cqs = 1;
	expect_wrong_key(w, &init);
}

/*
 * Its own peer flushes before it hears what was wrong; a device that ends the queue pair for
 * the peer's sake may flush the request itself, and then nothing is left to name the cause.
 * Where the device tells the peer what the request has tried, that may come first.
 */
static void a_wrong_key_ends_a_channel_that_is_its_own_peer(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct ibchan_outcome outcome;
	struct pair_init init;
	int error;

	pair_defaults(&init);
	if (world_sides(w, &init) || side_connect(w, a->ch, a->ch) || !side_share(a))
		return;
	expect_eq(w, job_receive(job, a, 0, 64), 0);
	a->remote.rkey ^= 0x55;
	error = ibchan_channel_write(a->ch, side_sge(a, 64, 64), 1, &a->remote, &outcome);
	job_ended(job);
	expect_soon(w, atomic_read(&a->broken) == 1);
	if (error == -ECANCELED) {
		expect(w, a->error == -ECANCELED || a->error == -EACCES);
		return;
	}
	expect_eq(w, error, -EREMOTEIO);
	expect(w, a->error == -EREMOTEIO || a->error == -EACCES);
}

static const struct test_case alive_cases[] = {
	ETHERNET_CASE(an_accept_that_is_refused_leaves_a_connected_channel_its_peer),
	ETHERNET_CASE(a_peer_hears_that_a_message_found_no_receive),
	CASE(a_wrong_key_is_the_cause_though_receives_flush_on_the_same_cq),
	CASE(a_wrong_key_is_the_cause_though_receives_flush_on_another_cq),
	CASE(a_wrong_key_ends_a_channel_that_is_its_own_peer),
};

SUITE(alive);
