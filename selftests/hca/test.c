// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the HCA do what it is told, and report what no consumer may have it do? Each case is a
 * consumer by plain verbs: two queue pairs of hca0 that are connected to each other. Prints
 * KTAP into the kernel log.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "hca.h"

#define DEPTH		8
#define BUFFER		8192

/* Looks at what is sure to come, at least half a millisecond apart. */
#define PATIENCE	20000

static unsigned int failed;
static const char *skipped;

static struct ib_device *device;

/* Two queue pairs, and memory on both sides. */
struct world {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	u8 *buffer[2];
	u64 addr[2];
	enum dma_data_direction direction[2];
	u32 mapped[2];
	struct ib_mr *mr;
	struct ib_pd *other_pd;
	struct ib_srq *srq;
	atomic_t limit_events;
	atomic_t last_events;
};

#define expect(holds) do {						\
	if (!(holds)) {							\
		failed++;						\
		pr_info("# line %d: expected %s\n", __LINE__, #holds);	\
	}								\
} while (0)

/* --- making and ending --- */

static void map_buffer(struct world *w, int i, u32 bytes, enum dma_data_direction direction)
{
	w->addr[i] = ib_dma_map_single(device, w->buffer[i], bytes, direction);
	expect(!ib_dma_mapping_error(device, w->addr[i]));
	w->direction[i] = direction;
	w->mapped[i] = bytes;
}

static void unmap_buffer(struct world *w, int i)
{
	if (w->mapped[i])
		ib_dma_unmap_single(device, w->addr[i], w->mapped[i], w->direction[i]);
	w->mapped[i] = 0;
}

/* The first address that the port has. */
static int find_gid(union ib_gid *gid, int *index)
{
	for (*index = 0; *index < HCA_GIDS; ++*index)
		if (!rdma_query_gid(device, 1, *index, gid) && !rdma_is_zero_gid(gid))
			return 0;
	return -ENOENT;
}

static int fill_path(struct rdma_ah_attr *ah)
{
	struct hca_port *port = &to_hca(device)->ports[0];
	union ib_gid gid;
	int index;
	int ret = find_gid(&gid, &index);

	ah->type = rdma_ah_find_type(device, 1);
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_grh(ah, NULL, 0, index, 64, 0);
	rdma_ah_set_dgid_raw(ah, &gid);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		ether_addr_copy(ah->roce.dmac, port->ndev->dev_addr);
	else
		rdma_ah_set_dlid(ah, port->lid);
	return ret;
}

static int connect(struct ib_qp *qp, struct ib_qp *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
	int ret = fill_path(&attr.ah_attr);

	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				   IB_QP_ACCESS_FLAGS);
	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
				   IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				   IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	return ret;
}

static void handle_event(struct ib_event *event, void *context)
{
	struct world *w = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		atomic_inc(&w->limit_events);
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&w->last_events);
}

static struct ib_qp *make_qp(struct world *w)
{
	struct ib_qp_init_attr init = {
		.event_handler = handle_event,
		.qp_context = w,
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.srq = w->srq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			 .max_recv_sge = 2 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp = ib_create_qp(w->pd, &init);

	return IS_ERR(qp) ? NULL : qp;
}

static void unused_handler(struct ib_cq *cq, void *context)
{
}

static int make_queues(struct world *w, u32 entries)
{
	struct ib_cq_init_attr init = { .cqe = entries };

	w->pd = ib_alloc_pd(device, 0);
	w->cq = ib_create_cq(device, unused_handler, NULL, NULL, &init);
	if (IS_ERR(w->pd) || IS_ERR(w->cq))
		return -ENOMEM;
	w->qp[0] = make_qp(w);
	w->qp[1] = make_qp(w);
	if (!w->qp[0] || !w->qp[1])
		return -ENOMEM;
	return connect(w->qp[0], w->qp[1]) ?: connect(w->qp[1], w->qp[0]);
}

static int world_init(struct world *w, u32 entries)
{
	int i, ret;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < 2; i++) {
		w->buffer[i] = kzalloc(BUFFER, GFP_KERNEL);
		if (!w->buffer[i])
			return -ENOMEM;
	}
	memset(w->buffer[0], 0x5a, BUFFER);
	map_buffer(w, 0, BUFFER, DMA_BIDIRECTIONAL);
	map_buffer(w, 1, BUFFER, DMA_BIDIRECTIONAL);
	ret = make_queues(w, entries);
	expect(!ret);
	return ret;
}

