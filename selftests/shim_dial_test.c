// SPDX-License-Identifier: GPL-2.0-only
/* The short way: peers of all kinds, programs of it, and structs that grow. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ghost.h"
#include "shim/dialer.h"
#include "shim/meeting.h"
#include "shim/run.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST		"10.77.0.1"
#define GHOST_PORT	7722

FIXTURE(peer)
{
	struct calm calm;
	struct ibchan_error error;
	struct ghost ghost;
};

FIXTURE_SETUP(peer)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(peer)
{
	ghost_close(&self->ghost);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* The client is connected, and has ended by the time that this would be told. */
static void *answer_in_another_way(void *arg)
{
	struct meeting *m = arg;
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, m->asked.pd, NULL);
	ibchan_builder_accept(&builder, m->listener, patience_ns() / 4, &m->asked.channel,
			      &m->error);
	return NULL;
}

TEST_F(peer, that_takes_no_messages_is_no_server)
{
	struct ibchan_channel *channel;
	struct meeting m = { 0 };
	pthread_t thread;

	ASSERT_EQ(0, meeting_begin(&m, HOST));
	ASSERT_EQ(0, end_objects(&m.asked, m.context, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, answer_in_another_way, &m));
	EXPECT_EQ(-EPROTOTYPE, ibchan_dial(HOST, m.port, NULL, &channel, &self->error));
	EXPECT_EQ(0, join_soon(thread, NULL));
	EXPECT_EQ(0, meeting_end(&m));
}

static void *accept_ghost(void *ghost)
{
	ghost_accept(ghost);
	return NULL;
}

TEST_F(peer, that_is_no_ibchan_is_no_server)
{
	struct ibchan_address address = { .family = AF_INET, .port = htons(GHOST_PORT) };
	struct ibchan_channel *channel;
	pthread_t thread;
	char port[8];

	inet_pton(AF_INET, HOST, address.bytes);
	snprintf(port, sizeof(port), "%u", GHOST_PORT);
	ASSERT_EQ(0, ghost_listen(&self->ghost, &address));
	ASSERT_EQ(0, pthread_create(&thread, NULL, accept_ghost, &self->ghost));
	EXPECT_EQ(-EPROTOTYPE, ibchan_dial(HOST, port, NULL, &channel, &self->error));
	EXPECT_EQ(0, join_soon(thread, NULL));
}

#define MANY	100

/* The body of a server that says where it listens, and wants MANY numbers in order. */
static int serve_in_child(int out)
{
	struct ibchan_channel *channel;
	struct ibchan_server *server;
	char port[8] = "";
	int i, number, rc;

	rc = ibchan_serve(NULL, NULL, NULL, &server, NULL);
	if (rc)
		return rc;
	port_of_server(server, port, sizeof(port));
	if (write(out, port, sizeof(port)) != sizeof(port))
		return -EIO;
	rc = ibchan_take(server, patience_ns(), &channel, NULL);
	for (i = 0; i < MANY && !rc; i++) {
		rc = ibchan_receive_bytes(channel, &number, sizeof(number), patience_ns(), NULL);
		rc = rc == sizeof(number) && number == i ? 0 : -EPROTO;
	}
	/* The end of a client. */
	if (!rc && ibchan_receive_bytes(channel, &number, sizeof(number), patience_ns(), NULL) !=
		   -ENODATA)
		rc = -EPROTO;
	return rc ?: ibchan_channel_close(channel) ?: ibchan_server_close(server);
}

static pid_t fork_server(char *port, size_t size)
{
	int ends[2];
	pid_t child;

	if (pipe(ends))
		return -1;
	child = fork();
	if (!child)
		_exit(-serve_in_child(ends[1]));
	close(ends[1]);
	if (read(ends[0], port, size) != (ssize_t)size)
		port[0] = '\0';
	close(ends[0]);
	return child;
}

static void *send_many(void *arg)
{
	struct dialer *dialer = arg;
	int i;

	dial(dialer);
	for (i = 0; i < MANY && !dialer->rc; i++)
		dialer->rc = ibchan_send_bytes(dialer->channel, &i, sizeof(i), patience_ns(),
					       &dialer->error);
	return NULL;
}

/* The client sends more than may wait, as soon as it is connected, while the server is stopped. */
TEST_F(peer, that_is_stopped_for_a_second_gets_all_of_a_client_that_sends_at_once)
{
	struct dialer dialer = { .host = HOST };
	pid_t child = fork_server(dialer.port, sizeof(dialer.port));

	ASSERT_LT(0, child);
	ASSERT_EQ(0, kill(child, SIGSTOP));
	ASSERT_EQ(0, pthread_create(&dialer.thread, NULL, send_many, &dialer));
	moment(1000000);
	ASSERT_EQ(0, kill(child, SIGCONT));
	moment(20000);
	ASSERT_EQ(0, kill(child, SIGSTOP));
	moment(1000000);
	ASSERT_EQ(0, kill(child, SIGCONT));
	ASSERT_EQ(0, join_soon(dialer.thread, NULL));
	EXPECT_EQ(0, dialer.rc);
	EXPECT_EQ(0, ibchan_channel_close(dialer.channel));
	EXPECT_EQ(0, child_result(child));
}

