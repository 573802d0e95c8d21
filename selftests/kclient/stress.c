// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight threads post and poll on eight channels of one device, while one more
 * breaks channels at random. Whoever finds its channel broken closes it and
 * builds a new one. Every work that was accepted has to be told of exactly once:
 * each has its own counter.
 */
#include <linux/delay.h>
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

/**
 * struct lane - one thread and its channel
 * @stress: all of them
 * @thread: it
 * @ch: its channel, its own peer; changed under @lock
 * @lock: between the thread, which replaces @ch, and who breaks it
 * @jobs: works, each either idle or in flight
 * @posted: works accepted, ever
 * @told: completions, ever
 * @flushed: those of them that failed
 * @rebuilt: how often @ch was replaced
 */
struct lane {
	struct stress *stress;
	struct thread thread;
	struct ibchan_channel *ch;
	struct mutex lock;	/* ch */
	struct job *jobs;
	u64 posted;
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

static void count(struct job *job)
{
	struct lane *lane = job->arg;

	atomic64_inc(&lane->told);
	if (job->completion.error)
		atomic64_inc(&lane->flushed);
}

static int lane_connect(struct lane *lane)
{
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *ch = side_build(lane->stress->side, &lane->stress->params);
	int ret;

	if (!ch)
		return -ENODEV;
	ibchan_channel_endpoint(ch, &endpoint);
	ret = ibchan_channel_handshake(ch, &endpoint, NULL);
	mutex_lock(&lane->lock);
	lane->ch = ch;
	mutex_unlock(&lane->lock);
	return ret;
}

static void lane_close(struct lane *lane)
{
	struct ibchan_channel *ch = lane->ch;

	mutex_lock(&lane->lock);
	lane->ch = NULL;
	mutex_unlock(&lane->lock);
	world_forget(lane->stress->w, THING_CHANNEL, ch);
	ibchan_channel_close(ch);
}

/* After the close each work has ended as often as it was posted: not more, not less. */
static int lane_check(struct lane *lane)
{
	struct world *w = lane->stress->w;

	return expect_eq(w, atomic64_read(&lane->told), lane->posted) ? 0 : -EIO;
}

static int lane_post(struct lane *lane, struct job *job, u32 i)
{
	u8 opcode = i % 2 ? IBCHAN_OP_SEND : IBCHAN_OP_RECV;
	struct ibchan_wr wr = job_wr(job, opcode, lane->stress->side, i * 512, 512);
	int ret;

	if (opcode == IBCHAN_OP_SEND && i % 8 != 7)
		wr.flags = IBCHAN_WR_UNSIGNALED;
	atomic_set(&job->ended, 0);
	ret = job_post(job, lane->ch, &wr, NULL);
	if (!ret)
		lane->posted++;
	else
		atomic_set(&job->ended, 1);
	return ret;
}

/* Receives first, then the sends that they take; as many as there are places. */
static int lane_round(struct lane *lane)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < WORKS && (!ret || ret == -EAGAIN); i++)
		if (atomic_read(&lane->jobs[i].ended))
			ret = lane_post(lane, &lane->jobs[i], i);
	ibchan_cq_reap(lane->stress->side->send_cq, 64);
	return ret == -EAGAIN ? 0 : ret;
}

static int lane_run(void *arg)
{
	struct lane *lane = arg;
	int ret = 0;

	while (!ret && !is_over(lane->stress)) {
		ret = lane_round(lane);
		if (ret) {
			lane_close(lane);
			ret = lane_check(lane) ?: lane_connect(lane);
			lane->rebuilt++;
		}
		cond_resched();
	}
	/* A handshake that met a break is not an error of this test. */
	return ret == -ESHUTDOWN ? 0 : ret;
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

static int lane_open(struct stress *stress, struct lane *lane)
{
	u32 i;

	lane->stress = stress;
	mutex_init(&lane->lock);
	lane->jobs = world_jobs(stress->w, WORKS);
	if (!lane->jobs)
		return -ENOMEM;
	for (i = 0; i < WORKS; i++) {
		lane->jobs[i].then = count;
		lane->jobs[i].arg = lane;
		atomic_set(&lane->jobs[i].ended, 1);
	}
	lane->thread = (struct thread){ .world = stress->w, .run = lane_run, .arg = lane };
	return lane_connect(lane);
}

static void stress_end(struct stress *stress)
{
	u64 posted = 0, flushed = 0;
	u32 rebuilt = 0;
	int i;

	for (i = 0; i < THREADS; i++) {
		struct lane *lane = &stress->lanes[i];

		if (lane->ch)
			lane_close(lane);
		lane_check(lane);
		expect_eq(stress->w, jobs_repeated(lane->jobs, WORKS), 0);
		posted += lane->posted;
		flushed += atomic64_read(&lane->flushed);
		rebuilt += lane->rebuilt;
	}
	pr_info("# stress: %llu works posted and told of once, %llu of them flushed, %u breaks, %u channels rebuilt\n",
		posted, flushed, stress->breaks, rebuilt);
	expect(stress->w, posted > 1000 && rebuilt > 0 && flushed > 0);
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
	stress->end = after_ms(seconds * 1000);
	for (i = 0; i < THREADS; i++)
		if (lane_open(stress, &stress->lanes[i]))
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
