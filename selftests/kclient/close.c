// SPDX-License-Identifier: GPL-2.0-only
/* Closing completes everything first, and is bounded (laws 2, 6 and 9). */
#include "job.h"
#include "suites.h"

/* What the module promises: a drain of 2 s. Slow machines get time to run. */
static unsigned int close_limit(void)
{
	return 2000 + patience;
}

static void closing_completes_what_is_in_flight_first(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 32);
	struct pair_init init;
	ktime_t end;
	int i;

	pair_defaults(&init);
	init.params.rnr_retries = 7;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 16; i++) {
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
		expect_eq(w, job_send(&jobs[16 + i], a, 0, 64), 0);
	}
	end = after_ms(close_limit());
	side_close(a);
	expect(w, ktime_before(ktime_get(), end));
	/* Already now, without any wait. */
	expect_eq(w, jobs_ended(jobs, 32), 32);
	expect_eq(w, jobs_repeated(jobs, 32), 0);
	for (i = 0; i < 32; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	/* It was its owner who ended it. */
	expect_eq(w, atomic_read(&a->broken), 0);
}

static void closing_after_a_break_completes_nothing_twice(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 16);
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 16; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
	ibchan_channel_break(a->ch, -EPIPE);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 16), 16);
	expect_eq(w, jobs_repeated(jobs, 16), 0);
	expect_eq(w, atomic_read(&a->broken), 1);
}

static void works_that_had_succeeded_stay_successful(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 8);
	int i, done = 0;

	if (world_default_pair(w) || !side_share(b))
		return;
	for (i = 0; i < 8; i++)
		expect_eq(w, job_write(&jobs[i], a, 64, &b->remote), 0);
	done += job_ended(&jobs[0]);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 8), 8);
	expect_eq(w, jobs_repeated(jobs, 8), 0);
	expect_eq(w, done, 1);
	expect_eq(w, jobs[0].completion.error, 0);
}

static void completions_by_wr_id_come_before_close_returns(struct world *w)
{
	struct side *a = &w->side[0];
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 16; i++)
		expect_eq(w, ibchan_post_receive(a->ch, a->local, 0, 64, i), 0);
	side_close(a);
	expect_eq(w, atomic_read(&a->logged), 16);
	expect_eq(w, atomic_read(&a->reserved), 0);
	for (i = 0; i < 16; i++)
		expect_eq(w, a->log[i].wr_id, i);
}

/* A peer that is gone answers nothing; that must not hold up the other end. */
static void closing_is_bounded_when_the_peer_is_gone(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 16);
	struct pair_init init;
	ktime_t end;
	int i;

	pair_defaults(&init);
	init.params.ack_timeout = 20;
	if (world_pair(w, &init))
		return;
	side_close(&w->side[1]);
	for (i = 0; i < 16; i++)
		expect_eq(w, job_send(&jobs[i], a, 0, 64), 0);
	end = after_ms(close_limit());
	side_close(a);
	expect(w, ktime_before(ktime_get(), end));
	expect_eq(w, jobs_ended(jobs, 16), 16);
	expect_eq(w, jobs_repeated(jobs, 16), 0);
}

/* Nobody reaps this cq but its owner, and the owner is closing. */
static void closing_needs_no_poller(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 16);
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 16; i++)
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 16), 16);
	expect_eq(w, jobs_repeated(jobs, 16), 0);
}

static void closing_one_channel_leaves_others_on_its_cq_alone(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_channel *other;
	struct ibchan_params params;

	ibchan_params_init(&params);
	if (world_default_pair(w) || !side_share(b))
		return;
	other = side_build(a, &params);
	if (!other || side_connect(w, other, other))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 0, 64), 0);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 1), 1);
	a->ch = other;
	expect_eq(w, job_receive(&jobs[1], a, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(other, side_sge(a, 64, 64), 1, NULL), 0);
	if (job_ended(&jobs[1]))
		expect_eq(w, jobs[1].completion.error, 0);
}

static void regions_are_free_as_soon_as_close_has_returned(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 4);
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 4; i++)
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
	expect_eq(w, ibchan_mr_try_dereg(a->local), -EBUSY);
	side_close(a);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

static void a_channel_can_be_closed_with_bottom_halves_off(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 4);
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 4; i++)
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
	local_bh_disable();
	side_close(a);
	local_bh_enable();
	ibchan_flush();
	expect_eq(w, jobs_ended(jobs, 4), 4);
	expect_eq(w, jobs_repeated(jobs, 4), 0);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

static const struct test_case close_cases[] = {
	CASE(closing_completes_what_is_in_flight_first),
	CASE(closing_after_a_break_completes_nothing_twice),
	CASE(works_that_had_succeeded_stay_successful),
	CASE(completions_by_wr_id_come_before_close_returns),
	CASE(closing_is_bounded_when_the_peer_is_gone),
	CASE(closing_needs_no_poller),
	CASE(closing_one_channel_leaves_others_on_its_cq_alone),
	CASE(regions_are_free_as_soon_as_close_has_returned),
	CASE(a_channel_can_be_closed_with_bottom_halves_off),
};

SUITE(close);
