// SPDX-License-Identifier: GPL-2.0-only
/* Works with a done() of their own, and threads. */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "job.h"

static void job_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	struct job *job = container_of(work, struct job, work);
	struct world *w = job->world;

	job->completion = *completion;
	if (job->then)
		job->then(job);
	/* Whoever sees the count sees the completion. */
	smp_mb__before_atomic();
	atomic_inc(&job->ended);
	wake_up(&w->wait);
}

struct job *world_jobs(struct world *w, u32 num)
{
	struct job *jobs = world_valloc(w, num * sizeof(*jobs));
	u32 i;

	for (i = 0; jobs && i < num; i++) {
		jobs[i].world = w;
		jobs[i].work.done = job_done;
	}
	return jobs;
}

int job_post(struct job *job, struct ibchan_channel *ch, struct ibchan_wr *wr,
	     struct ibchan_reason *reason)
{
	u32 accepted;

	wr->work = &job->work;
	return ibchan_post(ch, wr, 1, &accepted, reason);
}

struct ibchan_wr job_wr(struct job *job, u8 opcode, struct side *side, u64 offset, u32 length)
{
	job->sges[0] = ibchan_sge_unchecked(side->local, offset, length);
	return (struct ibchan_wr){
		.opcode = opcode, .sges = job->sges, .num_sge = 1, .work = &job->work,
	};
}

int job_send(struct job *job, struct side *side, u64 offset, u32 length)
{
	struct ibchan_wr wr = job_wr(job, IBCHAN_OP_SEND, side, offset, length);

	return job_post(job, side->ch, &wr, NULL);
}

int job_receive(struct job *job, struct side *side, u64 offset, u32 length)
{
	struct ibchan_wr wr = job_wr(job, IBCHAN_OP_RECV, side, offset, length);

	return job_post(job, side->ch, &wr, NULL);
}

int job_write(struct job *job, struct side *side, u32 length,
	      const struct ibchan_remote *remote)
{
	struct ibchan_wr wr;

	job->sges[0] = ibchan_sge_unchecked(side->local, 0, length);
	wr = ibchan_wr_write(job->sges, 1, remote);
	return job_post(job, side->ch, &wr, NULL);
}

/* Waits; says whether it has ended just once. */
int job_ended(struct job *job)
{
	return expect_soon(job->world, atomic_read(&job->ended)) &&
	       expect_eq(job->world, atomic_read(&job->ended), 1);
}

int jobs_ended(const struct job *jobs, u32 num)
{
	int sum = 0;
	u32 i;

	for (i = 0; i < num; i++)
		sum += !!atomic_read(&jobs[i].ended);
	return sum;
}

/* How many were told more than once. */
int jobs_repeated(const struct job *jobs, u32 num)
{
	int sum = 0;
	u32 i;

	for (i = 0; i < num; i++)
		sum += atomic_read(&jobs[i].ended) > 1;
	return sum;
}

static int thread_main(void *data)
{
	struct thread *thread = data;
	int ret;

	allow_signal(SIGKILL);
	WRITE_ONCE(thread->started, 1);
	wake_up(&thread->world->wait);
	ret = thread->run(thread->arg);
	WRITE_ONCE(thread->ended, 1);
	wake_up(&thread->world->wait);
	return ret;
}

int thread_start(struct thread *thread)
{
	struct task_struct *task = kthread_create(thread_main, thread, "kclient");

	if (!expect(thread->world, !IS_ERR(task)))
		return PTR_ERR(task);
	thread->task = get_task_struct(task);
	wake_up_process(task);
	/* A signal that comes before it is allowed would be lost. */
	expect_soon(thread->world, READ_ONCE(thread->started));
	return 0;
}

void thread_kill(struct thread *thread)
{
	send_sig(SIGKILL, thread->task, 1);
}

/* What its function returned. One that hangs loses its channels. */
int thread_join(struct thread *thread)
{
	int ret;

	if (!expect_soon(thread->world, READ_ONCE(thread->ended)))
		world_break_all(thread->world, -ETIME);
	ret = kthread_stop(thread->task);
	put_task_struct(thread->task);
	return ret;
}
