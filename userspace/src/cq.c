// SPDX-License-Identifier: LGPL-2.1-or-later
/* Completion queues: making, destroying, polling. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static int cq_map(struct ibchan_cq *cq, size_t size)
{
	int err = ring_map(cq, size);

	if (err)
		return err;
	err = slots_alloc(cq);
	if (err)
		ring_unmap(cq);
	return err;
}

static int cq_create(struct ibchan_cq *cq, struct ibchan_cmd_cq_create *cmd)
{
	struct ibchan_context *context = cq->object.context;
	int err = context_check(context);

	if (!err)
		err = context_ioctl(context, IBCHAN_CMD_CQ_CREATE, cmd);
	if (err)
		return err;
	cq->object.handle = cmd->out_cq;
	cq->fd = cmd->out_fd;
	err = cq_map(cq, cmd->out_ring_size);
	if (err) {
		object_end(&cq->object);
		fd_close(cq->fd);
	}
	return err;
}

/* Takes all away but the slots. A child never had the mapping. */
static void cq_strip(struct ibchan_cq *cq)
{
	if (!context_check(cq->object.context))
		ring_unmap(cq);
	cq->ring.base = NULL;
	cq->object.handle = 0;
	event_close(cq);
	fd_close(cq->fd);
	cq->fd = -1;
}

static void cq_release(struct object *object)
{
	struct ibchan_cq *cq = (struct ibchan_cq *)object;

	if (cq->fd >= 0)
		cq_strip(cq);
	pthread_mutex_destroy(&cq->lock);
	free(cq->slots);
	free(cq);
}

static int create(struct ibchan_device *device,
		  struct ibchan_cmd_cq_create *cmd, struct ibchan_cq **out)
{
	struct ibchan_cq *cq = calloc(1, sizeof(*cq));
	int err;

	if (!cq)
		return -ENOMEM;
	cq->object.context = device->object.context;
	cq->epoll_fd = -1;
	cq->event_fd = -1;
	err = cq_create(cq, cmd);
	if (err) {
		free(cq);
		return err;
	}
	pthread_mutex_init(&cq->lock, NULL);
	object_add(&cq->object, device->object.context, cq_release);
	*out = cq;
	return 0;
}

int ibchan_cq_create(struct ibchan_device *device, __u32 entries,
		     __u32 cq_entries, struct ibchan_cq **cq,
		     struct ibchan_error *error)
{
	struct ibchan_cmd_cq_create cmd = {
		.size = sizeof(cmd),
		.device = device->object.handle,
		.entries = entries ? entries : IBCHAN_DEFAULT_CQ_ENTRIES,
		.cq_entries = cq_entries,
	};
	int err = create(device, &cmd, cq);

	return error_set(error, err, &cmd.reason);
}

int ibchan_cq_create_solicited(struct ibchan_device *device, __u32 entries,
			       __u32 cq_entries, struct ibchan_cq **cq,
			       struct ibchan_error *error)
{
	struct ibchan_cmd_cq_create cmd = {
		.size = sizeof(cmd),
		.flags = IBCHAN_CQ_CREATE_SOLICITED,
		.device = device->object.handle,
		.entries = entries ? entries : IBCHAN_DEFAULT_CQ_ENTRIES,
		.cq_entries = cq_entries,
	};
	int err = create(device, &cmd, cq);

	return error_set(error, err, &cmd.reason);
}

int ibchan_cq_destroy(struct ibchan_cq *cq)
{
	int err;

	if (!cq)
		return 0;
	err = object_end(&cq->object);
	if (err == -EBUSY)
		return err;
	if (cq->kept)
		cq_strip(cq);
	else
		object_free(&cq->object);
	return err;
}

/*
 * What the caller named the work that the kernel names. It may have completed
 * since: then its slot still tells, unless a later work has it already.
 */
__u64 callers_wr_id(struct ibchan_context *context, __u64 wr_id)
{
	struct object *object;

	pthread_mutex_lock(&context->lock);
	for (object = context->objects; object; object = object->next) {
		struct ibchan_cq *cq = (struct ibchan_cq *)object;
		__u32 index;

		if (object->release != cq_release ||
		    !slot_of_wr_id(cq, wr_id, &index))
			continue;
		pthread_mutex_lock(&cq->lock);
		wr_id = cq->slots[index].wr_id;
		pthread_mutex_unlock(&cq->lock);
		break;
	}
	pthread_mutex_unlock(&context->lock);
	return wr_id;
}

int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_completion *completions,
		   __u32 n)
{
	int ret = context_check(cq->object.context);

	if (ret)
		return ret;
	pthread_mutex_lock(&cq->lock);
	ret = ring_take(cq, completions, n);
	pthread_mutex_unlock(&cq->lock);
	return ret;
}
