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

/**
 * struct ibchan_watch - the keepalive of a channel
 * @cqe: of the probe
 * @spare: the user of the send queue's spare entry, see connect/watch.c
 * @silence: jiffies without a completion before a probe; 0: there are no probes
 * @share: its user's, see connect/watch_share.h; NULL: it has no keepalive
 * @node: in the queue of @share, by @due
 * @due: when it is looked at next, in jiffies
 * @looked: when it was looked at last
 * @retired: works of both queues that had completed then
 * @heard: no sign of life is known after this, in jiffies
 * @doubted: the next look asks, however short the silence
 * @behind: works of the send queue that were posted before the last probe
 * @asked: since when the peer owes an answer to the probe that is out, in jiffies
 * @overdue: it owed one for too long at the last look
 * @sent: probes ever posted; written under the post lock
 * @answered: probes that have succeeded; written by the owner of the send cq
 * @patient: no keepalive was asked for, and the peer has not been heard yet
 *
 * @silence is immutable once connected, @share once built, @node is under the device's watch_lock.
 * @due, @looked, @retired, @heard, @doubted, @behind, @asked, @overdue and @patient belong to the
 * worker that has taken the channel out of the queue, under the device's lock.
 */
struct ibchan_watch {
	__connect_only struct ib_cqe cqe;
	__connect_only atomic_t spare;
	__connect_only unsigned long silence;
	__connect_only struct ibchan_watch_share *share;
	__connect_only struct rb_node node;
	__connect_only unsigned long due;
	__connect_only unsigned long looked;
	__connect_only u32 retired;
	__connect_only unsigned long heard;
	__connect_only bool doubted;
	__connect_only u32 behind;
	__connect_only unsigned long asked;
	__connect_only bool overdue;
	u32 sent;
	__connect_only u32 answered;
	bool patient;
};

#endif /* IBCHAN_WATCH_H */
