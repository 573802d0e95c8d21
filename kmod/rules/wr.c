// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells what each opcode takes, and refuses the work requests that check.h finds wrong. The
 * refusals are out of line, so that a request which is fine does not pay for them. Pure.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "rules.h"

#define OUTGOING	(IBCHAN_WR_FENCE | IBCHAN_WR_UNSIGNALED | IBCHAN_WR_EXCLUSIVE)
#define MESSAGE		(OUTGOING | IBCHAN_WR_IMM | IBCHAN_WR_SOLICITED | IBCHAN_WR_INLINE)

const struct ibchan_op ibchan_ops[IBCHAN_OPS] = {
	[IBCHAN_OP_SEND] = {
		.flags = MESSAGE,
		.needed = IBCHAN_MAY_GATHER,
		.verb = { IB_WR_SEND, IB_WR_SEND_WITH_IMM },
	},
	[IBCHAN_OP_RECV] = {
		.traits = OP_SCATTERS | OP_ANY_LENGTH,
		.flags = IBCHAN_WR_EXCLUSIVE,
		.needed = IBCHAN_ACCESS_LOCAL_WRITE,
	},
	[IBCHAN_OP_WRITE] = {
		.traits = OP_ONE_SIDED,
		.flags = MESSAGE | IBCHAN_WR_SGL,
		.needed = IBCHAN_MAY_GATHER,
		.verb = { IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM },
	},
	[IBCHAN_OP_READ] = {
		.traits = OP_SCATTERS | OP_ONE_SIDED,
		.flags = OUTGOING | IBCHAN_WR_SGL,
		.needed = IBCHAN_ACCESS_LOCAL_WRITE | IBCHAN_MAY_SINK,
		.verb = { IB_WR_RDMA_READ },
	},
	[IBCHAN_OP_COMPARE_SWAP] = {
		.traits = OP_SCATTERS | OP_ONE_SIDED | OP_ATOMIC,
		.flags = OUTGOING,
		.needed = IBCHAN_ACCESS_LOCAL_WRITE,
		.verb = { IB_WR_ATOMIC_CMP_AND_SWP },
	},
	[IBCHAN_OP_FETCH_ADD] = {
		.traits = OP_SCATTERS | OP_ONE_SIDED | OP_ATOMIC,
		.flags = OUTGOING,
		.needed = IBCHAN_ACCESS_LOCAL_WRITE,
		.verb = { IB_WR_ATOMIC_FETCH_AND_ADD },
	},
	[IBCHAN_OP_REGISTER] = {
		.traits = OP_SERVICE,
		.verb = { IB_WR_REG_MR },
	},
	[IBCHAN_OP_INVALIDATE] = {
		.traits = OP_SERVICE,
		.verb = { IB_WR_LOCAL_INV },
	},
	[IBCHAN_OP_SEND_INVALIDATE] = {
		.flags = MESSAGE & ~IBCHAN_WR_IMM,
		.needed = IBCHAN_MAY_GATHER,
		.verb = { IB_WR_SEND_WITH_INV },
	},
};

/*
 * Writes down why something is refused, and returns @error. The code's line in IBCHAN_REASONS names
 * the values. @reason->wr and @reason->element stay as the caller made them.
 */
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error, const u64 value[3])
{
	if (!reason)
		return error;
	reason->code = code;
	memcpy(reason->value, value, sizeof(reason->value));
	return error;
}

/* The same where no number helps. */
int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error)
{
	static const u64 none[3];

	return ibchan_refuse_values(reason, code, error, none);
}

/* The parameter is out of its range: -EINVAL. @which: IBCHAN_PARAMETER_*. */
int ibchan_refuse_parameter(struct ibchan_reason *reason, u32 which, u64 value, u64 low, u64 high)
{
	if (reason)
		reason->element = which;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PARAMETER, -EINVAL,
				    (u64[3]) { value, low, high });
}

static int refuse_opcode(const struct ibchan_wr *wr, int error, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_OPCODE, error, (u64[3]) { wr->opcode });
}

int ibchan_refuse_elements(u32 given, u32 max, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, -EINVAL,
				    (u64[3]) { given, max });
}

/* ibchan_check_form() of a request that is not like most. */
int ibchan_check_odd_form(const struct ibchan_bounds *bounds, const struct ibchan_wr *wr,
			  struct ibchan_reason *reason)
{
	u8 allowed, impossible;
	u32 max;

