// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two sides that take packets of different length, because one was built so, or because the
 * address of one is that of a VLAN with a smaller MTU than the port has.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cable.h"
#include "shim/meeting.h"
#include "test.h"
#include "world.h"

#define HOST		"10.77.0.1"

/* What an answer to an ibchan carries on RoCE. */
#define ANSWER_DATA	188

/* What a request carries to a peer that may be none. */
#define FOREIGN_DATA	56

FIXTURE(unequal)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_request *request;
};

FIXTURE_SETUP(unequal)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
}

FIXTURE_TEARDOWN(unequal)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int open_end(struct end *end, struct ibchan_context *context, __u32 mtu)
{
	struct ibchan_builder builder;
	int rc = end_begin(end, context, 0, &builder);

	builder.params.mtu = mtu;
	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

static int open_sides(FIXTURE_DATA(unequal) * self, __u32 asking, __u32 asked)
{
	int rc = open_end(&self->m.asking, self->m.context, asking);

	return rc ?: open_end(&self->m.asked, self->m.context, asked);
}

static __u32 mtu_of(struct ibchan_channel *channel)
{
	struct ibchan_channel_info info;

	return ibchan_channel_query(channel, &info, NULL) ? 0 : info.params.mtu;
}

TEST_F(unequal, of_two_sides_the_smaller_mtu_counts_when_it_is_of_who_accepts)
{
	ASSERT_EQ(0, open_sides(self, 0, 256));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(256, mtu_of(self->m.asking.channel));
	EXPECT_EQ(256, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, of_two_sides_the_smaller_mtu_counts_when_it_is_of_who_asks)
{
	ASSERT_EQ(0, open_sides(self, 512, 0));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(512, mtu_of(self->m.asking.channel));
	EXPECT_EQ(512, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, an_answer_with_a_smaller_mtu_has_room_for_as_much)
{
	unsigned char data[ANSWER_DATA + 1];
	struct ibchan_connect_params params = {
		.size = sizeof(params), .data = data, .length = sizeof(data),
	};
	struct ibchan_connection_info info;

	fill(data, sizeof(data), 3);
	ASSERT_EQ(0, open_sides(self, 0, 512));
	ASSERT_EQ(0, meeting_request(&self->m, NULL, &self->request));
	EXPECT_EQ(-EINVAL, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	EXPECT_EQ(ANSWER_DATA, self->m.error.reason.value[1]);
	params.length = ANSWER_DATA;
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	ASSERT_EQ(0, meeting_outcomes(&self->m));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(ANSWER_DATA, info.length);
	EXPECT_EQ(0, memcmp(data, info.data, ANSWER_DATA));
}

/* The other side takes this one for no ibchan, and nobody looks after anybody. */
TEST_F(unequal, who_asks_as_of_a_foreign_peer_has_all_that_the_transport_carries)
{
	unsigned char data[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = data, .length = FOREIGN_DATA + 1, .flags = IBCHAN_CONNECT_FOREIGN,
	};
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;
	struct ibchan_request_info asks;

	fill(data, sizeof(data), 3);
	ASSERT_EQ(0, open_sides(self, 0, 0));
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(FOREIGN_DATA, self->m.error.reason.value[1]);
	params.length = FOREIGN_DATA;
	ASSERT_EQ(0, meeting_request(&self->m, &params, &self->request));
	ibchan_request_query(self->request, &asks);
	EXPECT_EQ(0, memcmp(asks.data, data, FOREIGN_DATA));
	params.length = sizeof(data);
	params.flags = 0;
	EXPECT_EQ(-EPROTOTYPE, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(IBCHAN_REASON_FOREIGN, self->m.error.reason.code);
	params.flags = IBCHAN_CONNECT_FOREIGN;
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	ASSERT_EQ(0, meeting_outcomes(&self->m));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &connection, NULL));
	EXPECT_EQ(0, memcmp(connection.data, data, sizeof(data)));
	ASSERT_EQ(0, ibchan_channel_query(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(0, info.notice_ns);
	ASSERT_EQ(0, ibchan_channel_query(self->m.asked.channel, &info, NULL));
	EXPECT_EQ(0, info.notice_ns);
}

TEST_F(unequal, who_asks_as_of_a_foreign_peer_for_longer_packets_is_sent_away)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .flags = IBCHAN_CONNECT_FOREIGN,
	};

	ASSERT_EQ(0, open_sides(self, 0, 256));
	ASSERT_EQ(0, meeting_request(&self->m, &params, &self->request));
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(-EMSGSIZE, outcome(self->m.asked.channel, &self->m.error));
	EXPECT_EQ(-EMSGSIZE, outcome(self->m.asking.channel, &self->m.error));
}

/* ---- When a message that nobody has answered is sent again ---- */

static int open_with_ack(struct end *end, struct ibchan_context *context, __u32 ack_timeout)
{
	struct ibchan_builder builder;
	int rc = end_begin(end, context, 0, &builder);

	builder.params.ack_timeout = ack_timeout;
	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

static __u32 ack_timeout_of(struct ibchan_channel *channel)
{
	struct ibchan_channel_info info;

	return ibchan_channel_query(channel, &info, NULL) ? 0 : info.params.ack_timeout;
}

/* It knows 17 for Ethernet, and 19 before Linux 6.2. */
TEST_F(unequal, two_sides_that_name_no_ack_timeout_have_that_of_the_connection_manager)
{
	__u32 expected = kernel_is_before(6, 2) ? 19 : 17;

	ASSERT_EQ(0, open_with_ack(&self->m.asking, self->m.context, IBCHAN_AUTO));
	ASSERT_EQ(0, open_with_ack(&self->m.asked, self->m.context, IBCHAN_AUTO));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(expected, ack_timeout_of(self->m.asking.channel));
	EXPECT_EQ(expected, ack_timeout_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, a_side_that_names_an_ack_timeout_has_that_one)
{
	ASSERT_EQ(0, open_with_ack(&self->m.asking, self->m.context, 15));
	ASSERT_EQ(0, open_with_ack(&self->m.asked, self->m.context, 21));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(15, ack_timeout_of(self->m.asking.channel));
	EXPECT_EQ(21, ack_timeout_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

/* ---- A VLAN with a smaller MTU ---- */

#define NARROW		"10.87.0.1"	/* of a VLAN of 1500 bytes, over a port of 9000 */
#define WIDE		"10.87.0.2"	/* its peer, of 9000 */

FIXTURE(tagged)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_request *request;
};

struct leads {
	struct ibchan_context *context;
	const char *address;
	const char *device;
};

static bool leads_to(void *arg)
{
	const struct leads *leads = arg;
	struct ibchan_route route;

	return !ibchan_route_query(leads->context, leads->address, NULL, NULL, &route, NULL) &&
	       !strcmp(route.device, leads->device);
}

static int lay_vlans(void)
{
	return sh("modprobe -q 8021q || :; ip link set w0 mtu 9000; ip link set w1 mtu 9000;"
		  "ip link add link w0 name w0.7 mtu 1500 type vlan id 7;"
		  "ip link add link w1 name w1.7 type vlan id 7") ||
	       ndevs_up("w0.7", "w1.7", "10.87.0");
}

FIXTURE_SETUP(tagged)
{
	struct leads near = { .address = NARROW, .device = CABLE_NEAR };
	struct leads far = { .address = WIDE, .device = CABLE_FAR };

	memset(&self->m, 0, sizeof(self->m));
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, cable_lay());
	if (lay_vlans())
		SKIP(return, "this kernel has no VLANs");
	ASSERT_EQ(0, ibchan_context_open(&self->m.context, NULL));
	near.context = self->m.context;
	far.context = self->m.context;
	ASSERT_TRUE(eventually(leads_to, &near));
	ASSERT_TRUE(eventually(leads_to, &far));
}

FIXTURE_TEARDOWN(tagged)
{
	if (self->m.context)
		EXPECT_EQ(0, meeting_end(&self->m));
	cable_cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* In the order of names. */
static int index_of(struct ibchan_context *context, const char *device)
{
	char name[IBCHAN_NAME_SIZE];
	int index = 0;

	while (!device_name(context, index, name) && strcmp(name, device))
		index++;
	return index;
}

/* The entry of the table that has the IPv4 address @text. */
static __u32 entry_of(struct ibchan_context *context, const char *device, const char *text)
{
	struct ibchan_gid_attr gid = { 0 };
	unsigned char wanted[4];

	inet_pton(AF_INET, text, wanted);
	while (!ibchan_gid_query(context, device, 1, gid.index, &gid, NULL)) {
		if (gid.type == IBCHAN_GID_TYPE_ROCE_V2 && !memcmp(gid.gid + 12, wanted, 4))
			return gid.index;
		gid.index++;
	}
	return IBCHAN_AUTO;
}

/* An end of @device; at its address @text, or where the rule or a connection says. */
static int open_at(FIXTURE_DATA(tagged) * self, struct end *end, const char *device,
		   const char *text, __u32 mtu)
{
	struct ibchan_context *context = self->m.context;
	struct ibchan_builder builder;
	int rc = end_begin(end, context, index_of(context, device), &builder);

	builder.params.mtu = mtu;
	if (text)
		builder.params.gid_index = entry_of(context, device, text);
	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, &self->m.error);
}

static int open_both(FIXTURE_DATA(tagged) * self, const char *asking, const char *asked)
{
	int rc = open_at(self, &self->m.asking, asking, NULL, 0);

	return rc ?: open_at(self, &self->m.asked, asked, NULL, 0);
}

TEST_F(tagged, an_endpoint_carries_the_mtu_of_its_address_and_not_of_its_port)
{
	ASSERT_EQ(0, open_at(self, &self->m.asking, CABLE_NEAR, NARROW, 0));
	ASSERT_EQ(0, open_at(self, &self->m.asked, CABLE_FAR, WIDE, 0));
	ASSERT_EQ(0, connect_ends(&self->m.asking, &self->m.asked));
	ASSERT_EQ(1024, mtu_of(self->m.asking.channel));
	ASSERT_EQ(1024, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(tagged, who_is_asked_at_an_address_with_a_smaller_mtu_says_so)
{
	const struct ibchan_connect_params from_wide = {
		.size = sizeof(from_wide), .source = WIDE,
	};

	ASSERT_EQ(0, meeting_listen(&self->m, NARROW));
	ASSERT_EQ(0, open_both(self, CABLE_FAR, CABLE_NEAR));
	ASSERT_EQ(0, meeting_connect(&self->m, &from_wide, NULL));
	ASSERT_EQ(1024, mtu_of(self->m.asking.channel));
	ASSERT_EQ(1024, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(tagged, who_asks_from_an_address_with_a_smaller_mtu_says_so)
{
	const struct ibchan_connect_params from_narrow = {
		.size = sizeof(from_narrow), .source = NARROW,
	};

	ASSERT_EQ(0, meeting_listen(&self->m, WIDE));
	ASSERT_EQ(0, open_both(self, CABLE_NEAR, CABLE_FAR));
	ASSERT_EQ(0, meeting_connect(&self->m, &from_narrow, NULL));
	ASSERT_EQ(1024, mtu_of(self->m.asking.channel));
	ASSERT_EQ(1024, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

/* The port's own, of 9000 bytes without a tag. */
TEST_F(tagged, a_connection_from_another_address_than_it_was_built_with_has_the_mtu_of_that)
{
	const struct ibchan_connect_params from_port = {
		.size = sizeof(from_port), .source = "10.88.0.1",
	};

	ASSERT_EQ(0, meeting_listen(&self->m, "10.88.0.2"));
	ASSERT_EQ(0, open_at(self, &self->m.asking, CABLE_NEAR, NARROW, 0));
	ASSERT_EQ(0, open_at(self, &self->m.asked, CABLE_FAR, NULL, 0));
	ASSERT_EQ(0, meeting_connect(&self->m, &from_port, NULL));
	EXPECT_EQ(4096, mtu_of(self->m.asking.channel));
	EXPECT_EQ(4096, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(tagged, a_builder_that_names_the_address_and_more_than_goes_over_it_is_refused)
{
	ASSERT_EQ(-EINVAL, open_at(self, &self->m.asking, CABLE_NEAR, NARROW, 4096));
	EXPECT_EQ(IBCHAN_REASON_MTU_ABOVE_PORT, self->m.error.reason.code);
	EXPECT_EQ(4096, self->m.error.reason.value[0]);
	EXPECT_EQ(1024, self->m.error.reason.value[1]);
	end_close(&self->m.asking);
	ASSERT_EQ(0, open_at(self, &self->m.asking, CABLE_NEAR, NARROW, 1024));
	EXPECT_EQ(0, open_at(self, &self->m.asked, CABLE_NEAR, NULL, 4096));
}

TEST_HARNESS_MAIN
