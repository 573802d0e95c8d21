// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the channel that the keepalive looks at next.
 *
 * Each user has a queue of channels for each device, by when they are looked at. Of the users that
 * have a channel which is due, each gets a look in turn, so one with many channels delays the
 * others' by as many looks as they have themselves, and its own by all of them.
 */
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "watch_share.h"

static struct ibchan_watch_share *find(struct ibchan_device *dev,
				       const struct ibchan_budget *budget)
{
	struct ibchan_watch_share *share;

	list_for_each_entry(share, &dev->watch_shares, link)
		if (share->budget == budget)
			return share;
	return NULL;
}

/* Counts a channel that is about to be built among those of its user, until it ends. */
int ibchan_watch_share_get(struct ibchan_channel *ch)
{
	struct ibchan_watch_share *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct ibchan_device *dev = ch->qp.dev;
	struct ibchan_watch_share *share;

	if (!fresh)
		return -ENOMEM;
	fresh->budget = ch->qp.pd->cost.budget;
	fresh->watched = RB_ROOT_CACHED;
	spin_lock(&dev->watch_lock);
	share = find(dev, fresh->budget);
	if (!share) {
		share = fresh;
		fresh = NULL;
		list_add(&share->link, &dev->watch_shares);
	}
	share->users++;
	ch->watch.share = share;
	spin_unlock(&dev->watch_lock);
	kfree(fresh);
	return 0;
}

/* The counterpart, when the channel is not watched any more; it may have no share. */
void ibchan_watch_share_put(struct ibchan_channel *ch)
{
	struct ibchan_watch_share *share = ch->watch.share;
	struct ibchan_device *dev = ch->qp.dev;
	bool last;

	if (!share)
		return;
	spin_lock(&dev->watch_lock);
	last = !--share->users;
	if (last)
		list_del(&share->link);
	spin_unlock(&dev->watch_lock);
	if (last)
		kfree(share);
}

static bool is_due_before(struct rb_node *a, const struct rb_node *b)
{
	return time_before(rb_entry(a, struct ibchan_watch, node)->due,
			   rb_entry(b, struct ibchan_watch, node)->due);
}

void ibchan_watch_queue(struct ibchan_watch *watch)
{
	rb_add_cached(&watch->node, &watch->share->watched, is_due_before);
}

/* Returns false where the channel waits for no look. */
bool ibchan_watch_unqueue(struct ibchan_watch *watch)
{
	if (RB_EMPTY_NODE(&watch->node))
		return false;
	rb_erase_cached(&watch->node, &watch->share->watched);
	RB_CLEAR_NODE(&watch->node);
	return true;
}

static struct ibchan_watch *first_of(const struct ibchan_watch_share *share)
{
	return rb_entry_safe(rb_first_cached(&share->watched), struct ibchan_watch, node);
}

/* The channel that is due before all others; NULL: none waits for a look. */
struct ibchan_watch *ibchan_watch_first(const struct ibchan_device *dev)
{
	struct ibchan_watch *first = NULL, *watch;
	struct ibchan_watch_share *share;

	list_for_each_entry(share, &dev->watch_shares, link) {
		watch = first_of(share);
		if (watch && (!first || time_before(watch->due, first->due)))
			first = watch;
	}
	return first;
}

/* Takes the first channel that is due of the user whose turn it is; NULL: none is due. */
struct ibchan_watch *ibchan_watch_take_due(struct ibchan_device *dev)
{
	struct ibchan_watch_share *share;
	struct ibchan_watch *watch;

	list_for_each_entry(share, &dev->watch_shares, link) {
		watch = first_of(share);
		if (!watch || time_after(watch->due, jiffies))
			continue;
		ibchan_watch_unqueue(watch);
		list_move_tail(&share->link, &dev->watch_shares);
		return watch;
	}
	return NULL;
}

/* How many looks come before one at @ch, at most, itself included; 0: it has no share. */
u32 ibchan_watch_rivals(const struct ibchan_channel *ch)
{
	const struct ibchan_watch_share *own = ch->watch.share, *share;
	struct ibchan_device *dev = ch->qp.dev;
	u32 rivals = 0;

	if (!own)
		return 0;
	spin_lock(&dev->watch_lock);
	list_for_each_entry(share, &dev->watch_shares, link)
		rivals += min(share->num, own->num);
	spin_unlock(&dev->watch_lock);
	return rivals;
}