TEST_F(peer, that_is_killed_ends_receives_and_sends)
{
	struct dialer dialer = { .host = HOST };
	pid_t child = fork_server(dialer.port, sizeof(dialer.port));
	char byte;

	ASSERT_LT(0, child);
	dial(&dialer);
	ASSERT_EQ(0, dialer.rc);
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-ECONNRESET, ibchan_receive_bytes(dialer.channel, &byte, 1, patience_ns(), NULL));
	EXPECT_EQ(-ESHUTDOWN, ibchan_send_bytes(dialer.channel, "?", 2, 0, NULL));
	EXPECT_EQ(-EINTR, child_result(child));
	EXPECT_EQ(0, ibchan_channel_close(dialer.channel));
}

/* --- programs --- */

FIXTURE(shortest) {
	struct calm calm;
};

FIXTURE_VARIANT(shortest) {
	const char *file;
};

FIXTURE_VARIANT_ADD(shortest, c) { .file = "../userspace/examples/short" };
FIXTURE_VARIANT_ADD(shortest, cxx) { .file = "../userspace/examples/short-cxx" };

FIXTURE_SETUP(shortest)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(shortest)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(shortest, program_carries_its_message_from_client_to_server)
{
	char path[PATH_MAX + 64];
	struct run server;

	run_find(path, sizeof(path), variant->file);
	if (access(path, X_OK))
		SKIP(return, "it was not built: no C++ compiler");
	ASSERT_EQ(0, run_start(&server, variant->file, ARGUMENTS(NULL)));
	EXPECT_EQ(0, run_client(variant->file, "10.77.0.1"));
	EXPECT_EQ(0, run_ends_with(&server, "hello, server\n"));
}

/* --- structs that grow --- */

/* What a program passes that was built with a later library's header. */
struct later_params {
	struct ibchan_message_params now;
	__u64 later;
};

TEST_F(peer, built_with_a_later_header_is_served_unless_it_wants_more_than_there_is)
{
	struct later_params params = { .now.size = sizeof(params) };
	struct ibchan_server *server;

	EXPECT_EQ(0, ibchan_serve(NULL, NULL, &params.now, &server, NULL));
	EXPECT_EQ(0, ibchan_server_close(server));
	params.later = 1;
	EXPECT_EQ(-E2BIG, ibchan_serve(NULL, NULL, &params.now, &server, &self->error));
	EXPECT_EQ(-E2BIG, self->error.code);
}

TEST_F(peer, built_with_an_earlier_header_has_the_defaults_for_what_it_does_not_know)
{
	struct ibchan_message_params params = {
		.size = offsetof(struct ibchan_message_params, message_bytes),
		.message_bytes = 0xffffffff, .reserved = 1, .timeout_ns = -5,
	};
	struct ibchan_server *server;

	EXPECT_EQ(0, ibchan_serve(NULL, NULL, &params, &server, NULL));
	EXPECT_EQ(0, ibchan_server_close(server));
	params.size = 3;
	EXPECT_EQ(-EINVAL, ibchan_serve(NULL, NULL, &params, &server, NULL));
	params.size = sizeof(params);
	EXPECT_EQ(-EINVAL, ibchan_serve(NULL, NULL, &params, &server, &self->error));
	EXPECT_EQ(IBCHAN_REASON_RESERVED, self->error.reason.code);
	params.reserved = 0;
	EXPECT_EQ(-EINVAL, ibchan_serve(NULL, NULL, &params, &server, &self->error));
	EXPECT_STREQ("timeout_ns: -5 is below 0", ibchan_error_string(&self->error));
	params.timeout_ns = INT64_MAX;
	EXPECT_EQ(-EINVAL, ibchan_serve(NULL, NULL, &params, &server, &self->error));
	EXPECT_STREQ("message_bytes: 4294967295 is not in 0 to 1073741824",
		     ibchan_error_string(&self->error));
	params.message_bytes = 1 << 30;
	params.messages = 8001;
	EXPECT_EQ(-EINVAL, ibchan_serve(NULL, NULL, &params, &server, &self->error));
	EXPECT_STREQ("messages: 8001 is not in 0 to 8000", ibchan_error_string(&self->error));
	params.messages = 8000;
	EXPECT_EQ(0, ibchan_serve(NULL, NULL, &params, &server, NULL));
	EXPECT_EQ(0, ibchan_server_close(server));
}

TEST_F(peer, that_is_dialled_without_a_port_is_none)
{
	static const char * const none[] = { NULL, "", "0" };
	struct ibchan_channel *channel;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		EXPECT_EQ(-EINVAL, ibchan_dial(HOST, none[i], NULL, &channel, &self->error));
		EXPECT_STREQ("service: 0 is not in 1 to 65535",
			     ibchan_error_string(&self->error));
	}
}

TEST_HARNESS_MAIN
