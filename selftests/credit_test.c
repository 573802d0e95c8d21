// SPDX-License-Identifier: GPL-2.0-only
/*
 * Credits on the bare contract: no message is posted that the peer has no receive for, and
 * the wait for one ends by a receive, a time-out, a signal, a break, a close, a removal.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define MS		1000000LL
#define HALF		32768
#define DEPTH		4
#define MESSAGES	200

FIXTURE(credit)
{
	struct calm calm;
	struct side_options options;
	struct pair pair;
	struct side *a;
	struct side *b;
};

static struct side_options credit_options(void)
{
	struct side_options options = side_defaults();

	options.options.mode = IBCHAN_MODE_CREDITS;
	options.params.rnr_retries = 0;
	options.params.max_recv_wr = DEPTH;
	return options;
}

FIXTURE_SETUP(credit)
{
	self->options = credit_options();
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(credit)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_submit_wr message(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_SEND, wr_id, 0, 64);
}

static struct ibchan_submit_wr receive(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_RECV, wr_id, HALF, 64);
}

/* Credits, 1 and up, or -errno. */
static int credit_wait(const struct side *side, long long timeout_ns)
{
	struct ibchan_cmd_channel_credit_wait cmd = {
		.channel = side->channel,
		.timeout_ns = timeout_ns,
	};
	int rc = cmd_channel_credit_wait(side->fd, &cmd);

	if (rc && cmd.out_credits)
		return -EBADMSG;
	return rc ? rc : (int)cmd.out_credits;
}

static int wait_for(const struct side *side, int credits)
{
	__u64 end = now_ms() + patience_ms();
	int rc;

	do
		rc = credit_wait(side, MS * patience_ms());
	while (rc > 0 && rc < credits && now_ms() < end);
	return rc;
}

/* Why the one request was refused, or 0 when it was posted. */
static __u32 refusal(const struct side *side, struct ibchan_submit_wr wr, int *rc)
{
	struct ibchan_cmd_submit cmd = submission(&wr, 1);

	*rc = cmd_submit(side->fd, &cmd);
	return cmd.entry_num ? 0 : cmd.reason.code;
}

static __u32 sends_in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;

	return side_query(side, &query) ? ~0U : query.out_sends_in_flight;
}

TEST_F(credit, that_is_not_there_refuses_a_message_and_posts_nothing)
{
	struct ibchan_submit_wr write = work_empty(self->a, IBCHAN_OP_WRITE, 2);
	int rc;

	EXPECT_EQ(IBCHAN_REASON_PEER_CREDITS, refusal(self->a, message(self->a, 1), &rc));
	EXPECT_EQ(-EAGAIN, rc);
	work_at(&write, self->b, 0);
	work_imm(&write, 7);
	EXPECT_EQ(IBCHAN_REASON_PEER_CREDITS, refusal(self->a, write, &rc));
	EXPECT_EQ(-EAGAIN, rc);
	EXPECT_EQ(0, sends_in_flight(self->a));
	EXPECT_EQ(0, ring_surplus(self->a->ring));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->a));
}

TEST_F(credit, is_granted_by_each_receive_and_taken_by_each_message)
{
	int rc;

	ASSERT_EQ(0, post_receives(self->b, 0, 2, 64));
	ASSERT_EQ(2, wait_for(self->a, 2));
	pattern(self->a->memory, 64, 1);
	ASSERT_EQ(0, post_one(self->a, message(self->a, 10)));
	EXPECT_EQ(0, succeed(self->a, 10, NULL));
	EXPECT_EQ(0, succeed(self->b, 0, NULL));
	EXPECT_EQ(1, credit_wait(self->a, 0));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 11)));
	EXPECT_EQ(0, succeed(self->a, 11, NULL));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(-ETIMEDOUT, credit_wait(self->a, 0));
	EXPECT_EQ(IBCHAN_REASON_PEER_CREDITS, refusal(self->a, message(self->a, 12), &rc));
}

TEST_F(credit, is_not_needed_for_what_takes_no_receive)
{
	struct ibchan_submit_wr write = work(self->a, IBCHAN_OP_WRITE, 1, 0, 64);
	struct ibchan_submit_wr read = work(self->a, IBCHAN_OP_READ, 2, HALF, 64);

	work_at(&write, self->b, 0);
	work_at(&read, self->b, 0);
	pattern(self->a->memory, 64, 5);
	ASSERT_EQ(0, post_one(self->a, write));
	EXPECT_EQ(0, succeed(self->a, 1, NULL));
	ASSERT_EQ(0, post_one(self->a, read));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->a->memory + HALF, 64));
}

