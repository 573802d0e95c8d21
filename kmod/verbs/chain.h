/* SPDX-License-Identifier: GPL-2.0-only */
/* Where requests for a device are built. */
#ifndef IBCHAN_CHAIN_H
#define IBCHAN_CHAIN_H

#include "qp.h"

/*
 * WRs built and posted as one chain, and the elements that they share; more of both where requests
 * move scatterlists.
 */
#define IBCHAN_CHAIN_WRS	16
#define IBCHAN_CHAIN_SGES	IBCHAN_MAX_SGE

/* Begins alike for both queues. */
union ibchan_chain_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
	struct ib_recv_wr recv;
};

#define IBCHAN_SAME_PLACE(member)					\
	static_assert(offsetof(struct ib_send_wr, member) == offsetof(struct ib_recv_wr, member))
IBCHAN_SAME_PLACE(next);
IBCHAN_SAME_PLACE(wr_cqe);
IBCHAN_SAME_PLACE(sg_list);
IBCHAN_SAME_PLACE(num_sge);

/*
 * Scratch space to build a chain in, under the post lock.
 *
 * It outlives ib_post_*: soft-RoCE may look at wr->next after the completion.
 */
struct ibchan_chain {
	/* requests for one of the queues: @own_wrs, or memory of its own */
	union ibchan_chain_wr *wrs;
	struct ib_sge *sges;	/* their elements: @own_sges, or behind @wrs */
	u32 max_wrs;	/* room in @wrs */
	struct ib_sge *free;	/* the first of @sges that no request has */
	const struct ib_sge *end;	/* behind the last of @sges */
	u32 room;	/* for completions in the sink, which no request has */
	/* for channels that move no scatterlists */
	union ibchan_chain_wr own_wrs[IBCHAN_CHAIN_WRS];
	struct ib_sge own_sges[IBCHAN_CHAIN_SGES];	/* the same */
	/* which one the driver refused */
	union {
		const struct ib_send_wr *bad_send;
		const struct ib_recv_wr *bad_recv;
	};
	int error;	/* why */
	u32 element;	/* of the request that is refused */
};

#endif /* IBCHAN_CHAIN_H */
