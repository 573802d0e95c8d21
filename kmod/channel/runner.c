// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that run in process context, in order, and works that end there.
 *
 * A runner is a lock-free list, which any context adds to, and a work item, which takes all that
 * is there, turns it round, and runs it. Calls that are added meanwhile queue the work item again,
 * so that a runner which is never empty shares its worker with others.
 */
#include <rdma/ibchan_runner.h>

#include "compat.h"
#include "channel.h"

static void runner_work(struct work_struct *work)
{
	struct ibchan_runner *runner = container_of(work, struct ibchan_runner, work);
	struct llist_node *jobs = llist_reverse_order(llist_del_all(&runner->jobs));
	struct ibchan_job *job, *next;

	/* The last one may have ended the runner. */
	llist_for_each_entry_safe(job, next, jobs, node)
		job->run(job);
}

/**
 * ibchan_runner_init - make a runner
 * @runner: of the caller's; needs no end of its own but ibchan_runner_flush()
 *
 * Context: any.
 */
void ibchan_runner_init(struct ibchan_runner *runner)
{
	init_llist_head(&runner->jobs);
	INIT_WORK(&runner->work, runner_work);
}
EXPORT_SYMBOL_NS_GPL(ibchan_runner_init, IBCHAN_NS);

/**
 * ibchan_runner_add - have a job run
 * @runner: the runner
 * @job: added nowhere, its run() set
 *
 * Context: any but NMI, also with interrupts off.
 */
void ibchan_runner_add(struct ibchan_runner *runner, struct ibchan_job *job)
{
	if (llist_add(&job->node, &runner->jobs))
		queue_work(ibchan_runner_wq, &runner->work);
}
EXPORT_SYMBOL_NS_GPL(ibchan_runner_add, IBCHAN_NS);

/**
 * ibchan_runner_flush - wait until all jobs that were added have run
 * @runner: the runner; when no ibchan_runner_add() is under way or follows, its memory may go
 *	afterwards
 *
 * Calls of works that are still in flight are added when these end: the channels of such works have
 * ended before, as ibchan_channel_close() and ibchan_closing_wait() tell.
 *
 * Context: process, may sleep; not within a job of the same runner.
 */
void ibchan_runner_flush(struct ibchan_runner *runner)
{
	/* A caller of ibchan_runner_add() may have added the first job and not queued this yet. */
	queue_work(ibchan_runner_wq, &runner->work);
	flush_work(&runner->work);
}
EXPORT_SYMBOL_NS_GPL(ibchan_runner_flush, IBCHAN_NS);

static void call_run(struct ibchan_job *job)
{
	struct ibchan_call *call = container_of(job, struct ibchan_call, job);
	struct ibchan_completion completion = call->completion;

	call->done(call, &completion);
}

static void call_work_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	struct ibchan_call *call = container_of(work, struct ibchan_call, work);

	call->completion = *completion;
	ibchan_runner_add(call->runner, &call->job);
}

/**
 * ibchan_call_init - make a work that ends in process context
 * @call: zeroed; from its post until @done is called it stays where it is
 * @runner: calls @done
 * @done: see struct ibchan_call
 *
 * Context: any.
 */
void ibchan_call_init(struct ibchan_call *call, struct ibchan_runner *runner,
		      void (*done)(struct ibchan_call *call,
				   const struct ibchan_completion *completion))
{
	call->work.done = call_work_done;
	call->done = done;
	call->job.run = call_run;
	call->runner = runner;
}
EXPORT_SYMBOL_NS_GPL(ibchan_call_init, IBCHAN_NS);
