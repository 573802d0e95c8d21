// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive of channels that are connected by address: both ends look after the other,
 * and one that dies without a word of the connection manager is noticed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>

#include "cable.h"
#include "ghost.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define DEPTH		4
#define MESSAGE		64
#define HALF		32768
#define ANSWERS		5
#define GHOST_PORT	7719

/* What a notice may be late by; by the default keepalive there is none within 5 s. */
#define LATE_MS		(slow() ? patience_ms() / 2 : 3000)

FIXTURE(watch_address)
{
	struct calm calm;
	struct side_options options;
	struct pair pair;
	struct ghost ghost;
	bool forbids_writes;
	struct ibchan_address address;
	__u32 listener;
	int listener_fd;
};

FIXTURE_SETUP(watch_address)
{
	memset(&self->ghost, 0, sizeof(self->ghost));
	self->forbids_writes = false;
	self->options = side_defaults();
	self->options.params.max_send_wr = DEPTH;
	self->options.params.max_recv_wr = DEPTH;
	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_MIN_MS;
	self->address = (struct ibchan_address){ .family = AF_INET };
	inet_pton(AF_INET, "10.77.0.1", self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(watch_address)
{
	ghost_close(&self->ghost);
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Both on one device: rdma_cm does not cross to the other in one namespace. */
static int build(FIXTURE_DATA(watch_address) * self)
{
	return pair_build(&self->pair, PAIR_SAME_DEVICE, &self->options);
}

static int listen_on(FIXTURE_DATA(watch_address) * self, const struct side *side)
{
	struct ibchan_cmd_listener_create cmd = { .address = self->address };
	int rc = cmd_listener_create(side->fd, &cmd);

	self->listener = cmd.out_listener;
	self->listener_fd = cmd.out_fd;
	self->address = cmd.out_address;
	return rc;
}

/* The next one who asks; nobody after that. */
static int accept_one(FIXTURE_DATA(watch_address) * self, const struct side *side)
{
	int rc = side_accept(side, self->listener, self->listener_fd);

	close(self->listener_fd);
	return rc;
}

static int ask(FIXTURE_DATA(watch_address) * self, const struct side *side)
{
	struct ibchan_cmd_channel_connect cmd = {
		.channel = side->channel, .peer = self->address,
	};

	return cmd_channel_connect(side->fd, &cmd);
}

static bool is_connected(void *arg)
{
	return side_state(arg) == IBCHAN_CHANNEL_CONNECTED;
}

static int connect_pair(FIXTURE_DATA(watch_address) * self)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	int rc = listen_on(self, b);

	rc = rc ?: ask(self, a);
	rc = rc ?: accept_one(self, b);
	if (rc)
		return rc;
	return eventually(is_connected, a) && eventually(is_connected, b) ? 0 : -ETIMEDOUT;
}

/* Or was: a silent peer is soon given up. */
static bool has_been_connected(void *arg)
{
	return side_state(arg) >= IBCHAN_CHANNEL_CONNECTED;
}

/* The ghost is an ibchan. */
static void speak(FIXTURE_DATA(watch_address) * self, bool answers)
{
	ghost_speak(&self->ghost, answers);
	if (self->forbids_writes)
		self->ghost.header[7] = 0;
}

/* The ghost asks, and the first side answers. */
static int meet_asking_ghost(FIXTURE_DATA(watch_address) * self)
{
	int rc = listen_on(self, self->pair.a);

	speak(self, false);
	rc = rc ?: ghost_ask(&self->ghost, &self->address);
	rc = rc ?: accept_one(self, self->pair.a);
	rc = rc ?: ghost_connected(&self->ghost);
	if (rc)
		return rc;
	return eventually(has_been_connected, self->pair.a) ? 0 : -ETIMEDOUT;
}

/* The first side asks, and the ghost answers. */
static int meet_asked_ghost(FIXTURE_DATA(watch_address) * self)
{
	int rc;

	speak(self, true);
	self->address.port = htons(GHOST_PORT);
	rc = ghost_listen(&self->ghost, &self->address);
	rc = rc ?: ask(self, self->pair.a);
	return rc ?: ghost_accept(&self->ghost);
}

static struct ibchan_cmd_channel_query query(const struct side *side)
{
	struct ibchan_cmd_channel_query cmd;

	if (side_query(side, &cmd))
		memset(&cmd, 0xff, sizeof(cmd));
	return cmd;
}

static bool has_answers(void *arg)
{
	return query(arg).out.facts.probes_answered >= ANSWERS;
}

/* Within the promised time, by the receives that flush. */
static int expect_noticed(struct side *side)
{
	__u32 notice_ms = query(side).out.facts.notice_ms;
	struct ibchan_cmd_channel_query cmd;
	__u64 start = now_ms();
	int rc = ring_wait(side->ring, DEPTH, notice_ms + LATE_MS);

	fprintf(stderr, "# noticed after %llu ms, promised are %u\n", now_ms() - start, notice_ms);
	if (rc)
		return rc;
	cmd = query(side);
	if (cmd.out.state != IBCHAN_CHANNEL_BROKEN || cmd.out.error != ETIMEDOUT ||
	    cmd.out.status != IBCHAN_STATUS_RETRY_EXC_ERR || cmd.out.recvs_in_flight)
		return -EBADMSG;
	return cmd.out.facts.probes_sent && !cmd.out.facts.probes_answered ? 0 : -EPROTO;
}

TEST_F(watch_address, leaves_ends_that_both_answer_in_peace)
{
	struct side *a, *b;

	ASSERT_EQ(0, build(self));
	a = self->pair.a;
	b = self->pair.b;
	ASSERT_EQ(0, post_receives(a, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, post_receives(b, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, connect_pair(self));
	EXPECT_NE(0, query(a).out.facts.notice_ms);
	EXPECT_NE(0, query(b).out.facts.notice_ms);
	ASSERT_TRUE(eventually(has_answers, a));
	ASSERT_TRUE(eventually(has_answers, b));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(b));
	EXPECT_EQ(DEPTH, query(a).out.recvs_in_flight);
	EXPECT_EQ(DEPTH, query(b).out.recvs_in_flight);
	EXPECT_EQ(0, ring_unread(a->ring));
	EXPECT_EQ(0, ring_unread(b->ring));
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 10, HALF, MESSAGE)));
	EXPECT_EQ(0, succeed(a, 10, NULL));
	EXPECT_EQ(0, succeed(b, 1, NULL));
}

