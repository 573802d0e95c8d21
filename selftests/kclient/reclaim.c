// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a consumer may do in writeback: see <rdma/ibchan.h>. A worker with a rescuer does it, and
 * the kernel warns when that waits for a worker without one. What starts I/O to get memory is
 * seen where it allocates.
 */
#include <linux/bottom_half.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>

#include "allocations.h"
#include "meeting.h"
#include "suites.h"

#define IDLE_REGIONS	64

/**
 * struct errand - what a case does, here or in a worker
 * @work: for the worker
 * @world: of the case
 * @jobs: three receives that are in flight meanwhile
 * @idle: regions without works: so many that a worker is busy for a while with their end
 * @run: what it does
 */
struct errand {
	struct work_struct work;
	struct world *world;
	struct job *jobs;
	struct ibchan_mr *idle[IDLE_REGIONS];
	void (*run)(struct errand *errand);
};

static void run_errand(struct work_struct *work)
{
	struct errand *errand = container_of(work, struct errand, work);

	errand->run(errand);
}

/* In a worker with a rescuer. */
static void by_rescued_worker(struct world *w, void (*run)(struct errand *errand))
{
	struct errand errand = { .world = w, .run = run };
	struct workqueue_struct *wq = alloc_workqueue("ibchan_kclient_reclaim", WQ_MEM_RECLAIM, 0);

	if (!expect(w, wq))
		return;
	INIT_WORK_ONSTACK(&errand.work, run_errand);
	queue_work(wq, &errand.work);
	flush_work(&errand.work);
	destroy_work_on_stack(&errand.work);
	destroy_workqueue(wq);
}

/* --- posting --- */

static int is_ready(void *arg)
{
	return atomic_read(&((struct job *)arg)->ended);
}

static void post_and_wait(struct errand *errand)
{
	struct world *w = errand->world;
	struct side *a = &w->side[0], *b = &w->side[1];
	unsigned int noreclaim = memalloc_noreclaim_save();
	struct job *jobs = world_jobs(w, 3);
	struct ibchan_channel_attr attr;
	struct ibchan_wr wr;

	expect_eq(w, job_receive(&jobs[0], b, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 64), 1, NULL), 0);
	expect_eq(w, ibchan_cq_wait(b->recv_cq, is_ready, &jobs[0], NSEC_PER_MSEC * patience), 1);
	expect_eq(w, job_write(&jobs[1], a, 64, &b->remote), 0);
	ibchan_cq_arm(a->send_cq);
	expect(w, job_ended(&jobs[1]));
	expect_eq(w, ibchan_cq_reap(a->send_cq, 1), 0);
	wr = job_wr(&jobs[2], IBCHAN_OP_RECV, a, 0, 64);
	wr.flags = 0x20;
	expect_eq(w, job_post(&jobs[2], a->ch, &wr, NULL), -EOPNOTSUPP);
	expect_eq(w, job_receive(&jobs[2], a, 0, 64), 0);
	ibchan_channel_break(a->ch, -EPIPE);
	expect(w, job_ended(&jobs[2]));
	expect_eq(w, jobs[2].completion.error, ECANCELED);
	expect_eq(w, job_write(&jobs[2], a, 64, &b->remote), -ESHUTDOWN);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.error, EPIPE);
	memalloc_noreclaim_restore(noreclaim);
}

static void a_worker_that_reclaims_memory_may_post_wait_and_break(struct world *w)
{
	if (!world_default_pair(w) && side_share(&w->side[1]))
		by_rescued_worker(w, post_and_wait);
}

static void break_by_address(struct errand *errand)
{
	struct world *w = errand->world;
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);

	expect_eq(w, job_receive(job, a, 0, 64), 0);
	ibchan_channel_break(a->ch, -EPIPE);
	expect(w, job_ended(job));
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
}

static void a_worker_that_reclaims_memory_may_break_a_channel_by_address(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (m && !meeting_connect(m))
		by_rescued_worker(w, break_by_address);
}

