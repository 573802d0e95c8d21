// SPDX-License-Identifier: GPL-2.0-only
/*
 * The elements of a request, on their way from the poster to the device: each is checked
 * against its region, holds the region and with IBCHAN_WR_EXCLUSIVE the range until its work
 * has ended, and is shown to the device by the device's own addresses.
 */
#include <linux/errno.h>

#include "work.h"

/**
 * ibchan_work_put_sges - give back what elements of a work hold
 * @work: the work
 * @num: how many, from the first one
 *
 * Context: any, with bottom halves off; not NMI.
 */
void ibchan_work_put_sges(struct ibchan_work *work, u32 num)
{
	struct ibchan_sge *sge = work->sges;

	for (; num; num--, sge++) {
		if (unlikely(!sge->length))
			continue;
		if (work->flags & IBCHAN_WR_EXCLUSIVE)
			ibchan_busy_release(&sge->mr->busy, sge);
		ibchan_mr_drop(sge->mr);
	}
}

static __always_inline int take_sge(struct ibchan_work *work, struct ibchan_sge *sge,
				    struct ibchan_reason *reason)
{
	int ret;

	if (unlikely(!ibchan_mr_get(sge->mr)))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
	if (!(work->flags & IBCHAN_WR_EXCLUSIVE))
		return 0;
	sge->work = work;
	ret = ibchan_busy_take(&sge->mr->busy, sge, ibchan_op_scatters(work->opcode), reason);
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

/**
 * ibchan_work_add_sges - check the elements of a request and take them for its work
 * @wr: the request
 * @work: stands for it, and has its elements
 * @out: the device is shown the elements from here on
 * @reason: why not, or NULL
 *
 * An empty element is not shown: a length of 0 means 2 GiB to some devices.
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
	struct ibchan_sge *sge = work->sges;
	u32 i, segments, elements = 0;
	u64 total = 0;
	int ret;

	for (i = 0; i < wr->num_sge; i++, sge++) {
		ret = check_element(ch, wr, sge, reason);
		if (unlikely(ret))
			goto refused;
		if (unlikely(!sge->length))
			continue;
		segments = unlikely(sge->mr->segments) ? segments_of(sge) : 1;
		if (unlikely(elements + segments > max)) {
			ibchan_work_put_sges(work, i);
			return refuse_room(ch, wr, elements + segments, reason);
		}
		ret = take_sge(work, sge, reason);
		if (unlikely(ret))
			goto refused;
		if (unlikely(sge->mr->segments))
			build_segments(&out[elements], sge);
		else
			build_sge(&out[elements], sge);
		elements += segments;
		total += sge->length;
	}
	ret = ibchan_check_total(&ch->bounds, wr, total, elements, reason);
	if (unlikely(ret))
		ibchan_work_put_sges(work, wr->num_sge);
	return ret ?: elements;
refused:
	ibchan_work_put_sges(work, i);
	if (reason)
		reason->element = i;
	return ret;
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
