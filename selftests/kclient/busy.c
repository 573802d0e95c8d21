// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exclusive while written, shared while read (law 3), for works that ask for it.
 * Sends to a peer without receives and receives that nobody sends to stay in
 * flight, so that each case can look at what collides with them.
 */
#include "job.h"
#include "suites.h"

static int patient_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.rnr_retries = 7;
	return world_pair(w, &init);
}

static int claim(struct job *job, struct side *side, u8 opcode, u64 offset, u32 length)
{
	struct ibchan_wr wr = job_wr(job, opcode, side, offset, length);

	wr.wr_id = offset;
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	return job_post(job, side->ch, &wr, NULL);
}

#define SEND	IBCHAN_OP_SEND
#define RECV	IBCHAN_OP_RECV

static void who_does_not_ask_is_not_refused(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 3);

	if (patient_pair(w))
		return;
	expect_eq(w, claim(&jobs[0], a, RECV, 0, 100), 0);
	expect_eq(w, job_receive(&jobs[1], a, 0, 100), 0);
	expect_eq(w, claim(&jobs[2], a, RECV, 50, 100), -EBUSY);
}

/* Posts works with the same element: how many were accepted, up to a refusal for @reason. */
static int share_element(struct side *side, u8 opcode, struct job *jobs,
			 struct ibchan_reason *reason)
{
	const struct ibchan_sge sge = ibchan_sge_unchecked(side->local, 1000, 100);
	int i;

	for (i = 0; i < 3; i++) {
		struct ibchan_wr wr = { .opcode = opcode, .sges = &sge, .num_sge = 1, .wr_id = i };

		wr.flags = IBCHAN_WR_EXCLUSIVE;
		if (job_post(&jobs[i], side->ch, &wr, reason))
			break;
	}
	return i;
}

static void one_element_may_be_in_several_sends_at_once(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 4), *receives = world_jobs(w, 3);
	int i;

	if (patient_pair(w))
		return;
	expect_eq(w, share_element(a, SEND, jobs, NULL), 3);
	expect_eq(w, claim(&jobs[3], a, RECV, 1099, 1), -EBUSY);
	for (i = 0; i < 3; i++)
		expect_eq(w, job_receive(&receives[i], b, i * 100, 100), 0);
	expect_soon(w, jobs_ended(jobs, 3) == 3);
	expect_eq(w, claim(&jobs[3], a, RECV, 1099, 1), 0);
}

static void one_element_in_two_receives_is_busy_the_second_time(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 4), *send = world_jobs(w, 1);
	struct ibchan_reason reason = {};

	if (patient_pair(w))
		return;
	expect_eq(w, share_element(b, RECV, jobs, &reason), 1);
	expect_eq(w, reason.code, IBCHAN_REASON_BUSY);
	expect_eq(w, reason.value[0], 1000);
	expect_eq(w, reason.value[1], 100);
	expect_eq(w, reason.value[2], 0);
	expect_eq(w, job_send(send, a, 0, 100), 0);
	expect_soon(w, jobs_ended(jobs, 1) == 1);
	/* The refused one holds nothing. */
	expect_eq(w, claim(&jobs[3], b, RECV, 900, 300), 0);
}

static void a_channel_that_was_not_built_for_it_refuses_to_exclude(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct ibchan_reason reason = {};
	struct ibchan_channel *ch;
	struct ibchan_params params;
	struct ibchan_build build;
	struct ibchan_wr wr;

	if (patient_pair(w))
		return;
	ibchan_params_init(&params);
	side_build_init(a, &build);
	build.exclusive = false;
	ch = ibchan_channel_build(&build, &params, NULL);
	if (!expect(w, !IS_ERR(ch)))
		return;
	world_keep(w, THING_CHANNEL, ch);
	wr = job_wr(job, RECV, a, 0, 100);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(job, ch, &wr, &reason), -EOPNOTSUPP);
	expect_eq(w, reason.code, IBCHAN_REASON_WR_FLAGS);
	expect_eq(w, reason.value[1], 0);
	wr.flags = 0;
	expect_eq(w, job_post(job, ch, &wr, NULL), 0);
}

static const struct test_case busy_cases[] = {
	CASE(who_does_not_ask_is_not_refused),
	CASE(one_element_may_be_in_several_sends_at_once),
	CASE(one_element_in_two_receives_is_busy_the_second_time),
	CASE(a_channel_that_was_not_built_for_it_refuses_to_exclude),
};

SUITE(busy);
