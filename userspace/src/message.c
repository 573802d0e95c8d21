// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The short way: messages of bytes on a channel. Receives are posted into memory of the
 * channel's own before it has a peer, and again after each message. Sends go from the caller's
 * memory, which the kernel pins, and end before the call does.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "message.h"
#include "slots.h"
#include "wait.h"

#define DEFAULT_MESSAGES	16
#define MAX_MESSAGES		16384	/* what rings have room for */
#define DEFAULT_MESSAGE_BYTES	16384
#define DEFAULT_TIMEOUT_NS	60000000000LL

int station_open(struct station **out, struct ibchan_error *error)
{
	struct station *station = calloc(1, sizeof(*station));
	int err;

	if (!station)
		return error_set(error, -ENOMEM, NULL);
	err = ibchan_context_open(&station->context, error);
	if (err) {
		free(station);
		return err;
	}
	station->users = 1;
	*out = station;
	return 0;
}

void station_put(struct station *station)
{
	if (__atomic_sub_fetch(&station->users, 1, __ATOMIC_ACQ_REL))
		return;
	ibchan_context_close(station->context);
	free(station);
}

static bool is_zero(const void *bytes, size_t length)
{
	const unsigned char *byte = bytes;

	while (length && !*byte++)
		length--;
	return !length;
}

/* What a program built for a later library leaves at 0 is as if it were not there. */
int params_read(const struct ibchan_message_params *params,
		struct ibchan_message_params *complete, struct ibchan_reason *reason)
{
	const size_t known = sizeof(*complete);

	memset(complete, 0, known);
	if (params && params->size > known &&
	    !is_zero((const char *)params + known, params->size - known))
		return -E2BIG;
	if (params)
		memcpy(complete, params, min(params->size, known));
	if (complete->reserved) {
		reason->code = IBCHAN_REASON_RESERVED;
		return -EINVAL;
	}
	if (complete->messages > MAX_MESSAGES || complete->message_bytes > INT_MAX ||
	    complete->timeout_ns < 0 || (params && params->size < sizeof(params->size)))
		return -EINVAL;
	if (!complete->messages)
		complete->messages = DEFAULT_MESSAGES;
	if (!complete->message_bytes)
		complete->message_bytes = DEFAULT_MESSAGE_BYTES;
	if (!complete->timeout_ns)
		complete->timeout_ns = DEFAULT_TIMEOUT_NS;
	return 0;
}

/* --- the channel's own --- */

static size_t memory_size(const struct messages *m)
{
	return (size_t)m->num * m->message_bytes;
}

/* Gives back all but the channel, in reverse order of the making; the channel is gone already. */
static void messages_free(struct messages *m)
{
	ibchan_mr_dereg(m->mr);
	if (m->memory)
		munmap(m->memory, memory_size(m));
	ibchan_cq_destroy(m->cq);
	ibchan_pd_free(m->pd);
	ibchan_device_close(m->device);
	station_put(m->station);
	free(m->messages);
	free(m);
}

static void channel_closed(void *owner)
{
	messages_free(owner);
}

static int memory_make(struct messages *m, struct ibchan_error *error)
{
	size_t size;

	if (__builtin_mul_overflow((size_t)m->num, m->message_bytes, &size))
		return error_set(error, -ENOMEM, NULL);
	m->messages = calloc(m->num, sizeof(*m->messages));
	if (!m->messages)
		return error_set(error, -ENOMEM, NULL);
	m->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->memory == MAP_FAILED) {
		m->memory = NULL;
		return error_set(error, -ENOMEM, NULL);
	}
	return ibchan_mr_reg_local(m->pd, m->memory, size, &m->mr, error);
}

static int post_receive(struct messages *m, struct message *message, struct ibchan_error *error)
{
	const __u32 index = (__u32)(message - m->messages);
	const struct ibchan_sge sge = ibchan_sge_new(m->mr, (size_t)index * m->message_bytes,
						     m->message_bytes);
	struct ibchan_wr wr = ibchan_wr_receive(m->channel, &sge, 1);
	int err;

	wr.wr_id = index;
	err = ibchan_post(m->station->context, &wr, 1, NULL, error);
	if (err) {
		message->next = m->idle;
		m->idle = message;
	} else {
		m->posted++;
	}
	return err;
}

