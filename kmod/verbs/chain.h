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

union ibchan_send_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
};

/**
 * struct ibchan_chain - scratch space to build a chain in, under the post lock
 * @send: requests for the send queue: @own_send, or memory of its own
 * @recv: receive requests
 * @sges: their elements: @own_sges, or behind @send
 * @max_wrs: room in @send
 * @max_sges: room in @sges
 * @wrs: requests for the send queue that were built
 * @own_send: for channels that move no scatterlists
 * @own_sges: the same
 * @bad_send: which one the driver refused
 * @bad_recv: the same
 * @error: why
 * @refused: why the next request was refused, or 0
 *
 * It outlives ib_post_*: soft-RoCE may look at wr->next after the completion.
 */
struct ibchan_chain {
	union ibchan_send_wr *send;
	struct ib_sge *sges;
	u32 max_wrs;
	u32 max_sges;
	u32 wrs;
	union {
		union ibchan_send_wr own_send[IBCHAN_CHAIN_WRS];
		struct ib_recv_wr recv[IBCHAN_CHAIN_WRS];
	};
	struct ib_sge own_sges[IBCHAN_CHAIN_SGES];
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;
	int error;
	int refused;
};

#endif /* IBCHAN_CHAIN_H */
