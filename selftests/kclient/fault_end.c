// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels that end while the verbs that end them fail, and cqs that cannot be polled
 * or armed.
 *
 * Where a queue pair is ended by RESET instead of ERR (soft-RoCE of 6.12, see
 * kmod/trace/compat.h), no markers are posted: there the point that is passed is another.
 */
#include "faults.h"

#define EACH	8	/* sends, and receives, in flight */

/* The module promises a drain of 2 s. Slow machines get time to run. */
static ktime_t latest_end(void)
{
	return after_ms(2000 + patience);
}

/* Works that do not end: the peer posts no receive, and sends nothing. */
static struct job *stuck_works(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2 * EACH);
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	if (!jobs || fault_pair(w, &init))
		return NULL;
	for (i = 0; i < EACH; i++) {
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
		expect_eq(w, job_send(&jobs[EACH + i], a, 4096, 64), 0);
	}
	return jobs;
}

static void expect_all_flushed(struct world *w, const struct job *jobs)
{
	int i;

	expect_eq(w, jobs_ended(jobs, 2 * EACH), 2 * EACH);
	expect_eq(w, jobs_repeated(jobs, 2 * EACH), 0);
	for (i = 0; i < 2 * EACH; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}

/* Works, places and regions are free as soon as that has returned. */
static void expect_bounded_close(struct world *w, const struct job *jobs)
{
	struct side *a = &w->side[0];
	ktime_t end = latest_end();

	side_close(a);
	expect(w, ktime_before(ktime_get(), end));
	expect_all_flushed(w, jobs);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

static int resets_instead(u32 resets_before)
{
	return ibchan_fault_passed(IBCHAN_FAULT_QP_RESET) != resets_before;
}

/* --- markers --- */

static void close_without_markers(struct world *w, int no_send, int no_recv)
{
	u32 resets = ibchan_fault_passed(IBCHAN_FAULT_QP_RESET);
	struct job *jobs = stuck_works(w);
	struct fault send, recv;

	if (!jobs)
		return;
	send = fault_arm(IBCHAN_FAULT_SEND_MARKER, 1, no_send ? FAULT_ERROR : 0);
	recv = fault_arm(IBCHAN_FAULT_RECV_MARKER, 1, no_recv ? FAULT_ERROR : 0);
	expect_bounded_close(w, jobs);
	if (!resets_instead(resets))
		expect(w, fault_fired(&send) && fault_fired(&recv));
	world_give_back(w);
}

void closing_is_bounded_whichever_marker_is_missing(struct world *w)
{
	int missing;

	for (missing = 0; missing < 4; missing++)
		close_without_markers(w, missing & 1, missing & 2);
}

/* --- a queue pair that does not stop --- */

struct stop {
	struct fault error;
	struct fault reset;
};

/* Whichever of the two this kernel has it end by, fails. */
static struct stop arm_stop(void)
{
	return (struct stop){
		.error = fault_arm(IBCHAN_FAULT_QP_ERR, 1, FAULT_ERROR),
		.reset = fault_arm(IBCHAN_FAULT_QP_RESET, 1, FAULT_ERROR),
	};
}

static int stop_failed(const struct stop *stop)
{
	return fault_fired(&stop->error) || fault_fired(&stop->reset);
}

void closing_is_bounded_when_the_queue_pair_does_not_stop(struct world *w)
{
	struct job *jobs = stuck_works(w);
	struct stop stop;

	if (!jobs)
		return;
	stop = arm_stop();
	expect_bounded_close(w, jobs);
	expect(w, stop_failed(&stop));
}

static int stop_has_failed(void *arg)
{
	return stop_failed(arg);
}

/* The device may still use their memory: until it has stopped they are in flight. */
void a_queue_pair_that_does_not_stop_keeps_its_works(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = stuck_works(w);
	struct stop stop;

	if (!jobs)
		return;
	stop = arm_stop();
	ibchan_channel_break(a->ch, -ENOLINK);
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect(w, fault_poll_until(stop_has_failed, &stop));
	/* The query waits for the end of what changes the queue pair. */
	if (channel_in_flight(a->ch))
		expect_eq(w, ibchan_mr_try_dereg(a->local), -EBUSY);
	expect_eq(w, jobs_ended(jobs, 2 * EACH), 0);
	expect_eq(w, channel_in_flight(a->ch), 2 * EACH);
	expect_bounded_close(w, jobs);
	expect_eq(w, a->error, -ENOLINK);
}

void a_deadline_ends_a_call_although_the_queue_pair_does_not_stop(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome;
	struct ibchan_wr wr;
	struct stop stop;
	ktime_t end;

	if (fault_pair(w, NULL))
		return;
	wr = ibchan_wr_receive(side_sge(a, 0, 64), 1);
	stop = arm_stop();
	end = latest_end();
	expect_eq(w, ibchan_channel_run_until(a->ch, &wr, after_ms(20), &outcome), -ETIMEDOUT);
	expect(w, ktime_before(ktime_get(), end));
	expect(w, stop_failed(&stop));
	expect_eq(w, outcome.posted, 1);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

/* --- cqs --- */

/* Any poll of an exchange fails once; how many there are is a matter of timing. */
void a_poll_that_fails_loses_nothing(struct world *w)
{
	struct fault fault;
	u32 fired = 0;
	u32 nth;

	if (fault_pair(w, NULL))
		return;
	for (nth = 1; nth <= 8; nth++) {
		fault = fault_arm(IBCHAN_FAULT_CQ_POLL, nth, FAULT_ERROR);
		if (!fault_data_flows(w))
			pr_info("# poll %u had failed\n", nth);
		fired += fault_fired(&fault);
	}
	expect(w, fired >= 2);
	expect_eq(w, channel_in_flight(w->side[0].ch), 0);
	expect_eq(w, channel_in_flight(w->side[1].ch), 0);
}

/* What has come before the close has come, although nobody had looked. */
static void expect_half_received(struct world *w, const struct job *jobs)
{
	u32 i;

	expect_eq(w, jobs_ended(jobs, 2 * EACH), 2 * EACH);
	expect_eq(w, jobs_repeated(jobs, 2 * EACH), 0);
	for (i = 0; i < 2 * EACH; i++)
		expect_eq(w, jobs[i].completion.status,
			  i < EACH ? IBCHAN_STATUS_SUCCESS : IBCHAN_STATUS_WR_FLUSH_ERR);
}

/* Completions that stayed in the cq turn up when the next channel on it is used. */
static void expect_nothing_turns_up(struct world *w, const struct ibchan_params *params,
				    struct job *jobs)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *next = &jobs[2 * EACH];

	if (fault_fresh_channels(w, params))
		return;
	expect_eq(w, job_receive(next, a, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	expect(w, ibchan_cq_reap(a->send_cq, 64) <= 1);
	expect_eq(w, jobs_repeated(jobs, 2 * EACH + 1), 0);
}

/* Half of what is posted has completed by then, and nobody has reaped it. */
static void close_while_poll_fails(struct world *w, const struct ibchan_params *params,
				   struct job *jobs, u32 nth)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_sge *sge = side_sge(b, 0, 64);
	int i;

	for (i = 0; i < 2 * EACH; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
	for (i = 0; i < EACH; i++)
		expect_eq(w, ibchan_channel_send(b->ch, sge, 1, NULL), 0);
	expect_eq(w, jobs_ended(jobs, 2 * EACH), 0);
	fault_arm(IBCHAN_FAULT_CQ_POLL, nth, FAULT_ERROR);
	side_close(a);
	expect_half_received(w, jobs);
	expect_nothing_turns_up(w, params, jobs);
}

static struct job *polled_pair(struct world *w, struct pair_init *init)
{
	pair_defaults(init);
	init->cq_flags = IBCHAN_CQ_POLLED;
	return fault_fresh_pair(w, init) ? NULL : world_jobs(w, 2 * EACH + 1);
}

void a_poll_that_fails_while_closing_neither_loses_nor_repeats(struct world *w)
{
	struct pair_init init;
	struct job *jobs;
	u32 nth;

	for (nth = 1; nth <= 8 && !w->failures; nth++) {
		jobs = polled_pair(w, &init);
		if (!jobs)
			return;
		close_while_poll_fails(w, &init.params, jobs, nth);
		if (w->failures)
			pr_info("# poll %u had failed\n", nth);
	}
}

/* Without markers the first poll comes when the queue pair is gone. */
void a_poll_that_fails_after_the_drain_neither_loses_nor_repeats(struct world *w)
{
	struct pair_init init;
	struct job *jobs = polled_pair(w, &init);

	if (!jobs)
		return;
	fault_arm(IBCHAN_FAULT_SEND_MARKER, 1, FAULT_ERROR);
	fault_arm(IBCHAN_FAULT_RECV_MARKER, 1, FAULT_ERROR);
	close_while_poll_fails(w, &init.params, jobs, 1);
}

static int receive_blocking(void *arg)
{
	struct side *side = arg;

	return ibchan_channel_receive(side->ch, side_sge(side, 0, 64), 1, NULL);
}

/* The waiter asks for an event before it sleeps, and after each time it was woken. */
static void wait_while_arming_answers(struct world *w, int answer)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct thread thread = { .world = w, .run = receive_blocking, .arg = a };
	struct pair_init init;
	struct fault fault;
	u32 nth;

	/* A send may come before its receive. */
	pair_defaults(&init);
	init.params.rnr_retries = 7;
	if (fault_pair(w, &init))
		return;
	for (nth = 1; nth <= 3; nth++) {
		fault = fault_arm(IBCHAN_FAULT_CQ_NOTIFY, nth, answer);
		thread.started = 0;
		thread.ended = 0;
		if (thread_start(&thread))
			return;
		expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
		expect_eq(w, thread_join(&thread), 0);
		if (nth == 1)
			expect(w, fault_fired(&fault));
	}
}

static void be_called_while_arming_answers(struct world *w, int answer)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 3);
	struct fault fault;
	u32 i;

	if (fault_pair(w, NULL))
		return;
	for (i = 0; i < 3; i++) {
		fault = fault_arm(IBCHAN_FAULT_CQ_NOTIFY, i + 1, answer);
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
		if (!i)
			expect(w, fault_fired(&fault));
		expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
		job_ended(&jobs[i]);
	}
}

void waiters_go_on_when_the_cq_cannot_be_armed(struct world *w)
{
	wait_while_arming_answers(w, FAULT_ERROR);
}

void done_is_called_when_the_cq_cannot_be_armed(struct world *w)
{
	be_called_while_arming_answers(w, FAULT_ERROR);
}

/* bnxt_re reports a completion that was there, and has not armed the cq. */
void waiters_are_woken_when_the_driver_reports_and_does_not_arm(struct world *w)
{
	wait_while_arming_answers(w, 1);
}

void done_is_called_when_the_driver_reports_and_does_not_arm(struct world *w)
{
	be_called_while_arming_answers(w, 1);
}

/* --- a device that completes twice --- */

static void receive_once_more(struct job *job)
{
	struct side *side = job->arg;

	job->then = NULL;
	expect_eq(side->world, job_receive(job, side, 128, 64), 0);
}

/*
 * The first of two receives completes, and does so twice: the cq is reaped only here. Returns NULL
 * where nothing could be posted.
 */
static struct job *receive_with_repeat(struct world *w, void (*then)(struct job *job))
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;
	struct fault fault;
	struct job *jobs;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	jobs = fault_pair(w, &init) ? NULL : world_jobs(w, 2);
	if (!jobs)
		return NULL;
	jobs[0].then = then;
	jobs[0].arg = a;
	expect_eq(w, job_receive(&jobs[0], a, 0, 64), 0);
	expect_eq(w, job_receive(&jobs[1], a, 64, 64), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	fault = fault_arm(IBCHAN_FAULT_REPEAT, 1, 1);
	expect(w, ibchan_cq_reap(a->recv_cq, 16) == 1);
	expect(w, fault_fired(&fault));
	expect_eq(w, atomic_read(&jobs[0].ended), 1);
	expect_eq(w, jobs[0].completion.error, 0);
	expect_eq(w, atomic_read(&jobs[1].ended), 0);
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect_eq(w, a->error, -EIO);
	side_close(a);
	expect_eq(w, jobs[1].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	return jobs;
}

void a_completion_that_comes_twice_ends_nothing_and_breaks_its_channel(struct world *w)
{
	struct job *jobs = receive_with_repeat(w, NULL);

	if (!jobs)
		return;
	expect_eq(w, jobs_ended(jobs, 2), 2);
	expect_eq(w, jobs_repeated(jobs, 2), 0);
}

void a_completion_that_comes_twice_does_not_end_what_was_posted_since(struct world *w)
{
	struct job *jobs = receive_with_repeat(w, receive_once_more);

	if (!jobs)
		return;
	/* It was posted twice. */
	expect_eq(w, atomic_read(&jobs[0].ended), 2);
	expect_eq(w, jobs[0].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, atomic_read(&jobs[1].ended), 1);
}

/* Of works that are flushed, or of a marker. Where RESET ends them none may come at all. */
void closing_is_bounded_whichever_completion_comes_twice(struct world *w)
{
	struct job *jobs;
	u32 nth;

	for (nth = 1; nth <= 2 * EACH + 2 && !w->failures; nth++) {
		jobs = stuck_works(w);
		if (!jobs)
			return;
		fault_arm(IBCHAN_FAULT_REPEAT, nth, 1);
		expect_bounded_close(w, jobs);
		world_give_back(w);
	}
	faults_off();
}
