// SPDX-License-Identifier: GPL-2.0-only
/* The short way: messages between a client and a server. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/dialer.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST		"10.77.0.1"
#define OTHER_HOST	"10.77.0.2"
#define COPIED		16384	/* what a side copies that says nothing */
#define LONGEST		(COPIED + 1)
#define WAITING		16
FIXTURE(message)
{
	struct calm calm;
	struct ibchan_server *server;
	struct dialer dialer;
	struct ibchan_channel *client;
	struct ibchan_channel *taken;
	struct ibchan_error error;
	unsigned char sent[LONGEST];
	unsigned char got[LONGEST];
};

/* A server whose messages are @of_server, and a client's call that has begun. */
static int dial_server(FIXTURE_DATA(message) * self, const struct ibchan_message_params *of_server,
		       const struct ibchan_message_params *of_client)
{
	int rc = ibchan_serve(NULL, NULL, of_server, &self->server, &self->error);

	if (rc)
		return rc;
	self->dialer.host = HOST;
	self->dialer.params = of_client;
	port_of_server(self->server, self->dialer.port, sizeof(self->dialer.port));
	return -pthread_create(&self->dialer.thread, NULL, dial, &self->dialer);
}

static int take(FIXTURE_DATA(message) * self)
{
	int rc = ibchan_take(self->server, patience_ns(), &self->taken, &self->error);

	rc = join_soon(self->dialer.thread, NULL) ?: rc ?: self->dialer.rc;
	self->client = self->dialer.channel;
	return rc;
}

static int meet(FIXTURE_DATA(message) * self, const struct ibchan_message_params *of_server,
		const struct ibchan_message_params *of_client)
{
	int rc = dial_server(self, of_server, of_client);

	return rc ?: take(self);
}

FIXTURE_SETUP(message)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(message)
{
	EXPECT_EQ(0, ibchan_channel_close(self->client));
	EXPECT_EQ(0, ibchan_channel_close(self->taken));
	EXPECT_EQ(0, ibchan_server_close(self->server));
	EXPECT_EQ(0, calm_end(&self->calm));
}

struct sending {
	struct ibchan_channel *channel;
	const void *bytes;
	size_t length;
	struct ibchan_error error;
	pthread_t thread;
};

/* A long one returns when it was received. */
static void *send_it(void *arg)
{
	struct sending *sending = arg;

	ibchan_send_bytes(sending->channel, sending->bytes, sending->length,
			  IBCHAN_TIMEOUT_NEVER, &sending->error);
	return NULL;
}

/* Bytes from @from to @to: 0 when they have come as they were sent. */
static int carries(struct ibchan_channel *from, struct ibchan_channel *to, const void *bytes,
		   void *got, size_t length)
{
	struct sending sending = { .channel = from, .bytes = bytes, .length = length };
	ssize_t received;

	if (pthread_create(&sending.thread, NULL, send_it, &sending))
		return -EAGAIN;
	received = ibchan_receive_bytes(to, got, length, patience_ns(), NULL);
	if (join_soon(sending.thread, NULL))
		return -ETIMEDOUT;
	if (sending.error.code)
		return sending.error.code;
	if (received < 0)
		return (int)received;
	return (size_t)received == length && !memcmp(bytes, got, length) ? 0 : -EPROTO;
}

static int crosses(FIXTURE_DATA(message) * self, struct ibchan_channel *from,
		   struct ibchan_channel *to, size_t length)
{
	fill(self->sent, length, (unsigned int)length);
	memset(self->got, 0, sizeof(self->got));
	return carries(from, to, self->sent, self->got, length);
}

TEST_F(message, of_any_length_comes_as_it_was_sent)
{
	static const size_t lengths[] = { 0, 1, 63, 64, 4096, 4097, COPIED, LONGEST };
	unsigned int i;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(0, crosses(self, self->client, self->taken, lengths[i]));
		EXPECT_EQ(0, crosses(self, self->taken, self->client, lengths[i]));
	}
}

