// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight threads keep eight channels of one device busy, while one more breaks
 * channels at random. A thread that finds its channel broken closes it and builds a new
 * one. Works are posted by the threads, by done() of other works, and by tasklets;
 * half of the channels have a cq of their own, the others share one. Every work
 * that was accepted has to be told of exactly once: each has its own counter.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "job.h"
#include "suites.h"

#define THREADS		8
#define WORKS		64	/* of one channel's life, at a time */
#define DEPTH		16

static unsigned int seconds = 30;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long the suite stress runs");

struct stress;

/* Who posts. The thread always begins, and where nobody else does it goes on. */
enum poster { POSTER_THREAD, POSTER_DONE, POSTER_TASKLET, POSTERS };

/**
 * struct lane - one thread and its channel
 * @stress: all of them
 * @thread: it
 * @side: what its channels are built from
 * @poster: who posts besides the thread
 * @tasklet: posts, if @poster says so; ended before the channel is closed
 * @ch: its channel, its own peer; changed under @lock
 * @lock: between the thread, which replaces @ch, and who breaks it
 * @jobs: works, each either idle (ended) or in flight
 * @allowance: how often done() may still post before the thread has come round again;
 *	else the softirqs and workers that reap, which go first, would leave it no time
 * @failed: why a post was refused for good, or 0; the thread then replaces @ch
 * @posted: works accepted, ever, by who posted them
 * @told: completions, ever
 * @flushed: those of them that failed
 * @rebuilt: how often @ch was replaced
 */
struct lane {
	struct stress *stress;
	struct thread thread;
	struct side side;
	enum poster poster;
	struct tasklet_struct tasklet;
	struct ibchan_channel *ch;
	struct mutex lock;	/* ch */
	struct job *jobs;
	atomic_t allowance;
	int failed;
	atomic64_t posted[POSTERS];
	atomic64_t told;
	atomic64_t flushed;
	u32 rebuilt;
};

struct stress {
	struct world *w;
	struct side *side;
	struct ibchan_params params;
	ktime_t end;
	struct lane lanes[THREADS];
	u32 breaks;
};

static int is_over(const struct stress *stress)
{
	return ktime_after(ktime_get(), stress->end);
}

static u64 lane_posted(struct lane *lane)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < POSTERS; i++)
		sum += atomic64_read(&lane->posted[i]);
	return sum;
}

/* Whoever sets an idle work to busy may post it. */
static int lane_post(struct lane *lane, u32 i, enum poster poster)
{
	u8 opcode = i % 2 ? IBCHAN_OP_SEND : IBCHAN_OP_RECV;
	struct job *job = &lane->jobs[i];
	struct ibchan_wr wr;
	int ret;

	if (atomic_cmpxchg(&job->ended, 1, 0) != 1)
		return 0;
	wr = job_wr(job, opcode, &lane->side, i * 512, 512);
	if (opcode == IBCHAN_OP_SEND && i % 8 != 7)
		wr.flags = IBCHAN_WR_UNSIGNALED;
	ret = job_post(job, lane->ch, &wr, NULL);
	if (!ret)
		atomic64_inc(&lane->posted[poster]);
	else
		atomic_set(&job->ended, 1);
	return ret;
}

/* Receives first, then the sends that they take; as many as there are places. */
static void lane_fill(struct lane *lane, enum poster poster)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < WORKS && (!ret || ret == -EAGAIN); i++)
		ret = lane_post(lane, i, poster);
	if (ret && ret != -EAGAIN)
		WRITE_ONCE(lane->failed, ret);
}

static void fill_by_tasklet(struct tasklet_struct *tasklet)
{
	lane_fill(container_of(tasklet, struct lane, tasklet), POSTER_TASKLET);
}

/*
 * The channel is open: closing it waits for this. The work itself counts as ended
 * only behind this.
 */
static void count_and_post(struct job *job)
{
	struct lane *lane = job->arg;

	atomic64_inc(&lane->told);
	if (job->completion.error)
		atomic64_inc(&lane->flushed);
	else if (atomic_add_unless(&lane->allowance, -1, 0))
		lane_fill(lane, POSTER_DONE);
}

static int lane_connect(struct lane *lane)
{
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *ch = side_build(&lane->side, &lane->stress->params);
	int ret;

	if (!ch)
		return -ENODEV;
	ibchan_channel_endpoint(ch, &endpoint);
	ret = ibchan_channel_handshake(ch, &endpoint, NULL);
	WRITE_ONCE(lane->failed, 0);
	mutex_lock(&lane->lock);
	lane->ch = ch;
	mutex_unlock(&lane->lock);
	return ret;
}

/* Works that end meanwhile may still post on it, and are refused. */
static void lane_close(struct lane *lane)
{
	struct ibchan_channel *ch = lane->ch;

	tasklet_kill(&lane->tasklet);
	world_forget(lane->stress->w, THING_CHANNEL, ch);
	mutex_lock(&lane->lock);
	ibchan_channel_close(ch);
	lane->ch = NULL;
	mutex_unlock(&lane->lock);
}

/* After the close each work has ended as often as it was posted: not more, not less. */
static int lane_check(struct lane *lane)
{
	struct world *w = lane->stress->w;

	return expect_eq(w, atomic64_read(&lane->told), lane_posted(lane)) ? 0 : -EIO;
}

