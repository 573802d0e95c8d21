// SPDX-License-Identifier: GPL-2.0-only
/* Works with done(): contexts, batches, no allocation on the path. */
#include <linux/slab.h>

#include "allocations.h"
#include "job.h"
#include "suites.h"

static void done_tells_how_the_work_ended(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr wr;

	if (world_default_pair(w))
		return;
	wr = job_wr(&jobs[0], IBCHAN_OP_RECV, b, 0, 100);
	wr.wr_id = 0x1234567890abcdefULL;
	expect_eq(w, job_post(&jobs[0], b->ch, &wr, NULL), 0);
	expect_eq(w, job_send(&jobs[1], a, 0, 60), 0);
	if (!job_ended(&jobs[0]) || !job_ended(&jobs[1]))
		return;
	expect_eq(w, jobs[0].completion.wr_id, 0x1234567890abcdefULL);
	expect_eq(w, jobs[0].completion.cookie, (uintptr_t)b);
	expect_eq(w, jobs[0].completion.opcode, IBCHAN_OP_RECV);
	expect_eq(w, jobs[0].completion.bytes, 60);
	expect_eq(w, jobs[1].completion.opcode, IBCHAN_OP_SEND);
	/* Works with a done() of their own do not go to the sink. */
	expect_eq(w, atomic_read(&a->logged) + atomic_read(&b->logged), 0);
	expect_eq(w, atomic_read(&a->reserved) + atomic_read(&b->reserved), 0);
}

static void look_at_context(struct job *job)
{
	job->arg = (void *)(uintptr_t)(in_softirq() && !irqs_disabled());
}

static void done_is_called_with_bottom_halves_off(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);

	if (world_default_pair(w) || !side_share(b))
		return;
	job->then = look_at_context;
	expect_eq(w, job_write(job, a, 64, &b->remote), 0);
	if (job_ended(job))
		expect(w, job->arg);
}

static void posting_works_with_bottom_halves_off(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 8);
	int i, refused = 0;

	if (world_default_pair(w) || !side_share(b))
		return;
	local_bh_disable();
	for (i = 0; i < 8; i++)
		refused += !!job_write(&jobs[i], a, 512, &b->remote);
	local_bh_enable();
	expect_eq(w, refused, 0);
	expect_soon(w, jobs_ended(jobs, 8) == 8);
	expect_eq(w, jobs_repeated(jobs, 8), 0);
}

static int post_batch(struct side *side, struct job *jobs, u32 num,
		      const struct ibchan_remote *remote, u32 *accepted)
{
	struct ibchan_wr *wrs = world_valloc(side->world, num * sizeof(*wrs));
	u32 i;

	if (!wrs)
		return -ENOMEM;
	for (i = 0; i < num; i++) {
		jobs[i].sges[0] = ibchan_sge_unchecked(side->local, 0, 64);
		wrs[i] = ibchan_wr_write(jobs[i].sges, 1, remote);
		wrs[i].work = &jobs[i].work;
		wrs[i].wr_id = i;
	}
	return ibchan_post(side->ch, wrs, num, accepted, NULL);
}

/* More than one chain holds. */
static void a_batch_is_posted_in_one_call(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 100);
	struct pair_init init;
	u32 accepted = 0;
	int i;

	pair_defaults(&init);
	init.params.max_send_wr = 100;
	if (world_pair(w, &init) || !side_share(b))
		return;
	expect_eq(w, post_batch(a, jobs, 100, &b->remote, &accepted), 0);
	expect_eq(w, accepted, 100);
	expect_soon(w, jobs_ended(jobs, 100) == 100);
	expect_eq(w, jobs_repeated(jobs, 100), 0);
	for (i = 0; i < 100; i++)
		expect_eq(w, jobs[i].completion.wr_id, i);
}

static void an_empty_batch_is_accepted_and_does_nothing(struct world *w)
{
	u32 accepted = 7;

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_post(w->side[0].ch, NULL, 0, &accepted, NULL), 0);
	expect_eq(w, accepted, 0);
}

static void a_work_without_done_needs_a_sink(struct world *w)
{
	static const struct ibchan_sink no_sink = {};
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;
	struct pair_init init;
	u32 accepted;

	pair_defaults(&init);
	init.sink = &no_sink;
	if (world_pair(w, &init) || !side_share(b))
		return;
	wr = ibchan_wr_write(side_sge(a, 0, 8), 1, &b->remote);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_NO_SINK);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
}

static void a_work_that_is_in_flight_is_not_posted_again(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 3);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;
	u32 accepted;

	if (world_default_pair(w) || !side_share(a))
		return;
	wr = job_wr(&jobs[0], IBCHAN_OP_RECV, b, 0, 64);
	expect_eq(w, job_post(&jobs[0], b->ch, &wr, NULL), 0);
	expect_eq(w, ibchan_post(b->ch, &wr, 1, &accepted, &reason), -EBUSY);
	expect_eq(w, accepted, 0);
	expect_eq(w, reason.code, IBCHAN_REASON_WORK_IN_FLIGHT);
	/* Nor to the other queue, also where it stands elsewhere than the next place. */
	expect_eq(w, job_write(&jobs[1], b, 64, &a->remote), 0);
	wr = ibchan_wr_write(wr.sges, 1, &a->remote);
	wr.work = &jobs[0].work;
	expect_eq(w, ibchan_post(b->ch, &wr, 1, &accepted, &reason), -EBUSY);
	expect_eq(w, job_send(&jobs[2], a, 0, 60), 0);
	expect(w, job_ended(&jobs[0]) && job_ended(&jobs[1]) && job_ended(&jobs[2]));
	expect_eq(w, jobs[0].completion.bytes, 60);
	/* Once it has ended it may. */
	atomic_set(&jobs[0].ended, 0);
	expect_eq(w, ibchan_post(b->ch, &wr, 1, &accepted, &reason), 0);
	expect(w, job_ended(&jobs[0]));
}

