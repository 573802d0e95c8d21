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

/* What lies at 1000 for 100 bytes, what comes then, and what is said to it. */
static const struct collision {
	u8 there;
	u8 then;
	u64 offset;
	u32 length;
	int error;
} collisions[] = {
	{ RECV, RECV, 1000, 100, -EBUSY },	/* the same */
	{ RECV, RECV, 1050, 10, -EBUSY },	/* inside */
	{ RECV, RECV, 900, 300, -EBUSY },	/* around */
	{ RECV, RECV, 999, 2, -EBUSY },		/* over the first byte */
	{ RECV, RECV, 1099, 2, -EBUSY },	/* over the last byte */
	{ RECV, RECV, 900, 100, 0 },		/* up to it */
	{ RECV, RECV, 1100, 100, 0 },		/* right behind it */
	{ RECV, SEND, 1050, 1, -EBUSY },
	{ RECV, SEND, 1100, 1, 0 },
	{ SEND, RECV, 1050, 1, -EBUSY },
	{ SEND, RECV, 1100, 1, 0 },
	{ SEND, SEND, 1000, 100, 0 },
	{ SEND, SEND, 1050, 100, 0 },
	{ RECV, RECV, 1050, 0, 0 },		/* an empty one occupies nothing */
	{ RECV, SEND, 1050, 0, 0 },
};

static void try_collision(struct world *w, const struct collision *c)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_reason reason = {};
	struct ibchan_params params;
	u32 failures = w->failures;
	struct ibchan_wr wr;

	expect_eq(w, claim(&jobs[0], a, c->there, 1000, 100), 0);
	wr = job_wr(&jobs[1], c->then, a, c->offset, c->length);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, &reason), c->error);
	if (c->error) {
		expect_eq(w, reason.code, IBCHAN_REASON_BUSY);
		expect_eq(w, reason.value[0], 1000);
		expect_eq(w, reason.value[1], 100);
		expect_eq(w, reason.value[2], 1000);
	}
	if (w->failures != failures)
		pr_info("# %u, then %u at %llu for %u\n", c->there, c->then, c->offset,
			c->length);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 2), c->error ? 1 : 2);
	ibchan_params_init(&params);
	params.rnr_retries = 7;
	a->ch = side_build(a, &params);
	/* Loopback, so that the peer need not be built anew. */
	if (a->ch)
		side_connect(w, a->ch, a->ch);
}

/* The channel is its own peer here; a send that found a receive would end both. */
static void every_way_two_ranges_can_lie_is_judged(struct world *w)
{
	int i;

	if (patient_pair(w))
		return;
	for (i = 0; i < ARRAY_SIZE(collisions); i++)
		try_collision(w, &collisions[i]);
}

static void ranges_of_one_batch_count_against_each_other(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 3);
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[3];
	u32 accepted;
	int i;

	if (patient_pair(w))
		return;
	for (i = 0; i < 3; i++) {
		wrs[i] = job_wr(&jobs[i], RECV, a, i * 100, 101);
		wrs[i].flags = IBCHAN_WR_EXCLUSIVE;
		wrs[i].wr_id = 40 + i;
	}
	expect_eq(w, ibchan_post(a->ch, wrs, 3, &accepted, &reason), -EBUSY);
	expect_eq(w, accepted, 1);
	expect_eq(w, reason.code, IBCHAN_REASON_BUSY);
	expect_eq(w, reason.wr, 1);
	expect_eq(w, reason.element, 0);
	expect_eq(w, reason.value[2], 40);
}

static void elements_of_one_receive_count_against_each_other(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;

	if (patient_pair(w))
		return;
	wr = job_wr(&jobs[0], RECV, a, 0, 100);
	jobs[0].sges[1] = ibchan_sge_unchecked(a->local, 200, 100);
	jobs[0].sges[2] = ibchan_sge_unchecked(a->local, 299, 100);
	wr.num_sge = 3;
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(&jobs[0], a->ch, &wr, &reason), -EBUSY);
	expect_eq(w, reason.element, 2);
	expect_eq(w, reason.value[0], 200);
	/* What the refused one had claimed before is free. */
	expect_eq(w, claim(&jobs[1], a, RECV, 0, 400), 0);
}

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

static void who_does_not_ask_occupies_nothing(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);

	if (patient_pair(w))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 0, 100), 0);
	expect_eq(w, claim(&jobs[1], a, RECV, 0, 100), 0);
}

