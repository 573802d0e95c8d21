// SPDX-License-Identifier: GPL-2.0-only
/* The end of a channel or a region whose user has requests in flight (B10). */
#include <linux/delay.h>
#include <linux/slab.h>
#include <rdma/ibchan_follower.h>

#include "job.h"
#include "suites.h"

#define JOBS	8

static int receive_some(struct side *side, struct job *jobs)
{
	int i, ret = 0;

	for (i = 0; i < JOBS && !ret; i++)
		ret = job_receive(&jobs[i], side, i * 64, 64);
	return ret;
}

/* A work's post, which is refused for good. */
static int late_post(struct world *w, struct side *side, struct ibchan_channel *ch)
{
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr = job_wr(job, IBCHAN_OP_RECV, side, 0, 64);
	int ret = ibchan_post_wr(ch, &wr, NULL);

	expect_eq(w, atomic_read(&job->ended), 0);
	return ret;
}

/* --- a drain --- */

static void a_drained_channel_has_nothing_in_flight_and_takes_nothing(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, JOBS);

	if (world_default_pair(w) || !expect_eq(w, receive_some(a, jobs), 0))
		return;
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
	ibchan_channel_drain(a->ch);
	/* Already now, without any wait. */
	expect_eq(w, jobs_ended(jobs, JOBS), JOBS);
	expect_eq(w, jobs_repeated(jobs, JOBS), 0);
	expect_eq(w, jobs[0].completion.error, 0);
	expect_eq(w, jobs[JOBS - 1].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, late_post(w, a, a->ch), -ESHUTDOWN);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 64), 1, NULL), -ESHUTDOWN);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CLOSED);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
	/* It was its owner who ended it. */
	expect_eq(w, atomic_read(&a->broken), 0);
	side_close(a);
	expect_eq(w, jobs_repeated(jobs, JOBS), 0);
}

static void a_channel_can_be_drained_after_a_break_and_again(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, JOBS);

	if (world_default_pair(w) || !expect_eq(w, receive_some(a, jobs), 0))
		return;
	ibchan_channel_break(a->ch, -EPIPE);
	ibchan_channel_drain(a->ch);
	expect_eq(w, jobs_ended(jobs, JOBS), JOBS);
	ibchan_channel_drain(a->ch);
	expect_eq(w, jobs_repeated(jobs, JOBS), 0);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, late_post(w, a, a->ch), -ESHUTDOWN);
}

static void a_channel_without_a_peer_can_be_drained(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, JOBS);
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init) || !expect_eq(w, receive_some(a, jobs), 0))
		return;
	ibchan_channel_drain(a->ch);
	expect_eq(w, jobs_ended(jobs, JOBS), JOBS);
	expect_eq(w, late_post(w, a, a->ch), -ESHUTDOWN);
	side_close(a);
}

static int drains(void *arg)
{
	ibchan_channel_drain(arg);
	return 0;
}

static void several_may_drain_one_channel(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, JOBS);
	struct thread threads[3];
	int i;

	if (world_default_pair(w) || !expect_eq(w, receive_some(a, jobs), 0))
		return;
	for (i = 0; i < 3; i++) {
		threads[i] = (struct thread){ .world = w, .run = drains, .arg = a->ch };
		if (!expect_eq(w, thread_start(&threads[i]), 0))
			break;
	}
	ibchan_channel_drain(a->ch);
	expect_eq(w, jobs_ended(jobs, JOBS), JOBS);
	while (i--)
		expect_eq(w, thread_join(&threads[i]), 0);
	expect_eq(w, jobs_repeated(jobs, JOBS), 0);
}

/* --- references --- */

