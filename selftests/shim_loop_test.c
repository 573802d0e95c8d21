// SPDX-License-Identifier: GPL-2.0-only
/* A server of the short way that is one loop around ibchan_next(). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ghost.h"
#include "message.h"
#include "shim/dialer.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define CLIENTS	200

static const struct ibchan_message_params slight = {
	.size = sizeof(slight), .messages = 4, .message_bytes = 256,
};

/**
 * struct loop - the server
 * @server: listens
 * @context: of it
 * @clients: when so many have ended, it ends
 * @taken: clients that have come
 * @ended: of them, those that have closed
 * @cut: of them, those that have ended otherwise
 * @error: what went wrong
 */
struct loop {
	struct ibchan_server *server;
	struct ibchan_context *context;
	int clients;
	int taken;
	int ended;
	int cut;
	int error;
};

FIXTURE(loop)
{
	struct calm calm;
	struct loop loop;
	pthread_t thread;
	char port[8];
};

/* Every message goes back to who has sent it. */
static int answer(const struct ibchan_happening *happening)
{
	char bytes[256];
	ssize_t length = ibchan_receive_bytes(happening->channel, bytes, sizeof(bytes), 0, NULL);

	if (length != (ssize_t)happening->length)
		return length < 0 ? (int)length : -EPROTO;
	return ibchan_post_bytes(happening->channel, bytes, (size_t)length, NULL);
}

static int end(struct loop *loop, const struct ibchan_happening *happening)
{
	loop->ended++;
	loop->cut += happening->error != -ENODATA;
	if (happening->by != IBCHAN_BY_PEER || happening->priv != loop)
		return -EPROTO;
	return ibchan_channel_close(happening->channel);
}

static int handle(struct loop *loop, const struct ibchan_happening *happening)
{
	switch (happening->kind) {
	case IBCHAN_NEXT_CONNECTED:
		loop->taken++;
		ibchan_channel_set_priv(happening->channel, loop);
		return happening->server == loop->server ? 0 : -EPROTO;
	case IBCHAN_NEXT_MESSAGE:
		return answer(happening);
	case IBCHAN_NEXT_ENDED:
		return end(loop, happening);
	default:
		return -ENOMSG;
	}
}

static void *run(void *arg)
{
	struct loop *loop = arg;
	struct ibchan_happening happening;

	while (!loop->error && loop->ended < loop->clients) {
		loop->error = ibchan_next(loop->context, patience_ns(), &happening, NULL);
		if (!loop->error)
			loop->error = handle(loop, &happening);
	}
	return NULL;
}

FIXTURE_SETUP(loop)
{
	const struct rlimit files = { 8192, 8192 };

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, ibchan_serve(HOST, NULL, &slight, &self->loop.server, NULL));
	port_of_server(self->loop.server, self->port, sizeof(self->port));
	self->loop.context = ibchan_server_context(self->loop.server);
}

FIXTURE_TEARDOWN(loop)
{
	EXPECT_EQ(0, ibchan_server_close(self->loop.server));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int echo(struct ibchan_channel *client, int number)
{
	int rc = ibchan_send_bytes(client, &number, sizeof(number), patience_ns(), NULL);
	int answer = -1;

	if (rc)
		return rc;
	rc = (int)ibchan_receive_bytes(client, &answer, sizeof(answer), patience_ns(), NULL);
	return rc == sizeof(answer) && answer == number ? 0 : -EPROTO;
}

TEST_F(loop, serves_two_hundred_clients)
{
	static struct ibchan_channel *clients[CLIENTS];
	int i;

	self->loop.clients = CLIENTS;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, run, &self->loop));
	for (i = 0; i < CLIENTS; i++)
		ASSERT_EQ(0, ibchan_dial(HOST, self->port, &slight, &clients[i], NULL));
	for (i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, ibchan_send_bytes(clients[i], &i, sizeof(i), patience_ns(), NULL));
	for (i = CLIENTS - 1; i >= 0; i--) {
		int answer = -1;

		EXPECT_EQ(sizeof(answer), ibchan_receive_bytes(clients[i], &answer, sizeof(answer),
							       patience_ns(), NULL));
		EXPECT_EQ(i, answer);
		EXPECT_EQ(0, echo(clients[i], i + 1000));
	}
	for (i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, ibchan_channel_close(clients[i]));
	ASSERT_EQ(0, join_soon(self->thread, NULL));
	EXPECT_EQ(0, self->loop.error);
	EXPECT_EQ(CLIENTS, self->loop.taken);
}

/* Ghosts ask as a client does, and say no more; each of them keeps its place while it has one. */
#define GHOSTS	100
#define FEW	3

static int raise_ghosts(struct ghost *ghosts, const char *port)
{
	static const struct greeting greeting = {
		.magic = __builtin_bswap32(GREETING_MAGIC),
		.message_bytes = __builtin_bswap32(64), .messages = __builtin_bswap32(1),
	};
	struct ibchan_address address = {
		.family = AF_INET, .port = htons((__u16)atoi(port)),
	};
	int i, rc = 0;

	inet_pton(AF_INET, HOST, address.bytes);
	for (i = 0; i < GHOSTS && !rc; i++) {
		ghosts[i].data = &greeting;
		ghosts[i].length = sizeof(greeting);
		ghost_speak(&ghosts[i], false);
		rc = ghost_ask(&ghosts[i], &address);
	}
	return rc;
}

TEST_F(loop, serves_a_client_behind_a_hundred_that_ask_and_say_no_more)
{
	static struct ghost ghosts[GHOSTS];
	struct ibchan_channel *client;
	__u64 begin;
	int i;

	self->loop.clients = FEW;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, run, &self->loop));
	ASSERT_EQ(0, raise_ghosts(ghosts, self->port));
	begin = now_ms();
	for (i = 0; i < FEW; i++) {
		ASSERT_EQ(0, ibchan_dial(HOST, self->port, &slight, &client, NULL));
		EXPECT_EQ(0, echo(client, i));
		EXPECT_EQ(0, ibchan_channel_close(client));
		/* Three times 32 give up their places, and it gets one of the last. */
		if (!i)
			EXPECT_GT(slow() ? 20000 : 2000, now_ms() - begin);
	}
	ASSERT_EQ(0, join_soon(self->thread, NULL));
	EXPECT_EQ(0, self->loop.error);
	EXPECT_EQ(FEW, self->loop.taken);
	for (i = 0; i < GHOSTS; i++)
		ghost_close(&ghosts[i]);
}

TEST_HARNESS_MAIN
