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

#include "source.h"

void ibchan_builder_init_size(struct ibchan_builder *builder, size_t size, struct ibchan_pd *pd,
			      struct ibchan_cq *cq)
{
	const struct ibchan_builder defaults = {
		.size = (__u32)size, .pd = pd, .send_cq = cq, .recv_cq = cq,
		.params = {
			.access = IBCHAN_ACCESS_SHARED,
			.max_send_wr = IBCHAN_DEFAULT_SEND_WR,
			.max_recv_wr = IBCHAN_DEFAULT_RECV_WR,
			.max_send_sge = IBCHAN_AUTO, .max_recv_sge = IBCHAN_AUTO,
			.rnr_retries = IBCHAN_DEFAULT_RNR_RETRIES,
			.ack_retries = IBCHAN_DEFAULT_ACK_RETRIES,
			.min_rnr_timer = IBCHAN_DEFAULT_MIN_RNR_TIMER,
			.ack_timeout = IBCHAN_AUTO,
			.send_psn = IBCHAN_AUTO, .recv_psn = IBCHAN_AUTO,
			.gid_index = IBCHAN_AUTO, .max_rd_atomic = IBCHAN_AUTO,
		},
	};

	memset(builder, 0, size);
	memcpy(builder, &defaults, min(size, sizeof(defaults)));
}

/* Of a channel's own completion queue: the two works by which the channel drains. */
#define OWN_ENTRIES	2U

/*
 * The caller has set no number of entries, but the parameters that it comes from. The refusal names
 * the longer queue of those that complete there, or min_cq_entries if that is more than both.
 */
static void blame_knob(const struct ibchan_builder *builder, struct ibchan_reason *reason)
{
	const __u64 send = builder->send_cq ? 0 : builder->params.max_send_wr;
	const __u64 recv = builder->recv_cq ? 0 : builder->params.max_recv_wr;
	const __u64 other = min(send, recv);
	struct ibchan_device_attr limits;
	__u64 works, depth;

	if (reason->code != IBCHAN_REASON_PARAMETER ||
	    (reason->element != IBCHAN_PARAMETER_CQ_ENTRIES &&
	     reason->element != IBCHAN_PARAMETER_ENTRIES))
		return;
	device_limits(builder->pd->device, &limits);
	works = (__u64)limits.max_cqe - OWN_ENTRIES;
	if (reason->element == IBCHAN_PARAMETER_ENTRIES)
		works = min(works, reason->value[2]);
	reason->value[1] = 1;
	if (builder->min_cq_entries >= send + recv) {
		reason->element = IBCHAN_PARAMETER_CQ_ENTRIES;
		reason->value[0] = builder->min_cq_entries;
		reason->value[2] = works;
		return;
	}
	reason->element = send >= recv ? IBCHAN_PARAMETER_MAX_SEND_WR :
					 IBCHAN_PARAMETER_MAX_RECV_WR;
	reason->value[0] = send + recv - other;
	/* A queue has a place for the marker of its drain. */
	works = works > other ? works - other : works - 1;
	depth = limits.max_qp_wr > 1 ? limits.max_qp_wr - 1 : 1;
	reason->value[2] = min(works, depth);
}

/* As many as can complete there, and the two works by which a channel drains. */
static int own_cq_create(const struct ibchan_builder *builder, struct ibchan_cq **cq,
			 struct ibchan_error *error)
{
	__u64 works = (builder->send_cq ? 0ULL : builder->params.max_send_wr) +
		      (builder->recv_cq ? 0ULL : builder->params.max_recv_wr);
	int err;

	if (works < builder->min_cq_entries)
		works = builder->min_cq_entries;
	works = min(works, UINT32_MAX - OWN_ENTRIES);
	err = ibchan_cq_create(builder->pd->device, (__u32)works, (__u32)works + OWN_ENTRIES, cq,
			       error);
	if (err && error)
		blame_knob(builder, &error->reason);
	return err;
}

static int prepare(const struct ibchan_builder *builder, struct ibchan_prepared **out,
		   struct ibchan_error *error)
{
	struct ibchan_context *context = builder->pd->object.context;
	struct ibchan_cmd_channel_build cmd = {
		.size = sizeof(cmd), .pd = builder->pd->object.handle,
		.send_cq = builder->send_cq->object.handle,
		.recv_cq = builder->recv_cq->object.handle,
		.params = builder->params, .options.keepalive_ms = IBCHAN_KEEPALIVE_OFF,
	};
	struct ibchan_prepared *prepared = calloc(1, sizeof(*prepared));
	int err = prepared ? context_check(context) : -ENOMEM;

	if (!err && builder->keepalive_ns != IBCHAN_TIMEOUT_NEVER)
		err = ms_of_ns(builder->keepalive_ns, &cmd.options.keepalive_ms);
	/* Handles mean something only within their own context. */
	if (!err && (builder->send_cq->object.context != context ||
		     builder->recv_cq->object.context != context))
		err = -EXDEV;
	if (!err)
		err = context_ioctl(context, IBCHAN_CMD_CHANNEL_BUILD, &cmd);
	if (err) {
		free(prepared);
		return error_set(error, err, &cmd.reason);
	}
	prepared->channel = (struct ibchan_channel) {
		.object.handle = cmd.out_channel,
		.pd = builder->pd, .send_cq = builder->send_cq, .recv_cq = builder->recv_cq,
		.params = cmd.params, .endpoint = cmd.out_endpoint,
	};
	object_add(&prepared->channel.object, context, channel_release);
	*out = prepared;
	return error_set(error, 0, NULL);
}

