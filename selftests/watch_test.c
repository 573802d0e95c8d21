// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive: a peer that dies without a word is noticed, and one that lives is not
 * disturbed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "cable.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define DEPTH		4
#define MESSAGE		64
#define HALF		32768
#define MANY		1000

/* What a scheduler may add to a time that the kernel promises. */
#define LATE_MS		(patience_ms() / 10)

/*
 * What a notice may be late by. The default keepalive gives no notice within the 5 s in which it
 * asks nothing, so it is not mistaken for a shorter one.
 */
#define NOTICE_LATE_MS	(slow() ? patience_ms() / 2 : 3000)

/* 17 ms for a try. */
#define SHORT_ACK_TIMEOUT	12

/* A channel's end waits 2 s for a marker that does not come. */
#define SHORT_OF_DRAIN_MS	(slow() ? LATE_MS : 1900)

FIXTURE(watch)
{
	struct calm calm;
	struct side_options options;
	struct pair pair;
	bool drops;	/* the machine, what the first device sends */
};

FIXTURE_SETUP(watch)
{
	self->drops = false;
	self->options = side_defaults();
	self->options.params.max_send_wr = DEPTH;
	self->options.params.max_recv_wr = DEPTH;
	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_MIN_MS;
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(watch)
{
	if (self->drops)
		sh("tc qdisc delete dev v0 root");
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_cmd_channel_query query(const struct side *side)
{
	struct ibchan_cmd_channel_query cmd;

	if (side_query(side, &cmd))
		memset(&cmd, 0xff, sizeof(cmd));
	return cmd;
}

static struct ibchan_facts facts(const struct side *side)
{
	return query(side).out.facts;
}

struct probes {
	const struct side *side;
	__u32 num;
	__u64 before;	/* a time when they had not all been sent */
};

static bool has_answers(void *arg)
{
	const struct probes *probes = arg;

	return facts(probes->side).probes_answered >= probes->num;
}

static bool has_asked(void *arg)
{
	struct probes *probes = arg;
	__u64 now = now_ms();

	if (facts(probes->side).probes_sent >= probes->num)
		return true;
	probes->before = now;
	return false;
}

static bool wait_answers(const struct side *side, __u32 num)
{
	struct probes probes = { .side = side, .num = num };

	return eventually(has_answers, &probes);
}

static bool wait_asked(const struct side *side, __u32 num)
{
	struct probes probes = { .side = side, .num = num };

	return eventually(has_asked, &probes);
}

/* What a channel says whose peer has died, and when it has said so. */
static int expect_noticed_with(struct side *side, __u64 start, __u32 status)
{
	__u32 notice_ms = facts(side).notice_ms;
	int rc = ring_wait(side->ring, 1, notice_ms + NOTICE_LATE_MS);
	struct ibchan_cmd_channel_query cmd = query(side);

	fprintf(stderr, "# noticed after %llu ms, promised are %u\n", now_ms() - start, notice_ms);
	if (rc)
		return rc;
	if (cmd.out.state == IBCHAN_CHANNEL_BROKEN && cmd.out.error == ETIMEDOUT &&
	    cmd.out.status == status)
		return 0;
	fprintf(stderr, "# state %u, error %u, status %u\n", cmd.out.state, cmd.out.error,
		cmd.out.status);
	return -EBADMSG;
}

/* The device says so. */
static int expect_noticed(struct side *side, __u64 start)
{
	return expect_noticed_with(side, start, IBCHAN_STATUS_RETRY_EXC_ERR);
}

TEST_F(watch, notices_that_the_peer_has_died_on_a_channel_that_only_receives)
{
	struct probes first = { .num = 1, .before = now_ms() };
	struct side *a;
	__u64 start;
	int i;

	self->options.options.keepalive_ms = 2000;
	self->options.params.ack_timeout = QUICK_ACK_TIMEOUT;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	ASSERT_EQ(0, post_receives(a, 1, DEPTH, MESSAGE));
	EXPECT_EQ(2000, facts(a).notice_ms);
	/* It has more time to connect its own side. */
	first.side = a;
	ASSERT_TRUE(eventually(has_asked, &first));
	ASSERT_TRUE(wait_answers(a, 1));
	start = now_ms();
	side_close(self->pair.b);
	EXPECT_EQ(0, expect_noticed(a, start));
	/* Not soon after the question either: this was the keepalive. */
	EXPECT_LT(900, now_ms() - first.before);
	for (i = 0; i < DEPTH; i++)
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 1 + i));
	EXPECT_EQ(0, query(a).out.recvs_in_flight);
	EXPECT_EQ(0, ring_surplus(a->ring));
}