static int channel_make(struct messages *m, struct ibchan_error *error)
{
	struct ibchan_builder builder;
	__u32 i;
	int err;

	ibchan_builder_init(&builder, m->pd, NULL);
	builder.recv_cq = m->cq;
	builder.params.max_recv_wr = m->num;
	builder.params.max_recv_sge = 1;
	builder.options.mode = IBCHAN_MODE_CREDITS;
	err = ibchan_builder_prepare(&builder, &m->prepared, error);
	if (err)
		return err;
	m->channel = ibchan_prepared_channel(m->prepared);
	for (i = 0; i < m->num && !err; i++)
		err = post_receive(m, &m->messages[i], error);
	return err;
}

static int objects_make(struct messages *m, const char *device, struct ibchan_error *error)
{
	struct ibchan_device_info limits;
	int err = ibchan_device_open(m->station->context, device, &m->device);

	if (!err)
		err = ibchan_pd_alloc(m->device, &m->pd);
	if (err)
		return error_set(error, err, NULL);
	device_limits(m->device, &limits);
	m->element_bytes = (size_t)min(limits.max_plain_bytes, UINT32_MAX);
	err = ibchan_cq_create(m->device, m->num, m->num + 2, &m->cq, error);
	if (!err)
		err = memory_make(m, error);
	if (!err)
		err = channel_make(m, error);
	return err;
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
	m->message_bytes = params->message_bytes;
	m->last = &m->first;
	err = objects_make(m, device, error);
	if (err && m->prepared)
		ibchan_prepared_destroy(m->prepared);
	if (err) {
		messages_free(m);
		return err;
	}
	m->channel->messages = m;
	m->channel->closed = channel_closed;
	*out = m;
	return 0;
}

int messages_close(struct messages *m)
{
	return ibchan_channel_close(m->channel);
}

/* --- sending and receiving --- */

static int refuse_long(struct ibchan_error *error, size_t bytes, size_t room)
{
	const struct ibchan_reason reason = {
		.code = IBCHAN_REASON_MESSAGE_TOO_LONG,
		.value = { bytes, room },
	};

	return error_set(error, -EMSGSIZE, &reason);
}

/* Elements of as many pages as one may have. Returns how many bytes they reach. */
static size_t gather(const struct messages *m, const void *bytes, size_t length,
		     struct ibchan_sge *sges, __u32 *num)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = (char *)(uintptr_t)bytes;
	size_t left = length;
	size_t part;

	for (*num = 0; left && *num < m->channel->params.max_send_sge; (*num)++) {
		part = min(left, m->element_bytes - (uintptr_t)at % page);
		sges[*num] = ibchan_sge_plain(at, part);
		at += part;
		left -= part;
	}
	return length - left;
}

int ibchan_send_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      __s64 timeout_ns, struct ibchan_error *error)
{
	struct ibchan_sge sges[IBCHAN_MAX_SGE];
	const struct messages *m = channel->messages;
	struct ibchan_wr wr;
	size_t fits;
	__u32 num;

	if (!m || !length)
		return error_set(error, -EINVAL, NULL);
	fits = gather(m, bytes, min(length, m->peer_bytes), sges, &num);
	if (fits < length)
		return refuse_long(error, length, fits);
	wr = ibchan_wr_send(channel, sges, num);
	return perform_to_the_end(&wr, timeout_ns, error);
}

/* No more messages will arrive: why, in the words of ibchan_receive_bytes(). Under the lock. */
static int end_of(struct messages *m)
{
	struct ibchan_channel_info info;
	int err = m->error ? m->error : ibchan_channel_query(m->channel, &info);

	if (err)
		return err;
	if (info.error == -ECONNRESET)
		return 0;
	if (info.error == -ETIMEDOUT)
		return -EHOSTUNREACH;
	return info.error == -EMSGSIZE ? -EPROTO : info.error;
}

