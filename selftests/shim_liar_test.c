// SPDX-License-Identifier: GPL-2.0-only
/*
 * The short way and a peer that is none of it: one that greets as it should, over a channel of
 * its own, and sends then what it likes. Each lie ends the channel, in time, and copies nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "message.h"
#include "shim/dialer.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST		"10.77.0.1"
#define NUM_RECEIVES	8

FIXTURE(liar)
{
	struct calm calm;
	struct ibchan_server *server;
	struct ibchan_channel *taken;
	struct ibchan_context *context;
	struct end end;
	struct ibchan_error error;
	char port[8];
};

/* What it would say that was honest: it takes messages of COPIED bytes. */
#define COPIED		1000

struct asking {
	struct end *end;
	const char *port;
	const void *greeting;
	__u32 length;
	int rc;
};

static void *ask(void *arg)
{
	struct asking *asking = arg;
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = asking->greeting, .length = asking->length,
	};

	asking->rc = ibchan_prepared_connect(asking->end->prepared, HOST, asking->port, &params,
					     &asking->end->channel, NULL);
	if (asking->rc)
		return NULL;
	asking->end->prepared = NULL;
	asking->rc = ibchan_channel_connect_wait(asking->end->channel, patience_ns(), NULL);
	return NULL;
}

static int post_receives(struct end *end, struct ibchan_context *context)
{
	struct ibchan_submit_sge sge = sge_at(end, HALF, COPIED + 64);
	int i, rc = 0;

	for (i = 0; i < NUM_RECEIVES && !rc; i++) {
		struct ibchan_channel *channel = ibchan_prepared_channel(end->prepared);
		struct ibchan_submit_wr wr = ibchan_wr_receive(channel, &sge, 1);

		wr.flags = IBCHAN_WR_UNCHECKED;
		rc = ibchan_post(context, &wr, 1, NULL, NULL);
	}
	return rc;
}

static int greet(FIXTURE_DATA(liar) * self, __u32 message_bytes, __u32 messages)
{
	const struct greeting greeting = {
		.magic = htobe32(GREETING_MAGIC), .message_bytes = htobe32(message_bytes),
		.messages = htobe32(messages),
	};
	struct asking asking = {
		.end = &self->end, .port = self->port, .greeting = &greeting,
		.length = sizeof(greeting),
	};
	struct ibchan_builder builder;
	pthread_t thread;
	int rc = end_begin(&self->end, self->context, 0, &builder) ?:
		 ibchan_builder_prepare(&builder, &self->end.prepared, NULL) ?:
		 post_receives(&self->end, self->context) ?:
		 -pthread_create(&thread, NULL, ask, &asking);

	if (rc)
		return rc;
	rc = ibchan_take(self->server, patience_ns() / 4, &self->taken, &self->error);
	return join_soon(thread, NULL) ?: rc ?: asking.rc;
}

FIXTURE_SETUP(liar)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_serve(NULL, NULL, NULL, &self->server, NULL));
	port_of_server(self->server, self->port, sizeof(self->port));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
}