TEST_F(watch, notices_it_where_nothing_is_posted_at_all)
{
	struct side *a;
	__u64 end;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	side_close(self->pair.b);
	end = now_ms() + facts(a).notice_ms + NOTICE_LATE_MS;
	while (side_state(a) == IBCHAN_CHANNEL_CONNECTED && now_ms() < end)
		poll(NULL, 0, 2);
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(a));
	EXPECT_EQ(ETIMEDOUT, query(a).out.error);
	EXPECT_EQ(0, ring_unread(a->ring));
}

TEST_F(watch, leaves_a_peer_that_lives_in_peace)
{
	struct side *a, *b;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	b = self->pair.b;
	ASSERT_EQ(0, post_receives(b, 1, DEPTH - 1, MESSAGE));
	ASSERT_TRUE(wait_answers(a, 5));
	ASSERT_TRUE(wait_answers(b, 5));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(b));
	EXPECT_EQ(0, query(a).out.sends_in_flight);
	EXPECT_EQ(0, query(b).out.sends_in_flight);
	EXPECT_EQ(DEPTH - 1, query(b).out.recvs_in_flight);
	EXPECT_EQ(0, ring_unread(a->ring));
	EXPECT_EQ(0, ring_unread(b->ring));
	/* Each receive still takes a message. */
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 10, 0, MESSAGE)));
	EXPECT_EQ(0, succeed(a, 10, NULL));
	EXPECT_EQ(0, succeed(b, 1, NULL));
}

TEST_F(watch, asks_nothing_of_a_peer_that_is_heard)
{
	__u64 end;

	self->options.options.keepalive_ms = 20 * LATE_MS;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	for (end = now_ms() + 2000; now_ms() < end; )
		ASSERT_EQ(0, exchange(self->pair.a, self->pair.b));
	EXPECT_EQ(0, facts(self->pair.a).probes_sent);
	EXPECT_EQ(0, facts(self->pair.b).probes_sent);
}

TEST_F(watch, that_is_off_asks_nothing_and_notices_nothing)
{
	struct side clock;

	ASSERT_EQ(0, side_open(&clock, &self->options));
	ASSERT_EQ(0, side_handshake(&clock, &clock.endpoint));
	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	EXPECT_EQ(0, facts(self->pair.a).notice_ms);
	EXPECT_EQ(IBCHAN_KEEPALIVE_OFF, query(self->pair.a).out.options.keepalive_ms);
	side_close(self->pair.b);
	EXPECT_TRUE(wait_answers(&clock, 20));
	EXPECT_EQ(0, facts(self->pair.a).probes_sent);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.a));
	side_close(&clock);
}

TEST_F(watch, takes_ten_seconds_unless_told_otherwise)
{
	self->options.options.keepalive_ms = 0;
	self->options.params.ack_timeout = QUICK_ACK_TIMEOUT;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	EXPECT_EQ(IBCHAN_DEFAULT_KEEPALIVE_MS, query(self->pair.a).out.options.keepalive_ms);
	EXPECT_EQ(IBCHAN_DEFAULT_KEEPALIVE_MS, facts(self->pair.a).notice_ms);
}

/*
 * One end alone, which nobody has told when its peer comes; the same with a time that was asked
 * for, which is the clock; and one whose device has ended it for a peer's wrong key.
 */