static void a_reference_keeps_a_closed_channel_that_refuses(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, JOBS);
	struct ibchan_channel *ch;

	if (world_default_pair(w) || !expect_eq(w, receive_some(a, jobs), 0))
		return;
	ch = a->ch;
	if (!expect(w, ibchan_channel_tryget(ch)))
		return;
	/* It does not wait for the reference. */
	side_close(a);
	expect_eq(w, jobs_ended(jobs, JOBS), JOBS);
	expect_eq(w, late_post(w, a, ch), -ESHUTDOWN);
	expect_eq(w, ibchan_channel_send(ch, side_sge(a, 0, 64), 1, NULL), -ESHUTDOWN);
	expect_eq(w, ibchan_channel_state(ch), IBCHAN_CHANNEL_CLOSED);
	ibchan_channel_break(ch, -EPIPE);
	expect_eq(w, atomic_read(&a->broken), 0);
	expect(w, ibchan_channel_tryget(ch));
	ibchan_channel_put(ch);
	ibchan_channel_put(ch);
}

static void the_last_reference_may_go_in_atomic_context(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_channel *chs[2];
	unsigned long flags;
	int i;

	if (world_default_pair(w))
		return;
	chs[0] = a->ch;
	chs[1] = b->ch;
	for (i = 0; i < 2; i++)
		if (!expect(w, ibchan_channel_tryget(chs[i])))
			return;
	side_close(a);
	side_close(b);
	local_bh_disable();
	ibchan_channel_put(chs[0]);
	local_bh_enable();
	local_irq_save(flags);
	ibchan_channel_put(chs[1]);
	local_irq_restore(flags);
	/* What the channel kept is free: the world's end finds nothing in use. */
}

/**
 * struct poster - posts for as long as a channel takes works
 * @thread: it
 * @side: which channel's elements it posts
 * @ch: which channel; it has a reference
 * @jobs: that it posts, one after the other
 * @posted: how many were accepted
 */
struct poster {
	struct thread thread;
	struct side *side;
	struct ibchan_channel *ch;
	struct job *jobs;
	u32 posted;
};

#define POSTER_JOBS	64

/* The queue has places for half of them: then only the end of the channel comes. */
static int posts(void *arg)
{
	struct poster *poster = arg;
	struct ibchan_wr wr;
	int ret = 0;

	while (!ret && poster->posted < POSTER_JOBS) {
		struct job *job = &poster->jobs[poster->posted];

		wr = job_wr(job, IBCHAN_OP_RECV, poster->side, 0, 64);
		ret = ibchan_post_wr(poster->ch, &wr, NULL);
		if (!ret)
			WRITE_ONCE(poster->posted, poster->posted + 1);
		if (ret == -EAGAIN) {
			usleep_range(20, 50);
			ret = 0;
		}
	}
	ibchan_channel_put(poster->ch);
	return ret;
}

/* A thread that uses the channel of @side, with a reference that it gives back. */
static int poster_start(struct poster *poster, struct side *side, int (*run)(void *arg))
{
	struct world *w = side->world;

	poster->side = side;
	poster->ch = side->ch;
	poster->thread = (struct thread){ .world = w, .run = run, .arg = poster };
	if (!expect(w, ibchan_channel_tryget(side->ch)))
		return -ENOENT;
	if (expect_eq(w, thread_start(&poster->thread), 0))
		return 0;
	ibchan_channel_put(side->ch);
	return -ENOMEM;
}

/* Nothing announces that something is posted. */
static void await_post(struct world *w, struct ibchan_channel *ch)
{
	ktime_t end = after_ms(patience);

	while (!channel_in_flight(ch) && ktime_before(ktime_get(), end))
		usleep_range(20, 50);
	expect(w, channel_in_flight(ch));
}

/* Its owner gives the channel and its cq back while another thread posts. */
static void close_under_a_poster(struct world *w, unsigned int delay)
{
	struct side *a = &w->side[0];
	struct poster poster = { .jobs = world_jobs(w, POSTER_JOBS) };
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_recv_wr = POSTER_JOBS / 2;
	if (world_pair(w, &init) || poster_start(&poster, a, posts))
		return;
	await_post(w, a->ch);
	udelay(delay);
	side_close(a);
	world_forget(w, THING_CQ, a->send_cq);
	ibchan_cq_put(a->send_cq);
	expect_eq(w, thread_join(&poster.thread), -ESHUTDOWN);
	expect_eq(w, jobs_ended(poster.jobs, poster.posted), poster.posted);
	expect_eq(w, jobs_repeated(poster.jobs, poster.posted), 0);
}