/* --- giving back --- */

/* Regions of its own, for one receive each, which only closing ends. */
static int receive_into(struct side *side, struct job *job, u32 access)
{
	struct world *w = side->world;
	struct ibchan_mr *mr = world_mr(w, side->pd, side->buf, 64, access);
	struct ibchan_wr wr;
	int ret;

	if (!mr)
		return -ENODEV;
	job->sges[0] = ibchan_sge_unchecked(mr, 0, 64);
	wr = ibchan_wr_receive(job->sges, 1);
	ret = job_post(job, side->ch, &wr, NULL);
	expect_eq(w, ret, 0);
	expect_eq(w, ibchan_mr_try_dereg(mr), -EBUSY);
	world_forget(w, THING_MR, mr);
	ibchan_mr_put(mr, NULL, NULL);
	return ret;
}

static void give_cq_back(struct world *w, struct ibchan_cq *cq)
{
	world_forget(w, THING_CQ, cq);
	expect_eq(w, ibchan_cq_try_destroy(cq), 0);
	ibchan_cq_put(cq);
}

static void give_idle_up(struct errand *errand)
{
	int i;

	for (i = 0; i < IDLE_REGIONS; i++) {
		world_forget(errand->world, THING_MR, errand->idle[i]);
		ibchan_mr_put(errand->idle[i], NULL, NULL);
	}
}

/* All that a side has but its device, once its channel is closed. */
static void give_rest_back(struct side *side)
{
	struct world *w = side->world;

	expect_eq(w, ibchan_pd_free(side->pd), -EBUSY);
	expect_eq(w, ibchan_mr_try_dereg(side->local), 0);
	if (side->shared)
		expect_eq(w, ibchan_mr_try_dereg(side->shared), 0);
	expect_eq(w, ibchan_pd_settle(side->pd), 0);
	ibchan_pd_flush(side->pd);
	world_forget(w, THING_PD, side->pd);
	expect_eq(w, ibchan_pd_free(side->pd), 0);
	give_cq_back(w, side->send_cq);
}

static int hold_regions(struct errand *errand)
{
	struct world *w = errand->world;
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 3);
	int i;

	for (i = 0; i < IDLE_REGIONS; i++) {
		errand->idle[i] = world_mr(w, b->pd, b->buf, 64, IBCHAN_ACCESS_LOCAL);
		if (!errand->idle[i])
			return -ENODEV;
	}
	errand->jobs = jobs;
	return receive_into(a, &jobs[0], IBCHAN_ACCESS_LOCAL) ?:
	       receive_into(a, &jobs[1], IBCHAN_ACCESS_SHARED) ?:
	       receive_into(b, &jobs[2], IBCHAN_ACCESS_SHARED);
}

static void give_back(struct errand *errand)
{
	struct world *w = errand->world;
	struct side *a = &w->side[0], *b = &w->side[1];

	expect_eq(w, ibchan_cq_try_destroy(a->send_cq), -EBUSY);
	/* A worker does it, and is busy with that for a while. */
	world_forget(w, THING_CHANNEL, a->ch);
	local_bh_disable();
	ibchan_channel_close_async(a->ch, &w->closing, NULL);
	local_bh_enable();
	a->ch = NULL;
	ibchan_closing_wait(&w->closing);
	expect_eq(w, jobs_ended(errand->jobs, 2), 2);
	give_idle_up(errand);
	side_close(b);
	expect_eq(w, jobs_ended(errand->jobs, 3), 3);
	give_rest_back(a);
	give_rest_back(b);
}

static void hold_and_give_back(struct errand *errand)
{
	if (!hold_regions(errand))
		give_back(errand);
}

static void a_worker_that_reclaims_memory_may_give_back_and_flush(struct world *w)
{
	if (!world_default_pair(w) && side_share(&w->side[1]))
		by_rescued_worker(w, hold_and_give_back);
}

