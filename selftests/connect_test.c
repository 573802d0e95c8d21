// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a builder's parameters to a connected channel and to its end.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stddef.h>

#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(channel)
{
	struct calm calm;
	struct side side;	/* has no peer yet */
	struct side_options options;
};

FIXTURE_SETUP(channel)
{
	self->options = side_defaults();
	self->options.params.rnr_retries = 7;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &self->options));
}

FIXTURE_TEARDOWN(channel)
{
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_cmd_channel_build build_request(const struct side *side)
{
	return (struct ibchan_cmd_channel_build) {
		.pd = side->pd,
		.send_cq = side->ring->cq,
		.recv_cq = side->ring->cq,
		.params = default_params(),
	};
}

/* Builds and gives back. */
static int try_build(const struct side *side, struct ibchan_cmd_channel_build *cmd)
{
	int rc = cmd_channel_build(side->fd, cmd);

	return rc ? rc : destroy(side->fd, cmd->out_channel);
}

#define PARAM(name, NAME, ...)							\
	{ #name, IBCHAN_PARAMETER_##NAME, offsetof(struct ibchan_params, name), __VA_ARGS__ }

static const struct param {
	const char *name;
	__u32 number;
	size_t offset;
	__u32 lowest;
	__u32 highest;	/* the device may have less; 0: it says */
	__u32 good[3];	/* besides the two, unless the device has less; 0 ends them */
	__u32 bad[4];	/* unless the device has more */
} params[] = {
	PARAM(max_send_wr, MAX_SEND_WR, 1, 0, { 2 }, { 0, 0x80000000, 0xffffffff }),
	PARAM(max_recv_wr, MAX_RECV_WR, 1, 0, { 2 }, { 0, 0x80000000, 0xffffffff }),
	PARAM(max_send_sge, MAX_SEND_SGE, 1, 32, { 2, IBCHAN_AUTO }, { 0, 33, 0xfffffffe }),
	PARAM(max_recv_sge, MAX_RECV_SGE, 1, 32, { 2, IBCHAN_AUTO }, { 0, 33, 0xfffffffe }),
	PARAM(rnr_retries, RNR_RETRIES, 0, 7, { 6 }, { 8, 255, 0xffffffff }),
	PARAM(ack_retries, ACK_RETRIES, 0, 7, { 6 }, { 8, 255, 0xffffffff }),
	PARAM(min_rnr_timer, MIN_RNR_TIMER, 0, 31, { 1 }, { 32, 255, 0xffffffff }),
	PARAM(ack_timeout, ACK_TIMEOUT, 0, 31, { 18, IBCHAN_AUTO }, { 32, 255, 0xfffffffe }),
	PARAM(mtu, MTU, 256, 4096, { 256, 512, 1024 }, { 1, 255, 257, 8192 }),
	PARAM(send_psn, SEND_PSN, 0, 0xffffff, { IBCHAN_AUTO }, { 0x1000000, 0xfffffffe }),
	PARAM(recv_psn, RECV_PSN, 0, 0xffffff, { IBCHAN_AUTO }, { 0x1000000, 0xfffffffe }),
	PARAM(port, PORT, 1, 1, { 1 }, { 2, 255, 0xffffffff }),
	PARAM(max_rd_atomic, MAX_RD_ATOMIC, 1, 0, { 16, IBCHAN_AUTO }, { 0, 0x10000 }),
	PARAM(traffic_class, TRAFFIC_CLASS, 0, 255, { 8 }, { 256, 0xffffffff }),
	PARAM(service_level, SERVICE_LEVEL, 0, 15, { 3 }, { 16, 0xffffffff }),
	PARAM(max_inline_data, MAX_INLINE_DATA, 0, 0, { 64, 512 }, { 1025, 513, 0xffffffff }),
};

static __u32 *param_of(struct ibchan_cmd_channel_build *cmd, const struct param *param)
{
	return (__u32 *)((char *)&cmd->params + param->offset);
}

static __u32 lower_of(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* @highest, or what the device has; 0: it does not say. */
static __u32 highest_of(const struct side *side, const struct param *param)
{
	struct ibchan_cmd_device_query device;

	if (side_device(side, &device))
		return param->highest;
	switch (param->number) {
	case IBCHAN_PARAMETER_MAX_SEND_SGE:
		return lower_of(param->highest, device.out.max_send_sge);
	case IBCHAN_PARAMETER_MAX_RECV_SGE:
		return lower_of(param->highest, device.out.max_recv_sge);
	case IBCHAN_PARAMETER_PORT:
		return device.out.ports;
	default:
		return param->highest;
	}
}

/* 0 stands for "choose" where it is below the range, and ends the list of bad values. */
static int refuses(const struct side *side, const struct param *param, __u32 value)
{
	struct ibchan_cmd_channel_build cmd = build_request(side);
	const struct ibchan_reason *reason = &cmd.reason;
	__u32 highest = highest_of(side, param);
	int rc;

	if (value > param->lowest && value <= highest)
		return 0;
	*param_of(&cmd, param) = value;
	rc = try_build(side, &cmd);
	if (rc == -EINVAL && reason->code == IBCHAN_REASON_PARAMETER &&
	    reason->element == param->number && reason->value[0] == value &&
	    reason->value[1] == param->lowest &&
	    (highest ? reason->value[2] == highest :
		       reason->value[2] < value || value < param->lowest))
		return 0;
	fprintf(stderr, "# %s %#x: %d, reason %u.%u: %#llx not in %#llx to %#llx\n", param->name,
		value, rc, reason->code, reason->element, reason->value[0], reason->value[1],
		reason->value[2]);
	return -EBADMSG;
}

TEST_F(channel, refuses_each_parameter_outside_its_range_and_says_the_range)
{
	unsigned int i, v;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		for (v = 0; v < ARRAY_SIZE(params[i].bad); v++) {
			if (v && !params[i].bad[v])
				break;
			EXPECT_EQ(0, refuses(&self->side, &params[i], params[i].bad[v]));
		}
	}
}

TEST_F(channel, takes_each_parameter_at_the_ends_of_its_range)
{
	__u32 room = inline_room(512);
	unsigned int i, v;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		const struct param *param = &params[i];
		__u32 values[5] = { param->lowest,
				    highest_of(&self->side, param) ?: param->lowest };

		memcpy(values + 2, param->good, sizeof(param->good));
		for (v = 0; v < ARRAY_SIZE(values); v++) {
			struct ibchan_cmd_channel_build cmd = build_request(&self->side);

			/* What the network device's own MTU forbids has a test of its own. */
			if ((v > 1 && !values[v]) ||
			    (param->number == IBCHAN_PARAMETER_MTU && values[v] > 1024) ||
			    (param->number == IBCHAN_PARAMETER_MAX_INLINE_DATA && values[v] > room))
				continue;
			*param_of(&cmd, param) = values[v];
			EXPECT_EQ(0, try_build(&self->side, &cmd))
				TH_LOG("%s %#x", param->name, values[v]);
			if (values[v] != IBCHAN_AUTO)
				EXPECT_EQ(values[v], *param_of(&cmd, param))
					TH_LOG("%s", param->name);
		}
	}
}

TEST_F(channel, says_the_range_of_a_queue_as_the_device_has_it)
{
	struct ibchan_cmd_device_query device = {};
	struct ibchan_cmd_channel_build cmd = build_request(&self->side);

	ASSERT_EQ(0, cmd_device_query(self->side.fd, &device));
	cmd.params.max_send_wr = device.out.max_qp_wr + 1;
	EXPECT_EQ(-EINVAL, try_build(&self->side, &cmd));
	EXPECT_EQ(IBCHAN_PARAMETER_MAX_SEND_WR, cmd.reason.element);
	EXPECT_GE(device.out.max_qp_wr, cmd.reason.value[2]);
	EXPECT_LT(16, cmd.reason.value[2]);
	cmd = build_request(&self->side);
	cmd.params.max_rd_atomic = device.out.max_rd_atomic + 1;
	EXPECT_EQ(-EINVAL, try_build(&self->side, &cmd));
	EXPECT_EQ(device.out.max_rd_atomic, cmd.reason.value[2]);
}

TEST_F(channel, refuses_a_wrong_combination_of_access)
{
	struct ibchan_cmd_channel_build cmd = build_request(&self->side);

	cmd.params.access = IBCHAN_ACCESS_REMOTE_WRITE;
	EXPECT_EQ(-EINVAL, try_build(&self->side, &cmd));
	EXPECT_EQ(IBCHAN_REASON_ACCESS_COMBINATION, cmd.reason.code);
	cmd.params.access = IBCHAN_ACCESS_ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, try_build(&self->side, &cmd));
	cmd.params.access = 0;
	EXPECT_EQ(0, try_build(&self->side, &cmd));
}

