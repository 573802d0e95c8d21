// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's credits: blocking calls wait until the peer has a receive, posts are refused
 * until then; and its times and counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

#define DEPTH		4

FIXTURE(credit)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

/* A channel with a queue of its own; credits only if @mode says so. */
static int open_end(struct end *end, struct ibchan_context *context, int index, __u32 mode)
{
	struct ibchan_builder builder;
	int rc = end_objects(end, context, index);

	if (rc)
		return rc;
	ibchan_builder_init(&builder, end->pd, NULL);
	builder.options.mode = mode;
	builder.params.rnr_retries = 0;
	builder.params.max_recv_wr = DEPTH;
	/* About a second, for an emulated CPU that is busy with checking itself. */
	builder.params.ack_timeout = 18;
	return ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

FIXTURE_SETUP(credit)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, open_end(&self->a, self->context, 0, IBCHAN_MODE_CREDITS));
	ASSERT_EQ(0, open_end(&self->b, self->context, 1, IBCHAN_MODE_CREDITS));
	ASSERT_EQ(0, connect_ends(&self->a, &self->b));
}

FIXTURE_TEARDOWN(credit)
{
	end_close(&self->a);
	end_close(&self->b);
	ibchan_context_close(self->context);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int send_within(const struct end *end, __s64 timeout_ns, struct ibchan_error *error)
{
	struct ibchan_sge sge = sge_at(end, 0, 8);
	struct ibchan_wr wr = wr_of(end, IBCHAN_OP_SEND, &sge);

	return ibchan_perform(&wr, timeout_ns, NULL, error);
}

TEST_F(credit, that_is_not_there_refuses_a_post_and_says_what_to_do)
{
	struct ibchan_sge sge = sge_at(&self->a, 0, 8);
	struct ibchan_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, &sge);
	struct ibchan_channel_info info;
	struct ibchan_error error;
	char text[512];

	EXPECT_EQ(-EAGAIN, ibchan_post(self->context, &wr, 1, NULL, &error));
	EXPECT_EQ(IBCHAN_REASON_PEER_CREDITS, error.reason.code);
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_TRUE(has(text, "0 receives")) TH_LOG("%s", text);
	EXPECT_TRUE(has(ibchan_error_hint(&error), "ibchan_channel_wait_credits"));
	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &info));
	EXPECT_EQ(0, info.sends_in_flight);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, info.state);
	EXPECT_EQ(IBCHAN_MODE_CREDITS, info.options.mode);
}

TEST_F(credit, wait_tells_how_many_messages_may_go)
{
	struct ibchan_sge sge = sge_at(&self->b, 0, 8);

	EXPECT_EQ(-ETIMEDOUT, ibchan_channel_wait_credits(self->a.channel, 0));
	EXPECT_EQ(-ETIMEDOUT, ibchan_channel_wait_credits(self->a.channel, 10 * MS));
	EXPECT_EQ(-EINVAL, ibchan_channel_wait_credits(self->a.channel, -2));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &sge, 1));
	EXPECT_EQ(1, ibchan_channel_wait_credits(self->a.channel, patience_ns()));
}

TEST_F(credit, that_does_not_come_in_time_leaves_a_blocking_call_unposted)
{
	struct ibchan_sge sge = sge_at(&self->b, 0, 8);
	struct ibchan_error error;

	EXPECT_EQ(-ETIMEDOUT, send_within(&self->a, 20 * MS, &error));
	EXPECT_EQ(IBCHAN_REASON_PEER_CREDITS, error.reason.code);
	EXPECT_EQ(-ETIMEDOUT, send_within(&self->a, 0, &error));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &sge, 1));
	EXPECT_EQ(0, send_within(&self->a, patience_ns(), &error));
}

/* One receive at a time, so that the sender waits for each of its credits. */
static void *receive_messages(void *arg)
{
	struct end *end = arg;
	struct ibchan_sge sge = sge_at(end, HALF, sizeof(__u64));
	__u64 i, seen;
	int rc = 0;

	for (i = 0; i < NUMBERS && !rc; i++) {
		rc = ibchan_receive(end->channel, &sge, 1, NULL, NULL);
		memcpy(&seen, end->memory + HALF, sizeof(seen));
		if (!rc && seen != i)
			rc = -EBADMSG;
	}
	return (void *)(intptr_t)rc;
}

static int joined(pthread_t thread)
{
	void *result;

	pthread_join(thread, &result);
	return (int)(intptr_t)result;
}

TEST_F(credit, is_waited_for_by_blocking_calls_both_ways_at_once)
{
	pthread_t threads[4];
	int i;

	ASSERT_EQ(0, pthread_create(&threads[0], NULL, send_numbers, &self->a));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, receive_messages, &self->b));
	ASSERT_EQ(0, pthread_create(&threads[2], NULL, send_numbers, &self->b));
	ASSERT_EQ(0, pthread_create(&threads[3], NULL, receive_messages, &self->a));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, joined(threads[i])) TH_LOG("thread %d", i);
}

static void *send_for_ever(void *arg)
{
	return (void *)(intptr_t)send_within(arg, IBCHAN_TIMEOUT_NEVER, NULL);
}

TEST_F(credit, wait_of_a_blocking_call_ends_when_the_channel_breaks)
{
	pthread_t sender;

	ASSERT_EQ(0, pthread_create(&sender, NULL, send_for_ever, &self->a));
	ASSERT_EQ(0, ibchan_channel_break(self->a.channel));
	EXPECT_EQ(-ESHUTDOWN, joined(sender));
	EXPECT_EQ(-ESHUTDOWN, ibchan_channel_wait_credits(self->a.channel, 0));
}

TEST_F(credit, and_retries_are_told_as_times_and_counts)
{
	struct ibchan_times times;

	ASSERT_EQ(0, ibchan_channel_times(self->a.channel, &times));
	EXPECT_EQ(4096LL << 18, times.ack_timeout_ns);
	EXPECT_EQ(IBCHAN_DEFAULT_ACK_RETRIES, times.ack_retries);
	EXPECT_EQ(2560000, times.rnr_timer_ns);
	EXPECT_EQ(0, times.rnr_retries);
	EXPECT_EQ(4 * (4096LL << 18) * (IBCHAN_DEFAULT_ACK_RETRIES + 1), times.worst_case_ns);
}

TEST_HARNESS_MAIN
