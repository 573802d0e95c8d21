// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibchan_builder_accept() among peers that ask and say nothing more: it returns who is connected,
 * holds up nobody, and counts who is lost.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ghost.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST		"10.77.0.1"

/* Peers that a call waits for at a time. */
#define MAX_ACCEPTING	32

FIXTURE(accepting)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_builder builder;
	struct ibchan_address address;
	struct ghost ghosts[MAX_ACCEPTING];
};

FIXTURE_SETUP(accepting)
{
	memset(self->ghosts, 0, sizeof(self->ghosts));
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
	ASSERT_EQ(0, end_objects(&self->m.asking, self->m.context, 0));
	ASSERT_EQ(0, end_objects(&self->m.asked, self->m.context, 0));
	ibchan_builder_init(&self->builder, self->m.asked.pd, NULL);
	self->address = (struct ibchan_address){
		.family = AF_INET, .port = htons(atoi(self->m.port)),
	};
	inet_pton(AF_INET, HOST, self->address.bytes);
}

/* A listener that is closed has ended who was answered, and the domain is free. */
FIXTURE_TEARDOWN(accepting)
{
	unsigned int i;

	for (i = 0; i < MAX_ACCEPTING; i++)
		ghost_close(&self->ghosts[i]);
	EXPECT_EQ(0, ibchan_listener_close(self->m.listener));
	self->m.listener = NULL;
	EXPECT_EQ(0, ibchan_channel_close(self->m.asked.channel));
	self->m.asked.channel = NULL;
	EXPECT_EQ(0, ibchan_mr_dereg(self->m.asked.mr));
	self->m.asked.mr = NULL;
	EXPECT_EQ(0, ibchan_pd_free(self->m.asked.pd));
	self->m.asked.pd = NULL;
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool request_waits(void *meeting)
{
	struct meeting *m = meeting;
	struct pollfd pollfd = { .fd = ibchan_listener_fd(m->listener), .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

/* Asks, and reacts to nothing. */
static int ask_silently(FIXTURE_DATA(accepting) * self, struct ghost *ghost)
{
	int rc;

	ghost_speak(ghost, false);
	rc = ghost_ask(ghost, &self->address);
	return rc || eventually(request_waits, &self->m) ? rc : -ETIMEDOUT;
}

static int accept_within(FIXTURE_DATA(accepting) * self, __s64 timeout_ns)
{
	return ibchan_builder_accept(&self->builder, self->m.listener, timeout_ns,
				     &self->m.asked.channel, &self->m.error);
}

/* An honest client: how long it took until it was connected, or -errno. */
struct client {
	struct meeting *m;
	pthread_t thread;
	long took_ms;
};

static void *connect_client(void *arg)
{
	struct client *client = arg;
	struct meeting *m = client->m;
	struct ibchan_builder builder;
	__u64 begin = now_ms();
	int rc;

	ibchan_builder_init(&builder, m->asking.pd, NULL);
	rc = ibchan_builder_connect(&builder, m->host, m->port, NULL, &m->asking.channel, NULL);
	client->took_ms = rc ? rc : (long)(now_ms() - begin);
	return NULL;
}

static int start_client(struct client *client)
{
	return pthread_create(&client->thread, NULL, connect_client, client);
}

/* How much later an honest peer may be served because of a silent one. */
static long held_up_ms(void)
{
	return slow() ? 2000 : 100;
}

TEST_F(accepting, serves_an_honest_peer_that_asks_behind_a_silent_one)
{
	struct client client = { .m = &self->m };

	ASSERT_EQ(0, ask_silently(self, &self->ghosts[0]));
	ASSERT_EQ(0, start_client(&client));
	EXPECT_EQ(0, accept_within(self, patience_ns()));
	ASSERT_EQ(0, join_soon(client.thread, NULL));
	EXPECT_LE(0, client.took_ms);
	EXPECT_GE(held_up_ms(), client.took_ms);
	EXPECT_EQ(0, ibchan_listener_lost(self->m.listener));
}

/* The call waits already, and has answered the silent one. */
static void *accept_in_thread(void *arg)
{
	FIXTURE_DATA(accepting) * self = arg;

	return (void *)(intptr_t)accept_within(self, patience_ns());
}

TEST_F(accepting, serves_an_honest_peer_that_asks_while_it_waits_for_silent_ones)
{
	struct client client = { .m = &self->m };
	pthread_t thread;
	unsigned int i;
	void *accepted;

	for (i = 0; i < MAX_ACCEPTING - 1; i++)
		ASSERT_EQ(0, ask_silently(self, &self->ghosts[i]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, accept_in_thread, self));
	for (i = 0; i < MAX_ACCEPTING - 1; i++)
		ASSERT_TRUE(eventually(ghost_is_answered, &self->ghosts[i]));
	ASSERT_EQ(0, start_client(&client));
	ASSERT_EQ(0, join_soon(client.thread, NULL));
	EXPECT_LE(0, client.took_ms);
	EXPECT_GE(held_up_ms(), client.took_ms);
	ASSERT_EQ(0, join_soon(thread, &accepted));
	EXPECT_EQ(NULL, accepted);
}

/* Bounded in number: those beyond wait in the listener until one of the first is lost. */
TEST_F(accepting, answers_no_more_than_so_many_at_a_time_and_goes_on_when_they_are_lost)
{
	struct client client = { .m = &self->m };
	unsigned int i;

	for (i = 0; i < MAX_ACCEPTING; i++)
		ASSERT_EQ(0, ask_silently(self, &self->ghosts[i]));
	ASSERT_EQ(0, start_client(&client));
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 1000 * MS));
	EXPECT_TRUE(request_waits(&self->m));
	EXPECT_EQ(0, ibchan_listener_lost(self->m.listener));
	EXPECT_EQ(0, accept_within(self, 4 * patience_ns()));
	ASSERT_EQ(0, join_soon(client.thread, NULL));
	EXPECT_LT(5000, client.took_ms);
	EXPECT_LE(1, ibchan_listener_lost(self->m.listener));
}

TEST_F(accepting, counts_a_silent_peer_after_ten_seconds_and_returns_no_error_for_it)
{
	struct ibchan_happening happening;
	__u64 begin = now_ms();

	ASSERT_EQ(0, ask_silently(self, &self->ghosts[0]));
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 9000 * MS));
	EXPECT_EQ(0, ibchan_listener_lost(self->m.listener));
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 2000 * MS));
	EXPECT_EQ(1, ibchan_listener_lost(self->m.listener));
	EXPECT_LE(11000, now_ms() - begin);
	EXPECT_EQ(-EAGAIN, ibchan_next(self->m.context, 0, &happening, NULL));
}