static void world_end(struct world *w)
{
	int i;

	for (i = 0; i < 2; i++)
		if (w->qp[i])
			expect(!ib_destroy_qp(w->qp[i]));
	if (!IS_ERR_OR_NULL(w->srq))
		ib_destroy_srq(w->srq);
	if (w->mr)
		expect(!ib_dereg_mr(w->mr));
	if (!IS_ERR_OR_NULL(w->cq))
		ib_destroy_cq(w->cq);
	if (!IS_ERR_OR_NULL(w->other_pd))
		ib_dealloc_pd(w->other_pd);
	if (!IS_ERR_OR_NULL(w->pd))
		ib_dealloc_pd(w->pd);
	for (i = 0; i < 2; i++) {
		unmap_buffer(w, i);
		kfree(w->buffer[i]);
	}
}

/* --- works --- */

/* Whether there is one; it may take a while. */
static bool next_completion(struct world *w, struct ib_wc *wc)
{
	int i;

	for (i = 0; i < PATIENCE; i++) {
		if (ib_poll_cq(w->cq, 1, wc) == 1)
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

/* The status of the next completion; -1: none has come. */
static int next_status(struct world *w)
{
	struct ib_wc wc;

	return next_completion(w, &wc) ? (int)wc.status : -1;
}

static void post_receive(struct world *w, u64 addr, u32 bytes, u32 lkey)
{
	struct ib_sge sge = { .addr = addr, .length = bytes, .lkey = lkey };
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	expect(!ib_post_recv(w->qp[1], &wr, NULL));
}

static void post_send_on(struct ib_qp *qp, u64 addr, u32 bytes, u32 lkey)
{
	struct ib_sge sge = { .addr = addr, .length = bytes, .lkey = lkey };
	struct ib_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	expect(!ib_post_send(qp, &wr, NULL));
}

static void post_send(struct world *w, u64 addr, u32 bytes, u32 lkey)
{
	post_send_on(w->qp[0], addr, bytes, lkey);
}

/* Registers both pages of the first buffer. */
static void fast_register(struct world *w)
{
	struct scatterlist sg;
	struct ib_reg_wr reg = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};

	w->mr = ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 4);
	expect(!IS_ERR(w->mr));
	sg_init_one(&sg, w->buffer[0], BUFFER);
	sg_dma_address(&sg) = w->addr[0];
	sg_dma_len(&sg) = BUFFER;
	expect(ib_map_mr_sg(w->mr, &sg, 1, NULL, PAGE_SIZE) == 1);
	reg.mr = w->mr;
	reg.key = w->mr->rkey;
	expect(!ib_post_send(w->qp[0], &reg.wr, NULL));
	expect(next_status(w) == IB_WC_SUCCESS);
}

/* The device works by itself, and nothing tells of what it reports. */
static void await_faults(enum hca_fault fault, u32 num)
{
	int i;

	for (i = 0; i < PATIENCE && hca_faults_of(fault) < num; i++)
		usleep_range(500, 1000);
	expect(hca_faults_of(fault) == num);
}

/* One of them, and nothing else. */
static void expect_fault(enum hca_fault fault)
{
	u32 i;

	for (i = 0; i < HCA_FAULTS; i++)
		if (hca_faults_of(i) != (u32)(i == fault)) {
			failed++;
			pr_info("# fault %u was reported %u times\n", i, hca_faults_of(i));
		}
}

