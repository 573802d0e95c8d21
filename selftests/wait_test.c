// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting: in the submit call and in epoll; what a time-out and a signal do to it, and that
 * neither loses or repeats a work.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define MS		1000000LL
#define HALF		32768

FIXTURE(wait)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

FIXTURE_SETUP(wait)
{
	struct side_options options = side_defaults();

	options.params.rnr_retries = 7;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(wait)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_submit_wr receive(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_RECV, wr_id, HALF, 64);
}

static struct ibchan_submit_wr message(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_SEND, wr_id, 0, 64);
}

/* Posts @wr and waits for @min completions of @side's ring. */
static struct ibchan_cmd_submit post_and_wait(const struct side *side,
					      const struct ibchan_submit_wr *wr,
					      unsigned int min, long long timeout_ns)
{
	struct ibchan_cmd_submit cmd = submission(wr, wr ? 1 : 0);

	cmd.cq = side->ring->cq;
	cmd.min_complete = min;
	cmd.timeout_ns = timeout_ns;
	return cmd;
}

static unsigned int receives_in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;

	return side_query(side, &query) ? ~0U : query.out.recvs_in_flight;
}

TEST_F(wait, that_times_out_leaves_the_work_which_then_completes)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, &wr, 1, 50 * MS);
	__u64 start = now_ms();

	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
	EXPECT_GE(now_ms() - start, 49);
	EXPECT_LT(now_ms() - start, patience_ms());
	EXPECT_EQ(1, cmd.entry_num);
	EXPECT_EQ(0, cmd.out_ready);
	EXPECT_EQ(1, receives_in_flight(self->b));

	ASSERT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(0, ring_wait(self->b->ring, 1, patience_ms()));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, receives_in_flight(self->b));
	EXPECT_EQ(0, ring_surplus(self->b->ring));
}

TEST_F(wait, that_is_over_leaves_a_ring_that_fills_by_itself)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, &wr, 1, MS);
	struct pollfd fd = { .fd = self->b->ring->fd, .events = POLLIN };

	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(1, poll(&fd, 1, patience_ms()));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
}

TEST_F(wait, with_no_time_asks_and_returns)
{
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, NULL, 1, 0);
	__u64 start = now_ms();

	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
	cmd = post_and_wait(self->b, NULL, 0, IBCHAN_TIMEOUT_NEVER);
	EXPECT_EQ(0, cmd_submit(self->b->fd, &cmd));
	EXPECT_LT(now_ms() - start, patience_ms());
}

TEST_F(wait, takes_never_and_any_number_of_nanoseconds_but_no_other_negative_one)
{
	static const long long good[] = { IBCHAN_TIMEOUT_NEVER, INT64_MAX, 1ULL << 62 };
	static const long long bad[] = { -2, INT64_MIN, -1000000000 };
	struct ibchan_cmd_submit cmd;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		cmd = post_and_wait(self->b, NULL, 0, bad[i]);
		EXPECT_EQ(-EINVAL, cmd_submit(self->b->fd, &cmd))
			TH_LOG("%lld ns", bad[i]);
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct ibchan_submit_wr wr = message(self->a, i);

		ASSERT_EQ(0, post_one(self->b, receive(self->b, i)));
		cmd = post_and_wait(self->a, &wr, 1, good[i]);
		EXPECT_EQ(0, cmd_submit(self->a->fd, &cmd))
			TH_LOG("%lld ns", good[i]);
		EXPECT_EQ(1, cmd.out_ready);
		ASSERT_EQ(0, succeed(self->a, i, NULL));
		ASSERT_EQ(0, succeed(self->b, i, NULL));
	}
}

TEST_F(wait, for_three_returns_with_three)
{
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, NULL, 3, IBCHAN_TIMEOUT_NEVER);
	unsigned int i;

	ASSERT_EQ(0, post_receives(self->b, 0, 3, 64));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, post_one(self->a, message(self->a, i)));
	EXPECT_EQ(-ETIMEDOUT, ring_wait(self->b->ring, 3, 20));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(0, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(3, cmd.out_ready);
	EXPECT_EQ(3, ring_unread(self->b->ring));
}