FIXTURE_TEARDOWN(liar)
{
	ibchan_channel_close(self->taken);
	EXPECT_EQ(0, ibchan_server_close(self->server));
	end_close(&self->end);
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int send_raw(FIXTURE_DATA(liar) * self, const void *bytes, size_t length)
{
	const struct ibchan_submit_sge sge = sge_at(&self->end, 0, length);

	memcpy(self->end.memory, bytes, length);
	return ibchan_send(self->end.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL);
}

static int say(FIXTURE_DATA(liar) * self, __u32 kind, __u32 taken, __u64 length, size_t size)
{
	unsigned char bytes[4096] = { 0 };
	const struct frame frame = frame_make(kind, taken, length);

	memcpy(bytes, &frame, sizeof(frame));
	return send_raw(self, bytes, size);
}

static ssize_t hear(FIXTURE_DATA(liar) * self)
{
	static unsigned char got[1 << 20];

	return ibchan_receive_bytes(self->taken, got, sizeof(got), patience_ns(), &self->error);
}

TEST_F(liar, that_is_honest_is_heard)
{
	ASSERT_EQ(0, greet(self, COPIED, 4));
	ASSERT_EQ(0, say(self, FRAME_BYTES, 0, 10, sizeof(struct frame) + 10));
	EXPECT_EQ(10, hear(self));
	ASSERT_EQ(0, say(self, FRAME_BYTES, 0, 0, sizeof(struct frame)));
	EXPECT_EQ(0, hear(self));
	ASSERT_EQ(0, say(self, FRAME_END, 0, 0, sizeof(struct frame)));
	EXPECT_EQ(-ENODATA, hear(self));
}

struct lie {
	__u32 kind;
	__u32 taken;
	__u64 length;
	size_t size;
};

static const struct lie lies[] = {
	{ FRAME_BYTES, 0, 1ULL << 63, sizeof(struct frame) },
	{ FRAME_BYTES, 0, UINT64_MAX, sizeof(struct frame) + 15 },
	{ FRAME_BYTES, 0, 10, sizeof(struct frame) + 9 },
	{ FRAME_BYTES, 0, 0, 3 },
	{ FRAME_BYTES, 1, 0, sizeof(struct frame) },
	{ FRAME_BYTES, 0x80000000, 0, sizeof(struct frame) },
	{ FRAME_TAKEN, UINT32_MAX, 0, sizeof(struct frame) },
	{ FRAME_TAKEN, 0, 0, sizeof(struct frame) },
	{ FRAME_OFFER, 0, 0, sizeof(struct frame_offer) },
	{ FRAME_OFFER, 0, 1ULL << 63, sizeof(struct frame_offer) },
	{ FRAME_END + 1, 0, 0, sizeof(struct frame) },
	{ 0, 0, 0, sizeof(struct frame) },
};

TEST_F(liar, ends_its_own_channel_by_each_kind_of_nonsense)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		const struct lie *lie = &lies[i];

		ASSERT_EQ(0, greet(self, COPIED, 4));
		say(self, lie->kind, lie->taken, lie->length, lie->size);
		EXPECT_EQ(-EPROTO, hear(self));
		EXPECT_TRUE(has(ibchan_error_string(&self->error),
				"the peer sent what this side cannot take"));
		EXPECT_EQ(-ESHUTDOWN, ibchan_send_bytes(self->taken, "?", 1, 0, NULL));
		EXPECT_EQ(0, ibchan_channel_close(self->taken));
		self->taken = NULL;
		end_close(&self->end);
		memset(&self->end, 0, sizeof(self->end));
	}
}

