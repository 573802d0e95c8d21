/* SPDX-License-Identifier: GPL-2.0-only */
/* A memory region, and what ends the use of it. */
#ifndef IBCHAN_MR_H
#define IBCHAN_MR_H

#include <linux/dma-direction.h>
#include <linux/llist.h>
#include <linux/rbtree.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>

#include "only.h"
#include "pd.h"
#include "pin.h"

/* Where a region's memory comes from */
struct ibchan_backing {
	/* nothing uses the region any more; process context, without the gate */
	void (*release)(struct ibchan_backing *backing);
};

/*
 * Memory region.
 *
 * All but @ib, what @extent allows, @users, @busy, @sgt, @pinned, @parked, @shell, @released,
 * @leaked, @gone, @gone_priv, @key_node and the links are immutable.
 */
struct ibchan_mr {
	/* NULL once deregistered, or where the domain's own key serves; guarded by the gate */
	struct ib_mr *ib;
	struct ibchan_extent extent;	/* what may be done with it; its domain holds a reference */
	/* the owner, each element of a work in flight, a channel that has it parked */
	struct ibchan_users users;
	u64 addr; /* that the device knows the first byte by, where it is in one segment */

	__verbs_only u64 pages;	/* pages that it keeps pinned, or mapped */
	u32 lkey;	/* never leaves the kernel */
	u32 rkey;	/* 0 unless remote access was asked for */
	u32 key; /* of one that the service registers, as it was made; 0: the service does not */
	/* by which its domain knows it, in @key_node; 0: it does not */
	__verbs_only u32 device_key;
	/* of its domain's regions; set while the region is published */
	__verbs_only struct rb_node key_node;
	bool foreign;	/* the memory is a user's, or of a dma-buf: others may hold up its end */
	int transient;	/* for one work only, which may leave it parked */
	/* its work has failed and left it to the channel; set while the region is in use */
	__verbs_only int parked;
	/* ibchan_mr_try_dereg() has ended it, and ibchan_mr_put() is to come */
	__verbs_only int shell;
	/* pages that @ib has room for, where it is to be of the pool; else 0 or @pages */
	__verbs_only u64 room;
	__verbs_only struct ibchan_pinned pinned;	/* user pages that go with it */
	struct ibchan_busy busy;	/* ranges in flight */
	u32 num_segments;	/* parts that are contiguous for the device */
	struct ibchan_segment *segments;	/* NULL where there is one only */
	__verbs_only struct sg_table sgt;	/* memory as we have mapped it */
	__verbs_only enum dma_data_direction direction;	/* of the mapping */
	__verbs_only int released;	/* the verbs object is gone */
	__verbs_only int leaked;	/* the device may still use the memory; never taken back */
	/*
	 * to be released with the region; NULL where another object keeps the memory; set by the
	 * code that made the region
	 */
	struct ibchan_backing *backing;
	/*
	 * takes its registration back; called without the gate; may be NULL; false: the device's
	 * region is as it was
	 */
	bool (*invalidate)(struct ibchan_mr *mr);
	__verbs_only void (*gone)(void *priv);	/* its owner's, who has given it up */
	__verbs_only void *gone_priv;	/* for @gone */
	__verbs_only struct ibchan_cost cost;	/* of kernel memory */
	__verbs_only struct list_head link;	/* in the device's list */
	/* in the domain's list of given-up regions, or in a channel's of parked ones */
	__verbs_only struct llist_node free_link;
	/* the memory outlives readers that found it in a handle table */
	__verbs_only struct rcu_head rcu;
};

/* mr.c */
struct ibchan_mr *ibchan_mr_reg_driver(struct ibchan_pd *pd,
				       const struct ibchan_user_range *range,
				       struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_map_pinned(struct ibchan_pd *pd, struct ibchan_pinned *pinned,
				       const struct ibchan_user_range *range,
				       struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_map(struct ibchan_pd *pd, struct sg_table *sgt, u32 access,
				struct ibchan_reason *reason);

/* mr_end.c */
void ibchan_mr_park(struct ibchan_mr *mr, struct llist_head *parked);
void ibchan_mr_unpark(struct llist_head *parked);
void ibchan_mr_last_drop(struct ibchan_mr *mr);

/* pd.c */
void ibchan_key_invalidated(struct ibchan_pd *pd, u32 key);

/* The service registers it, and takes that back. */
static inline bool ibchan_mr_is_contiguous(const struct ibchan_mr *mr)
{
	return mr->key;
}

/* A work is done with the region. Any context, under RCU. */
static inline void ibchan_mr_drop(struct ibchan_mr *mr)
{
	if (ibchan_users_put(&mr->users))
		ibchan_mr_last_drop(mr);
}

/* A scatterlist that a work moves */
struct ibchan_sg_range {
	struct scatterlist *sgl;	/* the list */
	u32 entries;	/* of it */
	enum dma_data_direction direction;	/* as the device sees it */
};

int ibchan_mr_map_list(struct ibchan_pd *pd, const struct ibchan_sg_range *list,
		       struct ib_sge *out);
void ibchan_mr_unmap_list(struct ibchan_pd *pd, const struct ibchan_sg_range *list);

#endif /* IBCHAN_MR_H */
