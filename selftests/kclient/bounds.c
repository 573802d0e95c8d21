// SPDX-License-Identifier: GPL-2.0-only
/* Signals and deadlines (laws 5 and 6), one way to die (law 9). */
#include "job.h"
#include "suites.h"

struct call {
	struct side *side;
	struct ibchan_outcome outcome;
	ktime_t deadline;
};

static struct call *call_new(struct side *side)
{
	struct call *call = world_alloc(side->world, sizeof(*call));

	call->side = side;
	call->deadline = KTIME_MAX;
	return call;
}

static int receive_in_thread(void *arg)
{
	struct call *call = arg;
	struct side *side = call->side;
	struct ibchan_wr wr = ibchan_wr_receive(side_sge(side, 0, 64), 1);

	return ibchan_channel_run_until(side->ch, &wr, call->deadline, &call->outcome);
}

/* Its request has been flushed when it returns, so its stack is safe. */
static void a_killed_blocking_call_breaks_the_channel_and_returns_flushed(struct world *w)
{
	struct side *a = &w->side[0];
	struct call *call = call_new(a);
	struct thread thread = { .world = w, .run = receive_in_thread, .arg = call };
	struct ibchan_channel_attr attr;

	if (world_default_pair(w) || thread_start(&thread))
		return;
	thread_kill(&thread);
	expect_eq(w, thread_join(&thread), -EINTR);
	expect_eq(w, call->outcome.posted, 1);
	expect_eq(w, call->outcome.completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, attr.error, EINTR);
	expect_eq(w, attr.recvs_in_flight, 0);
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect_eq(w, a->error, -EINTR);
}

static void a_deadline_in_the_past_still_posts_and_breaks(struct world *w)
{
	struct call *call = call_new(&w->side[0]);

	if (world_default_pair(w))
		return;
	call->deadline = 0;
	expect_eq(w, receive_in_thread(call), -ETIMEDOUT);
	expect_eq(w, channel_state(w->side[0].ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, channel_in_flight(w->side[0].ch), 0);
}

/*
 * The first send waits for a receive of the peer's and is longer than that, so that it
 * fails when the others have been posted.
 */
static void sends_behind_a_failed_one_are_flushed(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 4);
	struct ibchan_channel_attr attr;
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	if (world_pair(w, &init) || !side_share(b))
		return;
	expect_eq(w, job_send(&jobs[0], a, 0, 64), 0);
	expect_eq(w, job_send(&jobs[1], a, 0, 64), 0);
	expect_eq(w, job_write(&jobs[2], a, 64, &b->remote), 0);
	expect_eq(w, job_send(&jobs[3], a, 0, 64), 0);
	fill_pattern(a->buf, 64, 1);
	fill_pattern(b->buf, 64, 2);
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 4096, 8, 0), 0);
	for (i = 0; i < 4; i++)
		if (!job_ended(&jobs[i]))
			return;
	/* The peer's device says which; the verbs say REM_INV_REQ_ERR. */
	expect_eq(w, jobs[0].completion.error, EREMOTEIO);
	for (i = 1; i < 4; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.error, EREMOTEIO);
	expect_eq(w, attr.status, jobs[0].completion.status);
	/* The write among them has not happened. */
	expect(w, has_pattern(b->buf, 64, 2));
}

static void the_first_error_wins_and_is_told_once(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_channel_attr attr;

	if (world_default_pair(w))
		return;
	ibchan_channel_break(a->ch, -ENOLINK);
	ibchan_channel_break(a->ch, -EPIPE);
	ibchan_channel_break(a->ch, -EIO);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, attr.error, ENOLINK);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, a->error, -ENOLINK);
}

static void a_broken_channel_refuses_each_kind_of_call(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome = {};

	if (world_default_pair(w) || !side_share(b))
		return;
	ibchan_channel_break(a->ch, -EPIPE);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, &outcome), -ESHUTDOWN);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_BROKEN);
	expect_eq(w, outcome.reason.value[0], EPIPE);
	expect_eq(w, ibchan_channel_receive(a->ch, side_sge(a, 0, 8), 1, NULL), -ESHUTDOWN);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 8), 1, &b->remote, NULL),
		  -ESHUTDOWN);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 8, 0), -ESHUTDOWN);
	expect_eq(w, atomic_read(&a->reserved), 0);
}

static void a_channel_can_be_broken_with_interrupts_off(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	unsigned long flags;

	if (world_default_pair(w))
		return;
	expect_eq(w, job_receive(job, a, 0, 64), 0);
	local_irq_save(flags);
	ibchan_channel_break(a->ch, -EPIPE);
	local_irq_restore(flags);
	job_ended(job);
	expect_eq(w, atomic_read(&a->broken), 1);
}

static int break_in_thread(void *arg)
{
	struct side *side = arg;
	int i;

	for (i = 0; i < 100; i++)
		ibchan_channel_break(side->ch, -EPIPE);
	return 0;
}

static void threads_that_break_at_once_tell_once(struct world *w)
{
	struct side *a = &w->side[0];
	struct thread threads[4];
	struct job *jobs = world_jobs(w, 16);
	int i, started = 0;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 16; i++)
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
	for (i = 0; i < 4; i++) {
		threads[i] = (struct thread){ .world = w, .run = break_in_thread, .arg = a };
		if (thread_start(&threads[i]))
			break;
		started++;
	}
	for (i = 0; i < started; i++)
		expect_eq(w, thread_join(&threads[i]), 0);
	expect_soon(w, jobs_ended(jobs, 16) == 16);
	expect_eq(w, jobs_repeated(jobs, 16), 0);
	expect_eq(w, atomic_read(&a->broken), 1);
}

static const struct test_case bounds_cases[] = {
	CASE(a_killed_blocking_call_breaks_the_channel_and_returns_flushed),
	CASE(a_deadline_in_the_past_still_posts_and_breaks),
	CASE(sends_behind_a_failed_one_are_flushed),
	CASE(the_first_error_wins_and_is_told_once),
	CASE(a_broken_channel_refuses_each_kind_of_call),
	CASE(a_channel_can_be_broken_with_interrupts_off),
	CASE(threads_that_break_at_once_tell_once),
};

SUITE(bounds);
