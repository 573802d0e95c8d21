// SPDX-License-Identifier: GPL-2.0-only
/* Pending works: poll, spin, wait, result, drop (C6, C7). */
#include <rdma/ibchan_scope.h>

#include "job.h"
#include "suites.h"

static struct ibchan_pending *pendings(struct world *w, u32 num)
{
	return world_alloc(w, num * sizeof(struct ibchan_pending));
}

static int receive_pending(struct ibchan_pending *pending, struct side *side, u64 wr_id)
{
	struct ibchan_wr wr = ibchan_wr_receive(side_sge(side, wr_id * 1024, 1024), 1);

	wr.wr_id = wr_id;
	return ibchan_pending_post(pending, side->ch, &wr, NULL);
}

static int send_one(struct side *side)
{
	return ibchan_channel_send(side->ch, side_sge(side, 0, 100), 1, NULL);
}

static void a_pending_work_is_polled_until_it_has_ended(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_pending_result(pending), -EINVAL);
	expect_eq(w, receive_pending(pending, b, 7), 0);
	expect_eq(w, ibchan_pending_poll(pending), -EINPROGRESS);
	expect_eq(w, ibchan_pending_result(pending), -EINPROGRESS);
	expect_eq(w, send_one(a), 0);
	expect_soon(w, ibchan_pending_poll(pending) == 0);
	expect_eq(w, pending->completion.wr_id, 7);
	expect_eq(w, pending->completion.bytes, 100);
}

static void spinning_ends_with_the_work(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_spin(pending), 0);
}

static int wait_for_pending(void *arg)
{
	return ibchan_pending_wait(arg);
}

static void a_bounded_wait_ends_and_leaves_the_work_in_flight(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	ktime_t deadline;

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	deadline = after_ms(30);
	expect_eq(w, ibchan_pending_wait_until(pending, deadline), -ETIME);
	expect(w, ktime_compare(ktime_get(), deadline) >= 0);
	expect_eq(w, channel_in_flight(b->ch), 1);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait_until(pending, after_ms(patience)), 0);
}

/* Law 5: the signal ends the wait and not the work. */
static void a_killed_wait_ends_and_leaves_the_work_in_flight(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	struct thread thread = { .world = w, .run = wait_for_pending, .arg = pending };

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	if (thread_start(&thread))
		return;
	thread_kill(&thread);
	expect_eq(w, thread_join(&thread), -EINTR);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, ibchan_pending_result(pending), -EINPROGRESS);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
}

static int drop_pending(void *arg)
{
	ibchan_pending_drop(arg);
	return 0;
}

static void dropping_blocks_until_the_work_has_ended(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	struct thread thread = { .world = w, .run = drop_pending, .arg = pending };

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	if (thread_start(&thread))
		return;
	expect_eq(w, ibchan_pending_wait_until(pending, after_ms(20)), -ETIME);
	expect_eq(w, READ_ONCE(thread.ended), 0);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, thread_join(&thread), 0);
	expect_eq(w, ibchan_pending_result(pending), 0);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
}

static void a_killed_drop_breaks_the_channel_and_still_waits(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	struct thread thread = { .world = w, .run = drop_pending, .arg = pending };

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	if (thread_start(&thread))
		return;
	thread_kill(&thread);
	expect_eq(w, thread_join(&thread), 0);
	expect_eq(w, ibchan_pending_result(pending), -ECANCELED);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_BROKEN);
}

static int drop_at_the_end_of_a_block(struct side *a, struct side *b,
				      struct ibchan_pending *memory)
{
	struct ibchan_pending *pending __free(ibchan_pending) = memory;
	int ret;

	ret = receive_pending(pending, b, 0);
	return ret ?: send_one(a);
}

static void a_variable_that_goes_out_of_scope_drops_its_work(struct world *w)
{
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, drop_at_the_end_of_a_block(&w->side[0], &w->side[1], pending), 0);
	expect_eq(w, ibchan_pending_result(pending), 0);
}

static void a_work_in_flight_is_not_posted_again(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 0), 0);
	expect_eq(w, receive_pending(pending, b, 0), -EALREADY);
	expect_eq(w, channel_in_flight(b->ch), 1);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
	expect_eq(w, receive_pending(pending, b, 0), 0);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
}

