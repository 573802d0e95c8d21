// SPDX-License-Identifier: GPL-2.0-only
/* What ibchan_next() tells, in which order, and how often. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shim/dialer.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define ROOM	4	/* messages that may wait */
#define COPIED	256
#define LONG	100000

/* Both ends of @num clients, of which the server's context tells. */
FIXTURE(next)
{
	struct calm calm;
	struct ibchan_server *server;
	struct ibchan_context *context;
	struct ibchan_message_params params;
	struct ibchan_channel *clients[2];
	struct ibchan_channel *taken[2];
	struct ibchan_happening happening;
	struct ibchan_error error;
	char port[8];
	char bytes[LONG];
	char got[LONG];
};

static int next(FIXTURE_DATA(next) * self)
{
	return ibchan_next(self->context, patience_ns(), &self->happening, &self->error);
}

/* What happens next is of that kind, on that channel. */
static int next_is(FIXTURE_DATA(next) * self, __u32 kind, const struct ibchan_channel *channel)
{
	int rc = next(self);

	if (!rc && (self->happening.kind != kind || self->happening.channel != channel)) {
		fprintf(stderr, "# kind %u in place of %u%s\n", self->happening.kind, kind,
			self->happening.channel == channel ? "" : " of another channel");
		rc = -EPROTO;
	}
	return rc;
}

/* There is nothing to tell, and the descriptor says so. */
static bool is_silent(FIXTURE_DATA(next) * self)
{
	struct pollfd fd = { .fd = ibchan_next_fd(self->context), .events = POLLIN };
	int rc = ibchan_next(self->context, 0, &self->happening, NULL);

	if (rc != -EAGAIN)
		fprintf(stderr, "# %d, kind %u\n", rc, self->happening.kind);
	return rc == -EAGAIN && poll(&fd, 1, 0) == 0;
}

static int begin_to_serve(FIXTURE_DATA(next) * self)
{
	int rc = ibchan_serve(HOST, NULL, &self->params, &self->server, &self->error);

	if (rc)
		return rc;
	self->context = ibchan_server_context(self->server);
	port_of_server(self->server, self->port, sizeof(self->port));
	return 0;
}

static int connect_client(FIXTURE_DATA(next) * self, int i)
{
	struct dialer dialer = { .host = HOST, .params = &self->params };
	int rc;

	strcpy(dialer.port, self->port);
	if (pthread_create(&dialer.thread, NULL, dial, &dialer))
		return -EAGAIN;
	rc = next(self);
	rc = join_soon(dialer.thread, NULL) ?: rc ?: dialer.rc;
	self->clients[i] = dialer.channel;
	if (!rc && self->happening.kind != IBCHAN_NEXT_CONNECTED)
		return -EPROTO;
	self->taken[i] = self->happening.channel;
	return rc;
}

static int send_text(struct ibchan_channel *channel, const char *text)
{
	return ibchan_send_bytes(channel, text, strlen(text), patience_ns(), NULL);
}

static int receive(FIXTURE_DATA(next) * self, struct ibchan_channel *channel)
{
	return (int)ibchan_receive_bytes(channel, self->got, LONG, patience_ns(), NULL);
}

static int close_end(struct ibchan_channel **end)
{
	int rc = ibchan_channel_close(*end);

	*end = NULL;
	return rc;
}

FIXTURE_SETUP(next)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	self->params = (struct ibchan_message_params) {
		.size = sizeof(self->params), .messages = ROOM, .message_bytes = COPIED,
	};
	ASSERT_EQ(0, begin_to_serve(self));
	ASSERT_EQ(0, connect_client(self, 0));
	fill((unsigned char *)self->bytes, LONG, 1);
}

FIXTURE_TEARDOWN(next)
{
	int i;

	for (i = 0; i < 2; i++) {
		ibchan_channel_close(self->clients[i]);
		ibchan_channel_close(self->taken[i]);
	}
	EXPECT_EQ(0, ibchan_server_close(self->server));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(next, says_nothing_where_nothing_happens)
{
	EXPECT_EQ(self->server, self->happening.server);
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(-EAGAIN, ibchan_next(self->context, 0, &self->happening, &self->error));
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(self->context, 20 * MS, &self->happening, NULL));
	EXPECT_EQ(-EINVAL, ibchan_next(self->context, -2, &self->happening, &self->error));
	EXPECT_STREQ("timeout_ns: -2 is below -1", ibchan_error_string(&self->error));
}

