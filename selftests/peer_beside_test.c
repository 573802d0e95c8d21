// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer that is silent, slow or lies, at each stage of a connection by address, as client and as
 * server, beside an honest one that asks at the same listener of the same file: the honest one is
 * connected, and its first message has arrived, as soon as if it were alone.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "ghost.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define HOST		"10.77.0.1"
#define NOBODY		"10.77.0.99"
#define GHOST_PORT	7743

/* What an honest peer may be held up. */
#define HELD_UP_MS	(slow() ? patience_ms() : 100)

FIXTURE(beside)
{
	struct calm calm;
	struct side server;	/* its channel is for the honest client */
	struct side other;	/* another channel of the server's file, for the other peer */
	struct side client;
	struct ibchan_cmd_listener_create listener;
	struct ghost ghost;
	unsigned char lie[52];
};

/* Brings a peer to the stage at which it misbehaves. */
FIXTURE_VARIANT(beside)
{
	int (*misbehave)(FIXTURE_DATA(beside) * self);
	/* What a slow one does at last; it is served then. */
	int (*go_on)(FIXTURE_DATA(beside) * self);
};

static struct ibchan_address address_of(const char *host, __u16 port)
{
	struct ibchan_address address = { .family = AF_INET, .port = htons(port) };

	inet_pton(AF_INET, host, address.bytes);
	return address;
}

FIXTURE_SETUP(beside)
{
	struct side_options options = side_defaults();

	memset(&self->ghost, 0, sizeof(self->ghost));
	pattern(self->lie, sizeof(self->lie), 7);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->server, &options));
	ASSERT_EQ(0, side_share(&self->other, &self->server, &options));
	ASSERT_EQ(0, side_open(&self->client, &options));
	self->listener = (struct ibchan_cmd_listener_create) { .address = address_of(HOST, 0) };
	ASSERT_EQ(0, cmd_listener_create(self->server.fd, &self->listener));
}

