// SPDX-License-Identifier: GPL-2.0-only
/*
 * Consumers that follow the devices. The list of the devices that commands find changes under the
 * lock of the followers, so that each follower is told of each device once.
 */
#include <rdma/ibchan_follower.h>

#include "compat.h"
#include "verbs.h"

static DEFINE_MUTEX(followers_lock);
static LIST_HEAD(followers);

/* Commands find @dev from here on. */
void ibchan_device_publish(struct ibchan_device *dev)
{
	struct ibchan_follower *follower;

	guard(mutex)(&followers_lock);
	ibchan_device_list(dev);
	list_for_each_entry(follower, &followers, link) {
		ibchan_device_hold(dev);
		follower->comes(follower, dev);
	}
}

/* When this returns, no command finds @dev any more. */
void ibchan_device_unpublish(struct ibchan_device *dev)
{
	struct ibchan_follower *follower;

	guard(mutex)(&followers_lock);
	list_for_each_entry(follower, &followers, link)
		follower->leaves(follower, dev);
	ibchan_device_unlist(dev);
}

/**
 * ibchan_device_follow - hear of the devices that are there, and of those that come and leave
 * @follower: its functions set; stays where it is until ibchan_device_unfollow()
 *
 * Of the devices that are there it hears within this call.
 *
 * Context: process, may sleep; not from a function of a follower.
 */
void ibchan_device_follow(struct ibchan_follower *follower)
{
	struct ibchan_device *dev;
	u32 index = 0;

	guard(mutex)(&followers_lock);
	while (!IS_ERR(dev = ibchan_device_get_nth(index++, NULL)))
		follower->comes(follower, dev);
	list_add_tail(&follower->link, &followers);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_follow, IBCHAN_NS);

/**
 * ibchan_device_unfollow - hear of no device any more
 * @follower: it follows
 *
 * It is not told that the devices leave. When this returns, none of its functions runs.
 *
 * Context: process, may sleep; not from a function of a follower.
 */
void ibchan_device_unfollow(struct ibchan_follower *follower)
{
	guard(mutex)(&followers_lock);
	list_del(&follower->link);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_unfollow, IBCHAN_NS);