TEST_F(wait, for_more_than_the_ring_holds_is_refused)
{
	__u32 entries = self->b->ring->header->entries;
	struct ibchan_submit_wr wr = receive(self->b, 1);
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, &wr, entries + 1, 0);

	EXPECT_EQ(-EINVAL, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, cmd.reason.code);
	EXPECT_EQ(IBCHAN_PARAMETER_MIN_COMPLETE, cmd.reason.element);
	EXPECT_EQ(entries + 1, cmd.reason.value[0]);
	EXPECT_EQ(entries, cmd.reason.value[2]);
	EXPECT_EQ(0, cmd.entry_num);
	EXPECT_EQ(0, receives_in_flight(self->b));
	cmd = post_and_wait(self->b, NULL, entries, 0);
	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
}

/* A wait that counts from a value of the tail, whoever reads. */
static int wait_since(const struct side *side, __u32 tail, unsigned int min, long ms)
{
	struct ibchan_cmd_submit cmd = post_and_wait(side, NULL, min, ms * MS);

	cmd.flags = IBCHAN_SUBMIT_SINCE;
	cmd.tail = tail;
	return cmd_submit(side->fd, &cmd);
}

TEST_F(wait, since_a_tail_counts_what_has_been_read_too)
{
	__u32 tail = *self->b->ring->tail;
	unsigned int i;

	EXPECT_EQ(-ETIMEDOUT, wait_since(self->b, tail, 1, 10));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, exchange(self->a, self->b));
	ASSERT_EQ(0, ring_unread(self->b->ring));
	EXPECT_EQ(0, wait_since(self->b, tail, 3, 0));
	EXPECT_EQ(-ETIMEDOUT, wait_since(self->b, tail, 4, 10));
	EXPECT_EQ(-ETIMEDOUT, wait_since(self->b, tail + 3, 1, 10));
	EXPECT_EQ(-ETIMEDOUT, ring_wait(self->b->ring, 1, 10));
}

TEST_F(wait, since_a_tail_needs_a_queue)
{
	struct ibchan_cmd_submit cmd = post_and_wait(self->b, NULL, 0, 0);

	cmd.flags = IBCHAN_SUBMIT_SINCE;
	EXPECT_EQ(0, cmd_submit(self->b->fd, &cmd));
	cmd.cq = 0;
	EXPECT_EQ(-EINVAL, cmd_submit(self->b->fd, &cmd));
}

/* Sends this process SIGUSR1 again and again, so that no wait can miss it. */
struct bell {
	timer_t timer;
};

static void on_bell(int signal)
{
	(void)signal;
}

static int bell_start(struct bell *bell, int flags, long interval_ns)
{
	struct sigaction action = { .sa_handler = on_bell, .sa_flags = flags };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = {
		.it_interval.tv_nsec = interval_ns,
		.it_value.tv_nsec = interval_ns,
	};

	if (sigaction(SIGUSR1, &action, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &bell->timer) ||
	    timer_settime(bell->timer, 0, &spec, NULL))
		return -errno;
	return 0;
}

static void bell_stop(struct bell *bell)
{
	timer_delete(bell->timer);
}

/* An interrupted wait, with and without SA_RESTART: a restart would post again. */
static int interrupted_wait(const struct side *a, const struct side *b, int flags)
{
	struct ibchan_submit_wr wr = receive(b, 1);
	struct ibchan_cmd_submit cmd = post_and_wait(b, &wr, 1, IBCHAN_TIMEOUT_NEVER);
	struct bell bell;
	int rc = bell_start(&bell, flags, 20 * MS);

	if (rc)
		return rc;
	rc = cmd_submit(b->fd, &cmd);
	bell_stop(&bell);
	if (rc != -EINTR || cmd.entry_num != 1 || receives_in_flight(b) != 1)
		return rc ? rc : -EBADMSG;
	rc = post_one(a, message(a, 2));
	if (!rc)
		rc = succeed(b, 1, NULL);
	if (!rc)
		rc = succeed(a, 2, NULL);
	if (!rc && (ring_surplus(a->ring) || ring_surplus(b->ring) || receives_in_flight(b)))
		rc = -EBADMSG;
	return rc;
}