TEST_F(channel, refuses_an_entry_without_an_address)
{
	struct ibchan_cmd_port_query port = about_port_of(DEVICE_A);
	struct ibchan_cmd_channel_build cmd = build_request(&self->side);

	ASSERT_EQ(0, cmd_port_query(self->side.fd, &port));
	ASSERT_LT(1, port.out.gid_entries);
	cmd.params.gid_index = port.out.gid_entries - 1;
	EXPECT_EQ(-EINVAL, try_build(&self->side, &cmd));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, cmd.reason.code);
	EXPECT_EQ(IBCHAN_PARAMETER_GID_INDEX, cmd.reason.element);
	EXPECT_EQ(port.out.gid_entries - 1, cmd.reason.value[0]);
	cmd.params.gid_index = port.out.gid_entries;
	EXPECT_EQ(-EINVAL, try_build(&self->side, &cmd));
	EXPECT_EQ(port.out.gid_entries - 1, cmd.reason.value[2]);
	cmd.params.gid_index = port.out.gid_index;
	EXPECT_EQ(0, try_build(&self->side, &cmd));
}

TEST_F(channel, that_does_not_fit_on_its_cq_is_refused)
{
	struct ibchan_cmd_channel_build cmd;
	__u32 channel;

	self->options.cq_entries = 40;
	side_close(&self->side);
	/* One channel of 16 and 16 and the two for its end. */
	ASSERT_EQ(0, side_open(&self->side, &self->options));
	channel = self->side.channel;
	cmd = build_request(&self->side);
	EXPECT_EQ(-EAGAIN, try_build(&self->side, &cmd));
	EXPECT_EQ(IBCHAN_REASON_CQ_FULL, cmd.reason.code);
	EXPECT_LT(cmd.reason.value[1], cmd.reason.value[0]);
	EXPECT_LE(cmd.reason.value[1], 8);
	cmd = build_request(&self->side);
	cmd.params.max_send_wr = 2;
	cmd.params.max_recv_wr = 2;
	EXPECT_EQ(0, try_build(&self->side, &cmd));
	/* And the room comes back. */
	ASSERT_EQ(0, destroy(self->side.fd, channel));
	cmd = build_request(&self->side);
	EXPECT_EQ(0, try_build(&self->side, &cmd));
}

