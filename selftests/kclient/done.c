// SPDX-License-Identifier: GPL-2.0-only
/* What a done() may do: post, post itself, break, close. */
#include <linux/slab.h>

#include "job.h"
#include "suites.h"

/* Posts its own work again until it has been posted often enough. */
struct chain_of_posts {
	struct job *job;
	struct side *side;
	struct ibchan_remote *remote;
	struct ibchan_wr wr;
	int posts;
	int wanted;
	int failed;
};

static void post_again(struct job *job)
{
	struct chain_of_posts *chain = job->arg;
	u32 accepted;

	if (job->completion.error)
		chain->failed++;
	if (chain->posts == chain->wanted || chain->failed)
		return;
	chain->posts++;
	if (ibchan_post(chain->side->ch, &chain->wr, 1, &accepted, NULL))
		chain->failed++;
}

/*
 * On a slow machine it takes its time; it hangs when nothing more has ended for so long. The
 * world's watchdog, which breaks the channel, bounds it all.
 */
static int chain_goes_on(struct world *w, const struct job *job, int wanted)
{
	int before;

	do {
		before = atomic_read(&job->ended);
		if (wait_event_timeout(w->wait, atomic_read(&job->ended) == wanted,
				       msecs_to_jiffies(patience)))
			return 1;
	} while (atomic_read(&job->ended) > before);
	return 0;
}

/* A done() may be called within a post: of a done() again, which the stack allows a few times. */
static int reaping_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POST_REAPS;
	return world_pair(w, &init);
}

static void a_done_that_posts_itself_goes_on_two_thousand_times(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct chain_of_posts *chain = world_alloc(w, sizeof(*chain));
	struct job *job = world_jobs(w, 1);

	if (reaping_pair(w) || !side_share(b))
		return;
	job->sges[0] = ibchan_sge_unchecked(a->local, 0, 8);
	*chain = (struct chain_of_posts){
		.job = job, .side = a, .remote = &b->remote, .wanted = 2000, .posts = 1,
	};
	chain->wr = ibchan_wr_write(job->sges, 1, &b->remote);
	chain->wr.work = &job->work;
	job->then = post_again;
	job->arg = chain;
	expect_eq(w, job_post(job, a->ch, &chain->wr, NULL), 0);
	expect(w, chain_goes_on(w, job, 2000));
	expect_eq(w, chain->posts, 2000);
	expect_eq(w, chain->failed, 0);
	expect_eq(w, channel_in_flight(a->ch), 0);
}

/* Its own queue is full, but the work that has just ended has left a place. */
static void a_done_finds_room_for_its_own_work_in_a_full_queue(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct chain_of_posts *chain = world_alloc(w, sizeof(*chain));
	struct job *job = world_jobs(w, 1);
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = 1;
	if (world_pair(w, &init) || !side_share(b))
		return;
	job->sges[0] = ibchan_sge_unchecked(a->local, 0, 8);
	*chain = (struct chain_of_posts){ .job = job, .side = a, .wanted = 100, .posts = 1 };
	chain->wr = ibchan_wr_write(job->sges, 1, &b->remote);
	chain->wr.work = &job->work;
	/* Nor is its range busy any more. */
	chain->wr.flags = IBCHAN_WR_EXCLUSIVE;
	job->then = post_again;
	job->arg = chain;
	expect_eq(w, job_post(job, a->ch, &chain->wr, NULL), 0);
	expect_soon(w, atomic_read(&job->ended) == 100);
	expect_eq(w, chain->failed, 0);
}

struct relay {
	struct job *next;
	struct side *side;
	const struct ibchan_remote *remote;
	int ret;
};

static void post_next(struct job *job)
{
	struct relay *relay = job->arg;

	relay->ret = job_write(relay->next, relay->side, 64, relay->remote);
}