TEST_F(message, lengths_and_numbers_that_both_sides_have_room_for_are_told)
{
	const struct ibchan_message_params brief = { .size = sizeof(brief), .message_bytes = 100 };
	const struct ibchan_message_params few = { .size = sizeof(few), .messages = 3 };
	struct ibchan_message_params agreed[2] = {
		{ .size = sizeof(agreed[0]) }, { .size = sizeof(agreed[1]) },
	};
	int i;

	ASSERT_EQ(0, meet(self, &brief, &few));
	EXPECT_EQ(0, ibchan_channel_message_params(self->client, &agreed[0]));
	EXPECT_EQ(0, ibchan_channel_message_params(self->taken, &agreed[1]));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(100, agreed[i].message_bytes);
		EXPECT_EQ(3, agreed[i].messages);
	}
}

/* The smaller of the two sides' lengths is copied; messages of more wait at their sender. */
TEST_F(message, is_copied_where_both_sides_have_room_and_else_read)
{
	const struct ibchan_message_params brief = { .size = sizeof(brief), .message_bytes = 100 };

	ASSERT_EQ(0, meet(self, &brief, NULL));
	EXPECT_EQ(0, ibchan_send_bytes(self->client, self->sent, 100, 0, &self->error));
	EXPECT_EQ(100, ibchan_receive_bytes(self->taken, self->got, 100, patience_ns(), NULL));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 101));
	EXPECT_EQ(0, crosses(self, self->taken, self->client, 101));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, COPIED));
}

TEST_F(message, of_more_bytes_than_there_are_addresses_for_is_refused)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	if (sizeof(size_t) < sizeof(__u64))
		SKIP(return, "no program has so much memory");
	EXPECT_EQ(-EMSGSIZE, ibchan_send_bytes(self->client, self->sent,
					       (size_t)((1ULL << 40) + 1), 0, &self->error));
	EXPECT_EQ(IBCHAN_REASON_MESSAGE_TOO_LONG, self->error.reason.code);
	EXPECT_EQ(-EFAULT, ibchan_send_bytes(self->client, (void *)8, LONGEST, patience_ns(),
					     NULL));
	EXPECT_EQ(-EFAULT, ibchan_post_bytes(self->client, (void *)8, LONGEST, NULL));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 1));
}

TEST_F(message, that_is_longer_than_the_buffer_stays_for_the_next_call)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	fill(self->sent, 200, 1);
	ASSERT_EQ(0, ibchan_send_bytes(self->client, self->sent, 200, patience_ns(), NULL));
	ASSERT_EQ(0, ibchan_send_bytes(self->client, "second", 7, patience_ns(), NULL));
	EXPECT_EQ(-EMSGSIZE, ibchan_receive_bytes(self->taken, self->got, 199, patience_ns(),
						  &self->error));
	EXPECT_EQ(200, self->error.reason.value[0]);
	EXPECT_EQ(199, self->error.reason.value[1]);
	EXPECT_EQ(200, ibchan_receive_bytes(self->taken, self->got, 200, 0, &self->error));
	EXPECT_EQ(0, memcmp(self->sent, self->got, 200));
	EXPECT_EQ(7, ibchan_receive_bytes(self->taken, self->got, 200, patience_ns(), NULL));
	EXPECT_STREQ("second", (char *)self->got);
}

TEST_F(message, that_does_not_come_in_time_may_come_later)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	EXPECT_EQ(-EAGAIN, ibchan_receive_bytes(self->taken, self->got, 64, 0, &self->error));
	EXPECT_EQ(-ETIMEDOUT, ibchan_receive_bytes(self->taken, self->got, 64, 20 * MS, NULL));
	EXPECT_EQ(-EINVAL, ibchan_receive_bytes(self->taken, self->got, 64, -2, &self->error));
	EXPECT_STREQ("timeout_ns: -2 is below -1", ibchan_error_string(&self->error));
	EXPECT_EQ(-EINVAL, ibchan_send_bytes(self->taken, self->got, 64, -2, &self->error));
	EXPECT_STREQ("timeout_ns: -2 is below -1", ibchan_error_string(&self->error));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 64));
}

