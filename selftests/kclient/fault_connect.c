// SPDX-License-Identifier: GPL-2.0-only
/* Verbs that fail while a channel connects by address. */
#include "faults.h"
#include "meeting.h"

/*
 * Steps of a queue pair. The side that is asked goes through them first, when it accepts; the
 * asking side does when the answer has come.
 */
static const enum ibchan_fault_point steps[] = {
	IBCHAN_FAULT_QP_RTR, IBCHAN_FAULT_QP_RTS,
};

/* Both were about to be connected: neither is, and each is told once. */
static void expect_ends(struct meeting *m, struct party *fails, struct party *peer)
{
	party_expect(fails, 0, 1, FAULT_ERROR);
	party_expect(peer, 0, 1, -ECONNRESET);
	expect_eq(m->w, party_outcome(fails), FAULT_ERROR);
	expect_eq(m->w, party_outcome(peer), -ECONNRESET);
}

static void fail_step(struct world *w, enum ibchan_fault_point step, int asking)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_request *request;
	struct fault fault;

	if (!m)
		return;
	expect_eq(w, job_receive(&jobs[0], m->asking.side, 0, 64), 0);
	expect_eq(w, job_receive(&jobs[1], m->asked.side, 0, 64), 0);
	if (!expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request)
		return;
	fault = fault_arm(step, asking ? 2 : 1, FAULT_ERROR);
	expect_eq(w, meeting_accept(m, request, NULL, 0), 0);
	expect_ends(m, asking ? &m->asking : &m->asked, asking ? &m->asked : &m->asking);
	expect(w, fault_fired(&fault));
	ibchan_channel_connection(asking ? m->asking.side->ch : m->asked.side->ch, found);
	expect_eq(w, found->cm_error, FAULT_ERROR);
	/* Receives that were posted before have ended, without a word from anybody. */
	job_ended(&jobs[0]);
	job_ended(&jobs[1]);
}

static void fail_each_step(struct world *w, int asking)
{
	u32 step;

	faults_off();
	for (step = 0; step < ARRAY_SIZE(steps) && !w->failures; step++) {
		fail_step(w, steps[step], asking);
		world_give_back(w);
		if (w->failures)
			pr_info("# at %s\n", ibchan_fault_name(steps[step]));
	}
}

void an_accept_that_fails_at_any_step_breaks_both_sides_once(struct world *w)
{
	fail_each_step(w, 0);
}

void an_answer_that_fails_at_any_step_breaks_both_sides_once(struct world *w)
{
	fail_each_step(w, 1);
}

