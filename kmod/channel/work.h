/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What posting and retiring works have in common.
 */
#ifndef IBCHAN_WORK_H
#define IBCHAN_WORK_H

#include "channel.h"

/* retire.c */
void ibchan_work_done(struct ib_cq *ib, struct ib_wc *wc);

/* element.c */
int ibchan_work_add_sges(const struct ibchan_wr *wr, struct ibchan_work *work,
			 struct ib_sge *out, struct ibchan_reason *reason);
int ibchan_work_add_inline(const struct ibchan_wr *wr, const struct ibchan_channel *ch,
			   struct ib_sge *out, struct ibchan_reason *reason);
void ibchan_work_put_sges(struct ibchan_work *work, u32 num);

static inline struct ibchan_work *ibchan_work_at(struct ibchan_queue *queue, u32 number)
{
	return queue->works[number & queue->credit.mask];
}

/* By wr_id: the room for its completion is not needed. */
static inline void ibchan_sink_cancel(struct ibchan_cq *cq)
{
	if (cq->sink->cancel)
		cq->sink->cancel(cq->priv);
}

#endif /* IBCHAN_WORK_H */
