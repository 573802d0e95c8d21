// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens and ends NVMe queues, each of which is a channel. A queue comes to life when a host's
 * request is answered, and ends when the channel breaks, by itself or because the target is
 * through with it. First, on the target's work queue, commands that are under way finish, for
 * the channel flushes the works that they wait for, and the target lets go of the queue. Then
 * the channel is closed, and when that is done the memory freed.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#include "transport.h"

static DEFINE_MUTEX(queues_lock);
static LIST_HEAD(queues);
static atomic_t num_queues = ATOMIC_INIT(0);
static struct ibchan_closing closing;

static void queue_put(struct queue *queue)
{
	if (refcount_dec_and_test(&queue->users))
		queue_work(nvmet_wq, &queue->end);
}

/* The channel has broken, or never will be connected. Any context but NMI. */
static void queue_broken(void *priv, int error)
{
	struct queue *queue = priv;

	if (!test_and_set_bit(0, &queue->broken))
		queue_put(queue);
}

/* Breaks the channels of a port's queues, or of a controller's. */
void queues_end(const struct nvmet_port *nport, const struct nvmet_ctrl *ctrl)
{
	struct queue *queue;

	guard(mutex)(&queues_lock);
	list_for_each_entry(queue, &queues, link)
		if (ctrl ? READ_ONCE(queue->nvme_sq.ctrl) == ctrl : queue->nport == nport)
			ibchan_channel_break(queue->ch, -ECONNRESET);
}

/* Waits until all queues have ended. */
void queues_await(void)
{
	wait_var_event(&num_queues, !atomic_read(&num_queues));
	flush_workqueue(nvmet_wq);
	ibchan_closing_wait(&closing);
}

static void queue_free(struct queue *queue)
{
	ibchan_runner_flush(&queue->runner);
	if (!IS_ERR_OR_NULL(queue->mr))
		ibchan_mr_put(queue->mr, NULL, NULL);
	if (!IS_ERR_OR_NULL(queue->cq))
		ibchan_cq_put(queue->cq);
	if (!IS_ERR_OR_NULL(queue->pd)) {
		/* A worker gives the region up, and its memory is in use until then. */
		ibchan_pd_settle(queue->pd);
		/* Memory that the device keeps stays, with the code that it may call. */
		if (ibchan_pd_free(queue->pd)) {
			__module_get(THIS_MODULE);
			return;
		}
	}
	ibchan_device_put(queue->dev);
	vfree(queue->memory);
	kvfree(queue->exchanges);
	kvfree(queue->capsules);
	kfree(queue);
}

/* A worker of ibchan's, behind the end of the channel. */
static void queue_closed(void *priv)
{
	queue_free(priv);
	if (atomic_dec_and_test(&num_queues))
		wake_up_var(&num_queues);
}

static void queue_end(struct work_struct *work)
{
	struct queue *queue = container_of(work, struct queue, end);

	mutex_lock(&queues_lock);
	list_del(&queue->link);
	mutex_unlock(&queues_lock);
	if (READ_ONCE(queue->fatal) && queue->nvme_sq.ctrl)
		nvmet_ctrl_fatal_error(queue->nvme_sq.ctrl);
	nvmet_sq_destroy(&queue->nvme_sq);
	put_cq(&queue->nvme_cq);
	/* Jobs that began before the channel broke may post. */
	ibchan_runner_flush(&queue->runner);
	ibchan_channel_close_async(queue->ch, &closing, queue_closed);
}

/* Reads the host's request. Returns a status of the connection manager's, or 0. */
static int queue_parse(struct queue *queue)
{
	const struct nvme_rdma_cm_req *wanted = (const void *)queue->attr.data;

	if (queue->attr.length < sizeof(*wanted))
		return NVME_RDMA_CM_INVALID_LEN;
	if (le16_to_cpu(wanted->recfmt) != NVME_RDMA_CM_FMT_1_0)
		return NVME_RDMA_CM_INVALID_RECFMT;
	queue->qid = le16_to_cpu(wanted->qid);
	queue->depth = le16_to_cpu(wanted->hsqsize) + 1;
	if (queue->qid > NVMET_NR_QUEUES)
		return NVME_RDMA_CM_INVALID_QID;
	if (queue->depth > (queue->qid ? NVME_RDMA_MAX_QUEUE_SIZE : NVME_AQ_DEPTH))
		return NVME_RDMA_CM_INVALID_HSQSIZE;
	return wanted->hrqsize ? 0 : NVME_RDMA_CM_INVALID_HRQSIZE;
}

/* Commands, then completions, then pages: an element is in one page but for data. */
static int queue_alloc(struct queue *queue)
{
	size_t pages = PAGE_ALIGN(queue->depth * (sizeof(struct nvme_command) +
						  2 * sizeof(struct nvme_completion)));
	size_t size = pages + queue->depth * queue->capsule_pages * PAGE_SIZE;

	queue->memory = vzalloc(size);
	queue->capsules = kvcalloc(queue->depth, sizeof(*queue->capsules), GFP_KERNEL);
	queue->exchanges = kvcalloc(2 * queue->depth, sizeof(*queue->exchanges), GFP_KERNEL);
	if (!queue->memory || !queue->capsules || !queue->exchanges)
		return -ENOMEM;
	queue->mr = ibchan_mr_reg_kernel(queue->pd, queue->memory, size, IBCHAN_ACCESS_LOCAL, NULL);
	if (IS_ERR(queue->mr))
		return PTR_ERR(queue->mr);
	queue_init_commands(queue, pages);
	return 0;
}

