// SPDX-License-Identifier: LGPL-2.1-or-later
/* Completion queues: making, destroying, polling. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "slots.h"
#include "source.h"

/* Takes all away but the slots; needs cq->lock. A child never had the mapping. */
static void cq_strip(struct ibchan_cq *cq)
{
	if (cq->fd < 0)
		return;
	if (cq->ring.base && !context_check(cq->object.context))
		munmap(cq->ring.base, cq->ring.size);
	cq->ring.base = NULL;
	cq->object.handle = 0;
	fd_close(cq->fd);
	cq->fd = -1;
}

static void cq_release(struct object *object)
{
	struct ibchan_cq *cq = (struct ibchan_cq *)object;

	cq_strip(cq);
	free(cq->slots);
	free(cq);
}

static int create(struct ibchan_device *device, __u32 flags, __u32 entries, __u32 cq_entries,
		  struct ibchan_cq **out, struct ibchan_error *error)
{
	struct ibchan_context *context = device->object.context;
	struct ibchan_cmd_cq_create cmd = {
		.size = sizeof(cmd), .flags = flags, .device = device->object.handle,
		.entries = entries ?: IBCHAN_DEFAULT_CQ_ENTRIES, .cq_entries = cq_entries,
	};
	struct ibchan_cq *cq = calloc(1, sizeof(*cq));
	int err = cq ? context_command(context, IBCHAN_CMD_CQ_CREATE, &cmd) : -ENOMEM;
	bool stays;

	if (err) {
		free(cq);
		return error_set(error, err, &cmd.reason);
	}
	cq->object.context = context;
	cq->object.handle = cmd.out_cq;
	cq->fd = cmd.out_fd;
	err = ring_map(cq, cmd.out_ring_size);
	if (err) {
		/* If a filter of system calls keeps it, closing the context ends it. */
		object_end(&cq->object, &stays);
		cq_release(&cq->object);
		return error_set(error, err, &cmd.reason);
	}
	object_add(&cq->object, context, cq_release);
	*out = cq;
	return error_set(error, 0, NULL);
}

int ibchan_cq_create(struct ibchan_device *device, __u32 entries, __u32 cq_entries,
		     struct ibchan_cq **cq, struct ibchan_error *error)
{
	return create(device, 0, entries, cq_entries, cq, error);
}

int ibchan_cq_create_solicited(struct ibchan_device *device, __u32 entries, __u32 cq_entries,
			       struct ibchan_cq **cq, struct ibchan_error *error)
{
	return create(device, IBCHAN_CQ_CREATE_SOLICITED, entries, cq_entries, cq, error);
}

/* Unlocks and ends a cq that no other code knows any more. */
void unlock_last(struct ibchan_cq *cq)
{
	const bool is_shell = cq->fd < 0;

	lock_give(&cq->lock);
	if (is_shell)
		object_free(&cq->object);
	else
		ibchan_cq_destroy(cq);
}

/* @is_own: its channel has gone. A thread that is on its way out of a wait ends the cq then. */
static int destroy(struct ibchan_cq *cq, bool is_own)
{
	bool stays;
	int err;

	source_remove(cq->object.context, &cq->source);
	err = object_end(&cq->object, &stays);
	if (stays && !is_own) {
		source_return(cq->object.context, &cq->source);
		return err;
	}
	/* A child keeps the memory until it closes the context; it is alone with its copy. */
	if (context_check(cq->object.context)) {
		cq_strip(cq);
		return err;
	}
	lock_take(&cq->lock);
	if (!stays)
		cq_strip(cq);
	cq->closed = 1;
	ticket_unlock(cq);
	return err;
}

int ibchan_cq_destroy(struct ibchan_cq *cq)
{
	return cq ? destroy(cq, false) : 0;
}

void cq_close(struct ibchan_cq *cq)
{
	if (cq)
		destroy(cq, true);
}

/* Makes @wr_id the caller's, if it is of a kept work of this cq. */
static bool name_work(struct ibchan_cq *cq, __u64 *wr_id)
{
	struct slot *slot = NULL;

	lock_take(&cq->lock);
	if (cq->fd >= 0)
		slot = slot_of_wr_id(cq, *wr_id);
	if (slot)
		*wr_id = slot->wr_id;
	lock_give(&cq->lock);
	return slot;
}

/*
 * The caller's name of the work that the kernel names. The work may have completed
 * since: then its slot still tells, unless a later work has it already.
 */
__u64 callers_wr_id(struct ibchan_context *context, __u64 wr_id)
{
	struct object *object;
	bool named = false;
	__u32 i;

	pthread_mutex_lock(&context->lock);
	for (i = 0; i < OBJECT_PLACES && !named; i++)
		for (object = context->objects[i]; object && !named; object = object->next)
			named = object->release == cq_release &&
				name_work((struct ibchan_cq *)object, &wr_id);
	pthread_mutex_unlock(&context->lock);
	return wr_id;
}

/*
 * Has the kernel put into the ring what is there. Does not sleep. -ENODEV,
 * -EPROTO: nothing will ever come.
 */
int cq_bring_in(const struct ibchan_cq *cq)
{
	struct ibchan_cmd_submit cmd = { .cq = cq->object.handle };

	return context_submit(cq->object.context, &cmd);
}

/* A descriptor that is readable for ever with nothing to read has a reason. */
static noinline int bring_in_and_take(struct ibchan_cq *cq, struct ibchan_cqe *completions, __u32 n)
{
	int err = cq_bring_in(cq);
	int got = (int)cq_take(cq, completions, n, NULL);

	/* The works of a device that has gone were flushed before that was told. */
	return got ? got : err;
}

int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_cqe *completions, __u32 n)
{
	int ret = context_check(cq->object.context);

	if (unlikely(ret))
		return ret;
	ret = (int)cq_take(cq, completions, n, NULL);
	/* The caller may have come because of the descriptor. */
	if (unlikely(!ret && n && __atomic_load_n(&cq->is_watched, __ATOMIC_RELAXED)))
		return bring_in_and_take(cq, completions, n);
	return ret;
}

int ibchan_cq_fd(struct ibchan_cq *cq)
{
	int err = context_check(cq->object.context);

	if (err)
		return err;
	__atomic_store_n(&cq->is_watched, true, __ATOMIC_RELAXED);
	return cq->fd;
}
