// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "side.h"
#include "world.h"

/* An ack time-out of 1.07 s; the quick one is short for an emulated debug kernel. */
#define SLOW_ACK_TIMEOUT	18

struct ibchan_params default_params(void)
{
	return (struct ibchan_params) {
		.access = IBCHAN_ACCESS_SHARED,
		.max_send_wr = IBCHAN_DEFAULT_SEND_WR,
		.max_recv_wr = IBCHAN_DEFAULT_RECV_WR,
		.max_send_sge = IBCHAN_AUTO,
		.max_recv_sge = IBCHAN_AUTO,
		.rnr_retries = IBCHAN_DEFAULT_RNR_RETRIES,
		.ack_retries = IBCHAN_DEFAULT_ACK_RETRIES,
		.min_rnr_timer = IBCHAN_DEFAULT_MIN_RNR_TIMER,
		.ack_timeout = slow() ? SLOW_ACK_TIMEOUT : QUICK_ACK_TIMEOUT,
		.send_psn = IBCHAN_AUTO,
		.recv_psn = IBCHAN_AUTO,
		.gid_index = IBCHAN_AUTO,
		.max_rd_atomic = IBCHAN_AUTO,
	};
}

struct side_options side_defaults(void)
{
	return (struct side_options) {
		.device = DEVICE_A,
		.memory = 65536,
		.mr_access = IBCHAN_ACCESS_SHARED,
		.ring_entries = 256,
		.cq_entries = 512,
		.params = default_params(),
	};
}

int side_cq(struct side *side, const struct side_options *options)
{
	struct ibchan_cmd_cq_create cmd = {
		.flags = options->cq_flags,
		.device = side->device,
		.entries = options->ring_entries,
		.cq_entries = options->cq_entries,
	};
	int rc = cmd_cq_create(side->fd, &cmd);

	side->reason = cmd.reason;
	if (rc)
		return rc;
	side->ring = &side->own_ring;
	return ring_map(side->ring, side->fd, &cmd);
}

int side_memory(struct side *side, const struct side_options *options)
{
	struct ibchan_cmd_mr_reg cmd = {
		.length = options->memory,
		.pd = side->pd,
		.access = options->mr_access,
	};
	int rc;

	side->memory = mmap(NULL, options->memory, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (side->memory == MAP_FAILED) {
		side->memory = NULL;
		return -errno;
	}
	side->length = options->memory;
	cmd.addr = address(side->memory);
	rc = cmd_mr_reg(side->fd, &cmd);
	side->reason = cmd.reason;
	side->mr = cmd.out_mr;
	side->rkey = cmd.out_rkey;
	return rc;
}

int side_channel(struct side *side, const struct side_options *options)
{
	struct ibchan_cmd_channel_build cmd = {
		.pd = side->pd,
		.send_cq = side->ring->cq,
		.recv_cq = side->ring->cq,
		.params = options->params,
		.options = options->options,
	};
	int rc = cmd_channel_build(side->fd, &cmd);

	side->reason = cmd.reason;
	side->channel = cmd.out_channel;
	side->params = cmd.params;
	side->endpoint = cmd.out_endpoint;
	return rc;
}

static int side_fill(struct side *side, const struct side_options *options)
{
	int rc = device_open(side->fd, options->device, &side->device);

	if (!rc)
		rc = pd_alloc(side->fd, side->device, &side->pd);
	if (!rc)
		rc = side_cq(side, options);
	if (!rc)
		rc = side_memory(side, options);
	if (!rc)
		rc = side_channel(side, options);
	return rc;
}

int side_open(struct side *side, const struct side_options *options)
{
	int rc;

	memset(side, 0, sizeof(*side));
	side->fd = node_open();
	if (side->fd < 0)
		return side->fd;
	rc = side_fill(side, options);
	if (rc)
		side_close(side);
	return rc;
}

int side_share(struct side *side, const struct side *host, const struct side_options *options)
{
	int rc;

	memset(side, 0, sizeof(*side));
	side->fd = dup(host->fd);
	if (side->fd < 0)
		return -errno;
	side->device = host->device;
	side->pd = host->pd;
	side->ring = host->ring;
	rc = side_memory(side, options);
	if (!rc)
		rc = side_channel(side, options);
	if (rc)
		side_close(side);
	return rc;
}

void side_close(struct side *side)
{
	if (side->fd > 0)
		close(side->fd);
	side->fd = 0;
	ring_unmap(&side->own_ring);
	side->ring = NULL;
	if (side->memory && munmap(side->memory, side->length))
		munmap(side->memory, side->length);
	side->memory = NULL;
}

int side_handshake(struct side *side, const struct ibchan_endpoint *peer)
{
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = side->channel,
		.endpoint = *peer,
	};
	int rc = cmd_channel_handshake(side->fd, &cmd);

	side->reason = cmd.reason;
	return rc;
}

