// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Channels, from the builder to the end.
 *
 * A prepared channel and a channel are the same object in the kernel, and here
 * the same memory under two types, so that a handshake cannot fail half-way.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void ibchan_builder_init(struct ibchan_builder *builder, struct ibchan_pd *pd,
			 struct ibchan_cq *cq)
{
	*builder = (struct ibchan_builder) {
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.params = {
			.access = IBCHAN_ACCESS_SHARED,
			.max_send_wr = IBCHAN_DEFAULT_SEND_WR,
			.max_recv_wr = IBCHAN_DEFAULT_RECV_WR,
			.max_send_sge = IBCHAN_AUTO,
			.max_recv_sge = IBCHAN_AUTO,
			.rnr_retries = IBCHAN_DEFAULT_RNR_RETRIES,
			.ack_retries = IBCHAN_DEFAULT_ACK_RETRIES,
			.min_rnr_timer = IBCHAN_DEFAULT_MIN_RNR_TIMER,
			.ack_timeout = IBCHAN_AUTO,
			.send_psn = IBCHAN_AUTO,
			.recv_psn = IBCHAN_AUTO,
			.gid_index = IBCHAN_AUTO,
			.max_rd_atomic = IBCHAN_AUTO,
		},
	};
}

static int channel_build(const struct ibchan_builder *builder,
			 struct ibchan_channel *channel,
			 struct ibchan_reason *reason)
{
	struct ibchan_context *context = builder->pd->object.context;
	struct ibchan_cmd_channel_build cmd = {
		.size = sizeof(cmd),
		.pd = builder->pd->object.handle,
		.send_cq = builder->send_cq->object.handle,
		.recv_cq = builder->recv_cq->object.handle,
		.params = builder->params,
		.options = builder->options,
	};
	int err = context_check(context);

	if (err)
		return err;
	if (builder->reserved) {
		reason->code = IBCHAN_REASON_RESERVED;
		return -EINVAL;
	}
	/* Handles mean something only within their own context. */
	if (builder->send_cq->object.context != context ||
	    builder->recv_cq->object.context != context)
		return -EXDEV;
	err = context_ioctl(context, IBCHAN_CMD_CHANNEL_BUILD, &cmd);
	*reason = cmd.reason;
	*channel = (struct ibchan_channel) {
		.object.handle = cmd.out_channel,
		.pd = builder->pd,
		.send_cq = builder->send_cq,
		.recv_cq = builder->recv_cq,
		.params = cmd.params,
		.endpoint = cmd.out_endpoint,
	};
	return err;
}

/* Of a channel's own completion queue: the two works by which the channel drains. */
#define OWN_ENTRIES	2U

/* Works that a completion queue of the caller's own may have. */
static __u64 works_allowed(const struct ibchan_device_info *limits,
			   const struct ibchan_reason *reason)
{
	__u64 works = (__u64)limits->max_cqe - OWN_ENTRIES;

	if (reason->element == IBCHAN_PARAMETER_ENTRIES && reason->value[2] < works)
		works = reason->value[2];
	return works;
}

/*
 * Works of the longer queue, out of @works in both. A queue has a place for the marker of its
 * drain.
 */
static __u64 longest_queue(const struct ibchan_device_info *limits, __u64 works, __u64 other)
{
	__u64 longest = works > other ? works - other : works - 1;
	__u64 depth = limits->max_qp_wr > 1 ? limits->max_qp_wr - 1 : 1;

	return longest < depth ? longest : depth;
}

/* The caller knows no entries, but the knobs that they come from. */
static void blame_knob(const struct ibchan_builder *builder, struct ibchan_reason *reason)
{
	const struct ibchan_params *params = &builder->params;
	__u64 send = builder->send_cq ? 0 : params->max_send_wr;
	__u64 recv = builder->recv_cq ? 0 : params->max_recv_wr;
	__u64 longer = send >= recv ? send : recv;
	__u64 other = send + recv - longer;
	struct ibchan_device_info limits;
	__u64 works;

	if (reason->code != IBCHAN_REASON_PARAMETER ||
	    (reason->element != IBCHAN_PARAMETER_CQ_ENTRIES &&
	     reason->element != IBCHAN_PARAMETER_ENTRIES))
		return;
	device_limits(builder->pd->device, &limits);
	works = works_allowed(&limits, reason);
	reason->value[1] = 1;
	if (builder->min_cq_entries >= send + recv) {
		reason->element = IBCHAN_PARAMETER_CQ_ENTRIES;
		reason->value[0] = builder->min_cq_entries;
		reason->value[2] = works;
		return;
	}
	reason->element = send >= recv ? IBCHAN_PARAMETER_MAX_SEND_WR :
					 IBCHAN_PARAMETER_MAX_RECV_WR;
	reason->value[0] = longer;
	reason->value[2] = longest_queue(&limits, works, other);
}

