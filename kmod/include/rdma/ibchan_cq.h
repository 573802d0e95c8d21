/* SPDX-License-Identifier: GPL-2.0-only */
/* Completion queues: a part of <rdma/ibchan.h>, which includes it. */
#ifndef _RDMA_IBCHAN_CQ_H
#define _RDMA_IBCHAN_CQ_H

#include <linux/lockdep.h>
#include <linux/types.h>

struct ibchan_budget;
struct ibchan_completion;
struct ibchan_cq;
struct ibchan_device;
struct ibchan_reason;
struct ibchan_sink;

/*
 * Flags of a cq. Devices differ in the errors that wake a solicited cq:
 * soft-RoCE leaves failed sends out, so give them another cq, or break
 * the channel: until a broken channel is closed, any completion wakes its cqs. A
 * keepalive that is out reaps any cq, now and then, and once so does a channel on two
 * cqs that has flushed works.
 */
#define IBCHAN_CQ_POLLED	0x1U	/* its owner reaps, polls, waits or arms it */
#define IBCHAN_CQ_KEEP		0x2U	/* completions stay until ibchan_cq_poll() takes them */
#define IBCHAN_CQ_SOLICITED	0x4U	/* only solicited messages and errors wake it */
#define IBCHAN_CQ_POST_REAPS	0x8U	/* posts reap it: done() may run within one */

/**
 * struct ibchan_cq_init - properties of a new cq
 * @entries: work requests of all channels on it, and 2 for each channel; 0: 4096, or the
 *	device's largest
 * @flags: IBCHAN_CQ_*
 * @sink: for completions by wr_id and for events; NULL: none
 * @priv: for @sink
 * @budget: private; NULL
 * @comp_vector: a number of the device's, 1 to comp_vectors of struct ibchan_device_attr;
 *	0: the next one in turn, so that several cqs are not all served by one cpu
 * @moderation_count: how many completions make one event; with it @moderation_us; both 0:
 *	as the device does it by itself
 * @moderation_us: microseconds after which fewer completions make one, too
 */
struct ibchan_cq_init {
	u32 entries;
	u32 flags;
	const struct ibchan_sink *sink;
	void *priv;
	struct ibchan_budget *budget;
	u32 comp_vector;
	u16 moderation_count;
	u16 moderation_us;
};

struct ibchan_cq *__ibchan_cq_create(struct ibchan_device *dev, const struct ibchan_cq_init *init,
				     struct ibchan_reason *reason, struct lock_class_key *class);

/**
 * ibchan_cq_create - make a completion queue
 * @dev: where
 * @init: its properties; not needed afterwards, but for the sink
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: the queue; -EINVAL when the device cannot have so many entries, has no such
 * completion vector, for one half of a moderation, for a sink that takes completions which
 * are to be kept, or for both IBCHAN_CQ_POST_REAPS and IBCHAN_CQ_POLLED; -EOPNOTSUPP for an
 * unknown flag, or where the driver does not moderate events; -EDQUOT when the budget does
 * not allow it; -ENODEV when the device is gone; -ENOMEM; the driver's errno.
 */
#define ibchan_cq_create(dev, init, reason)					\
	({									\
		static struct lock_class_key __cq_class;			\
										\
		__ibchan_cq_create(dev, init, reason, &__cq_class);		\
	})

int ibchan_cq_try_destroy(struct ibchan_cq *cq);
bool ibchan_cq_tryget(struct ibchan_cq *cq);
void ibchan_cq_put(struct ibchan_cq *cq);

/* Completions that one call should retire, of whichever context, before others have a turn. */
#define IBCHAN_REAP_BUDGET	256

int ibchan_in_callback(void);
int ibchan_cq_reap(struct ibchan_cq *cq, int budget);
int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_completion *completions, int num);
void ibchan_cq_arm(struct ibchan_cq *cq);
int ibchan_cq_wait(struct ibchan_cq *cq, int (*ready)(void *arg), void *arg,
		   s64 timeout_ns);
void ibchan_cq_wake(struct ibchan_cq *cq);

#endif /* _RDMA_IBCHAN_CQ_H */
