/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The elements of a request, on their way from the poster to the device: each is checked
 * against its region, and shown to the device by the device's own addresses. The poster's
 * elements are not needed after the post: until its work has ended, the work's place in the queue
 * knows the regions, each of which it has a reference to, and with IBCHAN_WR_EXCLUSIVE the ranges.
 *
 * The steps of each post and each completion are inline; rare ones are in element.c.
 */
#ifndef IBCHAN_ELEMENT_H
#define IBCHAN_ELEMENT_H

#include <linux/errno.h>

#include "work.h"

/* element.c */
int ibchan_work_refuse_sge(struct ibchan_work *work, struct ibchan_mr **end, int error);
int ibchan_element_refuse(const struct ibchan_channel *ch, u8 opcode, const struct ibchan_sge *sge,
			  struct ibchan_reason *reason);
int ibchan_element_build_parts(const struct ibchan_channel *ch, u8 opcode,
			       const struct ibchan_sge *sge, struct ib_sge *out, u32 before,
			       struct ibchan_reason *reason);
int ibchan_work_add_inline(const struct ibchan_wr *wr, struct ibchan_channel *ch,
			   union ibchan_chain_wr *built, struct ibchan_reason *reason);

/* An element's region is kept in @mr; its range has the same place in the other array. */
static __always_inline struct ibchan_range *ibchan_range_at(const struct ibchan_queue *queue,
							    struct ibchan_mr **mr)
{
	return &queue->ranges[mr - queue->mrs];
}

/* Gives back what the elements of a work hold. Any context with bottom halves off; not NMI. */
static __always_inline void ibchan_work_put_mrs(struct ibchan_work *work)
{
	struct ibchan_mr **mr = work->mrs, **end = mr + work->num_sge;

	for (; mr != end; mr++) {
		if (work->flags & IBCHAN_WR_EXCLUSIVE)
			ibchan_busy_release(&(*mr)->busy, ibchan_range_at(work->queue, mr));
		ibchan_mr_drop(*mr);
	}
}

/* @mr: where the region is kept. */
static __always_inline int ibchan_element_take(const struct ibchan_work *work,
					       const struct ibchan_sge *sge, struct ibchan_mr **mr,
					       struct ibchan_reason *reason)
{
	struct ibchan_range *range;
	int ret;

	if (unlikely(!ibchan_mr_get(sge->mr)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	*mr = sge->mr;
	if (!(work->flags & IBCHAN_WR_EXCLUSIVE))
		return 0;
	range = ibchan_range_at(work->queue, mr);
	range->offset = sge->offset;
	range->length = sge->length;
	range->wr_id = work->wr_id;
	ret = ibchan_busy_take(&sge->mr->busy, range, ibchan_op_scatters(work->opcode), reason);
	if (unlikely(ret))
		ibchan_mr_drop(sge->mr);
	return ret;
}

/*
 * iWARP tells the peer the key of the memory that a read goes to, as what the answer is
 * written by. That of a region without a registration of its own is the key of all memory.
 */
static __always_inline bool ibchan_element_fits(const struct ibchan_channel *ch, u8 opcode,
						const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;

	return ibchan_sge_fits(&ch->bounds, &mr->extent, sge, ibchan_ops[opcode].needed) &&
	       (opcode != IBCHAN_OP_READ || likely(mr->ib || !ch->qp.gid.iwarp));
}

/*
 * Checks the elements of a request and takes them for its work, which has room for its regions. An
 * empty element is not shown: a length of 0 means 2 GiB to some devices. It holds nothing. Under
 * the post lock. -ENOSPC when there is no room for them in this chain. On an error none is taken.
 */
static __always_inline int ibchan_work_add_sges(struct ibchan_channel *ch,
						const struct ibchan_wr *wr,
						struct ibchan_work *work,
						union ibchan_chain_wr *built,
						struct ibchan_reason *reason)
{
	const struct ibchan_sge *sge = wr->sges, *end = sge + wr->num_sge;
	struct ib_sge *out = ch->chain.free;
	struct ibchan_mr **mr = work->mrs;
	u64 total = 0;
	int ret;

	built->wr.sg_list = out;
	for (; sge != end; sge++) {
		if (unlikely(!ibchan_element_fits(ch, wr->opcode, sge))) {
			ret = ibchan_element_refuse(ch, wr->opcode, sge, reason);
			goto refused;
		}
		if (unlikely(!sge->length)) {
			work->num_sge--;
			continue;
		}
		ret = ibchan_element_take(work, sge, mr, reason);
		if (unlikely(ret))
			goto refused;
		mr++;
		total += sge->length;
		if (unlikely(sge->mr->segments || out == ch->chain.end)) {
			ret = ibchan_element_build_parts(ch, wr->opcode, sge, out,
							 out - built->wr.sg_list, reason);
			if (ret < 0)
				return ibchan_work_refuse_sge(work, mr, ret);
			out += ret;
			continue;
		}
		out->addr = sge->mr->addr + sge->offset;
		out->length = sge->length;
		out->lkey = sge->mr->lkey;
		out++;
	}
	built->wr.num_sge = out - built->wr.sg_list;
	/* Some were of several parts. */
	if (unlikely(built->wr.num_sge > ch->bounds.max_sge[wr->opcode]))
		ret = ibchan_refuse_elements(built->wr.num_sge, ch->bounds.max_sge[wr->opcode],
					     reason);
	else
		ret = ibchan_check_total(&ch->bounds, wr, total, built->wr.num_sge, reason);
	if (unlikely(ret))
		return ibchan_work_refuse_sge(work, mr, ret);
	ch->chain.free = out;
	return 0;
refused:
	if (reason)
		reason->element = sge - wr->sges;
	return ibchan_work_refuse_sge(work, mr, ret);
}

#endif /* IBCHAN_ELEMENT_H */