TEST_F(channel, writes_back_what_was_chosen)
{
	const struct ibchan_params *chosen = &self->side.params;
	struct ibchan_params wanted = default_params();

	EXPECT_EQ(wanted.access, chosen->access);
	EXPECT_EQ(IBCHAN_DEFAULT_SEND_WR, chosen->max_send_wr);
	EXPECT_EQ(IBCHAN_DEFAULT_RECV_WR, chosen->max_recv_wr);
	EXPECT_EQ(IBCHAN_DEFAULT_SEND_SGE, chosen->max_send_sge);
	EXPECT_EQ(IBCHAN_DEFAULT_RECV_SGE, chosen->max_recv_sge);
	EXPECT_EQ(IBCHAN_DEFAULT_ACK_RETRIES, chosen->ack_retries);
	EXPECT_EQ(IBCHAN_DEFAULT_MIN_RNR_TIMER, chosen->min_rnr_timer);
	EXPECT_EQ(1, chosen->port);
	EXPECT_NE(IBCHAN_AUTO, chosen->gid_index);
	EXPECT_GE(0xffffff, chosen->send_psn);
	EXPECT_EQ(chosen->send_psn, ntohl(self->side.endpoint.psn));
}

TEST_F(channel, reports_the_agreed_mtu_and_peers_psn_once_connected)
{
	struct ibchan_cmd_channel_query query;

	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, side_query(&self->side, &query));
	EXPECT_EQ(1024, query.out.params.mtu);
	EXPECT_EQ(ntohl(self->side.endpoint.psn), query.out.params.recv_psn);
	EXPECT_LE(1, query.out.params.max_rd_atomic);
	EXPECT_GE(255, query.out.params.max_rd_atomic);
	EXPECT_EQ(0, memcmp(&self->side.endpoint, &query.out.endpoint, IBCHAN_ENDPOINT_SIZE));
}