TEST_F(message, for_which_the_peer_has_no_receive_is_sent_later_or_not_at_all)
{
	const struct ibchan_message_params few = { .size = sizeof(few), .messages = 2 };

	ASSERT_EQ(0, meet(self, &few, NULL));
	ASSERT_EQ(0, ibchan_send_bytes(self->client, "1", 2, patience_ns(), NULL));
	ASSERT_EQ(0, ibchan_send_bytes(self->client, "2", 2, patience_ns(), NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_send_bytes(self->client, "lost", 5, 20 * MS, &self->error));
	EXPECT_EQ(IBCHAN_REASON_MESSAGES_UNTAKEN, self->error.reason.code);
	EXPECT_EQ(1, has(ibchan_error_string(&self->error), "received 0 of the 2 messages"));
	EXPECT_EQ(-EAGAIN, ibchan_send_bytes(self->client, "lost", 5, 0, NULL));
	EXPECT_EQ(-EAGAIN, ibchan_post_bytes(self->client, "lost", 5, NULL));
	EXPECT_EQ(2, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
	EXPECT_EQ(0, ibchan_send_bytes(self->client, "3", 2, patience_ns(), NULL));
	EXPECT_EQ(2, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
	EXPECT_STREQ("2", (char *)self->got);
	EXPECT_EQ(2, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
	EXPECT_STREQ("3", (char *)self->got);
}

/* Whichever side has the room, the other one hears of each message that it waits for. */
TEST_F(message, that_is_received_makes_room_for_the_next_where_one_side_has_little)
{
	const struct ibchan_message_params few = { .size = sizeof(few), .messages = 1 };
	int i;

	ASSERT_EQ(0, meet(self, &few, NULL));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, crosses(self, self->taken, self->client, 10));
		EXPECT_EQ(0, ibchan_send_bytes(self->taken, "x", 1, patience_ns(), NULL));
		EXPECT_EQ(1, ibchan_receive_bytes(self->client, self->got, 64, patience_ns(),
						  NULL));
	}
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, crosses(self, self->client, self->taken, 10));
}

/*
 * More than is read at a time, from an address where no page begins. How many, a campaign says: an
 * emulated CPU takes its time.
 */
TEST_F_TIMEOUT(message, of_many_megabytes_comes_as_it_was_sent, 600)
{
	const char *mib = getenv("IBCHAN_MESSAGE_MIB");
	const size_t length = ((size_t)(mib ? atoi(mib) : 24) << 20) - 100;
	unsigned char *sent = malloc(length + 99), *got = malloc(length + 1);

	ASSERT_NE(NULL, sent);
	ASSERT_NE(NULL, got);
	ASSERT_EQ(0, meet(self, NULL, NULL));
	fill(sent, length + 99, 3);
	EXPECT_EQ(0, carries(self->client, self->taken, sent + 99, got + 1, length));
	free(sent);
	free(got);
}

/* Without time for it, nothing is sent, and nothing breaks. */
TEST_F(message, that_is_long_is_refused_by_a_call_that_may_not_wait)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	EXPECT_EQ(-EMSGSIZE, ibchan_send_bytes(self->client, self->sent, LONGEST, 0,
					       &self->error));
	EXPECT_EQ(LONGEST, self->error.reason.value[0]);
	EXPECT_EQ(COPIED, self->error.reason.value[1]);
	EXPECT_EQ(0, crosses(self, self->client, self->taken, LONGEST));
}

/* As long as nobody takes it, a thread that waits for room gets none. */
TEST_F(message, that_is_long_and_not_received_in_time_breaks_the_channel)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	EXPECT_EQ(-ECONNABORTED, ibchan_send_bytes(self->client, self->sent, LONGEST, 20 * MS,
						   &self->error));
	EXPECT_EQ(IBCHAN_REASON_NONE, self->error.reason.code);
	EXPECT_EQ(-ESHUTDOWN, ibchan_send_bytes(self->client, self->sent, 1, patience_ns(), NULL));
	EXPECT_GT(0, ibchan_receive_bytes(self->taken, self->got, LONGEST, patience_ns(), NULL));
}

/* It stays for the next call, which has better memory. */
TEST_F(message, that_is_long_is_not_lost_on_memory_that_cannot_be_written)
{
	struct sending sending = { .bytes = self->sent, .length = LONGEST };

	ASSERT_EQ(0, meet(self, NULL, NULL));
	fill(self->sent, LONGEST, 4);
	sending.channel = self->client;
	ASSERT_EQ(0, pthread_create(&sending.thread, NULL, send_it, &sending));
	EXPECT_EQ(-EMSGSIZE, ibchan_receive_bytes(self->taken, self->got, COPIED, patience_ns(),
						  &self->error));
	EXPECT_EQ(LONGEST, self->error.reason.value[0]);
	EXPECT_EQ(-EFAULT, ibchan_receive_bytes(self->taken, (void *)8, LONGEST, 0, NULL));
	EXPECT_EQ(LONGEST, ibchan_receive_bytes(self->taken, self->got, LONGEST, 0, NULL));
	EXPECT_EQ(0, memcmp(self->sent, self->got, LONGEST));
	ASSERT_EQ(0, join_soon(sending.thread, NULL));
	EXPECT_EQ(0, sending.error.code);
}

