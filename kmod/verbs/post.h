/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verbs that post. Inline, because each post goes through here; the caller
 * holds the post lock, or is the only one left.
 */
#ifndef IBCHAN_POST_H
#define IBCHAN_POST_H

#include "chain.h"
#include "cq.h"
#include "fault.h"

/*
 * A pointer that is not NULL, which the compiler does not know of a member: so a verb
 * keeps no place on the stack for callers that give no pointer.
 */
#define ibchan_given(pointer)						\
	({								\
		typeof(pointer) given = (pointer);			\
									\
		if (!given)						\
			__builtin_unreachable();			\
		given;							\
	})

/*
 * Posts the first requests of a chain on the receive or on the send queue: @num of them, 1 and up.
 * They count as in flight on @cq before, for they may be retired before the verb returns. Returns
 * how many leading ones the device has taken, and the caller counts the others off; if there are
 * others, chain->error says why.
 */
static inline u32 ibchan_post_chain(struct ib_qp *qp, struct ibchan_cq *cq,
				    struct ibchan_chain *chain, bool recv, u32 num)
{
	union ibchan_chain_wr *first = chain->wrs;
	int ret, cut = 0;
	u32 keep = ibchan_fault_cut(recv ? IBCHAN_FAULT_POST_RECV : IBCHAN_FAULT_POST_SEND, num,
				    &cut);

	atomic_add(num, &cq->in_flight);
	ibchan_fault_linger(IBCHAN_WINDOW_TAKEN);
	if (unlikely(keep < num))
		chain->error = cut;
	if (unlikely(!keep))
		return 0;
	if (unlikely(keep < num))
		first[keep - 1].wr.next = NULL;
	/* Some drivers fail without a word on which request it was: the first. */
	if (recv) {
		chain->bad_recv = &first->recv;
		ret = ib_post_recv(qp, &first->recv, ibchan_given(&chain->bad_recv));
	} else {
		chain->bad_send = &first->wr;
		ret = ib_post_send(qp, &first->wr, ibchan_given(&chain->bad_send));
	}
	if (likely(!ret))
		return keep;
	chain->error = ret;
	return container_of(chain->bad_send, union ibchan_chain_wr, wr) - first;
}

/* An RDMA write of no bytes: the peer's device acknowledges it. 0 or an errno. */
static inline int ibchan_post_probe(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	return ib_post_send(qp, &wr.wr, NULL);
}

/* Requests without elements that complete behind everything else. 0 or an errno. */
static inline int ibchan_post_send_marker(struct ib_qp *qp, struct ib_cqe *cqe)
{
	return ibchan_fault(IBCHAN_FAULT_SEND_MARKER) ?: ibchan_post_probe(qp, cqe);
}

static inline int ibchan_post_recv_marker(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct ib_recv_wr wr = { .wr_cqe = cqe };

	return ibchan_fault(IBCHAN_FAULT_RECV_MARKER) ?: ib_post_recv(qp, &wr, NULL);
}

#endif /* IBCHAN_POST_H */
