/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flow control by credits, as the code that posts, closes and waits sees it: see flow.c.
 */
#ifndef IBCHAN_FLOW_H
#define IBCHAN_FLOW_H

#include "internal.h"

/* Of struct ibchan_channel.after_post: what there is to do behind a post. */
#define IBCHAN_AFTER_REAP	0x1U	/* a cq of the channel's is reaped or armed */
#define IBCHAN_AFTER_TELL	0x2U	/* the peer is told of the receives */

/**
 * struct ibchan_flow_word - how many receives the writer has ever posted
 * @total: modulo 2^32
 * @inverse: the same with all bits inverted
 *
 * Devices need not write it at once: a word whose halves do not fit is half written,
 * and the one before still holds.
 */
struct ibchan_flow_word {
	__be32 total;
	__be32 inverse;
};

/**
 * struct ibchan_flow_area - what the device knows
 * @theirs: written by the peer
 * @ours: what we write to the peer from
 */
struct ibchan_flow_area {
	struct ibchan_flow_word theirs;
	struct ibchan_flow_word ours;
};

/**
 * struct ibchan_flow - credits of a channel, both ways
 * @backing: frees all of this when the region is gone
 * @ch: the channel
 * @area: what the device knows
 * @mr: @area
 * @peer_addr: where to write; under the post lock, and written while it connects only
 * @peer_rkey: key to it
 * @granted: what @area.theirs said last; written under the post lock
 * @sent: messages ever posted; written under the post lock
 * @told: what the peer was told last; under the post lock
 * @telling: such a write is in flight; written under the post lock
 * @cqe: of that write
 * @rcu: readers that found the channel in a handle table
 */
struct ibchan_flow {
	struct ibchan_backing backing;
	struct ibchan_channel *ch;
	struct ibchan_flow_area *area;
	struct ibchan_mr *mr;
	u64 peer_addr;
	u32 peer_rkey;
	u32 granted;
	u32 sent;
	u32 told;
	int telling;
	struct ib_cqe cqe;
	struct rcu_head rcu;
};

void ibchan_flow_own(const struct ibchan_channel *ch, __be64 *addr, __be32 *rkey);
void ibchan_flow_peer(struct ibchan_channel *ch, __be64 addr, __be32 rkey);
void ibchan_flow_tell(struct ibchan_channel *ch);
u32 ibchan_flow_left(struct ibchan_flow *flow);

extern const struct ibchan_channel_part ibchan_flow_part;

/* Whether a request uses up a receive of the peer's. */
static inline bool ibchan_flow_counts(u8 opcode, u8 flags)
{
	return opcode == IBCHAN_OP_SEND ||
	       (opcode == IBCHAN_OP_WRITE && (flags & IBCHAN_WR_IMM));
}

/* For a post that goes on, or one that is undone. Under the post lock. */
static inline void ibchan_flow_take(struct ibchan_flow *flow, u8 opcode, u8 flags)
{
	if (ibchan_flow_counts(opcode, flags))
		WRITE_ONCE(flow->sent, flow->sent + 1);
}

static inline void ibchan_flow_untake(struct ibchan_flow *flow, u8 opcode, u8 flags)
{
	if (ibchan_flow_counts(opcode, flags))
		WRITE_ONCE(flow->sent, flow->sent - 1);
}

#endif /* IBCHAN_FLOW_H */