TEST_F(accepting, counts_a_peer_that_gives_up_and_returns_no_error_for_it)
{
	ASSERT_EQ(0, ask_silently(self, &self->ghosts[0]));
	EXPECT_EQ(-EAGAIN, accept_within(self, 0));
	ghost_close(&self->ghosts[0]);
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 300 * MS));
	EXPECT_EQ(1, ibchan_listener_lost(self->m.listener));
}

/* The twin: a call that ends takes nothing from who was answered. */
TEST_F(accepting, returns_later_who_was_answered_and_speaks_later)
{
	ASSERT_EQ(0, ask_silently(self, &self->ghosts[0]));
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 300 * MS));
	ASSERT_EQ(0, ghost_connected(&self->ghosts[0]));
	EXPECT_EQ(0, accept_within(self, patience_ns()));
	EXPECT_EQ(0, ibchan_listener_lost(self->m.listener));
}

TEST_F(accepting, tells_the_callers_own_error_and_rejects_who_asked)
{
	struct client client = { .m = &self->m };

	self->builder.params.max_send_wr = 1U << 30;
	ASSERT_EQ(0, start_client(&client));
	EXPECT_EQ(-EINVAL, accept_within(self, patience_ns()));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, self->m.error.reason.code);
	ASSERT_EQ(0, join_soon(client.thread, NULL));
	EXPECT_EQ(-ECONNRESET, client.took_ms);
	EXPECT_EQ(0, ibchan_listener_lost(self->m.listener));
}

/* A thread that takes all events of the context as they come. */
struct taker {
	struct ibchan_context *context;
	pthread_t thread;
	bool stops;
	unsigned int taken;
};

static void *take_events(void *arg)
{
	struct taker *taker = arg;
	struct pollfd pollfd = { .fd = ibchan_next_fd(taker->context), .events = POLLIN };
	struct ibchan_happening happening;

	while (!__atomic_load_n(&taker->stops, __ATOMIC_ACQUIRE)) {
		poll(&pollfd, 1, 10);
		while (!ibchan_next(taker->context, 0, &happening, NULL))
			taker->taken++;
	}
	return NULL;
}

TEST_F(accepting, hears_of_its_peers_though_another_thread_takes_the_events)
{
	struct taker taker = { .context = self->m.context };
	struct client client = { .m = &self->m };
	__u64 begin;
	int i;

	ASSERT_EQ(0, pthread_create(&taker.thread, NULL, take_events, &taker));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, start_client(&client));
		begin = now_ms();
		EXPECT_EQ(0, accept_within(self, patience_ns()));
		EXPECT_GT(1000 * (slow() ? 10 : 1), now_ms() - begin);
		ASSERT_EQ(0, join_soon(client.thread, NULL));
		EXPECT_LE(0, client.took_ms);
		EXPECT_EQ(0, ibchan_channel_close(self->m.asking.channel));
		EXPECT_EQ(0, ibchan_channel_close(self->m.asked.channel));
		self->m.asking.channel = NULL;
		self->m.asked.channel = NULL;
	}
	__atomic_store_n(&taker.stops, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, join_soon(taker.thread, NULL));
}

/* Two callers with queues of their own. */
TEST_F(accepting, gives_a_caller_no_channel_of_anothers_queues)
{
	struct ibchan_builder other = self->builder;
	struct ibchan_channel *channel;
	struct ibchan_cq *cq;

	ASSERT_EQ(0, ibchan_cq_create(self->m.asked.device, 0, 0, &cq, NULL));
	other.send_cq = cq;
	other.recv_cq = cq;
	ASSERT_EQ(0, ask_silently(self, &self->ghosts[0]));
	EXPECT_EQ(-EAGAIN, ibchan_builder_accept(&other, self->m.listener, 0, &channel, NULL));
	ASSERT_EQ(0, ghost_connected(&self->ghosts[0]));
	EXPECT_EQ(-ETIMEDOUT, accept_within(self, 300 * MS));
	ASSERT_EQ(0, ibchan_builder_accept(&other, self->m.listener, 0, &channel, NULL));
	EXPECT_EQ(cq, ibchan_channel_send_cq(channel));
	EXPECT_EQ(0, ibchan_channel_close(channel));
	EXPECT_EQ(0, ibchan_cq_destroy(cq));
}

TEST_HARNESS_MAIN
