// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive as a kernel consumer has it: where a dead peer is noticed. That a live one is left
 * alone, and which times may be asked for, is watch_test.c's.
 */
#include "job.h"
#include "suites.h"

#define RECEIVES	4
#define KEEPALIVE_MS	400

static void probes_of(struct side *side, struct ibchan_facts *facts)
{
	struct ibchan_channel_attr attr;

	ibchan_channel_query(side->ch, &attr);
	*facts = attr.facts;
}

static bool has_answers(struct side *side, u32 num)
{
	struct ibchan_facts facts;

	probes_of(side, &facts);
	return facts.probes_answered >= num;
}

/* Nothing announces them. */
static int wait_answers(struct side *side, u32 num)
{
	ktime_t end = after_ms(patience);

	while (!has_answers(side, num) && ktime_before(ktime_get(), end))
		wait_event_timeout(side->world->wait, 0, 1);
	return expect(side->world, has_answers(side, num));
}

static struct pair_init watched(u32 keepalive_ms)
{
	struct pair_init init;

	pair_defaults(&init);
	init.options.keepalive_ms = keepalive_ms;
	return init;
}

static struct job *post_receives(struct side *side)
{
	struct job *jobs = world_jobs(side->world, RECEIVES);
	u32 i;

	for (i = 0; jobs && i < RECEIVES; i++)
		expect_eq(side->world, job_receive(&jobs[i], side, i * 64, 64), 0);
	return jobs;
}

static void reap_until_ended(struct side *side, const struct job *jobs)
{
	ktime_t end = after_ms(patience);

	while (jobs_ended(jobs, RECEIVES) < RECEIVES && ktime_before(ktime_get(), end)) {
		ibchan_cq_reap(side->recv_cq, RECEIVES);
		wait_event_timeout(side->world->wait, 0, 1);
	}
}

/* An exchanged endpoint's channel says nothing when it is closed. */
static void expect_noticed(struct world *w, const struct pair_init *init)
{
	struct side *a = &w->side[0];
	struct job *jobs;
	ktime_t soonest;
	u32 i;

	if (world_pair(w, init))
		return;
	jobs = post_receives(a);
	/* It has more time to connect its own side. */
	if (!jobs || !wait_answers(a, 1))
		return;
	soonest = after_ms(KEEPALIVE_MS / 4);
	side_close(&w->side[1]);
	expect_soon(w, atomic_read(&a->broken));
	expect(w, ktime_after(ktime_get(), soonest));
	expect_eq(w, a->error, -ETIMEDOUT);
	if (init->cq_flags & IBCHAN_CQ_POLLED)
		reap_until_ended(a, jobs);
	for (i = 0; i < RECEIVES; i++) {
		job_ended(&jobs[i]);
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	}
	expect_eq(w, atomic_read(&a->broken), 1);
}

/* Sends and receives complete in different places; the answer comes to the first. */
static void a_dead_peer_is_noticed_where_receives_have_a_cq_of_their_own(struct world *w)
{
	struct pair_init init = watched(KEEPALIVE_MS);

	init.two_cqs = 1;
	expect_noticed(w, &init);
}

/* It is told that the channel is broken; what the cq has, it takes itself. */
static void a_dead_peer_is_noticed_by_who_never_looks_at_its_cq(struct world *w)
{
	struct pair_init init = watched(KEEPALIVE_MS);

	init.cq_flags = IBCHAN_CQ_POLLED;
	expect_noticed(w, &init);
}

static const struct test_case keepalive_cases[] = {
	CASE(a_dead_peer_is_noticed_where_receives_have_a_cq_of_their_own),
	CASE(a_dead_peer_is_noticed_by_who_never_looks_at_its_cq),
};

SUITE(keepalive);