FIXTURE_TEARDOWN(beside)
{
	ghost_close(&self->ghost);
	close(self->listener.out_fd);
	side_close(&self->client);
	side_close(&self->other);
	side_close(&self->server);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int ask(const struct side *side, const struct ibchan_address *peer, __u32 flags)
{
	struct ibchan_cmd_channel_connect cmd = {
		.channel = side->channel, .peer = *peer, .flags = flags,
	};

	return cmd_channel_connect(side->fd, &cmd);
}

/* The request of a client that has left may still be there: word of that comes by a worker. */
static int accept_on(FIXTURE_DATA(beside) * self, const struct side *side, __u32 flags)
{
	int rc;

	do {
		rc = side_accept_any(side, self->listener.out_listener, self->listener.out_fd,
				     flags);
	} while (rc == -EPROTOTYPE);
	return rc;
}

static bool is_connected(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_CONNECTED;
}

/* An honest client asks, is accepted, and sends a message. */
static int meet_honestly(FIXTURE_DATA(beside) * self)
{
	int rc = ask(&self->client, &self->listener.out_address, 0);

	rc = rc ?: accept_on(self, &self->server, 0);
	if (rc)
		return rc;
	if (!eventually(is_connected, &self->client) || !eventually(is_connected, &self->server))
		return -ETIMEDOUT;
	return exchange(&self->client, &self->server);
}

/* Nobody answers it. */
static int send_to_ghost(FIXTURE_DATA(beside) * self)
{
	if (!eventually(is_connected, &self->other))
		return -ETIMEDOUT;
	return post_one(&self->other, work(&self->other, IBCHAN_OP_SEND, 1, 0, 64));
}

/* ---- As client ---- */

static int ask_and_leave(FIXTURE_DATA(beside) * self)
{
	int rc = ghost_ask(&self->ghost, &self->listener.out_address);

	ghost_close(&self->ghost);
	return rc;
}

static int ask_and_hear_nothing(FIXTURE_DATA(beside) * self)
{
	int rc = ghost_ask(&self->ghost, &self->listener.out_address);

	return rc ?: accept_on(self, &self->other, IBCHAN_CONNECT_FOREIGN);
}

static int ask_with_a_lie(FIXTURE_DATA(beside) * self)
{
	self->ghost.data = self->lie;
	self->ghost.length = sizeof(self->lie);
	self->ghost.more_reads = 100;
	self->ghost.more_started = 100;
	return ask_and_hear_nothing(self);
}

static int say_ready(FIXTURE_DATA(beside) * self)
{
	return ghost_connected(&self->ghost);
}

static int say_ready_and_nothing_more(FIXTURE_DATA(beside) * self)
{
	int rc = ask_and_hear_nothing(self);

	rc = rc ?: say_ready(self);
	return rc ?: send_to_ghost(self);
}

FIXTURE_VARIANT_ADD(beside, a_client_that_asks_and_leaves) { .misbehave = ask_and_leave };

FIXTURE_VARIANT_ADD(beside, a_client_that_asks_and_is_silent) {
	.misbehave = ask_and_hear_nothing,
};

FIXTURE_VARIANT_ADD(beside, a_client_that_is_slow_to_be_ready) {
	.misbehave = ask_and_hear_nothing, .go_on = say_ready,
};

FIXTURE_VARIANT_ADD(beside, a_client_that_asks_with_a_lie) { .misbehave = ask_with_a_lie };

FIXTURE_VARIANT_ADD(beside, a_client_that_is_ready_and_silent) {
	.misbehave = say_ready_and_nothing_more,
};

/* ---- As server ---- */

static int ask_nobody(FIXTURE_DATA(beside) * self)
{
	const struct ibchan_address nobody = address_of(NOBODY, GHOST_PORT);

	return ask(&self->other, &nobody, IBCHAN_CONNECT_FOREIGN);
}

/* It has heard the request. */
static int ask_ghost(FIXTURE_DATA(beside) * self)
{
	const struct ibchan_address address = address_of(HOST, GHOST_PORT);
	int rc = ghost_listen(&self->ghost, &address);

	rc = rc ?: ask(&self->other, &address, IBCHAN_CONNECT_FOREIGN);
	return rc ?: ghost_asked(&self->ghost);
}

static int answer(FIXTURE_DATA(beside) * self)
{
	return ghost_yes(&self->ghost);
}

static int answer_with_a_lie(FIXTURE_DATA(beside) * self)
{
	int rc = ask_ghost(self);

	self->ghost.data = self->lie;
	self->ghost.length = sizeof(self->lie);
	self->ghost.more_reads = 100;
	self->ghost.more_started = 100;
	return rc ?: answer(self);
}

static int answer_and_say_nothing_more(FIXTURE_DATA(beside) * self)
{
	int rc = ask_ghost(self);

	rc = rc ?: answer(self);
	return rc ?: send_to_ghost(self);
}

FIXTURE_VARIANT_ADD(beside, a_server_whose_address_is_silent) { .misbehave = ask_nobody };

FIXTURE_VARIANT_ADD(beside, a_server_that_does_not_answer) { .misbehave = ask_ghost };

FIXTURE_VARIANT_ADD(beside, a_server_that_answers_slowly) {
	.misbehave = ask_ghost, .go_on = answer,
};

FIXTURE_VARIANT_ADD(beside, a_server_that_answers_with_a_lie) { .misbehave = answer_with_a_lie };

FIXTURE_VARIANT_ADD(beside, a_server_that_is_ready_and_silent) {
	.misbehave = answer_and_say_nothing_more,
};

TEST_F(beside, an_honest_peer_is_not_held_up)
{
	__u64 start;

	ASSERT_EQ(0, variant->misbehave(self));
	start = now_ms();
	EXPECT_EQ(0, meet_honestly(self));
	EXPECT_GE(HELD_UP_MS, (long)(now_ms() - start));
	if (!variant->go_on)
		return;
	EXPECT_NE(IBCHAN_CHANNEL_CONNECTED, side_state(&self->other));
	ASSERT_EQ(0, variant->go_on(self));
	EXPECT_TRUE(eventually(is_connected, &self->other));
}

TEST_HARNESS_MAIN