int ibchan_builder_prepare(const struct ibchan_builder *builder, struct ibchan_prepared **out,
			   struct ibchan_error *error)
{
	const struct ibchan_initial_receive *receive;
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_reason reason = { 0 };
	struct ibchan_builder complete;
	struct ibchan_cq *own_cq = NULL;
	int err = params_read(&complete, sizeof(complete), builder, &reason);

	if (err)
		return error_set(error, err, &reason);
	if (!complete.send_cq || !complete.recv_cq) {
		err = own_cq_create(&complete, &own_cq, error);
		if (err)
			return err;
	}
	complete.send_cq = complete.send_cq ?: own_cq;
	complete.recv_cq = complete.recv_cq ?: own_cq;
	err = prepare(&complete, &prepared, error);
	if (err) {
		ibchan_cq_destroy(own_cq);
		return err;
	}
	prepared->channel.own_cq = own_cq;
	/* Nobody else knows the channel yet. */
	for (receive = complete.receives;
	     !err && receive < complete.receives + complete.num_receives; receive++)
		err = ibchan_post_receive(&prepared->channel, receive->mr, receive->offset,
					  receive->length, receive->wr_id, error);
	if (err)
		ibchan_prepared_destroy(prepared);
	else
		*out = prepared;
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

int ibchan_prepared_handshake(struct ibchan_prepared *prepared, const struct ibchan_endpoint *peer,
			      struct ibchan_channel **out, struct ibchan_error *error)
{
	struct ibchan_channel *channel = &prepared->channel;
	struct ibchan_cmd_channel_handshake cmd = {
		.size = sizeof(cmd), .channel = channel->object.handle, .endpoint = *peer,
	};
	int err = context_command(channel->object.context, IBCHAN_CMD_CHANNEL_HANDSHAKE, &cmd);

	if (!err)
		*out = channel;
	return error_set(error, err, &cmd.reason);
}

int ibchan_channel_close(struct ibchan_channel *channel)
{
	void (*closed)(struct messages *m);
	struct ibchan_context *context;
	struct messages *messages;
	struct ibchan_cq *own_cq;
	bool stays, asked;
	int err, lost = 0;

	if (!channel)
		return 0;
	context = channel->object.context;
	own_cq = channel->own_cq;
	messages = channel->messages;
	closed = channel->closed;
	/* A thread that asks the sources may just have met one of its completions. */
	channel->source.is_known |= !channel->object.hidden;
	source_remove(context, &channel->source);
	if (channel->closing && !context_check(context))
		lost = channel->closing(messages);
	err = object_end(&channel->object, &stays);
	if (stays) {
		source_return(context, &channel->source);
		return err;
	}
	/* A thread that asks may have met the channel. Hidden ones are closed by that thread. */
	asked = channel->source.is_known;
	if (!context_check(context)) {
		if (asked)
			lock_take(&context->happenings.asking);
		cq_orphan(channel->send_cq, channel);
		if (channel->recv_cq != channel->send_cq)
			cq_orphan(channel->recv_cq, channel);
		object_free(&channel->object);
		if (asked)
			lock_give(&context->happenings.asking);
	}
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
	return context_check(context) ? NULL : channel_find(context, completion->channel);
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
		.size = sizeof(cmd), .channel = channel->object.handle,
	};
	const int interrupted = errno;
	int err = context_command(channel->object.context, IBCHAN_CMD_CHANNEL_BREAK, &cmd);

	errno = interrupted;
	return err;
}

/* The InfiniBand codes of times. */
#define CODES	32

/* The largest count of retries; a few devices never give up with it. */
#define RETRIES_ENDLESS	7

/* A device may take up to four times the time-out to notice. */
#define ACK_TOLERANCE	4

/* In 10 us: powers of two, and one and a half of them between. Code 0 is the longest. */
#define RNR_UNIT_NS	10000LL

__s64 ibchan_rnr_timer_to_ns(__u32 code)
{
	if (code >= CODES)
		return -EINVAL;
	code = code ?: CODES;
	if (code < 3)
		return code * RNR_UNIT_NS;
	return (code % 2 ? 3LL << (code - 3) / 2 : 1LL << code / 2) * RNR_UNIT_NS;
}

int ibchan_rnr_timer_from_ns(__s64 ns)
{
	__u32 code;

	for (code = 1; ns >= 0 && code <= CODES; code++)
		if (ns <= ibchan_rnr_timer_to_ns(code % CODES))
			return (int)(code % CODES);
	return -EINVAL;
}

/* 4.096 us, doubled by each code. */
#define ACK_UNIT_NS	4096LL