TEST_F(channel, has_an_endpoint_that_a_peer_can_check)
{
	static const __u8 address[IBCHAN_GID_SIZE] = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [14] = 0, [15] = 1,
	};
	static const __u8 zero[20];
	const struct ibchan_endpoint *endpoint = &self->side.endpoint;

	EXPECT_EQ(IBCHAN_ENDPOINT_MAGIC, ntohl(endpoint->magic));
	EXPECT_EQ(IBCHAN_ENDPOINT_VERSION, ntohs(endpoint->version));
	EXPECT_EQ(IBCHAN_LINK_LAYER_ETHERNET, endpoint->link_layer);
	EXPECT_EQ(3, endpoint->mtu);
	EXPECT_LE(2, ntohl(endpoint->qpn));
	EXPECT_GE(0xffffff, ntohl(endpoint->qpn));
	EXPECT_LE(1, endpoint->max_dest_rd_atomic);
	/* The routed IPv4 address, not the link-local one that stands first in the table. */
	EXPECT_EQ(0, memcmp(address, endpoint->gid, sizeof(address)));
	EXPECT_NE(0, memcmp(zero, endpoint->mac, sizeof(endpoint->mac)));
	EXPECT_EQ(IBCHAN_ENDPOINT_REMOTE_WRITE, endpoint->flags);
	EXPECT_EQ(0, endpoint->lid);
	EXPECT_EQ(0, memcmp(zero, endpoint->reserved1, sizeof(endpoint->reserved1)));
	EXPECT_EQ(0, memcmp(zero, endpoint->reserved, sizeof(endpoint->reserved)));
}

TEST_F(channel, takes_another_psn_than_its_neighbour)
{
	struct side other;

	ASSERT_EQ(0, side_share(&other, &self->side, &self->options));
	EXPECT_NE(self->side.endpoint.psn, other.endpoint.psn);
	EXPECT_NE(self->side.endpoint.qpn, other.endpoint.qpn);
	side_close(&other);
}

TEST_F(channel, uses_the_psns_that_it_was_told)
{
	struct side_options second = self->options;
	struct pair pair;

	self->options.params.send_psn = 0x123456;
	self->options.params.recv_psn = 0xffffff;
	second.device = DEVICE_B;
	second.params.send_psn = 0xffffff;
	ASSERT_EQ(0, side_open(&pair.sides[0], &self->options));
	ASSERT_EQ(0, side_open(&pair.sides[1], &second));
	pair.a = &pair.sides[0];
	pair.b = &pair.sides[1];
	EXPECT_EQ(0x123456, ntohl(pair.a->endpoint.psn));
	ASSERT_EQ(0, pair_connect(&pair));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	/* This one's numbers wrap. */
	EXPECT_EQ(0, exchange(pair.b, pair.a));
	EXPECT_EQ(0, exchange(pair.b, pair.a));
	pair_close(&pair);
}

TEST_F(channel, without_remote_access_refuses_its_peers_write)
{
	struct side_options closed = self->options;
	struct ibchan_submit_wr wr;
	struct ibchan_cqe cqe;
	struct pair pair;

	closed.params.access = IBCHAN_ACCESS_LOCAL;
	ASSERT_EQ(0, side_open(&pair.sides[0], &self->options));
	ASSERT_EQ(0, side_open(&pair.sides[1], &closed));
	pair.a = &pair.sides[0];
	pair.b = &pair.sides[1];
	ASSERT_EQ(0, pair_connect(&pair));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	wr = work(pair.a, IBCHAN_OP_WRITE, 1, 0, 64);
	work_at(&wr, pair.b, 0);
	ASSERT_EQ(0, post_one(pair.a, wr));
	ASSERT_EQ(0, ring_complete(pair.a->ring, 1, &cqe));
	EXPECT_EQ(-EREMOTEIO, cqe.error);
	EXPECT_EQ(0, all_bytes(pair.b->memory, 64, 0));
	pair_close(&pair);
}

/* One byte of a good endpoint changed, and what is then said. */
struct spoilt {
	const char *what;
	size_t offset;
	__u8 value;
	__u32 reason;
};

