// SPDX-License-Identifier: GPL-2.0-only
/*
 * The baseline: two queue pairs, plain ib_core. Requests are built before the
 * clock runs, so that an operation is a post and a poll and nothing else.
 *
 * On 6.1 a post leaves the transfer to a tasklet. Where bottom halves are off
 * around the post, the tasklet runs as soon as they are on again; where not,
 * ksoftirqd has to be woken up for it.
 */
#include <linux/err.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kbench.h"

struct kbench_raw {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *near;
	struct ib_qp *far;
	struct ib_mr *mr;
	u64 near_dma;
	u64 far_dma;
	struct ib_cqe cqe;
	u32 done;
	int error;
	struct ib_sge near_sge[KBENCH_SLOTS];
	struct ib_sge far_sge[KBENCH_SLOTS];
	struct ib_rdma_wr send[KBENCH_SLOTS];
	struct ib_recv_wr recv[KBENCH_SLOTS];
	struct ib_wc wc[KBENCH_SLOTS];
};

static void raw_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kbench_raw *raw = container_of(wc->wr_cqe, struct kbench_raw, cqe);

	raw->done++;
	if (wc->status != IB_WC_SUCCESS)
		raw->error = -EIO;
}

/* --- posting and taking completions --- */

static __always_inline int raw_post(void *arg, const struct kbench_case *test, u32 slot)
{
	struct kbench_raw *raw = arg;
	int ret = 0;

	if (test->operation == KBENCH_SEND)
		ret = ib_post_recv(raw->far, &raw->recv[slot], NULL);
	return ret ?: ib_post_send(raw->near, &raw->send[slot].wr, NULL);
}

static __always_inline int reap_poll(void *arg)
{
	struct kbench_raw *raw = arg;
	int num = ib_poll_cq(raw->cq, KBENCH_SLOTS, raw->wc);
	int i;

	for (i = 0; i < num; i++)
		if (raw->wc[i].status != IB_WC_SUCCESS)
			raw->error = -EIO;
	if (num < 0)
		return num;
	raw->done += num;
	return raw->error;
}

/* Nobody who posts one at a time asks for more than one. */
static __always_inline int reap_poll_one(void *arg)
{
	struct kbench_raw *raw = arg;
	int num = ib_poll_cq(raw->cq, 1, raw->wc);

	if (num < 0)
		return num;
	if (num && raw->wc[0].status != IB_WC_SUCCESS)
		return -EIO;
	raw->done += num;
	return 0;
}

static __always_inline int reap_direct(void *arg)
{
	struct kbench_raw *raw = arg;

	ib_process_cq_direct(raw->cq, KBENCH_SLOTS);
	return raw->error;
}

static __always_inline int reap_direct_one(void *arg)
{
	struct kbench_raw *raw = arg;

	ib_process_cq_direct(raw->cq, 1);
	return raw->error;
}

/* --- the requests of a case --- */

