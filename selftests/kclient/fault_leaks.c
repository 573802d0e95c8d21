// SPDX-License-Identifier: GPL-2.0-only
/*
 * The suite leaks: a device that does not let go of a queue pair or a region. What it
 * refers to then stays for ever, and ibchan.ko with it: after this suite the machine
 * is good for nothing but a reboot. Nothing that it makes is given back.
 */
#include <linux/slab.h>

#include "faults.h"
#include "suites.h"

/* The device may still use all of it. */
static void keep_for_ever(struct world *w, struct side *side)
{
	world_forget(w, THING_CQ, side->send_cq);
	world_forget(w, THING_PD, side->pd);
	world_forget(w, THING_DEVICE, side->dev);
	world_forget(w, THING_MEMORY, side->buf);
}

static void a_queue_pair_that_cannot_be_destroyed_keeps_its_domain_and_its_cq(struct world *w)
{
	struct side *a = &w->side[0];
	struct fault fault;

	if (fault_pair(w, NULL))
		return;
	fault = fault_arm(IBCHAN_FAULT_QP_DESTROY, 1, FAULT_ERROR);
	side_close(a);
	expect(w, fault_fired(&fault));
	expect_eq(w, ibchan_cq_try_destroy(a->send_cq), -EBUSY);
	expect_eq(w, ibchan_pd_free(a->pd), -EBUSY);
	keep_for_ever(w, a);
}

/* Which has been told to stop, and to flush, before. */
static void works_end_although_their_queue_pair_cannot_be_destroyed(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 8);
	struct fault fault;
	ktime_t end;
	u32 i;

	if (fault_pair(w, NULL))
		return;
	for (i = 0; i < 8; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
	fault = fault_arm(IBCHAN_FAULT_QP_DESTROY, 1, FAULT_ERROR);
	end = after_ms(2000 + patience);
	side_close(a);
	expect(w, ktime_before(ktime_get(), end));
	expect(w, fault_fired(&fault));
	if (!expect_eq(w, jobs_ended(jobs, 8), 8))
		world_forget(w, THING_MEMORY, jobs);
	expect_eq(w, jobs_repeated(jobs, 8), 0);
	keep_for_ever(w, a);
}

static void a_region_that_cannot_be_deregistered_keeps_its_domain(struct world *w)
{
	struct side *b = &w->side[1];
	struct fault fault;

	if (fault_pair(w, NULL) || !side_share(b))
		return;
	fault = fault_arm(IBCHAN_FAULT_MR_DEREG, 1, FAULT_ERROR);
	expect_eq(w, ibchan_mr_try_dereg(b->shared), 0);
	expect(w, fault_fired(&fault));
	world_forget(w, THING_MR, b->local);
	expect_eq(w, ibchan_mr_try_dereg(b->local), 0);
	side_close(b);
	expect_eq(w, ibchan_pd_free(b->pd), -EBUSY);
	keep_for_ever(w, b);
}

static const struct test_case leaks_cases[] = {
	CASE(a_queue_pair_that_cannot_be_destroyed_keeps_its_domain_and_its_cq),
	CASE(works_end_although_their_queue_pair_cannot_be_destroyed),
	CASE(a_region_that_cannot_be_deregistered_keeps_its_domain),
};

SUITE(leaks);
