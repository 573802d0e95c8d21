// SPDX-License-Identifier: GPL-2.0-only
/* Credits of channels that are connected by address: where they go, and where there are none. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "shim/meeting.h"
#include "test.h"
#include "world.h"

#define HOST		"10.77.0.1"
#define DEPTH		4

/* What a request carries on RoCE, and what is left of it beside credits. */
#define REQUEST_DATA	56
#define CREDIT_BYTES	20	/* of all that goes in front */
#define LEFT_DATA	(REQUEST_DATA - CREDIT_BYTES)

FIXTURE(credits_by_address)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_request *request;
};

FIXTURE_SETUP(credits_by_address)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
}

FIXTURE_TEARDOWN(credits_by_address)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int open_end(struct end *end, struct ibchan_context *context, __u32 mode)
{
	struct ibchan_builder builder;
	int rc = end_begin(end, context, 0, &builder);

	builder.options.mode = mode;
	builder.params.rnr_retries = 0;
	builder.params.max_recv_wr = DEPTH;
	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

static int open_ends(FIXTURE_DATA(credits_by_address) * self, __u32 asking, __u32 asked)
{
	int rc = open_end(&self->m.asking, self->m.context, asking);

	return rc ?: open_end(&self->m.asked, self->m.context, asked);
}

static int answer(FIXTURE_DATA(credits_by_address) * self,
		  const struct ibchan_connect_params *params)
{
	int rc = meeting_answer(&self->m, self->request, params);

	return rc ?: meeting_outcomes(&self->m);
}

/* Before there is a peer, and from then on each that a message has used. */
static int post_number(FIXTURE_DATA(credits_by_address) * self, struct ibchan_channel *channel,
		       __u64 number)
{
	struct ibchan_sge sge = sge_at(&self->m.asked, number % DEPTH * 8, 8);
	struct ibchan_wr wr = wr_of(&self->m.asked, IBCHAN_OP_RECV, &sge);

	wr.channel = channel;
	wr.wr_id = number;
	return ibchan_post(self->m.context, &wr, 1, NULL, NULL);
}

/* The messages that came, in order and with what they should say. */
static int receive_messages(FIXTURE_DATA(credits_by_address) * self)
{
	struct ibchan_completion completion;
	__u64 i, seen;

	for (i = 0; i < NUMBERS; i++) {
		if (wait_one(self->m.asked.cq, &completion) != 1 || completion.error)
			break;
		memcpy(&seen, self->m.asked.memory + i % DEPTH * 8, sizeof(seen));
		if (seen != i || completion.wr_id != i)
			break;
		if (post_number(self, self->m.asked.channel, i + DEPTH))
			break;
	}
	return (int)i;
}

/* No message is tried twice: the first that met no receive would break the channel. */
TEST_F(credits_by_address, lose_none_of_many_messages_through_few_receives)
{
	pthread_t sender;
	void *result;
	__u64 i;

	ASSERT_EQ(0, open_ends(self, IBCHAN_MODE_CREDITS, IBCHAN_MODE_CREDITS));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_number(self, ibchan_prepared_channel(self->m.asked.prepared), i));
	ASSERT_EQ(0, meeting_request(&self->m, NULL, &self->request));
	ASSERT_EQ(0, answer(self, NULL));
	ASSERT_EQ(0, pthread_create(&sender, NULL, send_numbers, &self->m.asking));
	EXPECT_EQ(NUMBERS, receive_messages(self));
	pthread_join(sender, &result);
	EXPECT_EQ(0, (int)(intptr_t)result);
}

TEST_F(credits_by_address, leave_less_room_for_private_data_and_say_how_much)
{
	unsigned char data[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_connect_params params = { .data = data, .length = LEFT_DATA + 1 };

	memset(data, 0x6b, sizeof(data));
	ASSERT_EQ(0, open_ends(self, IBCHAN_MODE_CREDITS, IBCHAN_MODE_CREDITS));
	EXPECT_EQ(-EINVAL, meeting_request(&self->m, &params, &self->request));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	EXPECT_EQ(LEFT_DATA + 1, self->m.error.reason.value[0]);
	EXPECT_EQ(LEFT_DATA, self->m.error.reason.value[1]);
	params.length = LEFT_DATA;
	ASSERT_EQ(0, meeting_request(&self->m, &params, &self->request));
	params.length = IBCHAN_PRIVATE_DATA_SIZE - CREDIT_BYTES + 1;
	EXPECT_EQ(-EINVAL, answer(self, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	EXPECT_EQ(IBCHAN_PRIVATE_DATA_SIZE - CREDIT_BYTES, self->m.error.reason.value[1]);
	params.length--;
	EXPECT_EQ(0, answer(self, &params));
}

/* The credits go in front of them, and nobody sees that. */
TEST_F(credits_by_address, do_not_show_in_the_private_data)
{
	const struct ibchan_connect_params of_asking = { .data = "may I?", .length = 7 };
	const struct ibchan_connect_params of_asked = { .data = "you may", .length = 8 };
	struct ibchan_connection_info info;
	struct ibchan_request_info asks;

	ASSERT_EQ(0, open_ends(self, IBCHAN_MODE_CREDITS, IBCHAN_MODE_CREDITS));
	ASSERT_EQ(0, meeting_request(&self->m, &of_asking, &self->request));
	ibchan_request_query(self->request, &asks);
	EXPECT_STREQ("may I?", (char *)asks.data);
	EXPECT_EQ(7, asks.length);
	ASSERT_EQ(0, answer(self, &of_asked));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info));
	EXPECT_STREQ("you may", (char *)info.data);
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asked.channel, &info));
	EXPECT_STREQ("may I?", (char *)info.data);
}

static void only_one_side(struct __test_metadata *_metadata,
			  FIXTURE_DATA(credits_by_address) * self, __u32 asking, __u32 asked)
{
	struct ibchan_connection_info info;

	ASSERT_EQ(0, open_ends(self, asking, asked));
	ASSERT_EQ(0, meeting_request(&self->m, NULL, &self->request));
	EXPECT_EQ(-EINVAL, answer(self, NULL));
	EXPECT_EQ(IBCHAN_REASON_CREDIT_MODE, self->m.error.reason.code);
	EXPECT_EQ(!!asked, self->m.error.reason.value[0]);
	EXPECT_EQ(!!asking, self->m.error.reason.value[1]);
	/* The request is still there, and so is who asks. */
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTING, info.state);
	EXPECT_EQ(0, ibchan_request_reject(self->request, "no credits", 11));
	EXPECT_EQ(-ECONNRESET, ibchan_channel_connect_wait(self->m.asking.channel, patience_ns(),
							   NULL));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info));
	EXPECT_STREQ("no credits", (char *)info.data);
}

TEST_F(credits_by_address, that_only_who_asks_counts_are_refused)
{
	only_one_side(_metadata, self, IBCHAN_MODE_CREDITS, 0);
}

TEST_F(credits_by_address, that_only_who_is_asked_counts_are_refused)
{
	only_one_side(_metadata, self, 0, IBCHAN_MODE_CREDITS);
}

TEST_HARNESS_MAIN
