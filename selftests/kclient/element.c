// SPDX-License-Identifier: GPL-2.0-only
/*
 * Elements are the poster's, and only until the post has returned (A4): on its stack, in several
 * requests at once, written over while their works are in flight.
 */
#include <linux/string.h>
#include <rdma/ibchan_scope.h>

#include "job.h"
#include "suites.h"

#define POISON		0x5a
#define BYTES		400
#define FAR		4096	/* where the other side's bytes of a write or read are */

enum way { BY_WORK, BY_WR_ID, AS_PENDING, IN_SCOPE, WAYS };

/**
 * struct trial - a request, and what there is to see whether it has ended
 * @world: of the case
 * @side: where it is posted
 * @how: the way in which it is posted
 * @job: its work, if it is posted by one
 * @logged: completions of @side's by wr_id before
 * @pending: its pending work
 * @scope: of @pending
 */
struct trial {
	struct world *world;
	struct side *side;
	enum way how;
	struct job *job;
	int logged;
	struct ibchan_pending pending;
	struct ibchan_scope scope;
};

static struct trial *new_trial(struct side *side, enum way how)
{
	struct trial *trial = world_alloc(side->world, sizeof(*trial));

	trial->world = side->world;
	trial->side = side;
	trial->how = how;
	trial->job = world_jobs(side->world, 1);
	trial->logged = atomic_read(&side->logged);
	return trial;
}

static int post_in_its_way(struct trial *trial, struct ibchan_wr *wr)
{
	struct ibchan_channel *ch = trial->side->ch;

	switch (trial->how) {
	case BY_WORK:
		return job_post(trial->job, ch, wr, NULL);
	case BY_WR_ID:
		return ibchan_post_wr(ch, wr, NULL);
	case AS_PENDING:
		return ibchan_pending_post(&trial->pending, ch, wr, NULL);
	default:
		ibchan_scope_begin(&trial->scope);
		return ibchan_scope_post(&trial->scope, &trial->pending, ch, wr, NULL);
	}
}

static int has_ended(void *arg)
{
	struct trial *trial = arg;

	switch (trial->how) {
	case BY_WORK:
		return atomic_read(&trial->job->ended);
	case BY_WR_ID:
		return atomic_read(&trial->side->logged) > trial->logged;
	default:
		return ibchan_pending_result(&trial->pending) != -EINPROGRESS;
	}
}

/* Its error, positive. */
static int error_of(const struct trial *trial)
{
	switch (trial->how) {
	case BY_WORK:
		return trial->job->completion.error;
	case BY_WR_ID:
		return trial->side->log[trial->logged].error;
	default:
		return trial->pending.completion.error;
	}
}

/* Nothing of the request is left when this returns: neither the elements nor the request. */
static noinline int post_from_stack(struct trial *trial, u8 opcode, u8 flags)
{
	struct ibchan_sge sges[3] = {
		ibchan_sge_unchecked(trial->side->local, 0, 100),
		ibchan_sge_unchecked(trial->side->local, 150, 0),
		ibchan_sge_unchecked(trial->side->local, 200, BYTES - 100),
	};
	struct ibchan_remote remote = trial->world->side[1].remote;
	struct ibchan_wr wr;
	int ret;

	remote.addr += FAR;
	remote.length -= FAR;
	wr = ibchan_wr_one_sided(opcode, sges, ARRAY_SIZE(sges), &remote);
	wr.flags = flags;
	ret = post_in_its_way(trial, &wr);
	memset(sges, POISON, sizeof(sges));
	memset(&wr, POISON, sizeof(wr));
	barrier_data(sges);
	barrier_data(&wr);
	return ret;
}

static void finish(struct trial *trial)
{
	struct ibchan_cq *cq = trial->side->send_cq;

	expect_eq(trial->world, ibchan_cq_wait(cq, has_ended, trial, patience * NSEC_PER_MSEC), 1);
	if (trial->how == IN_SCOPE)
		ibchan_scope_end(&trial->scope);
	if (has_ended(trial))
		expect_eq(trial->world, error_of(trial), 0);
}

