// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trays: what many pages of plain memory are laid out in for one work: their list, the
 * table of their pieces, and the device's region that such a table is registered with.
 *
 * To allocate, clear and fill all that for one work is dearer than to pin the pages, so a
 * domain keeps a few idle ones. Such a tray holds no page: these are unpinned, the
 * table is not mapped, and the region is invalidated, so that its key is worth nothing. What
 * a soft device's keeps is where the pages lay. If the next work's lie in the same places,
 * which is looked at once they are pinned, then table and region are right as they are.
 *
 * A tray belongs to one region of ours (struct ibchan_mr) at a time, or to its domain.
 * @ib is with that region while it is in use; the gate guards it, as all of its kind.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "counters.h"
#include "footprint.h"
#include "internal.h"

/*
 * Fewer pages are laid out in memory that is allocated for them, which takes little, and
 * more, too, of which a domain would keep too much.
 */
#define MIN_PAGES	33
#define MAX_PAGES	1024

/* Trays that a domain keeps. */
#define MAX_IDLE	8

static void tray_free(struct ibchan_tray *tray)
{
	ibchan_cost_pay_back(&tray->cost);
	kvfree(tray->sgl);
	kvfree(tray->last);
	kvfree(tray->pages);
	kfree(tray);
}

static bool alloc_lists(struct ibchan_tray *tray)
{
	tray->pages = kvmalloc_array(tray->room, sizeof(*tray->pages), GFP_KERNEL_ACCOUNT);
	tray->last = kvcalloc(tray->room, sizeof(*tray->last), GFP_KERNEL_ACCOUNT);
	tray->sgl = kvmalloc_array(tray->room, sizeof(*tray->sgl), GFP_KERNEL_ACCOUNT);
	return tray->pages && tray->last && tray->sgl;
}

/* As much room as others of about that size need; the device takes no more than its limit. */
static struct ibchan_tray *tray_alloc(struct ibchan_pd *pd, u32 pages,
				      struct ibchan_reason *reason)
{
	u32 max = max(pd->dev->attr.max_fast_reg_pages, pages);
	struct ibchan_tray *tray = kzalloc(sizeof(*tray), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!tray)
		return ERR_PTR(-ENOMEM);
	tray->pd = pd;
	tray->room = min_t(u64, roundup_pow_of_two((u64)pages), max);
	ret = ibchan_cost_charge(&tray->cost, pd->cost.budget, ibchan_footprint_mr(tray->room),
				 reason);
	if (!ret && !alloc_lists(tray))
		ret = -ENOMEM;
	if (ret) {
		tray_free(tray);
		return ERR_PTR(ret);
	}
	mutex_lock(&pd->trays_lock);
	list_add(&tray->link, &pd->busy_trays);
	mutex_unlock(&pd->trays_lock);
	return tray;
}

/* A tray that held pages at @addr, or else the last used one, of the trays with the room. */
static struct ibchan_tray *find_idle(struct ibchan_pd *pd, u64 addr, u32 pages)
{
	struct ibchan_tray *tray, *found = NULL;

	list_for_each_entry(tray, &pd->idle_trays, link) {
		if (tray->room < pages)
			continue;
		if (tray->addr == addr)
			return tray;
		if (!found)
			found = tray;
	}
	return found;
}

static struct ibchan_tray *take_idle(struct ibchan_pd *pd, u64 addr, u32 pages)
{
	struct ibchan_tray *tray;

	mutex_lock(&pd->trays_lock);
	tray = find_idle(pd, addr, pages);
	if (tray) {
		list_move(&tray->link, &pd->busy_trays);
		pd->num_idle_trays--;
	}
	mutex_unlock(&pd->trays_lock);
	return tray;
}

/* The gate is held. The key is not valid, so only the driver cares about the memory. */
static void end_region(struct ibchan_tray *tray)
{
	struct ib_mr *ib = tray->ib;

	tray->ib = NULL;
	/* The driver of a device that was forgotten is not called. */
	if (!ib || !tray->pd->ib || ibchan_mr_end_region(ib))
		return;
	tray->pd->leaked = 1;
	ibchan_gauge(leaked, 1);
}

/* The tray is in a list until it has no region, so that removal finds the region. */
static void tray_end(struct ibchan_tray *tray)
{
	struct ibchan_pd *pd = tray->pd;

	ibchan_gate_enter_to_end(&pd->dev->gate);
	mutex_lock(&pd->trays_lock);
	list_del(&tray->link);
	mutex_unlock(&pd->trays_lock);
	end_region(tray);
	ibchan_gate_exit(&pd->dev->gate);
	tray_free(tray);
}

/* Makes it the domain's again; the one to end instead, or NULL. */
static struct ibchan_tray *keep(struct ibchan_tray *tray)
{
	struct ibchan_pd *pd = tray->pd;
	struct ibchan_tray *oldest = NULL;

	mutex_lock(&pd->trays_lock);
	if (pd->num_idle_trays == MAX_IDLE) {
		oldest = list_last_entry(&pd->idle_trays, struct ibchan_tray, link);
		list_move(&oldest->link, &pd->busy_trays);
	} else {
		pd->num_idle_trays++;
	}
	list_move(&tray->link, &pd->idle_trays);
	mutex_unlock(&pd->trays_lock);
	return oldest;
}

