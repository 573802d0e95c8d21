// SPDX-License-Identifier: GPL-2.0-only
/* Blocking calls, lists of elements, immediates (C3, M3, W1, W2). */
#include <linux/string.h>

#include "job.h"
#include "suites.h"

/* Around the packet of 1024 bytes, the page, and the buffer. */
static const u32 sizes[] = { 1, 7, 64, 1023, 1024, 1025, 4096, 4097, 65536 };

#define GUARD	0x5a
#define AT	512	/* where data arrives, with guards before and behind */

static void clear_target(struct side *side)
{
	memset(side->buf, GUARD, SIDE_BYTES);
}

/* The bytes have arrived, and only they. */
static void check_target(struct side *side, u32 length, u32 seed)
{
	struct world *w = side->world;

	expect(w, has_pattern(side->buf + AT, length, seed));
	expect(w, !memchr_inv(side->buf, GUARD, AT));
	expect(w, !memchr_inv(side->buf + AT + length, GUARD, SIDE_BYTES - AT - length));
}

static void a_blocking_send_arrives_whole_at_every_size(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, ARRAY_SIZE(sizes));
	struct ibchan_outcome outcome = {};
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		clear_target(b);
		fill_pattern(a->buf, sizes[i], i);
		expect_eq(w, job_receive(&jobs[i], b, AT, sizes[i] + 100), 0);
		expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, sizes[i]), 1, &outcome), 0);
		expect_eq(w, outcome.posted, 1);
		expect_eq(w, outcome.completion.opcode, IBCHAN_OP_SEND);
		if (!job_ended(&jobs[i]))
			return;
		expect_eq(w, jobs[i].completion.bytes, sizes[i]);
		check_target(b, sizes[i], i);
	}
}

struct receiver {
	struct side *side;
	struct ibchan_outcome outcome;
	u32 length;
};

static int receive_blocking(void *arg)
{
	struct receiver *receiver = arg;
	struct side *side = receiver->side;

	return ibchan_channel_receive(side->ch, side_sge(side, AT, receiver->length), 1,
				      &receiver->outcome);
}

static void a_blocking_receive_sleeps_until_the_message_comes(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct receiver *receiver = world_alloc(w, sizeof(*receiver));
	struct thread thread = { .world = w, .run = receive_blocking, .arg = receiver };

	if (world_default_pair(w))
		return;
	*receiver = (struct receiver){ .side = b, .length = 4000 };
	fill_pattern(a->buf, 3000, 9);
	clear_target(b);
	if (thread_start(&thread))
		return;
	/* Nothing to wait for: whether it posts before or after, the message waits for it. */
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 3000), 1, NULL), 0);
	expect_eq(w, thread_join(&thread), 0);
	expect_eq(w, receiver->outcome.completion.bytes, 3000);
	expect_eq(w, receiver->outcome.completion.opcode, IBCHAN_OP_RECV);
	check_target(b, 3000, 9);
}

/* A send without a receive is tried again for ever. */
static int patient_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.rnr_retries = 7;
	return world_pair(w, &init);
}

static void a_deadline_that_does_not_pass_changes_nothing(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_outcome outcome = {};

	if (patient_pair(w))
		return;
	fill_pattern(a->buf, 200, 2);
	expect_eq(w, job_receive(&jobs[0], b, 0, 100), 0);
	expect_eq(w, ibchan_channel_send_until(a->ch, side_sge(a, 0, 100), 1,
					       after_ms(patience), &outcome), 0);
	expect_eq(w, outcome.completion.opcode, IBCHAN_OP_SEND);
	expect_eq(w, job_send(&jobs[1], a, 0, 200), 0);
	expect_eq(w, ibchan_channel_receive_until(b->ch, side_sge(b, AT, 300), 1,
						  after_ms(patience), &outcome), 0);
	expect_eq(w, outcome.completion.opcode, IBCHAN_OP_RECV);
	expect_eq(w, outcome.completion.bytes, 200);
	expect(w, has_pattern(b->buf + AT, 200, 2));
	expect(w, job_ended(&jobs[0]) && job_ended(&jobs[1]));
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
}