/* A peer that goes this way sends nothing of the kind. */
static bool is_strange(const struct messages *m, const struct ibchan_completion *completion)
{
	return completion->flags & IBCHAN_CQE_IMM || !completion->bytes ||
	       completion->bytes > m->message_bytes || completion->wr_id >= m->num;
}

static void append(struct messages *m, struct message *message, __u32 bytes)
{
	message->bytes = bytes;
	message->next = NULL;
	*m->last = message;
	m->last = &message->next;
}

static void arrived(struct messages *m, const struct ibchan_completion *completion)
{
	if (completion->wr_id < m->num)
		m->posted--;
	if (completion->error) {
		m->over = true;
	} else if (is_strange(m, completion)) {
		m->over = true;
		m->error = -EPROTO;
		ibchan_channel_break(m->channel);
	} else {
		append(m, &m->messages[completion->wr_id], completion->bytes);
	}
}

/* Everything that has arrived, in its order. Under the lock; 0 or a negative errno. */
static int look(struct messages *m)
{
	struct ibchan_completion completions[16];
	int i, num;

	do {
		num = ibchan_cq_poll(m->cq, completions, ARRAY_SIZE(completions));
		for (i = 0; i < num; i++)
			arrived(m, &completions[i]);
	} while (num > 0);
	return num;
}

/* Of those for which there was no memory, say. Under the lock; an errno when none is in flight. */
static int post_idle(struct messages *m)
{
	struct message *message;
	int err = 0;

	while (m->idle && !err) {
		message = m->idle;
		m->idle = message->next;
		err = post_receive(m, message, NULL);
	}
	if (m->posted)
		return 0;
	/* What has broken the channel is there to be told. */
	if (err == -ESHUTDOWN || err == -ENODEV)
		m->over = true;
	return m->over ? 0 : err;
}

static int take_first(struct messages *m, void *buf, size_t room, struct ibchan_error *error)
{
	struct message *message = m->first;
	const __u32 bytes = message->bytes;

	if (bytes > room)
		return refuse_long(error, bytes, room);
	m->first = message->next;
	if (!m->first)
		m->last = &m->first;
	memcpy(buf, m->memory + (size_t)(message - m->messages) * m->message_bytes, bytes);
	post_receive(m, message, NULL);
	error_set(error, 0, NULL);
	return (int)bytes;
}

/* -EAGAIN: none has arrived; @tail: since when. Under the lock. */
static int receive_now(struct messages *m, void *buf, size_t room, __u32 *tail,
		       struct ibchan_error *error)
{
	int err;

	*tail = ring_tail(m->cq);
	err = look(m);
	if (m->first)
		return take_first(m, buf, room, error);
	if (!err && !m->over)
		err = post_idle(m);
	if (err || m->over)
		return error_set(error, err ? err : end_of(m), NULL);
	return -EAGAIN;
}

/* The lock is not held in a sleep, and whatever arrives wakes each thread that sleeps. */
int ibchan_receive_bytes(struct ibchan_channel *channel, void *buf, size_t room,
			 __s64 timeout_ns, struct ibchan_error *error)
{
	struct messages *m = channel->messages;
	struct deadline deadline;
	int ret, wait = 0;
	__u32 tail;

	if (!m || timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return error_set(error, -EINVAL, NULL);
	ret = context_check(m->station->context);
	if (ret)
		return error_set(error, ret, NULL);
	deadline_set(&deadline, timeout_ns);
	for (;;) {
		lock_take(&m->lock);
		ret = receive_now(m, buf, room, &tail, error);
		lock_give(&m->lock);
		if (ret != -EAGAIN)
			return ret;
		/* One last look has been taken after the wait ended. */
		if (wait)
			return error_set(error, wait, NULL);
		wait = cq_sleep(m->cq, tail, &deadline);
	}
}

struct ibchan_pd *ibchan_channel_pd(const struct ibchan_channel *channel)
{
	return channel->pd;
}

struct ibchan_context *ibchan_channel_context(const struct ibchan_channel *channel)
{
	return channel->object.context;
}