int side_ask(struct side *asking, const struct side *asked,
	     struct ibchan_cmd_listener_create *listen)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_connect connect = { 0 };
	struct pollfd pollfd = { .events = POLLIN };
	int rc = side_open(asking, &options);

	listen->address.family = AF_INET;
	memcpy(listen->address.bytes, asked->endpoint.gid + 12, 4);
	rc = rc ?: cmd_listener_create(asked->fd, listen);
	connect.channel = asking->channel;
	connect.peer = listen->out_address;
	rc = rc ?: cmd_channel_connect(asking->fd, &connect);
	pollfd.fd = listen->out_fd;
	return rc ?: poll(&pollfd, 1, patience_ms()) == 1 ? rc : -ETIMEDOUT;
}

int side_accept(const struct side *side, __u32 listener, int listener_fd)
{
	return side_accept_any(side, listener, listener_fd, 0);
}

int side_accept_any(const struct side *side, __u32 listener, int listener_fd, __u32 flags)
{
	struct pollfd pollfd = { .fd = listener_fd, .events = POLLIN };
	struct ibchan_cmd_request_accept accept = { .channel = side->channel, .flags = flags };
	struct ibchan_cmd_request_take take = { .listener = listener };
	int rc;

	if (poll(&pollfd, 1, patience_ms()) != 1)
		return -ETIMEDOUT;
	rc = cmd_request_take(side->fd, &take);
	accept.request = take.out_request;
	return rc ?: cmd_request_accept(side->fd, &accept);
}

int side_device(const struct side *side, struct ibchan_cmd_device_query *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->flags = IBCHAN_DEVICE_QUERY_HANDLE;
	cmd->index = side->device;
	return cmd_device_query(side->fd, cmd);
}

bool is_soft_roce(const struct side *side)
{
	struct ibchan_cmd_device_query device;

	return !side_device(side, &device) && device.out.driver_id == RDMA_DRIVER_RXE;
}

__u32 inline_room(__u32 wanted)
{
	struct side_options options = side_defaults();
	struct side side;
	__u32 room = 0;

	options.params.max_inline_data = wanted;
	if (!side_open(&side, &options))
		room = wanted;
	else if (side.reason.code == IBCHAN_REASON_PARAMETER &&
		 side.reason.element == IBCHAN_PARAMETER_MAX_INLINE_DATA)
		room = side.reason.value[2];
	side_close(&side);
	return room;
}

int side_query(const struct side *side, struct ibchan_cmd_channel_query *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->channel = side->channel;
	return cmd_channel_query(side->fd, cmd);
}

int side_state(const struct side *side)
{
	struct ibchan_cmd_channel_query cmd;
	int rc = side_query(side, &cmd);

	return rc ? rc : (int)cmd.out.state;
}

int read_history(const struct side *side, struct ibchan_history_event *events, unsigned int num)
{
	struct ibchan_cmd_channel_history cmd = {
		.channel = side->channel,
		.entries = address(events),
		.entry_len = sizeof(*events),
		.entry_num = num,
	};
	int rc = cmd_channel_history(side->fd, &cmd);

	return rc ? rc : (int)cmd.entry_num;
}

int pair_build(struct pair *pair, enum pair_shape shape, const struct side_options *options)
{
	struct side_options second = *options;
	int rc;

	memset(pair, 0, sizeof(*pair));
	pair->a = &pair->sides[0];
	pair->b = shape == PAIR_LOOPED ? pair->a : &pair->sides[1];
	rc = side_open(pair->a, options);
	if (rc || shape == PAIR_LOOPED)
		return rc;
	if (shape == PAIR_ONE_CQ)
		return side_share(pair->b, pair->a, options);
	if (shape == PAIR_TWO_DEVICES)
		second.device = DEVICE_B;
	return side_open(pair->b, &second);
}

int pair_connect(struct pair *pair)
{
	int rc = side_handshake(pair->a, &pair->b->endpoint);

	if (rc || pair->a == pair->b)
		return rc;
	return side_handshake(pair->b, &pair->a->endpoint);
}

/* What tests ask for is right: a refusal of it is a riddle without its reason. */
static void tell_reasons(const struct pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct ibchan_reason *why = &pair->sides[i].reason;

		fprintf(stderr, "# side %d: fd %d, channel %u, reason %u: %llu %llu %llu\n", i,
			pair->sides[i].fd, pair->sides[i].channel, why->code, why->value[0],
			why->value[1], why->value[2]);
	}
}

int pair_open(struct pair *pair, enum pair_shape shape, const struct side_options *options)
{
	int rc = pair_build(pair, shape, options);

	if (!rc)
		rc = pair_connect(pair);
	if (rc == -EINVAL)
		tell_reasons(pair);
	return rc;
}

void pair_close(struct pair *pair)
{
	side_close(&pair->sides[1]);
	side_close(&pair->sides[0]);
}