static void move_in_place(u8 *bytes, u8 *flat, bool into)
{
	memcpy(into ? bytes : flat, into ? flat : bytes, 100);
	memcpy(into ? bytes + 200 : flat + 100, into ? flat + 100 : bytes + 200, BYTES - 100);
}

/* One transfer, whose source and target are where post_from_stack() says, or at FAR. */
static void transfer(struct world *w, enum way how, u8 opcode, u8 flags)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	bool reads = opcode == IBCHAN_OP_READ, sends = opcode == IBCHAN_OP_SEND;
	struct trial *out = new_trial(a, how), *in = new_trial(b, how);
	u8 *flat = world_alloc(w, BYTES);

	memset(a->buf, 0, 2 * FAR);
	memset(b->buf, 0, 2 * FAR);
	fill_pattern(flat, BYTES, opcode + how);
	if (reads)
		memcpy(b->buf + FAR, flat, BYTES);
	else
		move_in_place(a->buf, flat, true);
	if (sends)
		expect_eq(w, post_from_stack(in, IBCHAN_OP_RECV, flags), 0);
	if (expect_eq(w, post_from_stack(out, opcode, flags), 0))
		finish(out);
	if (sends)
		finish(in);
	if (opcode == IBCHAN_OP_WRITE)
		memcpy(flat, b->buf + FAR, BYTES);
	else
		move_in_place(reads ? a->buf : b->buf, flat, false);
	if (!expect(w, has_pattern(flat, BYTES, opcode + how)))
		pr_info("# way %d, opcode %u, flags %x\n", how, opcode, flags);
}

/* On polled cqs nothing ends, whatever the device has done, before the case looks. */
static int polled_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	return world_pair(w, &init) || !side_share(&w->side[1]);
}

static void elements_on_a_stack_may_go_when_the_post_returns(struct world *w)
{
	static const u8 opcodes[] = { IBCHAN_OP_SEND, IBCHAN_OP_WRITE, IBCHAN_OP_READ };
	enum way how;
	int i;

	if (polled_pair(w))
		return;
	for (how = 0; how < WAYS; how++) {
		for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
			transfer(w, how, opcodes[i], 0);
			transfer(w, how, opcodes[i], IBCHAN_WR_EXCLUSIVE);
		}
	}
}

static void elements_that_have_gone_are_not_missed_by_a_flush(struct world *w)
{
	struct side *b = &w->side[1];
	struct trial *trials[WAYS];
	enum way how;

	if (polled_pair(w))
		return;
	for (how = 0; how < WAYS; how++) {
		trials[how] = new_trial(b, how);
		expect_eq(w, post_from_stack(trials[how], IBCHAN_OP_RECV, 0), 0);
	}
	ibchan_channel_break(b->ch, -ECANCELED);
	ibchan_scope_end(&trials[IN_SCOPE]->scope);
	side_close(b);
	for (how = 0; how < WAYS; how++)
		if (expect(w, has_ended(trials[how])))
			expect(w, error_of(trials[how]));
}

static void exclusive_ranges_are_free_after_their_elements_have_gone(struct world *w)
{
	struct side *b = &w->side[1];
	struct trial *first, *second;

	if (polled_pair(w))
		return;
	first = new_trial(b, BY_WORK);
	second = new_trial(b, BY_WORK);
	expect_eq(w, post_from_stack(first, IBCHAN_OP_RECV, IBCHAN_WR_EXCLUSIVE), 0);
	expect_eq(w, post_from_stack(second, IBCHAN_OP_RECV, IBCHAN_WR_EXCLUSIVE), -EBUSY);
	expect_eq(w, job_send(world_jobs(w, 1), &w->side[0], 0, BYTES), 0);
	finish(first);
	expect_eq(w, post_from_stack(second, IBCHAN_OP_RECV, IBCHAN_WR_EXCLUSIVE), 0);
}

static const struct test_case element_cases[] = {
	CASE(elements_on_a_stack_may_go_when_the_post_returns),
	CASE(elements_that_have_gone_are_not_missed_by_a_flush),
	CASE(exclusive_ranges_are_free_after_their_elements_have_gone),
};

SUITE(element);
