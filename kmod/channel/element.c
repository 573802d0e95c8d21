// SPDX-License-Identifier: GPL-2.0-only
/*
 * The elements of a request, on their way from the poster to the device: each is checked
 * against its region, and shown to the device by the device's own addresses. The poster's
 * elements are not needed after the post: until its work has ended, the work's place in the queue
 * knows the regions, each of which it has a reference to, and with IBCHAN_WR_EXCLUSIVE the ranges.
 */
#include <linux/errno.h>

#include "work.h"

/* An element's region is kept in @mr; its range has the same place in the other array. */
static struct ibchan_range *range_at(const struct ibchan_queue *queue, struct ibchan_mr **mr)
{
	return &queue->ranges[mr - queue->mrs];
}

/**
 * ibchan_work_put_mrs - give back what the elements of a work hold
 * @work: the work
 *
 * Context: any, with bottom halves off; not NMI.
 */
void ibchan_work_put_mrs(struct ibchan_work *work)
{
	struct ibchan_mr **mr = work->mrs;
	u32 num;

	for (num = work->num_sge; num; num--, mr++) {
		if (work->flags & IBCHAN_WR_EXCLUSIVE)
			ibchan_busy_release(&(*mr)->busy, range_at(work->queue, mr));
		ibchan_mr_drop(*mr);
	}
}

/* @mr: where the region is kept. */
static __always_inline int take_sge(const struct ibchan_work *work, const struct ibchan_sge *sge,
				    struct ibchan_mr **mr, struct ibchan_reason *reason)
{
	struct ibchan_range *range;
	int ret;

	if (unlikely(!ibchan_mr_get(sge->mr)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	*mr = sge->mr;
	if (!(work->flags & IBCHAN_WR_EXCLUSIVE))
		return 0;
	range = range_at(work->queue, mr);
	range->offset = sge->offset;
	range->length = sge->length;
	range->wr_id = work->wr_id;
	ret = ibchan_busy_take(&sge->mr->busy, range, ibchan_op_scatters(work->opcode), reason);
	if (unlikely(ret))
		ibchan_mr_drop(sge->mr);
	return ret;
}

/* An element of a region of several segments. Returns how many of them it touches. */
static noinline u32 build_segments(struct ib_sge *out, const struct ibchan_sge *sge)
{
	const struct ibchan_mr *mr = sge->mr;
	const struct ibchan_segment *segment = mr->segments;
	u64 offset = sge->offset;
	u32 left = sge->length;
	u32 num, part;

	segment += ibchan_segments_find(mr->segments, mr->num_segments, offset);
	for (num = 0; left; num++, segment++, left -= part, offset += part) {
		part = min_t(u64, left, segment[1].start - offset);
		out[num] = (struct ib_sge){
			.addr = segment->dma + (offset - segment->start),
			.length = part,
			.lkey = mr->lkey,
		};
	}
	return num;
}

static __always_inline void build_sge(struct ib_sge *out, const struct ibchan_sge *sge)
{
	out->addr = sge->mr->addr + sge->offset;
	out->length = sge->length;
	out->lkey = sge->mr->lkey;
}

static u32 segments_of(const struct ibchan_sge *sge)
{
	return ibchan_segments_count(sge->mr->segments, sge->mr->num_segments, sge->offset,
				     sge->length);
}

static u32 room_for_elements(const struct ibchan_chain *chain, const struct ib_sge *sge)
{
	return &chain->sges[chain->max_sges] - sge;
}

/*
 * iWARP tells the peer the key of the memory that a read goes to, as what the answer is
 * written by. That of a region without a registration of its own is the key of all memory.
 */
static bool key_must_stay(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
			  const struct ibchan_sge *sge)
{
	return wr->opcode == IBCHAN_OP_READ && ch->qp.gid.iwarp && !sge->mr->ib;
}

static noinline int refuse_key(struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP, (u64[3]) { 1 });
}

static __always_inline int check_element(const struct ibchan_channel *ch,
					 const struct ibchan_wr *wr, const struct ibchan_sge *sge,
					 struct ibchan_reason *reason)
{
	int ret = ibchan_check_sge(&ch->bounds, &sge->mr->extent, sge,
				   ibchan_ops[wr->opcode].needed, reason);

