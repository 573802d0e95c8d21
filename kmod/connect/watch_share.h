/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBCHAN_WATCH_SHARE_H
#define IBCHAN_WATCH_SHARE_H

#include <linux/list.h>
#include <linux/rbtree.h>

#include "channel.h"

/*
 * The channels of one user on one device.
 *
 * Under the device's watch_lock.
 */
struct ibchan_watch_share {
	struct list_head link;	/* in the device's list; the next one to get a look stands first */
	/* the user's, to compare with; NULL: kernel consumers */
	const struct ibchan_budget *budget;
	u32 users;	/* channels that are built with a keepalive */
	u32 num;	/* of these, the ones that are connected */
	/* of these, the ones that wait for a look, by when that is due */
	struct rb_root_cached watched;
};

int ibchan_watch_share_get(struct ibchan_channel *ch);
void ibchan_watch_share_put(struct ibchan_channel *ch);

/* The caller holds the watch lock. */
void ibchan_watch_queue(struct ibchan_watch *watch);
bool ibchan_watch_unqueue(struct ibchan_watch *watch);
struct ibchan_watch *ibchan_watch_first(const struct ibchan_device *dev);
struct ibchan_watch *ibchan_watch_take_due(struct ibchan_device *dev);
u32 ibchan_watch_rivals(const struct ibchan_channel *ch);

#endif /* IBCHAN_WATCH_SHARE_H */