TEST_F(message, of_a_peer_that_has_closed_comes_and_then_the_end_for_every_call)
{
	int i;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, ibchan_send_bytes(self->client, &i, sizeof(i), patience_ns(), NULL));
	ASSERT_EQ(0, ibchan_channel_close(self->client));
	self->client = NULL;
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(sizeof(i), ibchan_receive_bytes(self->taken, self->got, 64,
							  patience_ns(), NULL));
		EXPECT_EQ(0, memcmp(&i, self->got, sizeof(i)));
	}
	for (i = 0; i < WAITING + 2; i++)
		EXPECT_EQ(-ENODATA, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(),
							 &self->error));
	EXPECT_EQ(-ESHUTDOWN, ibchan_send_bytes(self->taken, "late", 5, 0, NULL));
}

/* The end of the peer is no receipt. */
TEST_F(message, that_a_peer_has_not_received_before_it_closed_is_told_by_the_close)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	ASSERT_EQ(0, ibchan_send_bytes(self->client, "lost", 5, patience_ns(), NULL));
	ASSERT_EQ(0, ibchan_channel_close(self->taken));
	self->taken = NULL;
	EXPECT_EQ(-ENODATA, ibchan_receive_bytes(self->client, self->got, 64, patience_ns(), NULL));
	EXPECT_EQ(-ECONNRESET, ibchan_channel_close(self->client));
	self->client = NULL;
}

/* So many that no receive is in flight which the end of the channel would end. */
TEST_F(message, of_a_peer_that_has_sent_all_it_may_comes_and_then_the_end)
{
	int i;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	for (i = 0; i < WAITING; i++)
		ASSERT_EQ(0, ibchan_send_bytes(self->client, &i, sizeof(i), patience_ns(), NULL));
	ASSERT_EQ(0, ibchan_channel_close(self->client));
	self->client = NULL;
	for (i = 0; i < WAITING; i++)
		EXPECT_EQ(sizeof(i), ibchan_receive_bytes(self->taken, self->got, 64,
							  patience_ns(), NULL));
	EXPECT_EQ(-ENODATA, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
}

static void *receive_the_end(void *arg)
{
	char byte;

	return (void *)(intptr_t)ibchan_receive_bytes(arg, &byte, 1, patience_ns(), NULL);
}

TEST_F(message, that_never_comes_is_told_to_more_threads_than_there_are_receives)
{
	const struct ibchan_message_params one = { .size = sizeof(one), .messages = 1 };
	pthread_t threads[4];
	void *told;
	int i;

	ASSERT_EQ(0, meet(self, &one, NULL));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, receive_the_end, self->taken));
	ASSERT_EQ(0, ibchan_channel_close(self->client));
	self->client = NULL;
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, join_soon(threads[i], &told));
		EXPECT_EQ(-ENODATA, (int)(intptr_t)told);
	}
}

/*
 * A write without an immediate is no message, and the channel carries it. One with an immediate has
 * the length of the write, which may exceed the receive's.
 */
