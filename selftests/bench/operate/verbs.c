// SPDX-License-Identifier: GPL-2.0-only
/* Operations by libibverbs. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "operate.h"

#define PORT	1
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define POLLED	16

/* Of the two queue pairs: the first one posts, the second receives. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2];
	struct ibv_gid_entry gid;
	struct ibv_send_wr send[DEPTH];
	struct ibv_recv_wr recv[DEPTH];
	struct ibv_sge source[DEPTH];
	struct ibv_sge target[DEPTH];
} verbs;

static int find_gid(void)
{
	struct ibv_gid_entry entries[16];
	ssize_t n = ibv_query_gid_table(verbs.context, entries, 16, 0), i;

	for (i = 0; i < n; i++) {
		/* An IPv4 address is mapped into the last four bytes. */
		if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 || entries[i].gid.raw[10] != 0xff)
			continue;
		verbs.gid = entries[i];
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return -errno;
	verbs.context = list[0] ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	return verbs.context ? find_gid() : -ENODEV;
}

static int make_qp(struct ibv_cq *cq, unsigned int depth, unsigned int elements,
		   struct ibv_qp **qp)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = elements,
			.max_recv_sge = elements,
			.max_inline_data = elements * sizeof(struct ibv_sge),
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = ACCESS,
	};

	*qp = ibv_create_qp(verbs.pd, &init);
	if (!*qp)
		return -errno;
	return -ibv_modify_qp(*qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 16,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = {
				.dgid = verbs.gid.gid,
				.sgid_index = verbs.gid.gid_index,
				.hop_limit = 64,
			},
		},
	};

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 6,
		.max_rd_atomic = RD_ATOMIC,
	};

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC);
}

static int connect_pair(struct ibv_cq *cq, unsigned int depth, unsigned int elements,
			struct ibv_qp *qp[2])
{
	int rc = make_qp(cq, depth, elements, &qp[0]);

	rc = rc ?: make_qp(cq, depth, elements, &qp[1]);
	rc = rc ?: to_rtr(qp[0], qp[1]);
	rc = rc ?: to_rtr(qp[1], qp[0]);
	rc = rc ?: to_rts(qp[0]);
	return rc ?: to_rts(qp[1]);
}

static int verbs_pair_once(void)
{
	struct ibv_cq *cq = ibv_create_cq(verbs.context, 4 * PAIR_DEPTH, NULL, NULL, 0);
	struct ibv_qp *qp[2];
	int rc = cq ? connect_pair(cq, PAIR_DEPTH, PAIR_ELEMENTS, qp) : -errno;

	rc = rc ?: -ibv_destroy_qp(qp[0]);
	rc = rc ?: -ibv_destroy_qp(qp[1]);
	return rc ?: -ibv_destroy_cq(cq);
}

static int verbs_open(unsigned char *memory)
{
	int rc = open_device();

	if (rc)
		return rc;
	verbs.pd = ibv_alloc_pd(verbs.context);
	verbs.cq = verbs.pd ? ibv_create_cq(verbs.context, 4 * DEPTH, NULL, NULL, 0) : NULL;
	verbs.mr = verbs.cq ? ibv_reg_mr(verbs.pd, memory, MEMORY, ACCESS) : NULL;
	return verbs.mr ? connect_pair(verbs.cq, DEPTH, ELEMENTS, verbs.qp) : -errno;
}

static int verbs_close(void)
{
	int rc = -ibv_destroy_qp(verbs.qp[0]);

	rc = rc ?: -ibv_destroy_qp(verbs.qp[1]);
	rc = rc ?: -ibv_dereg_mr(verbs.mr);
	rc = rc ?: -ibv_destroy_cq(verbs.cq);
	rc = rc ?: -ibv_dealloc_pd(verbs.pd);
	return rc ?: -ibv_close_device(verbs.context);
}

static enum ibv_wr_opcode opcode_of(enum what what)
{
	switch (what) {
	case WRITE:
		return IBV_WR_RDMA_WRITE;
	case SEND:
		return IBV_WR_SEND;
	case READ:
		return IBV_WR_RDMA_READ;
	default:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
}

/* A read and an atomic bring the target here; what they name is the source. */
static void load_send(const struct shape *shape, unsigned int i)
{
	bool inward = shape->what == READ || shape->what == ADD;
	struct ibv_sge *here = inward ? &verbs.target[i] : &verbs.source[i];
	struct ibv_sge *there = inward ? &verbs.source[i] : &verbs.target[i];
	struct ibv_send_wr *wr = &verbs.send[i];

	*wr = (struct ibv_send_wr) {
		.wr_id = i,
		.sg_list = here,
		.num_sge = 1,
		.opcode = opcode_of(shape->what),
	};
	if (shape->what == ADD) {
		wr->wr.atomic.remote_addr = there->addr;
		wr->wr.atomic.rkey = verbs.mr->rkey;
		wr->wr.atomic.compare_add = 1;
	} else if (shape->what != SEND) {
		wr->wr.rdma.remote_addr = there->addr;
		wr->wr.rdma.rkey = verbs.mr->rkey;
	}
}

static int verbs_load(const struct shape *shape)
{
	unsigned int i;

	for (i = 0; i < shape->depth; i++) {
		uintptr_t at = (uintptr_t)verbs.mr->addr + place_of(shape, i);
		bool last = (i + 1) % shape->chain == 0;

		verbs.source[i] = (struct ibv_sge) { at, shape->size, verbs.mr->lkey };
		verbs.target[i] = (struct ibv_sge) { at + AREA, shape->size, verbs.mr->lkey };
		load_send(shape, i);
		verbs.send[i].next = last ? NULL : &verbs.send[i + 1];
		verbs.recv[i] = (struct ibv_recv_wr) {
			.wr_id = i,
			.next = last ? NULL : &verbs.recv[i + 1],
			.sg_list = &verbs.target[i],
			.num_sge = 1,
		};
	}
	return 0;
}

static int post(const struct shape *shape, unsigned int i)
{
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	int rc = 0;

	if (shape->what == SEND)
		rc = -ibv_post_recv(verbs.qp[1], &verbs.recv[i], &bad_recv);
	return rc ?: -ibv_post_send(verbs.qp[0], &verbs.send[i], &bad_send);
}

static int reap(unsigned int left)
{
	struct ibv_wc wc[POLLED];
	int i, n;

	while (left) {
		n = ibv_poll_cq(verbs.cq, POLLED, wc);
		if (n < 0)
			return -EIO;
		for (i = 0; i < n; i++)
			if (wc[i].status)
				return -EIO;
		left -= n;
		if (!n)
			let_others_run();
	}
	return 0;
}

static int verbs_run(const struct shape *shape)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < shape->depth; i += shape->chain)
		rc = post(shape, i);
	return rc ?: reap(shape->what == SEND ? 2 * shape->depth : shape->depth);
}

static int verbs_register_once(void *addr, unsigned long length)
{
	struct ibv_mr *mr = ibv_reg_mr(verbs.pd, addr, length, ACCESS);

	return mr ? -ibv_dereg_mr(mr) : -errno;
}

const struct way verbs_way = {
	verbs_open, verbs_load, verbs_run, verbs_register_once, verbs_pair_once, verbs_close
};