TEST_F(watch_address, notices_that_who_asked_is_silent)
{
	ASSERT_EQ(0, build(self));
	ASSERT_EQ(0, post_receives(self->pair.a, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, meet_asking_ghost(self));
	EXPECT_EQ(0, expect_noticed(self->pair.a));
}

TEST_F(watch_address, notices_that_who_accepted_is_silent)
{
	ASSERT_EQ(0, build(self));
	ASSERT_EQ(0, post_receives(self->pair.a, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, meet_asked_ghost(self));
	EXPECT_EQ(0, expect_noticed(self->pair.a));
}

/* ---- A neighbour's new hardware address, which rdma_cm takes for a peer that is gone ---- */

static int new_neighbour(void)
{
	return sh("ip neigh replace 10.77.0.1 lladdr 02:00:00:77:00:99 dev v0 nud permanent");
}

static void old_neighbour(void)
{
	sh("ip neigh del 10.77.0.1 dev v0");
}

static bool way_has_changed(void *arg)
{
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int num = read_history(arg, events, IBCHAN_HISTORY_MAX);

	while (num-- > 0)
		if (events[num].kind == IBCHAN_HISTORY_WAY_CHANGED)
			return true;
	return false;
}

static bool has_answered_once(void *arg)
{
	return query(arg).out.facts.probes_answered >= 1;
}

/* A connected pair, of whose second side a's neighbour entry has changed. */
static int change_neighbour(FIXTURE_DATA(watch_address) * self, __u32 keepalive_ms)
{
	int rc;

	self->options.options.keepalive_ms = keepalive_ms;
	rc = build(self);
	rc = rc ?: post_receives(self->pair.b, 1, 1, MESSAGE);
	rc = rc ?: connect_pair(self);
	if (!rc && query(self->pair.a).out.facts.probes_sent)
		rc = -EALREADY;
	rc = rc ?: new_neighbour();
	return rc ?: eventually(way_has_changed, self->pair.a) ? rc : -ETIMEDOUT;
}

static int sends_all_the_same(const struct pair *pair)
{
	int rc = post_one(pair->a, work(pair->a, IBCHAN_OP_SEND, 10, HALF, MESSAGE));

	rc = rc ?: succeed(pair->a, 10, NULL);
	return rc ?: succeed(pair->b, 1, NULL);
}

TEST_F(watch_address, asks_a_peer_whose_neighbour_entry_changes_and_goes_on)
{
	ASSERT_EQ(0, change_neighbour(self, IBCHAN_KEEPALIVE_MAX_MS));
	EXPECT_TRUE(eventually(has_answered_once, self->pair.a));
	old_neighbour();
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.b));
	EXPECT_EQ(0, sends_all_the_same(&self->pair));
}

