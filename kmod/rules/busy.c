// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the busy ranges of a memory region: exclusive while the device may write, shared while it
 * only reads. Ends a region without users, which busy.h counts. Pure.
 *
 * Ranges in flight lie in two interval trees: one of ranges that are read, one of ranges that are
 * written. A range that will be written may touch none of either, one that will be read none of the
 * written ones, so the first hit decides.
 *
 * Only a writer needs the ranges that are read in order. Until one comes, a few of them wait in a
 * list: most have ended by then. A range that is written stays out of its tree while it is the only
 * one; ranges that are read beside it may be in the list. busy.h sees to both.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/interval_tree_generic.h>

#include "rules.h"

/* The last byte of a range that is not empty. */
static u64 last_of(const struct ibchan_range *range)
{
	return range->offset + range->length - 1;
}

#define RANGE_FIRST(range)	((range)->offset)
#define RANGE_LAST(range)	last_of(range)

INTERVAL_TREE_DEFINE(struct ibchan_range, node, u64, subtree_last, RANGE_FIRST, RANGE_LAST,
		     static inline, range)

void ibchan_busy_init(struct ibchan_busy *busy)
{
	spin_lock_init(&busy->lock);
	busy->num_listed = 0;
	INIT_HLIST_HEAD(&busy->listed);
	busy->lone = NULL;
	busy->readers = RB_ROOT_CACHED;
	busy->writers = RB_ROOT_CACHED;
}

static struct rb_root_cached *tree_of(struct ibchan_busy *busy, bool writes)
{
	return writes ? &busy->writers : &busy->readers;
}

static void sort(struct ibchan_busy *busy, struct ibchan_range *range)
{
	range->listed = false;
	if (range->writes)
		busy->num_listed |= IBCHAN_BUSY_WRITERS;
	range_insert(range, tree_of(busy, range->writes));
}

/* Moves the lone writer into its tree, and for a new writer the listed readers into theirs. */
static void sort_others(struct ibchan_busy *busy, bool writes)
{
	struct ibchan_range *other = busy->lone;

	if (other) {
		ibchan_busy_forget_lone(busy);
		sort(busy, other);
	}
	while (writes && !hlist_empty(&busy->listed)) {
		other = hlist_entry(busy->listed.first, struct ibchan_range, link);
		__hlist_del(&other->link);
		busy->num_listed--;
		sort(busy, other);
	}
}

/* A range that is read, beside one that is written. */
bool ibchan_busy_can_list_beside(const struct ibchan_busy *busy, const struct ibchan_range *range)
{
	const struct ibchan_range *lone = busy->lone;

	return lone && (lone->offset > last_of(range) ||
			range->offset > last_of(lone)) &&
	       (busy->num_listed & ~IBCHAN_BUSY_LONE) < IBCHAN_BUSY_MAX_LISTED;
}

/* ibchan_busy_take() of a range that has to be compared with others. Under the lock. */
int ibchan_busy_take_sorted(struct ibchan_busy *busy, struct ibchan_range *range,
			    struct ibchan_reason *reason)
{
	bool writes = range->writes;
	const struct ibchan_range *hit;

	sort_others(busy, writes);
	hit = range_iter_first(&busy->writers, RANGE_FIRST(range), RANGE_LAST(range));
	if (!hit && writes)
		hit = range_iter_first(&busy->readers, RANGE_FIRST(range), RANGE_LAST(range));
	if (hit)
		return ibchan_refuse_values(reason, IBCHAN_REASON_BUSY, -EBUSY,
					    (u64[3]) { hit->offset, hit->length,
						       hit->wr_id });
	sort(busy, range);
	return 0;
}

/* Under the lock. */
void ibchan_busy_release_sorted(struct ibchan_busy *busy, struct ibchan_range *range)
{
	range_remove(range, tree_of(busy, range->writes));
	if (RB_EMPTY_ROOT(&busy->writers.rb_root))
		busy->num_listed &= ~IBCHAN_BUSY_WRITERS;
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
