/* SPDX-License-Identifier: GPL-2.0-only */
/* Completion queues: see cq.c, cq_reap.c and cq_wait.c. */
#ifndef IBCHAN_CQ_H
#define IBCHAN_CQ_H

#include <linux/atomic.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/lockdep.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "device.h"
#include "only.h"

struct ibchan_cq_fifo;

/* Completions taken from a cq in one call of the driver. */
#define IBCHAN_REAP_BATCH	16

/* Completion queue */
struct ibchan_cq {
	/* NULL once the device is gone; guarded by CQ_OWNED (and set CQ_DEAD) */
	struct ib_cq *ib;
	struct ibchan_device *dev;	/* holds a reference */
	const struct ibchan_sink *sink;	/* the consumer's, or that of @fifo */
	void *priv;	/* for @sink */

	/* completions that the consumer has not taken yet; NULL unless IBCHAN_CQ_KEEP */
	__verbs_only struct ibchan_cq_fifo *fifo;
	u32 mode;	/* IBCHAN_CQ_* */
	__verbs_only unsigned long flags;	/* enum ibchan_cq_flag */
	atomic_t in_flight;	/* works posted and not retired */
	/* broken channels: their works end unsolicited, so the cq is armed for any completion */
	__verbs_only atomic_t broken;
	int retired;	/* works retired in this batch; belongs to the owner of CQ_OWNED */
	/* nothing had completed when a poster looked; belongs to the same */
	__verbs_only bool is_late;
	/* in-kernel waiters, and with IBCHAN_QUIRK_EVENT_OUTLIVES_CQ removal of the device */
	__verbs_only wait_queue_head_t wait;
	/* reaps completions that an event leaves over, and those that must not nest */
	__verbs_only struct work_struct reap_work;
	__verbs_only struct irq_work kick_work;	/* an interrupt that schedules @reap_tasklet */
	/* reaps behind an event, when no thread waits */
	__verbs_only struct tasklet_struct reap_tasklet;
	/* the device has lost completions, or has made one too many */
	__verbs_only struct work_struct error_work;
	/* 1 for the owner, each queue of a channel until its end, each waiter; 0: a shell */
	__verbs_only refcount_t users;
	__verbs_only spinlock_t space_lock;	/* guards @reserved */
	__verbs_only u32 reserved;	/* entries promised to channels */
	u32 entries;	/* entries of the ib_cq */
	__verbs_only struct ibchan_cost cost;	/* of kernel memory */
	union {
		/* in the device's list; left before @rcu is used */
		__verbs_only struct list_head link;
		/* only frees: the memory outlives readers that found it in a handle table */
		__verbs_only struct rcu_head rcu;
	};
	__verbs_only struct rcu_work free_work;	/* destroys and frees, after a grace period */
	/* with CQ_LATE: when the event is given up, in jiffies */
	__verbs_only unsigned long late_until;
#ifdef CONFIG_LOCKDEP
	/* the cq as lockdep sees it, see callback.c */
	__verbs_only struct lockdep_map callback_map;
#endif

	/* both belong to the owner of CQ_OWNED */
	__channel_only struct ibchan_completion completion;
	__verbs_only struct ib_wc wc[IBCHAN_REAP_BATCH];
};

/* A request of the module's own, before it is posted; @num < 0: requests that were not taken. */
static inline void ibchan_cq_count_posted(struct ibchan_cq *cq, int num)
{
	atomic_add(num, &cq->in_flight);
}

/* A condition to wait for, and a deadline. */
struct ibchan_wait {
	__verbs_only int (*ready)(void *arg);	/* see ibchan_cq_wait() */
	__verbs_only void *arg;	/* for @ready */
	__verbs_only ktime_t deadline;	/* KTIME_MAX: none */
	__verbs_only unsigned int state;	/* TASK_*, which says what signals end the wait */
};

/* callback.c */
#ifdef CONFIG_LOCKDEP
void ibchan_callback_init(struct ibchan_cq *cq, struct lock_class_key *class);
int ibchan_callback_begin(struct ibchan_cq *cq, struct ibchan_cq *other);
void ibchan_callback_end(struct ibchan_cq *cq, struct ibchan_cq *other, int begun);
void ibchan_callback_may_come(struct ibchan_cq *cq);
#else
#define ibchan_callback_init(cq, class)		do { } while (0)
#define ibchan_callback_begin(cq, other)	0
#define ibchan_callback_end(cq, other, begun)	((void)(begun))

static inline void ibchan_callback_may_come(struct ibchan_cq *cq)
{
}
#endif

/* cq_reap.c */
void ibchan_cq_make_way(struct ibchan_cq *cq);
void ibchan_cq_own(struct ibchan_cq *cq);
void ibchan_cq_await_owner(struct ibchan_cq *cq);
void ibchan_cq_disown(struct ibchan_cq *cq);
bool ibchan_cq_sweep(struct ibchan_cq *cq, u32 max);
void ibchan_cq_notify(struct ibchan_cq *cq);
void ibchan_cq_distrust(struct ibchan_cq *cq);
void ibchan_cq_reap_later(struct ibchan_cq *cq);
bool ibchan_cq_is_to_reap(struct ibchan_cq *cq);
void ibchan_cq_arm_only(struct ibchan_cq *cq);
void ibchan_cq_leave(struct ibchan_cq *cq);
void ibchan_cq_add_broken(struct ibchan_cq *cq);
void ibchan_cq_drop_broken(struct ibchan_cq *cq);

/* cq.c */
void ibchan_cq_hold(struct ibchan_cq *cq);
int ibchan_cq_reserve(struct ibchan_cq *cq, u32 entries, struct ibchan_reason *reason);
void ibchan_cq_unreserve(struct ibchan_cq *cq, u32 entries);

/* might_sleep() of calls that are made often: it does not give the cpu away. */
#define ibchan_may_sleep()	__might_sleep(__FILE__, __LINE__)

/* cq_wait.c */
int ibchan_cq_wait_for(struct ibchan_cq *cq, const struct ibchan_wait *wait);
void ibchan_cq_wait_drained(struct ibchan_cq *cq, int *drained, unsigned long deadline);

#endif /* IBCHAN_CQ_H */
