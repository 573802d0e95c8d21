/* SPDX-License-Identifier: GPL-2.0-only */
/* Works with a done() of their own, and threads, for the cases. */
#ifndef KCLIENT_JOB_H
#define KCLIENT_JOB_H

#include "world.h"

#define JOB_SGES	4

struct task_struct;

/**
 * struct job - an unpolled work and what became of it
 * @work: posted
 * @world: woken when it ends
 * @ended: how often done() was called
 * @completion: as done() was told last
 * @sges: its elements
 * @then: called by done(), if set, before @ended counts
 * @arg: for @then
 */
struct job {
	struct ibchan_work work;
	struct world *world;
	atomic_t ended;
	struct ibchan_completion completion;
	struct ibchan_sge sges[JOB_SGES];
	void (*then)(struct job *job);
	void *arg;
};

struct job *world_jobs(struct world *w, u32 num);
int job_post(struct job *job, struct ibchan_channel *ch, struct ibchan_wr *wr,
	     struct ibchan_reason *reason);
struct ibchan_wr job_wr(struct job *job, u8 opcode, struct side *side, u64 offset, u32 length);
int job_send(struct job *job, struct side *side, u64 offset, u32 length);
int job_receive(struct job *job, struct side *side, u64 offset, u32 length);
int job_write(struct job *job, struct side *side, u32 length,
	      const struct ibchan_remote *remote);
int job_ended(struct job *job);
int jobs_ended(const struct job *jobs, u32 num);
int jobs_repeated(const struct job *jobs, u32 num);

/**
 * struct thread - a kthread that runs one function and can be killed
 * @world: woken when it has ended
 * @run: what it does
 * @arg: for @run
 * @task: it
 * @started: @run is about to be called
 * @ended: @run has returned
 */
struct thread {
	struct world *world;
	int (*run)(void *arg);
	void *arg;
	struct task_struct *task;
	int started;
	int ended;
};

int thread_start(struct thread *thread);
void thread_kill(struct thread *thread);
int thread_join(struct thread *thread);

#endif /* KCLIENT_JOB_H */
