// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a completion event brings about. Receives of a cq for solicited messages lie there
 * when the peer does not solicit them, until the case says in the device's place that they
 * do: so the event comes when and where the case wants it, and no other code reaps.
 */
#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/hardirq.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>

#include "faults.h"

/* Twice what one call retires, and more. */
#define FLOOD	600

/* A keepalive would reap. */
static int quiet_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_recv_wr = FLOOD;
	init.cq_flags = IBCHAN_CQ_SOLICITED;
	init.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	return fault_pair(w, &init);
}

/* They lie in the cq when this returns: what is sent is acknowledged behind that. */
static int complete_receives(struct world *w, struct job *jobs, u32 num)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	int failed = 0;
	u32 i;

	for (i = 0; i < num; i++)
		failed += !!job_receive(&jobs[i], b, 0, 8);
	for (i = 0; i < num; i++)
		failed += !!ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, NULL);
	return expect_eq(w, failed, 0) && expect_eq(w, jobs_ended(jobs, num), 0);
}

/* --- where it comes --- */

static void raise_in_a_thread(struct ibchan_cq *cq)
{
	ibchan_fault_raise_cq_event(cq);
}

static void raise_with_interrupts_off(struct ibchan_cq *cq)
{
	unsigned long flags;

	local_irq_save(flags);
	ibchan_fault_raise_cq_event(cq);
	local_irq_restore(flags);
}

static void raise_with_bottom_halves_off(struct ibchan_cq *cq)
{
	local_bh_disable();
	ibchan_fault_raise_cq_event(cq);
	local_bh_enable();
}

static void raise_with_both_off(struct ibchan_cq *cq)
{
	local_bh_disable();
	raise_with_interrupts_off(cq);
	local_bh_enable();
}

static void (* const raise[])(struct ibchan_cq *cq) = {
	raise_in_a_thread, raise_with_interrupts_off, raise_with_bottom_halves_off,
	raise_with_both_off,
};

static void look_for_softirq(struct job *job)
{
	job->arg = (void *)(uintptr_t)(in_serving_softirq() && !in_hardirq());
}

void a_completion_event_is_followed_by_a_softirq_wherever_it_comes(struct world *w)
{
	struct job *jobs = world_jobs(w, ARRAY_SIZE(raise));
	u32 i;

	if (quiet_pair(w))
		return;
	for (i = 0; i < ARRAY_SIZE(raise); i++) {
		jobs[i].then = look_for_softirq;
		if (!complete_receives(w, &jobs[i], 1))
			return;
		raise[i](w->side[1].recv_cq);
		if (!job_ended(&jobs[i]) || !expect(w, jobs[i].arg))
			pr_info("# %u: %ps\n", i, raise[i]);
	}
}

/* --- how much it does --- */

/**
 * struct turn - a softirq that comes behind the one that reaps
 * @tasklet: it
 * @jobs: FLOOD of them
 * @w: woken
 * @ended: how many jobs had ended when it came
 * @came: it has
 */
struct turn {
	struct tasklet_struct tasklet;
	struct job *jobs;
	struct world *w;
	int ended;
	int came;
};

static void take_turn(struct tasklet_struct *tasklet)
{
	struct turn *turn = container_of(tasklet, struct turn, tasklet);

	turn->ended = jobs_ended(turn->jobs, FLOOD);
	WRITE_ONCE(turn->came, 1);
	wake_up(&turn->w->wait);
}

/* Both tasklets wait in line on one cpu, and the worker that goes on is of that cpu, too. */
void a_flood_of_completions_leaves_other_softirqs_their_turn(struct world *w)
{
	struct turn *turn = world_alloc(w, sizeof(*turn));

	turn->jobs = world_jobs(w, FLOOD);
	turn->w = w;
	if (quiet_pair(w) || !complete_receives(w, turn->jobs, FLOOD))
		return;
	tasklet_setup(&turn->tasklet, take_turn);
	local_bh_disable();
	ibchan_fault_raise_cq_event(w->side[1].recv_cq);
	tasklet_schedule(&turn->tasklet);
	local_bh_enable();
	expect_soon(w, READ_ONCE(turn->came));
	tasklet_kill(&turn->tasklet);
	expect(w, turn->ended > 0);
	expect(w, turn->ended < FLOOD);
	expect_soon(w, jobs_ended(turn->jobs, FLOOD) == FLOOD);
	expect_eq(w, jobs_repeated(turn->jobs, FLOOD), 0);
}

/* --- how often it comes --- */

#define MESSAGES	200

/**
 * struct storm - a thread that raises events
 * @thread: it
 * @cq: which reports them
 * @over: it is to end
 */
struct storm {
	struct thread thread;
	struct ibchan_cq *cq;
	int over;
};

static int raise_many(void *arg)
{
	struct storm *storm = arg;

	while (!READ_ONCE(storm->over)) {
		raise_with_interrupts_off(storm->cq);
		usleep_range(10, 50);
	}
	return 0;
}

static int storm_begin(struct storm *storm, struct side *side)
{
	*storm = (struct storm){
		.thread = { .world = side->world, .run = raise_many, .arg = storm },
		.cq = side->recv_cq,
	};
	return thread_start(&storm->thread);
}

static void storm_end(struct storm *storm)
{
	WRITE_ONCE(storm->over, 1);
	expect_eq(storm->thread.world, thread_join(&storm->thread), 0);
}

static void send_many(struct side *side, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		expect_eq(side->world,
			  ibchan_channel_send(side->ch, side_sge(side, 0, 8), 1, NULL), 0);
}

static int pair_with_receives(struct world *w, struct job *jobs, u32 num)
{
	struct pair_init init;
	int failed = 0;
	u32 i;

	pair_defaults(&init);
	init.params.max_recv_wr = num;
	if (fault_pair(w, &init))
		return -ENODEV;
	for (i = 0; i < num; i++)
		failed += !!job_receive(&jobs[i], &w->side[1], 0, 8);
	return failed;
}

/* What comes behind the storm makes an event of its own; what never comes is flushed in one. */
void events_without_a_cause_neither_lose_nor_repeat_works(struct world *w)
{
	struct storm *storm = world_alloc(w, sizeof(*storm));
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, MESSAGES);

	if (!expect_eq(w, pair_with_receives(w, jobs, MESSAGES), 0) || storm_begin(storm, b))
		return;
	send_many(a, MESSAGES / 2);
	storm_end(storm);
	send_many(a, MESSAGES / 4);
	expect_soon(w, jobs_ended(jobs, MESSAGES) == MESSAGES / 2 + MESSAGES / 4);
	if (storm_begin(storm, b))
		return;
	side_close(b);
	expect_eq(w, jobs_ended(jobs, MESSAGES), MESSAGES);
	expect_eq(w, jobs_repeated(jobs, MESSAGES), 0);
	storm_end(storm);
}
