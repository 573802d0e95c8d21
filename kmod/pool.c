// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast-registration regions that a domain keeps for plain memory. To have the device make one
 * is dear (hardware takes a command to its firmware), while a work on plain memory needs one
 * only until it has ended. An idle region is invalidated, so its key is worth nothing, and
 * names no page that is still pinned.
 *
 * All regions of a pool have room for the same number of pages, so any of them fits. A work
 * with more pages has a region of its own.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "counters.h"
#include "fault.h"
#include "footprint.h"
#include "internal.h"

/* Pages of 4 MiB: at most what a domain keeps in one region. */
#define POOL_PAGES	1024

/* Regions that a domain keeps. */
#define MAX_IDLE	8

static u32 room(const struct ibchan_device *dev)
{
	return min_t(u32, dev->attr.max_fast_reg_pages, POOL_PAGES);
}

static void pooled_free(struct ibchan_pooled *pooled)
{
	ibchan_cost_pay_back(&pooled->cost);
	kfree(pooled);
}

static struct ibchan_pooled *pooled_make(struct ibchan_pd *pd, struct ibchan_reason *reason)
{
	struct ibchan_pooled *pooled = kzalloc(sizeof(*pooled), GFP_KERNEL_ACCOUNT);
	u32 pages = room(pd->dev);
	int ret;

	if (!pooled)
		return ERR_PTR(-ENOMEM);
	ret = ibchan_cost_charge(&pooled->cost, pd->cost.budget, ibchan_footprint_mr(pages),
				 reason);
	if (!ret) {
		pooled->ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_ALLOC) ?:
			     ib_alloc_mr(pd->ib, IB_MR_TYPE_MEM_REG, pages);
		ret = PTR_ERR_OR_ZERO(pooled->ib);
	}
	if (!ret)
		return pooled;
	pooled_free(pooled);
	return ERR_PTR(ret);
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

static bool keep_idle(struct ibchan_pd *pd, struct ibchan_pooled *pooled)
{
	guard(spinlock)(&pd->pool_lock);
	if (pd->num_pool == MAX_IDLE)
		return false;
	list_add(&pooled->link, &pd->pool);
	pd->num_pool++;
	return true;
}

/**
 * ibchan_pool_get - a region of the device's for the pages of one work
 * @mr: has it on success, in @mr->ib
 * @reason: why not, or NULL
 *
 * Context: process, may sleep; inside the gate.
 * Return: 0; -ENOMEM; -EDQUOT when the domain's budget does not allow it; the driver's errno.
 */
int ibchan_pool_get(struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	struct ibchan_pd *pd = mr->pd;
	struct ibchan_pooled *pooled;
	struct ib_mr *ib;

	if (!mr->transient || mr->pages > room(pd->dev)) {
		ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_ALLOC) ?:
		     ib_alloc_mr(pd->ib, IB_MR_TYPE_MEM_REG, mr->pages);
		if (IS_ERR(ib))
			return PTR_ERR(ib);
		mr->ib = ib;
		return 0;
	}
	pooled = take_idle(pd) ?: pooled_make(pd, reason);
	if (IS_ERR(pooled))
		return PTR_ERR(pooled);
	mr->pooled = pooled;
	mr->ib = xchg(&pooled->ib, NULL);
	return 0;
}

/**
 * ibchan_pool_put - a region of ours is done with the device's
 * @mr: if its place in the pool takes @mr->ib back, that is NULL afterwards
 * @is_idle: the device has invalidated it and is done with its pages
 *
 * Context: process; inside the gate, or @mr has no @ib.
 */
void ibchan_pool_put(struct ibchan_mr *mr, bool is_idle)
{
	struct ibchan_pooled *pooled = xchg(&mr->pooled, NULL);

	if (!pooled)
		return;
	if (is_idle && mr->ib) {
		pooled->ib = mr->ib;
		if (keep_idle(mr->pd, pooled)) {
			mr->ib = NULL;
			return;
		}
	}
	pooled_free(pooled);
}

/**
 * ibchan_pool_end - deregister what a domain keeps
 * @pd: gets no region back any more
 *
 * Context: process, may sleep; inside the gate, or it is closed.
 */
void ibchan_pool_end(struct ibchan_pd *pd)
{
	struct ibchan_pooled *pooled, *next;

	list_for_each_entry_safe(pooled, next, &pd->pool, link) {
		/* The driver of a device that was forgotten is not called. */
		if (pd->ib && !ibchan_mr_end_region(pooled->ib)) {
			pd->leaked = 1;
			ibchan_gauge(leaked, 1);
		}
		pooled_free(pooled);
	}
	INIT_LIST_HEAD(&pd->pool);
	pd->num_pool = 0;
}