static void posts_beside_a_close_end_or_are_refused(struct world *w)
{
	unsigned int i;

	for (i = 0; i < 32 && !w->failures; i++) {
		close_under_a_poster(w, i * 20);
		world_give_back(w);
	}
}

static int sends_to_nobody(void *arg)
{
	struct poster *poster = arg;
	int ret = ibchan_channel_send(poster->ch, side_sge(poster->side, 0, 64), 1, NULL);

	ibchan_channel_put(poster->ch);
	return ret;
}

/* The peer has no receive and the sender tries without end: only the close ends the call. */
static void a_close_ends_a_blocking_call_of_another_thread(struct world *w)
{
	struct side *a = &w->side[0];
	struct poster poster = {};
	struct pair_init init;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	if (world_pair(w, &init) || poster_start(&poster, a, sends_to_nobody))
		return;
	await_post(w, a->ch);
	side_close(a);
	expect_eq(w, thread_join(&poster.thread), -ECANCELED);
}

/* --- a close that nobody waits for --- */

/**
 * struct owner - of a channel that it closes when that breaks
 * @world: woken when it has ended
 * @side: what it is built from
 * @ch: it
 * @jobs: posted on it
 * @told: how often broken() was called
 * @closed: how often closed() was called
 * @ended: works that had ended by then
 * @may_sleep: closed() was called where one may
 * @freed: what ibchan_pd_free() said there; 1: it was not called
 * @gives_back: closed() gives back what the channel was built from
 */
struct owner {
	struct world *world;
	struct side *side;
	struct ibchan_channel *ch;
	struct job *jobs;
	atomic_t told;
	atomic_t closed;
	int ended;
	bool may_sleep;
	int freed;
	bool gives_back;
};

static void give_side_back(struct owner *owner)
{
	struct side *side = owner->side;
	struct world *w = owner->world;

	world_forget(w, THING_MR, side->local);
	ibchan_mr_put(side->local, NULL, NULL);
	world_forget(w, THING_CQ, side->send_cq);
	ibchan_cq_put(side->send_cq);
	owner->freed = ibchan_pd_settle(side->pd) ?: ibchan_pd_free(side->pd);
	if (!owner->freed)
		world_forget(w, THING_PD, side->pd);
}

static void owner_closed(void *priv)
{
	struct owner *owner = priv;

	owner->ended = jobs_ended(owner->jobs, JOBS);
	owner->may_sleep = !in_interrupt() && !irqs_disabled();
	if (owner->gives_back)
		give_side_back(owner);
	atomic_inc(&owner->closed);
	wake_up(&owner->world->wait);
}

static void owner_broken(void *priv, int error)
{
	struct owner *owner = priv;

	atomic_inc(&owner->told);
	ibchan_channel_close_async(owner->ch, &owner->world->closing, owner_closed);
}

/* A channel of side 0's that is its own peer, with receives posted. */
static struct owner *new_owner(struct world *w)
{
	struct owner *owner = world_alloc(w, sizeof(*owner));
	struct side *a = &w->side[0];
	struct pair_init init;
	struct ibchan_build build;
	struct ibchan_endpoint endpoint;

	pair_defaults(&init);
	owner->world = w;
	owner->side = a;
	owner->freed = 1;
	owner->jobs = world_jobs(w, JOBS);
	if (world_sides(w, &init))
		return NULL;
	side_close(a);
	side_build_init(a, &build);
	build.broken = owner_broken;
	build.priv = owner;
	owner->ch = ibchan_channel_build(&build, &init.params, NULL);
	if (!expect(w, !IS_ERR(owner->ch)))
		return NULL;
	a->ch = owner->ch;
	ibchan_channel_endpoint(owner->ch, &endpoint);
	if (expect_eq(w, ibchan_channel_handshake(owner->ch, &endpoint, NULL), 0) &&
	    expect_eq(w, receive_some(a, owner->jobs), 0))
		return owner;
	if (!atomic_read(&owner->told))
		ibchan_channel_close(owner->ch);
	ibchan_closing_wait(&w->closing);
	return NULL;
}

