/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A few work requests on their way into one SUBMIT. */
#ifndef _LIBIBCHAN_POST_H
#define _LIBIBCHAN_POST_H

#include <assert.h>

#include "slots.h"

#define CHUNK_WRS	64
#define CHUNK_LEAST	16	/* on a short ring */
#define CHUNK_SGES	64	/* room for any single request */

/* What chunk_fill() returns when the next request belongs into another chunk. */
#define CHUNK_FULL	1

static_assert(CHUNK_SGES >= IBCHAN_MAX_SGE, "one request must fit");

/**
 * struct chunk - what one SUBMIT posts; lives on the stack
 * @context: of all channels and regions in it
 * @slot_state: of the slots that its requests get
 * @num: requests
 * @num_sges: elements used
 * @generation: of the last slot that was taken
 * @channels: of each
 * @wrs: the requests, as the kernel takes them
 * @sges: the lists of the requests with two elements or more
 */
struct chunk {
	struct ibchan_context *context;
	__u32 slot_state;
	__u32 num;
	__u32 num_sges;
	__u64 generation;
	struct ibchan_channel *channels[CHUNK_WRS];
	struct ibchan_submit_wr wrs[CHUNK_WRS];
	struct ibchan_submit_sge sges[CHUNK_SGES];
};

/* Where it completes. */
static inline struct ibchan_cq *wr_cq(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV ? wr->channel->recv_cq :
					      wr->channel->send_cq;
}

/* All of @cmd but what the post fills in, and the reason, which is there behind an error. */
static inline void await_nothing(struct ibchan_cmd_submit *cmd)
{
	cmd->flags = 0;
	cmd->cq = 0;
	cmd->min_complete = 0;
	cmd->timeout_ns = 0;
	cmd->out_ready = 0;
	cmd->tail = 0;
}

#pragma GCC visibility push(hidden)

int post_kept(const struct ibchan_wr *wr, struct ibchan_cmd_submit *cmd,
	      struct ticket *ticket, struct ibchan_reason *reason);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_POST_H */