/* It broke because of the deadline, and its work has ended before the call did. */
static void check_timed_out(struct side *side, const struct ibchan_outcome *outcome)
{
	struct world *w = side->world;

	expect_eq(w, outcome->posted, 1);
	expect_eq(w, outcome->completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, channel_state(side->ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, channel_in_flight(side->ch), 0);
	expect_eq(w, atomic_read(&side->broken), 1);
	expect_eq(w, side->error, -ETIMEDOUT);
}

static void a_receive_whose_deadline_passes_breaks_its_channel(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_outcome outcome = {};
	ktime_t deadline;

	if (patient_pair(w))
		return;
	deadline = after_ms(30);
	expect_eq(w, ibchan_channel_receive_until(b->ch, side_sge(b, 0, 100), 1, deadline,
						  &outcome), -ETIMEDOUT);
	expect(w, ktime_compare(ktime_get(), deadline) >= 0);
	expect(w, ktime_before(ktime_get(), ktime_add_ms(deadline, 3000 + patience)));
	check_timed_out(b, &outcome);
}

/* Three pieces leave, two arrive, cut elsewhere. */
static void the_lists_of_both_sides_need_not_match(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_sge gather[3];
	struct ibchan_wr wr;

	if (world_default_pair(w))
		return;
	fill_pattern(a->buf, 3000, 4);
	gather[0] = ibchan_sge_unchecked(a->local, 0, 700);
	gather[1] = ibchan_sge_unchecked(a->local, 700, 1);
	gather[2] = ibchan_sge_unchecked(a->local, 701, 2299);
	job->sges[0] = ibchan_sge_unchecked(b->local, 20000, 1500);
	job->sges[1] = ibchan_sge_unchecked(b->local, 10000, 4000);
	wr = ibchan_wr_receive(job->sges, 2);
	expect_eq(w, job_post(job, b->ch, &wr, NULL), 0);
	expect_eq(w, ibchan_channel_send(a->ch, gather, 3, NULL), 0);
	if (!job_ended(job))
		return;
	expect_eq(w, job->completion.bytes, 3000);
	memmove(b->buf, b->buf + 20000, 1500);
	memmove(b->buf + 1500, b->buf + 10000, 1500);
	expect(w, has_pattern(b->buf, 3000, 4));
}

/* A receive with no element at all is enough for it. */
static void an_empty_send_carries_an_immediate_only(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr receive = ibchan_wr_receive(NULL, 0);
	struct ibchan_wr send = ibchan_wr_send(NULL, 0);

	if (world_default_pair(w))
		return;
	ibchan_wr_set_imm(&send, 0xdeadbeef);
	expect_eq(w, job_post(job, b->ch, &receive, NULL), 0);
	expect_eq(w, ibchan_channel_run(a->ch, &send, NULL), 0);
	if (!job_ended(job))
		return;
	expect_eq(w, job->completion.bytes, 0);
	expect_eq(w, job->completion.flags, IBCHAN_CQE_IMM);
	expect_eq(w, job->completion.imm, 0xdeadbeef);
}

static void a_write_with_immediate_takes_a_receive(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr receive = ibchan_wr_receive(NULL, 0);
	struct ibchan_wr wr;

	if (world_default_pair(w) || !side_share(b))
		return;
	fill_pattern(a->buf, 1500, 8);
	expect_eq(w, job_post(&jobs[0], b->ch, &receive, NULL), 0);
	expect_eq(w, job_post(&jobs[1], b->ch, &receive, NULL), 0);
	wr = ibchan_wr_write(side_sge(a, 0, 1500), 1, &b->remote);
	ibchan_wr_set_imm(&wr, 7);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
	wr = ibchan_wr_write(NULL, 0, &b->remote);
	ibchan_wr_set_imm(&wr, 8);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
	if (!job_ended(&jobs[0]) || !job_ended(&jobs[1]))
		return;
	expect(w, has_pattern(b->buf, 1500, 8));
	expect_eq(w, jobs[0].completion.imm, 7);
	expect_eq(w, jobs[0].completion.bytes, 1500);
	expect_eq(w, jobs[1].completion.imm, 8);
	expect_eq(w, jobs[1].completion.bytes, 0);
}

static const struct test_case data_cases[] = {
	CASE(a_blocking_send_arrives_whole_at_every_size),
	CASE(a_blocking_receive_sleeps_until_the_message_comes),
	CASE(a_deadline_that_does_not_pass_changes_nothing),
	CASE(a_receive_whose_deadline_passes_breaks_its_channel),
	CASE(the_lists_of_both_sides_need_not_match),
	CASE(an_empty_send_carries_an_immediate_only),
	CASE(a_write_with_immediate_takes_a_receive),
};

SUITE(data);
