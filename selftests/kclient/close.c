// SPDX-License-Identifier: GPL-2.0-only
/* Closing completes everything first, and is bounded (laws 2, 6 and 9). */
#include <linux/interrupt.h>

#include "job.h"
#include "suites.h"

/* What the module promises: a drain of 2 s. Slow machines get time to run. */
static unsigned int close_limit(void)
{
	return 2000 + patience;
}

static void closing_completes_what_is_in_flight_first(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 32);
	struct pair_init init;
	ktime_t end;
	int i;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 16; i++) {
		expect_eq(w, job_receive(&jobs[i], a, i * 64, 64), 0);
		expect_eq(w, job_send(&jobs[16 + i], a, 0, 64), 0);
	}
	end = after_ms(close_limit());
	side_close(a);
	expect(w, ktime_before(ktime_get(), end));
	/* Already now, without any wait. */
	expect_eq(w, jobs_ended(jobs, 32), 32);
	expect_eq(w, jobs_repeated(jobs, 32), 0);
	for (i = 0; i < 32; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	/* It was its owner who ended it. */
	expect_eq(w, atomic_read(&a->broken), 0);
}

static void closing_one_channel_leaves_others_on_its_cq_alone(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_channel *other;
	struct ibchan_params params;

	ibchan_params_init(&params);
	if (world_default_pair(w) || !side_share(b))
		return;
	other = side_build(a, &params);
	if (!other || side_connect(w, other, other))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 0, 64), 0);
	side_close(a);
	expect_eq(w, jobs_ended(jobs, 1), 1);
	a->ch = other;
	expect_eq(w, job_receive(&jobs[1], a, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(other, side_sge(a, 64, 64), 1, NULL), 0);
	if (job_ended(&jobs[1]))
		expect_eq(w, jobs[1].completion.error, 0);
}

/* Works that end without a pause: a tasklet runs as soon as bottom halves are on again. */
struct stretch {
	struct tasklet_struct pause;
	u32 now;
	u32 longest;
};

static void pause_comes(struct tasklet_struct *pause)
{
	container_of(pause, struct stretch, pause)->now = 0;
}

static void note_stretch(struct job *job)
{
	struct stretch *stretch = job->arg;

	stretch->now++;
	stretch->longest = max(stretch->longest, stretch->now);
	tasklet_schedule(&stretch->pause);
}

#define MANY	(8 * IBCHAN_REAP_BUDGET)

/* Side a receives MANY messages, and nobody polls its cq. */
static int leave_many(struct world *w, struct stretch *stretch)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, MANY);
	struct pair_init init;
	int i, ret;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	init.cq_entries = 2 * MANY;
	init.params.max_recv_wr = MANY;
	ret = jobs ? world_pair(w, &init) : -ENOMEM;
	for (i = 0; i < MANY && !ret; i++) {
		jobs[i].then = note_stretch;
		jobs[i].arg = stretch;
		ret = job_post(&jobs[i], a->ch, &(struct ibchan_wr) {
			.opcode = IBCHAN_OP_RECV }, NULL);
	}
	for (i = 0; i < MANY && !ret; i++)
		ret = ibchan_channel_send(b->ch, NULL, 0, NULL);
	return ret;
}

/*
 * A channel that has a receive is searched for on its cq, though it has no peer yet. What another
 * one has left there is retired in steps.
 */
static void closing_one_channel_retires_what_others_have_left_in_steps(struct world *w)
{
	struct stretch *stretch = world_alloc(w, sizeof(*stretch));
	struct side *a = &w->side[0];
	struct ibchan_wr receive = { .opcode = IBCHAN_OP_RECV };
	struct job *job = world_jobs(w, 1);
	struct ibchan_channel *other;
	struct ibchan_params params;

	tasklet_setup(&stretch->pause, pause_comes);
	ibchan_params_init(&params);
	if (!expect_eq(w, leave_many(w, stretch), 0))
		return;
	expect_eq(w, stretch->longest, 0);
	other = side_build(a, &params);
	if (!other || !expect_eq(w, job_post(job, other, &receive, NULL), 0))
		return;
	world_forget(w, THING_CHANNEL, other);
	ibchan_channel_close(other);
	tasklet_kill(&stretch->pause);
	expect(w, stretch->longest > IBCHAN_REAP_BUDGET / 2);
	expect(w, stretch->longest < 2 * IBCHAN_REAP_BUDGET);
}

static DEFINE_SPINLOCK(consumers_lock);

static void take_the_lock(struct job *job)
{
	unsigned long flags;

	spin_lock_irqsave(&consumers_lock, flags);
	spin_unlock_irqrestore(&consumers_lock, flags);
}

