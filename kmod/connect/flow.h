/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flow control by credits, as the code that posts, closes and waits sees it: see flow.c.
 */
#ifndef IBCHAN_FLOW_H
#define IBCHAN_FLOW_H

#include "only.h"
#include "parts.h"

/**
 * struct ibchan_flow_word - how many receives the writer has ever posted
 * @total: modulo 2^32
 * @inverse: the same with all bits inverted
 *
 * Devices need not write it at once: a word whose halves do not fit is half written,
 * and the one before still holds.
 */
struct ibchan_flow_word {
	__connect_only __be32 total;
	__connect_only __be32 inverse;
};

/**
 * struct ibchan_flow_area - what the device knows
 * @theirs: written by the peer
 * @ours: what we write to the peer from
 */
struct ibchan_flow_area {
	__connect_only struct ibchan_flow_word theirs;
	__connect_only struct ibchan_flow_word ours;
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
 * @told: what the peer was told last; under the post lock
 * @telling: such a write is in flight; written under the post lock
 * @cqe: of that write
 * @users: the region, and the channel for as long as anyone may read that
 */
struct ibchan_flow {
	__connect_only struct ibchan_backing backing;
	__connect_only struct ibchan_channel *ch;
	__connect_only struct ibchan_flow_area *area;
	__connect_only struct ibchan_mr *mr;
	__connect_only u64 peer_addr;
	__connect_only u32 peer_rkey;
	__connect_only u32 granted;
	__connect_only u32 told;
	__connect_only int telling;
	__connect_only struct ib_cqe cqe;
	__connect_only refcount_t users;
};

void ibchan_flow_own(const struct ibchan_channel *ch, __be64 *addr, __be32 *rkey);
void ibchan_flow_peer(struct ibchan_channel *ch, __be64 addr, __be32 rkey);
void ibchan_flow_tell(struct ibchan_channel *ch);
u32 ibchan_flow_left(struct ibchan_flow *flow);

#endif /* IBCHAN_FLOW_H */