static void build_slot(struct kbench_raw *raw, const struct kbench_case *test, u32 slot)
{
	u64 offset = (u64)slot * test->bytes;
	struct ib_rdma_wr *send = &raw->send[slot];

	raw->near_sge[slot] = (struct ib_sge){
		.addr = raw->near_dma + offset,
		.length = test->bytes,
		.lkey = raw->pd->local_dma_lkey,
	};
	raw->far_sge[slot] = (struct ib_sge){
		.addr = raw->far_dma + offset,
		.length = test->bytes,
		.lkey = raw->pd->local_dma_lkey,
	};
	raw->recv[slot] = (struct ib_recv_wr){
		.wr_cqe = &raw->cqe, .sg_list = &raw->far_sge[slot], .num_sge = 1,
	};
	*send = (struct ib_rdma_wr){
		.wr = {
			.wr_cqe = &raw->cqe,
			.sg_list = &raw->near_sge[slot],
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	if (test->operation == KBENCH_SEND) {
		send->wr.opcode = IB_WR_SEND;
		return;
	}
	send->wr.opcode = test->operation == KBENCH_READ ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	send->remote_addr = raw->mr->iova + offset;
	send->rkey = raw->mr->rkey;
}

static void build(struct kbench_raw *raw, const struct kbench_case *test)
{
	u32 i;

	raw->error = 0;
	for (i = 0; i < test->depth; i++)
		build_slot(raw, test, i);
	for (i = 1; i < test->depth && test->chained; i++) {
		raw->send[i - 1].wr.next = &raw->send[i].wr;
		raw->recv[i - 1].next = &raw->recv[i];
	}
}

/* --- the ways --- */

#define RAW_WAY(name, take, off)						\
static int name(struct kbench_world *world, const struct kbench_case *test)	\
{										\
	const struct kbench_verbs one = { raw_post, take##_one, off };		\
	const struct kbench_verbs many = { raw_post, take, off };		\
	struct kbench_raw *raw = world->raw;					\
										\
	build(raw, test);							\
	if (test->depth * kbench_completions(test) == 1)			\
		return kbench_drive(raw, test, &raw->done, one);		\
	return kbench_drive(raw, test, &raw->done, many);			\
}

RAW_WAY(run_poll, reap_poll, false)
RAW_WAY(run_poll_bh_off, reap_poll, true)
RAW_WAY(run_direct, reap_direct, false)
RAW_WAY(run_direct_bh_off, reap_direct, true)

const struct kbench_way kbench_raw_ways[] = {
	{ "raw.poll", KBENCH_SLOTS, 1, run_poll },
	{ "raw.poll_bh_off", KBENCH_SLOTS, 1, run_poll_bh_off },
	{ "raw.direct", KBENCH_SLOTS, 1, run_direct },
	{ "raw.direct_bh_off", KBENCH_SLOTS, 1, run_direct_bh_off },
};

const u32 kbench_raw_num_ways = ARRAY_SIZE(kbench_raw_ways);

/* --- a region that the peer may use --- */

static int post_registration(struct kbench_raw *raw)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &raw->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = raw->mr,
		.key = raw->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			  IB_ACCESS_REMOTE_READ,
	};
	unsigned long deadline = jiffies + 10 * HZ;
	int ret = ib_post_send(raw->near, &wr.wr, NULL);

	for (raw->done = 0; !ret && !raw->done;)
		ret = reap_direct(raw) ?: kbench_idle(deadline);
	return ret;
}

static int register_far(struct kbench_raw *raw)
{
	struct scatterlist sg;
	int num;

	raw->mr = ib_alloc_mr(raw->pd, IB_MR_TYPE_MEM_REG, KBENCH_BYTES / PAGE_SIZE);
	if (IS_ERR(raw->mr))
		return PTR_ERR(raw->mr);
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = raw->far_dma;
	sg_dma_len(&sg) = KBENCH_BYTES;
	num = ib_map_mr_sg(raw->mr, &sg, 1, NULL, PAGE_SIZE);
	if (num != 1)
		return num < 0 ? num : -EINVAL;
	return post_registration(raw);
}

static int map_buffers(struct kbench_raw *raw, const struct kbench_buffers *buffers)
{
	raw->near_dma = ib_dma_map_single(raw->dev, buffers->near, KBENCH_BYTES,
					  DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(raw->dev, raw->near_dma))
		return -EIO;
	raw->far_dma = ib_dma_map_single(raw->dev, buffers->far, KBENCH_BYTES,
					 DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(raw->dev, raw->far_dma))
		return 0;
	ib_dma_unmap_single(raw->dev, raw->near_dma, KBENCH_BYTES, DMA_BIDIRECTIONAL);
	return -EIO;
}

static void unmap_buffers(struct kbench_raw *raw)
{
	ib_dma_unmap_single(raw->dev, raw->near_dma, KBENCH_BYTES, DMA_BIDIRECTIONAL);
	ib_dma_unmap_single(raw->dev, raw->far_dma, KBENCH_BYTES, DMA_BIDIRECTIONAL);
}

/* --- life --- */

static int connect_pair(struct kbench_raw *raw)
{
	struct kbench_address address;
	int ret = kbench_address_find(raw->dev, &address);

	if (!ret)
		ret = kbench_qp_connect(raw->near, raw->far, &address);
	return ret ?: kbench_qp_connect(raw->far, raw->near, &address);
}

/* Makes one object after the other; what there is, release_objects() finds. */
static int make_objects(struct kbench_raw *raw)
{
	int ret;

	raw->pd = ib_alloc_pd(raw->dev, 0);
	if (IS_ERR(raw->pd))
		return PTR_ERR(raw->pd);
	raw->cq = ib_alloc_cq(raw->dev, NULL, 4 * (KBENCH_QUEUE + 1), 0, IB_POLL_DIRECT);
	if (IS_ERR(raw->cq))
		return PTR_ERR(raw->cq);
	raw->near = kbench_qp_create(raw->pd, raw->cq, KBENCH_QUEUE, 1);
	if (IS_ERR(raw->near))
		return PTR_ERR(raw->near);
	raw->far = kbench_qp_create(raw->pd, raw->cq, KBENCH_QUEUE, 1);
	if (IS_ERR(raw->far))
		return PTR_ERR(raw->far);
	ret = connect_pair(raw);
	return ret ?: register_far(raw);
}

static void release_objects(struct kbench_raw *raw)
{
	if (!IS_ERR_OR_NULL(raw->far))
		ib_destroy_qp(raw->far);
	if (!IS_ERR_OR_NULL(raw->near))
		ib_destroy_qp(raw->near);
	if (!IS_ERR_OR_NULL(raw->mr))
		ib_dereg_mr(raw->mr);
	if (!IS_ERR_OR_NULL(raw->cq))
		ib_free_cq(raw->cq);
	if (!IS_ERR_OR_NULL(raw->pd))
		ib_dealloc_pd(raw->pd);
}

/**
 * kbench_raw_open - a connected pair with its memory
 * @dev: of both ends
 * @buffers: of both ends; the far one can be written and read by the near end
 *
 * Return: the pair, for kbench_raw_close(); an errno.
 */
struct kbench_raw *kbench_raw_open(struct ib_device *dev, const struct kbench_buffers *buffers)
{
	struct kbench_raw *raw = kzalloc(sizeof(*raw), GFP_KERNEL);
	int ret;

	if (!raw)
		return ERR_PTR(-ENOMEM);
	raw->dev = dev;
	raw->cqe.done = raw_done;
	ret = map_buffers(raw, buffers);
	if (ret) {
		kfree(raw);
		return ERR_PTR(ret);
	}
	ret = make_objects(raw);
	if (ret) {
		kbench_raw_close(raw);
		return ERR_PTR(ret);
	}
	return raw;
}

void kbench_raw_close(struct kbench_raw *raw)
{
	release_objects(raw);
	unmap_buffers(raw);
	kfree(raw);
}
