/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks a work request before anything is reserved for it: form, bounds, access, protection
 * domain. Pure: each check looks only at its arguments, and at members that are immutable or
 * read in one piece, so any context will do. Inline, because each post of each request goes
 * through here; refusals are in wr.c.
 */
#ifndef IBCHAN_CHECK_H
#define IBCHAN_CHECK_H

#include <linux/align.h>
#include <linux/bits.h>
#include <linux/errno.h>

#include <rdma/ibchan.h>

#include "head.h"

/* Requests that only a domain's service channel takes. Their region is in ibchan_wr.data. */
#define IBCHAN_OP_REGISTER	6
#define IBCHAN_OP_INVALIDATE	7
#define IBCHAN_OPS		9

/*
 * Of struct ibchan_extent.allows, besides IBCHAN_ACCESS_*: the device may read the region; a read
 * of the peer's memory may go there; it is in one segment, so that a request needs no look at a
 * table.
 */
#define IBCHAN_MAY_GATHER	0x80U
#define IBCHAN_MAY_SINK		0x40U
#define IBCHAN_IS_WHOLE		0x20U

#define IBCHAN_WR_ALL_FLAGS	(IBCHAN_WR_IMM | IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED | \
				 IBCHAN_WR_INLINE | IBCHAN_WR_UNSIGNALED | \
				 IBCHAN_WR_EXCLUSIVE | IBCHAN_WR_SGL)

/* Limits of a channel's requests. */
struct ibchan_bounds {
	struct ibchan_pd *pd;	/* of the channel */
	u32 caps;	/* of the device: IBCHAN_DEVICE_* */
	u64 max_message;	/* bytes of one message, at most IBCHAN_MAX_MESSAGE */
	u32 max_inline;	/* bytes that a request may carry */
	u8 max_sge[IBCHAN_OPS];	/* elements that the device sees of one work, by opcode */
	u32 max_sgl;	/* entries of a scatterlist */
	u32 odd;	/* of ibchan_wr.head: see ibchan_odd_head() */
	/* 0: the peer serves no reads and atomics, as its request or answer has said */
	u32 max_rd_atomic;
	int service;	/* it belongs to its domain: does not hold it, and may register memory */
};

/*
 * The length, access and domain of a region.
 *
 * All but @allows is immutable.
 */
struct ibchan_extent {
	struct ibchan_pd *pd;	/* its domain */
	u64 length;	/* bytes */
	u32 access;	/* IBCHAN_ACCESS_* */
	/* what requests may need: @access and the bits above; 0: a peer has invalidated it */
	u32 allows;
};

/* Properties of an opcode that the checks ask for. */
enum op_trait {
	OP_SCATTERS = BIT(0),	/* the device writes into the elements */
	OP_ONE_SIDED = BIT(1),	/* names memory of the peer */
	OP_ATOMIC = BIT(2),
	OP_ANY_LENGTH = BIT(3),	/* elements may have more room than a message needs */
	OP_SERVICE = BIT(4),	/* for the service of a domain only */
};

/*
 * One opcode.
 *
 * Of a size that an index is scaled by in an address.
 */
struct ibchan_op {
	u8 traits;	/* enum op_trait */
	u8 flags;	/* IBCHAN_WR_* that it takes */
	u8 needed;	/* IBCHAN_ACCESS_* that it needs of the elements, and IBCHAN_MAY_* */
	u8 verb[2];	/* enum ib_wr_opcode, without and with an immediate */
} __aligned(8);

extern const struct ibchan_op ibchan_ops[IBCHAN_OPS];

/* Does the device write into the elements? @opcode is one. */
static inline bool ibchan_op_scatters(u8 opcode)
{
	return ibchan_ops[opcode].traits & OP_SCATTERS;
}

/* The odd bits of a channel; IBCHAN_WR_EXCLUSIVE is one unless its requests may have it. */
static inline u32 ibchan_odd_head(bool exclusive)
{
	return IBCHAN_ODD_HEAD | (exclusive ? 0 : IBCHAN_HEAD(0, IBCHAN_WR_EXCLUSIVE));
}

/* May requests keep others out of their ranges? */
static inline bool ibchan_bounds_exclude(const struct ibchan_bounds *bounds)
{
	return !(bounds->odd & IBCHAN_HEAD(0, IBCHAN_WR_EXCLUSIVE));
}

