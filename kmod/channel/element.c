// SPDX-License-Identifier: GPL-2.0-only
/*
 * Elements of requests that are not like most: given back, beside or of regions in several
 * segments, or data that are in the request.
 */
#include <linux/errno.h>

#include "work.h"

/* Gives back the first @num elements, all that a work has so far. Returns @error. */
int ibchan_work_untake(struct ibchan_work *work, u32 num, int error)
{
	work->num_sge = num;
	ibchan_work_put_mrs(work->queue, work);
	return error;
}

/* The range of an element is in use, and its region is given back. Returns @error. */
int ibchan_element_untake(struct ibchan_mr *mr, int error)
{
	ibchan_mr_drop(mr);
	return error;
}

/*
 * Shows an element to the device; its region may have several segments. @before: elements of the
 * request before it. Returns how many the device sees; -EINVAL when the request has more than there
 * ever may be; -ENOSPC when there is no room in this chain, where the next one has it.
 */
int ibchan_element_build(const struct ibchan_channel *ch, u8 opcode, const struct ibchan_sge *sge,
			 struct ib_sge *out, u32 before, struct ibchan_reason *reason)
{
	const struct ibchan_mr *mr = sge->mr;
	/* A region without a table is one segment. */
	struct ibchan_segment whole[2] = { { 0, mr->addr }, { mr->extent.length, 0 } };
	const struct ibchan_segment *segment = mr->segments ?: whole;
	u32 left, part, max = ch->bounds.max_sge[opcode];
	u64 offset = sge->offset;
	u32 parts = ibchan_segments_count(segment, mr->num_segments, offset, sge->length);

	if (before + parts > max)
		return ibchan_refuse_elements(before + parts, max, reason);
	if (parts > ch->chain.end - out)
		return -ENOSPC;
	segment += ibchan_segments_find(segment, mr->num_segments, offset);
	for (left = sge->length; left; out++, segment++, left -= part, offset += part) {
		part = min_t(u64, left, segment[1].start - offset);
		*out = (struct ib_sge){
			.addr = segment->dma + (offset - segment->start),
			.length = part,
			.lkey = mr->lkey,
		};
	}
	return parts;
}

/*
 * Shows data that is in the request to the device: @built names the kernel's own address, which is
 * read during the post. Under the post lock.
 */
int ibchan_work_add_inline(const struct ibchan_wr *wr, struct ibchan_channel *ch,
			   union ibchan_chain_wr *built, struct ibchan_reason *reason)
{
	struct ib_sge *out = ch->chain.free;
	int ret;

	if (out == ch->chain.end)
		return -ENOSPC;
	ret = ibchan_check_inline(&ch->bounds, wr, reason);
	if (!ret)
		ret = ibchan_check_total(&ch->bounds, wr, wr->data_length, 1, reason);
	if (ret)
		return ret;
	built->wr.sg_list = out;
	built->wr.num_sge = !!wr->data_length;
	*out = (struct ib_sge){
		.addr = (uintptr_t)wr->data,
		.length = wr->data_length,
	};
	ch->chain.free = out + built->wr.num_sge;
	return 0;
}