TEST_F(message, that_is_none_breaks_the_channel_and_copies_nothing)
{
	const size_t length = 8 << 20;
	unsigned char *written = calloc(1, length);
	struct ibchan_remote_region remote;
	struct ibchan_mr *from, *to;
	struct ibchan_submit_sge sge;
	struct ibchan_submit_wr wr;
	int rc;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	ASSERT_EQ(0, ibchan_mr_reg_local(ibchan_channel_pd(self->client), written, length, &from,
					 NULL));
	ASSERT_EQ(0, ibchan_mr_reg_shared(ibchan_channel_pd(self->taken), written, length, &to,
					  NULL));
	ASSERT_EQ(0, ibchan_mr_remote_region(to, &remote));
	sge = ibchan_sge_new(from, 0, length);
	wr = ibchan_wr_write(self->client, &sge, 1, &remote);
	ASSERT_EQ(0, ibchan_perform(self->client, &wr, patience_ns(), NULL, NULL));
	ASSERT_EQ(0, ibchan_send_bytes(self->client, "before", 7, patience_ns(), NULL));
	ibchan_wr_set_imm(&wr, 1);
	ASSERT_EQ(0, ibchan_perform(self->client, &wr, patience_ns(), NULL, NULL));
	EXPECT_EQ(7, ibchan_receive_bytes(self->taken, written, length, patience_ns(), NULL));
	EXPECT_EQ(-EPROTO, ibchan_receive_bytes(self->taken, written, length, patience_ns(), NULL));
	EXPECT_EQ(-EPROTO, ibchan_receive_bytes(self->taken, written, length, patience_ns(), NULL));
	EXPECT_EQ(0, ibchan_mr_dereg(from));
	EXPECT_EQ(0, ibchan_mr_dereg(to));
	/* Whether the end still arrives, or nobody tells the client that its message did. */
	rc = ibchan_channel_close(self->client);
	EXPECT_TRUE(!rc || rc == -ECONNRESET);
	self->client = NULL;
	free(written);
}

static void *send_and_close(void *arg)
{
	struct dialer *dialer = arg;

	dial(dialer);
	if (!dialer->rc)
		dialer->rc = ibchan_send_bytes(dialer->channel, "bye", 4, patience_ns(), NULL);
	if (dialer->channel)
		ibchan_channel_close(dialer->channel);
	dialer->channel = NULL;
	return NULL;
}

/* The client closes whether the server has taken it by then or not. */
TEST_F(message, of_a_client_that_has_closed_before_it_was_taken_comes)
{
	ASSERT_EQ(0, ibchan_serve(NULL, NULL, NULL, &self->server, NULL));
	self->dialer.host = HOST;
	port_of_server(self->server, self->dialer.port, sizeof(self->dialer.port));
	ASSERT_EQ(0, pthread_create(&self->dialer.thread, NULL, send_and_close, &self->dialer));
	ASSERT_EQ(0, ibchan_take(self->server, patience_ns(), &self->taken, NULL));
	ASSERT_EQ(0, join_soon(self->dialer.thread, NULL));
	ASSERT_EQ(0, self->dialer.rc);
	EXPECT_EQ(4, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
	EXPECT_EQ(-ENODATA, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(), NULL));
}

TEST_F(message, is_not_waited_for_when_this_side_has_broken_the_channel)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	ASSERT_EQ(0, ibchan_channel_break(self->taken));
	EXPECT_EQ(-ECANCELED, ibchan_receive_bytes(self->taken, self->got, 64, patience_ns(),
						   NULL));
}

#define EACH		50
#define SENDERS		3
#define RECEIVERS	2

struct crowd {
	FIXTURE_DATA(message) * self;
	int next;
	int seen[SENDERS * EACH];
	int failed;
};