static void a_work_that_is_in_flight_is_not_posted_on_another_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;
	u32 accepted;

	if (world_default_pair(w))
		return;
	wr = job_wr(job, IBCHAN_OP_RECV, b, 0, 64);
	expect_eq(w, job_post(job, b->ch, &wr, NULL), 0);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), -EBUSY);
	expect_eq(w, reason.code, IBCHAN_REASON_WORK_IN_FLIGHT);
	expect_eq(w, channel_in_flight(a->ch), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 60), 1, NULL), 0);
	if (!job_ended(job))
		return;
	expect_eq(w, job->completion.bytes, 60);
	/* Once it has ended it may. */
	atomic_set(&job->ended, 0);
	wr = job_wr(job, IBCHAN_OP_RECV, a, 0, 64);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 30), 1, NULL), 0);
	if (job_ended(job))
		expect_eq(w, job->completion.bytes, 30);
}

static void a_chain_that_names_a_work_twice_is_posted_up_to_that(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[3];
	u32 accepted;

	if (world_default_pair(w) || !side_share(b))
		return;
	wrs[0] = job_wr(&jobs[0], IBCHAN_OP_RECV, a, 0, 64);
	wrs[1] = job_wr(&jobs[1], IBCHAN_OP_RECV, a, 64, 64);
	wrs[2] = wrs[0];
	expect_eq(w, ibchan_post(a->ch, wrs, 3, &accepted, &reason), -EBUSY);
	expect_eq(w, accepted, 2);
	expect_eq(w, reason.wr, 2);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	expect(w, job_ended(&jobs[0]) && job_ended(&jobs[1]));
}

static void a_work_whose_post_was_refused_may_be_posted(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr, wrong;
	u32 accepted;

	if (world_default_pair(w) || !side_share(b))
		return;
	wr = job_wr(job, IBCHAN_OP_RECV, a, 0, 64);
	wrong = wr;
	wrong.flags = 0x20;
	expect_eq(w, ibchan_post(a->ch, &wrong, 1, &accepted, NULL), -EOPNOTSUPP);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	expect(w, job_ended(job));
}

static void a_work_of_the_callers_without_done_is_refused(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;
	u32 accepted;

	if (world_default_pair(w))
		return;
	wr = job_wr(job, IBCHAN_OP_RECV, a, 0, 64);
	job->work.done = NULL;
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_NO_DONE);
}

/* --- allocations --- */

#define EXCHANGES	30

struct tally {
	int ours;
	int all;
};

/* Few enough at a time for the list of callers to hold what the driver does. */
static void note_exchange(struct world *w, struct job *jobs, struct tally *tally)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_wr receive = job_wr(&jobs[0], IBCHAN_OP_RECV, b, 0, 64);
	struct ibchan_wr send = job_wr(&jobs[1], IBCHAN_OP_SEND, a, 0, 64);

	receive.flags = IBCHAN_WR_EXCLUSIVE;
	atomic_set(&jobs[0].ended, 0);
	atomic_set(&jobs[1].ended, 0);
	allocations_begin();
	expect_eq(w, job_post(&jobs[0], b->ch, &receive, NULL), 0);
	expect_eq(w, job_post(&jobs[1], a->ch, &send, NULL), 0);
	expect_soon(w, jobs_ended(jobs, 2) == 2);
	kfree(kmalloc(8, GFP_KERNEL));
	allocations_end(w);
	tally->ours += allocations_by("[ibchan]");
	tally->all += allocations_by("");
}

static void neither_post_nor_completion_allocates(struct world *w)
{
	struct job *jobs = world_jobs(w, 2);
	struct tally tally = {};
	int round;

	if (world_default_pair(w) || !side_share(&w->side[1]) || allocations_watch(w))
		return;
	for (round = 0; round < EXCHANGES; round++)
		note_exchange(w, jobs, &tally);
	allocations_unwatch(w);
	expect_eq(w, tally.ours, 0);
	/* Those of note_exchange() itself show that allocations are seen at all. */
	expect(w, tally.all >= EXCHANGES);
}

static const struct test_case unpolled_cases[] = {
	CASE(done_tells_how_the_work_ended),
	CASE(done_is_called_with_bottom_halves_off),
	CASE(posting_works_with_bottom_halves_off),
	CASE(a_batch_is_posted_in_one_call),
	CASE(an_empty_batch_is_accepted_and_does_nothing),
	CASE(a_work_without_done_needs_a_sink),
	CASE(a_work_that_is_in_flight_is_not_posted_again),
	CASE(a_work_that_is_in_flight_is_not_posted_on_another_channel),
	CASE(a_chain_that_names_a_work_twice_is_posted_up_to_that),
	CASE(a_work_whose_post_was_refused_may_be_posted),
	CASE(a_work_of_the_callers_without_done_is_refused),
	CASE(neither_post_nor_completion_allocates),
};

SUITE(unpolled);