/* As many as can complete there, and the two works by which a channel drains. */
static int own_cq_create(const struct ibchan_builder *builder,
			 struct ibchan_cq **cq, struct ibchan_error *error)
{
	const struct ibchan_params *params = &builder->params;
	__u64 works = 0;
	int err;

	if (!builder->send_cq)
		works += params->max_send_wr;
	if (!builder->recv_cq)
		works += params->max_recv_wr;
	if (works < builder->min_cq_entries)
		works = builder->min_cq_entries;
	if (works > UINT32_MAX - OWN_ENTRIES)
		works = UINT32_MAX - OWN_ENTRIES;
	err = ibchan_cq_create(builder->pd->device, (__u32)works,
			       (__u32)works + OWN_ENTRIES, cq, error);
	if (err && error)
		blame_knob(builder, &error->reason);
	return err;
}

/* Tells channels from other objects. */
static void channel_release(struct object *object)
{
	free(object);
}

/* NULL: it was closed, or is none of this context. */
struct ibchan_channel *channel_find(struct ibchan_context *context, __u32 handle)
{
	return (struct ibchan_channel *)object_find(context, handle, channel_release);
}

static int prepare(const struct ibchan_builder *builder,
		   struct ibchan_prepared **out, struct ibchan_error *error)
{
	struct ibchan_prepared *prepared = calloc(1, sizeof(*prepared));
	struct ibchan_reason reason = { 0 };
	int err;

	if (!prepared)
		return error_set(error, -ENOMEM, NULL);
	err = channel_build(builder, &prepared->channel, &reason);
	if (err) {
		free(prepared);
		return error_set(error, err, &reason);
	}
	object_add(&prepared->channel.object, builder->pd->object.context,
		   channel_release);
	*out = prepared;
	return error_set(error, 0, NULL);
}

int ibchan_builder_prepare(const struct ibchan_builder *builder,
			   struct ibchan_prepared **out,
			   struct ibchan_error *error)
{
	struct ibchan_builder complete = *builder;
	struct ibchan_cq *own_cq = NULL;
	int err;

	if (!builder->send_cq || !builder->recv_cq) {
		err = own_cq_create(builder, &own_cq, error);
		if (err)
			return err;
	}
	if (!builder->send_cq)
		complete.send_cq = own_cq;
	if (!builder->recv_cq)
		complete.recv_cq = own_cq;
	err = prepare(&complete, out, error);
	if (err)
		ibchan_cq_destroy(own_cq);
	else
		(*out)->channel.own_cq = own_cq;
	return err;
}

void ibchan_prepared_endpoint(const struct ibchan_prepared *prepared,
			      struct ibchan_endpoint *endpoint)
{
	*endpoint = prepared->channel.endpoint;
}

struct ibchan_channel *ibchan_prepared_channel(struct ibchan_prepared *prepared)
{
	return &prepared->channel;
}

void ibchan_prepared_params(const struct ibchan_prepared *prepared,
			    struct ibchan_params *params)
{
	*params = prepared->channel.params;
}

int ibchan_prepared_handshake(struct ibchan_prepared *prepared,
			      const struct ibchan_endpoint *peer,
			      struct ibchan_channel **out,
			      struct ibchan_error *error)
{
	struct ibchan_channel *channel = &prepared->channel;
	struct ibchan_cmd_channel_handshake cmd = {
		.size = sizeof(cmd),
		.channel = channel->object.handle,
		.endpoint = *peer,
	};
	int err = context_check(channel->object.context);

	if (!err)
		err = context_ioctl(channel->object.context,
				    IBCHAN_CMD_CHANNEL_HANDSHAKE, &cmd);
	if (!err)
		*out = channel;
	return error_set(error, err, &cmd.reason);
}

/* All works of the channel are in the ring. Results that are kept become stale. */
static void cq_orphan(struct ibchan_cq *cq,
		      const struct ibchan_channel *channel)
{
	lock_take(&cq->lock);
	ring_sort(cq);
	slots_orphan(cq, channel);
	lock_give(&cq->lock);
}