static bool has_bus_addresses(void)
{
	if (!ib_uses_virt_dma(device))
		return true;
	skipped = "the driver uses virtual addresses";
	return false;
}

/* --- cases --- */

static void a_send_moves_its_bytes_and_is_no_fault(struct world *w)
{
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->addr[0], BUFFER, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_SUCCESS);
	expect(next_status(w) == IB_WC_SUCCESS);
	expect(!memcmp(w->buffer[0], w->buffer[1], BUFFER));
	expect_fault(HCA_FAULTS);
}

static void memory_that_was_unmapped_is_reported(struct world *w)
{
	if (!has_bus_addresses())
		return;
	unmap_buffer(w, 0);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(to_hca(device)->domain ? HCA_UNMAPPED : HCA_BEYOND_MAPPING);
}

static void memory_of_the_other_direction_is_reported(struct world *w)
{
	if (!has_bus_addresses())
		return;
	unmap_buffer(w, 0);
	map_buffer(w, 0, BUFFER, DMA_FROM_DEVICE);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(HCA_DIRECTION);
}

/* The device's other direction: it writes. */
static void memory_that_it_may_only_read_is_reported_when_it_writes_there(struct world *w)
{
	if (!has_bus_addresses())
		return;
	unmap_buffer(w, 1);
	map_buffer(w, 1, BUFFER, DMA_TO_DEVICE);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect(next_status(w) == IB_WC_REM_OP_ERR);
	expect_fault(HCA_DIRECTION);
}

/* Its key is still valid: the table of the IOMMU alone tells. */
static void memory_that_was_unmapped_under_its_region_is_reported(struct world *w)
{
	u64 iova;

	if (!has_bus_addresses())
		return;
	fast_register(w);
	iova = w->mr->iova;
	unmap_buffer(w, 0);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, iova, 64, w->mr->lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(to_hca(device)->domain ? HCA_UNMAPPED : HCA_BEYOND_MAPPING);
}

static void bytes_beside_what_is_mapped_are_reported(struct world *w)
{
	if (!has_bus_addresses())
		return;
	unmap_buffer(w, 0);
	map_buffer(w, 0, 64, DMA_TO_DEVICE);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->addr[0], 65, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(HCA_BEYOND_MAPPING);
}

static void bytes_beside_a_region_are_reported(struct world *w)
{
	fast_register(w);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->mr->iova + BUFFER - 64, 65, w->mr->lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(HCA_BEYOND_REGION);
}

static void a_region_that_is_given_up_one_work_too_early_is_reported(struct world *w)
{
	unsigned int delay = hca_delay_us;
	struct ib_mr *mr;
	u32 lkey;
	u64 iova;

	fast_register(w);
	mr = w->mr;
	lkey = mr->lkey;
	iova = mr->iova;
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	hca_delay_us = 20000;
	post_send(w, iova, 64, lkey);
	hca_delay_us = delay;
	w->mr = NULL;
	expect(!ib_dereg_mr(mr));
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(HCA_NO_REGION);
}

static void a_region_that_is_invalidated_is_reported(struct world *w)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED };

	fast_register(w);
	wr.ex.invalidate_rkey = w->mr->rkey;
	expect(!ib_post_send(w->qp[0], &wr, NULL));
	expect(next_status(w) == IB_WC_SUCCESS);
	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	post_send(w, w->mr->iova, 64, w->mr->lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect_fault(HCA_NO_REGION);
}

static void a_completion_without_room_is_reported(struct world *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		post_receive(w, w->addr[1], 64, w->pd->local_dma_lkey);
		post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	}
	/* It has room for one of the four: nothing is polled before the others have come. */
	await_faults(HCA_CQ_OVERRUN, 3);
	expect(next_status(w) == IB_WC_SUCCESS);
}

static void an_unmapping_that_fits_no_mapping_is_reported(struct world *w)
{
	if (!has_bus_addresses())
		return;
	ib_dma_unmap_single(device, w->addr[0], BUFFER, DMA_TO_DEVICE);
	expect_fault(HCA_BAD_UNMAP);
	/* The IOMMU has unmapped it. */
	w->mapped[0] = 0;
}

