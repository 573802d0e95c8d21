// SPDX-License-Identifier: GPL-2.0-only
/* Peers that have a queue pair of plain verbs and ask a listener. They serve no reads. */
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#include "meeting.h"
#include "suites.h"

#define BYTES	4096

/**
 * struct stranger - a peer of plain verbs
 * @w: the world
 * @starts: reads in flight
 * @mute: it does not say that it is connected
 * @id: its connection
 * @qp: its queue pair; of a mute one the connection does not know
 * @pd: of the queue pair
 * @cq: of the queue pair
 * @buf: BYTES of memory
 * @dma: where the device sees @buf
 * @connected: it is
 * @cqe: of its read, or its message
 * @ended: that has
 * @status: enum ib_wc_status of that
 */
struct stranger {
	struct world *w;
	u8 starts;
	bool mute;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_pd *pd;
	struct ib_cq *cq;
	u8 *buf;
	u64 dma;
	int connected;
	struct ib_cqe cqe;
	int ended;
	int status;
};

static int modify_qp(const struct stranger *stranger, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask;

	return rdma_init_qp_attr(stranger->id, &attr, &mask) ?:
	       ib_modify_qp(stranger->qp, &attr, mask);
}

static int create_qp(struct stranger *stranger, struct rdma_cm_id *id,
		     struct ib_qp_init_attr *attr)
{
	int ret;

	if (!stranger->mute) {
		ret = rdma_create_qp(id, stranger->pd, attr);
		stranger->qp = id->qp;
		return ret;
	}
	stranger->qp = ib_create_qp(stranger->pd, attr);
	return PTR_ERR_OR_ZERO(stranger->qp) ?: modify_qp(stranger, IB_QPS_INIT);
}

static int make_qp(struct stranger *stranger, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_pd *pd = ib_alloc_pd(id->device, IB_PD_UNSAFE_GLOBAL_RKEY);
	struct ib_cq *cq;
	u64 dma;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	stranger->pd = pd;
	cq = ib_alloc_cq(id->device, NULL, 4, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	stranger->cq = cq;
	dma = ib_dma_map_single(id->device, stranger->buf, BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(id->device, dma))
		return -ENOMEM;
	stranger->dma = dma;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	return create_qp(stranger, id, &attr);
}

static int ask(struct stranger *stranger, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.initiator_depth = stranger->starts, .retry_count = 7, .rnr_retry_count = 7,
	};
	int ret = make_qp(stranger, id);

	if (!ret)
		param.qp_num = stranger->qp->qp_num;
	return ret ?: rdma_connect_locked(id, &param);
}

static int stranger_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct stranger *stranger = id->context;
	struct world *w = stranger->w;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		expect_eq(w, rdma_resolve_route(id, patience), 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		expect_eq(w, ask(stranger, id), 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		expect_eq(w, modify_qp(stranger, IB_QPS_RTR), 0);
		expect_eq(w, modify_qp(stranger, IB_QPS_RTS), 0);
		fallthrough;
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(stranger->connected, 1);
		wake_up(&w->wait);
		break;
	default:
		break;
	}
	return 0;
}

static int stranger_ask(struct stranger *stranger, struct meeting *m)
{
	struct world *w = m->w;
	struct rdma_cm_id *id;

	stranger->w = w;
	stranger->buf = world_kalloc(w, BYTES);
	id = rdma_create_id(&init_net, stranger_event, stranger, RDMA_PS_TCP, IB_QPT_RC);
	if (!expect_eq(w, PTR_ERR_OR_ZERO(id), 0))
		return PTR_ERR(id);
	stranger->id = id;
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&m->address, patience);
}

/* The second side of @m accepts. */
static int stranger_meets(struct stranger *stranger, struct meeting *m)
{
	const struct ibchan_connect connect = { .flags = IBCHAN_CONNECT_FOREIGN };
	struct ibchan_reason reason = {};
	struct ibchan_request *request;
	int ret = stranger_ask(stranger, m);

	if (!expect_eq(m->w, ret, 0))
		return ret;
	request = meeting_take(m);
	if (!request)
		return -ENOENT;
	/* One that is no ibchan is not served unawares. */
	ret = ibchan_request_accept(request, m->asked.side->ch, &(struct ibchan_connect) {},
				    &reason);
	expect_eq(m->w, ret, -EPROTOTYPE);
	expect_eq(m->w, reason.code, IBCHAN_REASON_FOREIGN);
	ret = ibchan_request_accept(request, m->asked.side->ch, &connect, NULL);
	if (!expect_eq(m->w, ret, 0))
		return ret;
	world_forget(m->w, THING_REQUEST, request);
	if (!expect_soon(m->w, READ_ONCE(stranger->connected)))
		return -ETIMEDOUT;
	if (!stranger->mute)
		expect_eq(m->w, party_outcome(&m->asked), 0);
	return 0;
}

static void stranger_end(struct stranger *stranger)
{
	struct rdma_cm_id *id = stranger->id;

	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	else if (!IS_ERR_OR_NULL(stranger->qp))
		ib_destroy_qp(stranger->qp);
	if (stranger->dma)
		ib_dma_unmap_single(id->device, stranger->dma, BYTES, DMA_BIDIRECTIONAL);
	if (stranger->cq)
		ib_free_cq(stranger->cq);
	if (stranger->pd)
		ib_dealloc_pd(stranger->pd);
	rdma_destroy_id(id);
}

