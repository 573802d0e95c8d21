// SPDX-License-Identifier: GPL-2.0-only
/* Runners: jobs in process context, and works that end there (B10). */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <rdma/ibchan_runner.h>

#include "job.h"
#include "suites.h"

#define CALLS	16

/**
 * struct ended - a call, and what became of it
 * @call: posted
 * @world: woken when it has ended
 * @sge: its element
 * @order: the how many-th it was, from 1; 0: it has not ended
 * @in_process: it ended where one may sleep
 * @error: of its completion
 */
struct ended {
	struct ibchan_call call;
	struct world *world;
	struct ibchan_sge sge;
	int order;
	bool in_process;
	u32 error;
};

/* A runner, and how many calls and jobs it has run. */
struct course {
	struct ibchan_runner runner;
	struct ended calls[CALLS];
	int ran;
};

static bool may_sleep(void)
{
	return !in_interrupt() && !irqs_disabled() && preemptible();
}

static void call_ended(struct ibchan_call *call, const struct ibchan_completion *completion)
{
	struct ended *ended = container_of(call, struct ended, call);
	struct course *course = container_of(call->runner, struct course, runner);

	ended->in_process = may_sleep();
	if (ended->in_process)
		usleep_range(50, 100);
	ended->error = completion->error;
	ended->order = course->ran + 1;
	/* What a case looks at is whole. */
	smp_store_release(&course->ran, course->ran + 1);
	wake_up(&ended->world->wait);
}

static struct course *new_course(struct world *w)
{
	struct course *course = world_alloc(w, sizeof(*course));
	int i;

	if (!course)
		return NULL;
	ibchan_runner_init(&course->runner);
	for (i = 0; i < CALLS; i++) {
		course->calls[i].world = w;
		ibchan_call_init(&course->calls[i].call, &course->runner, call_ended);
	}
	return course;
}

static int call_receive(struct ended *ended, struct side *side)
{
	struct ibchan_wr wr;

	ended->sge = ibchan_sge_unchecked(side->local, 0, 64);
	wr = ibchan_wr_receive(&ended->sge, 1);
	wr.work = &ended->call.work;
	return ibchan_post_wr(side->ch, &wr, NULL);
}

static void calls_end_in_order_where_they_may_sleep(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, CALLS);
	struct course *course = new_course(w);
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.params.max_send_wr = CALLS;
	init.params.max_recv_wr = CALLS;
	if (!course || world_pair(w, &init))
		return;
	for (i = 0; i < CALLS; i++)
		expect_eq(w, call_receive(&course->calls[i], b), 0);
	for (i = 0; i < CALLS; i++)
		expect_eq(w, job_send(&jobs[i], a, 0, 64), 0);
	/* Pairs with call_ended(). */
	expect_soon(w, smp_load_acquire(&course->ran) == CALLS);
	for (i = 0; i < CALLS; i++) {
		expect_eq(w, course->calls[i].order, i + 1);
		expect_eq(w, course->calls[i].error, 0);
		expect(w, course->calls[i].in_process);
	}
	expect_soon(w, jobs_ended(jobs, CALLS) == CALLS);
	ibchan_runner_flush(&course->runner);
}

static void calls_of_a_channel_that_is_closed_end_once(struct world *w)
{
	struct side *b = &w->side[1];
	struct course *course = new_course(w);
	int i;

	if (!course || world_default_pair(w))
		return;
	for (i = 0; i < 8; i++)
		expect_eq(w, call_receive(&course->calls[i], b), 0);
	side_close(b);
	ibchan_runner_flush(&course->runner);
	expect_eq(w, course->ran, 8);
	for (i = 0; i < 8; i++)
		expect(w, course->calls[i].error);
}

/**
 * struct errand - a job, and what it is to do
 * @job: added
 * @w: its world
 * @until: it waits for that; NULL: it does not
 * @post: it posts this; NULL: nothing
 * @ran: it has run
 */
struct errand {
	struct ibchan_job job;
	struct world *w;
	struct completion *until;
	struct job *post;
	int ran;
};

static void run_errand(struct ibchan_job *job)
{
	struct errand *errand = container_of(job, struct errand, job);
	struct side *a = &errand->w->side[0];

	if (errand->until)
		wait_for_completion_timeout(errand->until, msecs_to_jiffies(patience));
	if (errand->post)
		expect_eq(errand->w, job_write(errand->post, a, 64, &errand->w->side[1].remote), 0);
	/* Pairs with the acquire of the case. */
	smp_store_release(&errand->ran, errand->ran + 1);
	wake_up(&errand->w->wait);
}

static void a_slow_job_holds_up_its_own_runner_only(struct world *w)
{
	struct errand *errands = world_alloc(w, 3 * sizeof(*errands));
	struct course *slow = new_course(w), *other = new_course(w);
	struct completion go;
	int i;

	if (!errands || !slow || !other)
		return;
	init_completion(&go);
	for (i = 0; i < 3; i++)
		errands[i] = (struct errand){ .job.run = run_errand, .w = w };
	errands[0].until = &go;
	ibchan_runner_add(&slow->runner, &errands[0].job);
	ibchan_runner_add(&slow->runner, &errands[1].job);
	ibchan_runner_add(&other->runner, &errands[2].job);
	/* Pairs with run_errand(). */
	expect_soon(w, smp_load_acquire(&errands[2].ran) == 1);
	expect_eq(w, READ_ONCE(errands[0].ran), 0);
	expect_eq(w, READ_ONCE(errands[1].ran), 0);
	complete(&go);
	ibchan_runner_flush(&slow->runner);
	ibchan_runner_flush(&other->runner);
	expect_eq(w, errands[0].ran, 1);
	expect_eq(w, errands[1].ran, 1);
}

static void a_job_that_is_added_with_interrupts_off_may_post(struct world *w)
{
	struct errand *errand = world_alloc(w, sizeof(*errand));
	struct course *course = new_course(w);
	struct job *job = world_jobs(w, 1);
	unsigned long flags;

	if (!errand || !course || world_default_pair(w) || !side_share(&w->side[1]))
		return;
	*errand = (struct errand){ .job.run = run_errand, .w = w, .post = job };
	local_irq_save(flags);
	ibchan_runner_add(&course->runner, &errand->job);
	local_irq_restore(flags);
	if (!job_ended(job))
		return;
	expect_eq(w, job->completion.error, 0);
	ibchan_runner_flush(&course->runner);
	expect_eq(w, errand->ran, 1);
}

static const struct test_case runner_cases[] = {
	CASE(calls_end_in_order_where_they_may_sleep),
	CASE(calls_of_a_channel_that_is_closed_end_once),
	CASE(a_slow_job_holds_up_its_own_runner_only),
	CASE(a_job_that_is_added_with_interrupts_off_may_post),
};

SUITE(runner);