static void a_send_that_no_receive_waits_for_is_given_up(struct world *w)
{
	post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_RNR_RETRY_EXC_ERR);
	expect_fault(HCA_FAULTS);
}

static void a_peer_that_is_gone_does_not_answer(struct world *w)
{
	expect(!ib_destroy_qp(w->qp[1]));
	w->qp[1] = NULL;
	post_send(w, w->addr[0], 64, w->pd->local_dma_lkey);
	expect(next_status(w) == IB_WC_RETRY_EXC_ERR);
	expect_fault(HCA_FAULTS);
}

static void without_data_a_work_has_ended_when_its_post_returns(struct world *w)
{
	struct ib_wc wc[2];

	post_receive(w, w->addr[1], BUFFER, w->pd->local_dma_lkey);
	hca_null = true;
	post_send(w, w->addr[0], BUFFER, w->pd->local_dma_lkey);
	hca_null = false;
	expect(ib_poll_cq(w->cq, 2, wc) == 2);
	expect(!memchr_inv(w->buffer[1], 0, BUFFER));
	expect_fault(HCA_FAULTS);
}

/* --- shared receive queues --- */

#define SHARED		4
#define PART		64

/* Both queue pairs take their receives from one queue. */
static bool share_receives(struct world *w)
{
	struct ib_srq_init_attr init = {
		.event_handler = handle_event,
		.srq_context = w,
		.attr = { .max_wr = SHARED, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	int i;

	w->srq = ib_create_srq(w->pd, &init);
	expect(!IS_ERR(w->srq));
	for (i = 0; i < 2; i++)
		expect(!ib_destroy_qp(w->qp[i]));
	for (i = 0; i < 2; i++)
		w->qp[i] = IS_ERR(w->srq) ? NULL : make_qp(w);
	if (!w->qp[0] || !w->qp[1])
		return false;
	expect(!connect(w->qp[0], w->qp[1]) && !connect(w->qp[1], w->qp[0]));
	return true;
}

/* Into one part of the second buffer after the other. */
static int post_shared(struct world *w, u64 number)
{
	struct ib_sge sge = {
		.addr = w->addr[1] + number * PART,
		.length = PART,
		.lkey = w->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 };

	return ib_post_srq_recv(w->srq, &wr, NULL);
}

/* The bytes of the first one are there, and the completion with them. */
static void await_received(struct world *w)
{
	int i;

	for (i = 0; i < PATIENCE && !READ_ONCE(w->buffer[1][PART - 1]); i++)
		usleep_range(500, 1000);
}

static void fill_shared(struct world *w)
{
	u32 i;

	for (i = 0; i < SHARED; i++)
		expect(!post_shared(w, i));
	expect(post_shared(w, SHARED) == -ENOMEM);
}

/* Returns which receive has come of it; it came at @qp's peer. */
static u64 send_to_shared(struct world *w, int qp)
{
	struct ib_wc wc[2] = {};
	struct ib_wc *received;
	int i;

	post_send_on(w->qp[qp], w->addr[0], PART, w->pd->local_dma_lkey);
	for (i = 0; i < 2; i++) {
		expect(next_completion(w, &wc[i]));
		expect(wc[i].status == IB_WC_SUCCESS);
	}
	received = wc[0].opcode == IB_WC_RECV ? &wc[0] : &wc[1];
	expect(received->opcode == IB_WC_RECV);
	expect(received->qp == w->qp[!qp]);
	expect(received->byte_len == PART);
	return received->wr_id;
}

static void two_queue_pairs_receive_out_of_one_shared_queue(struct world *w)
{
	if (!share_receives(w))
		return;
	fill_shared(w);
	expect(send_to_shared(w, 0) == 0);
	expect(send_to_shared(w, 1) == 1);
	expect(send_to_shared(w, 1) == 2);
	expect(send_to_shared(w, 0) == 3);
	expect(!memcmp(w->buffer[0], w->buffer[1], SHARED * PART));
	expect(!memchr_inv(w->buffer[1] + SHARED * PART, 0, BUFFER - SHARED * PART));
	expect_fault(HCA_FAULTS);
}

static void a_shared_queue_takes_no_more_than_it_has_room_for(struct world *w)
{
	if (!share_receives(w))
		return;
	fill_shared(w);
	/* Its twin: there is room again when a completion was polled, and for no more. */
	send_to_shared(w, 0);
	expect(!post_shared(w, SHARED));
	expect(post_shared(w, SHARED) == -ENOMEM);
	expect_fault(HCA_FAULTS);
}

static void receives_of_a_shared_queue_have_their_limits(struct world *w)
{
	struct ib_sge sges[2] = {
		{ .addr = w->addr[1], .length = PART, .lkey = w->pd->local_dma_lkey },
		{ .addr = w->addr[1] + PART, .length = PART, .lkey = w->pd->local_dma_lkey },
	};
	struct ib_recv_wr wr = { .sg_list = sges, .num_sge = 2 };
	struct ib_srq_attr attr = { .srq_limit = SHARED + 1 };
	const struct ib_recv_wr *bad = NULL;

	if (!share_receives(w))
		return;
	expect(ib_post_srq_recv(w->srq, &wr, &bad) == -EINVAL);
	expect(bad == &wr);
	expect(ib_modify_srq(w->srq, &attr, IB_SRQ_LIMIT) == -EINVAL);
	wr.num_sge = 1;
	expect(ib_post_recv(w->qp[1], &wr, NULL) == -EINVAL);
	expect(!ib_post_srq_recv(w->srq, &wr, NULL));
	expect(send_to_shared(w, 0) == 0);
	expect_fault(HCA_FAULTS);
}

/* The queue's domain counts; neither queue pair's has the region. */
static void a_shared_receive_of_another_domain_is_reported(struct world *w)
{
	u32 lkey = w->pd->local_dma_lkey;
	struct ib_sge sge = { .addr = w->addr[1], .length = PART };
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	w->other_pd = ib_alloc_pd(device, 0);
	if (IS_ERR(w->other_pd) || !share_receives(w))
		return;
	sge.lkey = w->other_pd->local_dma_lkey;
	if (sge.lkey == lkey) {
		skipped = "one key of the device is that of all memory in each domain";
		return;
	}
	expect(!ib_post_srq_recv(w->srq, &wr, NULL));
	post_send(w, w->addr[0], PART, lkey);
	expect(next_status(w) == IB_WC_LOC_PROT_ERR);
	expect(next_status(w) == IB_WC_REM_OP_ERR);
	expect_fault(HCA_NO_REGION);
}

static void await_events(const atomic_t *events, int num)
{
	int i;

	for (i = 0; i < PATIENCE && atomic_read(events) < num; i++)
		usleep_range(500, 1000);
	expect(atomic_read(events) == num);
}

static void that_a_shared_queue_runs_low_is_told_once(struct world *w)
{
	struct ib_srq_attr attr = { .srq_limit = 2 };

	if (!share_receives(w))
		return;
	fill_shared(w);
	expect(!ib_modify_srq(w->srq, &attr, IB_SRQ_LIMIT));
	send_to_shared(w, 0);
	send_to_shared(w, 1);
	expect(!ib_query_srq(w->srq, &attr) && attr.srq_limit == 2);
	expect(!atomic_read(&w->limit_events));
	/* One is left. */
	send_to_shared(w, 0);
	await_events(&w->limit_events, 1);
	send_to_shared(w, 1);
	expect(!ib_query_srq(w->srq, &attr) && !attr.srq_limit);
	/* Again when it is asked for again. */
	attr.srq_limit = 1;
	expect(!ib_modify_srq(w->srq, &attr, IB_SRQ_LIMIT));
	expect(!post_shared(w, 0));
	send_to_shared(w, 0);
	await_events(&w->limit_events, 2);
}

/* It has none of the receives, so none is flushed. */
static void a_queue_pair_that_ends_leaves_a_shared_queue_its_receives(struct world *w)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_wc wc;

	if (!share_receives(w))
		return;
	fill_shared(w);
	expect(!ib_modify_qp(w->qp[1], &attr, IB_QP_STATE));
	await_events(&w->last_events, 1);
	expect(!ib_poll_cq(w->cq, 1, &wc));
	expect(post_shared(w, 0) == -ENOMEM);
}

static void a_queue_pair_takes_along_what_nobody_has_polled_but_not_its_room(struct world *w)
{
	struct ib_wc wc;

	if (!share_receives(w))
		return;
	fill_shared(w);
	post_send(w, w->addr[0], PART, w->pd->local_dma_lkey);
	await_received(w);
	expect(!ib_destroy_qp(w->qp[1]));
	w->qp[1] = NULL;
	expect(next_completion(w, &wc) && wc.opcode == IB_WC_SEND);
	expect(!ib_poll_cq(w->cq, 1, &wc));
	expect(!post_shared(w, 0));
	expect(post_shared(w, 0) == -ENOMEM);
}

#define CASE(name, entries) { #name, name, entries }
static const struct {
	const char *name;
	void (*run)(struct world *w);
	u32 entries;
} cases[] = {
	CASE(a_send_moves_its_bytes_and_is_no_fault, 32),
	CASE(memory_that_was_unmapped_is_reported, 32),
	CASE(memory_of_the_other_direction_is_reported, 32),
	CASE(memory_that_it_may_only_read_is_reported_when_it_writes_there, 32),
	CASE(memory_that_was_unmapped_under_its_region_is_reported, 32),
	CASE(bytes_beside_what_is_mapped_are_reported, 32),
	CASE(bytes_beside_a_region_are_reported, 32),
	CASE(a_region_that_is_given_up_one_work_too_early_is_reported, 32),
	CASE(a_region_that_is_invalidated_is_reported, 32),
	CASE(a_completion_without_room_is_reported, 1),
	CASE(an_unmapping_that_fits_no_mapping_is_reported, 32),
	CASE(a_send_that_no_receive_waits_for_is_given_up, 32),
	CASE(a_peer_that_is_gone_does_not_answer, 32),
	CASE(without_data_a_work_has_ended_when_its_post_returns, 32),
	CASE(two_queue_pairs_receive_out_of_one_shared_queue, 32),
	CASE(a_shared_queue_takes_no_more_than_it_has_room_for, 32),
	CASE(receives_of_a_shared_queue_have_their_limits, 32),
	CASE(a_shared_receive_of_another_domain_is_reported, 32),
	CASE(that_a_shared_queue_runs_low_is_told_once, 32),
	CASE(a_queue_pair_that_ends_leaves_a_shared_queue_its_receives, 32),
	CASE(a_queue_pair_takes_along_what_nobody_has_polled_but_not_its_room, 32),
};

static void run_case(u32 i)
{
	struct world *w = kzalloc(sizeof(*w), GFP_KERNEL | __GFP_NOFAIL);

	failed = 0;
	skipped = NULL;
	hca_expect_faults(true);
	if (!world_init(w, cases[i].entries))
		cases[i].run(w);
	world_end(w);
	hca_expect_faults(false);
	kfree(w);
	if (skipped)
		pr_info("ok %u hca.%s # SKIP %s\n", i + 1, cases[i].name, skipped);
	else
		pr_info("%sok %u hca.%s\n", failed ? "not " : "", i + 1, cases[i].name);
}

static int __init test_init(void)
{
	struct hca_device *hca = hca_first();
	u32 i;

	if (!hca)
		return -ENODEV;
	device = &hca->ib;
	pr_info("1..%zu\n", ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		run_case(i);
	return 0;
}

static void __exit test_exit(void)
{
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("What the HCA for tests reports");
MODULE_LICENSE("GPL");