static void expect_closed(struct owner *owner, int told)
{
	struct world *w = owner->world;

	expect_soon(w, atomic_read(&owner->closed));
	ibchan_closing_wait(&w->closing);
	expect_eq(w, atomic_read(&owner->closed), 1);
	expect_eq(w, atomic_read(&owner->told), told);
	expect_eq(w, owner->ended, JOBS);
	expect_eq(w, jobs_repeated(owner->jobs, JOBS), 0);
	expect(w, owner->may_sleep);
}

static void what_a_channel_was_built_from_is_given_back_when_it_has_closed(struct world *w)
{
	struct owner *owner = new_owner(w);

	if (!owner)
		return;
	owner->gives_back = true;
	ibchan_channel_break(owner->ch, -EPIPE);
	expect_closed(owner, 1);
	expect_eq(w, owner->freed, 0);
}

static void a_close_with_interrupts_off_tells_when_it_is_done(struct world *w)
{
	struct owner *owner = new_owner(w);
	unsigned long flags;

	if (!owner)
		return;
	local_irq_save(flags);
	ibchan_channel_close_async(owner->ch, &owner->world->closing, owner_closed);
	local_irq_restore(flags);
	expect_closed(owner, 0);
}

/* Several at once, callbacks included. */
static void the_wait_for_channels_that_were_given_up_waits_for_all_of_them(struct world *w)
{
	struct owner *owners[4] = {};
	int i, j;

	for (i = 0; i < 4; i++) {
		owners[i] = new_owner(w);
		if (!owners[i])
			break;
	}
	for (j = 0; j < i; j++)
		ibchan_channel_close_async(owners[j]->ch, &w->closing, owner_closed);
	ibchan_closing_wait(&w->closing);
	for (j = 0; j < i; j++) {
		expect_eq(w, atomic_read(&owners[j]->closed), 1);
		expect_eq(w, owners[j]->ended, JOBS);
	}
}

/* Another consumer's closed() comes to no end. */
static void sleep_until_told(void *priv)
{
	wait_for_completion(priv);
}

static void a_consumer_waits_for_no_channel_of_another_ones(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_closing other = {};
	DECLARE_COMPLETION_ONSTACK(told);
	struct ibchan_channel *slow;
	struct ibchan_params params;
	struct ibchan_build build;

	if (world_default_pair(w))
		return;
	ibchan_params_init(&params);
	side_build_init(b, &build);
	build.broken = NULL;
	build.priv = &told;
	slow = ibchan_channel_build(&build, &params, NULL);
	if (!expect(w, !IS_ERR(slow)))
		return;
	ibchan_channel_close_async(slow, &other, sleep_until_told);
	world_forget(w, THING_CHANNEL, a->ch);
	ibchan_channel_close_async(a->ch, &w->closing, NULL);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
	expect_eq(w, atomic_read(&other.num), 1);
	complete(&told);
	ibchan_closing_wait(&other);
}

/* The second one has no channel any more: that is told, and nothing happens. */
static void a_channel_that_is_given_up_twice_is_closed_once(struct world *w)
{
	struct owner *owner = new_owner(w);
	struct ibchan_closing other = {};

	if (!owner)
		return;
	/* Behind the end there is the memory of a channel, but no channel. */
	if (!expect(w, ibchan_channel_tryget(owner->ch)))
		return;
	ibchan_channel_close_async(owner->ch, &w->closing, owner_closed);
	ibchan_channel_close_async(owner->ch, &other, owner_closed);
	expect_eq(w, atomic_read(&other.num), 0);
	expect_closed(owner, 0);
	ibchan_channel_close_async(owner->ch, &w->closing, owner_closed);
	expect_closed(owner, 0);
	expect_eq(w, log_lines_with("channel that is closing is given back"), 1);
	ibchan_channel_put(owner->ch);
}

/* --- regions --- */

/* A region's owner that frees its memory when it may. */
struct tenant {
	struct world *world;
	atomic_t gone;
	void *memory;
};

static void tenant_gone(void *priv)
{
	struct tenant *tenant = priv;

	kfree(tenant->memory);
	tenant->memory = NULL;
	atomic_inc(&tenant->gone);
	wake_up(&tenant->world->wait);
}

