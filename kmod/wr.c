// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a work request must satisfy before anything is reserved for it: form,
 * bounds, access, protection domain. Pure: it looks only at its arguments and
 * at immutable members, so any context will do.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "internal.h"

/**
 * ibchan_refuse_values - write down why something is refused
 * @reason: where, or NULL
 * @code: enum ibchan_reason_code
 * @error: errno to return
 * @value: what the code's line in IBCHAN_REASONS names
 *
 * @reason->wr and @reason->element stay what the caller made them.
 *
 * Return: @error.
 */
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error,
			 const u64 value[3])
{
	if (!reason)
		return error;
	reason->code = code;
	memcpy(reason->value, value, sizeof(reason->value));
	return error;
}

/**
 * ibchan_refuse - write down why something is refused, where no number helps
 * @reason: where, or NULL
 * @code: enum ibchan_reason_code
 * @error: errno to return
 *
 * Return: @error.
 */
int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error)
{
	static const u64 none[3];

	return ibchan_refuse_values(reason, code, error, none);
}

/**
 * ibchan_range_fits - is a range inside a region?
 * @offset: first byte
 * @length: bytes, may be 0
 * @size: of the region
 *
 * Neither the comparison nor the subtraction can wrap.
 */
bool ibchan_range_fits(u64 offset, u64 length, u64 size)
{
	return offset <= size && length <= size - offset;
}

/**
 * ibchan_wr_queue - which half of a channel takes a work request
 * @ch: the channel
 * @wr: with a valid opcode
 */
struct ibchan_queue *ibchan_wr_queue(struct ibchan_channel *ch,
				     const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV ? &ch->recv : &ch->send;
}

static bool wr_is_one_sided(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_WRITE || wr->opcode == IBCHAN_OP_READ;
}

static bool wr_scatters(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV || wr->opcode == IBCHAN_OP_READ;
}

static u8 wr_flags_allowed(const struct ibchan_wr *wr)
{
	return wr_scatters(wr) ? 0 : IBCHAN_WR_IMM;
}

static int wr_check_form(const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	u8 allowed;

	if (wr->opcode > IBCHAN_OP_READ)
		return ibchan_refuse_values(reason, IBCHAN_REASON_OPCODE, -EINVAL,
					    (u64[3]) { wr->opcode });
	allowed = wr_flags_allowed(wr);
	if (wr->flags & ~allowed)
		return ibchan_refuse_values(reason, IBCHAN_REASON_WR_FLAGS,
					    wr->flags & ~IBCHAN_WR_FLAGS ?
					    -EOPNOTSUPP : -EINVAL,
					    (u64[3]) { wr->flags, allowed });
	if (!wr_is_one_sided(wr) && (wr->remote_addr || wr->rkey))
		return ibchan_refuse(reason, IBCHAN_REASON_RESERVED, -EINVAL);
	if (!(wr->flags & IBCHAN_WR_IMM) && wr->imm)
		return ibchan_refuse(reason, IBCHAN_REASON_RESERVED, -EINVAL);
	return 0;
}

static u32 wr_max_sge(const struct ibchan_channel *ch, const struct ibchan_wr *wr)
{
	switch (wr->opcode) {
	case IBCHAN_OP_RECV:
		return ch->recv.max_sge;
	case IBCHAN_OP_READ:
		return ch->max_read_sge;
	default:
		return ch->send.max_sge;
	}
}

static int wr_check_sge(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
			const struct ibchan_sge *sge, struct ibchan_reason *reason)
{
	const struct ibchan_mr *mr = sge->mr;
	u32 needed = wr_scatters(wr) ? IBCHAN_ACCESS_LOCAL_WRITE : 0;

	if (mr->pd != ch->pd)
		return ibchan_refuse(reason, IBCHAN_REASON_OTHER_PD, -EXDEV);
	if (!ibchan_range_fits(sge->offset, sge->length, mr->length))
		return ibchan_refuse_values(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
					    (u64[3]) { sge->offset, sge->length,
						      mr->length });
	if (needed & ~mr->access)
		return ibchan_refuse_values(reason, IBCHAN_REASON_MR_ACCESS, -EACCES,
					    (u64[3]) { needed, mr->access });
	return 0;
}

/**
 * ibchan_wr_check - may this work request be posted on this channel?
 * @ch: the channel
 * @wr: the request; its regions are alive
 * @reason: why not, with the element; or NULL
 *
 * Return: 0; -EINVAL for a bad opcode, flag, range or number of elements;
 * -EOPNOTSUPP for an unknown flag; -EXDEV for a region of another pd; -EACCES
 * for a region that does not allow the access.
 */
int ibchan_wr_check(const struct ibchan_channel *ch, const struct ibchan_wr *wr,
		    struct ibchan_reason *reason)
{
	u64 total = 0;
	int ret;
	u32 i;

	ret = wr_check_form(wr, reason);
	if (ret)
		return ret;
	if (wr->num_sge > wr_max_sge(ch, wr))
		return ibchan_refuse_values(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS,
					    -EINVAL,
					    (u64[3]) { wr->num_sge, wr_max_sge(ch, wr) });
	for (i = 0; i < wr->num_sge; i++) {
		ret = wr_check_sge(ch, wr, &wr->sges[i], reason);
		if (ret) {
			if (reason)
				reason->element = i;
			return ret;
		}
		total += wr->sges[i].length;
	}
	/* A receive may have more room than any message needs. */
	if (wr->opcode != IBCHAN_OP_RECV && total > ch->max_message)
		return ibchan_refuse_values(reason, IBCHAN_REASON_MESSAGE_TOO_LONG,
					    -EINVAL, (u64[3]) { total, ch->max_message });
	return 0;
}
