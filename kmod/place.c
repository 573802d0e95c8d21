// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a region's pages are still where its owner registered them.
 *
 * A region is the pages that were pinned when it was made, whatever becomes of the
 * addresses. As long as these lead to the same pages, a few bytes that are to be sent can
 * be copied by the address, for less than a software device needs to find the region and its
 * page. The kernel tells before it takes pages away from addresses; from then on, for as
 * long as the region lives, the device does it. So does it where that is not known.
 *
 * A region is watched from before its pages are pinned, so that no change is missed; where
 * one is under way at that moment anywhere in the process, it counts as changed. One watcher
 * serves all regions that a process registers. Its lock is held for moments only, also by a
 * thread that changes mappings, and no thread waits for a change to end.
 */
#include <linux/err.h>
#include <linux/interval_tree.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "place.h"

#if IS_ENABLED(CONFIG_MMU_NOTIFIER)

/**
 * struct ibchan_watcher - what a process's regions are watched by
 * @notifier: tells of changes
 * @lock: guards the others, and where a region is found not to be in place
 * @ranges: of the regions, by address
 * @changes: under way
 */
struct ibchan_watcher {
	struct mmu_notifier notifier;
	spinlock_t lock;		/* all below */
	struct rb_root_cached ranges;
	unsigned int changes;
};

static struct ibchan_watcher *watcher_of(struct mmu_notifier *notifier)
{
	return container_of(notifier, struct ibchan_watcher, notifier);
}

/* These leave the pages where they are. */
static bool is_harmless(const struct mmu_notifier_range *range)
{
	return range->event == MMU_NOTIFY_PROTECTION_VMA ||
	       range->event == MMU_NOTIFY_PROTECTION_PAGE ||
	       range->event == MMU_NOTIFY_SOFT_DIRTY;
}

static void mark_changed(struct ibchan_watcher *watcher, const struct mmu_notifier_range *range)
{
	struct interval_tree_node *node;

	node = interval_tree_iter_first(&watcher->ranges, range->start, range->end - 1);
	for (; node; node = interval_tree_iter_next(node, range->start, range->end - 1))
		WRITE_ONCE(container_of(node, struct ibchan_mr, range)->in_place, NULL);
	/* Pairs with ibchan_place_copy(): seen before what comes in their place is. */
	smp_mb();
}

static int change_begins(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct ibchan_watcher *watcher = watcher_of(notifier);

	if (is_harmless(range))
		return 0;
	spin_lock(&watcher->lock);
	watcher->changes++;
	mark_changed(watcher, range);
	spin_unlock(&watcher->lock);
	return 0;
}

static void change_ends(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct ibchan_watcher *watcher = watcher_of(notifier);

	if (is_harmless(range))
		return;
	spin_lock(&watcher->lock);
	watcher->changes--;
	spin_unlock(&watcher->lock);
}

static struct mmu_notifier *watcher_alloc(struct mm_struct *mm)
{
	struct ibchan_watcher *watcher = kzalloc(sizeof(*watcher), GFP_KERNEL_ACCOUNT);

	if (!watcher)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&watcher->lock);
	watcher->ranges = RB_ROOT_CACHED;
	return &watcher->notifier;
}

static void watcher_free(struct mmu_notifier *notifier)
{
	kfree(watcher_of(notifier));
}

static const struct mmu_notifier_ops watcher_ops = {
	.invalidate_range_start = change_begins,
	.invalidate_range_end = change_ends,
	.alloc_notifier = watcher_alloc,
	.free_notifier = watcher_free,
};

/* The domain's; that of the process which registers there first. NULL: there is none. */
static struct ibchan_watcher *get_watcher(struct ibchan_pd *pd)
{
	struct ibchan_watcher *watcher = READ_ONCE(pd->watcher);
	struct mmu_notifier *notifier;

	if (watcher)
		return watcher;
	notifier = mmu_notifier_get(&watcher_ops, current->mm);
	if (IS_ERR(notifier))
		return NULL;
	watcher = cmpxchg(&pd->watcher, NULL, watcher_of(notifier));
	if (!watcher)
		return watcher_of(notifier);
	mmu_notifier_put(notifier);
	return watcher;
}

/**
 * ibchan_place_watch - from now on look where a region's pages are
 * @mr: of the caller's memory; its pages are going to be pinned next
 *
 * What cannot be watched counts as changed.
 *
 * Context: process, may sleep; without the gate; current->mm is the memory's.
 */
void ibchan_place_watch(struct ibchan_mr *mr)
{
	struct ibchan_watcher *watcher = get_watcher(mr->pd);
	/* Changes speak of addresses without tags. */
	u64 start = untagged_addr(PAGE_ALIGN_DOWN(mr->addr));

	if (!watcher || watcher->notifier.mm != current->mm)
		return;
	mr->range.start = start;
	mr->range.last = start + (mr->pages << PAGE_SHIFT) - 1;
	spin_lock(&watcher->lock);
	if (!watcher->changes)
		WRITE_ONCE(mr->in_place, current->mm);
	interval_tree_insert(&mr->range, &watcher->ranges);
	spin_unlock(&watcher->lock);
	mr->is_watched = 1;
}

/**
 * ibchan_place_leave - look no more
 * @mr: the region; no work uses it
 *
 * Context: process.
 */
void ibchan_place_leave(struct ibchan_mr *mr)
{
	struct ibchan_watcher *watcher = mr->pd->watcher;

	if (!mr->is_watched)
		return;
	spin_lock(&watcher->lock);
	interval_tree_remove(&mr->range, &watcher->ranges);
	WRITE_ONCE(mr->in_place, NULL);
	spin_unlock(&watcher->lock);
	mr->is_watched = 0;
}

/* Nothing is registered in the domain any more. It does not wait. */
void ibchan_place_end(struct ibchan_pd *pd)
{
	if (pd->watcher)
		mmu_notifier_put(&pd->watcher->notifier);
}

/* The domain is going to stay for ever, and so has the code that its watcher calls. */
void ibchan_place_keep(struct ibchan_pd *pd)
{
	if (pd->watcher)
		__module_get(THIS_MODULE);
}

#endif /* CONFIG_MMU_NOTIFIER */