/* A shared region over memory of its own. */
static struct ibchan_mr *new_tenant(struct world *w, struct side *side, struct tenant **tenant)
{
	struct ibchan_mr *mr;

	*tenant = world_alloc(w, sizeof(**tenant));
	(*tenant)->world = w;
	(*tenant)->memory = kzalloc(PAGE_SIZE, GFP_KERNEL);
	if (!expect(w, (*tenant)->memory))
		return NULL;
	mr = ibchan_mr_reg_kernel(side->pd, (*tenant)->memory, PAGE_SIZE, IBCHAN_ACCESS_SHARED,
				  NULL);
	if (expect(w, !IS_ERR(mr)))
		return mr;
	kfree((*tenant)->memory);
	return NULL;
}

static void a_region_tells_when_its_memory_may_be_freed(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_remote remote;
	struct job *job = world_jobs(w, 1);
	struct tenant *tenant;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	mr = new_tenant(w, b, &tenant);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	ibchan_mr_put(mr, tenant_gone, tenant);
	expect_eq(w, atomic_read(&tenant->gone), 1);
	/* The peer's key is dead by then. */
	expect_eq(w, job_write(job, a, 64, &remote), 0);
	expect_soon(w, atomic_read(&job->ended));
	expect_eq(w, job->completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
	expect_eq(w, atomic_read(&tenant->gone), 1);
}

/* A peer that writes until its key is dead. */
struct writer {
	struct side *side;
	struct ibchan_remote remote;
	bool failed;
};

static void write_on(struct job *job)
{
	struct writer *writer = job->arg;

	if (job->completion.error || job_write(job, writer->side, 64, &writer->remote))
		WRITE_ONCE(writer->failed, true);
}

static void no_write_of_the_peers_comes_behind_the_put_of_an_idle_region(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct writer *writer = world_alloc(w, sizeof(*writer));
	struct job *job = world_jobs(w, 1);
	struct tenant *tenant;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	mr = new_tenant(w, b, &tenant);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &writer->remote), 0))
		return;
	writer->side = a;
	job->then = write_on;
	job->arg = writer;
	memset(a->buf, 0x11, 64);
	expect_eq(w, job_write(job, a, 64, &writer->remote), 0);
	expect_soon(w, atomic_read(&job->ended) > 8);
	ibchan_mr_put(mr, NULL, NULL);
	memset(tenant->memory, 0x77, 64);
	expect_soon(w, READ_ONCE(writer->failed));
	expect(w, !memchr_inv(tenant->memory, 0x77, 64));
	kfree(tenant->memory);
}

static void a_region_that_a_work_uses_tells_when_that_has_ended(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct tenant *tenant;
	struct ibchan_wr wr;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	mr = new_tenant(w, b, &tenant);
	if (!mr)
		return;
	job->sges[0] = ibchan_sge_unchecked(mr, 0, 64);
	wr = ibchan_wr_receive(job->sges, 1);
	expect_eq(w, job_post(job, b->ch, &wr, NULL), 0);
	ibchan_mr_put(mr, tenant_gone, tenant);
	expect_eq(w, atomic_read(&tenant->gone), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 64), 1, NULL), 0);
	expect_soon(w, atomic_read(&job->ended));
	expect_eq(w, ibchan_pd_settle(b->pd), 0);
	/* Already now, without any wait. */
	expect_eq(w, atomic_read(&tenant->gone), 1);
}

static void a_shell_of_a_region_tells_at_once(struct world *w)
{
	struct tenant *tenant;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	mr = new_tenant(w, &w->side[1], &tenant);
	if (!mr)
		return;
	expect_eq(w, ibchan_mr_try_dereg(mr), 0);
	ibchan_mr_put(mr, tenant_gone, tenant);
	expect_eq(w, atomic_read(&tenant->gone), 1);
}

/* --- devices --- */

/* What a follower was told. */
struct listener {
	struct ibchan_follower follower;
	struct world *world;
	struct ibchan_device *devs[8];
	int came;
	int left;
};