/* It breaks no rule, and gets what it has asked for: nobody waits for it without an end. */
TEST_F(liar, that_takes_nothing_is_waited_for_as_long_as_the_sender_says)
{
	static unsigned char bytes[COPIED + 1];

	ASSERT_EQ(0, greet(self, COPIED, 2));
	EXPECT_EQ(0, ibchan_send_bytes(self->taken, bytes, COPIED, patience_ns(), NULL));
	EXPECT_EQ(0, ibchan_send_bytes(self->taken, bytes, COPIED, patience_ns(), NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_send_bytes(self->taken, bytes, 1, 20 * MS, &self->error));
	EXPECT_EQ(IBCHAN_REASON_MESSAGES_UNTAKEN, self->error.reason.code);
	ASSERT_EQ(0, say(self, FRAME_TAKEN, 2, 0, sizeof(struct frame)));
	EXPECT_EQ(-ECONNABORTED, ibchan_send_bytes(self->taken, bytes, COPIED + 1, 20 * MS,
						   &self->error));
	EXPECT_EQ(IBCHAN_REASON_NONE, self->error.reason.code);
}

/* Who greets with a number of no use is rejected as one who does not greet at all. */
TEST_F(liar, that_greets_with_nothing_to_take_is_rejected)
{
	EXPECT_EQ(-ETIMEDOUT, greet(self, 0, 4));
	end_close(&self->end);
	memset(&self->end, 0, sizeof(self->end));
	EXPECT_EQ(-ETIMEDOUT, greet(self, COPIED, 0));
}

TEST_F(liar, that_boasts_gets_no_more_than_this_side_has)
{
	static unsigned char bytes[20000];

	ASSERT_EQ(0, greet(self, UINT32_MAX, UINT32_MAX));
	EXPECT_EQ(-ECONNABORTED, ibchan_send_bytes(self->taken, bytes, sizeof(bytes), 20 * MS,
						   NULL));
}

/* --- in a loop --- */

static int next_kind(FIXTURE_DATA(liar) * self, struct ibchan_happening *happening)
{
	int rc = ibchan_next(ibchan_server_context(self->server), patience_ns(), happening, NULL);

	return rc ? rc : (int)happening->kind;
}

TEST_F(liar, that_talks_nonsense_is_told_to_have_ended_its_channel_once)
{
	struct ibchan_happening happening;

	ASSERT_EQ(0, greet(self, COPIED, 4));
	ASSERT_EQ(0, say(self, FRAME_BYTES, 0, 10, sizeof(struct frame) + 10));
	ASSERT_EQ(0, say(self, FRAME_BYTES, 1, 0, sizeof(struct frame)));
	ASSERT_EQ(IBCHAN_NEXT_MESSAGE, next_kind(self, &happening));
	EXPECT_EQ(10, hear(self));
	ASSERT_EQ(IBCHAN_NEXT_ENDED, next_kind(self, &happening));
	EXPECT_EQ(-EPROTO, happening.error);
	EXPECT_EQ(IBCHAN_BY_PEER, happening.by);
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(ibchan_server_context(self->server), 50 * MS, &happening,
					  NULL));
}

/* The message stays the first one, and yet the end comes. */
TEST_F(liar, that_offers_what_it_has_not_is_told_to_have_ended_its_channel)
{
	struct frame_offer offer = {
		.frame = frame_make(FRAME_OFFER, 0, 100000),
		.addr = htobe64(0x1000), .rkey = htobe32(0x12345678),
	};
	struct ibchan_happening happening;

	ASSERT_EQ(0, greet(self, COPIED, 4));
	ASSERT_EQ(0, send_raw(self, &offer, sizeof(offer)));
	ASSERT_EQ(IBCHAN_NEXT_MESSAGE, next_kind(self, &happening));
	EXPECT_EQ(100000, happening.length);
	EXPECT_EQ(-EPROTO, hear(self));
	EXPECT_EQ(-EPROTO, hear(self));
	ASSERT_EQ(IBCHAN_NEXT_ENDED, next_kind(self, &happening));
	EXPECT_EQ(-EPROTO, happening.error);
}

/* It never takes what it was lent: only the program's own break gives that back. */
TEST_F(liar, that_takes_nothing_keeps_what_it_was_lent_until_the_channel_ends)
{
	static unsigned char bytes[COPIED + 1];
	struct ibchan_happening happening;

	ASSERT_EQ(0, greet(self, COPIED, 2));
	ASSERT_EQ(1, ibchan_post_bytes(self->taken, bytes, sizeof(bytes), NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(ibchan_server_context(self->server), 50 * MS, &happening,
					  NULL));
	ASSERT_EQ(0, ibchan_channel_break(self->taken));
	ASSERT_EQ(IBCHAN_NEXT_SENT, next_kind(self, &happening));
	EXPECT_EQ(-ESHUTDOWN, happening.error);
	EXPECT_EQ((void *)bytes, happening.bytes);
	ASSERT_EQ(IBCHAN_NEXT_ENDED, next_kind(self, &happening));
}

TEST_HARNESS_MAIN