static void lane_round(struct lane *lane)
{
	if (lane->poster == POSTER_DONE)
		atomic_set(&lane->allowance, WORKS);
	if (lane->poster == POSTER_TASKLET)
		tasklet_schedule(&lane->tasklet);
	else
		lane_fill(lane, POSTER_THREAD);
	ibchan_cq_reap(lane->side.send_cq, 64);
}

static int lane_run(void *arg)
{
	struct lane *lane = arg;
	int ret = 0;

	while (!ret && !is_over(lane->stress)) {
		lane_round(lane);
		if (READ_ONCE(lane->failed)) {
			lane_close(lane);
			ret = lane_check(lane) ?: lane_connect(lane);
			lane->rebuilt++;
		}
		cond_resched();
	}
	return ret;
}

static void break_one(struct stress *stress)
{
	struct lane *lane = &stress->lanes[get_random_u32() % THREADS];

	mutex_lock(&lane->lock);
	if (lane->ch) {
		ibchan_channel_break(lane->ch, -EPIPE);
		stress->breaks++;
	}
	mutex_unlock(&lane->lock);
}

/* The odd ones have a cq of their own: every second of them polls it alone, the rest with posts. */
static int lane_side(struct stress *stress, struct lane *lane, int number)
{
	const struct ibchan_cq_init init = {
		.flags = number % 4 == 3 ? IBCHAN_CQ_POLLED : IBCHAN_CQ_POST_REAPS,
		.sink = &side_sink,
		.priv = &lane->side,
	};
	struct side *side = stress->side;

	lane->side = *side;
	if (number % 2) {
		lane->side.send_cq = world_cq(stress->w, side->dev, &init);
		lane->side.recv_cq = lane->side.send_cq;
	}
	return lane->side.send_cq ? 0 : -ENODEV;
}

static int lane_open(struct stress *stress, int number)
{
	static const enum poster posters[THREADS] = {
		POSTER_THREAD, POSTER_THREAD, POSTER_DONE, POSTER_DONE,
		POSTER_TASKLET, POSTER_TASKLET, POSTER_DONE, POSTER_TASKLET,
	};
	struct lane *lane = &stress->lanes[number];
	u32 i;

	lane->stress = stress;
	lane->poster = posters[number];
	mutex_init(&lane->lock);
	tasklet_setup(&lane->tasklet, fill_by_tasklet);
	lane->jobs = world_jobs(stress->w, WORKS);
	if (!lane->jobs || lane_side(stress, lane, number))
		return -ENOMEM;
	for (i = 0; i < WORKS; i++) {
		lane->jobs[i].then = count_and_post;
		lane->jobs[i].arg = lane;
		atomic_set(&lane->jobs[i].ended, 1);
	}
	lane->thread = (struct thread){ .world = stress->w, .run = lane_run, .arg = lane };
	return lane_connect(lane);
}

static void lane_end(struct lane *lane)
{
	struct world *w = lane->stress->w;
	u32 failures = w->failures;

	if (lane->ch)
		lane_close(lane);
	lane_check(lane);
	expect_eq(w, jobs_ended(lane->jobs, WORKS), WORKS);
	expect_eq(w, jobs_repeated(lane->jobs, WORKS), 0);
	expect(w, atomic64_read(&lane->posted[lane->poster]) > 0);
	if (w->failures != failures)
		pr_info("# stress: that was lane %td\n", lane - lane->stress->lanes);
}

static void stress_end(struct stress *stress)
{
	u64 posted[POSTERS] = {}, flushed = 0;
	u32 rebuilt = 0;
	int i, j;

	for (i = 0; i < THREADS; i++) {
		struct lane *lane = &stress->lanes[i];

		lane_end(lane);
		for (j = 0; j < POSTERS; j++)
			posted[j] += atomic64_read(&lane->posted[j]);
		flushed += atomic64_read(&lane->flushed);
		rebuilt += lane->rebuilt;
	}
	pr_info("# stress: %llu, %llu and %llu works posted by threads, done() and tasklets and told of once, %llu of them flushed, %u breaks, %u channels rebuilt\n",
		posted[POSTER_THREAD], posted[POSTER_DONE], posted[POSTER_TASKLET], flushed,
		stress->breaks, rebuilt);
	expect(stress->w, rebuilt > 0 && flushed > 0);
}

static void every_work_is_told_of_once_while_channels_break(struct world *w)
{
	struct stress *stress = world_kalloc(w, sizeof(*stress));
	struct pair_init init;
	int i, started = 0;

	cancel_delayed_work_sync(&w->watchdog);
	pair_defaults(&init);
	init.loop = 1;
	if (!stress || world_sides(w, &init))
		return;
	*stress = (struct stress){ .w = w, .side = &w->side[0], .params = init.params };
	stress->params.max_send_wr = DEPTH;
	stress->params.max_recv_wr = DEPTH;
	stress->params.ack_timeout = 0;
	stress->params.rnr_retries = 7;
	stress->end = after_ms(seconds * 1000);
	for (i = 0; i < THREADS; i++)
		if (lane_open(stress, i))
			return;
	for (i = 0; i < THREADS && !thread_start(&stress->lanes[i].thread); i++)
		started++;
	while (!is_over(stress)) {
		usleep_range(1000, 20000);
		break_one(stress);
	}
	for (i = 0; i < started; i++)
		expect_eq(w, thread_join(&stress->lanes[i].thread), 0);
	stress_end(stress);
}

static const struct test_case stress_cases[] = {
	CASE(every_work_is_told_of_once_while_channels_break),
};

SUITE(stress);