/**
 * ibchan_tray_get - a list for the pages of a range
 * @pinned: has @pages and @num of it afterwards, and the tray if one is worth it
 * @pd: where they are going to be registered; has users until ibchan_tray_put()
 * @range: what they are for
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -EDQUOT when the domain's budget does not allow it.
 */
int ibchan_tray_get(struct ibchan_pinned *pinned, struct ibchan_pd *pd,
		    const struct ibchan_user_range *range, struct ibchan_reason *reason)
{
	struct ibchan_tray *tray;

	pinned->num = ibchan_pages_spanned(range->addr, range->length);
	if (!range->transient || pinned->num < MIN_PAGES || pinned->num > MAX_PAGES) {
		pinned->pages = kvmalloc_array(pinned->num, sizeof(*pinned->pages),
					       GFP_KERNEL_ACCOUNT);
		return pinned->pages ? 0 : -ENOMEM;
	}
	tray = take_idle(pd, range->addr, pinned->num) ?: tray_alloc(pd, pinned->num, reason);
	if (IS_ERR(tray))
		return PTR_ERR(tray);
	pinned->tray = tray;
	pinned->pages = tray->pages;
	return 0;
}

/**
 * ibchan_tray_put - give the list of pages back
 * @pinned: unpinned, or never pinned; all zero afterwards
 *
 * Context: process, may sleep; without the gate.
 */
void ibchan_tray_put(struct ibchan_pinned *pinned)
{
	struct ibchan_tray *tray = pinned->tray;

	if (!tray)
		kvfree(pinned->pages);
	else
		tray = keep(tray);
	if (tray)
		tray_end(tray);
	*pinned = (struct ibchan_pinned) {};
}

/* An entry for each run of pages that lie side by side; returns the last. */
static struct scatterlist *fill_entries(struct scatterlist *sg, struct page **pages, u32 num)
{
	unsigned long pfn, next = page_to_pfn(*pages) + 1;
	struct page **end = pages + num;

	sg_set_page(sg, *pages, PAGE_SIZE, 0);
	while (++pages < end) {
		pfn = page_to_pfn(*pages);
		if (pfn == next)
			sg->length += PAGE_SIZE;
		else
			sg_set_page(++sg, *pages, PAGE_SIZE, 0);
		next = pfn + 1;
	}
	return sg;
}

/* No entry is the last. */
static void reset_table(struct ibchan_tray *tray)
{
	if (tray->state == IBCHAN_TRAY_EMPTY) {
		sg_init_table(tray->sgl, tray->room);
		tray->nents = tray->room;
	}
	sg_unmark_end(&tray->sgl[tray->nents - 1]);
}

/* The range begins in the first page and ends in the last. */
static void fill_table(struct ibchan_tray *tray, u32 num)
{
	u32 offset = offset_in_page(tray->addr);
	struct scatterlist *last;

	reset_table(tray);
	last = fill_entries(tray->sgl, tray->pages, num);
	tray->sgl->offset = offset;
	tray->sgl->length -= offset;
	last->length -= ((u64)num << PAGE_SHIFT) - offset - tray->length;
	tray->nents = last - tray->sgl + 1;
	sg_mark_end(last);
}

static bool lies_as_before(const struct ibchan_tray *tray, const struct ibchan_user_range *range,
			   u32 num)
{
	return tray->state != IBCHAN_TRAY_EMPTY && tray->length == range->length &&
	       offset_in_page(tray->addr) == offset_in_page(range->addr) &&
	       !memcmp(tray->pages, tray->last, num * sizeof(*tray->pages));
}

/**
 * ibchan_tray_fill - make a table of the pages
 * @pinned: with a tray
 * @range: what they are
 * @sgt: filled; stays the tray's
 *
 * Context: any.
 */
void ibchan_tray_fill(const struct ibchan_pinned *pinned, const struct ibchan_user_range *range,
		      struct sg_table *sgt)
{
	struct ibchan_tray *tray = pinned->tray;
	bool right = lies_as_before(tray, range, pinned->num);

	tray->addr = range->addr;
	tray->length = range->length;
	if (!right) {
		fill_table(tray, pinned->num);
		swap(tray->pages, tray->last);
		tray->state = IBCHAN_TRAY_FILLED;
	}
	*sgt = (struct sg_table) {
		.sgl = tray->sgl, .nents = tray->nents, .orig_nents = tray->nents,
	};
}

/**
 * ibchan_trays_end_regions - deregister what a domain keeps
 * @pd: the device still has it
 *
 * Context: process, may sleep; inside the gate, or it is closed.
 */
void ibchan_trays_end_regions(struct ibchan_pd *pd)
{
	struct ibchan_tray *tray;

	mutex_lock(&pd->trays_lock);
	list_for_each_entry(tray, &pd->idle_trays, link)
		end_region(tray);
	list_for_each_entry(tray, &pd->busy_trays, link)
		end_region(tray);
	mutex_unlock(&pd->trays_lock);
}

/**
 * ibchan_trays_free - the domain goes
 * @pd: nothing is in it, and its regions are deregistered
 *
 * Context: process, may sleep.
 */
void ibchan_trays_free(struct ibchan_pd *pd)
{
	struct ibchan_tray *tray, *next;

	list_for_each_entry_safe(tray, next, &pd->idle_trays, link)
		tray_free(tray);
}
