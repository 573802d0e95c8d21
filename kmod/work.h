/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What posting and retiring works have in common.
 */
#ifndef IBCHAN_WORK_H
#define IBCHAN_WORK_H

#include "busy.h"
#include "check.h"
#include "internal.h"

/*
 * Of struct ibchan_work.flags, besides what its request says: a plain one (see
 * check.h).
 */
#define IBCHAN_WORK_PLAIN	0x80U

/* The same in struct ibchan_work.form. */
#define IBCHAN_FORM_PLAIN	ibchan_form(0, 0, IBCHAN_WORK_PLAIN)

/* retire.c */
void ibchan_work_done(struct ib_cq *ib, struct ib_wc *wc);
void ibchan_retire(struct ibchan_cq *cq, int num);

/* work.c */
void ibchan_build_rare(union ibchan_send_wr *out, const struct ibchan_wr *wr);

/* slot.c */
u32 ibchan_slot_sends(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left);
u32 ibchan_slot_recvs(struct ibchan_channel *ch, const struct ibchan_wr *wr, u32 left);

/* reserve.c */
int ibchan_work_reserve(struct ibchan_queue *queue, const struct ibchan_wr *wr,
			struct ib_sge *out, struct ibchan_work **taken,
			struct ibchan_reason *reason);
void ibchan_work_unreserve(struct ibchan_queue *queue);
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

/* All but the elements, and what few opcodes need besides. */
static __always_inline void ibchan_build_send(union ibchan_send_wr *out,
					      const struct ibchan_wr *wr, struct ib_cqe *cqe)
{
	out->wr.wr_cqe = cqe;
	out->wr.opcode = ibchan_ops[wr->opcode].verb[0];
	out->wr.send_flags = IB_SEND_SIGNALED;
	out->rdma.remote_addr = wr->remote_addr;
	out->rdma.rkey = wr->rkey;
}

#endif /* IBCHAN_WORK_H */
