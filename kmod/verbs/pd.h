/* SPDX-License-Identifier: GPL-2.0-only */
/* Protection domains: see pd.c. */
#ifndef IBCHAN_PD_H
#define IBCHAN_PD_H

#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "device.h"
#include "only.h"

/* The worker that ends regions of one kind of memory */
struct ibchan_release {
	/* regions that their owners have given up and no work uses, to be deregistered */
	__verbs_only struct llist_head given_up;
	__verbs_only atomic_t num_given_up;	/* how many there ever were */
	__verbs_only int num_released;	/* how many of them are deregistered; written by @work */
	__verbs_only struct work_struct work;	/* does that */
};

/* A fast-registration region that a domain keeps, see mr.c */
struct ibchan_idle {
	__verbs_only struct ib_mr *ib;	/* invalidated */
	__verbs_only struct ibchan_cost cost;	/* of kernel memory */
};

/* Protection domain */
struct ibchan_pd {
	__verbs_only struct ib_pd *ib;	/* NULL once the device is gone; guarded by the gate */
	struct ibchan_device *dev;	/* holds a reference */
	__verbs_only refcount_t users;	/* 1 for the owner, 1 for each mr and channel */
	/*
	 * 1 for the owner, 1 for each registration that is being taken back; the domain goes with
	 * the last of them
	 */
	__verbs_only refcount_t keepers;
	__verbs_only struct list_head link;	/* in @dev->pds */
	/* its own; objects that are made in it are charged to the same budget */
	struct ibchan_cost cost;
	struct mutex service_lock;	/* guards @service; outside the gate */
	/* the channel that registers where no driver does; NULL until it is needed */
	struct ibchan_channel *service;
	/* gives @service back; false when its device does not let go of it */
	bool (*service_end)(struct ibchan_channel *service);
	__verbs_only int leaked;	/* the device may still use something in it, so it stays */
	__verbs_only spinlock_t pool_lock;	/* guards @pool and @num_idle */
	/* fast-registration regions for plain memory, the last one is taken first */
	__verbs_only struct ibchan_idle pool[8];
	__verbs_only u32 num_idle;	/* entries of @pool that are in use */
	__verbs_only spinlock_t keys_lock;	/* guards @keys */
	__verbs_only struct rb_root keys;	/* regions by the device's keys to them */
	/* workers that end given up regions: of the kernel's memory, and of foreign memory */
	__verbs_only struct ibchan_release release[2];
	/* the memory outlives readers that found it in a handle table */
	__verbs_only struct rcu_head rcu;
};

void ibchan_pd_hold(struct ibchan_pd *pd);

#endif /* IBCHAN_PD_H */
