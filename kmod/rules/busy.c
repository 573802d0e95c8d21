// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the busy ranges of a memory region: exclusive while the device may write, shared while it
 * only reads. Ends a region without users, which busy.h counts. Pure.
 *
 * Ranges in flight lie in two interval trees: one of ranges that are read, one of ranges that are
 * written. A range that will be written may touch none of either, one that will be read none of the
 * written ones, so the first hit decides.
 *
 * Only a writer needs the ranges that are read in order. Until one comes, busy.h keeps a few of
 * them in a list: most have ended by then.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/interval_tree_generic.h>

#include "rules.h"

#define RANGE_FIRST(range)	((range)->offset)
/* No range is empty. */
#define RANGE_LAST(range)	((range)->offset + (range)->length - 1)

INTERVAL_TREE_DEFINE(struct ibchan_range, node, u64, subtree_last, RANGE_FIRST, RANGE_LAST,
		     static inline, range)

void ibchan_busy_init(struct ibchan_busy *busy)
{
	spin_lock_init(&busy->lock);
	busy->room = IBCHAN_BUSY_MAX_LISTED;
	INIT_HLIST_HEAD(&busy->listed);
	busy->readers = RB_ROOT_CACHED;
	busy->writers = RB_ROOT_CACHED;
}

static void sort(struct ibchan_busy *busy, struct ibchan_range *range, bool writes)
{
	range->listed = false;
	range->writes = writes;
	range_insert(range, writes ? &busy->writers : &busy->readers);
}

static void sort_listed(struct ibchan_busy *busy)
{
	struct ibchan_range *range;

	while (!hlist_empty(&busy->listed)) {
		range = hlist_entry(busy->listed.first, struct ibchan_range, link);
		__hlist_del(&range->link);
		busy->room++;
		sort(busy, range, false);
	}
}

/* ibchan_busy_take() of a range that is not listed. Under the lock. */
int ibchan_busy_take_sorted(struct ibchan_busy *busy, struct ibchan_range *range,
			    bool writes, struct ibchan_reason *reason)
{
	const struct ibchan_range *hit;

	if (writes)
		sort_listed(busy);
	hit = range_iter_first(&busy->writers, RANGE_FIRST(range), RANGE_LAST(range));
	if (!hit && writes)
		hit = range_iter_first(&busy->readers, RANGE_FIRST(range), RANGE_LAST(range));
	if (hit)
		return ibchan_refuse_values(reason, IBCHAN_REASON_BUSY, -EBUSY,
					    (u64[3]) { hit->offset, hit->length,
						       hit->wr_id });
	if (writes)
		busy->room = 0;
	sort(busy, range, writes);
	return 0;
}

/* Under the lock. */
void ibchan_busy_release_sorted(struct ibchan_busy *busy, struct ibchan_range *range)
{
	range_remove(range, range->writes ? &busy->writers : &busy->readers);
	if (range->writes && RB_EMPTY_ROOT(&busy->writers.rb_root))
		busy->room = IBCHAN_BUSY_MAX_LISTED;
}

/* ibchan_users_get() of an object that has ended. Returns false. */
bool ibchan_users_refuse(struct ibchan_users *users)
{
	atomic_dec(&users->others);
	return false;
}

/*
 * ibchan_users_put() that found no other user. Of two callers that see that one after the other, as
 * another one became a user in between, one ends the object.
 */
bool ibchan_users_end(struct ibchan_users *users)
{
	int others = -1;

	if (likely(atomic_try_cmpxchg(&users->others, &others, IBCHAN_USERS_ENDED)))
		return true;
	/* One that is no user gives back what it does not have. */
	WARN_ON_ONCE(others < IBCHAN_USERS_ENDED);
	return false;
}
