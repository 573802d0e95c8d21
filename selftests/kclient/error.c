// SPDX-License-Identifier: GPL-2.0-only
/* Error objects; refusals told apart from failed works (W3, C8, law 4). */
#include <linux/string.h>

#include "job.h"
#include "suites.h"

static void expect_error(struct world *w, const struct ibchan_completion *completion,
			 u32 status, u32 error, u32 class)
{
	expect_eq(w, completion->status, status);
	expect_eq(w, completion->error, error);
	expect_eq(w, ibchan_status_error(completion->status), error);
	expect_eq(w, ibchan_status_class(completion->status), class);
	expect(w, *ibchan_status_hint(completion->status));
}

static void reap_until_ended(struct ibchan_cq *cq, struct job *job)
{
	ktime_t end = after_ms(patience);

	while (!atomic_read(&job->ended) && ktime_before(ktime_get(), end)) {
		ibchan_cq_reap(cq, 1);
		wait_event_timeout(job->world->wait, 0, 1);
	}
}

/* Nobody but the case looks at the cqs, and it never looks at the one that says why. */
static void the_cause_counts_though_its_flushes_are_seen_first(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 3);
	struct pair_init init;

	/* It gives up soon: no answer comes. */
	pair_defaults(&init);
	init.params.ack_timeout = 8;
	init.params.ack_retries = 1;
	init.two_cqs = 1;
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (!jobs || world_pair(w, &init))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 64, 64), 0);
	side_close(&w->side[1]);
	expect_eq(w, job_send(&jobs[1], a, 0, 8), 0);
	reap_until_ended(a->recv_cq, &jobs[0]);
	/* From the first of them on, whatever it comes from, it takes no work. */
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, job_receive(&jobs[2], a, 64, 64), -ESHUTDOWN);
	if (!expect_soon(w, atomic_read(&a->broken)))
		return;
	expect_eq(w, jobs[0].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, a->error, -ETIMEDOUT);
	expect_eq(w, atomic_read(&jobs[1].ended), 1);
	expect_error(w, &jobs[1].completion, IBCHAN_STATUS_RETRY_EXC_ERR, ETIMEDOUT,
		     IBCHAN_CLASS_TIMEOUT);
	expect_eq(w, atomic_read(&a->broken), 1);
}

/* C8: the two ways to fail, by @posted. */
static void a_refusal_and_a_failed_work_are_told_apart(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome;

	if (world_default_pair(w) || !side_share(b))
		return;
	memset(&outcome, 0xff, sizeof(outcome));
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, SIDE_BYTES, 1), 1, &outcome), -EINVAL);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_OUT_OF_BOUNDS);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	memset(&outcome, 0xff, sizeof(outcome));
	b->remote.rkey ^= 0x55;
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 1), 1, &b->remote, &outcome),
		  -EREMOTEIO);
	expect_eq(w, outcome.posted, 1);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
}

static const struct test_case error_cases[] = {
	CASE(the_cause_counts_though_its_flushes_are_seen_first),
	CASE(a_refusal_and_a_failed_work_are_told_apart),
};

SUITE(error);
