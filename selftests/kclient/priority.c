// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of a higher priority than the one that reaps. With PREEMPT_RT they preempt it while it
 * has the right to reap, so none may spin for that right.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/sched.h>
#include <rdma/ibchan_scope.h>

#include "job.h"
#include "suites.h"

/* How long a done() at most waits for the thread that it woke, in ms. */
#define MEET_MS		50

/* A drain ends after 2 s; behind that who closes wants the right to reap. */
#define HELD_UP_MS	2500

/**
 * struct encounter - a reaper and a thread of a higher priority
 * @world: its world
 * @job: its done() is where they meet
 * @pending: what the other one spins for, if it spins
 * @other: what it does
 * @cpu: of @other
 * @held_ms: how long done() goes on when the other one has come
 * @inside: done() has begun
 * @came: so has the other one, behind that
 * @met: and done() saw it
 * @slept: how often the other one slept
 */
struct encounter {
	struct world *world;
	struct job *job;
	struct ibchan_pending *pending;
	struct thread other;
	int cpu;
	unsigned int held_ms;
	int inside;
	int came;
	int met;
	unsigned long slept;
};

static void busy_until(ktime_t end, const int *or_until)
{
	while (ktime_before(ktime_get(), end) && !(or_until && READ_ONCE(*or_until)))
		cpu_relax();
}

/* Under the right to reap, and so that the other one comes in between where it can. */
static void meet(struct job *job)
{
	struct encounter *e = job->arg;

	WRITE_ONCE(e->inside, 1);
	wake_up(&e->world->wait);
	busy_until(after_ms(MEET_MS), &e->came);
	e->met = READ_ONCE(e->came);
	busy_until(after_ms(e->held_ms), NULL);
}

static void become_first_on(int cpu)
{
	set_cpus_allowed_ptr(current, cpumask_of(cpu));
	sched_set_fifo(current);
}

/* Whatever it does begins while the reaper is in done(), or not before it has left. */
static int other_one(void *arg)
{
	struct encounter *e = arg;
	struct world *w = e->world;
	struct side *a = &w->side[0];
	int ret = 0;

	become_first_on(e->cpu);
	expect_soon(w, READ_ONCE(e->inside));
	WRITE_ONCE(e->came, 1);
	e->slept = current->nvcsw;
	if (e->pending)
		ret = ibchan_pending_spin(e->pending);
	else
		side_close(a);
	e->slept = current->nvcsw - e->slept;
	return ret;
}

static int reap_until_ended(void *arg)
{
	struct encounter *e = arg;
	struct side *a = &e->world->side[0];
	ktime_t end = after_ms(patience);

	set_cpus_allowed_ptr(current, cpumask_of(0));
	while (!atomic_read(&e->job->ended) && ktime_before(ktime_get(), end)) {
		ibchan_cq_reap(a->send_cq, IBCHAN_REAP_BUDGET);
		cond_resched();
	}
	return 0;
}

static int begin(struct encounter *e)
{
	struct world *w = e->world;
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (world_pair(w, &init) || !side_share(&w->side[1]))
		return -ENODEV;
	e->job = world_jobs(w, 1);
	e->job->then = meet;
	e->job->arg = e;
	e->other = (struct thread){ .world = w, .run = other_one, .arg = e };
	return 0;
}

/* The other one waits for done() to begin before the reaper comes to it. */
static void let_them_meet(struct encounter *e)
{
	struct thread reaper = { .world = e->world, .run = reap_until_ended, .arg = e };
	struct world *w = e->world;

	if (thread_start(&e->other))
		return;
	expect_eq(w, job_write(e->job, &w->side[0], 64, &w->side[1].remote), 0);
	if (!thread_start(&reaper))
		thread_join(&reaper);
	expect_eq(w, thread_join(&e->other), 0);
	expect_eq(w, atomic_read(&e->job->ended), 1);
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		expect(w, e->met);
}

static void who_closes_comes_through_a_reaper_that_it_has_preempted(struct world *w)
{
	struct encounter e = { .world = w, .held_ms = 20 };

	if (!begin(&e))
		let_them_meet(&e);
}

static void who_spins_comes_through_a_reaper_that_it_has_preempted(struct world *w)
{
	struct encounter e = { .world = w, .held_ms = 20 };
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_wr wr;

	if (begin(&e))
		return;
	e.pending = world_alloc(w, sizeof(*e.pending));
	wr = ibchan_wr_receive(side_sge(a, 1024, 1024), 1);
	if (!expect_eq(w, ibchan_pending_post(e.pending, a->ch, &wr, NULL), 0))
		return;
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	let_them_meet(&e);
}

/* Each pause of who closes is one of at most 100 us. */
static void who_closes_sleeps_while_a_reaper_on_another_cpu_is_held_up(struct world *w)
{
	struct encounter e = { .world = w, .held_ms = HELD_UP_MS, .cpu = 1 };

	if (!IS_ENABLED(CONFIG_PREEMPT_RT) || !cpu_online(1)) {
		world_skip(w, "nobody preempts a reaper without PREEMPT_RT");
		return;
	}
	if (begin(&e))
		return;
	let_them_meet(&e);
	expect(w, e.slept > 100);
}

static const struct test_case priority_cases[] = {
	CASE(who_closes_comes_through_a_reaper_that_it_has_preempted),
	CASE(who_spins_comes_through_a_reaper_that_it_has_preempted),
	CASE(who_closes_sleeps_while_a_reaper_on_another_cpu_is_held_up),
};

SUITE(priority);
