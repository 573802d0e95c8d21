/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices that come and leave, told to a kernel consumer. */
#ifndef _RDMA_IBCHAN_FOLLOWER_H
#define _RDMA_IBCHAN_FOLLOWER_H

#include <linux/list.h>
#include <rdma/ibchan.h>

/**
 * struct ibchan_follower - a consumer's functions for devices that come and leave
 * @comes: a device is there, with a reference that is the follower's: ibchan_device_put()
 * @leaves: a device of which @comes has told is about to leave. It works until this returns, so
 *	that channels can be closed in order; channels that are left then break with -ENODEV, and
 *	objects stay as shells. The device's removal waits for this call.
 *
 * Both are called in process context and may sleep; one call at a time, of all followers and
 * devices, so they must not wait for another device to come or leave, nor follow or unfollow.
 * Devices of all network namespaces are told.
 */
struct ibchan_follower {
	void (*comes)(struct ibchan_follower *follower, struct ibchan_device *dev);
	void (*leaves)(struct ibchan_follower *follower, struct ibchan_device *dev);
	/* private: */
	struct list_head link;
};

void ibchan_device_follow(struct ibchan_follower *follower);
void ibchan_device_unfollow(struct ibchan_follower *follower);

#endif /* _RDMA_IBCHAN_FOLLOWER_H */