TEST_F(watch, that_nobody_asked_for_waits_for_a_peer_and_sees_its_own_end)
{
	struct ibchan_cmd_event_take event = { 0 };
	struct side alone, late, told, never;
	struct ibchan_submit_wr wr;
	__u32 error;

	self->options.options.keepalive_ms = 0;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	ASSERT_EQ(0, side_open(&alone, &self->options));
	ASSERT_EQ(0, side_open(&late, &self->options));
	self->options.options.keepalive_ms = IBCHAN_DEFAULT_KEEPALIVE_MS;
	ASSERT_EQ(0, side_open(&told, &self->options));
	ASSERT_EQ(0, side_open(&never, &self->options));
	ASSERT_EQ(0, side_handshake(&alone, &late.endpoint));
	ASSERT_EQ(0, post_receives(&told, 1, 1, MESSAGE));
	ASSERT_EQ(0, side_handshake(&told, &never.endpoint));
	wr = work(self->pair.a, IBCHAN_OP_WRITE, 1, 0, MESSAGE);
	work_at(&wr, self->pair.b, 0);
	wr.rkey ^= 0x55;
	ASSERT_EQ(0, post_one(self->pair.a, wr));
	EXPECT_EQ(0, expect_noticed(&told, now_ms()));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&alone));
	EXPECT_EQ(0, facts(&alone).probes_sent);
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(self->pair.b));
	/* Soft-RoCE says how its queue pair has ended on later kernels only. */
	error = query(self->pair.b).out.error;
	EXPECT_TRUE(error == EACCES || error == ECANCELED)
		TH_LOG("error %u", error);
	EXPECT_EQ(0, cmd_event_take(self->pair.b->fd, &event));
	EXPECT_EQ(self->pair.b->channel, event.out_channel);
	EXPECT_EQ(IBCHAN_EVENT_BROKEN, event.out_events);
	ASSERT_EQ(0, side_handshake(&late, &alone.endpoint));
	EXPECT_EQ(0, exchange(&late, &alone));
	side_close(&never);
	side_close(&told);
	side_close(&late);
	side_close(&alone);
}

TEST_F(watch, refuses_a_time_outside_its_range)
{
	static const __u32 bad[] = { 1, IBCHAN_KEEPALIVE_MIN_MS - 1, IBCHAN_KEEPALIVE_MAX_MS + 1,
				     IBCHAN_KEEPALIVE_OFF - 1 };
	static const __u32 good[] = { IBCHAN_KEEPALIVE_MIN_MS, IBCHAN_KEEPALIVE_MAX_MS };
	struct side *a = &self->pair.sides[0];
	unsigned int i;

	ASSERT_EQ(0, side_open(a, &self->options));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ibchan_cmd_channel_build cmd = {
			.pd = a->pd, .send_cq = a->ring->cq, .recv_cq = a->ring->cq,
			.params = default_params(), .options.keepalive_ms = bad[i],
		};

		EXPECT_EQ(-EINVAL, cmd_channel_build(a->fd, &cmd));
		EXPECT_EQ(IBCHAN_REASON_PARAMETER, cmd.reason.code);
		EXPECT_EQ(IBCHAN_PARAMETER_KEEPALIVE_MS, cmd.reason.element);
		EXPECT_EQ(bad[i], cmd.reason.value[0]);
		EXPECT_EQ(IBCHAN_KEEPALIVE_MIN_MS, cmd.reason.value[1]);
		EXPECT_EQ(IBCHAN_KEEPALIVE_MAX_MS, cmd.reason.value[2]);
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct side other;

		self->options.options.keepalive_ms = good[i];
		ASSERT_EQ(0, side_share(&other, a, &self->options));
		EXPECT_EQ(good[i], query(&other).out.options.keepalive_ms);
		EXPECT_EQ(0, destroy(other.fd, other.channel));
		EXPECT_EQ(0, destroy(other.fd, other.mr));
		side_close(&other);
	}
}

/* With the shortest keepalive, where the device needs longer than that. */
static __u32 notice_ms(__u32 retries, __u32 ack_timeout)
{
	return IBCHAN_KEEPALIVE_MIN_MS / 2 + 40 +
	       (retries + 1) * 4096 * (1ULL << ack_timeout) / 1000000 + 1;
}

