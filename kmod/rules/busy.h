/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Works in flight are users of their regions, and keep ranges of them busy. See busy.c; functions
 * of each post and each completion are inline.
 */
#ifndef IBCHAN_BUSY_H
#define IBCHAN_BUSY_H

#include <linux/atomic.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <rdma/ibchan.h>

/*
 * Users of an object that others find under RCU. To count one more or one less is one locked
 * instruction, as with <linux/rcuref.h>, which not all kernels have, and which cannot end an object
 * of one user.
 *
 * A negative count is that of an object without users, which busy.c ends. A caller may still become
 * a user before busy.c has; behind that the count is far below zero, and stays there.
 */

/* A count of an object that has ended. As many threads as there can be do not lift it to 0. */
#define IBCHAN_USERS_ENDED	(INT_MIN / 2)

/* Users of an object */
struct ibchan_users {
	atomic_t others;	/* all but one */
};

bool ibchan_users_refuse(struct ibchan_users *users);
bool ibchan_users_end(struct ibchan_users *users);

/* The caller is the only user. */
static inline void ibchan_users_init(struct ibchan_users *users)
{
	atomic_set(&users->others, 0);
}

/* How many there are. */
static inline u32 ibchan_users_count(const struct ibchan_users *users)
{
	return max(atomic_read(&users->others), -1) + 1;
}

/* Makes the caller a user; false: the object has ended. Under RCU, or for a user. Any context. */
static inline bool ibchan_users_get(struct ibchan_users *users)
{
	return likely(!atomic_add_negative(1, &users->others)) || ibchan_users_refuse(users);
}

/*
 * The caller is no user any more; true: it was the last one, and the object has ended. Under RCU.
 * Any context.
 */
static inline bool ibchan_users_put(struct ibchan_users *users)
{
	return unlikely(atomic_add_negative(-1, &users->others)) && ibchan_users_end(users);
}

/* Ends the object if the caller is its only user. Any context. */
static inline bool ibchan_users_put_if_one(struct ibchan_users *users)
{
	return atomic_cmpxchg(&users->others, 0, IBCHAN_USERS_ENDED) == 0;
}

/* A range of a region that a work in flight keeps others out of */
struct ibchan_range {
	u64 offset;	/* from its first byte */
	u32 length;	/* bytes, 1 and up */
	bool listed;	/* in the list of its region's ranges */
	bool writes;	/* in the tree of those that the device writes */
	u64 subtree_last;	/* of the tree */
	union {
		struct rb_node node;	/* in a tree */
		struct hlist_node link;	/* in the list */
	};
	u64 wr_id;	/* of the work */
};

/* Ranges of a region that are in flight */
struct ibchan_busy {
	spinlock_t lock;	/* guards all of it */
	u32 room;	/* how many more ranges may be listed; none while one is written */
	/* the youngest of the ranges that the device reads, in no order */
	struct hlist_head listed;
	struct rb_root_cached readers;	/* the others that it reads */
	struct rb_root_cached writers;	/* ranges that the device writes */
};

/* As many ranges as a writer may have to sort under the lock, with bottom halves off. */
#define IBCHAN_BUSY_MAX_LISTED	64

void ibchan_busy_init(struct ibchan_busy *busy);
int ibchan_busy_take_sorted(struct ibchan_busy *busy, struct ibchan_range *range,
			    bool writes, struct ibchan_reason *reason);
void ibchan_busy_release_sorted(struct ibchan_busy *busy, struct ibchan_range *range);

/**
 * ibchan_busy_take - claim a range for a work
 * @busy: of the region
 * @range: the range; stays where it is until released
 * @writes: the device is going to write into it
 * @reason: names the range in the way; or NULL
 *
 * Context: bottom halves off.
 * Return: 0, or -EBUSY with nothing changed.
 */
static inline int ibchan_busy_take(struct ibchan_busy *busy, struct ibchan_range *range,
				   bool writes, struct ibchan_reason *reason)
{
	int ret = 0;

	spin_lock(&busy->lock);
	if (likely(!writes && busy->room)) {
		range->listed = true;
		hlist_add_head(&range->link, &busy->listed);
		busy->room--;
	} else {
		ret = ibchan_busy_take_sorted(busy, range, writes, reason);
	}
	spin_unlock(&busy->lock);
	return ret;
}

/* The work of a range has ended. Bottom halves are off. */
static inline void ibchan_busy_release(struct ibchan_busy *busy, struct ibchan_range *range)
{
	spin_lock(&busy->lock);
	if (likely(range->listed)) {
		__hlist_del(&range->link);
		busy->room++;
	} else {
		ibchan_busy_release_sorted(busy, range);
	}
	spin_unlock(&busy->lock);
}

#endif /* IBCHAN_BUSY_H */
