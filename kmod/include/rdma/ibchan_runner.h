/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completions in process context, and posts from hard interrupts.
 *
 * done() of a work runs with bottom halves off, mostly in a softirq. A consumer whose next step
 * may sleep - submits to a disk, say - takes struct ibchan_call in place of struct ibchan_work:
 * its done() is called by a worker, and may sleep. A consumer chooses that work by work: a
 * sent response needs no worker, the command that came does.
 *
 * A post is not allowed with interrupts off. Code that runs there, as a local disk's bi_end_io()
 * may, adds a struct ibchan_job, which a worker runs, to post.
 *
 * Jobs of one runner run one after the other in the order in which they were added; those of
 * different runners beside each other. A slow job holds up its own runner only: no cq, no drain
 * and no other channel waits for it. The worker has a rescuer (WQ_MEM_RECLAIM), so memory reclaim
 * may wait for jobs that do not allocate themselves. One runner per channel is usual.
 */
#ifndef _RDMA_IBCHAN_RUNNER_H
#define _RDMA_IBCHAN_RUNNER_H

#include <linux/llist.h>
#include <linux/workqueue.h>
#include <rdma/ibchan.h>

/**
 * struct ibchan_runner - where jobs run in order
 * @jobs: private
 * @work: private
 */
struct ibchan_runner {
	/* private: */
	struct llist_head jobs;
	struct work_struct work;
};

/**
 * struct ibchan_job - something to run in process context, inside a struct of the caller's
 * @run: called once for each time that the job was added; may sleep. The job is the caller's
 *	again: it may be added again, also here, and freed.
 * @node: private
 */
struct ibchan_job {
	void (*run)(struct ibchan_job *job);
	/* private: */
	struct llist_node node;
};

/**
 * struct ibchan_call - a work with a done() in process context
 * @work: goes into the request: ibchan_wr.work
 * @done: called once when the work has ended, by the runner; may sleep. The call, with its work
 *	and buffers, is the caller's again, also within @done.
 * @job: private
 * @runner: private
 * @completion: private
 */
struct ibchan_call {
	struct ibchan_work work;
	void (*done)(struct ibchan_call *call, const struct ibchan_completion *completion);
	/* private: */
	struct ibchan_job job;
	struct ibchan_runner *runner;
	struct ibchan_completion completion;
};

void ibchan_runner_init(struct ibchan_runner *runner);
void ibchan_runner_add(struct ibchan_runner *runner, struct ibchan_job *job);
void ibchan_runner_flush(struct ibchan_runner *runner);
void ibchan_call_init(struct ibchan_call *call, struct ibchan_runner *runner,
		      void (*done)(struct ibchan_call *call,
				   const struct ibchan_completion *completion));

#endif /* _RDMA_IBCHAN_RUNNER_H */