/* What the device needs to give up comes on top where it is too much. */
TEST_F(watch, says_how_soon_it_notices)
{
	self->options.params.ack_timeout = 18;
	self->options.params.ack_retries = 3;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	EXPECT_EQ(notice_ms(3, 18), facts(self->pair.a).notice_ms);
	pair_close(&self->pair);
	self->options.params.ack_retries = 7;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	/* Soft-RoCE takes the highest number for no limit. */
	EXPECT_EQ(notice_ms(7, 18), facts(self->pair.a).notice_ms);
	pair_close(&self->pair);
	self->options.params.ack_retries = 6;
	self->options.params.ack_timeout = 0;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	EXPECT_EQ(0, facts(self->pair.a).notice_ms);
}

/* The peer has no receive, so that the sends stay; the probe has a place beside them. */
TEST_F(watch, has_room_for_its_question_in_a_full_send_queue)
{
	struct side *a, *b;
	int i;

	self->options.params.rnr_retries = 7;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	b = self->pair.b;
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 1 + i, 0, MESSAGE)));
	ASSERT_EQ(-EAGAIN, post_one(a, work(a, IBCHAN_OP_SEND, 99, 0, MESSAGE)));
	ASSERT_TRUE(wait_asked(a, 1));
	EXPECT_EQ(DEPTH, query(a).out.sends_in_flight);
	EXPECT_EQ(0, facts(a).probes_answered);
	ASSERT_EQ(0, post_receives(b, 1, DEPTH, MESSAGE));
	for (i = 0; i < DEPTH; i++) {
		EXPECT_EQ(0, succeed(a, 1 + i, NULL));
		EXPECT_EQ(0, succeed(b, 1 + i, NULL));
	}
	EXPECT_TRUE(wait_answers(a, 1));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(a));
}

/*
 * Soft-RoCE of 6.1 sends again for ever what was not even taken from it, and says nothing; a later
 * one ends its queue pair at once, and flushes.
 */
TEST_F(watch, notices_that_no_answer_comes_though_the_device_never_says_so)
{
	struct side *a;
	int rc;

	self->options.params.ack_timeout = SHORT_ACK_TIMEOUT;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	ASSERT_EQ(0, post_receives(a, 1, 1, MESSAGE));
	ASSERT_TRUE(wait_answers(a, 1));
	ASSERT_EQ(0, sh("tc qdisc replace dev v0 root pfifo limit 0"));
	self->drops = true;
	rc = expect_noticed_with(a, now_ms(), IBCHAN_STATUS_RESP_TIMEOUT_ERR);
	if (rc == -EBADMSG && query(a).out.status == IBCHAN_STATUS_WR_FLUSH_ERR)
		SKIP(return, "this kernel's soft-RoCE says so");
	EXPECT_EQ(0, rc);
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 1));
}

/*
 * The twin: the peer lives, and answers a question that waits behind messages for which it has no
 * receive. Another channel tells when several times the promised time has passed.
 */
TEST_F(watch, leaves_a_peer_in_peace_that_lets_a_full_queue_wait)
{
	struct side clock, *a;
	int i;

	self->options.params.ack_timeout = SHORT_ACK_TIMEOUT;
	ASSERT_EQ(0, side_open(&clock, &self->options));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 1 + i, 0, MESSAGE)));
	ASSERT_TRUE(wait_asked(a, 1));
	ASSERT_EQ(0, side_handshake(&clock, &clock.endpoint));
	ASSERT_TRUE(wait_answers(&clock, 5 * facts(a).notice_ms / IBCHAN_KEEPALIVE_MIN_MS));
	EXPECT_EQ(0, facts(a).probes_answered);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(a));
	ASSERT_EQ(0, post_receives(self->pair.b, 1, DEPTH, MESSAGE));
	for (i = 0; i < DEPTH; i++)
		EXPECT_EQ(0, succeed(a, 1 + i, NULL));
	EXPECT_TRUE(wait_answers(a, 1));
	side_close(&clock);
}

