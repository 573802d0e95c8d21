// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs NVMe commands. A capsule arrives; the runner hands its command to the target; a write's
 * data are read from the host before the target executes it, a read's are written to the host
 * in one post with the response. The host may say anything: a capsule without a command ends
 * its controller.
 *
 * Posts take places of the send queue beforehand. An exchange for which there are too few waits,
 * and is posted when places come back, which they do also when the channel breaks.
 */
#include "transport.h"

/* Posts those that wait, as far as there are places, also those that come free meanwhile. */
static void queue_run(struct queue *queue)
{
	struct exchange *next;

	lockdep_assert_held(&queue->lock);
	while (!queue->runs && !list_empty(&queue->waiting)) {
		next = list_first_entry(&queue->waiting, struct exchange, link);
		if (next->places > queue->room)
			return;
		queue->room -= next->places;
		list_del(&next->link);
		queue->runs = true;
		spin_unlock_bh(&queue->lock);
		next->post(next);
		spin_lock_bh(&queue->lock);
		queue->runs = false;
	}
}

static void exchange_post(struct exchange *exchange, u32 places,
			  void (*post)(struct exchange *exchange))
{
	exchange->places = places;
	exchange->post = post;
	spin_lock_bh(&exchange->queue->lock);
	list_add_tail(&exchange->link, &exchange->queue->waiting);
	queue_run(exchange->queue);
	spin_unlock_bh(&exchange->queue->lock);
}

/* @places are free again, and so is @ended unless it is NULL. */
static void queue_give(struct queue *queue, u32 places, struct exchange *ended)
{
	spin_lock_bh(&queue->lock);
	queue->room += places;
	if (ended)
		list_add(&ended->link, &queue->free);
	queue_run(queue);
	spin_unlock_bh(&queue->lock);
}

/* @num works of the exchange, data or response, have ended; with the last one it ends. */
static void exchange_ended(struct exchange *exchange, u32 num)
{
	if (!num || !atomic_sub_and_test(num, &exchange->in_flight))
		return;
	if (exchange->has_list)
		nvmet_req_free_sgls(&exchange->req);
	queue_give(exchange->queue, exchange->places, exchange);
}

static bool is_data_out(const struct exchange *exchange)
{
	return exchange->has_list && !nvme_is_write(exchange->req.cmd) &&
	       !exchange->req.cqe->status;
}

static struct ibchan_wr receive_wr(struct capsule *capsule)
{
	struct ibchan_wr wr = ibchan_wr_receive(capsule->sges, capsule->sges[1].length ? 2 : 1);

	wr.work = &capsule->call.work;
	return wr;
}

/* The capsule's receive, the data and the response, in one post. */
static void post_response(struct exchange *exchange)
{
	struct ibchan_wr wrs[3];
	struct queue *queue = exchange->queue;
	u32 num = 0, accepted = 0;
	int ret;

	wrs[num++] = receive_wr(exchange->capsule);
	if (is_data_out(exchange)) {
		wrs[num] = ibchan_wr_sgl(IBCHAN_OP_WRITE, exchange->req.sg, exchange->req.sg_cnt,
					 &exchange->remote);
		wrs[num].flags |= IBCHAN_WR_UNSIGNALED;
		wrs[num++].work = &exchange->data;
	}
	wrs[num] = ibchan_wr_send(&exchange->sge, 1);
	if (exchange->invalidates)
		wrs[num] = ibchan_wr_send_invalidate(&exchange->sge, 1, exchange->remote.rkey);
	wrs[num++].work = &exchange->response;
	atomic_set(&exchange->in_flight, num - 1);
	ret = test_bit(0, &queue->broken) ? 0 : ibchan_post(queue->ch, wrs, num, &accepted, NULL);
	/* No command may go unanswered. Works that were not posted have ended. */
	if (ret)
		ibchan_channel_break(queue->ch, ret);
	exchange_ended(exchange, num - max(accepted, 1U));
}

static void data_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	exchange_ended(container_of(work, struct exchange, data), 1);
}

static void response_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	exchange_ended(container_of(work, struct exchange, response), 1);
}

/* The target has completed a command: in any context, a disk's interrupt included. */
void exchange_respond(struct nvmet_req *req)
{
	struct exchange *exchange = container_of(req, struct exchange, req);
	struct queue *queue = exchange->queue;
	u32 places = 1;

	if (in_hardirq() || irqs_disabled()) {
		ibchan_runner_add(&queue->runner, &exchange->job);
		return;
	}
	if (is_data_out(exchange))
		places += ibchan_sgl_places(queue->ch, IBCHAN_OP_WRITE, req->sg_cnt);
	exchange_post(exchange, places, post_response);
}