	if (wr->opcode >= IBCHAN_OPS ||
	    ((ibchan_ops[wr->opcode].traits & OP_SERVICE) && !bounds->service))
		return refuse_opcode(wr, -EINVAL, reason);
	/* Flags that the opcode takes, but not on iWARP, or not on this channel. */
	impossible = ibchan_bounds_exclude(bounds) ? 0 : IBCHAN_WR_EXCLUSIVE;
	if (!(bounds->caps & IBCHAN_DEVICE_IMMEDIATE))
		impossible |= wr->opcode == IBCHAN_OP_READ ? IBCHAN_WR_FENCE : IBCHAN_WR_IMM;
	allowed = ibchan_ops[wr->opcode].flags;
	/* A write without an immediate makes no completion at the peer, so it wakes no one. */
	if (wr->opcode == IBCHAN_OP_WRITE && !(wr->flags & IBCHAN_WR_IMM))
		allowed &= ~IBCHAN_WR_SOLICITED;
	/* A scatterlist takes the place of data, and belongs to no region. */
	if (wr->flags & allowed & IBCHAN_WR_SGL)
		allowed &= ~(IBCHAN_WR_INLINE | IBCHAN_WR_EXCLUSIVE);
	allowed &= ~impossible;
	if (wr->flags & ~allowed)
		return ibchan_refuse_values(reason, IBCHAN_REASON_WR_FLAGS,
					    wr->flags & (impossible | ~IBCHAN_WR_ALL_FLAGS) ?
					    -EOPNOTSUPP : -EINVAL, (u64[3]) { wr->flags, allowed });
	max = wr->flags & IBCHAN_WR_SGL ? bounds->max_sgl :
	      wr->flags & IBCHAN_WR_INLINE ? 0 : bounds->max_sge[wr->opcode];
	return wr->num_sge > max ? ibchan_refuse_elements(wr->num_sge, max, reason) : 0;
}

/* ibchan_check_sge() of an element that is empty, of a region in several segments, or wrong. */
int ibchan_check_odd_sge(const struct ibchan_bounds *bounds, const struct ibchan_extent *extent,
			 const struct ibchan_sge *sge, u32 needed, struct ibchan_reason *reason)
{
	u32 missing = needed & ~READ_ONCE(extent->allows);

	if (extent->pd != bounds->pd)
		return ibchan_refuse(reason, IBCHAN_REASON_OTHER_PD, -EXDEV);
	if (!READ_ONCE(extent->allows))
		return ibchan_refuse(reason, IBCHAN_REASON_MR_INVALIDATED, -EKEYREVOKED);
	if (!ibchan_range_fits(sge->offset, sge->length, extent->length))
		return ibchan_refuse_values(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
					    (u64[3]) { sge->offset, sge->length, extent->length });
	if (missing & IBCHAN_ACCESS_ALL)
		return ibchan_refuse_values(reason, IBCHAN_REASON_MR_ACCESS, -EACCES,
					    (u64[3]) { needed & IBCHAN_ACCESS_ALL,
						       extent->access });
	if (missing)
		return ibchan_refuse_values(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP,
					    (u64[3]) { 1 });
	return 0;
}

int ibchan_refuse_total(u32 code, u64 total, u64 max, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, code, -EINVAL, (u64[3]) { total, max });
}

/*
 * ibchan_check_total() of a request that is not like most. A receive may have more room than the
 * port takes, but a device counts in 31 bits.
 */
int ibchan_check_odd_total(const struct ibchan_bounds *bounds, const struct ibchan_wr *wr,
			   u64 total, u32 elements, struct ibchan_reason *reason)
{
	u8 traits = ibchan_ops[wr->opcode].traits;
	u32 max = traits & OP_ANY_LENGTH ? IBCHAN_MAX_MESSAGE : bounds->max_message;

	if (total > max)
		return ibchan_refuse_total(IBCHAN_REASON_MESSAGE_TOO_LONG, total, max, reason);
	if (!(traits & OP_ONE_SIDED))
		return 0;
	if (total > wr->remote_length)
		return ibchan_refuse_total(IBCHAN_REASON_REMOTE_BOUNDS, total, wr->remote_length,
					   reason);
	if (!(traits & OP_SCATTERS))
		return 0;
	/* The device would keep it for ever. */
	if (!bounds->max_rd_atomic)
		return ibchan_refuse_values(reason, IBCHAN_REASON_PEER_NO_READS, -EOPNOTSUPP,
					    (u64[3]) { wr->opcode });
	if (!(traits & OP_ATOMIC))
		return 0;
	if (!(bounds->caps & IBCHAN_DEVICE_ATOMICS))
		return refuse_opcode(wr, -EOPNOTSUPP, reason);
	if (total != IBCHAN_ATOMIC_SIZE || elements != 1 ||
	    !IS_ALIGNED(wr->remote_addr, IBCHAN_ATOMIC_SIZE))
		return ibchan_refuse_total(IBCHAN_REASON_ATOMIC_FORM, total, wr->remote_addr,
					   reason);
	return 0;
}