TEST_F(wait, that_a_signal_ends_leaves_the_work_which_then_completes)
{
	EXPECT_EQ(0, interrupted_wait(self->a, self->b, 0));
}

TEST_F(wait, is_not_restarted_by_the_kernel_either)
{
	EXPECT_EQ(0, interrupted_wait(self->a, self->b, SA_RESTART));
}

TEST_F(wait, survives_a_storm_of_signals_without_losing_or_repeating_a_work)
{
	unsigned int i, rounds = 100;
	struct ibchan_cqe cqe;
	struct bell bell;
	int rc;

	ASSERT_EQ(0, bell_start(&bell, 0, 2 * MS));
	for (i = 0; i < rounds; i++) {
		struct ibchan_submit_wr send = message(self->a, i);
		struct ibchan_cmd_submit cmd = post_and_wait(self->a, &send, 1,
							     IBCHAN_TIMEOUT_NEVER);

		ASSERT_EQ(0, post_one(self->b, receive(self->b, i)));
		rc = cmd_submit(self->a->fd, &cmd);
		ASSERT_TRUE(!rc || rc == -EINTR)
			TH_LOG("%d", rc);
		ASSERT_EQ(1, cmd.entry_num);
		ASSERT_EQ(0, succeed(self->a, i, NULL));
		ASSERT_EQ(0, succeed(self->b, i, &cqe));
		ASSERT_EQ(64, cqe.bytes);
	}
	bell_stop(&bell);
	EXPECT_EQ(0, ring_surplus(self->a->ring));
	EXPECT_EQ(0, ring_surplus(self->b->ring));
}

/* A thread that waits while the test goes on. */
struct waiter {
	pthread_t thread;
	pid_t tid;
	const struct side *side;
	unsigned int min;
	__u32 tail;
	int rc;
};

static void *wait_for_tail(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = wait_since(waiter->side, waiter->tail, waiter->min, patience_ms());
	return NULL;
}

static void *wait_in_submit(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = ring_wait(waiter->side->ring, waiter->min, -1);
	return NULL;
}

static void *wait_in_poll(void *arg)
{
	struct waiter *waiter = arg;
	struct pollfd pollfd = { .fd = waiter->side->ring->fd, .events = POLLIN };

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = poll(&pollfd, 1, -1) == 1 && pollfd.revents == POLLIN ? 0 : -EBADMSG;
	return NULL;
}

static int waiter_start(struct waiter *waiter, void *(*how)(void *))
{
	int rc;

	waiter->tid = 0;
	rc = pthread_create(&waiter->thread, NULL, how, waiter);
	if (rc)
		return -rc;
	return eventually(is_asleep, &waiter->tid) ? 0 : -ETIMEDOUT;
}

static int waiter_result(struct waiter *waiter)
{
	return join_soon(waiter->thread, NULL) ?: waiter->rc;
}

TEST_F(wait, of_two_threads_on_one_queue_ends_for_both)
{
	struct waiter waiters[2] = {
		{ .side = self->b, .min = 1 }, { .side = self->b, .min = 1 },
	};

	ASSERT_EQ(0, post_one(self->b, receive(self->b, 1)));
	ASSERT_EQ(0, waiter_start(&waiters[0], wait_in_submit));
	ASSERT_EQ(0, waiter_start(&waiters[1], wait_in_submit));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 1)));
	EXPECT_EQ(0, waiter_result(&waiters[0]));
	EXPECT_EQ(0, waiter_result(&waiters[1]));
}

