// SPDX-License-Identifier: GPL-2.0-only
/* Where callbacks run: behind the caller's own post or, where that is asked for, within it. */
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "job.h"
#include "suites.h"

/**
 * struct poster - who posts, and what was called back meanwhile
 * @lock: held across posts, and taken by done() where nothing may be called back within them
 * @task: in a post; NULL: none
 * @within: done() calls that a post made by itself
 */
struct poster {
	spinlock_t lock;	/* nothing: a consumer's own */
	struct task_struct *task;
	atomic_t within;
};

static struct poster *world_poster(struct world *w)
{
	struct poster *poster = world_alloc(w, sizeof(*poster));

	spin_lock_init(&poster->lock);
	return poster;
}

/* A softirq on top of the poster is not the post. */
static bool is_within(const struct poster *poster)
{
	return READ_ONCE(poster->task) == current && !in_serving_softirq();
}

static void note_within(struct job *job)
{
	struct poster *poster = job->arg;

	if (is_within(poster))
		atomic_inc(&poster->within);
}

static void take_lock(struct job *job)
{
	struct poster *poster = job->arg;

	note_within(job);
	if (is_within(poster))
		return;
	spin_lock_bh(&poster->lock);
	spin_unlock_bh(&poster->lock);
}

static int receive_as(struct poster *poster, struct job *job, struct side *side)
{
	int ret;

	WRITE_ONCE(poster->task, current);
	ret = job_receive(job, side, 0, 64);
	WRITE_ONCE(poster->task, NULL);
	return ret;
}

/* A message that makes no event has come: the next to look at the cq of the receives finds it. */
static struct job *unnoticed_message(struct world *w, u32 cq_flags, void (*then)(struct job *job),
				     struct poster *poster)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_SOLICITED | cq_flags;
	if (world_pair(w, &init))
		return NULL;
	jobs[0].then = then;
	jobs[0].arg = poster;
	expect_eq(w, job_receive(&jobs[0], b, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 60), 1, NULL), 0);
	return expect_eq(w, atomic_read(&jobs[0].ended), 0) ? jobs : NULL;
}

/* Why the flag is asked for, and why no lock that done() takes may be held there. */
static void a_post_that_reaps_calls_back_before_it_returns(struct world *w)
{
	struct poster *poster = world_poster(w);
	struct job *jobs = unnoticed_message(w, IBCHAN_CQ_POST_REAPS, note_within, poster);

	if (!jobs)
		return;
	expect_eq(w, receive_as(poster, &jobs[1], &w->side[1]), 0);
	expect_eq(w, atomic_read(&jobs[0].ended), 1);
	expect_eq(w, atomic_read(&poster->within), 1);
}

static void a_post_calls_nobody_back_so_the_lock_that_done_takes_may_be_held(struct world *w)
{
	struct poster *poster = world_poster(w);
	struct job *jobs = unnoticed_message(w, 0, take_lock, poster);

	if (!jobs)
		return;
	spin_lock_bh(&poster->lock);
	expect_eq(w, receive_as(poster, &jobs[1], &w->side[1]), 0);
	expect_eq(w, atomic_read(&jobs[0].ended), 0);
	spin_unlock_bh(&poster->lock);
	job_ended(&jobs[0]);
	expect_eq(w, jobs[0].completion.bytes, 60);
	expect_eq(w, atomic_read(&poster->within), 0);
}

#define ROUNDS		64
#define WRITES		32

static int write_as(struct poster *poster, struct job *jobs, struct side *side,
		    const struct ibchan_remote *remote)
{
	int i, refused = 0;

	for (i = 0; i < WRITES; i++) {
		atomic_set(&jobs[i].ended, 0);
		spin_lock_bh(&poster->lock);
		WRITE_ONCE(poster->task, current);
		refused += !!job_write(&jobs[i], side, 64, remote);
		WRITE_ONCE(poster->task, NULL);
		spin_unlock_bh(&poster->lock);
	}
	return refused;
}

/* Each post may find others completed. */
static void all_that_is_posted_under_a_lock_is_called_back(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct poster *poster = world_poster(w);
	struct job *jobs = world_jobs(w, WRITES);
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.two_cqs = 1;
	init.params.max_send_wr = WRITES;
	if (world_pair(w, &init) || !side_share(b))
		return;
	for (i = 0; i < WRITES; i++) {
		jobs[i].then = take_lock;
		jobs[i].arg = poster;
	}
	for (i = 0; i < ROUNDS; i++) {
		expect_eq(w, write_as(poster, jobs, a, &b->remote), 0);
		if (!expect_soon(w, jobs_ended(jobs, WRITES) == WRITES))
			break;
	}
	expect_eq(w, jobs_repeated(jobs, WRITES), 0);
	expect_eq(w, atomic_read(&poster->within), 0);
}

/* With PREEMPT_RT a lock that switches them off elsewhere does not, and the post is taken. */
static void a_post_with_interrupts_off_is_refused_and_leaves_them_off(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason = {};
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr;
	unsigned long flags;
	int ret, are_off;

	if (world_default_pair(w) || !side_share(b))
		return;
	job->sges[0] = ibchan_sge_unchecked(a->local, 0, 64);
	wr = ibchan_wr_write(job->sges, 1, &b->remote);
	local_irq_save(flags);
	ret = job_post(job, a->ch, &wr, &reason);
	are_off = irqs_disabled();
	local_irq_restore(flags);
	expect_eq(w, ret, -EDEADLK);
	expect_eq(w, reason.code, IBCHAN_REASON_INTERRUPTS_OFF);
	expect(w, are_off);
	expect_eq(w, channel_in_flight(a->ch), 0);
	/* Nothing is changed: the same work is posted. */
	expect_eq(w, job_post(job, a->ch, &wr, NULL), 0);
	job_ended(job);
}

