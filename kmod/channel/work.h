/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a work that the poster and the cq's owner share. */
#ifndef IBCHAN_WORK_H
#define IBCHAN_WORK_H

#include "channel.h"

/* element.c */
int ibchan_work_untake(struct ibchan_work *work, u32 num, int error);
int ibchan_element_untake(struct ibchan_mr *mr, int error);
int ibchan_element_build(const struct ibchan_channel *ch, u8 opcode, const struct ibchan_sge *sge,
			 struct ib_sge *out, u32 before, struct ibchan_reason *reason);
int ibchan_work_add_inline(const struct ibchan_wr *wr, struct ibchan_channel *ch,
			   union ibchan_chain_wr *built, struct ibchan_reason *reason);

/* retire.c */
void ibchan_work_done(struct ib_cq *ib, struct ib_wc *wc);

/* sgl.c */
int ibchan_sgl_init(struct ibchan_channel *ch, u32 max_sgl);
void ibchan_sgl_fini(struct ibchan_channel *ch);
int ibchan_sgl_take(const struct ibchan_wr *wr, struct ibchan_work *work,
		    union ibchan_chain_wr *built, u32 more, struct ibchan_reason *reason);
union ibchan_chain_wr *ibchan_sgl_split(struct ibchan_work *work, union ibchan_chain_wr *out);
void ibchan_sgl_unmap(struct ibchan_work *work);
void ibchan_sgl_untake(struct ibchan_work *work);
void ibchan_sgl_retire_part(struct ibchan_work *part, const struct ib_wc *wc);
const struct ib_wc *ibchan_sgl_blame(struct ibchan_work *work, const struct ib_wc *wc,
				     struct ib_wc *blamed);

/* Of work->flags: a part of a request; the last part is the request's work, without it. */
#define IBCHAN_WORK_PART	0x20U

static inline struct ibchan_work *ibchan_work_at(struct ibchan_queue *queue, u32 number)
{
	return queue->works[number & queue->places.mask];
}

/* By wr_id: the room for so many completions is not needed. */
static inline void ibchan_sink_cancel(struct ibchan_cq *cq, u32 num)
{
	if (cq->sink->cancel)
		cq->sink->cancel(cq->priv, num);
}

/* How many parts come before a work that moves a scatterlist. */
static inline u32 ibchan_sgl_parts(const struct ibchan_work *work)
{
	const struct ibchan_queue *queue = work->queue;

	return queue->parts[work->number & queue->places.mask].num_sge;
}

static inline struct ibchan_kept *ibchan_kept_next(const struct ibchan_queue *queue,
						   struct ibchan_kept *kept)
{
	return (void *)kept + queue->kept_size;
}

/* Gives back what the elements of a work hold. Any context with bottom halves off; not NMI. */
static __always_inline void ibchan_work_put_mrs(struct ibchan_queue *queue,
						struct ibchan_work *work)
{
	struct ibchan_kept *kept = work->kept;
	u32 left;

	for (left = work->num_sge; left; left--, kept = ibchan_kept_next(queue, kept)) {
		if (work->flags & IBCHAN_WR_EXCLUSIVE)
			ibchan_busy_release(&kept->mr->busy, kept->range);
		ibchan_mr_drop(kept->mr);
	}
}

#endif /* IBCHAN_WORK_H */