/* Bytes that an atomic operates on, at an address that is a multiple of them. */
#define IBCHAN_ATOMIC_SIZE	sizeof(u64)

int ibchan_check_odd_form(const struct ibchan_bounds *bounds, const struct ibchan_wr *wr,
			  struct ibchan_reason *reason);
int ibchan_refuse_elements(u32 given, u32 max, struct ibchan_reason *reason);
int ibchan_check_odd_sge(const struct ibchan_bounds *bounds, const struct ibchan_extent *extent,
			 const struct ibchan_sge *sge, u32 needed, struct ibchan_reason *reason);
int ibchan_check_odd_total(const struct ibchan_bounds *bounds, const struct ibchan_wr *wr,
			   u64 total, u32 elements, struct ibchan_reason *reason);
int ibchan_refuse_total(u32 code, u64 total, u64 max, struct ibchan_reason *reason);

/* A range inside a region. Neither the comparison nor the subtraction can wrap. */
static inline bool ibchan_range_fits(u64 offset, u64 length, u64 size)
{
	return offset <= size && length <= size - offset;
}

/*
 * Opcode, flags and number of elements. Return: 0; -EINVAL; -EOPNOTSUPP for an
 * unknown flag, or one that is not possible on iWARP or on this channel.
 */
static inline int ibchan_check_form(const struct ibchan_bounds *bounds,
				    const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	if (likely(!(wr->head & bounds->odd) && wr->num_sge <= bounds->max_sge[wr->opcode]))
		return 0;
	return ibchan_check_odd_form(bounds, wr, reason);
}

/*
 * One element like most: ibchan_check_sge() likes it, it is not empty, and its region is in one
 * segment. Nothing here can wrap.
 */
static __always_inline bool ibchan_sge_fits(const struct ibchan_bounds *bounds,
					    const struct ibchan_extent *extent,
					    const struct ibchan_sge *sge, u32 needed)
{
	needed |= IBCHAN_IS_WHOLE;
	return extent->pd == bounds->pd && !(needed & ~READ_ONCE(extent->allows)) &&
	       sge->offset <= extent->length &&
	       (u64)sge->length - 1 < extent->length - sge->offset;
}

/*
 * One element. Return: 0; -EXDEV for a region of another domain; -EKEYREVOKED for one
 * that a peer has invalidated; -EINVAL for a range outside of it; -EACCES for a region
 * that does not allow the access; -EOPNOTSUPP for a read into a region that may not be its sink.
 */
static inline int ibchan_check_sge(const struct ibchan_bounds *bounds,
				   const struct ibchan_extent *extent,
				   const struct ibchan_sge *sge, u32 needed,
				   struct ibchan_reason *reason)
{
	if (likely(ibchan_sge_fits(bounds, extent, sge, needed)))
		return 0;
	return ibchan_check_odd_sge(bounds, extent, sge, needed, reason);
}

/*
 * All elements together: their bytes, and how many the device will see. Return: 0;
 * -EINVAL; -EOPNOTSUPP for an atomic on a device that has none, and for a read or an atomic where
 * the peer serves none.
 */
static inline int ibchan_check_total(const struct ibchan_bounds *bounds,
				     const struct ibchan_wr *wr, u64 total, u32 elements,
				     struct ibchan_reason *reason)
{
	u8 traits = ibchan_ops[wr->opcode].traits;

	if (likely(total <= bounds->max_message)) {
		if (!(traits & OP_ONE_SIDED))
			return 0;
		if (likely(total <= wr->remote_length &&
			   (!(traits & OP_SCATTERS) ||
			    (bounds->max_rd_atomic && !(traits & OP_ATOMIC)))))
			return 0;
	}
	return ibchan_check_odd_total(bounds, wr, total, elements, reason);
}

/* Data instead of elements. Return: 0; -EINVAL for more than the channel takes. */
static inline int ibchan_check_inline(const struct ibchan_bounds *bounds,
				      const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	if (wr->data_length > bounds->max_inline)
		return ibchan_refuse_total(IBCHAN_REASON_INLINE_TOO_LONG, wr->data_length,
					   bounds->max_inline, reason);
	return 0;
}

#endif /* IBCHAN_CHECK_H */