/* Nothing is in flight when it falls asleep, and who posts then does not wait himself. */
TEST_F(wait, on_an_empty_queue_for_solicited_messages_is_woken_by_any)
{
	struct side_options options = side_defaults();
	struct waiter waiter = { .min = 1 };
	struct side a, b;

	/* What a keepalive brings in would wake it as well. */
	options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	ASSERT_EQ(0, side_open(&a, &options));
	options.device = DEVICE_B;
	options.cq_flags = IBCHAN_CQ_CREATE_SOLICITED;
	ASSERT_EQ(0, side_open(&b, &options));
	ASSERT_EQ(0, side_handshake(&a, &b.endpoint));
	ASSERT_EQ(0, side_handshake(&b, &a.endpoint));
	waiter.side = &b;
	ASSERT_EQ(0, waiter_start(&waiter, wait_in_submit));
	ASSERT_EQ(0, post_one(&b, receive(&b, 1)));
	ASSERT_EQ(0, post_one(&a, message(&a, 1)));
	EXPECT_EQ(0, waiter_result(&waiter));
	EXPECT_EQ(1, ring_unread(b.ring));
	side_close(&a);
	side_close(&b);
}

TEST_F(wait, since_a_tail_ends_for_one_thread_though_another_reads_everything)
{
	struct waiter waiter = { .side = self->b, .min = 3, .tail = *self->b->ring->tail };
	unsigned int i;

	ASSERT_EQ(0, waiter_start(&waiter, wait_for_tail));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, exchange(self->a, self->b));
	EXPECT_EQ(0, waiter_result(&waiter));
}

TEST_F(wait, ends_with_the_flushed_works_of_a_channel_that_breaks)
{
	struct waiter waiter = { .side = self->b, .min = 3 };
	unsigned int i;

	ASSERT_EQ(0, post_receives(self->b, 0, 3, 64));
	ASSERT_EQ(0, waiter_start(&waiter, wait_in_submit));
	ASSERT_EQ(0, channel_break(self->b->fd, self->b->channel));
	EXPECT_EQ(0, waiter_result(&waiter));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(self->b, i));
}

TEST_F(wait, in_poll_is_woken_by_a_break)
{
	struct waiter waiter = { .side = self->b };

	ASSERT_EQ(0, post_one(self->b, receive(self->b, 1)));
	ASSERT_EQ(0, waiter_start(&waiter, wait_in_poll));
	ASSERT_EQ(0, channel_break(self->b->fd, self->b->channel));
	EXPECT_EQ(0, waiter_result(&waiter));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(self->b, 1));
}

/* Nobody waits after a refusal, so the queue must bring its completions in by itself. */
TEST_F(wait, in_poll_is_woken_by_the_leading_part_of_a_refused_batch)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), receive(self->b, 2) };
	struct ibchan_cmd_submit cmd = submission(wrs, 2);
	struct waiter waiter = { .side = self->b };

	wrs[1].channel = INT_MAX;
	cmd.cq = self->b->ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = IBCHAN_TIMEOUT_NEVER;
	ASSERT_EQ(-ENOENT, cmd_submit(self->b->fd, &cmd));
	ASSERT_EQ(1, cmd.entry_num);
	ASSERT_EQ(0, waiter_start(&waiter, wait_in_poll));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 1)));
	EXPECT_EQ(0, waiter_result(&waiter));
}

TEST_F(wait, in_epoll_is_level_triggered)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	struct ibchan_cqe cqe;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->b->ring->fd, &event));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, post_receives(self->b, 0, 3, 64));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));

	ASSERT_EQ(0, post_one(self->a, message(self->a, 0)));
	ASSERT_EQ(0, post_one(self->a, message(self->a, 1)));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	EXPECT_EQ(EPOLLIN, event.events);
	ASSERT_EQ(0, ring_wait(self->b->ring, 2, patience_ms()));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(1, ring_read(self->b->ring, &cqe, 1));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(1, ring_read(self->b->ring, &cqe, 1));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));

	/* And again after it was empty. */
	ASSERT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	close(epoll);
}

TEST_HARNESS_MAIN