/*
 * Places for a response to each command, and for data of some; the longest transfer fits. The host
 * gets no access. It is waited for, and for a link that is away: 2 s per try, as rdma_cm has it.
 */
static void queue_choose(struct queue *queue, const struct ibchan_device_attr *attr,
			 struct ibchan_params *params)
{
	u32 max_sge = min3(attr->max_send_sge, attr->max_read_sge, (u32)IBCHAN_MAX_SGE);
	u32 longest = DIV_ROUND_UP(TRANSPORT_MAX_SGL, max_sge) + 1;
	int pages = min_t(int, attr->max_recv_sge - 1,
			  DIV_ROUND_UP(queue->nport->inline_data_size, PAGE_SIZE));

	/* Before the host asks how much a capsule may carry. */
	queue->nport->inline_data_size = min_t(int, queue->nport->inline_data_size,
					       pages * PAGE_SIZE);
	queue->capsule_pages = queue->qid ? pages : 0;
	queue->room = max(2 * queue->depth, longest);
	ibchan_params_init(params);
	params->access = IBCHAN_ACCESS_LOCAL;
	params->rnr_retries = 7;
	params->ack_timeout = 19;
	params->max_send_sge = min_t(u32, attr->max_send_sge, IBCHAN_MAX_SGE);
	params->max_recv_sge = 1 + queue->capsule_pages;
	params->max_recv_wr = queue->depth;
	params->max_send_wr = queue->room;
}

/* queue_free() gives back the objects that were made; one that failed is an error pointer. */
static int queue_build(struct queue *queue)
{
	struct ibchan_build build = {
		.broken = queue_broken, .priv = queue, .max_sgl = TRANSPORT_MAX_SGL,
		.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF, /* the host has its own */
	};
	struct ibchan_cq_init cq = {};
	struct ibchan_device_attr attr;
	struct ibchan_params params;
	int ret = ibchan_device_query(queue->dev, &attr);

	/* Over iWARP a read would tell the host a key to all memory. */
	if (ret || !(attr.caps & IBCHAN_DEVICE_ENDPOINTS))
		return ret ?: -EOPNOTSUPP;
	queue_choose(queue, &attr, &params);
	params.port = queue->attr.port;
	cq.entries = params.max_send_wr + params.max_recv_wr + 2;
	queue->pd = ibchan_pd_alloc(queue->dev);
	queue->cq = ibchan_cq_create(queue->dev, &cq, NULL);
	if (IS_ERR(queue->pd) || IS_ERR(queue->cq))
		return -ENOMEM;
	ret = queue_alloc(queue);
	if (ret)
		return ret;
	build.pd = queue->pd;
	build.send_cq = queue->cq;
	build.recv_cq = queue->cq;
	queue->ch = ibchan_channel_build(&build, &params, NULL);
	if (IS_ERR(queue->ch))
		return PTR_ERR(queue->ch);
	ret = queue_post_receives(queue) ?: init_sq(&queue->nvme_sq, &queue->nvme_cq);
	if (ret)
		ibchan_channel_close(queue->ch);
	return ret;
}

/* A status of the connection manager's, when the queue is gone; or 0, when it is in the list. */
static int queue_open(struct queue *queue)
{
	int status;

	ibchan_runner_init(&queue->runner);
	INIT_WORK(&queue->end, queue_end);
	refcount_set(&queue->users, 2);
	status = queue_parse(queue);
	if (!status && queue_build(queue))
		status = NVME_RDMA_CM_NO_RSC;
	if (status) {
		queue_free(queue);
		return status;
	}
	atomic_inc(&num_queues);
	scoped_guard(mutex, &queues_lock)
		list_add_tail(&queue->link, &queues);
	return 0;
}

/* From here on the queue ends when its channel breaks. Returns as queue_open(). */
static int queue_accept(struct queue *queue, struct ibchan_request *request)
{
	struct nvme_rdma_cm_rep answer = {
		.recfmt = cpu_to_le16(NVME_RDMA_CM_FMT_1_0), .crqsize = cpu_to_le16(queue->depth),
	};
	struct ibchan_connect connect = {
		.data = &answer, .length = sizeof(answer), .flags = IBCHAN_CONNECT_FOREIGN,
	};
	int ret;

	/* The host may be back before the target is through with its controller. */
	if (!queue->qid)
		flush_workqueue(nvmet_wq);
	ret = ibchan_request_accept(request, queue->ch, &connect, NULL);
	if (ret)
		queue_broken(queue, ret);
	queue_put(queue);
	return ret ? NVME_RDMA_CM_NO_RSC : 0;
}

/* A host asks for a queue. Process context, on a work queue that is not the target's. */
void queue_answer(struct ibchan_request *request, struct nvmet_port *nport)
{
	struct queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	struct nvme_rdma_cm_rej reject = { .recfmt = cpu_to_le16(NVME_RDMA_CM_FMT_1_0) };
	int status = NVME_RDMA_CM_NO_RSC;

	if (queue) {
		ibchan_request_query(request, &queue->attr);
		queue->nport = nport;
		queue->dev = ibchan_request_device(request);
		status = queue_open(queue) ?: queue_accept(queue, request);
	}
	reject.sts = cpu_to_le16(status);
	if (status)
		ibchan_request_reject(request, &reject, sizeof(reject));
}