/* The twin: without credits the first message finds no receive and is lost. */
TEST(without_credits_a_message_fails_that_the_peer_has_no_receive_for)
{
	struct side_options options = credit_options();
	struct pair pair;

	options.options.mode = 0;
	ASSERT_EQ(0, pair_open(&pair, PAIR_TWO_DEVICES, &options));
	ASSERT_EQ(0, post_one(pair.a, message(pair.a, 1)));
	EXPECT_EQ(IBCHAN_STATUS_RNR_RETRY_EXC_ERR, status_of(pair.a, 1));
	EXPECT_EQ(-EOPNOTSUPP, credit_wait(pair.a, 0));
	pair_close(&pair);
}

/* One direction: every message in its own bytes, each as soon as it may go. */
struct direction {
	const struct side *from;
	const struct side *to;
	int sent;
	int received;
};

static int send_one(struct direction *way)
{
	__u64 number = way->sent;
	int rc = credit_wait(way->from, MS * patience_ms());

	if (rc < 0)
		return rc;
	memcpy(way->from->memory, &number, sizeof(number));
	rc = post_one(way->from, work(way->from, IBCHAN_OP_SEND, number, 0, sizeof(number)));
	if (!rc)
		rc = succeed(way->from, number, NULL);
	if (!rc)
		__atomic_add_fetch(&way->sent, 1, __ATOMIC_RELEASE);
	return rc;
}

static void *send_all(void *arg)
{
	struct direction *way = arg;

	while (way->sent < MESSAGES && !send_one(way))
		;
	return NULL;
}

static int post_slot(const struct direction *way, int number)
{
	int slot = number % DEPTH;

	return post_one(way->to, work(way->to, IBCHAN_OP_RECV, number, HALF + 8 * slot, 8));
}

/* All receives that there are have a message, or there are no more messages. */
static bool credits_are_used_up(void *arg)
{
	const struct direction *way = arg;
	int last = way->received + DEPTH - 1;

	return __atomic_load_n(&way->sent, __ATOMIC_ACQUIRE) ==
	       (last < MESSAGES ? last : MESSAGES);
}

static int receive_one(struct direction *way)
{
	__u64 number;
	int rc = succeed(way->to, way->received, NULL);

	if (rc)
		return rc;
	memcpy(&number, way->to->memory + HALF + 8 * (way->received % DEPTH), sizeof(number));
	if (number != (__u64)way->received)
		return -EBADMSG;
	way->received++;
	/* At times the receiver is so slow that its peer has to wait. */
	if (way->received % 40 == 0 && !eventually(credits_are_used_up, way))
		return -ETIMEDOUT;
	return way->received + DEPTH <= MESSAGES ? post_slot(way, way->received + DEPTH - 1) : 0;
}

static void *receive_all(void *arg)
{
	struct direction *way = arg;
	int i, rc = 0;

	for (i = 0; i < DEPTH && !rc; i++)
		rc = post_slot(way, i);
	while (!rc && way->received < MESSAGES)
		rc = receive_one(way);
	return NULL;
}

TEST_F(credit, lets_messages_through_four_receives_without_a_loss)
{
	struct direction way = { .from = self->a, .to = self->b };
	pthread_t sender;

	ASSERT_EQ(0, pthread_create(&sender, NULL, send_all, &way));
	receive_all(&way);
	pthread_join(sender, NULL);
	EXPECT_EQ(MESSAGES, way.sent);
	EXPECT_EQ(MESSAGES, way.received);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->b));
}

TEST_F(credit, wait_ends_in_time)
{
	__u64 start = now_ms();

	EXPECT_EQ(-ETIMEDOUT, credit_wait(self->a, 0));
	EXPECT_EQ(-ETIMEDOUT, credit_wait(self->a, 50 * MS));
	EXPECT_LE(49, now_ms() - start);
	EXPECT_GT(patience_ms(), now_ms() - start);
	EXPECT_EQ(-EINVAL, credit_wait(self->a, -2));
	EXPECT_EQ(-EINVAL, credit_wait(self->a, LLONG_MIN));
}