static void *send_some(void *arg)
{
	struct crowd *crowd = arg;
	int i, number;

	for (i = 0; i < EACH; i++) {
		number = __atomic_fetch_add(&crowd->next, 1, __ATOMIC_RELAXED);
		if (ibchan_send_bytes(crowd->self->client, &number, sizeof(number), patience_ns(),
				      NULL))
			__atomic_add_fetch(&crowd->failed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *receive_some(void *arg)
{
	struct crowd *crowd = arg;
	int i, number;

	for (i = 0; i < SENDERS * EACH / RECEIVERS; i++) {
		if (ibchan_receive_bytes(crowd->self->taken, &number, sizeof(number), patience_ns(),
					 NULL) == sizeof(number))
			__atomic_add_fetch(&crowd->seen[number], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(message, of_many_threads_to_many_comes_once)
{
	pthread_t threads[SENDERS + RECEIVERS];
	struct crowd crowd = { .self = self };
	int i;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	for (i = 0; i < SENDERS + RECEIVERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    i < SENDERS ? send_some : receive_some, &crowd));
	for (i = 0; i < SENDERS + RECEIVERS; i++)
		ASSERT_EQ(0, join_soon(threads[i], NULL));
	EXPECT_EQ(0, crowd.failed);
	for (i = 0; i < SENDERS * EACH; i++)
		EXPECT_EQ(1, crowd.seen[i]);
}

/* --- servers --- */

static int local_is(struct ibchan_channel *channel, const char *host)
{
	struct ibchan_connection_info info;
	char text[INET6_ADDRSTRLEN] = "";
	int rc = ibchan_channel_connection(channel, &info, NULL);

	if (rc)
		return rc;
	inet_ntop(AF_INET, &((struct sockaddr_in *)&info.local)->sin_addr, text, sizeof(text));
	return strcmp(text, host) ? -EPROTO : 0;
}

TEST_F(message, server_takes_clients_over_each_of_its_devices)
{
	struct dialer other = { .host = OTHER_HOST };
	struct ibchan_channel *taken = NULL;

	ASSERT_EQ(0, meet(self, NULL, NULL));
	strcpy(other.port, self->dialer.port);
	ASSERT_EQ(0, pthread_create(&other.thread, NULL, dial, &other));
	ASSERT_EQ(0, ibchan_take(self->server, patience_ns(), &taken, &self->error));
	ASSERT_EQ(0, join_soon(other.thread, NULL));
	ASSERT_EQ(0, other.rc);
	EXPECT_EQ(0, local_is(self->taken, HOST));
	EXPECT_EQ(0, local_is(taken, OTHER_HOST));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 100));
	EXPECT_EQ(0, crosses(self, other.channel, taken, 100));
	EXPECT_EQ(0, ibchan_channel_close(other.channel));
	EXPECT_EQ(0, ibchan_channel_close(taken));
}

TEST_F(message, server_that_closes_leaves_its_channels_alone)
{
	ASSERT_EQ(0, meet(self, NULL, NULL));
	ASSERT_EQ(0, ibchan_server_close(self->server));
	self->server = NULL;
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 64));
}

TEST_F(message, server_whose_patience_is_without_end_takes_clients)
{
	const struct ibchan_message_params patient = {
		.size = sizeof(patient), .timeout_ns = INT64_MAX,
	};

	ASSERT_EQ(0, meet(self, &patient, &patient));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 64));
}

TEST_F(message, server_without_clients_says_that_none_came)
{
	ASSERT_EQ(0, ibchan_serve(HOST, NULL, NULL, &self->server, &self->error));
	EXPECT_EQ(-EAGAIN, ibchan_take(self->server, 0, &self->taken, &self->error));
	EXPECT_EQ(-ETIMEDOUT, ibchan_take(self->server, 20 * MS, &self->taken, NULL));
	EXPECT_EQ(-EINVAL, ibchan_take(self->server, -2, &self->taken, &self->error));
	EXPECT_STREQ("timeout_ns: -2 is below -1", ibchan_error_string(&self->error));
}

struct rejected {
	struct ibchan_server *server;
	struct ibchan_channel *channel;
};

/* A request is rejected within a call of ibchan_take(). */
static bool is_rejected(void *arg)
{
	struct rejected *rejected = arg;
	struct ibchan_channel *none;

	if (ibchan_take(rejected->server, 0, &none, NULL) != -EAGAIN)
		return false;
	return ibchan_channel_connect_wait(rejected->channel, 0, NULL) == -ECONNRESET;
}

/* A peer of another kind, before the client. */
TEST_F(message, server_rejects_who_takes_no_messages_and_takes_the_next)
{
	struct ibchan_context *context;
	struct ibchan_builder builder;
	struct end end = { 0 };

	ASSERT_EQ(0, ibchan_serve(NULL, NULL, NULL, &self->server, NULL));
	self->dialer.host = HOST;
	port_of_server(self->server, self->dialer.port, sizeof(self->dialer.port));
	ASSERT_EQ(0, ibchan_context_open(&context, NULL));
	ASSERT_EQ(0, end_begin(&end, context, 0, &builder));
	ASSERT_EQ(0, ibchan_builder_prepare(&builder, &end.prepared, NULL));
	ASSERT_EQ(0, ibchan_prepared_connect(end.prepared, HOST, self->dialer.port, NULL,
					     &end.channel, NULL));
	end.prepared = NULL;
	ASSERT_EQ(0, pthread_create(&self->dialer.thread, NULL, dial, &self->dialer));
	ASSERT_EQ(0, take(self));
	/* It may have asked behind the client. */
	EXPECT_TRUE(eventually(is_rejected, &(struct rejected){ self->server, end.channel }));
	EXPECT_EQ(0, crosses(self, self->client, self->taken, 64));
	end_close(&end);
	EXPECT_EQ(0, ibchan_context_close(context));
}

TEST_HARNESS_MAIN
