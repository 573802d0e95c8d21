/* SPDX-License-Identifier: GPL-2.0-only */
/* Pending works, as the code that ends them sees them: see pending.c. */
#ifndef IBCHAN_PENDING_H
#define IBCHAN_PENDING_H

#include <rdma/ibchan_scope.h>

#include "channel.h"

enum ibchan_pending_state { IBCHAN_PENDING_IDLE, IBCHAN_PENDING_POSTED, IBCHAN_PENDING_DONE };

void ibchan_pending_work_done(struct ibchan_work *work, const struct ibchan_completion *completion);
int ibchan_pending_try(struct ibchan_pending *pending, ktime_t deadline);
void ibchan_pending_end(struct ibchan_pending *pending, int error);

static inline bool ibchan_pending_is_done(const struct ibchan_pending *pending)
{
	/* Pairs with ibchan_pending_work_done(): the result is whole. */
	return smp_load_acquire(&pending->state) == IBCHAN_PENDING_DONE;
}

/* For a pending work that was posted: takes what has completed. */
static inline void ibchan_pending_reap(struct ibchan_pending *pending)
{
	ibchan_cq_reap(pending->work.queue->cq, IBCHAN_REAP_BATCH);
}

#endif /* IBCHAN_PENDING_H */