static void work_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stranger *stranger = container_of(wc->wr_cqe, struct stranger, cqe);
	struct world *w = stranger->w;

	stranger->status = wc->status;
	/* Whoever sees the end sees the status. */
	smp_store_release(&stranger->ended, 1);
	wake_up(&w->wait);
}

static int stranger_posts(struct stranger *stranger, struct ib_send_wr *wr)
{
	struct ib_sge sge = {
		.addr = stranger->dma, .length = BYTES, .lkey = stranger->pd->local_dma_lkey,
	};
	struct world *w = stranger->w;

	stranger->cqe.done = work_done;
	wr->wr_cqe = &stranger->cqe;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	if (!expect_eq(w, ib_post_send(stranger->qp, wr, NULL), 0))
		return -EIO;
	/* Pairs with the release in work_done(). */
	if (!expect_soon(w, smp_load_acquire(&stranger->ended)))
		return -ETIMEDOUT;
	return expect_eq(w, stranger->status, IB_WC_SUCCESS) ? 0 : -EIO;
}

/* Into its buffer. */
static void stranger_reads(struct stranger *stranger, const struct ibchan_remote *remote)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_READ },
		.remote_addr = remote->addr, .rkey = remote->rkey,
	};

	if (!stranger_posts(stranger, &wr.wr))
		ib_dma_sync_single_for_cpu(stranger->id->device, stranger->dma, BYTES,
					   DMA_BIDIRECTIONAL);
}

/* Fills its buffer, and tells the other side of it. */
static struct ibchan_remote stranger_shares(struct stranger *stranger, u32 seed)
{
	fill_pattern(stranger->buf, BYTES, seed);
	ib_dma_sync_single_for_device(stranger->id->device, stranger->dma, BYTES,
				      DMA_BIDIRECTIONAL);
	return (struct ibchan_remote){
		.addr = stranger->dma, .length = BYTES, .rkey = stranger->pd->unsafe_global_rkey,
	};
}

static void starts_only(struct meeting *m, struct stranger *stranger)
{
	struct side *side = m->asked.side;
	struct job *job = world_jobs(m->w, 1);
	struct ibchan_reason reason = {};
	struct ibchan_channel_attr attr;
	struct ibchan_remote remote;
	struct ibchan_wr wr;

	if (stranger_meets(stranger, m) || !side_share(side))
		return;
	ibchan_channel_query(side->ch, &attr);
	expect_eq(m->w, attr.params.max_rd_atomic, 0);
	fill_pattern(side->buf, BYTES, 5);
	stranger_reads(stranger, &side->remote);
	expect(m->w, has_pattern(stranger->buf, BYTES, 5));
	remote = stranger_shares(stranger, 7);
	wr = job_wr(job, IBCHAN_OP_READ, side, 0, BYTES);
	wr.remote_addr = remote.addr;
	wr.remote_length = remote.length;
	wr.rkey = remote.rkey;
	expect_eq(m->w, job_post(job, side->ch, &wr, &reason), -EOPNOTSUPP);
	expect_eq(m->w, reason.code, IBCHAN_REASON_PEER_NO_READS);
	expect_eq(m->w, channel_state(side->ch), IBCHAN_CHANNEL_CONNECTED);
}

static void a_peer_that_starts_reads_and_serves_none_reads_and_is_not_read_from(struct world *w)
{
	struct stranger *stranger = world_alloc(w, sizeof(*stranger));
	struct meeting *m = meeting_default(w);

	stranger->starts = 1;
	if (m)
		starts_only(m, stranger);
	stranger_end(stranger);
}

static void is_mute(struct meeting *m, struct stranger *stranger)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct side *side = m->asked.side;
	struct job *job = world_jobs(m->w, 1);

	expect_eq(m->w, job_receive(job, side, 0, BYTES), 0);
	if (stranger_meets(stranger, m))
		return;
	/* Nothing tells so far. */
	expect_eq(m->w, channel_state(side->ch), IBCHAN_CHANNEL_CONNECTING);
	stranger_shares(stranger, 9);
	if (stranger_posts(stranger, &wr) || !job_ended(job))
		return;
	expect(m->w, has_pattern(side->buf, BYTES, 9));
	expect_eq(m->w, party_outcome(&m->asked), 0);
	party_expect(&m->asked, 1, 0, 0);
}

static void a_message_tells_that_a_peer_is_connected_whose_word_of_it_is_lost(struct world *w)
{
	struct stranger *stranger = world_alloc(w, sizeof(*stranger));
	struct meeting *m = meeting_default(w);

	stranger->mute = true;
	if (m)
		is_mute(m, stranger);
	stranger_end(stranger);
}

static const struct test_case stranger_cases[] = {
	ETHERNET_CASE(a_peer_that_starts_reads_and_serves_none_reads_and_is_not_read_from),
	ETHERNET_CASE(a_message_tells_that_a_peer_is_connected_whose_word_of_it_is_lost),
};

SUITE(stranger);