static void respond_job(struct ibchan_job *job)
{
	exchange_respond(&container_of(job, struct exchange, job)->req);
}

/* The channel has broken, or the host serves no reads. */
static void read_failed(struct exchange *exchange)
{
	queue_give(exchange->queue, exchange->places, NULL);
	nvmet_req_complete(&exchange->req, NVME_SC_DATA_XFER_ERROR);
}

static void post_read(struct exchange *exchange)
{
	struct ibchan_wr wr = ibchan_wr_sgl(IBCHAN_OP_READ, exchange->req.sg, exchange->req.sg_cnt,
					    &exchange->remote);
	struct queue *queue = exchange->queue;

	wr.work = &exchange->read.work;
	if (test_bit(0, &queue->broken) || ibchan_post_wr(queue->ch, &wr, NULL))
		read_failed(exchange);
}

/* A write's data are here. Runs by the runner. */
static void read_done(struct ibchan_call *call, const struct ibchan_completion *completion)
{
	struct exchange *exchange = container_of(call, struct exchange, read);

	if (completion->error) {
		read_failed(exchange);
		return;
	}
	queue_give(exchange->queue, exchange->places, NULL);
	exchange->req.execute(&exchange->req);
}

static u16 refuse(struct nvmet_req *req, u16 status)
{
	req->error_loc = offsetof(struct nvme_common_command, dptr);
	return status | NVME_STATUS_DNR;
}

/* Data in the capsule. The offset is within those that came with this one. */
static u16 map_capsule(struct exchange *exchange, u32 received)
{
	struct nvmet_req *req = &exchange->req;
	struct nvme_sgl_desc *sgl = &req->cmd->common.dptr.sgl;
	u32 i, part, length = le32_to_cpu(sgl->length);
	struct scatterlist *sg = exchange->capsule->data;
	u64 offset = le64_to_cpu(sgl->addr);

	if (!nvme_is_write(req->cmd))
		return refuse(req, NVME_SC_INVALID_FIELD);
	if (offset > received || length > received - offset)
		return refuse(req, NVME_SC_SGL_INVALID_OFFSET);
	if (!length)
		return 0;
	sg += offset / PAGE_SIZE;
	offset %= PAGE_SIZE;
	req->sg = sg;
	req->sg_cnt = DIV_ROUND_UP(offset + length, PAGE_SIZE);
	req->transfer_len = length;
	for (i = 0; i < req->sg_cnt; i++, sg++, length -= part, offset = 0) {
		part = min_t(u32, length, PAGE_SIZE - offset);
		sg->offset = offset;
		sg->length = part;
		sg_unmark_end(sg);
	}
	sg_mark_end(sg - 1);
	return 0;
}

/* Data in the host's memory. */
static u16 map_keyed(struct exchange *exchange, bool invalidates)
{
	struct nvmet_req *req = &exchange->req;
	struct nvme_keyed_sgl_desc *sgl = &req->cmd->common.dptr.ksgl;
	u32 length = sgl->length[0] | sgl->length[1] << 8 | sgl->length[2] << 16;
	__le32 key;
	u64 last;

	memcpy(&key, sgl->key, sizeof(key));
	exchange->remote = (struct ibchan_remote){
		.addr = le64_to_cpu(sgl->addr),
		.length = length,
		.rkey = le32_to_cpu(key),
	};
	if (length > TRANSPORT_MAX_DATA || check_add_overflow(exchange->remote.addr, length, &last))
		return refuse(req, NVME_SC_SGL_INVALID_DATA);
	exchange->invalidates = invalidates;
	if (!length)
		return 0;
	req->transfer_len = length;
	if (nvmet_req_alloc_sgls(req) < 0) {
		req->transfer_len = 0;
		return NVME_SC_INTERNAL;
	}
	exchange->has_list = true;
	return 0;
}