/* One that is told of a write that it forbids breaks the connection. */
TEST_F(watch, asks_nothing_of_a_peer_that_forbids_writes)
{
	struct side_options shut = self->options;
	struct pair *pair = &self->pair;

	shut.params.access = IBCHAN_ACCESS_LOCAL | IBCHAN_ACCESS_REMOTE_READ;
	shut.device = DEVICE_B;
	pair->a = &pair->sides[0];
	pair->b = &pair->sides[1];
	ASSERT_EQ(0, side_open(pair->a, &self->options));
	ASSERT_EQ(0, side_open(pair->b, &shut));
	EXPECT_TRUE(pair->a->endpoint.flags & IBCHAN_ENDPOINT_REMOTE_WRITE);
	EXPECT_FALSE(pair->b->endpoint.flags & IBCHAN_ENDPOINT_REMOTE_WRITE);
	ASSERT_EQ(0, pair_connect(pair));
	EXPECT_EQ(0, facts(pair->a).notice_ms);
	EXPECT_NE(0, facts(pair->b).notice_ms);
	EXPECT_TRUE(wait_answers(pair->b, 10));
	EXPECT_EQ(0, facts(pair->a).probes_sent);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(pair->a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(pair->b));
}

/* The question has the place that the end of the channel needs. */
TEST_F(watch, that_waits_for_an_answer_does_not_hold_up_the_end)
{
	struct side *a;
	__u64 start;
	int i;

	self->options.params.ack_timeout = 20;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	side_close(self->pair.b);
	ASSERT_EQ(0, post_receives(a, 1, DEPTH, MESSAGE));
	ASSERT_TRUE(wait_asked(a, 1));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 11 + i, HALF, MESSAGE)));
	start = now_ms();
	ASSERT_EQ(0, channel_break(a->fd, a->channel));
	for (i = 0; i < DEPTH; i++) {
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 1 + i));
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 11 + i));
	}
	EXPECT_EQ(0, destroy(a->fd, a->channel));
	EXPECT_GT(SHORT_OF_DRAIN_MS, (long)(now_ms() - start));
	EXPECT_EQ(0, ring_surplus(a->ring));
}

/* Closing without breaking first, with no work at all but the question. */
TEST_F(watch, that_waits_for_an_answer_is_closed_at_once)
{
	__u64 start;

	self->options.params.ack_timeout = 20;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	side_close(self->pair.b);
	ASSERT_TRUE(wait_asked(self->pair.a, 1));
	start = now_ms();
	EXPECT_EQ(0, destroy(self->pair.a->fd, self->pair.a->channel));
	EXPECT_GT(SHORT_OF_DRAIN_MS, (long)(now_ms() - start));
}

static int open_loop(const struct side *host, __u32 keepalive_ms, __u32 *channel)
{
	struct ibchan_cmd_channel_build build = {
		.pd = host->pd, .send_cq = host->ring->cq, .recv_cq = host->ring->cq,
		.params = default_params(), .options.keepalive_ms = keepalive_ms,
	};
	struct ibchan_cmd_channel_handshake handshake = {};
	int rc;

	build.params.max_send_wr = 1;
	build.params.max_recv_wr = 1;
	/* All ask at once, and none may be given up while the others are answered. */
	build.params.ack_timeout = 18;
	rc = cmd_channel_build(host->fd, &build);
	if (rc)
		return rc;
	*channel = build.out_channel;
	handshake.channel = build.out_channel;
	handshake.endpoint = build.out_endpoint;
	return cmd_channel_handshake(host->fd, &handshake);
}

struct crowd {
	struct side host;
	__u32 channels[MANY];
	__u32 sent;
	__u32 least_answered;
	unsigned int connected;
};

/* An emulated kernel that checks itself has no time for the questions of a thousand. */
static int many(void)
{
	return slow() ? MANY / 10 : MANY;
}

static void count_crowd(struct crowd *crowd)
{
	int i;

	crowd->sent = 0;
	crowd->connected = 0;
	crowd->least_answered = ~0U;
	for (i = 0; i < many(); i++) {
		struct ibchan_cmd_channel_query cmd = { .channel = crowd->channels[i] };

		if (cmd_channel_query(crowd->host.fd, &cmd))
			return;
		crowd->sent += cmd.out.facts.probes_sent;
		crowd->connected += cmd.out.state == IBCHAN_CHANNEL_CONNECTED;
		if (cmd.out.facts.probes_answered < crowd->least_answered)
			crowd->least_answered = cmd.out.facts.probes_answered;
	}
}

static bool crowd_answered(void *arg)
{
	struct crowd *crowd = arg;

	count_crowd(crowd);
	return crowd->least_answered >= 2;
}

