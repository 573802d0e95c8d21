// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is left of a host that has crashed: its peer still has a connection with a queue pair of the
 * number that a new one has. Here a ghost claims that number, on the same device.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "ghost.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define REJ_STALE_CONN	10

/* Longer than the first pause between two questions. */
#define CONNECT_MS	500

FIXTURE(stale)
{
	struct calm calm;
	struct side server;
	struct side client;
	struct ghost ghost;
	struct ibchan_cmd_listener_create listen;
};

/* The ghost is connected to the server, by the number of the client's queue pair. */
FIXTURE_SETUP(stale)
{
	const struct side_options options = side_defaults();

	memset(&self->ghost, 0, sizeof(self->ghost));
	self->listen = (struct ibchan_cmd_listener_create) { .address.family = AF_INET };
	inet_pton(AF_INET, "10.77.0.1", self->listen.address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->server, &options));
	ASSERT_EQ(0, side_open(&self->client, &options));
	ASSERT_EQ(0, cmd_listener_create(self->server.fd, &self->listen));
	self->ghost.qpn = ntohl(self->client.endpoint.qpn);
	ghost_speak(&self->ghost, false);
	ASSERT_EQ(0, ghost_ask(&self->ghost, &self->listen.out_address));
	ASSERT_EQ(0, side_accept(&self->server, self->listen.out_listener, self->listen.out_fd));
	ASSERT_EQ(0, ghost_connected(&self->ghost));
}

FIXTURE_TEARDOWN(stale)
{
	ghost_close(&self->ghost);
	side_close(&self->client);
	side_close(&self->server);
	close(self->listen.out_fd);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int ask(FIXTURE_DATA(stale) * self, const struct ibchan_address *peer, __u32 connect_ms)
{
	struct ibchan_cmd_channel_connect cmd = {
		.channel = self->client.channel, .peer = *peer, .connect_ms = connect_ms,
	};

	return cmd_channel_connect(self->client.fd, &cmd);
}

static bool is_connected(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_CONNECTED;
}

/* The server's connection manager has noticed, and ends the old one when the ghost says so. */
TEST_F(stale, connection_of_before_a_crash_does_not_keep_its_host_from_connecting)
{
	struct ibchan_cmd_listener_create listen = { .address = self->listen.address };
	const struct side_options options = side_defaults();
	struct side server;

	ASSERT_EQ(0, side_open(&server, &options));
	ASSERT_EQ(0, cmd_listener_create(server.fd, &listen));
	ASSERT_EQ(0, ask(self, &listen.out_address, 0));
	ASSERT_TRUE(eventually(ghost_is_answered, &self->ghost));
	ghost_close(&self->ghost);
	EXPECT_EQ(0, side_accept(&server, listen.out_listener, listen.out_fd));
	EXPECT_TRUE(eventually(is_connected, &self->client));
	EXPECT_TRUE(eventually(is_connected, &server));
	side_close(&server);
	close(listen.out_fd);
}

TEST_F(stale, connection_that_never_ends_has_the_time_of_the_stage)
{
	struct ibchan_cmd_channel_connection connection = {
		.channel = self->client.channel, .timeout_ns = patience_ms() * 1000000LL,
	};
	const __u64 begin = now_ms();
	__u64 took;

	ASSERT_EQ(0, ask(self, &self->listen.out_address, CONNECT_MS));
	ASSERT_EQ(0, cmd_channel_connection(self->client.fd, &connection));
	took = now_ms() - begin;
	EXPECT_EQ(ECONNRESET, connection.out_error);
	EXPECT_EQ(REJ_STALE_CONN, connection.out_cm_error);
	EXPECT_LE(100, took);
	EXPECT_GE(CONNECT_MS + (slow() ? patience_ms() / 2 : 200), took);
}

TEST_HARNESS_MAIN