/* --- making --- */

static void make_in_noio_scope(struct errand *errand)
{
	struct world *w = errand->world;
	unsigned int noio = memalloc_noio_save();

	if (!world_default_pair(w) && side_share(&w->side[0]))
		hold_and_give_back(errand);
	memalloc_noio_restore(noio);
}

static void a_worker_that_reclaims_memory_may_make_things_in_a_noio_scope(struct world *w)
{
	by_rescued_worker(w, make_in_noio_scope);
}

/* --- what allocates --- */

/* Allocations of ours, and by calls of ours, that may start I/O. */
static int with_io(void)
{
	return allocations_with_io_by("[ibchan]") + allocations_with_io_by("[ib_core]") +
	       allocations_with_io_by("[rdma_rxe]") + allocations_with_io_by("[ibchan_hca]");
}

static void watched(struct errand *errand, void (*run)(struct errand *errand))
{
	struct world *w = errand->world;

	if (allocations_watch(w))
		return;
	allocations_begin();
	run(errand);
	allocations_end(w);
	allocations_unwatch(w);
}

static void what_is_made_in_a_noio_scope_starts_no_io(struct world *w)
{
	struct errand errand = { .world = w };

	watched(&errand, make_in_noio_scope);
	expect(w, allocations_by("[ibchan]"));
	expect_eq(w, with_io(), 0);
}

static void what_is_given_back_starts_no_io(struct world *w)
{
	struct errand errand = { .world = w };

	if (world_default_pair(w) || !side_share(&w->side[1]) || hold_regions(&errand))
		return;
	watched(&errand, give_back);
	expect_eq(w, with_io(), 0);
}

static void connect_both(struct errand *errand)
{
	struct side *side = errand->world->side;

	if (!side_connect(errand->world, side[0].ch, side[1].ch))
		side_connect(errand->world, side[1].ch, side[0].ch);
}

/* A worker with a rescuer that breaks a channel waits for that lock. */
static void a_queue_pair_is_connected_under_its_lock_without_io(struct world *w)
{
	struct errand errand = { .world = w };
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	watched(&errand, connect_both);
	expect_eq(w, with_io(), 0);
}

static void make_cq(struct errand *errand)
{
	struct ibchan_cq_init init = { .entries = 64 };

	world_cq(errand->world, errand->world->side[0].dev, &init);
}

static void share_first(struct errand *errand)
{
	side_share(&errand->world->side[0]);
}

/* The first region with a key makes the domain's service, under a lock that the last one takes. */
static void the_service_of_a_domain_is_made_without_io(struct world *w)
{
	struct errand errand = { .world = w };

	if (world_default_pair(w))
		return;
	/* A cq that is made elsewhere may well start I/O. */
	watched(&errand, make_cq);
	if (!allocations_by("__ib_create_cq")) {
		world_skip(w, "an inline function that allocates for it is not inline here");
		return;
	}
	expect(w, allocations_with_io_by("__ib_create_cq"));
	watched(&errand, share_first);
	expect(w, allocations_by("__ib_create_cq"));
	expect_eq(w, allocations_with_io_by("__ib_create_cq"), 0);
}

static const struct test_case reclaim_cases[] = {
	CASE(a_worker_that_reclaims_memory_may_post_wait_and_break),
	ETHERNET_CASE(a_worker_that_reclaims_memory_may_break_a_channel_by_address),
	CASE(a_worker_that_reclaims_memory_may_give_back_and_flush),
	CASE(a_worker_that_reclaims_memory_may_make_things_in_a_noio_scope),
	CASE(what_is_made_in_a_noio_scope_starts_no_io),
	CASE(what_is_given_back_starts_no_io),
	CASE(a_queue_pair_is_connected_under_its_lock_without_io),
	CASE(the_service_of_a_domain_is_made_without_io),
};

SUITE(reclaim);