static void a_cq_is_not_polled_and_reaped_by_posts(struct world *w)
{
	const struct ibchan_cq_init init = { .flags = IBCHAN_CQ_POLLED | IBCHAN_CQ_POST_REAPS };
	struct ibchan_device *dev = world_device(w, 0);

	if (dev)
		expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &init, NULL)), -EINVAL);
}

#ifdef CONFIG_LOCKDEP
/* A kernel that has found a fault of whomever does not look any more: then all seem held. */
static bool is_told(void)
{
	return ibchan_in_callback();
}

static void note_map(struct job *job)
{
	job->arg = is_told() ? job : NULL;
}

struct told {
	struct side *side;
	struct job *next;
	bool before;
	bool behind;
};

static void post_and_look(struct job *job)
{
	struct told *told = job->arg;

	told->before = is_told();
	expect_eq(job->world, job_receive(told->next, told->side, 0, 64), 0);
	told->behind = is_told();
}

static void to_lockdep_a_done_holds_what_a_post_waits_for(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct told *told = world_alloc(w, sizeof(*told));
	struct job *jobs = world_jobs(w, 3);

	if (world_default_pair(w) || !side_share(b))
		return;
	jobs[0].then = note_map;
	expect_eq(w, job_write(&jobs[0], a, 64, &b->remote), 0);
	expect(w, job_ended(&jobs[0]) && jobs[0].arg);
	/* Also behind a post of its own, which is no fault. */
	*told = (struct told){ .side = b, .next = &jobs[2] };
	jobs[1].then = post_and_look;
	jobs[1].arg = told;
	expect_eq(w, job_write(&jobs[1], a, 64, &b->remote), 0);
	expect(w, job_ended(&jobs[1]) && told->before && told->behind);
	if (debug_locks)
		expect(w, !is_told());
}

static void look_when_broken(void *priv, int error)
{
	struct side *side = priv;

	side->error = is_told() ? error : 0;
	atomic_inc(&side->broken);
	wake_up(&side->world->wait);
}

static void to_lockdep_a_broken_holds_it_as_well(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_build build;
	struct ibchan_params params;
	struct ibchan_channel *ch;
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	side_build_init(a, &build);
	build.broken = look_when_broken;
	params = init.params;
	ch = ibchan_channel_build(&build, &params, NULL);
	if (!expect(w, !IS_ERR(ch)))
		return;
	ibchan_channel_break(ch, -EPIPE);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, a->error, -EPIPE);
	if (debug_locks)
		expect(w, !is_told());
	ibchan_channel_close(ch);
}

/* What is made at another place is another class. */
static void to_lockdep_another_cq_may_be_reaped_under_a_lock_that_done_takes(struct world *w)
{
	const struct ibchan_cq_init init = { .entries = 16, .flags = IBCHAN_CQ_POLLED };
	struct side *a = &w->side[0], *b = &w->side[1];
	struct poster *poster = world_poster(w);
	struct job *job = world_jobs(w, 1);
	int looked = debug_locks;
	struct ibchan_cq *cq;

	if (world_default_pair(w) || !side_share(b))
		return;
	cq = ibchan_cq_create(a->dev, &init, NULL);
	if (!expect(w, !IS_ERR(cq)))
		return;
	job->then = take_lock;
	job->arg = poster;
	expect_eq(w, job_write(job, a, 64, &b->remote), 0);
	expect(w, job_ended(job));
	spin_lock_bh(&poster->lock);
	expect_eq(w, ibchan_cq_reap(cq, 1), 0);
	spin_unlock_bh(&poster->lock);
	expect_eq(w, debug_locks, looked);
	ibchan_cq_put(cq);
}
#else
static void to_lockdep_another_cq_may_be_reaped_under_a_lock_that_done_takes(struct world *w)
{
	world_skip(w, "this kernel has no lockdep");
}

static void to_lockdep_a_done_holds_what_a_post_waits_for(struct world *w)
{
	world_skip(w, "this kernel has no lockdep");
}

static void to_lockdep_a_broken_holds_it_as_well(struct world *w)
{
	world_skip(w, "this kernel has no lockdep");
}
#endif

static const struct test_case callback_cases[] = {
	CASE(a_post_that_reaps_calls_back_before_it_returns),
	CASE(a_post_calls_nobody_back_so_the_lock_that_done_takes_may_be_held),
	CASE(all_that_is_posted_under_a_lock_is_called_back),
	CASE(a_cq_is_not_polled_and_reaped_by_posts),
	CASE(a_post_with_interrupts_off_is_refused_and_leaves_them_off),
	CASE(to_lockdep_a_done_holds_what_a_post_waits_for),
	CASE(to_lockdep_a_broken_holds_it_as_well),
	CASE(to_lockdep_another_cq_may_be_reaped_under_a_lock_that_done_takes),
};

SUITE(callback);
