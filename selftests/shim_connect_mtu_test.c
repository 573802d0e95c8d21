// SPDX-License-Identifier: GPL-2.0-only
/* Two sides that connect by address and take packets of different length. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ghost.h"
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

static int open_end(struct end *end, struct ibchan_context *context, __u32 mtu, __u32 mode)
{
	struct ibchan_builder builder;
	int rc = end_begin(end, context, 0, &builder);

	builder.options.mode = mode;
	builder.params.mtu = mtu;
	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

static int open_ends(FIXTURE_DATA(unequal) * self, __u32 asking, __u32 asked, __u32 mode)
{
	int rc = open_end(&self->m.asking, self->m.context, asking, mode);

	return rc ?: open_end(&self->m.asked, self->m.context, asked, mode);
}

static __u32 mtu_of(struct ibchan_channel *channel)
{
	struct ibchan_channel_info info;

	return ibchan_channel_query(channel, &info) ? 0 : info.params.mtu;
}

TEST_F(unequal, of_two_sides_the_smaller_mtu_counts_when_it_is_of_who_accepts)
{
	ASSERT_EQ(0, open_ends(self, 0, 256, 0));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(256, mtu_of(self->m.asking.channel));
	EXPECT_EQ(256, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, of_two_sides_the_smaller_mtu_counts_when_it_is_of_who_asks)
{
	ASSERT_EQ(0, open_ends(self, 512, 0, 0));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(512, mtu_of(self->m.asking.channel));
	EXPECT_EQ(512, mtu_of(self->m.asked.channel));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, who_counts_credits_hears_of_the_smaller_mtu_beside_them)
{
	const struct ibchan_connect_params of_asked = { .data = "you may", .length = 8 };
	struct ibchan_connection_info info;

	ASSERT_EQ(0, open_ends(self, 1024, 512, IBCHAN_MODE_CREDITS));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, &of_asked));
	EXPECT_EQ(512, mtu_of(self->m.asking.channel));
	EXPECT_EQ(512, mtu_of(self->m.asked.channel));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info));
	EXPECT_STREQ("you may", (char *)info.data);
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(unequal, an_answer_with_a_smaller_mtu_has_room_for_as_much)
{
	unsigned char data[ANSWER_DATA + 1];
	struct ibchan_connect_params params = { .data = data, .length = sizeof(data) };
	struct ibchan_connection_info info;

	fill(data, sizeof(data), 3);
	ASSERT_EQ(0, open_ends(self, 0, 512, 0));
	ASSERT_EQ(0, meeting_request(&self->m, NULL, &self->request));
	EXPECT_EQ(-EINVAL, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	EXPECT_EQ(ANSWER_DATA, self->m.error.reason.value[1]);
	params.length = ANSWER_DATA;
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	ASSERT_EQ(0, meeting_outcomes(&self->m));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info));
	EXPECT_EQ(ANSWER_DATA, info.length);
	EXPECT_EQ(0, memcmp(data, info.data, ANSWER_DATA));
}

/* The other side takes this one for no ibchan, and nobody looks after anybody. */
TEST_F(unequal, who_asks_as_of_a_foreign_peer_has_all_that_the_transport_carries)
{
	unsigned char data[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_connect_params params = {
		.data = data, .length = FOREIGN_DATA + 1, .flags = IBCHAN_CONNECT_FOREIGN,
	};
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;
	struct ibchan_request_info asks;

	fill(data, sizeof(data), 3);
	ASSERT_EQ(0, open_ends(self, 0, 0, 0));
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
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &connection));
	EXPECT_EQ(0, memcmp(connection.data, data, sizeof(data)));
	ASSERT_EQ(0, ibchan_channel_query(self->m.asking.channel, &info));
	EXPECT_EQ(0, info.facts.notice_ms);
	ASSERT_EQ(0, ibchan_channel_query(self->m.asked.channel, &info));
	EXPECT_EQ(0, info.facts.notice_ms);
}

TEST_F(unequal, who_asks_as_of_a_foreign_peer_for_longer_packets_is_sent_away)
{
	const struct ibchan_connect_params params = { .flags = IBCHAN_CONNECT_FOREIGN };

	ASSERT_EQ(0, open_ends(self, 0, 256, 0));
	ASSERT_EQ(0, meeting_request(&self->m, &params, &self->request));
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(-EMSGSIZE, outcome(self->m.asked.channel, &self->m.error));
	EXPECT_EQ(-EMSGSIZE, outcome(self->m.asking.channel, &self->m.error));
}

/* It would not hear of a shorter one. */
TEST_F(unequal, a_peer_without_ibchan_that_sends_longer_packets_is_sent_away)
{
	const struct ibchan_connect_params params = { .flags = IBCHAN_CONNECT_FOREIGN };
	struct sockaddr_storage address;
	struct ibchan_address to = { .family = AF_INET };
	struct ghost ghost;

	memset(&ghost, 0, sizeof(ghost));
	ASSERT_EQ(0, open_ends(self, 0, 256, 0));
	ibchan_listener_address(self->m.listener, &address);
	to.port = ((struct sockaddr_in *)&address)->sin_port;
	inet_pton(AF_INET, HOST, to.bytes);
	ASSERT_EQ(0, ghost_ask(&ghost, &to));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &self->request));
	ASSERT_EQ(0, meeting_answer(&self->m, self->request, &params));
	EXPECT_EQ(-EMSGSIZE, outcome(self->m.asked.channel, &self->m.error));
	ghost_close(&ghost);
}

TEST_HARNESS_MAIN
