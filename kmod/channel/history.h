/* SPDX-License-Identifier: GPL-2.0-only */
/* The flight recorder: the last things that happened to a channel. */
#ifndef IBCHAN_HISTORY_H
#define IBCHAN_HISTORY_H

#include <linux/spinlock.h>
#include <rdma/ibchan.h>

#include "only.h"

struct ibchan_channel;

/* Events kept of a channel that is built, connected and closed, with few others. */
#define IBCHAN_HISTORY_FEW	6

/**
 * struct ibchan_history - the last events of a channel
 * @lock: innermost, interrupts off; guards all of it
 * @num: events ever
 * @refused: error and reason of the last refused post
 * @connected_ns: when it was connected; 0: it was not
 * @failed: the first work that failed, and was not flushed; no error: none
 * @oldest: number of the oldest event that is kept
 * @more: IBCHAN_HISTORY_MAX events, event n at n modulo that; NULL as long as @few are
 *	enough
 * @few: event n is at n modulo IBCHAN_HISTORY_FEW
 */
struct ibchan_history {
	__channel_only spinlock_t lock;		/* innermost */
	__channel_only u32 num;
	__channel_only u64 refused;
	__channel_only u64 connected_ns;
	__channel_only struct ibchan_completion failed;
	__channel_only u32 oldest;
	__channel_only struct ibchan_history_event *more;
	__channel_only struct ibchan_history_event few[IBCHAN_HISTORY_FEW];
};

void ibchan_history_init(struct ibchan_history *history);
void ibchan_history_free(struct ibchan_history *history);
void ibchan_history_add(struct ibchan_channel *ch, u32 kind, u32 error, u32 detail, u64 value);
void ibchan_history_failed(struct ibchan_channel *ch,
			   const struct ibchan_completion *completion);
void ibchan_history_address(struct ibchan_channel *ch, u32 error);
void ibchan_history_refused(struct ibchan_channel *ch, int error, u32 code, u64 wr_id);
void ibchan_facts_fill(struct ibchan_channel *ch, struct ibchan_facts *facts);

#endif /* IBCHAN_HISTORY_H */
