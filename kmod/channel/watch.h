/* SPDX-License-Identifier: GPL-2.0-only */
/* Keepalive: a channel's memory of its peer's last sign of life. */
#ifndef IBCHAN_WATCH_H
#define IBCHAN_WATCH_H

#include <linux/atomic.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "only.h"

struct ibchan_watch_share;

/*
 * The keepalive of a channel.
 *
 * @silence is immutable once connected, @share once built, @node is under the device's watch_lock.
 * @due, @looked, @retired, @heard, @doubted, @behind, @asked, @overdue and @patient belong to the
 * worker that has taken the channel out of the queue, under the device's lock.
 */
struct ibchan_watch {
	__connect_only struct ib_cqe cqe;	/* of the probe */
	/* who uses the spare entry of the send queue, see connect/watch.c */
	__connect_only atomic_t spare;
	/* jiffies without a completion before a probe; 0: there are no probes */
	__connect_only unsigned long silence;
	/* its user's, see connect/watch.c; NULL: it has no keepalive */
	__connect_only struct ibchan_watch_share *share;
	__connect_only struct rb_node node;	/* in the queue of @share, by @due */
	__connect_only unsigned long due;	/* when it is looked at next, in jiffies */
	__connect_only unsigned long looked;	/* when it was looked at last */
	__connect_only u32 retired;	/* works of both queues that had completed then */
	/* no sign of life is known after this, in jiffies */
	__connect_only unsigned long heard;
	__connect_only bool doubted;	/* the next look asks, however short the silence */
	/* works of the send queue that were posted before the last probe */
	__connect_only u32 behind;
	/* since when the peer owes an answer to the probe that is out, in jiffies */
	__connect_only unsigned long asked;
	__connect_only bool overdue;	/* it owed one for too long at the last look */
	u32 sent;	/* probes ever posted; written under the post lock */
	/* probes that have succeeded; written by the owner of the send cq */
	__connect_only u32 answered;
	bool patient;	/* no keepalive was asked for, and the peer has not been heard yet */
};

#endif /* IBCHAN_WATCH_H */
