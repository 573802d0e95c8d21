/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work requests on their way into one SUBMIT. */
#ifndef _LIBIBCHAN_POST_H
#define _LIBIBCHAN_POST_H

#include "slots.h"

/* Where a request of a channel completes. */
static inline struct ibchan_cq *completes_on(const struct ibchan_channel *channel,
					     const struct ibchan_submit_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV ? channel->recv_cq : channel->send_cq;
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

int post_kept(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
	      struct ibchan_cmd_submit *cmd, struct ticket *ticket, struct ibchan_reason *reason);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_POST_H */