/* A thread that waits for credit without end. */
struct waiter {
	const struct side *side;
	pthread_t thread;
	pid_t tid;
	int rc;
};

static void *wait_thread(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = credit_wait(waiter->side, IBCHAN_TIMEOUT_NEVER);
	return NULL;
}

static int waiter_start(struct waiter *waiter, const struct side *side)
{
	*waiter = (struct waiter){ .side = side };
	if (pthread_create(&waiter->thread, NULL, wait_thread, waiter))
		return -EAGAIN;
	return eventually(is_asleep, &waiter->tid) ? 0 : -ETIMEDOUT;
}

static int waiter_end(struct waiter *waiter)
{
	return join_soon(waiter->thread, NULL) ?: waiter->rc;
}

TEST_F(credit, wait_ends_with_a_receive)
{
	struct waiter waiter;

	ASSERT_EQ(0, waiter_start(&waiter, self->a));
	ASSERT_EQ(0, post_one(self->b, receive(self->b, 1)));
	EXPECT_EQ(1, waiter_end(&waiter));
}

TEST_F(credit, wait_ends_with_a_break)
{
	struct waiter waiter;

	ASSERT_EQ(0, waiter_start(&waiter, self->a));
	ASSERT_EQ(0, channel_break(self->a->fd, self->a->channel));
	EXPECT_EQ(-ESHUTDOWN, waiter_end(&waiter));
}

TEST_F(credit, wait_ends_when_the_channel_is_closed)
{
	struct waiter waiter;
	int rc;

	ASSERT_EQ(0, waiter_start(&waiter, self->a));
	ASSERT_EQ(0, destroy(self->a->fd, self->a->channel));
	rc = waiter_end(&waiter);
	EXPECT_TRUE(rc == -ENOENT || rc == -ESHUTDOWN)
		TH_LOG("%d", rc);
	EXPECT_EQ(-ENOENT, credit_wait(self->a, 0));
}

static void on_signal(int number)
{
	(void)number;
}

TEST_F(credit, wait_ends_with_a_signal_and_leaves_the_channel)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct waiter waiter;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, waiter_start(&waiter, self->a));
	ASSERT_EQ(0, pthread_kill(waiter.thread, SIGUSR1));
	EXPECT_EQ(-EINTR, waiter_end(&waiter));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->a));
	ASSERT_EQ(0, post_one(self->b, receive(self->b, 1)));
	EXPECT_EQ(1, wait_for(self->a, 1));
}

TEST(a_wait_for_credit_before_the_handshake_is_refused)
{
	struct side_options options = credit_options();
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	EXPECT_EQ(-ENOTCONN, credit_wait(&side, IBCHAN_TIMEOUT_NEVER));
	side_close(&side);
}

static __u32 misfit(const struct side *side, const struct side *peer, int *rc)
{
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = side->channel,
		.endpoint = peer->endpoint,
	};

	*rc = cmd_channel_handshake(side->fd, &cmd);
	return cmd.reason.code;
}

TEST(credits_on_one_side_only_are_refused_by_both)
{
	struct side_options options = credit_options();
	struct side with, without;
	int rc;

	ASSERT_EQ(0, side_open(&with, &options));
	options.options.mode = 0;
	ASSERT_EQ(0, side_open(&without, &options));
	EXPECT_EQ(IBCHAN_REASON_CREDIT_MODE, misfit(&with, &without, &rc));
	EXPECT_EQ(-EINVAL, rc);
	EXPECT_EQ(IBCHAN_REASON_CREDIT_MODE, misfit(&without, &with, &rc));
	EXPECT_EQ(-EINVAL, rc);
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&with));
	side_close(&with);
	side_close(&without);
}

TEST(a_mode_that_is_not_known_is_refused_and_one_that_is_can_be_queried)
{
	struct side_options options = credit_options();
	struct ibchan_cmd_channel_query query;
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_query(&side, &query));
	EXPECT_EQ(IBCHAN_MODE_CREDITS, query.options.mode);
	side_close(&side);
	options.options.mode = 0x80000000;
	EXPECT_EQ(-EOPNOTSUPP, side_open(&side, &options));
	options.options.mode = IBCHAN_MODE_CREDITS;
	options.params.access = IBCHAN_ACCESS_LOCAL;
	EXPECT_EQ(-EACCES, side_open(&side, &options));
}

TEST_HARNESS_MAIN