TEST_F(next, tells_of_each_message_once_and_of_the_following_when_it_was_received)
{
	ibchan_channel_set_priv(self->taken[0], self);
	ASSERT_EQ(0, send_text(self->clients[0], "one"));
	ASSERT_EQ(0, send_text(self->clients[0], "four"));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_EQ(3, self->happening.length);
	EXPECT_EQ(self, self->happening.priv);
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(3, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_EQ(4, self->happening.length);
	EXPECT_EQ(4, receive(self, self->taken[0]));
	EXPECT_TRUE(is_silent(self));
}

/* The first client has a further message whenever one of its was received. */
TEST_F(next, tells_of_a_message_beside_a_client_that_always_has_one)
{
	int i, rc;

	ASSERT_EQ(0, connect_client(self, 1));
	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(0, send_text(self->clients[0], "busy"));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	ASSERT_EQ(0, send_text(self->clients[1], "calm"));
	for (i = 0; i < 500 && self->happening.channel == self->taken[0]; i++) {
		ASSERT_EQ(4, receive(self, self->taken[0]));
		/* Half a window is told of at a time: then there is room for two. */
		while (!(rc = ibchan_post_bytes(self->clients[0], "busy", 4, NULL)))
			continue;
		ASSERT_EQ(-EAGAIN, rc);
		ASSERT_EQ(0, next(self));
	}
	EXPECT_EQ(self->taken[1], self->happening.channel);
	EXPECT_EQ(IBCHAN_NEXT_MESSAGE, self->happening.kind);
}

/* --- sending --- */

TEST_F(next, tells_that_a_channel_takes_messages_again_once_the_peer_has_received_some)
{
	int i;

	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(0, ibchan_post_bytes(self->taken[0], "x", 1, &self->error));
	EXPECT_EQ(-EAGAIN, ibchan_post_bytes(self->taken[0], "y", 1, &self->error));
	EXPECT_EQ(IBCHAN_REASON_MESSAGES_UNTAKEN, self->error.reason.code);
	EXPECT_TRUE(is_silent(self));
	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(1, receive(self, self->clients[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_WRITABLE, self->taken[0]));
	EXPECT_EQ(0, ibchan_post_bytes(self->taken[0], "y", 1, NULL));
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(1, receive(self, self->clients[0]));
	EXPECT_EQ('y', self->got[0]);
}

/* The twin: who has not tried in vain is told nothing. */
TEST_F(next, does_not_tell_of_room_that_nobody_has_asked_for)
{
	int i;

	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(0, ibchan_post_bytes(self->taken[0], "x", 1, &self->error));
	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(1, receive(self, self->clients[0]));
	ASSERT_EQ(0, send_text(self->clients[0], "end"));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_TRUE(is_silent(self));
}

TEST_F(next, tells_when_the_peer_has_received_a_long_message_that_was_lent)
{
	ASSERT_EQ(1, ibchan_post_bytes(self->taken[0], self->bytes, LONG, &self->error));
	ASSERT_EQ(1, ibchan_post_bytes(self->taken[0], self->bytes + 1, LONG - 1, NULL));
	EXPECT_EQ(0, ibchan_post_bytes(self->taken[0], "behind", 6, NULL));
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(LONG, receive(self, self->clients[0]));
	EXPECT_EQ(0, memcmp(self->bytes, self->got, LONG));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_SENT, self->taken[0]));
	EXPECT_EQ((void *)self->bytes, self->happening.bytes);
	EXPECT_EQ(LONG, self->happening.length);
	EXPECT_EQ(0, self->happening.error);
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(LONG - 1, receive(self, self->clients[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_SENT, self->taken[0]));
	EXPECT_EQ((void *)(self->bytes + 1), self->happening.bytes);
	EXPECT_EQ(6, receive(self, self->clients[0]));
}

TEST_F(next, gives_back_what_was_lent_to_a_peer_that_has_gone_before_it_tells_of_the_end)
{
	ASSERT_EQ(1, ibchan_post_bytes(self->taken[0], self->bytes, LONG, &self->error));
	ASSERT_EQ(0, ibchan_channel_break(self->clients[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_SENT, self->taken[0]));
	EXPECT_EQ(-ESHUTDOWN, self->happening.error);
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_EQ(-ECONNRESET, self->happening.error);
	EXPECT_EQ(IBCHAN_BY_PEER, self->happening.by);
}

/* It cannot be read any more, so the peer must not believe that it has everything. */
TEST_F(next, a_close_with_a_message_that_is_lent_is_no_orderly_end)
{
	ASSERT_EQ(1, ibchan_post_bytes(self->clients[0], self->bytes, LONG, &self->error));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_EQ(-ECONNRESET, close_end(&self->clients[0]));
	EXPECT_EQ(-ECONNRESET, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_EQ(-ECONNRESET, self->happening.error);
}

/* --- the end --- */

TEST_F(next, tells_of_an_orderly_end_once_and_behind_all_messages)
{
	ASSERT_EQ(0, send_text(self->clients[0], "one"));
	ASSERT_EQ(0, send_text(self->clients[0], "two"));
	ASSERT_EQ(0, close_end(&self->clients[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_TRUE(is_silent(self));
	ASSERT_EQ(3, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	ASSERT_EQ(3, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_EQ(-ENODATA, self->happening.error);
	EXPECT_EQ(IBCHAN_BY_PEER, self->happening.by);
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(self->context, 50 * MS, &self->happening, NULL));
	EXPECT_TRUE(is_silent(self));
}

TEST_F(next, tells_who_has_ended_a_channel_that_this_side_has_broken)
{
	ASSERT_EQ(0, ibchan_channel_break(self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_EQ(-ECANCELED, self->happening.error);
	EXPECT_EQ(IBCHAN_BY_THIS_SIDE, self->happening.by);
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(self->context, 50 * MS, &self->happening, NULL));
	EXPECT_TRUE(is_silent(self));
}

/* Some devices do not say why they have ended the channel. */
TEST_F(next, tells_that_a_peer_with_a_wrong_key_has_ended_the_channel)
{
	const struct ibchan_remote_region nowhere = { .addr = 4096, .length = 64, .rkey = 0x1234 };
	struct ibchan_submit_sge sge = ibchan_sge_plain(self->got, 64);
	ssize_t rc;

	ASSERT_EQ(-EREMOTEIO, ibchan_write(self->clients[0], &sge, 1, &nowhere, patience_ns(),
					   NULL));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_TRUE(self->happening.error == -EACCES || self->happening.error == -ECANCELED)
		TH_LOG("%d", self->happening.error);
	EXPECT_EQ(IBCHAN_BY_PEER, self->happening.by);
	rc = ibchan_receive_bytes(self->taken[0], self->got, LONG, 0, &self->error);
	EXPECT_EQ(self->happening.error, rc);
	EXPECT_TRUE(has(ibchan_error_string(&self->error), "wrong key"))
		TH_LOG("%s", ibchan_error_string(&self->error));
}

TEST_F(next, wakes_a_program_that_waits_for_room_when_its_peer_ends_and_then_tells_of_its_messages)
{
	int i;

	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(0, ibchan_post_bytes(self->taken[0], "x", 1, &self->error));
	ASSERT_EQ(-EAGAIN, ibchan_post_bytes(self->taken[0], "y", 1, &self->error));
	ASSERT_EQ(0, send_text(self->clients[0], "first"));
	ASSERT_EQ(0, send_text(self->clients[0], "second"));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_TRUE(is_silent(self));
	ASSERT_EQ(0, close_end(&self->clients[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_WRITABLE, self->taken[0]));
	EXPECT_EQ(-ESHUTDOWN, ibchan_post_bytes(self->taken[0], "y", 1, &self->error));
	EXPECT_EQ(5, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	EXPECT_EQ(6, receive(self, self->taken[0]));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_TRUE(is_silent(self));
}

/* All receives of this side are used up: none is left that the break could end. */
TEST_F(next, tells_of_the_end_of_a_peer_that_has_sent_all_it_may)
{
	int i;

	for (i = 0; i < ROOM; i++)
		ASSERT_EQ(0, send_text(self->clients[0], "last"));
	ASSERT_EQ(0, close_end(&self->clients[0]));
	for (i = 0; i < ROOM; i++) {
		ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
		ASSERT_EQ(4, receive(self, self->taken[0]));
	}
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_ENDED, self->taken[0]));
	EXPECT_EQ(-ENODATA, self->happening.error);
}

TEST_F(next, tells_nothing_of_a_channel_that_was_closed)
{
	ASSERT_EQ(0, send_text(self->clients[0], "lost"));
	ASSERT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
	ibchan_channel_close(self->taken[0]);
	self->taken[0] = NULL;
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(self->context, 50 * MS, &self->happening, NULL));
	EXPECT_TRUE(is_silent(self));
}

/* --- one context for several --- */

/* A server and a client of it in one context: the client's end is no client of the server's. */
TEST_F(next, tells_of_a_server_and_of_a_channel_that_was_dialled_in_one_context)
{
	struct ibchan_context *context = self->context;
	struct ibchan_channel *first = self->taken[0];
	int i, seen = 0;

	self->params.context = self->context;
	ASSERT_EQ(0, connect_client(self, 1));
	EXPECT_EQ(context, ibchan_channel_context(self->clients[1]));
	EXPECT_TRUE(is_silent(self));
	ASSERT_EQ(0, send_text(self->clients[0], "a"));
	ASSERT_EQ(0, send_text(self->clients[1], "b"));
	ASSERT_EQ(0, send_text(self->taken[1], "c"));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, next(self));
		EXPECT_EQ(IBCHAN_NEXT_MESSAGE, self->happening.kind);
		seen |= self->happening.channel == first ? 1 :
			self->happening.channel == self->taken[1] ? 2 :
			self->happening.channel == self->clients[1] ? 4 : 8;
	}
	EXPECT_EQ(7, seen);
}

static int in_a_child(void *arg)
{
	FIXTURE_DATA(next) * self = arg;
	struct ibchan_channel *channel;

	if (ibchan_next(self->context, 0, &self->happening, NULL) != -EPERM ||
	    ibchan_next_fd(self->context) != -EPERM ||
	    ibchan_post_bytes(self->taken[0], "no", 2, NULL) != -EPERM ||
	    ibchan_send_bytes(self->taken[0], "no", 2, 0, NULL) != -EPERM ||
	    ibchan_receive_bytes(self->taken[0], self->got, LONG, 0, NULL) != -EPERM ||
	    ibchan_take(self->server, 0, &channel, NULL) != -EPERM)
		return -EPROTO;
	return ibchan_channel_close(self->taken[0]) ?: ibchan_server_close(self->server);
}

TEST_F(next, tells_a_child_that_was_forked_nothing_and_its_parent_as_before)
{
	EXPECT_TRUE(is_silent(self));
	EXPECT_EQ(0, in_child(in_a_child, self));
	ASSERT_EQ(0, send_text(self->clients[0], "still"));
	EXPECT_EQ(0, next_is(self, IBCHAN_NEXT_MESSAGE, self->taken[0]));
}

/* --- channels without messages --- */

FIXTURE(built)
{
	struct calm calm;
	struct meeting m;
};

FIXTURE_SETUP(built)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
}

FIXTURE_TEARDOWN(built)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Of works on watched queues, and of the end behind the last of them. */
TEST_F(built, channel_ends_behind_the_completions_of_its_works)
{
	struct end *asked = &self->m.asked;
	struct ibchan_submit_sge sge = sge_at(asked, 0, 64);
	struct ibchan_happening happening;
	int i;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_cq_watch(asked->cq, NULL));
	for (i = 0; i < 3; i++) {
		sge = sge_at(asked, 64 * i, 64);
		ASSERT_EQ(0, post_receive(self->m.context, asked, &sge, i));
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
	ASSERT_EQ(0, ibchan_channel_break(asked->channel));
	for (i = 0; i < 3;) {
		ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
		if (happening.channel != asked->channel)
			continue;
		ASSERT_EQ(IBCHAN_NEXT_COMPLETION, happening.kind);
		EXPECT_EQ(i++, happening.completion.wr_id);
		EXPECT_GT(0, happening.completion.error);
	}
	do {
		ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
	} while (happening.channel != asked->channel);
	EXPECT_EQ(IBCHAN_NEXT_ENDED, happening.kind);
	EXPECT_EQ(IBCHAN_BY_THIS_SIDE, happening.by);
}

/* The twin: once it is closed, not even the completions of its works. */
TEST_F(built, channel_that_was_closed_has_no_completions_any_more)
{
	struct end *asked = &self->m.asked;
	struct ibchan_submit_sge sge = sge_at(asked, 0, 64);
	struct ibchan_happening happening;
	const struct ibchan_channel *closed;
	int rc;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_cq_watch(asked->cq, NULL));
	ASSERT_EQ(0, post_receive(self->m.context, asked, &sge, 1));
	closed = asked->channel;
	ASSERT_EQ(0, ibchan_channel_close(asked->channel));
	asked->channel = NULL;
	while (!(rc = ibchan_next(self->m.context, 50 * MS, &happening, NULL))) {
		EXPECT_NE(IBCHAN_NEXT_COMPLETION, happening.kind);
		EXPECT_NE(closed, happening.channel);
	}
	EXPECT_EQ(-ETIMEDOUT, rc);
}

/* Who hands a listener over hears of its requests, and takes them. */
TEST_F(built, listener_that_was_handed_over_tells_of_requests)
{
	struct ibchan_happening happening;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_next(self->m.context, 50 * MS, &happening, NULL));
	ibchan_listener_set_priv(self->m.listener, self);
	ASSERT_EQ(0, ibchan_listener_watch(self->m.listener, NULL));
	ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
	EXPECT_EQ(IBCHAN_NEXT_REQUEST, happening.kind);
	EXPECT_EQ(self->m.listener, happening.listener);
	EXPECT_EQ((void *)self, happening.priv);
	EXPECT_EQ(0, ibchan_request_reject(happening.request, NULL, 0, NULL));
	ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
	EXPECT_EQ(IBCHAN_NEXT_ENDED, happening.kind);
	EXPECT_EQ(self->m.asking.channel, happening.channel);
	EXPECT_EQ(-ECONNRESET, happening.error);
	EXPECT_EQ(IBCHAN_BY_PEER, happening.by);
}

TEST_HARNESS_MAIN