static void a_range_is_free_after_its_work_has_ended(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);

	if (patient_pair(w))
		return;
	expect_eq(w, claim(&jobs[0], b, RECV, 0, 100), 0);
	expect_eq(w, claim(&jobs[1], b, RECV, 0, 100), -EBUSY);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 100), 1, NULL), 0);
	if (job_ended(&jobs[0]))
		expect_eq(w, claim(&jobs[1], b, RECV, 0, 100), 0);
}

/* The region outlives the channel, and another channel finds it free. */
static void a_range_is_free_after_a_flush(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_params params;

	if (patient_pair(w))
		return;
	expect_eq(w, claim(&jobs[0], a, RECV, 0, 100), 0);
	ibchan_channel_break(a->ch, -EPIPE);
	if (!job_ended(&jobs[0]))
		return;
	ibchan_params_init(&params);
	side_close(a);
	a->ch = side_build(a, &params);
	if (!a->ch || side_connect(w, a->ch, a->ch))
		return;
	expect_eq(w, claim(&jobs[1], a, RECV, 0, 100), 0);
}

static void a_range_is_free_after_an_error(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_params params;
	struct ibchan_wr wr;

	if (patient_pair(w) || !side_share(b))
		return;
	b->remote.rkey ^= 0x55;
	jobs[0].sges[0] = ibchan_sge_unchecked(a->local, 0, 100);
	wr = ibchan_wr_read(jobs[0].sges, 1, &b->remote);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(&jobs[0], a->ch, &wr, NULL), 0);
	if (!job_ended(&jobs[0]))
		return;
	expect_eq(w, jobs[0].completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
	ibchan_params_init(&params);
	side_close(a);
	a->ch = side_build(a, &params);
	if (a->ch && !side_connect(w, a->ch, a->ch))
		expect_eq(w, claim(&jobs[1], a, RECV, 0, 100), 0);
}

static void channels_of_one_domain_share_the_ranges(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_params params;
	struct ibchan_channel *other;
	struct ibchan_wr wr;

	if (patient_pair(w))
		return;
	ibchan_params_init(&params);
	other = side_build(a, &params);
	if (!other || side_connect(w, other, other))
		return;
	expect_eq(w, claim(&jobs[0], a, RECV, 0, 100), 0);
	wr = job_wr(&jobs[1], RECV, a, 0, 100);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(&jobs[1], other, &wr, NULL), -EBUSY);
}

static void another_region_over_the_same_bytes_is_not_seen(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr wr;
	struct ibchan_mr *alias;

	if (patient_pair(w))
		return;
	alias = world_mr(w, a->pd, a->buf, 4096, IBCHAN_ACCESS_LOCAL);
	if (!alias)
		return;
	expect_eq(w, claim(&jobs[0], a, RECV, 0, 100), 0);
	jobs[1].sges[0] = ibchan_sge_unchecked(alias, 0, 100);
	wr = ibchan_wr_receive(jobs[1].sges, 1);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, NULL), 0);
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

static void works_by_wr_id_claim_their_ranges_too(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, 0, 100);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;
	u32 accepted;

	if (patient_pair(w))
		return;
	sge.mr = a->local;
	wr = ibchan_wr_receive(&sge, 1);
	wr.flags = IBCHAN_WR_EXCLUSIVE;
	wr.wr_id = 5;
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0);
	sge = ibchan_sge_unchecked(a->local, 99, 100);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), -EBUSY);
	expect_eq(w, reason.value[2], 5);
	expect_eq(w, atomic_read(&a->reserved), 1);
}

static const struct test_case busy_cases[] = {
	CASE(every_way_two_ranges_can_lie_is_judged),
	CASE(ranges_of_one_batch_count_against_each_other),
	CASE(elements_of_one_receive_count_against_each_other),
	CASE(who_does_not_ask_is_not_refused),
	CASE(who_does_not_ask_occupies_nothing),
	CASE(a_range_is_free_after_its_work_has_ended),
	CASE(a_range_is_free_after_a_flush),
	CASE(a_range_is_free_after_an_error),
	CASE(channels_of_one_domain_share_the_ranges),
	CASE(another_region_over_the_same_bytes_is_not_seen),
	CASE(one_element_may_be_in_several_sends_at_once),
	CASE(one_element_in_two_receives_is_busy_the_second_time),
	CASE(a_channel_that_was_not_built_for_it_refuses_to_exclude),
	CASE(works_by_wr_id_claim_their_ranges_too),
};

SUITE(busy);
