// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast-registration regions that a domain keeps for plain memory. To have the device make one
 * is dear (hardware takes a command to its firmware), while a work on plain memory needs one
 * only until it has ended. An idle region is invalidated, so its key is worth nothing, and
 * names no page that is still pinned.
 *
 * All regions of a pool have room for the same number of pages, so any of them fits. A work
 * with few pages, or with more than that, has a region of its own.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "counters.h"
#include "fault.h"
#include "footprint.h"
#include "internal.h"

/* What has fewer pages has a region of its own, which is small. */
#define MIN_PAGES	33

/* Pages of 4 MiB: at most what a domain keeps in one region. */
#define POOL_PAGES	1024

/* Regions that a domain keeps. */
#define MAX_IDLE	8

static u32 room(const struct ibchan_device *dev)
{
	return min_t(u32, dev->attr.max_fast_reg_pages, POOL_PAGES);
}

/* Whether the device is done with the pages of such a region once that is invalidated. */
static bool can_return(const struct ibchan_mr *mr)
{
	return mr->access & IBCHAN_ACCESS_LOCAL_WRITE ||
	       !ibchan_device_has(mr->pd->dev, IBCHAN_QUIRK_READS_ON);
}

static bool is_for_pool(const struct ibchan_mr *mr)
{
	return mr->transient && mr->pages >= MIN_PAGES && mr->pages <= room(mr->pd->dev) &&
	       can_return(mr);
}

static struct ibchan_pooled *take_idle(struct ibchan_pd *pd)
{
	struct ibchan_pooled *pooled;

	spin_lock(&pd->pool_lock);
	pooled = list_first_entry_or_null(&pd->pool, struct ibchan_pooled, link);
	if (pooled) {
		list_del(&pooled->link);
		pd->num_pool--;
	}
	spin_unlock(&pd->pool_lock);
	/* While it is in use, the region that has it pays. */
	if (pooled)
		ibchan_cost_pay_back(&pooled->cost);
	return pooled;
}

static bool keep_idle(struct ibchan_pd *pd, struct ibchan_pooled *pooled)
{
	bool kept = false;

	if (ibchan_cost_charge(&pooled->cost, pd->cost.budget,
			       ibchan_footprint_region(room(pd->dev)), NULL))
		return false;
	spin_lock(&pd->pool_lock);
	if (pd->num_pool < MAX_IDLE) {
		list_add(&pooled->link, &pd->pool);
		pd->num_pool++;
		kept = true;
	}
	spin_unlock(&pd->pool_lock);
	if (!kept)
		ibchan_cost_pay_back(&pooled->cost);
	return kept;
}

/**
 * ibchan_pool_get - a region of the device's, idle or new
 * @mr: for which; has it on success, in @mr->ib
 *
 * Context: process, may sleep; inside the gate.
 * Return: 0; -ENOMEM; the driver's errno.
 */
int ibchan_pool_get(struct ibchan_mr *mr)
{
	struct ibchan_pd *pd = mr->pd;
	struct ibchan_pooled *pooled = NULL;
	u32 pages = mr->pages;
	struct ib_mr *ib;

	if (is_for_pool(mr)) {
		pages = room(pd->dev);
		pooled = take_idle(pd) ?: kzalloc(sizeof(*pooled), GFP_KERNEL_ACCOUNT);
		if (!pooled)
			return -ENOMEM;
	}
	ib = pooled ? xchg(&pooled->ib, NULL) : NULL;
	if (!ib)
		ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_ALLOC) ?:
		     ib_alloc_mr(pd->ib, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(ib)) {
		kfree(pooled);
		return PTR_ERR(ib);
	}
	mr->pooled = pooled;
	mr->ib = ib;
	return 0;
}

/**
 * ibchan_pool_put - a region of ours is done with the device's
 * @mr: where its place in the pool takes @mr->ib back, that is NULL afterwards
 * @is_idle: the device has invalidated it, and no work of it has failed
 *
 * Context: process; inside the gate, unless @is_idle is false.
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
	kfree(pooled);
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
		ibchan_cost_pay_back(&pooled->cost);
		kfree(pooled);
	}
	INIT_LIST_HEAD(&pd->pool);
	pd->num_pool = 0;
}