	return !ret && unlikely(key_must_stay(ch, wr, sge)) ? refuse_key(reason) : ret;
}

/* More elements than there ever may be; or no room in this chain, where the next has it. */
static noinline int refuse_room(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
				u32 elements, struct ibchan_reason *reason)
{
	u32 max = ch->bounds.max_sge[wr->opcode];

	return elements > max ? ibchan_refuse_elements(elements, max, reason) : -ENOSPC;
}

/* The request is refused when its work has the regions before @end. */
static noinline int give_back(struct ibchan_work *work, struct ibchan_mr **end, int error)
{
	work->num_sge = end - work->mrs;
	ibchan_work_put_mrs(work);
	return error;
}

/**
 * ibchan_work_add_sges - check the elements of a request and take them for its work
 * @wr: the request
 * @work: stands for it, and has room for its regions; the number of these is kept there
 * @out: the device is shown the elements from here on
 * @reason: why not, or NULL
 *
 * An empty element is not shown: a length of 0 means 2 GiB to some devices. It holds nothing.
 *
 * Context: process or softirq, under the post lock.
 * Return: how many elements the device sees; -ENOSPC when there is no room for them in this
 * chain; what ibchan_post() says. On an error none is taken.
 */
int ibchan_work_add_sges(const struct ibchan_wr *wr, struct ibchan_work *work,
			 struct ib_sge *out, struct ibchan_reason *reason)
{
	const struct ibchan_channel *ch = work->queue->channel;
	u32 max = min_t(u32, ch->bounds.max_sge[wr->opcode], room_for_elements(&ch->chain, out));
	const struct ibchan_sge *sge = wr->sges;
	struct ibchan_mr **mr = work->mrs;
	u32 i, segments, elements = 0;
	u64 total = 0;
	int ret;

	for (i = 0; i < wr->num_sge; i++, sge++) {
		ret = check_element(ch, wr, sge, reason);
		if (unlikely(ret))
			goto refused;
		if (unlikely(!sge->length)) {
			work->num_sge--;
			continue;
		}
		segments = unlikely(sge->mr->segments) ? segments_of(sge) : 1;
		if (unlikely(elements + segments > max)) {
			ret = refuse_room(ch, wr, elements + segments, reason);
			return give_back(work, mr, ret);
		}
		ret = take_sge(work, sge, mr, reason);
		if (unlikely(ret))
			goto refused;
		mr++;
		if (unlikely(sge->mr->segments))
			build_segments(&out[elements], sge);
		else
			build_sge(&out[elements], sge);
		elements += segments;
		total += sge->length;
	}
	ret = ibchan_check_total(&ch->bounds, wr, total, elements, reason);
	return likely(!ret) ? elements : give_back(work, mr, ret);
refused:
	if (reason)
		reason->element = i;
	return give_back(work, mr, ret);
}

/**
 * ibchan_work_add_inline - show data that is in the request to the device
 * @wr: the request
 * @ch: where it is posted
 * @out: the device's element, which names the kernel's own address: it reads during the post
 * @reason: why not, or NULL
 *
 * Context: process or softirq, under the post lock.
 * Return: as ibchan_work_add_sges().
 */
int ibchan_work_add_inline(const struct ibchan_wr *wr, const struct ibchan_channel *ch,
			   struct ib_sge *out, struct ibchan_reason *reason)
{
	int ret;

	if (!room_for_elements(&ch->chain, out))
		return -ENOSPC;
	ret = ibchan_check_inline(&ch->bounds, wr, reason);
	if (!ret)
		ret = ibchan_check_total(&ch->bounds, wr, wr->data_length, 1, reason);
	if (ret || !wr->data_length)
		return ret;
	*out = (struct ib_sge){
		.addr = (uintptr_t)wr->data,
		.length = wr->data_length,
	};
	return 1;
}