#define SPOIL(member, at, value, NAME)						\
	{ #member, offsetof(struct ibchan_endpoint, member) + (at), value,	\
	  IBCHAN_REASON_##NAME }

static const struct spoilt spoilt[] = {
	SPOIL(magic, 0, 0, ENDPOINT_MAGIC),
	SPOIL(magic, 3, 0x49, ENDPOINT_MAGIC),
	SPOIL(version, 1, 0, ENDPOINT_VERSION),
	SPOIL(link_layer, 0, IBCHAN_LINK_LAYER_INFINIBAND, LINK_LAYER),
	SPOIL(link_layer, 0, 0, LINK_LAYER),
	SPOIL(link_layer, 0, 255, LINK_LAYER),
	SPOIL(mtu, 0, 0, PEER_MTU),
	SPOIL(mtu, 0, 6, PEER_MTU),
	SPOIL(mtu, 0, 255, PEER_MTU),
	SPOIL(qpn, 0, 1, PEER_QPN),
	SPOIL(psn, 0, 1, PEER_PSN),
	SPOIL(gid, 10, 0, GID_FAMILY),
	SPOIL(gid, 0, 0xfe, GID_FAMILY),
	SPOIL(gid, 12, 224, PEER_GID),
	SPOIL(mac, 0, 1, PEER_MAC),
	SPOIL(flags, 0, IBCHAN_ENDPOINT_GRH, ENDPOINT_RESERVED),
	SPOIL(pkey, 0, 0x80, ENDPOINT_RESERVED),
	SPOIL(pkey, 1, 1, ENDPOINT_RESERVED),
};

static int refused_handshake(const struct side *side, const struct ibchan_endpoint *peer,
			     __u32 code, struct ibchan_reason *reason)
{
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = side->channel,
		.endpoint = *peer,
	};
	int rc = cmd_channel_handshake(side->fd, &cmd);

	*reason = cmd.reason;
	if (rc == -EINVAL && cmd.reason.code == code)
		return 0;
	fprintf(stderr, "# %d, reason %u instead of %u\n", rc, cmd.reason.code, code);
	return -EBADMSG;
}

TEST_F(channel, refuses_an_endpoint_that_does_not_fit_and_then_takes_the_right_one)
{
	struct ibchan_reason reason;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spoilt); i++) {
		struct ibchan_endpoint peer = self->side.endpoint;

		((__u8 *)&peer)[spoilt[i].offset] = spoilt[i].value;
		EXPECT_EQ(0, refused_handshake(&self->side, &peer, spoilt[i].reason, &reason))
			TH_LOG("%s %u", spoilt[i].what, spoilt[i].value);
		EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&self->side));
	}
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	EXPECT_EQ(0, exchange(&self->side, &self->side));
}

/* One that knows what this one does not. */
TEST_F(channel, is_connected_by_endpoints_to_a_peer_of_a_later_version)
{
	struct ibchan_endpoint peer = self->side.endpoint;

	peer.version = htons(IBCHAN_ENDPOINT_VERSION + 1);
	peer.flags |= (__u8)~IBCHAN_ENDPOINT_GRH;
	memset(peer.reserved1, 0xff, sizeof(peer.reserved1));
	memset(peer.reserved, 0xff, sizeof(peer.reserved));
	ASSERT_EQ(0, side_handshake(&self->side, &peer));
	EXPECT_EQ(0, exchange(&self->side, &self->side));
}

/* Of @device's first port: the first line of @what, whose entry @i may be empty. */
static void read_gid(const char *device, const char *what, int i, char *line, size_t size)
{
	char path[128];
	FILE *file;

	line[0] = 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%d", device, what, i);
	file = fopen(path, "r");
	if (!file)
		return;
	if (!fgets(line, size, file))
		line[0] = 0;
	fclose(file);
}

/* The index of the first address in @device's table that is IPv6 and routed, or -ENOENT. */
static int ipv6_gid_index(const char *device)
{
	char gid[64], type[64];
	int i;

	for (i = 0; i < 64; i++) {
		read_gid(device, "gids", i, gid, sizeof(gid));
		read_gid(device, "gid_attrs/types", i, type, sizeof(type));
		if (!strncmp(gid, "fd77:", 5) && !strncmp(type, "RoCE v2", 7))
			return i;
	}
	return -ENOENT;
}

