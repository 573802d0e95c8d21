// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The short way: the objects that a channel of it owns. Its receives are posted, into memory of the
 * channel's own, before it has a peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "message.h"

#define DEFAULT_MESSAGES	16
#define MAX_MESSAGES		8000	/* twice as many works have room in a queue */
#define DEFAULT_MESSAGE_BYTES	16384
#define MAX_MESSAGE_BYTES	0x40000000
#define DEFAULT_TIMEOUT_NS	60000000000LL

static int params_complete(const struct ibchan_message_params *params,
			   struct ibchan_message_params *complete, struct ibchan_reason *reason)
{
	int err = 0;

	memset(complete, 0, sizeof(*complete));
	if (params)
		err = params_read(complete, sizeof(*complete), params, reason);
	if (err)
		return err;
	if (complete->reserved)
		reason->code = IBCHAN_REASON_RESERVED;
	else if (complete->timeout_ns < 0)
		*reason = out_of_range(IBCHAN_PARAMETER_TIMEOUT_NS, (__u64)complete->timeout_ns, 0,
				       INT64_MAX);
	else if (complete->message_bytes > MAX_MESSAGE_BYTES)
		*reason = out_of_range(IBCHAN_PARAMETER_MESSAGE_BYTES, complete->message_bytes, 0,
				       MAX_MESSAGE_BYTES);
	else if (complete->messages > MAX_MESSAGES)
		*reason = out_of_range(IBCHAN_PARAMETER_MESSAGES, complete->messages, 0,
				       MAX_MESSAGES);
	if (reason->code)
		return -EINVAL;
	complete->messages = complete->messages ?: DEFAULT_MESSAGES;
	complete->message_bytes = complete->message_bytes ?: DEFAULT_MESSAGE_BYTES;
	complete->timeout_ns = complete->timeout_ns ?: DEFAULT_TIMEOUT_NS;
	return 0;
}

int station_open(const struct ibchan_message_params *params,
		 struct ibchan_message_params *complete, struct station **out,
		 struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	int err = params_complete(params, complete, &reason);
	struct station *station = err ? NULL : calloc(1, sizeof(*station));

	if (!station)
		return error_set(error, err ?: -ENOMEM, &reason);
	station->context = complete->context;
	station->is_own = !station->context;
	station->users = 1;
	if (station->is_own)
		err = ibchan_context_open(&station->context, error);
	if (err)
		free(station);
	else
		*out = station;
	return err;
}

void station_put(struct station *station)
{
	if (__atomic_sub_fetch(&station->users, 1, __ATOMIC_ACQ_REL))
		return;
	if (station->is_own)
		ibchan_context_close(station->context);
	free(station);
}

/* --- the channel's own --- */

static size_t memory_size(const struct messages *m)
{
	return (size_t)(m->num_inboxes + m->num) * m->box_bytes +
	       (CONTROL_FRAMES + 1) * sizeof(struct frame);
}

/* Gives back all but the channel, in reverse order of the making; the channel is gone already. */
static void messages_free(struct messages *m)
{
	struct lent *lent;

	while ((lent = m->lent)) {
		m->lent = lent->next;
		lent_free(lent);
	}
	ibchan_mr_dereg(m->mr);
	if (m->memory)
		munmap(m->memory, memory_size(m));
	ibchan_cq_destroy(m->cq);
	ibchan_pd_free(m->pd);
	ibchan_device_close(m->device);
	station_put(m->station);
	free(m->inboxes);
	free(m);
}

static int memory_make(struct messages *m, struct ibchan_error *error)
{
	const size_t size = memory_size(m);
	void *memory = MAP_FAILED;
	__u32 i;

	m->inboxes = calloc(m->num_inboxes, sizeof(*m->inboxes));
	if (m->inboxes && m->box_bytes <= (SIZE_MAX / 2) / (m->num_inboxes + m->num))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (memory == MAP_FAILED)
		return error_set(error, -ENOMEM, NULL);
	m->memory = memory;
	for (i = 0; i < m->num_inboxes; i++) {
		m->inboxes[i].bytes = m->memory + i * m->box_bytes;
		m->inboxes[i].next = m->idle;
		m->idle = &m->inboxes[i];
	}
	return ibchan_mr_reg_local(m->pd, m->memory, size, &m->mr, error);
}

/*
 * Sends ask for no completion. The module has at most half of a queue wait for one that does, so
 * the other half has to hold what may be under way.
 */
static int channel_make(struct messages *m, struct ibchan_error *error)
{
	struct ibchan_builder builder;
	int err;

	ibchan_builder_init(&builder, m->pd, NULL);
	builder.recv_cq = m->cq;
	builder.params.max_recv_wr = m->num_inboxes;
	builder.params.max_recv_sge = 1;
	builder.params.max_send_wr += 2 * m->num_inboxes;
	err = ibchan_builder_prepare(&builder, &m->prepared, error);
	if (err)
		return err;
	m->channel = ibchan_prepared_channel(m->prepared);
	/* Nobody but the library knows it. */
	object_hide(&m->channel->object);
	return stream_post(m, NULL, error);
}

int messages_make(struct station *station, const char *device,
		  const struct ibchan_message_params *params, struct messages **out,
		  struct ibchan_error *error)
{
	struct messages *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return error_set(error, -ENOMEM, NULL);
	__atomic_add_fetch(&station->users, 1, __ATOMIC_RELAXED);
	m->station = station;
	m->num = params->messages;
	m->num_inboxes = m->num + CONTROL_FRAMES;
	m->message_bytes = params->message_bytes;
	/* A box has room for each kind of frame, and begins where numbers may lie. */
	m->box_bytes = sizeof(struct frame) + (size_t)m->message_bytes;
	if (m->box_bytes < sizeof(struct frame_offer))
		m->box_bytes = sizeof(struct frame_offer);
	m->box_bytes = (m->box_bytes + 15) & ~(size_t)15;
	m->last = &m->first;
	m->lent_last = &m->lent;
	err = ibchan_device_open(station->context, device, &m->device, error) ?:
	      ibchan_pd_alloc(m->device, &m->pd, error) ?:
	      ibchan_cq_create(m->device, m->num_inboxes, m->num_inboxes + 2, &m->cq, error) ?:
	      memory_make(m, error) ?: channel_make(m, error);
	if (err) {
		ibchan_channel_close(m->channel);
		messages_free(m);
		return err;
	}
	m->channel->messages = m;
	m->channel->closing = stream_end;
	m->channel->closed = messages_free;
	m->channel->source.tell = stream_tell;
	*out = m;
	return 0;
}

int ibchan_channel_message_params(const struct ibchan_channel *channel,
				  struct ibchan_message_params *agreed)
{
	const struct messages *m = channel->messages;
	struct ibchan_message_params all;

	if (!m || agreed->size < sizeof(agreed->size))
		return -EINVAL;
	all = (struct ibchan_message_params) {
		.size = agreed->size, .messages = m->window.size, .message_bytes = m->peer_bytes,
		.context = channel->object.context,
	};
	memcpy(agreed, &all, all.size < sizeof(all) ? all.size : sizeof(all));
	return 0;
}

struct ibchan_pd *ibchan_channel_pd(const struct ibchan_channel *channel)
{
	return channel->pd;
}

struct ibchan_context *ibchan_channel_context(const struct ibchan_channel *channel)
{
	return channel->object.context;
}