static void a_done_posts_on_another_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct relay *relay = world_alloc(w, sizeof(*relay));
	struct job *jobs = world_jobs(w, 2);

	if (reaping_pair(w) || !side_share(a) || !side_share(b))
		return;
	*relay = (struct relay){ .next = &jobs[1], .side = b, .remote = &a->remote, .ret = 1 };
	jobs[0].then = post_next;
	jobs[0].arg = relay;
	expect_eq(w, job_write(&jobs[0], a, 64, &b->remote), 0);
	if (!job_ended(&jobs[0]))
		return;
	expect_eq(w, relay->ret, 0);
	if (job_ended(&jobs[1]))
		expect_eq(w, jobs[1].completion.error, 0);
}

static void break_own_channel(struct job *job)
{
	struct side *side = job->arg;

	ibchan_channel_break(side->ch, -EPIPE);
}

static void a_done_breaks_its_own_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 4);
	int i;

	if (world_default_pair(w) || !side_share(b))
		return;
	for (i = 1; i < 4; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 1024, 1024), 0);
	jobs[0].then = break_own_channel;
	jobs[0].arg = a;
	expect_eq(w, job_write(&jobs[0], a, 64, &b->remote), 0);
	expect_soon(w, jobs_ended(jobs, 4) == 4);
	expect_eq(w, jobs_repeated(jobs, 4), 0);
	expect_eq(w, jobs[0].completion.error, 0);
	for (i = 1; i < 4; i++)
		expect_eq(w, jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, a->error, -EPIPE);
}

static void close_own_channel(struct job *job)
{
	struct side *side = job->arg;

	ibchan_channel_close_async(side->ch, &side->world->closing, NULL);
}

/* A worker does the rest; nobody is told that it broke, for its owner knows. */
static void a_done_closes_its_own_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 4);
	int i;

	if (world_default_pair(w) || !side_share(b))
		return;
	for (i = 1; i < 4; i++)
		expect_eq(w, job_receive(&jobs[i], a, i * 1024, 1024), 0);
	world_forget(w, THING_CHANNEL, a->ch);
	jobs[0].then = close_own_channel;
	jobs[0].arg = a;
	expect_eq(w, job_write(&jobs[0], a, 64, &b->remote), 0);
	expect_soon(w, jobs_ended(jobs, 4) == 4);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, jobs_ended(jobs, 4), 4);
	expect_eq(w, jobs_repeated(jobs, 4), 0);
	expect_eq(w, atomic_read(&a->broken), 0);
}

/* A work in memory that is gone when done() returns. */
struct fleeting {
	struct ibchan_work work;
	struct ibchan_sge sge;
	struct world *world;
	atomic_t *freed;
};

static void free_own_memory(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	struct fleeting *fleeting = container_of(work, struct fleeting, work);
	struct world *w = fleeting->world;
	atomic_t *freed = fleeting->freed;

	kfree(fleeting);
	atomic_inc(freed);
	wake_up(&w->wait);
}

static void a_done_may_free_its_own_work(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	atomic_t *freed = world_alloc(w, sizeof(*freed));
	struct fleeting *fleeting;
	struct ibchan_wr wr;
	u32 accepted;
	int i;

	if (world_default_pair(w) || !side_share(b))
		return;
	for (i = 0; i < 16; i++) {
		fleeting = kzalloc(sizeof(*fleeting), GFP_KERNEL | __GFP_NOFAIL);
		fleeting->work.done = free_own_memory;
		fleeting->sge = ibchan_sge_unchecked(a->local, 0, 64);
		fleeting->world = w;
		fleeting->freed = freed;
		wr = ibchan_wr_write(&fleeting->sge, 1, &b->remote);
		wr.work = &fleeting->work;
		wr.flags = IBCHAN_WR_EXCLUSIVE | (i % 2 ? 0 : IBCHAN_WR_UNSIGNALED);
		if (!expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0))
			kfree(fleeting);
	}
	expect_soon(w, atomic_read(freed) == 16);
}

static const struct test_case done_cases[] = {
	CASE(a_done_that_posts_itself_goes_on_two_thousand_times),
	CASE(a_done_finds_room_for_its_own_work_in_a_full_queue),
	CASE(a_done_posts_on_another_channel),
	CASE(a_done_breaks_its_own_channel),
	CASE(a_done_closes_its_own_channel),
	CASE(a_done_may_free_its_own_work),
};

SUITE(done);