/* With PREEMPT_RT such a lock leaves interrupts on. */
static void a_channel_can_be_closed_under_a_lock_that_its_done_takes(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 4);
	unsigned long flags;
	int i, ended;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 4; i++) {
		jobs[i].then = take_the_lock;
		expect_eq(w, job_receive(&jobs[i], a, 0, 64), 0);
	}
	world_forget(w, THING_CHANNEL, a->ch);
	spin_lock_irqsave(&consumers_lock, flags);
	ibchan_channel_close_async(a->ch, &w->closing, NULL);
	ended = jobs_ended(jobs, 4);
	spin_unlock_irqrestore(&consumers_lock, flags);
	expect_eq(w, ended, 0);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, jobs_ended(jobs, 4), 4);
	expect_eq(w, jobs_repeated(jobs, 4), 0);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

#define REGIONS	16

/* Shared regions that their owner gives up with the channel: only its works keep them. */
static int receive_into_shared(struct side *side, struct job *jobs, struct ibchan_mr **regions)
{
	struct world *w = side->world;
	struct ibchan_wr wr;
	int i;

	for (i = 0; i < REGIONS; i++) {
		regions[i] = world_mr(w, side->pd, side->buf + i * 4096, 4096,
				      IBCHAN_ACCESS_SHARED);
		if (!regions[i])
			return -ENODEV;
		jobs[i].sges[0] = ibchan_sge_unchecked(regions[i], 0, 64);
		wr = ibchan_wr_receive(jobs[i].sges, 1);
		if (!expect_eq(w, job_post(&jobs[i], side->ch, &wr, NULL), 0))
			return -EIO;
	}
	return 0;
}

static void close_in_atomic_context_and_put(struct world *w, struct ibchan_channel *ch,
					    struct ibchan_mr **regions)
{
	int i;

	local_bh_disable();
	world_forget(w, THING_CHANNEL, ch);
	ibchan_channel_close_async(ch, &w->closing, NULL);
	local_bh_enable();
	for (i = 0; i < REGIONS; i++) {
		world_forget(w, THING_MR, regions[i]);
		ibchan_mr_put(regions[i], NULL, NULL);
	}
}

/* Nobody polls: the works end when a worker closes the channel, and so do the regions. */
static void flushed_once(struct world *w)
{
	struct side *b = &w->side[1];
	struct job *jobs = world_jobs(w, REGIONS);
	struct ibchan_mr *regions[REGIONS];
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (world_pair(w, &init) || receive_into_shared(b, jobs, regions))
		return;
	expect_eq(w, ibchan_mr_try_dereg(b->local), 0);
	close_in_atomic_context_and_put(w, b->ch, regions);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, ibchan_pd_settle(b->pd), 0);
	/* Already now, without any wait. */
	if (expect_eq(w, ibchan_pd_free(b->pd), 0))
		world_forget(w, THING_PD, b->pd);
	expect_eq(w, jobs_ended(jobs, REGIONS), REGIONS);
	expect_eq(w, jobs_repeated(jobs, REGIONS), 0);
}

static void a_domain_settles_behind_regions_that_a_closed_channel_kept(struct world *w)
{
	int i;

	for (i = 0; i < 16 && !w->failures; i++) {
		flushed_once(w);
		world_give_back(w);
	}
}

/* Another channel between the same two domains. */
static int replace_channels(struct side *a, struct side *b)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	a->ch = side_build(a, &params);
	b->ch = side_build(b, &params);
	if (!a->ch || !b->ch)
		return -ENODEV;
	return side_connect(a->world, a->ch, b->ch) ?: side_connect(a->world, b->ch, a->ch);
}

static void a_key_is_dead_once_its_channel_and_region_were_flushed(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, REGIONS);
	struct ibchan_mr *regions[REGIONS];
	struct ibchan_outcome outcome = {};
	struct ibchan_remote remote;
	struct ibchan_channel *ch;

	if (world_default_pair(w) || receive_into_shared(b, jobs, regions) ||
	    !expect_eq(w, ibchan_mr_remote(regions[0], &remote), 0))
		return;
	ch = b->ch;
	if (replace_channels(a, b))
		return;
	fill_pattern(b->buf, 64, 1);
	fill_pattern(a->buf, 64, 2);
	close_in_atomic_context_and_put(w, ch, regions);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, ibchan_pd_settle(b->pd), 0);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 64), 1, &remote, &outcome),
		  -EREMOTEIO);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
	expect(w, has_pattern(b->buf, 64, 1));
}

static const struct test_case close_cases[] = {
	CASE(closing_completes_what_is_in_flight_first),
	CASE(closing_one_channel_leaves_others_on_its_cq_alone),
	CASE(closing_one_channel_retires_what_others_have_left_in_steps),
	CASE(a_channel_can_be_closed_under_a_lock_that_its_done_takes),
	CASE(a_domain_settles_behind_regions_that_a_closed_channel_kept),
	CASE(a_key_is_dead_once_its_channel_and_region_were_flushed),
};

SUITE(close);
