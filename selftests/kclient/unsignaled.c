// SPDX-License-Identifier: GPL-2.0-only
/* Selective signaling, with the right account of places (B3). */
#include "job.h"
#include "suites.h"

static int write_flagged(struct job *job, struct side *a, struct side *b, u8 flags)
{
	struct ibchan_wr wr;

	job->sges[0] = ibchan_sge_unchecked(a->local, 0, 8);
	wr = ibchan_wr_write(job->sges, 1, &b->remote);
	wr.flags = flags;
	return job_post(job, a->ch, &wr, NULL);
}

/* As fast as places come free; everything ends once, all of it with the last. */
static int post_all(struct side *a, struct side *b, struct job *jobs, u32 num, u32 every)
{
	u32 i;
	int ret;

	for (i = 0; i < num; i++) {
		u8 flags = every && i % every == every - 1 ? 0 : IBCHAN_WR_UNSIGNALED;

		if (i == num - 1)
			flags = 0;
		ret = -EAGAIN;
		expect_soon(a->world, (ret = write_flagged(&jobs[i], a, b, flags)) != -EAGAIN);
		if (ret)
			return ret;
	}
	return 0;
}

static void flood(struct world *w, u32 depth, u32 every)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	const u32 num = 320;
	struct job *jobs = world_jobs(w, num);
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = depth;
	if (world_pair(w, &init) || !side_share(b))
		return;
	expect_eq(w, post_all(a, b, jobs, num, every), 0);
	expect_soon(w, jobs_ended(jobs, num) == num);
	expect_eq(w, jobs_repeated(jobs, num), 0);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, channel_in_flight(a->ch), 0);
}

static void signals_rarer_than_the_queue_is_deep_do_not_hang_it(struct world *w)
{
	flood(w, 16, 100);
}

static void unsignaled_works_go_on_in_a_queue_of_one(struct world *w)
{
	flood(w, 1, 0);
}

static int unsignaled_by_wr_id(struct side *a, struct side *b, u64 wr_id, u8 flags)
{
	struct ibchan_wr wr;
	u32 accepted;

	wr = ibchan_wr_write(side_sge(a, 0, 8), 1, &b->remote);
	wr.wr_id = wr_id;
	wr.flags = flags;
	return ibchan_post(a->ch, &wr, 1, &accepted, NULL);
}

static void by_wr_id_an_unsignaled_success_is_silent(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;
	u64 i;

	pair_defaults(&init);
	if (world_pair(w, &init) || !side_share(b))
		return;
	for (i = 0; i < 3; i++)
		expect_eq(w, unsignaled_by_wr_id(a, b, i, IBCHAN_WR_UNSIGNALED), 0);
	expect_eq(w, unsignaled_by_wr_id(a, b, 3, 0), 0);
	expect_soon(w, atomic_read(&a->logged) == 1);
	expect_eq(w, a->log[0].wr_id, 3);
	/* The room of the silent ones has been given back. */
	expect_eq(w, atomic_read(&a->reserved), 0);
	expect_eq(w, channel_in_flight(a->ch), 0);
}

static void an_unsignaled_work_is_told_of_a_break_once(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 5);
	int i;

	if (world_default_pair(w) || !side_share(b))
		return;
	for (i = 0; i < 5; i++)
		expect_eq(w, write_flagged(&jobs[i], a, b, IBCHAN_WR_UNSIGNALED), 0);
	ibchan_channel_break(a->ch, -EPIPE);
	expect_soon(w, jobs_ended(jobs, 5) == 5);
	expect_eq(w, jobs_repeated(jobs, 5), 0);
	side_close(a);
	expect_eq(w, jobs_repeated(jobs, 5), 0);
}

static const struct test_case unsignaled_cases[] = {
	CASE(signals_rarer_than_the_queue_is_deep_do_not_hang_it),
	CASE(unsignaled_works_go_on_in_a_queue_of_one),
	CASE(by_wr_id_an_unsignaled_success_is_silent),
	CASE(an_unsignaled_work_is_told_of_a_break_once),
};

SUITE(unsignaled);