static struct crowd *crowd_open(FIXTURE_DATA(watch) * self, __u32 keepalive_ms)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct side_options options = self->options;
	int rc, i;

	options.cq_entries = 5000;
	options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	rc = side_open(&crowd->host, &options);
	for (i = 0; !rc && i < many(); i++)
		rc = open_loop(&crowd->host, keepalive_ms, &crowd->channels[i]);
	if (!rc)
		return crowd;
	fprintf(stderr, "# no crowd: %d\n", rc);
	side_close(&crowd->host);
	free(crowd);
	return NULL;
}

static void crowd_close(struct crowd *crowd)
{
	side_close(&crowd->host);
	free(crowd);
}

TEST_F(watch, asks_a_thousand_idle_channels_no_more_often_than_it_must)
{
	__u64 start = now_ms();
	struct crowd *crowd = crowd_open(self, 1000);

	ASSERT_NE(NULL, crowd);
	EXPECT_TRUE(eventually(crowd_answered, crowd));
	fprintf(stderr, "# %u questions in %llu ms\n", crowd->sent, now_ms() - start);
	EXPECT_EQ(many(), crowd->connected);
	/* One in half a second for each, at most. */
	EXPECT_GE((now_ms() - start) / 500 * many(), crowd->sent);
	EXPECT_EQ(0, ring_unread(crowd->host.ring));
	crowd_close(crowd);
}

/* A thousand want to ask 20000 times in a second; the device does so 3200 times. */
TEST_F(watch, keeps_to_the_budget_of_a_device_whose_channels_are_impatient)
{
	struct crowd *crowd = crowd_open(self, IBCHAN_KEEPALIVE_MIN_MS);
	struct side *a;
	__u64 start;
	__u32 sent;

	ASSERT_NE(NULL, crowd);
	count_crowd(crowd);
	sent = crowd->sent;
	start = now_ms();
	/* Others on the device get their turn. */
	self->options.options.keepalive_ms = 2000;
	self->options.params.ack_timeout = QUICK_ACK_TIMEOUT;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	/* What is promised tells how many share the budget. */
	EXPECT_EQ(2000 + many() * 3 / 32 * 10, facts(a).notice_ms);
	ASSERT_TRUE(wait_answers(a, 1));
	side_close(self->pair.b);
	ASSERT_EQ(0, post_receives(a, 1, 1, MESSAGE));
	EXPECT_EQ(0, expect_noticed(a, now_ms()));
	EXPECT_TRUE(eventually(crowd_answered, crowd));
	fprintf(stderr, "# %u questions in %llu ms\n", crowd->sent - sent, now_ms() - start);
	EXPECT_EQ(many(), crowd->connected);
	EXPECT_GE((now_ms() - start) * 4 + 100, crowd->sent - sent);
	crowd_close(crowd);
}

/* Never returns. */
static int keep_crowd_of_nobody(int ready, void *self)
{
	if (drop_privileges() || !crowd_open(self, IBCHAN_KEEPALIVE_MIN_MS) ||
	    write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* A thousand impatient channels of another user are due all the time. */
TEST_F(watch, gives_each_user_a_share_of_the_budget_of_a_device)
{
	struct stat node;
	struct side *a;
	__u64 start;
	pid_t child;

	ASSERT_EQ(0, stat(NODE, &node));
	ASSERT_EQ(0, chmod(NODE, 0666));
	child = child_that_is_ready(keep_crowd_of_nobody, self);
	ASSERT_EQ(0, chmod(NODE, node.st_mode & 07777));
	ASSERT_LT(0, child);
	self->options.params.ack_timeout = QUICK_ACK_TIMEOUT;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	EXPECT_EQ(notice_ms(IBCHAN_DEFAULT_ACK_RETRIES, QUICK_ACK_TIMEOUT),
		  facts(a).notice_ms);
	ASSERT_TRUE(wait_answers(a, 3));
	start = now_ms();
	side_close(self->pair.b);
	ASSERT_EQ(0, post_receives(a, 1, 1, MESSAGE));
	EXPECT_EQ(0, expect_noticed(a, start));
	if (!slow())
		EXPECT_GT(facts(a).notice_ms + 100, now_ms() - start);
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
}

TEST_HARNESS_MAIN