static void device_comes(struct ibchan_follower *follower, struct ibchan_device *dev)
{
	struct listener *listener = container_of(follower, struct listener, follower);
	struct ibchan_pd *pd = ibchan_pd_alloc(dev);

	if (expect(listener->world, !IS_ERR(pd)))
		expect_eq(listener->world, ibchan_pd_free(pd), 0);
	if (listener->came < (int)ARRAY_SIZE(listener->devs))
		listener->devs[listener->came] = dev;
	else
		ibchan_device_put(dev);
	listener->came++;
}

static void device_leaves(struct ibchan_follower *follower, struct ibchan_device *dev)
{
	container_of(follower, struct listener, follower)->left++;
}

/* --- completion queues --- */

/* The log says it once for the life of the module. */
static void a_queue_that_is_given_back_twice_ends_once(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_cq *cq;
	int i;

	for (i = 0; dev && i < 2; i++) {
		cq = world_cq(w, dev, &(struct ibchan_cq_init) {});
		if (!cq)
			return;
		world_forget(w, THING_CQ, cq);
		if (i)
			expect_eq(w, ibchan_cq_try_destroy(cq), 0);
		ibchan_cq_put(cq);
		/* It stays for a grace period. */
		ibchan_cq_put(cq);
	}
	expect_eq(w, log_lines_with("queue that has ended is given back"), 1);
}

/* A call that was posting or waiting when it was drained may not have returned. */
static void a_channel_keeps_its_queues_to_its_own_end(struct world *w)
{
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	ibchan_channel_drain(a->ch);
	expect_eq(w, ibchan_cq_try_destroy(a->send_cq), -EBUSY);
	side_close(a);
	/* Now it can: the end of the world expects that. */
}

static void a_follower_hears_of_the_devices_that_are_there(struct world *w)
{
	struct listener *listener = world_alloc(w, sizeof(*listener));
	struct ibchan_device *dev;
	int i, found = 0;
	u32 index = 0;

	listener->world = w;
	listener->follower.comes = device_comes;
	listener->follower.leaves = device_leaves;
	ibchan_device_follow(&listener->follower);
	ibchan_device_unfollow(&listener->follower);
	while (!IS_ERR(dev = ibchan_device_get_nth(index, NULL))) {
		for (i = 0; i < min_t(int, listener->came, ARRAY_SIZE(listener->devs)); i++)
			found += listener->devs[i] == dev;
		ibchan_device_put(dev);
		index++;
	}
	expect(w, index >= 2);
	expect_eq(w, listener->came, index);
	expect_eq(w, found, index);
	expect_eq(w, listener->left, 0);
	for (i = 0; i < min_t(int, listener->came, ARRAY_SIZE(listener->devs)); i++)
		ibchan_device_put(listener->devs[i]);
}

static const struct test_case life_cases[] = {
	CASE(a_drained_channel_has_nothing_in_flight_and_takes_nothing),
	CASE(a_channel_can_be_drained_after_a_break_and_again),
	CASE(a_channel_without_a_peer_can_be_drained),
	CASE(several_may_drain_one_channel),
	CASE(a_reference_keeps_a_closed_channel_that_refuses),
	CASE(the_last_reference_may_go_in_atomic_context),
	CASE(posts_beside_a_close_end_or_are_refused),
	CASE(a_close_ends_a_blocking_call_of_another_thread),
	CASE(what_a_channel_was_built_from_is_given_back_when_it_has_closed),
	CASE(a_close_with_interrupts_off_tells_when_it_is_done),
	CASE(the_wait_for_channels_that_were_given_up_waits_for_all_of_them),
	CASE(a_consumer_waits_for_no_channel_of_another_ones),
	CASE(a_channel_that_is_given_up_twice_is_closed_once),
	CASE(no_write_of_the_peers_comes_behind_the_put_of_an_idle_region),
	CASE(a_region_tells_when_its_memory_may_be_freed),
	CASE(a_region_that_a_work_uses_tells_when_that_has_ended),
	CASE(a_shell_of_a_region_tells_at_once),
	CASE(a_queue_that_is_given_back_twice_ends_once),
	CASE(a_channel_keeps_its_queues_to_its_own_end),
	CASE(a_follower_hears_of_the_devices_that_are_there),
};

SUITE(life);