/* The twin: one that does not answer then is gone, long before its time would be over. */
TEST_F(watch_address, asks_a_peer_whose_neighbour_entry_changes_and_hears_nothing)
{
	struct ibchan_cmd_channel_query cmd;

	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_MAX_MS;
	ASSERT_EQ(0, build(self));
	ASSERT_EQ(0, post_receives(self->pair.a, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, meet_asked_ghost(self));
	ASSERT_TRUE(eventually(has_been_connected, self->pair.a));
	EXPECT_EQ(0, new_neighbour());
	EXPECT_EQ(0, ring_wait(self->pair.a->ring, DEPTH, patience_ms()));
	old_neighbour();
	EXPECT_TRUE(way_has_changed(self->pair.a));
	cmd = query(self->pair.a);
	EXPECT_EQ(ETIMEDOUT, cmd.out.error);
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, cmd.out.status);
	EXPECT_EQ(1, cmd.out.facts.probes_sent);
}

/* Without a keepalive nobody is asked, and the entry alone is no end. */
TEST_F(watch_address, notes_a_neighbour_entry_that_changes_where_nobody_may_be_asked)
{
	ASSERT_EQ(0, change_neighbour(self, IBCHAN_KEEPALIVE_OFF));
	old_neighbour();
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.a));
	EXPECT_EQ(0, query(self->pair.a).out.facts.probes_sent);
	EXPECT_EQ(0, sends_all_the_same(&self->pair));
}

/* Its answer to the first question would be the end. Another pair tells the time. */
TEST_F(watch_address, asks_nothing_of_a_peer_that_forbids_writes)
{
	struct side clock;

	self->forbids_writes = true;
	ASSERT_EQ(0, build(self));
	ASSERT_EQ(0, meet_asking_ghost(self));
	EXPECT_EQ(0, query(self->pair.a).out.facts.notice_ms);
	ASSERT_EQ(0, side_open(&clock, &self->options));
	ASSERT_EQ(0, side_handshake(&clock, &clock.endpoint));
	EXPECT_TRUE(eventually(has_answers, &clock));
	EXPECT_EQ(0, query(self->pair.a).out.facts.probes_sent);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.a));
	side_close(&clock);
}

/* A word of the connection manager comes before any time has passed. */
TEST_F(watch_address, hears_of_an_orderly_end_at_once)
{
	struct ibchan_cmd_channel_query cmd;

	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_MAX_MS;
	ASSERT_EQ(0, build(self));
	ASSERT_EQ(0, post_receives(self->pair.a, 1, DEPTH, MESSAGE));
	ASSERT_EQ(0, meet_asking_ghost(self));
	ghost_close(&self->ghost);
	ASSERT_EQ(0, ring_wait(self->pair.a->ring, DEPTH, patience_ms()));
	cmd = query(self->pair.a);
	EXPECT_EQ(ECONNRESET, cmd.out.error);
	EXPECT_EQ(0, cmd.out.facts.probes_sent);
}

TEST_HARNESS_MAIN
