// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast-registration regions that a domain keeps for plain memory. To allocate one is expensive
 * (hardware takes a command to its firmware), and a work on plain memory needs one only until it
 * has ended. An idle region is invalidated: its key is not valid, and it refers to no pinned page.
 *
 * All regions of a pool have room for the same number of pages, so any of them fits. A work with
 * few pages, or with more than that, has a region of its own.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "compat.h"
#include "counters.h"
#include "fault.h"
#include "verbs.h"

/* A range of fewer pages has a region of its own, which is small. */
#define MIN_PAGES	33

/* Pages of 4 MiB: at most what a domain keeps in one region. */
#define POOL_PAGES	1024

/* Regions that a domain keeps. */
#define MAX_IDLE	8

static u32 pool_pages(const struct ibchan_device *dev)
{
	return min_t(u32, dev->attr.max_fast_reg_pages, POOL_PAGES);
}

/*
 * For how many pages a region of the device's has room: more than @pages if it is of the pool. One
 * that cannot return is not: the device may not be done with the pages of a region that was
 * invalidated.
 */
u64 ibchan_pool_room(const struct ibchan_device *dev, const struct ibchan_user_range *range,
		     u64 pages)
{
	bool can_return = range->access & IBCHAN_ACCESS_LOCAL_WRITE ||
			  !ibchan_device_has(dev, IBCHAN_QUIRK_READS_ON);

	if (!range->transient || pages < MIN_PAGES || pages > pool_pages(dev) || !can_return)
		return pages;
	return pool_pages(dev);
}

static struct ibchan_pooled *take_idle(struct ibchan_pd *pd)
{
	struct ibchan_pooled *pooled;

	guard(spinlock)(&pd->pool_lock);
	pooled = list_first_entry_or_null(&pd->pool, struct ibchan_pooled, link);
	if (pooled) {
		list_del(&pooled->link);
		pd->num_pool--;
	}
	return pooled;
}

/* The device's part of what @mr was charged is the idle region's from now on. */
static bool keep_idle(struct ibchan_mr *mr, struct ibchan_pooled *pooled)
{
	struct ibchan_pd *pd = mr->extent.pd;

	guard(spinlock)(&pd->pool_lock);
	if (pd->num_pool == MAX_IDLE)
		return false;
	pd->num_pool++;
	pooled->ib = mr->ib;
	ibchan_cost_move(&mr->cost, &pooled->cost, ibchan_footprint_mr(0, mr->room));
	list_add(&pooled->link, &pd->pool);
	return true;
}

/* Gives @mr a region of the device's, idle or new, inside the gate. */
int ibchan_pool_get(struct ibchan_mr *mr)
{
	struct ibchan_pooled *pooled = NULL;
	u64 room = max(mr->room, mr->pages);
	struct ibchan_pd *pd = mr->extent.pd;
	struct ib_mr *ib;

	if (mr->room > mr->pages) {
		pooled = take_idle(pd) ?: kzalloc(sizeof(*pooled), GFP_KERNEL_ACCOUNT);
		if (!pooled)
			return -ENOMEM;
	}
	ib = pooled ? xchg(&pooled->ib, NULL) : NULL;
	if (!ib)
		ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_ALLOC) ?:
		     ib_alloc_mr(pd->ib, IB_MR_TYPE_MEM_REG, room);
	if (IS_ERR(ib)) {
		kfree(pooled);
		return PTR_ERR(ib);
	}
	/* @mr was charged for it. */
	if (pooled)
		ibchan_cost_pay_back(&pooled->cost);
	mr->pooled = pooled;
	mr->ib = ib;
	return 0;
}

/*
 * A region of ours is done with the device's. @is_idle: the device has invalidated it, and no work
 * of it has failed; the caller is then inside the gate.
 */
void ibchan_pool_put(struct ibchan_mr *mr, bool is_idle)
{
	struct ibchan_pooled *pooled = xchg(&mr->pooled, NULL);

	if (!pooled)
		return;
	if (is_idle && mr->ib && keep_idle(mr, pooled))
		mr->ib = NULL;
	else
		kfree(pooled);
}

/* Deregisters what a domain keeps. The gate is held or closed. */
void ibchan_pool_end(struct ibchan_pd *pd)
{
	struct ibchan_pooled *pooled, *next;

	list_for_each_entry_safe(pooled, next, &pd->pool, link) {
		/* The driver of a device that was forgotten is not called. */
		if (pd->ib)
			ibchan_mr_end_region(pd, pooled->ib);
		ibchan_cost_pay_back(&pooled->cost);
		kfree(pooled);
	}
	INIT_LIST_HEAD(&pd->pool);
	pd->num_pool = 0;
}