static u16 map(struct exchange *exchange, u32 received)
{
	switch (exchange->req.cmd->common.dptr.ksgl.type) {
	case NVME_SGL_FMT_DATA_DESC << 4 | NVME_SGL_FMT_OFFSET:
		return map_capsule(exchange, received);
	case NVME_KEY_SGL_FMT_DATA_DESC << 4 | NVME_SGL_FMT_ADDRESS:
		return map_keyed(exchange, false);
	case NVME_KEY_SGL_FMT_DATA_DESC << 4 | NVME_SGL_FMT_ADDRESS | NVME_SGL_FMT_INVALIDATE:
		return map_keyed(exchange, true);
	default:
		return refuse(&exchange->req, NVME_SC_SGL_INVALID_TYPE);
	}
}

static struct exchange *exchange_take(struct queue *queue)
{
	struct exchange *exchange;

	spin_lock_bh(&queue->lock);
	exchange = list_first_entry_or_null(&queue->free, struct exchange, link);
	if (exchange)
		list_del(&exchange->link);
	spin_unlock_bh(&queue->lock);
	return exchange;
}

/* A capsule has come, or its receive was flushed. Runs by the runner. */
static void capsule_done(struct ibchan_call *call, const struct ibchan_completion *completion)
{
	struct capsule *capsule = container_of(call, struct capsule, call);
	struct queue *queue = container_of(call->runner, struct queue, runner);
	struct exchange *exchange;
	struct nvmet_req *req;
	u16 status;

	if (completion->error || test_bit(0, &queue->broken))
		return;
	/* No command; or one more than it may have while it acknowledges no response. */
	exchange = completion->bytes < sizeof(struct nvme_command) ? NULL :
		   exchange_take(queue);
	if (!exchange) {
		WRITE_ONCE(queue->fatal, true);
		ibchan_channel_break(queue->ch, -EPROTO);
		return;
	}
	exchange->capsule = capsule;
	exchange->has_list = false;
	exchange->invalidates = false;
	req = &exchange->req;
	req->cmd = capsule->command;
	req->port = queue->nport;
	/* The target has answered a command that it refuses here. */
	if (!init_req(req, &queue->nvme_sq, &queue->nvme_cq))
		return;
	status = map(exchange, completion->bytes - sizeof(struct nvme_command));
	if (status)
		nvmet_req_complete(req, status);
	else if (exchange->has_list && nvme_is_write(req->cmd))
		exchange_post(exchange, ibchan_sgl_places(queue->ch, IBCHAN_OP_READ, req->sg_cnt),
			      post_read);
	else
		req->execute(req);
}

/* The queue's memory is there; pages for data begin at @pages. */
void queue_init_commands(struct queue *queue, size_t pages)
{
	size_t at = queue->depth * sizeof(struct nvme_command);
	u32 i, j, bytes = queue->capsule_pages * PAGE_SIZE;

	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->free);
	INIT_LIST_HEAD(&queue->waiting);
	for (i = 0; i < queue->depth; i++) {
		struct capsule *capsule = &queue->capsules[i];
		size_t offset = i * sizeof(*capsule->command);

		ibchan_call_init(&capsule->call, &queue->runner, capsule_done);
		capsule->command = queue->memory + offset;
		capsule->sges[0] = ibchan_sge_new(queue->mr, offset, sizeof(*capsule->command));
		capsule->sges[1] = ibchan_sge_new(queue->mr, pages + i * bytes, bytes);
		sg_init_table(capsule->data, CAPSULE_MAX_PAGES);
		for (j = 0; j < queue->capsule_pages; j++)
			sg_assign_page(&capsule->data[j],
				       vmalloc_to_page(queue->memory + pages + i * bytes +
						       j * PAGE_SIZE));
	}
	for (i = 0; i < 2 * queue->depth; i++, at += sizeof(struct nvme_completion)) {
		struct exchange *exchange = &queue->exchanges[i];

		exchange->queue = queue;
		exchange->req.cqe = queue->memory + at;
		exchange->sge = ibchan_sge_new(queue->mr, at, sizeof(struct nvme_completion));
		exchange->data.done = data_done;
		exchange->response.done = response_done;
		exchange->job.run = respond_job;
		ibchan_call_init(&exchange->read, &queue->runner, read_done);
		list_add_tail(&exchange->link, &queue->free);
	}
}

/* Runs before the channel is connected, so that the host's first capsule finds a receive. */
int queue_post_receives(struct queue *queue)
{
	u32 i;
	int ret = 0;

	for (i = 0; i < queue->depth && !ret; i++) {
		struct ibchan_wr wr = receive_wr(&queue->capsules[i]);

		ret = ibchan_post_wr(queue->ch, &wr, NULL);
	}
	return ret;
}