int ibchan_channel_close(struct ibchan_channel *channel)
{
	void (*closed)(void *messages);
	struct messages *messages;
	struct ibchan_cq *own_cq;
	int err, lost = 0;
	bool stays;

	if (!channel)
		return 0;
	own_cq = channel->own_cq;
	messages = channel->messages;
	closed = channel->closed;
	if (channel->closing && !context_check(channel->object.context))
		lost = channel->closing(messages);
	err = object_end(&channel->object, &stays);
	if (stays)
		return err;
	if (!context_check(channel->object.context)) {
		cq_orphan(channel->send_cq, channel);
		if (channel->recv_cq != channel->send_cq)
			cq_orphan(channel->recv_cq, channel);
	}
	object_free(&channel->object);
	cq_close(own_cq);
	if (closed)
		closed(messages);
	return err ? err : lost;
}

struct ibchan_cq *ibchan_channel_send_cq(const struct ibchan_channel *channel)
{
	return channel->send_cq;
}

struct ibchan_cq *ibchan_channel_recv_cq(const struct ibchan_channel *channel)
{
	return channel->recv_cq;
}

__u32 ibchan_channel_handle(const struct ibchan_channel *channel)
{
	return channel->object.handle;
}

struct ibchan_channel *ibchan_cqe_channel(struct ibchan_context *context,
					  const struct ibchan_cqe *completion)
{
	return channel_find(context, completion->channel);
}

void ibchan_channel_set_priv(struct ibchan_channel *channel, void *priv)
{
	__atomic_store_n(&channel->priv, priv, __ATOMIC_RELEASE);
}

void *ibchan_channel_priv(const struct ibchan_channel *channel)
{
	return __atomic_load_n(&channel->priv, __ATOMIC_ACQUIRE);
}

int ibchan_prepared_destroy(struct ibchan_prepared *prepared)
{
	return ibchan_channel_close(prepared ? &prepared->channel : NULL);
}

/* For signal handlers as well: takes no lock, and what it interrupts may need its errno. */
int ibchan_channel_break(struct ibchan_channel *channel)
{
	struct ibchan_cmd_channel_break cmd = {
		.size = sizeof(cmd),
		.channel = channel->object.handle,
	};
	const int interrupted = errno;
	int err = context_check(channel->object.context);

	if (err)
		return err;
	err = context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_BREAK, &cmd);
	errno = interrupted;
	return err;
}

int ibchan_channel_query(struct ibchan_channel *channel,
			 struct ibchan_channel_info *info, struct ibchan_error *error)
{
	struct ibchan_cmd_channel_query cmd = {
		.size = sizeof(cmd),
		.channel = channel->object.handle,
	};
	int err = context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_QUERY,
				&cmd);

	if (err)
		return error_set(error, err, NULL);
	*info = (struct ibchan_channel_info) {
		.state = cmd.out_state,
		.error = -(int)cmd.out_error,
		.status = cmd.out_status,
		.sends_in_flight = cmd.out_sends_in_flight,
		.recvs_in_flight = cmd.out_recvs_in_flight,
		.params = cmd.params,
		.endpoint = cmd.out_endpoint,
		.options = cmd.options,
		.facts = cmd.out_facts,
	};
	return error_set(error, 0, NULL);
}

int ibchan_channel_times(struct ibchan_channel *channel,
			 struct ibchan_times *times)
{
	struct ibchan_channel_info info;
	int err = ibchan_channel_query(channel, &info, NULL);

	if (!err)
		times_fill(times, &info.params);
	return err;
}

/* The struct is in network order already; its bytes are the wire's. */
static_assert(sizeof(struct ibchan_endpoint) == IBCHAN_ENDPOINT_SIZE,
	      "the size is part of the contract");

void ibchan_endpoint_to_bytes(const struct ibchan_endpoint *endpoint,
			      void *bytes)
{
	memcpy(bytes, endpoint, sizeof(*endpoint));
}

static int endpoint_check(const struct ibchan_endpoint *endpoint,
			  struct ibchan_reason *reason)
{
	if (be32toh(endpoint->magic) != IBCHAN_ENDPOINT_MAGIC) {
		reason->code = IBCHAN_REASON_ENDPOINT_MAGIC;
		reason->value[0] = IBCHAN_ENDPOINT_MAGIC;
		reason->value[1] = be32toh(endpoint->magic);
		return -EINVAL;
	}
	if (!endpoint->version) {
		reason->code = IBCHAN_REASON_ENDPOINT_VERSION;
		reason->value[0] = IBCHAN_ENDPOINT_VERSION;
		return -EINVAL;
	}
	return 0;
}

int ibchan_endpoint_from_bytes(struct ibchan_endpoint *endpoint,
			       const void *bytes, size_t length,
			       struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	struct ibchan_endpoint read;
	int err;

	if (length != sizeof(read))
		return error_set(error, -EINVAL, NULL);
	memcpy(&read, bytes, sizeof(read));
	err = endpoint_check(&read, &reason);
	if (!err)
		*endpoint = read;
	return error_set(error, err, &reason);
}