__s64 ibchan_ack_timeout_to_ns(__u32 code)
{
	if (code >= CODES)
		return -EINVAL;
	return code ? ACK_UNIT_NS << code : IBCHAN_TIMEOUT_NEVER;
}

int ibchan_ack_timeout_from_ns(__s64 ns)
{
	int code;

	if (ns == IBCHAN_TIMEOUT_NEVER)
		return 0;
	if (ns < 0)
		return -EINVAL;
	for (code = 1; code < CODES; code++)
		if (ns <= ACK_UNIT_NS << code)
			return code;
	return -EINVAL;
}

/* Of its params, of which the kernel has checked that they are in their ranges. */
static void times_fill(struct ibchan_channel_info *info)
{
	const struct ibchan_params *params = &info->params;

	/* Until a channel by address has its peer, nobody knows. */
	info->ack_timeout_ns = ibchan_ack_timeout_to_ns(params->ack_timeout);
	if (info->ack_timeout_ns < 0)
		info->ack_timeout_ns = IBCHAN_TIMEOUT_NEVER;
	info->rnr_timer_ns = ibchan_rnr_timer_to_ns(params->min_rnr_timer);
	info->worst_case_ns = IBCHAN_TIMEOUT_NEVER;
	if (info->ack_timeout_ns > 0 && params->ack_retries < RETRIES_ENDLESS)
		info->worst_case_ns = ACK_TOLERANCE * info->ack_timeout_ns *
				      (params->ack_retries + 1);
}

/* As the kernel counts stages and keepalives: not less than @ns. It refuses what is too long. */
int ms_of_ns(__s64 ns, __u32 *ms)
{
	const __s64 all = ns / NSEC_PER_MSEC + !!(ns % NSEC_PER_MSEC);

	*ms = (__u32)min(all, UINT32_MAX - 1LL);
	return ns < 0 ? -EINVAL : 0;
}

int ibchan_channel_query(struct ibchan_channel *channel, struct ibchan_channel_info *info,
			 struct ibchan_error *error)
{
	struct ibchan_context *context = channel->object.context;
	struct ibchan_cmd_channel_query cmd = {
		.size = sizeof(cmd), .channel = channel->object.handle,
	};
	const struct ibchan_facts *facts = &cmd.out.facts;
	int err = context_ioctl(context, IBCHAN_CMD_CHANNEL_QUERY, &cmd);

	if (err)
		return error_set(error, err, NULL);
	*info = (struct ibchan_channel_info) {
		.state = cmd.out.state, .error = -(int)cmd.out.error, .status = cmd.out.status,
		.failed_opcode = facts->failed_opcode,
		.failed_vendor_err = facts->failed_vendor_err,
		.failed_wr_id = facts->failed_wr_id, .peer_qpn = facts->peer_qpn,
		.sends_in_flight = cmd.out.sends_in_flight,
		.recvs_in_flight = cmd.out.recvs_in_flight,
		.probes_sent = facts->probes_sent, .probes_answered = facts->probes_answered,
		.age_ns = (__s64)facts->age_ns,
		.keepalive_ns = cmd.out.options.keepalive_ms == IBCHAN_KEEPALIVE_OFF ?
				IBCHAN_TIMEOUT_NEVER :
				cmd.out.options.keepalive_ms * NSEC_PER_MSEC,
		.notice_ns = facts->notice_ms * NSEC_PER_MSEC,
		.params = cmd.out.params, .endpoint = cmd.out.endpoint,
	};
	memcpy(info->device, facts->device, sizeof(info->device));
	memcpy(info->peer_gid, facts->peer_gid, sizeof(info->peer_gid));
	times_fill(info);
	/* In a child, another thread of the parent may have had a lock when it forked. */
	if (info->failed_opcode != IBCHAN_FACTS_NO_OPCODE && !context_check(context))
		info->failed_wr_id = callers_wr_id(context, info->failed_wr_id);
	return error_set(error, 0, NULL);
}

/* The struct is in network order already; its bytes are the wire's. */
static_assert(sizeof(struct ibchan_endpoint) == IBCHAN_ENDPOINT_SIZE,
	      "the size is part of the contract");

void ibchan_endpoint_to_bytes(const struct ibchan_endpoint *endpoint, void *bytes)
{
	memcpy(bytes, endpoint, sizeof(*endpoint));
}

int ibchan_endpoint_from_bytes(struct ibchan_endpoint *endpoint, const void *bytes, size_t length,
			       struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	struct ibchan_endpoint read;

	if (length == sizeof(read))
		memcpy(&read, bytes, sizeof(read));
	if (length != sizeof(read))
		reason = out_of_range(IBCHAN_PARAMETER_LENGTH, length, sizeof(read), sizeof(read));
	else if (be32toh(read.magic) != IBCHAN_ENDPOINT_MAGIC)
		reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_ENDPOINT_MAGIC,
			.value = { IBCHAN_ENDPOINT_MAGIC, be32toh(read.magic) },
		};
	else if (!read.version)
		reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_ENDPOINT_VERSION,
			.value = { IBCHAN_ENDPOINT_VERSION },
		};
	else
		*endpoint = read;
	return error_set(error, reason.code ? -EINVAL : 0, &reason);
}