static void a_refused_repost_leaves_the_old_result(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	struct job *job = world_jobs(w, 1);
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_recv_wr = 1;
	if (world_pair(w, &init))
		return;
	expect_eq(w, receive_pending(pending, b, 5), 0);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
	expect_eq(w, job_receive(job, b, 0, 1024), 0);
	expect_eq(w, receive_pending(pending, b, 6), -EAGAIN);
	expect_eq(w, ibchan_pending_poll(pending), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
	expect_eq(w, ibchan_pending_result(pending), 0);
	expect_eq(w, pending->completion.wr_id, 5);
	expect_eq(w, pending->completion.bytes, 100);
	expect_eq(w, send_one(a), 0);
	if (!job_ended(job))
		return;
	expect_eq(w, receive_pending(pending, b, 7), 0);
	expect_eq(w, ibchan_pending_result(pending), -EINPROGRESS);
	expect_eq(w, send_one(a), 0);
	expect_eq(w, ibchan_pending_wait(pending), 0);
	expect_eq(w, pending->completion.wr_id, 7);
}

/* Nor does a failure that nobody has looked at yet. */
static void a_refused_repost_leaves_the_old_error(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, receive_pending(pending, b, 5), 0);
	ibchan_channel_break(b->ch, -EPIPE);
	expect_soon(w, ibchan_pending_result(pending) == -ECANCELED);
	expect_eq(w, receive_pending(pending, b, 6), -ESHUTDOWN);
	expect_eq(w, ibchan_pending_result(pending), -ECANCELED);
	expect_eq(w, ibchan_pending_wait(pending), -ECANCELED);
	expect_eq(w, pending->completion.wr_id, 5);
	expect_eq(w, pending->completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}

static void a_first_post_that_is_refused_leaves_no_result(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);

	if (world_default_pair(w))
		return;
	ibchan_channel_break(b->ch, -EPIPE);
	expect_eq(w, receive_pending(pending, b, 5), -ESHUTDOWN);
	expect_eq(w, ibchan_pending_result(pending), -EINVAL);
	expect_eq(w, ibchan_pending_wait(pending), -EINVAL);
	ibchan_pending_drop(pending);
}

/* C7: looking for the last one takes in all before it; none is lost. */
static void works_met_on_the_way_are_not_lost(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 16);
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 16; i++)
		expect_eq(w, receive_pending(&pending[i], b, i), 0);
	for (i = 0; i < 16; i++)
		expect_eq(w, send_one(a), 0);
	for (i = 15; i >= 0; i--) {
		expect_eq(w, ibchan_pending_wait(&pending[i]), 0);
		expect_eq(w, pending[i].completion.wr_id, i);
	}
}

/* Its completion is what the caller waits for, so the flag must not hide it. */
static void an_unsignaled_pending_work_ends_all_the_same(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pending *pending = pendings(w, 1);
	struct ibchan_wr wr;

	if (world_default_pair(w) || !side_share(b))
		return;
	wr = ibchan_wr_write(side_sge(a, 0, 64), 1, &b->remote);
	wr.flags = IBCHAN_WR_UNSIGNALED;
	expect_eq(w, ibchan_pending_post(pending, a->ch, &wr, NULL), 0);
	expect_eq(w, ibchan_pending_wait_until(pending, after_ms(patience)), 0);
	expect_eq(w, ibchan_channel_run_until(a->ch, &wr, after_ms(patience), NULL), 0);
}

static const struct test_case pending_cases[] = {
	CASE(a_pending_work_is_polled_until_it_has_ended),
	CASE(spinning_ends_with_the_work),
	CASE(a_bounded_wait_ends_and_leaves_the_work_in_flight),
	CASE(a_killed_wait_ends_and_leaves_the_work_in_flight),
	CASE(dropping_blocks_until_the_work_has_ended),
	CASE(a_killed_drop_breaks_the_channel_and_still_waits),
	CASE(a_variable_that_goes_out_of_scope_drops_its_work),
	CASE(a_work_in_flight_is_not_posted_again),
	CASE(a_refused_repost_leaves_the_old_result),
	CASE(a_refused_repost_leaves_the_old_error),
	CASE(a_first_post_that_is_refused_leaves_no_result),
	CASE(works_met_on_the_way_are_not_lost),
	CASE(an_unsignaled_pending_work_ends_all_the_same),
};

SUITE(pending);
