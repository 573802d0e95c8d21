// SPDX-License-Identifier: GPL-2.0-only
/* Keepalive as a kernel consumer has it: a dead peer is noticed, a live one left alone. */
#include "job.h"
#include "suites.h"

#define RECEIVES	4
#define KEEPALIVE_MS	400
#define ANSWERS		5

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

static void a_dead_peer_is_noticed_on_a_channel_that_only_receives(struct world *w)
{
	struct pair_init init = watched(KEEPALIVE_MS);

	expect_noticed(w, &init);
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

static void expect_alone(struct side *side, struct job *jobs)
{
	struct ibchan_channel_attr attr;
	struct world *w = side->world;

	ibchan_channel_query(side->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, attr.sends_in_flight, 0);
	expect_eq(w, attr.recvs_in_flight, RECEIVES);
	expect_eq(w, jobs_ended(jobs, RECEIVES), 0);
	expect_eq(w, atomic_read(&side->logged), 0);
	expect_eq(w, atomic_read(&side->broken), 0);
}

static void a_peer_that_answers_is_left_alone(struct world *w)
{
	struct pair_init init = watched(IBCHAN_KEEPALIVE_MIN_MS);
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *ours, *theirs;

	if (world_pair(w, &init))
		return;
	ours = post_receives(a);
	theirs = post_receives(b);
	if (!ours || !theirs || !wait_answers(a, ANSWERS) || !wait_answers(b, ANSWERS))
		return;
	expect_alone(a, ours);
	expect_alone(b, theirs);
	/* Each receive still takes a message. */
	fill_pattern(a->buf + 4096, 64, 9);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 4096, 64), 1, NULL), 0);
	if (job_ended(&theirs[0]))
		expect(w, has_pattern(b->buf, 64, 9));
}

/* What is due in the same time tells when enough of it has passed. */
static void a_channel_without_keepalive_asks_nothing_and_notices_nothing(struct world *w)
{
	struct pair_init init = watched(IBCHAN_KEEPALIVE_OFF);
	struct ibchan_params params = init.params;
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_channel *clock;
	struct ibchan_facts facts;

	if (world_pair(w, &init))
		return;
	side_close(b);
	b->options.keepalive_ms = IBCHAN_KEEPALIVE_MIN_MS;
	b->ch = side_build(b, &params);
	clock = b->ch;
	if (!clock || side_connect(w, clock, clock) || !wait_answers(b, ANSWERS))
		return;
	probes_of(a, &facts);
	expect_eq(w, facts.probes_sent, 0);
	expect_eq(w, facts.notice_ms, 0);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, atomic_read(&a->broken), 0);
}

static void expect_refused(struct side *side, u32 keepalive_ms)
{
	struct ibchan_reason reason = {};
	struct ibchan_params params;
	struct ibchan_channel *ch;
	struct ibchan_build build;

	ibchan_params_init(&params);
	side_build_init(side, &build);
	build.options.keepalive_ms = keepalive_ms;
	ch = ibchan_channel_build(&build, &params, &reason);
	if (!IS_ERR(ch))
		ibchan_channel_close(ch);
	expect_eq(side->world, PTR_ERR_OR_ZERO(ch), -EINVAL);
	expect_eq(side->world, reason.code, IBCHAN_REASON_PARAMETER);
	expect_eq(side->world, reason.element, IBCHAN_PARAMETER_KEEPALIVE_MS);
	expect_eq(side->world, reason.value[0], keepalive_ms);
}

static void a_time_outside_its_range_is_refused(struct world *w)
{
	struct pair_init init = watched(IBCHAN_KEEPALIVE_MAX_MS);

	if (world_sides(w, &init))
		return;
	expect_refused(&w->side[0], IBCHAN_KEEPALIVE_MIN_MS - 1);
	expect_refused(&w->side[0], IBCHAN_KEEPALIVE_MAX_MS + 1);
	expect_refused(&w->side[0], IBCHAN_KEEPALIVE_OFF - 1);
}

static const struct test_case keepalive_cases[] = {
	CASE(a_dead_peer_is_noticed_on_a_channel_that_only_receives),
	CASE(a_dead_peer_is_noticed_where_receives_have_a_cq_of_their_own),
	CASE(a_dead_peer_is_noticed_by_who_never_looks_at_its_cq),
	CASE(a_peer_that_answers_is_left_alone),
	CASE(a_channel_without_keepalive_asks_nothing_and_notices_nothing),
	CASE(a_time_outside_its_range_is_refused),
};

SUITE(keepalive);