TEST_F(channel, of_another_address_family_is_refused_and_one_of_the_same_is_not)
{
	struct side_options six = self->options;
	struct ibchan_reason reason;
	struct side a, b;

	ASSERT_LE(0, ipv6_gid_index(DEVICE_A));
	six.params.gid_index = ipv6_gid_index(DEVICE_A);
	ASSERT_EQ(0, side_open(&a, &six));
	EXPECT_EQ(0xfd, a.endpoint.gid[0]);
	EXPECT_EQ(0, refused_handshake(&self->side, &a.endpoint, IBCHAN_REASON_GID_FAMILY,
				       &reason));
	EXPECT_EQ(4, reason.value[0]);
	EXPECT_EQ(6, reason.value[1]);
	/* On one device: between the two, IPv6 of one namespace takes the loopback device. */
	ASSERT_EQ(0, side_open(&b, &six));
	ASSERT_EQ(0, side_handshake(&a, &b.endpoint));
	ASSERT_EQ(0, side_handshake(&b, &a.endpoint));
	EXPECT_EQ(0, exchange(&a, &b));
	side_close(&a);
	side_close(&b);
}

TEST_F(channel, that_has_a_peer_takes_no_other)
{
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	EXPECT_EQ(-EISCONN, side_handshake(&self->side, &self->side.endpoint));
	EXPECT_EQ(0, exchange(&self->side, &self->side));
}

TEST_F(channel, goes_from_prepared_to_connected_to_broken)
{
	struct ibchan_cmd_channel_query query;

	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&self->side));
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&self->side));
	ASSERT_EQ(0, side_query(&self->side, &query));
	EXPECT_EQ(0, query.out.error);
	ASSERT_EQ(0, channel_break(self->side.fd, self->side.channel));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(&self->side));
	EXPECT_EQ(0, channel_break(self->side.fd, self->side.channel));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(&self->side));
	EXPECT_EQ(-ESHUTDOWN, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, destroy(self->side.fd, self->side.channel));
	EXPECT_EQ(-ENOENT, side_state(&self->side));
}

TEST_F(channel, that_is_broken_flushes_its_works_and_takes_no_more)
{
	struct ibchan_submit_wr wr = work(&self->side, IBCHAN_OP_RECV, 50, 0, 1);
	struct ibchan_cmd_submit cmd = submission(&wr, 1);
	struct side *side = &self->side;
	unsigned int i;

	ASSERT_EQ(0, side_handshake(side, &side->endpoint));
	ASSERT_EQ(0, post_receives(side, 0, 16, 16));
	ASSERT_EQ(0, channel_break(side->fd, side->channel));
	EXPECT_EQ(-ESHUTDOWN, cmd_submit(side->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_BROKEN, cmd.reason.code);
	for (i = 0; i < 16; i++) {
		struct ibchan_cqe cqe;

		ASSERT_EQ(0, ring_complete(side->ring, i, &cqe));
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, cqe.status);
		EXPECT_EQ(-ECANCELED, cqe.error);
		EXPECT_EQ(side->channel, cqe.channel);
	}
	EXPECT_EQ(0, ring_surplus(side->ring));
}

/* The error that its peer's absence makes breaks a channel by itself. */
TEST_F(channel, whose_peer_is_gone_breaks_with_a_time_out)
{
	struct side_options options = self->options;
	struct ibchan_cmd_channel_query query;
	struct ibchan_cqe cqe;
	struct pair pair;

	options.params.ack_timeout = 8;
	options.params.ack_retries = 2;
	ASSERT_EQ(0, pair_open(&pair, PAIR_TWO_DEVICES, &options));
	ASSERT_EQ(0, post_receives(pair.a, 10, 2, 64));
	side_close(pair.b);
	ASSERT_EQ(0, post_one(pair.a, work(pair.a, IBCHAN_OP_SEND, 1, 4096, 64)));
	ASSERT_EQ(0, ring_complete(pair.a->ring, 1, &cqe));
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, cqe.status);
	EXPECT_EQ(-ETIMEDOUT, cqe.error);
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(pair.a, 10));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(pair.a, 11));
	ASSERT_EQ(0, side_query(pair.a, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, query.out.state);
	EXPECT_EQ(ETIMEDOUT, query.out.error);
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, query.out.status);
	pair_close(&pair);
}

TEST_HARNESS_MAIN
