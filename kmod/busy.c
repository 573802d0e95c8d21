// SPDX-License-Identifier: GPL-2.0-only
/*
 * Busy ranges of a memory region: exclusive while the device may write, shared
 * while it only reads. Pure.
 *
 * Ranges in flight lie in two interval trees, those that are read and those that
 * are written. A range that will be written may touch none of either, one that
 * will be read none of the written ones, so the first hit decides.
 */
#include <linux/errno.h>
#include <linux/interval_tree_generic.h>
#include <linux/spinlock.h>

#include "internal.h"

#define RANGE_FIRST(sge)	((sge)->offset)
#define RANGE_LAST(sge)		((sge)->offset + (sge)->length - 1)

INTERVAL_TREE_DEFINE(struct ibchan_sge, node, u64, subtree_last, RANGE_FIRST, RANGE_LAST,
		     static inline, range)

/**
 * ibchan_busy_init - nothing of a region is in flight
 * @busy: of the region
 */
void ibchan_busy_init(struct ibchan_busy *busy)
{
	spin_lock_init(&busy->lock);
	busy->readers = RB_ROOT_CACHED;
	busy->writers = RB_ROOT_CACHED;
}

static struct ibchan_sge *find_conflict(struct ibchan_busy *busy,
					const struct ibchan_sge *sge, bool writes)
{
	struct ibchan_sge *hit = range_iter_first(&busy->writers, RANGE_FIRST(sge),
						  RANGE_LAST(sge));

	if (hit || !writes)
		return hit;
	return range_iter_first(&busy->readers, RANGE_FIRST(sge), RANGE_LAST(sge));
}

static struct rb_root_cached *tree_of(struct ibchan_busy *busy, bool writes)
{
	return writes ? &busy->writers : &busy->readers;
}

/**
 * ibchan_busy_take - claim a range for a work
 * @busy: of the region
 * @sge: the range, not empty, with its work; stays where it is until released
 * @writes: the device is going to write into it
 * @reason: which range is in the way, or NULL
 *
 * Context: bottom halves off.
 * Return: 0, or -EBUSY with nothing changed.
 */
int ibchan_busy_take(struct ibchan_busy *busy, struct ibchan_sge *sge, bool writes,
		     struct ibchan_reason *reason)
{
	const struct ibchan_sge *hit;
	int ret = 0;

	spin_lock(&busy->lock);
	hit = find_conflict(busy, sge, writes);
	if (hit)
		ret = ibchan_refuse_values(reason, IBCHAN_REASON_BUSY, -EBUSY,
					   (u64[3]) { hit->offset, hit->length,
						      hit->work->wr_id });
	else
		range_insert(sge, tree_of(busy, writes));
	spin_unlock(&busy->lock);
	return ret;
}

/**
 * ibchan_busy_release - the work of a range has ended
 * @busy: of the region
 * @sge: as it was taken
 * @writes: as it was taken
 *
 * Context: bottom halves off.
 */
void ibchan_busy_release(struct ibchan_busy *busy, struct ibchan_sge *sge, bool writes)
{
	spin_lock(&busy->lock);
	range_remove(sge, tree_of(busy, writes));
	spin_unlock(&busy->lock);
}
